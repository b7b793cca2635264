/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pickers: a list over the screen that narrows while one types. An entry that cannot be used is
 * shown with the reason. Runs on: the main thread.
 */
#ifndef UI_DIALOG_H
#define UI_DIALOG_H

#include "ui/draw/canvas.h"
#include "ui/key/key.h"
#include "ui/state/state.h"

extern const struct dialog_ops dialog_events, dialog_frequency, dialog_processes, dialog_sort,
	dialog_columns, dialog_menu, dialog_users, dialog_settings, dialog_export, dialog_lock,
	dialog_stacks;

void dialog_open(struct ui_state *st, const struct dialog_ops *ops);
/* The same with @data, for fill() and use(); dialog_close() calls @drop. */
void dialog_open_with(struct ui_state *st, const struct dialog_ops *ops, void *data,
		      void (*drop)(void *data));
void dialog_close(struct ui_state *st);
/* Fill the entries again; keep the cursor on its entry. */
void dialog_refresh(struct ui_state *st);
void dialog_key(struct ui_state *st, const struct key *key);
/* Select the entry in shown line @at; use it if it is selected already. */
void dialog_click(struct ui_state *st, uint32_t at);
void dialog_draw(struct ui_state *st, struct canvas *c);
/* For fill(): append an entry, zeroed. Return NULL if there is no memory for it. */
struct dialog_entry *dialog_add(struct dialog *d);

#endif
