// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The builder thread: ends ticks, applies controls. It is an urcu-qsbr reader, offline while it
 * waits. The first ticks follow the start quickly, so that the screen has rows within a quarter of
 * a second; then one per period, on a fixed grid.
 */
#include "sampler/builder.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <urcu-qsbr.h>

#include "sampler/follow.h"
#include "sampler/handlers.h"
#include "sampler/reopen.h"
#include "sampler/session.h"
#include "sampler/tick.h"
#include "sampler/tick_past.h"
#include "sampler/tick_replay.h"
#include "sampler/waiting.h"
#include "symbols/base/thread.h"

/* A control is followed by a short tick, at least this long after the last one. */
#define ANSWER_NS 20000000ULL
/* From the end of a command to its last tick: the last samples get their stacks and names. */
#define ENDED_NS     300000000ULL
#define BUILDER_NICE (-5)
/* A pipe without data for this long has no records of an earlier time to follow. */
#define FOLLOW_IDLE_NS 2000000000ULL
/* The same before the first rows: perf writes its second round a second after the first one. */
#define FOLLOW_FIRST_NS 250000000ULL
/* So much earlier than the end of a slice the sampler threads read its last samples. */
#define GRID_AHEAD_NS 4000000ULL
/* A single tick begins after at most so long, checked so often. */
#define WARM_MAX_NS 3000000000ULL
#define WARM_MS	    100
/* How often to check for code that is being read. */
#define CODE_MS 10
/* Without CPU time for so long at the end, it hangs. */
#define STOP_MS 2000
/* Longest wait: sampler threads wake the builder if there is something to do. */
#define LOOK_MS 1000

/* Times of the first profiles after the start. */
static const uint64_t early_ns[] = { 120000000, 250000000, 500000000 };

/* Apply all queued controls with @fn. True if one of them changes the newest profile. */
static bool apply_controls(struct sampler *s,
			   void (*fn)(struct sampler *s, const struct control *c))
{
	struct control items[CONTROLS_MAX];
	uint32_t nr = controls_take(&s->controls, items);
	bool now = false;

	for (uint32_t i = 0; i < nr; i++) {
		now |= items[i].kind != CONTROL_STRIP && items[i].kind != CONTROL_PAST;
		fn(s, &items[i]);
	}
	if (now)
		tick_past_post(s);
	return now;
}

/* Return when the tick after @now ends. */
static uint64_t next_tick(const struct sampler *s, uint64_t now)
{
	uint64_t age = now - s->ticks.start_ns;

	if (!s->config.exact_ticks)
		for (size_t i = 0; i < ARRAY_SIZE(early_ns); i++)
			if (age < early_ns[i] && early_ns[i] < s->ticks.period_ns)
				return s->ticks.start_ns + early_ns[i];
	/* After SIGSTOP the next point of the grid may be near: avoid a tick of a few ms. */
	return s->ticks.start_ns +
	       ((age + s->ticks.period_ns / 4) / s->ticks.period_ns + 1) * s->ticks.period_ns;
}

static uint64_t add_ns(uint64_t time_ns, uint64_t span_ns)
{
	return span_ns < UINT64_MAX - time_ns ? time_ns + span_ns : UINT64_MAX;
}

/* Return when the next slice of the history ends: on a grid from the start. */
static uint64_t next_slice(const struct sampler *s, uint64_t now)
{
	if (!s->config.history_ns)
		return UINT64_MAX;
	return s->ticks.start_ns +
	       ((now - s->ticks.start_ns) / SAMPLER_SLICE_NS + 1) * SAMPLER_SLICE_NS;
}

/* Begin or end a collection. */
static void collect(struct sampler *s, uint64_t now)
{
	struct collect *c = &s->collect;

	if (now >= c->due_ns) {
		tick_slice(s, now);
		tick_past_collect(s, c->begin_ns, now);
		c->due_ns = UINT64_MAX;
		history_extend(s->store.history, 0);
	}
	if (!collect_begin(c, now))
		return;
	tick_slice(s, now);
	/* The last tick may be late. */
	history_extend(s->store.history, 2 * (c->due_ns - now));
}

