// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rows are sorted, of any load, in each list and by each column with noise: no pair of rows is in
 * the wrong order beyond 3 standard errors, the hottest is first. And rows stand still: of the
 * first 20 rows, how many are at another place a second later, in a steady program and in a
 * compiler.
 * Live: takes about a second of CPU time, or more.
 */
#include "ui/view/table.c"

#include "tests/ui/fake.h"

#include <math.h>

#include "sampler/count/count.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "symbols/code/code.h"
#include "sampler/ring/ring.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "ui/state/state.h"
#include "ui/fold/fold.h"
#include "ui/internal.h"

#define FUNCTIONS 300u
#define CALLERS	  3u  /* each calls the functions of an index modulo CALLERS */
#define PROCESSES 40u /* each runs the functions of an index modulo PROCESSES, in a thread */
#define MODULES	  30u
#define TICKS	  90u
#define TOP	  20u
#define WINDOW	  5u	/* ticks */
#define RATE	  2000u /* samples of a tick: two busy CPUs at 1000 Hz */
#define ROWS	  (FUNCTIONS + CALLERS)
#define S	  1000000000ull

struct made {
	uint32_t seed;
	uint32_t rate;		   /* samples of a tick */
	double weights[FUNCTIONS]; /* how likely each function is, in this tick */
	bool weighted;		   /* a sample of a function weighs 1 to 1,000 */
	bool waits;		   /* times of waits, which are exact */
	bool alone;		   /* all in one process */
	bool decay;		   /* a tick counts 0.7 of the next one */
	double counts[WINDOW][FUNCTIONS];
	uint64_t tick;
};

static double chance(struct made *m)
{
	m->seed = m->seed * 1664525u + 1013904223u;
	return (m->seed >> 8) / 16777216.0;
}

/* A flat profile: 3 %, 2.6 % ... */
static double flat(uint32_t i)
{
	return 1 / (8.0 + i);
}

static void steady(struct made *m)
{
	for (uint32_t i = 0; i < FUNCTIONS; i++)
		m->weights[i] = flat(i);
}

/* Two compilers at work: each is a while in one of five phases, which prefer other functions. */
static void compile(struct made *m)
{
	static uint32_t phases[2];

	for (uint32_t job = 0; job < 2; job++)
		if (chance(m) < 0.4)
			phases[job] = (uint32_t)(chance(m) * 5);
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		m->weights[i] = 0;
		for (uint32_t job = 0; job < 2; job++) {
			/* Half of the functions are of one phase, the others of all. */
			uint32_t home = i * 7 % 10;

			m->weights[i] += flat(i) * (home >= 5		  ? 1
						    : home == phases[job] ? 2.5
									  : 0.6);
		}
	}
}

/* Any function may be hot, or not called, in the next seconds. */
static void chaos(struct made *m)
{
	for (uint32_t i = 0; i < FUNCTIONS; i++)
		if (m->tick == 0 || chance(m) < 0.2)
			m->weights[i] = pow(chance(m), 8);
}

/* Equal threads, as of a server. */
static void equal(struct made *m)
{
	for (uint32_t i = 0; i < FUNCTIONS; i++)
		m->weights[i] = 1;
}

/* Functions that are steady for four seconds. */
static void duty(struct made *m)
{
	for (uint32_t i = 0; i < FUNCTIONS && m->tick % 4 == 0; i++)
		m->weights[i] = chance(m) < 0.9 ? chance(m) * chance(m) : 5 * chance(m);
}

/* Take the samples of one tick. */
static void sample(struct made *m)
{
	double *counts = m->counts[m->tick++ % WINDOW], sum = 0, ends[FUNCTIONS];

	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		sum += m->weights[i];
		ends[i] = sum;
		counts[i] = 0;
	}
	for (uint32_t n = 0; n < m->rate; n++) {
		double at = chance(m) * sum;

		counts[MIN(search_split(FUNCTIONS, i, ends[i] <= at), FUNCTIONS - 1)]++;
	}
}

