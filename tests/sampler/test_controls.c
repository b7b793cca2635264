// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * All controls, used at random at full load: in each tick the account sums up, nothing leaks, the
 * rates are the requested ones. CONTROLS=200 SECONDS=300 for the long run. Needs the right to
 * sample.
 * Live: opens perf events.
 */
#include "sampler/sampler.h"

#include "tests/prelude.h"
#include "tests/reference.h"
#include "sampler/event/event.h"
#include "tests/sampler/live.h"
#include "symbols/base/base.h"
#include "symbols/base/thread.h"
#include "symbols/code/code.h"
#include "sampler/ring/ring.h"
#include "sampler/count/count.h"
#include "sampler/profile/profile.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TICK_NS	  500000000ULL
#define WINDOW_NS 1000000000ULL
#define BUSY	  3
/* The highest rate that any_rate() sets; a focus multiplies it. */
#define RATE_MAX 3048
#define FOCUS_HZ (4 * RATE_MAX)
/* Files that are read at a time: by helpers, of any program on the machine, and with DWARF. */
#define FILES_MAX (HELPERS_MAX + 4 + 16)
/* Growth from other programs on the machine, beside their objects: names, places, stacks. */
#define GROWTH_OTHERS_KB (24 << 10)
/* Of programs that were seen all the time. */
#define GROWTH_KB 1024
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MEMORY_IS_OURS false /* sanitizers keep freed memory */
#else
#define MEMORY_IS_OURS true
#endif

static pid_t busy[BUSY];
/* Unique to this process: another run of this test has other names. */
static char busy_name[16], busy_regex[24];
/* That of the first, if we may make one. */
static char busy_cgroup[64];

/* Child processes that never rest; the last one has a second thread. */
static void *spin(void *arg)
{
	volatile unsigned long n = 0;

	for (;;)
		n = n + 1;
	return NULL;
}

/* Put @pid into the cgroup at @path. */
static bool move_to(const char *path, pid_t pid)
{
	char procs[96];
	bool moved;
	FILE *f;

	snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
	f = fopen(procs, "w");
	if (!f)
		return false;
	moved = fprintf(f, "%d", (int)pid) > 0;
	return !fclose(f) && moved;
}

/* Where version 2 is mounted, beside others or alone. */
static void make_cgroup(void)
{
	static const char *const mounts[] = { "/sys/fs/cgroup/unified", "/sys/fs/cgroup" };

	for (size_t i = 0; i < ARRAY_SIZE(mounts) && !busy_cgroup[0]; i++) {
		snprintf(busy_cgroup, sizeof(busy_cgroup), "%s/%s", mounts[i], busy_name);
		if (!mkdir(busy_cgroup, 0755) && move_to(busy_cgroup, busy[0]))
			return;
		rmdir(busy_cgroup);
		busy_cgroup[0] = '\0';
	}
}

static struct reference reference;

/* Measure with an event of @hz, or of the highest rate that the kernel allows. */
static void reopen_reference(unsigned int hz)
{
	FILE *f = fopen("/proc/sys/kernel/perf_event_max_sample_rate", "r");
	unsigned int max;

	if (f && fscanf(f, "%u", &max) == 1)
		hz = MIN(hz, max);
	if (f)
		fclose(f);
	reference_close(&reference);
	reference_open_at(&reference, hz);
}

/*
 * Return the share of samples taken in the tick that has just ended: the smaller one of the last
 * two spans, for these are between the takings of profiles, not between the ends of ticks. A short
 * span has too few samples: it is part of the next one.
 */
static double share_of_tick(void)
{
	static double last = 1;
	double before = last;

	if (reference_now_ns() - reference.since_ns >= TICK_NS / 4)
		last = reference_share(&reference);
	return MIN(before, last);
}

static int start_load(void **state)
{
	snprintf(busy_name, sizeof(busy_name), "busy-%d", (int)getpid());
	snprintf(busy_regex, sizeof(busy_regex), "^%s$", busy_name);
	for (int i = 0; i < BUSY; i++) {
		busy[i] = fork();
		if (busy[i] == 0) {
			pthread_t id;

			prctl(PR_SET_PDEATHSIG, SIGKILL);
			prctl(PR_SET_NAME, busy_name);
			if (i == BUSY - 1)
				pthread_create(&id, NULL, spin, NULL);
			spin(NULL);
		}
	}
	make_cgroup();
	reference_open(&reference);
	return 0;
}

static int stop_load(void **state)
{
	for (int i = 0; i < BUSY; i++) {
		kill(busy[i], SIGKILL);
		waitpid(busy[i], NULL, 0);
	}
	reference_close(&reference);
	if (busy_cgroup[0] && rmdir(busy_cgroup))
		print_error("%s stays: %s\n", busy_cgroup, strerror(errno));
	return 0;
}

static void signal_load(int signal)
{
	for (int i = 0; i < BUSY; i++)
		kill(busy[i], signal);
}

/* The load rests during a test of something else: it would take the CPUs from other tests. */
static int rest(void **state)
{
	signal_load(SIGSTOP);
	return 0;
}

static int go_on(void **state)
{
	signal_load(SIGCONT);
	return 0;
}

static struct sampler_config config_of(const char *event)
{
	struct sampler_config c = {
		.target = TARGET_SYSTEM,
		.hz = 999,
		.stack_size = 8192,
		.tick_ns = TICK_NS,
		.window_ns = WINDOW_NS,
		.exact_ticks = true,
		.nr_events = 1,
		/* Lines of whatever else runs here take files and memory: not the matter of this
		   test. */
		.no_inline = true,
	};

	assert_int_equal(event_parse(&c.events[0], event, NULL), 0);
	return c;
}

static void check_account(const struct profile_account *a)
{
	uint64_t sum = a->complete + a->guessed + a->truncated + a->broken + a->pending +
		       a->dropped + a->lost;

	if (sum != a->taken)
		fail_msg("taken %lu, the parts %lu", a->taken, sum);
}

static void check_profile(const struct profile *p)
{
	check_account(&p->account);
	check_account(&p->account_total);
	for (uint32_t i = 0; i < p->nr_counts; i++)
		assert_true(p->counts[i].event < p->nr_events);
	assert_int_equal(p->window, PROFILE_WINDOW);
}

