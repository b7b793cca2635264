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

/* Note the process or thread of the selected row; the next rows that are built have it selected. */
void process_rows_keep_selected(struct ui_state *st);

/* Return a thread's name for rows: folded if that is on. */
struct safe_text process_rows_comm(const struct ui_state *st, struct safe_text comm,
				   char buf[static FORMAT_MAX * 2]);

/* Return whether rows are a tree. */
bool process_rows_in_tree(const struct ui_state *st);
/* Return whether the row is a group, of several processes or not of a name. */
bool process_rows_is_group(const struct ui_state *st, const struct row *row);
/* Return the process of a row: of a group the busiest one. */
const struct profile_process *process_rows_process(const struct ui_state *st,
						   const struct row *row);
/* Return the name of a row: of the thread if rows are threads. */
struct safe_text process_rows_name(const struct ui_state *st, const struct row *row,
				   char buf[static TEXT_MAX]);
/* Return the pid of a row: the tid if rows are threads. */
pid_t process_rows_pid(const struct ui_state *st, const struct row *row);
/* Return the command line of a row; "": unknown. */
struct safe_text process_rows_command(const struct ui_state *st, const struct row *row);
/* Return a text that may be unknown; "": it is. */
struct safe_text process_rows_text(struct safe_text t);

#endif