/* Set the time of the first tick, and the grid of the sampler threads: a little before ours. */
static void set_start(struct sampler *s, uint64_t now)
{
	s->ticks.start_ns = s->ticks.last_ns = s->ticks.slice_ns = s->ticks.reset_ns = now;
	history_begin(s->store.history, now);
	/* Relaxed: see sampler_thread.h. */
	if (s->live.shared && s->config.history_ns)
		atomic_store_explicit(&s->live.shared->grid_ns, now - GRID_AHEAD_NS,
				      memory_order_relaxed);
}

/* Count the records of a pipe that are there. Return false if they were the last ones. */
static bool follow_pipe(struct sampler *s, bool idle)
{
	bool more = replay_more(s->replay, idle);
	int code = replay_feed(s->replay, &s->store);

	if (code && code != -ECANCELED)
		mailbox_say(&s->mailbox, "out of memory: samples of the recording are missing");
	replay_drop(s->replay);
	return more;
}

/* Say that the pipe has ended, and whether the recording is whole. */
static void say_end(struct sampler *s)
{
	const char *note = replay_note(s->replay);

	s->target.gone = true;
	mailbox_say(&s->mailbox, "%s", note[0] ? note : "the recording has ended");
}

/* Return when the tick of a pipe after @now ends: soon after its first samples, at @first_ns. */
static uint64_t next_follow(const struct sampler *s, uint64_t first_ns, uint64_t now)
{
	uint64_t next = next_tick(s, now);

	if (first_ns && !s->config.exact_ticks)
		for (size_t i = 0; i < ARRAY_SIZE(early_ns); i++)
			if (now < first_ns + early_ns[i])
				return MIN(next, first_ns + early_ns[i]);
	return next;
}

/* Return how long a pipe may have no data before all records that are there are counted. */
static uint64_t follow_idle(const struct sampler *s, uint64_t first_ns)
{
	return first_ns || s->config.exact_ticks ? FOLLOW_IDLE_NS : FOLLOW_FIRST_NS;
}

/* Read a recording while it is written, with a profile for each tick and after each control. */
static void run_follow(struct sampler *s, struct replay_result *result)
{
	struct pollfd fds[] = {
		{ .fd = s->controls.fd, .events = POLLIN },
		{ .fd = replay_fd(s->replay), .events = POLLIN },
	};
	uint64_t now = time_now_ns(), due = next_tick(s, now), data_ns = now, first_ns = 0;
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
			more = follow_pipe(s, false);
			data_ns = now;
		} else if (now - data_ns >= follow_idle(s, first_ns)) {
			follow_pipe(s, true);
			data_ns = now;
		}
		if (!first_ns && replay_begun(s->replay)) {
			first_ns = now;
			due = MIN(due, next_follow(s, first_ns, now));
		}
		if (apply_controls(s, handlers_apply_replay))
			due = MIN(due, now);
		if (!more)
			say_end(s);
		if (more && now < due)
			continue;
		replay_result(s->replay, &s->store, result);
		tick_replay(s, result);
		replay_next(s->replay);
		/* Batch: the next rows are of the next samples. */
		if (s->config.exact_ticks)
			history_restart(s->store.history);
		now = time_now_ns();
		due = next_follow(s, first_ns, now);
	}
}

/* Read the whole recording, and make its profile unless the session ends. */
static void run_replay(struct sampler *s, struct replay_result *result)
{
	int code = replay_run(s->replay, &s->store, result);

	if (code == -ECANCELED)
		return;
	if (code || result->out_of_memory)
		mailbox_say(&s->mailbox, "out of memory: the recording was not read completely");
	/* Known at the end only. */
	if (replay_is_kept(s->replay) && replay_note(s->replay)[0])
		session_add_banner(s, replay_note(s->replay));
	/* Nothing was left to follow. */
	s->target.gone = s->config.follow;
	tick_replay(s, result);
}

