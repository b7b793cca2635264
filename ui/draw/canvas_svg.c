// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A canvas as a picture in SVG. Pure; any thread.
 *
 * Text is placed in runs of one look, stretched to its cells, so that columns align in any font.
 * Blocks are rectangles: glyphs of fonts leave gaps.
 */
#include "ui/draw/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"

#define CELL_WIDTH  8.0
#define CELL_HEIGHT 17.0
#define BASELINE    13.0
#define MARGIN	    8.0

/* The look of a cell in colours, 0xrrggbb. */
struct ink {
	uint32_t fg, bg;
	bool bold, underline;
};

struct svg {
	FILE *out;
	const struct canvas *c;
	enum theme theme;
	struct ink plain; /* the background, and text without a colour */
};

static struct ink ink_of(const struct svg *s, struct style style)
{
	enum theme_role role = style.role < ROLE_NR ? (enum theme_role)style.role : ROLE_NORMAL;
	bool mono = s->theme == THEME_MONO;
	struct theme_look look = theme_look(s->theme, false, role, 256);
	struct ink ink = { mono || look.fg < 0 ? s->plain.fg : theme_rgb(look.fg),
			   mono || look.bg < 0 ? s->plain.bg : theme_rgb(look.bg),
			   (mono ? look.mono_bold : look.bold) || style.flags & CELL_BOLD,
			   (style.flags & CELL_UNDERLINE) != 0 };

	if ((mono && look.mono_reverse) != ((style.flags & CELL_REVERSE) != 0))
		ink = (struct ink){ ink.bg, ink.fg, ink.bold, ink.underline };
	return ink;
}

static bool same_ink(const struct ink *a, const struct ink *b)
{
	return a->fg == b->fg && a->bg == b->bg && a->bold == b->bold &&
	       a->underline == b->underline;
}

/* Decode a block: the part of the cell that is filled. Return false for other text. */
static bool block_of(const char *text, double part[static 4])
{
	const unsigned char *p = (const unsigned char *)text;
	unsigned int code = p[0] == 0xe2 && p[1] == 0x96 && p[2] && !p[3] ? p[2] : 0;

	if (code >= 0x81 && code <= 0x88) { /* from below */
		double h = (code - 0x80) / 8.0;

		memcpy(part, (double[]){ 0, 1 - h, 1, h }, 4 * sizeof(*part));
	} else if (code >= 0x89 && code <= 0x8f) { /* from the left */
		memcpy(part, (double[]){ 0, 0, (0x90 - code) / 8.0, 1 }, 4 * sizeof(*part));
	} else if (code == 0x95) {
		memcpy(part, (double[]){ 0.875, 0, 0.125, 1 }, 4 * sizeof(*part));
	} else {
		return false;
	}
	return true;
}

static void draw_rect(const struct svg *s, double x, double y, double w, double h, uint32_t color)
{
	fprintf(s->out,
		"<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"#%06x\"/>\n", x,
		y, w, h, color);
}

static void put_text(FILE *out, const char *text)
{
	for (; *text; text++) {
		const char *entity = *text == '&'   ? "&amp;"
				     : *text == '<' ? "&lt;"
				     : *text == '>' ? "&gt;"
						    : NULL;

		if (entity)
			fputs(entity, out);
		else
			fputc(*text, out);
	}
}

/* Return whether anything but the background of the cell is seen. */
static bool is_blank(const struct cell *cell)
{
	return !cell->text[0] || !strcmp(cell->text, " ");
}

