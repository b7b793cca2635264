// SPDX-License-Identifier: GPL-2.0-or-later
/* View 1: the hottest functions, of everything or of one process; its columns. */
#include "ui/view/internal.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sampler/count/count.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "ui/cli/cli.h"
#include "ui/draw/draw.h"
#include "ui/fold/fold.h"
#include "ui/key/key.h"
#include "ui/state/state.h"
#include "ui/text/text.h"

/*
 * The columns of the functions view. The main thread; pure.
 *
 * The columns of view 1: order, text and drawing of each. The main thread; reads the state only.
 */

#define FUNCTION_COLUMNS_NR 19

static const struct profile_function *function_of(const struct ui_state *st, const struct row *row)
{
	return &st->shown->functions[row->index];
}

static const struct profile_task *task_of(const struct ui_state *st, const struct row *row)
{
	return row->task < st->shown->nr_tasks ? &st->shown->tasks[row->task] : NULL;
}

/* Return whether COMM is the name of a thread, the one with most samples. */
static bool names_thread(const struct ui_state *st, const struct profile_task *task)
{
	return (st->scope.drilled && !st->scope.group[0]) ||
	       task->process >= st->shown->nr_processes;
}

static struct safe_text function_columns_comm(const struct ui_state *st, const struct row *row,
					      char buf[static FORMAT_MAX * 2])
{
	const struct profile_task *task = task_of(st, row);

	if (!task)
		return TEXT("");
	if (names_thread(st, task))
		return process_rows_comm(st, task->comm, buf);
	return process_rows_comm(st, st->shown->processes[task->process].comm, buf);
}

static int by_text(struct safe_text a, struct safe_text b)
{
	int d = strcasecmp(a.str, b.str);

	return d ? d : strcmp(a.str, b.str);
}

static int by_symbol(const struct ui_state *st, const struct row *a, const struct row *b)
{
	return by_text(function_of(st, a)->name, function_of(st, b)->name);
}

static int by_module(const struct ui_state *st, const struct row *a, const struct row *b)
{
	int d = by_text(function_of(st, a)->module, function_of(st, b)->module);

	/* Within a module the hottest is first, in both orders. */
	if (!d)
		d = table_by_self(st, b, a) * (st->lists[VIEW_FUNCTIONS].inverted ? -1 : 1);
	return d;
}

static int by_comm(const struct ui_state *st, const struct row *a, const struct row *b)
{
	char x[FORMAT_MAX * 2], y[FORMAT_MAX * 2];
	int d = by_text(function_columns_comm(st, a, x), function_columns_comm(st, b, y));

	if (!d)
		d = table_by_self(st, b, a) * (st->lists[VIEW_FUNCTIONS].inverted ? -1 : 1);
	return d;
}

static void draw_self(const struct ui_state *st, const struct row *row, struct canvas *c,
		      struct view_field at)
{
	view_draw_percent(c, at, row->self);
}

static void draw_bar(const struct ui_state *st, const struct row *row, struct canvas *c,
		     struct view_field at)
{
	/* Relative to the hottest row. */
	double top = st->lists[VIEW_FUNCTIONS].most;

	view_draw_bar(st, c, at, top > 0 ? row->self / top : 0,
		      row->self > 0.10	 ? ROLE_BAR_HOT
		      : row->self > 0.03 ? ROLE_BAR_WARM
					 : ROLE_BAR);
}

/* Of a moment in the past the minute before is not known. */
static bool has_trend(const struct ui_state *st)
{
	return !st->rewind.on;
}

/* Draw a minute in a few cells; a steady share is half high. */
static void draw_trend(const struct ui_state *st, const struct row *row, struct canvas *c,
		       struct view_field at)
{
	const struct trend *t = folds_trend(st);
	double means[32], most = 0, sum = 0;
	uint32_t id = (uint32_t)row->id, nr = 0, cells = MIN(at.cols, 32u);

