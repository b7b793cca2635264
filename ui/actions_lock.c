// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Tasks are chosen on the main thread; their mutexes and stacks are read on a worker, as the memory
 * of a process may not respond.
 */
#include "ui/actions_lock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/cli/file_work.h"
#include "ui/dialog.h"
#include "ui/fold/fold.h"
#include "ui/view/view.h"

#define TASKS_MAX 256
#define LOCKS_MAX 16

struct lock_work {
	struct file_work work; /* first: the two are cast */
	struct ui_state *st;   /* of the main thread */
	struct asked_stacks *asked;
	uint32_t languages;
	struct profile *profile; /* NULL: the stacks of a process */
	struct lock_task tasks[TASKS_MAX];
	uint32_t nr;
};

static bool has_function(const struct profile *p, uint32_t stack, uint32_t function)
{
	const struct profile_stack *s = &p->stacks[stack];

	for (uint32_t i = 0; i < s->nr; i++)
		if (p->frames[s->first + i] == function)
			return true;
	return false;
}

/* Add a task, once. */
static void add_task(struct lock_work *w, const struct profile_task *task)
{
	const struct profile *p = w->profile;
	struct lock_task one = { p->processes[task->process].pid, task->tid };

	for (uint32_t i = 0; i < w->nr; i++)
		if (w->tasks[i].tid == one.tid)
			return;
	if (w->nr < TASKS_MAX)
		w->tasks[w->nr++] = one;
}

/* Choose the tasks that waited for a lock: in the selected function, process or thread, or in any.
 */
static void choose_tasks(const struct ui_state *st, struct lock_work *w, bool any)
{
	const struct list *list = &st->lists[st->view];
	const struct row *row = list->cursor < list->nr ? &list->rows[list->cursor] : NULL;
	uint32_t function = any ? FOLD_NONE : view_function(st);
	const struct profile *p = w->profile;
	struct fold_filter filter;

	folds_filter(st, &filter);
	for (uint32_t i = 0; p->stack_waits && i < p->nr_counts; i++) {
		const struct profile_count *c = &p->counts[i];
		const struct profile_task *task = &p->tasks[c->task];

		if (p->stack_waits[c->stack] != WAIT_LOCK || !fold_passes_task(p, &filter, c->task))
			continue;
		if (function != FOLD_NONE && !has_function(p, c->stack, function))
			continue;
		if (!any && st->view == VIEW_PROCESSES && row &&
		    (row->task == UINT32_MAX ? task->process != row->index : c->task != row->task))
			continue;
		add_task(w, task);
	}
}

void actions_stacks_drop(void *asked)
{
	struct asked_stacks *a = asked;

	if (a)
		task_stacks_free(a->stacks);
	free(a);
}

/* Read the stacks of @a: of a mutex, its owner's and the first waiting threads'. */
static int read_stacks(struct lock_work *w, struct err *e)
{
	struct asked_stacks *a = w->asked;
	pid_t tids[LOCKS_WAITERS + 1];
	struct task_stacks_want want = {
		.pid = a->pid, .stop = a->stop, .languages = w->languages, .cancel = &w->work.left
	};

	if (a->is_lock) {
		want.tids = tids;
		if (a->lock.owner)
			tids[want.nr_tids++] = a->lock.owner;
		for (uint32_t i = 0; i < MIN(a->lock.nr_waiters, (uint32_t)LOCKS_WAITERS); i++)
			tids[want.nr_tids++] = a->lock.waiters[i];
	}
	task_stacks_free(a->stacks);
	a->stacks = NULL;
	return task_stacks_read(&a->stacks, &want, e);
}

/* Find the mutex that most tasks wait for. False: there is none. */
static bool find_lock(struct lock_work *w)
{
	struct lock locks[LOCKS_MAX];
	uint32_t nr = locks_find(w->tasks, w->nr, locks, LOCKS_MAX);

	if (!nr)
		return false;
	w->asked->lock = locks[0];
	w->asked->pid = locks[0].pid;
	if (nr > 1)
		snprintf(w->asked->more, sizeof(w->asked->more), "%u more mutexes", nr - 1);
	return true;
}

