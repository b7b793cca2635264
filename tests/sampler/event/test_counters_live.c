// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * counters on the real kernel, where perf_event_open is permitted: rates, lost
 * samples counted exactly, side-band, two sessions, targets that end.
 * Live: opens perf events.
 */
#include "sampler/event/counters.c"

#include "tests/prelude.h"
#include "tests/reference.h"
#include "symbols/base/base.h"
#include "sampler/ring/ring.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define REGS_MASK 0xff0fffULL

static struct event parse(const char *text)
{
	struct event ev;

	assert_int_equal(event_parse(&ev, text, NULL), 0);
	return ev;
}

static struct counters *open_live(const struct counters_config *config)
{
	struct counters *c;
	struct err e = { "" };
	int code = counters_open(&c, config, &counters_kernel, &e);

	if (code == -EACCES || code == -EPERM || code == -ENOSYS)
		return NULL;
	if (code)
		fail_msg("%s", e.text);
	return c;
}

static void spin(uint64_t ns)
{
	uint64_t until = time_now_ns() + ns;

	while (time_now_ns() < until)
		;
}

struct tally {
	uint32_t pid; /* forks and exits of this process only, not of its threads; 0: all */
	uint64_t samples, stacks, lost, mmaps, comms, forks, exits;
};

/* Read one ring to its end; every record must decode. */
static void drain(struct ring *ring, const struct record_layout *layout, const struct counters *c,
		  struct tally *t)
{
	const struct perf_event_header *h;
	struct record r;

	if (!ring_begin(ring))
		return;
	while ((h = ring_next(ring))) {
		int code = record_decode(&r, layout, h, h->size);

		if (code)
			fail_msg("record of type %u, %u bytes: %d", h->type, h->size, code);
		if (r.type == PERF_RECORD_SAMPLE) {
			t->samples++;
			assert_in_range(counters_event_of(c, 0, r.sample.id), 0, 1);
			assert_true(r.time_ns && r.time_ns <= time_now_ns());
			t->stacks += r.sample.stack_dyn > 0 && r.sample.regs;
		} else if (r.type == PERF_RECORD_LOST || r.type == PERF_RECORD_LOST_SAMPLES) {
			t->lost += r.lost;
		}
		t->mmaps += r.type == PERF_RECORD_MMAP2;
		t->comms += r.type == PERF_RECORD_COMM;
		if (t->pid && (r.task.pid != t->pid || r.task.tid != t->pid))
			continue;
		t->forks += r.type == PERF_RECORD_FORK;
		t->exits += r.type == PERF_RECORD_EXIT;
	}
	ring_end(ring);
	assert_int_equal(ring->nr_bad, 0);
}

static void drain_all(struct counters *c, struct tally *data, struct tally *side)
{
	for (uint32_t i = 0; i < counters_nr_cpus(c); i++) {
		struct counters_cpu *cpu = counters_cpu(c, i);

		drain(&cpu->data, counters_layout(c), c, data);
		drain(&cpu->side, counters_side_layout(c), c, side);
	}
}

static struct counters_config live_config(const struct event *event, const pid_t *self)
{
	static int *cpus;
	static int nr;

	if (!cpus)
		nr = task_list_online_cpus(&cpus, NULL);
	return (struct counters_config){
		.cpus = cpus,
		.nr_cpus = (uint32_t)nr,
		.tids = self,
		.nr_tids = 1,
		.events = event,
		.nr_events = 1,
		.hz = 999,
		.stack_size = 8192,
		.regs_mask = REGS_MASK,
		.exclude_idle = true,
	};
}

