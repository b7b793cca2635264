/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What keys do, where pickers and the mouse do it, too. The main thread.
 */
#ifndef UI_ACTIONS_H
#define UI_ACTIONS_H

#include "ui/state.h"

/* Change the view. */
void actions_show(struct ui_state *st, enum view_id view);
/* Into one process (an id), and out of it again. */
void actions_enter_process(struct ui_state *st, uint32_t id);
void actions_leave_process(struct ui_state *st);
/* Sort by a column; the same one again turns the order round. */
void actions_sort_by(struct ui_state *st, uint8_t column);
/* A sentence of several lines in one: what failed; why, or what was meant; what to do. */
void actions_say_error(struct ui_state *st, const struct err *e);

#endif
