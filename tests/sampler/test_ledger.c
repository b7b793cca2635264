// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A live session with failing system calls: each problem is reported on the right line, on the
 * right CPU, and ends after its fix. Needs the right to sample.
 * Live: opens perf events.
 */
#include "sampler/sampler.h"

#include "tests/prelude.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sampler/event/event.h"
#include "tests/sampler/live.h"
#include "symbols/base/base.h"
#include "sampler/ring/ring.h"
#include "sampler/profile/profile.h"

#define TICK_NS 250000000ULL
#define MAX_FDS 4096

/* The faked results of the calls. The builder calls, the test sets: relaxed. */
struct liar {
	atomic_int cpu_of[MAX_FDS]; /* + 1 */
	atomic_bool sampling[MAX_FDS];
	atomic_uint multiplexed;   /* in percent of the time enabled; 0: the truth */
	atomic_int loses_on;	   /* CPU + 1 */
	atomic_size_t loses_below; /* with rings that are smaller */
	atomic_size_t max_ring;	   /* 0: none */
	atomic_int no_files;	   /* calls until EMFILE; -1: never */
	atomic_size_t ring_now;
	atomic_ullong lost;
};

static struct liar liar;

static int liar_perf_open(void *ctx, struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd,
			  unsigned long flags)
{
	int left = atomic_load(&liar.no_files), fd;

	if (left == 0)
		return -EMFILE;
	if (left > 0)
		atomic_store(&liar.no_files, left - 1);
	fd = counters_kernel.perf_open(ctx, attr, pid, cpu, group_fd, flags);
	if (fd >= 0 && fd < MAX_FDS) {
		atomic_store(&liar.cpu_of[fd], cpu + 1);
		atomic_store(&liar.sampling[fd], attr->config != PERF_COUNT_SW_DUMMY);
	}
	return fd;
}

/* count, enabled, running, id, lost */
static ssize_t liar_read(void *ctx, int fd, void *buf, size_t size)
{
	ssize_t nr = counters_kernel.read(ctx, fd, buf, size);
	uint64_t v[5] = { 0 };

	if (nr <= 0)
		return nr;
	memcpy(v, buf, (size_t)nr);
	if (atomic_load(&liar.multiplexed))
		v[2] = v[1] * atomic_load(&liar.multiplexed) / 100;
	if (atomic_load(&liar.ring_now) < atomic_load(&liar.loses_below) &&
	    atomic_load(&liar.cpu_of[fd]) == atomic_load(&liar.loses_on))
		atomic_fetch_add(&liar.lost, 10);
	if (atomic_load(&liar.cpu_of[fd]) == atomic_load(&liar.loses_on))
		v[4] += atomic_load(&liar.lost);
	memcpy(buf, v, (size_t)nr);
	return nr;
}

static int liar_ring_open(void *ctx, struct ring *ring, int fd, size_t size)
{
	size_t max = atomic_load(&liar.max_ring);

	if (max && size > max)
		return -EPERM;
	atomic_store(&liar.ring_now, size);
	return counters_kernel.ring_open(ctx, ring, fd, size);
}

static struct counters_sys lying;

static pid_t busy[2];

static int start_load(void **state)
{
	lying = counters_kernel;
	lying.perf_open = liar_perf_open;
	lying.read = liar_read;
	lying.ring_open = liar_ring_open;
	for (size_t i = 0; i < ARRAY_SIZE(busy); i++) {
		busy[i] = fork();
		if (busy[i] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				;
		}
	}
	return 0;
}

static int stop_load(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(busy); i++) {
		kill(busy[i], SIGKILL);
		waitpid(busy[i], NULL, 0);
	}
	return 0;
}

static int honest(void **state)
{
	memset(&liar, 0, sizeof(liar));
	atomic_store(&liar.no_files, -1);
	return 0;
}

static bool with_counters; /* start() and set_events() treat events as the PMU's */

static struct sampler *start(const char *events, size_t ring_size)
{
	struct sampler_config c = {
		.target = TARGET_SYSTEM,
		.hz = 999,
		.stack_size = 8192,
		.tick_ns = TICK_NS,
		.window_ns = 1000000000,
		.exact_ticks = true,
		.ring_size = ring_size,
		.sys = &lying,
	};
	char list[64], *name, *rest = list;

	live_need_system();
	snprintf(list, sizeof(list), "%s", events);
	while ((name = strsep(&rest, ",")))
		assert_int_equal(event_parse(&c.events[c.nr_events++], name, NULL), 0);
	for (uint32_t i = 0; i < c.nr_events; i++)
		c.events[i].hardware = with_counters;
	return live_start(&c);
}

static const struct profile_message *find(const struct profile *p, const char *key)
{
	for (uint32_t i = 0; i < p->nr_messages; i++)
		if (!strcmp(p->messages[i].key, key))
			return &p->messages[i];
	return NULL;
}

/* Until message @key is active, or is not; the profile that says so, to be freed. */
static struct profile *expect(struct sampler *s, const char *key, bool active)
{
	const struct profile_message *n;
	struct profile *p;

	for (int i = 0; i < 24; i++) {
		p = live_wait(s);
		n = find(p, key);
		if ((n && n->active) == active)
			return p;
		profile_free(p);
	}
	fail_msg("%s is not %s", key, active ? "told" : "over");
	return NULL;
}

/* The action of Enter on the screen. */
static void take_fix(struct sampler *s, const struct profile_message *n)
{
	if (n->control == MESSAGE_RATE)
		sampler_set_rate(s, n->event, n->value);
	else if (n->control == MESSAGE_RING_SIZE)
		sampler_set_ring_size(s, (size_t)n->value);
	else
		fail_msg("%s: no control to take here: %d", n->key, n->control);
}

