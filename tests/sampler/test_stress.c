// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The tables under more threads than cores, beside a builder that swaps and
 * grows without pause: every sample is in exactly one swapped cell or in
 * exactly one drop counter, to the last one, in each of its keys, and in the
 * tick of its batch.
 *
 * Key k is the stack of depth(k) places with offsets k, k+1, ..., and weighs
 * k + 1: so a cell can be checked against its stack.
 * Live: takes about a second of CPU time, or more.
 */
#include "tests/prelude.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <urcu/urcu-qsbr.h>

#include "sampler/count/count.h"
#include "symbols/base/base.h"
#include "symbols/base/table.h"
#include "symbols/base/thread.h"
#include "symbols/name/name.h"

#define NR_THREADS 8
#define NR_KEYS	   30000u
#define DEPTH_MAX  16
#define NR_EVENTS  3
#define TICKS_MIN  12u
#define NR_FIRST   256u

struct stress {
	struct places *places;
	struct stacks *stacks;
	struct counts *counts;
	atomic_bool stop;
	atomic_uint nr_begun; /* samplers that have taken their first samples */
	uint32_t nr_ticks;
};

struct sampler {
	struct stress *stress;
	uint32_t task;
	uint64_t random;
	uint64_t nr_samples;
	uint64_t by_tick[2]; /* counted in a tick: written by the builder once it is over */
	uint64_t nr_added, nr_places_full, nr_stacks_full, nr_cells_full;
	uint32_t *added; /* by key */
};

static uint32_t depth(uint32_t key)
{
	return key % DEPTH_MAX + 1;
}

static uint32_t random_key(struct sampler *s)
{
	s->random = hash_u64(s->random + 0x9e3779b97f4a7c15ULL);
	/* Half of the samples in a few hot keys, as in life. */
	return s->random & 1 ? (s->random >> 8) % 16 : (s->random >> 8) % NR_KEYS;
}

/* One sample's way; each end is counted once. @batch: the table, of @tick. */
static void sample(struct sampler *s, uint32_t key, struct counts_table **batch, uint32_t tick)
{
	struct stress *st = s->stress;
	uint32_t places[DEPTH_MAX], stack;

	for (uint32_t i = 0; i < depth(key); i++) {
		places[i] = places_intern(st->places, 7, key + i);
		if (places[i] == PLACE_NONE) {
			s->nr_places_full++;
			return;
		}
	}
	stack = stacks_intern(st->stacks, places, depth(key));
	if (stack == STACK_NONE) {
		s->nr_stacks_full++;
		return;
	}
	if (!counts_add_to(st->counts, batch, stack, s->task, key % NR_EVENTS, key + 1, 0)) {
		s->nr_cells_full++;
		return;
	}
	s->nr_added++;
	s->by_tick[tick & 1]++;
	s->added[key]++;
}

static void *sampler_main(void *arg)
{
	struct sampler *s = arg;
	struct counts_table *batch;
	uint32_t tick;

	urcu_qsbr_register_thread();
	batch = counts_begin(s->stress->counts, &tick);
	while (!atomic_load_explicit(&s->stress->stop, memory_order_relaxed)) {
		sample(s, random_key(s), &batch, tick);
		if (++s->nr_samples % 8 == 0) {
			grace_reader_done(s->stress);
			urcu_qsbr_quiescent_state();
			batch = counts_begin(s->stress->counts, &tick);
		}
		if (s->nr_samples == NR_FIRST)
			atomic_fetch_add_explicit(&s->stress->nr_begun, 1, memory_order_relaxed);
	}
	urcu_qsbr_unregister_thread();
	return NULL;
}

struct totals {
	uint64_t count, weight;
	uint64_t nr_wrong;
	uint32_t *by_key;
	uint32_t *stack; /* by key, id + 1 */
};

