// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The end of a session with a builder that hangs in a read.
 * Live: waits for threads or processes.
 */
#include "sampler/internal.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "tests/prelude.h"

#include "sampler/event/internal.h"
#include "symbols/base/base.h"
#include "symbols/base/thread.h"
#include "sampler/ring/ring.h"
#include "sampler/profile/profile.h"
#include "sampler/hot/hot.h"

static int answer, ended; /* wake-ups */

/* The builder: a read without an answer. */
static void *hang(void *arg)
{
	struct pollfd p = { .fd = answer, .events = POLLIN };

	poll(&p, 1, -1);
	wake_send(ended);
	return NULL;
}

static void start(struct sampler *s)
{
	struct err e;

	memset(s, 0, sizeof(*s));
	s->source = &source_live;
	assert_int_equal(controls_open(&s->controls, &e), 0);
	target_init(&s->target);
	assert_int_equal(thread_start(&s->builder.id, 0, hang, s), 0);
	s->builder.runs = true;
}

static void end(struct sampler *s)
{
	struct pollfd p = { .fd = ended, .events = POLLIN };

	wake_send(answer);
	assert_int_equal(poll(&p, 1, 10000), 1);
	assert_true(wake_clear(ended));
	assert_true(wake_clear(answer));
	controls_close(&s->controls);
}

/* "q", ^C and SIGTERM end in this call: it returns, and leaves the session to the thread. */
TEST(test_end)
{
	static struct sampler s;
	uint64_t begin_ns = time_now_ns(), ns, again_ns;

	start(&s);
	sampler_free(&s);
	ns = time_now_ns() - begin_ns;
	assert_in_range(ns, 2000000000ULL, 20000000000ULL);
	assert_true(s.builder.left);
	/* As often as it is called: the least of five, for a busy machine may hold up any. */
	for (int i = 0; i < 5; i++) {
		begin_ns = time_now_ns();
		sampler_free(&s);
		again_ns = time_now_ns() - begin_ns;
		ns = MIN(ns, again_ns);
	}
	assert_true(ns < 1000000000ULL);
	end(&s);
}

/* The recording is reported as incomplete. */
TEST(test_recording)
{
	static struct sampler s;
	struct sampler_recorded r;
	struct counters none;
	struct err e = { "" };

	start(&s);
	s.config.record = "x.data";
	memset(&none, 0, sizeof(none));
	s.live.counters = &none;
	assert_int_equal(sampler_record_end(&s, &r, &e), -ETIME);
	assert_non_null(strstr(e.text, "x.data is not complete"));
	sampler_free(&s);
	end(&s);
}

int main(void)
{
	answer = wake_new();
	ended = wake_new();
	return run_unit_tests(NULL, NULL);
}
