// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The builder thread: ends ticks, applies requests; opens the events again for some; the governor
 * of --max-overhead. Online for urcu-qsbr but while it waits.
 */
#include "sampler/internal.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>
#include <urcu-qsbr.h>

#include "sampler/count/count.h"
#include "sampler/event/event.h"
#include "sampler/hot/hot.h"
#include "sampler/profile/profile.h"
#include "sampler/ring/ring.h"
#include "sampler/waits/waits.h"
#include "symbols/base/base.h"
#include "symbols/base/thread.h"
#include "symbols/image/image.h"
#include "symbols/process/process.h"
#include "symbols/symbols.h"

/*
 * Changes that need the events opened again. A message reports how each went; a refusal leaves
 * everything as it was.
 *
 * Runs on: the builder.
 *
 * Controls that open the events again: another target, other CPUs, another size of stack copies or
 * rings.
 *
 * Runs on: set-up, then the builder. The new events are open before the old
 * ones go, so that no mapping is missed, and a refusal leaves all as it was.
 * Tables and history are kept; the tick of the old events ends before the new
 * ones begin, so that every account is exact.
 */

/* How often the online CPUs are read. */
#define CPUS_LOOK_NS 1000000000ULL

/* The factor on the rate of one process alone. */
#define FOCUS_RATE 4

/* The next events and target: open, not enabled yet. */
struct fresh {
	struct sampler_config config;
	const double *hz; /* other rates, 0: as now; NULL: all as now */
	struct target target;
	struct counters *counters;
	struct sideband *sideband;
	uint64_t opened_ns;
	uint64_t ended_ns; /* when the old events were closed; 0: they are still open */
	uint64_t gap_ns;   /* how long nothing was sampled, if the change failed after all */
	bool stopped;	   /* it failed, and the old events were refused too */
	bool records;	   /* begin or end a recording: config.record */
	/* The next one; when the events are replaced, the one before. */
	struct recording recording;
	struct sampler_recorded recorded; /* in the one before */
	struct err record_err;
	bool per_task; /* see struct target */
	bool discards; /* the tick of the old events is not shown, it begins again */
};

/*
 * Open the events with other rates, or the current ones: no longer the rates of the start. The
 * kernel may have lowered its limit since, and refuses to open an event with more.
 */
static void set_rates(const struct sampler *s, struct fresh *f)
{
	uint64_t limit = procstat_max_sample_rate(s->rates.procstat);
	double max = limit ? (double)limit : INFINITY;

	for (uint32_t i = 0; i < f->config.nr_events; i++) {
		/* A higher one is reached in steps. */
		double hz = f->hz && f->hz[i] > 0 ? MIN(f->hz[i], GOVERNOR_STALL_HZ)
						  : s->rates.hz[i];

		if (hz > 0)
			f->config.events[i].hz = MIN(hz, max);
	}
	f->config.hz = MIN(f->config.hz, max);
}

/* CPUs that are sampled already may be offline for now: they are opened when they are back. */
static void set_cpus(const struct sampler *s, struct fresh *f)
{
	const struct sampler_config *is = &s->config, *c = &f->config;

	f->config.skip_offline = c->cpus && c->nr_cpus == is->nr_cpus &&
				 !memcmp(c->cpus, is->cpus, c->nr_cpus * sizeof(*c->cpus));
}

/* Open the events of @f->config on @t. 0 or -errno with a sentence. */
static int open_fresh(struct sampler *s, struct fresh *f, struct target *t, struct err *e)
{
	int code;

	set_rates(s, f);
	set_cpus(s, f);
	f->opened_ns = time_now_ns();
	code = live_open_counters(&f->config, t, &f->counters, e);
	if (code)
		return code;
	code = sideband_new(&f->sideband, f->counters, s->store.maps, s->store.symbols,
			    &s->live.parents);
	if (code) {
		counters_close(f->counters);
		return err_set(e, code, "out of memory");
	}
	/* The sentence is of an attempt before this one: with one, a change is not reported. */
	e->text[0] = '\0';
	return 0;
}

/*
 * Handle all samples of the old events, end the tick, or discard it, free the threads and the
 * side-band.
 */
static void end_old(struct sampler *s, bool discard)
{
	counters_enable(s->live.counters, false);
	rcu_thread_offline();
	live_finish_threads(&s->live);
	rcu_thread_online();
	if (discard)
		tick_discard(s);
	else
		tick_end(s);
	live_stop_threads(&s->live);
	sideband_free(s->live.sideband);
	s->live.sideband = NULL;
}

/* Carry the sums of each CPU over to the new counters. */
static void carry_cpus(struct sampler *s, struct counters *old)
{
	uint32_t nr = counters_nr_cpus(s->live.counters);
	struct rates_cpu *cpus = rates_new_cpus(nr);

	for (uint32_t i = 0; i < nr; i++)
		for (uint32_t k = 0; k < counters_nr_cpus(old); k++)
			if (counters_cpu(old, k)->cpu == counters_cpu(s->live.counters, i)->cpu) {
				cpus[i].lost.total = s->rates.cpus[k].lost.total;
				cpus[i].lost.throttled_total =
					s->rates.cpus[k].lost.throttled_total;
			}
	free(s->rates.cpus);
	s->rates.cpus = cpus;
}

/* Create the recording of the new events, with the running processes. 0 or -errno with a sentence.
 */
static int begin_recording(struct sampler *s, struct fresh *f, struct err *e)
{
	int code;

	if (!f->records || !f->config.record)
		return 0;
	/* Mappings may hang for a moment. */
	rcu_thread_offline();
	code = recording_open(&f->recording, f->config.record, 0, f->counters, f->sideband,
			      symbols_codes(s->store.symbols), e);
	code = code ? code : recording_start(&f->recording, e);
	rcu_thread_online();
	if (code)
		recording_close(&f->recording);
	return code;
}

/* Record the new events from now on, or no longer; the threads have ended. */
static void use_recording(struct sampler *s, struct fresh *f)
{
	struct recording was = s->recording;

	if (f->records) {
		s->recording = f->recording;
		f->recording = was;
		s->config.record = s->recording.path;
	} else {
		recording_move(&s->recording, f->counters, f->sideband);
	}
	s->live.shared->recorder = s->recording.recorder;
}

/* Complete the recording before, if any; @old: its events. */
static void end_recording(struct sampler *s, struct fresh *f, struct counters *old)
{
	f->record_err.text[0] = '\0';
	if (!f->recording.recorder)
		return;
	recording_end(&f->recording, old, s->config.nr_events, s->store.objects, &f->recorded,
		      &f->record_err);
}

static int begin_new(struct sampler *s, struct err *e)
{
	int code, rc;

	store_close_waits(&s->store);
	if (config_wait_slot(&s->config) >= 0)
		store_open_waits(&s->store, counters_nr_cpus(s->live.counters),
				 config_latency_slot(&s->config));
	code = live_start_threads(&s->live, e);
	for (uint32_t i = 0; i < s->config.nr_events; i++)
		if (s->rates.off[i])
			counters_enable_event(s->live.counters, i, false);
	rc = s->rates.enabled ? counters_enable(s->live.counters, true) : 0;
	if (rc)
		mailbox_say(&s->mailbox, "cannot start sampling: %s", strerror(-rc));
	waiting_begin(s);
	return code;
}