static int last_cpu(const struct profile *p)
{
	return p->cpus[p->nr_cpus - 1].cpu;
}

/* Each event that was enabled for longer than it had a counter; with one alone it is over. */
TEST(test_multiplexed, honest)
{
	struct sampler *s;
	struct profile *p;
	struct event one;

	with_counters = true;
	s = start("cpu-clock,page-faults", 0);
	with_counters = false;
	profile_free(expect(s, "multiplexed-cpu-clock", false));
	atomic_store(&liar.multiplexed, 40);
	p = expect(s, "multiplexed-cpu-clock", true);
	assert_non_null(strstr(find(p, "multiplexed-cpu-clock")->detail, "cpu-clock: counted 40% "
									 "of the time: more events "
									 "than counters"));
	assert_non_null(find(p, "multiplexed-page-faults"));
	assert_int_equal(find(p, "multiplexed-cpu-clock")->control, MESSAGE_EVENTS);
	assert_true(p->cpu_events[0].running_ns < p->cpu_events[0].enabled_ns);
	profile_free(p);
	assert_int_equal(event_parse(&one, "cpu-clock", NULL), 0);
	atomic_store(&liar.multiplexed, 0); /* as one event has all the counters */
	sampler_set_events(s, &one, 1);
	profile_free(expect(s, "multiplexed-cpu-clock", false));
	sampler_free(s);
}

/* The fd of a task on a CPU waits while the task is on another: that is no multiplexing. */
TEST(test_tasks_are_not_multiplexed, honest)
{
	struct sampler_target_spec spec = { .target = TARGET_PIDS, .pids = busy, .nr_pids = 2 };
	struct sampler *s = start("cpu-clock", 0);
	int nr = 0, nr_whole = 0;

	sampler_set_target(s, &spec);
	for (int i = 0; i < 8; i++) {
		struct profile *p = live_wait(s);

		if (!strncmp(p->target, "pid", 3)) {
			nr++;
			nr_whole += p->events[0].running_share > 0.95;
		}
		assert_null(find(p, "multiplexed-cpu-clock"));
		profile_free(p);
	}
	/* On a busy machine a task may change its CPU between the reads of its two fds. */
	assert_true(nr && 2 * nr_whole >= nr);
	sampler_free(s);
}

/* Samples lost on the last CPU, with rings below 8 MiB: doubled twice, and it is over. */
TEST(test_lost, honest)
{
	struct sampler *s = start("cpu-clock", 2 << 20);
	struct profile *p = live_wait(s);
	int cpu = last_cpu(p), doubled = 0;
	char words[64];

	profile_free(p);
	atomic_store(&liar.loses_on, cpu + 1);
	atomic_store(&liar.loses_below, 8 << 20);
	snprintf(words, sizeof(words), "lost on CPU %d:", cpu);
	for (size_t ring = 2 << 20; ring < 8 << 20; ring *= 2, doubled++) {
		for (p = expect(s, "lost", true); p->ring_size != ring; p = expect(s, "lost", true))
			profile_free(p);
		assert_non_null(strstr(find(p, "lost")->detail, words));
		for (uint32_t i = 0; i < p->nr_cpus; i++)
			assert_int_equal(p->cpus[i].lost > 0, p->cpus[i].cpu == cpu);
		assert_true(p->account.lost == p->cpus[p->nr_cpus - 1].lost);
		take_fix(s, find(p, "lost"));
		profile_free(p);
	}
	assert_int_equal(doubled, 2);
	do {
		p = expect(s, "lost", false);
		doubled += p->ring_size == 8 << 20;
		profile_free(p);
	} while (doubled == 2);
	sampler_free(s);
}

/* Another profiler has most of the locked memory; when it has ended, the fix gets the rest. */
TEST(test_locked_memory, honest)
{
	struct sampler *s;
	struct profile *p;

	atomic_store(&liar.max_ring, 256 << 10);
	s = start("cpu-clock", 1 << 20);
	p = expect(s, "ring-small", true);
	assert_int_equal(p->ring_size, 256 << 10);
	assert_int_equal(p->ring_wanted, 1 << 20);
	take_fix(s, find(p, "ring-small"));
	profile_free(p);
	for (int i = 0; i < 4; i++)
		profile_free(live_wait(s));
	p = expect(s, "ring-small", true); /* not yet */
	atomic_store(&liar.max_ring, 0);
	take_fix(s, find(p, "ring-small"));
	profile_free(p);
	p = expect(s, "ring-small", false);
	assert_int_equal(p->ring_size, 1 << 20);
	profile_free(p);
	sampler_free(s);
}

/* Each open at the limit of descriptors: reported with numbers, and sampling goes on as before. */
TEST(test_no_files, honest)
{
	struct sampler *s = start("cpu-clock", 0);
	struct profile *p = live_wait(s);
	uint32_t nr_opens = 3 * p->nr_cpus;

	profile_free(p);
	for (uint32_t i = 0; i < nr_opens; i++) {
		uint32_t seq = 0;
		bool told = false;

		atomic_store(&liar.no_files, (int)i);
		sampler_set_stack_size(s, 16384, false);
		for (int k = 0; k < 8 && !told; k++) {
			p = live_wait(s);
			told = p->status_seq != seq && strstr(p->status, "too many open files");
			seq = p->status_seq;
			profile_free(p);
		}
		if (!told)
			fail_msg("open %u of %u failed, and nothing was said", i, nr_opens);
		atomic_store(&liar.no_files, -1);
	}
	for (int k = 0; k < 2; k++)
		profile_free(live_wait(s));
	p = live_wait(s);
	assert_true(p->account.taken > 0);
	assert_int_equal(p->stack_size, 8192);
	profile_free(p);
	sampler_free(s);
}

int main(void)
{
	return run_unit_tests(start_load, stop_load);
}
