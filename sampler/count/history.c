// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Slices summed into window, decay, total and any range.
 *
 * Runs on: the builder. Decay is lazy: instead of fading every cell each tick, a new one is added
 * with a growing factor 2^(age / half life), and read divided by it; before the factor gets out of
 * hand the cells are scaled.
 */
#include "sampler/count/internal.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"

/* In half-lives: scale when the factor passes 2^AGE_MAX. */
#define AGE_MAX 32.0

/* Samples: smaller decayed counts are folded when the sums are scaled. */
#define FADED (1.0 / 1024)

#define CELLS_MIN 16u

/* Of slices, unless history_keep() sets another limit. */
#define MEMORY_MAX ((size_t)64 << 20)

struct history {
	struct slices *slices; /* of the times at which counts were added */
	struct slices *past;   /* of their moments; the same where nothing is late */
	struct moments *moments;
	struct slice next;  /* of the slice that is added next: begin, epoch, events, marks */
	struct count *held; /* its counts so far, of tables before; in the sums already */
	uint32_t nr_held;
	struct rate_log rates;
	uint64_t window_ns; /* wanted */
	uint64_t span_ns;   /* of the slices, and their memory */
	size_t memory;
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

	if (!h || slices_new(&h->slices, window_ns, MEMORY_MAX)) {
		free(h);
		return -ENOMEM;
	}
	h->past = h->slices;
	h->window_ns = h->span_ns = window_ns;
	h->memory = MEMORY_MAX;
	h->half_life_ns = MAX(half_life_ns, 1ULL);
	h->max_cells = MAX(max_cells, CELLS_MIN);
	*out = h;
	return 0;
}

void history_keep(struct history *h, uint64_t span_ns, size_t memory)
{
	h->span_ns = MAX(span_ns, h->window_ns);
	h->memory = memory;
	history_extend(h, 0);
}

void history_extend(struct history *h, uint64_t span_ns)
{
	slices_set_limits(h->past, MAX(span_ns, h->span_ns), h->memory);
	if (h->moments)
		slices_set_limits(h->slices, MAX(span_ns, h->window_ns), h->memory);
}

int history_use_moments(struct history *h)
{
	if (slices_new(&h->past, h->span_ns, h->memory)) {
		h->past = h->slices;
		return -ENOMEM;
	}
	if (moments_new(&h->moments, h->past)) {
		slices_free(h->past);
		h->past = h->slices;
		return -ENOMEM;
	}
	history_extend(h, 0);
	return 0;
}

int history_complete(struct history *h, uint64_t complete_ns)
{
	return h->moments ? moments_close(h->moments, complete_ns) : 0;
}

int history_finish(struct history *h)
{
	return h->moments ? moments_finish(h->moments) : 0;
}

void history_stop_by(struct history *h, const atomic_bool *stopped)
{
	slices_stop_by(h->slices, stopped);
}

void history_begin(struct history *h, uint64_t now_ns)
{
	if (h->moments && !slices_nr(h->slices))
		moments_reset(h->moments, now_ns);
	if (h->moments)
		moments_set_events(h->moments, h->next.events, now_ns);
	/* The first slice of a recording is at the time of the recording, maybe before our start.
	 */
	h->next.begin_ns = slices_nr(h->slices) ? MAX(h->next.begin_ns, now_ns) : now_ns;
}

static void drop_held(struct history *h)
{
	free(h->held);
	h->held = NULL;
	h->nr_held = 0;
}

void history_restart(struct history *h)
{
	sums_fini(&h->decay);
	sums_fini(&h->total);
	drop_held(h);
	h->next.epoch++;
	if (slices_nr(h->slices))
		h->next.marks |= SLICE_RESET;
	h->decay_age = h->decay_ns = 0;
	h->total_ns = 0;
}

void history_reset(struct history *h)
{
	history_restart(h);
	slices_clear(h->slices);
	if (h->moments) {
		slices_clear(h->past);
		moments_reset(h->moments, h->next.begin_ns);
	}
	rate_log_fini(&h->rates);
	h->next.marks = 0;
}

void history_free(struct history *h)
{
	if (!h)
		return;
	history_reset(h);
	moments_free(h->moments);
	if (h->past != h->slices)
		slices_free(h->past);
	slices_free(h->slices);
	free(h);
}

