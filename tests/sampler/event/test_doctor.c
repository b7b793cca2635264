// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * doctor: a fake /proc is read, and each set of facts has its finding, its level and a fix.
 * Live: opens perf events.
 */
#include "sampler/event/event.h"

#include "tests/prelude.h"

#include <errno.h>
#include <unistd.h>

#include "tests/fake_root.h"
#include "symbols/base/base.h"
#include "symbols/jit/jit.h"

#define PERFMON	 (1ULL << 38)
#define ALL_CAPS 0x1ffffffffffULL

static const struct doctor_facts good = {
	.caps = ALL_CAPS,
	.paranoid = 2,
	.kptr_restrict = 0,
	.mlock_kb = 516,
	.max_rate = 100000,
	.files_hard = 65536,
	.nr_cpus = 8,
	.kernel_symbols = true,
	.tracefs = TRACEFS_MOUNTED,
	.debug_files = true,
	.other_processes = true,
	.ptrace_scope = 1,
	.release = "6.18.5",
};

static const struct doctor_finding *find(const struct doctor_finding *list, uint32_t nr,
					 const char *topic)
{
	for (uint32_t i = 0; i < nr; i++)
		if (!strcmp(list[i].topic, topic))
			return &list[i];
	fail_msg("nothing is said of %s", topic);
	return NULL;
}

/* One fact differs: one finding has this level and these words; the rest is as before. */
static void expect(const struct doctor_facts *f, const char *topic, enum doctor_level level,
		   const char *says, const char *fix)
{
	struct doctor_finding list[DOCTOR_FINDINGS_MAX];
	uint32_t nr = doctor_judge(f, list);
	const struct doctor_finding *d = find(list, nr, topic);

	assert_true(nr <= DOCTOR_FINDINGS_MAX);
	if (d->level != level || !strstr(d->says, says) || !strstr(d->fix, fix))
		fail_msg("%s: %d '%s' fix '%s'", topic, d->level, d->says, d->fix);
	assert_int_equal(doctor_worst(list, nr) >= level, true);
	for (uint32_t i = 0; i < nr; i++) {
		assert_true(list[i].says[0]);
		/* each missing item has a fix */
		assert_true(list[i].level < DOCTOR_DEGRADED || list[i].fix[0]);
	}
}

TEST(test_good)
{
	struct doctor_finding list[DOCTOR_FINDINGS_MAX];
	uint32_t nr = doctor_judge(&good, list);

	for (uint32_t i = 0; i < nr; i++)
		if (list[i].level != DOCTOR_OK || list[i].fix[0])
			fail_msg("%s: %s", list[i].topic, list[i].says);
}

TEST(test_access)
{
	struct doctor_facts f = good;

	f.caps = 0;
	f.system_code = -EACCES;
	expect(&f, "sampling", DOCTOR_DEGRADED, "user code only", "SETCAP=1");
	f.system_user_code = -EACCES;
	expect(&f, "sampling", DOCTOR_DEGRADED, "your own processes: others not permitted",
	       "proftop -p");
	f.own_code = -EACCES;
	expect(&f, "sampling", DOCTOR_DEGRADED, "your own processes, user code only", "proftop -p");
	f.own_user_code = -EACCES;
	f.paranoid = 4;
	expect(&f, "sampling", DOCTOR_NOTHING, "nothing", "perf_event_paranoid=2");
	expect(&f, "perf_event_paranoid", DOCTOR_OK, "sampling needs CAP_PERFMON", "");
	f.caps = PERFMON;
	f.seccomp = 2;
	expect(&f, "sampling", DOCTOR_NOTHING, "nothing", "seccomp");
	expect(&f, "container", DOCTOR_NOTE, "filter", "seccomp");
	f.own_user_code = -ENOSYS;
	f.paranoid = -1;
	expect(&f, "sampling", DOCTOR_NOTHING, "nothing", "CONFIG_PERF_EVENTS");
	expect(&f, "perf_event_paranoid", DOCTOR_OK, "no perf events", "");
}