	if (!has_trend(st) || !t)
		return;
	for (uint32_t i = 0; i < cells; i++) {
		double total = 0;
		uint32_t known = 0;

		for (uint32_t ago = (cells - 1 - i) * TREND_SECONDS / cells;
		     ago < (cells - i) * TREND_SECONDS / cells; ago++) {
			double share = trend_share(t, id, ago);

			total += share > 0 ? share : 0;
			known += share >= 0;
		}
		means[i] = known ? total / known : -1;
		nr += known > 0;
		sum += known ? means[i] : 0;
		most = MAX(most, means[i]);
	}
	most = nr ? MAX(most, 2 * sum / nr) : 0;
	for (uint32_t i = 0; i < cells && most > 0; i++)
		if (means[i] >= 0)
			canvas_text(c, at.row, at.col + i, 1,
				    st->glyphs->level[(int)(means[i] / most * 8 + 0.5)],
				    (struct style){ theme_kind(function_of(st, row)->kind), 0 });
}

static void draw_symbol(const struct ui_state *st, const struct row *row, struct canvas *c,
			struct view_field at)
{
	const struct list *list = &st->lists[VIEW_FUNCTIONS];
	const struct profile_function *f = function_of(st, row);
	bool found = match_active(&list->search) && !list->search.negate &&
		     match_finds_name(&list->search, f);
	struct style style = { theme_kind(f->kind), found ? CELL_UNDERLINE | CELL_BOLD : 0 };
	char buf[TEXT_MAX];

	canvas_elide(c, at.row, at.col, at.cols,
		     text_skip(ui_state_name(st, buf, f->name), st->scroll), style);
}

static void draw_comm(const struct ui_state *st, const struct row *row, struct canvas *c,
		      struct view_field at)
{
	char buf[FORMAT_MAX * 2];
	struct safe_text text = function_columns_comm(st, row, buf);

	bool thread = task_of(st, row) && names_thread(st, task_of(st, row));
	uint32_t nr = thread ? row->nr_tasks : row->nr;
	char more[16];
	int size = snprintf(more, sizeof(more), thread || row->mixed ? " +%u" : " x%u",
			    thread || row->mixed ? nr - 1 : nr);

	if (nr <= 1 || (unsigned int)size >= at.cols) {
		canvas_elide(c, at.row, at.col, at.cols, text, (struct style){ ROLE_NORMAL, 0 });
		return;
	}
	/* The number is never cut. */
	at.col += canvas_elide(c, at.row, at.col, at.cols - (unsigned int)size, text,
			       (struct style){ ROLE_NORMAL, 0 });
	canvas_text(c, at.row, at.col, (unsigned int)size,
		    (struct safe_text){ more, (uint16_t)size, (uint16_t)size },
		    (struct style){ ROLE_DIM, 0 });
}

/* Return the 95 % interval of a share. */
static void draw_interval(const struct ui_state *st, const struct row *row, struct canvas *c,
			  struct view_field at)
{
	/* Around the share by weight; its width is by the number of samples. A sum that decays has
	 * the noise of twice the number. */
	double all = st->lists[VIEW_FUNCTIONS].count * (st->shown->window == PROFILE_DECAY ? 2 : 1);
	struct interval i = interval_of(row->self * all, all);
	char buf[32];

	canvas_right(c, at.row, at.col, at.cols,
		     text_format(buf, sizeof(buf), "%.1f-%.1f", 100 * i.low, 100 * i.high),
		     (struct style){ ROLE_DIM, 0 });
}

static bool has_intervals(const struct ui_state *st)
{
	return st->set.intervals;
}

/* Report whether error bars leave room for columns that names need more. */
static bool has_room(const struct ui_state *st)
{
	return !st->set.intervals || st->cols >= 100;
}

/* Format the hottest line: "parser.cc:411". */
static struct safe_text line_of(const struct ui_state *st, const struct row *row, char *buf,
				size_t size)
{
	const struct profile_line *line = folds_line(st, row->index);
	const char *path, *slash;

	if (!line)
		return TEXT("");
	path = st->shown->files[line->file].str;
	slash = strrchr(path, '/');
	return text_format(buf, size, "%s:%u", slash ? slash + 1 : path, line->line);
}

static void draw_line(const struct ui_state *st, const struct row *row, struct canvas *c,
		      struct view_field at)
{
	char buf[TEXT_MAX];

	canvas_elide(c, at.row, at.col, at.cols, line_of(st, row, buf, sizeof(buf)),
		     (struct style){ ROLE_NORMAL, 0 });
}

