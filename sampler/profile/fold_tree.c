// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A profile folded into a call tree. Pure; any thread.
 *
 * Each cell becomes an item that walks its stack's path, root first (or leaf
 * first). The items of a node are dealt out by their next function, like cards, so that the items
 * of every child are side by side. The weight of a node is known before its children: light ones
 * are never expanded.
 *
 * A node is expanded with all below it before the next one is: soon the part of its items' stacks
 * that is read fits into the cache.
 */
#include "sampler/profile/profile.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"

#define NONE FOLD_NONE

/* 75 MB; in a tree with a limit. */
#define NODES_MAX (1U << 20)

/* A cell on its way along a path. */
struct item {
	uint32_t at, end; /* in frames: the next one, a step beyond the last */
	double count, weight;
};

/* The sums of one child while its parent is expanded. */
struct hand {
	uint32_t key;	    /* function, or nr_functions + process or task */
	uint32_t nr, first; /* items */
	uint64_t order;	    /* id, for equal weights */
	double count, weight;
};

struct range {
	uint32_t first, nr;
};

struct builder {
	const struct profile *p;
	const struct fold_tree_config *config;
	struct fold_tree *out;
	uint32_t capacity;
	struct range *ranges; /* of each node: its items */
	/* The walked frames: the profile's; or paths with some frames left out. */
	const uint32_t *frames;
	uint32_t step; /* to the next one: 1, or one back */
	uint32_t *paths;
	struct range *path_of; /* of each stack, in paths */
	struct item *items, *scratch;
	uint32_t *keys; /* the next function of each item, while a node is expanded */
	uint32_t nr_items;
	uint32_t *place; /* of each key: its hand, while a node is expanded */
	struct hand *hands;
	uint32_t nr_keys;
	double limit; /* weight */
};

static bool is_hidden(const struct profile_function *fn, const struct fold_filter *f)
{
	return fn->kernel || fn->kind == 'k' ? f->hide_kernel : f->hide_user;
}

/* Write the path of a stack; returns its length. @where is scratch, one per function. */
static uint32_t write_path(const struct builder *b, const struct profile_stack *stack,
			   uint32_t *path, uint32_t *where)
{
	const struct fold_tree_config *config = b->config;
	const struct fold_filter *f = &config->filter;
	const uint32_t *frames = &b->p->frames[stack->first];
	bool hides = f->hide_kernel || f->hide_user;
	uint32_t nr = 0;

	for (uint32_t i = 0; i < stack->nr; i++) {
		uint32_t fn = frames[config->bottom_up ? i : stack->nr - 1 - i];

		if (hides && is_hidden(&b->p->functions[fn], f))
			continue;
		if (config->fold_recursion) {
			/* The entry at @where may be of another stack: the path itself decides. */
			if (where[fn] < nr && path[where[fn]] == fn) {
				nr = where[fn] + 1;
				continue;
			}
			where[fn] = nr;
		}
		path[nr++] = fn;
	}
	return nr;
}

static int make_paths(struct builder *b)
{
	const struct profile *p = b->p;
	uint32_t *where = calloc(p->nr_functions + 1ULL, sizeof(*where));
	uint64_t size = 0;
	uint32_t at = 0;

	for (uint32_t i = 0; i < p->nr_stacks; i++)
		size += p->stacks[i].nr;
	b->paths = size < NONE ? malloc((size + 1) * sizeof(*b->paths)) : NULL;
	b->path_of = malloc((p->nr_stacks + 1ULL) * sizeof(*b->path_of));
	b->frames = b->paths;
	b->step = 1;
	if (!where || !b->paths || !b->path_of) {
		free(where);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < p->nr_stacks; i++) {
		b->path_of[i].first = at;
		b->path_of[i].nr = write_path(b, &p->stacks[i], b->paths + at, where);
		at += b->path_of[i].nr;
	}
	free(where);
	return 0;
}

/* Return whether all frames are walked, each once. Then no path has to be written. */
static bool walks_all(const struct fold_tree_config *config)
{
	return !config->filter.hide_kernel && !config->filter.hide_user && !config->fold_recursion;
}

static struct item item_of(const struct builder *b, const struct profile_count *c)
{
	struct item item = { .count = c->count, .weight = c->weight };
	const struct profile_stack *stack = &b->p->stacks[c->stack];

