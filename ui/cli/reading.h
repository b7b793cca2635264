/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Opening a recording, which may take as long as a pipe is open, or minutes for a large file: a
 * line on the terminal, and the keys and signals that end it.
 *
 * Runs on: the main thread, before the screen. Its signals are blocked.
 */
#ifndef UI_CLI_READING_H
#define UI_CLI_READING_H

#include "sampler/sampler.h"

/*
 * Begin. @keys: q on the terminal quits; else only signals are read, and the line goes to standard
 * error, if that is a terminal.
 */
void reading_begin(bool keys);
/*
 * For sampler_config.reading. The first ^C lets the rest of a pipe through for up to 2 s, since
 * it ends the writer also; the second one stops. q, SIGTERM and SIGHUP give up, and so does ^C when
 * no pipe is read.
 */
enum sampler_reading reading_step(uint64_t bytes);
/* Clear the line. Returns the signal that ended proftop, 0: q, or -1: none. */
int reading_end(void);

#endif
