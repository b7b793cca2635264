// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The problems since the start, each kind once, with its fix: the rules and their words. Runs on:
 * the builder.
 *
 * Invariant: a kind has one entry, with an id that no other kind ever has; a full table drops new
 * kinds.
 *
 * The list of messages, and the accounts of the last window.
 */

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/count/count.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "symbols/image/image.h"
#include "symbols/jit/jit.h"
#include "symbols/script/script.h"
#include "unwind/unwind.h"

/* With fewer samples a share says nothing. */
#define MESSAGES_TAKEN_MIN 50

static struct profile_message *entry_of(struct messages *n, const char *key)
{
	struct profile_message *e;

	for (uint32_t i = 0; i < n->nr; i++)
		if (!strcmp(n->items[i].key, key))
			return &n->items[i];
	if (n->nr == MESSAGES_MAX)
		return NULL;
	e = &n->items[n->nr];
	*e = (struct profile_message){ .id = n->next_id++, .first_ns = n->now_ns };
	n->nr++;
	snprintf(e->key, sizeof(e->key), "%s", key);
	return e;
}

__attribute__((format(printf, 3, 0))) static void clean(char *dst, size_t size, const char *fmt,
							va_list ap)
{
	char text[512];

	vsnprintf(text, sizeof(text), fmt, ap);
	text_sanitise(dst, size, text, strlen(text));
}

/* Write a share as "2.8%"; "<0.1%" instead of none for a small one. Return @buf. */
static const char *messages_share(char buf[static 16], double share)
{
	if (share > 0 && share < 0.0005)
		snprintf(buf, 16, "<0.1%%");
	else
		snprintf(buf, 16, "%.1f%%", 100 * share);
	return buf;
}

/*
 * Note @key now, @count more times; @fmt: the brief, and the detail until messages_detail(). Never
 * NULL; a full table gives a spare that is thrown away.
 */
__attribute__((format(printf, 5, 6))) static struct profile_message *
messages_note(struct messages *n, const char *key, enum message_severity severity, uint64_t count,
	      const char *fmt, ...)
{
	struct profile_message *e = entry_of(n, key);
	va_list ap;

	assert(strlen(key) < sizeof(e->key));
	e = e ? e : &n->spare;
	va_start(ap, fmt);
	clean(e->brief, sizeof(e->brief), fmt, ap);
	va_end(ap);
	memset(e->detail, 0, sizeof(e->detail));
	memcpy(e->detail, e->brief, sizeof(e->brief));
	e->severity = severity;
	e->count += count;
	e->last_ns = n->now_ns;
	e->active = true;
	e->control = MESSAGE_NONE;
	e->keys = 0;
	e->module = 0;
	e->fix[0] = '\0';
	return e;
}

/* Take @key, or all that begin with it ("rate-"), as not noted now: the consequence of another. */
static void messages_silence(struct messages *n, const char *key)
{
	for (uint32_t i = 0; i < n->nr; i++)
		if (!strncmp(n->items[i].key, key, strlen(key)))
			n->items[i].active = false;
}

/* Remove @key from the list. */
static void messages_remove(struct messages *n, const char *key)
{
	for (uint32_t i = 0; i < n->nr; i++) {
		if (strcmp(n->items[i].key, key) != 0)
			continue;
		n->nr--;
		memmove(&n->items[i], &n->items[i + 1], (n->nr - i) * sizeof(n->items[0]));
		return;
	}
}

/* Set the whole sentence of @e. */
__attribute__((format(printf, 2, 3))) static void messages_detail(struct profile_message *e,
								  const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	clean(e->detail, sizeof(e->detail), fmt, ap);
	va_end(ap);
}

/* Return 1 if the state @key begins with this profile, 0 if it goes on: its count. */
static uint64_t messages_begins(const struct messages *n, const char *key)
{
	for (uint32_t i = 0; i < n->nr; i++)
		if (!strcmp(n->items[i].key, key))
			return n->items[i].last_ns != n->before_ns;
	return 1;
}

/* Set the fix of @e: its text, and the action of its key. */
__attribute__((format(printf, 5, 6))) static void messages_fix(struct messages *n,
							       struct profile_message *e,
							       enum message_control control,
							       double value, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	clean(e->fix, sizeof(e->fix), fmt, ap);
	va_end(ap);
	e->control = n->recorded && control != MESSAGE_MODULES && control != MESSAGE_CPUS
			     ? MESSAGE_NONE
			     : control;
	e->value = value;
}

static void add(struct profile_account *sum, const struct profile_account *a)
{
	sum->taken += a->taken;
	sum->truncated += a->truncated;
	sum->gaps += a->gaps;
	sum->broken += a->broken;
	sum->guessed += a->guessed;
	sum->pending += a->pending;
}

/* Add a tick to the sums of the last window, exact to an eighth of the window. */
static void slide(struct messages *n, const struct profile *p, uint64_t window_ns)
{
	uint64_t span_ns = 0;

	if (n->parts[n->part].span_ns + p->interval_ns / 2 > window_ns / MESSAGES_PARTS) {
		n->part = (n->part + 1) % MESSAGES_PARTS;
		n->parts[n->part] = (struct messages_part){ 0 };
	}
	n->parts[n->part].span_ns += p->interval_ns;
	add(&n->parts[n->part].account, &p->account);
	n->window = (struct profile_account){ 0 };
	for (unsigned int i = 0; i < MESSAGES_PARTS && span_ns < window_ns; i++) {
		const struct messages_part *part =
			&n->parts[(n->part + MESSAGES_PARTS - i) % MESSAGES_PARTS];

		add(&n->window, &part->account);
		span_ns += part->span_ns;
	}
}

void messages_restart(struct messages *n)
{
	memset(n->parts, 0, sizeof(n->parts));
	n->window = (struct profile_account){ 0 };
}

double messages_truncated(const struct messages *n)
{
	return n->window.taken < MESSAGES_TAKEN_MIN
		       ? -1
		       : (double)(n->window.truncated - n->window.gaps) / (double)n->window.taken;
}

/* Begin the profile @p: nothing is active. @now_ns: since the session's start. */
static void messages_begin(struct messages *n, const struct profile *p, uint64_t now_ns,
			   uint64_t window_ns)
{
	n->before_ns = n->now_ns;
	n->now_ns = now_ns;
	for (uint32_t i = 0; i < n->nr; i++)
		n->items[i].active = false;
	slide(n, p, window_ns);
}

/* Give @p a copy of all messages. */
static void messages_copy(const struct messages *n, struct profile *p)
{
	assert(n->nr <= MESSAGES_MAX);
	p->nr_messages = n->nr;
	p->messages = xcalloc(n->nr, sizeof(*p->messages));
	memcpy(p->messages, n->items, n->nr * sizeof(*p->messages));
}

/*
 * Messages about the kernel's side: samples lost and throttled, rings, limits, rates, CPUs.
 *
 * Runs on: the builder.
 *
 * Messages about the kernel's side: samples lost and throttled, rings, limits, rates, CPUs offline.
 *
 * Runs on: the builder.
 */

#define RING_LOUD   0.75
#define RING_MAX    (256u << 20)
#define LAG_LOUD_NS 500000000ULL

/* Below, an event is multiplexed; alone it may still be read at different times. */
#define MULTIPLEXED_MAX 0.99

