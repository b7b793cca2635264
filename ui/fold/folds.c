// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Folds of the shown profile, kept while it is shown: how each kind is made, which samples it
 * counts; the thread that folds the next profile.
 *
 * Invariants: a fold that is made is of the profile that its folds_of belongs to. Outside of
 * plan_next() and folds_make() nothing is wanted of @next.
 */
#include "ui/fold/fold.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "symbols/base/base.h"
#include "symbols/base/table.h"
#include "symbols/base/text.h"
#include "symbols/base/thread.h"
#include "ui/cli/cli.h"
#include "ui/state/state.h"
#include "ui/text/text.h"

struct folds_groups;
struct folds_of;
struct trend;

#define TREND_FUNCTIONS 4096 /* a power of two */

/*
 * Shares of functions by second. Runs on: the main thread.
 *
 * Invariant: at most three quarters of the table are used, so that every
 * search ends; seconds between two notes have the shares of the later one.
 */

#define FULL	      (TREND_FUNCTIONS / 4 * 3)
#define LIGHT	      0.0005
#define PURGE_SECONDS 10

static void trend_fini(struct trend *t)
{
	free(t->entries);
	*t = (struct trend){ .first = 1 };
}

static uint64_t second_of(uint64_t time_ns)
{
	return time_ns / 1000000000u;
}

/* Return whether a note is due at @time_ns: once a second. */
static bool trend_wants(const struct trend *t, uint64_t key, uint64_t time_ns)
{
	return !t->entries || t->key != key || t->first > t->last || second_of(time_ns) != t->last;
}

static struct trend_entry *entry_at(const struct trend *t, uint32_t id)
{
	uint32_t at = (uint32_t)hash_u64(id) & (TREND_FUNCTIONS - 1);

	while (t->entries[at].used && t->entries[at].id != id)
		at = (at + 1) & (TREND_FUNCTIONS - 1);
	return &t->entries[at];
}

static bool is_empty(const struct trend_entry *e)
{
	for (int i = 0; i < TREND_SECONDS; i++)
		if (e->shares[i] > 0)
			return false;
	return true;
}

/* Remove functions without samples in the last minute. */
static void purge(struct trend *t)
{
	struct trend_entry *before = t->entries;

	t->entries = calloc(TREND_FUNCTIONS, sizeof(*t->entries));
	if (!t->entries) {
		t->entries = before;
		return;
	}
	t->nr = 0;
	for (uint32_t i = 0; i < TREND_FUNCTIONS; i++) {
		if (!before[i].used || is_empty(&before[i]))
			continue;
		*entry_at(t, before[i].id) = before[i];
		t->nr++;
	}
	free(before);
}

/* Blank the seconds after the last one up to @second. */
static void advance(struct trend *t, uint64_t second)
{
	uint64_t from = t->last + 1;

	if (second - t->last > TREND_SECONDS)
		from = second - TREND_SECONDS + 1;
	for (uint32_t i = 0; i < TREND_FUNCTIONS; i++)
		for (uint64_t s = from; t->entries[i].used && s <= second; s++)
			t->entries[i].shares[s % TREND_SECONDS] = 0;
}

static void begin_trend(struct trend *t, uint64_t key, uint64_t second)
{
	memset(t->entries, 0, TREND_FUNCTIONS * sizeof(*t->entries));
	t->nr = 0;
	t->key = key;
	t->first = second;
	t->last = second;
	t->begun = second;
	t->purged = second;
}

static void put(struct trend *t, uint32_t id, float share, uint64_t from, uint64_t second)
{
	struct trend_entry *e = entry_at(t, id);

	if (!e->used) {
		if (t->nr >= FULL || (t->nr >= FULL / 2 && share < LIGHT))
			return;
		*e = (struct trend_entry){ .id = id, .used = true };
		t->nr++;
	}
	for (uint64_t s = from; s <= second; s++)
		e->shares[s % TREND_SECONDS] = share;
}

/* Note the self shares of all functions at @time_ns; an earlier time than before starts again. */
static void trend_note(struct trend *t, uint64_t key, uint64_t time_ns, const struct profile *p,
		       const struct fold_functions *fold)
{
	uint64_t second = second_of(time_ns), from = second;

	if (!t->entries)
		t->entries = calloc(TREND_FUNCTIONS, sizeof(*t->entries));
	if (!t->entries)
		return;
	/* After a minute without a note the history starts again. */
	if (t->key != key || t->first > t->last || second < t->last ||
	    second - t->last > TREND_SECONDS) {
		begin_trend(t, key, second);
	} else if (second > t->last) {
		from = t->last + 1;
		advance(t, second);
		t->last = second;
		if (second - t->first >= TREND_SECONDS)
			t->first = second - TREND_SECONDS + 1;
	}
	if (t->nr >= FULL / 2 && second - t->purged >= PURGE_SECONDS) {
		t->purged = second;
		purge(t);
	}
	for (uint32_t i = 0; i < fold->nr_rows && fold->weight > 0; i++)
		put(t, p->functions[fold->rows[i].function].id,
		    (float)(fold->rows[i].self_weight / fold->weight), from, second);
}

double trend_share(const struct trend *t, uint32_t id, uint32_t ago)
{
	const struct trend_entry *e;

	if (!t->entries || t->first > t->last || ago >= TREND_SECONDS || t->last < ago ||
	    t->last - ago < t->first)
		return -1;
	e = entry_at(t, id);
	return e->used ? (double)e->shares[(t->last - ago) % TREND_SECONDS] : 0;
}

/* ---- folds ---- */

/* How one kind of fold is made. */
struct folds_recipe {
	/* Write the input as things are. Return false if there is nothing to fold. */
	bool (*input)(const struct folds_subject *s, struct folds_input *in, unsigned int n);
	unsigned int n; /* its last argument */
	/* Make it by its input, on any thread. Return false if there is no memory. */
	bool (*make)(const struct profile *p, struct folds_entry *e);
	void (*free)(struct folds_entry *e);
};

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

