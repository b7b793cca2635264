// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Filters for the scope that is shown: event, process, thread, group of
 * threads and cgroup. The main thread; cheap: they depend on tasks, not on
 * stacks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/fold/fold.h"

bool folds_chooses(const struct ui_state *st, const struct profile_process *process)
{
	const struct match *m = &st->scope.cgroup;
	struct safe_text none = TEXT("");

	if (st->scope.by_user && process->uid != st->scope.uid)
		return false;
	return !match_active(m) ||
	       (match_finds(m, process->cgroup.str ? process->cgroup : none) ||
		match_finds(m, process->container.str ? process->container : none)) != m->negate;
}

/* Return whether the process is of the group drilled into, or none is. */
static bool in_group(const struct ui_state *st, const struct profile_process *process)
{
	char buf[TEXT_MAX];

	return !st->scope.group[0] ||
	       !strcmp(folds_group_name(st->scope.group_by, process, buf).str, st->scope.group);
}

/* Return by task whether it counts; NULL: all do, or there is no memory. */
static const uint8_t *tasks_that_count(const struct ui_state *st, const struct profile *p,
				       struct folds_of *of, bool group)
{
	uint8_t **mask = &of->tasks[group];
	char buf[FORMAT_MAX * 2];

	if (*mask)
		return *mask;
	*mask = malloc(p->nr_tasks + 1ULL);
	for (uint32_t i = 0; i < p->nr_tasks && *mask; i++) {
		const struct profile_task *task = &p->tasks[i];

		(*mask)[i] =
			task->process < p->nr_processes &&
			folds_chooses(st, &p->processes[task->process]) &&
			(!group ||
			 (in_group(st, &p->processes[task->process]) &&
			  (!st->scope.thread_group[0] ||
			   !strcmp(format_folded(buf, task->comm).str, st->scope.thread_group))));
	}
	return *mask;
}

uint32_t folds_event(const struct ui_state *st, const struct profile *p)
{
	return ui_state_latency(st, p) ? PROFILE_LATENCY : ui_state_event(st, p);
}

void folds_filter_all_of(const struct ui_state *st, const struct profile *p, struct folds_of *of,
			 struct fold_filter *f)
{
	const struct folds_groups *groups;

	*f = (struct fold_filter){ .process = UINT32_MAX,
				   .task = UINT32_MAX,
				   .hide_kernel = st->scope.hide_kernel,
				   .hide_user = st->scope.hide_user };
	if (!p)
		return;
	f->event = folds_event(st, p);
	f->also = ui_state_also(st, p);
	f->hide_idle = ui_state_hides_idle(st, p);
	if (scope_chooses(&st->scope) && of)
		f->tasks = tasks_that_count(st, p, of, false);
	groups = of ? folds_groups(st, p, of) : NULL;
	f->groups = groups ? groups->leaders : NULL;
}

bool folds_filter_of(const struct ui_state *st, const struct profile *p, struct folds_of *of,
		     struct fold_filter *f)
{
	const struct scope *scope = &st->scope;

	folds_filter_all_of(st, p, of, f);
	if (!p)
		return false;
	if (scope->drilled)
		f->process = ui_state_process(st, p);
	f->task = ui_state_thread(st, p);
	if (scope->drilled && (scope->thread_group[0] || scope->group[0]) && of)
		f->tasks = tasks_that_count(st, p, of, true);
	/* The process has no samples in this window: not the same as all processes. */
	return !(scope->drilled && !scope->group[0] &&
		 (f->process == UINT32_MAX || (scope->in_thread && f->task == UINT32_MAX)));
}

void folds_filter_all(const struct ui_state *st, struct fold_filter *f)
{
	folds_filter_all_of(st, st->shown, st->folds ? folds_of_shown(st) : NULL, f);
}

bool folds_filter(const struct ui_state *st, struct fold_filter *f)
{
	return folds_filter_of(st, st->shown, st->folds ? folds_of_shown(st) : NULL, f);
}

