// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Folds of the shown profile, kept until it or the filter changes. The main
 * thread.
 *
 * Invariant: a fold that is valid was made of the shown profile, or of the
 * baseline.
 */
#include "ui/folds.h"

#include <stdio.h>
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

/* Nodes by id; open addressing. */
struct folds_index {
	uint32_t *slots;		/* NULL: not made yet */
	uint32_t mask;
};

static void forget_tree(struct folds_tree *t)
{
	if (t->valid)
		fold_tree_fini(&t->fold);
	if (t->index)
		free(t->index->slots);
	free(t->index);
	free(t->ids);
	t->index = NULL;
	t->ids = NULL;
	t->valid = false;
}

static void forget_functions(struct folds_of *of)
{
	if (of->functions_valid)
		fold_functions_fini(&of->functions);
	free(of->lines);
	of->lines = NULL;
	of->functions_valid = false;
}

static void forget(struct folds_of *of)
{
	for (int i = 0; i < FOLDS_NR; i++)
		forget_tree(&of->trees[i]);
	if (of->callers_valid)
		fold_callers_fini(&of->callers);
	forget_functions(of);
	of->callers_valid = false;
	for (size_t i = 0; i < ARRAY_SIZE(of->tasks); i++) {
		free(of->tasks[i]);
		of->tasks[i] = NULL;
	}
	free(of->leaders);
	of->leaders = NULL;
}

void folds_forget(struct folds *s)
{
	if (s)
		forget(&s->shown);
}

void folds_forget_baseline(struct folds *s)
{
	if (s)
		forget(&s->baseline);
}

struct folds_of *folds_of(const struct ui_state *st)
{
	bool baseline = st->baseline && st->shown == st->baseline;

	return baseline ? &st->folds->baseline : &st->folds->shown;
}

void folds_free(struct folds *s)
{
	if (!s)
		return;
	forget(&s->shown);
	forget(&s->baseline);
	for (size_t i = 0; i < ARRAY_SIZE(s->trends); i++)
		trend_fini(&s->trends[i]);
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
	uint8_t **mask = &folds_of(st)->tasks[group];
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
	       a->bottom_up == b->bottom_up && a->first == b->first && a->leaders == b->leaders &&
	       a->fold_recursion == b->fold_recursion && a->limit == b->limit;
}

const struct fold_functions *folds_functions(const struct ui_state *st)
{
	struct folds_of *s = st->folds ? folds_of(st) : NULL;
	struct fold_filter f;

	if (!s || !folds_filter(st, &f))
		return NULL;
	if (s->functions_valid && same_filter(&f, &s->functions_filter))
		return &s->functions;
	forget_functions(s);
	s->functions_filter = f;
	s->functions_valid = !fold_functions(st->shown, &f, &s->functions);
	return s->functions_valid ? &s->functions : NULL;
}

