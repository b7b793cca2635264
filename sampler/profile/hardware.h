/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The branches and accesses to memory of a profile, from their counts. Runs on: the builder.
 */
#ifndef SAMPLER_PROFILE_HARDWARE_H
#define SAMPLER_PROFILE_HARDWARE_H

#include "sampler/profile/assemble_input.h"
#include "sampler/profile/profile.h"

/* Return the function of a place: index in functions; UINT32_MAX: out of memory. */
typedef uint32_t (*hardware_function_fn)(void *ctx, uint32_t place);

/* Fill in the branches and accesses. 0 or -ENOMEM. */
int hardware_fill(struct profile *p, const struct assemble_input *in, hardware_function_fn function,
		  void *ctx);

#endif
