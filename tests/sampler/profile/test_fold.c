// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fold: small cases worked out by hand, and random profiles against the
 * plainest possible way to count them.
 * Live: takes about a second of CPU time, or more.
 */
#include "tests/prelude.h"
#include "tests/sampler/profile_of.h"
#include "sampler/profile/profile.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "tests/yardstick.h"
#include "symbols/code/code.h"
#include "sampler/ring/ring.h"
#include "sampler/event/event.h"

#define ALL UINT32_MAX

/*
 * Functions: 0 main, 1 work, 2 leaf, 3 sys_read (kernel), 4 unnamed kernel code.
 * Processes: 0 with tasks 0 and 2, 1 with task 1.
 */
static struct profile_function functions[] = {
	{ .id = 10, .kind = 'u' },
	{ .id = 11, .kind = 'u' },
	{ .id = 12, .kind = 'j' },
	{ .id = 13, .kind = 'k' },
	{ .id = 14, .kind = '?', .kernel = true },
};
static struct profile_process processes[] = { { .id = 100 }, { .id = 101 } };
static struct profile_task tasks[] = { { 0, 1, 0, {}, 0 }, { 1, 2, 1, {}, 0 }, { 2, 3, 0, {}, 0 } };
static uint32_t frames[] = {
	2, 1, 0,    /* 0: leaf work main */
	1, 1, 1, 0, /* 1: work work work main */
	3, 2, 1, 0, /* 2: sys_read leaf work main */
	4,	    /* 3: kernel alone */
};
static struct profile_stack stacks[] = { { 0, 3 }, { 3, 4 }, { 7, 4 }, { 11, 1 }, { 0, 0 } };

static struct profile profile_of(struct profile_count *counts, uint32_t nr)
{
	return (struct profile)PROFILE_OF(counts, nr, 1);
}

static const struct fold_filter everything = { .process = ALL, .task = ALL };

/* Lines of one template in two instances; calls, other events and unknown lines do not count. */
TEST(test_lines)
{
	static struct safe_text files[] = { TEXT("a.c"), TEXT("b.c") };
	static struct profile_line lines[] = {
		{ 0, 10, 0 }, { 0, 20, 0 }, { 1, 30, 0 }, { PROFILE_NO_LINE, 0, 0 }
	};
	uint32_t at[] = { 0, 2, 2, 1, 1, 1, 1, 3, 0, 2, 2, 0 }, out[ARRAY_SIZE(functions)];
	struct profile_count counts[] = {
		{ 0, 0, 0, 5, 5 },   { 1, 0, 0, 3, 3 }, { 3, 1, 0, 9, 9 }, { 2, 0, 0, 1, 1 },
		{ 0, 1, 1, 99, 99 }, { 4, 0, 0, 1, 1 }, { 0, 2, 0, 1, 1 },
	};
	struct profile p = profile_of(counts, ARRAY_SIZE(counts));

	assert_int_equal(fold_lines(&p, &everything, out), 0);
	assert_int_equal(out[2], PROFILE_NO_LINE);
	p.frame_lines = at;
	p.lines = lines;
	p.nr_lines = ARRAY_SIZE(lines);
	p.has_source = true;
	p.files = files;
	p.nr_files = ARRAY_SIZE(files);
	assert_int_equal(fold_lines(&p, &everything, out), 0);
	assert_int_equal(out[0], PROFILE_NO_LINE); /* never itself */
	assert_int_equal(out[1], 1);
	assert_int_equal(out[2], 0);
	assert_int_equal(out[3], PROFILE_NO_LINE); /* of no file */
	assert_int_equal(out[4], 0);
	/* main only calls: the line of its heaviest count. */
	assert_int_equal(fold_all_lines(&p, &everything, out), 0);
	assert_int_equal(out[0], 2);
	assert_int_equal(out[1], 1);
	assert_int_equal(out[2], 0);
	assert_int_equal(out[3], PROFILE_NO_LINE);
	/* Two lines of one function, alternating: the sum decides. */
	at[0] = 0;
	at[3] = 0;
	frames[3] = 2;
	counts[0].weight = 2;
	counts[1].weight = 4;
	counts[6].weight = 3;
	at[3] = 2;
	assert_int_equal(fold_lines(&p, &everything, out), 0);
	assert_int_equal(out[2], 0);
	counts[6].weight = 1;
	assert_int_equal(fold_lines(&p, &everything, out), 0);
	assert_int_equal(out[2], 2);
	frames[3] = 1;
}

