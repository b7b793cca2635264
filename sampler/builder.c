// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The builder thread: ends ticks, applies what the UI asks for.
 *
 * It is an urcu-qsbr reader, offline while it waits. The first ticks come
 * soon after the start, so that the screen has rows within a quarter of a
 * second; then one a tick_ns, on a fixed grid.
 */
#include "sampler/session.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>
#include <urcu-qsbr.h>

#include "sampler/annotate.h"

/* A control is answered by a short tick, this long after the last one at the earliest. */
#define ANSWER_NS 20000000ULL
/* The tick after the end of a command: its last samples get their stacks and names meanwhile. */
#define ENDED_NS     300000000ULL
#define BUILDER_NICE (-5)
/* How often it is looked for code that is being read. */
#define CODE_MS 10

/* When the first profiles come, after the start. */
static const uint64_t early_ns[] = { 120000000, 250000000, 500000000 };

double event_hz(const struct sampler *s, const struct event *ev)
{
	if (ev->period || ev->counted)
		return 0;
	if (ev->hz > 0)
		return ev->hz;
	return s->config.period ? 0 : s->config.hz;
}

/* All rates at the governor's share of what was asked for. */
static void apply_governor(struct sampler *s)
{
	struct err e;

	tick_mix_rate(s);
	for (uint32_t i = 0; i < s->config.nr_events; i++) {
		double hz = MAX(s->asked_hz[i] * s->governor.factor, 1.0);

		if (!(s->asked_hz[i] > 0) || counters_set_rate(s->counters, i, hz, &e))
			continue;
		s->hz[i] = hz;
		s->config.events[i].hz = 0;
	}
	recording_note(s);
}

/* So many interrupts that not even we get to run, and no key gets through. */
static void govern_stall(struct sampler *s)
{
	double fastest = 0, was;

	for (uint32_t i = 0; i < s->config.nr_events; i++)
		fastest = MAX(fastest, s->asked_hz[i]);
	was = fastest * s->governor.factor;
	if (!governor_stall(&s->governor, s->tick_span_ns, s->config.tick_ns, fastest))
		return;
	apply_governor(s);
	tick_message(s, "%.0f Hz stalled this machine (a tick took %.1f s): lowered to %.0f Hz",
		     was, (double)s->tick_span_ns / 1e9, fastest * s->governor.factor);
}

/* After each tick: is it too much, or calm again? */
static void govern(struct sampler *s)
{
	const struct profile_account *a = &s->tick_account;
	double was;

	govern_stall(s);
	was = s->governor.factor;

	if (!governor_tick(&s->governor, s->tick_span_ns, s->tick_pct, a->taken, a->lost))
		return;
	apply_governor(s);
	if (s->governor.factor < was)
		tick_message(s,
			     "own cost %.1f%% of a CPU, limit %.1f%%: rate lowered to %.0f Hz, "
			     "%.0f%% of "
			     "what was asked for",
			     s->tick_pct, s->governor.max_pct, s->hz[0], 100 * s->governor.factor);
	else
		tick_message(s, "calm again: rate raised to %.0f Hz, %.0f%% of what was asked for",
			     s->hz[0], 100 * s->governor.factor);
}

/* What the user wants now counts in full, until it costs too much. */
static void reset_governor(struct sampler *s)
{
	bool lowered = s->governor.factor < 1;

	governor_init(&s->governor, s->config.max_overhead_pct);
	if (lowered)
		apply_governor(s);
}

/*
 * --stack-size=auto: larger dumps, while too many stacks are cut short. Never smaller ones again:
 * what was needed once will be needed again, and each change costs some ms of samples.
 */
static void adapt_stacks(struct sampler *s)
{
	double share = notices_truncated(&s->notices);
	char why[64];

	if (!s->config.stack_auto || s->recorder || s->config.call_graph != CALL_GRAPH_DWARF ||
	    s->config.stack_size >= SAMPLER_STACK_SIZE_MAX || !(share > NOTICES_TRUNCATED_MAX))
		return;
	snprintf(why, sizeof(why), "%.0f%% of the stacks were cut short: ", 100 * share);
	reopen_stack(s, MIN(2 * s->config.stack_size, SAMPLER_STACK_SIZE_MAX), why);
}

