// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One line of input and its keys; the user's editor, as a job.
 *
 * Runs on: the main thread.
 */
#include "ui/internal.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/base/text.h"
#include "symbols/code/code.h"
#include "ui/draw/draw.h"
#include "ui/key/key.h"
#include "ui/state/state.h"
#include "ui/text/text.h"
#include "ui/view/view.h"

void prompt_open(struct ui_state *st, enum prompt_kind kind)
{
	struct prompt *p = &st->prompt;
	struct list *list = ui_state_list(st);
	char text[32] = "";

	assert(kind != PROMPT_NONE);
	memset(p, 0, sizeof(*p));
	p->kind = kind;
	/* A longer text would be cut. */
	if (kind == PROMPT_FILTER || kind == PROMPT_SEARCH)
		p->line.max = MATCH_MAX - 1;
	p->position_before = list_position(list);
	p->fresh = kind == PROMPT_DELAY || kind == PROMPT_LIMIT;
	switch (kind) {
	case PROMPT_FILTER:
		snprintf(p->before, sizeof(p->before), "%s", list->filter.text);
		line_set(&p->line, p->before);
		break;
	case PROMPT_SEARCH:
		snprintf(p->before, sizeof(p->before), "%s", list->search.text);
		break;
	case PROMPT_DELAY:
		snprintf(text, sizeof(text), "%g", (double)st->set.tick_ns / 1e9);
		line_set(&p->line, text);
		break;
	case PROMPT_COMMAND:
	case PROMPT_REWIND:
	case PROMPT_REPLACE:
		break;
	default:
		snprintf(text, sizeof(text), "%g", st->set.percent_limit);
		line_set(&p->line, text);
		break;
	}
}

/* Return a hint for an empty line. */
static struct safe_text hint_of(const struct prompt *p)
{
	if (p->kind == PROMPT_FILTER)
		return TEXT("text or regex; a leading ! hides matches");
	return p->before[0] ? TEXT("text or regex; Enter repeats the last search")
			    : TEXT("text or regex; then n next, N previous");
}

unsigned int prompt_draw_line(const struct line *l, struct canvas *c, unsigned int row,
			      unsigned int col, unsigned int cols, struct style style)
{
	char head[LINE_SIZE], buf[LINE_SIZE];
	unsigned int at, first;
	struct safe_text text, rest;

	memcpy(head, l->text, l->at);
	head[l->at] = '\0';
	at = ui_state_clean(buf, sizeof(buf), head).width;
	text = ui_state_clean(buf, sizeof(buf), l->text);
	/* The end of the text, with a cell for the cursor behind it. */
	rest = text_skip(text, at + 1 > cols ? at + 1 - cols : 0);
	first = (unsigned int)text.width - rest.width;
	c->cursor_row = (int)row;
	c->cursor_col = (int)MIN(col + at - first, c->cols - 1);
	return canvas_text(c, row, col, cols, rest, style);
}

static void draw_candidates(const struct prompt *p, struct canvas *c, unsigned int row,
			    unsigned int col)
{
	char clean[PROMPT_CANDIDATES];

	if (col + 1 < c->cols)
		canvas_elide(c, row, col, c->cols - col - 1,
			     ui_state_clean(clean, sizeof(clean), p->candidates),
			     (struct style){ ROLE_DIM, 0 });
}