/* CPU time of @ns spent, however long that takes on a busy machine. */
static void burn(uint64_t ns)
{
	uint64_t now, start = 0;
	struct timespec ts;

	for (;;) {
		/* the clock is a system call: most of the time must be the user's */
		for (volatile int i = 0; i < 100000; i++)
			;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
		now = (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
		start = start ? start : now;
		if (now - start >= ns)
			return;
	}
}

static uint64_t sum_lost(struct counters *c, uint64_t *count)
{
	uint64_t lost = 0;

	*count = 0;
	for (uint32_t i = 0; i < counters_nr_cpus(c); i++) {
		struct counters_value v;

		assert_int_equal(counters_read(c, i, 0, &v), 0);
		lost += v.lost;
		*count += v.count;
	}
	return lost;
}

TEST(test_live_clock)
{
	struct event event = parse("cpu-clock:u");
	pid_t self = getpid();
	struct counters_config config = live_config(&event, &self);
	struct counters *c = open_live(&config);
	struct tally data = { 0 }, side = { 0 }, slow = { 0 };
	struct reference reference;
	uint64_t count;
	double share;

	if (!c)
		skip_test("not permitted: perf_event_open(2)");
	reference_open(&reference);
	assert_int_equal(counters_enable(c, true), 0);
	/* pieces, so that no ring can fill up */
	for (int i = 0; i < 10; i++) {
		burn(30000000);
		drain_all(c, &data, &side);
	}
	assert_int_equal(counters_enable(c, false), 0);
	drain_all(c, &data, &side);
	share = reference_share(&reference);
	if ((double)data.samples < 150 * share || data.samples > 400)
		fail_msg("%lu samples of 300 ms at 999 Hz; the kernel took %.2f of those due",
			 data.samples, share);
	assert_int_equal(data.stacks, data.samples);
	if (counters_has_lost(c))
		assert_int_equal(sum_lost(c, &count), 0);

	assert_int_equal(counters_set_rate(c, 0, 97, NULL), 0);
	spin(20000000);
	drain_all(c, &slow, &side);
	assert_int_equal(slow.samples, 0); /* stopped is stopped */
	assert_int_equal(counters_enable(c, true), 0);
	for (int i = 0; i < 10; i++) {
		burn(30000000);
		drain_all(c, &slow, &side);
	}
	share = reference_share(&reference);
	reference_close(&reference);
	if ((double)slow.samples < 10 * share || slow.samples > 50)
		fail_msg("%lu samples of 300 ms at 97 Hz; the kernel took %.2f of those due",
			 slow.samples, share);
	counters_close(c);
}

struct burner {
	atomic_bool stop;
	clockid_t clock; /* CPU time of the thread */
	pthread_barrier_t ready;
};

static void *burn_on(void *arg)
{
	struct burner *b = arg;

	pthread_getcpuclockid(pthread_self(), &b->clock);
	pthread_barrier_wait(&b->ready);
	while (!atomic_load_explicit(&b->stop, memory_order_relaxed))
		;
	return NULL;
}

/* Read the samples of 200 ms of the burner's CPU time. Return their rate. */
static double rate_of_burner(struct counters *c, const struct burner *b, struct tally *side)
{
	struct tally data = { 0 };
	struct timespec from, now;
	double seconds;

	clock_gettime(b->clock, &from);
	do {
		usleep(20000);
		drain_all(c, &data, side);
		clock_gettime(b->clock, &now);
		seconds = (double)(now.tv_sec - from.tv_sec) +
			  (double)(now.tv_nsec - from.tv_nsec) / 1e9;
	} while (seconds < 0.2);
	return (double)data.samples / seconds;
}

/* A new rate also reaches threads that inherited the event. */
TEST(test_live_rate_of_children)
{
	struct event event = parse("cpu-clock:u");
	pid_t self = getpid();
	struct counters_config config = live_config(&event, &self);
	struct counters *c = open_live(&config);
	struct tally rest = { 0 }, side = { 0 };
	struct burner b = { 0 };
	double fast, slow;
	pthread_t thread;

	if (!c)
		skip_test("not permitted: perf_event_open(2)");
	counters_enable(c, true);
	pthread_barrier_init(&b.ready, NULL, 2);
	pthread_create(&thread, NULL, burn_on, &b);
	pthread_barrier_wait(&b.ready);
	fast = rate_of_burner(c, &b, &side);
	assert_int_equal(counters_set_rate(c, 0, 49, NULL), 0);
	drain_all(c, &rest, &side);
	slow = rate_of_burner(c, &b, &side);
	atomic_store(&b.stop, true);
	pthread_join(thread, NULL);
	/* However few samples the kernel takes at 999 Hz, 49 Hz are far fewer. */
	if (slow > 120 || fast < 2 * slow)
		fail_msg("%.0f Hz at 999 Hz, %.0f Hz at 49 Hz", fast, slow);
	assert_true(side.forks >= 1);
	counters_close(c);
}

/* The side-band reports fork, exec and exit of a child that was never named to us. */
TEST(test_live_side_band)
{
	struct event event = parse("cpu-clock:u");
	pid_t self = getpid(), child;
	struct counters_config config = live_config(&event, &self);
	struct counters *c = open_live(&config);
	struct tally data = { 0 }, side = { 0 };

	if (!c)
		skip_test("not permitted: perf_event_open(2)");
	child = fork();
	if (!child) {
		execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	}
	waitpid(child, NULL, 0);
	side.pid = (uint32_t)child; /* a sanitiser's threads also start and end */
	drain_all(c, &data, &side);
	assert_int_equal(data.samples, 0);
	assert_int_equal(side.forks, 1);
	assert_int_equal(side.exits, 1);
	assert_true(side.comms >= 1);
	assert_true(side.mmaps >= 3);
	assert_int_equal(side.lost, 0);
	counters_close(c);
}

/* Start a shell that waits for a line, and execs another one that burns CPU time. */
static pid_t start_command(int *release)
{
	int line[2];
	pid_t pid;

	assert_int_equal(pipe(line), 0);
	pid = fork();
	if (!pid) {
		/* The first line releases the exec, as target_release() does. */
		char c;

		dup2(line[0], STDIN_FILENO);
		close(line[0]);
		close(line[1]);
		if (read(STDIN_FILENO, &c, 1) == 1)
			execl("/bin/sh", "sh", "-c",
			      "read x; /bin/sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); "
			      "done'; true",
			      (char *)NULL);
		_exit(127);
	}
	close(line[0]);
	*release = line[1];
	return pid;
}

/* Events of a command that were opened after its exec, and stopped, are off when a child execs. */
TEST(test_live_exec_of_children)
{
	struct event event = parse("cpu-clock:u");
	struct tally data = { 0 }, side = { 0 }, rest = { 0 };
	struct counters_value v = { 0 };
	struct counters_config config;
	struct counters *c;
	int release, status;
	pid_t child = start_command(&release);

	config = live_config(&event, &child);
	config.enable_on_exec = true;
	c = open_live(&config);
	if (!c) {
		close(release);
		waitpid(child, NULL, 0);
		skip_test("not permitted: perf_event_open(2)");
	}
	assert_int_equal(write(release, "x", 1), 1);
	for (uint32_t i = 0; !v.enabled_ns; i = (i + 1) % counters_nr_cpus(c)) {
		assert_int_equal(counters_read(c, i, 0, &v), 0);
		usleep(1000);
	}
	assert_int_equal(counters_set_rate(c, 0, 500, NULL), 0);
	assert_int_equal(counters_enable(c, false), 0);
	drain_all(c, &data, &side);
	assert_int_equal(write(release, "\n", 1), 1);
	close(release);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	drain_all(c, &rest, &side);
	assert_true(side.comms >= 2);
	assert_int_equal(rest.samples, 0);
	counters_close(c);
}

/* Events of CPUs that are online are on all the time. */
TEST(test_live_cpus_are_on)
{
	struct event event = parse("cpu-clock");
	struct counters_config config = live_config(&event, NULL);
	struct counters *c;

	config.nr_tids = 0;
	c = open_live(&config);
	if (!c)
		skip_test("not permitted: perf_event_open(2)");
	for (int look = 0; look < 5; look++) {
		for (uint32_t i = 0; i < counters_nr_cpus(c); i++) {
			assert_false(counters_has_ended(c, i));
			assert_true(counters_cpu(c, i)->side_ns);
		}
		usleep(20000);
	}
	counters_close(c);
}

/* A stopped reader and the smallest ring: counted = delivered + lost.
 */
TEST(test_live_lost_is_exact)
{
	struct event event = parse("page-faults:u");
	pid_t self = getpid();
	struct counters_config config = live_config(&event, &self);
	struct tally data = { 0 }, side = { 0 };
	size_t page = (size_t)sysconf(_SC_PAGESIZE), nr = 5000;
	uint64_t count, lost;
	struct counters *c;
	uint8_t *memory;

	config.period = 1;
	config.ring_size = 16384;
	c = open_live(&config);
	if (!c)
		skip_test("not permitted: perf_event_open(2)");
	assert_int_equal(counters_ring_size(c), 16384);
	if (!counters_has_lost(c)) {
		counters_close(c);
		skip_test("not on this machine: PERF_FORMAT_LOST (Linux 6.0)");
	}
	memory = mmap(NULL, nr * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(memory != MAP_FAILED);
	madvise(memory, nr * page, MADV_NOHUGEPAGE);
	counters_enable(c, true);
	for (size_t i = 0; i < nr; i++) {
		memory[i * page] = 1;
		if (i == 2000)
			drain_all(c, &data, &side);
	}
	counters_enable(c, false);
	drain_all(c, &data, &side);
	lost = sum_lost(c, &count);
	munmap(memory, nr * page);
	assert_true(count >= nr);
	assert_true(data.samples >= 2 && lost > nr / 2);
	if (count != data.samples + lost)
		fail_msg("%lu counted, %lu delivered, %lu lost", count, data.samples, lost);
	/* LOST records alone report less */
	assert_true(data.lost <= lost);
	counters_close(c);
}

static void touch(uint8_t *memory, size_t nr, size_t page, size_t every, struct counters *c,
		  struct tally *data)
{
	struct tally side = { 0 };

	for (size_t i = 0; i < nr; i++) {
		memory[i * page] = 1;
		if (every && i % every == 0)
			drain_all(c, data, &side);
	}
}

/*
 * Ring by ring and drain by drain, of one process and of all: count = delivered
 * + lost. For the whole machine it is only nearly so: the kernel counts faults of some tasks that
 * are in no ring (1 in 10^4 or so, of others' up to a quarter on a full machine; never seen on our
 * own).
 */
static void account(bool system, size_t ring_size, size_t every)
{
	struct event event = parse(system ? "page-faults" : "page-faults:u");
	pid_t self = getpid();
	struct counters_config config = live_config(&event, system ? NULL : &self);
	size_t page = (size_t)sysconf(_SC_PAGESIZE), nr = 2000;
	struct tally data = { 0 }, side = { 0 };
	uint64_t lost, count, shown;
	struct counters *c;
	uint8_t *memory;

	config.period = 1;
	config.stack_size = 0;
	config.ring_size = ring_size;
	c = open_live(&config);
	if (!c || !counters_has_lost(c)) {
		counters_close(c);
		skip_test("not on this machine: PERF_FORMAT_LOST (Linux 6.0)");
	}
	memory = mmap(NULL, nr * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(memory != MAP_FAILED);
	madvise(memory, nr * page, MADV_NOHUGEPAGE);
	counters_enable(c, true);
	touch(memory, nr, page, every, c, &data);
	counters_enable(c, false);
	munmap(memory, nr * page);
	drain_all(c, &data, &side);
	lost = sum_lost(c, &count);
	shown = data.samples + lost;
	assert_true(count >= nr);
	if (shown > count || (shown < count && !system) ||
	    shown + 20 + count / 100 + (count - nr) / 2 < count)
		fail_msg("ring %zu, drain every %zu: %lu counted, %lu delivered, %lu lost",
			 ring_size, every, count, data.samples, lost);
	if (ring_size == 8192 && !every)
		assert_true(lost > 0);
	counters_close(c);
}

TEST(test_live_account)
{
	for (size_t ring = 8192; ring <= 262144; ring *= 2)
		for (size_t every = 0; every <= 1200; every += 300) {
			account(false, ring, every);
			if (geteuid() == 0)
				account(true, ring, every);
		}
}

/* Another set of events under the same rings; kept events continue to count. */
TEST(test_live_system_events)
{
	struct event first = parse("cpu-clock"), next[] = { parse("page-faults"), parse("cpu-"
											"clock") };
	struct counters_config config = live_config(&first, NULL);
	struct tally data = { 0 }, side = { 0 };
	struct counters_value before, after;
	struct counters *c;

	config.nr_tids = 0;
	c = open_live(&config);
	if (!c)
		skip_test("not permitted: perf_event_open(2)");
	counters_enable(c, true);
	/* Far more samples than that are due. */
	for (int i = 0; i < 100 && data.samples <= 20; i++) {
		burn(50000000);
		drain_all(c, &data, &side);
	}
	assert_true(data.samples > 20);
	counters_read(c, 0, 0, &before);
	assert_int_equal(counters_set_events(c, next, 2, 999, NULL), 0);
	assert_int_equal(c->env.nr_fds, 4 * counters_nr_cpus(c));
	burn(50000000);
	counters_read(c, 0, 1, &after);
	assert_true(after.enabled_ns > before.enabled_ns + 10000000);
	counters_read(c, 0, 0, &after);
	assert_true(after.enabled_ns > 10000000);
	assert_int_equal(counters_set_rate(c, 1, 49, NULL), 0);
	counters_close(c);
}

/*
 * Two sessions with the same software event, one of them with stacks: each knows its samples,
 * whatever id and size the kernel wrote.
 */
TEST(test_live_two_sessions)
{
	struct event event = parse("page-faults:u");
	pid_t self = getpid();
	struct counters_config config = live_config(&event, &self);
	struct counters *first, *second;
	struct tally a = { 0 }, b = { 0 }, side = { 0 };
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *memory;

	config.period = 1;
	config.stack_size = 0;
	config.ring_size = 2 << 20;
	first = open_live(&config);
	if (!first)
		skip_test("not permitted: perf_event_open(2)");
	/* The kernel serves the newest event first. */
	config.stack_size = 8192;
	second = open_live(&config);
	memory = mmap(NULL, 100 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(second && memory != MAP_FAILED);
	madvise(memory, 100 * page, MADV_NOHUGEPAGE);
	counters_enable(first, true);
	counters_enable(second, true);
	touch(memory, 100, page, 0, NULL, NULL);
	counters_enable(first, false);
	counters_enable(second, false);
	munmap(memory, 100 * page);
	/* drain() wants an event slot for every sample */
	drain_all(first, &a, &side);
	drain_all(second, &b, &side);
	assert_true(a.samples >= 100 && b.samples >= 100);
	counters_close(first);
	counters_close(second);
}

/* Wait until @pid has used @ns of CPU time more. */
static void wait_for_cpu_time(pid_t pid, int64_t ns)
{
	struct timespec begin, now;
	clockid_t clock;

	assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
	assert_int_equal(clock_gettime(clock, &begin), 0);
	do {
		usleep(10000);
		assert_int_equal(clock_gettime(clock, &now), 0);
	} while ((now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec - begin.tv_nsec < ns);
}

/* A target that is gone: its figures are kept, its fds closed. */
TEST(test_live_gone)
{
	struct event event = parse("cpu-clock:u");
	struct counters_value before = { 0 }, after;
	struct tally data = { 0 }, side = { 0 };
	uint64_t count, count_after;
	struct counters_config config;
	struct counters *c;
	pid_t child = fork();

	if (!child) {
		for (;;)
			burn(1000000);
	}
	config = live_config(&event, &child);
	c = open_live(&config);
	if (!c) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		skip_test("not permitted: perf_event_open(2)");
	}
	counters_enable(c, true);
	wait_for_cpu_time(child, 100000000);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	sum_lost(c, &count);
	assert_true(count > 0);
	for (uint32_t i = 0; i < counters_nr_cpus(c); i++) {
		struct pollfd p = { .fd = counters_cpu(c, i)->data_fd, .events = POLLIN };

		poll(&p, 1, 0);
		assert_int_equal(p.revents & (POLLHUP | POLLERR), 0);
	}
	counters_read(c, 0, 0, &before);
	assert_int_equal(counters_add_tasks(c, NULL, 0, NULL), 0);
	assert_int_equal(c->env.nr_fds, 2 * counters_nr_cpus(c));
	counters_read(c, 0, 0, &after);
	assert_memory_equal(&before, &after, sizeof(before));
	sum_lost(c, &count_after);
	assert_int_equal(count_after, count);
	drain_all(c, &data, &side);
	assert_true(data.samples > 5 && side.exits >= 1);
	assert_int_equal(counters_set_events(c, &event, 1, 100, NULL), 0);
	counters_close(c);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
