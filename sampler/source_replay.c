// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The source of a recording: opened in place of events, read by the builder's thread, which makes
 * its profile, or one for each tick of a stream.
 *
 * Runs on: set-up, then the builder.
 */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <urcu-qsbr.h>

#include "sampler/internal.h"

/* A pipe without data for this long has no records of an earlier time to follow. */
#define FOLLOW_IDLE_NS 2000000000ULL

/* The same before the first rows: perf writes its second round a second after the first one. */
#define FOLLOW_FIRST_NS 250000000ULL

static int check_symfs(const char *symfs, struct err *e)
{
	struct stat st;

	if (!symfs || (!stat(symfs, &st) && S_ISDIR(st.st_mode)))
		return 0;
	return err_set(e, -ENOTDIR,
		       "--symfs %.400s: no such folder\n"
		       "  it has copies of the recorded machine's files, for example "
		       "DIR/usr/bin/app",
		       symfs);
}

/* Report kernel samples without symbols: the kernel is not the running one. */
static void note_kernel(struct sampler *s, const struct replay *r)
{
	const struct kernel_identity *was = replay_kernel(r);
	enum kernel_match match = symbols_recorded_kernel(s->store.symbols, was);
	char text[160], release[2 * KERNEL_RELEASE_MAX];

	if (match == KERNEL_SAME || !replay_has_kernel(r))
		return;
	text_sanitise(release, sizeof(release), was->release, strlen(was->release));
	snprintf(text, sizeof(text), "%s%s%s: no kernel symbols", recorded_kernel_reason(match),
		 release[0] ? ", " : "", release);
	mailbox_add_banner(s, text);
}

static int open_recording(struct sampler *s, struct err *e)
{
	struct object_identity *kernel = &objects_at(s->store.objects, OBJECT_ID_KERNEL)->identity;
	int code = check_symfs(s->config.symfs, e);
	const struct kernel_identity *was;
	struct replay *r;

	if (!code)
		code = replay_open(&s->replay, &s->config, e);
	if (code)
		return code;
	r = s->replay;
	s->facts = (struct source_facts){
		.recorded = true,
		.kept = replay_is_kept(r),
		.machine = replay_machine(r),
	};
	rates_init(&s->rates, &s->config);
	maps_no_proc(s->store.maps);
	symbols_recorded(s->store.symbols, s->config.symfs);
	note_kernel(s, r);
	if (!replay_monotonic(r))
		symbols_other_clock(s->store.symbols);
	if (replay_note(r)[0])
		mailbox_add_banner(s, replay_note(r));
	/* For exports; of a stream it may still be unknown. */
	was = replay_kernel(r);
	kernel->build_id_size = was->build_id_size;
	memcpy(kernel->build_id, was->build_id, sizeof(was->build_id));
	return 0;
}

static int start_recording(struct sampler *s, struct err *e)
{
	(void)s;
	(void)e;
	return 0;
}

static struct replay *replay_of(const struct sampler *s)
{
	return s->replay;
}

/* Count the records of a pipe that are there. Return false if they were the last ones. */
static bool follow_pipe(struct sampler *s, struct replay *r, bool idle)
{
	bool more = replay_more(r, idle);
	int code = replay_feed(r, &s->store);

	if (code && code != -ECANCELED)
		mailbox_say(&s->mailbox, "out of memory: samples of the recording are missing");
	replay_drop(r);
	return more;
}

/* Say that the pipe has ended, and whether the recording is whole. */
static void say_end(struct sampler *s, const struct replay *r)
{
	const char *note = replay_note(r);

	s->target.gone = true;
	mailbox_say(&s->mailbox, "%s", note[0] ? note : "the recording has ended");
}

/* Return when the tick of a pipe after @now ends: soon after its first samples, at @first_ns. */
static uint64_t next_follow(const struct sampler *s, uint64_t first_ns, uint64_t now)
{
	uint64_t next = builder_next_tick(s, now);

	if (first_ns && !s->config.exact_ticks)
		next = MIN(next, builder_early_tick(first_ns, now));
	return next;
}

/* Return how long a pipe may have no data before all records that are there are counted. */
static uint64_t follow_idle(const struct sampler *s, uint64_t first_ns)
{
	return first_ns || s->config.exact_ticks ? FOLLOW_IDLE_NS : FOLLOW_FIRST_NS;
}

