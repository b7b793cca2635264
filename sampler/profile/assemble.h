/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counts by id -> functions, modules, processes, tasks, stacks, frames and counts of a profile,
 * with copies of their names. A profile has only entries that its counts refer to, with indices in
 * order of id; counts are in order of their stacks. A place without a symbol becomes a function
 * "dso+0x…" (or the address alone), with ASSEMBLE_PLACE set in its id and kind '?'. A count without
 * a stack (history.h), or with an unreadable one, has a stack of zero frames. A process has the
 * name of its main thread if that was sampled, else of any of its threads. With debug information a
 * place becomes several frames: the functions inlined there, then the outer one. Runs on: the
 * builder, a registered urcu-qsbr thread; all others go on adding to the tables.
 */
#ifndef SAMPLER_PROFILE_ASSEMBLE_H
#define SAMPLER_PROFILE_ASSEMBLE_H

#include "sampler/profile/assemble_input.h"
#include "sampler/profile/profile.h"

/* Fill this part of @p, which is empty. 0, or -ENOMEM: it is still empty. */
int assemble(struct profile *p, const struct assemble_input *in);

#endif
