/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Notices about the kernel's side: samples lost and throttled, rings, limits, rates, CPUs.
 */
#ifndef SAMPLER_PROFILE_RULES_KERNEL_H
#define SAMPLER_PROFILE_RULES_KERNEL_H

#include "sampler/profile/notices.h"

void rules_kernel(struct notices *n, const struct profile *p);
/* Set the fix of @e to a lower rate, with @also behind it. */
void rules_kernel_fix_rate(struct notices *n, const struct profile *p, struct profile_notice *e,
			   const char *also);

#endif
