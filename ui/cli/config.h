/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Configuration of the screen: its options and settings.
 */
#ifndef UI_CLI_CONFIG_H
#define UI_CLI_CONFIG_H

#include "sampler/sampler.h"
#include "symbols/base/base.h"

struct users;
struct user_keys;
struct serve;

/* Views with a choice of columns: their names in the settings. */
#define CONFIG_COLUMN_VIEWS 6
#define CONFIG_COLUMNS_MAX  160
#define CONFIG_SORT_MAX	    40

/* --color */
enum ui_config_color {
	CONFIG_COLOR_AUTO, /* unless NO_COLOR is set or the terminal has none */
	CONFIG_COLOR_ALWAYS,
	CONFIG_COLOR_NEVER,
};

/* --sort: the order of rows. */
enum ui_config_sort {
	CONFIG_SORT_SELF,
	CONFIG_SORT_TOTAL,
	CONFIG_SORT_SYMBOL,
	CONFIG_SORT_MODULE,
	CONFIG_SORT_COMM,
	CONFIG_SORT_NR,
};

/* --time: which time is shown. */
enum ui_config_time {
	CONFIG_TIME_CPU,
	CONFIG_TIME_WAIT,
	CONFIG_TIME_ALL,
	CONFIG_TIME_LATENCY, /* CPU time divided by the number of running tasks */
	CONFIG_TIME_NR
};

/* Processes that the views show as one. */
enum grouping {
	GROUPING_NAME, /* of one name */
	GROUPING_PID,  /* none: each alone */
	GROUPING_CONTAINER,
	GROUPING_UNIT, /* of systemd: a service, scope or slice */
	GROUPING_NR,
};

struct ui_config {
	enum ui_config_time time;
	bool ascii; /* --ascii; also set by a codeset that is not UTF-8 */
	enum ui_config_color color;
	int theme;		    /* enum theme */
	bool mouse;		    /* false: --no-mouse */
	uint64_t tick_ns;	    /* as in sampler_config: for the header and the s prompt */
	uint64_t window_ns;	    /* the same */
	enum profile_window window; /* shown at start */
	double hz;		    /* of the session's start */
	double automatic_hz;	    /* the rate without -F and settings */
	enum ui_config_sort sort;
	bool sort_inverted;
	double percent_limit; /* hide rows below; 0: none */
	bool intervals;	      /* --intervals */
	bool hide_kernel, hide_user;
	bool flame_modules; /* flame graph colours: by module, not by kind */
	enum grouping grouping;
	bool fold_threads;		   /* names of threads with '*' for digits */
	const char *filter;		   /* --filter, as typed after \; NULL: none */
	const char *host;		   /* for the title; NULL: gethostname(2) */
	bool replayed;			   /* a recording: no information about this system */
	const char *recording;		   /* its path, borrowed; NULL: none */
	struct profile *baseline;	   /* of --baseline, for the screen to own; NULL: none */
	const char *baseline_path;	   /* borrowed */
	const struct users *users;	   /* borrowed; NULL: numbers */
	const struct user_keys *user_keys; /* borrowed; NULL: none */
	const char *columns[CONFIG_COLUMN_VIEWS]; /* "self,total": borrowed; NULL or "": by width */
	const char *sorts[CONFIG_COLUMN_VIEWS];	  /* "total reversed"; the same; before @sort */
	struct serve *serve;			  /* gets each profile; NULL: none */
	bool saves;				  /* F9 may make a file in the working directory */
};

/* "name", "PID", "container", "unit". */
const char *ui_config_grouping_name(enum grouping by);
/* Set defaults. */
void ui_config_init(struct ui_config *config);

/*
 * Parse "self", "total", "symbol", "module" or "comm". Return enum ui_config_sort, or
 * -EINVAL with a message.
 */
int ui_config_sort_parse(const char *text, struct err *e);
/* Parse "language", "both" or "native". Return enum profile_frames, or -EINVAL. */
int ui_config_frames_parse(const char *text);
/* Parse "cpu", "wait", "all" or "latency". Return enum ui_config_time, or -EINVAL. */
int ui_config_time_parse(const char *text);
const char *ui_config_time_name(enum ui_config_time time);
/* Return a column's name, and its description for --list-columns. */
const char *ui_config_sort_name(enum ui_config_sort sort);
const char *ui_config_sort_help(enum ui_config_sort sort);

#endif
