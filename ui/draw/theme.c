// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Define colours by role, and glyphs. Constant tables; any thread.
 */
#include "ui/draw/theme.h"

#include <assert.h>
#include <string.h>

#include "sampler/profile/profile.h"
#include "symbols/base/base.h"

enum { BLACK, RED, GREEN, YELLOW, BLUE, MAGENTA, CYAN, WHITE };

#define LOOK(f, b, ...)                                                                            \
	{                                                                                          \
		.fg = (f), .bg = (b), __VA_ARGS__                                                  \
	}

/* No dark blue: unreadable on many terminals. */
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
	[ROLE_JAVA] = LOOK(CYAN, -1, .bold = true),
	[ROLE_PYTHON] = LOOK(YELLOW, -1, .bold = true),
	[ROLE_PHP] = LOOK(MAGENTA, -1, .bold = true),
	[ROLE_RUBY] = LOOK(RED, -1, .bold = true),
	[ROLE_PERL] = LOOK(GREEN, -1, .bold = true),
	[ROLE_VDSO] = LOOK(MAGENTA, -1),
	[ROLE_UNKNOWN] = LOOK(YELLOW, -1),
	[ROLE_OK] = LOOK(GREEN, -1, .bold = true, .mono_bold = true),
	[ROLE_WARN] = LOOK(YELLOW, -1, .bold = true, .mono_bold = true),
	[ROLE_ALARM] = LOOK(WHITE, RED, .bold = true, .mono_reverse = true, .mono_bold = true),
	[ROLE_DIALOG] = LOOK(-1, -1),
	[ROLE_FRAME] = LOOK(CYAN, -1),
	[ROLE_DISABLED] = LOOK(-1, -1, .dim = true, .mono_dim = true),
};

/* Differences to the default theme: colours only, so that bold means the same in all. */
struct recolor {
	enum theme_role role;
	short fg, bg;
};

static const struct recolor soft[] = {
	{ ROLE_TITLE, 80, -1 },	     { ROLE_HEAD, 255, 24 }, { ROLE_SORTED, 16, 110 },
	{ ROLE_KEY_LABEL, 255, 24 }, { ROLE_BAR, 71, -1 },   { ROLE_BAR_WARM, 178, -1 },
	{ ROLE_BAR_HOT, 167, -1 },   { ROLE_USER, 114, -1 }, { ROLE_KERNEL, 174, -1 },
	{ ROLE_JIT, 80, -1 },	     { ROLE_VDSO, 176, -1 }, { ROLE_UNKNOWN, 179, -1 },
	{ ROLE_OK, 114, -1 },	     { ROLE_WARN, 214, -1 }, { ROLE_ALARM, 231, 160 },
	{ ROLE_FRAME, 80, -1 },	     { ROLE_JAVA, 117, -1 }, { ROLE_PYTHON, 222, -1 },
	{ ROLE_PHP, 147, -1 },	     { ROLE_RUBY, 211, -1 }, { ROLE_PERL, 151, -1 },
};

/* No yellow and cyan: unreadable on white. */
static const struct recolor light[] = {
	{ ROLE_TITLE, BLUE, -1 },	{ ROLE_HEAD, WHITE, BLUE },
	{ ROLE_SORTED, WHITE, BLACK },	{ ROLE_KEY_LABEL, WHITE, BLUE },
	{ ROLE_BAR_WARM, MAGENTA, -1 }, { ROLE_JIT, BLUE, -1 },
	{ ROLE_UNKNOWN, MAGENTA, -1 },	{ ROLE_WARN, RED, -1 },
	{ ROLE_FRAME, BLUE, -1 },	{ ROLE_JAVA, BLUE, -1 },
	{ ROLE_PYTHON, MAGENTA, -1 },
};