static void set_rate(struct sampler *s, const struct control *c)
{
	struct err e;

	if (c->event >= s->config.nr_events)
		return;
	if (counters_set_rate(s->counters, c->event, c->hz, &e)) {
		tick_message(s, "%s", e.text);
		return;
	}
	recording_note(s);
	tick_mix_rate(s);
	s->hz[c->event] = s->asked_hz[c->event] = c->hz;
	reset_governor(s);
	s->config.events[c->event].period = 0;
	s->config.events[c->event].hz = 0;
	tick_message(s, "%s: %.0f Hz%s", s->config.events[c->event].name, c->hz,
		     c->hz > GOVERNOR_STALL_HZ ? "; lowered by itself if it stalls the machine"
					       : "");
}

static void set_enabled(struct sampler *s, bool on)
{
	int code = counters_enable(s->counters, on);

	if (code) {
		tick_message(s, "cannot %s sampling: %s", on ? "start" : "stop", strerror(-code));
		return;
	}
	s->enabled = on;
	tick_mix_rate(s);
	tick_message(s,
		     on ? "sampling" : "sampling stopped: it costs nothing now; S starts it again");
}

/* Events that stay and were turned off stay off. */
static void carry_off(struct sampler *s, const struct control *c, uint32_t nr)
{
	bool off[EVENTS_MAX] = { false };

	for (uint32_t i = 0; i < nr; i++)
		for (uint32_t k = 0; k < s->config.nr_events; k++)
			if (event_same(&s->config.events[k], &c->events[i]))
				off[i] = s->event_off[k];
	memcpy(s->event_off, off, sizeof(off));
}

/* Their names, as far as there is room. */
static void tell_events(struct sampler *s)
{
	const struct sampler_config *c = &s->config;
	char text[200];
	size_t n = 0;

	for (uint32_t i = 0; i < c->nr_events && n < sizeof(text); i++) {
		if (i && n + strlen(c->events[i].name) + 16 > sizeof(text)) {
			snprintf(text + n, sizeof(text) - n, " and %u more", c->nr_events - i);
			break;
		}
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", i ? ", " : "",
				      c->events[i].name);
	}
	tick_message(s, "sampled now: %s%s", text,
		     c->nr_events > 1 ? " (E shows the next one)" : "");
}

/* A new set of events: slots change their meaning, so the tick ends and the counts start anew. */
static void set_events(struct sampler *s, const struct control *c)
{
	struct err e;
	uint32_t nr = MIN(c->nr_events, (uint32_t)EVENTS_MAX);

	if (nr == 0)
		return;
	tick_end(s, time_now_ns());
	if (counters_set_events(s->counters, c->events, nr, s->config.hz, &e)) {
		tick_message(s, "%s", e.text);
		return;
	}
	recording_note(s);
	for (uint32_t i = 0; i < nr; i++) {
		double hz = event_hz(s, &c->events[i]);

		for (uint32_t k = 0; k < s->config.nr_events; k++)
			if (!strcmp(s->config.events[k].name, c->events[i].name))
				hz = s->asked_hz[k];
		s->event_error[i][0] = '\0';
		s->hz[i] = hz;
	}
	carry_off(s, c, nr);
	memcpy(s->config.events, c->events, nr * sizeof(c->events[0]));
	s->config.nr_events = nr;
	/* One that is opened anew for its group is on at first. */
	for (uint32_t i = 0; i < nr; i++)
		if (s->event_off[i])
			counters_enable_event(s->counters, i, false);
	memcpy(s->asked_hz, s->hz, sizeof(s->asked_hz));
	reset_governor(s);
	tick_discard(s);
	tell_events(s);
}

static void enable_event(struct sampler *s, const struct control *c)
{
	int code;

	if (c->event >= s->config.nr_events)
		return;
	code = counters_enable_event(s->counters, c->event, c->on);
	if (code) {
		tick_message(s, "cannot turn %s %s: %s", s->config.events[c->event].name,
			     c->on ? "on" : "off", strerror(-code));
		return;
	}
	s->event_off[c->event] = !c->on;
	tick_mix_rate(s);
	tick_message(s, "%s %s", s->config.events[c->event].name,
		     c->on ? "is sampled" : "is off: it costs nothing now");
}

static struct event_states *new_states(void)
{
	struct event_states *es = xcalloc(1, sizeof(*es));

