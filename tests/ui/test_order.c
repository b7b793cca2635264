// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rows stand still: of the first 20 rows, how many are at another place a second later, in a
 * steady program and in a compiler; what is beyond doubt moves nevertheless.
 */
#include "fake.h"

#include <math.h>

#define FUNCTIONS 300u
#define CALLERS	  3u /* each calls the functions of an index modulo CALLERS */
#define TICKS	  90u
#define TOP	  20u
#define WINDOW	  5u	/* ticks */
#define RATE	  2000u /* samples of a tick: two busy CPUs at 1000 Hz */
#define S	  1000000000ull

struct made {
	uint32_t seed;
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

/* Take the samples of one tick. */
static void sample(struct made *m)
{
	uint32_t *counts = m->counts[m->tick++ % WINDOW];
	double sum = 0;

	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		sum += m->weights[i];
		counts[i] = 0;
	}
	for (uint32_t n = 0; n < RATE; n++) {
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
			if (list->rows[j].self * RATE * WINDOW >= 30)
				most = MAX(most, list->rows[j].self / list->rows[i].self);
	return most;
}

/*
 * Count, for each pair of the first rows, the profiles in a row in which the lower one is larger
 * beyond doubt (1.4 times, and by both error bars). Return the most.
 */
static uint32_t lateness(const struct list *list, uint8_t (*late)[FUNCTIONS])
{
	double all = RATE * WINDOW;
	uint32_t most = 0;

	for (uint32_t i = 0; i < TOP; i++)
		for (uint32_t j = i + 1; j < TOP; j++) {
			double up = list->rows[i].self, at = list->rows[j].self;
			double bars = 1.96 * (sqrt(up * (1 - up) / all + 1 / (all * all)) +
					      sqrt(at * (1 - at) / all + 1 / (all * all)));
			uint8_t *n = &late[list->rows[i].id - 1000][list->rows[j].id - 1000];

			late[list->rows[j].id - 1000][list->rows[i].id - 1000] = 0;
			*n = at > 1.4 * up && at - up > bars ? *n + 1 : 0;
			most = MAX(most, *n);
		}
	return most;
}

/* Run for a while. Return how many of the first rows change place, in the mean of the ticks.
 * *worst: the largest disorder of a tick; *longest: how many profiles a clear one lasts. */
static double moves(void (*work)(struct made *m), bool forget, double *worst, uint32_t *longest)
{
	static uint8_t late[FUNCTIONS][FUNCTIONS];
	static struct made m;
	uint64_t before[TOP];
	uint32_t nr = 0, nr_ticks = 0;
	struct bench b;

	memset(late, 0, sizeof(late));
	*longest = 0;
	m = (struct made){ .seed = 4711 };
	bench_init(&b, 100, 30, false);
	for (uint32_t tick = 0; tick < TICKS; tick++) {
		struct list *list = &b.st.lists[VIEW_FUNCTIONS];

		work(&m);
		sample(&m);
		if (forget)
			list->nr_slots = 0;
		model_take(&b.st, profile_of(&m));
		if (tick > WINDOW)
			*worst = MAX(*worst, disorder(list));
		if (tick > WINDOW)
			*longest = MAX(*longest, lateness(list, late));
		for (uint32_t i = 0; i < TOP && tick >= WINDOW; i++)
			nr += tick > WINDOW && list->rows[i].id != before[i];
		for (uint32_t i = 0; i < TOP; i++)
			before[i] = list->rows[i].id;
		nr_ticks += tick > WINDOW;
	}
	bench_fini(&b);
	return (double)nr / nr_ticks;
}

TEST(test_rows_stand_still)
{
	double calm = 1, busy = 1, sorted = 1;
	uint32_t late = 0, busy_late = 0, no = 0;
	double steadily = moves(steady, false, &calm, &late),
	       compiling = moves(compile, false, &busy, &busy_late);
	double steadily_sorted = moves(steady, true, &sorted, &no);
	double compiling_sorted = moves(compile, true, &sorted, &no);

	print_message("rows of 20 at another place: steady %.1f (sorted %.1f), compile %.1f "
		      "(sorted %.1f)\n",
		      steadily, steadily_sorted, compiling, compiling_sorted);
	print_message("a row below one that is smaller: at most %.2f, %.2f times as large; 1.4 "
		      "times beyond doubt for %u, %u profiles\n",
		      calm, busy, late, busy_late);
	/* Else the made profiles are too easy. */
	assert_true(steadily_sorted > 5 && compiling_sorted > 10);
	assert_true(steadily <= 1);
	assert_true(compiling <= 3);
	assert_true(sorted == 1 && no == 0);
	assert_true(calm < 1.85 && busy < 1.85);
	assert_true(late <= 2 && busy_late <= 2);
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
	static struct made m = { .seed = 99 };
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
	static struct made m = { .seed = 31 };
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

	m = (struct made){ .seed = 815 };
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

/* The selected row keeps its line of the screen. */
TEST(test_selected_row_stays)
{
	static struct made m = { .seed = 5 };
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
	static struct made m = { .seed = 7 };
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
