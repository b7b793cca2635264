// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A recording written by the recorder, through the tables: every sample is
 * counted, also when each has a separate stack, and lost ones once. The error bars of rows cover
 * the true share; WINDOWS=1000 SAMPLES=1000 for the long run.
 * Live: waits for threads or processes and takes about a second of CPU time, or more.
 */
#include "sampler/record/recorder.c"

#include "sampler/replay.c"

#include "tests/fake_root.h"

#include <linux/perf_event.h>
#include <poll.h>
#include <unistd.h>

#include "sampler/profile/profile.h"
#include "sampler/event/internal.h"
#include "sampler/hot/hot.h"
#include "sampler/count/count.h"
#include "tests/prelude_rcu.h"
#include "tests/sampler/kernel_sample.h"
#include "unwind/unwind.h"
#include "symbols/base/base.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/image/image.h"
#include "symbols/script/script.h"
#include "symbols/process/process.h"
#include "symbols/name/name.h"
#include "symbols/code/code.h"
#include "sampler/ring/ring.h"
#include "sampler/waits/waits.h"

#define CLOCK_ID  11
#define FAULT_ID  21
#define SIDE_ID	  31
#define DUMP_ID	  41
#define SWITCH_ID 51
#define DUMP	  8192u
#define KERNEL	  0xffffffff81000000ULL

struct fixture {
	char dir[64], path[96];
	struct recorder *r;
	uint64_t time_ns;
};

static const struct record_layout layout = { .sample_type = RECORD_SAMPLE_TYPE, .id_all = true };

static int setup(void **state)
{
	static struct fixture f;

	memset(&f, 0, sizeof(f));
	f.time_ns = 1000000;
	strcpy(f.dir, "/tmp/test_replay.XXXXXX");
	assert_non_null(mkdtemp(f.dir));
	snprintf(f.path, sizeof(f.path), "%s/out.data", f.dir);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	const struct fixture *f = *state;

	return fake_remove(f->dir);
}

static void note_with(struct recorder *r, const char *name, uint64_t id,
		      const struct attr_config *config)
{
	struct perf_event_attr attr;
	struct event ev;

	assert_int_equal(event_parse(&ev, name, NULL), 0);
	attr_sample(&attr, config, &ev, 999);
	recorder_note(r, name, &attr, &id, 1);
}

static void note(struct recorder *r, const char *name, uint64_t id)
{
	note_with(r, name, id, &(struct attr_config){ 0 });
}

/* Two events and a side-band on two CPUs; @f->dir has no /proc, so nothing was there before. */
static void begin(struct fixture *f, size_t lane_size)
{
	const struct recorder_config config = {
		.path = f->path,
		.nr_cpus = 2,
		.lane_size = lane_size,
		.root = f->dir,
	};
	const uint64_t side = SIDE_ID;
	struct perf_event_attr attr;
	struct err e = { "" };

	assert_int_equal(recorder_open(&f->r, &config, &e), 0);
	note(f->r, "cpu-clock", CLOCK_ID);
	note(f->r, "page-faults", FAULT_ID);
	note_with(f->r, "minor-faults", DUMP_ID,
		  &(struct attr_config){ .stack_size = DUMP, .regs_mask = 1 });
	attr_side(&attr, &(struct attr_config){ .tasks = false }, 65536);
	recorder_note(f->r, "dummy:u", &attr, &side, 1);
	assert_int_equal(recorder_start(f->r, &e), 0);
}

static void put(struct fixture *f, uint32_t lane, const void *bytes)
{
	const struct perf_event_header *h = bytes;
	struct record r;

	assert_int_equal(record_decode(&r, &layout, h, h->size), 0);
	recorder_put(recorder_lane(f->r, lane), h, &r);
}

/* Of process @pid, in the kernel, at @ip, called from a place that all have. */
static void put_sample_of(struct fixture *f, uint32_t pid, uint32_t cpu, uint64_t id, uint64_t ip)
{
	struct kernel_sample s = kernel_sample(pid, id, ip, KERNEL + 0x100);

	s.time_ns = f->time_ns++;
	s.cpu = cpu;
	s.period = 5;
	put(f, cpu, &s);
}

static void put_sample(struct fixture *f, uint32_t cpu, uint64_t id, uint64_t ip)
{
	put_sample_of(f, 42, cpu, id, ip);
}

