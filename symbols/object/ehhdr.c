// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Read .eh_frame_hdr.
 *
 * Runs on: a helper. Every number is hostile; sums wrap, and results are
 * compared with the section before they are used.
 */
#include "symbols/object/ehhdr.h"

#include <string.h>

/* Pointer encodings (LSB Core 5.0, 10.5.1 "DWARF Exception Header Encoding"). */
enum {
	PE_OMIT = 0xff,
	PE_FORMAT = 0x0f,
	PE_ABSPTR = 0x00,
	PE_UDATA2 = 0x02,
	PE_UDATA4 = 0x03,
	PE_UDATA8 = 0x04,
	PE_SDATA2 = 0x0a,
	PE_SDATA4 = 0x0b,
	PE_SDATA8 = 0x0c,
	PE_BASE = 0xf0,
	PE_PCREL = 0x10,
	PE_DATAREL = 0x30,
};

/* Decode a pointer of encoding @enc at @bytes, which is at address @field. */
static bool decode_pointer(const uint8_t *bytes, size_t size, uint8_t enc, uint64_t field,
			   uint64_t data, uint64_t *out)
{
	static const uint8_t sizes[16] = {
		[PE_ABSPTR] = 8, [PE_UDATA2] = 2, [PE_UDATA4] = 4, [PE_UDATA8] = 8,
		[PE_SDATA2] = 2, [PE_SDATA4] = 4, [PE_SDATA8] = 8,
	};
	uint8_t format = enc & PE_FORMAT, width = sizes[format];
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
	case PE_PCREL:
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
	static const uint8_t usual[] = { 1, PE_PCREL | PE_SDATA4, PE_UDATA4,
					 PE_DATAREL | PE_SDATA4 };
	uint32_t nr;

	if (size < EHHDR_SIZE || memcmp(bytes, usual, sizeof(usual)) != 0)
		return 0;
	memcpy(&nr, bytes + 8, sizeof(nr));
	return nr <= (all - EHHDR_SIZE) / sizeof(uint64_t) ? nr : 0;
}

bool ehhdr_parse(struct ehhdr *h, const uint8_t *bytes, size_t size, uint64_t all, uint64_t vaddr)
{
	*h = (struct ehhdr){ .vaddr = vaddr };
	if (size <= 4 || bytes[0] != 1 || bytes[1] == PE_OMIT ||
	    !decode_pointer(bytes + 4, size - 4, bytes[1], vaddr + 4, vaddr, &h->eh_frame))
		return false;
	h->nr = count_entries(bytes, size, all);
	return true;
}

bool ehhdr_index(const struct ehhdr *h, uint64_t *entries, size_t size)
{
	/* Both halves are relative to the header: function, then FDE. */
	uint64_t base = h->vaddr - ehhdr_base(h->eh_frame), eh_frame = h->vaddr - h->eh_frame;
	uint64_t next = 0, all = 0;

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