static void fill_names(struct profile *p)
{
	struct text_arena *arena = p->names;
	char name[16];

	for (uint32_t i = 0; i < p->nr_functions; i++) {
		int size = snprintf(name, sizeof(name), "f%u", i);

		p->functions[i] = (struct profile_function){
			.id = 1000 + i,
			.name = text_arena_add(arena, name, (size_t)size),
			.module = text_arena_add(arena, "cc1", 3),
			.module_index = i % MODULES,
			.kind = 'u',
		};
	}
	for (uint32_t i = 0; i < PROCESSES; i++) {
		int size = snprintf(name, sizeof(name), "p%u", i);
		struct safe_text comm = text_arena_add(arena, name, (size_t)size);

		p->processes[i] = (struct profile_process){ .id = 500 + i,
							    .pid = 100 + (pid_t)i,
							    .comm = comm };
		p->tasks[i] = (struct profile_task){ 900 + i, 100 + (pid_t)i, i, comm, 0 };
	}
	for (uint32_t i = 0; i < MODULES; i++) {
		int size = snprintf(name, sizeof(name), "m%u", i);
		struct safe_text text = text_arena_add(arena, name, (size_t)size);

		p->modules[i] = (struct profile_module){ .id = 700 + i,
							 .name = text,
							 .path = text,
							 .source = "",
							 .reason = "",
							 .fix = "" };
	}
}

#define RESIZE(p, items, nr)                                                                       \
	((p)->items = reallocarray((p)->items, (nr), sizeof(*(p)->items)), (p)->nr_##items = (nr))

/* The window as a profile. */
static struct profile *profile_of(const struct made *m)
{
	struct profile *p = fake_profile(2, NULL);

	RESIZE(p, functions, FUNCTIONS + CALLERS);
	RESIZE(p, stacks, FUNCTIONS);
	RESIZE(p, frames, 2 * FUNCTIONS);
	RESIZE(p, counts, FUNCTIONS);
	RESIZE(p, processes, PROCESSES);
	RESIZE(p, tasks, PROCESSES);
	RESIZE(p, modules, MODULES);
	p->nr_counts = 0;
	p->running_ns = (m->tick + 10) * S;
	p->events[0].event.wait = m->waits;
	p->window = m->decay ? PROFILE_DECAY : PROFILE_WINDOW;
	fill_names(p);
	for (uint32_t i = 0; i < PROCESSES; i++)
		p->tasks[i].cpu_ns = 0;
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		double n = 0, of = 1;

		for (uint32_t w = 0; w < WINDOW && w < m->tick; w++) {
			n += of * m->counts[(m->tick - 1 - w) % WINDOW][i];
			of *= m->decay ? 0.7 : 1;
		}
		of = m->waits ? 1e7 : m->weighted ? pow(10, i * 7 % 4) : 1;
		p->stacks[i] = (struct profile_stack){ 2 * i, 2 };
		p->frames[2 * i] = i;
		p->frames[2 * i + 1] = FUNCTIONS + i % CALLERS;
		if (n > 0)
			p->counts[p->nr_counts++] =
				(struct profile_count){ i, m->alone ? 0 : i % PROCESSES, 0, n,
							n * of };
		/* Clocks are exact, and know other time than the samples. */
		p->tasks[i % PROCESSES].cpu_ns += m->weights[i] * (1 + i % 3) * 1e9;
	}
	return p;
}

/* ---- the order of a list ---- */

/* A list as shown. */
struct shown {
	enum view_id view;
	const char *column; /* by its title */
	bool inverted, threads;
};

static const struct view_column *t_column_of(const struct shown *s, uint8_t *at)
{
	const struct view *v = view_of(s->view);

	for (*at = 0; *at < v->nr_columns; ++*at)
		if (!strcmp(v->columns[*at].title.str, s->column))
			return &v->columns[*at];
	fail_msg("no column %s", s->column);
	return NULL;
}

/* Get the value that a row is sorted by, and its number of samples. */
static struct interval_sum t_sum_of(const struct made *m, const struct list *list,
				    const struct view_column *column, const struct row *row)
{
	double value = column->share == COLUMN_SELF ? row->self : row->total;
	struct interval_sum sum = { value, row->count };

	if (column->share == COLUMN_SAMPLES)
		sum.weight = row->count;
	else if (column->share == COLUMN_CPU && !m->waits)
		return (struct interval_sum){ row->cpu_ns / (5.0 * S),
					      MAX(row->count, row->cpu_ns * 10000 / (5.0 * S)) };
	/* Of exact times the noise is at most that of 10,000 samples. */
	else if (m->waits)
		sum.count = MAX(value * 10000, sum.count);
	else if (!m->weighted)
		sum.count = value * list->count;
	sum.count *= m->decay ? 2 : 1;
	return sum;
}

