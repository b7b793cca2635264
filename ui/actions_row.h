/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Actions of the selected row: its menu, and its source in an editor. The
 * main thread.
 */
#ifndef UI_ACTIONS_ROW_H
#define UI_ACTIONS_ROW_H

#include "ui/state/state.h"

/* Return the handler of @action; NULL: none here. */
void (*actions_row(enum action action))(struct ui_state *st, uint32_t code);
/* Return why @action is impossible for the selected row; NULL: it is possible. */
const char *actions_row_refusal(const struct ui_state *st, enum action action);
/* Find the source of the selected row and its hottest line. Return false if it is unknown. */
bool actions_source(const struct ui_state *st, char *path, size_t size, uint32_t *line);

#endif
