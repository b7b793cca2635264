// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The whole screen: header, rows, status line, key bar, prompt and picker.
 * Runs on: the main thread.
 */
#include "ui/screen.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "ui/dialog.h"
#include "ui/draw/pen.h"
#include "ui/prompt.h"
#include "ui/text/format.h"
#include "ui/view/header.h"
#include "ui/view/header_strip.h"
#include "ui/view/table.h"
#include "ui/view/view.h"

/* Of the short position at the right of the status line. */
#define POSITION_COLS 12u

static bool has_message(const struct ui_state *st)
{
	return st->message[0] && st->now_ns < st->message_until_ns;
}

/* Draw "row 2 of 1 231, 17 205 samples" at the right, shorter if @brief. Return its first column.
 */
static unsigned int draw_position(struct ui_state *st, struct canvas *c, unsigned int row,
				  bool brief)
{
	const struct list *list = ui_state_list(st);
	char buf[160], at[FORMAT_MAX], nr[FORMAT_MAX], count[FORMAT_MAX];
	uint32_t row_at = list->nr ? list->cursor + 1 : 0, row_nr = list->nr;
	struct safe_text text;

	if (view_shown(st)->position)
		view_shown(st)->position(st, list, &row_at, &row_nr);
	format_count(at, row_at);
	format_count(nr, row_nr);
	if (view_shown(st)->unit)
		text = text_format(buf, sizeof(buf), "%s %s of %s", view_shown(st)->unit, at, nr);
	else if (brief || c->cols < 60)
		text = text_format(buf, sizeof(buf), "%s/%s", at, nr);
	else
		text = text_format(buf, sizeof(buf), "row %s of %s, %s samples", at, nr,
				   format_count(count, list->count).str);
	if (text.width + 2u > c->cols)
		return c->cols;
	canvas_right(c, row, 0, c->cols - 1, text, (struct style){ ROLE_DIM, 0 });
	return c->cols - 1 - text.width;
}

/* Write the worst message and the key that fixes it; "": none. */
static void worst_text(const struct ui_state *st, char *buf, size_t size)
{
	const struct profile_message *n = ui_state_worst(st);

	const char *whose = view_is_whole(st) ? "" : "all processes: ";

	*buf = '\0';
	if (n && n->control == MESSAGE_NONE)
		text_format(buf, size, "! %s%s (see 7)", whose, n->brief);
	else if (n)
		text_format(buf, size, "! %s%s (A: %s)", whose, n->brief,
			    profile_message_action(n));
}

/* Draw how many rows are below the last line, and how many are hidden. */
static void draw_more(struct ui_state *st, struct canvas *c, unsigned int row, unsigned int cols)
{
	const struct list *list = ui_state_list(st);
	uint32_t below = list->nr > list->top + list->page ? list->nr - list->top - list->page : 0;
	char buf[96], n[FORMAT_MAX];
	struct pen pen = { c, row, 1, cols };

	if (below) {
		pen_text(&pen, 0, st->glyphs->more, ROLE_DIM);
		pen_text(&pen, 1,
			 text_format(buf, sizeof(buf), "%s more below", format_count(n, below).str),
			 ROLE_DIM);
	}
	if (list->nr_hidden && view_shown(st)->context == CTX_LIST)
		pen_text(&pen, below ? 2 : 0,
			 text_format(buf, sizeof(buf), "%s hidden",
				     format_count(n, list->nr_hidden).str),
			 ROLE_WARN);
}

static void draw_message(const struct ui_state *st, struct canvas *c, unsigned int row,
			 unsigned int cols, struct safe_text text)
{
	bool good = has_message(st) ? !st->message_bad : st->rewind.on;
	enum theme_role role = good ? ROLE_OK : ROLE_WARN;

	canvas_elide(c, row, 1, cols > 1 ? cols - 1 : 0, text, (struct style){ role, 0 });
}

/* Return the bytes of the message in a line of its own above the status line; 0: it fits there. */
static size_t bytes_above(const struct ui_state *st, const struct canvas *c)
{
	char buf[sizeof(st->message)];
	struct safe_text text = ui_state_clean(buf, sizeof(buf), st->message);

	if (!has_message(st) || c->rows < 10 || text.width + POSITION_COLS + 2 <= c->cols)
		return 0;
	return foot_line_bytes(st->message, c->cols - 2);
}

/* Draw the status line: the message, else the worst message, else the rows below; the position is
 * short beside a long text. @above: bytes of the message in the line above. */
static void draw_status(struct ui_state *st, struct canvas *c, unsigned int row, size_t above)
{
	char said[512], buf[sizeof(said)];
	struct safe_text text;
	unsigned int end;

	if (above)
		draw_message(st, c, row - 1, c->cols,
			     text_sanitise(buf, sizeof(buf), st->message, above));
	if (has_message(st))
		snprintf(said, sizeof(said), "%s",
			 st->message + above + strspn(st->message + above, " "));
	else if (st->rewind.on)
		header_strip_hint(st, said, sizeof(said));
	else
		worst_text(st, said, sizeof(said));
	text = ui_state_clean(buf, sizeof(buf), said);
	end = draw_position(st, c, row, text.width + 40u > c->cols);
	end = end > 2 ? end - 2 : 0;
	if (text.size)
		draw_message(st, c, row, end, text);
	else
		draw_more(st, c, row, end);
}

/* One key of the bar. */
struct bar_item {
	enum action action;
	uint32_t code;
	const char *label;
};

/* F1 to F9, then keys without a number, then F10, which quits. */
static uint32_t bar_order(uint32_t code)
{
	return code == K_F(10) ? 100 : code > K_F0 ? code - K_F0 : 50;
}

