// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Segments of --keep as keep_tick() writes them, read back: each stack has all its functions.
 */
#include "sampler/keep.h"

#include "tests/prelude_rcu.h"

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include "sampler/file/keepfile.h"
#include "sampler/store.h"

#define FUNCTIONS 4096u

struct fixture {
	struct store st;
	struct keep *k;
	char dir[32];
	/* Of the segment that is read. */
	bool known[FUNCTIONS];
	uint32_t nr_stacks, nr_missing;
};

static void open_fixture(struct fixture *f)
{
	const struct sampler_config config = { .hz = 99, .nr_events = 1, .window_ns = 5000000000 };
	struct keep_config keep = { f->dir, 64 << 20, 3600000000000ULL };
	struct err e;

	memset(f, 0, sizeof(*f));
	snprintf(f->dir, sizeof(f->dir), "/tmp/test_keep.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	if (store_open(&f->st, &config, &e) || keep_open(&f->k, &keep, &e))
		fail_msg("%s", e.text);
	f->st.shared = aligned_alloc(CACHELINE, sizeof(*f->st.shared));
	memset(f->st.shared, 0, sizeof(*f->st.shared));
	store_publish(&f->st, f->st.shared, &config, 0, -1, 0);
}

static void close_fixture(struct fixture *f)
{
	struct sampler_thread_shared *shared = f->st.shared;
	char command[64];

	store_close(&f->st);
	free(shared);
	snprintf(command, sizeof(command), "rm -r %s", f->dir);
	assert_int_equal(system(command), 0);
}

/* Count a sample of the stack of @places in a new slice, and keep it. */
static void keep_slice(struct fixture *f, const uint32_t *places, uint32_t nr)
{
	const struct assemble_input tables = { .stacks = f->st.stacks,
					       .places = f->st.places,
					       .symbols = f->st.symbols,
					       .maps = f->st.maps,
					       .objects = f->st.objects };
	const struct event events[1] = { { .name = "cpu-clock" } };
	const double hz[1] = { 99 };
	struct count *counts;
	uint32_t nr_counts, stack = stacks_intern(f->st.stacks, places, nr);

	assert_true(counts_add(f->st.counts, stack, 0, 0, 1));
	assert_int_equal(counts_swap(f->st.counts, &counts, &nr_counts), 0);
	assert_int_equal(history_add(f->st.history, counts, nr_counts, 100000000), 0);
	keep_tick(f->k,
		  &(struct keep_input){ history_slices(f->st.history), &tables, events, hz, 1, 0 });
	usleep(50000); /* the writer is behind no more */
	assert_int_equal(keep_check(f->k), 0);
}

static void on_events(void *ctx, const struct keepfile_event *events, uint32_t nr)
{
}

static void on_function(void *ctx, const struct keepfile_function *function)
{
	struct fixture *f = ctx;

	if (function->id < FUNCTIONS)
		f->known[function->id] = true;
}

static void on_stack(void *ctx, uint32_t id, const uint32_t *functions, uint32_t nr)
{
	struct fixture *f = ctx;

	f->nr_stacks++;
	for (uint32_t i = 0; i < nr; i++)
		f->nr_missing += functions[i] < FUNCTIONS && !f->known[functions[i]];
}

static void on_interpreter(void *ctx, struct keepfile_text module)
{
}

static void on_task(void *ctx, const struct keepfile_task *t)
{
}

static void on_slice(void *ctx, const struct slice *slice)
{
}

/* Read the one segment. */
static void read_segment(struct fixture *f)
{
	const struct keepfile_reader reader = { on_events, on_function, on_stack, on_interpreter,
						on_task,   on_slice,	f };
	char path[64], *bytes = malloc(1 << 20);
	struct dirent *e;
	DIR *d = opendir(f->dir);
	FILE *in = NULL;
	size_t size;

	assert_non_null(d);
	while ((e = readdir(d)) && !in) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%.30s", f->dir, e->d_name);
		in = fopen(path, "r");
	}
	closedir(d);
	assert_non_null(in);
	size = fread(bytes, 1, 1 << 20, in);
	fclose(in);
	assert_int_equal(keepfile_read((const uint8_t *)bytes, size, &reader), (int64_t)size);
	free(bytes);
}

/* A function that got its name while another one of its stack had none is known to later stacks. */
TEST(test_names_one_by_one)
{
	const struct symbols_kept kept = { "first", "m", 5, 1, 'u', false, false };
	struct fixture f;
	uint32_t places[2], of_symbol, other[2];

	open_fixture(&f);
	of_symbol = symbols_keep_function(f.st.symbols, f.st.places, f.st.objects, &kept);
	for (uint32_t i = 0; i < 2; i++)
		places[i] = places_intern(f.st.places, OBJECT_ID_KERNEL, 0x1000 + i);
	other[0] = places_intern(f.st.places, OBJECT_ID_KERNEL, 0x2000);
	other[1] = places[0];
	keep_slice(&f, places, 2);
	places_name(f.st.places, places[0],
		    atomic_load(&places_at(f.st.places, of_symbol)->symbol));
	keep_slice(&f, other, 2);
	keep_slice(&f, other, 1);
	keep_close(f.k);
	read_segment(&f);
	assert_true(f.nr_stacks >= 3);
	assert_int_equal(f.nr_missing, 0);
	close_fixture(&f);
}

int main(void)
{
	return run_rcu_tests(NULL, NULL);
}
