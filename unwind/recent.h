/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where an unwinder has been of late: (address space, address) -> mapping and
 * place, so that most frames need neither be looked up in the space nor in the
 * table of places.
 *
 * One thread's own. Invariant: an entry says what space_find() and
 * places_intern() said. A space never changes and its serial number is never
 * given again, so an entry whose serial is that of the space in hand points
 * into that space, which the caller holds.
 */
#ifndef UNWIND_RECENT_H
#define UNWIND_RECENT_H

#include "symbols/process/maps.h"

#define RECENT_BITS 12

struct recent_entry {
	uint64_t pc, serial; /* serial 0: empty */
	const struct mapping *mapping;
	uint32_t place;
};

struct recent {
	struct recent_entry entries[1u << RECENT_BITS];
};

static inline struct recent_entry *recent_slot(struct recent *r, uint64_t serial, uint64_t pc)
{
	return &r->entries[(pc ^ serial << 32) * 0x9e3779b97f4a7c15ULL >> (64 - RECENT_BITS)];
}

/* Does @e answer for @pc at @time_ns? What was mapped later is a question for space_find(). */
static inline bool recent_answers(const struct recent_entry *e, uint64_t serial, uint64_t pc,
				  uint64_t time_ns)
{
	return e->pc == pc && e->serial == serial && e->mapping->birth_ns <= time_ns;
}

#endif
