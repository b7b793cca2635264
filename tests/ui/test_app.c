// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The effect of keys on the screen and on the sampler; then a monkey.
 */
#include "ui/cli/settings.c"

#include <signal.h>

#include "tests/ui/fake.h"

#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include <sys/stat.h>
#include <unistd.h>

#include "ui/internal.h"
#include "ui/cli/internal.h"
#include "symbols/code/code.h"
#include "sampler/event/event.h"
#include "sampler/count/count.h"
#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "ui/text/text.h"
#include "ui/key/key.h"
#include "ui/draw/draw.h"
#include "ui/state/state.h"
#include "ui/view/internal.h"

static const struct row *cursor_row(struct bench *b)
{
	struct list *list = ui_state_list(&b->st);

	return list->cursor < list->nr ? &list->rows[list->cursor] : NULL;
}

static struct bench *start(unsigned int cols, unsigned int rows)
{
	static struct bench b;

	bench_init(&b, cols, rows, false);
	model_take(&b.st, fake_profile(2, NULL));
	look(&b);
	return &b;
}

/* The cursor is on a function, not on a line. */
TEST(test_identity)
{
	static const double other_order[NR_SPECS] = { 0.1, 0.2, 0.3, 4, 5, 6, 7, 8, 900 };
	static const double without[NR_SPECS] = { 1, 0, 1, 1, 1, 1, 1, 1, 1 };
	struct bench *b = start(80, 24);

	/* Untouched, the cursor remains at the top. */
	assert_int_equal(cursor_row(b)->id, 11);
	model_take(&b->st, fake_profile(2, other_order));
	assert_int_equal(cursor_row(b)->id, 15);
	model_take(&b->st, fake_profile(2, NULL));
	press(b, 'j');
	assert_int_equal(cursor_row(b)->id, 12);
	model_take(&b->st, fake_profile(2, other_order));
	assert_int_equal(cursor_row(b)->id, 12);
	press(b, 'F');
	press(b, 'T');
	assert_int_equal(cursor_row(b)->id, 12);
	press(b, 'I');
	assert_int_equal(cursor_row(b)->id, 12);
	/* Gone for a tick and back. */
	model_take(&b->st, fake_profile(2, without));
	model_take(&b->st, fake_profile(2, NULL));
	assert_int_equal(cursor_row(b)->id, 12);
	bench_fini(b);
}

TEST(test_sort)
{
	struct bench *b = start(80, 24);
	struct list *list = ui_state_list(&b->st);

	for (uint32_t i = 1; i < list->nr; i++)
		assert_true(list->rows[i - 1].self >= list->rows[i].self);
	press(b, 'T');
	assert_int_equal(list->rows[0].id, 20); /* main */
	press(b, 'I');
	assert_int_equal(list->rows[list->nr - 1].id, 20);
	press(b, 'M');
	assert_string_equal(b->st.shown->functions[list->rows[0].index].module.str, "[JIT node]");
	press(b, '<');
	assert_string_equal(b->st.shown->functions[list->rows[0].index].name.str, "%s%n%n");
	for (int i = 0; i < 30; i++) {
		press(b, '>');
		assert_non_null(view_functions.columns[list->sort].compare);
	}
	press(b, 'P');
	assert_int_equal(list->rows[0].id, 11);
	bench_fini(b);
}

TEST(test_filter)
{
	struct bench *b = start(80, 24);
	struct list *list = ui_state_list(&b->st);

	press(b, '\\');
	type(b, "kernel");
	assert_int_equal(list->nr, 2); /* while typing */
	assert_int_equal(list->nr_hidden, 8);
	press(b, K_ENTER);
	assert_non_null(strstr(look(b), "filter kernel"));
	press(b, '&');
	press(b, K_CTRL('u'));
	type(b, "!kernel");
	assert_int_equal(list->nr, 8);
	press(b, K_ESC); /* back to the first state */
	assert_int_equal(list->nr, 2);
	press(b, K_ESC); /* clears */
	assert_int_equal(list->nr, 10);
	assert_false(b->st.quit);
	press(b, '\\');
	type(b, "(");
	assert_non_null(strstr(look(b), "taken as text"));
	press(b, K_ESC);
	/* A limit hides by total. */
	press(b, 'L');
	type(b, "5"); /* in place of the old value */
	press(b, K_ENTER);
	assert_int_equal(list->nr, 7);
	press(b, 'L');
	press(b, K_CTRL('u'));
	type(b, "400");
	press(b, K_ENTER);
	assert_true(b->st.message_bad);
	assert_int_equal(list->nr, 7);
	bench_fini(b);
}

TEST(test_search)
{
	struct bench *b = start(80, 24);

	press(b, '/');
	type(b, "spin");
	assert_int_equal(cursor_row(b)->id, 15);
	press(b, K_ENTER);
	press(b, '/');
	type(b, "zs");
	assert_int_equal(cursor_row(b)->id, 13);
	press(b, K_ESC);
	assert_int_equal(cursor_row(b)->id, 15);
	press(b, '/');
	type(b, "api-server");
	press(b, K_ENTER);
	press(b, 'g');
	press(b, 'n');
	assert_int_equal(cursor_row(b)->id, 12);
	press(b, 'n');
	assert_int_equal(cursor_row(b)->id, 15); /* "api-server +3" */
	press(b, 'n');
	assert_int_equal(cursor_row(b)->id, 16);
	press(b, 'N');
	press(b, 'N');
	assert_int_equal(cursor_row(b)->id, 12);
	bench_fini(b);
}

static bool cursor_is_in_sight(struct bench *b)
{
	const struct list *list = ui_state_list(&b->st);

	return list->cursor >= list->top && list->cursor < list->top + list->page;
}

