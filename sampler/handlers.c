// SPDX-License-Identifier: GPL-2.0-or-later
/* The table of controls, the governor and --stack-size=auto. Runs on: the builder. */
#include "sampler/handlers.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sampler/event/limits.h"
#include "sampler/reopen.h"
#include "sampler/session.h"
#include "sampler/tick.h"
#include "sampler/tick_past.h"
#include "sampler/trapping.h"
#include "sampler/waiting.h"

/* How long to look for interrupts; what is longer is another thread. */
#define SPIN_NS	   2000000ULL
#define GAP_MAX_NS 100000ULL

bool handlers_apply_governor(struct sampler *s)
{
	bool changed = false;
	struct err e;

	rates_mix(&s->rates);
	for (uint32_t i = 0; i < s->config.nr_events; i++) {
		double hz = MAX(s->rates.asked_hz[i] * s->rates.governor.factor, 1.0);

		/* A member that is only counted has no rate. */
		if (!(s->rates.asked_hz[i] > 0) || s->config.events[i].counted)
			continue;
		if (counters_set_rate(s->live.counters, i, hz, &e)) {
			mailbox_add(&s->mailbox, "%s", e.text);
			continue;
		}
		s->rates.hz[i] = hz;
		s->config.events[i].hz = 0;
		changed = true;
	}
	recording_note(&s->recording, s->live.counters);
	return changed;
}

/* Leave the loader the CPU time that it lacks: samples without names are of no use. */
static void govern_starved(struct sampler *s)
{
	double hz = rates_fastest(&s->rates, s->config.nr_events);

	if (hz > 0 && governor_starve(&s->rates.governor, s->ticks.starved, hz))
		handlers_apply_governor(s);
}

/* Lower the rate if interrupts stall the machine, proftop included. */
static void govern_stall(struct sampler *s)
{
	double fastest = rates_fastest(&s->rates, s->config.nr_events), was;

	was = fastest * s->rates.governor.factor;
	if (!governor_stall(&s->rates.governor, s->ticks.span_ns, s->config.tick_ns, fastest) ||
	    !handlers_apply_governor(s))
		return;
	mailbox_add(&s->mailbox,
		    "%.0f Hz stalled this machine (a tick took %.1f s): lowered to %.0f Hz", was,
		    (double)s->ticks.span_ns / 1e9, fastest * s->rates.governor.factor);
}

/*
 * Measure the part of this CPU that interrupts take: read the clock for a while, and sum what is
 * missing between two readings, but for the time of other threads.
 */
static double measure_interrupts(void)
{
	uint64_t begin = time_now_ns(), was = begin, now, least = UINT64_MAX, sum = 0, others = 0;

	do {
		uint64_t gap;

		now = time_now_ns();
		gap = now - was;
		was = now;
		least = MIN(least, MAX(gap, 1));
		if (gap > GAP_MAX_NS)
			others += gap;
		else if (gap > 4 * least)
			sum += gap - least;
	} while (now - begin - others < SPIN_NS && now - begin < 8 * SPIN_NS);
	return now - begin > others ? (double)sum / (double)(now - begin - others) : 0;
}

/* Report why the rate is lower, or that it rose. */
static void say_governed(struct sampler *s, bool lowered)
{
	const struct governor *g = &s->rates.governor;
	double hz = rates_fastest(&s->rates, s->config.nr_events) * g->factor;

	if (!lowered)
		mailbox_add(&s->mailbox, "rate raised to %.0f Hz, %.0f%% of the requested one", hz,
			    100 * g->factor);
	else
		mailbox_add(&s->mailbox,
			    "proftop uses %.1f%% of a CPU, limit %.1f%%%s: rate lowered to %.0f "
			    "Hz, %.0f%% of the requested one",
			    s->ticks.own_pct, g->max_pct, g->is_cap ? " (1/4 of all CPUs)" : "", hz,
			    100 * g->factor);
}

