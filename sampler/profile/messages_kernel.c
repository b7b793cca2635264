// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Messages about the kernel's side: samples lost and throttled, rings, limits, rates, CPUs offline.
 *
 * Runs on: the builder.
 */
#include "sampler/profile/messages_kernel.h"

#include <linux/perf_event.h>
#include <math.h>
#include <stdio.h>

#define RING_LOUD   0.75
#define RING_MAX    (256u << 20)
#define LAG_LOUD_NS 500000000ULL
/* Below, an event is multiplexed; alone it may still be read at different times. */
#define MULTIPLEXED_MAX	      0.99
#define MULTIPLEXED_MAX_ALONE 0.9
#define CPUS_NAMED	      4 /* in a sentence */

/* Return the event with the highest rate; nr_events: all have fixed periods. */
static uint32_t fastest(const struct profile *p)
{
	uint32_t best = p->nr_events;

	for (uint32_t i = 0; i < p->nr_events; i++)
		if (p->events[i].want_hz > 0 &&
		    (best == p->nr_events || p->events[i].want_hz > p->events[best].want_hz))
			best = i;
	return best;
}

/* A rate that the kernel accepts, and does not throttle for an interrupt that is a little early. */
static double within_limit(const struct profile *p)
{
	return MAX(floor((double)p->max_hz / 2), 1.0);
}

void messages_kernel_fix_rate(struct messages *n, const struct profile *p,
			      struct profile_message *e, const char *also)
{
	uint32_t event = fastest(p);
	double hz;

	if (event == p->nr_events) {
		messages_fix(n, e, MESSAGE_NONE, 0, "use a longer period (-c)%s", also);
		return;
	}
	hz = MAX(round(p->events[event].want_hz / 2), 1.0);
	hz = p->max_hz ? MIN(hz, within_limit(p)) : hz;
	messages_fix(n, e, MESSAGE_RATE, hz, "%s the rate of %s to %.0f Hz%s",
		     hz < p->events[event].want_hz / 2 - 1 ? "lower" : "halve",
		     p->events[event].event.name, hz, also);
	e->event = event;
}

/* A ring that can still grow, else a lower rate. */
static void fix_ring(struct messages *n, const struct profile *p, struct profile_message *e)
{
	uint64_t size = 2 * p->ring_size;

	if (!p->ring_size || size > RING_MAX || (n->ring_refused && size >= n->ring_refused)) {
		messages_kernel_fix_rate(n, p, e,
					 "; the ring cannot grow; smaller stack copies "
					 "(--stack-size) need less");
		e->keys = MESSAGE_KEY_STACKS;
		return;
	}
	messages_fix(n, e, MESSAGE_RING_SIZE, (double)size,
		     "double the rings to %llu KiB; or lower the rate (-F), or copy less stack "
		     "(--stack-size)",
		     (unsigned long long)size >> 10);
	e->keys = MESSAGE_KEY_RATE | MESSAGE_KEY_STACKS;
}

/* "CPU 1", "CPUs 0, 1", "12 CPUs": the CPUs with a @value that is not zero. */
static const char *name_cpus(char *buf, size_t size, const struct profile *p,
			     uint64_t (*value)(const struct profile_cpu *cpu))
{
	size_t at = 0;
	uint32_t nr = 0;

	for (uint32_t i = 0; i < p->nr_cpus; i++)
		nr += value(&p->cpus[i]) > 0;
	if (!p->nr_cpus) {
		snprintf(buf, size, "some CPU");
		return buf;
	}
	if (nr > CPUS_NAMED) {
		snprintf(buf, size, "%u CPUs", nr);
		return buf;
	}
	at = (size_t)snprintf(buf, size, nr == 1 ? "CPU" : "CPUs");
	for (uint32_t i = 0, named = 0; i < p->nr_cpus; i++)
		if (value(&p->cpus[i]))
			at += (size_t)snprintf(buf + at, size - at, "%s %d", named++ ? "," : "",
					       p->cpus[i].cpu);
	return buf;
}

static uint64_t lost_of(const struct profile_cpu *cpu)
{
	return cpu->lost;
}

static uint64_t throttled_of(const struct profile_cpu *cpu)
{
	return cpu->throttled + cpu->throttled_ns;
}

static uint64_t offline_of(const struct profile_cpu *cpu)
{
	return !cpu->online;
}

static uint64_t full_of(const struct profile_cpu *cpu)
{
	return cpu->ring_high > RING_LOUD;
}

static uint64_t late_of(const struct profile_cpu *cpu)
{
	return cpu->lag_max_ns > LAG_LOUD_NS;
}