/* On a machine that is too busy for ticks the screen says that its rows are old. */
TEST(test_late)
{
	struct bench *b = start(80, 24);

	assert_non_null(strstr(look(b), "LIVE"));
	b->st.now_ns += 4000000000;
	assert_non_null(strstr(look(b), "LIVE"));
	b->st.now_ns += 3000000000;
	assert_non_null(strstr(look(b), "LATE 7s"));
	b->st.set.tick_ns = 10000000000;
	assert_non_null(strstr(look(b), "LIVE"));
	b->st.set.tick_ns = 1000000000;
	model_take(&b->st, fake_profile(2, NULL));
	assert_non_null(strstr(look(b), "LIVE"));
	bench_fini(b);
}

/* A row that was found stays in sight when it sinks; another one only while it is followed. */
TEST(test_found_stays)
{
	struct bench *b = start(80, 14);
	struct list *list = ui_state_list(&b->st);

	look(b);
	press(b, '/');
	type(b, "(zzz");
	assert_non_null(strstr(look(b), "(zzz"));
	press(b, K_ENTER);
	assert_non_null(strstr(look(b), "not found (literal)"));
	for (int found = 1; found >= 0; found--) {
		press(b, '/');
		type(b, "e");
		press(b, K_ENTER);
		press(b, 'g');
		press(b, 'n');
		if (!found)
			match_set(&list->search, "nowhere");
		look(b);
		assert_true(cursor_is_in_sight(b));
		list->inverted = !list->inverted;
		table_rebuild(&b->st, b->st.view);
		look(b);
		assert_int_equal(cursor_is_in_sight(b), found);
		list->inverted = !list->inverted;
		table_rebuild(&b->st, b->st.view);
	}
	bench_fini(b);
}

/* Esc in a search leaves cursor and screen as they were, as does a letter that matches nothing. */
TEST(test_search_escape)
{
	struct bench *b = start(80, 14);
	struct list *list = ui_state_list(&b->st);

	press(b, '/');
	type(b, "api-server");
	press(b, K_ENTER);
	press(b, 'j');
	press(b, 'j');
	assert_int_equal(cursor_row(b)->id, 14); /* between two matches */
	press(b, '/');
	press(b, K_ESC);
	assert_int_equal(cursor_row(b)->id, 14);
	assert_string_equal(list->search.text, "api-server");
	press(b, 'g');
	look(b);
	press(b, '/');
	type(b, "evil");
	assert_int_equal(cursor_row(b)->id, 19);
	assert_true(list->top > 0);
	type(b, "z");
	assert_int_equal(cursor_row(b)->id, 11);
	assert_true(cursor_is_in_sight(b));
	press(b, K_BACKSPACE);
	assert_int_equal(cursor_row(b)->id, 19);
	assert_true(cursor_is_in_sight(b));
	press(b, K_ESC);
	assert_int_equal(cursor_row(b)->id, 11);
	assert_true(cursor_is_in_sight(b));
	assert_int_equal(list->top, 0);
	bench_fini(b);
}

/* A filter that hides the selected row selects the row under the cursor, when it is accepted. */
TEST(test_filter_selects)
{
	static const char *const commands[] = { "\\kernel\r", ":show kernel\r", "L25\r" };
	struct bench *b = start(80, 24);

	press(b, 'j');
	press(b, '\\');
	type(b, "kernel");
	press(b, K_ESC); /* not accepted */
	assert_int_equal(cursor_row(b)->id, 12);
	bench_fini(b);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		uint64_t id;

		b = start(80, 24);
		press(b, 'j');
		press(b, 'j');
		press(b, 'j');
		id = ui_state_list(&b->st)->selected;
		type(b, commands[i]);
		assert_int_not_equal(cursor_row(b)->id, id);
		press(b, K_ENTER);
		assert_int_equal(b->st.view, VIEW_CALLERS);
		bench_fini(b);
	}
}

/* After a filter the top of the list is in sight, unless a row is followed that the filter shows.
 */
TEST(test_filter_top)
{
	struct bench *b = start(80, 14);
	struct list *list = ui_state_list(&b->st);
	uint64_t id;

	press(b, 'G');
	id = list->selected;
	assert_true(list->top > 0);
	type(b, "\\!nothing");
	assert_int_equal(list->top, 0);
	assert_true(cursor_is_in_sight(b));
	assert_int_equal(cursor_row(b)->id, list->selected);
	press(b, K_ESC); /* as before */
	assert_int_equal(cursor_row(b)->id, id);
	assert_true(list->top > 0);
	press(b, 'F');
	type(b, "\\!nothing\r");
	assert_int_equal(cursor_row(b)->id, id);
	assert_true(cursor_is_in_sight(b));
	press(b, 'F');
	press(b, K_ESC);
	assert_int_equal(list->top, 0);
	assert_true(cursor_is_in_sight(b));
	/* A row that is on the first page keeps the cursor. */
	press(b, 'g');
	press(b, 'j');
	id = list->selected;
	type(b, "\\!nothing\r");
	assert_int_equal(cursor_row(b)->id, id);
	bench_fini(b);
}

