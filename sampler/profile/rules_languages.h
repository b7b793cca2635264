/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Notices about interpreters. Runs on: the builder.
 */
#ifndef SAMPLER_PROFILE_RULES_LANGUAGES_H
#define SAMPLER_PROFILE_RULES_LANGUAGES_H

#include "sampler/profile/notices.h"

void rules_languages(struct notices *n, const struct profile *p);

#endif
