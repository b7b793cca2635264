// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Figures as text, strict numbers of the command line, the rate of an event, the sentence for a
 * profile without samples. Pure; any thread.
 */
#include "ui/text/text.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "sampler/count/count.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"

/* Return the ASCII output of printf as safe text. */
static struct safe_text ascii(char *buf, int n)
{
	n = n < 0 ? 0 : n >= FORMAT_MAX ? FORMAT_MAX - 1 : n;
	buf[n] = '\0';
	return (struct safe_text){ buf, (uint16_t)n, (uint16_t)n };
}

struct safe_text format_count(char buf[static FORMAT_MAX], double n)
{
	char digits[32];
	int size, at = 0;

	if (!(n > 0))
		n = 0;
	size = snprintf(digits, sizeof(digits), "%.0f", fmin(n, 1e18));
	for (int i = 0; i < size; i++) {
		if (i && (size - i) % 3 == 0)
			buf[at++] = ',';
		buf[at++] = digits[i];
	}
	return ascii(buf, at);
}

struct safe_text format_percent(char buf[static FORMAT_MAX], double share)
{
	double pct = share > 0 ? fmin(share * 100, 9999) : 0;

	/* 99.995 would print as 100.00, one cell too many. */
	return ascii(buf, snprintf(buf, FORMAT_MAX, pct < 99.995 ? "%.2f" : "%.1f", pct));
}

struct safe_text format_tasks(char buf[static FORMAT_MAX], double tasks)
{
	if (tasks >= 999.995)
		return format_count(buf, tasks);
	return ascii(buf, snprintf(buf, FORMAT_MAX, "%.2f", fmax(tasks, 0)));
}

struct safe_text format_ratio(char buf[static FORMAT_MAX], double value, unsigned int digits)
{
	if (isnan(value))
		return TEXT("-");
	return ascii(buf,
		     snprintf(buf, FORMAT_MAX, "%.*f", (int)digits, fmin(fmax(value, 0), 99999)));
}

struct safe_text format_share(char buf[static FORMAT_MAX], double share)
{
	double pct = share > 0 ? fmin(share * 100, 9999) : 0;

	/* Round down: 99.7 % is not 100 %. */
	if (pct > 99 && pct < 100)
		return ascii(buf, snprintf(buf, FORMAT_MAX, "%.1f%%", floor(pct * 10) / 10));
	/* And 0.2 % is not none: the rest of 99.8 %. */
	if (pct > 0 && pct < 0.5)
		return ascii(buf, snprintf(buf, FORMAT_MAX, "%.1f%%", ceil(pct * 10 - 1e-9) / 10));
	return ascii(buf, snprintf(buf, FORMAT_MAX, "%.0f%%", pct));
}

struct safe_text format_clock(char buf[static FORMAT_MAX], uint64_t ns)
{
	uint64_t s = ns / 1000000000u;

	if (s >= 100 * 3600)
		return ascii(buf,
			     snprintf(buf, FORMAT_MAX, "%" PRIu64 "d %02u:%02u", s / 86400,
				      (unsigned int)(s / 3600 % 24), (unsigned int)(s / 60 % 60)));
	return ascii(buf, snprintf(buf, FORMAT_MAX, "%02u:%02u:%02u", (unsigned int)(s / 3600),
				   (unsigned int)(s / 60 % 60), (unsigned int)(s % 60)));
}

/* Print with one decimal below 10, unless that is 0. */
static struct safe_text with_unit(char buf[static FORMAT_MAX], double value, char unit)
{
	bool whole = value >= 9.95 || fabs(value - round(value)) < 0.05;

	return ascii(buf, snprintf(buf, FORMAT_MAX, "%.*f%c", whole ? 0 : 1, value, unit));
}

struct safe_text format_span(char buf[static FORMAT_MAX], uint64_t ns)
{
	double s = (double)ns / 1e9;

	if (s < 0.9995)
		return ascii(buf, snprintf(buf, FORMAT_MAX, "%.0fms", s * 1000));
	if (s >= 48 * 3600)
		return with_unit(buf, s / 86400, 'd');
	if (s >= 2 * 3600)
		return with_unit(buf, s / 3600, 'h');
	if (s >= 120)
		return ascii(buf, snprintf(buf, FORMAT_MAX, "%.0fm", s / 60));
	return ascii(buf,
		     snprintf(buf, FORMAT_MAX, fabs(s - round(s)) < 0.05 ? "%.0fs" : "%.1fs", s));
}

struct safe_text format_age(char buf[static FORMAT_MAX], uint64_t ns)
{
	uint64_t s = (ns + 500000000) / 1000000000;
	unsigned int seconds = (unsigned int)(s % 60), minutes = (unsigned int)(s / 60 % 60);

	if (s < 120)
		return format_span(buf, ns);
	if (s < 7200)
		return ascii(buf, snprintf(buf, FORMAT_MAX, "%" PRIu64 "m %us", s / 60, seconds));
	return ascii(buf,
		     snprintf(buf, FORMAT_MAX, "%" PRIu64 "h %um %us", s / 3600, minutes, seconds));
}

struct safe_text format_memory(char buf[static FORMAT_MAX], uint64_t kb)
{
	if (kb < 1024)
		return ascii(buf, snprintf(buf, FORMAT_MAX, "%u KB", (unsigned int)kb));
	if (kb < 10 * 1024)
		return ascii(buf, snprintf(buf, FORMAT_MAX, "%.1f MB", (double)kb / 1024));
	return ascii(buf, snprintf(buf, FORMAT_MAX, "%.0f MB", (double)kb / 1024));
}

