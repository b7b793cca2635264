/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of symbols/process/, and by tests; no other room includes it. */
#ifndef SYMBOLS_PROCESS_INTERNAL_H
#define SYMBOLS_PROCESS_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbols/base/base.h"
#include "symbols/base/table.h"
#include "symbols/base/text.h"
#include "symbols/base/thread.h"
#include "symbols/process/process.h"

struct details;
struct ended;
struct lang_desc;
struct mapping;
struct maps;
struct maps_event;
struct maps_interpreter;
struct object;
struct objects;
struct process_details;
struct process_thread;
struct space;
struct space_edit;
struct space_stats;
struct task;
struct text_arena;

/*
 * The text of /proc/PID/cgroup, and the container of a cgroup; see cgroups(7).
 *
 * Hostile: users choose the names of their cgroups. Bytes in, fields out.
 * Pure; any thread.
 */

#define CGROUP_CONTAINER_MAX 96

/*
 * Names of containers, from the files in which docker and podman keep them.
 *
 * Hostile: users of these tools choose the names. Files of root only, of a limited size; names have
 * the letters that both tools allow.
 *
 * Threads: one owner, a thread that may read files of others.
 */

#define CONTAINER_NAME_ID   64 /* digits */
#define CONTAINER_NAME_MAX  64 /* with the NUL */
#define CONTAINER_NAME_MEMO 32

/* Zero before the first use. */
struct container_names {
	struct container_memo {
		char id[CONTAINER_NAME_ID + 1], name[CONTAINER_NAME_MAX];
		uint64_t read_ns; /* 0: free */
	} memo[CONTAINER_NAME_MEMO];
	unsigned int next; /* overwritten next */
};

/* Builder: the same without a request: the details that are known. False: none. */
bool details_known(struct details *d, uint32_t process, struct text_arena *arena,
		   struct process_details *out);

/* Of these in processes of one real user; then its other ones are left out. */
#define PROC_HUNG_OF_USER 8U

/* Begin to read @pid. False: leave it out, it hangs, or too many of its user do. */
bool proc_watch_begin(pid_t pid);
/* End that. False: it took so long that another thread has the work now. */
bool proc_watch_end(void);

/*
 * Return the kind of object for the name of a mapping, in /proc/PID/maps and in
 * MMAP2 records. A memfd is a file when mapped privately, as programs and libraries
 * are; JITs share it with the mapping that they write through.
 * The vdso of a 32-bit process, which @start shows, is another one: a file that cannot be read.
 */
enum object_kind procfs_kind(const char *path, size_t size, uint64_t start, bool is_private);
#define PATH_SIZE_MAX 4096U /* of a mapping */

/*
 * Find the executable mappings of @maps, of one process with the lines @text, that are copies of
 * the text of a file there, and give them its object and offsets. Reads its memory, so it may hang.
 */
void procfs_find_copies(struct objects *objects, int dir_fd, pid_t pid, struct mapping *maps,
			uint32_t nr, struct procfs_text text);

#define REQUESTS_SLOTS	 1024u
#define REQUESTS_FILTERS 4096u

struct requests {
	atomic_int nr;				    /* queued; a little off during a put or take */
	atomic_int slots[REQUESTS_SLOTS];	    /* pid, 0: empty */
	_Atomic uint64_t filters[REQUESTS_FILTERS]; /* pid << 32 | time in units of 2^20 ns */
};

/*
 * Address spaces: immutable snapshots for readers, drafts for the writer.
 *
 * A space is a tree of mappings; spaces share its nodes (copy on write), so a change in a large
 * process copies a few of them, and fork shares all. A space also keeps a short list of replaced
 * mappings, each with the time of its end, for look-ups in the past; that of a child begins empty.
 *
 * Threads: look-ups (space_find() to space_want()) on any urcu-qsbr reader; all else
 * under the lock of the maps. Memory that readers may use is freed through urcu-qsbr.
 */

#define SPACE_MAPPINGS_MAX 100000u
/* Above these bytes of all spaces a fork gets the published space of its parent. */
#define SPACE_BYTES_MAX (256ul << 20)

/* Find an executable mapping of @object; NULL: none. */
const struct mapping *space_find_object(const struct space *s, const struct object *object);
uint32_t space_nr_mappings(const struct space *s);
/* Test for mappings that were replaced, which are of no use to a child. */
bool space_has_old(const struct space *s);
/* Take and drop a reference: one for each process with this space. @s may be NULL. */
struct space *space_get(struct space *s);
void space_put(struct space *s);
enum space_change {
	SPACE_SAME, /* known already, or full */
	SPACE_CHANGED,
	SPACE_COVERED, /* code of a file may be lost to other code, or the program has moved it
			* there
			*/
};

