// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Folds of profiles: made, kept, dropped. The main thread, but for
 * folds_make().
 *
 * Invariants: a fold that is made is of the profile that its folds_of belongs
 * to. Outside of folds_plan() and folds_make() nothing is wanted of @next and
 * of the baseline.
 */
#include "ui/view/folds.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"

/* Lighter nodes are not shown; and a tree of everything takes much memory. */
#define LEAST_SHARE 0.00002

/* A profile of more counts is folded by the thread even for a key. */
#define LATE_COUNTS 20000

/* ---- phases ---- */

enum step {
	STEP_PLAN,   /* the next profile is to be folded */
	STEP_ARRIVE, /* a profile is shown, folded ahead or not */
	STEP_LEND,   /* the shown profile is to be folded for a key */
	STEP_RETURN, /* that is done */
	STEP_FORGET, /* other tasks count */
	NR_STEPS,
};

/* 0: impossible. One job at a time: nothing is lent while the next profile is folded. */
static const uint8_t transitions[FOLDS_NR_PHASES][NR_STEPS] = {
	[FOLDS_IDLE] = { [STEP_PLAN] = FOLDS_AHEAD,
			 [STEP_ARRIVE] = FOLDS_IDLE,
			 [STEP_LEND] = FOLDS_LENT,
			 [STEP_FORGET] = FOLDS_IDLE },
	[FOLDS_AHEAD] = { [STEP_ARRIVE] = FOLDS_IDLE, [STEP_FORGET] = FOLDS_AHEAD_STALE },
	[FOLDS_AHEAD_STALE] = { [STEP_ARRIVE] = FOLDS_IDLE, [STEP_FORGET] = FOLDS_AHEAD_STALE },
	[FOLDS_LENT] = { [STEP_RETURN] = FOLDS_IDLE, [STEP_FORGET] = FOLDS_LENT_STALE },
	[FOLDS_LENT_STALE] = { [STEP_RETURN] = FOLDS_IDLE, [STEP_FORGET] = FOLDS_LENT_STALE },
};

/* Take a step. Return the phase that it ends. */
static enum folds_phase take_step(struct folds *s, enum step step)
{
	enum folds_phase before = s->phase;

	assert(transitions[before][step]);
	s->phase = transitions[before][step];
	return before;
}

static bool is_lent(const struct folds *s)
{
	return s->phase == FOLDS_LENT || s->phase == FOLDS_LENT_STALE;
}

/* ---- kinds ---- */

/* The input of folds, and the state of the screen. */
struct subject {
	const struct ui_state *st;
	const struct profile *p;
	struct folds_of *of;
};

static bool by_scope(const struct subject *s, struct folds_input *in, unsigned int n)
{
	return folds_filter_of(s->st, s->p, s->of, &in->config.filter);
}

static bool by_all_code(const struct subject *s, struct folds_input *in, unsigned int n)
{
	bool any = by_scope(s, in, n);

	in->config.filter.hide_kernel = in->config.filter.hide_user = false;
	return any;
}

static bool by_lines(const struct subject *s, struct folds_input *in, unsigned int n)
{
	return s->p->frame_lines && by_scope(s, in, n);
}

static bool by_system(const struct subject *s, struct folds_input *in, unsigned int n)
{
	folds_filter_all_of(s->st, s->p, s->of, &in->config.filter);
	return true;
}

static bool by_event(const struct subject *s, struct folds_input *in, unsigned int n)
{
	in->config.filter.event = folds_event(s->st, s->p);
	in->config.filter.also = ui_state_also(s->st, s->p);
	in->config.filter.hide_idle = ui_state_hides_idle(s->st, s->p);
	return true;
}

/* The @n-th event beside the shown one; UINT32_MAX: none. */
static uint32_t other_event(const struct ui_state *st, const struct profile *p, uint32_t n)
{
	n += n >= ui_state_event(st, p);
	return n < p->nr_events ? n : UINT32_MAX;
}

static bool by_other_event(const struct subject *s, struct folds_input *in, unsigned int n)
{
	bool any = by_scope(s, in, n);

	in->config.filter.event = other_event(s->st, s->p, n);
	return any && in->config.filter.event != UINT32_MAX;
}