#define MULTIPLEXED_MAX_ALONE 0.9
#define CPUS_NAMED	      4 /* in a sentence */

/* Return the event with the highest rate; nr_events: all have fixed periods. */
static uint32_t fastest(const struct profile *p)
{
	uint32_t best = p->nr_events;

	for (uint32_t i = 0; i < p->nr_events; i++)
		if (p->events[i].want_hz > 0 &&
		    (best == p->nr_events || p->events[i].want_hz > p->events[best].want_hz))
			best = i;
	return best;
}

/* A rate that the kernel accepts, and does not throttle for an interrupt that is a little early. */
static double within_limit(const struct profile *p)
{
	return MAX(floor((double)p->max_hz / 2), 1.0);
}

/* Set the fix of @e to a lower rate, with @also behind it. */
static void messages_kernel_fix_rate(struct messages *n, const struct profile *p,
				     struct profile_message *e, const char *also)
{
	uint32_t event = fastest(p);
	double hz;

	if (event == p->nr_events) {
		messages_fix(n, e, MESSAGE_NONE, 0, "use a longer period (-c)%s", also);
		return;
	}
	hz = MAX(round(p->events[event].want_hz / 2), 1.0);
	hz = p->max_hz ? MIN(hz, within_limit(p)) : hz;
	messages_fix(n, e, MESSAGE_RATE, hz, "%s the rate of %s to %.0f Hz%s",
		     hz < p->events[event].want_hz / 2 - 1 ? "lower" : "halve",
		     p->events[event].event.name, hz, also);
	e->event = event;
}

/* A ring that can still grow, else a lower rate. */
static void fix_ring(struct messages *n, const struct profile *p, struct profile_message *e)
{
	uint64_t size = 2 * p->ring_size;

	if (!p->ring_size || size > RING_MAX || (n->ring_refused && size >= n->ring_refused)) {
		messages_kernel_fix_rate(n, p, e,
					 "; the ring cannot grow; smaller stack copies "
					 "(--stack-size) need less");
		e->keys = MESSAGE_KEY_STACKS;
		return;
	}
	messages_fix(n, e, MESSAGE_RING_SIZE, (double)size,
		     "double the rings to %llu KiB; or lower the rate (-F), or copy less stack "
		     "(--stack-size)",
		     (unsigned long long)size >> 10);
	e->keys = MESSAGE_KEY_RATE | MESSAGE_KEY_STACKS;
}