/* Is @got the rate that was set, but for the samples that the kernel did not take? */
static bool is_near(double got, double want, double share)
{
	return got > 0.9 * share * want && got < 1.1 * want;
}

/* Was the machine held up in this tick? Then a wrong rate proves nothing. */
static bool is_disturbed(const struct profile *p, double share)
{
	double ticks = (double)p->interval_ns / (double)TICK_NS;

	return share < 0.95 || ticks < 0.8 || ticks > 1.2;
}

/* On a full machine most ticks have too few samples for a rate. */
#define MAX_TICKS 100

/*
 * Check the rate in the first tick that is whole or the second, not counting disturbed ones; the
 * answer to the control is in a short tick before them, which has no rate.
 */
static void expect_rate(struct sampler *s, double hz)
{
	double got[2] = { 0 }, share[2] = { 0 };
	bool lowered = false, hidden = false, right = false;

	share_of_tick();
	for (unsigned int whole = 0, i = 0; whole < 2 && i < MAX_TICKS && !right; i++) {
		struct profile *p = live_wait(s);
		double least = share_of_tick();
		bool answered = p->events[0].want_hz > hz - 1 && p->events[0].want_hz < hz + 1;

		check_profile(p);
		lowered |= p->max_hz < p->max_hz_top;
		hidden |= strstr(p->banner, "user code") != NULL;
		if (answered && p->interval_ns > TICK_NS / 2 && !isnan(p->events[0].got_hz)) {
			got[whole] = p->events[0].got_hz;
			share[whole] = least;
			right = is_near(got[whole], hz, least);
			whole += !is_disturbed(p, least);
		}
		profile_free(p);
	}
	/* A sample that is late is one of the next tick. */
	right |= is_near((got[0] + got[1]) / 2, hz, (share[0] + share[1]) / 2);
	/* Time in the kernel has no samples without the right to it: half and more of a task that
	 * others interrupt all the time. */
	if (right || (hidden && got[0] > hz / 4 && got[0] < 1.1 * hz))
		return;
	/* By somebody else on this machine: then the kernel takes no such rate. */
	if (lowered)
		print_message("%.0f Hz: the limit was lowered during the measurement\n", hz);
	else
		fail_msg("%.0f Hz wanted, %.0f, then %.0f got; the kernel took %.2f, then %.2f of "
			 "the samples due",
			 hz, got[0], got[1], share[0], share[1]);
}

/*
 * Open descriptors. Ours (events, eventfds, pipes) must be the same after any number of controls;
 * @files: also count the files of objects, which vary while other programs start.
 */
static unsigned int nr_open(bool files)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int nr = 0, nr_files = 0;
	struct dirent *entry;
	char target[64];

	while ((entry = readdir(dir))) {
		bool file = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target)) > 0 &&
			    target[0] == '/';

		nr += !file;
		nr_files += file;
	}
	closedir(dir);
	assert_in_range(nr_files, 0, FILES_MAX);
	return nr + (files ? nr_files : 0);
}

static void print_open(void)
{
	char command[64];

	snprintf(command, sizeof(command), "ls -l /proc/%d/fd", (int)getpid());
	if (system(command))
		print_message("no ls\n");
}

/* No more than @before, after the loader has finished its reads. */
static void expect_open(unsigned int before, bool files)
{
	unsigned int nr = nr_open(files);

	for (int i = 0; i < 100 && nr > before; i++) {
		usleep(50000);
		nr = nr_open(files);
	}
	if (nr > before)
		print_open();
	assert_in_range(nr, 0, before);
}

static long resident_kb(void)
{
	long total, resident = 0;
	FILE *f;

	/* Memory that is free already is no growth. */
	malloc_trim(0);
	f = fopen("/proc/self/statm", "r");

	if (f && fscanf(f, "%ld %ld", &total, &resident) != 2)
		resident = 0;
	if (f)
		fclose(f);
	return resident * sysconf(_SC_PAGESIZE) / 1024;
}

/* Wait until @text or @other is in the message; return which. NULL for @other: fail without @text.
 */
static const char *wait_message(struct sampler *s, const char *text, const char *other)
{
	char last[256] = "";

	for (int i = 0; i < 20; i++) {
		struct profile *p = live_wait(s);
		const char *found = strstr(p->status, text)		? text
				    : other && strstr(p->status, other) ? other
									: NULL;

		check_profile(p);
		memcpy(last, p->status, sizeof(last));
		profile_free(p);
		if (found)
			return found;
	}
	fail_msg("no '%s', but: %s", text, last);
	return NULL;
}

static void expect_message(struct sampler *s, const char *text)
{
	wait_message(s, text, NULL);
}

/* Only tasks of @pid, or of all processes if it is 0, in a profile of new samples. */
static void expect_only(struct sampler *s, pid_t pid, bool only)
{
	bool others = false, seen = false;

	sampler_reset(s);
	for (int i = 0; i < 4; i++) {
		struct profile *p = live_wait(s);

		others = false;
		for (uint32_t k = 0; k < p->nr_counts; k++) {
			const struct profile_task *t = &p->tasks[p->counts[k].task];
			pid_t of = p->processes[t->process].pid;

			seen |= of == pid;
			others |= of != pid;
		}
		profile_free(p);
	}
	assert_true(seen);
	assert_int_equal(others, !only);
}

