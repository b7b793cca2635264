// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The end of a tick: counts become a profile. Runs on: the builder, online for urcu-qsbr. The order
 * matters: flip the set of stats, swap the counts (this waits for a grace period: every batch begun
 * before the flip is over), then read both. So the account of a tick is exact, and its rows are off
 * by a batch at most.
 */
#include "sampler/tick.h"

#include <assert.h>
#include <stdlib.h>
#include <urcu-qsbr.h>

#include "sampler/past.h"
#include "sampler/profile/messages_session.h"
#include "sampler/session.h"
#include "sampler/tick_fill.h"
#include "sampler/tick_past.h"
#include "sampler/trapping.h"
#include "sampler/waiting.h"
#include "symbols/base/intern.h"
#include "unwind/unwind.h"

#define NSEC 1000000000ULL
/* A tick with this number of samples, most of them pending, and this cost (percent of all CPUs). */
#define STARVED_TAKEN 10
#define STARVED_PCT   25.0
/*
 * A slice of the past is shown when all of its samples are counted, or this long after it: from
 * then on late ones are added to it. On disk, where none are added, it is written this much later.
 */
#define LATE_NS	     (2 * NSEC)
#define LATE_DISK_NS (20 * NSEC)

/*
 * Read all counters. Before the grace period, which is long on a busy machine, so that they match
 * the samples of the tick.
 */
static void read_all(struct sampler *s)
{
	for (uint32_t i = 0; i < s->live.nr_threads; i++)
		rates_read(&s->rates, s->live.counters, i, s->config.nr_events);
}

/* Flip the stats and swap the counts; every batch begun before is over afterwards. */
static int take_tick(struct sampler *s, unsigned int *epoch, struct count **counts, uint32_t *nr)
{
	int code;

	*epoch = atomic_fetch_add_explicit(&s->live.shared->epoch, 1, memory_order_acq_rel);
	read_all(s);
	code = counts_swap(s->store.counts, counts, nr);
	if (code) /* no grace period yet */
		synchronize_rcu();
	grace_waited(s->live.shared);
	return code;
}

static void keep_room(struct sampler *s)
{
	if (store_keep_room(&s->store))
		mailbox_say(&s->mailbox, "out of memory: new stacks are not counted");
}

void tick_make_room(struct sampler *s)
{
	struct counts *counts;

	if (stacks_crowded(s->store.stacks) || places_crowded(s->store.places))
		keep_room(s);
	counts = s->store.counts; /* new ones, if the tables were renewed */
	if (!counts_crowded(counts) || counts_grow(counts) || s->ticks.crowded)
		return;
	s->ticks.crowded = true;
	mailbox_say(&s->mailbox, "too many different stacks per tick: samples on new ones are "
				 "dropped; lower the rate, or sample fewer events");
}

/* Report that the kernel lowered its limit, which it does when interrupts are slow. */
static void note_max_rate(struct sampler *s)
{
	uint64_t was = rates_read_limit(&s->rates);

	if (was)
		mailbox_say(&s->mailbox,
			    "kernel.perf_event_max_sample_rate fell from %llu to %llu samples/s",
			    (unsigned long long)was,
			    (unsigned long long)atomic_load_explicit(&s->rates.max_hz,
								     memory_order_relaxed));
}

/* Choose the event with samples that stand for CPU time: a clock, else one sampled at a rate. */
static void choose_clock(const struct sampler *s, struct cpu_times_input *in)
{
	in->event = -1;
	for (uint32_t i = 0; i < s->config.nr_events; i++) {
		const struct event *ev = &s->config.events[i];
		bool rated = ev->type != PERF_TYPE_TRACEPOINT && ev->type != PERF_TYPE_BREAKPOINT &&
			     ev->type != PERF_TYPE_SOFTWARE && s->rates.hz[i] > 0;

		if (ev->counted || ev->wait || s->rates.off[i] || (!ev->clock && !rated))
			continue;
		if (in->event < 0 || ev->clock) {
			in->event = (int)i;
			in->sample_ns = ev->clock ? 0 : 1e9 / s->rates.hz[i];
		}
		if (ev->clock)
			return;
	}
}

/*
 * Return how long the tasks of the target ran since the last tick, of whatever event: their events
 * are on a CPU with them. Of events that take turns on a counter, the longest one is the nearest.
 */
static uint64_t take_running(struct sampler *s)
{
	uint64_t longest_ns = 0, before_ns = s->ticks.running_ns;

	for (uint32_t e = 0; e < s->config.nr_events; e++) {
		uint64_t ns = 0;

		for (uint32_t i = 0; i < s->live.nr_threads; i++)
			ns += s->rates.cpus[i].known[e] ? s->rates.cpus[i].now[e].running_ns : 0;
		longest_ns = MAX(longest_ns, ns);
	}
	s->ticks.running_ns = longest_ns;
	return target_is_part(&s->target) && longest_ns > before_ns && before_ns
		       ? longest_ns - before_ns
		       : 0;
}

