// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The got rate: samples that the kernel took, by the time in which it could take them.
 *
 * Runs on: the builder.
 */
#include "sampler/rates.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A CPU counts for the got rate when it was busy for at least this share. */
#define BUSY_MIN 0.05
/* Shorter stretches say nothing: /proc/stat counts in 10 ms. */
#define RATE_MIN_NS 200000000ULL
/* Samples, taken or expected, and busy time behind a rate: exact to 10 or 20 %. */
#define SAMPLES_MIN 20
#define SECONDS_MIN 0.1
/* Without these a rate is shown for so long after it was measured, and looked for so long. */
#define SHOWN_MAX_NS   2000000000ULL
#define STRETCH_MAX_NS 30000000000ULL

void rates_init(struct rates *r, const struct sampler_config *config)
{
	for (uint32_t i = 0; i < EVENTS_MAX; i++) {
		r->hz[i] = config_hz(config, &config->events[i]);
		r->got_hz[i] = NAN;
	}
}

double rates_fastest(const struct rates *r, uint32_t nr_events)
{
	double fastest = 0;

	for (uint32_t i = 0; i < nr_events; i++)
		fastest = MAX(fastest, r->asked_hz[i]);
	return fastest;
}

void rates_govern(struct rates *r, const struct sampler_config *config)
{
	long nr = sysconf(_SC_NPROCESSORS_ONLN);

	governor_init(&r->governor, config->max_overhead_pct, (uint32_t)MAX(nr, 1L),
		      rates_fastest(r, config->nr_events));
	/* Without a screen the requested rate is the rate of the first tick. */
	if (!config->exact_ticks)
		governor_climb(&r->governor, rates_fastest(r, config->nr_events));
}

int rates_open(struct rates *r, struct err *e)
{
	return procstat_new(&r->procstat, "", e);
}

void rates_close(struct rates *r)
{
	procstat_free(r->procstat);
	free(r->cpus);
}

struct rates_cpu *rates_new_cpus(uint32_t nr)
{
	struct rates_cpu *cpus = xcalloc(nr, sizeof(*cpus));

	for (uint32_t i = 0; i < nr; i++)
		for (int k = 0; k < EVENTS_MAX; k++)
			cpus[i].got_hz[k] = NAN;
	return cpus;
}

/* Times of a counter that was opened again restart. */
static uint64_t grown(uint64_t now, uint64_t seen)
{
	return now > seen ? now - seen : 0;
}

static uint64_t samples_of_all(const struct rates_tick *t, const struct sampler_thread_stats *stats)
{
	uint64_t nr = 0;

	for (uint32_t i = 0; i < t->nr_events; i++)
		nr += stats->samples.by_event[i];
	return nr;
}

/*
 * The counters are read when the tick ends, the ring was read a little before. The samples still in
 * it are estimated by their bytes: a share of the tick's time would not do, as a task may have run
 * in that little while alone.
 */
static double samples_queued(const struct rates_tick *t, struct rates_cpu *rc,
			     const struct sampler_thread_stats *stats)
{
	uint64_t nr = samples_of_all(t, stats);

	if (stats->handled > rc->handled) {
		if (nr)
			rc->bytes_a_sample = (double)(stats->handled - rc->handled) / (double)nr;
		rc->handled = stats->handled;
	}
	if (rc->bytes_a_sample <= 0 || rc->written <= rc->handled)
		return 0;
	return (double)MIN(rc->written - rc->handled, t->ring_size) / rc->bytes_a_sample;
}

/* Samples of @event that the kernel took in busy time, from one reading of the counters to the
 * next. */
static double samples_taken(const struct rates_tick *t, struct rates_cpu *rc,
			    const struct sampler_thread_stats *stats, uint32_t event, double queued,
			    uint64_t lost)
{
	uint64_t nr = stats->samples.by_event[event], all = samples_of_all(t, stats);
	/* Events that count in the idle task: its samples belong to no busy time. */
	uint64_t idle = t->is_part ? 0 : stats->samples.idle[event];
	double was = rc->queued[event];

	assert(idle <= nr && nr <= all);
	rc->queued[event] = queued * (all ? (double)nr / (double)all : 1.0 / t->nr_events);
	return (double)(nr - idle + lost) + rc->queued[event] - was;
}