/* Read the recording, then make its profile again for each control. */
static void *replay_main(void *arg)
{
	struct sampler *s = arg;
	struct pollfd fd = { .fd = s->controls.fd, .events = POLLIN };
	struct replay_result result = { .nr_cpus = 0 };

	prctl(PR_SET_NAME, "replay");
	rcu_register_thread();
	if (replay_fd(s->replay) < 0) {
		run_replay(s, &result);
	} else if (replay_begin(s->replay, &s->store)) {
		out_of_memory();
	} else {
		run_follow(s, &result);
		replay_end(s->replay);
	}
	while (!atomic_load_explicit(&s->builder.stop, memory_order_acquire)) {
		controls_settle(&s->controls);
		rcu_thread_offline();
		poll(&fd, 1, 1000);
		rcu_thread_online();
		if (apply_controls(s, handlers_apply_replay))
			tick_replay(s, &result);
	}
	rcu_unregister_thread();
	return NULL;
}

/* Note events that readers opened, and report a failure, or a file that was saved. */
static void check_recording(struct sampler *s)
{
	int code = recording_check(&s->recording);
	char text[256];

	if (saving_check(&s->saving, s->recording.recorder, text, sizeof(text)))
		mailbox_say(&s->mailbox, "trap: %s", text);

	if (s->live.counters)
		recording_note(&s->recording, s->live.counters);
	recording_identify(&s->recording, s->store.objects);
	if (code)
		mailbox_say(&s->mailbox, "recording stopped: %s", strerror(-code));
}

/* Wait for a control or the end of the command. Return true if the target has ended. */
static bool wait_for_control(struct sampler *s, int wait_ms)
{
	struct pollfd fds[] = {
		{ .fd = s->controls.fd, .events = POLLIN },
		{ .fd = s->target.command_fd, .events = POLLIN },
	};

	rcu_thread_offline();
	poll(fds, ARRAY_SIZE(fds), wait_ms);
	rcu_thread_online();
	return fds[1].revents && target_reap(&s->target);
}

/*
 * Sample for nothing until the code that runs is read: a single tick would lack the stacks of its
 * first samples, which are pending.
 */
static void warm_up(struct sampler *s)
{
	uint64_t end_ns = s->ticks.start_ns + WARM_MAX_NS;
	bool warm = false;

	/* Acquire: as in builder_main(). */
	while (!warm && time_now_ns() < end_ns &&
	       !atomic_load_explicit(&s->builder.stop, memory_order_acquire)) {
		rcu_thread_offline();
		poll(NULL, 0, WARM_MS);
		rcu_thread_online();
		warm = tick_skip(s);
	}
	tick_discard(s);
	set_start(s, s->ticks.reset_ns);
}

/* Wait for a control or @next, at most until a collection is due. As wait_for_control(). */
static bool wait_until(struct sampler *s, uint64_t next, uint64_t now)
{
	uint64_t due = MIN(MIN(next, s->collect.due_ns), waiting_due(s));
	int wait_ms = due > now ? (int)MIN((due - now + 999999) / 1000000, (uint64_t)LOOK_MS) : 0;

	bool ended = wait_for_control(s, MIN(wait_ms, s->annotate.waits ? CODE_MS : LOOK_MS));

	now = time_now_ns();
	if (now >= waiting_due(s))
		waiting_look(s, now);
	return ended;
}

static void look_at_readers(struct sampler *s)
{
	uint32_t nr_described = symbols_nr_interpreters(s->store.symbols);
	/* Of all processes of the system, interpreters often start and hardly run. */
	uint32_t nr_found = s->config.target == TARGET_SYSTEM ? 0 : nr_described;

	langreaders_look(&s->live.readers, s->live.counters, s->live.threads, s->live.nr_threads,
			 nr_found, nr_described, &s->mailbox);
}

