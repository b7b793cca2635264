/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Look at all that an image holds, as look-ups do: sanitizers see reads outside, and a rule that is
 * broken aborts.
 */
#ifndef TESTS_SYMBOLS_IMAGEWALK_H
#define TESTS_SYMBOLS_IMAGEWALK_H

#include <stdint.h>
#include <stdlib.h>

#include "symbols/elf/elf.h"

/* Look up all symbols and their names. Return a sum of the bytes. */
static inline uint64_t image_walk_symbols(const struct image *image)
{
	char buf[IMAGE_STUB_MAX];
	uint64_t sum = 0, v;
	size_t size;

	for (uint32_t i = 0; i < image->nr_symbols; i++) {
		const struct image_symbol *s = &image->symbols[i];
		const char *name = image_symbol_name(image, s, buf, &size);

		if (s->name >= image->names_size || size > sizeof(buf) ||
		    (i && s[-1].vaddr >= s->vaddr) || s->size > UINT64_MAX - s->vaddr)
			abort();
		for (size_t k = 0; k < size; k++)
			sum += (uint8_t)name[k];
		sum += image_find(image, s->vaddr + s->size / 2) != NULL;
		sum += image_offset(image, s->vaddr, &v) && image_vaddr(image, v, &v);
	}
	return sum;
}

/* Read all bytes and records of the unwind table. Return a sum. */
static inline uint64_t image_walk_records(const struct ehframe *eh)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < eh->size; i++)
		sum += eh->bytes[i];
	for (uint32_t i = 0; i < eh->nr_fdes; i++) {
		struct ehframe_fde fde, found;
		struct ehframe_record r;

		if (!ehframe_at(eh, i, &fde))
			continue;
		if (ehframe_read(eh, fde.offset, &r) || r.insns > r.insns_end ||
		    r.insns_end > eh->size || r.cie.insns > r.cie.insns_end ||
		    r.cie.insns_end > eh->size)
			abort();
		sum += ehframe_find(eh, fde.start, &found);
	}
	return sum;
}

/* Look at both. */
static inline uint64_t image_walk(const struct image *image)
{
	return image_walk_symbols(image) + image_walk_records(&image->eh);
}

#endif
