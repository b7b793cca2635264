// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * idmap: ids found, forgotten and replaced while others look.
 */
#include "sampler/event/idmap.h"

#include "tests/prelude.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

TEST(test_idmap)
{
	struct idmap m;

	idmap_init(&m);
	assert_int_equal(idmap_find(&m, 1), IDMAP_UNKNOWN);
	for (uint64_t id = 1; id < 20000; id++) {
		idmap_add(&m, id * 7, (int)(id % 8));
		if (id % 1000 == 0)
			for (uint64_t k = 1; k <= id; k++)
				assert_int_equal(idmap_find(&m, k * 7), k % 8);
	}
	assert_int_equal(idmap_find(&m, 8), IDMAP_UNKNOWN);
	idmap_add(&m, 7, 5);
	assert_int_equal(idmap_find(&m, 7), 5);
	idmap_replace(&m, (uint64_t[]){ 3, 0, 4 }, (int[]){ 1, 2, 0 }, 3);
	assert_int_equal(idmap_find(&m, 3), 1);
	assert_int_equal(idmap_find(&m, 4), 0);
	assert_int_equal(idmap_find(&m, 0), IDMAP_UNKNOWN);
	assert_int_equal(idmap_find(&m, 7), IDMAP_UNKNOWN);
	idmap_fini(&m);
}

struct finder {
	struct idmap *map;
	atomic_bool stop;
	atomic_ulong wrong, found;
};

/* Ids from before the start are found at every moment, with their slots. */
static void *find_always(void *arg)
{
	struct finder *f = arg;

	while (!atomic_load_explicit(&f->stop, memory_order_relaxed))
		for (uint64_t id = 1; id <= 64; id++) {
			if (idmap_find(f->map, id) != (int)(id % 8))
				atomic_fetch_add_explicit(&f->wrong, 1, memory_order_relaxed);
			atomic_fetch_add_explicit(&f->found, 1, memory_order_relaxed);
		}
	return NULL;
}

TEST(test_idmap_threads)
{
	struct finder f = { 0 };
	uint64_t ids[64];
	pthread_t threads[3];
	struct idmap m;
	int slots[64];

	idmap_init(&m);
	for (uint64_t i = 0; i < 64; i++) {
		ids[i] = i + 1;
		slots[i] = (int)((i + 1) % 8);
		idmap_add(&m, ids[i], slots[i]);
	}
	f.map = &m;
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, find_always, &f), 0);
	for (uint64_t id = 100; id < 60000; id++) {
		idmap_add(&m, id, 1);
		if (id % 5000 == 0)
			idmap_replace(&m, ids, slots, 64);
	}
	while (atomic_load(&f.found) < 100000)
		sched_yield();
	atomic_store(&f.stop, true);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&f.wrong), 0);
	idmap_fini(&m);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
