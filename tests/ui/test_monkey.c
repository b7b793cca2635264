// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Random keys, presses of the mouse, commands, sizes and profiles: no fault
 * (made for the sanitizers), and no tick and no resize ever moves the selection to another row.
 * MONKEY_SEED (1); MONKEY_SECONDS (6000 steps).
 * Live: takes about a second of CPU time, or more.
 */
#include "tests/ui/folded.h"

#include <dirent.h>
#include <time.h>
#include <unistd.h>

#include "ui/internal.h"
#include "symbols/base/base.h"
#include "symbols/name/name.h"
#include "sampler/ring/ring.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "ui/key/key.h"
#include "ui/draw/draw.h"
#include "ui/state/state.h"
#include "ui/view/view.h"

struct monkey {
	struct bench bench;
	unsigned int seed;
	long nr_ticks, nr_keys, nr_kept;
	int nr_pasts;
	long nr_past_shown;
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

/* Make some of the samples waits, of any kind, idle or not, and running times, and latency. */
static void add_waits(struct monkey *m, struct profile *p)
{
	fake_event(p, 1, EVENT_WAITS, 0, 0);
	p->events[0].event.clock = true;
	p->latency = upto(m, 2);
	p->stack_waits = calloc(p->nr_stacks + 1ULL, 1);
	p->stack_idle = upto(m, 3) ? calloc(p->nr_stacks + 1ULL, 1) : NULL;
	for (uint32_t i = 0; i < p->nr_counts; i++) {
		struct profile_count *c = &p->counts[i];

		c->weight *= 1e7;
		if (!upto(m, 6))
			c->event = PROFILE_LATENCY;
		if (upto(m, 2))
			continue;
		p->stack_waits[c->stack] =
			(uint8_t)(WAIT_RUNNING + upto(m, WAIT_NR - WAIT_RUNNING));
		c->event = p->stack_waits[c->stack] == WAIT_RUNNING ? PROFILE_RUNNING : 1;
		if (p->stack_idle)
			p->stack_idle[c->stack] = (uint8_t)upto(m, 2);
	}
}

/* Stacks out of two dozen functions, with recursion and a kernel part; sometimes none at all. */
static struct profile *random_profile(struct monkey *m)
{
	struct profile *p;
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
	p = folded_profile(text);
	if (upto(m, 2))
		add_waits(m, p);
	return p;
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

/* A strip of some columns, busy or empty, with marks. */
static struct strip *random_strip(struct monkey *m)
{
	const uint64_t second = 1000000000;
	uint32_t nr = upto(m, 100);
	struct strip *s = calloc(1, sizeof(*s) + nr * sizeof(s->columns[0]));

	assert_non_null(s);
	*s = (struct strip){ .begin_ns = 100 * second, .column_ns = second, .nr = nr, .max = 100 };
	s->first_ns = s->begin_ns;
	s->last_ns = s->begin_ns + nr * second;
	for (uint32_t i = 0; i < nr; i++)
		if (upto(m, 4))
			s->columns[i] =
				(struct strip_column){ upto(m, 101), s->begin_ns + i * second,
						       s->begin_ns + i * second + second / 2,
						       (uint8_t)upto(m, 8) };
	return s;
}

/* Answer a request for the past: with its range, or some time later. */
static void past(struct monkey *m)
{
	struct bench *b = &m->bench;
	struct profile *p;

	rewind_refresh(&b->st);
	if (!upto(m, 20))
		rewind_take(&b->st, NULL, random_strip(m));
	if (b->sampler.nr_pasts == m->nr_pasts || upto(m, 3))
		return;
	m->nr_pasts = b->sampler.nr_pasts;
	p = random_profile(m);
	p->past_begin_ns = b->sampler.past_begin_ns;
	p->past_end_ns = b->sampler.past_end_ns;
	rewind_take(&b->st, p, NULL);
	m->nr_past_shown += b->st.rewind.on;
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
		"flame",	   "tree",	    "sort total",   "filter ns",
		"limit 1",	   "theme mono",    "mouse",	    "window",
		"freeze",	   "baseline",	    "nonsense",	    "frequency 99",
		"event cpu-clock", "names",	    "next-time",    "hide-idle",
		"rewind 2s",	   "live",	    "earlier",	    "widen",
		"group-by",	   "processes",	    "screen s.svg", "export e.folded",
		"export e.html",   "export e.json",
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
	past(m);
	screen_draw(&b->st, &b->canvas);
	m->nr_in[b->st.view]++;
}

TEST(test_monkey)
{
	const char *seconds = getenv("MONKEY_SECONDS"), *seed = getenv("MONKEY_SEED");
	uint64_t end = seconds ? time_now_ns() + strtoull(seconds, NULL, 10) * 1000000000ull : 0;
	struct monkey m = { .seed = seed ? (unsigned int)atoi(seed) : 1 };

	print_message("MONKEY_SEED=%u\n", m.seed);
	bench_init(&m.bench, 80, 24, false);
	for (int i = 0; end ? time_now_ns() < end : i < 6000; i++)
		act(&m);
	print_message("%ld ticks, %ld keys; selection kept %ld times; in views:", m.nr_ticks,
		      m.nr_keys, m.nr_kept);
	for (int i = 0; i < VIEW_NR; i++) {
		print_message(" %ld", m.nr_in[i]);
		assert_true(m.nr_in[i] > 0);
	}
	print_message("; the past %ld times\n", m.nr_past_shown);
	assert_true(m.nr_kept > 10);
	assert_true(m.nr_past_shown > 0);
	bench_fini(&m.bench);
}

/* Files that are written by keys and commands: in a folder that is removed. */
static char folder[] = "/tmp/monkey-XXXXXX";

static int begin(void **state)
{
	return mkdtemp(folder) ? chdir(folder) : -1;
}

static int end(void **state)
{
	DIR *dir = opendir(".");
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		unlink(entry->d_name);
	if (dir)
		closedir(dir);
	return chdir("/") || rmdir(folder);
}

int main(void)
{
	return run_unit_tests(begin, end);
}
