// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The picker of formats for an export. Runs on: the main thread.
 */
#include "ui/dialog.h"

#include <stdio.h>

#include "ui/actions_export.h"
#include "ui/actions_tools.h"

static void fill(struct ui_state *st)
{
	struct dialog_entry *entry;

	for (int i = 0; i < EXPORT_NR && (entry = dialog_add(&st->dialog)); i++) {
		entry->value = (uint64_t)i;
		snprintf(entry->name, sizeof(entry->name), "%s", export_name(i));
		snprintf(entry->detail, sizeof(entry->detail), "%-16s %s", export_ending(i),
			 export_help(i));
	}
	entry = dialog_add(&st->dialog);
	if (!entry)
		return;
	entry->value = EXPORT_NR;
	snprintf(entry->name, sizeof(entry->name), "screen");
	snprintf(entry->detail, sizeof(entry->detail), "%-16s the screen as it is, as text (w)",
		 ".txt");
}

static bool use(struct ui_state *st, const struct dialog_entry *entry, bool add)
{
	char path[LINE_SIZE];

	if (!entry) {
		snprintf(path, sizeof(path), "%s", st->dialog.line.text);
		actions_export(st, path, EXPORT_NR, true);
		return true;
	}
	if (entry->value < EXPORT_NR) {
		actions_export_here(st, (enum export_format)entry->value);
		return true;
	}
	/* Close it first: it would be on the saved screen. */
	dialog_close(st);
	actions_tool_do(st, ACT_SAVE_SCREEN, 0);
	return false;
}

const struct dialog_ops dialog_export = {
	.title = "F9 Export",
	.hint = "type a file name, or pick a format for a file here",
	.foot = "Exports the shown samples: window, process, filter, event",
	.fill = fill,
	.use = use,
};
