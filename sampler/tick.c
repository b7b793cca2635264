// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The end of a tick: what the threads counted becomes a profile.
 *
 * Runs on: the builder, online for urcu-qsbr. The order matters: flip the set
 * of stats, swap the cells (that waits for a grace period: every batch begun
 * before the flip is over), then read both. So the account of a tick is exact,
 * and its rows are off by a batch at most.
 */
#include "sampler/session.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <urcu-qsbr.h>

#include "sampler/annotate.h"
#include "sampler/profile/assemble.h"
#include "sampler/generation.h"
#include "sampler/pipeline/hottest.h"
#include "symbols/base/intern.h"

#define NSEC 1000000000ULL
/* A CPU counts for the got rate when it was busy for at least this share. */
#define TICK_BUSY_MIN 0.05
/* Shorter stretches say nothing about rates: /proc/stat counts in 10 ms. */
#define TICK_RATE_MIN_NS 200000000ULL

void tick_message(struct sampler *s, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	text[strcspn(text, "\n")] = '\0';
	text_sanitise(s->message, sizeof(s->message), text, strlen(text));
	s->message_seq++;
}

/* The sums of one tick over all CPUs, on the way into the profile. */
struct tick_sums {
	struct pipeline_stats all;
	uint64_t lost;
	bool lost_known; /* FORMAT_LOST works */
};

/* Times of a counter that was opened anew begin anew. */
static uint64_t grown(uint64_t now, uint64_t seen)
{
	return now > seen ? now - seen : 0;
}

static uint64_t samples_of_all(const struct sampler *s, const struct sampler_thread_stats *stats)
{
	uint64_t nr = 0;

	for (uint32_t i = 0; i < s->config.nr_events; i++)
		nr += stats->samples.by_event[i];
	return nr;
}

/*
 * The counters are read when the tick ends, the ring was a little before. What waits in it is told
 * by its bytes: a share of the tick's time would not do, as a task may have run in that little
 * while alone.
 */
static double samples_waiting(struct sampler *s, uint32_t index,
			      const struct sampler_thread_stats *stats)
{
	uint64_t nr = samples_of_all(s, stats);
	struct tick_cpu *tc = &s->cpus[index];

	if (stats->handled > tc->handled) {
		if (nr)
			tc->bytes_a_sample = (double)(stats->handled - tc->handled) / (double)nr;
		tc->handled = stats->handled;
	}
	if (tc->bytes_a_sample <= 0 || tc->written <= tc->handled)
		return 0;
	return (double)MIN(tc->written - tc->handled, counters_ring_size(s->counters)) /
	       tc->bytes_a_sample;
}

/* Samples of @event that the kernel took from one reading of the counters to the next. */
static double samples_taken(const struct sampler *s, struct tick_cpu *tc,
			    const struct sampler_thread_stats *stats, uint32_t event,
			    double waiting, uint64_t lost)
{
	uint64_t nr = stats->samples.by_event[event], all = samples_of_all(s, stats);
	double was = tc->waiting[event];

	tc->waiting[event] = waiting * (all ? (double)nr / (double)all : 1.0 / s->config.nr_events);
	return (double)(nr + lost) + tc->waiting[event] - was;
}

/* Busy seconds of @cpu that @event ran in, since the last tick. */
static double busy_seconds(const struct sampler *s, const struct profile_cpu *cpu,
			   struct tick_cpu *tc, uint32_t event, const struct counters_value *v)
{
	uint64_t ran = grown(v->running_ns, tc->running_seen[event]);

	tc->running_seen[event] = v->running_ns;
	/* Events of tasks and cgroups run while these do; those of a CPU always do. */
	if (s->target.tids || s->target.cgroup_fd >= 0)
		return (double)ran / 1e9;
	return cpu->online && cpu->busy >= TICK_BUSY_MIN ? cpu->busy * (double)ran / 1e9 : 0;
}

