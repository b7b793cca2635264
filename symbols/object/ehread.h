/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Read the bytes of .eh_frame and .debug_frame: numbers, blocks, records.
 *
 * Every read is checked; after the first failure all later reads return 0.
 * Pure; any thread. Functions that sampler threads call at each new place are
 * inline.
 */
#ifndef SYMBOLS_OBJECT_EHREAD_H
#define SYMBOLS_OBJECT_EHREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The bytes still to read. */
struct ehread {
	const uint8_t *pos, *end;
	bool bad;
};

/* Read @size bytes; NULL (bad): too few. */
static inline const uint8_t *ehread_block(struct ehread *r, uint64_t size)
{
	const uint8_t *p = r->pos;

	if (r->bad || size > (uint64_t)(r->end - r->pos)) {
		r->bad = true;
		return NULL;
	}
	r->pos += size;
	return p;
}

/* Read @size (1, 2, 4 or 8) bytes, zero-extended. */
static inline uint64_t ehread_fixed(struct ehread *r, unsigned int size)
{
	const uint8_t *p = ehread_block(r, size);
	uint64_t v = 0;

	if (p)
		memcpy(&v, p, size); /* all supported machines are little-endian */
	return v;
}

uint64_t ehread_long_uleb(struct ehread *r);
int64_t ehread_long_sleb(struct ehread *r);

/* Test for a LEB128 of one byte, as nearly all are. */
static inline bool ehread_is_short(const struct ehread *r)
{
	return !r->bad && r->pos < r->end && !(*r->pos & 0x80);
}

/* Read a ULEB128; more than 64 bits is bad. */
static inline uint64_t ehread_uleb(struct ehread *r)
{
	return ehread_is_short(r) ? *r->pos++ : ehread_long_uleb(r);
}

static inline int64_t ehread_sleb(struct ehread *r)
{
	return ehread_is_short(r) ? (int64_t)((uint64_t)*r->pos++ << 57) >> 57
				  : ehread_long_sleb(r);
}

/*
 * Open the record at @offset of a section of @all bytes: its payload, without the
 * length. -ENODATA at the terminator or the end; -EBADMSG when it leaves the
 * section; -ENOTSUP for 64-bit lengths (readers do not agree on the width of the CIE
 * pointer).
 */
int ehread_open_record(const uint8_t *bytes, uint64_t all, uint64_t offset, struct ehread *out);

#endif
