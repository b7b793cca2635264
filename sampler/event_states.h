/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * All events of this machine, and whether each can be opened.
 *
 * Threads: event_states_probe() by the builder, event_states_get() by the UI at any time.
 */
#ifndef SAMPLER_EVENT_STATES_H
#define SAMPLER_EVENT_STATES_H

#include <stdatomic.h>
#include <stdbool.h>

#include "sampler/event/event.h"

struct sampler_event_state {
	const struct event_info *info;
	int code; /* 0 usable, -errno, 1: not tried yet */
};

struct event_table;

struct event_states {
	_Atomic(struct event_table *) table; /* NULL: not probed yet; release by the builder */
};

/*
 * List all events of this machine and try to open each once, on @pid and @cpu as for
 * perf_event_open(2). @kernel: kernel code included. Does nothing the second time.
 */
void event_states_probe(struct event_states *es, pid_t pid, int cpu, bool kernel);
/*
 * Copy up to @max states; returns how many there are. Before the probe these are the fixed names
 * alone, and *probed is false. The infos live until event_states_free().
 */
uint32_t event_states_get(struct event_states *es, struct sampler_event_state *out, uint32_t max,
			  bool *probed);
void event_states_free(struct event_states *es);

#endif
