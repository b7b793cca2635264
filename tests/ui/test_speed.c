// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From key to screen with 200 000 distinct stacks in the window: at most
 * 100 ms for 99 of 100 keys, and nothing drawn that did not change.
 *
 * Times are CPU times of this thread, so that a busy machine does not fail it, and the limits
 * stretch on a slower one.
 * Sanitizers make code many times slower: there the limit is not checked.
 */
#include "large.h"

#include "tests/yardstick.h"

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

/* Keys after which all stacks are folded again: the slowest ones. */
static void fold_anew(struct profile *p)
{
	static const char *const keys[] = {
		"1", "2", "3", "4", "6", "1K", "3", "4", "1K", "H", "1b"
	};
	struct bench b;

	bench_init(&b, 200, 60, false);
	model_take(&b.st, p);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		uint64_t begin = yardstick_cpu_ns(), took;

		for (const char *k = keys[i]; *k; k++)
			press(&b, (unsigned char)*k);
		screen_draw(&b.st, &b.canvas);
		took = yardstick_cpu_ns() - begin;
		print_message("keys %s: %.1f ms, %u rows\n", keys[i], (double)took / 1e6,
			      ui_state_list(&b.st)->nr);
		assert_true(ui_state_list(&b.st)->nr > 0);
		if (TIMED)
			assert_true((double)took <= FOLD_LIMIT_NS * yardstick_slowness());
	}
	bench_fini(&b);
}

TEST(test_folds)
{
	fold_anew(large_profile(1));
}

TEST(test_bush)
{
	fold_anew(large_bush(1));
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
