// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The profile of --baseline, by a session that ends before the shown one starts.
 *
 * It has a thread: capabilities are those of a thread and of the threads that it starts.
 */
#include "ui/cli/cli.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "symbols/base/base.h"
#include "symbols/base/thread.h"

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

/* Decide whether opening the file goes on. */
static enum file_reading step(uint64_t bytes)
{
	return is_interrupted() ? FILE_READING_CANCEL : FILE_READING_GO;
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

/* The session, of the thread until it ends. */
struct session {
	struct sampler_config config;
	struct profile *profile;
	struct err e;
	int code;
};

static int refuse(struct session *b)
{
	return err_set(&b->e, -EINTR, "--baseline %.300s: interrupted", b->config.replay);
}

/* Run the session; without the capabilities that sampling needs, as a replay. */
static void *baseline_main(void *arg)
{
	struct session *b = arg;
	struct sampler *s;

	prctl(PR_SET_NAME, "baseline");
	sampler_drop_caps(false, true);
	b->code = sampler_new(&s, &b->config, &b->e);
	if (b->code == -ECANCELED)
		b->code = refuse(b);
	if (b->code)
		return NULL;
	b->code = sampler_start(s, &b->e);
	if (!b->code)
		b->profile = wait_for(s);
	if (!b->code && !b->profile)
		b->code = refuse(b);
	sampler_free(s);
	return NULL;
}

int baseline_file_read(struct profile **out, const char *path, const struct sampler_config *config,
		       struct err *e)
{
	struct session b = {
		.config = {
			.replay = path,
			.reading = step,
			.symfs = config->symfs,
			.tick_ns = config->tick_ns,
			.window_ns = config->window_ns,
			.shown_frames = config->shown_frames,
			.languages = config->languages,
			.no_inline = config->no_inline,
			.symbol_memory = config->symbol_memory,
		},
	};
	pthread_t thread;
	int code = thread_start(&thread, 0, baseline_main, &b);

	if (code)
		return err_set(e, code, "cannot start a thread for --baseline");
	pthread_join(thread, NULL);
	if (b.code)
		*e = b.e;
	else
		*out = b.profile;
	return b.code;
}
