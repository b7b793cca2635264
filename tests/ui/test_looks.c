// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The head and the bars: the parts of a CPU's time and their scale, small shares and smaller ones,
 * good and bad by colour, and tabs that are not rows.
 * Live: takes about a second of CPU time, or more.
 */
#include "tests/ui/fake.h"

#include "ui/view/internal.h"

#include <ctype.h>
#include <math.h>

static uint32_t seed = 1;

static uint32_t upto(uint32_t n)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % n;
}

/* Return the line of the screen with @text; NULL: none. */
static const char *line_with(struct bench *b, const char *text)
{
	static char line[2000];
	const char *screen = look(b), *at = strstr(screen, text), *from = at;

	if (!at)
		return NULL;
	while (from > screen && from[-1] != '\n')
		from--;
	snprintf(line, sizeof(line), "%.*s", (int)strcspn(from, "\n"), from);
	return line;
}

/* No number of the tabs is followed by a blank, as the figures of rows are; at any width. */
TEST(test_tabs_are_no_rows)
{
	static const char *const keys[] = { "1", "2", "3", "4", "5", "6", "7", "%", "@" };
	struct bench b;

	for (unsigned int cols = 40; cols <= 200; cols += cols < 100 ? 1 : 25) {
		bench_init(&b, cols, 24, cols % 2);
		model_take(&b.st, fake_profile(2, NULL));
		for (size_t k = 0; k < ARRAY_SIZE(keys); k++) {
			const char *line;

			press(&b, (unsigned char)*keys[k]);
			line = line_with(&b, "7:");
			assert_non_null(line);
			for (const char *p = line; *p; p++)
				if (isdigit((unsigned char)*p) && p[1] == ' ')
					fail_msg("%u columns, view %s: \"%s\"", cols, keys[k],
						 line);
		}
		bench_fini(&b);
	}
}

/* Count the cells of the meter of CPU 0 with the role of each part. */
static unsigned int parts_of(struct bench *b, unsigned int row, unsigned int parts[3],
			     unsigned int *marks)
{
	static const enum theme_role roles[] = { ROLE_USER, ROLE_KERNEL, ROLE_WAIT };
	unsigned int col = 5, begin = col;

	memset(parts, 0, 3 * sizeof(*parts));
	*marks = 0;
	for (;; col++) {
		const struct cell *cell = canvas_at(&b->canvas, row, col);

		if (!strcmp(cell->text, b->st.glyphs->bar_end.str) && cell->style.role == ROLE_DIM)
			return col - begin;
		for (int k = 0; k < 3; k++)
			if (cell->text[0] != ' ' && cell->style.role == roles[k])
				parts[k]++;
		*marks += !strcmp(cell->text, b->st.glyphs->tick.str) ||
			  !strcmp(cell->text, b->st.glyphs->notch[0].str) ||
			  !strcmp(cell->text, b->st.glyphs->notch[1].str);
	}
}

/* User, kernel and host are beside each other, as wide as their shares, on a scale. */
TEST(test_meter)
{
	struct bench b;

	for (int i = 0; i < 600; i++) {
		struct profile *p = fake_profile(2, NULL);
		struct profile_cpu *cpu = &p->cpus[0];
		unsigned int parts[3], cells, marks;
		double shares[3];

		cpu->busy = upto(1001) / 1000.0;
		cpu->busy_kernel = cpu->busy * upto(1001) / 1000;
		cpu->busy_steal = (cpu->busy - cpu->busy_kernel) * upto(3) / 4;
		shares[0] = cpu->busy - cpu->busy_kernel - cpu->busy_steal;
		shares[1] = cpu->busy_kernel;
		shares[2] = cpu->busy_steal;
		bench_init(&b, 80 + upto(121), 34, i % 2);
		model_take(&b.st, p);
		look(&b);
		cells = parts_of(&b, 1, parts, &marks);
		assert_in_range(cells, 20, 100);
		for (int k = 0; k < 3; k++)
			if (fabs(parts[k] - shares[k] * cells) > 1.51)
				fail_msg("part %d of %u cells: %u, share %.3f", k, cells, parts[k],
					 shares[k]);
		/* An incomplete cell may hide a mark, or look like one. */
		assert_in_range(marks, 2, 4);
		bench_fini(&b);
	}
}

/* Without colours the parts differ as well. */
TEST(test_meter_text)
{
	for (int ascii = 0; ascii < 2; ascii++) {
		struct profile *p = fake_profile(2, NULL);
		struct bench b;
		const char *line;

		p->cpus[0].busy = 0.9;
		p->cpus[0].busy_kernel = 0.3;
		p->cpus[0].busy_steal = 0.2;
		bench_init(&b, 110, 34, ascii);
		model_take(&b.st, p);
		line = line_with(&b, "90%");
		assert_non_null(strstr(line, ascii ? "##" : "██"));
		assert_non_null(strstr(line, ascii ? "==" : "▓▓"));
		assert_non_null(strstr(line, ascii ? "--" : "░░"));
		bench_fini(&b);
	}
}

/* A bar of 2 % and one of 0.3 % differ beside any row that is the largest. */
TEST(test_small_bars)
{
	struct bench b;

	for (int ascii = 0; ascii < 2; ascii++) {
		bench_init(&b, 40, 8, ascii);
		for (unsigned int cols = 6; cols <= 20; cols++)
			for (double top = 0.02; top <= 1; top += 0.005) {
				char *two, *less;

				for (int i = 0; i < 2; i++) {
					canvas_clear(&b.canvas);
					view_draw_bar(&b.st, &b.canvas,
						      (struct view_field){ 0, 0, cols },
						      (i ? 0.003 : 0.02) / top, ROLE_BAR);
					*(i ? &less : &two) = canvas_dump(&b.canvas);
				}
				if (!strcmp(two, less))
					fail_msg("%u cells, top %.1f %%: both \"%s\"", cols,
						 100 * top, strtok(two, "\n"));
				free(two);
				free(less);
			}
		bench_fini(&b);
	}
}

