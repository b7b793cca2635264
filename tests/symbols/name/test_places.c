// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * places: identity, growth beyond chunks, full, names, and threads that race
 * for the same places beside a growing builder.
 * Live: a million places take more than a second.
 */
#include "symbols/name/places.c"

#include "tests/prelude.h"
#include "tests/resident.h"

#include <pthread.h>
#include <urcu/urcu-qsbr.h>

#include "symbols/base/base.h"

static size_t places_memory(const struct places *p)
{
	return sizeof(*p) + p->max_chunks * sizeof(p->chunk[0]) + intern_memory(&p->intern) +
	       p->nr_chunks * CHUNK_SIZE * sizeof(struct place);
}

#define NR_THREADS 8
#define NR_KEYS	   40000u

TEST(test_same_key_same_id)
{
	struct places *p;
	uint32_t a, b, c;

	assert_int_equal(places_new(&p, 1000), 0);
	a = places_intern(p, 3, 0x1000);
	b = places_intern(p, 4, 0x1000);
	c = places_intern(p, 3, 0x1001);
	assert_int_equal(a, 0);
	assert_int_equal(b, 1);
	assert_int_equal(c, 2);
	assert_int_equal(places_intern(p, 3, 0x1000), a);
	assert_int_equal(places_intern(p, 4, 0x1000), b);
	assert_int_equal(places_nr(p), 3);
	assert_int_equal(places_at(p, b)->object, 4);
	assert_int_equal(places_at(p, c)->offset, 0x1001);
	assert_null(places_at(p, 3));
	assert_null(places_at(p, 999));
	assert_null(places_at(p, 1000));
	assert_null(places_at(p, PLACE_NONE));
	places_free(p);
}

TEST(test_extreme_keys)
{
	struct places *p;
	uint32_t a, b, c;

	assert_int_equal(places_new(&p, 16), 0);
	a = places_intern(p, 0, 0);
	b = places_intern(p, UINT32_MAX, UINT64_MAX);
	c = places_intern(p, UINT32_MAX, 0);
	assert_true(a != b && b != c && a != c);
	assert_int_equal(places_intern(p, UINT32_MAX, UINT64_MAX), b);
	assert_true(places_at(p, b)->offset == UINT64_MAX);
	places_free(p);
}

TEST(test_full_is_full_and_stays_usable)
{
	struct places *p;

	assert_int_equal(places_new(&p, 10), 0);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(places_intern(p, 1, i), i);
	for (uint32_t i = 10; i < 5000; i++)
		assert_int_equal(places_intern(p, 1, i), PLACE_NONE);
	assert_int_equal(places_nr(p), 10);
	assert_int_equal(places_grow(p), 0);
	assert_int_equal(places_intern(p, 1, 77), PLACE_NONE);
	assert_int_equal(places_intern(p, 1, 7), 7);
	places_free(p);
}

/*
 * A builder without a CPU costs no place: a million fit without places_grow(). With it all do, and
 * no id moves and none is burnt.
 */
TEST(test_grow)
{
	enum { NR = SANITIZED ? 100000 : 1200000 };
	struct places *p;
	uint32_t first;
	size_t before;

	assert_int_equal(places_new(&p, 1u << 22), 0);
	assert_int_equal(places_begin_small(p), 0);
	before = places_memory(p);
	for (first = 0; first < NR && places_intern(p, 9, first) == first; first++)
		;
	assert_in_range(first, MIN(NR, 1000000), NR);
	for (uint32_t i = 0; first < NR && i < 1000; i++)
		assert_int_equal(places_intern(p, 9, first + i), PLACE_NONE);
	assert_true(places_crowded(p));
	for (uint32_t i = first; i < NR; i++) {
		if (places_intern(p, 9, i) != PLACE_NONE)
			continue;
		assert_int_equal(places_grow(p), 0);
		assert_int_equal(places_intern(p, 9, i), i);
	}
	assert_int_equal(places_nr(p), NR);
	assert_int_equal(places_grow(p), 0);
	assert_true(places_memory(p) > before);
	for (uint32_t i = 0; i < NR; i++) {
		assert_int_equal(places_intern(p, 9, i), i);
		assert_true(places_at(p, i)->offset == i);
	}
	places_free(p);
}

/* Places ahead of the writers are not resident: 512 KiB are slots. */
TEST(test_ahead_is_free)
{
	long before = resident_kb();
	struct places *p[16];

	for (uint32_t i = 0; i < ARRAY_SIZE(p); i++) {
		assert_int_equal(places_new(&p[i], 1u << 22), 0);
		for (uint32_t at = 0; at < 1000; at++)
			places_intern(p[i], 9, at);
	}
	if (!SANITIZED)
		assert_in_range(resident_kb() - before, 0, 16 * 600);
	for (uint32_t i = 0; i < ARRAY_SIZE(p); i++)
		places_free(p[i]);
}