TEST(test_targets)
{
	struct sampler_config c = config_of("cpu-clock");
	struct sampler *s;
	unsigned int fds;

	live_need_system();
	s = live_start(&c);
	expect_rate(s, 999);
	fds = nr_open(false);
	sampler_set_target(s, &(struct sampler_target_spec){
				      .target = TARGET_PIDS, .pids = busy, .nr_pids = 1 });
	expect_message(s, "sampling pid");
	expect_only(s, busy[0], true);
	expect_rate(s, 999);
	sampler_set_target(s, &(struct sampler_target_spec){
				      .target = TARGET_TIDS, .pids = &busy[1], .nr_pids = 1 });
	expect_message(s, "sampling thread");
	expect_only(s, busy[1], true);
	sampler_set_target(s, &(struct sampler_target_spec){ .target = TARGET_NAME,
							     .name = busy_regex });
	expect_message(s, "sampling name");
	expect_only(s, busy[0], false);
	sampler_set_target(s, &(struct sampler_target_spec){ .target = TARGET_PIDS,
							     .pids = (pid_t[]){ 0x3fffff },
							     .nr_pids = 1 });
	expect_message(s, "no process with pid");
	sampler_set_target(s, &(struct sampler_target_spec){ .target = TARGET_TIDS,
							     .pids = (pid_t[]){ 0x3fffff },
							     .nr_pids = 1 });
	expect_message(s, "no thread with tid");
	sampler_set_target(s, &(struct sampler_target_spec){ .target = TARGET_SYSTEM });
	expect_message(s, "sampling system");
	expect_only(s, busy[2], false);
	expect_rate(s, 999);
	expect_open(fds, false);
	/*
	 * The root includes all processes; the kernel's times of its events are beyond all
	 * measure.
	 */
	sampler_set_target(s,
			   &(struct sampler_target_spec){ .target = TARGET_CGROUP, .cgroup = "/" });
	if (!strcmp(wait_message(s, "sampling cgroup /", "no cgroups with perf events"), "sampling "
											 "cgroup "
											 "/")) {
		expect_only(s, busy[2], false);
		expect_rate(s, 999);
	}
	sampler_free(s);
}

TEST(test_cgroup)
{
	struct sampler_config c = config_of("cpu-clock");
	struct sampler *s;

	if (!busy_cgroup[0])
		skip_test("not on this machine: a writable cgroup of version 2");
	c.target = TARGET_CGROUP;
	c.cgroup = busy_cgroup;
	s = live_start(&c);
	expect_only(s, busy[0], true);
	expect_rate(s, 999);
	sampler_set_rate(s, 0, 499);
	expect_rate(s, 499);
	sampler_free(s);
}

TEST(test_sizes)
{
	struct sampler_config c = config_of("cpu-clock");
	struct sampler *s = live_start(&c);

	expect_rate(s, 999);
	sampler_set_rate(s, 0, 499);
	expect_rate(s, 499);
	sampler_set_stack_size(s, 32003, false);
	expect_message(s, "32000 bytes of user stack");
	/* the rate of now, not that of the start */
	expect_rate(s, 499);
	sampler_set_ring_size(s, 256 << 10);
	expect_message(s, "rings of 256 KiB");
	sampler_set_ring_size(s, 4096);
	expect_message(s, "cannot hold one sample");
	expect_rate(s, 499);
	sampler_set_call_graph(s, CALL_GRAPH_FP);
	expect_message(s, "frame pointers (fp)");
	expect_rate(s, 499);
	sampler_set_call_graph(s, CALL_GRAPH_DWARF);
	expect_message(s, "DWARF unwinding of 32000 bytes");
	sampler_set_stack_size(s, 0, false);
	expect_message(s, "no stacks (off)");
	sampler_set_event_enabled(s, 0, false);
	expect_message(s, "is off");
	for (int i = 0; i < 2; i++)
		profile_free(live_wait(s));
	for (int i = 0; i < 2; i++) {
		struct profile *p = live_wait(s);

		assert_int_equal(p->account.taken, 0);
		assert_false(p->events[0].enabled);
		profile_free(p);
	}
	/* past the window there are no rows of before */
	for (int i = 0; i < 3; i++) {
		struct profile *p = live_wait(s);

		if (i == 2)
			assert_int_equal(p->nr_counts, 0);
		profile_free(p);
	}
	/* off is off, for newly opened events also */
	sampler_set_stack_size(s, 8192, false);
	expect_message(s, "8192 bytes");
	sampler_set_event_enabled(s, 0, true);
	expect_rate(s, 499);
	sampler_free(s);
}

/* A process that starts later is found, and one that was there at the start is not needed. */
TEST(test_name_waits, rest, go_on)
{
	struct sampler_config c = config_of("cpu-clock");
	struct sampler *s;
	bool seen = false;
	pid_t pid;

	c.target = TARGET_NAME;
	c.name = "^test-late$";
	s = live_start(&c);
	profile_free(live_wait(s));
	for (int round = 0; round < 2; round++) {
		pid = fork();
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			prctl(PR_SET_NAME, "test-late");
			spin(NULL);
		}
		seen = false;
		for (int i = 0; i < 16 && !seen; i++) {
			struct profile *p = live_wait(s);

			check_profile(p);
			for (uint32_t k = 0; k < p->nr_processes; k++)
				seen |= p->processes[k].pid == pid;
			profile_free(p);
		}
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		assert_true(seen);
	}
	sampler_free(s);
}

/* Samples of @pid since the reset, once there are any; 0: none. */
static double samples_of(struct sampler *s, pid_t pid, unsigned int ticks)
{
	double nr = 0;

	for (unsigned int i = 0; i < ticks; i++) {
		struct profile *p = live_wait(s);

		check_account(&p->account);
		nr = 0;
		for (uint32_t k = 0; k < p->nr_counts; k++)
			if (p->processes[p->tasks[p->counts[k].task].process].pid == pid)
				nr += p->counts[k].count;
		profile_free(p);
	}
	return nr;
}

static void rename_me(int signal)
{
	prctl(PR_SET_NAME, "renamed");
}

/* Burn @ms of CPU time. */
static void burn(unsigned int ms)
{
	struct timespec ts = { 0 };

	while (ts.tv_sec * 1000 + ts.tv_nsec / 1000000 < ms)
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
}

/* One of the system that was sampled before takes the name. */
TEST(test_name_taken, rest, go_on)
{
	struct sampler_config c = config_of("cpu-clock");
	struct sampler *s = live_start(&c);
	bool known = false, seen = false;
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGUSR1, rename_me);
		spin(NULL);
	}
	for (int i = 0; i < 20 && !known; i++)
		known = samples_of(s, pid, 1) > 0;
	assert_true(known);
	sampler_set_target(s, &(struct sampler_target_spec){ .target = TARGET_NAME,
							     .name = "^renamed$" });
	expect_message(s, "sampling name");
	sampler_reset(s);
	assert_true(samples_of(s, pid, 4) == 0);
	kill(pid, SIGUSR1);
	for (int i = 0; i < 20 && !seen; i++)
		seen = samples_of(s, pid, 1) > 0;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_true(seen);
	sampler_free(s);
}

