/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * --stacks PID: the stacks of all threads of a process, as text or NDJSON.
 *
 * Runs on: the main thread.
 */
#ifndef UI_CLI_STACKS_H
#define UI_CLI_STACKS_H

#include <stdio.h>

#include "sampler/task_stacks.h"

void stacks_print_text(FILE *out, const struct task_stacks *t);
/* One object a thread and line. */
void stacks_print_ndjson(FILE *out, const struct task_stacks *t);
/*
 * Write what is known of a thread besides its frames to @buf: "asleep", "running, stopped for
 * 0.31 ms", "asleep; callers unknown: no unwind tables".
 */
struct safe_text stacks_describe(const struct task_stack *s, char *buf, size_t size);

#endif