/* Begin a draft of the next space after @from (NULL: empty). NULL when out of memory. */
struct space_edit *space_edit_new(struct space *from, struct space_stats *stats);
void space_edit_free(struct space_edit *d);
/*
 * Add a mapping, with an object of which the caller has a reference until the draft has ended. In
 * overlaps the later birth wins; the loser is trimmed, and the part lost is kept
 * with its end.
 */
enum space_change space_edit_add(struct space_edit *d, const struct mapping *m);
/*
 * Add a mapping of the kernel's event. Memory without a file in the middle of the program's code is
 * taken for its text, moved to huge pages: nothing changes, SPACE_COVERED. So is memory with a file
 * on both sides.
 */
enum space_change space_edit_map(struct space_edit *d, const struct mapping *m);
/*
 * Add a mapping of /proc/PID/maps read at @read_ns: in an unknown range it has
 * always been there, over an older mapping since @read_ns; mappings born after @read_ns are kept.
 */
bool space_edit_merge(struct space_edit *d, const struct mapping *m, uint64_t read_ns);
/*
 * Return the space of a child that is forked at @time_ns, with one reference; the draft goes on,
 * and children before its next change share that space. NULL when out of memory.
 */
struct space *space_edit_fork(struct space_edit *d, uint64_t time_ns);
/*
 * End the draft: return the space to publish, with one reference. Drops mappings
 * that ended before @keep_from_ns.
 */
struct space *space_edit_freeze(struct space_edit *d, uint64_t keep_from_ns);

/*
 * Dense ids for tasks, given at their first sample.
 *
 * Entries live in chunks that never move. The hot thread that finds a new task
 * writes its entry, without malloc: tasks_grow() keeps empty entries ahead.
 *
 * Ids are freed all together: another table takes over (maps_renew_tasks()),
 * tasks still shown move, the rest goes with the old table. Ids of two tables
 * are in use only during a grace period, so a thread name has two words for its
 * id, used alternately by the serial numbers of the tables.
 *
 * Threads: tasks_add() and the look-ups anywhere, lock-free; tasks_grow()
 * under the lock of the maps.
 */

#define TASK_COMM_SIZE 64

struct tasks {
	uint32_t max;
	uint32_t serial;      /* of the table; one more than that of the table before */
	struct chunked slots; /* struct task_slot, empty ones ahead of the ids */
	_Alignas(CACHELINE) atomic_uint next; /* ids given out */
};

/* Make an empty table with TASK_UNKNOWN; NULL when out of memory. */
struct tasks *tasks_new(uint32_t max, uint32_t serial);
void tasks_free(struct tasks *t);
/* Keep empty entries ahead of the ids given out; 0 or -ENOMEM. */
int tasks_grow(struct tasks *t);
/* Copy @task and its names to a new id; TASK_UNKNOWN when the table is full. */
uint32_t tasks_add(struct tasks *t, const struct task *task);
const struct task *tasks_at(const struct tasks *t, uint32_t id);

/*
 * Threads of processes that have ended, as one for each name: of one user, cgroup and container. So
 * the sums of a session of days have room for them, and still show the stacks of all.
 *
 * An entry lives as long as the table, since its ids are shown: at most ENDED_MAX, each with
 * 1.4 KiB of texts at most. Sessions and containers have new names for ever, so the last ones are
 * for names without cgroup and container. Threads: one owner; there is no locking.
 */

#define ENDED_MAX	 4096u
#define ENDED_PLACED_MAX (ENDED_MAX / 4 * 3) /* with cgroup and container */

/* Ids that no other task or process has: the caller gives two, and learns whether they are used. */
struct ended_ids {
	uint32_t process, number;
	bool process_used, number_used;
};

/*
 * Incarnations of processes and threads, found by id and time.
 *
 * A struct process is one image of one pid: it begins with fork, exec, or the
 * first record of the pid. A struct process_thread is one of its threads, with
 * its latest names. Processes and threads are in hash chains, names in a list
 * per thread; readers walk these without a lock. An incarnation that was replaced or has ended can
 * be found until processes_reap(), but of one pid or tid at most INCARNATIONS_MAX: a process that
 * executes programs in a loop must not make walks longer and longer. Beyond that the oldest one is
 * dropped, and counted: samples of it that are read later belong to the next one.
 *
 * A rename costs the same however many there were: a thread keeps NAMES_MAX
 * names. Beyond that, names less than NAME_SPACING_NS apart replace each
 * other, else the oldest leaves; the latest name is always kept. Names that
 * left while samples of their time may still arrive are counted.
 *
 * Threads: *_find() anywhere (urcu-qsbr readers); all else under the lock of
 * the maps. Fields marked W belong to the writer.
 */

