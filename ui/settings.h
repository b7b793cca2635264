/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is kept between sessions, of the screen alone: "key = value" lines in
 * $XDG_CONFIG_HOME/proftop/config. Only W writes it. The main thread.
 */
#ifndef UI_SETTINGS_H
#define UI_SETTINGS_H

#include "symbols/base.h"

#define SETTINGS_PATH_MAX 1024

struct settings {
	uint64_t tick_ns;
	double percent_limit;
	bool hide_kernel, hide_user, mouse, ascii;
	int theme;			/* enum theme */
};

/* Where the file is (or would be). 0 or -ENOENT with a sentence: no home. */
int settings_path(char *path, size_t size, struct err *e);
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

#endif
