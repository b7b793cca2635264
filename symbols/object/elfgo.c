// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Walk the function table of Go: sorted pairs of (offset of code, offset of the
 * description); the second word of a description is the offset of the name, the fifth that of the
 * depths of the stack.
 *
 * Runs in the cage. Every byte is hostile.
 */
#include "symbols/object/elfgo.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TABLE_SIZE_MAX	(512UL << 20)
#define FRAMES_SIZE_MAX (256UL << 20)

#define MAGIC_1_18  0xfffffff0U
#define MAGIC_1_20  0xfffffff1U
#define HEADER_SIZE (8 + 8 * 8)
/* The start of code: in the header, 0 since Go 1.26; then in runtime.moduledata. */
#define HEADER_TEXT (8 + 2 * 8)
#define MODULE_TEXT (22 * 8)

struct table {
	const uint8_t *bytes; /* NUL-terminated as a whole */
	uint64_t size;
	uint64_t nr, text, names, steps, functions;
	bool has_line; /* descriptions have the line of the function: since 1.20 */
};

static uint64_t word_at(const struct table *g, uint64_t offset, unsigned int size)
{
	uint64_t word = 0;

	if (offset > g->size || size > g->size - offset)
		return 0;
	memcpy(&word, g->bytes + offset, size); /* all supported machines are little-endian */
	return word;
}

/* Read the header; false: unknown version. */
static bool read_header(struct table *g)
{
	uint32_t magic = (uint32_t)word_at(g, 0, 4);

	if (g->size < HEADER_SIZE || (magic != MAGIC_1_18 && magic != MAGIC_1_20) || g->bytes[4] ||
	    g->bytes[5] || g->bytes[7] != 8)
		return false;
	g->nr = word_at(g, 8, 8);
	g->text = word_at(g, HEADER_TEXT, 8);
	g->names = word_at(g, 8 + 3 * 8, 8);
	g->steps = word_at(g, 8 + 6 * 8, 8);
	g->has_line = magic == MAGIC_1_20;
	g->functions = word_at(g, 8 + 7 * 8, 8);
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
	return size ? elfsym_add_named(t, g->text + start, end - start,
				       (const char *)g->bytes + name, size)
		    : 0;
}

/*
 * Find the start of Go's code where the header has none. It is not that of .text: an external
 * linker puts startup code before it.
 */
static bool find_text(const struct elffile *f, struct table *g)
{
	const Elf64_Shdr *module = elffile_section(f, ".go.module");

	return module && elffile_pointer(f, module->sh_addr + MODULE_TEXT, &g->text);
}

/* Read the table of @f; the caller frees g->bytes. 0, -ENOENT without a known one, or -errno. */
static int read_table(const struct elffile *f, struct table *g)
{
	const Elf64_Shdr *s = elffile_section(f, ".gopclntab");
	void *bytes;
	int rc;

	if (!s)
		s = elffile_section(f, ".data.rel.ro.gopclntab");
	if (!s || s->sh_size > TABLE_SIZE_MAX || f->elf_class != ELFCLASS64)
		return -ENOENT;
	rc = elffile_read_alloc(f, s->sh_offset, s->sh_size, &bytes);
	if (rc)
		return rc;
	*g = (struct table){ .bytes = bytes, .size = s->sh_size };
	if (read_header(g) && (g->text || find_text(f, g)))
		return 0;
	free(bytes);
	return -ENOENT;
}

int elfgo_add(struct elfsym *t, const struct elffile *f)
{
	struct table g;
	int rc = read_table(f, &g);

	if (rc)
		return rc;
	for (uint64_t i = 0; i < g.nr && !rc; i++)
		rc = add_function(t, &g, i);
	free((void *)(uintptr_t)g.bytes);
	return rc;
}

/* ---- unwind tables: the depth of the stack at each instruction ---- */

#define STEPS_MAX     (4u << 20) /* of all functions */
#define FLAG_TOP      1		 /* the outermost frame of a stack */
#define FLAG_SP_WRITE 2		 /* changes to another stack: nothing is known */
#define FLAG_ASM      4		 /* assembly: may not save the frame pointer */
#define DEPTH_MAX     (1 << 30)

