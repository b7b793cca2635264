// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Controls that need the events opened anew: another target, other CPUs,
 * another size of dumps or rings.
 *
 * Runs on: set-up, then the builder. The new events are open before the old
 * ones go, so that no mapping is missed, and a refusal leaves all as it was.
 * Tables and history stay; the tick of the old events ends before the new
 * ones begin, so that every account is exact.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <urcu-qsbr.h>

#include "sampler/session.h"
#include "unwind/unwind.h"

/* How often CPUs that come and go are looked for. */
#define CPUS_LOOK_NS 1000000000ULL
#define CPU_NUMBERS  65536
/* One process alone is sampled so many times as often. */
#define FOCUS_RATE 4
#define RING_MAX   ((size_t)256 << 20)

void session_describe_target(struct sampler *s)
{
	const struct sampler_config *c = &s->config;
	char text[sizeof(s->target_text)] = "system";
	size_t size;

	if (c->replay) {
		text_format(s->target_text, sizeof(s->target_text), "recording %s", c->replay);
		return;
	}
	switch (c->target) {
	case TARGET_SYSTEM:
		break;
	case TARGET_PIDS:
		snprintf(text, sizeof(text), c->nr_pids > 1 ? "pid %d and %u more" : "pid %d",
			 (int)c->pids[0], c->nr_pids - 1);
		break;
	case TARGET_TIDS:
		snprintf(text, sizeof(text), c->nr_pids > 1 ? "thread %d and %u more" : "thread %d",
			 (int)c->pids[0], c->nr_pids - 1);
		break;
	case TARGET_CGROUP:
		snprintf(text, sizeof(text), "cgroup %s", c->cgroup);
		break;
	case TARGET_NAME:
		snprintf(text, sizeof(text), "name %s", c->name);
		break;
	case TARGET_USER:
		snprintf(text, sizeof(text), "user %u", (unsigned int)c->uid);
		break;
	case TARGET_COMMAND:
		snprintf(text, sizeof(text), "command %s", c->command[0]);
		break;
	}
	size = strlen(text);
	if (c->cpus)
		snprintf(text + size, sizeof(text) - size,
			 c->nr_cpus > 1 ? " on CPU %d and %u more" : " on CPU %d", c->cpus[0],
			 c->nr_cpus - 1);
	text_sanitise(s->target_text, sizeof(s->target_text), text, strlen(text));
}

int session_open_counters(const struct sampler_config *c, const struct target *t, const int *cpus,
			  uint32_t nr_cpus, struct counters **out, struct err *e)
{
	const bool dwarf = c->call_graph == CALL_GRAPH_DWARF;
	const struct counters_config config = {
		.cpus = cpus,
		.nr_cpus = nr_cpus,
		.tids = t->tids,
		.nr_tids = t->nr_tids,
		.no_inherit = t->kind == TARGET_TIDS,
		.may_be_empty = t->kind == TARGET_NAME,
		.cgroup = t->cgroup_fd >= 0,
		.cgroup_fd = t->cgroup_fd,
		/* Held back until its exec; later on it is processes like others. */
		.enable_on_exec = t->kind == TARGET_COMMAND && t->release_fd >= 0,
		.events = c->events,
		.nr_events = c->nr_events,
		.hz = c->hz,
		.period = c->period,
		.stack_size = dwarf ? c->stack_size : 0,
		.regs_mask = dwarf ? unwind_regs_mask() : 0,
		.no_chain = c->call_graph == CALL_GRAPH_OFF,
		.ring_size = c->ring_size,
		.exclude_idle = true,
		.data_maps = c->record,
	};

	return counters_open(out, &config, c->sys ? c->sys : &counters_kernel, e);
}

