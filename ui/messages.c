// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Everything that went wrong since the start. The main thread.
 *
 * A full table drops what is new: the kinds are few, only events and CPUs
 * could be many, and the first ones tell enough.
 */
#include "ui/messages.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A share of the tick's samples from which on a kind of stack is worth a message. */
#define SHARE_LOUD 0.05
/* Below, too few samples to tell a share. */
#define TAKEN_MIN 50

static struct message *entry_of(struct messages *m, const char *key)
{
	for (uint32_t i = 0; i < m->nr; i++)
		if (!strcmp(m->items[i].key, key))
			return &m->items[i];
	if (m->nr == MESSAGES_MAX)
		return NULL;
	snprintf(m->items[m->nr].key, sizeof(m->items[0].key), "%s", key);
	return &m->items[m->nr++];
}

__attribute__((format(printf, 6, 7))) static struct message *
note(struct messages *m, const struct profile *p, const char *key, uint64_t count,
     const char *cure, const char *fmt, ...)
{
	struct message *e = entry_of(m, key);
	char text[sizeof(e->text)];
	va_list ap;

	if (!e)
		return NULL;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	text_sanitise(e->text, sizeof(e->text), text, strlen(text));
	if (!e->count)
		e->first_ns = p->running_ns;
	e->count += count;
	e->last_ns = p->running_ns;
	e->cure = cure;
	return e;
}

static void note_grave(struct message *e)
{
	if (e)
		e->grave = true;
}

static void note_cpus(struct messages *m, const struct profile *p)
{
	uint64_t throttled_ns = 0, throttled = 0;

	for (uint32_t i = 0; i < p->nr_cpus; i++) {
		throttled += p->cpus[i].throttled;
		throttled_ns += p->cpus[i].throttled_ns;
	}
	if (p->account.lost)
		note_grave(note(m, p, "lost", p->account.lost,
				"a larger --ring, a lower frequency (f), or a smaller --stack-size",
				"samples lost: the kernel had no room in the ring"));
	if (throttled)
		note_grave(note(m, p, "throttled", throttled,
				"a lower frequency (f): the kernel pauses an event that interrupts "
				"too often",
				"an event was throttled, %.0f ms in the last tick",
				(double)throttled_ns / 1e6));
}

static void note_stacks(struct messages *m, const struct profile *p)
{
	const struct profile_account *a = &p->account;
	double loud = SHARE_LOUD * (double)a->taken;

	for (int i = 0; i < DROP_NR; i++) {
		char key[24];

		if (!p->dropped_by[i])
			continue;
		snprintf(key, sizeof(key), "dropped-%d", i);
		note_grave(note(m, p, key, p->dropped_by[i],
				"r counts from zero with empty tables",
				"samples dropped by proftop: %s",
				profile_drop_name((enum profile_drop)i)));
	}
	if (a->taken < TAKEN_MIN)
		return;
	if ((double)a->truncated > loud)
		note(m, p, "truncated", a->truncated, "a larger --stack-size (up to 64K)",
		     "stacks longer than what was copied of them: their callers are missing");
	if ((double)a->broken > loud)
		note(m, p, "broken", a->broken, "the CPUs view (5) tells the reasons",
		     "stacks that end early: totals of their callers are too low");
	if ((double)a->guessed > loud * 5)
		note(m, p, "guessed", a->guessed,
		     "code without unwind tables: build it with -fasynchronous-unwind-tables or "
		     "-fno-omit-frame-pointer",
		     "stacks with guessed frames");
}

static void note_events(struct messages *m, const struct profile *p)
{
	for (uint32_t i = 0; i < p->nr_events; i++) {
		const struct profile_event *ev = &p->events[i];
		char key[24];

		if (ev->error[0]) {
			snprintf(key, sizeof(key), "event-%.16s", ev->event.name);
			note_grave(note(m, p, key, 1, "e picks an event that can be used here",
					"%s does not sample: %s", ev->event.name, ev->error));
		} else if (p->sampling && ev->enabled && ev->want_hz > 0 &&
			   ev->got_hz < ev->want_hz * 0.8 && p->account.taken >= TAKEN_MIN) {
			snprintf(key, sizeof(key), "rate-%.16s", ev->event.name);
			note(m, p, key, 1, "a lower frequency (f) that can be kept",
			     "%s: %.0f Hz wanted, %.0f got", ev->event.name, ev->want_hz,
			     ev->got_hz);
		}
	}
}

/* The unwinder found itself wrong: the one fault that must never be quiet. */
static void note_unwinder(struct messages *m, const struct profile *p)
{
	struct message *e;

	if (!p->unwind.verify_differ)
		return;
	e = note(m, p, "verify", 0, "a fault of proftop: please report it (--unwinder=step avoids it)",
		 "stacks that libunwind alone unwinds differently");
	if (!e)
		return;
	e->count = p->unwind.verify_differ;
	e->grave = true;
}

void messages_note(struct messages *m, const struct profile *p)
{
	if (p->banner[0]) {
		/* It stays in every profile: count it when it changes. */
		bool same = !strcmp(m->banner, p->banner);

		snprintf(m->banner, sizeof(m->banner), "%s", p->banner);
		note(m, p, "banner", !same, "see proftop(1), ACCESS", "%s", p->banner);
	}
	note_cpus(m, p);
	note_stacks(m, p);
	note_events(m, p);
	note_unwinder(m, p);
	if (p->target_gone && strcmp(p->target, "")) {
		struct message *e = note(m, p, "gone", 0, "the last data stays on the screen",
					 "the target has ended: %s", p->target);

		if (e)
			e->count = 1;
	}
}
