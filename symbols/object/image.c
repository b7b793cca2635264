// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Look-ups in an image: segments, symbols, names.
 *
 * Any thread. Invariant: an image does not change after it was read.
 */
#include "symbols/object/image.h"
#include "symbols/base/search.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* malloc(3) maps arrays of this size by themselves: see set_up_heap() of ui/main.c. */
#define ARRAY_MAPPED (128U << 10)
#define ALIGN	     16U

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
	return sizeof(*image) + image->nr_segments * sizeof(*image->segments) + image->eh.size +
	       image->eh.nr_fdes * sizeof(*image->eh.fdes) +
	       (size_t)image->nr_symbols * sizeof(*image->symbols) + image->names_size;
}

/* Return the room in the block for an array of @size bytes. */
static size_t room(size_t size)
{
	return size < ARRAY_MAPPED ? (size + ALIGN - 1) & ~(size_t)(ALIGN - 1) : 0;
}

/* Move an array to *@at if it is small. Return where it is. */
static void *settle(char **at, void *array, size_t size)
{
	void *settled = *at;

	if (!array || !room(size))
		return array;
	memcpy(settled, array, size);
	free(array);
	*at += room(size);
	return settled;
}

struct image *image_pack(struct image *image)
{
	size_t segments = image->nr_segments * sizeof(*image->segments);
	size_t symbols = (size_t)image->nr_symbols * sizeof(*image->symbols);
	size_t fdes = image->eh.nr_fdes * sizeof(*image->eh.fdes);
	size_t size = room(sizeof(*image)) + room(segments) + room(symbols) +
		      room(image->names_size) + room(image->eh.size) + room(fdes) +
		      room(ehframe_cies_size());
	char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct image *packed;

	if (at == MAP_FAILED)
		return image;
	packed = settle(&at, image, sizeof(*image));
	packed->block_size = size;
	packed->segments = settle(&at, packed->segments, segments);
	packed->symbols = settle(&at, packed->symbols, symbols);
	packed->names = settle(&at, packed->names, packed->names_size);
	packed->eh.bytes = settle(&at, (void *)(uintptr_t)packed->eh.bytes, packed->eh.size);
	packed->eh.fdes = settle(&at, packed->eh.fdes, fdes);
	packed->eh.cies = settle(&at, packed->eh.cies, ehframe_cies_size());
	return packed;
}

/* Free an array that is not in the block. */
static void free_apart(const struct image *image, const void *array)
{
	if ((uintptr_t)array - (uintptr_t)image >= image->block_size)
		free((void *)(uintptr_t)array);
}

void image_free(struct image *image)
{
	if (!image)
		return;
	free_apart(image, image->eh.bytes);
	free_apart(image, image->eh.fdes);
	free_apart(image, image->eh.cies);
	free_apart(image, image->segments);
	free_apart(image, image->symbols);
	free_apart(image, image->names);
	if (image->block_size)
		munmap(image, image->block_size);
	else
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

const struct image_symbol *image_find(const struct image *image, uint64_t vaddr)
{
	uint32_t lo = search_split(image->nr_symbols, i, image->symbols[i].vaddr <= vaddr);

	if (!lo)
		return NULL;
	assert(image->symbols[lo - 1].back < lo);
	for (uint32_t i = lo - 1, end = i - image->symbols[i].back; i + 1 > end; i--) {
		const struct image_symbol *s = &image->symbols[i];

		if (vaddr - s->vaddr < s->size)
			return s;
	}
	return NULL;
}

const char *image_symbol_name(const struct image *image, const struct image_symbol *s,
			      char buf[IMAGE_STUB_MAX], size_t *size)
{
	const char *name = image->names + s->name;

	*size = strnlen(name, MIN(IMAGE_NAME_MAX, image->names_size - s->name));
	if (!s->stub)
		return name;
	memcpy(buf, name, *size);
	memcpy(buf + *size, "@plt", 4);
	*size += 4;
	return buf;
}

bool image_symbol_is(const struct image *image, const struct image_symbol *s, const char *name)
{
	char buf[IMAGE_STUB_MAX];
	size_t size;
	const char *is = image_symbol_name(image, s, buf, &size);

	return size == strlen(name) && !memcmp(is, name, size);
}