/* A worker that rests at first has its events from its parent: they are not opened on it again. */
TEST(test_name_forks, rest, go_on)
{
	const unsigned int ms = 500;
	struct sampler_config c = config_of("cpu-clock");
	pid_t parent, worker = 0;
	struct sampler *s;
	int fds[2];
	double nr;

	live_need_system(); /* burn() is in system calls */
	c.tick_ns = TICK_NS / 4;
	s = live_start(&c);
	assert_int_equal(pipe(fds), 0);
	parent = fork();
	if (parent == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, "forks");
		raise(SIGSTOP);
		worker = fork();
		if (worker == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			usleep(1500000);
			burn(ms);
		} else if (write(fds[1], &worker, sizeof(worker)) < 0) {
			_exit(1);
		}
		for (;;)
			pause();
	}
	profile_free(live_wait(s));
	sampler_set_target(s, &(struct sampler_target_spec){ .target = TARGET_NAME,
							     .name = "^forks$" });
	expect_message(s, "sampling name");
	sampler_set_window(s, PROFILE_TOTAL, WINDOW_NS);
	kill(parent, SIGCONT);
	assert_int_equal(read(fds[0], &worker, sizeof(worker)), sizeof(worker));
	for (int i = 0; i < 100; i++) {
		nr = samples_of(s, worker, 4);
		/* It may have a sample before it sleeps. */
		if (nr > 0.1 * ms && nr == samples_of(s, worker, 2))
			break;
	}
	kill(worker, SIGKILL);
	kill(parent, SIGKILL);
	waitpid(parent, NULL, 0);
	close(fds[0]);
	close(fds[1]);
	print_message("%.0f samples of %u ms\n", nr, ms);
	assert_true(nr > 0.6 * ms && nr < 1.4 * ms);
	sampler_free(s);
}

/* The sum since the start, and its CPU %, end with the last process of the target. */
TEST(test_total_after_end, rest, go_on)
{
	struct sampler_config c = config_of("cpu-clock:u");
	struct profile *p = NULL;
	struct sampler *s;
	uint64_t covers;
	pid_t child = fork();

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		burn(300);
		_exit(0);
	}
	c.target = TARGET_PIDS;
	c.pids = &child;
	c.nr_pids = 1;
	s = live_start(&c);
	sampler_set_window(s, PROFILE_TOTAL, WINDOW_NS);
	waitpid(child, NULL, 0);
	for (int i = 0; i < 20 && !(p && p->target_gone && p->window == PROFILE_TOTAL); i++) {
		profile_free(p);
		p = live_wait(s);
	}
	assert_true(p->target_gone && p->window_ns);
	covers = p->window_ns;
	for (int i = 0; i < 3; i++) {
		profile_free(p);
		p = live_wait(s);
	}
	/* A sample may have been late. */
	assert_true(p->window_ns < covers + 2 * c.tick_ns);
	profile_free(p);
	sampler_free(s);
}

static void *burn_1_ms(void *arg)
{
	struct timespec ts = { 0 };

	while (ts.tv_nsec < 1000000)
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return NULL;
}

/* Never return: run in one thread, or in one thread after another that ends after a millisecond. */
static void run_for_good(bool brief)
{
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!brief || !pthread_create(&thread, NULL, burn_1_ms, NULL))
		if (brief)
			pthread_join(thread, NULL);
	_exit(1);
}

