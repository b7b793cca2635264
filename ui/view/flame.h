/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Layout of a flame graph. Pure; any thread.
 *
 * Both ends of a box are rounded from the exact sums: no width is off by more
 * than one cell, no boxes of a level overlap, no box exceeds its parent.
 */
#ifndef UI_VIEW_FLAME_H
#define UI_VIEW_FLAME_H

#include "sampler/profile/fold_tree.h"

struct flame_box {
	uint32_t node;	/* of the tree */
	uint32_t level; /* of the zoomed node: 0 */
	uint16_t col, cols;
};

/* The part in sight: of the node @zoom and all below it. */
struct flame_part {
	uint32_t zoom;
	double left, width; /* of the node's width: 0 and 1 are the whole node */
};

/*
 * Lay out a part in @cols cells: parents before children, left to right;
 * boxes under half a cell are left out, boxes at the edges cut. Return their number and an array to
 * free; *@boxes is NULL if there is no memory.
 */
uint32_t flame_lay_out(const struct fold_tree *t, const struct flame_part *part, unsigned int cols,
		       struct flame_box **boxes);
/* Find the extent of node @n within its ancestor @zoom, 0..1. Return false if it is not below it.
 */
bool flame_extent(const struct fold_tree *t, uint32_t zoom, uint32_t n, double *from, double *to);

/* Find the box at @col of @level; FOLD_NONE: none. */
uint32_t flame_at(const struct flame_box *boxes, uint32_t nr, uint32_t level, unsigned int col);

#endif
