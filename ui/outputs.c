// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Exports, mutexes and stacks read on a worker, results of files.
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
#include <time.h>
#include <unistd.h>

#include "sampler/count/count.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "sampler/waits/waits.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "symbols/name/name.h"
#include "ui/cli/cli.h"
#include "ui/export/export.h"
#include "ui/fold/fold.h"
#include "ui/state/state.h"
#include "ui/text/text.h"
#include "ui/view/view.h"

static const char *const windows[PROFILE_NR_WINDOWS] = {
	[PROFILE_WINDOW] = "last seconds",
	[PROFILE_DECAY] = "decaying",
	[PROFILE_TOTAL] = "since reset",
};

/* Describe the process and thread drilled into. */
static void set_title(const struct ui_state *st, struct snapshot_scope *scope)
{
	const struct scope *shown = &st->scope;

	if (!shown->drilled)
		return;
	text_format(scope->title, sizeof(scope->title), "%s%s%s", shown->process_name,
		    shown->thread_group[0] ? " threads "
		    : shown->in_thread	   ? " one thread"
					   : "",
		    shown->thread_group);
}

/* Add a limit to the description of the scope: "user www-data, cgroup web". */
static void add_only(struct snapshot_scope *scope, const char *what, const char *value)
{
	char before[sizeof(scope->only)];

	memcpy(before, scope->only, sizeof(before));
	text_format(scope->only, sizeof(scope->only), "%s%s%s %s", before, *before ? ", " : "",
		    what, value);
}

/* Describe the user and cgroup that are shown; set the module if the view shows one alone. */
static void set_only(const struct ui_state *st, struct snapshot_scope *scope)
{
	const struct profile *p = st->shown;
	char name[64];

	if (st->scope.by_user)
		add_only(scope, "user",
			 users_name(st->config->users, st->scope.uid, name, sizeof(name)).str);
	if (match_active(&st->scope.cgroup))
		add_only(scope, "cgroup", st->scope.cgroup.text);
	if (!st->only.on || !view_shown(st)->by_module)
		return;
	scope->module = st->only.id;
	for (uint32_t i = 0; i < p->nr_modules; i++)
		if (p->modules[i].id == st->only.id)
			add_only(scope, "module", p->modules[i].name.str);
}

/* Compare with the baseline, if the screen does. */
static void set_baseline(const struct ui_state *st, struct snapshot_scope *scope)
{
	const char *path = st->baseline_path, *slash = path ? strrchr(path, '/') : NULL;

	if (!baseline_is_on(st))
		return;
	scope->baseline = st->baseline;
	ui_state_clean(scope->against, sizeof(scope->against),
		       !path		   ? "an earlier moment"
		       : slash && slash[1] ? slash + 1
					   : path);
}

/*
 * Get the shown samples: event, process, thread, filter. The mask of tasks is borrowed. False: the
 * process or thread drilled into has none.
 */
static bool outputs_export_scope(const struct ui_state *st, struct snapshot_scope *scope)
{
	const struct match *filter = &st->lists[st->view].filter;
	bool any;

	export_scope_all(scope, ui_state_event(st, st->shown));
	any = folds_filter(st, &scope->filter);
	/* Files have the time itself. */
	if (scope->filter.event == PROFILE_LATENCY)
		scope->filter.event = ui_state_event(st, st->shown);
	/* In the other views the filter is not one of functions. */
	if (match_active(filter) && (st->view == VIEW_FUNCTIONS || view_shown(st)->stacks))
		memcpy(scope->find, filter->text, sizeof(scope->find));
	snprintf(scope->host, sizeof(scope->host), "%s", st->host);
	snprintf(scope->range, sizeof(scope->range), "%s%s",
		 st->shown->past_end_ns ? "a range of the past" : windows[st->shown->window],
		 st->frozen ? ", frozen" : "");
	set_title(st, scope);
	set_only(st, scope);
	set_baseline(st, scope);
	return any;
}

void outputs_export(struct ui_state *st, const char *path, enum export_format format, bool replace)
{
	struct snapshot_scope scope;
	struct err e;
	int code;

	if (format == EXPORT_NR)
		format = export_format_of(path);
	if (format == EXPORT_NR) {
		ui_state_say(st, true, "%s: the ending names no format (F9 lists them)", path);
		return;
	}
	if (!st->shown) {
		ui_state_say(st, true, "nothing to export yet");
		return;
	}
	if (!outputs_export_scope(st, &scope)) {
		ui_state_say(st, true, "nothing to export: no samples of %s in this window",
			     scope.title);
		return;
	}
	if (replace)
		st->written.path[0] = '\0';
	else
		snprintf(st->written.path, sizeof(st->written.path), "%s", path);
	st->written.screen = false;
	st->written.format = (int)format;
	code = file_worker_start(st->files, export_work(st->shown, &scope, format, path, replace),
				 time_now_ns(), &e);
	if (code)
		outputs_file_done(st, code, &e);
}

