// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The command line (:): every action by its name, commands with an argument, the target; keys in
 * the line that is typed.
 *
 * Runs on: the main thread.
 *
 * Commands with an argument have a table (command_table[]); all others are the actions of the key
 * table: every key has a name. A name in both is the action if it has no argument.
 */
#include "ui/internal.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "ui/cli/cli.h"
#include "ui/export/export.h"
#include "ui/fold/fold.h"
#include "ui/key/key.h"
#include "ui/state/state.h"
#include "ui/text/text.h"
#include "ui/view/view.h"

/*
 * Commands that change the target: ":target pid 1234", ":cpus 0-3". The main
 * thread; the sampler answers in a later profile.
 *
 * Commands that change the target. Runs on: the main thread.
 */

#define COMMAND_WORD_MAX 32
#define USER_MAX	 64

/* A command with an argument. */
struct command {
	const char *name, *argument;
	void (*run)(struct ui_state *st, const char *arg);
	/*
	 * Return the @i-th candidate for the next word; @before: the argument up to
	 * that word; NULL: no more. A NULL pointer: no candidates.
	 */
	const char *(*word)(const struct ui_state *st, const char *before, unsigned int i,
			    char buf[static COMMAND_WORD_MAX]);
	bool alone;	    /* the argument is optional: run with "" */
	const char *breaks; /* characters that separate words; NULL: one word */
	/*
	 * Gather the words that begin with @word into st->words (Tab), for the command @of; false:
	 * they come later. NULL: not needed.
	 */
	bool (*gather)(struct ui_state *st, const void *of, const char *word);
	const struct setting *setting; /* that it changes, instead of run(); NULL: none */
};

static const struct kind {
	const char *name, *value; /* NULL: no argument */
	enum sampler_target target;
} kinds[] = {
	{ "system", NULL, TARGET_SYSTEM },
	{ "pid", "processes, as in: pid 1234,5678", TARGET_PIDS },
	{ "tid", "threads, as in: tid 1234,5678", TARGET_TIDS },
	{ "user", "a user name or number", TARGET_USER },
	{ "cgroup", "a path below the cgroup mount", TARGET_CGROUP },
	{ "name", "a regex, as in: name ^nginx$", TARGET_NAME },
	{ "command", NULL, TARGET_COMMAND },
};

static const struct kind *kind_of(const char *word, size_t size)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strlen(kinds[i].name) == size && !strncmp(kinds[i].name, word, size))
			return &kinds[i];
	return NULL;
}

/* Return the @i-th value of that kind with samples; "": it is not a word; NULL: no more. */
static const char *value_word(const struct ui_state *st, enum sampler_target target, unsigned int i,
			      char *buf)
{
	const struct profile *p = st->shown;

	if (!p || i >= (target == TARGET_TIDS ? p->nr_tasks : p->nr_processes))
		return NULL;
	switch (target) {
	case TARGET_PIDS:
		snprintf(buf, COMMAND_WORD_MAX, "%d", (int)p->processes[i].pid);
		return buf;
	case TARGET_TIDS:
		snprintf(buf, COMMAND_WORD_MAX, "%d", (int)p->tasks[i].tid);
		return buf;
	case TARGET_USER:
		return users_name(st->config->users, p->processes[i].uid, buf, COMMAND_WORD_MAX)
			.str;
	case TARGET_CGROUP:
		return p->processes[i].cgroup.size ? p->processes[i].cgroup.str : "";
	case TARGET_NAME:
		return p->processes[i].comm.str;
	default:
		return NULL;
	}
}

static const char *command_target_word(const struct ui_state *st, const char *before,
				       unsigned int i, char *buf)
{
	size_t size = strcspn(before, " ");
	const struct kind *kind = kind_of(before, size);

	if (before[size])
		return kind && kind->value ? value_word(st, kind->target, i, buf) : NULL;
	if (i >= ARRAY_SIZE(kinds))
		return NULL;
	snprintf(buf, COMMAND_WORD_MAX, "%s%s", kinds[i].name, kinds[i].value ? " " : "");
	return buf;
}

static int take_user(const struct ui_state *st, const char *name, const char *value, uid_t *uid,
		     struct err *e)
{
	struct options o = { .action = OPTIONS_RUN };
	int code;

