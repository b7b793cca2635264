/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages about the kernel's side: samples lost and throttled, rings, limits, rates, CPUs.
 *
 * Runs on: the builder.
 */
#ifndef SAMPLER_PROFILE_MESSAGES_KERNEL_H
#define SAMPLER_PROFILE_MESSAGES_KERNEL_H

#include "sampler/profile/messages.h"

void messages_kernel(struct messages *n, const struct profile *p);
/* Set the fix of @e to a lower rate, with @also behind it. */
void messages_kernel_fix_rate(struct messages *n, const struct profile *p,
			      struct profile_message *e, const char *also);

#endif
