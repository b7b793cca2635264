// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The ledger's items that are not zero, as sentences with cures.
 *
 * Runs on: the builder, once a profile. One rule a function; what a rule does
 * not note this time is no longer active, but stays in the list.
 */
#include "sampler/notices.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/dso.h"
#include "unwind/unwind.h"

/* Shares of the window's samples from which on a kind of stack is a warning. */
#define BROKEN_LOUD  0.05
#define GUESSED_LOUD 0.25
#define PENDING_LOUD 0.5
/* Below, too few samples to tell a share. */
#define TAKEN_MIN 50
/* At the start everything is new. */
#define START_NS 10000000000ULL
#define RING_LOUD	0.75
#define RING_MAX	(256u << 20)
#define LAG_LOUD_NS	500000000ULL
#define SELF_LOUD_PCT	10.0
#define SELF_LOUD_KB	(1u << 20)
#define NAMES_LOUD	0.05
#define STACK_SIZE_MAX	65528u
#define CPUS_NAMED	4		/* in a sentence */

static struct profile_notice *entry_of(struct notices *n, const char *key)
{
	struct profile_notice *e;

	for (uint32_t i = 0; i < n->nr; i++)
		if (!strcmp(n->items[i].key, key))
			return &n->items[i];
	if (n->nr == NOTICES_MAX)
		return NULL;
	e = &n->items[n->nr];
	*e = (struct profile_notice){ .id = n->nr++, .first_ns = n->now_ns };
	snprintf(e->key, sizeof(e->key), "%s", key);
	return e;
}

static void clean(char *dst, size_t size, const char *fmt, va_list ap)
{
	char text[512];

	vsnprintf(text, sizeof(text), fmt, ap);
	text_sanitise(dst, size, text, strlen(text));
}

