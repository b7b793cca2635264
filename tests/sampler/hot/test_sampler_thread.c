// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Records of a ring as a sampler thread handles them: which frames of languages are recorded,
 * switches of tasks that exit, pauses without an end, and a ring that takes long.
 * Live: waits for threads or processes.
 */
#include "sampler/hot/sampler_thread.c"
#include "sampler/record/recorder.c"
#include "sampler/waits/waits.c"
#include "sampler/tick.c"

#include "sampler/hot/internal.h"

#include "tests/prelude_rcu.h"

#include <dirent.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sampler/event/event.h"
#include "sampler/internal.h"
#include "symbols/base/base.h"
#include "symbols/base/thread.h"
#include "symbols/process/process.h"
#include "tests/sampler/fake_kernel.h"
#include "tests/sampler/kernel_sample.h"
#include "unwind/unwind.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/image/image.h"
#include "symbols/script/script.h"
#include "symbols/name/name.h"
#include "symbols/code/code.h"
#include "sampler/ring/ring.h"
#include "sampler/count/count.h"
#include "sampler/profile/profile.h"
#include "sampler/perfdata/internal.h"

#define KERNEL_IP 0xffffffff81001000ULL
#define TIME_NS	  100
#define OWN_PID	  9
#define GUARD_PID 8

struct waking_sample {
	struct perf_event_header h;
	uint64_t id;
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, reserved;
	uint32_t raw_size;
	uint8_t raw[36];
};

struct fixture {
	struct fake *kernel;
	struct sampler_thread_shared shared;
	struct pipeline_tables tables;
	struct recorder_lane lane;
	struct sampler_thread *thread;
	struct sampler_thread_stats stats;
	uint64_t id, waking_id;
};

/* Open the events; note the ids of the sampled one and of wake-ups. */
static void open_counters(struct fixture *f)
{
	struct event events[] = { parse("cpu-clock"), parse("waits") }, waking;
	struct counters_config config = system_config(events, 2);
	struct counters_sys sys;
	struct fake_fd *fds[MAX_FDS];

	f->kernel = fake_new();
	sys = fake_sys(f->kernel);
	sys.waking = fake_waking;
	fake_waking(&waking);
	config.stack_size = 0;
	assert_int_equal(counters_open(&f->shared.counters, &config, &sys, NULL), 0);
	counters_enable(f->shared.counters, true);
	assert_true(find_open(f->kernel, &events[0], fds) > 0);
	f->id = (uint64_t)(fds[0] - f->kernel->fds + FIRST_FD) * 10;
	assert_true(find_open(f->kernel, &waking, fds) > 0);
	f->waking_id = (uint64_t)(fds[0] - f->kernel->fds + FIRST_FD) * 10;
	assert_int_equal(counters_event_of(f->shared.counters, 0, f->id), 0);
	assert_int_equal(counters_event_of(f->shared.counters, 0, f->waking_id), COUNTERS_WAKING);
}

/* Process 3 is an interpreter. */
static void detect(struct pipeline_tables *t)
{
	struct lang_desc *desc = xcalloc(1, sizeof(*desc));
	struct maps_hit hit;

	atomic_init(&desc->refs, 1);
	desc->info.kind = LANG_PYTHON;
	maps_find(t->maps, t->tasks, 3, 3, TIME_NS, &hit);
	maps_describe(t->maps, 3, hit.process, desc);
}

static void make_tables(struct pipeline_tables *t)
{
	assert_int_equal(objects_new(&t->objects), 0);
	assert_int_equal(maps_new(&t->maps, t->objects, 64), 0);
	maps_no_proc(t->maps);
	maps_on_comm(t->maps, 3, 3, "three", 6, true, 1);
	maps_publish(t->maps, 10, 1);
	t->tasks = maps_tasks(t->maps);
	detect(t);
	assert_int_equal(places_new(&t->places, 64), 0);
	assert_int_equal(unwind_rows_new(&t->unwind.rows, 64), 0);
	assert_int_equal(stacks_new(&t->stacks, 64, 1 << 16), 0);
	assert_int_equal(counts_new(&t->counts, 64, 64), 0);
	t->own_pid = OWN_PID;
	t->guard = GUARD_PID;
	t->languages = lang_bit(LANG_PYTHON);
}

