// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What keys do in the views around the functions, and to the program. The
 * main thread.
 */
#include "ui/actions_tools.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ui/actions.h"
#include "ui/actions_stacks.h"
#include "ui/columns.h"
#include "ui/view/folds.h"
#include "ui/view/process_rows.h"
#include "ui/screen.h"
#include "ui/cli/settings.h"
#include "ui/view/view.h"
#include "ui/view/view_annotate.h"

static void view_cpus_(struct ui_state *st, uint32_t code)
{
	actions_show(st, VIEW_CPUS);
}

static void view_modules_(struct ui_state *st, uint32_t code)
{
	actions_show(st, VIEW_MODULES);
}

static void view_messages_(struct ui_state *st, uint32_t code)
{
	actions_show(st, VIEW_MESSAGES);
}

uint32_t actions_module(const struct ui_state *st)
{
	const struct list *list = &st->lists[st->view];
	const struct row *row = list->cursor < list->nr ? &list->rows[list->cursor] : NULL;
	uint32_t module = UINT32_MAX;

	if (!row || !st->shown)
		return UINT32_MAX;
	if (st->view == VIEW_MODULES)
		module = row->index;
	else if (st->view == VIEW_FUNCTIONS)
		module = st->shown->functions[row->index].module_index;
	return module < st->shown->nr_modules ? module : UINT32_MAX;
}

static void module_only(struct ui_state *st, uint32_t code)
{
	uint32_t module = actions_module(st);

	if (st->only.on && st->view != VIEW_MODULES) {
		st->only.on = false;
		list_rebuild(st, VIEW_FUNCTIONS);
		return;
	}
	if (module == UINT32_MAX) {
		ui_state_say(st, false, "this row has no module");
		return;
	}
	st->only.on = true;
	st->only.from = st->view;
	st->only.id = st->shown->modules[module].id;
	ui_clean(st->only.name, sizeof(st->only.name), st->shown->modules[module].name.str);
	st->lists[VIEW_FUNCTIONS].pinned = false;
	actions_show(st, VIEW_FUNCTIONS);
}

static void annotate(struct ui_state *st, uint32_t code)
{
	uint32_t function = actions_function(st);

	if (st->view == VIEW_ANNOTATE)
		return;
	if (function == FOLD_NONE)
		ui_state_say(st, false, "no function is selected (1 lists them)");
	else
		view_annotate_open(st, st->shown->functions[function].id,
				   st->shown->functions[function].name.str);
}

static void fetch(struct ui_state *st, uint32_t code)
{
	uint32_t module = actions_module(st);

	if (module == UINT32_MAX)
		ui_state_say(st, false, "this row has no module");
	else
		sampler_fetch(st->sampler, st->shown->modules[module].id);
}

static void by_thread(struct ui_state *st, uint32_t code)
{
	bool stacks = st->view == VIEW_TREE || st->view == VIEW_FLAME;

	st->by_thread = !st->by_thread;
	st->lists[VIEW_PROCESSES].pinned = false;
	/* Who looks at stacks stays there. */
	actions_show(st, stacks ? st->view : VIEW_PROCESSES);
	ui_state_say(st, false,
		     !st->by_thread ? "the processes (H: their threads)"
		     : stacks	    ? "split by thread (H: no longer)"
			      : "the threads, each with its samples (H: processes, 1: functions)");
}

static void fold_threads(struct ui_state *st, uint32_t code)
{
	st->fold_threads = !st->fold_threads;
	st->lists[VIEW_PROCESSES].pinned = false;
	list_rebuild(st, st->view);
	ui_state_say(st, false,
		     st->fold_threads ? "threads with names alike are one: worker-* (H lists them)"
				      : "each thread has its own name");
}

void actions_enter_thread(struct ui_state *st, const struct row *row)
{
	const struct profile *p = st->shown;
	char name[sizeof(st->process_name)];
	char group[FORMAT_MAX * 2] = "";
	struct profile_task task;
	bool is_group;

	if (!p || row->task >= p->nr_tasks)
		return;
	task = p->tasks[row->task];
	if (task.process >= p->nr_processes)
		return;
	process_rows_comm(st, task.comm, group);
	is_group = st->fold_threads && row->nr > 1;
	actions_enter_process(st, p->processes[task.process].id);
	st->in_thread = !is_group;
	st->thread = task.id;
	if (is_group)
		snprintf(st->thread_group, sizeof(st->thread_group), "%s", group);
	if (is_group)
		snprintf(name, sizeof(name), "%.60s threads %.50s", st->process_name, group);
	else
		snprintf(name, sizeof(name), "%.80s thread %d", st->process_name, (int)task.tid);
	ui_clean(st->process_name, sizeof(st->process_name), name);
	list_rebuild(st, VIEW_FUNCTIONS);
}