int session_choose_cpus(const struct sampler_config *c, int **cpus, struct err *e)
{
	int nr = counters_online_cpus(cpus, e), kept = 0;

	if (nr < 0 || !c->cpus)
		return nr;
	for (uint32_t i = 0; i < c->nr_cpus; i++) {
		bool online = false;

		for (int k = 0; k < nr && !online; k++)
			online = (*cpus)[k] == c->cpus[i];
		if (!online)
			return err_set(e, -ENODEV,
				       "CPU %d is not online\n"
				       "  /sys/devices/system/cpu/online lists those that are\n"
				       "  leave it out of -C",
				       c->cpus[i]);
	}
	free(*cpus);
	*cpus = xcalloc(c->nr_cpus, sizeof(**cpus));
	for (uint32_t i = 0; i < c->nr_cpus; i++) {
		bool twice = false;

		for (int k = 0; k < kept && !twice; k++)
			twice = (*cpus)[k] == c->cpus[i];
		if (!twice)
			(*cpus)[kept++] = c->cpus[i];
	}
	return kept;
}

static void *copy_of(const void *p, size_t nr, size_t size)
{
	void *copy = p && nr ? xcalloc(nr, size) : NULL;

	if (copy)
		memcpy(copy, p, nr * size);
	return copy;
}

static char *text_of(const char *text)
{
	return text ? xstrndup(text, strlen(text)) : NULL;
}

struct sampler_target_spec *spec_copy(const struct sampler_target_spec *spec)
{
	struct sampler_target_spec *copy = xcalloc(1, sizeof(*copy));

	*copy = *spec;
	copy->pids = copy_of(spec->pids, spec->nr_pids, sizeof(*spec->pids));
	copy->cpus = copy_of(spec->cpus, spec->nr_cpus, sizeof(*spec->cpus));
	copy->cgroup = text_of(spec->cgroup);
	copy->name = text_of(spec->name);
	return copy;
}

void spec_free(struct sampler_target_spec *spec)
{
	if (!spec)
		return;
	free((void *)(uintptr_t)spec->pids);
	free((void *)(uintptr_t)spec->cpus);
	free((void *)(uintptr_t)spec->cgroup);
	free((void *)(uintptr_t)spec->name);
	free(spec);
}

/* What is to be used from now on, all open but nothing at work yet. */
struct fresh {
	struct sampler_config config;
	struct target target;
	struct counters *counters;
	struct sideband *sideband;
	uint64_t opened_ns;
	uint64_t ended_ns; /* when the old events had to go; 0: they go on */
	uint64_t gap_ns;   /* for so long nothing was sampled, and all is as before */
};

/* The rates are what they are now, not what they were at the start. */
static void keep_rates(const struct sampler *s, struct sampler_config *c)
{
	for (uint32_t i = 0; i < c->nr_events; i++)
		if (s->hz[i] > 0)
			c->events[i].hz = s->hz[i];
}

/* Open what @f->config says; @f->target is found already, or is the old one. */
static int open_fresh(struct sampler *s, struct fresh *f, const struct target *t, struct err *e)
{
	int *cpus = NULL, nr, code;

	keep_rates(s, &f->config);
	nr = session_choose_cpus(&f->config, &cpus, e);
	f->opened_ns = time_now_ns();
	code = nr < 0 ? nr
		      : session_open_counters(&f->config, t, cpus, (uint32_t)nr, &f->counters, e);
	free(cpus);
	if (code)
		return code;
	code = sideband_new(&f->sideband, f->counters, s->maps, s->symbols);
	if (code)
		counters_close(f->counters);
	return code ? err_set(e, code, "out of memory") : 0;
}

/* The figures of threads that end: their sums are told since the start. */
static void keep_unwind_stats(struct sampler *s, const struct sampler_thread *t)
{
	struct unwind_stats st, *sum = &s->unwind_base;

	sampler_thread_unwind_stats(t, &st);
	sum->nr_frames += st.nr_frames;
	sum->nr_row_hits += st.nr_row_hits;
	sum->nr_steps += st.nr_steps;
	sum->nr_guessed += st.nr_guessed;
	sum->nr_rows += st.nr_rows;
	sum->nr_rows_differ += st.nr_rows_differ;
	sum->nr_verified += st.nr_verified;
	sum->nr_verify_differ += st.nr_verify_differ;
}

