// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The one sanitiser between foreign bytes and every sink.
 *
 * Decides by Unicode data alone (utf8proc), never by locale. Accepted text has
 * the same width in every known terminal: code points on which width tables
 * differ (jamo, regional indicators, emoji modifiers) are refused.
 * Invariant: cleaning clean text changes nothing.
 *
 * Runs on: any thread; the arena has one writer.
 */
#include "symbols/base/base.h"

#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "symbols/base/text.h"

#define MARKS_MAX    2
#define REFUSED	     "\xc2\xb7"	    /* U+00B7 */
#define ELLIPSIS     "\xe2\x80\xa6" /* U+2026 */
#define ELLIPSIS_LEN (sizeof(ELLIPSIS) - 1)

/* One code point as drawn. */
struct glyph {
	const char *str;
	uint8_t size; /* bytes to write */
	uint8_t used; /* bytes of the source it was made of */
	uint8_t width;
	bool mark;
};

static bool is_mark(utf8proc_int32_t cp)
{
	switch (utf8proc_category(cp)) {
	case UTF8PROC_CATEGORY_MN:
	case UTF8PROC_CATEGORY_ME:
	case UTF8PROC_CATEGORY_MC:
		return true;
	default:
		return false;
	}
}

/*
 * Code points with a width that depends on the age of the terminal, of the C library and of
 * utf8proc: EastAsianWidth.txt of Unicode 16 against 15, DerivedGeneralCategory.txt likewise, and
 * the letters of circles and hexagrams that C libraries have called wide for longer. Without them,
 * utf8proc 2.8, 2.9 and 2.11 agree with glibc 2.36, 2.41 and 2.43, each with each (Debian 12, 13,
 * sid).
 */
static const struct {
	utf8proc_int32_t from, to;
} changed[] = {
	{ 0x2630, 0x2637 },   /* trigrams: wide since 16 */
	{ 0x268a, 0x268f },   /* monograms, digrams: wide since 16 */
	{ 0x3248, 0x324f },   /* circled numbers on squares */
	{ 0x4dc0, 0x4dff },   /* hexagrams: wide since 16 */
	{ 0x1171e, 0x1171e }, /* an Ahom sign: spacing since 16 */
	{ 0x1d300, 0x1d356 }, /* Tai Xuan Jing: wide since 16 */
	{ 0x1d360, 0x1d376 }, /* counting rods: wide since 16 */
	{ 0x1f3fb, 0x1f3ff }, /* skin tones, joined or not */
};

/* Test for code points with a width that depends on the terminal. */
static bool is_ambiguous(utf8proc_int32_t cp, const utf8proc_property_t *property)
{
	for (size_t i = 0; i < ARRAY_SIZE(changed); i++)
		if (cp >= changed[i].from && cp <= changed[i].to)
			return true;
	switch (property->boundclass) {
	case UTF8PROC_BOUNDCLASS_V:
	case UTF8PROC_BOUNDCLASS_T:
	case UTF8PROC_BOUNDCLASS_REGIONAL_INDICATOR:
		return true;
	default:
		return false;
	}
}

unsigned int text_cells(int32_t cp)
{
	int width = utf8proc_charwidth(cp);

	/* Spacing marks take a cell; utf8proc reports 0. */
	return !width && utf8proc_category(cp) == UTF8PROC_CATEGORY_MC ? 1 : (unsigned int)width;
}

/*
 * Test whether @cp may be drawn. *@width gets its cells: 0 only for marks that take
 * none.
 */
static bool accept(utf8proc_int32_t cp, uint8_t *width)
{
	const utf8proc_property_t *property = utf8proc_get_property(cp);

	switch (utf8proc_category(cp)) {
	case UTF8PROC_CATEGORY_CN:
	case UTF8PROC_CATEGORY_CC:
	case UTF8PROC_CATEGORY_CF:
	case UTF8PROC_CATEGORY_CS:
	case UTF8PROC_CATEGORY_CO:
	case UTF8PROC_CATEGORY_ZL:
	case UTF8PROC_CATEGORY_ZP:
		return false;
	default:
		break;
	}
	if (property->ignorable || is_ambiguous(cp, property))
		return false;
	*width = (uint8_t)text_cells(cp);
	return *width || is_mark(cp);
}

/* Read one glyph. @marks: the number on the base before it; -1: no base. */
static struct glyph next_glyph(const char *src, size_t size, int marks)
{
	struct glyph g = { .str = src, .size = 1, .used = 1, .width = 1 };
	utf8proc_int32_t cp = (unsigned char)src[0];
	utf8proc_ssize_t n;