/* Seconds of @cpu in which @event could take samples, since the last tick. */
static double busy_seconds(const struct rates_tick *t, const struct profile_cpu *cpu,
			   uint64_t ran_ns)
{
	/* Events of tasks and cgroups run while the tasks do; events of a CPU always do. */
	if (t->is_part)
		return (double)ran_ns / 1e9;
	return cpu->online && cpu->busy >= BUSY_MIN ? cpu->busy * (double)ran_ns / 1e9 : 0;
}

/* Fill @ev from the counter of one event on one CPU. Returns the samples lost since the last tick.
 */
static uint64_t add_counter(struct rates *r, const struct rates_tick *t, struct rates_cpu *rc,
			    uint32_t event, struct profile_cpu_event *ev)
{
	const struct counters_value *v = &rc->now[event];
	uint64_t count;

	r->enabled_ns[event] += v->enabled_ns;
	r->running_ns[event] += v->running_ns;
	ev->enabled_ns = grown(v->enabled_ns, rc->enabled_seen[event]);
	ev->running_ns = grown(v->running_ns, rc->running_seen[event]);
	/* The time a task's event waited for its CPU says nothing about counters. */
	if (t->is_tasks)
		ev->enabled_ns = ev->running_ns;
	count = grown(v->count, rc->count_seen[event]);
	if (ev->running_ns)
		r->count[event] += (double)count * (double)ev->enabled_ns / (double)ev->running_ns;
	rc->count_seen[event] = v->count;
	rc->enabled_seen[event] = v->enabled_ns;
	rc->running_seen[event] = v->running_ns;
	return t->lost_known ? lost_since(&rc->lost, event, v->lost) : 0;
}

static void add_sum(struct rates_sum *sum, double got, double seconds)
{
	sum->got += got;
	sum->seconds += seconds;
}

void rates_add_cpu(struct rates *r, const struct rates_tick *t, uint32_t index,
		   const struct sampler_thread_stats *stats, struct profile_cpu *cpu,
		   struct profile_cpu_event *events)
{
	struct rates_cpu *rc = &r->cpus[index];
	double queued = samples_queued(t, rc, stats), busy, taken;
	uint64_t lost = 0;

	for (uint32_t i = 0; i < t->nr_events; i++) {
		struct profile_cpu_event *ev = &events[i];

		ev->samples = stats->samples.by_event[i];
		ev->got_hz = rc->got_hz[i];
		if (!rc->known[i])
			continue;
		ev->lost = add_counter(r, t, rc, i, ev);
		lost += ev->lost;
		taken = samples_taken(t, rc, stats, i, queued, ev->lost);
		busy = busy_seconds(t, cpu, ev->running_ns);
		if (busy <= 0)
			continue;
		add_sum(&r->sums[i], taken, busy);
		add_sum(&rc->sums[i], taken, busy);
	}
	lost_add(&rc->lost, cpu, t->lost_known ? lost : stats->lost_records);
}

/* Return the rate of @sum, else @was or NAN; begins the next stretch when this one is used up. */
static double measure(struct rates_sum *sum, double was, double want_hz, uint64_t now_ns)
{
	uint64_t age_ns = now_ns - MIN(sum->since_ns, now_ns);
	bool enough = sum->seconds >= SECONDS_MIN &&
		      MAX(sum->got, want_hz * sum->seconds) >= SAMPLES_MIN;
	double hz;

	if (age_ns < RATE_MIN_NS)
		return was;
	if (!enough && age_ns < STRETCH_MAX_NS)
		return age_ns < SHOWN_MAX_NS ? was : NAN;
	hz = enough ? sum->got / sum->seconds : NAN;
	*sum = (struct rates_sum){ .since_ns = now_ns };
	return hz;
}