	if (number_is_id(value)) {
		code = setting_take(setting_at(setting_index("user")), &o, name, value, e);
		*uid = code ? *uid : o.config.uid;
		return code;
	}
	return users_find(st->config->users, value, uid) ? 0
							 : err_set(e, -ENOENT,
								   "%s %.100s: unknown user\n"
								   "  give a user id, or a name "
								   "from 'getent passwd'",
								   name, value);
}

/* Parse the argument into @spec, which points to @value or @user; the caller frees its pids. 0 or
 * -errno with a sentence. */
static int take_value(const struct ui_state *st, struct sampler_target_spec *spec, pid_t **pids,
		      char user[static USER_MAX], const char *value, struct err *e)
{
	struct options o = { .action = OPTIONS_RUN };
	bool threads = spec->target == TARGET_TIDS;
	int code = 0;

	switch (spec->target) {
	case TARGET_PIDS:
	case TARGET_TIDS:
		code = setting_take(setting_at(setting_index(threads ? "tid" : "pid")), &o,
				    threads ? "target tid" : "target pid", value, e);
		spec->pids = *pids = o.pids;
		spec->nr_pids = o.config.nr_pids;
		return code;
	case TARGET_USER:
		code = take_user(st, "target user", value, &spec->uid, e);
		spec->user = value;
		/* A number has its name, as in top; a name is the one that was given. */
		if (!code && number_is_id(value))
			spec->user = users_name(st->config->users, spec->uid, user, USER_MAX).str;
		return code;
	case TARGET_CGROUP:
		spec->cgroup = value;
		return 0;
	case TARGET_NAME:
		spec->name = value;
		return setting_take(setting_at(setting_index("name")), &o, "target name", value, e);
	default:
		return 0;
	}
}

/* Keep the sampled CPUs. */
static void command_target(struct ui_state *st, const char *arg)
{
	size_t size = strcspn(arg, " ");
	const struct kind *kind = kind_of(arg, size);
	const char *value = arg + size + strspn(arg + size, " ");
	struct sampler_target_spec spec = { .same_cpus = true };
	char user[USER_MAX];
	pid_t *pids = NULL;
	struct err e;

	if (!kind) {
		ui_state_say(st, true,
			     "unknown target '%s': system, pid, tid, user, cgroup, name or command",
			     arg);
		return;
	}
	spec.target = kind->target;
	if (!kind->value && *value)
		ui_state_say(st, true, "target %s takes no argument", kind->name);
	else if (kind->value && !*value)
		ui_state_say(st, true, "target %s needs %s", kind->name, kind->value);
	else if (take_value(st, &spec, &pids, user, value, &e))
		ui_state_say_error(st, &e);
	else
		sampler_set_target(st->sampler, &spec);
	free(pids);
}

static void command_cpus(struct ui_state *st, const char *arg)
{
	struct options o = { .action = OPTIONS_RUN };
	struct err e;

	if (!strcmp(arg, "all"))
		sampler_set_cpus(st->sampler, NULL, 0);
	else if (setting_take(setting_at(setting_index("cpu")), &o, "cpus", arg, &e))
		ui_state_say_error(st, &e);
	else
		sampler_set_cpus(st->sampler, o.cpus, o.config.nr_cpus);
	options_fini(&o);
}

/*
 * Files that complete a command. Runs on: the main thread.
 */

struct words_work {
	struct file_work work; /* first: the two are cast */
	struct ui_state *st;
	const void *of;
	char word[LINE_SIZE];
	struct words_list found;
};

static int run(struct file_work *work, struct err *e)
{
	struct words_work *w = (struct words_work *)work;

	words_files(&w->found, w->word);
	return 0;
}

static int finish(struct file_work *work, struct err *e)
{
	struct words_work *w = (struct words_work *)work;
	struct ui_state *st = w->st;

	words_fini(&st->words);
	st->words = w->found;
	st->words.of = w->of;
	w->found = (struct words_list){ NULL, 0, 0, NULL };
	return 0;
}

static void free_work(struct file_work *work)
{
	struct words_work *w = (struct words_work *)work;

	words_fini(&w->found);
	free(w);
}

/*
 * Have the files that begin with @word read into st->words, by st->folders, with the rights of
 * the invoking user. Waits for a moment. False: st->words.of is @of when they are there.
 */
