// SPDX-License-Identifier: GPL-2.0-or-later
/* The views where waits are shown, alone (wait) and with CPU time (all), or latency. */
#include "ui/outputs.c"
#include "ui/view/view_processes.c"

#include "tests/ui/golden.h"

#include <math.h>

#include "ui/internal.h"
#include "ui/fold/fold.h"
#include "symbols/base/base.h"
#include "symbols/name/name.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "ui/cli/cli.h"
#include "ui/export/internal.h"
#include "ui/state/state.h"

/* Return whether the kind has a column: kinds without time have none, nor kinds with the least time
 * where not all fit. */
static const struct {
	const char *name;
	unsigned int cols, rows;
	bool ascii;
} sizes[] = {
	{ "40x8", 40, 8, false },     { "80x24", 80, 24, false },   { "80x24 ascii", 80, 24, true },
	{ "100x30", 100, 30, false }, { "200x60", 200, 60, false },
};

/* Draw a view in all sizes into one text. @modes: presses of ^. */
static char *draw(int modes, const char *keys)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct profile *p = fake_profile(2, NULL);
		struct bench b;

		bench_init(&b, sizes[i].cols, sizes[i].rows, sizes[i].ascii);
		fake_waits(p);
		fake_details(p);
		model_take(&b.st, p);
		for (int n = 0; n < modes; n++)
			press(&b, '^');
		b.st.message_until_ns = 0;
		type(&b, keys);
		fprintf(f, "=== %s\n%s\n", sizes[i].name, look(&b));
		bench_fini(&b);
	}
	assert_int_equal(fclose(f), 0);
	return text;
}

