/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stacks of threads at this moment, in a box: of the mutex that most threads of the selected row
 * wait for (if none of them waits for one, of all shown threads), or of a process. Runs on: the
 * main thread.
 */
#ifndef UI_ACTIONS_LOCK_H
#define UI_ACTIONS_LOCK_H

#include "sampler/task_stacks.h"
#include "sampler/waits/locks.h"
#include "ui/state/state.h"

/* The contents of a box. */
struct asked_stacks {
	pid_t pid;
	bool is_lock, stop; /* stop: threads could be stopped */
	struct lock lock;
	char more[48];		    /* "2 more mutexes" */
	struct task_stacks *stacks; /* NULL: not read yet */
};

/* Start to look for a mutex; the answer is a box, or a message. */
void actions_lock(struct ui_state *st);
/* Open the box of the process of the selected row: how to read is chosen there. */
void actions_stacks_now(struct ui_state *st);
/* Read the stacks of @a again, which is freed before the answer. */
void actions_stacks_again(struct ui_state *st, const struct asked_stacks *a, bool stop);
/* Free the contents of a box. */
void actions_stacks_drop(void *asked);

#endif
