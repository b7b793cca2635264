/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Waiting time: switches of all CPUs in order of time -> counts of stacks, weighted with
 * nanoseconds.
 *
 * The caller owes: switches from the rings in order for each CPU; the builder's thread.
 *
 * The room does: times each state of each task, spreads a wait over the slices it lasted, reads
 * stack and kind of sleepers from outside, finds owners of mutexes.
 *
 * Not for: running time (sampler/live.c: clocks of the kernel).
 *
 * The time of each task in each state is exact. A wait with a stack counts for the waits of its
 * task that have none: it is weighted with its length and with the period of its sample, and all
 * weights of a task in a tick add up to the time that it waited. Waits that go on count up to the
 * end of the tick. All time is counted in the slices in which it passed: none of them has more of a
 * task than its own length.
 *
 * At high rates switches may be recorded for a part of the time only. The kernel then counts the
 * times of the tasks, and the recorded waits are their weights.
 *
 * Threads: the queues by their sampler threads; everything else by the builder, which is a
 * registered, online urcu-qsbr reader.
 */
#ifndef SAMPLER_WAITS_WAITS_H
#define SAMPLER_WAITS_WAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbols/process/process.h"

struct counts;
struct history_ids;
struct maps;
struct profile_waits;
struct sleep_reader;
struct stacks;
struct switch_queue;
struct tasks;
struct waits;

/*
 * A sleeping task from outside: the kind of its wait, and a copy of its user stack.
 *
 * For tasks that the kernel does not sample: they slept before the start, or the user may not
 * sample the kernel. On a thread that may hang: the memory of a process may be of a file system
 * that does not respond, and files of /proc/TID are read under a lock that the task has while it
 * executes a program, which may wait for such a file system.
 */

#define ASLEEP_STACK	16384
#define ASLEEP_COPY_MAX (1U << 20)

struct asleep {
	pid_t pid, tid;
	enum wait_kind kind; /* WAIT_NO: it was not asleep all the time */
	uint64_t time_ns;    /* of the copy */
	uint64_t sp, pc;     /* of its user code */
	size_t size;	     /* bytes copied from @sp on; 0: none */
	uint8_t stack[ASLEEP_STACK];
};

/*
 * Return the kind of the wait that a task is in now, by its wait channel and system call; WAIT_NO:
 * it is in none.
 */
enum wait_kind asleep_kind(pid_t tid);
/* Read the stack pointer and the pc of a task that is in the kernel. False: it runs, or refused. */
bool asleep_registers(pid_t tid, uint64_t *sp, uint64_t *pc);
/* Read how often a task was switched in. */
bool asleep_runs(pid_t tid, uint64_t *nr);
/* Copy at most @max bytes, up to ASLEEP_COPY_MAX, from @sp to the first unreadable page. */
size_t asleep_copy_stack(pid_t pid, uint64_t sp, void *bytes, size_t max);
/* Read the kind and the stack of a->tid. WAIT_NO of a task that ran in between. */
void asleep_read(struct asleep *a);

/*
 * Mutexes that tasks wait for now, and their owners: from /proc and the memory of the process.
 *
 * Any thread that may hang: the memory of a process may be of a file system that does not respond.
 */

#define LOCKS_COMM    64
#define LOCKS_WAITERS 16

struct lock_task {
	pid_t pid, tid;
};

struct lock {
	pid_t pid;
	uint64_t address;
	uint32_t nr_waiters;
	pid_t waiters[LOCKS_WAITERS]; /* the first of them */
	char symbol[128];	      /* its variable; "": not known; clean text, as the next */
	char where[128];	      /* the mapping: "[heap]", "libfoo.so" */
	pid_t owner;		/* a task of @pid; 0: not known, the mutex is not one of glibc */
	char state;		/* of the owner, as in /proc/PID/stat: R, S, D ...; 0: not known */
	char wchan[LOCKS_COMM]; /* the kernel function that it sleeps in; "": none; foreign text */
};

/*
 * Find the mutexes that @tasks wait for at this moment: the one with most waiters first. Tasks that
 * do not wait for a mutex are ignored. Returns how many; the first one has its variable.
 */
