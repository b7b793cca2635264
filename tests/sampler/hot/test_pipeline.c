// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * pipeline: a sample without a slot for its place is never counted as its caller's; the innermost
 * frame is the sample's own address, in the mode of its record.
 * Live: waits for threads or processes.
 */
#include "sampler/hot/internal.h"

#include "symbols/process/internal.h"
#include "tests/prelude_rcu.h"
#include "unwind/unwind.h"
#include "symbols/base/base.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/image/image.h"
#include "symbols/script/script.h"
#include "symbols/name/name.h"
#include "symbols/code/code.h"
#include "sampler/ring/ring.h"
#include "sampler/event/event.h"
#include "sampler/count/count.h"
#include "sampler/profile/profile.h"

#include <linux/perf_event.h>
#include <sys/mman.h>

#define PLACES_MAX 8
#define LEAF	   0xffffffff81001000ULL
#define CALLER	   0xffffffff81002001ULL
#define OUTER	   0xffffffff81003001ULL
#define TIME_NS	   100

struct fixture {
	struct pipeline_tables tables;
	struct unwind_rows *rows;
	struct pipeline *pipeline;
	struct pipeline_stats stats;
	uint32_t pid; /* of the next sample */
	uint64_t time_ns;
};

static int setup(void **state)
{
	static struct fixture f;
	struct pipeline_tables *t = &f.tables;

	memset(&f, 0, sizeof(f));
	f.pid = 3;
	f.time_ns = TIME_NS;
	assert_int_equal(objects_new(&t->objects), 0);
	assert_int_equal(maps_new(&t->maps, t->objects, 64), 0);
	maps_no_proc(t->maps);
	maps_on_comm(t->maps, 3, 3, "three", 6, true, 1);
	maps_publish(t->maps, 10, 1);
	t->tasks = maps_tasks(t->maps);
	assert_int_equal(places_new(&t->places, PLACES_MAX), 0);
	assert_int_equal(unwind_rows_new(&f.rows, 64), 0);
	assert_int_equal(stacks_new(&t->stacks, 64, 1 << 16), 0);
	assert_int_equal(counts_new(&t->counts, 64, 64), 0);
	t->unwind.rows = f.rows;
	t->own_pid = -1;
	assert_int_equal(pipeline_new(&f.pipeline, t, NULL), 0);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	pipeline_free(f->pipeline);
	counts_free(f->tables.counts);
	stacks_free(f->tables.stacks);
	unwind_rows_free(f->rows);
	maps_free(f->tables.maps);
	places_free(f->tables.places);
	objects_free(f->tables.objects);
	return 0;
}

/* Fill the rest of the place table. */
static void fill_places(struct fixture *f)
{
	for (uint64_t i = 0; i < 64; i++)
		places_intern(f->tables.places, OBJECT_ID_KERNEL, 0xffffffff90000000ULL + i);
}

/* Handle one sample in the kernel: @nr frames of @ips, innermost first. */
static void sample(struct fixture *f, const uint64_t *ips, uint32_t nr)
{
	uint64_t chain[8] = { (uint64_t)PERF_CONTEXT_KERNEL };
	struct record_sample s = {
		.ip = ips[0], .time_ns = f->time_ns, .pid = f->pid, .tid = f->pid
	};

	memcpy(chain + 1, ips, nr * sizeof(*ips));
	s.chain = (const uint8_t *)chain;
	s.nr_chain = nr + 1;
	pipeline_sample(f->pipeline, &f->stats, &s, 0, 0, false);
}

/* The stack of the only cell; returns its number of frames, 0: nothing was counted. */
static uint32_t only_stack(struct fixture *f, const uint32_t **places)
{
	static struct stacks_room room;
	struct count *counts;
	uint32_t nr, frames = 0;

	assert_int_equal(counts_swap(f->tables.counts, &counts, &nr), 0);
	assert_true(nr <= 1);
	if (nr)
		*places = stacks_at(f->tables.stacks, counts[0].stack, &room, &frames);
	free(counts);
	return frames;
}

