/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fields of a line of text: blanks, words, hex numbers. The texts are the
 * kernel's and those of whoever writes a perf map.
 *
 * Pure; nothing at or behind @end is read.
 */
#ifndef SYMBOLS_BASE_FIELDS_H
#define SYMBOLS_BASE_FIELDS_H

#include "symbols/base/base.h"

/* The value of a hex digit, plus one; 0: it is none. */
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

/* Where the word at @p ends. */
static inline const char *fields_skip_word(const char *p, const char *end)
{
	while (p < end && !fields_is_blank(*p))
		p++;
	return p;
}

/*
 * Eight digits at once, as the kernel writes them (lower case). Each byte of
 * @text becomes the value of its digit; false unless all are digits.
 */
static inline bool fields_eight_digits(uint64_t text, uint32_t *out)
{
	const uint64_t ones = 0x0101010101010101ULL;
	uint64_t letters = text >> 6 & ones; /* bit 6 parts a-f from 0-9 */
	uint64_t digits = text - '0' * ones - ('a' - '0' - 10) * letters;

	/* Letters are 10 to 15 and the others 0 to 9. What borrows from the next byte is neither.
	 */
	if ((digits | (digits + 6 * ones - 16 * letters)) & 0xf0 * ones)
		return false;
	digits = __builtin_bswap64(digits);
	digits = (digits | digits >> 4) & 0x00ff00ff00ff00ffULL;
	digits = (digits | digits >> 8) & 0x0000ffff0000ffffULL;
	*out = (uint32_t)(digits | digits >> 16);
	return true;
}

/* Read hex digits; returns what follows them, or NULL: no digit, or more than 64 bits. */
const char *fields_hex(const char *p, const char *end, uint64_t *out);

#endif
