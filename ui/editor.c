// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The user's editor. Runs on: the main thread.
 *
 * A shell splits $EDITOR, as everywhere, and looks whether the file exists; its path and the line
 * are arguments, never part of the script.
 */
#include "ui/ui.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbols/base/invoker.h"

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