	if (b->path_of) {
		item.at = b->path_of[c->stack].first;
		item.end = item.at + b->path_of[c->stack].nr;
	} else if (b->config->bottom_up) {
		item.at = stack->first;
		item.end = item.at + stack->nr;
	} else {
		/* Before the first frame there may be none: then this wraps around, as steps back
		 * do. */
		item.end = stack->first - 1;
		item.at = item.end + stack->nr;
	}
	return item;
}

static int make_items(struct builder *b)
{
	const struct profile *p = b->p;

	b->items = malloc((p->nr_counts + 1ULL) * sizeof(*b->items));
	b->scratch = malloc((p->nr_counts + 1ULL) * sizeof(*b->scratch));
	b->keys = malloc((p->nr_counts + 1ULL) * sizeof(*b->keys));
	if (!b->items || !b->scratch || !b->keys)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->nr_counts; i++) {
		const struct profile_count *c = &p->counts[i];

		if (!fold_passes(p, &b->config->filter, c))
			continue;
		b->items[b->nr_items++] = item_of(b, c);
		b->out->count += c->count;
		b->out->weight += c->weight;
	}
	return 0;
}

/* A new node; its index, or NONE when out of memory. */
static uint32_t add_node(struct builder *b, uint32_t parent)
{
	struct fold_tree *out = b->out;

	assert(parent == NONE || parent < out->nr_nodes);
	if (out->nr_nodes == b->capacity) {
		uint32_t capacity = b->capacity ? b->capacity * 2 : 1024;
		void *nodes = reallocarray(out->nodes, capacity, sizeof(*out->nodes));
		void *ranges;

		if (!nodes)
			return NONE;
		out->nodes = nodes;
		ranges = reallocarray(b->ranges, capacity, sizeof(*b->ranges));
		if (!ranges)
			return NONE;
		b->ranges = ranges;
		b->capacity = capacity;
	}
	out->nodes[out->nr_nodes] = (struct fold_tree_node){
		.function = NONE,
		.process = NONE,
		.task = NONE,
		.parent = parent,
		.child = NONE,
		.next = NONE,
		.depth = parent == NONE ? 0 : out->nodes[parent].depth + 1,
	};
	return out->nr_nodes++;
}

static int compare_hands(const struct hand *a, const struct hand *b, enum fold_order order)
{
	if (order == FOLD_BY_WEIGHT && a->weight != b->weight)
		return a->weight < b->weight ? 1 : -1;
	return COMPARE(a->order, b->order);
}

static int by_weight(const void *a, const void *b)
{
	return compare_hands(a, b, FOLD_BY_WEIGHT);
}

static int by_id(const void *a, const void *b)
{
	return compare_hands(a, b, FOLD_BY_ID);
}

static void sort_hands(const struct builder *b, uint32_t nr)
{
	if (nr > 1)
		qsort(b->hands, nr, sizeof(*b->hands),
		      b->config->order == FOLD_BY_ID ? by_id : by_weight);
}

static void fill_node(struct builder *b, uint32_t n, const struct hand *hand)
{
	struct fold_tree_node *node = &b->out->nodes[n];
	uint32_t nr = b->p->nr_functions;

	assert(n < b->out->nr_nodes);
	if (hand->key < nr) {
		node->function = hand->key;
	} else if (b->config->first == FOLD_TASKS) {
		node->task = hand->key - nr;
		node->process = b->p->tasks[node->task].process;
	} else {
		node->process = hand->key - nr;
	}
	node->count = hand->count;
	node->total = hand->weight;
	b->ranges[n] = (struct range){ hand->first, hand->nr };
}

/*
 * Frames of items this far behind are requested: until the items of a node are few, each is in
 * another line of the cache.
 */
#define AHEAD 24U

/* Count the items of a node by their next function; items at their end are its self weight. */
static uint32_t count_hands(struct builder *b, struct fold_tree_node *node, struct range range)
{
	uint32_t nr = 0, end = range.first + range.nr;

	for (uint32_t i = range.first; i < end; i++) {
		const struct item *item = &b->items[i];
		uint32_t key;
		struct hand *hand;

		if (end - i > AHEAD && item[AHEAD].at != item[AHEAD].end)
			__builtin_prefetch(&b->frames[item[AHEAD].at]);
		if (item->at == item->end) {
			node->self += item->weight;
			continue;
		}
		key = b->keys[i] = b->frames[item->at];
		if (b->place[key] >= nr || b->hands[b->place[key]].key != key) {
			b->place[key] = nr;
			b->hands[nr++] =
				(struct hand){ .key = key, .order = b->p->functions[key].id };
		}
		hand = &b->hands[b->place[key]];
		hand->nr++;
		hand->count += item->count;
		hand->weight += item->weight;
	}
	return nr;
}

