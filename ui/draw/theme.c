// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Define colours by role, and glyphs. Constant tables; any thread.
 *
 * A terminal of 24 bits (TERM=xterm-direct) gets the same colours as red, green and blue: 16 to 255
 * are fixed, so another palette would look the same.
 */
#include "ui/draw/internal.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "sampler/profile/profile.h"
#include "symbols/base/base.h"

enum { BLACK, RED, GREEN, YELLOW, BLUE, MAGENTA, CYAN, WHITE };

/* Attributes of a role, in all themes. */
struct attrs {
	bool bold;
	bool dim; /* with few colours: others have a grey */
	bool mono_bold, mono_dim, mono_reverse;
};

static const struct attrs attrs[ROLE_NR] = {
	[ROLE_DIM] = { .dim = true, .mono_dim = true },
	[ROLE_VALUE] = { .bold = true, .mono_bold = true },
	[ROLE_TITLE] = { .bold = true, .mono_bold = true },
	[ROLE_HEAD] = { .mono_reverse = true },
	[ROLE_SORTED] = { .mono_reverse = true, .mono_bold = true },
	[ROLE_SELECTED] = { .mono_reverse = true },
	[ROLE_KEY] = { .bold = true, .mono_bold = true },
	[ROLE_KEY_LABEL] = { .mono_reverse = true },
	[ROLE_OK] = { .bold = true, .mono_bold = true },
	[ROLE_WARN] = { .bold = true, .mono_bold = true },
	[ROLE_ALARM] = { .bold = true, .mono_reverse = true, .mono_bold = true },
	[ROLE_DISABLED] = { .dim = true, .mono_dim = true },
	/* Without colours neighbours differ mostly; each part begins with a letter. */
	[ROLE_TIME_CPU] = { .mono_reverse = true },
	[ROLE_TIME_LOCK] = { .mono_reverse = true },
	[ROLE_TIME_PIPE] = { .mono_reverse = true },
	[ROLE_TIME_EVENT] = { .mono_reverse = true },
	[ROLE_BOX_PROCESS] = { .bold = true, .mono_bold = true },
	[ROLE_BOX_REST] = { .dim = true, .mono_dim = true },
	[ROLE_BOX_MORE] = { .mono_reverse = true },
	/* Without colours every second hue is reversed: neighbours differ, and no wall is white. */
	[ROLE_BOX_USER + 1] = { .mono_reverse = true },
	[ROLE_BOX_USER + 3] = { .mono_reverse = true },
	[ROLE_BOX_KERNEL + 1] = { .mono_reverse = true },
	[ROLE_BOX_KERNEL + 3] = { .mono_reverse = true },
	[ROLE_BOX_JIT + 1] = { .mono_reverse = true },
	[ROLE_BOX_JIT + 3] = { .mono_reverse = true },
	[ROLE_BOX_SCRIPT + 1] = { .mono_reverse = true },
	[ROLE_BOX_SCRIPT + 3] = { .mono_reverse = true },
	[ROLE_BOX_OTHER + 1] = { .mono_reverse = true },
	[ROLE_BOX_OTHER + 3] = { .mono_reverse = true },
};

/* Colours of a role; zero: the terminal's. Else the colour + 1. */
struct colours {
	short fg, bg;
};

#define C(f, b)                                                                                    \
	{                                                                                          \
		(f) + 1, (b) + 1                                                                   \
	}

enum ground { DARK, LIGHT, GROUNDS };

/* clang-format off */

/*
 * With 256 colours: 16 to 255 are the same in all terminals. Text has a contrast of 4.5:1 and more
 * on black, or on white, or on the colour given (test_settings).
 */