TEST(test_one_by_one)
{
	struct doctor_facts f = good;

	f.cycles_code = -ENOENT;
	expect(&f, "hardware counters", DOCTOR_DEGRADED, "cpu-clock", "virtual PMU");
	f = good;
	f.kernel_symbols = false;
	f.kptr_restrict = 2;
	expect(&f, "kernel names", DOCTOR_DEGRADED, "hidden", "kptr_restrict=1");
	f.kptr_restrict = 1;
	expect(&f, "kernel names", DOCTOR_DEGRADED, "hidden", "CAP_SYSLOG");
	/* A value that is 0 already is neither the reason nor a fix. */
	f.kptr_restrict = 0;
	expect(&f, "kernel names", DOCTOR_DEGRADED, "perf_event_paranoid is 2",
	       "perf_event_paranoid=1");
	f = good;
	f.caps = PERFMON;
	expect(&f, "locked memory", DOCTOR_NOTE, "516 KiB", "ulimit -l");
	expect(&f, "capabilities", DOCTOR_NOTE, "not in screen and sampler threads", "SETCAP=1");
	expect(&f, "capabilities", DOCTOR_NOTE, "PERFMON; without the rest no other users' stacks",
	       "SETCAP=1");
	f.mlock_kb = 4096;
	expect(&f, "locked memory", DOCTOR_OK, "4096 KiB", "");
	f = good;
	f.files_hard = 1024;
	expect(&f, "open files", DOCTOR_OK, "1024", "");
	f.nr_cpus = 128;
	expect(&f, "open files", DOCTOR_DEGRADED, "1024", "nofile in /etc/security/limits.conf");
	f = good;
	f.max_rate = 250;
	expect(&f, "sample rate", DOCTOR_DEGRADED, "up to 250", "-F");
	f = good;
	f.debug_files = false;
	expect(&f, "debug files", DOCTOR_NOTE, "none", "DEBUGINFOD_URLS");
	f.debuginfod = true;
	expect(&f, "debug files", DOCTOR_OK, "DEBUGINFOD_URLS", "");
	f = good;
	f.tracefs = TRACEFS_MISSING;
	expect(&f, "tracepoints", DOCTOR_NOTE, "not mounted", "mount -t tracefs");
	f.tracefs = TRACEFS_DETACHED;
	expect(&f, "tracepoints", DOCTOR_OK, "read without a mount", "");
	f.tracefs = TRACEFS_CLOSED;
	expect(&f, "tracepoints", DOCTOR_NOTE, "not readable by this user", "remount,mode=750");
	f.tracefs = TRACEFS_LOCKED;
	expect(&f, "tracepoints", DOCTOR_NOTE, "empty under lockdown", "lockdown=integrity");
	f = good;
	expect(&f, "lockdown", DOCTOR_OK, "none, or not shown", "");
	memcpy(f.lockdown, "integrity", 10);
	expect(&f, "lockdown", DOCTOR_OK, "integrity", "");
	memcpy(f.lockdown, "confidentiality", 16);
	expect(&f, "lockdown", DOCTOR_NOTE, "confidentiality: no tracepoints",
	       "lockdown=integrity");
	f = good;
	memcpy(f.release, "5.10.0", 7);
	expect(&f, "kernel", DOCTOR_NOTE, "5.10.0: lost", "6.0");
	memcpy(f.release, "4.19.0", 7);
	expect(&f, "kernel", DOCTOR_DEGRADED, "4.19.0: older", "");
}

TEST(test_jits)
{
	struct doctor_facts f = good;

	expect(&f, "JIT maps", DOCTOR_OK, "no process", "");
	f.nr_jits = 2;
	f.jits[0] = (struct doctor_jit){ 7, "node", "start it with: node --perf-basic-prof" };
	f.jits[1] = (struct doctor_jit){ 8, "node", "start it with: node --perf-basic-prof" };
	expect(&f, "JIT maps", DOCTOR_NOTE, "node (7), node (8)",
	       "node: start it with: node --perf");
	f.nr_jits = 9;
	f.jits[2] = (struct doctor_jit){ 9, "java", "jcmd" };
	expect(&f, "JIT maps", DOCTOR_NOTE, "java (9) and others", "; java: jcmd");
}

TEST(test_container)
{
	struct doctor_facts f = good;

	f.memory_mb = 256;
	expect(&f, "memory", DOCTOR_NOTE, "256 MiB", "--symbol-memory");
	f.memory_mb = 4096;
	expect(&f, "memory", DOCTOR_OK, "4096 MiB", "");
	f.cpu_pct = 20;
	expect(&f, "CPU time", DOCTOR_NOTE, "20 %", "-F");
	f.cpu_pct = 400;
	expect(&f, "CPU time", DOCTOR_OK, "400 %", "");
	f.user_namespace = true;
	f.system_code = -EACCES;
	expect(&f, "container", DOCTOR_NOTE, "user namespace", "outside");
	f = good;
	f.pid_namespace = true;
	expect(&f, "container", DOCTOR_NOTE, "PID namespace", "--pid=host");
}

