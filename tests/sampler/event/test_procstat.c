// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * procstat: shares from made-up /proc files, CPUs that go offline and online, odd content; and that
 * our own cost is seen.
 * Live: waits for threads or processes.
 */
#include "sampler/event/event.h"

#include "tests/fake_root.h"
#include "tests/yardstick.h"
#include "symbols/base/base.h"

#include <errno.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/tmp/test_procstat.XXXXXX";

static void write_file(const char *path, const char *text)
{
	fake_put(root, path, text);
}

static void make_dir(const char *path)
{
	char full[256];

	snprintf(full, sizeof(full), "%s%s", root, path);
	mkdir(full, 0700);
}

static int setup(void **state)
{
	if (!mkdtemp(root))
		return -1;
	make_dir("/proc");
	make_dir("/proc/sys");
	make_dir("/proc/sys/kernel");
	make_dir("/proc/self");
	make_dir("/proc/pressure");
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	return system(command);
}

static struct procstat *start(const char *stat)
{
	struct procstat *p;
	struct err e;

	write_file("/proc/stat", stat);
	assert_int_equal(procstat_new(&p, root, &e), 0);
	return p;
}

static void update(struct procstat *p, const char *stat)
{
	write_file("/proc/stat", stat);
	assert_int_equal(procstat_update(p), 0);
}

static void check(const struct procstat *p, int cpu, bool online, double busy)
{
	struct procstat_cpu is = procstat_cpu(p, cpu);

	assert_int_equal(is.online, online);
	if (fabs(is.busy - busy) > 1e-9)
		fail_msg("cpu%d: %f, not %f", cpu, is.busy, busy);
}

TEST(test_busy)
{
	struct procstat *p = start("cpu  9 9 9 9 9 9 9 9 0 0\n"
				   "cpu0 100 10 20 1000 5 1 2 3 50 0\n"
				   "cpu1 0 0 0 500 0 0 0 0 0 0\nintr 1 2 3\n");

	check(p, 0, true, 0);
	/* cpu0: 60+1+2+3+4+10 = 80 busy, 15+5 = 20 idle; guest is within user */
	update(p, "cpu  9 9 9 9 9 9 9 9 0 0\n"
		  "cpu0 160 11 22 1015 10 4 6 13 99 0\n"
		  "cpu1 0 0 0 600 0 0 0 0 0 0\nintr 1 2 3\n");
	check(p, 0, true, 0.8);
	check(p, 1, true, 0);
	/* 2 system, 3 irq and 4 softirq; 10 for the host */
	assert_true(fabs(procstat_cpu(p, 0).kernel - 0.09) < 1e-9);
	assert_true(fabs(procstat_cpu(p, 0).steal - 0.10) < 1e-9);
	/* The same time: 1 s idle, or 0.37 s idle, in interrupts and of the host. */
	assert_true(fabs(procstat_cpu(p, 0).tasks_ns - procstat_cpu(p, 1).tasks_ns - 0.63e9) < 1);
	/* no time has passed: the last values are kept */
	assert_int_equal(procstat_update(p), 0);
	check(p, 0, true, 0.8);
	check(p, 2, false, 0);
	check(p, -1, false, 0);
	assert_true(procstat_cpu(p, 0).kernel > 0.08);
	procstat_free(p);
}

TEST(test_backwards)
{
	struct procstat *p = start("cpu0 100 0 0 1000 500 0 0 0\n");

	/* iowait goes back by more than idle goes on */
	update(p, "cpu0 110 0 0 1005 480 0 0 0\n");
	check(p, 0, true, 1.0);
	update(p, "cpu0 0 0 0 1095 480 0 0 0\n");
	check(p, 0, true, 0.0);
	procstat_free(p);
}

/* A CPU off and on again: its counts were reset, no share is made up from them. */
TEST(test_hotplug)
{
	struct procstat *p = start("cpu0 0 0 0 0 0 0 0 0\ncpu5 50 0 0 50 0 0 0 0\n");

	check(p, 5, true, 0);
	check(p, 3, false, 0);
	update(p, "cpu0 10 0 0 0 0 0 0 0\n");
	check(p, 0, true, 1);
	check(p, 5, false, 0);
	update(p, "cpu0 10 0 0 10 0 0 0 0\ncpu5 90 0 0 90 0 0 0 0\n");
	check(p, 0, true, 0);
	check(p, 5, true, 0);
	update(p, "cpu0 10 0 0 20 0 0 0 0\ncpu5 120 0 0 100 0 0 0 0\n");
	check(p, 5, true, 0.75);
	procstat_free(p);
}