uint32_t locks_find(const struct lock_task *tasks, uint32_t nr, struct lock *out, uint32_t max);

/*
 * A task stopped for a moment, for its registers: PTRACE_SEIZE and PTRACE_INTERRUPT, which send no
 * signal, then PTRACE_DETACH.
 *
 * The tracer is a thread that ends: the kernel detaches whatever it leaves, also when proftop is
 * killed. It detaches at the latest STOPPED_MAX_NS after the begin of the stop, also if the caller
 * hangs in the memory of the process.
 *
 * Any thread that may hang.
 */

#define STOPPED_REGS_MAX 33 /* unwind.h: UNWIND_REGS_MAX */

struct stopped {
	uint64_t regs[STOPPED_REGS_MAX]; /* as in a sample with unwind_regs_mask() */
	uint64_t sp;
	uint64_t stop_ns; /* from before the begin of the stop to its end */
	bool whole;	  /* @copy had returned before the end of the stop */
};

/* Copy what is needed of the stopped task; until @deadline_ns it does not run. */
typedef void (*stopped_copy_fn)(void *ctx, const struct stopped *s, uint64_t deadline_ns);

/*
 * Stop @tid, have @copy called on this thread, let it run again. 0; -EPERM: not permitted, or
 * traced already; -ESRCH: it has ended; -ETIME: it did not stop in time; other -errno.
 */
int stopped_read(pid_t tid, struct stopped *s, stopped_copy_fn copy, void *ctx);

/* The generation of the tables of a stack, in the bits of a note. */
#define SWITCH_GENERATION(n) ((n)&0xffffffu)

struct switch_note {
	uint64_t time_ns;
	pid_t tid;
	union {
		pid_t pid;
		uint32_t task; /* STEP_SAMPLE: its id in the counts */
	};
	uint32_t stack;	 /* STEP_OUT, STEP_PREEMPTED: taken here; STACK_NONE: none was */
	uint32_t period; /* of the sample with the stack: weighs as this number of switches */
	uint32_t generation : 24; /* SWITCH_GENERATION() of the stack's table */
	uint32_t step : 8;	  /* enum task_step */
};

/* Writer: append. False: full, and counted. */
bool switch_queue_put(struct switch_queue *q, const struct switch_note *note);
/* Writer: all switches before @time_ns are in the queue. */
void switch_queue_done(struct switch_queue *q, uint64_t time_ns);
/* Writer: report whether the queue is over half full. */
bool switch_queue_crowded(const struct switch_queue *q);

/*
 * The time of one task by state, from the records of its switches. Pure; one owner.
 *
 * Steps are in order of time; a step before the last one is ignored. A step before a time that was
 * returned already, after task_time_until(), counts from that time on. Every nanosecond from the
 * first step on belongs to exactly one state, so the states add up to the life of the task.
 */

enum task_state {
	TASK_NEW,      /* not seen yet */
	TASK_FOUND,    /* in /proc: running or runnable; the next step shows which */
	TASK_RUNNING,  /* on a CPU */
	TASK_RUNNABLE, /* preempted, woken, or not started yet: in a run queue */
	TASK_SLEEPING,
	TASK_GONE, /* exited */
	TASK_STATE_NR,
};

enum task_step {
	STEP_IN,	/* switched in */
	STEP_OUT,	/* switched out to sleep */
	STEP_PREEMPTED, /* switched out while runnable */
	STEP_WOKEN,
	STEP_BORN,   /* forked: waits for its first run */
	STEP_FOUND,  /* in /proc, state R */
	STEP_ASLEEP, /* in /proc, any other state */
	STEP_EXIT,
	STEP_EXEC, /* another program, by the first thread or one that has its id now */
	STEP_NR,
	/* No steps: a sample of a running task; of a recording, the stack of the next switch. */
	STEP_SAMPLE = STEP_NR,
	STEP_STACK,
};

struct task_time {
	uint64_t since_ns; /* begin of the state, or of its part that was not returned yet */
	uint64_t step_ns;  /* of the last step */
	enum task_state state;
	uint32_t nr_odd;  /* steps that do not follow the state: records were lost */
	uint32_t nr_late; /* ignored steps */
};

