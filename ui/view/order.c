// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A steady order of rows. The main thread.
 *
 * To insert a row where it belongs would move all rows below it by one. So places are exchanged:
 * the row that had the place goes to the first place of a significantly smaller one, and so on:
 * one step for each group of rows that noise cannot distinguish.
 */
#include "ui/view/order.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/count/interval.h"
#include "ui/view/folds.h"

#define SLOTS 128u		    /* first rows, with slots */
#define SPARE 64u		    /* rows below them that may rise */
#define NEAR  (8 * (SLOTS + SPARE)) /* rows among which the ones of slots are searched */
#define NONE  UINT32_MAX
/* Error bars that a smoothed share may be away from the share. */
#define LAG 2
/* Z of the 95 % interval. */
#define BAR 1.959964
/* Error bars of two smoothed shares that noise may explain: overtake() sees to true changes. */
#define MARGIN 2
/* A share this many times another one is not left below it; */
#define CLEAR 1.8
/* and this many times, not for more than PATIENCE profiles after the first. */
#define CLEAR_LATE 1.4
#define PATIENCE   1

/* A place in the order: a row, its smoothed share and half the width of its error bar. */
struct place {
	uint32_t row;  /* index in the sorted rows; NONE: empty */
	bool selected; /* it keeps its place */
	double share, bar;
	double now;   /* the share, not smoothed */
	uint8_t late; /* profiles for which a row below has been clearly larger */
};

struct order {
	const struct list *list;
	struct place places[SLOTS + SPARE];
	uint32_t nr, nr_slots; /* places, and slots among them */
};

static double bar_of(double share, double all)
{
	double p = MIN(MAX(share, 0.0), 1.0);

	/* With one sample more: not zero for a share of 0 or 1. */
	return BAR * sqrt(p * (1 - p) / all + 1 / (all * all));
}

/*
 * Set the share and the bar of @row, of @all samples. Rows with 0 by SELF% are ordered by their
 * total, scaled to the share of one sample.
 */
static void measure(struct place *at, const struct view_column *column, const struct row *row,
		    double all)
{
	bool by_self = column->share == COLUMN_SELF;
	double scale = by_self && row->self <= 0 ? 1 / all : 1;

	at->share = by_self && scale == 1 ? row->self : row->total;
	at->bar = bar_of(at->share, all) * scale;
	at->share *= scale;
	at->now = at->share;
}

