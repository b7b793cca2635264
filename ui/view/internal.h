/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of ui/view/, and by tests; no other room includes it. */
#ifndef UI_VIEW_INTERNAL_H
#define UI_VIEW_INTERNAL_H

#include "ui/draw/draw.h"
#include "ui/fold/fold.h"
#include "ui/key/key.h"
#include "ui/text/text.h"
#include "ui/view/view.h"

struct flame_box;
struct fold_filter;
struct folds_tree;
struct foot;
struct list;
struct profile;
struct row;
struct ui_state;
struct view;
struct view_field;

/*
 * Layout of a flame graph. Pure; any thread.
 *
 * Both ends of a box are rounded from the exact sums: no width is off by more
 * than one cell, no boxes of a level overlap, no box exceeds its parent.
 *
 * Children narrower than a cell are one box at the right end of their parent: the rest. Frames
 * that all samples share, below the zoomed node, are one level: the cut. On a low screen so are
 * frames that all samples of the first of them share.
 *
 * A node that is left out leaves a gap at the right of its siblings: all others are as wide as with
 * it. The light nodes that the tree only sums are left out with it: their names are not known.
 */

/* The part in sight: of the node @zoom and all below it. */
struct flame_part {
	uint32_t zoom;
	double left, width; /* of the node's width: 0 and 1 are the whole node */
	bool uncut;	    /* show all frames */
	bool low;	    /* few lines: cut chains of frames everywhere */
	const bool *keep;   /* borrowed: by node, false: left out; NULL: show all nodes */
};

/* Draw one line "Label  value", cut at the right. */
void foot_line(struct foot *f, struct safe_text label, struct safe_text value);
/* The same, broken into lines. @text: clean. */
void foot_text(struct foot *f, struct safe_text label, const char *text);

/* Return a thread's name for rows: folded if that is on. */
struct safe_text process_rows_comm(const struct ui_state *st, struct safe_text comm,
				   char buf[static FORMAT_MAX * 2]);

/*
 * Processes as a tree, and rows in that order. Pure; any thread.
 *
 * Processes are numbered as in a profile, followed by its ancestors.
 */

struct process_tree {
	uint32_t *parents; /* of each; UINT32_MAX: unknown */
	uint32_t nr;
};

/* Code shared by the call tree and the flame graph. Runs on: the main thread. */

/* Turn the tree upside down (ACT_INVERT), or fold its recursion (ACT_FOLD_RECURSION). */
void callers_stacks_turn(struct ui_state *st, enum action action);
/*
 * Mark the nodes that pass the filter of @list: matches and their ancestors. Return an array to
 * free, by node; NULL: all pass, or there is no memory.
 */
bool *callers_stacks_keep_found(const struct ui_state *st, const struct list *list,
				const struct folds_tree *t);
/*
 * Return the share of samples with a match on their stack, in sight or not: the topmost match of
 * each path counts.
 */
double callers_stacks_found_share(const struct ui_state *st, const struct folds_tree *t,
				  const struct match *m);
/* Write the options that are on: a view's options(). */
size_t callers_stacks_options(const struct ui_state *st, char *buf, size_t size);

/* Draw in at most @rows lines why there are no rows, and the fix. */
void table_draw_empty(const struct ui_state *st, struct canvas *c, unsigned int row,
		      unsigned int rows);

/*
 * Where waits are shown: the time of the shown tasks, in task-seconds per second (1.00 is one
 * thread all the time), and its kinds. Runs on: the main thread.
 */

/* Return whether waiting time is shown, and measured. */
static inline bool times_on(const struct ui_state *st)
{
	return st->shown && st->shown->stack_waits && ui_state_waits(st, st->shown);
}

/* Return the colour of a kind of time. */
static inline enum theme_role times_role(enum wait_kind kind)
{
	switch (kind) {
	case WAIT_RUNNING:
		return ROLE_TIME_CPU;
	case WAIT_QUEUE:
		return ROLE_TIME_QUEUE;
	case WAIT_LOCK:
		return ROLE_TIME_LOCK;
	case WAIT_DISK:
		return ROLE_TIME_DISK;
	case WAIT_PIPE:
		return ROLE_TIME_PIPE;
	case WAIT_SLEEP:
		return ROLE_TIME_SLEEP;
	case WAIT_CONDITION:
	case WAIT_POLL:
	case WAIT_KTHREAD:
		return ROLE_TIME_EVENT;
	default:
		return ROLE_TIME_OTHER;
	}
}

/*
 * Match rows or nodes of two profiles: by id; else by name, so that a rebuilt file and a restarted
 * process compare with their predecessors. Pure; any thread.
 */

#define BASELINE_NONE UINT32_MAX

/* Hash a name. */
uint64_t baseline_match_text(struct safe_text text);
/* Hash a function's name with that of its module. */
uint64_t baseline_match_name(const struct profile *p, uint32_t function);