static int setup(void **state)
{
	static struct fixture f;
	struct sampler_thread *t = aligned_alloc(CACHELINE, sizeof(*t));

	memset(&f, 0, sizeof(f));
	memset(t, 0, sizeof(*t));
	open_counters(&f);
	make_tables(&f.tables);
	assert_int_equal(spool_init(&f.lane.spool, 1 << 20), 0);
	t->shared = &f.shared;
	t->own_pid = OWN_PID;
	t->guard = GUARD_PID;
	t->lane = &f.lane;
	t->notes = calloc(1, sizeof(*t->notes));
	t->deltas = deltas_new(16);
	t->held_samples = held_samples_new();
	assert_int_equal(pipeline_new(&t->pipeline, &f.tables, NULL), 0);
	f.thread = t;
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	pipeline_free(f->thread->pipeline);
	held_samples_free(f->thread->held_samples);
	deltas_free(f->thread->deltas);
	free(f->thread->notes);
	free(f->thread);
	spool_fini(&f->lane.spool);
	counts_free(f->tables.counts);
	stacks_free(f->tables.stacks);
	unwind_rows_free(f->tables.unwind.rows);
	maps_free(f->tables.maps);
	places_free(f->tables.places);
	objects_free(f->tables.objects);
	counters_close(f->shared.counters);
	free(f->kernel);
	return 0;
}

static void t_put_sample(struct fixture *f, uint32_t pid)
{
	struct kernel_sample s = kernel_sample(pid, f->id, KERNEL_IP, KERNEL_IP + 0x100);

	s.time_ns = TIME_NS;
	sampler_thread_record(f->thread, &f->stats, &s.h);
}

/* Process @pid wakes another one. */
static void put_waking(struct fixture *f, uint32_t pid)
{
	const struct waking_sample s = {
		.h = { PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL, sizeof(s) },
		.id = f->waking_id,
		.pid = pid,
		.tid = pid,
		.time_ns = TIME_NS + 1,
		.raw_size = sizeof(s.raw),
	};

	sampler_thread_record(f->thread, &f->stats, &s.h);
}

/* Count the records in the lane, which are dropped: samples, and frames of processes other than 3.
 */
static void take(struct fixture *f, uint32_t *nr_samples, uint32_t *nr_frames, uint32_t *nr_wrong)
{
	struct iovec pieces[2];
	struct lang_frames frames;

	*nr_samples = *nr_frames = *nr_wrong = 0;
	assert_int_equal(spool_peek(&f->lane.spool, pieces), 1);
	for (size_t at = 0; at < pieces[0].iov_len;) {
		const uint8_t *bytes = (const uint8_t *)pieces[0].iov_base + at;
		const struct perf_event_header *h = (const void *)bytes;

		*nr_samples += h->type == PERF_RECORD_SAMPLE;
		if (h->type == LANG_RECORD_TYPE) {
			assert_int_equal(lang_record_frames(bytes, h->size, &frames), 0);
			++*nr_frames;
			*nr_wrong += frames.pid != 3;
		}
		at += h->size;
	}
	spool_drop(&f->lane.spool, pieces, 1);
}

/* A wake-up has no frames: none of the sample before it are recorded for it. */
TEST(test_frames_of_wakeup, setup, teardown)
{
	struct fixture *f = *state;
	uint32_t nr_samples, nr_frames, nr_wrong;

	t_put_sample(f, 3);
	put_waking(f, 4);
	put_waking(f, OWN_PID);
	t_put_sample(f, 5);
	put_waking(f, 3);
	take(f, &nr_samples, &nr_frames, &nr_wrong);
	assert_int_equal(nr_samples, 5);
	assert_int_equal(nr_wrong, 0);
	assert_int_equal(nr_frames, 1);
}

/* Thread @tid leaves its CPU. */
static void put_switch(struct fixture *f, uint32_t pid, uint32_t tid, uint64_t time_ns)
{
	const struct {
		struct perf_event_header h;
		struct synth_id trailer;
	} s = { { PERF_RECORD_SWITCH, PERF_RECORD_MISC_SWITCH_OUT, sizeof(s) },
		{ pid, tid, time_ns, 0, 0, f->id } };

	sampler_thread_record(f->thread, &f->stats, &s.h);
}