struct safe_text format_process(char *buf, size_t size, struct safe_text comm, pid_t pid)
{
	assert(buf && size);
	return pid < 0 ? text_format(buf, size, "%s", comm.str)
		       : text_format(buf, size, "%s[%d]", comm.str, (int)pid);
}

struct safe_text format_folded(char buf[static FORMAT_MAX * 2], struct safe_text t)
{
	char folded[FORMAT_MAX * 2];
	size_t n = 0;

	for (size_t i = 0; i < t.size && n < sizeof(folded); i++) {
		bool digit = t.str[i] >= '0' && t.str[i] <= '9';

		if (!digit)
			folded[n++] = t.str[i];
		else if (!n || folded[n - 1] != '*')
			folded[n++] = '*';
	}
	return text_sanitise(buf, FORMAT_MAX * 2, folded, n);
}

/*
 * Which rate of an event to show. Runs on: the main thread.
 */

bool event_rate_is_frequency(const struct profile_event *ev)
{
	const struct event *e = &ev->event;

	return ev->want_hz > 0 && e->type != PERF_TYPE_TRACEPOINT &&
	       e->type != PERF_TYPE_BREAKPOINT && (e->type != PERF_TYPE_SOFTWARE || e->clock);
}

double event_rate_per_s(const struct profile *p, uint32_t index)
{
	uint64_t nr = 0;

	if (!p->cpu_events || !p->interval_ns)
		return NAN;
	for (uint32_t i = 0; i < p->nr_cpus; i++)
		nr += p->cpu_events[i * p->nr_events + index].samples;
	return (double)nr * 1e9 / (double)p->interval_ns;
}

/*
 * Parse numbers strictly: strtod() and strtoull() accept signs, spaces,
 * "0x1p3", "nan" and "inf", and wrap around.
 */

int number_u64(const char *text, size_t size, uint64_t min, uint64_t max, uint64_t *out)
{
	uint64_t value = 0;

	assert(text && out && min <= max);
	if (!size)
		return -EINVAL;
	for (size_t i = 0; i < size; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -EINVAL;
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value))
			return -EINVAL;
	}
	if (value < min || value > max)
		return -EINVAL;
	*out = value;
	return 0;
}

int number_pids(const char *text, pid_t **out, uint32_t *nr)
{
	for (const char *s = text;; s++) {
		size_t size = strcspn(s, ",");
		uint64_t pid;

		if (number_u64(s, size, 1, 1 << 22, &pid))
			return -EINVAL;
		if (*nr == NUMBER_PIDS_MAX)
			return -E2BIG;
		*out = xrealloc_array(*out, *nr + 1, sizeof(**out));
		(*out)[(*nr)++] = (pid_t)pid;
		s += size;
		if (!*s)
			return 0;
	}
}

bool number_screen_size(const char *text, size_t size, unsigned int max, unsigned int *cols,
			unsigned int *rows)
{
	const char *x = memchr(text, 'x', size);
	uint64_t c, r;

	assert(text && cols && rows);
	if (!x || number_u64(text, (size_t)(x - text), 1, max, &c) ||
	    number_u64(x + 1, size - (size_t)(x - text) - 1, 1, max, &r))
		return false;
	*cols = (unsigned int)c;
	*rows = (unsigned int)r;
	return true;
}

/*
 * The sentence for a profile without samples. Runs on: the main thread.
 */

/* Return whether a task has samples of the event whenever it runs. */
static bool is_of_running(const struct event *ev)
{
	return ev->clock ||
	       (ev->type == PERF_TYPE_HARDWARE && (ev->config == PERF_COUNT_HW_CPU_CYCLES ||
						   ev->config == PERF_COUNT_HW_INSTRUCTIONS));
}

const char *idle_samples(const struct profile *p, uint32_t event)
{
	const struct event *ev = event < p->nr_events ? &p->events[event].event : NULL;

	assert(event < p->nr_events);
	return !ev || !ev->name[0] || is_of_running(ev) ? "samples" : ev->wait ? "waits" : ev->name;
}

struct safe_text idle_text(const struct profile *p, uint32_t event, char buf[static IDLE_MAX])
{
	double seconds = (double)p->window_ns / 1e9;
	const char *samples = idle_samples(p, event);
	bool ran = strcmp(samples, "samples") != 0; /* or not: it says nothing about that */
	char when[48];

	if (p->window == PROFILE_WINDOW)
		snprintf(when, sizeof(when),
			 p->past_end_ns ? "in these %.*f s" : "in the last %.*f s", seconds < 2,
			 seconds);
	else
		snprintf(when, sizeof(when), "yet");
	if (p->target_gone)
		return text_format(buf, IDLE_MAX, "%s: all processes have exited", p->target);
	if (!strcmp(p->target, "system") || p->ring_size == 0)
		return text_format(buf, IDLE_MAX, "no %s in this window", samples);
	if (p->target_empty)
		return text_format(buf, IDLE_MAX, "%s has no process", p->target);
	if (ran)
		return text_format(buf, IDLE_MAX, "no %s of %s %s", samples, p->target, when);
	if (!strncmp(p->target, "pid ", 4) || !strncmp(p->target, "thread ", 7))
		return text_format(buf, IDLE_MAX, "%s did not run %s: asleep, stopped or waiting",
				   p->target, when);
	if (!strncmp(p->target, "name ", 5))
		return text_format(buf, IDLE_MAX, "no process that matches '%s' ran %s",
				   p->target + 5, when);
	return text_format(buf, IDLE_MAX, "no process of %s ran %s", p->target, when);
}