	event_list_init(&es->list, "");
	es->codes = xcalloc(es->list.nr, sizeof(*es->codes));
	for (uint32_t i = 0; i < es->list.nr; i++)
		atomic_init(&es->codes[i], 1);
	return es;
}

/* List all events of this machine, try each once; the picker shows the answers. */
static void probe_events(struct sampler *s)
{
	struct event_states *es;
	pid_t pid = s->target.kind == TARGET_SYSTEM ? -1 : 0;
	int cpu = counters_cpu(s->counters, 0)->cpu, code = 0;
	bool tracepoint = false;
	struct event ev;

	if (atomic_load_explicit(&s->event_states, memory_order_relaxed))
		return;
	es = new_states();
	/* Release: pairs with sampler_event_states(). */
	atomic_store_explicit(&s->event_states, es, memory_order_release);
	for (uint32_t i = 0; i < es->list.nr; i++) {
		const struct event_info *info = &es->list.infos[i];

		/* Opening a tracepoint waits for all CPUs: what one says, all say. */
		if (!tracepoint || strcmp(info->group, EVENT_GROUP_TRACEPOINTS)) {
			code = event_parse(&ev, info->name, NULL);
			tracepoint = !strcmp(info->group, EVENT_GROUP_TRACEPOINTS);
			if (!code) {
				ev.kernel &= s->config.events[0].kernel;
				code = event_probe(&ev, pid, pid < 0 ? cpu : -1);
			}
		}
		atomic_store_explicit(&es->codes[i], code, memory_order_relaxed);
	}
}

static void apply(struct sampler *s, const struct control *c)
{
	switch (c->kind) {
	case CONTROL_RATE:
		set_rate(s, c);
		break;
	case CONTROL_ENABLE:
		set_enabled(s, c->on);
		break;
	case CONTROL_EVENTS:
		set_events(s, c);
		break;
	case CONTROL_WINDOW:
		s->window = c->window;
		break;
	case CONTROL_TICK:
		s->tick_ns = c->tick_ns;
		break;
	case CONTROL_RESET:
		tick_discard(s);
		break;
	case CONTROL_PROBE:
		probe_events(s);
		break;
	case CONTROL_FETCH: /* the loader has it */
		break;
	case CONTROL_ANNOTATE: /* it is in s->annotate; this asks for a tick */
		break;
	case CONTROL_EVENT_ENABLE:
		enable_event(s, c);
		break;
	case CONTROL_STACK:
		s->config.stack_auto = false;
		reopen_stack(s, c->size, "");
		break;
	case CONTROL_CALL_GRAPH:
		reopen_call_graph(s, c->call_graph);
		break;
	case CONTROL_RING:
		reopen_ring(s, c->size);
		break;
	case CONTROL_TARGET:
		reopen_target(s, c->spec);
		break;
	case CONTROL_CPUS:
		reopen_cpus(s, c->spec);
		break;
	case CONTROL_FOCUS:
		reopen_focus(s, c->pid);
		break;
	}
}

/* Apply all requests that wait. True if the screen should hear of it now. */
static bool apply_controls(struct sampler *s,
			   void (*fn)(struct sampler *s, const struct control *c))
{
	struct control items[CONTROLS_MAX];
	uint64_t sink;
	uint32_t nr;

	if (read(s->control_fd, &sink, sizeof(sink)) < 0 && errno != EAGAIN)
		return false;
	pthread_mutex_lock(&s->controls.lock);
	nr = s->controls.nr;
	memcpy(items, s->controls.items, nr * sizeof(items[0]));
	s->controls.nr = 0;
	pthread_mutex_unlock(&s->controls.lock);
	for (uint32_t i = 0; i < nr; i++)
		fn(s, &items[i]);
	return nr > 0;
}

/* When the tick after @now ends. */
static uint64_t next_tick(const struct sampler *s, uint64_t now)
{
	uint64_t age = now - s->start_ns;

	if (!s->config.exact_ticks)
		for (size_t i = 0; i < ARRAY_SIZE(early_ns); i++)
			if (age < early_ns[i] && early_ns[i] < s->tick_ns)
				return s->start_ns + early_ns[i];
	/* After a stop (SIGSTOP) the grid may be just ahead: no tick of a few ms then. */
	return s->start_ns + ((age + s->tick_ns / 4) / s->tick_ns + 1) * s->tick_ns;
}

