// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The past of a recording of ten minutes, in which a process computes for 200 ms every 20 s: the
 * heat strip shows each time, and a range of the past has the true shares.
 * Live: waits for threads or processes.
 */
#include "sampler/count/history.c"

#include "sampler/record/record.h"

#include "tests/prelude_rcu.h"

#include <linux/perf_event.h>
#include <unistd.h>

#include "sampler/event/internal.h"
#include "sampler/replay.c"
#include "sampler/profile/profile.h"
#include "tests/sampler/kernel_sample.h"
#include "unwind/unwind.h"
#include "symbols/base/base.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/image/image.h"
#include "symbols/script/script.h"
#include "symbols/process/process.h"
#include "symbols/code/code.h"
#include "sampler/ring/ring.h"
#include "sampler/hot/hot.h"

#define CLOCK_ID  11
#define SIDE_ID	  31
#define KERNEL	  0xffffffff81000000ULL
#define SECOND	  1000000000ULL
#define T_SLICE	  (SECOND / 10)
#define MINUTES	  10
#define EVERY	  (20 * SECOND)
#define PER_SLICE 4  /* samples of the steady process */
#define BURST	  36 /* and of the other, while it runs */
#define BEGIN	  (1000 * SECOND)

struct fixture {
	char dir[64], path[96];
	struct recorder *r;
	struct sampler *s;
};

static const struct record_layout layout = { .sample_type = RECORD_SAMPLE_TYPE, .id_all = true };

static void t_put(struct fixture *f, uint32_t lane, const void *bytes)
{
	const struct perf_event_header *h = bytes;
	struct record r;

	assert_int_equal(record_decode(&r, &layout, h, h->size), 0);
	recorder_put(recorder_lane(f->r, lane), h, &r);
}

static void put_sample(struct fixture *f, uint32_t pid, uint64_t time_ns, uint64_t ip)
{
	struct kernel_sample s = kernel_sample(pid, CLOCK_ID, ip, KERNEL + 0x100);

	s.time_ns = time_ns;
	s.period = 1001001;
	t_put(f, 0, &s);
}

static void put_comm(struct fixture *f, uint32_t pid, uint32_t tid, const char *name)
{
	struct {
		struct perf_event_header h;
		uint32_t pid, tid;
		char comm[8];
		struct kernel_trailer trailer;
	} c = { { PERF_RECORD_COMM, 0, sizeof(c) }, pid, tid, "", { pid, tid, 1, 0, 0, SIDE_ID } };

	snprintf(c.comm, sizeof(c.comm), "%s", name);
	t_put(f, 1, &c);
}

static bool bursts(uint64_t since_ns)
{
	return since_ns % EVERY < 2 * T_SLICE;
}

static void put_all(struct fixture *f)
{
	put_comm(f, 42, 42, "steady");
	put_comm(f, 43, 43, "burst");
	for (uint64_t t = 0; t < MINUTES * 60 * SECOND; t += T_SLICE) {
		uint32_t nr = PER_SLICE + (bursts(t) ? BURST : 0);

		for (uint32_t i = 0; i < nr; i++) {
			bool steady = i < PER_SLICE;

			put_sample(f, steady ? 42 : 43, BEGIN + t + i * (T_SLICE / nr),
				   KERNEL + 0x1000 +
					   (steady ? 8 * (t / T_SLICE % 5000) : 0x100000));
		}
	}
}

static void note(struct recorder *r, const char *name, uint64_t id)
{
	struct perf_event_attr attr;
	struct event ev;

	assert_int_equal(event_parse(&ev, name, NULL), 0);
	attr_sample(&attr, &(struct attr_config){ 0 }, &ev, 999);
	recorder_note(r, name, &attr, &id, 1);
}

static void begin_record(struct fixture *f)
{
	const struct recorder_config config = {
		.path = f->path, .nr_cpus = 1, .lane_size = 16 << 20, .root = f->dir
	};
	const uint64_t side = SIDE_ID;
	struct perf_event_attr attr;
	struct err e = { "" };

	assert_int_equal(recorder_open(&f->r, &config, &e), 0);
	note(f->r, "cpu-clock", CLOCK_ID);
	attr_side(&attr, &(struct attr_config){ .tasks = false }, 65536);
	recorder_note(f->r, "dummy:u", &attr, &side, 1);
	assert_int_equal(recorder_start(f->r, &e), 0);
}

