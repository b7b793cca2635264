// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What keys do: one small function an action. The main thread.
 *
 * They change the state or ask the sampler; drawing is left to the loop.
 */
#include "ui/actions.h"

#include <stdio.h>
#include <string.h>

#include "ui/actions_row.h"
#include "ui/actions_sampling.h"
#include "ui/actions_stacks.h"
#include "ui/actions_tools.h"
#include "ui/columns.h"
#include "ui/rate.h"
#include "ui/screen.h"
#include "ui/view/folds.h"
#include "ui/view/view.h"
#include "ui/view/view_annotate.h"

#define SCROLL_CELLS 8

static void rebuild(struct ui_state *st)
{
	/* The others are made anew when they are shown. */
	list_rebuild(st, st->view);
}

/* ---- moving ---- */

static void line_up(struct ui_state *st, uint32_t code)
{
	list_move(st, -1);
}

static void line_down(struct ui_state *st, uint32_t code)
{
	list_move(st, 1);
}

static void page_up(struct ui_state *st, uint32_t code)
{
	list_move(st, -(int64_t)MAX(ui_state_list(st)->page, 1u));
}

static void page_down(struct ui_state *st, uint32_t code)
{
	list_move(st, MAX(ui_state_list(st)->page, 1u));
}

static void half_up(struct ui_state *st, uint32_t code)
{
	list_move(st, -(int64_t)MAX(ui_state_list(st)->page / 2, 1u));
}

static void half_down(struct ui_state *st, uint32_t code)
{
	list_move(st, MAX(ui_state_list(st)->page / 2, 1u));
}

static void first(struct ui_state *st, uint32_t code)
{
	list_move_to(st, 0);
}

static void last(struct ui_state *st, uint32_t code)
{
	list_move_to(st, UINT32_MAX);
}

static void scroll_left(struct ui_state *st, uint32_t code)
{
	st->scroll -= MIN(st->scroll, SCROLL_CELLS);
}

static void scroll_right(struct ui_state *st, uint32_t code)
{
	st->scroll = MIN(st->scroll + SCROLL_CELLS, TEXT_MAX);
}

/* ---- views and levels ---- */

void actions_show(struct ui_state *st, enum view_id view)
{
	/* Help is only looked up. */
	if (view != VIEW_ANNOTATE && view != VIEW_HELP)
		view_annotate_left(st);
	st->view = view;
	st->scroll = 0;
	list_rebuild(st, view);
}

static void view_functions_(struct ui_state *st, uint32_t code)
{
	actions_show(st, VIEW_FUNCTIONS);
}

static void view_processes_(struct ui_state *st, uint32_t code)
{
	actions_show(st, VIEW_PROCESSES);
}

/* The views in a ring; help and callers are none of them. */
static void step_view(struct ui_state *st, unsigned int by)
{
	enum view_id from = st->view == VIEW_HELP ? st->help_from : st->view;

	if (from > VIEW_HELP)
		from = st->folds->callers_from;

	actions_show(st, (enum view_id)((from + by) % VIEW_HELP));
}

static void next_view(struct ui_state *st, uint32_t code)
{
	if (st->view == VIEW_ANNOTATE)
		view_annotate_hottest(st, false);
	else
		step_view(st, 1);
}

static void previous_view(struct ui_state *st, uint32_t code)
{
	if (st->view == VIEW_ANNOTATE)
		view_annotate_hottest(st, true);
	else
		step_view(st, VIEW_HELP - 1);
}

static void help(struct ui_state *st, uint32_t code)
{
	if (st->view == VIEW_HELP) {
		actions_show(st, st->help_from);
		return;
	}
	st->help_from = st->view;
	actions_show(st, VIEW_HELP);
}

void actions_enter_process(struct ui_state *st, uint32_t id)
{
	uint32_t index;
	char name[sizeof(st->process_name)];

	st->process = id;
	index = ui_state_process(st);
	if (index == UINT32_MAX)
		return;
	snprintf(name, sizeof(name), "%.100s[%d]", st->shown->processes[index].comm.str,
		 (int)st->shown->processes[index].pid);
	ui_clean(st->process_name, sizeof(st->process_name), name);
	if (!st->drilled)
		st->drill_from = st->view;
	st->drilled = true;
	st->in_thread = false;
	st->thread_group[0] = '\0';
	folds_forget(st->folds);
	folds_forget_baseline(st->folds);
	st->lists[VIEW_FUNCTIONS].pinned = false;
	/* Who looks at stacks stays there. */
	actions_show(st,
		     st->view == VIEW_TREE || st->view == VIEW_FLAME ? st->view : VIEW_FUNCTIONS);
}

