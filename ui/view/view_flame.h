/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The flame graph: shared by its drawing (view_flame.c) and its keys
 * (flame_keys.c). Runs on: the main thread.
 */
#ifndef UI_VIEW_VIEW_FLAME_H
#define UI_VIEW_VIEW_FLAME_H

#include "ui/view/view.h"

struct folds;

/* Return the tree of the rows in sight. */
const struct folds_tree *view_flame_tree(const struct ui_state *st);
/* Return the visible part of the width, 0..1; set it, clamped. */
double view_flame_width(const struct folds *s);
void view_flame_show_part(struct folds *s, double left, double width);
/* Return whether boxes are coloured by change. */
bool view_flame_shows_change(const struct ui_state *st);

/* Members of struct view. */
bool view_flame_act(struct ui_state *st, enum action action, uint32_t code);
bool view_flame_click(struct ui_state *st, unsigned int row, unsigned int col);
void view_flame_wheel(struct ui_state *st, bool up, unsigned int row, unsigned int col);
void view_flame_drag(struct ui_state *st, int rows, int cols);

#endif
