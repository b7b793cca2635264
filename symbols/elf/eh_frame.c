// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Unwind tables: .eh_frame and its sorted .eh_frame_hdr, .debug_frame translated into .eh_frame;
 * numbers and records in them.
 *
 * Runs on the loader (index) and on sampler threads (ehframe_find, ehframe_read). Invariant: no
 * read leaves [bytes, bytes + size); the walk takes one step per record and each record has at
 * least four bytes, so it ends.
 */
#include "symbols/elf/internal.h"

#include <assert.h>
#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"
#include "symbols/elf/elf.h"

/* Pointer encodings: LSB Core 5.0, 10.5.1. */
enum {
	PE_ABSPTR = 0x00,
	PE_UDATA4 = 0x03,
	PE_UDATA8 = 0x04,
	PE_SDATA4 = 0x0b,
	PE_SDATA8 = 0x0c,
	PE_FORMAT = 0x0f,
	PE_PCREL = 0x10,
	PE_APPLICATION = 0x70,
	PE_INDIRECT = 0x80,
	PE_OMIT = 0xff,
};

#define LETTERS_MAX 8

/* Read a value in the format half of @encoding, sign-extended for signed formats. */
static uint64_t read_format(struct ehread *r, uint8_t encoding)
{
	switch (encoding & PE_FORMAT) {
	case PE_ABSPTR:
	case PE_UDATA8:
	case PE_SDATA8:
		return ehread_fixed(r, 8);
	case PE_UDATA4:
		return ehread_fixed(r, 4);
	case PE_SDATA4:
		return (uint64_t)(int64_t)(int32_t)ehread_fixed(r, 4);
	}
	r->bad = true;
	return 0;
}

uint64_t ehframe_read_address(const struct ehframe *eh, struct ehread *r, uint8_t encoding)
{
	uint64_t field = eh->vaddr + (uint64_t)(r->pos - eh->bytes);
	uint64_t v = read_format(r, encoding);

	switch (encoding & (PE_APPLICATION | PE_INDIRECT)) {
	case 0:
		return v;
	case PE_PCREL:
		return v ? v + field : 0; /* 0 is kept: a discarded function */
	}
	r->bad = true;
	return 0;
}

static uint64_t return_column(uint16_t machine)
{
	return machine == EM_X86_64 ? 16 : machine == EM_386 ? 8 : 30;
}

/* Skip the personality pointer; its size must be valid, since libunwind follows it. */
static void skip_personality(struct ehread *r)
{
	uint8_t encoding = (uint8_t)ehread_fixed(r, 1);

	if (encoding == PE_OMIT)
		return;
	if ((encoding & PE_APPLICATION) > PE_PCREL)
		r->bad = true;
	read_format(r, encoding);
}

static void check_lsda_encoding(struct ehread *r)
{
	uint8_t encoding = (uint8_t)ehread_fixed(r, 1);
	struct ehread any = { (const uint8_t[8]){ 0 }, NULL, false };

	if (encoding == PE_OMIT)
		return;
	any.end = any.pos + 8;
	read_format(&any, encoding);
	if (any.bad || (encoding & PE_APPLICATION) > PE_PCREL)
		r->bad = true;
}

/*
 * Read the augmentation data as the letters after 'z' say; an unknown or repeated
 * letter is bad.
 */
static void read_augmentation(struct ehread *r, const char *letters, struct ehframe_cie *cie)
{
	const char *end = letters + cie->nr_letters;

	for (const char *c = letters; c < end; c++) {
		if (memchr(letters, *c, (size_t)(c - letters)))
			r->bad = true;
		switch (*c) {
		case 'R':
			cie->encoding = (uint8_t)ehread_fixed(r, 1);
			break;
		case 'P':
			skip_personality(r);
			break;
		case 'L':
			check_lsda_encoding(r);
			break;
		case 'S':
			cie->signal = true;
			break;
		case 'B': /* AArch64: return addresses signed with the B key */
		case 'z':
			break;
		default:
			r->bad = true;
		}
	}
}