/* Times that the kernel has counted since the start of a task. */
struct waits_times {
	uint64_t running_ns, queue_ns;
};

/* The tables that waits are counted into; borrowed. */
struct waits_tables {
	struct maps *maps;
	struct tasks *tasks;
	struct stacks *stacks;
	struct counts *counts;
	const uint32_t *kinds; /* by enum wait_kind: the place of its frame */
	uint32_t generation;   /* of stacks */
	bool recorded;	       /* no process is read later */
	bool chains;	       /* stacks are taken: without one, callers are unknown */
};

/*
 * Make the queues of @nr_cpus CPUs; 0: a recording, of which each call of waits_count() is of one
 * slice. @latency: samples of this event are queued as STEP_SAMPLE, and
 * count for PROFILE_LATENCY; -1: none. NULL: out of memory.
 */
struct waits *waits_new(uint32_t nr_cpus, int latency);
/* Change @latency, as for waits_new(): the events have other slots. */
void waits_set_latency(struct waits *w, int latency);
/* Any thread. */
int waits_latency(const struct waits *w);
void waits_free(struct waits *w);
struct switch_queue *waits_queue(struct waits *w, uint32_t cpu_index);
/* Return the number of notes that all queues have got, modulo 2^32. */
uint32_t waits_nr_notes(const struct waits *w);
/* Forget all tasks: each is new at its next switch. */
void waits_restart(struct waits *w);
/* A task found in /proc that was in this state at @time_ns. */
void waits_found(struct waits *w, pid_t pid, pid_t tid, enum task_step step, uint64_t time_ns);

/* The reason to look at a task that has no sample of its switch. */
enum waits_look {
	LOOK_KIND,   /* the kind of its wait, until there is a stack: found asleep, or estimated */
	LOOK_BEFORE, /* the stack of its wait, which began before the start, or left none */
	LOOK_NOW,    /* where no stacks are sampled: its wait at this moment, if it sleeps */
};

struct waits_sleeper {
	pid_t pid, tid;
	enum waits_look look;
};

/*
 * Report whether tasks became due for LOOK_BEFORE since the last call: their switches left no
 * stack, or a cut one, and they still sleep.
 */
bool waits_take_unread(struct waits *w);
/* Report whether there may be tasks for LOOK_KIND. */
bool waits_wants_kinds(const struct waits *w);

/* Processes that are not looked at; borrowed. */
struct waits_barred {
	const pid_t *pids;
	uint32_t nr;
};

/*
 * Get up to @max tasks to look at, in the order of their turns; for LOOK_NOW tasks for LOOK_BEFORE
 * are among them. Returns how many.
 */
uint32_t waits_sleepers(struct waits *w, enum waits_look look, const struct waits_barred *barred,
			struct waits_sleeper *out, uint32_t max);
/*
 * Use @stack for a task that slept at @time_ns; STACK_NONE: it did not sleep. One for LOOK_NOW
 * shares the sleep of the task in this tick with the others, which are seen at regular times.
 */
void waits_slept(struct waits *w, const struct waits_tables *t, const struct waits_sleeper *s,
		 uint32_t stack, uint64_t time_ns);
/* Do not count the look @s, of at most 1,200: the process of the task is not read yet. */
void waits_look_again(struct waits *w, const struct waits_sleeper *s);
/* Take one step of a task. -ENOMEM: it is counted as lost. */
int waits_step(struct waits *w, const struct waits_tables *t, const struct switch_note *note);
/* Take the notes that all queues have up to @until_ns. Returns the time they are complete up to. */
uint64_t waits_take(struct waits *w, const struct waits_tables *t, uint64_t until_ns);
/* Report whether all queues are complete up to @until_ns. */
bool waits_complete(const struct waits *w, uint64_t until_ns);
/*
 * Add the time of all tasks up to @now_ns to the counts, waits under event @slot, running under
 * PROFILE_RUNNING. @out: the account since the last call with one; NULL: the tick goes on.
 */
void waits_count(struct waits *w, const struct waits_tables *t, uint32_t slot, uint64_t now_ns,
		 struct profile_waits *out);
/* Return the time up to which all waits are counted. */
uint64_t waits_counted_ns(const struct waits *w);