static const struct colours many[ROLE_NR][GROUNDS] = {
	[ROLE_DIM] =       { C(245, -1), C(242, -1) },
	[ROLE_VALUE] =     { C(231, -1), C(16, -1) },
	[ROLE_TITLE] =     { C(80, -1),  C(24, -1) },
	[ROLE_HEAD] =      { C(255, 24), C(231, 24) },
	[ROLE_SORTED] =    { C(16, 110), C(231, 236) },
	[ROLE_SELECTED] =  { C(231, 25), C(16, 153) },
	[ROLE_KEY_LABEL] = { C(255, 24), C(231, 24) },
	[ROLE_BAR] =       { C(71, -1),  C(28, -1) },
	[ROLE_BAR_WARM] =  { C(178, -1), C(94, -1) },
	[ROLE_BAR_HOT] =   { C(210, -1), C(160, -1) },
	[ROLE_USER] =      { C(114, -1), C(22, -1) },
	[ROLE_KERNEL] =    { C(174, -1), C(124, -1) },
	[ROLE_JIT] =       { C(80, -1),  C(24, -1) },
	[ROLE_JAVA] =      { C(117, -1), C(25, -1) },
	[ROLE_PYTHON] =    { C(222, -1), C(94, -1) },
	[ROLE_PHP] =       { C(147, -1), C(55, -1) },
	[ROLE_RUBY] =      { C(211, -1), C(125, -1) },
	[ROLE_PERL] =      { C(151, -1), C(23, -1) },
	[ROLE_NODE] =      { C(149, -1), C(29, -1) },
	[ROLE_WAIT] =      { C(208, -1), C(130, -1) },
	[ROLE_VDSO] =      { C(176, -1), C(90, -1) },
	[ROLE_UNKNOWN] =   { C(179, -1), C(58, -1) },
	[ROLE_OK] =        { C(114, -1), C(22, -1) },
	[ROLE_WARN] =      { C(214, -1), C(94, -1) },
	[ROLE_ALARM] =     { C(231, 160), C(231, 160) },
	[ROLE_FRAME] =     { C(80, -1),  C(24, -1) },
	[ROLE_DISABLED] =  { C(247, -1), C(241, -1) },
	[ROLE_TIME_CPU] =    { C(16, 114), C(16, 114) },
	[ROLE_TIME_QUEUE] =  { C(16, 221), C(16, 221) },
	[ROLE_TIME_LOCK] =   { C(16, 210), C(16, 210) },
	[ROLE_TIME_DISK] =   { C(16, 176), C(16, 176) },
	[ROLE_TIME_PIPE] =   { C(16, 80),  C(16, 80) },
	[ROLE_TIME_SLEEP] =  { C(16, 111), C(16, 111) },
	[ROLE_TIME_EVENT] =  { C(16, 250), C(16, 251) },
	[ROLE_TIME_OTHER] =  { C(16, 244), C(16, 246) },
	[ROLE_BOX_PROCESS] = { C(255, 238), C(16, 252) },
	[ROLE_BOX_REST] =    { C(252, 236), C(238, 254) },
	[ROLE_BOX_MORE] =    { C(16, 203), C(16, 203) },
	[ROLE_BOX_LESS] =    { C(16, 75),  C(16, 75) },
	[ROLE_BOX_SAME] =    { C(16, 248), C(16, 250) },
	[ROLE_BOX_USER] =       { C(16, 114), C(16, 114) },
	[ROLE_BOX_USER + 1] =   { C(16, 150), C(16, 150) },
	[ROLE_BOX_USER + 2] =   { C(16, 108), C(16, 108) },
	[ROLE_BOX_USER + 3] =   { C(16, 79),  C(16, 79) },
	[ROLE_BOX_KERNEL] =     { C(16, 174), C(16, 174) },
	[ROLE_BOX_KERNEL + 1] = { C(16, 216), C(16, 216) },
	[ROLE_BOX_KERNEL + 2] = { C(16, 173), C(16, 173) },
	[ROLE_BOX_KERNEL + 3] = { C(16, 210), C(16, 210) },
	[ROLE_BOX_JIT] =        { C(16, 80),  C(16, 80) },
	[ROLE_BOX_JIT + 1] =    { C(16, 117), C(16, 117) },
	[ROLE_BOX_JIT + 2] =    { C(16, 74),  C(16, 74) },
	[ROLE_BOX_JIT + 3] =    { C(16, 152), C(16, 152) },
	[ROLE_BOX_SCRIPT] =     { C(16, 222), C(16, 222) },
	[ROLE_BOX_SCRIPT + 1] = { C(16, 186), C(16, 186) },
	[ROLE_BOX_SCRIPT + 2] = { C(16, 179), C(16, 179) },
	[ROLE_BOX_SCRIPT + 3] = { C(16, 229), C(16, 229) },
	[ROLE_BOX_OTHER] =      { C(16, 248), C(16, 250) },
	[ROLE_BOX_OTHER + 1] =  { C(16, 182), C(16, 182) },
	[ROLE_BOX_OTHER + 2] =  { C(16, 251), C(16, 247) },
	[ROLE_BOX_OTHER + 3] =  { C(16, 139), C(16, 188) },
};

