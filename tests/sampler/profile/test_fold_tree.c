// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fold_tree, fold_callers: small cases worked out by hand, random profiles
 * against the plainest way to count, and the time that a large one takes.
 * Live: takes about a second of CPU time, or more.
 */
#include "tests/prelude.h"
#include "tests/sampler/profile_of.h"

#include <math.h>
#include <time.h>

#include "sampler/profile/profile.h"
#include "symbols/base/base.h"
#include "tests/yardstick.h"
#include "sampler/ring/ring.h"
#include "sampler/event/event.h"

#define ALL UINT32_MAX

/*
 * Functions: 0 main, 1 work, 2 leaf, 3 sys_read (kernel), 4 other.
 * Processes: 0 with tasks 0 and 2, 1 with task 1.
 */
/* CPU time of a tree of 200000 stacks; about 150 ms where slowness is 1. */
#define TREE_MS_MAX 600

static struct profile_function functions[] = {
	{ .id = 10, .kind = 'u' }, { .id = 14, .kind = 'u' }, { .id = 12, .kind = 'j' },
	{ .id = 13, .kind = 'k' }, { .id = 11, .kind = 'u' },
};
static struct profile_process processes[] = { { .id = 100 }, { .id = 101 } };
static struct profile_task tasks[] = { { 0, 1, 0, {}, 0 }, { 1, 2, 1, {}, 0 }, { 2, 3, 0, {}, 0 } };
static uint32_t frames[] = {
	2, 1, 0,       /* 0: main work leaf */
	1, 1, 1, 0,    /* 1: main work work work */
	3, 2, 1, 0,    /* 2: main work leaf sys_read */
	4, 0,	       /* 3: main other */
	1, 2, 1, 2, 0, /* 4: main leaf work leaf work */
};
static struct profile_stack stacks[] = { { 0, 3 },  { 3, 4 },  { 7, 4 },
					 { 11, 2 }, { 13, 5 }, { 0, 0 } };

static struct profile profile_of(struct profile_count *counts, uint32_t nr)
{
	return (struct profile)PROFILE_OF(counts, nr, 1);
}

static const struct fold_filter everything = { .process = ALL, .task = ALL };

/* "main(0/90)[work(10/80)[leaf]]": self and total of each node, depth first. */
static size_t print_node(const struct profile *p, const struct fold_tree *t, uint32_t n, char *buf,
			 size_t size)
{
	static const char *const names[] = { "main", "work", "leaf", "read", "other" };
	const struct fold_tree_node *node = &t->nodes[n];
	size_t at = 0;

	if (node->function != ALL)
		at += (size_t)snprintf(buf + at, size - at, "%s", names[node->function]);
	else if (node->process != ALL)
		at += (size_t)snprintf(buf + at, size - at, "p%u", p->processes[node->process].id);
	at += (size_t)snprintf(buf + at, size - at, "(%g/%g)", node->self, node->total);
	if (node->nr_hidden)
		at += (size_t)snprintf(buf + at, size - at, "~%u:%g", node->nr_hidden,
				       node->hidden);
	for (uint32_t c = node->child; c != ALL; c = t->nodes[c].next) {
		at += (size_t)snprintf(buf + at, size - at, c == node->child ? "[" : " ");
		at += print_node(p, t, c, buf + at, size - at);
	}
	if (node->child != ALL)
		at += (size_t)snprintf(buf + at, size - at, "]");
	return at;
}

static void assert_tree(const struct profile *p, const struct fold_tree_config *config,
			const char *want)
{
	struct fold_tree t;
	char buf[1000];

	assert_int_equal(fold_tree(p, config, &t), 0);
	print_node(p, &t, 0, buf, sizeof(buf));
	assert_string_equal(buf, want);
	fold_tree_fini(&t);
}

