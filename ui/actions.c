// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Actions of keys, menus and commands, one small function each. Runs on: the main thread.
 *
 * They change the state or send the sampler a request; the loop draws.
 */
#include "ui/internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sampler/count/count.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/base/text.h"
#include "symbols/code/code.h"
#include "ui/cli/cli.h"
#include "ui/draw/draw.h"
#include "ui/fold/fold.h"
#include "ui/key/key.h"
#include "ui/state/state.h"
#include "ui/text/text.h"
#include "ui/view/view.h"

/*
 * Actions on the order of the rows. Runs on: the main thread.
 */

/* Return whether the rows can be sorted. Report it if not. */
static bool is_sortable(struct ui_state *st)
{
	const struct view *v = view_of(st->view);

	for (int i = 0; i < v->nr_columns; i++)
		if (columns_sortable(st, v, i))
			return true;
	ui_state_say(st, false, "this view cannot be sorted");
	return false;
}

static void sort_menu(struct ui_state *st, uint32_t code)
{
	if (!is_sortable(st))
		return;
	dialog_open(st, &dialog_sort, NULL, NULL);
}

static void sort_step(struct ui_state *st, int step)
{
	const struct view *v = view_of(st->view);
	struct list *list = ui_state_list(st);
	int column = list->sort;

	if (!is_sortable(st))
		return;
	/* Columns in sight only: rows sorted by another one look unsorted. */
	for (int i = 0; i < v->nr_columns; i++) {
		column = (column + step + v->nr_columns) % v->nr_columns;
		if (columns_sortable(st, v, column) &&
		    columns_shown(st, v, list->columns, column, st->cols))
			break;
	}
	list->sort = (uint8_t)column;
	list->inverted = false;
	table_reorder(st);
}

static void sort_left(struct ui_state *st, uint32_t code)
{
	sort_step(st, -1);
}

static void sort_right(struct ui_state *st, uint32_t code)
{
	sort_step(st, 1);
}

/* Return @column or, if it is hidden, a visible column of the same order. */
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

	if (column == VIEW_NO_COLUMN) {
		ui_state_say(st, false, "no such column in this view (F6 lists them)");
		return;
	}
	list->sort = in_sight(st, column);
	list->inverted = false;
	table_reorder(st);
}

static struct view_sorts sorts(const struct ui_state *st)
{
	const struct view *v = view_of(st->view);

	return v->sorts ? *v->sorts
			: (struct view_sorts){ VIEW_NO_COLUMN, VIEW_NO_COLUMN, VIEW_NO_COLUMN };
}

static void sort_self(struct ui_state *st, uint32_t code)
{
	sort_fixed(st, sorts(st).self);
}

static void sort_total(struct ui_state *st, uint32_t code)
{
	sort_fixed(st, sorts(st).total);
}

static void sort_module(struct ui_state *st, uint32_t code)
{
	sort_fixed(st, sorts(st).module);
}

static void invert(struct ui_state *st, uint32_t code)
{
	const struct view *v = view_of(st->view);
	struct list *list = ui_state_list(st);

	if (list->sort < v->nr_columns && v->columns[list->sort].one_way) {
		ui_state_say(st, false, "this column cannot be reversed (F6 lists others)");
		return;
	}
	list->inverted = !list->inverted;
	table_reorder(st);
}

/*
 * Actions of the selected row. Runs on: the main thread.
 */

/* ---- the path of the source ---- */

/* Sum the weight of each line of @function: of self samples or (@any) also of calls. */
static bool weigh_lines(const struct profile *p, uint32_t event, uint32_t function, bool any,
			double *weights)
{
	bool found = false;

	for (uint32_t i = 0; i < p->nr_counts; i++) {
		const struct profile_count *c = &p->counts[i];
		const struct profile_stack *s = &p->stacks[c->stack];

		if (c->event != event)
			continue;
		for (uint32_t n = 0; n < (any ? s->nr : MIN(s->nr, 1u)); n++) {
			uint32_t line = p->frame_lines[s->first + n];

			if (p->frames[s->first + n] != function || line >= p->nr_lines ||
			    p->lines[line].file >= p->nr_files)
				continue;
			weights[line] += c->weight;
			found = true;
		}
	}
	return found;
}

