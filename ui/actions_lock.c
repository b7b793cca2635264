// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Tasks are chosen on the main thread; their mutexes are read on a worker, as the memory of a
 * process may not respond.
 */
#include "ui/actions_lock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/waits/locks.h"
#include "ui/cli/file_work.h"
#include "ui/view/folds.h"
#include "ui/view/view.h"

#define TASKS_MAX    256
#define LOCKS_MAX    16
#define OWNER_FRAMES 3

struct lock_work {
	struct file_work work; /* first: the two are cast */
	struct profile *profile;
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

/* Find the stack in which a task was most while it waited for no lock; NULL: none. */
static const struct profile_stack *hottest_stack(const struct profile *p, pid_t pid, pid_t tid)
{
	const struct profile_count *best = NULL;

	for (uint32_t i = 0; i < p->nr_counts; i++) {
		const struct profile_count *c = &p->counts[i];
		const struct profile_task *task = &p->tasks[c->task];

		if (c->event < EVENTS_MAX && p->stack_waits[c->stack] != WAIT_LOCK &&
		    task->tid == tid && p->processes[task->process].pid == pid &&
		    (!best || c->weight > best->weight))
			best = c;
	}
	return best ? &p->stacks[best->stack] : NULL;
}

/* Append the innermost functions of the owner: "[sleep] nap < work < run". */
static void append_frames(char *dst, size_t size, const struct profile *p,
			  const struct profile_stack *s)
{
	const char *before = ", mostly in ";
	int shown = 0;

	for (uint32_t i = 0; s && i < s->nr && shown < OWNER_FRAMES; i++) {
		const struct profile_function *f = &p->functions[p->frames[s->first + i]];
		size_t used = strlen(dst);

		if (f->kernel)
			continue;
		snprintf(dst + used, size - used, "%s%.40s", before, f->name.str);
		before = f->kind == 'w' ? " " : " < ";
		/* The kind of a wait is no function. */
		shown += f->kind != 'w';
	}
}

/* Describe the mutex that most tasks wait for. */
static void describe(struct lock_work *w, const struct lock *lock, uint32_t nr)
{
	char owner[64] = "owner unknown", frames[160] = "", more[48] = "";

	if (lock->owner) {
		snprintf(owner, sizeof(owner), "held by thread %d (%s%.30s)", lock->owner,
			 lock->state == 'R'   ? "running"
			 : lock->state == 'D' ? "disk, "
					      : "asleep in ",
			 lock->state == 'R' ? "" : lock->wchan);
		append_frames(frames, sizeof(frames), w->profile,
			      hottest_stack(w->profile, lock->pid, lock->owner));
	}
	if (nr > 1)
		snprintf(more, sizeof(more), "; %u more mutexes", nr - 1);
	text_format(w->work.done, sizeof(w->work.done), "mutex 0x%llx of pid %d: %u %s, %s%s%s",
		    (unsigned long long)lock->address, lock->pid, lock->nr_waiters,
		    lock->nr_waiters == 1 ? "waiter" : "waiters", owner, frames, more);
}

static int run(struct file_work *work, struct err *e)
{
	struct lock_work *w = (struct lock_work *)work;
	struct lock locks[LOCKS_MAX];
	uint32_t nr = locks_find(w->tasks, w->nr, locks, LOCKS_MAX);

	if (nr)
		describe(w, &locks[0], nr);
	else
		snprintf(work->done, sizeof(work->done),
			 "no thread waits for a mutex at this moment (%u looked at)", w->nr);
	return 0;
}

static void free_work(struct file_work *work)
{
	struct lock_work *w = (struct lock_work *)work;

	profile_free(w->profile);
	free(w);
}

void actions_lock(struct ui_state *st)
{
	struct lock_work *w = st->shown ? calloc(1, sizeof(*w)) : NULL;
	struct err e;
	int code;

	if (!w)
		return;
	*w = (struct lock_work){ .work = { .run = run,
					   .free = free_work,
					   .doing = "reading the mutexes",
					   .own_rights = true },
				 .profile = profile_keep(st->shown) };
	choose_tasks(st, w, false);
	if (!w->nr)
		choose_tasks(st, w, true);
	if (!w->nr || st->config->replayed) {
		ui_state_say(st, true, "%s",
			     w->nr		      ? "not available when replaying a recording"
			     : st->shown->stack_waits ? "no thread waited for a lock"
						      : "waits are not measured (^ measures them)");
		free_work(&w->work);
		return;
	}
	code = file_worker_start(st->files, &w->work, time_now_ns(), &e);
	if (code)
		ui_state_say(st, code < 0, "%s", e.text);
}
