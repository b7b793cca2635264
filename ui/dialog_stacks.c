// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Boxes with stacks: of a mutex, its owner and the threads that wait for it; of all threads of a
 * process. Runs on: the main thread.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/actions_lock.h"
#include "ui/cli/stacks.h"
#include "ui/dialog.h"
#include "ui/view/navigate.h"

/* Values of entries that are no thread. */
#define READ_STOP    UINT64_MAX
#define READ_NO_STOP (UINT64_MAX - 1)

static struct dialog_entry *add(struct dialog *d, pid_t tid, bool heading)
{
	struct dialog_entry *entry = dialog_add(d);

	if (entry) {
		entry->value = (uint64_t)tid;
		entry->heading = heading;
	}
	return entry;
}

/* Add the frames of a thread: functions of the kernel, then of the program. */
static void add_frames(struct dialog *d, const struct task_stacks *t, const struct task_stack *s)
{
	const struct profile_stack *at =
		s->stack < t->profile->nr_stacks ? &t->profile->stacks[s->stack] : NULL;

	for (const char *line = s->kernel; *line;) {
		size_t size = strcspn(line, "\n");
		struct dialog_entry *entry = add(d, s->tid, false);

		if (!entry)
			return;
		snprintf(entry->name, sizeof(entry->name), "  %.*s", (int)MIN(size, 200u), line);
		snprintf(entry->detail, sizeof(entry->detail), "[kernel]");
		line += size + (line[size] == '\n');
	}
	for (uint32_t i = 0; at && i < at->nr; i++) {
		const struct profile_function *f =
			&t->profile->functions[t->profile->frames[at->first + i]];
		struct dialog_entry *entry = add(d, s->tid, false);

		if (!entry)
			return;
		snprintf(entry->name, sizeof(entry->name), "  %.240s", f->name.str);
		snprintf(entry->detail, sizeof(entry->detail), "%.100s%s", f->module.str,
			 f->inlined ? " (inlined)" : "");
	}
	if (at && s->result == TASK_STACKS_CUT) {
		struct dialog_entry *entry = add(d, s->tid, false);

		if (entry)
			snprintf(entry->name, sizeof(entry->name), "  [callers unknown]");
	}
}

/* Add a thread with its stack; @role: "held by". */
static void add_thread(struct dialog *d, const struct task_stacks *t, const struct task_stack *s,
		       const char *role)
{
	struct dialog_entry *entry = add(d, s->tid, false);
	char how[200];

	if (!entry)
		return;
	entry->first = *role == 'h';
	snprintf(entry->name, sizeof(entry->name), "%s%.64s %d", role, s->comm.str, (int)s->tid);
	snprintf(entry->detail, sizeof(entry->detail), "%.127s",
		 stacks_describe(s, how, sizeof(how)).str);
	add_frames(d, t, s);
}

static const struct task_stack *find_thread(const struct task_stacks *t, pid_t tid)
{
	for (uint32_t i = 0; t && i < t->nr; i++)
		if (t->list[i].tid == tid)
			return &t->list[i];
	return NULL;
}

static bool is_any_cut(const struct task_stacks *t)
{
	for (uint32_t i = 0; t && i < t->nr; i++)
		if (t->list[i].result >= TASK_STACKS_CUT)
			return true;
	return false;
}

/* Offer to stop threads for the rest of their stacks. */
static void offer_stop(struct dialog *d, const struct asked_stacks *a)
{
	struct dialog_entry *entry;

	if (a->stop || (a->stacks && !is_any_cut(a->stacks)) || !(entry = dialog_add(d)))
		return;
	entry->value = READ_STOP;
	snprintf(entry->name, sizeof(entry->name), a->stacks ? "whole stacks" : "read the stacks");
	snprintf(entry->detail, sizeof(entry->detail), "may stop threads, for 4 ms at most each");
	if (a->stacks || !(entry = dialog_add(d)))
		return;
	entry->value = READ_NO_STOP;
	snprintf(entry->name, sizeof(entry->name), "read without a stop");
	snprintf(entry->detail, sizeof(entry->detail), "stacks may end early");
}

