/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rows of a view: made, put in order, moved through and drawn. Code shared by all views. The
 * main thread.
 */
#ifndef UI_VIEW_TABLE_H
#define UI_VIEW_TABLE_H

#include "ui/draw/canvas.h"
#include "ui/state/state.h"

/* Make the rows of a view again; keep the cursor on its row. */
void table_rebuild(struct ui_state *st, enum view_id id);
/* Rebuild after a change of order or filter: keep the selected row visible, else go to the top. */
void table_reorder(struct ui_state *st);
/* Sort by a column; the same column again reverses the order. */
void table_sort_by(struct ui_state *st, uint8_t column);
/* If filter or limit hide the selected row, select the row that is under the cursor now. */
void table_select_shown(struct ui_state *st);
void table_move(struct ui_state *st, int64_t by);
void table_move_to(struct ui_state *st, uint32_t row);
/* Move to the next row that matches the search, starting at @from. Return false if none does. */
bool table_search(struct ui_state *st, uint32_t from, bool backwards);
/*
 * Write the outcome of a search that no row matches: "not found", or the share of the samples that
 * match, and their rows.
 */
void table_missed(struct ui_state *st, char *buf, size_t size);
/* Draw titles and rows into @rows lines, starting at line @row. */
void table_draw(struct ui_state *st, struct canvas *c, unsigned int row, unsigned int rows);
/* Draw in at most @rows lines why there are no rows, and the fix. */
void table_draw_empty(const struct ui_state *st, struct canvas *c, unsigned int row,
		      unsigned int rows);

#endif