/* Add the CPU time of the tasks. Clocks are of all CPUs: samples of some CPUs have no others. */
static void add_cpu_times(struct sampler *s, struct count **counts, uint32_t *nr, uint64_t now_ns,
			  bool tick)
{
	struct cpu_times_input in = {
		.maps = s->store.maps,
		.generation = s->store.tables->generation,
		.begin_ns = s->ticks.slice_ns,
		.now_ns = now_ns,
		.wait_slot = config_wait_slot(&s->config),
		.threads = s->target.kind == TARGET_TIDS,
		.tick = tick,
		.all_ns = tick ? take_running(s) : 0,
	};

	if (!s->cpu_times || s->config.cpus)
		return;
	if (!s->rates.enabled) {
		cpu_times_restart(s->cpu_times);
		return;
	}
	choose_clock(s, &in);
	cpu_times_add(s->cpu_times, &in, counts, nr);
}

/* Return the time before which all samples and waits are counted. */
static uint64_t complete_ns(const struct sampler *s)
{
	uint64_t done_ns = waiting_counted_ns(s);

	for (uint32_t i = 0; i < s->live.nr_threads; i++)
		done_ns = MIN(done_ns, sampler_thread_done_ns(s->live.threads[i]));
	return done_ns;
}

/*
 * Add counts up to @now_ns as a slice, which takes them over. @done_ns: all before it are counted;
 * @tick: the last slice of a tick.
 */
static void add_slice(struct sampler *s, struct count *counts, uint32_t nr, uint64_t now_ns,
		      uint64_t done_ns, bool tick)
{
	const struct assemble_input tables = tick_fill_tables(s);
	uint64_t interval_ns = now_ns - s->ticks.slice_ns;

	assert(now_ns >= s->ticks.slice_ns);
	add_cpu_times(s, &counts, &nr, now_ns, tick);
	s->ticks.slice_ns = now_ns;
	history_set_rates(s->store.history, s->rates.hz, s->config.nr_events);
	s->ticks.complete_ns = MAX(s->ticks.complete_ns, MIN(done_ns, now_ns));
	if (history_add(s->store.history, counts, nr, interval_ns) ||
	    history_complete(s->store.history,
			     MAX(s->ticks.complete_ns, now_ns - MIN(now_ns, LATE_NS))))
		mailbox_say(&s->mailbox, "out of memory: the counts of this tick are not shown");
	else
		trapping_test(s, &tables);
}

void tick_slice(struct sampler *s, uint64_t now_ns)
{
	struct count *counts = NULL;
	uint64_t done_ns;
	uint32_t nr = 0;

	waiting_count_some(s, now_ns);
	done_ns = complete_ns(s);
	/* -ENOMEM: nothing was swapped; the next slice has the counts of both. */
	if (!counts_swap(s->store.counts, &counts, &nr))
		add_slice(s, counts, nr, now_ns, done_ns, false);
}

/* Keep the new slices on disk. */
static void keep_slices(struct sampler *s, bool end)
{
	const struct assemble_input tables = tick_fill_tables(s);
	struct keep_input in = { history_slices(s->store.history),
				 &tables,
				 s->config.events,
				 s->rates.hz,
				 s->config.nr_events,
				 s->past.sets,
				 0,
				 UINT64_MAX };
	uint64_t missing = keep_missing(s->keep);
	struct err e;

	if (!s->keep)
		return;
	s->ticks.kept_ns = time_now_ns();
	if (!end)
		in.settled_ns = MAX(MIN(s->ticks.complete_ns, s->ticks.last_ns),
				    s->ticks.kept_ns - LATE_DISK_NS);
	in.real_ns = time_real_ns(0);
	keep_tick(s->keep, &in);
	if (keep_check(s->keep, &e))
		mailbox_say(&s->mailbox, "--keep has ended: %.200s", e.text);
	else if (keep_missing(s->keep) > missing)
		mailbox_say(&s->mailbox,
			    "--keep: %llu samples were not written: the disk is too slow",
			    (unsigned long long)keep_missing(s->keep));
}

void tick_keep(struct sampler *s, uint64_t now_ns, bool end)
{
	if (!s->keep || (!end && now_ns < s->ticks.kept_ns + NSEC))
		return;
	/* The part of a slice that has begun. */
	if (end) {
		tick_slice(s, now_ns);
		history_finish(s->store.history);
	}
	keep_slices(s, end);
}

/*
 * Return whether proftop gets too little CPU time to read the processes and objects of its samples:
 * most are pending, and it uses much of the machine or runs late.
 */
static bool is_starved(const struct sampler *s, const struct profile *p)
{
	uint64_t lag_ns = 0;
	uint32_t online = 0;

	for (uint32_t i = 0; i < p->nr_cpus; i++) {
		lag_ns = MAX(lag_ns, p->cpus[i].lag_max_ns);
		online += p->cpus[i].online;
	}
	return p->account.taken >= STARVED_TAKEN && 2 * p->account.pending > p->account.taken &&
	       (p->self.cpu_pct > STARVED_PCT * online || lag_ns > NSEC ||
		p->interval_ns > 3 * s->config.tick_ns);
}

