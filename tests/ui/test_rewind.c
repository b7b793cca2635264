// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The heat strip and rewind: screens, keys, mouse, commands and requests.
 */
#include "ui/rewind.c"

#include "tests/ui/golden.h"

#include "ui/text/text.h"
#include "ui/view/view.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "ui/key/key.h"
#include "ui/draw/draw.h"
#include "ui/state/state.h"

#define SECOND 1000000000ULL
#define COLUMN (5 * SECOND)
#define FIRST  (1000 * SECOND)

/* A strip of @nr columns of 5 s with a burst in every 10th. */
static struct strip *make_strip(uint32_t nr)
{
	struct strip *s = calloc(1, sizeof(*s) + nr * sizeof(s->columns[0]));

	*s = (struct strip){ .begin_ns = FIRST, .column_ns = COLUMN, .nr = nr, .max = 100 };
	s->first_ns = FIRST;
	s->last_ns = FIRST + nr * COLUMN;
	for (uint32_t i = 0; i < nr; i++) {
		uint64_t at = s->begin_ns + i * COLUMN + SECOND;

		s->columns[i] = (struct strip_column){ i % 10 == 5 ? 100 : 2 + 7.0 * (i % 7), at,
						       at + SECOND / 10, 0 };
	}
	s->columns[3].marks = STRIP_LOST;
	s->columns[17].marks = STRIP_RATE;
	s->columns[28].marks = STRIP_TRAP;
	s->columns[20] = (struct strip_column){ 0 };
	return s;
}

static void start(struct bench *b, unsigned int cols, unsigned int rows, bool ascii)
{
	bench_init(b, cols, rows, ascii);
	model_take(&b->st, fake_profile(2, NULL));
	look(b);
	rewind_take(&b->st, NULL, make_strip(header_strip_columns(cols)));
}

/* The answer to a request. */
static void answer(struct bench *b)
{
	struct profile *p = fake_profile(2, NULL);

	p->seq += 1000;
	p->past_begin_ns = b->sampler.past_begin_ns;
	p->past_end_ns = b->sampler.past_end_ns;
	p->window_ns = p->past_end_ns - p->past_begin_ns;
	/* Slices have no figures of CPUs, and no outcomes. */
	p->nr_cpus = 0;
	p->account.no_outcomes = true;
	p->samples_per_s = 12345;
	rewind_take(&b->st, p, NULL);
}

TEST(test_screens)
{
	static const struct {
		const char *name;
		unsigned int cols, rows;
		bool ascii;
	} looks[] = { { "80x24", 80, 24, false },
		      { "80x24-ascii", 80, 24, true },
		      { "40x8", 40, 8, false },
		      { "100x30", 100, 30, false },
		      { "200x60", 200, 60, false } };

	for (size_t i = 0; i < ARRAY_SIZE(looks); i++) {
		struct bench b;
		char name[64];

		start(&b, looks[i].cols, looks[i].rows, looks[i].ascii);
		snprintf(name, sizeof(name), "strip-%s", looks[i].name);
		golden(&b, name);
		press(&b, '\'');
		answer(&b);
		snprintf(name, sizeof(name), "rewind-%s", looks[i].name);
		golden(&b, name);
		bench_fini(&b);
	}
}

/*
 * The label is the age of the oldest drawn slice, never more than the run: columns are whole steps,
 * so the first one may begin before the first slice, and the last one may end after now.
 */
TEST(test_label)
{
	static const struct {
		uint64_t first, last;
		const char *label;
	} strips[] = { { 2, 89, "\n -87s " },
		       { 0, 90, "\n -90s " },
		       { 1, 88, "\n -87s " },
		       /* Of a zoomed strip, older slices are not drawn. */
		       { UINT64_MAX, 89, "\n -89s " } };

	for (size_t i = 0; i < ARRAY_SIZE(strips); i++) {
		struct strip *s = make_strip(30);
		struct bench b;

		start(&b, 80, 24, false);
		s->column_ns = 3 * SECOND;
		s->first_ns = strips[i].first == UINT64_MAX
				      ? s->begin_ns - 50 * SECOND
				      : s->begin_ns + strips[i].first * SECOND;
		s->last_ns = s->begin_ns + strips[i].last * SECOND;
		rewind_take(&b.st, NULL, s);
		assert_non_null(strstr(look(&b), strips[i].label));
		bench_fini(&b);
	}
}

