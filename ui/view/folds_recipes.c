// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Each kind of fold: its input, how it is made and freed. The main thread; make() on any thread.
 */
#include "ui/fold/fold.h"

#include <stdlib.h>

/* Lighter nodes are not shown; and a tree of everything takes much memory. */
#define LEAST_SHARE 0.00002

static bool by_scope(const struct folds_subject *s, struct folds_input *in, unsigned int n)
{
	return folds_filter_of(s->st, s->p, s->of, &in->config.filter);
}

static bool by_all_code(const struct folds_subject *s, struct folds_input *in, unsigned int n)
{
	bool any = by_scope(s, in, n);

	in->config.filter.hide_kernel = in->config.filter.hide_user = false;
	return any;
}

static bool by_lines(const struct folds_subject *s, struct folds_input *in, unsigned int n)
{
	return s->p->frame_lines && by_scope(s, in, n);
}

static bool by_system(const struct folds_subject *s, struct folds_input *in, unsigned int n)
{
	folds_filter_all_of(s->st, s->p, s->of, &in->config.filter);
	return true;
}

static bool by_event(const struct folds_subject *s, struct folds_input *in, unsigned int n)
{
	in->config.filter.event = folds_event(s->st, s->p);
	in->config.filter.also = ui_state_also(s->st, s->p);
	in->config.filter.hide_idle = ui_state_hides_idle(s->st, s->p);
	return true;
}

/* The @n-th event beside the shown one; UINT32_MAX: none. Time on a CPU and waits are no events of
 * the same functions: neither says a thing beside the other. */
static uint32_t other_event(const struct ui_state *st, const struct profile *p, uint32_t n)
{
	uint32_t shown = ui_state_event(st, p);
	bool waits = ui_state_waits(st, p);

	for (uint32_t i = 0; i < p->nr_events; i++) {
		const struct event *e = &p->events[i].event;

		if (i != shown && !e->wait && !(waits && e->clock) && !n--)
			return i;
	}
	return UINT32_MAX;
}

uint32_t folds_other(const struct ui_state *st, uint32_t n)
{
	return st->shown && n < ROW_EVENTS ? other_event(st, st->shown, n) : UINT32_MAX;
}

static bool by_other_event(const struct folds_subject *s, struct folds_input *in, unsigned int n)
{
	bool any = by_scope(s, in, n);

	in->config.filter.event = other_event(s->st, s->p, n);
	return any && in->config.filter.event != UINT32_MAX;
}

static bool by_ratios(const struct folds_subject *s, struct folds_input *in, unsigned int n)
{
	struct ratio_use uses[RATIOS_MAX];

	return ratios_find(s->p->events, s->p->nr_events, uses) && by_scope(s, in, n);
}

static bool by_centre(const struct folds_subject *s, struct folds_input *in, unsigned int n)
{
	const struct folds *f = s->st->folds;

	if (!f->nr_centres || !by_scope(s, in, n))
		return false;
	in->function = folds_function(s->p, f->centres[f->nr_centres - 1]);
	return in->function != FOLD_NONE;
}

static bool by_tree(const struct folds_subject *s, struct folds_input *in, unsigned int n)
{
	const struct ui_state *st = s->st;

	in->config = (struct fold_tree_config){
		.first = st->by_thread	     ? FOLD_TASKS
			 : st->scope.drilled ? FOLD_FUNCTIONS
					     : FOLD_PROCESSES,
		.order = n ? FOLD_BY_ID : FOLD_BY_WEIGHT,
		.bottom_up = !n && st->folds->bottom_up,
		.fold_recursion = st->folds->fold_recursion,
		.limit = MAX(st->percent_limit / 100, LEAST_SHARE),
	};
	if (st->by_thread) {
		in->config.leaders = folds_leaders(st, s->p, s->of);
	} else if (!st->scope.drilled && folds_groups(st, s->p, s->of)) {
		in->config.leaders = s->of->groups.leaders;
		in->config.ids = s->of->groups.ids;
	}
	return by_scope(s, in, n);
}

/* Compare functions as the rows are ordered at first. */
static int by_self_weight(const void *pa, const void *pb, void *arg)
{
	const struct fold_row *a = pa, *b = pb;
	const struct profile *p = arg;
	uint64_t x = p->functions[a->function].id, y = p->functions[b->function].id;

	if (a->self_weight != b->self_weight)
		return a->self_weight > b->self_weight ? -1 : 1;
	if (a->total_weight != b->total_weight)
		return a->total_weight > b->total_weight ? -1 : 1;
	return (x > y) - (x < y);
}

/* Functions are sorted here, on the folding thread: the main thread then finds them in order. */
static bool make_functions(const struct profile *p, struct folds_entry *e)
{
	struct fold_functions *fold = &e->functions;

	if (fold_functions(p, &e->input.config.filter, fold))
		return false;
	qsort_r(fold->rows, fold->nr_rows, sizeof(*fold->rows), by_self_weight, (void *)p);
	return true;
}

