// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The screen in memory: cells, and lines written piece by piece. Pure.
 *
 * Pure; the main thread.
 *
 * Invariant: a cell of width 2 is followed by one of width 0 in the same row; no other cell has
 * width 0.
 */

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "ui/draw/draw.h"

static const struct cell blank = { .text = " ", .width = 1 };

void canvas_init(struct canvas *c, bool ascii)
{
	*c = (struct canvas){ .ascii = ascii, .cursor_row = -1 };
}

void canvas_fini(struct canvas *c)
{
	free(c->cells);
	c->cells = NULL;
	c->rows = c->cols = 0;
}

int canvas_resize(struct canvas *c, unsigned int rows, unsigned int cols)
{
	struct cell *cells;

	rows = MIN(MAX(rows, 1), CANVAS_MAX);
	cols = MIN(MAX(cols, 1), CANVAS_MAX);
	cells = malloc((size_t)rows * cols * sizeof(*cells));
	if (!cells)
		return -ENOMEM;
	free(c->cells);
	c->cells = cells;
	c->rows = rows;
	c->cols = cols;
	assert(c->rows && c->rows <= CANVAS_MAX && c->cols && c->cols <= CANVAS_MAX);
	canvas_clear(c);
	return 0;
}

void canvas_clear(struct canvas *c)
{
	for (size_t i = 0; i < (size_t)c->rows * c->cols; i++)
		c->cells[i] = blank;
	c->cursor_row = -1;
	c->cursor_col = 0;
}

/* Prepare @col for writing: the other half of a wide cell becomes a blank. */
static void split_wide(struct cell *row, unsigned int cols, unsigned int col)
{
	if (col < cols && row[col].width == 0 && col > 0) {
		assert(row[col - 1].width == 2);
		struct style style = row[col].style;

		row[col - 1] = row[col] = blank;
		row[col - 1].style = row[col].style = style;
	} else if (col + 1 < cols && row[col].width == 2) {
		row[col + 1] = blank;
		row[col + 1].style = row[col].style;
	}
}

static void put(struct cell *row, unsigned int cols, unsigned int col, const struct cell *cell)
{
	assert(cell->width >= 1 && cell->width <= 2 && col + cell->width <= cols);
	split_wide(row, cols, col);
	if (cell->width == 2)
		split_wide(row, cols, col + 1);
	row[col] = *cell;
	if (cell->width == 2)
		row[col + 1] = (struct cell){ .style = cell->style };
}

/*
 * Split one grapheme off @s: a base and its marks. Return the bytes used, 0 at the end.
 * Safe text is valid UTF-8; other bytes become '?'.
 */
static size_t next_grapheme(const char *s, size_t size, bool ascii, struct cell *cell)
{
	size_t used = 0, kept = 0;

	memset(cell->text, 0, sizeof(cell->text));
	while (used < size) {
		utf8proc_int32_t cp;
		utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)s + used,
						      (utf8proc_ssize_t)(size - used), &cp);
		unsigned int width = n > 0 ? text_cells(cp) : 1;

		if (used && (n <= 0 || width != 0))
			break;
		if (n <= 0 || cp < 0x20 || cp == 0x7f) {
			cell->text[kept++] = '?';
			n = n > 0 ? n : 1;
		} else if (kept + (size_t)n < sizeof(cell->text)) {
			memcpy(cell->text + kept, s + used, (size_t)n);
			kept += (size_t)n;
		}
		if (!used)
			cell->width = (uint8_t)MIN(MAX(width, 1), 2);
		used += (size_t)n;
	}
	if (ascii && used && (cell->text[0] & 0x80)) {
		memset(cell->text, 0, sizeof(cell->text));
		cell->text[0] = '?';
	} else if (ascii) {
		memset(cell->text + 1, 0, sizeof(cell->text) - 1);
	}
	return used;
}

unsigned int canvas_text(struct canvas *c, unsigned int row, unsigned int col, unsigned int cols,
			 struct safe_text t, struct style style)
{
	unsigned int used = 0;
	struct cell cell, *line;
	size_t at = 0, n;

