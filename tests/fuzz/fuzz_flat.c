// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Bytes as an image out of the cage: refused, or no look-up leaves them. The bytes end where a
 * page without access begins. FUZZ: symbols
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "symbols/object/image_flat.h"

#define ROOM (1U << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Look up all symbols and their names. */
static uint64_t look_up_symbols(const struct image *image)
{
	char buf[IMAGE_STUB_MAX];
	uint64_t sum = 0, v;
	size_t size;

	for (uint32_t i = 0; i < image->nr_symbols; i++) {
		const struct image_symbol *s = &image->symbols[i];
		const char *name = image_symbol_name(image, s, buf, &size);

		if (size > sizeof(buf) || (i && s[-1].vaddr >= s->vaddr))
			abort();
		sum += memchr(name, 0x80, size) != NULL;
		sum += image_find(image, s->vaddr) != NULL;
		sum += image_offset(image, s->vaddr, &v) && image_vaddr(image, v, &v);
	}
	return sum;
}

/* Read all records of the unwind table. */
static uint64_t read_records(const struct ehframe *eh)
{
	uint64_t sum = 0;

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static volatile uint64_t sum;
	static uint8_t *room;
	struct cage_answer a = { .size = size, .mapped = true };
	struct image *image;

	if (!room) {
		room = mmap(NULL, ROOM + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
		if (room == MAP_FAILED || mprotect(room + ROOM, 4096, PROT_NONE))
			abort();
	}
	if (size > ROOM)
		return 0;
	/* Not a page: munmap(2) refuses it. */
	a.bytes = room + ROOM - ((size + 15) & ~15UL);
	memcpy(a.bytes, data, size);
	if (image_flat_take(&image, &a, 0))
		return 0;
	sum += look_up_symbols(image) + read_records(&image->eh);
	image_free(image);
	return 0;
}