TEST(test_empty)
{
	struct profile nothing = { 0 };
	struct fold_tree_config config = { .filter = everything, .first = FOLD_PROCESSES };
	struct profile p = profile_of(NULL, 0);

	assert_tree(&nothing, &config, "(0/0)");
	assert_tree(&p, &config, "(0/0)");
	config.first = FOLD_FUNCTIONS;
	assert_tree(&p, &config, "(0/0)");
}

TEST(test_both_ways)
{
	struct profile_count counts[] = {
		{ 0, 0, 0, 3, 30 }, { 2, 1, 0, 4, 40 }, { 3, 2, 0, 1, 10 },
		{ 5, 1, 0, 1, 10 }, { 0, 1, 0, 1, 10 }, { 0, 1, 1, 9, 90 },
	};
	struct profile p = profile_of(counts, ARRAY_SIZE(counts));
	struct fold_tree_config config = { .filter = everything };

	/* A sample without frames is the root's own. */
	assert_tree(&p, &config,
		    "(10/100)[main(0/90)[work(0/80)[leaf(40/80)[read(40/40)]] other(10/10)]]");
	config.bottom_up = true;
	assert_tree(&p, &config,
		    "(10/100)[leaf(0/40)[work(0/40)[main(40/40)]] "
		    "read(0/40)[leaf(0/40)[work(0/40)[main(40/40)]]] "
		    "other(0/10)[main(10/10)]]");
	config.bottom_up = false;
	config.filter.event = 1;
	assert_tree(&p, &config, "(0/90)[main(0/90)[work(0/90)[leaf(90/90)]]]");
	config.filter = (struct fold_filter){ .process = 0, .task = ALL };
	assert_tree(&p, &config, "(0/40)[main(0/40)[work(0/30)[leaf(30/30)] other(10/10)]]");
	config.filter = (struct fold_filter){ .process = ALL, .task = 2 };
	assert_tree(&p, &config, "(0/10)[main(0/10)[other(10/10)]]");
}

TEST(test_order)
{
	/* other (id 11) weighs less than work (id 14), and as much as it. */
	struct profile_count counts[] = { { 0, 0, 0, 3, 30 }, { 3, 0, 0, 1, 10 } };
	struct profile_count equal[] = { { 0, 0, 0, 1, 10 }, { 3, 0, 0, 1, 10 } };
	struct profile p = profile_of(counts, 2), q = profile_of(equal, 2);
	struct fold_tree_config config = { .filter = everything };

	assert_tree(&p, &config, "(0/40)[main(0/40)[work(0/30)[leaf(30/30)] other(10/10)]]");
	assert_tree(&q, &config, "(0/20)[main(0/20)[other(10/10) work(0/10)[leaf(10/10)]]]");
	config.order = FOLD_BY_ID;
	assert_tree(&p, &config, "(0/40)[main(0/40)[other(10/10) work(0/30)[leaf(30/30)]]]");
}

TEST(test_processes_first)
{
	struct profile_count counts[] = {
		{ 0, 1, 0, 3, 30 },
		{ 3, 0, 0, 1, 10 },
		{ 3, 1, 0, 1, 10 },
		{ 0, 2, 0, 6, 60 },
	};
	struct profile p = profile_of(counts, 4);
	struct fold_tree_config config = { .filter = everything, .first = FOLD_PROCESSES };

	assert_tree(&p, &config,
		    "(0/110)[p100(0/70)[main(0/70)[work(0/60)[leaf(60/60)] other(10/10)]] "
		    "p101(0/40)[main(0/40)[work(0/30)[leaf(30/30)] other(10/10)]]]");
	config.limit = 0.5;
	assert_tree(&p, &config,
		    "(0/110)~1:40[p100(0/70)[main(0/70)~1:10[work(0/60)[leaf(60/60)]]]]");
	/* Nothing is below a leaf but its callers. */
	config.limit = 0;
	config.bottom_up = true;
	assert_tree(&p, &config,
		    "(0/110)[leaf(0/90)[work(0/90)[main(90/90)]] other(0/20)[main(20/20)]]");
}

