// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Events that the kernel describes: PMUs of a fake /sys, tracepoints of a fake
 * tracefs, breakpoints, probes; and the lists of them.
 * Live: some parts need root.
 */
#include "sampler/event/event.c"

#include "tests/prelude.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fake_root.h"
#include "symbols/base/base.h"

static char root[64] = "/tmp/proftop-pmu-XXXXXX";

static void put(const char *path, const char *text)
{
	fake_put(root, path, text);
}

#define CPU "/sys/bus/event_source/devices/cpu/"

static int make_tree(void **state)
{
	if (!mkdtemp(root))
		return -1;
	put(CPU "type", "4\n");
	put(CPU "format/event", "config:0-7,32-35\n");
	put(CPU "format/umask", "config:8-15\n");
	put(CPU "format/edge", "config:18\n");
	put(CPU "format/ldlat", "config1:0-15\n");
	put(CPU "format/offcore", "config2:0-63\n");
	put(CPU "format/odd", "config9:0-63\n");
	put(CPU "format/third", "config3:4-7\n");
	put(CPU "format/fourth", "config4:0-63\n");
	put(CPU "events/mem-loads", "event=0xcd,umask=0x1,ldlat=3\n");
	put(CPU "events/ask", "event=0xcd,ldlat=?\n");
	put(CPU "events/loop", "loop\n");
	put(CPU "events/twice", "mem-loads,edge\n");
	put(CPU "events/mem-loads.scale", "1\n");
	put("/sys/bus/event_source/devices/uprobe/type", "8\n");
	put("/sys/bus/event_source/devices/uprobe/format/retprobe", "config:0\n");
	put("/sys/bus/event_source/devices/kprobe/type", "7\n");
	put("/sys/bus/event_source/devices/kprobe/format/retprobe", "config:0\n");
	put("/sys/bus/event_source/devices/msr/type", "9\n");
	put("/sys/bus/event_source/devices/msr/format/event", "config:0-63\n");
	put("/sys/bus/event_source/devices/msr/events/tsc", "event=0x00\n");
	put("/sys/kernel/tracing/events/sched/sched_switch/id", "372\n");
	put("/sys/kernel/tracing/events/irq/softirq_entry/id", "40\n");
	put("/sys/kernel/tracing/events/irq/enable", "0\n");
	return 0;
}

static int remove_tree(void **state)
{
	return fake_remove(root);
}

static struct event parse(const char *text)
{
	struct event ev;
	struct err e = { "" };

	if (event_parse_at(root, &ev, text, &e))
		fail_msg("%s: %s", text, e.text);
	assert_string_equal(ev.name, text);
	return ev;
}

static void refuse(const char *text, const char *says)
{
	struct event ev;
	struct err e = { "" };
	unsigned int lines = 1;

	assert_int_equal(event_parse_at(root, &ev, text, &e), -EINVAL);
	for (const char *p = e.text; *p; p++)
		lines += *p == '\n';
	if (lines != 3 || !strstr(e.text, says) || !strstr(e.text, "--list-events"))
		fail_msg("'%s': no '%s' in: %s", text, says, e.text);
}

TEST(test_pmu_terms)
{
	struct event ev = parse("cpu/event=0x3c,umask=2/");

	assert_int_equal(ev.type, 4);
	assert_int_equal(ev.config, 0x23c);
	assert_true(ev.hardware && !ev.clock && ev.user && ev.kernel);
	/* 12 bits over two places */
	assert_int_equal(parse("cpu/event=0xabc/").config, 0xa000000bcULL);
	assert_int_equal(parse("cpu/edge,event=1/").config, 0x40001);
	assert_int_equal(parse("cpu/ldlat=30/").config1, 30);
	assert_int_equal(parse("cpu/offcore=0xffffffffffffffff/").config2, UINT64_MAX);
	assert_int_equal(parse("cpu/config=0x1a8,config1=2,config2=3/").config2, 3);
	assert_int_equal(parse("cpu/config=0x1a8/").config, 0x1a8);
	/* the later one counts */
	assert_int_equal(parse("cpu/event=0xff,event=1/").config, 1);
	ev = parse("cpu/event=1,period=5000,name=mine/upp");
	assert_int_equal(ev.period, 5000);
	assert_string_equal(ev.label, "mine");
	assert_true(ev.user && !ev.kernel);
	assert_int_equal(ev.precise, 2);
	assert_int_equal(parse("cpu/event=1/:k").user, false);
	assert_true(parse("cpu/event=1,freq=99/").hz == 99);
}

