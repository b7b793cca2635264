/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The user's editor, at a line of a file. It gets the terminal, as a job of
 * its own, until it ends; sampling goes on meanwhile. The main thread.
 */
#ifndef UI_EDITOR_H
#define UI_EDITOR_H

#include <sys/types.h>

#include "symbols/base/base.h"

#define EDITOR_ARGS_MAX 10
#define EDITOR_PATH_MAX 1024

struct editor {
	pid_t pid;
	int tty; /* that it has, until it ends */
};

/*
 * What to run: arguments for execv(3) that end with NULL, borrowed from @buf,
 * @program ("vi -n" as in $EDITOR; a shell splits it) and @path. @where:
 * room for the line.
 */
struct editor_command {
	char script[2 * EDITOR_PATH_MAX], where[EDITOR_PATH_MAX + 32];
	char *argv[EDITOR_ARGS_MAX];
};
/* 0 or -errno with a sentence: @program is too long, or editor_refusal(). */
int editor_command(struct editor_command *c, const char *program, const char *path, uint32_t line,
		   struct err *e);
/*
 * Why @path must not be given to an editor, NULL: it may. Names of source files are foreign bytes
 * (DWARF, jitdumps): one that is not absolute could be an option or a command ("+!id"), or a file
 * of the current directory.
 */
const char *editor_refusal(const char *path);
/* $VISUAL, else $EDITOR; NULL: neither says anything. */
const char *editor_program(void);

/*
 * Run it on the terminal @in, @out, which nobody else uses from now on. 0 or
 * -errno with a sentence.
 */
int editor_start(struct editor *ed, const struct editor_command *c, int in, int out, struct err *e);
/* Has it ended? Then the terminal is ours again. One that stops itself is continued. */
bool editor_ended(struct editor *ed, int *status);
/* Ask it to end. */
void editor_stop(const struct editor *ed);
/* What @status means for a person: a sentence in @e, or 0: all is well. */
int editor_result(int status, const char *program, const char *path, struct err *e);

#endif