/* The old events give all they have, the tick ends, and they are gone. */
static void end_old(struct sampler *s)
{
	counters_enable(s->counters, false);
	rcu_thread_offline();
	for (uint32_t i = 0; i < s->nr_threads; i++)
		sampler_thread_finish(s->threads[i]);
	rcu_thread_online();
	tick_end(s, time_now_ns());
	for (uint32_t i = 0; i < s->nr_threads; i++) {
		keep_unwind_stats(s, s->threads[i]);
		s->samplers_base_ns += sampler_thread_cpu_ns(s->threads[i]);
		sampler_thread_stop(s->threads[i]);
	}
	s->nr_threads = 0;
	sideband_free(s->sideband);
	s->sideband = NULL;
}

/* Per CPU: the sums go on, what was seen of the old counters is void. */
static void carry_cpus(struct sampler *s, struct counters *old)
{
	uint32_t nr = counters_nr_cpus(s->counters);
	struct tick_cpu *cpus = tick_new_cpus(nr);

	for (uint32_t i = 0; i < nr; i++)
		for (uint32_t k = 0; k < counters_nr_cpus(old); k++)
			if (counters_cpu(old, k)->cpu == counters_cpu(s->counters, i)->cpu) {
				cpus[i].lost_total = s->cpus[k].lost_total;
				cpus[i].throttled_total = s->cpus[k].throttled_total;
			}
	free(s->cpus);
	s->cpus = cpus;
	free(s->threads);
	s->threads = xcalloc(nr, sizeof(struct sampler_thread *));
}

static int begin_new(struct sampler *s, struct err *e)
{
	int code = 0;

	s->shared->counters = s->counters;
	s->shared->sideband = s->sideband;
	for (uint32_t i = 0; i < counters_nr_cpus(s->counters) && !code; i++) {
		code = sampler_thread_start(&s->threads[i], s->shared, i, e);
		s->nr_threads += !code;
	}
	for (uint32_t i = 0; i < s->config.nr_events; i++)
		if (s->event_off[i])
			counters_enable_event(s->counters, i, false);
	if (s->enabled)
		counters_enable(s->counters, true);
	return code;
}

/* From the old events to the new ones. Returns how long nothing was sampled. */
static uint64_t replace(struct sampler *s, struct fresh *f, struct err *e)
{
	uint64_t since = f->ended_ns ? f->ended_ns : time_now_ns();
	struct counters *old = s->counters;

	if (s->nr_threads)
		end_old(s);
	s->opened_ns = f->opened_ns;
	s->alone_ns = time_now_ns();
	s->counters = f->counters;
	s->sideband = f->sideband;
	s->config = f->config;
	carry_cpus(s, old);
	if (begin_new(s, e))
		tick_message(s, "%s", e->text);
	since = time_now_ns() - since;
	counters_close(old);
	notices_restart(&s->notices);
	s->rate = (struct tick_rate){ .since_ns = time_now_ns(), .mixed = true };
	return since;
}

/* A recording's header tells of one set of rings and one target. */
static bool may_reopen(struct sampler *s)
{
	if (s->recorder)
		tick_message(s, "not while it is recorded: the recording is of one target and one "
				"size");
	return !s->recorder;
}

static bool reopen_once(struct sampler *s, struct fresh *f, size_t more_than, uint64_t *gap_ns,
			struct err *e);

/* Nothing came of it: the old events, in their own place. If even these are refused, none are
 * sampled. */
static void come_back(struct sampler *s, struct fresh *f)
{
	struct fresh old = { .config = s->config, .ended_ns = f->ended_ns };
	struct err e;

	if (reopen_once(s, &old, 0, &f->gap_ns, &e))
		return;
	if (sideband_new(&s->sideband, s->counters, s->maps, s->symbols) || begin_new(s, &e))
		tick_message(s, "nothing is sampled any more: out of memory");
}

/*
 * open_fresh(), also where locked memory has its limit at one set of rings: then the old events end
 * first, and their data rings go. Those of the side-band stay, so that no mapping is missed.
 */
