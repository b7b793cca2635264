// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fields of protobuf messages.
 */
#include "ui/export/wire.h"

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