/* Compare by file, then by line; functions without a line are last. */
static int by_line(const struct ui_state *st, const struct row *a, const struct row *b)
{
	const struct profile_line *x = folds_line(st, a->index), *y = folds_line(st, b->index);
	int d;

	if (!x || !y)
		return !x - !y;
	d = by_text(st->shown->files[x->file], st->shown->files[y->file]);
	return d ? d : COMPARE(x->line, y->line);
}

static bool has_lines(const struct ui_state *st)
{
	return st->shown && st->shown->has_source;
}

static int by_kind(const struct ui_state *st, const struct row *a, const struct row *b)
{
	return function_of(st, a)->kind - function_of(st, b)->kind;
}

/* Return the rise since the first known second of the last minute. */
static double rise_of(const struct ui_state *st, const struct row *row)
{
	const struct trend *t = folds_trend(st);
	uint64_t known;
	double before;

	if (st->rewind.on || !t)
		return 0;
	known = t->last >= t->first ? t->last - t->first : 0;
	before = trend_share(t, (uint32_t)row->id, (uint32_t)MIN(known, TREND_SECONDS - 1u));
	return row->self - MAX(before, 0);
}

static int by_trend(const struct ui_state *st, const struct row *a, const struct row *b)
{
	return COMPARE(rise_of(st, a), rise_of(st, b));
}

/* ---- other events: a column each ---- */

static bool has_other(const struct ui_state *st, uint32_t n)
{
	struct ratio_use uses[RATIOS_MAX];
	uint32_t event = folds_other(st, n);

	/* A ratio says more than the share of its events, which 'E' shows. */
	return event != UINT32_MAX && has_room(st) &&
	       !ratios_has_event(uses, ratios_find(st->shown->events, st->shown->nr_events, uses),
				 event);
}

static struct safe_text head_other(const struct ui_state *st, uint32_t n, char buf[static TEXT_MAX])
{
	uint32_t event = folds_other(st, n);

	return event == UINT32_MAX
		       ? TEXT("")
		       : ui_state_clean(buf, TEXT_MAX, st->shown->events[event].event.name);
}

static int by_other(uint32_t n, const struct row *a, const struct row *b)
{
	assert(n < ROW_EVENTS);
	return COMPARE(a->other[n], b->other[n]);
}

static void draw_other(uint32_t n, const struct row *row, struct canvas *c, struct view_field at)
{
	assert(n < ROW_EVENTS);
	if (row->other[n] >= 0)
		view_draw_percent(c, at, row->other[n]);
}

#define OTHER_COLUMN(n)                                                                            \
	static bool has_other##n(const struct ui_state *st)                                        \
	{                                                                                          \
		return has_other(st, n);                                                           \
	}                                                                                          \
	static struct safe_text head_other##n(const struct ui_state *st,                           \
					      char buf[static TEXT_MAX])                           \
	{                                                                                          \
		return head_other(st, n, buf);                                                     \
	}                                                                                          \
	static int by_other##n(const struct ui_state *st, const struct row *a,                     \
			       const struct row *b)                                                \
	{                                                                                          \
		return by_other(n, a, b);                                                          \
	}                                                                                          \
	static void draw_other##n(const struct ui_state *st, const struct row *row,                \
				  struct canvas *c, struct view_field at)                          \
	{                                                                                          \
		draw_other(n, row, c, at);                                                         \
	}

OTHER_COLUMN(0)

OTHER_COLUMN(1)

OTHER_COLUMN(2)

#undef OTHER_COLUMN

/* ---- ratios of events: a column each ---- */

static uint32_t ratios_of(const struct ui_state *st, struct ratio_use uses[static RATIOS_MAX])
{
	return st->shown ? ratios_find(st->shown->events, st->shown->nr_events, uses) : 0;
}

static bool has_ratio(const struct ui_state *st, uint32_t n)
{
	struct ratio_use uses[RATIOS_MAX];

	return n < ratios_of(st, uses);
}

static struct safe_text head_ratio(const struct ui_state *st, uint32_t n, char buf[static TEXT_MAX])
{
	struct ratio_use uses[RATIOS_MAX];

	return n < ratios_of(st, uses) ? ui_state_clean(buf, TEXT_MAX, uses[n].ratio->title)
				       : TEXT("");
}

