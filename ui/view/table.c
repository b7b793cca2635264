// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rows of the views: made, sorted within noise, selected and drawn; columns; where waits are shown;
 * from view to view.
 * Invariant: row 0 is the hottest.
 *
 * Runs on: the main thread.
 *
 * Invariant: if the selected id is among the rows, the cursor is on it.
 */
#include "ui/view/internal.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/count/count.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "symbols/name/name.h"
#include "ui/cli/cli.h"
#include "ui/draw/draw.h"
#include "ui/fold/fold.h"
#include "ui/state/state.h"
#include "ui/text/text.h"

/*
 * The columns of a view. Runs on: the main thread.
 */

enum view_id columns_view(unsigned int i)
{
	static const enum view_id views[CONFIG_COLUMN_VIEWS] = {
		VIEW_FUNCTIONS, VIEW_PROCESSES, VIEW_TREE, VIEW_CALLERS, VIEW_CPUS, VIEW_MODULES,
	};

	return views[i < CONFIG_COLUMN_VIEWS ? i : 0];
}

const char *columns_name(const struct view_column *column, char buf[static COLUMNS_NAME_MAX])
{
	const char *title = column->name ? column->name : column->title.str;
	size_t n = 0;

	for (; *title && *title != '%' && n + 1 < COLUMNS_NAME_MAX; title++)
		buf[n++] = *title == ' ' ? '-' : (char)tolower((unsigned char)*title);
	buf[n] = '\0';
	return buf;
}

struct safe_text columns_heading(const struct ui_state *st, const struct view_column *column,
				 bool ascii, char buf[static TEXT_MAX])
{
	if (column->heading)
		return column->heading(st, buf);
	return ascii && column->ascii.size ? column->ascii : column->title;
}

uint32_t columns_parse(const struct view *v, const char *text)
{
	char name[COLUMNS_NAME_MAX];
	uint32_t columns = 0;

	while (text && *text) {
		size_t size = strcspn(text, ", ");

		for (int i = 0; i < v->nr_columns; i++)
			if (strlen(columns_name(&v->columns[i], name)) == size &&
			    !strncasecmp(name, text, size))
				columns |= 1u << i;
		text += size;
		text += strspn(text, ", ");
	}
	return columns;
}

void columns_format(const struct view *v, uint32_t columns, char *out, size_t size)
{
	char name[COLUMNS_NAME_MAX];
	size_t at = 0;

	*out = '\0';
	for (int i = 0; i < v->nr_columns && at < size; i++)
		if (columns & 1u << i)
			at += (size_t)snprintf(out + at, size - at, "%s%s", at ? "," : "",
					       columns_name(&v->columns[i], name));
}

void columns_parse_sort(const struct view *v, const char *text, struct list *list)
{
	size_t size = text ? strcspn(text, " ") : 0;
	char name[COLUMNS_NAME_MAX];

	for (int i = 0; size && i < v->nr_columns; i++) {
		if (!v->columns[i].compare || strlen(columns_name(&v->columns[i], name)) != size ||
		    strncasecmp(name, text, size))
			continue;
		list->sort = (uint8_t)i;
		list->inverted = !strcmp(text + size, " reversed");
		return;
	}
}

void columns_format_sort(const struct view *v, const struct list *list, char *out, size_t size)
{
	char name[COLUMNS_NAME_MAX];

	*out = '\0';
	if (list->sort < v->nr_columns)
		snprintf(out, size, "%s%s", columns_name(&v->columns[list->sort], name),
			 list->inverted ? " reversed" : "");
}

bool columns_sortable(const struct ui_state *st, const struct view *v, int i)
{
	const struct view_column *column = &v->columns[i];

	assert(i >= 0 && i < v->nr_columns);
	return column->compare && !v->own_order && (!column->when || column->when(st));
}

bool columns_shown(const struct ui_state *st, const struct view *v, uint32_t picked, int i,
		   unsigned int cols)
{
	const struct view_column *column = &v->columns[i];

	assert(i >= 0 && i < v->nr_columns);
	if (column->when && !column->when(st))
		return false;
	if (picked)
		return picked & 1u << i;
	return (cols >= column->from || (column->always && column->always(st))) &&
	       !(column->extra && st->full_names);
}

/*
 * Columns that several views have. The main thread; pure.
 */

static int by_double(double a, double b)
{
	return COMPARE(a, b);
}

/* Of equal self shares, the larger total is the hotter. */
int table_by_self(const struct ui_state *st, const struct row *a, const struct row *b)
{
	int d = by_double(a->self, b->self);

	return d ? d : by_double(a->total, b->total);
}

int table_by_total(const struct ui_state *st, const struct row *a, const struct row *b)
{
	int d = by_double(a->total, b->total);

	return d ? d : by_double(a->self, b->self);
}

int table_by_samples(const struct ui_state *st, const struct row *a, const struct row *b)
{
	return by_double(a->count, b->count);
}

int table_by_change(const struct ui_state *st, const struct row *a, const struct row *b)
{
	int d = by_double((double)a->delta, (double)b->delta);

	return d ? d : table_by_self(st, a, b);
}

void table_total(const struct ui_state *st, const struct row *row, struct canvas *c,
		 struct view_field at)
{
	view_draw_percent(c, at, row->total);
}

void table_share(struct canvas *c, struct view_field at, double share)
{
	char buf[FORMAT_MAX];
	double pct = share * 100;
	int n = snprintf(buf, sizeof(buf), "%.1f", MIN(MAX(pct, 0), 9999));

	canvas_right(c, at.row, at.col, at.cols,
		     (struct safe_text){ buf, (uint16_t)n, (uint16_t)n },
		     (struct style){ share >= 0.005 ? ROLE_NORMAL : ROLE_DIM, 0 });
}

void table_plain(const struct ui_state *st, const struct row *row, struct canvas *c,
		 struct view_field at)
{
	table_share(c, at, row->total);
}

void table_samples(const struct ui_state *st, const struct row *row, struct canvas *c,
		   struct view_field at)
{
	char buf[FORMAT_MAX];

	canvas_right(c, at.row, at.col, at.cols, format_count(buf, row->count),
		     (struct style){ ROLE_NORMAL, 0 });
}

static struct safe_text table_time(const struct ui_state *st, double weight,
				   char buf[static FORMAT_MAX])
{
	const struct profile *p = st->shown;

	if (!p->window_ns || !p->nr_events)
		return TEXT("-");
	if (ui_state_waits(st, p))
		return format_tasks(buf, weight / (double)p->window_ns);
	if (!p->events[ui_state_event(st, p)].event.clock)
		return TEXT("-");
	return text_format(buf, FORMAT_MAX, "%.1f", weight * 100 / (double)p->window_ns);
}

bool table_by_samples_alone(const struct ui_state *st)
{
	const struct profile *p = st->shown;

	return p && !p->cpu_known && p->nr_events && !ui_state_waits(st, p) &&
	       !ui_state_latency(st, p) && p->events[ui_state_event(st, p)].event.clock;
}

/* Return whether CPU time is from clocks of the kernel: not of samples, nor of waits. */
static bool has_clocks(const struct ui_state *st)
{
	const struct profile *p = st->shown;

	return p->cpu_known && p->window_ns && !ui_state_waits(st, p) && !ui_state_latency(st, p);
}

