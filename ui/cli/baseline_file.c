// SPDX-License-Identifier: GPL-2.0-or-later
/* The profile of --baseline, by a session that ends before the shown one starts. */
#include "ui/cli/baseline_file.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define SHOW_MS 250

/* Return whether a signal that ends proftop is pending. */
static bool is_interrupted(void)
{
	static const struct timespec now = { 0, 0 };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	return sigtimedwait(&set, NULL, &now) > 0;
}

/* Wait for the profile; NULL: interrupted. */
static struct profile *wait_for(struct sampler *s)
{
	struct pollfd fd = { .fd = sampler_fd(s), .events = POLLIN };
	struct profile *p = NULL;
	bool shown = false;

	while (!p && !is_interrupted()) {
		if (poll(&fd, 1, SHOW_MS) > 0)
			p = sampler_take(s);
		if (p || !isatty(STDERR_FILENO))
			continue;
		fprintf(stderr, "\rreading the baseline: %d %%\033[K",
			sampler_reading_permille(s) / 10);
		shown = true;
	}
	if (shown)
		fputs("\r\033[K", stderr);
	return p;
}

int baseline_file_read(struct profile **out, const char *path, const struct sampler_config *config,
		       struct err *e)
{
	const struct sampler_config read = {
		.replay = path,
		.symfs = config->symfs,
		.tick_ns = config->tick_ns,
		.window_ns = config->window_ns,
		.shown_frames = config->shown_frames,
		.languages = config->languages,
		.no_inline = config->no_inline,
		.symbol_memory = config->symbol_memory,
	};
	struct sampler *s;
	int code = sampler_new(&s, &read, e);

	if (code)
		return code;
	code = sampler_start(s, e);
	if (!code) {
		*out = wait_for(s);
		code = *out ? 0 : err_set(e, -EINTR, "--baseline %.300s: interrupted", path);
	}
	sampler_free(s);
	return code;
}