/* Return the part of a CPU, in percent, that answers to requests took in the tick. */
static double server_pct(struct sampler *s, uint64_t span_ns)
{
	clockid_t clock = atomic_load_explicit(&s->server_clock, memory_order_relaxed);
	uint64_t was_ns = s->ticks.server_ns;
	uint64_t now_ns = clock ? time_clock_ns(clock) : 0;

	if (!now_ns)
		return 0;
	s->ticks.server_ns = now_ns;
	if (s->ticks.server_ns < was_ns || !span_ns)
		return 0;
	return (double)(s->ticks.server_ns - was_ns) * 100 / (double)span_ns;
}

void tick_end(struct sampler *s, uint64_t now_ns)
{
	struct profile *p = xcalloc(1, sizeof(*p));
	struct tick_sums sums = { .lost = 0 };
	struct count *counts = NULL;
	struct unwind_stats unwind;
	unsigned int epoch;
	uint32_t nr = 0;
	uint64_t done_ns;
	double served;

	keep_room(s);
	waiting_count(s, now_ns);
	rates_read_busy(&s->rates, now_ns);
	note_max_rate(s);
	done_ns = complete_ns(s);
	/* -ENOMEM: nothing was swapped; the next tick has the counts of both. */
	if (!take_tick(s, &epoch, &counts, &nr))
		add_slice(s, counts, nr, now_ns, done_ns, true);
	assert(now_ns >= s->ticks.last_ns);
	p->interval_ns = MAX(now_ns - s->ticks.last_ns, 1);
	s->ticks.last_ns = now_ns;
	tick_fill_state(s, p, now_ns);
	tick_fill_cpus(s, p, epoch, &sums, now_ns);
	tick_fill_account(s, p, &sums);
	rates_update(&s->rates, now_ns, s->config.nr_events, s->live.nr_threads);
	tick_fill_events(s, p);
	past_note(s->store.history, p);
	p->past_merged = slices_merged(history_slices(s->store.history));
	live_unwind_stats(&s->live, &unwind);
	tick_fill_unwind(p, &unwind);
	p->waits = s->waits;
	p->latency = s->waits.tasks ? (uint32_t)(config_latency_slot(&s->config) + 1) : 0;
	p->pressure = procstat_pressure(s->rates.procstat);
	tick_fill_self(s, p);
	served = server_pct(s, p->interval_ns);
	s->ticks.own_pct = MAX(p->self.cpu_pct - served, 0.0);
	s->ticks.span_ns = p->interval_ns;
	s->ticks.account = p->account;
	if (tick_fill_counts(s, p))
		mailbox_say(&s->mailbox, "out of memory: this tick has no rows");
	s->ticks.starved = is_starved(s, p);
	p->starved = s->ticks.starved || s->rates.governor.hungry;
	s->messages.goes_first =
		atomic_load_explicit(&s->live.shared->goes_first, memory_order_relaxed);
	messages_apply(&s->messages, p, now_ns - s->ticks.start_ns, s->config.window_ns);
	/* Before the profile, which is drawn with it. */
	tick_past_renew(s);
	mailbox_post(&s->mailbox, p);
	keep_slices(s, false);
}

/* Drop the samples since the last tick, with their part of the account, which goes to @all. */
static void drop_tick(struct sampler *s, struct pipeline_stats *all)
{
	struct count *counts = NULL;
	unsigned int epoch;
	uint32_t nr = 0;

	if (!take_tick(s, &epoch, &counts, &nr))
		free(counts);
	cpu_times_restart(s->cpu_times);
	for (uint32_t i = 0; i < s->live.nr_threads; i++) {
		struct sampler_thread_stats stats;

		sampler_thread_take_stats(s->live.threads[i], epoch, &stats);
		pipeline_add_stats(all, &stats.samples);
	}
}

bool tick_skip(struct sampler *s)
{
	struct pipeline_stats all = { 0 };

	waiting_discard(s, time_now_ns());
	drop_tick(s, &all);
	return all.pending * 100 <= all.taken;
}

void tick_discard(struct sampler *s)
{
	struct pipeline_stats all = { 0 };

	drop_tick(s, &all);
	s->ticks.total = (struct profile_account){ 0 };
	s->ticks.reset_ns = s->ticks.last_ns = time_now_ns();
	waiting_discard(s, s->ticks.reset_ns);
	past_restart(&s->past, s->store.history, &s->config, s->ticks.reset_ns);
	s->ticks.slice_ns = s->ticks.reset_ns;
	rates_restart(&s->rates, s->ticks.reset_ns);
	for (uint32_t i = 0; i < s->live.nr_threads; i++)
		rates_rebase(&s->rates, s->live.counters, i, s->config.nr_events);
}
