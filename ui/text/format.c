// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Format figures as text. Pure; any thread.
 */
#include "ui/text/format.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

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

static bool begins(const char *at, const char *word)
{
	return !strncmp(at, word, strlen(word));
}

/* Return the end of the arguments that begin at @at, a '<'; NULL if they do not end. */
static const char *skip_arguments(const char *at)
{
	unsigned int depth = 0;

	for (; *at; at++) {
		if (*at == '<')
			depth++;
		else if (*at == '>' && at[-1] != '-' && at[-1] != '=' && !--depth)
			return at + 1;
	}
	return NULL;
}

/*
 * Return whether template arguments begin at @at, a '<' of @name: not for operators,
 * "<impl X>" and "<lambda()>".
 */
static bool is_template(const char *name, const char *at)
{
	static const char operator[] = "operator";
	const size_t size = sizeof(operator) - 1;
	const char *word = at - (at > name && at[-1] == '<');

	if ((size_t)(word - name) >= size && !memcmp(word - size, operator, size))
		return false;
	if (at == name || begins(at, "<lambda") || begins(at, "<impl ") || begins(at, "<unnamed"))
		return false;
	return at[-1] == ':' || at[-1] == '_' || isalnum((unsigned char)at[-1]) || at[-1] & 0x80;
}

struct safe_text format_name(char buf[static TEXT_MAX], struct safe_text name)
{
	const char *at = name.str, *next;
	char out[TEXT_MAX];
	size_t n = 0;

	if (!memchr(name.str, '<', name.size) || name.size >= sizeof(out))
		return name;
	while (*at) {
		out[n++] = *at;
		if (*at++ != '<' || !is_template(name.str, at - 1))
			continue;
		next = skip_arguments(at - 1);
		if (!next)
			return name;
		out[n++] = '>';
		at = next;
	}
	return text_sanitise(buf, TEXT_MAX, out, n);
}

struct safe_text format_process(char *buf, size_t size, struct safe_text comm, pid_t pid)
{
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