void actions_leave_process(struct ui_state *st)
{
	if (!st->drilled)
		return;
	if (st->latest && st->latest->focus)
		sampler_unfocus(st->sampler);
	st->drilled = false;
	st->lists[VIEW_FUNCTIONS].pinned = false;
	actions_show(st, st->drill_from);
}

/* Enter: a process and a module lead to their functions, a function to its callers and callees. */
static void open_row(struct ui_state *st, uint32_t code)
{
	const struct list *list = ui_state_list(st);
	const struct row *row = list->cursor < list->nr ? &list->rows[list->cursor] : NULL;
	uint32_t function = actions_function(st);

	if (!row || !st->shown)
		return;
	if (st->view == VIEW_ANNOTATE)
		view_annotate_follow(st);
	else if (st->view == VIEW_PROCESSES && st->by_thread)
		actions_enter_thread(st, row);
	else if (st->view == VIEW_PROCESSES)
		actions_enter_process(st, (uint32_t)row->id);
	else if (st->view == VIEW_MODULES)
		screen_do(st, ACT_MODULE_ONLY, code);
	else if (function < st->shown->nr_functions)
		actions_callers(st, st->shown->functions[function].id);
	else
		ui_state_say(st, false,
			     "nothing to open in this row (m: what can be done with it)");
}

/* One level out: help, filter (Esc only), process, and at the root q quits. */
static void back(struct ui_state *st, uint32_t code)
{
	struct list *list = ui_state_list(st);

	if (st->view == VIEW_HELP) {
		actions_show(st, st->help_from);
	} else if (st->view == VIEW_ANNOTATE) {
		view_annotate_close(st);
	} else if (code == K_ESC && match_active(&list->filter)) {
		match_set(&list->filter, "");
		list_rebuild(st, st->view);
	} else if (code == K_ESC && match_active(&list->search)) {
		match_set(&list->search, "");
	} else if (st->drilled && st->latest && st->latest->focus) {
		/* First the sampling, as it was; the next one leaves the process. */
		sampler_unfocus(st->sampler);
	} else if (st->only.on && st->view == VIEW_FUNCTIONS) {
		st->only.on = false;
		actions_show(st, st->only.from);
	} else if (st->drilled) {
		actions_leave_process(st);
	} else if (code == 'q') {
		st->quit = true;
	} else {
		if (!list->pinned)
			ui_state_say(st, false, "no level further out (q quits)");
		/* Let go of the row: the cursor stays at the top again. */
		list->pinned = false;
		list_rebuild(st, st->view);
	}
}

static void pick_process(struct ui_state *st, uint32_t code)
{
	dialog_open(st, &dialog_processes);
}

/* ---- finding ---- */

static void search(struct ui_state *st, uint32_t code)
{
	prompt_open(st, PROMPT_SEARCH);
}

static void search_again(struct ui_state *st, bool backwards)
{
	struct list *list = ui_state_list(st);

	if (!match_active(&list->search))
		ui_state_say(st, false, "nothing to search for yet (/ searches)");
	else if (!list_search(st, backwards ? list->cursor + list->nr - 1 : list->cursor + 1,
			      backwards))
		ui_state_say(st, true, "%s: not found", list->search.text);
}

static void search_next(struct ui_state *st, uint32_t code)
{
	search_again(st, false);
}

static void search_previous(struct ui_state *st, uint32_t code)
{
	search_again(st, true);
}

static void filter(struct ui_state *st, uint32_t code)
{
	prompt_open(st, PROMPT_FILTER);
}

/* ---- order ---- */

void actions_sort_by(struct ui_state *st, uint8_t column)
{
	struct list *list = ui_state_list(st);

	list->inverted = list->sort == column && !list->inverted &&
			 !view_of(st->view)->columns[column].one_way;
	list->sort = column;
	list_reorder(st);
}

/* Can the rows be in another order? */
static bool is_sortable(struct ui_state *st)
{
	const struct view *v = view_of(st->view);

	for (int i = 0; i < v->nr_columns; i++)
		if (columns_sortable(st, v, i))
			return true;
	ui_state_say(st, false, "this view has an order of its own");
	return false;
}

static void sort_menu(struct ui_state *st, uint32_t code)
{
	if (!is_sortable(st))
		return;
	dialog_open(st, &dialog_sort);
}

static void sort_step(struct ui_state *st, int step)
{
	const struct view *v = view_of(st->view);
	struct list *list = ui_state_list(st);
	int column = list->sort;

	if (!is_sortable(st))
		return;
	/* Only what is in sight: an order whose column is not there looks like none. */
	for (int i = 0; i < v->nr_columns; i++) {
		column = (column + step + v->nr_columns) % v->nr_columns;
		if (columns_sortable(st, v, column) &&
		    columns_shown(st, v, list->columns, column, st->cols))
			break;
	}
	list->sort = (uint8_t)column;
	list->inverted = false;
	list_reorder(st);
}