int table_by_cpu(const struct ui_state *st, const struct row *a, const struct row *b)
{
	return has_clocks(st) ? COMPARE(a->cpu_ns, b->cpu_ns) : table_by_total(st, a, b);
}

struct safe_text table_cpu(const struct ui_state *st, double cpu_ns, double weight,
			   char buf[static FORMAT_MAX])
{
	const struct profile *p = st->shown;

	if (!has_clocks(st))
		return table_time(st, weight, buf);
	return text_format(buf, FORMAT_MAX, "%.1f", cpu_ns * 100 / (double)p->window_ns);
}

struct safe_text table_change_text(const struct row *row, char buf[static FORMAT_MAX])
{
	double pct = (double)row->delta * 100;

	if (row->change == CHANGE_UNKNOWN || (row->change != CHANGE_NEW && fabs(pct) < 0.05))
		return TEXT("");
	if (row->change == CHANGE_NEW)
		return TEXT("new!");
	return text_format(buf, FORMAT_MAX, "%+.1f%s", MIN(MAX(pct, -999), 999),
			   row->change == CHANGE_SURE ? "!" : "");
}

struct style table_change_style(const struct row *row)
{
	bool sure = row->change == CHANGE_SURE || row->change == CHANGE_NEW;

	return (struct style){ row->change == CHANGE_UNSURE ? ROLE_DIM
			       : row->delta > 0		    ? ROLE_BAR_HOT
							    : ROLE_BAR,
			       sure ? CELL_BOLD : 0 };
}

void table_change(const struct ui_state *st, const struct row *row, struct canvas *c,
		  struct view_field at)
{
	char buf[FORMAT_MAX];

	canvas_right(c, at.row, at.col, at.cols, table_change_text(row, buf),
		     table_change_style(row));
}

/* Return the row's function; NULL: none. */
static const struct profile_function *function_of(const struct ui_state *st, const struct row *row)
{
	uint32_t fn = view_of(st->view)->function(st, row);

	return fn < st->shown->nr_functions ? &st->shown->functions[fn] : NULL;
}

/* Return whether samples are taken by interrupts of a timer, not of a PMU. */
static bool is_by_timer(const struct ui_state *st)
{
	const struct profile *p = st->shown;

	return p && p->nr_events && p->events[ui_state_event(st, p)].event.clock;
}

void table_kind(const struct ui_state *st, const struct row *row, struct canvas *c,
		struct view_field at)
{
	const struct profile_function *f = function_of(st, row);
	char kind[2] = "?";

	if (!f)
		return;
	if (f->kind && (strchr("ukjvw", f->kind) || profile_language_name(f->kind)))
		kind[0] = f->kind;
	canvas_text(c, at.row, at.col, at.cols, (struct safe_text){ kind, 1, 1 },
		    (struct style){ theme_kind(kind[0]), 0 });
	/* In the gap: a timer's interrupt comes when the kernel takes interrupts again. */
	if (kind[0] == 'k' && row->self > 0 && is_by_timer(st))
		canvas_text(c, at.row, at.col + 1, 1, TEXT("*"), (struct style){ ROLE_DIM, 0 });
}

void table_module(const struct ui_state *st, const struct row *row, struct canvas *c,
		  struct view_field at)
{
	const struct profile_function *f = function_of(st, row);

	if (f)
		canvas_elide(c, at.row, at.col, at.cols, f->module,
			     (struct style){ ROLE_NORMAL, 0 });
}

/*
 * A sorted order of rows that noise does not move. Runs on: the main thread.
 *
 * Slots are filled from the first to the last. Only a row that no row without a place is
 * significantly larger than may take one, of before or not: so no pair ends in the wrong
 * order, also where each of a chain of rows is like the next. To insert a row where it belongs
 * would move all rows below it by one: it changes places instead.
 */

#define SLOTS  128u		     /* first rows, with slots */
#define SPARE  64u		     /* rows below them that may rise */
#define PLACES (2 * SLOTS + SPARE)   /* rows that may take a slot */
#define NEAR   (8 * (SLOTS + SPARE)) /* rows among which the ones of slots are searched */
#define NONE   UINT32_MAX

/* Rows that are not neighbours: standard errors of a difference that is no chance. */
#define Z_ANY 2.75

/* Exact times move rows as shares of this many samples do, at least. */
#define EXACT 10000.0

/* A row that may take a slot. */
struct order_place {
	uint32_t row;	  /* index in the sorted rows */
	uint32_t slot;	  /* where it was; NONE: it had no slot, or another row has it */
	bool none;	  /* no samples of its own: after all rows with one */
	bool placed;	  /* it has a slot in the new order */
	uint32_t nr_over; /* rows without a place that must be above it */
	struct interval_sum sum;
};

struct order {
	bool inverted;		       /* smallest first */
	struct order_place at[PLACES]; /* sorted */
	uint32_t nr, first;	       /* the first one without a place */
	uint32_t of_slot[SLOTS];       /* its row of before; NONE: that has left */
	uint32_t new_order[SLOTS];     /* places, by slot */
	uint32_t nr_slots;
};

/* ---- which row must be above which ---- */

/* Return the number of samples that a share has the noise of. */
static double samples_of(const struct ui_state *st, double share, double count)
{
	/* A sum that decays has half of the variance of a window with its number of samples. */
	if (st->shown && st->shown->window == PROFILE_DECAY)
		count *= 2;
	return st->shown && ui_state_waits(st, st->shown) ? MAX(count, share * EXACT) : count;
}

/* Get the value that a column sorts by. Rows with 0 by SELF% are sorted by their totals, below all
 * others.
 */
static struct interval_sum sum_of(const struct ui_state *st, const struct view_column *column,
				  const struct row *row, bool *none)
{
	struct interval_sum sum = { row->count, row->count };
	bool clocks = column->share == COLUMN_CPU && has_clocks(st);

	*none = column->share == COLUMN_SELF ? row->self <= 0
					     : column->share == COLUMN_SAMPLES && row->count <= 0;
	if (column->share == COLUMN_SELF && !*none)
		sum.weight = row->self;
	else if (column->share != COLUMN_SAMPLES)
		sum = (struct interval_sum){ row->total, MAX(row->total_count, row->count) };
	if (clocks)
		sum = (struct interval_sum){
			row->cpu_ns / (double)st->shown->window_ns,
			MAX(row->count, row->cpu_ns * EXACT / (double)st->shown->window_ns)
		};
	else
		sum.count =
			samples_of(st, column->share == COLUMN_SAMPLES ? 0 : sum.weight, sum.count);
	return sum;
}

/* Report whether @a must be above @b, as chance does not explain the difference. */
static bool is_over(const struct order *o, const struct order_place *a, const struct order_place *b,
		    double z)
{
	struct interval_sum more = o->inverted ? b->sum : a->sum,
			    less = o->inverted ? a->sum : b->sum;

	if (a->none != b->none)
		return a->none == o->inverted;
	/* Samples of different weights: half of a sample is less than one. Old ones count in part.
	 */
	return interval_exceeds(more, less, z) ||
	       (more.weight > 0 && more.weight / MAX(more.count, 1) >= 2 * less.weight);
}

/* ---- filling the slots ---- */