/* Of each kind, the share of time in which some task waited. */
TEST(test_pressure)
{
	struct procstat *p = start("cpu0 1 0 0 1 0 0 0 0\n");

	assert_true(procstat_pressure(p).cpu == 0);
	write_file("/proc/pressure/cpu", "some avg10=99.39 avg60=1.00 avg300=0.10 total=16\n"
					 "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
	write_file("/proc/pressure/io", "some avg10=1e9\n");
	write_file("/proc/pressure/memory", "some avg10=-3\n");
	assert_int_equal(procstat_update(p), 0);
	assert_true(fabs(procstat_pressure(p).cpu - 0.9939) < 1e-9);
	assert_true(procstat_pressure(p).io == 1);
	assert_true(procstat_pressure(p).memory == 0);
	procstat_free(p);
}

TEST(test_odd_content)
{
	static const char *const texts[] = {
		"",
		"cpu",
		"cpu0",
		"cpu0\n",
		"cpu0 1 2\n",
		"cpux 1 2 3 4 5 6 7 8\n",
		"cpu99999999999999999999 1 2 3 4 5 6 7 8\n",
		"cpu70000 1 2 3 4 5 6 7 8\n",
		"cpu-1 1 2 3 4 5 6 7 8\n",
		"\n\ncpu0 1 2 3 4\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct procstat *p = start(texts[i]);

		update(p, texts[i]);
		check(p, 0, false, 0);
		procstat_free(p);
	}
}

/* As large as a machine of 4096 CPUs makes it. */
TEST(test_many_cpus)
{
	size_t size = 4096 * 64, at = 0;
	char *text = malloc(size);
	struct procstat *p;

	assert_non_null(text);
	for (unsigned int i = 0; i < 4096; i++)
		at += (size_t)snprintf(text + at, size - at, "cpu%u %u 0 0 %u 0 0 0 0 0 0\n", i, i,
				       4096 - i);
	p = start("cpu0 0 0 0 0 0 0 0 0\n");
	update(p, text);
	update(p, text);
	check(p, 4095, true, 0);
	check(p, 4096, false, 0);
	free(text);
	procstat_free(p);
}

TEST(test_no_proc)
{
	struct procstat *p;
	struct err e = { "" };

	assert_int_equal(procstat_new(&p, "/nonexistent", &e), -ENOENT);
	assert_non_null(strstr(e.text, "/proc/stat"));
	assert_int_equal(procstat_new(&p, "/nonexistent", NULL), -ENOENT);
}

TEST(test_sysctl)
{
	struct procstat *p = start("cpu0 0 0 0 0\n");
	long value;

	assert_int_equal(procstat_max_sample_rate(p), 0);
	write_file("/proc/sys/kernel/perf_event_max_sample_rate", "50000\n");
	assert_int_equal(procstat_max_sample_rate(p), 50000);
	write_file("/proc/sys/kernel/perf_event_max_sample_rate", "25000\n");
	assert_int_equal(procstat_max_sample_rate(p), 25000);
	write_file("/proc/sys/kernel/perf_event_paranoid", "-1\n");
	assert_int_equal(procstat_sysctl(root, "perf_event_paranoid", &value), 0);
	assert_int_equal(value, -1);
	write_file("/proc/sys/kernel/perf_event_paranoid", "many\n");
	assert_int_equal(procstat_sysctl(root, "perf_event_paranoid", &value), -EINVAL);
	write_file("/proc/sys/kernel/perf_event_paranoid", "");
	assert_int_equal(procstat_sysctl(root, "perf_event_paranoid", &value), -EINVAL);
	write_file("/proc/sys/kernel/perf_event_paranoid", "99999999999999999999\n");
	assert_int_equal(procstat_sysctl(root, "perf_event_paranoid", &value), -EINVAL);
	assert_int_equal(procstat_sysctl(root, "no_such_thing", &value), -ENOENT);
	procstat_free(p);
}

/* The clocks before and after a call of procstat_self(), which reads them in between. */
struct around {
	uint64_t cpu_ns[2], time_ns[2];
};

static double self_pct(struct procstat *p, struct around *a)
{
	uint64_t rss;
	double pct;

	a->cpu_ns[0] = yardstick_cpu_ns();
	a->time_ns[0] = time_now_ns();
	procstat_self(p, &pct, &rss);
	a->cpu_ns[1] = yardstick_cpu_ns();
	a->time_ns[1] = time_now_ns();
	assert_true(rss > 100 && rss < (1u << 30));
	return pct;
}

TEST(test_self)
{
	struct around last, now;
	struct procstat *p;
	uint64_t busy_ns;
	double pct, least, most;

	assert_int_equal(procstat_new(&p, "", NULL), 0);
	self_pct(p, &last);
	/* A busy loop of 100 ms of CPU time, however long that takes; then sleep. */
	for (int i = 0; i < 2; i++) {
		busy_ns = yardstick_cpu_ns();
		while (i == 0 && yardstick_cpu_ns() - busy_ns < 100000000)
			;
		if (i)
			usleep(100000);
		pct = self_pct(p, &now);
		least = 100.0 * (double)(now.cpu_ns[0] - last.cpu_ns[1]) /
			(double)(now.time_ns[1] - last.time_ns[0]);
		most = 100.0 * (double)(now.cpu_ns[1] - last.cpu_ns[0]) /
		       (double)(now.time_ns[0] - last.time_ns[1]);
		/* The kernel may count in ticks of 10 ms. */
		if (pct < least - 30 || pct > most + 30)
			fail_msg("%.1f %% of a CPU, not %.1f to %.1f %%", pct, least, most);
		last = now;
	}
	procstat_free(p);
}

/* The inode of the first namespace is a constant of the kernel. */
TEST(test_pid_namespace)
{
	char path[64];

	write_file("/proc/self/ns/other", "");
	snprintf(path, sizeof(path), "%s/proc/self/ns/pid", root);
	assert_false(procstat_pid_namespace(root));
	assert_int_equal(symlink("pid:[4026531836]", path), 0);
	assert_false(procstat_pid_namespace(root));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("pid:[4026532201]", path), 0);
	assert_true(procstat_pid_namespace(root));
	assert_int_equal(unlink(path), 0);
}

int main(void)
{
	return run_unit_tests(setup, teardown);
}
