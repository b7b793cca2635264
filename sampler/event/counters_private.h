/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The inside of counters, for counters.c and counters_live.c only.
 */
#ifndef SAMPLER_EVENT_COUNTERS_PRIVATE_H
#define SAMPLER_EVENT_COUNTERS_PRIVATE_H

#include "sampler/event/idmap.h"
#include "sampler/event/slot.h"
#include "sampler/ring/ring.h"

enum run_state {
	RUN_OFF,
	RUN_ON,
	RUN_AT_EXEC, /* the kernel turns it on */
};

struct counters {
	struct slot_env env;
	struct core_types cores;
	struct counters_cpu *cpus;
	struct slot side; /* of tasks; for the whole system the leaders do it */
	struct slot slots[EVENTS_MAX];
	uint32_t nr_slots;
	struct slot waking;   /* of wake-ups, while waits are measured */
	struct slot switches; /* of whole CPUs; else the event of waits has them */
	uint32_t nr_refused;
	size_t ring_size, ring_wanted, side_size;
	struct record_layout layout, side_layout;
	struct record_layout waking_layout;
	struct record_layout read_layout; /* of samples with the counts of a group */
	atomic_bool any_read; /* such samples are requested; relaxed: set before they are enabled */
	struct idmap ids;
	atomic_int shared_slot; /* the slot with samples under foreign ids, or -1; relaxed */
	atomic_int wait_slot;	/* the slot of waits, or -1; relaxed */
	/* There are or were wake-ups: relaxed, set before they are enabled. */
	atomic_bool any_waking;
	enum run_state run;
	bool *wake; /* by CPU: see counters_wake() */
};

/* Get the events of tasks one by one: the side-band's, then slots 0 to nr_slots - 1. */
static inline struct slot *counters_slot(struct counters *c, uint32_t at)
{
	return at ? &c->slots[at - 1] : &c->side;
}

/* Beside the slot, in the table of ids: the event's samples have the read layout. */
#define ID_READ	     0x100
#define ID_GONE	     (-3)
#define ID_GONE_READ (-4)
#define ID_WAKING    (-5)

/* Return the meaning of the ids of @slot, as number @at of the events. */
int counters_id_value(struct counters *c, const struct slot *slot, uint32_t at);
/* Open the event of switches, disabled, if waits of whole CPUs are measured. 0 or -errno. */
int counters_open_switches(struct counters *c);
/* Open the event of wake-ups, disabled, if waits are measured and it may be opened. */
void counters_open_waking(struct counters *c);
/*
 * Close both if waits are no longer measured; the last samples of wake-ups are still known by their
 * ids.
 */
void counters_close_waits(struct counters *c);
/* Return the leader of the group of event @at of @events; NULL: it leads, or is alone. */
const struct slot *counters_leader(const struct event *events, const struct slot *slots,
				   uint32_t at);

/* Bring the twins of all events in line with c->wake, after any change. 0 or the first -errno. */
int counters_apply_wake(struct counters *c);
/* Fill in the ids of all slots and of the slots that are @gone, and no others. */
void counters_fill_ids(struct counters *c, const struct slot *gone, uint32_t nr_gone);

#endif