/* Find the hottest line of a function; NULL: unknown source. */
static const struct profile_line *hot_function_line(const struct ui_state *st, uint32_t function)
{
	const struct profile *p = st->shown;
	uint32_t event = ui_state_event(st, p), best = 0;
	double *weights = p->has_source ? calloc(p->nr_lines + 1ULL, sizeof(*weights)) : NULL;
	bool found = weights && (weigh_lines(p, event, function, false, weights) ||
				 weigh_lines(p, event, function, true, weights));

	for (uint32_t i = 1; found && i < p->nr_lines; i++)
		if (weights[i] > weights[best])
			best = i;
	free(weights);
	return found ? &p->lines[best] : NULL;
}

/* Find the source line of the selected row in the annotate view. */
static bool annotated_source(const struct ui_state *st, char *path, size_t size, uint32_t *line)
{
	const struct list *list = &st->lists[VIEW_ANNOTATE];
	const struct row *row = list->cursor < list->nr ? &list->rows[list->cursor] : NULL;
	const struct listing *l = view_annotate_listing(st);
	uint32_t file;

	if (!l || !row || !view_annotate_source(st, row, &file, line))
		return false;
	if (!*line)
		*line = MAX(l->files[file].first, 1u);
	snprintf(path, size, "%s", listing_text(l, l->files[file].path));
	return true;
}

/* Find the source of the selected row and its hottest line. Return false if it is unknown. */
static bool actions_source(const struct ui_state *st, char *path, size_t size, uint32_t *line)
{
	const struct profile_line *found;
	uint32_t function;

	if (st->view == VIEW_ANNOTATE)
		return annotated_source(st, path, size, line);
	function = view_function(st);
	found = function == FOLD_NONE ? NULL : hot_function_line(st, function);
	if (!found)
		return false;
	snprintf(path, size, "%s", st->shown->files[found->file].str);
	*line = found->line;
	return true;
}

/* Return the index of the selected row's module; UINT32_MAX: none. */
static uint32_t selected_module(const struct ui_state *st)
{
	const struct view *v = view_shown(st);
	const struct row *row = view_row(st);
	uint32_t module = st->shown && v->module && row ? v->module(st, row) : UINT32_MAX;

	return st->shown && module < st->shown->nr_modules ? module : UINT32_MAX;
}

const char *actions_editor(void)
{
	static const char *const names[] = { "VISUAL", "EDITOR" };

	/* A program of the caller's choice, named by the caller's environment. */
	if (invoker_is_unprivileged())
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *value = getenv(names[i]);

		if (value && value[strspn(value, " \t")])
			return value;
	}
	return NULL;
}

const char *actions_editor_refusal(const char *path)
{
	if (path[0] != '/')
		return "path is not absolute";
	return strlen(path) < EDITOR_PATH_MAX ? NULL : "path is too long";
}

static void edit(struct ui_state *st, uint32_t code)
{
	if (!actions_source(st, st->edit.path, sizeof(st->edit.path), &st->edit.line)) {
		st->edit.path[0] = '\0';
		ui_state_say(st, false, "%s", actions_row_refusal(st, ACT_EDITOR));
	} else if (actions_editor_refusal(st->edit.path)) {
		ui_state_say(st, true, "source not opened: %.400s: %s", st->edit.path,
			     actions_editor_refusal(st->edit.path));
		st->edit.path[0] = '\0';
	} else if (invoker_is_unprivileged()) {
		ui_state_say(st, true,
			     "no editor is started with file capabilities (source: %s:%u)",
			     st->edit.path, st->edit.line);
		st->edit.path[0] = '\0';
	} else if (!actions_editor()) {
		ui_state_say(st, true, "no editor: set VISUAL or EDITOR (source: %s:%u)",
			     st->edit.path, st->edit.line);
		st->edit.path[0] = '\0';
	}
}

const char *actions_row_refusal(const struct ui_state *st, enum action action)
{
	bool none = st->view != VIEW_ANNOTATE && view_function(st) == FOLD_NONE;
	char path[EDITOR_PATH_MAX], name[TEXT_MAX];
	uint32_t line;

	switch (action) {
	case ACT_ANNOTATE:
		return st->view == VIEW_ANNOTATE ? "already shown"
		       : none			 ? "this row is not a function"
						 : NULL;
	case ACT_CALLERS:
	case ACT_FLAME_HERE:
		return view_function(st) == FOLD_NONE ? "this row is not a function" : NULL;
	case ACT_MODULE_ONLY:
		return !st->only.on && selected_module(st) == UINT32_MAX ? "this row has no module"
									 : NULL;
	case ACT_FETCH:
		return selected_module(st) == UINT32_MAX ? "this row has no module" : NULL;
	case ACT_COPY:
		return *view_row_name(st, name) ? NULL : "this row has no name";
	case ACT_EDITOR:
		return actions_source(st, path, sizeof(path), &line) ? NULL
		       : none					     ? "this row is not a function"
			      : "unknown source: needs debug information (-g, -dbgsym)";
	default:
		return NULL;
	}
}