static int make_room(struct sampler *s, struct fresh *f, const struct target *t, struct err *e)
{
	int code = open_fresh(s, f, t, e);

	/* No threads: that was done. */
	if (code != -ENOLCK || !s->nr_threads)
		return code;
	f->ended_ns = time_now_ns();
	end_old(s);
	counters_unmap(s->counters);
	code = open_fresh(s, f, t, e);
	if (code)
		come_back(s, f);
	return code;
}

static void refuse(struct sampler *s, const struct fresh *f, const struct err *e)
{
	int size = (int)strcspn(e->text, "\n");

	if (f->gap_ns)
		tick_message(s, "%.*s; nothing was sampled for %.0f ms", size, e->text,
			     (double)f->gap_ns / 1e6);
	else
		tick_message(s, "%.*s", size, e->text);
}

/* As @f->config says, unless the rings would be no larger than @more_than. False: @e tells, or is
 * empty. */
static bool reopen_once(struct sampler *s, struct fresh *f, size_t more_than, uint64_t *gap_ns,
			struct err *e)
{
	struct target t = { .cgroup_fd = -1 };
	bool tasks = s->target.tids;

	e->text[0] = '\0';
	/* Who is followed by now: children and threads since the start belong to it. */
	if (tasks && target_find(&t, &s->target, &f->config, e))
		return false;
	/* For larger rings alone nothing is given up. */
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
	if (tasks)
		target_replace(&s->target, &t);
	*gap_ns += replace(s, f, e);
	return true;
}

/*
 * While the old rings were held, locked memory may have been too little for the new ones: once
 * more, now that it is free, if they are smaller than @before or than what was asked for.
 */
static void regrow(struct sampler *s, size_t before, uint64_t *gap_ns, struct err *e)
{
	size_t now = counters_ring_size(s->counters);
	struct fresh f = { .config = s->config };
	struct err again;

	if (now < MIN(MAX(before, s->config.ring_size), counters_ring_wanted(s->counters)) &&
	    reopen_once(s, &f, now, gap_ns, &again) && again.text[0])
		*e = again;
}

static void reopen_config(struct sampler *s, struct fresh *f, const char *what)
{
	size_t before = counters_ring_size(s->counters), now;
	uint64_t gap_ns = 0;
	char less[96] = "";
	struct err e;

	if (!reopen_once(s, f, 0, &gap_ns, &e)) {
		refuse(s, f, &e);
		return;
	}
	regrow(s, before, &gap_ns, &e);
	now = counters_ring_size(s->counters);
	if (now < s->config.ring_size)
		snprintf(less, sizeof(less), ": locked memory allows %zu KiB", now >> 10);
	if (!e.text[0])
		tick_message(s, "%s%s; nothing was sampled for %.0f ms", what, less,
			     (double)gap_ns / 1e6);
}

/* The power of two that is to the larger dumps what @ring was to the smaller ones. */
static size_t ring_for(size_t ring, size_t stack, size_t larger)
{
	size_t size = ring;

	while (size < RING_MAX && size / larger < ring / stack)
		size *= 2;
	return size;
}

void reopen_call_graph(struct sampler *s, enum call_graph mode)
{
	static const char *const words[CALL_GRAPH_NR] = {
		[CALL_GRAPH_FP] = "stacks by frame pointers (fp): callers are guessed",
		[CALL_GRAPH_OFF] = "no stacks (off): the innermost function alone",
	};
	struct fresh f = { .config = s->config };
	char what[64];

	if (!may_reopen(s) || (unsigned int)mode >= CALL_GRAPH_NR || mode == s->config.call_graph)
		return;
	f.config.call_graph = mode;
	/* It was off from the start: no size was ever asked for. */
	if (!f.config.stack_size)
		f.config.stack_size = SAMPLER_STACK_SIZE_DEFAULT;
	snprintf(what, sizeof(what), "stacks from dumps of %u bytes (dwarf)", f.config.stack_size);
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
	/* What was asked for holds as many samples as before. */
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
	f.config.ring_size = MIN(size, RING_MAX);
	snprintf(what, sizeof(what), "rings of %zu KiB a CPU", f.config.ring_size >> 10);
	reopen_config(s, &f, what);
}