/* The header takes four lines of 24 with and without a strip, drilled or not. */
TEST(test_header_lines)
{
	struct bench b;
	struct canvas c;
	char *text;

	start(&b, 80, 24, false);
	canvas_init(&c, false);
	assert_int_equal(canvas_resize(&c, 24, 80), 0);
	assert_int_equal(header_draw(&b.st, &c), 5);
	navigate_into_process(&b.st, b.st.shown->processes[0].id);
	assert_int_equal(header_draw(&b.st, &c), 5);
	/* The strip is of the thread, and says so. */
	text = canvas_dump(&c);
	assert_non_null(strstr(text, " process"));
	free(text);
	b.st.scope.in_thread = true;
	b.st.scope.thread = b.st.shown->tasks[0].id;
	canvas_clear(&c);
	header_draw(&b.st, &c);
	text = canvas_dump(&c);
	assert_non_null(strstr(text, " thread"));
	free(text);
	b.st.scope.in_thread = false;
	b.st.rewind.subject = REWIND_OFF;
	assert_int_equal(header_draw(&b.st, &c), 4);
	canvas_fini(&c);
	bench_fini(&b);
}

/* Earlier, later, peak, widen, live: requests, and the profile that is shown. */
/* When memory makes slices longer, it is said once; again after they were all short. */
TEST(test_merged)
{
	static const bool merged[] = { false, true, true, false, true };
	static const bool said[] = { false, true, false, false, true };
	struct bench b;

	start(&b, 100, 30, false);
	for (size_t i = 0; i < ARRAY_SIZE(merged); i++) {
		struct strip *s = make_strip(30);

		s->merged = merged[i];
		b.st.message[0] = '\0';
		rewind_take(&b.st, NULL, s);
		assert_int_equal(strstr(b.st.message, "--history-memory") != NULL, said[i]);
	}
	bench_fini(&b);
}

TEST(test_keys)
{
	struct bench b;
	struct ui_state *st = &b.st;
	const struct strip *s;
	struct profile *latest;
	uint64_t begin;
	uint32_t last;

	start(&b, 80, 24, false);
	s = st->rewind.strip;
	last = (s->nr - 6) / 10 * 10 + 5;
	latest = st->latest;
	press(&b, '.');
	press(&b, 'o');
	press(&b, 'Y');
	assert_int_equal(b.sampler.nr_pasts, 0);
	press(&b, '\'');
	assert_true(st->rewind.on && st->frozen && st->shown == latest);
	assert_int_equal(b.sampler.past_begin_ns, s->columns[last].begin_ns);
	assert_int_equal(b.sampler.past_end_ns, s->columns[last].end_ns);
	answer(&b);
	assert_true(st->shown != latest && st->latest == latest);
	assert_non_null(strstr(look(&b), " ago  for 100ms"));
	press(&b, '\'');
	assert_int_equal(b.sampler.past_begin_ns, s->columns[last - 10].begin_ns);
	press(&b, 'i');
	begin = b.sampler.past_begin_ns;
	assert_int_equal(begin, s->columns[last - 10].begin_ns - SECOND / 10);
	press(&b, 'Y');
	assert_int_equal(b.sampler.past_begin_ns, begin - SECOND / 10);
	press(&b, 'o');
	assert_int_equal(b.sampler.past_begin_ns, begin + SECOND / 10);
	/* Sampling goes on: a newer profile does not replace the past. */
	answer(&b);
	latest = fake_profile(2, NULL);
	model_take(st, latest);
	assert_true(st->latest == latest && st->shown != latest);
	press(&b, '.');
	assert_true(!st->rewind.on && !st->frozen && st->shown == latest);
	assert_int_equal(b.sampler.past_end_ns, 0);
	/* An answer that is late is not shown. */
	answer(&b);
	assert_ptr_equal(st->shown, latest);
	bench_fini(&b);
}

/* The ranges of the keys cover the past without a gap, down to its beginning. */
TEST(test_steps)
{
	struct bench b;
	const struct strip *s;
	uint64_t at;

	start(&b, 80, 24, false);
	s = b.st.rewind.strip;
	at = s->last_ns - b.st.set.window_ns; /* which the rows of now show */
	while (at > s->first_ns) {
		press(&b, 'i');
		assert_int_equal(b.sampler.past_end_ns, at);
		assert_int_equal(at - b.sampler.past_begin_ns, b.st.set.window_ns);
		at = b.sampler.past_begin_ns;
	}
	press(&b, 'i');
	assert_int_equal(b.sampler.past_begin_ns, s->first_ns);
	assert_int_equal(b.sampler.past_end_ns, s->first_ns + b.st.set.window_ns);
	for (at = s->first_ns; b.st.rewind.on; at += b.st.set.window_ns) {
		assert_int_equal(b.sampler.past_begin_ns, at);
		press(&b, 'o');
	}
	assert_int_equal(at + b.st.set.window_ns, s->last_ns);
	bench_fini(&b);
}