/* The differences of Okabe and Ito's palette: blue and orange, no pair of red and green. */
static const struct colours blind[ROLE_NR][GROUNDS] = {
	[ROLE_TITLE] =     { C(74, -1),  C(25, -1) },
	[ROLE_HEAD] =      { C(16, 74),  C(231, 25) },
	[ROLE_SORTED] =    { C(16, 255), C(231, 236) },
	[ROLE_SELECTED] =  { C(16, 214), C(16, 214) },
	[ROLE_KEY_LABEL] = { C(16, 74),  C(231, 25) },
	[ROLE_BAR] =       { C(74, -1),  C(25, -1) },
	[ROLE_BAR_WARM] =  { C(214, -1), C(94, -1) },
	[ROLE_BAR_HOT] =   { C(208, -1), C(130, -1) },
	[ROLE_USER] =      { C(74, -1),  C(25, -1) },
	[ROLE_KERNEL] =    { C(208, -1), C(130, -1) },
	[ROLE_JIT] =       { C(255, -1), C(238, -1) },
	[ROLE_JAVA] =      { C(153, -1), C(18, -1) },
	[ROLE_PYTHON] =    { C(229, -1), C(58, -1) },
	[ROLE_PHP] =       { C(139, -1), C(53, -1) },
	[ROLE_RUBY] =      { C(216, -1), C(94, -1) },
	[ROLE_PERL] =      { C(110, -1), C(24, -1) },
	[ROLE_NODE] =      { C(187, -1), C(59, -1) },
	[ROLE_WAIT] =      { C(226, -1), C(52, -1) },
	[ROLE_VDSO] =      { C(175, -1), C(90, -1) },
	[ROLE_UNKNOWN] =   { C(221, -1), C(58, -1) },
	[ROLE_OK] =        { C(74, -1),  C(25, -1) },
	[ROLE_WARN] =      { C(214, -1), C(94, -1) },
	[ROLE_ALARM] =     { C(16, 208), C(16, 208) },
	[ROLE_FRAME] =     { C(74, -1),  C(25, -1) },
	[ROLE_TIME_CPU] =    { C(16, 74),  C(16, 74) },
	[ROLE_TIME_QUEUE] =  { C(16, 229), C(16, 229) },
	[ROLE_TIME_LOCK] =   { C(16, 208), C(16, 208) },
	[ROLE_TIME_DISK] =   { C(16, 175), C(16, 175) },
	[ROLE_TIME_PIPE] =   { C(16, 117), C(16, 117) },
	[ROLE_TIME_SLEEP] =  { C(16, 110), C(16, 110) },
	[ROLE_BOX_MORE] =    { C(16, 208), C(16, 208) },
	[ROLE_BOX_LESS] =    { C(16, 74),  C(16, 74) },
	[ROLE_BOX_USER] =       { C(16, 74),  C(16, 74) },
	[ROLE_BOX_USER + 1] =   { C(16, 117), C(16, 117) },
	[ROLE_BOX_USER + 2] =   { C(16, 110), C(16, 110) },
	[ROLE_BOX_USER + 3] =   { C(16, 153), C(16, 153) },
	[ROLE_BOX_KERNEL] =     { C(16, 208), C(16, 208) },
	[ROLE_BOX_KERNEL + 1] = { C(16, 214), C(16, 214) },
	[ROLE_BOX_KERNEL + 2] = { C(16, 215), C(16, 215) },
	[ROLE_BOX_KERNEL + 3] = { C(16, 222), C(16, 222) },
	[ROLE_BOX_JIT] =        { C(16, 251), C(16, 251) },
	[ROLE_BOX_JIT + 1] =    { C(16, 255), C(16, 248) },
	[ROLE_BOX_JIT + 2] =    { C(16, 248), C(16, 253) },
	[ROLE_BOX_JIT + 3] =    { C(16, 253), C(16, 250) },
	[ROLE_BOX_SCRIPT] =     { C(16, 229), C(16, 229) },
	[ROLE_BOX_SCRIPT + 1] = { C(16, 227), C(16, 227) },
	[ROLE_BOX_SCRIPT + 2] = { C(16, 230), C(16, 230) },
	[ROLE_BOX_SCRIPT + 3] = { C(16, 221), C(16, 221) },
	[ROLE_BOX_OTHER] =      { C(16, 175), C(16, 175) },
	[ROLE_BOX_OTHER + 1] =  { C(16, 182), C(16, 182) },
	[ROLE_BOX_OTHER + 2] =  { C(16, 139), C(16, 176) },
	[ROLE_BOX_OTHER + 3] =  { C(16, 218), C(16, 218) },
};