/* A sample is of the slice of its time stamp, whenever it is read; a recording has one slice. */
TEST(test_slice_of_its_time, setup, teardown)
{
	static const uint64_t ips[] = { LEAF, CALLER };
	struct fixture *f = *state;
	uint32_t seed = 42, nr, wanted[16] = { 0 }, nr_found = 0;
	struct count *counts;

	for (uint32_t i = 0; i < 1000; i++) {
		uint32_t slice;

		seed = seed * 1664525u + 1013904223u;
		slice = (seed >> 8) % ARRAY_SIZE(wanted);
		f->time_ns = (5000 + slice) * COUNTS_SLICE_NS + seed % COUNTS_SLICE_NS;
		sample(f, ips, 2);
		wanted[slice]++;
	}
	assert_int_equal(counts_swap(f->tables.counts, &counts, &nr), 0);
	assert_int_equal(nr, ARRAY_SIZE(wanted));
	for (uint32_t i = 0; i < nr; i++)
		for (uint32_t k = 0; k < ARRAY_SIZE(wanted); k++)
			nr_found += counts[i].slice == tables_slice((5000 + k) * COUNTS_SLICE_NS) &&
				    counts[i].count == wanted[k];
	assert_int_equal(nr_found, ARRAY_SIZE(wanted));
	free(counts);
	f->tables.recorded = true;
	for (uint32_t i = 0; i < 10; i++) {
		f->time_ns += COUNTS_SLICE_NS;
		sample(f, ips, 2);
	}
	assert_int_equal(counts_swap(f->tables.counts, &counts, &nr), 0);
	assert_int_equal(nr, 1);
	free(counts);
}

TEST(test_innermost_without_room_is_dropped, setup, teardown)
{
	static const uint64_t ips[] = { LEAF, CALLER };
	struct fixture *f = *state;
	const uint32_t *places;

	places_intern(f->tables.places, OBJECT_ID_KERNEL, CALLER - 1);
	fill_places(f);
	sample(f, ips, 2);
	assert_int_equal(f->stats.taken, 1);
	assert_int_equal(f->stats.dropped[DROP_PLACES_FULL], 1);
	assert_int_equal(f->stats.complete, 0);
	assert_int_equal(only_stack(f, &places), 0);
}

/* A caller without room: the stack ends before it, and says so. */
TEST(test_caller_without_room_cuts_the_stack, setup, teardown)
{
	static const uint64_t ips[] = { LEAF, CALLER, OUTER };
	struct fixture *f = *state;
	const uint32_t *places = NULL;
	uint32_t leaf = places_intern(f->tables.places, OBJECT_ID_KERNEL, LEAF);

	places_intern(f->tables.places, OBJECT_ID_KERNEL, OUTER - 1);
	fill_places(f);
	sample(f, ips, 3);
	assert_int_equal(f->stats.truncated, 1);
	assert_int_equal(f->stats.complete, 0);
	assert_int_equal(only_stack(f, &places), 1);
	assert_int_equal(places[0], leaf);
}

TEST(test_room_for_all, setup, teardown)
{
	static const uint64_t ips[] = { LEAF, CALLER, OUTER };
	struct fixture *f = *state;
	const uint32_t *places = NULL;

	sample(f, ips, 3);
	assert_int_equal(f->stats.truncated, 0);
	assert_int_equal(f->stats.dropped[DROP_PLACES_FULL], 0);
	assert_int_equal(only_stack(f, &places), 3);
}

#define USER_LEAF   0x401000ULL
#define USER_CALLER 0x402001ULL
#define USER_SP	    0x7ff000000000ULL
#define IN_KERNEL   ((uint64_t)PERF_CONTEXT_KERNEL)
#define IN_USER	    ((uint64_t)PERF_CONTEXT_USER)

/* A program for process 3. */
static void map_program(struct fixture *f)
{
	const struct maps_mmap ev = {
		.pid = 3,
		.tid = 3,
		.start = 0x400000,
		.size = 0x10000,
		.time_ns = 2,
		.prot = PROT_READ | PROT_EXEC,
		.is_private = true,
		.filename = "/usr/bin/three",
		.filename_size = 15,
	};

	maps_on_mmap(f->tables.maps, &ev);
	maps_publish(f->tables.maps, 20, 1);
}

/* Expect the raw addresses @ips of @s, the first @nr_kernel of them in the kernel. */
static void expect(struct fixture *f, const struct record_sample *s, uint64_t regs_mask,
		   const uint64_t *ips, uint32_t nr, uint32_t nr_kernel)
{
	struct pipeline_stack stack;

	pipeline_resolve(f->pipeline, s, regs_mask);
	pipeline_stack(f->pipeline, &stack);
	assert_int_equal(stack.nr, nr);
	assert_int_equal(stack.nr_kernel, nr_kernel);
	for (uint32_t i = 0; i < nr; i++) {
		const struct place *place = places_at(f->tables.places, stack.places[i]);
		bool first = i == 0 || i == nr_kernel;
		uint64_t at = ips[i] - !first - (i < nr_kernel ? 0 : 0x400000);

		assert_int_equal(stack.ips[i], ips[i]);
		assert_int_equal(place->offset, at);
		assert_int_equal(place->object == OBJECT_ID_KERNEL, i < nr_kernel);
	}
}

