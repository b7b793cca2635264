// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * event: every name of the catalogue, aliases, modifiers, raw codes, and the message for unknown
 * names.
 * Live: opens perf events.
 */
#include "sampler/event/event.c"

#include "tests/prelude.h"
#include "symbols/base/base.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <unistd.h>

static struct event parse(const char *text)
{
	struct event ev;
	struct err e = { "" };

	if (event_parse(&ev, text, &e))
		fail_msg("%s: %s", text, e.text);
	assert_string_equal(ev.name, text);
	return ev;
}

static void expect(const char *text, uint32_t type, uint64_t config)
{
	struct event ev = parse(text);

	if (ev.type != type || ev.config != config)
		fail_msg("%s: type %u config %#lx", text, ev.type, ev.config);
	assert_int_equal(ev.hardware, type != PERF_TYPE_SOFTWARE);
	assert_true(ev.user && ev.kernel && ev.hv);
	assert_int_equal(ev.precise, 0);
}

TEST(test_generic)
{
	expect("cycles", PERF_TYPE_HARDWARE, 0);
	expect("cpu-cycles", PERF_TYPE_HARDWARE, 0);
	expect("instructions", PERF_TYPE_HARDWARE, 1);
	expect("cache-references", PERF_TYPE_HARDWARE, 2);
	expect("cache-misses", PERF_TYPE_HARDWARE, 3);
	expect("branches", PERF_TYPE_HARDWARE, 4);
	expect("branch-instructions", PERF_TYPE_HARDWARE, 4);
	expect("branch-misses", PERF_TYPE_HARDWARE, 5);
	expect("bus-cycles", PERF_TYPE_HARDWARE, 6);
	expect("stalled-cycles-frontend", PERF_TYPE_HARDWARE, 7);
	expect("idle-cycles-backend", PERF_TYPE_HARDWARE, 8);
	expect("ref-cycles", PERF_TYPE_HARDWARE, 9);
	expect("cpu-clock", PERF_TYPE_SOFTWARE, 0);
	expect("task-clock", PERF_TYPE_SOFTWARE, 1);
	expect("faults", PERF_TYPE_SOFTWARE, 2);
	expect("cs", PERF_TYPE_SOFTWARE, 3);
	expect("migrations", PERF_TYPE_SOFTWARE, 4);
	expect("minor-faults", PERF_TYPE_SOFTWARE, 5);
	expect("major-faults", PERF_TYPE_SOFTWARE, 6);
	expect("alignment-faults", PERF_TYPE_SOFTWARE, 7);
	expect("emulation-faults", PERF_TYPE_SOFTWARE, 8);
	expect("dummy", PERF_TYPE_SOFTWARE, 9);
	expect("bpf-output", PERF_TYPE_SOFTWARE, 10);
	expect("cgroup-switches", PERF_TYPE_SOFTWARE, 11);
	expect("CYCLES", PERF_TYPE_HARDWARE, 0);
}

TEST(test_cache)
{
	expect("L1-dcache-loads", PERF_TYPE_HW_CACHE, 0x00000);
	expect("L1-dcache-load-misses", PERF_TYPE_HW_CACHE, 0x10000);
	expect("L1-dcache-stores", PERF_TYPE_HW_CACHE, 0x00100);
	expect("L1-dcache-store-misses", PERF_TYPE_HW_CACHE, 0x10100);
	expect("L1-dcache-prefetches", PERF_TYPE_HW_CACHE, 0x00200);
	expect("L1-dcache-prefetch-misses", PERF_TYPE_HW_CACHE, 0x10200);
	expect("L1-icache-load-misses", PERF_TYPE_HW_CACHE, 0x10001);
	expect("LLC-loads", PERF_TYPE_HW_CACHE, 0x00002);
	expect("LLC-store-misses", PERF_TYPE_HW_CACHE, 0x10102);
	expect("dTLB-load-misses", PERF_TYPE_HW_CACHE, 0x10003);
	expect("iTLB-loads", PERF_TYPE_HW_CACHE, 0x00004);
	expect("branch-loads", PERF_TYPE_HW_CACHE, 0x00005);
	expect("branch-load-misses", PERF_TYPE_HW_CACHE, 0x10005);
	expect("node-prefetch-misses", PERF_TYPE_HW_CACHE, 0x10206);
}

/* Each name is unique, is parsed to itself, and has a description. */
TEST(test_catalogue)
{
	const struct event_info *list = event_catalogue();
	size_t nr = 0;

	for (; list[nr].name; nr++) {
		struct event ev = parse(list[nr].name);

		assert_ptr_equal(event_info(&ev), &list[nr]);
		if (list[nr].alias) {
			ev = parse(list[nr].alias);
			assert_ptr_equal(event_info(&ev), &list[nr]);
		}
		assert_true(strlen(list[nr].description) > 8);
		assert_true(!strcmp(list[nr].group, "hardware") ||
			    !strcmp(list[nr].group, "software") ||
			    !strcmp(list[nr].group, "cache"));
		for (size_t i = 0; i < nr; i++)
			assert_string_not_equal(list[i].name, list[nr].name);
	}
	assert_int_equal(nr, 10 + 13 + 32);
}

TEST(test_clock)
{
	const struct event_info *list = event_catalogue();

	for (size_t i = 0; list[i].name; i++) {
		struct event ev = parse(list[i].name);

		assert_int_equal(ev.clock, !strcmp(ev.name, "cpu-clock") || !strcmp(ev.name, "task-"
											     "cloc"
											     "k"));
	}
}

TEST(test_raw)
{
	expect("r1", PERF_TYPE_RAW, 1);
	expect("r1a8", PERF_TYPE_RAW, 0x1a8);
	expect("rFFFFFFFFFFFFFFFF", PERF_TYPE_RAW, UINT64_MAX);
	assert_null(event_info(&(struct event){ .type = PERF_TYPE_RAW, .config = 1 }));
	assert_int_equal(parse("r1a8:u").config, 0x1a8);
}

