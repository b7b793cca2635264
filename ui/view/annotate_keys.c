// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Keys in the annotate view. Runs on: the main thread.
 */
#include "ui/view/view_annotate.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/view/arrows.h"
#include "ui/view/navigate.h"
#include "ui/view/table.h"
#include "ui/view/view.h"

/* Show another function; the cursor goes to its hottest row. */
static void show(struct ui_state *st, uint32_t function, const char *name)
{
	struct list *list = &st->lists[VIEW_ANNOTATE];

	if (!st->annotate.arrows)
		st->annotate.arrows = xcalloc(1, sizeof(*st->annotate.arrows));
	st->annotate.function = function;
	ui_state_clean(st->annotate.name, sizeof(st->annotate.name), name);
	list->pinned = false;
	list->top = 0;
	st->annotate.hottest = true;
	sampler_set_annotate(st->sampler, function);
	navigate_to(st, VIEW_ANNOTATE);
}

void view_annotate_open(struct ui_state *st, uint32_t function, const char *name)
{
	struct list *list = &st->lists[VIEW_ANNOTATE];

	if (st->view != VIEW_ANNOTATE)
		st->annotate.from = st->view;
	st->annotate.nr_back = 0;
	list->sort = VIEW_ANNOTATE_BY_OFFSET;
	list->inverted = false;
	show(st, function, name);
}

/* Enter the called function; Esc leads back. */
static void enter(struct ui_state *st, uint32_t function, const char *name)
{
	const struct list *list = &st->lists[VIEW_ANNOTATE];
	struct annotate_level *level;

	if (st->annotate.nr_back == ANNOTATE_LEVELS) {
		memmove(st->annotate.back, st->annotate.back + 1,
			(ANNOTATE_LEVELS - 1) * sizeof(*st->annotate.back));
		st->annotate.nr_back--;
	}
	assert(st->annotate.nr_back < ANNOTATE_LEVELS);
	level = &st->annotate.back[st->annotate.nr_back++];
	level->function = st->annotate.function;
	level->selected = list->selected;
	memcpy(level->name, st->annotate.name, sizeof(level->name));
	show(st, function, name);
}

void view_annotate_close(struct ui_state *st)
{
	struct list *list = &st->lists[VIEW_ANNOTATE];
	const struct annotate_level *level;

	if (!st->annotate.nr_back) {
		navigate_to(st, st->annotate.from);
		return;
	}
	level = &st->annotate.back[--st->annotate.nr_back];
	show(st, level->function, level->name);
	st->annotate.hottest = false;
	list->selected = level->selected;
	list->pinned = true;
}

void view_annotate_left(struct ui_state *st)
{
	if (st->annotate.function != UINT32_MAX)
		sampler_set_annotate(st->sampler, UINT32_MAX);
	st->annotate.function = UINT32_MAX;
}

/* Move the cursor to instruction @index. Return false if it is hidden. */
static bool go_to(struct ui_state *st, uint32_t index)
{
	struct list *list = &st->lists[VIEW_ANNOTATE];

	for (uint32_t i = 0; i < list->nr; i++)
		if (annotate_kind(list->rows[i].id) == ANNOTATE_INSN &&
		    list->rows[i].index == index) {
			table_move_to(st, i);
			return true;
		}
	return false;
}

/* Move from a source line to its hottest instruction. */
static void open_line(struct ui_state *st, const struct row *row)
{
	const struct listing *l = annotate_listing(st);
	struct list *list = &st->lists[VIEW_ANNOTATE];
	uint32_t file, line, best = UINT32_MAX;

	if (!l || !annotate_source(st, row, &file, &line))
		return;
	if (l->script) {
		ui_state_say(st, false, "source only: no instructions (O: editor)");
		return;
	}
	if (annotate_shown(st) == ANNOTATE_SOURCE)
		view_annotate_mode(st, ANNOTATE_BOTH);
	for (uint32_t i = 0; i < list->nr; i++) {
		const struct row *at = &list->rows[i];

		if (annotate_kind(at->id) == ANNOTATE_INSN && l->insns[at->index].file == file &&
		    l->insns[at->index].line == line &&
		    (best == UINT32_MAX || at->self > list->rows[best].self))
			best = i;
	}
	if (best != UINT32_MAX)
		table_move_to(st, best);
	else
		ui_state_say(st, false, "no instructions for this line");
}