/* Return the CPU time of a process. */
static uint64_t clock_of(pid_t pid)
{
	struct timespec ts;
	clockid_t clock;

	assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
	assert_int_equal(clock_gettime(clock, &ts), 0);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/*
 * Tasks that end before a timer of theirs expires are sampled by whole CPUs: of their process, for
 * its CPU time. A process with one thread is sampled by that thread.
 */
TEST(test_brief_tasks, rest, go_on)
{
	live_need_system();
	for (int brief = 0; brief < 2; brief++) {
		struct sampler_config c = config_of("cpu-clock");
		uint64_t begin_ns, ran_ns = 0;
		struct sampler *s;
		double nr = 0;
		pid_t child = fork();

		if (child == 0)
			run_for_good(brief);
		c.hz = 499;
		c.target = TARGET_PIDS;
		c.pids = &child;
		c.nr_pids = 1;
		s = live_start(&c);
		if (brief)
			expect_message(s, "end before their first samples");
		sampler_set_window(s, PROFILE_TOTAL, WINDOW_NS);
		sampler_reset(s);
		profile_free(live_wait(s));
		nr = samples_of(s, child, 1);
		for (begin_ns = clock_of(child); ran_ns < 1000000000;) {
			struct profile *p = live_wait(s);

			ran_ns = clock_of(child) - begin_ns;
			assert_true(brief || !strstr(p->status, "end before their first"));
			for (uint32_t i = 0; i < p->nr_processes; i++)
				assert_int_equal(p->processes[i].pid, child);
			profile_free(p);
		}
		nr = samples_of(s, child, 1) - nr;
		print_message("%.0f samples of %.0f\n", nr, 499e-9 * (double)ran_ns);
		/* The ticks end a little before or after the clock is read. */
		assert_true(nr > 499e-9 * (double)ran_ns * 0.5 &&
			    nr < 499e-9 * (double)(ran_ns + 2 * TICK_NS) * 1.2);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		sampler_free(s);
	}
}

/* A profile of the next seconds has all of them, also without a history. */
TEST(test_collect)
{
	struct sampler_config c = config_of("cpu-clock");
	struct profile *all = NULL;
	struct sampler *s;
	uint64_t taken = 0, first = 0, last = 0, collected;

	s = live_start(&c);
	profile_free(live_wait(s));
	sampler_collect(s, 2 * WINDOW_NS);
	while (!all) {
		struct profile *p = live_wait(s);

		last = p->account.taken - p->account.lost;
		first = first ? first : last;
		taken += last;
		profile_free(p);
		all = sampler_take_collected(s);
	}
	/* The collection begins and ends within a tick, which is a long one on a loaded machine. */
	collected = all->account.taken - all->account.lost;
	if (!collected || collected + first + last < taken)
		fail_msg("%lu of %lu samples", collected, taken);
	profile_free(all);
	sampler_free(s);
}

/* One during which the events change has the later ones, and no more than their time. */
TEST(test_collect_across_a_change)
{
	struct sampler_config c = config_of("cpu-clock");
	const struct sampler_config other = config_of("task-clock");
	struct profile *all = NULL;
	struct sampler *s;
	uint64_t changed_ns, end_ns;

	s = live_start(&c);
	profile_free(live_wait(s));
	sampler_collect(s, 3 * WINDOW_NS);
	usleep(WINDOW_NS / 1000);
	changed_ns = time_now_ns();
	sampler_set_events(s, other.events, 1);
	while (!all) {
		profile_free(live_wait(s));
		all = sampler_take_collected(s);
	}
	end_ns = time_now_ns();
	if (!strcmp(all->events[0].event.name, "cpu-clock"))
		skip_test("not on this machine: the change was not in time");
	assert_string_equal(all->events[0].event.name, "task-clock");
	assert_true(all->past_other_events);
	if (!all->window_ns || all->window_ns > end_ns - changed_ns ||
	    all->window_ns >= 3 * WINDOW_NS)
		fail_msg("%lu ms, %lu ms after the change", all->window_ns / 1000000,
			 (end_ns - changed_ns) / 1000000);
	profile_free(all);
	sampler_free(s);
}

/* After a reset the account has no samples of the tick before it. */
TEST(test_reset_in_a_tick)
{
	struct sampler_config c = config_of("cpu-clock");
	struct sampler *s;
	struct profile *p;
	uint64_t since, most;

	c.tick_ns = 2 * TICK_NS;
	s = live_start(&c);
	for (int i = 0; i < 2; i++)
		profile_free(live_wait(s));
	usleep((useconds_t)(c.tick_ns / 1000 * 3 / 4));
	sampler_reset(s);
	p = live_wait(s);
	since = p->running_ns;
	/*
	 * Not more than all CPUs take in the time since then, in the part of the tick before for
	 * which a thread of a busy machine may be late, and in the time for which samples waited.
	 */
	most = (since / 1000000 + c.tick_ns / 1000000 / 3) * p->nr_cpus;
	for (uint32_t i = 0; i < p->nr_cpus; i++)
		most += p->cpus[i].lag_max_ns / 1000000;
	if (p->account_total.taken > most)
		fail_msg("%lu samples in the %lu ms since the reset on %u CPUs",
			 p->account_total.taken, since / 1000000, p->nr_cpus);
	profile_free(p);
	sampler_free(s);
}

/* Return whether a tick has counts for PROFILE_LATENCY within thirty. */
static bool has_latency(struct sampler *s)
{
	bool found = false;

	for (int i = 0; i < 30 && !found; i++) {
		struct profile *p = live_wait(s);

		for (uint32_t k = 0; p->events[0].event.wait && k < p->nr_counts; k++)
			found |= p->counts[k].event == PROFILE_LATENCY;
		profile_free(p);
	}
	return found;
}

/* Samples count for latency also where their event is another one of the list than before. */
TEST(test_latency_of_another_slot, rest, go_on)
{
	struct sampler_config c = config_of("cpu-clock");
	struct event events[2] = { [1] = c.events[0] };
	pid_t sleeper = fork();
	struct sampler *s;

	/* Without rights only tasks of this user count, and of these none may wait now. */
	if (!sleeper) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			usleep(1000);
	}
	assert_true(sleeper > 0);
	assert_int_equal(event_parse(&events[0], EVENT_WAITS, NULL), 0);
	c.events[c.nr_events++] = events[0];
	s = live_start(&c);
	profile_free(live_wait(s));
	sampler_set_events(s, events, 2);
	assert_true(has_latency(s));
	sampler_free(s);
	kill(sleeper, SIGKILL);
	waitpid(sleeper, NULL, 0);
}

/* Wait until not each switch has a stack. False: for thirty ticks each one had. */
static bool is_limited(struct sampler *s)
{
	bool limited = false;

	for (int i = 0; i < 30 && !limited; i++) {
		struct profile *p = live_wait(s);

		limited = p->nr_events == 2 && p->events[1].want_hz > 0;
		profile_free(p);
	}
	return limited;
}

/* Return the rate of the waits after @nr ticks. */
static double rate_of_waits(struct sampler *s, int nr)
{
	double hz = 0;

	for (int i = 0; i < nr; i++) {
		struct profile *p = live_wait(s);

		hz = p->events[1].want_hz;
		profile_free(p);
	}
	return hz;
}

/* Waits that are sampled again have a limit again; a rate that was set remains while all is calm.
 */
TEST(test_limit_of_waits, rest, go_on)
{
	struct sampler_config c = config_of("cpu-clock");
	pid_t naps = fork();
	struct sampler *s;
	uint32_t nr;

	while (!naps) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		usleep(500);
	}
	c.hz = 20;
	c.target = TARGET_PIDS;
	c.pids = &naps;
	c.nr_pids = 1;
	assert_int_equal(event_parse(&c.events[c.nr_events++], EVENT_WAITS, NULL), 0);
	s = live_start(&c);
	assert_true(is_limited(s));
	sampler_set_events(s, c.events, 1);
	do {
		struct profile *p = live_wait(s);

		nr = p->nr_events;
		profile_free(p);
	} while (nr > 1);
	sampler_set_events(s, c.events, 2);
	assert_true(is_limited(s));
	sampler_set_rate(s, 1, 50);
	kill(naps, SIGSTOP);
	assert_true(rate_of_waits(s, 8) == 50);
	sampler_free(s);
	kill(naps, SIGKILL);
	waitpid(naps, NULL, 0);
}

/* Of another target the waits of its tasks alone are measured, also of tasks that sleep all along.
 */
TEST(test_waits_of_target, rest, go_on)
{
	struct sampler_config c = config_of(EVENT_WAITS);
	pid_t naps = fork();
	bool found = false;
	struct sampler *s;

	while (!naps) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		usleep(10000);
	}
	s = live_start(&c);
	for (int i = 0; i < 2; i++) {
		struct profile *p = live_wait(s);

		if (i)
			assert_true(p->waits.tasks > 1);
		profile_free(p);
	}
	sampler_set_target(s, &(struct sampler_target_spec){
				      .target = TARGET_PIDS, .pids = &naps, .nr_pids = 1 });
	for (int i = 0; i < 20 && !found; i++) {
		struct profile *p = live_wait(s);

		found = !strncmp(p->target, "pid ", 4);
		profile_free(p);
	}
	assert_true(found);
	expect_only(s, naps, true);
	for (int i = 0; i < 2; i++) {
		struct profile *p = live_wait(s);

		assert_int_equal(p->waits.tasks, 1);
		profile_free(p);
	}
	sampler_free(s);
	kill(naps, SIGKILL);
	waitpid(naps, NULL, 0);
}

