// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The end of a tick: counts become a profile. Runs on: the builder, online for urcu-qsbr. The order
 * matters: flip the set of stats, swap the counts (this waits for a grace period: every batch begun
 * before the flip is over), then read both. So the account of a tick is exact, and its rows are off
 * by a batch at most.
 */
#include "sampler/tick.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <urcu-qsbr.h>

#include "sampler/past.h"
#include "sampler/pipeline/hottest.h"
#include "sampler/profile/assemble.h"
#include "sampler/profile/messages_session.h"
#include "sampler/profile/ratios.h"
#include "sampler/replay.h"
#include "sampler/session.h"
#include "sampler/trapping.h"
#include "sampler/waiting.h"
#include "symbols/base/intern.h"

#define NSEC 1000000000ULL
/* A tick with this number of samples, most of them pending, and this cost (percent of all CPUs). */
#define STARVED_TAKEN 10
#define STARVED_PCT   25.0

/* Sums of one tick over all CPUs. */
struct tick_sums {
	struct pipeline_stats all;
	uint64_t lost;
};

/* The samples of interpreters. */
static uint64_t lang_samples(const struct pipeline_stats *st)
{
	uint64_t nr = st->lang_certain + st->lang_guessed;

	for (int i = 0; i < LANG_NONE_NR; i++)
		nr += st->lang_none[i];
	return nr;
}

static void fill_cpus(struct sampler *s, struct profile *p, unsigned int epoch,
		      struct tick_sums *sums, uint64_t now_ns)
{
	const struct rates_tick tick = {
		.nr_events = s->config.nr_events,
		.ring_size = counters_ring_size(s->live.counters),
		.is_part = target_is_part(&s->target),
		.is_tasks = s->target.tids != NULL,
		.lost_known = counters_has_lost(s->live.counters),
	};

	rates_begin_tick(&s->rates);
	p->nr_cpus = s->live.nr_threads;
	p->cpus = xcalloc(p->nr_cpus, sizeof(*p->cpus));
	p->cpu_events = xcalloc((size_t)p->nr_cpus * tick.nr_events, sizeof(*p->cpu_events));
	for (uint32_t i = 0; i < p->nr_cpus; i++) {
		struct sampler_thread *thread = s->live.threads[i];
		struct profile_cpu *cpu = &p->cpus[i];
		struct sampler_thread_stats stats;

		sampler_thread_take_stats(thread, epoch, &stats);
		cpu->cpu = counters_cpu(s->live.counters, i)->cpu;
		snprintf(cpu->core, sizeof(cpu->core), "%s",
			 counters_core_type(s->live.counters, i));
		cpu->busy = procstat_busy(s->rates.procstat, cpu->cpu, &cpu->online);
		cpu->samples = stats.samples.taken;
		hottest_fill(cpu, &stats.samples, s->store.places);
		cpu->ring_high = sampler_thread_take_ring_high(thread);
		lost_add_throttled(&s->rates.cpus[i].lost, thread, &stats, cpu, now_ns,
				   p->interval_ns);
		cpu->lag_max_ns = stats.lag.max_ns;
		cpu->lag_median_ns = lag_median(&stats.lag);
		rates_add_cpu(&s->rates, &tick, i, &stats, cpu, &p->cpu_events[i * tick.nr_events]);
		sums->lost += cpu->lost;
		pipeline_add_stats(&sums->all, &stats.samples);
		langreaders_note(&s->live.readers, s->live.counters, thread, i, stats.samples.taken,
				 lang_samples(&stats.samples));
	}
}

static void add_account(struct profile_account *sum, const struct profile_account *add)
{
	sum->taken += add->taken;
	sum->complete += add->complete;
	sum->guessed += add->guessed;
	sum->truncated += add->truncated;
	sum->broken += add->broken;
	sum->pending += add->pending;
	sum->dropped += add->dropped;
	sum->lost += add->lost;
	sum->own += add->own;
	sum->no_outcomes |= add->no_outcomes;
}

