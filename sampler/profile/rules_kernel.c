// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the kernel did with the events, as notices: samples lost and
 * throttled, rings, limits, rates, CPUs that are gone.
 *
 * Runs on: the builder.
 */
#include "sampler/profile/rules_kernel.h"

#include <linux/perf_event.h>
#include <math.h>
#include <stdio.h>

#define RING_LOUD   0.75
#define RING_MAX    (256u << 20)
#define LAG_LOUD_NS 500000000ULL
#define CPUS_NAMED  4 /* in a sentence */

/* The event with the highest rate; nr_events: all have fixed periods. */
static uint32_t fastest(const struct profile *p)
{
	uint32_t best = p->nr_events;

	for (uint32_t i = 0; i < p->nr_events; i++)
		if (p->events[i].want_hz > 0 &&
		    (best == p->nr_events || p->events[i].want_hz > p->events[best].want_hz))
			best = i;
	return best;
}

/* More than its limit the kernel refuses; at the limit it throttles what comes but a little too
 * soon. */
static double within_limit(const struct profile *p)
{
	return MAX(floor((double)p->max_hz / 2), 1.0);
}

void rules_kernel_fix_rate(struct notices *n, const struct profile *p, struct profile_notice *e,
			   const char *also)
{
	uint32_t event = fastest(p);
	double hz;

	if (event == p->nr_events) {
		notices_fix(n, e, NOTICE_NONE, 0, "a longer period (-c)%s", also);
		return;
	}
	hz = MAX(round(p->events[event].want_hz / 2), 1.0);
	hz = p->max_hz ? MIN(hz, within_limit(p)) : hz;
	notices_fix(n, e, NOTICE_RATE, hz, "%s the rate of %s to %.0f Hz%s",
		    hz < p->events[event].want_hz / 2 - 1 ? "lower" : "halve",
		    p->events[event].event.name, hz, also);
	e->event = event;
}

/* A ring that can still grow, else a lower rate. */
static void fix_ring(struct notices *n, const struct profile *p, struct profile_notice *e)
{
	uint64_t size = 2 * p->ring_size;

	if (!p->ring_size || size > RING_MAX || (n->ring_refused && size >= n->ring_refused)) {
		rules_kernel_fix_rate(n, p, e,
				      "; the ring cannot grow; smaller stack dumps ({) need less "
				      "of "
				      "it");
		return;
	}
	notices_fix(n, e, NOTICE_RING_SIZE, (double)size,
		    "double the rings to %llu KiB; or a lower rate ([), smaller stack dumps ({)",
		    (unsigned long long)size >> 10);
}