/* Read the augmentation string and data; leaves @r at the first instruction. */
static void read_cie_body(const struct ehframe *eh, struct ehread *r, struct ehframe_cie *cie)
{
	uint8_t version = (uint8_t)ehread_fixed(r, 1);
	const char *letters = (const char *)r->pos;
	size_t nr = r->bad ? 0 : strnlen(letters, MIN((size_t)(r->end - r->pos), LETTERS_MAX + 1));
	uint64_t code_align, column;
	int64_t data_align;
	struct ehread data;
	uint64_t size;

	ehread_block(r, nr + 1);
	code_align = ehread_uleb(r);
	data_align = ehread_sleb(r);
	column = version == 1 ? ehread_fixed(r, 1) : ehread_uleb(r);
	cie->nr_letters = (uint8_t)nr;
	cie->code_align = (uint32_t)code_align;
	cie->data_align = (int32_t)data_align;
	if ((version != 1 && version != 3) || nr > LETTERS_MAX ||
	    column != return_column(eh->machine) || code_align < 1 || code_align > 16 ||
	    !data_align || data_align < -64 || data_align > 64)
		r->bad = true;
	if (r->bad || !nr)
		return;
	cie->sized = letters[0] == 'z';
	size = cie->sized ? ehread_uleb(r) : 0;
	data = (struct ehread){ ehread_block(r, size), r->pos, r->bad };
	read_augmentation(&data, letters, cie);
	if (!cie->sized || data.bad)
		r->bad = true;
}

/*
 * Open the record at @offset of a section of @all bytes: its payload, without the
 * length. -ENODATA at the terminator or the end; -EBADMSG when it leaves the
 * section; -ENOTSUP for 64-bit lengths (readers do not agree on the width of the CIE
 * pointer).
 */
static int open_record(const uint8_t *bytes, uint64_t all, uint64_t offset, struct ehread *out)
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

static int read_cie(const struct ehframe *eh, uint64_t offset, struct ehframe_cie *cie)
{
	struct ehread r;

	*cie = (struct ehframe_cie){ .offset = (uint32_t)offset, .encoding = PE_ABSPTR };
	if (open_record(eh->bytes, eh->size, offset, &r))
		return -EBADMSG;
	if (ehread_fixed(&r, 4) != 0)
		return -EBADMSG;
	read_cie_body(eh, &r, cie);
	/* An encoding that cannot be read makes every FDE useless: check it here. */
	if (!r.bad) {
		struct ehread probe = { eh->bytes, eh->bytes + MIN(eh->size, 8), false };

		ehframe_read_address(eh, &probe, cie->encoding);
		r.bad = probe.bad;
	}
	if (r.bad)
		return -EBADMSG;
	cie->insns = (uint32_t)(r.pos - eh->bytes);
	cie->insns_end = (uint32_t)(r.end - eh->bytes);
	return 0;
}

/* Find the offset of the CIE of the FDE payload at @r; leaves @r after the field. */
static int cie_of(const struct ehframe *eh, struct ehread *r, uint64_t *offset)
{
	uint64_t field = (uint64_t)(r->pos - eh->bytes);
	uint64_t back = ehread_fixed(r, 4);

	if (r->bad || !back || back > field)
		return -EBADMSG;
	*offset = field - back;
	return 0;
}

/*
 * Read the range of an FDE; nearly all have two numbers of 4 bytes, the first
 * relative to itself.
 */
static uint64_t read_range(const struct ehframe *eh, struct ehread *r, uint8_t encoding,
			   uint64_t *start)
{
	const uint8_t *p;
	int32_t range[2];

	if (encoding != (PE_PCREL | PE_SDATA4)) {
		*start = ehframe_read_address(eh, r, encoding);
		return read_format(r, encoding);
	}
	p = ehread_block(r, sizeof(range));
	if (!p)
		return 0;
	memcpy(range, p, sizeof(range));
	*start = range[0] ? eh->vaddr + (uint64_t)(p - eh->bytes) + (uint64_t)(int64_t)range[0] : 0;
	return (uint64_t)(int64_t)range[1];
}

