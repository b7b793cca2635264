/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Cells of ids -> the self-contained middle of a profile: functions, modules,
 * processes, tasks, stacks, frames, cells, and copies of their names.
 *
 * Only what the cells name is in it, with indices of its own, in order of id;
 * the cells are in order of their stacks. A place that
 * has no symbol yet becomes a function of its own, "dso+0x…" (or the address
 * alone, where that says all), with ASSEMBLE_PLACE set in its id and kind '?'.
 * A cell without a stack (history.h), or with one that cannot be read, has a
 * stack of zero frames. A process shows as its main thread if that was
 * sampled, else as any of its threads.
 *
 * Where debug information tells, a place becomes several frames: the functions
 * that were inlined there, then the one that they are part of.
 *
 * Runs on: the builder, a registered urcu-qsbr thread; beside it, all others
 * go on adding to the tables.
 */
#ifndef SAMPLER_PROFILE_ASSEMBLE_H
#define SAMPLER_PROFILE_ASSEMBLE_H

#include "sampler/profile/assemble_input.h"
#include "sampler/profile/profile.h"

/*
 * Fill the part of @p named above; @p has nothing in it yet. 0, or -ENOMEM:
 * that part is empty.
 */
int assemble(struct profile *p, const struct assemble_input *in);

#endif