void view_annotate_follow(struct ui_state *st)
{
	struct list *list = &st->lists[VIEW_ANNOTATE];
	const struct row *row = list->cursor < list->nr ? &list->rows[list->cursor] : NULL;
	const struct listing *l = annotate_listing(st);
	const struct listing_insn *insn;
	const char *name;

	if (!row || !l || annotate_kind(row->id) == ANNOTATE_POINT)
		return;
	if (annotate_kind(row->id) != ANNOTATE_INSN) {
		open_line(st, row);
		return;
	}
	insn = &l->insns[row->index];
	if (insn->target != LISTING_NONE) {
		if (!go_to(st, insn->target))
			ui_state_say(st, false, "the target of the jump is hidden by the filter");
	} else if (insn->callee != LISTING_NONE) {
		name = strchr(listing_text(l, insn->text), ' ');
		enter(st, insn->callee, name ? name + strspn(name, " ") : "?");
	} else if (insn->call || insn->jump) {
		ui_state_say(st, false,
			     "indirect: target known at run time only (b shows callees)");
	} else {
		ui_state_say(st, false, "not a jump or call: nothing to follow");
	}
}

/* Return whether @a is hotter than @b. Lines of a script without own samples by total; ties by id.
 */
static bool hotter(const struct row *a, const struct row *b)
{
	if (a->self != b->self)
		return a->self > b->self;
	return a->other[0] > b->other[0] || (a->other[0] == b->other[0] && a->id < b->id);
}

/* Start at the cursor; after the coldest row, the hottest again. */
void view_annotate_hottest(struct ui_state *st, bool back)
{
	struct list *list = &st->lists[VIEW_ANNOTATE];
	const struct row *at = list->pinned && list->cursor < list->nr ? &list->rows[list->cursor]
								       : NULL;
	uint32_t best = UINT32_MAX, first = UINT32_MAX;

	for (uint32_t i = 0; i < list->nr; i++) {
		const struct row *row = &list->rows[i];

		if (row->count <= 0 && row->other[0] <= 0)
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
		table_move_to(st, best);
}

void view_annotate_mode(struct ui_state *st, enum annotate_mode mode)
{
	static const char *const said[ANNOTATE_NR_MODES] = {
		[ANNOTATE_BOTH] = "source and assembly",
		[ANNOTATE_SOURCE] = "source only: samples by line",
		[ANNOTATE_ASSEMBLY] = "assembly only",
	};
	const struct listing *l = annotate_listing(st);
	struct list *list = &st->lists[VIEW_ANNOTATE];
	const struct row *row = list->cursor < list->nr ? &list->rows[list->cursor] : NULL;
	uint32_t file, line;
	bool known = row && annotate_source(st, row, &file, &line);

	if (l && l->script) {
		ui_state_say(st, false, "source only: no instructions (O: editor)");
		return;
	}
	if (l && !l->nr_files) {
		ui_state_say(st, false, "only assembly: %s",
			     l->no_source ? l->no_source
			     : l->why	  ? l->why
					  : "no line information");
		return;
	}
	/* Keep the cursor on its line or instruction. */
	if (known && mode == ANNOTATE_SOURCE)
		list->selected = (uint64_t)ANNOTATE_LINE << ANNOTATE_SHIFT | (uint64_t)file << 32 |
				 line;
	if (known && mode == ANNOTATE_ASSEMBLY && annotate_kind(row->id) == ANNOTATE_ABOVE)
		list->selected = row->id & ((1ULL << ANNOTATE_SHIFT) - 1);
	st->annotate.mode = mode;
	table_rebuild(st, VIEW_ANNOTATE);
	if (known && st->view == VIEW_ANNOTATE && annotate_kind(list->selected) == ANNOTATE_LINE &&
	    mode != ANNOTATE_SOURCE && list->nr)
		open_line(st, &(struct row){ .id = list->selected, .index = file });
	else if (list->nr && list->pinned)
		table_move_to(st, list->cursor);
	ui_state_say(st, false, "%s", said[mode]);
}

void view_annotate_arrived(struct ui_state *st)
{
	if (st->view != VIEW_ANNOTATE || !st->annotate.hottest || !st->lists[VIEW_ANNOTATE].nr)
		return;
	st->annotate.hottest = false;
	view_annotate_hottest(st, false);
}
