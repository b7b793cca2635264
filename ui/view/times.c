// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Time of tasks by kind. The main thread; reads the state.
 */
#include "ui/view/times.h"

#include <stdio.h>
#include <string.h>

#include "ui/text/format.h"
#include "ui/fold/fold.h"
#include "ui/view/view.h"

#define KINDS_SHOWN 4

/* The parts of a bar, in the order of their roles. */
enum { NR_PARTS = ROLE_TIME_OTHER - ROLE_TIME_CPU + 1 };

static const struct {
	char letter[2];
	const char *name;
} parts[NR_PARTS] = {
	{ "C", "CPU" },		 { "R", "run queue" }, { "L", "lock" },	 { "D", "disk" },
	{ "P", "pipe, socket" }, { "S", "sleep" },     { "E", "event" }, { "O", "other" },
};

static int part_of(enum wait_kind kind)
{
	switch (kind) {
	case WAIT_RUNNING:
		return ROLE_TIME_CPU - ROLE_TIME_CPU;
	case WAIT_QUEUE:
		return ROLE_TIME_QUEUE - ROLE_TIME_CPU;
	case WAIT_LOCK:
		return ROLE_TIME_LOCK - ROLE_TIME_CPU;
	case WAIT_DISK:
		return ROLE_TIME_DISK - ROLE_TIME_CPU;
	case WAIT_PIPE:
		return ROLE_TIME_PIPE - ROLE_TIME_CPU;
	case WAIT_SLEEP:
		return ROLE_TIME_SLEEP - ROLE_TIME_CPU;
	case WAIT_CONDITION:
	case WAIT_POLL:
	case WAIT_KTHREAD:
		return ROLE_TIME_EVENT - ROLE_TIME_CPU;
	default:
		return ROLE_TIME_OTHER - ROLE_TIME_CPU;
	}
}

/* Sum the time of each part. Return the sum of all. */
static double sum_parts(const float *ns, double sums[static NR_PARTS])
{
	double all = 0;

	for (int i = 0; i < NR_PARTS; i++)
		sums[i] = 0;
	for (int k = WAIT_RUNNING; k < WAIT_NR; k++) {
		sums[part_of((enum wait_kind)k)] += (double)ns[k];
		all += (double)ns[k];
	}
	return all;
}

void times_draw_bar(const float *ns, struct canvas *c, unsigned int row, unsigned int col,
		    unsigned int cols)
{
	double sums[NR_PARTS], all = sum_parts(ns, sums), sum = 0;
	unsigned int at = 0;

	for (int i = 0; i < NR_PARTS && all > 0; i++) {
		/* Rounded together, so that the last part ends at the last cell. */
		unsigned int end = (unsigned int)((sum += sums[i]) / all * cols + 0.5);
		struct style style = { (uint8_t)(ROLE_TIME_CPU + i), 0 };

		for (unsigned int n = at; n < MIN(end, cols); n++)
			canvas_text(c, row, col + n, 1,
				    n == at ? (struct safe_text){ parts[i].letter, 1, 1 }
					    : TEXT(" "),
				    style);
		at = MAX(at, MIN(end, cols));
	}
}

struct safe_text times_legend(const struct ui_state *st, const float *ns, char *buf, size_t size)
{
	double sums[NR_PARTS];
	char number[FORMAT_MAX];
	size_t n = 0;

	*buf = '\0';
	sum_parts(ns, sums);
	for (int i = 0; i < NR_PARTS && st->shown->window_ns && n < size; i++)
		if (sums[i] / (double)st->shown->window_ns >= 0.005)
			n += (size_t)snprintf(
				buf + n, size - n, "%s%s %s %s", n ? "  " : "", parts[i].letter,
				parts[i].name,
				format_tasks(number, sums[i] / (double)st->shown->window_ns).str);
	if (ns[WAIT_NO] > 0 && n < size)
		n += (size_t)snprintf(buf + n, size - n, "  idle %s hidden",
				      format_tasks(number, (double)ns[WAIT_NO] /
								   (double)st->shown->window_ns)
					      .str);
	n = MIN(n, size - 1);
	return (struct safe_text){ buf, (uint16_t)n, (uint16_t)n };
}

enum theme_role times_role(struct safe_text name)
{
	for (int k = WAIT_RUNNING; k < WAIT_NR; k++)
		if (!strcmp(name.str, wait_kind_name((enum wait_kind)k)))
			return (enum theme_role)(ROLE_TIME_CPU + part_of((enum wait_kind)k));
	return ROLE_TIME_OTHER;
}

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
	if (!times || !view_filter(st, &f))
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

double times_hidden(const struct ui_state *st)
{
	double sums[WAIT_NR];

	if (!times_on(st) || !st->shown->window_ns || !ui_state_hides_idle(st, st->shown))
		return 0;
	sum_kinds(st, sums);
	return sums[WAIT_NO] / (double)st->shown->window_ns;
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
		int best = WAIT_RUNNING;

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