static int run(struct file_work *work, struct err *e)
{
	struct lock_work *w = (struct lock_work *)work;

	if (w->profile && !find_lock(w))
		return err_set(e, -ENOENT,
			       "no thread waits for a mutex at this moment (%u looked at)", w->nr);
	return read_stacks(w, e);
}

/* Show the box. */
static int finish(struct file_work *work, struct err *e)
{
	struct lock_work *w = (struct lock_work *)work;

	dialog_open_with(w->st, w->asked->is_lock ? &dialog_lock : &dialog_stacks, w->asked,
			 actions_stacks_drop);
	w->asked = NULL;
	return 0;
}

static void free_work(struct file_work *work)
{
	struct lock_work *w = (struct lock_work *)work;

	profile_free(w->profile);
	actions_stacks_drop(w->asked);
	free(w);
}

/* Make the work for a box; NULL: no memory. */
static struct lock_work *new_work(struct ui_state *st, const char *doing)
{
	struct lock_work *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	*w = (struct lock_work){ .work = { .run = run,
					   .finish = finish,
					   .free = free_work,
					   .doing = doing,
					   .own_rights = true },
				 .st = st,
				 .languages = UINT32_MAX,
				 .asked = calloc(1, sizeof(*w->asked)) };
	if (w->asked)
		return w;
	free(w);
	return NULL;
}

static void start(struct ui_state *st, struct lock_work *w)
{
	struct err e = { "" };
	int code = file_worker_start(st->files, &w->work, time_now_ns(), &e);

	if (code && e.text[0])
		ui_state_say(st, code < 0, "%s", e.text);
}

void actions_lock(struct ui_state *st)
{
	struct lock_work *w = st->shown ? new_work(st, "reading the mutexes") : NULL;

	if (!w)
		return;
	w->asked->is_lock = true;
	w->profile = profile_keep(st->shown);
	choose_tasks(st, w, false);
	if (!w->nr)
		choose_tasks(st, w, true);
	if (w->nr && !st->config->replayed) {
		start(st, w);
		return;
	}
	ui_state_say(st, true, "%s",
		     w->nr		      ? "not available when replaying a recording"
		     : st->shown->stack_waits ? "no thread waited for a lock"
					      : "waits are not measured (^ measures them)");
	free_work(&w->work);
}

/* Return the process of the selected row, or the one drilled into; 0: none. */
static pid_t selected_process(const struct ui_state *st)
{
	const struct list *list = &st->lists[st->view];
	const struct row *row = list->cursor < list->nr ? &list->rows[list->cursor] : NULL;
	const struct profile *p = st->shown;
	uint32_t process = ui_state_process(st, p);

	if (st->view == VIEW_PROCESSES && row && row->task < p->nr_tasks)
		process = p->tasks[row->task].process;
	else if (st->view == VIEW_PROCESSES && row)
		process = row->index;
	if (process == UINT32_MAX && p->nr_processes == 1)
		process = 0;
	return process < p->nr_processes ? p->processes[process].pid : 0;
}

void actions_stacks_now(struct ui_state *st)
{
	pid_t pid = st->shown ? selected_process(st) : 0;
	struct asked_stacks *a;

	if (st->config->replayed || pid <= 0) {
		ui_state_say(st, true, "%s",
			     st->config->replayed ? "not available when replaying a recording"
						  : "no process is selected: 2, then a row");
		return;
	}
	a = calloc(1, sizeof(*a));
	if (!a)
		return;
	a->pid = pid;
	dialog_open_with(st, &dialog_stacks, a, actions_stacks_drop);
}

void actions_stacks_again(struct ui_state *st, const struct asked_stacks *a, bool stop)
{
	struct lock_work *w = new_work(st, "reading the stacks");

	if (!w)
		return;
	*w->asked = *a;
	w->asked->stacks = NULL;
	w->asked->stop = stop;
	start(st, w);
}