/* Report whether a row may take the slot: none of the rows that are left must be above it. */
static bool may_take(const struct order *o, uint32_t i, uint32_t slot)
{
	const struct order_place *at = &o->at[i];

	assert(i < o->nr);
	if (at->placed || at->nr_over)
		return false;
	return slot || !is_over(o, &o->at[o->first], at, INTERVAL_Z);
}

/* Find the first row without a slot of its own that may take one; NONE: there is none. */
static uint32_t find_free(const struct order *o, uint32_t slot)
{
	for (uint32_t i = o->first; i < o->nr; i++)
		if (o->at[i].slot == NONE && may_take(o, i, slot))
			return i;
	return NONE;
}

/* Find the last row of a slot below that must be above @out (NONE: any row), which can go there. */
static uint32_t find_last(const struct order *o, uint32_t slot, uint32_t out)
{
	double z = slot ? Z_ANY : INTERVAL_Z;
	uint32_t last = NONE;

	for (uint32_t i = o->first; i < o->nr; i++) {
		if (o->at[i].slot == NONE || !may_take(o, i, slot))
			continue;
		if (out != NONE && !is_over(o, &o->at[i], &o->at[out], z))
			continue;
		if (last == NONE || o->at[i].slot > o->at[last].slot)
			last = i;
	}
	return last;
}

/* Choose the row for a slot: the one of before, if possible. */
static uint32_t choose(struct order *o, uint32_t slot)
{
	uint32_t out = o->of_slot[slot], in;

	if (out != NONE && o->at[out].placed)
		out = NONE;
	if (out != NONE && may_take(o, out, slot))
		return out;
	in = find_free(o, slot);
	if (in == NONE)
		in = find_last(o, slot, out);
	if (out != NONE)
		o->at[out].slot = NONE;
	/* The largest one always may. */
	return in != NONE ? in : o->first;
}

static void put(struct order *o, uint32_t slot, uint32_t i)
{
	assert(i < o->nr && !o->at[i].placed);
	o->new_order[slot] = i;
	o->at[i].placed = true;
	for (uint32_t k = 0; k < o->nr; k++)
		if (o->at[k].nr_over && is_over(o, &o->at[i], &o->at[k], Z_ANY))
			o->at[k].nr_over--;
	while (o->first < o->nr && o->at[o->first].placed)
		o->first++;
}

/* Exchange neighbours in the wrong order. */
static void exchange(struct order *o)
{
	for (uint32_t i = 1; i < o->nr_slots; i++)
		for (uint32_t j = i; j; j--) {
			uint32_t up = o->new_order[j - 1], at = o->new_order[j];

			if (!is_over(o, &o->at[at], &o->at[up], INTERVAL_Z))
				break;
			o->new_order[j - 1] = at;
			o->new_order[j] = up;
		}
}

/* Let the largest row below the slots into the last one, as neighbours. */
static void let_in(struct order *o)
{
	while (o->nr_slots && o->first < o->nr) {
		uint32_t *last = &o->new_order[o->nr_slots - 1], out = *last;

		if (!is_over(o, &o->at[o->first], &o->at[out], INTERVAL_Z))
			return;
		o->at[out].placed = false;
		*last = o->first;
		o->at[o->first].placed = true;
		while (o->at[o->first].placed)
			o->first++;
		exchange(o);
	}
}

/* Fill @nr slots with the rows, which are sorted. */
static void fill(struct order *o, uint32_t nr)
{
	o->nr_slots = MIN(nr, o->nr);
	for (uint32_t i = 0; i < SLOTS; i++)
		o->of_slot[i] = NONE;
	for (uint32_t i = 0; i < o->nr; i++) {
		if (o->at[i].slot != NONE)
			o->of_slot[o->at[i].slot] = i;
		for (uint32_t k = 0; k < i; k++)
			o->at[i].nr_over += is_over(o, &o->at[k], &o->at[i], Z_ANY);
	}
	for (uint32_t slot = 0; slot < o->nr_slots; slot++)
		put(o, slot, choose(o, slot));
	exchange(o);
	let_in(o);
}

/* ---- the slots of the profile before ---- */

/* Slots by the ids of their rows: a hash table with open addresses. */
struct slot_index {
	uint8_t slots[4 * SLOTS]; /* slot + 1; 0: empty */
};

static uint32_t slot_of(const struct slot_index *index, const struct list *list, uint64_t id)
{
	for (uint64_t at = hash_u64(id);; at++) {
		uint32_t slot = index->slots[at % sizeof(index->slots)];

		if (!slot || list->slots[slot - 1] == id)
			return slot - 1;
	}
}

static void index_slots(struct slot_index *index, const struct list *list)
{
	_Static_assert(SLOTS < UINT8_MAX && NONE == 0u - 1, "slot + 1 does not fit");
	memset(index, 0, sizeof(*index));
	for (uint32_t i = 0; i < list->nr_slots; i++) {
		uint64_t at = hash_u64(list->slots[i]);

		while (index->slots[at % sizeof(index->slots)])
			at++;
		index->slots[at % sizeof(index->slots)] = (uint8_t)(i + 1);
	}
}

/* Collect the first rows, and the ones of slots that are not far below; the others are sorted. */
static void collect(const struct ui_state *st, const struct view_column *column,
		    const struct list *list, struct order *o)
{
	struct slot_index index;

	index_slots(&index, list);
	o->nr = o->first = 0;
	for (uint32_t i = 0; i < MIN(list->nr, NEAR); i++) {
		uint32_t slot = slot_of(&index, list, list->rows[i].id);
		struct order_place *at = &o->at[o->nr];

		if (slot == NONE && i >= SLOTS + SPARE)
			continue;
		*at = (struct order_place){ .row = i, .slot = slot };
		at->sum = sum_of(st, column, &list->rows[i], &at->none);
		o->nr++;
	}
	assert(o->nr <= PLACES);
}

/* Move the rows of the slots to the front; the others follow, sorted as they are. */
static void move_rows(const struct order *o, struct list *list)
{
	struct row first[SLOTS];
	bool placed[NEAR] = { false };
	uint32_t end = 0, to;

	for (uint32_t i = 0; i < o->nr_slots; i++) {
		uint32_t row = o->at[o->new_order[i]].row;

		first[i] = list->rows[row];
		placed[row] = true;
		end = MAX(end, row + 1);
	}
	to = end;
	for (uint32_t i = end; i-- > 0;)
		if (!placed[i])
			list->rows[--to] = list->rows[i];
	assert(to == o->nr_slots);
	memcpy(list->rows, first, to * sizeof(*first));
}

/* ---- from profile to profile ---- */

/* Forget the order: the user has requested one. */
static void order_forget(struct list *list)
{
	list->nr_slots = 0;
}

static uint64_t key_of(const struct ui_state *st, const struct list *list)
{
	uint64_t key = hash_u64(folds_key(st, st->shown) + st->shown->past_end_ns);

	key = hash_u64(key + list->sort + 256u * st->by_thread + 512u * st->set.fold_threads +
		       1024u * list->inverted);
	key = hash_u64(key + st->set.hide_kernel + 2u * st->set.hide_user + 4u * st->only.on);
	for (const char *c = list->filter.text; *c; c++)
		key = hash_u64(key + (unsigned char)*c);
	return st->only.on ? hash_u64(key + st->only.id) : key;
}

