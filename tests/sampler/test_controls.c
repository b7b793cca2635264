// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Everything that can be steered, steered at random at full load: in each
 * tick the account sums up, nothing leaks, the rates are what was asked for.
 * CONTROLS=200 SECONDS=300 for the long run. Needs the right to sample.
 */
#include "sampler/sampler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define TICK_NS 500000000ULL
#define BUSY	3
/* Lines are read from four objects at a time, each with a debug file and that one's; images of four. */
#define FILES_MAX 24
/* By tables, and by objects that others on the machine run meanwhile. */
#define GROWTH_KB (24 << 10)

static pid_t busy[BUSY];

/* Child processes that never rest; the last one has a second thread. */
static void *spin(void *arg)
{
	volatile unsigned long n = 0;

	for (;;)
		n++;
	return NULL;
}

static int start_load(void **state)
{
	for (int i = 0; i < BUSY; i++) {
		busy[i] = fork();
		if (busy[i] == 0) {
			pthread_t id;

			prctl(PR_SET_PDEATHSIG, SIGKILL);
			prctl(PR_SET_NAME, "test-busy");
			if (i == BUSY - 1)
				pthread_create(&id, NULL, spin, NULL);
			spin(NULL);
		}
	}
	return 0;
}

static int stop_load(void **state)
{
	for (int i = 0; i < BUSY; i++) {
		kill(busy[i], SIGKILL);
		waitpid(busy[i], NULL, 0);
	}
	return 0;
}

static struct sampler_config config_of(const char *event)
{
	struct sampler_config c = {
		.target = TARGET_SYSTEM, .hz = 999, .stack_size = 8192, .tick_ns = TICK_NS,
		.window_ns = 1000000000, .exact_ticks = true, .nr_events = 1,
	};

	assert_int_equal(event_parse(&c.events[0], event, NULL), 0);
	return c;
}

static struct sampler *start(struct sampler_config *c)
{
	struct sampler *s;
	struct err e = { "" };
	int code = sampler_new(&s, c, &e);

	if (code == -EACCES || code == -EPERM || code == -ENOSYS)
		skip();
	if (code || sampler_start(s, &e))
		fail_msg("%s", e.text);
	return s;
}

static struct profile *wait_profile(struct sampler *s)
{
	struct pollfd fd = { .fd = sampler_fd(s), .events = POLLIN };
	struct profile *p = NULL;

	for (int i = 0; i < 100 && !p; i++) {
		poll(&fd, 1, 100);
		p = sampler_take(s);
	}
	assert_non_null(p);
	return p;
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
	for (uint32_t i = 0; i < p->nr_cells; i++)
		assert_true(p->cells[i].event < p->nr_events);
	assert_int_equal(p->window, PROFILE_WINDOW);
}

/*
 * The rate within a tenth, in the first tick that is whole or the second; the answer to the control
 * comes before them in a short one, which has no rate.
 */
static void expect_rate(struct sampler *s, double hz)
{
	double got[2] = { 0 };

	for (unsigned int whole = 0, i = 0; whole < 2 && i < 10; i++) {
		struct profile *p = wait_profile(s);
		bool answered = p->events[0].want_hz > hz - 1 && p->events[0].want_hz < hz + 1;

		check_profile(p);
		if (answered && p->interval_ns > TICK_NS / 2 && !isnan(p->events[0].got_hz))
			got[whole++] = p->events[0].got_hz;
		profile_free(p);
		if (whole && got[whole - 1] > hz * 0.9 && got[whole - 1] < hz * 1.1)
			return;
	}
	fail_msg("%.0f Hz wanted, %.0f, then %.0f got", hz, got[0], got[1]);
}

/*
 * What is open: ours (events, eventfds, pipes), to be the same after any number of controls, and
 * files of objects, which the loader keeps open for their lines: a few, of whatever runs.
 */
static unsigned int nr_open(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int nr = 0, files = 0;
	struct dirent *entry;
	char target[64];

	while ((entry = readdir(dir))) {
		ssize_t size = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target));

		if (size > 0 && target[0] == '/')
			files++;
		else
			nr++;
	}
	closedir(dir);
	assert_in_range(files, 0, FILES_MAX);
	return nr;
}

static void print_open(void)
{
	char command[64];

	snprintf(command, sizeof(command), "ls -l /proc/%d/fd", (int)getpid());
	if (system(command))
		print_message("no ls\n");
}

static void expect_open(unsigned int before)
{
	if (nr_open() != before)
		print_open();
	assert_int_equal(nr_open(), before);
}

static long resident_kb(void)
{
	long total, resident = 0;
	FILE *f;

	/* What is free already is no growth. */
	malloc_trim(0);
	f = fopen("/proc/self/statm", "r");

	if (f && fscanf(f, "%ld %ld", &total, &resident) != 2)
		resident = 0;
	if (f)
		fclose(f);
	return resident * sysconf(_SC_PAGESIZE) / 1024;
}

