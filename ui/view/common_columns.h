/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Columns that several views have: their cells, orders and places in a table.
 * The main thread; pure.
 */
#ifndef UI_VIEW_COMMON_COLUMNS_H
#define UI_VIEW_COMMON_COLUMNS_H

#include "ui/view/view.h"

int common_by_self(const struct ui_state *st, const struct row *a, const struct row *b);
int common_by_total(const struct ui_state *st, const struct row *a, const struct row *b);
int common_by_samples(const struct ui_state *st, const struct row *a, const struct row *b);
/* Compare by rise; unknown changes are between rise and fall. */
int common_by_change(const struct ui_state *st, const struct row *a, const struct row *b);

/* Draw the row's total as "12.3%", or as "12.3"; or any share. */
void common_total(const struct ui_state *st, const struct row *row, struct canvas *c,
		  struct view_field at);
void common_plain(const struct ui_state *st, const struct row *row, struct canvas *c,
		  struct view_field at);
void common_share(struct canvas *c, struct view_field at, double share);
void common_samples(const struct ui_state *st, const struct row *row, struct canvas *c,
		    struct view_field at);
void common_change(const struct ui_state *st, const struct row *row, struct canvas *c,
		   struct view_field at);
/* Draw a property of the row's function, if it has one. */
void common_kind(const struct ui_state *st, const struct row *row, struct canvas *c,
		 struct view_field at);
void common_module(const struct ui_state *st, const struct row *row, struct canvas *c,
		   struct view_field at);

/*
 * Format the weight over the window: as percent of one CPU; where waits are shown, in task-seconds
 * per second. "-" unless the event counts time, as its weight is nanoseconds.
 */
struct safe_text common_time(const struct ui_state *st, double weight, char buf[static FORMAT_MAX]);
/* Format CPU time over the window as percent of one CPU, by clocks of the kernel where they are
 * known; else as common_time(). */
struct safe_text common_cpu(const struct ui_state *st, double cpu_ns, double weight,
			    char buf[static FORMAT_MAX]);
/* Return whether percents of a CPU are by samples: of a recording. */
bool common_by_samples_alone(const struct ui_state *st);

/*
 * As view->options: write that the counts, which have neither process nor time, are of all of them.
 * Nothing if the other views also show all.
 */
size_t common_whole(const struct ui_state *st, char *buf, size_t size);

/* Format a row's change, "+1.2!", "new!", "" if none; and return its colour. */
struct safe_text common_change_text(const struct row *row, char buf[static FORMAT_MAX]);
struct style common_change_style(const struct row *row);

/* The column of changes against a baseline; hidden without one. */
#define COMMON_CHANGE(what)                                                                        \
	{                                                                                          \
		.title = { "\u0394", 2, 1 }, .name = "change", .ascii = TEXT("+/-"),               \
		.help = "change of " what " against the baseline (B)", .width = 6, .right = true,  \
		.when = baseline_is_on, .compare = common_by_change, .draw = common_change         \
	}
#define COMMON_SAMPLES(cells, least)                                                               \
	{                                                                                          \
		.title = TEXT("SAMPLES"), .help = "samples", .width = (cells), .from = (least),    \
		.right = true, .share = COLUMN_SAMPLES, .compare = common_by_samples,              \
		.draw = common_samples                                                             \
	}

#endif
