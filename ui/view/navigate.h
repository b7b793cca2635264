/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From view to view, into processes and threads and out again. Runs on: the main thread.
 */
#ifndef UI_VIEW_NAVIGATE_H
#define UI_VIEW_NAVIGATE_H

#include "ui/state/state.h"

/* Change the view. */
void navigate_to(struct ui_state *st, enum view_id view);
/* Drill into the process with that id; leave it. */
void navigate_into_process(struct ui_state *st, uint32_t id);
/* Show the processes of the group that processes[@process] is in. */
void navigate_into_group(struct ui_state *st, uint32_t process);
/* Merge the processes by name, container or unit, or do not. */
void navigate_by_group(struct ui_state *st, enum grouping by);
void navigate_out_of_process(struct ui_state *st);
/* Leave it without a change of the view. */
void navigate_close_process(struct ui_state *st);
/* Open a view without a tab; its Esc returns to the shown one. */
void navigate_to_tool(struct ui_state *st, enum view_id view);
/* Return the tab that the shown view was opened from. */
enum view_id navigate_tab(const struct ui_state *st);
/* Drill into a thread, or group of threads: a row of the view of threads. */
void navigate_into_thread(struct ui_state *st, const struct row *row);
/* Leave it for the process or group that it was opened in. Return false if there is none. */
bool navigate_out_of_thread(struct ui_state *st);
/* Show the functions of one module: an index in the shown profile's. */
void navigate_into_module(struct ui_state *st, uint32_t module);
/* Show the callers and callees of the function with that id. */
void navigate_to_callers(struct ui_state *st, uint32_t id);

#endif
