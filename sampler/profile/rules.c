// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Notices about the session and proftop itself; all rules in order.
 *
 * Runs on: the builder, once a profile. One rule a function, here and in rules_kernel.c,
 * rules_stacks.c and rules_languages.c; a notice that no rule notes this time is no longer active,
 * but kept in the list.
 */
#include "sampler/profile/rules.h"

#include <string.h>

#include "sampler/profile/rules_kernel.h"
#include "sampler/profile/rules_languages.h"
#include "sampler/profile/rules_stacks.h"

#define SELF_LOUD_PCT 10.0
#define SELF_LOUD_KB  (1u << 20)

static void note_cost(struct notices *n, const struct profile *p)
{
	struct profile_notice *e;

	if (p->self.cpu_pct > SELF_LOUD_PCT)
		rules_kernel_fix_rate(n, p,
				      notices_note(n, "own-cpu", NOTICE_INFO, 1,
						   "proftop uses %.0f%% of a CPU", p->self.cpu_pct),
				      "; or -g fp, or --max-overhead=3");
	if (p->self.rss_kb > SELF_LOUD_KB) {
		e = notices_note(n, "own-memory", NOTICE_INFO, notices_begins(n, "own-memory"),
				 "proftop uses %llu MiB of memory",
				 (unsigned long long)p->self.rss_kb >> 10);
		notices_fix(n, e, NOTICE_RESET, 0, "count from zero with empty tables");
	}
}

static void note_governor(struct notices *n, const struct profile *p)
{
	struct profile_notice *e;

	if (!(p->rate_factor > 0 && p->rate_factor < 1))
		return;
	e = notices_note(n, "governor", NOTICE_INFO, notices_begins(n, "governor"),
			 "rate lowered to %.0f%%", 100 * p->rate_factor);
	notices_detail(e, "rate lowered to %.0f%% of the requested one", 100 * p->rate_factor);
	notices_fix(n, e, NOTICE_NONE, 0,
		    p->rate_ceiling < 1 ? "none needed: a higher rate stalled this machine; F8 "
					  "tries it again"
					: "none needed: the rate rises again when the load falls "
					  "(--max-overhead); -g fp costs less");
}

/* One line instead of all that follows from it: late, pending and nameless samples, a low rate. */
static void note_starved(struct notices *n, const struct profile *p)
{
	static const char *const consequences[] = { "lag",	"pending", "own-cpu",  "ring-full",
						    "governor", "names",   "broken-5", "rate-" };
	double hz = 0, asked;
	struct profile_notice *e;

	if (!p->starved)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(consequences); i++)
		notices_silence(n, consequences[i]);
	for (uint32_t i = 0; i < p->nr_events; i++)
		hz = MAX(hz, p->events[i].want_hz);
	asked = p->rate_factor > 0 ? hz / p->rate_factor : hz;
	e = notices_note(n, "starved", NOTICE_WARN, notices_begins(n, "starved"),
			 "too little CPU time: %.0f of %.0f Hz", hz, asked);
	notices_detail(e,
		       "proftop gets too little CPU time to read symbols: sampling at %.0f of "
		       "%.0f Hz until it has read them",
		       hz, asked);
	rules_kernel_fix_rate(n, p, e, "; or wait: the rate is lowered and raised automatically");
}

static void note_refused(struct notices *n, const struct profile *p)
{
	struct profile_notice *e;

	if (!p->nr_refused)
		return;
	e = notices_note(n, "refused", NOTICE_WARN, 0, "%u tasks are not sampled", p->nr_refused);
	notices_detail(e,
		       "%u tasks of the target are not sampled: ended, not permitted, or too many "
		       "open files",
		       p->nr_refused);
	e->count = p->nr_refused;
	notices_fix(n, e, NOTICE_EVENTS, 0,
		    "choose fewer events: they need fewer files; or raise 'ulimit -n'; "
		    "'proftop --check' shows missing rights");
}

/* The unwinder was wrong: this must never be silent. */
static void note_unwinder(struct notices *n, const struct profile *p)
{
	struct profile_notice *e;

	if (!p->unwind.verify_differ)
		return;
	e = notices_note(n, "verify", NOTICE_GRAVE, 0, "stacks differ from libunwind's");
	notices_detail(e, "stacks differ from the stacks that libunwind alone finds");
	e->count = p->unwind.verify_differ;
	notices_fix(n, e, NOTICE_NONE, 0,
		    "a bug in proftop: please report it (--unwinder=step avoids it)");
}

static void note_session(struct notices *n, const struct profile *p)
{
	struct profile_notice *e;

	if (p->banner[0]) {
		e = notices_note(n, "banner", NOTICE_INFO, 0, "sampling is limited");
		notices_detail(e, "%s", p->banner);
		/* It is in every profile: counted when it changes. */
		e->count += strcmp(n->banner, p->banner) != 0;
		memcpy(n->banner, p->banner, sizeof(n->banner));
		notices_fix(n, e, NOTICE_NONE, 0, "see 'proftop --check' and proftop(1), ACCESS");
	}
	if (n->remark) {
		e = notices_note(n, "remark", NOTICE_INFO, notices_begins(n, "remark"),
				 "a setting was not used");
		notices_detail(e, "%s", n->remark);
		notices_fix(n, e, NOTICE_NONE, 0,
			    "correct it and start again; until then defaults are used");
	}
	if (p->target_gone) {
		e = notices_note(n, "gone", NOTICE_INFO, notices_begins(n, "gone"),
				 "the target has ended");
		notices_detail(e, "the target has ended: %s", p->target);
		notices_fix(n, e, NOTICE_NONE, 0, "none needed: the last data is kept");
	}
}

void rules_apply(struct notices *n, struct profile *p, uint64_t now_ns, uint64_t window_ns)
{
	notices_begin(n, p, now_ns, window_ns);
	note_session(n, p);
	rules_kernel(n, p);
	rules_stacks(n, p);
	rules_languages(n, p);
	if (!n->recorded) {
		note_cost(n, p);
		note_governor(n, p);
		note_refused(n, p);
	}
	note_starved(n, p);
	note_unwinder(n, p);
	notices_copy(n, p);
}
