// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Probes of programs: the main thread does not read the file.
 * Live: reads a clock.
 */
#include "tests/ui/fake.h"

#include <poll.h>
#include <unistd.h>

#include "ui/internal.h"
#include "ui/cli/cli.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "ui/key/key.h"
#include "ui/state/state.h"
#include "ui/view/view.h"

static char probe[EVENT_NAME_MAX];

/* Name a probe of this program; false: this system has none. */
static bool set_probe(void)
{
	char self[160] = "";

	if (access("/sys/bus/event_source/devices/uprobe", F_OK) ||
	    readlink("/proc/self/exe", self, sizeof(self) - 1) >= (ssize_t)sizeof(self) - 1)
		return false;
	snprintf(probe, sizeof(probe), "uprobe:%s:main", self);
	return true;
}

static struct bench *start(void)
{
	static struct bench b;

	bench_init(&b, 100, 24, false);
	model_take(&b.st, fake_profile(2, NULL));
	look(&b);
	b.st.files = file_worker_new();
	assert_non_null(b.st.files);
	return &b;
}

static void end(struct bench *b)
{
	file_worker_free(b->st.files, 1000000000ULL);
	b->st.files = NULL;
	bench_fini(b);
}

/* As the loop of the screen does. */
static void wait_result(struct bench *b)
{
	struct pollfd fd = { .fd = file_worker_fd(b->st.files), .events = POLLIN };
	bool taken = false;

	for (int i = 0; i < 100 && !taken; i++) {
		poll(&fd, 1, 100);
		taken = outputs_file_result(&b->st, b->st.files);
	}
	assert_true(taken);
}

/* The events are changed when the result is taken, not before: the key has read no file. */
TEST(test_command)
{
	struct bench *b = start();
	unsigned int before = b->sampler.nr_sets;
	char line[EVENT_NAME_MAX + 16];

	if (!set_probe())
		skip_test("not on this machine: uprobes, or a short path");
	snprintf(line, sizeof(line), ":event %s\r", probe);
	type(b, line);
	assert_int_equal(b->sampler.nr_sets, before);
	assert_non_null(strstr(b->st.message, "reading the program of uprobe:"));
	wait_result(b);
	assert_int_equal(b->sampler.nr_sets, before + 1);
	assert_int_equal(b->sampler.nr_events, 1);
	assert_string_equal(b->sampler.events[0].name, probe);
	assert_true(b->sampler.events[0].config2);
	assert_string_equal(b->st.scope.event_name, probe);
	assert_false(b->st.message_bad);
	/* Others are there when the key returns, unless the machine is slow. */
	type(b, ":event cpu-clock\r");
	if ((unsigned int)b->sampler.nr_sets == before + 1)
		wait_result(b);
	assert_int_equal(b->sampler.nr_sets, before + 2);
	/* They do not wait for a file. */
	type(b, ":event uprobe:/nowhere/at/all:main\r");
	type(b, ":event page-faults\r");
	assert_int_equal(b->sampler.nr_sets, before + 3);
	wait_result(b);
	end(b);
}

TEST(test_refused)
{
	struct bench *b = start();
	unsigned int before = b->sampler.nr_sets;

	type(b, ":event uprobe:/nowhere/at/all:main\r");
	assert_false(b->st.message_bad);
	wait_result(b);
	assert_true(b->st.message_bad);
	assert_non_null(strstr(b->st.message, "cannot read"));
	assert_int_equal(b->sampler.nr_sets, before);
	end(b);
}