#define CHAIN 600u

/*
 * A chain so long that a part of the record ends in it, and a stack copy behind it.
 * At the end of the chain are @nr frames of the kernel.
 */
static void put_long(struct fixture *f, uint32_t nr)
{
	static struct {
		struct perf_event_header h;
		uint64_t id, ip;
		uint32_t pid, tid;
		uint64_t time_ns;
		uint32_t cpu, reserved;
		uint64_t period, nr_chain, chain[CHAIN], abi, dump_size;
		uint8_t dump[DUMP];
		uint64_t dump_valid;
	} s = {
		{ PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL, sizeof(s) },
		.pid = 42,
		.tid = 42,
		.nr_chain = CHAIN,
		.period = 5,
		.dump_size = DUMP,
		.dump_valid = DUMP,
	};
	const struct record_layout with_dump = {
		.sample_type = RECORD_SAMPLE_TYPE | RECORD_STACK_TYPE,
		.regs_mask = 1,
		.id_all = true,
	};
	struct record r;

	s.id = DUMP_ID;
	s.time_ns = f->time_ns++;
	s.chain[0] = (uint64_t)PERF_CONTEXT_USER;
	for (uint32_t i = 1; i < CHAIN; i++)
		s.chain[i] = i < CHAIN - nr ? i : KERNEL + i;
	s.chain[CHAIN - nr - 1] = (uint64_t)PERF_CONTEXT_KERNEL;
	assert_int_equal(record_decode(&r, &with_dump, &s, sizeof(s)), 0);
	recorder_put(recorder_lane(f->r, 0), &s.h, &r);
}

static void put_comm(struct fixture *f, uint32_t pid)
{
	const struct {
		struct perf_event_header h;
		uint32_t pid, tid;
		char comm[8];
		struct synth_id trailer;
	} c = { { PERF_RECORD_COMM, 0, sizeof(c) },
		pid,
		pid,
		"window",
		{ pid, pid, f->time_ns++, 0, 0, SIDE_ID } };

	put(f, 2, &c);
}

static void put_lost(struct fixture *f, uint32_t lane, uint64_t id, uint64_t nr)
{
	const struct {
		struct perf_event_header h;
		uint64_t id, lost;
		struct synth_id trailer;
	} l = { { PERF_RECORD_LOST, 0, sizeof(l) }, id, nr, { 42, 43, f->time_ns++, 1, 0, id } };

	put(f, lane, &l);
}

static void put_throttle(struct fixture *f, uint32_t type, uint64_t time_ns)
{
	const struct {
		struct perf_event_header h;
		uint64_t time_ns, id, stream;
		struct synth_id trailer;
	} t = { { type, 0, sizeof(t) },
		time_ns,
		CLOCK_ID,
		CLOCK_ID,
		{ 42, 43, time_ns, 1, 0, CLOCK_ID } };

	put(f, 1, &t);
}

/* Thread @tid leaves its CPU, as the event of switches records it. */
static void put_switch(struct fixture *f, uint32_t tid)
{
	const struct {
		struct perf_event_header h;
		struct synth_id trailer;
	} s = { { PERF_RECORD_SWITCH, PERF_RECORD_MISC_SWITCH_OUT, sizeof(s) },
		{ tid, tid, f->time_ns++, 1, 0, SWITCH_ID } };

	put(f, 1, &s);
}

static void end(struct fixture *f, uint64_t lost)
{
	struct recorder_stats stats;

	assert_int_equal(recorder_finish(f->r, lost, &stats), 0);
	assert_int_equal(stats.nr_dropped, 0);
	recorder_close(f->r);
}

/* Replay; the sums of all CPUs go to @stats, lost ones to @lost. */
static struct sampler *replay(const struct fixture *f, struct replay_result *result,
			      struct pipeline_stats *stats, uint64_t *lost)
{
	const struct sampler_config config = {
		.replay = f->path,
		.tick_ns = 1000000000,
		.window_ns = 5000000000,
	};
	struct sampler *s;
	struct err e = { "" };

	if (sampler_new(&s, &config, &e))
		fail_msg("%s", e.text);
	assert_int_equal(replay_run(s->replay, &s->store, result), 0);
	memset(stats, 0, sizeof(*stats));
	*lost = 0;
	for (uint32_t i = 0; i < result->nr_cpus; i++) {
		pipeline_add_stats(stats, &result->cpus[i].samples);
		*lost += result->cpus[i].lost;
	}
	return s;
}