/* What the kernel says about one CPU's events: lost samples, running time. */
static void read_counters(struct sampler *s, uint32_t index,
			  const struct sampler_thread_stats *stats, struct profile *p,
			  struct tick_sums *sums)
{
	struct profile_cpu *cpu = &p->cpus[index];
	struct tick_cpu *tc = &s->cpus[index];
	double waiting = samples_waiting(s, index, stats), busy, taken;

	if (!sums->lost_known)
		cpu->lost = stats->lost_records;
	for (uint32_t i = 0; i < s->config.nr_events; i++) {
		struct profile_cpu_event *ev = &p->cpu_events[index * s->config.nr_events + i];
		const struct counters_value v = tc->now[i];
		uint64_t lost = 0;

		ev->samples = stats->samples.by_event[i];
		ev->got_hz = tc->got_hz[i];

		if (!tc->known[i])
			continue;
		s->enabled_ns[i] += v.enabled_ns;
		s->running_ns[i] += v.running_ns;
		ev->enabled_ns = grown(v.enabled_ns, tc->enabled_seen[i]);
		ev->running_ns = grown(v.running_ns, tc->running_seen[i]);
		/* What a task's event waited for its CPU says nothing about counters. */
		if (s->target.tids)
			ev->enabled_ns = ev->running_ns;
		tc->enabled_seen[i] = v.enabled_ns;
		if (sums->lost_known && v.lost >= tc->lost_seen[i]) {
			lost = v.lost - tc->lost_seen[i];
			tc->lost_seen[i] = v.lost;
			cpu->lost += lost;
			ev->lost = lost;
		}
		taken = samples_taken(s, tc, stats, i, waiting, lost);
		busy = busy_seconds(s, cpu, tc, i, &v);
		if (busy <= 0)
			continue;
		s->rate.seconds[i] += busy;
		s->rate.got[i] += taken;
		tc->seconds[i] += busy;
		tc->got[i] += taken;
	}
	tc->lost_total += cpu->lost;
	sums->lost += cpu->lost;
}

/* Throttled time of the tick, the part still going on included. */
static void fill_throttle(struct sampler_thread *t, const struct sampler_thread_stats *stats,
			  struct tick_cpu *tc, struct profile_cpu *cpu, uint64_t now_ns,
			  uint64_t interval_ns)
{
	uint64_t since = sampler_thread_throttled_since(t);

	cpu->throttled = stats->throttled;
	cpu->throttled_ns = stats->throttled_ns;
	if (since && now_ns > since)
		cpu->throttled_ns += now_ns - since;
	cpu->throttled_ns = MIN(cpu->throttled_ns, interval_ns);
	tc->throttled_total += stats->throttled;
	cpu->throttled_total = tc->throttled_total;
}

static void fill_cpus(struct sampler *s, struct profile *p, unsigned int epoch,
		      struct tick_sums *sums, uint64_t now_ns)
{
	sums->lost_known = counters_has_lost(s->counters);
	memset(s->enabled_ns, 0, sizeof(s->enabled_ns));
	memset(s->running_ns, 0, sizeof(s->running_ns));
	p->nr_cpus = s->nr_threads;
	p->cpus = xcalloc(p->nr_cpus, sizeof(*p->cpus));
	p->cpu_events = xcalloc((size_t)p->nr_cpus * s->config.nr_events, sizeof(*p->cpu_events));
	for (uint32_t i = 0; i < s->nr_threads; i++) {
		struct profile_cpu *cpu = &p->cpus[i];
		struct sampler_thread_stats stats;

		sampler_thread_take_stats(s->threads[i], epoch, &stats);
		cpu->cpu = counters_cpu(s->counters, i)->cpu;
		cpu->busy = procstat_busy(s->procstat, cpu->cpu, &cpu->online);
		cpu->samples = stats.samples.taken;
		hottest_fill(cpu, &stats.samples, s->places);
		cpu->ring_high = sampler_thread_take_ring_high(s->threads[i]);
		fill_throttle(s->threads[i], &stats, &s->cpus[i], cpu, now_ns, p->interval_ns);
		cpu->lag_max_ns = stats.lag.max_ns;
		cpu->lag_median_ns = lag_median(&stats.lag);
		read_counters(s, i, &stats, p, sums);
		cpu->lost_total = s->cpus[i].lost_total;
		pipeline_add_stats(&sums->all, &stats.samples);
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
}

static void fill_account(struct sampler *s, struct profile *p, const struct tick_sums *sums)
{
	const struct pipeline_stats *all = &sums->all;
	struct profile_account *a = &p->account;

	_Static_assert(UNWIND_NR_STOPS <= PROFILE_NR_BROKEN, "a stop has no place in the profile");
	a->complete = all->complete;
	a->guessed = all->guessed;
	a->truncated = all->truncated;
	a->pending = all->pending;
	a->own = all->own;
	a->lost = sums->lost;
	for (int i = 0; i < UNWIND_NR_STOPS; i++) {
		p->broken_by[i] = all->broken[i];
		a->broken += all->broken[i];
	}
	for (int i = 0; i < DROP_NR; i++) {
		p->dropped_by[i] = all->dropped[i];
		a->dropped += all->dropped[i];
	}
	p->nr_nameless = all->nameless;
	/* Counted on its own when a sample is met: the parts must sum up to it. */
	a->taken = all->taken + a->lost;
	add_account(&s->account_total, a);
	p->account_total = s->account_total;
	p->samples_per_s = (double)all->taken * 1e9 / (double)p->interval_ns;
}

struct tick_cpu *tick_new_cpus(uint32_t nr)
{
	struct tick_cpu *cpus = xcalloc(nr, sizeof(*cpus));

