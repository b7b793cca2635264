/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One function, instruction by instruction: in, out, and about. The main
 * thread.
 */
#ifndef UI_VIEW_ANNOTATE_H
#define UI_VIEW_ANNOTATE_H

#include "ui/state.h"

/* Ask for the function (an id) and show it; @name: clean. */
void view_annotate_open(struct ui_state *st, uint32_t function, const char *name);
/* Back to where it was opened. */
void view_annotate_close(struct ui_state *st);
/* Of a jump: to where it goes. */
void view_annotate_follow(struct ui_state *st);
/* To the next hottest instruction, or back. */
void view_annotate_hottest(struct ui_state *st, bool back);
/* A profile came: the first with code puts the cursor on the hottest instruction. */
void view_annotate_arrived(struct ui_state *st);

#endif