TEST(test_each_its_own_stack, setup, teardown)
{
	struct fixture *f = *state;
	const uint64_t nr = 50000;
	struct replay_result result;
	struct pipeline_stats stats;
	struct history_cell *counts;
	uint64_t lost, covers;
	uint32_t nr_counts;
	double counted = 0;
	struct sampler *s;

	begin(f, 16 << 20);
	for (uint64_t i = 0; i < nr; i++)
		put_sample(f, i % 2, CLOCK_ID, KERNEL + 0x1000 + 8 * i);
	for (uint64_t i = 0; i < 10; i++)
		put_sample(f, 0, FAULT_ID, KERNEL + 0x1000);
	end(f, 0);
	s = replay(f, &result, &stats, &lost);
	assert_int_equal(stats.taken, nr + 10);
	assert_int_equal(stats.by_event[0], nr);
	assert_int_equal(stats.by_event[1], 10);
	for (int i = 0; i < DROP_NR; i++)
		assert_int_equal(stats.dropped[i], 0);
	assert_int_equal(lost, 0);
	assert_string_equal(replay_note(s->replay), "");
	assert_int_equal(result.cpus[0].samples.taken, nr / 2 + 10);
	assert_int_equal(result.cpus[1].samples.taken, nr / 2);
	assert_int_equal(result.span_ns, nr + 10 - 1);
	assert_int_equal(history_get(s->store.history, PROFILE_WINDOW, &counts, &nr_counts,
				     &covers),
			 0);
	assert_int_equal(nr_counts, nr + 1);
	for (uint32_t i = 0; i < nr_counts; i++)
		counted += counts[i].count;
	assert_true(counted == nr + 10);
	assert_int_equal(covers, result.span_ns);
	free(counts);
	sampler_free(s);
}

/* One place among many others, on one CPU of two: it is distinct there, and there alone. */
TEST(test_hottest, setup, teardown)
{
	struct fixture *f = *state;
	struct replay_result result;
	struct pipeline_stats stats;
	struct profile_cpu cpu = { 0 };
	uint32_t place;
	struct sampler *s;
	uint64_t lost;

	begin(f, 16 << 20);
	for (uint64_t i = 0; i < 4000; i++)
		put_sample(f, 1, CLOCK_ID, KERNEL + (i % 2 ? 0x2000 : 0x10000 + 8 * i));
	end(f, 0);
	s = replay(f, &result, &stats, &lost);
	assert_int_equal(stats.kernel, 4000);
	hot_function_fill(&cpu, &result.cpus[1].samples, s->store.places);
	assert_int_equal(cpu.kernel, 4000);
	/* Chance hits in its slot are subtracted; hits of its function may be added. */
	assert_in_range(cpu.hot_samples, 1900, 4000);
	place = places_intern(s->store.places, OBJECT_ID_KERNEL, KERNEL + 0x2000);
	/* No symbol covers it if kallsyms is empty: then it is named by its place. */
	if (cpu.hot & ASSEMBLE_PLACE)
		assert_int_equal(cpu.hot, ASSEMBLE_PLACE | place);
	else
		assert_int_equal(cpu.hot, atomic_load(&places_at(s->store.places, place)->symbol));
	hot_function_fill(&cpu, &result.cpus[0].samples, s->store.places);
	assert_int_equal(cpu.hot_samples, 0);
	sampler_free(s);
}

/* LOST records count 7, the sum at the end 10; of the side-band's losses none is a sample. */
TEST(test_lost_once, setup, teardown)
{
	struct fixture *f = *state;
	struct replay_result result;
	struct pipeline_stats stats;
	struct sampler *s;
	uint64_t lost;

	begin(f, 1 << 20);
	put_sample(f, 0, CLOCK_ID, KERNEL + 0x1000);
	put_lost(f, 1, CLOCK_ID, 4);
	put_lost(f, 0, FAULT_ID, 3);
	put_lost(f, 2, SIDE_ID, 1000);
	put_sample(f, 1, CLOCK_ID, KERNEL + 0x2000);
	end(f, 10);
	s = replay(f, &result, &stats, &lost);
	assert_int_equal(stats.taken, 2);
	assert_int_equal(lost, 10);
	assert_int_equal(result.cpus[1].lost, 7); /* as the records' CPU says */
	sampler_free(s);
}

