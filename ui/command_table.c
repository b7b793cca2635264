// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The commands with an argument. Runs on: the main thread.
 */
#include "ui/command_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/actions_export.h"
#include "ui/actions_tools.h"
#include "ui/cli/value.h"
#include "ui/cli/words.h"
#include "ui/command_target.h"
#include "ui/file_words.h"
#include "ui/rewind.h"
#include "ui/sampled.h"
#include "ui/text/number.h"
#include "ui/view/columns.h"
#include "ui/fold/fold.h"
#include "ui/view/navigate.h"
#include "ui/view/table.h"
#include "ui/view/view.h"

static void run_screen(struct ui_state *st, const char *arg)
{
	actions_save_screen(st, arg, true);
}

static void run_export(struct ui_state *st, const char *arg)
{
	actions_export(st, arg, EXPORT_NR, true);
}

/* Set a match to a typed text. Return false, with a message, if the text would be cut. */
static bool set_match(struct ui_state *st, struct match *m, const char *text)
{
	if (strlen(text) >= MATCH_MAX) {
		ui_state_say(st, true, "text too long: at most %d bytes", MATCH_MAX - 1);
		return false;
	}
	match_set(m, text);
	return true;
}

static void run_filter(struct ui_state *st, const char *arg)
{
	if (!set_match(st, &ui_state_list(st)->filter, arg))
		return;
	table_rebuild(st, st->view);
	table_select_shown(st);
}

static void run_search(struct ui_state *st, const char *arg)
{
	struct list *list = ui_state_list(st);
	char outcome[TEXT_MAX];

	if (!set_match(st, &list->search, arg) || table_search(st, list->cursor, false))
		return;
	table_missed(st, outcome, sizeof(outcome));
	ui_state_say(st, true, "%.100s: %s", arg, outcome);
}

/* List the sortable columns of the shown view. */
static const char *sort_word(const struct ui_state *st, const char *before, unsigned int i,
			     char buf[static COMMAND_WORD_MAX])
{
	const struct view *v = view_of(st->view);

	for (int k = 0; k < v->nr_columns; k++)
		if (columns_sortable(st, v, k) && !i--)
			return columns_name(&v->columns[k], buf);
	return NULL;
}

static void run_sort(struct ui_state *st, const char *arg)
{
	const struct view *v = view_of(st->view);
	size_t n = strcspn(arg, "%");
	char name[COLUMNS_NAME_MAX];

	for (int i = 0; i < v->nr_columns; i++) {
		if (!columns_sortable(st, v, i) ||
		    strlen(columns_name(&v->columns[i], name)) != n || strncasecmp(name, arg, n))
			continue;
		ui_state_list(st)->sort = (uint8_t)i;
		ui_state_list(st)->inverted = false;
		table_rebuild(st, st->view);
		return;
	}
	ui_state_say(st, true, "unknown column '%s' (F6 lists them)", arg);
}

static void run_hz(struct ui_state *st, const char *arg)
{
	struct err e;
	double hz;

	if (value_hz("hz", arg, sampler_max_hz(st->sampler), &hz, &e)) {
		ui_state_say_error(st, &e);
		return;
	}
	if (!st->latest)
		return;
	st->asked_hz = hz;
	st->asked_ns = st->now_ns;
	sampler_set_rate(st->sampler, ui_state_event(st, st->latest), hz);
}

static void run_pid(struct ui_state *st, const char *arg)
{
	char *end;
	long pid = strtol(arg, &end, 10);

	for (uint32_t i = 0; !*end && st->shown && i < st->shown->nr_processes; i++) {
		if (st->shown->processes[i].pid != (pid_t)pid)
			continue;
		navigate_into_process(st, st->shown->processes[i].id);
		return;
	}
	ui_state_say(st, true, "no samples of pid %s", arg);
}

static const char *pid_word(const struct ui_state *st, const char *before, unsigned int i,
			    char buf[static COMMAND_WORD_MAX])
{
	if (!st->shown || i >= st->shown->nr_processes)
		return NULL;
	snprintf(buf, COMMAND_WORD_MAX, "%d", (int)st->shown->processes[i].pid);
	return buf;
}

/* Return whether a process with samples is in such a cgroup or container. */
/* The file of a baseline is read before the screen. */
static void run_baseline(struct ui_state *st, const char *arg)
{
	ui_state_say(st, true, "start with --baseline=%.100s to compare with a file", arg);
}

static bool any_cgroup(const struct ui_state *st)
{
	const struct match *m = &st->scope.cgroup;

	for (uint32_t i = 0; st->shown && i < st->shown->nr_processes; i++) {
		const struct profile_process *p = &st->shown->processes[i];

		if ((p->cgroup.size && match_finds(m, p->cgroup)) ||
		    (p->container.size && match_finds(m, p->container)))
			return true;
	}
	return false;
}