/* Return whether noise alone may make this difference. */
static bool is_noise(const struct place *more, const struct place *less)
{
	return more->share - less->share <= MARGIN * (more->bar + less->bar);
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

		if (at->row != NONE && !at->selected && is_noise(&o->places[best], at))
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

/* Let the largest row below a slot take it, if the difference is no noise. */
static void exchange(struct order *o)
{
	for (uint32_t i = 0; i < o->nr_slots; i++) {
		struct place *at = &o->places[i], here = *at;
		uint32_t from;

		if (at->row == NONE || at->selected)
			continue;
		from = largest_after(o, i);
		if (from == NONE || is_noise(&o->places[from], at))
			continue;
		*at = o->places[from];
		o->places[from] = here;
	}
}

/* Return whether the share on the screen of @more is beyond doubt, and that many times larger. */
static bool is_clear(const struct place *more, const struct place *less, double times)
{
	return more->now > times * less->now && more->now - less->now > more->bar + less->bar;
}

/* Find the largest share on the screen below a slot; NONE: there is none. */
static uint32_t largest_now(const struct order *o, uint32_t below)
{
	uint32_t best = NONE;

	for (uint32_t i = below + 1; i < o->nr; i++) {
		const struct place *at = &o->places[i];

		if (at->row != NONE && !at->selected &&
		    (best == NONE || at->now > o->places[best].now))
			best = i;
	}
	return best;
}

/* Let a row that is clearly larger take the slot, whatever its smoothed share. */
static void overtake(struct order *o)
{
	for (uint32_t i = 0; i < o->nr_slots; i++) {
		struct place *at = &o->places[i], here = *at;
		uint32_t best;
		uint8_t late;

		if (at->row == NONE || at->selected)
			continue;
		best = largest_now(o, i);
		if (best == NONE || !is_clear(&o->places[best], at, CLEAR_LATE)) {
			at->late = 0;
			continue;
		}
		if (++at->late <= PATIENCE && !is_clear(&o->places[best], at, CLEAR))
			continue;
		late = at->late;
		*at = o->places[best];
		o->places[best] = here;
		/* Or the smoothed shares would move them back. */
		at->share = at->now;
		o->places[best].share = here.now;
		at->late = 0;
		o->places[best].late = late;
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

/* Follow a share slowly, but never be farther from it than noise explains. */
static double smooth(double before, double share, double bar, double weight)
{
	double now = before + (share - before) * weight;

	return MIN(MAX(now, share - LAG * bar), share + LAG * bar);
}

static bool is_selected(const struct list *list, uint32_t row)
{
	return list->pinned && list->rows[row].id == list->selected;
}

/* Put each row into its slot of before, or after all slots. */
static void place_rows(struct order *o, const struct view_column *column, double weight)
{
	const struct list *list = o->list;
	double all = MAX(list->count, 1.0);
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
		measure(&place, column, &list->rows[i], all);
		if (slot != NONE) {
			place.share =
				smooth(list->slots[slot].share, place.share, place.bar, weight);
			place.late = list->slots[slot].late;
		} else {
			slot = o->nr++;
		}
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

/* Record the rows in sight and their shares. @o: the smoothed ones, NULL: as they are. */
static void record(struct list *list, const struct view_column *column, const struct order *o)
{
	if (!list->slots)
		list->slots = calloc(SLOTS, sizeof(*list->slots));
	list->nr_slots = list->slots ? MIN(list->nr, SLOTS) : 0;
	for (uint32_t i = 0; i < list->nr_slots; i++) {
		struct place place;

		measure(&place, column, &list->rows[i], MAX(list->count, 1.0));
		list->slots[i].id = list->rows[i].id;
		list->slots[i].share = o && i < o->nr_slots ? o->places[i].share : place.share;
		list->slots[i].late = o && i < o->nr_slots ? o->places[i].late : 0;
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
		list->slots[i] = (struct list_slot){ list->rows[i].id, list->rows[i].total, 0 };
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

void order_siblings(const struct list *list, const struct order_sibling *siblings, uint32_t nr,
		    bool from_below, uint32_t *order)
{
	uint32_t slots[ORDER_SIBLINGS], nr_kept = MIN(nr, ORDER_SIBLINGS);
	struct slot_index index;
	double all = MAX(list->count, 1.0);

	for (uint32_t i = 0; i < nr; i++)
		order[i] = i;
	if (!list->nr_slots)
		return;
	index_slots(&index, list);
	for (uint32_t i = 0; i < nr_kept; i++)
		slots[i] = slot_of(&index, list, siblings[i].id);
	by_slot(order, slots, nr_kept, from_below);
	/* Move a row above the ones that are smaller beyond noise. */
	for (uint32_t i = 1; i < nr_kept; i++)
		for (uint32_t j = i; j; j--) {
			const struct order_sibling *up = &siblings[order[j - 1]],
						   *at = &siblings[order[j]];
			struct place more = { .share = at->share, .bar = bar_of(at->share, all) };
			struct place less = { .share = up->share, .bar = bar_of(up->share, all) };
			uint32_t moved = order[j];

			/* Without a slot: by its share. */
			if (slots[moved] == NONE || slots[order[j - 1]] == NONE
				    ? at->share <= up->share
				    : is_noise(&more, &less))
				break;
			order[j] = order[j - 1];
			order[j - 1] = moved;
		}
}

void order_keep(const struct ui_state *st, const struct view *v, struct list *list)
{
	const struct view_column *column = list->sort < v->nr_columns ? &v->columns[list->sort]
								      : NULL;
	uint64_t key = st->shown ? key_of(st, list) : 0,
		 now = st->shown ? st->shown->running_ns : 0;
	struct order o = { .list = list };
	double age, window = (double)MAX(st->config->window_ns, 1000000000u);

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
		record(list, column, NULL);
		return;
	}
	age = (double)(now - list->slots_ns);
	place_rows(&o, column, age / (age + 2 * window));
	fill_empty(&o);
	exchange(&o);
	overtake(&o);
	close_empty(&o);
	move_rows(&o, list);
	list->slots_ns = now;
	record(list, column, &o);
}