/* A line longer than the screen shows the part with the cursor, and is run as typed. */
TEST(test_long_line)
{
	struct bench *b = start(80, 24);
	char text[201];

	for (size_t i = 0; i < sizeof(text) - 1; i++)
		text[i] = (char)('a' + i % 26);
	text[sizeof(text) - 1] = '\0';
	press(b, ':');
	type(b, "show ");
	type(b, text);
	assert_int_equal(b->st.prompt.line.size, 5 + sizeof(text) - 1);
	assert_non_null(strstr(look(b), text + 130));
	assert_int_equal(b->canvas.cursor_col, 79);
	for (int i = 0; i < 100; i++)
		press(b, K_LEFT);
	look(b);
	assert_int_equal(canvas_at(&b->canvas, 23, 78)->text[0], text[99]);
	assert_int_equal(b->canvas.cursor_col, 79);
	press(b, K_ENTER);
	assert_non_null(strstr(look(b), "text too long: at most 127 bytes"));
	/* A search is no longer than it can be. */
	press(b, '\\');
	type(b, text);
	assert_int_equal(b->st.prompt.line.size, MATCH_MAX - 1);
	assert_non_null(strstr(look(b), "the line is full"));
	press(b, K_ESC);
	/* The same in a picker. */
	press(b, 'p');
	type(b, text);
	assert_non_null(strstr(look(b), text + 150));
	assert_true(b->canvas.cursor_col > 70 && b->canvas.cursor_col < 79);
	for (int i = 0; i < 6; i++)
		type(b, text);
	assert_non_null(strstr(look(b), "the line is full"));
	press(b, K_ESC);
	/* A wide character is left out as a whole, and the cursor is behind the last letter. */
	press(b, ':');
	for (int i = 0; i < 41; i++)
		press(b, i % 2 ? 0x8a9e : 'a');
	for (char digit = '0'; digit <= '9'; digit++) {
		for (int i = 0; i < 4; i++) {
			press(b, (unsigned char)digit);
			look(b);
			assert_int_equal(canvas_at(&b->canvas, 23,
						   (unsigned int)b->canvas.cursor_col - 1)
						 ->text[0],
					 digit);
		}
	}
	bench_fini(b);
}

TEST(test_drill)
{
	struct bench *b = start(80, 24);
	double sum = 0;

	press(b, '2');
	press(b, 'j');
	assert_int_equal(b->st.shown->processes[cursor_row(b)->index].id, 500); /* api-server */
	press(b, 'y');
	assert_string_equal(b->st.copy, "api-server[4242]");
	press(b, 'F');
	press(b, 'M'); /* by name */
	assert_int_equal(ui_state_list(&b->st)->cursor, 0);
	press(b, 'P');
	press(b, 'F');
	assert_non_null(strstr(look(b), "CPU%▼"));
	press(b, K_ENTER);
	assert_true(b->st.scope.drilled);
	assert_int_equal(b->st.view, VIEW_FUNCTIONS);
	assert_non_null(strstr(look(b), "api-server[4242]"));
	for (uint32_t i = 0; i < ui_state_list(&b->st)->nr; i++)
		sum += ui_state_list(&b->st)->rows[i].self;
	assert_true(sum > 0.999 && sum < 1.001); /* this process is 100 % */
	press(b, K_ESC);
	assert_false(b->st.scope.drilled);
	assert_int_equal(b->st.view, VIEW_PROCESSES);
	/* A function: its callers and callees, inside a process and outside. */
	press(b, '1');
	press(b, 'g');
	press(b, K_ENTER);
	assert_false(b->st.scope.drilled);
	assert_int_equal(b->st.view, VIEW_CALLERS);
	press(b, K_ESC);
	assert_int_equal(b->st.view, VIEW_FUNCTIONS);
	/* The picker of processes begins at the hottest one. */
	press(b, 'p');
	assert_ptr_equal(b->st.dialog.ops, &dialog_processes);
	press(b, K_ENTER);
	assert_true(b->st.scope.drilled);
	assert_int_equal(b->st.scope.process, 501);
	press(b, K_ENTER);
	assert_int_equal(b->st.view, VIEW_CALLERS);
	press(b, K_ESC);
	assert_true(b->st.scope.drilled);
	press(b, 'q');
	assert_false(b->st.scope.drilled);
	press(b, 'p');
	type(b, "node");
	press(b, K_ENTER);
	assert_int_equal(b->st.scope.process, 503);
	press(b, K_BACKSPACE);
	assert_false(b->st.quit);
	press(b, 'q');
	assert_true(b->st.quit);
	bench_fini(b);
}

/* x: the kernel samples this process alone; Esc: first the sampling as before, then leave the
 * process. */
TEST(test_focus)
{
	struct bench *b = start(80, 24);
	struct profile *p;

	press(b, 'x');
	assert_int_equal(b->sampler.nr_focus, 0);
	assert_non_null(strstr(look(b), "select a process first"));
	press(b, '2');
	press(b, 'j');
	press(b, 'x');
	assert_true(b->st.scope.drilled);
	assert_int_equal(b->sampler.focus, 4242);
	p = fake_profile(2, NULL);
	p->focus = 4242;
	model_take(&b->st, p);
	press(b, K_ESC);
	assert_int_equal(b->sampler.nr_focus, 2);
	assert_int_equal(b->sampler.focus, 0);
	assert_true(b->st.scope.drilled);
	model_take(&b->st, fake_profile(3, NULL));
	press(b, K_ESC);
	assert_false(b->st.scope.drilled);
	assert_int_equal(b->sampler.nr_focus, 2);
	/* Ended ones, as one. */
	p = fake_profile(4, NULL);
	for (uint32_t i = 0; i < p->nr_processes; i++)
		p->processes[i].pid = -1;
	model_take(&b->st, p);
	press(b, 'x');
	assert_int_equal(b->sampler.nr_focus, 2);
	assert_non_null(strstr(look(b), "it has no PID"));
	assert_null(strstr(look(b), "[-1]"));
	bench_fini(b);
}

/* Sampled events are on top: keys turn them on and off, Tab removes one; levels of the selected
 * event. */