/* A small table that is grown when it is crowded refuses none. */
TEST(test_begin_small)
{
	uint32_t grown = 0;
	struct places *p;

	assert_int_equal(places_new(&p, 1u << 20), 0);
	assert_int_equal(places_begin_small(p), 0);
	for (uint32_t i = 0; i < 200000; i++) {
		if (places_crowded(p)) {
			assert_int_equal(places_grow(p), 0);
			assert_false(places_crowded(p));
			grown++;
		}
		assert_int_equal(places_intern(p, i % 7, i), i);
	}
	assert_in_range(grown, 4, 40);
	for (uint32_t i = 0; i < 200000; i++)
		assert_int_equal(places_intern(p, i % 7, i), i);
	places_free(p);
}

/* Intern 20,000 places of an object. Return how many are refused. */
static uint32_t nr_refused(struct places *p, uint32_t object)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < 20000; i++) {
		nr += places_intern(p, object, 0x1000 + i * 16ULL) == PLACE_NONE;
		if (places_crowded(p))
			assert_int_equal(places_grow(p), 0);
	}
	return nr;
}

/* Addresses that fill one run of slots, for a hash without a secret: no place of others is refused.
 */
TEST(test_chosen_offsets)
{
	enum { OBJECT = 777, NR = 12000, SLOTS = 1 << 20 };
	uint64_t key = hash_u64(OBJECT + 1ULL);
	uint32_t nr = 0, own = 0, others;
	struct places *p;

	assert_int_equal(places_new(&p, 1u << 22), 0);
	for (uint64_t at = 0x7f0000000000ULL; nr < NR; at += 4) {
		if ((hash_u64(at ^ key) >> 32) % SLOTS >= NR)
			continue;
		nr++;
		own += places_intern(p, OBJECT, at) == PLACE_NONE;
		if (places_crowded(p))
			assert_int_equal(places_grow(p), 0);
	}
	others = nr_refused(p, 5);
	if (own || others)
		fail_msg("refused: %u of %u chosen places, %u of 20000 others", own, nr, others);
	places_free(p);
}

TEST(test_names)
{
	struct places *p;
	uint32_t id;

	assert_int_equal(places_new(&p, 100), 0);
	id = places_intern(p, 1, 2);
	assert_int_equal(atomic_load(&places_at(p, id)->symbol), SYMBOL_NONE);
	places_name(p, id, 42);
	assert_int_equal(atomic_load(&places_at(p, id)->symbol), 42);
	assert_int_equal(places_intern(p, 1, 2), id);
	/* An id never handed out has no place to name. */
	places_name(p, id + 1, 43);
	assert_null(places_at(p, id + 1));
	places_free(p);
}

struct race {
	struct places *places;
	atomic_uint nr_running;
};

struct racer {
	struct race *race;
	uint32_t seed;
	uint32_t nr_wrong;
	uint32_t *ids; /* the first id seen for each key */
};

/* Intern every key in an order of our own; each id must lead back to its key. */
static void *racer_main(void *arg)
{
	struct racer *r = arg;
	struct places *p = r->race->places;

	urcu_qsbr_register_thread();
	for (uint32_t i = 0; i < NR_KEYS; i++) {
		uint32_t key = (i * 7919 + r->seed) % NR_KEYS;
		const struct place *place;

		do {
			r->ids[key] = places_intern(p, key & 3, key);
			urcu_qsbr_quiescent_state();
		} while (r->ids[key] == PLACE_NONE);
		place = places_at(p, r->ids[key]);
		r->nr_wrong += !place || place->offset != key || place->object != (key & 3);
	}
	atomic_fetch_sub(&r->race->nr_running, 1);
	urcu_qsbr_unregister_thread();
	return NULL;
}

TEST(test_race)
{
	struct race race = { .nr_running = NR_THREADS };
	struct racer racers[NR_THREADS];
	pthread_t threads[NR_THREADS];

	assert_int_equal(places_new(&race.places, 1u << 20), 0);
	urcu_qsbr_register_thread();
	for (uint32_t i = 0; i < NR_THREADS; i++) {
		racers[i] = (struct racer){ &race, i * 5000, 0, xcalloc(NR_KEYS, 4) };
		assert_int_equal(pthread_create(&threads[i], NULL, racer_main, &racers[i]), 0);
	}
	while (atomic_load(&race.nr_running)) {
		assert_int_equal(places_grow(race.places), 0);
		urcu_qsbr_quiescent_state();
	}
	urcu_qsbr_thread_offline();
	for (uint32_t i = 0; i < NR_THREADS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(racers[i].nr_wrong, 0);
		for (uint32_t key = 0; key < NR_KEYS; key++)
			assert_int_equal(racers[i].ids[key], racers[0].ids[key]);
		if (i)
			free(racers[i].ids);
	}
	free(racers[0].ids);
	/* Only an id that lost a race for its key is wasted: one a key and thread, at the very
	 * most. */
	assert_in_range(places_nr(race.places), NR_KEYS, NR_THREADS * NR_KEYS);
	urcu_qsbr_unregister_thread();
	places_free(race.places);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