/* Read the rest of an FDE; its CIE is in @out. */
static int read_fde_body(const struct ehframe *eh, struct ehread *r, struct ehframe_record *out)
{
	uint64_t size = read_range(eh, r, out->cie.encoding, &out->start);

	if (out->cie.sized)
		ehread_block(r, ehread_uleb(r));
	if (r->bad || !out->start || !size || size > INT32_MAX || out->start > UINT64_MAX - size)
		return -EBADMSG;
	out->size = (uint32_t)size;
	out->insns = (uint32_t)(r->pos - eh->bytes);
	out->insns_end = (uint32_t)(r->end - eh->bytes);
	return 0;
}

/*
 * CIEs read while indexing, direct-mapped: nearly all FDEs share a few. Constant
 * after that.
 */
struct ehframe_cies {
	struct ehframe_cie cie[EHFRAME_CIES_MAX];
	bool known[EHFRAME_CIES_MAX];
};

static uint32_t cie_slot(uint64_t offset)
{
	return (uint32_t)hash_u64(offset) & (EHFRAME_CIES_MAX - 1);
}

/* Return the CIE at @offset if the table has it. */
static const struct ehframe_cie *cie_met(const struct ehframe *eh, uint64_t offset)
{
	const struct ehframe_cies *t = eh->cies;
	uint32_t slot = cie_slot(offset);

	return t && t->known[slot] && t->cie[slot].offset == offset ? &t->cie[slot] : NULL;
}

/*
 * Return the CIE at @offset, read into the table if it is new; NULL if it is not
 * acceptable.
 */
static const struct ehframe_cie *cie_meet(struct ehframe *eh, uint64_t offset)
{
	const struct ehframe_cie *cie = cie_met(eh, offset);
	uint32_t slot = cie_slot(offset);

	if (cie)
		return cie;
	eh->cies->known[slot] = read_cie(eh, offset, &eh->cies->cie[slot]) == 0;
	return cie_met(eh, offset);
}

int ehframe_read(const struct ehframe *eh, uint32_t offset, struct ehframe_record *out)
{
	const struct ehframe_cie *met;
	struct ehread r;
	uint64_t cie;

	if (offset >= eh->size || open_record(eh->bytes, eh->size, offset, &r) ||
	    cie_of(eh, &r, &cie))
		return -EBADMSG;
	met = cie_met(eh, cie);
	if (met)
		out->cie = *met;
	else if (read_cie(eh, cie, &out->cie))
		return -EBADMSG;
	return read_fde_body(eh, &r, out);
}

static int walk_add(struct ehframe *eh, uint32_t *room_fdes, uint64_t start, uint64_t offset)
{
	uint64_t above = start - ehhdr_base(eh->vaddr);

	if (above > UINT32_MAX)
		return -EBADMSG;
	if (!array_reserve(&eh->fdes, room_fdes, eh->nr_fdes + 1u))
		return -ENOMEM;
	assert(offset < eh->size);
	eh->fdes[eh->nr_fdes++] = above << 32 | offset;
	return 0;
}

/* Index the record with payload @r if it is an FDE. 0, -EBADMSG (left out) or -ENOMEM. */
static int walk_record(struct ehframe *eh, uint32_t *room, struct ehread *r, uint64_t offset)
{
	struct ehread id = *r;
	const struct ehframe_cie *cie;
	struct ehframe_record rec;
	uint64_t cie_offset;

	if (ehread_fixed(&id, 4) == 0)
		return id.bad ? -EBADMSG : 0;
	if (cie_of(eh, r, &cie_offset))
		return -EBADMSG;
	cie = cie_meet(eh, cie_offset);
	if (!cie)
		return -EBADMSG;
	rec.cie = *cie;
	if (read_fde_body(eh, r, &rec))
		return -EBADMSG;
	return walk_add(eh, room, rec.start, offset);
}