static bool by_ratios(const struct subject *s, struct folds_input *in, unsigned int n)
{
	struct ratio_use uses[RATIOS_MAX];

	return ratios_find(s->p->events, s->p->nr_events, uses) && by_scope(s, in, n);
}

static bool by_centre(const struct subject *s, struct folds_input *in, unsigned int n)
{
	const struct folds *f = s->st->folds;

	if (!f->nr_centres || !by_scope(s, in, n))
		return false;
	in->function = folds_function(s->p, f->centres[f->nr_centres - 1]);
	return in->function != FOLD_NONE;
}

static bool by_tree(const struct subject *s, struct folds_input *in, unsigned int n)
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

static bool make_functions(const struct profile *p, struct folds_entry *e)
{
	return !fold_functions(p, &e->input.config.filter, &e->functions);
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

static const struct kind {
	/* Write the input as things are. Return false if there is nothing to fold. */
	bool (*input)(const struct subject *s, struct folds_input *in, unsigned int n);
	unsigned int n; /* its last argument */
	/* Make it by its input, on any thread. Return false if there is no memory. */
	bool (*make)(const struct profile *p, struct folds_entry *e);
	void (*free)(struct folds_entry *e);
} kinds[FOLDS_NR] = {
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

/* ---- entries ---- */

static void forget_entry(struct folds_of *of, enum folds_kind kind)
{
	struct folds_entry *e = &of->entries[kind];

	if (e->state == FOLDS_MADE)
		kinds[kind].free(e);
	e->state = FOLDS_NONE;
}

static void forget(struct folds_of *of)
{
	for (unsigned int i = 0; i < FOLDS_NR; i++)
		forget_entry(of, (enum folds_kind)i);
	folds_forget_masks(of);
}

static void make_entry(const struct profile *p, struct folds_of *of, enum folds_kind kind)
{
	struct folds_entry *e = &of->entries[kind];

	assert(e->state == FOLDS_WANTED);
	e->state = kinds[kind].make(p, e) ? FOLDS_MADE : FOLDS_NONE;
}

void folds_make(const struct profile *p, struct folds_of *of)
{
	for (unsigned int i = 0; i < FOLDS_NR; i++)
		if (of->entries[i].state == FOLDS_WANTED)
			make_entry(p, of, (enum folds_kind)i);
}

static bool is_wanted(const struct folds_of *of)
{
	for (unsigned int i = 0; i < FOLDS_NR; i++)
		if (of->entries[i].state == FOLDS_WANTED)
			return true;
	return false;
}

/* Drop unmade requests: a view that needs the fold requests it again. */
static void unwant(struct folds_of *of)
{
	for (unsigned int i = 0; i < FOLDS_NR; i++)
		if (of->entries[i].state == FOLDS_WANTED)
			of->entries[i].state = FOLDS_NONE;
}

static bool same_input(const struct folds_input *a, const struct folds_input *b)
{
	const struct fold_tree_config *x = &a->config, *y = &b->config;

	return folds_same_filter(&x->filter, &y->filter) && x->order == y->order &&
	       x->bottom_up == y->bottom_up && x->first == y->first && x->leaders == y->leaders &&
	       x->fold_recursion == y->fold_recursion && x->limit == y->limit &&
	       a->function == b->function;
}

/* Find the entry of @kind, made of the input as things are, or wanted. NULL: nothing to fold. */
static struct folds_entry *want(const struct subject *s, enum folds_kind kind)
{
	struct folds_entry *e = &s->of->entries[kind];
	struct folds_input in = { .function = 0 };

	if (!kinds[kind].input(s, &in, kinds[kind].n))
		return NULL;
	if (e->state == FOLDS_NONE || !same_input(&in, &e->input)) {
		forget_entry(s->of, kind);
		e->input = in;
		e->state = FOLDS_WANTED;
	}
	return e;
}

/* ---- requests ---- */

struct folds_of *folds_of_shown(const struct ui_state *st)
{
	struct folds *s = st->folds;

	return st->baseline && st->shown == st->baseline ? &s->baseline : &s->shown;
}

/* Find or make a fold of the shown profile. NULL: nothing to fold, or it is late and not @now. */
static const struct folds_entry *find(const struct ui_state *st, enum folds_kind kind, bool now)
{
	struct folds *s = st->folds;
	struct subject subject = { st, st->shown, s ? folds_of_shown(st) : NULL };
	struct folds_entry *e;
	bool late;

	if (!s || !st->shown || (subject.of == &s->shown && is_lent(s)))
		return NULL;
	e = want(&subject, kind);
	/* A large fold is left to the folding thread: keys must not wait. */
	late = st->folding && st->shown->nr_counts > LATE_COUNTS && subject.of == &s->shown;
	if (e && e->state == FOLDS_WANTED && (now || !late))
		make_entry(st->shown, subject.of, kind);
	return e && e->state == FOLDS_MADE ? e : NULL;
}

/* The same, and request it of the next profile. */
static const struct folds_entry *request(const struct ui_state *st, enum folds_kind kind, bool now)
{
	if (st->folds)
		st->folds->requested |= 1u << kind;
	return find(st, kind, now);
}

const struct fold_functions *folds_functions(const struct ui_state *st)
{
	const struct folds_entry *e = request(st, FOLDS_SEEN, false);

	return e ? &e->functions : NULL;
}

const struct fold_functions *folds_all_code(const struct ui_state *st)
{
	bool hidden = st->scope.hide_kernel || st->scope.hide_user;
	const struct folds_entry *e = request(st, hidden ? FOLDS_ALL_CODE : FOLDS_SEEN, false);

	return e ? &e->functions : NULL;
}

uint32_t folds_other(const struct ui_state *st, uint32_t n)
{
	return st->shown && n < ROW_EVENTS ? other_event(st, st->shown, n) : UINT32_MAX;
}

const double *folds_other_shares(const struct ui_state *st, uint32_t n)
{
	const struct folds_entry *e;

	assert(n < ROW_EVENTS);
	e = request(st, (enum folds_kind)(FOLDS_EVENTS + n), false);
	return e ? e->shares : NULL;
}

const double *folds_ratios(const struct ui_state *st)
{
	const struct folds_entry *e = request(st, FOLDS_RATIOS, false);

	return e ? e->ratios : NULL;
}

const struct profile_line *folds_line(const struct ui_state *st, uint32_t function)
{
	const struct profile *p = st->shown;
	const struct folds_entry *e = request(st, FOLDS_LINES, false);
	uint32_t line;

	if (!e || function >= p->nr_functions)
		return NULL;
	line = e->lines[function];
	return line < p->nr_lines ? &p->lines[line] : NULL;
}

const struct folds_tree *folds_tree(const struct ui_state *st, enum folds_kind kind)
{
	const struct folds_entry *e = request(st, kind, false);

	return e ? &e->tree : NULL;
}

void folds_order_children(const struct ui_state *st, enum folds_kind kind, uint32_t node,
			  const uint32_t *order, uint32_t nr)
{
	struct folds_entry *e = &folds_of_shown(st)->entries[kind];
	struct fold_tree_node *nodes = e->tree.fold.nodes;
	uint32_t children[FOLDS_SIBLINGS] = { 0 }, n = 0, rest;

	assert(e->state == FOLDS_MADE);
	assert(nr && nr <= FOLDS_SIBLINGS);
	for (uint32_t c = nodes[node].child; c != FOLD_NONE && n < nr; c = nodes[c].next)
		children[n++] = c;
	assert(n == nr);
	rest = nodes[children[nr - 1]].next;
	nodes[node].child = children[order[0]];
	for (uint32_t i = 0; i < nr; i++)
		nodes[children[order[i]]].next = i + 1 < nr ? children[order[i + 1]] : rest;
}

const struct folds_tree *folds_tree_now(const struct ui_state *st, enum folds_kind kind)
{
	const struct folds_entry *e = request(st, kind, true);

	return e ? &e->tree : NULL;
}

const struct folds_tree *folds_tree_shown(const struct ui_state *st, enum folds_kind kind)
{
	const struct folds_entry *e = &folds_of_shown(st)->entries[kind];

	assert(e->state == FOLDS_MADE);
	return &e->tree;
}

const struct fold_callers *folds_callers(const struct ui_state *st)
{
	const struct folds_entry *e = request(st, FOLDS_CALLERS, false);

	return e ? &e->callers : NULL;
}

const struct fold_processes *folds_processes(const struct ui_state *st)
{
	const struct folds_entry *e = request(st, FOLDS_PROCESSES, false);

	return e ? &e->processes : NULL;
}

const struct fold_task *folds_tasks(const struct ui_state *st)
{
	const struct folds_entry *e = request(st, FOLDS_TASKS, false);

	return e ? e->tasks : NULL;
}

const double (*folds_times(const struct ui_state *st))[WAIT_NR]
{
	const struct folds_entry *e = request(st, FOLDS_TIMES, false);

	return e ? (const double(*)[WAIT_NR])e->times : NULL;
}

/* ---- from profile to profile ---- */

struct folds *folds_new(void)
{
	struct folds *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->phase = FOLDS_IDLE;
	for (size_t i = 0; i < ARRAY_SIZE(s->trends); i++)
		s->trends[i].first = 1;
	return s;
}

void folds_free(struct folds *s)
{
	if (!s)
		return;
	forget(&s->shown);
	forget(&s->baseline);
	forget(&s->next);
	for (size_t i = 0; i < ARRAY_SIZE(s->trends); i++)
		trend_fini(&s->trends[i]);
	free(s->boxes);
	free(s);
}

void folds_forget(struct folds *s)
{
	if (!s)
		return;
	take_step(s, STEP_FORGET);
	if (!is_lent(s))
		forget(&s->shown);
}

void folds_forget_baseline(struct folds *s)
{
	if (s)
		forget(&s->baseline);
}

struct folds_of *folds_plan(struct ui_state *st, const struct profile *p)
{
	struct folds *s = st->folds;
	struct subject next = { st, p, s ? &s->next : NULL };
	uint32_t requested;

	if (!s || st->frozen)
		return NULL;
	take_step(s, STEP_PLAN);
	requested = s->requested;
	if (trend_wants(folds_trend(st), folds_key(st, p), p->running_ns))
		requested |= 1u << FOLDS_SEEN;
	for (unsigned int i = 0; i < FOLDS_NR; i++)
		if (requested & 1u << i)
			want(&next, (enum folds_kind)i);
	return is_wanted(&s->next) ? &s->next : NULL;
}

void folds_arrived(struct ui_state *st)
{
	struct folds *s = st->folds;
	enum folds_phase before;

	if (!s)
		return;
	before = take_step(s, STEP_ARRIVE);
	if (!st->frozen) {
		forget(&s->shown);
		s->requested = 0;
	}
	if (before == FOLDS_AHEAD && !st->frozen) {
		s->shown = s->next;
		memset(&s->next, 0, sizeof(s->next));
		unwant(&s->shown);
	} else {
		forget(&s->next);
	}
}

struct folds_of *folds_lend(struct ui_state *st)
{
	struct folds *s = st->folds;

	if (!s || s->phase != FOLDS_IDLE || !is_wanted(&s->shown))
		return NULL;
	take_step(s, STEP_LEND);
	return &s->shown;
}

void folds_returned(struct ui_state *st)
{
	struct folds *s = st->folds;

	if (take_step(s, STEP_RETURN) == FOLDS_LENT_STALE)
		forget(&s->shown);
	unwant(&s->shown);
	folds_note(st);
}

bool folds_is_late(const struct ui_state *st)
{
	const struct folds *s = st->folds;

	return s && (is_lent(s) || is_wanted(&s->shown));
}

/* ---- shares over time ---- */

struct trend *folds_trend(const struct ui_state *st)
{
	return &st->folds->trends[st->scope.drilled];
}

void folds_note(struct ui_state *st)
{
	const struct profile *p = st->shown;
	const struct folds_entry *e;
	struct trend *t;

	if (!st->folds || !p)
		return;
	t = folds_trend(st);
	if (!trend_wants(t, folds_key(st, p), p->running_ns))
		return;
	e = find(st, FOLDS_SEEN, false);
	if (e)
		trend_note(t, folds_key(st, p), p->running_ns, p, &e->functions);
}

void folds_compare(const struct ui_state *st, struct row *row)
{
	uint64_t window = MAX(st->config->window_ns / 1000000000u, 1u);
	double before = window < TREND_SECONDS
				? trend_share(folds_trend(st), (uint32_t)row->id, (uint32_t)window)
				: -1;

	/* Two windows must have passed: one to compare with the other. */
	if (before < 0 || folds_trend(st)->key != folds_key(st, st->shown) ||
	    st->shown->running_ns < 2 * window * 1000000000u)
		return;
	row->change = CHANGE_WINDOW;
	row->delta = (float)(row->self - before);
}
