/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The user's editor, at a line of a file. It owns the terminal, as a separate job, until it ends;
 * sampling goes on. Runs on: the main thread.
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
 * The command: arguments for execv(3) that end with NULL, borrowed from @buf,
 * @program ("vi -n" as in $EDITOR; a shell splits it) and @path. @where: buffer for the line.
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
 * Run the editor on the terminal @in, @out, which no other code may use until it has ended. Return
 * 0 or -errno with a message.
 */
int editor_start(struct editor *ed, const struct editor_command *c, int in, int out, struct err *e);
/* Return whether it has ended. Then the terminal is ours again. One that stops itself is continued.
 */
bool editor_ended(struct editor *ed, int *status);
/* Send SIGTERM to the editor. */
void editor_stop(const struct editor *ed);
/* Return 0 if the exit status @status is a success, else -errno with a message. */
int editor_result(int status, const char *program, const char *path, struct err *e);

#endif
