/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Kinds and user stacks of tasks that sleep while the kernel samples no switch of theirs: they
 * slept before the start, or the user may not sample the kernel.
 *
 * Threads: the builder; tasks are read on a helper thread, which may hang.
 */
#ifndef SAMPLER_SLEEPERS_H
#define SAMPLER_SLEEPERS_H

#include <stdbool.h>
#include <sys/types.h>

struct sampler;
struct sleepers;

/*
 * Count the waits that were read since the last call, and have more read: of tasks whose kind is
 * wanted (waits_wants_kinds()), then of tasks that slept before the start, or of @all that sleep.
 * @stacks: kinds of waits with stacks of a few tasks, else
 * the kinds alone, of many. A process that hangs its reader is left out until that read ends.
 * False: there are no more.
 */
bool sleepers_look(struct sampler *s, bool all, bool stacks);
/* Report whether processes are left out. */
bool sleepers_barred(const struct sleepers *l);
/* Return one of too many processes that hang their reader; 0: few enough, stacks are read. */
pid_t sleepers_hung(const struct sleepers *l);
/* NULL is allowed. */
void sleepers_free(struct sleepers *l);

#endif