void order_begin(const struct ui_state *st, struct list *list, uint64_t mode)
{
	uint64_t key = hash_u64(key_of(st, list) + mode);

	if (list->slots_key != key)
		order_forget(list);
	list->slots_key = key;
}

void order_end(struct list *list)
{
	if (!list->nr)
		return;
	if (!list->slots)
		list->slots = calloc(SLOTS, sizeof(*list->slots));
	list->nr_slots = list->slots ? MIN(list->nr, SLOTS) : 0;
	for (uint32_t i = 0; i < list->nr_slots; i++)
		list->slots[i] = list->rows[i].id;
}

/* Number the slots of siblings, which other rows are between, 0, 1, ... */
static void number_slots(struct order *o, bool from_below)
{
	uint32_t slots[ORDER_SIBLINGS];

	for (uint32_t i = 0; i < o->nr; i++)
		slots[i] = o->at[i].slot;
	for (uint32_t i = 0; i < o->nr; i++) {
		if (slots[i] == NONE)
			continue;
		o->at[i].slot = 0;
		for (uint32_t k = 0; k < o->nr; k++)
			o->at[i].slot += slots[k] != NONE &&
					 (from_below ? slots[k] > slots[i] : slots[k] < slots[i]);
	}
}

void order_siblings(const struct ui_state *st, const struct list *list,
		    const struct order_sibling *siblings, uint32_t nr, bool from_below,
		    uint32_t *order)
{
	_Static_assert(ORDER_SIBLINGS <= SLOTS, "siblings have slots");
	struct order o = { .nr = MIN(nr, ORDER_SIBLINGS) };
	struct slot_index index;

	index_slots(&index, list);
	for (uint32_t i = 0; i < nr; i++)
		order[i] = i;
	for (uint32_t i = 1; i < o.nr; i++)
		for (uint32_t j = i; j && siblings[order[j]].share > siblings[order[j - 1]].share;
		     j--) {
			uint32_t moved = order[j];

			order[j] = order[j - 1];
			order[j - 1] = moved;
		}
	for (uint32_t i = 0; i < o.nr; i++) {
		const struct order_sibling *s = &siblings[order[i]];

		o.at[i] = (struct order_place){
			.row = order[i],
			.slot = slot_of(&index, list, s->id),
			.sum = { s->share, samples_of(st, s->share, s->count) },
		};
	}
	number_slots(&o, from_below);
	fill(&o, o.nr);
	for (uint32_t i = 0; i < o.nr; i++)
		order[i] = o.at[o.new_order[i]].row;
}

static const struct view_column *column_of(const struct view *v, const struct list *list)
{
	const struct view_column *column = list->sort < v->nr_columns ? &v->columns[list->sort]
								      : NULL;

	return column && column->share ? column : NULL;
}

/* Return whether a row, not the first, is not significantly behind the row above it: "~". */
static bool order_is_tie(const struct ui_state *st, const struct view *v, const struct list *list,
			 const struct row *row)
{
	const struct view_column *column = column_of(v, list);
	struct order_place up = { 0 }, at = { 0 };

	if (!list->by_share || !column || row == list->rows)
		return false;
	up.sum = sum_of(st, column, row - 1, &up.none);
	at.sum = sum_of(st, column, row, &at.none);
	if (up.none || at.none)
		return false;
	/* Times of waits are exact: a larger one above is no tie. */
	if (ui_state_waits(st, st->shown))
		return list->inverted ? at.sum.weight < up.sum.weight
				      : at.sum.weight > up.sum.weight;
	return list->inverted ? !interval_exceeds(at.sum, up.sum, INTERVAL_Z)
			      : !interval_exceeds(up.sum, at.sum, INTERVAL_Z);
}

/*
 * Put the sorted rows into the order of the profile before, where that is not significantly
 * wrong. Another column, scope, filter or direction, and order_forget(), begin a new order.
 */
static void order_keep(const struct ui_state *st, const struct view *v, struct list *list)
{
	const struct view_column *column = column_of(v, list);
	uint64_t key = st->shown ? key_of(st, list) : 0,
		 now = st->shown ? st->shown->running_ns : 0;
	struct order o = { .inverted = list->inverted };

	list->by_share = !v->own_order && column;
	/* Without rows the folds may be late. build() orders siblings. */
	if (!list->nr || v->own_order)
		return;
	if (!column) {
		order_forget(list);
		return;
	}
	if (list->nr_slots && list->slots_key == key && now >= list->slots_ns) {
		collect(st, column, list, &o);
		fill(&o, SLOTS);
		move_rows(&o, list);
	}
	list->slots_key = key;
	list->slots_ns = now;
	order_end(list);
}

#define COLUMNS_MAX 32

/* least width of names beside picked columns, which are cut at the right instead */
#define OPEN_LEAST 12u

/* Remove the rows that filter or limit hide. */
static void keep_matching(const struct ui_state *st, const struct view *v, struct list *list)
{
	uint32_t kept = 0;
	bool filtered = match_active(&list->filter);

	if (v->draw_row || v->own_rows)
		return;
	for (uint32_t i = 0; i < list->nr; i++) {
		const struct row *row = &list->rows[i];

		if (row->total * 100 < st->set.percent_limit ||
		    (filtered && v->finds(st, row, &list->filter) == list->filter.negate))
			list->nr_hidden++;
		else
			list->rows[kept++] = *row;
	}
	list->nr = kept;
}

struct table_order {
	const struct ui_state *st;
	const struct view_column *column;
	int sign;
};

static int compare_rows(const void *pa, const void *pb, void *arg)
{
	const struct table_order *order = arg;
	const struct row *a = pa, *b = pb;
	int d = order->column->compare(order->st, a, b) * order->sign;

	/* Keep the order of equal rows, or they would change places at each tick. */
	return d ? d : COMPARE(a->id, b->id);
}

/* Return whether the rows are in order of their shares, as functions are by the folding thread. */
static bool is_sorted(const struct list *list, bool by_self, int sign)
{
	for (uint32_t i = 1; i < list->nr; i++) {
		const struct row *a = &list->rows[i - 1], *b = &list->rows[i];
		double first = sign * (by_self ? a->self - b->self : a->total - b->total);
		double second = sign * (by_self ? a->total - b->total : a->self - b->self);

		if (first > 0 || (first == 0 && (second > 0 || (second == 0 && a->id > b->id))))
			return false;
	}
	return true;
}

/* The place of a row by its shares. */
struct sort_key {
	double first, second;
	uint64_t id;
	uint32_t row;
};

static int compare_keys(const void *pa, const void *pb)
{
	const struct sort_key *a = pa, *b = pb;

	if (a->first != b->first)
		return a->first < b->first ? -1 : 1;
	if (a->second != b->second)
		return a->second < b->second ? -1 : 1;
	return COMPARE(a->id, b->id);
}

/* Make space to sort the rows, with @size bytes of keys for each. Return false if there is no
 * memory. */
static bool reserve_sorted(struct list *list, size_t size)
{
	assert(size && list->nr <= list->capacity);
	if (list->nr_sorted == list->capacity && list->sorted)
		return true;
	free(list->sorted);
	free(list->keys);
	list->sorted = calloc(list->capacity, sizeof(*list->sorted));
	list->keys = calloc(list->capacity, size);
	list->nr_sorted = list->sorted && list->keys ? list->capacity : 0;
	return list->nr_sorted;
}