	assert(size);
	if (cp >= 0x20 && cp < 0x7f)
		return g;
	n = utf8proc_iterate((const utf8proc_uint8_t *)src, (utf8proc_ssize_t)MIN(size, 4), &cp);
	if (n > 0)
		g.used = g.size = (uint8_t)n;
	if (n > 0 && accept(cp, &g.width)) {
		g.mark = is_mark(cp);
		if (!g.mark || (marks >= 0 && marks < MARKS_MAX))
			return g;
	}
	return (struct glyph){ REFUSED, sizeof(REFUSED) - 1, g.used, 1, false };
}

/* Count the printable ASCII bytes at the start. */
static size_t plain_size(const char *src, size_t size)
{
	const uint64_t ones = 0x0101010101010101ULL;
	uint64_t bytes;
	size_t at = 0;

	for (; size - at >= sizeof(bytes); at += sizeof(bytes)) {
		memcpy(&bytes, src + at, sizeof(bytes));
		/*
		 * Sets the highest bit of a byte below ' ', above '~' or not ASCII,
		 * and perhaps of the bytes after it.
		 */
		if ((bytes | (bytes - ' ' * ones) | (bytes + ones)) & 0x80 * ones)
			break;
	}
	while (at < size && src[at] >= ' ' && src[at] <= '~')
		at++;
	return at;
}

struct safe_text text_sanitise(char *dst, size_t dst_size, const void *src, size_t src_size)
{
	const char *from = src, *end = from + src_size;
	size_t limit, size = 0, cut = 0;
	uint16_t width = 0, cut_width = 0;
	int marks = -1;

	assert(src || !src_size);
	if (!dst_size)
		return TEXT("");
	limit = MIN(dst_size - 1, (size_t)TEXT_MAX);
	if (src_size <= limit && plain_size(src, src_size) == src_size) {
		memcpy(dst, src, src_size);
		dst[src_size] = '\0';
		return (struct safe_text){ dst, (uint16_t)src_size, (uint16_t)src_size };
	}
	while (from < end) {
		struct glyph g = next_glyph(from, (size_t)(end - from), marks);

		marks = g.mark ? marks + 1 : 0;
		/* The last grapheme start before the columns of the ellipsis. */
		if (!g.mark && size + ELLIPSIS_LEN <= limit) {
			cut = size;
			cut_width = width;
		}
		if (size + g.size > limit)
			break;
		memcpy(dst + size, g.str, g.size);
		size += g.size;
		width += g.width;
		from += g.used;
	}
	if (from < end) {
		size = cut;
		width = cut_width;
		if (limit >= ELLIPSIS_LEN) {
			memcpy(dst + size, ELLIPSIS, ELLIPSIS_LEN);
			size += ELLIPSIS_LEN;
			width++;
		}
	}
	assert(size < dst_size && width <= size);
	dst[size] = '\0';
	return (struct safe_text){ dst, (uint16_t)size, width };
}

static bool begins(const char *at, const char *word)
{
	return !strncmp(at, word, strlen(word));
}

/* Return the end of the arguments that begin at @at, a '<'; NULL if they do not end. */
static const char *skip_arguments(const char *at)
{
	unsigned int depth = 0;

	for (; *at; at++) {
		if (*at == '<')
			depth++;
		else if (*at == '>' && at[-1] != '-' && at[-1] != '=' && !--depth)
			return at + 1;
	}
	return NULL;
}

/*
 * Return whether template arguments begin at @at, a '<' of @name: not for operators,
 * "<impl X>" and "<lambda()>".
 */
static bool is_template(const char *name, const char *at)
{
	static const char operator[] = "operator";
	const size_t size = sizeof(operator) - 1;
	const char *word = at - (at > name && at[-1] == '<');

	if ((size_t)(word - name) >= size && !memcmp(word - size, operator, size))
		return false;
	if (at == name || begins(at, "<lambda") || begins(at, "<impl ") || begins(at, "<unnamed"))
		return false;
	return at[-1] == ':' || at[-1] == '_' || isalnum((unsigned char)at[-1]) || at[-1] & 0x80;
}

struct safe_text text_short_name(char buf[static TEXT_MAX], struct safe_text name)
{
	const char *at = name.str, *next;
	char out[TEXT_MAX + 2]; /* longer, so that a cut is marked */
	size_t n = 0;

	if (!memchr(name.str, '<', name.size))
		return name;
	while (*at && n + 2 <= sizeof(out)) {
		out[n++] = *at;
		if (*at++ != '<' || !is_template(name.str, at - 1))
			continue;
		next = skip_arguments(at - 1);
		if (!next)
			return name;
		out[n++] = '>';
		at = next;
	}
	return text_sanitise(buf, TEXT_MAX, out, n);
}

struct safe_text text_format(char *dst, size_t dst_size, const char *fmt, ...)
{
	assert(dst && dst_size);
	/* Cleaning halves at most (4 bytes -> 2), so a cut here is also a cut there. */
	char buf[2 * TEXT_MAX + 16];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	if (n < 0)
		return text_sanitise(dst, dst_size, "?", 1);
	return text_sanitise(dst, dst_size, buf, MIN((size_t)n, sizeof(buf) - 1));
}