/* Note the rates of the events that were opened. */
static void note_rates(struct sampler *s)
{
	for (uint32_t i = 0; i < s->config.nr_events; i++)
		if (s->rates.hz[i] > 0)
			s->rates.hz[i] = s->config.events[i].hz;
}

/*
 * Switch from the old events to the new ones, and to the target @t, which is taken over; NULL: the
 * target is the same. Returns how long nothing was sampled.
 */
static uint64_t replace(struct sampler *s, struct fresh *f, struct target *t, struct err *e)
{
	uint64_t since = f->ended_ns ? f->ended_ns : time_now_ns();
	struct counters *old = s->live.counters;

	assert(f->counters && f->sideband);
	if (s->live.nr_threads)
		end_old(s, f->discards);
	else
		sideband_free(s->live.sideband); /* no thread could be started */
	s->live.opened_ns = f->opened_ns;
	s->live.alone_ns = time_now_ns();
	s->live.counters = f->counters;
	s->live.sideband = f->sideband;
	s->config = f->config;
	/* The last tick was of the old target; waits begin with the tasks of the new one. */
	if (t)
		target_replace(&s->target, t);
	target_choose(s);
	note_rates(s);
	carry_cpus(s, old);
	use_recording(s, f);
	if (begin_new(s, e))
		mailbox_say(&s->mailbox, "%s", e->text);
	if (t)
		tick_restart_cpu(s);
	since = time_now_ns() - since;
	end_recording(s, f, old);
	counters_close(old);
	messages_restart(&s->messages);
	rates_restart(&s->rates, time_now_ns());
	return since;
}

/* Report whether events may be opened again: the header of a recording has one target and one set
 * of sizes. */
static bool may_reopen(struct sampler *s)
{
	if (s->recording.recorder)
		mailbox_say(&s->mailbox, "not available while recording (--record, --save-dir, "
					 ":record): a "
					 "recording has one target and one size");
	return !s->recording.recorder;
}

static bool reopen_once(struct sampler *s, struct fresh *f, size_t more_than, uint64_t *gap_ns,
			struct err *e);

/*
 * Open the old events again after a failed change. If these are refused, nothing is sampled.
 */
static void come_back(struct sampler *s, struct fresh *f)
{
	struct fresh old = { .config = s->config, .ended_ns = f->ended_ns };
	struct err e;

	if (reopen_once(s, &old, 0, &f->gap_ns, &e))
		return;
	f->stopped = true;
	/* Without their data rings: the side-band, and the next change, continue with them. */
	if (!sideband_new(&s->live.sideband, s->live.counters, s->store.maps, s->store.symbols,
			  &s->live.parents))
		begin_new(s, &e);
}

/*
 * Like open_fresh(). Where locked memory allows one set of rings only, end the old events and unmap
 * their data rings first. The side-band's rings are kept, so that no mapping is missed.
 */
static int make_room(struct sampler *s, struct fresh *f, struct target *t, struct err *e)
{
	int code = open_fresh(s, f, t, e);

	/* No threads: the old events have ended already. */
	if (code != -ENOLCK || !s->live.nr_threads)
		return code;
	f->ended_ns = time_now_ns();
	end_old(s, f->discards);
	counters_unmap(s->live.counters);
	code = open_fresh(s, f, t, e);
	if (code)
		come_back(s, f);
	return code;
}

static void refuse(struct sampler *s, const struct fresh *f, const struct err *e)
{
	int size = (int)strcspn(e->text, "\n");

	if (f->stopped)
		mailbox_say(&s->mailbox, "sampling has stopped, the next change tries again: %.*s",
			    size, e->text);
	else if (f->gap_ns)
		mailbox_say(&s->mailbox, "%.*s; nothing was sampled for %.0f ms", size, e->text,
			    (double)f->gap_ns / 1e6);
	else
		mailbox_say(&s->mailbox, "%.*s", size, e->text);
}

/*
 * Change to @f->config, unless the rings would be no larger than @more_than. False: the reason is
 * in @e, or @e is empty.
 */
static bool reopen_once(struct sampler *s, struct fresh *f, size_t more_than, uint64_t *gap_ns,
			struct err *e)
{
	struct target t = { .cgroup_fd = -1 };
	bool tasks = s->target.tids || s->target.wide;
	int code;

	e->text[0] = '\0';
	/* The target includes the children and threads that were followed since the start. */
	if (tasks && target_find(&t, &s->target, &f->config, e)) {
		target_drop(&t);
		return false;
	}
	t.per_task = f->per_task;
	t.brief = s->target.brief;
	/* For larger rings alone nothing is closed first. */
	if (more_than ? open_fresh(s, f, tasks ? &t : &s->target, e)
		      : make_room(s, f, tasks ? &t : &s->target, e)) {
		if (tasks)
			target_drop(&t);
		return false;
	}
	code = begin_recording(s, f, e);
	if (code || counters_ring_size(f->counters) <= more_than) {
		sideband_free(f->sideband);
		counters_close(f->counters);
		if (tasks)
			target_drop(&t);
		if (f->ended_ns)
			come_back(s, f);
		return false;
	}
	*gap_ns += replace(s, f, tasks ? &t : NULL, e);
	return true;
}

/*
 * Try larger rings again. While the old rings were mapped, locked memory may have been too little
 * for the new ones; now it is free. Only if they are smaller than @before or than requested.
 */
static void regrow(struct sampler *s, size_t before, uint64_t *gap_ns, struct err *e)
{
	size_t now = counters_ring_size(s->live.counters);
	struct fresh f = { .config = s->config };
	struct err again;

	if (now < MIN(MAX(before, s->config.ring_size), counters_ring_wanted(s->live.counters)) &&
	    reopen_once(s, &f, now, gap_ns, &again) && again.text[0])
		*e = again;
}

/* Open the events of a name, or of brief tasks, again: on tasks, or where permitted on whole CPUs.
 */
static bool reopen_tasks(struct sampler *s, bool per_task, bool discard)
{
	struct fresh f = { .config = s->config, .per_task = per_task, .discards = discard };
	uint64_t gap_ns = 0;
	struct err e;

	if (!may_reopen(s))
		return false;
	if (reopen_once(s, &f, 0, &gap_ns, &e))
		return true;
	refuse(s, &f, &e);
	return false;
}

static void reopen_config(struct sampler *s, struct fresh *f, const char *what)
{
	size_t before = counters_ring_size(s->live.counters), now;
	uint64_t gap_ns = 0;
	char less[96] = "";
	struct err e;

	if (!reopen_once(s, f, 0, &gap_ns, &e)) {
		refuse(s, f, &e);
		return;
	}
	regrow(s, before, &gap_ns, &e);
	now = counters_ring_size(s->live.counters);
	if (now < s->config.ring_size)
		snprintf(less, sizeof(less), ": locked memory allows %zu KiB", now >> 10);
	if (!e.text[0])
		mailbox_say(&s->mailbox, "%s%s; nothing was sampled for %.0f ms", what, less,
			    (double)gap_ns / 1e6);
}