/* Get how many standard errors @b is more than @a. */
static double errors_of(struct interval_sum a, struct interval_sum b)
{
	double va = a.count > 0 ? a.weight * a.weight / a.count : 0,
	       vb = b.count > 0 ? b.weight * b.weight / b.count : 0;

	return b.weight > a.weight ? (b.weight - a.weight) / sqrt(va + vb) : 0;
}

/*
 * Check @nr rows: none is more than the first row or the row above it beyond chance (95 %), nor
 * than any row above it beyond 3 standard errors. Return the most of these.
 */
static double check_order(const struct interval_sum *sums, uint32_t nr, bool inverted)
{
	double worst = 0;

	for (uint32_t i = 0; i < nr; i++)
		for (uint32_t j = i + 1; j < nr; j++) {
			struct interval_sum up = sums[inverted ? j : i],
					    at = sums[inverted ? i : j];
			double z = errors_of(up, at);

			/* A row without samples is below any that has some. */
			assert_false(up.weight <= 0 && at.weight > 0);
			if (z > 3.05)
				fail_msg("%g of %g samples is above %g of %g: %.2f standard errors",
					 up.weight, up.count, at.weight, at.count, z);
			if (!i || j == i + 1)
				assert_false(interval_exceeds(at, up, INTERVAL_Z));
			/* Less than half of a sample of another row is below that row. */
			if (at.weight / MAX(at.count, 1) > 2.001 * up.weight)
				fail_msg("%g is above %g of %g samples", up.weight, at.weight,
					 at.count);
			worst = MAX(worst, z);
		}
	return worst;
}

/* Check that "~" marks the rows that are not significantly behind the row above. */
static void check_marks(const struct ui_state *st, const struct shown *s, const struct list *list,
			const struct interval_sum *sums)
{
	for (uint32_t i = 1; i < list->nr; i++) {
		struct interval_sum up = sums[s->inverted ? i : i - 1],
				    at = sums[s->inverted ? i - 1 : i];
		bool tie = up.weight > 0 && at.weight > 0 && !interval_exceeds(up, at, INTERVAL_Z);

		assert_int_equal(order_is_tie(st, view_of(s->view), list, &list->rows[i]), tie);
	}
}

struct result {
	double moves; /* rows of the first ones that change place, in the mean of the ticks */
	double worst; /* the largest difference of a pair in the wrong order, in standard errors */
};

/* Take a tick, and check the rows. */
static double run_tick(struct bench *b, struct made *m, const struct shown *s)
{
	struct interval_sum sums[ROWS];
	struct list *list = &b->st.lists[s->view];
	const struct view_column *column;
	double worst;

	column = t_column_of(s, &list->sort);
	list->inverted = s->inverted;
	sample(m);
	model_take(&b->st, profile_of(m));
	assert_in_range(list->nr, 2, ROWS);
	for (uint32_t i = 0; i < list->nr; i++)
		sums[i] = t_sum_of(m, list, column, &list->rows[i]);
	worst = check_order(sums, list->nr, s->inverted);
	if (!m->waits)
		check_marks(&b->st, s, list, sums);
	/* A refresh of the same profile moves nothing. */
	if (m->tick % 16 == 0) {
		uint64_t first = list->rows[0].id, last = list->rows[list->nr - 1].id;

		table_rebuild(&b->st, s->view);
		assert_true(list->rows[0].id == first && list->rows[list->nr - 1].id == last);
	}
	return worst;
}