TEST(test_event_keys)
{
	struct bench *b = start(80, 24);
	struct profile *p = fake_profile(2, NULL);

	fake_event(p, 1, "page-faults:u", 997, 10);
	model_take(&b->st, p);
	press(b, 'e');
	assert_non_null(strstr(look(b), "SAMPLED NOW"));
	press(b, '2');
	assert_true(b->sampler.nr_switches == 1 && b->sampler.switched == 1 &&
		    !b->sampler.switched_on);
	press(b, '9');
	assert_int_equal(b->sampler.nr_switches, 1);
	/* typed into a name they are letters */
	type(b, "r1a8");
	assert_int_equal(b->sampler.nr_switches, 1);
	press(b, K_CTRL('u'));
	press(b, K_DOWN);
	press(b, K_TAB);
	assert_int_equal(b->sampler.nr_events, 1);
	assert_string_equal(b->sampler.events[0].name, "cpu-clock");
	press(b, K_CTRL('k'));
	press(b, K_CTRL('t'));
	assert_non_null(strstr(look(b), "[x] user ^U  [ ] kernel ^K  precise 1"));
	type(b, "task-clock");
	press(b, K_ENTER);
	assert_string_equal(b->sampler.events[0].name, "task-clock:up");
	assert_true(!b->sampler.events[0].kernel && b->sampler.events[0].precise == 1);
	press(b, 'e');
	press(b, K_CTRL('u'));
	press(b, K_CTRL('k')); /* not neither */
	assert_non_null(strstr(look(b), "[ ] user ^U  [x] kernel"));
	type(b, "{cpu-clock,cs}:S");
	press(b, K_TAB);
	assert_int_equal(b->sampler.nr_events, 4);
	assert_true(b->sampler.events[2].group &&
		    b->sampler.events[2].group == b->sampler.events[3].group);
	bench_fini(b);
}

TEST(test_hide)
{
	struct bench *b = start(80, 24);
	struct list *list = ui_state_list(&b->st);

	press(b, 'K');
	assert_int_equal(list->nr, 8);
	assert_non_null(strstr(look(b), "kernel hidden"));
	press(b, 'K');
	press(b, 'U');
	assert_true(list->nr > 0 && list->nr < 8);
	bench_fini(b);
}

/* Frozen rows stand still; header and answers go on. */
TEST(test_freeze)
{
	static const double other[NR_SPECS] = { 0, 0, 0, 0, 0, 0, 0, 0, 1000 };
	struct bench *b = start(80, 24);
	struct profile *p;

	press(b, ' ');
	for (int i = 0; i < 3; i++) {
		p = fake_profile(2, other);
		p->running_ns = 3600 * 1000000000ull;
		model_take(&b->st, p);
	}
	assert_int_equal(cursor_row(b)->id, 11);
	assert_non_null(strstr(look(b), "FROZEN"));
	assert_non_null(strstr(look(b), "01:00:00"));
	press(b, 'Z');
	assert_int_equal(cursor_row(b)->id, 19);
	assert_null(strstr(look(b), "FROZEN"));
	press(b, ' ');
	/* Also of a recording that is followed, and at the end of the target. */
	b->config.replayed = true;
	assert_non_null(strstr(look(b), "FROZEN"));
	assert_null(strstr(look(b), "REPLAY"));
	press(b, '5');
	assert_null(strstr(look(b), "not frozen"));
	model_take(&b->st, fake_profile(2, NULL));
	assert_non_null(strstr(look(b), "live rows, not frozen"));
	b->config.replayed = false;
	p = fake_profile(2, NULL);
	p->target_gone = true;
	model_take(&b->st, p);
	assert_non_null(strstr(look(b), "FROZEN ENDED"));
	bench_fini(b);
}

/* That there is no PMU is said beside the event in the place of cycles alone. */
TEST(test_no_pmu)
{
	struct bench *b = start(80, 24);
	struct profile *p = fake_profile(2, NULL);

	text_format(p->banner, sizeof(p->banner), "%s%s", PROFILE_NO_CYCLES, PROFILE_NO_PMU);
	fake_event(p, 1, "page-faults", 997, 10);
	p->events[0].event.clock = true;
	p->events[1].event.clock = false;
	model_take(&b->st, p);
	assert_non_null(strstr(look(b), "cpu-clock 1 of 2 (E) (no PMU)"));
	press(b, 'E');
	assert_non_null(strstr(look(b), "page-faults 2 of 2 (E)"));
	assert_null(strstr(look(b), "(no PMU)"));
	bench_fini(b);
}

/* The counts of a recording cannot be taken again. */
TEST(test_reset)
{
	struct bench *b = start(80, 24);

	press(b, 'r');
	assert_int_equal(b->sampler.nr_resets, 1);
	assert_non_null(strstr(look(b), "counts reset"));
	b->config.replayed = true;
	press(b, 'r');
	assert_int_equal(b->sampler.nr_resets, 1);
	assert_non_null(strstr(look(b), "not available when replaying a recording"));
	bench_fini(b);
}

/* A step is from the requested rate, which the governor has lowered. */
TEST(test_rate_of_a_busy_machine)
{
	struct bench *b = start(80, 24);
	struct profile *p = fake_profile(2, NULL);

	p->events[0].want_hz = 498.5;
	p->rate_factor = 0.5;
	model_take(&b->st, p);
	press(b, ']');
	assert_true(b->sampler.rate == 1997);
	press(b, ']'); /* before the answer */
	assert_true(b->sampler.rate == 3997);
	bench_fini(b);
}