static void menu(struct ui_state *st, uint32_t code)
{
	if (st->lists[st->view].cursor >= st->lists[st->view].nr)
		ui_state_say(st, false, "no row selected");
	else
		dialog_open(st, &dialog_menu, NULL, NULL);
}

/*
 * Actions on stacks: call tree, flame graph, callers, baseline. The main
 * thread.
 *
 * Actions on stacks. Runs on: the main thread.
 */

static void tree(struct ui_state *st, uint32_t code)
{
	navigate_to(st, VIEW_TREE);
}

/* Toggle between call tree and functions. */
static void tree_or_list(struct ui_state *st, uint32_t code)
{
	navigate_to(st, st->view == VIEW_TREE ? VIEW_FUNCTIONS : VIEW_TREE);
}

static void flame(struct ui_state *st, uint32_t code)
{
	navigate_to(st, VIEW_FLAME);
}

static void callers(struct ui_state *st, uint32_t code)
{
	uint32_t fn = view_function(st);

	if (fn == FOLD_NONE)
		ui_state_say(st, false, "this row is not a function");
	else
		navigate_to_callers(st, st->shown->functions[fn].id);
}

/* Find the selected node, or the heaviest node of the function. */
static uint32_t node_for_flame(const struct ui_state *st, const struct folds_tree *t, uint32_t fn)
{
	const struct list *list = &st->lists[st->view];
	uint32_t best = FOLD_NONE;

	/* Top-down, a path has the same id in both trees. */
	if (st->view == VIEW_TREE && !st->folds->bottom_up)
		best = folds_node(t, (uint32_t)list->rows[list->cursor].id);
	for (uint32_t n = 0; best == FOLD_NONE && n < t->fold.nr_nodes; n++)
		if (t->fold.nodes[n].function == fn) {
			best = n;
			for (uint32_t i = n; i < t->fold.nr_nodes; i++)
				if (t->fold.nodes[i].function == fn &&
				    t->fold.nodes[i].total > t->fold.nodes[best].total)
					best = i;
		}
	return best;
}

static void flame_here(struct ui_state *st, uint32_t code)
{
	uint32_t fn = view_function(st), n;
	const struct folds_tree *t = folds_tree_now(st, FOLDS_FLAME);
	bool here = st->view == VIEW_TREE && st->lists[VIEW_TREE].nr;

	if (st->view == VIEW_FLAME)
		return;
	if (!t || (fn == FOLD_NONE && !here)) {
		navigate_to(st, VIEW_FLAME);
		return;
	}
	n = node_for_flame(st, t, fn);
	if (n != FOLD_NONE) {
		st->folds->zoom[0] = t->ids[n];
		st->folds->nr_zoom = 1;
		st->lists[VIEW_FLAME].selected = t->ids[n];
		st->lists[VIEW_FLAME].pinned = true;
	}
	navigate_to(st, VIEW_FLAME);
}

/* Keep the shown profile as the baseline, or drop the baseline. */
static void baseline(struct ui_state *st, uint32_t code)
{
	struct profile *before = st->baseline;

	if (!st->shown || !st->folds)
		return;
	folds_forget_baseline(st->folds);
	st->baseline = before ? NULL : st->shown;
	st->baseline_path = NULL;
	st->folds->by_change = !before;
	folds_release(st, before);
	ui_state_say(st, false,
		     before ? "comparing with the previous window"
			    : "all views compare with this profile (B: stop)");
	table_rebuild(st, st->view);
}

/* Report that the shown view has no such action: views that have it handle it first. */
static void elsewhere(struct ui_state *st, uint32_t code)
{
	ui_state_say(st, false, "only in the call tree (3); + - X also in the flame graph (4)");
}

/*
 * Actions on views, threads, names, columns, settings and files. The main
 * thread.
 */

static void module_only(struct ui_state *st, uint32_t code)
{
	uint32_t module = selected_module(st);

	if (st->only.on) {
		st->only.on = false;
		table_rebuild(st, VIEW_FUNCTIONS);
	} else if (module == UINT32_MAX) {
		ui_state_say(st, false, "this row has no module");
	} else {
		navigate_into_module(st, module);
	}
}

static void annotate(struct ui_state *st, uint32_t code)
{
	uint32_t function = view_function(st);

	if (function == FOLD_NONE)
		ui_state_say(st, false, "no function selected (1 lists them)");
	else
		view_annotate_open(st, st->shown->functions[function].id,
				   st->shown->functions[function].name.str);
}