/* Sort by shares, as the columns compare them: keys are smaller than rows, and quick to compare.
 * Return false if there is no memory. */
static bool sort_by_share(struct list *list, bool by_self, int sign)
{
	struct sort_key *keys;
	struct row *rows;

	if (is_sorted(list, by_self, sign))
		return true;
	if (!reserve_sorted(list, sizeof(*keys)))
		return false;
	keys = list->keys;
	rows = list->sorted;
	for (uint32_t i = 0; i < list->nr; i++) {
		const struct row *row = &list->rows[i];

		keys[i] = (struct sort_key){ sign * (by_self ? row->self : row->total),
					     sign * (by_self ? row->total : row->self), row->id,
					     i };
	}
	qsort(keys, list->nr, sizeof(*keys), compare_keys);
	for (uint32_t i = 0; i < list->nr; i++)
		rows[i] = list->rows[keys[i].row];
	list->sorted = list->rows;
	list->rows = rows;
	return true;
}

static void sort_rows(const struct ui_state *st, const struct view *v, struct list *list)
{
	struct table_order order = { .st = st };

	if (list->nr < 2 || list->sort >= v->nr_columns || !columns_sortable(st, v, list->sort))
		return;
	order.column = &v->columns[list->sort];
	order.sign = order.column->ascending != list->inverted ? 1 : -1;
	/* The usual orders, at each refresh. */
	if ((order.column->compare == table_by_self || order.column->compare == table_by_total) &&
	    sort_by_share(list, order.column->compare == table_by_self, order.sign))
		return;
	qsort_r(list->rows, list->nr, sizeof(*list->rows), compare_rows, &order);
}

/* Scroll so that rows are in sight, and (@cursor) the cursor. */
static void scroll_to(struct list *list, bool cursor)
{
	uint32_t page = list->page ? list->page : 1;

	if (cursor) {
		if (list->cursor < list->top)
			list->top = list->cursor;
		if (list->cursor >= list->top + page)
			list->top = list->cursor - page + 1;
	}
	if (list->top + page > list->nr)
		list->top = list->nr > page ? list->nr - page : 0;
}

/* Find the selected row again. One that was searched for is kept in sight. */
static void place_cursor(const struct ui_state *st, const struct view *v, struct list *list)
{
	bool stays = st->follow,
	     visible = list->cursor >= list->top && list->cursor < list->top + list->page;
	uint32_t i = 0;

	/* The rows are being folded. */
	if (!list->nr && folds_is_late(st))
		return;
	if (!list->pinned) {
		list->cursor = list->top = 0;
		return;
	}
	while (i < list->nr && list->rows[i].id != list->selected)
		i++;
	if (i < list->nr && match_active(&list->search) && v->finds)
		stays |= v->finds(st, &list->rows[i], &list->search) != list->search.negate;
	if (i < list->nr)
		list->cursor = i;
	else if (list->cursor >= list->nr)
		list->cursor = list->nr ? list->nr - 1 : 0;
	scroll_to(list, (stays && visible) || list->sought.found);
	list->sought.found = false;
}

void table_rebuild(struct ui_state *st, enum view_id id)
{
	const struct view *v = view_of(id);
	struct list *list = &st->lists[id];

	/* The order of a draft is no reason to keep rows apart from theirs. */
	if (st->folds && st->folds->drafted)
		order_forget(list);
	list->nr = 0;
	list->nr_hidden = 0;
	list->count = list->weight = 0;
	/* Without memory, show the rows built so far. */
	if (!v->when_shown || st->view == id)
		v->build(st, list);
	baseline_compare(st, v, list);
	keep_matching(st, v, list);
	list->most = 0;
	for (uint32_t i = 0; i < list->nr; i++)
		list->most = MAX(list->most, list->rows[i].self);
	sort_rows(st, v, list);
	/* The counts of a run that has ended are final. */
	if (st->shown && st->shown->target_gone)
		order_forget(list);
	order_keep(st, v, list);
	if (v->arrange)
		v->arrange(st, list);
	place_cursor(st, v, list);
	assert(list->cursor < list->nr || !list->nr);
}

void table_move_to(struct ui_state *st, uint32_t row)
{
	struct list *list = ui_state_list(st);

	if (!list->nr)
		return;
	list->cursor = MIN(row, list->nr - 1);
	assert(list->cursor < list->nr);
	list->selected = list->rows[list->cursor].id;
	list->pinned = true;
	scroll_to(list, true);
}

/* Return whether the selected row is still there, and followed: then it is in sight now. */
static bool follows(const struct ui_state *st, struct list *list)
{
	bool there = list->cursor < list->nr && list->rows[list->cursor].id == list->selected;

	if (!st->follow || !there)
		return false;
	scroll_to(list, true);
	return true;
}

void table_reorder(struct ui_state *st)
{
	struct list *list = ui_state_list(st);
	uint32_t top = list->top, last = top + MAX(list->page, 1u) - 1;
	uint32_t cursor = MIN(MAX(list->cursor, top), last);

	order_forget(list);
	table_rebuild(st, st->view);
	if (!list->pinned || follows(st, list))
		return;
	list->top = top;
	table_move_to(st, cursor);
}

void table_narrow(struct ui_state *st)
{
	struct list *list = ui_state_list(st);
	uint32_t line = list->cursor - MIN(list->top, list->cursor), page = MAX(list->page, 1u);

	order_forget(list);
	table_rebuild(st, st->view);
	if (!list->pinned || follows(st, list))
		return;
	list->top = 0;
	if (list->cursor >= MIN(list->nr, page) || list->rows[list->cursor].id != list->selected)
		table_move_to(st, MIN(line, page - 1));
}

/* Move to the next row that matches the search. */
static bool find_row(struct ui_state *st, uint32_t from, bool backwards)
{
	struct list *list = ui_state_list(st);
	const struct view *v = view_of(st->view);
	const struct match *m = &list->search;

	for (uint32_t i = 0; i < list->nr; i++) {
		uint32_t n = (backwards ? from % list->nr + list->nr - i : from % list->nr + i) %
			     list->nr;

		if (v->finds(st, &list->rows[n], m) != m->negate) {
			table_move_to(st, n);
			return true;
		}
	}
	return false;
}

bool table_search(struct ui_state *st, uint32_t from, bool backwards)
{
	const struct match *m = &ui_state_list(st)->search;
	const struct view *v = view_of(st->view);

	if (!match_active(m))
		return false;
	if (find_row(st, from, backwards))
		return true;
	if (!v->search_opens)
		return false;
	table_rebuild(st, st->view);
	return find_row(st, from, backwards);
}

/* Return the share of the largest row that matches the search, hidden ones included. */
static double hidden_share(struct ui_state *st)
{
	struct list *list = ui_state_list(st);
	const struct view *v = view_of(st->view);
	struct list_position position = list_position(list);
	struct match filter = list->filter;
	double limit = st->set.percent_limit, share = 0;
	bool tree = st->process_tree;

	match_init(&list->filter);
	st->set.percent_limit = 0;
	st->process_tree = false;
	table_rebuild(st, st->view);
	for (uint32_t i = 0; i < list->nr; i++)
		if (v->finds(st, &list->rows[i], &list->search) != list->search.negate)
			share = MAX(share, MAX(list->rows[i].total, list->rows[i].self));
	match_fini(&list->filter);
	list->filter = filter;
	st->set.percent_limit = limit;
	st->process_tree = tree;
	table_rebuild(st, st->view);
	list_restore(list, &position);
	return share;
}

