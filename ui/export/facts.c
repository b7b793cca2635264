// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Facts about an export.
 */
#include "ui/export/facts.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

struct list {
	struct fact *facts;
	uint32_t nr;
};

static void add(struct list *l, const char *name, bool bad, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static void add(struct list *l, const char *name, bool bad, const char *fmt, ...)
{
	struct fact *f = &l->facts[l->nr];
	char text[sizeof(f->text)];
	va_list args;

	if (l->nr >= FACTS_MAX)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	f->name = name;
	f->bad = bad;
	text_format(f->text, sizeof(f->text), "%s", text);
	l->nr++;
}

static void add_origin(struct list *l, const struct snapshot *s)
{
	const struct profile *p = s->profile;
	time_t seconds = (time_t)(p->time_ns / 1000000000U);
	struct tm tm = { 0 };
	char when[32] = "unknown";

	if (p->time_ns && gmtime_r(&seconds, &tm))
		strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
	add(l, "made by", false, "proftop %s", PROFTOP_VERSION);
	add(l, "time", false, "%s", when);
	if (s->scope.host[0])
		add(l, "host", false, "%s", s->scope.host);
	add(l, "target", false, "%s%s%s", p->target, s->scope.title[0] ? ", " : "", s->scope.title);
	if (s->scope.only[0])
		add(l, "only", false, "%s", s->scope.only);
	add(l, "span", false, "%s%s%.1f s", s->scope.range, s->scope.range[0] ? ", " : "",
	    (double)p->window_ns / 1e9);
}

static void add_event(struct list *l, const struct snapshot *s)
{
	const struct profile_event *ev = s->event;

	add(l, "event", ev->error[0], "%s%s%s", s->shown_event.str, ev->error[0] ? ": " : "",
	    ev->error);
	if (ev->want_hz > 0 && !isnan(ev->got_hz))
		add(l, "rate", false, "wanted %.0f Hz, got %.1f Hz per busy CPU", ev->want_hz,
		    ev->got_hz);
	else if (ev->want_hz > 0)
		add(l, "rate", false, "wanted %.0f Hz", ev->want_hz);
	if (s->scope.find[0])
		add(l, "filter", false, "%s: %.0f of %.0f samples", s->scope.find, s->count,
		    s->all_count);
	if (s->scope.filter.hide_kernel || s->scope.filter.hide_user)
		add(l, "hidden", false, "%s functions",
		    !s->scope.filter.hide_user	  ? "kernel"
		    : s->scope.filter.hide_kernel ? "kernel and user"
						  : "user");
	add(l, "samples", false, "%.0f shown", s->count);
}

/* Add the account since the start: an export may be longer than a tick. */
static void add_account(struct list *l, const struct snapshot *s)
{
	const struct profile *p = s->profile;
	const struct profile_account *a = &p->account_total;
	uint64_t throttled = p->throttled;

	for (uint32_t i = 0; i < p->nr_cpus; i++)
		throttled += p->cpus[i].throttled_total;
	add(l, "taken", false, "%" PRIu64 " since the start", a->taken);
	if (!a->no_outcomes)
		add(l, "complete", false, "%" PRIu64, a->complete);
	add(l, "guessed", a->guessed, "%" PRIu64, a->guessed);
	add(l, "truncated", a->truncated, "%" PRIu64, a->truncated);
	add(l, "broken", a->broken, "%" PRIu64, a->broken);
	add(l, "pending", a->pending, "%" PRIu64, a->pending);
	add(l, "dropped", a->dropped, "%" PRIu64, a->dropped);
	add(l, "lost", a->lost, "%" PRIu64, a->lost);
	add(l, "throttled", throttled, "%" PRIu64 " times", throttled);
	add(l, "own", false, "%" PRIu64 " samples of proftop, not in the account", a->own);
	if (p->banner[0])
		add(l, "note", true, "%s", p->banner);
}

uint32_t facts_make(const struct snapshot *s, struct fact facts[static FACTS_MAX])
{
	struct list l = { facts, 0 };

	add_origin(&l, s);
	add_event(&l, s);
	add_account(&l, s);
	return l.nr;
}

struct safe_text facts_title(const struct snapshot *s, char buf[static 512])
{
	return text_format(buf, 512, "%s%s%s, %s, %.1f s", s->scope.host,
			   s->scope.host[0] ? ": " : "",
			   s->scope.title[0] ? s->scope.title : s->profile->target,
			   s->shown_event.str, (double)s->profile->window_ns / 1e9);
}