static void take_spec(struct sampler_config *c, const struct sampler_target_spec *spec)
{
	c->target = spec->target;
	c->pids = spec->pids;
	c->nr_pids = spec->nr_pids;
	c->uid = spec->uid;
	c->cgroup = spec->cgroup;
	c->name = spec->name;
	c->cpus = spec->cpus;
	c->nr_cpus = spec->nr_cpus;
}

static bool is_complete(const struct sampler_target_spec *spec)
{
	bool pids = spec->target == TARGET_PIDS || spec->target == TARGET_TIDS;

	return !(pids && !spec->nr_pids) && !(spec->target == TARGET_CGROUP && !spec->cgroup) &&
	       !(spec->target == TARGET_NAME && !spec->name);
}

/* From the target in use to @spec, which is taken over, with the rest of @f->config. False:
 * refused. */
static bool retarget(struct sampler *s, struct fresh *f, struct sampler_target_spec *spec)
{
	size_t before = counters_ring_size(s->counters);
	uint64_t gap_ns;
	struct err e;

	if (!may_reopen(s) || !is_complete(spec)) {
		spec_free(spec);
		return false;
	}
	take_spec(&f->config, spec);
	if (target_find(&f->target, &s->target, &f->config, &e) ||
	    make_room(s, f, &f->target, &e)) {
		refuse(s, f, &e);
		target_drop(&f->target);
		spec_free(spec);
		return false;
	}
	e.text[0] = '\0';
	gap_ns = replace(s, f, &e);
	target_replace(&s->target, &f->target);
	spec_free(s->spec);
	s->spec = spec;
	/* Who was not followed meanwhile may have become another program. */
	maps_on_lost(s->maps);
	session_describe_target(s);
	regrow(s, before, &gap_ns, &e);
	if (!e.text[0])
		tick_message(s, "sampling %s; nothing was sampled for %.0f ms", s->target_text,
			     (double)gap_ns / 1e6);
	return true;
}

/* What was before the focus is of no use any more. */
static void forget_focus(struct sampler *s)
{
	spec_free(s->focus.spec);
	s->focus = (struct focus){ .pid = 0 };
}

static void take_cpus(struct sampler_target_spec *spec, const int *cpus, uint32_t nr)
{
	free((void *)(uintptr_t)spec->cpus);
	spec->cpus = copy_of(cpus, nr, sizeof(*cpus));
	spec->nr_cpus = nr;
}

void reopen_target(struct sampler *s, struct sampler_target_spec *spec)
{
	struct fresh f = { .config = s->config };

	if (spec->same_cpus)
		take_cpus(spec, s->config.cpus, s->config.nr_cpus);
	if (retarget(s, &f, spec))
		forget_focus(s);
}

static struct sampler_target_spec *spec_of(const struct sampler_config *c)
{
	return spec_copy(&(struct sampler_target_spec){
		.target = c->target,
		.pids = c->pids,
		.nr_pids = c->nr_pids,
		.uid = c->uid,
		.cgroup = c->cgroup,
		.name = c->name,
		.cpus = c->cpus,
		.nr_cpus = c->nr_cpus,
	});
}

/* Of one process alone, too: its way back has the CPUs of before. */
void reopen_cpus(struct sampler *s, struct sampler_target_spec *cpus)
{
	struct fresh f = { .config = s->config };
	struct sampler_target_spec *spec = spec_of(&s->config);

	take_cpus(spec, cpus->cpus, cpus->nr_cpus);
	spec_free(cpus);
	retarget(s, &f, spec);
}

/* The rates that @hz says, 0: as it is; the governor begins anew. */
static void take_rates(struct sampler *s, const double hz[static EVENTS_MAX])
{
	for (uint32_t i = 0; i < s->config.nr_events; i++)
		if (hz[i] > 0)
			s->hz[i] = s->asked_hz[i] = hz[i];
	governor_init(&s->governor, s->config.max_overhead_pct);
}