/* Show processes of matching cgroups or containers only; "": all. */
static void run_cgroup(struct ui_state *st, const char *arg)
{
	if (!set_match(st, &st->scope.cgroup, arg))
		return;
	folds_forget(st->folds);
	folds_forget_baseline(st->folds);
	table_rebuild(st, st->view);
	if (!*arg)
		ui_state_say(st, false, "showing all cgroups");
	else if (!any_cgroup(st))
		ui_state_say(st, true,
			     "no process with samples is in a cgroup or container '%s' (:cgroup "
			     "shows all; Tab completes names)",
			     arg);
}

static const char *cgroup_word(const struct ui_state *st, const char *before, unsigned int i,
			       char buf[static COMMAND_WORD_MAX])
{
	const struct profile_process *p;
	const char *slash;

	if (!st->shown || i >= st->shown->nr_processes)
		return NULL;
	p = &st->shown->processes[i];
	if (p->container.str && p->container.size)
		return p->container.str;
	slash = p->cgroup.str ? strrchr(p->cgroup.str, '/') : NULL;
	return slash ? slash + 1 : "";
}

/* Write a number as it is parsed: a comma is a decimal point, as on many keyboards. */
static const char *typed_number(const char *arg, char out[static LINE_SIZE])
{
	char *comma;

	snprintf(out, LINE_SIZE, "%s", arg);
	comma = strchr(out, ',');
	if (comma)
		*comma = '.';
	return out;
}

static void run_limit(struct ui_state *st, const char *arg)
{
	char text[LINE_SIZE];
	struct err e;

	if (value_limit("limit", typed_number(arg, text), &st->percent_limit, &e)) {
		ui_state_say_error(st, &e);
		return;
	}
	table_rebuild(st, st->view);
	table_select_shown(st);
}

static void run_delay(struct ui_state *st, const char *arg)
{
	char text[LINE_SIZE];
	struct err e;

	if (value_delay("delay", typed_number(arg, text), &st->tick_ns, &e))
		ui_state_say_error(st, &e);
	else
		sampler_set_tick(st->sampler, st->tick_ns);
}

static const char *theme_word(const struct ui_state *st, const char *before, unsigned int i,
			      char buf[static COMMAND_WORD_MAX])
{
	return i < THEME_NR ? theme_name((enum theme)i) : NULL;
}

/* Set a theme; without an argument the next one. */
static void run_theme(struct ui_state *st, const char *arg)
{
	int theme = (st->theme + 1) % THEME_NR;
	struct err e;

	if (*arg && value_theme("theme", arg, &theme, &e)) {
		ui_state_say_error(st, &e);
		return;
	}
	st->theme = theme;
	ui_state_say(st, false, "theme %s (W saves it)", theme_name((enum theme)theme));
}

static const char *switch_word(const struct ui_state *st, const char *before, unsigned int i,
			       char buf[static COMMAND_WORD_MAX])
{
	return i == 0 ? "on" : i == 1 ? "off" : NULL;
}

/* Set the mouse on or off; without an argument toggle it. */
static void run_mouse(struct ui_state *st, const char *arg)
{
	if (*arg && strcmp(arg, "on") && strcmp(arg, "off")) {
		ui_state_say(st, true, "invalid value '%s': on or off", arg);
		return;
	}
	st->mouse = *arg ? !strcmp(arg, "on") : !st->mouse;
	ui_state_say(st, false,
		     st->mouse ? "mouse on; Shift-drag selects text"
			       : "mouse off: terminal selects text");
}

/* Set the columns by name, in any order; "automatic": by width. */
static void run_columns(struct ui_state *st, const char *arg)
{
	const struct view *v = view_of(st->view);
	uint32_t columns = columns_parse(v, arg);

	if (!columns && strcmp(arg, "automatic"))
		ui_state_say(st, true, "unknown columns '%s' (c lists them)", arg);
	else
		ui_state_list(st)->columns = columns;
}

static const char *column_word(const struct ui_state *st, const char *before, unsigned int i,
			       char buf[static COMMAND_WORD_MAX])
{
	const struct view *v = view_of(st->view);

	return i < v->nr_columns ? columns_name(&v->columns[i], buf) : NULL;
}

static const char *cpus_word(const struct ui_state *st, const char *before, unsigned int i,
			     char buf[static COMMAND_WORD_MAX])
{
	return i ? NULL : "all";
}

/* Go to a row by number, from 1. */
static void run_row(struct ui_state *st, const char *arg)
{
	table_move_to(st, (uint32_t)MAX(strtol(arg, NULL, 10), 1L) - 1);
}