/* Return a ring size that holds the same number of samples with @larger stack copies as @ring with
 * @stack. */
static size_t ring_for(size_t ring, size_t stack, size_t larger)
{
	size_t size = ring;

	while (size < SAMPLER_RING_SIZE_MAX && size / larger < ring / stack)
		size *= 2;
	return size;
}

static void reopen_call_graph(struct sampler *s, enum call_graph mode)
{
	static const char *const words[CALL_GRAPH_NR] = {
		[CALL_GRAPH_FP] = "frame pointers (fp): callers are guessed",
		[CALL_GRAPH_OFF] = "no stacks (off): innermost function only",
		[CALL_GRAPH_DEFER] = "deferred chains (defer): callers are guessed",
	};
	struct fresh f = { .config = s->config };
	char what[64];

	if (!may_reopen(s) || (unsigned int)mode >= CALL_GRAPH_NR || mode == s->config.call_graph)
		return;
	f.config.call_graph = mode;
	/* It was off from the start, without a size. */
	if (!f.config.stack_size)
		f.config.stack_size = SAMPLER_STACK_SIZE_DEFAULT;
	snprintf(what, sizeof(what), "DWARF unwinding of %u bytes per stack", f.config.stack_size);
	reopen_config(s, &f, mode == CALL_GRAPH_DWARF ? what : words[mode]);
}

/* @why: text before the message; "": it was requested. */
static void reopen_stack(struct sampler *s, size_t size, const char *why)
{
	struct fresh f = { .config = s->config };
	char what[128];

	size = MIN(size, SAMPLER_STACK_SIZE_MAX) & ~(size_t)7;
	if (!size) {
		reopen_call_graph(s, CALL_GRAPH_OFF);
		return;
	}
	if ((size == f.config.stack_size && f.config.call_graph == CALL_GRAPH_DWARF) ||
	    !may_reopen(s))
		return;
	/* A requested ring size grows with the stack copies. */
	if (f.config.ring_size && f.config.stack_size && size > f.config.stack_size)
		f.config.ring_size = ring_for(f.config.ring_size, f.config.stack_size, size);
	f.config.stack_size = (uint32_t)size;
	f.config.call_graph = CALL_GRAPH_DWARF;
	snprintf(what, sizeof(what), "%s%zu bytes of user stack a sample", why, size);
	reopen_config(s, &f, what);
}

/* Report the recording that has ended. */
static void say_recorded(struct sampler *s, const struct fresh *f, uint64_t gap_ns)
{
	const struct sampler_recorded *r = &f->recorded;
	char unmapped[80];

	if (f->record_err.text[0])
		mailbox_say(&s->mailbox, "%.*s", (int)strcspn(f->record_err.text, "\n"),
			    f->record_err.text);
	else
		mailbox_say(&s->mailbox,
			    "%s: %llu samples, %.1f MiB%s%s; nothing was sampled for %.0f ms",
			    f->recording.path, (unsigned long long)r->nr_samples,
			    (double)r->bytes / (1 << 20),
			    r->nr_dropped ? "; samples were lost, the disk was too slow" : "",
			    recording_unmapped(r->nr_unmapped, unmapped), (double)gap_ns / 1e6);
}

/* Begin a recording to @path; NULL: complete the one that is written. */
static void reopen_record(struct sampler *s, const char *path)
{
	struct fresh f = { .config = s->config, .records = true };
	size_t before = counters_ring_size(s->live.counters);
	uint64_t gap_ns = 0;
	time_t now = time(NULL);
	char clock[16];
	struct tm tm;
	struct err e;

	f.config.record = path;
	if (!reopen_once(s, &f, 0, &gap_ns, &e)) {
		refuse(s, &f, &e);
		return;
	}
	regrow(s, before, &gap_ns, &e);
	localtime_r(&now, &tm);
	strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	if (path)
		mailbox_say(&s->mailbox,
			    "recording to %s from %s on (:record ends it; --save-dir keeps the "
			    "past); "
			    "nothing was sampled for %.0f ms",
			    path, clock, (double)gap_ns / 1e6);
	else
		say_recorded(s, &f, gap_ns);
	recording_close(&f.recording);
}

static void reopen_ring(struct sampler *s, size_t size)
{
	struct fresh f = { .config = s->config };
	char what[64];

	if (!may_reopen(s))
		return;
	f.config.ring_size = MIN(size, (size_t)SAMPLER_RING_SIZE_MAX);
	snprintf(what, sizeof(what), "rings of %zu KiB per CPU", f.config.ring_size >> 10);
	reopen_config(s, &f, what);
}

static bool is_complete(const struct sampler_target_spec *spec)
{
	bool pids = spec->target == TARGET_PIDS || spec->target == TARGET_TIDS;

	return !(pids && !spec->nr_pids) && !(spec->target == TARGET_CGROUP && !spec->cgroup) &&
	       !(spec->target == TARGET_NAME && !spec->name);
}

/*
 * The governor: down immediately, as far as the cost requires, up slowly and only after some calm
 * ticks, so that it does not swing.
 *
 * Pure; one caller at a time.
 */

/* The most that interrupts may take of a CPU at a higher rate, or threads run too slowly. */
#define GOVERNOR_INTERRUPTS_MAX 0.25
/* The lowest rate while symbols are read. */
#define GOVERNOR_STARVED_HZ 19
/* and the lowest rate because of that: up to it, reading symbols at the start may cost more. */
#define GOVERNOR_CAP_HZ 1000

/* More samples lost than this, and the rate is too high whatever it costs. */
#define GOVERNOR_LOSS_MAX 0.01

#define GOVERNOR_CAP_NS 3000000000ULL

/* Shorter stretches say little about the cost. */
#define SPAN_NS 500000000ULL

#define AIM	    0.8 /* of the limit: the cost swings */
#define CALM_BELOW  0.6
#define CALM_STEPS  6
#define RAISE	    1.25
#define STEP_MIN    0.2 /* the cost of one stretch may be a fluke */
#define FACTOR_MIN  0.001
#define HELPED	    0.25 /* of the expected saving, at least; less: samples are not the cost */
#define FIXED_STEPS 30
#define CLIMB	    2.0
#define CLIMB_MIN   1.05

/* Above GOVERNOR_STALL_HZ: how long a tick may be, and the cost be above the cap. */
#define FAST_NS 1000000000ULL

#define LATE_TIMES 3		 /* as long as a tick should be, */
#define LATE_NS	   1000000000ULL /* and this much longer at least, */
#define LATE_TICKS 2		 /* so often in a row */

