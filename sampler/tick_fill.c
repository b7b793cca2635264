// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The parts of a profile. Runs on: the builder.
 */
#include "sampler/tick_fill.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sampler/pipeline/hottest.h"
#include "sampler/replay.h"
#include "sampler/session.h"
#include "unwind/unwind.h"

/* The samples of interpreters. */
static uint64_t lang_samples(const struct pipeline_stats *st)
{
	uint64_t nr = st->lang_certain + st->lang_guessed;

	for (int i = 0; i < LANG_NONE_NR; i++)
		nr += st->lang_none[i];
	return nr;
}

void tick_fill_cpus(struct sampler *s, struct profile *p, unsigned int epoch,
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
	sum->gaps += add->gaps;
	sum->broken += add->broken;
	sum->pending += add->pending;
	sum->dropped += add->dropped;
	sum->lost += add->lost;
	sum->own += add->own;
	sum->no_outcomes |= add->no_outcomes;
}

void tick_fill_account(struct sampler *s, struct profile *p, const struct tick_sums *sums)
{
	const struct pipeline_stats *all = &sums->all;
	struct profile_account *a = &p->account;
	struct maps_stats maps;

	_Static_assert(UNWIND_NR_STOPS <= PROFILE_NR_BROKEN, "a stop has no place in the profile");
	a->complete = all->complete;
	a->guessed = all->guessed;
	a->truncated = all->truncated;
	a->gaps = all->gaps;
	a->pending = all->pending;
	a->own = all->own;
	a->lost = sums->lost;
	for (int i = 0; i < UNWIND_NR_STOPS; i++) {
		p->broken_by[i] = all->broken[i];
		p->broken_in[i] = ends_most(&all->ends[i], all->broken[i]);
		a->broken += all->broken[i];
	}
	p->guessed_in = ends_most(&all->guesses, all->guessed);
	p->guessed_in_jit = p->guessed_in == OBJECT_ID_UNKNOWN;
	for (int i = 0; i < DROP_NR; i++) {
		p->dropped_by[i] = all->dropped[i];
		a->dropped += all->dropped[i];
	}
	p->nr_nameless = all->nameless;
	maps_stats(s->store.maps, &maps);
	p->nr_names_dropped = maps.nr_names_dropped - s->ticks.names_dropped;
	s->ticks.names_dropped = maps.nr_names_dropped;
	p->nr_programs_dropped = maps.nr_programs_dropped - s->ticks.programs_dropped;
	s->ticks.programs_dropped = maps.nr_programs_dropped;
	p->nr_forks_shared = maps.nr_forks_shared - s->ticks.forks_shared;
	s->ticks.forks_shared = maps.nr_forks_shared;
	_Static_assert(LANG_NONE_NR <= PROFILE_NR_LANG_NONE, "a reason has no place in the "
							     "profile");
	p->lang = (struct profile_lang){
		.certain = all->lang_certain,
		.guessed = all->lang_guessed,
		.samples = lang_samples(all),
	};
	_Static_assert(sizeof(p->lang.guessed_by) == sizeof(all->lang_guesses), "languages and "
										"doubts of the "
										"profile");
	memcpy(p->lang.guessed_by, all->lang_guesses, sizeof(p->lang.guessed_by));
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

void tick_fill_events(struct sampler *s, struct profile *p)
{
	uint32_t nr_fds = s->target.tids ? s->live.nr_threads : 1;

	p->nr_events = s->config.nr_events;
	for (uint32_t i = 0; i < p->nr_events; i++) {
		p->events[i].event = s->config.events[i];
		rates_fill_event(&s->rates, i, nr_fds, &p->events[i]);
	}
}

/* Report a process that hangs its reader, once. */
static void say_hung(struct sampler *s, const struct symbols_hung *hung)
{
	if (hung->pid == s->ticks.hung_pid)
		return;
	s->ticks.hung_pid = hung->pid;
	if (hung->left_out == LEFT_OUT_HUNG)
		mailbox_add(&s->mailbox,
			    "reading pid %d in /proc hangs (%u such): its new code has no names",
			    (int)hung->pid, hung->nr);
	else if (hung->left_out == LEFT_OUT_USER)
		mailbox_add(&s->mailbox,
			    "reading pid %d in /proc hangs: until fewer of user %u do, new code of "
			    "this user has no names",
			    (int)hung->pid, (unsigned int)hung->user);
	else
		mailbox_add(&s->mailbox,
			    "reading pid %d in /proc hangs (%u such): until fewer do, new code of "
			    "all processes has no names",
			    (int)hung->pid, hung->nr);
}

void tick_fill_state(struct sampler *s, struct profile *p, uint64_t now_ns)
{
	struct symbols_stats names;
	char news[sizeof(s->mailbox.status)];
	p->seq = ++s->ticks.seq;
	p->time_ns = time_clock_ns(CLOCK_REALTIME);
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
	p->rate_climbs = s->rates.governor.climbs;
	p->rate_capped = s->rates.governor.capped;
	p->max_hz = atomic_load_explicit(&s->rates.max_hz, memory_order_relaxed);
	p->max_hz_top = s->rates.max_hz_top;
	if (s->live.counters) {
		p->ring_size = counters_ring_size(s->live.counters);
		p->ring_wanted = counters_ring_wanted(s->live.counters);
		p->nr_refused = counters_nr_refused(s->live.counters);
		p->refused = counters_refused(s->live.counters, &p->refused_code);
	}
	p->trap = s->trapped;
	memcpy(p->target, s->target.text, sizeof(p->target));
	memcpy(p->banner, s->banner, sizeof(p->banner));
	if (symbols_fetch_news(s->store.symbols, news, sizeof(news)))
		mailbox_add(&s->mailbox, "%s", news);
	symbols_stats(s->store.symbols, &names);
	say_hung(s, &names.hung);
	p->status_seq = mailbox_status(&s->mailbox, p->status);
	p->nr_places = names.nr_named + names.nr_unnamed + names.nr_waiting;
	p->nr_places_named = names.nr_named;
	p->images = (struct profile_images){ names.nr_images, names.image_memory,
					     names.image_memory_max, names.nr_evicted };
	p->nr_places_waiting = names.nr_waiting;
}

void tick_fill_unwind(struct profile *p, const struct unwind_stats *st)
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

static double pct_of(uint64_t now, uint64_t before, uint64_t span_ns)
{
	return now > before && span_ns ? (double)(now - before) * 100 / (double)span_ns : 0;
}

void tick_fill_self(struct sampler *s, struct profile *p)
{
	struct session_cost t = { time_now_ns(), time_clock_ns(CLOCK_PROCESS_CPUTIME_ID),
				  live_cpu_ns(&s->live), time_thread_ns(), 0 };
	const struct session_cost *was = &s->ticks.self;
	uint64_t span_ns = t.now_ns - was->now_ns;
	clockid_t ui;

	procstat_self(s->rates.procstat, &p->self.cpu_pct, &p->self.rss_kb);
	if (!pthread_getcpuclockid(s->ticks.ui, &ui))
		t.ui_ns = time_clock_ns(ui);
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

struct assemble_input tick_fill_tables(const struct sampler *s)
{
	const uint32_t *waits = s->store.tables->wait_places;

	return (struct assemble_input){
		.stacks = s->store.stacks,
		.places = s->store.places,
		.symbols = s->store.symbols,
		.maps = s->store.maps,
		.objects = s->store.objects,
		.details = symbols_details(s->store.symbols),
		.shown_frames = s->config.shown_frames,
		.wait = symbols_wait(s->store.symbols),
		.wait_places = waits[WAIT_ASLEEP] == PLACE_NONE ? NULL : waits,
		.branches = s->store.branches,
		.accesses = s->store.accesses,
		.kept = s->replay && replay_is_kept(s->replay),
	};
}

int tick_fill_from(struct sampler *s, struct profile *p, struct history_cell *counts, uint32_t nr)
{
	struct assemble_input in = tick_fill_tables(s);
	int code;

	in.counts = counts;
	in.nr_counts = nr;
	in.sizes = &s->ticks.sizes;
	code = assemble(p, &in);
	if (in.details && details_wanted(in.details))
		symbols_wake(s->store.symbols);
	if (!code)
		annotate_fill(&s->annotate, s->store.symbols, p, &in);
	free(counts);
	return code;
}

int tick_fill_counts(struct sampler *s, struct profile *p)
{
	struct history_cell *counts = NULL;
	uint32_t nr = 0;
	int code = history_get(s->store.history, s->ticks.window, &counts, &nr, &p->window_ns);

	return code ? code : tick_fill_from(s, p, counts, nr);
}