/* Walk all records up to the terminator, the end, or a record that leaves the section. */
static int walk_all(struct ehframe *eh)
{
	uint32_t room = 0; /* of eh->fdes */
	uint64_t offset = 0;
	struct ehread r = { eh->bytes, eh->bytes, false };

	while (eh->nr_fdes < EHFRAME_FDES_MAX) {
		int rc = open_record(eh->bytes, eh->size, offset, &r);
		uint64_t next = (uint64_t)(r.end - eh->bytes);

		if (rc == -ENODATA)
			break;
		if (rc == 0)
			rc = walk_record(eh, &room, &r, offset);
		else if (rc == -EBADMSG)
			next = eh->size;
		if (rc == -ENOMEM)
			return rc;
		eh->nr_refused += rc != 0;
		offset = next;
	}
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return COMPARE(*x, *y);
}

/* Sort, and drop all but the first FDE of each start. */
static void sort_fdes(struct ehframe *eh)
{
	uint32_t nr = 0;

	if (!eh->nr_fdes)
		return;
	qsort(eh->fdes, eh->nr_fdes, sizeof(*eh->fdes), by_start);
	for (uint32_t i = 1; i < eh->nr_fdes; i++) {
		if (eh->fdes[i] >> 32 != eh->fdes[nr] >> 32)
			eh->fdes[++nr] = eh->fdes[i];
		else
			eh->nr_refused++;
	}
	eh->nr_fdes = nr + 1;
}

/* Initialise @eh without an index: 0, -EINVAL or -ENOMEM. */
static int begin(struct ehframe *eh, const uint8_t *bytes, size_t size, uint64_t vaddr,
		 uint16_t machine)
{
	*eh = (struct ehframe){ .vaddr = vaddr, .bytes = bytes, .size = size, .machine = machine };
	if (!bytes || (machine != EM_X86_64 && machine != EM_AARCH64 && machine != EM_386) ||
	    size > UINT32_MAX)
		return -EINVAL;
	eh->cies = calloc(1, sizeof(*eh->cies));
	return eh->cies ? 0 : -ENOMEM;
}

int ehframe_init(struct ehframe *eh, const uint8_t *bytes, size_t size, uint64_t vaddr,
		 uint16_t machine)
{
	int rc = begin(eh, bytes, size, vaddr, machine);

	assert(bytes || !size);
	if (!rc)
		rc = walk_all(eh);
	if (!rc)
		sort_fdes(eh);
	if (!rc && !eh->nr_fdes && eh->nr_refused)
		rc = -EINVAL;
	if (rc)
		ehframe_fini(eh);
	return rc;
}

/*
 * Count FDEs by the lengths of all records, reading the CIEs on the way. 0: a record
 * is unusual.
 */
static uint32_t count_fdes(struct ehframe *eh)
{
	const uint8_t *at = eh->bytes, *end = at + eh->size;
	uint32_t nr = 0, words[2];

	while (end - at >= 8) {
		memcpy(words, at, sizeof(words));
		if (!words[0])
			break;
		if (words[0] < 4 || words[0] > (size_t)(end - at) - 4)
			return 0;
		if (words[1])
			nr++;
		else
			cie_meet(eh, (uint64_t)(at - eh->bytes));
		at += 4 + (size_t)words[0];
	}
	return nr;
}

/*
 * Turn the @entries of the table into the index of an .eh_frame of @size bytes at
 * h->eh_frame: the high half of each number is the start of the function (above
 * ehhdr_base()), the low half the offset of its FDE. False: the starts do not
 * ascend, or an FDE is outside.
 */