static const struct fold_row *row_of(const struct fold_functions *f, uint32_t function)
{
	for (uint32_t i = 0; i < f->nr_rows; i++)
		if (f->rows[i].function == function)
			return &f->rows[i];
	return NULL;
}

static void assert_row(const struct fold_functions *f, uint32_t function, double self, double total)
{
	const struct fold_row *row = row_of(f, function);

	assert_non_null(row);
	if (row->self != self || row->total != total)
		fail_msg("function %u: self %g total %g", function, row->self, row->total);
	assert_true(row->self_weight == 10 * self && row->total_weight == 10 * total);
}

TEST(test_empty)
{
	struct profile nothing = { 0 };
	struct fold_functions f;
	struct fold_processes ps;

	assert_int_equal(fold_functions(&nothing, &everything, &f), 0);
	assert_int_equal(f.nr_rows, 0);
	assert_true(f.count == 0);
	fold_functions_fini(&f);
	assert_int_equal(fold_processes(&nothing, &everything, &ps), 0);
	assert_int_equal(ps.nr_rows, 0);
	fold_processes_fini(&ps);
}

TEST(test_self_and_total)
{
	struct profile_count counts[] = {
		{ 0, 0, 0, 3, 30 },
		{ 2, 1, 0, 4, 40 },
		{ 4, 1, 0, 1, 10 },
	};
	struct profile p = profile_of(counts, 3);
	struct fold_functions f;

	assert_int_equal(fold_functions(&p, &everything, &f), 0);
	/* The sample without frames is in the total, in no row. */
	assert_true(f.count == 8 && f.weight == 80);
	assert_int_equal(f.nr_rows, 4);
	assert_row(&f, 0, 0, 7);
	assert_row(&f, 1, 0, 7);
	assert_row(&f, 2, 3, 7);
	assert_row(&f, 3, 4, 4);
	assert_int_equal(row_of(&f, 0)->nr_processes, 2);
	assert_int_equal(row_of(&f, 0)->task, 1);
	assert_int_equal(row_of(&f, 3)->nr_processes, 1);
	fold_functions_fini(&f);
}

TEST(test_recursion_counts_once)
{
	struct profile_count counts[] = { { 1, 0, 0, 5, 50 }, { 1, 1, 0, 2, 20 } };
	struct profile p = profile_of(counts, 2);
	struct fold_functions f;

	assert_int_equal(fold_functions(&p, &everything, &f), 0);
	assert_row(&f, 1, 7, 7);
	assert_row(&f, 0, 0, 7);
	fold_functions_fini(&f);
}

/* Of three tasks the one with most in sum, not the one with the largest cell. */
TEST(test_task_with_most)
{
	struct profile_count counts[] = {
		{ 0, 2, 0, 3, 30 },
		{ 0, 1, 0, 4, 40 },
		{ 1, 2, 0, 2, 20 },
		{ 3, 0, 0, 9, 90 },
	};
	struct profile p = profile_of(counts, 4);
	struct fold_functions f;

	assert_int_equal(fold_functions(&p, &everything, &f), 0);
	assert_int_equal(row_of(&f, 0)->task, 2);
	assert_int_equal(row_of(&f, 2)->task, 1);
	assert_int_equal(row_of(&f, 4)->task, 0);
	assert_int_equal(row_of(&f, 0)->nr_processes, 2);
	fold_functions_fini(&f);
}

