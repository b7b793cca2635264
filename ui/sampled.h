/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sampled events, as the picker and the command line change them. Runs on: the main thread.
 */
#ifndef UI_SAMPLED_H
#define UI_SAMPLED_H

#include "ui/state/state.h"

/*
 * Sample the events of the list @text instead, or with @add these also (one alone that is sampled:
 * no longer). A program with a probe is read as file work, and the events are changed later. False:
 * refused, with a message.
 */
bool sampled_use(struct ui_state *st, const char *text, bool add);
/* Stop sampling event number @at. */
void sampled_take_out(struct ui_state *st, uint32_t at);
/* Give event number @at the modifiers "u", "kpp" or ""; keep its rate. */
void sampled_change(struct ui_state *st, uint32_t at, const char *modifiers);

#endif
