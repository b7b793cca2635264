/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rows of the processes: one each, or one for each thread, or for each
 * group of threads with names alike; as a tree with what is below them.
 * The main thread; pure.
 */
#ifndef UI_VIEW_PROCESS_ROWS_H
#define UI_VIEW_PROCESS_ROWS_H

#include "ui/state/state.h"
#include "ui/text/format.h"

/* All rows of the shown profile, unsorted; 0 or -ENOMEM. A row's @index: see process_tree.h. */
int process_rows_build(const struct ui_state *st, struct list *list);

/* What a thread is called in rows: its name, folded if that is wanted. */
struct safe_text process_rows_comm(const struct ui_state *st, struct safe_text comm,
				   char buf[static FORMAT_MAX * 2]);

#endif
