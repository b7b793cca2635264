/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * .eh_frame_hdr: the address of .eh_frame, and a sorted table of its FDEs
 * (LSB Core 5.0, 10.6.2 "The .eh_frame_hdr section").
 *
 * Only the order of the table is checked here; each entry is compared with its
 * FDE when it is looked up (ehframe). Pure: bytes in, index out. Runs on: the
 * loader.
 */
#ifndef SYMBOLS_OBJECT_EHHDR_H
#define SYMBOLS_OBJECT_EHHDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EHHDR_SIZE 12u /* bytes before the table, in the layout supported */

struct ehhdr {
	uint64_t vaddr;	   /* of the section's first byte */
	uint64_t eh_frame; /* vaddr of .eh_frame */
	uint32_t nr;	   /* entries, after EHHDR_SIZE bytes; 0: no table in this layout */
};

/*
 * Parse the header. @bytes: the first @size of the @all bytes of a section at
 * @vaddr. False: no address of .eh_frame.
 */
bool ehhdr_parse(struct ehhdr *h, const uint8_t *bytes, size_t size, uint64_t all, uint64_t vaddr);

/*
 * Turn the @entries of the table into the index of an .eh_frame of @size bytes at
 * h->eh_frame: the high half of each number is the start of the function (above
 * ehhdr_base()), the low half the offset of its FDE. False: the starts do not
 * ascend, or an FDE is outside.
 */
bool ehhdr_index(const struct ehhdr *h, uint64_t *entries, size_t size);

/* Return the base of all starts: no table reaches further than 2 GiB either way. */
static inline uint64_t ehhdr_base(uint64_t eh_frame)
{
	return eh_frame - (1ULL << 31);
}

#endif