/* In the queue of nodes to free: replaced, or ended. */
struct doomed {
	struct doomed *next, **prev;
	uint64_t since_ns;
	bool is_thread;
	bool is_doomed;
};

#define INCARNATIONS_MAX 128u
#define NAMES_MAX	 8u
#define NAME_SPACING_NS	 10000000ull

/* One name of a thread, from birth_ns until the birth of the next. Immutable but for task. */
struct thread_name {
	_Atomic(struct thread_name *) older; /* release: the name is complete */
	struct reclaim rcu;
	uint64_t birth_ns;
	uint32_t number; /* dense: the later the higher */
	/* Ids in the task table in use and in another one: serial << 32 | id, 0: none yet. */
	_Atomic uint64_t task[2]; /* by the serial's lowest bit; release after the entry */
	struct safe_text comm;	  /* in bytes */
	char bytes[TASK_COMM_SIZE];
};

/* Flags of a process. */
#define PROCESS_KNOWN  1u /* its maps are complete */
#define PROCESS_KERNEL 2u
#define PROCESS_CHOSEN 4u /* see maps_choose_by() */

struct process {
	_Atomic(struct process *) next; /* in the chain of its pid; release: the node is whole */
	struct reclaim rcu;
	pid_t pid;
	uint32_t id; /* dense, of this incarnation */
	uint64_t birth_ns;
	_Atomic(struct space *) space; /* release by the writer, acquire by readers */
	atomic_uint flags;	       /* release after space */
	atomic_uint epoch;	       /* value of maps.epoch when its maps were read */
	atomic_uint uid;
	atomic_int parent;		  /* pid of its parent; 0: unknown */
	_Atomic uint64_t asked_ns;	  /* requests_due() */
	_Atomic uint64_t covered_ns;	  /* SPACE_COVERED; 0: never, or read since */
	_Atomic(struct lang_desc *) lang; /* its interpreter; NULL: none is known. As space */
	struct lang_desc *unread;	  /* W: an earlier, unreadable one; NULL: none */
	/* W: files of interpreters; .object NULL: none, else with a reference. A program and its
	 * library. */
	struct mapping interpreters[2];
	struct doomed doomed;	 /* W */
	uint64_t death_ns;	 /* W; UINT64_MAX: alive */
	struct space_edit *edit; /* W: the next space, NULL: unchanged */
	/* W: in the list of dirty processes; prev_dirty NULL: not in it. */
	struct process *next_dirty, **prev_dirty;
	struct process_thread *threads; /* W: its live threads */
};

struct process_thread {
	_Atomic(struct process_thread *) next; /* in the chain of its tid */
	struct reclaim rcu;
	struct process *process; /* W */
	pid_t pid, tid;
	uint64_t birth_ns;
	_Atomic(struct thread_name *) names;		     /* never NULL; the latest first */
	uint32_t nr_names;				     /* W: 1 to NAMES_MAX */
	struct doomed doomed;				     /* W */
	struct process_thread *next_sibling, **prev_sibling; /* W */
	struct thread_name first; /* allocated with the thread; may have left the list */
};

#define PROCS_BUCKETS 16384u

struct processes {
	uint64_t secret; /* of the hash */
	_Atomic(struct process *) processes[PROCS_BUCKETS];
	_Atomic(struct process_thread *) threads[PROCS_BUCKETS];
	struct doomed *doomed, **doomed_tail;
	uint32_t nr_doomed;
	uint32_t next_id, next_number;
	uint32_t nr_nodes, max_nodes;	  /* W: processes and threads that can be found */
	atomic_ulong nr_refused;	  /* relaxed: were not added, beyond the limit */
	atomic_ulong nr_processes;	  /* alive; relaxed: a figure only */
	atomic_ulong nr_names_dropped;	  /* relaxed: a figure only */
	atomic_ulong nr_programs_dropped; /* relaxed: a figure only */
};

void processes_init(struct processes *t);
/*
 * Keep at most @max_nodes processes and threads. Beyond it new ones are refused; an incarnation of
 * one that is known replaces its oldest.
 */
