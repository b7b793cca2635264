/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages about samples: truncated and broken stacks, samples that are not counted, missing names.
 *
 * Runs on: the builder.
 */
#ifndef SAMPLER_PROFILE_MESSAGES_STACKS_H
#define SAMPLER_PROFILE_MESSAGES_STACKS_H

#include "sampler/profile/messages.h"

void messages_stacks(struct messages *n, const struct profile *p);

#endif
