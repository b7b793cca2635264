/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages about interpreters. Runs on: the builder.
 */
#ifndef SAMPLER_PROFILE_MESSAGES_LANGUAGES_H
#define SAMPLER_PROFILE_MESSAGES_LANGUAGES_H

#include "sampler/profile/messages.h"

void messages_languages(struct messages *n, const struct profile *p);

#endif
