// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * reclaim: no thread can be started, order, readers.
 * Live: waits for threads or processes.
 */
#include "tests/prelude.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "symbols/base/thread.h"

#define NR     1000
#define ROUNDS 200

struct entry {
	struct reclaim reclaim;
	int number;
};

static struct entry entries[NR];
static atomic_int nr_freed, nr_wrong;

static void free_in_order(struct reclaim *r)
{
	const struct entry *e = (const struct entry *)((char *)r - offsetof(struct entry, reclaim));

	if (e->number != atomic_fetch_add(&nr_freed, 1))
		atomic_fetch_add(&nr_wrong, 1);
}

/* The first test: the thread runs from then on. */
TEST(test_no_thread)
{
	struct rlimit before, none;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	skip_test("not on this machine: a sanitizer that starts threads without memory");
#endif
	assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
	none = before;
	none.rlim_cur = 0;
	atomic_store(&nr_freed, 0);
	assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
	assert_int_equal(reclaim_start(), -ENOMEM);
	entries[0].number = 0;
	reclaim_later(&entries[0].reclaim, free_in_order);
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
	assert_int_equal(nr_freed, 0);
	/* It was kept, and is free now. */
	assert_int_equal(reclaim_start(), 0);
	reclaim_wait();
	assert_int_equal(nr_freed, 1);
}

TEST(test_order)
{
	atomic_store(&nr_freed, 0);
	for (int i = 0; i < NR; i++) {
		entries[i].number = i;
		reclaim_later(&entries[i].reclaim, free_in_order);
	}
	reclaim_wait();
	assert_int_equal(nr_freed, NR);
	assert_int_equal(nr_wrong, 0);
}

/* An object as readers find it: freed is 0xdead. */
struct shared {
	struct reclaim reclaim;
	int value;
};

static _Atomic(struct shared *) shared;
static atomic_bool done;

static void free_shared(struct reclaim *r)
{
	struct shared *s = (struct shared *)((char *)r - offsetof(struct shared, reclaim));

	reclaim_grace_over();
	s->value = 0xdead;
	free(s);
}

static void *read_shared(void *arg)
{
	rcu_register_thread();
	while (!atomic_load(&done)) {
		const struct shared *s = atomic_load(&shared);

		if (s->value != 7)
			atomic_fetch_add(&nr_wrong, 1);
		reclaim_reader_done();
		rcu_quiescent_state();
	}
	rcu_unregister_thread();
	return arg;
}

static struct shared *new_shared(void)
{
	struct shared *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	s->value = 7;
	return s;
}

TEST(test_readers)
{
	struct shared *last;
	pthread_t reader;

	atomic_store(&shared, new_shared());
	assert_int_equal(pthread_create(&reader, NULL, read_shared, NULL), 0);
	for (int i = 0; i < ROUNDS; i++) {
		last = atomic_exchange(&shared, new_shared());
		reclaim_later(&last->reclaim, free_shared);
		sched_yield();
	}
	reclaim_wait();
	atomic_store(&done, true);
	pthread_join(reader, NULL);
	free(atomic_load(&shared));
	assert_int_equal(nr_wrong, 0);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
