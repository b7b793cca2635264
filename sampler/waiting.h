/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The waits of a live session: begun and ended with their event, counted at the end of each tick.
 *
 * Threads: set-up, then the builder.
 */
#ifndef SAMPLER_WAITING_H
#define SAMPLER_WAITING_H

#include <stdint.h>

struct sampler;
struct profile;

/* After the events were enabled, or replaced: measure waits from now on, or no longer. */
void waiting_begin(struct sampler *s);
/* At the end of the builder. */
void waiting_end(struct sampler *s);
/* At the end of a tick, before its counts are taken: add the waits up to @now_ns. */
void waiting_count(struct sampler *s, uint64_t now_ns);
/* In a long tick: add the waits so far. */
void waiting_count_some(struct sampler *s, uint64_t now_ns);
/* Return the time before which all waits are counted; UINT64_MAX: none are measured. */
uint64_t waiting_counted_ns(const struct sampler *s);
/* The same where the counts are thrown away: those of before @begin_ns. */
void waiting_discard(struct sampler *s, uint64_t begin_ns);
/* After a tick, or when there are too many switches: take the stacks of all, or of some. */
void waiting_govern(struct sampler *s);
/*
 * Return when waiting_look() is due; UINT64_MAX: never. It opens or closes a window, and where no
 * stacks can be taken, looks at the kinds of waits in /proc.
 */
uint64_t waiting_due(const struct sampler *s);
void waiting_look(struct sampler *s, uint64_t now_ns);
/* While the queues fill up during a tick: empty them. */
void waiting_make_room(struct sampler *s);

#endif
