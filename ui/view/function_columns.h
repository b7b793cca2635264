/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The columns of the functions view. The main thread; pure.
 */
#ifndef UI_VIEW_FUNCTION_COLUMNS_H
#define UI_VIEW_FUNCTION_COLUMNS_H

#include "ui/text/format.h"
#include "ui/view/view.h"

#define FUNCTION_COLUMNS_NR 19

extern const struct view_column function_columns[FUNCTION_COLUMNS_NR];
extern const struct view_sorts function_columns_sorts;

/* Return the column for --sort. */
uint8_t function_columns_find(enum ui_config_sort sort);
/* Return whether @column is the change (Δ), which costs a comparison. */
bool function_columns_is_change(uint8_t column);
/* Return the name of the process; of the thread in a process that is drilled into. */
struct safe_text function_columns_comm(const struct ui_state *st, const struct row *row,
				       char buf[static FORMAT_MAX * 2]);

#endif
