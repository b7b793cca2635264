/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * User stacks of tasks that sleep while the kernel samples no switch of theirs: they slept before
 * the start, or the user may not sample the kernel.
 *
 * Threads: the builder; tasks are read on a helper thread, which may hang.
 */
#ifndef SAMPLER_SLEEPERS_H
#define SAMPLER_SLEEPERS_H

#include <stdbool.h>

struct sampler;
struct sleepers;

/*
 * Count the stacks that were read since the last call, and have more read: of tasks that slept
 * before the start, or of @all that sleep. False: there are no more, or a read hangs.
 */
bool sleepers_look(struct sampler *s, bool all);
/* NULL is allowed. */
void sleepers_free(struct sleepers *l);

#endif
