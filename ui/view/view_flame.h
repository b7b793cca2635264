/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The flame graph: what its drawing (view_flame.c) and its keys (flame_keys.c)
 * share. The main thread.
 */
#ifndef UI_VIEW_VIEW_FLAME_H
#define UI_VIEW_VIEW_FLAME_H

#include "ui/view/view.h"

struct folds;

/* The tree that the rows were made of. */
const struct folds_tree *view_flame_tree(const struct ui_state *st);
/* The part of the width that is in sight; and showing that around @left, as far as there is one. */
double view_flame_width(const struct folds *s);
void view_flame_show_part(struct folds *s, double left, double width);
/* Do colours tell what rose and what fell? */
bool view_flame_shows_change(const struct ui_state *st);

/* As a view has them. */
bool view_flame_act(struct ui_state *st, enum action action, uint32_t code);
bool view_flame_click(struct ui_state *st, unsigned int row, unsigned int col);
void view_flame_wheel(struct ui_state *st, bool up, unsigned int row, unsigned int col);
void view_flame_drag(struct ui_state *st, int rows, int cols);

#endif