static const struct folds_recipe folds_recipes[FOLDS_NR];

static void forget_entry(struct folds_of *of, enum folds_kind kind)
{
	struct folds_entry *e = &of->entries[kind];

	assert((unsigned int)kind < FOLDS_NR);
	if (e->state == FOLDS_MADE)
		folds_recipes[kind].free(e);
	e->state = FOLDS_NONE;
}

static void folds_forget_masks(struct folds_of *of);

static void forget(struct folds_of *of)
{
	for (unsigned int i = 0; i < FOLDS_NR; i++)
		forget_entry(of, (enum folds_kind)i);
	folds_forget_masks(of);
}

static void make_entry(const struct profile *p, struct folds_of *of, enum folds_kind kind)
{
	struct folds_entry *e = &of->entries[kind];

	assert((unsigned int)kind < FOLDS_NR);
	assert(e->state == FOLDS_WANTED);
	e->state = folds_recipes[kind].make(p, e) ? FOLDS_MADE : FOLDS_NONE;
}

static void folds_make(const struct profile *p, struct folds_of *of)
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

static bool folds_same_filter(const struct fold_filter *a, const struct fold_filter *b)
{
	return a->event == b->event && a->also == b->also && a->process == b->process &&
	       a->task == b->task && a->tasks == b->tasks && a->groups == b->groups &&
	       a->hide_kernel == b->hide_kernel && a->hide_user == b->hide_user &&
	       a->hide_idle == b->hide_idle;
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

	assert((unsigned int)kind < FOLDS_NR);
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

static struct folds_of *folds_of_shown(const struct ui_state *st)
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

/*
 * Drafts: rows for a key that needs a late fold, until that is made. They are made of counts that
 * are drawn from all, each with the chance of its weight, so that a draft has the sum of all that
 * count, and shares within a percent. The main thread makes them: the other one may be busy with
 * the next profile.
 */

/* Counts of a draft; fewer if their frames are more than a fold has that is not late. */
#define DRAFT_COUNTS 10000

/* Lighter nodes of a draft are of fewer than ten drawn counts. */
#define DRAFT_LEAST_SHARE (10.0 / DRAFT_COUNTS)

/* The kinds that walk stacks. */
#define DRAFT_KINDS                                                                                \
	(1u << FOLDS_SEEN | 1u << FOLDS_ALL_CODE | 1u << FOLDS_TREE | 1u << FOLDS_FLAME |          \
	 1u << FOLDS_CALLERS)

static void forget_drafts(struct folds *s)
{
	for (unsigned int i = 0; i < FOLDS_NR; i++)
		forget_entry(&s->drafts, (enum folds_kind)i);
	s->drafted = 0;
}

/* Return how many counts to draw of @p; 0: it is not much larger. */
static uint32_t draft_size(const struct profile *p)
{
	uint64_t depth = p->nr_frames / MAX(p->nr_stacks, 1u) + 1;
	uint64_t nr = MIN(DRAFT_COUNTS, LATE_FRAMES / depth);

	return nr <= p->nr_counts / 2 ? (uint32_t)nr : 0;
}

/* Add a count with its stack to a draft. */
static void draft_add(struct profile *draft, const struct profile *p, const struct profile_count *c,
		      double weight)
{
	uint32_t n = draft->nr_counts++;

	draft->stacks[n] = p->stacks[c->stack];
	if (draft->stack_idle)
		draft->stack_idle[n] = p->stack_idle[c->stack];
	draft->counts[n] = *c;
	draft->counts[n].stack = n;
	draft->counts[n].count *= weight / c->weight;
	draft->counts[n].weight = weight;
	draft->nr_stacks = draft->nr_counts;
}

/*
 * Draw about @nr of the counts that pass: each step of weight on the way through all of them is one
 * of the count that it is in. Return false if none has a weight, or there is no memory.
 */
static bool draft_draw(const struct profile *p, const struct fold_filter *f, uint32_t nr,
		       struct profile *draft)
{
	double all = 0, at = 0, step;
	uint64_t drawn = 0;

	for (uint32_t i = 0; i < p->nr_counts; i++)
		all += fold_passes(p, f, &p->counts[i]) ? p->counts[i].weight : 0;
	*draft = *p;
	draft->nr_counts = draft->nr_stacks = 0;
	draft->counts = all > 0 ? malloc((nr + 1ULL) * sizeof(*draft->counts)) : NULL;
	draft->stacks = malloc((nr + 1ULL) * sizeof(*draft->stacks));
	draft->stack_idle = p->stack_idle ? malloc(nr + 1ULL) : NULL;
	if (!draft->counts || !draft->stacks || (p->stack_idle && !draft->stack_idle))
		return false;
	step = all / nr;
	for (uint32_t i = 0; i < p->nr_counts && draft->nr_counts < nr; i++) {
		const struct profile_count *c = &p->counts[i];
		uint64_t before = drawn;

		if (!fold_passes(p, f, c))
			continue;
		at += c->weight;
		drawn = (uint64_t)(at / step + 0.5);
		if (drawn > before)
			draft_add(draft, p, c, (double)(drawn - before) * step);
	}
	return draft->nr_counts;
}

/* Make @e of drawn counts. */
static void draft_make(const struct profile *p, struct folds_entry *e, enum folds_kind kind)
{
	const struct folds_input in = e->input;
	struct profile draft;

	/* Fewer nodes: of a tree. */
	e->input.config.limit = MAX(in.config.limit, DRAFT_LEAST_SHARE);
	if (draft_draw(p, &in.config.filter, draft_size(p), &draft) &&
	    folds_recipes[kind].make(&draft, e))
		e->state = FOLDS_MADE;
	e->input = in;
	free(draft.counts);
	free(draft.stacks);
	free(draft.stack_idle);
}

/* Return a draft of a fold of the shown profile; NULL: nothing to fold, or no draft is useful. */
static const struct folds_entry *draft_of(const struct ui_state *st, enum folds_kind kind)
{
	struct folds *s = st->folds;
	struct folds_subject subject = { st, st->shown, &s->shown };
	struct folds_entry *e = &s->drafts.entries[kind];
	struct folds_input in = { .function = 0 };

	/* Against a baseline a draft would show changes that are none. */
	if (!(DRAFT_KINDS & 1u << kind) || st->baseline || s->phase == FOLDS_LENT_STALE ||
	    !draft_size(st->shown) ||
	    !folds_recipes[kind].input(&subject, &in, folds_recipes[kind].n))
		return NULL;
	if (e->state == FOLDS_NONE || !same_input(&in, &e->input)) {
		forget_entry(&s->drafts, kind);
		e->input = in;
		draft_make(st->shown, e, kind);
	}
	return e->state == FOLDS_MADE ? e : NULL;
}

/* Return the made fold of the rows in sight, or the draft that they were made of. */
static struct folds_entry *seen_entry(const struct ui_state *st, enum folds_kind kind)
{
	bool drafted = st->folds->drafted & 1u << kind;
	struct folds_of *of = drafted ? &st->folds->drafts : folds_of_shown(st);

	assert((unsigned int)kind < FOLDS_NR);
	assert(of->entries[kind].state == FOLDS_MADE);
	return &of->entries[kind];
}

/* The same, and request it of the next profile. */
static const struct folds_entry *request(const struct ui_state *st, enum folds_kind kind, bool now)
{
	struct folds *s = st->folds;
	const struct folds_entry *e;

	if (!s)
		return NULL;
	s->requested |= 1u << kind;
	e = find(st, kind, now);
	s->drafted &= ~(1u << kind);
	if (e || !folds_is_late(st))
		return e;
	e = draft_of(st, kind);
	if (e)
		s->drafted |= 1u << kind;
	return e;
}

const struct fold_functions *folds_functions(const struct ui_state *st)
{
	const struct folds_entry *e = request(st, FOLDS_SEEN, false);

	return e ? &e->functions : NULL;
}

const struct fold_functions *folds_all_code(const struct ui_state *st)
{
	bool hidden = st->set.hide_kernel || st->set.hide_user;
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
	struct fold_tree_node *nodes = seen_entry(st, kind)->tree.fold.nodes;
	uint32_t children[FOLDS_SIBLINGS] = { 0 }, n = 0, rest;

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
	return &seen_entry(st, kind)->tree;
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

const double *folds_times(const struct ui_state *st)
{
	const struct folds_entry *e = request(st, FOLDS_TIMES, false);

	return e ? e->times : NULL;
}

/* ---- the shown scope ---- */

static uint64_t hash_text(uint64_t h, const char *text)
{
	for (; *text; text++)
		h = hash_u64(h + (unsigned char)*text);
	return h;
}

/* The event of the shown counts: an index, or PROFILE_LATENCY. */
static uint32_t folds_event(const struct ui_state *st, const struct profile *p)
{
	return ui_state_latency(st, p) ? PROFILE_LATENCY : ui_state_event(st, p);
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

/* The same with all else that shares over time depend on: window, requested rate and target. */
static uint64_t folds_trend_key(const struct ui_state *st, const struct profile *p)
{
	uint64_t key = hash_u64(folds_key(st, p) + (uint64_t)p->window + 1);
	double hz = p->nr_events ? p->events[ui_state_event(st, p)].want_hz : 0;

	/* The governor changes the rate as well, which changes no share. */
	if (p->rate_factor > 0)
		hz /= p->rate_factor;
	return hash_text(hash_u64(key ^ (uint64_t)(hz + 0.5)), p->target);
}

static struct trend *trend_of(const struct ui_state *st)
{
	return &st->folds->trends[st->scope.drilled];
}

/* ---- from profile to profile ---- */

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
	forget_drafts(s);
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

/*
 * Plan the folds to make of @p, the next profile: the kinds that were requested of the shown one.
 * NULL: nothing. folds_arrived() ends it.
 */
static struct folds_of *plan_next(struct ui_state *st, const struct profile *p)
{
	struct folds *s = st->folds;
	struct folds_subject next = { st, p, s ? &s->next : NULL };
	uint32_t requested;

	if (!s || st->frozen)
		return NULL;
	take_step(s, STEP_PLAN);
	requested = s->requested;
	if (trend_wants(trend_of(st), folds_trend_key(st, p), p->running_ns))
		requested |= 1u << FOLDS_SEEN;
	for (unsigned int i = 0; i < FOLDS_NR; i++)
		if (requested & 1u << i)
			want(&next, (enum folds_kind)i);
	if (!is_wanted(&s->next))
		return NULL;
	s->next.old = &s->old;
	return &s->next;
}

/*
 * Lend the folds of the shown profile or of the baseline, of which a large one was requested; *@p:
 * that profile. Until take_back() the main thread has none of these folds. NULL: nothing to make.
 */
static struct folds_of *lend_wanted(struct ui_state *st, struct profile **p)
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

bool folds_is_late(const struct ui_state *st)
{
	const struct folds *s = st->folds;
	const struct folds_of *of = s ? folds_of_shown(st) : NULL;

	return s && (s->lent == of || is_wanted(of));
}

/* ---- shares over time ---- */

const struct trend *folds_trend(const struct ui_state *st)
{
	const struct trend *t = trend_of(st);

	return t->key == folds_trend_key(st, st->shown) ? t : NULL;
}

/* Record the shares of the shown profile in the history. */
static void note_shares(struct ui_state *st)
{
	const struct profile *p = st->shown;
	const struct folds_entry *e;
	struct trend *t;

	if (!st->folds || !p)
		return;
	t = trend_of(st);
	if (!trend_wants(t, folds_trend_key(st, p), p->running_ns))
		return;
	e = find(st, FOLDS_SEEN, false);
	if (e)
		trend_note(t, folds_trend_key(st, p), p->running_ns, p, &e->functions);
}

void folds_arrived(struct ui_state *st, struct profile *p)
{
	struct folds *s = st->folds;
	enum folds_phase before;

	if (!s) {
		st->shown = st->frozen ? st->shown : p;
		return;
	}
	before = take_step(s, STEP_ARRIVE);
	if (!st->frozen) {
		forget_drafts(s);
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
	if (st->frozen)
		return;
	st->shown = p;
	note_shares(st);
}

static void take_back(struct ui_state *st)
{
	struct folds *s = st->folds;

	if (take_step(s, STEP_RETURN) == FOLDS_LENT_STALE)
		forget(s->lent);
	unwant(s->lent);
	s->lent = NULL;
	note_shares(st);
}

void folds_compare(const struct ui_state *st, struct row *row)
{
	uint64_t window = MAX(st->set.window_ns / 1000000000u, 1u);
	const struct trend *t = window < TREND_SECONDS ? folds_trend(st) : NULL;
	double before = t ? trend_share(t, (uint32_t)row->id, (uint32_t)window) : -1;

	/* Two windows must have passed, since a change also: one to compare with the other. */
	if (before < 0 || t->last + 1 < t->begun + 2 * window ||
	    st->shown->running_ns < 2 * window * 1000000000u)
		return;
	row->change = CHANGE_WINDOW;
	row->delta = (float)(row->self - before);
}

/*
 * Filters for the scope that is shown: event, process, thread, group of
 * threads and cgroup. The main thread; cheap: they depend on tasks, not on
 * stacks.
 */

/* Return whether the process is of the user and cgroup that are shown. */
static bool folds_chooses(const struct ui_state *st, const struct profile_process *process)
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

/* The groups of processes of @p; NULL: each is alone, or there is no memory. */
static const struct folds_groups *groups_of(const struct ui_state *st, const struct profile *p,
					    struct folds_of *of);

static void folds_filter_all_of(const struct ui_state *st, const struct profile *p,
				struct folds_of *of, struct fold_filter *f)
{
	const struct folds_groups *groups;

	*f = (struct fold_filter){ .process = UINT32_MAX,
				   .task = UINT32_MAX,
				   .hide_kernel = st->set.hide_kernel,
				   .hide_user = st->set.hide_user };
	if (!p)
		return;
	f->event = folds_event(st, p);
	f->also = ui_state_also(st, p);
	f->hide_idle = ui_state_hides_idle(st, p);
	if (scope_chooses(&st->scope) && of)
		f->tasks = tasks_that_count(st, p, of, false);
	groups = of ? groups_of(st, p, of) : NULL;
	f->groups = groups ? groups->leaders : NULL;
}

/* Index in @p of the thread drilled into; UINT32_MAX: all threads, or it has no samples. */
static uint32_t thread_of(const struct ui_state *st, const struct profile *p)
{
	bool one = st->scope.drilled && st->scope.in_thread;

	for (uint32_t i = 0; one && p && i < p->nr_tasks; i++)
		if (p->tasks[i].id == st->scope.thread)
			return i;
	return UINT32_MAX;
}

/* For folds.c alone: filters, and the masks they borrow, of a profile that is not shown. */
static bool folds_filter_of(const struct ui_state *st, const struct profile *p, struct folds_of *of,
			    struct fold_filter *f)
{
	const struct scope *scope = &st->scope;

	folds_filter_all_of(st, p, of, f);
	if (!p)
		return false;
	if (scope->drilled)
		f->process = ui_state_process(st, p);
	f->task = thread_of(st, p);
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

uint64_t folds_group(const struct profile *p, const struct profile_task *task)
{
	char buf[FORMAT_MAX * 2];
	uint64_t process = task->process < p->nr_processes ? p->processes[task->process].id : 0;

	return hash_text(hash_u64(process + 1), format_folded(buf, task->comm).str);
}

/* By task, the first task of the same name. Return NULL if tasks are not merged. */
static const uint32_t *leaders_of(const struct ui_state *st, const struct profile *p,
				  struct folds_of *of)
{
	uint32_t **leaders = &of->leaders;
	struct folds_member *members;

	if (!st->set.fold_threads || *leaders)
		return st->set.fold_threads ? *leaders : NULL;
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

static void folds_forget_groups(struct folds_groups *groups)
{
	free(groups->leaders);
	free(groups->ids);
	free(groups->sizes);
	*groups = (struct folds_groups){ 0 };
}

static void folds_forget_masks(struct folds_of *of)
{
	for (size_t i = 0; i < ARRAY_SIZE(of->tasks); i++) {
		free(of->tasks[i]);
		of->tasks[i] = NULL;
	}
	free(of->leaders);
	of->leaders = NULL;
	folds_forget_groups(&of->groups);
}

/*
 * Processes that are shown as one: of one name, container or unit. Runs on: the main thread.
 */

/* Return the last two parts of a path. */
static struct safe_text tail_of(struct safe_text path, char buf[static TEXT_MAX])
{
	const char *begin = path.str + path.size;

	for (int parts = 0; parts < 2 && begin > path.str; parts++) {
		const char *slash = memrchr(path.str, '/', (size_t)(begin - path.str));

		begin = slash ? slash : path.str;
	}
	begin += *begin == '/';
	return text_sanitise(buf, TEXT_MAX, begin, (size_t)(path.str + path.size - begin));
}

/* A part of a path. */
struct part {
	const char *str;
	size_t size;
};

/* Take the first part off @path; false: none left. */
static bool first_part(struct part *path, struct part *out)
{
	const char *slash;

	while (path->size && *path->str == '/') {
		path->str++;
		path->size--;
	}
	slash = path->size ? memchr(path->str, '/', path->size) : NULL;
	*out = (struct part){ path->str, slash ? (size_t)(slash - path->str) : path->size };
	path->str += out->size;
	path->size -= out->size;
	return out->size;
}

static bool has_suffix(struct part p, const char *suffix)
{
	size_t size = strlen(suffix);

	return p.size > size && !memcmp(p.str + p.size - size, suffix, size);
}

static bool is_unit(struct part p)
{
	return has_suffix(p, ".service") || has_suffix(p, ".scope");
}

/* Take the parts of @path up to its first service or scope; false: it has none. */
static bool first_unit(struct part *path, struct part *out)
{
	while (first_part(path, out))
		if (is_unit(*out))
			return true;
	return false;
}

static struct safe_text part_text(struct part p, char buf[static TEXT_MAX])
{
	return text_sanitise(buf, TEXT_MAX, p.str, p.size);
}

/* Name a unit that is not the system's, so that no name of the system's is equal. */
static struct safe_text unit_at(struct part unit, struct part owner, char buf[static TEXT_MAX])
{
	return text_format(buf, TEXT_MAX, "%.*s@%.*s", (int)MIN(unit.size, TEXT_MAX / 2u), unit.str,
			   (int)MIN(owner.size, TEXT_MAX / 3u), owner.str);
}

/* Name the unit of a process in @rest of its cgroup's path, which begins behind @service. */
static struct safe_text unit_of_user(struct part service, struct part rest,
				     char buf[static TEXT_MAX])
{
	const size_t before = strlen("user@"), around = strlen("user@.service");
	struct part user = { service.str + before, service.size - around };
	struct part unit;

	return first_unit(&rest, &unit) ? unit_at(unit, user, buf) : part_text(service, buf);
}

/*
 * Return the unit of a process: the first service or scope below slices, which the system's
 * systemd made; else its slice, its container, the last parts of its path. Names below that unit
 * were chosen by others: those of a user and of a container are shown as theirs.
 */
static struct safe_text unit_of(const struct profile_process *process, char buf[static TEXT_MAX])
{
	const struct part container = { process->container.str, process->container.size };
	struct part rest = { process->cgroup.str, process->cgroup.size };
	struct part p, slice = { NULL, 0 }, inner;
	bool more;

	while ((more = first_part(&rest, &p)) && has_suffix(p, ".slice"))
		slice = p;
	if (!more)
		return slice.size ? part_text(slice, buf) : TEXT("(no unit)");
	if (p.size > strlen("user@.service") && !memcmp(p.str, "user@", 5) &&
	    has_suffix(p, ".service"))
		return unit_of_user(p, rest, buf);
	if (container.size && first_unit(&rest, &inner))
		return unit_at(inner, container, buf);
	if (is_unit(p))
		return part_text(p, buf);
	return container.size ? process->container : tail_of(process->cgroup, buf);
}

struct safe_text folds_group_name(enum grouping by, const struct profile_process *process,
				  char buf[static TEXT_MAX])
{
	switch (by) {
	case GROUPING_CONTAINER:
		return process->container.size ? process->container : TEXT("(no container)");
	case GROUPING_UNIT:
		return unit_of(process, buf);
	default:
		return profile_process_name(process);
	}
}

/*
 * The first letters of the name, for the order; and a hash of all, the same one after each start,
 * as rows of equal weight are in this order. Names are compared where it is the same. Bit 63 is
 * free.
 */
static uint64_t group_id(enum grouping by, struct safe_text name)
{
	uint64_t h = (uint64_t)by + 1, order = 0;

	for (size_t i = 0; i < name.size; i++)
		h = hash_u64(h + (unsigned char)name.str[i]);
	for (size_t i = 0; i < 4; i++)
		order = order << 8 | (i < name.size ? (unsigned char)name.str[i] : 0);
	return order << 31 | (h & INT32_MAX);
}

static bool same_name(enum grouping by, const struct profile_process *a,
		      const struct profile_process *b)
{
	char buf_a[TEXT_MAX], buf_b[TEXT_MAX];
	struct safe_text name_a = folds_group_name(by, a, buf_a);
	struct safe_text name_b = folds_group_name(by, b, buf_b);

	return name_a.size == name_b.size && !memcmp(name_a.str, name_b.str, name_a.size);
}

/* A process, by the id and another hash of its name. */
struct named {
	uint64_t id, hash;
	uint32_t process;
};

static int by_name(const void *pa, const void *pb)
{
	const struct named *a = pa, *b = pb;

	if (a->id != b->id)
		return COMPARE(a->id, b->id);
	return a->hash != b->hash ? COMPARE(a->hash, b->hash) : COMPARE(a->process, b->process);
}

static struct named named_of(enum grouping by, const struct profile *p, uint32_t process)
{
	char buf[TEXT_MAX];
	struct safe_text name = folds_group_name(by, &p->processes[process], buf);

	assert(process < p->nr_processes);
	return (struct named){ group_id(by, name), keyhash_name(name.str, name.size), process };
}

/*
 * Set leader and id of the last of @nr processes with one hash: the first of its name, or itself.
 * Names with one id are different ones by choice or chance; the id of a later one is the next
 * number. @nr_names: of this id.
 */
static void join(struct folds_groups *g, const struct profile *p, const struct named *list,
		 uint32_t nr, uint32_t *nr_names)
{
	uint32_t process = list[nr - 1].process;

	assert(nr);
	g->leaders[process] = process;
	/* By chance a hash may be of more than one name. */
	for (uint32_t i = 0; i + 1 < nr; i++) {
		uint32_t leader = g->leaders[list[i].process];

		if (!same_name(g->by, &p->processes[leader], &p->processes[process]))
			continue;
		g->leaders[process] = leader;
		g->ids[process] = g->ids[leader];
		return;
	}
	g->ids[process] = list[nr - 1].id + (*nr_names)++;
}

/* Find the first process of each group, and count the processes. Return false without memory. */
static bool make(struct folds_groups *g, const struct ui_state *st, const struct profile *p)
{
	struct named *list = calloc(p->nr_processes + 1ULL, sizeof(*list));

	g->leaders = calloc(p->nr_processes + 1ULL, sizeof(*g->leaders));
	g->ids = calloc(p->nr_processes + 1ULL, sizeof(*g->ids));
	g->sizes = calloc(p->nr_processes + 1ULL, sizeof(*g->sizes));
	if (!list || !g->leaders || !g->ids || !g->sizes) {
		free(list);
		return false;
	}
	for (uint32_t i = 0; i < p->nr_processes; i++)
		list[i] = named_of(g->by, p, i);
	qsort(list, p->nr_processes, sizeof(*list), by_name);
	for (uint32_t i = 0, first = 0, nr_names = 0; i < p->nr_processes; i++) {
		if (list[i].id != list[first].id)
			nr_names = 0;
		if (list[i].id != list[first].id || list[i].hash != list[first].hash)
			first = i;
		join(g, p, list + first, i + 1 - first, &nr_names);
		if (folds_chooses(st, &p->processes[list[i].process]))
			g->sizes[g->leaders[list[i].process]] +=
				1 + p->processes[list[i].process].nr_more;
	}
	for (uint32_t i = 0; i < p->nr_processes; i++)
		g->sizes[i] = g->sizes[g->leaders[i]];
	free(list);
	return true;
}

static const struct folds_groups *groups_of(const struct ui_state *st, const struct profile *p,
					    struct folds_of *of)
{
	if (st->set.grouping == GROUPING_PID)
		return NULL;
	if (!of->groups.leaders) {
		of->groups.by = st->set.grouping;
		if (!make(&of->groups, st, p))
			folds_forget_groups(&of->groups);
	}
	return of->groups.leaders ? &of->groups : NULL;
}

/*
 * Nodes of folded trees: names, ids, marks. The main thread; folds_number()
 * on any thread.
 */

/* Nodes by id; open addressing. The author of a recording chooses the ids, so places are secret. */
struct folds_index {
	uint32_t *slots;
	uint32_t mask;
};

/* Return the id of a thread, or of its group. */
static uint32_t task_id(const struct profile *p, const struct folds_tree *t, uint32_t task)
{
	assert(task < p->nr_tasks);
	return t->config.leaders ? (uint32_t)folds_group(p, &p->tasks[task]) : p->tasks[task].id;
}

/* Return the id of a process, or of its group. */
static uint64_t process_id(const struct profile *p, const struct folds_tree *t, uint32_t process)
{
	assert(process < p->nr_processes);
	return t->config.ids ? hash_u64(t->config.ids[process])
			     : 1ull << 33 | p->processes[process].id;
}

/* Hash a node's path: its parent's hash and the node's identity. */
static uint32_t path_id(const struct profile *p, const struct folds_tree *t, uint32_t n)
{
	const struct fold_tree_node *node = &t->fold.nodes[n];
	uint64_t own = node->function != FOLD_NONE  ? p->functions[node->function].id
		       : node->task != FOLD_NONE    ? 1ull << 35 | task_id(p, t, node->task)
		       : node->process != FOLD_NONE ? process_id(p, t, node->process)
						    : 1ull << 34 | t->config.bottom_up;
	uint64_t parent = node->parent == FOLD_NONE ? 0 : t->ids[node->parent];

	assert(n < t->fold.nr_nodes);
	return (uint32_t)hash_u64(hash_u64(parent << 32) + own);
}

static bool make_index(struct folds_index *index, const struct folds_tree *t)
{
	uint32_t capacity = 64;

	while (capacity < 2 * t->fold.nr_nodes)
		capacity *= 2;
	index->slots = malloc(capacity * sizeof(*index->slots));
	if (!index->slots)
		return false;
	memset(index->slots, 0xff, capacity * sizeof(*index->slots));
	index->mask = capacity - 1;
	assert(!(capacity & index->mask) && t->fold.nr_nodes < capacity);
	for (uint32_t n = 0; n < t->fold.nr_nodes; n++) {
		uint32_t at = (uint32_t)keyhash_number(t->ids[n]) & index->mask;

		while (index->slots[at] != FOLD_NONE)
			at = (at + 1) & index->mask;
		index->slots[at] = n;
	}
	return true;
}

/* Make ids and index of a tree. Return false if there is no memory for them. */
static bool folds_number(const struct profile *p, struct folds_tree *t)
{
	t->ids = calloc(t->fold.nr_nodes, sizeof(*t->ids));
	t->index = calloc(1, sizeof(*t->index));
	if (!t->ids || !t->index)
		return false;
	for (uint32_t n = 0; n < t->fold.nr_nodes; n++)
		t->ids[n] = path_id(p, t, n);
	return make_index(t->index, t);
}

static void folds_forget_numbers(struct folds_tree *t)
{
	if (t->index)
		free(t->index->slots);
	free(t->index);
	free(t->ids);
	t->index = NULL;
	t->ids = NULL;
}

uint32_t folds_node(const struct folds_tree *t, uint32_t id)
{
	const struct folds_index *index = t->index;
	uint32_t at = (uint32_t)keyhash_number(id) & index->mask;

	while (index->slots[at] != FOLD_NONE && t->ids[index->slots[at]] != id)
		at = (at + 1) & index->mask;
	return index->slots[at];
}

void folds_row(const struct folds_tree *t, uint32_t n, struct row *row)
{
	const struct fold_tree_node *node = &t->fold.nodes[n];
	double all = t->fold.weight;

	assert(n < t->fold.nr_nodes);
	row->id = t->ids[n];
	row->self = all > 0 ? node->self / all : 0;
	row->total = all > 0 ? node->total / all : 0;
	row->count = node->count;
}

/* Find the slot of a node's mark. */
static uint32_t mark_at(const struct folds *s, uint32_t id)
{
	uint32_t at = id & (FOLDS_MARKS - 1);

	while (s->marks[at].mark != MARK_NONE && s->marks[at].id != id)
		at = (at + 1) & (FOLDS_MARKS - 1);
	return at;
}

enum folds_mark folds_mark_of(const struct folds *s, uint32_t id)
{
	return s->marks[mark_at(s, id)].mark;
}

void folds_mark(struct ui_state *st, uint32_t id, enum folds_mark mark)
{
	struct folds *s = st->folds;
	uint32_t at = mark_at(s, id);

	/* Keep it at most three quarters full: every search ends, after few steps. Most of the
	 * marks are of nodes that have no samples any more. */
	if (s->marks[at].mark == MARK_NONE && s->nr_marks >= FOLDS_MARKS / 4 * 3) {
		memset(s->marks, 0, sizeof(s->marks));
		s->nr_marks = 0;
		at = mark_at(s, id);
		ui_state_say(st, true,
			     "too many rows were folded by hand: these choices are dropped");
	}
	s->nr_marks += s->marks[at].mark == MARK_NONE;
	assert(s->nr_marks < FOLDS_MARKS);
	s->marks[at].id = id;
	s->marks[at].mark = (uint8_t)mark;
}

/* Name a thread, with its process unless that is evident: "api/worker-1[815]", "worker-*". */
static struct safe_text task_text(const struct ui_state *st, const struct fold_tree_node *node,
				  char *buf, size_t size)
{
	const struct profile *p = st->shown;
	const struct profile_task *task = &p->tasks[node->task];
	struct safe_text process = profile_process_name(&p->processes[node->process]);
	char comm[FORMAT_MAX * 2], number[16] = "";
	/* Names of threads often begin with that of the process: "nginx/worker". */
	bool plain = st->scope.drilled || !strncmp(process.str, task->comm.str, process.size);

	if (st->set.fold_threads)
		format_folded(comm, task->comm);
	else
		snprintf(number, sizeof(number), "[%d]", (int)task->tid);
	return text_format(buf, size, "%s%s%s%s", plain ? "" : process.str, plain ? "" : "/",
			   st->set.fold_threads ? comm : task->comm.str, number);
}

/* Name a process or a group of them: "make[812]", "cc1 x9". */
static struct safe_text process_text(const struct ui_state *st, uint32_t process, char *buf,
				     size_t size)
{
	const struct profile_process *p = &st->shown->processes[process];
	const struct folds_groups *groups = groups_of(st, st->shown, folds_of_shown(st));
	char name[TEXT_MAX];

	assert(process < st->shown->nr_processes);
	if (groups && (groups->sizes[process] > 1 || groups->by != GROUPING_NAME))
		return text_format(buf, size, "%s x%u", folds_group_name(groups->by, p, name).str,
				   groups->sizes[process]);
	return format_process(buf, size, profile_process_name(p), p->pid);
}

struct safe_text folds_text(const struct ui_state *st, const struct fold_tree_node *node, char *buf,
			    size_t size)
{
	const struct profile *p = st->shown;

	if (node->function != FOLD_NONE)
		return p->functions[node->function].name;
	if (node->task != FOLD_NONE && node->process < p->nr_processes)
		return task_text(st, node, buf, size);
	if (node->process != FOLD_NONE && node->process < p->nr_processes)
		return process_text(st, node->process, buf, size);
	return st->scope.drilled ? ui_state_clean(buf, size, st->scope.process_name)
				 : ui_state_target(p, buf, size);
}

bool folds_finds(const struct ui_state *st, const struct fold_tree_node *node,
		 const struct match *m)
{
	char buf[TEXT_MAX];

	if (node->function != FOLD_NONE)
		return match_finds_name(m, &st->shown->functions[node->function]);
	return match_finds(m, folds_text(st, node, buf, sizeof(buf)));
}

char folds_kind(const struct ui_state *st, const struct fold_tree_node *node)
{
	return node->function == FOLD_NONE ? 'p' : st->shown->functions[node->function].kind;
}

uint32_t folds_function(const struct profile *p, uint32_t id)
{
	for (uint32_t i = 0; p && i < p->nr_functions; i++)
		if (p->functions[i].id == id)
			return i;
	return FOLD_NONE;
}

/*
 * Each kind of fold: its input, how it is made and freed. The main thread; make() on any thread.
 */

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
	return s->p->has_source && by_scope(s, in, n);
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
		.limit = MAX(st->set.percent_limit / 100, LEAST_SHARE),
	};
	if (st->by_thread) {
		in->config.leaders = leaders_of(st, s->p, s->of);
	} else if (!st->scope.drilled && groups_of(st, s->p, s->of)) {
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
	e->times = malloc((p->nr_tasks + 1ULL) * WAIT_NR * sizeof(*e->times));
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

static const struct folds_recipe folds_recipes[FOLDS_NR] = {
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

/*
 * The folding thread. It runs folding_main(); all other functions run on the
 * main thread.
 *
 * Invariant: from folding_begin() until the job is done, profile and folds belong to
 * the thread; the lock orders both handovers.
 */

#define DISCARDS_MAX 4 /* more are freed by the caller */

struct folding {
	pthread_t thread;
	int fd;		 /* eventfd: a job is done */
	bool busy, lent; /* main thread: a job is given and not taken; its profile is lent */

	pthread_mutex_t lock; /* of the members below */
	pthread_cond_t changed;
	struct profile *profile;
	struct folds_of *of;
	bool waits, done, stop; /* the job is queued; it is done; the thread is to end */
	struct profile
		*discards[DISCARDS_MAX + 1]; /* the last one is for the profile being folded */
	unsigned int nr_discards;
};

static void fold(struct folding *f)
{
	const struct profile *p = f->profile;

	f->waits = false;
	pthread_mutex_unlock(&f->lock);
	folds_make(p, f->of);
	pthread_mutex_lock(&f->lock);
	wake_send(f->fd);
	f->done = true;
}

static void discard(struct folding *f)
{
	struct profile *p;

	assert(f->nr_discards);
	p = f->discards[--f->nr_discards];

	pthread_mutex_unlock(&f->lock);
	profile_free(p);
	pthread_mutex_lock(&f->lock);
}

static void *folding_main(void *arg)
{
	struct folding *f = arg;

	prctl(PR_SET_NAME, "folding");
	/* Lower than the main thread (app.c), which must not wait for this one. */
	if (getpriority(PRIO_PROCESS, 0) < 0)
		setpriority(PRIO_PROCESS, 0, 0);
	pthread_mutex_lock(&f->lock);
	while (!f->stop) {
		if (f->waits)
			fold(f);
		else if (f->nr_discards)
			discard(f);
		else
			pthread_cond_wait(&f->changed, &f->lock);
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

/* Start the thread. Return NULL, valid for all functions below, if it cannot start. */
static struct folding *folding_new(void)
{
	struct folding *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->fd = wake_new();
	if (f->fd < 0) {
		free(f);
		return NULL;
	}
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->changed, NULL);
	if (thread_start(&f->thread, 0, folding_main, f)) {
		close(f->fd);
		free(f);
		return NULL;
	}
	return f;
}

/* End the thread, and free its profile unless that is lent. */
static void folding_free(struct folding *f)
{
	if (!f)
		return;
	pthread_mutex_lock(&f->lock);
	f->stop = true;
	pthread_cond_signal(&f->changed);
	pthread_mutex_unlock(&f->lock);
	pthread_join(f->thread, NULL);
	while (f->nr_discards)
		profile_free(f->discards[--f->nr_discards]);
	if (!f->lent)
		profile_free(f->profile);
	close(f->fd);
	pthread_cond_destroy(&f->changed);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

static bool folding_is_busy(const struct folding *f)
{
	return f && f->busy;
}

/*
 * Make the wanted folds in @of, of @p: both belong to the thread until folding_take(). @lent: the
 * caller keeps the ownership of @p. Return false if there is no thread, or it is busy.
 */
static bool folding_begin(struct folding *f, struct profile *p, struct folds_of *of, bool lent)
{
	if (!f || f->busy)
		return false;
	f->busy = true;
	f->lent = lent;
	pthread_mutex_lock(&f->lock);
	assert(!f->profile && !f->waits && !f->done);
	f->profile = p;
	f->of = of;
	f->waits = true;
	pthread_cond_signal(&f->changed);
	pthread_mutex_unlock(&f->lock);
	return true;
}

/* Take the profile with its folds made (*@lent: it was lent); NULL: none is ready. */
static struct profile *folding_take(struct folding *f, bool *lent)
{
	struct profile *p = NULL;

	if (!f || !f->busy)
		return NULL;
	pthread_mutex_lock(&f->lock);
	if (f->done) {
		p = f->profile;
		assert(p && !f->waits);
		f->profile = NULL;
		wake_clear(f->fd);
		f->done = false;
		f->busy = false;
		*lent = f->lent;
	}
	pthread_mutex_unlock(&f->lock);
	return p;
}

/* Free a profile on the thread: a large one takes some ms. */
static void folding_discard(struct folding *f, struct profile *p)
{
	bool taken = false;

	if (f && p) {
		pthread_mutex_lock(&f->lock);
		/* A profile that is being folded is freed by the thread, after that. */
		taken = f->nr_discards < DISCARDS_MAX || p == f->profile;
		if (taken)
			f->discards[f->nr_discards++] = p;
		assert(f->nr_discards <= ARRAY_SIZE(f->discards));
		pthread_cond_signal(&f->changed);
		pthread_mutex_unlock(&f->lock);
	}
	if (!taken)
		profile_free(p);
}

void folds_release(const struct ui_state *st, struct profile *p)
{
	if (p != st->latest && p != st->shown && p != st->baseline)
		folding_discard(st->folding, p);
}

/* ---- of the shown profile ---- */

const struct folds_groups *folds_groups(const struct ui_state *st)
{
	return groups_of(st, st->shown, folds_of_shown(st));
}

const uint32_t *folds_leaders(const struct ui_state *st)
{
	return leaders_of(st, st->shown, folds_of_shown(st));
}

/* ---- the folds and their thread ---- */

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

void folds_free(struct ui_state *st)
{
	struct folds *s = st->folds;

	folding_free(st->folding);
	st->folding = NULL;
	st->folds = NULL;
	if (!s)
		return;
	forget(&s->shown);
	forget(&s->baseline);
	forget(&s->next);
	forget(&s->old);
	forget_drafts(s);
	for (size_t i = 0; i < ARRAY_SIZE(s->trends); i++)
		trend_fini(&s->trends[i]);
	free(s->boxes);
	free(s);
}

void folds_start(struct ui_state *st)
{
	assert(!st->folding);
	st->folding = folding_new();
}

int folds_fd(const struct ui_state *st)
{
	return folding_is_busy(st->folding) ? st->folding->fd : -1;
}

bool folds_begin(struct ui_state *st, struct profile *p)
{
	struct folds_of *of = plan_next(st, p);

	return of && folding_begin(st->folding, p, of, false);
}

void folds_lend(struct ui_state *st)
{
	bool is_free = st->folding && !st->folding->busy;
	struct profile *p;
	struct folds_of *of = is_free ? lend_wanted(st, &p) : NULL;

	if (of)
		folding_begin(st->folding, p, of, true);
}

struct profile *folds_take(struct ui_state *st, bool *made)
{
	struct profile *p;

	*made = false;
	p = folding_take(st->folding, made);
	if (!*made)
		return p;
	take_back(st);
	return NULL;
}