static void fetch(struct ui_state *st, uint32_t code)
{
	uint32_t module = selected_module(st);

	if (module == UINT32_MAX)
		ui_state_say(st, false, "this row has no module");
	else
		sampler_fetch(st->sampler, st->shown->modules[module].id);
}

static void by_thread(struct ui_state *st, uint32_t code)
{
	bool stacks = view_shown(st)->stacks;

	process_rows_keep_selected(st);
	st->by_thread = !st->by_thread;
	/* Keep showing a view of stacks. */
	navigate_to(st, stacks ? st->view : VIEW_PROCESSES);
	ui_state_say(st, false,
		     !st->by_thread ? "showing processes (H: threads)"
		     : stacks	    ? "split by thread (H: merge)"
				    : "showing threads (H: processes, 1: functions)");
}

/* By name, PID, thread, container, unit, and again by name. */
static void group_by(struct ui_state *st, uint32_t code)
{
	enum grouping next = (st->set.grouping + 1) % GROUPING_NR;

	if (st->set.grouping == GROUPING_PID && !st->by_thread) {
		by_thread(st, code);
		return;
	}
	navigate_by_group(st, next);
	ui_state_say(st, false, "processes by %s (=: by %s)", ui_config_grouping_name(next),
		     next == GROUPING_PID ? "thread"
					  : ui_config_grouping_name((next + 1) % GROUPING_NR));
}

static void fold_threads(struct ui_state *st, uint32_t code)
{
	process_rows_keep_selected(st);
	st->set.fold_threads = !st->set.fold_threads;
	table_rebuild(st, st->view);
	ui_state_say(st, false,
		     st->set.fold_threads ? "threads merged by name: worker-* (H lists "
					    "them)"
					  : "thread names are not merged");
}

static void copy(struct ui_state *st, uint32_t code)
{
	char buf[TEXT_MAX];
	const char *name = view_row_name(st, buf);

	snprintf(st->copy, sizeof(st->copy), "%s", name);
	if (*name)
		ui_state_say(st, false, "copied: %s", name);
	else
		ui_state_say(st, false, "nothing to copy");
}

static void pick_columns(struct ui_state *st, uint32_t code)
{
	if (view_of(st->view)->nr_columns)
		dialog_open(st, &dialog_columns, NULL, NULL);
	else
		ui_state_say(st, false, "this view has no columns");
}

/* Start @w. Report errors of the start now, the result by outputs_file_result(). */
static int start_work(struct ui_state *st, struct file_work *w)
{
	struct err e;
	int code = file_worker_start(st->files, w, time_now_ns(), &e);

	if (code)
		outputs_file_done(st, code, &e);
	return MIN(code, 0);
}

/*
 * Return the rate to save; 0: automatic. A process alone (x) has a higher one for a while, a busy
 * machine a lower one.
 */
static double saved_hz(const struct ui_state *st)
{
	const struct profile *p = st->latest;
	double hz = st->config->set.hz;

	if (p && !p->focus && !st->config->replayed) {
		hz = ui_state_want_hz(st);
		for (uint32_t i = 0; i < p->nr_events && hz <= 0; i++)
			hz = p->events[i].want_hz;
		if (p->rate_factor > 0 && hz != st->asked_hz)
			hz /= p->rate_factor;
		/* Events with a period have none. */
		hz = hz > 0 ? hz : st->config->set.hz;
	}
	return fabs(hz - st->config->automatic_hz) < 0.01 ? 0 : hz;
}

void actions_settings(const struct ui_state *st, struct settings *set)
{
	*set = st->set;
	set->hz = saved_hz(st);
	set->window = st->whole_at_end ? PROFILE_WINDOW : ui_state_want_window(st);
	if (st->latest) {
		set->frames = (int)st->latest->shown_frames;
		set->time = (int)ui_state_time(st, st->latest);
	}
	for (unsigned int i = 0; i < CONFIG_COLUMN_VIEWS; i++) {
		const struct list *list = &st->lists[columns_view(i)];

		columns_format(view_of(columns_view(i)), list->columns, set->columns[i],
			       sizeof(set->columns[i]));
		columns_format_sort(view_of(columns_view(i)), list, set->sorts[i],
				    sizeof(set->sorts[i]));
	}
}