static void end_record(struct fixture *f)
{
	struct recorder_stats stats;

	assert_int_equal(recorder_finish(f->r, 0, &stats), 0);
	assert_int_equal(stats.nr_dropped, 0);
	recorder_close(f->r);
}

static int setup(void **state)
{
	static struct fixture f;
	const struct sampler_config config = { .replay = f.path,
					       .tick_ns = SECOND,
					       .window_ns = 5 * SECOND };
	struct replay_result result;
	struct err e = { "" };

	strcpy(f.dir, "/tmp/test_past.XXXXXX");
	assert_non_null(mkdtemp(f.dir));
	snprintf(f.path, sizeof(f.path), "%s/out.data", f.dir);
	begin_record(&f);
	put_all(&f);
	end_record(&f);
	if (sampler_new(&f.s, &config, &e))
		fail_msg("%s", e.text);
	/* As the builder does. */
	past_use_events(&f.s->past, f.s->store.history, &f.s->config);
	assert_int_equal(replay_run(f.s->replay, &f.s->store, &result), 0);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	const struct fixture *f = *state;
	char command[128];

	sampler_free(f->s);
	snprintf(command, sizeof(command), "rm -rf %s", f->dir);
	return system(command);
}

static void check_slices(const struct slices *slices)
{
	uint64_t last_ns = 0;

	for (uint32_t i = 0; i < slices_nr(slices); i++) {
		const struct slice *slice = slices_at(slices, i);

		assert_true(slice->begin_ns >= last_ns && slice->end_ns > slice->begin_ns);
		last_ns = slice->end_ns;
	}
}

/* Times of foreign files are any number. */
TEST(test_end_of_time)
{
	const uint64_t times[] = { UINT64_MAX - 1, UINT64_MAX - SECOND };
	const struct sampler_config config = { .tick_ns = SECOND, .window_ns = 5 * SECOND };

	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		struct sampler_config c = config;
		struct replay_result result;
		struct err e = { "" };
		struct fixture f;

		strcpy(f.dir, "/tmp/test_past.XXXXXX");
		assert_non_null(mkdtemp(f.dir));
		snprintf(f.path, sizeof(f.path), "%s/out.data", f.dir);
		begin_record(&f);
		put_sample(&f, 42, times[i], KERNEL);
		put_sample(&f, 42, UINT64_MAX, KERNEL);
		end_record(&f);
		c.replay = f.path;
		if (sampler_new(&f.s, &c, &e))
			fail_msg("%s", e.text);
		past_use_events(&f.s->past, f.s->store.history, &f.s->config);
		assert_int_equal(replay_run(f.s->replay, &f.s->store, &result), 0);
		check_slices(history_slices(f.s->store.history));
		teardown((void *[]){ &f });
	}
}

static struct strip *strip_of(struct sampler *s, const struct strip_query *q)
{
	struct strip *strip;
	struct profile *p;

	controls_send(&s->controls,
		      &(struct control){ .kind = CONTROL_STRIP, .strip = strip_copy_query(q) });
	builder_apply(s);
	mailbox_take_past(&s->mailbox, &p, &strip);
	assert_null(p);
	assert_non_null(strip);
	return strip;
}

static struct profile *range_of(struct sampler *s, uint64_t begin_ns, uint64_t end_ns)
{
	struct strip *strip;
	struct profile *p;

	controls_send(&s->controls,
		      &(struct control){ .kind = CONTROL_PAST, .past = { begin_ns, end_ns } });
	builder_apply(s);
	mailbox_take_past(&s->mailbox, &p, &strip);
	assert_null(strip);
	assert_non_null(p);
	return p;
}

/* Samples of a process by its name. */
static double count_of(const struct profile *p, const char *comm, uint32_t *process)
{
	double count = 0;

	for (uint32_t i = 0; i < p->nr_counts; i++) {
		uint32_t index = p->tasks[p->counts[i].task].process;

		if (strcmp(p->processes[index].comm.str, comm))
			continue;
		count += p->counts[i].count;
		*process = p->processes[index].id;
	}
	return count;
}

static const struct strip_query everything = {
	.columns = 70, .process = STRIP_ALL, .thread = STRIP_ALL, .function = STRIP_ALL
};

/* Threads of a recording have the names that they gave themselves, the process that of its first.
 */