/* Okabe and Ito's palette, approximated with 256 colours. */
static const struct recolor color_blind[] = {
	{ ROLE_TITLE, 74, -1 },	    { ROLE_HEAD, 16, 74 },  { ROLE_SORTED, 16, 255 },
	{ ROLE_KEY_LABEL, 16, 74 }, { ROLE_BAR, 32, -1 },   { ROLE_BAR_WARM, 214, -1 },
	{ ROLE_BAR_HOT, 208, -1 },  { ROLE_USER, 74, -1 },  { ROLE_KERNEL, 208, -1 },
	{ ROLE_JIT, 255, -1 },	    { ROLE_VDSO, 175, -1 }, { ROLE_UNKNOWN, 221, -1 },
	{ ROLE_OK, 74, -1 },	    { ROLE_WARN, 214, -1 }, { ROLE_ALARM, 16, 208 },
	{ ROLE_FRAME, 74, -1 },	    { ROLE_JAVA, 153, -1 }, { ROLE_PYTHON, 229, -1 },
	{ ROLE_PHP, 139, -1 },	    { ROLE_RUBY, 216, -1 }, { ROLE_PERL, 110, -1 },
};

/* The same with 8 colours: blue is too dark, so cyan and yellow. */
static const struct recolor color_blind_8[] = {
	{ ROLE_BAR, CYAN, -1 },	       { ROLE_BAR_HOT, WHITE, -1 }, { ROLE_USER, CYAN, -1 },
	{ ROLE_KERNEL, YELLOW, -1 },   { ROLE_JIT, WHITE, -1 },	    { ROLE_OK, CYAN, -1 },
	{ ROLE_ALARM, BLACK, YELLOW }, { ROLE_JAVA, WHITE, -1 },    { ROLE_RUBY, YELLOW, -1 },
	{ ROLE_PERL, CYAN, -1 },
};

static const struct {
	const char *name;
	const struct recolor *colors, *colors_8; /* 256 colours or more; fewer */
	size_t nr, nr_8;
} themes[THEME_NR] = {
	[THEME_DEFAULT] = { .name = "default" },
	[THEME_256] = { "256", soft, NULL, ARRAY_SIZE(soft), 0 },
	[THEME_LIGHT] = { "light", light, light, ARRAY_SIZE(light), ARRAY_SIZE(light) },
	[THEME_COLOR_BLIND] = { "color-blind", color_blind, color_blind_8, ARRAY_SIZE(color_blind),
				ARRAY_SIZE(color_blind_8) },
	[THEME_MONO] = { .name = "mono" },
};

const char *theme_name(enum theme theme)
{
	return (unsigned int)theme < THEME_NR ? themes[theme].name : NULL;
}

int theme_parse(const char *name)
{
	for (int i = 0; i < THEME_NR; i++)
		if (!strcmp(name, themes[i].name))
			return i;
	return -1;
}

struct theme_look theme_look(enum theme theme, enum theme_role role, int colors)
{
	struct theme_look look = looks[role];
	bool many = colors >= 256;
	const struct recolor *list = many ? themes[theme].colors : themes[theme].colors_8;
	size_t nr = many ? themes[theme].nr : themes[theme].nr_8;

	assert((unsigned int)theme < THEME_NR && (unsigned int)role < ROLE_NR);

	for (size_t i = 0; i < nr; i++) {
		if (list[i].role != role)
			continue;
		look.fg = list[i].fg;
		look.bg = list[i].bg;
	}
	return look;
}

/* All glyphs are one cell wide. */
#define GLYPH(s)                                                                                   \
	{                                                                                          \
		s, sizeof(s) - 1, 1                                                                \
	}

/* clang-format off */
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
	case 'J':
		return ROLE_JAVA;
	case 'y':
		return ROLE_PYTHON;
	case 'h':
		return ROLE_PHP;
	case 'r':
		return ROLE_RUBY;
	case 'l':
		return ROLE_PERL;
	}
	return profile_language_name(kind) ? ROLE_JIT : ROLE_UNKNOWN;
}