static void end_tick(struct sampler *s, uint64_t now)
{
	follow_target(s, now);
	reopen_check_cpus(s, now);
	/* A CPU that is back has ended a tick. */
	tick_end(s, time_now_ns());
	check_recording(s);
	handlers_govern(s);
	waiting_govern(s);
	handlers_adapt_stacks(s);
}

static void *builder_main(void *arg)
{
	struct sampler *s = arg;
	uint64_t now, due, slice;

	prctl(PR_SET_NAME, "builder");
	/* Keeps ticks in time where hundreds of tasks are runnable. Refused to most users. */
	setpriority(PRIO_PROCESS, 0, BUILDER_NICE);
	rcu_register_thread();
	waiting_begin(s);
	if (s->config.warm_up)
		warm_up(s);
	now = time_now_ns();
	due = next_tick(s, now);
	slice = next_slice(s, now);
	while (!atomic_load_explicit(&s->builder.stop, memory_order_acquire)) {
		bool ended = wait_until(s, MIN(due, slice), now);

		now = time_now_ns();
		/* Relaxed: the tables themselves are checked. */
		if (atomic_exchange_explicit(&s->live.shared->room_wanted, false,
					     memory_order_relaxed)) {
			waiting_make_room(s);
			tick_make_room(s);
		}
		if (atomic_load_explicit(&s->live.shared->waits_flood, memory_order_relaxed))
			waiting_govern(s);
		recording_hold(&s->recording);
		look_at_readers(s);
		if (apply_controls(s, handlers_apply)) {
			now = time_now_ns(); /* a control may have ended a tick */
			due = MIN(due, s->ticks.last_ns + ANSWER_NS);
		}
		if (ended)
			due = MIN(due, now + ENDED_NS);
		due = MIN(due, add_ns(s->ticks.last_ns, governor_patience(&s->rates.governor)));
		if (annotate_is_due(&s->annotate, s->store.symbols))
			due = MIN(due, now);
		if (now >= due) {
			end_tick(s, now);
			now = time_now_ns();
			due = next_tick(s, now);
			slice = next_slice(s, s->ticks.slice_ns);
		} else if (now >= slice) {
			tick_slice(s, now);
			tick_keep(s, now, false);
			slice = next_slice(s, now);
		}
		recording_release(&s->recording, s->live.counters);
		collect(s, now);
	}
	tick_keep(s, time_now_ns(), true);
	waiting_end(s);
	rcu_unregister_thread();
	return NULL;
}

int builder_start(struct sampler *s, struct err *e)
{
	int code;

	assert(!s->builder.runs);
	memcpy(s->rates.asked_hz, s->rates.hz, sizeof(s->rates.asked_hz));
	rates_govern(&s->rates, &s->config);
	if (s->live.counters && s->rates.governor.climbs)
		handlers_apply_governor(s);
	set_start(s, time_now_ns());
	past_use_events(&s->past, s->store.history, &s->config);
	s->rates.procstat_ns = s->ticks.start_ns;
	rates_restart(&s->rates, s->ticks.start_ns);
	s->rates.mixed = false;
	code = thread_start(&s->builder.id, 0, s->replay ? replay_main : builder_main, s);
	if (code)
		return err_set(e, code, "cannot start the builder thread: %s", strerror(-code));
	s->builder.runs = true;
	return 0;
}

bool builder_stop(struct sampler *s)
{
	if (!s->builder.runs)
		return !s->builder.left;
	atomic_store_explicit(&s->builder.stop, true, memory_order_release);
	if (s->replay)
		replay_stop(s->replay);
	controls_wake(&s->controls);
	s->builder.runs = false;
	/* A recording is read to the end of a part, from files of this user. */
	if (s->replay) {
		symbols_stop_run(s->store.symbols);
		pthread_join(s->builder.id, NULL);
	} else
		s->builder.left = !thread_join_working(s->builder.id, STOP_MS);
	return !s->builder.left;
}
