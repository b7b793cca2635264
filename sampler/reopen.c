// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Controls that open the events again: another target, other CPUs, another size of stack copies or
 * rings.
 *
 * Runs on: set-up, then the builder. The new events are open before the old
 * ones go, so that no mapping is missed, and a refusal leaves all as it was.
 * Tables and history are kept; the tick of the old events ends before the new
 * ones begin, so that every account is exact.
 */
#include "sampler/reopen.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <urcu-qsbr.h>

#include "sampler/event/task_list.h"
#include "sampler/session.h"
#include "sampler/tick.h"
#include "sampler/waiting.h"

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
static int open_fresh(struct sampler *s, struct fresh *f, const struct target *t, struct err *e)
{
	int code;

	set_rates(s, f);
	set_cpus(s, f);
	f->opened_ns = time_now_ns();
	code = live_open_counters(&f->config, t, &f->counters, e);
	if (code)
		return code;
	code = sideband_new(&f->sideband, f->counters, s->store.maps, s->store.symbols);
	if (code)
		counters_close(f->counters);
	return code ? err_set(e, code, "out of memory") : 0;
}

/* Handle all samples of the old events, end the tick, free the threads and the side-band. */
static void end_old(struct sampler *s)
{
	counters_enable(s->live.counters, false);
	rcu_thread_offline();
	live_finish_threads(&s->live);
	rcu_thread_online();
	tick_end(s, time_now_ns());
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
		end_old(s);
	else
		sideband_free(s->live.sideband); /* no thread could be started */
	s->live.opened_ns = f->opened_ns;
	s->live.alone_ns = time_now_ns();
	s->live.counters = f->counters;
	s->live.sideband = f->sideband;
	s->config = f->config;
	/* The last tick was of the old target; waits begin with the tasks of the new one. */
	if (t) {
		target_replace(&s->target, t);
		cpu_times_clear(s->cpu_times);
	}
	note_rates(s);
	carry_cpus(s, old);
	if (begin_new(s, e))
		mailbox_say(&s->mailbox, "%s", e->text);
	since = time_now_ns() - since;
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
		mailbox_say(&s->mailbox, "not available while recording (--record, --save-dir): a "
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
	if (!sideband_new(&s->live.sideband, s->live.counters, s->store.maps, s->store.symbols))
		begin_new(s, &e);
}

/*
 * Like open_fresh(). Where locked memory allows one set of rings only, end the old events and unmap
 * their data rings first. The side-band's rings are kept, so that no mapping is missed.
 */
static int make_room(struct sampler *s, struct fresh *f, const struct target *t, struct err *e)
{
	int code = open_fresh(s, f, t, e);

	/* No threads: the old events have ended already. */
	if (code != -ENOLCK || !s->live.nr_threads)
		return code;
	f->ended_ns = time_now_ns();
	end_old(s);
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
	bool tasks = s->target.tids;

	e->text[0] = '\0';
	/* The target includes the children and threads that were followed since the start. */
	if (tasks && target_find(&t, &s->target, &f->config, e)) {
		target_drop(&t);
		return false;
	}
	/* For larger rings alone nothing is closed first. */
	if (more_than ? open_fresh(s, f, tasks ? &t : &s->target, e)
		      : make_room(s, f, tasks ? &t : &s->target, e)) {
		if (tasks)
			target_drop(&t);
		return false;
	}
	if (counters_ring_size(f->counters) <= more_than) {
		sideband_free(f->sideband);
		counters_close(f->counters);
		if (tasks)
			target_drop(&t);
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

void reopen_call_graph(struct sampler *s, enum call_graph mode)
{
	static const char *const words[CALL_GRAPH_NR] = {
		[CALL_GRAPH_FP] = "frame pointers (fp): callers are guessed",
		[CALL_GRAPH_OFF] = "no stacks (off): innermost function only",
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

void reopen_stack(struct sampler *s, size_t size, const char *why)
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

void reopen_ring(struct sampler *s, size_t size)
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

void reopen_target(struct sampler *s, struct sampler_target_spec *spec)
{
	struct fresh f = { .config = s->config };

	if (spec->same_cpus)
		config_set_spec_cpus(spec, s->config.cpus, s->config.nr_cpus);
	if (retarget(s, &f, spec))
		forget_focus(s);
}

/* Also for one process alone; leaving it restores the former CPUs. */
void reopen_cpus(struct sampler *s, struct sampler_target_spec *cpus)
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

void reopen_focus(struct sampler *s, pid_t pid)
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

void reopen_check_cpus(struct sampler *s, uint64_t now_ns)
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
