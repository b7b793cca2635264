/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is kept between sessions, of the screen alone: "key = value" lines in
 * $XDG_CONFIG_HOME/proftop/config, over those of the system's file; under
 * "[keys]" lines of "action = key key". Only W writes, the user's. The main
 * thread.
 */
#ifndef UI_CLI_SETTINGS_H
#define UI_CLI_SETTINGS_H

#include <stdio.h>

#include "symbols/base/base.h"
#include "ui/cli/config.h"
#include "ui/key/bindings.h"

#define SETTINGS_PATH_MAX 1024

struct settings {
	uint64_t tick_ns;
	double percent_limit;
	bool hide_kernel, hide_user, mouse, ascii, fold_threads, flame_modules;
	int theme;					       /* enum theme */
	char columns[CONFIG_COLUMN_VIEWS][CONFIG_COLUMNS_MAX]; /* "": by the width of the screen */
	struct bindings bindings;
	uint32_t nr_files; /* that were read */
};

/* Where the file is (or would be). 0 or -ENOENT with a sentence: no home. */
int settings_path(char *path, size_t size, struct err *e);
/* Where the system's is: in the first of $XDG_CONFIG_DIRS, or /etc/xdg. */
int settings_system_path(char *path, size_t size);
/*
 * Both files, the user's over the system's; then what the keys must have. As
 * settings_read(), but what cannot be read is left out: @s is usable unless -EINVAL.
 */
int settings_load(struct settings *s, struct err *e);
/* All of it as a file that could be read. */
void settings_print(FILE *out, const struct settings *s);
/*
 * Take what @path says over what is in @s; a file that is not there says
 * nothing. 0, or -EINVAL with a sentence that names the line; keys that are
 * not known are left alone.
 */
int settings_read(const char *path, struct settings *s, struct err *e);
/*
 * Write: lines of keys that are not known, and comments, stay. Whole or not
 * at all (a new file takes the old one's place; of a link, that of its target).
 */
int settings_write(const char *path, const struct settings *s, struct err *e);
struct file_work;
/* Work (ui/cli/file_work.h) that does that, of copies; NULL: no memory. */
struct file_work *settings_work(const char *path, const struct settings *s);

#endif