extern const struct view view_functions, view_processes, view_help;
extern const struct view view_tree, view_flame, view_callers;
extern const struct view view_branches, view_memory;

/* The same as a filter. Return false if there are none. */
bool view_filter(const struct ui_state *st, struct fold_filter *f);
/* Drawing that several views share. */
void view_draw_percent(struct canvas *c, struct view_field at, double share);
void view_draw_bar(const struct ui_state *st, struct canvas *c, struct view_field at, double share,
		   enum theme_role role);

/*
 * The baseline: the profile shown when B was pressed, kept whole. Each view builds the rows of the
 * baseline like its shown rows, with the same scope. Runs on: the main thread.
 */

/* Compare the rows of @list, as the view built them, with the baseline. */
void baseline_compare(struct ui_state *st, const struct view *v, struct list *list);

/*
 * Columns that several views have: their cells, orders and places in a table.
 * The main thread; pure.
 */

int table_by_self(const struct ui_state *st, const struct row *a, const struct row *b);
int table_by_total(const struct ui_state *st, const struct row *a, const struct row *b);
int table_by_samples(const struct ui_state *st, const struct row *a, const struct row *b);
/* Compare by rise; unknown changes are between rise and fall. */
int table_by_change(const struct ui_state *st, const struct row *a, const struct row *b);
/* Draw the row's total as "12.3%", or as "12.3"; or any share. */
void table_total(const struct ui_state *st, const struct row *row, struct canvas *c,
		 struct view_field at);
void table_plain(const struct ui_state *st, const struct row *row, struct canvas *c,
		 struct view_field at);
void table_share(struct canvas *c, struct view_field at, double share);
void table_samples(const struct ui_state *st, const struct row *row, struct canvas *c,
		   struct view_field at);
void table_change(const struct ui_state *st, const struct row *row, struct canvas *c,
		  struct view_field at);
/* Draw a property of the row's function, if it has one. */
void table_kind(const struct ui_state *st, const struct row *row, struct canvas *c,
		struct view_field at);
void table_module(const struct ui_state *st, const struct row *row, struct canvas *c,
		  struct view_field at);
/* By the CPU time that is shown, of clocks of the kernel; without clocks by the share. */
int table_by_cpu(const struct ui_state *st, const struct row *a, const struct row *b);
/* Format CPU time over the window as percent of one CPU, by clocks of the kernel where they are
 * known; else as table_time(). */
struct safe_text table_cpu(const struct ui_state *st, double cpu_ns, double weight,
			   char buf[static FORMAT_MAX]);
/* Return whether percents of a CPU are by samples: of a recording. */
bool table_by_samples_alone(const struct ui_state *st);
/* Format a row's change, "+1.2!", "new!", "" if none; and return its colour. */
struct safe_text table_change_text(const struct row *row, char buf[static FORMAT_MAX]);
struct style table_change_style(const struct row *row);

/* The column of changes against a baseline; hidden without one. */
#define TABLE_CHANGE(what)                                                                         \
	{                                                                                          \
		.title = { "\u0394", 2, 1 }, .name = "change", .ascii = TEXT("+/-"),               \
		.help = "change of " what " against the baseline (B)", .width = 6, .right = true,  \
		.when = baseline_is_on, .compare = table_by_change, .draw = table_change           \
	}
#define TABLE_SAMPLES(cells, least)                                                                \
	{                                                                                          \
		.title = TEXT("SAMPLES"), .help = "samples", .width = (cells), .from = (least),    \
		.right = true, .share = COLUMN_SAMPLES, .compare = table_by_samples,               \
		.draw = table_samples                                                              \
	}

/*
 * A sorted order of rows that noise does not move. Runs on: the main thread.
 *
 * The first rows have slots. A row keeps its slot while chance may explain how it differs from its
 * neighbours, in both directions (95 %). All else is in order at once:
 *  - no row is significantly larger than the row above it, nor than the first row (95 %);
 *  - no row is larger than any row above it beyond 2.75 standard errors. That is more than for
 *    neighbours because of many equal rows some pair always differs by 2.
 * A row that must move changes places with another one; the rows between them do not move.
 */

struct order_sibling {
	uint64_t id; /* of its row */
	double share, count;
};

#define ORDER_SIBLINGS FOLDS_SIBLINGS /* more are in the order of their shares */

/*
 * Siblings of a tree of rows: write to @order the indices of @nr siblings, the largest first, but
 * in the order of the rows before where noise alone may have changed it. @from_below: the rows are
 * smallest first.
 */
void order_siblings(const struct ui_state *st, const struct list *list,
		    const struct order_sibling *siblings, uint32_t nr, bool from_below,
		    uint32_t *order);
/* Record the built rows for that; before, order_begin() forgets rows of another scope. @mode: of
 * the view, as other rows have other orders. */
void order_begin(const struct ui_state *st, struct list *list, uint64_t mode);
void order_end(struct list *list);

#endif