static void note_lost(struct messages *n, const struct profile *p)
{
	struct profile_message *e;
	char cpus[64];

	if (!p->account.lost)
		return;
	name_cpus(cpus, sizeof(cpus), p, lost_of);
	e = messages_note(n, "lost", MESSAGE_GRAVE, p->account.lost, "samples lost on %s", cpus);
	messages_detail(e, "samples lost on %s: the ring was full", cpus);
	fix_ring(n, p, e);
}

static void note_throttled(struct messages *n, const struct profile *p)
{
	uint64_t ns = 0, times = 0;
	struct profile_message *e;
	char cpus[64];

	for (uint32_t i = 0; i < p->nr_cpus; i++) {
		times += p->cpus[i].throttled;
		ns += p->cpus[i].throttled_ns;
	}
	if (!times && !ns)
		return;
	name_cpus(cpus, sizeof(cpus), p, throttled_of);
	e = messages_note(n, "throttled", MESSAGE_GRAVE, times, "throttled on %s", cpus);
	messages_detail(e, "throttled on %s, %.0f ms in the tick: samples of that time are missing",
			cpus, (double)ns / 1e6);
	messages_kernel_fix_rate(n, p, e, ": the kernel pauses events that interrupt too often");
}

/* Samples are nearly lost, or the limits allow only small rings. */
static void note_rings(struct messages *n, const struct profile *p)
{
	struct profile_message *e;
	double high = 0;
	char cpus[64];

	for (uint32_t i = 0; i < p->nr_cpus; i++)
		high = MAX(high, p->cpus[i].ring_high);
	if (high > RING_LOUD && !p->account.lost)
		fix_ring(n, p,
			 messages_note(n, "ring-full", MESSAGE_WARN, 1,
				       "ring of %s was %.0f%% full",
				       name_cpus(cpus, sizeof(cpus), p, full_of), 100 * high));
	n->ring_refused = p->ring_size < p->ring_wanted ? 2 * p->ring_size : 0;
	if (!n->ring_refused)
		return;
	e = messages_note(n, "ring-small", MESSAGE_INFO, messages_begins(n, "ring-small"),
			  "rings of %llu KiB per CPU instead of %llu",
			  (unsigned long long)p->ring_size >> 10,
			  (unsigned long long)p->ring_wanted >> 10);
	messages_detail(e,
			"rings of %llu KiB per CPU instead of %llu: locked memory is limited, and "
			"shared by all profilers of this user",
			(unsigned long long)p->ring_size >> 10,
			(unsigned long long)p->ring_wanted >> 10);
	messages_fix(n, e, MESSAGE_RING_SIZE, (double)p->ring_wanted,
		     "try again after other profilers have ended; or raise 'ulimit -l' or "
		     "kernel.perf_event_mlock_kb");
}

static void note_lag(struct messages *n, const struct profile *p)
{
	struct profile_message *e;
	uint64_t lag = 0;
	char cpus[64];

	for (uint32_t i = 0; i < p->nr_cpus; i++)
		lag = MAX(lag, p->cpus[i].lag_max_ns);
	if (lag <= LAG_LOUD_NS)
		return;
	name_cpus(cpus, sizeof(cpus), p, late_of);
	e = messages_note(n, "lag", MESSAGE_WARN, 1, "samples of %s handled %.1f s late", cpus,
			  (double)lag / 1e9);
	messages_detail(e, "samples of %s handled %.1f s late: proftop gets too little CPU time",
			cpus, (double)lag / 1e9);
	messages_kernel_fix_rate(n, p, e,
				 n->goes_first ? ""
					       : "; or give proftop CAP_SYS_NICE, to run before "
						 "others");
}

static void note_offline(struct messages *n, const struct profile *p)
{
	struct profile_message *e;
	char cpus[64], first[16] = "N";

	for (uint32_t i = p->nr_cpus; i-- > 0;)
		if (!p->cpus[i].online)
			snprintf(first, sizeof(first), "%d", p->cpus[i].cpu);
	if (n->recorded || first[0] == 'N')
		return;
	name_cpus(cpus, sizeof(cpus), p, offline_of);
	e = messages_note(n, "offline", MESSAGE_INFO, messages_begins(n, "offline"), "offline: %s",
			  cpus);
	messages_detail(e, "offline: %s; nothing is sampled there", cpus);
	messages_fix(n, e, MESSAGE_NONE, 0,
		     "'echo 1 >/sys/devices/system/cpu/cpu%s/online'; sampling resumes within "
		     "a second",
		     first);
}