static void governor_init(struct governor *g, double max_pct, uint32_t nr_cpus, double hz)
{
	assert(max_pct >= 0 && hz >= 0);
	*g = (struct governor){
		.max_pct = max_pct, .factor = 1, .ceiling = 1, .over = 1, .fast = 1
	};
	if (max_pct > 0 || hz <= GOVERNOR_CAP_HZ)
		return;
	g->is_cap = true;
	g->max_pct = (double)GOVERNOR_CAP_PCT * nr_cpus;
	g->least = GOVERNOR_CAP_HZ / hz;
}

/*
 * Begin at GOVERNOR_STALL_HZ, if @hz is higher, and double that as long as the next step is within
 * the limits: a rate that stops the machine is never set, so that it need not be noticed.
 */
static void governor_climb(struct governor *g, double hz)
{
	g->climbs = hz > GOVERNOR_STALL_HZ && g->max_pct > 0;
	if (g->climbs)
		g->factor = g->fast = GOVERNOR_STALL_HZ / hz;
}

static bool is_fast(const struct governor *g)
{
	return g->factor > g->fast;
}

/* Return how long the next tick may be, to see the cost of a high rate in time; UINT64_MAX: as
 * usual. */
static uint64_t governor_patience(const struct governor *g)
{
	return g->climbs ? SPAN_NS : is_fast(g) ? FAST_NS : UINT64_MAX;
}

static bool set_factor(struct governor *g, double factor)
{
	double was = g->factor;

	g->factor = MIN(MAX(factor, FACTOR_MIN), g->ceiling);
	g->capped &= g->factor < g->ceiling;
	g->calm = 0;
	return g->factor < was || g->factor > was;
}

/* A step above the limit. A single costly tick is the loader at work, except at the start. */
static bool lasts(struct governor *g, uint64_t span_ns)
{
	if (!g->is_cap)
		return g->over++;
	g->over_ns += span_ns;
	if (g->over_ns < (is_fast(g) ? FAST_NS : GOVERNOR_CAP_NS))
		return false;
	g->over_ns = 0;
	return true;
}

/* The last step saved a part of the cost that it should have saved. */
static bool helped(const struct governor *g, double pct)
{
	return g->from_pct - pct >= HELPED * g->from_pct * (1 - g->factor / g->from);
}

/*
 * The cost is almost proportional to the number of samples; or it is not the samples that cost, but
 * the symbols of new programs, or records of their doings: then the last step is undone.
 */
static bool lower(struct governor *g, double pct)
{
	double factor = g->factor * MAX(AIM * g->max_pct / pct, STEP_MIN);
	double from = g->from;

	if (!g->is_cap && from > g->factor && !helped(g, pct)) {
		g->from = 0;
		g->fixed = FIXED_STEPS;
		g->why = GOVERNOR_FIXED;
		return set_factor(g, from);
	}
	if (g->fixed)
		return false;
	g->from = g->factor;
	g->from_pct = pct;
	g->capped |= g->is_cap && g->factor > g->least;
	return set_factor(g, MAX(factor, MIN(g->least, g->factor)));
}

/* Cost and interrupts are almost proportional to the rate: the next step is within the limits. */
static bool climb(struct governor *g, double pct)
{
	double times = pct > 0 ? MIN(AIM * g->max_pct / pct, CLIMB) : CLIMB;
	double limit = 1;

	/* The cost may fall later, interrupts will not. */
	if (g->interrupts > 0)
		limit = g->factor * GOVERNOR_INTERRUPTS_MAX / g->interrupts;
	g->ceiling = MIN(g->ceiling, MAX(limit, g->fast));
	if (times < CLIMB) {
		g->climbs = false;
		g->capped = g->is_cap;
	}
	if (g->factor * times >= g->ceiling)
		g->climbs = false;
	return times >= CLIMB_MIN && set_factor(g, g->factor * times);
}

static bool step(struct governor *g, uint64_t span_ns, double pct, double loss)
{
	g->why = GOVERNOR_COST;
	g->pct = pct;
	g->loss = loss;
	if (g->climbs)
		return climb(g, pct);
	g->fixed -= g->fixed > 0;
	if (pct > g->max_pct)
		return lasts(g, span_ns) && lower(g, pct);
	g->from = 0;
	g->over = 0;
	g->over_ns = 0;
	if (!g->is_cap && loss > GOVERNOR_LOSS_MAX) {
		g->why = GOVERNOR_LOST;
		return set_factor(g, g->factor * 0.7);
	}
	if (pct > CALM_BELOW * g->max_pct) {
		g->calm = 0;
		return false;
	}
	return ++g->calm >= CALM_STEPS && g->factor < g->ceiling &&
	       set_factor(g, g->factor * RAISE);
}

/* Add the cost of one tick. True: the factor has changed. */
static bool governor_tick(struct governor *g, uint64_t interval_ns, double cpu_pct, uint64_t taken,
			  uint64_t lost)
{
	uint64_t span_ns;
	double pct, loss;

	assert(g->factor > 0 && g->factor <= 1);
	if (!(g->max_pct > 0))
		return false;
	g->span_ns += interval_ns;
	g->cost_ns += cpu_pct * (double)interval_ns;
	g->taken += taken;
	g->lost += lost;
	if (g->span_ns < SPAN_NS)
		return false;
	pct = g->cost_ns / (double)g->span_ns;
	loss = g->taken ? (double)g->lost / (double)g->taken : 0;
	span_ns = g->span_ns;
	g->span_ns = g->taken = g->lost = 0;
	g->cost_ns = 0;
	return step(g, span_ns, pct, loss);
}

/*
 * A tick took @interval_ns instead of @tick_ns, with @hz wanted of the
 * fastest event. True: not the first in a row that was much too late; the
 * factor is lower, down to GOVERNOR_STALL_HZ, and will not rise again.
 */
static bool governor_stall(struct governor *g, uint64_t interval_ns, uint64_t tick_ns, double hz)
{
	assert(hz >= 0 && g->factor > 0);
	if (hz * g->factor <= GOVERNOR_STALL_HZ || interval_ns < LATE_TIMES * tick_ns ||
	    interval_ns < tick_ns + LATE_NS) {
		g->late = 0;
		return false;
	}
	if (++g->late < LATE_TICKS)
		return false;
	g->late = 0;
	g->climbs = false;
	g->ceiling = GOVERNOR_STALL_HZ / hz;
	return set_factor(g, g->factor);
}

/*
 * A tick was @starved: most stacks are pending, as other threads of proftop get too little CPU
 * time. True: the factor is lower, not below GOVERNOR_STARVED_HZ of @hz, or rises after some other
 * ticks.
 */
static bool governor_starve(struct governor *g, bool starved, double hz)
{
	double least = MIN(GOVERNOR_STARVED_HZ / hz, g->factor);

	assert(hz > 0 && g->factor > 0);
	if (starved) {
		g->fed = 0;
		/* The first tick starts with everything unread. */
		if (++g->starved < LATE_TICKS)
			return false;
		g->hungry |= g->factor > least;
		g->climbs = false;
		return set_factor(g, MAX(g->factor / 2, least));
	}
	g->starved = 0;
	if (!g->hungry || ++g->fed < CALM_STEPS)
		return false;
	g->fed = 0;
	/* Faster than after a cost that was too high: symbols are read once. */
	set_factor(g, g->factor * 2);
	g->hungry = g->factor < g->ceiling;
	return true;
}

