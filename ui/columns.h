/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which columns a view shows: as many as the width permits, or those that a
 * person picked. The main thread.
 */
#ifndef UI_COLUMNS_H
#define UI_COLUMNS_H

#include "ui/dialog.h"
#include "ui/view/view.h"

#define COLUMNS_NAME_MAX 24

/* The view of column setting @i (0 to APP_COLUMN_VIEWS - 1). */
enum view_id columns_view(unsigned int i);
/* The name of a column in the settings and the picker: "self", "cpu", "command-line". */
const char *columns_name(const struct view_column *column, char buf[static COLUMNS_NAME_MAX]);
/* "self,total" -> bits, and back; names that are not known are left out. */
uint32_t columns_parse(const struct view *v, const char *text);
void columns_format(const struct view *v, uint32_t columns, char *out, size_t size);
/* Is column @i shown on a screen of @cols? */
/* Can rows be put in the order of column @i now? */
/* What stands above it on the screen; into @buf if need be. */
struct safe_text columns_heading(const struct ui_state *st, const struct view_column *column,
				 bool ascii, char buf[static TEXT_MAX]);
bool columns_sortable(const struct ui_state *st, const struct view *v, int i);
bool columns_shown(const struct ui_state *st, const struct view *v, uint32_t picked, int i,
		   unsigned int cols);

extern const struct dialog_ops dialog_columns;

#endif