/* Read the stack behind a cell; false unless it is one of ours, whole. */
static bool count_key_of(const struct stress *st, const struct count *c, uint32_t *key)
{
	struct stacks_room room;
	uint32_t nr;
	const uint32_t *places = stacks_at(st->stacks, c->stack, &room, &nr);
	const struct place *first = places && nr ? places_at(st->places, places[0]) : NULL;

	if (!first || first->offset >= NR_KEYS || depth(first->offset) != nr)
		return false;
	for (uint32_t i = 0; i < nr; i++) {
		const struct place *place = places_at(st->places, places[i]);

		if (!place || place->object != 7 || place->offset != first->offset + i)
			return false;
	}
	*key = first->offset;
	return true;
}

/* Take the counts of a tick: no more and no less than its samplers counted for it. */
static void take_cells(struct stress *st, struct sampler *samplers, struct totals *sums)
{
	uint32_t nr, key, tick = counts_tick(st->counts);
	uint64_t in_tick = 0, by_samplers = 0;
	struct count *counts;

	assert_int_equal(counts_end_tick(st->counts, &counts, &nr), 0);
	grace_waited(st);
	for (uint32_t i = 0; i < NR_THREADS; i++) {
		by_samplers += samplers[i].by_tick[tick & 1];
		samplers[i].by_tick[tick & 1] = 0;
	}
	for (uint32_t i = 0; i < nr; i++) {
		in_tick += counts[i].count;
		sums->count += counts[i].count;
		sums->weight += counts[i].weight;
		if (!count_key_of(st, &counts[i], &key) || counts[i].event != key % NR_EVENTS ||
		    counts[i].weight != counts[i].count * (key + 1) ||
		    counts[i].task >= NR_THREADS) {
			sums->nr_wrong++;
			continue;
		}
		/* However the tables grew, a stack has one id. */
		sums->nr_wrong += sums->stack[key] && sums->stack[key] != counts[i].stack + 1;
		sums->stack[key] = counts[i].stack + 1;
		sums->by_key[key] += counts[i].count;
	}
	assert_int_equal(in_tick, by_samplers);
	free(counts);
}

static void start(struct stress *st, struct sampler *samplers, pthread_t *threads)
{
	for (uint32_t i = 0; i < NR_THREADS; i++) {
		samplers[i] = (struct sampler){ .stress = st, .task = i, .random = i + 1 };
		samplers[i].added = xcalloc(NR_KEYS, sizeof(*samplers[i].added));
		assert_int_equal(pthread_create(&threads[i], NULL, sampler_main, &samplers[i]), 0);
	}
}

