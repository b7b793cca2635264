// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Profiles of the past and the heat strip. Runs on: the builder.
 */
#include "sampler/tick_past.h"

#include <math.h>
#include <string.h>

#include "sampler/past.h"
#include "sampler/profile/ratios.h"
#include "sampler/replay.h"
#include "sampler/session.h"
#include "sampler/tick_fill.h"
#include "unwind/unwind.h"

static uint64_t nr_named(const struct sampler *s)
{
	struct symbols_stats stats;

	symbols_stats(s->store.symbols, &stats);
	return stats.nr_named;
}

/* Return CLOCK_REALTIME at the end of the last slice; 0: a recording. */
static uint64_t last_real_ns(const struct sampler *s, uint64_t last_ns)
{
	if (s->replay)
		return replay_is_kept(s->replay) ? last_ns : 0;
	return time_real_ns(last_ns);
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
	strip->last_real_ns = last_real_ns(s, strip->last_ns);
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
	p->time_ns = last_real_ns(s, range->end_ns);
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
						       .want_hz = hz	      ? hz[i]
								  : s->replay ? s->rates.hz[i]
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
	p->time_ns = last_real_ns(s, end_ns);
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

void tick_past_renew(struct sampler *s)
{
	tick_past_strip(s, s->replay != NULL);
	if (s->past.nr_named != nr_named(s) ||
	    atomic_load_explicit(&s->annotate.function, memory_order_relaxed) != SYMBOL_NONE)
		tick_past_post(s);
}
