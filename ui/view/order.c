// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A sorted order of rows that noise does not move. Runs on: the main thread.
 *
 * Slots are filled from the first to the last. Only a row that no row without a place is
 * significantly larger than may take one, of before or not: so no pair ends in the wrong
 * order, also where each of a chain of rows is like the next. To insert a row where it belongs
 * would move all rows below it by one: it changes places instead.
 */
#include "ui/view/order.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/count/interval.h"
#include "ui/fold/fold.h"

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
struct place {
	uint32_t row;	  /* index in the sorted rows */
	uint32_t slot;	  /* where it was; NONE: it had no slot, or another row has it */
	bool none;	  /* no samples of its own: after all rows with one */
	bool placed;	  /* it has a slot in the new order */
	uint32_t nr_over; /* rows without a place that must be above it */
	struct interval_sum sum;
};

struct order {
	bool inverted;		   /* smallest first */
	struct place at[PLACES];   /* sorted */
	uint32_t nr, first;	   /* the first one without a place */
	uint32_t of_slot[SLOTS];   /* its row of before; NONE: that has left */
	uint32_t new_order[SLOTS]; /* places, by slot */
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

	*none = column->share == COLUMN_SELF ? row->self <= 0
					     : column->share == COLUMN_SAMPLES && row->count <= 0;
	if (column->share == COLUMN_SELF && !*none)
		sum.weight = row->self;
	else if (column->share != COLUMN_SAMPLES)
		sum = (struct interval_sum){ row->total, MAX(row->total_count, row->count) };
	sum.count = samples_of(st, column->share == COLUMN_SAMPLES ? 0 : sum.weight, sum.count);
	return sum;
}

/* Report whether @a must be above @b, as chance does not explain the difference. */
static bool is_over(const struct order *o, const struct place *a, const struct place *b, double z)
{
	if (a->none != b->none)
		return a->none == o->inverted;
	return o->inverted ? interval_exceeds(b->sum, a->sum, z)
			   : interval_exceeds(a->sum, b->sum, z);
}

/* ---- filling the slots ---- */

/* Report whether a row may take the slot: none of the rows that are left must be above it. */
static bool may_take(const struct order *o, uint32_t i, uint32_t slot)
{
	const struct place *at = &o->at[i];

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
		struct place *at = &o->at[o->nr];

		if (slot == NONE && i >= SLOTS + SPARE)
			continue;
		*at = (struct place){ .row = i, .slot = slot };
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

void order_forget(struct list *list)
{
	list->nr_slots = 0;
}

static uint64_t key_of(const struct ui_state *st, const struct list *list)
{
	uint64_t key = hash_u64(folds_key(st, st->shown) + st->shown->past_end_ns);

	key = hash_u64(key + list->sort + 256u * st->by_thread + 512u * st->fold_threads +
		       1024u * list->inverted);
	key = hash_u64(key + st->scope.hide_kernel + 2u * st->scope.hide_user + 4u * st->only.on);
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

		o.at[i] = (struct place){
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

bool order_is_tie(const struct ui_state *st, const struct view *v, const struct list *list,
		  const struct row *row)
{
	const struct view_column *column = column_of(v, list);
	struct order o = { .inverted = list->inverted };
	struct place up = { 0 }, at = { 0 };

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
	return !is_over(&o, &up, &at, INTERVAL_Z);
}

void order_keep(const struct ui_state *st, const struct view *v, struct list *list)
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
