// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Numbers in lines of text: there are a hundred thousand in the kernel's list
 * of symbols alone.
 */
#include "symbols/fields.h"

#include <string.h>

const uint8_t fields_digits[256] = {
	['0'] = 1, ['1'] = 2, ['2'] = 3, ['3'] = 4, ['4'] = 5, ['5'] = 6, ['6'] = 7, ['7'] = 8,
	['8'] = 9, ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
	['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
};

/*
 * Eight digits at once, as the kernel writes them (lower case). Each byte of
 * @text becomes the value of its digit; false unless all are digits.
 */
static bool eight_digits(uint64_t text, uint32_t *out)
{
	const uint64_t ones = 0x0101010101010101ULL;
	uint64_t letters = text >> 6 & ones;		/* bit 6 parts a-f from 0-9 */
	uint64_t digits = (text & 15 * ones) + 9 * letters;

	/* Letters are 10 to 15 and the others 0 to 9, and writing them down again gives the text. */
	if (digits & 0xf0 * ones || ((digits + 6 * ones) >> 4 & ones) != letters ||
	    digits + '0' * ones + ('a' - '0' - 10) * letters != text)
		return false;
	digits = __builtin_bswap64(digits);
	digits = (digits | digits >> 4) & 0x00ff00ff00ff00ffULL;
	digits = (digits | digits >> 8) & 0x0000ffff0000ffffULL;
	*out = (uint32_t)(digits | digits >> 16);
	return true;
}

const char *fields_hex(const char *p, const char *end, uint64_t *out)
{
	const char *first = p;
	uint64_t value = 0, text;
	uint32_t eight;
	int digit;

	for (; end - p >= 8 && p - first < 16; p += 8) {
		memcpy(&text, p, sizeof(text));
		if (!eight_digits(text, &eight))
			break;
		value = value << 32 | eight;
	}
	for (; p < end && (digit = fields_digit(*p)) >= 0; p++) {
		if (value >> 60)
			return NULL;
		value = value << 4 | (uint64_t)digit;
	}
	*out = value;
	return p == first ? NULL : p;
}
