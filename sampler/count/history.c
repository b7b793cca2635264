// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Ticks, kept for the window and summed for decay and total.
 *
 * Runs on: the builder. Decay is lazy: instead of fading every cell each tick,
 * a new one is added with a growing factor 2^(age / half life), and read
 * divided by it; before the factor gets out of hand the cells are scaled.
 */
#include "sampler/count/history.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "sampler/count/sums.h"
#include "symbols/base/base.h"

/* In half-lives: scale when the factor passes 2^AGE_MAX. */
#define AGE_MAX 32.0
/* Samples: smaller decayed counts are folded when the sums are scaled. */
#define FADED	  (1.0 / 1024)
#define CELLS_MIN 16u
/* Of all ticks of the window; covers_ns may then be shorter than the window. */
#define WINDOW_CELLS_MAX (1u << 21)

struct tick {
	struct count *counts;
	uint32_t nr;
	uint64_t interval_ns;
};

struct history {
	struct tick ticks[HISTORY_TICKS_MAX]; /* a ring */
	uint32_t first, nr_ticks;
	uint64_t window_ns, covers_ns; /* wanted; of the ticks in the ring */
	uint64_t half_life_ns;
	uint32_t max_cells;

	struct sums decay; /* times decay_factor() */
	double decay_age;  /* in half-lives */
	double decay_ns;   /* times decay_factor() */
	struct sums total;
	uint64_t total_ns;
};

int history_new(struct history **out, uint64_t window_ns, uint64_t half_life_ns, uint32_t max_cells)
{
	struct history *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	h->window_ns = window_ns;
	h->half_life_ns = MAX(half_life_ns, 1ULL);
	h->max_cells = MAX(max_cells, CELLS_MIN);
	*out = h;
	return 0;
}

void history_reset(struct history *h)
{
	for (uint32_t i = 0; i < HISTORY_TICKS_MAX; i++)
		free(h->ticks[i].counts);
	sums_fini(&h->decay);
	sums_fini(&h->total);
	*h = (struct history){
		.window_ns = h->window_ns,
		.half_life_ns = h->half_life_ns,
		.max_cells = h->max_cells,
	};
}

void history_free(struct history *h)
{
	if (!h)
		return;
	history_reset(h);
	free(h);
}

static const struct tick *tick_at(const struct history *h, uint32_t i)
{
	return &h->ticks[(h->first + i) % HISTORY_TICKS_MAX];
}

static void drop_oldest(struct history *h)
{
	struct tick *t = &h->ticks[h->first];

	h->covers_ns -= t->interval_ns;
	free(t->counts);
	*t = (struct tick){ 0 };
	h->first = (h->first + 1) % HISTORY_TICKS_MAX;
	h->nr_ticks--;
}

/* Add a tick to the ring and free ticks before the window. */
static void window_add(struct history *h, struct count *counts, uint32_t nr, uint64_t interval_ns)
{
	if (h->nr_ticks == HISTORY_TICKS_MAX)
		drop_oldest(h);
	h->ticks[(h->first + h->nr_ticks) % HISTORY_TICKS_MAX] =
		(struct tick){ counts, nr, interval_ns };
	h->nr_ticks++;
	h->covers_ns += interval_ns;
	/* Ticks differ by nanoseconds: half of one may be missing. */
	while (h->nr_ticks > 1 &&
	       h->covers_ns - tick_at(h, 0)->interval_ns + interval_ns / 2 >= h->window_ns)
		drop_oldest(h);
}

void history_shrink(struct history *h, uint32_t max_cells)
{
	uint64_t nr = 0;

	for (uint32_t i = 0; i < h->nr_ticks; i++)
		nr += tick_at(h, i)->nr;
	for (; h->nr_ticks > 1 && nr > max_cells; drop_oldest(h))
		nr -= tick_at(h, 0)->nr;
}

static double decay_factor(const struct history *h)
{
	return exp2(h->decay_age);
}

/* Advance the time of the decaying sum. */
static void decay_advance(struct history *h, uint64_t interval_ns)
{
	h->decay_age += (double)interval_ns / (double)h->half_life_ns;
	if (h->decay_age <= AGE_MAX)
		return;
	sums_scale(&h->decay, exp2(-h->decay_age));
	h->decay_ns *= exp2(-h->decay_age);
	h->decay_age = 0;
	/* Without memory faded counts are kept until the next time. */
	sums_prune(&h->decay, h->max_cells, FADED);
}

static void sums_add_tick(struct sums *s, const struct count *counts, uint32_t nr, double factor)
{
	for (uint32_t i = 0; i < nr; i++)
		sums_add(s, tables_count_key(counts[i].stack, counts[i].task, counts[i].event),
			 (double)counts[i].count * factor, (double)counts[i].weight * factor);
}

/* Reserve several counts at a time. */
static void keep_bounded(const struct history *h, struct sums *s)
{
	if (s->nr > h->max_cells)
		sums_prune(s, h->max_cells / 4 * 3, 0);
}