/* The answer to a request, of a slice that is longer than the range. */
static void answer_long(struct bench *b, uint64_t begin_ns, uint64_t end_ns)
{
	struct profile *p = fake_profile(2, NULL);

	p->seq += 1000;
	p->past_begin_ns = begin_ns;
	p->past_end_ns = end_ns;
	p->nr_cpus = 0;
	rewind_take(&b->st, p, NULL);
}

/* Slices of other lengths than the range: each step leaves the one that is shown. */
TEST(test_long_slices)
{
	const uint64_t slice = SECOND * 10;
	struct bench b;
	uint64_t begin, end;

	start(&b, 100, 30, false);
	rewind_to(&b.st, FIRST + 61 * SECOND, FIRST + 61 * SECOND + SECOND / 10);
	answer_long(&b, FIRST + 6 * slice, FIRST + 7 * slice);
	assert_int_equal(header_strip_step(&b.st), slice);
	press(&b, 'o');
	assert_int_equal(b.sampler.past_begin_ns, FIRST + 7 * slice);
	/* Before the answer the next step is from there. */
	press(&b, 'o');
	assert_true(b.sampler.past_begin_ns > FIRST + 7 * slice);
	rewind_to(&b.st, FIRST + 61 * SECOND, FIRST + 61 * SECOND + SECOND / 10);
	answer_long(&b, FIRST + 6 * slice, FIRST + 7 * slice);
	press(&b, 'i');
	assert_int_equal(b.sampler.past_end_ns, FIRST + 6 * slice);
	press(&b, 'Y');
	begin = b.sampler.past_begin_ns;
	end = b.sampler.past_end_ns;
	assert_true(begin < FIRST + 6 * slice && end <= FIRST + 6 * slice);
	/* The beginning is said, and is not left. */
	rewind_to(&b.st, FIRST, FIRST + SECOND);
	answer(&b);
	press(&b, 'i');
	assert_non_null(strstr(b.st.message, "beginning of the history"));
	assert_int_equal(b.sampler.past_begin_ns, FIRST);
	bench_fini(&b);
}

/* After the first peak the last one is next, which is said. */
TEST(test_peaks_again)
{
	struct bench b;
	const struct strip *s;
	uint64_t last;
	int nr = 0;

	start(&b, 100, 30, false);
	s = b.st.rewind.strip;
	press(&b, '\'');
	last = b.sampler.past_begin_ns;
	do {
		answer(&b);
		assert_null(strstr(b.st.message, "again"));
		b.st.message[0] = '\0';
		press(&b, '\'');
		nr++;
	} while (b.sampler.past_begin_ns < last && nr < 100 &&
		 (nr == 1 || b.sampler.past_begin_ns != last));
	assert_int_equal(b.sampler.past_begin_ns, last);
	assert_in_range(nr, (s->nr - 6) / 10, s->nr / 10 + 1);
	assert_non_null(strstr(b.st.message, "from the last one again"));
	bench_fini(&b);
}

/* A short past: no range of less than a second. */
TEST(test_short)
{
	struct bench b;
	struct strip *s;

	start(&b, 80, 24, false);
	s = make_strip(30);
	s->column_ns = SECOND / 10;
	s->last_ns = FIRST + 3 * SECOND;
	rewind_take(&b.st, NULL, s);
	press(&b, 'i');
	assert_int_equal(b.sampler.past_begin_ns, FIRST);
	assert_int_equal(b.sampler.past_end_ns, FIRST + 3 * SECOND);
	press(&b, '.');
	b.config.replayed = true;
	press(&b, 'i');
	assert_int_equal(b.sampler.past_begin_ns, FIRST + 2 * SECOND);
	assert_int_equal(b.sampler.past_end_ns, FIRST + 3 * SECOND);
	bench_fini(&b);
}

/* Space is also a way back; later than the newest moment is now. */
TEST(test_ways_back)
{
	struct bench b;

	start(&b, 80, 24, false);
	press(&b, 'i');
	answer(&b);
	press(&b, ' ');
	assert_true(!b.st.rewind.on && !b.st.frozen && b.st.shown == b.st.latest);
	press(&b, 'i');
	press(&b, 'o');
	assert_false(b.st.rewind.on);
	press(&b, 'i');
	press(&b, '|');
	assert_true(b.st.rewind.on && b.st.rewind.subject == REWIND_ROW);
	press(&b, '|');
	assert_true(!b.st.rewind.on && b.st.rewind.subject == REWIND_OFF);
	assert_null(strstr(look(&b), "T\342\226"));
	bench_fini(&b);
}

static void mouse(struct bench *b, uint8_t button, unsigned int row, unsigned int col)
{
	input_key(&b->st, &(struct key){ .code = K_MOUSE,
					 .row = (uint16_t)row,
					 .col = (uint16_t)col,
					 .button = button });
}

