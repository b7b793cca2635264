/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Export of the shown profile. The main thread; a file is written on another one.
 */
#ifndef UI_ACTIONS_EXPORT_H
#define UI_ACTIONS_EXPORT_H

#include "ui/export/export.h"
#include "ui/state/state.h"

/*
 * Get the shown samples: event, process, thread, filter. The mask of tasks is borrowed. False: the
 * process or thread drilled into has none.
 */
bool actions_export_scope(const struct ui_state *st, struct snapshot_scope *scope);
/* Export to @path and show the result; @format EXPORT_NR: by the ending. */
void actions_export(struct ui_state *st, const char *path, enum export_format format, bool replace);
/* Export to a file in the working directory, named by the time. */
void actions_export_here(struct ui_state *st, enum export_format format);
/* Show the progress of a file that takes long. Return false if none does. */
bool actions_export_progress(struct ui_state *st);

#endif
