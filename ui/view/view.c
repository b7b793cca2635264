// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The views by number, navigation between them, the lines below the rows, arrows of jumps.
 *
 * Runs on: the main thread.
 */
#include "ui/view/internal.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "symbols/code/code.h"
#include "ui/cli/cli.h"
#include "ui/draw/draw.h"
#include "ui/fold/fold.h"
#include "ui/key/key.h"
#include "ui/state/state.h"
#include "ui/text/text.h"

static const struct view *const views[VIEW_NR] = {
	[VIEW_FUNCTIONS] = &view_functions, [VIEW_PROCESSES] = &view_processes,
	[VIEW_TREE] = &view_tree,	    [VIEW_FLAME] = &view_flame,
	[VIEW_CALLERS] = &view_callers,	    [VIEW_CPUS] = &view_cpus,
	[VIEW_MODULES] = &view_modules,	    [VIEW_MESSAGES] = &view_messages,
	[VIEW_BRANCHES] = &view_branches,   [VIEW_MEMORY] = &view_memory,
	[VIEW_ANNOTATE] = &view_annotate,   [VIEW_HELP] = &view_help,
};

const struct view *view_of(enum view_id id)
{
	assert((unsigned int)id < VIEW_NR && views[id]);
	return views[id];
}

const struct view *view_shown(const struct ui_state *st)
{
	return view_of(st->view);
}

enum view_scope view_scope(const struct ui_state *st)
{
	if (!st->scope.drilled)
		return VIEW_ALL;
	if (st->view == VIEW_PROCESSES && st->by_thread)
		return VIEW_ALL_THREADS;
	return view_shown(st)->scoped ? VIEW_DRILLED : VIEW_ALL;
}

bool view_is_whole(const struct ui_state *st)
{
	/* The others show all samples, of any user. */
	bool chosen = view_shown(st)->scoped || st->view == VIEW_PROCESSES;

	return view_scope(st) == VIEW_ALL && !(chosen && scope_chooses(&st->scope));
}

bool view_filter(const struct ui_state *st, struct fold_filter *f)
{
	switch (view_scope(st)) {
	case VIEW_DRILLED:
		return folds_filter(st, f);
	case VIEW_ALL_THREADS:
		return folds_filter_threads(st, f);
	default:
		folds_filter_all(st, f);
		return st->shown;
	}
}

enum key_context view_context(const struct ui_state *st)
{
	return st->dialog.ops ? CTX_PICKER : st->prompt.kind ? CTX_PROMPT : view_shown(st)->context;
}

const struct row *view_row(const struct ui_state *st)
{
	return list_current(&st->lists[st->view]);
}

uint32_t view_function(const struct ui_state *st)
{
	const struct view *v = view_shown(st);
	const struct row *row = view_row(st);

	return st->shown && v->function && row ? v->function(st, row) : UINT32_MAX;
}

uint32_t view_module(const struct ui_state *st)
{
	const struct view *v = view_shown(st);
	const struct row *row = view_row(st);
	uint32_t module = st->shown && v->module && row ? v->module(st, row) : UINT32_MAX;

	return st->shown && module < st->shown->nr_modules ? module : UINT32_MAX;
}

const char *view_row_name(const struct ui_state *st, char buf[static TEXT_MAX])
{
	const struct view *v = view_shown(st);
	const struct row *row = view_row(st);
	uint32_t function = view_function(st);

	if (row && v->copied)
		return v->copied(st, row, buf);
	return function == UINT32_MAX ? "" : st->shown->functions[function].name.str;
}

void view_draw_percent(struct canvas *c, struct view_field at, double share)
{
	char buf[FORMAT_MAX];

	canvas_right(c, at.row, at.col, at.cols, format_percent(buf, share),
		     (struct style){ share >= 0.005 ? ROLE_NORMAL : ROLE_DIM, 0 });
}

void view_draw_bar(const struct ui_state *st, struct canvas *c, struct view_field at, double share,
		   enum theme_role role)
{
	unsigned int eighths = (unsigned int)(MIN(MAX(share, 0), 1) * at.cols * 8 + 0.5);

	for (unsigned int i = 0; i < at.cols && eighths; i++) {
		unsigned int part = MIN(eighths, 8);

		canvas_text(c, at.row, at.col + i, 1, st->glyphs->bar[part],
			    (struct style){ role, 0 });
		eighths -= part;
	}
}

/*
 * From view to view, into processes and threads and out again. Runs on: the main thread.
 */

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
	st->scope.group_by = st->set.grouping;
	snprintf(st->scope.group, sizeof(st->scope.group), "%s",
		 folds_group_name(st->set.grouping, &st->shown->processes[process], buf).str);
	ui_state_clean(st->scope.process_name, sizeof(st->scope.process_name), st->scope.group);
	folds_forget(st->folds);
	folds_forget_baseline(st->folds);
	table_rebuild(st, st->view);
}

