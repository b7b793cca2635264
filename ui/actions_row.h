/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What can be done with the selected row: the menu of it all, and its source
 * in an editor. The main thread.
 */
#ifndef UI_ACTIONS_ROW_H
#define UI_ACTIONS_ROW_H

#include "ui/state/state.h"

/* What does @action; NULL: nothing here. */
void (*actions_row(enum action action))(struct ui_state *st, uint32_t code);
/* Why @action can do nothing with the selected row; NULL: it can. */
const char *actions_row_refusal(const struct ui_state *st, enum action action);
/* The source of the selected row, its hottest line; false: none is known. */
bool actions_source(const struct ui_state *st, char *path, size_t size, uint32_t *line);

#endif
