/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Handlers of the views around the functions, and of the program. The main
 * thread.
 */
#ifndef UI_ACTIONS_TOOLS_H
#define UI_ACTIONS_TOOLS_H

#include "ui/state.h"

/* One of ours; false: it is not. */
bool actions_tool_do(struct ui_state *st, enum action action, uint32_t code);
bool actions_tool_handles(enum action action);

/* The module of the selected row: an index in modules of the shown profile; UINT32_MAX: none. */
uint32_t actions_module(const struct ui_state *st);
/* What the selected row is called; "" if it has no name. */
const char *actions_name(const struct ui_state *st, char buf[static TEXT_MAX]);
/* Into one thread of a process: a row of the view of threads. */
void actions_enter_thread(struct ui_state *st, const struct row *row);

/*
 * Start writing the screen as text; a message reports the result. @replace: over a regular file
 * too. 0 or -errno.
 */
int actions_save_screen(struct ui_state *st, const char *path, bool replace);
/* Report the result of a file that was being written; false: none yet. */
bool actions_file_result(struct ui_state *st);

#endif