/* One line for each language, with missing rights; the rights have the fix. */
TEST(test_languages)
{
	static const char *const all[] = { "Java",	 "Python", "PHP", "Ruby",  "Perl",
					   "JavaScript", "Lua",	   "R",	  "Erlang" };
	struct doctor_facts f = good;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		expect(&f, all[i], DOCTOR_OK, ":", "");
	f.sandbox_code = -ENOSYS;
	expect(&f, "foreign files", DOCTOR_DEGRADED,
	       "cannot start their readers: Function not implemented", "seccomp");
	f.sandbox_code = 0;
	expect(&f, "foreign files", DOCTOR_OK, "without rights", "");
	f.realtime_code = -EPERM;
	expect(&f, "real-time priority", DOCTOR_NOTE, "guessed", "CAP_SYS_NICE");
	expect(&f, "Python", DOCTOR_NOTE, "more guesses", "");
	expect(&f, "Java", DOCTOR_OK, "methods and lines", "");
	f = good;
	f.caps &= ~(1ULL << 19); /* CAP_SYS_PTRACE */
	expect(&f, "process memory", DOCTOR_NOTE, "ptrace_scope is 1", "ptrace_scope=0");
	expect(&f, "Java", DOCTOR_NOTE, "that proftop starts only", "");
	f.ptrace_scope = -1;
	expect(&f, "process memory", DOCTOR_NOTE, "your own processes only", "CAP_SYS_PTRACE");
	expect(&f, "Ruby", DOCTOR_NOTE, "your own processes only", "");
	f.ptrace_scope = 2;
	expect(&f, "process memory", DOCTOR_NOTE, "not readable", "CAP_SYS_PTRACE");
	f = good;
	f.ptrace_scope = 3; /* forbids ptrace to all users */
	expect(&f, "process memory", DOCTOR_NOTE, "not readable", "boot");
	expect(&f, "Perl", DOCTOR_NOTE, "not readable", "");
}

TEST(test_read)
{
	char root[] = "/tmp/proftop-doctor-XXXXXX";
	struct doctor_facts f;

	assert_non_null(mkdtemp(root));
	fake_put(root, "/proc/self/status",
		 "Name:\tproftop\nCapEff:\t0000004000000000\nSeccomp:\t2\n");
	fake_put(root, "/proc/self/limits",
		 "Limit                     Soft Limit           Hard Limit           Units\n"
		 "Max open files            1024                 4096                 files\n");
	fake_put(root, "/proc/sys/kernel/perf_event_paranoid", "3\n");
	fake_put(root, "/proc/sys/kernel/kptr_restrict", "1\n");
	fake_put(root, "/proc/sys/kernel/osrelease", "6.1.0-test\n");
	fake_put(root, "/proc/kallsyms", "0000000000000000 T _text\n0000000000000000 T secret\n");
	doctor_read(&f, root);
	assert_int_equal(f.caps, PERFMON);
	assert_int_equal(f.seccomp, 2);
	assert_int_equal(f.files_hard, 4096);
	assert_int_equal(f.paranoid, 3);
	assert_int_equal(f.kptr_restrict, 1);
	assert_int_equal(f.mlock_kb, -1);
	assert_string_equal(f.release, "6.1.0-test");
	assert_false(f.kernel_symbols);
	assert_int_equal(f.tracefs, TRACEFS_MISSING);
	assert_string_equal(f.lockdown, "");
	assert_false(f.debug_files || f.other_processes);
	fake_put(root, "/proc/kallsyms", "0000000000000000 A fixed\nffffffff81000000 T _text\n");
	assert_int_equal(f.ptrace_scope, -1);
	fake_put(root, "/proc/sys/kernel/yama/ptrace_scope", "2\n");
	fake_put(root, "/proc/1/stat", "1 (init)\n");
	fake_put(root, "/proc/self/cgroup", "4:memory:/docker/3f\n0::/a/b\n");
	fake_put(root, "/sys/fs/cgroup/a/b/memory.max", "max\n");
	fake_put(root, "/sys/fs/cgroup/a/memory.max", "268435456\n");
	fake_put(root, "/sys/fs/cgroup/memory/docker/3f/memory.limit_in_bytes",
		 "9223372036854771712\n");
	fake_put(root, "/sys/fs/cgroup/a/b/cpu.max", "50000 100000\n");
	fake_put(root, "/sys/fs/cgroup/a/cpu.max", "max 100000\n");
	fake_put(root, "/proc/self/uid_map", "         0     100000      65536\n");
	fake_put(root, "/sys/kernel/tracing/events/enable", "0\n");
	doctor_read(&f, root);
	assert_true(f.kernel_symbols && f.other_processes);
	assert_int_equal(f.ptrace_scope, 2);
	assert_int_equal(f.tracefs, TRACEFS_MOUNTED);
	assert_int_equal(f.memory_mb, 256);
	assert_int_equal(f.cpu_pct, 50);
	assert_true(f.user_namespace);
	fake_put(root, "/sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
	fake_put(root, "/sys/fs/cgroup/memory/docker/3f/memory.limit_in_bytes", "1048576\n");
	fake_put(root, "/proc/self/uid_map", "         0          0 4294967295\n");
	doctor_read(&f, root);
	assert_int_equal(f.memory_mb, 1);
	assert_string_equal(f.lockdown, "confidentiality");
	assert_false(f.user_namespace);
	assert_int_equal(fake_remove(root), 0);
	doctor_read(&f, root);
	assert_int_equal(f.caps, 0);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
