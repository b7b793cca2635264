/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Switches on their way from the sampler thread of one CPU to the builder, in order of time.
 *
 * Lock-free, bounded; one writer, one reader. A note that does not fit is counted, not waited for.
 */
#ifndef SAMPLER_WAITS_SWITCH_QUEUE_H
#define SAMPLER_WAITS_SWITCH_QUEUE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

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

struct switch_queue;

/* Make a queue of @nr notes (a power of two). NULL: out of memory. */
struct switch_queue *switch_queue_new(uint32_t nr);
void switch_queue_free(struct switch_queue *q);

/* Writer: append. False: full, and counted. */
bool switch_queue_put(struct switch_queue *q, const struct switch_note *note);
/* Writer: all switches before @time_ns are in the queue. */
void switch_queue_done(struct switch_queue *q, uint64_t time_ns);
/* Any thread: return the number of notes that were appended, modulo 2^32. */
uint32_t switch_queue_nr(const struct switch_queue *q);
/* Writer: report whether the queue is over half full. */
bool switch_queue_crowded(const struct switch_queue *q);

/* Reader: the time of the last switch_queue_done(). Before the first switch_queue_first(). */
uint64_t switch_queue_done_ns(const struct switch_queue *q);
/* Reader: the oldest note, borrowed; NULL: empty. */
const struct switch_note *switch_queue_first(const struct switch_queue *q);
/* Reader: remove the oldest note. */
void switch_queue_drop(struct switch_queue *q);
/* Reader: return and reset the number of notes that did not fit. */
uint64_t switch_queue_take_full(struct switch_queue *q);

#endif