static void note_limit(struct messages *n, const struct profile *p)
{
	uint32_t event = fastest(p);
	struct profile_message *e;

	if (!p->max_hz || p->max_hz >= p->max_hz_top)
		return;
	e = messages_note(n, "max-rate", MESSAGE_WARN, messages_begins(n, "max-rate"),
			  "sample rate limit fell to %llu Hz", (unsigned long long)p->max_hz);
	messages_detail(e,
			"kernel.perf_event_max_sample_rate fell from %llu to %llu: sampling took "
			"the kernel too long",
			(unsigned long long)p->max_hz_top, (unsigned long long)p->max_hz);
	if (event < p->nr_events && p->events[event].want_hz > (double)p->max_hz) {
		messages_fix(n, e, MESSAGE_RATE, within_limit(p),
			     "lower the rate to %.0f Hz; or "
			     "'sudo sysctl kernel.perf_event_max_sample_rate=%llu'",
			     within_limit(p), (unsigned long long)p->max_hz_top);
		e->event = event;
		return;
	}
	messages_fix(n, e, MESSAGE_NONE, 0,
		     "when the load has fallen: "
		     "'sudo sysctl kernel.perf_event_max_sample_rate=%llu'",
		     (unsigned long long)p->max_hz_top);
}

/* Only events of time have a rate that must be reached: others occur as often as they occur. */
static bool is_time(const struct event *ev)
{
	return ev->clock ||
	       (ev->type == PERF_TYPE_HARDWARE && (ev->config == PERF_COUNT_HW_CPU_CYCLES ||
						   ev->config == PERF_COUNT_HW_REF_CPU_CYCLES));
}

/* Only hardware events share counters. */
static void note_multiplexed(struct messages *n, const struct profile *p,
			     const struct profile_event *ev)
{
	const char *name = ev->event.name;
	double share = 100 * ev->running_share;
	struct profile_message *e;
	uint32_t nr = 0;
	char key[24];

	for (uint32_t i = 0; i < p->nr_events; i++)
		nr += p->events[i].event.hardware && p->events[i].enabled;
	/* Times of one event alone may differ by how late they are read. */
	if (!ev->event.hardware || !(ev->running_share > 0) ||
	    ev->running_share >= (nr > 1 ? MULTIPLEXED_MAX : MULTIPLEXED_MAX_ALONE))
		return;
	snprintf(key, sizeof(key), "multiplexed-%.11s", name);
	e = messages_note(n, key, MESSAGE_WARN, messages_begins(n, key),
			  "%.24s: counted %.0f%% of the time", name, share);
	if (nr > 1) {
		messages_detail(e, "%s: counted %.0f%% of the time: more events than counters",
				name, share);
		messages_fix(n, e, MESSAGE_EVENTS, 0, "choose fewer events");
		return;
	}
	messages_detail(e, "%s: counted %.0f%% of the time: the counters are used elsewhere", name,
			share);
	messages_fix(n, e, MESSAGE_NONE, 0,
		     "end other profilers; or 'sudo sysctl kernel.nmi_watchdog=0'");
}

static void note_event(struct messages *n, const struct profile *p, uint32_t index)
{
	const struct profile_event *ev = &p->events[index];
	struct profile_message *e;
	char key[24];

	if (!p->sampling || !ev->enabled)
		return;
	note_multiplexed(n, p, ev);
	if (!is_time(&ev->event) || !(ev->want_hz > 0) || !(ev->got_hz < ev->want_hz * 0.8) ||
	    p->account.taken < MESSAGES_TAKEN_MIN)
		return;
	snprintf(key, sizeof(key), "rate-%.16s", ev->event.name);
	e = messages_note(n, key, MESSAGE_WARN, 1, "%.24s: %.0f Hz wanted, %.0f Hz got",
			  ev->event.name, ev->want_hz, ev->got_hz);
	messages_fix(n, e, MESSAGE_RATE, MAX(floor(ev->got_hz), 1.0),
		     "lower the rate to %.0f Hz, which the kernel delivers",
		     MAX(floor(ev->got_hz), 1.0));
	e->event = index;
}

void messages_kernel(struct messages *n, const struct profile *p)
{
	/* First: whether rings can grow decides the fix against loss. */
	note_rings(n, p);
	note_lost(n, p);
	note_throttled(n, p);
	note_lag(n, p);
	note_offline(n, p);
	note_limit(n, p);
	for (uint32_t i = 0; i < p->nr_events; i++)
		note_event(n, p, i);
}
