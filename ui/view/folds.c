// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Folds of the shown profile, kept until it or the filter changes; and which
 * of them the next profile should come with. The main thread, but for
 * folds_make().
 *
 * Invariant: a fold that is made is of the shown profile, or of the baseline.
 */
#include "ui/view/folds.h"

#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"

/* Nobody looks at less than this share; and a tree of everything costs memory. */
#define LEAST_SHARE 0.00002

/* A profile of more than this is folded by the thread, whoever asks. */
#define LATE_CELLS 20000

/* What was asked for of the shown profile, a bit each. */
enum asked {
	ASKED_ROWS, /* FOLDS_NR_CODE of them */
	ASKED_LINES = ASKED_ROWS + FOLDS_NR_CODE,
	ASKED_TREES, /* FOLDS_NR of them */
	ASKED_CALLERS = ASKED_TREES + FOLDS_NR,
	ASKED_PROCESSES,
	ASKED_TASKS,
	ASKED_EVENTS, /* ROW_EVENTS of them */
};

struct folds *folds_new(void)
{
	struct folds *s = calloc(1, sizeof(*s));

	for (size_t i = 0; s && i < ARRAY_SIZE(s->trends); i++)
		s->trends[i].first = 1;
	return s;
}

/* ---- forgotten ---- */

static void forget_rows(struct folds_rows *r)
{
	if (r->state == FOLDS_MADE)
		fold_functions_fini(&r->fold);
	free(r->lines);
	*r = (struct folds_rows){ .state = FOLDS_NOT };
}

static void forget_tree(struct folds_tree *t)
{
	if (t->state == FOLDS_MADE)
		fold_tree_fini(&t->fold);
	folds_forget_numbers(t);
	t->state = FOLDS_NOT;
}

static void forget_event(struct folds_event *e)
{
	free(e->shares);
	*e = (struct folds_event){ .state = FOLDS_NOT };
}

static void forget_callers(struct folds_callers *c)
{
	if (c->state == FOLDS_MADE)
		fold_callers_fini(&c->fold);
	c->state = FOLDS_NOT;
}

static void forget_processes(struct folds_processes *f)
{
	if (f->state == FOLDS_MADE)
		fold_processes_fini(&f->fold);
	f->state = FOLDS_NOT;
}

static void forget_sums(struct folds_tasks *t)
{
	free(t->sums);
	*t = (struct folds_tasks){ .state = FOLDS_NOT };
}

static void forget(struct folds_of *of)
{
	for (int i = 0; i < FOLDS_NR_CODE; i++)
		forget_rows(&of->rows[i]);
	for (int i = 0; i < ROW_EVENTS; i++)
		forget_event(&of->events[i]);
	for (int i = 0; i < FOLDS_NR; i++)
		forget_tree(&of->trees[i]);
	forget_callers(&of->callers);
	forget_processes(&of->processes);
	forget_sums(&of->sums);
	folds_forget_masks(of);
}

void folds_forget(struct folds *s)
{
	if (!s)
		return;
	s->outdated = true;
	s->spoiled = s->lent;
	if (!s->lent)
		forget(&s->shown);
}

void folds_forget_baseline(struct folds *s)
{
	if (s)
		forget(&s->baseline);
}

struct folds_of *folds_of(const struct ui_state *st)
{
	struct folds *s = st->folds;

