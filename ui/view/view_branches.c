// SPDX-License-Identifier: GPL-2.0-or-later
/* Taken branches, and accesses to memory, of a recording. */
#include "ui/view/internal.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "sampler/profile/profile.h"
#include "sampler/ring/ring.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "ui/draw/draw.h"
#include "ui/key/key.h"
#include "ui/state/state.h"
#include "ui/text/text.h"

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
	assert(function < st->shown->nr_functions);
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
				 char buf[static TEXT_MAX])
{
	char brief[TEXT_MAX];
	struct safe_text name;

	assert(function < st->shown->nr_functions);
	name = ui_state_name(st, brief, st->shown->functions[function].name);
	if (offset == UINT64_MAX)
		return text_sanitise(buf, TEXT_MAX, name.str, name.size);
	return text_format(buf, TEXT_MAX, "%s+0x%" PRIx64, name.str, offset);
}

static void draw_end(const struct ui_state *st, struct canvas *c, struct view_field at,
		     uint32_t function, uint64_t offset)
{
	char buf[TEXT_MAX];

	canvas_elide(c, at.row, at.col, at.cols, end_text(st, function, offset, buf),
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
		    .compare = table_by_total,
		    .draw = table_total },
	[COUNT] = { .title = TEXT("COUNT"),
		    .help = "times it was taken, in the recorded branch stacks",
		    .width = 9,
		    .from = 60,
		    .right = true,
		    .compare = table_by_samples,
		    .draw = table_samples },
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

/*
 * As view->options: write that the counts, which have neither process nor time, are of all of them.
 * Nothing if the other views also show all.
 */
static size_t write_whole(const struct ui_state *st, char *buf, size_t size)
{
	const struct scope *s = &st->scope;
	bool part = s->drilled || scope_chooses(s);
	const char *of = part && st->rewind.on ? "  of all processes, of the whole time"
			 : part		       ? "  of all processes"
			 : st->rewind.on       ? "  of the whole time"
					       : "";

	assert(buf && size);
	return (size_t)snprintf(buf, size, "%s", of);
}

const struct view view_branches = {
	.title = TEXT("Branches"),
	.context = CTX_LIST,
	.unit = "branches",
	.columns = columns,
	.nr_columns = ARRAY_SIZE(columns),
	.sorts = &(const struct view_sorts){ SHARE, SHARE, FROM },
	.build = build,
	.options = write_whole,
	.finds = finds,
	.function = function,
	.empty = TEXT("no branch stacks: 'perf record -b' records them, --replay FILE shows them"),
};

/*
 * The accesses to memory of a recording, by function and the level that had the data. The main
 * thread; reads the state.
 */

static const struct profile_access *access_of(const struct ui_state *st, const struct row *row)
{
	return &st->shown->accesses[row->index];
}

static struct access_kind kind_of(const struct ui_state *st, const struct row *row)
{
	return profile_access_kind(access_of(st, row)->kind);
}

static double latency(const struct profile_access *a)
{
	return (double)a->latency / (double)a->count;
}

static int by_latency(const struct ui_state *st, const struct row *a, const struct row *b)
{
	return COMPARE(latency(access_of(st, a)), latency(access_of(st, b)));
}

static int by_level(const struct ui_state *st, const struct row *a, const struct row *b)
{
	return (int)kind_of(st, a).level - (int)kind_of(st, b).level;
}

static int by_op(const struct ui_state *st, const struct row *a, const struct row *b)
{
	return (int)kind_of(st, a).op - (int)kind_of(st, b).op;
}

static struct safe_text name(const struct ui_state *st, const struct row *row, char *buf,
			     size_t size)
{
	return st->shown->functions[access_of(st, row)->function].name;
}

static int by_name(const struct ui_state *st, const struct row *a, const struct row *b)
{
	return strcasecmp(name(st, a, NULL, 0).str, name(st, b, NULL, 0).str);
}

static void draw_latency(const struct ui_state *st, const struct row *row, struct canvas *c,
			 struct view_field at)
{
	char buf[FORMAT_MAX];

	canvas_right(c, at.row, at.col, at.cols,
		     text_format(buf, sizeof(buf), "%.0f", latency(access_of(st, row))),
		     (struct style){ ROLE_NORMAL, 0 });
}

static void draw_weight(const struct ui_state *st, const struct row *row, struct canvas *c,
			struct view_field at)
{
	view_draw_percent(c, at, row->self);
}

static void draw_op(const struct ui_state *st, const struct row *row, struct canvas *c,
		    struct view_field at)
{
	char buf[FORMAT_MAX];

	canvas_text(c, at.row, at.col, at.cols,
		    ui_state_clean(buf, sizeof(buf), access_op_name(kind_of(st, row).op)),
		    (struct style){ ROLE_NORMAL, 0 });
}

static void draw_level(const struct ui_state *st, const struct row *row, struct canvas *c,
		       struct view_field at)
{
	const struct access_kind kind = kind_of(st, row);
	char buf[64];

	canvas_elide(c, at.row, at.col, at.cols,
		     text_format(buf, sizeof(buf), "%s%s%s", access_level_name(kind.level),
				 kind.miss ? " miss" : "", kind.tlb_miss ? ", TLB miss" : ""),
		     (struct style){ ROLE_NORMAL, 0 });
}

static void draw_name(const struct ui_state *st, const struct row *row, struct canvas *c,
		      struct view_field at)
{
	canvas_elide(c, at.row, at.col, at.cols, name(st, row, NULL, 0),
		     (struct style){ ROLE_VALUE, 0 });
}

enum { VIEW_MEMORY_SHARE, VIEW_MEMORY_COUNT, WEIGHT, LATENCY, OP, LEVEL, NAME };

static const struct view_column view_memory_columns[] = {
	[VIEW_MEMORY_SHARE] = { .title = TEXT("ACC%"),
				.name = "accesses",
				.help = "share of the sampled accesses to memory",
				.width = 7,
				.right = true,
				.compare = table_by_total,
				.draw = table_total },
	[VIEW_MEMORY_COUNT] = TABLE_SAMPLES(9, 70),
	[WEIGHT] = { .title = TEXT("CYCLE%"),
		     .help = "share of the cycles that all accesses took",
		     .width = 7,
		     .right = true,
		     .compare = table_by_self,
		     .draw = draw_weight },
	[LATENCY] = { .title = TEXT("LATENCY"),
		      .help = "cycles of an access, on average",
		      .width = 8,
		      .right = true,
		      .compare = by_latency,
		      .draw = draw_latency },
	[OP] = { .title = TEXT("OP"),
		 .help = "load or store",
		 .width = 8,
		 .from = 60,
		 .ascending = true,
		 .compare = by_op,
		 .draw = draw_op },
	[LEVEL] = { .title = TEXT("LEVEL"),
		    .help = "the cache or memory that had the data",
		    .width = 14,
		    .wide = 24,
		    .compare = by_level,
		    .draw = draw_level },
	[NAME] = { .title = TEXT("FUNCTION"),
		   .help = "function",
		   .ascending = true,
		   .compare = by_name,
		   .draw = draw_name },
};

static int view_memory_build(const struct ui_state *st, struct list *list)
{
	const struct profile *p = st->shown;
	double cycles = 0;

	for (uint32_t i = 0; p && i < p->nr_accesses; i++)
		cycles += (double)p->accesses[i].latency;
	for (uint32_t i = 0; p && i < p->nr_accesses; i++) {
		struct row *row = list_add(list);

		if (!row)
			return -ENOMEM;
		row->id = (uint64_t)p->functions[p->accesses[i].function].id << 32 |
			  p->accesses[i].kind;
		row->index = i;
		row->count = (double)p->accesses[i].count;
		row->total = row->count / p->accesses_all;
		row->self = cycles > 0 ? (double)p->accesses[i].latency / cycles : 0;
	}
	list->count = p ? p->accesses_all : 0;
	return 0;
}

static bool view_memory_finds(const struct ui_state *st, const struct row *row,
			      const struct match *m)
{
	return match_finds(m, name(st, row, NULL, 0));
}

static uint32_t view_memory_function(const struct ui_state *st, const struct row *row)
{
	return access_of(st, row)->function;
}

const struct view view_memory = {
	.title = TEXT("Memory"),
	.context = CTX_LIST,
	.columns = view_memory_columns,
	.nr_columns = ARRAY_SIZE(view_memory_columns),
	.sorts = &(const struct view_sorts){ VIEW_MEMORY_SHARE, WEIGHT, NAME },
	.build = view_memory_build,
	.options = write_whole,
	.name = name,
	.finds = view_memory_finds,
	.function = view_memory_function,
	.empty = TEXT("no accesses to memory: 'perf mem record' records them, --replay FILE shows "
		      "them"),
};
