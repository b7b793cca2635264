/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The hot loop: one thread per CPU moves that CPU's samples from the ring to the tables. No lock,
 * malloc, file or string per sample. Threads: start and stop by the owner; stats by the builder.
 */
#ifndef SAMPLER_PIPELINE_SAMPLER_THREAD_H
#define SAMPLER_PIPELINE_SAMPLER_THREAD_H

#include "sampler/pipeline/sampler_thread_types.h"

struct sampler_thread;

/* Builder: have the ring read now, not at the watermark. */
void sampler_thread_kick(struct sampler_thread *t);
int sampler_thread_start(struct sampler_thread **out, struct sampler_thread_shared *shared,
			 uint32_t cpu_index, struct err *e);
/* Handle the rest of the ring, end and join; the stats are kept. Caller: offline for urcu-qsbr. */
void sampler_thread_finish(struct sampler_thread *t);
/* Finish and free. */
void sampler_thread_stop(struct sampler_thread *t);

/* Take and clear the set of @epoch, after the epoch was flipped and a grace period. */
void sampler_thread_take_stats(struct sampler_thread *t, unsigned int epoch,
			       struct sampler_thread_stats *out);
struct langreader;
/*
 * Builder: from the next batch on use the frames of @reader (NULL: none); with one, the thread
 * checks the ring periodically and when its eventfd is written to.
 */
void sampler_thread_set_reader(struct sampler_thread *t, struct langreader *reader);
/* Builder: end the use of its reader. Waits for a grace period. */
void sampler_thread_drop_reader(struct sampler_thread *t);
struct langreader *sampler_thread_reader(const struct sampler_thread *t);
/* Builder: a process was barred; its reader gets to know it. */
void sampler_thread_note_barred(struct sampler_thread *t);
/* Builder: test and clear the wish for a reader. */
bool sampler_thread_take_wish(struct sampler_thread *t);
int sampler_thread_kick_fd(const struct sampler_thread *t);
/* Get the statistics of its unwinder since the start. */
void sampler_thread_unwind_stats(const struct sampler_thread *t, struct unwind_stats *out);
/* Return a time: all samples of the CPU before it are counted, but the held ones. */
uint64_t sampler_thread_done_ns(const struct sampler_thread *t);
/* Return the time since which the CPU's event is throttled; 0: it is not. */
uint64_t sampler_thread_throttled_since(const struct sampler_thread *t);
/* Return the CPU time of the thread, also after its end. */
uint64_t sampler_thread_cpu_ns(const struct sampler_thread *t);
/* Return how full the data ring was at most, 0..1, since the last call. */
double sampler_thread_take_ring_high(struct sampler_thread *t);

#endif