static bool file_words_gather(struct ui_state *st, const void *of, const char *word)
{
	struct words_work *w = calloc(1, sizeof(*w));
	struct err e;
	int code;

	words_fini(&st->words);
	if (w) {
		w->work = (struct file_work){
			.run = run,
			.finish = finish,
			.free = free_work,
			.doing = "reading the folder",
		};
		w->st = st;
		w->of = of;
		snprintf(w->word, sizeof(w->word), "%s", word);
	}
	code = file_worker_start(st->folders, w ? &w->work : NULL, time_now_ns(), &e);
	if (code == -EBUSY) {
		/* What comes is of another line. */
		st->prompt.tabbed[0] = '\0';
		ui_state_say(st, false, "the last folder is still being read");
	} else if (code < 0) {
		ui_state_say_error(st, &e);
	}
	if (!code && file_worker_wait(st->folders))
		outputs_file_result(st, st->folders);
	return false;
}

/*
 * The commands with an argument. Runs on: the main thread.
 */

static void run_screen(struct ui_state *st, const char *arg)
{
	actions_save_screen(st, arg, st->written.over);
}

/* Begin a recording; without an argument end it. */
static void run_record(struct ui_state *st, const char *arg)
{
	if (!strcmp(arg, "-"))
		ui_state_say(st, true, "record -: standard output is the screen; give a file");
	else
		sampler_record(st->sampler, *arg ? arg : NULL);
}

static void run_export(struct ui_state *st, const char *arg)
{
	outputs_export(st, arg, EXPORT_NR, st->written.over);
}

/* Set a match to a typed text. Return false, with a message, if the text would be cut. */
static bool set_match(struct ui_state *st, struct match *m, const char *text)
{
	if (strlen(text) >= MATCH_MAX) {
		ui_state_say(st, true, "text too long: at most %d bytes", MATCH_MAX - 1);
		return false;
	}
	match_set(m, text);
	if (m->bad)
		ui_state_say(st, false, "%.100s: not a regular expression (%s): taken as text",
			     text, m->why);
	return true;
}

static void run_filter(struct ui_state *st, const char *arg)
{
	if (!set_match(st, &ui_state_list(st)->filter, arg))
		return;
	table_narrow(st);
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
		table_reorder(st);
		return;
	}
	ui_state_say(st, true, "unknown column '%s' (F6 lists them)", arg);
}

/* Show the processes of one user; without an argument the picker opens. */
static void run_user(struct ui_state *st, const char *arg)
{
	struct err e;
	uid_t uid;

	if (take_user(st, "user", arg, &uid, &e)) {
		ui_state_say_error(st, &e);
		return;
	}
	st->scope.by_user = true;
	st->scope.uid = uid;
	folds_forget(st->folds);
	folds_forget_baseline(st->folds);
	table_rebuild(st, st->view);
}

static const char *user_word(const struct ui_state *st, const char *before, unsigned int i,
			     char buf[static COMMAND_WORD_MAX])
{
	return value_word(st, TARGET_USER, i, buf);
}

static void run_pid(struct ui_state *st, const char *arg)
{
	uint64_t pid;

	if (number_u64(arg, strlen(arg), 1, INT_MAX, &pid)) {
		ui_state_say(st, true, "pid %s: not a number", arg);
		return;
	}
	for (uint32_t i = 0; st->shown && i < st->shown->nr_processes; i++) {
		if (st->shown->processes[i].pid != (pid_t)pid)
			continue;
		navigate_into_process(st, st->shown->processes[i].id);
		return;
	}
	ui_state_say(st, true, "no samples of pid %s (:stacks %s shows its stacks)", arg, arg);
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
	uint64_t row;

	if (number_u64(arg, strlen(arg), 1, UINT32_MAX, &row))
		ui_state_say(st, true, "row %s: must be a number from 1", arg);
	else
		table_move_to(st, (uint32_t)row - 1);
}

static void run_stacks(struct ui_state *st, const char *arg)
{
	struct options o = { .action = OPTIONS_RUN };
	struct err e;

	if (!*arg)
		outputs_stacks_now(st);
	else if (setting_take(setting_at(setting_index("pid")), &o, "stacks", arg, &e))
		ui_state_say_error(st, &e);
	else if (o.config.nr_pids != 1)
		ui_state_say(st, true, "stacks: one process at a time");
	else
		outputs_stacks_of(st, o.pids[0]);
	options_fini(&o);
}

