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

struct users;
struct bindings;

/* The views whose columns can be picked: their names in the settings. */
#define APP_COLUMN_VIEWS 6
#define APP_COLUMNS_MAX	 160

/* --color */
enum app_color {
	APP_COLOR_AUTO, /* unless NO_COLOR is set or the terminal has none */
	APP_COLOR_ALWAYS,
	APP_COLOR_NEVER,
};

/* --sort: what rows can be ordered by. */
enum app_sort {
	APP_SORT_SELF,
	APP_SORT_TOTAL,
	APP_SORT_SYMBOL,
	APP_SORT_MODULE,
	APP_SORT_COMM,
	APP_SORT_NR,
};

struct app_config {
	bool ascii; /* --ascii; also set by a codeset that is not UTF-8 */
	enum app_color color;
	int theme;		    /* enum theme */
	bool mouse;		    /* false: --no-mouse */
	bool key_bar;		    /* false: --no-function-bar */
	uint64_t tick_ns;	    /* as in sampler_config: for the header and the s prompt */
	uint64_t window_ns;	    /* the same */
	enum profile_window window; /* shown at start */
	enum app_sort sort;
	bool sort_inverted;
	double percent_limit; /* hide rows below; 0: none */
	bool intervals;	      /* --intervals */
	bool hide_kernel, hide_user;
	bool flame_modules;		 /* colours of the flame graph tell modules, not kinds */
	bool fold_threads;		 /* names of threads with '*' for digits */
	const char *filter;		 /* --filter, as typed after \; NULL: none */
	const char *host;		 /* for the title; NULL: gethostname(2) */
	bool replayed;			 /* a recording: nothing of this machine is shown */
	const struct users *users;	 /* borrowed; NULL: numbers */
	const struct bindings *bindings; /* borrowed; NULL: none */
	const char *columns[APP_COLUMN_VIEWS]; /* "self,total": borrowed; NULL or "": by width */
	bool saves;			       /* F9 may make a file in the working directory */
};

/* Sensible values for everything. */
void app_config_init(struct app_config *config);

/* "self", "total", "symbol", "module", "comm" -> enum app_sort; -EINVAL with a sentence. */
int app_sort_parse(const char *text, struct err *e);
/* The column's name and what it is, for --list-columns. */
const char *app_sort_name(enum app_sort sort);
const char *app_sort_help(enum app_sort sort);

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
int app_run(struct sampler *s, const struct app_config *config, struct err *e);

#endif
