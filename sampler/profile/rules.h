/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rules that make notices of a profile. Runs on: the builder.
 */
#ifndef SAMPLER_PROFILE_RULES_H
#define SAMPLER_PROFILE_RULES_H

#include "sampler/profile/notices.h"

/* Apply all rules to @p, and give it a copy of all notices. @now_ns: since the session's start. */
void rules_apply(struct notices *n, struct profile *p, uint64_t now_ns, uint64_t window_ns);

#endif