/*
 * With fewer colours the terminal's own are used, with black or white text. No dark blue on black,
 * no yellow and cyan on white. Dark text colours are bright ones where there are 16.
 */
static const struct colours few[ROLE_NR][GROUNDS] = {
	[ROLE_TITLE] =     { C(CYAN, -1),       C(BLUE, -1) },
	[ROLE_HEAD] =      { C(BLACK, GREEN),   C(WHITE, BLUE) },
	[ROLE_SORTED] =    { C(BLACK, WHITE),   C(WHITE, BLACK) },
	[ROLE_SELECTED] =  { C(BLACK, CYAN),    C(BLACK, CYAN) },
	[ROLE_KEY_LABEL] = { C(BLACK, CYAN),    C(WHITE, BLUE) },
	[ROLE_BAR] =       { C(GREEN, -1),      C(BLUE, -1) },
	[ROLE_BAR_WARM] =  { C(YELLOW, -1),     C(MAGENTA, -1) },
	[ROLE_BAR_HOT] =   { C(RED, -1),        C(RED, -1) },
	[ROLE_USER] =      { C(GREEN, -1),      C(BLACK, -1) },
	[ROLE_KERNEL] =    { C(RED, -1),        C(RED, -1) },
	[ROLE_JIT] =       { C(CYAN, -1),       C(BLUE, -1) },
	[ROLE_JAVA] =      { C(CYAN, -1),       C(BLUE, -1) },
	[ROLE_PYTHON] =    { C(YELLOW, -1),     C(MAGENTA, -1) },
	[ROLE_PHP] =       { C(MAGENTA, -1),    C(MAGENTA, -1) },
	[ROLE_RUBY] =      { C(RED, -1),        C(RED, -1) },
	[ROLE_PERL] =      { C(GREEN, -1),      C(BLACK, -1) },
	[ROLE_NODE] =      { C(GREEN, -1),      C(MAGENTA, -1) },
	[ROLE_WAIT] =      { C(YELLOW, -1),     C(RED, -1) },
	[ROLE_VDSO] =      { C(MAGENTA, -1),    C(MAGENTA, -1) },
	[ROLE_UNKNOWN] =   { C(YELLOW, -1),     C(MAGENTA, -1) },
	[ROLE_OK] =        { C(GREEN, -1),      C(BLUE, -1) },
	[ROLE_WARN] =      { C(YELLOW, -1),     C(RED, -1) },
	[ROLE_ALARM] =     { C(WHITE, RED),     C(WHITE, RED) },
	[ROLE_FRAME] =     { C(CYAN, -1),       C(BLUE, -1) },
	[ROLE_TIME_CPU] =       { C(BLACK, GREEN),   C(BLACK, GREEN) },
	[ROLE_TIME_QUEUE] =     { C(BLACK, YELLOW),  C(BLACK, YELLOW) },
	[ROLE_TIME_LOCK] =      { C(WHITE, RED),     C(WHITE, RED) },
	[ROLE_TIME_DISK] =      { C(WHITE, BLUE),    C(WHITE, BLUE) },
	[ROLE_TIME_PIPE] =      { C(BLACK, CYAN),    C(BLACK, CYAN) },
	[ROLE_TIME_SLEEP] =     { C(WHITE, BLACK),   C(WHITE, BLACK) },
	[ROLE_TIME_EVENT] =     { C(BLACK, WHITE),   C(BLACK, WHITE) },
	[ROLE_TIME_OTHER] =     { C(WHITE, BLACK),   C(WHITE, BLACK) },
	[ROLE_BOX_PROCESS] =    { C(BLACK, WHITE),   C(WHITE, BLACK) },
	[ROLE_BOX_MORE] =       { C(WHITE, RED),     C(WHITE, RED) },
	[ROLE_BOX_LESS] =       { C(WHITE, BLUE),    C(WHITE, BLUE) },
	[ROLE_BOX_SAME] =       { C(BLACK, WHITE),   C(BLACK, WHITE) },
	[ROLE_BOX_USER] =       { C(BLACK, GREEN),   C(BLACK, GREEN) },
	[ROLE_BOX_USER + 1] =   { C(BLACK, GREEN),   C(BLACK, GREEN) },
	[ROLE_BOX_USER + 2] =   { C(BLACK, GREEN),   C(BLACK, GREEN) },
	[ROLE_BOX_USER + 3] =   { C(BLACK, GREEN),   C(BLACK, GREEN) },
	[ROLE_BOX_KERNEL] =     { C(WHITE, RED),     C(WHITE, RED) },
	[ROLE_BOX_KERNEL + 1] = { C(WHITE, RED),     C(WHITE, RED) },
	[ROLE_BOX_KERNEL + 2] = { C(WHITE, RED),     C(WHITE, RED) },
	[ROLE_BOX_KERNEL + 3] = { C(WHITE, RED),     C(WHITE, RED) },
	[ROLE_BOX_JIT] =        { C(BLACK, CYAN),    C(BLACK, CYAN) },
	[ROLE_BOX_JIT + 1] =    { C(BLACK, CYAN),    C(BLACK, CYAN) },
	[ROLE_BOX_JIT + 2] =    { C(BLACK, CYAN),    C(BLACK, CYAN) },
	[ROLE_BOX_JIT + 3] =    { C(BLACK, CYAN),    C(BLACK, CYAN) },
	[ROLE_BOX_SCRIPT] =     { C(BLACK, YELLOW),  C(BLACK, YELLOW) },
	[ROLE_BOX_SCRIPT + 1] = { C(BLACK, YELLOW),  C(BLACK, YELLOW) },
	[ROLE_BOX_SCRIPT + 2] = { C(BLACK, YELLOW),  C(BLACK, YELLOW) },
	[ROLE_BOX_SCRIPT + 3] = { C(BLACK, YELLOW),  C(BLACK, YELLOW) },
	[ROLE_BOX_OTHER] =      { C(BLACK, WHITE),   C(BLACK, WHITE) },
	[ROLE_BOX_OTHER + 1] =  { C(BLACK, WHITE),   C(BLACK, WHITE) },
	[ROLE_BOX_OTHER + 2] =  { C(BLACK, WHITE),   C(BLACK, WHITE) },
	[ROLE_BOX_OTHER + 3] =  { C(BLACK, WHITE),   C(BLACK, WHITE) },
};