/* config3 and config4, as far as the header of this build has them. */
TEST(test_newer_configs)
{
	(void)state;
#ifdef PERF_ATTR_SIZE_VER8
	assert_int_equal(parse("cpu/third=5/").config3, 0x50);
	assert_int_equal(parse("cpu/config3=6/").config3, 6);
#else
	refuse("cpu/third=5/", "'third' sets config3: proftop was built with headers before Linux "
			       "6.3");
	refuse("cpu/config3=6/", "'config3' sets config3");
#endif
#ifdef PERF_ATTR_SIZE_VER9
	assert_int_equal(parse("cpu/fourth=0xffffffffffffffff/").config4, UINT64_MAX);
#else
	refuse("cpu/fourth=5/", "sets config4");
#endif
}

TEST(test_pmu_events)
{
	struct event ev = parse("cpu/mem-loads/");

	assert_int_equal(ev.config, 0x1cd);
	assert_int_equal(ev.config1, 3);
	assert_int_equal(parse("cpu/mem-loads,ldlat=7/").config1, 7);
	assert_int_equal(parse("cpu/twice/").config, 0x401cd);
	assert_int_equal(parse("msr/tsc/").type, 9);
	refuse("cpu/ask/", "must be given a value");
	refuse("cpu/loop/", "leads to itself");
}

TEST(test_pmu_refused)
{
	refuse("cpu/umask=0x100/", "so large");
	refuse("cpu/event=0x1000/", "so large");
	refuse("cpu/edge=2/", "so large");
	refuse("cpu/nothing=1/", "no term or event");
	refuse("cpu/event=/", "number");
	refuse("cpu/event=1x/", "number");
	refuse("cpu/odd=1/", "so large");
	refuse("cpu/event=1", "second slash");
	refuse("cpu/,/", "empty term");
	refuse("cpu/event=1/z", "modifier");
	refuse("../cpu/event=1/", "no PMU");
	refuse("nopmu/event=1/", "no PMU 'nopmu'");
	refuse("cpu/../type/", "");
	refuse("cpu/period=0/", "from 1");
	refuse("{cycles", "unknown event");
}

/* Terms on the names that every machine has. */
TEST(test_catalogue_terms)
{
	struct event ev = parse("cycles/freq=99/u");

	assert_int_equal(ev.type, PERF_TYPE_HARDWARE);
	assert_true(ev.hz == 99 && ev.user && !ev.kernel);
	ev = parse("cpu-clock/period=1000000/");
	assert_true(ev.clock);
	assert_int_equal(ev.period, 1000000);
	assert_int_equal(parse("r1a8/period=7/").config, 0x1a8);
	refuse("cycles/umask=1/", "no term or event");
}

TEST(test_modifiers)
{
	struct perf_event_attr attr;
	struct event ev = parse("cycles:G");

	event_attr(&ev, &attr);
	assert_true(attr.exclude_host && !attr.exclude_guest);
	ev = parse("cycles:HG");
	event_attr(&ev, &attr);
	assert_true(!attr.exclude_host && !attr.exclude_guest);
	ev = parse("cycles:uH");
	event_attr(&ev, &attr);
	assert_true(!attr.exclude_host && attr.exclude_guest && attr.exclude_kernel);
}

TEST(test_tracepoint)
{
	struct event ev = parse("sched:sched_switch:k"), other;
	struct err e;

	assert_int_equal(ev.type, PERF_TYPE_TRACEPOINT);
	assert_int_equal(ev.config, 372);
	assert_int_equal(ev.period, 1);
	assert_true(ev.kernel && !ev.user && !ev.hardware);
	assert_int_equal(event_set_filter(&ev, "prev_pid == 0", &e), 0);
	other = parse("sched:sched_switch:k");
	assert_false(event_same(&ev, &other));
	assert_int_equal(event_set_filter(&other, "prev_pid == 0", &e), 0);
	assert_true(event_same(&ev, &other));
	assert_int_equal(event_set_filter(&ev, "", &e), -EINVAL);
	ev = parse("cycles");
	assert_int_equal(event_set_filter(&ev, "prev_pid == 0", &e), -EINVAL);
	refuse("sched:nothing_here", "no tracepoint 'nothing_here' in 'sched'");
	refuse("nosys:nothing", "unknown event");
	refuse("sched:../../x", "no PMU");
	refuse("sched:..", "unknown event");
	assert_int_equal(event_parse_at("/nowhere", &ev, "sched:sched_switch", &e), -EINVAL);
	assert_non_null(strstr(e.text, "mount -t tracefs"));
}

static void put_lockdown(const char *dir, const char *text)
{
	struct event ev;
	struct err e;

	fake_put(dir, "/sys/kernel/security/lockdown", text);
	assert_int_equal(event_parse_at(dir, &ev, "sched:sched_switch", &e), -EINVAL);
	if (strstr(text, "[conf"))
		assert_non_null(strstr(e.text, "lockdown is in force"));
	else
		assert_non_null(strstr(e.text, "mount -t tracefs"));
}

