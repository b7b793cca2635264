/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Layout of a flame graph. Pure; any thread.
 *
 * Both ends of a box are rounded from the exact sums: no width is off by more
 * than one cell, no boxes of a level overlap, no box exceeds its parent.
 *
 * Children narrower than a cell are one box at the right end of their parent: the rest. Frames
 * that all samples share, below the zoomed node, are one level: the cut.
 *
 * A node that is left out leaves a gap at the right of its siblings: all others are as wide as with
 * it. The light nodes that the tree only sums are left out with it: their names are not known.
 */
#ifndef UI_VIEW_FLAME_LAYOUT_H
#define UI_VIEW_FLAME_LAYOUT_H

#include "sampler/profile/fold_tree.h"

struct flame_box {
	uint32_t node;	/* of the tree; of a rest, the parent */
	uint32_t level; /* of the zoomed node: 0 */
	uint16_t col, cols;
	uint32_t rest;	     /* number of nodes in it; 0: it is the node itself */
	uint32_t cut;	     /* number of frames it represents, @node the innermost; 0: one */
	double start, total; /* weight: at the left within the zoomed node, and its own */
};

/* The part in sight: of the node @zoom and all below it. */
struct flame_part {
	uint32_t zoom;
	double left, width; /* of the node's width: 0 and 1 are the whole node */
	bool uncut;	    /* show all frames */
	const bool *keep;   /* borrowed: by node, false: left out; NULL: show all nodes */
};

/*
 * Lay out a part in @cols cells: level by level, parents before children, left to right; boxes at
 * the edges cut. None if the node @zoom is left out. Return their number and an array to free;
 * *@boxes is NULL if there is no memory.
 */
uint32_t flame_lay_out(const struct fold_tree *t, const struct flame_part *part, unsigned int cols,
		       struct flame_box **boxes);
/*
 * Find the extent of node @n within @part's zoomed node, 0..1, as it is laid out in @cols cells.
 * Return false if it is not below that, or left out.
 */
bool flame_extent(const struct fold_tree *t, const struct flame_part *part, unsigned int cols,
		  uint32_t n, double *from, double *to);

/* Find the box at @col of @level; FOLD_NONE: none. */
uint32_t flame_at(const struct flame_box *boxes, uint32_t nr, uint32_t level, unsigned int col);

#endif