TEST(test_hide)
{
	struct profile_count counts[] = {
		{ 0, 0, 0, 3, 30 },
		{ 2, 1, 0, 4, 40 },
		{ 3, 2, 0, 1, 10 },
	};
	struct profile p = profile_of(counts, 3);
	struct fold_filter filter = everything;
	struct fold_functions f;

	filter.hide_kernel = true;
	assert_int_equal(fold_functions(&p, &filter, &f), 0);
	assert_true(f.count == 8);
	assert_int_equal(f.nr_rows, 3);
	/* Kernel time for leaf is in leaf's total, and in no user function's self. */
	assert_row(&f, 2, 3, 7);
	assert_row(&f, 0, 0, 7);
	fold_functions_fini(&f);

	filter.hide_kernel = false;
	filter.hide_user = true;
	assert_int_equal(fold_functions(&p, &filter, &f), 0);
	assert_true(f.count == 8);
	assert_int_equal(f.nr_rows, 2);
	assert_row(&f, 3, 4, 4);
	assert_row(&f, 4, 1, 1);
	fold_functions_fini(&f);

	filter.hide_kernel = true;
	assert_int_equal(fold_functions(&p, &filter, &f), 0);
	assert_true(f.count == 8);
	assert_int_equal(f.nr_rows, 0);
	fold_functions_fini(&f);
}

TEST(test_filters)
{
	struct profile_count counts[] = {
		{ 0, 0, 0, 1, 10 },
		{ 0, 1, 0, 2, 20 },
		{ 0, 2, 0, 4, 40 },
		{ 0, 0, 1, 8, 80 },
	};
	struct profile p = profile_of(counts, 4);
	struct {
		struct fold_filter filter;
		double count;
	} cases[] = {
		{ { .event = 0, .process = ALL, .task = ALL }, 7 },
		{ { .event = 1, .process = ALL, .task = ALL }, 8 },
		{ { .event = 2, .process = ALL, .task = ALL }, 0 },
		{ { .event = 0, .process = 0, .task = ALL }, 5 },
		{ { .event = 0, .process = 1, .task = ALL }, 2 },
		{ { .event = 0, .process = 0, .task = 2 }, 4 },
		{ { .event = 0, .process = 1, .task = 2 }, 0 },
		{ { .event = 0, .process = ALL, .task = 0 }, 1 },
	};

	for (uint32_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fold_functions f;
		struct fold_processes ps;

		assert_int_equal(fold_functions(&p, &cases[i].filter, &f), 0);
		assert_true(f.count == cases[i].count);
		assert_int_equal(f.nr_rows, cases[i].count ? 3 : 0);
		if (f.nr_rows)
			assert_row(&f, 2, cases[i].count, cases[i].count);
		fold_functions_fini(&f);
		assert_int_equal(fold_processes(&p, &cases[i].filter, &ps), 0);
		assert_true(ps.count == cases[i].count);
		fold_processes_fini(&ps);
	}
}

TEST(test_processes)
{
	struct profile_count counts[] = {
		{ 2, 2, 0, 4, 40 },
		{ 0, 0, 0, 3, 30 },
		{ 4, 1, 0, 2, 20 },
		{ 0, 2, 0, 2, 20 },
	};
	struct profile p = profile_of(counts, 4);
	struct fold_filter filter = everything;
	struct fold_processes ps;

	assert_int_equal(fold_processes(&p, &filter, &ps), 0);
	assert_int_equal(ps.nr_rows, 2);
	assert_true(ps.count == 11 && ps.weight == 110);
	assert_int_equal(ps.rows[0].process, 0);
	assert_true(ps.rows[0].count == 9 && ps.rows[0].weight == 90);
	assert_int_equal(ps.rows[0].nr_tasks, 2);
	assert_int_equal(ps.rows[0].top_function, 2);
	assert_true(ps.rows[1].count == 2);
	assert_int_equal(ps.rows[1].nr_tasks, 1);
	assert_int_equal(ps.rows[1].top_function, UINT32_MAX);
	fold_processes_fini(&ps);

	filter.hide_user = true;
	assert_int_equal(fold_processes(&p, &filter, &ps), 0);
	assert_int_equal(ps.rows[0].top_function, 3);
	fold_processes_fini(&ps);
}

