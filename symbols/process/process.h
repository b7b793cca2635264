/* SPDX-License-Identifier: GPL-2.0-or-later */
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
#ifndef SYMBOLS_PROCESS_PROCESS_H
#define SYMBOLS_PROCESS_PROCESS_H

#include <stdatomic.h>

#include "symbols/base/reclaim.h"
#include "symbols/lang/lang.h"
#include "symbols/process/space.h"
#include "symbols/process/tasks.h"

#define PROCESS_KNOWN  1u /* its maps are complete */
#define PROCESS_KERNEL 2u

/* In the queue of nodes to free: replaced, or ended. */
struct doomed {
	struct doomed *next, **prev;
	uint64_t since_ns;
	bool is_thread;
	bool is_doomed;
};

struct process_thread;

#define INCARNATIONS_MAX 128u

#define NAMES_MAX	8u
#define NAME_SPACING_NS 10000000ull

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
	_Atomic(struct lang_desc *) lang; /* its interpreter; NULL: none is known. As space */
	struct lang_desc *unread;	  /* W: the one before, that cannot be read; NULL: none */
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

/* Of a storm of processes that end: else their memory leaves holes of 40 MiB among other blocks. */
#define PROCESSES_DOOMED_MAX 8192

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

#endif
