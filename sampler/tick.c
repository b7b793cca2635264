// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The end of a tick: counts become a profile with its account; slices of the past with their
 * events, traps and profiles, the heat strip, profiles of a recording. Runs on: the builder.
 *
 * Runs on: the builder, online for urcu-qsbr. The order matters: flip the set of stats, swap the
 * counts (this waits for a grace period: every batch begun before the flip is over), then read
 * both. So the account of a tick is exact, and its rows are off by a batch at most.
 */
#include "sampler/internal.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <urcu-qsbr.h>

#include "sampler/record/record.h"
#include "symbols/image/image.h"
#include "symbols/name/name.h"
#include "symbols/symbols.h"

/*
 * Samples of one CPU that the kernel did not deliver: lost because the ring was
 * full, or not taken because it throttled the event.
 *
 * A kernel from 6.0 on counts lost samples per event (PERF_FORMAT_LOST,
 * perf_event_open(2)); an older one only writes LOST records.
 *
 * Threads: the builder.
 *
 * Samples that the kernel did not deliver. Runs on: the builder.
 */

/* Return the samples of @event lost since the last tick, by the kernel's count @now. */
static uint64_t lost_since(struct lost *l, uint32_t event, uint64_t now)
{
	uint64_t nr = now > l->seen[event] ? now - l->seen[event] : 0;

	assert(event < EVENTS_MAX);
	l->seen[event] += nr;
	return nr;
}

/* Forget the totals; @now: the kernel's counts at the start of the next tick. */
static void lost_restart(struct lost *l, const uint64_t now[EVENTS_MAX])
{
	*l = (struct lost){ 0 };
	for (int i = 0; i < EVENTS_MAX; i++)
		l->seen[i] = now[i];
}

/*
 * Set the lost samples of the tick, and add them to the total: @nr by lost_since(), or of the LOST
 * records if the kernel does not count (rates_add_cpu()).
 */
static void lost_add(struct lost *l, struct profile_cpu *cpu, uint64_t nr)
{
	cpu->lost = nr;
	l->total += nr;
	cpu->lost_total = l->total;
}

/*
 * Add the throttled samples and time of the tick, which ends @now_ns, including a pause of which
 * the end is not recorded yet.
 */
static void lost_add_throttled(struct lost *l, struct sampler_thread *t,
			       const struct sampler_thread_stats *stats, struct profile_cpu *cpu,
			       uint64_t now_ns, uint64_t interval_ns)
{
	uint64_t since = sampler_thread_throttled_since(t);
	uint64_t until = since + record_pause_ns(since, now_ns);
	uint64_t begin = now_ns - MIN(interval_ns, now_ns);

	cpu->throttled = stats->throttled;
	cpu->throttled_ns = stats->throttled_ns;
	if (since && until > begin)
		cpu->throttled_ns += until - MAX(since, begin);
	cpu->throttled_ns = MIN(cpu->throttled_ns, interval_ns);
	l->throttled_total += stats->throttled;
	cpu->throttled_total = l->throttled_total;
}

/* A CPU counts for the got rate when it was busy for at least this share. */
#define BUSY_MIN 0.05

/* Shorter stretches say nothing: /proc/stat counts in 10 ms. */
#define RATE_MIN_NS 200000000ULL

/* Samples, taken or expected, and busy time behind a rate: exact to 10 or 20 %. */
#define RATE_SAMPLES_MIN 20

#define SECONDS_MIN 0.1

/* Without these a rate is shown for so long after it was measured, and looked for so long. */
#define SHOWN_MAX_NS 2000000000ULL

#define STRETCH_MAX_NS 30000000000ULL

