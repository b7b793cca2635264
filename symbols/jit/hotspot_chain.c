// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Lines and inlined methods of compiled Java code: PcDescs, scopes, line
 * tables (JDK source: pcDesc.hpp, debugInfoRec.cpp, compressedStream.hpp).
 *
 * Runs on: a helper. Every number is foreign.
 */
#include "symbols/jit/hotspot.h"
#include "symbols/base/search.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PCDESC_SIZE	16U
#define PCDESCS_MAX	(1U << 16)
#define SCOPE_BYTES	32U /* of one scope, as far as it is read: three numbers */
#define LINES_BYTES_MAX 65536U
#define LINES_STEP	256U
#define METADATA_MAX	65536U
#define NEW_UNSIGNED5	19 /* JDK: numbers leave out the byte 0 from then on */
#define HAS_LINES	1U /* ConstMethod::_flags */
#define ESCAPE		0xff

/* Bytes of a compressed stream in memory. */
struct stream {
	const uint8_t *bytes;
	size_t size, at;
	bool new_format;
};

/* Read one UNSIGNED5 number; beyond the end all bytes are 0. */
static uint32_t take_number(struct stream *s)
{
	uint32_t least = s->new_format ? 1 : 0, most = s->new_format ? 191 : 192, sum = 0;

	for (unsigned int i = 0; i < 5; i++) {
		uint32_t byte = s->at < s->size ? s->bytes[s->at] : 0;

		s->at++;
		sum += (byte - least) << (6 * i);
		if (byte < most + least)
			break;
	}
	return sum;
}

static int32_t take_signed(struct stream *s)
{
	uint32_t value = take_number(s);

	return (int32_t)(value >> 1) ^ -(int32_t)(value & 1);
}

/* Walk a compressed line table to @bci. The line, 0: not known. */
static uint32_t line_at(struct stream *s, int32_t bci)
{
	int32_t at = 0, line = 0, found = 0;

	while (s->at < s->size) {
		uint8_t byte = s->bytes[s->at++];

		if (!byte)
			break;
		if (byte == ESCAPE) {
			at += take_signed(s);
			line += take_signed(s);
		} else {
			at += byte >> 3;
			line += byte & 7;
		}
		if (at > bci)
			break;
		found = line;
	}
	return found > 0 ? (uint32_t)found : 0;
}

static bool is_new(const struct hotspot *h, struct remote *r)
{
	uint32_t major = 0;

	return h->vm.vm_major != UINT64_MAX && !remote_read_u32(r, h->vm.vm_major, &major) &&
	       major >= NEW_UNSIGNED5;
}

/* Read the line table behind the @size bytecodes at @code, and find @bci in it. */
static uint32_t find_line(const struct hotspot *h, struct remote *r, uint64_t code, uint32_t size,
			  int32_t bci)
{
	uint64_t constant = code - h->vm.const_method_size;
	struct stream s = { .new_format = is_new(h, r) };
	uint8_t *bytes = malloc(LINES_BYTES_MAX);
	uint32_t line = 0;
	uint16_t flags;

	if (bytes && h->vm.const_flags != UINT64_MAX &&
	    !remote_read_u16(r, constant + h->vm.const_flags, &flags) && flags & HAS_LINES) {
		/* Its length is not stored: up to the end of the readable memory. */
		while (s.size < LINES_BYTES_MAX && !memchr(bytes, 0, s.size) &&
		       !remote_read(r, code + size + s.size, bytes + s.size, LINES_STEP))
			s.size += LINES_STEP;
		s.bytes = bytes;
		line = line_at(&s, bci);
	}
	free(bytes);
	return line;
}

/* Name the method of @f, its file and line. */
static int name_frame(const struct hotspot *h, struct remote *r, struct hotspot_frame *f)
{
	const struct vmstructs *v = &h->vm;
	uint64_t code, pool, constant;
	uint32_t size;
	uint16_t index;
	int rc = hotspot_method(h, r, f->method, f->name, &code, &size);

	f->line = 0;
	f->file[0] = '\0';
	if (rc)
		return rc;
	if (f->bci >= 0 && (uint32_t)f->bci < size)
		f->line = find_line(h, r, code, size, f->bci);
	constant = code - v->const_method_size;
	if (v->source_file != UINT64_MAX && !remote_read_u64(r, constant + v->const_pool, &pool) &&
	    !remote_read_u16(r, pool + v->source_file, &index) && index)
		hotspot_constant(h, r, pool, index, f->file, sizeof(f->file));
	return 0;
}