int history_add(struct history *h, struct count *counts, uint32_t nr, uint64_t interval_ns)
{
	decay_advance(h, interval_ns);
	if (sums_reserve(&h->decay, nr) || sums_reserve(&h->total, nr)) {
		free(counts);
		return -ENOMEM;
	}
	sums_add_tick(&h->decay, counts, nr, decay_factor(h));
	h->decay_ns += (double)interval_ns * decay_factor(h);
	sums_add_tick(&h->total, counts, nr, 1);
	h->total_ns += interval_ns;
	window_add(h, counts, nr, interval_ns);
	history_shrink(h, WINDOW_CELLS_MAX);
	keep_bounded(h, &h->decay);
	keep_bounded(h, &h->total);
	return 0;
}

/* Write the sums times @factor as an array. */
static int list_sums(const struct sums *s, double factor, struct history_cell **out, uint32_t *nr)
{
	struct history_cell *list = malloc(MAX(s->nr, 1u) * sizeof(*list));

	*nr = 0;
	*out = list;
	if (!list)
		return -ENOMEM;
	for (uint64_t i = 0; s->slots && i <= s->mask; i++) {
		const struct sum *sum = &s->slots[i];

		/* Leave out counts that faded to nothing. */
		if (!sum->key || sum->count * factor <= 0)
			continue;
		list[*nr] = (struct history_cell){
			.stack = tables_count_key_stack(sum->key),
			.task = tables_count_key_task(sum->key),
			.event = tables_count_key_event(sum->key),
			.count = sum->count * factor,
			.weight = sum->weight * factor,
		};
		++*nr;
	}
	return 0;
}

static int list_window(const struct history *h, struct history_cell **out, uint32_t *nr)
{
	struct sums sums;
	int ret = 0;

	sums_init(&sums);
	*nr = 0;
	*out = NULL;
	for (uint32_t i = 0; i < h->nr_ticks; i++) {
		const struct tick *t = tick_at(h, i);

		ret = sums_reserve(&sums, t->nr);
		if (ret)
			break;
		sums_add_tick(&sums, t->counts, t->nr, 1);
	}
	if (!ret)
		ret = list_sums(&sums, 1, out, nr);
	sums_fini(&sums);
	return ret;
}

int history_get(const struct history *h, enum profile_window window, struct history_cell **out,
		uint32_t *nr, uint64_t *covers_ns)
{
	switch (window) {
	case PROFILE_DECAY:
		*covers_ns = (uint64_t)llround(h->decay_ns / decay_factor(h));
		return list_sums(&h->decay, 1 / decay_factor(h), out, nr);
	case PROFILE_TOTAL:
		*covers_ns = h->total_ns;
		return list_sums(&h->total, 1, out, nr);
	default:
		*covers_ns = h->covers_ns;
		return list_window(h, out, nr);
	}
}

void history_folded_away(const struct history *h, enum profile_window window, double *count,
			 double *weight)
{
	*count = *weight = 0;
	if (window == PROFILE_TOTAL)
		sums_folded(&h->total, count, weight);
	if (window == PROFILE_DECAY) {
		sums_folded(&h->decay, count, weight);
		*count /= decay_factor(h);
		*weight /= decay_factor(h);
	}
}

static uint32_t new_stack(const struct history_ids *ids, uint32_t stack)
{
	return stack == STACK_NONE ? STACK_NONE : ids->stack(ids->ctx, stack);
}

static int remap_sums(struct sums *s, uint32_t keep, const struct history_ids *ids)
{
	struct sums next;

	sums_init(&next);
	if ((s->nr > keep && sums_prune(s, keep, 0)) || sums_reserve(&next, s->nr))
		return -ENOMEM;
	for (uint64_t i = 0; s->slots && i <= s->mask; i++) {
		uint64_t key = s->slots[i].key;

		if (!key)
			continue;
		key = tables_count_key(new_stack(ids, tables_count_key_stack(key)),
				       ids->task(ids->ctx, tables_count_key_task(key)),
				       tables_count_key_event(key));
		sums_add(&next, key, s->slots[i].count, s->slots[i].weight);
	}
	sums_fini(s);
	*s = next;
	return 0;
}

int history_remap(struct history *h, uint32_t keep, const struct history_ids *ids)
{
	keep = MIN(keep, h->max_cells / 2);
	if (remap_sums(&h->decay, keep, ids) || remap_sums(&h->total, keep, ids)) {
		history_reset(h);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < h->nr_ticks; i++) {
		const struct tick *t = tick_at(h, i);

		for (uint32_t k = 0; k < t->nr; k++) {
			t->counts[k].stack = new_stack(ids, t->counts[k].stack);
			t->counts[k].task = ids->task(ids->ctx, t->counts[k].task);
		}
	}
	return 0;
}

size_t history_memory(const struct history *h)
{
	size_t size = sizeof(*h) + sums_memory(&h->decay) + sums_memory(&h->total);

	for (uint32_t i = 0; i < h->nr_ticks; i++)
		size += tick_at(h, i)->nr * sizeof(struct count);
	return size;
}
