/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of sampler/waits/, and by tests; no other room includes it. */
#ifndef SAMPLER_WAITS_INTERNAL_H
#define SAMPLER_WAITS_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "sampler/count/count.h"
#include "sampler/profile/profile.h"
#include "sampler/waits/waits.h"
#include "symbols/name/name.h"
#include "symbols/process/process.h"

struct switch_note;
struct switch_queue;
struct task_time;
struct waits;

/*
 * Switches on their way from the sampler thread of one CPU to the builder, in order of time.
 *
 * Lock-free, bounded; one writer, one reader. A note that does not fit is counted, not waited for.
 */

/* Make a queue of @nr notes (a power of two). NULL: out of memory. */
struct switch_queue *switch_queue_new(uint32_t nr);
void switch_queue_free(struct switch_queue *q);
/* Any thread: return the number of notes that were appended, modulo 2^32. */
uint32_t switch_queue_nr(const struct switch_queue *q);
/* Reader: the time of the last switch_queue_done(). Before the first switch_queue_first(). */
uint64_t switch_queue_done_ns(const struct switch_queue *q);
/* Reader: the oldest note, borrowed; NULL: empty. */
const struct switch_note *switch_queue_first(const struct switch_queue *q);
/* Reader: remove the oldest note. */
void switch_queue_drop(struct switch_queue *q);
/* Reader: return and reset the number of notes that did not fit. */
uint64_t switch_queue_take_full(struct switch_queue *q);

/* Time spent in a state. */
struct task_span {
	enum task_state state; /* RUNNING, RUNNABLE or SLEEPING; else @ns is 0 */
	uint64_t ns;
};

/* Take a step; return the state that ends and how long it lasted since the last call. */
struct task_span task_time_step(struct task_time *t, enum task_step step, uint64_t time_ns);
/* Return the current state and its time up to @now_ns, which counts as returned. */
struct task_span task_time_until(struct task_time *t, uint64_t now_ns);
/* Let all time before @begin_ns count as returned. The next step may be before it. */
void task_time_begin(struct task_time *t, uint64_t begin_ns);

bool waits_estimated(const struct waits *w);

#endif