/* Return the highest requested rate; 0: only periods. */
static double rates_fastest(const struct rates *r, uint32_t nr_events)
{
	double fastest = 0;

	for (uint32_t i = 0; i < nr_events; i++)
		fastest = MAX(fastest, r->asked_hz[i]);
	return fastest;
}

/* Start the governor again for the requested rates. */
static void rates_govern(struct rates *r, const struct sampler_config *config)
{
	long nr = sysconf(_SC_NPROCESSORS_ONLN);

	governor_init(&r->governor, config->max_overhead_pct, (uint32_t)MAX(nr, 1L),
		      rates_fastest(r, config->nr_events));
	/* Without a screen the requested rate is the rate of the first tick. */
	if (!config->exact_ticks)
		governor_climb(&r->governor, rates_fastest(r, config->nr_events));
}

/* Note that the rates of @hz were asked for, 0: unchanged; the governor starts again. */
static void take_rates(struct sampler *s, const double hz[static EVENTS_MAX])
{
	for (uint32_t i = 0; i < s->config.nr_events; i++)
		if (hz[i] > 0)
			s->rates.asked_hz[i] = hz[i];
	rates_govern(&s->rates, &s->config);
}

/*
 * Change to the target @spec, which is taken over, and the rest of @f->config. False: refused.
 */
static bool retarget(struct sampler *s, struct fresh *f, struct sampler_target_spec *spec)
{
	size_t before = counters_ring_size(s->live.counters);
	uint64_t gap_ns;
	struct err e;

	if (!may_reopen(s) || !is_complete(spec)) {
		config_free_spec(spec);
		return false;
	}
	config_set_spec(&f->config, spec);
	if (target_find(&f->target, &s->target, &f->config, &e) ||
	    make_room(s, f, &f->target, &e)) {
		refuse(s, f, &e);
		target_drop(&f->target);
		config_free_spec(spec);
		return false;
	}
	e.text[0] = '\0';
	gap_ns = replace(s, f, &f->target, &e);
	if (f->hz)
		take_rates(s, f->hz);
	config_free_spec(s->spec);
	s->spec = spec;
	/* Processes that were not followed may have called exec. */
	maps_on_lost(s->store.maps);
	target_describe(&s->target, &s->config);
	regrow(s, before, &gap_ns, &e);
	if (s->target.kind == TARGET_NAME && !s->target.wide && config_wait_slot(&s->config) < 0)
		mailbox_add(&s->mailbox, TARGET_LONG_ONLY);
	if (!e.text[0])
		mailbox_say(&s->mailbox, "sampling %s; nothing was sampled for %.0f ms",
			    s->target.text, (double)gap_ns / 1e6);
	return true;
}

/* Free the settings from before the focus. */
static void forget_focus(struct sampler *s)
{
	config_free_spec(s->focus.spec);
	s->focus = (struct session_focus){ .pid = 0 };
}

/* @spec is taken over. */
static void reopen_target(struct sampler *s, struct sampler_target_spec *spec)
{
	struct fresh f = { .config = s->config };

	if (spec->same_cpus)
		config_set_spec_cpus(spec, s->config.cpus, s->config.nr_cpus);
	if (retarget(s, &f, spec))
		forget_focus(s);
}

/*
 * Sample the CPUs of @cpus, which is taken over.
 * Also for one process alone; leaving it restores the former CPUs.
 */
static void reopen_cpus(struct sampler *s, struct sampler_target_spec *cpus)
{
	struct fresh f = { .config = s->config };
	struct sampler_target_spec *spec = config_get_spec(&s->config);

	config_set_spec_cpus(spec, cpus->cpus, cpus->nr_cpus);
	config_free_spec(cpus);
	retarget(s, &f, spec);
}

static void focus(struct sampler *s, pid_t pid)
{
	double max = (double)atomic_load_explicit(&s->rates.max_hz, memory_order_relaxed);
	double hz[EVENTS_MAX] = { 0 };
	struct fresh f = { .config = s->config, .hz = hz };
	struct session_focus was = { .pid = pid,
				     .stack_size = s->config.stack_size,
				     .nr_events = s->config.nr_events };

	memcpy(was.events, s->config.events, sizeof(was.events));
	memcpy(was.asked_hz, s->rates.asked_hz, sizeof(was.asked_hz));
	for (uint32_t i = 0; i < was.nr_events; i++)
		hz[i] = max > 0 ? MIN(was.asked_hz[i] * FOCUS_RATE, MAX(max, was.asked_hz[i])) : 0;
	f.config.stack_size = MIN(2 * was.stack_size, SAMPLER_STACK_SIZE_MAX) & ~7u;
	was.spec = config_get_spec(&s->config);
	if (retarget(s, &f,
		     config_copy_spec(
			     &(struct sampler_target_spec){ .target = TARGET_PIDS,
							    .pids = &pid,
							    .nr_pids = 1,
							    .cpus = s->config.cpus,
							    .nr_cpus = s->config.nr_cpus }))) {
		s->focus = was;
		return;
	}
	config_free_spec(was.spec);
}

/* False: refused, the process remains alone. */
static bool unfocus(struct sampler *s)
{
	double hz[EVENTS_MAX] = { 0 };
	struct fresh f = { .config = s->config, .hz = hz };

	for (uint32_t i = 0; i < s->config.nr_events; i++)
		for (uint32_t k = 0; k < s->focus.nr_events; k++)
			if (event_same(&s->config.events[i], &s->focus.events[k]))
				hz[i] = s->focus.asked_hz[k];
	f.config.stack_size = s->focus.stack_size;
	if (!retarget(s, &f, config_copy_spec(s->focus.spec)))
		return false;
	forget_focus(s);
	return true;
}

/* Sample process @pid alone, at a higher rate and with larger stack copies. 0: as before. */
static void reopen_focus(struct sampler *s, pid_t pid)
{
	/* One process at a time: the settings from before it are kept for the way back. */
	if (s->focus.pid && !unfocus(s))
		return;
	if (pid)
		focus(s, pid);
}

static bool is_wanted(const struct sampler_config *c, int cpu)
{
	for (uint32_t i = 0; i < c->nr_cpus; i++)
		if (c->cpus[i] == cpu)
			return true;
	return !c->cpus;
}

/* Return a CPU that is back since the online ones were @was; -1: none. */
static int find_back(struct sampler *s, const uint8_t *was)
{
	struct counters *c = s->live.counters;
	const uint8_t *online = s->live.online;
	int back = -1;

	for (int i = 0; was && i < LIVE_CPUS_MAX; i++)
		if (online[i] && !was[i] && is_wanted(&s->config, i))
			back = i;
	for (uint32_t i = 0; i < counters_nr_cpus(c); i++) {
		int cpu = counters_cpu(c, i)->cpu;

		/* It was offline between two looks. */
		if (counters_has_ended(c, i) && cpu < LIVE_CPUS_MAX && online[cpu])
			back = cpu;
	}
	return back;
}