static bool ehhdr_index(const struct ehhdr *h, uint64_t *entries, size_t size)
{
	/* Both halves are relative to the header: function, then FDE. */
	uint64_t base = h->vaddr - ehhdr_base(h->eh_frame), eh_frame = h->vaddr - h->eh_frame;
	uint64_t next = 0, all = 0;

	assert(entries || !h->nr);
	for (uint32_t i = 0; i < h->nr; i++) {
		uint64_t start = base + (uint64_t)(int64_t)(int32_t)entries[i];
		uint64_t offset = eh_frame + (uint64_t)((int64_t)entries[i] >> 32);

		/* A number below 0 has high bits. */
		all |= (start - next) | offset | (size - 1 - offset);
		entries[i] = start << 32 | (uint32_t)offset;
		next = start + 1;
	}
	return next <= 1ULL << 32 && all <= UINT32_MAX && size;
}

int ehframe_init_hdr(struct ehframe *eh, const uint8_t *bytes, size_t size, uint16_t machine,
		     const struct ehhdr *h, uint64_t *entries)
{
	int rc = begin(eh, bytes, size, h->eh_frame, machine);

	if (!rc && (!h->nr || !ehhdr_index(h, entries, size) || count_fdes(eh) != h->nr))
		rc = -EBADMSG;
	if (rc) {
		ehframe_fini(eh);
		return rc;
	}
	eh->fdes = entries;
	eh->nr_fdes = h->nr;
	return 0;
}

uint32_t ehframe_cies(const struct ehframe *eh, uint32_t offsets[EHFRAME_CIES_MAX])
{
	uint32_t nr = 0;

	for (uint32_t i = 0; eh->cies && i < EHFRAME_CIES_MAX; i++)
		if (eh->cies->known[i])
			offsets[nr++] = eh->cies->cie[i].offset;
	assert(nr <= EHFRAME_CIES_MAX);
	return nr;
}

int ehframe_meet(struct ehframe *eh, const uint32_t *offsets, uint32_t nr)
{
	assert(!eh->cies && nr <= EHFRAME_CIES_MAX);
	eh->cies = calloc(1, sizeof(*eh->cies));
	if (!eh->cies)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++)
		if (offsets[i] < eh->size)
			cie_meet(eh, offsets[i]);
	return 0;
}

void ehframe_fini(struct ehframe *eh)
{
	free(eh->fdes);
	free(eh->cies);
	eh->fdes = NULL;
	eh->cies = NULL;
	eh->nr_fdes = 0;
}

bool ehframe_at(const struct ehframe *eh, uint32_t i, struct ehframe_fde *out)
{
	uint64_t start = ehframe_start(eh, i), room;
	struct ehframe_record rec;

	assert(i < eh->nr_fdes);
	out->offset = (uint32_t)eh->fdes[i];
	if (ehframe_read(eh, out->offset, &rec) || rec.start != start)
		return false;
	room = i + 1 < eh->nr_fdes ? ehframe_start(eh, i + 1) - start : UINT32_MAX;
	out->start = start;
	out->size = (uint32_t)MIN(rec.size, room);
	return true;
}

bool ehframe_find(const struct ehframe *eh, uint64_t vaddr, struct ehframe_fde *out)
{
	uint64_t above = vaddr - ehhdr_base(eh->vaddr);
	uint64_t last = above << 32 | UINT32_MAX; /* the last entry with this start */
	uint32_t lo;

	if (above > UINT32_MAX)
		return false;
	lo = search_split(eh->nr_fdes, i, eh->fdes[i] <= last);
	return lo && ehframe_at(eh, lo - 1, out) && vaddr - out->start < out->size;
}

/*
 * The slow paths of reading CFI: numbers of more than one byte, records.
 *
 * Any thread, pure. Invariant: nothing outside [pos, end) is read.
 */

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

/*
 * Read .eh_frame_hdr.
 *
 * Runs on: a helper. Every number is hostile; sums wrap, and results are
 * compared with the section before they are used.
 */

/* Pointer encodings (LSB Core 5.0, 10.5.1 "DWARF Exception Header Encoding"). */
enum {
	EHHDR_PE_OMIT = 0xff,
	EHHDR_PE_FORMAT = 0x0f,
	EHHDR_PE_ABSPTR = 0x00,
	PE_UDATA2 = 0x02,
	EHHDR_PE_UDATA4 = 0x03,
	EHHDR_PE_UDATA8 = 0x04,
	PE_SDATA2 = 0x0a,
	EHHDR_PE_SDATA4 = 0x0b,
	EHHDR_PE_SDATA8 = 0x0c,
	PE_BASE = 0xf0,
	EHHDR_PE_PCREL = 0x10,
	PE_DATAREL = 0x30,
};