TEST(test_rate)
{
	struct bench *b = start(80, 24);
	struct profile *p;

	press(b, ']');
	assert_true(b->sampler.rate == 1997);
	assert_non_null(strstr(look(b), "1,997 Hz requested"));
	press(b, ']'); /* before the answer */
	assert_true(b->sampler.rate == 3997);
	press(b, ']'); /* 9973 is beyond 8000 */
	assert_true(b->sampler.rate == 3997 && b->st.message_bad);
	p = fake_profile(2, NULL);
	p->events[0].want_hz = 3997;
	p->events[0].got_hz = 3000;
	model_take(&b->st, p);
	assert_non_null(strstr(look(b), "3,997 Hz, got 3,000!"));
	press(b, '[');
	assert_true(b->sampler.rate == 1997);
	for (int i = 0; i < 10; i++)
		press(b, '[');
	assert_true(b->sampler.rate == 49);
	press(b, 'f');
	type(b, "1234");
	press(b, K_ENTER);
	assert_true(b->sampler.rate == 1234);
	assert_null(b->st.dialog.ops);
	press(b, 'f');
	type(b, "99999999");
	press(b, K_ENTER);
	assert_true(b->sampler.rate == 1234 && b->st.dialog.ops);
	press(b, K_ESC);
	bench_fini(b);
}

TEST(test_events)
{
	struct bench *b = start(80, 24);
	struct profile *p;

	/* Said once for each group, not on each line. */
	b->sampler.probing = true;
	press(b, 'e');
	assert_non_null(strstr(look(b), "HARDWARE  probing"));
	press(b, K_ESC);
	b->sampler.probing = false;
	press(b, 'e');
	type(b, "page-f");
	press(b, K_TAB); /* adds */
	assert_int_equal(b->sampler.nr_events, 2);
	assert_string_equal(b->sampler.events[1].name, "page-faults");
	press(b, K_ESC);
	p = fake_profile(2, NULL);
	fake_event(p, 1, "page-faults", 997, 10);
	model_take(&b->st, p);
	press(b, 'E');
	assert_non_null(strstr(look(b), "page-faults 2 of 2"));
	assert_non_null(strstr(look(b), "in this window"));
	press(b, ']');
	assert_int_equal(b->sampler.rate_event, 1);
	press(b, 'e');
	type(b, "cycles");
	press(b, K_ENTER); /* refused, with the reason */
	assert_int_equal(b->sampler.nr_sets, 1);
	assert_true(b->st.message_bad);
	press(b, K_CTRL('u'));
	type(b, "cpu-clock:k"); /* as typed */
	press(b, K_ENTER);
	assert_string_equal(b->sampler.events[0].name, "cpu-clock:k");
	assert_int_equal(b->sampler.nr_events, 1);
	press(b, 'e');
	type(b, "no-such-event");
	press(b, K_ENTER);
	assert_true(b->st.message_bad && b->st.dialog.ops);
	bench_fini(b);
}

TEST(test_controls)
{
	struct bench *b = start(80, 24);

	press(b, 'S');
	assert_int_equal(b->sampler.enabled, 0);
	press(b, 'r');
	assert_int_equal(b->sampler.nr_resets, 1);
	press(b, 'z');
	assert_int_equal(b->sampler.window, PROFILE_DECAY);
	press(b, 'z'); /* before the answer */
	assert_int_equal(b->sampler.window, PROFILE_TOTAL);
	press(b, 'z');
	assert_int_equal(b->sampler.window, PROFILE_WINDOW);
	press(b, 's');
	press(b, K_CTRL('u'));
	type(b, "0,5");
	press(b, K_ENTER);
	assert_int_equal(b->sampler.tick_ns, 500000000);
	press(b, 's');
	press(b, K_CTRL('u'));
	type(b, "0");
	press(b, K_ENTER);
	assert_int_equal(b->sampler.tick_ns, 500000000);
	press(b, 'e');
	press(b, K_CTRL('c'));
	assert_true(b->st.quit);
	assert_int_equal(b->st.quit_by, SIGINT);
	bench_fini(b);
}

