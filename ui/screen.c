// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The whole screen, drawn from the state; over the rows a box of entries or a line that is typed.
 * It knows no terminal, so it runs in tests, and no contents of a box: they are a table of
 * functions, given when it is opened.
 *
 * Runs on: the main thread.
 *
 * Invariant: the cursor of a box is on an entry that can be selected, if there is any.
 */
#include "ui/internal.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/count/count.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "ui/draw/draw.h"
#include "ui/export/export.h"
#include "ui/fold/fold.h"
#include "ui/key/key.h"
#include "ui/state/state.h"
#include "ui/text/text.h"
#include "ui/view/view.h"

/*
 * A box: entries that narrow while one types.
 */

#define WIDTH_MAX 116u

/* ---- the line that is typed ---- */

void prompt_open(struct ui_state *st, enum prompt_kind kind)
{
	struct prompt *p = &st->prompt;
	struct list *list = ui_state_list(st);
	char text[32] = "";

	assert(kind != PROMPT_NONE);
	memset(p, 0, sizeof(*p));
	p->kind = kind;
	/* A longer text would be cut. */
	if (kind == PROMPT_FILTER || kind == PROMPT_SEARCH)
		p->line.max = MATCH_MAX - 1;
	p->position_before = list_position(list);
	p->fresh = kind == PROMPT_DELAY || kind == PROMPT_LIMIT;
	switch (kind) {
	case PROMPT_FILTER:
		snprintf(p->before, sizeof(p->before), "%s", list->filter.text);
		line_set(&p->line, p->before);
		break;
	case PROMPT_SEARCH:
		snprintf(p->before, sizeof(p->before), "%s", list->search.text);
		break;
	case PROMPT_DELAY:
		snprintf(text, sizeof(text), "%g", (double)st->set.tick_ns / 1e9);
		line_set(&p->line, text);
		break;
	case PROMPT_COMMAND:
	case PROMPT_REWIND:
	case PROMPT_REPLACE:
		break;
	default:
		snprintf(text, sizeof(text), "%g", st->set.percent_limit);
		line_set(&p->line, text);
		break;
	}
}

/* Return a hint for an empty line. */
static struct safe_text hint_of(const struct prompt *p)
{
	if (p->kind == PROMPT_FILTER)
		return TEXT("text or regex; a leading ! hides matches");
	return p->before[0] ? TEXT("text or regex; Enter repeats the last search")
			    : TEXT("text or regex; then n next, N previous");
}

/* Draw the part of a line with the cursor in @cols cells. Return the cells used. */
static unsigned int prompt_draw_line(const struct line *l, struct canvas *c, unsigned int row,
				     unsigned int col, unsigned int cols, struct style style)
{
	char head[LINE_SIZE], buf[LINE_SIZE];
	unsigned int at, first;
	struct safe_text text, rest;

	memcpy(head, l->text, l->at);
	head[l->at] = '\0';
	at = ui_state_clean(buf, sizeof(buf), head).width;
	text = ui_state_clean(buf, sizeof(buf), l->text);
	/* The end of the text, with a cell for the cursor behind it. */
	rest = text_skip(text, at + 1 > cols ? at + 1 - cols : 0);
	first = (unsigned int)text.width - rest.width;
	c->cursor_row = (int)row;
	c->cursor_col = (int)MIN(col + at - first, c->cols - 1);
	return canvas_text(c, row, col, cols, rest, style);
}

static void draw_candidates(const struct prompt *p, struct canvas *c, unsigned int row,
			    unsigned int col)
{
	char clean[PROMPT_CANDIDATES];

	if (col + 1 < c->cols)
		canvas_elide(c, row, col, c->cols - col - 1,
			     ui_state_clean(clean, sizeof(clean), p->candidates),
			     (struct style){ ROLE_DIM, 0 });
}

