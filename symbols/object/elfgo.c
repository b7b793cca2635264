// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Walk the function table of Go: sorted pairs of (offset of code, offset of the
 * description); the second word of a description is the offset of the name.
 *
 * Runs on: a helper.
 */
#include "symbols/object/elfgo.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC_1_18  0xfffffff0U
#define MAGIC_1_20  0xfffffff1U
#define HEADER_SIZE (8 + 8 * 8)

struct table {
	const uint8_t *bytes; /* NUL-terminated as a whole */
	uint64_t size;
	uint64_t nr, text, names, functions;
};

static uint64_t word_at(const struct table *g, uint64_t offset, unsigned int size)
{
	uint64_t word = 0;

	if (offset > g->size || size > g->size - offset)
		return 0;
	memcpy(&word, g->bytes + offset, size); /* all supported machines are little-endian */
	return word;
}

/*
 * Read the header; false: unknown version. @text: the start of code if the header
 * has none.
 */
static bool read_header(struct table *g, uint64_t text)
{
	uint32_t magic = (uint32_t)word_at(g, 0, 4);

	if (g->size < HEADER_SIZE || (magic != MAGIC_1_18 && magic != MAGIC_1_20) || g->bytes[4] ||
	    g->bytes[5] || g->bytes[7] != 8)
		return false;
	g->nr = word_at(g, 8, 8);
	g->text = word_at(g, 8 + 2 * 8, 8);
	g->names = word_at(g, 8 + 3 * 8, 8);
	g->functions = word_at(g, 8 + 7 * 8, 8);
	if (!g->text) /* filled in by a relocation */
		g->text = text;
	return g->names < g->size && g->functions < g->size && g->nr < ELFSYM_SYMBOLS_MAX &&
	       (g->nr + 1) * 8 <= g->size - g->functions;
}

/* Add function @i, which ends at the begin of the next one. */
static int add_function(struct elfsym *t, const struct table *g, uint64_t i)
{
	uint64_t entry = g->functions + i * 8;
	uint64_t start = word_at(g, entry, 4), end = word_at(g, entry + 8, 4);
	uint64_t about = g->functions + word_at(g, entry + 4, 4);
	uint64_t name = g->names + word_at(g, about + 4, 4);
	size_t size;

	if (end <= start || about > g->size - 8 || name >= g->size)
		return 0;
	size = strnlen((const char *)g->bytes + name, IMAGE_NAME_MAX);
	if (!size)
		return 0;
	return elfsym_add_named(t, g->text + start, end - start, (const char *)g->bytes + name,
				size);
}

int elfgo_add(struct elfsym *t, const struct elffile *f)
{
	const Elf64_Shdr *s = elffile_section(f, ".gopclntab"), *text;
	struct table g = { 0 };
	void *bytes;
	int rc;

	if (!s)
		s = elffile_section(f, ".data.rel.ro.gopclntab");
	text = elffile_section(f, ".text");
	if (!s || !text || s->sh_size > ELFGO_SIZE_MAX || f->elf_class != ELFCLASS64)
		return -ENOENT;
	rc = elffile_read_alloc(f, s->sh_offset, s->sh_size, &bytes);
	if (rc)
		return rc;
	g.bytes = bytes;
	g.size = s->sh_size;
	rc = read_header(&g, text->sh_addr) ? 0 : -ENOENT;
	for (uint64_t i = 0; i < g.nr && !rc; i++)
		rc = add_function(t, &g, i);
	free(bytes);
	return rc;
}