const char *actions_name(const struct ui_state *st, char buf[static TEXT_MAX])
{
	const struct list *list = &st->lists[st->view];
	const struct row *row = list->cursor < list->nr ? &list->rows[list->cursor] : NULL;
	uint32_t function = actions_function(st);

	if (row && st->shown && st->view == VIEW_MODULES)
		return st->shown->modules[row->index].path.str;
	if (row && st->view == VIEW_MESSAGES)
		return st->latest->notices[row->index].text;
	if (row && st->view == VIEW_ANNOTATE)
		return st->annotate.name;
	if (row && st->shown && st->view == VIEW_PROCESSES)
		return view_processes.name(st, row, buf, TEXT_MAX).str;
	return function == FOLD_NONE ? "" : st->shown->functions[function].name.str;
}

static void copy(struct ui_state *st, uint32_t code)
{
	char buf[TEXT_MAX];
	const char *name = actions_name(st, buf);

	snprintf(st->copy, sizeof(st->copy), "%s", name);
	if (*name)
		ui_state_say(st, false, "copied: %s", name);
	else
		ui_state_say(st, false, "nothing here to copy");
}

static void pick_columns(struct ui_state *st, uint32_t code)
{
	if (view_of(st->view)->nr_columns)
		dialog_open(st, &dialog_columns);
	else
		ui_state_say(st, false, "this view has no columns");
}

/* Start @w; report now what is known now, the rest by actions_file_result(). */
static int start_work(struct ui_state *st, struct file_work *w)
{
	struct err e;
	int code = file_worker_start(st->files, w, &e);

	if (code)
		ui_state_say(st, code < 0, "%s", e.text);
	return MIN(code, 0);
}

static void write_config(struct ui_state *st, uint32_t code)
{
	struct settings set = {
		.tick_ns = st->tick_ns,
		.percent_limit = st->percent_limit,
		.hide_kernel = st->hide_kernel,
		.hide_user = st->hide_user,
		.theme = st->theme,
		.mouse = st->mouse,
		.ascii = st->config->ascii,
		.fold_threads = st->fold_threads,
		.flame_modules = st->folds && st->folds->by_module,
	};
	char path[SETTINGS_PATH_MAX];
	struct err e;

	for (unsigned int i = 0; i < APP_COLUMN_VIEWS; i++)
		columns_format(view_of(columns_view(i)), st->lists[columns_view(i)].columns,
			       set.columns[i], sizeof(set.columns[i]));
	if (!st->config->saves)
		ui_state_say(st, false, "settings are not saved here");
	else if (settings_path(path, sizeof(path), &e))
		ui_state_say(st, true, "%s", e.text);
	else
		start_work(st, settings_work(path, &set));
}

static void command(struct ui_state *st, uint32_t code)
{
	prompt_open(st, PROMPT_COMMAND);
}

/* Draw the screen as it looks once the command line is closed. */
static char *screen_text(struct ui_state *st)
{
	struct canvas c;
	char *text = NULL;

	canvas_init(&c, st->glyphs == theme_glyphs(true));
	if (!canvas_resize(&c, MAX(st->rows, 1u), MAX(st->cols, 1u))) {
		screen_draw(st, &c);
		text = canvas_dump(&c);
	}
	canvas_fini(&c);
	return text;
}

bool actions_file_result(struct ui_state *st)
{
	struct err e;
	int code;

	if (!file_worker_take(st->files, &code, &e))
		return false;
	ui_state_say(st, code < 0, "%s", e.text);
	return true;
}

int actions_save_screen(struct ui_state *st, const char *path, bool replace)
{
	char *text = screen_text(st), done[TEXT_MAX];

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

/* clang-format off */
static void (*const tools[ACT_NR])(struct ui_state *st, uint32_t code) = {
	[ACT_VIEW_CPUS] = view_cpus_,
	[ACT_VIEW_MODULES] = view_modules_,
	[ACT_VIEW_MESSAGES] = view_messages_,
	[ACT_COPY] = copy,
	[ACT_WRITE_CONFIG] = write_config,
	[ACT_ANNOTATE] = annotate,
	[ACT_FETCH] = fetch,
	[ACT_MODULE_ONLY] = module_only,
	[ACT_BY_THREAD] = by_thread,
	[ACT_FOLD_THREADS] = fold_threads,
	[ACT_COLUMNS] = pick_columns,
	[ACT_COMMAND] = command,
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
