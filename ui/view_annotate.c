// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One function, instruction by instruction. The main thread; reads the state,
 * and keeps the lines of the code in st->disasm.
 *
 * A row's identity is its offset in the function: the cursor stays on its
 * instruction whatever the order.
 */
#include "ui/view_annotate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ui/actions.h"
#include "ui/disasm.h"
#include "ui/format.h"
#include "ui/view.h"

static const struct profile *profile_of(const struct ui_state *st)
{
	const struct profile *p = st->shown;

	/* Asked for after the rows were frozen: the newest has it. */
	if (!p || !p->annotate || p->annotate->function != st->annotate.function)
		p = st->latest;
	return p && p->annotate && p->annotate->function == st->annotate.function ? p : NULL;
}

static const struct disasm_line *line_of(const struct ui_state *st, const struct row *row)
{
	return &st->annotate.disasm->lines[row->index];
}

static int by_share(const struct ui_state *st, const struct row *a, const struct row *b)
{
	return (a->self > b->self) - (a->self < b->self);
}

static int by_address(const struct ui_state *st, const struct row *a, const struct row *b)
{
	return (a->id > b->id) - (a->id < b->id);
}

static enum theme_role heat(double share)
{
	return share >= 0.10 ? ROLE_BAR_HOT : share >= 0.03 ? ROLE_BAR_WARM : ROLE_BAR;
}

static void draw_share(const struct ui_state *st, const struct row *row, struct canvas *c,
		       struct place at)
{
	if (row->count > 0)
		view_draw_percent(c, at, row->self);
}

static void draw_bar(const struct ui_state *st, const struct row *row, struct canvas *c,
		     struct place at)
{
	if (row->count > 0)
		view_draw_bar(st, c, at, row->self, heat(row->self));
}

static void draw_samples(const struct ui_state *st, const struct row *row, struct canvas *c,
			 struct place at)
{
	char buf[FORMAT_MAX];

	if (row->count > 0)
		canvas_right(c, at.row, at.col, at.cols, format_count(buf, row->count),
			     (struct style){ ROLE_NORMAL, 0 });
}

static void draw_offset(const struct ui_state *st, const struct row *row, struct canvas *c,
			struct place at)
{
	char buf[24];

	canvas_right(c, at.row, at.col, at.cols,
		     text_format(buf, sizeof(buf), "+0x%" PRIx64, row->id),
		     (struct style){ ROLE_DIM, 0 });
}

static void draw_address(const struct ui_state *st, const struct row *row, struct canvas *c,
			 struct place at)
{
	char buf[24];

	canvas_right(c, at.row, at.col, at.cols,
		     text_format(buf, sizeof(buf), "%" PRIx64, line_of(st, row)->vaddr),
		     (struct style){ ROLE_DIM, 0 });
}

/* Up or down, where it jumps within the function. */
static void draw_arrow(const struct ui_state *st, const struct row *row, struct canvas *c,
		       struct place at)
{
	const struct disasm_line *line = line_of(st, row);

	if (line->target != DISASM_NONE)
		canvas_text(c, at.row, at.col, 1,
			    line->target > row->index ? st->glyphs->down : st->glyphs->up,
			    (struct style){ ROLE_FRAME, 0 });
}

static void draw_text(const struct ui_state *st, const struct row *row, struct canvas *c,
		      struct place at)
{
	const struct disasm_line *line = line_of(st, row);
	const struct match *search = &st->lists[VIEW_ANNOTATE].search;
	char buf[256];
	struct safe_text text =
		ui_clean(buf, sizeof(buf), disasm_text(st->annotate.disasm, line));
	bool found = match_active(search) && match_finds(search, text);

	canvas_elide(c, at.row, at.col, at.cols, text,
		     (struct style){ line->call   ? ROLE_JIT
				     : line->jump ? ROLE_TITLE
						  : ROLE_NORMAL,
				     found ? CELL_UNDERLINE : 0 });
}

enum { SHARE, BAR, SAMPLES, ADDRESS, OFFSET, ARROW, INSTRUCTION };

static const struct view_column columns[] = {
	[SHARE] = { .title = TEXT("SELF%"),
		    .help = "share of the function's own samples",
		    .width = 7,
		    .right = true,
		    .compare = by_share,
		    .draw = draw_share },
	[BAR] = { .title = TEXT(""), .width = 8, .wide = 12, .from = 60, .draw = draw_bar },
	[SAMPLES] = { .title = TEXT("SAMPLES"),
		      .width = 8,
		      .from = 70,
		      .right = true,
		      .compare = by_share,
		      .draw = draw_samples },
	[ADDRESS] = { .title = TEXT("ADDRESS"),
		      .help = "as in the object",
		      .width = 10,
		      .from = 100,
		      .right = true,
		      .ascending = true,
		      .compare = by_address,
		      .draw = draw_address },
	[OFFSET] = { .title = TEXT("OFFSET"),
		     .help = "in the function",
		     .width = 8,
		     .right = true,
		     .ascending = true,
		     .compare = by_address,
		     .draw = draw_offset },
	[ARROW] = { .title = TEXT(""), .width = 1, .draw = draw_arrow },
	[INSTRUCTION] = { .title = TEXT("INSTRUCTION"), .draw = draw_text },
};


/* Samples of the shown event into the rows; they stand in order of address. */
static void add_points(const struct ui_state *st, const struct profile_annotate *a, uint32_t event,
		       struct list *list)
{
	double all = 0;