/* Run for a while. @forget: rows are sorted at each tick. */
static struct result run(void (*work)(struct made *m), struct made m, const struct shown *s,
			 bool forget)
{
	struct result r = { 0 };
	uint64_t before[TOP] = { 0 };
	uint32_t nr = 0, nr_ticks = 0;
	struct bench b;

	bench_init(&b, 100, 30, false);
	b.st.view = s->view;
	b.st.by_thread = s->threads;
	for (uint32_t tick = 0; tick < TICKS; tick++) {
		const struct list *list = &b.st.lists[s->view];
		double worst;

		if (forget)
			order_forget(&b.st.lists[s->view]);
		work(&m);
		worst = run_tick(&b, &m, s);
		if (tick > WINDOW) {
			r.worst = MAX(r.worst, worst);
			for (uint32_t i = 0; i < MIN(list->nr, TOP); i++)
				nr += list->rows[i].id != before[i];
			nr_ticks++;
		}
		for (uint32_t i = 0; i < MIN(list->nr, TOP); i++)
			before[i] = list->rows[i].id;
	}
	bench_fini(&b);
	r.moves = (double)nr / nr_ticks;
	return r;
}

static const struct shown by_self = { VIEW_FUNCTIONS, "SELF%", false, false };

/* Less than one row of 20 changes place with another one at a tick in a steady program. */
TEST(test_rows_stand_still)
{
	static const struct {
		void (*work)(struct made *m);
		const char *name;
		double most, sorted;
	} works[] = { { steady, "steady", 1, 5 },
		      { equal, "equal", 2, 10 },
		      { compile, "compile", 7, 10 } };

	for (size_t i = 0; i < ARRAY_SIZE(works); i++)
		for (uint32_t seed = 1; seed <= 3; seed++) {
			struct made m = { .seed = seed, .rate = RATE };
			struct result kept = run(works[i].work, m, &by_self, false),
				      sorted = run(works[i].work, m, &by_self, true);

			print_message("%s: rows of 20 at another place: %.1f (sorted %.1f); "
				      "wrong by %.1f standard errors at most\n",
				      works[i].name, kept.moves, sorted.moves, kept.worst);
			/* Else the made profiles are too easy. */
			assert_true(sorted.moves > works[i].sorted && sorted.worst <= 0);
			assert_true(kept.moves <= works[i].most);
		}
}

static const struct shown lists[] = {
	{ VIEW_FUNCTIONS, "SELF%", false, false },   { VIEW_FUNCTIONS, "TOTAL%", false, false },
	{ VIEW_FUNCTIONS, "SAMPLES", false, false }, { VIEW_FUNCTIONS, "SELF%", true, false },
	{ VIEW_PROCESSES, "SHARE%", false, false },  { VIEW_PROCESSES, "CPU%", false, false },
	{ VIEW_PROCESSES, "SAMPLES", true, false },  { VIEW_PROCESSES, "SHARE%", false, true },
	{ VIEW_MODULES, "SELF%", false, false },
};

/* Rows are in order, whatever the load, the number of samples and their weights. */
TEST(test_rows_are_in_order)
{
	static const struct made kinds[] = {
		{ .rate = 30 },
		{ .rate = 300 },
		{ .rate = RATE },
		{ .rate = 300, .decay = true },
		{ .rate = 300, .weighted = true },
		{ .rate = RATE, .waits = true },
	};
	double worst = 0;

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
			struct made m = kinds[k];

			/* The made weight of a total is of several weights. */
			if (m.weighted && lists[i].view != VIEW_FUNCTIONS)
				continue;
			if (m.weighted && !strcmp(lists[i].column, "TOTAL%"))
				continue;
			m.seed = (uint32_t)(1 + i + 10 * k);
			worst = MAX(worst, run(chaos, m, &lists[i], false).worst);
			worst = MAX(worst, run(duty, m, &lists[i], false).worst);
		}
	/* Else rows never stood still. */
	assert_true(worst > 1.5);
}

/* In each list the rows of a steady program stand still. */
TEST(test_lists_stand_still)
{
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		struct made m = { .seed = 3, .rate = RATE };
		struct result kept = run(steady, m, &lists[i], false),
			      sorted = run(steady, m, &lists[i], true);

		print_message("%s by %s%s: rows of 20 at another place: %.1f (sorted %.1f)\n",
			      view_of(lists[i].view)->title.str, lists[i].column,
			      lists[i].inverted ? ", reversed" : "", kept.moves, sorted.moves);
		assert_true(kept.moves <= (lists[i].inverted ? 3 : 1));
		/* Clocks are without noise. */
		assert_true(sorted.moves > 3 || !strcmp(lists[i].column, "CPU%"));
	}
}

