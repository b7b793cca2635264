/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rows of the processes: one per group of processes, process, thread, or group of
 * threads of one name; or as a tree. The main thread; pure.
 */
#ifndef UI_VIEW_PROCESS_ROWS_H
#define UI_VIEW_PROCESS_ROWS_H

#include "ui/state/state.h"
#include "ui/text/format.h"

/* Build all rows of the shown profile, unsorted. Return 0 or -ENOMEM. A row's @index: see
 * process_tree.h. */
int process_rows_build(const struct ui_state *st, struct list *list);

/* Return a thread's name for rows: folded if that is on. */
struct safe_text process_rows_comm(const struct ui_state *st, struct safe_text comm,
				   char buf[static FORMAT_MAX * 2]);

#endif
