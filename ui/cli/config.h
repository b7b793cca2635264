/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How the screen starts: the options and settings that concern it.
 */
#ifndef UI_CLI_CONFIG_H
#define UI_CLI_CONFIG_H

#include "sampler/sampler.h"
#include "symbols/base/base.h"

struct users;
struct bindings;

/* The views whose columns can be picked: their names in the settings. */
#define CONFIG_COLUMN_VIEWS 6
#define CONFIG_COLUMNS_MAX  160

/* --color */
enum ui_config_color {
	CONFIG_COLOR_AUTO, /* unless NO_COLOR is set or the terminal has none */
	CONFIG_COLOR_ALWAYS,
	CONFIG_COLOR_NEVER,
};

/* --sort: what rows can be ordered by. */
enum ui_config_sort {
	CONFIG_SORT_SELF,
	CONFIG_SORT_TOTAL,
	CONFIG_SORT_SYMBOL,
	CONFIG_SORT_MODULE,
	CONFIG_SORT_COMM,
	CONFIG_SORT_NR,
};

struct ui_config {
	bool ascii; /* --ascii; also set by a codeset that is not UTF-8 */
	enum ui_config_color color;
	int theme;		    /* enum theme */
	bool mouse;		    /* false: --no-mouse */
	bool key_bar;		    /* false: --no-function-bar */
	uint64_t tick_ns;	    /* as in sampler_config: for the header and the s prompt */
	uint64_t window_ns;	    /* the same */
	enum profile_window window; /* shown at start */
	enum ui_config_sort sort;
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
	const char *columns[CONFIG_COLUMN_VIEWS]; /* "self,total": borrowed; NULL or "": by width */
	bool saves;				  /* F9 may make a file in the working directory */
};

/* Sensible values for everything. */
void ui_config_init(struct ui_config *config);

/* "self", "total", "symbol", "module", "comm" -> enum ui_config_sort; -EINVAL with a sentence. */
int ui_config_sort_parse(const char *text, struct err *e);
/* The column's name and what it is, for --list-columns. */
const char *ui_config_sort_name(enum ui_config_sort sort);
const char *ui_config_sort_help(enum ui_config_sort sort);

#endif
