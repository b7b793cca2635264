/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The structure of .eh_frame: a copy of its bytes and our own sorted index of
 * its FDEs (LSB Core 5.0, 10.6 "Exception Frames"; DWARF 5, 6.4).
 *
 * The index is always built by one bounded walk over the records, never taken
 * from .eh_frame_hdr: that table may be missing, unsorted or forged. Records
 * that the walk does not accept (lengths, CIE pointers, versions, unknown
 * augmentation, return column, address encodings) are left out and counted.
 * What the instructions *do* is checked later, by unwind/cfi.
 *
 * Pure: bytes in, index out. Runs on: the loader.
 */
#ifndef SYMBOLS_EHFRAME_H
#define SYMBOLS_EHFRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/ehread.h"
#include "symbols/lookup.h"

#define EHFRAME_FDES_MAX (1U << 22)

struct ehframe_cies;

/* Sorted by start; ranges do not overlap (of overlapping ones the first stays). */
struct ehframe_fde {
	uint64_t start;			/* vaddr of the first instruction covered */
	uint32_t size;			/* bytes covered */
	uint32_t offset;		/* of the FDE record in the section */
};

struct ehframe {
	uint64_t vaddr;			/* of the section's first byte */
	const uint8_t *bytes;		/* NULL when there is none; owned by the image */
	size_t size;
	struct ehframe_fde *fdes;	/* owned by this struct */
	uint32_t nr_fdes;
	struct lookup lookup;		/* in fdes */
	struct ehframe_cies *cies;	/* some of its CIEs as read; owned by this struct */
	uint32_t nr_refused;		/* records left out */
	uint16_t machine;		/* e_machine */
};

/* @machine: e_machine. 0, -ENOMEM, or -EINVAL when nothing could be read. @bytes is borrowed. */
int ehframe_init(struct ehframe *eh, const uint8_t *bytes, size_t size, uint64_t vaddr,
		 uint16_t machine);
void ehframe_fini(struct ehframe *eh);
/* The FDE that covers @vaddr, or NULL. Any thread. */
const struct ehframe_fde *ehframe_find(const struct ehframe *eh, uint64_t vaddr);

struct ehframe_cie {
	uint32_t offset;		/* of the record in the section */
	uint32_t insns, insns_end;	/* initial instructions: offsets in the section */
	uint32_t code_align;
	int32_t data_align;
	uint8_t encoding;		/* of addresses in its FDEs: DW_EH_PE_* */
	uint8_t nr_letters;		/* of the augmentation string */
	bool sized;			/* 'z': FDEs have augmentation data, too */
	bool signal;			/* 'S' */
};

struct ehframe_record {
	struct ehframe_cie cie;
	uint64_t start;			/* vaddr of the first instruction covered */
	uint32_t size;
	uint32_t insns, insns_end;	/* instructions: offsets in the section */
};

/*
 * Read the FDE at @offset with its CIE, checked as the walk checks them. 0 or
 * -EBADMSG. Any thread; no allocation.
 */
int ehframe_read(const struct ehframe *eh, uint32_t offset, struct ehframe_record *out);
/* An address in @encoding as CFI holds it; bad for encodings that the walk refuses. */
uint64_t ehframe_read_address(const struct ehframe *eh, struct eh_reader *r, uint8_t encoding);

#endif
