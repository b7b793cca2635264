/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tasks of struct waits, for its files.
 */
#ifndef SAMPLER_WAITS_WAITS_PRIVATE_H
#define SAMPLER_WAITS_WAITS_PRIVATE_H

#include <stdatomic.h>

#include "sampler/count/count.h"
#include "sampler/profile/profile.h"
#include "sampler/waits/task_time.h"
#include "symbols/base/hashset.h"
#include "symbols/name/name.h"

struct waits_tables;

/* Looks at a task that slept before the start, that found no stack. */
#define LOOKS_MAX 60
/* Looks that are not among these, as its process was not read yet: it may never be. */
#define LOOKS_PENDING_MAX 1200
/* None is to follow: it has one. */
#define LOOKS_DONE UINT8_MAX

/* The two classes of waits, with separate sums; and the rest of the time of a task. */
enum wait_class { CLASS_QUEUE, CLASS_SLEEP, CLASS_NR, CLASS_RUNNING = CLASS_NR, CLASS_ALL };

struct wait_task {
	pid_t pid, tid;
	uint32_t next, prev; /* in the ring of its process (waits_ring.c) */
	bool in_ring;	     /* tasks that are gone may have left it */
	struct task_time time;
	uint32_t stack; /* of the current wait; STACK_NONE: it has none */
	uint32_t period;
	uint32_t next_stack, next_period; /* of the next one, by STEP_STACK */
	uint64_t began_ns;		  /* the current wait */
	bool found;			  /* asleep in /proc: the switch before may still follow */
	uint8_t nr_looks;		  /* for its stack, while it is found asleep */
	uint16_t nr_pending;		  /* looks that are not among them */
	bool wants_kind;		  /* that of its wait, which has no stack */
	bool unread; /* its switch left no stack, or a cut one, and its wait lasts: it is read as
			one found asleep */
	uint32_t unknown_ticks;
	uint64_t switched_ns; /* its last step but wake-ups */
	uint64_t doubted_ns;  /* that of the time when /proc had another state */
	bool unseen;	      /* it sleeps, by /proc: switches since switched_ns have no record */
	/* Of the tick. */
	uint64_t running_ns;
	uint64_t ns[CLASS_NR];	   /* with and without stack */
	double weighted[CLASS_NR]; /* sum of ns * period of the spans */
	uint32_t parts[CLASS_ALL]; /* the last one of each */
	/* The stack of the last wait that had one, for waits without. */
	uint32_t last[CLASS_NR];
	/* While times are estimated: the times read last, and the sums of its switches since then.
	 */
	uint64_t read_ns; /* 0: never */
	struct waits_times read;
	uint64_t seen_running_ns, seen_ns[CLASS_NR];
};

/* A part of a wait with a stack, in this tick. */
struct span {
	uint32_t task; /* index */
	uint32_t stack;
	uint32_t period;
	uint32_t class;
	bool is_long;	   /* the wait, WAIT_LONG_NS and more */
	bool is_own;	   /* this time has this stack; else it is a weight alone */
	uint64_t begin_ns; /* if it is its own */
	uint64_t ns;
	double more; /* while they are counted: its part of the time without a stack */
};

/* Time of a task without a stack, in one slice: of one class. */
struct part {
	uint32_t task; /* index */
	uint32_t class;
	uint64_t time_ns; /* in the slice */
	uint64_t ns;
};

struct waits {
	uint32_t nr_queues;
	atomic_int latency;  /* relaxed: a number */
	uint32_t nr_running; /* tasks */
	uint32_t nr_ran;     /* at the last interruption */
	struct switch_queue **queues;
	struct wait_task *tasks;
	uint32_t nr_tasks, room_tasks;
	struct hashset set;	  /* index of the task by tid */
	struct hashset processes; /* index of one task of each ring, by pid */
	struct span *spans;
	uint32_t nr_spans, room_spans;
	struct part *parts;
	uint32_t nr_parts, room_parts;
	uint64_t counted_ns; /* all is counted up to here */
	bool asked;	     /* the loader has a request */
	bool estimated;
	bool gap;	    /* switches are not recorded now */
	uint32_t next_read; /* index of the task to read next */
	uint32_t next_look; /* the same, of sleepers */
	uint32_t next_check;
	bool kinds_wanted; /* by some task */
	bool has_unread;   /* some became so since waits_take_unread() */
	struct profile_waits account;
	/* Scratch: the places of a stack, for another kind. */
	uint32_t places[STACKS_PLACES_MAX];
};

/* Find a task; NULL: unknown. */
struct wait_task *waits_find_task(struct waits *w, pid_t tid);
/* Return the index of one task of the ring of @pid; HASHSET_NONE: there is none. */
uint32_t waits_ring(const struct waits *w, pid_t pid);
/* Put @task, which is in no ring, into that of its process. */
void waits_join(struct waits *w, struct wait_task *task);
/* Take @task out of its ring. */
void waits_leave(struct waits *w, struct wait_task *task);
/* Set the process of @task, which is then in its ring; @pid 0: as before. */
void waits_set_process(struct waits *w, struct wait_task *task, pid_t pid);
/* Set the state of @task, TASK_NEW or TASK_GONE, without a step. */
void waits_set_state(struct waits *w, struct wait_task *task, enum task_state state);
/* Return the time of @task up to @now_ns, which counts as taken. */
struct task_span waits_take_until(struct waits *w, struct wait_task *task, uint64_t now_ns);
/* Add @s to the sums of @task; without memory the span counts as one without a stack. */
void waits_add_span(struct waits *w, struct wait_task *task, struct task_span s);
/* Spread @ns of @class, which have no stack, evenly over the slices of @begin_ns to @end_ns. */
void waits_add_part(struct waits *w, struct wait_task *task, uint32_t class, uint64_t begin_ns,
		    uint64_t end_ns, uint64_t ns);
/* Have @task returned by waits_sleepers() for LOOK_KIND, until its kind is known. */
void waits_want_kind(struct waits *w, struct wait_task *task);
/* Report whether the wait of @task was long when its time was taken last. */
bool waits_is_long(const struct wait_task *task);
/* Report whether the callers of a wait are not known: it has a kind alone, or the mark. */
bool waits_is_cut(const struct waits_tables *t, uint32_t stack);
/* Intern the frame of @kind, alone or in the place of the innermost one of @stack. */
uint32_t waits_stack_of_kind(struct waits *w, const struct waits_tables *t, uint32_t stack,
			     enum wait_kind kind);

#endif