TEST(test_limit)
{
	struct profile_count counts[] = { { 0, 0, 0, 90, 90 }, { 3, 0, 0, 10, 10 } };
	struct profile p = profile_of(counts, 2);
	struct fold_tree_config config = { .filter = everything, .limit = 0.1 };

	assert_tree(&p, &config, "(0/100)[main(0/100)[work(0/90)[leaf(90/90)] other(10/10)]]");
	config.limit = 0.11;
	assert_tree(&p, &config, "(0/100)[main(0/100)~1:10[work(0/90)[leaf(90/90)]]]");
	config.limit = 2;
	assert_tree(&p, &config, "(0/100)~1:100");
}

#define DEEP_STACKS 3000U
#define DEEP_FRAMES 400U
#define DEEP_BITS   12U

static void fold_many_nodes(double weight)
{
	const struct fold_tree_config config = { .filter = everything, .limit = 2e-5 };
	struct profile_count *counts = xcalloc(DEEP_STACKS, sizeof(*counts));
	struct profile_stack *deep = xcalloc(DEEP_STACKS, sizeof(*deep));
	uint32_t *of = xcalloc((size_t)DEEP_STACKS * DEEP_FRAMES, sizeof(*of)), *at = of;
	struct profile p = profile_of(counts, DEEP_STACKS);
	double hidden = 0, self = 0;
	struct fold_tree t;

	for (uint32_t i = 0; i < DEEP_STACKS; i++) {
		counts[i] = (struct profile_count){ i, 0, 0, 1, weight };
		deep[i] = (struct profile_stack){ i * DEEP_FRAMES, DEEP_FRAMES };
		for (uint32_t k = 0; k < DEEP_FRAMES; k++)
			*at++ = k + DEEP_BITS < DEEP_FRAMES ? 2 : i >> (DEEP_FRAMES - 1 - k) & 1;
	}
	p.stacks = deep;
	p.nr_stacks = DEEP_STACKS;
	p.frames = of;
	p.nr_frames = DEEP_STACKS * DEEP_FRAMES;
	assert_int_equal(fold_tree(&p, &config, &t), 0);
	assert_in_range(t.nr_nodes, weight > 0 ? 100 : 1, 1 << 20);
	for (uint32_t n = 0; n < t.nr_nodes; n++) {
		hidden += t.nodes[n].hidden;
		self += t.nodes[n].self;
	}
	assert_true(hidden + self == DEEP_STACKS * weight);
	assert_true(t.nodes[0].total == DEEP_STACKS * weight);
	fold_tree_fini(&t);
	free(counts);
	free(deep);
	free(of);
}

/*
 * Stacks that all differ in their outer frames and are deep: nodes are left out, and no time. A
 * kept slice of others may have no weight at all.
 */
TEST(test_many_nodes)
{
	fold_many_nodes(1);
	fold_many_nodes(0);
}

TEST(test_hidden_frames)
{
	struct profile_count counts[] = { { 2, 0, 0, 4, 40 }, { 0, 0, 0, 1, 10 } };
	struct profile p = profile_of(counts, 2);
	struct fold_tree_config config = { .filter = everything };

	config.filter.hide_kernel = true;
	assert_tree(&p, &config, "(0/50)[main(0/50)[work(0/50)[leaf(50/50)]]]");
	config.filter.hide_kernel = false;
	config.filter.hide_user = true;
	assert_tree(&p, &config, "(10/50)[read(40/40)]");
}

TEST(test_recursion)
{
	struct profile_count counts[] = { { 1, 0, 0, 1, 10 }, { 4, 0, 0, 2, 20 } };
	struct profile p = profile_of(counts, 2);
	struct fold_tree_config config = { .filter = everything };

	assert_tree(&p, &config,
		    "(0/30)[main(0/30)[leaf(0/20)[work(0/20)[leaf(0/20)[work(20/20)]]] "
		    "work(0/10)[work(0/10)[work(10/10)]]]]");
	config.fold_recursion = true;
	assert_tree(&p, &config, "(0/30)[main(0/30)[leaf(0/20)[work(20/20)] work(10/10)]]");
	config.bottom_up = true;
	assert_tree(&p, &config, "(0/30)[work(0/30)[leaf(0/20)[main(20/20)] main(10/10)]]");
}