	if (st->baseline && st->shown == st->baseline)
		return &s->baseline;
	return s->coming && st->shown == s->coming ? &s->next : &s->shown;
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

/* ---- made ---- */

static void make_lines(const struct profile *p, struct folds_rows *r)
{
	r->lines = malloc((p->nr_functions + 1ULL) * sizeof(*r->lines));
	if (r->lines && fold_lines(p, &r->filter, r->lines)) {
		free(r->lines);
		r->lines = NULL;
	}
}

static void make_rows(const struct profile *p, struct folds_rows *r)
{
	r->state = fold_functions(p, &r->filter, &r->fold) ? FOLDS_NOT : FOLDS_MADE;
	if (r->state == FOLDS_MADE && r->with_lines)
		make_lines(p, r);
}

static void make_event(const struct profile *p, struct folds_event *e)
{
	struct fold_functions fold;

	e->state = FOLDS_NOT;
	if (fold_functions(p, &e->filter, &fold))
		return;
	e->shares = calloc(p->nr_functions + 1ULL, sizeof(*e->shares));
	for (uint32_t i = 0; e->shares && fold.weight > 0 && i < fold.nr_rows; i++)
		e->shares[fold.rows[i].function] = fold.rows[i].self_weight / fold.weight;
	if (e->shares)
		e->state = FOLDS_MADE;
	fold_functions_fini(&fold);
}

static void make_tree(const struct profile *p, struct folds_tree *t)
{
	t->state = fold_tree(p, &t->config, &t->fold) ? FOLDS_NOT : FOLDS_MADE;
	if (t->state == FOLDS_MADE && !folds_number(p, t))
		forget_tree(t);
}

static void make_callers(const struct profile *p, struct folds_callers *c)
{
	c->state = fold_callers(p, &c->filter, c->function, &c->fold) ? FOLDS_NOT : FOLDS_MADE;
}

static void make_processes(const struct profile *p, struct folds_processes *f)
{
	f->state = fold_processes(p, &f->filter, &f->fold) ? FOLDS_NOT : FOLDS_MADE;
}

static void make_sums(const struct profile *p, struct folds_tasks *t)
{
	t->sums = malloc((p->nr_tasks + 1ULL) * sizeof(*t->sums));
	t->state = t->sums ? FOLDS_MADE : FOLDS_NOT;
	if (t->sums)
		fold_tasks(p, t->event, t->sums);
}

void folds_make(const struct profile *p, struct folds_of *of)
{
	for (int i = 0; i < FOLDS_NR_CODE; i++)
		if (of->rows[i].state == FOLDS_WANTED)
			make_rows(p, &of->rows[i]);
	for (int i = 0; i < ROW_EVENTS; i++)
		if (of->events[i].state == FOLDS_WANTED)
			make_event(p, &of->events[i]);
	for (int i = 0; i < FOLDS_NR; i++)
		if (of->trees[i].state == FOLDS_WANTED)
			make_tree(p, &of->trees[i]);
	if (of->callers.state == FOLDS_WANTED)
		make_callers(p, &of->callers);
	if (of->processes.state == FOLDS_WANTED)
		make_processes(p, &of->processes);
	if (of->sums.state == FOLDS_WANTED)
		make_sums(p, &of->sums);
}

/* Those of the profile that @st shows, to be asked for; NULL: none, or they are lent. */
static struct folds_of *asked_of(const struct ui_state *st)
{
	struct folds_of *of = st->folds ? folds_of(st) : NULL;

	if (!of || of != &st->folds->shown || !st->folds->lent)
		return of;
	st->folds->late = true;
	return NULL;
}

/* May it be made while a person waits? Else it is lent to the thread. */
static bool make_now(const struct ui_state *st)
{
	if (!st->folding || st->shown->nr_counts <= LATE_CELLS || folds_of(st) != &st->folds->shown)
		return true;
	st->folds->late = true;
	return false;
}

/* ---- wanted: what is to be folded as things are; NULL: nothing can be ---- */

static struct folds_rows *want_rows(const struct ui_state *st, enum folds_code code)
{
	struct folds_of *of = asked_of(st);
	struct fold_filter f;
	struct folds_rows *r;

	if (!of || !folds_filter(st, &f))
		return NULL;
	if (code == FOLDS_ALL_CODE && (f.hide_kernel || f.hide_user))
		f.hide_kernel = f.hide_user = false;
	else
		code = FOLDS_SEEN;
	r = &of->rows[code];
	if (r->state == FOLDS_NOT || !folds_same_filter(&f, &r->filter)) {
		forget_rows(r);
		*r = (struct folds_rows){ .state = FOLDS_WANTED, .filter = f };
	}
	return r;
}

static struct folds_event *want_event(const struct ui_state *st, uint32_t n)
{
	struct folds_of *of = asked_of(st);
	struct folds_event *e;
	struct fold_filter f;

