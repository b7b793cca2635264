// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From view to view, into processes and threads and out again. Runs on: the main thread.
 */
#include "ui/view/navigate.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "ui/fold/fold.h"
#include "ui/view/process_rows.h"
#include "ui/view/table.h"
#include "ui/view/view.h"
#include "ui/view/view_annotate.h"

void navigate_to(struct ui_state *st, enum view_id view)
{
	assert((unsigned int)view < VIEW_NR);
	/* Help is temporary: keep the annotated function. */
	if (view != VIEW_ANNOTATE && view != VIEW_HELP)
		view_annotate_left(st);
	st->view = view;
	st->scroll = 0;
	table_rebuild(st, view);
}

void navigate_to_tool(struct ui_state *st, enum view_id view)
{
	if (st->view != view)
		st->tool_from = navigate_tab(st);
	navigate_to(st, view);
}

static enum view_id opened_from(const struct ui_state *st, enum view_id view)
{
	switch (view) {
	case VIEW_HELP:
		return st->help_from;
	case VIEW_CALLERS:
		return st->folds ? st->folds->callers_from : VIEW_FUNCTIONS;
	case VIEW_ANNOTATE:
		return st->annotate.from;
	default:
		return st->tool_from;
	}
}

enum view_id navigate_tab(const struct ui_state *st)
{
	enum view_id view = st->view;

	/* Bounded: callers of an annotated function of callers ... */
	for (int i = 0; i < VIEW_NR && view >= VIEW_HELP; i++)
		view = opened_from(st, view);
	return view < VIEW_HELP ? view : VIEW_FUNCTIONS;
}

void navigate_into_process(struct ui_state *st, uint32_t id)
{
	uint32_t index;

	st->scope.group[0] = '\0';
	st->scope.process = id;
	index = ui_state_process(st, st->shown);
	if (index == UINT32_MAX)
		return;
	format_process(st->scope.process_name, sizeof(st->scope.process_name),
		       st->shown->processes[index].comm, st->shown->processes[index].pid);
	/* The tab: by then annotate has no function, and callers are perhaps of another one. */
	if (!st->scope.drilled)
		st->drill_from = navigate_tab(st);
	st->scope.drilled = true;
	st->scope.in_thread = false;
	st->scope.thread_group[0] = '\0';
	st->scope.outer.name[0] = '\0';
	folds_forget(st->folds);
	folds_forget_baseline(st->folds);
	st->lists[VIEW_FUNCTIONS].pinned = false;
	/* Keep showing a view of stacks. */
	navigate_to(st, view_shown(st)->stacks ? st->view : VIEW_FUNCTIONS);
}

void navigate_into_group(struct ui_state *st, uint32_t process)
{
	char buf[TEXT_MAX];

	if (!st->shown || process >= st->shown->nr_processes)
		return;
	navigate_into_process(st, st->shown->processes[process].id);
	st->scope.group_by = st->grouping;
	snprintf(st->scope.group, sizeof(st->scope.group), "%s",
		 folds_group_name(st->grouping, &st->shown->processes[process], buf).str);
	ui_state_clean(st->scope.process_name, sizeof(st->scope.process_name), st->scope.group);
	folds_forget(st->folds);
	folds_forget_baseline(st->folds);
	table_rebuild(st, st->view);
}

void navigate_by_group(struct ui_state *st, enum grouping by)
{
	process_rows_keep_selected(st);
	st->grouping = by;
	st->by_thread = false;
	st->process_tree = false;
	folds_forget(st->folds);
	folds_forget_baseline(st->folds);
	/* Keep showing a view of stacks. */
	navigate_to(st, view_shown(st)->stacks ? st->view : VIEW_PROCESSES);
}

void navigate_close_process(struct ui_state *st)
{
	if (!st->scope.drilled)
		return;
	if (st->latest && st->latest->focus)
		sampler_unfocus(st->sampler);
	st->scope.drilled = false;
	st->scope.group[0] = '\0';
	folds_forget(st->folds);
	folds_forget_baseline(st->folds);
	st->lists[VIEW_FUNCTIONS].pinned = false;
	table_rebuild(st, st->view);
}

void navigate_out_of_process(struct ui_state *st)
{
	bool open = st->scope.drilled;

	navigate_close_process(st);
	if (open)
		navigate_to(st, st->drill_from);
}

