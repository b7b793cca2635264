// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Folds of profiles: made, kept, dropped. The main thread, but for
 * folds_make().
 *
 * Invariants: a fold that is made is of the profile that its folds_of belongs
 * to. Outside of folds_plan() and folds_make() nothing is wanted of @next.
 */
#include "ui/fold/fold.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"

/* A profile of more counts, or frames, is folded by the thread even for a key. */
#define LATE_COUNTS 20000
#define LATE_FRAMES 500000

/* ---- phases ---- */

enum step {
	STEP_PLAN,   /* the next profile is to be folded */
	STEP_ARRIVE, /* a profile is shown, folded ahead or not */
	STEP_LEND,   /* the shown profile or the baseline is to be folded for a key */
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

/* ---- entries ---- */

static void forget_entry(struct folds_of *of, enum folds_kind kind)
{
	struct folds_entry *e = &of->entries[kind];

	if (e->state == FOLDS_MADE)
		folds_recipes[kind].free(e);
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
	e->state = folds_recipes[kind].make(p, e) ? FOLDS_MADE : FOLDS_NONE;
}

void folds_make(const struct profile *p, struct folds_of *of)
{
	if (of->old)
		forget(of->old);
	of->old = NULL;
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
static struct folds_entry *want(const struct folds_subject *s, enum folds_kind kind)
{
	struct folds_entry *e = &s->of->entries[kind];
	struct folds_input in = { .function = 0 };

	if (!folds_recipes[kind].input(s, &in, folds_recipes[kind].n))
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

	return s->comparing ? &s->baseline : &s->shown;
}

/* Find or make a fold of the shown profile or, while it is compared, of the baseline. NULL: nothing
 * to fold, or it is late and not @now. */
static const struct folds_entry *find(const struct ui_state *st, enum folds_kind kind, bool now)
{
	struct folds *s = st->folds;
	struct folds_subject subject = { st, st->shown, s ? folds_of_shown(st) : NULL };
	struct folds_entry *e;
	bool late;

	if (!s || !st->shown || s->lent == subject.of)
		return NULL;
	e = want(&subject, kind);
	/* A large fold is left to the folding thread: keys must not wait. */
	late = st->folding &&
	       (st->shown->nr_counts > LATE_COUNTS || st->shown->nr_frames > LATE_FRAMES);
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
	forget(&s->old);
	for (size_t i = 0; i < ARRAY_SIZE(s->trends); i++)
		trend_fini(&s->trends[i]);
	free(s->boxes);
	free(s);
}

/* Drop these folds; if they are lent, when they are returned. */
static void drop(struct folds *s, struct folds_of *of)
{
	if (s->lent == of)
		take_step(s, STEP_FORGET);
	else
		forget(of);
}

void folds_forget(struct folds *s)
{
	if (!s)
		return;
	/* The folds of the next profile, which are being made, have other tasks. */
	if (!s->lent)
		take_step(s, STEP_FORGET);
	drop(s, &s->shown);
}

void folds_forget_baseline(struct folds *s)
{
	if (s)
		drop(s, &s->baseline);
}

struct folds_of *folds_plan(struct ui_state *st, const struct profile *p)
{
	struct folds *s = st->folds;
	struct folds_subject next = { st, p, s ? &s->next : NULL };
	uint32_t requested;

	if (!s || st->frozen)
		return NULL;
	take_step(s, STEP_PLAN);
	requested = s->requested;
	if (trend_wants(folds_trend(st), folds_trend_key(st, p), p->running_ns))
		requested |= 1u << FOLDS_SEEN;
	for (unsigned int i = 0; i < FOLDS_NR; i++)
		if (requested & 1u << i)
			want(&next, (enum folds_kind)i);
	if (!is_wanted(&s->next))
		return NULL;
	s->next.old = &s->old;
	return &s->next;
}

void folds_arrived(struct ui_state *st)
{
	struct folds *s = st->folds;
	enum folds_phase before;

	if (!s)
		return;
	before = take_step(s, STEP_ARRIVE);
	if (!st->frozen) {
		/* Freeing a large tree takes time: the folding thread does. A baseline keeps its
		 * folds: it is compared from now on. */
		struct folds_of *to = st->baseline && st->shown == st->baseline ? &s->baseline
										: &s->old;

		forget(to);
		*to = s->shown;
		memset(&s->shown, 0, sizeof(s->shown));
		s->requested = 0;
	}
	if (before == FOLDS_AHEAD && !st->frozen) {
		s->shown = s->next;
		s->shown.old = NULL;
		memset(&s->next, 0, sizeof(s->next));
		unwant(&s->shown);
	} else {
		forget(&s->next);
	}
}

struct folds_of *folds_lend(struct ui_state *st, struct profile **p)
{
	struct folds *s = st->folds;

	if (!s || s->phase != FOLDS_IDLE)
		return NULL;
	s->lent = is_wanted(&s->shown) ? &s->shown : is_wanted(&s->baseline) ? &s->baseline : NULL;
	if (!s->lent)
		return NULL;
	take_step(s, STEP_LEND);
	*p = s->lent == &s->shown ? st->shown : st->baseline;
	return s->lent;
}

void folds_returned(struct ui_state *st)
{
	struct folds *s = st->folds;

	if (take_step(s, STEP_RETURN) == FOLDS_LENT_STALE)
		forget(s->lent);
	unwant(s->lent);
	s->lent = NULL;
	folds_note(st);
}

bool folds_is_late(const struct ui_state *st)
{
	const struct folds *s = st->folds;
	const struct folds_of *of = s ? folds_of_shown(st) : NULL;

	return s && (s->lent == of || is_wanted(of));
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
	if (!trend_wants(t, folds_trend_key(st, p), p->running_ns))
		return;
	e = find(st, FOLDS_SEEN, false);
	if (e)
		trend_note(t, folds_trend_key(st, p), p->running_ns, p, &e->functions);
}

void folds_compare(const struct ui_state *st, struct row *row)
{
	uint64_t window = MAX(st->config->window_ns / 1000000000u, 1u);
	double before = window < TREND_SECONDS
				? trend_share(folds_trend(st), (uint32_t)row->id, (uint32_t)window)
				: -1;

	/* Two windows must have passed, since a change also: one to compare with the other. */
	if (before < 0 || folds_trend(st)->last + 1 < folds_trend(st)->begun + 2 * window ||
	    folds_trend(st)->key != folds_trend_key(st, st->shown) ||
	    st->shown->running_ns < 2 * window * 1000000000u)
		return;
	row->change = CHANGE_WINDOW;
	row->delta = (float)(row->self - before);
}