/* Each second: sample a CPU that is online again, was offline for a moment, or is new. */
static void reopen_check_cpus(struct sampler *s, uint64_t now_ns)
{
	struct fresh f = { .config = s->config };
	uint8_t *was = s->live.online;
	int back;

	if (now_ns - s->live.looked_ns < CPUS_LOOK_NS)
		return;
	s->live.looked_ns = now_ns;
	s->live.online = live_online();
	back = find_back(s, was);
	for (int i = 0; was && i < LIVE_CPUS_MAX; i++)
		if (was[i] && !s->live.online[i] && is_wanted(&s->config, i))
			mailbox_say(&s->mailbox,
				    "CPU %d is offline: sampling resumes when it is back", i);
	free(was);
	/* The events of a CPU end when it goes offline; a recording has them once only. */
	if (back >= 0 && may_reopen(s)) {
		char what[48];

		snprintf(what, sizeof(what), "CPU %d is back", back);
		reopen_config(s, &f, what);
	}
}

/*
 * The handler of each control. Runs on: the builder.
 *
 * The table of controls, the governor and --stack-size=auto. Runs on: the builder.
 */

/* Look for interrupts this long: a longer gap is another thread that ran. */
#define SPIN_NS 2000000ULL

#define GAP_MAX_NS 100000ULL

/*
 * Set all rates to the governor's part of the requested ones. Return whether one was changed. At
 * the start of a session also by the thread that starts the builder.
 */
static bool apply_governor(struct sampler *s)
{
	bool changed = false;
	struct err e;

	s->rates.mixed = true;
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
		apply_governor(s);
}

/* Lower the rate if interrupts stall the machine, proftop included. */
static void govern_stall(struct sampler *s)
{
	double fastest = rates_fastest(&s->rates, s->config.nr_events), was;

	was = fastest * s->rates.governor.factor;
	if (!governor_stall(&s->rates.governor, s->ticks.span_ns, s->config.tick_ns, fastest) ||
	    !apply_governor(s))
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

	if (g->why == GOVERNOR_FIXED)
		mailbox_add(&s->mailbox,
			    "proftop uses %.1f%% of a CPU, limit %.1f%%, at a lower rate as well: "
			    "rate back at %.0f Hz",
			    g->pct, g->max_pct, hz);
	else if (!lowered)
		mailbox_add(&s->mailbox, "rate raised to %.0f Hz, %.0f%% of the requested one", hz,
			    100 * g->factor);
	else if (g->why == GOVERNOR_LOST)
		mailbox_add(&s->mailbox,
			    "%.1f%% of the samples were lost: rate lowered to %.0f Hz, %.0f%% of "
			    "the requested one",
			    100 * g->loss, hz, 100 * g->factor);
	else
		mailbox_add(&s->mailbox,
			    "proftop uses %.1f%% of a CPU, limit %.1f%%%s: rate lowered to %.0f "
			    "Hz, %.0f%% of the requested one",
			    g->pct, g->max_pct, g->is_cap ? " (1/4 of all CPUs)" : "", hz,
			    100 * g->factor);
}

/* After each tick: lower the rate while proftop costs too much, raise it when that is over. */
static void builder_govern(struct sampler *s)
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
	if (apply_governor(s))
		say_governed(s, g->factor < was);
}

/* Start again with the requested rates, until they cost too much. */
static void reset_governor(struct sampler *s)
{
	bool lowered = s->rates.governor.factor < 1;

	rates_govern(&s->rates, &s->config);
	if (lowered || s->rates.governor.factor < 1)
		apply_governor(s);
}

/*
 * After each tick, --stack-size=auto: larger stack copies while too many stacks are truncated.
 * Stack copies never shrink again: the size will be needed again, and each change loses some ms of
 * samples.
 */
static void adapt_stacks(struct sampler *s)
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
	s->rates.mixed = true;
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
	if (on)
		tick_restart_cpu(s);
	s->rates.mixed = true;
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
			mailbox_add_banner(s, CONFIG_USER_ONLY);
	}
	if (code)
		mailbox_say(&s->mailbox, "%s", e.text);
	return code;
}

static bool has_wait(const struct event *events, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		if (events[i].wait)
			return true;
	return false;
}

/* Sample other events. Slots change their meaning, so the tick ends and counts start from zero. */
static void set_events(struct sampler *s, const struct control *c)
{
	struct event events[EVENTS_MAX];
	uint32_t nr = MIN(c->events.nr, (uint32_t)EVENTS_MAX);
	bool waited = (s->target.kind == TARGET_NAME || s->target.brief) &&
		      config_wait_slot(&s->config) >= 0;
	bool waits;

	if (nr == 0)
		return;
	memcpy(events, c->events.list, nr * sizeof(events[0]));
	tick_end(s);
	waits = has_wait(events, nr);
	/* Waits are of tasks. */
	if (s->target.wide && waits && !reopen_tasks(s, true, false))
		return;
	if (open_events(s, events, nr)) {
		if (s->target.per_task)
			reopen_tasks(s, false, false);
		return;
	}
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
	if (waited && !waits && !s->recording.recorder)
		reopen_tasks(s, false, false);
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
	s->rates.mixed = true;
	mailbox_say(&s->mailbox, "%s %s", s->config.events[c->event].name,
		    c->on ? "is sampled" : "is off: no overhead");
}

static void set_window(struct sampler *s, const struct control *c)
{
	s->ticks.window = c->window.kind;
	/* The window of a recording that is read to its end has all samples. */
	if (c->window.span_ns == s->config.window_ns || (s->facts.recorded && !s->config.follow))
		return;
	s->config.window_ns = c->window.span_ns;
	history_keep(s->store.history, s->config.window_ns, s->config.history_ns,
		     s->store.history_memory);
	if (s->collect.due_ns != UINT64_MAX)
		history_extend(s->store.history, 2 * (s->collect.due_ns - s->collect.begin_ns));
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
	if (s->facts.recorded)
		return;
	event_states_probe(&s->events, system ? -1 : 0, counters_cpu(s->live.counters, 0)->cpu,
			   s->config.events[0].kernel);
}

/* Read debug files on request: the loader has it, if there is one. */
static void fetch(struct sampler *s, const struct control *c)
{
	(void)c;
	if (s->facts.recorded)
		symbols_run(s->store.symbols);
}

/* Do nothing: the UI stored the value; a tick shows the result. */
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

static void set_cpus_of(struct sampler *s, const struct control *c)
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
	/* The slices of a recording are all there already. */
	if (s->facts.recorded)
		trapping_again(s);
}

static void list_traps(struct sampler *s, const struct control *c)
{
	char text[256];

	mailbox_say(&s->mailbox, "%s", traps_list(&s->traps, text, sizeof(text)));
}

