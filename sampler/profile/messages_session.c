// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Messages about the session and proftop itself; all rules in order.
 *
 * Runs on: the builder, once a profile. One rule a function, here and in messages_kernel.c,
 * messages_stacks.c and messages_languages.c; a message that no rule notes this time is no longer
 * active, but kept in the list.
 */
#include "sampler/profile/messages_session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sampler/event/governor.h"
#include "sampler/profile/messages_kernel.h"
#include "sampler/profile/messages_languages.h"
#include "sampler/profile/messages_stacks.h"

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
	messages_detail(e, "moments of the older past are longer than 100 ms: their memory is "
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
