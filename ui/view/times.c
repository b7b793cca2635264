// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Time of tasks by kind. The main thread; reads the state.
 */
#include "ui/view/times.h"

#include <string.h>

#include "ui/text/format.h"
#include "ui/view/folds.h"

#define KINDS_SHOWN 4

bool times_on(const struct ui_state *st)
{
	return st->shown && st->shown->stack_waits && ui_state_waits(st, st->shown);
}

/* Sum the time of the shown tasks by enum wait_kind. Running time counts where a clock is shown. */
static double sum_kinds(const struct ui_state *st, double sums[static WAIT_NR])
{
	const double(*times)[WAIT_NR] = times_on(st) ? folds_times(st) : NULL;
	struct fold_filter f;
	double all = 0;

	for (int k = 0; k < WAIT_NR; k++)
		sums[k] = 0;
	if (!times || !folds_filter(st, &f))
		return 0;
	for (uint32_t i = 0; i < st->shown->nr_tasks; i++)
		for (int k = 0; k < WAIT_NR && fold_passes_task(st->shown, &f, i); k++)
			sums[k] += times[i][k];
	if (!ui_state_also(st, st->shown))
		sums[WAIT_RUNNING] = 0;
	for (int k = WAIT_RUNNING; k < WAIT_NR; k++)
		all += sums[k];
	return all;
}

bool times_draw_total(const struct ui_state *st, struct pen *pen, unsigned int gap)
{
	double sums[WAIT_NR], all = sum_kinds(st, sums);
	char buf[FORMAT_MAX], text[64];

	if (!times_on(st) || !st->shown->window_ns)
		return false;
	return pen_value(pen, gap, ui_state_also(st, st->shown) ? TEXT("Time") : TEXT("Waiting"),
			 text_format(text, sizeof(text), "%s task-s/s",
				     format_tasks(buf, all / (double)st->shown->window_ns).str),
			 ROLE_VALUE);
}

/* Return the name of the kind without its brackets. */
static struct safe_text name_of(enum wait_kind kind, char buf[static 32])
{
	const char *name = kind == WAIT_RUNNING ? "[CPU]" : wait_kind_name(kind);
	size_t size = strlen(name);

	return text_format(buf, 32, "%.*s", (int)MAX(size, 2u) - 2, name + 1);
}

void times_draw_kinds(const struct ui_state *st, struct pen *pen, unsigned int gap)
{
	double sums[WAIT_NR], all = sum_kinds(st, sums);
	char buf[FORMAT_MAX], name[32];

	for (int n = 0; n < KINDS_SHOWN; n++) {
		int best = 0;

		for (int k = WAIT_RUNNING; k < WAIT_NR; k++)
			if (sums[k] > sums[best])
				best = k;
		if (!(sums[best] > 0.005 * all) ||
		    !pen_value(pen, n ? 2 : gap, name_of((enum wait_kind)best, name),
			       format_share(buf, sums[best] / all), ROLE_VALUE))
			return;
		sums[best] = 0;
	}
}
