/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parts of a space, for space.c (readers, references) and space_edit.c (the
 * writer). See space.h.
 */
#ifndef SYMBOLS_PROCESS_SPACE_PRIVATE_H
#define SYMBOLS_PROCESS_SPACE_PRIVATE_H

#include "symbols/base/reclaim.h"
#include "symbols/process/mapping.h"

struct space_node;
struct space_stats;

struct ended {
	struct mapping m;
	uint64_t death_ns;
};

struct space {
	struct reclaim rcu;
	struct space_stats *stats;
	uint64_t serial; /* unique among all spaces; not 0 */
	uint32_t refs;
	uint32_t nr_mappings, nr_old;
	struct space_node *root; /* frozen; NULL: no mapping */
	struct ended old[];	 /* in the order in which they ended; a reference of each object */
};

static inline size_t space_size(uint32_t nr_old)
{
	return sizeof(struct space) + nr_old * sizeof(struct ended);
}

#endif
