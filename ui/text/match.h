/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a person typed to search or filter by: a substring (case counts once
 * it has a capital), or a POSIX extended regex once it has metacharacters and
 * compiles. A leading '!' turns it round.
 */
#ifndef UI_TEXT_MATCH_H
#define UI_TEXT_MATCH_H

#include <regex.h>
#include <stdbool.h>

#include "symbols/base/text.h"

#define MATCH_MAX 128

struct match {
	char text[MATCH_MAX]; /* as typed; "" matches everything */
	bool negate;
	bool ignore_case;
	bool is_regex;
	bool bad;      /* has metacharacters but is taken literally */
	regex_t regex; /* if is_regex */
};

void match_init(struct match *m);
void match_fini(struct match *m);
/* Take new text; what it was before is gone. */
void match_set(struct match *m, const char *text);
static inline bool match_active(const struct match *m)
{
	return m->text[m->negate] != '\0';
}
/* Is it found in @t? Does not look at negate. */
bool match_finds(const struct match *m, struct safe_text t);

#endif
