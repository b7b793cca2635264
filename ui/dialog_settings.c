// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The picker of a user, and the settings: each with its value, changed by Enter. Runs on: the main
 * thread.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sampler/profile/fold.h"
#include "ui/actions.h"
#include "ui/dialog.h"
#include "ui/text/format.h"
#include "ui/text/users.h"
#include "ui/view/columns.h"
#include "ui/fold/fold.h"
#include "ui/view/navigate.h"
#include "ui/view/table.h"

/* ---- users ---- */

struct user_sum {
	uid_t uid;
	double weight;
};

static int by_weight(const void *pa, const void *pb)
{
	const struct user_sum *a = pa, *b = pb;

	return a->weight != b->weight ? COMPARE(b->weight, a->weight) : COMPARE(a->uid, b->uid);
}

static int by_uid(const void *pa, const void *pb)
{
	const struct user_sum *a = pa, *b = pb;

	return COMPARE(a->uid, b->uid);
}

/* Sum the samples of each user. Return their number. */
static uint32_t sum_users(const struct profile *p, const struct fold_task *tasks,
			  struct user_sum *sums)
{
	uint32_t nr = 0, users = 0;

	for (uint32_t i = 0; i < p->nr_tasks; i++)
		if (tasks[i].count > 0 && p->tasks[i].process < p->nr_processes)
			sums[nr++] = (struct user_sum){ p->processes[p->tasks[i].process].uid,
							tasks[i].weight };
	qsort(sums, nr, sizeof(*sums), by_uid);
	for (uint32_t i = 0; i < nr; i++) {
		if (users && sums[users - 1].uid == sums[i].uid)
			sums[users - 1].weight += sums[i].weight;
		else
			sums[users++] = sums[i];
	}
	qsort(sums, users, sizeof(*sums), by_weight);
	return users;
}

static void fill_users(struct ui_state *st)
{
	const struct fold_task *tasks = folds_tasks(st);
	struct dialog_entry *entry = dialog_add(&st->dialog);
	struct user_sum *sums;
	char name[64], pct[FORMAT_MAX];
	double all = 0;
	uint32_t nr;

	if (entry) {
		entry->value = UINT64_MAX;
		entry->used = !st->scope.by_user;
		snprintf(entry->name, sizeof(entry->name), "all users");
	}
	sums = tasks ? calloc(st->shown->nr_tasks + 1ULL, sizeof(*sums)) : NULL;
	if (!sums)
		return;
	nr = sum_users(st->shown, tasks, sums);
	for (uint32_t i = 0; i < nr; i++)
		all += sums[i].weight;
	for (uint32_t i = 0; i < nr && (entry = dialog_add(&st->dialog)); i++) {
		entry->value = sums[i].uid;
		entry->used = st->scope.by_user && st->scope.uid == sums[i].uid;
		snprintf(entry->name, sizeof(entry->name), "%s",
			 users_name(st->config->users, sums[i].uid, name, sizeof(name)).str);
		snprintf(entry->detail, sizeof(entry->detail), "%6s%%  uid %u",
			 format_percent(pct, all > 0 ? sums[i].weight / all : 0).str, sums[i].uid);
	}
	free(sums);
}

static bool use_user(struct ui_state *st, const struct dialog_entry *entry, bool add)
{
	if (!entry) {
		ui_state_say(st, true, "no such user has samples");
		return false;
	}
	st->scope.by_user = entry->value != UINT64_MAX;
	st->scope.uid = (uid_t)entry->value;
	folds_forget(st->folds);
	folds_forget_baseline(st->folds);
	table_rebuild(st, st->view);
	return true;
}

const struct dialog_ops dialog_users = {
	.title = "u User",
	.hint = "type a name",
	.fill = fill_users,
	.use = use_user,
};

/* ---- settings ---- */

/* One setting: the action that changes it, or a function here. */
struct setting {
	const char *name, *help;
	enum action action;
	void (*change)(struct ui_state *st);
	void (*value)(const struct ui_state *st, char *out, size_t size);
};

static void next_theme(struct ui_state *st)
{
	st->theme = (st->theme + 1) % THEME_NR;
}

static void theme_value(const struct ui_state *st, char *out, size_t size)
{
	snprintf(out, size, "%s", theme_name((enum theme)st->theme));
}

static void toggle_mouse(struct ui_state *st)
{
	st->mouse = !st->mouse;
}

static void yes_or_no(char *out, size_t size, bool on)
{
	snprintf(out, size, "%s", on ? "yes" : "no");
}

static void mouse_value(const struct ui_state *st, char *out, size_t size)
{
	yes_or_no(out, size, st->mouse);
}

static void delay_value(const struct ui_state *st, char *out, size_t size)
{
	char span[FORMAT_MAX];

	snprintf(out, size, "%s", format_span(span, st->tick_ns).str);
}

static void window_value(const struct ui_state *st, char *out, size_t size)
{
	static const char *const names[PROFILE_NR_WINDOWS] = {
		[PROFILE_WINDOW] = "last", [PROFILE_DECAY] = "decay", [PROFILE_TOTAL] = "total"
	};
	char span[FORMAT_MAX];
	enum profile_window window = ui_state_want_window(st);

	if (window == PROFILE_WINDOW && ui_state_whole(st)) {
		snprintf(out, size, "all");
		return;
	}
	snprintf(out, size, "%s%s%s", names[window], window == PROFILE_WINDOW ? " " : "",
		 window == PROFILE_WINDOW ? format_span(span, st->config->window_ns).str : "");
}

