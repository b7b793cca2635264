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

#include <stddef.h>
#include <stdint.h>

#define EHFRAME_FDES_MAX (1U << 22)

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
	uint32_t nr_refused;		/* records left out */
};

/* @machine: e_machine. 0, -ENOMEM, or -EINVAL when nothing could be read. @bytes is borrowed. */
int ehframe_init(struct ehframe *eh, const uint8_t *bytes, size_t size, uint64_t vaddr,
		 uint16_t machine);
void ehframe_fini(struct ehframe *eh);
/* The FDE that covers @vaddr, or NULL. Any thread. */
const struct ehframe_fde *ehframe_find(const struct ehframe *eh, uint64_t vaddr);

#endif