static uint32_t place_of(const struct list *list, uint64_t id)
{
	for (uint32_t i = 0; i < list->nr; i++)
		if (list->rows[i].id == id)
			return i;
	return UINT32_MAX;
}

/* No order is significantly wrong; a new hot function is first soon, one that ends is soon not. */
TEST(test_true_changes_move)
{
	static struct made m = { .seed = 99, .rate = RATE };
	struct list *list;
	struct bench b;

	bench_init(&b, 100, 30, false);
	list = &b.st.lists[VIEW_FUNCTIONS];
	steady(&m);
	for (uint32_t tick = 0; tick < 20; tick++) {
		sample(&m);
		model_take(&b.st, profile_of(&m));
	}
	m.weights[250] = 1;
	for (uint32_t tick = 0; tick < 3; tick++) {
		sample(&m);
		model_take(&b.st, profile_of(&m));
	}
	assert_int_equal(place_of(list, 1250), 0);
	m.weights[250] = 0;
	for (uint32_t tick = 0; tick < WINDOW + 1; tick++) {
		sample(&m);
		model_take(&b.st, profile_of(&m));
	}
	assert_true(place_of(list, 1250) > 100);
	/* A row twice as hot is above. */
	for (uint32_t i = 0; i < TOP; i++)
		for (uint32_t j = i + 1; j < TOP; j++)
			assert_true(list->rows[j].self < 2 * list->rows[i].self + 0.003);
	bench_fini(&b);
}

/* Rows without a share are in the order of their totals. */
TEST(test_callers_by_total)
{
	static struct made m = { .seed = 31, .rate = RATE };
	struct list *list;
	struct bench b;

	bench_init(&b, 100, 30, false);
	list = &b.st.lists[VIEW_FUNCTIONS];
	for (uint32_t most = 0; most < CALLERS; most++) {
		for (uint32_t i = 0; i < FUNCTIONS; i++)
			m.weights[i] = i >= 30 ? 0 : i % CALLERS == most ? 4 : 1;
		for (uint32_t tick = 0; tick < 2 * WINDOW; tick++) {
			sample(&m);
			model_take(&b.st, profile_of(&m));
		}
		assert_true(list->nr == 30 + CALLERS);
		for (uint32_t i = 0; i < CALLERS; i++)
			assert_int_equal(place_of(list, 1000 + FUNCTIONS + i) == 30, i == most);
	}
	bench_fini(&b);
}

/* Show a steady program in a view of siblings. Return how many rows of 20 change place in a tick.
 */
static double siblings_moved(enum view_id view, bool forget)
{
	static struct made m;
	uint64_t before[TOP] = { 0 };
	uint32_t nr = 0, nr_ticks = 0;
	struct bench b;

	m = (struct made){ .seed = 815, .rate = RATE, .alone = true };
	bench_init(&b, 100, 30, false);
	steady(&m);
	for (uint32_t tick = 0; tick < TICKS; tick++) {
		const struct list *list = &b.st.lists[view];

		sample(&m);
		if (forget)
			b.st.lists[view].nr_slots = 0;
		model_take(&b.st, profile_of(&m));
		if (tick == WINDOW && view == VIEW_TREE) {
			press(&b, '3');
			press(&b, '*');
		} else if (tick == WINDOW) {
			navigate_to_callers(&b.st, 1000 + FUNCTIONS);
		}
		assert_true(tick < WINDOW || list->nr > TOP);
		for (uint32_t i = 0; i < TOP && tick > WINDOW; i++)
			nr += tick > WINDOW + 1 && list->rows[i].id != before[i];
		for (uint32_t i = 0; i < TOP && tick > WINDOW; i++)
			before[i] = list->rows[i].id;
		nr_ticks += tick > WINDOW + 1;
	}
	bench_fini(&b);
	return (double)nr / nr_ticks;
}