	if (!of || !folds_filter(st, &f))
		return NULL;
	f.event = folds_other(st, n);
	if (f.event == UINT32_MAX)
		return NULL;
	e = &of->events[n];
	if (e->state == FOLDS_NOT || !folds_same_filter(&f, &e->filter)) {
		forget_event(e);
		*e = (struct folds_event){ .state = FOLDS_WANTED, .filter = f };
	}
	return e;
}

static bool same_config(const struct fold_tree_config *a, const struct fold_tree_config *b)
{
	return folds_same_filter(&a->filter, &b->filter) && a->order == b->order &&
	       a->bottom_up == b->bottom_up && a->first == b->first && a->leaders == b->leaders &&
	       a->fold_recursion == b->fold_recursion && a->limit == b->limit;
}

/* What the tree of @kind is made by, as things are. */
static bool tree_config(const struct ui_state *st, enum folds_which kind,
			struct fold_tree_config *config)
{
	const struct folds *s = st->folds;

	*config = (struct fold_tree_config){
		.first = st->by_thread	     ? FOLD_TASKS
			 : st->scope.drilled ? FOLD_FUNCTIONS
					     : FOLD_PROCESSES,
		.order = kind == FOLDS_FLAME ? FOLD_BY_ID : FOLD_BY_WEIGHT,
		.bottom_up = kind == FOLDS_TREE && s->bottom_up,
		.fold_recursion = s->fold_recursion,
		.limit = MAX(st->percent_limit / 100, LEAST_SHARE),
	};
	if (!folds_filter(st, &config->filter))
		return false;
	config->leaders = st->by_thread ? folds_leaders(st) : NULL;
	return true;
}

static struct folds_tree *want_tree(const struct ui_state *st, enum folds_which kind)
{
	struct folds_of *of = asked_of(st);
	struct fold_tree_config config;
	struct folds_tree *t;

	if (!of || !tree_config(st, kind, &config))
		return NULL;
	t = &of->trees[kind];
	if (t->state == FOLDS_NOT || !same_config(&config, &t->config)) {
		forget_tree(t);
		t->config = config;
		t->state = FOLDS_WANTED;
	}
	return t;
}

static struct folds_callers *want_callers(const struct ui_state *st, uint32_t function)
{
	struct folds_of *of = asked_of(st);
	struct folds_callers *c;
	struct fold_filter f;

	if (!of || !folds_filter(st, &f) || function >= st->shown->nr_functions)
		return NULL;
	c = &of->callers;
	if (c->state == FOLDS_NOT || c->function != function ||
	    !folds_same_filter(&f, &c->filter)) {
		forget_callers(c);
		*c = (struct folds_callers){ .state = FOLDS_WANTED,
					     .function = function,
					     .filter = f };
	}
	return c;
}

static struct folds_processes *want_processes(const struct ui_state *st)
{
	struct folds_of *of = asked_of(st);
	struct folds_processes *p;
	struct fold_filter f;

	if (!of || !st->shown)
		return NULL;
	folds_filter_all(st, &f);
	p = &of->processes;
	if (p->state == FOLDS_NOT || !folds_same_filter(&f, &p->filter)) {
		forget_processes(p);
		*p = (struct folds_processes){ .state = FOLDS_WANTED, .filter = f };
	}
	return p;
}

static struct folds_tasks *want_sums(const struct ui_state *st)
{
	struct folds_of *of = asked_of(st);
	struct folds_tasks *t;
	uint32_t event;

	if (!of || !st->shown)
		return NULL;
	event = ui_state_event(st, st->shown);
	t = &of->sums;
	if (t->state == FOLDS_NOT || t->event != event) {
		forget_sums(t);
		*t = (struct folds_tasks){ .state = FOLDS_WANTED, .event = event };
	}
	return t;
}

/* ---- asked for ---- */

static void ask(const struct ui_state *st, unsigned int what)
{
	if (st->folds)
		st->folds->asked |= 1u << what;
}

static struct folds_rows *rows_of(const struct ui_state *st, enum folds_code code)
{
	struct folds_rows *r = want_rows(st, code);