/* Functions without the ratio are last. */
static int by_ratio(uint32_t n, const struct row *a, const struct row *b)
{
	float x = a->ratios[n], y = b->ratios[n];

	assert(n < RATIOS_MAX);
	if (isnan(x) || isnan(y))
		return isnan(y) - isnan(x);
	return COMPARE(x, y);
}

static void draw_ratio(const struct ui_state *st, uint32_t n, const struct row *row,
		       struct canvas *c, struct view_field at)
{
	struct ratio_use uses[RATIOS_MAX];
	char buf[FORMAT_MAX];

	if (n < ratios_of(st, uses))
		canvas_right(c, at.row, at.col, at.cols,
			     format_ratio(buf, row->ratios[n], uses[n].ratio->digits),
			     (struct style){ isnan(row->ratios[n]) ? ROLE_DIM : ROLE_NORMAL, 0 });
}

#define RATIO_COLUMN(n)                                                                            \
	static bool has_ratio##n(const struct ui_state *st)                                        \
	{                                                                                          \
		return has_ratio(st, n);                                                           \
	}                                                                                          \
	static struct safe_text head_ratio##n(const struct ui_state *st,                           \
					      char buf[static TEXT_MAX])                           \
	{                                                                                          \
		return head_ratio(st, n, buf);                                                     \
	}                                                                                          \
	static int by_ratio##n(const struct ui_state *st, const struct row *a,                     \
			       const struct row *b)                                                \
	{                                                                                          \
		return by_ratio(n, a, b);                                                          \
	}                                                                                          \
	static void draw_ratio##n(const struct ui_state *st, const struct row *row,                \
				  struct canvas *c, struct view_field at)                          \
	{                                                                                          \
		draw_ratio(st, n, row, c, at);                                                     \
	}

RATIO_COLUMN(0)

RATIO_COLUMN(1)

RATIO_COLUMN(2)

RATIO_COLUMN(3)

#undef RATIO_COLUMN

#define RATIO(n, NAME, FROM)                                                                       \
	{                                                                                          \
		.title = TEXT(NAME),                                                               \
		.help = "ratio of events that are sampled together: IPC, misses", .width = 8,      \
		.from = FROM, .right = true, .when = has_ratio##n, .heading = head_ratio##n,       \
		.compare = by_ratio##n, .draw = draw_ratio##n                                      \
	}
#define OTHER(n, NAME, FROM)                                                                       \
	{                                                                                          \
		.title = TEXT(NAME), .help = "SELF% of another event that is sampled", .width = 9, \
		.wide = 11, .from = FROM, .right = true, .when = has_other##n,                     \
		.heading = head_other##n, .compare = by_other##n, .draw = draw_other##n            \
	}

enum {
	SELF,
	INTERVAL,
	BAR,
	TOTAL,
	RATIO0,
	RATIO1,
	RATIO2,
	RATIO3,
	OTHER0,
	OTHER1,
	OTHER2,
	CHANGE,
	TREND,
	SAMPLES,
	KIND,
	SYMBOL,
	LINE,
	MODULE,
	COMM
};

_Static_assert(COMM + 1 == FUNCTION_COLUMNS_NR, "the number of columns in the header");

