// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The lists that options print; progress of a recording from a pipe; errors and remarks on standard
 * error.
 *
 * Runs on: the main thread, before any other.
 */
#include "ui/cli/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "sampler/event/event.h"
#include "sampler/perfdata/perfdata.h"
#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "ui/key/key.h"

void options_print_columns(FILE *out)
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

void options_print_keys(FILE *out)
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

void options_print_events(FILE *out)
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

void options_print_events_ndjson(FILE *out)
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

int options_print_check(FILE *out)
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

void options_limits(struct options_limits *limits)
{
	FILE *f = fopen("/proc/sys/kernel/perf_event_max_sample_rate", "re");

	limits->max_hz = 0;
	limits->nr_cpus = (uint32_t)MAX(sysconf(_SC_NPROCESSORS_ONLN), 0);
	if (!f)
		return;
	if (fscanf(f, "%lf", &limits->max_hz) != 1)
		limits->max_hz = 0;
	fclose(f);
}

/*
 * Opening a recording: progress and cancellation.
 *
 * Runs on: the main thread, before the screen.
 */

#define SHOW_NS	 250000000ULL
#define DRAIN_NS 2000000000ULL

static struct {
	int tty; /* 0: none */
	bool keys, shown;
	struct termios before;
	uint64_t show_ns;  /* time of the next line */
	uint64_t drain_ns; /* ^C was pressed: stop then; 0: it was not */
	int ended_by;	   /* -1: not ended; 0: q; else a signal */
} reading;

void reading_begin(bool keys)
{
	int fd = keys			 ? open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)
		 : isatty(STDERR_FILENO) ? fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)
					 : -1;
	struct termios raw;

	memset(&reading, 0, sizeof(reading));
	reading.ended_by = -1;
	reading.show_ns = time_now_ns() + SHOW_NS;
	if (fd < 0)
		return;
	reading.tty = fd;
	if (!keys || tcgetpgrp(fd) != getpgrp() || tcgetattr(fd, &reading.before))
		return;
	raw = reading.before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	reading.keys = !tcsetattr(fd, TCSANOW, &raw);
}

/* Return the next pending signal; 0: none. */
static int next_signal(void)
{
	static const struct timespec now = { 0, 0 };
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sig = sigtimedwait(&set, NULL, &now);
	return sig > 0 ? sig : 0;
}

/* Return whether q was pressed; other keys are left out. */
static bool is_quit_pressed(void)
{
	char keys[64];
	ssize_t nr = reading.keys ? read(reading.tty, keys, sizeof(keys)) : 0;

	return nr > 0 && memchr(keys, 'q', (size_t)nr);
}

static void show(uint64_t bytes)
{
	uint64_t now = time_now_ns();

	if (reading.tty <= 0 || now < reading.show_ns)
		return;
	reading.show_ns = now + SHOW_NS;
	reading.shown = true;
	if (!bytes) {
		dprintf(reading.tty, "\rreading   %s: quit\033[K", reading.keys ? "q" : "^C");
		return;
	}
	dprintf(reading.tty, "\rreading %.1f MB   %s%s\033[K", (double)bytes / 1e6,
		reading.drain_ns ? "stopping" : "^C: show it now",
		reading.keys ? "   q: quit" : "");
}

enum sampler_reading reading_step(uint64_t bytes)
{
	int sig = next_signal();

	if (is_quit_pressed()) {
		reading.ended_by = 0;
		return SAMPLER_READING_CANCEL;
	}
	if ((sig && sig != SIGINT) || (sig == SIGINT && !bytes)) {
		reading.ended_by = sig;
		return SAMPLER_READING_CANCEL;
	}
	if (reading.drain_ns && (sig || time_now_ns() > reading.drain_ns))
		return SAMPLER_READING_STOP;
	if (sig)
		reading.drain_ns = time_now_ns() + DRAIN_NS;
	show(bytes);
	return reading.drain_ns ? SAMPLER_READING_DRAIN : SAMPLER_READING_GO;
}

int reading_end(void)
{
	if (reading.tty > 0) {
		if (reading.shown)
			dprintf(reading.tty, "\r\033[K");
		if (reading.keys)
			tcsetattr(reading.tty, TCSANOW, &reading.before);
		close(reading.tty);
	}
	reading.tty = 0;
	return reading.ended_by;
}

void complain(const struct err *e)
{
	const char *line = e->text, *before = "proftop: ";
	char clean[sizeof(e->text)];

	while (*line) {
		size_t size = strcspn(line, "\n");

		fprintf(stderr, "%s%s\n", before,
			text_sanitise(clean, sizeof(clean), line, size).str);
		before = "";
		line += size + (line[size] == '\n');
	}
}
