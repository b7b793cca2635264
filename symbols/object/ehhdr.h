/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * .eh_frame_hdr: where .eh_frame is, and a sorted table of its FDEs
 * (LSB Core 5.0, 10.6.2 "The .eh_frame_hdr section").
 *
 * Nothing of the table is believed but the order that was checked: what an
 * entry says of its FDE is compared with the FDE whenever it is looked up
 * (ehframe). Pure: bytes in, index out. Runs on: the loader.
 */
#ifndef SYMBOLS_OBJECT_EHHDR_H
#define SYMBOLS_OBJECT_EHHDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EHHDR_SIZE 12u /* of what stands before the table, in the layout that we read */

struct ehhdr {
	uint64_t vaddr;	   /* of the section's first byte */
	uint64_t eh_frame; /* vaddr that it tells */
	uint32_t nr;	   /* entries, behind EHHDR_SIZE bytes; 0: none that we read */
};

/*
 * @bytes: the first @size of the @all bytes of a section at @vaddr. False: it
 * does not tell where .eh_frame is.
 */
bool ehhdr_parse(struct ehhdr *h, const uint8_t *bytes, size_t size, uint64_t all, uint64_t vaddr);

/*
 * Make the table's @entries, as they stand in the file, the index of an
 * .eh_frame of @size bytes at h->eh_frame: in each number the start of the
 * function (above ehhdr_base()) is the high half, the offset of its FDE the
 * low. False: the starts do not ascend, or an FDE lies elsewhere.
 */
bool ehhdr_index(const struct ehhdr *h, uint64_t *entries, size_t size);

/* What starts are counted from: no linker's table reaches further than 2 GiB either way. */
static inline uint64_t ehhdr_base(uint64_t eh_frame)
{
	return eh_frame - (1ULL << 31);
}

#endif