size_t text_clip(struct safe_text t, unsigned int cols, unsigned int *width)
{
	size_t pos = 0, kept = 0;
	unsigned int cells = 0, kept_cells = 0;
	int marks = -1;

	while (pos < t.size) {
		struct glyph g = next_glyph(t.str + pos, t.size - pos, marks);

		marks = g.mark ? marks + 1 : 0;
		if (!g.mark) {
			kept = pos;
			kept_cells = cells;
		}
		if (cells + g.width > cols)
			break;
		cells += g.width;
		pos += g.used;
	}
	if (pos >= t.size) {
		kept = t.size;
		kept_cells = cells;
	}
	if (width)
		*width = kept_cells;
	return kept;
}

struct safe_text text_skip(struct safe_text t, unsigned int cells)
{
	unsigned int width;
	size_t size = text_clip(t, cells, &width);

	for (unsigned int n = cells; width < cells && size < t.size;)
		size = text_clip(t, ++n, &width);
	t.str += size;
	t.size = (uint16_t)(t.size - size);
	t.width = (uint16_t)(t.width - width);
	return t;
}

#define CHUNK_SIZE (64u << 10)

struct chunk {
	struct chunk *next;
	size_t used;
	char bytes[];
};

struct text_arena {
	struct chunk *head; /* the one in use */
	atomic_size_t size; /* all bytes held; relaxed: a figure only */
};

struct text_arena *text_arena_new(void)
{
	return calloc(1, sizeof(struct text_arena));
}

void text_arena_free(struct text_arena *arena)
{
	if (!arena)
		return;
	for (struct chunk *c = arena->head, *next; c; c = next) {
		next = c->next;
		free(c);
	}
	free(arena);
}

/* Take @size (<= CHUNK_SIZE) bytes that never move; NULL: out of memory. */
static char *arena_take(struct text_arena *arena, size_t size)
{
	struct chunk *c = arena->head;

	assert(size <= CHUNK_SIZE);
	if (!c || CHUNK_SIZE - c->used < size) {
		c = malloc(sizeof(*c) + CHUNK_SIZE);
		if (!c)
			return NULL;
		c->next = arena->head;
		c->used = 0;
		arena->head = c;
		atomic_fetch_add_explicit(&arena->size, sizeof(*c) + CHUNK_SIZE,
					  memory_order_relaxed);
	}
	c->used += size;
	return c->bytes + c->used - size;
}

struct safe_text text_arena_add(struct text_arena *arena, const void *src, size_t src_size)
{
	char buf[TEXT_MAX + 1];
	struct safe_text t = text_sanitise(buf, sizeof(buf), src, src_size);
	char *kept = arena ? arena_take(arena, (size_t)t.size + 1) : NULL;

	assert(src || !src_size);
	if (!kept)
		return TEXT("?");
	memcpy(kept, t.str, (size_t)t.size + 1);
	t.str = kept;
	return t;
}

size_t text_arena_size(const struct text_arena *arena)
{
	return arena ? atomic_load_explicit(&arena->size, memory_order_relaxed) : 0;
}

/* Return the Levenshtein distance: letters to change, insert or drop. */
static unsigned int distance(const char *a, const char *b)
{
	unsigned int row[TEXT_LIKE_MAX + 1];
	size_t nr = strlen(b);

	assert(nr <= TEXT_LIKE_MAX);
	for (size_t j = 0; j <= nr; j++)
		row[j] = (unsigned int)j;
	for (size_t i = 1; a[i - 1]; i++) {
		unsigned int diagonal = row[0];

		row[0] = (unsigned int)i;
		for (size_t j = 1; j <= nr; j++) {
			unsigned int change =
				diagonal + (strncasecmp(&a[i - 1], &b[j - 1], 1) != 0);

			diagonal = row[j];
			row[j] = MIN(MIN(row[j], row[j - 1]) + 1, change);
		}
	}
	return row[nr];
}

void text_like(struct text_like *like, const char *name)
{
	size_t typed = strlen(like->text), size = strlen(name);
	size_t most = MAX(2u, typed / 3), apart = typed > size ? typed - size : size - typed;
	unsigned int off;

	if (!typed || typed > TEXT_LIKE_MAX || size > TEXT_LIKE_MAX)
		return;
	/* The least number of inserted or dropped letters is known: @apart. */
	off = apart <= most ? distance(like->text, name) : (unsigned int)apart;
	if (off <= most && off < typed && (!like->found || off < like->best)) {
		like->found = name;
		like->best = off;
	}
	if (!like->begins && MIN(typed, size) > 2 &&
	    !strncasecmp(like->text, name, MIN(typed, size)))
		like->begins = name;
}
