// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The lists and reports that options print instead of a session.
 *
 * Runs on: the main thread, before any other.
 */
#include "ui/cli/internal.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sampler/event/event.h"
#include "sampler/perfdata/perfdata.h"
#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "ui/key/key.h"

static void print_columns(FILE *out)
{
	static const char *const help[CONFIG_SORT_NR] = {
		[CONFIG_SORT_SELF] = "share of samples in the function itself",
		[CONFIG_SORT_TOTAL] = "share of samples with the function on the stack",
		[CONFIG_SORT_SYMBOL] = "name of the function",
		[CONFIG_SORT_MODULE] = "program, library or kernel module",
		[CONFIG_SORT_COMM] = "process with most of its samples",
	};

	for (int i = 0; i < CONFIG_SORT_NR; i++)
		fprintf(out, "%-8s %s\n", ui_config_sort_name((enum ui_config_sort)i), help[i]);
}

static void print_key_group(FILE *out, enum key_group group)
{
	char keys[64];

	fprintf(out, "%s\n", key_group(group));
	for (const struct key_binding *b = key_table(); b->action != ACT_NONE; b++)
		if (b->group == group)
			fprintf(out, "  %-16s  %-16s  %s%s\n", key_names_of(keys, sizeof(keys), b),
				b->name, b->help, key_where(b));
}

static void print_keys(FILE *out)
{
	for (int i = 0; i < GROUP_NR; i++)
		print_key_group(out, (enum key_group)i);
}

/* Open an event on a CPU; without permission, for this process. */
static int probe(const struct event *ev)
{
	int code = event_probe(ev, -1, 0);

	return code == -EACCES || code == -EPERM ? event_probe(ev, 0, -1) : code;
}

static int probe_name(const char *name)
{
	struct event ev;
	int code = event_parse(&ev, name, NULL);

	return code ? code : probe(&ev);
}

static bool is_tracepoint(const struct event_info *info)
{
	return !strcmp(info->group, EVENT_GROUP_TRACEPOINTS);
}

/* Print the forms of event names that have no list. */
static void print_spelled(FILE *out)
{
	static const char *const lines[] = {
		"rNNN                         raw event code in hexadecimal",
		"PMU/term=value,.../          terms: /sys/bus/event_source/devices/PMU/format",
		"pfm:NAME[:UMASK][:c=N]...    as in perf's --pfm-events, if built with libpfm4",
		"mem:ADDRESS[/LEN][:rwx]      accesses to an address (hardware breakpoint)",
		"uprobe:/FILE:FUNCTION[+OFF]  calls of a function; uretprobe: returns",
		"kprobe:FUNCTION[+OFF]        the same in the kernel; kretprobe: returns",
	};

	fputs("\nothers\n", out);
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		fprintf(out, "  %s\n", lines[i]);
	fputs("\nModifiers: cycles:u user code only, cycles:k kernel only.\n"
	      "Rate of one event: cycles/freq=99/, page-faults/period=1/.\n",
	      out);
}

/*
 * Print all events of this system, and which are available: each is opened once, of
 * tracepoints one.
 */
static void print_events(FILE *out)
{
	const char *group = "";
	struct event_list list;
	int code = 0;

	event_list_init(&list, "");
	for (const struct event_info *info = list.infos; info->name; info++) {
		bool first = strcmp(group, info->group);

		/* Opening a tracepoint waits for all CPUs: one result serves all. */
		if (first || !is_tracepoint(info))
			code = probe_name(info->name);
		if (first) {
			fprintf(out, "%s%s%s\n", *group ? "\n" : "", info->group,
				is_tracepoint(info) ? "" : " events");
			group = info->group;
		}
		if (info->description && info->description[0])
			fprintf(out, "  %-28s %s", info->name, info->description);
		else
			fprintf(out, "  %s", info->name);
		if (info->alias)
			fprintf(out, " (also %s)", info->alias);
		if (code)
			fprintf(out, "  [not available: %s]", event_errno(-code));
		fputc('\n', out);
	}
	print_spelled(out);
	event_list_fini(&list);
}

/* Print the events as JSON, one object per line. */
static void print_events_ndjson(FILE *out)
{
	struct event_list list;
	bool tried = false;
	int code = 0;

	event_list_init(&list, "");
	for (const struct event_info *info = list.infos; info->name; info++) {
		struct event ev;
		int bad = event_parse(&ev, info->name, NULL);

		if (bad)
			code = bad;
		else if (!tried)
			code = probe(&ev);
		/* As above: one result serves all. */
		tried = !bad && is_tracepoint(info);
		/* Names need no quoting: they are ours or the kernel's. */
		fprintf(out,
			"{\"name\":\"%s\",\"group\":\"%s\",\"type\":%u,\"config\":%llu,"
			"\"config1\":%llu,\"config2\":%llu,\"usable\":%s,\"errno\":%d,"
			"\"reason\":\"%s\"}\n",
			info->name, info->group, ev.type, (unsigned long long)ev.config,
			(unsigned long long)ev.config1, (unsigned long long)ev.config2,
			code ? "false" : "true", -code, event_errno(-code));
	}
	event_list_fini(&list);
}

/* Print the report of --check. */
static int print_check(FILE *out)
{
	static const char *const words[] = { "ok", "note", "degraded", "NOT POSSIBLE" };
	static const int codes[] = { EXIT_DONE, EXIT_DONE, EXIT_FAILED, EXIT_NOT_PERMITTED };
	struct doctor_finding findings[DOCTOR_FINDINGS_MAX];
	struct doctor_facts facts;
	uint32_t nr;

	doctor_read(&facts, "");
	nr = doctor_judge(&facts, findings);
	for (uint32_t i = 0; i < nr; i++) {
		char clean[sizeof(findings[i].fix)];

		/* Parts are of /proc, as the names of processes: foreign text. */
		fprintf(out, "%-12s  %-20s %s\n", words[findings[i].level], findings[i].topic,
			text_format(clean, sizeof(clean), "%s", findings[i].says).str);
		if (findings[i].fix[0])
			fprintf(out, "%-12s  %-20s   fix: %s\n", "", "",
				text_format(clean, sizeof(clean), "%s", findings[i].fix).str);
	}
	return codes[doctor_worst(findings, nr)];
}

int options_print(FILE *out, const struct options *o)
{
	assert(o->action != OPTIONS_RUN);
	switch (o->action) {
	case OPTIONS_CHECK:
		return print_check(out);
	case OPTIONS_LIST_KEYS:
		print_keys(out);
		break;
	case OPTIONS_LIST_EVENTS:
		if (o->format == OPTIONS_NDJSON)
			print_events_ndjson(out);
		else
			print_events(out);
		break;
	default:
		print_columns(out);
		break;
	}
	return EXIT_DONE;
}