static void fill_account(struct sampler *s, struct profile *p, const struct tick_sums *sums)
{
	const struct pipeline_stats *all = &sums->all;
	struct profile_account *a = &p->account;
	struct maps_stats maps;

	_Static_assert(UNWIND_NR_STOPS <= PROFILE_NR_BROKEN, "a stop has no place in the profile");
	a->complete = all->complete;
	a->guessed = all->guessed;
	a->truncated = all->truncated;
	a->pending = all->pending;
	a->own = all->own;
	a->lost = sums->lost;
	for (int i = 0; i < UNWIND_NR_STOPS; i++) {
		p->broken_by[i] = all->broken[i];
		p->broken_in[i] = ends_most(&all->ends[i], all->broken[i]);
		a->broken += all->broken[i];
	}
	for (int i = 0; i < DROP_NR; i++) {
		p->dropped_by[i] = all->dropped[i];
		a->dropped += all->dropped[i];
	}
	p->nr_nameless = all->nameless;
	maps_stats(s->store.maps, &maps);
	p->nr_names_dropped = maps.nr_names_dropped - s->ticks.names_dropped;
	s->ticks.names_dropped = maps.nr_names_dropped;
	_Static_assert(LANG_NONE_NR <= PROFILE_NR_LANG_NONE, "a reason has no place in the "
							     "profile");
	p->lang = (struct profile_lang){
		all->lang_certain, all->lang_guessed, lang_samples(all), { 0 }
	};
	for (int i = 0; i < LANG_NONE_NR; i++)
		p->lang.none_by[i] = all->lang_none[i];
	/* Counted separately when a sample is read: the parts must add up to it. */
	a->taken = all->taken + a->lost;
	assert(all->taken ==
	       a->complete + a->guessed + a->truncated + a->pending + a->broken + a->dropped);
	a->no_outcomes = s->replay && replay_is_kept(s->replay);
	add_account(&s->ticks.total, a);
	p->account_total = s->ticks.total;
	p->samples_per_s = (double)all->taken * 1e9 / (double)p->interval_ns;
}

static void fill_events(struct sampler *s, struct profile *p)
{
	uint32_t nr_fds = s->target.tids ? s->live.nr_threads : 1;

	p->nr_events = s->config.nr_events;
	for (uint32_t i = 0; i < p->nr_events; i++) {
		p->events[i].event = s->config.events[i];
		rates_fill_event(&s->rates, i, nr_fds, &p->events[i]);
	}
}

/* Fill the fields that do not depend on the counts. */
static void fill_state(struct sampler *s, struct profile *p, uint64_t now_ns)
{
	struct symbols_stats names;
	char news[sizeof(s->mailbox.status)];
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	p->seq = ++s->ticks.seq;
	p->time_ns = (uint64_t)ts.tv_sec * NSEC + (uint64_t)ts.tv_nsec;
	p->running_ns = now_ns - s->ticks.reset_ns;
	p->session_ns = now_ns - s->ticks.start_ns;
	p->window = s->ticks.window;
	p->shown_frames = s->config.shown_frames;
	p->sampling = s->rates.enabled;
	p->target_gone = s->target.gone;
	p->focus = s->focus.pid;
	p->call_graph = s->config.call_graph;
	p->stack_size = p->call_graph == CALL_GRAPH_DWARF ? s->config.stack_size : 0;
	p->rate_factor = s->rates.governor.factor;
	p->rate_ceiling = s->rates.governor.ceiling;
	p->max_hz = atomic_load_explicit(&s->rates.max_hz, memory_order_relaxed);
	p->max_hz_top = s->rates.max_hz_top;
	if (s->live.counters) {
		p->ring_size = counters_ring_size(s->live.counters);
		p->ring_wanted = counters_ring_wanted(s->live.counters);
		p->nr_refused = counters_nr_refused(s->live.counters);
	}
	p->trap = s->trapped;
	memcpy(p->target, s->target.text, sizeof(p->target));
	memcpy(p->banner, s->banner, sizeof(p->banner));
	if (symbols_fetch_news(s->store.symbols, news, sizeof(news)))
		mailbox_say(&s->mailbox, "%s", news);
	memcpy(p->status, s->mailbox.status, sizeof(p->status));
	p->status_seq = s->mailbox.status_seq;
	symbols_stats(s->store.symbols, &names);
	p->nr_places = names.nr_named + names.nr_unnamed + names.nr_waiting;
	p->nr_places_named = names.nr_named;
	p->images = (struct profile_images){ names.nr_images, names.image_memory,
					     names.image_memory_max, names.nr_evicted };
	p->nr_places_waiting = names.nr_waiting;
}