/* "CPU 1", "CPUs 0, 1", "12 CPUs": the CPUs with a @value that is not zero. */
static const char *name_cpus(char *buf, size_t size, const struct profile *p,
			     uint64_t (*value)(const struct profile_cpu *cpu))
{
	size_t at = 0;
	uint32_t nr = 0;

	for (uint32_t i = 0; i < p->nr_cpus; i++)
		nr += value(&p->cpus[i]) > 0;
	if (!p->nr_cpus) {
		snprintf(buf, size, "some CPU");
		return buf;
	}
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

static void note_lost(struct messages *n, const struct profile *p)
{
	struct profile_message *e;
	char cpus[64];

	if (!p->account.lost)
		return;
	name_cpus(cpus, sizeof(cpus), p, lost_of);
	e = messages_note(n, "lost", MESSAGE_GRAVE, p->account.lost, "samples lost on %s", cpus);
	messages_detail(e, "samples lost on %s: the ring was full", cpus);
	fix_ring(n, p, e);
}

static void note_throttled(struct messages *n, const struct profile *p)
{
	uint64_t ns = 0, times = 0;
	struct profile_message *e;
	char cpus[64];

	for (uint32_t i = 0; i < p->nr_cpus; i++) {
		times += p->cpus[i].throttled;
		ns += p->cpus[i].throttled_ns;
	}
	if (!times && !ns)
		return;
	name_cpus(cpus, sizeof(cpus), p, throttled_of);
	e = messages_note(n, "throttled", MESSAGE_GRAVE, times, "throttled on %s", cpus);
	messages_detail(e, "throttled on %s, %.0f ms in the tick: samples of that time are missing",
			cpus, (double)ns / 1e6);
	messages_kernel_fix_rate(n, p, e, ": the kernel pauses events that interrupt too often");
}

/* Samples are nearly lost, or the limits allow only small rings. */
static void note_rings(struct messages *n, const struct profile *p)
{
	struct profile_message *e;
	double high = 0;
	char cpus[64];

	for (uint32_t i = 0; i < p->nr_cpus; i++)
		high = MAX(high, p->cpus[i].ring_high);
	if (high > RING_LOUD && !p->account.lost)
		fix_ring(n, p,
			 messages_note(n, "ring-full", MESSAGE_WARN, 1,
				       "ring of %s was %.0f%% full",
				       name_cpus(cpus, sizeof(cpus), p, full_of), 100 * high));
	n->ring_refused = p->ring_size < p->ring_wanted ? 2 * p->ring_size : 0;
	if (!n->ring_refused)
		return;
	e = messages_note(n, "ring-small", MESSAGE_INFO, messages_begins(n, "ring-small"),
			  "rings of %llu KiB per CPU instead of %llu",
			  (unsigned long long)p->ring_size >> 10,
			  (unsigned long long)p->ring_wanted >> 10);
	messages_detail(e,
			"rings of %llu KiB per CPU instead of %llu: locked memory is limited, and "
			"shared by all profilers of this user",
			(unsigned long long)p->ring_size >> 10,
			(unsigned long long)p->ring_wanted >> 10);
	messages_fix(n, e, MESSAGE_RING_SIZE, (double)p->ring_wanted,
		     "try again after other profilers have ended; or raise 'ulimit -l' or "
		     "kernel.perf_event_mlock_kb");
}

static void note_lag(struct messages *n, const struct profile *p)
{
	struct profile_message *e;
	uint64_t lag = 0;
	char cpus[64];

	for (uint32_t i = 0; i < p->nr_cpus; i++)
		lag = MAX(lag, p->cpus[i].lag_max_ns);
	if (lag <= LAG_LOUD_NS)
		return;
	name_cpus(cpus, sizeof(cpus), p, late_of);
	e = messages_note(n, "lag", MESSAGE_WARN, 1, "samples of %s handled %.1f s late", cpus,
			  (double)lag / 1e9);
	messages_detail(e, "samples of %s handled %.1f s late: proftop gets too little CPU time",
			cpus, (double)lag / 1e9);
	messages_kernel_fix_rate(n, p, e,
				 n->goes_first ? ""
					       : "; or give proftop CAP_SYS_NICE, to run before "
						 "others");
}

static void note_offline(struct messages *n, const struct profile *p)
{
	struct profile_message *e;
	char cpus[64], first[16] = "N";

	for (uint32_t i = p->nr_cpus; i-- > 0;)
		if (!p->cpus[i].online)
			snprintf(first, sizeof(first), "%d", p->cpus[i].cpu);
	if (n->recorded || first[0] == 'N')
		return;
	name_cpus(cpus, sizeof(cpus), p, offline_of);
	e = messages_note(n, "offline", MESSAGE_INFO, messages_begins(n, "offline"), "offline: %s",
			  cpus);
	messages_detail(e, "offline: %s; nothing is sampled there", cpus);
	messages_fix(n, e, MESSAGE_NONE, 0,
		     "'echo 1 >/sys/devices/system/cpu/cpu%s/online'; sampling resumes within "
		     "a second",
		     first);
}

static void note_limit(struct messages *n, const struct profile *p)
{
	uint32_t event = fastest(p);
	struct profile_message *e;

	if (!p->max_hz || p->max_hz >= p->max_hz_top)
		return;
	e = messages_note(n, "max-rate", MESSAGE_WARN, messages_begins(n, "max-rate"),
			  "sample rate limit fell to %llu Hz", (unsigned long long)p->max_hz);
	messages_detail(e,
			"kernel.perf_event_max_sample_rate fell from %llu to %llu: sampling took "
			"the kernel too long",
			(unsigned long long)p->max_hz_top, (unsigned long long)p->max_hz);
	if (event < p->nr_events && p->events[event].want_hz > (double)p->max_hz) {
		messages_fix(n, e, MESSAGE_RATE, within_limit(p),
			     "lower the rate to %.0f Hz; or "
			     "'sudo sysctl kernel.perf_event_max_sample_rate=%llu'",
			     within_limit(p), (unsigned long long)p->max_hz_top);
		e->event = event;
		return;
	}
	messages_fix(n, e, MESSAGE_NONE, 0,
		     "when the load has fallen: "
		     "'sudo sysctl kernel.perf_event_max_sample_rate=%llu'",
		     (unsigned long long)p->max_hz_top);
}

/* Only events of time have a rate that must be reached: others occur as often as they occur. */
static bool is_time(const struct event *ev)
{
	return ev->clock ||
	       (ev->type == PERF_TYPE_HARDWARE && (ev->config == PERF_COUNT_HW_CPU_CYCLES ||
						   ev->config == PERF_COUNT_HW_REF_CPU_CYCLES));
}

/* Only hardware events share counters. */
static void note_multiplexed(struct messages *n, const struct profile *p,
			     const struct profile_event *ev)
{
	const char *name = ev->event.name;
	double share = 100 * ev->running_share;
	struct profile_message *e;
	uint32_t nr = 0;
	char key[24];

	for (uint32_t i = 0; i < p->nr_events; i++)
		nr += p->events[i].event.hardware && p->events[i].enabled;
	/* Times of one event alone may differ by how late they are read. */
	if (!ev->event.hardware || !(ev->running_share > 0) ||
	    ev->running_share >= (nr > 1 ? MULTIPLEXED_MAX : MULTIPLEXED_MAX_ALONE))
		return;
	snprintf(key, sizeof(key), "multiplexed-%.11s", name);
	e = messages_note(n, key, MESSAGE_WARN, messages_begins(n, key),
			  "%.24s: counted %.0f%% of the time", name, share);
	if (nr > 1) {
		messages_detail(e, "%s: counted %.0f%% of the time: more events than counters",
				name, share);
		messages_fix(n, e, MESSAGE_EVENTS, 0, "choose fewer events");
		return;
	}
	messages_detail(e, "%s: counted %.0f%% of the time: the counters are used elsewhere", name,
			share);
	messages_fix(n, e, MESSAGE_NONE, 0,
		     "end other profilers; or 'sudo sysctl kernel.nmi_watchdog=0'");
}

static void note_event(struct messages *n, const struct profile *p, uint32_t index)
{
	const struct profile_event *ev = &p->events[index];
	struct profile_message *e;
	char key[24];

	assert(index < p->nr_events);
	if (!p->sampling || !ev->enabled)
		return;
	note_multiplexed(n, p, ev);
	if (!is_time(&ev->event) || !(ev->want_hz > 0) || !(ev->got_hz < ev->want_hz * 0.8) ||
	    p->account.taken < MESSAGES_TAKEN_MIN)
		return;
	snprintf(key, sizeof(key), "rate-%.16s", ev->event.name);
	e = messages_note(n, key, MESSAGE_WARN, 1, "%.24s: %.0f Hz wanted, %.0f Hz got",
			  ev->event.name, ev->want_hz, ev->got_hz);
	messages_detail(e, "%.24s: %.0f Hz wanted, %.0f Hz got: %s", ev->event.name, ev->want_hz,
			ev->got_hz,
			p->cpu_known ? "shares are of fewer samples, CPU% is by clocks of the "
				       "kernel"
				     : "shares are of fewer samples, and ~CPU% is too low");
	messages_fix(n, e, MESSAGE_RATE, MAX(floor(ev->got_hz), 1.0),
		     "lower the rate to %.0f Hz, which the kernel delivers",
		     MAX(floor(ev->got_hz), 1.0));
	e->event = index;
}

static void messages_kernel(struct messages *n, const struct profile *p)
{
	/* First: whether rings can grow decides the fix against loss. */
	note_rings(n, p);
	note_lost(n, p);
	note_throttled(n, p);
	note_lag(n, p);
	note_offline(n, p);
	note_limit(n, p);
	for (uint32_t i = 0; i < p->nr_events; i++)
		note_event(n, p, i);
}

/*
 * Messages about interpreters. Runs on: the builder.
 *
 * Messages about interpreters: why functions of scripts have no names, and the fix.
 *
 * Runs on: the builder.
 */

/* Of the tick's samples: with fewer of interpreters, a reader need not run. */
#define SHARE_MIN 0.05

/* Of the samples of interpreters: a larger share is noted. */
#define NONE_MAX 0.1

#define GUESSED_MAX 0.25

/* Return whether no functions of scripts are read of any version of this interpreter. */
static bool is_unreadable(const struct profile_module *m)
{
	return m->language_reason && m->path.size &&
	       m->language_reason == runtime_fix_in(RUNTIME_SCRIPTS, m->path.str);
}

/* Return the first interpreter without functions of scripts, or with guesses; NULL: none. */
static const struct profile_module *find_module(const struct profile *p, bool untried)
{
	for (uint32_t i = 0; i < p->nr_modules; i++) {
		const char *reason = p->modules[i].language_reason;

		if (reason && !is_unreadable(&p->modules[i]) && (reason == lang_untried) == untried)
			return &p->modules[i];
	}
	return NULL;
}

/* Return whether @nr samples of interpreters are enough to warn. */
static bool is_loud(const struct profile *p, uint64_t nr)
{
	return p->lang.samples >= MESSAGES_TAKEN_MIN &&
	       (double)nr >= SHARE_MIN * (double)p->account.taken;
}

/* Code without a symbol is no message of its own where an interpreter that is not read explains it.
 */
static void hide_names(struct messages *n, const struct profile *p, uint64_t nr)
{
	if (is_loud(p, nr) && (double)nr * (double)p->window_samples >=
				      (double)p->window_unnamed * (double)p->account.taken)
		messages_silence(n, "names");
}

/* Note interpreters that are not read at all. */
static void note_unread(struct messages *n, const struct profile *p)
{
	static const struct {
		enum lang_status why;
		const char *key, *text, *fix;
	} reasons[] = {
		{ LANG_VERSION, "lang-version", "interpreter of an unknown version or build",
		  "native frames are shown; 'proftop --check' lists the versions" },
		{ LANG_REFUSED, "lang-refused", "no permission to read interpreters",
		  "sudo proftop, or cap_sys_ptrace (make install SETCAP=1)" },
		{ LANG_NO_ROOM, "lang-room", "too many functions of interpreters",
		  "native frames are shown; restart proftop if it lasts" },
	};
	const struct profile_module *held_samples = find_module(p, false),
				    *untried = find_module(p, true);
	char title[LANG_TITLE_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
		/* An untried version that is read as another one may turn out to differ from it. */
		bool differs = !held_samples && reasons[i].why == LANG_VERSION;
		const struct profile_module *m = differs ? untried : held_samples;
		uint64_t nr = p->lang.none_by[reasons[i].why];
		struct profile_message *e;
		const char *reason;

		if (!nr)
			continue;
		if (reasons[i].why == LANG_NO_ROOM)
			m = NULL;
		reason = !m	   ? reasons[i].text
			 : differs ? "untried, and laid out as no known version"
				   : m->language_reason;
		if (m)
			lang_title(title, m->language_version);
		e = messages_note(n, reasons[i].key, is_loud(p, nr) ? MESSAGE_WARN : MESSAGE_INFO,
				  nr, "%s%s%s", m ? title : "", m ? ": " : "", reason);
		messages_fix(n, e, MESSAGE_NONE, 0, "%s", reasons[i].fix);
		if (!m)
			continue;
		messages_detail(e, "no functions of scripts: %s (%s): %s", title, m->name.str,
				reason);
		if (m->language_fix)
			messages_fix(n, e, MESSAGE_NONE, 0, "%s", m->language_fix);
		hide_names(n, p, nr);
	}
}

/* Return the most frequent reason for samples without frames that can change, and their sum. */
static enum lang_status find_most(const struct profile *p, uint64_t *sum)
{
	static const enum lang_status reasons[] = { LANG_NO_READER, LANG_NO_THREAD, LANG_BAD_CHAIN,
						    LANG_MISMATCH };
	enum lang_status most = LANG_NO_READER;

	*sum = 0;
	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
		*sum += p->lang.none_by[reasons[i]];
		if (p->lang.none_by[reasons[i]] > p->lang.none_by[most])
			most = reasons[i];
	}
	return most;
}