TEST(test_names_of_threads)
{
	static const char *const names[] = { "main", "red", "blue" };
	struct sampler_config c = { .tick_ns = SECOND, .window_ns = 5 * SECOND };
	struct replay_result result;
	uint32_t nr[ARRAY_SIZE(names)] = { 0 };
	struct err e = { "" };
	struct profile *p;
	struct fixture f;

	strcpy(f.dir, "/tmp/test_past.XXXXXX");
	assert_non_null(mkdtemp(f.dir));
	snprintf(f.path, sizeof(f.path), "%s/out.data", f.dir);
	begin_record(&f);
	for (uint32_t i = 0; i < ARRAY_SIZE(names); i++)
		put_comm(&f, 42, 42 + i, names[i]);
	for (uint32_t i = 0; i < 60; i++) {
		struct kernel_sample k = kernel_sample(42, CLOCK_ID, KERNEL + 0x1000, KERNEL);

		k.tid = 42 + i % 3;
		k.time_ns = BEGIN + i;
		t_put(&f, 0, &k);
	}
	end_record(&f);
	c.replay = f.path;
	if (sampler_new(&f.s, &c, &e))
		fail_msg("%s", e.text);
	past_use_events(&f.s->past, f.s->store.history, &f.s->config);
	assert_int_equal(replay_run(f.s->replay, &f.s->store, &result), 0);
	p = range_of(f.s, BEGIN, BEGIN + SECOND);
	for (uint32_t i = 0; i < p->nr_counts; i++) {
		const struct profile_task *task = &p->tasks[p->counts[i].task];

		assert_string_equal(p->processes[task->process].comm.str, "main");
		for (size_t k = 0; k < ARRAY_SIZE(names); k++)
			nr[k] += strcmp(task->comm.str, names[k]) ? 0
								  : (uint32_t)p->counts[i].count;
	}
	assert_true(nr[0] == 20 && nr[1] == 20 && nr[2] == 20);
	profile_free(p);
	teardown((void *[]){ &f });
}

/* In a grid a burst is in the rows of its 50 ms, in each second that is wanted. */
TEST(test_grid)
{
	static const uint64_t until[] = { 0, 100 };
	const struct fixture *f = *state;

	for (size_t k = 0; k < ARRAY_SIZE(until); k++) {
		struct strip_query q = everything;
		uint32_t nr_bursts = 0, process;
		struct strip *strip;
		struct profile *p;

		q.grid = true;
		q.until_ns = until[k] ? BEGIN + until[k] * SECOND : 0;
		strip = strip_of(f->s, &q);
		assert_true(strip->grid);
		assert_int_equal(strip->nr, 70 * STRIP_GRID_ROWS);
		assert_int_equal(strip->begin_ns,
				 BEGIN + ((until[k] ? until[k] : MINUTES * 60) - 70) * SECOND);
		for (uint32_t i = 0; i < strip->nr; i++) {
			const struct strip_column *c = &strip->columns[i];
			uint64_t at = strip->begin_ns + i * SECOND / STRIP_GRID_ROWS;
			bool burst = bursts(at / T_SLICE * T_SLICE - BEGIN);

			/* The last one ends with the recording. */
			assert_int_equal(c->begin_ns, at);
			assert_true(c->end_ns == at + SECOND / 20 || i + 1 == strip->nr);
			assert_int_equal(c->peak > strip->max / 2, burst);
			nr_bursts += burst;
		}
		assert_in_range(nr_bursts, 6, 16);
		p = range_of(f->s, strip->begin_ns, strip->begin_ns + SECOND / 20);
		assert_int_equal(p->window_ns, SECOND / 20);
		assert_true(count_of(p, "steady", &process) == PER_SLICE / 2);
		profile_free(p);
		free(strip);
	}
}

/* Every burst is a peak of the strip; each has its true share. */
TEST(test_peaks)
{
	const struct fixture *f = *state;
	struct strip *strip = strip_of(f->s, &everything);
	uint64_t at = UINT64_MAX;
	uint32_t nr = 0, i, process;

	assert_int_equal(strip->first_ns, BEGIN);
	assert_in_range(strip->nr, 50, 70);
	assert_false(strip->merged || strip->dropped);
	while ((i = strip_peak(strip, at, false)) < strip->nr) {
		const struct strip_column *c = &strip->columns[i];
		struct profile *p = range_of(f->s, c->begin_ns, c->end_ns);

		assert_true(bursts(c->begin_ns - BEGIN) && c->end_ns - c->begin_ns == T_SLICE);
		assert_true(count_of(p, "burst", &process) == BURST);
		assert_true(count_of(p, "steady", &process) == PER_SLICE);
		assert_int_equal(p->past_begin_ns, c->begin_ns);
		assert_int_equal(p->window_ns, T_SLICE);
		profile_free(p);
		at = c->begin_ns;
		nr++;
	}
	assert_int_equal(nr, MINUTES * 60 / 20);
	free(strip);
}