const struct profile_line *folds_line(const struct ui_state *st, uint32_t function)
{
	const struct profile *p = st->shown;
	struct folds_of *s = folds_functions(st) ? folds_of(st) : NULL;
	uint32_t line;

	if (!s || !p->frame_lines || function >= p->nr_functions)
		return NULL;
	if (!s->lines) {
		s->lines = malloc((p->nr_functions + 1ULL) * sizeof(*s->lines));
		if (s->lines && fold_lines(p, &s->functions_filter, s->lines)) {
			free(s->lines);
			s->lines = NULL;
		}
	}
	line = s->lines ? s->lines[function] : PROFILE_NO_LINE;
	return line < p->nr_lines ? &p->lines[line] : NULL;
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

void folds_compare(const struct ui_state *st, struct row *row)
{
	uint64_t window = MAX(st->config->window_ns / 1000000000u, 1u);
	double before = window < TREND_SECONDS ? trend_share(folds_trend(st), (uint32_t)row->id,
							     (uint32_t)window)
					       : -1;

	if (before < 0 || folds_trend(st)->key != folds_key(st))
		return;
	row->change = CHANGE_WINDOW;
	row->delta = (float)(row->self - before);
}

/* The name that a thread shares with others of its process: equal for equal ones. */
static uint64_t hash_group(const struct profile *p, const struct profile_task *task)
{
	char buf[FORMAT_MAX * 2];
	uint64_t process = task->process < p->nr_processes ? p->processes[task->process].id : 0;

	return hash_text(hash_u64(process + 1), format_folded(buf, task->comm).str);
}

struct member {
	uint64_t group;
	uint32_t task;
};

static int by_group(const void *pa, const void *pb)
{
	const struct member *a = pa, *b = pb;

	if (a->group != b->group)
		return a->group > b->group ? 1 : -1;
	return (a->task > b->task) - (a->task < b->task);
}

/* By task, the first of those named alike; NULL: each for itself. */
static const uint32_t *leaders_of(const struct ui_state *st)
{
	const struct profile *p = st->shown;
	uint32_t **leaders = &folds_of(st)->leaders;
	struct member *members;

	if (!st->fold_threads || *leaders)
		return st->fold_threads ? *leaders : NULL;
	members = calloc(p->nr_tasks + 1ULL, sizeof(*members));
	*leaders = calloc(p->nr_tasks + 1ULL, sizeof(**leaders));
	if (!members || !*leaders)
		goto out;
	for (uint32_t i = 0; i < p->nr_tasks; i++)
		members[i] = (struct member){ hash_group(p, &p->tasks[i]), i };
	qsort(members, p->nr_tasks, sizeof(*members), by_group);
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

/* What a thread, or the group that it stands for, is known by. */
static uint32_t task_id(const struct profile *p, const struct folds_tree *t, uint32_t task)
{
	return t->config.leaders ? (uint32_t)hash_group(p, &p->tasks[task]) : p->tasks[task].id;
}

/* Hash of a node's path: of its parent's and its own name. */
static uint32_t path_id(const struct profile *p, const struct folds_tree *t, uint32_t n)
{
	const struct fold_tree_node *node = &t->fold.nodes[n];
	uint64_t own = node->function != FOLD_NONE  ? p->functions[node->function].id
		       : node->task != FOLD_NONE    ? 1ull << 35 | task_id(p, t, node->task)
		       : node->process != FOLD_NONE ? 1ull << 33 | p->processes[node->process].id
						    : 1ull << 34 | t->config.bottom_up;
	uint64_t parent = node->parent == FOLD_NONE ? 0 : t->ids[node->parent];

	return (uint32_t)hash_u64(hash_u64(parent << 32) + own);
}

/* What the tree of @kind is made by, as things are. */
static bool tree_config(const struct ui_state *st, enum folds_which kind,
			struct fold_tree_config *config)
{
	const struct folds *s = st->folds;

	*config = (struct fold_tree_config){
		.first = st->by_thread ? FOLD_TASKS : st->drilled ? FOLD_FUNCTIONS : FOLD_PROCESSES,
		.order = kind == FOLDS_FLAME ? FOLD_BY_ID : FOLD_BY_WEIGHT,
		.bottom_up = kind == FOLDS_TREE && s->bottom_up,
		.fold_recursion = s->fold_recursion,
		.limit = MAX(st->percent_limit / 100, LEAST_SHARE),
	};
	if (!folds_filter(st, &config->filter))
		return false;
	config->leaders = st->by_thread ? leaders_of(st) : NULL;
	return true;
}

const struct folds_tree *folds_tree(const struct ui_state *st, enum folds_which kind)
{
	struct folds_tree *t = st->folds ? &folds_of(st)->trees[kind] : NULL;
	struct fold_tree_config config;

	if (!t || !tree_config(st, kind, &config))
		return NULL;
	if (t->valid && same_config(&config, &t->config))
		return t;
	forget_tree(t);
	t->config = config;
	if (fold_tree(st->shown, &config, &t->fold))
		return NULL;
	t->valid = true;
	t->ids = calloc(t->fold.nr_nodes, sizeof(*t->ids));
	t->index = calloc(1, sizeof(*t->index));
	if (!t->ids || !t->index) {
		forget_tree(t);
		return NULL;
	}
	for (uint32_t n = 0; n < t->fold.nr_nodes; n++)
		t->ids[n] = path_id(st->shown, t, n);
	return t;
}

void folds_row(const struct folds_tree *t, uint32_t n, struct row *row)
{
	const struct fold_tree_node *node = &t->fold.nodes[n];
	double all = t->fold.weight;

	row->id = t->ids[n];
	row->self = all > 0 ? node->self / all : 0;
	row->total = all > 0 ? node->total / all : 0;
	row->count = node->count;
}

const struct fold_callers *folds_callers(const struct ui_state *st, uint32_t function)
{
	struct folds_of *s = st->folds ? folds_of(st) : NULL;
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

/* A thread, with its process where that is not plain: "api/worker-1[815]", "worker-*". */
static struct safe_text task_text(const struct ui_state *st, const struct fold_tree_node *node,
				  char *buf, size_t size)
{
	const struct profile *p = st->shown;
	const struct profile_task *task = &p->tasks[node->task];
	struct safe_text process = p->processes[node->process].comm;
	char comm[FORMAT_MAX * 2], number[16] = "";
	bool plain = st->drilled || !strcmp(process.str, task->comm.str);

	if (st->fold_threads)
		format_folded(comm, task->comm);
	else
		snprintf(number, sizeof(number), "[%d]", (int)task->tid);
	return text_format(buf, size, "%s%s%s%s", plain ? "" : process.str, plain ? "" : "/",
			   st->fold_threads ? comm : task->comm.str, number);
}

struct safe_text folds_text(const struct ui_state *st, const struct fold_tree_node *node,
			     char *buf, size_t size)
{
	const struct profile *p = st->shown;

	if (node->function != FOLD_NONE)
		return p->functions[node->function].name;
	if (node->task != FOLD_NONE && node->process < p->nr_processes)
		return task_text(st, node, buf, size);
	if (node->process != FOLD_NONE && node->process < p->nr_processes)
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

static void make_index(struct folds_index *index, const struct folds_tree *t)
{
	uint32_t capacity = 64;

	while (capacity < 2 * t->fold.nr_nodes)
		capacity *= 2;
	index->slots = malloc(capacity * sizeof(*index->slots));
	if (!index->slots)
		return;
	memset(index->slots, 0xff, capacity * sizeof(*index->slots));
	index->mask = capacity - 1;
	for (uint32_t n = 0; n < t->fold.nr_nodes; n++) {
		uint32_t at = t->ids[n] & index->mask;

		while (index->slots[at] != FOLD_NONE)
			at = (at + 1) & index->mask;
		index->slots[at] = n;
	}
}

uint32_t folds_node(const struct folds_tree *t, uint32_t id)
{
	const struct folds_index *index = t->index;
	uint32_t at;

	if (!index->slots)
		make_index(t->index, t);
	if (!index->slots)
		return FOLD_NONE;
	at = id & index->mask;
	while (index->slots[at] != FOLD_NONE && t->ids[index->slots[at]] != id)
		at = (at + 1) & index->mask;
	return index->slots[at];
}