void table_missed(struct ui_state *st, char *buf, size_t size)
{
	const struct list *list = ui_state_list(st);
	const struct view *v = view_of(st->view);
	const char *where = "in folded rows (* unfolds)";
	char pct[FORMAT_MAX];
	double share = 0;

	assert(buf && size);
	if (v->missed)
		where = v->missed(st, &list->search, &share);
	else if (list->nr_hidden || (st->view == VIEW_PROCESSES && st->process_tree))
		share = hidden_share(st);
	if (match_active(&list->filter))
		where = "but hidden by the filter (Esc clears it)";
	else if (!v->missed && list->nr_hidden)
		where = "but hidden by the limit (L)";
	if (share > 0)
		snprintf(buf, size, "%s%% in all, %s", format_percent(pct, share).str, where);
	else
		snprintf(buf, size, "not found%s", list->search.bad ? " (literal)" : "");
}

void table_sort_by(struct ui_state *st, uint8_t column)
{
	struct list *list = ui_state_list(st);

	assert(column < view_of(st->view)->nr_columns);
	list->inverted = list->sort == column && !list->inverted &&
			 !view_of(st->view)->columns[column].one_way;
	list->sort = column;
	table_reorder(st);
}

static unsigned int column_width(const struct ui_state *st, const struct view_column *column,
				 unsigned int cols)
{
	/* Wide screens give more width to names. */
	if ((cols >= 160 && column->wide && column->ascending) ||
	    (cols >= 80 && column->broad && column->broad(st)))
		return column->wide + column->wide / 2u;
	return cols >= 100 && column->wide ? column->wide : column->width;
}

/* Lay out the columns; cols 0: not shown. */
static void lay_out(const struct ui_state *st, const struct view *v, uint32_t picked,
		    unsigned int cols, struct view_field *places)
{
	unsigned int used = 0, col = 1, nr_open = 0, rest;
	bool shown[COLUMNS_MAX] = { false };

	assert(v->nr_columns <= COLUMNS_MAX);
	for (int i = 0; i < v->nr_columns; i++) {
		shown[i] = columns_shown(st, v, picked, i, cols);
		if (!shown[i])
			continue;
		used += column_width(st, &v->columns[i], cols) + 1;
		nr_open += !column_width(st, &v->columns[i], cols);
	}
	rest = cols > used + 1 ? cols - used - 1 : 0;
	for (int i = 0; i < v->nr_columns; i++) {
		unsigned int width = column_width(st, &v->columns[i], cols);

		places[i] = (struct view_field){ 0 };
		if (!shown[i] || col >= cols)
			continue;
		if (!width) {
			width = MAX(rest / nr_open, picked ? OPEN_LEAST : 1u);
			rest -= MIN(rest, width);
			nr_open--;
		}
		places[i].col = col;
		places[i].cols = MIN(width, cols - col);
		col += width + 1;
	}
}

static void draw_head(struct ui_state *st, struct canvas *c, const struct view *v,
		      const struct list *list, const struct view_field *places, unsigned int row)
{
	canvas_fill(c, row, 0, c->cols, TEXT(" "), (struct style){ ROLE_HEAD, 0 });
	for (int i = 0; i < v->nr_columns; i++) {
		const struct view_column *column = &v->columns[i];
		struct view_field at = places[i];
		bool sorted = i == list->sort && columns_sortable(st, v, i);
		char buf[TEXT_MAX];
		struct safe_text title = columns_heading(st, column, c->ascii, buf);
		struct style style = { sorted ? ROLE_SORTED : ROLE_HEAD, 0 };
		unsigned int width = MIN(title.width + (unsigned int)sorted, at.cols), col = at.col;

		if (!at.cols)
			continue;
		if (column->right)
			col += at.cols - width;
		if (column->heading)
			canvas_elide(c, row, col, width - sorted, title, style);
		else
			canvas_text(c, row, col, width, title, style);
		if (sorted)
			canvas_text(c, row, col + width - 1, 1,
				    column->ascending != list->inverted ? st->glyphs->ascending
									: st->glyphs->descending,
				    style);
		if (columns_sortable(st, v, i))
			ui_state_zone(st, &(struct zone){ (uint16_t)row, (uint16_t)at.col, 1,
							  (uint16_t)at.cols, ZONE_COLUMN,
							  (uint32_t)i });
	}
}

/* Mark a figure with "~", if there is a free cell: noise may explain that the row is here. */
static void mark_tie(const struct ui_state *st, struct canvas *c, const struct view *v,
		     const struct row *row, struct view_field at)
{
	const struct cell *cell = canvas_at(c, at.row, at.col);

	if (cell->text[0] == ' ' && order_is_tie(st, v, &st->lists[st->view], row))
		canvas_text(c, at.row, at.col, 1, TEXT("~"), (struct style){ ROLE_DIM, 0 });
}

static void draw_row(const struct ui_state *st, struct canvas *c, const struct view *v,
		     const struct row *row, const struct view_field *places, unsigned int at)
{
	if (v->draw_row) {
		v->draw_row(st, row, c,
			    (struct view_field){ at, 1, c->cols > 1 ? c->cols - 1 : 0 });
		return;
	}
	for (int i = 0; i < v->nr_columns; i++) {
		struct view_field place = places[i];

		place.row = at;
		if (!place.cols)
			continue;
		v->columns[i].draw(st, row, c, place);
		if (i == st->lists[st->view].sort)
			mark_tie(st, c, v, row, place);
	}
}

/* Report whether no sample of the window has a stack: there is no function to show. */
static bool is_without_stacks(const struct ui_state *st)
{
	const struct profile *p = st->shown;

	return p->window_no_stack > 0 && p->window_no_stack >= p->window_samples;
}

/* Report whether idle waits are hidden, and there are some. */
static bool has_idle_waits(const struct ui_state *st)
{
	const struct profile *p = st->shown;

	if (ui_state_hides_idle(st, p) != PROFILE_IDLE)
		return false;
	for (uint32_t i = 0; i < p->nr_counts; i++)
		if (p->counts[i].stack < p->nr_stacks &&
		    fold_hides(p, PROFILE_IDLE, p->counts[i].stack))
			return true;
	return false;
}

/* Describe the state before the first profile: the progress of reading a recording, or the wait for
 * samples. */
static struct safe_text start_text(const struct ui_state *st, char buf[static IDLE_MAX])
{
	int permille = sampler_reading_permille(st->sampler);
	const char *path = st->config->recording ? st->config->recording : "", *name;
	char text[IDLE_MAX];

	if (permille < 0)
		return TEXT("waiting for the first samples");
	name = strrchr(path, '/');
	snprintf(text, sizeof(text), "reading %.80s: %d %%", name && name[1] ? name + 1 : path,
		 permille / 10);
	return ui_state_clean(buf, IDLE_MAX, text);
}

/* Return the command for another target than the one that has no samples, or "". */
static const char *other_target(const struct profile *p)
{
	if (!strncmp(p->target, "name ", 5))
		return ":target name: another one";
	if (!strncmp(p->target, "user ", 5))
		return ":target user: another one";
	return !strncmp(p->target, "cgroup ", 7) ? ":target cgroup: another one" : "";
}