/* An even load has no peak, whatever its noise; two bursts in it are two. */
TEST(test_even)
{
	struct strip *s = calloc(1, sizeof(*s) + 60 * sizeof(s->columns[0]));

	s->nr = 60;
	s->max = 110;
	for (uint32_t i = 0; i < s->nr; i++)
		s->columns[i] = (struct strip_column){ .peak = 90 + i * 7 % 21,
						       .begin_ns = i * T_SLICE,
						       .end_ns = (i + 1) * T_SLICE };
	assert_int_equal(strip_peak(s, UINT64_MAX, false), s->nr);
	assert_int_equal(strip_peak(s, 0, true), s->nr);
	s->columns[10].peak = s->columns[40].peak = s->max = 200;
	assert_int_equal(strip_peak(s, UINT64_MAX, false), 40);
	assert_int_equal(strip_peak(s, s->columns[40].begin_ns, false), 10);
	assert_int_equal(strip_peak(s, s->columns[10].end_ns, true), 40);
	free(s);
}

/* A slice that was merged is in all columns that it covers: an even load has no gaps. */
TEST(test_merged)
{
	static const uint8_t events[] = { 0 };
	struct assemble_input tables = { 0 };
	struct stacks *stacks;
	struct strip_query *q = malloc(sizeof(*q));
	struct strip_filter f = { 0 };
	struct slices *slices;
	struct strip *s;

	*q = everything;
	assert_int_equal(stacks_new(&stacks, 1, 1), 0);
	tables.stacks = stacks;
	assert_int_equal(slices_new(&slices, 600 * SECOND, 180000), 0);
	strip_filter_set(&f, q);
	for (uint64_t i = 0; i < 3000; i++) {
		const struct slice about = { .begin_ns = BEGIN + i * T_SLICE,
					     .end_ns = BEGIN + (i + 1) * T_SLICE };
		struct count counts[50];

		for (uint32_t k = 0; k < 50; k++)
			counts[k] = (struct count){ k * 7 + (uint32_t)i, 0, 0, 1, 1, 0 };
		assert_int_equal(slices_add(slices, counts, 50, &about), 0);
	}
	s = strip_make(&f, &(struct strip_input){ slices, &tables, events, 1, 0 });
	assert_non_null(s);
	assert_true(s->merged);
	for (uint32_t i = strip_column_at(s, s->first_ns); i < s->nr; i++)
		if (!(s->columns[i].peak > 0))
			fail_msg("column %u of %u is empty", i, s->nr);
	free(s);
	strip_filter_fini(&f);
	slices_free(slices);
	stacks_free(stacks);
}

/* The strip of one process, and of one function, has its samples alone. */
TEST(test_selected)
{
	const struct fixture *f = *state;
	struct profile *all = range_of(f->s, 0, UINT64_MAX);
	struct strip_query *q = calloc(1, sizeof(*q));
	uint32_t process = 0, nr = 0;
	struct strip *strip;

	assert_true(count_of(all, "burst", &process) == MINUTES * 3 * 2 * BURST);
	*q = everything;
	q->process = process;
	strip = strip_of(f->s, q);
	for (uint32_t i = 0; i < strip->nr; i++) {
		const struct strip_column *c = &strip->columns[i];

		if (!(c->peak > 0))
			continue;
		assert_true(bursts(c->begin_ns - BEGIN));
		assert_true(c->peak == BURST * 1001001.0 * 10);
		nr++;
	}
	assert_int_equal(nr, MINUTES * 3);
	free(strip);

	/* The function that only the burst has. */
	q->process = STRIP_ALL;
	for (uint32_t i = 0; i < all->nr_counts; i++) {
		const struct profile_count *c = &all->counts[i];

		if (!strcmp(all->processes[all->tasks[c->task].process].comm.str, "burst"))
			q->function = all->functions[all->frames[all->stacks[c->stack].first]].id;
	}
	strip = strip_of(f->s, q);
	assert_true(strip->max >= BURST * 1001001.0 * 10);
	for (uint32_t i = 0; i < strip->nr; i++)
		assert_true(!(strip->columns[i].peak > 0) ||
			    bursts(strip->columns[i].begin_ns - BEGIN) ||
			    strip->columns[i].peak < strip->max / 4);
	free(strip);
	free(q);
	profile_free(all);
}

