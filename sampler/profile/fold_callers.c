// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The callers and callees of one function. Pure; any thread.
 *
 * Invariant: a sample with the function on its stack counts for exactly one
 * caller, and for exactly one callee unless it is the function's own.
 */
#include "sampler/profile/fold_tree.h"

#include <errno.h>
#include <stdlib.h>

#define NONE FOLD_NONE

/* Sums by function; the last one is of no function. */
struct sums {
	double *count, *weight;
};

/* The function in one stack. */
struct sighting {
	uint32_t times;
	uint32_t caller, callee; /* functions; NONE: none */
	bool self;
};

static bool is_hidden(const struct profile_function *fn, const struct fold_filter *f)
{
	return fn->kernel || fn->kind == 'k' ? f->hide_kernel : f->hide_user;
}

/* Find the function, leaf first. Hidden frames are no neighbours. */
static struct sighting look_at(const struct profile *p, const struct fold_filter *f,
			       const struct profile_stack *stack, uint32_t function)
{
	struct sighting s = { 0, NONE, NONE, true };
	const uint32_t *frames = &p->frames[stack->first];
	uint32_t before = NONE;

	for (uint32_t i = 0; i < stack->nr; i++) {
		if (frames[i] == function) {
			if (!s.times++) {
				s.callee = before;
				s.self = before == NONE;
			}
			s.caller = NONE;
		} else if (is_hidden(&p->functions[frames[i]], f)) {
			continue;
		} else if (s.times && s.caller == NONE) {
			s.caller = frames[i];
		}
		before = frames[i];
	}
	return s;
}

static int sums_init(struct sums *s, uint32_t nr)
{
	s->count = calloc(nr + 1ULL, sizeof(*s->count));
	s->weight = calloc(nr + 1ULL, sizeof(*s->weight));
	return s->count && s->weight ? 0 : -ENOMEM;
}

static void sums_fini(struct sums *s)
{
	free(s->count);
	free(s->weight);
}

static void sums_add(struct sums *s, uint32_t at, const struct profile_count *c)
{
	s->count[at] += c->count;
	s->weight[at] += c->weight;
}

static int compare(const void *pa, const void *pb, void *arg)
{
	const struct profile *p = arg;
	const struct fold_neighbour *a = pa, *b = pb;
	uint32_t x, y;

	if (a->weight != b->weight)
		return a->weight < b->weight ? 1 : -1;
	x = a->function == NONE ? NONE : p->functions[a->function].id;
	y = b->function == NONE ? NONE : p->functions[b->function].id;
	return COMPARE(x, y);
}

/* List functions with a weight, hottest first. */
static int make_rows(const struct profile *p, const struct sums *s, struct fold_neighbour **rows,
		     uint32_t *nr)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i <= p->nr_functions; i++)
		n += s->count[i] > 0;
	*rows = malloc((n + 1ULL) * sizeof(**rows));
	if (!*rows)
		return -ENOMEM;
	for (uint32_t i = 0; i <= p->nr_functions; i++)
		if (s->count[i] > 0)
			(*rows)[(*nr)++] = (struct fold_neighbour){ i < p->nr_functions ? i : NONE,
								    s->count[i], s->weight[i] };
	qsort_r(*rows, *nr, sizeof(**rows), compare, (void *)p);
	return 0;
}

static void add_cell(const struct profile *p, const struct sighting *s,
		     const struct profile_count *c, struct sums *callers, struct sums *callees,
		     struct fold_callers *out)
{
	out->count += c->count;
	out->total += c->weight;
	sums_add(callers, s->caller == NONE ? p->nr_functions : s->caller, c);
	if (s->self)
		out->self += c->weight;
	else
		sums_add(callees, s->callee, c);
	if (s->times > 1)
		out->recursive += c->weight;
	out->depth_max = MAX(out->depth_max, s->times);
}

int fold_callers(const struct profile *p, const struct fold_filter *f, uint32_t function,
		 struct fold_callers *out)
{
	struct sums callers = { 0 }, callees = { 0 };
	int ret = -ENOMEM;

	*out = (struct fold_callers){ 0 };
	if (sums_init(&callers, p->nr_functions) || sums_init(&callees, p->nr_functions))
		goto out;
	for (uint32_t i = 0; i < p->nr_counts; i++) {
		const struct profile_count *c = &p->counts[i];
		struct sighting s;

		if (!fold_passes(p, f, c))
			continue;
		out->all_count += c->count;
		out->all_weight += c->weight;
		s = look_at(p, f, &p->stacks[c->stack], function);
		if (s.times)
			add_cell(p, &s, c, &callers, &callees, out);
	}
	ret = make_rows(p, &callers, &out->callers, &out->nr_callers);
	if (!ret)
		ret = make_rows(p, &callees, &out->callees, &out->nr_callees);
out:
	sums_fini(&callers);
	sums_fini(&callees);
	if (ret)
		fold_callers_fini(out);
	return ret;
}

void fold_callers_fini(struct fold_callers *out)
{
	free(out->callers);
	free(out->callees);
	*out = (struct fold_callers){ 0 };
}