static void write_config(struct ui_state *st, uint32_t code)
{
	char path[SETTINGS_PATH_MAX];
	struct settings set;
	struct err e;

	actions_settings(st, &set);
	if (!st->config->saves)
		ui_state_say(st, false, "settings are not saved here");
	else if (settings_path(path, sizeof(path), &e))
		ui_state_say(st, true, "%s", e.text);
	else
		start_work(st, settings_work(path, &set));
}

/* Draw the screen as it looks once the command line is closed: as text or as a picture. */
static char *screen_text(struct ui_state *st, bool picture)
{
	struct canvas c;
	char *text = NULL;

	canvas_init(&c, st->glyphs == theme_glyphs(true));
	if (!canvas_resize(&c, MAX(st->rows, 1u), MAX(st->cols, 1u))) {
		screen_draw(st, &c);
		text = picture ? canvas_svg(&c, (enum theme)st->set.theme) : canvas_dump(&c);
	}
	canvas_fini(&c);
	return text;
}

int actions_save_screen(struct ui_state *st, const char *path, bool replace)
{
	size_t size = strlen(path);
	bool picture = size > 4 && !strcmp(path + size - 4, ".svg");
	char *text = screen_text(st, picture), done[TEXT_MAX];

	snprintf(done, sizeof(done), "saved the screen to %s", path);
	snprintf(st->written.path, sizeof(st->written.path), "%s", replace ? "" : path);
	st->written.screen = true;
	return start_work(st, file_work_text(path, text, text ? strlen(text) : 0, replace, done));
}

static void save_screen(struct ui_state *st, uint32_t code)
{
	time_t now = time(NULL);
	struct tm tm;
	char path[64];

	if (!st->config->saves) {
		ui_state_say(st, false, "':screen FILE' saves the screen");
		return;
	}
	localtime_r(&now, &tm);
	strftime(path, sizeof(path), "proftop-%Y%m%d-%H%M%S.txt", &tm);
	actions_save_screen(st, path, false);
}

static void lock(struct ui_state *st, uint32_t code)
{
	outputs_lock(st);
}

static void stacks(struct ui_state *st, uint32_t code)
{
	outputs_stacks_now(st);
}

/*
 * Actions that change the sampling: call graphs, sizes of stack copies and rings, the fix of a
 * message. They do not wait: the sampler answers with a message in a later profile.
 */

#define STACK_MIN 1024u

static void call_graphs(struct ui_state *st, uint32_t code)
{
	/* Not every kernel has deferred chains. */
	if (st->latest)
		sampler_set_call_graph(st->sampler, st->latest->call_graph < CALL_GRAPH_OFF
							    ? st->latest->call_graph + 1
							    : CALL_GRAPH_DWARF);
}

static void dumps(struct ui_state *st, bool larger)
{
	uint32_t size = st->latest ? st->latest->stack_size : 0;

	if (!size)
		ui_state_say(st, false, "no stack copies are taken (C changes the call graph)");
	else if (larger && size >= SAMPLER_STACK_SIZE_MAX)
		ui_state_say(st, false,
			     "stack copies are at their maximum (C: fp has no limit of depth)");
	else if (!larger && size <= STACK_MIN)
		ui_state_say(st, false, "stack copies are at their minimum (C: off)");
	else
		sampler_set_stack_size(st->sampler,
				       larger ? MIN(2 * size, SAMPLER_STACK_SIZE_MAX)
					      : MAX(size / 2, STACK_MIN),
				       false);
}

static void larger_dumps(struct ui_state *st, uint32_t code)
{
	dumps(st, true);
}

static void smaller_dumps(struct ui_state *st, uint32_t code)
{
	dumps(st, false);
}

static void rings(struct ui_state *st, bool larger)
{
	uint64_t size = st->latest ? st->latest->ring_size : 0;

	if (!size)
		ui_state_say(st, false, "not available when replaying a recording");
	else if (larger ? size >= SAMPLER_RING_SIZE_MAX : size <= SAMPLER_RING_SIZE_MIN)
		ui_state_say(st, false, "ring buffers are at their %s",
			     larger ? "maximum" : "minimum");
	else
		sampler_set_ring_size(st->sampler, larger ? 2 * size : size / 2);
}

static void larger_rings(struct ui_state *st, uint32_t code)
{
	rings(st, true);
}

static void smaller_rings(struct ui_state *st, uint32_t code)
{
	rings(st, false);
}

