// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Bytes as an ELF object: headers, unwind tables, symbols.
 * FUZZ: symbols
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/object/image_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct image *image;

	if (image_read_memory(&image, data, size, NULL))
		return 0;
	for (uint32_t i = 0; i < image->nr_symbols; i++) {
		const struct image_symbol *s = &image->symbols[i];
		char buf[IMAGE_STUB_MAX];
		size_t name_size;
		uint64_t v;

		if (s->name >= image->names_size ||
		    !memchr(image->names + s->name, '\0', image->names_size - s->name))
			abort();
		image_symbol_name(image, s, buf, &name_size);
		if (!name_size || name_size > sizeof(buf) || (i && s[-1].vaddr >= s->vaddr) ||
		    (s->size && !image_find(image, s->vaddr)))
			abort();
		if (image_offset(image, s->vaddr, &v) && !image_vaddr(image, v, &v))
			abort();
	}
	for (uint32_t i = 0; i < image->eh.nr_fdes; i++) {
		struct ehframe_fde fde, found;

		if (ehframe_at(&image->eh, i, &fde) &&
		    (fde.offset >= image->eh.size || !fde.size ||
		     !ehframe_find(&image->eh, fde.start, &found) || found.offset != fde.offset))
			abort();
	}
	image_free(image);
	return 0;
}
