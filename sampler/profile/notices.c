// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The ledger's items that are not zero, as sentences with cures.
 *
 * Runs on: the builder, once a profile. One rule a function, here and in
 * notices_kernel.c and notices_stacks.c; what a rule does not note this time is
 * no longer active, but stays in the list.
 */
#include "sampler/profile/notices.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/profile/notices_private.h"

#define SELF_LOUD_PCT 10.0
#define SELF_LOUD_KB  (1u << 20)

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

/* Where the table is full, in an entry that is thrown away. */
struct profile_notice *notices_note(struct notices *n, const char *key,
				    enum notice_severity severity, uint64_t count, const char *fmt,
				    ...)
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
	e->fix[0] = '\0';
	return e;
}

uint64_t notices_begins(const struct notices *n, const char *key)
{
	for (uint32_t i = 0; i < n->nr; i++)
		if (!strcmp(n->items[i].key, key))
			return n->items[i].last_ns != n->before_ns;
	return 1;
}

void notices_fix(struct notices *n, struct profile_notice *e, enum notice_control control,
		 double value, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	clean(e->fix, sizeof(e->fix), fmt, ap);
	va_end(ap);
	e->control = n->recorded && control != NOTICE_MODULES && control != NOTICE_CPUS
			     ? NOTICE_NONE
			     : control;
	e->value = value;
}

static void note_self(struct notices *n, const struct profile *p)
{
	struct profile_notice *e;

	if (n->recorded)
		return;
	if (p->self.cpu_pct > SELF_LOUD_PCT)
		notices_fix_rate(n, p,
				 notices_note(n, "own-cpu", NOTICE_INFO, 1,
					      "proftop itself takes %.0f%% of a CPU",
					      p->self.cpu_pct),
				 "; -g fp is cheaper; --max-overhead=3 keeps it down by itself");
	if (p->self.rss_kb > SELF_LOUD_KB) {
		e = notices_note(n, "own-memory", NOTICE_INFO, notices_begins(n, "own-memory"),
				 "proftop itself takes %llu MiB of memory",
				 (unsigned long long)p->self.rss_kb >> 10);
		notices_fix(n, e, NOTICE_RESET, 0, "count from zero with empty tables");
	}
	if (p->rate_factor > 0 && p->rate_factor < 1) {
		e = notices_note(n, "governor", NOTICE_INFO, notices_begins(n, "governor"),
				 "the rate is held at %.0f%% of what was asked for",
				 100 * p->rate_factor);
		notices_fix(n, e, NOTICE_NONE, 0,
			    p->rate_ceiling < 1 ? "none needed: more stalled this machine; F8 "
						  "tries it again"
						: "none needed: it rises again when it is calm "
						  "(--max-overhead); -g fp costs less");
	}
	if (p->nr_refused) {
		e = notices_note(n, "refused", NOTICE_WARN, 0,
				 "%u tasks of the target are not sampled: gone, forbidden, or too "
				 "many open files",
				 p->nr_refused);
		e->count = p->nr_refused;
		notices_fix(n, e, NOTICE_EVENTS, 0,
			    "pick fewer events: they need fewer files; "
			    "or raise 'ulimit -n'; or more rights: proftop --check");
	}
}

/* The unwinder found itself wrong: the one fault that must never be quiet. */
static void note_unwinder(struct notices *n, const struct profile *p)
{
	struct profile_notice *e;

	if (!p->unwind.verify_differ)
		return;
	e = notices_note(n, "verify", NOTICE_GRAVE, 0,
			 "stacks that libunwind alone unwinds differently");
	e->count = p->unwind.verify_differ;
	notices_fix(n, e, NOTICE_NONE, 0,
		    "a fault of proftop: please report it (--unwinder=step avoids it)");
}

static void note_session(struct notices *n, const struct profile *p)
{
	struct profile_notice *e;

	if (p->banner[0]) {
		e = notices_note(n, "banner", NOTICE_INFO, 0, "%s", p->banner);
		/* It stays in every profile: counted when it changes. */
		e->count += strcmp(n->banner, p->banner) != 0;
		memcpy(n->banner, p->banner, sizeof(n->banner));
		notices_fix(n, e, NOTICE_NONE, 0,
			    "'proftop --check' tells what would help; proftop(1), ACCESS");
	}
	if (n->remark) {
		e = notices_note(n, "remark", NOTICE_INFO, notices_begins(n, "remark"), "%s",
				 n->remark);
		notices_fix(n, e, NOTICE_NONE, 0,
			    "start again once it is put right; until then all is as by default");
	}
	if (p->target_gone) {
		e = notices_note(n, "gone", NOTICE_INFO, notices_begins(n, "gone"),
				 "the target has ended: %s", p->target);
		notices_fix(n, e, NOTICE_NONE, 0, "none needed: the last data stays");
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
	return n->window.taken < NOTICES_TAKEN_MIN
		       ? -1
		       : (double)n->window.truncated / (double)n->window.taken;
}

void notices_update(struct notices *n, struct profile *p, uint64_t now_ns, uint64_t window_ns)
{
	n->before_ns = n->now_ns;
	n->now_ns = now_ns;
	for (uint32_t i = 0; i < n->nr; i++)
		n->items[i].active = false;
	slide(n, p, window_ns);
	note_session(n, p);
	notices_kernel(n, p);
	notices_stacks(n, p);
	note_self(n, p);
	note_unwinder(n, p);
	p->nr_notices = n->nr;
	p->notices = xcalloc(n->nr, sizeof(*p->notices));
	memcpy(p->notices, n->items, n->nr * sizeof(*p->notices));
}