/* Mounted but empty: the advice is not to mount it. */
TEST(test_lockdown)
{
	char dir[] = "/tmp/proftop-lockdown-XXXXXX";

	assert_non_null(mkdtemp(dir));
	fake_put(dir, "/sys/kernel/tracing/README", "");
	put_lockdown(dir, "none [integrity] confidentiality\n");
	put_lockdown(dir, "none integrity [confidentiality]\n");
	assert_int_equal(fake_remove(dir), 0);
}

static uint32_t nr_mounts(void)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	uint32_t nr = 0;

	assert_non_null(file);
	for (int c; (c = getc(file)) != EOF;)
		nr += c == '\n';
	fclose(file);
	return nr;
}

static void count_names(void *ctx, const char *name)
{
	(*(uint32_t *)ctx)++;
}

static uint32_t nr_fds(void)
{
	uint32_t nr = 0;

	for (int fd = 0; fd < 256; fd++)
		nr += fcntl(fd, F_GETFD) >= 0;
	return nr;
}

/* In a child with private mounts. */
#define CHECK(x)                                                                                   \
	do {                                                                                       \
		if (!(x)) {                                                                        \
			fprintf(stderr, "line %d: %s\n", __LINE__, #x);                            \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

static void without_mount(void)
{
	uint32_t mounts, names = 0, fds = nr_fds();
	struct event ev;
	struct err e;

	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		_exit(0);
	while (!umount2("/sys/kernel/debug/tracing", MNT_DETACH) ||
	       !umount2("/sys/kernel/debug", MNT_DETACH) ||
	       !umount2("/sys/kernel/tracing", MNT_DETACH))
		;
	CHECK(access("/sys/kernel/tracing/events", F_OK));
	mounts = nr_mounts();
	CHECK(!event_parse(&ev, "sched:sched_switch", &e));
	CHECK(ev.type == PERF_TYPE_TRACEPOINT && ev.config && !event_probe(&ev, -1, 0));
	/* The private mount is kept: one descriptor, however often it is used. */
	CHECK(nr_fds() <= fds + 1);
	fds = nr_fds();
	CHECK(event_parse(&ev, "sched:none_such", &e) == -EINVAL && strstr(e.text, "no "
										   "tracepoint"));
	tracepoint_each("", count_names, &names);
	CHECK(names > 100);
	CHECK(nr_mounts() == mounts && nr_fds() == fds);
	CHECK(!setresuid(65534, 65534, 65534));
	CHECK(event_parse(&ev, "sched:sched_switch", &e) == -EINVAL);
	CHECK(strstr(e.text, "mount -t tracefs"));
	_exit(0);
}

/* Without a mounted tracefs root can still read it, and no mount appears. */
TEST(test_not_mounted)
{
	int status;
	pid_t pid;

	if (geteuid())
		skip_test("not permitted: root only");
	pid = fork();
	if (!pid)
		without_mount();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

TEST(test_breakpoint)
{
	struct perf_event_attr attr;
	struct event ev = parse("mem:0x1000/2:w:u");

	event_attr(&ev, &attr);
	assert_int_equal(attr.type, PERF_TYPE_BREAKPOINT);
	assert_int_equal(attr.bp_type, HW_BREAKPOINT_W);
	assert_int_equal(attr.bp_addr, 0x1000);
	assert_int_equal(attr.bp_len, 2);
	assert_true(attr.exclude_kernel && !attr.exclude_user);
	ev = parse("mem:4096");
	assert_int_equal(ev.bp_type, HW_BREAKPOINT_R | HW_BREAKPOINT_W);
	assert_int_equal(ev.config2, 4);
	assert_int_equal(parse("mem:0x10:x").config2, sizeof(long));
	assert_int_equal(parse("mem:0x10:rwx").bp_type,
			 HW_BREAKPOINT_R | HW_BREAKPOINT_W | HW_BREAKPOINT_X);
	assert_int_equal(parse("mem:0x10:u").kernel, false);
	refuse("mem:", "breakpoint");
	refuse("mem:main", "breakpoint");
	refuse("mem:0x10/3", "breakpoint");
	refuse("mem:0x10:rr", "breakpoint");
	refuse("mem:0x10:", "");
	refuse("mem:0x10:w:z", "modifier");
}

/* A function of this very program, at the offset where its bytes are in the file. */
TEST(test_uprobe)
{
	char self[PATH_MAX] = "", text[EVENT_NAME_MAX];
	struct perf_event_attr attr;
	ssize_t size = readlink("/proc/self/exe", self, sizeof(self) - 1);
	struct event ev, by_offset, moved;

	assert_true(size > 0);
	if (size > EVENT_NAME_MAX - 64)
		skip_test("not on this machine: a short path of libc");
	snprintf(text, sizeof(text), "uprobe:%.190s:main+4", self);
	ev = parse(text);
	assert_int_equal(ev.type, 8);
	assert_int_equal(ev.config, 0);
	assert_string_equal(ev.target, self);
	assert_true(ev.config2 > 4 && !ev.hardware);
	event_attr(&ev, &attr);
	assert_ptr_equal((const char *)(uintptr_t)attr.uprobe_path, ev.target);
	snprintf(text, sizeof(text), "uretprobe:%.190s:%#llx:u", self,
		 (unsigned long long)ev.config2 - 4);
	by_offset = parse(text);
	assert_int_equal(by_offset.config, 1);
	assert_int_equal(by_offset.config2 + 4, ev.config2);
	assert_false(by_offset.kernel);
	moved = ev;
	assert_true(event_same(&ev, &moved));
	refuse("uprobe:/nowhere/at/all:main", "cannot read");
	refuse("uprobe:relative:main", "full path");
	refuse("uprobe:/bin/sh", "full path");
	refuse("uprobe:", "not a probe");
	snprintf(text, sizeof(text), "uprobe:%.190s:no_such_function", self);
	refuse(text, "no function 'no_such_function'");
}

/* Other levels of a probe: the file is not read again. */
TEST(test_uprobe_levels)
{
	char self[PATH_MAX] = "", file[] = "/tmp/proftop-probe-XXXXXX", text[EVENT_NAME_MAX];
	ssize_t size = readlink("/proc/self/exe", self, sizeof(self) - 1);
	struct event ev, was;
	struct err e = { "" };
	int fd = mkstemp(file);

	assert_true(size > 0 && fd >= 0);
	snprintf(text, sizeof(text), "cp '%.200s' %s", self, file);
	assert_int_equal(system(text), 0);
	snprintf(text, sizeof(text), "uprobe:%s:main:k", file);
	was = ev = parse(text);
	unlink(file);
	close(fd);
	ev.group = 3;
	assert_int_equal(event_change_modifiers(&ev, "u", &e), 0);
	assert_string_equal(strrchr(ev.name, ':'), ":u");
	assert_int_equal(strlen(ev.name), strlen(was.name));
	assert_true(ev.user && !ev.kernel && ev.group == 3);
	assert_int_equal(ev.config2, was.config2);
	assert_string_equal(ev.target, was.target);
	assert_int_equal(event_change_modifiers(&ev, "", &e), 0);
	assert_true(ev.user && ev.kernel && ev.hv);
	assert_string_equal(strrchr(ev.name, ':'), ":main");
	/* A function of that name. */
	snprintf(ev.name, sizeof(ev.name), "uprobe:/x:u");
	assert_int_equal(event_change_modifiers(&ev, "k", &e), 0);
	assert_string_equal(ev.name, "uprobe:/x:u:k");
	/* Others are parsed. */
	ev = parse("cpu-clock:u");
	assert_int_equal(event_change_modifiers(&ev, "k", &e), 0);
	assert_string_equal(ev.name, "cpu-clock:k");
	assert_true(ev.kernel && !ev.user && ev.clock);
}

TEST(test_kprobe)
{
	struct event ev = parse("kprobe:do_exit+8");
	struct err e;

	assert_int_equal(ev.type, 7);
	assert_string_equal(ev.target, "do_exit");
	assert_int_equal(ev.config2, 8);
	assert_int_equal(ev.period, 1);
	ev = parse("kretprobe:do_exit:k");
	assert_int_equal(ev.config, 1);
	assert_false(ev.user);
	refuse("kprobe:a b", "not a function");
	refuse("kprobe:do_exit+x", "not a function");
	assert_int_equal(event_parse_at("/nowhere", &ev, "kprobe:do_exit", &e), -EINVAL);
	assert_non_null(strstr(e.text, "CONFIG_KPROBE_EVENTS"));
}

TEST(test_list)
{
	struct event_list l;
	uint32_t nr = 0, fixed = 0;

	while (event_catalogue()[fixed].name)
		fixed++;
	event_list_init(&l, root);
	while (l.infos[nr].name)
		nr++;
	assert_int_equal(nr, l.nr);
	/* files with a scale are no events */
	assert_int_equal(nr, fixed + 5 + 2);
	assert_string_equal(l.infos[fixed].name, "cpu/ask/");
	assert_string_equal(l.infos[fixed + 4].name, "msr/tsc/");
	assert_string_equal(l.infos[nr - 1].name, "sched:sched_switch");
	assert_string_equal(l.infos[nr - 1].group, EVENT_GROUP_TRACEPOINTS);
	event_list_fini(&l);
	event_list_init(&l, "/nowhere");
	assert_int_equal(l.nr, fixed);
	event_list_fini(&l);
}

int main(void)
{
	return run_unit_tests(make_tree, remove_tree);
}