/* Return whether a node is left out. If all samples have no weight, the limit is 0 as well. */
static bool is_light(const struct builder *b, double weight)
{
	return weight < b->limit || (b->config->limit > 0 && !(weight > 0));
}

/* Hide the light ones in @node, and sort the others. Return their number. */
static uint32_t keep_heavy(struct builder *b, struct fold_tree_node *node, uint32_t nr)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < nr; i++) {
		if (is_light(b, b->hands[i].weight)) {
			node->hidden += b->hands[i].weight;
			node->nr_hidden++;
		} else {
			b->hands[kept++] = b->hands[i];
		}
	}
	sort_hands(b, kept);
	node->nr_children = kept;
	return kept;
}

/* Leave out the light ones; sort the others and reserve their items. */
static uint32_t keep_hands(struct builder *b, struct fold_tree_node *node, uint32_t nr,
			   uint32_t first)
{
	uint32_t kept = keep_heavy(b, node, nr);

	for (uint32_t i = 0; i < kept; i++) {
		b->hands[i].first = first;
		first += b->hands[i].nr;
		b->place[b->hands[i].key] = i;
	}
	return kept;
}

/* Deal the items out to the hands that were kept, each a frame further. */
static void deal(struct builder *b, struct range range, uint32_t nr)
{
	uint32_t end = nr ? b->hands[nr - 1].first + b->hands[nr - 1].nr : range.first;

	for (uint32_t i = range.first; i < range.first + range.nr; i++) {
		struct item item = b->items[i];
		uint32_t key, place;

		if (item.at == item.end)
			continue;
		key = b->keys[i];
		item.at += b->step;
		place = b->place[key];
		if (place < nr && b->hands[place].key == key)
			b->scratch[b->hands[place].first++] = item;
	}
	memcpy(b->items + range.first, b->scratch + range.first,
	       (end - range.first) * sizeof(*b->items));
	for (uint32_t i = 0; i < nr; i++)
		b->hands[i].first -= b->hands[i].nr;
}

static int add_children(struct builder *b, uint32_t n, uint32_t nr)
{
	assert(n < b->out->nr_nodes);
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t child = add_node(b, n);

		if (child == NONE)
			return -ENOMEM;
		fill_node(b, child, &b->hands[i]);
		if (!i)
			b->out->nodes[n].child = child;
		if (i + 1 < nr)
			b->out->nodes[child].next = child + 1;
	}
	return 0;
}

static int expand(struct builder *b, uint32_t n)
{
	struct fold_tree_node *node = &b->out->nodes[n];
	struct range range = b->ranges[n];
	uint32_t nr = count_hands(b, node, range);

	assert(n < b->out->nr_nodes);
	nr = keep_hands(b, node, nr, range.first);
	if (nr == 1 && b->hands[0].nr == range.nr) {
		/* All go the same way: nothing to deal. */
		for (uint32_t i = 0; i < range.nr; i++)
			b->items[range.first + i].at += b->step;
	} else {
		deal(b, range, nr);
	}
	return add_children(b, n, nr);
}

/* Return the group of a cell on the first level: index in processes or in tasks. */
static uint32_t first_of(const struct builder *b, const struct profile_count *c)
{
	const struct fold_tree_config *config = b->config;

	uint32_t at = config->first == FOLD_PROCESSES ? b->p->tasks[c->task].process : c->task;

	return config->leaders ? config->leaders[at] : at;
}

/* Return the id that orders equal weights on the first level. */
static uint64_t first_id(const struct builder *b, uint32_t at)
{
	assert(at < b->p->nr_tasks);
	if (b->config->first == FOLD_TASKS)
		return b->p->tasks[at].id;
	return b->config->ids ? b->config->ids[at] : b->p->processes[at].id;
}