/* ---- callers ---- */

static void assert_neighbours(const struct fold_neighbour *rows, uint32_t nr, const char *want)
{
	char buf[200] = "";
	size_t at = 0;

	for (uint32_t i = 0; i < nr; i++)
		at += (size_t)snprintf(buf + at, sizeof(buf) - at, "%d:%g ",
				       rows[i].function == ALL ? -1 : (int)rows[i].function,
				       rows[i].weight);
	assert_string_equal(buf, want);
}

TEST(test_callers)
{
	struct profile_count counts[] = {
		{ 0, 0, 0, 3, 30 }, { 1, 0, 0, 5, 50 }, { 2, 1, 0, 4, 40 },
		{ 3, 0, 0, 1, 10 }, { 4, 0, 0, 2, 20 }, { 5, 0, 0, 1, 10 },
	};
	struct profile p = profile_of(counts, ARRAY_SIZE(counts));
	struct fold_filter f = everything;
	struct fold_callers c;

	assert_int_equal(fold_callers(&p, &f, 1, &c), 0);
	assert_true(c.total == 140 && c.self == 70 && c.all_weight == 160 && c.count == 14);
	assert_true(c.recursive == 70 && c.depth_max == 3);
	assert_neighbours(c.callers, c.nr_callers, "0:120 2:20 ");
	assert_neighbours(c.callees, c.nr_callees, "2:70 ");
	fold_callers_fini(&c);
	assert_int_equal(fold_callers(&p, &f, 0, &c), 0);
	assert_true(c.total == 150 && c.self == 0 && c.depth_max == 1);
	assert_neighbours(c.callers, c.nr_callers, "-1:150 ");
	assert_neighbours(c.callees, c.nr_callees, "1:120 2:20 4:10 ");
	fold_callers_fini(&c);
	/* The samples of a hidden callee belong to the function's self. */
	f.hide_kernel = true;
	assert_int_equal(fold_callers(&p, &f, 2, &c), 0);
	assert_true(c.total == 90 && c.self == 70);
	assert_neighbours(c.callers, c.nr_callers, "1:70 0:20 ");
	assert_neighbours(c.callees, c.nr_callees, "1:20 ");
	fold_callers_fini(&c);
	assert_int_equal(fold_callers(&p, &f, 3, &c), 0);
	assert_true(c.total == 40 && c.self == 40 && c.nr_callees == 0);
	fold_callers_fini(&c);
}

/* ---- random profiles ---- */

/* @nr stacks of up to @depth frames from a set of calls that is shared, as in programs. */
static void random_init(struct profile *p, uint32_t nr, uint32_t depth, uint32_t nr_functions,
			bool fixed)
{
	uint32_t at = 0;

	*p = (struct profile){ .nr_events = 1 };
	p->functions = calloc(nr_functions, sizeof(*p->functions));
	p->processes = calloc(3, sizeof(*p->processes));
	p->tasks = calloc(7, sizeof(*p->tasks));
	p->stacks = calloc(nr, sizeof(*p->stacks));
	p->counts = calloc(nr, sizeof(*p->counts));
	p->frames = calloc((size_t)nr * depth, sizeof(*p->frames));
	p->nr_functions = nr_functions;
	p->nr_processes = 3;
	p->nr_tasks = 7;
	for (uint32_t i = 0; i < nr_functions; i++) {
		p->functions[i].id = i * 7919 % nr_functions;
		p->functions[i].kind = i % 5 ? 'u' : 'k';
	}
	for (uint32_t i = 0; i < 3; i++)
		p->processes[i].id = i;
	for (uint32_t i = 0; i < 7; i++)
		p->tasks[i].process = i % 3;
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t frames_nr = fixed ? depth : (uint32_t)rand() % (depth + 1), call = 0;

		p->stacks[i] = (struct profile_stack){ at, frames_nr };
		for (uint32_t d = 0; d < frames_nr; d++) {
			/* Each function calls four others, the first of them most. */
			uint32_t which = (uint32_t)rand() % 8;

			call = (call * 4 + (which > 3 ? 0 : which) + 1) % nr_functions;
			p->frames[at + frames_nr - 1 - d] = call;
		}
		at += frames_nr;
		p->counts[i] = (struct profile_count){ i, (uint32_t)rand() % 7, 0, 1,
						       1 + (uint32_t)rand() % 3 };
	}
	p->nr_frames = at;
	p->nr_stacks = p->nr_counts = nr;
}

