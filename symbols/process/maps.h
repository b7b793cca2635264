/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Processes, their threads and their mappings over time.
 *
 * A process is a list of address spaces; each exec starts one; fork copies
 * one; a mapping has a birth time. Look-ups take (pid, tid, time), so a record
 * that is handled late still meets the image it was taken in. PID reuse is a
 * new process, told apart by time. There is no munmap record: a pc outside
 * all maps asks for a re-read of /proc/PID/maps, at most once a second.
 *
 * Threads: writers (maps_on_*, from the side-band drain; maps_load, from the
 * loader) take an internal mutex. Readers (sampler threads, builder) are
 * registered urcu-qsbr threads and never block; what they find stays valid
 * until their next quiescent state. Spaces are published whole, so a drain is
 * a series of maps_on_*() and one maps_publish().
 */
#ifndef SYMBOLS_PROCESS_MAPS_H
#define SYMBOLS_PROCESS_MAPS_H

#include <sys/types.h>

#include "symbols/base/base.h"
#include "symbols/object/object.h"
#include "symbols/base/text.h"

struct maps;

struct mapping {
	uint64_t start, end; /* addresses, end exclusive */
	uint64_t offset;     /* file offset of start; for anonymous memory: start itself */
	uint64_t birth_ns;   /* 0: older than we are */
	struct object *object;
	bool exec;
};

/* One address space of one process. Immutable once published. */
struct space;

/*
 * A task as it is shown: one (pid, tid, comm) incarnation. Dense ids, given
 * at a task's first sample, in a table that another one replaces some day
 * (tasks.h). Task 0 is the unknown task (pid -1).
 */
struct task {
	pid_t pid, tid;
	uint32_t number;   /* of this incarnation, in whatever table: the later the higher */
	uint32_t process;  /* dense id of the process incarnation (by exec and pid reuse) */
	uid_t uid;	   /* real uid, (uid_t)-1: unknown */
	pid_t parent;	   /* pid of who forked its process; 0: not told */
	uint64_t start_ns; /* when this incarnation began; 0: before us */
	struct safe_text comm;
};

#define TASK_UNKNOWN 0

struct tasks;

struct maps_hit {
	const struct space *space; /* NULL: kernel thread, or not known yet */
	uint32_t task;		   /* its id in the table that was given */
	bool full;		   /* there was no room: TASK_UNKNOWN instead */
	bool known;		   /* false: ask with maps_ask() and count as pending */
	bool kernel_thread;
	bool ask; /* shown as its main thread, or without uid: maps_ask() tells more */
};

/* Both tables are borrowed for the life of the maps. */
int maps_new(struct maps **out, struct objects *objects, uint32_t max_tasks);
void maps_free(struct maps *m);

/*
 * A recording: processes are what its records tell, /proc is never read (a
 * pid of it may be anybody's by now). Before the first record.
 */
void maps_no_proc(struct maps *m);

/* One mapping as told by PERF_RECORD_MMAP2 (perf_event_open(2)); @filename is foreign bytes. */
struct maps_mmap {
	pid_t pid, tid;
	uint64_t start, size, pgoff, time_ns;
	uint32_t prot;
	bool is_private;
	struct object_identity identity; /* kind is set from the filename */
	const char *filename;
	size_t filename_size;
};

void maps_on_mmap(struct maps *m, const struct maps_mmap *ev);
void maps_on_comm(struct maps *m, pid_t pid, pid_t tid, const char *comm, size_t size, bool exec,
		  uint64_t time_ns);
/*
 * Code of @memory (OBJECT_ANON) in [start, end) took the place of other code at
 * @time_ns, which may be to come in a recording: see maps_due().
 */
void maps_on_code(struct maps *m, const struct object *memory, uint32_t layer, uint64_t start,
		  uint64_t end, uint64_t time_ns);
/* After some of these: not everybody waits for the next drain to find something. */
void maps_settle(struct maps *m);
void maps_on_fork(struct maps *m, pid_t pid, pid_t ppid, pid_t tid, pid_t ptid, uint64_t time_ns);
void maps_on_exit(struct maps *m, pid_t pid, pid_t tid, uint64_t time_ns);
/* Side-band records were lost: every process is read anew when next asked for. */
void maps_on_lost(struct maps *m);
/* End of a drain: make all of the above visible to readers, drop what is older than @keep_ns. */
void maps_publish(struct maps *m, uint64_t now_ns, uint64_t keep_ns);

/* Is there something to apply that was told before its time? Then publish before @now_ns is looked
 * up. */
bool maps_due(const struct maps *m, uint64_t now_ns);

/* Readers, lock-free. Always fills @hit; an id, if one must be given, is of @tasks (maps_tasks()).
 */
void maps_find(struct maps *m, struct tasks *tasks, pid_t pid, pid_t tid, uint64_t time_ns,
	       struct maps_hit *hit);
/*
 * Was anything told of @pid until @time_ns? Then when it became what it is, by fork or exec (0:
 * before us), and the pid of who forked it (0: not told). Readers, lock-free.
 */
bool maps_birth(struct maps *m, pid_t pid, uint64_t time_ns, uint64_t *birth_ns, pid_t *parent);
/* The mapping of @addr at @time_ns, or NULL. Any reader. */
const struct mapping *space_find(const struct space *s, uint64_t addr, uint64_t time_ns);
/*
 * The number of a space: no other has it, not even after its end. Who kept
 * mappings by it looks at them only with that space in hand, and tells
 * space_read() afterwards (ThreadSanitizer alone needs to know).
 */
uint64_t space_serial(const struct space *s);
void space_read(const struct space *s);
uint32_t space_nr_mappings(const struct space *s);
/*
 * Ask for the images of all objects mapped there, so that a stack does not ask
 * for them one after the other. True: one was asked for first; wake the loader.
 */
bool space_want(const struct space *s);

/* Readers, lock-free: ask the loader to read /proc/PID (once a second at most). True: wake it. */
bool maps_ask(struct maps *m, pid_t pid, uint64_t now_ns);

/* Loader: serve the questions; returns how many were served. */
unsigned int maps_load_asked(struct maps *m);
/* Loader or set-up: read /proc/PID/{maps,status,task} now. 0 or -errno (ESRCH, EACCES are normal).
 */
int maps_load(struct maps *m, pid_t pid);

/* The table of tasks in use; its owner alone, the builder, may keep it beyond a batch. */
struct tasks *maps_tasks(const struct maps *m);
/* In it; NULL for ids never given out. */
const struct task *maps_task(const struct maps *m, uint32_t id);
uint32_t maps_nr_tasks(const struct maps *m);
uint32_t maps_max_tasks(const struct maps *m);
/* The ids that a table gave out, wasted ones and TASK_UNKNOWN included. */
uint32_t tasks_nr(const struct tasks *t);
/*
 * Builder: an empty table in place; returns the one before, NULL when memory is out. It may still
 * be used for a grace period, then maps_move_task() is called for what is kept of it, and it is
 * freed with maps_drop_tasks().
 */
struct tasks *maps_renew_tasks(struct maps *m);
uint32_t maps_move_task(struct maps *m, const struct tasks *from, uint32_t id);
void maps_drop_tasks(struct tasks *old);

struct maps_stats {
	uint64_t nr_processes, nr_spaces, nr_mappings;
	uint64_t nr_reads, nr_read_failed; /* of /proc/PID */
	uint64_t nr_names_dropped; /* of threads renamed too often: samples show another name */
};
void maps_stats(const struct maps *m, struct maps_stats *out);

#endif
