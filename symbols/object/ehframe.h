/* SPDX-License-Identifier: GPL-2.0-or-later */
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
#ifndef SYMBOLS_OBJECT_EHFRAME_H
#define SYMBOLS_OBJECT_EHFRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/object/ehhdr.h"
#include "symbols/object/ehread.h"

#define EHFRAME_FDES_MAX (1U << 22)
#define EHFRAME_CIES_MAX 64U /* kept; a power of two */

struct ehframe_cies;

struct ehframe_fde {
	uint64_t start;	 /* vaddr of the first instruction covered */
	uint32_t size;	 /* bytes covered; at most up to the start of the next FDE */
	uint32_t offset; /* of the FDE record in the section */
};

struct ehframe {
	uint64_t vaddr;	      /* of the section's first byte */
	const uint8_t *bytes; /* NULL when there is none; owned by the image */
	size_t size;
	uint64_t *fdes; /* ascending, as ehhdr_index() makes them; owned by this struct */
	uint32_t nr_fdes;
	struct ehframe_cies *cies; /* some of its CIEs; owned by this struct */
	uint32_t nr_refused;	   /* records that the walk left out */
	uint16_t machine;	   /* e_machine */
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

/* Write the offsets of the CIEs that were met. Return how many. */
uint32_t ehframe_cies(const struct ehframe *eh, uint32_t offsets[EHFRAME_CIES_MAX]);
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