/* Note it now; where the table is full, in an entry that is thrown away. */
__attribute__((format(printf, 5, 6))) static struct profile_notice *
note(struct notices *n, const char *key, enum notice_severity severity, uint64_t count,
     const char *fmt, ...)
{
	struct profile_notice *e = entry_of(n, key);
	va_list ap;

	e = e ? e : &n->spare;
	va_start(ap, fmt);
	clean(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	e->severity = severity;
	e->count += count;
	e->last_ns = n->now_ns;
	e->active = true;
	e->control = NOTICE_NONE;
	e->cure[0] = '\0';
	return e;
}

/* A state, not something that happens: counted when it begins. */
static uint64_t begins(const struct notices *n, const char *key)
{
	for (uint32_t i = 0; i < n->nr; i++)
		if (!strcmp(n->items[i].key, key))
			return n->items[i].last_ns != n->before_ns;
	return 1;
}

__attribute__((format(printf, 5, 6))) static void cure(struct notices *n, struct profile_notice *e,
						       enum notice_control control, double value,
						       const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	clean(e->cure, sizeof(e->cure), fmt, ap);
	va_end(ap);
	e->control = n->recorded && control != NOTICE_MODULES && control != NOTICE_CPUS ? NOTICE_NONE :
											  control;
	e->value = value;
}

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

/* More than its limit the kernel refuses; at the limit it throttles what comes but a little too soon. */
static double within_limit(const struct profile *p)
{
	return MAX(floor((double)p->max_hz / 2), 1.0);
}

static void cure_rate(struct notices *n, const struct profile *p, struct profile_notice *e,
		      const char *also)
{
	uint32_t event = fastest(p);
	double hz;

	if (event == p->nr_events) {
		cure(n, e, NOTICE_NONE, 0, "a longer period (-c)%s", also);
		return;
	}
	hz = MAX(round(p->events[event].want_hz / 2), 1.0);
	hz = p->max_hz ? MIN(hz, within_limit(p)) : hz;
	cure(n, e, NOTICE_RATE, hz, "%s the rate of %s to %.0f Hz%s", hz < p->events[event].want_hz / 2 - 1 ?
	     "lower" : "halve", p->events[event].event.name, hz, also);
	e->event = event;
}

/* A ring that can still grow, else a lower rate. */
static void cure_ring(struct notices *n, const struct profile *p, struct profile_notice *e)
{
	uint64_t size = 2 * p->ring_size;

	if (!p->ring_size || size > RING_MAX || (n->ring_refused && size >= n->ring_refused)) {
		cure_rate(n, p, e, "; the ring cannot grow; smaller stack dumps ({) need less of it");
		return;
	}
	cure(n, e, NOTICE_RING_SIZE, (double)size,
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
		cure_ring(n, p, note(n, "lost", NOTICE_GRAVE, p->account.lost,
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
		cure_rate(n, p, note(n, "throttled", NOTICE_GRAVE, times,
				     "throttled on %s, %.0f ms in the tick: what ran then is missing",
				     name_cpus(cpus, sizeof(cpus), p, throttled_of), (double)ns / 1e6),
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
		cure_ring(n, p, note(n, "ring-full", NOTICE_WARN, 1, "the ring of %s was %.0f%% full",
				     name_cpus(cpus, sizeof(cpus), p, full_of), 100 * high));
	n->ring_refused = p->ring_size < p->ring_wanted ? 2 * p->ring_size : 0;
	if (!n->ring_refused)
		return;
	e = note(n, "ring-small", NOTICE_INFO, begins(n, "ring-small"),
		 "rings of %llu KiB a CPU, not %llu: locked memory is limited, and other profilers of "
		 "this user take of it", (unsigned long long)p->ring_size >> 10,
		 (unsigned long long)p->ring_wanted >> 10);
	cure(n, e, NOTICE_RING_SIZE, (double)p->ring_wanted,
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
		cure_rate(n, p, note(n, "lag", NOTICE_WARN, 1,
				     "samples of %s waited up to %.1f s for proftop: it gets too little CPU",
				     name_cpus(cpus, sizeof(cpus), p, late_of), (double)lag / 1e9),
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
	e = note(n, "offline", NOTICE_INFO, begins(n, "offline"),
		 "offline: %s, nothing is sampled there", cpus);
	cure(n, e, NOTICE_NONE, 0, "'echo 1 >/sys/devices/system/cpu/cpu%s/online': it is sampled again "
	     "within a second", first);
}

static void note_limit(struct notices *n, const struct profile *p)
{
	uint32_t event = fastest(p);
	struct profile_notice *e;

	if (!p->max_hz || p->max_hz >= p->max_hz_top)
		return;
	e = note(n, "max-rate", NOTICE_WARN, begins(n, "max-rate"),
		 "kernel.perf_event_max_sample_rate fell from %llu to %llu: samples took the kernel too long",
		 (unsigned long long)p->max_hz_top, (unsigned long long)p->max_hz);
	if (event < p->nr_events && p->events[event].want_hz > (double)p->max_hz) {
		cure(n, e, NOTICE_RATE, within_limit(p), "go down to %.0f Hz; or "
		     "'sudo sysctl kernel.perf_event_max_sample_rate=%llu'",
		     within_limit(p), (unsigned long long)p->max_hz_top);
		e->event = event;
		return;
	}
	cure(n, e, NOTICE_NONE, 0, "when the machine is calm: "
	     "'sudo sysctl kernel.perf_event_max_sample_rate=%llu'", (unsigned long long)p->max_hz_top);
}

static void note_event(struct notices *n, const struct profile *p, uint32_t index)
{
	const struct profile_event *ev = &p->events[index];
	struct profile_notice *e;
	char key[24];

	if (ev->error[0]) {
		snprintf(key, sizeof(key), "event-%.16s", ev->event.name);
		e = note(n, key, NOTICE_GRAVE, begins(n, key), "%s does not sample: %s", ev->event.name,
			 ev->error);
		cure(n, e, NOTICE_EVENTS, 0, "pick an event that can be used here");
		return;
	}
	if (!p->sampling || !ev->enabled)
		return;
	if (ev->running_share < 0.99 && ev->running_share > 0) {
		snprintf(key, sizeof(key), "multiplexed-%.11s", ev->event.name);
		e = note(n, key, NOTICE_WARN, begins(n, key),
			 "%s ran %.0f%% of the time only: more events than the CPU has counters",
			 ev->event.name, 100 * ev->running_share);
		cure(n, e, NOTICE_EVENTS, 0, "pick fewer events");
	}
	if (!(ev->want_hz > 0) || !(ev->got_hz < ev->want_hz * 0.8) || p->account.taken < TAKEN_MIN)
		return;
	snprintf(key, sizeof(key), "rate-%.16s", ev->event.name);
	e = note(n, key, NOTICE_WARN, 1, "%.0f Hz wanted, %.0f got: %s", ev->want_hz, ev->got_hz,
		 ev->event.name);
	cure(n, e, NOTICE_RATE, MAX(floor(ev->got_hz), 1.0), "go down to %.0f Hz, which can be kept",
	     MAX(floor(ev->got_hz), 1.0));
	e->event = index;
}

static void note_truncated(struct notices *n, const struct profile *p)
{
	double share = notices_truncated(n), shown = share;
	struct profile_notice *e;

	if (!p->account.truncated)
		return;
	if (share < 0)			/* too few to warn of, but no lie either */
		shown = (double)p->account.truncated / (double)MAX(p->account.taken, p->account.truncated);
	e = note(n, "truncated", share > NOTICES_TRUNCATED_MAX ? NOTICE_WARN : NOTICE_INFO,
		 p->account.truncated, "%.1f%% of the stacks are cut short: their outer callers are missing",
		 100 * shown);
	if (p->call_graph == CALL_GRAPH_FP)
		cure(n, e, NOTICE_NONE, 0, "'sudo sysctl kernel.perf_event_max_stack=1024', then start anew");
	else if (n->recorded)
		cure(n, e, NOTICE_NONE, 0, "record with larger dumps (--call-graph=dwarf,65528)");
	else if (p->stack_size < STACK_SIZE_MAX)
		cure(n, e, NOTICE_STACK_SIZE, MIN(2 * p->stack_size, STACK_SIZE_MAX),
		     "double the stack dumps to %u bytes; --stack-size=auto does it by itself",
		     MIN(2 * p->stack_size, STACK_SIZE_MAX));
	else
		cure(n, e, NOTICE_CALL_GRAPH, CALL_GRAPH_FP,
		     "follow frame pointers (fp): any depth, but guessed; the kernel has no larger dumps");
}

/* By reason: what they need differs. */
static void note_broken(struct notices *n, const struct profile *p)
{
	static const char *const cures[UNWIND_NR_STOPS] = {
		[UNWIND_DEPTH] = "see whose it is (6); the innermost 512 frames are kept",
		[UNWIND_NO_MAP] = "see whose it is (6); code that was unmapped, or a frame that is none",
		[UNWIND_NO_CFI] = "see whose it is (6); build that with -fasynchronous-unwind-tables",
		[UNWIND_CFI_REFUSED] = "see whose it is (6); its unwind tables make no sense: build it anew",
		[UNWIND_BAD_FRAME] = "follow frame pointers (fp); a stack that was switched or overwritten",
		[UNWIND_BUDGET] = "see whose it is (6); its unwind tables ask for too much: report it",
		[UNWIND_BAD_REGS] = "follow frame pointers (fp); a process of another kind, as 32-bit ones",
	};
	const struct profile_account *w = &n->window;
	bool loud = w->taken >= TAKEN_MIN && (double)w->broken > BROKEN_LOUD * (double)w->taken;

	for (unsigned int i = 0; i < UNWIND_NR_STOPS; i++) {
		bool fp = i == UNWIND_BAD_FRAME || i == UNWIND_BAD_REGS;
		struct profile_notice *e;
		char key[24];

		if (!p->broken_by[i])
			continue;
		snprintf(key, sizeof(key), "broken-%u", i);
		e = note(n, key, loud ? NOTICE_WARN : NOTICE_INFO, p->broken_by[i],
			 "stacks that end early: %s", profile_broken_name(i));
		cure(n, e, fp ? NOTICE_CALL_GRAPH : NOTICE_MODULES, CALL_GRAPH_FP, "%s",
		     cures[i] ? cures[i] : "see whose it is (6); no cure is known: report it");
	}
}

static void note_guessed(struct notices *n, const struct profile *p)
{
	const struct profile_account *w = &n->window;
	bool loud = w->taken >= TAKEN_MIN && (double)w->guessed > GUESSED_LOUD * (double)w->taken;
	bool fp = p->call_graph == CALL_GRAPH_FP;
	struct profile_notice *e;

	if (!p->account.guessed)
		return;
	e = note(n, "guessed", loud ? NOTICE_WARN : NOTICE_INFO, p->account.guessed,
		 fp ? "stacks by frame pointers: callers may be missing or wrong" :
		      "stacks with guessed frames: code without unwind tables");
	if (fp)
		cure(n, e, NOTICE_CALL_GRAPH, CALL_GRAPH_DWARF,
		     "take dumps of the stacks (dwarf): exact, dearer");
	else
		cure(n, e, NOTICE_MODULES, 0, "see whose it is (6); build that with "
		     "-fasynchronous-unwind-tables or -fno-omit-frame-pointer");
}

static void note_pending(struct notices *n, const struct profile *p)
{
	const struct profile_account *w = &n->window;
	bool loud = w->taken >= TAKEN_MIN && n->now_ns > START_NS &&
		    (double)w->pending > PENDING_LOUD * (double)w->taken;

	if (p->account.pending)
		cure(n, note(n, "pending", loud ? NOTICE_WARN : NOTICE_INFO, p->account.pending,
			     "samples of processes or objects that were not read yet: no callers"),
		     NOTICE_MODULES, 0, "see what is being read (6); it goes by itself");
}

static void note_dropped(struct notices *n, const struct profile *p)
{
	for (int i = 0; i < DROP_NR; i++) {
		bool full = i == DROP_STACKS_FULL || i == DROP_CELLS_FULL || i == DROP_PLACES_FULL;
		struct profile_notice *e;
		char key[24];

		if (!p->dropped_by[i])
			continue;
		snprintf(key, sizeof(key), "dropped-%d", i);
		e = note(n, key, NOTICE_GRAVE, p->dropped_by[i], "samples dropped by proftop: %s",
			 profile_drop_name((enum profile_drop)i));
		if (full)
			cure(n, e, NOTICE_RESET, 0, "count from zero with empty tables; or a lower rate ([)");
		else if (i == DROP_UNKNOWN_EVENT)
			cure(n, e, NOTICE_NONE, 0, "end the other profiler: the kernel mixes up "
			     "the ids of software events that two have");
		else
			cure(n, e, NOTICE_NONE, 0, "a fault of proftop or of the kernel: please report it");
	}
}

static void note_nameless(struct notices *n, const struct profile *p)
{
	if (p->nr_nameless)
		cure(n, note(n, "nameless", NOTICE_WARN, p->nr_nameless,
			     "samples of more processes and threads than there is room for: "
			     "counted as [unknown]"),
		     NOTICE_RESET, 0, "count from zero with empty tables; or fewer processes (p)");
}

/* Share of the window's samples in functions that are but an address. */
static void note_names(struct notices *n, const struct profile *p)
{
	double all = 0, unnamed = 0;
	struct profile_notice *e;

	for (uint32_t i = 0; i < p->nr_cells; i++) {
		const struct profile_stack *s = &p->stacks[p->cells[i].stack];

		all += p->cells[i].count;
		if (s->nr && p->functions[p->frames[s->first]].unnamed)
			unnamed += p->cells[i].count;
	}
	/* Not while names are still coming. */
	if (!(unnamed > 0) || all < TAKEN_MIN || 20 * p->nr_places_waiting > p->nr_places)
		return;
	e = note(n, "names", unnamed > NAMES_LOUD * all ? NOTICE_WARN : NOTICE_INFO, 0,
		 "%.1f%% of the samples are in code without names", 100 * unnamed / all);
	e->count = p->nr_places - p->nr_places_named - p->nr_places_waiting;
	cure(n, e, NOTICE_MODULES, 0, "see of each module why (6), and what would give it names");
}

/* Files that are not what the recording says they were: better no names than wrong ones. */
static void note_replaced(struct notices *n, const struct profile *p)
{
	const struct profile_module *first = NULL;
	struct profile_notice *e;
	uint64_t nr = 0;

	for (uint32_t i = 0; i < p->nr_modules; i++) {
		if (strcmp(p->modules[i].reason, DSO_REPLACED) != 0)
			continue;
		first = first ? first : &p->modules[i];
		nr++;
	}
	if (!nr)
		return;
	e = note(n, "replaced", NOTICE_WARN, nr, nr > 1 ? "%s and others were replaced since the recording" :
							  "%s was replaced since the recording",
		 first->name.str);
	cure(n, e, NOTICE_MODULES, 0, "give the files as they were, with --symfs; see which (6)");
}

static void note_self(struct notices *n, const struct profile *p)
{
	struct profile_notice *e;

	if (n->recorded)
		return;
	if (p->self.cpu_pct > SELF_LOUD_PCT)
		cure_rate(n, p, note(n, "own-cpu", NOTICE_INFO, 1, "proftop itself takes %.0f%% of a CPU",
				     p->self.cpu_pct),
			  "; -g fp is cheaper; --max-overhead=3 keeps it down by itself");
	if (p->self.rss_kb > SELF_LOUD_KB) {
		e = note(n, "own-memory", NOTICE_INFO, begins(n, "own-memory"),
			 "proftop itself takes %llu MiB of memory", (unsigned long long)p->self.rss_kb >> 10);
		cure(n, e, NOTICE_RESET, 0, "count from zero with empty tables");
	}
	if (p->rate_factor > 0 && p->rate_factor < 1) {
		e = note(n, "governor", NOTICE_INFO, begins(n, "governor"),
			 "the rate is held at %.0f%% of what was asked for", 100 * p->rate_factor);
		cure(n, e, NOTICE_NONE, 0, p->rate_ceiling < 1 ?
		     "none needed: more stalled this machine; F8 tries it again" :
		     "none needed: it rises again when it is calm (--max-overhead); -g fp costs less");
	}
	if (p->nr_refused) {
		e = note(n, "refused", NOTICE_WARN, 0,
			 "%u tasks of the target are not sampled: gone, forbidden, or too many open files",
			 p->nr_refused);
		e->count = p->nr_refused;
		cure(n, e, NOTICE_EVENTS, 0, "pick fewer events: they need fewer files; "
		     "or raise 'ulimit -n'; or more rights: proftop --check");
	}
}

/* The unwinder found itself wrong: the one fault that must never be quiet. */
static void note_unwinder(struct notices *n, const struct profile *p)
{
	struct profile_notice *e;

	if (!p->unwind.verify_differ)
		return;
	e = note(n, "verify", NOTICE_GRAVE, 0, "stacks that libunwind alone unwinds differently");
	e->count = p->unwind.verify_differ;
	cure(n, e, NOTICE_NONE, 0, "a fault of proftop: please report it (--unwinder=step avoids it)");
}

static void note_session(struct notices *n, const struct profile *p)
{
	struct profile_notice *e;

	if (p->banner[0]) {
		e = note(n, "banner", NOTICE_INFO, 0, "%s", p->banner);
		/* It stays in every profile: counted when it changes. */
		e->count += strcmp(n->banner, p->banner) != 0;
		memcpy(n->banner, p->banner, sizeof(n->banner));
		cure(n, e, NOTICE_NONE, 0, "'proftop --check' tells what would help; proftop(1), ACCESS");
	}
	if (p->target_gone) {
		e = note(n, "gone", NOTICE_INFO, begins(n, "gone"), "the target has ended: %s", p->target);
		cure(n, e, NOTICE_NONE, 0, "none needed: the last data stays");
	}
}

static void add(struct profile_account *sum, const struct profile_account *a)
{
	sum->taken += a->taken;
	sum->truncated += a->truncated;
	sum->broken += a->broken;
	sum->guessed += a->guessed;
	sum->pending += a->pending;
}

/* The sums of the last window, to an eighth of it. */
static void slide(struct notices *n, const struct profile *p, uint64_t window_ns)
{
	uint64_t span_ns = 0;

	if (n->parts[n->part].span_ns + p->interval_ns / 2 > window_ns / NOTICES_PARTS) {
		n->part = (n->part + 1) % NOTICES_PARTS;
		n->parts[n->part] = (struct notices_part){ 0 };
	}
	n->parts[n->part].span_ns += p->interval_ns;
	add(&n->parts[n->part].account, &p->account);
	n->window = (struct profile_account){ 0 };
	for (unsigned int i = 0; i < NOTICES_PARTS && span_ns < window_ns; i++) {
		const struct notices_part *part =
			&n->parts[(n->part + NOTICES_PARTS - i) % NOTICES_PARTS];

		add(&n->window, &part->account);
		span_ns += part->span_ns;
	}
}

void notices_restart(struct notices *n)
{
	memset(n->parts, 0, sizeof(n->parts));
	n->window = (struct profile_account){ 0 };
}

double notices_truncated(const struct notices *n)
{
	return n->window.taken < TAKEN_MIN ? -1 : (double)n->window.truncated / (double)n->window.taken;
}

void notices_update(struct notices *n, struct profile *p, uint64_t now_ns, uint64_t window_ns)
{
	n->before_ns = n->now_ns;
	n->now_ns = now_ns;
	for (uint32_t i = 0; i < n->nr; i++)
		n->items[i].active = false;
	slide(n, p, window_ns);
	note_session(n, p);
	/* First: whether rings can grow decides what helps against loss. */
	note_rings(n, p);
	note_lost(n, p);
	note_throttled(n, p);
	note_lag(n, p);
	note_offline(n, p);
	note_limit(n, p);
	for (uint32_t i = 0; i < p->nr_events; i++)
		note_event(n, p, i);
	note_truncated(n, p);
	note_broken(n, p);
	note_guessed(n, p);
	note_pending(n, p);
	note_dropped(n, p);
	note_nameless(n, p);
	note_names(n, p);
	note_replaced(n, p);
	note_self(n, p);
	note_unwinder(n, p);
	p->nr_notices = n->nr;
	p->notices = xcalloc(n->nr, sizeof(*p->notices));
	memcpy(p->notices, n->items, n->nr * sizeof(*p->notices));
}