static void free_functions(struct folds_entry *e)
{
	fold_functions_fini(&e->functions);
}

static bool make_lines(const struct profile *p, struct folds_entry *e)
{
	e->lines = malloc((p->nr_functions + 1ULL) * sizeof(*e->lines));
	if (e->lines && !fold_lines(p, &e->input.config.filter, e->lines))
		return true;
	free(e->lines);
	return false;
}

static void free_lines(struct folds_entry *e)
{
	free(e->lines);
}

static void free_tree(struct folds_entry *e)
{
	fold_tree_fini(&e->tree.fold);
	folds_forget_numbers(&e->tree);
}

static bool make_tree(const struct profile *p, struct folds_entry *e)
{
	e->tree = (struct folds_tree){ .config = e->input.config };
	if (fold_tree(p, &e->tree.config, &e->tree.fold))
		return false;
	if (folds_number(p, &e->tree))
		return true;
	free_tree(e);
	return false;
}

static bool make_callers(const struct profile *p, struct folds_entry *e)
{
	return !fold_callers(p, &e->input.config.filter, e->input.function, &e->callers);
}

static void free_callers(struct folds_entry *e)
{
	fold_callers_fini(&e->callers);
}

static bool make_processes(const struct profile *p, struct folds_entry *e)
{
	return !fold_processes(p, &e->input.config.filter, &e->processes);
}

static void free_processes(struct folds_entry *e)
{
	fold_processes_fini(&e->processes);
}

static bool make_tasks(const struct profile *p, struct folds_entry *e)
{
	e->tasks = malloc((p->nr_tasks + 1ULL) * sizeof(*e->tasks));
	if (e->tasks)
		fold_tasks(p, &e->input.config.filter, e->tasks);
	return e->tasks;
}

static void free_tasks(struct folds_entry *e)
{
	free(e->tasks);
}

static bool make_times(const struct profile *p, struct folds_entry *e)
{
	e->times = malloc((p->nr_tasks + 1ULL) * sizeof(*e->times));
	if (e->times)
		fold_waits(p, e->input.config.filter.hide_idle, e->times);
	return e->times;
}

static void free_times(struct folds_entry *e)
{
	free(e->times);
}

static bool make_shares(const struct profile *p, struct folds_entry *e)
{
	struct fold_functions fold;

	if (fold_functions(p, &e->input.config.filter, &fold))
		return false;
	e->shares = calloc(p->nr_functions + 1ULL, sizeof(*e->shares));
	for (uint32_t i = 0; e->shares && fold.weight > 0 && i < fold.nr_rows; i++)
		e->shares[fold.rows[i].function] = fold.rows[i].self_weight / fold.weight;
	fold_functions_fini(&fold);
	return e->shares;
}

static void free_shares(struct folds_entry *e)
{
	free(e->shares);
}

static bool make_ratios(const struct profile *p, struct folds_entry *e)
{
	struct ratio_use uses[RATIOS_MAX];
	uint32_t nr = ratios_find(p->events, p->nr_events, uses);

	e->ratios = calloc((p->nr_functions + 1ULL) * RATIOS_MAX, sizeof(*e->ratios));
	if (e->ratios)
		ratios_fold(p, &e->input.config.filter, uses, nr, e->ratios);
	return e->ratios;
}

static void free_ratios(struct folds_entry *e)
{
	free(e->ratios);
}

const struct folds_recipe folds_recipes[FOLDS_NR] = {
	[FOLDS_SEEN] = { by_scope, 0, make_functions, free_functions },
	[FOLDS_ALL_CODE] = { by_all_code, 0, make_functions, free_functions },
	[FOLDS_LINES] = { by_lines, 0, make_lines, free_lines },
	[FOLDS_TREE] = { by_tree, 0, make_tree, free_tree },
	[FOLDS_FLAME] = { by_tree, 1, make_tree, free_tree },
	[FOLDS_CALLERS] = { by_centre, 0, make_callers, free_callers },
	[FOLDS_PROCESSES] = { by_system, 0, make_processes, free_processes },
	[FOLDS_TASKS] = { by_event, 0, make_tasks, free_tasks },
	[FOLDS_TIMES] = { by_event, 0, make_times, free_times },
	[FOLDS_RATIOS] = { by_ratios, 0, make_ratios, free_ratios },
	[FOLDS_EVENTS] = { by_other_event, 0, make_shares, free_shares },
	[FOLDS_EVENTS + 1] = { by_other_event, 1, make_shares, free_shares },
	[FOLDS_EVENTS + 2] = { by_other_event, 2, make_shares, free_shares },
};
_Static_assert(ROW_EVENTS == 3, "one kind for each");
_Static_assert(FOLDS_NR <= 32, "one bit for each");