/* Return the fix of samples that are read too late. */
static const char *fix_late(const struct messages *n)
{
	return runtime_fix_in(n->goes_first ? RUNTIME_LATE_FIRST : RUNTIME_LATE, "");
}

/* Note a large share of samples without functions of scripts. */
static void note_none(struct messages *n, const struct profile *p)
{
	static const char *const words[LANG_OK] = {
		[LANG_NO_READER] = "the thread ran on before it was read",
		[LANG_NO_THREAD] = "threads that the interpreter does not know",
		[LANG_BAD_CHAIN] = "no valid chain of frames",
		[LANG_MISMATCH] = "the frames do not fit the native stack",
	};
	bool dwarf = p->call_graph == CALL_GRAPH_DWARF;
	struct profile_message *e;
	enum lang_status most;
	uint64_t nr;

	most = find_most(p, &nr);
	if ((double)nr <= NONE_MAX * (double)p->lang.samples)
		return;
	e = messages_note(n, "lang-none", MESSAGE_INFO, nr, "scripts without functions: %.0f%%",
			  100.0 * (double)nr / (double)p->lang.samples);
	messages_detail(e, "%.0f%% of samples of interpreters have no functions of scripts: %s",
			100.0 * (double)nr / (double)p->lang.samples,
			dwarf ? words[most] : "without stack copies they are not read");
	if (!dwarf)
		messages_fix(n, e, MESSAGE_CALL_GRAPH, CALL_GRAPH_DWARF, "%s",
			     n->recorded ? "record with proftop -g dwarf"
					 : "use DWARF unwinding: exact, more overhead");
	else
		messages_fix(n, e, MESSAGE_NONE, 0, "%s",
			     most == LANG_NO_READER ? fix_late(n)
						    : "none: native frames are shown there; "
						      "report it if it lasts");
}

/* What most guesses are: of which language, and the doubt. */
struct guess {
	int language; /* index in guessed_by */
	int doubt;
};

static struct guess find_guess(const struct profile *p)
{
	struct guess most = { LANG_NONE, INTERLEAVE_DOUBTS };

	for (int i = 0; i < PROFILE_NR_LANGUAGES; i++)
		for (int k = 0; k < PROFILE_NR_DOUBTS; k++)
			if (p->lang.guessed_by[i][k] >
			    p->lang.guessed_by[most.language][most.doubt])
				most = (struct guess){ i, k };
	return most;
}

/* Return the fix of guesses of a language, and *why: what is in doubt. */
static const char *explain_doubt(const struct messages *n, struct guess g, const char **why)
{
	static const struct {
		enum runtime_problem problem;
		const char *why;
	} doubts[INTERLEAVE_DOUBTS] = {
		[0] = { RUNTIME_CUT, "the native stack is not whole" },
		[1] = { RUNTIME_UNALIGNED, "they do not match the native frames" },
		[2] = { RUNTIME_UNALIGNED, "a function was just called" },
		[3] = { RUNTIME_LATE, "other threads may have run before they were read" },
		[4] = { RUNTIME_UNALIGNED, "they are not in order" },
		[5] = { RUNTIME_LATE, "the thread ran on before it was read" },
		[6] = { RUNTIME_UNTRIED, "the version was never compared with the truth" },
	};
	enum runtime_problem problem;

	*why = n->recorded ? "they were guesses when they were recorded" : "a check failed";
	if (g.doubt >= INTERLEAVE_DOUBTS)
		return runtime_fix_in(RUNTIME_UNALIGNED, "");
	*why = doubts[g.doubt].why;
	problem = doubts[g.doubt].problem;
	if (problem == RUNTIME_LATE)
		return fix_late(n);
	return runtime_fix_in(problem, g.language == LANG_NR
					       ? lang_name(LANG_JAVA)
					       : lang_name((enum lang_kind)g.language));
}

/*
 * Set the sentence and the fix of @e, about stacks of which most have guessed functions of scripts:
 * @text, the language, and what is in doubt.
 */
static void messages_explain_guess(struct messages *n, const struct profile *p,
				   struct profile_message *e, const char *text)
{
	static const char *const names[PROFILE_NR_LANGUAGES] = {
		"interpreters", "Python", "PHP", "Ruby",   "Perl", "JavaScript",
		"Lua",		"LuaJIT", "R",	 "Erlang", "Java",
	};
	struct guess g = find_guess(p);
	const char *why, *fix = explain_doubt(n, g, &why);

	_Static_assert(LANG_NR + 1 == PROFILE_NR_LANGUAGES, "the languages of guessed_by");
	messages_detail(e, "%s %s: %s", text, names[g.language], why);
	messages_fix(n, e, MESSAGE_MODULES, 0, "%s", fix);
}

static void note_guessed(struct messages *n, const struct profile *p)
{
	/* No check failed of a stack that is too deep. */
	uint64_t nr = p->lang.guessed - MIN(p->lang.guessed, p->broken_by[UNWIND_DEPTH]);
	double share = (double)nr / (double)p->lang.samples;
	const struct profile_module *untried = find_module(p, true);
	struct profile_message *e;
	char text[96];

	if (!(share > GUESSED_MAX))
		return;
	e = messages_note(n, "lang-guessed", MESSAGE_INFO, nr,
			  "functions of scripts guessed: %.0f%%", 100 * share);
	snprintf(text, sizeof(text), "%.0f%% of samples of interpreters have guessed functions,",
		 100 * share);
	messages_explain_guess(n, p, e, text);
	if (untried && INTERLEAVE_UNTRIED == 1 << find_guess(p).doubt)
		messages_detail(e, "%s: %s", untried->path.str, lang_untried);
}

