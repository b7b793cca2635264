// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Random keys, presses of the mouse, commands, sizes and profiles: no fault
 * (made for the sanitizers), and no tick and no resize ever moves the selection to another row.
 * MONKEY_SEED (1); MONKEY_SECONDS (3000 steps).
 */
#include "folded.h"

#include <time.h>

struct monkey {
	struct bench bench;
	unsigned int seed;
	long nr_ticks, nr_keys, nr_kept;
	long nr_in[VIEW_NR];
};

static uint32_t upto(struct monkey *m, uint32_t n)
{
	return (uint32_t)rand_r(&m->seed) % n;
}

static uint32_t random_key(struct monkey *m)
{
	static const uint32_t special[] = {
		K_UP,	   K_DOWN,  K_LEFT, K_RIGHT, K_PGUP,	  K_PGDN, K_HOME, K_END,  K_DELETE,
		K_BACKTAB, K_ENTER, K_ESC,  K_TAB,   K_BACKSPACE, K_F(1), K_F(3), K_F(4), K_F(6),
		K_F(7),	   K_F(8),  0x65e5, 0x301,   'a',	  'b',	  'b',	  'v',
	};

	switch (upto(m, 4)) {
	case 0:
		return special[upto(m, ARRAY_SIZE(special))];
	case 1:
		return '1' + upto(m, 7); /* a view */
	default:
		return 1 + upto(m, 126);
	}
}

/* Stacks out of two dozen functions, with recursion and a kernel part; sometimes none at all. */
static struct profile *random_profile(struct monkey *m)
{
	char text[16384];
	size_t n = 0;
	uint32_t nr = upto(m, 10) ? upto(m, 120) : 0;

	for (uint32_t i = 0; i < nr; i++) {
		uint32_t depth = 1 + upto(m, 12);

		n += (size_t)snprintf(text + n, sizeof(text) - n, "proc%u;main", upto(m, 6));
		for (uint32_t d = 0; d < depth; d++)
			n += (size_t)snprintf(text + n, sizeof(text) - n, ";ns::f%u%s", upto(m, 24),
					      d + 2 > depth && !upto(m, 3) ? "_k|k" : "");
		n += (size_t)snprintf(text + n, sizeof(text) - n, " %u\n", 1 + upto(m, 50));
	}
	text[n] = '\0';
	return folded_profile(text);
}

/* The selection in the shown view; false: none was made by hand. */
static bool selection(struct monkey *m, uint64_t *id)
{
	struct list *list = ui_state_list(&m->bench.st);

	*id = list->selected;
	return list->pinned && list->cursor < list->nr && list->rows[list->cursor].id == *id;
}

/* After something that was no key: the same row is selected, if it is still there. */
static void check_selection(struct monkey *m, uint64_t id)
{
	struct list *list = ui_state_list(&m->bench.st);

	for (uint32_t i = 0; i < list->nr; i++) {
		if (list->rows[i].id != id)
			continue;
		assert_int_equal(list->cursor, i);
		m->nr_kept++;
		return;
	}
	/* The function is gone, and kept selected; the flame graph selects its parent. */
	if (m->bench.st.view != VIEW_FLAME)
		assert_int_equal(list->selected, id);
}

static void tick(struct monkey *m)
{
	uint64_t id;
	bool selected = selection(m, &id);

	m->bench.st.now_ns += 1000000000;
	model_take(&m->bench.st, random_profile(m));
	screen_draw(&m->bench.st, &m->bench.canvas);
	if (selected)
		check_selection(m, id);
	m->nr_ticks++;
}

static void resize(struct monkey *m)
{
	uint64_t id;
	bool selected = selection(m, &id);

	assert_int_equal(canvas_resize(&m->bench.canvas, upto(m, 70), upto(m, 210)), 0);
	screen_draw(&m->bench.st, &m->bench.canvas);
	if (selected)
		check_selection(m, id);
}

static void command(struct monkey *m)
{
	static const char *const lines[] = {
		"flame",      "tree",	      "sort total",	 "filter ns", "limit 1",
		"theme mono", "mouse",	      "window",		 "freeze",    "baseline",
		"nonsense",   "frequency 99", "event cpu-clock", "names",
	};

	press(&m->bench, K_ESC);
	press(&m->bench, ':');
	type(&m->bench, lines[upto(m, ARRAY_SIZE(lines))]);
	press(&m->bench, upto(m, 3) ? K_ENTER : K_TAB);
}

static void act(struct monkey *m)
{
	struct bench *b = &m->bench;

	b->st.quit = b->st.suspend = b->st.redraw = false;
	b->st.now_ns += 50000000;
	switch (upto(m, 24)) {
	case 0:
	case 1:
		tick(m);
		break;
	case 2:
		resize(m);
		break;
	case 3:
	case 4:
		input_key(&b->st, &(struct key){ K_MOUSE, (uint16_t)upto(m, b->canvas.rows + 2),
						 (uint16_t)upto(m, b->canvas.cols + 2),
						 (uint8_t)upto(m, 6) });
		break;
	case 5:
		command(m);
		break;
	default:
		press(b, random_key(m));
		m->nr_keys++;
	}
	screen_draw(&b->st, &b->canvas);
	m->nr_in[b->st.view]++;
}

static void test_monkey(void **state)
{
	const char *seconds = getenv("MONKEY_SECONDS"), *seed = getenv("MONKEY_SEED");
	uint64_t end = seconds ? time_now_ns() + strtoull(seconds, NULL, 10) * 1000000000ull : 0;
	struct monkey m = { .seed = seed ? (unsigned int)atoi(seed) : 1 };

	print_message("MONKEY_SEED=%u\n", m.seed);
	bench_init(&m.bench, 80, 24, false);
	for (int i = 0; end ? time_now_ns() < end : i < 3000; i++)
		act(&m);
	print_message("%ld ticks, %ld keys; selection kept %ld times; in views:", m.nr_ticks,
		      m.nr_keys, m.nr_kept);
	for (int i = 0; i < VIEW_NR; i++) {
		print_message(" %ld", m.nr_in[i]);
		assert_true(m.nr_in[i] > 0);
	}
	print_message("\n");
	assert_true(m.nr_kept > 10);
	bench_fini(&m.bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_monkey) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