/* The last switch of a task that has exited has the numbers -1, and is of no task; nor of ours. */
TEST(test_last_switch, setup, teardown)
{
	struct fixture *f = *state;
	struct switch_queue *q = switch_queue_new(16);
	const struct switch_note *note;

	f->thread->queue = q;
	put_switch(f, 3, 4, 1000);
	put_switch(f, UINT32_MAX, UINT32_MAX, 2000);
	put_switch(f, 3, UINT32_MAX, 3000);
	put_switch(f, 0, 0, 4000);
	put_switch(f, OWN_PID, OWN_PID, 5000);
	put_switch(f, GUARD_PID, GUARD_PID, 6000);
	assert_int_equal(switch_queue_nr(q), 1);
	note = switch_queue_first(q);
	assert_int_equal(note->tid, 4);
	assert_int_equal(note->step, STEP_OUT);
	f->thread->queue = NULL;
	switch_queue_free(q);
}

static void put_throttle(struct fixture *f, uint32_t type, uint64_t time_ns)
{
	const struct {
		struct perf_event_header h;
		uint64_t time_ns, id, stream;
		struct synth_id trailer;
	} r = { { type, 0, sizeof(r) }, time_ns, f->id, f->id, { 3, 3, time_ns, 0, 0, f->id } };

	sampler_thread_record(f->thread, &f->stats, &r.h);
}

/* Return the throttled time of a tick of a second. */
static uint64_t throttled_ns(struct fixture *f, uint64_t end_ns)
{
	struct profile_cpu cpu = { 0 };
	struct lost lost = { 0 };

	lost_add_throttled(&lost, f->thread, &f->stats, &cpu, end_ns, 1000000000);
	memset(&f->stats, 0, sizeof(f->stats));
	return cpu.throttled_ns;
}

/*
 * A pause ends with the next timer tick. Nothing more is missing if its end is not recorded, as the
 * event was closed, or is late, as the task slept.
 */
TEST(test_pause_without_end, setup, teardown)
{
	const uint64_t s = 1000000000, ms = 1000000;
	struct fixture *f = *state;

	put_throttle(f, PERF_RECORD_THROTTLE, s);
	put_throttle(f, PERF_RECORD_UNTHROTTLE, s + 4 * ms);
	assert_int_equal(throttled_ns(f, 2 * s), 4 * ms);
	put_throttle(f, PERF_RECORD_THROTTLE, 3 * s - 3 * ms);
	assert_int_equal(throttled_ns(f, 3 * s), 3 * ms);
	assert_int_equal(throttled_ns(f, 4 * s), 7 * ms);
	for (uint64_t i = 5; i < 9; i++)
		assert_int_equal(throttled_ns(f, i * s), 0);
	put_throttle(f, PERF_RECORD_UNTHROTTLE, 9 * s);
	assert_in_range(throttled_ns(f, 10 * s), 0, 10 * ms);
	assert_int_equal(throttled_ns(f, 11 * s), 0);
}

#define RING_SIZE  (1ULL << 28)
#define NR_SAMPLES 4096u /* of which the bytes are mapped again and again */
#define NR_MAPPED  560u	 /* 2.3 million samples take half a second */

/* Return the thread of this process with this name, or 0. */
static pid_t thread_named(const char *name)
{
	DIR *dir = opendir("/proc/self/task");
	pid_t found = 0;

	for (struct dirent *d; (d = readdir(dir)) && !found;) {
		char path[300], comm[32] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", d->d_name);
		file = d->d_name[0] == '.' ? NULL : fopen(path, "re");
		if (file && fgets(comm, sizeof(comm), file) && !strncmp(comm, name, strlen(name)))
			found = (pid_t)atoi(d->d_name);
		if (file)
			fclose(file);
	}
	closedir(dir);
	return found;
}

/* Give CPU 0 a ring of samples that takes long. Returns its memory. */
static uint8_t *fill_ring(struct fixture *f, struct perf_event_mmap_page *page)
{
	struct ring *ring = &counters_cpu(f->shared.counters, 0)->data;
	struct kernel_sample s = kernel_sample(3, f->id, KERNEL_IP, KERNEL_IP + 0x100);
	uint8_t *data = mmap(NULL, RING_SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = memfd_create("samples", MFD_CLOEXEC);
	size_t size = NR_SAMPLES * sizeof(s);

	s.time_ns = TIME_NS;
	for (uint32_t i = 0; i < NR_SAMPLES; i++)
		assert_int_equal(write(fd, &s, sizeof(s)), sizeof(s));
	for (uint32_t i = 0; i < NR_MAPPED; i++)
		assert_true(mmap(data + i * size, size, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) !=
			    MAP_FAILED);
	close(fd);
	page->data_head = NR_MAPPED * size;
	ring_close(ring);
	ring_init(ring, page, data, RING_SIZE);
	return data;
}

/* How often the thread has slept (proc_pid_status(5)). */
static unsigned int sleeps(pid_t tid)
{
	static const char key[] = "voluntary_ctxt_switches:";
	char path[64], line[128];
	unsigned int nr = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, key, strlen(key)))
			nr = (unsigned int)atoi(line + strlen(key));
	if (file)
		fclose(file);
	return nr;
}