static void rate_value(const struct ui_state *st, char *out, size_t size)
{
	double hz = ui_state_want_hz(st);
	char n[FORMAT_MAX];

	/* Waits are recorded at each switch, and an event with a period has no rate. */
	if (hz > 0)
		snprintf(out, size, "%s Hz", format_count(n, hz).str);
	else
		snprintf(out, size, "%s",
			 ui_state_waits(st, st->latest) ? "each switch" : "fixed period");
}

static void frames_value(const struct ui_state *st, char *out, size_t size)
{
	snprintf(out, size, "%s",
		 profile_frames_name(st->latest ? st->latest->shown_frames : FRAMES_LANGUAGE));
}

static void next_grouping(struct ui_state *st)
{
	navigate_by_group(st, (st->grouping + 1) % GROUPING_NR);
}

static void grouping_value(const struct ui_state *st, char *out, size_t size)
{
	snprintf(out, size, "%s", ui_config_grouping_name(st->grouping));
}

static void intervals_value(const struct ui_state *st, char *out, size_t size)
{
	yes_or_no(out, size, st->intervals);
}

static void fold_threads_value(const struct ui_state *st, char *out, size_t size)
{
	yes_or_no(out, size, st->fold_threads);
}

static void limit_value(const struct ui_state *st, char *out, size_t size)
{
	snprintf(out, size, "%g%%", st->percent_limit);
}

static void sort_value(const struct ui_state *st, char *out, size_t size)
{
	columns_format_sort(view_of(st->view), &st->lists[st->view], out, size);
}

static void time_value(const struct ui_state *st, char *out, size_t size)
{
	snprintf(out, size, "%s",
		 ui_config_time_name(st->latest ? ui_state_time(st, st->latest)
						: st->config->time));
}

static void hide_kernel_value(const struct ui_state *st, char *out, size_t size)
{
	yes_or_no(out, size, st->scope.hide_kernel);
}

static void hide_user_value(const struct ui_state *st, char *out, size_t size)
{
	yes_or_no(out, size, st->scope.hide_user);
}

static void next_flame_colors(struct ui_state *st)
{
	if (st->folds)
		st->folds->by_module = !st->folds->by_module;
}

static void flame_colors_value(const struct ui_state *st, char *out, size_t size)
{
	snprintf(out, size, "%s", st->folds && st->folds->by_module ? "module" : "kind");
}

static void no_value(const struct ui_state *st, char *out, size_t size)
{
	*out = '\0';
}

static const struct setting settings[] = {
	{ "theme", "auto, dark, light, color-blind, mono", ACT_NONE, next_theme, theme_value },
	{ "columns", "columns of this view (c)", ACT_COLUMNS, NULL, no_value },
	{ "sort", "column that sorts this view (F6)", ACT_SORT_MENU, NULL, sort_value },
	{ "time", "CPU time, waits, both, latency (^)", ACT_NEXT_TIME, NULL, time_value },
	{ "window", "time that is summed (z)", ACT_WINDOW, NULL, window_value },
	{ "delay", "time between two refreshes (s)", ACT_DELAY, NULL, delay_value },
	{ "frequency", "samples per second and CPU (f)", ACT_PICK_FREQUENCY, NULL, rate_value },
	{ "frames", "of languages, native, or both", ACT_FRAMES, NULL, frames_value },
	{ "processes by", "name, PID, container, unit (=)", ACT_NONE, next_grouping,
	  grouping_value },
	{ "fold threads", "worker-1, worker-2 as worker-* (,)", ACT_FOLD_THREADS, NULL,
	  fold_threads_value },
	{ "error bars", "95 % interval of SELF% (~)", ACT_INTERVALS, NULL, intervals_value },
	{ "hide below", "rows below a percentage (L)", ACT_LIMIT, NULL, limit_value },
	{ "hide kernel", "functions of the kernel (K)", ACT_HIDE_KERNEL, NULL, hide_kernel_value },
	{ "hide user", "functions of programs (U)", ACT_HIDE_USER, NULL, hide_user_value },
	{ "flame color", "by kind of code or module", ACT_NONE, next_flame_colors,
	  flame_colors_value },
	{ "mouse", "no: the terminal selects text", ACT_NONE, toggle_mouse, mouse_value },
	{ "save", "write all of these to the file (W)", ACT_WRITE_CONFIG, NULL, no_value },
};

static void fill_settings(struct ui_state *st)
{
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
		struct dialog_entry *entry = dialog_add(&st->dialog);
		char value[40];

		if (!entry)
			return;
		settings[i].value(st, value, sizeof(value));
		entry->value = i;
		snprintf(entry->name, sizeof(entry->name), "%-13s %s", settings[i].name, value);
		snprintf(entry->detail, sizeof(entry->detail), "%s", settings[i].help);
	}
}

static bool use_setting(struct ui_state *st, const struct dialog_entry *entry, bool add)
{
	const struct setting *setting;

	if (!entry) {
		ui_state_say(st, true, "unknown setting");
		return false;
	}
	setting = &settings[entry->value];
	if (setting->change) {
		setting->change(st);
		dialog_refresh(st);
		return false;
	}
	/* Close it first: the action may open another one. */
	dialog_close(st);
	/* By Enter, as a command: some views use the key of an action for another one. */
	actions_do(st, setting->action, K_ENTER);
	return false;
}

const struct dialog_ops dialog_settings = {
	.title = "F2 Settings",
	.hint = "type to filter",
	.foot = "Enter change   Esc close",
	.fill = fill_settings,
	.use = use_setting,
};