/* With 16 colours every second hue of a box is bright. */
static const struct colours bright_boxes[] = {
	C(BLACK, GREEN + 8), C(BLACK, RED + 8), C(BLACK, CYAN + 8), C(BLACK, YELLOW + 8),
	C(BLACK, BLACK + 8),
};

static const struct colours bright_boxes_blind[ARRAY_SIZE(bright_boxes)] = {
	C(BLACK, CYAN + 8), C(BLACK, YELLOW + 8), C(BLACK, CYAN + 8), C(BLACK, YELLOW + 8),
	C(BLACK, BLACK + 8),
};

/* With 8 it is text on the ground, in the colour of its kind. */
static const uint8_t text_of_boxes[ARRAY_SIZE(bright_boxes)] = {
	ROLE_USER, ROLE_KERNEL, ROLE_JIT, ROLE_PYTHON, ROLE_NORMAL,
};

_Static_assert(ROLE_BOX_USER + ARRAY_SIZE(bright_boxes) * THEME_HUES == ROLE_NR,
	       "one for each kind");

/* For the colour-blind on black: blue is too dark, so cyan and yellow. On white as @few. */
static const struct colours few_blind[ROLE_NR] = {
	[ROLE_HEAD] =   C(BLACK, CYAN),   [ROLE_SELECTED] = C(BLACK, YELLOW),
	[ROLE_BAR] =    C(CYAN, -1),      [ROLE_BAR_HOT] =  C(WHITE, -1),
	[ROLE_USER] =   C(CYAN, -1),      [ROLE_KERNEL] =   C(YELLOW, -1),
	[ROLE_JIT] =    C(WHITE, -1),     [ROLE_JAVA] =     C(WHITE, -1),
	[ROLE_RUBY] =   C(YELLOW, -1),    [ROLE_PERL] =     C(CYAN, -1),
	[ROLE_NODE] =   C(WHITE, -1),
	[ROLE_OK] =     C(CYAN, -1),      [ROLE_ALARM] =    C(BLACK, YELLOW),
	[ROLE_TIME_CPU] = C(WHITE, BLUE), [ROLE_TIME_DISK] = C(BLACK, WHITE),
	[ROLE_BOX_MORE] = C(BLACK, YELLOW), [ROLE_BOX_LESS] = C(WHITE, BLUE),
	[ROLE_BOX_USER] = C(BLACK, CYAN), [ROLE_BOX_USER + 1] = C(BLACK, CYAN),
	[ROLE_BOX_USER + 2] = C(BLACK, CYAN), [ROLE_BOX_USER + 3] = C(BLACK, CYAN),
	[ROLE_BOX_KERNEL] = C(BLACK, YELLOW), [ROLE_BOX_KERNEL + 1] = C(BLACK, YELLOW),
	[ROLE_BOX_KERNEL + 2] = C(BLACK, YELLOW), [ROLE_BOX_KERNEL + 3] = C(BLACK, YELLOW),
};

