/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The command line (':'): every action by its name, and some commands with a
 * word after them. The main thread.
 */
#ifndef UI_COMMAND_H
#define UI_COMMAND_H

#include "ui/state/state.h"

/* Obey; what is wrong with it is said on the screen. */
void command_run(struct ui_state *st, const char *text);
/* Tab: look for what @text could go on with, where that is not known: files, events. */
void command_gather(struct ui_state *st, const char *text);
/* What follows the command, "FILE", where no letter of it is typed; NULL: nothing, or some is. */
const char *command_hint(const char *text);
/*
 * Complete @text into @out of @size: as far as all that begin so agree; a
 * blank after a whole word. False if nothing begins so.
 */
bool command_complete(const struct ui_state *st, const char *text, char *out, size_t size);
/* All that begin with @text, with blanks between, into @out; returns how many. */
unsigned int command_candidates(const struct ui_state *st, const char *text, char *out,
				size_t size);

#endif
