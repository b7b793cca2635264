// SPDX-License-Identifier: GPL-2.0-or-later
/* Samples that the kernel did not deliver. Runs on: the builder. */
#include "sampler/lost.h"

uint64_t lost_since(struct lost *l, uint32_t event, uint64_t now)
{
	uint64_t nr = now > l->seen[event] ? now - l->seen[event] : 0;

	l->seen[event] += nr;
	return nr;
}

void lost_restart(struct lost *l, const uint64_t now[EVENTS_MAX])
{
	*l = (struct lost){ 0 };
	for (int i = 0; i < EVENTS_MAX; i++)
		l->seen[i] = now[i];
}

void lost_add(struct lost *l, struct profile_cpu *cpu, uint64_t nr)
{
	cpu->lost = nr;
	l->total += nr;
	cpu->lost_total = l->total;
}

void lost_add_throttled(struct lost *l, struct sampler_thread *t,
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