void rates_init(struct rates *r, const struct sampler_config *config)
{
	for (uint32_t i = 0; i < EVENTS_MAX; i++) {
		r->hz[i] = config_hz(config, &config->events[i]);
		r->got_hz[i] = NAN;
	}
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

	assert(event < EVENTS_MAX);
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

	assert(event < EVENTS_MAX);
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

/* Add the counts of CPU @index to @cpu, and to its @events. */
static void rates_add_cpu(struct rates *r, const struct rates_tick *t, uint32_t index,
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
		      MAX(sum->got, want_hz * sum->seconds) >= RATE_SAMPLES_MIN;
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

/*
 * Compute the got rates that have enough samples and busy time behind them; others keep their value
 * for a while, then NAN.
 */
static void rates_update(struct rates *r, uint64_t now_ns, uint32_t nr_events, uint32_t nr_cpus)
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

/* Forget the counters of the last tick. */
static void rates_begin_tick(struct rates *r)
{
	memset(r->enabled_ns, 0, sizeof(r->enabled_ns));
	memset(r->running_ns, 0, sizeof(r->running_ns));
	memset(r->count, 0, sizeof(r->count));
}

/* Read the counters of CPU @index, and how much of its ring is written. */
static void rates_read(struct rates *r, struct counters *counters, uint32_t index,
		       uint32_t nr_events)
{
	struct rates_cpu *rc = &r->cpus[index];

	assert(nr_events <= EVENTS_MAX);
	rc->written = ring_written(&counters_cpu(counters, index)->data);
	for (uint32_t i = 0; i < nr_events; i++)
		rc->known[i] = !counters_read(counters, index, i, &rc->now[i]);
}

/* Read /proc/stat where that says something by now. */
static void rates_read_busy(struct rates *r, uint64_t now_ns)
{
	if (now_ns - r->procstat_ns < RATE_MIN_NS)
		return;
	procstat_update(r->procstat);
	r->procstat_ns = now_ns;
}

/* Read the kernel's limit again. Returns the one before if it fell; else 0. */
static uint64_t rates_read_limit(struct rates *r)
{
	uint64_t now = procstat_max_sample_rate(r->procstat);
	/* Relaxed: a number on its way to the UI. */
	uint64_t was = atomic_exchange_explicit(&r->max_hz, now, memory_order_relaxed);

	r->max_hz_top = MAX(r->max_hz_top, now);
	return was && now && now < was ? was : 0;
}

/*
 * Fill @ev with the state of event @index. @nr_fds: the event of a task has one fd a CPU; each is
 * enabled all the time that the task is, and runs on one CPU only. Else 1.
 */
static void rates_fill_event(const struct rates *r, uint32_t index, uint32_t nr_fds,
			     struct profile_event *ev)
{
	uint64_t enabled_ns = r->enabled_ns[index];

	assert(index < EVENTS_MAX);
	ev->enabled = r->enabled && !r->off[index];
	ev->want_hz = r->hz[index];
	ev->got_hz = r->got_hz[index];
	ev->count = r->count[index];
	ev->running_share =
		enabled_ns ? MIN((double)nr_fds * (double)r->running_ns[index] / (double)enabled_ns,
				 1.0)
			   : 1;
}

/* Take the counters as they are now as the start of the next tick. */
static void rates_rebase(struct rates *r, struct counters *counters, uint32_t index,
			 uint32_t nr_events)
{
	struct rates_cpu *rc = &r->cpus[index];
	struct counters_value v;
	uint64_t lost[EVENTS_MAX] = { 0 };

	assert(index < EVENTS_MAX);
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

/*
 * Events and incidents of the slices of the history; traps, tested with each slice; files of their
 * matches. Runs on: the builder.
 */

void past_close(struct past *p)
{
	strip_filter_fini(&p->strip);
	free(p->sets);
	*p = (struct past){ 0 };
}

/* Find for each set of events the slot of event @wanted of the newest set, in @slots. */
static void past_slots(const struct past *p, const struct event *wanted, uint8_t *slots)
{
	for (uint32_t i = 0; i < p->nr_sets; i++) {
		slots[i] = STRIP_NO_EVENT;
		for (uint32_t k = 0; k < p->sets[i].nr; k++)
			if (event_same(&p->sets[i].events[k], wanted))
				slots[i] = (uint8_t)k;
	}
}

void past_use_events(struct past *p, struct history *h, const struct sampler_config *config)
{
	uint32_t i = 0;

	while (i < p->nr_sets && !event_same_list(p->sets[i].events, p->sets[i].nr, config->events,
						  config->nr_events))
		i++;
	if (i == PAST_SETS_MAX) {
		history_reset(h);
		i = p->nr_sets = 0;
	}
	if (i == p->nr_sets) {
		p->sets = xrealloc_array(p->sets, p->nr_sets + 1, sizeof(*p->sets));
		memcpy(p->sets[i].events, config->events, sizeof(p->sets[i].events));
		p->sets[i].nr = config->nr_events;
		p->nr_sets++;
	}
	history_set_events(h, (uint16_t)i);
}

/* Begin the sums again at @now_ns; the slices are kept. */
static void past_restart(struct past *p, struct history *h, const struct sampler_config *config,
			 uint64_t now_ns)
{
	history_restart(h);
	past_use_events(p, h, config);
	history_begin(h, now_ns);
}

/* Add the incidents of the tick of @p to the newest slice: lost, throttled. */
static void past_note(struct history *h, const struct profile *p)
{
	uint64_t throttled = 0;
	unsigned int marks;

	for (uint32_t i = 0; i < p->nr_cpus; i++)
		throttled += p->cpus[i].throttled;
	marks = (p->account.lost ? SLICE_LOST : 0) | (throttled ? SLICE_THROTTLED : 0);
	history_note(h, marks, p->account.lost, throttled);
}

/*
 * Files of matches of a trap.
 *
 * Runs on: the builder; the writer of the recorder writes them.
 */

#define AFTER_NS 2000000000ULL

/* Request a file of the records until @end_ns and 2 s more. Write a sentence to @text. */
static void saving_begin(const struct saving *s, const struct saving_config *config,
			 struct recorder *r, uint64_t end_ns, char *text, size_t size)
{
	time_t now = time(NULL);
	char stamp[32], path[PATH_MAX], *copy;
	struct tm tm;

	if (s->nr >= config->max_files) {
		snprintf(text, size, "not saved: %u of %u files are written (--save-files)", s->nr,
			 config->max_files);
		return;
	}
	/* A file has at most the records of the memory, and records of running processes. */
	if (s->bytes + config->memory > config->max_bytes) {
		snprintf(text, size,
			 "not saved: a file takes up to %llu MiB (--trap-memory), %llu of %llu MiB "
			 "are used (--save-size)",
			 (unsigned long long)config->memory >> 20,
			 (unsigned long long)s->bytes >> 20,
			 (unsigned long long)config->max_bytes >> 20);
		return;
	}
	localtime_r(&now, &tm);
	strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &tm);
	if (snprintf(path, sizeof(path), "%s/trap-%s.data", config->dir, stamp) >=
	    (int)sizeof(path))
		return;
	copy = strdup(path);
	if (!copy || recorder_save(r, copy, end_ns + AFTER_NS)) {
		free(copy);
		snprintf(text, size, "not saved: the match before is being saved");
		return;
	}
	snprintf(text, size, "saving to %.*s", (int)(size - sizeof("saving to ")), path);
}

bool saving_check(struct saving *s, struct recorder *r, char *text, size_t size)
{
	struct recorder_saved saved;
	struct err e;
	char unmapped[80], dropped[80] = "";

	assert(text && size);
	if (!r || !recorder_saved(r, &saved, &e))
		return false;
	if (saved.bytes < 0) {
		snprintf(text, size, "%s", e.text);
		return true;
	}
	s->nr++;
	s->bytes += (uint64_t)saved.bytes;
	if (saved.unsaved)
		snprintf(dropped, sizeof(dropped),
			 "; %llu KiB of earlier records dropped: no memory",
			 (unsigned long long)(saved.unsaved + 1023) >> 10);
	snprintf(text, size, "saved %.1f MiB around the match%s%s", (double)saved.bytes / (1 << 20),
		 recording_unmapped(saved.nr_unmapped, unmapped), dropped);
	return true;
}

/*
 * Rules on the slices of the history.
 *
 * Runs on: the builder. Functions are found by name once, in the symbols that are new; a slice is
 * then tested by ids.
 */

/* Of fewer samples no share is computed. */
#define SAMPLES_MIN 10

int traps_add(struct traps *t, const struct trap_rule *rule)
{
	if (t->nr == TRAP_RULES_MAX)
		return -ENOSPC;
	t->list[t->nr++] = (struct trap){ .rule = *rule };
	/* Compare all names again. */
	for (uint32_t i = 0; i < t->nr; i++) {
		struct trap_functions *f = &t->list[i].functions;

		free(f->bits);
		*f = (struct trap_functions){ .any = false };
	}
	t->nr_symbols = 0;
	return 0;
}

void traps_clear(struct traps *t)
{
	for (uint32_t i = 0; i < t->nr; i++)
		free(t->list[i].functions.bits);
	*t = (struct traps){ .tested_ns = t->tested_ns };
}

const char *traps_list(const struct traps *t, char *buf, size_t size)
{
	size_t n;

	assert(buf && size);
	if (!t->nr) {
		snprintf(buf, size, "no traps are set; ':trap total:parse > 50 for 1s' sets one");
		return buf;
	}
	n = (size_t)snprintf(buf, size, "%u trap%s (':trap off' removes all): ", t->nr,
			     t->nr > 1 ? "s" : "");
	for (uint32_t i = 0; i < t->nr && n < size; i++) {
		const char *rule = t->list[i].rule.text;

		if (n + strlen(rule) + sizeof("; ; ...") > size) {
			snprintf(buf + n, size - n, "; ...");
			break;
		}
		n += (size_t)snprintf(buf + n, size - n, "%s%s", i ? "; " : "", rule);
	}
	return buf;
}

/* Forget all matches: the next slices may be of any time. */
static void traps_rearm(struct traps *t)
{
	for (uint32_t i = 0; i < t->nr; i++) {
		t->list[i].begin_ns = 0;
		t->list[i].fired = t->list[i].seen = false;
	}
}

/* ---- names ---- */

/* Report whether a function has the name, or the name followed by its arguments. */
static bool is_named(const struct symbol *symbol, const char *name)
{
	size_t size = strlen(name);

	return !strncmp(symbol->name.str, name, size) &&
	       (!symbol->name.str[size] || symbol->name.str[size] == '(');
}

/* Report whether the rule is of functions with a name. */
static bool is_of_functions(const struct trap_rule *rule)
{
	return rule->name[0] && rule->subject != TRAP_CPU && rule->subject != TRAP_WAIT;
}

/* Add @id: a bit, since a process may have any number of functions with one name. */
static void add_id(struct trap_functions *f, uint32_t id)
{
	uint32_t nr = MAX(id / 64 + 1, 2 * f->nr_words);

	if (id / 64 >= f->nr_words) {
		f->bits = xrealloc_array(f->bits, nr, sizeof(*f->bits));
		memset(f->bits + f->nr_words, 0, (nr - f->nr_words) * sizeof(*f->bits));
		f->nr_words = nr;
	}
	f->bits[id / 64] |= 1ULL << id % 64;
	f->any = true;
}

static bool has_id(const struct trap_functions *f, uint32_t id)
{
	return id / 64 < f->nr_words && f->bits[id / 64] >> id % 64 & 1;
}

static void find_functions(struct traps *t, const struct symbols *symbols)
{
	uint32_t nr = symbols_nr(symbols);

	for (uint32_t id = t->nr_symbols; id < nr; id++) {
		const struct symbol *symbol = symbols_at(symbols, id);

		for (uint32_t i = 0; symbol && i < t->nr; i++) {
			struct trap *trap = &t->list[i];

			if (is_of_functions(&trap->rule) && is_named(symbol, trap->rule.name))
				add_id(&trap->functions, id);
		}
	}
	t->nr_symbols = nr;
}

/* Report whether the function, or one inlined at the place, is wanted; @self: the innermost. */
static bool at_place(const struct trap *t, const struct assemble_input *in, uint32_t id, bool self)
{
	const struct place *place = places_at(in->places, id);
	const struct symbol_frame *frames;
	uint32_t symbol, nr = 0;

	if (!place)
		return false;
	/* Acquire: the symbol's fields; pairs with the release in places_name(). */
	symbol = atomic_load_explicit(&place->symbol, memory_order_acquire);
	frames = symbols_source(in->symbols, id, &nr);
	if (frames && nr && self)
		return has_id(&t->functions,
			      frames[0].symbol == SYMBOL_NONE ? symbol : frames[0].symbol);
	for (uint32_t i = 0; frames && i < nr; i++)
		if (has_id(&t->functions, frames[i].symbol))
			return true;
	return has_id(&t->functions, symbol);
}

static bool in_stack(const struct trap *t, const struct assemble_input *in, uint32_t stack)
{
	bool self = t->rule.subject == TRAP_SELF;
	struct stacks_room room;
	const uint32_t *places;
	uint32_t nr = 0;

	if (!t->functions.any || stack == STACK_NONE)
		return false;
	places = stacks_at(in->stacks, stack, &room, &nr);
	for (uint32_t i = 0; places && i < (self ? MIN(nr, 1u) : nr); i++)
		if (at_place(t, in, places[i], self))
			return true;
	return false;
}

static bool counts_for(const struct trap *t, const struct assemble_input *in, const struct count *c)
{
	const struct task *task;

	if (t->rule.subject != TRAP_CPU && t->rule.subject != TRAP_WAIT)
		return in_stack(t, in, c->stack);
	if (!t->rule.name[0])
		return true;
	task = maps_task(in->maps, c->task);
	return task && (!strcmp(task->comm.str, t->rule.name) ||
			!strcmp(task->process_comm.str, t->rule.name));
}

/* ---- slices ---- */

/* Reads the counts of a moment. */
struct moment_reader {
	const struct trap_input *in;
	struct slice_reader slice;
	uint32_t next; /* slice of the moment */
};

static bool read_count(struct moment_reader *r, struct count *out)
{
	while (!r->next || !slice_read(&r->slice, out)) {
		if (r->next == r->in->nr)
			return false;
		slice_read_begin(&r->slice, &r->in->slices[r->next++]);
	}
	return true;
}

/* Return the busy CPUs that samples stand for. */
static double cpus_of(const struct trap_input *in, double count, double weight)
{
	double seconds = (double)(in->sum.end_ns - in->sum.begin_ns) / 1e9;

	if (in->clock)
		return weight / 1e9 / seconds;
	return in->hz > 0 ? count / (in->hz * seconds) : 0;
}

/* Return the percent of TRAP_WAIT: 100 is one task that waits. */
static double percent_waiting(const struct trap *t, const struct trap_input *in)
{
	uint64_t span_ns = in->sum.end_ns - in->sum.begin_ns;
	struct moment_reader r = { .in = in };
	struct count c;
	double weight = 0;

	while (read_count(&r, &c))
		if ((int)c.event == in->wait_slot && counts_for(t, in->tables, &c))
			weight += (double)c.weight;
	return 100 * weight / (double)MAX(span_ns, 1ULL);
}

/* Return the percent of the rule's subject in a moment; -1: there are too few samples. */
static double percent_of(struct trap *t, const struct trap_input *in)
{
	double count = 0, weight = 0, all = 0, all_weight = 0;
	struct moment_reader r = { .in = in };
	struct count c;

	if (t->rule.subject == TRAP_LOST)
		return 100.0 * (double)in->sum.lost /
		       (double)MAX(in->sum.lost + in->sum.count, 1ULL);
	if (t->rule.subject == TRAP_WAIT)
		return percent_waiting(t, in);
	while (read_count(&r, &c)) {
		if (c.event)
			continue;
		all += (double)c.count;
		all_weight += (double)c.weight;
		if (!counts_for(t, in->tables, &c))
			continue;
		count += (double)c.count;
		weight += (double)c.weight;
	}
	if (t->rule.subject == TRAP_NEW)
		return count > 0 ? 100 : 0;
	if (t->rule.subject == TRAP_CPU)
		return 100 * cpus_of(in, count, weight) /
		       (t->rule.name[0] ? 1 : MAX(in->nr_cpus, 1u));
	return all < SAMPLES_MIN || !(all_weight > 0) ? -1 : 100 * weight / all_weight;
}

/* Test one rule. True: it begins to match. */
static bool test(struct trap *t, const struct trap_input *in, double percent)
{
	bool match = percent >= 0 &&
		     (t->rule.below ? percent < t->rule.percent : percent > t->rule.percent);

	if (t->rule.subject == TRAP_NEW) {
		match = match && !t->seen;
		t->seen |= percent > 0;
	}
	if (!match) {
		t->begin_ns = 0;
		t->fired = false;
		return false;
	}
	if (!t->begin_ns)
		t->begin_ns = in->sum.begin_ns;
	if (t->fired || in->sum.end_ns - t->begin_ns < t->rule.for_ns)
		return false;
	t->fired = true;
	return true;
}

/* Test all rules with the next moment. True: rules match, they are in @hit. */
static bool traps_test(struct traps *t, const struct trap_input *in, struct trap_hit *hit)
{
	bool any = false;

	if (!t->nr || in->sum.end_ns - in->sum.begin_ns < 1000000)
		return false;
	find_functions(t, in->tables->symbols);
	for (uint32_t i = 0; i < t->nr; i++) {
		struct trap *trap = &t->list[i];
		double percent = percent_of(trap, in);

		if (!test(trap, in, percent))
			continue;
		if (any) {
			hit->also[hit->nr_also++] = (struct trap_also){ &trap->rule, percent };
			continue;
		}
		any = true;
		*hit = (struct trap_hit){ .rule = &trap->rule,
					  .begin_ns = trap->begin_ns,
					  .end_ns = in->sum.end_ns,
					  .percent = percent };
	}
	return any;
}

/*
 * The traps of a session.
 *
 * Runs on: the builder.
 */

/* Return the input of a test, except for the moment. */
static struct trap_input input_of(const struct sampler *s, const struct assemble_input *tables)
{
	const struct event *event = &s->config.events[0];

	return (struct trap_input){
		.tables = tables,
		.clock = event->clock,
		.hz = s->source->hz(s, 0),
		.nr_cpus = s->source->nr_cpus(s),
		.wait_slot = config_wait_slot(&s->config),
	};
}

/* Set the moment of a test. */
static void set_moment(struct trap_input *in, const struct slice *slices, uint32_t nr)
{
	in->slices = slices;
	in->nr = nr;
	in->sum = (struct slice){ .begin_ns = slices[0].begin_ns, .end_ns = slices[nr - 1].end_ns };
	for (uint32_t i = 0; i < nr; i++) {
		in->sum.count += slices[i].count;
		in->sum.lost += slices[i].lost;
	}
}

/* Show the slices of a match. */
static void show(struct sampler *s, const struct trap_hit *hit)
{
	s->trapped.seq++;
	s->trapped.begin_ns = hit->begin_ns;
	s->trapped.end_ns = hit->end_ns;
}

/* Write the time of the day at @time_ns; in a recording the time from its start. */
static void write_moment(const struct sampler *s, uint64_t time_ns, char *buf, size_t size)
{
	uint64_t real_ns = s->source->real_ns(s, time_ns), first_ns;
	struct tm tm;
	time_t seconds;

	if (!real_ns) {
		first_ns = slices_at(history_slices(s->store.history), 0)->begin_ns;
		snprintf(buf, size, "+%.1f s", (double)(time_ns - first_ns) / 1e9);
		return;
	}
	seconds = (time_t)(real_ns / 1000000000);
	if (!localtime_r(&seconds, &tm) || !strftime(buf, size, "%H:%M:%S", &tm))
		snprintf(buf, size, "?");
}

/* Keep the last match for the list of messages, and count @nr more. */
static void count_matches(struct sampler *s, const struct trap_hit *last, uint32_t nr)
{
	struct profile_trap *t = &s->trapped;

	t->nr += nr;
	write_moment(s, last->begin_ns, t->at, sizeof(t->at));
	snprintf(t->what, sizeof(t->what), "%s: %.1f%%", last->rule->text, last->percent);
}

/* Report the matches of a moment and their time. */
static void say(struct sampler *s, const struct trap_hit *hit, const char *saved)
{
	char text[512];
	size_t n;

	n = (size_t)snprintf(text, sizeof(text), "%s: %.1f%%", hit->rule->text, hit->percent);
	for (uint32_t i = 0; i < hit->nr_also && n < sizeof(text); i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "; %s: %.1f%%",
				      hit->also[i].rule->text, hit->also[i].percent);
	if (n < sizeof(text))
		snprintf(text + n, sizeof(text) - n, " at %s%s%s", s->trapped.at,
			 saved[0] ? "; " : "", saved);
	mailbox_add(&s->mailbox, "trap: %s", text);
}

/* Test the moment of @in, which begins with slice @i. */
static void test_trapping(struct sampler *s, const struct trap_input *in, uint32_t i)
{
	struct trap_hit hit;
	char text[256] = "";

	if (!s->traps.nr || !traps_test(&s->traps, in, &hit))
		return;
	slices_mark(history_slices(s->store.history), i, SLICE_TRAP);
	if (s->config.saving.dir)
		saving_begin(&s->saving, &s->config.saving, s->recording.recorder, hit.end_ns, text,
			     sizeof(text));
	else
		show(s, &hit);
	count_matches(s, &hit, 1);
	say(s, &hit, text);
}

/* Test the new moments of the past but the newest: the names of its functions may follow. */
static void trapping_test(struct sampler *s, const struct assemble_input *tables)
{
	struct slices *slices = history_slices(s->store.history);
	struct trap_input in = input_of(s, tables);
	uint32_t i = slices_find(slices, s->traps.tested_ns);

	/* Also without a trap: one that is set later is for the slices from then on. */
	for (; i + 1 < slices_nr(slices); i += in.nr) {
		set_moment(&in, slices_at(slices, i), slices_moment(slices, i));
		if (i + in.nr == slices_nr(slices))
			break;
		s->traps.tested_ns = in.sum.end_ns;
		test_trapping(s, &in, i);
	}
}

/* Report the first match in a recording, and how many there are. */
static void report(struct sampler *s, const struct trap_hit *first, uint32_t nr)
{
	char at[32], more[48] = "";

	write_moment(s, first->begin_ns, at, sizeof(at));
	if (nr > 1)
		snprintf(more, sizeof(more), ", the first of %u matches", nr);
	mailbox_add(&s->mailbox, "trap: %s: %.1f%% at %s%s", first->rule->text, first->percent, at,
		    more);
}

/* Test the moments of a recording that were not tested. */
static void trapping_replay(struct sampler *s, const struct assemble_input *tables)
{
	struct slices *slices = history_slices(s->store.history);
	struct trap_input in = input_of(s, tables);
	struct trap_hit first = { .rule = NULL }, last, hit;
	uint32_t nr = 0;

	for (uint32_t i = slices_find(slices, s->traps.tested_ns);
	     s->traps.nr && i < slices_nr(slices); i += in.nr) {
		set_moment(&in, slices_at(slices, i), slices_moment(slices, i));
		s->traps.tested_ns = in.sum.end_ns;
		if (!traps_test(&s->traps, &in, &hit))
			continue;
		slices_mark(slices, i, SLICE_TRAP);
		if (!nr++)
			first = hit;
		last = hit;
	}
	if (!nr)
		return;
	show(s, &first);
	count_matches(s, &last, nr);
	report(s, &first, nr);
}

void trapping_again(struct sampler *s)
{
	traps_rearm(&s->traps);
	s->trapped.nr = 0;
	s->traps.tested_ns = 0;
}

/*
 * The parts of a profile, filled from the tables and the threads of a session.
 *
 * Runs on: the builder, online for urcu-qsbr.
 *
 * The parts of a profile. Runs on: the builder.
 */

/* Sums of one tick over all CPUs. */
struct tick_sums {
	struct pipeline_stats all;
	uint64_t lost;
};

/* The samples of interpreters. */
static uint64_t lang_samples(const struct pipeline_stats *st)
{
	uint64_t nr = st->lang_certain + st->lang_guessed;

	for (int i = 0; i < LANG_OK; i++)
		nr += st->lang_status[i];
	return nr;
}

/* Take the stats of tick @number of each CPU, and add them to @sums. */
static void tick_fill_cpus(struct sampler *s, struct profile *p, uint32_t number,
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
		struct procstat_cpu shares;

		sampler_thread_take_stats(thread, number, &stats);
		cpu->cpu = counters_cpu(s->live.counters, i)->cpu;
		snprintf(cpu->core, sizeof(cpu->core), "%s",
			 counters_core_type(s->live.counters, i));
		shares = procstat_cpu(s->rates.procstat, cpu->cpu);
		cpu->online = shares.online;
		cpu->busy = shares.busy;
		cpu->busy_kernel = shares.kernel;
		cpu->busy_steal = shares.steal;
		cpu->samples = stats.samples.taken;
		hot_function_fill(cpu, &stats.samples, s->store.places);
		cpu->ring_high = sampler_thread_take_ring_high(thread);
		lost_add_throttled(&s->rates.cpus[i].lost, thread, &stats, cpu, now_ns,
				   p->interval_ns);
		cpu->lag_max_ns = stats.lag.max_ns;
		cpu->lag_median_ns = lag_median(&stats.lag);
		rates_add_cpu(&s->rates, &tick, i, &stats, cpu, &p->cpu_events[i * tick.nr_events]);
		sums->lost += cpu->lost;
		pipeline_add_stats(&sums->all, &stats.samples);
		langreaders_note(&s->live.readers, s->live.counters, thread, i, stats.samples.taken,
				 lang_samples(&stats.samples) + stats.samples.far);
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
	sum->filtered += add->filtered;
	sum->no_outcomes |= add->no_outcomes;
}

/* Fill the account of all samples: taken = sum of the outcomes. Lost samples are counted here. */
static void tick_fill_account(struct sampler *s, struct profile *p, const struct tick_sums *sums)
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
	a->filtered = all->filtered;
	a->lost = sums->lost;
	for (int i = 0; i < UNWIND_NR_STOPS; i++) {
		p->broken_by[i] = all->broken[i];
		p->broken_in[i] = broken_objects_most(&all->ends[i], all->broken[i]);
		a->broken += all->broken[i];
	}
	p->guessed_in = broken_objects_most(&all->guesses, all->guessed);
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
	_Static_assert(LANG_OK <= PROFILE_NR_LANG_NONE, "a reason has no place in the "
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
	for (int i = 0; i < LANG_OK; i++)
		p->lang.none_by[i] = all->lang_status[i];
	/* Counted separately when a sample is read: the parts must add up to it. */
	a->taken = all->taken + a->lost;
	assert(all->taken ==
	       a->complete + a->guessed + a->truncated + a->pending + a->broken + a->dropped);
	a->no_outcomes = s->facts.kept;
	add_account(&s->ticks.total, a);
	p->account_total = s->ticks.total;
	p->samples_per_s = (double)all->taken * 1e9 / (double)p->interval_ns;
}

/* Fill the events with their rates. */
static void tick_fill_events(struct sampler *s, struct profile *p)
{
	uint32_t nr_fds = s->target.tids ? s->live.nr_threads : 1;

	p->nr_events = s->config.nr_events;
	for (uint32_t i = 0; i < p->nr_events; i++) {
		p->events[i].event = s->config.events[i];
		rates_fill_event(&s->rates, i, nr_fds, &p->events[i]);
		/* Of all processes. */
		if (s->target.wide)
			p->events[i].count = NAN;
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

/* Fill the fields that do not depend on the counts. */
static void tick_fill_state(struct sampler *s, struct profile *p, uint64_t now_ns)
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
	p->target_empty = s->target.kind == TARGET_USER && !s->target.nr_tids;
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
	p->recording.on = s->recording.path != NULL;
	p->recording.failed = s->recording.failed;
	p->recording.bytes = recording_bytes(&s->recording);
	p->nr_places = names.nr_named + names.nr_unnamed + names.nr_waiting;
	p->nr_places_named = names.nr_named;
	p->images = (struct profile_images){ names.nr_images, names.image_memory,
					     names.image_memory_max, names.nr_evicted };
	p->nr_places_waiting = names.nr_waiting;
}

static void tick_fill_unwind(struct profile *p, const struct unwind_stats *st)
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

/* Fill the CPU time and memory of proftop, by kind of thread. */
static void tick_fill_self(struct sampler *s, struct profile *p)
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

/* Return the tables of the session, without counts. */
static struct assemble_input tick_fill_tables(const struct sampler *s)
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
		.kept = s->facts.kept,
	};
}

/* Fill stacks, functions and tasks from @counts, which are freed. 0 or -ENOMEM. */
static int tick_fill_from(struct sampler *s, struct profile *p, struct history_cell *counts,
			  uint32_t nr)
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

/*
 * Get the counts that have arrived since the last tick: of a tick that was late, or is short after
 * one, its own samples and no others. As history_get().
 */
static int get_tick(const struct sampler *s, struct history_cell **counts, uint32_t *nr,
		    uint64_t *covers_ns)
{
	const struct slices *slices = history_arrivals(s->store.history);
	struct slice_range range;

	if (!slices_range(slices, s->ticks.shown_ns, s->ticks.slice_ns, &range) ||
	    range.begin_ns < s->ticks.shown_ns)
		range = (struct slice_range){ 0 };
	*covers_ns = range.covers_ns;
	return history_get_range(slices, &range, counts, nr);
}

/* Fill stacks, functions and tasks from the counts of the window. 0 or -ENOMEM. */
static int tick_fill_counts(struct sampler *s, struct profile *p)
{
	bool one = s->config.exact_ticks && s->ticks.window == PROFILE_WINDOW && !s->config.replay;
	uint64_t last_ns = MAX(s->ticks.sampled_ns, s->ticks.reset_ns);
	struct history_cell *counts = NULL;
	uint32_t nr = 0;
	int code =
		one ? get_tick(s, &counts, &nr, &p->window_ns)
		    : history_get(s->store.history, s->ticks.window, &counts, &nr, &p->window_ns);

	/* The time after the last process ended is no part of the run. */
	if (s->target.gone && s->ticks.window == PROFILE_TOTAL)
		p->window_ns -=
			MIN(p->window_ns, s->ticks.slice_ns - MIN(s->ticks.slice_ns, last_ns));
	return code ? code : tick_fill_from(s, p, counts, nr);
}

/*
 * Profiles of the past and the heat strip. Runs on: the builder.
 */

static uint64_t nr_named(const struct sampler *s)
{
	struct symbols_stats stats;

	symbols_stats(s->store.symbols, &stats);
	return stats.nr_named;
}

void tick_past_strip(struct sampler *s, bool answer)
{
	const struct strip_query *q = s->past.strip.query;
	const struct assemble_input tables = tick_fill_tables(s);
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
	strip->last_real_ns = s->source->real_ns(s, strip->last_ns);
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
	p->time_ns = s->source->real_ns(s, range->end_ns);
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
						       .want_hz = hz ? hz[i]
								  : s->facts.recorded
									  ? s->rates.hz[i]
									  : 0,
						       .got_hz = NAN,
						       .running_share = 1 };
}

