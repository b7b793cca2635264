// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Events of a file as slots of a session.
 */
#include "sampler/replay_events.h"

#include "sampler/event/counters.h"
#include "sampler/hot/hot.h"
#include "sampler/replay_waits.h"
#include "unwind/unwind.h"

/* Return whether the file has records of switches. */
static bool has_switches(const struct perfdata *data, uint32_t nr)
{
	bool switches = false;

	for (uint32_t i = 0; i < nr; i++)
		switches |= perfdata_event(data, i)->switches;
	return switches;
}

/* Return whether the samples of the event are only the wake-ups of waits. */
static bool is_wake_up(const struct replay_events *v, const struct perfdata_event *ev)
{
	bool alone;

	return v->switches && replay_waits_is_waking(ev, &alone) && alone;
}

/* Return whether the event is no more than a part of others. */
static bool is_hidden(const struct replay_events *v, const struct perfdata_event *ev)
{
	return ev->dummy || is_wake_up(v, ev);
}

/* Return whether event @index is one of the EVENTS_MAX that have most samples. */
static bool is_shown(const struct replay_events *v, const struct perfdata *data, uint32_t index)
{
	const struct perfdata_event *ev = perfdata_event(data, index);
	uint32_t nr_before = 0;

	for (uint32_t i = 0; i < v->nr; i++) {
		const struct perfdata_event *other = perfdata_event(data, i);

		nr_before += !is_hidden(v, other) &&
			     (other->nr_samples > ev->nr_samples ||
			      (other->nr_samples == ev->nr_samples && i < index));
	}
	return nr_before < EVENTS_MAX;
}

/* Take an event with a separate rate or period. */
static void take_event(struct event *out, const struct perfdata_event *ev)
{
	*out = ev->event;
	out->hz = ev->hz;
	out->period = ev->period;
	/* The period of a clock is a rate. */
	if (ev->event.clock && ev->period) {
		out->hz = 1e9 / (double)ev->period;
		out->period = 0;
	}
}

/* Stacks of switches are stacks of waits if the switches are in the file as well. */
static void take_waits(struct replay_events *v, const struct perfdata *data,
		       struct sampler_config *config)
{
	v->wait = -1;
	for (uint32_t i = 0; i < v->nr && v->switches && v->wait < 0; i++)
		if (v->slots[i] >= 0 && v->slots[i] < EVENTS_MAX &&
		    replay_waits_is_stack(perfdata_event(data, i)))
			v->wait = v->slots[i];
	if (v->switches && v->wait < 0 && config->nr_events < EVENTS_MAX)
		v->wait = (int)config->nr_events++;
	if (v->wait < 0)
		return;
	event_parse(&config->events[v->wait], EVENT_WAITS, NULL);
}

/* Take how the stacks of the events in the file were recorded. */
static void take_stacks(const struct replay_events *v, const struct perfdata *data,
			struct sampler_config *config)
{
	bool chain = false;

	config->stack_size = 0;
	for (uint32_t i = 0; i < v->nr; i++) {
		const struct perfdata_event *ev = perfdata_event(data, i);

		if (ev->dummy)
			continue;
		config->stack_size = MAX(config->stack_size, ev->stack_size);
		chain |= ev->user_chain;
	}
	config->call_graph = config->stack_size ? CALL_GRAPH_DWARF
			     : chain		? CALL_GRAPH_FP
						: CALL_GRAPH_OFF;
}

void replay_events_take(struct replay_events *v, const struct perfdata *data,
			struct sampler_config *config)
{
	config->nr_events = 0;
	config->hz = 0;
	config->period = 1; /* an event without a rate has none of the session either */
	v->nr = MIN(perfdata_nr_events(data), (uint32_t)ARRAY_SIZE(v->slots));
	v->switches = has_switches(data, v->nr);
	for (uint32_t i = 0; i < v->nr; i++) {
		const struct perfdata_event *ev = perfdata_event(data, i);
		bool alone;

		v->slots[i] = ev->dummy ? PIPELINE_EVENT_UNKNOWN : PIPELINE_EVENT_LIMIT;
		v->wakes[i] = replay_waits_is_waking(ev, &alone);
		v->waking |= v->wakes[i];
		if (is_hidden(v, ev) || !is_shown(v, data, i))
			continue;
		v->slots[i] = (int)config->nr_events;
		take_event(&config->events[config->nr_events++], ev);
	}
	take_waits(v, data, config);
	/* Without waits they are of an event that is not shown. */
	for (uint32_t i = 0; i < v->nr && v->wait >= 0; i++)
		if (is_wake_up(v, perfdata_event(data, i)))
			v->slots[i] = COUNTERS_WAKING;
	take_stacks(v, data, config);
	event_groups_tidy(config->events, config->nr_events);
}