	for (uint32_t i = 0; i < a->nr_points; i++) {
		const struct profile_point *pt = &a->points[i];
		uint32_t line;

		if (pt->event != event)
			continue;
		all += pt->weight;
		list->count += pt->count;
		line = disasm_at(st->annotate.disasm, pt->vaddr);
		if (line == DISASM_NONE || line >= list->nr)
			continue;
		list->rows[line].count += pt->count;
		list->rows[line].self += pt->weight;
	}
	for (uint32_t i = 0; i < list->nr && all > 0; i++)
		list->rows[i].self /= all;
}

static int build(const struct ui_state *st, struct list *list)
{
	const struct profile *p = profile_of(st);
	struct disasm *d = st->annotate.disasm;
	int rc;

	if (!p || !d)
		return 0;
	rc = disasm_update(d, p->annotate);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < d->nr; i++) {
		struct row *row = list_add(list);

		if (!row)
			return -ENOMEM;
		row->id = (uint32_t)(d->lines[i].vaddr - d->vaddr);
		row->index = i;
		/* The limit is of all samples: it has nothing to say in here. */
		row->total = 1;
	}
	add_points(st, p->annotate, ui_state_event(st, p), list);
	return 0;
}

static bool finds(const struct ui_state *st, const struct row *row, const struct match *m)
{
	char buf[256];

	return match_finds(m, ui_clean(buf, sizeof(buf),
				       disasm_text(st->annotate.disasm, line_of(st, row))));
}

static unsigned int foot(const struct ui_state *st, const struct row *row, struct foot *f)
{
	const struct profile *p = profile_of(st);
	const struct profile_annotate *a = p ? p->annotate : NULL;
	char buf[160], n[FORMAT_MAX];

	foot_text(f, TEXT("Function"), st->annotate.name);
	if (!a || a->loading) {
		foot_line(f, TEXT("Code"), TEXT("is being read"));
		return f->used;
	}
	if (a->why)
		foot_text(f, TEXT("Code"), a->why);
	else
		foot_line(f, TEXT("Samples"),
			  text_format(buf, sizeof(buf),
				      "%s here, of all processes; %" PRIu64 " bytes%s; Tab: next "
				      "hottest, Enter: follow a jump",
				      format_count(n, st->lists[VIEW_ANNOTATE].count).str, a->size,
				      a->nr_code < a->size ? ", cut" : ""));
	return f->used;
}

void view_annotate_open(struct ui_state *st, uint32_t function, const char *name)
{
	struct list *list = &st->lists[VIEW_ANNOTATE];

	if (!st->annotate.disasm)
		st->annotate.disasm = xcalloc(1, sizeof(*st->annotate.disasm));
	st->annotate.function = function;
	ui_clean(st->annotate.name, sizeof(st->annotate.name), name);
	if (st->view != VIEW_ANNOTATE)
		st->annotate.from = st->view;
	list->pinned = false;
	list->sort = OFFSET;
	list->inverted = false;
	st->annotate.hottest = true;
	sampler_set_annotate(st->sampler, function);
	actions_show(st, VIEW_ANNOTATE);
}

void view_annotate_close(struct ui_state *st)
{
	sampler_set_annotate(st->sampler, UINT32_MAX);
	actions_show(st, st->annotate.from);
}

/* Follow a jump. */
void view_annotate_follow(struct ui_state *st)
{
	struct list *list = &st->lists[VIEW_ANNOTATE];
	const struct row *row = list->cursor < list->nr ? &list->rows[list->cursor] : NULL;
	const struct disasm_line *line = row ? line_of(st, row) : NULL;
	uint32_t target;

	if (!line || line->target == DISASM_NONE) {
		ui_state_say(st, false, "no jump within the function");
		return;
	}
	target = line->target;
	for (uint32_t i = 0; i < list->nr; i++)
		if (list->rows[i].index == target) {
			list_move_to(st, i);
			return;
		}
}

/* Is @a to be met before @b when going from hot to cold? */
static bool hotter(const struct row *a, const struct row *b)
{
	return a->self > b->self || (a->self == b->self && a->id < b->id);
}

/* From hot to cold, from where the cursor is; at the end, the hottest again. */
void view_annotate_hottest(struct ui_state *st, bool back)
{
	struct list *list = &st->lists[VIEW_ANNOTATE];
	const struct row *at = list->pinned && list->cursor < list->nr ? &list->rows[list->cursor] :
									 NULL;
	uint32_t best = UINT32_MAX, first = UINT32_MAX;

	for (uint32_t i = 0; i < list->nr; i++) {
		const struct row *row = &list->rows[i];

		if (row->count <= 0)
			continue;
		if (first == UINT32_MAX || hotter(row, &list->rows[first]) != back)
			first = i;
		if (!at || (back ? !hotter(row, at) : !hotter(at, row)) || row == at)
			continue;
		if (best == UINT32_MAX || hotter(row, &list->rows[best]) != back)
			best = i;
	}
	if (best == UINT32_MAX)
		best = first;
	if (best != UINT32_MAX)
		list_move_to(st, best);
}

void view_annotate_arrived(struct ui_state *st)
{
	if (st->view != VIEW_ANNOTATE || !st->annotate.hottest || !st->lists[VIEW_ANNOTATE].nr)
		return;
	st->annotate.hottest = false;
	view_annotate_hottest(st, false);
}

const struct view view_annotate = {
	.title = TEXT("Annotate"),
	.columns = columns,
	.nr_columns = ARRAY_SIZE(columns),
	.sort_self = SHARE,
	.sort_total = SHARE,
	.sort_module = UINT8_MAX,
	.build = build,
	.finds = finds,
	.foot = foot,
	.empty = TEXT("no code to show yet"),
};