static struct record_sample sample_in(uint16_t cpumode, uint64_t ip, const uint64_t *chain,
				      uint64_t nr_chain)
{
	return (struct record_sample){ .cpumode = cpumode,
				       .ip = ip,
				       .time_ns = TIME_NS,
				       .pid = 3,
				       .tid = 3,
				       .chain = (const uint8_t *)chain,
				       .nr_chain = nr_chain };
}

/* perf record --user-callchains: the chain has no kernel part, the sample is of the kernel. */
TEST(test_kernel_sample_with_user_chain, setup, teardown)
{
	static const uint64_t chain[] = { IN_USER, USER_LEAF, USER_CALLER };
	static const uint64_t ips[] = { LEAF, USER_LEAF, USER_CALLER };
	struct record_sample s = sample_in(PERF_RECORD_MISC_KERNEL, LEAF, chain, 3);

	map_program(*state);
	expect(*state, &s, 0, ips, 3, 1);
}

/* A precise event: its address is exact, its chain begins at the interrupt. */
TEST(test_precise_address, setup, teardown)
{
	static const uint64_t kernel[] = { IN_KERNEL, LEAF + 64, OUTER };
	static const uint64_t kernel_ips[] = { LEAF, OUTER };
	static const uint64_t user[] = { IN_USER, USER_LEAF + 64, USER_CALLER };
	static const uint64_t both[] = { IN_KERNEL, LEAF, IN_USER, USER_LEAF + 64, USER_CALLER };
	static const uint64_t user_ips[] = { USER_LEAF, USER_CALLER };
	struct record_sample s = sample_in(PERF_RECORD_MISC_KERNEL, LEAF, kernel, 3);

	map_program(*state);
	expect(*state, &s, 0, kernel_ips, 2, 2);
	s = sample_in(PERF_RECORD_MISC_USER, USER_LEAF, user, 3);
	expect(*state, &s, 0, user_ips, 2, 0);
	s = sample_in(PERF_RECORD_MISC_USER, USER_LEAF, both, 5);
	expect(*state, &s, 0, user_ips, 2, 0);
}

/* No chain: the record's mode distinguishes kernel and user, also in a kernel of 32 bits. */
TEST(test_mode_without_chain, setup, teardown)
{
	static const uint64_t low = 0xc0101000, leaf = LEAF, user = USER_LEAF;
	struct fixture *f = *state;
	struct record_sample s = sample_in(PERF_RECORD_MISC_KERNEL, low, NULL, 0);
	struct pipeline_stack stack;

	map_program(f);
	expect(f, &s, 0, &low, 1, 1);
	s = sample_in(PERF_RECORD_MISC_USER, USER_LEAF, NULL, 0);
	expect(f, &s, 0, &user, 1, 0);
	s = sample_in(PERF_RECORD_MISC_CPUMODE_UNKNOWN, LEAF, NULL, 0);
	expect(f, &s, 0, &leaf, 1, 1);
	s = sample_in(PERF_RECORD_MISC_GUEST_KERNEL, LEAF, NULL, 0);
	pipeline_resolve(f->pipeline, &s, 0);
	pipeline_stack(f->pipeline, &stack);
	assert_int_equal(stack.nr, 1);
	assert_int_equal(stack.nr_kernel, 0);
	assert_int_equal(places_at(f->tables.places, stack.places[0])->object, OBJECT_ID_UNKNOWN);
}

/* Registers without a copy of the stack: the chain has the callers. */
TEST(test_registers_alone, setup, teardown)
{
	static const uint64_t chain[] = { IN_USER, USER_LEAF, USER_CALLER };
	static const uint64_t kernel[] = { IN_KERNEL, LEAF, OUTER };
	static const uint64_t kernel_ips[] = { LEAF, OUTER };
	static const uint8_t regs[8];
	struct fixture *f = *state;
	struct record_sample s = sample_in(PERF_RECORD_MISC_USER, USER_LEAF, chain, 3);
	struct pipeline_stack stack;

	map_program(f);
	s.regs = regs;
	s.regs_abi = PERF_SAMPLE_REGS_ABI_64;
	expect(f, &s, 1, chain + 1, 2, 0);
	s.nr_chain = 0;
	expect(f, &s, 1, chain + 1, 1, 0);
	/* none at all, in the kernel */
	s = sample_in(PERF_RECORD_MISC_KERNEL, LEAF, kernel, 3);
	expect(f, &s, 1, kernel_ips, 2, 2);
	pipeline_stack(f->pipeline, &stack);
	assert_int_equal(stack.stop, UNWIND_NO_USER);
}