	if (r && r->state == FOLDS_WANTED && make_now(st))
		make_rows(st->shown, r);
	return r && r->state == FOLDS_MADE ? r : NULL;
}

const struct fold_functions *folds_functions(const struct ui_state *st, enum folds_code code)
{
	const struct folds_rows *r = rows_of(st, code);

	ask(st, ASKED_ROWS + code);
	return r ? &r->fold : NULL;
}

uint32_t folds_other(const struct ui_state *st, uint32_t n)
{
	uint32_t shown;

	if (!st->shown || n >= ROW_EVENTS)
		return UINT32_MAX;
	shown = ui_state_event(st, st->shown);
	n += n >= shown;
	return n < st->shown->nr_events ? n : UINT32_MAX;
}

const double *folds_other_shares(const struct ui_state *st, uint32_t n)
{
	struct folds_event *e = want_event(st, n);

	if (e && e->state == FOLDS_WANTED && make_now(st))
		make_event(st->shown, e);
	ask(st, ASKED_EVENTS + n);
	return e && e->state == FOLDS_MADE ? e->shares : NULL;
}

const struct profile_line *folds_line(const struct ui_state *st, uint32_t function)
{
	const struct profile *p = st->shown;
	struct folds_rows *r = rows_of(st, FOLDS_SEEN);
	uint32_t line;

	if (!r || !p->frame_lines || function >= p->nr_functions)
		return NULL;
	ask(st, ASKED_LINES);
	if (!r->lines)
		make_lines(p, r);
	line = r->lines ? r->lines[function] : PROFILE_NO_LINE;
	return line < p->nr_lines ? &p->lines[line] : NULL;
}

const struct folds_tree *folds_tree(const struct ui_state *st, enum folds_which kind)
{
	struct folds_tree *t = want_tree(st, kind);

	if (t && t->state == FOLDS_WANTED && make_now(st))
		make_tree(st->shown, t);
	ask(st, ASKED_TREES + kind);
	return t && t->state == FOLDS_MADE ? t : NULL;
}

const struct folds_tree *folds_tree_now(const struct ui_state *st, enum folds_which kind)
{
	struct ui_state now = *st;

	now.folding = NULL;
	return folds_tree(&now, kind);
}

const struct fold_callers *folds_callers(const struct ui_state *st, uint32_t function)
{
	struct folds_callers *c = want_callers(st, function);

	if (c && c->state == FOLDS_WANTED && make_now(st))
		make_callers(st->shown, c);
	ask(st, ASKED_CALLERS);
	return c && c->state == FOLDS_MADE ? &c->fold : NULL;
}

const struct fold_processes *folds_processes(const struct ui_state *st)
{
	struct folds_processes *p = want_processes(st);

	if (p && p->state == FOLDS_WANTED && make_now(st))
		make_processes(st->shown, p);
	ask(st, ASKED_PROCESSES);
	return p && p->state == FOLDS_MADE ? &p->fold : NULL;
}

const struct fold_task *folds_tasks(const struct ui_state *st)
{
	struct folds_tasks *t = want_sums(st);

	if (t && t->state == FOLDS_WANTED && make_now(st))
		make_sums(st->shown, t);
	ask(st, ASKED_TASKS);
	return t && t->state == FOLDS_MADE ? t->sums : NULL;
}

/* ---- before it is shown ---- */

static bool is_wanted(const struct folds_of *of)
{
	bool wanted = of->callers.state == FOLDS_WANTED || of->processes.state == FOLDS_WANTED ||
		      of->sums.state == FOLDS_WANTED;

	for (int i = 0; i < FOLDS_NR_CODE; i++)
		wanted |= of->rows[i].state == FOLDS_WANTED;
	for (int i = 0; i < ROW_EVENTS; i++)
		wanted |= of->events[i].state == FOLDS_WANTED;
	for (int i = 0; i < FOLDS_NR; i++)
		wanted |= of->trees[i].state == FOLDS_WANTED;
	return wanted;
}

/* What was asked for of the shown profile will be asked for of the next one. */
static void want_asked(const struct ui_state *then, uint32_t asked)
{
	const struct folds *s = then->folds;

	for (unsigned int i = 0; i < FOLDS_NR_CODE; i++)
		if (asked & 1u << (ASKED_ROWS + i))
			want_rows(then, (enum folds_code)i);
	if (asked & 1u << ASKED_LINES && then->shown->frame_lines) {
		struct folds_rows *r = want_rows(then, FOLDS_SEEN);

		if (r)
			r->with_lines = true;
	}
	for (unsigned int i = 0; i < FOLDS_NR; i++)
		if (asked & 1u << (ASKED_TREES + i))
			want_tree(then, (enum folds_which)i);
	if (asked & 1u << ASKED_CALLERS && s->nr_centres)
		want_callers(then, folds_function(then, s->centres[s->nr_centres - 1]));
	if (asked & 1u << ASKED_PROCESSES)
		want_processes(then);
	if (asked & 1u << ASKED_TASKS)
		want_sums(then);
	for (unsigned int i = 0; i < ROW_EVENTS; i++)
		if (asked & 1u << (ASKED_EVENTS + i))
			want_event(then, i);
}

struct folds_of *folds_plan(const struct ui_state *st, struct profile *p)
{
	struct folds *s = st->folds;
	struct ui_state then;
	uint32_t asked;

