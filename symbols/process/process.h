/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Incarnations of processes and threads, found by id and time.
 *
 * A struct process is one image of one pid: it begins with fork, exec, or the
 * first time we hear of it. A struct thread is one (pid, tid, comm). Both hang
 * in hash chains that readers walk without a lock; an incarnation that has
 * been replaced or has ended stays findable until procs_reap().
 *
 * Threads: *_find() anywhere (urcu-qsbr readers); all else under the lock of
 * the maps. Fields marked W belong to the writer.
 */
#ifndef SYMBOLS_PROCESS_PROCESS_H
#define SYMBOLS_PROCESS_PROCESS_H

#include <stdatomic.h>

#include "symbols/base/reclaim.h"
#include "symbols/process/space.h"
#include "symbols/process/tasks.h"

#define PROCESS_KNOWN  1u /* its maps are complete */
#define PROCESS_KERNEL 2u

/* A node that is no longer the present one; waits in order for its end. */
struct doomed {
	struct doomed *next;
	uint64_t since_ns;
	bool is_thread;
	bool is_doomed;
};

struct process_thread;

struct process {
	_Atomic(struct process *) next; /* in the chain of its pid; release: the node is whole */
	struct rcu_head rcu;
	pid_t pid;
	uint32_t id; /* dense, of this incarnation */
	uint64_t birth_ns;
	_Atomic(struct space *) space; /* release by the writer, acquire by readers */
	atomic_uint flags;	       /* release after space */
	atomic_uint epoch;	       /* losses seen when its maps were read (maps_on_lost) */
	atomic_uint uid;
	atomic_int parent;		/* pid of who forked it; 0: not told */
	_Atomic uint64_t asked_ns;	/* requests_due() */
	struct doomed doomed;		/* W */
	uint64_t death_ns;		/* W; UINT64_MAX: alive */
	struct space_edit *edit;	/* W: the next space, NULL: unchanged */
	struct process *next_dirty;	/* W */
	bool dirty;			/* W: in the list of those */
	struct process_thread *threads; /* W: the present incarnation of each live thread */
};

struct process_thread {
	_Atomic(struct process_thread *) next; /* in the chain of its tid */
	struct rcu_head rcu;
	struct process *process; /* W */
	pid_t pid, tid;
	uint32_t number; /* of this incarnation, dense: the later the higher */
	uint64_t birth_ns;
	/* Its ids in the table of tasks in use and in another one: serial << 32 | id, 0: none yet.
	 */
	_Atomic uint64_t task[2]; /* by the serial's lowest bit; release after the entry */
	struct doomed doomed;	  /* W */
	struct process_thread *next_sibling, **prev_sibling; /* W */
	struct safe_text comm;				     /* in name */
	char name[TASK_COMM_SIZE];
};

#define PROCS_BUCKETS 16384u

struct procs {
	_Atomic(struct process *) processes[PROCS_BUCKETS];
	_Atomic(struct process_thread *) threads[PROCS_BUCKETS];
	struct doomed *doomed, **doomed_tail;
	uint32_t next_id, next_number;
	atomic_ulong nr_processes; /* alive; relaxed: a figure only */
};

void procs_init(struct procs *t);
/* Free all at once; no readers may be left. Spaces go through space_put(). */
void procs_fini(struct procs *t);
/* Free what has been doomed before @before_ns. */
void procs_reap(struct procs *t, uint64_t before_ns);

/* The incarnation of @pid at @time_ns: the last that began before, else the oldest; NULL: none. */
struct process *process_find(const struct procs *t, pid_t pid, uint64_t time_ns);
struct process_thread *process_thread_find(const struct procs *t, pid_t pid, pid_t tid,
					   uint64_t time_ns);

/* A new incarnation, to be filled in; NULL when memory is out. */
struct process *process_new(struct procs *t, pid_t pid, uint64_t birth_ns);
/* Show it to readers; it replaces the incarnation of its time. */
void process_insert(struct procs *t, struct process *p);
/* It ended (all its threads with it). */
void process_end(struct procs *t, struct process *p, uint64_t time_ns);
/* A new incarnation of a thread, with a clean comm; replaces the one of that time. */
struct process_thread *process_thread_add(struct procs *t, struct process *p, pid_t tid,
					  uint64_t birth_ns, struct safe_text comm);
/* The present incarnation of a live thread, or NULL. */
struct process_thread *process_thread_present(const struct procs *t, pid_t pid, pid_t tid);
/* It ended; its process, too, when it was the last one. */
void process_thread_end(struct procs *t, struct process_thread *th, uint64_t time_ns);

#endif