/* Take profiles until one process alone is shown, and two more; return the rate of the last one. */
static double rate_alone(struct sampler *s, pid_t pid)
{
	double hz = 0;

	for (int alone = 0; alone < 3;) {
		struct profile *p = live_wait(s);

		hz = p->events[0].want_hz;
		alone += p->focus == pid;
		profile_free(p);
	}
	return hz;
}

/* Another profiler takes the locked memory while our rings are unmapped. */
static atomic_bool locked_out;

static int open_locked(void *ctx, struct ring *ring, int fd, size_t size)
{
	return locked_out ? -EPERM : counters_kernel.ring_open(ctx, ring, fd, size);
}

TEST(test_stopped)
{
	struct sampler_config c = config_of("cpu-clock");
	/* After a failure its sampler goes on beside the next tests. */
	static struct counters_sys sys;
	struct sampler *s;

	sys = counters_kernel;
	sys.ring_open = open_locked;
	c.sys = &sys;
	s = live_start(&c);
	profile_free(live_wait(s));
	locked_out = true;
	sampler_set_ring_size(s, 256 << 10);
	expect_message(s, "sampling has stopped");
	for (int i = 0; i < 3; i++)
		profile_free(live_wait(s));
	sampler_set_stack_size(s, 4096, false);
	expect_message(s, "cannot lock");
	locked_out = false;
	sampler_set_ring_size(s, 512 << 10);
	expect_message(s, "rings of 512 KiB");
	expect_rate(s, 999);
	sampler_free(s);
}

/* The way back to a target that has ended is refused: target and rate remain. */
TEST(test_no_way_back)
{
	struct sampler_config c = config_of("cpu-clock");
	pid_t first = fork();
	struct sampler *s;
	bool is_first = false;
	double hz;

	if (!first) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		spin(NULL);
	}
	c.hz = 199;
	c.target = TARGET_PIDS;
	c.pids = &first;
	c.nr_pids = 1;
	s = live_start(&c);
	profile_free(live_wait(s));
	sampler_focus(s, busy[0]);
	hz = rate_alone(s, busy[0]);
	assert_true(hz > 199);
	kill(first, SIGKILL);
	waitpid(first, NULL, 0);
	sampler_unfocus(s);
	assert_true(rate_alone(s, busy[0]) == hz);
	sampler_focus(s, 0x3fffffff);
	assert_true(rate_alone(s, busy[0]) == hz);
	/* Nor from there to another process: its rate would be four times that of the first. */
	sampler_focus(s, busy[1]);
	for (int i = 0; i < 5; i++) {
		struct profile *p = live_wait(s);

		is_first = p->focus == busy[0] && p->events[0].want_hz == hz;
		profile_free(p);
	}
	assert_true(is_first);
	sampler_free(s);
}

TEST(test_own_rates)
{
	struct sampler_config c = config_of("cpu-clock/freq=199/");
	struct sampler *s = live_start(&c);

	expect_rate(s, 199);
	sampler_set_rate(s, 0, 399);
	expect_rate(s, 399);
	sampler_free(s);
}

/* The list gets the PMUs' events and the tracepoints; the sampler does not wait for it. */
TEST(test_event_states, rest, go_on)
{
	static struct sampler_event_state states[8192];
	struct sampler_config c = config_of("cpu-clock");
	struct sampler *s = live_start(&c);
	uint32_t nr = sampler_event_states(s, states, ARRAY_SIZE(states)), now = nr;
	bool usable = false;

	for (int i = 0; i < 40; i++) {
		bool waiting = false;

		profile_free(live_wait(s));
		now = sampler_event_states(s, states, ARRAY_SIZE(states));
		for (uint32_t k = 0; k < now; k++) {
			waiting |= states[k].code == 1;
			if (!strcmp(states[k].info->name, "cpu-clock"))
				usable = states[k].code == 0;
		}
		if (!waiting)
			break;
	}
	assert_true(usable);
	assert_true(now >= nr);
	sampler_free(s);
}

/* The state after the random controls. */
struct steered {
	struct sampler *s;
	pid_t only[BUSY]; /* processes allowed in a profile; none: all */
	uint32_t nr_only;
	char target[32];       /* name in profiles; may be refused */
	uint64_t target_ns;    /* since when they do, by session_ns; 0: not yet */
	double hz;	       /* just requested, of the first event; 0: not */
	unsigned int nr_rates; /* looked at */
	uint64_t nr_places;
};

static void any_events(struct sampler *s)
{
	static const char *const names[] = {
		"cpu-clock",	    "task-clock",  "page-faults",
		"context-switches", "cpu-clock:u", "minor-faults/period=1/",
		"task-clock:k",
	};
	struct event events[3];
	uint32_t nr = 1 + (uint32_t)rand() % 3, first = (uint32_t)rand() % ARRAY_SIZE(names);

	for (uint32_t i = 0; i < nr; i++)
		event_parse(&events[i], names[(first + i) % ARRAY_SIZE(names)], NULL);
	sampler_set_events(s, events, nr);
}