static void fill_unwind(struct profile *p, const struct unwind_stats *st)
{
	p->unwind = (struct profile_unwind){
		.frames = st->nr_frames,
		.row_hits = st->nr_row_hits,
		.steps = st->nr_steps,
		.guessed = st->nr_guessed,
		.rows = st->nr_rows,
		.rows_differ = st->nr_rows_differ,
		.verified = st->nr_verified,
		.verify_differ = st->nr_verify_differ,
	};
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	if (clock_gettime(clock, &ts))
		return 0;
	return (uint64_t)ts.tv_sec * NSEC + (uint64_t)ts.tv_nsec;
}

static double pct_of(uint64_t now, uint64_t before, uint64_t span_ns)
{
	return now > before && span_ns ? (double)(now - before) * 100 / (double)span_ns : 0;
}

/* Fill the CPU time and memory of proftop, by kind of thread. */
static void fill_self(struct sampler *s, struct profile *p)
{
	struct session_cost t = { time_now_ns(), clock_ns(CLOCK_PROCESS_CPUTIME_ID),
				  live_cpu_ns(&s->live), clock_ns(CLOCK_THREAD_CPUTIME_ID), 0 };
	const struct session_cost *was = &s->ticks.self;
	uint64_t span_ns = t.now_ns - was->now_ns;
	clockid_t ui;

	procstat_self(s->rates.procstat, &p->self.cpu_pct, &p->self.rss_kb);
	if (!pthread_getcpuclockid(s->ticks.ui, &ui))
		t.ui_ns = clock_ns(ui);
	if (was->now_ns) {
		p->self.samplers_pct = pct_of(t.samplers_ns, was->samplers_ns, span_ns);
		p->self.builder_pct = pct_of(t.builder_ns, was->builder_ns, span_ns);
		p->self.ui_pct = pct_of(t.ui_ns, was->ui_ns, span_ns);
		p->self.loaders_pct = pct_of(t.all_ns, was->all_ns, span_ns) -
				      p->self.samplers_pct - p->self.builder_pct - p->self.ui_pct;
		p->self.loaders_pct = MAX(p->self.loaders_pct, 0.0);
	}
	s->ticks.self = t;
}

static struct assemble_input tables_of(const struct sampler *s)
{
	return (struct assemble_input){
		.stacks = s->store.stacks,
		.places = s->store.places,
		.symbols = s->store.symbols,
		.maps = s->store.maps,
		.objects = s->store.objects,
		.details = symbols_details(s->store.symbols),
		.shown_frames = s->config.shown_frames,
		.wait = symbols_wait(s->store.symbols),
		.wait_places = s->store.tables->wait_places,
		.branches = s->store.branches,
		.accesses = s->store.accesses,
		.kept = s->replay && replay_is_kept(s->replay),
	};
}

/* Fill stacks, functions and tasks from @counts, which are freed. */
static int fill_from(struct sampler *s, struct profile *p, struct history_cell *counts, uint32_t nr)
{
	struct assemble_input in = tables_of(s);
	int code;

	in.counts = counts;
	in.nr_counts = nr;
	code = assemble(p, &in);
	if (in.details && details_wanted(in.details))
		symbols_wake(s->store.symbols);
	if (!code)
		annotate_fill(&s->annotate, s->store.symbols, p, &in);
	free(counts);
	return code;
}

/* Fill stacks, functions and tasks from the counts of the window. */
static int fill_counts(struct sampler *s, struct profile *p)
{
	struct history_cell *counts = NULL;
	uint32_t nr = 0;
	int code = history_get(s->store.history, s->ticks.window, &counts, &nr, &p->window_ns);

	return code ? code : fill_from(s, p, counts, nr);
}

static uint64_t nr_named(const struct sampler *s)
{
	struct symbols_stats stats;

	symbols_stats(s->store.symbols, &stats);
	return stats.nr_named;
}

/* Return CLOCK_REALTIME at the end of the last slice; 0: a recording. */
static uint64_t last_real_ns(const struct sampler *s, uint64_t last_ns)
{
	struct timespec ts;

	if (s->replay)
		return replay_is_kept(s->replay) ? last_ns : 0;
	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * NSEC + (uint64_t)ts.tv_nsec - (time_now_ns() - last_ns);
}

