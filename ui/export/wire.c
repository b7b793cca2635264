// SPDX-License-Identifier: GPL-2.0-or-later
/* Fields of protobuf messages, and gzip. */
#include "ui/export/internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/ring/ring.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "symbols/code/code.h"

/*
 * Fields of protobuf messages.
 */

/* Types of fields. */
enum { WIRE_VARINT, WIRE_FIXED64, WIRE_BYTES };

void wire_varint(struct out *o, uint64_t v)
{
	uint8_t bytes[10];
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		bytes[n++] = (uint8_t)(v | 0x80);
	bytes[n++] = (uint8_t)v;
	out_bytes(o, bytes, n);
}

static void put_key(struct out *o, int field, unsigned int type)
{
	wire_varint(o, (uint64_t)field << 3 | type);
}

void wire_number(struct out *o, int field, uint64_t v)
{
	put_key(o, field, WIRE_VARINT);
	wire_varint(o, v);
}

void wire_fixed64(struct out *o, int field, uint64_t v)
{
	uint8_t bytes[8];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(v >> (8 * i));
	put_key(o, field, WIRE_FIXED64);
	out_bytes(o, bytes, sizeof(bytes));
}

void wire_bytes(struct out *o, int field, const void *bytes, size_t size)
{
	put_key(o, field, WIRE_BYTES);
	wire_varint(o, size);
	out_bytes(o, bytes, size);
}

void wire_message(struct out *o, int field, struct out *part)
{
	o->failed |= part->failed;
	wire_bytes(o, field, part->data, part->size);
	part->size = 0;
}

/*
 * gzip by zlib.
 */

int gzip_write(struct out *to, const struct out *from)
{
	z_stream z = { 0 };
	uint8_t piece[64 << 10];
	int code = deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + 16,
				MAX_MEM_LEVEL, Z_DEFAULT_STRATEGY);

	if (code != Z_OK)
		return -ENOMEM;
	z.next_in = (Bytef *)from->data;
	z.avail_in = (uInt)from->size;
	do {
		z.next_out = piece;
		z.avail_out = sizeof(piece);
		code = deflate(&z, Z_FINISH);
		out_bytes(to, piece, sizeof(piece) - z.avail_out);
		out_progress(to, from->size - z.avail_in, from->size);
	} while (code == Z_OK);
	deflateEnd(&z);
	return code == Z_STREAM_END && !to->failed ? 0 : -ENOMEM;
}
