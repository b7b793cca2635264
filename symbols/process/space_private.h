/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parts of a space, for space.c (readers, references) and space_edit.c (the
 * writer). See space.h.
 *
 * Invariants: mappings of a space are sorted and do not overlap, no leaf is
 * empty, and a leaf of a published space (frozen) never changes. Frozen leaves and
 * published spaces have a reference of the object of each of their mappings; drafts have
 * none: the space before, and who adds a mapping, have them until the draft is published.
 */
#ifndef SYMBOLS_PROCESS_SPACE_PRIVATE_H
#define SYMBOLS_PROCESS_SPACE_PRIVATE_H

#include "symbols/base/reclaim.h"
#include "symbols/process/mapping.h"

#define LEAF_MAX 64u

struct space_stats;

struct leaf {
	struct reclaim rcu;
	uint32_t refs; /* by spaces and drafts */
	uint32_t nr, room;
	bool frozen;
	struct mapping m[];
};

struct ended {
	struct mapping m;
	uint64_t death_ns;
};

struct space {
	struct reclaim rcu;
	struct space_stats *stats;
	uint64_t serial; /* unique among all spaces; not 0 */
	uint32_t refs;
	uint32_t nr_leaves, nr_mappings, nr_old;
	struct leaf **leaves; /* these three arrays follow the struct */
	uint64_t *ends;	      /* of the last mapping of each leaf */
	struct ended *old;    /* in the order in which they ended */
};

/* Make a leaf for up to @nr mappings, filled with the mappings of @from; NULL: no memory. */
struct leaf *space_leaf_new(const struct leaf *from, uint32_t nr);
void space_leaf_put(struct leaf *leaf);
/* Return the index of the first mapping of @leaf that ends after @addr; nr: none. */
uint32_t space_leaf_search(const struct leaf *leaf, uint64_t addr);
/* Allocate a space and its three arrays in one block; NULL: no memory. */
struct space *space_leaf_new_space(uint32_t nr_leaves, uint32_t nr_old);

#endif