static void run_event(struct ui_state *st, const char *arg)
{
	sampling_event_use(st, arg, "", false);
}

/* Filter the shown event; without an argument no longer. */
static void run_event_filter(struct ui_state *st, const char *arg)
{
	if (st->latest && st->latest->nr_events)
		sampling_event_edit(st, ui_state_event(st, st->latest), NULL, arg);
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

static const struct command command_table[] = {
	{ "screen", "FILE (Tab lists)", run_screen, gathered_word, false, NULL, file_words_gather,
	  NULL },
	{ "export", "FILE (Tab lists)", run_export, gathered_word, false, NULL, file_words_gather,
	  NULL },
	{ "record", "FILE (alone: end)", run_record, gathered_word, true, NULL, file_words_gather,
	  NULL },
	{ "show", "REGEX", run_filter, NULL, false, NULL, NULL, NULL },
	{ "find", "TEXT", run_search, NULL, false, NULL, NULL, NULL },
	{ "order", "COLUMN", run_sort, sort_word, false, NULL, NULL, NULL },
	/* The same by the names of the keys, settings and options. */
	{ "filter", "REGEX", run_filter, NULL, false, NULL, NULL, NULL },
	{ "search", "TEXT", run_search, NULL, false, NULL, NULL, NULL },
	{ "sort", "COLUMN", run_sort, sort_word, false, NULL, NULL, NULL },
	{ "target", "KIND WHICH", command_target, command_target_word, false, " ,", NULL, NULL },
	{ "cpus", "LIST|all", command_cpus, cpus_word, false, NULL, NULL, NULL },
	{ "event", "NAME,... (Tab lists)", run_event, gathered_word, false, ",", gather_events,
	  NULL },
	{ "event-filter", "EXPR (alone: none)", run_event_filter, NULL, true, NULL, NULL, NULL },
	{ "user", "NAME", run_user, user_word, false, NULL, NULL, NULL },
	{ "pid", "PID", run_pid, pid_word, false, NULL, NULL, NULL },
	{ "baseline", "", run_baseline, NULL, false, NULL, NULL, NULL },
	{ "rewind", "TIME", rewind_command, NULL, true, NULL, NULL, NULL },
	{ "trap", "RULE|off", rewind_trap, NULL, true, NULL, NULL, NULL },
	{ "row", "NUMBER", run_row, NULL, false, NULL, NULL, NULL },
	{ "stacks", "[PID]", run_stacks, NULL, true, NULL, NULL, NULL },
	{ "cgroup", "TEXT", run_cgroup, cgroup_word, true, NULL, NULL, NULL },
	{ "columns", "NAME,...", run_columns, column_word, false, ",", NULL, NULL },
};

/* ---- settings ---- */

static void use_rate(struct ui_state *st, const struct options *o)
{
	rate_set(st, o->set.hz > 0 ? o->set.hz : st->config->automatic_hz);
}

static void use_delay(struct ui_state *st, const struct options *o)
{
	st->set.tick_ns = o->set.tick_ns;
	sampler_set_tick(st->sampler, st->set.tick_ns);
}

static void use_window(struct ui_state *st, const struct options *o)
{
	st->set.window_ns = o->set.window_ns;
	st->whole_at_end = false;
	ui_state_ask_window(st, o->set.window);
}

static void use_limit(struct ui_state *st, const struct options *o)
{
	st->set.percent_limit = o->set.percent_limit;
	table_narrow(st);
}

static void use_frames(struct ui_state *st, const struct options *o)
{
	sampler_set_frames(st->sampler, (enum profile_frames)o->set.frames);
}

static void use_stack_size(struct ui_state *st, const struct options *o)
{
	sampler_set_stack_size(st->sampler, o->config.stack_size, o->config.stack_auto);
}

static void use_call_graph(struct ui_state *st, const struct options *o)
{
	if (setting_given(&o->set, "stack-size"))
		use_stack_size(st, o);
	else
		sampler_set_call_graph(st->sampler, o->config.call_graph);
}

static void use_ring(struct ui_state *st, const struct options *o)
{
	sampler_set_ring_size(st->sampler, o->config.ring_size);
}

static void use_grouping(struct ui_state *st, const struct options *o)
{
	navigate_by_group(st, (enum grouping)o->set.grouping);
}

static void use_fold_threads(struct ui_state *st, const struct options *o)
{
	process_rows_keep_selected(st);
	st->set.fold_threads = o->set.fold_threads;
	table_rebuild(st, st->view);
}

/* Settings that are more than a value which views read. */
static const struct {
	const char *name;
	void (*use)(struct ui_state *st, const struct options *o);
} uses[] = {
	{ "delay", use_delay },		  { "window", use_window },
	{ "frequency", use_rate },	  { "limit", use_limit },
	{ "frames", use_frames },	  { "stack-size", use_stack_size },
	{ "call-graph", use_call_graph }, { "ring", use_ring },
	{ "group-by", use_grouping },	  { "fold-threads", use_fold_threads },
};

/* Use the new value of @s in @o. */
static void use_value(struct ui_state *st, const struct setting *s, const struct options *o)
{
	const char *name = s->saved ? s->saved : s->name;

	for (size_t i = 0; i < ARRAY_SIZE(uses); i++) {
		if (strcmp(uses[i].name, name))
			continue;
		uses[i].use(st, o);
		return;
	}
	st->set = o->set;
	table_rebuild(st, st->view);
}

void command_set_next(struct ui_state *st, const struct setting *s)
{
	struct options o = { .set = st->set };

	setting_next(s, &o.set);
	use_value(st, s, &o);
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

/* Set a setting; "": to its next value. */
static void run_setting(struct ui_state *st, const struct setting *s, const char *name,
			const char *arg)
{
	bool decimal = s->type == SETTING_REAL || s->type == SETTING_SECONDS;
	struct options o = { .set = st->set };
	char text[LINE_SIZE], value[SETTING_MAX];
	struct err e;

	o.set.max_hz = sampler_max_hz(st->sampler);
	memset(o.set.given, 0, sizeof(o.set.given));
	if (!*arg && s->alone) {
		command_set_next(st, s);
	} else if (setting_take(s, &o, name, decimal ? typed_number(arg, text) : arg, &e)) {
		ui_state_say_error(st, &e);
		return;
	} else {
		use_value(st, s, &o);
	}
	if (!s->alone)
		return;
	setting_show(s, &st->set, value);
	ui_state_say(st, false, "%s %s (W saves it)%s", s->saved, value,
		     s->type != SETTING_SWITCH ? ""
		     : st->set.mouse	       ? "; Shift-drag selects text"
					       : "; the terminal selects text");
}

/* Return the commands, with a row for each setting that can be changed; ends with a name of NULL.
 */
static const struct command *commands(void)
{
	static struct command all[ARRAY_SIZE(command_table) + SETTINGS_MAX + 2];
	struct command *c = all;
	const struct setting *s;

	if (all[0].name)
		return all;
	for (size_t i = 0; i < ARRAY_SIZE(command_table); i++)
		*c++ = command_table[i];
	for (size_t i = 0; (s = setting_at(i)); i++) {
		if (!s->live)
			continue;
		*c++ = (struct command){ .name = s->saved ? s->saved : s->name,
					 .argument = s->arg	? s->arg
						     : s->words ? "VALUE"
								: "on|off",
					 .alone = s->alone,
					 .setting = s };
		if (s->action == ACT_PICK_FREQUENCY) {
			*c = c[-1];
			c++->name = "hz";
		}
	}
	return all;
}

/* Return whether it is to replace a file, as in ":export! FILE". */
static bool has_bang(const char *name)
{
	return *name && name[strlen(name) - 1] == '!';
}

static const struct command *command_find(const char *name)
{
	size_t size = strlen(name) - has_bang(name);

	for (const struct command *c = commands(); c->name; c++)
		if (strlen(c->name) == size && !memcmp(c->name, name, size) &&
		    (!name[size] || c->run == run_export || c->run == run_screen))
			return c;
	return NULL;
}

/* Return the @i-th command name; NULL: no more. */
static const char *name_at(unsigned int i)
{
	const struct key_binding *b = key_table();
	unsigned int nr = 0;

	for (; commands()[nr].name; nr++)
		if (nr == i)
			return commands()[nr].name;
	for (; b->action; b++)
		if (b->contexts && !command_find(b->name) && i-- == nr)
			return b->name;
	return NULL;
}

static enum action action_of(const char *name)
{
	for (const struct key_binding *b = key_table(); b->action; b++)
		if (b->contexts && !strcmp(b->name, name))
			return b->action;
	/* As in editors and pagers. */
	return !strcmp(name, "q") ? ACT_QUIT : ACT_NONE;
}

/* Copy the first word into @name. Return the rest. */
static const char *split(const char *text, char *name, size_t size)
{
	size_t n;

	text += strspn(text, " ");
	n = strcspn(text, " ");
	snprintf(name, size, "%.*s", (int)n, text);
	text += n;
	return text + strspn(text, " ");
}

/* Report an unknown command, and the one probably meant. */
static void say_unknown(struct ui_state *st, const char *name)
{
	struct text_like like = { .text = name };
	const char *other, *meant;

	for (unsigned int i = 0; (other = name_at(i)); i++)
		text_like(&like, other);
	/* Long names are often typed in part. */
	meant = like.begins ? like.begins : like.found;
	if (meant)
		ui_state_say(st, true, "unknown command '%.100s'; did you mean %s?", name, meant);
	else
		ui_state_say(st, true, "unknown command '%.100s' (Tab completes)", name);
}

static void run_command(struct ui_state *st, const struct command *c, const char *name,
			const char *arg)
{
	if (c->setting)
		run_setting(st, c->setting, name, arg);
	else
		c->run(st, arg);
}

static void command_do(struct ui_state *st, const char *name, const char *arg)
{
	run_command(st, command_find(name), name, arg);
}

/* Run a command; errors are shown on the screen. */
static void command_run(struct ui_state *st, const char *text)
{
	char name[LINE_SIZE], arg[LINE_SIZE];
	const struct command *command;
	enum action action;
	size_t n;

	snprintf(arg, sizeof(arg), "%s", split(text, name, sizeof(name)));
	for (n = strlen(arg); n && arg[n - 1] == ' '; n--)
		arg[n - 1] = '\0';
	if (!name[0])
		return;
	command = command_find(name);
	action = action_of(name);
	st->written.over = has_bang(name);
	if (command && (arg[0] || command->alone))
		run_command(st, command, name, arg);
	else if (command && !action)
		ui_state_say(st, true, "%s needs an argument: %s", name, command->argument);
	else if (action && arg[0])
		ui_state_say(st, true, "%s takes no argument", name);
	else if (action)
		actions_do(st, action, K_ENTER);
	else
		say_unknown(st, name);
}

/* ---- completion ---- */

/* Return whether the command's name is incomplete. */
static bool in_name(const char *text)
{
	text += strspn(text, " ");
	return !text[strcspn(text, " ")];
}

/* Find the command in @text, and the start of its last word. NULL: none, or no word yet. */
static const struct command *command_at(const char *text, const char **word)
{
	char name[LINE_SIZE];
	const struct command *command;

	*word = text + strspn(text, " ");
	if (in_name(text))
		return NULL;
	*word = split(text, name, sizeof(name));
	command = command_find(name);
	for (const char *p = *word; command && command->breaks && *p; p++)
		if (strchr(command->breaks, *p))
			*word = p + 1;
	return command;
}

/* Return the @i-th value of a setting; NULL: no more. */
static const char *setting_word(const struct setting *s, unsigned int i)
{
	static const char *const switched[] = { "on", "off", NULL };
	const char *const *words = s->type == SETTING_SWITCH ? switched : s->words;

	for (; words && *words && i; i--)
		words++;
	return words ? *words : NULL;
}

/* Return the @i-th candidate for the last word of @text, and the start of that word. */
static const char *candidate(const struct ui_state *st, const char *text, unsigned int i,
			     const char **word, char buf[static COMMAND_WORD_MAX])
{
	const struct command *command = command_at(text, word);
	char before[LINE_SIZE];
	const char *rest;

	if (in_name(text))
		return name_at(i);
	if (command && command->setting)
		return setting_word(command->setting, i);
	if (!command || !command->word || (command->gather && st->words.of != command))
		return NULL;
	rest = split(text, before, sizeof(before));
	snprintf(before, sizeof(before), "%.*s", (int)(*word - rest), rest);
	return command->word(st, before, i, buf);
}

static bool begins(const char *candidate, const char *word)
{
	return !strncmp(candidate, word, strlen(word));
}

static void command_gather(struct ui_state *st, const char *text)
{
	const char *word;
	const struct command *command = command_at(text, &word);

	if (!command || !command->gather)
		return;
	if (command->gather(st, command, word))
		st->words.of = command;
}

/* Return the name of the argument ("FILE") while it is empty; else NULL. */
static const char *command_hint(const char *text)
{
	const char *word;
	const struct command *command = command_at(text, &word);

	if (in_name(text))
		command = command_find(word);
	return command && (in_name(text) || !*word) ? command->argument : NULL;
}

/*
 * Complete @text into @out of @size, as far as all candidates agree; a blank
 * follows a whole word. Return false if there is no candidate.
 */
static bool command_complete(const struct ui_state *st, const char *text, char *out, size_t size)
{
	char buf[COMMAND_WORD_MAX], first[LINE_SIZE] = "";
	const char *word, *name;
	size_t common = 0;
	bool several = false, any = false;

	for (unsigned int i = 0; (name = candidate(st, text, i, &word, buf)); i++) {
		size_t n = 0;

		if (!*name || !begins(name, word))
			continue;
		if (!any) {
			snprintf(first, sizeof(first), "%s", name);
			common = strlen(first);
			any = true;
			continue;
		}
		several |= strcmp(first, name) != 0;
		while (n < common && first[n] == name[n])
			n++;
		common = n;
	}
	/* A word that is cut is another word. */
	if (!any || (size_t)(word - text) + common + 2 > size)
		return false;
	snprintf(out, size, "%.*s%.*s%s", (int)(word - text), text, (int)common, first,
		 !several && in_name(text) && command_find(first) ? " " : "");
	return true;
}

/* Return whether @name is in @list. Several processes have one cgroup. */
static bool is_listed(const char *list, const char *name)
{
	size_t size = strlen(name);

	for (const char *p = list; size && (p = strstr(p, name)); p += size)
		if ((p == list || p[-1] == ' ') && (p[size] == ' ' || !p[size]))
			return true;
	return false;
}

/* Write all candidates for @text into @out, separated by blanks. Return their number. */
static unsigned int command_candidates(const struct ui_state *st, const char *text, char *out,
				       size_t size)
{
	const char *word, *name;
	char buf[COMMAND_WORD_MAX];
	unsigned int nr = 0;
	size_t at = 0;

	*out = '\0';
	for (unsigned int i = 0; (name = candidate(st, text, i, &word, buf)); i++) {
		/* The word itself says nothing; some have no name. */
		if (!*name || !begins(name, word) || !strcmp(name, word) || is_listed(out, name))
			continue;
		if (at + strlen(name) + 2 < size)
			at += (size_t)snprintf(out + at, size - at, "%s%s", nr ? " " : "", name);
		nr++;
	}
	return nr;
}

/*
 * Keys in the prompt: search and filter take effect while one types; Esc
 * restores the state of before. Runs on: the main thread.
 */

/* Apply the typed search or filter. */
static void follow_typing(struct ui_state *st, const char *text)
{
	struct prompt *p = &st->prompt;
	struct list *list = ui_state_list(st);

	if (p->kind == PROMPT_FILTER) {
		match_set(&list->filter, text);
		list_restore(list, &p->position_before);
		table_narrow(st);
	} else if (p->kind == PROMPT_SEARCH) {
		match_set(&list->search, text);
		list_restore(list, &p->position_before);
		p->missed = *text && !table_search(st, list->cursor, false);
		if (p->missed)
			table_missed(st, p->candidates, sizeof(p->candidates));
	}
}

/* Close the prompt; search or filter, cursor and screen are as before. */
static void cancel(struct ui_state *st)
{
	struct prompt *p = &st->prompt;
	struct list *list = ui_state_list(st);

	if (p->kind == PROMPT_FILTER) {
		match_set(&list->filter, p->before);
		table_narrow(st);
	} else if (p->kind == PROMPT_SEARCH) {
		match_set(&list->search, p->before);
	}
	if (p->kind == PROMPT_FILTER || p->kind == PROMPT_SEARCH)
		list_restore(list, &p->position_before);
	p->kind = PROMPT_NONE;
}

/* Close the prompt first: a command may draw the screen, or open another prompt. */
static void accept_command(struct ui_state *st)
{
	char text[LINE_SIZE];

	snprintf(text, sizeof(text), "%s", st->prompt.line.text);
	st->prompt.kind = PROMPT_NONE;
	command_run(st, text);
}

static void complete(struct ui_state *st)
{
	struct prompt *p = &st->prompt;
	char text[LINE_SIZE];

	if (command_complete(st, p->line.text, text, sizeof(text)))
		line_set(&p->line, text);
}

void prompt_keys_words(struct ui_state *st)
{
	struct prompt *p = &st->prompt;

	if (p->kind != PROMPT_COMMAND || !st->words.of)
		return;
	if (*p->tabbed && !strcmp(p->line.text, p->tabbed))
		complete(st);
	p->tabbed[0] = '\0';
	prompt_keys_refresh(st);
}

static void accept(struct ui_state *st)
{
	struct list *list = ui_state_list(st);
	char outcome[TEXT_MAX];

	if (st->prompt.kind == PROMPT_DELAY)
		command_do(st, "delay", st->prompt.line.text);
	else if (st->prompt.kind == PROMPT_LIMIT)
		command_do(st, "limit", st->prompt.line.text);
	else if (st->prompt.kind == PROMPT_REWIND && st->prompt.line.size)
		command_do(st, "rewind", st->prompt.line.text);
	else if (st->prompt.kind == PROMPT_SEARCH && !st->prompt.line.size &&
		 st->prompt.before[0]) {
		/* Enter on an empty line repeats the search, as in less. */
		match_set(&list->search, st->prompt.before);
		st->prompt.missed = !table_search(st, list->cursor + 1, false);
	}
	if (st->prompt.kind == PROMPT_SEARCH && st->prompt.missed) {
		table_missed(st, outcome, sizeof(outcome));
		ui_state_say(st, true, "%.100s: %s", list->search.text, outcome);
	}
	st->prompt.kind = PROMPT_NONE;
}

/* Replace the file that exists, or not. */
static void answer(struct ui_state *st, uint32_t code)
{
	char path[LINE_SIZE];

	st->prompt.kind = PROMPT_NONE;
	memcpy(path, st->written.path, sizeof(path));
	if (code != 'y' && code != 'Y')
		ui_state_say(st, false, "not replaced: %s", path);
	else if (st->written.screen)
		actions_save_screen(st, path, true);
	else
		outputs_export(st, path, (enum export_format)st->written.format, true);
}

void prompt_keys_press(struct ui_state *st, const struct key *key)
{
	bool changed;

	if (st->prompt.kind == PROMPT_REPLACE) {
		answer(st, key->code);
		return;
	}
	switch (key_find(CTX_PROMPT, key->code)) {
	case ACT_ACCEPT:
		if (st->prompt.kind == PROMPT_COMMAND)
			accept_command(st);
		else
			accept(st);
		return;
	case ACT_COMPLETE:
		if (st->prompt.kind != PROMPT_COMMAND)
			return;
		snprintf(st->prompt.tabbed, sizeof(st->prompt.tabbed), "%s", st->prompt.line.text);
		command_gather(st, st->prompt.line.text);
		complete(st);
		if (st->words.of)
			st->prompt.tabbed[0] = '\0';
		return;
	case ACT_CANCEL:
		cancel(st);
		return;
	default:
		break;
	}
	if (st->prompt.fresh && key->code > ' ' && key->code < K_BACKSPACE)
		line_set(&st->prompt.line, "");
	st->prompt.fresh = false;
	if (line_key(&st->prompt.line, key->code, &changed)) {
		if (st->prompt.line.full)
			ui_state_say(st, true, "the line is full");
		if (changed)
			follow_typing(st, st->prompt.line.text);
		else if (key->code == K_BACKSPACE && !st->prompt.line.size)
			st->prompt.kind = PROMPT_NONE;
	}
}

void prompt_keys_refresh(struct ui_state *st)
{
	struct prompt *p = &st->prompt;
	const char *hint;

	if (p->kind == PROMPT_REWIND)
		rewind_time_hint(st, p->line.text, p->candidates, sizeof(p->candidates));
	if (p->kind != PROMPT_COMMAND)
		return;
	hint = command_hint(p->line.text);
	if (!command_candidates(st, p->line.text, p->candidates, sizeof(p->candidates)) && hint)
		snprintf(p->candidates, sizeof(p->candidates), "%s", hint);
}