void tick_strip(struct sampler *s, bool answer)
{
	const struct strip_query *q = s->past.strip.query;
	const struct assemble_input tables = tables_of(s);
	uint8_t slots[PAST_SETS_MAX];
	const struct strip_input in = { history_slices(s->store.history), &tables, slots,
					s->past.nr_sets, nr_named(s) };
	struct strip *strip;

	if (!q || q->event >= s->config.nr_events)
		return;
	past_slots(&s->past, &s->config.events[q->event], slots);
	strip = strip_make(&s->past.strip, &in);
	if (!strip)
		return;
	strip->last_real_ns = last_real_ns(s, strip->last_ns);
	strip->answer = answer;
	strip->seq = q->seq;
	mailbox_post_strip(&s->mailbox, strip);
}

/* Fill the fields of a range of the past that do not depend on its counts. */
static void fill_past(struct sampler *s, struct profile *p, const struct slice_range *range)
{
	const struct past_events *set = &s->past.sets[range->events];
	const double *hz = history_rates(s->store.history, range, &p->past_rates_differ);

	p->seq = ++s->ticks.seq;
	p->time_ns = last_real_ns(s, range->end_ns);
	p->past_begin_ns = range->begin_ns;
	p->past_end_ns = range->end_ns;
	p->past_other_events = range->marks & SLICE_EVENTS;
	p->interval_ns = p->window_ns = range->covers_ns;
	p->running_ns = range->covers_ns;
	p->sampling = true;
	p->focus = s->focus.pid;
	p->call_graph = s->config.call_graph;
	p->rate_factor = p->rate_ceiling = 1;
	memcpy(p->target, s->target.text, sizeof(p->target));
	p->account.no_outcomes = true;
	p->account.complete = range->count;
	p->account.lost = range->lost;
	p->account.taken = range->count + range->lost;
	p->samples_per_s = (double)range->count * 1e9 / (double)MAX(range->covers_ns, 1ULL);
	p->throttled = range->throttled;
	memcpy(p->banner, s->banner, sizeof(p->banner));
	p->nr_events = set->nr;
	for (uint32_t i = 0; i < set->nr; i++)
		p->events[i] = (struct profile_event){ .event = set->events[i],
						       .enabled = true,
						       .want_hz = hz	      ? hz[i]
								  : s->replay ? s->rates.hz[i]
									      : 0,
						       .got_hz = NAN,
						       .running_share = 1 };
}

/* Make a profile of a range of the past. NULL: there are no slices, or no memory. */
static struct profile *make_past(struct sampler *s, uint64_t begin_ns, uint64_t end_ns)
{
	struct history_cell *counts;
	struct slice_range range;
	struct profile *p;
	uint32_t nr;

	if (!slices_range(history_slices(s->store.history), begin_ns, end_ns, &range))
		return NULL;
	p = xcalloc(1, sizeof(*p));
	fill_past(s, p, &range);
	if (history_get_range(s->store.history, &range, &counts, &nr) ||
	    fill_from(s, p, counts, nr)) {
		mailbox_say(&s->mailbox, "out of memory: the past is not shown");
		profile_free(p);
		return NULL;
	}
	ratios_count_samples(p);
	return p;
}

void tick_past(struct sampler *s)
{
	struct profile *p = s->past.end_ns ? make_past(s, s->past.begin_ns, s->past.end_ns) : NULL;

	if (!p)
		return;
	s->past.nr_named = nr_named(s);
	mailbox_post_past(&s->mailbox, p);
}

/* Return whether the events of a range are the present ones. */
static bool has_present_events(const struct sampler *s, const struct profile *p)
{
	bool same = p->nr_events == s->config.nr_events;

	for (uint32_t i = 0; same && i < p->nr_events; i++)
		same = event_same(&p->events[i].event, &s->config.events[i]);
	return same;
}

void tick_collect(struct sampler *s, uint64_t begin_ns, uint64_t end_ns)
{
	struct profile *p = make_past(s, begin_ns, end_ns);

	if (!p) {
		p = xcalloc(1, sizeof(*p));
		memcpy(p->target, s->target.text, sizeof(p->target));
		memcpy(p->banner, s->banner, sizeof(p->banner));
	}
	p->time_ns = last_real_ns(s, end_ns);
	p->window_ns = end_ns - begin_ns;
	/* With their rates. */
	if (!p->nr_events || has_present_events(s, p))
		fill_events(s, p);
	ratios_count_samples(p);
	p->account_total = s->ticks.total;
	mailbox_post(&s->collect.mailbox, p);
}

/* Post the past again: a strip moves, names of a range arrive. */
static void renew_past(struct sampler *s)
{
	tick_strip(s, s->replay != NULL);
	if (s->past.nr_named != nr_named(s) ||
	    atomic_load_explicit(&s->annotate.function, memory_order_relaxed) != SYMBOL_NONE)
		tick_past(s);
}

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

	if (stacks_crowded(s->store.stacks))
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

