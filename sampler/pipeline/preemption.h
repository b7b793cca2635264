/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Proof that a thread without real-time priority has preempted the CPU's task at its wake-up: the
 * scheduler's own account of how long the thread waited for its CPU, and how often it got it.
 *
 * One thread, about itself.
 */
#ifndef SAMPLER_PIPELINE_PREEMPTION_H
#define SAMPLER_PIPELINE_PREEMPTION_H

#include <stdbool.h>
#include <stdint.h>

struct preemption {
	int fd; /* -1: closed */
	uint64_t waited_ns, nr;
};

/* Open the calling thread's account. Where there is none, nothing is ever instant. */
void preemption_open(struct preemption *p);
void preemption_close(struct preemption *p);
/*
 * Since the last call: was the thread switched in once, without a wait? Then no other task has run
 * on its CPU between its wake-up and now.
 */
bool preemption_was_instant(struct preemption *p);

#endif