static const struct view_column function_columns[FUNCTION_COLUMNS_NR] = {
	[SELF] = { .title = TEXT("SELF%"),
		   .help = "share of samples in the function itself",
		   .width = 6,
		   .right = true,
		   .share = COLUMN_SELF,
		   .compare = table_by_self,
		   .draw = draw_self },
	[INTERVAL] = { .title = TEXT("95%"),
		       .name = "interval",
		       .help = "95 % interval of SELF% (~)",
		       .width = 10,
		       .from = UINT16_MAX,
		       .right = true,
		       .share = COLUMN_SELF,
		       .always = has_intervals,
		       .compare = table_by_self,
		       .draw = draw_interval },
	[BAR] = { .title = TEXT(""),
		  .name = "bar",
		  .help = "the share as a bar",
		  .width = 6,
		  .from = 46,
		  .when = has_room,
		  .draw = draw_bar },
	[TOTAL] = { .title = TEXT("TOTAL%"),
		    .help = "share of samples with the function on the stack",
		    .width = 7,
		    .right = true,
		    .share = COLUMN_TOTAL,
		    .compare = table_by_total,
		    .draw = table_plain },
	[RATIO0] = RATIO(0, "RATIO1", 56),
	[RATIO1] = RATIO(1, "RATIO2", 72),
	[RATIO2] = RATIO(2, "RATIO3", 100),
	[RATIO3] = RATIO(3, "RATIO4", 110),
	[OTHER0] = OTHER(0, "EVENT2", 70),
	[OTHER1] = OTHER(1, "EVENT3", 110),
	[OTHER2] = OTHER(2, "EVENT4", 130),
	[CHANGE] = { .title = { "\u0394", 2, 1 },
		     .name = "change",
		     .ascii = TEXT("+/-"),
		     .help = "SELF% against the window before, or baseline (B)",
		     .width = 6,
		     .from = 90,
		     .right = true,
		     .always = baseline_is_on,
		     .compare = table_by_change,
		     .draw = table_change },
	[TREND] = { .title = TEXT("TREND60s"),
		    .name = "trend",
		    .help = "SELF% over a minute; sorts by its rise",
		    .width = 8,
		    .wide = 8,
		    .from = 98,
		    .when = has_trend,
		    .compare = by_trend,
		    .draw = draw_trend },
	[SAMPLES] = { .title = TEXT("SAMPLES"),
		      .width = 10,
		      .help = "samples in the function itself",
		      .from = 140,
		      .right = true,
		      .share = COLUMN_SAMPLES,
		      .compare = table_by_samples,
		      .draw = table_samples },
	[KIND] = { .title = TEXT(" "),
		   .name = "kind",
		   .help = "user, kernel, jit, vdso, ? no name",
		   .width = 1,
		   .ascending = true,
		   .compare = by_kind,
		   .draw = table_kind },
	[SYMBOL] = { .title = TEXT("SYMBOL"),
		     .help = "name of the function",
		     .ascending = true,
		     .compare = by_symbol,
		     .draw = draw_symbol },
	[LINE] = { .title = TEXT("LINE"),
		   .help = "hottest source line",
		   .width = 18,
		   .wide = 18,
		   .from = 150,
		   .ascending = true,
		   .extra = true,
		   .when = has_lines,
		   .compare = by_line,
		   .draw = draw_line },
	[MODULE] = { .title = TEXT("MODULE"),
		     .help = "program, library or kernel module",
		     .width = 14,
		     .wide = 15,
		     .from = 60,
		     .ascending = true,
		     .extra = true,
		     .compare = by_module,
		     .draw = table_module },
	[COMM] = { .title = TEXT("COMM"),
		   .help = "busiest process; x9: 9 of this name; +5: 5 others",
		   .width = 13,
		   .wide = 14,
		   .from = 76,
		   .ascending = true,
		   .extra = true,
		   .compare = by_comm,
		   .draw = draw_comm },
};

uint8_t function_columns_find(enum ui_config_sort sort)
{
	static const uint8_t map[CONFIG_SORT_NR] = {
		[CONFIG_SORT_SELF] = SELF,     [CONFIG_SORT_TOTAL] = TOTAL,
		[CONFIG_SORT_SYMBOL] = SYMBOL, [CONFIG_SORT_MODULE] = MODULE,
		[CONFIG_SORT_COMM] = COMM,
	};

	return map[(unsigned int)sort < CONFIG_SORT_NR ? sort : CONFIG_SORT_SELF];
}

/* Return whether @column is the change (Δ), which costs a comparison. */
static bool function_columns_is_change(uint8_t column)
{
	return column == CHANGE;
}

static const struct view_sorts function_columns_sorts = { SELF, TOTAL, MODULE };

static const struct profile_function *view_functions_function_of(const struct ui_state *st,
								 const struct row *row)
{
	return &st->shown->functions[row->index];
}

/* Return whether the function is of another module than the selected one. */
static bool left_out(const struct ui_state *st, uint32_t function)
{
	uint32_t module = st->shown->functions[function].module_index;

	assert(function < st->shown->nr_functions);
	return st->only.on &&
	       (module >= st->shown->nr_modules || st->shown->modules[module].id != st->only.id);
}

/*
 * Return whether the row is an address that may have a name a moment later: of an object that is
 * loading, or just read. Also an address without a symbol gets a name of its own then.
 */