/* Look at the thread until it has handled the ring. Return how often it slept in that time. */
static unsigned int count_rests(const struct perf_event_mmap_page *page, pid_t tid, bool *first)
{
	const struct sched_param above = { .sched_priority = 2 }, none = { 0 };
	unsigned int before = sleeps(tid), rests = 0;

	/* On a busy machine this thread would look too late. */
	sched_setscheduler(0, SCHED_RR, &above);
	while (__atomic_load_n(&page->data_tail, __ATOMIC_ACQUIRE) < page->data_head) {
		*first = (sched_getscheduler(tid) & ~SCHED_RESET_ON_FORK) == SCHED_RR;
		rests = sleeps(tid) - before;
		usleep(1000);
	}
	sched_setscheduler(0, SCHED_OTHER, &none);
	return rests;
}

/* In a batch that takes long the thread keeps its real-time priority, and rests. */
TEST(test_long_batch, setup, teardown)
{
	static struct perf_event_mmap_page page;
	struct fixture *f = *state;
	struct sampler_thread *t;
	unsigned int rests;
	bool first = false;
	uint8_t *data = fill_ring(f, &page);
	pid_t tid = 0;
	uint64_t begin;

	assert_int_equal(sideband_new(&f->shared.sideband, f->shared.counters, f->tables.maps, NULL,
				      NULL),
			 0);
	atomic_init(&f->shared.tables, &f->tables);
	f->shared.builder_fd = wake_new();
	begin = time_now_ns();
	assert_int_equal(sampler_thread_start(&t, &f->shared, 0, NULL), 0);
	while (!(tid = thread_named("cpu0")))
		;
	rests = count_rests(&page, tid, &first);
	print_message("%u ms, with priority %d, %u rests\n",
		      (unsigned int)((time_now_ns() - begin) / 1000000), first, rests);
	rcu_thread_offline();
	sampler_thread_stop(t);
	rcu_thread_online();
	sideband_free(f->shared.sideband);
	close(f->shared.builder_fd);
	munmap(data, RING_SIZE);
	if (!first)
		skip(); /* not permitted */
	assert_in_range(rests, 5, 1000);
}

#define COOKIE 0x700000001ULL

/* A sample in user code, with its chain to come. */
static void put_deferred(struct fixture *f, uint32_t pid, uint64_t cookie)
{
	struct kernel_sample s = kernel_sample(pid, f->id, KERNEL_IP, KERNEL_IP);

	s.h.misc = PERF_RECORD_MISC_USER;
	s.ip = 0x1000;
	s.nr_chain = 2;
	s.chain[0] = RECORD_CONTEXT_DEFERRED;
	s.chain[1] = cookie;
	s.h.size -= sizeof(s.chain[2]);
	s.time_ns = TIME_NS;
	sampler_thread_record(f->thread, &f->stats, &s.h);
}

struct deferred_chain {
	struct perf_event_header h;
	uint64_t cookie, nr, ips[3];
	struct kernel_trailer trailer;
};

/* Put chains into the side-band ring of CPU 0, and drain it. */
static void put_chains(struct fixture *f, struct deferred_chain *chains, uint32_t nr)
{
	static struct perf_event_mmap_page page;
	static uint8_t data[4096];
	struct ring *ring = &counters_cpu(f->shared.counters, 0)->side;

	memset(&page, 0, sizeof(page));
	memcpy(data, chains, nr * sizeof(*chains));
	page.data_head = nr * sizeof(*chains);
	ring_close(ring);
	ring_init(ring, &page, data, sizeof(data));
	sideband_drain(f->shared.sideband);
	assert_int_equal(page.data_tail, page.data_head);
}

