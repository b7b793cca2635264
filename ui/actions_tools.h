/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Actions on views, threads, names, columns, settings and files. The main
 * thread.
 */
#ifndef UI_ACTIONS_TOOLS_H
#define UI_ACTIONS_TOOLS_H

#include "ui/state/state.h"

/* Do @action. Return false if it has no handler here. */
bool actions_tool_do(struct ui_state *st, enum action action, uint32_t code);
bool actions_tool_handles(enum action action);

int actions_save_screen(struct ui_state *st, const char *path, bool replace);
/* Report the result of a file that was being written; false: none yet. */
bool actions_file_result(struct ui_state *st, struct file_worker *f);

#endif