void handlers_govern(struct sampler *s)
{
	const struct profile_account *a = &s->ticks.account;
	struct governor *g = &s->rates.governor;
	double was;

	govern_stall(s);
	govern_starved(s);
	was = g->factor;
	if (g->climbs)
		g->interrupts = measure_interrupts();
	if (!governor_tick(g, s->ticks.span_ns, s->ticks.own_pct, a->taken, a->lost))
		return;
	if (handlers_apply_governor(s))
		say_governed(s, g->factor < was);
}

/* Start again with the requested rates, until they cost too much. */
static void reset_governor(struct sampler *s)
{
	bool lowered = s->rates.governor.factor < 1;

	rates_govern(&s->rates, &s->config);
	if (lowered || s->rates.governor.factor < 1)
		handlers_apply_governor(s);
}

/*
 * Stack copies never shrink again: the size will be needed again, and each change loses some ms of
 * samples.
 */
void handlers_adapt_stacks(struct sampler *s)
{
	double share = messages_truncated(&s->messages);
	char why[64];

	if (!s->config.stack_auto || s->recording.recorder ||
	    s->config.call_graph != CALL_GRAPH_DWARF ||
	    s->config.stack_size >= SAMPLER_STACK_SIZE_MAX || !(share > MESSAGES_TRUNCATED_MAX))
		return;
	snprintf(why, sizeof(why), "%.0f%% of the stacks were truncated: ", 100 * share);
	reopen_stack(s, MIN(2 * s->config.stack_size, SAMPLER_STACK_SIZE_MAX), why);
}

static void set_rate(struct sampler *s, const struct control *c)
{
	struct err e;

	if (c->event >= s->config.nr_events)
		return;
	/* A high rate begins with its first step. */
	if (limits_check_rate(c->hz, &e) ||
	    counters_set_rate(s->live.counters, c->event, MIN(c->hz, GOVERNOR_STALL_HZ), &e)) {
		mailbox_say(&s->mailbox, "%s", e.text);
		return;
	}
	recording_note(&s->recording, s->live.counters);
	rates_mix(&s->rates);
	s->rates.hz[c->event] = MIN(c->hz, GOVERNOR_STALL_HZ);
	s->rates.asked_hz[c->event] = c->hz;
	reset_governor(s);
	s->config.events[c->event].period = 0;
	/* A rate that the user chose is kept. */
	if (s->config.events[c->event].wait)
		s->waiting.limited = false;
	s->config.events[c->event].hz = 0;
	mailbox_say(&s->mailbox, "%s: %.0f Hz%s", s->config.events[c->event].name, c->hz,
		    c->hz > GOVERNOR_STALL_HZ ? ", in steps as far as this machine carries it"
					      : "");
}

static void set_enabled(struct sampler *s, const struct control *c)
{
	const bool on = c->on;
	int code = counters_enable(s->live.counters, on);

	if (code) {
		mailbox_say(&s->mailbox, "cannot %s sampling: %s", on ? "start" : "stop",
			    strerror(-code));
		return;
	}
	s->rates.enabled = on;
	rates_mix(&s->rates);
	waiting_begin(s);
	mailbox_say(&s->mailbox,
		    on ? "sampling" : "sampling stopped: it costs nothing now; S starts it again");
}

/* Keep events off that were off and are in the new list. */
static void carry_off(struct sampler *s, const struct event *events, uint32_t nr)
{
	bool off[EVENTS_MAX] = { false };

	for (uint32_t i = 0; i < nr; i++)
		for (uint32_t k = 0; k < s->config.nr_events; k++)
			if (event_same(&s->config.events[k], &events[i]))
				off[i] = s->rates.off[k];
	memcpy(s->rates.off, off, sizeof(off));
}

/* List the events that fit in a message. */
static void say_events(struct sampler *s)
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
	mailbox_say(&s->mailbox, "sampling %s%s", text,
		    c->nr_events > 1 ? " (E shows the next one)" : "");
}

/* Open other events; without the right to the kernel, of user code, as at the start. */
static int open_events(struct sampler *s, struct event *events, uint32_t nr)
{
	struct err e, later;
	int code = counters_set_events(s->live.counters, events, nr, s->config.hz, &e);

	if ((code == -EACCES || code == -EPERM) && s->config.target != TARGET_SYSTEM &&
	    config_user_only(events, nr)) {
		code = counters_set_events(s->live.counters, events, nr, s->config.hz, &later);
		if (!code && !strstr(s->banner, CONFIG_USER_ONLY))
			session_add_banner(s, CONFIG_USER_ONLY);
	}
	if (code)
		mailbox_say(&s->mailbox, "%s", e.text);
	return code;
}

