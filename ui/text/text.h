/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Search and filter by a typed text: a substring (case-sensitive if it has a
 * capital letter), or a POSIX extended regex if it has metacharacters and
 * compiles. A leading '!' inverts the match. "python:" in front, or another
 * language, matches functions of that language only.
 *
 * Runs on: the main thread.
 */
#ifndef UI_TEXT_MATCH_H
#define UI_TEXT_MATCH_H

#include <regex.h>
#include <stdbool.h>

#include "sampler/profile/profile.h"
#include "sampler/profile/strip.h"

#define MATCH_MAX 128

struct match {
	char text[MATCH_MAX]; /* as typed; "" matches everything */
	const char *language; /* of functions; NULL: any */
	size_t begin;	      /* of the pattern, behind '!' and language */
	bool negate;
	bool ignore_case;
	bool is_regex;
	bool bad;      /* has metacharacters but is matched literally */
	regex_t regex; /* if is_regex */
};

void match_init(struct match *m);
void match_fini(struct match *m);
/* Set the text. */
void match_set(struct match *m, const char *text);
static inline bool match_active(const struct match *m)
{
	return m->text[m->negate] != '\0';
}
/* Return whether @t, which is not the name of a function, matches; this and the next two ignore
 * negate. */
bool match_finds(const struct match *m, struct safe_text t);
/* Return whether the name of @f matches. */
bool match_finds_name(const struct match *m, const struct profile_function *f);
/* Return whether name or module of @f match. */
bool match_finds_function(const struct match *m, const struct profile_function *f);
/* The same for the heat strip; any thread. */
extern const struct strip_matcher match_strip;

#endif