static void any_target(struct steered *st)
{
	static const int cpu = 0;
	const struct {
		struct sampler_target_spec spec;
		uint32_t first, nr; /* of busy[]: no others */
		const char *target;
	} all[] = {
		{ { .target = TARGET_SYSTEM }, 0, 0, "" },
		{ { .target = TARGET_PIDS, .pids = busy, .nr_pids = 2 }, 0, 2, "pid" },
		{ { .target = TARGET_PIDS, .pids = &busy[2], .nr_pids = 1 }, 2, 1, "pid" },
		{ { .target = TARGET_TIDS, .pids = &busy[1], .nr_pids = 1 }, 1, 1, "thread" },
		{ { .target = TARGET_NAME, .name = busy_regex }, 0, BUSY, "name" },
		{ { .target = TARGET_SYSTEM, .cpus = &cpu, .nr_cpus = 1 }, 0, 0, "" },
		{ { .target = TARGET_USER, .uid = getuid() }, 0, 0, "" },
		{ { .target = TARGET_CGROUP, .cgroup = "/" }, 0, 0, "" },
		{ { .target = TARGET_CGROUP, .cgroup = busy_cgroup }, 0, 1, "cgroup" },
	};
	size_t i = (size_t)rand() % (ARRAY_SIZE(all) - !busy_cgroup[0]);

	sampler_set_target(st->s, &all[i].spec);
	memcpy(st->only, &busy[all[i].first], all[i].nr * sizeof(pid_t));
	st->nr_only = all[i].nr;
	/* "name" is used: there is one. */
	if (all[i].spec.nr_pids)
		snprintf(st->target, sizeof(st->target), "%s %d", all[i].target,
			 (int)all[i].spec.pids[0]);
	else
		snprintf(st->target, sizeof(st->target), "%s", all[i].target);
	st->target_ns = 0;
}

static void any_focus(struct steered *st)
{
	st->nr_only = (uint32_t)rand() % 2;
	st->only[0] = busy[rand() % BUSY];
	if (st->nr_only)
		sampler_focus(st->s, st->only[0]);
	else
		sampler_unfocus(st->s);
	snprintf(st->target, sizeof(st->target), "pid %d", (int)st->only[0]);
	st->target_ns = 0;
}

static void any_rate(struct steered *st)
{
	uint32_t event = (uint32_t)rand() % 2;
	double hz = 49 + rand() % (RATE_MAX - 48);

	sampler_set_rate(st->s, event, hz);
	st->hz = event ? 0 : hz;
}

/* One control out of all there are. */
static void any_control(struct steered *st)
{
	static const int cpu = 0;
	struct sampler *s = st->s;

	st->hz = 0;
	switch (rand() % 12) {
	case 0:
		any_events(s);
		break;
	case 1:
		any_target(st);
		break;
	case 2:
		sampler_set_stack_size(s, (uint32_t)rand() % 65528, false);
		break;
	case 3:
		sampler_set_ring_size(s, (size_t)(128 << 10) << rand() % 5);
		break;
	case 4:
		sampler_set_enabled(s, rand() % 4);
		break;
	case 5:
		sampler_set_call_graph(s, (enum call_graph)(rand() % CALL_GRAPH_NR));
		break;
	case 6:
		sampler_set_event_enabled(s, 0, rand() % 3);
		break;
	case 7:
		sampler_set_cpus(s, &cpu, (uint32_t)rand() % 2);
		break;
	case 8:
		any_focus(st);
		break;
	case 9:
		sampler_reset(s);
		break;
	default:
		any_rate(st);
		break;
	}
}

/* Past the window no process remains that is not sampled any more. */
static void check_rows(struct steered *st, const struct profile *p)
{
	bool sampled = st->nr_only && !strncmp(p->target, st->target, strlen(st->target));

	/* By the ends of ticks: this thread may be late. */
	st->target_ns = !sampled ? 0 : st->target_ns ? st->target_ns : p->session_ns;
	if (!sampled || p->session_ns - st->target_ns < WINDOW_NS + 2 * TICK_NS)
		return;
	for (uint32_t i = 0; i < p->nr_counts; i++) {
		pid_t pid = p->processes[p->tasks[p->counts[i].task].process].pid;
		bool found = false;

		for (uint32_t k = 0; k < st->nr_only; k++)
			found |= st->only[k] == pid;
		if (!found)
			fail_msg("%s is sampled, and pid %d has a row", p->target, (int)pid);
	}
}

/* Return whether the rate of this event can be judged: counts of other programs vary, and limits
 * belong to other users. */
static bool is_clock(const struct profile *p, uint32_t event)
{
	const struct profile_event *ev = &p->events[event];
	bool throttled = p->max_hz < p->max_hz_top;

	for (uint32_t i = 0; i < p->nr_cpus; i++)
		throttled |= p->cpus[i].throttled > 0;
	return !throttled && p->sampling && ev->enabled && ev->want_hz > 0 && !isnan(ev->got_hz) &&
	       (!strcmp(ev->event.name, "cpu-clock") || !strcmp(ev->event.name, "task-clock"));
}

/* Print the parts of the rates of @p, for the analysis of a failure. */
static void print_rates(const struct profile *p)
{
	for (uint32_t i = 0; i < p->nr_cpus * p->nr_events; i++) {
		const struct profile_cpu *cpu = &p->cpus[i / p->nr_events];
		const struct profile_cpu_event *ev = &p->cpu_events[i];

		print_error("%s, CPU %d: %lu samples, %lu lost, in %.1f of %.1f ms, lag %.1f ms, "
			    "busy %.2f\n",
			    p->events[i % p->nr_events].event.name, cpu->cpu, ev->samples, ev->lost,
			    (double)ev->running_ns / 1e6, (double)p->interval_ns / 1e6,
			    (double)cpu->lag_max_ns / 1e6, cpu->busy);
	}
}

/*
 * Profiles for @ns: of the whole ticks the first or the second, not counting disturbed ones, has
 * the expected rates, which are the requested ones.
 */
static void follow(struct steered *st, uint64_t ns, bool rates)
{
	uint64_t since = time_now_ns();
	unsigned int whole = 0, right = 0, held_up = 0;
	double share;

	share_of_tick();
	while (time_now_ns() - since < ns || (rates && whole < 2 && !right)) {
		struct pollfd fd = { .fd = sampler_fd(st->s), .events = POLLIN };
		struct profile *p = poll(&fd, 1, 20) > 0 ? sampler_take(st->s) : NULL;
		bool good = p != NULL;

		if (!p)
			continue;
		share = share_of_tick();
		check_profile(p);
		check_rows(st, p);
		st->nr_places = p->nr_places;
		for (uint32_t i = 0; i < p->nr_events; i++) {
			const struct profile_event *ev = &p->events[i];

			if (is_clock(p, i) && !is_near(ev->got_hz, ev->want_hz, share))
				good = false;
		}
		/* A limit that others have lowered refuses it. */
		good &= !(st->hz > 0) || p->max_hz < p->max_hz_top ||
			fabs(p->events[0].want_hz - st->hz) < 1;
		/* One that ended just after the control is of before. */
		if (p->interval_ns > TICK_NS * 9 / 10 && time_now_ns() - since > TICK_NS / 4) {
			held_up += !good && is_disturbed(p, share);
			whole += good || !is_disturbed(p, share) || held_up > MAX_TICKS;
			right += good;
			st->nr_rates += is_clock(p, 0);
		}
		if (rates && whole == 2 && !right)
			print_rates(p);
		if (rates && whole == 2 && !right)
			fail_msg("%s of %s: %.0f Hz wanted, %.0f got in the second tick",
				 p->events[0].event.name, p->target, p->events[0].want_hz,
				 p->events[0].got_hz);
		profile_free(p);
	}
}

