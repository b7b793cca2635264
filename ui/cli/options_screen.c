// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Parse the values of options for the screen: size, keys, theme.
 *
 * Runs on: the main thread, before any other.
 */
#include "ui/cli/cli.h"

#include <string.h>

#include "ui/cli/value.h"
#include "ui/draw/canvas.h"
#include "ui/text/number.h"

#define PUSH_TIMEOUT_MIN_NS 100000000ull
#define PUSH_TIMEOUT_MAX_NS (3600 * 1000000000ull)

static int parse_script(struct options_parse *p, const char *arg)
{
	p->o->script = arg;
	return 0;
}

static int parse_export(struct options_parse *p, const char *arg)
{
	p->o->export_path = arg;
	return *arg ? 0
		    : REFUSE(p, EXIT_USAGE,
			     "--export: empty file name\n"
			     "  name a file, as in --export profile.html");
}

/* The address is checked when it is bound: see serve.h. */
static int parse_listen(struct options_parse *p, const char *arg)
{
	p->o->listen = arg;
	return 0;
}

/* The URL and the labels are checked when they are used: see push.h. */
static int parse_push(struct options_parse *p, const char *arg)
{
	p->o->push = arg;
	return 0;
}

static int parse_push_label(struct options_parse *p, const char *arg)
{
	struct options *o = p->o;

	o->push_labels =
		xrealloc_array(o->push_labels, o->nr_push_labels + 1ull, sizeof(*o->push_labels));
	o->push_labels[o->nr_push_labels++] = arg;
	return 0;
}

static int parse_push_headers(struct options_parse *p, const char *arg)
{
	p->o->push_headers = arg;
	return 0;
}

static int parse_push_ca(struct options_parse *p, const char *arg)
{
	p->o->push_ca = arg;
	return 0;
}

static int parse_push_timeout(struct options_parse *p, const char *arg)
{
	uint64_t *ns = &p->o->push_timeout_ns;

	if (!time_parse(arg, strlen(arg), ns) && *ns >= PUSH_TIMEOUT_MIN_NS &&
	    *ns <= PUSH_TIMEOUT_MAX_NS)
		return 0;
	return REFUSE(p, EXIT_USAGE,
		      "--push-timeout %s: invalid time\n"
		      "  must be 100ms to 1h, as in 10s",
		      arg);
}

/* The name is checked with the path: see export.h. */
static int parse_export_format(struct options_parse *p, const char *arg)
{
	p->o->export_format = arg;
	return 0;
}

static int parse_size(struct options_parse *p, const char *arg)
{
	if (!number_screen_size(arg, strlen(arg), CANVAS_MAX, &p->o->cols, &p->o->rows_of_screen))
		return REFUSE(p, EXIT_USAGE,
			      "--size %s: invalid screen size\n"
			      "  give columns and lines, as in '--size 100x30'",
			      arg);
	return 0;
}

static int parse_theme(struct options_parse *p, const char *arg)
{
	p->o->theme_given = true;
	if (!value_theme("--theme", arg, &p->o->theme, p->e))
		return 0;
	p->code = EXIT_USAGE;
	return EINVAL;
}

static int parse_completion(struct options_parse *p, const char *arg)
{
	if (strcmp(arg, "bash") && strcmp(arg, "zsh") && strcmp(arg, "fish"))
		return REFUSE(p, EXIT_USAGE, "--completion=%s: must be bash, zsh or fish", arg);
	p->o->action = OPTIONS_COMPLETION;
	p->o->shell = arg;
	return 0;
}

static const struct {
	int key;
	int (*parse)(struct options_parse *p, const char *arg);
} values[] = {
	{ KEY_SCRIPT, parse_script },
	{ KEY_SIZE, parse_size },
	{ KEY_EXPORT, parse_export },
	{ KEY_LISTEN, parse_listen },
	{ KEY_PUSH, parse_push },
	{ KEY_PUSH_LABEL, parse_push_label },
	{ KEY_PUSH_HEADERS, parse_push_headers },
	{ KEY_PUSH_CA, parse_push_ca },
	{ KEY_PUSH_TIMEOUT, parse_push_timeout },
	{ KEY_EXPORT_FORMAT, parse_export_format },
	{ KEY_THEME, parse_theme },
	{ KEY_COMPLETION, parse_completion },
};

int options_screen_value(struct options_parse *p, int key, const char *arg)
{
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		if (values[i].key == key)
			return values[i].parse(p, arg);
	return -1;
}
