// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The slow paths of reading CFI: numbers of more than one byte, records.
 *
 * Any thread, pure. Invariant: nothing outside [pos, end) is read.
 */
#include "symbols/object/ehread.h"

#include <errno.h>

/* Read the groups of a LEB128; *@shift gets their bits, *@last the last byte. */
static uint64_t read_leb(struct ehread *r, unsigned int *shift, uint8_t *last)
{
	uint64_t v = 0;

	*shift = 0;
	do {
		if (r->bad || r->pos == r->end || *shift > 63) {
			r->bad = true;
			return 0;
		}
		*last = *r->pos++;
		v |= (uint64_t)(*last & 0x7f) << *shift;
		*shift += 7;
	} while (*last & 0x80);
	return v;
}

uint64_t ehread_long_uleb(struct ehread *r)
{
	unsigned int shift;
	uint8_t last = 0;
	uint64_t v = read_leb(r, &shift, &last);

	if (shift > 63 && last > 1)
		r->bad = true;
	return r->bad ? 0 : v;
}

int64_t ehread_long_sleb(struct ehread *r)
{
	unsigned int shift;
	uint8_t last = 0;
	uint64_t v = read_leb(r, &shift, &last);

	if (shift > 63 && last != 0 && last != 0x7f)
		r->bad = true;
	if (shift < 64 && (last & 0x40))
		v |= ~0ULL << shift;
	return r->bad ? 0 : (int64_t)v;
}

int ehread_open_record(const uint8_t *bytes, uint64_t all, uint64_t offset, struct ehread *out)
{
	struct ehread r = { bytes + offset, bytes + all, false };
	uint64_t size;
	bool wide;

	if (all - offset < 4)
		return -ENODATA;
	size = ehread_fixed(&r, 4);
	if (!size)
		return -ENODATA;
	wide = size == 0xffffffff;
	if (wide)
		size = ehread_fixed(&r, 8);
	out->bad = false;
	out->pos = ehread_block(&r, size);
	if (!out->pos)
		return -EBADMSG;
	out->end = r.pos;
	return wide ? -ENOTSUP : 0;
}