static void prompt_draw(struct ui_state *st, struct canvas *c, unsigned int row)
{
	static const struct safe_text labels[] = {
		[PROMPT_SEARCH] = TEXT("Search: "),
		[PROMPT_FILTER] = TEXT("Filter: "),
		[PROMPT_DELAY] = TEXT("Seconds between refreshes: "),
		[PROMPT_LIMIT] = TEXT("Hide rows under percent: "),
		[PROMPT_COMMAND] = TEXT(":"),
		[PROMPT_REWIND] = TEXT("Rewind to: "),
		[PROMPT_REPLACE] = TEXT("File exists. Replace it? (y/N) "),
	};
	const struct prompt *p = &st->prompt;
	const struct list *list = ui_state_list(st);
	const struct match *m = p->kind == PROMPT_FILTER ? &list->filter : &list->search;
	bool text = p->kind == PROMPT_FILTER || p->kind == PROMPT_SEARCH;
	bool missing = text && p->line.size && (!list->nr || p->missed);
	char clean[sizeof(p->candidates)];
	unsigned int col;

	assert(p->kind != PROMPT_NONE && p->kind < ARRAY_SIZE(labels));
	col = canvas_text(c, row, 0, c->cols, labels[p->kind], (struct style){ ROLE_KEY, 0 });
	col += prompt_draw_line(&p->line, c, row, col, c->cols - MIN(col, c->cols),
				(struct style){
					text && (m->bad || missing) ? ROLE_WARN : ROLE_NORMAL, 0 });
	if (p->kind == PROMPT_REPLACE)
		canvas_elide(c, row, col + 1, c->cols - MIN(col + 1, c->cols),
			     ui_state_clean(clean, sizeof(clean), st->written.path),
			     (struct style){ ROLE_DIM, 0 });
	else if (p->kind == PROMPT_COMMAND || p->kind == PROMPT_REWIND)
		draw_candidates(p, c, row, col + 2);
	else if (text && m->bad && p->line.size)
		canvas_text(c, row, col + 2, c->cols,
			    text_format(clean, sizeof(clean),
					"not a regular expression (%s): taken as text", m->why),
			    (struct style){ ROLE_WARN, 0 });
	else if (missing)
		canvas_text(c, row, col + 2, c->cols,
			    p->missed ? ui_state_clean(clean, sizeof(clean), p->candidates)
				      : TEXT("no match"),
			    (struct style){ ROLE_WARN, 0 });
	else if (text && !p->line.size)
		canvas_text(c, row, col + 2, c->cols, hint_of(p), (struct style){ ROLE_DIM, 0 });
}

/* ---- the box ---- */

static bool selectable(const struct dialog *d, uint32_t at)
{
	return at < d->nr_shown && !d->entries[d->shown[at]].heading;
}

/* Move on to an entry that can be selected; if none follows, back. */
static void settle(struct dialog *d, int direction)
{
	uint32_t from = d->cursor;

	while (d->cursor < d->nr_shown && !selectable(d, d->cursor) &&
	       (direction > 0 || d->cursor > 0))
		d->cursor += (uint32_t)direction;
	if (selectable(d, d->cursor))
		return;
	d->cursor = from < d->nr_shown ? from : d->nr_shown ? d->nr_shown - 1 : 0;
	while (d->cursor < d->nr_shown && !selectable(d, d->cursor) &&
	       (direction < 0 || d->cursor > 0))
		d->cursor -= (uint32_t)direction;
	if (d->cursor >= d->nr_shown)
		d->cursor = 0;
	assert(d->cursor < d->nr_shown || !d->nr_shown);
}

static void scroll(struct dialog *d)
{
	uint32_t page = d->page;

	/* It is known when the box is drawn. */
	if (!page)
		return;
	if (d->cursor < d->top)
		d->top = d->cursor;
	if (d->cursor >= d->top + page)
		d->top = d->cursor - page + 1;
	/* The heading above the first entry belongs to it. */
	if (d->top == 1 && d->cursor < page)
		d->top = 0;
	if (d->top + page > d->nr_shown)
		d->top = d->nr_shown > page ? d->nr_shown - page : 0;
}

/* Filter the entries by the typed text. */
static void narrow(struct dialog *d)
{
	struct match m;
	bool all = !d->line.size;

	match_init(&m);
	match_set(&m, d->line.text);
	d->nr_shown = 0;
	for (uint32_t i = 0; i < d->nr; i++) {
		const struct dialog_entry *entry = &d->entries[i];
		char name[sizeof(entry->name)], detail[sizeof(entry->detail)];

		if (all || (!entry->heading &&
			    (match_finds(&m, ui_state_clean(name, sizeof(name), entry->name)) ||
			     match_finds(&m, ui_state_clean(detail, sizeof(detail),
							    entry->detail))) != m.negate))
			d->shown[d->nr_shown++] = i;
	}
	match_fini(&m);
	assert(d->nr_shown <= d->nr && d->nr <= d->capacity);
	if (d->cursor >= d->nr_shown)
		d->cursor = 0;
	settle(d, 1);
	scroll(d);
}