static unsigned int number_of(const char *name, unsigned int otherwise)
{
	const char *text = getenv(name);

	return text ? (unsigned int)strtoul(text, NULL, 10) : otherwise;
}

static void back_to_start(struct sampler *s, const struct sampler_config *c)
{
	sampler_set_target(s, &(struct sampler_target_spec){ .target = TARGET_SYSTEM });
	sampler_set_events(s, c->events, 1);
	sampler_set_stack_size(s, 8192, false);
	sampler_set_ring_size(s, 512 << 10);
	sampler_set_enabled(s, true);
	sampler_set_event_enabled(s, 0, true);
	sampler_set_rate(s, 0, 799);
	for (int i = 0; i < 3; i++)
		profile_free(live_wait(s));
}

/* Memory of objects: other programs start and end. */
static long images_kb(struct sampler *s)
{
	struct profile *p = live_wait(s);
	long kb = (long)(p->images.memory >> 10);

	profile_free(p);
	return kb;
}

/* Return all that is resident but images. */
static long resident_beside_kb(struct sampler *s)
{
	long images = images_kb(s);

	return resident_kb() - images;
}

static void random_controls(struct steered *st, unsigned int nr, unsigned int seconds)
{
	for (unsigned int i = 0; i < nr; i++) {
		/* The queued profile is from before. */
		profile_free(sampler_take(st->s));
		any_control(st);
		if (i % 20 == 0)
			print_message("%u: %ld KiB, %lu places, %u fds\n", i, resident_kb(),
				      st->nr_places, nr_open(false));
		follow(st, seconds * 1000000000ULL / nr, seconds * 1000000000ULL / nr > TICK_NS);
	}
}

TEST(test_random)
{
	unsigned int nr = number_of("CONTROLS", 24), seconds = number_of("SECONDS", 2);
	struct sampler_config c = config_of("cpu-clock");
	struct steered st = { .s = live_start(&c) };
	long grown = LONG_MAX;
	unsigned int fds;

	reopen_reference(FOCUS_HZ);
	srand(number_of("SEED", 1));
	back_to_start(st.s, &c);
	expect_rate(st.s, 799);
	fds = nr_open(false);
	/* Of many other programs it grows once; a leak grows each time. */
	for (int i = 0; i < 3 && grown > GROWTH_OTHERS_KB; i++) {
		grown = -resident_beside_kb(st.s);
		random_controls(&st, nr, seconds);
		back_to_start(st.s, &c);
		expect_rate(st.s, 799);
		grown += resident_beside_kb(st.s);
		print_message("%ld KiB more resident\n", grown);
	}
	expect_open(fds, false);
	assert_true(!MEMORY_IS_OURS || grown <= GROWTH_OTHERS_KB);
	print_message("%u rates\n", st.nr_rates);
	sampler_free(st.s);
	reopen_reference(REFERENCE_HZ);
}

/* Every control once, each answered. */
static void all_controls(struct sampler *s, const struct sampler_config *c)
{
	static const int cpu = 0;
	struct event events[2];

	event_parse(&events[0], "task-clock", NULL);
	event_parse(&events[1], "page-faults", NULL);
	for (int i = 0; i < 15; i++) {
		switch (i) {
		case 0:
			sampler_set_rate(s, 0, 1999);
			break;
		case 1:
			sampler_set_stack_size(s, 16384, false);
			break;
		case 2:
			sampler_set_ring_size(s, 256 << 10);
			break;
		case 3:
			sampler_set_call_graph(s, CALL_GRAPH_FP);
			break;
		case 4:
			sampler_set_events(s, events, 2);
			break;
		case 5:
			sampler_set_event_enabled(s, 1, false);
			break;
		case 6:
			sampler_focus(s, busy[1]);
			break;
		case 7:
			sampler_unfocus(s);
			break;
		case 8:
			sampler_set_cpus(s, &cpu, 1);
			break;
		case 9:
			sampler_set_cpus(s, NULL, 0);
			break;
		case 10:
			sampler_set_enabled(s, false);
			break;
		case 11:
			sampler_set_enabled(s, true);
			break;
		case 12:
			sampler_set_events(s, c->events, 1);
			break;
		case 13:
			sampler_set_stack_size(s, 8192, false);
			break;
		case 14:
			sampler_set_ring_size(s, 512 << 10);
			break;
		}
		for (int k = 0; k < 2; k++)
			profile_free(live_wait(s));
	}
}

/* Of programs that are known all the time nothing grows, however often they are sampled in another
 * way. */
TEST(test_no_growth)
{
	unsigned int rounds = MAX(number_of("CONTROLS", 40) / 20, 2u), fds;
	struct sampler_config c = config_of("cpu-clock");
	long grown = LONG_MAX;
	struct sampler *s;

	c.target = TARGET_PIDS;
	c.pids = busy;
	c.nr_pids = BUSY;
	c.tick_ns = TICK_NS / 5;
	s = live_start(&c);
	for (int i = 0; i < 2; i++)
		all_controls(s, &c);
	fds = nr_open(true);
	/* A leak grows each time. */
	for (int i = 0; i < 3 && grown > GROWTH_KB; i++) {
		grown = -resident_kb();
		for (unsigned int k = 0; k < rounds; k++)
			all_controls(s, &c);
		grown += resident_kb();
		print_message("%ld KiB more resident\n", grown);
	}
	expect_open(fds, true);
	assert_true(!MEMORY_IS_OURS || grown <= GROWTH_KB);
	sampler_free(s);
}

int main(void)
{
	return run_unit_tests(start_load, stop_load);
}
