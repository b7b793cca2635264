// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Pickers: the part that is common to all. Runs on: the main thread.
 *
 * Invariant: the cursor is on an entry that can be selected, if there is any.
 */
#include "ui/dialog.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "ui/draw/pen.h"
#include "ui/prompt.h"

#define WIDTH_MAX 116u

struct dialog_entry *dialog_add(struct dialog *d)
{
	if (d->nr == d->capacity) {
		uint32_t capacity = d->capacity ? d->capacity * 2 : 64;
		struct dialog_entry *entries = reallocarray(d->entries, capacity, sizeof(*entries));
		uint32_t *shown;

		if (!entries)
			return NULL;
		d->entries = entries;
		shown = reallocarray(d->shown, capacity, sizeof(*shown));
		if (!shown)
			return NULL;
		d->shown = shown;
		d->capacity = capacity;
	}
	memset(&d->entries[d->nr], 0, sizeof(*d->entries));
	return &d->entries[d->nr++];
}

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

void dialog_open(struct ui_state *st, const struct dialog_ops *ops)
{
	dialog_open_with(st, ops, NULL, NULL);
}

void dialog_open_with(struct ui_state *st, const struct dialog_ops *ops, void *data,
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

static void use(struct ui_state *st, bool add)
{
	struct dialog *d = &st->dialog;
	const struct dialog_entry *entry =
		selectable(d, d->cursor) ? &d->entries[d->shown[d->cursor]] : NULL;

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

void dialog_key(struct ui_state *st, const struct key *key)
{
	struct dialog *d = &st->dialog;
	bool changed;

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

	pen_text(&pen, 0, TEXT("> "), ROLE_KEY);
	prompt_draw_line(&d->line, c, row, pen.col, cols - 2, (struct style){ ROLE_VALUE, 0 });
	if (!d->line.size)
		canvas_elide(c, row, pen.col, cols - 2,
			     ui_state_clean(buf, sizeof(buf),
					    d->typing ? "type to filter" : d->ops->hint),
			     (struct style){ ROLE_DIM, 0 });
}

void dialog_draw(struct ui_state *st, struct canvas *c)
{
	struct dialog *d = &st->dialog;
	/* Leave the key bar visible. */
	unsigned int lines = d->nr + 3 + !!d->ops->foot + !!d->ops->status;
	unsigned int rows = MIN(MAX(lines, 12u), c->rows - (c->rows < 12 ? 1 : 2));
	unsigned int cols = MIN(WIDTH_MAX, c->cols - (c->cols > 80 ? 4 : 2)), inner = cols - 4;
	unsigned int row = (c->rows - 1 - rows) / 2, col = (c->cols - cols) / 2;
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