void navigate_by_group(struct ui_state *st, enum grouping by)
{
	process_rows_keep_selected(st);
	st->set.grouping = by;
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
	is_group = st->set.fold_threads && row->nr > 1;
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

/*
 * Lines below the rows of a view. Runs on: the main thread.
 */

#define LABEL_COLS 10u

static void draw(struct foot *f, struct safe_text label, struct safe_text value)
{
	unsigned int at = f->row + f->used;

	if (!f->c || f->used >= f->rows)
		return;
	canvas_text(f->c, at, 1, LABEL_COLS, label, (struct style){ ROLE_DIM, 0 });
	if (f->cols > LABEL_COLS + 2)
		canvas_elide(f->c, at, 1 + LABEL_COLS, f->cols - LABEL_COLS - 2, value,
			     (struct style){ ROLE_NORMAL, 0 });
}

void foot_line(struct foot *f, struct safe_text label, struct safe_text value)
{
	draw(f, label, value);
	f->used++;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

size_t foot_line_bytes(const char *text, unsigned int cols)
{
	size_t size = strlen(text), cut = MIN(size, (size_t)cols);

	if (cut == size)
		return size;
	for (size_t i = cut; i > cut / 2; i--)
		if (text[i] == ' ' && text[i + 1] == ' ')
			return i;
	for (size_t i = cut; i > cut / 2; i--)
		if (text[i] == ' ' && !(is_digit(text[i - 1]) && is_digit(text[i + 1])))
			return i;
	/* Not within a code point. */
	while (cut > 1 && ((unsigned char)text[cut] & 0xc0) == 0x80)
		cut--;
	return MAX(cut, (size_t)1);
}

void foot_text(struct foot *f, struct safe_text label, const char *text)
{
	unsigned int cols = f->cols > LABEL_COLS + 12 ? f->cols - LABEL_COLS - 2 : 10;
	char buf[512];

	do {
		size_t n = foot_line_bytes(text, cols);

		foot_line(f, label, text_sanitise(buf, sizeof(buf), text, n));
		label = TEXT("");
		text += n;
		text += strspn(text, " ");
	} while (*text);
}

/*
 * Layout of the arrows of jumps. Runs on: the main thread.
 *
 * Short jumps take the lanes next to the instructions. Jumps longer than any
 * screen, or without a free lane, get a sign instead.
 */

#define LENGTH_MAX 250u

struct jump {
	uint32_t from, to, length;
};

static int by_length(const void *pa, const void *pb)
{
	const struct jump *a = pa, *b = pb;

	if (a->length != b->length)
		return a->length < b->length ? -1 : 1;
	return COMPARE(a->from, b->from);
}

/* Collect all jumps short enough to be seen whole; malloc'ed. */
static struct jump *collect(const struct listing *l, uint32_t *nr)
{
	struct jump *jumps = calloc(l->nr_insns + 1ULL, sizeof(*jumps));

	*nr = 0;
	for (uint32_t i = 0; jumps && i < l->nr_insns; i++) {
		uint32_t to = l->insns[i].target;
		uint32_t length = to > i ? to - i : i - to;

		if (to < l->nr_insns && length && length <= LENGTH_MAX)
			jumps[(*nr)++] = (struct jump){ i, to, length };
	}
	if (jumps)
		qsort(jumps, *nr, sizeof(*jumps), by_length);
	return jumps;
}

static bool is_free(const struct arrows *a, uint32_t low, uint32_t high, unsigned int lane)
{
	for (uint32_t i = low; i <= high; i++)
		if (a->cells[i][lane])
			return false;
	return true;
}

static void lay(struct arrows *a, const struct jump *j)
{
	uint32_t low = MIN(j->from, j->to), high = MAX(j->from, j->to);
	unsigned int lane = 0;

	while (lane < ARROW_LANES && !is_free(a, low, high, lane))
		lane++;
	if (lane == ARROW_LANES)
		return;
	a->lane[j->from] = (uint8_t)lane;
	for (uint32_t i = low; i <= high; i++)
		a->cells[i][lane] |= (i > low ? ARROW_ABOVE : 0) | (i < high ? ARROW_BELOW : 0);
	a->cells[j->from][lane] |= ARROW_FROM;
	a->cells[j->to][lane] |= ARROW_TO;
}

int arrows_update(struct arrows *a, const struct listing *l)
{
	struct jump *jumps;
	uint32_t nr;

	if (a->of == l && a->nr == l->nr_insns)
		return 0;
	arrows_fini(a);
	a->of = l;
	jumps = collect(l, &nr);
	a->cells = calloc(l->nr_insns + 1ULL, sizeof(*a->cells));
	a->lane = malloc(l->nr_insns + 1ULL);
	if (!jumps || !a->cells || !a->lane) {
		free(jumps);
		arrows_fini(a);
		return -ENOMEM;
	}
	a->nr = l->nr_insns;
	memset(a->lane, ARROW_NONE, l->nr_insns + 1ULL);
	for (uint32_t i = 0; i < nr; i++)
		lay(a, &jumps[i]);
	free(jumps);
	return 0;
}

void arrows_fini(struct arrows *a)
{
	free(a->cells);
	free(a->lane);
	*a = (struct arrows){ .nr = 0 };
}