/* A click is a column; a drag is a range, in both directions. */
TEST(test_mouse)
{
	struct bench b;
	const struct rewind *r = &b.st.rewind;

	start(&b, 80, 24, false);
	look(&b);
	assert_int_equal(r->cols, r->strip->nr);
	mouse(&b, BUTTON_LEFT, r->row, r->col + 10u);
	mouse(&b, BUTTON_RELEASED, r->row, r->col + 10u);
	assert_int_equal(b.sampler.past_begin_ns, FIRST + 10 * COLUMN);
	assert_int_equal(b.sampler.past_end_ns, FIRST + 11 * COLUMN);
	mouse(&b, BUTTON_LEFT, r->row, r->col + 12u);
	mouse(&b, BUTTON_RELEASED, r->row + 3u, r->col + 8u);
	assert_int_equal(b.sampler.past_begin_ns, FIRST + 8 * COLUMN);
	assert_int_equal(b.sampler.past_end_ns, FIRST + 13 * COLUMN);
	mouse(&b, BUTTON_LEFT, r->row, r->col + r->cols - 1u);
	mouse(&b, BUTTON_RELEASED, r->row, 500);
	assert_int_equal(b.sampler.past_end_ns, FIRST + r->strip->nr * COLUMN);
	bench_fini(&b);
}

/* A grid of @seconds at 10 Hz: each second row has samples, and one slice in a second has most. */
static struct strip *make_grid(uint32_t seconds)
{
	const uint64_t slice = SECOND / STRIP_GRID_ROWS;
	uint32_t nr = seconds * STRIP_GRID_ROWS;
	struct strip *s = calloc(1, sizeof(*s) + nr * sizeof(s->columns[0]));

	*s = (struct strip){ .begin_ns = FIRST, .column_ns = slice, .nr = nr, .max = 100 };
	s->grid = true;
	s->first_ns = FIRST;
	s->last_ns = FIRST + nr * slice - slice * 3;
	for (uint32_t i = 0; i < nr - 3; i++)
		s->columns[i] = (struct strip_column){ i % STRIP_GRID_ROWS == 7 ? 100
						       : i % 2			? 40
										: 0,
						       FIRST + i * slice, FIRST + (i + 1) * slice,
						       i == 45 ? STRIP_LOST : 0 };
	return s;
}

static void start_grid(struct bench *b, unsigned int cols, unsigned int rows, bool ascii)
{
	start(b, cols, rows, ascii);
	press(b, '`');
	look(b);
	rewind_refresh(&b->st);
	rewind_take(&b->st, NULL, make_grid(40));
}

TEST(test_grid_screens)
{
	static const struct {
		const char *name;
		unsigned int cols, rows;
		bool ascii;
	} looks[] = { { "80x24", 80, 24, false },
		      { "80x24-ascii", 80, 24, true },
		      { "60x16", 60, 16, false },
		      { "200x50", 200, 50, false } };

	for (size_t i = 0; i < ARRAY_SIZE(looks); i++) {
		struct bench b;
		char name[64];

		start_grid(&b, looks[i].cols, looks[i].rows, looks[i].ascii);
		b.st.message[0] = '\0';
		snprintf(name, sizeof(name), "grid-%s", looks[i].name);
		golden(&b, name);
		bench_fini(&b);
	}
}

/* With 256 colours a cell has two slices; the selected ones have other colours. */
TEST(test_grid_halves)
{
	const struct rewind *r;
	const struct cell *cell;
	struct canvas c;
	struct bench b;

	start_grid(&b, 80, 24, false);
	r = &b.st.rewind;
	canvas_init(&c, false);
	assert_int_equal(canvas_resize(&c, 24, 80), 0);
	c.halves = true;
	header_draw(&b.st, &c);
	assert_int_equal(r->rows, 10);
	/* Slices 6 and 7, of 300 and 350 ms. */
	cell = canvas_at(&c, r->row + 3u, r->col + 5u);
	assert_string_equal(cell->text, "\u2580");
	assert_int_equal(cell->style.role, theme_heats(0, 4));
	cell = canvas_at(&c, r->row + 4u, r->col + 5u);
	assert_int_equal(cell->style.role, theme_heats(0, 2));
	/* A letter hides both. */
	assert_string_equal(canvas_at(&c, r->row + 2u, r->col + 2u)->text, "!");
	rewind_to(&b.st, FIRST + 5 * SECOND + 7 * SECOND / 20,
		  FIRST + 5 * SECOND + 8 * SECOND / 20);
	canvas_clear(&c);
	header_draw(&b.st, &c);
	cell = canvas_at(&c, r->row + 3u, r->col + 5u);
	assert_int_equal(cell->style.role, theme_heats(0, THEME_HEATS + 4));
	canvas_fini(&c);
	bench_fini(&b);
}

