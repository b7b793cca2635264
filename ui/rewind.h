/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rewind: the views show a range of the past while sampling goes on. Runs on: the main thread.
 */
#ifndef UI_REWIND_H
#define UI_REWIND_H

#include "ui/state/state.h"

/* Show a range; sampling goes on. */
void rewind_to(struct ui_state *st, uint64_t begin_ns, uint64_t end_ns);
/* Show the newest profile again. */
void rewind_live(struct ui_state *st);
/* Handle a press or release in the strip: a column, or a range of them. */
void rewind_press(struct ui_state *st, unsigned int col);
void rewind_release(struct ui_state *st, unsigned int col);
/* Request the strip of the current scope and screen, if that is another one. */
void rewind_refresh(struct ui_state *st);
/* Take a profile of the past and a strip, each NULL or owned by the state from now on. */
void rewind_take(struct ui_state *st, struct profile *p, struct strip *strip);
/* Return the handler of @action; NULL: none here. */
void (*rewind_action(enum action action))(struct ui_state *st, uint32_t code);
/* Stop at the match of a trap, if the newest profile has a new one. */
void rewind_trapped(struct ui_state *st);
/* Set a trap, as of --trap; "off": remove all; "": list them. */
void rewind_trap(struct ui_state *st, const char *arg);
/* Go to a time: "30s" ago, or "14:03[:22]"; "": back to now. */
void rewind_command(struct ui_state *st, const char *arg);

#endif