/* Note samples in interpreters of which no functions of scripts are read. */
static void note_unreadable(struct messages *n, const struct profile *p)
{
	const struct profile_module *most = NULL;
	struct profile_message *e;
	char buf[16];

	for (uint32_t i = 0; i < p->nr_modules; i++) {
		const struct profile_module *m = &p->modules[i];

		if (is_unreadable(m) && (!most || m->self > most->self))
			most = m;
	}
	if (!most || most->self < SHARE_MIN * p->window_samples)
		return;
	e = messages_note(n, "lang-unread", MESSAGE_INFO, 0, "no functions of scripts: %.30s",
			  most->name.str);
	/* The path is last: a list cuts the end of a line. */
	messages_detail(e, "%s: %s of samples, %s", most->language_reason,
			messages_share(buf, most->self / p->window_samples), most->path.str);
	messages_fix(n, e, MESSAGE_MODULES, 0, "none: functions of the interpreter are shown");
}

static void messages_languages(struct messages *n, const struct profile *p)
{
	note_unread(n, p);
	note_unreadable(n, p);
	if (p->lang.samples < MESSAGES_TAKEN_MIN ||
	    (double)p->lang.samples < SHARE_MIN * (double)p->account.taken)
		return;
	note_none(n, p);
	note_guessed(n, p);
}

/*
 * Messages about samples: truncated and broken stacks, samples that are not counted, missing names.
 *
 * Runs on: the builder.
 */

/* A larger share of the window's samples is a warning. */
#define BROKEN_LOUD 0.05

#define GUESSED_LOUD 0.25
#define PENDING_LOUD 0.5
#define NAMES_LOUD   0.05
#define DEBUG_LOUD   0.1 /* of the samples, in a module without its debug information */

/* Until then everything is new. */
#define START_NS 10000000000ULL

#define STACK_SIZE_MAX 65528u

static void note_truncated(struct messages *n, const struct profile *p)
{
	uint64_t nr = p->account.truncated - p->account.gaps;
	double share = messages_truncated(n), shown = share;
	struct profile_message *e;
	char buf[16];

	if (!nr)
		return;
	if (share < 0) /* too few for a warning */
		shown = (double)nr / (double)MAX(p->account.taken, nr);
	e = messages_note(n, "truncated",
			  share > MESSAGES_TRUNCATED_MAX ? MESSAGE_WARN : MESSAGE_INFO, nr,
			  "%s of stacks truncated", messages_share(buf, shown));
	messages_detail(e, "%s of stacks truncated: callers missing", buf);
	if (n->recorded)
		messages_fix(n, e, MESSAGE_NONE, 0,
			     "record larger stack copies (--call-graph=dwarf,65528)");
	else if (p->call_graph == CALL_GRAPH_DEFER)
		messages_fix(n, e, MESSAGE_CALL_GRAPH, CALL_GRAPH_DWARF,
			     "use DWARF unwinding; chains that are not there within a second "
			     "are of tasks that wait in the kernel");
	else if (p->call_graph == CALL_GRAPH_FP)
		messages_fix(n, e, MESSAGE_CALL_GRAPH, CALL_GRAPH_DWARF,
			     "use DWARF unwinding; or 'sudo sysctl "
			     "kernel.perf_event_max_stack=1024' and restart proftop");
	else if (p->stack_size < STACK_SIZE_MAX)
		messages_fix(n, e, MESSAGE_STACK_SIZE, MIN(2 * p->stack_size, STACK_SIZE_MAX),
			     "copy %u bytes of stack per sample; --stack-size=auto grows while "
			     "proftop runs",
			     MIN(2 * p->stack_size, STACK_SIZE_MAX));
	else
		messages_fix(n, e, MESSAGE_NONE, 0,
			     "none: the kernel copies no more stack; the innermost callers are "
			     "right");
}

/* Note stacks with unused memory in them, as those of Ruby's threads: no copy contains the rest. */
static void note_gaps(struct messages *n, const struct profile *p)
{
	struct profile_message *e;

	if (!p->account.gaps)
		return;
	e = messages_note(n, "gaps", MESSAGE_INFO, p->account.gaps,
			  "stacks truncated where no copy goes on");
	messages_detail(e, "stacks truncated at unused memory or at another stack: the first "
			   "callers of the thread are missing");
	messages_fix(n, e, MESSAGE_NONE, 0,
		     "none: the kernel copies one stack, up to a page that was never used; "
		     "a signal stack or C called by Go is another one; the innermost callers are "
		     "right");
}

/* Find a module by its id; NULL: it has no self samples, or no name. */
static const struct profile_module *module_of(const struct profile *p, uint32_t id)
{
	for (uint32_t i = 0; i < p->nr_modules; i++)
		if (p->modules[i].id == id)
			return p->modules[i].name.size ? &p->modules[i] : NULL;
	return NULL;
}

static const char *path_of(const struct profile_module *m)
{
	return m->path.size ? m->path.str : m->name.str;
}

/* Return the fix of stacks that end for the reason @stop, most of them in @in; NULL: not known. */
static const char *broken_fix(unsigned int stop, const struct profile_module *in)
{
	static const char *const fix[UNWIND_NR_STOPS] = {
		[UNWIND_DEPTH] = "none: the innermost 512 frames are kept",
		[UNWIND_NO_MAP] = "none: code was unmapped, or the frame is wrong",
		[UNWIND_CFI_REFUSED] = "C and C++: build it again: its unwind tables are invalid; "
				       "others, as GHC: none",
		[UNWIND_BAD_FRAME] = "none: the stack was switched there (OCaml 5, coroutines), or "
				     "its unwind tables are wrong",
		[UNWIND_BUDGET] = "please report it: its unwind tables need too many reads",
		[UNWIND_BAD_REGS] = "32-bit code: sample that process alone with -g fp",
		[UNWIND_PROBE] = "end the other tool's return probe (uretprobe: bpftrace, perf "
				 "probe): the kernel hides the callers of that function",
		[UNWIND_NO_CALL] = "none: its code has no unwind tables, and moves its stack in an "
				   "unknown way",
		[UNWIND_OUTSIDE] = "run proftop in the PID namespace of the host: docker run "
				   "--pid=host, hostPID: true",
	};

	assert(stop < ARRAY_SIZE(fix));
	/* Not of a file: nobody can build it again. */
	if (stop == UNWIND_NO_CFI && in && in->name.str[0] == '[')
		return "none: code generated at run time has no tables; its callers are unknown";
	if (stop == UNWIND_NO_CFI && !in)
		return "C and C++: build it with -fasynchronous-unwind-tables; code generated at "
		       "run time, as by a JIT, has none";
	if (stop == UNWIND_NO_CFI)
		return runtime_fix_in(RUNTIME_NO_CFI, path_of(in));
	return fix[stop] ? fix[stop] : "no fix is known: report it";
}