static bool is_loading(const struct profile *p, const struct profile_function *f)
{
	enum profile_module_state state;

	if (!f->unnamed || f->module_index >= p->nr_modules)
		return false;
	state = p->modules[f->module_index].state;
	return state == PROFILE_MODULE_LOADING ||
	       (state == PROFILE_MODULE_READY && f->id & ASSEMBLE_PLACE);
}

/* One row per function that has samples. */
static int build(const struct ui_state *st, struct list *list)
{
	const struct fold_functions *fold = folds_functions(st);
	const double *others[ROW_EVENTS], *ratios;

	if (!fold)
		return 0;
	for (uint32_t n = 0; n < ROW_EVENTS; n++)
		others[n] = folds_other_shares(st, n);
	ratios = folds_ratios(st);
	list->count = fold->count;
	list->loading = 0;
	for (uint32_t i = 0; i < fold->nr_rows; i++) {
		const struct fold_row *f = &fold->rows[i];
		struct row *row;

		if (left_out(st, f->function))
			continue;
		if (is_loading(st->shown, &st->shown->functions[f->function])) {
			list->loading += fold->weight > 0 ? f->self_weight / fold->weight : 0;
			continue;
		}
		row = list_add(list);
		if (!row)
			return -ENOMEM;
		row->id = st->shown->functions[f->function].id;
		row->index = f->function;
		row->self = fold->weight > 0 ? f->self_weight / fold->weight : 0;
		row->total = fold->weight > 0 ? f->total_weight / fold->weight : 0;
		row->count = f->self;
		row->total_count = f->total;
		row->task = f->task;
		row->nr = f->nr_processes;
		row->nr_tasks = f->nr_tasks;
		row->mixed = f->mixed;
		for (uint32_t n = 0; n < ROW_EVENTS; n++)
			row->other[n] = others[n] ? (float)others[n][f->function] : -1;
		for (uint32_t n = 0; n < RATIOS_MAX; n++)
			row->ratios[n] = ratios ? (float)ratios[f->function * RATIOS_MAX + n] : NAN;
		if (function_columns_is_change(list->sort))
			folds_compare(st, row);
	}
	return 0;
}

static void finish(const struct ui_state *st, struct row *row)
{
	if (!baseline_is_on(st))
		folds_compare(st, row);
}

static bool finds(const struct ui_state *st, const struct row *row, const struct match *m)
{
	const struct profile_function *f = view_functions_function_of(st, row);
	char comm[FORMAT_MAX * 2];

	return match_finds_function(m, f) || match_finds(m, function_columns_comm(st, row, comm));
}

static struct safe_text name(const struct ui_state *st, const struct row *row, char *buf,
			     size_t size)
{
	return view_functions_function_of(st, row)->name;
}

static uint32_t function(const struct ui_state *st, const struct row *row)
{
	return row->index;
}

static uint32_t module(const struct ui_state *st, const struct row *row)
{
	return st->shown->functions[row->index].module_index;
}

static size_t options(const struct ui_state *st, char *buf, size_t size)
{
	double loading = st->lists[VIEW_FUNCTIONS].loading;
	char share[FORMAT_MAX];
	size_t n = 0;

	if (st->only.on)
		n = (size_t)snprintf(buf, size, "  only %s (d)", st->only.name);
	if (loading >= 0.005 && n < size)
		n += (size_t)snprintf(buf + n, size - n, "  loading symbols: %s of samples",
				      format_share(share, loading).str);
	return n;
}

static uint64_t identity(const struct ui_state *st, const struct row *row)
{
	return baseline_match_name(st->shown, row->index);
}

static const struct view_label labels[] = { { ACT_OPEN, "Callers" }, { ACT_NONE, NULL } };

const struct view view_functions = {
	.title = TEXT("Functions"),
	.context = CTX_LIST,
	.scoped = true,
	.by_module = true,
	.labels = labels,
	.columns = function_columns,
	.nr_columns = FUNCTION_COLUMNS_NR,
	.sorts = &function_columns_sorts,
	.build = build,
	.finish = finish,
	.finds = finds,
	.compared = COMPARED_SELF,
	.name = name,
	.identity = identity,
	.function = function,
	.module = module,
	.options = options,
};