/* clang-format on */
#undef C

/* Return the colours of a role, @nr of them in the terminal. */
static struct colours colours_of(enum theme theme, enum ground ground, enum theme_role role, int nr)
{
	const struct colours *other = nr >= 256	       ? &blind[role][ground]
				      : ground == DARK ? &few_blind[role]
						       : NULL;
	unsigned int box = role - ROLE_BOX_USER;

	assert((unsigned int)ground < GROUNDS && (unsigned int)role < ROLE_NR);
	if (role >= ROLE_BOX_USER && box % 2 && nr < 16)
		return colours_of(theme, ground, (enum theme_role)text_of_boxes[box / THEME_HUES],
				  nr);
	if (role >= ROLE_BOX_USER && box % 2 && nr < 256)
		return (theme == THEME_COLOR_BLIND && other ? bright_boxes_blind
							    : bright_boxes)[box / THEME_HUES];
	if (theme == THEME_COLOR_BLIND && other && (other->fg || other->bg))
		return *other;
	return nr >= 256 ? many[role][ground] : few[role][ground];
}

/* Levels of heat, and of selected ones: each is lighter than the one before, or darker on white. */
static const uint8_t heats[GROUNDS][2 * THEME_HEATS] = {
	[DARK] = { 234, 53, 125, 202, 226, 238, 24, 31, 38, 195 },
	[LIGHT] = { 255, 223, 209, 160, 52, 251, 153, 75, 26, 17 },
};

struct theme_look theme_look(enum theme theme, bool light, enum theme_role role, int colors)
{
	enum ground ground = theme == THEME_LIGHT || (light && theme != THEME_DARK) ? LIGHT : DARK;
	unsigned int heat = (unsigned int)role - ROLE_NR;
	const struct attrs *a;
	struct theme_look look;
	struct colours c;

