// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Cores of several types: read from /sys, and events opened on each type's CPUs of a fake kernel.
 */
#include "sampler/event/event.c"

#include "tests/prelude.h"

#include <unistd.h>

#include "tests/fake_root.h"
#include "tests/sampler/fake_kernel.h"
#include "symbols/base/base.h"
#include "sampler/ring/ring.h"

#define DEVICES "/sys/bus/event_source/devices/"

static char root[] = "/tmp/proftop-cores-XXXXXX";
static const int cpus[] = { 0, 1, 2, 3 };

static void put_pmu(const char *name, const char *type, const char *file, const char *list)
{
	char path[256];

	snprintf(path, sizeof(path), DEVICES "%s/type", name);
	fake_put(root, path, type);
	snprintf(path, sizeof(path), DEVICES "%s/%s", name, file);
	fake_put(root, path, list);
}

static int setup(void **state)
{
	assert_non_null(mkdtemp(root));
	put_pmu("cpu_core", "4\n", "cpus", "0-1\n");
	put_pmu("cpu_atom", "10\n", "cpus", "2,3\n");
	fake_put(root, DEVICES "cpu_core/format/event", "config:0-7\n");
	fake_put(root, DEVICES "cpu_atom/format/event", "config:0-7\n");
	fake_put(root, DEVICES "cpu_core/events/slots", "event=0x0\n");
	put_pmu("uncore_imc", "20\n", "cpumask", "0\n");
	put_pmu("software", "1\n", "nr_addr_filters", "0\n");
	return 0;
}

static int teardown(void **state)
{
	return fake_remove(root);
}

TEST(test_read)
{
	struct core_types t;

	core_types_read(&t, root);
	assert_int_equal(t.nr, 2);
	assert_string_equal(core_types_of(&t, 1)->name, "core");
	assert_string_equal(core_types_of(&t, 2)->name, "atom");
	assert_int_equal(core_types_of(&t, 3)->pmu_type, 10);
	assert_null(core_types_of(&t, 4));
	assert_null(core_types_of(&t, -1));
	assert_null(core_types_of(&t, 1 << 30));
	/* A list that is none; one type alone is no type. */
	fake_put(root, DEVICES "cpu_atom/cpus", "2-x\n");
	core_types_read(&t, root);
	assert_int_equal(t.nr, 0);
	assert_null(core_types_of(&t, 1));
	fake_put(root, DEVICES "cpu_atom/cpus", "2,3\n");
	core_types_read(&t, "/nonexistent");
	assert_int_equal(t.nr, 0);
}

TEST(test_names)
{
	static struct core_types t;

	put_pmu("armv8_cortex_a53", "8\n", "cpus", "4-7\n");
	core_types_read(&t, root);
	assert_int_equal(t.nr, 3);
	assert_string_equal(core_types_of(&t, 7)->name, "cortex_a53");
	fake_put(root, DEVICES "armv8_cortex_a53/cpus", "\n");
	core_types_read(&t, root);
	assert_int_equal(t.nr, 2);
}

static struct counters *open_on(struct fake *f, const char *names, struct event *events,
				const struct core_types *cores, uint32_t *nr)
{
	struct counters_config config;
	struct err e = { "" };

	*nr = 0;
	if (event_parse_list_at(root, events, nr, EVENTS_MAX, names, &e))
		fail_msg("%s", e.text);
	for (int i = 0; i < 4; i++)
		f->core_types[i] = i < 2 ? 4 : 10;
	config = system_config(events, *nr);
	config.cpus = cpus;
	config.nr_cpus = 4;
	config.cores = cores;
	return open_fake(f, &config);
}

/* Count the open fds with @type and @config on @cpu. */
static uint32_t count(const struct fake *f, uint32_t type, uint64_t config, int cpu)
{
	uint32_t nr = 0;

	for (int i = 0; i < f->nr_fds; i++)
		nr += f->fds[i].open && f->fds[i].attr.type == type &&
		      f->fds[i].attr.config == config && f->fds[i].cpu == cpu;
	return nr;
}

