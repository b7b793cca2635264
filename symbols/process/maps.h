/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Processes, their threads and their mappings over time.
 *
 * A process is a list of address spaces; each exec starts one; fork copies
 * one; a mapping has a birth time. Look-ups take (pid, tid, time), so a record
 * that is handled late still finds the image it was taken in. PID reuse makes a
 * new process, distinguished by time. There is no munmap record: a pc outside
 * all maps requests a new read of /proc/PID/maps, at most once a second.
 *
 * Threads: writers (maps_on_*, from the side-band drain; maps_load, from the
 * loader) take an internal mutex. Readers (sampler threads, builder) are
 * registered urcu-qsbr threads and never block; results are valid until their
 * next quiescent state. Spaces are published whole, so a drain is a series of
 * maps_on_*() and one maps_publish().
 */
#ifndef SYMBOLS_PROCESS_MAPS_H
#define SYMBOLS_PROCESS_MAPS_H

#include <sys/types.h>

#include "symbols/base/base.h"
#include "symbols/lang/lang.h"
#include "symbols/image/image.h"
#include "symbols/process/details.h"
#include "symbols/process/space.h"
#include "symbols/process/task.h"

struct maps;

struct maps_hit {
	const struct space *space; /* NULL: kernel thread, or unknown */
	uint32_t task;		   /* id in the given table */
	bool full;		   /* the table is full: TASK_UNKNOWN instead */
	bool known;		   /* false: request with maps_ask() and count as pending */
	bool kernel_thread;
	bool outside;	  /* pid 0: a task outside our PID namespace, or the idle one */
	bool ask;	  /* shown as its main thread, or without uid: maps_ask() corrects it */
	uint32_t process; /* id of its incarnation; 0: unknown */
	const struct lang_process *lang; /* its interpreter; NULL: none is known */
	uint8_t jvm_thread;		 /* of a JVM: lang_jvm_thread() */
};

/* Make empty maps. @objects is borrowed for the life of the maps. */
int maps_new(struct maps **out, struct objects *objects, uint32_t max_tasks);
void maps_free(struct maps *m);

/*
 * Replay a recording: processes are from its records, and /proc is never read (its pids may be
 * reused). Before the first record.
 */
void maps_no_proc(struct maps *m);

/*
 * The events are opened in a PID namespace, pid_namespaces(7): all tasks outside have pid 0 in
 * their samples, as the idle task. Before the first record.
 */
void maps_in_namespace(struct maps *m);

/* One mapping of a PERF_RECORD_MMAP2 (perf_event_open(2)); @filename is foreign bytes. */
struct maps_mmap {
	pid_t pid, tid;
	uint64_t start, size, pgoff, time_ns;
	uint32_t prot;
	bool is_private;
	struct object_identity identity; /* kind is set by the filename */
	const char *filename;
	size_t filename_size;
};

void maps_on_mmap(struct maps *m, const struct maps_mmap *ev);
void maps_on_comm(struct maps *m, pid_t pid, pid_t tid, const char *comm, size_t size, bool exec,
		  uint64_t time_ns);
/*
 * Add code of @memory (OBJECT_ANON) in [start, end) that replaced other code at
 * @time_ns; in a recording perhaps in the future, see maps_due().
 */
void maps_on_code(struct maps *m, const struct object *memory, uint32_t layer, uint64_t start,
		  uint64_t end, uint64_t time_ns);
/* Set the user of a process that is not read from /proc, once its events are published. */
void maps_set_user(struct maps *m, pid_t pid, uid_t uid, uint64_t time_ns);
/* Publish the events so far without waiting for the next drain. */
void maps_settle(struct maps *m);
void maps_on_fork(struct maps *m, pid_t pid, pid_t ppid, pid_t tid, pid_t ptid, uint64_t time_ns);
void maps_on_exit(struct maps *m, pid_t pid, pid_t tid, uint64_t time_ns);
/*
 * Side-band records were lost: read every process again at its next request. In a storm
 * of losses a second after the last time, then 2, 4 and 8: until then known mappings
 * are used, and a pc outside them requests its process.
 */
