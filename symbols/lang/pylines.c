// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Line tables, one pass each. See Objects/lnotab_notes.txt of CPython 3.8 and
 * 3.10, Objects/locations.md of 3.11.
 *
 * Runs on: the loader.
 */
#include "symbols/lang/pylines.h"

#include <stdbool.h>

/* 3.8, 3.9: pairs of (bytes of code, lines), lines signed. */
static uint32_t line_of_lnotab(const uint8_t *t, size_t size, int64_t line, uint32_t instr)
{
	uint64_t at = 0;

	for (size_t i = 0; i + 1 < size; i += 2) {
		at += t[i];
		if (at > instr)
			break;
		line += (int8_t)t[i + 1];
	}
	return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

/* 3.10: pairs of (bytes of code, lines); -128: no line. */
static uint32_t line_of_ranges(const uint8_t *t, size_t size, int64_t line, uint32_t instr)
{
	uint64_t at = 0;

	for (size_t i = 0; i + 1 < size; i += 2) {
		int8_t delta = (int8_t)t[i + 1];

		if (delta != -128)
			line += delta;
		at += t[i];
		if (instr < at)
			return delta != -128 && line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
	}
	return 0;
}

struct cursor {
	const uint8_t *at, *end;
};

static uint64_t varint(struct cursor *c)
{
	uint64_t value = 0;

	for (int shift = 0; c->at < c->end; shift += 6) {
		uint8_t byte = *c->at++;

		if (shift < 36)
			value |= (uint64_t)(byte & 63) << shift;
		if (!(byte & 64))
			break;
	}
	return value;
}

static int64_t svarint(struct cursor *c)
{
	uint64_t value = varint(c);

	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

/* 3.11 on: entries of 1 to 8 code units, each begins with a byte that has bit 7. */
static uint32_t line_of_locations(const uint8_t *t, size_t size, int64_t line, uint32_t instr)
{
	struct cursor c = { t, t + size };
	uint64_t at = 0;

	while (c.at < c.end) {
		uint8_t head = *c.at++, code = head >> 3 & 15;
		bool none = code == 15;

		at += 2 * ((uint64_t)(head & 7) + 1);
		if (code == 13 || code == 14)
			line += svarint(&c);
		else if (code >= 10 && code <= 12)
			line += code - 10;
		if (instr < at)
			return !none && line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
		/* The rest are columns. */
		while (c.at < c.end && !(*c.at & 128))
			c.at++;
	}
	return 0;
}

uint32_t pyline_of(uint8_t minor, const uint8_t *table, size_t size, uint32_t first_line,
		   uint32_t instr)
{
	if (!size)
		return 0;
	if (minor < 10)
		return line_of_lnotab(table, size, first_line, instr);
	return minor == 10 ? line_of_ranges(table, size, first_line, instr)
			   : line_of_locations(table, size, first_line, instr);
}
