// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The user's editor. The main thread.
 *
 * A shell splits $EDITOR, as everywhere, and looks whether the file is there;
 * its path and the line are arguments, never part of what the shell reads.
 */
#include "ui/editor.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOT_FOUND  125 /* what our line of shell says of a file */
#define CANNOT_RUN 126 /* what shells say of a program: this or 127 */

/* Editors that take "FILE:LINE" behind an option, and do not wait by themselves. */
static const char *const with_goto[] = { "code", "codium", "code-insiders" };

static bool takes_goto(const char *program)
{
	size_t size = strcspn(program, " \t");
	const char *slash = memrchr(program, '/', size);
	const char *name = slash ? slash + 1 : program;

	size -= (size_t)(name - program);
	for (size_t i = 0; i < ARRAY_SIZE(with_goto); i++)
		if (strlen(with_goto[i]) == size && !memcmp(with_goto[i], name, size))
			return true;
	return false;
}

const char *editor_program(void)
{
	static const char *const names[] = { "VISUAL", "EDITOR" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *value = getenv(names[i]);

		if (value && value[strspn(value, " \t")])
			return value;
	}
	return NULL;
}

void editor_command(struct editor_command *c, const char *program, const char *path, uint32_t line)
{
	bool jump = takes_goto(program);

	/* $1: the file, the rest: as the editor wants it. */
	snprintf(c->script, sizeof(c->script),
		 "test -r \"$1\" || exit %d; shift; exec %.1000s \"$@\"", NOT_FOUND, program);
	if (jump)
		snprintf(c->where, sizeof(c->where), "%s:%u", path, line);
	else
		snprintf(c->where, sizeof(c->where), "+%u", line);
	memcpy(c->argv,
	       (char *[]){ "sh", "-c", c->script, "proftop", (char *)path,
			   jump ? "--goto" : c->where, jump ? c->where : (char *)path, NULL },
	       sizeof(c->argv));
}

/* The child: async-signal-safe calls only, for proftop has threads. */
static void __attribute__((noreturn)) become(const struct editor_command *c, int in, int out)
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
	execv("/bin/sh", c->argv);
	_exit(CANNOT_RUN);
}

int editor_start(struct editor *ed, const struct editor_command *c, int in, int out, struct err *e)
{
	sigset_t all, before;
	int code;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ed->tty = in;
	ed->pid = fork();
	code = -errno;
	if (!ed->pid)
		become(c, in, out);
	/* Here, too: whoever comes first. */
	if (ed->pid > 0)
		setpgid(ed->pid, ed->pid);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
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
