// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Names of libpfm4: the same attributes as from the library's encoder, for all its CPUs; codes out
 * of the vendors' manuals; refusals.
 */
#include "sampler/event/event.c"

#include "tests/prelude.h"
#include "symbols/base/base.h"

#include <errno.h>
#include <linux/perf_event.h>

#ifdef HAVE_PFM

#include <perfmon/pfmlib.h>
#include <perfmon/pfmlib_perf_event.h>

/* Set before the library is used: a fake CPU; and encode all others also. */
static int set_up(void **state)
{
	setenv("LIBPFM_FORCE_PMU", "skl", 1);
	setenv("LIBPFM_ENCODE_INACTIVE", "1", 1);
	return pfm_initialize() != PFM_SUCCESS;
}

static bool knows(const char *pmu)
{
	for (int i = 0; i < PFM_PMU_MAX; i++) {
		pfm_pmu_info_t info = { .size = sizeof(info) };

		if (pfm_get_pmu_info((pfm_pmu_t)i, &info) == PFM_SUCCESS && !strcmp(info.name, pmu))
			return true;
	}
	return false;
}

/* As perf's --pfm-events calls the library. */
static bool encode(const char *name, struct perf_event_attr *attr)
{
	pfm_perf_encode_arg_t arg = { .attr = attr, .size = sizeof(arg) };

	*attr = (struct perf_event_attr){ .size = sizeof(*attr), .exclude_guest = 1 };
	return pfm_get_os_event_encoding(name, PFM_PLM0 | PFM_PLM3, PFM_OS_PERF_EVENT_EXT, &arg) ==
	       PFM_SUCCESS;
}

/* 1: the same; 0: the library has no code for it alone, and so have we none. */
static int compare(const char *name)
{
	struct perf_event_attr theirs, ours;
	char text[EVENT_NAME_MAX + 8];
	struct event ev;
	int code;

	snprintf(text, sizeof(text), "pfm:%s", name);
	code = event_parse_at("", &ev, text, NULL);
	if (!encode(name, &theirs)) {
		assert_int_equal(code, -EINVAL);
		return 0;
	}
	assert_int_equal(code, 0);
	event_attr(&ev, &ours);
	assert_memory_equal(&ours, &theirs, sizeof(ours));
	assert_true(ev.hardware);
	return 1;
}

static int compare_umasks(const char *pmu, const pfm_event_info_t *event, const char *modifiers)
{
	char name[EVENT_NAME_MAX];
	int same = 0, nr = 0;

	for (int i = 0; i < event->nattrs; i++) {
		pfm_event_attr_info_t umask = { .size = sizeof(umask) };

		if (pfm_get_event_attr_info(event->idx, i, PFM_OS_PERF_EVENT_EXT, &umask) !=
			    PFM_SUCCESS ||
		    umask.type != PFM_ATTR_UMASK)
			continue;
		nr++;
		snprintf(name, sizeof(name), "%s::%s:%s%s", pmu, event->name, umask.name,
			 modifiers);
		same += compare(name);
	}
	snprintf(name, sizeof(name), "%s::%s%s", pmu, event->name, modifiers);
	return nr ? same : compare(name);
}

/* Every event of every CPU that the library knows, with each of its unit masks. */
TEST(test_all_cpus)
{
	int same = 0, pmus = 0;

	for (int i = 0; i < PFM_PMU_MAX; i++) {
		pfm_pmu_info_t pmu = { .size = sizeof(pmu) };

		if (pfm_get_pmu_info((pfm_pmu_t)i, &pmu) != PFM_SUCCESS ||
		    pmu.type != PFM_PMU_TYPE_CORE)
			continue;
		pmus++;
		for (int idx = pmu.first_event; idx != -1; idx = pfm_get_event_next(idx)) {
			pfm_event_info_t event = { .size = sizeof(event) };

			assert_int_equal(pfm_get_event_info(idx, PFM_OS_PERF_EVENT_EXT, &event),
					 PFM_SUCCESS);
			same += compare_umasks(pmu.name, &event, "");
			same += compare_umasks(pmu.name, &event, ":u");
		}
	}
	print_message("%d events of %d CPUs are the same\n", same, pmus);
	assert_true(same > 1000);
}

static void parse(struct event *ev, const char *text)
{
	struct err e;

	if (event_parse_at("", ev, text, &e))
		fail_msg("%s: %s", text, e.text);
}

