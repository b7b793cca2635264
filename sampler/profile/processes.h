/* SPDX-License-Identifier: GPL-2.0-or-later */
/* More about the processes of a profile: command lines, cgroups, and ancestors. Runs on: the
 * builder. */
#ifndef SAMPLER_PROFILE_PROCESSES_H
#define SAMPLER_PROFILE_PROCESSES_H

#include "sampler/profile/assemble_input.h"
#include "sampler/profile/profile.h"

/* After the modules: texts go into the profile's arena. 0 or -ENOMEM. */
int processes_fill(struct profile *p, const struct assemble_input *in);

#endif
