/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A steady order of rows: noise moves none. The main thread.
 *
 * The first rows have slots. A row gives its slot to another one only if their smoothed shares
 * differ by more than both error bars; the two change places, the rows between them stay. The
 * selected row keeps its slot.
 */
#ifndef UI_VIEW_ORDER_H
#define UI_VIEW_ORDER_H

#include "ui/view/view.h"

/*
 * Put the sorted rows into the order of the profile before, where that is not significantly
 * wrong. Another column, scope or direction, and order_forget(), begin a new order.
 */
void order_keep(const struct ui_state *st, const struct view *v, struct list *list);
/* Forget the order: the user has requested one. */
void order_forget(struct list *list);

#endif