/* Until @text is in the message, or the time is up. */
static void expect_message(struct sampler *s, const char *text)
{
	char last[256] = "";

	for (int i = 0; i < 20; i++) {
		struct profile *p = wait_profile(s);
		bool found = strstr(p->message, text);

		check_profile(p);
		memcpy(last, p->message, sizeof(last));
		profile_free(p);
		if (found)
			return;
	}
	fail_msg("no '%s', but: %s", text, last);
}

/* Only tasks of @pid, or of anyone if it is 0, in a profile of new samples. */
static void expect_only(struct sampler *s, pid_t pid, bool only)
{
	bool others = false, seen = false;

	sampler_reset(s);
	for (int i = 0; i < 4; i++) {
		struct profile *p = wait_profile(s);

		others = false;
		for (uint32_t k = 0; k < p->nr_cells; k++) {
			const struct profile_task *t = &p->tasks[p->cells[k].task];
			pid_t of = p->processes[t->process].pid;

			seen |= of == pid;
			others |= of != pid;
		}
		profile_free(p);
	}
	assert_true(seen);
	assert_int_equal(others, !only);
}

static void test_targets(void **state)
{
	struct sampler_config c = config_of("cpu-clock");
	struct sampler *s = start(&c);
	unsigned int fds;

	expect_rate(s, 999);
	fds = nr_open();
	sampler_set_target(s, &(struct sampler_target_spec){ .target = TARGET_PIDS, .pids = busy,
							     .nr_pids = 1 });
	expect_message(s, "sampling pid");
	expect_only(s, busy[0], true);
	expect_rate(s, 999);
	sampler_set_target(s, &(struct sampler_target_spec){ .target = TARGET_TIDS,
							     .pids = &busy[1], .nr_pids = 1 });
	expect_message(s, "sampling thread");
	expect_only(s, busy[1], true);
	sampler_set_target(s, &(struct sampler_target_spec){ .target = TARGET_NAME,
							     .name = "^test-busy$" });
	expect_message(s, "sampling name");
	expect_only(s, busy[0], false);
	sampler_set_target(s, &(struct sampler_target_spec){ .target = TARGET_PIDS,
							     .pids = (pid_t[]){ 0x3fffff },
							     .nr_pids = 1 });
	expect_message(s, "no process with pid");
	sampler_set_target(s, &(struct sampler_target_spec){ .target = TARGET_SYSTEM });
	expect_message(s, "sampling system");
	expect_only(s, busy[2], false);
	expect_rate(s, 999);
	expect_open(fds);
	sampler_free(s);
}

static void test_sizes(void **state)
{
	struct sampler_config c = config_of("cpu-clock");
	struct sampler *s = start(&c);

	expect_rate(s, 999);
	sampler_set_rate(s, 0, 499);
	expect_rate(s, 499);
	sampler_set_stack_size(s, 32003);
	expect_message(s, "32000 bytes of user stack");
	/* the rate of now, not that of the start */
	expect_rate(s, 499);
	sampler_set_ring_size(s, 256 << 10);
	expect_message(s, "rings of 256 KiB");
	sampler_set_ring_size(s, 4096);
	expect_message(s, "cannot hold one sample");
	expect_rate(s, 499);
	sampler_set_call_graph(s, CALL_GRAPH_FP);
	expect_message(s, "by frame pointers");
	expect_rate(s, 499);
	sampler_set_call_graph(s, CALL_GRAPH_DWARF);
	expect_message(s, "dumps of 32000 bytes");
	sampler_set_stack_size(s, 0);
	expect_message(s, "no stacks (off)");
	sampler_set_event_enabled(s, 0, false);
	expect_message(s, "is off");
	for (int i = 0; i < 2; i++)
		profile_free(wait_profile(s));
	for (int i = 0; i < 2; i++) {
		struct profile *p = wait_profile(s);

		assert_int_equal(p->account.taken, 0);
		assert_false(p->events[0].enabled);
		profile_free(p);
	}
	/* past the window there are no rows of before */
	for (int i = 0; i < 3; i++) {
		struct profile *p = wait_profile(s);

		if (i == 2)
			assert_int_equal(p->nr_cells, 0);
		profile_free(p);
	}
	/* off is off, whatever is opened anew */
	sampler_set_stack_size(s, 8192);
	expect_message(s, "8192 bytes");
	sampler_set_event_enabled(s, 0, true);
	expect_rate(s, 499);
	sampler_free(s);
}

