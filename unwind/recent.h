/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Recent look-ups of an unwinder: (address space, address) -> mapping and place.
 * They spare most frames the search in the space and in the table of places.
 *
 * Used by one thread. Invariant: an entry has the results of space_find() and
 * places_intern(), and its mapping has not ended. A space never changes and serial
 * numbers are never used again, so an entry with the serial of the current space
 * points into that space, which the caller holds.
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

/* Return true if @e is valid for @pc at @time_ns. Before its mapping, space_find() is needed. */
static inline bool recent_answers(const struct recent_entry *e, uint64_t serial, uint64_t pc,
				  uint64_t time_ns)
{
	return e->pc == pc && e->serial == serial && e->mapping->birth_ns <= time_ns;
}

#endif