/* Children in the tree, and callees, stand still as other rows do. */
TEST(test_siblings_stand_still)
{
	static const enum view_id views[] = { VIEW_TREE, VIEW_CALLERS };

	for (size_t i = 0; i < ARRAY_SIZE(views); i++) {
		double kept = siblings_moved(views[i], false),
		       sorted = siblings_moved(views[i], true);

		print_message("%s: rows of 20 at another place: %.1f (sorted %.1f)\n",
			      view_of(views[i])->title.str, kept, sorted);
		assert_true(sorted > 5);
		assert_true(kept <= 1);
	}
}

/* Siblings are in order, of any number, from above or below, also new ones and many. */
TEST(test_siblings_of_any_load)
{
	struct order_sibling siblings[2 * ORDER_SIBLINGS];
	struct interval_sum sums[2 * ORDER_SIBLINGS];
	uint32_t order[2 * ORDER_SIBLINGS], nr_wrong = 0;
	struct made m = { .seed = 12 };
	struct list *list;
	struct bench b;

	bench_init(&b, 100, 30, false);
	list = &b.st.lists[VIEW_TREE];
	for (uint32_t round = 0; round < 4000; round++) {
		uint32_t nr = 1 + (uint32_t)(chance(&m) * (2 * ORDER_SIBLINGS - 1));
		bool from_below = round % 2;
		double most = pow(10, 4 * chance(&m));

		/* Sorted, as from a fold. */
		for (uint32_t i = 0; i < nr; i++) {
			double n =
				floor(i ? siblings[i - 1].count * (1 - chance(&m) / 9) : most) + 1;

			siblings[i] = (struct order_sibling){ 1 + (uint64_t)(chance(&m) * 1e9),
							      n / 1e6, n };
		}
		/* Most were there, at any place. */
		list->nr = 0;
		for (uint32_t i = 0; i < nr; i++)
			if (chance(&m) < 0.9)
				list_add(list)->id = siblings[(uint32_t)(chance(&m) * nr)].id;
		order_forget(list);
		order_end(list);
		order_siblings(&b.st, list, siblings, nr, from_below, order);
		for (uint32_t i = 0; i < nr; i++) {
			sums[i] = (struct interval_sum){ siblings[order[i]].share,
							 siblings[order[i]].count };
			nr_wrong += i && sums[i].weight > sums[i - 1].weight;
		}
		check_order(sums, MIN(nr, ORDER_SIBLINGS), false);
	}
	assert_true(nr_wrong > 1000);
	bench_fini(&b);
}

/* A sibling rises above one that is smaller beyond noise, past one that is between them. */
TEST(test_siblings_are_in_order)
{
	static const struct order_sibling siblings[] = { { 1, 0.09, 90 },
							 { 2, 0.12, 120 },
							 { 3, 0.15, 150 } },
					  few[] = { { 1, 0.09, 9 },
						    { 2, 0.12, 12 },
						    { 3, 0.15, 15 } };
	uint32_t order[ARRAY_SIZE(siblings)];
	struct list *list;
	struct bench b;

	bench_init(&b, 100, 30, false);
	list = &b.st.lists[VIEW_TREE];
	list->nr = 0;
	for (size_t i = 0; i < ARRAY_SIZE(siblings); i++)
		list_add(list)->id = siblings[i].id;
	order_end(list);
	order_siblings(&b.st, list, siblings, ARRAY_SIZE(siblings), false, order);
	assert_int_equal(order[0], 2);
	assert_int_equal(order[1], 1);
	assert_int_equal(order[2], 0);
	/* Of fewer samples, each may be the largest. */
	order_siblings(&b.st, list, few, ARRAY_SIZE(few), false, order);
	assert_int_equal(order[0], 0);
	bench_fini(&b);
}

/* Siblings above their parent stand still also: the largest is the nearest, the last of the rows.
 */
TEST(test_siblings_from_below)
{
	static const struct order_sibling siblings[] = { { 1, 0.102, 102 },
							 { 2, 0.101, 101 },
							 { 3, 0.100, 100 } };
	uint32_t order[ARRAY_SIZE(siblings)];
	struct list *list;
	struct bench b;

	bench_init(&b, 100, 30, false);
	list = &b.st.lists[VIEW_CALLERS];
	list->nr = 0;
	for (size_t i = 0; i < ARRAY_SIZE(siblings); i++)
		list_add(list)->id = siblings[i].id;
	order_end(list);
	for (uint32_t from_below = 0; from_below < 2; from_below++) {
		order_siblings(&b.st, list, siblings, ARRAY_SIZE(siblings), from_below, order);
		for (uint32_t i = 0; i < ARRAY_SIZE(siblings); i++)
			assert_int_equal(order[i], from_below ? 2 - i : i);
	}
	bench_fini(&b);
}

