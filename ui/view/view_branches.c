// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The hottest branches of a recording with branch stacks, by the addresses of both ends. The main
 * thread; reads the state.
 */
#include "ui/view/view.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "ui/text/format.h"
#include "ui/view/common_columns.h"

static const struct profile_branch *branch_of(const struct ui_state *st, const struct row *row)
{
	return &st->shown->branches[row->index];
}

/* Return the share of mispredicted ones; below 0: not recorded. */
static double missed(const struct profile_branch *b)
{
	uint64_t known = b->mispredicted + b->predicted;

	return known ? (double)b->mispredicted / (double)known : -1;
}

static double cycles(const struct profile_branch *b)
{
	return (double)b->cycles / (double)b->count;
}

static int by_missed(const struct ui_state *st, const struct row *a, const struct row *b)
{
	return COMPARE(missed(branch_of(st, a)), missed(branch_of(st, b)));
}

static int by_cycles(const struct ui_state *st, const struct row *a, const struct row *b)
{
	return COMPARE(cycles(branch_of(st, a)), cycles(branch_of(st, b)));
}

static const char *function_name(const struct ui_state *st, uint32_t function)
{
	return st->shown->functions[function].name.str;
}

static int by_from(const struct ui_state *st, const struct row *a, const struct row *b)
{
	return strcasecmp(function_name(st, branch_of(st, a)->from),
			  function_name(st, branch_of(st, b)->from));
}

static int by_to(const struct ui_state *st, const struct row *a, const struct row *b)
{
	return strcasecmp(function_name(st, branch_of(st, a)->to),
			  function_name(st, branch_of(st, b)->to));
}

static void draw_missed(const struct ui_state *st, const struct row *row, struct canvas *c,
			struct view_field at)
{
	double share = missed(branch_of(st, row));

	if (share < 0)
		canvas_right(c, at.row, at.col, at.cols, TEXT("-"), (struct style){ ROLE_DIM, 0 });
	else
		view_draw_percent(c, at, share);
}

static void draw_cycles(const struct ui_state *st, const struct row *row, struct canvas *c,
			struct view_field at)
{
	char buf[FORMAT_MAX];

	canvas_right(c, at.row, at.col, at.cols,
		     text_format(buf, sizeof(buf), "%.1f", cycles(branch_of(st, row))),
		     (struct style){ ROLE_NORMAL, 0 });
}

/* "function+0x1c" */
static struct safe_text end_text(const struct ui_state *st, uint32_t function, uint64_t offset,
				 char *buf, size_t size)
{
	if (offset == UINT64_MAX)
		return st->shown->functions[function].name;
	return text_format(buf, size, "%s+0x%" PRIx64, function_name(st, function), offset);
}

static void draw_end(const struct ui_state *st, struct canvas *c, struct view_field at,
		     uint32_t function, uint64_t offset)
{
	char buf[TEXT_MAX];

	canvas_elide(c, at.row, at.col, at.cols, end_text(st, function, offset, buf, sizeof(buf)),
		     (struct style){ ROLE_VALUE, 0 });
}

static void draw_from(const struct ui_state *st, const struct row *row, struct canvas *c,
		      struct view_field at)
{
	const struct profile_branch *b = branch_of(st, row);

	draw_end(st, c, at, b->from, b->from_offset);
}

static void draw_to(const struct ui_state *st, const struct row *row, struct canvas *c,
		    struct view_field at)
{
	const struct profile_branch *b = branch_of(st, row);

	draw_end(st, c, at, b->to, b->to_offset);
}

enum { SHARE, COUNT, MISSED, CYCLES, FROM, TO };

static const struct view_column columns[] = {
	[SHARE] = { .title = TEXT("TAKEN%"),
		    .help = "share of all taken branches",
		    .width = 7,
		    .right = true,
		    .compare = common_by_total,
		    .draw = common_total },
	[COUNT] = { .title = TEXT("COUNT"),
		    .help = "times it was taken, in the recorded branch stacks",
		    .width = 9,
		    .from = 60,
		    .right = true,
		    .compare = common_by_samples,
		    .draw = common_samples },
	[MISSED] = { .title = TEXT("MISS%"),
		     .help = "share that was mispredicted",
		     .width = 7,
		     .right = true,
		     .compare = by_missed,
		     .draw = draw_missed },
	[CYCLES] = { .title = TEXT("CYCLES"),
		     .help = "cycles since the branch before, on average",
		     .width = 8,
		     .from = 80,
		     .right = true,
		     .compare = by_cycles,
		     .draw = draw_cycles },
	[FROM] = { .title = TEXT("FROM"),
		   .help = "the branch: function and offset",
		   .width = 24,
		   .wide = 36,
		   .ascending = true,
		   .compare = by_from,
		   .draw = draw_from },
	[TO] = { .title = TEXT("TO"),
		 .help = "its target",
		 .ascending = true,
		 .compare = by_to,
		 .draw = draw_to },
};

static int build(const struct ui_state *st, struct list *list)
{
	const struct profile *p = st->shown;

	for (uint32_t i = 0; p && i < p->nr_branches; i++) {
		struct row *row = list_add(list);

		if (!row)
			return -ENOMEM;
		row->id = i;
		row->index = i;
		row->count = (double)p->branches[i].count;
		row->total = row->self = row->count / p->branches_all;
	}
	list->count = p ? p->branches_all : 0;
	return 0;
}

static bool finds(const struct ui_state *st, const struct row *row, const struct match *m)
{
	const struct profile_branch *b = branch_of(st, row);

	return match_finds(m, st->shown->functions[b->from].name) ||
	       match_finds(m, st->shown->functions[b->to].name);
}

static uint32_t function(const struct ui_state *st, const struct row *row)
{
	return branch_of(st, row)->from;
}

const struct view view_branches = {
	.title = TEXT("Branches"),
	.context = CTX_LIST,
	.unit = "branches",
	.columns = columns,
	.nr_columns = ARRAY_SIZE(columns),
	.sorts = &(const struct view_sorts){ SHARE, SHARE, FROM },
	.build = build,
	.options = common_whole,
	.finds = finds,
	.function = function,
	.empty = TEXT("no branch stacks: 'perf record -b' records them, --replay FILE shows them"),
};
