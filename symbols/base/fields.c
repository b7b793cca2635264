// SPDX-License-Identifier: GPL-2.0-or-later
/* Numbers in lines of text. Pure. */
#include "symbols/base/fields.h"

const uint8_t fields_digits[256] = {
	['0'] = 1,  ['1'] = 2,	['2'] = 3,  ['3'] = 4,	['4'] = 5,  ['5'] = 6,
	['6'] = 7,  ['7'] = 8,	['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12,
	['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16, ['A'] = 11, ['B'] = 12,
	['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
};

const char *fields_hex(const char *p, const char *end, uint64_t *out)
{
	const char *first = p;
	uint64_t value = 0;
	uint8_t digit;

	for (; p < end && (digit = fields_digits[(uint8_t)*p]); p++)
		value = value << 4 | (digit - 1U);
	*out = value;
	if (p == first)
		return NULL;
	while (first < p && *first == '0')
		first++;
	return p - first > 16 ? NULL : p;
}
