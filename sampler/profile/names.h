/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The last step of a profile: name functions that are places, and copy every text that is borrowed
 * from the tables. Runs on: the builder.
 */
#ifndef SAMPLER_PROFILE_NAMES_H
#define SAMPLER_PROFILE_NAMES_H

#include "sampler/profile/assemble_input.h"
#include "sampler/profile/profile.h"

/* Copy all texts except of modules, so that @p outlives the tables. 0 or -ENOMEM. */
int names_copy(struct profile *p, const struct assemble_input *in);

#endif