/* Add one mutex, its owner and the threads that wait for it. */
static void add_lock(struct dialog *d, const struct asked_stacks *a)
{
	const struct lock *lock = &a->lock;
	const struct task_stack *owner = find_thread(a->stacks, lock->owner);
	struct dialog_entry *entry = add(d, 0, true);

	if (!entry)
		return;
	snprintf(entry->name, sizeof(entry->name), "mutex %s",
		 lock->symbol[0] ? lock->symbol : lock->where);
	snprintf(entry->detail, sizeof(entry->detail), "%s0x%" PRIx64 " of pid %d; %u %s%s%.40s",
		 lock->symbol[0] ? "at " : "", lock->address, (int)lock->pid, lock->nr_waiters,
		 lock->nr_waiters == 1 ? "waiter" : "waiters", a->more[0] ? "; " : "", a->more);
	offer_stop(d, a);
	if (owner)
		add_thread(d, a->stacks, owner, "held by ");
	else if ((entry = add(d, 0, true)))
		snprintf(entry->name, sizeof(entry->name), "%s",
			 lock->owner ? "its owner has ended"
				     : "owner not known: the mutex is not one of glibc");
	for (uint32_t i = 0; i < MIN(lock->nr_waiters, (uint32_t)LOCKS_WAITERS); i++) {
		const struct task_stack *s = find_thread(a->stacks, lock->waiters[i]);

		if (s)
			add_thread(d, a->stacks, s, "waits: ");
	}
}

static void fill_lock(struct ui_state *st)
{
	const struct asked_stacks *a = st->dialog.data;

	if (!a)
		return;
	add_lock(&st->dialog, a);
}

static void fill_stacks(struct ui_state *st)
{
	const struct asked_stacks *a = st->dialog.data;

	if (!a)
		return;
	offer_stop(&st->dialog, a);
	for (uint32_t i = 0; a->stacks && i < a->stacks->nr; i++)
		add_thread(&st->dialog, a->stacks, &a->stacks->list[i], "");
}

/* Drill into a thread, if it is in the shown profile. */
static bool open_thread(struct ui_state *st, pid_t pid, pid_t tid)
{
	const struct profile *p = st->shown;

	for (uint32_t i = 0; p && i < p->nr_tasks; i++)
		if (p->tasks[i].tid == tid && p->processes[p->tasks[i].process].pid == pid) {
			const struct row row = { .task = i, .nr = 1 };

			dialog_close(st);
			navigate_into_thread(st, &row);
			return true;
		}
	ui_state_say(st, false, "thread %d has no samples in the shown time", (int)tid);
	return false;
}

static bool use(struct ui_state *st, const struct dialog_entry *entry, bool add)
{
	const struct asked_stacks *a = st->dialog.data;
	uint64_t value = entry ? entry->value : 0;
	struct asked_stacks again;

	if (!a || !value)
		return false;
	if (value != READ_STOP && value != READ_NO_STOP) {
		open_thread(st, a->pid, (pid_t)value);
		return false;
	}
	again = *a;
	/* Frees @a; the answer opens a box again. */
	dialog_close(st);
	actions_stacks_again(st, &again, value == READ_STOP);
	return false;
}

const struct dialog_ops dialog_lock = {
	.title = "$ The mutex that most threads wait for",
	.hint = "type to filter the functions",
	.foot = "Enter open the thread   PgDn more   Esc close",
	.fill = fill_lock,
	.use = use,
};

const struct dialog_ops dialog_stacks = {
	.title = "^W Stacks of the threads now",
	.hint = "type to filter the functions",
	.foot = "Enter open the thread   PgDn more   Esc close",
	.fill = fill_stacks,
	.use = use,
};