TEST(test_throttled, setup, teardown)
{
	struct fixture *f = *state;
	struct replay_result result;
	struct pipeline_stats stats;
	struct sampler *s;
	uint64_t lost;

	begin(f, 1 << 20);
	put_sample(f, 1, CLOCK_ID, KERNEL + 0x1000);
	put_throttle(f, PERF_RECORD_THROTTLE, 2000000);
	put_throttle(f, PERF_RECORD_UNTHROTTLE, 2500000);
	put_throttle(f, PERF_RECORD_UNTHROTTLE, 2600000); /* of nothing */
	put_throttle(f, PERF_RECORD_THROTTLE, 3000000);
	put_throttle(f, PERF_RECORD_UNTHROTTLE, 3003000000); /* the task slept */
	end(f, 0);
	s = replay(f, &result, &stats, &lost);
	assert_int_equal(result.nr_cpus, 2);
	assert_int_equal(result.cpus[1].throttled, 2);
	assert_int_equal(result.cpus[1].throttled_ns, 500000 + RECORD_PAUSE_MAX_NS);
	assert_int_equal(stats.taken, 1);
	sampler_free(s);
}

/* The last switch of a thread that has exited, as number -1, is of no task that waits. */
TEST(test_last_switch, setup, teardown)
{
	const uint64_t id = SWITCH_ID;
	struct fixture *f = *state;
	struct perf_event_attr attr;
	struct replay_result result;
	struct pipeline_stats stats;
	struct sampler *s;
	uint64_t lost;

	begin(f, 1 << 20);
	attr_switches(&attr);
	recorder_note(f->r, "dummy:u", &attr, &id, 1);
	put_comm(f, 42);
	put_switch(f, 42);
	put_switch(f, UINT32_MAX);
	put_switch(f, 0);
	end(f, 0);
	s = replay(f, &result, &stats, &lost);
	assert_int_equal(result.waits.switched, 1);
	assert_int_equal(result.waits.tasks, 1);
	sampler_free(s);
}

/* Ids of no event in the file are reported, not guessed. */
TEST(test_unknown_event, setup, teardown)
{
	struct fixture *f = *state;
	struct replay_result result;
	struct pipeline_stats stats;
	struct sampler *s;
	uint64_t lost;

	begin(f, 1 << 20);
	put_sample(f, 0, 4711, KERNEL + 0x1000);
	put_sample(f, 0, CLOCK_ID, KERNEL + 0x1000);
	end(f, 0);
	s = replay(f, &result, &stats, &lost);
	assert_int_equal(stats.taken, 2);
	assert_int_equal(stats.dropped[DROP_UNKNOWN_EVENT], 1);
	sampler_free(s);
}

static double uniform(uint64_t *seed)
{
	return (double)(hash_u64(++*seed) >> 11) / 9007199254740992.0;
}

static unsigned int number_of(const char *name, unsigned int otherwise)
{
	const char *text = getenv(name);

	return text ? (unsigned int)strtoul(text, NULL, 10) : otherwise;
}

/* The profile of a recording, as the screen gets it. */
static struct profile *replayed(const struct fixture *f, struct sampler **s)
{
	const struct sampler_config config = {
		.replay = f->path,
		.tick_ns = 1000000000,
		.window_ns = 5000000000,
	};
	struct profile *p = NULL;
	struct err e = { "" };

	if (sampler_new(s, &config, &e))
		fail_msg("%s", e.text);
	assert_int_equal(sampler_reading_permille(*s), 0);
	if (sampler_start(*s, &e))
		fail_msg("%s", e.text);
	/* The builder waits for readers. */
	rcu_thread_offline();
	for (int i = 0; i < 600 && !p; i++) {
		struct pollfd fd = { .fd = sampler_fd(*s), .events = POLLIN };

		poll(&fd, 1, 100);
		p = sampler_take(*s);
	}
	rcu_thread_online();
	assert_non_null(p);
	assert_in_range(sampler_reading_permille(*s), 900, 1000);
	return p;
}

/* The functions of programs of a known mix, and their shares of time. */
static const double mix[] = { 0.46, 0.25, 0.16, 0.1, 0.03 };

