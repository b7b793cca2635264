/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A steady order of rows: noise moves none. Runs on: the main thread.
 *
 * The first rows have slots. A row loses its slot to a larger one only if their error bars did not
 * overlap in the last LIST_BARS profiles; the two change places, the rows between them do not
 * move. So no pair of rows is in a wrong order that noise does not explain for longer than that.
 * The selected row keeps its slot.
 */
#ifndef UI_VIEW_ORDER_H
#define UI_VIEW_ORDER_H

#include "ui/view/folds.h"
#include "ui/view/view.h"

struct order_sibling {
	uint64_t id; /* of its row */
	double share;
};
#define ORDER_SIBLINGS FOLDS_SIBLINGS /* more are in the order of their shares */

/*
 * Put the sorted rows into the order of the profile before, where that is not significantly
 * wrong. Another column, scope or direction, and order_forget(), begin a new order.
 */
void order_keep(const struct ui_state *st, const struct view *v, struct list *list);
/*
 * Siblings of a tree of rows: write to @order the indices of @nr siblings, the largest first, but
 * in the order of the rows before where noise alone may have changed it. @from_below: the rows are
 * smallest first.
 */
void order_siblings(const struct ui_state *st, const struct list *list,
		    const struct order_sibling *siblings, uint32_t nr, bool from_below,
		    uint32_t *order);
/* Record the built rows for that; before, order_begin() forgets rows of another scope. @mode: of
 * the view, as other rows have other orders. */
void order_begin(const struct ui_state *st, struct list *list, uint64_t mode);
void order_end(struct list *list);
/* Forget the order: the user has requested one. */
void order_forget(struct list *list);

#endif
