/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Saved settings of the screen: "key = value" lines in
 * $XDG_CONFIG_HOME/proftop/config, which take precedence over the system's
 * file; under "[keys]" lines of "action = key key". Only the key W writes the
 * user's file. Runs on: the main thread.
 */
#ifndef UI_CLI_SETTINGS_H
#define UI_CLI_SETTINGS_H

#include <stdio.h>

#include "symbols/base/base.h"
#include "ui/cli/config.h"
#include "ui/key/user_keys.h"

#define SETTINGS_PATH_MAX 1024

struct settings {
	uint64_t tick_ns;
	double percent_limit;
	int grouping; /* enum grouping */
	double hz;    /* 0: automatic */
	enum profile_window window;
	uint64_t window_ns; /* of PROFILE_WINDOW; 0: not given */
	enum ui_config_time time;
	bool hide_kernel, hide_user, mouse, ascii, fold_threads, intervals, flame_modules;
	int theme;					       /* enum theme */
	int frames;					       /* enum profile_frames */
	char columns[CONFIG_COLUMN_VIEWS][CONFIG_COLUMNS_MAX]; /* "": by the width of the screen */
	char sorts[CONFIG_COLUMN_VIEWS][CONFIG_SORT_MAX];      /* "total reversed"; "": automatic */
	struct user_keys user_keys;
	uint32_t nr_files; /* number of files read */
};

/* Get the path of the user's file. Return 0, or -ENOENT with a message: no home. */
int settings_path(char *path, size_t size, struct err *e);
/* Get the path of the system's file: in the first of $XDG_CONFIG_DIRS, or /etc/xdg. */
int settings_system_path(char *path, size_t size);
/*
 * Read both files, the user's last, then check that required actions have a key. Errors as
 * settings_read(), but an unreadable file is skipped: @s is usable unless -EINVAL.
 */
int settings_load(struct settings *s, struct err *e);
/* Print all settings in the format of the file. */
void settings_print(FILE *out, const struct settings *s);
/*
 * Read the settings in @path into @s; a missing file is no error. Return 0, or -EINVAL
 * with a message that names the line. Unknown keys are ignored.
 */
int settings_read(const char *path, struct settings *s, struct err *e);
/*
 * Write the settings atomically; comments and unknown keys are kept. Symbolic links of the
 * invoking user and of root are followed; only a regular file of the user is replaced. Return 0 or
 * -errno with a message.
 */
int settings_write(const char *path, const struct settings *s, struct err *e);
struct file_work;
/* Make work (ui/cli/file_work.h) for settings_write(), with copies; NULL: no memory. */
struct file_work *settings_work(const char *path, const struct settings *s);

#endif
