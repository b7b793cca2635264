/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The result of parsing the command line.
 */
#ifndef UI_CLI_OPTIONS_PARSED_H
#define UI_CLI_OPTIONS_PARSED_H

#include "sampler/sampler.h"
#include "symbols/base/base.h"
#include "ui/cli/config.h"

/* Exit codes: proftop(1), EXIT STATUS. */
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
	OPTIONS_STACKS,
};
enum options_format { OPTIONS_TEXT, OPTIONS_NDJSON, OPTIONS_PERF_SCRIPT };

struct options {
	struct sampler_config config; /* pids, cpus and command owned by this struct or by argv */
	enum options_action action;
	bool batch;	   /* -b, or implied by -n, --format, --rows */
	uint64_t nr_ticks; /* 0: endless */
	enum options_format format;
	uint64_t fields; /* --fields: PERF_SAMPLE_* */
	uint32_t rows;	 /* 0: all */
	enum ui_config_sort sort;
	enum ui_config_time time;
	const char *filter; /* NULL: none; borrowed from argv; it compiles */
	int theme;	    /* enum theme */
	bool theme_given, delay_given, frames_given, sort_given, time_given;
	double automatic_hz, max_hz; /* the rate without -F; the kernel's limit, 0: unknown */
	char remark[256];	     /* problem with the settings; "": none */
	pid_t stacks;		     /* --stacks */
	bool no_stop;		     /* with it: no thread is stopped */
	const char *shell;	     /* --completion */
	const char *script;	     /* NULL: none; borrowed from argv */
	const char *listen;	     /* --listen; NULL: none; borrowed from argv */
	const char *push;	     /* --push; NULL: none; borrowed from argv, as the next */
	const char *push_headers, *push_ca;
	uint64_t push_timeout_ns;
	const char **push_labels; /* owned array of borrowed texts */
	uint32_t nr_push_labels;
	const char *export_path;	   /* --export; NULL: none; borrowed from argv */
	bool quiet;			   /* --export, --push without -b and -n: print nothing */
	const char *export_format;	   /* --export-format; NULL: by ending */
	unsigned int cols, rows_of_screen; /* --size; 0: not given */
	bool no_mouse;
	bool fold_threads;
	bool intervals;
	const char *baseline; /* perf.data file or folder; NULL: none */
	bool ascii;
	enum ui_config_color color;

	pid_t *pids;		 /* storage of config.pids */
	int *cpus;		 /* storage of config.cpus */
	struct trap_rule *traps; /* storage of config.traps */
	bool user_given, tids_given, hz_given, window_given, stack_given;
	const char *sampling; /* an option for live sampling alone that was given; NULL: none */
};

/* Limits of the system for checks of arguments. */
struct options_limits {
	double max_hz;	  /* kernel.perf_event_max_sample_rate; 0: unknown */
	uint32_t nr_cpus; /* online; 0: unknown */
};

#endif
