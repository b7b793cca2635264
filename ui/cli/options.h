/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The command line: argv -> what to sample and how to show it.
 *
 * Never exits; what is wrong with an argument comes back as a sentence and an
 * exit code for main. Runs on: the UI thread, before any other.
 */
#ifndef UI_CLI_OPTIONS_H
#define UI_CLI_OPTIONS_H

#include <stdio.h>

#include "sampler/sampler.h"
#include "symbols/base/base.h"
#include "ui/cli/config.h"

/* What proftop ends with: proftop(1), EXIT STATUS. */
enum options_exit {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_NOT_PERMITTED = 3,
	EXIT_NO_TARGET = 4,
	EXIT_SIGNAL = 128, /* + the signal: 130 for ^C */
};

enum options_action {
	OPTIONS_RUN,
	OPTIONS_HELP,
	OPTIONS_VERSION,
	OPTIONS_LIST_EVENTS,
	OPTIONS_LIST_COLUMNS,
	OPTIONS_LIST_KEYS,
	OPTIONS_COMPLETION,
	OPTIONS_PRINT_CONFIG,
	OPTIONS_CHECK,
};
enum options_format { OPTIONS_TEXT, OPTIONS_NDJSON, OPTIONS_PERF_SCRIPT };

struct options {
	struct sampler_config config; /* pids, cpus and command owned by this struct or by argv */
	enum options_action action;
	bool batch;	   /* -b, or implied by -n, --format, --rows */
	uint64_t nr_ticks; /* 0: endless */
	enum options_format format;
	uint32_t rows; /* 0: all */
	enum ui_config_sort sort;
	const char *filter; /* NULL: none; borrowed from argv; it compiles */
	int theme;	    /* enum theme */
	bool theme_given, delay_given;
	char remark[256];   /* what could not be done with the settings; "": nothing */
	const char *shell;  /* --completion */
	const char *script; /* NULL: none; borrowed from argv */
	unsigned int cols, rows_of_screen; /* --size; 0: not given */
	bool no_mouse;
	bool fold_threads;
	bool intervals;
	bool ascii;
	enum ui_config_color color;

	pid_t *pids; /* what config.pids points to */
	int *cpus;   /* what config.cpus points to */
	bool user_given, tids_given, hz_given, window_given;
};

/* What of the machine the arguments are checked against. */
struct options_limits {
	double max_hz; /* kernel.perf_event_max_sample_rate; 0: not known */
};

/* Read the limits of this machine. */
void options_limits(struct options_limits *limits);

/*
 * Parse. EXIT_DONE, or the exit code with a sentence in @e; an unknown option
 * has been told to stderr by getopt already, then e->text is "". @argv must
 * live as long as @o. Call options_fini() in either case.
 */
int options_parse(struct options *o, int argc, char **argv, const struct options_limits *limits,
		  struct err *e);
void options_fini(struct options *o);

/* Turn to batch: whole ticks only, and rows of the tick alone. EXIT_DONE or EXIT_USAGE. */
int options_set_batch(struct options *o, struct err *e);

/*
 * What works here, what does not, and the cure: EXIT_DONE, EXIT_FAILED (part of it does not),
 * EXIT_NOT_PERMITTED (nothing can be sampled).
 */
int options_print_check(FILE *out);
void options_print_help(FILE *out);
void options_print_columns(FILE *out);
void options_print_keys(FILE *out);
/* For "bash", "zsh" or "fish", made from the table of options. */
void options_print_completion(FILE *out, const char *shell);
/* The table, as argp has it (<argp.h>). */
struct argp_option;
const struct argp_option *options_table(void);
/* All events of this machine, and which can be used here: tries to open them, of the tracepoints
 * one. */
void options_print_events(FILE *out);
/* The same for programs, an object a line. */
void options_print_events_ndjson(FILE *out);

#endif
