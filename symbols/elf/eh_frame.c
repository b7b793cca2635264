// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Index the FDEs of .eh_frame: by the table of .eh_frame_hdr, or by a walk.
 *
 * Runs on the loader (index) and on sampler threads (ehframe_find, ehframe_read).
 * Invariant: no read leaves [bytes, bytes + size); the walk takes one step per
 * record and each record has at least four bytes, so it ends.
 */
#include "symbols/object/ehframe.h"

#include <assert.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"
#include "symbols/base/array.h"
#include "symbols/base/search.h"

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
	return machine == EM_X86_64 ? 16 : 30;
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

static int read_cie(const struct ehframe *eh, uint64_t offset, struct ehframe_cie *cie)
{
	struct ehread r;

	*cie = (struct ehframe_cie){ .offset = (uint32_t)offset, .encoding = PE_ABSPTR };
	if (ehread_open_record(eh->bytes, eh->size, offset, &r))
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

	if (offset >= eh->size || ehread_open_record(eh->bytes, eh->size, offset, &r) ||
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
		int rc = ehread_open_record(eh->bytes, eh->size, offset, &r);
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
	if (!bytes || (machine != EM_X86_64 && machine != EM_AARCH64) || size > UINT32_MAX)
		return -EINVAL;
	eh->cies = calloc(1, sizeof(*eh->cies));
	return eh->cies ? 0 : -ENOMEM;
}

int ehframe_init(struct ehframe *eh, const uint8_t *bytes, size_t size, uint64_t vaddr,
		 uint16_t machine)
{
	int rc = begin(eh, bytes, size, vaddr, machine);

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
	return nr;
}

int ehframe_meet(struct ehframe *eh, const uint32_t *offsets, uint32_t nr)
{
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

static uint64_t start_of(const struct ehframe *eh, uint32_t i)
{
	return ehhdr_base(eh->vaddr) + (eh->fdes[i] >> 32);
}

bool ehframe_at(const struct ehframe *eh, uint32_t i, struct ehframe_fde *out)
{
	uint64_t start = start_of(eh, i), room;
	struct ehframe_record rec;

	assert(i < eh->nr_fdes);
	out->offset = (uint32_t)eh->fdes[i];
	if (ehframe_read(eh, out->offset, &rec) || rec.start != start)
		return false;
	room = i + 1 < eh->nr_fdes ? start_of(eh, i + 1) - start : UINT32_MAX;
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
