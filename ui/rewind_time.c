// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Times of the past as typed. Runs on: the main thread.
 */
#include "ui/rewind_time.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ui/text/number.h"
#include "ui/view/header_strip.h"

#define SECOND 1000000000ULL
#define MINUTE (60 * SECOND)

/* The clock of the strip: of this moment, of the end of --keep, or of a recording. */
enum clock { CLOCK_NOW, CLOCK_KEPT, CLOCK_RECORDED };

static enum clock clock_of(const struct ui_state *st)
{
	return !st->config->replayed		? CLOCK_NOW
	       : st->rewind.strip->last_real_ns ? CLOCK_KEPT
						: CLOCK_RECORDED;
}

/* Parse "14:03", "1403" or "14:03:22"; with @hours also "14". Return how long that time is; 0:
 * invalid. */
static uint64_t parse_clock(const char *text, bool hours, struct tm *tm)
{
	unsigned int h, m = 0, s = 0;
	bool digits = strlen(text) == 4 && strspn(text, "0123456789") == 4;
	int used = 0, nr = sscanf(text, digits ? "%2u%n%2u%n" : "%2u%n:%2u%n:%2u%n", &h, &used, &m,
				  &used, &s, &used);

	if (nr < (hours ? 1 : 2) || text[used] || h > 23 || m > 59 || s > 59)
		return 0;
	tm->tm_hour = (int)h;
	tm->tm_min = (int)m;
	tm->tm_sec = (int)s;
	return nr > 2 ? SECOND : MINUTE;
}

/* Return how long before the end of the strip that time of the day was last. */
static uint64_t clock_ago(const struct strip *s, const struct tm *wanted)
{
	time_t end = (time_t)(s->last_real_ns / SECOND), at;
	struct tm tm;

	localtime_r(&end, &tm);
	tm.tm_hour = wanted->tm_hour;
	tm.tm_min = wanted->tm_min;
	tm.tm_sec = wanted->tm_sec;
	tm.tm_isdst = -1;
	at = mktime(&tm);
	if (at > end) {
		tm.tm_mday--;
		tm.tm_isdst = -1;
		at = mktime(&tm);
	}
	return at > end ? UINT64_MAX : (uint64_t)(end - at) * SECOND + s->last_real_ns % SECOND;
}

int rewind_time_parse(const struct ui_state *st, const char *text, uint64_t *time_ns,
		      uint64_t *span_ns)
{
	const struct strip *s = st->rewind.strip;
	enum clock clock = clock_of(st);
	uint64_t all = s->last_ns - s->first_ns, ns;
	bool back = clock != CLOCK_RECORDED;
	struct tm tm;

	*span_ns = s->last_real_ns ? parse_clock(text, clock == CLOCK_KEPT, &tm) : 0;
	if (*span_ns) {
		ns = clock_ago(s, &tm);
	} else {
		back |= *text == '-';
		text += *text == '-';
		if (time_parse(text, strlen(text), &ns))
			return -EINVAL;
	}
	if (ns > all && ns - all > s->column_ns)
		return -ERANGE;
	ns = MIN(ns, all);
	*time_ns = back ? s->last_ns - ns : s->first_ns + ns;
	return 0;
}

void rewind_time_hint(const struct ui_state *st, const char *text, char *buf, size_t size)
{
	static const char *const examples[] = {
		[CLOCK_NOW] = "as in 30s, 5m (ago), 1403 or 14:03:22",
		[CLOCK_KEPT] = "as in 3 (03:00), 1403, 14:03:22 or -30s",
		[CLOCK_RECORDED] = "as in 5s (from the start) or -5s",
	};
	const struct strip *s = st->rewind.strip;
	char first[32], last[32];
	uint64_t at, span;
	int code;

	snprintf(buf, size, "no history yet");
	if (!s)
		return;
	code = *text ? rewind_time_parse(st, text, &at, &span) : -EINVAL;
	header_strip_moment(st, code ? s->first_ns : at, first, sizeof(first));
	header_strip_moment(st, s->last_ns, last, sizeof(last));
	if (code)
		snprintf(buf, size, "%s; the history is %s to %s",
			 code == -ERANGE ? "too early" : examples[clock_of(st)], first, last);
	else
		snprintf(buf, size, "= %s", first);
}