	if (!s || st->frozen)
		return NULL;
	then = *st;
	then.shown = p;
	asked = s->asked;
	if (trend_wants(folds_trend(&then), folds_key(&then), p->running_ns))
		asked |= 1u << ASKED_ROWS;
	s->coming = p;
	s->outdated = false;
	want_asked(&then, asked);
	return is_wanted(&s->next) ? &s->next : NULL;
}

void folds_arrived(struct ui_state *st, struct profile *p)
{
	struct folds *s = st->folds;
	bool ready;

	if (!s)
		return;
	ready = s->coming == p && !s->outdated && !st->frozen;
	s->coming = NULL;
	if (!st->frozen) {
		forget(&s->shown);
		s->asked = 0;
		s->late = false;
	}
	if (ready)
		s->shown = s->next;
	else
		forget(&s->next);
	if (ready)
		memset(&s->next, 0, sizeof(s->next));
}

/* ---- while it is shown ---- */

struct folds_of *folds_lend(const struct ui_state *st)
{
	struct folds *s = st->folds;

	if (!s || !s->late || s->lent)
		return NULL;
	s->late = false;
	s->lent = is_wanted(&s->shown);
	return s->lent ? &s->shown : NULL;
}

void folds_returned(struct ui_state *st)
{
	struct folds *s = st->folds;

	s->lent = s->late = false;
	if (s->spoiled)
		forget(&s->shown);
	s->spoiled = false;
	folds_note(st);
}

bool folds_is_late(const struct ui_state *st)
{
	return st->folds && (st->folds->late || st->folds->lent);
}

/* ---- shares over time ---- */

struct trend *folds_trend(const struct ui_state *st)
{
	return &st->folds->trends[st->scope.drilled];
}

void folds_note(const struct ui_state *st)
{
	const struct folds_rows *r;
	struct trend *t;

	if (!st->folds || !st->shown)
		return;
	t = folds_trend(st);
	if (!trend_wants(t, folds_key(st), st->shown->running_ns))
		return;
	r = rows_of(st, FOLDS_SEEN);
	if (r)
		trend_note(t, folds_key(st), st->shown->running_ns, st->shown, &r->fold);
}

void folds_compare(const struct ui_state *st, struct row *row)
{
	uint64_t window = MAX(st->config->window_ns / 1000000000u, 1u);
	double before = window < TREND_SECONDS
				? trend_share(folds_trend(st), (uint32_t)row->id, (uint32_t)window)
				: -1;

	/* Before two windows have passed there is no whole one to compare with. */
	if (before < 0 || folds_trend(st)->key != folds_key(st) ||
	    st->shown->running_ns < 2 * window * 1000000000u)
		return;
	row->change = CHANGE_WINDOW;
	row->delta = (float)(row->self - before);
}