void dialog_open(struct ui_state *st, const struct dialog_ops *ops, void *data,
		 void (*drop)(void *data))
{
	struct dialog *d = &st->dialog;

	dialog_close(st);
	d->ops = ops;
	d->data = data;
	d->drop = drop;
	d->levels = (struct dialog_levels){ true, true, 0 };
	ops->fill(st);
	narrow(d);
	/* Start at the entry in use, unless another one is marked as first. */
	for (uint32_t i = d->nr_shown; i-- > 0;)
		if (d->entries[d->shown[i]].used && selectable(d, i))
			d->cursor = i;
	for (uint32_t i = 0; i < d->nr_shown; i++)
		if (d->entries[d->shown[i]].first)
			d->cursor = i;
	scroll(d);
}

void dialog_close(struct ui_state *st)
{
	if (st->dialog.drop)
		st->dialog.drop(st->dialog.data);
	free(st->dialog.entries);
	free(st->dialog.shown);
	memset(&st->dialog, 0, sizeof(st->dialog));
}

void dialog_refresh(struct ui_state *st)
{
	struct dialog *d = &st->dialog;
	char name[EVENT_NAME_MAX] = "";
	uint64_t value = 0;

	assert(d->ops);
	if (selectable(d, d->cursor)) {
		memcpy(name, d->entries[d->shown[d->cursor]].name, sizeof(name));
		value = d->entries[d->shown[d->cursor]].value;
	}
	d->nr = 0;
	d->ops->fill(st);
	narrow(d);
	for (uint32_t i = 0; name[0] && i < d->nr_shown; i++) {
		const struct dialog_entry *entry = &d->entries[d->shown[i]];

		if (entry->value == value && !strcmp(entry->name, name) && selectable(d, i)) {
			d->cursor = i;
			break;
		}
	}
	scroll(d);
}

static void move(struct dialog *d, int64_t by)
{
	int64_t to = (int64_t)d->cursor + by;

	if (!d->nr_shown)
		return;
	d->cursor = (uint32_t)MIN(MAX(to, 0), (int64_t)d->nr_shown - 1);
	settle(d, by < 0 ? -1 : 1);
	scroll(d);
}

/* Return the entry at the cursor; NULL: none. */
static const struct dialog_entry *at_cursor(const struct dialog *d)
{
	return selectable(d, d->cursor) ? &d->entries[d->shown[d->cursor]] : NULL;
}

static void use(struct ui_state *st, bool add)
{
	struct dialog *d = &st->dialog;
	const struct dialog_entry *entry = at_cursor(d);

	if (add && !d->ops->can_add)
		return;
	if (!entry && !d->line.size)
		return;
	if (entry && entry->refused) {
		ui_state_say(st, true, "%s: %s", entry->name, entry->detail);
		return;
	}
	if (d->ops->use(st, entry, add))
		dialog_close(st);
	else if (st->dialog.ops)
		dialog_refresh(st);
}

/* Open the second line, about the entry at the cursor. */
static void open_field(struct ui_state *st)
{
	struct dialog *d = &st->dialog;
	const struct dialog_entry *entry = at_cursor(d);

	memset(&d->field, 0, sizeof(d->field));
	d->in_field = d->ops->field && entry && !entry->refused &&
		      d->ops->field(st, entry, &d->field);
}

/* Handle a key in the second line. */
static void field_key(struct ui_state *st, const struct key *key)
{
	struct dialog *d = &st->dialog;
	bool changed;

	switch (key_find(CTX_PICKER, key->code)) {
	case ACT_ACCEPT:
		use(st, false);
		return;
	case ACT_ADD:
		use(st, true);
		return;
	case ACT_EVENT_FILTER:
	case ACT_CANCEL:
		d->in_field = false;
		return;
	default:
		if (line_key(&d->field, key->code, &changed) && d->field.full)
			ui_state_say(st, true, "the line is full");
	}
}

