// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A steady order of rows. Runs on: the main thread.
 *
 * To insert a row where it belongs would move all rows below it by one. So places are exchanged:
 * the row that had the place goes to the first place of a significantly smaller one, and so on:
 * one step for each group of rows that noise cannot distinguish.
 */
#include "ui/view/order.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/count/interval.h"
#include "ui/view/folds.h"

#define SLOTS 128u		    /* first rows, with slots */
#define SPARE 64u		    /* rows below them that may rise */
#define NEAR  (8 * (SLOTS + SPARE)) /* rows among which the ones of slots are searched */
#define NONE  UINT32_MAX
/* A row this many times larger than one above it, beyond noise, rises without delay. */
#define FAR 1.5
/* Exact times move rows as shares of this many samples do. */
#define EXACT 10000.0

/* A place in the order: a row, its share, and the error bars of that, newest first. */
struct place {
	uint32_t row;  /* index in the sorted rows; NONE: empty */
	bool selected; /* it keeps its place */
	double share;
	struct interval bars[LIST_BARS];
};

struct order {
	const struct list *list;
	double all; /* samples */
	struct place places[SLOTS + SPARE];
	uint32_t nr, nr_slots; /* places, and slots among them */
};

/* Return the samples that the noise of shares is of. Times of waits are exact. */
static double samples_of(const struct ui_state *st, const struct list *list)
{
	double exact = st->shown && ui_state_waits(st, st->shown) ? EXACT : 1;

	return MAX(list->count, exact);
}

/*
 * Set the share and the newest bars of @row, of @all samples. Rows with 0 by SELF% are ordered by
 * their total, below all rows with a sample.
 */
static void measure(struct place *at, const struct view_column *column, const struct row *row,
		    double all)
{
	bool by_self = column->share == COLUMN_SELF, none = by_self && row->self <= 0;
	double share = by_self && !none ? row->self : row->total, scale = none ? 1e-12 / all : 1;

	at->share = share * scale;
	at->bars[0] = interval_of(share * all, all);
	at->bars[0].low *= scale;
	at->bars[0].high *= scale;
}

/* Report whether @more is larger than noise explains, in the newest profile. */
static bool is_larger(const struct place *more, const struct place *less)
{
	return more->bars[0].low > less->bars[0].high;
}

/* Report whether @more, which is below, must be above: it is far larger, or larger in all of the
 * last profiles. */
static bool must_rise(const struct place *more, const struct place *less)
{
	if (more->bars[0].low > FAR * less->bars[0].high)
		return true;
	for (uint32_t i = 0; i < LIST_BARS; i++)
		if (more->bars[i].low <= less->bars[i].high)
			return false;
	return true;
}

/* ---- filling empty places ---- */

/* Find the largest of the places after @from; NONE: all are empty. */
static uint32_t largest_after(const struct order *o, uint32_t from)
{
	uint32_t best = NONE;

	for (uint32_t i = from + 1; i < o->nr; i++) {
		const struct place *at = &o->places[i];

		if (at->row == NONE || at->selected)
			continue;
		if (best == NONE || at->share > o->places[best].share)
			best = i;
	}
	return best;
}

/* Find the last slot that noise cannot distinguish from @best: the fewest rows move. */
static uint32_t last_like(const struct order *o, uint32_t from, uint32_t best)
{
	uint32_t last = best;

	for (uint32_t i = from + 1; i < o->nr_slots; i++) {
		const struct place *at = &o->places[i];

		if (at->row != NONE && !at->selected && !is_larger(&o->places[best], at))
			last = MAX(last, i);
	}
	return last;
}

/* Fill places of rows that have gone, from below. */
static void fill_empty(struct order *o)
{
	for (uint32_t i = 0; i < o->nr_slots; i++) {
		uint32_t from;

		if (o->places[i].row != NONE)
			continue;
		from = largest_after(o, i);
		if (from == NONE)
			continue;
		if (from < o->nr_slots)
			from = last_like(o, i, from);
		o->places[i] = o->places[from];
		o->places[from].row = NONE;
	}
}

