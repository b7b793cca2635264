/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The live screen: takes the sampler's profiles, shows them, obeys the keys.
 *
 * Runs on the main thread. main() calls, in this order: app_check() (before
 * anything costs time), guard_start(), sampler_new(), app_block_signals(),
 * sampler_start(), app_run().
 */
#ifndef UI_APP_H
#define UI_APP_H

#include "sampler/sampler.h"
#include "symbols/base/base.h"
#include "ui/cli/config.h"

/*
 * Can a screen be shown here? 0; -ENOTSUP with the three-line sentence (TERM
 * unset, unknown or without cursor addressing; no terminal), which names -b.
 */
int app_check(struct err *e);

/*
 * Block what app_run() reads by signalfd (INT, TERM, HUP, WINCH, TSTP, CONT,
 * PIPE). Call after a command was forked and before the first thread starts,
 * so that all threads have it and the command does not.
 */
void app_block_signals(void);

/*
 * Show the screen until the user or a signal ends it. 0 (left by key, or the
 * terminal went away); the number of the signal that ended it (SIGTERM,
 * SIGINT, SIGHUP); -errno with a sentence. The terminal is as before when it returns.
 */
int app_run(struct sampler *s, const struct ui_config *config, struct err *e);

#endif
