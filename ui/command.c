// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The command line. The main thread.
 *
 * Commands with an argument stand in one table; all others are the actions of
 * the key table, so that what has a key has a name, too.
 */
#include "ui/command.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/actions.h"
#include "ui/actions_tools.h"
#include "ui/number.h"
#include "ui/screen.h"
#include "ui/view.h"

struct command {
	const char *name, *argument;
	void (*run)(struct ui_state *st, const char *arg);
	/* The @i-th word that can follow; NULL: no more. NULL: anything. */
	const char *(*word)(unsigned int i);
};

static void run_screen(struct ui_state *st, const char *arg)
{
	int code = actions_save_screen(st, arg, false);

	if (code)
		ui_state_say(st, true, "%s: %s", arg, strerror(-code));
	else
		ui_state_say(st, false, "the screen is in %s", arg);
}

static void run_filter(struct ui_state *st, const char *arg)
{
	match_set(&ui_state_list(st)->filter, arg);
	list_rebuild(st, st->view);
}

static void run_search(struct ui_state *st, const char *arg)
{
	struct list *list = ui_state_list(st);

	match_set(&list->search, arg);
	if (!list_search(st, list->cursor, false))
		ui_state_say(st, true, "%s: not found", arg);
}

static const char *sort_word(unsigned int i)
{
	return i < APP_SORT_NR ? app_sort_name((enum app_sort)i) : NULL;
}

/* By the name of a column of --list-columns, or by a title of this view. */
static void run_sort(struct ui_state *st, const char *arg)
{
	const struct view *v = view_of(st->view);
	struct err e;
	int sort = app_sort_parse(arg, &e), column = -1;

	for (int i = 0; i < v->nr_columns; i++) {
		size_t n = strcspn(v->columns[i].title.str, "%");

		if (v->columns[i].compare && n == strcspn(arg, "%") &&
		    !strncasecmp(v->columns[i].title.str, arg, n))
			column = i;
	}
	if (column < 0 && sort >= 0 && st->view == VIEW_FUNCTIONS)
		column = view_functions_column((enum app_sort)sort);
	if (column < 0) {
		ui_state_say(st, true, "this view has no column %s (F6 lists what it has)", arg);
		return;
	}
	ui_state_list(st)->sort = (uint8_t)column;
	ui_state_list(st)->inverted = false;
	list_rebuild(st, st->view);
}

static void run_hz(struct ui_state *st, const char *arg)
{
	char *end;
	double hz = strtod(arg, &end);

	if (end == arg || *end || !(hz >= 1) || !isfinite(hz)) {
		ui_state_say(st, true, "hz %s: not a frequency", arg);
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
		actions_enter_process(st, st->shown->processes[i].id);
		return;
	}
	ui_state_say(st, true, "pid %s: no samples of such a process here", arg);
}

/* To the row of a line number, 1 the first: as in any pager. */
static void run_row(struct ui_state *st, const char *arg)
{
	list_move_to(st, (uint32_t)MAX(strtol(arg, NULL, 10), 1L) - 1);
}

static const char *call_graph_word(unsigned int i)
{
	return i < CALL_GRAPH_NR ? profile_call_graph_name((enum call_graph)i) : NULL;
}

static void run_call_graph(struct ui_state *st, const char *arg)
{
	for (unsigned int i = 0; i < CALL_GRAPH_NR; i++)
		if (!strcmp(arg, call_graph_word(i))) {
			sampler_set_call_graph(st->sampler, (enum call_graph)i);
			return;
		}
	ui_state_say(st, true, "call-graph %s: not one of dwarf, fp, off", arg);
}

static void run_stack_size(struct ui_state *st, const char *arg)
{
	uint64_t size;

	if (number_size(arg, SAMPLER_STACK_SIZE_MAX, &size))
		ui_state_say(st, true, "stack-size %s: not a size up to %u", arg, SAMPLER_STACK_SIZE_MAX);
	else
		sampler_set_stack_size(st->sampler, (uint32_t)size);
}

static void run_ring(struct ui_state *st, const char *arg)
{
	uint64_t size;

	if (number_size(arg, 256u << 20, &size) || size < 4096)
		ui_state_say(st, true, "ring %s: not a size from 4K to 256M", arg);
	else
		sampler_set_ring_size(st->sampler, size);
}