static struct deferred_chain deferred_chain(uint32_t tid, uint64_t cookie)
{
	return (struct deferred_chain){
		.h = { RECORD_CHAIN_DEFERRED, PERF_RECORD_MISC_USER,
		       sizeof(struct deferred_chain) },
		.cookie = cookie,
		.nr = 3,
		.ips = { 0x1000, 0x2000, 0x3000 },
		.trailer = { .pid = 3, .tid = tid },
	};
}

/*
 * -g defer: a sample is joined with the chain of its task and number, before it or after it, and
 * without one counted as truncated when it was held for a second. Each is counted once.
 */
TEST(test_deferred, setup, teardown)
{
	struct fixture *f = *state;
	struct sampler_thread *t = f->thread;
	const struct pipeline_stats *st = &f->stats.samples;
	struct deferred_chain chains[] = { deferred_chain(3, COOKIE),
					   deferred_chain(4, COOKIE + 1) };

	assert_int_equal(sideband_new(&f->shared.sideband, f->shared.counters, f->tables.maps, NULL,
				      NULL),
			 0);
	t->now_ns = 1000;
	put_deferred(f, 3, COOKIE);
	put_deferred(f, 3, COOKIE + 1); /* the chain of that number is another task's */
	assert_int_equal(st->taken, 0);
	put_chains(f, chains, 2);
	put_deferred(f, 3, COOKIE); /* the same chain is of several samples */
	assert_int_equal(st->taken, 1);
	sampler_thread_again(t, &f->stats, false);
	assert_int_equal(st->taken, 2);
	assert_int_equal(st->guessed, 2);
	assert_int_equal(st->truncated, 0);
	t->now_ns += DEFERRED_NS;
	sampler_thread_again(t, &f->stats, false);
	assert_int_equal(st->taken, 2);
	t->now_ns++;
	sampler_thread_again(t, &f->stats, false);
	assert_int_equal(st->taken, 3);
	assert_int_equal(st->truncated, 1);
	assert_false(held_samples_any(t->held_samples));
	put_deferred(f, 3, COOKIE + 9);
	sampler_thread_again(t, &f->stats, true); /* at the end of the session */
	assert_int_equal(st->taken, 4);
	assert_int_equal(st->truncated, 2);
	sideband_free(f->shared.sideband);
}

/* While a report warms up nothing waits: the first tick without a pending sample begins it. */
TEST(test_warming, setup, teardown)
{
	struct fixture *f = *state;
	const struct pipeline_stats *st = &f->stats.samples;

	assert_int_equal(sideband_new(&f->shared.sideband, f->shared.counters, f->tables.maps, NULL,
				      NULL),
			 0);
	f->thread->now_ns = 1000;
	put_deferred(f, 3, COOKIE);
	assert_int_equal(st->taken, 0);
	atomic_store(&f->shared.warming, true);
	put_deferred(f, 3, COOKIE + 1);
	assert_int_equal(st->taken, 1);
	assert_int_equal(st->truncated, 1);
	sideband_free(f->shared.sideband);
}

/* The newest chains are found, the ones that were overwritten are not. */
TEST(test_deferred_log, setup, teardown)
{
	enum { NR = 150000, NEWEST = 4000, LOG = 2 * 262144 / 5 };
	struct fixture *f = *state;
	struct deferred_chain c;
	uint64_t ips[8];

	assert_int_equal(sideband_new(&f->shared.sideband, f->shared.counters, f->tables.maps, NULL,
				      NULL),
			 0);
	for (uint32_t i = 0; i < NR; i++) {
		c = deferred_chain(3, COOKIE + i);
		c.ips[2] = i;
		put_chains(f, &c, 1);
	}
	for (uint32_t i = 0; i < NR; i++) {
		int nr = sideband_chain(f->shared.sideband, 3, COOKIE + i, ips, 8);

		if (nr >= 0 || i >= NR - NEWEST) {
			assert_int_equal(nr, 3);
			assert_int_equal(ips[2], i);
			assert_true(i >= NR - LOG);
		}
	}
	assert_int_equal(sideband_chain(f->shared.sideband, 4, COOKIE + NR - 1, ips, 8), -1);
	assert_int_equal(sideband_chain(f->shared.sideband, 3, COOKIE + NR - 1, ips, 2), 2);
	sideband_free(f->shared.sideband);
}

int main(void)
{
	return run_rcu_tests(NULL, NULL);
}
