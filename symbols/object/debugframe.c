// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * .debug_frame -> .eh_frame, record by record.
 *
 * Runs on: the loader. Invariant: the walk takes one step per record and each
 * has at least four bytes, so it ends; the output never outgrows its buffer.
 */
#include "symbols/object/debugframe.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/object/ehread.h"

/* A .debug_frame being translated. */
struct translation {
	const uint8_t *in;
	size_t in_size;
	uint8_t *out;
	size_t size, room;
	uint32_t cie_in, cie_out; /* the CIE translated last: offset in the input, in the output */
	bool cie_ok, full;
};

static void emit(struct translation *t, uint64_t v, unsigned int size)
{
	assert(t->size <= t->room);
	if (size > t->room - t->size) {
		t->full = true;
		return;
	}
	for (unsigned int i = 0; i < size; i++)
		t->out[t->size++] = (uint8_t)(v >> (8 * i));
}

/* Copy the rest of @r and complete the record at @start with its length. */
static void emit_rest(struct translation *t, struct ehread *r, size_t start)
{
	size_t size = (size_t)(r->end - r->pos);
	uint32_t length;

	if (t->full || size > t->room - t->size) {
		t->full = true;
		t->size = start;
		return;
	}
	memcpy(t->out + t->size, r->pos, size);
	t->size += size;
	length = (uint32_t)(t->size - start - 4);
	memcpy(t->out + start, &length, 4);
}

/* Write a CIE without augmentation, as version 1. */
static void translate_cie(struct translation *t, struct ehread *r, uint32_t offset)
{
	size_t start = t->size;
	uint8_t version = (uint8_t)ehread_fixed(r, 1), augmentation = (uint8_t)ehread_fixed(r, 1);
	bool bad = augmentation != 0 || (version != 1 && version != 3 && version != 4);
	uint64_t code_align, column;
	const uint8_t *data_align;
	size_t data_size;

	if (version == 4)
		bad |= ehread_fixed(r, 2) != 8; /* addresses of 8 bytes, no segments */
	code_align = ehread_uleb(r);
	data_align = r->pos;
	ehread_sleb(r);
	data_size = (size_t)(r->pos - data_align);
	column = version == 1 ? ehread_fixed(r, 1) : ehread_uleb(r);
	t->cie_in = offset;
	t->cie_out = (uint32_t)start;
	t->cie_ok = !bad && !r->bad && code_align < 128 && column < 128 && data_size <= 10;
	if (!t->cie_ok)
		return;
	emit(t, 0, 8);
	emit(t, 1, 2);
	emit(t, code_align, 1);
	for (size_t i = 0; i < data_size; i++)
		emit(t, data_align[i], 1);
	emit(t, column, 1);
	emit_rest(t, r, start);
}

/* Translate an FDE; its CIE again, unless it is the one translated last. */
static void translate_fde(struct translation *t, struct ehread *r, uint32_t cie)
{
	struct ehread c;
	size_t start;

	if (!t->cie_ok || t->cie_in != cie) {
		if (cie >= t->in_size || ehread_open_record(t->in, t->in_size, cie, &c) ||
		    ehread_fixed(&c, 4) != UINT32_MAX)
			return;
		translate_cie(t, &c, cie);
		if (!t->cie_ok)
			return;
	}
	start = t->size;
	emit(t, 0, 4);
	emit(t, start + 4 - t->cie_out, 4);
	emit_rest(t, r, start);
}

static void translate_all(struct translation *t)
{
	uint64_t offset = 0;
	struct ehread r;

	while (!t->full) {
		int rc = ehread_open_record(t->in, t->in_size, offset, &r);
		uint64_t next;
		uint32_t id;

		if (rc == -ENODATA || rc == -EBADMSG)
			return;
		next = (uint64_t)(r.end - t->in);
		id = rc ? UINT32_MAX : (uint32_t)ehread_fixed(&r, 4);
		if (!rc && !r.bad && id != UINT32_MAX)
			translate_fde(t, &r, id);
		offset = next;
	}
}

/* Return the end of the records of an .eh_frame. */
static size_t end_of_records(const uint8_t *bytes, size_t size)
{
	struct ehread r;
	uint64_t offset = 0;
	int rc;

	while (size && (rc = ehread_open_record(bytes, size, offset, &r)) != -ENODATA &&
	       rc != -EBADMSG)
		offset = (uint64_t)(r.end - bytes);
	return offset;
}

int debugframe_join(const uint8_t *eh, size_t eh_size, const uint8_t *debug, size_t debug_size,
		    uint8_t **out, size_t *out_size)
{
	struct translation t = { .in = debug, .in_size = debug_size };
	size_t kept = end_of_records(eh, eh_size);

	/*
	 * A CIE is repeated at most once per FDE; a section of many small FDEs
	 * shares CIEs.
	 */
	t.room = kept + 2 * debug_size + 4;
	t.out = malloc(t.room);
	if (!t.out)
		return -ENOMEM;
	if (kept)
		memcpy(t.out, eh, kept);
	t.size = kept;
	translate_all(&t);
	if (t.size == kept) {
		free(t.out);
		return -ENODATA;
	}
	t.full = false;
	emit(&t, 0, t.room - t.size < 4 ? 0 : 4);
	*out = t.out;
	*out_size = t.size;
	return 0;
}
