// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Processes as a tree. Runs on: the main thread.
 */
#include "ui/view/process_tree.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/keyhash.h"
#include "ui/fold/fold.h"

#define NONE	   UINT32_MAX
#define LEVELS_MAX 64 /* deeper processes are roots */
#define RAILS_MAX  31

const struct profile_process *process_tree_at(const struct profile *p, uint32_t i)
{
	return i < p->nr_processes ? &p->processes[i] : &p->ancestors[i - p->nr_processes];
}

/* pid -> the latest process that has it; open addressing. */
struct by_pid {
	uint32_t *slots;
	uint32_t capacity;
};

static uint32_t *slot_of(const struct by_pid *t, const struct profile *p, pid_t pid)
{
	uint32_t i = (uint32_t)keyhash_number((uint64_t)pid) & (t->capacity - 1);

	while (t->slots[i] != NONE && process_tree_at(p, t->slots[i])->pid != pid)
		i = (i + 1) & (t->capacity - 1);
	return &t->slots[i];
}

static int by_pid_make(struct by_pid *t, const struct profile *p, uint32_t nr)
{
	for (t->capacity = 16; t->capacity < 2 * nr; t->capacity *= 2)
		;
	t->slots = malloc(t->capacity * sizeof(*t->slots));
	if (!t->slots)
		return -ENOMEM;
	memset(t->slots, 0xff, t->capacity * sizeof(*t->slots));
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t *slot = slot_of(t, p, process_tree_at(p, i)->pid);

		/* After an exec, later children belong to the new process. */
		if (*slot == NONE || process_tree_at(p, *slot)->id < process_tree_at(p, i)->id)
			*slot = i;
	}
	return 0;
}

/*
 * Hang @i below @at, unless that makes a cycle, or a chain of more than LEVELS_MAX: rows are drawn
 * by recursion. @below: levels below each; children may come before their parents.
 */
static void hang_below(struct process_tree *t, uint8_t *below, uint32_t i, uint32_t at)
{
	unsigned int levels = below[i] + 1U;

	for (uint32_t up = at; up != NONE; up = t->parents[up])
		if (up == i || ++levels > LEVELS_MAX)
			return;
	t->parents[i] = at;
	levels = below[i] + 1U;
	for (uint32_t up = at; up != NONE && below[up] < levels; up = t->parents[up])
		below[up] = (uint8_t)levels++;
}

int process_tree_make(struct process_tree *t, const struct profile *p)
{
	struct by_pid pids;
	uint8_t *below;

	t->nr = p->nr_processes + p->nr_ancestors;
	t->parents = malloc((t->nr + 1ULL) * sizeof(*t->parents));
	below = calloc(t->nr + 1ULL, sizeof(*below));
	if (!t->parents || !below || by_pid_make(&pids, p, t->nr)) {
		free(t->parents);
		free(below);
		return -ENOMEM;
	}
	memset(t->parents, 0xff, (t->nr + 1ULL) * sizeof(*t->parents));
	for (uint32_t i = 0; i < t->nr; i++) {
		pid_t parent = process_tree_at(p, i)->parent;
		uint32_t at = parent > 0 ? *slot_of(&pids, p, parent) : NONE;

		if (at != NONE)
			hang_below(t, below, i, at);
	}
	free(pids.slots);
	free(below);
	return 0;
}

void process_tree_fini(struct process_tree *t)
{
	free(t->parents);
}

uint32_t process_tree_mark(uint64_t id)
{
	return (uint32_t)hash_u64(1ull << 40 | id);
}

/* Rows as a tree. */
struct arrangement {
	const struct ui_state *st;
	const struct list *list;
	uint32_t *child, *next; /* of each row; child[nr]: the first root */
	struct row *rows;	/* rows in their new order */
	uint32_t nr;
};

static void put(struct arrangement *a, uint32_t first, unsigned int depth, uint32_t rails)
{
	for (uint32_t i = first; i != NONE; i = a->next[i]) {
		struct row *row = &a->rows[a->nr++];

		*row = a->list->rows[i];
		row->depth = (uint8_t)depth;
		row->rails = rails;
		if (a->next[i] != NONE && depth <= RAILS_MAX)
			row->rails |= 1u << depth;
		row->parent = a->child[i] != NONE;
		row->folded = row->parent && a->st->folds &&
			      folds_mark_of(a->st->folds, process_tree_mark(row->id)) ==
				      MARK_CLOSED;
		if (row->parent && !row->folded)
			put(a, a->child[i], depth + 1, row->rails);
	}
}

/* Link each row to its nearest ancestor with a row; the last first, to keep the order of siblings.
 */
static void hang(struct arrangement *a, const struct process_tree *t, uint32_t *row_of)
{
	uint32_t nr = a->list->nr;

	memset(row_of, 0xff, t->nr * sizeof(*row_of));
	memset(a->child, 0xff, (nr + 1ULL) * sizeof(*a->child));
	for (uint32_t i = 0; i < nr; i++)
		row_of[a->list->rows[i].index] = i;
	for (uint32_t i = nr; i-- > 0;) {
		uint32_t up = t->parents[a->list->rows[i].index], at = nr;

		while (up != NONE && row_of[up] == NONE)
			up = t->parents[up];
		if (up != NONE)
			at = row_of[up];
		a->next[i] = a->child[at];
		a->child[at] = i;
	}
}

void process_tree_arrange(const struct ui_state *st, struct list *list)
{
	struct arrangement a = { .st = st, .list = list };
	struct process_tree t;
	uint32_t *row_of;

	if (!st->shown || !list->nr || process_tree_make(&t, st->shown))
		return;
	row_of = malloc((t.nr + 1ULL) * sizeof(*row_of));
	a.child = malloc((list->nr + 1ULL) * sizeof(*a.child));
	a.next = malloc(list->nr * sizeof(*a.next));
	a.rows = malloc(list->capacity * sizeof(*a.rows));
	if (row_of && a.child && a.next && a.rows) {
		hang(&a, &t, row_of);
		put(&a, a.child[list->nr], 0, 0);
		free(list->rows);
		list->rows = a.rows;
		assert(a.nr <= list->nr);
		list->nr = a.nr;
		a.rows = NULL;
	}
	free(row_of);
	free(a.child);
	free(a.next);
	free(a.rows);
	process_tree_fini(&t);
}
