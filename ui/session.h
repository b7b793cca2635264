/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A run of proftop from its options to its exit code: with a screen, without, from keys of the
 * command line, or as the filter of a recording. Starts the sampler, --listen and the rest, and
 * ends them again.
 *
 * Order matters: the guard before any thread, and signals blocked before sampler_new(), as
 * libraries start threads in it that must not receive one.
 *
 * Runs on: the main thread, once. Each returns an exit code, with a message unless it is EXIT_DONE
 * or a signal. Remarks go to standard error.
 */
#ifndef UI_SESSION_H
#define UI_SESSION_H

#include "ui/cli/options.h"

/* Show the screen, on a terminal. */
int session_screen(struct options *o, struct err *e);
/* Print a table, or NDJSON, at each tick. */
int session_batch(struct options *o, struct err *e);
/* Print the samples of a recording; ^C ends it as any filter. */
int session_script(const struct options *o, struct err *e);
/* Print the stacks of --stacks. */
int session_stacks(const struct options *o, struct err *e);
/* Run --script. */
int session_keys(const struct options *o, struct err *e);
/* Print the settings in effect: options over the user's settings over the system's. */
int session_print_settings(struct options *o, struct err *e);

/* Return whether standard input is a recording: keys are read from the terminal then. */
bool session_is_piped(const struct options *o);

#endif