void dialog_key(struct ui_state *st, const struct key *key)
{
	struct dialog *d = &st->dialog;
	bool changed;

	if (d->in_field) {
		field_key(st, key);
		return;
	}
	if (!d->line.size && d->ops->key && d->ops->key(st, key->code)) {
		if (d->ops)
			dialog_refresh(st);
		return;
	}

	switch (key_find(CTX_PICKER, key->code)) {
	case ACT_LINE_UP:
		move(d, -1);
		return;
	case ACT_LINE_DOWN:
		move(d, 1);
		return;
	case ACT_PAGE_UP:
		move(d, -(int64_t)MAX(d->page, 1u));
		return;
	case ACT_PAGE_DOWN:
		move(d, MAX(d->page, 1u));
		return;
	case ACT_FIRST:
		move(d, -(int64_t)d->nr_shown);
		return;
	case ACT_LAST:
		move(d, d->nr_shown);
		return;
	case ACT_ACCEPT:
		use(st, false);
		return;
	case ACT_ADD:
		use(st, true);
		return;
	case ACT_CANCEL:
		dialog_close(st);
		return;
	case ACT_EVENT_FILTER:
		open_field(st);
		return;
	default:
		break;
	}
	if (line_key(&d->line, key->code, &changed) && d->line.full)
		ui_state_say(st, true, "the line is full");
	if (changed) {
		d->cursor = d->top = 0;
		narrow(d);
	}
}

void dialog_click(struct ui_state *st, uint32_t at)
{
	struct dialog *d = &st->dialog;

	at += d->top;
	if (!selectable(d, at))
		return;
	if (at == d->cursor) {
		use(st, false);
		return;
	}
	d->cursor = at;
}

static void draw_frame(const struct ui_state *st, struct canvas *c, unsigned int row,
		       unsigned int col, unsigned int rows, unsigned int cols)
{
	const struct glyphs *g = st->glyphs;
	const struct style frame = { ROLE_FRAME, 0 };
	char buf[64];

	for (unsigned int i = 0; i < rows; i++)
		canvas_fill(c, row + i, col, cols, TEXT(" "), (struct style){ ROLE_DIALOG, 0 });
	canvas_fill(c, row, col, cols, g->hline, frame);
	canvas_fill(c, row + rows - 1, col, cols, g->hline, frame);
	for (unsigned int i = 1; i + 1 < rows; i++) {
		canvas_text(c, row + i, col, 1, g->vline, frame);
		canvas_text(c, row + i, col + cols - 1, 1, g->vline, frame);
	}
	canvas_text(c, row, col, 1, g->top_left, frame);
	canvas_text(c, row, col + cols - 1, 1, g->top_right, frame);
	canvas_text(c, row + rows - 1, col, 1, g->bottom_left, frame);
	canvas_text(c, row + rows - 1, col + cols - 1, 1, g->bottom_right, frame);
	canvas_elide(c, row, col + 2, cols - 4,
		     text_format(buf, sizeof(buf), " %s ", st->dialog.ops->title),
		     (struct style){ ROLE_TITLE, 0 });
}

/* Return the width of the names; details get the rest. */
static unsigned int names_width(const struct dialog *d, unsigned int cols)
{
	unsigned int most = 0;

	for (uint32_t i = 0; i < d->nr; i++)
		if (!d->entries[i].heading)
			most = MAX(most, (unsigned int)strlen(d->entries[i].name));
	return MIN(most, cols > 60 ? 26u : cols / 2);
}

static void draw_entry(const struct ui_state *st, struct canvas *c, unsigned int row,
		       unsigned int col, unsigned int cols, const struct dialog_entry *entry,
		       unsigned int width, bool here)
{
	char name[sizeof(entry->name)], detail[sizeof(entry->detail)];
	struct safe_text n = ui_state_clean(name, sizeof(name), entry->name);
	struct safe_text d = ui_state_clean(detail, sizeof(detail), entry->detail);
	enum theme_role role = entry->refused ? ROLE_DISABLED : entry->used ? ROLE_OK : ROLE_NORMAL;

	if (entry->heading) {
		col += canvas_elide(c, row, col, cols, n, (struct style){ ROLE_FRAME, CELL_BOLD });
		if (n.width + 2u < cols)
			canvas_elide(c, row, col + 2, cols - n.width - 2, d,
				     (struct style){ ROLE_DIM, 0 });
		return;
	}
	if (entry->used || entry->refused)
		canvas_text(c, row, col + 2, 1,
			    entry->used ? st->glyphs->used : st->glyphs->refused,
			    (struct style){ entry->used ? ROLE_OK : ROLE_WARN, 0 });
	if (n.width > width)
		width = MIN(n.width, cols - 4);
	canvas_elide(c, row, col + 4, width, n, (struct style){ (uint8_t)role, 0 });
	if (width + 6 < cols)
		canvas_elide(c, row, col + 6 + width, cols - width - 6, d,
			     (struct style){ ROLE_DIM, 0 });
	if (here) {
		canvas_text(c, row, col, 1, st->glyphs->marker, (struct style){ ROLE_VALUE, 0 });
		canvas_restyle(c, row, col + 1, cols - 1, (struct style){ ROLE_SELECTED, 0 },
			       false);
	}
}

