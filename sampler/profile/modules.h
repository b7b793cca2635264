/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The objects of a profile's functions, and the state of their names: source, state, reason, fix.
 * Runs on: the builder. Texts are copied into the profile's arena.
 */
#ifndef SAMPLER_PROFILE_MODULES_H
#define SAMPLER_PROFILE_MODULES_H

#include "sampler/profile/assemble_input.h"
#include "sampler/profile/profile.h"

/*
 * Fill p->modules and each function's module_index; functions are there, the
 * rest of @p does not matter. 0, or -ENOMEM: there are none.
 */
int modules_fill(struct profile *p, const struct assemble_input *in);

#endif