bool folds_filter_threads(const struct ui_state *st, struct fold_filter *f)
{
	/* A group is of processes: all of their threads. */
	if (st->scope.drilled && st->scope.group[0])
		return folds_filter(st, f);
	folds_filter_all(st, f);
	if (st->scope.drilled)
		f->process = ui_state_process(st, st->shown);
	return !st->scope.drilled || f->process != UINT32_MAX;
}

bool folds_same_filter(const struct fold_filter *a, const struct fold_filter *b)
{
	return a->event == b->event && a->also == b->also && a->process == b->process &&
	       a->task == b->task && a->tasks == b->tasks && a->groups == b->groups &&
	       a->hide_kernel == b->hide_kernel && a->hide_user == b->hide_user &&
	       a->hide_idle == b->hide_idle;
}

static uint64_t hash_text(uint64_t h, const char *text)
{
	for (; *text; text++)
		h = hash_u64(h + (unsigned char)*text);
	return h;
}

uint64_t folds_key(const struct ui_state *st, const struct profile *p)
{
	uint64_t key = hash_u64(folds_event(st, p) + 1ull + ((uint64_t)ui_state_also(st, p) << 32));

	if (ui_state_hides_idle(st, p))
		key = hash_u64(key + ui_state_hides_idle(st, p));
	if (st->scope.drilled)
		key = hash_u64(key + (st->scope.group[0] ? 0 : st->scope.process + 1ull));
	if (st->scope.drilled && st->scope.in_thread)
		key = hash_u64(key ^ (st->scope.thread + 1ull));
	if (st->scope.drilled)
		key = hash_text(hash_text(key, st->scope.group), st->scope.thread_group);
	if (st->scope.by_user)
		key = hash_u64(key ^ (1ull << 40 | st->scope.uid));
	return hash_text(key, st->scope.cgroup.text);
}

uint64_t folds_trend_key(const struct ui_state *st, const struct profile *p)
{
	uint64_t key = hash_u64(folds_key(st, p) + (uint64_t)p->window + 1);
	double hz = p->nr_events ? p->events[ui_state_event(st, p)].want_hz : 0;

	/* The governor changes the rate as well, which changes no share. */
	if (p->rate_factor > 0)
		hz /= p->rate_factor;
	return hash_text(hash_u64(key ^ (uint64_t)(hz + 0.5)), p->target);
}

uint64_t folds_group(const struct profile *p, const struct profile_task *task)
{
	char buf[FORMAT_MAX * 2];
	uint64_t process = task->process < p->nr_processes ? p->processes[task->process].id : 0;

	return hash_text(hash_u64(process + 1), format_folded(buf, task->comm).str);
}

int folds_by_group(const void *pa, const void *pb)
{
	const struct folds_member *a = pa, *b = pb;

	if (a->group != b->group)
		return a->group > b->group ? 1 : -1;
	return COMPARE(a->task, b->task);
}

const uint32_t *folds_leaders(const struct ui_state *st, const struct profile *p,
			      struct folds_of *of)
{
	uint32_t **leaders = &of->leaders;
	struct folds_member *members;

	if (!st->fold_threads || *leaders)
		return st->fold_threads ? *leaders : NULL;
	members = calloc(p->nr_tasks + 1ULL, sizeof(*members));
	*leaders = calloc(p->nr_tasks + 1ULL, sizeof(**leaders));
	if (!members || !*leaders)
		goto out;
	for (uint32_t i = 0; i < p->nr_tasks; i++)
		members[i] = (struct folds_member){ folds_group(p, &p->tasks[i]), i };
	qsort(members, p->nr_tasks, sizeof(*members), folds_by_group);
	for (uint32_t i = 0, first = 0; i < p->nr_tasks; i++) {
		if (members[i].group != members[first].group)
			first = i;
		(*leaders)[members[i].task] = members[first].task;
	}
out:
	if (!members) {
		free(*leaders);
		*leaders = NULL;
	}
	free(members);
	return *leaders;
}

void folds_forget_masks(struct folds_of *of)
{
	for (size_t i = 0; i < ARRAY_SIZE(of->tasks); i++) {
		free(of->tasks[i]);
		of->tasks[i] = NULL;
	}
	free(of->leaders);
	of->leaders = NULL;
	folds_forget_groups(&of->groups);
}
