/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parse the values of single options into struct options. Private to
 * options*.c. Runs on: the main thread, before any other.
 */
#ifndef UI_CLI_OPTIONS_VALUE_H
#define UI_CLI_OPTIONS_VALUE_H

#include <errno.h>

#include "ui/cli/options_parsed.h"

/* Keys of options without a letter, above all letters. */
enum {
	KEY_FORMAT = 256,
	KEY_ROWS,
	KEY_SORT,
	KEY_FILTER,
	KEY_RING,
	KEY_STACK,
	KEY_WINDOW,
	KEY_REPLAY,
	KEY_BASELINE,
	KEY_SYMFS,
	KEY_RECORD,
	KEY_UNWINDER,
	KEY_VERIFY,
	KEY_NO_INLINE,
	KEY_LANGUAGES,
	KEY_FRAMES,
	KEY_FIELDS,
	KEY_TIME,
	KEY_LATENCY,
	KEY_SYMBOL_MEMORY,
	KEY_HISTORY,
	KEY_HISTORY_MEMORY,
	KEY_TRAP,
	KEY_TRAP_MEMORY,
	KEY_SAVE_DIR,
	KEY_KEEP,
	KEY_KEEP_SIZE,
	KEY_KEEP_TIME,
	KEY_OPEN,
	KEY_SAVE_FILES,
	KEY_SAVE_SIZE,
	KEY_EVENT_FILTER,
	KEY_OVERHEAD,
	KEY_NAME,
	KEY_COLOR,
	KEY_SELF,
	KEY_SCRIPT,
	KEY_EXPORT,
	KEY_LISTEN,
	KEY_PUSH,
	KEY_PUSH_LABEL,
	KEY_PUSH_HEADERS,
	KEY_PUSH_CA,
	KEY_PUSH_TIMEOUT,
	KEY_EXPORT_FORMAT,
	KEY_SIZE,
	KEY_THEME,
	KEY_COMPLETION,
	KEY_NO_MOUSE,
	KEY_FOLD_THREADS,
	KEY_INTERVALS,
	KEY_ASCII,
	KEY_LIST_EVENTS,
	KEY_LIST_COLUMNS,
	KEY_LIST_KEYS,
	KEY_PRINT_CONFIG,
	KEY_CHECK,
	KEY_STACKS,
	KEY_NO_STOP,
	KEY_END, /* end */
};

struct options_parse {
	struct options *o;
	const struct options_limits *limits;
	struct err *e;
	int code;	     /* exit code */
	bool given[KEY_END]; /* by key */
};

/* Options about the past, in options_past.c. */
int options_parse_history(struct options_parse *p, const char *arg);
int options_parse_trap_memory(struct options_parse *p, const char *arg);
int options_parse_keep(struct options_parse *p, const char *arg);
int options_parse_keep_size(struct options_parse *p, const char *arg);
int options_parse_keep_time(struct options_parse *p, const char *arg);
/* Take a file or folder to show; refuses a second one. */
int options_take_replay(struct options_parse *p, const char *arg);
bool options_is_folder(const char *path);
int options_parse_open(struct options_parse *p, const char *arg);
int options_parse_save_dir(struct options_parse *p, const char *arg);
int options_parse_save_files(struct options_parse *p, const char *arg);
int options_parse_save_size(struct options_parse *p, const char *arg);
int options_parse_trap(struct options_parse *p, const char *arg);
int options_parse_history_memory(struct options_parse *p, const char *arg);

/* Set message and exit code; the value makes argp stop. */
#define REFUSE(p, exit_code, ...)                                                                  \
	((p)->code = (exit_code), err_set((p)->e, -EINVAL, __VA_ARGS__), EINVAL)

/*
 * Parse the value of option @key. Return 0, EINVAL with message and code, or -1: @key
 * takes no value.
 */
int options_value(struct options_parse *p, int key, const char *arg);
/* Parse the value of an option for the screen, in the same way. */
int options_screen_value(struct options_parse *p, int key, const char *arg);

struct argp_option;
/* Return the option with a key. */
const struct argp_option *options_of(int key);
struct argp_state;
/* Check combinations of the options, and complete them. Return as options_value(). */
int options_check(struct options_parse *p, const struct argp_state *state);

#endif