/* CPUs have no noise: they are in order by any figure, at each tick. */
TEST(test_cpus_are_in_order)
{
	static const char *const titles[] = { "BUSY", "GOT/s", "LOST", "RING" };
	struct made m = { .seed = 4 };
	struct list *list;
	struct bench b;

	bench_init(&b, 100, 30, false);
	b.st.view = VIEW_CPUS;
	list = &b.st.lists[VIEW_CPUS];
	for (uint32_t tick = 0; tick < 400; tick++) {
		struct shown s = { VIEW_CPUS, titles[tick / 2 % 4], tick / 8 % 2, false };
		struct profile *p = fake_profile(40, NULL);

		t_column_of(&s, &list->sort);
		list->inverted = s.inverted;
		for (uint32_t i = 0; i < p->nr_cpus; i++) {
			p->cpus[i].busy = chance(&m);
			p->cpus[i].samples = (uint64_t)(chance(&m) * 1000);
			p->cpus[i].lost_total = (uint64_t)(chance(&m) * 9);
			p->cpus[i].ring_high = chance(&m);
		}
		model_take(&b.st, p);
		assert_int_equal(list->nr, p->nr_cpus);
		for (uint32_t i = 1; i < list->nr; i++) {
			const struct profile_cpu *up = &p->cpus[list->rows[i - 1].index],
						 *at = &p->cpus[list->rows[i].index];
			const double d[] = { up->busy - at->busy,
					     (double)up->samples - (double)at->samples,
					     (double)up->lost_total - (double)at->lost_total,
					     up->ring_high - at->ring_high };

			assert_true(s.inverted ? d[tick / 2 % 4] <= 0 : d[tick / 2 % 4] >= 0);
		}
	}
	bench_fini(&b);
}

/* The cursor follows the selected row, which is sorted as others are. */
TEST(test_selected_row_is_sorted)
{
	static struct made m = { .seed = 5, .rate = RATE };
	struct interval_sum sums[ROWS];
	const struct view_column *column;
	struct list *list;
	uint64_t selected;
	uint32_t nr_moved = 0;
	struct bench b;

	bench_init(&b, 100, 30, false);
	list = &b.st.lists[VIEW_FUNCTIONS];
	column = t_column_of(&by_self, &list->sort);
	duty(&m);
	sample(&m);
	model_take(&b.st, profile_of(&m));
	look(&b);
	for (int i = 0; i < 6; i++)
		press(&b, 'j');
	selected = list->selected;
	for (uint32_t tick = 0; tick < 60; tick++) {
		duty(&m);
		m.weights[selected - 1000] = tick % 20 < 10 ? 0.3 : 5;
		sample(&m);
		model_take(&b.st, profile_of(&m));
		for (uint32_t i = 0; i < list->nr; i++)
			sums[i] = t_sum_of(&m, list, column, &list->rows[i]);
		check_order(sums, list->nr, false);
		assert_true(list->rows[list->cursor].id == selected);
		nr_moved += list->cursor != 6;
	}
	assert_true(nr_moved > 20);
	bench_fini(&b);
}

/* Rows of another moment of the past are sorted: they had no place before. */
TEST(test_moments_are_sorted)
{
	static struct made m = { .seed = 7, .rate = RATE };
	struct list *list;
	struct profile *p;
	struct bench b;

	bench_init(&b, 100, 30, false);
	list = &b.st.lists[VIEW_FUNCTIONS];
	for (uint32_t tick = 1; tick < 30; tick++) {
		compile(&m);
		sample(&m);
		p = profile_of(&m);
		p->past_begin_ns = tick * 1000000000ull;
		p->past_end_ns = p->past_begin_ns + 1;
		model_take(&b.st, p);
		for (uint32_t i = 1; i < list->nr; i++)
			assert_true(list->rows[i].self <= list->rows[i - 1].self);
	}
	bench_fini(&b);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