/* W saves all that F2 lists: order, rate, window, kind of time, error bars. */
TEST(test_saved)
{
	char dir[] = "/tmp/proftop-saved-XXXXXX", path[SETTINGS_PATH_MAX];
	struct settings s = { .tick_ns = 0 };
	struct profile *p;
	struct ui_config config;
	struct ui_state again;
	struct bench b;
	struct err e;

	assert_non_null(mkdtemp(dir));
	setenv("XDG_CONFIG_HOME", dir, 1);
	bench_init(&b, 110, 34, false);
	b.config.saves = true;
	b.config.automatic_hz = 99;
	model_take(&b.st, fake_profile(2, NULL));
	look(&b);
	press(&b, 'T');
	press(&b, 'I');
	press(&b, ']');
	press(&b, 'z');
	press(&b, '~');
	press(&b, '2');
	press(&b, 'M');
	press(&b, 'W');
	assert_non_null(strstr(look(&b), "saved the settings of F2 to /tmp/proftop-saved-"));
	assert_int_equal(settings_path(path, sizeof(path), &e), 0);
	assert_int_equal(settings_read(path, &s, &e), 0);
	assert_true(s.hz == b.sampler.rate && s.hz > 0);
	assert_int_equal(s.window, PROFILE_DECAY);
	assert_true(s.intervals);
	assert_string_equal(s.sorts[0], "total reversed");
	assert_string_equal(s.sorts[1], "command");
	assert_int_equal(s.time, CONFIG_TIME_CPU);
	/* The kind of time, as ^ chose it: also before there is a profile with waits. */
	press(&b, '^');
	press(&b, 'W');
	look(&b);
	assert_int_equal(settings_read(path, &s, &e), 0);
	assert_int_equal(s.time, CONFIG_TIME_WAIT);
	ui_state_set_time(&b.st, CONFIG_TIME_CPU);
	p = fake_profile(2, NULL);
	fake_waits(p);
	model_take(&b.st, p);
	press(&b, '^');
	press(&b, 'W');
	look(&b);
	assert_int_equal(settings_read(path, &s, &e), 0);
	assert_int_equal(s.time, CONFIG_TIME_WAIT);
	/* The rate as it was set, not as a busy machine has it for a while. */
	b.st.now_ns += 100000000000;
	p = fake_profile(2, NULL);
	p->events[0].want_hz = 997 / 4.0;
	p->rate_factor = 1 / 4.0;
	model_take(&b.st, p);
	press(&b, 'W');
	look(&b);
	assert_int_equal(settings_read(path, &s, &e), 0);
	assert_true(s.hz == 997);
	/* They are there again. */
	ui_config_init(&config);
	for (int i = 0; i < CONFIG_COLUMN_VIEWS; i++)
		memcpy(config.set.sorts[i], s.sorts[i], sizeof(s.sorts[i]));
	model_init(&again, &b.sampler, &config, false);
	for (int i = 0; i < VIEW_NR; i++) {
		assert_int_equal(again.lists[i].sort, b.st.lists[i].sort);
		assert_int_equal(again.lists[i].inverted, b.st.lists[i].inverted);
	}
	model_fini(&again);
	bench_fini(&b);
	unlink(path);
	*strrchr(path, '/') = '\0';
	rmdir(path);
	assert_int_equal(rmdir(dir), 0);
	unsetenv("XDG_CONFIG_HOME");
}

/* How stacks are taken, copies and rings: requested of the sampler, within the limits. */
TEST(test_sizes)
{
	struct profile *p = fake_profile(4, NULL);
	struct bench b;

	bench_init(&b, 80, 24, true);
	press(&b, '}');
	assert_int_equal(b.sampler.stack_size, 0); /* nothing is known yet */
	model_take(&b.st, p);
	press(&b, 'C');
	assert_int_equal(b.sampler.call_graph, CALL_GRAPH_FP);
	press(&b, '}');
	assert_int_equal(b.sampler.stack_size, 32768);
	press(&b, '{');
	assert_int_equal(b.sampler.stack_size, 8192);
	press(&b, ')');
	assert_int_equal(b.sampler.ring_size, 4 << 20);
	press(&b, '(');
	assert_int_equal(b.sampler.ring_size, 1 << 20);
	p->stack_size = 32768;
	press(&b, '}');
	assert_int_equal(b.sampler.stack_size, 65528);
	p->stack_size = 65528;
	b.sampler.stack_size = 1;
	press(&b, '}');
	assert_int_equal(b.sampler.stack_size, 1);
	assert_non_null(strstr(look(&b), "at their maximum"));
	type(&b, ":call-graph off\r");
	assert_int_equal(b.sampler.call_graph, CALL_GRAPH_OFF);
	type(&b, ":stack-size 24K\r");
	assert_int_equal(b.sampler.stack_size, 24576);
	type(&b, ":ring 1M\r");
	assert_int_equal(b.sampler.ring_size, 1 << 20);
	type(&b, ":call-graph lbr\r");
	assert_non_null(strstr(look(&b), "dwarf,SIZE, fp, defer or off"));
	bench_fini(&b);
}

/* Frames of languages, by key and by command; the choice stays visible. */
TEST(test_frames)
{
	struct bench b;
	struct profile *p = fake_profile(4, NULL);

	bench_init(&b, 100, 24, true);
	press(&b, 'l');
	assert_int_equal(b.sampler.frames, FRAMES_LANGUAGE); /* nothing is known yet */
	model_take(&b.st, p);

	press(&b, 'l');
	assert_int_equal(b.sampler.frames, FRAMES_BOTH);
	assert_null(strstr(look(&b), "frames: "));
	p->shown_frames = FRAMES_NATIVE;
	assert_non_null(strstr(look(&b), "frames: native (l)"));
	press(&b, 'l');
	assert_int_equal(b.sampler.frames, FRAMES_LANGUAGE);
	type(&b, ":frames both\r");
	assert_int_equal(b.sampler.frames, FRAMES_BOTH);
	type(&b, ":frames some\r");
	assert_non_null(strstr(look(&b), "language, both or native"));
	bench_fini(&b);
}