void maps_on_lost(struct maps *m);
/* End a drain: publish all events to readers, drop history older than @keep_ns. */
void maps_publish(struct maps *m, uint64_t now_ns, uint64_t keep_ns);

/* Test for events or losses that are due at @now_ns: then publish before look-ups of that time. */
bool maps_due(const struct maps *m, uint64_t now_ns);

/*
 * Find a task. Always fills @hit; a new id is of @tasks (maps_tasks()). Readers,
 * lock-free.
 */
void maps_find(struct maps *m, struct tasks *tasks, pid_t pid, pid_t tid, uint64_t time_ns,
	       struct maps_hit *hit);
/*
 * Return the begin of the process @pid at @time_ns by fork or exec (0: before the
 * start of proftop), and the pid of its parent (0: unknown). False: unknown process.
 * Readers, lock-free.
 */
bool maps_birth(struct maps *m, pid_t pid, uint64_t time_ns, uint64_t *birth_ns, pid_t *parent);
/*
 * Request that the loader reads /proc/PID (once a second at most). True: wake the
 * loader. Readers, lock-free.
 */
bool maps_ask(struct maps *m, pid_t pid, uint64_t now_ns);

/* Loader: read the requested processes; returns their number. */
unsigned int maps_load_asked(struct maps *m);
/*
 * Loader or set-up: read /proc/PID/{maps,status,task}. 0 or -errno (ESRCH, EACCES
 * are normal).
 */
int maps_load(struct maps *m, pid_t pid);

/* Loader: @object is an interpreter, as its image shows: look at the processes that map it. */
void maps_note_object(struct maps *m, const struct object *object);
/* Report whether an interpreter that @pid has mapped is not described yet. Any thread. */
bool maps_is_undescribed(struct maps *m, pid_t pid);

/* The file of an interpreter that a process has mapped, not looked at yet. */
struct maps_interpreter {
	pid_t pid;
	uint32_t process; /* incarnation */
	struct mapping mapping;
};
/* Loader: the next one, with a reference of its object; false: there is none. */
bool maps_next_interpreter(struct maps *m, struct maps_interpreter *out);
/* Loader: the interpreter of incarnation @process of @pid is @desc; its reference is taken over.
 */
void maps_describe(struct maps *m, pid_t pid, uint32_t process, struct lang_desc *desc);

/*
 * Return the present table of tasks; only its owner, the builder, may keep it beyond
 * a batch.
 */
struct tasks *maps_tasks(const struct maps *m);
/* Return a task by id; NULL for ids never given out. */
const struct task *maps_task(const struct maps *m, uint32_t id);
uint32_t maps_nr_tasks(const struct maps *m);
uint32_t maps_max_tasks(const struct maps *m);
/*
 * Builder: put an empty table in place; returns the old one, NULL when memory is
 * out. The old table may be used for a grace period; then maps_move_task() moves the
 * tasks to keep, and maps_drop_tasks() frees it.
 */
struct tasks *maps_renew_tasks(struct maps *m);
uint32_t maps_move_task(struct maps *m, const struct tasks *from, uint32_t id);
/*
 * Builder: as maps_move_task(), but of a process that has ended, with all of its name as one
 * (ended.h), of the cgroup and container that @details (NULL: none) has. @texts: for a while.
 */
uint32_t maps_merge_task(struct maps *m, const struct tasks *from, uint32_t id,
			 struct details *details, struct text_arena *texts);
/* Builder: get the details of a process that maps_merge_task() made. False: it is none. */
bool maps_merged(const struct maps *m, uint32_t process, struct process_details *out);
void maps_drop_tasks(struct tasks *old);

struct maps_stats {
	uint64_t nr_processes, nr_spaces, nr_mappings;
	uint64_t nr_reads, nr_read_failed; /* of /proc/PID */
	uint64_t nr_names_dropped;    /* of threads renamed too often; samples show another name */
	uint64_t nr_programs_dropped; /* of a process that executes too many; as above */
	uint64_t space_bytes;	      /* of all spaces */
	uint64_t nr_forks_shared;     /* above their limit: children with the parent's last space */
};
void maps_stats(const struct maps *m, struct maps_stats *out);

#endif
