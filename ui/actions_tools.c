// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Actions on views, threads, names, columns, settings and files. The main
 * thread.
 */
#include "ui/actions_tools.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ui/actions_export.h"
#include "ui/actions_lock.h"
#include "ui/cli/file_work.h"
#include "ui/cli/settings.h"
#include "ui/dialog.h"
#include "ui/draw/svg.h"
#include "ui/screen.h"
#include "ui/view/columns.h"
#include "ui/fold/fold.h"
#include "ui/view/navigate.h"
#include "ui/view/process_rows.h"
#include "ui/view/table.h"
#include "ui/view/view.h"
#include "ui/view/view_annotate.h"

static void module_only(struct ui_state *st, uint32_t code)
{
	uint32_t module = view_module(st);

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
	uint32_t module = view_module(st);

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
	enum grouping next = (st->grouping + 1) % GROUPING_NR;

	if (st->grouping == GROUPING_PID && !st->by_thread) {
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
	st->fold_threads = !st->fold_threads;
	table_rebuild(st, st->view);
	ui_state_say(st, false,
		     st->fold_threads ? "threads merged by name: worker-* (H lists "
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
		dialog_open(st, &dialog_columns);
	else
		ui_state_say(st, false, "this view has no columns");
}

/* Start @w. Report errors of the start now, the result by actions_file_result(). */
static int start_work(struct ui_state *st, struct file_work *w)
{
	struct err e;
	int code = file_worker_start(st->files, w, time_now_ns(), &e);

	if (code)
		ui_state_say(st, code < 0, "%s", e.text);
	return MIN(code, 0);
}

/* Return the rate to save; 0: automatic. A process alone (x) has a higher one for a while. */
static double saved_hz(const struct ui_state *st)
{
	const struct profile *p = st->latest;
	double hz = st->config->hz;

	if (p && !p->focus && !st->config->replayed) {
		hz = ui_state_want_hz(st);
		for (uint32_t i = 0; i < p->nr_events && hz <= 0; i++)
			hz = p->events[i].want_hz;
		/* Events with a period have none. */
		hz = hz > 0 ? hz : st->config->hz;
	}
	return hz == st->config->automatic_hz ? 0 : hz;
}

static void write_config(struct ui_state *st, uint32_t code)
{
	struct settings set = {
		.tick_ns = st->tick_ns,
		.percent_limit = st->percent_limit,
		.hide_kernel = st->scope.hide_kernel,
		.hide_user = st->scope.hide_user,
		.theme = st->theme,
		.mouse = st->mouse,
		.ascii = st->config->ascii,
		.fold_threads = st->fold_threads,
		.grouping = (int)st->grouping,
		.frames = st->latest ? (int)st->latest->shown_frames : FRAMES_LANGUAGE,
		.flame_modules = st->folds && st->folds->by_module,
		.intervals = st->intervals,
		.hz = saved_hz(st),
		.window = st->whole_at_end ? PROFILE_WINDOW : ui_state_want_window(st),
		.window_ns = st->config->window_ns,
		.time = st->latest ? ui_state_time(st, st->latest) : st->config->time,
	};
	char path[SETTINGS_PATH_MAX];
	struct err e;

	for (unsigned int i = 0; i < CONFIG_COLUMN_VIEWS; i++) {
		const struct list *list = &st->lists[columns_view(i)];

		columns_format(view_of(columns_view(i)), list->columns, set.columns[i],
			       sizeof(set.columns[i]));
		columns_format_sort(view_of(columns_view(i)), list, set.sorts[i],
				    sizeof(set.sorts[i]));
	}
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
		text = picture ? svg_draw(&c, (enum theme)st->theme) : canvas_dump(&c);
	}
	canvas_fini(&c);
	return text;
}

bool actions_file_result(struct ui_state *st, struct file_worker *f)
{
	struct err e;
	int code;

	if (!file_worker_take(f, &code, &e))
		return false;
	if (code < 0)
		ui_state_say_error(st, &e);
	else if (*e.text)
		ui_state_say(st, false, "%s", e.text);
	return true;
}

int actions_save_screen(struct ui_state *st, const char *path, bool replace)
{
	size_t size = strlen(path);
	bool picture = size > 4 && !strcmp(path + size - 4, ".svg");
	char *text = screen_text(st, picture), done[TEXT_MAX];

	snprintf(done, sizeof(done), "saved the screen to %s", path);
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
	actions_lock(st);
}

static void stacks(struct ui_state *st, uint32_t code)
{
	actions_stacks_now(st);
}

/* clang-format off */
static void (*const tools[ACT_NR])(struct ui_state *st, uint32_t code) = {
	[ACT_COPY] = copy,
	[ACT_WRITE_CONFIG] = write_config,
	[ACT_ANNOTATE] = annotate,
	[ACT_FETCH] = fetch,
	[ACT_LOCK] = lock,
	[ACT_STACKS] = stacks,
	[ACT_MODULE_ONLY] = module_only,
	[ACT_BY_THREAD] = by_thread,
	[ACT_GROUP_BY] = group_by,
	[ACT_FOLD_THREADS] = fold_threads,
	[ACT_COLUMNS] = pick_columns,
	[ACT_SAVE_SCREEN] = save_screen,
};
/* clang-format on */

bool actions_tool_handles(enum action action)
{
	return (unsigned int)action < ACT_NR && tools[action];
}

bool actions_tool_do(struct ui_state *st, enum action action, uint32_t code)
{
	if (!actions_tool_handles(action))
		return false;
	tools[action](st, code);
	return true;
}
