/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Commands that change the target: ":target pid 1234", ":cpus 0-3". The main
 * thread; the sampler answers in a later profile.
 */
#ifndef UI_COMMAND_TARGET_H
#define UI_COMMAND_TARGET_H

#include "ui/state/state.h"

#define COMMAND_WORD_MAX 32

void command_target(struct ui_state *st, const char *arg);
const char *command_target_word(const struct ui_state *st, const char *before, unsigned int i,
				char *buf);
void command_cpus(struct ui_state *st, const char *arg);

#endif
