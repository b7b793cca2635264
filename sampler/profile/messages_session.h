/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rules that make messages of a profile. Runs on: the builder.
 */
#ifndef SAMPLER_PROFILE_MESSAGES_SESSION_H
#define SAMPLER_PROFILE_MESSAGES_SESSION_H

#include "sampler/profile/messages.h"

/* Apply all rules to @p, and give it a copy of all messages. @now_ns: since the session's start. */
void messages_apply(struct messages *n, struct profile *p, uint64_t now_ns, uint64_t window_ns);

#endif