void prompt_draw(struct ui_state *st, struct canvas *c, unsigned int row)
{
	static const struct safe_text labels[] = {
		[PROMPT_SEARCH] = TEXT("Search: "),
		[PROMPT_FILTER] = TEXT("Filter: "),
		[PROMPT_DELAY] = TEXT("Seconds between refreshes: "),
		[PROMPT_LIMIT] = TEXT("Hide rows under percent: "),
		[PROMPT_COMMAND] = TEXT(":"),
		[PROMPT_REWIND] = TEXT("Rewind to: "),
		[PROMPT_REPLACE] = TEXT("File exists. Replace it? (y/N) "),
	};
	const struct prompt *p = &st->prompt;
	const struct list *list = ui_state_list(st);
	const struct match *m = p->kind == PROMPT_FILTER ? &list->filter : &list->search;
	bool text = p->kind == PROMPT_FILTER || p->kind == PROMPT_SEARCH;
	bool missing = text && p->line.size && (!list->nr || p->missed);
	char clean[sizeof(p->candidates)];
	unsigned int col;

	assert(p->kind != PROMPT_NONE && p->kind < ARRAY_SIZE(labels));
	col = canvas_text(c, row, 0, c->cols, labels[p->kind], (struct style){ ROLE_KEY, 0 });
	col += prompt_draw_line(&p->line, c, row, col, c->cols - MIN(col, c->cols),
				(struct style){
					text && (m->bad || missing) ? ROLE_WARN : ROLE_NORMAL, 0 });
	if (p->kind == PROMPT_REPLACE)
		canvas_elide(c, row, col + 1, c->cols - MIN(col + 1, c->cols),
			     ui_state_clean(clean, sizeof(clean), st->written.path),
			     (struct style){ ROLE_DIM, 0 });
	else if (p->kind == PROMPT_COMMAND || p->kind == PROMPT_REWIND)
		draw_candidates(p, c, row, col + 2);
	else if (text && m->bad && p->line.size)
		canvas_text(c, row, col + 2, c->cols,
			    text_format(clean, sizeof(clean),
					"not a regular expression (%s): taken as text", m->why),
			    (struct style){ ROLE_WARN, 0 });
	else if (missing)
		canvas_text(c, row, col + 2, c->cols,
			    p->missed ? ui_state_clean(clean, sizeof(clean), p->candidates)
				      : TEXT("no match"),
			    (struct style){ ROLE_WARN, 0 });
	else if (text && !p->line.size)
		canvas_text(c, row, col + 2, c->cols, hint_of(p), (struct style){ ROLE_DIM, 0 });
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
		actions_export(st, path, (enum export_format)st->written.format, true);
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

/*
 * The user's editor. Runs on: the main thread.
 *
 * A shell splits $EDITOR, as everywhere, and looks whether the file exists; its path and the line
 * are arguments, never part of the script.
 */

#define EDITOR_NAME_MAX 80
#define NOT_FOUND	125 /* our script: the file is missing */
#define CANNOT_RUN	126 /* shells: cannot run a program; or 127 */

/* Editors that take "FILE:LINE" after an option, and need an option to wait. */
static const char *const with_goto[] = { "code", "codium", "code-insiders" };

/* Editors that end their options at "--". */
static const char *const with_dashes[] = { "vi", "vim", "nvim", "view", "nano" };

/* Return whether the program that @command runs is in @list. */
static bool is_one_of(const char *command, const char *const *list, size_t nr)
{
	size_t size = strcspn(command, " \t");
	const char *slash = memrchr(command, '/', size);
	const char *name = slash ? slash + 1 : command;

	size -= (size_t)(name - command);
	for (size_t i = 0; i < nr; i++)
		if (strlen(list[i]) == size && !memcmp(list[i], name, size))
			return true;
	return false;
}

const char *editor_program(void)
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

const char *editor_refusal(const char *path)
{
	if (path[0] != '/')
		return "path is not absolute";
	return strlen(path) < EDITOR_PATH_MAX ? NULL : "path is too long";
}

int editor_command(struct editor_command *c, const char *program, const char *path, uint32_t line,
		   struct err *e)
{
	bool jump = is_one_of(program, with_goto, ARRAY_SIZE(with_goto));
	const char *why = editor_refusal(path);
	unsigned int n = 0;

	if (why)
		return err_set(e, -EINVAL, "source not opened: %.400s: %s", path, why);
	if (strlen(program) >= EDITOR_PATH_MAX)
		return err_set(e, -E2BIG, "editor not started: $EDITOR is too long");
	/* $1: the file, the rest: the arguments of the editor. */
	snprintf(c->script, sizeof(c->script),
		 "test -f \"$1\" && test -r \"$1\" || exit %d; shift; exec %s \"$@\"", NOT_FOUND,
		 program);
	if (jump)
		snprintf(c->where, sizeof(c->where), "%s:%u", path, line);
	else
		snprintf(c->where, sizeof(c->where), "+%u", line);
	c->argv[n++] = "sh";
	c->argv[n++] = "-c";
	c->argv[n++] = c->script;
	c->argv[n++] = "proftop";
	c->argv[n++] = (char *)path;
	if (jump)
		c->argv[n++] = "--goto";
	c->argv[n++] = c->where;
	if (!jump && is_one_of(program, with_dashes, ARRAY_SIZE(with_dashes)))
		c->argv[n++] = "--";
	if (!jump)
		c->argv[n++] = (char *)path;
	c->argv[n] = NULL;
	return 0;
}

/* The child: async-signal-safe calls only, for proftop has threads. */
static void __attribute__((noreturn))
become(const struct editor_command *c, char **envp, int in, int out)
{
	struct sigaction action = { .sa_handler = SIG_DFL };
	sigset_t none;

	if (getpriority(PRIO_PROCESS, 0) < 0)
		setpriority(PRIO_PROCESS, 0, 0); /* that of the screen is not for others */
	setpgid(0, 0);
	tcsetpgrp(in, getpid()); /* all signals are blocked here, SIGTTOU among them */
	for (int sig = 1; sig < NSIG; sig++)
		sigaction(sig, &action, NULL);
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (invoker_become())
		execve("/bin/sh", c->argv, envp);
	_exit(CANNOT_RUN);
}

/* The environment of the invoking user: HOME, USER and LOGNAME are of root behind sudo. */
static char **environment(char home[EDITOR_PATH_MAX], char user[2][EDITOR_NAME_MAX])
{
	static const char *const replaced[] = { "HOME=", "USER=", "LOGNAME=" };
	size_t nr = 0, kept = 0;
	char **envp;

	while (environ[nr])
		nr++;
	envp = xcalloc(nr + ARRAY_SIZE(replaced) + 1, sizeof(*envp));
	for (size_t i = 0; i < nr; i++) {
		bool is = false;

		for (size_t j = 0; j < ARRAY_SIZE(replaced) && invoker_home() && invoker_name();
		     j++)
			is |= !strncmp(environ[i], replaced[j], strlen(replaced[j]));
		if (!is)
			envp[kept++] = environ[i];
	}
	if (!invoker_home() || !invoker_name())
		return envp;
	snprintf(home, EDITOR_PATH_MAX, "HOME=%s", invoker_home());
	snprintf(user[0], EDITOR_NAME_MAX, "USER=%s", invoker_name());
	snprintf(user[1], EDITOR_NAME_MAX, "LOGNAME=%s", invoker_name());
	envp[kept++] = home;
	envp[kept++] = user[0];
	envp[kept++] = user[1];
	return envp;
}

int editor_start(struct editor *ed, const struct editor_command *c, int in, int out, struct err *e)
{
	char home[EDITOR_PATH_MAX], user[2][EDITOR_NAME_MAX];
	char **envp = environment(home, user);
	sigset_t all, before;
	int code;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ed->tty = in;
	ed->pid = fork();
	code = -errno;
	if (!ed->pid)
		become(c, envp, in, out);
	/* Set by parent and child: the order of the two is not known. */
	if (ed->pid > 0)
		setpgid(ed->pid, ed->pid);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	free(envp);
	if (ed->pid < 0)
		return err_set(e, code, "cannot start the editor: %s", strerror(-code));
	return 0;
}

/* Make @group the terminal's foreground job, without being stopped for it. */
static void give_terminal(int tty, pid_t group)
{
	sigset_t ttou, before;

	sigemptyset(&ttou);
	sigaddset(&ttou, SIGTTOU);
	pthread_sigmask(SIG_BLOCK, &ttou, &before);
	tcsetpgrp(tty, group);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

bool editor_ended(struct editor *ed, int *status)
{
	pid_t pid = waitpid(ed->pid, status, WNOHANG | WUNTRACED);

	if (!pid || (pid < 0 && errno == EINTR))
		return false;
	if (pid > 0 && WIFSTOPPED(*status)) {
		/* There is no shell here that could continue it. */
		give_terminal(ed->tty, ed->pid);
		kill(-ed->pid, SIGCONT);
		return false;
	}
	if (pid < 0)
		*status = 0;
	give_terminal(ed->tty, getpgrp());
	return true;
}

void editor_stop(const struct editor *ed)
{
	kill(-ed->pid, SIGTERM);
	kill(-ed->pid, SIGCONT);
}

int editor_result(int status, const char *program, const char *path, struct err *e)
{
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;

	if (code == NOT_FOUND)
		return err_set(e, -ENOENT, "source not found: %.400s", path);
	if (code == CANNOT_RUN || code == CANNOT_RUN + 1)
		return err_set(e, -ENOENT, "the editor cannot be run: %.100s", program);
	return 0;
}