static const struct hotspot_blob *find_blob(const struct hotspot *h, uint64_t pc)
{
	uint32_t low = search_split(h->nr_blobs, i, h->blobs[i].start <= pc);

	return low && pc < h->blobs[low - 1].end ? &h->blobs[low - 1] : NULL;
}

/* Part of an nmethod by the offsets in its head: the numbers at @from and @to. */
static int find_part(const struct hotspot_blob *b, struct remote *r, uint64_t from, uint64_t to,
		     uint64_t *start, uint64_t *size)
{
	uint32_t first, last;
	int rc = remote_read_u32(r, b->blob + from, &first);

	if (!rc)
		rc = remote_read_u32(r, b->blob + to, &last);
	if (rc)
		return rc;
	if (last < first || last > (64U << 20))
		return -EBADMSG;
	*start = b->blob + first;
	*size = last - first;
	return 0;
}

/*
 * The scope of the instruction at @pc: where its description begins. A PcDesc is at the end of the
 * instructions that it describes: a return address, one above @pc, has its own one; other
 * instructions belong to the next one, as in the JVM's own pc_desc_near(), or if that has no scope,
 * to the call before. 0: none.
 */
static int find_scope(const struct hotspot *h, const struct hotspot_blob *b, struct remote *r,
		      uint64_t pc, uint32_t *scope)
{
	uint64_t start, size;
	int rc = find_part(b, r, h->vm.scopes_pcs, h->vm.dependencies, &start, &size);
	int32_t offset = (int32_t)(pc - b->start);
	uint8_t *bytes;

	*scope = 0;
	if (rc)
		return rc;
	size = MIN(size, PCDESCS_MAX * PCDESC_SIZE);
	bytes = malloc(MAX(size, 1U));
	if (!bytes)
		return -ENOMEM;
	rc = remote_read(r, start, bytes, size);
	/* Sorted by pc; the first and the last one are sentinels. */
	for (uint64_t at = 0; !rc && at + PCDESC_SIZE <= size; at += PCDESC_SIZE) {
		int32_t number[2];

		memcpy(number, bytes + at, sizeof(number));
		if (number[0] >= offset && number[1] > 0)
			*scope = (uint32_t)number[1];
		if (number[0] > offset)
			break;
	}
	free(bytes);
	return rc;
}

static int read_method(const struct hotspot *h, const struct hotspot_blob *b, struct remote *r,
		       uint32_t index, uint64_t *method)
{
	uint32_t metadata;
	int rc = remote_read_u32(r, b->blob + h->vm.metadata, &metadata);

	if (rc)
		return rc;
	if (!index || index > METADATA_MAX)
		return -EBADMSG;
	return remote_read_u64(r, b->blob + metadata + 8ULL * (index - 1), method);
}

int hotspot_chain(const struct hotspot *h, struct remote *r, uint64_t pc,
		  struct hotspot_frame frames[static HOTSPOT_FRAMES_MAX])
{
	const struct vmstructs *v = &h->vm;
	const struct hotspot_blob *b = find_blob(h, pc);
	uint64_t scopes;
	uint32_t scope, nr = 0;
	int rc;

	if (!b || b->kind != HOTSPOT_COMPILED || v->scopes_data == UINT64_MAX ||
	    v->scopes_pcs == UINT64_MAX || v->dependencies == UINT64_MAX ||
	    v->metadata == UINT64_MAX)
		return 0;
	rc = remote_read_u64(r, b->blob + v->scopes_data, &scopes);
	if (!rc)
		rc = find_scope(h, b, r, pc, &scope);
	while (!rc && scope && nr < HOTSPOT_FRAMES_MAX) {
		uint8_t bytes[SCOPE_BYTES];
		struct stream s = { .bytes = bytes,
				    .size = sizeof(bytes),
				    .new_format = is_new(h, r) };
		uint32_t sender, index;

		rc = remote_read(r, scopes + scope, bytes, sizeof(bytes));
		if (rc)
			break;
		sender = take_number(&s);
		index = take_number(&s);
		frames[nr].bci = (int32_t)take_number(&s) - 1;
		rc = read_method(h, b, r, index, &frames[nr].method);
		if (!rc)
			rc = name_frame(h, r, &frames[nr]);
		if (rc)
			break;
		nr++;
		/* Callers are described before: this ends. */
		scope = sender < scope ? sender : 0;
	}
	/* The last one must be the method itself, or the chain is of something else. */
	if (rc || !nr || frames[nr - 1].method != b->method)
		return rc;
	return hotspot_is_current(h, r, b) ? (int)nr : 0;
}