/* One message per reason, with the module where most of its stacks end. The fixes differ. */
static void note_broken(struct messages *n, const struct profile *p)
{
	const struct profile_account *w = &n->window;
	bool loud = w->taken >= MESSAGES_TAKEN_MIN &&
		    (double)w->broken > BROKEN_LOUD * (double)w->taken;

	for (unsigned int i = 0; i < UNWIND_NR_STOPS; i++) {
		const struct profile_module *in = module_of(p, p->broken_in[i]);
		struct profile_message *e;
		char key[24];

		if (!p->broken_by[i])
			continue;
		snprintf(key, sizeof(key), "broken-%u", i);
		/* A rare reason is not the cause. */
		e = messages_note(n, key,
				  loud && 4 * p->broken_by[i] >= p->account.broken ? MESSAGE_WARN
										   : MESSAGE_INFO,
				  p->broken_by[i],
				  in ? "broken stacks: %s in %.20s" : "broken stacks: %s",
				  profile_broken_name(i), in ? in->name.str : "");
		if (in) {
			messages_detail(e, "broken stacks: %s, most in %s", profile_broken_name(i),
					in->name.str);
			e->module = in->id + 1;
		}
		messages_fix(n, e, MESSAGE_MODULES, 0, "%s", broken_fix(i, in));
	}
}

/* Name the code from which callers are guessed. */
static void explain_guessed(struct messages *n, struct profile_message *e, const struct profile *p)
{
	const struct profile_module *in = module_of(p, p->guessed_in);

	if (p->guessed_in == OBJECT_ID_KERNEL) {
		messages_detail(e, "stacks with guessed frames: most behind a return probe of "
				   "another tool");
		messages_fix(n, e, MESSAGE_MODULES, 0,
			     "end it (uretprobe: bpftrace, perf probe): callers of that function "
			     "are found by their calls");
		return;
	}
	if (p->guessed_in_jit) {
		messages_detail(e, "stacks with guessed frames: most callers of code generated at "
				   "run "
				   "time");
		messages_fix(n, e, MESSAGE_MODULES, 0,
			     "none: it has no unwind tables, so that frame pointers are followed");
		return;
	}
	if (in) {
		messages_detail(e,
				"stacks with guessed frames: most callers of %s, which has no "
				"unwind tables there",
				in->name.str);
		e->module = in->id + 1;
	} else {
		messages_detail(e, "stacks with guessed frames: code without unwind tables");
	}
	messages_fix(n, e, MESSAGE_MODULES, 0, "%s",
		     in ? runtime_fix_in(RUNTIME_NO_CFI, path_of(in))
			: "C and C++: build it with -fasynchronous-unwind-tables or "
			  "-fno-omit-frame-pointer");
}

static void messages_stacks_note_guessed(struct messages *n, const struct profile *p)
{
	const struct profile_account *w = &n->window;
	bool loud = w->taken >= MESSAGES_TAKEN_MIN &&
		    (double)w->guessed > GUESSED_LOUD * (double)w->taken;
	bool fp = p->call_graph == CALL_GRAPH_FP || p->call_graph == CALL_GRAPH_DEFER;
	struct profile_message *e;

	if (!p->account.guessed)
		return;
	e = messages_note(n, "guessed", loud ? MESSAGE_WARN : MESSAGE_INFO, p->account.guessed,
			  fp ? "stacks by frame pointers: callers may be wrong"
			     : "stacks with guessed frames");
	if (fp) {
		messages_detail(e, "stacks by frame pointers: callers may be missing or wrong");
		messages_fix(n, e, MESSAGE_CALL_GRAPH, CALL_GRAPH_DWARF, "%s",
			     n->recorded ? "record copies of the stack (--call-graph=dwarf)"
					 : "use DWARF unwinding: exact, more overhead");
		return;
	}
	if (2 * p->lang.guessed > p->account.guessed) {
		messages_explain_guess(n, p, e, "stacks with guessed frames: most of");
		return;
	}
	explain_guessed(n, e, p);
}

static void note_pending(struct messages *n, const struct profile *p)
{
	const struct profile_account *w = &n->window;
	bool loud = w->taken >= MESSAGES_TAKEN_MIN && n->now_ns > START_NS &&
		    (double)w->pending > PENDING_LOUD * (double)w->taken;
	struct profile_message *e;

	if (!p->account.pending)
		return;
	e = messages_note(n, "pending", loud ? MESSAGE_WARN : MESSAGE_INFO, p->account.pending,
			  "stacks pending: symbols still loading");
	messages_detail(e, "stacks pending: their process or object is not read yet");
	messages_fix(n, e, MESSAGE_MODULES, 0, "none needed: symbols are still loading");
}

static const char *drop_fix(enum profile_drop reason)
{
	switch (reason) {
	case DROP_STACKS_FULL:
	case DROP_CELLS_FULL:
		return "count from zero with empty tables; or lower the rate (-F)";
	case DROP_PLACES_FULL:
		return "restart proftop: addresses of code are kept for the whole session";
	case DROP_EVENT_LIMIT:
		return "the 8 events with most samples are shown; perf report shows all";
	case DROP_UNKNOWN_EVENT:
		return "end the other profiler: the kernel confuses the ids of its software "
		       "events with ours";
	default:
		return "a bug in proftop or the kernel: please report it";
	}
}

static void note_dropped(struct messages *n, const struct profile *p)
{
	for (int i = 0; i < DROP_NR; i++) {
		bool full = i == DROP_STACKS_FULL || i == DROP_CELLS_FULL;
		struct profile_message *e;
		char key[24];

		/* A change of events is no trouble. */
		if (!p->dropped_by[i] || i == DROP_EVENT_GONE)
			continue;
		snprintf(key, sizeof(key), "dropped-%d", i);
		e = messages_note(n, key, MESSAGE_GRAVE, p->dropped_by[i], "samples dropped: %s",
				  profile_drop_name((enum profile_drop)i));
		messages_fix(n, e, full ? MESSAGE_RESET : MESSAGE_NONE, 0, "%s",
			     drop_fix((enum profile_drop)i));
		e->keys = full ? MESSAGE_KEY_RATE : 0;
	}
}

static void note_nameless(struct messages *n, const struct profile *p)
{
	struct profile_message *e;

	if (!p->nr_nameless)
		return;
	e = messages_note(n, "nameless", MESSAGE_WARN, p->nr_nameless, "task table full");
	messages_detail(e, "task table full: samples of new processes and threads are counted as "
			   "[unknown]");
	messages_fix(n, e, MESSAGE_RESET, 0,
		     "count from zero with empty tables; or sample fewer processes (-p)");
	e->keys = MESSAGE_KEY_PICK;
}

