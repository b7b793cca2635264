// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Folds of the shown profile, kept until it or the filter changes. The main
 * thread.
 *
 * Invariant: a fold that is valid was made of the shown profile.
 */
#include "ui/folds.h"

#include <stdlib.h>
#include <string.h>

#include "symbols/base.h"

/* Nobody looks at less than this share; and a tree of everything costs memory. */
#define LEAST_SHARE 0.00002

struct folds *folds_new(void)
{
	struct folds *s = calloc(1, sizeof(*s));

	for (size_t i = 0; s && i < ARRAY_SIZE(s->trends); i++)
		s->trends[i].first = 1;
	return s;
}

static void forget_tree(struct folds_tree *t)
{
	if (t->valid)
		fold_tree_fini(&t->fold);
	free(t->ids);
	t->ids = NULL;
	t->valid = false;
}

void folds_forget(struct folds *s)
{
	if (!s)
		return;
	for (int i = 0; i < FOLDS_NR; i++)
		forget_tree(&s->trees[i]);
	if (s->callers_valid)
		fold_callers_fini(&s->callers);
	if (s->functions_valid)
		fold_functions_fini(&s->functions);
	s->callers_valid = s->functions_valid = false;
	for (size_t i = 0; i < ARRAY_SIZE(s->tasks); i++) {
		free(s->tasks[i]);
		s->tasks[i] = NULL;
	}
}

void folds_free(struct folds *s)
{
	if (!s)
		return;
	folds_forget(s);
	for (size_t i = 0; i < ARRAY_SIZE(s->trends); i++)
		trend_fini(&s->trends[i]);
	baseline_fini(&s->baseline);
	free(s->boxes);
	free(s);
}

static bool in_cgroup(const struct ui_state *st, const struct profile_process *process)
{
	const struct match *m = &st->cgroup;
	struct safe_text none = TEXT("");

	return !match_active(m) ||
	       (match_finds(m, process->cgroup.str ? process->cgroup : none) ||
		match_finds(m, process->container.str ? process->container : none)) != m->negate;
}

/* Which tasks count; NULL: all (or there is no memory to leave some out). */
static const uint8_t *tasks_that_count(const struct ui_state *st, bool group)
{
	const struct profile *p = st->shown;
	uint8_t **mask = &st->folds->tasks[group];
	char buf[FORMAT_MAX * 2];

	if (*mask)
		return *mask;
	*mask = malloc(p->nr_tasks + 1ULL);
	for (uint32_t i = 0; i < p->nr_tasks && *mask; i++) {
		const struct profile_task *task = &p->tasks[i];

		(*mask)[i] = task->process < p->nr_processes &&
			     in_cgroup(st, &p->processes[task->process]) &&
			     (!group || !strcmp(format_folded(buf, task->comm).str, st->thread_group));
	}
	return *mask;
}

void folds_filter_all(const struct ui_state *st, struct fold_filter *f)
{
	*f = (struct fold_filter){ .process = UINT32_MAX,
				   .task = UINT32_MAX,
				   .hide_kernel = st->hide_kernel,
				   .hide_user = st->hide_user };
	if (!st->shown)
		return;
	f->event = ui_state_event(st, st->shown);
	if (match_active(&st->cgroup) && st->folds)
		f->tasks = tasks_that_count(st, false);
}

bool folds_filter(const struct ui_state *st, struct fold_filter *f)
{
	folds_filter_all(st, f);
	if (!st->shown)
		return false;
	if (st->drilled)
		f->process = ui_state_process(st);
	f->task = ui_state_thread(st);
	if (st->drilled && st->thread_group[0] && st->folds)
		f->tasks = tasks_that_count(st, true);
	/* It has no samples in this window: not the same as all of them. */
	return !(st->drilled && (f->process == UINT32_MAX ||
				 (st->in_thread && f->task == UINT32_MAX)));
}

static bool same_filter(const struct fold_filter *a, const struct fold_filter *b)
{
	return a->event == b->event && a->process == b->process && a->task == b->task &&
	       a->tasks == b->tasks && a->hide_kernel == b->hide_kernel &&
	       a->hide_user == b->hide_user;
}

static bool same_config(const struct fold_tree_config *a, const struct fold_tree_config *b)
{
	return same_filter(&a->filter, &b->filter) && a->order == b->order &&
	       a->bottom_up == b->bottom_up && a->by_process == b->by_process &&
	       a->fold_recursion == b->fold_recursion && a->limit == b->limit;
}

const struct fold_functions *folds_functions(const struct ui_state *st)
{
	struct folds *s = st->folds;
	struct fold_filter f;

	if (!s || !folds_filter(st, &f))
		return NULL;
	if (s->functions_valid && same_filter(&f, &s->functions_filter))
		return &s->functions;
	if (s->functions_valid)
		fold_functions_fini(&s->functions);
	s->functions_filter = f;
	s->functions_valid = !fold_functions(st->shown, &f, &s->functions);
	return s->functions_valid ? &s->functions : NULL;
}

static uint64_t hash_text(uint64_t h, const char *text)
{
	for (; *text; text++)
		h = hash_u64(h + (unsigned char)*text);
	return h;
}

uint64_t folds_key(const struct ui_state *st)
{
	uint64_t key = hash_u64(ui_state_event(st, st->shown) + 1ull);

	if (st->drilled)
		key = hash_u64(key + st->process + 1ull);
	if (st->drilled && st->in_thread)
		key = hash_u64(key ^ (st->thread + 1ull));
	if (st->drilled)
		key = hash_text(key, st->thread_group);
	return hash_text(key, st->cgroup.text);
}

struct trend *folds_trend(const struct ui_state *st)
{
	return &st->folds->trends[st->drilled];
}

