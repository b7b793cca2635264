/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages about interpreters. Runs on: the builder.
 */
#ifndef SAMPLER_PROFILE_MESSAGES_LANGUAGES_H
#define SAMPLER_PROFILE_MESSAGES_LANGUAGES_H

#include "sampler/profile/messages.h"

void messages_languages(struct messages *n, const struct profile *p);
/*
 * Set the sentence and the fix of @e, about stacks of which most have guessed functions of scripts:
 * @text, the language, and what is in doubt.
 */
void messages_explain_guess(struct messages *n, const struct profile *p, struct profile_message *e,
			    const char *text);

#endif