/* General events: on each CPU the one of its type, in one slot with one sum. */
TEST(test_general)
{
	struct event events[EVENTS_MAX];
	static struct core_types cores;
	struct fake *f = fake_new();
	struct counters_value v;
	struct counters *c;
	uint32_t nr;

	core_types_read(&cores, root);
	c = open_on(f, "{cycles,LLC-load-misses},r1a8,cpu-clock", events, &cores, &nr);
	for (int cpu = 0; cpu < 4; cpu++) {
		uint64_t type = cpu < 2 ? 4 : 10;

		assert_int_equal(count(f, PERF_TYPE_HARDWARE, type << 32, cpu), 1);
		assert_int_equal(count(f, PERF_TYPE_HW_CACHE, type << 32 | 0x10002, cpu), 1);
		assert_int_equal(count(f, (uint32_t)type, 0x1a8, cpu), 1);
		assert_int_equal(count(f, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, cpu), 1);
		assert_int_equal(counters_read(c, (uint32_t)cpu, 0, &v), 0);
		assert_true(v.count);
		assert_string_equal(counters_core_type(c, (uint32_t)cpu),
				    cpu < 2 ? "core" : "atom");
	}
	assert_int_equal(counters_enable(c, true), 0);
	counters_close(c);
	assert_int_equal(f->nr_open, 0);
	free(f);
}

/* An event of one PMU: on its CPUs; the others have no fd, and count nothing. */
TEST(test_of_one_pmu)
{
	struct event events[EVENTS_MAX];
	static struct core_types cores;
	struct fake *f = fake_new();
	struct counters_value v;
	struct err e = { "" };
	struct counters *c;
	uint32_t nr;

	core_types_read(&cores, root);
	c = open_on(f, "{cpu_core/slots/,cpu_core/event=0x80/},cpu_atom/event=0x3c/", events,
		    &cores, &nr);
	for (int cpu = 0; cpu < 4; cpu++) {
		assert_int_equal(count(f, 4, 0, cpu), cpu < 2);
		assert_int_equal(count(f, 4, 0x80, cpu), cpu < 2);
		assert_int_equal(count(f, 10, 0x3c, cpu), cpu >= 2);
		assert_int_equal(counters_read(c, (uint32_t)cpu, 2, &v), 0);
		assert_int_equal(!v.count, cpu < 2);
	}
	assert_int_equal(counters_enable(c, true), 0);
	assert_int_equal(counters_enable_event(c, 2, false), 0);
	assert_int_equal(counters_set_rate(c, 2, 99, &e), 0);
	assert_int_equal(counters_set_period(c, 0, 5000, &e), 0);
	assert_int_equal(counters_wake(c, 0, COUNTERS_WAKE_ALL), -ENOTSUP);
	assert_int_equal(counters_set_events(c, &events[2], 1, 99, &e), 0);
	assert_int_equal(counters_wake(c, 0, COUNTERS_WAKE_ALL), 0);
	assert_int_equal(counters_wake(c, 3, COUNTERS_WAKE_ALL), 0);
	assert_int_equal(count(f, 10, 0x3c, 3), 2);
	counters_close(c);
	assert_int_equal(f->nr_open, 0);
	free(f);
}

/* Tasks: one fd for each CPU of the type; ended tasks are closed. */
TEST(test_tasks)
{
	struct event events[EVENTS_MAX];
	static struct core_types cores;
	struct fake *f = fake_new();
	struct counters_config config;
	struct err e = { "" };
	struct counters *c;
	uint32_t nr = 0;

	core_types_read(&cores, root);
	assert_int_equal(event_parse_list_at(root, events, &nr, EVENTS_MAX, "cpu_atom/event=1/",
					     &e),
			 0);
	for (int i = 0; i < 4; i++)
		f->core_types[i] = i < 2 ? 4 : 10;
	config = tasks_config(events, nr);
	config.cpus = cpus;
	config.nr_cpus = 4;
	config.cores = &cores;
	c = open_fake(f, &config);
	assert_int_equal(count(f, 10, 1, 1), 0);
	assert_int_equal(count(f, 10, 1, 2), 3);
	for (int i = 0; i < f->nr_fds; i++)
		f->fds[i].hung_up = f->fds[i].tid == 502;
	assert_int_equal(counters_add_tasks(c, NULL, 0, &e), 0);
	assert_int_equal(count(f, 10, 1, 2), 2);
	counters_close(c);
	assert_int_equal(f->nr_open, 0);
	free(f);
}