/* Linux 6.19, "fp,defer": the callers are in another record, which is not read. */
TEST(test_deferred_chain_is_truncated, setup, teardown)
{
	const uint64_t deferred[] = { (uint64_t)-640, 7 }; /* the number of that record */
	struct fixture *f = *state;
	struct record_sample s = sample_in(PERF_RECORD_MISC_USER, USER_LEAF, deferred, 2);
	struct pipeline_stack stack;
	const uint64_t leaf[] = { USER_LEAF };

	map_program(f);
	expect(f, &s, 1, leaf, 1, 0);
	pipeline_stack(f->pipeline, &stack);
	assert_int_equal(stack.stop, UNWIND_TRUNCATED);
}

/* A wait with a stack that has no root ends in the frame that says so; one of the kernel has no
 * callers to miss. */
TEST(test_wait_without_root, setup, teardown)
{
	const uint64_t deferred[] = { (uint64_t)-640, 7 }, kernel[] = { IN_KERNEL, LEAF, CALLER };
	struct fixture *f = *state;
	struct record_sample s = sample_in(PERF_RECORD_MISC_USER, USER_LEAF, deferred, 2);
	uint32_t *kinds = f->tables.wait_places, nr, stack;
	struct stacks_room room;
	const uint32_t *places;

	map_program(f);
	for (uint32_t i = 0; i < WAIT_NR; i++)
		kinds[i] = PLACE_NONE;
	kinds[WAIT_ASLEEP] = places_intern(f->tables.places, OBJECT_ID_UNKNOWN, 1);
	kinds[WAIT_CUT] = places_intern(f->tables.places, OBJECT_ID_UNKNOWN, 2);
	pipeline_resolve(f->pipeline, &s, 1);
	stack = pipeline_count_wait(f->pipeline, &f->stats, &s, 0);
	places = stacks_at(f->tables.stacks, stack, &room, &nr);
	assert_int_equal(nr, 3);
	assert_int_equal(places[0], kinds[WAIT_ASLEEP]);
	assert_int_equal(places[2], kinds[WAIT_CUT]);
	s = sample_in(PERF_RECORD_MISC_KERNEL, LEAF, kernel, 3);
	pipeline_resolve(f->pipeline, &s, 0);
	stack = pipeline_count_wait(f->pipeline, &f->stats, &s, 0);
	places = stacks_at(f->tables.stacks, stack, &room, &nr);
	assert_int_equal(nr, 3);
	assert_int_not_equal(places[2], kinds[WAIT_CUT]);
}

/* Handle a sample in user code of a process that nothing is known of. Return whether it counts. */
static bool sample_unknown(struct fixture *f, bool may_wait)
{
	const uint64_t chain[] = { (uint64_t)PERF_CONTEXT_USER, 0x401000 };
	struct record_sample s = { .ip = 0x401000, .time_ns = TIME_NS, .pid = 77, .tid = 77 };

	s.chain = (const uint8_t *)chain;
	s.nr_chain = 2;
	return pipeline_sample(f->pipeline, &f->stats, &s, 0, 0, may_wait);
}

/* While its process is being read it waits; then it is in the account, but no row. */
TEST(test_pending_is_no_row, setup, teardown)
{
	struct fixture *f = *state;
	const uint32_t *places;

	assert_false(sample_unknown(f, true));
	assert_int_equal(f->stats.taken, 0);
	assert_true(sample_unknown(f, false));
	assert_int_equal(f->stats.taken, 1);
	assert_int_equal(f->stats.pending, 1);
	assert_int_equal(f->stats.by_event[0], 1);
	assert_int_equal(only_stack(f, &places), 0);
}

