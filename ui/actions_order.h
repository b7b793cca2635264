/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Actions on the order of the rows. Runs on: the main thread.
 */
#ifndef UI_ACTIONS_ORDER_H
#define UI_ACTIONS_ORDER_H

#include "ui/state/state.h"

/* Return the handler of @action; NULL: none here. */
void (*actions_order(enum action action))(struct ui_state *st, uint32_t code);

#endif
