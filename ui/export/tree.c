// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Stacks merged into a tree.
 */
#include "ui/export/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ui/export/dense.h"

struct making {
	const struct snapshot *s;
	struct tree *t;
	struct dense nodes; /* (parent, function or process) -> node - 1 */
	uint32_t capacity;
	uint32_t *same; /* by process: the first process of that name */
};

/* Return the node below @parent for @key: a function, or (from nr_functions on) a process. */
static uint32_t node_of(struct making *m, uint32_t parent, uint32_t key)
{
	uint32_t nr_functions = m->s->profile->nr_functions, n;
	struct tree *t = m->t;
	struct tree_node *nodes;
	bool is_new;

	n = dense_add(&m->nodes, (uint64_t)parent << 32 | key, &is_new);
	if (n == DENSE_NONE || !is_new)
		return n == DENSE_NONE ? TREE_NONE : n + 1;
	if (n + 1 >= m->capacity) {
		nodes = reallocarray(t->nodes, m->capacity * 2ULL, sizeof(*nodes));
		if (!nodes)
			return TREE_NONE;
		t->nodes = nodes;
		m->capacity *= 2;
	}
	t->nodes[n + 1] = (struct tree_node){
		.function = key < nr_functions ? key : TREE_NONE,
		.process = key < nr_functions ? TREE_NONE : key - nr_functions,
		.parent = parent,
		.child = TREE_NONE,
		.next = TREE_NONE,
		.depth = t->nodes[parent].depth + 1,
	};
	t->nr_nodes = n + 2;
	t->depth = MAX(t->depth, t->nodes[n + 1].depth);
	return n + 1;
}

static int add_stack(struct making *m, const struct snapshot_stack *stack)
{
	const struct snapshot *s = m->s;
	uint32_t process = s->profile->tasks[stack->task].process;
	uint32_t n = node_of(m, 0, s->profile->nr_functions + m->same[process]);

	for (uint32_t k = 0; n != TREE_NONE; k++) {
		m->t->nodes[n].total += stack->weight;
		if (k == stack->nr)
			break;
		n = node_of(m, n, s->frames[s->calls[stack->first + k]].function);
	}
	if (n == TREE_NONE)
		return -ENOMEM;
	m->t->nodes[n].self += stack->weight;
	m->t->nodes[0].total += stack->weight;
	return 0;
}

struct named {
	struct safe_text comm;
	uint32_t process;
};

static int compare_named(const void *pa, const void *pb)
{
	const struct named *a = pa, *b = pb;
	int c = strcmp(a->comm.str, b->comm.str);

	return c ? c : COMPARE(a->process, b->process);
}

/* Find the processes of the same name. */
static int find_same(struct making *m)
{
	const struct profile *p = m->s->profile;
	struct named *all = calloc(p->nr_processes + 1ULL, sizeof(*all));

	m->same = calloc(p->nr_processes + 1ULL, sizeof(*m->same));
	if (!all || !m->same) {
		free(all);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < p->nr_processes; i++)
		all[i] = (struct named){ p->processes[i].comm, i };
	qsort(all, p->nr_processes, sizeof(*all), compare_named);
	for (uint32_t i = 0, first = 0; i < p->nr_processes; i++) {
		if (strcmp(all[i].comm.str, all[first].comm.str))
			first = i;
		m->same[all[i].process] = all[first].process;
	}
	free(all);
	return 0;
}

struct sibling {
	double total;
	uint32_t parent, node;
};

static int compare_siblings(const void *pa, const void *pb)
{
	const struct sibling *a = pa, *b = pb;

	if (a->parent != b->parent)
		return a->parent < b->parent ? -1 : 1;
	if (a->total != b->total)
		return a->total < b->total ? 1 : -1;
	return COMPARE(a->node, b->node);
}

/* Link the children of each node in order of their weight. */
static int link_children(struct tree *t)
{
	struct sibling *all = calloc(t->nr_nodes, sizeof(*all));

	if (!all)
		return -ENOMEM;
	for (uint32_t i = 1; i < t->nr_nodes; i++)
		all[i - 1] = (struct sibling){ t->nodes[i].total, t->nodes[i].parent, i };
	qsort(all, t->nr_nodes - 1, sizeof(*all), compare_siblings);
	for (uint32_t i = t->nr_nodes - 1; i-- > 0;) {
		struct tree_node *parent = &t->nodes[all[i].parent];

		t->nodes[all[i].node].next = parent->child;
		parent->child = all[i].node;
	}
	free(all);
	return 0;
}

int tree_make(struct tree *t, const struct snapshot *s)
{
	struct making m = { .s = s, .t = t, .capacity = 1024 };
	int code;

	*t = (struct tree){ .nodes = calloc(m.capacity, sizeof(*t->nodes)), .nr_nodes = 1 };
	code = t->nodes ? find_same(&m) : -ENOMEM;
	if (t->nodes)
		t->nodes[0] = (struct tree_node){ TREE_NONE, TREE_NONE, TREE_NONE, TREE_NONE,
						  TREE_NONE, 0,		0,	   0 };
	for (uint32_t i = 0; i < s->nr_stacks && !code; i++)
		code = add_stack(&m, &s->stacks[i]);
	if (!code)
		code = link_children(t);
	dense_fini(&m.nodes);
	free(m.same);
	if (code)
		tree_fini(t);
	return code;
}

void tree_fini(struct tree *t)
{
	free(t->nodes);
	*t = (struct tree){ 0 };
}

struct safe_text tree_text(const struct snapshot *s, const struct tree_node *node)
{
	if (node->function != TREE_NONE)
		return s->profile->functions[node->function].name;
	return node->process == TREE_NONE ? TEXT("all") : s->profile->processes[node->process].comm;
}

char tree_class(const struct snapshot *s, const struct tree_node *node)
{
	const struct profile_function *fn;

	if (node->function == TREE_NONE)
		return 'p';
	fn = &s->profile->functions[node->function];
	if (fn->kernel || fn->kind == 'k')
		return 'k';
	if (fn->inlined)
		return 'i';
	if (profile_language_name(fn->kind))
		return 's';
	return fn->kind == 'u' || fn->kind == 'j' ? fn->kind : 'q';
}