/* The target by the command line: its meaning, and the refusals. */
TEST(test_target_commands)
{
	struct bench *b = start(100, 24);
	const struct sampler *s = &b->sampler;
	static const char line[] = "ann:x:1000:1000::/:/bin/sh\nbob:x:1001:1000::/:/bin/sh\n";
	char passwd[] = "/tmp/proftop-passwd-XXXXXX";
	struct users *users;
	int fd;

	type(b, ":target pid 12,345\r");
	assert_int_equal(s->target.target, TARGET_PIDS);
	assert_int_equal(s->target.nr_pids, 2);
	assert_int_equal(s->target_pids[1], 345);
	assert_true(s->target.same_cpus);
	type(b, ":target tid 7\r");
	assert_int_equal(s->target.target, TARGET_TIDS);
	type(b, ":target user 1000\r");
	assert_int_equal(s->target.uid, 1000);
	assert_string_equal(s->target_text, "1000");
	/* A number has its name, and a name is shown as it was given. */
	fd = mkstemp(passwd);
	assert_int_equal(write(fd, line, sizeof(line) - 1), sizeof(line) - 1);
	close(fd);
	b->config.users = users = users_load(passwd);
	unlink(passwd);
	type(b, ":target user 1000\r");
	assert_string_equal(s->target_text, "ann");
	type(b, ":target user bob\r");
	assert_int_equal(s->target.uid, 1001);
	assert_string_equal(s->target_text, "bob");
	type(b, ":target cgroup system.slice/a b\r");
	assert_string_equal(s->target_text, "system.slice/a b");
	type(b, ":target name ^nginx$\r");
	assert_string_equal(s->target_text, "^nginx$");
	type(b, ":target system\r");
	assert_int_equal(s->target.target, TARGET_SYSTEM);
	assert_int_equal(s->nr_targets, 8);
	type(b, ":cpus 0-2,5\r");
	assert_int_equal(s->nr_cpus, 4);
	assert_int_equal(s->last_cpu, 5);
	type(b, ":cpus all\r");
	assert_int_equal(s->nr_cpus, 0);
	type(b, ":event page-faults,cpu-clock:u\r");
	assert_int_equal(s->nr_events, 2);
	assert_string_equal(s->events[1].name, "cpu-clock:u");

	type(b, ":record run.data\r");
	assert_string_equal(s->record, "run.data");
	type(b, ":record -\r");
	assert_non_null(strstr(look(b), "standard output is the screen"));
	assert_string_equal(s->record, "run.data");
	type(b, ":record\r");
	assert_string_equal(s->record, "-");

	type(b, ":target pid 0\r");
	assert_non_null(strstr(look(b), "invalid list of process ids"));
	type(b, ":target user no-such\r");
	type(b, ":target pid\r");
	type(b, ":target system 1\r");
	type(b, ":target world\r");
	assert_non_null(strstr(look(b), "system, pid, tid"));
	type(b, ":cpus 3-1\r");
	assert_int_equal(s->nr_targets, 8);
	assert_int_equal(s->last_cpu, -1);
	bench_fini(b);
	users_free(users);
}

/*
 * Another order: the cursor keeps its line of the screen, so that the top of the list is in sight;
 * with F its row.
 */
TEST(test_reorder)
{
	static const char *const orders[] = { "T", "P", "I", "I", ">", "<", ":order total\r" };
	struct bench *b = start(80, 14);
	struct list *list = ui_state_list(&b->st);
	uint64_t id;

	press(b, 'j');
	for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
		type(b, orders[i]);
		look(b);
		assert_int_equal(list->top, 0);
		assert_int_equal(list->cursor, 1);
		assert_int_equal(list->rows[1].id, list->selected);
	}
	press(b, 'P');
	press(b, 'G');
	id = cursor_row(b)->id;
	assert_true(list->top > 0);
	press(b, 'I');
	look(b);
	assert_int_not_equal(cursor_row(b)->id, id);
	assert_int_equal(list->cursor, list->nr - 1);
	/* A row that moved out of sight by itself does not move the screen. */
	press(b, 'I');
	list->top = 0;
	press(b, 'I');
	assert_int_equal(list->top, 0);
	assert_true(cursor_is_in_sight(b));
	/* Followed. */
	press(b, 'G');
	press(b, 'F');
	id = cursor_row(b)->id;
	press(b, 'I');
	look(b);
	assert_int_equal(cursor_row(b)->id, id);
	assert_int_equal(list->cursor, 0);
	assert_int_equal(list->top, 0);
	press(b, 'I');
	look(b);
	assert_int_equal(cursor_row(b)->id, id);
	assert_true(cursor_is_in_sight(b));
	/* The columns that are not in sight are stepped over. */
	press(b, 'P');
	press(b, '>');
	assert_string_equal(view_functions.columns[list->sort].title.str, "TOTAL%");
	press(b, '<');
	assert_string_equal(view_functions.columns[list->sort].title.str, "SELF%");
	bench_fini(b);
}

/* Return the size of a file; -1: there is none. */
static long size_of(const char *path)
{
	struct stat s;

	return stat(path, &s) ? -1 : (long)s.st_size;
}

/* A file that exists is replaced after y, or by a command with '!'. */
TEST(test_replaces_after_yes)
{
	static const char *const commands[] = { ":export", ":screen" };
	struct bench *b = start(80, 24);
	char dir[] = "/tmp/proftop-replace-XXXXXX", path[64], line[128];

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/a.folded", dir);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		snprintf(line, sizeof(line), "%s %s\r", commands[i], path);
		type(b, line);
		assert_true(size_of(path) > 0);
		assert_int_equal(truncate(path, 0), 0);
		type(b, line);
		assert_non_null(strstr(look(b), "File exists. Replace it? (y/N)  /tmp/proftop-"));
		type(b, "\r");
		assert_non_null(strstr(look(b), "not replaced: /tmp/proftop-"));
		assert_int_equal(size_of(path), 0);
		type(b, line);
		type(b, "y");
		assert_true(size_of(path) > 0);
		assert_int_equal(truncate(path, 0), 0);
		snprintf(line, sizeof(line), "%s! %s\r", commands[i], path);
		type(b, line);
		assert_true(size_of(path) > 0);
		unlink(path);
	}
	/* Also of the name typed in the picker. */
	type(b, "\x1b");
	press(b, K_F(9));
	type(b, path);
	type(b, "\r");
	assert_int_equal(truncate(path, 0), 0);
	press(b, K_F(9));
	type(b, path);
	type(b, "\rn");
	assert_int_equal(size_of(path), 0);
	unlink(path);
	rmdir(dir);
	bench_fini(b);
}

