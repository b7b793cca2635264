// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Lists are in the order of the figures or names that the marked column shows: of each view by each
 * of its columns, and of pickers, messages and batch rows.
 */
#include "tests/ui/fake.h"

#include <ctype.h>
#include <math.h>
#include <strings.h>

#define COLS 240
#define ROWS 60

static uint32_t seed = 1;

static uint32_t upto(uint32_t n)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % n;
}

/* A profile with figures that do not go together: CPU time, samples, names. */
static struct profile *mixed_profile(void)
{
	struct profile *p = fake_profile(8, NULL);

	p->cpu_known = true;
	p->events[0].event.clock = true;
	for (uint32_t i = 0; i < p->nr_tasks; i++)
		p->tasks[i].cpu_ns = upto(5000) * 1e6;
	for (uint32_t i = 0; i < p->nr_counts; i++)
		p->counts[i].weight = p->counts[i].count * (1 + upto(9));
	for (uint32_t i = 0; i < p->nr_cpus; i++) {
		p->cpus[i].busy = upto(101) / 100.0;
		p->cpus[i].samples = upto(2000);
		p->cpus[i].lost_total = upto(3000);
	}
	return p;
}

static void cell_text(struct bench *b, unsigned int row, unsigned int col, unsigned int cols,
		      char *out, size_t size)
{
	size_t n = 0;

	*out = '\0';
	for (unsigned int i = 0; i < cols && n + 16 < size; i++)
		n += (size_t)snprintf(out + n, size - n, "%s",
				      canvas_at(&b->canvas, row, col + i)->text);
	while (n && out[n - 1] == ' ')
		out[--n] = '\0';
}

/* Read "1,234", "12.5", "37%", "1.2k"; false: it is no figure. */
static bool figure_of(const char *text, double *value)
{
	char plain[64];
	size_t n = 0;

	text += strspn(text, " ~!");
	for (; *text && n + 1 < sizeof(plain); text++)
		if (*text != ',')
			plain[n++] = *text;
	plain[n] = '\0';
	return isdigit((unsigned char)plain[0]) && sscanf(plain, "%lf", value) == 1;
}

/* Cut a name before its number ("x9", "+3"), or where it is elided. */
static void cut_name(char *text)
{
	char *at = strstr(text, "…");

	for (char *p = text; *p && !at; p++)
		if (*p == ' ' && (p[1] == 'x' || p[1] == '+') && isdigit((unsigned char)p[2]))
			at = p;
	if (at)
		*at = '\0';
}

/* Check that the shown cells of the sorted column rise or fall. */
static void check_column(struct bench *b, const struct zone *column)
{
	const struct view *v = view_shown(&b->st);
	const struct list *list = ui_state_list(&b->st);
	const struct view_column *c = &v->columns[column->value];
	bool rises = c->ascending != list->inverted;
	char text[200], before[200] = "";
	double value, last = NAN;

	for (uint32_t i = 0; i < list->nr && column->row + 1u + i < ROWS - 2; i++) {
		cell_text(b, column->row + 1u + i, column->col, column->cols, text, sizeof(text));
		if (!text[0] || strspn(text, " -") == strlen(text))
			continue;
		if (!c->right)
			cut_name(text);
		if (figure_of(text, &value)) {
			if (!isnan(last) && (rises ? value < last : value > last))
				fail_msg("%s by %s: %s after %s\n%s", v->title.str, c->title.str,
					 text, before, look(b));
			last = value;
		} else if (!c->right && before[0] && isnan(last) &&
			   (rises ? strncasecmp(before, text, MIN(strlen(before), strlen(text))) > 0
				  : strncasecmp(before, text, MIN(strlen(before), strlen(text))) <
					    0)) {
			fail_msg("%s by %s: %s after %s\n%s", v->title.str, c->title.str, text,
				 before, look(b));
		}
		snprintf(before, sizeof(before), "%s", text);
	}
}

/* Each view by each of its columns, in both directions. */
TEST(test_columns)
{
	static const char *const views[] = { "1", "2", "2H", "5", "6", "7" };

	for (int round = 0; round < 40; round++)
		for (size_t k = 0; k < ARRAY_SIZE(views); k++) {
			struct zone zones[64];
			uint32_t nr = 0;
			struct bench b;

			bench_init(&b, COLS, ROWS, false);
			model_take(&b.st, mixed_profile());
			type(&b, views[k]);
			look(&b);
			for (uint32_t i = 0; i < b.st.nr_zones && nr < ARRAY_SIZE(zones); i++)
				if (b.st.zones[i].kind == ZONE_COLUMN)
					zones[nr++] = b.st.zones[i];
			assert_true(nr > 3);
			for (uint32_t i = 0; i < nr; i++)
				for (int turn = 0; turn < 2; turn++) {
					ui_state_list(&b.st)->sort = (uint8_t)zones[i].value;
					ui_state_list(&b.st)->inverted = turn;
					table_rebuild(&b.st, b.st.view);
					look(&b);
					check_column(&b, &zones[i]);
				}
			bench_fini(&b);
		}
}

/* The process picker: by the share that it shows, the hottest first. */
TEST(test_process_picker)
{
	for (int round = 0; round < 200; round++) {
		double last = 101, share;
		struct bench b;

		bench_init(&b, 100, 40, false);
		model_take(&b.st, mixed_profile());
		dialog_open(&b.st, &dialog_processes, NULL, NULL);
		assert_true(b.st.dialog.nr > 2);
		for (uint32_t i = 1; i < b.st.dialog.nr; i++) {
			assert_int_equal(sscanf(b.st.dialog.entries[i].detail, "%lf", &share), 1);
			assert_true(share <= last);
			last = share;
		}
		bench_fini(&b);
	}
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
