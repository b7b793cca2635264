// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Segments of --keep: written and t_read; cut at every byte and damaged at random, each t_read
 * gives the first records as they were written, and no other.
 */
#include "sampler/keep.c"
#include "tests/prelude.h"

#include <errno.h>

#include "sampler/record/record.h"
#include "sampler/event/event.h"
#include "sampler/count/internal.h"

#define SLICES 20

struct seen {
	uint32_t nr_events, nr_functions, nr_stacks, nr_interpreters, nr_tasks, nr_slices;
};

static uint64_t seed = 20261122;

static uint32_t rnd(uint32_t below)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(seed >> 33) % below;
}

static void t_on_events(void *ctx, const struct keepfile_event *events, uint32_t nr)
{
	struct seen *s = ctx;

	assert_int_equal(nr, 2);
	assert_memory_equal(events[0].name.str, "cpu-clock", 9);
	assert_true(events[0].clock && events[0].hz == 999);
	assert_true(!events[1].clock && events[1].hz == 0.5);
	s->nr_events++;
}

static void t_on_function(void *ctx, const struct keepfile_function *f)
{
	struct seen *s = ctx;
	char name[32];

	snprintf(name, sizeof(name), "function_%u", s->nr_functions);
	assert_int_equal(f->id, s->nr_functions * 7);
	assert_int_equal(f->name.size, strlen(name));
	assert_memory_equal(f->name.str, name, f->name.size);
	assert_memory_equal(f->module.str, "lib.so", 6);
	assert_int_equal(f->kind, 'u');
	assert_int_equal(f->inlined, s->nr_functions % 2);
	s->nr_functions++;
}

static void t_on_stack(void *ctx, uint32_t id, const uint32_t *functions, uint32_t nr)
{
	struct seen *s = ctx;

	assert_int_equal(id, s->nr_stacks);
	assert_int_equal(nr, 3);
	for (uint32_t i = 0; i < nr; i++)
		assert_int_equal(functions[i], (s->nr_stacks + i) * 7);
	s->nr_stacks++;
}

static void t_on_interpreter(void *ctx, struct keepfile_text module)
{
	struct seen *s = ctx;

	assert_int_equal(module.size, 9);
	assert_memory_equal(module.str, "libpython", 9);
	s->nr_interpreters++;
}

static void t_on_task(void *ctx, const struct keepfile_task *t)
{
	struct seen *s = ctx;

	assert_int_equal(t->pid, 1000 + s->nr_tasks);
	assert_int_equal(t->tid, 2000 + s->nr_tasks);
	assert_int_equal(t->process_comm.size, 0);
	assert_int_equal(t->uid, s->nr_tasks ? 100 + s->nr_tasks : UINT32_MAX);
	s->nr_tasks++;
}

static void t_on_slice(void *ctx, const struct slice *slice)
{
	struct seen *s = ctx;

	assert_int_equal(slice->begin_ns, 1000 + s->nr_slices * 100);
	assert_int_equal(slice->end_ns, slice->begin_ns + 100);
	assert_int_equal(slice->lost, s->nr_slices);
	assert_int_equal(slice->nr, 2);
	assert_int_equal(slice->count, 3 + s->nr_slices);
	s->nr_slices++;
}

static void t_no_slice(void *ctx, const struct slice *slice)
{
}

static struct seen t_read(const uint8_t *bytes, size_t size, int64_t *end)
{
	struct seen s = { 0 };
	const struct keepfile_reader r = { t_on_events, t_on_function, t_on_stack, t_on_interpreter,
					   t_on_task,	t_on_slice,    &s,	   NULL };

	*end = keepfile_read(bytes, size, &r);
	return s;
}

static void write_all(struct keepfile_out *out)
{
	const struct keepfile_event events[] = { { { "cpu-clock", 9 }, 999, true },
						 { { "cycles", 6 }, 0.5, false } };

	keepfile_header(out);
	keepfile_put_events(out, events, 2);
	for (uint32_t i = 0; i < SLICES; i++) {
		struct count counts[] = { { i, 3, 0, 1, 100, 0 }, { i, 4, 1, 2 + i, 7, 0 } };
		const uint32_t functions[] = { i * 7, (i + 1) * 7, (i + 2) * 7 };
		struct slice slice = { .begin_ns = 1000 + i * 100, .end_ns = 1100 + i * 100 };
		char name[32];

		snprintf(name, sizeof(name), "function_%u", i);
		keepfile_put_function(out, &(struct keepfile_function){ i * 7,
									'u',
									i % 2,
									false,
									{ name, strlen(name) },
									{ "lib.so", 6 } });
		keepfile_put_stack(out, i, functions, 3);
		keepfile_put_interpreter(out, (struct keepfile_text){ "libpython", 9 });
		keepfile_put_task(out, &(struct keepfile_task){ i,
								1000 + i,
								2000 + i,
								{ "comm", 4 },
								{ "", 0 },
								i ? 100 + i : UINT32_MAX });
		assert_int_equal(slice_pack(&slice, counts, 2), 0);
		slice.lost = i;
		keepfile_put_slice(out, &slice);
		free(slice.bytes);
	}
	assert_false(out->failed);
}