/* The function with most self weight is that of all stacks together: of a task, and of a group. */
TEST(test_top_functions)
{
	struct profile_count counts[] = {
		{ 0, 0, 0, 3, 30 }, { 2, 0, 0, 4, 40 }, { 0, 2, 0, 2, 20 },
		{ 0, 1, 0, 3, 30 }, { 0, 2, 0, 1, 10 }, { 2, 2, 0, 2, 25 },
	};
	static const uint32_t one[] = { 0, 0 }, each[] = { 0, 1 };
	struct profile p = profile_of(counts, ARRAY_SIZE(counts));
	struct fold_filter filter = everything;
	struct fold_task sums[ARRAY_SIZE(tasks)];
	struct fold_functions f;
	struct fold_processes ps;

	fold_tasks(&p, &filter, sums);
	assert_int_equal(sums[0].top_function, 3);
	assert_int_equal(sums[1].top_function, 2);
	assert_int_equal(sums[2].top_function, 2);
	assert_true(sums[2].weight == 55 && sums[2].kernel == 25);

	assert_int_equal(fold_processes(&p, &filter, &ps), 0);
	assert_null(ps.group_tops);
	fold_processes_fini(&ps);
	filter.groups = each;
	assert_int_equal(fold_processes(&p, &filter, &ps), 0);
	assert_int_equal(ps.group_tops[0], 3);
	assert_int_equal(ps.group_tops[1], 2);
	fold_processes_fini(&ps);
	/* The busiest process of the group is most in another function. */
	filter.groups = one;
	assert_int_equal(fold_processes(&p, &filter, &ps), 0);
	assert_int_equal(ps.group_tops[0], 2);
	fold_processes_fini(&ps);

	assert_int_equal(fold_functions(&p, &filter, &f), 0);
	assert_int_equal(row_of(&f, 0)->nr_tasks, 3);
	assert_int_equal(row_of(&f, 3)->nr_tasks, 2);
	fold_functions_fini(&f);
}

/* A profile of @nr_counts random cells with up to @depth frames each. */
static struct profile *random_profile(uint32_t seed, uint32_t nr_counts, uint32_t nr_functions,
				      uint32_t depth)
{
	struct profile *p = xcalloc(1, sizeof(*p));
	uint64_t r = seed;

	p->nr_functions = nr_functions;
	p->functions = xcalloc(nr_functions, sizeof(*p->functions));
	for (uint32_t i = 0; i < nr_functions; i++)
		p->functions[i].kind = "ukj?"[(r = hash_u64(r + i + 1)) % 4];
	p->nr_processes = 20;
	p->processes = xcalloc(p->nr_processes, sizeof(*p->processes));
	p->nr_tasks = 50;
	p->tasks = xcalloc(p->nr_tasks, sizeof(*p->tasks));
	for (uint32_t i = 0; i < p->nr_tasks; i++)
		p->tasks[i].process = (r = hash_u64(r + i + 1)) % p->nr_processes;
	p->nr_stacks = nr_counts;
	p->stacks = xcalloc(nr_counts, sizeof(*p->stacks));
	p->frames = xcalloc((size_t)nr_counts * depth, sizeof(*p->frames));
	p->counts = xcalloc(nr_counts, sizeof(*p->counts));
	for (uint32_t i = 0; i < nr_counts; i++) {
		r = hash_u64(r + i + 1);
		p->stacks[i] = (struct profile_stack){ p->nr_frames, r % (depth + 1) };
		for (uint32_t j = 0; j < p->stacks[i].nr; j++)
			p->frames[p->nr_frames++] = hash_u64(r + j + 1) % nr_functions;
		p->counts[i] = (struct profile_count){
			(r >> 20) % nr_counts % (i + 1),
			(r >> 40) % p->nr_tasks,
			(r >> 50) % 2,
			(double)(r % 9 + 1),
			(double)(r % 1000),
		};
	}
	p->nr_counts = nr_counts;
	return p;
}

