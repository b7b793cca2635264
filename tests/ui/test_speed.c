// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From key to screen with 200 000 distinct stacks in the window: at most
 * 100 ms for 99 of 100 keys, and nothing drawn that did not change.
 *
 * Times are CPU times of this thread, so that a busy machine does not fail it, and the limits
 * stretch on a slower one.
 * Sanitizers make code many times slower: there the limit is not checked.
 * Live: takes about a second of CPU time, or more.
 */
#include "tests/ui/large.h"

#include "tests/yardstick.h"
#include "symbols/base/base.h"
#include "sampler/profile/profile.h"
#include "ui/key/key.h"
#include "ui/draw/term.c"
#include "ui/state/state.h"
#include "ui/internal.h"

#define LIMIT_NS      100e6
#define FOLD_LIMIT_NS 250e6

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TIMED false
#else
#define TIMED true
#endif

static int by_size(const void *pa, const void *pb)
{
	const uint64_t *a = pa, *b = pb;

	return (*a > *b) - (*a < *b);
}

/* Press all keys of @keys one by one in @view; each with its screen. */
static void measure(struct bench *b, const char *view, const char *keys)
{
	uint64_t times[512], begin;
	uint32_t nr = 0;

	for (const char *k = view; *k; k++)
		press(b, (unsigned char)*k);
	screen_draw(&b->st, &b->canvas);
	for (int round = 0; round < 3; round++) {
		for (const char *k = keys; *k && nr < ARRAY_SIZE(times); k++) {
			begin = yardstick_cpu_ns();
			press(b, *k == '\n' ? K_ENTER : (unsigned char)*k);
			screen_draw(&b->st, &b->canvas);
			times[nr++] = yardstick_cpu_ns() - begin;
		}
	}
	qsort(times, nr, sizeof(times[0]), by_size);
	print_message("view %s: median %.2f ms, p99 %.2f ms\n", view, (double)times[nr / 2] / 1e6,
		      (double)times[nr * 99 / 100] / 1e6);
	if (TIMED)
		assert_true((double)times[nr * 99 / 100] <= LIMIT_NS * yardstick_slowness());
}

#define FOLD_TRIES 3
#define CHAIN_NR   (1u << 24)
/* Time of walk_chain() on a machine that yardstick_slowness() is 1 of. */
#define CHAIN_REF_NS 18.8e6

static uint32_t *chain;

/* Loads that no cache holds, each after the other, as a fold has them. */
static void walk_chain(void)
{
	uint32_t at = 0;

	for (int i = 0; i < 200000; i++)
		at = chain[at];
	__asm__ volatile("" : : "r"(at));
}

/* Return how much slower than there memory or the processor is now: programs on other CPUs use the
 * memory too. */
static double fold_slowness(void)
{
	double memory;

	if (!chain) {
		chain = calloc(CHAIN_NR, sizeof(*chain));
		assert_non_null(chain);
		for (uint32_t i = 0; i < CHAIN_NR; i++)
			chain[i] = (i * 1664525u + 1013904223u) % CHAIN_NR;
	}
	memory = yardstick_measure(walk_chain) / CHAIN_REF_NS;
	return MAX(memory, yardstick_slowness());
}

/* Keys after which all stacks are folded again: the slowest ones. */
static const char *const fold_keys[] = { "1", "2", "3", "4", "6", "1K", "3", "4", "1K", "H", "1b" };

/* Press them all; @least: the least time of each, of this and the tries before. */
static void press_fold_keys(struct profile *p, double *least)
{
	struct bench b;

	bench_init(&b, 200, 60, false);
	model_take(&b.st, p);
	for (size_t i = 0; i < ARRAY_SIZE(fold_keys); i++) {
		uint64_t begin = yardstick_cpu_ns(), took;

		for (const char *k = fold_keys[i]; *k; k++)
			press(&b, (unsigned char)*k);
		screen_draw(&b.st, &b.canvas);
		took = yardstick_cpu_ns() - begin;
		print_message("keys %s: %.1f ms, %u rows\n", fold_keys[i], (double)took / 1e6,
			      ui_state_list(&b.st)->nr);
		assert_true(ui_state_list(&b.st)->nr > 0);
		least[i] = least[i] > 0 ? MIN(least[i], (double)took) : (double)took;
	}
	bench_fini(&b);
}

/* Tried again when too slow: the load of the machine changes. */
static void fold_anew(struct profile *(*make)(uint32_t seed))
{
	double least[ARRAY_SIZE(fold_keys)] = { 0 }, most = 0, limit = 0;

	for (int try = 0; try < FOLD_TRIES; try++) {
		press_fold_keys(make(1), least);
		most = 0;
		for (size_t i = 0; i < ARRAY_SIZE(least); i++)
			most = MAX(most, least[i]);
		limit = MAX(limit, FOLD_LIMIT_NS * fold_slowness());
		print_message("slowest: %.1f ms of %.1f ms\n", most / 1e6, limit / 1e6);
		if (!TIMED || most <= limit)
			return;
	}
	fail_msg("a fold took %.1f ms, more than %.1f ms", most / 1e6, limit / 1e6);
}

TEST(test_folds)
{
	fold_anew(large_profile);
}

TEST(test_bush)
{
	fold_anew(large_bush);
}

TEST(test_keys)
{
	static const char moves[] = "jjjjkkkkGgnNjjjjkkkkGgjjjjkkkkGgjjjjkkkkGg";
	struct bench b;

	bench_init(&b, 200, 60, false);
	model_take(&b.st, large_profile(1));
	measure(&b, "1", moves);
	measure(&b, "1", "\\meth\nPTMI\\od_1\nPTMI\\.*9\nVV<>>");
	press(&b, '\\');
	press(&b, K_CTRL('u'));
	press(&b, K_ENTER);
	measure(&b, "2", moves);
	measure(&b, "5", moves);
	measure(&b, "6", moves);
	measure(&b, "3", moves);
	measure(&b, "4", moves);
	bench_fini(&b);
}

/* Only changed cells are written: a move of the cursor is two rows and a counter. */
TEST(test_changes)
{
	struct canvas_run run = { 0, 0, 0 };
	struct canvas before;
	uint64_t cells = 0;
	struct bench b;

	bench_init(&b, 200, 60, false);
	model_take(&b.st, large_profile(1));
	canvas_init(&before, false);
	assert_int_equal(canvas_resize(&before, 60, 200), 0);
	press(&b, 'j');
	screen_draw(&b.st, &b.canvas);
	canvas_copy(&before, &b.canvas);
	screen_draw(&b.st, &b.canvas);
	assert_false(canvas_diff(&before, &b.canvas, &run));
	press(&b, 'j');
	screen_draw(&b.st, &b.canvas);
	run = (struct canvas_run){ 0, 0, 0 };
	while (canvas_diff(&before, &b.canvas, &run))
		cells += run.cols;
	assert_true(cells > 0 && cells <= 3 * 200);
	canvas_fini(&before);
	bench_fini(&b);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
