// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From key to screen with 200 000 distinct stacks in the window: at most
 * 100 ms for 99 of 100 keys, and nothing drawn that did not change.
 *
 * Times are those of this thread, so that a busy machine does not fail it, and the limits stretch
 * on a slower one.
 * Sanitizers make code many times slower: there the limit is not told.
 */
#include "fake.h"

#include "tests/yardstick.h"

#define NR_STACKS    200000u
#define NR_FUNCTIONS 4000u
#define DEPTH	     24u
#define LIMIT_NS     100e6
#define FOLD_LIMIT_NS 250e6

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TIMED false
#else
#define TIMED true
#endif

static uint32_t next(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

/* Stacks that share their outer frames, as real ones do. */
static void fill_stacks(struct profile *p, uint32_t seed)
{
	for (uint32_t i = 0; i < NR_STACKS; i++) {
		p->stacks[i] = (struct profile_stack){ i * DEPTH, DEPTH };
		for (uint32_t d = 0; d < DEPTH; d++) {
			uint32_t outer = DEPTH - 1 - d;
			uint32_t shared = outer < 8 ? i >> (16 - 2 * outer) : next(&seed);

			p->frames[i * DEPTH + d] = (shared * 31 + outer * 97) % NR_FUNCTIONS;
		}
		p->cells[i] = (struct profile_cell){ i, i % 64, 0, 1 + i % 3, 1e6 };
	}
	p->nr_stacks = p->nr_cells = NR_STACKS;
	p->nr_frames = NR_STACKS * DEPTH;
}

static struct profile *large_profile(void)
{
	struct profile *p = calloc(1, sizeof(*p));
	struct text_arena *arena = text_arena_new();
	char name[64];

	p->names = arena;
	p->sampling = true;
	p->running_ns = p->window_ns = 5000000000ull;
	p->interval_ns = 1000000000ull;
	strcpy(p->target, "system");
	fake_account(p);
	fake_cpus(p, 8);
	fake_event(p, 0, "cpu-clock", 4000, 3990);
	p->functions = calloc(NR_FUNCTIONS, sizeof(*p->functions));
	p->processes = calloc(16, sizeof(*p->processes));
	p->tasks = calloc(64, sizeof(*p->tasks));
	p->stacks = calloc(NR_STACKS, sizeof(*p->stacks));
	p->cells = calloc(NR_STACKS, sizeof(*p->cells));
	p->frames = calloc((size_t)NR_STACKS * DEPTH, sizeof(*p->frames));
	p->modules = calloc(1, sizeof(*p->modules));
	p->modules[0] = (struct profile_module){
		.id = 5,
		.name = TEXT("big"),
		.path = TEXT("/big"),
		.state = PROFILE_MODULE_READY,
		.source = ".symtab",
		.reason = "",
		.cure = "",
		.nr_symbols = NR_FUNCTIONS,
	};
	p->nr_modules = 1;
	for (uint32_t i = 0; i < NR_FUNCTIONS; i++) {
		int n = snprintf(name, sizeof(name), "ns::Class%u::method_%u(int)", i % 97, i);

		p->functions[i] = (struct profile_function){
			.id = i, .name = text_arena_add(arena, name, (size_t)n),
			.module = TEXT("big"), .kind = i % 5 ? 'u' : 'k', .kernel = !(i % 5) };
	}
	for (uint32_t i = 0; i < 16; i++)
		p->processes[i] = (struct profile_process){ .id = i, .pid = (pid_t)(100 + i),
							    .comm = TEXT("server") };
	for (uint32_t i = 0; i < 64; i++)
		p->tasks[i] = (struct profile_task){ .id = 1000 + i, .tid = (pid_t)(100 + i),
						     .process = i % 16, .comm = TEXT("worker") };
	p->nr_functions = NR_FUNCTIONS;
	p->nr_processes = 16;
	p->nr_tasks = 64;
	fill_stacks(p, 1);
	return p;
}

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
	print_message("view %s: median %.2f ms, p99 %.2f ms\n", view,
		      (double)times[nr / 2] / 1e6, (double)times[nr * 99 / 100] / 1e6);
	if (TIMED)
		assert_true((double)times[nr * 99 / 100] <= LIMIT_NS * yardstick_slowness());
}

/* Keys after which all stacks are folded anew: as slow as it gets. */
static void test_folds(void **state)
{
	static const char *const keys[] = { "1", "2", "3", "4", "6", "1K", "3", "4", "1K", "H", "1b" };
	struct bench b;

	bench_init(&b, 200, 60, false);
	ui_state_take(&b.st, large_profile());
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

static void test_keys(void **state)
{
	static const char moves[] = "jjjjkkkkGgnNjjjjkkkkGgjjjjkkkkGgjjjjkkkkGg";
	struct bench b;

	bench_init(&b, 200, 60, false);
	ui_state_take(&b.st, large_profile());
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

/* What a key changes is what is written: a move of the cursor is two rows and a counter. */
static void test_changes(void **state)
{
	struct canvas_run run = { 0, 0, 0 };
	struct canvas before;
	uint64_t cells = 0;
	struct bench b;

	bench_init(&b, 200, 60, false);
	ui_state_take(&b.st, large_profile());
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
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_folds),
		cmocka_unit_test(test_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
