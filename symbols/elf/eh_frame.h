/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unwind tables: a sorted index of FDEs, the numbers and records in .eh_frame (LSB, DWARF 5 section
 * 6.4).
 *
 * The caller owes: the bytes of the section, unchanged during a call.
 *
 * The room does: finds the FDE of an address and parses CIE and FDE, bounded.
 *
 * Not for: running their instructions (unwind).
 */
#ifndef SYMBOLS_ELF_EH_FRAME_H
#define SYMBOLS_ELF_EH_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct ehframe;
struct ehhdr;

/*
 * Read the bytes of .eh_frame and .debug_frame: numbers, blocks, records.
 *
 * Every read is checked; after the first failure all later reads return 0.
 * Pure; any thread. Functions that sampler threads call at each new place are
 * inline.
 */

/* The bytes still to read. */
struct ehread {
	const uint8_t *pos, *end;
	bool bad;
};

/* Read @size bytes; NULL (bad): too few. */
static inline const uint8_t *ehread_block(struct ehread *r, uint64_t size)
{
	const uint8_t *p = r->pos;

	if (r->bad || size > (uint64_t)(r->end - r->pos)) {
		r->bad = true;
		return NULL;
	}
	r->pos += size;
	return p;
}

/* Read @size (1, 2, 4 or 8) bytes, zero-extended. */
static inline uint64_t ehread_fixed(struct ehread *r, unsigned int size)
{
	const uint8_t *p = ehread_block(r, size);
	uint64_t v = 0;

	if (p)
		memcpy(&v, p, size); /* all supported machines are little-endian */
	return v;
}

uint64_t ehread_long_uleb(struct ehread *r);
int64_t ehread_long_sleb(struct ehread *r);

/* Test for a LEB128 of one byte, as nearly all are. */
static inline bool ehread_is_short(const struct ehread *r)
{
	return !r->bad && r->pos < r->end && !(*r->pos & 0x80);
}

/* Read a ULEB128; more than 64 bits is bad. */
static inline uint64_t ehread_uleb(struct ehread *r)
{
	return ehread_is_short(r) ? *r->pos++ : ehread_long_uleb(r);
}

static inline int64_t ehread_sleb(struct ehread *r)
{
	return ehread_is_short(r) ? (int64_t)((uint64_t)*r->pos++ << 57) >> 57
				  : ehread_long_sleb(r);
}

/*
 * The structure of .eh_frame: a copy of its bytes and a sorted index of its
 * FDEs (LSB Core 5.0, 10.6 "Exception Frames"; DWARF 5, 6.4).
 *
 * The index is the table of .eh_frame_hdr when that ascends and has one entry per FDE; else one
 * bounded walk over the records builds it. Either way only the FDE itself is trusted, when it is
 * looked up: an FDE that
 * is not acceptable (lengths, CIE pointers, versions, unknown augmentation,
 * return column, address encodings) is ignored. The effect of the instructions
 * is checked later, by unwind/cfi.
 *
 * Pure: bytes in, index out. Runs on: the loader.
 */

#define EHFRAME_FDES_MAX (1U << 22)

struct ehframe_fde {
	uint64_t start;	 /* vaddr of the first instruction covered */
	uint32_t size;	 /* bytes covered; at most up to the start of the next FDE */
	uint32_t offset; /* of the FDE record in the section */
};

/*
 * Index by a walk. @machine: e_machine; @bytes is borrowed. 0, -ENOMEM, or -EINVAL:
 * nothing could be read. After an error there is nothing to free.
 */
int ehframe_init(struct ehframe *eh, const uint8_t *bytes, size_t size, uint64_t vaddr,
		 uint16_t machine);
/*
 * Index by the @entries of the table of .eh_frame_hdr: changed, and owned by @eh
 * after 0. -EBADMSG: the table cannot be used.
 */
int ehframe_init_hdr(struct ehframe *eh, const uint8_t *bytes, size_t size, uint16_t machine,
		     const struct ehhdr *h, uint64_t *entries);
void ehframe_fini(struct ehframe *eh);
/*
 * Read the CIEs at @offsets (foreign), of an index that was made by another process: all of @eh is
 * set but cies. 0 or -ENOMEM.
 */
int ehframe_meet(struct ehframe *eh, const uint32_t *offsets, uint32_t nr);
/* Find the FDE that covers @vaddr; false: none. Any thread. */
bool ehframe_find(const struct ehframe *eh, uint64_t vaddr, struct ehframe_fde *out);
/*
 * Read FDE number @i < nr_fdes, by start; false: the index is wrong about it. Any
 * thread.
 */
bool ehframe_at(const struct ehframe *eh, uint32_t i, struct ehframe_fde *out);

struct ehframe_cie {
	uint32_t offset;	   /* of the record in the section */
	uint32_t insns, insns_end; /* initial instructions: offsets in the section */
	uint32_t code_align;
	int32_t data_align;
	uint8_t encoding;   /* of addresses in its FDEs: DW_EH_PE_* */
	uint8_t nr_letters; /* of the augmentation string */
	bool sized;	    /* 'z': FDEs also have augmentation data */
	bool signal;	    /* 'S' */
};

struct ehframe_record {
	struct ehframe_cie cie;
	uint64_t start; /* vaddr of the first instruction covered */
	uint32_t size;
	uint32_t insns, insns_end; /* instructions: offsets in the section */
};

/*
 * Read the FDE at @offset with its CIE, checked as in the walk. 0 or -EBADMSG. Any
 * thread; no allocation.
 */
int ehframe_read(const struct ehframe *eh, uint32_t offset, struct ehframe_record *out);
/* Read an address in @encoding; bad for encodings that the walk refuses. */
uint64_t ehframe_read_address(const struct ehframe *eh, struct ehread *r, uint8_t encoding);

#endif
