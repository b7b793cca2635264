// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The profile of a recording. Runs on: the builder.
 */
#include "sampler/tick_replay.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sampler/pipeline/hottest.h"
#include "sampler/profile/messages_session.h"
#include "sampler/profile/ratios.h"
#include "sampler/replay.h"
#include "sampler/session.h"
#include "sampler/tick_fill.h"
#include "sampler/tick_past.h"
#include "sampler/trapping.h"

static void fill_replay_cpus(const struct sampler *s, struct profile *p,
			     const struct replay_result *r, struct tick_sums *sums)
{
	p->pressure = (struct procstat_pressure){ NAN, NAN, NAN };
	/* Slices are of all CPUs together. */
	if (replay_is_kept(s->replay)) {
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
		hottest_fill(&p->cpus[i], &from->samples, s->store.places);
		sums->lost += p->cpus[i].lost;
		pipeline_add_stats(&sums->all, &from->samples);
	}
}

/* Name the machine of a stream, and how late its samples are shown. */
static void describe_stream(const struct sampler *s, struct profile *p)
{
	const char *host = replay_host(s->replay);
	char late[32] = "";

	if (!s->config.follow)
		return;
	if (!s->target.gone)
		snprintf(late, sizeof(late), ", %.1f s late",
			 (double)replay_delay_ns(s->replay) / 1e9);
	text_format(p->target, sizeof(p->target), "recording %s%.64s%s", *host ? "of " : "",
		    *host ? host : s->config.replay, late);
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
	describe_stream(s, p);
	p->time_ns = replay_date_ns(s->replay);
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
