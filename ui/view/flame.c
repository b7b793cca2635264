// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Layout of a flame graph. Pure; any thread.
 *
 * Children start at the left end of their parent; its self weight is the gap
 * at the right.
 */
#include "ui/view/flame.h"

#include <assert.h>
#include <stdlib.h>

#include "symbols/base/base.h"

struct layout {
	const struct fold_tree *t;
	uint32_t zoom;
	double scale; /* cells for each weight */
	double left;  /* weight left of the part in sight */
	unsigned int cols;
	struct flame_box *boxes;
	uint32_t nr, capacity;
};

static bool add_box(struct layout *l, const struct flame_box *box)
{
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

static unsigned int col_of(const struct layout *l, double at)
{
	double col = (at - l->left) * l->scale + 0.5;

	return col <= 0 ? 0 : (unsigned int)MIN(col, (double)l->cols);
}

/* Return the box of a node that starts at weight @from; cols 0: too narrow, or out of sight. */
static struct flame_box box_of(const struct layout *l, uint32_t n, double from)
{
	const struct fold_tree_node *node = &l->t->nodes[n];
	unsigned int col = col_of(l, from), end = col_of(l, from + node->total);

	return (struct flame_box){ n, node->depth - l->t->nodes[l->zoom].depth, (uint16_t)col,
				   (uint16_t)(end - col) };
}

/* Return the node after the subtree of @n; FOLD_NONE: end of the zoomed node. */
static uint32_t after(const struct layout *l, uint32_t n)
{
	while (n != l->zoom && l->t->nodes[n].next == FOLD_NONE)
		n = l->t->nodes[n].parent;
	return n == l->zoom ? FOLD_NONE : l->t->nodes[n].next;
}

bool flame_extent(const struct fold_tree *t, uint32_t zoom, uint32_t n, double *from, double *to)
{
	double start = 0, total = t->nodes[n].total, all = t->nodes[zoom].total;

	for (uint32_t at = n; at != zoom; at = t->nodes[at].parent) {
		if (at == FOLD_NONE || t->nodes[at].parent == FOLD_NONE)
			return false;
		for (uint32_t i = t->nodes[t->nodes[at].parent].child; i != at && i != FOLD_NONE;
		     i = t->nodes[i].next)
			start += t->nodes[i].total;
	}
	*from = all > 0 ? start / all : 0;
	*to = all > 0 ? (start + total) / all : 0;
	return true;
}

uint32_t flame_lay_out(const struct fold_tree *t, const struct flame_part *part, unsigned int cols,
		       struct flame_box **boxes)
{
	uint32_t zoom = part->zoom;
	struct layout l = { .t = t, .zoom = zoom, .cols = cols };
	double *starts = NULL; /* by level: start of the next node */
	uint32_t deepest = 0, n = zoom;

	*boxes = NULL;
	if (zoom >= t->nr_nodes || !(t->nodes[zoom].total > 0))
		return 0;
	for (uint32_t i = 0; i < t->nr_nodes; i++)
		deepest = MAX(deepest, t->nodes[i].depth);
	starts = calloc(deepest + 2ULL, sizeof(*starts));
	if (!starts)
		return 0;
	l.scale = cols / (t->nodes[zoom].total * part->width);
	l.left = t->nodes[zoom].total * part->left;
	while (n != FOLD_NONE) {
		uint32_t depth = t->nodes[n].depth;
		struct flame_box box = box_of(&l, n, starts[depth]);

		starts[depth + 1] = starts[depth];
		starts[depth] += t->nodes[n].total;
		if (box.cols && !add_box(&l, &box))
			break;
		n = box.cols && t->nodes[n].child != FOLD_NONE ? t->nodes[n].child : after(&l, n);
	}
	free(starts);
	assert(!l.nr || l.boxes[0].node == zoom);
	*boxes = l.boxes;
	return l.nr;
}

uint32_t flame_at(const struct flame_box *boxes, uint32_t nr, uint32_t level, unsigned int col)
{
	for (uint32_t i = 0; i < nr; i++)
		if (boxes[i].level == level && col >= boxes[i].col &&
		    col < boxes[i].col + (unsigned int)boxes[i].cols)
			return i;
	return FOLD_NONE;
}
