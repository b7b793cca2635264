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
/* What rose most first; what is not known stands between rise and fall. */
int common_by_change(const struct ui_state *st, const struct row *a, const struct row *b);

/* The row's total as "12.3%", or plain as "12.3"; the same of any share. */
void common_total(const struct ui_state *st, const struct row *row, struct canvas *c,
		  struct view_field at);
void common_plain(const struct ui_state *st, const struct row *row, struct canvas *c,
		  struct view_field at);
void common_share(struct canvas *c, struct view_field at, double share);
void common_samples(const struct ui_state *st, const struct row *row, struct canvas *c,
		    struct view_field at);
void common_change(const struct ui_state *st, const struct row *row, struct canvas *c,
		   struct view_field at);
/* Of the function that the row is about, where there is one. */
void common_kind(const struct ui_state *st, const struct row *row, struct canvas *c,
		 struct view_field at);
void common_module(const struct ui_state *st, const struct row *row, struct canvas *c,
		   struct view_field at);

/*
 * Weight over the window as percent of one CPU; "-" where that is not known:
 * only events that count time can tell, their weight is nanoseconds of running.
 */
struct safe_text common_cpu(const struct ui_state *st, double weight, char buf[static FORMAT_MAX]);

/* A row's change in words, "+1.2!", "new!", "" where nothing happens; and its colour. */
struct safe_text common_change_text(const struct row *row, char buf[static FORMAT_MAX]);
struct style common_change_style(const struct row *row);

/* "Δ", against the baseline: there is no such column without one. */
#define COMMON_CHANGE(what)                                                                        \
	{                                                                                          \
		.title = { "\u0394", 2, 1 }, .name = "change", .ascii = TEXT("+/-"),               \
		.help = "change of " what " against the baseline (B)", .width = 6, .right = true,  \
		.when = baseline_is_on, .compare = common_by_change, .draw = common_change         \
	}
#define COMMON_SAMPLES(cells, least)                                                               \
	{                                                                                          \
		.title = TEXT("SAMPLES"), .help = "samples", .width = (cells), .from = (least),    \
		.right = true, .compare = common_by_samples, .draw = common_samples                \
	}

#endif
