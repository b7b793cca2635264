/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The command line (':'): every action by its name, and commands with an
 * argument. Runs on: the main thread.
 */
#ifndef UI_COMMAND_H
#define UI_COMMAND_H

#include "ui/state/state.h"

/* Run a command; errors are shown on the screen. */
void command_run(struct ui_state *st, const char *text);
/* Gather the words that @text can continue with (Tab): files, events. */
void command_gather(struct ui_state *st, const char *text);
/* Return the name of the argument ("FILE") while it is empty; else NULL. */
const char *command_hint(const char *text);
/*
 * Complete @text into @out of @size, as far as all candidates agree; a blank
 * follows a whole word. Return false if there is no candidate.
 */
bool command_complete(const struct ui_state *st, const char *text, char *out, size_t size);
/* Write all candidates for @text into @out, separated by blanks. Return their number. */
unsigned int command_candidates(const struct ui_state *st, const char *text, char *out,
				size_t size);

#endif