/* Click and drag by second and row; a line of 24 has two slices, one of 50 rows has one. */
TEST(test_grid_mouse)
{
	const uint64_t slice = SECOND / STRIP_GRID_ROWS;
	const struct rewind *r;
	struct bench b;

	start_grid(&b, 80, 24, false);
	r = &b.st.rewind;
	look(&b);
	mouse(&b, BUTTON_LEFT, r->row + 3u, r->col + 5u);
	mouse(&b, BUTTON_RELEASED, r->row + 3u, r->col + 5u);
	assert_int_equal(b.sampler.past_begin_ns, FIRST + 5 * SECOND + 6 * slice);
	assert_int_equal(b.sampler.past_end_ns, FIRST + 5 * SECOND + 8 * slice);
	mouse(&b, BUTTON_LEFT, r->row + 1u, r->col + 7u);
	mouse(&b, BUTTON_RELEASED, r->row + 9u, r->col + 4u);
	assert_int_equal(b.sampler.past_begin_ns, FIRST + 4 * SECOND + 18 * slice);
	assert_int_equal(b.sampler.past_end_ns, FIRST + 7 * SECOND + 4 * slice);
	bench_fini(&b);
	start_grid(&b, 200, 50, false);
	look(&b);
	mouse(&b, BUTTON_LEFT, r->row + 7u, r->col + 5u);
	mouse(&b, BUTTON_RELEASED, r->row + 7u, r->col + 5u);
	assert_int_equal(b.sampler.past_begin_ns, FIRST + 5 * SECOND + 7 * slice);
	assert_int_equal(b.sampler.past_end_ns, FIRST + 5 * SECOND + 8 * slice);
	/* The arrows go on from there. */
	press(&b, K_DOWN);
	assert_int_equal(b.sampler.past_begin_ns, FIRST + 5 * SECOND + 8 * slice);
	bench_fini(&b);
}

/* The arrows choose a slice, Space a range; Enter gives them to the rows, Esc goes back to now. */
TEST(test_grid_keys)
{
	const uint64_t slice = SECOND / STRIP_GRID_ROWS;
	uint64_t newest, cursor;
	struct bench b;

	start_grid(&b, 80, 24, false);
	newest = b.st.rewind.strip->last_ns - slice;
	assert_true(b.sampler.strip.grid);
	press(&b, K_UP);
	assert_int_equal(b.sampler.past_begin_ns, newest);
	assert_int_equal(b.sampler.past_end_ns, newest + slice);
	press(&b, K_DOWN); /* there is none after it */
	assert_int_equal(b.sampler.past_begin_ns, newest);
	press(&b, K_LEFT);
	press(&b, K_UP);
	assert_int_equal(b.sampler.past_begin_ns, newest - SECOND - slice);
	press(&b, ' ');
	press(&b, K_LEFT);
	press(&b, K_DOWN);
	assert_int_equal(b.sampler.past_begin_ns, newest - 2 * SECOND);
	assert_int_equal(b.sampler.past_end_ns, newest - SECOND);
	press(&b, ' ');
	press(&b, K_RIGHT);
	assert_int_equal(b.sampler.past_begin_ns, newest - SECOND);
	assert_int_equal(b.sampler.past_end_ns, newest - SECOND + slice);
	cursor = ui_state_list(&b.st)->cursor;
	press(&b, K_ENTER);
	press(&b, K_DOWN);
	assert_int_equal(b.sampler.past_begin_ns, newest - SECOND);
	assert_int_equal(ui_state_list(&b.st)->cursor, cursor + 1);
	press(&b, '`');
	assert_false(b.st.rewind.grid);
	press(&b, '`');
	press(&b, K_ESC);
	assert_false(b.st.rewind.on || b.st.rewind.steers);
	/* Not before the past, and a grid of that time is requested. */
	press(&b, '`');
	press(&b, '`');
	for (int i = 0; i < 50; i++)
		press(&b, K_LEFT);
	assert_int_equal(b.sampler.past_begin_ns, FIRST);
	rewind_refresh(&b.st);
	assert_int_equal(b.sampler.strip.until_ns, 0);
	b.st.rewind.strip->last_ns += 600 * SECOND;
	rewind_refresh(&b.st);
	assert_in_range(b.sampler.strip.until_ns, FIRST + SECOND,
			FIRST + b.sampler.strip.columns * SECOND);
	/* On a low screen it is one line. */
	b.st.rows = 15;
	rewind_refresh(&b.st);
	assert_false(b.sampler.strip.grid);
	bench_fini(&b);
}