static void random_fini(struct profile *p)
{
	free(p->functions);
	free(p->processes);
	free(p->tasks);
	free(p->stacks);
	free(p->frames);
	free(p->counts);
}

/* Sums of every node are exact, links are sound, order holds. */
static void check_tree(const struct fold_tree *t, enum fold_order order, const struct profile *p)
{
	for (uint32_t n = 0; n < t->nr_nodes; n++) {
		const struct fold_tree_node *node = &t->nodes[n];
		double sum = node->self + node->hidden;
		uint32_t nr = 0, before = ALL;

		for (uint32_t c = node->child; c != ALL; c = t->nodes[c].next, nr++) {
			assert_int_equal(t->nodes[c].parent, n);
			assert_int_equal(t->nodes[c].depth, node->depth + 1);
			sum += t->nodes[c].total;
			if (before != ALL && order == FOLD_BY_WEIGHT)
				assert_true(t->nodes[before].total >= t->nodes[c].total);
			if (before != ALL && order == FOLD_BY_ID && t->nodes[c].function != ALL)
				assert_true(p->functions[t->nodes[before].function].id <
					    p->functions[t->nodes[c].function].id);
			before = c;
		}
		assert_int_equal(nr, node->nr_children);
		assert_true(sum == node->total);
	}
}

/* The node that a stack leads to. */
static uint32_t walk(const struct profile *p, const struct fold_tree *t, uint32_t stack,
		     bool bottom_up)
{
	const struct profile_stack *s = &p->stacks[stack];
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->nr; i++) {
		uint32_t fn = p->frames[s->first + (bottom_up ? i : s->nr - 1 - i)], c;

		for (c = t->nodes[n].child; c != ALL && t->nodes[c].function != fn;)
			c = t->nodes[c].next;
		assert_int_not_equal(c, ALL);
		n = c;
	}
	return n;
}

/* Every sample is found at the end of its path, and nothing else is there. */
static void check_against_walk(const struct profile *p, const struct fold_tree *t, bool bottom_up)
{
	double *self = calloc(t->nr_nodes, sizeof(*self));

	for (uint32_t i = 0; i < p->nr_counts; i++)
		self[walk(p, t, p->counts[i].stack, bottom_up)] += p->counts[i].weight;
	for (uint32_t n = 0; n < t->nr_nodes; n++)
		assert_true(self[n] == t->nodes[n].self);
	free(self);
}