/* Read the times of a task; false: unknown. */
typedef bool (*waits_times_fn)(pid_t pid, pid_t tid, struct waits_times *out);

/*
 * From @now_ns on take the times of tasks from waits_read_times(), or no longer: then each is new
 * at its next switch.
 */
void waits_estimate(struct waits *w, const struct waits_tables *t, bool on, uint64_t now_ns);
/* Add the times of at most @max tasks: longest unread first. */
void waits_read_times(struct waits *w, waits_times_fn read, uint32_t max);

/* Read the state of a task from /proc: STEP_FOUND, STEP_ASLEEP, STEP_EXIT. Not to hang. */
typedef enum task_step (*waits_state_fn)(pid_t pid, pid_t tid);

/*
 * Read the states of tasks that have been on a CPU or in a run queue without a switch for over
 * a second, @max of them at most. One that sleeps or is gone in two calls had records that were
 * lost: it does so from @now_ns to its next switch. Returns the number of those.
 */
uint32_t waits_check(struct waits *w, waits_state_fn state_of, uint32_t max, uint64_t now_ns);
/* Begin (@gap) or end a time without records of switches: the states of tasks are unknown. */
void waits_interrupt(struct waits *w, const struct waits_tables *t, bool gap, uint64_t now_ns);
/* Report whether processes were requested from the loader since the last call. */
bool waits_take_asked(struct waits *w);
/* Count nothing of the time before @begin_ns, of which some notes may not be taken yet. */
void waits_discard(struct waits *w, uint64_t begin_ns);
/* The stacks have other ids. */
void waits_remap(struct waits *w, const struct history_ids *ids);

/*
 * Copies of the stacks of a few sleeping tasks, or the kinds of waits of many, read by a helper,
 * which may hang in one of them.
 *
 * Threads: one owner; the tasks are read on a helper.
 */

/* Tasks that are read by one job: with stacks, and without. */
#define SLEEP_READER_TASKS 16
#define SLEEP_READER_KINDS 500

enum sleep_reader_state {
	SLEEP_READER_IDLE,
	SLEEP_READER_BUSY,
	SLEEP_READER_DONE,    /* there are copies */
	SLEEP_READER_HUNG,    /* in one process: there are copies of the tasks before it */
	SLEEP_READER_STOPPED, /* it hangs in too many processes: no job is started until one ends */
};

struct sleep_copy {
	struct waits_sleeper task;
	enum wait_kind kind; /* WAIT_NO: it ran */
	uint64_t time_ns;
	struct asleep *copy; /* NULL: the kind alone was read */
};

/* asleep_read() and asleep_kind(); a test has others. */
struct sleep_reader_calls {
	void (*read)(struct asleep *a);
	enum wait_kind (*kind_of)(pid_t tid);
};

/* NULL: out of memory. */
struct sleep_reader *sleep_reader_new(struct sleep_reader_calls calls);
/* NULL is allowed. A helper that hangs is left. */
void sleep_reader_free(struct sleep_reader *r);
/* Return the state at @now_ns. */
enum sleep_reader_state sleep_reader_look(struct sleep_reader *r, uint64_t now_ns);
/* Report whether it hangs in too many processes. */
bool sleep_reader_stopped(const struct sleep_reader *r);
/*
 * Return the processes that reads hang in, the last one last; borrowed until the next
 * sleep_reader_look() or sleep_reader_drop(), which leave out the ones that no longer do.
 */
struct waits_barred sleep_reader_hung(const struct sleep_reader *r);
/*
 * Return the @nr copies of a job that is done, or hangs, which are in the order of its tasks:
 * valid until sleep_reader_drop().
 */
const struct sleep_copy *sleep_reader_copies(const struct sleep_reader *r, uint32_t *nr);
/* Free the copies, or put a job aside that hangs, so that the next one can be started. */
void sleep_reader_drop(struct sleep_reader *r);
/*
 * Start a job for at most SLEEP_READER_TASKS tasks with @stacks, SLEEP_READER_KINDS without. False:
 * @nr is 0, out of memory, no helper is free.
 */
bool sleep_reader_start(struct sleep_reader *r, const struct waits_sleeper *tasks, uint32_t nr,
			bool stacks);

#endif
