// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Values of the options about the screen itself: its size, its keys.
 *
 * Runs on: the UI thread, before any other.
 */
#include "ui/options_value.h"

#include <string.h>

#include "ui/script.h"

static int parse_script(struct options_parse *p, const char *arg)
{
	p->o->script = arg;
	return 0;
}

static int parse_size(struct options_parse *p, const char *arg)
{
	if (!script_size(arg, strlen(arg), &p->o->cols, &p->o->rows_of_screen))
		return REFUSE(p, EXIT_USAGE,
			      "--size %s: not a size of a screen\n"
			      "  give columns and lines, as in '--size 100x30'",
			      arg);
	return 0;
}

static const struct {
	int key;
	int (*parse)(struct options_parse *p, const char *arg);
} values[] = {
	{ KEY_SCRIPT, parse_script },
	{ KEY_SIZE, parse_size },
};

int options_screen_value(struct options_parse *p, int key, const char *arg)
{
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		if (values[i].key == key)
			return values[i].parse(p, arg);
	return -1;
}
