/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The wire format of protobuf: https://protobuf.dev/programming-guides/encoding. Pure; any thread.
 */
#ifndef UI_EXPORT_WIRE_H
#define UI_EXPORT_WIRE_H

#include "ui/export/out.h"

/* Add a bare number: an element of a packed field. */
void wire_varint(struct out *o, uint64_t v);
/* Add a field of an integer, also if it is 0. */
void wire_number(struct out *o, int field, uint64_t v);
void wire_fixed64(struct out *o, int field, uint64_t v);
/* Add a field of a string, bytes or packed numbers. */
void wire_bytes(struct out *o, int field, const void *bytes, size_t size);
/* Add @part as a submessage, and empty it. */
void wire_message(struct out *o, int field, struct out *part);

#endif