/* A kernel that takes no type in the config chooses by the CPU. */
TEST(test_old_kernel)
{
	struct event events[EVENTS_MAX];
	static struct core_types cores;
	struct fake *f = fake_new();
	struct counters *c;
	uint32_t nr;

	core_types_read(&cores, root);
	f->no_core_types = true;
	c = open_on(f, "cycles", events, &cores, &nr);
	for (int cpu = 0; cpu < 4; cpu++)
		assert_int_equal(count(f, PERF_TYPE_HARDWARE, 0, cpu), 1);
	counters_close(c);
	free(f);
}

/* None of the sampled CPUs has the event. */
TEST(test_nowhere)
{
	struct counters_sys sys;
	static struct core_types cores;
	struct fake *f = fake_new();
	struct counters_config config;
	struct event event;
	struct err e = { "" };
	struct counters *c;

	core_types_read(&cores, root);
	assert_int_equal(event_parse_at(root, &event, "cpu_atom/event=1/", &e), 0);
	f->core_types[0] = f->core_types[1] = 4;
	config = system_config(&event, 1);
	config.cpus = cpus;
	config.nr_cpus = 2;
	config.cores = &cores;
	sys = fake_sys(f);
	assert_int_equal(counters_open(&c, &config, &sys, &e), -ENODEV);
	assert_non_null(strstr(e.text, "cpu_atom/event=1/"));
	assert_non_null(strstr(e.text, "not on this CPU"));
	assert_int_equal(f->nr_open, 0);
	free(f);
}

/* The top-down group: the leader counts, cycles are sampled; on the CPUs of that PMU. */
TEST(test_topdown)
{
	static const char *const names[] = { "topdown-retiring", "topdown-bad-spec",
					     "topdown-fe-bound", "topdown-be-bound" };
	struct event events[EVENTS_MAX];
	static struct core_types cores;
	struct fake *f = fake_new();
	struct err e = { "" };
	char path[256], value[32];
	struct counters *c;
	uint32_t nr = 0;

	assert_int_equal(event_parse_list_at(root, events, &nr, EVENTS_MAX, "topdown", &e),
			 -EINVAL);
	assert_non_null(strstr(e.text, "no PMU of this machine has its events"));
	for (uint32_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), DEVICES "cpu_core/events/%s", names[i]);
		snprintf(value, sizeof(value), "event=0x8%u\n", i);
		fake_put(root, path, value);
	}
	core_types_read(&cores, root);
	c = open_on(f, "topdown", events, &cores, &nr);
	assert_int_equal(nr, 6);
	for (uint32_t i = 0; i < nr; i++) {
		assert_true(events[i].read && events[i].group == 1);
		assert_int_equal(events[i].counted, i != 1);
	}
	for (int i = 0; i < f->nr_fds; i++) {
		const struct perf_event_attr *attr = &f->fds[i].attr;

		if (attr->type == PERF_TYPE_SOFTWARE)
			continue;
		assert_in_range(f->fds[i].cpu, 0, 1);
		assert_int_equal(!attr->sample_period, attr->type == 4);
		assert_int_equal(f->fds[i].leader < 0, attr->type == 4 && !attr->config);
	}
	counters_close(c);
	assert_int_equal(f->nr_open, 0);
	free(f);
	/* Arm. */
	nr = 0;
	fake_put(root, DEVICES "cpu_core/events/slots", "event=0x0\n");
	snprintf(path, sizeof(path), "%s" DEVICES "cpu_core/events/topdown-retiring", root);
	assert_int_equal(unlink(path), 0);
	put_pmu("armv8_pmuv3_0", "8\n", "nr", "1\n");
	fake_put(root, DEVICES "armv8_pmuv3_0/format/event", "config:0-15\n");
	fake_put(root, DEVICES "armv8_pmuv3_0/events/op_retired", "event=0x3a\n");
	fake_put(root, DEVICES "armv8_pmuv3_0/events/op_spec", "event=0x3b\n");
	fake_put(root, DEVICES "armv8_pmuv3_0/events/stall_slot", "event=0x3f\n");
	fake_put(root, DEVICES "armv8_pmuv3_0/events/stall_slot_frontend", "event=0x3e\n");
	fake_put(root, DEVICES "armv8_pmuv3_0/events/stall_slot_backend", "event=0x3d\n");
	if (event_parse_list_at(root, events, &nr, EVENTS_MAX, "cpu-clock,topdown", &e))
		fail_msg("%s", e.text);
	assert_int_equal(nr, 7);
	assert_false(events[1].counted);
	assert_true(events[2].counted && events[2].config == 0x3a);
}

int main(void)
{
	return run_unit_tests(setup, teardown);
}