static void replay_control(struct sampler *s, const struct control *c)
{
	spec_free(c->spec);
	if (c->kind == CONTROL_WINDOW)
		s->window = c->window;
	else if (c->kind == CONTROL_FETCH)
		symbols_run(s->symbols); /* to its end: no loader is at it beside us */
	else if (c->kind != CONTROL_TICK && c->kind != CONTROL_PROBE && c->kind != CONTROL_ANNOTATE)
		tick_message(s, "this is a recording: it cannot be steered");
}

/* A recording: all of it at once, then the same profile for whatever the UI asks. */
static void *replay_main(void *arg)
{
	struct sampler *s = arg;
	struct pollfd fd = { .fd = s->control_fd, .events = POLLIN };
	struct replay_result result;

	prctl(PR_SET_NAME, "replay");
	rcu_register_thread();
	if (replay_run(s->replay, s, &result))
		tick_message(s, "out of memory: the recording was not read to its end");
	tick_replay(s, &result);
	while (!atomic_load_explicit(&s->stop, memory_order_acquire)) {
		rcu_thread_offline();
		poll(&fd, 1, 1000);
		rcu_thread_online();
		if (apply_controls(s, replay_control))
			tick_replay(s, &result);
	}
	rcu_unregister_thread();
	return NULL;
}

/* Wait for a control or the end of the command. Return true if the target has ended. */
static bool wait_for_control(struct sampler *s, int wait_ms)
{
	struct pollfd fds[] = {
		{ .fd = s->control_fd, .events = POLLIN },
		{ .fd = s->target.command_fd, .events = POLLIN },
	};

	rcu_thread_offline();
	poll(fds, ARRAY_SIZE(fds), wait_ms);
	rcu_thread_online();
	return fds[1].revents && target_reap(&s->target);
}

static void *builder_main(void *arg)
{
	struct sampler *s = arg;
	uint64_t now = time_now_ns(), due = next_tick(s, now);

	prctl(PR_SET_NAME, "builder");
	/* Ticks in time where hundreds wait for a CPU. Refused to most users. */
	setpriority(PRIO_PROCESS, 0, BUILDER_NICE);
	rcu_register_thread();
	while (!atomic_load_explicit(&s->stop, memory_order_acquire)) {
		int wait_ms = due > now ? (int)((due - now + 999999) / 1000000) : 0;
		bool ended = wait_for_control(s, MIN(wait_ms, s->annotate_waits ? CODE_MS : 1000));

		now = time_now_ns();
		/* Relaxed: how full the tables are is looked at anew. */
		if (atomic_exchange_explicit(&s->shared->room_wanted, false, memory_order_relaxed))
			tick_make_room(s);
		if (ended)
			due = MIN(due, now + ENDED_NS);
		if (apply_controls(s, apply))
			due = MIN(due, s->last_tick_ns + ANSWER_NS);
		if (annotate_is_due(s))
			due = MIN(due, now);
		if (now >= due) {
			target_update(s, now);
			reopen_check_cpus(s, now);
			recording_check(s);
			tick_end(s, now);
			govern(s);
			adapt_stacks(s);
			now = time_now_ns();
			due = next_tick(s, now);
		}
	}
	rcu_unregister_thread();
	return NULL;
}

int builder_start(struct sampler *s, struct err *e)
{
	sigset_t all, old;
	int code;

	memcpy(s->asked_hz, s->hz, sizeof(s->asked_hz));
	governor_init(&s->governor, s->config.max_overhead_pct);
	s->start_ns = time_now_ns();
	s->last_tick_ns = s->reset_ns = s->rate.since_ns = s->busy_ns = s->start_ns;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	code = pthread_create(&s->builder, NULL, s->replay ? replay_main : builder_main, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (code)
		return err_set(e, -code, "cannot start the builder thread: %s", strerror(code));
	s->builder_runs = true;
	return 0;
}

void builder_stop(struct sampler *s)
{
	const uint64_t one = 1;

	if (!s->builder_runs)
		return;
	atomic_store_explicit(&s->stop, true, memory_order_release);
	if (write(s->control_fd, &one, sizeof(one)) == sizeof(one))
		pthread_join(s->builder, NULL);
	s->builder_runs = false;
}

void session_stop(struct sampler *s)
{
	builder_stop(s);
	for (uint32_t i = 0; i < s->nr_threads; i++)
		sampler_thread_stop(s->threads[i]);
	s->nr_threads = 0;
}