/* Add counts up to @now_ns as a slice, which takes them over. */
static void add_slice(struct sampler *s, struct count *counts, uint32_t nr, uint64_t now_ns)
{
	const struct assemble_input tables = tables_of(s);
	uint64_t interval_ns = now_ns - s->ticks.slice_ns;

	assert(now_ns >= s->ticks.slice_ns);
	s->ticks.slice_ns = now_ns;
	history_set_rates(s->store.history, s->rates.hz, s->config.nr_events);
	if (history_add(s->store.history, counts, nr, interval_ns))
		mailbox_say(&s->mailbox, "out of memory: the counts of this tick are not shown");
	else
		trapping_test(s, &tables);
}

void tick_slice(struct sampler *s, uint64_t now_ns)
{
	struct count *counts = NULL;
	uint32_t nr = 0;

	/* -ENOMEM: nothing was swapped; the next slice has the counts of both. */
	if (!counts_swap(s->store.counts, &counts, &nr))
		add_slice(s, counts, nr, now_ns);
}

/* Keep the new slices on disk. */
static void keep_slices(struct sampler *s)
{
	const struct assemble_input tables = tables_of(s);
	struct keep_input in = { history_slices(s->store.history),
				 &tables,
				 s->config.events,
				 s->rates.hz,
				 s->config.nr_events,
				 0 };
	struct timespec ts;
	int code;

	if (!s->keep)
		return;
	clock_gettime(CLOCK_REALTIME, &ts);
	in.real_ns = (uint64_t)ts.tv_sec * NSEC + (uint64_t)ts.tv_nsec - time_now_ns();
	keep_tick(s->keep, &in);
	code = keep_check(s->keep);
	if (code)
		mailbox_say(&s->mailbox, "--keep has ended: %s", strerror(-code));
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

void tick_end(struct sampler *s, uint64_t now_ns)
{
	struct profile *p = xcalloc(1, sizeof(*p));
	struct tick_sums sums = { .lost = 0 };
	struct count *counts = NULL;
	struct unwind_stats unwind;
	unsigned int epoch;
	uint32_t nr = 0;

	keep_room(s);
	waiting_count(s, now_ns);
	rates_read_busy(&s->rates, now_ns);
	note_max_rate(s);
	/* -ENOMEM: nothing was swapped; the next tick has the counts of both. */
	if (!take_tick(s, &epoch, &counts, &nr))
		add_slice(s, counts, nr, now_ns);
	assert(now_ns >= s->ticks.last_ns);
	p->interval_ns = MAX(now_ns - s->ticks.last_ns, 1);
	s->ticks.last_ns = now_ns;
	fill_state(s, p, now_ns);
	fill_cpus(s, p, epoch, &sums, now_ns);
	fill_account(s, p, &sums);
	rates_update(&s->rates, now_ns, s->config.nr_events, s->live.nr_threads);
	fill_events(s, p);
	past_note(s->store.history, p);
	p->past_merged = slices_merged(history_slices(s->store.history));
	live_unwind_stats(&s->live, &unwind);
	fill_unwind(p, &unwind);
	p->waits = s->waits;
	p->latency = s->waits.tasks ? (uint32_t)(config_latency_slot(&s->config) + 1) : 0;
	p->pressure = procstat_pressure(s->rates.procstat);
	fill_self(s, p);
	s->ticks.own_pct = p->self.cpu_pct;
	s->ticks.span_ns = p->interval_ns;
	s->ticks.account = p->account;
	if (fill_counts(s, p))
		mailbox_say(&s->mailbox, "out of memory: this tick has no rows");
	s->ticks.starved = is_starved(s, p);
	p->starved = s->ticks.starved || s->rates.governor.hungry;
	s->messages.goes_first =
		atomic_load_explicit(&s->live.shared->goes_first, memory_order_relaxed);
	messages_apply(&s->messages, p, now_ns - s->ticks.start_ns, s->config.window_ns);
	/* Before the profile, which is drawn with it. */
	renew_past(s);
	mailbox_post(&s->mailbox, p);
	keep_slices(s);
}

bool tick_skip(struct sampler *s)
{
	struct pipeline_stats all = { 0 };
	struct count *counts = NULL;
	unsigned int epoch;
	uint32_t nr = 0;

	waiting_discard(s);
	if (!take_tick(s, &epoch, &counts, &nr))
		free(counts);
	for (uint32_t i = 0; i < s->live.nr_threads; i++) {
		struct sampler_thread_stats stats;

		sampler_thread_take_stats(s->live.threads[i], epoch, &stats);
		pipeline_add_stats(&all, &stats.samples);
	}
	return all.pending * 100 <= all.taken;
}

static void fill_replay_cpus(const struct sampler *s, struct profile *p,
			     const struct replay_result *r, struct tick_sums *sums)
{
	/* Slices are of all CPUs together. */
	if (replay_is_kept(s->replay)) {
		sums->lost = r->cpus[0].lost;
		p->throttled = r->cpus[0].throttled;
		pipeline_add_stats(&sums->all, &r->cpus[0].samples);
		return;
	}
	p->nr_cpus = r->nr_cpus;
	p->cpus = xcalloc(p->nr_cpus, sizeof(*p->cpus));
	for (uint32_t i = 0; i < r->nr_cpus; i++) {
		const struct replay_cpu *from = &r->cpus[i];

		p->cpus[i] = (struct profile_cpu){
			.cpu = from->cpu,
			.online = true,
			.samples = from->samples.taken,
			.lost = from->lost - MIN(from->lost, from->lost_shown),
			.lost_total = from->lost,
			.throttled = from->throttled - from->throttled_shown,
			.throttled_total = from->throttled,
			.throttled_ns = from->throttled_ns,
		};
		hottest_fill(&p->cpus[i], &from->samples, s->store.places);
		sums->lost += p->cpus[i].lost;
		pipeline_add_stats(&sums->all, &from->samples);
	}
}

/* Name the machine of a stream, and how late its samples are shown. */
static void describe_stream(const struct sampler *s, struct profile *p)
{
	const char *host = replay_host(s->replay);
	char late[32] = "";

	if (!s->config.follow)
		return;
	if (!s->target.gone)
		snprintf(late, sizeof(late), ", %.1f s late",
			 (double)replay_delay_ns(s->replay) / 1e9);
	text_format(p->target, sizeof(p->target), "recording %s%.64s%s", *host ? "of " : "",
		    *host ? host : s->config.replay, late);
}

void tick_replay(struct sampler *s, const struct replay_result *result)
{
	const struct assemble_input tables = tables_of(s);
	struct profile *p = xcalloc(1, sizeof(*p));
	struct tick_sums sums = { .lost = 0 };

	trapping_replay(s, &tables);
	p->interval_ns = result->interval_ns;
	if (!s->config.follow)
		s->ticks.total = (struct profile_account){ 0 };
	fill_state(s, p, time_now_ns());
	describe_stream(s, p);
	p->time_ns = replay_date_ns(s->replay);
	p->running_ns = result->span_ns;
	p->session_ns = 0;
	fill_replay_cpus(s, p, result, &sums);
	fill_account(s, p, &sums);
	fill_events(s, p);
	fill_unwind(p, &result->unwind);
	p->waits = result->waits;
	p->latency = result->waits.tasks ? (uint32_t)(config_latency_slot(&s->config) + 1) : 0;
	procstat_self(s->rates.procstat, &p->self.cpu_pct, &p->self.rss_kb);
	if (fill_counts(s, p))
		mailbox_say(&s->mailbox, "out of memory: the recording has no rows");
	ratios_count_samples(p);
	s->messages = (struct messages){ .recorded = true };
	messages_apply(&s->messages, p, result->span_ns, result->span_ns);
	/* Before the profile, which is drawn with it. */
	renew_past(s);
	mailbox_post(&s->mailbox, p);
}

void tick_discard(struct sampler *s)
{
	struct count *counts = NULL;
	uint32_t nr;

	waiting_discard(s);
	if (!counts_swap(s->store.counts, &counts, &nr))
		free(counts);
	s->ticks.total = (struct profile_account){ 0 };
	s->ticks.reset_ns = time_now_ns();
	past_restart(&s->past, s->store.history, &s->config, s->ticks.reset_ns);
	s->ticks.slice_ns = s->ticks.reset_ns;
	rates_restart(&s->rates, s->ticks.reset_ns);
	for (uint32_t i = 0; i < s->live.nr_threads; i++)
		rates_rebase(&s->rates, s->live.counters, i, s->config.nr_events);
}