/* DWARF 5, 7.24; registers of the x86-64 ABI. */
enum { CFA_NOP, CFA_ADVANCE4 = 4, CFA_UNDEFINED = 7, CFA_DEF_CFA = 0xc, CFA_DEF_CFA_OFFSET = 0xe };
enum { CFA_OFFSET = 0x80, CFA_RESTORE = 0xc0, RBP = 6, RSP = 7, RIP = 16 };

struct writer {
	uint8_t *bytes;
	size_t size, capacity;
	uint32_t nr_steps; /* also of functions that are left out */
	bool failed;	   /* no memory */
};

static void put(struct writer *w, const void *bytes, size_t size)
{
	if (w->size + size > w->capacity && !w->failed) {
		size_t capacity = MAX(2 * w->capacity, w->size + size + 4096);
		uint8_t *grown = realloc(w->bytes, capacity);

		w->failed = !grown;
		w->bytes = grown ? grown : w->bytes;
		w->capacity = grown ? capacity : w->capacity;
	}
	if (w->failed)
		return;
	memcpy(w->bytes + w->size, bytes, size);
	w->size += size;
}

static void put_byte(struct writer *w, unsigned int byte)
{
	put(w, &(uint8_t){ (uint8_t)byte }, 1);
}

static void put_u32(struct writer *w, uint32_t word)
{
	put(w, &word, sizeof(word));
}

static void put_uleb(struct writer *w, uint64_t n)
{
	do {
		put_byte(w, (n & 0x7f) | (n > 0x7f ? 0x80 : 0));
		n >>= 7;
	} while (n);
}

/* Complete the record that begins at @start: its length, and a multiple of 8 bytes. */
static void end_record(struct writer *w, size_t start)
{
	uint32_t length;

	while ((w->size - start) % 8)
		put_byte(w, CFA_NOP);
	length = (uint32_t)(w->size - start - 4);
	if (!w->failed)
		memcpy(w->bytes + start, &length, sizeof(length));
}

/* At the entry of each function: CFA is rsp + 8, the return address below it. */
static void put_cie(struct writer *w)
{
	put_u32(w, 0);
	put_u32(w, UINT32_MAX);
	put_byte(w, 3);	   /* version */
	put_byte(w, 0);	   /* no augmentation */
	put_byte(w, 1);	   /* code alignment */
	put_byte(w, 0x78); /* data alignment: -8 */
	put_byte(w, RIP);
	put_byte(w, CFA_DEF_CFA);
	put_byte(w, RSP);
	put_byte(w, 8);
	put_byte(w, CFA_OFFSET | RIP);
	put_byte(w, 1);
	end_record(w, 0);
}