void folds_note(const struct ui_state *st)
{
	const struct fold_functions *fold;
	struct trend *t;

	if (!st->folds || !st->shown)
		return;
	t = folds_trend(st);
	if (!trend_wants(t, folds_key(st), st->shown->running_ns))
		return;
	fold = folds_functions(st);
	if (fold)
		trend_note(t, folds_key(st), st->shown->running_ns, st->shown, fold);
}

void folds_compare(const struct ui_state *st, struct row *row, double count, double all)
{
	static const enum row_change changes[] = {
		[BASELINE_NONE] = CHANGE_UNKNOWN,
		[BASELINE_UNSURE] = CHANGE_UNSURE,
		[BASELINE_SURE] = CHANGE_SURE,
		[BASELINE_NEW] = CHANGE_NEW,
	};
	const struct baseline *b = &st->folds->baseline;
	uint64_t window = MAX(st->config->window_ns / 1000000000u, 1u);
	double before, delta;

	if (baseline_is_set(b) && b->key == folds_key(st)) {
		row->change = (uint8_t)changes[baseline_compare(b, (uint32_t)row->id, row->self,
								count, all, &delta)];
		row->delta = (float)delta;
		return;
	}
	before = window < TREND_SECONDS
			 ? trend_share(folds_trend(st), (uint32_t)row->id, (uint32_t)window)
			 : -1;
	if (before < 0 || folds_trend(st)->key != folds_key(st))
		return;
	row->change = CHANGE_WINDOW;
	row->delta = (float)(row->self - before);
}

/* Hash of a node's path: of its parent's and its own name. */
static uint32_t path_id(const struct profile *p, const struct folds_tree *t, uint32_t n)
{
	const struct fold_tree_node *node = &t->fold.nodes[n];
	uint64_t own = node->function != FOLD_NONE  ? p->functions[node->function].id
		       : node->process != FOLD_NONE ? 1ull << 33 | p->processes[node->process].id
						    : 1ull << 34 | t->config.bottom_up;
	uint64_t parent = node->parent == FOLD_NONE ? 0 : t->ids[node->parent];

	return (uint32_t)hash_u64(hash_u64(parent << 32) + own);
}

const struct folds_tree *folds_tree(const struct ui_state *st, enum folds_which kind)
{
	struct folds *s = st->folds;
	struct folds_tree *t = s ? &s->trees[kind] : NULL;
	struct fold_tree_config config = { .by_process = !st->drilled };

	if (!s || !folds_filter(st, &config.filter))
		return NULL;
	config.order = kind == FOLDS_FLAME ? FOLD_BY_ID : FOLD_BY_WEIGHT;
	config.bottom_up = kind == FOLDS_TREE && s->bottom_up;
	config.fold_recursion = s->fold_recursion;
	config.limit = MAX(st->percent_limit / 100, LEAST_SHARE);
	if (t->valid && same_config(&config, &t->config))
		return t;
	forget_tree(t);
	t->config = config;
	if (fold_tree(st->shown, &config, &t->fold))
		return NULL;
	t->valid = true;
	t->ids = calloc(t->fold.nr_nodes, sizeof(*t->ids));
	if (!t->ids) {
		forget_tree(t);
		return NULL;
	}
	for (uint32_t n = 0; n < t->fold.nr_nodes; n++)
		t->ids[n] = path_id(st->shown, t, n);
	return t;
}

const struct fold_callers *folds_callers(const struct ui_state *st, uint32_t function)
{
	struct folds *s = st->folds;
	struct fold_filter f;

	if (!s || !folds_filter(st, &f) || function >= st->shown->nr_functions)
		return NULL;
	if (s->callers_valid && s->callers_of == function && same_filter(&f, &s->callers_filter))
		return &s->callers;
	if (s->callers_valid)
		fold_callers_fini(&s->callers);
	s->callers_of = function;
	s->callers_filter = f;
	s->callers_valid = !fold_callers(st->shown, &f, function, &s->callers);
	return s->callers_valid ? &s->callers : NULL;
}

/* Where the mark of a node is, or would be. */
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

bool folds_mark(struct folds *s, uint32_t id, enum folds_mark mark)
{
	uint32_t at = mark_at(s, id);

	if (s->marks[at].mark == MARK_NONE) {
		/* A table that is never full is searched in a few steps. */
		if (s->nr_marks >= FOLDS_MARKS / 4 * 3)
			return false;
		s->nr_marks++;
	}
	s->marks[at].id = id;
	s->marks[at].mark = (uint8_t)mark;
	return true;
}

struct safe_text folds_text(const struct ui_state *st, const struct fold_tree_node *node,
			     char *buf, size_t size)
{
	const struct profile *p = st->shown;

	if (node->function != FOLD_NONE)
		return p->functions[node->function].name;
	if (node->process != FOLD_NONE)
		return text_format(buf, size, "%s[%d]", p->processes[node->process].comm.str,
				   (int)p->processes[node->process].pid);
	return ui_clean(buf, size, st->drilled ? st->process_name : p->target);
}

char folds_kind(const struct ui_state *st, const struct fold_tree_node *node)
{
	return node->function == FOLD_NONE ? 'p' : st->shown->functions[node->function].kind;
}

uint32_t folds_function(const struct ui_state *st, uint32_t id)
{
	for (uint32_t i = 0; st->shown && i < st->shown->nr_functions; i++)
		if (st->shown->functions[i].id == id)
			return i;
	return FOLD_NONE;
}

uint32_t folds_node(const struct folds_tree *t, uint32_t id)
{
	for (uint32_t n = 0; n < t->fold.nr_nodes; n++)
		if (t->ids[n] == id)
			return n;
	return FOLD_NONE;
}