/* Note names, programs and mappings that are not kept: processes changed them too often. */
static void note_not_kept(struct messages *n, const struct profile *p)
{
	const struct {
		const char *key;
		uint64_t nr; /* goes before the texts */
		const char *brief, *detail, *fix;
	} kinds[] = {
		{ "renames", p->nr_names_dropped, "thread names dropped: renamed too often",
		  "thread names dropped: renamed too often; samples show the name before or after",
		  "none needed: the process and its PID are certain" },
		{ "programs", p->nr_programs_dropped, "programs dropped: executed too often",
		  "programs dropped: one process executed too many; late samples are named by the "
		  "next one",
		  "none needed: the PID is certain" },
		{ "children", p->nr_forks_shared,
		  "children share older mappings: too many mappings",
		  "children share older mappings, which their parents had a moment before: "
		  "mappings of all processes take 256 MiB",
		  "none needed: a sample in other code has its process read again" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct profile_message *e;

		if (!kinds[i].nr)
			continue;
		e = messages_note(n, kinds[i].key, MESSAGE_INFO, kinds[i].nr, "%" PRIu64 " %s",
				  kinds[i].nr, kinds[i].brief);
		messages_detail(e, "%" PRIu64 " %s", kinds[i].nr, kinds[i].detail);
		messages_fix(n, e, MESSAGE_NONE, 0, "%s", kinds[i].fix);
		e->keys = MESSAGE_KEY_PROCESSES;
	}
}

/*
 * Note samples without a stack: rare ones of a long window, old ones of which new tables have no
 * stack, and samples of a folder of --keep with a damaged stack.
 */
static void note_no_stack(struct messages *n, const struct profile *p)
{
	double all = p->window_samples, none = p->window_no_stack;
	struct profile_message *e;
	char buf[16];

	if (!(none > 0) || all < MESSAGES_TAKEN_MIN)
		return;
	e = messages_note(n, "no-stack", none > NAMES_LOUD * all ? MESSAGE_WARN : MESSAGE_INFO, 0,
			  "%s of samples have no stack", messages_share(buf, none / all));
	e->count = (uint64_t)none;
	messages_detail(e, "%s of samples have no stack (%s): they count for their process only",
			buf,
			p->window == PROFILE_WINDOW ? "damaged, or the stack table is full"
						    : "rare ones of a long time");
	messages_fix(n, e, MESSAGE_NONE, 0, "none: the shares of processes have them");
	e->keys = MESSAGE_KEY_PROCESSES;
}

/* Return the module with most samples without a name; NULL: none has a fix. */
static const struct profile_module *most_unnamed(const struct profile *p)
{
	const struct profile_module *m = NULL;

	for (uint32_t i = 0; i < p->nr_modules; i++)
		if (p->modules[i].unnamed > (m ? m->unnamed : 0))
			m = &p->modules[i];
	return m && *m->reason && *m->fix ? m : NULL;
}

/* Note code without names, once most places were looked up. */
static void note_names(struct messages *n, const struct profile *p)
{
	double all = p->window_samples, unnamed = p->window_unnamed;
	const struct profile_module *m = most_unnamed(p);
	struct profile_message *e;
	char buf[16];

	if (!(unnamed > 0) || all < MESSAGES_TAKEN_MIN || 20 * p->nr_places_waiting > p->nr_places)
		return;
	e = messages_note(n, "names", unnamed > NAMES_LOUD * all ? MESSAGE_WARN : MESSAGE_INFO, 0,
			  "%s of samples have no symbol", messages_share(buf, unnamed / all));
	e->count = p->nr_places - p->nr_places_named - p->nr_places_waiting;
	if (m)
		messages_detail(e, "%s of samples have no symbol, most in %s: %s", buf, m->name.str,
				m->reason);
	messages_fix(n, e, MESSAGE_MODULES, 0, "%s",
		     m ? m->fix : "each module has a reason, and a fix of its symbols");
}

/* Note files that differ from the recorded ones: their names would be wrong. */
static void note_replaced(struct messages *n, const struct profile *p)
{
	const struct profile_module *first = NULL;
	struct profile_message *e;
	uint64_t nr = 0;

	for (uint32_t i = 0; i < p->nr_modules; i++) {
		if (strcmp(p->modules[i].reason, OBJECT_REPLACED) != 0)
			continue;
		first = first ? first : &p->modules[i];
		nr++;
	}
	if (!nr)
		return;
	e = messages_note(n, "replaced", MESSAGE_WARN, nr, "files differ from the recorded ones");
	messages_detail(e,
			nr > 1 ? "%s and others differ from the recorded files"
			       : "%s differs from the recorded file",
			first->name.str);
	messages_fix(n, e, MESSAGE_MODULES, 0, "give the recorded files with --symfs");
}

/* Note debug information that is there and not read: lines and inlined functions are missing. */
static void note_debug(struct messages *n, const struct profile *p)
{
	static const size_t length = sizeof(OBJECT_DEBUG_NOT_READ) - 1;
	const struct profile_module *most = NULL;
	struct profile_message *e;
	uint64_t nr = 0;

	for (uint32_t i = 0; i < p->nr_modules; i++) {
		const struct profile_module *m = &p->modules[i];

		if (!m->debug || strncmp(m->debug, OBJECT_DEBUG_NOT_READ, length) != 0)
			continue;
		most = !most || m->self > most->self ? m : most;
		nr++;
	}
	if (!nr)
		return;
	e = messages_note(n, "debug",
			  most->self > DEBUG_LOUD * p->window_samples ? MESSAGE_WARN : MESSAGE_INFO,
			  nr, "debug information not read, of %s", most->name.str);
	messages_detail(e, "no inlined functions and lines of %s: debug information: %s",
			most->name.str, most->debug + length);
	messages_fix(n, e, MESSAGE_MODULES, 0, "each module has the reason");
}

static void messages_stacks(struct messages *n, const struct profile *p)
{
	note_truncated(n, p);
	note_gaps(n, p);
	note_broken(n, p);
	messages_stacks_note_guessed(n, p);
	note_pending(n, p);
	note_dropped(n, p);
	note_nameless(n, p);
	note_not_kept(n, p);
	note_no_stack(n, p);
	note_names(n, p);
	note_replaced(n, p);
	note_debug(n, p);
}

/*
 * Messages about the session and proftop itself; all rules in order.
 *
 * Runs on: the builder, once a profile. One rule a function; a message that no rule notes this
 * time is no longer active, but kept in the list.
 */

#define SELF_LOUD_PCT 10.0
#define SELF_LOUD_KB  (1u << 20)

static void note_cost(struct messages *n, const struct profile *p)
{
	struct profile_message *e;

	if (p->self.cpu_pct > SELF_LOUD_PCT)
		messages_kernel_fix_rate(n, p,
					 messages_note(n, "own-cpu", MESSAGE_INFO, 1,
						       "proftop uses %.0f%% of a CPU",
						       p->self.cpu_pct),
					 "; or -g fp, or --max-overhead=3");
	if (p->self.rss_kb > SELF_LOUD_KB) {
		e = messages_note(n, "own-memory", MESSAGE_INFO, messages_begins(n, "own-memory"),
				  "proftop uses %llu MiB of memory",
				  (unsigned long long)p->self.rss_kb >> 10);
		messages_fix(n, e, MESSAGE_RESET, 0, "count from zero with empty tables");
	}
}

/* The strip shows longer moments from then on. A recording is merged from its start on. */
static void note_past(struct messages *n, const struct profile *p)
{
	struct profile_message *e;

	if (!p->past_merged)
		return;
	e = messages_note(n, "history-memory", MESSAGE_INFO, messages_begins(n, "history-memory"),
			  "moments of the older past are longer");
	messages_detail(e, "moments of the older past are longer than 50 ms: their memory is "
			   "full");
	messages_fix(n, e, MESSAGE_NONE, 0,
		     "start with a larger --history-memory; or a lower rate, or a shorter "
		     "--history");
}

static void note_governor(struct messages *n, const struct profile *p)
{
	struct profile_message *e;

	if (!(p->rate_factor > 0 && p->rate_factor < 1) || p->rate_climbs)
		return;
	e = messages_note(n, "governor", MESSAGE_INFO, messages_begins(n, "governor"),
			  "rate lowered to %.0f%%", 100 * p->rate_factor);
	if (p->rate_capped)
		messages_detail(e,
				"rate lowered to %.0f%% of the requested one: with more, proftop "
				"uses over %d%% of all CPUs",
				100 * p->rate_factor, GOVERNOR_CAP_PCT);
	else
		messages_detail(e, "rate lowered to %.0f%% of the requested one",
				100 * p->rate_factor);
	messages_fix(n, e, MESSAGE_NONE, 0,
		     p->rate_capped ? "none needed: the rate rises again when they cost less; "
				      "-g fp costs less; --max-overhead sets another limit"
		     : p->rate_ceiling < 1 ? "none needed: interrupts of a higher rate stall this "
					     "machine; set it again to try"
					   : "none needed: the rate rises again when the load "
					     "falls "
					     "(--max-overhead); -g fp costs less");
	e->keys = !p->rate_capped && p->rate_ceiling < 1 ? MESSAGE_KEY_FREQUENCY : 0;
}

/* One line instead of all that follows from it: late, pending and nameless samples, a low rate. */
static void note_starved(struct messages *n, const struct profile *p)
{
	static const char *const consequences[] = { "lag",	"pending", "own-cpu",  "ring-full",
						    "governor", "names",   "broken-5", "rate-" };
	double hz = 0, asked;
	struct profile_message *e;

	if (!p->starved)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(consequences); i++)
		messages_silence(n, consequences[i]);
	for (uint32_t i = 0; i < p->nr_events; i++)
		hz = MAX(hz, p->events[i].want_hz);
	asked = p->rate_factor > 0 ? hz / p->rate_factor : hz;
	e = messages_note(n, "starved", MESSAGE_WARN, messages_begins(n, "starved"),
			  "too little CPU time to read symbols");
	if (hz < asked)
		messages_detail(e,
				"proftop gets too little CPU time to read symbols: sampling at "
				"%.0f of %.0f Hz until it has read them",
				hz, asked);
	messages_kernel_fix_rate(n, p, e,
				 "; or wait: the rate is lowered and raised automatically");
}

