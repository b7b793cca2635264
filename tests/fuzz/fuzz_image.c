// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Bytes as an ELF object: headers, unwind tables, symbols; facts, and the symbols of interpreters.
 * FUZZ: symbols
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/makers/detect.h"
#include "symbols/elf/elf.h"
#include "symbols/image/internal.h"
#include "symbols/base/base.h"
#include "symbols/sandbox/sandbox.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#ifdef HAVE_LZMA
#include <dlfcn.h>
#include <lzma.h>
#include <sys/mman.h>

#define DICTIONARIES (256UL << 20)

/* Memory of liblzma: one piece after the other, all free again at lzma_end(). */
static uint8_t *dictionaries;
static size_t used;

static void *take(void *ctx, size_t nr, size_t size)
{
	size_t at = used;

	if (!dictionaries)
		dictionaries = mmap(NULL, DICTIONARIES, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (dictionaries == MAP_FAILED || nr > DICTIONARIES || size > DICTIONARIES ||
	    nr * size > DICTIONARIES - used)
		return NULL;
	used += (nr * size + 63) & ~63UL;
	return dictionaries + at;
}

static void give_back(void *ctx, void *p)
{
}

/*
 * Instead of liblzma's, for xz_decode(): a dictionary of 8 MiB is the largest part of most inputs,
 * since ASan writes its shadow twice. The library is not built with ASan; input and output remain
 * on the heap.
 */
lzma_ret lzma_stream_decoder(lzma_stream *s, uint64_t memlimit, uint32_t flags)
{
	static lzma_ret (*library)(lzma_stream * s, uint64_t memlimit, uint32_t flags);
	static lzma_allocator allocator = { take, give_back, NULL };

	if (!library)
		library = (lzma_ret(*)(lzma_stream *, uint64_t, uint32_t))dlsym(RTLD_NEXT, "lzma_"
											   "stream_"
											   "decode"
											   "r");
	used = 0;
	s->allocator = &allocator;
	return library(s, memlimit, flags);
}
#endif

static void read_facts(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "python3.11", "php8.2", "ruby3.1", "perl", "node" };
	struct detect_file file;
	struct elffacts facts;
	struct elffile f;

	if (elffile_open(&f, -1, data, size, NULL))
		return;
	elffacts_collect(&facts, &f);
	if (!memchr(facts.alt.link, 0, sizeof(facts.alt.link)) ||
	    !memchr(facts.names.link, 0, sizeof(facts.names.link)))
		abort();
	detect_read_file(&file, &f, (enum lang_kind)(LANG_PYTHON + size % ARRAY_SIZE(names)),
			 names[size % ARRAY_SIZE(names)], 0);
	if (file.nr_eval > LANG_EVAL_MAX)
		abort();
	elffile_close(&f);
}

static void check_tables(const struct image *image)
{
	for (uint32_t i = 0; i < image->eh.nr_fdes; i++) {
		struct ehframe_fde fde, found;

		if (ehframe_at(&image->eh, i, &fde) &&
		    (fde.offset >= image->eh.size || !fde.size ||
		     !ehframe_find(&image->eh, fde.start, &found) || found.offset != fde.offset))
			abort();
	}
}

/* Derive the rows of code that has none, of all, or of parts as of a file that is too large. */
static void derive(struct image *image, const uint8_t *data, size_t size,
		   const struct derive_choice *choice)
{
	struct elffile f;

	if (elffile_open(&f, -1, data, size, NULL))
		abort();
	derive_image(image, &f, choice);
	elffile_close(&f);
	check_tables(image);
	for (uint32_t i = 0; choice && choice->alone && i < image->eh.nr_fdes; i++)
		if ((uint32_t)image->eh.fdes[i] < image->eh.derived)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct image *image;

	read_facts(data, size);
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
	check_tables(image);
	derive(image, data, size, NULL);
	image_free(image);
	for (int alone = 0; alone < 2; alone++) {
		struct derive_choice choice = { .visits_max = 100000, .alone = alone };

		for (size_t i = 0; i < sizeof(choice.sites) && size; i++)
			((uint8_t *)choice.sites)[i] = data[(i * 7 + 1) % size];
		if (image_read_memory(&image, data, size, NULL))
			abort();
		derive(image, data, size, &choice);
		image_free(image);
	}
	return 0;
}