static const struct command commands[] = {
	{ "screen", "FILE", run_screen, NULL },
	{ "show", "REGEX", run_filter, NULL },
	{ "find", "TEXT", run_search, NULL },
	{ "order", "COLUMN", run_sort, sort_word },
	{ "hz", "HZ", run_hz, NULL },
	{ "pid", "PID", run_pid, NULL },
	{ "row", "NUMBER", run_row, NULL },
	{ "call-graph", "HOW", run_call_graph, call_graph_word },
	{ "stack-size", "SIZE", run_stack_size, NULL },
	{ "ring", "SIZE", run_ring, NULL },
};

/* The @i-th name of all that can be typed; NULL: no more. */
static const char *name_at(unsigned int i)
{
	const struct key_binding *b = keys_table();

	if (i < ARRAY_SIZE(commands))
		return commands[i].name;
	i -= ARRAY_SIZE(commands);
	for (; b->action; b++)
		if (b->contexts && i-- == 0)
			return b->name;
	return NULL;
}

static enum action action_of(const char *name)
{
	for (const struct key_binding *b = keys_table(); b->action; b++)
		if (b->contexts && !strcmp(b->name, name))
			return b->action;
	/* As every editor and pager has it. */
	return !strcmp(name, "q") ? ACT_QUIT : ACT_NONE;
}

static const struct command *command_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

/* The first word into @name; returns where the rest begins. */
static const char *split(const char *text, char *name, size_t size)
{
	size_t n;

	text += strspn(text, " ");
	n = strcspn(text, " ");
	snprintf(name, size, "%.*s", (int)n, text);
	text += n;
	return text + strspn(text, " ");
}

void command_run(struct ui_state *st, const char *text)
{
	char name[MATCH_MAX], arg[MATCH_MAX];
	const struct command *command;
	enum action action;
	size_t n;

	snprintf(arg, sizeof(arg), "%s", split(text, name, sizeof(name)));
	for (n = strlen(arg); n && arg[n - 1] == ' '; n--)
		arg[n - 1] = '\0';
	if (!name[0])
		return;
	command = command_of(name);
	action = action_of(name);
	if (command && arg[0])
		command->run(st, arg);
	else if (command)
		ui_state_say(st, true, "%s needs a word after it: %s", name, command->argument);
	else if (action && arg[0])
		ui_state_say(st, true, "%s takes nothing after it", name);
	else if (action)
		screen_do(st, action, K_ENTER);
	else
		ui_state_say(st, true, "%s: no such command (Tab completes)", name);
}

/* ---- completion ---- */

/* The @i-th candidate for the word at the end of @text, and where that word begins. */
static const char *candidate(const char *text, unsigned int i, const char **word)
{
	char name[MATCH_MAX];
	const char *rest = split(text, name, sizeof(name));
	const struct command *command;

	*word = text + strspn(text, " ");
	if (rest == *word + strlen(name) && !*rest)
		return name_at(i);
	command = command_of(name);
	*word = rest;
	return command && command->word ? command->word(i) : NULL;
}

static bool begins(const char *candidate, const char *word)
{
	return !strncmp(candidate, word, strlen(word));
}

bool command_complete(const char *text, char *out, size_t size)
{
	const char *word, *name, *first = NULL;
	size_t common = 0;
	unsigned int nr = 0;

	for (unsigned int i = 0; (name = candidate(text, i, &word)); i++) {
		size_t n = 0;

		if (!begins(name, word))
			continue;
		if (!nr++) {
			first = name;
			common = strlen(name);
			continue;
		}
		while (n < common && first[n] == name[n])
			n++;
		common = n;
	}
	if (!nr)
		return false;
	snprintf(out, size, "%.*s%.*s%s", (int)(word - text), text, (int)common, first,
		 nr == 1 && command_of(first) ? " " : "");
	return true;
}

unsigned int command_candidates(const char *text, char *out, size_t size)
{
	const char *word, *name;
	unsigned int nr = 0;
	size_t at = 0;

	*out = '\0';
	for (unsigned int i = 0; (name = candidate(text, i, &word)); i++) {
		if (!begins(name, word))
			continue;
		if (at + strlen(name) + 2 < size)
			at += (size_t)snprintf(out + at, size - at, "%s%s", nr ? " " : "", name);
		nr++;
	}
	return nr;
}