/*
 * Return why the target has no samples; and the key for earlier ones, which its end has no use for,
 * and the command for another target.
 */
static struct safe_text idle_target(const struct ui_state *st, uint32_t event,
				    char buf[static IDLE_MAX])
{
	const struct profile *p = st->shown;
	bool earlier = p->window != PROFILE_TOTAL && !p->past_end_ns && p->account_total.taken;
	const char *other = other_target(p);
	char idle[IDLE_MAX], keys[64];

	if (p->target_gone || (!earlier && !*other))
		return idle_text(p, event, buf);
	snprintf(keys, sizeof(keys), "%s%s%s",
		 !earlier		       ? ""
		 : p->window == PROFILE_WINDOW ? "z z: the whole run"
					       : "z: the whole run",
		 earlier && *other ? "; " : "", other);
	return text_format(buf, IDLE_MAX, "%s (%s)", idle_text(p, event, idle).str, keys);
}

/* Bytes of a filter in a sentence: its key is behind it. */
#define FILTER_SAID 32

/* Name the filter or limit that hides all rows, with its key. */
static struct safe_text hidden_text(const struct ui_state *st, char buf[static IDLE_MAX])
{
	const struct match *filter = &st->lists[st->view].filter;
	const char *more = strlen(filter->text) > FILTER_SAID ? "..." : "";
	char text[IDLE_MAX];

	if (!match_active(filter))
		snprintf(text, sizeof(text), "no row has %g%% (L sets the limit)",
			 st->set.percent_limit);
	else if (st->set.percent_limit > 0)
		snprintf(text, sizeof(text),
			 "no row of %g%% matches the filter '%.*s%s' (Esc clears it, L sets the "
			 "limit)",
			 st->set.percent_limit, FILTER_SAID, filter->text, more);
	else
		snprintf(text, sizeof(text), "no row matches the filter '%.*s%s' (Esc clears it)",
			 FILTER_SAID, filter->text, more);
	return ui_state_clean(buf, IDLE_MAX, text);
}

/* Return why there are no rows, in @buf if need be. */
static struct safe_text empty_text(const struct ui_state *st, char buf[static IDLE_MAX])
{
	const struct profile *p = st->shown;
	uint32_t event = p && p->nr_events ? ui_state_event(st, p) : 0;
	char n[FORMAT_MAX], user[64];

	if (!p)
		return start_text(st, buf);
	if (folds_is_late(st))
		return text_format(buf, IDLE_MAX, "folding %s stacks",
				   format_count(n, p->nr_stacks).str);
	if (st->lists[st->view].nr_hidden)
		return hidden_text(st, buf);
	if (view_of(st->view)->empty.size)
		return view_of(st->view)->empty;
	if (st->lists[st->view].loading > 0)
		return TEXT("loading symbols");
	if (!p->sampling)
		return TEXT("sampling is stopped (S starts it)");
	if (!p->nr_counts)
		return idle_target(st, event, buf);
	if (is_without_stacks(st))
		return text_format(buf, IDLE_MAX, "%s samples, none with a stack (2: processes)",
				   format_count(n, p->window_no_stack).str);
	if (has_idle_waits(st))
		return TEXT("no waits but idle ones, which are hidden (\" shows them)");
	if (st->scope.drilled)
		return text_format(buf, IDLE_MAX, "no %s of %s in this window (Esc: back)",
				   idle_samples(p, event), st->scope.process_name);
	if (match_active(&st->scope.cgroup))
		return text_format(buf, IDLE_MAX, "no %s of cgroup '%s' (:cgroup shows all)",
				   idle_samples(p, event), st->scope.cgroup.text);
	if (st->scope.by_user)
		return text_format(
			buf, IDLE_MAX, "no %s of user %s in this window (u: others)",
			idle_samples(p, event),
			users_name(st->config->users, st->scope.uid, user, sizeof(user)).str);
	if (st->set.hide_kernel || st->set.hide_user)
		return TEXT("all functions are hidden (K: of the kernel, U: of programs)");
	return text_format(buf, IDLE_MAX, "no %s in this window", idle_samples(p, event));
}

/* Draw @text, clean, in two lines if need be. */
static void draw_sentence(struct canvas *c, unsigned int row, const char *text)
{
	unsigned int cols = c->cols > 2 ? c->cols - 2 : 0;
	size_t first = foot_line_bytes(text, cols);
	char buf[IDLE_MAX];

	if (!cols)
		return;
	for (unsigned int i = 0; i < 2 && *text; i++) {
		canvas_elide(c, row + i, 2, cols,
			     text_sanitise(buf, sizeof(buf), text, i ? strlen(text) : first),
			     (struct style){ ROLE_DIM, 0 });
		text += first;
		text += strspn(text, " ");
		first = strlen(text);
	}
}

void table_draw_empty(const struct ui_state *st, struct canvas *c, unsigned int row,
		      unsigned int rows)
{
	/* The banner (missing permissions), else the worst message. */
	const struct profile_message *banner = ui_state_message(st, "banner");
	/* That there is no PMU explains nothing here. */
	bool known = banner &&
		     !strncmp(banner->detail, PROFILE_NO_CYCLES, sizeof(PROFILE_NO_CYCLES) - 1);
	const struct profile_message *n = banner && !known ? banner : ui_state_worst(st);
	struct foot f = { c, row + 2, rows > 2 ? rows - 2 : 0, c->cols, 0 };
	char text[IDLE_MAX], buf[sizeof(n->detail)];

	draw_sentence(c, row, empty_text(st, text).str);
	if (!n || !st->shown || !st->shown->sampling || folds_is_late(st) ||
	    st->lists[st->view].nr_hidden || view_of(st->view)->empty.size)
		return;
	/* Not "why": it may have nothing to do with the absence of samples. */
	foot_text(&f, TEXT("Note"), ui_state_clean(buf, sizeof(buf), n->detail).str);
	foot_text(&f, TEXT("Fix"),
		  n->fix[0] ? ui_state_clean(buf, sizeof(buf), n->fix).str : "none needed");
}

/* Draw the rows that disappeared since the baseline, and the view's lines about the row. Return the
 * lines used. */
static unsigned int fill_foot(const struct ui_state *st, const struct view *v,
			      const struct list *list, struct foot *f)
{
	const struct row *at = list->cursor < list->nr ? &list->rows[list->cursor] : NULL;

	if (list->gone[0])
		foot_text(f, TEXT("gone"), list->gone);
	if (v->foot)
		v->foot(st, at, f);
	return f->used;
}

/* Draw these lines at the bottom if they fit. Return the rows left. */
static unsigned int draw_foot(struct ui_state *st, struct canvas *c, const struct view *v,
			      unsigned int row, unsigned int rows)
{
	const struct list *list = ui_state_list(st);
	struct foot f = { .rows = rows, .cols = c->cols };
	unsigned int wanted, least = MIN(list->nr + 2, 5u);

	if (!st->shown || rows < least + 3)
		return rows;
	wanted = fill_foot(st, v, list, &f);
	/* Rows before text: at most half of the screen. */
	least = MAX(least, MIN(list->nr + 2, rows / 2));
	wanted = MIN(wanted, rows - least - 1);
	if (!wanted)
		return rows;
	f = (struct foot){ c, row + rows - wanted, wanted, c->cols, 0 };
	canvas_fill(c, f.row - 1, 1, c->cols - 2, st->glyphs->hline, (struct style){ ROLE_DIM, 0 });
	fill_foot(st, v, list, &f);
	return rows - wanted - 1;
}