/* Find the largest of the places after @from that must be above it; NONE: there is none. */
static uint32_t largest_wrong(const struct order *o, uint32_t from)
{
	uint32_t best = NONE;

	for (uint32_t i = from + 1; i < o->nr; i++) {
		const struct place *at = &o->places[i];

		if (at->row != NONE && !at->selected && must_rise(at, &o->places[from]) &&
		    (best == NONE || at->share > o->places[best].share))
			best = i;
	}
	return best;
}

/* Let the largest row below a slot that must be above it take the slot. */
static void exchange(struct order *o)
{
	for (uint32_t i = 0; i < o->nr_slots; i++) {
		struct place *at = &o->places[i], here = *at;
		uint32_t from;

		if (at->row == NONE || at->selected)
			continue;
		from = largest_wrong(o, i);
		if (from == NONE)
			continue;
		*at = o->places[from];
		o->places[from] = here;
	}
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

		if (!slot || list->slots[slot - 1].id == id)
			return slot - 1;
	}
}

static void index_slots(struct slot_index *index, const struct list *list)
{
	_Static_assert(SLOTS < UINT8_MAX && NONE == 0u - 1, "slot + 1 does not fit");
	memset(index, 0, sizeof(*index));
	for (uint32_t i = 0; i < list->nr_slots; i++) {
		uint64_t at = hash_u64(list->slots[i].id);

		while (index->slots[at % sizeof(index->slots)])
			at++;
		index->slots[at % sizeof(index->slots)] = (uint8_t)(i + 1);
	}
}

static bool is_selected(const struct list *list, uint32_t row)
{
	return list->pinned && list->rows[row].id == list->selected;
}

/* Set the bars of the profiles before. @slot: of the row; NULL: none. @again: of the same profile.
 */
static void remember(struct place *at, const struct list_slot *slot, bool again)
{
	for (uint32_t i = 1; i < LIST_BARS; i++)
		at->bars[i] = slot ? slot->bars[again ? i : i - 1] : at->bars[0];
}

/* Put each row into its slot of before, or after all slots. @again: of the same profile. */
static void place_rows(struct order *o, const struct view_column *column, bool again)
{
	const struct list *list = o->list;
	struct slot_index index;

	index_slots(&index, list);
	o->nr = o->nr_slots = list->nr_slots;
	for (uint32_t i = 0; i < o->nr; i++)
		o->places[i].row = NONE;
	/* Rows far below are rarely in a slot: they are sorted. */
	for (uint32_t i = 0; i < MIN(list->nr, NEAR); i++) {
		struct place place = { .row = i, .selected = is_selected(list, i) };
		uint32_t slot = slot_of(&index, list, list->rows[i].id);

		if (slot == NONE && o->nr == SLOTS + SPARE)
			continue;
		measure(&place, column, &list->rows[i], o->all);
		remember(&place, slot != NONE ? &list->slots[slot] : NULL, again);
		if (slot == NONE)
			slot = o->nr++;
		o->places[slot] = place;
	}
}

/* Close places that nothing could fill. */
static void close_empty(struct order *o)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < o->nr_slots; i++)
		if (o->places[i].row != NONE)
			o->places[nr++] = o->places[i];
	o->nr_slots = nr;
}

