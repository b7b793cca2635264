// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The accesses to memory of a recording, by function and the level that had the data. The main
 * thread; reads the state.
 */
#include "ui/view/view.h"

#include <errno.h>
#include <string.h>

#include "ui/text/format.h"
#include "ui/view/common_columns.h"

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

enum { SHARE, COUNT, WEIGHT, LATENCY, OP, LEVEL, NAME };

static const struct view_column columns[] = {
	[SHARE] = { .title = TEXT("ACC%"),
		    .name = "accesses",
		    .help = "share of the sampled accesses to memory",
		    .width = 7,
		    .right = true,
		    .compare = common_by_total,
		    .draw = common_total },
	[COUNT] = COMMON_SAMPLES(9, 70),
	[WEIGHT] = { .title = TEXT("CYCLE%"),
		     .help = "share of the cycles that all accesses took",
		     .width = 7,
		     .right = true,
		     .compare = common_by_self,
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

static int build(const struct ui_state *st, struct list *list)
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

static bool finds(const struct ui_state *st, const struct row *row, const struct match *m)
{
	return match_finds(m, name(st, row, NULL, 0));
}

static uint32_t function(const struct ui_state *st, const struct row *row)
{
	return access_of(st, row)->function;
}

const struct view view_memory = {
	.title = TEXT("Memory"),
	.context = CTX_LIST,
	.columns = columns,
	.nr_columns = ARRAY_SIZE(columns),
	.sorts = &(const struct view_sorts){ SHARE, WEIGHT, NAME },
	.build = build,
	.options = common_whole,
	.name = name,
	.finds = finds,
	.function = function,
	.empty = TEXT("no accesses to memory: 'perf mem record' records them, --replay FILE shows "
		      "them"),
};
