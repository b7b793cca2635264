/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A sorted order of rows that noise does not move. Runs on: the main thread.
 *
 * The first rows have slots. A row keeps its slot while chance may explain how it differs from its
 * neighbours, in both directions (95 %). All else is in order at once:
 *  - no row is significantly larger than the row above it, nor than the first row (95 %);
 *  - no row is larger than any row above it beyond 2.75 standard errors. That is more than for
 *    neighbours because of many equal rows some pair always differs by 2.
 * A row that must move changes places with another one; the rows between them do not move.
 */
#ifndef UI_VIEW_ORDER_H
#define UI_VIEW_ORDER_H

#include "ui/fold/fold.h"
#include "ui/view/view.h"

struct order_sibling {
	uint64_t id; /* of its row */
	double share, count;
};
#define ORDER_SIBLINGS FOLDS_SIBLINGS /* more are in the order of their shares */

/*
 * Put the sorted rows into the order of the profile before, where that is not significantly
 * wrong. Another column, scope, filter or direction, and order_forget(), begin a new order.
 */
void order_keep(const struct ui_state *st, const struct view *v, struct list *list);
/* Return whether a row, not the first, is not significantly behind the row above it: "~". */
bool order_is_tie(const struct ui_state *st, const struct view *v, const struct list *list,
		  const struct row *row);
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