	assert((unsigned int)theme < THEME_NR && (unsigned int)role < THEME_ROLES);
	if (role >= ROLE_NR)
		return (struct theme_look){ .fg = heats[ground][heat / (2 * THEME_HEATS)],
					    .bg = heats[ground][heat % (2 * THEME_HEATS)] };
	a = &attrs[role];
	look = (struct theme_look){ .bold = a->bold,
				    .mono_bold = a->mono_bold,
				    .mono_dim = a->mono_dim,
				    .mono_reverse = a->mono_reverse };
	c = colours_of(theme, ground, role, colors);
	look.fg = (short)(c.fg - 1);
	look.bg = (short)(c.bg - 1);
	look.dim = a->dim && colors < 256;
	/* The eight darker ones are hard to read on black; where there are no others, bold helps.
	 */
	if (colors < 256 && ground == DARK && look.bg < 0 && look.fg > BLACK) {
		look.fg = (short)(look.fg + (colors >= 16 ? 8 : 0));
		look.bold |= look.fg == RED || look.fg == MAGENTA;
	}
	return look;
}

uint32_t theme_rgb(short color)
{
	static const uint8_t cube[] = { 0, 0x5f, 0x87, 0xaf, 0xd7, 0xff };
	static const uint32_t first[] = { 0x000000, 0xcd0000, 0x00cd00, 0xcdcd00,
					  0x0000ee, 0xcd00cd, 0x00cdcd, 0xe5e5e5,
					  0x7f7f7f, 0xff0000, 0x00ff00, 0xffff00,
					  0x5c5cff, 0xff00ff, 0x00ffff, 0xffffff };
	uint32_t n = (uint32_t)color, grey = 8 + 10 * (n - 232);

	assert(color >= 0 && color < 256);
	if (n < 16)
		return first[n];
	if (n >= 232)
		return grey << 16 | grey << 8 | grey;
	n -= 16;
	return (uint32_t)cube[n / 36] << 16 | (uint32_t)cube[n / 6 % 6] << 8 | cube[n % 6];
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
	.heat = { GLYPH("·"), GLYPH("░"), GLYPH("▒"), GLYPH("▓"), GLYPH("█") },
	.half = GLYPH("▀"),
	.meter = { GLYPH("█"), GLYPH("▓"), GLYPH("░") },
	.notch = { GLYPH("▉"), GLYPH("│"), GLYPH("│") },
	.tick = GLYPH("╵"),
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
	.bar = { GLYPH(" "), GLYPH("."), GLYPH("."), GLYPH("-"), GLYPH("-"), GLYPH("="), GLYPH("="),
		 GLYPH("#"), GLYPH("#") },
	.level = { GLYPH("."), GLYPH("."), GLYPH("."), GLYPH(":"), GLYPH(":"), GLYPH("-"),
		   GLYPH("="), GLYPH("+"), GLYPH("#") },
	.heat = { GLYPH("."), GLYPH(":"), GLYPH("o"), GLYPH("8"), GLYPH("#") },
	.half = GLYPH("#"),
	.meter = { GLYPH("#"), GLYPH("="), GLYPH("-") },
	.notch = { GLYPH("|"), GLYPH("|"), GLYPH("|") },
	.tick = GLYPH("'"),
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
	case 'n':
		return ROLE_NODE;
	case 'w':
		return ROLE_WAIT;
	}
	return profile_language_name(kind) ? ROLE_JIT : ROLE_UNKNOWN;
}

enum theme_role theme_box(char kind, uint32_t hue)
{
	enum theme_role first = kind == 'u'		      ? ROLE_BOX_USER
				: kind == 'k'		      ? ROLE_BOX_KERNEL
				: kind == 'j'		      ? ROLE_BOX_JIT
				: profile_language_name(kind) ? ROLE_BOX_SCRIPT
							      : ROLE_BOX_OTHER;

	return kind == 'p' ? ROLE_BOX_PROCESS : first + hue % THEME_HUES;
}