/* A sample that waits is held with the second copy of its stack, not of the one before it. */
TEST(test_pending_has_no_second_copy, setup, teardown)
{
	static const uint64_t chain[] = { IN_USER, USER_LEAF };
	static const uint8_t bytes[64];
	const struct unwind_interrupted more = { .bytes = bytes, .size = 64, .rest = 32 };
	struct fixture *f = *state;
	struct record_sample s = sample_in(PERF_RECORD_MISC_USER, USER_LEAF, chain, 2);

	map_program(f);
	s.regs = s.stack = bytes;
	s.stack_size = sizeof(bytes);
	s.regs_abi = PERF_SAMPLE_REGS_ABI_32;
	pipeline_set_slot(f->pipeline, NULL, &more);
	pipeline_sample(f->pipeline, &f->stats, &s, 0, 1, false);
	assert_int_equal(pipeline_other(f->pipeline)->rest, 32);
	pipeline_set_slot(f->pipeline, NULL, NULL);
	assert_false(sample_unknown(f, true));
	assert_int_equal(pipeline_other(f->pipeline)->size, 0);
	assert_int_equal(pipeline_other(f->pipeline)->rest, 0);
}

/* In a recording nothing will be known later: [unknown]. */
TEST(test_unknown_of_a_recording_is_a_row, setup, teardown)
{
	struct fixture *f = *state;
	const uint32_t *places;

	f->tables.recorded = true;
	sample_unknown(f, false);
	assert_int_equal(f->stats.pending, 1);
	assert_int_equal(only_stack(f, &places), 1);
}

/* A sample without an event is counted under the reason. */
TEST(test_no_event, setup, teardown)
{
	static const int events[] = { PIPELINE_EVENT_UNKNOWN, PIPELINE_EVENT_LIMIT,
				      PIPELINE_EVENT_GONE, EVENTS_MAX };
	const struct record_sample s = { .ip = LEAF, .pid = 3, .tid = 3 };
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(events); i++)
		pipeline_sample(f->pipeline, &f->stats, &s, events[i], 0, false);
	assert_int_equal(f->stats.taken, ARRAY_SIZE(events));
	assert_int_equal(f->stats.dropped[DROP_UNKNOWN_EVENT], 2);
	assert_int_equal(f->stats.dropped[DROP_EVENT_LIMIT], 1);
	assert_int_equal(f->stats.dropped[DROP_EVENT_GONE], 1);
}

TEST(test_idle_is_counted, setup, teardown)
{
	static const uint64_t ips[] = { LEAF, CALLER };
	struct fixture *f = *state;

	sample(f, ips, 2);
	assert_int_equal(f->stats.idle[0], 0);
	f->pid = 0;
	sample(f, ips, 2);
	assert_int_equal(f->stats.idle[0], 1);
	assert_int_equal(f->stats.by_event[0], 2);
}

/* Add the stats of a CPU with @nr broken stacks, in @object. */
static void add_ended(struct pipeline_stats *sum, uint32_t object, uint32_t nr)
{
	struct pipeline_stats cpu = { .broken[UNWIND_NO_CFI] = nr };

	for (uint32_t i = 0; i < nr; i++)
		broken_objects_note(&cpu.ends[UNWIND_NO_CFI], object);
	pipeline_add_stats(sum, &cpu);
}

/* Registers of 32 bits: the stack ends in the object of its only frame, which is noted. */
TEST(test_end_of_broken_stacks, setup, teardown)
{
	static const uint64_t chain[] = { IN_USER, USER_LEAF };
	static const uint8_t bytes[64];
	struct fixture *f = *state;
	struct record_sample s = sample_in(PERF_RECORD_MISC_USER, USER_LEAF, chain, 2);
	struct pipeline_stack stack;
	uint32_t object;

	map_program(f);
	s.regs = s.stack = bytes;
	s.stack_size = sizeof(bytes);
	s.regs_abi = PERF_SAMPLE_REGS_ABI_32;
	for (int i = 0; i < 3; i++)
		pipeline_sample(f->pipeline, &f->stats, &s, 0, 1, false);
	pipeline_stack(f->pipeline, &stack);
	assert_int_equal(stack.stop, UNWIND_BAD_REGS);
	object = places_at(f->tables.places, stack.places[stack.nr - 1])->object;
	assert_int_equal(broken_objects_most(&f->stats.ends[UNWIND_BAD_REGS], 3), object);
	assert_int_equal(broken_objects_most(&f->stats.ends[UNWIND_NO_CFI], 0), UINT32_MAX);
	/* Of all CPUs: the most frequent one of a slot outlasts the others. */
	for (int i = 0; i < 3; i++)
		add_ended(&f->stats, 5 + BROKEN_OBJECTS_SLOTS, 20);
	add_ended(&f->stats, 5, 15);
	add_ended(&f->stats, 6, 10);
	assert_int_equal(f->stats.broken[UNWIND_NO_CFI], 85);
	assert_int_equal(broken_objects_most(&f->stats.ends[UNWIND_NO_CFI], 85),
			 5 + BROKEN_OBJECTS_SLOTS);
	/* Two in slot 5 have the same number: none has half. */
	add_ended(&f->stats, 5, 40);
	assert_int_equal(broken_objects_most(&f->stats.ends[UNWIND_NO_CFI], 125), UINT32_MAX);
}