struct slices *history_slices(const struct history *h)
{
	return h->past;
}

struct slices *history_arrivals(const struct history *h)
{
	return h->slices;
}

void history_note(struct history *h, unsigned int marks, uint64_t lost, uint64_t throttled)
{
	if (h->moments)
		slices_note(h->slices, marks, lost, throttled);
	if (!h->moments || !moments_note(h->moments, marks, lost, throttled))
		slices_note(h->past, marks, lost, throttled);
}

void history_set_events(struct history *h, uint16_t events)
{
	if (h->next.events != events && slices_nr(h->slices))
		h->next.marks |= SLICE_EVENTS;
	h->next.events = events;
}

void history_set_rates(struct history *h, const double *hz, uint32_t nr)
{
	if (rate_log_set(&h->rates, h->next.begin_ns, h->next.events, hz, nr))
		h->next.marks |= SLICE_RATE;
}

const double *history_rates(const struct history *h, const struct slice_range *range, bool *changed)
{
	return rate_log_find(&h->rates, range->begin_ns, range->end_ns, range->events, changed);
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

/* Append counts to the held ones. 0 or -ENOMEM. */
static int hold(struct history *h, const struct count *counts, uint32_t nr)
{
	struct count *larger;

	if (!nr)
		return 0;
	larger = realloc(h->held, ((size_t)h->nr_held + nr) * sizeof(*larger));
	if (!larger)
		return -ENOMEM;
	memcpy(larger + h->nr_held, counts, nr * sizeof(*larger));
	h->held = larger;
	h->nr_held += nr;
	return 0;
}

/* Append a slice of the counts and the held ones. 0 or -ENOMEM. */
static int add_slice(struct history *h, struct count *counts, uint32_t nr, uint64_t interval_ns)
{
	int code = h->nr_held ? hold(h, counts, nr) : 0;

	/* A slice has a middle that no other has: a sample is in one of two adjacent ranges. */
	h->next.end_ns = h->next.begin_ns + MAX(interval_ns, 1ULL);
	if (!code)
		code = h->nr_held ? slices_add(h->slices, h->held, h->nr_held, &h->next)
				  : slices_add(h->slices, counts, nr, &h->next);
	h->next.begin_ns = h->next.end_ns;
	drop_held(h);
	if (!code)
		h->next.marks = 0;
	return code;
}

/* Add counts to the sums, which have space for them. */
static void add_to_sums(struct history *h, const struct count *counts, uint32_t nr)
{
	sums_add_tick(&h->decay, counts, nr, decay_factor(h));
	sums_add_tick(&h->total, counts, nr, 1);
	keep_bounded(h, &h->decay);
	keep_bounded(h, &h->total);
}

int history_hold(struct history *h, struct count *counts, uint32_t nr)
{
	int code = 0;

	if (sums_reserve(&h->decay, nr) || sums_reserve(&h->total, nr) || hold(h, counts, nr))
		code = -ENOMEM;
	else
		add_to_sums(h, counts, nr);
	if (!code && h->moments)
		code = moments_add(h->moments, counts, nr, h->next.begin_ns, &h->next);
	free(counts);
	return code;
}

int history_add(struct history *h, struct count *counts, uint32_t nr, uint64_t interval_ns)
{
	int code = 0;

	if (h->moments)
		code = moments_add(h->moments, counts, nr, h->next.begin_ns + interval_ns,
				   &h->next);
	decay_advance(h, interval_ns);
	if (code || sums_reserve(&h->decay, nr) || sums_reserve(&h->total, nr))
		code = -ENOMEM;
	if (!code)
		code = add_slice(h, counts, nr, interval_ns);
	if (!code) {
		add_to_sums(h, counts, nr);
		h->decay_ns += (double)interval_ns * decay_factor(h);
		h->total_ns += interval_ns;
	}
	free(counts);
	return code;
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

		/* Leave out counts that faded to nothing; CPU time has no samples. */
		if (!sum->key || (sum->count * factor <= 0 && sum->weight * factor < 1))
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

int history_get_range(const struct slices *slices, const struct slice_range *range,
		      struct history_cell **out, uint32_t *nr)
{
	struct sums sums;
	int code;

	sums_init(&sums);
	*nr = 0;
	*out = NULL;
	code = slices_sum(slices, range, &sums);
	if (!code)
		code = list_sums(&sums, 1, out, nr);
	sums_fini(&sums);
	return code;
}

/* Find the slices of the window: since the reset, and just enough to cover it. */
static void window_range(const struct history *h, struct slice_range *range)
{
	uint32_t nr = slices_nr(h->slices);

	*range = (struct slice_range){ 0 };
	for (uint32_t i = nr; i-- > 0;) {
		const struct slice *slice = slices_at(h->slices, i), *newest;
		uint64_t interval_ns;

		newest = slices_at(h->slices, nr - 1);
		interval_ns = newest->end_ns - newest->begin_ns;
		/* Slices differ by nanoseconds: half of one may be missing. */
		if (slice->epoch != h->next.epoch || slice->events != h->next.events ||
		    (range->nr && range->covers_ns + interval_ns / 2 >= h->window_ns))
			break;
		if (!range->nr++)
			range->end_ns = slice->end_ns;
		range->begin_ns = slice->begin_ns;
		range->covers_ns += slice->end_ns - slice->begin_ns;
		range->events = slice->events;
	}
}

static int list_window(const struct history *h, struct history_cell **out, uint32_t *nr,
		       uint64_t *covers_ns)
{
	struct slice_range range;

	window_range(h, &range);
	*covers_ns = range.covers_ns;
	return history_get_range(h->slices, &range, out, nr);
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
		return list_window(h, out, nr, covers_ns);
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

/* Replace the ids of tasks, or else of stacks. 0 or -ENOMEM (unchanged). */
static int remap_keys(struct sums *s, const struct history_ids *ids,
		      uint32_t (*task)(void *ctx, uint32_t task))
{
	struct sums next;

	sums_init(&next);
	if (sums_reserve(&next, s->nr))
		return -ENOMEM;
	for (uint64_t i = 0; s->slots && i <= s->mask; i++) {
		uint64_t key = s->slots[i].key;
		uint32_t stack = tables_count_key_stack(key), of = tables_count_key_task(key);

		if (!key)
			continue;
		key = tables_count_key(task ? stack : new_stack(ids, stack),
				       task ? task(ids->ctx, of) : of, tables_count_key_event(key));
		sums_add(&next, key, s->slots[i].count, s->slots[i].weight);
	}
	sums_fini(s);
	*s = next;
	return 0;
}

/* Tasks first: counts that are one then have one stack, and fewer are folded. */
static int remap_sums(struct sums *s, uint32_t keep, const struct history_ids *ids,
		      uint32_t (*task)(void *ctx, uint32_t task))
{
	int code = remap_keys(s, ids, task);

	if (!code && s->nr > keep)
		code = sums_prune(s, keep, 0);
	return code ? code : remap_keys(s, ids, NULL);
}

int history_remap(struct history *h, uint32_t keep, const struct history_ids *ids)
{
	keep = MIN(keep, h->max_cells / 2);
	/* Before the total: tasks that have been mapped then are not of the total alone. */
	slices_map_tasks(h->slices, ids);
	if (h->moments) {
		slices_map_tasks(h->past, ids);
		moments_map_tasks(h->moments, ids);
	}
	for (uint32_t i = 0; i < h->nr_held; i++)
		h->held[i].task = ids->task(ids->ctx, h->held[i].task);
	if (remap_sums(&h->decay, keep, ids, ids->task) ||
	    remap_sums(&h->total, keep, ids, ids->only_total)) {
		history_reset(h);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < h->nr_held; i++)
		h->held[i].stack = new_stack(ids, h->held[i].stack);
	if (h->moments)
		moments_map_stacks(h->moments, ids);
	/* From the newest one on: when the new tables are full, old stacks are folded. */
	if (slices_remap(h->slices, ids))
		return -ENOMEM;
	return h->moments ? slices_remap(h->past, ids) : 0;
}

size_t history_memory(const struct history *h)
{
	size_t moments = h->moments ? moments_memory(h->moments) + slices_memory(h->past) : 0;

	return sizeof(*h) + h->nr_held * sizeof(*h->held) + sums_memory(&h->decay) +
	       sums_memory(&h->total) + slices_memory(h->slices) + moments;
}