/* Show the modules of all processes, and first the modules that the message is about. */
static void show_modules(struct ui_state *st, const struct profile_message *message)
{
	uint32_t unnamed = columns_parse(&view_modules, "UNNAMED");

	navigate_close_process(st);
	navigate_to(st, VIEW_MODULES);
	if (message->module) {
		st->lists[VIEW_MODULES].selected = message->module - 1;
		st->lists[VIEW_MODULES].pinned = true;
		table_rebuild(st, VIEW_MODULES);
	}
	if (!strcmp(message->key, "names")) {
		st->lists[VIEW_MODULES].sort = (uint8_t)__builtin_ctz(unnamed);
		st->lists[VIEW_MODULES].inverted = false;
		st->lists[VIEW_MODULES].pinned = false;
		table_reorder(st);
		ui_state_say(st, false, "most samples without a symbol first; below is the fix");
	} else {
		ui_state_say(st, false, "%s: %s", message->brief, message->fix);
	}
}

/* Apply the fix of @message, or show it if it is not possible from here. */
static void take_fix(struct ui_state *st, const struct profile_message *message)
{
	switch (message->control) {
	case MESSAGE_NONE:
		ui_state_say(st, false, "not possible from here: %s", message->fix);
		break;
	case MESSAGE_RATE:
		sampler_set_rate(st->sampler, message->event, message->value);
		break;
	case MESSAGE_STACK_SIZE:
		sampler_set_stack_size(st->sampler, (uint32_t)message->value, false);
		break;
	case MESSAGE_RING_SIZE:
		sampler_set_ring_size(st->sampler, (size_t)message->value);
		break;
	case MESSAGE_CALL_GRAPH:
		sampler_set_call_graph(st->sampler, (enum call_graph)message->value);
		break;
	case MESSAGE_RESET:
		sampler_reset(st->sampler);
		break;
	case MESSAGE_EVENTS:
		dialog_open(st, &dialog_events, NULL, NULL);
		break;
	case MESSAGE_MODULES:
		show_modules(st, message);
		break;
	case MESSAGE_CPUS:
		navigate_to(st, VIEW_CPUS);
		break;
	}
}

static void fix(struct ui_state *st, uint32_t code)
{
	const struct profile_message *worst = ui_state_worst(st);

	if (!worst)
		worst = ui_state_message(st, "banner");
	if (worst)
		take_fix(st, worst);
	else
		ui_state_say(st, false, "no warning in the last tick (7 lists all messages)");
}

/* Sample only the process drilled into, or that of the row, which is drilled into first so that Esc
 * leads back. */
static void focus_process(struct ui_state *st, uint32_t code)
{
	const struct list *list = ui_state_list(st);
	const struct row *row = list->cursor < list->nr ? &list->rows[list->cursor] : NULL;
	const struct profile *p = st->shown;
	uint32_t at;

	if (!p || !st->latest)
		return;
	if (!st->scope.drilled && st->view == VIEW_PROCESSES && !st->by_thread && row &&
	    row->nr_processes <= 1 && row->index < p->nr_processes)
		navigate_into_process(st, p->processes[row->index].id);
	at = ui_state_process(st, st->shown);
	if (!st->scope.drilled || at == UINT32_MAX)
		ui_state_say(st, false, "select a process first (p), then x samples only it");
	else if (p->processes[at].pid < 0)
		ui_state_say(st, true, "cannot sample only %s: it has no PID",
			     p->processes[at].comm.str);
	else if (st->latest->focus == p->processes[at].pid)
		sampler_unfocus(st->sampler);
	else
		sampler_focus(st->sampler, p->processes[at].pid);
}

#define SCROLL_CELLS 8

static void rebuild(struct ui_state *st)
{
	/* Other views are rebuilt when they are shown. */
	table_rebuild(st, st->view);
}

/* ---- moving ---- */

/* Move the cursor by rows, as far as there are any. */
static void move_cursor(struct ui_state *st, int64_t by)
{
	int64_t to = (int64_t)ui_state_list(st)->cursor + by;

	table_move_to(st, (uint32_t)MIN(MAX(to, 0), (int64_t)UINT32_MAX));
}

static void line_up(struct ui_state *st, uint32_t code)
{
	move_cursor(st, -1);
}

static void line_down(struct ui_state *st, uint32_t code)
{
	move_cursor(st, 1);
}

static void page_up(struct ui_state *st, uint32_t code)
{
	move_cursor(st, -(int64_t)MAX(ui_state_list(st)->page, 1u));
}

static void page_down(struct ui_state *st, uint32_t code)
{
	move_cursor(st, MAX(ui_state_list(st)->page, 1u));
}

static void half_up(struct ui_state *st, uint32_t code)
{
	move_cursor(st, -(int64_t)MAX(ui_state_list(st)->page / 2, 1u));
}

