/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Text that every sink (screen, batch, log, JSON) may print as it is.
 *
 * Process names, paths, symbols and command lines are hostile bytes. They become struct safe_text
 * at the point of entry, and nothing else is ever drawn or printed. Safe text is valid UTF-8
 * without C0, C1, DEL, bidi controls (U+202A-E, U+2066-9), zero-width and private or unassigned
 * code points, line separators, or more than two combining marks on a base; each byte or code point
 * refused becomes U+00B7 (middle dot).
 *
 * Any thread; no state.
 */
#ifndef SYMBOLS_BASE_TEXT_H
#define SYMBOLS_BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>

struct text_arena;

/* Borrowed bytes: NUL-terminated, @size without the NUL, @width in cells. */
struct safe_text {
	const char *str;
	uint16_t size;
	uint16_t width;
};

/* Make safe text of a string literal of printable ASCII. */
#define TEXT(literal) ((struct safe_text){ "" literal, sizeof(literal) - 1, sizeof(literal) - 1 })
/* The longest text kept; longer input ends in "…". */
#define TEXT_MAX 1024

/*
 * Clean @src into @dst (NUL-terminated, at most @dst_size bytes with the NUL, never
 * cut inside a code point). @dst must live as long as the result.
 */
struct safe_text text_sanitise(char *dst, size_t dst_size, const void *src, size_t src_size);
/* Format, then clean: for our words mixed with foreign ones. */
struct safe_text text_format(char *dst, size_t dst_size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/*
 * Return @name without template arguments: "Engine<>::crank<>", or @name if there are none
 * or they are malformed. Any thread; pure.
 */
struct safe_text text_short_name(char buf[static TEXT_MAX], struct safe_text name);
/*
 * Return the bytes of @t that fit into @cols cells, cut only between graphemes;
 * *@width gets the cells they take.
 */
size_t text_clip(struct safe_text t, unsigned int cols, unsigned int *width);
/* Return @t without its first @cells; more is left out where they end in a wide character. */
struct safe_text text_skip(struct safe_text t, unsigned int cells);
/* Return the cells that a code point of safe text takes; 0: it is drawn over the one before. */
unsigned int text_cells(int32_t cp);
struct text_arena *text_arena_new(void);
void text_arena_free(struct text_arena *arena);
/* Add a cleaned copy of @src; TEXT("?") when out of memory. */
struct safe_text text_arena_add(struct text_arena *arena, const void *src, size_t src_size);
size_t text_arena_size(const struct text_arena *arena);

/*
 * Find the name that was meant by the mistyped @text: offer all names, one by one.
 * @found: the name with the smallest distance; @begins: the first name that is a
 * prefix of the text or the reverse. NULL: none.
 */
struct text_like {
	const char *text;
	const char *found, *begins;
	unsigned int best; /* distance of @found */
};

#define TEXT_LIKE_MAX 160 /* longer names are not compared */

void text_like(struct text_like *like, const char *name);

/*
 * Write @value like "%*x", without a NUL, and return the end. At most 16 digits or
 * @width.
 */
static inline char *text_put_hex(char *at, uint64_t value, int width)
{
	int digits = value ? (67 - __builtin_clzll(value)) / 4 : 1;

	for (; width > digits; width--)
		*at++ = ' ';
	for (int i = digits - 1; i >= 0; i--, value >>= 4)
		at[i] = "0123456789abcdef"[value & 15];
	return at + digits;
}

#endif