static const char *call_graph_word(const struct ui_state *st, const char *before, unsigned int i,
				   char buf[static COMMAND_WORD_MAX])
{
	return i < CALL_GRAPH_NR ? profile_call_graph_name((enum call_graph)i) : NULL;
}

static void set_stack_size(struct ui_state *st, const char *name, const char *arg)
{
	uint32_t size;
	bool is_auto;
	struct err e;

	if (value_stack_size(name, arg, &size, &is_auto, &e))
		ui_state_say_error(st, &e);
	else
		sampler_set_stack_size(st->sampler, size, is_auto);
}

static void run_call_graph(struct ui_state *st, const char *arg)
{
	enum call_graph mode;
	const char *size;
	struct err e;

	if (value_call_graph("call-graph", arg, &mode, &size, &e))
		ui_state_say_error(st, &e);
	else if (size)
		set_stack_size(st, "call-graph dwarf,", size);
	else
		sampler_set_call_graph(st->sampler, mode);
}

static const char *frames_word(const struct ui_state *st, const char *before, unsigned int i,
			       char buf[static COMMAND_WORD_MAX])
{
	return i < FRAMES_NR ? profile_frames_name((enum profile_frames)i) : NULL;
}

static void run_frames(struct ui_state *st, const char *arg)
{
	enum profile_frames frames;
	struct err e;

	if (value_frames("frames", arg, &frames, &e))
		ui_state_say_error(st, &e);
	else
		sampler_set_frames(st->sampler, frames);
}

static void run_stack_size(struct ui_state *st, const char *arg)
{
	set_stack_size(st, "stack-size", arg);
}

static void run_ring(struct ui_state *st, const char *arg)
{
	uint64_t size;
	struct err e;

	if (value_ring("ring", arg, &size, &e))
		ui_state_say_error(st, &e);
	else
		sampler_set_ring_size(st->sampler, size);
}

static void run_event(struct ui_state *st, const char *arg)
{
	sampled_use(st, arg, false);
}

static bool gather_events(struct ui_state *st, const void *of, const char *word)
{
	words_events(&st->words, st->sampler);
	return true;
}

/* Return the @i-th gathered word. */
static const char *gathered_word(const struct ui_state *st, const char *before, unsigned int i,
				 char buf[static COMMAND_WORD_MAX])
{
	return i < st->words.nr ? st->words.list[i] : NULL;
}

const struct command command_table[] = {
	{ "screen", "FILE (Tab lists)", run_screen, gathered_word, false, NULL, file_words_gather },
	{ "export", "FILE (Tab lists)", run_export, gathered_word, false, NULL, file_words_gather },
	{ "show", "REGEX", run_filter, NULL, false, NULL, NULL },
	{ "find", "TEXT", run_search, NULL, false, NULL, NULL },
	{ "order", "COLUMN", run_sort, sort_word, false, NULL, NULL },
	{ "target", "KIND WHICH", command_target, command_target_word, false, " ,", NULL },
	{ "cpus", "LIST|all", command_cpus, cpus_word, false, NULL, NULL },
	{ "event", "NAME,... (Tab lists)", run_event, gathered_word, false, ",", gather_events },
	{ "hz", "HZ", run_hz, NULL, false, NULL, NULL },
	{ "pid", "PID", run_pid, pid_word, false, NULL, NULL },
	{ "baseline", "", run_baseline, NULL, false, NULL, NULL },
	{ "rewind", "TIME", rewind_command, NULL, true, NULL, NULL },
	{ "trap", "RULE|off", rewind_trap, NULL, true, NULL, NULL },
	{ "row", "NUMBER", run_row, NULL, false, NULL, NULL },
	{ "call-graph", "HOW", run_call_graph, call_graph_word, false, NULL, NULL },
	{ "frames", "KIND", run_frames, frames_word, false, NULL, NULL },
	{ "stack-size", "SIZE", run_stack_size, NULL, false, NULL, NULL },
	{ "ring", "SIZE", run_ring, NULL, false, NULL, NULL },
	{ "cgroup", "TEXT", run_cgroup, cgroup_word, true, NULL, NULL },
	{ "limit", "PERCENT", run_limit, NULL, false, NULL, NULL },
	{ "delay", "SECONDS", run_delay, NULL, false, NULL, NULL },
	{ "theme", "NAME", run_theme, theme_word, true, NULL, NULL },
	{ "mouse", "on|off", run_mouse, switch_word, true, NULL, NULL },
	{ "columns", "NAME,...", run_columns, column_word, false, ",", NULL },
	{ NULL, NULL, NULL, NULL, false, NULL, NULL },
};

const struct command *command_find(const char *name)
{
	for (const struct command *c = command_table; c->name; c++)
		if (!strcmp(c->name, name))
			return c;
	return NULL;
}
