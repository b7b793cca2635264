// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Set defaults of the screen, and parse --sort.
 */
#include "ui/cli/config.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

static const struct {
	const char *name, *help;
} sorts[CONFIG_SORT_NR] = {
	[CONFIG_SORT_SELF] = { "self", "share of samples in the function itself" },
	[CONFIG_SORT_TOTAL] = { "total", "share of samples with the function on the stack" },
	[CONFIG_SORT_SYMBOL] = { "symbol", "name of the function" },
	[CONFIG_SORT_MODULE] = { "module", "program, library or kernel module" },
	[CONFIG_SORT_COMM] = { "comm", "process with most of its samples" },
};

void ui_config_init(struct ui_config *config)
{
	*config = (struct ui_config){
		.mouse = true,
		.tick_ns = 1000000000ull,
		.window_ns = 5 * 1000000000ull,
		.window = PROFILE_WINDOW,
		.sort = CONFIG_SORT_SELF,
	};
}

int ui_config_sort_parse(const char *text, struct err *e)
{
	for (int i = 0; i < CONFIG_SORT_NR; i++)
		if (!strcasecmp(text, sorts[i].name))
			return i;
	return err_set(e, -EINVAL, "unknown column '%.40s'\n  see proftop --list-columns", text);
}

int ui_config_frames_parse(const char *text)
{
	for (int i = 0; i < FRAMES_NR; i++)
		if (!strcmp(text, profile_frames_name((enum profile_frames)i)))
			return i;
	return -EINVAL;
}

const char *ui_config_sort_name(enum ui_config_sort sort)
{
	return sorts[(unsigned int)sort < CONFIG_SORT_NR ? sort : CONFIG_SORT_SELF].name;
}

const char *ui_config_sort_help(enum ui_config_sort sort)
{
	return sorts[(unsigned int)sort < CONFIG_SORT_NR ? sort : CONFIG_SORT_SELF].help;
}

static const char *const times[CONFIG_TIME_NR] = { "cpu", "wait", "all", "latency" };

int ui_config_time_parse(const char *text)
{
	for (int i = 0; i < CONFIG_TIME_NR; i++)
		if (!strcmp(text, times[i]))
			return i;
	return -EINVAL;
}

const char *ui_config_time_name(enum ui_config_time time)
{
	return times[(unsigned int)time < CONFIG_TIME_NR ? time : CONFIG_TIME_CPU];
}

const char *ui_config_grouping_name(enum grouping by)
{
	static const char *const names[GROUPING_NR] = { "name", "PID", "container", "unit" };

	return names[(unsigned int)by < GROUPING_NR ? by : GROUPING_NAME];
}