static void sort_left(struct ui_state *st, uint32_t code)
{
	sort_step(st, -1);
}

static void sort_right(struct ui_state *st, uint32_t code)
{
	sort_step(st, 1);
}

/* @column, or where it is not in sight another one of the same order that is. */
static uint8_t in_sight(const struct ui_state *st, uint8_t column)
{
	const struct view *v = view_of(st->view);
	uint32_t picked = st->lists[st->view].columns;

	for (int i = 0; i < v->nr_columns && !columns_shown(st, v, picked, column, st->cols); i++)
		if (v->columns[i].compare == v->columns[column].compare &&
		    columns_shown(st, v, picked, i, st->cols))
			return (uint8_t)i;
	return column;
}

static void sort_fixed(struct ui_state *st, uint8_t column)
{
	struct list *list = ui_state_list(st);

	if (column == UINT8_MAX) {
		ui_state_say(st, false, "this view has no column for that (F6 lists what it has)");
		return;
	}
	list->sort = in_sight(st, column);
	list->inverted = false;
	list_reorder(st);
}

static void sort_self(struct ui_state *st, uint32_t code)
{
	sort_fixed(st, view_of(st->view)->sort_self);
}

static void sort_total(struct ui_state *st, uint32_t code)
{
	sort_fixed(st, view_of(st->view)->sort_total);
}

static void sort_module(struct ui_state *st, uint32_t code)
{
	sort_fixed(st, view_of(st->view)->sort_module);
}

static void invert(struct ui_state *st, uint32_t code)
{
	const struct view *v = view_of(st->view);
	struct list *list = ui_state_list(st);

	if (list->sort < v->nr_columns && v->columns[list->sort].one_way) {
		ui_state_say(st, false, "this order goes one way only (F6 has others)");
		return;
	}
	list->inverted = !list->inverted;
	list_reorder(st);
}

static void limit(struct ui_state *st, uint32_t code)
{
	prompt_open(st, PROMPT_LIMIT);
}

static void full_names(struct ui_state *st, uint32_t code)
{
	st->full_names = !st->full_names;
}

static void intervals(struct ui_state *st, uint32_t code)
{
	st->intervals = !st->intervals;
	ui_state_say(st, false, "%s",
		     st->intervals ? "SELF% is between these, 95 times of 100" : "no intervals");
}

static void follow(struct ui_state *st, uint32_t code)
{
	st->follow = !st->follow;
	ui_state_say(st, false,
		     st->follow ? "the screen scrolls with the selected row"
				: "the screen stays where it is");
}

/* ---- what is sampled ---- */

void actions_say_error(struct ui_state *st, const struct err *e)
{
	char text[sizeof(st->message)];
	size_t n = 0;

	for (const char *at = e->text; *at && n + 2 < sizeof(text); at++) {
		if (*at != '\n') {
			text[n++] = *at;
			continue;
		}
		text[n++] = ';';
		while (at[1] == ' ')
			at++;
		text[n++] = ' ';
	}
	text[n] = '\0';
	ui_state_say(st, true, "%s", text);
}

static void pick_event(struct ui_state *st, uint32_t code)
{
	dialog_open(st, &dialog_events);
}

static void next_event(struct ui_state *st, uint32_t code)
{
	const struct profile *p = st->latest;
	uint32_t next;

	if (!p || p->nr_events < 2) {
		ui_state_say(st, false, "one event is sampled (e, then Tab, adds another)");
		return;
	}
	next = (ui_state_event(st, p) + 1) % p->nr_events;
	memcpy(st->event_name, p->events[next].event.name, sizeof(st->event_name));
	st->asked_hz = 0;
	rebuild(st);
}

static void pick_frequency(struct ui_state *st, uint32_t code)
{
	dialog_open(st, &dialog_frequency);
}

static void slower(struct ui_state *st, uint32_t code)
{
	rate_step(st, false);
}

static void faster(struct ui_state *st, uint32_t code)
{
	rate_step(st, true);
}

static void sampling(struct ui_state *st, uint32_t code)
{
	if (!st->latest)
		return;
	sampler_set_enabled(st->sampler, !st->latest->sampling);
}

static void hide_kernel(struct ui_state *st, uint32_t code)
{
	st->hide_kernel = !st->hide_kernel;
	rebuild(st);
}

static void hide_user(struct ui_state *st, uint32_t code)
{
	st->hide_user = !st->hide_user;
	rebuild(st);
}

/* ---- time ---- */

