/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The live screen: shows the sampler's profiles and handles keys.
 *
 * Runs on the main thread. session_screen() calls, in this order: app_check() (before
 * anything costs time), term_guard_start(), app_block_signals(), sampler_new(),
 * sampler_start(), app_run().
 */
#ifndef UI_APP_H
#define UI_APP_H

#include "sampler/sampler.h"
#include "symbols/base/base.h"
#include "ui/cli/config.h"

/*
 * Check that a screen can be shown. Return 0, or -ENOTSUP with a sentence of
 * three lines that names -b (TERM unset, unknown or without cursor
 * addressing; no terminal).
 */
int app_check(struct err *e);

/*
 * Block the signals that app_run() reads by signalfd (INT, TERM, HUP, WINCH,
 * TSTP, CONT, PIPE). Call it before the first thread starts: all threads
 * inherit it; a command that is forked later has to unblock them.
 */
void app_block_signals(void);

/*
 * Show the screen until a key or a signal ends it, and restore the terminal.
 * Return 0 (a key, or the terminal was closed), the number of the signal
 * (SIGTERM, SIGINT, SIGHUP), or -errno with a sentence.
 */
int app_run(struct sampler *s, const struct ui_config *config, struct err *e);

#endif
