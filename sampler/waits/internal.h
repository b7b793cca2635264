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

/* Time spent in a state. */
struct task_span {
	enum task_state state; /* RUNNING, RUNNABLE or SLEEPING; else @ns is 0 */
	uint64_t ns;
};

#endif