/* Move the rows of the slots to the front; the others follow, sorted as they are. */
static void move_rows(const struct order *o, struct list *list)
{
	struct row first[SLOTS];
	bool placed[NEAR] = { false };
	uint32_t end = 0, to;

	for (uint32_t i = 0; i < o->nr_slots; i++) {
		uint32_t row = o->places[i].row;

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

/* Record the rows in sight and their bars. */
static void record(struct list *list, const struct view_column *column, const struct order *o)
{
	if (!list->slots)
		list->slots = calloc(SLOTS, sizeof(*list->slots));
	list->nr_slots = list->slots ? MIN(list->nr, SLOTS) : 0;
	for (uint32_t i = 0; i < list->nr_slots; i++) {
		struct place place;

		measure(&place, column, &list->rows[i], o->all);
		remember(&place, NULL, false);
		list->slots[i].id = list->rows[i].id;
		memcpy(list->slots[i].bars, i < o->nr_slots ? o->places[i].bars : place.bars,
		       sizeof(place.bars));
	}
}

void order_forget(struct list *list)
{
	list->nr_slots = 0;
}

static uint64_t key_of(const struct ui_state *st, const struct list *list)
{
	uint64_t key = hash_u64(folds_key(st, st->shown) + st->shown->past_end_ns);

	key = hash_u64(key + list->sort + 256u * st->by_thread + 512u * st->fold_threads);
	key = hash_u64(key + st->scope.hide_kernel + 2u * st->scope.hide_user + 4u * st->only.on);
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
		list->slots[i].id = list->rows[i].id;
}

/* Put siblings with a slot first, in the order of their slots; the others follow. */
static void by_slot(uint32_t *order, const uint32_t *slots, uint32_t nr, bool from_below)
{
	for (uint32_t i = 1; i < nr; i++)
		for (uint32_t j = i; j; j--) {
			uint32_t a = slots[order[j - 1]], b = slots[order[j]], moved = order[j];
			bool before = b != NONE && (a == NONE || (from_below ? b > a : b < a));

			if (!before)
				break;
			order[j] = order[j - 1];
			order[j - 1] = moved;
		}
}

/* Put siblings without a slot where their shares belong. */
static void insert_new(const struct order_sibling *siblings, const uint32_t *slots, uint32_t nr,
		       uint32_t *order)
{
	for (uint32_t i = 1; i < nr; i++)
		for (uint32_t j = i; j; j--) {
			uint32_t up = order[j - 1], at = order[j];

			if ((slots[at] != NONE && slots[up] != NONE) ||
			    siblings[at].share <= siblings[up].share)
				break;
			order[j] = up;
			order[j - 1] = at;
		}
}

/* Exchange siblings that are in the wrong order beyond noise. @all: samples. */
static void exchange_siblings(const struct order_sibling *siblings, uint32_t nr, double all,
			      uint32_t *order)
{
	struct interval bars[ORDER_SIBLINGS];

	for (uint32_t i = 0; i < nr; i++)
		bars[i] = interval_of(siblings[i].share * all, all);
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t best = i, here = order[i];

		for (uint32_t j = i + 1; j < nr; j++)
			if (bars[order[j]].low > bars[here].high &&
			    siblings[order[j]].share > siblings[order[best]].share)
				best = j;
		order[i] = order[best];
		order[best] = here;
	}
}

void order_siblings(const struct ui_state *st, const struct list *list,
		    const struct order_sibling *siblings, uint32_t nr, bool from_below,
		    uint32_t *order)
{
	uint32_t slots[ORDER_SIBLINGS], nr_kept = MIN(nr, ORDER_SIBLINGS);
	struct slot_index index;

	for (uint32_t i = 0; i < nr; i++)
		order[i] = i;
	if (!list->nr_slots)
		return;
	index_slots(&index, list);
	for (uint32_t i = 0; i < nr_kept; i++)
		slots[i] = slot_of(&index, list, siblings[i].id);
	by_slot(order, slots, nr_kept, from_below);
	insert_new(siblings, slots, nr_kept, order);
	exchange_siblings(siblings, nr_kept, samples_of(st, list), order);
}

void order_keep(const struct ui_state *st, const struct view *v, struct list *list)
{
	const struct view_column *column = list->sort < v->nr_columns ? &v->columns[list->sort]
								      : NULL;
	uint64_t key = st->shown ? key_of(st, list) : 0,
		 now = st->shown ? st->shown->running_ns : 0;
	struct order o = { .list = list, .all = samples_of(st, list) };

	/* Without rows the folds may be late. build() orders siblings. */
	if (!list->nr || v->own_order)
		return;
	if (!column || !column->share || list->inverted) {
		order_forget(list);
		return;
	}
	if (!list->nr_slots || list->slots_key != key || now < list->slots_ns) {
		list->slots_key = key;
		list->slots_ns = now;
		record(list, column, &o);
		return;
	}
	place_rows(&o, column, now == list->slots_ns);
	fill_empty(&o);
	exchange(&o);
	close_empty(&o);
	move_rows(&o, list);
	list->slots_ns = now;
	record(list, column, &o);
}