static void freeze(struct ui_state *st, uint32_t code)
{
	struct profile *before;

	if (!st->shown)
		return;
	st->frozen = !st->frozen;
	before = st->shown;
	if (st->frozen || before == st->latest)
		return;
	folds_forget(st->folds);
	st->shown = st->latest;
	ui_state_release(st, before);
	rebuild(st);
}

static void reset(struct ui_state *st, uint32_t code)
{
	sampler_reset(st->sampler);
	ui_state_say(st, false, "counting from zero");
}

static void window(struct ui_state *st, uint32_t code)
{
	static const char *const names[PROFILE_NR_WINDOWS] = {
		[PROFILE_WINDOW] = "the last seconds",
		[PROFILE_DECAY] = "all, older samples fading",
		[PROFILE_TOTAL] = "everything since reset",
	};
	enum profile_window next;

	if (!st->latest)
		return;
	next = (st->latest->window + 1) % PROFILE_NR_WINDOWS;
	sampler_set_window(st->sampler, next);
	ui_state_say(st, false, "showing %s", names[next]);
}

static void delay(struct ui_state *st, uint32_t code)
{
	prompt_open(st, PROMPT_DELAY);
}

/* ---- program ---- */

static void header(struct ui_state *st, uint32_t code)
{
	st->hide_header = !st->hide_header;
}

static void redraw(struct ui_state *st, uint32_t code)
{
	st->redraw = true;
}

static void suspend(struct ui_state *st, uint32_t code)
{
	st->suspend = true;
}

static void quit(struct ui_state *st, uint32_t code)
{
	st->quit = true;
}

/* clang-format off */
static void (*const handlers[ACT_NR])(struct ui_state *st, uint32_t code) = {
	[ACT_LINE_UP] = line_up,
	[ACT_LINE_DOWN] = line_down,
	[ACT_PAGE_UP] = page_up,
	[ACT_PAGE_DOWN] = page_down,
	[ACT_HALF_UP] = half_up,
	[ACT_HALF_DOWN] = half_down,
	[ACT_FIRST] = first,
	[ACT_LAST] = last,
	[ACT_SCROLL_LEFT] = scroll_left,
	[ACT_SCROLL_RIGHT] = scroll_right,
	[ACT_OPEN] = open_row,
	[ACT_BACK] = back,
	[ACT_VIEW_FUNCTIONS] = view_functions_,
	[ACT_VIEW_PROCESSES] = view_processes_,
	[ACT_NEXT_VIEW] = next_view,
	[ACT_PREVIOUS_VIEW] = previous_view,
	[ACT_HELP] = help,
	[ACT_SEARCH] = search,
	[ACT_SEARCH_NEXT] = search_next,
	[ACT_SEARCH_PREVIOUS] = search_previous,
	[ACT_FILTER] = filter,
	[ACT_SORT_MENU] = sort_menu,
	[ACT_SORT_LEFT] = sort_left,
	[ACT_SORT_RIGHT] = sort_right,
	[ACT_SORT_SELF] = sort_self,
	[ACT_SORT_TOTAL] = sort_total,
	[ACT_SORT_MODULE] = sort_module,
	[ACT_INVERT] = invert,
	[ACT_LIMIT] = limit,
	[ACT_FULL_NAMES] = full_names,
	[ACT_FOLLOW] = follow,
	[ACT_INTERVALS] = intervals,
	[ACT_PICK_EVENT] = pick_event,
	[ACT_NEXT_EVENT] = next_event,
	[ACT_PICK_FREQUENCY] = pick_frequency,
	[ACT_SLOWER] = slower,
	[ACT_FASTER] = faster,
	[ACT_SAMPLING] = sampling,
	[ACT_PICK_PROCESS] = pick_process,
	[ACT_HIDE_KERNEL] = hide_kernel,
	[ACT_HIDE_USER] = hide_user,
	[ACT_FREEZE] = freeze,
	[ACT_RESET] = reset,
	[ACT_WINDOW] = window,
	[ACT_DELAY] = delay,
	[ACT_HEADER] = header,
	[ACT_REDRAW] = redraw,
	[ACT_SUSPEND] = suspend,
	[ACT_QUIT] = quit,
};
/* clang-format on */

bool screen_handles(enum action action)
{
	return handlers[action] || actions_tool_handles(action) || actions_stack(action) ||
	       actions_sampling(action) || actions_row(action);
}

void screen_do(struct ui_state *st, enum action action, uint32_t code)
{
	const struct view *v = view_of(st->view);

	if (v->act && v->act(st, action, code))
		return;
	if (action < ACT_NR && handlers[action])
		handlers[action](st, code);
	else if (actions_stack(action))
		actions_stack(action)(st, code);
	else if (actions_sampling(action))
		actions_sampling(action)(st, code);
	else if (actions_row(action))
		actions_row(action)(st, code);
	else
		actions_tool_do(st, action, code);
}