/* Return the label of a key; "": none. The view's label takes precedence. */
static const char *bar_label(const struct ui_state *st, const struct key_binding *b)
{
	const struct view_label *own = view_of(st->view)->labels;

	if (view_context(st) != CTX_LIST)
		return b->label;
	for (; own && own->action; own++)
		if (own->action == b->action)
			return own->label;
	return b->label;
}

/* List the keys of the bar by F number. */
static unsigned int bar_items(const struct ui_state *st, struct bar_item *items, unsigned int max)
{
	enum key_context context = view_context(st);
	bool can_add = st->dialog.ops && st->dialog.ops->can_add;
	unsigned int nr = 0;

	for (const struct key_binding *b = key_table(); b->action && nr < max; b++) {
		struct bar_item item = { b->action,
					 user_keys_first(st->user_keys, context, b->action),
					 bar_label(st, b) };
		unsigned int at = nr;

		if (!item.code || !item.label[0] || (b->action == ACT_ADD && !can_add))
			continue;
		for (; at && bar_order(items[at - 1].code) > bar_order(item.code); at--)
			items[at] = items[at - 1];
		items[at] = item;
		nr++;
	}
	assert(nr <= max);
	return nr;
}

static unsigned int bar_width(const struct bar_item *item)
{
	char name[8];

	return (unsigned int)(strlen(key_name_of(name, item->code)) + strlen(item->label)) + 1;
}

/* Find the key of the bar to drop next, the least used first; UINT_MAX: none. */
static unsigned int bar_least(const struct bar_item *items, unsigned int nr)
{
	static const enum action leave[] = {
		ACT_OPEN,	    ACT_EXPORT,	   ACT_SETTINGS,   ACT_TREE,
		ACT_PICK_FREQUENCY, ACT_SORT_MENU, ACT_PICK_EVENT, ACT_DELAY,
		ACT_FREEZE,	    ACT_FILTER,	   ACT_MENU,	   ACT_SEARCH,
	};

	for (size_t n = 0; n < ARRAY_SIZE(leave); n++)
		for (unsigned int i = 1; i + 1 < nr; i++)
			if (items[i].action == leave[n])
				return i;
	return UINT_MAX;
}

/* Drop keys until the bar fits, except Help and Quit. */
static unsigned int bar_fit(struct bar_item *items, unsigned int nr, unsigned int cols)
{
	unsigned int width = 0;

	for (unsigned int i = 0; i < nr; i++)
		width += bar_width(&items[i]);
	while (nr > 2 && width > cols) {
		unsigned int least = bar_least(items, nr), out = least < nr ? least : nr / 2;

		width -= bar_width(&items[out]);
		nr--;
		memmove(&items[out], &items[out + 1], (nr - out) * sizeof(*items));
	}
	return nr;
}

static void draw_bar(struct ui_state *st, struct canvas *c, unsigned int row)
{
	struct bar_item items[32];
	unsigned int nr = bar_fit(items, bar_items(st, items, 32), c->cols), col = 0;

	for (unsigned int i = 0; i < nr && col < c->cols; i++) {
		unsigned int width = bar_width(&items[i]);
		char name[8], label[32];

		ui_state_zone(st, &(struct zone){ (uint16_t)row, (uint16_t)col, 1, (uint16_t)width,
						  ZONE_ACTION, items[i].action });
		col += canvas_text(c, row, col, c->cols - col,
				   ui_state_clean(label, sizeof(label),
						  key_name_of(name, items[i].code)),
				   (struct style){ ROLE_KEY, 0 });
		if (col < c->cols)
			col += canvas_text(c, row, col, c->cols - col,
					   text_format(label, sizeof(label), "%s ", items[i].label),
					   (struct style){ ROLE_KEY_LABEL, 0 });
	}
	if (col < c->cols)
		canvas_fill(c, row, col, c->cols - col, TEXT(" "),
			    (struct style){ ROLE_KEY_LABEL, 0 });
}

static void draw_too_small(struct canvas *c)
{
	char buf[64];

	canvas_text(c, 0, 0, c->cols,
		    text_format(buf, sizeof(buf), "needs %dx%d, is %ux%u", SCREEN_MIN_COLS,
				SCREEN_MIN_ROWS, c->cols, c->rows),
		    (struct style){ ROLE_WARN, 0 });
}

void screen_draw(struct ui_state *st, struct canvas *c)
{
	unsigned int top, bottom = c->rows;
	char message[sizeof(st->message)];
	bool resized = st->cols != c->cols || st->rows != c->rows;
	size_t above;

	canvas_clear(c);
	st->nr_zones = 0;
	st->rows = c->rows;
	st->cols = c->cols;
	/* Both have other rows on a small screen. */
	if (resized && st->view == VIEW_HELP)
		table_rebuild(st, VIEW_HELP);
	if (resized)
		table_rebuild(st, VIEW_MESSAGES);
	if (c->cols < SCREEN_MIN_COLS || c->rows < SCREEN_MIN_ROWS) {
		draw_too_small(c);
		return;
	}
	if (st->prompt.kind)
		prompt_draw(st, c, --bottom);
	else if (has_message(st) && c->rows < 10)
		draw_message(st, c, --bottom, c->cols,
			     ui_state_clean(message, sizeof(message), st->message));
	else
		draw_bar(st, c, --bottom);
	top = header_draw(st, c);
	above = bytes_above(st, c);
	if (c->rows >= 10)
		bottom -= above ? 2 : 1;
	table_draw(st, c, top, bottom > top ? bottom - top : 0);
	/* After the table, which sets the number of rows below. */
	if (c->rows >= 10)
		draw_status(st, c, bottom + (above != 0), above);
	if (st->dialog.ops)
		dialog_draw(st, c);
}
