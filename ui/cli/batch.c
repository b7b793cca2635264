// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Make the rows of a tick from a profile: folded per event, filtered, sorted
 * in a total order (equal profiles print equally), cut.
 *
 * Runs on: the main thread.
 */
#include "ui/cli/batch.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "ui/text/text.h"

/* The keys are part of the NDJSON contract; they follow enum unwind_stop. */
static const char *const broken_keys[PROFILE_NR_BROKEN] = {
	NULL,	  NULL,		 NULL,	      "too_deep", NULL,	      "no_map",
	"no_cfi", "cfi_refused", "bad_frame", "budget",	  "bad_regs", "outside",
};

const char *batch_broken_key(uint32_t stop)
{
	return stop < PROFILE_NR_BROKEN ? broken_keys[stop] : NULL;
}

/* Test the filter as on the screen: name or module matches; with '!' neither. */
static bool passes(const struct batch_config *config, const struct match *m,
		   const struct profile *p, const struct profile_function *fn)
{
	if (config->one_module && (fn->module_index >= p->nr_modules ||
				   p->modules[fn->module_index].id != config->module))
		return false;
	if (!match_active(m))
		return true;
	return m->negate != match_finds_function(m, fn);
}

/* Order numbers, largest first. */
static int compare_numbers(double a, double b)
{
	return (a < b) - (a > b);
}

/* Order rows that are equal in the sort column. */
static int compare_rest(const struct batch_row *a, const struct batch_row *b)
{
	int c = compare_numbers(a->self_pct, b->self_pct);

	if (!c)
		c = compare_numbers(a->total_pct, b->total_pct);
	if (!c)
		c = strcmp(a->function->name.str, b->function->name.str);
	if (!c)
		c = strcmp(a->function->module.str, b->function->module.str);
	return c ? c : COMPARE(a->function->id, b->function->id);
}

static int compare_rows(const void *va, const void *vb, void *sort)
{
	const struct batch_row *a = va, *b = vb;
	int c = 0;

	switch (*(const enum ui_config_sort *)sort) {
	case CONFIG_SORT_TOTAL:
		c = compare_numbers(a->total_pct, b->total_pct);
		break;
	case CONFIG_SORT_SYMBOL:
		c = strcmp(a->function->name.str, b->function->name.str);
		break;
	case CONFIG_SORT_MODULE:
		c = strcmp(a->function->module.str, b->function->module.str);
		break;
	case CONFIG_SORT_COMM:
		c = strcmp(a->comm.str, b->comm.str);
		break;
	default:
		break;
	}
	return c ? c : compare_rest(a, b);
}

static void swap_rows(struct batch_row *a, struct batch_row *b)
{
	struct batch_row c = *a;

	*a = *b;
	*b = c;
}

/* Sift the row at @at down in a heap with the worst row on top. */
static void sink(struct batch_row *rows, uint32_t nr, uint32_t at, enum ui_config_sort *sort)
{
	for (uint32_t below; (below = 2 * at + 1) < nr; at = below) {
		if (below + 1 < nr && compare_rows(&rows[below + 1], &rows[below], sort) > 0)
			below++;
		if (compare_rows(&rows[below], &rows[at], sort) <= 0)
			return;
		swap_rows(&rows[below], &rows[at]);
	}
}

/* Sort the best @nr of @all rows to the front: usually few rows of many are shown. */
static void sort_rows(struct batch_row *rows, uint32_t all, uint32_t nr, enum ui_config_sort sort)
{
	assert(nr <= all);
	if (nr && nr < all)
		for (uint32_t at = nr / 2; at-- > 0;)
			sink(rows, nr, at, &sort);
	for (uint32_t i = nr; nr && i < all; i++) {
		if (compare_rows(&rows[i], &rows[0], &sort) > 0)
			continue;
		swap_rows(&rows[i], &rows[0]);
		sink(rows, nr, 0, &sort);
	}
	qsort_r(rows, nr, sizeof(*rows), compare_rows, &sort);
}

static double percent(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : 0;
}

