// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * idmap: ids found, forgotten and replaced while others look.
 * Live: waits for threads or processes.
 */
#include "sampler/event/idmap.c"

#include "tests/prelude.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <urcu-qsbr.h>

#include "symbols/base/base.h"
#include "symbols/base/thread.h"

#define SECOND 1000000000ULL
#define EACH   50u

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

/*
 * Tasks start and end all the time: their ids are known while they are open and IDMAP_KEPT_S after
 * that, and do not add up.
 */
TEST(test_forgotten)
{
	uint64_t next = 100, nr_known = 0;
	struct idmap m;

	idmap_init(&m);
	for (uint64_t id = 1; id <= 8; id++)
		idmap_add(&m, id, (int)id);
	idmap_close(&m, 99, SECOND); /* of nothing */
	for (uint64_t s = 1; s <= 1000; s++) {
		for (uint32_t i = 0; i < EACH; i++)
			idmap_add(&m, next++, 1);
		for (uint64_t id = next - EACH; id < next; id++)
			idmap_close(&m, id, s * SECOND);
		for (uint64_t id = MAX(100ULL, next - IDMAP_KEPT_S * EACH); id < next; id++)
			assert_int_equal(idmap_find(&m, id), 1);
		for (uint64_t id = 1; id <= 8; id++)
			assert_int_equal(idmap_find(&m, id), id);
	}
	for (uint64_t id = 100; id < next; id++)
		nr_known += idmap_find(&m, id) != IDMAP_UNKNOWN;
	assert_in_range(nr_known, IDMAP_KEPT_S * EACH, 8 * IDMAP_KEPT_S * EACH);
	/* One that is there again is open. */
	idmap_add(&m, next - 1, 2);
	idmap_close(&m, next - 2, 5000 * SECOND);
	for (uint64_t id = next; id < next + 10000; id++)
		idmap_add(&m, id, 1);
	assert_int_equal(idmap_find(&m, next - 1), 2);
	assert_int_equal(idmap_find(&m, next - 2), 1);
	assert_int_equal(idmap_find(&m, next - 3), IDMAP_UNKNOWN);
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

	rcu_register_thread();
	while (!atomic_load_explicit(&f->stop, memory_order_relaxed)) {
		for (uint64_t id = 1; id <= 64; id++) {
			if (idmap_find(f->map, id) != (int)(id % 8))
				atomic_fetch_add_explicit(&f->wrong, 1, memory_order_relaxed);
			atomic_fetch_add_explicit(&f->found, 1, memory_order_relaxed);
		}
		rcu_quiescent_state();
	}
	rcu_unregister_thread();
	return NULL;
}

TEST(test_idmap_threads)
{
	struct finder f = { 0 };
	uint64_t ids[64];
	pthread_t threads[3];
	struct idmap m;
	int slots[64];

	assert_int_equal(reclaim_start(), 0);
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
		idmap_close(&m, id, id / 20 * SECOND);
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
	reclaim_wait();
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