/* A process that comes later is found, and one that was there at the start is not needed. */
static void test_name_waits(void **state)
{
	struct sampler_config c = config_of("cpu-clock");
	struct sampler *s;
	bool seen = false;
	pid_t pid;

	c.target = TARGET_NAME;
	c.name = "^test-late$";
	s = start(&c);
	profile_free(wait_profile(s));
	for (int round = 0; round < 2; round++) {
		pid = fork();
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			prctl(PR_SET_NAME, "test-late");
			spin(NULL);
		}
		seen = false;
		for (int i = 0; i < 16 && !seen; i++) {
			struct profile *p = wait_profile(s);

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

static void test_own_rates(void **state)
{
	struct sampler_config c = config_of("cpu-clock/freq=199/");
	struct sampler *s = start(&c);

	expect_rate(s, 199);
	sampler_set_rate(s, 0, 399);
	expect_rate(s, 399);
	sampler_free(s);
}

/* The list gets the PMUs' events and the tracepoints; nobody waits for it. */
static void test_event_states(void **state)
{
	static struct sampler_event_state states[8192];
	struct sampler_config c = config_of("cpu-clock");
	struct sampler *s = start(&c);
	uint32_t nr = sampler_event_states(s, states, ARRAY_SIZE(states)), now = nr;
	bool usable = false;

	for (int i = 0; i < 40; i++) {
		bool waiting = false;

		profile_free(wait_profile(s));
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

static void any_events(struct sampler *s)
{
	static const char *const names[] = {
		"cpu-clock", "task-clock", "page-faults", "context-switches", "cpu-clock:u",
		"minor-faults/period=1/",
	};
	struct event events[3];
	uint32_t nr = 1 + (uint32_t)rand() % 3, first = (uint32_t)rand() % 6;

	for (uint32_t i = 0; i < nr; i++)
		event_parse(&events[i], names[(first + i) % ARRAY_SIZE(names)], NULL);
	sampler_set_events(s, events, nr);
}

static void any_target(struct sampler *s)
{
	const struct sampler_target_spec specs[] = {
		{ .target = TARGET_SYSTEM },
		{ .target = TARGET_PIDS, .pids = busy, .nr_pids = 2 },
		{ .target = TARGET_PIDS, .pids = &busy[2], .nr_pids = 1 },
		{ .target = TARGET_TIDS, .pids = &busy[1], .nr_pids = 1 },
		{ .target = TARGET_NAME, .name = "test-busy" },
		{ .target = TARGET_SYSTEM, .cpus = (int[]){ 0 }, .nr_cpus = 1 },
		{ .target = TARGET_USER, .uid = getuid() },
	};

	sampler_set_target(s, &specs[(size_t)rand() % ARRAY_SIZE(specs)]);
}

/* One control out of all there are. */
static void any_control(struct sampler *s)
{
	switch (rand() % 9) {
	case 0:
		any_events(s);
		break;
	case 1:
		any_target(s);
		break;
	case 2:
		sampler_set_stack_size(s, (uint32_t)rand() % 65528);
		break;
	case 3:
		sampler_set_ring_size(s, (size_t)(128 << 10) << rand() % 5);
		break;
	case 4:
		sampler_set_rate(s, (uint32_t)rand() % 2, 49 + rand() % 3000);
		break;
	case 5:
		sampler_set_enabled(s, rand() % 4);
		break;
	case 7:
		sampler_set_call_graph(s, (enum call_graph)(rand() % CALL_GRAPH_NR));
		break;
	case 6:
		sampler_set_event_enabled(s, 0, rand() % 3);
		break;
	default:
		sampler_reset(s);
		break;
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
	sampler_set_stack_size(s, 8192);
	sampler_set_ring_size(s, 512 << 10);
	sampler_set_enabled(s, true);
	sampler_set_event_enabled(s, 0, true);
	sampler_set_rate(s, 0, 799);
	for (int i = 0; i < 3; i++)
		profile_free(wait_profile(s));
}

static void test_random(void **state)
{
	unsigned int nr = number_of("CONTROLS", 40), seconds = number_of("SECONDS", 4);
	struct sampler_config c = config_of("cpu-clock");
	struct sampler *s;
	unsigned int fds;
	long kb;

	/* Lines of whatever else runs on the machine take memory by the hundred MiB: not here. */
	c.no_inline = true;
	s = start(&c);
	srand(number_of("SEED", 1));
	back_to_start(s, &c);
	expect_rate(s, 799);
	fds = nr_open();
	kb = resident_kb();
	for (unsigned int i = 0; i < nr; i++) {
		uint64_t until = time_now_ns() + seconds * 1000000000ULL / nr;

		any_control(s);
		if (i % 20 == 0)
			print_message("%u: %ld KiB, %u fds\n", i, resident_kb(), nr_open());
		do {
			struct pollfd fd = { .fd = sampler_fd(s), .events = POLLIN };
			struct profile *p = poll(&fd, 1, 20) > 0 ? sampler_take(s) : NULL;

			if (p)
				check_profile(p);
			profile_free(p);
		} while (time_now_ns() < until);
	}
	back_to_start(s, &c);
	expect_rate(s, 799);
	expect_open(fds);
	/* tables grow with what was seen, not with what was done to them */
	print_message("%ld KiB resident, %ld before\n", resident_kb(), kb);
	if (resident_kb() > kb + GROWTH_KB)
		fail_msg("%ld KiB resident, %ld before", resident_kb(), kb);
	sampler_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_targets),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_name_waits),
		cmocka_unit_test(test_own_rates),
		cmocka_unit_test(test_event_states),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, start_load, stop_load);
}
