// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Nodes of folded trees: names, ids, marks. The main thread; folds_number()
 * on any thread.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/keyhash.h"
#include "ui/fold/fold.h"

/* Nodes by id; open addressing. The author of a recording chooses the ids, so places are secret. */
struct folds_index {
	uint32_t *slots;
	uint32_t mask;
};

/* Return the id of a thread, or of its group. */
static uint32_t task_id(const struct profile *p, const struct folds_tree *t, uint32_t task)
{
	return t->config.leaders ? (uint32_t)folds_group(p, &p->tasks[task]) : p->tasks[task].id;
}

/* Return the id of a process, or of its group. */
static uint64_t process_id(const struct profile *p, const struct folds_tree *t, uint32_t process)
{
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

bool folds_number(const struct profile *p, struct folds_tree *t)
{
	t->ids = calloc(t->fold.nr_nodes, sizeof(*t->ids));
	t->index = calloc(1, sizeof(*t->index));
	if (!t->ids || !t->index)
		return false;
	for (uint32_t n = 0; n < t->fold.nr_nodes; n++)
		t->ids[n] = path_id(p, t, n);
	return make_index(t->index, t);
}

void folds_forget_numbers(struct folds_tree *t)
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
	struct safe_text process = p->processes[node->process].comm;
	char comm[FORMAT_MAX * 2], number[16] = "";
	/* Names of threads often begin with that of the process: "nginx/worker". */
	bool plain = st->scope.drilled || !strncmp(process.str, task->comm.str, process.size);

	if (st->fold_threads)
		format_folded(comm, task->comm);
	else
		snprintf(number, sizeof(number), "[%d]", (int)task->tid);
	return text_format(buf, size, "%s%s%s%s", plain ? "" : process.str, plain ? "" : "/",
			   st->fold_threads ? comm : task->comm.str, number);
}

/* Name a process or a group of them: "make[812]", "cc1 x9". */
static struct safe_text process_text(const struct ui_state *st, uint32_t process, char *buf,
				     size_t size)
{
	const struct profile_process *p = &st->shown->processes[process];
	const struct folds_groups *groups = folds_groups(st, st->shown, folds_of_shown(st));
	char name[TEXT_MAX];

	if (groups && (groups->sizes[process] > 1 || groups->by != GROUPING_NAME))
		return text_format(buf, size, "%s x%u", folds_group_name(groups->by, p, name).str,
				   groups->sizes[process]);
	return format_process(buf, size, p->comm, p->pid);
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