/* Begin or end a recording: beside the records in memory, or by opening the events again. */
static void set_record(struct sampler *s, const struct control *c)
{
	struct recording *r = &s->recording;

	if (s->live.counters)
		recording_note(r, s->live.counters);
	if (c->path && r->path) {
		mailbox_say(&s->mailbox, "already recording to %s (:record ends it)", r->path);
	} else if (!c->path && !r->path) {
		mailbox_say(&s->mailbox, "nothing is recorded: ':record FILE' begins");
	} else if (!r->memory) {
		reopen_record(s, c->path);
	} else if (recording_also(r, c->path, s->store.objects)) {
		mailbox_say(&s->mailbox, "the recording is being written: try again");
	} else if (c->path) {
		s->config.record = r->path;
		mailbox_say(&s->mailbox, "recording to %s, with the past that is in memory",
			    r->path);
	}
	controls_free(c);
}

static void show_past(struct sampler *s, const struct control *c)
{
	s->past.begin_ns = c->past.begin_ns;
	s->past.end_ns = c->past.end_ns;
	tick_past_post(s);
}

/* A request: how it is applied, and whether a recording takes it too. */
struct request_kind {
	void (*apply)(struct sampler *s, const struct control *c);
	bool recorded;
};

static const struct request_kind request_kinds[CONTROL_NR] = {
	[CONTROL_RATE] = { set_rate, false },
	[CONTROL_ENABLE] = { set_enabled, false },
	[CONTROL_EVENTS] = { set_events, false },
	[CONTROL_WINDOW] = { set_window, true },
	[CONTROL_TICK] = { set_tick, true },
	[CONTROL_RESET] = { reset, false },
	[CONTROL_ANNOTATE] = { only_tick, true },
	[CONTROL_FETCH] = { fetch, true },
	[CONTROL_PROBE] = { probe_events, true },
	[CONTROL_EVENT_ENABLE] = { enable_event, false },
	[CONTROL_STACK] = { set_stack, false },
	[CONTROL_RING] = { set_ring, false },
	[CONTROL_TARGET] = { set_target, false },
	[CONTROL_FOCUS] = { set_focus, false },
	[CONTROL_CALL_GRAPH] = { set_call_graph, false },
	[CONTROL_CPUS] = { set_cpus_of, false },
	[CONTROL_STRIP] = { set_strip, true },
	[CONTROL_PAST] = { show_past, true },
	[CONTROL_TRAP] = { set_trap, true },
	[CONTROL_TRAPS] = { list_traps, true },
	[CONTROL_FRAMES] = { set_frames, true },
	[CONTROL_RECORD] = { set_record, false },
};

/* Apply a control; it is consumed. */
static void apply(struct sampler *s, const struct control *c)
{
	assert(c->kind < CONTROL_NR && request_kinds[c->kind].apply);
	if (!s->facts.recorded || request_kinds[c->kind].recorded) {
		request_kinds[c->kind].apply(s, c);
		return;
	}
	controls_free(c);
	mailbox_say(&s->mailbox, "not available when replaying a recording");
}

/* A control is followed by a short tick, at least this long after the last one. */
#define ANSWER_NS 20000000ULL

/* From the end of a command to its last tick: the last samples get their stacks and names. */
#define ENDED_NS 300000000ULL

#define BUILDER_NICE (-5)

/* So much earlier than the end of a slice the sampler threads read its last samples. */
#define GRID_AHEAD_NS 4000000ULL

/* A single tick begins after at most so long, checked so often. */
#define WARM_MAX_NS 3000000000ULL

/* Or so long, on a busy machine: while more than this part of the samples, in percent, waits. */
#define WARM_BUSY_MAX_NS 10000000000ULL
#define WARM_BUSY_PART	 20u

#define WARM_MS 100

/* How often to check for code that is being read. */
#define CODE_MS 10

/* Without CPU time for so long at the end, it hangs. */
#define STOP_MS 2000

/* Longest wait: sampler threads wake the builder if there is something to do. */
#define LOOK_MS 1000

/* Looks at tasks that end soon, in the first seconds. */
#define BRIEF_LOOKS 8

/* Times of the first profiles after the start. */
static const uint64_t early_ns[] = { 120000000, 250000000, 500000000 };

bool builder_apply(struct sampler *s)
{
	struct control items[CONTROLS_MAX];
	uint32_t nr = controls_take(&s->controls, items);
	bool now = false;

	for (uint32_t i = 0; i < nr; i++) {
		now |= items[i].kind != CONTROL_STRIP && items[i].kind != CONTROL_PAST;
		apply(s, &items[i]);
	}
	if (now)
		tick_past_post(s);
	return now;
}

uint64_t builder_next_tick(const struct sampler *s, uint64_t now)
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

