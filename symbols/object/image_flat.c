// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Write an image as bytes, and take it back.
 *
 * Any thread. Names and .eh_frame are hostile in any image: they are checked where they are read.
 */
#include "symbols/object/image_flat.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "symbols/elf/elf.h"
#include "symbols/object/elfsym.h"

#define ALIGNMENT 16U

struct flat {
	uint64_t sigreturn, eh_vaddr, eh_size, names_size;
	uint32_t nr_segments, nr_symbols, nr_fdes, nr_refused, nr_cies;
	uint32_t cies[EHFRAME_CIES_MAX]; /* offsets */
	uint32_t source, trouble;	 /* numbers of texts */
	uint16_t machine;
	uint8_t elf_class, sigreturn_size, complete, build_id_size, loop;
	uint8_t build_id[20];
};

/* Where the arrays are, from the begin of the head. */
struct places {
	uint64_t segments, symbols, fdes, names, eh, end;
};

/* The texts of images; the first one is none. */
static const char *const texts[] = {
	NULL,
	".symtab",
	"debug file",
	"debug link",
	".gnu_debugdata",
	".gopclntab",
	".dynsym",
	"none",
	IMAGE_TOO_MANY_SYMBOLS,
	IMAGE_TOO_LARGE,
	IMAGE_DEBUGDATA_TOO_LARGE,
};

static uint32_t number_of(const char *text)
{
	for (uint32_t i = 1; text && i < ARRAY_SIZE(texts); i++)
		if (!strcmp(texts[i], text))
			return i;
	return 0;
}

static uint64_t align(uint64_t at)
{
	return (at + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1);
}

static struct places places_of(const struct flat *f)
{
	struct places p;

	p.segments = align(sizeof(*f));
	p.symbols = align(p.segments + f->nr_segments * sizeof(struct image_segment));
	p.fdes = align(p.symbols + f->nr_symbols * sizeof(struct image_symbol));
	p.names = align(p.fdes + f->nr_fdes * sizeof(uint64_t));
	p.eh = align(p.names + f->names_size);
	p.end = p.eh + f->eh_size;
	return p;
}

/* Append @size bytes at @at bytes after @base. */
static void put_at(struct cage_reply *reply, size_t base, uint64_t at, const void *bytes,
		   size_t size)
{
	static const uint8_t zeros[ALIGNMENT];
	size_t here = reply->written + reply->size;

	cage_put(reply, zeros, (size_t)(base + at - here) % ALIGNMENT);
	cage_put(reply, bytes, size);
}

void image_flat_put(struct cage_reply *reply, const struct image *image)
{
	struct flat f = {
		.sigreturn = image->sigreturn,
		.eh_vaddr = image->eh.vaddr,
		.eh_size = image->eh.size,
		.names_size = image->names_size,
		.nr_segments = image->nr_segments,
		.nr_symbols = image->nr_symbols,
		.nr_fdes = image->eh.nr_fdes,
		.nr_refused = image->eh.nr_refused,
		.source = number_of(image->source),
		.trouble = number_of(image->trouble),
		.machine = image->machine,
		.elf_class = image->elf_class,
		.sigreturn_size = image->sigreturn_size,
		.complete = image->complete,
		.loop = image->loop,
		.build_id_size = image->build_id_size,
	};
	struct places p = places_of(&f);
	size_t base = reply->written + reply->size;

	f.nr_cies = ehframe_cies(&image->eh, f.cies);
	memcpy(f.build_id, image->build_id, sizeof(f.build_id));
	put_at(reply, base, 0, &f, sizeof(f));
	put_at(reply, base, p.segments, image->segments,
	       image->nr_segments * sizeof(*image->segments));
	put_at(reply, base, p.symbols, image->symbols, image->nr_symbols * sizeof(*image->symbols));
	put_at(reply, base, p.fdes, image->eh.fdes, image->eh.nr_fdes * sizeof(*image->eh.fdes));
	put_at(reply, base, p.names, image->names, image->names_size);
	put_at(reply, base, p.eh, image->eh.bytes, image->eh.size);
}

/* Test the numbers of the head. */
static bool head_ok(const struct flat *f)
{
	return f->nr_segments && f->nr_segments <= ELFFILE_PHDRS_MAX &&
	       f->nr_symbols <= 2 * ELFSYM_SYMBOLS_MAX && f->nr_fdes <= EHFRAME_FDES_MAX &&
	       f->nr_cies <= EHFRAME_CIES_MAX && f->names_size <= 2UL * ELFSYM_NAMES_MAX &&
	       f->eh_size <= UINT32_MAX && (f->eh_size || !f->nr_fdes) &&
	       f->build_id_size <= sizeof(f->build_id) && f->source &&
	       f->source < ARRAY_SIZE(texts) && f->trouble < ARRAY_SIZE(texts) &&
	       f->complete <= 1 &&
	       (!f->eh_size || (f->elf_class == ELFCLASS64 &&
				(f->machine == EM_X86_64 || f->machine == EM_AARCH64)));
}

