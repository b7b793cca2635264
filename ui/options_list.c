// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the --list options print, and the limits of the machine.
 *
 * Runs on: the UI thread, before any other.
 */
#include "ui/options.h"

#include <errno.h>
#include <string.h>

#include "ui/keys.h"

void options_print_columns(FILE *out)
{
	for (int i = 0; i < APP_SORT_NR; i++)
		fprintf(out, "%-8s %s\n", app_sort_name((enum app_sort)i),
			app_sort_help((enum app_sort)i));
}

static void print_key_group(FILE *out, enum key_group group)
{
	char keys[64];

	fprintf(out, "%s\n", keys_group(group));
	for (const struct key_binding *b = keys_table(); b->action != ACT_NONE; b++)
		if (b->group == group)
			fprintf(out, "  %-16s  %s\n", keys_names(keys, sizeof(keys), b), b->help);
}

void options_print_keys(FILE *out)
{
	for (int i = 0; i < GROUP_NR; i++)
		print_key_group(out, (enum key_group)i);
}

/* Everywhere first; without the rights for that, in this process alone. */
static int probe(const char *name)
{
	struct event ev;
	int code = event_parse(&ev, name, NULL);

	if (!code)
		code = event_probe(&ev, -1, 0);
	if (code == -EACCES || code == -EPERM)
		code = event_probe(&ev, 0, -1);
	return code;
}

void options_print_events(FILE *out)
{
	const char *group = "";

	for (const struct event_info *info = event_catalogue(); info->name; info++) {
		int code = probe(info->name);

		if (strcmp(group, info->group)) {
			fprintf(out, "%s%s events\n", *group ? "\n" : "", info->group);
			group = info->group;
		}
		fprintf(out, "  %-28s %s", info->name, info->description ? info->description : "");
		if (info->alias)
			fprintf(out, " (also %s)", info->alias);
		if (code)
			fprintf(out, "  [not here: %s]", event_errno(-code));
		fputc('\n', out);
	}
	fputs("\nA modifier narrows an event: cycles:u user code only, cycles:k kernel only.\n",
	      out);
}

void options_limits(struct options_limits *limits)
{
	FILE *f = fopen("/proc/sys/kernel/perf_event_max_sample_rate", "re");

	limits->max_hz = 0;
	if (!f)
		return;
	if (fscanf(f, "%lf", &limits->max_hz) != 1)
		limits->max_hz = 0;
	fclose(f);
}