TEST(test_random)
{
	srand(42);
	for (int round = 0; round < 200; round++) {
		struct fold_tree_config config = { .filter = everything,
						   .bottom_up = round & 1,
						   .order = round & 2 ? FOLD_BY_ID
								      : FOLD_BY_WEIGHT };
		/* All threads named alike. */
		uint32_t *leaders;
		struct profile p;
		struct fold_tree t;

		random_init(&p, 1 + (uint32_t)rand() % 80, 1 + (uint32_t)rand() % 9,
			    2 + (uint32_t)rand() % 30, false);
		leaders = calloc(p.nr_tasks + 1ULL, sizeof(*leaders));
		assert_int_equal(fold_tree(&p, &config, &t), 0);
		check_tree(&t, config.order, &p);
		check_against_walk(&p, &t, config.bottom_up);
		fold_tree_fini(&t);
		config.limit = 0.05;
		config.first = round % 3 == 0 ? FOLD_TASKS
			       : round & 4    ? FOLD_PROCESSES
					      : FOLD_FUNCTIONS;
		config.leaders = round & 4 ? leaders : NULL;
		config.fold_recursion = round & 8;
		config.filter.hide_kernel = round & 16;
		assert_int_equal(fold_tree(&p, &config, &t), 0);
		check_tree(&t, config.order, &p);
		for (uint32_t n = 1; n < t.nr_nodes; n++)
			assert_true(t.nodes[n].total >= 0.05 * t.weight);
		fold_tree_fini(&t);
		free(leaders);
		random_fini(&p);
	}
}

/* Total, self and the sums of both sides agree with the functions. */
TEST(test_callers_random)
{
	srand(7);
	for (int round = 0; round < 60; round++) {
		struct fold_functions rows;
		struct profile p;

		random_init(&p, 60, 8, 2 + (uint32_t)rand() % 12, false);
		assert_int_equal(fold_functions(&p, &everything, &rows), 0);
		for (uint32_t i = 0; i < rows.nr_rows; i++) {
			const struct fold_row *row = &rows.rows[i];
			struct fold_callers c;
			double callers = 0, callees = 0;

			assert_int_equal(fold_callers(&p, &everything, row->function, &c), 0);
			for (uint32_t k = 0; k < c.nr_callers; k++)
				callers += c.callers[k].weight;
			for (uint32_t k = 0; k < c.nr_callees; k++)
				callees += c.callees[k].weight;
			assert_true(c.total == row->total_weight && c.self == row->self_weight);
			assert_true(callers == c.total && callees + c.self == c.total);
			assert_true(c.all_weight == rows.weight);
			fold_callers_fini(&c);
		}
		fold_functions_fini(&rows);
		random_fini(&p);
	}
}

static double ms_since(uint64_t start_ns)
{
	return (double)(yardstick_cpu_ns() - start_ns) / 1e6;
}

/* Build the tree up to three times, until one of these is fast enough; return the time of the last.
 */
static double build_tree(const struct profile *p, const struct fold_tree_config *config,
			 struct fold_tree *t)
{
	double ms = 0;

	for (int i = 0; i < 3; i++) {
		uint64_t start_ns = yardstick_cpu_ns();

		if (i)
			fold_tree_fini(t);
		assert_int_equal(fold_tree(p, config, t), 0);
		ms = ms_since(start_ns);
		if (ms < TREE_MS_MAX * yardstick_slowness())
			break;
	}
	return ms;
}

/* 200 000 stacks of 30 frames: a screen must not wait for them. */
TEST(test_large)
{
	struct fold_tree_config config = { .filter = everything, .limit = 0.0001 };
	struct fold_callers c;
	struct profile p;
	uint64_t start_ns;

	random_init(&p, 200000, 30, 20000, true);
	for (int way = 0; way < 4; way++) {
		struct fold_tree t;
		double ms;

		config.bottom_up = way & 1;
		config.first = way & 2 ? FOLD_PROCESSES : FOLD_FUNCTIONS;
		config.order = way & 2 ? FOLD_BY_ID : FOLD_BY_WEIGHT;
		ms = build_tree(&p, &config, &t);
		print_message("tree %d: %.1f ms, %u nodes\n", way, ms, t.nr_nodes);
		check_tree(&t, config.order, &p);
		fold_tree_fini(&t);
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
		assert_true(ms < TREE_MS_MAX * yardstick_slowness());
#endif
	}
	start_ns = yardstick_cpu_ns();
	assert_int_equal(fold_callers(&p, &everything, 1, &c), 0);
	print_message("callers: %.1f ms\n", ms_since(start_ns));
	fold_callers_fini(&c);
	random_fini(&p);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