static uint64_t draw_ip(uint64_t *seed)
{
	double x = uniform(seed);
	unsigned int i = 0;

	while (i < ARRAY_SIZE(mix) - 1 && x >= mix[i])
		x -= mix[i++];
	return KERNEL + 0x100000 * (i + 1);
}

/* Which of the mix a function is: rows are in order of their shares, which are far apart in the
 * sum. */
static void sort_functions(const struct profile *p, uint32_t order[static ARRAY_SIZE(mix)])
{
	const struct fold_filter all = { .process = UINT32_MAX, .task = UINT32_MAX };
	struct fold_functions fold;
	uint32_t nr = 0;

	assert_int_equal(fold_functions(p, &all, &fold), 0);
	for (uint32_t i = 0; i < fold.nr_rows; i++) {
		uint32_t at = nr;

		if (!(fold.rows[i].self > 0))
			continue;
		assert_true(nr < ARRAY_SIZE(mix));
		for (; at && fold.rows[i].self > fold.rows[order[at - 1]].self; at--)
			order[at] = order[at - 1];
		order[at] = i;
		nr++;
	}
	if (nr == 1 && geteuid())
		skip_test("not permitted: addresses of kernel functions");
	assert_int_equal(nr, ARRAY_SIZE(mix));
	for (uint32_t i = 0; i < nr; i++)
		order[i] = fold.rows[order[i]].function;
	fold_functions_fini(&fold);
}

/* Count the functions with the true share in their interval, as a row of one window shows it. */
static void count_covered(const struct profile *p, uint32_t process,
			  const uint32_t order[static ARRAY_SIZE(mix)], unsigned int *covered)
{
	const struct fold_filter one = { .process = process, .task = UINT32_MAX };
	struct fold_functions fold;

	assert_int_equal(fold_functions(p, &one, &fold), 0);
	for (uint32_t k = 0; k < ARRAY_SIZE(mix); k++) {
		double share = 0;
		struct interval in;

		for (uint32_t i = 0; i < fold.nr_rows; i++)
			if (fold.rows[i].function == order[k])
				share = fold.rows[i].self_weight / fold.weight;
		in = interval_of(share * fold.count, fold.count);
		covered[k] += in.low <= mix[k] && mix[k] <= in.high;
	}
	fold_functions_fini(&fold);
}

/* Each process of the recording is one window of the same mix. */
TEST(test_intervals, setup, teardown)
{
	unsigned int windows = number_of("WINDOWS", 400), samples = number_of("SAMPLES", 200);
	unsigned int covered[ARRAY_SIZE(mix)] = { 0 }, all = 0;
	uint32_t order[ARRAY_SIZE(mix)];
	struct fixture *f = *state;
	struct sampler *s;
	struct profile *p;
	size_t size = 1 << 20;
	uint64_t seed = 0;

	/* A power of two that holds them all: nothing waits for the writer. */
	while (size < (size_t)128 * windows * samples)
		size *= 2;
	begin(f, size);
	for (unsigned int w = 0; w < windows; w++) {
		put_comm(f, 1000 + w);
		for (unsigned int i = 0; i < samples; i++)
			put_sample_of(f, 1000 + w, i % 2, CLOCK_ID, draw_ip(&seed));
	}
	end(f, 0);
	p = replayed(f, &s);
	assert_int_equal(p->account_total.taken, (uint64_t)windows * samples);
	assert_int_equal(p->nr_processes, windows);
	sort_functions(p, order);
	for (uint32_t i = 0; i < p->nr_processes; i++)
		count_covered(p, i, order, covered);
	for (size_t k = 0; k < ARRAY_SIZE(mix); k++) {
		print_message("%.0f %%: covered in %.1f %% of %u windows\n", 100 * mix[k],
			      100.0 * covered[k] / windows, windows);
		all += covered[k];
	}
	/* Of few windows chance alone may have one function off. */
	assert_in_range(all, 0.93 * windows * ARRAY_SIZE(mix), 0.97 * windows * ARRAY_SIZE(mix));
	for (size_t k = 0; k < ARRAY_SIZE(mix) && windows >= 1000; k++)
		assert_in_range(covered[k], 0.93 * windows, 0.97 * windows);
	profile_free(p);
	sampler_free(s);
}

static int check_long(void *ctx, const struct sampler_sample *sample)
{
	uint32_t *nr = ctx;

	if (!strcmp(sample->event, "minor-faults"))
		assert_int_equal(sample->nr_kernel, ++*nr);
	return 0;
}

