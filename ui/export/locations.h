/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Numbers for the locations of stacks: a location is a function with the functions that are
 * inlined there, each with its line. One thread.
 */
#ifndef UI_EXPORT_LOCATIONS_H
#define UI_EXPORT_LOCATIONS_H

#include "ui/export/dense.h"
#include "ui/export/snapshot.h"

struct locations {
	struct dense chains; /* (chain + 1, frame) -> chain: the frames of a location */
	struct dense ids;    /* chain -> number */
};

void locations_fini(struct locations *l);
/*
 * Return the number, from 0, of the location with the innermost frame calls[*@at], and set *@at to
 * its outermost frame; @first: the root. DENSE_NONE: no memory.
 */
uint32_t locations_add(struct locations *l, const struct snapshot *s, uint32_t first, uint32_t *at,
		       bool *is_new);

#endif
