/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading the bytes of .eh_frame and .debug_frame: numbers, blocks, records.
 *
 * Every read is checked, and the first that fails makes all later ones 0.
 * Pure; any thread. What sampler threads do at the first sight of each place
 * is inline.
 */
#ifndef SYMBOLS_OBJECT_EHREAD_H
#define SYMBOLS_OBJECT_EHREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Bytes still to read. */
struct eh_reader {
	const uint8_t *pos, *end;
	bool bad;
};

/* @size bytes, or NULL (bad). */
static inline const uint8_t *eh_read_block(struct eh_reader *r, uint64_t size)
{
	const uint8_t *p = r->pos;

	if (r->bad || size > (uint64_t)(r->end - r->pos)) {
		r->bad = true;
		return NULL;
	}
	r->pos += size;
	return p;
}

/* @size: 1, 2, 4 or 8; zero-extended. */
static inline uint64_t eh_read_fixed(struct eh_reader *r, unsigned int size)
{
	const uint8_t *p = eh_read_block(r, size);
	uint64_t v = 0;

	if (p)
		memcpy(&v, p, size); /* the machines we know are little-endian */
	return v;
}

uint64_t eh_read_long_uleb(struct eh_reader *r);
int64_t eh_read_long_sleb(struct eh_reader *r);

/* Of one byte, as nearly all are? */
static inline bool eh_is_short(const struct eh_reader *r)
{
	return !r->bad && r->pos < r->end && !(*r->pos & 0x80);
}

/* More than 64 bits is bad. */
static inline uint64_t eh_read_uleb(struct eh_reader *r)
{
	return eh_is_short(r) ? *r->pos++ : eh_read_long_uleb(r);
}

static inline int64_t eh_read_sleb(struct eh_reader *r)
{
	return eh_is_short(r) ? (int64_t)((uint64_t)*r->pos++ << 57) >> 57 : eh_read_long_sleb(r);
}

/*
 * Open the record at @offset of a section of @all bytes: its payload, without
 * the length. -ENODATA at the terminator or the end; -EBADMSG when it leaves
 * the section; -ENOTSUP for 64-bit lengths (readers do not agree on the width
 * of their CIE pointer).
 */
int eh_open_record(const uint8_t *bytes, uint64_t all, uint64_t offset, struct eh_reader *out);

#endif