/* "CPU 1", "CPUs 0, 1", "12 CPUs": those that @value is not zero for. */
static const char *name_cpus(char *buf, size_t size, const struct profile *p,
			     uint64_t (*value)(const struct profile_cpu *cpu))
{
	size_t at = 0;
	uint32_t nr = 0;

	for (uint32_t i = 0; i < p->nr_cpus; i++)
		nr += value(&p->cpus[i]) > 0;
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

static void note_lost(struct notices *n, const struct profile *p)
{
	char cpus[64];

	if (p->account.lost)
		fix_ring(n, p,
			 notices_note(n, "lost", NOTICE_GRAVE, p->account.lost,
				      "samples lost on %s: the kernel had no room in the ring",
				      name_cpus(cpus, sizeof(cpus), p, lost_of)));
}

static void note_throttled(struct notices *n, const struct profile *p)
{
	uint64_t ns = 0, times = 0;
	char cpus[64];

	for (uint32_t i = 0; i < p->nr_cpus; i++) {
		times += p->cpus[i].throttled;
		ns += p->cpus[i].throttled_ns;
	}
	if (times || ns)
		rules_kernel_fix_rate(n, p,
				      notices_note(n, "throttled", NOTICE_GRAVE, times,
						   "throttled on %s, %.0f ms in the tick: what ran "
						   "then is missing",
						   name_cpus(cpus, sizeof(cpus), p, throttled_of),
						   (double)ns / 1e6),
				      ": the kernel pauses events that interrupt too often");
}

/* Near to losing samples, or near to it by what the limits allow. */
static void note_rings(struct notices *n, const struct profile *p)
{
	struct profile_notice *e;
	double high = 0;
	char cpus[64];

	for (uint32_t i = 0; i < p->nr_cpus; i++)
		high = MAX(high, p->cpus[i].ring_high);
	if (high > RING_LOUD && !p->account.lost)
		fix_ring(n, p,
			 notices_note(n, "ring-full", NOTICE_WARN, 1,
				      "the ring of %s was %.0f%% full",
				      name_cpus(cpus, sizeof(cpus), p, full_of), 100 * high));
	n->ring_refused = p->ring_size < p->ring_wanted ? 2 * p->ring_size : 0;
	if (!n->ring_refused)
		return;
	e = notices_note(n, "ring-small", NOTICE_INFO, notices_begins(n, "ring-small"),
			 "rings of %llu KiB a CPU, not %llu: locked memory is limited, and other "
			 "profilers of "
			 "this user take of it",
			 (unsigned long long)p->ring_size >> 10,
			 (unsigned long long)p->ring_wanted >> 10);
	notices_fix(n, e, NOTICE_RING_SIZE, (double)p->ring_wanted,
		    "try it once more, when the other has ended; or raise 'ulimit -l', "
		    "or kernel.perf_event_mlock_kb");
}

static void note_lag(struct notices *n, const struct profile *p)
{
	uint64_t lag = 0;
	char cpus[64];

	for (uint32_t i = 0; i < p->nr_cpus; i++)
		lag = MAX(lag, p->cpus[i].lag_max_ns);
	if (lag > LAG_LOUD_NS)
		rules_kernel_fix_rate(n, p,
				      notices_note(n, "lag", NOTICE_WARN, 1,
						   "samples of %s waited up to %.1f s for proftop: "
						   "it "
						   "gets too little CPU",
						   name_cpus(cpus, sizeof(cpus), p, late_of),
						   (double)lag / 1e9),
				      "; CAP_SYS_NICE lets it go first");
}

static void note_offline(struct notices *n, const struct profile *p)
{
	struct profile_notice *e;
	char cpus[64], first[16] = "N";

	for (uint32_t i = p->nr_cpus; i-- > 0;)
		if (!p->cpus[i].online)
			snprintf(first, sizeof(first), "%d", p->cpus[i].cpu);
	if (n->recorded || first[0] == 'N')
		return;
	name_cpus(cpus, sizeof(cpus), p, offline_of);
	e = notices_note(n, "offline", NOTICE_INFO, notices_begins(n, "offline"),
			 "offline: %s, nothing is sampled there", cpus);
	notices_fix(n, e, NOTICE_NONE, 0,
		    "'echo 1 >/sys/devices/system/cpu/cpu%s/online': it is sampled again "
		    "within a second",
		    first);
}

static void note_limit(struct notices *n, const struct profile *p)
{
	uint32_t event = fastest(p);
	struct profile_notice *e;

	if (!p->max_hz || p->max_hz >= p->max_hz_top)
		return;
	e = notices_note(n, "max-rate", NOTICE_WARN, notices_begins(n, "max-rate"),
			 "kernel.perf_event_max_sample_rate fell from %llu to %llu: samples took "
			 "the kernel too long",
			 (unsigned long long)p->max_hz_top, (unsigned long long)p->max_hz);
	if (event < p->nr_events && p->events[event].want_hz > (double)p->max_hz) {
		notices_fix(n, e, NOTICE_RATE, within_limit(p),
			    "go down to %.0f Hz; or "
			    "'sudo sysctl kernel.perf_event_max_sample_rate=%llu'",
			    within_limit(p), (unsigned long long)p->max_hz_top);
		e->event = event;
		return;
	}
	notices_fix(n, e, NOTICE_NONE, 0,
		    "when the machine is calm: "
		    "'sudo sysctl kernel.perf_event_max_sample_rate=%llu'",
		    (unsigned long long)p->max_hz_top);
}

/* Others come as they come: fewer than wanted is no fault. */
static bool is_time(const struct event *ev)
{
	return ev->clock ||
	       (ev->type == PERF_TYPE_HARDWARE && (ev->config == PERF_COUNT_HW_CPU_CYCLES ||
						   ev->config == PERF_COUNT_HW_REF_CPU_CYCLES));
}

static void note_event(struct notices *n, const struct profile *p, uint32_t index)
{
	const struct profile_event *ev = &p->events[index];
	struct profile_notice *e;
	char key[24];

	if (ev->error[0]) {
		snprintf(key, sizeof(key), "event-%.16s", ev->event.name);
		e = notices_note(n, key, NOTICE_GRAVE, notices_begins(n, key),
				 "%s does not sample: %s", ev->event.name, ev->error);
		notices_fix(n, e, NOTICE_EVENTS, 0, "pick an event that can be used here");
		return;
	}
	if (!p->sampling || !ev->enabled)
		return;
	if (ev->running_share < 0.99 && ev->running_share > 0) {
		snprintf(key, sizeof(key), "multiplexed-%.11s", ev->event.name);
		e = notices_note(n, key, NOTICE_WARN, notices_begins(n, key),
				 "%s ran %.0f%% of the time only: more events than the CPU has "
				 "counters",
				 ev->event.name, 100 * ev->running_share);
		notices_fix(n, e, NOTICE_EVENTS, 0, "pick fewer events");
	}
	if (!is_time(&ev->event) || !(ev->want_hz > 0) || !(ev->got_hz < ev->want_hz * 0.8) ||
	    p->account.taken < NOTICES_TAKEN_MIN)
		return;
	snprintf(key, sizeof(key), "rate-%.16s", ev->event.name);
	e = notices_note(n, key, NOTICE_WARN, 1, "%.0f Hz wanted, %.0f got: %s", ev->want_hz,
			 ev->got_hz, ev->event.name);
	notices_fix(n, e, NOTICE_RATE, MAX(floor(ev->got_hz), 1.0),
		    "go down to %.0f Hz, which can be kept", MAX(floor(ev->got_hz), 1.0));
	e->event = index;
}

void rules_kernel(struct notices *n, const struct profile *p)
{
	/* First: whether rings can grow decides what helps against loss. */
	note_rings(n, p);
	note_lost(n, p);
	note_throttled(n, p);
	note_lag(n, p);
	note_offline(n, p);
	note_limit(n, p);
	for (uint32_t i = 0; i < p->nr_events; i++)
		note_event(n, p, i);
}