/* Modifiers as in perf: u, k, h name the levels that remain. */
TEST(test_modifiers)
{
	static const struct {
		const char *text;
		bool user, kernel, hv, max;
		uint8_t precise;
	} cases[] = {
		{ "cycles", true, true, true, false, 0 },
		{ "cycles:u", true, false, false, false, 0 },
		{ "cycles:k", false, true, false, false, 0 },
		{ "cycles:h", false, false, true, false, 0 },
		{ "cycles:uk", true, true, false, false, 0 },
		{ "cycles:ku", true, true, false, false, 0 },
		{ "cycles:p", true, true, true, false, 1 },
		{ "cycles:kpp", false, true, false, false, 2 },
		{ "cycles:pppu", true, false, false, false, 3 },
		{ "cycles:P", true, true, true, true, 3 },
		{ "cycles:uP", true, false, false, true, 3 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct event ev = parse(cases[i].text);
		struct perf_event_attr attr;

		assert_int_equal(ev.user, cases[i].user);
		assert_int_equal(ev.kernel, cases[i].kernel);
		assert_int_equal(ev.hv, cases[i].hv);
		assert_int_equal(ev.precise, cases[i].precise);
		assert_int_equal(ev.precise_max, cases[i].max);
		event_attr(&ev, &attr);
		assert_int_equal(attr.exclude_user, !cases[i].user);
		assert_int_equal(attr.exclude_kernel, !cases[i].kernel);
		assert_int_equal(attr.exclude_hv, !cases[i].hv);
		assert_int_equal(attr.precise_ip, cases[i].precise);
	}
}

/* Type, config, exclusion, precision, size, and not a bit more. */
TEST(test_attr)
{
	struct event ev = parse("L1-dcache-load-misses:u");
	struct perf_event_attr attr, expected;

	memset(&expected, 0, sizeof(expected));
	expected.size = sizeof(expected);
	expected.type = PERF_TYPE_HW_CACHE;
	expected.config = 0x10000;
	expected.exclude_kernel = expected.exclude_hv = expected.exclude_guest = 1;
	memset(&attr, 0xff, sizeof(attr));
	event_attr(&ev, &attr);
	assert_memory_equal(&attr, &expected, sizeof(attr));
}

static unsigned int lines(const char *text)
{
	unsigned int nr = 1;

	for (; *text; text++)
		nr += *text == '\n';
	return nr;
}

static void refuse(const char *text, const char *says)
{
	struct event ev;
	struct err e = { "" };

	assert_int_equal(event_parse(&ev, text, &e), -EINVAL);
	if (!strstr(e.text, says))
		fail_msg("'%s': no '%s' in: %s", text, says, e.text);
	assert_non_null(strstr(e.text, "--list-events"));
	assert_int_equal(lines(e.text), 3);
	assert_int_equal(event_parse(&ev, text, NULL), -EINVAL);
}

TEST(test_did_you_mean)
{
	refuse("cycels", "did you mean 'cycles'?");
	refuse("cycle", "did you mean 'cycles'?");
	refuse("cpu-clok", "did you mean 'cpu-clock'?");
	refuse("cpuclock:u", "did you mean 'cpu-clock'?");
	refuse("instruction", "did you mean 'instructions'?");
	refuse("L1-dcache-loadmisses", "did you mean 'L1-dcache-load-misses'?");
	refuse("pagefaults", "did you mean 'page-faults'?");
	refuse("context", "did you mean 'context-switches'?");
}

TEST(test_refused)
{
	char text[300];

	refuse("", "unknown event");
	refuse("zzzzzzzzzzzzzzzz", "perf-list");
	refuse("cycles:", "modifier");
	refuse("cycles:x", "modifier 'x'");
	refuse("cycles:pppp", "modifier");
	refuse("cycles:pP", "modifier");
	refuse("cycles:u:k", "modifier");
	refuse("r", "unknown event");
	refuse("r12345678123456781", "unknown event");
	refuse("rxyz", "unknown event");
	refuse(" cycles", "did you mean 'cycles'?");
	refuse("\033[1mcycles", "unknown event");
	for (size_t size = 60; size < sizeof(text); size++) {
		memset(text, 'a', size);
		text[size] = '\0';
		refuse(text, "unknown event");
	}
}

/* No control byte of the command line reaches the terminal through the sentence. */
TEST(test_sentence_is_clean)
{
	struct event ev;
	struct err e;

	event_parse(&ev, "\033]0;x\007\nboo", &e);
	for (const char *p = e.text; *p; p++)
		assert_true((unsigned char)*p >= 0x20 || *p == '\n');
}

TEST(test_errno)
{
	assert_string_equal(event_errno(-ENOENT), "no such event on this machine");
	assert_string_equal(event_errno(ENOENT), event_errno(-ENOENT));
	for (int code = 0; code < 200; code++)
		assert_true(strlen(event_errno(code)) > 3 && strlen(event_errno(code)) < 80);
}

TEST(test_probe)
{
	struct event ev = parse("cpu-clock:u");
	int rc = event_probe(&ev, 0, -1);

	if (rc == -EACCES || rc == -EPERM || rc == -ENOSYS)
		skip_test("not permitted: perf_event_open(2)");
	assert_int_equal(rc, 0);
	ev = parse("cycles:u");
	ev.type = 9999;
	assert_int_equal(event_probe(&ev, 0, -1), -ENOENT);
	ev = parse("cpu-clock:u");
	assert_int_equal(event_probe(&ev, 0x3ffffff, -1), -ESRCH);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
