/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Notices about samples: incomplete stacks, samples that are not counted, missing names.
 */
#ifndef SAMPLER_PROFILE_RULES_STACKS_H
#define SAMPLER_PROFILE_RULES_STACKS_H

#include "sampler/profile/notices.h"

void rules_stacks(struct notices *n, const struct profile *p);

#endif