void table_draw(struct ui_state *st, struct canvas *c, unsigned int row, unsigned int rows)
{
	const struct view *v = view_of(st->view);
	struct list *list = ui_state_list(st);
	struct view_field places[COLUMNS_MAX] = { 0 };

	if (v->draw) {
		v->draw(st, c, row, rows);
		return;
	}
	rows = draw_foot(st, c, v, row, rows);
	if (!rows)
		return;
	lay_out(st, v, list->columns, c->cols, places);
	if (!v->draw_row) {
		draw_head(st, c, v, list, places, row++);
		rows--;
	}
	/* Keep the cursor in sight if the screen shrinks. */
	if (list->page != rows) {
		bool visible = list->cursor >= list->top && list->cursor < list->top + list->page;

		list->page = rows;
		scroll_to(list, visible);
	}
	if (!list->nr && rows)
		table_draw_empty(st, c, row, rows);
	ui_state_zone(st, &(struct zone){ (uint16_t)row, 0, (uint16_t)rows, (uint16_t)c->cols,
					  ZONE_ROWS, list->top });
	for (uint32_t i = 0; i < rows && list->top + i < list->nr; i++) {
		if (v->finish)
			v->finish(st, &list->rows[list->top + i]);
		draw_row(st, c, v, &list->rows[list->top + i], places, row + i);
		if (list->top + i != list->cursor)
			continue;
		canvas_text(c, row + i, 0, 1, st->glyphs->marker, (struct style){ 0 });
		canvas_restyle(c, row + i, 0, c->cols, (struct style){ ROLE_SELECTED, 0 }, false);
	}
}

/*
 * From view to view, into processes and threads and out again. Runs on: the main thread.
 */

/* Stop requesting the annotated function. */
static void forget_annotated(struct ui_state *st)
{
	if (st->annotate.function != UINT32_MAX)
		sampler_set_annotate(st->sampler, UINT32_MAX);
	st->annotate.function = UINT32_MAX;
}

void navigate_to(struct ui_state *st, enum view_id view)
{
	assert((unsigned int)view < VIEW_NR);
	/* Help is temporary: keep the annotated function. */
	if (view != VIEW_ANNOTATE && view != VIEW_HELP)
		forget_annotated(st);
	st->view = view;
	st->scroll = 0;
	table_rebuild(st, view);
}

static enum view_id opened_from(const struct ui_state *st, enum view_id view)
{
	switch (view) {
	case VIEW_HELP:
		return st->help_from;
	case VIEW_CALLERS:
		return st->folds ? st->folds->callers_from : VIEW_FUNCTIONS;
	case VIEW_ANNOTATE:
		return st->annotate.from;
	default:
		return st->tool_from;
	}
}

enum view_id navigate_tab(const struct ui_state *st)
{
	enum view_id view = st->view;

	/* Bounded: callers of an annotated function of callers ... */
	for (int i = 0; i < VIEW_NR && view >= VIEW_HELP; i++)
		view = opened_from(st, view);
	return view < VIEW_HELP ? view : VIEW_FUNCTIONS;
}

void navigate_into_process(struct ui_state *st, uint32_t id)
{
	uint32_t index;

	st->scope.group[0] = '\0';
	st->scope.process = id;
	index = ui_state_process(st, st->shown);
	if (index == UINT32_MAX)
		return;
	format_process(st->scope.process_name, sizeof(st->scope.process_name),
		       profile_process_name(&st->shown->processes[index]),
		       st->shown->processes[index].pid);
	/* The tab: by then annotate has no function, and callers are perhaps of another one. */
	if (!st->scope.drilled)
		st->drill_from = navigate_tab(st);
	st->scope.drilled = true;
	st->scope.in_thread = false;
	st->scope.thread_group[0] = '\0';
	st->scope.outer.name[0] = '\0';
	folds_forget(st->folds);
	folds_forget_baseline(st->folds);
	st->lists[VIEW_FUNCTIONS].pinned = false;
	/* Keep showing a view of stacks. */
	navigate_to(st, view_shown(st)->stacks ? st->view : VIEW_FUNCTIONS);
}

void navigate_close_process(struct ui_state *st)
{
	if (!st->scope.drilled)
		return;
	if (st->latest && st->latest->focus)
		sampler_unfocus(st->sampler);
	st->scope.drilled = false;
	st->scope.group[0] = '\0';
	folds_forget(st->folds);
	folds_forget_baseline(st->folds);
	st->lists[VIEW_FUNCTIONS].pinned = false;
	table_rebuild(st, st->view);
}

void navigate_out_of_process(struct ui_state *st)
{
	bool open = st->scope.drilled;

	navigate_close_process(st);
	if (open)
		navigate_to(st, st->drill_from);
}

bool navigate_out_of_thread(struct ui_state *st)
{
	struct scope *s = &st->scope;

	if (!s->drilled || !s->outer.name[0])
		return false;
	s->in_thread = false;
	s->thread_group[0] = '\0';
	s->process = s->outer.process;
	s->group_by = s->outer.group_by;
	memcpy(s->group, s->outer.group, sizeof(s->group));
	memcpy(s->process_name, s->outer.name, sizeof(s->process_name));
	s->outer.name[0] = '\0';
	folds_forget(st->folds);
	folds_forget_baseline(st->folds);
	st->lists[VIEW_FUNCTIONS].pinned = false;
	/* To its threads, if threads are still shown. */
	navigate_to(st, st->by_thread ? VIEW_PROCESSES : st->view);
	return true;
}

static void push_centre(struct folds *s, uint32_t id)
{
	/* Drop the oldest step if the way back is full. */
	if (s->nr_centres == FOLDS_LEVELS) {
		memmove(s->centres, s->centres + 1, (FOLDS_LEVELS - 1) * sizeof(*s->centres));
		s->nr_centres--;
	}
	assert(s->nr_centres < FOLDS_LEVELS);
	s->centres[s->nr_centres++] = id;
}

void navigate_to_callers(struct ui_state *st, uint32_t id)
{
	struct folds *s = st->folds;
	/* The annotated function is dropped: Esc leads to the view that it was opened from. */
	enum view_id from = st->view == VIEW_ANNOTATE ? st->annotate.from : st->view;

	if (!s)
		return;
	if (from != VIEW_CALLERS) {
		s->callers_from = from;
		s->nr_centres = 0;
	}
	if (!s->nr_centres || s->centres[s->nr_centres - 1] != id)
		push_centre(s, id);
	st->lists[VIEW_CALLERS].pinned = true;
	st->lists[VIEW_CALLERS].selected = 0;
	navigate_to(st, VIEW_CALLERS);
}

void navigate_into_module(struct ui_state *st, uint32_t module)
{
	assert(st->shown && module < st->shown->nr_modules);
	st->only.on = true;
	st->only.from = st->view;
	st->only.id = st->shown->modules[module].id;
	ui_state_clean(st->only.name, sizeof(st->only.name), st->shown->modules[module].name.str);
	st->lists[VIEW_FUNCTIONS].pinned = false;
	navigate_to(st, VIEW_FUNCTIONS);
}
