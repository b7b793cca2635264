/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fields of a line of text (kallsyms, maps, perf maps): blanks, words, hex numbers.
 *
 * Pure; reads nothing at or after @end.
 */
#ifndef SYMBOLS_BASE_FIELDS_H
#define SYMBOLS_BASE_FIELDS_H

#include "symbols/base/base.h"

/* Value of a hex digit plus one; 0: not a digit. */
extern const uint8_t fields_digits[256];

static inline int fields_digit(char c)
{
	return fields_digits[(uint8_t)c] - 1;
}

static inline bool fields_is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static inline const char *fields_skip_blanks(const char *p, const char *end)
{
	while (p < end && fields_is_blank(*p))
		p++;
	return p;
}

/* Read a hex number into *@out and return its end. NULL: no digit, or more than 64 bits. */
const char *fields_hex(const char *p, const char *end, uint64_t *out);

#endif