static bool on_stack(const struct profile *p, uint32_t stack, uint32_t function)
{
	for (uint32_t i = 0; i < p->stacks[stack].nr; i++)
		if (p->frames[p->stacks[stack].first + i] == function)
			return true;
	return false;
}

/* One function's row the slow way. */
static struct fold_row count_slowly(const struct profile *p, const struct fold_filter *f,
				    uint32_t function, double *by_task)
{
	struct fold_row row = { .function = function };
	bool in_process[20] = { false };

	for (uint32_t i = 0; i < p->nr_tasks; i++)
		by_task[i] = 0;
	for (uint32_t i = 0; i < p->nr_counts; i++) {
		const struct profile_count *c = &p->counts[i];
		uint32_t process = p->tasks[c->task].process;

		if (c->event != f->event || !on_stack(p, c->stack, function) ||
		    (f->process != ALL && process != f->process))
			continue;
		row.total += c->count;
		row.total_weight += c->weight;
		by_task[c->task] += c->weight;
		row.nr_processes += !in_process[process];
		in_process[process] = true;
		if (p->frames[p->stacks[c->stack].first] == function) {
			row.self += c->count;
			row.self_weight += c->weight;
		}
	}
	return row;
}

TEST(test_random_profiles)
{
	for (uint32_t seed = 1; seed <= 30; seed++) {
		struct profile *p = random_profile(seed, 400, 60, 12);
		struct fold_filter filter = everything;
		struct fold_functions f;

		filter.process = seed % 3 ? ALL : seed % 20;
		filter.event = seed & 1;
		assert_int_equal(fold_functions(p, &filter, &f), 0);
		for (uint32_t i = 0; i < p->nr_functions; i++) {
			double by_task[50];
			struct fold_row slow = count_slowly(p, &filter, i, by_task);
			const struct fold_row *row = row_of(&f, i);

			if (!row) {
				assert_true(slow.total == 0);
				continue;
			}
			assert_true(row->self == slow.self && row->total == slow.total);
			assert_true(row->self_weight == slow.self_weight);
			assert_true(row->total_weight == slow.total_weight);
			assert_int_equal(row->nr_processes, slow.nr_processes);
			for (uint32_t t = 0; t < p->nr_tasks; t++)
				assert_true(by_task[t] <= by_task[row->task]);
		}
		fold_functions_fini(&f);
		profile_free(p);
	}
}

/* Large profiles fold between two key presses: 200 000 cells of up to 60 frames. */
TEST(test_fast_enough)
{
	struct profile *p = random_profile(1, 200000, 20000, 60);
	uint64_t best_ns = UINT64_MAX;

	for (uint32_t i = 0; i < 5; i++) {
		uint64_t start_ns = yardstick_cpu_ns();
		struct fold_filter filter = everything;
		struct fold_functions f;

		for (filter.event = 0; filter.event < 2; filter.event++) {
			assert_int_equal(fold_functions(p, &filter, &f), 0);
			assert_true(f.nr_rows > 10000);
			fold_functions_fini(&f);
		}
		best_ns = MIN(best_ns, yardstick_cpu_ns() - start_ns);
	}
	print_message("200000 cells, %u frames: %lu us\n", p->nr_frames, best_ns / 1000);
	assert_true((double)best_ns < 1e9 * yardstick_slowness());
	profile_free(p);
}

TEST(test_drop_names)
{
	for (unsigned int i = 0; i < DROP_NR; i++) {
		assert_non_null(profile_drop_name(i));
		for (unsigned int j = 0; j < i; j++)
			assert_string_not_equal(profile_drop_name(i), profile_drop_name(j));
	}
	assert_non_null(profile_drop_name(DROP_NR));
	profile_free(NULL);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
