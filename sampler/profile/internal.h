/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of sampler/profile/, and by tests; no other room includes it. */
#ifndef SAMPLER_PROFILE_INTERNAL_H
#define SAMPLER_PROFILE_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbols/base/base.h"

struct assemble_input;
struct profile;
struct strip_query;

/* Set in the id of a process that is in the profile as an ancestor only; the rest is its pid. */
#define PROFILE_ANCESTOR  (1u << 31)
#define PROFILE_NO_MODULE UINT32_MAX

/* Return whether the same samples are in both. */
bool strip_same_samples(const struct strip_query *a, const struct strip_query *b);

/*
 * The branches and accesses to memory of a profile, from their counts. Runs on: the builder.
 */

/* Return the function of a place: index in functions; UINT32_MAX: out of memory. */
typedef uint32_t (*hardware_function_fn)(void *ctx, uint32_t place);

/* Fill in the branches and accesses. 0 or -ENOMEM. */
int hardware_fill(struct profile *p, const struct assemble_input *in, hardware_function_fn function,
		  void *ctx);

/*
 * More about the processes of a profile: command lines, cgroups, and ancestors. Runs on: the
 * builder.
 */

#endif
