// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Actions: one small function each. Runs on: the main thread.
 *
 * They change the state or send the sampler a request; the loop draws.
 */
#include "ui/actions.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "ui/actions_order.h"
#include "ui/actions_row.h"
#include "ui/actions_sampling.h"
#include "ui/actions_stacks.h"
#include "ui/actions_tools.h"
#include "ui/dialog.h"
#include "ui/model.h"
#include "ui/prompt.h"
#include "ui/rate.h"
#include "ui/rewind.h"
#include "ui/fold/fold.h"
#include "ui/view/navigate.h"
#include "ui/view/table.h"
#include "ui/view/view.h"
#include "ui/view/view_annotate.h"

#define SCROLL_CELLS 8

static void rebuild(struct ui_state *st)
{
	/* Other views are rebuilt when they are shown. */
	table_rebuild(st, st->view);
}

/* ---- moving ---- */

static void line_up(struct ui_state *st, uint32_t code)
{
	table_move(st, -1);
}

static void line_down(struct ui_state *st, uint32_t code)
{
	table_move(st, 1);
}

static void page_up(struct ui_state *st, uint32_t code)
{
	table_move(st, -(int64_t)MAX(ui_state_list(st)->page, 1u));
}

static void page_down(struct ui_state *st, uint32_t code)
{
	table_move(st, MAX(ui_state_list(st)->page, 1u));
}

static void half_up(struct ui_state *st, uint32_t code)
{
	table_move(st, -(int64_t)MAX(ui_state_list(st)->page / 2, 1u));
}

static void half_down(struct ui_state *st, uint32_t code)
{
	table_move(st, MAX(ui_state_list(st)->page / 2, 1u));
}

static void first(struct ui_state *st, uint32_t code)
{
	table_move_to(st, 0);
}

