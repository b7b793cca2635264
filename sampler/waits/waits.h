/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Waiting time: switches of all CPUs in order of time -> counts of stacks, weighted with
 * nanoseconds.
 *
 * The time of each task in each state is exact. A wait with a stack counts for the waits
 * of its task that have none: it is weighted with its length and with the period of its sample, and
 * all weights of a task in a tick add up to the time that it waited. Waits that go on count up to
 * the end of the tick. All time is counted in the slices in which it passed: none of them has more
 * of a task than its own length.
 *
 * At high rates switches may be recorded for a part of the time only. The kernel then counts the
 * times of the tasks, and the recorded waits are their weights.
 *
 * Threads: the queues by their sampler threads; everything else by the builder, which is a
 * registered, online urcu-qsbr reader.
 */
#ifndef SAMPLER_WAITS_WAITS_H
#define SAMPLER_WAITS_WAITS_H

#include "sampler/count/history.h"
#include "sampler/count/count.h"
#include "sampler/profile/profile.h"
#include "sampler/waits/switch_queue.h"
#include "sampler/waits/task_time.h"
#include "symbols/name/name.h"
#include "symbols/process/maps.h"

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

struct waits;

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
bool waits_estimated(const struct waits *w);
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

#endif
