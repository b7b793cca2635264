// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Slices of the history, and the events and incidents that belong to them.
 *
 * Runs on: the builder.
 */
#include "sampler/past.h"

#include <stdlib.h>
#include <string.h>

#include "sampler/config.h"
#include "sampler/count/history.h"
#include "sampler/profile/profile.h"
#include "symbols/base/base.h"

void past_close(struct past *p)
{
	strip_filter_fini(&p->strip);
	free(p->sets);
	*p = (struct past){ 0 };
}

void past_slots(const struct past *p, const struct event *wanted, uint8_t *slots)
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

void past_restart(struct past *p, struct history *h, const struct sampler_config *config,
		  uint64_t now_ns)
{
	history_restart(h);
	past_use_events(p, h, config);
	history_begin(h, now_ns);
}

void past_note(struct history *h, const struct profile *p)
{
	uint64_t throttled = 0;
	unsigned int marks;

	for (uint32_t i = 0; i < p->nr_cpus; i++)
		throttled += p->cpus[i].throttled;
	marks = (p->account.lost ? SLICE_LOST : 0) | (throttled ? SLICE_THROTTLED : 0);
	history_note(h, marks, p->account.lost, throttled);
}
