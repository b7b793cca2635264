// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rows stand still: of the first 20 rows, how many are at another place a second later, in a
 * steady program and in a compiler; what is beyond doubt moves nevertheless.
 */
#include "fake.h"

#include <math.h>

#include "sampler/count/interval.h"
#include "ui/view/order.h"

#define FUNCTIONS 300u
#define CALLERS	  3u /* each calls the functions of an index modulo CALLERS */
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
	uint32_t counts[WINDOW][FUNCTIONS];
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

/* Take the samples of one tick. */
static void sample(struct made *m)
{
	uint32_t *counts = m->counts[m->tick++ % WINDOW];
	double sum = 0;

	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		sum += m->weights[i];
		counts[i] = 0;
	}
	for (uint32_t n = 0; n < m->rate; n++) {
		double at = chance(m) * sum;
		uint32_t i = 0;

		while (i + 1 < FUNCTIONS && at >= m->weights[i])
			at -= m->weights[i++];
		counts[i]++;
	}
}

/* The window as a profile. */
static struct profile *profile_of(const struct made *m)
{
	struct profile *p = fake_profile(2, NULL);
	struct text_arena *arena = p->names;

	p->functions = reallocarray(p->functions, FUNCTIONS + CALLERS, sizeof(*p->functions));
	p->stacks = reallocarray(p->stacks, FUNCTIONS, sizeof(*p->stacks));
	p->frames = reallocarray(p->frames, 2ull * FUNCTIONS, sizeof(*p->frames));
	p->counts = reallocarray(p->counts, FUNCTIONS, sizeof(*p->counts));
	p->nr_functions = FUNCTIONS + CALLERS;
	p->nr_stacks = FUNCTIONS;
	p->nr_frames = 2 * FUNCTIONS;
	p->nr_counts = 0;
	p->running_ns = (m->tick + 10) * S;
	for (uint32_t i = 0; i < p->nr_functions; i++) {
		char name[16];
		int size = snprintf(name, sizeof(name), "f%u", i);

		p->functions[i] = (struct profile_function){
			.id = 1000 + i,
			.name = text_arena_add(arena, name, (size_t)size),
			.module = text_arena_add(arena, "cc1", 3),
			.kind = 'u',
		};
	}
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		double n = 0;

		for (uint32_t w = 0; w < WINDOW; w++)
			n += m->counts[w][i];
		p->stacks[i] = (struct profile_stack){ 2 * i, 2 };
		p->frames[2 * i] = i;
		p->frames[2 * i + 1] = FUNCTIONS + i % CALLERS;
		if (n > 0)
			p->counts[p->nr_counts++] = (struct profile_count){ i, 0, 0, n, n };
	}
	return p;
}

/* Return how many times larger a row is than one above it, at most; rows of a few samples do not
 * count. */
static double disorder(const struct list *list)
{
	double most = 1;

	for (uint32_t i = 0; i < TOP; i++)
		for (uint32_t j = i + 1; j < TOP; j++)
			if (list->rows[j].self * list->count >= 30)
				most = MAX(most, list->rows[j].self / list->rows[i].self);
	return most;
}

/*
 * Count, for each pair of the first rows, the profiles in a row in which the lower one is larger
 * beyond noise: their error bars do not overlap. Return the most.
 */
static uint32_t lateness(const struct list *list, uint8_t (*late)[ROWS])
{
	static uint8_t now[ROWS][ROWS];
	double all = list->count;
	uint32_t most = 0;

	memset(now, 0, sizeof(now));
	for (uint32_t i = 0; i < TOP; i++)
		for (uint32_t j = i + 1; j < TOP; j++) {
			const struct row *up = &list->rows[i], *at = &list->rows[j];
			uint64_t a = up->id - 1000, b = at->id - 1000;

			if (interval_of(at->self * all, all).low <=
			    interval_of(up->self * all, all).high)
				continue;
			now[a][b] = (uint8_t)(late[a][b] + 1);
			most = MAX(most, now[a][b]);
		}
	memcpy(late, now, sizeof(now));
	return most;
}

struct result {
	double moves;	  /* rows of the first ones that change place, in the mean of the ticks */
	double worst;	  /* the largest disorder of a tick */
	uint32_t longest; /* profiles in a row in which a pair is wrong beyond noise */
};

/* Run for a while, @rate samples a tick. @forget: rows are sorted at each tick. */
static struct result run(void (*work)(struct made *m), uint32_t seed, uint32_t rate, bool forget)
{
	static uint8_t late[ROWS][ROWS];
	static struct made m;
	struct result r = { .worst = 1 };
	uint64_t before[TOP];
	uint32_t nr = 0, nr_ticks = 0, in_a_row;
	struct bench b;

