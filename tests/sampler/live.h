/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A live session for tests. */
#ifndef TESTS_SAMPLER_LIVE_H
#define TESTS_SAMPLER_LIVE_H

#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sampler/sampler.h"
#include "tests/prelude.h"
#include "symbols/base/base.h"
#include "sampler/profile/profile.h"

/* Start a session; skip the test where sampling is not permitted. */
static inline struct sampler *live_start(const struct sampler_config *config)
{
	struct sampler *s;
	struct err e = { "" };
	int code = sampler_new(&s, config, &e);

	if (code == -EACCES || code == -EPERM || code == -ENOSYS)
		skip_test("not permitted: perf_event_open(2)");
	if (code || sampler_start(s, &e))
		fail_msg("%s", e.text);
	return s;
}

/* Skip the test unless events of the whole system, and of code of the kernel, are permitted. */
static inline void live_need_system(void)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.size = sizeof(attr),
					.config = PERF_COUNT_SW_CPU_CLOCK };
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		skip_test("not permitted: events of other users' processes");
	close(fd);
}

/* Wait for the next profile and take it, at most 10 seconds. */
static inline struct profile *live_wait(struct sampler *s)
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

#endif