/* An unknown key is reported, and replaces the message before. */
TEST(test_unknown_keys)
{
	static const uint32_t none[] = { '9', '0', 0xa7, K_F(11), K_F(12), 0x20ac };
	struct bench *b = start(80, 24);

	for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
		press(b, none[i]);
		assert_non_null(strstr(look(b), "no such key here (F1 lists them)"));
		press(b, K_HOME);
		assert_null(strstr(look(b), "no such key"));
	}
	press(b, K_ESC); /* releases the row */
	press(b, K_ESC);
	assert_non_null(strstr(look(b), "q quits"));
	assert_false(b->st.quit);
	/* A search that finds nothing reports so while typing, and at the end. */
	press(b, '/');
	assert_non_null(strstr(look(b), "n next"));
	type(b, "zzz");
	assert_non_null(strstr(look(b), "zzz  not found"));
	press(b, K_ENTER);
	assert_non_null(strstr(look(b), "zzz: not found"));
	press(b, 'j');
	assert_null(strstr(look(b), "not found"));
	bench_fini(b);
}

TEST(test_mouse)
{
	struct bench *b = start(80, 24);
	struct key click = { .code = K_MOUSE, .row = 7, .col = 30, .button = BUTTON_LEFT };

	input_key(&b->st, &click);
	assert_int_equal(cursor_row(b)->id, 13);
	input_key(&b->st, &click); /* twice: in */
	assert_int_equal(b->st.view, VIEW_CALLERS);
	press(b, K_ESC);
	look(b);
	click.row = 4;
	click.col = 17; /* a column */
	input_key(&b->st, &click);
	assert_string_equal(view_functions.columns[ui_state_list(&b->st)->sort].title.str, "TOTAL"
											   "%");
	look(b);
	click.row = 23;
	click.col = 1; /* F1 */
	input_key(&b->st, &click);
	assert_int_equal(b->st.view, VIEW_HELP);
	bench_fini(b);
}

/* Message and answer of the sampler are shown once, for a while. */
TEST(test_messages)
{
	struct bench *b = start(80, 24);
	struct profile *p = fake_profile(2, NULL);

	strcpy(p->status, "rate is 1997 Hz");
	p->status_seq = 1;
	model_take(&b->st, p);
	assert_non_null(strstr(look(b), "rate is 1997 Hz"));
	b->st.now_ns += 10000000000ull;
	assert_null(strstr(look(b), "rate is 1997 Hz"));
	bench_fini(b);
}

/* Give the sampler's message @text, as at its next tick. */
static void say(struct bench *b, const char *text, uint32_t seq)
{
	struct profile *p = fake_profile(2, NULL);

	strcpy(p->status, text);
	p->status_seq = seq;
	model_take(&b->st, p);
}

/* An error about a command is shown for two seconds, or until the next key. */
TEST(test_held_message)
{
	struct bench *b = start(80, 24);

	press(b, ':');
	type(b, "target moon");
	press(b, K_ENTER);
	say(b, "more of the stacks are copied", 1);
	assert_non_null(strstr(look(b), "unknown target"));
	b->st.now_ns += 3000000000ull;
	say(b, "more of the stacks are copied", 1);
	assert_non_null(strstr(look(b), "more of the stacks"));
	press(b, ':');
	type(b, "target moon");
	press(b, K_ENTER);
	press(b, K_DOWN);
	say(b, "rate is 1997 Hz", 2);
	assert_non_null(strstr(look(b), "rate is 1997 Hz"));
	bench_fini(b);
}

/* A message longer than a line has two, with its end; view 7 keeps it, and errors, for later. */
TEST(test_long_message)
{
	struct bench *b = start(80, 24);
	uint32_t page = ui_state_list(&b->st)->page;
	const char *screen;

	ui_state_say(&b->st, true,
		     "the kernel's tracepoints are not mounted; /sys/kernel/tracing is empty; "
		     "'sudo mount -t tracefs tracefs /sys/kernel/tracing'");
	screen = look(b);
	assert_non_null(strstr(screen, "tracepoints are not mounted"));
	assert_non_null(strstr(screen, "tracefs tracefs /sys/kernel/tracing'"));
	assert_non_null(strstr(screen, "F1Help"));
	/* The rows are above it. */
	assert_int_equal(ui_state_list(&b->st)->page, page - 1);
	b->st.now_ns += 60000000000ull;
	assert_null(strstr(look(b), "tracefs tracefs"));
	ui_state_say(&b->st, false, "a short answer");
	ui_state_say(&b->st, true, "unknown command 'foo'");
	ui_state_say(&b->st, true, "unknown command 'foo'");
	press(b, '7');
	b->st.now_ns += 60000000000ull;
	screen = look(b);
	assert_non_null(strstr(screen, "the kernel's tracepoints are not"));
	assert_non_null(strstr(screen, "unknown command 'foo'"));
	assert_null(strstr(screen, "a short answer"));
	assert_int_equal(b->st.nr_answers, 2);
	press(b, K_END);
	/* The whole text of the selected one. */
	assert_non_null(strstr(look(b), "What"));
	bench_fini(b);
}

/* However many there are, the newest are kept. */
TEST(test_many_answers)
{
	struct bench *b = start(80, 24);

	for (int i = 0; i < 3 * UI_STATE_ANSWERS; i++)
		ui_state_say(&b->st, true, "error %d", i);
	assert_int_equal(b->st.nr_answers, UI_STATE_ANSWERS);
	press(b, '7');
	press(b, K_END);
	assert_non_null(strstr(look(b), "error 47"));
	for (uint32_t i = 1; i < b->st.nr_answers; i++)
		assert_true(b->st.answers[i].id > b->st.answers[i - 1].id);
	bench_fini(b);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