/* Be the builder for the given ticks, then stop and join the samplers and take the rest. */
static void build(struct stress *st, struct sampler *samplers, struct totals *sums,
		  pthread_t *threads)
{
	/* Grace periods are slow under sanitizers: fewer ticks then, but enough to grow in. */
	uint64_t deadline_ns = time_now_ns() + 1500000000;

	/* On a full machine all ticks may be over before the first sampler runs. */
	urcu_qsbr_thread_offline();
	while (atomic_load_explicit(&st->nr_begun, memory_order_relaxed) < NR_THREADS)
		sched_yield();
	urcu_qsbr_thread_online();
	for (uint32_t tick = 0; tick < st->nr_ticks; tick++) {
		if (tick >= TICKS_MIN && time_now_ns() > deadline_ns)
			break;
		take_cells(st, samplers, sums);
		assert_int_equal(places_grow(st->places), 0);
		stacks_grow(st->stacks);
		/* in the middle of a tick */
		if (tick % 2)
			counts_grow(st->counts);
		sched_yield();
	}
	atomic_store_explicit(&st->stop, true, memory_order_relaxed);
	urcu_qsbr_thread_offline();
	for (uint32_t i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	urcu_qsbr_thread_online();
	take_cells(st, samplers, sums);
}

/* Everything the samplers did is in the sums, key by key. @all: their counters together. */
static void check(const struct sampler *samplers, const struct totals *sums, struct sampler *all)
{
	uint64_t weight = 0;

	for (uint32_t i = 0; i < NR_THREADS; i++) {
		all->nr_samples += samplers[i].nr_samples;
		all->nr_added += samplers[i].nr_added;
		all->nr_places_full += samplers[i].nr_places_full;
		all->nr_stacks_full += samplers[i].nr_stacks_full;
		all->nr_cells_full += samplers[i].nr_cells_full;
	}
	for (uint32_t key = 0; key < NR_KEYS; key++) {
		uint64_t added = 0;

		for (uint32_t i = 0; i < NR_THREADS; i++)
			added += samplers[i].added[key];
		assert_int_equal(sums->by_key[key], added);
		weight += added * (key + 1);
	}
	assert_int_equal(sums->nr_wrong, 0);
	assert_int_equal(sums->count, all->nr_added);
	assert_int_equal(sums->weight, weight);
	assert_int_equal(all->nr_added + all->nr_places_full + all->nr_stacks_full +
				 all->nr_cells_full,
			 all->nr_samples);
}

static void run(struct stress *st, struct sampler *all)
{
	struct sampler samplers[NR_THREADS];
	pthread_t threads[NR_THREADS];
	struct totals sums = {
		.by_key = xcalloc(NR_KEYS, sizeof(*sums.by_key)),
		.stack = xcalloc(NR_KEYS, sizeof(*sums.stack)),
	};

	urcu_qsbr_register_thread();
	start(st, samplers, threads);
	build(st, samplers, &sums, threads);
	urcu_qsbr_unregister_thread();
	check(samplers, &sums, all);
	print_message("%lu added, dropped: %lu places, %lu stacks, %lu cells\n", all->nr_added,
		      all->nr_places_full, all->nr_stacks_full, all->nr_cells_full);
	for (uint32_t i = 0; i < NR_THREADS; i++)
		free(samplers[i].added);
	free(sums.by_key);
	free(sums.stack);
	counts_free(st->counts);
	stacks_free(st->stacks);
	places_free(st->places);
}

/* Cells start at 8 slots, stacks and places outgrow their first chunks and slots. */
TEST(test_growing)
{
	struct stress st = { .nr_ticks = 60 };
	struct sampler all = { 0 };

	assert_int_equal(places_new(&st.places, 1u << 20), 0);
	assert_int_equal(stacks_new(&st.stacks, 1u << 20, 64 << 20), 0);
	assert_int_equal(counts_new(&st.counts, 8, 1u << 16), 0);
	run(&st, &all);
	assert_true(all.nr_cells_full > 0);
	assert_true(all.nr_added > 0);
}

/* Every table too small for the load: all three kinds of drop, and still exact. */
TEST(test_full)
{
	struct stress st = { .nr_ticks = 60 };
	struct sampler all = { 0 };

	assert_int_equal(places_new(&st.places, 3000), 0);
	assert_int_equal(stacks_new(&st.stacks, 200, 1 << 20), 0);
	assert_int_equal(counts_new(&st.counts, 8, 32), 0);
	run(&st, &all);
	assert_true(all.nr_added > 0);
	assert_true(all.nr_places_full > 0);
	assert_true(all.nr_stacks_full > 0);
	assert_true(all.nr_cells_full > 0);
}

/* Stacks run out of memory, not of ids: the arena's end under contention. */
TEST(test_out_of_arena)
{
	struct stress st = { .nr_ticks = 30 };
	struct sampler all = { 0 };

	assert_int_equal(places_new(&st.places, 1u << 20), 0);
	assert_int_equal(stacks_new(&st.stacks, 1u << 20, 0), 0);
	assert_int_equal(counts_new(&st.counts, 1u << 14, 1u << 16), 0);
	run(&st, &all);
	assert_true(all.nr_stacks_full > 0);
	assert_true(all.nr_added > 0);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
