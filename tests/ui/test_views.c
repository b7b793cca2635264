// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Whole screens from profiles made by hand, compared with files.
 * GOLDEN=update writes them anew; look at the difference before committing.
 */
#include "golden.h"

#include <unistd.h>

static void test_functions(void **state)
{
	static const struct {
		unsigned int cols, rows, cpus;
		bool ascii;
		const char *name;
	} cases[] = {
		{ 80, 24, 2, false, "functions-80x24" },
		{ 100, 30, 8, false, "functions-100x30" },
		{ 200, 60, 64, false, "functions-200x60" },
		{ 40, 8, 2, false, "functions-40x8" },
		{ 80, 24, 2, true, "functions-80x24-ascii" },
		{ 60, 12, 4, false, "functions-60x12" },
		{ 80, 24, 200, false, "functions-80x24-200cpus" },
		{ 39, 8, 2, false, "too-small-39x8" },
		{ 80, 7, 2, false, "too-small-80x7" },
	};
	struct bench b;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		bench_init(&b, cases[i].cols, cases[i].rows, cases[i].ascii);
		ui_state_take(&b.st, fake_profile(cases[i].cpus, NULL));
		golden(&b, cases[i].name);
		bench_fini(&b);
	}
}

static void test_processes(void **state)
{
	struct bench b;

	bench_init(&b, 80, 24, false);
	ui_state_take(&b.st, fake_profile(2, NULL));
	press(&b, '2');
	golden(&b, "processes-80x24");
	press(&b, 'j');
	press(&b, K_ENTER);
	golden(&b, "drilled-80x24");
	bench_fini(&b);
	bench_init(&b, 40, 8, false);
	ui_state_take(&b.st, fake_profile(2, NULL));
	press(&b, '2');
	golden(&b, "processes-40x8");
	bench_fini(&b);
}

static void test_help(void **state)
{
	struct bench b;

	bench_init(&b, 80, 60, false);
	ui_state_take(&b.st, fake_profile(2, NULL));
	press(&b, K_F(1));
	golden(&b, "help-80x60");
	press(&b, '/');
	type(&b, "baseline or freq");
	assert_non_null(strstr(look(&b), "Search: baseline or freq"));
	press(&b, K_ESC);
	press(&b, '/');
	type(&b, "higher");
	press(&b, K_ENTER);
	assert_non_null(strstr(look(&b), "higher frequency"));
	assert_int_equal(b.st.view, VIEW_HELP);
	press(&b, 'q');
	assert_int_equal(b.st.view, VIEW_FUNCTIONS);
	bench_fini(&b);
}

static void test_pickers(void **state)
{
	static const struct {
		uint32_t key;
		const char *name;
	} cases[] = {
		{ 'e', "picker-event-80x24" },
		{ 'f', "picker-frequency-80x24" },
		{ 'p', "picker-process-80x24" },
		{ K_F(6), "picker-sort-80x24" },
	};
	struct bench b;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		bench_init(&b, 80, 24, false);
		ui_state_take(&b.st, fake_profile(2, NULL));
		press(&b, cases[i].key);
		golden(&b, cases[i].name);
		bench_fini(&b);
	}
	bench_init(&b, 40, 8, true);
	ui_state_take(&b.st, fake_profile(2, NULL));
	press(&b, 'e');
	golden(&b, "picker-event-40x8-ascii");
	bench_fini(&b);
}

static void test_waiting(void **state)
{
	struct bench b;

	bench_init(&b, 80, 24, false);
	golden(&b, "waiting-80x24");
	/* No key may fall over a profile that is not there. */
	for (uint32_t c = 1; c < 127; c++)
		press(&b, c);
	look(&b);
	bench_fini(&b);
}

/* Loud while it happens, remembered, then calm but not forgotten. */
static void test_trouble(void **state)
{
	struct bench b;
	struct profile *p;

	bench_init(&b, 100, 30, false);
	p = fake_profile(4, NULL);
	p->cpus[1].lost = p->cpus[1].lost_total = 37;
	p->cpus[3].throttled = p->cpus[3].throttled_total = 2;
	p->cpus[3].throttled_ns = 41000000;
	strcpy(p->banner, "cycles: no hardware counters here; cpu-clock instead");
	ui_state_take(&b.st, p);
	golden(&b, "trouble-100x30");
	assert_non_null(strstr(look(&b), "Lost 37!  cpu1 37"));
	assert_non_null(strstr(look(&b), "Throttled 2!  cpu3 2x 41ms"));
	p = fake_profile(4, NULL);
	p->cpus[1].lost_total = 37;
	p->cpus[3].throttled_total = 2;
	ui_state_take(&b.st, p);
	assert_non_null(strstr(look(&b), "Lost 0 (37!)"));
	b.st.now_ns += 6000000000ull;
	assert_non_null(strstr(look(&b), "Lost 0 (37 in all)"));
	/* The smallest screen and the hidden header tell it, too. */
	p = fake_profile(4, NULL);
	p->cpus[1].lost = 12345;
	ui_state_take(&b.st, p);
	press(&b, '#');
	assert_non_null(strstr(look(&b), "Lost 12 345!"));
	canvas_resize(&b.canvas, 8, 40);
	assert_non_null(strstr(look(&b), "Lost 12 345!"));
	bench_fini(&b);
}

/* What a hostile name holds never reaches a cell. */
static void test_hostile(void **state)
{
	struct bench b;
	const char *text;

	bench_init(&b, 120, 30, false);
	ui_state_take(&b.st, fake_profile(2, NULL));
	text = look(&b);
	assert_non_null(strstr(text, "%s%n%n"));
	assert_null(strchr(text, '\033'));
	for (const char *p = text; *p; p++)
		assert_true((unsigned char)*p >= 0x20 || *p == '\n');
	bench_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_functions), cmocka_unit_test(test_processes),
		cmocka_unit_test(test_help),	  cmocka_unit_test(test_pickers),
		cmocka_unit_test(test_waiting),	  cmocka_unit_test(test_trouble),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
