// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Lines and inlined methods of compiled Java code: PcDescs, scopes, line
 * tables (JDK source: pcDesc.hpp, debugInfoRec.cpp, compressedStream.hpp).
 *
 * Runs on: a helper. Every number is foreign.
 */
#include "symbols/jit/hotspot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/array.h"

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

/* A walk along a compressed line table: pairs of an instruction and its line, as differences. */
struct line_walk {
	struct stream s;
	int64_t bci, line; /* sums of foreign numbers */
	int64_t found;	   /* line of the last pair up to the instruction */
};

/* Walk to @bci. True: that is the line; false: the table goes on behind the bytes. */
static bool walk_lines(struct line_walk *w, int32_t bci)
{
	while (w->s.at < w->s.size) {
		struct line_walk next = *w;
		uint8_t byte = next.s.bytes[next.s.at++];

		if (!byte)
			return true;
		if (byte == ESCAPE) {
			next.bci += take_signed(&next.s);
			next.line += take_signed(&next.s);
		} else {
			next.bci += byte >> 3;
			next.line += byte & 7;
		}
		if (next.s.at > next.s.size)
			return false;
		if (next.bci > bci)
			return true;
		next.found = next.line;
		*w = next;
	}
	return false;
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
	struct line_walk w = { .s.new_format = is_new(h, r) };
	uint8_t *bytes = NULL;
	uint32_t room = 0;
	bool end = false;
	uint16_t flags;

	if (h->vm.const_flags != UINT64_MAX &&
	    !remote_read_u16(r, constant + h->vm.const_flags, &flags) && flags & HAS_LINES) {
		/* Its length is not stored; the byte 0 at its end may be in a number as well. */
		while (!end && w.s.size < LINES_BYTES_MAX &&
		       array_reserve(&bytes, &room, w.s.size + LINES_STEP) &&
		       !remote_read(r, code + size + w.s.size, bytes + w.s.size, LINES_STEP)) {
			w.s.bytes = bytes;
			w.s.size += LINES_STEP;
			end = walk_lines(&w, bci);
		}
	}
	free(bytes);
	return end && w.found > 0 ? (uint32_t)w.found : 0;
}

/* Read the name of the source file of the method with the bytecodes at @code. */
static void find_file(const struct hotspot *h, struct remote *r, uint64_t code,
		      struct hotspot_frame *f)
{
	const struct vmstructs *v = &h->vm;
	uint64_t pool;
	uint16_t index;

	if (v->source_file != UINT64_MAX &&
	    !remote_read_u64(r, code - v->const_method_size + v->const_pool, &pool) &&
	    !remote_read_u16(r, pool + v->source_file, &index) && index)
		hotspot_constant(h, r, pool, index, f->file, sizeof(f->file));
}

/* Name the method of @f, its file and line. */
static int name_frame(const struct hotspot *h, struct remote *r, struct hotspot_frame *f)
{
	bool missed = false;
	uint64_t code;
	uint32_t size;
	int rc = hotspot_method(h, r, f->method, f->name, &code, &size);

	f->line = 0;
	f->file[0] = '\0';
	if (rc)
		return rc;
	if (f->bci >= 0 && (uint32_t)f->bci < size)
		f->line = find_line(h, r, code, size, f->bci);
	remote_begin_part(r, &missed);
	find_file(h, r, code, f);
	remote_end_parts(r, missed);
	return 0;
}

/* Name the methods of all frames. */
static int name_frames(const struct hotspot *h, struct remote *r, struct hotspot_frame *frames,
		       uint32_t nr)
{
	bool missed = false;
	int rc = 0;

	for (uint32_t i = 0; i < nr && (!rc || missed); i++) {
		rc = name_frame(h, r, &frames[i]);
		remote_begin_part(r, &missed);
	}
	remote_end_parts(r, missed);
	return rc;
}

/* Addresses of the descriptions of compiled code. */
struct scopes {
	uint64_t pcs, pcs_size; /* PcDescs */
	uint64_t data;		/* what they describe */
	uint64_t metadata;	/* pointers to the methods */
};

/* Read the offsets of the PcDescs from @at and @end on. */
static int find_pcs(struct remote *r, uint64_t base, uint64_t at, uint64_t end, struct scopes *s)
{
	uint32_t first, last;
	int rc = remote_read_u32(r, at, &first);

	if (!rc)
		rc = remote_read_u32(r, end, &last);
	if (rc)
		return rc;
	if (last < first || last > (64U << 20))
		return -EBADMSG;
	s->pcs = base + first;
	s->pcs_size = MIN(last - first, PCDESCS_MAX * PCDESC_SIZE);
	return 0;
}

/* JDK 11 to 22: in the nmethod. From JDK 23 on: in memory to which it points. */
static int find_scopes_data(const struct vmstructs *v, const struct hotspot_blob *b,
			    struct remote *r, struct scopes *s)
{
	uint64_t base;
	uint32_t offset;
	int rc;

	if (v->scopes_data != UINT64_MAX) {
		rc = remote_read_u64(r, b->blob + v->scopes_data, &s->data);
		return rc ? rc
			  : find_pcs(r, b->blob, b->blob + v->scopes_pcs, b->blob + v->dependencies,
				     s);
	}
	rc = remote_read_u64(r, b->blob + v->immutable_data, &base);
	if (!rc)
		rc = remote_read_u32(r, b->blob + v->scopes_data_offset, &offset);
	if (rc)
		return rc;
	s->data = base + offset;
	return find_pcs(r, base, b->blob + v->scopes_pcs, b->blob + v->scopes_data_offset, s);
}

