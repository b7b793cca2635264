/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parse the command line into target, sampling parameters and screen
 * configuration.
 *
 * Never exits: errors are a message and an exit code for main. Runs on: the UI
 * thread, before any other.
 */
#ifndef UI_CLI_OPTIONS_H
#define UI_CLI_OPTIONS_H

#include <stdio.h>

#include "symbols/base/base.h"
#include "ui/cli/options_parsed.h"

/* Read the limits of this system. */
void options_limits(struct options_limits *limits);

/*
 * Parse. Return EXIT_DONE, or the exit code with a message in @e. @argv must live as long
 * as @o. Call options_fini() in either case.
 */
int options_parse(struct options *o, int argc, char **argv, const struct options_limits *limits,
		  struct err *e);
void options_fini(struct options *o);

/* Switch to batch mode: whole ticks, rows of one tick. Return EXIT_DONE or EXIT_USAGE. */
/*
 * Add the events that @o->time needs. Return 0, or another number with a message.
 */
int options_add_time(struct options *o, struct err *e);
int options_set_batch(struct options *o, struct err *e);

/*
 * Print the report of --check. Return EXIT_DONE, EXIT_FAILED (a part does not work) or
 * EXIT_NOT_PERMITTED (no sampling possible).
 */
int options_print_check(FILE *out);
void options_print_help(FILE *out);
void options_print_columns(FILE *out);
void options_print_keys(FILE *out);
/* Return the table of argp (<argp.h>). */
struct argp_option;
const struct argp_option *options_table(void);
/*
 * Print all events of this system, and which are available: each is opened once, of
 * tracepoints one.
 */
void options_print_events(FILE *out);
/* Print the events as JSON, one object per line. */
void options_print_events_ndjson(FILE *out);

#endif