static void last(struct ui_state *st, uint32_t code)
{
	table_move_to(st, UINT32_MAX);
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

/* Step through the views with tabs. */
static void step_view(struct ui_state *st, unsigned int by)
{
	navigate_to(st, (enum view_id)((navigate_tab(st) + by) % VIEW_HELP));
}

static void next_view(struct ui_state *st, uint32_t code)
{
	step_view(st, 1);
}

static void previous_view(struct ui_state *st, uint32_t code)
{
	step_view(st, VIEW_HELP - 1);
}

static void help(struct ui_state *st, uint32_t code)
{
	if (st->view == VIEW_HELP) {
		navigate_to(st, st->help_from);
		return;
	}
	st->help_from = st->view;
	navigate_to(st, VIEW_HELP);
}

/* Enter, unless the view handles it: show the callers and callees of the function. */
static void open_row(struct ui_state *st, uint32_t code)
{
	const struct view *v = view_shown(st);
	const struct row *row = view_row(st);
	uint32_t function = view_function(st);

	if (row && v->message)
		actions_take_fix(st, v->message(st, row));
	else if (!row || !st->shown)
		return;
	else if (function < st->shown->nr_functions)
		navigate_to_callers(st, st->shown->functions[function].id);
	else
		ui_state_say(st, false, "nothing to open in this row (m lists its actions)");
}

/* Go one level out: of help, filter and search (Esc only), module, thread, process; then q quits.
 */
static void back(struct ui_state *st, uint32_t code)
{
	struct list *list = ui_state_list(st);

	if (st->view == VIEW_HELP) {
		navigate_to(st, st->help_from);
	} else if (code == K_ESC && match_active(&list->filter)) {
		match_set(&list->filter, "");
		table_rebuild(st, st->view);
	} else if (code == K_ESC && match_active(&list->search)) {
		match_set(&list->search, "");
	} else if (st->view == VIEW_BRANCHES || st->view == VIEW_MEMORY) {
		navigate_to(st, st->tool_from);
	} else if (st->scope.drilled && st->latest && st->latest->focus) {
		/* End the focus first; the next key leaves the process. */
		sampler_unfocus(st->sampler);
	} else if (st->only.on && view_shown(st)->by_module) {
		st->only.on = false;
		navigate_to(st, st->only.from);
	} else if (st->scope.drilled && view_scope(st) == VIEW_ALL) {
		/* The rows are of all already. */
		navigate_close_process(st);
		ui_state_say(st, false, "closed %s: all views show all processes",
			     st->scope.process_name);
	} else if (view_scope(st) == VIEW_DRILLED && navigate_out_of_thread(st)) {
		/* The next key leaves the process. */
		return;
	} else if (st->scope.drilled) {
		navigate_out_of_process(st);
	} else if (code == 'q') {
		st->quit = true;
	} else {
		if (!list->pinned)
			ui_state_say(st, false, "already at the outermost level (q quits)");
		/* Unpin the row: the cursor returns to the top. */
		list->pinned = false;
		table_rebuild(st, st->view);
	}
}

/* ---- finding ---- */

static void search_again(struct ui_state *st, bool backwards)
{
	struct list *list = ui_state_list(st);
	char outcome[TEXT_MAX];

	if (!match_active(&list->search))
		ui_state_say(st, false, "no search text yet (/ searches)");
	else if (!table_search(st, backwards ? list->cursor + list->nr - 1 : list->cursor + 1,
			       backwards)) {
		table_missed(st, outcome, sizeof(outcome));
		ui_state_say(st, true, "%.100s: %s", list->search.text, outcome);
	}
}

static void search_next(struct ui_state *st, uint32_t code)
{
	search_again(st, false);
}

static void search_previous(struct ui_state *st, uint32_t code)
{
	search_again(st, true);
}

/* ---- rows ---- */

static void full_names(struct ui_state *st, uint32_t code)
{
	st->full_names = !st->full_names;
}

static void intervals(struct ui_state *st, uint32_t code)
{
	st->intervals = !st->intervals;
	ui_state_say(st, false, "%s",
		     st->intervals ? "showing the 95 % interval of SELF%" : "intervals hidden");
}

static void follow(struct ui_state *st, uint32_t code)
{
	st->follow = !st->follow;
	ui_state_say(st, false,
		     st->follow ? "the screen follows the selected row"
				: "the screen does not follow the selected row");
}

/* ---- sampled events ---- */

static void next_event(struct ui_state *st, uint32_t code)
{
	const struct profile *p = st->latest;
	uint32_t next;

	if (!p || p->nr_events < 2) {
		ui_state_say(st, false, "only one event is sampled (e, then Tab, adds one)");
		return;
	}
	next = (ui_state_event(st, p) + 1) % p->nr_events;
	st->scope.with_waits = st->scope.latency = false;
	memcpy(st->scope.event_name, p->events[next].event.name, sizeof(st->scope.event_name));
	st->asked_hz = 0;
	rebuild(st);
}

/* Sample waits also, beside the events that there are. */
static void add_waits(struct ui_state *st, const struct profile *p)
{
	struct event events[EVENTS_MAX];
	uint32_t nr = 0;

	while (nr < p->nr_events && nr < EVENTS_MAX - 1) {
		events[nr] = p->events[nr].event;
		nr++;
	}
	event_parse(&events[nr++], EVENT_WAITS, NULL);
	sampler_set_events(st->sampler, events, nr);
}

/* Return whether this time can be shown. Waits are sampled from now on, if they were not. */
static bool has_time(const struct profile *p, enum ui_config_time time)
{
	bool clock = false;

	for (uint32_t i = 0; i < p->nr_events; i++)
		clock |= p->events[i].event.clock;
	return (time != CONFIG_TIME_ALL || clock) && (time != CONFIG_TIME_LATENCY || p->latency);
}

/* Show CPU time, waiting time, both, latency, and CPU time again. */
static void next_time(struct ui_state *st, uint32_t code)
{
	static const char *const names[CONFIG_TIME_NR] = {
		[CONFIG_TIME_CPU] = "CPU time",
		[CONFIG_TIME_WAIT] = "waiting time",
		[CONFIG_TIME_ALL] = "CPU time and waiting time",
		[CONFIG_TIME_LATENCY] = "latency: CPU time divided by the number of running tasks",
	};
	const struct profile *p = st->latest;
	enum ui_config_time time;
	bool sampled = false;

	if (!p)
		return;
	for (uint32_t i = 0; i < p->nr_events; i++)
		sampled |= p->events[i].event.wait;
	if (!sampled)
		add_waits(st, p);
	/* Waits may be requested of the next profile. */
	time = !strcmp(st->scope.event_name, EVENT_WAITS) ? CONFIG_TIME_WAIT : ui_state_time(st, p);
	do
		time = (enum ui_config_time)((time + 1) % CONFIG_TIME_NR);
	while (!has_time(p, time));
	ui_state_set_time(st, time);
	ui_state_say(st, false, "%s", names[time]);
	st->asked_hz = 0;
	rebuild(st);
}

static void hide_idle(struct ui_state *st, uint32_t code)
{
	bool hidden = ui_state_hides_idle(st, st->latest) == PROFILE_IDLE;

	if (!ui_state_waits(st, st->latest)) {
		ui_state_say(st, false, "no waits are shown (^ shows them)");
		return;
	}
	st->scope.idle = hidden ? IDLE_SHOWN : IDLE_HIDDEN;
	ui_state_say(st, false,
		     hidden ? "idle waits shown"
			    : "idle waits hidden: poll and condition variables, "
			      "100 ms and more");
	rebuild(st);
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
	st->scope.hide_kernel = !st->scope.hide_kernel;
	rebuild(st);
}

static void hide_user(struct ui_state *st, uint32_t code)
{
	st->scope.hide_user = !st->scope.hide_user;
	rebuild(st);
}

static void frames(struct ui_state *st, uint32_t code)
{
	if (st->latest)
		sampler_set_frames(st->sampler, (st->latest->shown_frames + 1) % FRAMES_NR);
}

/* ---- time ---- */

static void freeze(struct ui_state *st, uint32_t code)
{
	struct profile *before;

	if (!st->shown)
		return;
	if (st->rewind.on) {
		rewind_live(st);
		return;
	}
	st->frozen = !st->frozen;
	before = st->shown;
	if (st->frozen || before == st->latest)
		return;
	folds_forget(st->folds);
	st->shown = st->latest;
	model_release(st, before);
	rebuild(st);
}

static void reset(struct ui_state *st, uint32_t code)
{
	if (st->config->replayed) {
		ui_state_say(st, false, "not available when replaying a recording");
		return;
	}
	sampler_reset(st->sampler);
	ui_state_say(st, false, "counts reset");
}

static void window(struct ui_state *st, uint32_t code)
{
	static const char *const names[PROFILE_NR_WINDOWS] = {
		[PROFILE_WINDOW] = "the last seconds",
		[PROFILE_DECAY] = "all samples, older ones decaying",
		[PROFILE_TOTAL] = "all samples since the reset",
	};
	enum profile_window next;

	if (!st->latest)
		return;
	next = (ui_state_want_window(st) + 1) % PROFILE_NR_WINDOWS;
	st->whole_at_end = false;
	ui_state_ask_window(st, next);
	ui_state_say(st, false, "showing %s", names[next]);
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
	/* The terminal sends no signal: ^C is a key of the screen. */
	st->quit_by = code == K_CTRL('c') ? SIGINT : 0;
}

/* Actions that show a view, or open a dialog or a prompt. */
static const struct opener {
	enum action action;
	enum view_id view; /* without dialog and prompt */
	bool tool;	   /* Esc leaves it for the view before */
	const struct dialog_ops *dialog;
	enum prompt_kind prompt;
} openers[] = {
	{ ACT_VIEW_FUNCTIONS, .view = VIEW_FUNCTIONS },
	{ ACT_VIEW_PROCESSES, .view = VIEW_PROCESSES },
	{ ACT_VIEW_CPUS, .view = VIEW_CPUS },
	{ ACT_VIEW_MODULES, .view = VIEW_MODULES },
	{ ACT_VIEW_MESSAGES, .view = VIEW_MESSAGES },
	{ ACT_VIEW_BRANCHES, .view = VIEW_BRANCHES, .tool = true },
	{ ACT_VIEW_MEMORY, .view = VIEW_MEMORY, .tool = true },
	{ ACT_PICK_PROCESS, .dialog = &dialog_processes },
	{ ACT_PICK_USER, .dialog = &dialog_users },
	{ ACT_PICK_EVENT, .dialog = &dialog_events },
	{ ACT_PICK_FREQUENCY, .dialog = &dialog_frequency },
	{ ACT_SETTINGS, .dialog = &dialog_settings },
	{ ACT_EXPORT, .dialog = &dialog_export },
	{ ACT_SEARCH, .prompt = PROMPT_SEARCH },
	{ ACT_FILTER, .prompt = PROMPT_FILTER },
	{ ACT_LIMIT, .prompt = PROMPT_LIMIT },
	{ ACT_DELAY, .prompt = PROMPT_DELAY },
	{ ACT_COMMAND, .prompt = PROMPT_COMMAND },
};

/* Return the opener of @action; NULL: none. */
static const struct opener *find_opener(enum action action)
{
	for (size_t i = 0; i < ARRAY_SIZE(openers); i++)
		if (openers[i].action == action)
			return &openers[i];
	return NULL;
}

static void open_it(struct ui_state *st, const struct opener *o)
{
	if (o->dialog)
		dialog_open(st, o->dialog);
	else if (o->prompt)
		prompt_open(st, o->prompt);
	else if (o->tool)
		navigate_to_tool(st, o->view);
	else
		navigate_to(st, o->view);
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
	[ACT_NEXT_VIEW] = next_view,
	[ACT_PREVIOUS_VIEW] = previous_view,
	[ACT_HELP] = help,
	[ACT_SEARCH_NEXT] = search_next,
	[ACT_SEARCH_PREVIOUS] = search_previous,
	[ACT_FULL_NAMES] = full_names,
	[ACT_FOLLOW] = follow,
	[ACT_INTERVALS] = intervals,
	[ACT_NEXT_EVENT] = next_event,
	[ACT_NEXT_TIME] = next_time,
	[ACT_HIDE_IDLE] = hide_idle,
	[ACT_SLOWER] = slower,
	[ACT_FASTER] = faster,
	[ACT_SAMPLING] = sampling,
	[ACT_HIDE_KERNEL] = hide_kernel,
	[ACT_HIDE_USER] = hide_user,
	[ACT_FRAMES] = frames,
	[ACT_FREEZE] = freeze,
	[ACT_RESET] = reset,
	[ACT_WINDOW] = window,
	[ACT_HEADER] = header,
	[ACT_REDRAW] = redraw,
	[ACT_SUSPEND] = suspend,
	[ACT_QUIT] = quit,
};
/* clang-format on */

bool actions_handles(enum action action)
{
	return handlers[action] || find_opener(action) || actions_tool_handles(action) ||
	       rewind_action(action) || actions_stack(action) || actions_sampling(action) ||
	       actions_row(action) || actions_order(action);
}

/*
 * If the selected row has left, select the row that is there now, and say so: an action would open
 * something else. A folded tree may only hide the row.
 */
static bool row_has_left(struct ui_state *st, enum action action)
{
	const struct list *list = ui_state_list(st);
	char name[TEXT_MAX];

	if (view_of(st->view)->context != CTX_LIST || !list->pinned || list->cursor >= list->nr ||
	    list->rows[list->cursor].id == list->selected || list->rows[list->cursor].parent ||
	    (action != ACT_OPEN && action != ACT_ANNOTATE && action != ACT_CALLERS &&
	     action != ACT_FLAME_HERE && action != ACT_FOCUS && action != ACT_MODULE_ONLY))
		return false;
	table_move_to(st, list->cursor);
	ui_state_say(st, false, "the selected row has no samples now: this is %s",
		     view_row_name(st, name));
	return true;
}

/* Return whether Esc clears filter or search, before it leaves anything, in each view of rows. */
static bool clears(const struct ui_state *st, enum action action, uint32_t code)
{
	const struct list *list = &st->lists[st->view];

	return action == ACT_BACK && code == K_ESC &&
	       (match_active(&list->filter) || match_active(&list->search));
}

void actions_do(struct ui_state *st, enum action action, uint32_t code)
{
	const struct view *v = view_of(st->view);

	assert(action > ACT_NONE && action < ACT_NR);
	if (row_has_left(st, action))
		return;
	if (!clears(st, action, code) && v->act && v->act(st, action, code))
		return;
	if (action < ACT_NR && handlers[action])
		handlers[action](st, code);
	else if (find_opener(action))
		open_it(st, find_opener(action));
	else if (rewind_action(action))
		rewind_action(action)(st, code);
	else if (actions_stack(action))
		actions_stack(action)(st, code);
	else if (actions_sampling(action))
		actions_sampling(action)(st, code);
	else if (actions_row(action))
		actions_row(action)(st, code);
	else if (actions_order(action))
		actions_order(action)(st, code);
	else
		actions_tool_do(st, action, code);
}
