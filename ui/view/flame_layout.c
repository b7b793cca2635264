// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Layout of a flame graph. Pure; any thread.
 *
 * Children start at the left end of their parent, narrow ones last; its self weight, and that of
 * nodes left out, is the gap at the right.
 */
#include "ui/view/flame_layout.h"

#include <assert.h>
#include <stdlib.h>

#include "symbols/base/base.h"

/* Fewer common frames are not cut. */
#define CUT_LEAST 3
/* A frame with this share of the zoomed node is common. */
#define COMMON 0.995

struct layout {
	const struct fold_tree *t;
	const bool *keep;
	double scale; /* cells for each weight */
	double left;  /* weight left of the part in sight */
	double least; /* weight of a cell: lighter nodes are in a rest */
	unsigned int cols;
	struct flame_box *boxes;
	uint32_t nr, capacity;
};

static struct layout layout_of(const struct fold_tree *t, const struct flame_part *part,
			       unsigned int cols)
{
	double total = t->nodes[part->zoom].total;
	struct layout l = { .t = t, .keep = part->keep, .cols = cols };

	l.scale = cols / (total * part->width);
	l.left = total * part->left;
	l.least = 1 / l.scale;
	return l;
}

static bool is_kept(const bool *keep, uint32_t n)
{
	return !keep || keep[n];
}

/* Return node @n or its first sibling after it that is kept; FOLD_NONE: none. */
static uint32_t first_kept(const struct layout *l, uint32_t n)
{
	while (n != FOLD_NONE && !is_kept(l->keep, n))
		n = l->t->nodes[n].next;
	return n;
}

static unsigned int col_of(const struct layout *l, double at)
{
	double col = (at - l->left) * l->scale + 0.5;

	return col <= 0 ? 0 : (unsigned int)MIN(col, (double)l->cols);
}

/* Place a box by its weights and add it, unless it is out of sight. Return false without memory. */
static bool add_box(struct layout *l, struct flame_box *box)
{
	unsigned int col = col_of(l, box->start), end = col_of(l, box->start + box->total);

	if (end == col)
		return true;
	box->col = (uint16_t)col;
	box->cols = (uint16_t)(end - col);
	if (l->nr == l->capacity) {
		uint32_t capacity = l->capacity ? l->capacity * 2 : 256;
		struct flame_box *boxes = reallocarray(l->boxes, capacity, sizeof(*boxes));

		if (!boxes)
			return false;
		l->boxes = boxes;
		l->capacity = capacity;
	}
	l->boxes[l->nr++] = *box;
	return true;
}

/* Add the children of a box: each that is a cell wide, then the rest. */
static bool add_children(struct layout *l, uint32_t i)
{
	const struct flame_box above = l->boxes[i];
	const struct fold_tree_node *node = &l->t->nodes[above.node];
	struct flame_box rest = { .node = above.node,
				  .level = above.level + 1,
				  .rest = l->keep ? 0 : node->nr_hidden,
				  .total = l->keep ? 0 : node->hidden };
	double at = above.start;
	bool ok = true;

	if (above.rest)
		return true;
	for (uint32_t n = first_kept(l, node->child); n != FOLD_NONE && ok;
	     n = first_kept(l, l->t->nodes[n].next)) {
		double total = l->t->nodes[n].total;

		if (total < l->least) {
			rest.rest++;
			rest.total += total;
			continue;
		}
		ok = add_box(l, &(struct flame_box){ .node = n,
						     .level = above.level + 1,
						     .start = at,
						     .total = total });
		at += total;
	}
	rest.start = at;
	return ok && (!rest.rest || add_box(l, &rest));
}

/* Find the last of the frames that all samples of @zoom share, but for one; count them. */
static uint32_t common_end(const struct layout *l, uint32_t zoom, uint32_t *nr)
{
	const struct fold_tree *t = l->t;
	uint32_t n = zoom, before = zoom;

	for (*nr = 0;; (*nr)++) {
		uint32_t child = first_kept(l, t->nodes[n].child);

		if (child == FOLD_NONE || first_kept(l, t->nodes[child].next) != FOLD_NONE ||
		    t->nodes[child].total < COMMON * t->nodes[zoom].total)
			break;
		before = n;
		n = child;
	}
	/* The last one has a box: it may be all that there is to see. */
	*nr -= *nr > 0;
	return before;
}

/* Add the zoomed node, and the cut below it. */
static bool add_roots(struct layout *l, const struct flame_part *part)
{
	struct flame_box root = { .node = part->zoom, .total = l->t->nodes[part->zoom].total };
	uint32_t nr, end = common_end(l, part->zoom, &nr);

	if (!add_box(l, &root))
		return false;
	if (part->uncut || nr < CUT_LEAST)
		return true;
	return add_box(l, &(struct flame_box){ .node = end,
					       .level = 1,
					       .cut = nr,
					       .total = l->t->nodes[end].total });
}

uint32_t flame_lay_out(const struct fold_tree *t, const struct flame_part *part, unsigned int cols,
		       struct flame_box **boxes)
{
	struct layout l;

	*boxes = NULL;
	if (part->zoom >= t->nr_nodes || !(t->nodes[part->zoom].total > 0) ||
	    !is_kept(part->keep, part->zoom))
		return 0;
	l = layout_of(t, part, cols);
	if (add_roots(&l, part)) {
		/* Below a cut only the cut is unfolded. */
		uint32_t i = l.nr ? l.nr - 1 : 0;

		while (i < l.nr && add_children(&l, i))
			i++;
	}
	assert(!l.nr || l.boxes[0].node == part->zoom);
	*boxes = l.boxes;
	return l.nr;
}

/* Return the weight at the left of @n within its parent. */
static double offset_of(const struct layout *l, uint32_t n)
{
	const struct fold_tree_node *nodes = l->t->nodes;
	bool narrow = nodes[n].total < l->least;
	bool before = true;
	double sum = 0;

	for (uint32_t i = first_kept(l, nodes[nodes[n].parent].child); i != FOLD_NONE;
	     i = first_kept(l, nodes[i].next)) {
		before &= i != n;
		if (nodes[i].total < l->least ? narrow && before : i != n && (narrow || before))
			sum += nodes[i].total;
	}
	return sum;
}

bool flame_extent(const struct fold_tree *t, const struct flame_part *part, unsigned int cols,
		  uint32_t n, double *from, double *to)
{
	double start = 0, total = t->nodes[n].total, all = t->nodes[part->zoom].total;
	struct layout l;

	if (!(all > 0) || !is_kept(part->keep, n))
		return false;
	l = layout_of(t, part, cols);
	for (uint32_t at = n; at != part->zoom; at = t->nodes[at].parent) {
		if (at == FOLD_NONE || t->nodes[at].parent == FOLD_NONE)
			return false;
		start += offset_of(&l, at);
	}
	*from = start / all;
	*to = (start + total) / all;
	return true;
}

uint32_t flame_at(const struct flame_box *boxes, uint32_t nr, uint32_t level, unsigned int col)
{
	for (uint32_t i = 0; i < nr; i++)
		if (boxes[i].level == level && col >= boxes[i].col &&
		    col < boxes[i].col + (unsigned int)boxes[i].cols)
			return i;
	return FOLD_NONE;
}