static void half_down(struct ui_state *st, uint32_t code)
{
	move_cursor(st, MAX(ui_state_list(st)->page / 2, 1u));
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
		take_fix(st, v->message(st, row));
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
		table_narrow(st);
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
	st->set.intervals = !st->set.intervals;
	ui_state_say(st, false, "%s",
		     st->set.intervals ? "showing the 95 % interval of SELF%" : "intervals hidden");
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
	time = ui_state_time(st, p);
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
	st->set.hide_kernel = !st->set.hide_kernel;
	rebuild(st);
}

static void hide_user(struct ui_state *st, uint32_t code)
{
	st->set.hide_user = !st->set.hide_user;
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
	folds_release(st, before);
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

/* How an action is done, unless the shown view does it: one of these. */
static const struct {
	void (*run)(struct ui_state *st, uint32_t code);
	const struct dialog_ops *dialog; /* that opens */
	enum prompt_kind prompt;	 /* the same */
	enum view_id view;		 /* that is shown; */
	bool tool;			 /* Esc leaves it for the view before */
	bool rewinds;			 /* rewind_do() */
} actions[ACT_NR] = {
	[ACT_OPEN] = { .run = open_row },
	[ACT_BACK] = { .run = back },
	[ACT_VIEW_FUNCTIONS] = { .view = VIEW_FUNCTIONS },
	[ACT_VIEW_PROCESSES] = { .view = VIEW_PROCESSES },
	[ACT_VIEW_TREE] = { .run = tree },
	[ACT_VIEW_FLAME] = { .run = flame },
	[ACT_VIEW_CPUS] = { .view = VIEW_CPUS },
	[ACT_VIEW_MODULES] = { .view = VIEW_MODULES },
	[ACT_VIEW_MESSAGES] = { .view = VIEW_MESSAGES },
	[ACT_VIEW_BRANCHES] = { .view = VIEW_BRANCHES, .tool = true },
	[ACT_VIEW_MEMORY] = { .view = VIEW_MEMORY, .tool = true },
	[ACT_NEXT_VIEW] = { .run = next_view },
	[ACT_PREVIOUS_VIEW] = { .run = previous_view },
	[ACT_MENU] = { .run = menu },
	[ACT_CALLERS] = { .run = callers },
	[ACT_ANNOTATE] = { .run = annotate },
	[ACT_FLAME_HERE] = { .run = flame_here },
	[ACT_EDITOR] = { .run = edit },
	[ACT_COPY] = { .run = copy },
	[ACT_MODULE_ONLY] = { .run = module_only },
	[ACT_FOLLOW] = { .run = follow },
	[ACT_FETCH] = { .run = fetch },
	[ACT_LOCK] = { .run = lock },
	[ACT_STACKS] = { .run = stacks },
	[ACT_LINE_UP] = { .run = line_up },
	[ACT_LINE_DOWN] = { .run = line_down },
	[ACT_PAGE_UP] = { .run = page_up },
	[ACT_PAGE_DOWN] = { .run = page_down },
	[ACT_HALF_UP] = { .run = half_up },
	[ACT_HALF_DOWN] = { .run = half_down },
	[ACT_FIRST] = { .run = first },
	[ACT_LAST] = { .run = last },
	[ACT_SCROLL_LEFT] = { .run = scroll_left },
	[ACT_SCROLL_RIGHT] = { .run = scroll_right },
	[ACT_HELP] = { .run = help },
	[ACT_SEARCH] = { .prompt = PROMPT_SEARCH },
	[ACT_SEARCH_NEXT] = { .run = search_next },
	[ACT_SEARCH_PREVIOUS] = { .run = search_previous },
	[ACT_FILTER] = { .prompt = PROMPT_FILTER },
	[ACT_PICK_USER] = { .dialog = &dialog_users },
	[ACT_SORT_MENU] = { .run = sort_menu },
	[ACT_COLUMNS] = { .run = pick_columns },
	[ACT_SORT_LEFT] = { .run = sort_left },
	[ACT_SORT_RIGHT] = { .run = sort_right },
	[ACT_SORT_SELF] = { .run = sort_self },
	[ACT_SORT_TOTAL] = { .run = sort_total },
	[ACT_SORT_MODULE] = { .run = sort_module },
	[ACT_INVERT] = { .run = invert },
	[ACT_LIMIT] = { .prompt = PROMPT_LIMIT },
	[ACT_TREE] = { .run = tree_or_list },
	[ACT_UNFOLD] = { .run = elsewhere },
	[ACT_FOLD] = { .run = elsewhere },
	[ACT_UNFOLD_ALL] = { .run = elsewhere },
	[ACT_HOT_PATH] = { .run = elsewhere },
	[ACT_FOLD_RECURSION] = { .run = elsewhere },
	[ACT_FULL_NAMES] = { .run = full_names },
	[ACT_INTERVALS] = { .run = intervals },
	[ACT_GROUP_BY] = { .run = group_by },
	[ACT_BY_THREAD] = { .run = by_thread },
	[ACT_FOLD_THREADS] = { .run = fold_threads },
	[ACT_PICK_EVENT] = { .dialog = &dialog_events },
	[ACT_NEXT_EVENT] = { .run = next_event },
	[ACT_NEXT_TIME] = { .run = next_time },
	[ACT_HIDE_IDLE] = { .run = hide_idle },
	[ACT_PICK_FREQUENCY] = { .dialog = &dialog_frequency },
	[ACT_SLOWER] = { .run = slower },
	[ACT_FASTER] = { .run = faster },
	[ACT_CALL_GRAPH] = { .run = call_graphs },
	[ACT_SMALLER_STACKS] = { .run = smaller_dumps },
	[ACT_LARGER_STACKS] = { .run = larger_dumps },
	[ACT_SMALLER_RINGS] = { .run = smaller_rings },
	[ACT_LARGER_RINGS] = { .run = larger_rings },
	[ACT_FIX] = { .run = fix },
	[ACT_SAMPLING] = { .run = sampling },
	[ACT_FOCUS] = { .run = focus_process },
	[ACT_PICK_PROCESS] = { .dialog = &dialog_processes },
	[ACT_HIDE_KERNEL] = { .run = hide_kernel },
	[ACT_HIDE_USER] = { .run = hide_user },
	[ACT_FRAMES] = { .run = frames },
	[ACT_FREEZE] = { .run = freeze },
	[ACT_EARLIER] = { .rewinds = true },
	[ACT_LATER] = { .rewinds = true },
	[ACT_PEAK] = { .rewinds = true },
	[ACT_REWIND] = { .rewinds = true },
	[ACT_WIDEN] = { .rewinds = true },
	[ACT_LIVE] = { .rewinds = true },
	[ACT_STRIP] = { .rewinds = true },
	[ACT_STRIP_IN] = { .rewinds = true },
	[ACT_STRIP_OUT] = { .rewinds = true },
	[ACT_STRIP_GRID] = { .rewinds = true },
	[ACT_RESET] = { .run = reset },
	[ACT_WINDOW] = { .run = window },
	[ACT_BASELINE] = { .run = baseline },
	[ACT_DELAY] = { .prompt = PROMPT_DELAY },
	[ACT_SETTINGS] = { .dialog = &dialog_settings },
	[ACT_COMMAND] = { .prompt = PROMPT_COMMAND },
	[ACT_EXPORT] = { .dialog = &dialog_export },
	[ACT_SAVE_SCREEN] = { .run = save_screen },
	[ACT_WRITE_CONFIG] = { .run = write_config },
	[ACT_HEADER] = { .run = header },
	[ACT_REDRAW] = { .run = redraw },
	[ACT_SUSPEND] = { .run = suspend },
	[ACT_QUIT] = { .run = quit },
};

/* No other member has a value that says so: the first view is 0. */
static bool shows_view(enum action action)
{
	return (action >= ACT_VIEW_FUNCTIONS && action <= ACT_VIEW_MEMORY) && !actions[action].run;
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

/* Open a view without a tab; its Esc returns to the shown one. */
static void to_tool(struct ui_state *st, enum view_id view)
{
	if (st->view != view)
		st->tool_from = navigate_tab(st);
	navigate_to(st, view);
}

void actions_do(struct ui_state *st, enum action action, uint32_t code)
{
	const struct view *v = view_of(st->view);

	assert(action > ACT_NONE && action < ACT_NR);
	if (row_has_left(st, action))
		return;
	if (!clears(st, action, code) && v->act && v->act(st, action, code))
		return;
	if (actions[action].run)
		actions[action].run(st, code);
	else if (actions[action].dialog)
		dialog_open(st, actions[action].dialog, NULL, NULL);
	else if (actions[action].prompt)
		prompt_open(st, actions[action].prompt);
	else if (actions[action].rewinds)
		rewind_do(st, action, code);
	else if (actions[action].tool)
		to_tool(st, actions[action].view);
	else if (shows_view(action))
		navigate_to(st, actions[action].view);
}