void rates_restart(struct rates *r, uint64_t now_ns)
{
	for (int i = 0; i < EVENTS_MAX; i++)
		r->sums[i] = (struct rates_sum){ .since_ns = now_ns };
	r->mixed = true;
}

static void restart_cpu(struct rates_cpu *rc, uint64_t now_ns)
{
	for (int i = 0; i < EVENTS_MAX; i++) {
		rc->sums[i] = (struct rates_sum){ .since_ns = now_ns };
		rc->got_hz[i] = NAN;
	}
}

void rates_update(struct rates *r, uint64_t now_ns, uint32_t nr_events, uint32_t nr_cpus)
{
	if (r->mixed) {
		rates_restart(r, now_ns);
		r->mixed = false;
		for (uint32_t i = 0; i < nr_events; i++)
			r->got_hz[i] = NAN;
		for (uint32_t i = 0; i < nr_cpus; i++)
			restart_cpu(&r->cpus[i], now_ns);
		return;
	}
	for (uint32_t i = 0; i < nr_events; i++) {
		r->got_hz[i] = measure(&r->sums[i], r->got_hz[i], r->hz[i], now_ns);
		for (uint32_t k = 0; k < nr_cpus; k++) {
			struct rates_cpu *rc = &r->cpus[k];

			rc->got_hz[i] = measure(&rc->sums[i], rc->got_hz[i], r->hz[i], now_ns);
		}
	}
}

void rates_mix(struct rates *r)
{
	r->mixed = true;
}

void rates_begin_tick(struct rates *r)
{
	memset(r->enabled_ns, 0, sizeof(r->enabled_ns));
	memset(r->running_ns, 0, sizeof(r->running_ns));
	memset(r->count, 0, sizeof(r->count));
}

void rates_read(struct rates *r, struct counters *counters, uint32_t index, uint32_t nr_events)
{
	struct rates_cpu *rc = &r->cpus[index];

	rc->written = ring_written(&counters_cpu(counters, index)->data);
	for (uint32_t i = 0; i < nr_events; i++)
		rc->known[i] = !counters_read(counters, index, i, &rc->now[i]);
}

void rates_read_busy(struct rates *r, uint64_t now_ns)
{
	if (now_ns - r->procstat_ns < RATE_MIN_NS)
		return;
	procstat_update(r->procstat);
	r->procstat_ns = now_ns;
}

uint64_t rates_read_limit(struct rates *r)
{
	uint64_t now = procstat_max_sample_rate(r->procstat);
	/* Relaxed: a number on its way to the UI. */
	uint64_t was = atomic_exchange_explicit(&r->max_hz, now, memory_order_relaxed);

	r->max_hz_top = MAX(r->max_hz_top, now);
	return was && now && now < was ? was : 0;
}

void rates_fill_event(const struct rates *r, uint32_t index, uint32_t nr_fds,
		      struct profile_event *ev)
{
	uint64_t enabled_ns = r->enabled_ns[index];

	ev->enabled = r->enabled && !r->off[index];
	ev->want_hz = r->hz[index];
	ev->got_hz = r->got_hz[index];
	ev->count = r->count[index];
	ev->running_share =
		enabled_ns ? MIN((double)nr_fds * (double)r->running_ns[index] / (double)enabled_ns,
				 1.0)
			   : 1;
}

void rates_rebase(struct rates *r, struct counters *counters, uint32_t index, uint32_t nr_events)
{
	struct rates_cpu *rc = &r->cpus[index];
	struct counters_value v;
	uint64_t lost[EVENTS_MAX] = { 0 };

	for (uint32_t i = 0; i < nr_events; i++) {
		if (counters_read(counters, index, i, &v))
			v = (struct counters_value){ 0 };
		lost[i] = v.lost;
		rc->running_seen[i] = v.running_ns;
		rc->enabled_seen[i] = v.enabled_ns;
		rc->count_seen[i] = v.count;
	}
	lost_restart(&rc->lost, lost);
}