static void command(struct bench *b, const char *text)
{
	press(b, ':');
	type(b, text);
	press(b, K_ENTER);
}

TEST(test_command)
{
	struct bench b;
	const struct strip *s;

	start(&b, 80, 24, false);
	s = b.st.rewind.strip;
	command(&b, "rewind 30s");
	assert_int_equal(b.sampler.past_begin_ns, s->last_ns - 30 * SECOND - COLUMN / 2);
	assert_int_equal(b.sampler.past_end_ns, s->last_ns - 30 * SECOND + COLUMN / 2);
	command(&b, "rewind");
	assert_false(b.st.rewind.on);
	command(&b, "rewind 2h");
	assert_non_null(strstr(b.st.message, "does not reach back"));
	command(&b, "rewind soon");
	assert_non_null(strstr(b.st.message, "invalid time 'soon'"));
	command(&b, "rewind 25:00");
	assert_non_null(strstr(b.st.message, "invalid time"));
	assert_false(b.st.rewind.on);
	/* By the clock: four minutes before the last slice. */
	setenv("TZ", "UTC", 1);
	b.st.rewind.strip->last_real_ns = (86400ULL * 20000 + 60) * SECOND;
	command(&b, "rewind 23:57:00");
	assert_true(b.st.rewind.on);
	assert_int_equal(b.sampler.past_begin_ns, s->last_ns - 240 * SECOND);
	assert_int_equal(b.sampler.past_end_ns, s->last_ns - 239 * SECOND);
	assert_non_null(strstr(look(&b), "23:57:00"));
	/* A minute; the strip ends half a second after a full one. */
	b.st.rewind.strip->last_real_ns += SECOND / 2;
	command(&b, "rewind 23:57");
	assert_int_equal(b.sampler.past_begin_ns, s->last_ns - 240 * SECOND - SECOND / 2);
	assert_int_equal(b.sampler.past_end_ns, b.sampler.past_begin_ns + 60 * SECOND);
	assert_non_null(strstr(look(&b), "23:57:00"));
	bench_fini(&b);
}

/* Type a time after ^R. */
static void ask(struct bench *b, const char *text)
{
	press(b, K_CTRL('r'));
	type(b, text);
	press(b, K_ENTER);
}

/* Times of a live session: four keys for half a minute ago; the help page leads there. */
TEST(test_time_live)
{
	struct bench b;
	const struct strip *s;

	start(&b, 100, 30, false);
	s = b.st.rewind.strip;
	assert_non_null(strstr(look(&b), "all ^R: time"));
	press(&b, '?');
	assert_non_null(strstr(look(&b), "^R"));
	press(&b, K_CTRL('r'));
	assert_non_null(strstr(look(&b), ", as in 30s, 5m (ago), 1403"));
	type(&b, "30");
	assert_non_null(strstr(look(&b), "Rewind to: 30  = "));
	press(&b, K_ENTER);
	assert_int_equal(b.sampler.past_begin_ns, s->last_ns - 30 * SECOND - COLUMN / 2);
	assert_int_equal(b.st.view, VIEW_FUNCTIONS);
	ask(&b, "-1m");
	assert_int_equal(b.sampler.past_begin_ns, s->last_ns - 60 * SECOND - COLUMN / 2);
	/* Nothing typed, or closed: no change. */
	ask(&b, "");
	assert_true(b.st.rewind.on);
	press(&b, K_CTRL('r'));
	type(&b, "9d");
	press(&b, K_ESC);
	assert_int_equal(b.sampler.past_begin_ns, s->last_ns - 60 * SECOND - COLUMN / 2);
	ask(&b, "9");
	ask(&b, "nine");
	assert_non_null(strstr(b.st.message, "invalid time 'nine'"));
	bench_fini(&b);
}

/* Times of a recording count from its start; of --keep, hours are of the day. */
TEST(test_time_recorded)
{
	struct bench b;
	struct strip *s;

	start(&b, 100, 30, false);
	b.config.replayed = true;
	s = b.st.rewind.strip;
	ask(&b, "20");
	assert_int_equal(b.sampler.past_begin_ns, s->first_ns + 20 * SECOND - COLUMN / 2);
	ask(&b, "-20s");
	assert_int_equal(b.sampler.past_begin_ns, s->last_ns - 20 * SECOND - COLUMN / 2);
	assert_non_null(strstr(look(&b), "REWIND  +"));
	/* Kept until 00:02:00 of a day. */
	setenv("TZ", "UTC", 1);
	s->last_real_ns = (86400ULL * 20000 + 120) * SECOND;
	ask(&b, "0");
	assert_int_equal(b.sampler.past_begin_ns, s->last_ns - 120 * SECOND);
	assert_non_null(strstr(look(&b), "REWIND  00:00:00"));
	ask(&b, "23:59");
	assert_int_equal(b.sampler.past_begin_ns, s->last_ns - 180 * SECOND);
	ask(&b, "0001");
	assert_int_equal(b.sampler.past_begin_ns, s->last_ns - 60 * SECOND);
	ask(&b, "2359");
	assert_int_equal(b.sampler.past_begin_ns, s->last_ns - 180 * SECOND);
	ask(&b, "2360");
	assert_int_equal(b.sampler.past_begin_ns, s->last_ns - 180 * SECOND);
	assert_non_null(strstr(b.st.message, "does not reach back"));
	ask(&b, "23");
	assert_non_null(strstr(b.st.message, "does not reach back"));
	press(&b, K_CTRL('r'));
	type(&b, "12");
	assert_non_null(strstr(look(&b), ", not earlier"));
	bench_fini(&b);
}

