// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Handlers on a made-up kernel: messages about rates are true.
 */
#define live_open_counters open_for_test

#include "sampler/builder.c"

#include "tests/prelude.h"

#include "tests/sampler/fake_kernel.h"
#include "symbols/base/base.h"
#include "sampler/event/event.h"

/* Let proftop cost @pct of a CPU for a tick, of which one is allowed. Get the status. */
static const char *govern(struct sampler *s, double pct)
{
	static char text[sizeof(s->mailbox.status)];

	s->ticks.span_ns = s->config.tick_ns;
	s->ticks.own_pct = pct;
	s->mailbox.status[0] = '\0';
	builder_govern(s);
	mailbox_status(&s->mailbox, text);
	return text;
}

/* The rate is lowered on the CPUs that are online; a refusal of the kernel is reported. */
TEST(test_governed_rate)
{
	struct sampler *s = xcalloc(1, sizeof(*s));
	struct fake *f = fake_new();
	struct fake_fd *fds[MAX_FDS];
	struct counters_config config;
	const char *text;

	s->config.events[0] = parse("cpu-clock");
	s->config.nr_events = 1;
	s->config.tick_ns = 1000000000;
	config = system_config(s->config.events, 1);
	s->rates.hz[0] = s->rates.asked_hz[0] = config.hz = 1000;
	governor_init(&s->rates.governor, 1, 2, 1000);
	s->live.counters = open_fake(f, &config);
	f->missing_type = PERF_TYPE_SOFTWARE;
	text = govern(s, 50);
	assert_non_null(strstr(text, "cpu-clock"));
	assert_null(strstr(text, "lowered"));
	assert_true(s->rates.hz[0] == 1000);
	f->missing_type = 0;
	f->offline[3] = true;
	text = govern(s, 10);
	assert_non_null(strstr(text, "rate lowered to 40 Hz"));
	assert_in_range((int)(1000 * s->rates.hz[0] + 0.5), 40000, 40000);
	assert_int_equal(find_open(f, &s->config.events[0], fds), 1);
	assert_int_equal(fds[0]->period, 25000000);
	counters_close(s->live.counters);
	assert_int_equal(f->nr_open, 0);
	free(f);
	free(s);
}

/* A rate that may be more than the machine carries is reached in steps; without a screen it is not.
 */
TEST(test_high_rate_in_steps)
{
	struct sampler_config config = { .nr_events = 1 };
	struct rates r = { .asked_hz = { 50000 } };

	rates_govern(&r, &config);
	assert_true(r.governor.climbs);
	assert_int_equal((int)(r.governor.factor * 50000 + 0.5), GOVERNOR_STALL_HZ);
	config.exact_ticks = true;
	rates_govern(&r, &config);
	assert_false(r.governor.climbs);
	assert_true(r.governor.factor == 1);
	config.exact_ticks = false;
	r.asked_hz[0] = 997;
	rates_govern(&r, &config);
	assert_false(r.governor.climbs);
}

static struct counters *to_open;

/* Locked memory is too little, or enough after an attempt with a sentence. */
int open_for_test(const struct sampler_config *c, struct target *t, struct counters **out,
		  struct err *e)
{
	(void)c;
	(void)t;
	err_set(e, -ENOLCK, "cannot map the rings");
	*out = to_open;
	return to_open ? 0 : -ENOLCK;
}

/* A change that succeeds in its second attempt is none that was refused: it is reported. */
TEST(test_opened_after_a_refusal)
{
	struct sampler *s = xcalloc(1, sizeof(*s));
	struct fake *f = fake_new();
	struct counters_config config;
	struct fresh fresh = { .config = { .nr_events = 1 } };
	struct err e = { "" };

	s->config.events[0] = parse("cpu-clock");
	config = system_config(s->config.events, 1);
	config.hz = 1000;
	assert_int_equal(procstat_new(&s->rates.procstat, "", &e), 0);
	assert_int_equal(open_fresh(s, &fresh, &s->target, &e), -ENOLCK);
	assert_string_equal(e.text, "cannot map the rings");
	to_open = open_fake(f, &config);
	assert_int_equal(open_fresh(s, &fresh, &s->target, &e), 0);
	assert_string_equal(e.text, "");
	sideband_free(fresh.sideband);
	counters_close(fresh.counters);
	procstat_free(s->rates.procstat);
	free(f);
	free(s);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