TEST(test_whole)
{
	struct keepfile_out out = { .bytes = NULL };
	struct seen s;
	int64_t end;

	write_all(&out);
	s = t_read(out.bytes, out.size, &end);
	assert_int_equal(end, out.size);
	assert_int_equal(s.nr_events, 1);
	assert_int_equal(s.nr_functions, SLICES);
	assert_int_equal(s.nr_stacks, SLICES);
	assert_int_equal(s.nr_interpreters, SLICES);
	assert_int_equal(s.nr_tasks, SLICES);
	assert_int_equal(s.nr_slices, SLICES);
	keepfile_fini(&out);
}

TEST(test_cut)
{
	struct keepfile_out out = { .bytes = NULL };
	uint32_t before = 0;
	int64_t end;

	write_all(&out);
	for (size_t size = 0; size <= out.size; size++) {
		uint8_t *copy = malloc(size + 1);
		struct seen s;

		memcpy(copy, out.bytes, size);
		s = t_read(copy, size, &end);
		assert_true(size < 16 ? end == -EINVAL : end >= 16 && end <= (int64_t)size);
		assert_true(s.nr_slices == before || s.nr_slices == before + 1);
		before = s.nr_slices;
		free(copy);
	}
	assert_int_equal(before, SLICES);
	keepfile_fini(&out);
}

/* The callbacks check every record: a damaged one is not t_read, and none after it. */
TEST(test_damaged)
{
	struct keepfile_out out = { .bytes = NULL };
	int64_t end;

	write_all(&out);
	for (int i = 0; i < 5000; i++) {
		size_t at = rnd((uint32_t)out.size);
		uint8_t was = out.bytes[at];

		out.bytes[at] ^= (uint8_t)(1u << rnd(8));
		t_read(out.bytes, out.size, &end);
		assert_true(at < 16 ? end == -EINVAL : end >= 16 && end <= (int64_t)at);
		out.bytes[at] = was;
	}
	keepfile_fini(&out);
}

/* Read a slice with @count and @more samples, and @lost ones. */
static bool is_read(uint64_t count, uint64_t more, uint64_t lost)
{
	struct count counts[] = { { 0, 3, 0, count, 100, 0 }, { 1, 4, 1, more, 7, 0 } };
	struct slice slice = { .begin_ns = 1000, .end_ns = 1100, .lost = lost };
	struct keepfile_out out = { .bytes = NULL };
	bool t_read;

	assert_int_equal(slice_pack(&slice, counts, 2), 0);
	keepfile_header(&out);
	keepfile_put_slice(&out, &slice);
	t_read = keepfile_read(out.bytes, out.size,
			       &(struct keepfile_reader){ .slice = t_no_slice }) ==
		 (int64_t)out.size;
	free(slice.bytes);
	keepfile_fini(&out);
	return t_read;
}

/* Numbers of samples that no machine takes: their sums would overflow. */
TEST(test_too_many_samples)
{
	assert_true(is_read(1, 2, 0));
	assert_true(is_read(SLICE_COUNT_MAX - 1, 1, SLICE_COUNT_MAX));
	assert_false(is_read(SLICE_COUNT_MAX, 1, 0));
	assert_false(is_read(1, SLICE_COUNT_MAX, 0));
	assert_false(is_read(UINT64_MAX / 2, 1, 0));
	assert_false(is_read(1, 2, SLICE_COUNT_MAX + 1));
}

static bool after_three(void *ctx)
{
	const struct seen *s = ctx;

	return s->nr_slices == 3;
}

/* Reading ends behind the record after which the reader stops, not at the end. */
TEST(test_stopped)
{
	struct keepfile_out out = { .bytes = NULL };
	struct seen s = { 0 };
	const struct keepfile_reader r = { t_on_events, t_on_function, t_on_stack, t_on_interpreter,
					   t_on_task,	t_on_slice,    &s,	   after_three };
	int64_t end;

	write_all(&out);
	end = keepfile_read(out.bytes, out.size, &r);
	assert_true(end > 16 && end < (int64_t)out.size / 4);
	assert_int_equal(s.nr_slices, 3);
	assert_int_equal(s.nr_functions, 3);
	keepfile_fini(&out);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