/* The filter of a tracepoint: by command and in the picker; a refused one changes nothing. */
TEST(test_tracepoint_filter)
{
	struct profile *p = fake_profile(4, NULL);
	struct bench b;

	p->nr_events = 1;
	p->events[0].event.type = PERF_TYPE_TRACEPOINT;
	snprintf(p->events[0].event.name, EVENT_NAME_MAX, "sched:sched_switch");
	bench_init(&b, 80, 24, false);
	model_take(&b.st, p);
	type(&b, ":event-filter prev_pid == 0\r");
	assert_int_equal(b.sampler.nr_sets, 1);
	assert_string_equal(b.sampler.events[0].filter, "prev_pid == 0");
	assert_string_equal(b.sampler.events[0].name, "sched:sched_switch");
	memcpy(p->events[0].event.filter, b.sampler.events[0].filter, EVENT_TEXT_MAX);
	assert_non_null(strstr(look(&b), "sched:sched_switch if prev_pid == 0"));
	/* The field begins with it; text and digits are of the filter there. */
	press(&b, K_F(7));
	press(&b, K_CTRL('f'));
	assert_non_null(strstr(look(&b), "filter: prev_pid == 0"));
	type(&b, "1");
	press(&b, K_ENTER);
	assert_null(b.st.dialog.ops);
	assert_int_equal(b.sampler.nr_sets, 2);
	assert_string_equal(b.sampler.events[0].filter, "prev_pid == 01");
	press(&b, K_F(7));
	press(&b, K_CTRL('f'));
	press(&b, K_ESC); /* the field alone */
	assert_non_null(b.st.dialog.ops);
	press(&b, K_CTRL('f'));
	press(&b, K_CTRL('u'));
	press(&b, K_ENTER);
	assert_string_equal(b.sampler.events[0].filter, "");
	type(&b, ":event-filter a == 1\r:event-filter\r");
	assert_int_equal(b.sampler.nr_sets, 5);
	assert_string_equal(b.sampler.events[0].filter, "");
	/* Other events have no fields. */
	p->events[0].event.type = PERF_TYPE_SOFTWARE;
	snprintf(p->events[0].event.name, EVENT_NAME_MAX, "cpu-clock");
	type(&b, ":event-filter a == 1\r");
	assert_true(b.st.message_bad);
	assert_non_null(strstr(b.st.message, "'cpu-clock' is not a tracepoint"));
	press(&b, K_F(7));
	press(&b, K_CTRL('f'));
	assert_non_null(strstr(b.st.message, "cpu-clock is not a tracepoint"));
	assert_int_equal(b.sampler.nr_sets, 5);
	bench_fini(&b);
}

/* Another event with a filter: it has that one, or is refused with it. */
TEST(test_new_event_with_filter)
{
	struct bench *b = start();
	int before = b->sampler.nr_sets;

	sampling_event_use(&b->st, "cpu-clock", "a == 1", false);
	while (b->sampler.nr_sets == before && !b->st.message_bad)
		wait_result(b);
	assert_int_equal(b->sampler.nr_sets, before);
	assert_non_null(strstr(b->st.message, "'cpu-clock' is not a tracepoint"));
	sampling_event_use(&b->st, "cpu-clock", "", false);
	if (b->sampler.nr_sets == before)
		wait_result(b);
	assert_int_equal(b->sampler.nr_sets, before + 1);
	end(b);
}

/* Tab in the picker adds one to the sampled events. */
TEST(test_picker)
{
	struct bench *b = start();
	unsigned int before = b->sampler.nr_sets;

	if (!set_probe())
		skip_test("not on this machine: uprobes, or a short path");
	press(b, 'e');
	type(b, probe);
	press(b, K_TAB);
	assert_int_equal(b->sampler.nr_sets, before);
	wait_result(b);
	assert_int_equal(b->sampler.nr_sets, before + 1);
	assert_int_equal(b->sampler.nr_events, b->st.latest->nr_events + 1);
	assert_string_equal(b->sampler.events[b->sampler.nr_events - 1].name, probe);
	end(b);
}

/* --script has no worker: the result is there. */
TEST(test_without_worker)
{
	struct bench *b = start();
	unsigned int before = b->sampler.nr_sets;
	char line[EVENT_NAME_MAX + 16];

	if (!set_probe())
		skip_test("not on this machine: uprobes, or a short path");
	file_worker_free(b->st.files, 0);
	b->st.files = NULL;
	snprintf(line, sizeof(line), ":event %s\r", probe);
	type(b, line);
	assert_int_equal(b->sampler.nr_sets, before + 1);
	assert_non_null(strstr(b->st.message, "event uprobe:"));
	type(b, ":event uprobe:/nowhere/at/all:main\r");
	assert_true(b->st.message_bad);
	assert_int_equal(b->sampler.nr_sets, before + 1);
	bench_fini(b);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
