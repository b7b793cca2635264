/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Columns that several views have: their cells, orders and places in a table.
 * The main thread; pure.
 */
#ifndef UI_CELLS_H
#define UI_CELLS_H

#include "ui/view.h"

int cells_by_self(const struct ui_state *st, const struct row *a, const struct row *b);
int cells_by_total(const struct ui_state *st, const struct row *a, const struct row *b);
int cells_by_samples(const struct ui_state *st, const struct row *a, const struct row *b);
/* What rose most first; what is not known stands between rise and fall. */
int cells_by_change(const struct ui_state *st, const struct row *a, const struct row *b);

/* The row's total as "12.3%", or plain as "12.3"; the same of any share. */
void cells_total(const struct ui_state *st, const struct row *row, struct canvas *c,
		 struct place at);
void cells_plain(const struct ui_state *st, const struct row *row, struct canvas *c,
		 struct place at);
void cells_share(struct canvas *c, struct place at, double share);
void cells_samples(const struct ui_state *st, const struct row *row, struct canvas *c,
		   struct place at);
void cells_change(const struct ui_state *st, const struct row *row, struct canvas *c,
		  struct place at);
/* Of the function that the row is about, where there is one. */
void cells_kind(const struct ui_state *st, const struct row *row, struct canvas *c,
		struct place at);
void cells_module(const struct ui_state *st, const struct row *row, struct canvas *c,
		  struct place at);

/*
 * Weight over the window as percent of one CPU; "-" where that is not known:
 * only events that count time can tell, their weight is nanoseconds of running.
 */
struct safe_text cells_cpu(const struct ui_state *st, double weight, char buf[static FORMAT_MAX]);

/* A row's change in words, "+1.2!", "new!", "" where nothing happens; and its colour. */
struct safe_text cells_change_text(const struct row *row, char buf[static FORMAT_MAX]);
struct style cells_change_style(const struct row *row);

/* "Δ", against the baseline: there is no such column without one. */
#define CELLS_CHANGE(what)                                                                 \
	{ .title = { "\u0394", 2, 1 }, .name = "change", .ascii = TEXT("+/-"),             \
	  .help = "change of " what " against the baseline (B)", .width = 6,               \
	  .right = true, .when = baseline_is_on, .compare = cells_by_change,               \
	  .draw = cells_change }
#define CELLS_SAMPLES(cells, least)                                                        \
	{ .title = TEXT("SAMPLES"), .help = "samples", .width = (cells), .from = (least),  \
	  .right = true, .compare = cells_by_samples, .draw = cells_samples }

#endif