#if defined(__x86_64__)
/*
 * A stack that is complete by a guess waits for the proof of its callers, once; not where its count
 * is used immediately, nor one without a question.
 */
TEST(test_waits_for_proof, setup, teardown)
{
	/* Two frame records, the second one of the root. */
	static uint64_t stack[] = { 1, 2, USER_SP + 40, USER_CALLER, 3, 0, 0, 4 };
	static const uint64_t regs[] = { USER_SP + 16, USER_SP, USER_LEAF }; /* rbp, rsp, rip */
	struct fixture *f = *state;
	struct record_sample s = sample_in(PERF_RECORD_MISC_USER, USER_LEAF, NULL, 0);
	struct pipeline_stack found;
	struct object *object;

	pipeline_free(f->pipeline);
	f->tables.unwind.ask_calls = true;
	assert_int_equal(pipeline_new(&f->pipeline, &f->tables, NULL), 0);
	map_program(f);
	pipeline_resolve(f->pipeline, &s, 0);
	pipeline_stack(f->pipeline, &found);
	object =
		objects_at(f->tables.objects, places_at(f->tables.places, found.places[0])->object);
	atomic_store_explicit(&object->state, OBJECT_FAILED, memory_order_relaxed);
	s.regs = (const uint8_t *)regs;
	s.regs_abi = PERF_SAMPLE_REGS_ABI_64;
	s.stack = (const uint8_t *)stack;
	s.stack_size = 2 * sizeof(stack);
	s.stack_dyn = sizeof(stack);
	assert_false(pipeline_sample(f->pipeline, &f->stats, &s, 0, 0x1c0, true));
	assert_int_equal(f->stats.taken, 0);
	/* Another caller: a new question. */
	stack[3] += 16;
	assert_true(pipeline_sample(f->pipeline, &f->stats, &s, 0, 0x1c0, false));
	assert_int_equal(f->stats.guessed, 1);
	/* The question is there already. */
	assert_false(pipeline_sample(f->pipeline, &f->stats, &s, 0, 0x1c0, true));
	assert_int_equal(f->stats.guessed, 1);
	/* A new question, of a stack that is not complete. */
	stack[3] += 16;
	stack[6] = 5;
	assert_false(pipeline_sample(f->pipeline, &f->stats, &s, 0, 0x1c0, true));
	assert_true(pipeline_sample(f->pipeline, &f->stats, &s, 0, 0x1c0, false));
	assert_int_equal(f->stats.guessed, 1);
	assert_int_equal(f->stats.taken, 2);
}
#endif

/* Seen from a PID namespace, tasks outside have pid 0: they are not idle, and have no stack. */
TEST(test_task_outside_the_namespace, setup, teardown)
{
	struct fixture *f = *state;
	struct record_sample s = sample_in(PERF_RECORD_MISC_USER, USER_LEAF, NULL, 0);
	uint32_t task;

	s.pid = s.tid = 0;
	maps_in_namespace(f->tables.maps);
	pipeline_sample(f->pipeline, &f->stats, &s, 0, 0, false);
	assert_int_equal(f->stats.broken[UNWIND_OUTSIDE], 1);
	assert_int_equal(f->stats.complete + f->stats.idle[0], 0);
	assert_int_not_equal(pipeline_counted(f->pipeline, &task), STACK_NONE);
	assert_string_equal(tasks_at(f->tables.tasks, task)->comm.str, "[outside]");
	/* In the kernel, with the registers of its user code; and the idle task, without. */
	s = sample_in(PERF_RECORD_MISC_KERNEL, LEAF, NULL, 0);
	s.pid = s.tid = 0;
	s.regs_abi = PERF_SAMPLE_REGS_ABI_64;
	pipeline_sample(f->pipeline, &f->stats, &s, 0, 0, false);
	assert_int_equal(f->stats.broken[UNWIND_OUTSIDE], 2);
	s.regs_abi = PERF_SAMPLE_REGS_ABI_NONE;
	pipeline_sample(f->pipeline, &f->stats, &s, 0, 0, false);
	assert_int_equal(f->stats.complete, 1);
}

int main(void)
{
	return run_rcu_tests(NULL, NULL);
}
