/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The columns of the processes view. The main thread; pure.
 */
#ifndef UI_VIEW_PROCESS_COLUMNS_H
#define UI_VIEW_PROCESS_COLUMNS_H

#include "ui/view/view.h"

#define PROCESS_COLUMNS_NR 23

extern const struct view_column process_columns[PROCESS_COLUMNS_NR];
extern const struct view_sorts process_columns_sorts;

#endif