static void draw_line(const struct ui_state *st, struct canvas *c, unsigned int row,
		      unsigned int col, unsigned int cols)
{
	const struct dialog *d = &st->dialog;
	char buf[128];
	struct pen pen = { c, row, col, col + cols };

	if (d->in_field) {
		pen_text(&pen, 0, TEXT("filter: "), ROLE_KEY);
		prompt_draw_line(&d->field, c, row, pen.col, col + cols - pen.col,
				 (struct style){ ROLE_VALUE, 0 });
		return;
	}
	pen_text(&pen, 0, TEXT("> "), ROLE_KEY);
	prompt_draw_line(&d->line, c, row, pen.col, cols - 2, (struct style){ ROLE_VALUE, 0 });
	if (!d->line.size)
		canvas_elide(c, row, pen.col, cols - 2,
			     ui_state_clean(buf, sizeof(buf),
					    d->typing ? "type to filter" : d->ops->hint),
			     (struct style){ ROLE_DIM, 0 });
}

/* Draw it; at the bottom @below lines are of others. */
static void dialog_draw(struct ui_state *st, struct canvas *c, unsigned int below)
{
	struct dialog *d = &st->dialog;
	/* Leave the key bar visible, and a message of two lines. */
	unsigned int lines = d->nr + 3 + !!d->ops->foot + !!d->ops->status;
	unsigned int rows = MIN(MAX(lines, 12u), c->rows - (c->rows < 12 ? 1 : below));
	unsigned int cols = MIN(WIDTH_MAX, c->cols - (c->cols > 80 ? 4 : 2)), inner = cols - 4;
	unsigned int row = (c->rows - (c->rows < 12 ? 1 : below - 1) - rows) / 2,
		     col = (c->cols - cols) / 2;
	unsigned int width = names_width(d, inner);
	unsigned int foot = rows > 8 ? !!d->ops->foot + !!d->ops->status : 0;
	char buf[128], status[128];

	draw_frame(st, c, row, col, rows, cols);
	draw_line(st, c, row + 1, col + 2, inner);
	if (foot && d->ops->status) {
		d->ops->status(st, status, sizeof(status));
		canvas_elide(c, row + rows - 1 - foot, col + 2, inner,
			     ui_state_clean(buf, sizeof(buf), status),
			     (struct style){ ROLE_NORMAL, 0 });
	}
	if (foot && d->ops->foot)
		canvas_elide(c, row + rows - 2, col + 2, inner,
			     ui_state_clean(buf, sizeof(buf), d->ops->foot),
			     (struct style){ ROLE_DIM, 0 });
	d->page = rows - 3 - foot;
	scroll(d);
	ui_state_zone(st, &(struct zone){ (uint16_t)(row + 2), (uint16_t)col, (uint16_t)d->page,
					  (uint16_t)cols, ZONE_ENTRIES, 0 });
	for (uint32_t i = 0; i < d->page && d->top + i < d->nr_shown; i++)
		draw_entry(st, c, row + 2 + i, col + 2, inner, &d->entries[d->shown[d->top + i]],
			   width, d->top + i == d->cursor);
	if (!d->nr_shown)
		canvas_elide(c, row + 2, col + 6, inner - 4,
			     TEXT("no match; Enter tries the text as typed"),
			     (struct style){ ROLE_WARN, 0 });
}

/*
 * The whole screen: header, rows, status line, key bar, prompt and box.
 */

#define SCREEN_MIN_COLS 40
#define SCREEN_MIN_ROWS 8

/* Of the short position at the right of the status line. */
#define POSITION_COLS 12u

static bool has_message(const struct ui_state *st)
{
	return st->message[0] && st->now_ns < st->message_until_ns;
}

/*
 * Draw "row 2 of 1 231, 17 205 samples" at the right, shorter if @brief, or that the rows are a
 * draft. Return its first column.
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
	else if (st->folds && st->folds->drafted && folds_is_late(st))
		text = text_format(buf, sizeof(buf), "row %s of %s, a draft: folding %s stacks", at,
				   nr, format_count(count, st->shown->nr_stacks).str);
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
		dialog_draw(st, c, above ? 3 : 2);
}