/* Read a recording while it is written, with a profile for each tick and after each control. */
static void run_follow(struct sampler *s, struct replay *r, struct replay_result *result)
{
	struct pollfd fds[] = {
		{ .fd = s->controls.fd, .events = POLLIN },
		{ .fd = replay_fd(r), .events = POLLIN },
	};
	uint64_t now = time_now_ns(), due = builder_next_tick(s, now), data_ns = now, first_ns = 0;
	bool more = true;

	if (s->config.exact_ticks)
		s->ticks.window = PROFILE_TOTAL;
	while (more && !atomic_load_explicit(&s->builder.stop, memory_order_acquire)) {
		uint64_t wake = MIN(due, data_ns + follow_idle(s, first_ns));

		rcu_thread_offline();
		poll(fds, ARRAY_SIZE(fds), wake > now ? (int)((wake - now + 999999) / 1000000) : 0);
		rcu_thread_online();
		now = time_now_ns();
		if (fds[1].revents) {
			more = follow_pipe(s, r, false);
			data_ns = now;
		} else if (now - data_ns >= follow_idle(s, first_ns)) {
			follow_pipe(s, r, true);
			data_ns = now;
		}
		if (!first_ns && replay_begun(r)) {
			first_ns = now;
			due = MIN(due, next_follow(s, first_ns, now));
		}
		if (builder_apply(s))
			due = MIN(due, now);
		if (!more)
			say_end(s, r);
		if (more && now < due)
			continue;
		replay_result(r, &s->store, result);
		tick_replay(s, result);
		replay_next(r);
		/* Batch: the next rows are of the next samples. */
		if (s->config.exact_ticks)
			history_restart(s->store.history);
		now = time_now_ns();
		due = next_follow(s, first_ns, now);
	}
}

/* Read the whole recording, and make its profile unless the session ends. */
static void run_replay(struct sampler *s, struct replay *r, struct replay_result *result)
{
	int code = replay_run(r, &s->store, result);

	if (code == -ECANCELED)
		return;
	if (code || result->out_of_memory)
		mailbox_say(&s->mailbox, "out of memory: the recording was not read completely");
	/* Known at the end only. */
	if (s->facts.kept && replay_note(r)[0])
		mailbox_add_banner(s, replay_note(r));
	/* Nothing was left to follow. */
	s->target.gone = s->config.follow;
	tick_replay(s, result);
}

/* Read the recording, then make its profile again for each control. */
static void *replay_main(void *arg)
{
	struct sampler *s = arg;
	struct replay *r = replay_of(s);
	struct pollfd fd = { .fd = s->controls.fd, .events = POLLIN };
	struct replay_result result = { .nr_cpus = 0 };

	prctl(PR_SET_NAME, "replay");
	rcu_register_thread();
	if (replay_fd(r) < 0) {
		run_replay(s, r, &result);
	} else if (replay_begin(r, &s->store)) {
		out_of_memory();
	} else {
		run_follow(s, r, &result);
		replay_end(r);
	}
	while (!atomic_load_explicit(&s->builder.stop, memory_order_acquire)) {
		controls_settle(&s->controls);
		rcu_thread_offline();
		poll(&fd, 1, 1000);
		rcu_thread_online();
		if (builder_apply(s))
			tick_replay(s, &result);
	}
	rcu_unregister_thread();
	return NULL;
}

static bool stop_recording(struct sampler *s)
{
	replay_stop(replay_of(s));
	symbols_stop_run(s->store.symbols);
	/* It is read to the end of a part, from files of this user. */
	pthread_join(s->builder.id, NULL);
	return true;
}

static uint32_t recording_cpus(const struct sampler *s)
{
	return replay_nr_cpus(replay_of(s));
}

static double recorded_hz(const struct sampler *s, uint32_t event)
{
	assert(event < s->config.nr_events);
	return s->config.events[event].hz;
}

/* Slices of --keep have the time of the day. */
static uint64_t recorded_real_ns(const struct sampler *s, uint64_t time_ns)
{
	return s->facts.kept ? time_ns : 0;
}

static int recording_permille(const struct sampler *s)
{
	return replay_permille(replay_of(s));
}

static int each_sample(struct sampler *s, sampler_sample_fn fn, void *ctx, struct err *e)
{
	int code;

	if (s->facts.kept)
		return err_set(e, -ENOTSUP,
			       "samples one by one need a recording\n"
			       "  --keep writes counts, not samples\n"
			       "  record with --record");
	rcu_register_thread();
	code = replay_each(replay_of(s), &s->store, s->config.events, fn, ctx);
	rcu_unregister_thread();
	return code;
}

const struct source source_replay = {
	.open = open_recording,
	.start = start_recording,
	.run = replay_main,
	.stop = stop_recording,
	.nr_cpus = recording_cpus,
	.hz = recorded_hz,
	.real_ns = recorded_real_ns,
	.permille = recording_permille,
	.each = each_sample,
};
