// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Colours by role, and glyphs. Constant tables; any thread.
 */
#include "ui/theme.h"

enum { BLACK, RED, GREEN, YELLOW, BLUE, MAGENTA, CYAN, WHITE };

#define LOOK(f, b, ...)                                                                            \
	{                                                                                          \
		.fg = (f), .bg = (b), __VA_ARGS__                                                  \
	}

/* No dark blue: on many terminals it cannot be read. */
static const struct theme_look looks[ROLE_NR] = {
	[ROLE_NORMAL] = LOOK(-1, -1),
	[ROLE_DIM] = LOOK(-1, -1, .dim = true, .mono_dim = true),
	[ROLE_VALUE] = LOOK(-1, -1, .bold = true, .mono_bold = true),
	[ROLE_TITLE] = LOOK(CYAN, -1, .bold = true, .mono_bold = true),
	[ROLE_HEAD] = LOOK(BLACK, CYAN, .mono_reverse = true),
	[ROLE_SORTED] = LOOK(BLACK, WHITE, .mono_reverse = true, .mono_bold = true),
	[ROLE_SELECTED] = LOOK(-1, -1, .reverse = true, .mono_reverse = true),
	[ROLE_KEY] = LOOK(-1, -1, .bold = true, .mono_bold = true),
	[ROLE_KEY_LABEL] = LOOK(BLACK, CYAN, .mono_reverse = true),
	[ROLE_BAR] = LOOK(GREEN, -1),
	[ROLE_BAR_WARM] = LOOK(YELLOW, -1),
	[ROLE_BAR_HOT] = LOOK(RED, -1),
	[ROLE_USER] = LOOK(GREEN, -1),
	[ROLE_KERNEL] = LOOK(RED, -1),
	[ROLE_JIT] = LOOK(CYAN, -1),
	[ROLE_VDSO] = LOOK(MAGENTA, -1),
	[ROLE_UNKNOWN] = LOOK(YELLOW, -1),
	[ROLE_OK] = LOOK(GREEN, -1, .bold = true, .mono_bold = true),
	[ROLE_WARN] = LOOK(YELLOW, -1, .bold = true, .mono_bold = true),
	[ROLE_ALARM] = LOOK(WHITE, RED, .bold = true, .mono_reverse = true, .mono_bold = true),
	[ROLE_DIALOG] = LOOK(-1, -1),
	[ROLE_FRAME] = LOOK(CYAN, -1),
	[ROLE_DISABLED] = LOOK(-1, -1, .dim = true, .mono_dim = true),
};

const struct theme_look *theme_look(enum theme_role role)
{
	return &looks[(unsigned int)role < ROLE_NR ? role : ROLE_NORMAL];
}

/* All our glyphs are one cell wide. */
#define GLYPH(s)                                                                                   \
	{                                                                                          \
		s, sizeof(s) - 1, 1                                                                \
	}

/* clang-format off: tables */
static const struct glyphs utf8 = {
	.bar = { GLYPH(" "), GLYPH("▏"), GLYPH("▎"), GLYPH("▍"),
		 GLYPH("▌"), GLYPH("▋"), GLYPH("▊"),
		 GLYPH("▉"), GLYPH("█") },
	.level = { GLYPH("▁"), GLYPH("▁"), GLYPH("▂"),
		 GLYPH("▃"), GLYPH("▄"), GLYPH("▅"),
		   GLYPH("▆"), GLYPH("▇"), GLYPH("█") },
	.bar_begin = GLYPH("▕"),
	.bar_end = GLYPH("▏"),
	.crumb = GLYPH("▸"),
	.marker = GLYPH("▶"),
	.live = GLYPH("●"),
	.descending = GLYPH("▼"),
	.ascending = GLYPH("▲"),
	.more = GLYPH("…"),
	.used = GLYPH("●"),
	.refused = GLYPH("✗"),
	.hline = GLYPH("─"),
	.vline = GLYPH("│"),
	.top_left = GLYPH("┌"),
	.top_right = GLYPH("┐"),
	.bottom_left = GLYPH("└"),
	.bottom_right = GLYPH("┘"),
	.tee = GLYPH("├"),
	.corner = GLYPH("└"),
	.opened = GLYPH("▾"),
	.closed = GLYPH("▸"),
	.hot = GLYPH("◀"),
	.edge = GLYPH("▏"),
	.up = GLYPH("↑"),
	.down = GLYPH("↓"),
	.left = GLYPH("←"),
	.right = GLYPH("→"),
};

static const struct glyphs ascii_only = {
	.bar = { GLYPH(" "), GLYPH(" "), GLYPH(" "), GLYPH("-"), GLYPH("-"), GLYPH("="), GLYPH("="),
		 GLYPH("#"), GLYPH("#") },
	.level = { GLYPH("."), GLYPH("."), GLYPH("."), GLYPH(":"), GLYPH(":"), GLYPH("-"),
		   GLYPH("="), GLYPH("+"), GLYPH("#") },
	.bar_begin = GLYPH("["),
	.bar_end = GLYPH("]"),
	.crumb = GLYPH(">"),
	.marker = GLYPH(">"),
	.live = GLYPH("*"),
	.descending = GLYPH("v"),
	.ascending = GLYPH("^"),
	.more = GLYPH("~"),
	.used = GLYPH("*"),
	.refused = GLYPH("x"),
	.hline = GLYPH("-"),
	.vline = GLYPH("|"),
	.top_left = GLYPH("+"),
	.top_right = GLYPH("+"),
	.bottom_left = GLYPH("+"),
	.bottom_right = GLYPH("+"),
	.tee = GLYPH("|"),
	.corner = GLYPH("`"),
	.opened = GLYPH("-"),
	.closed = GLYPH("+"),
	.hot = GLYPH("<"),
	.edge = GLYPH("|"),
	.up = GLYPH("^"),
	.down = GLYPH("v"),
	.left = GLYPH("<"),
	.right = GLYPH(">"),
};
/* clang-format on */

const struct glyphs *theme_glyphs(bool ascii)
{
	return ascii ? &ascii_only : &utf8;
}

enum theme_role theme_kind(char kind)
{
	switch (kind) {
	case 'u':
		return ROLE_USER;
	case 'k':
		return ROLE_KERNEL;
	case 'j':
		return ROLE_JIT;
	case 'v':
		return ROLE_VDSO;
	}
	return ROLE_UNKNOWN;
}
