/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Generations of stacks and cells: full is a normal state. When the stacks
 * have no more room, new tables take over, and what the history still shows
 * moves with it; everything else is forgotten. So a profiler that stays open
 * for days has a fixed cap of memory, and no stack is refused for long.
 *
 * Runs on: the builder, a registered and online urcu-qsbr thread.
 */
#ifndef SAMPLER_GENERATION_H
#define SAMPLER_GENERATION_H

#include "sampler/table.h"

struct sampler;

/* Empty tables of the usual sizes. 0 or -ENOMEM. */
int generation_new(struct stacks **stacks, struct cells **cells);
/*
 * Put new tables in place of the ones in use. Waits for a grace period. 0 or
 * -ENOMEM: the old ones stay, or the history had to be emptied.
 */
int generation_next(struct sampler *s);

#endif