/*
 * To JDK 22: in the nmethod. JDK 23, 24: in its data. From JDK 25 on: in memory to which it points,
 * behind the relocations.
 */
static int find_metadata(const struct vmstructs *v, const struct hotspot_blob *b, struct remote *r,
			 struct scopes *s)
{
	uint32_t offset, data = 0;
	uint16_t narrow;
	int rc;

	if (v->mutable_data != UINT64_MAX) {
		rc = remote_read_u64(r, b->blob + v->mutable_data, &s->metadata);
		if (!rc)
			rc = remote_read_u32(r, b->blob + v->relocation_size, &offset);
		s->metadata += rc ? 0 : offset;
		return rc;
	}
	if (v->metadata_size == 4) {
		rc = remote_read_u32(r, b->blob + v->metadata, &offset);
	} else {
		rc = remote_read_u16(r, b->blob + v->metadata, &narrow);
		offset = narrow;
		if (!rc)
			rc = remote_read_u32(r, b->blob + v->data_offset, &data);
	}
	s->metadata = rc ? 0 : b->blob + data + offset;
	return rc;
}

/* Return whether the JVM has all symbols of one way to find the descriptions. */
static bool has_scopes(const struct vmstructs *v)
{
	bool inside = v->scopes_data != UINT64_MAX && v->dependencies != UINT64_MAX;
	bool apart = v->immutable_data != UINT64_MAX && v->scopes_data_offset != UINT64_MAX;
	bool mutable = v->mutable_data != UINT64_MAX && v->relocation_size != UINT64_MAX;
	bool narrow = v->metadata_size == 2 && v->data_offset != UINT64_MAX;

	return v->scopes_pcs != UINT64_MAX && (inside || apart) &&
	       (mutable || v->metadata_size == 4 || narrow);
}

static int find_scopes(const struct vmstructs *v, const struct hotspot_blob *b, struct remote *r,
		       struct scopes *s)
{
	int rc = find_scopes_data(v, b, r, s);

	return rc ? rc : find_metadata(v, b, r, s);
}

/*
 * The scope of the instruction at @pc: where its description begins. A PcDesc is at the end of the
 * instructions that it describes: a return address, one above @pc, has a PcDesc; other
 * instructions belong to the next one, as in the JVM's own pc_desc_near(), or if that has no scope,
 * to the call before. 0: none.
 */
static int find_scope(const struct scopes *s, const struct hotspot_blob *b, struct remote *r,
		      uint64_t pc, uint32_t *scope, bool *exact)
{
	int32_t offset = (int32_t)(pc - b->start);
	uint8_t *bytes = malloc(MAX(s->pcs_size, 1U));
	int rc;

	*scope = 0;
	*exact = false;
	if (!bytes)
		return -ENOMEM;
	rc = remote_read(r, s->pcs, bytes, s->pcs_size);
	/* Sorted by pc; the first and the last one are sentinels. */
	for (uint64_t at = 0; !rc && at + PCDESC_SIZE <= s->pcs_size; at += PCDESC_SIZE) {
		int32_t number[2];

		memcpy(number, bytes + at, sizeof(number));
		if (number[0] >= offset && number[1] > 0) {
			*scope = (uint32_t)number[1];
			*exact = number[0] == offset + 1;
		}
		if (number[0] > offset)
			break;
	}
	free(bytes);
	return rc;
}

static int read_method(const struct scopes *s, struct remote *r, uint32_t index, uint64_t *method)
{
	if (!index || index > METADATA_MAX)
		return -EBADMSG;
	return remote_read_u64(r, s->metadata + 8ULL * (index - 1), method);
}

/* Read the methods inlined at @scope, innermost first. *@nr: their number; 0 or -errno. */
static int read_scopes(const struct hotspot *h, struct remote *r, const struct scopes *scopes,
		       uint32_t scope, struct hotspot_frame *frames, uint32_t *nr)
{
	int rc = 0;

	while (scope && *nr < HOTSPOT_FRAMES_MAX) {
		uint8_t bytes[SCOPE_BYTES];
		struct stream s = { .bytes = bytes,
				    .size = sizeof(bytes),
				    .new_format = is_new(h, r) };
		uint32_t sender, index;

		rc = remote_read(r, scopes->data + scope, bytes, sizeof(bytes));
		if (rc)
			break;
		sender = take_number(&s);
		index = take_number(&s);
		frames[*nr].bci = (int32_t)take_number(&s) - 1;
		rc = read_method(scopes, r, index, &frames[*nr].method);
		if (rc)
			break;
		++*nr;
		/* Callers are described before: this ends. */
		scope = sender < scope ? sender : 0;
	}
	return rc;
}

int hotspot_chain(const struct hotspot *h, struct remote *r, uint64_t pc,
		  struct hotspot_frame frames[static HOTSPOT_FRAMES_MAX], bool *exact)
{
	const struct hotspot_blob *b = hotspot_blobs_at(h, pc);
	struct scopes scopes;
	uint32_t scope, nr = 0;
	int rc;

	*exact = false;
	if (!b || b->kind != HOTSPOT_COMPILED || !has_scopes(&h->vm))
		return 0;
	rc = find_scopes(&h->vm, b, r, &scopes);
	if (!rc)
		rc = find_scope(&scopes, b, r, pc, &scope, exact);
	if (!rc)
		rc = read_scopes(h, r, &scopes, scope, frames, &nr);
	if (!rc)
		rc = name_frames(h, r, frames, nr);
	/* The last one must be the method itself, or the chain is of something else. */
	return rc || !nr || frames[nr - 1].method != b->method ? rc : (int)nr;
}