/*
 * Tasks are chosen on the main thread; their mutexes and stacks are read on a worker, as the memory
 * of a process may not respond.
 */

#define TASKS_MAX 256
#define LOCKS_MAX 16

struct lock_work {
	struct file_work work; /* first: the two are cast */
	struct ui_state *st;   /* of the main thread */
	struct asked_stacks *asked;
	uint32_t languages;
	struct profile *profile; /* NULL: the stacks of a process */
	struct lock_task tasks[TASKS_MAX];
	const char *holders[TASKS_MAX]; /* sentence about the holder of its lock; NULL: a mutex */
	uint32_t nr;
	pid_t selected; /* of the selected row; 0: none */
};

static bool has_function(const struct profile *p, uint32_t stack, uint32_t function)
{
	const struct profile_stack *s = &p->stacks[stack];

	assert(stack < p->nr_stacks);
	for (uint32_t i = 0; i < s->nr; i++)
		if (p->frames[s->first + i] == function)
			return true;
	return false;
}

/* Return the sentence about the holder of the lock that a stack waits for, by its functions. */
static const char *find_holder(const struct profile *p, uint32_t stack)
{
	const struct profile_stack *s = &p->stacks[stack];
	const char *holder = NULL;

	assert(stack < p->nr_stacks);
	for (uint32_t i = 0; i < s->nr && !holder; i++) {
		const struct profile_function *f = &p->functions[p->frames[s->first + i]];

		holder = f->kind == 'k' ? NULL : wait_hint(f->name.str, f->name.size, false).holder;
	}
	return holder;
}

/* Add a task, once: as it waited last. */
static void add_task(struct lock_work *w, const struct profile_task *task, uint32_t stack)
{
	const struct profile *p = w->profile;
	struct lock_task one = { p->processes[task->process].pid, task->tid };
	uint32_t i = 0;

	while (i < w->nr && w->tasks[i].tid != one.tid)
		i++;
	if (i == TASKS_MAX)
		return;
	w->nr += i == w->nr;
	w->tasks[i] = one;
	w->holders[i] = find_holder(p, stack);
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
		add_task(w, task, c->stack);
	}
}

/* Free the contents of a box. */
static void outputs_stacks_drop(void *asked)
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

/* Return the process whose stacks may show a lock that is no mutex; 0: none is known. */
static pid_t process_of_own_lock(const struct lock_work *w)
{
	uint32_t best = 0;
	pid_t pid = w->selected;

	for (uint32_t i = 0; i < w->nr; i++) {
		uint32_t nr = 0;

		for (uint32_t k = 0; k < w->nr; k++)
			nr += w->holders[k] && w->holders[i] && w->tasks[k].pid == w->tasks[i].pid;
		if (nr > best || !pid) {
			best = nr;
			pid = w->tasks[i].pid;
		}
	}
	return pid;
}

/* Return the sentence about the holder of its lock, by the stack of now or a sampled one. */
static const char *holder_of(const struct lock_work *w, const struct task_stack *s)
{
	const char *holder = s->waits_for;

	for (uint32_t i = 0; !holder && s->result != TASK_STACKS_COMPLETE && i < w->nr; i++)
		holder = w->tasks[i].tid == s->tid ? w->holders[i] : NULL;
	return holder;
}