/* Find @text on the screen; return the role of its first cell. */
static enum theme_role role_of(struct bench *b, const char *text)
{
	char *from = strdup(look(b));

	for (unsigned int row = 0; row < b->canvas.rows; row++)
		for (unsigned int col = 0; col < b->canvas.cols; col++) {
			char got[400] = "";

			for (unsigned int i = col; i < b->canvas.cols && strlen(got) < strlen(text);
			     i++)
				strcat(got, canvas_at(&b->canvas, row, i)->text);
			if (!strncmp(got, text, strlen(text))) {
				free(from);
				return (enum theme_role)canvas_at(&b->canvas, row, col)->style.role;
			}
		}
	fail_msg("no \"%s\" in:\n%s", text, from);
	return ROLE_NR;
}

/* Labels are dim, values bright; green is well, and nothing else is green. */
TEST(test_roles_of_head)
{
	struct profile *p = fake_profile(2, NULL);
	struct bench b;

	bench_init(&b, 110, 34, false);
	model_take(&b.st, p);
	assert_int_equal(role_of(&b, "Event cpu"), ROLE_DIM);
	assert_int_equal(role_of(&b, "cpu-clock   "), ROLE_VALUE);
	assert_int_equal(role_of(&b, "Lost 0"), ROLE_DIM);
	assert_int_equal(role_of(&b, "0   Throttled"), ROLE_OK);
	assert_int_equal(role_of(&b, "98%   Stacks"), ROLE_OK);
	assert_int_equal(role_of(&b, "97% complete"), ROLE_OK);
	bench_fini(&b);
	p = fake_profile(2, NULL);
	p->cpus[1].lost = p->cpus[1].lost_total = 37;
	p->window_unnamed = p->window_samples / 3;
	p->account.complete -= p->account.taken / 4;
	p->account.truncated += p->account.taken / 4;
	bench_init(&b, 110, 34, false);
	model_take(&b.st, p);
	press(&b, '6');
	assert_int_equal(role_of(&b, " Lost 37! "), ROLE_ALARM);
	assert_int_equal(role_of(&b, "67%   Stacks"), ROLE_WARN);
	assert_int_equal(role_of(&b, "72% complete"), ROLE_VALUE);
	bench_fini(&b);
}

/* A run that has ended is sorted by its final counts, and its clock has stopped. */
TEST(test_ended)
{
	/* Of noise alone, so that the row of 615 could keep its place above that of 626. */
	static const double before[] = { 1, 1, 1, 1, 1, 1, 1, 1, 1 };
	static const double after[] = { 1, 1, 1, 1, 1.08, 1, 1, 1, 1 };
	struct profile *p;
	struct bench b;
	const struct list *list;

	bench_init(&b, 110, 34, true);
	model_take(&b.st, fake_profile(2, before));
	for (int i = 0; i < 3; i++) {
		p = fake_profile(2, after);
		p->target_gone = true;
		p->running_ns = (200 + 10 * (uint64_t)i) * 1000000000;
		p->window = PROFILE_TOTAL;
		p->account = (struct profile_account){ 0 };
		p->account_total =
			(struct profile_account){ .taken = 100, .complete = 97, .broken = 3 };
		model_take(&b.st, p);
		/* Of the whole run, as its samples. */
		assert_non_null(strstr(look(&b), "Stacks 97% complete broken 3%"));
		assert_non_null(strstr(look(&b), "ENDED"));
		assert_non_null(strstr(look(&b), "run 00:03:20"));
	}
	list = &b.st.lists[VIEW_FUNCTIONS];
	for (uint32_t i = 1; i < list->nr; i++)
		assert_true(list->rows[i - 1].self >= list->rows[i].self);
	bench_fini(&b);
}

/* The head says how fast a recording grows; "100%" of stacks are all of them. */
TEST(test_growth)
{
	struct profile *p = fake_profile(2, NULL);
	struct bench b;

	bench_init(&b, 110, 34, true);
	p->recording.on = true;
	p->recording.bytes = 10 << 20;
	model_take(&b.st, p);
	p = fake_profile(2, NULL);
	p->recording.on = true;
	p->recording.bytes = 30 << 20;
	p->account = (struct profile_account){ .taken = 1000, .complete = 999, .pending = 1 };
	p->interval_ns = 500000000;
	model_take(&b.st, p);
	assert_non_null(strstr(look(&b), "rec 30 MB +40 MB/s"));
	assert_non_null(strstr(look(&b), ">99% complete"));
	assert_null(strstr(look(&b), "100% complete"));
	bench_fini(&b);
}

/* Kernel rows of a timer are marked: code with interrupts off may be counted there. */
TEST(test_timer_marks)
{
	struct profile *p = fake_profile(2, NULL);
	struct bench b;

	bench_init(&b, 110, 34, true);
	p->events[0].event.clock = true;
	model_take(&b.st, p);
	assert_non_null(strstr(look(&b), " k*"));
	assert_null(strstr(look(&b), " u*"));
	p->events[0].event.clock = false;
	assert_null(strstr(look(&b), " k*"));
	bench_fini(&b);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