static void row_init(struct batch_row *row, const struct profile *p, const struct fold_row *from,
		     const struct fold_functions *all, const uint32_t *lines, const double *ratios)
{
	bool weighted = all->weight > 0;
	uint32_t process = from->task < p->nr_tasks ? p->tasks[from->task].process
						    : p->nr_processes;

	row->function = &p->functions[from->function];
	row->comm = process < p->nr_processes ? p->processes[process].comm : TEXT("?");
	row->line = lines[from->function] < p->nr_lines ? &p->lines[lines[from->function]] : NULL;
	row->self = from->self;
	row->total = from->total;
	row->self_pct = weighted ? percent(from->self_weight, all->weight)
				 : percent(from->self, all->count);
	row->total_pct = weighted ? percent(from->total_weight, all->weight)
				  : percent(from->total, all->count);
	for (uint32_t i = 0; i < RATIOS_MAX; i++)
		row->ratios[i] = ratios ? ratios[from->function * RATIOS_MAX + i] : NAN;
}

static const struct fold_filter all_samples = { .process = UINT32_MAX, .task = UINT32_MAX };

static int table_init(struct batch_table *table, const struct profile *p, uint32_t event,
		      const struct batch_config *config, const struct match *filter,
		      const double *ratios)
{
	struct fold_filter what = config->scope ? *config->scope : all_samples;
	struct fold_functions all;
	uint32_t nr = 0, *lines;
	int code;

	table->latency = config->latency && p->latency == event + 1;
	if (!what.hide_idle)
		what.hide_idle = PROFILE_IDLE_KTHREAD;
	if (what.also && event != what.event)
		what.also = 0;
	table->with_waits = what.also;
	what.event = table->latency ? PROFILE_LATENCY : event;
	code = fold_functions(p, &what, &all);
	if (code)
		return code;
	table->rows = calloc(all.nr_rows ? all.nr_rows : 1, sizeof(*table->rows));
	lines = calloc(p->nr_functions + 1ULL, sizeof(*lines));
	if (!table->rows || !lines || fold_all_lines(p, &what, lines)) {
		free(lines);
		free(table->rows);
		fold_functions_fini(&all);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < all.nr_rows; i++)
		if (passes(config, filter, p, &p->functions[all.rows[i].function]))
			row_init(&table->rows[nr++], p, &all.rows[i], &all, lines, ratios);
	free(lines);
	assert(nr <= all.nr_rows);
	table->event = event;
	table->count = all.count;
	table->seconds = all.weight / 1e9;
	table->nr_matching = nr;
	table->nr_rows = config->rows ? MIN(nr, config->rows) : nr;
	sort_rows(table->rows, nr, table->nr_rows, config->sort);
	fold_functions_fini(&all);
	return 0;
}

static void tick_fini(struct batch_tick *tick)
{
	for (uint32_t i = 0; i < tick->nr_tables; i++)
		free(tick->tables[i].rows);
	tick->nr_tables = 0;
}

/* Make the rows of a profile. Return 0 or -ENOMEM. Free with tick_fini(). */
static int tick_init(struct batch_tick *tick, const struct profile *p,
		     const struct batch_config *config)
{
	double *ratios = NULL;
	struct match filter;
	int code = 0;

	memset(tick, 0, sizeof(*tick));
	tick->profile = p;
	tick->pushed = config->pushed;
	tick->ascii = config->ascii;
	tick->only = config->only;
	tick->range = config->range;
	tick->nr_ratios = ratios_find(p->events, p->nr_events, tick->ratios);
	if (tick->nr_ratios)
		ratios = calloc((p->nr_functions + 1ULL) * RATIOS_MAX, sizeof(*ratios));
	if (ratios)
		ratios_fold(p, config->scope ? config->scope : &all_samples, tick->ratios,
			    tick->nr_ratios, ratios);
	match_init(&filter);
	if (config->filter)
		match_set(&filter, config->filter);
	for (uint32_t i = 0; i < MIN(p->nr_events, EVENTS_MAX) && !code; i++) {
		code = table_init(&tick->tables[i], p, i, config, &filter, ratios);
		if (!code)
			tick->nr_tables++;
	}
	match_fini(&filter);
	free(ratios);
	if (code)
		tick_fini(tick);
	return code;
}

/* Return the columns of the terminal that @out is; 0: it is none, or does not know. */
static unsigned int terminal_cols(FILE *out)
{
	struct winsize size = { 0 };

	return ioctl(fileno(out), TIOCGWINSZ, &size) ? 0 : size.ws_col;
}

int batch_print(FILE *out, const struct profile *p, const struct batch_config *config)
{
	struct batch_tick tick;
	int code = tick_init(&tick, p, config);

	if (code)
		return code;
	tick.cols = terminal_cols(out);
	code = config->sink(out, &tick);
	/* Flush whole ticks, so that a reader of a pipe gets each without delay. */
	if (fflush(out) && !code)
		code = -errno;
	tick_fini(&tick);
	return code;
}