/* Find threads of one process that wait for a lock that is no mutex. 0, or -ENOENT. */
static int find_own_lock(struct lock_work *w, struct err *e)
{
	struct asked_stacks *a = w->asked;
	uint32_t nr = 0;
	int code;

	a->pid = process_of_own_lock(w);
	a->lock = (struct lock){ .pid = a->pid };
	a->is_lock = false;
	code = a->pid ? read_stacks(w, e) : -ENOENT;
	a->is_lock = true;
	for (uint32_t i = 0; !code && i < a->stacks->nr; i++) {
		const char *holder = holder_of(w, &a->stacks->list[i]);

		nr += holder != NULL;
		if (!holder || (a->holder && a->holder != holder))
			continue;
		a->holder = holder;
		if (a->lock.nr_waiters < LOCKS_WAITERS)
			a->lock.waiters[a->lock.nr_waiters] = a->stacks->list[i].tid;
		a->lock.nr_waiters++;
	}
	if (nr > a->lock.nr_waiters)
		snprintf(a->more, sizeof(a->more), "%u wait for other locks",
			 nr - a->lock.nr_waiters);
	if (a->holder)
		return 0;
	return err_set(e, -ENOENT,
		       "no thread waits for a mutex at this moment (%u looked at); ^W: stacks of "
		       "all",
		       w->nr);
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

static int run_lock(struct file_work *work, struct err *e)
{
	struct lock_work *w = (struct lock_work *)work;

	if (w->profile && !find_lock(w))
		return find_own_lock(w, e);
	return read_stacks(w, e);
}

/* Show the box. */
static int show_lock(struct file_work *work, struct err *e)
{
	struct lock_work *w = (struct lock_work *)work;

	dialog_open(w->st, w->asked->is_lock ? &dialog_lock : &dialog_stacks, w->asked,
		    outputs_stacks_drop);
	w->asked = NULL;
	return 0;
}

static void free_lock(struct file_work *work)
{
	struct lock_work *w = (struct lock_work *)work;

	profile_free(w->profile);
	outputs_stacks_drop(w->asked);
	free(w);
}

/* Make the work for a box; NULL: no memory. */
static struct lock_work *new_work(struct ui_state *st, const char *doing)
{
	struct lock_work *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	*w = (struct lock_work){ .work = { .run = run_lock,
					   .finish = show_lock,
					   .free = free_lock,
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

/* Return the process of the selected row, or the one drilled into; 0: none. */
static pid_t selected_process(const struct ui_state *st)
{
	const struct list *list = &st->lists[st->view];
	const struct row *row = list->cursor < list->nr ? &list->rows[list->cursor] : NULL;
	const struct profile *p = st->shown;
	uint32_t process = ui_state_process(st, p);
	int target;
	char more;

	if (st->view == VIEW_PROCESSES && row && row->task < p->nr_tasks)
		process = p->tasks[row->task].process;
	else if (st->view == VIEW_PROCESSES && row)
		process = row->index;
	/* The only target may sleep, without a row. */
	if (process == UINT32_MAX && sscanf(p->target, "pid %d%c", &target, &more) == 1)
		return target;
	if (process == UINT32_MAX && p->nr_processes == 1)
		process = 0;
	return process < p->nr_processes ? p->processes[process].pid : 0;
}

void outputs_lock(struct ui_state *st)
{
	struct lock_work *w = st->shown ? new_work(st, "reading the mutexes") : NULL;

	if (!w)
		return;
	w->asked->is_lock = true;
	w->profile = profile_keep(st->shown);
	choose_tasks(st, w, false);
	if (!w->nr)
		choose_tasks(st, w, true);
	w->selected = w->nr ? 0 : selected_process(st);
	if (st->shown->stack_waits && (w->nr || w->selected) && !st->config->replayed) {
		start(st, w);
		return;
	}
	ui_state_say(st, true, "%s",
		     st->config->replayed     ? "not available when replaying a recording"
		     : st->shown->stack_waits ? "no thread waited for a lock"
					      : "waits are not measured (^ measures them)");
	free_lock(&w->work);
}

void outputs_stacks_now(struct ui_state *st)
{
	pid_t pid = st->shown ? selected_process(st) : 0;

	if (pid > 0 || st->config->replayed)
		outputs_stacks_of(st, pid);
	else
		ui_state_say(st, true, "no process is selected: 2, then a row; or :stacks PID");
}

void outputs_stacks_of(struct ui_state *st, pid_t pid)
{
	struct asked_stacks *a;

	if (st->config->replayed) {
		ui_state_say(st, true, "not available when replaying a recording");
		return;
	}
	if (kill(pid, 0) && errno == ESRCH) {
		ui_state_say(st, true, "there is no process %d", pid);
		return;
	}
	a = calloc(1, sizeof(*a));
	if (!a)
		return;
	a->pid = pid;
	dialog_open(st, &dialog_stacks, a, outputs_stacks_drop);
}

void outputs_stacks_again(struct ui_state *st, const struct asked_stacks *a, bool stop)
{
	struct lock_work *w = new_work(st, "reading the stacks");

	if (!w)
		return;
	*w->asked = *a;
	w->asked->stacks = NULL;
	w->asked->stop = stop;
	start(st, w);
}

/* ---- results of files ---- */

void outputs_file_done(struct ui_state *st, int code, const struct err *e)
{
	bool busy = st->prompt.kind != PROMPT_NONE || st->dialog.ops;

	if (code == -EEXIST && st->written.path[0] && !busy)
		prompt_open(st, PROMPT_REPLACE);
	else if (code < 0)
		ui_state_say_error(st, e);
	else if (*e->text)
		ui_state_say(st, false, "%s", e->text);
}

bool outputs_file_result(struct ui_state *st, struct file_worker *f)
{
	struct err e;
	int code;

	if (!file_worker_take(f, &code, &e))
		return false;
	outputs_file_done(st, code, &e);
	return true;
}