static void focus(struct sampler *s, pid_t pid)
{
	double max = (double)atomic_load_explicit(&s->max_hz, memory_order_relaxed);
	struct fresh f = { .config = s->config };
	struct focus was = { .pid = pid,
			     .stack_size = s->config.stack_size,
			     .nr_events = s->config.nr_events };
	double hz[EVENTS_MAX] = { 0 };

	memcpy(was.events, s->config.events, sizeof(was.events));
	memcpy(was.asked_hz, s->asked_hz, sizeof(was.asked_hz));
	for (uint32_t i = 0; i < was.nr_events; i++)
		hz[i] = max > 0 ? MIN(was.asked_hz[i] * FOCUS_RATE, MAX(max, was.asked_hz[i])) : 0;
	f.config.stack_size = MIN(2 * was.stack_size, SAMPLER_STACK_SIZE_MAX) & ~7u;
	was.spec = spec_of(&s->config);
	take_rates(s, hz);
	if (retarget(s, &f,
		     spec_copy(&(struct sampler_target_spec){ .target = TARGET_PIDS,
							      .pids = &pid,
							      .nr_pids = 1,
							      .cpus = s->config.cpus,
							      .nr_cpus = s->config.nr_cpus }))) {
		s->focus = was;
		return;
	}
	take_rates(s, was.asked_hz);
	spec_free(was.spec);
}

static void unfocus(struct sampler *s)
{
	struct fresh f = { .config = s->config };
	double hz[EVENTS_MAX] = { 0 };

	for (uint32_t i = 0; i < s->config.nr_events; i++)
		for (uint32_t k = 0; k < s->focus.nr_events; k++)
			if (event_same(&s->config.events[i], &s->focus.events[k]))
				hz[i] = s->focus.asked_hz[k];
	f.config.stack_size = s->focus.stack_size;
	take_rates(s, hz);
	if (retarget(s, &f, spec_copy(s->focus.spec)))
		forget_focus(s);
}

void reopen_focus(struct sampler *s, pid_t pid)
{
	if (s->focus.pid)
		unfocus(s);
	if (pid)
		focus(s, pid);
}

/* Which CPUs are online, by number. */
static uint8_t *online_now(void)
{
	uint8_t *set = xcalloc(CPU_NUMBERS, 1);
	int *cpus = NULL, nr = counters_online_cpus(&cpus, NULL);

	for (int i = 0; i < nr; i++)
		if (cpus[i] < CPU_NUMBERS)
			set[cpus[i]] = 1;
	free(cpus);
	return set;
}

static bool is_wanted(const struct sampler_config *c, int cpu)
{
	for (uint32_t i = 0; i < c->nr_cpus; i++)
		if (c->cpus[i] == cpu)
			return true;
	return !c->cpus;
}

void reopen_check_cpus(struct sampler *s, uint64_t now_ns)
{
	struct fresh f = { .config = s->config };
	uint8_t *was = s->cpus_online;
	int back = -1;

	if (now_ns - s->cpus_looked_ns < CPUS_LOOK_NS)
		return;
	s->cpus_looked_ns = now_ns;
	s->cpus_online = online_now();
	for (int i = 0; was && i < CPU_NUMBERS; i++)
		if (s->cpus_online[i] && !was[i] && is_wanted(&s->config, i))
			back = i;
	for (int i = 0; was && i < CPU_NUMBERS; i++)
		if (was[i] && !s->cpus_online[i] && is_wanted(&s->config, i))
			tick_message(s,
				     "CPU %d went offline: it is sampled again when it comes back",
				     i);
	free(was);
	/* Its events did not survive; a recording cannot follow. */
	if (back >= 0 && may_reopen(s)) {
		char what[48];

		snprintf(what, sizeof(what), "CPU %d is back", back);
		reopen_config(s, &f, what);
	}
}