/* Sample other events. Slots change their meaning, so the tick ends and counts start from zero. */
static void set_events(struct sampler *s, const struct control *c)
{
	struct event events[EVENTS_MAX];
	uint32_t nr = MIN(c->events.nr, (uint32_t)EVENTS_MAX);

	if (nr == 0)
		return;
	memcpy(events, c->events.list, nr * sizeof(events[0]));
	tick_end(s, time_now_ns());
	if (open_events(s, events, nr))
		return;
	recording_note(&s->recording, s->live.counters);
	for (uint32_t i = 0; i < nr; i++) {
		double hz = config_hz(&s->config, &events[i]);

		for (uint32_t k = 0; k < s->config.nr_events; k++)
			if (!strcmp(s->config.events[k].name, events[i].name))
				hz = s->rates.asked_hz[k];
		s->rates.hz[i] = hz;
	}
	carry_off(s, events, nr);
	memcpy(s->config.events, events, nr * sizeof(events[0]));
	s->config.nr_events = nr;
	/* An event that is opened again for its group is on at first. */
	for (uint32_t i = 0; i < nr; i++)
		if (s->rates.off[i])
			counters_enable_event(s->live.counters, i, false);
	memcpy(s->rates.asked_hz, s->rates.hz, sizeof(s->rates.asked_hz));
	reset_governor(s);
	waiting_begin(s);
	tick_discard(s);
	say_events(s);
}

static void enable_event(struct sampler *s, const struct control *c)
{
	int code;

	if (c->event >= s->config.nr_events)
		return;
	code = counters_enable_event(s->live.counters, c->event, c->on);
	if (code) {
		mailbox_say(&s->mailbox, "cannot turn %s %s: %s", s->config.events[c->event].name,
			    c->on ? "on" : "off", strerror(-code));
		return;
	}
	assert(c->kind == CONTROL_EVENT_ENABLE);
	s->rates.off[c->event] = !c->on;
	rates_mix(&s->rates);
	mailbox_say(&s->mailbox, "%s %s", s->config.events[c->event].name,
		    c->on ? "is sampled" : "is off: no overhead");
}

static void set_window(struct sampler *s, const struct control *c)
{
	s->ticks.window = c->window;
}

/* Show other frames. Counts have all of them, so the next profile does too. */
static void set_frames(struct sampler *s, const struct control *c)
{
	static const char *const words[FRAMES_NR] = {
		[FRAMES_LANGUAGE] = "frames of languages, without frames of their interpreters",
		[FRAMES_BOTH] = "frames of languages and of their interpreters",
		[FRAMES_NATIVE] = "native frames only",
	};

	if ((unsigned int)c->frames >= FRAMES_NR)
		return;
	s->config.shown_frames = c->frames;
	mailbox_say(&s->mailbox, "showing %s", words[c->frames]);
}

static void set_tick(struct sampler *s, const struct control *c)
{
	s->ticks.period_ns = c->tick_ns;
}

static void reset(struct sampler *s, const struct control *c)
{
	(void)c;
	tick_discard(s);
}

static void probe_events(struct sampler *s, const struct control *c)
{
	bool system = s->target.kind == TARGET_SYSTEM;

	(void)c;
	event_states_probe(&s->events, system ? -1 : 0, counters_cpu(s->live.counters, 0)->cpu,
			   s->config.events[0].kernel);
}

/* Do nothing: the UI stored the value, or the loader has the request; a tick shows the result. */
static void only_tick(struct sampler *s, const struct control *c)
{
	(void)s;
	(void)c;
}

static void set_stack(struct sampler *s, const struct control *c)
{
	s->config.stack_auto = c->stack.is_auto;
	/* They never shrink by themselves. */
	if (c->stack.is_auto && s->config.call_graph == CALL_GRAPH_DWARF &&
	    s->config.stack_size >= c->stack.size)
		mailbox_say(&s->mailbox, "stack copies grow as needed: %u bytes now",
			    s->config.stack_size);
	else
		reopen_stack(s, c->stack.size, "");
}