	if (row >= c->rows || col >= c->cols)
		return 0;
	cols = MIN(cols, c->cols - col);
	line = c->cells + (size_t)row * c->cols;
	cell.style = style;
	while (used < cols && (n = next_grapheme(t.str + at, t.size - at, c->ascii, &cell))) {
		unsigned int width = cell.width;

		if (used + width > cols)
			break;
		at += n;
		if (c->ascii && width == 2) {
			/* '?' twice: columns keep their position. */
			cell.width = 1;
			put(line, c->cols, col + used + 1, &cell);
		}
		put(line, c->cols, col + used, &cell);
		used += width;
	}
	assert(used <= cols && at <= t.size);
	return used;
}

unsigned int canvas_elide(struct canvas *c, unsigned int row, unsigned int col, unsigned int cols,
			  struct safe_text t, struct style style)
{
	const struct safe_text dots = c->ascii ? TEXT("~") : (struct safe_text){ "…", 3, 1 };
	unsigned int used;

	if (t.width <= cols || !cols)
		return canvas_text(c, row, col, cols, t, style);
	used = canvas_text(c, row, col, cols - 1, t, style);
	return used + canvas_text(c, row, col + used, 1, dots, style);
}

void canvas_right(struct canvas *c, unsigned int row, unsigned int col, unsigned int cols,
		  struct safe_text t, struct style style)
{
	canvas_elide(c, row, col + (t.width < cols ? cols - t.width : 0), cols, t, style);
}

void canvas_fill(struct canvas *c, unsigned int row, unsigned int col, unsigned int cols,
		 struct safe_text t, struct style style)
{
	for (unsigned int i = 0; i < cols && col + i < c->cols; i++)
		canvas_text(c, row, col + i, 1, t, style);
}

void canvas_restyle(struct canvas *c, unsigned int row, unsigned int col, unsigned int cols,
		    struct style style, bool keep_role)
{
	if (row >= c->rows)
		return;
	for (unsigned int i = col; i < c->cols && i - col < cols; i++) {
		struct cell *cell = &c->cells[(size_t)row * c->cols + i];

		if (!keep_role)
			cell->style.role = style.role;
		cell->style.flags |= style.flags;
	}
}

const struct cell *canvas_at(const struct canvas *c, unsigned int row, unsigned int col)
{
	if (row >= c->rows || col >= c->cols)
		return &blank;
	return &c->cells[(size_t)row * c->cols + col];
}

char *canvas_dump(const struct canvas *c)
{
	char *out = malloc((size_t)c->rows * (c->cols * (sizeof(blank.text) - 1) + 1) + 1);
	char *p = out;

	if (!out)
		return NULL;
	for (unsigned int row = 0; row < c->rows; row++) {
		char *end = p;

		for (unsigned int col = 0; col < c->cols; col++) {
			const char *text = canvas_at(c, row, col)->text;
			size_t n = strlen(text);

			memcpy(p, text, n);
			p += n;
			if (n != 1 || *text != ' ')
				end = p;
		}
		p = end;
		*p++ = '\n';
	}
	*p = '\0';
	return out;
}

/*
 * Draw a line piece by piece. Runs on: the main thread.
 */

bool pen_text(struct pen *pen, unsigned int gap, struct safe_text t, enum theme_role role)
{
	if (pen->col + gap + t.width > pen->end)
		return false;
	pen->col += gap;
	pen->col += canvas_text(pen->c, pen->row, pen->col, t.width, t,
				(struct style){ (uint8_t)role, 0 });
	return true;
}

bool pen_value(struct pen *pen, unsigned int gap, struct safe_text label, struct safe_text value,
	       enum theme_role role)
{
	if (pen->col + gap + label.width + 1 + value.width > pen->end)
		return false;
	pen_text(pen, gap, label, ROLE_DIM);
	return pen_text(pen, 1, value, role);
}
