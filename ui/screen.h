/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The whole screen from the state, and a key into the state. Neither knows a
 * terminal, so that both run in tests. The main thread.
 */
#ifndef UI_SCREEN_H
#define UI_SCREEN_H

#include "ui/state.h"

#define SCREEN_MIN_COLS 40
#define SCREEN_MIN_ROWS 8

/* Draw everything on @c; notes in the state where the mouse means what. */
void screen_draw(struct ui_state *st, struct canvas *c);
/* Where a key pressed now goes. */
enum key_context screen_context(const struct ui_state *st);
/* Obey a key. */
void screen_key(struct ui_state *st, const struct key *key);
/* Is the key about rows that are still counted? Then it waits for them: nothing that is typed is
 * lost. */
bool screen_waits(const struct ui_state *st, const struct key *key);
/* Obey an action, as @code would; for keys, clicks and scripts. */
void screen_do(struct ui_state *st, enum action action, uint32_t code);
/* Is there a handler for every action that pages can reach? For the test of the table. */
bool screen_handles(enum action action);

#endif
