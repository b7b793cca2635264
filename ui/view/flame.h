/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where the boxes of a flame graph lie. Pure; any thread.
 *
 * Both ends of a box are rounded from the exact sums: no width is off by more
 * than one cell, no two boxes of a level overlap, none leaves its parent.
 */
#ifndef UI_VIEW_FLAME_H
#define UI_VIEW_FLAME_H

#include "sampler/profile/fold_tree.h"

struct flame_box {
	uint32_t node;	/* of the tree */
	uint32_t level; /* of the zoomed node: 0 */
	uint16_t col, cols;
};

/* What is in sight: a part of the node @zoom and of all below it. */
struct flame_part {
	uint32_t zoom;
	double left, width; /* of the node's width: 0 and 1 are all of it */
};

/*
 * The boxes of a part in @cols cells, a parent before its children, from left
 * to right; those under a cell's half are left out, those at the edges cut.
 * Returns their number and an array to free; *@boxes is NULL when memory is out.
 */
uint32_t flame_lay_out(const struct fold_tree *t, const struct flame_part *part, unsigned int cols,
		       struct flame_box **boxes);
/* Where node @n lies in the node @zoom, above it: 0..1. False: it is not in there. */
bool flame_extent(const struct fold_tree *t, uint32_t zoom, uint32_t n, double *from, double *to);

/* What lies at @col of @level; FOLD_NONE: nothing. */
uint32_t flame_at(const struct flame_box *boxes, uint32_t nr, uint32_t level, unsigned int col);

#endif