/* Read a varint at *@at of the table. Return false at the end of the table. */
static bool read_varint(const struct table *g, uint64_t *at, uint32_t *n)
{
	*n = 0;
	for (unsigned int shift = 0; shift < 35; shift += 7) {
		uint8_t byte;

		if (*at >= g->size)
			return false;
		byte = g->bytes[(*at)++];
		*n |= (uint32_t)((uint64_t)(byte & 0x7f) << shift);
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* The steps of one function: pairs of differences, of the depth and of the address after it. */
struct steps {
	const struct table *g;
	uint64_t at;
	uint32_t from, end; /* the range of addresses, from the entry */
	int64_t depth;
	bool first;
};

/* Read the next step. Return false at the end, or if it is wrong (@depth below zero then). */
static bool next_step(struct steps *s)
{
	uint32_t value, length;

	s->from = s->end;
	if (!read_varint(s->g, &s->at, &value) || (!value && !s->first))
		return false;
	s->depth += value & 1 ? -(int64_t)(value >> 1) - 1 : (int64_t)(value >> 1);
	s->first = false;
	if (!read_varint(s->g, &s->at, &length) || !length || length > DEPTH_MAX - s->end ||
	    s->depth < 0 || s->depth > DEPTH_MAX) {
		s->depth = -1;
		return false;
	}
	s->end += length;
	return true;
}

/* Advance from *@at to @to. */
static void put_advance(struct writer *w, uint32_t *at, uint32_t to)
{
	if (to == *at)
		return;
	put_byte(w, CFA_ADVANCE4);
	put_u32(w, to - *at);
	*at = to;
}

/*
 * Return how long after the begin of the first deeper step the frame pointer is in its slot, at
 * CFA-16: it is pushed (since Go 1.21), or moved there by the next instruction.
 */
static uint32_t save_length(const struct steps *s)
{
	return s->depth == 8 && s->end - s->from < 16 ? 0
	       : s->depth == 8			      ? 4
	       : s->depth < 136			      ? 5
						      : 8;
}

/* The place of the frame pointer, while the steps are written. */
struct saved {
	bool now, ever;
};

/* Write the place of the frame pointer from this step on. */
static void put_saved(struct writer *w, const struct steps *s, struct saved *saved, uint32_t *at)
{
	uint32_t later = saved->ever ? 0 : save_length(s);

	if (saved->now && !s->depth) {
		put_advance(w, at, s->from);
		put_byte(w, CFA_RESTORE | RBP);
		saved->now = false;
	} else if (!saved->now && s->depth && s->end - s->from > later) {
		put_advance(w, at, s->from + later);
		put_byte(w, CFA_OFFSET | RBP);
		put_byte(w, 2);
		saved->now = saved->ever = true;
	}
}

/* Write the steps of a function as instructions. Return false if they are not acceptable. */
static bool put_steps(struct writer *w, struct steps *s, unsigned int flags)
{
	struct saved saved = { false, false };
	uint32_t at = 0;
	int64_t depth = 0;

	while (w->nr_steps++ < STEPS_MAX && next_step(s)) {
		if (s->depth != depth) {
			put_advance(w, &at, s->from);
			put_byte(w, CFA_DEF_CFA_OFFSET);
			put_uleb(w, (uint64_t)s->depth + 8);
		}
		depth = s->depth;
		/* Of assembly the callers need the depth alone. */
		if (!(flags & FLAG_ASM))
			put_saved(w, s, &saved, &at);
	}
	return s->depth >= 0 && s->end;
}

/* Write the record of function @i, unless its stack is not described. */
static void put_function(struct writer *w, const struct table *g, uint64_t i)
{
	uint64_t entry = g->functions + i * 8;
	uint64_t start = word_at(g, entry, 4), end = word_at(g, entry + 8, 4);
	uint64_t about = g->functions + word_at(g, entry + 4, 4);
	uint64_t steps = word_at(g, about + 16, 4);
	unsigned int flags = (unsigned int)word_at(g, about + (g->has_line ? 41 : 37), 1);
	struct steps s = { .g = g, .at = g->steps + steps, .depth = -1, .first = true };
	size_t begin = w->size;

	if (end <= start || about > g->size - 48 || !steps || g->steps >= g->size ||
	    flags & FLAG_SP_WRITE)
		return;
	put_u32(w, 0);
	put_u32(w, 0); /* the CIE */
	put(w, &(uint64_t){ g->text + start }, 8);
	put(w, &(uint64_t){ end - start }, 8);
	if (flags & FLAG_TOP) {
		put_byte(w, CFA_UNDEFINED);
		put_byte(w, RIP);
	}
	if (!put_steps(w, &s, flags)) {
		w->size = begin;
		return;
	}
	/* Padding follows the code. */
	if (!w->failed)
		memcpy(w->bytes + begin + 16, &(uint64_t){ MIN(s.end, end - start) }, 8);
	end_record(w, begin);
}

int elfgo_frames(const struct elffile *f, uint8_t **out, size_t *size)
{
	struct writer w = { .bytes = NULL };
	struct table g;
	int rc = f->machine == EM_X86_64 ? read_table(f, &g) : -ENOENT;

	if (rc)
		return rc;
	put_cie(&w);
	for (uint64_t i = 0; i < g.nr && !w.failed && w.nr_steps < STEPS_MAX; i++)
		put_function(&w, &g, i);
	free((void *)(uintptr_t)g.bytes);
	if (w.failed || w.size > FRAMES_SIZE_MAX) {
		free(w.bytes);
		return w.failed ? -ENOMEM : -EFBIG;
	}
	*out = w.bytes;
	*size = w.size;
	return 0;
}