/* A day: the label of the strip in hours, dates where the two ends have the same time of day. */
TEST(test_day)
{
	struct bench b;
	struct strip *s;

	start(&b, 140, 30, false);
	s = b.st.rewind.strip;
	s->column_ns = 24 * 3600 * SECOND / s->nr;
	s->last_ns = s->first_ns + 86400 * SECOND;
	assert_non_null(strstr(look(&b), " -24h "));
	b.config.replayed = true;
	setenv("TZ", "UTC", 1);
	s->last_real_ns = (86400ULL * 20000 + 1) * SECOND;
	press(&b, K_CTRL('r'));
	assert_non_null(strstr(look(&b), "10-03 00:00:01 to 10-04 00:00:01, as in"));
	type(&b, "3");
	assert_non_null(strstr(look(&b), "= 10-03 03:00:00"));
	press(&b, K_ESC);
	/* Within one day there are none. */
	s->last_real_ns += 12 * 3600 * SECOND;
	s->first_ns = s->last_ns - 4 * 3600 * SECOND;
	press(&b, K_CTRL('r'));
	assert_non_null(strstr(look(&b), "Rewind to:   08:00:01 to 12:00:01, as in "));
	press(&b, K_ESC);
	bench_fini(&b);
}

/* The age of a moment minutes ago has seconds. */
TEST(test_age)
{
	struct bench b;

	start(&b, 100, 30, false);
	b.st.rewind.strip->last_ns = b.st.rewind.strip->first_ns + 400 * SECOND;
	rewind_to(&b.st, b.st.rewind.strip->last_ns - 320 * SECOND,
		  b.st.rewind.strip->last_ns - 319 * SECOND);
	assert_non_null(strstr(look(&b), "REWIND  5m 20s ago"));
	bench_fini(&b);
}

/* The first match in a recording is shown once there is a strip. */
TEST(test_trapped)
{
	for (int replayed = 0; replayed < 2; replayed++) {
		struct bench b;
		struct profile *p = fake_profile(2, NULL);

		bench_init(&b, 100, 30, false);
		b.config.replayed = replayed;
		p->trap = (struct profile_trap){ .seq = 1,
						 .begin_ns = FIRST + 20 * SECOND,
						 .end_ns = FIRST + 21 * SECOND };
		model_take(&b.st, p);
		rewind_trapped(&b.st);
		assert_false(b.st.rewind.on);
		rewind_take(&b.st, NULL, make_strip(40));
		assert_int_equal(b.st.rewind.on, replayed);
		assert_int_equal(b.sampler.past_begin_ns, replayed ? FIRST + 20 * SECOND : 0);
		/* Not again after the return. */
		press(&b, '.');
		rewind_take(&b.st, NULL, make_strip(40));
		assert_false(b.st.rewind.on);
		bench_fini(&b);
	}
}

/* The query follows screen, scope and row; the same query is sent once. */
TEST(test_query)
{
	struct bench b;

	start(&b, 80, 24, false);
	rewind_refresh(&b.st);
	rewind_refresh(&b.st);
	assert_int_equal(b.sampler.nr_strips, 1);
	assert_int_equal(b.sampler.strip.columns, header_strip_columns(80));
	assert_int_equal(b.sampler.strip.process, STRIP_ALL);
	assert_int_equal(b.sampler.strip.function, STRIP_ALL);
	press(&b, '|');
	rewind_refresh(&b.st);
	assert_int_not_equal(b.sampler.strip.function, STRIP_ALL);
	press(&b, K_DOWN);
	rewind_refresh(&b.st);
	assert_int_equal(b.sampler.nr_strips, 3);
	press(&b, '2');
	look(&b);
	rewind_refresh(&b.st);
	assert_int_equal(b.sampler.strip.function, STRIP_ALL);
	assert_int_not_equal(b.sampler.strip.process, STRIP_ALL);
	press(&b, '|');
	rewind_refresh(&b.st);
	assert_int_equal(b.sampler.strip.columns, 0);
	press(&b, '|');
	press(&b, ';');
	rewind_refresh(&b.st);
	assert_true(b.sampler.strip.span_ns > 0);
	press(&b, '_');
	rewind_refresh(&b.st);
	assert_int_equal(b.sampler.strip.span_ns, 0);
	bench_fini(&b);
}