	for (uint32_t i = 0; i < nr; i++)
		for (int k = 0; k < EVENTS_MAX; k++)
			cpus[i].got_hz[k] = NAN;
	return cpus;
}

/* The same of one CPU alone. */
static void rate_cpu(struct tick_cpu *tc)
{
	for (int i = 0; i < EVENTS_MAX; i++)
		tc->got_hz[i] = tc->seconds[i] > 0 ? tc->got[i] / tc->seconds[i] : NAN;
	memset(tc->got, 0, sizeof(tc->got));
	memset(tc->seconds, 0, sizeof(tc->seconds));
}

/* The got rate, over stretches long enough for the jiffies of /proc/stat. */
static void update_rate(struct sampler *s, uint64_t now_ns)
{
	if (!s->rate.mixed && now_ns - s->rate.since_ns < TICK_RATE_MIN_NS)
		return;
	for (uint32_t i = 0; i < s->config.nr_events; i++)
		s->got_hz[i] = s->rate.seconds[i] > 0 && !s->rate.mixed
				       ? s->rate.got[i] / s->rate.seconds[i]
				       : NAN;
	s->rate = (struct tick_rate){ .since_ns = now_ns };
	for (uint32_t i = 0; i < s->nr_threads; i++)
		rate_cpu(&s->cpus[i]);
}

void tick_mix_rate(struct sampler *s)
{
	s->rate.mixed = true;
}

/*
 * The event of a task has one fd a CPU: each is enabled all the time that the
 * task is, and runs on its own CPU only. Their sum is what ran.
 */
static double running_share(const struct sampler *s, uint32_t event)
{
	double fds = s->target.tids ? s->nr_threads : 1;

	if (!s->enabled_ns[event])
		return 1;
	return MIN(fds * (double)s->running_ns[event] / (double)s->enabled_ns[event], 1.0);
}

static void fill_events(struct sampler *s, struct profile *p)
{
	p->nr_events = s->config.nr_events;
	for (uint32_t i = 0; i < p->nr_events; i++) {
		struct profile_event *ev = &p->events[i];

		ev->event = s->config.events[i];
		ev->enabled = s->enabled && !s->event_off[i];
		ev->want_hz = s->hz[i];
		ev->got_hz = s->got_hz[i];
		ev->running_share = running_share(s, i);
		memcpy(ev->error, s->event_error[i], sizeof(ev->error));
	}
}

/* What does not depend on the tick's counts. */
static void fill_state(struct sampler *s, struct profile *p, uint64_t now_ns)
{
	struct symbols_stats names;
	char news[sizeof(s->message)];
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	p->seq = ++s->seq;
	p->time_ns = (uint64_t)ts.tv_sec * NSEC + (uint64_t)ts.tv_nsec;
	p->running_ns = now_ns - s->reset_ns;
	p->window = s->window;
	p->sampling = s->enabled;
	p->target_gone = s->target.gone;
	p->focus = s->focus.pid;
	p->call_graph = s->config.call_graph;
	p->stack_size = p->call_graph == CALL_GRAPH_DWARF ? s->config.stack_size : 0;
	p->rate_factor = s->governor.factor;
	p->rate_ceiling = s->governor.ceiling;
	p->max_hz = atomic_load_explicit(&s->max_hz, memory_order_relaxed);
	p->max_hz_top = s->max_hz_top;
	if (s->counters) {
		p->ring_size = counters_ring_size(s->counters);
		p->ring_wanted = counters_ring_wanted(s->counters);
		p->nr_refused = counters_nr_refused(s->counters);
	}
	memcpy(p->target, s->target_text, sizeof(p->target));
	memcpy(p->banner, s->banner, sizeof(p->banner));
	if (symbols_fetch_news(s->symbols, news, sizeof(news)))
		tick_message(s, "%s", news);
	memcpy(p->message, s->message, sizeof(p->message));
	p->message_seq = s->message_seq;
	symbols_stats(s->symbols, &names);
	p->nr_places = names.nr_named + names.nr_unnamed + names.nr_waiting;
	p->nr_places_named = names.nr_named;
	p->images = (struct profile_images){ names.nr_images, names.image_memory,
					     names.image_memory_max, names.nr_evicted };
	p->nr_places_waiting = names.nr_waiting;
}

/* How the threads' unwinders found their frames. */
static void fill_unwind(const struct sampler *s, struct profile *p)
{
	struct unwind_stats st = s->unwind_base;

	for (uint32_t i = 0; i <= s->nr_threads; i++) {
		if (i)
			sampler_thread_unwind_stats(s->threads[i - 1], &st);
		p->unwind.frames += st.nr_frames;
		p->unwind.row_hits += st.nr_row_hits;
		p->unwind.steps += st.nr_steps;
		p->unwind.guessed += st.nr_guessed;
		p->unwind.rows += st.nr_rows;
		p->unwind.rows_differ += st.nr_rows_differ;
		p->unwind.verified += st.nr_verified;
		p->unwind.verify_differ += st.nr_verify_differ;
	}
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

/* What we cost, and which of our threads. */
static void fill_self(struct sampler *s, struct profile *p)
{
	struct self_times t = { time_now_ns(), clock_ns(CLOCK_PROCESS_CPUTIME_ID),
				s->samplers_base_ns, clock_ns(CLOCK_THREAD_CPUTIME_ID), 0 };
	const struct self_times *was = &s->self_times;
	uint64_t span_ns = t.now_ns - was->now_ns;
	clockid_t ui;

	procstat_self(s->procstat, &p->self.cpu_pct, &p->self.rss_kb);
	for (uint32_t i = 0; i < s->nr_threads; i++)
		t.samplers_ns += sampler_thread_cpu_ns(s->threads[i]);
	if (!pthread_getcpuclockid(s->ui, &ui))
		t.ui_ns = clock_ns(ui);
	if (was->now_ns) {
		p->self.samplers_pct = pct_of(t.samplers_ns, was->samplers_ns, span_ns);
		p->self.builder_pct = pct_of(t.builder_ns, was->builder_ns, span_ns);
		p->self.ui_pct = pct_of(t.ui_ns, was->ui_ns, span_ns);
		p->self.loaders_pct = pct_of(t.all_ns, was->all_ns, span_ns) -
				      p->self.samplers_pct - p->self.builder_pct - p->self.ui_pct;
		p->self.loaders_pct = MAX(p->self.loaders_pct, 0.0);
	}
	s->self_times = t;
}

/* The counts over the window, as stacks, functions and tasks. */
static int fill_counts(struct sampler *s, struct profile *p)
{
	struct history_cell *counts = NULL;
	struct assemble_input in;
	uint32_t nr = 0;
	int code = history_get(s->history, s->window, &counts, &nr, &p->window_ns);

	if (code)
		return code;
	in = (struct assemble_input){
		.counts = counts,
		.nr_counts = nr,
		.stacks = s->stacks,
		.places = s->places,
		.symbols = s->symbols,
		.maps = s->maps,
		.objects = s->objects,
		.details = symbols_details(s->symbols),
	};
	code = assemble(p, &in);
	if (in.details && details_wanted(in.details))
		symbols_wake(s->symbols);
	if (!code)
		annotate_fill(s, p, &in);
	free(counts);
	return code;
}

/* Hand the profile over; one that nobody took is freed. */
static void post(struct sampler *s, struct profile *p)
{
	const uint64_t one = 1;

	/* Release: the profile is complete. Pairs with sampler_take(). */
	profile_free(atomic_exchange_explicit(&s->mailbox, p, memory_order_acq_rel));
	if (write(s->profile_fd, &one, sizeof(one)) != sizeof(one))
		return; /* the counter is full: it is readable all the same */
}

/* Before the grace period, which is long on a full machine: they go with the samples of the tick.
 */
static void read_all(struct sampler *s)
{
	for (uint32_t i = 0; i < s->nr_threads; i++) {
		struct tick_cpu *tc = &s->cpus[i];

		tc->written = ring_written(&counters_cpu(s->counters, i)->data);
		for (uint32_t k = 0; k < s->config.nr_events; k++)
			tc->known[k] = !counters_read(s->counters, i, k, &tc->now[k]);
	}
}

/* Flip the stats, swap the cells; every batch begun before is over then. */
static int take_tick(struct sampler *s, unsigned int *epoch, struct count **counts, uint32_t *nr)
{
	int code;

	*epoch = atomic_fetch_add_explicit(&s->shared->epoch, 1, memory_order_acq_rel);
	read_all(s);
	code = counts_swap(s->counts, counts, nr);
	if (code) /* nothing was waited for */
		synchronize_rcu();
	grace_waited(s->shared);
	return code;
}

void tick_keep_room(struct sampler *s)
{
	bool room = stacks_grow(s->stacks);

	places_grow(s->places);
	if ((!room || generation_is_due(s)) && generation_next(s))
		tick_message(s, "out of memory: new stacks are not counted");
}

void tick_make_room(struct sampler *s)
{
	if (stacks_crowded(s->stacks))
		tick_keep_room(s);
	if (!counts_crowded(s->counts) || counts_grow(s->counts) || s->crowded)
		return;
	s->crowded = true;
	tick_message(s, "more different stacks a tick than there is room for: what is new is "
			"dropped; "
			"a lower rate, or fewer events");
}

/* The kernel lowers its limit by itself when interrupts are slow. */
static void note_max_rate(struct sampler *s)
{
	uint64_t now = procstat_max_sample_rate(s->procstat);
	uint64_t was = atomic_exchange_explicit(&s->max_hz, now, memory_order_relaxed);

	s->max_hz_top = MAX(s->max_hz_top, now);
	if (was && now && now < was)
		tick_message(s,
			     "the kernel's limit fell from %llu to %llu samples a second "
			     "(kernel.perf_event_max_sample_rate)",
			     (unsigned long long)was, (unsigned long long)now);
}

void tick_end(struct sampler *s, uint64_t now_ns)
{
	struct profile *p = xcalloc(1, sizeof(*p));
	struct tick_sums sums = { .lost_known = false };
	struct count *counts = NULL;
	unsigned int epoch;
	uint32_t nr = 0;

	tick_keep_room(s);
	if (now_ns - s->busy_ns >= TICK_RATE_MIN_NS) {
		procstat_update(s->procstat);
		s->busy_ns = now_ns;
	}
	note_max_rate(s);
	/* -ENOMEM: nothing was swapped; the next tick has the cells of both. */
	if (!take_tick(s, &epoch, &counts, &nr) &&
	    history_add(s->history, counts, nr, now_ns - s->last_tick_ns))
		tick_message(s, "out of memory: the counts of this tick are not shown");
	p->interval_ns = MAX(now_ns - s->last_tick_ns, 1);
	s->last_tick_ns = now_ns;
	fill_state(s, p, now_ns);
	fill_cpus(s, p, epoch, &sums, now_ns);
	fill_account(s, p, &sums);
	update_rate(s, now_ns);
	fill_events(s, p);
	fill_unwind(s, p);
	fill_self(s, p);
	s->tick_pct = p->self.cpu_pct;
	s->tick_span_ns = p->interval_ns;
	s->tick_account = p->account;
	if (fill_counts(s, p))
		tick_message(s, "out of memory: this tick has no rows");
	notices_update(&s->notices, p, now_ns - s->start_ns, s->config.window_ns);
	post(s, p);
}

static void fill_replay_cpus(const struct sampler *s, struct profile *p,
			     const struct replay_result *r, struct tick_sums *sums)
{
	p->nr_cpus = r->nr_cpus;
	p->cpus = xcalloc(p->nr_cpus, sizeof(*p->cpus));
	for (uint32_t i = 0; i < r->nr_cpus; i++) {
		const struct replay_cpu *from = &r->cpus[i];

		p->cpus[i] = (struct profile_cpu){
			.cpu = from->cpu,
			.online = true,
			.samples = from->samples.taken,
			.lost = from->lost,
			.lost_total = from->lost,
			.throttled = from->throttled,
			.throttled_total = from->throttled,
			.throttled_ns = from->throttled_ns,
		};
		hottest_fill(&p->cpus[i], &from->samples, s->places);
		sums->lost += from->lost;
		pipeline_add_stats(&sums->all, &from->samples);
	}
}

/* The cells of a replay go into the history once; later profiles show them again. */
static void keep_replay(struct sampler *s, uint64_t span_ns)
{
	struct count *counts = NULL;
	uint32_t nr = 0;

	if (s->seq || counts_swap(s->counts, &counts, &nr))
		return;
	if (history_add(s->history, counts, nr, span_ns))
		tick_message(s, "out of memory: the recording has no rows");
}

void tick_replay(struct sampler *s, const struct replay_result *result)
{
	struct profile *p = xcalloc(1, sizeof(*p));
	struct tick_sums sums = { .lost_known = false };

	keep_replay(s, result->span_ns);
	p->interval_ns = result->span_ns;
	s->account_total = (struct profile_account){ 0 };
	fill_state(s, p, time_now_ns());
	p->running_ns = result->span_ns;
	fill_replay_cpus(s, p, result, &sums);
	fill_account(s, p, &sums);
	fill_events(s, p);
	s->unwind_base = result->unwind;
	fill_unwind(s, p);
	procstat_self(s->procstat, &p->self.cpu_pct, &p->self.rss_kb);
	if (fill_counts(s, p))
		tick_message(s, "out of memory: the recording has no rows");
	s->notices = (struct notices){ .recorded = true };
	notices_update(&s->notices, p, result->span_ns, result->span_ns);
	post(s, p);
}

/* The kernel's counters as they are now are the start of the next tick. */
static void rebase(struct sampler *s, uint32_t index)
{
	struct tick_cpu *tc = &s->cpus[index];
	struct counters_value v;

	for (uint32_t i = 0; i < s->config.nr_events; i++) {
		if (counters_read(s->counters, index, i, &v))
			v = (struct counters_value){ 0 };
		tc->lost_seen[i] = v.lost;
		tc->running_seen[i] = v.running_ns;
		tc->enabled_seen[i] = v.enabled_ns;
	}
	tc->lost_total = 0;
	tc->throttled_total = 0;
}

void tick_discard(struct sampler *s)
{
	struct count *counts = NULL;
	uint32_t nr;

	if (!counts_swap(s->counts, &counts, &nr))
		free(counts);
	history_reset(s->history);
	s->account_total = (struct profile_account){ 0 };
	s->reset_ns = time_now_ns();
	s->rate = (struct tick_rate){ .since_ns = s->reset_ns, .mixed = true };
	for (uint32_t i = 0; i < s->nr_threads; i++)
		rebase(s, i);
}