	memset(late, 0, sizeof(late));
	m = (struct made){ .seed = seed, .rate = rate };
	bench_init(&b, 100, 30, false);
	for (uint32_t tick = 0; tick < TICKS; tick++) {
		struct list *list = &b.st.lists[VIEW_FUNCTIONS];

		work(&m);
		sample(&m);
		if (forget)
			list->nr_slots = 0;
		model_take(&b.st, profile_of(&m));
		assert_true(list->nr >= TOP);
		in_a_row = tick > WINDOW ? lateness(list, late) : 0;
		r.longest = MAX(r.longest, in_a_row);
		if (tick > WINDOW)
			r.worst = MAX(r.worst, disorder(list));
		for (uint32_t i = 0; i < TOP && tick >= WINDOW; i++)
			nr += tick > WINDOW && list->rows[i].id != before[i];
		for (uint32_t i = 0; i < TOP; i++)
			before[i] = list->rows[i].id;
		nr_ticks += tick > WINDOW;
	}
	bench_fini(&b);
	r.moves = (double)nr / nr_ticks;
	return r;
}

/* At most one row of 20 changes place at a tick in a steady program, three in a compiler. */
TEST(test_rows_stand_still)
{
	static const struct {
		void (*work)(struct made *m);
		const char *name;
		double most, sorted;
	} works[] = { { steady, "steady", 1, 5 }, { compile, "compile", 3, 10 } };

	for (size_t i = 0; i < ARRAY_SIZE(works); i++)
		for (uint32_t seed = 1; seed <= 4; seed++) {
			struct result kept = run(works[i].work, seed, RATE, false),
				      sorted = run(works[i].work, seed, RATE, true);

			print_message("%s: rows of 20 at another place: %.1f (sorted %.1f); a row "
				      "below one that is smaller: at most %.2f times as large; "
				      "beyond noise for %u profiles\n",
				      works[i].name, kept.moves, sorted.moves, kept.worst,
				      kept.longest);
			/* Else the made profiles are too easy. */
			assert_true(sorted.moves > works[i].sorted);
			assert_true(sorted.worst == 1 && sorted.longest == 0);
			assert_true(kept.moves <= works[i].most);
			assert_in_range(kept.longest, 0, 2);
		}
}

/* No pair of rows beyond noise is in the wrong order for more than two profiles. */
TEST(test_no_pair_stays_wrong)
{
	static const uint32_t rates[] = { 30, 300, RATE };
	uint32_t longest = 0;

	for (size_t i = 0; i < ARRAY_SIZE(rates); i++)
		for (uint32_t seed = 1; seed <= 4; seed++) {
			struct result r = run(chaos, seed, rates[i], false);

			longest = MAX(longest, r.longest);
			assert_in_range(r.longest, 0, 2);
		}
	/* Else nothing was ever wrong. */
	assert_true(longest > 0);
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
	/* What is twice as hot is above. */
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

	m = (struct made){ .seed = 815, .rate = RATE };
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

/* A sibling rises above one that is smaller beyond noise, past one that is between them. */
TEST(test_siblings_are_in_order)
{
	static const struct order_sibling siblings[] = { { 1, 0.09 }, { 2, 0.12 }, { 3, 0.15 } };
	uint32_t order[ARRAY_SIZE(siblings)];
	struct list *list;
	struct bench b;

	bench_init(&b, 100, 30, false);
	list = &b.st.lists[VIEW_TREE];
	list->nr = 0;
	list->count = 1000;
	for (size_t i = 0; i < ARRAY_SIZE(siblings); i++)
		list_add(list)->id = siblings[i].id;
	order_end(list);
	order_siblings(&b.st, list, siblings, ARRAY_SIZE(siblings), false, order);
	assert_int_equal(order[0], 2);
	assert_int_equal(order[1], 1);
	assert_int_equal(order[2], 0);
	/* Of fewer samples, each may be the largest. */
	list->count = 100;
	order_siblings(&b.st, list, siblings, ARRAY_SIZE(siblings), false, order);
	assert_int_equal(order[0], 0);
	bench_fini(&b);
}

/* The selected row keeps its line of the screen. */
TEST(test_selected_row_stays)
{
	static struct made m = { .seed = 5, .rate = RATE };
	struct list *list;
	uint64_t selected;
	struct bench b;

	bench_init(&b, 100, 30, false);
	list = &b.st.lists[VIEW_FUNCTIONS];
	compile(&m);
	sample(&m);
	model_take(&b.st, profile_of(&m));
	look(&b);
	for (int i = 0; i < 6; i++)
		press(&b, 'j');
	selected = list->selected;
	for (uint32_t tick = 0; tick < 60; tick++) {
		compile(&m);
		sample(&m);
		model_take(&b.st, profile_of(&m));
		if (place_of(list, selected) == UINT32_MAX)
			break;
		assert_int_equal(list->cursor, 6);
		assert_int_equal(list->top, 0);
		assert_int_equal(list->rows[6].id, selected);
	}
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
