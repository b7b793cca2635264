// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Look-ups in an image: segments, symbols, names.
 *
 * Any thread. Invariant: an image does not change after it was read.
 */
#include "symbols/elf/elf.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "symbols/base/base.h"

struct image *image_stub(const struct image *image)
{
	struct image *stub = calloc(1, sizeof(*stub));
	size_t size = image->nr_segments * sizeof(*image->segments);

	if (!stub)
		return NULL;
	stub->segments = malloc(MAX(size, 1U));
	if (!stub->segments) {
		free(stub);
		return NULL;
	}
	memcpy(stub->segments, image->segments, size);
	stub->nr_segments = image->nr_segments;
	stub->machine = image->machine;
	stub->elf_class = image->elf_class;
	stub->source = image->source;
	stub->away = true;
	memcpy(stub->build_id, image->build_id, sizeof(stub->build_id));
	stub->build_id_size = image->build_id_size;
	return stub;
}

size_t image_memory(const struct image *image)
{
	const struct image *more = atomic_load_explicit(&image->more, memory_order_acquire);
	/* Pages of a file are not counted: the kernel takes them back when it needs memory. */
	size_t eh = image->eh.size - (image->frames.at ? image->eh.in_file : 0);
	size_t names = image->names_size - image->names_in_file;

	return sizeof(*image) + image->nr_segments * sizeof(*image->segments) + eh +
	       image->eh.nr_fdes * sizeof(*image->eh.fdes) +
	       (size_t)image->nr_symbols * sizeof(*image->symbols) + names +
	       (image->done ? IMAGE_SITES / 8 : 0) + (more ? image_memory(more) : 0);
}

void image_free(struct image *image)
{
	if (!image)
		return;
	image_free(atomic_load_explicit(&image->more, memory_order_acquire));
	free(image->done);
	if (image->block) {
		munmap(image->block, image->block_size);
		if (image->frames.at)
			munmap(image->frames.at, image->frames.size);
		if (image->name_pages.at)
			munmap(image->name_pages.at, image->name_pages.size);
		image->eh.fdes = NULL;
	} else {
		if (!image->eh.borrowed)
			free((void *)(uintptr_t)image->eh.bytes);
		free(image->segments);
		free(image->symbols);
		free(image->names);
	}
	ehframe_fini(&image->eh);
	free(image);
}

const struct image_segment *image_segment_at(const struct image *image, uint64_t vaddr)
{
	const struct image_segment *found = NULL;

	for (uint32_t i = 0; i < image->nr_segments; i++) {
		const struct image_segment *s = &image->segments[i];

		if (vaddr >= s->vaddr && vaddr - s->vaddr < s->file_size &&
		    (!found || (s->exec && !found->exec)))
			found = s;
	}
	return found;
}

bool image_vaddr(const struct image *image, uint64_t offset, uint64_t *vaddr)
{
	const struct image_segment *found = NULL;

	for (uint32_t i = 0; i < image->nr_segments; i++) {
		const struct image_segment *s = &image->segments[i];

		if (offset >= s->offset && offset - s->offset < s->file_size &&
		    (!found || (s->exec && !found->exec)))
			found = s;
	}
	if (found)
		*vaddr = found->vaddr + (offset - found->offset);
	return found;
}

bool image_offset(const struct image *image, uint64_t vaddr, uint64_t *offset)
{
	const struct image_segment *s = image_segment_at(image, vaddr);

	if (s)
		*offset = s->offset + (vaddr - s->vaddr);
	return s;
}

/*
 * Return true if another function begins between @s and @vaddr: unwind tables have more functions
 * than a symbol table where local symbols were removed, and a symbol without a size would reach
 * over them (frame_dummy, in front of the first function of a program).
 */
static bool ends_before(const struct image *image, const struct image_symbol *s, uint64_t vaddr)
{
	struct ehframe_fde fde;

	return (s->rank & (IMAGE_RANK_TABLE | IMAGE_RANK_SIZE)) == IMAGE_RANK_TABLE &&
	       ehframe_find(&image->eh, vaddr, &fde) && fde.start > s->vaddr &&
	       (!image->eh.derived || fde.offset < image->eh.derived);
}

const struct image_symbol *image_find(const struct image *image, uint64_t vaddr)
{
	uint32_t lo = search_split(image->nr_symbols, i, image->symbols[i].vaddr <= vaddr);

	if (!lo)
		return NULL;
	assert(image->symbols[lo - 1].back < lo);
	for (uint32_t i = lo - 1, end = i - image->symbols[i].back; i + 1 > end; i--) {
		const struct image_symbol *s = &image->symbols[i];

		if (vaddr - s->vaddr < s->size)
			return ends_before(image, s, vaddr) ? NULL : s;
	}
	return NULL;
}

const char *image_symbol_name(const struct image *image, const struct image_symbol *s,
			      char buf[IMAGE_STUB_MAX], size_t *size)
{
	const char *name = image->names + s->name;

	assert(s->name < image->names_size);
	*size = strnlen(name, MIN(IMAGE_NAME_MAX, image->names_size - s->name));
	if (!s->stub)
		return name;
	memcpy(buf, name, *size);
	memcpy(buf + *size, "@plt", 4);
	*size += 4;
	assert(*size <= IMAGE_STUB_MAX);
	return buf;
}

bool image_symbol_is(const struct image *image, const struct image_symbol *s, const char *name)
{
	char buf[IMAGE_STUB_MAX];
	size_t size;
	const char *is = image_symbol_name(image, s, buf, &size);

	return size == strlen(name) && !memcmp(is, name, size);
}
