/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The inside of counters, for counters.c and counters_live.c only.
 */
#ifndef SAMPLER_COUNTERS_PRIVATE_H
#define SAMPLER_COUNTERS_PRIVATE_H

#include "sampler/counters.h"
#include "sampler/idmap.h"
#include "sampler/slot.h"

enum run_state {
	RUN_OFF,
	RUN_ON,
	RUN_AT_EXEC,			/* the kernel turns it on */
};

struct counters {
	struct slot_env env;
	struct counters_cpu *cpus;
	struct slot side;		/* of tasks; for the whole system the leaders do it */
	struct slot slots[EVENTS_MAX];
	uint32_t nr_slots;
	uint32_t nr_refused;
	size_t ring_size, ring_wanted, side_size;
	struct record_layout layout, side_layout;
	struct idmap ids;
	atomic_int shared_slot;		/* whose samples may come with foreign ids, or -1; relaxed */
	enum run_state run;
};

/* The ids of all slots as they are now, those of slots that are @gone, and no others. */
void counters_fill_ids(struct counters *c, const struct slot *gone, uint32_t nr_gone);

#endif