/* Draw the text of cells [@from, @end) of a row; blanks at both ends are left out. */
static void draw_words(const struct svg *s, unsigned int row, unsigned int from, unsigned int end,
		       const struct ink *ink)
{
	while (from < end && is_blank(canvas_at(s->c, row, from)))
		from++;
	while (end > from && is_blank(canvas_at(s->c, row, end - 1)))
		end--;
	if (from == end)
		return;
	fprintf(s->out, "<text x=\"%.1f\" y=\"%.1f\" textLength=\"%.1f\" fill=\"#%06x\"%s%s>",
		MARGIN + from * CELL_WIDTH, MARGIN + row * CELL_HEIGHT + BASELINE,
		(end - from) * CELL_WIDTH, ink->fg, ink->bold ? " font-weight=\"bold\"" : "",
		ink->underline ? " text-decoration=\"underline\"" : "");
	for (unsigned int col = from; col < end; col++)
		put_text(s->out, canvas_at(s->c, row, col)->text);
	fputs("</text>\n", s->out);
}

/* Draw text in pieces, where two blanks and more are between: each is placed. */
static void draw_text(const struct svg *s, unsigned int row, unsigned int from, unsigned int end,
		      const struct ink *ink)
{
	for (unsigned int col = from; col + 1 < end; col++) {
		if (!is_blank(canvas_at(s->c, row, col)) || !canvas_at(s->c, row, col)->width ||
		    !is_blank(canvas_at(s->c, row, col + 1)))
			continue;
		draw_words(s, row, from, col, ink);
		from = col + 1;
	}
	draw_words(s, row, from, end, ink);
}

/* Draw the cells [@from, @end) of a row, all of one look. */
static void draw_run(const struct svg *s, unsigned int row, unsigned int from, unsigned int end,
		     const struct ink *ink)
{
	double x = MARGIN + from * CELL_WIDTH, y = MARGIN + row * CELL_HEIGHT, part[4];
	unsigned int text = from;

	if (ink->bg != s->plain.bg)
		draw_rect(s, x, y, (end - from) * CELL_WIDTH, CELL_HEIGHT, ink->bg);
	for (unsigned int col = from; col < end; col++) {
		if (!block_of(canvas_at(s->c, row, col)->text, part))
			continue;
		draw_text(s, row, text, col, ink);
		draw_rect(s, MARGIN + (col + part[0]) * CELL_WIDTH, y + part[1] * CELL_HEIGHT,
			  part[2] * CELL_WIDTH, part[3] * CELL_HEIGHT, ink->fg);
		text = col + 1;
	}
	draw_text(s, row, text, end, ink);
}

static void draw_row(const struct svg *s, unsigned int row)
{
	unsigned int from = 0;

	while (from < s->c->cols) {
		struct ink ink = ink_of(s, canvas_at(s->c, row, from)->style), next;
		unsigned int end = from + 1;

		for (; end < s->c->cols; end++) {
			next = ink_of(s, canvas_at(s->c, row, end)->style);
			if (canvas_at(s->c, row, end)->width && !same_ink(&ink, &next))
				break;
		}
		draw_run(s, row, from, end, &ink);
		from = end;
	}
}

char *canvas_svg(const struct canvas *c, enum theme theme)
{
	bool light = theme == THEME_LIGHT;
	struct svg s = { .c = c,
			 .theme = theme,
			 .plain = { light ? 0x1c1c1c : 0xd0d0d0, light ? 0xffffff : 0x121212, false,
				    false } };
	double width = c->cols * CELL_WIDTH + 2 * MARGIN;
	double height = c->rows * CELL_HEIGHT + 2 * MARGIN;
	char *text = NULL;
	size_t size;

	s.out = open_memstream(&text, &size);
	if (!s.out)
		return NULL;
	fprintf(s.out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
		"viewBox=\"0 0 %.0f %.0f\" font-family=\"DejaVu Sans Mono, Menlo, Consolas, "
		"monospace\" font-size=\"13\" xml:space=\"preserve\">\n"
		"<rect width=\"100%%\" height=\"100%%\" rx=\"6\" fill=\"#%06x\"/>\n",
		width, height, width, height, s.plain.bg);
	for (unsigned int row = 0; row < c->rows; row++)
		draw_row(&s, row);
	fputs("</svg>\n", s.out);
	if (fclose(s.out)) {
		free(text);
		return NULL;
	}
	return text;
}