/* Make a hand for each process or task, and reserve its items. */
static uint32_t count_firsts(struct builder *b)
{
	const struct profile *p = b->p;
	uint32_t nr = 0, first = 0;

	memset(b->place, 0xff, (b->nr_keys + 1ULL) * sizeof(*b->place));
	for (uint32_t i = 0; i < p->nr_counts; i++) {
		const struct profile_count *c = &p->counts[i];
		uint32_t at = first_of(b, c);
		struct hand *hand;

		if (!fold_passes(p, &b->config->filter, c))
			continue;
		if (b->place[at] == NONE) {
			b->place[at] = nr;
			b->hands[nr++] = (struct hand){
				.key = p->nr_functions + at,
				.order = first_id(b, at),
			};
		}
		hand = &b->hands[b->place[at]];
		hand->nr++;
		hand->count += c->count;
		hand->weight += c->weight;
	}
	for (uint32_t i = 0; i < nr; i++) {
		b->hands[i].first = first;
		first += b->hands[i].nr;
	}
	return nr;
}

/* The first level are processes or tasks: the items dealt out to them, none a frame further. */
static int expand_firsts(struct builder *b)
{
	const struct profile *p = b->p;
	uint32_t nr = count_firsts(b), kept;

	for (uint32_t i = 0; i < p->nr_counts; i++) {
		const struct profile_count *c = &p->counts[i];

		if (fold_passes(p, &b->config->filter, c))
			b->items[b->hands[b->place[first_of(b, c)]].first++] = item_of(b, c);
	}
	for (uint32_t i = 0; i < nr; i++)
		b->hands[i].first -= b->hands[i].nr;
	kept = keep_heavy(b, &b->out->nodes[0], nr);
	/* The places were of these: from here on they are of functions. */
	memset(b->place, 0, (b->nr_keys + 1ULL) * sizeof(*b->place));
	return add_children(b, 0, kept);
}

/* The node that is expanded after @n; NONE: all are. */
static uint32_t after(const struct fold_tree *t, uint32_t n)
{
	assert(n < t->nr_nodes);
	if (t->nodes[n].child != NONE)
		return t->nodes[n].child;
	while (n != NONE && t->nodes[n].next == NONE)
		n = t->nodes[n].parent;
	return n == NONE ? NONE : t->nodes[n].next;
}

static int build(struct builder *b, double limit)
{
	const struct profile *p = b->p;
	bool firsts = b->config->first == FOLD_TASKS ||
		      (b->config->first == FOLD_PROCESSES && !b->config->bottom_up);
	int ret;

	b->nr_keys = p->nr_functions + MAX(p->nr_processes, p->nr_tasks);
	b->place = calloc(b->nr_keys + 1ULL, sizeof(*b->place));
	b->hands = malloc((b->nr_keys + 1ULL) * sizeof(*b->hands));
	b->frames = b->p->frames;
	b->step = b->config->bottom_up ? 1 : UINT32_MAX;
	if (!b->place || !b->hands || (!walks_all(b->config) && make_paths(b)) || make_items(b) ||
	    add_node(b, NONE) == NONE)
		return -ENOMEM;
	b->limit = limit * b->out->weight;
	b->out->nodes[0].total = b->out->weight;
	b->out->nodes[0].count = b->out->count;
	b->ranges[0] = (struct range){ 0, b->nr_items };
	ret = firsts ? expand_firsts(b) : expand(b, 0);
	for (uint32_t n = after(b->out, 0); !ret && n != NONE; n = after(b->out, n))
		ret = limit > 0 && b->out->nr_nodes > NODES_MAX ? -E2BIG : expand(b, n);
	return ret;
}

/* Fold with another limit. -E2BIG: there are too many nodes. */
static int fold_from(const struct profile *p, const struct fold_tree_config *config, double limit,
		     struct fold_tree *out)
{
	struct builder b = { .p = p, .config = config, .out = out };
	int ret;

	*out = (struct fold_tree){ 0 };
	ret = build(&b, limit);
	free(b.ranges);
	free(b.paths);
	free(b.path_of);
	free(b.items);
	free(b.scratch);
	free(b.keys);
	free(b.place);
	free(b.hands);
	if (ret)
		fold_tree_fini(out);
	return ret;
}

int fold_tree(const struct profile *p, const struct fold_tree_config *config, struct fold_tree *out)
{
	double limit = config->limit;
	int ret;

	assert(limit >= 0);
	/* Deep stacks that all differ, as a program may have on purpose. */
	while ((ret = fold_from(p, config, limit, out)) == -E2BIG)
		limit *= 4;
	return ret;
}

void fold_tree_fini(struct fold_tree *out)
{
	free(out->nodes);
	*out = (struct fold_tree){ 0 };
}