/* The strip has the filter also while no row of the shown moment passes it. */
TEST(test_filter)
{
	const struct strip_query *q;
	struct strip *s;
	struct bench b;
	void *made;

	start(&b, 100, 30, false);
	q = &b.sampler.strip;
	press(&b, '\\');
	type(&b, "!Nowhere");
	press(&b, K_ENTER);
	rewind_refresh(&b.st);
	assert_string_equal(q->filter, "!Nowhere");
	assert_true(q->inverted && !q->only_tasks && q->function == STRIP_ALL);
	press(&b, '\\');
	press(&b, K_CTRL('u'));
	type(&b, "nowhere");
	press(&b, K_ENTER);
	assert_int_equal(ui_state_list(&b.st)->nr, 0);
	rewind_refresh(&b.st);
	assert_string_equal(q->filter, "nowhere");
	assert_false(q->inverted);
	assert_null(strstr(look(&b), "all ^R"));
	/* The peak is that of the filter, once its strip has arrived. */
	press(&b, '\'');
	assert_false(b.st.rewind.on);
	rewind_take(&b.st, NULL, make_strip(40));
	assert_false(b.st.rewind.on);
	s = make_strip(40);
	s->seq = q->seq;
	rewind_take(&b.st, NULL, s);
	assert_true(b.st.rewind.on);
	assert_int_equal(b.sampler.past_begin_ns, s->columns[35].begin_ns);
	press(&b, '.');
	assert_false(b.st.rewind.on);
	made = q->matcher->make("python:pars");
	assert_true(
		q->matcher->finds(made, &(struct strip_name){ TEXT("parse"), TEXT("a.py"), 'y' }));
	assert_false(
		q->matcher->finds(made, &(struct strip_name){ TEXT("parse"), TEXT("a"), 'u' }));
	assert_false(q->matcher->finds(made, &(struct strip_name){ .name = TEXT("parse") }));
	q->matcher->free(made);
	press(&b, '2');
	look(&b);
	rewind_refresh(&b.st);
	assert_int_equal(q->filter[0], 0);
	bench_fini(&b);
}

/* In the past the header has the figures of the moment, and rows of now are marked. */
TEST(test_figures)
{
	struct bench b;
	struct profile *p;

	start(&b, 100, 30, false);
	press(&b, '\'');
	answer(&b);
	p = b.st.shown;
	p->account.lost = 7;
	p->throttled = 3;
	p->events[0].want_hz = 99;
	look(&b);
	assert_non_null(strstr(look(&b), "Freq 99 Hz   Samples 12,345/s"));
	assert_non_null(strstr(look(&b), "Lost 7!"));
	assert_non_null(strstr(look(&b), "Throttled 3!"));
	p->past_rates_differ = p->past_other_events = true;
	assert_non_null(strstr(look(&b), "99 Hz, changed"));
	assert_non_null(strstr(look(&b), "samples of other events left out"));
	assert_null(strstr(look(&b), "live rows"));
	press(&b, '5');
	assert_non_null(strstr(look(&b), "live rows, not of +"));
	press(&b, '7');
	assert_non_null(strstr(look(&b), "live rows, not of +"));
	press(&b, '.');
	assert_null(strstr(look(&b), "live rows"));
	assert_non_null(strstr(look(&b), " Lost 0   Throttled 0"));
	press(&b, ' ');
	assert_non_null(strstr(look(&b), "live rows, not frozen"));
	bench_fini(&b);
}

/* A range of the past as baseline, then now against it. */
TEST(test_baseline)
{
	struct bench b;
	struct profile *past;
	char against[64], span[FORMAT_MAX];

	start(&b, 80, 24, false);
	press(&b, '\'');
	answer(&b);
	past = b.st.shown;
	press(&b, 'B');
	press(&b, '.');
	assert_ptr_equal(b.st.baseline, past);
	assert_ptr_equal(b.st.shown, b.st.latest);
	/* The moment of the range, not the running time of a profile of now. */
	b.st.now_ns += 60 * SECOND;
	snprintf(against, sizeof(against), "against +%s (B)",
		 format_age(span, past->past_begin_ns - FIRST).str);
	assert_non_null(strstr(look(&b), against));
	press(&b, 'B');
	assert_null(b.st.baseline);
	bench_fini(&b);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