/* Return the open process or group, to which Esc leads back from a thread in it. */
static struct scope_outer outer_of(const struct scope *s)
{
	struct scope_outer outer = { .process = s->process, .group_by = s->group_by };

	if (!s->drilled)
		return (struct scope_outer){ .process = 0 };
	/* From one thread to another one: the process around them stays the same. */
	if (s->in_thread || s->thread_group[0])
		return s->outer;
	memcpy(outer.group, s->group, sizeof(outer.group));
	memcpy(outer.name, s->process_name, sizeof(outer.name));
	return outer;
}

bool navigate_out_of_thread(struct ui_state *st)
{
	struct scope *s = &st->scope;

	if (!s->drilled || !s->outer.name[0])
		return false;
	s->in_thread = false;
	s->thread_group[0] = '\0';
	s->process = s->outer.process;
	s->group_by = s->outer.group_by;
	memcpy(s->group, s->outer.group, sizeof(s->group));
	memcpy(s->process_name, s->outer.name, sizeof(s->process_name));
	s->outer.name[0] = '\0';
	folds_forget(st->folds);
	folds_forget_baseline(st->folds);
	st->lists[VIEW_FUNCTIONS].pinned = false;
	/* To its threads, if threads are still shown. */
	navigate_to(st, st->by_thread ? VIEW_PROCESSES : st->view);
	return true;
}

void navigate_into_thread(struct ui_state *st, const struct row *row)
{
	struct scope_outer outer = outer_of(&st->scope);
	const struct profile *p = st->shown;
	char name[sizeof(st->scope.process_name)];
	char group[FORMAT_MAX * 2] = "";
	struct profile_task task;
	bool is_group;

	if (!p || row->task >= p->nr_tasks)
		return;
	task = p->tasks[row->task];
	if (task.process >= p->nr_processes)
		return;
	process_rows_comm(st, task.comm, group);
	is_group = st->fold_threads && row->nr > 1;
	navigate_into_process(st, p->processes[task.process].id);
	st->scope.outer = outer;
	st->scope.in_thread = !is_group;
	st->scope.thread = task.id;
	if (is_group)
		snprintf(st->scope.thread_group, sizeof(st->scope.thread_group), "%s", group);
	if (is_group)
		snprintf(name, sizeof(name), "%.60s threads %.50s", st->scope.process_name, group);
	else
		snprintf(name, sizeof(name), "%.80s thread %d", st->scope.process_name,
			 (int)task.tid);
	ui_state_clean(st->scope.process_name, sizeof(st->scope.process_name), name);
	table_rebuild(st, VIEW_FUNCTIONS);
}

static void push_centre(struct folds *s, uint32_t id)
{
	/* Drop the oldest step if the way back is full. */
	if (s->nr_centres == FOLDS_LEVELS) {
		memmove(s->centres, s->centres + 1, (FOLDS_LEVELS - 1) * sizeof(*s->centres));
		s->nr_centres--;
	}
	assert(s->nr_centres < FOLDS_LEVELS);
	s->centres[s->nr_centres++] = id;
}

void navigate_to_callers(struct ui_state *st, uint32_t id)
{
	struct folds *s = st->folds;
	/* The annotated function is dropped: Esc leads to the view that it was opened from. */
	enum view_id from = st->view == VIEW_ANNOTATE ? st->annotate.from : st->view;

	if (!s)
		return;
	if (from != VIEW_CALLERS) {
		s->callers_from = from;
		s->nr_centres = 0;
	}
	if (!s->nr_centres || s->centres[s->nr_centres - 1] != id)
		push_centre(s, id);
	st->lists[VIEW_CALLERS].pinned = true;
	st->lists[VIEW_CALLERS].selected = 0;
	navigate_to(st, VIEW_CALLERS);
}

void navigate_into_module(struct ui_state *st, uint32_t module)
{
	assert(st->shown && module < st->shown->nr_modules);
	st->only.on = true;
	st->only.from = st->view;
	st->only.id = st->shown->modules[module].id;
	ui_state_clean(st->only.name, sizeof(st->only.name), st->shown->modules[module].name.str);
	st->lists[VIEW_FUNCTIONS].pinned = false;
	navigate_to(st, VIEW_FUNCTIONS);
}
