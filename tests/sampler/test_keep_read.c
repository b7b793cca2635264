// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Folders for --open that were written to do harm: reading them can be stopped, takes a bounded
 * amount of memory, and takes no function for another one.
 * Live: waits for threads or processes.
 */
#include "sampler/keep.c"

#include "tests/prelude_rcu.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "sampler/record/record.h"
#include "unwind/unwind.h"
#include "symbols/base/base.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/script/script.h"
#include "symbols/process/process.h"
#include "symbols/name/name.h"
#include "symbols/code/code.h"
#include "symbols/symbols.h"
#include "sampler/ring/ring.h"
#include "sampler/count/internal.h"
#include "sampler/profile/profile.h"
#include "sampler/hot/hot.h"

#define SECOND 1000000000ULL
#define BEGIN  (1700000000 * SECOND)

struct fixture {
	char dir[40], path[64];
	struct sampler_config config;
	struct store st;
	struct keep_read *k;
	struct keep_read_result result;
	struct keepfile_out out; /* the segment */
	atomic_bool stopped;
};

static int64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * (int64_t)SECOND + ts.tv_nsec;
}

/* Begin a segment with one event. */
static void t_begin_segment(struct fixture *f)
{
	const struct keepfile_event clock = { { "cpu-clock", 9 }, 99, true };

	memset(f, 0, sizeof(*f));
	snprintf(f->dir, sizeof(f->dir), "/tmp/test_keep_read.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	keepfile_header(&f->out);
	keepfile_put_events(&f->out, &clock, 1);
}

static void put_function(struct fixture *f, uint32_t id, char kind, const char *name,
			 const char *module)
{
	const struct keepfile_function function = {
		id, kind, false, false, { name, strlen(name) }, { module, strlen(module) }
	};

	keepfile_put_function(&f->out, &function);
	keepfile_put_stack(&f->out, id, &id, 1);
}

static void t_put_task(struct fixture *f, uint32_t id, uint32_t pid)
{
	const struct keepfile_task task = { id, pid, pid, { "a", 1 }, { "a", 1 }, 0 };

	keepfile_put_task(&f->out, &task);
}

/* Begin a segment with one function and one task. */
static void begin_simple(struct fixture *f)
{
	t_begin_segment(f);
	put_function(f, 0, 'u', "f", "/m");
	t_put_task(f, 0, 10);
}

/* Append a slice of 100 ms: the one with number @i. */
static void t_put_slice(struct fixture *f, uint32_t i, struct count *counts, uint32_t nr)
{
	struct slice slice = { .begin_ns = BEGIN + i * (SECOND / 10) };

	slice.end_ns = slice.begin_ns + SECOND / 10;
	assert_int_equal(slice_pack(&slice, counts, nr), 0);
	keepfile_put_slice(&f->out, &slice);
	free(slice.bytes);
}

/* Write the segment and open the folder. */
static void t_open_folder(struct fixture *f)
{
	FILE *out;
	struct err e;

	snprintf(f->path, sizeof(f->path), "%s/00000001.keep", f->dir);
	out = fopen(f->path, "w");
	assert_non_null(out);
	assert_false(f->out.failed);
	assert_int_equal(fwrite(f->out.bytes, 1, f->out.size, out), f->out.size);
	assert_int_equal(fclose(out), 0);
	f->config = (struct sampler_config){ .replay = f->dir, .window_ns = 5 * SECOND };
	if (keep_read_open(&f->k, &f->config, &e) || store_open(&f->st, &f->config, &e))
		fail_msg("%s", e.text);
	maps_no_proc(f->st.maps);
	f->st.shared = aligned_alloc(CACHELINE, sizeof(*f->st.shared));
	memset(f->st.shared, 0, sizeof(*f->st.shared));
	store_publish(&f->st, f->st.shared, &f->config, 0, -1, 0);
}

static int read_folder(struct fixture *f)
{
	return keep_read_run(f->k, &f->st, &f->stopped, &f->result);
}

static void close_folder(struct fixture *f)
{
	struct sampler_thread_shared *shared = f->st.shared;
	char command[64];

	keep_read_close(f->k);
	store_close(&f->st);
	free(shared);
	keepfile_fini(&f->out);
	snprintf(command, sizeof(command), "rm -r %s", f->dir);
	assert_int_equal(system(command), 0);
}

/* Add the segment to the folder @nr times more. */
static void link_segments(const struct fixture *f, uint32_t nr)
{
	char path[64];

	for (uint32_t i = 0; i < nr; i++) {
		snprintf(path, sizeof(path), "%s/%08x.keep", f->dir, 2 + i);
		assert_int_equal(link(f->path, path), 0);
	}
}

/* Stop when something is read. */
static void *stop_main(void *arg)
{
	struct fixture *f = arg;

	while (!keep_read_permille(f->k))
		usleep(1000);
	atomic_store(&f->stopped, true);
	return NULL;
}

/* A folder is not read to its end by a session that ends. */
TEST(test_stop)
{
	struct fixture f;
	pthread_t thread;
	int64_t begin, took;

	begin_simple(&f);
	for (uint32_t i = 0; i < 40000; i++)
		t_put_slice(&f, i, &(struct count){ 0, 0, 0, 1, 1, 0 }, 1);
	t_open_folder(&f);
	keep_read_close(f.k);
	link_segments(&f, 500);
	assert_int_equal(keep_read_open(&f.k, &f.config, &(struct err){ 0 }), 0);
	begin = cpu_ns();
	assert_int_equal(pthread_create(&thread, NULL, stop_main, &f), 0);
	assert_int_equal(read_folder(&f), -ECANCELED);
	took = cpu_ns() - begin;
	pthread_join(thread, NULL);
	assert_true(keep_read_permille(f.k) < 500);
	print_message("%d permille, %d ms of CPU time\n", (int)keep_read_permille(f.k),
		      (int)(took / 1000000));
	close_folder(&f);
}

/* Slices with the largest number of samples: the sum has a limit as well. */
TEST(test_sum_of_samples)
{
	struct fixture f;

	begin_simple(&f);
	for (uint32_t i = 0; i < 1026; i++)
		t_put_slice(&f, i, &(struct count){ 0, 0, 0, SLICE_COUNT_MAX, 1, 0 }, 1);
	t_open_folder(&f);
	assert_int_equal(read_folder(&f), 0);
	assert_true(f.result.samples == 1024 * SLICE_COUNT_MAX);
	assert_int_equal(f.result.nr_damaged, 2);
	close_folder(&f);
}

/* A clock that was set back writes a time twice: its samples are counted. */
TEST(test_clock_back)
{
	struct fixture f;

	begin_simple(&f);
	for (uint32_t i = 0; i < 20; i++)
		t_put_slice(&f, i < 10 ? i : i - 5, &(struct count){ 0, 0, 0, 3, 1, 0 }, 1);
	t_open_folder(&f);
	assert_int_equal(read_folder(&f), 0);
	assert_int_equal(f.result.samples, 45);
	assert_int_equal(f.result.back, 15);
	close_folder(&f);
}

/* Return the weight of all slices; each count has at least @least. */
static uint64_t t_weight_of(const struct fixture *f, uint64_t least)
{
	const struct slices *slices = history_slices(f->st.history);
	uint64_t weight = 0;

	for (uint32_t i = 0; i < slices_nr(slices); i++) {
		struct slice_reader r;
		struct count c;

		for (slice_read_begin(&r, slices_at(slices, i)); slice_read(&r, &c);) {
			assert_true(c.weight >= least);
			weight += c.weight;
		}
	}
	return weight;
}

/* Slices with the largest weights: no sum of them goes over 64 bits. */
TEST(test_sum_of_weights)
{
	struct fixture f;

	begin_simple(&f);
	for (uint32_t i = 0; i < 40; i++)
		t_put_slice(&f, i, &(struct count){ 0, 0, 0, 1, SLICE_WEIGHT_MAX / 8, 0 }, 1);
	t_open_folder(&f);
	assert_int_equal(read_folder(&f), 0);
	assert_int_equal(f.result.samples, 8);
	assert_int_equal(f.result.nr_damaged, 32);
	assert_true(t_weight_of(&f, SLICE_WEIGHT_MAX / 8) == SLICE_WEIGHT_MAX);
	close_folder(&f);
}

/* Return the samples of functions of this name in all slices. */
static uint64_t samples_of(const struct fixture *f, const char *name)
{
	const struct slices *slices = history_slices(f->st.history);
	uint64_t samples = 0;

	for (uint32_t i = 0; i < slices_nr(slices); i++) {
		struct slice_reader r;
		struct count c;

		for (slice_read_begin(&r, slices_at(slices, i)); slice_read(&r, &c);) {
			struct stacks_room room;
			uint32_t nr;
			const uint32_t *places = stacks_at(f->st.stacks, c.stack, &room, &nr);
			const struct place *place = places_at(f->st.places, places[0]);
			const struct symbol *s =
				symbols_at(f->st.symbols, atomic_load(&place->symbol));

			if (s && !strcmp(s->name.str, name))
				samples += c.count;
		}
	}
	return samples;
}

/* Two functions of JITs that hash_u64() gives one hash, as any user can name them. */
TEST(test_names_with_one_hash)
{
	static const char victim[] = "LazyCompile:*checkPassword app.js", evil[] = "evil01dcMjkFg3m"
										   "w";
	struct count counts[] = { { 0, 0, 0, 1, 1, 0 },
				  { 1, 0, 0, 99, 99, 0 },
				  { 2, 0, 0, 7, 7, 0 } };
	struct fixture f;

	t_begin_segment(&f);
	put_function(&f, 0, 'j', victim, "[perf map]");
	put_function(&f, 1, 'j', evil, "[perf map]");
	put_function(&f, 2, 'j', victim, "[perf map]");
	t_put_task(&f, 0, 10);
	t_put_slice(&f, 0, counts, 3);
	t_open_folder(&f);
	assert_int_equal(read_folder(&f), 0);
	assert_int_equal(samples_of(&f, victim), 8);
	assert_int_equal(samples_of(&f, evil), 99);
	close_folder(&f);
}

/* Millions of processes: without room in the tables, their samples are unknown. */
TEST(test_many_processes)
{
	struct fixture f;
	size_t before;

	t_begin_segment(&f);
	put_function(&f, 0, 'u', "f", "/m");
	t_put_task(&f, 1, 1);
	for (uint32_t i = 2; i <= 400000; i++)
		t_put_task(&f, 2 + i % 65536, i);
	t_put_slice(&f, 0,
		    (struct count[]){ { 0, 1, 0, 5, 5, 0 }, { 0, 2 + 400000 % 65536, 0, 3, 3, 0 } },
		    2);
	t_open_folder(&f);
	before = mallinfo2().uordblks;
	assert_int_equal(read_folder(&f), 0);
	print_message("%zu MiB\n", (mallinfo2().uordblks - before) >> 20);
	/* Sanitizers have another allocator. */
	assert_true(mallinfo2().uordblks - before < 160U << 20);
	assert_int_equal(f.result.samples, 8);
	assert_int_equal(f.result.nameless, 3);
	close_folder(&f);
}

int main(void)
{
	return run_rcu_tests(NULL, NULL);
}