/* Make a profile of a range of @slices. NULL: there are none, or no memory. */
static struct profile *make_past(struct sampler *s, const struct slices *slices, uint64_t begin_ns,
				 uint64_t end_ns)
{
	struct history_cell *counts;
	struct slice_range range;
	struct profile *p;
	uint32_t nr;

	if (!slices_range(slices, begin_ns, end_ns, &range))
		return NULL;
	p = xcalloc(1, sizeof(*p));
	fill_past(s, p, &range);
	if (history_get_range(slices, &range, &counts, &nr) || tick_fill_from(s, p, counts, nr)) {
		mailbox_say(&s->mailbox, "out of memory: the past is not shown");
		profile_free(p);
		return NULL;
	}
	ratios_count_samples(p);
	return p;
}

void tick_past_post(struct sampler *s)
{
	struct profile *p = NULL;

	if (s->past.end_ns)
		p = make_past(s, history_slices(s->store.history), s->past.begin_ns,
			      s->past.end_ns);

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

void tick_past_collect(struct sampler *s, uint64_t begin_ns, uint64_t end_ns)
{
	/* By their arrival: each sample is in one collection, and none has to wait for late ones.
	 */
	struct profile *p = make_past(s, history_arrivals(s->store.history), begin_ns, end_ns);

	if (!p) {
		p = xcalloc(1, sizeof(*p));
		memcpy(p->target, s->target.text, sizeof(p->target));
		memcpy(p->banner, s->banner, sizeof(p->banner));
	}
	p->time_ns = s->source->real_ns(s, end_ns);
	/* After a change of the events it has the time since. */
	if (!p->past_other_events)
		p->window_ns = end_ns - begin_ns;
	/* With their rates. */
	if (!p->nr_events || has_present_events(s, p))
		tick_fill_events(s, p);
	ratios_count_samples(p);
	p->account_total = s->ticks.total;
	mailbox_post(&s->collect.mailbox, p);
}

/* Post both again at the end of a tick: a strip moves, names of a range arrive. */
static void tick_past_renew(struct sampler *s)
{
	tick_past_strip(s, s->facts.recorded);
	if (s->past.nr_named != nr_named(s) ||
	    atomic_load_explicit(&s->annotate.function, memory_order_relaxed) != SYMBOL_NONE)
		tick_past_post(s);
}

#define NSEC 1000000000ULL

/* A tick with this number of samples, most of them pending, and this cost (percent of all CPUs). */
#define STARVED_TAKEN 10

#define STARVED_PCT 25.0

/*
 * A slice of the past is shown when all of its samples are counted, or this long after it: from
 * then on late ones are added to it. On disk, where none are added, it is written this much later.
 */
#define LATE_NS (2 * NSEC)

#define LATE_DISK_NS (20 * NSEC)

/* Names of the last places of a tick take a few ms. Of a single tick there is no next one. */
#define NAMES_NS (NSEC / 5)

#define NAMES_ONCE_NS (2 * NSEC)

/*
 * Read all counters. Before the grace period, which is long on a busy machine, so that they match
 * the samples of the tick.
 */
static void read_all(struct sampler *s)
{
	for (uint32_t i = 0; i < s->live.nr_threads; i++)
		rates_read(&s->rates, s->live.counters, i, s->config.nr_events);
}

/*
 * End the tick *@number and take its counts; every batch begun before is over afterwards. -ENOMEM:
 * it goes on, and *@number is one without stats.
 */
static int take_tick(struct sampler *s, uint32_t *number, struct count **counts, uint32_t *nr)
{
	int code;

	*number = counts_tick(s->store.counts);
	read_all(s);
	code = counts_end_tick(s->store.counts, counts, nr);
	*number += code != 0;
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

/* Return the CPU time of a cgroup of version 2 and of the ones below it; 0: unknown. */
static uint64_t cgroup_ran_ns(int fd)
{
	unsigned long long us = 0;
	char *text = NULL;
	size_t size;

	if (untrusted_read_at(fd, "cpu.stat", 4096, &text, &size) ||
	    sscanf(text, "usage_usec %llu", &us) != 1)
		us = 0;
	free(text);
	return us * 1000;
}

/*
 * Return how long the tasks of the target ran since the last tick, of whatever event: their events
 * are on a CPU with them. Of events that take turns on a counter, the longest one is the nearest.
 * Of the events of a cgroup clocks alone are right.
 */
static uint64_t take_running(struct sampler *s)
{
	uint64_t longest_ns = 0, before_ns = s->ticks.running_ns;

	if (s->target.cgroup_fd >= 0)
		longest_ns = cgroup_ran_ns(s->target.cgroup_fd);
	for (uint32_t e = 0; e < s->config.nr_events && !longest_ns; e++) {
		uint64_t ns = 0;

		for (uint32_t i = 0; i < s->live.nr_threads; i++)
			ns += s->rates.cpus[i].known[e] ? s->rates.cpus[i].now[e].running_ns : 0;
		longest_ns = MAX(longest_ns, ns);
	}
	s->ticks.running_ns = longest_ns;
	/* Less: of newly opened events. */
	return target_is_part(&s->target) && longest_ns > before_ns ? longest_ns - before_ns : 0;
}

/* Return how long tasks ran from some moment on, but for proftop if it has no samples. */
static int64_t tasks_ran(const struct sampler *s)
{
	double ns = s->config.include_self ? 0 : -(double)time_clock_ns(CLOCK_PROCESS_CPUTIME_ID);

	for (uint32_t i = 0; i < s->live.nr_threads; i++)
		ns += procstat_cpu(s->rates.procstat, counters_cpu(s->live.counters, i)->cpu)
			      .tasks_ns;
	return (int64_t)ns;
}

/* Return how long tasks ran since the last tick. */
static uint64_t take_busy(struct sampler *s)
{
	int64_t before_ns = s->ticks.busy_ns;

	s->ticks.busy_ns = MAX(before_ns, tasks_ran(s));
	return (uint64_t)(s->ticks.busy_ns - before_ns);
}

/* Add the CPU time of the tasks. Clocks are of all CPUs: samples of some CPUs have no others. */
static void add_cpu_times(struct sampler *s, struct count **counts, uint32_t *nr, uint64_t now_ns,
			  bool tick)
{
	pid_t parents[ARRAY_SIZE(s->live.parents.pids)];
	struct cpu_times_input in = {
		.maps = s->store.maps,
		.generation = s->store.tables->generation,
		.begin_ns = s->ticks.slice_ns,
		.now_ns = now_ns,
		.wait_slot = config_wait_slot(&s->config),
		.threads = s->target.kind == TARGET_TIDS,
		.cgroup = s->target.cgroup_fd >= 0,
		.tick = tick,
		.all_ns = tick ? take_running(s) : 0,
		.busy_ns = tick ? take_busy(s) : 0,
		.nr_cpus = s->live.nr_threads,
		.parents = parents,
	};

	if (!s->cpu_times || s->config.cpus || !s->rates.enabled)
		return;
	choose_clock(s, &in);
	/* Relaxed: a number. */
	for (size_t i = 0; i < ARRAY_SIZE(s->live.parents.pids); i++) {
		pid_t pid =
			atomic_exchange_explicit(&s->live.parents.pids[i], 0, memory_order_relaxed);

		/* Of whole CPUs, others fork as well. */
		if (pid > 0 && (!s->target.wide || maps_is_chosen(s->store.maps, pid, now_ns)))
			parents[in.nr_parents++] = pid;
	}
	cpu_times_add(s->cpu_times, &in, counts, nr);
}

void tick_restart_cpu(struct sampler *s)
{
	if (!s->cpu_times)
		return;
	s->rates.procstat_ns = 0;
	rates_read_busy(&s->rates, time_now_ns());
	take_running(s);
	s->ticks.busy_ns = tasks_ran(s);
	cpu_times_restart(s->cpu_times);
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
	if (nr)
		s->ticks.sampled_ns = now_ns;
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
		history_complete(s->store.history, UINT64_MAX);
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

/*
 * Let the loader look at the places of the tick, the last of which have no names yet: a tick that
 * is printed is never named again. Files do not delay the loader, a machine that is busy does.
 */
static void await_names(struct sampler *s)
{
	uint64_t end_ns = time_now_ns() + (s->config.warm_up ? NAMES_ONCE_NS : NAMES_NS);
	uint32_t nr = places_nr(s->store.places);
	struct symbols_stats names;

	symbols_stats(s->store.symbols, &names);
	if (names.nr_seen >= nr)
		return;
	symbols_wake(s->store.symbols);
	while (names.nr_seen < nr && time_now_ns() < end_ns) {
		rcu_thread_offline();
		poll(NULL, 0, 1);
		rcu_thread_online();
		symbols_stats(s->store.symbols, &names);
	}
}

void tick_end(struct sampler *s)
{
	struct profile *p = xcalloc(1, sizeof(*p));
	uint64_t now_ns = time_now_ns(), done_ns;
	struct tick_sums sums = { .lost = 0 };
	struct count *counts = NULL;
	struct unwind_stats unwind;
	uint32_t number, nr = 0;
	double served;
	int code;

	keep_room(s);
	waiting_count(s, now_ns);
	note_max_rate(s);
	done_ns = complete_ns(s);
	code = take_tick(s, &number, &counts, &nr);
	/* All samples until now are in it. Waits are counted until then. */
	if (waiting_counted_ns(s) == UINT64_MAX)
		now_ns = time_now_ns();
	rates_read_busy(&s->rates, now_ns);
	/* Else the next tick has the samples of both. */
	if (!code)
		add_slice(s, counts, nr, now_ns, done_ns, true);
	await_names(s);
	assert(now_ns >= s->ticks.last_ns);
	p->interval_ns = MAX(now_ns - s->ticks.last_ns, 1);
	s->ticks.last_ns = now_ns;
	tick_fill_state(s, p, now_ns);
	tick_fill_cpus(s, p, number, &sums, now_ns);
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
	s->ticks.shown_ns = s->ticks.slice_ns;
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
	uint32_t number, nr = 0;

	if (!take_tick(s, &number, &counts, &nr))
		free(counts);
	for (uint32_t i = 0; i < s->live.nr_threads; i++) {
		struct sampler_thread_stats stats;

		sampler_thread_take_stats(s->live.threads[i], number, &stats);
		pipeline_add_stats(all, &stats.samples);
	}
}

void tick_skip(struct sampler *s, struct pipeline_stats *all)
{
	*all = (struct pipeline_stats){ 0 };
	waiting_discard(s, time_now_ns());
	drop_tick(s, all);
}

void tick_discard(struct sampler *s)
{
	struct pipeline_stats all = { 0 };

	drop_tick(s, &all);
	tick_restart_cpu(s);
	s->ticks.total = (struct profile_account){ 0 };
	s->ticks.reset_ns = s->ticks.last_ns = time_now_ns();
	waiting_discard(s, s->ticks.reset_ns);
	past_restart(&s->past, s->store.history, &s->config, s->ticks.reset_ns);
	s->ticks.slice_ns = s->ticks.shown_ns = s->ticks.reset_ns;
	rates_restart(&s->rates, s->ticks.reset_ns);
	for (uint32_t i = 0; i < s->live.nr_threads; i++)
		rates_rebase(&s->rates, s->live.counters, i, s->config.nr_events);
}

/*
 * The profile of a recording. Runs on: the builder.
 */

static void fill_replay_cpus(const struct sampler *s, struct profile *p,
			     const struct replay_result *r, struct tick_sums *sums)
{
	p->pressure = (struct procstat_pressure){ NAN, NAN, NAN };
	/* Slices are of all CPUs together. */
	if (s->facts.kept) {
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
			.busy = NAN,
			.samples = from->samples.taken,
			.lost = from->lost - MIN(from->lost, from->lost_shown),
			.lost_total = from->lost,
			.throttled = from->throttled - from->throttled_shown,
			.throttled_total = from->throttled,
			.throttled_ns = from->throttled_ns,
		};
		hot_function_fill(&p->cpus[i], &from->samples, s->store.places);
		sums->lost += p->cpus[i].lost;
		pipeline_add_stats(&sums->all, &from->samples);
	}
}

/* Name the machine of a stream, and how late its samples are shown. */
static void describe_stream(const struct sampler *s, struct profile *p,
			    const struct replay_result *r)
{
	char late[32] = "";

	if (!s->config.follow)
		return;
	if (!s->target.gone)
		snprintf(late, sizeof(late), ", %.1f s late", (double)r->delay_ns / 1e9);
	text_format(p->target, sizeof(p->target), "recording %s%.64s%s", *r->host ? "of " : "",
		    *r->host ? r->host : s->config.replay, late);
}

void tick_replay(struct sampler *s, const struct replay_result *result)
{
	const struct assemble_input tables = tick_fill_tables(s);
	struct profile *p = xcalloc(1, sizeof(*p));
	struct tick_sums sums = { .lost = 0 };

	trapping_replay(s, &tables);
	p->interval_ns = result->interval_ns;
	if (!s->config.follow)
		s->ticks.total = (struct profile_account){ 0 };
	tick_fill_state(s, p, time_now_ns());
	describe_stream(s, p, result);
	p->time_ns = result->date_ns;
	p->running_ns = result->span_ns;
	p->session_ns = 0;
	fill_replay_cpus(s, p, result, &sums);
	tick_fill_account(s, p, &sums);
	tick_fill_events(s, p);
	tick_fill_unwind(p, &result->unwind);
	p->waits = result->waits;
	p->latency = result->waits.tasks ? (uint32_t)(config_latency_slot(&s->config) + 1) : 0;
	procstat_self(s->rates.procstat, &p->self.cpu_pct, &p->self.rss_kb);
	if (tick_fill_counts(s, p))
		mailbox_say(&s->mailbox, "out of memory: the recording has no rows");
	ratios_count_samples(p);
	s->messages = (struct messages){ .recorded = true };
	messages_apply(&s->messages, p, result->span_ns, result->span_ns);
	/* Before the profile, which is drawn with it. */
	tick_past_renew(s);
	mailbox_post(&s->mailbox, p);
}