static void set_call_graph(struct sampler *s, const struct control *c)
{
	reopen_call_graph(s, c->call_graph);
}

static void set_ring(struct sampler *s, const struct control *c)
{
	reopen_ring(s, c->size);
}

static void set_target(struct sampler *s, const struct control *c)
{
	reopen_target(s, c->spec);
}

static void set_cpus(struct sampler *s, const struct control *c)
{
	reopen_cpus(s, c->spec);
}

static void set_focus(struct sampler *s, const struct control *c)
{
	reopen_focus(s, c->pid);
}

static void set_strip(struct sampler *s, const struct control *c)
{
	strip_filter_set(&s->past.strip, c->strip);
	tick_past_strip(s, true);
}

static void set_trap(struct sampler *s, const struct control *c)
{
	if (!c->rule) {
		traps_clear(&s->traps);
		s->trapped.nr = 0;
		mailbox_say(&s->mailbox, "traps removed");
	} else if (traps_add(&s->traps, c->rule)) {
		mailbox_say(&s->mailbox, "too many traps: at most %d (':trap off' removes all)",
			    TRAP_RULES_MAX);
	} else {
		mailbox_say(&s->mailbox, "trap set: %s", c->rule->text);
	}
	controls_free(c);
}

static void list_traps(struct sampler *s, const struct control *c)
{
	char text[256];

	mailbox_say(&s->mailbox, "%s", traps_list(&s->traps, text, sizeof(text)));
}

static void show_past(struct sampler *s, const struct control *c)
{
	s->past.begin_ns = c->past.begin_ns;
	s->past.end_ns = c->past.end_ns;
	tick_past_post(s);
}

void handlers_apply(struct sampler *s, const struct control *c)
{
	static void (*const handlers[CONTROL_NR])(struct sampler * s, const struct control *c) = {
		[CONTROL_RATE] = set_rate,
		[CONTROL_ENABLE] = set_enabled,
		[CONTROL_EVENTS] = set_events,
		[CONTROL_WINDOW] = set_window,
		[CONTROL_TICK] = set_tick,
		[CONTROL_RESET] = reset,
		[CONTROL_ANNOTATE] = only_tick,
		[CONTROL_FETCH] = only_tick,
		[CONTROL_PROBE] = probe_events,
		[CONTROL_EVENT_ENABLE] = enable_event,
		[CONTROL_STACK] = set_stack,
		[CONTROL_RING] = set_ring,
		[CONTROL_TARGET] = set_target,
		[CONTROL_FOCUS] = set_focus,
		[CONTROL_CALL_GRAPH] = set_call_graph,
		[CONTROL_CPUS] = set_cpus,
		[CONTROL_STRIP] = set_strip,
		[CONTROL_PAST] = show_past,
		[CONTROL_TRAP] = set_trap,
		[CONTROL_TRAPS] = list_traps,
		[CONTROL_FRAMES] = set_frames,
	};

	assert(c->kind < CONTROL_NR && handlers[c->kind]);
	handlers[c->kind](s, c);
}

void handlers_apply_replay(struct sampler *s, const struct control *c)
{
	if (c->kind == CONTROL_STRIP || c->kind == CONTROL_PAST || c->kind == CONTROL_TRAPS) {
		handlers_apply(s, c);
		return;
	}
	if (c->kind == CONTROL_TRAP) {
		set_trap(s, c);
		trapping_again(s);
		return;
	}
	controls_free(c);
	switch (c->kind) {
	case CONTROL_WINDOW:
		s->ticks.window = c->window;
		break;
	case CONTROL_FRAMES:
		set_frames(s, c);
		break;
	case CONTROL_FETCH:
		symbols_run(s->store.symbols); /* a replay has no loader thread */
		break;
	case CONTROL_TICK:
	case CONTROL_PROBE:
	case CONTROL_ANNOTATE:
		break;
	default:
		mailbox_say(&s->mailbox, "not available when replaying a recording");
		break;
	}
}