/* Decode a pointer of encoding @enc at @bytes, which is at address @field. */
static bool decode_pointer(const uint8_t *bytes, size_t size, uint8_t enc, uint64_t field,
			   uint64_t data, uint64_t *out)
{
	static const uint8_t sizes[16] = {
		[EHHDR_PE_ABSPTR] = 8, [PE_UDATA2] = 2, [EHHDR_PE_UDATA4] = 4,
		[EHHDR_PE_UDATA8] = 8, [PE_SDATA2] = 2, [EHHDR_PE_SDATA4] = 4,
		[EHHDR_PE_SDATA8] = 8,
	};
	uint8_t format = enc & EHHDR_PE_FORMAT, width = sizes[format];
	uint64_t value = 0;

	if (!width || width > size)
		return false;
	for (unsigned int i = 0; i < width; i++) /* all supported machines are little-endian */
		value |= (uint64_t)bytes[i] << (8 * i);
	if (format >= PE_SDATA2 && width < 8 && value >> (8 * width - 1))
		value |= ~0ULL << (8 * width);
	switch (enc & PE_BASE) {
	case 0:
		*out = value;
		return true;
	case EHHDR_PE_PCREL:
		*out = field + value;
		return true;
	case PE_DATAREL:
		*out = data + value;
		return true;
	default:
		return false; /* indirect, textrel, aligned: no linker uses them here */
	}
}

/*
 * Return the number of entries in the one layout that linkers write; 0: another
 * layout, or they do not fit.
 */
static uint32_t count_entries(const uint8_t *bytes, size_t size, uint64_t all)
{
	static const uint8_t usual[] = { 1, EHHDR_PE_PCREL | EHHDR_PE_SDATA4, EHHDR_PE_UDATA4,
					 PE_DATAREL | EHHDR_PE_SDATA4 };
	uint32_t nr;

	if (size < EHHDR_SIZE || memcmp(bytes, usual, sizeof(usual)) != 0)
		return 0;
	memcpy(&nr, bytes + 8, sizeof(nr));
	return nr <= (all - EHHDR_SIZE) / sizeof(uint64_t) ? nr : 0;
}

bool ehhdr_parse(struct ehhdr *h, const uint8_t *bytes, size_t size, uint64_t all, uint64_t vaddr)
{
	*h = (struct ehhdr){ .vaddr = vaddr };
	if (size <= 4 || bytes[0] != 1 || bytes[1] == EHHDR_PE_OMIT ||
	    !decode_pointer(bytes + 4, size - 4, bytes[1], vaddr + 4, vaddr, &h->eh_frame))
		return false;
	h->nr = count_entries(bytes, size, all);
	return true;
}

/*
 * .debug_frame -> .eh_frame, record by record.
 *
 * Runs on: the loader. Invariant: the walk takes one step per record and each
 * has at least four bytes, so it ends; the output never outgrows its buffer.
 */

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
		if (cie >= t->in_size || open_record(t->in, t->in_size, cie, &c) ||
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
		int rc = open_record(t->in, t->in_size, offset, &r);
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

	while (size && (rc = open_record(bytes, size, offset, &r)) != -ENODATA && rc != -EBADMSG)
		offset = (uint64_t)(r.end - bytes);
	return offset;
}

int debugframe_join(const uint8_t *eh, size_t eh_size, const uint8_t *debug, size_t debug_size,
		    uint8_t **out, size_t *out_size)
{
	struct translation t = { .in = debug, .in_size = debug_size };
	size_t kept = end_of_records(eh, eh_size);

	assert(debug || !debug_size);
	assert(eh || !eh_size);
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