TEST(test_screens)
{
	static const struct {
		const char *name, *keys;
	} views[] = {
		{ "functions", "" },  { "processes", "2" },	{ "threads", "2H" },
		{ "tree", "3*" },     { "flame", "4" },		{ "callers", "b" },
		{ "drilled", "2\r" }, { "process-tree", "2t" },
	};

	static const char *const times[] = { "wait", "all", "latency" };
	static const char *const idle[][2] = { { "times-idle-functions", "\"" },
					       { "times-idle-processes", "2\"" },
					       { "times-idle-flame", "4\"" } };

	for (int modes = 1; modes <= 3; modes++) {
		for (size_t i = 0; i < (modes < 3 ? ARRAY_SIZE(views) : 5); i++) {
			char *text = draw(modes, views[i].keys), name[64];

			snprintf(name, sizeof(name), "times-%s-%s", times[modes - 1],
				 views[i].name);
			golden_text(name, text);
			free(text);
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(idle); i++) {
		char *text = draw(2, idle[i][1]);

		golden_text(idle[i][0], text);
		free(text);
	}
}

/* The row of @name in the functions, or NULL. */
static const struct row *row_of(const struct bench *b, const char *name)
{
	const struct list *list = &b->st.lists[VIEW_FUNCTIONS];

	for (uint32_t i = 0; i < list->nr; i++)
		if (!strcmp(b->st.shown->functions[list->rows[i].index].name.str, name))
			return &list->rows[i];
	return NULL;
}

/* Idle waits: hidden beside CPU time, shown alone; the key changes both, and the sum is shown. */
TEST(test_idle)
{
	struct profile *p = fake_profile(2, NULL);
	const char *screen;
	struct bench b;

	bench_init(&b, 200, 40, false);
	fake_waits(p);
	model_take(&b.st, p);
	press(&b, '"');
	assert_non_null(strstr(look(&b), "no waits are shown"));
	press(&b, '^');
	screen = look(&b);
	assert_non_null(row_of(&b, "[poll]"));
	assert_null(strstr(screen, "hidden"));
	assert_non_null(strstr(screen, "Waiting 12.92 task-s/s"));
	press(&b, '^');
	screen = look(&b);
	assert_null(row_of(&b, "[poll]"));
	assert_non_null(row_of(&b, "[condition]"));
	/* (2.1 + 27.5 + 5.1) / 5 */
	assert_non_null(strstr(screen, "idle 6.94 hidden (\")"));
	assert_non_null(strstr(screen, "Time 7.06 task-s/s"));
	/* The columns add up to the time of the row, and that which is hidden. */
	press(&b, '2');
	screen = look(&b);
	assert_non_null(strstr(screen, " IDLE "));
	assert_non_null(strstr(screen, "C CPU 0.36  R run queue 0.18  L lock 2.84  E event 1.20  "
				       "idle 0.42 hidden"));
	press(&b, '"');
	screen = look(&b);
	assert_null(strstr(screen, "(\")"));
	assert_null(strstr(screen, " IDLE "));
	assert_non_null(strstr(screen, " EVENT "));
	press(&b, '1');
	assert_non_null(row_of(&b, "[poll]"));
	bench_fini(&b);
}

/* The columns of waits add up to the waiting time of each row, however few of them fit. */
TEST(test_columns_add_up)
{
	struct bench b;

	for (unsigned int cols = 66; cols <= 160; cols += 7) {
		struct profile *p = fake_profile(2, NULL);
		struct list *list = &b.st.lists[VIEW_PROCESSES];

		bench_init(&b, cols, 30, false);
		fake_waits(p);
		model_take(&b.st, p);
		type(&b, "^2");
		look(&b);
		assert_true(list->nr > 1);
		for (uint32_t i = 0; i < list->nr; i++) {
			double sum = 0, all = 0;

			for (int k = WAIT_QUEUE; k < WAIT_NR; k++) {
				all += (double)list->rows[i].waits[k];
				if (process_times_have(&b.st, (enum wait_kind)k))
					sum += process_times_of(&b.st, &list->rows[i],
								(enum wait_kind)k);
			}
			assert_true(fabs(sum - all) < 0.005 * (double)p->window_ns);
		}
		bench_fini(&b);
	}
}

/* The times of a group are of its processes of the user that is shown. */
TEST(test_one_user)
{
	static const enum grouping groupings[] = { GROUPING_PID, GROUPING_NAME };
	double sums[2] = { 0 };

	for (size_t g = 0; g < ARRAY_SIZE(groupings); g++) {
		struct profile *p = fake_profile(2, NULL);
		struct bench b;
		const struct list *list = &b.st.lists[VIEW_PROCESSES];

		bench_init(&b, 120, 30, false);
		fake_waits(p);
		p->processes[1].comm = p->processes[0].comm;
		for (uint32_t i = 0; i < p->nr_processes; i++)
			p->processes[i].uid = i == 1 ? 33 : 0;
		model_take(&b.st, p);
		type(&b, "^2");
		b.st.set.grouping = groupings[g];
		b.st.scope.by_user = true;
		b.st.scope.uid = 33;
		folds_forget(b.st.folds);
		table_rebuild(&b.st, VIEW_PROCESSES);
		assert_int_equal(list->nr, 1);
		for (int k = WAIT_QUEUE; k < WAIT_NR; k++) {
			assert_true(list->waits[k] == list->rows[0].waits[k]);
			sums[g] += (double)list->rows[0].waits[k];
		}
		bench_fini(&b);
	}
	assert_true(sums[0] > 0 && sums[0] == sums[1]);
}

/* Latency: the weights of 1 / running tasks, by option and by key; exports have the time itself. */
TEST(test_latency)
{
	struct profile *p = fake_profile(2, NULL);
	struct snapshot_scope scope;
	const struct row *row;
	double cpu;
	struct bench b;

	bench_init(&b, 120, 30, false);
	fake_waits(p);
	p->processes[1].comm = p->processes[0].comm;
	model_take(&b.st, p);
	cpu = row_of(&b, "copy_user_enhanced_fast_string")->self;
	b.config.set.time = CONFIG_TIME_LATENCY;
	ui_state_set_time(&b.st, CONFIG_TIME_LATENCY);
	folds_forget(b.st.folds);
	table_rebuild(&b.st, VIEW_FUNCTIONS);
	assert_non_null(strstr(look(&b), "cpu-clock, latency"));
	row = row_of(&b, "copy_user_enhanced_fast_string");
	/* Kernel code weighs half of what it did: 1842 + 580 of 6155. */
	assert_true(fabs(row->self - cpu * 0.5 / (1 - 0.5 * 2422 / 6155)) < 0.001);
	outputs_export_scope(&b.st, &scope);
	assert_int_equal(scope.filter.event, 0);
	press(&b, '^');
	assert_non_null(strstr(look(&b), "CPU time"));
	assert_true(row_of(&b, "copy_user_enhanced_fast_string")->self == cpu);
	/* Without such counts it is left out. */
	b.st.latest->latency = 0;
	for (int i = 0; i < 3; i++)
		press(&b, '^');
	assert_int_equal(ui_state_time(&b.st, b.st.latest), CONFIG_TIME_CPU);
	bench_fini(&b);
}

/* Waits with unknown callers: in the line of the stacks, and with the account. */
TEST(test_cut_waits)
{
	struct profile *p = fake_profile(2, NULL);
	struct bench b;

	fake_waits(p);
	p->waits.slept_ns = 10000000000;
	p->waits.cut_ns = 40000000; /* too few to say so */
	bench_init(&b, 160, 40, true);
	model_take(&b.st, p);
	press(&b, '^');
	assert_null(strstr(look(&b), "waits cut"));
	p->waits.cut_ns = 4000000000;
	assert_non_null(strstr(look(&b), "waits cut 40% (^W: whole)"));
	p->waits.cut_ns = 400000000; /* a few, of functions that are known */
	assert_non_null(strstr(look(&b), "waits cut 4% "));
	p->waits.cut_ns = 4000000000;
	press(&b, '5');
	assert_non_null(strstr(look(&b), "callers unknown in 4s of 10s asleep (^W: stacks of "
					 "now)"));
	bench_fini(&b);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
