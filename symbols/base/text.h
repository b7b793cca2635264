/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Text that every sink (screen, batch, log, JSON) may print as it is.
 *
 * Process names, paths, symbols and command lines are hostile bytes. They
 * become struct safe_text at the model's edge, and nothing else is ever drawn
 * or printed. Safe text is valid UTF-8 without C0, C1, DEL, bidi controls
 * (U+202A-E, U+2066-9), zero-width and private or unassigned code points,
 * line separators, or more than two combining marks on a base; each byte or
 * code point refused becomes U+00B7 (middle dot).
 *
 * Any thread; no state.
 */
#ifndef SYMBOLS_BASE_TEXT_H
#define SYMBOLS_BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* Borrowed bytes: NUL-terminated, @size without the NUL, @width in cells. */
struct safe_text {
	const char *str;
	uint16_t size;
	uint16_t width;
};

/* A string literal of printable ASCII. */
#define TEXT(literal) ((struct safe_text){ "" literal, sizeof(literal) - 1, sizeof(literal) - 1 })

/* The longest text kept; longer input ends in "…". */
#define TEXT_MAX 1024

/*
 * Clean @src into @dst (NUL-terminated, at most @dst_size bytes with the NUL,
 * never cut inside a code point). @dst must live as long as the result.
 */
struct safe_text text_sanitise(char *dst, size_t dst_size, const void *src, size_t src_size);

/* Format, then clean. For text that mixes our words with foreign ones. */
struct safe_text text_format(char *dst, size_t dst_size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Bytes of @t that fit into @cols cells, cut only between grapheme starts;
 * *@width gets the cells they take.
 */
size_t text_clip(struct safe_text t, unsigned int cols, unsigned int *width);

/* Names that live as long as the arena. One writer; readers of the texts: any thread. */
struct text_arena;

struct text_arena *text_arena_new(void);
void text_arena_free(struct text_arena *arena);
/* Cleaned copy of @src in the arena; TEXT("?") when memory is out. */
struct safe_text text_arena_add(struct text_arena *arena, const void *src, size_t src_size);
size_t text_arena_size(const struct text_arena *arena);

/*
 * What somebody meant who typed @text: offer all names, one by one. @found:
 * the one with the fewest letters to change, insert or drop; @begins: the
 * first that begins with the text, or the text with it. NULL: none is near.
 */
struct text_like {
	const char *text;
	const char *found, *begins;
	unsigned int best; /* letters off, of @found */
};
#define TEXT_LIKE_MAX 160 /* longer names are like none */
void text_like(struct text_like *like, const char *name);

/* Write @value as "%*x" does, without a NUL; returns its end. At most 16 digits or @width. */
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