/* Bytes first left out of a record are the end of a stack copy, or they are read later. */
TEST(test_long_chain, setup, teardown)
{
	struct fixture *f = *state;
	const struct sampler_config config = {
		.replay = f->path,
		.tick_ns = 1000000000,
		.window_ns = 5000000000,
	};
	struct sampler *s;
	uint32_t nr = 0;

	begin(f, 1 << 20);
	for (uint32_t i = 0; i < 20; i++) {
		put_long(f, i + 1);
		put_sample(f, 0, CLOCK_ID, KERNEL);
	}
	end(f, 0);
	assert_int_equal(sampler_new(&s, &config, NULL), 0);
	rcu_unregister_thread(); /* it does so itself */
	assert_int_equal(sampler_each(s, check_long, &nr, NULL), 0);
	rcu_register_thread();
	assert_int_equal(nr, 20);
	sampler_free(s);
}

/* A sample in the kernel; its user chain is in another record (Linux 6.19), with @number. */
static void put_deferred_sample(struct fixture *f, uint32_t tid, uint64_t number)
{
	const struct {
		struct perf_event_header h;
		uint64_t id, ip;
		uint32_t pid, tid;
		uint64_t time_ns;
		uint32_t cpu, reserved;
		uint64_t period, nr_chain, chain[5];
	} s = { { PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL, sizeof(s) },
		.id = CLOCK_ID,
		.ip = KERNEL + 0x1000,
		.pid = 42,
		.tid = tid,
		.time_ns = f->time_ns++,
		.period = 5,
		.nr_chain = 5,
		.chain = { (uint64_t)PERF_CONTEXT_KERNEL, KERNEL + 0x1000, KERNEL + 0x100,
			   RECORD_CONTEXT_DEFERRED, number } };

	put(f, 0, &s);
}

static void put_chain(struct fixture *f, uint32_t tid, uint64_t number, uint64_t nr)
{
	struct {
		struct perf_event_header h;
		uint64_t cookie, nr, ips[3];
		struct synth_id trailer;
	} c = { { RECORD_CHAIN_DEFERRED, PERF_RECORD_MISC_USER, sizeof(c) },
		number,
		nr,
		{ (uint64_t)PERF_CONTEXT_USER, 0x1000 * tid, 0x1000 * tid + number },
		{ 42, tid, f->time_ns++, 0, 0, SIDE_ID } };

	put(f, 2, &c);
}

static int check_deferred(void *ctx, const struct sampler_sample *sample)
{
	uint32_t *nr = ctx, tid = (uint32_t)sample->tid;

	(*nr)++;
	assert_int_equal(sample->nr_kernel, 2);
	if (tid == 45) {
		assert_int_equal(sample->nr_frames, 2);
		assert_string_equal(sample->stop, "truncated");
		return 0;
	}
	assert_string_equal(sample->stop, "guessed");
	assert_int_equal(sample->nr_frames, 4);
	assert_int_equal(sample->ips[2], 0x1000 * tid);
	assert_int_equal(sample->ips[3], 0x1000 * tid + 7);
	return 0;
}

/* perf record --call-graph fp,defer: joined by task and number; one record is of several samples,
 * and one was lost. */
TEST(test_deferred_chains, setup, teardown)
{
	struct fixture *f = *state;
	const struct sampler_config config = {
		.replay = f->path,
		.tick_ns = 1000000000,
		.window_ns = 5000000000,
	};
	struct sampler *s;
	uint32_t nr = 0;

	begin(f, 1 << 20);
	put_comm(f, 42);
	for (uint32_t i = 0; i < 3; i++)
		for (uint32_t tid = 42; tid < 46; tid++)
			put_deferred_sample(f, tid, 7);
	for (uint32_t tid = 42; tid < 45; tid++) {
		put_chain(f, tid, 8, 3);
		put_chain(f, tid, 7, 3);
	}
	put_chain(f, 45, 8, 3);
	end(f, 0);
	assert_int_equal(sampler_new(&s, &config, NULL), 0);
	rcu_unregister_thread(); /* it does so itself */
	assert_int_equal(sampler_each(s, check_deferred, &nr, NULL), 0);
	rcu_register_thread();
	assert_int_equal(nr, 12);
	sampler_free(s);
}

int main(void)
{
	return run_rcu_tests(NULL, NULL);
}
