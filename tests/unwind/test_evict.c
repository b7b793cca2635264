// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Images are evicted and loaded again while threads unwind through them: a complete stack is always
 * the right one, each request is answered, and freed memory is never read (SAN=address,
 * SAN=thread).
 * Live: waits for threads or processes.
 */
#include "tests/prelude_rcu.h"

#include <linux/perf_event.h>
#include <pthread.h>
#include <unistd.h>

#include "symbols/elf/elf.h"
#include "tests/unwind/shot.h"
#include "tests/unwind/world.h"
#include "unwind/unwind.h"
#include "symbols/base/base.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/image/image.h"
#include "symbols/process/process.h"
#include "symbols/name/name.h"
#include "symbols/symbols.h"

#define NR_THREADS 2
#define RUN_NS	   2000000000ULL
#define RUN_MAX_NS 60000000000ULL /* so long on a machine that is slow or full */
#define EVICTIONS  8U

static struct shot shot;

static int compare(const void *a, const void *b)
{
	if (!shot.size) {
		shot_regs(&shot);
		shot_stack(&shot);
	}
	return *(const int *)a - *(const int *)b;
}

struct reader {
	struct world *w;
	const struct unwind_result *want;
	const atomic_bool *stop;
	pthread_t id;
	unsigned long nr_complete, nr_pending, nr_wrong, nr_other;
};

static void unwind(struct unwinder *u, const struct space *space, struct unwind_result *out)
{
	const struct unwind_input in = SHOT_INPUT(shot, space, time_now_ns());

	unwind_sample(u, &in, out);
}

static void count_stop(struct reader *r, const struct unwind_result *out)
{
	switch (out->stop) {
	case UNWIND_COMPLETE:
		if (out->nr_guessed)
			r->nr_other++;
		else if (out->nr != r->want->nr ||
			 memcmp(out->ip, r->want->ip, out->nr * sizeof(out->ip[0])))
			r->nr_wrong++;
		else
			r->nr_complete++;
		break;
	case UNWIND_PENDING:
		r->nr_pending++;
		break;
	default:
		r->nr_other++;
	}
}

static void *read_stacks(void *arg)
{
	const struct unwind_config steps = { .step_only = true };
	struct unwind_result *out = malloc(sizeof(*out));
	struct reader *r = arg;
	struct unwinder *u;

	world_must(unwind_new_with(&u, r->w->places, r->w->objects, &steps, NULL));
	rcu_register_thread();
	while (!atomic_load(r->stop)) {
		for (int i = 0; i < 50; i++) {
			unwind(u, r->w->space, out);
			count_stop(r, out);
		}
		rcu_quiescent_state();
		if (out->stop == UNWIND_PENDING)
			symbols_wake(r->w->symbols);
	}
	rcu_unregister_thread();
	unwind_free(u);
	free(out);
	return NULL;
}

/* The objects that the stack goes through, and one that it does not; by their bytes. */
static size_t tight_limit(struct world *w, const struct unwind_result *out, struct object **apart)
{
	size_t largest = 0, smallest = SIZE_MAX;
	bool used[64] = { false };

	for (uint32_t i = 0; i < out->nr; i++)
		used[MIN(places_at(w->places, out->place[i])->object, 63U)] = true;
	for (uint32_t id = OBJECT_ID_FIRST; id < MIN(objects_nr(w->objects), 63U); id++) {
		struct object *object = objects_at(w->objects, id);
		size_t memory = atomic_load(&object->memory);

		if (!used[id] && memory)
			*apart = object;
		else if (used[id]) {
			largest = MAX(largest, memory);
			smallest = MIN(smallest, memory);
		}
	}
	assert_non_null(*apart);
	assert_true(smallest > 1000 && smallest < SIZE_MAX);
	return atomic_load(&(*apart)->memory) + largest + smallest / 2;
}

static unsigned long nr_evicted(const struct world *w)
{
	struct symbols_stats stats;

	symbols_stats(w->symbols, &stats);
	return (unsigned long)stats.nr_evicted;
}

/*
 * Until enough have left: the one apart is the last that was used, all others long
 * before it, so that they leave without being held back for a while.
 */
static void keep_apart(struct world *w, struct object *apart)
{
	uint64_t begin = time_now_ns();

	while (time_now_ns() < begin + RUN_NS ||
	       (nr_evicted(w) < EVICTIONS && time_now_ns() < begin + RUN_MAX_NS)) {
		uint32_t clock = object_clock(time_now_ns());

		for (uint32_t id = OBJECT_ID_FIRST; id < objects_nr(w->objects); id++)
			object_touch(objects_at(w->objects, id), clock);
		object_touch(apart, clock + 1000);
		usleep(1000);
	}
}

TEST(test_evict_while_unwinding)
{
	int v[] = { 3, 1, 2 };
	struct unwind_result *want = malloc(sizeof(*want));
	struct reader readers[NR_THREADS] = { 0 };
	struct symbols_stats stats;
	struct object *apart = NULL;
	unsigned long nr_met = 0;
	atomic_bool stop = false;
	struct world w;
	void *end;

	/* Deep enough for any stack here; the frames above are cut. */
	pthread_attr_t attr;
	size_t size;

	pthread_getattr_np(pthread_self(), &attr);
	pthread_attr_getstack(&attr, &end, &size);
	pthread_attr_destroy(&attr);
	shot.stack_end = (uint64_t)(uintptr_t)end + size;
	qsort(v, 3, sizeof(v[0]), compare);
	assert_true(shot.size > 0);

	world_new(&w);
	world_load(&w, getpid());
	unwind(w.step, w.space, want);
	assert_int_equal(want->stop, UNWIND_COMPLETE);
	symbols_configure(w.symbols,
			  &(struct symbols_config){ .memory_max = tight_limit(&w, want, &apart) });
	world_must(symbols_start(w.symbols, NULL));
	for (int i = 0; i < NR_THREADS; i++) {
		readers[i].w = &w;
		readers[i].want = want;
		readers[i].stop = &stop;
		assert_int_equal(pthread_create(&readers[i].id, NULL, read_stacks, &readers[i]), 0);
	}
	rcu_thread_offline();
	keep_apart(&w, apart);
	atomic_store(&stop, true);
	for (int i = 0; i < NR_THREADS; i++) {
		pthread_join(readers[i].id, NULL);
		print_message("thread %d: %lu complete, %lu pending, %lu others\n", i,
			      readers[i].nr_complete, readers[i].nr_pending, readers[i].nr_other);
		assert_int_equal(readers[i].nr_wrong, 0);
		nr_met += readers[i].nr_complete + readers[i].nr_pending;
	}
	assert_true(nr_met > 0);
	symbols_stop(w.symbols);
	rcu_thread_online();
	symbols_stats(w.symbols, &stats);
	print_message("%lu times an image left, %zu of %zu bytes\n",
		      (unsigned long)stats.nr_evicted, stats.image_memory, stats.image_memory_max);
	assert_true(stats.nr_evicted >= EVICTIONS);
	assert_true(stats.image_memory <= 2 * stats.image_memory_max);
	free(want);
	world_free(&w);
}

int main(void)
{
	return run_rcu_tests(NULL, NULL);
}