static void note_refused(struct messages *n, const struct profile *p)
{
	const char *why = p->refused_code == -EINTR ? "it hangs in an exec"
			  : p->refused_code == -EACCES || p->refused_code == -EPERM ? "not "
										      "permitted"
										    : "too many "
										      "open files";
	struct profile_message *e;
	char others[48] = "";

	if (!p->nr_refused)
		return;
	if (p->nr_refused > 1)
		snprintf(others, sizeof(others), " and %u other%s", p->nr_refused - 1,
			 p->nr_refused > 2 ? "s" : "");
	e = messages_note(n, "refused", MESSAGE_WARN, 0, "TID %d%s %s not sampled: %s",
			  (int)p->refused, others, *others ? "are" : "is", why);
	e->count = p->nr_refused;
	if (p->refused_code == -EINTR)
		messages_fix(n, e, MESSAGE_NONE, 0,
			     "none is needed: it is sampled when the exec has ended");
	else if (p->refused_code == -EACCES || p->refused_code == -EPERM)
		messages_fix(n, e, MESSAGE_NONE, 0,
			     "it is of another user, or has changed its rights: run proftop as "
			     "root, or with the capabilities that 'proftop --check' names");
	else
		messages_fix(n, e, MESSAGE_EVENTS, 0,
			     "choose fewer events: they need fewer files; or raise 'ulimit -n'");
}

static void note_sleepers(struct messages *n, const struct profile *p)
{
	struct profile_message *e;

	if (!p->waits.hung)
		return;
	e = messages_note(n, "asleep", MESSAGE_WARN, messages_begins(n, "asleep"),
			  "reading sleeping tasks hangs: no stacks or kinds of waits");
	messages_detail(e,
			"reading sleeping tasks hangs, at last in process %d: until fewer do, they "
			"have no stacks or kinds of waits",
			p->waits.hung);
	messages_fix(n, e, MESSAGE_NONE, 0,
		     "end process %d or the server of its memory, or sample other processes",
		     p->waits.hung);
}

/* The unwinder was wrong: this must never be silent. */
static void note_unwinder(struct messages *n, const struct profile *p)
{
	struct profile_message *e;

	if (!p->unwind.verify_differ)
		return;
	e = messages_note(n, "verify", MESSAGE_GRAVE, 0, "stacks differ from libunwind's");
	messages_detail(e, "stacks differ from the stacks that libunwind alone finds");
	e->count = p->unwind.verify_differ;
	messages_fix(n, e, MESSAGE_NONE, 0,
		     "a bug in proftop: please report it (--unwinder=step avoids it)");
}

/* Note the last match of a trap, and how many there were, until the traps are removed. */
static void note_trap(struct messages *n, const struct profile *p)
{
	const struct profile_trap *t = &p->trap;
	struct profile_message *e;

	if (t->nr == n->nr_trapped)
		return;
	n->nr_trapped = t->nr;
	if (!t->nr) {
		messages_remove(n, "trap");
		return;
	}
	e = messages_note(n, "trap", MESSAGE_INFO, 0, "trap at %s", t->at);
	if (t->nr > 1)
		messages_detail(e, "trap at %s: %s, the last of %u matches", t->at, t->what, t->nr);
	else
		messages_detail(e, "trap at %s: %s", t->at, t->what);
	e->count = t->nr;
	messages_fix(n, e, MESSAGE_NONE, 0,
		     "none needed: :trap off removes traps and this message");
}

static void note_session(struct messages *n, const struct profile *p)
{
	struct profile_message *e;

	if (p->banner[0]) {
		e = messages_note(n, "banner", MESSAGE_INFO, 0, "sampling is limited");
		messages_detail(e, "%s", p->banner);
		/* It is in every profile: counted when it changes. */
		e->count += strcmp(n->banner, p->banner) != 0;
		memcpy(n->banner, p->banner, sizeof(n->banner));
		messages_fix(n, e, MESSAGE_NONE, 0, "see 'proftop --check' and proftop(1), ACCESS");
	}
	if (n->remark) {
		e = messages_note(n, "remark", MESSAGE_INFO, messages_begins(n, "remark"),
				  "a setting was not used");
		messages_detail(e, "%s", n->remark);
		messages_fix(n, e, MESSAGE_NONE, 0,
			     "correct it and start again; until then defaults are used");
	}
	if (p->target_gone) {
		e = messages_note(n, "gone", MESSAGE_INFO, messages_begins(n, "gone"),
				  "the target has ended");
		messages_detail(e, "the target has ended: %s", p->target);
		messages_fix(n, e, MESSAGE_NONE, 0, "none needed: the last data is kept");
	}
}

void messages_apply(struct messages *n, struct profile *p, uint64_t now_ns, uint64_t window_ns)
{
	messages_begin(n, p, now_ns, window_ns);
	note_session(n, p);
	note_trap(n, p);
	messages_kernel(n, p);
	messages_stacks(n, p);
	messages_languages(n, p);
	if (!n->recorded) {
		note_cost(n, p);
		note_past(n, p);
		note_governor(n, p);
		note_refused(n, p);
		note_sleepers(n, p);
	}
	note_starved(n, p);
	note_unwinder(n, p);
	messages_copy(n, p);
}