uint64_t builder_early_tick(uint64_t first_ns, uint64_t now)
{
	for (size_t i = 0; i < ARRAY_SIZE(early_ns); i++)
		if (now < first_ns + early_ns[i])
			return first_ns + early_ns[i];
	return UINT64_MAX;
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

/* Begin a requested collection at @now_ns. Return true if there was a request. */
static bool collect_begin(struct collect *c, uint64_t now_ns)
{
	/* Relaxed: the span is all there is to see. */
	uint64_t span_ns = atomic_exchange_explicit(&c->wanted_ns, 0, memory_order_relaxed);

	if (!span_ns)
		return false;
	c->begin_ns = now_ns;
	c->due_ns = now_ns + span_ns;
	return true;
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
	s->ticks.start_ns = s->ticks.last_ns = s->ticks.slice_ns = s->ticks.shown_ns =
		s->ticks.reset_ns = now;
	history_begin(s->store.history, now);
	/* Relaxed: see @grid_ns in hot.h. */
	if (s->live.shared && s->config.history_ns)
		atomic_store_explicit(&s->live.shared->grid_ns, now - GRID_AHEAD_NS,
				      memory_order_relaxed);
}

/* Less missed CPU time is not looked at. */
#define BRIEF_MIN_NS 20000000ULL

/* Return whether events of whole CPUs could be opened instead, and have not been. */
static bool could_widen(const struct sampler *s)
{
	const struct target *t = &s->target;

	return (t->kind == TARGET_PIDS || t->kind == TARGET_USER ||
		(t->kind == TARGET_COMMAND && t->release_fd < 0)) &&
	       !t->brief && !t->wide && !t->per_task && !s->recording.recorder &&
	       s->config.nr_events && config_wait_slot(&s->config) < 0 && s->rates.hz[0] > 0;
}

/*
 * Return whether a tenth of the time of the target's tasks, or more, is in tasks that end before a
 * sample is due, as it seems: events of whole CPUs would see them.
 */
static bool is_brief(struct sampler *s)
{
	struct sideband_parents *p = &s->live.parents;
	uint64_t ran_ns = 0, before_ns = s->target.ran_ns, missed_ns;
	const uint64_t now_ns = time_now_ns();
	struct counters_value v;

	if (!could_widen(s) || now_ns - s->target.brief_ns < TARGET_BRIEF_NS)
		return false;
	s->target.brief_ns = now_ns;
	/* Relaxed: numbers. */
	atomic_store_explicit(&p->half_ns, (uint64_t)(1e9 / s->rates.hz[0] / 2),
			      memory_order_relaxed);
	/* No thread drains the side-band while nothing is sampled. */
	rcu_thread_offline();
	sideband_drain(s->live.sideband);
	rcu_thread_online();
	missed_ns = atomic_exchange_explicit(&p->missed_ns, 0, memory_order_relaxed);
	if (missed_ns < BRIEF_MIN_NS)
		return false;
	for (uint32_t i = 0; i < counters_nr_cpus(s->live.counters); i++)
		if (!counters_read(s->live.counters, i, 0, &v))
			ran_ns += v.running_ns;
	s->target.ran_ns = ran_ns;
	return ran_ns > before_ns && missed_ns >= (ran_ns - before_ns) / 10;
}

/*
 * Sample whole CPUs if that is needed to see the tasks of the target. The first tick, which may be
 * the only one, begins again. Returns whether events were opened again.
 */
static bool widen(struct sampler *s)
{
	const bool first = s->config.exact_ticks && s->ticks.last_ns == s->ticks.start_ns;

	if (!is_brief(s))
		return false;
	s->target.brief = true;
	if (!reopen_tasks(s, false, first))
		return false;
	if (first)
		set_start(s, time_now_ns());
	if (s->target.wide)
		mailbox_add(&s->mailbox, "threads or processes end before their first samples: all "
					 "CPUs are sampled, other processes left out");
	else
		mailbox_add_banner(s, TARGET_BRIEF_MISSED);
	return true;
}

/* Note events that readers opened, and report a failure, or a file that was saved. */
static void check_recording(struct sampler *s)
{
	int code = recording_check(&s->recording);
	char text[256];

	if (s->live.counters)
		recording_note(&s->recording, s->live.counters);
	if (saving_check(&s->saving, s->recording.recorder, text, sizeof(text)))
		mailbox_say(&s->mailbox, "trap: %s", text);
	if (recording_also_ended(&s->recording, text, sizeof(text))) {
		s->config.record = NULL;
		mailbox_say(&s->mailbox, "%s", text);
	}
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

static void look_at_readers(struct sampler *s)
{
	uint32_t nr_described = symbols_nr_interpreters(s->store.symbols);
	/* Of all processes of the system, interpreters often start and hardly run. */
	uint32_t nr_found = s->config.target == TARGET_SYSTEM ? 0 : nr_described;

	langreaders_look(&s->live.readers, s->live.counters, s->live.threads, s->live.nr_threads,
			 nr_found, nr_described, &s->mailbox);
}

/*
 * Return how many percent of the samples of a look wait for code that is read, rounded up. On a
 * busy machine a look may have no sample: then as many as before.
 */
static uint32_t part_that_waits(const struct pipeline_stats *look, uint32_t before)
{
	return look->taken ? (uint32_t)((look->pending * 100 + look->taken - 1) / look->taken)
			   : before;
}

/*
 * Sample for nothing until the code that runs is read, and readers have started: a single tick
 * would lack the stacks of its first samples, which are pending or truncated.
 */
static void warm_up(struct sampler *s)
{
	uint64_t end_ns = s->ticks.start_ns + WARM_MAX_NS;
	struct pipeline_stats look;
	uint32_t nr_readers, part = 0;
	bool warm = false;

	/* Relaxed: a sample that waits nevertheless is discarded with the tick. */
	atomic_store_explicit(&s->live.shared->warming, true, memory_order_relaxed);
	/* Acquire: as in builder_main(). */
	while (!warm && time_now_ns() < end_ns &&
	       !atomic_load_explicit(&s->builder.stop, memory_order_acquire)) {
		rcu_thread_offline();
		poll(NULL, 0, WARM_MS);
		rcu_thread_online();
		nr_readers = s->live.readers.nr;
		widen(s);
		look_at_readers(s);
		tick_skip(s, &look);
		part = part_that_waits(&look, part);
		warm = part <= 1 && s->live.readers.nr == nr_readers;
		end_ns = s->ticks.start_ns +
			 (part > WARM_BUSY_PART ? WARM_BUSY_MAX_NS : WARM_MAX_NS);
	}
	atomic_store_explicit(&s->live.shared->warming, false, memory_order_relaxed);
	tick_discard(s);
	set_start(s, s->ticks.reset_ns);
}

/* Wait for a control or @next, at most until a collection is due. As wait_for_control(). */
static bool wait_until(struct sampler *s, uint64_t next, uint64_t now)
{
	uint64_t due = MIN(MIN(next, s->collect.due_ns), waiting_due(s));
	int wait_ms;

	if (now - s->live.opened_ns < BRIEF_LOOKS * TARGET_BRIEF_NS)
		due = MIN(due, now + TARGET_BRIEF_NS);
	wait_ms = due > now ? (int)MIN((due - now + 999999) / 1000000, (uint64_t)LOOK_MS) : 0;
	bool ended = wait_for_control(s, MIN(wait_ms, s->annotate.waits ? CODE_MS : LOOK_MS));

	now = time_now_ns();
	if (now >= waiting_due(s))
		waiting_look(s, now);
	return ended;
}

static void end_tick(struct sampler *s, uint64_t now)
{
	follow_target(s, now);
	reopen_check_cpus(s, now);
	/* A CPU that is back has ended a tick. */
	tick_end(s);
	check_recording(s);
	builder_govern(s);
	waiting_govern(s);
	adapt_stacks(s);
}

/* Make room in the tables if a sampler thread asks for it. */
static void make_wanted_room(struct sampler *s)
{
	/* Relaxed: the tables themselves are checked. */
	if (!atomic_exchange_explicit(&s->live.shared->room_wanted, false, memory_order_relaxed))
		return;
	waiting_make_room(s);
	tick_make_room(s);
}

void *builder_main(void *arg)
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
	due = builder_next_tick(s, now);
	slice = next_slice(s, now);
	while (!atomic_load_explicit(&s->builder.stop, memory_order_acquire)) {
		bool ended = wait_until(s, MIN(due, slice), now);

		now = time_now_ns();
		if (widen(s)) {
			now = time_now_ns();
			due = builder_next_tick(s, now);
			slice = next_slice(s, s->ticks.slice_ns);
		}
		make_wanted_room(s);
		if (atomic_load_explicit(&s->live.shared->waits_flood, memory_order_relaxed))
			waiting_govern(s);
		recording_hold(&s->recording);
		look_at_readers(s);
		if (builder_apply(s)) {
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
			due = builder_next_tick(s, now);
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
		apply_governor(s);
	tick_restart_cpu(s);
	set_start(s, time_now_ns());
	past_use_events(&s->past, s->store.history, &s->config);
	s->rates.procstat_ns = s->ticks.start_ns;
	rates_restart(&s->rates, s->ticks.start_ns);
	s->rates.mixed = false;
	code = thread_start(&s->builder.id, 0, s->source->run, s);
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
	controls_wake(&s->controls);
	s->builder.runs = false;
	s->builder.left = !s->source->stop(s);
	return !s->builder.left;
}

bool builder_join(struct sampler *s)
{
	return thread_join_working(s->builder.id, STOP_MS);
}
