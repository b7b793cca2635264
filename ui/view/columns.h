/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The columns a view shows: all that fit, or the picked ones. Runs on: the main thread.
 */
#ifndef UI_VIEW_COLUMNS_H
#define UI_VIEW_COLUMNS_H

#include "ui/view/view.h"

#define COLUMNS_NAME_MAX 24

/* Return the view of column setting @i (0 to CONFIG_COLUMN_VIEWS - 1). */
enum view_id columns_view(unsigned int i);
/* Return the name of a column in settings and picker: "self", "cpu", "command-line". */
const char *columns_name(const struct view_column *column, char buf[static COLUMNS_NAME_MAX]);
/* Convert "self,total" to bits, and back; unknown names are ignored. */
uint32_t columns_parse(const struct view *v, const char *text);
void columns_format(const struct view *v, uint32_t columns, char *out, size_t size);
/* Sort @list by "total" or "total reversed", and write how it is sorted. */
void columns_parse_sort(const struct view *v, const char *text, struct list *list);
void columns_format_sort(const struct view *v, const struct list *list, char *out, size_t size);
/* Return the title above a column, written into @buf if it changes. */
struct safe_text columns_heading(const struct ui_state *st, const struct view_column *column,
				 bool ascii, char buf[static TEXT_MAX]);
/* Return whether rows can be sorted by column @i now. */
bool columns_sortable(const struct ui_state *st, const struct view *v, int i);
/* Return whether column @i is shown on a screen of @cols. @picked: bits of columns; 0: automatic.
 */
bool columns_shown(const struct ui_state *st, const struct view *v, uint32_t picked, int i,
		   unsigned int cols);

#endif