void processes_limit(struct processes *t, uint32_t max_nodes);
/* Put @p into a list of dirty processes, once. One that is dropped leaves the list. */
void process_mark_dirty(struct process *p, struct process **list);
/* Take @p out of that list. */
void process_mark_clean(struct process *p);
/* Free all immediately; no readers may be left. Spaces go through space_put(). */
void processes_fini(struct processes *t);
/*
 * Free nodes doomed before @before_ns; of more than PROCESSES_DOOMED_MAX also the ones doomed
 * before @crowd_ns (0: none).
 */
void processes_reap(struct processes *t, uint64_t before_ns, uint64_t crowd_ns);
/*
 * Find the incarnation of @pid at @time_ns: the last that began before, else the
 * oldest; NULL: none.
 */
struct process *process_find(const struct processes *t, pid_t pid, uint64_t time_ns);
struct process_thread *process_thread_find(const struct processes *t, pid_t pid, pid_t tid,
					   uint64_t time_ns);
/* Make an incarnation, not visible yet; NULL: out of memory, or the table is full. */
struct process *process_new(struct processes *t, pid_t pid, uint64_t birth_ns);
/* Publish @p, which replaces the incarnation of its time. */
void process_insert(struct processes *t, struct process *p);
/* End a process and all its threads. */
void process_end(struct processes *t, struct process *p, uint64_t time_ns);
/* Return the name of @th at @time_ns: the last that began before, else the oldest kept. */
struct thread_name *process_thread_name(const struct process_thread *th, uint64_t time_ns);
/*
 * Add an incarnation of a thread, which replaces that of its time. NULL: out of memory, or the
 * table is full.
 */
struct process_thread *process_thread_add(struct processes *t, struct process *p, pid_t tid,
					  uint64_t birth_ns, struct safe_text comm);
/* Find the present incarnation of a live thread; NULL: none. */
struct process_thread *process_thread_present(const struct processes *t, pid_t pid, pid_t tid);
/*
 * Give @th another name from @birth_ns on, in constant time. Names that ended
 * before @keep_ns leave without being counted. No effect when out of memory.
 */
void process_thread_rename(struct processes *t, struct process_thread *th, uint64_t birth_ns,
			   struct safe_text comm, uint64_t keep_ns);
/* Give @th new task ids: a field of its process has changed. */
void process_thread_forget_tasks(struct process_thread *th);
/* End a thread; its process also ends with the last one. */
void process_thread_end(struct processes *t, struct process_thread *th, uint64_t time_ns);

/* Renames of one thread in the log. */
struct maps_rename {
	uint32_t nr, last;  /* their number; index of the last one */
	uint64_t before_ns; /* time of the one before the last */
};

#define MAPS_RENAMES 64u /* threads by tid; others are logged without being replaced */

struct maps {
	_Atomic(struct tasks *) tasks; /* the present table; written by the builder, release */
	struct ended *ended;	       /* of the builder; NULL: none yet */
	struct requests requests;
	struct processes procs;
	struct space_stats spaces;
	struct objects *objects;
	bool in_namespace;		       /* set before the first record, then constant */
	bool no_proc;			       /* set before the first record, then constant */
	_Alignas(CACHELINE) atomic_uint epoch; /* losses of side-band records; release by publish */
	atomic_ulong nr_reads, nr_read_failed;
	atomic_ulong nr_forks_shared; /* relaxed: a figure only */
	_Atomic uint64_t due_ns;      /* of the first entry kept in the log; UINT64_MAX: none */
	_Atomic uint64_t reread_ns;   /* processes are read again then; UINT64_MAX: not lost */

	_Alignas(CACHELINE) pthread_mutex_t lock; /* of all fields below, and of all marked W */
	struct maps_event *log;			  /* events not yet applied */
	uint32_t nr_log, room_log, seq;
	struct maps_rename renames[MAPS_RENAMES];
	struct maps_interpreter *interpreters; /* not looked at yet */
	uint32_t nr_interpreters, room_interpreters;
	struct space *empty;
	struct process *dirty; /* spaces with a draft */
	struct object **held;  /* a reference of each, until the drafts are published */
	uint32_t nr_held, room_held;
	uint64_t keep_from_ns; /* mappings that ended before may be dropped */
	uint64_t now_ns;       /* of the last publish: later events are kept in the log */
	bool lost;	       /* records, since processes were last to be read again */
	maps_match_fn match;   /* see maps_choose_by(); NULL: none */
	const void *match_ctx;
	uint64_t lost_ns; /* time of that; 0: never */
	uint64_t rest_ns; /* pause after it */
	bool sweep;	  /* exits may be lost: check which processes are alive */
};

#endif