static void *make_text(const char *text)
{
	return strdup(text);
}

static bool starts(const void *made, const struct strip_name *n)
{
	const char *text = made;

	/* 'k': a function of the kernel; else the name of a task. */
	return *text == 'k' ? n->kind == 'k' : !n->kind && !strcmp(n->name.str, text);
}

static const struct strip_matcher matcher = { make_text, starts, free };

/* A filter selects the stacks of tasks and functions by name; inverted all others. */
TEST(test_filtered)
{
	static const struct {
		const char *text;
		bool inverted, only_tasks;
		uint32_t per_slice, per_burst; /* samples of a slice; of one with a burst */
	} rows[] = {
		{ "burst", false, false, 0, BURST },
		{ "burst", true, false, PER_SLICE, PER_SLICE },
		{ "steady", false, true, PER_SLICE, PER_SLICE },
		{ "nothing", false, false, 0, 0 },
		{ "nothing", true, false, PER_SLICE, PER_SLICE + BURST },
		{ "k", false, false, PER_SLICE, PER_SLICE + BURST },
		{ "k", false, true, 0, 0 },
	};
	const struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct strip_query q = everything;
		struct strip *strip;

		snprintf(q.filter, sizeof(q.filter), "%s", rows[i].text);
		q.matcher = &matcher;
		q.inverted = rows[i].inverted;
		q.only_tasks = rows[i].only_tasks;
		strip = strip_of(f->s, &q);
		for (uint32_t c = 0; c < strip->nr; c++) {
			double most = MAX(rows[i].per_slice, rows[i].per_burst) * 1001001.0 * 10;

			assert_true(strip->columns[c].peak <= most);
			assert_true(strip->columns[c].peak >= rows[i].per_slice * 1001001.0 * 10);
		}
		assert_true(strip->max ==
			    MAX(rows[i].per_slice, rows[i].per_burst) * 1001001.0 * 10);
		free(strip);
	}
}

/* A zoomed strip has the newest part, in columns of slices. */
TEST(test_zoom)
{
	const struct fixture *f = *state;
	struct strip_query q = everything;
	struct strip *strip;

	q.span_ns = 6 * SECOND;
	strip = strip_of(f->s, &q);
	assert_int_equal(strip->column_ns, T_SLICE);
	assert_in_range(strip->nr, 60, 70);
	assert_int_equal(strip_column_at(strip, 0), 0);
	assert_int_equal(strip_column_at(strip, UINT64_MAX), strip->nr - 1);
	free(strip);
}

/* Any partition of the past has each sample once. */
TEST(test_partition)
{
	const struct fixture *f = *state;
	const uint64_t end = BEGIN + MINUTES * 60 * SECOND;
	double count = 0;

	for (uint64_t at = BEGIN, step = 3 * SECOND + 7; at < end; at += step) {
		struct profile *p = range_of(f->s, at, MIN(at + step, end));

		count += p->window_samples;
		profile_free(p);
	}
	assert_true(count == MINUTES * 60 * 10 * PER_SLICE + MINUTES * 3 * 2 * BURST);
}

/* What a key costs, from the request to the profile: printed, not asserted. */
TEST(test_cost)
{
	const struct fixture *f = *state;
	uint64_t begin = time_thread_ns(), strip_ns;
	struct strip_query q = everything;
	struct strip *strip;

	q.thread = 1;
	strip = strip_of(f->s, &q);
	strip_ns = time_thread_ns() - begin;
	begin = time_thread_ns();
	profile_free(range_of(f->s, 0, UINT64_MAX));
	print_message("another strip %llu us, all the past %llu us of CPU time\n",
		      (unsigned long long)strip_ns / 1000,
		      (unsigned long long)(time_thread_ns() - begin) / 1000);
	assert_true(strip->max == 0);
	free(strip);
}

int main(void)
{
	return run_rcu_tests(setup, teardown);
}