/* As in Intel's and AMD's manuals: event, unit mask << 8, inversion at bit 23, threshold at 24. */
TEST(test_manuals)
{
	struct event ev;

	if (!knows("skl") || !knows("amd64_fam19h_zen4"))
		skip_test("not on this machine: Intel and AMD tables in libpfm4");
	parse(&ev, "pfm:INST_RETIRED:ANY_P");
	assert_int_equal(ev.type, PERF_TYPE_RAW);
	assert_int_equal(ev.config, 0xc0);
	assert_true(ev.user && ev.kernel && ev.host && !ev.guest);
	parse(&ev, "pfm:skl::INST_RETIRED:ANY_P:u:c=1:i");
	assert_int_equal(ev.config, 0x18000c0);
	assert_true(ev.user && !ev.kernel);
	parse(&ev, "pfm:skl::OFFCORE_RESPONSE_0:DMND_DATA_RD:ANY_RESPONSE");
	assert_int_equal(ev.config, 0x1b7);
	assert_int_equal(ev.config1, 0x10001);
	parse(&ev, "pfm:amd64_fam19h_zen4::RETIRED_INSTRUCTIONS");
	assert_int_equal(ev.config, 0xc0);
}

/* Attributes of perf events in the library's words, and our modifiers behind them. */
TEST(test_modifiers)
{
	struct event ev, events[EVENTS_MAX];
	uint32_t nr = 0;

	if (!knows("skl"))
		skip_test("not on this machine: Intel and AMD tables in libpfm4");
	parse(&ev, "pfm:INST_RETIRED:ANY_P:k:period=1000:precise=2");
	assert_true(ev.kernel && !ev.user && ev.precise == 2 && ev.period == 1000 && ev.hz == 0);
	parse(&ev, "pfm:INST_RETIRED:ANY_P:freq=99");
	assert_true(ev.hz == 99 && !ev.period);
	parse(&ev, "pfm:INST_RETIRED:ANY_P:upp");
	assert_true(ev.user && !ev.kernel && ev.precise == 2 && ev.config == 0xc0);
	assert_string_equal(ev.name, "pfm:INST_RETIRED:ANY_P:upp");
	parse(&ev, "pfm:INST_RETIRED:P");
	assert_true(ev.precise_max);
	assert_int_equal(event_parse_list_at("", events, &nr, EVENTS_MAX,
					     "cpu-clock,"
					     "{pfm:INST_RETIRED:ANY_P,pfm:BR_INST_RETIRED:COND}:u",
					     NULL),
			 0);
	assert_int_equal(nr, 3);
	assert_true(events[2].user && !events[2].kernel && events[2].group == events[1].group);
}

static void refused(const char *text, const char *words)
{
	struct event ev;
	struct err e;

	assert_int_equal(event_parse_at("", &ev, text, &e), -EINVAL);
	if (!strstr(e.text, words))
		fail_msg("%s: no '%s' in: %s", text, words, e.text);
}

TEST(test_refused)
{
	refused("pfm:", "libpfm4 says");
	refused("pfm:nosuch", "not found");
	refused("pfm:nosuch::nosuch", "libpfm4 says");
	refused("pfm:nosuch:upp", "not found");
	refused("pfm::", "libpfm4 says");
	refused("pfm:u", "libpfm4 says");
	refused("pfm:::::u", "libpfm4 says");
	if (!knows("skl"))
		skip_test("not on this machine: Intel and AMD tables in libpfm4");
	refused("pfm:INST_RETIRED:ANY_P:nosuch", "attribute");
	refused("pfm:INST_RETIRED:ANY_P:c=99999", "attribute");
}

struct found {
	int nr, bad;
	bool inst;
};

static void count(void *ctx, const char *name, const char *description)
{
	struct found *f = ctx;
	struct event ev;

	f->nr++;
	f->bad += event_parse_at("", &ev, name, NULL) != 0;
	f->inst |= !strcmp(name, "pfm:INST_RETIRED:ANY_P") && strstr(description, "retired");
}

/* Listed names can be given with -e unchanged; only names of the CPU at hand are listed. */
TEST(test_list)
{
	struct found f = { 0 };

	if (!knows("skl"))
		skip_test("not on this machine: Intel and AMD tables in libpfm4");
	libpfm_each("", count, &f);
	assert_true(f.nr > 100 && f.inst);
	assert_int_equal(f.bad, 0);
	f.nr = 0;
	libpfm_each("/nowhere", count, &f);
	assert_int_equal(f.nr, 0);
}

int main(void)
{
	return run_unit_tests(set_up, NULL);
}

#else

/* Without the library the message names the missing package. */
TEST(test_missing)
{
	struct event ev;
	struct err e;

	assert_int_equal(event_parse_at("", &ev, "pfm:INST_RETIRED", &e), -EINVAL);
	assert_non_null(strstr(e.text, "libpfm4-dev"));
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}

#endif