static bool segments_ok(const uint8_t *bytes, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		const struct image_segment *s = (const void *)(bytes + i * sizeof(*s));

		/* A bool has two values. */
		if (bytes[i * sizeof(*s) + offsetof(struct image_segment, exec)] > 1 ||
		    s->file_size > s->mem_size || s->file_size > UINT64_MAX - s->offset ||
		    s->mem_size > UINT64_MAX - s->vaddr)
			return false;
	}
	return true;
}

static bool symbols_ok(const uint8_t *bytes, uint32_t nr, uint64_t names_size)
{
	uint64_t before = 0;

	for (uint32_t i = 0; i < nr; i++) {
		const struct image_symbol *s = (const void *)(bytes + i * sizeof(*s));

		if (bytes[i * sizeof(*s) + offsetof(struct image_symbol, stub)] > 1 ||
		    s->name >= names_size || s->back > MIN(i, IMAGE_NESTED_MAX) ||
		    (i && s->vaddr <= before) || s->size > UINT64_MAX - s->vaddr)
			return false;
		before = s->vaddr;
	}
	return true;
}

static bool fdes_ok(const uint64_t *fdes, uint32_t nr, uint64_t eh_size)
{
	for (uint32_t i = 0; i < nr; i++)
		if ((uint32_t)fdes[i] >= eh_size || (i && fdes[i] >> 32 < fdes[i - 1] >> 32))
			return false;
	return true;
}

static bool is_valid(const struct flat *f, const uint8_t *bytes, size_t size)
{
	struct places p;

	if (!head_ok(f))
		return false;
	p = places_of(f);
	return p.end == size && (!f->names_size || !bytes[p.names + f->names_size - 1]) &&
	       segments_ok(bytes + p.segments, f->nr_segments) &&
	       symbols_ok(bytes + p.symbols, f->nr_symbols, f->names_size) &&
	       fdes_ok((const void *)(bytes + p.fdes), f->nr_fdes, f->eh_size);
}

/* Copy small answers to pages of their own, which go back to the kernel whole. */
static int to_pages(struct cage_answer *a)
{
	void *pages;

	if (a->mapped || !a->size)
		return 0;
	pages = mmap(NULL, a->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED)
		return -ENOMEM;
	memcpy(pages, a->bytes, a->size);
	free(a->bytes);
	a->bytes = pages;
	a->mapped = true;
	return 0;
}

/* Point the image at its bytes. 0 or -ENOMEM. */
static int point(struct image *image, const struct flat *f, uint8_t *bytes)
{
	struct places p = places_of(f);

	image->machine = f->machine;
	image->elf_class = f->elf_class;
	image->sigreturn = f->sigreturn;
	image->sigreturn_size = f->sigreturn_size;
	image->source = texts[f->source];
	image->trouble = texts[f->trouble];
	image->complete = f->complete;
	image->loop = f->loop;
	memcpy(image->build_id, f->build_id, sizeof(image->build_id));
	image->build_id_size = f->build_id_size;
	image->segments = (struct image_segment *)(void *)(bytes + p.segments);
	image->nr_segments = f->nr_segments;
	image->symbols = (struct image_symbol *)(void *)(bytes + p.symbols);
	image->nr_symbols = f->nr_symbols;
	image->names = (char *)bytes + p.names;
	image->names_size = f->names_size;
	if (!f->eh_size)
		return 0;
	image->eh.machine = f->machine;
	image->eh.vaddr = f->eh_vaddr;
	image->eh.bytes = bytes + p.eh;
	image->eh.size = f->eh_size;
	image->eh.fdes = (uint64_t *)(void *)(bytes + p.fdes);
	image->eh.nr_fdes = f->nr_fdes;
	image->eh.nr_refused = f->nr_refused;
	return ehframe_meet(&image->eh, f->cies, f->nr_cies);
}

int image_flat_take(struct image **out, struct cage_answer *a, size_t at)
{
	struct image *image;
	struct flat f;
	int rc;

	if (a->size < at || a->size - at < sizeof(f) || at % ALIGNMENT)
		return -EBADMSG;
	memcpy(&f, a->bytes + at, sizeof(f));
	if (!is_valid(&f, a->bytes + at, a->size - at))
		return -EBADMSG;
	rc = to_pages(a);
	image = rc ? NULL : calloc(1, sizeof(*image));
	if (!image)
		return -ENOMEM;
	image->block = a->bytes;
	image->block_size = a->size;
	rc = point(image, &f, a->bytes + at);
	*a = (struct cage_answer){ 0 };
	if (rc) {
		image_free(image);
		return rc;
	}
	*out = image;
	return 0;
}
