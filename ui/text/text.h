/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Figures and texts of the screen and of batch output.
 *
 * The caller owes: buffers of the given sizes.
 *
 * The room does: formats numbers as htop and perf do, parses numbers strictly, matches searches and
 * filters.
 *
 * Not for: foreign bytes: struct safe_text (symbols/base/text.h) only.
 */
#ifndef UI_TEXT_TEXT_H
#define UI_TEXT_TEXT_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "symbols/base/base.h"
#include "symbols/base/text.h"

struct profile;
struct profile_event;
struct profile_function;
struct strip_matcher;
struct users;

/* Which rate of an event to show. Pure. */

/*
 * Test whether the got rate of @ev compares with a wanted one: it has one, and counts while a CPU
 * works. Tracepoints and software events happen when they happen: a rate per busy second says
 * nothing.
 */
bool event_rate_is_frequency(const struct profile_event *ev);
/* Return the samples of an event per second of the tick, on all CPUs; NAN for a recording. */
double event_rate_per_s(const struct profile *p, uint32_t index);

/*
 * Format figures as text, independent of the locale. Results are in the
 * caller's buffer. Pure; any thread.
 */

#define FORMAT_MAX 48

/* "0", "3,441", "1,234,567". */
struct safe_text format_count(char buf[static FORMAT_MAX], double n);
/* "18.42", "100.0": at most five cells for 0..1; more digits if small. */
struct safe_text format_percent(char buf[static FORMAT_MAX], double share);
/* Task-seconds per second: "0.94", "1,003". At most six cells. */
struct safe_text format_tasks(char buf[static FORMAT_MAX], double tasks);
/* "1.23", "45.0"; "-": not known (NAN). */
struct safe_text format_ratio(char buf[static FORMAT_MAX], double value, unsigned int digits);
/* "63%"; "0.2%" and "99.8%" near the ends. */
struct safe_text format_share(char buf[static FORMAT_MAX], double share);
/* "00:03:12"; above 99 hours "4d 03:12". */
struct safe_text format_clock(char buf[static FORMAT_MAX], uint64_t ns);
/* "250ms", "1.5s", "5s", "2m"; from two hours "2.5h", "24h", from two days "3d". */
struct safe_text format_span(char buf[static FORMAT_MAX], uint64_t ns);
/* The same below two minutes; then to the second: "5m 20s", "3h 5m 20s". */
struct safe_text format_age(char buf[static FORMAT_MAX], uint64_t ns);
/* "41 MB"; @kb in KiB. */
struct safe_text format_memory(char buf[static FORMAT_MAX], uint64_t kb);
/* "make[812]"; without a PID (below 0) the name alone. @comm: clean. */
struct safe_text format_process(char *buf, size_t size, struct safe_text comm, pid_t pid);
/* Replace each run of digits by '*', so that threads of one pool have the same name. @t: clean. */
struct safe_text format_folded(char buf[static FORMAT_MAX * 2], struct safe_text t);

/* The sentence for a profile without samples. Pure. */

#define IDLE_MAX 320

/* Return why @p has no samples, by the kind of its target; clean. */
struct safe_text idle_text(const struct profile *p, uint32_t event, char buf[static IDLE_MAX]);
/* Return the word for samples of the event: "samples", "waits", "page-faults". */
const char *idle_samples(const struct profile *p, uint32_t event);

/*
 * Search and filter by a typed text: a substring (case-sensitive if it has a
 * capital letter), or a POSIX extended regex if it has metacharacters and
 * compiles. A leading '!' inverts the match. "python:" in front, or another
 * language, matches functions of that language only.
 *
 * Runs on: the main thread.
 */

#define MATCH_MAX 128

struct match {
	char text[MATCH_MAX]; /* as typed; "" matches everything */
	const char *language; /* of functions; NULL: any */
	size_t begin;	      /* of the pattern, behind '!' and language */
	bool negate;
	bool ignore_case;
	bool is_regex;
	bool bad;      /* has metacharacters but is matched literally, */
	char why[48];  /* because of that */
	regex_t regex; /* if is_regex */
};

void match_init(struct match *m);
void match_fini(struct match *m);
/* Set the text. */
void match_set(struct match *m, const char *text);

static inline bool match_active(const struct match *m)
{
	return m->text[m->negate] != '\0';
}

/* Return whether @t, which is not the name of a function, matches; this and the next two ignore
 * negate. */
bool match_finds(const struct match *m, struct safe_text t);
/* Return whether the name of @f matches. */
bool match_finds_name(const struct match *m, const struct profile_function *f);
/* Return whether name or module of @f match. */
bool match_finds_function(const struct match *m, const struct profile_function *f);

/* The same for the heat strip; any thread. */
extern const struct strip_matcher match_strip;

/*
 * Parse typed numbers strictly: the whole text, within a range, no sign, no
 * hexadecimal, no locale. Pure; any thread.
 */

/* Return whether @text is an id, not a name: digits alone. */
static inline bool number_is_id(const char *text)
{
	return *text && strspn(text, "0123456789") == strlen(text);
}

/* Parse decimal digits, @size bytes of @text. Return 0 or -EINVAL (then *out is unchanged). */
int number_u64(const char *text, size_t size, uint64_t min, uint64_t max, uint64_t *out);
/* Parse "100x30", columns and rows, 1 to @max each. Return false if invalid. */
bool number_screen_size(const char *text, size_t size, unsigned int max, unsigned int *cols,
			unsigned int *rows);

/* Range of the delay in seconds: option, settings and screen. */
#define NUMBER_DELAY_MIN 0.1
#define NUMBER_DELAY_MAX 86400.0
/* Rates (-F) where the kernel has no limit, and windows in seconds. */
#define NUMBER_HZ_MAX	  1e6
#define NUMBER_WINDOW_MAX 3600.0

/*
 * Parse "12,345" and append to the @nr ids of *out, which is reallocated. Return 0;
 * -EINVAL: invalid list; -E2BIG: more than NUMBER_PIDS_MAX. Ids before the error are in
 * the list.
 */
#define NUMBER_PIDS_MAX 1024

int number_pids(const char *text, pid_t **out, uint32_t *nr);

/*
 * Names of users from /etc/passwd only: a look-up by the network could block
 * the screen. Read once; the main thread.
 */

/* Read @path (NULL: /etc/passwd). Return NULL if unreadable: all users are then numbers. */
struct users *users_load(const char *path);
void users_free(struct users *u);
/* Return the name (clean), the number if there is no name, "?" for (uid_t)-1. @u may be NULL. */
struct safe_text users_name(const struct users *u, uid_t uid, char *buf, size_t size);
/* Find the number of a name. Return false if unknown. @u may be NULL. */
bool users_find(const struct users *u, const char *name, uid_t *uid);

/* Return whether @k0 of @n0 and @k1 of @n1 samples differ surely: |z| of two proportions > 2.576,
 * 99 %. */
static inline bool text_shares_differ(double k0, double n0, double k1, double n1)
{
	const double z_99 = 2.576;
	double p, z2;

	if (!(n0 > 0) || !(n1 > 0))
		return false;
	p = (k0 + k1) / (n0 + n1);
	if (!(p > 0) || !(p < 1))
		return false;
	z2 = (k1 / n1 - k0 / n0) * (k1 / n1 - k0 / n0) / (p * (1 - p) * (1 / n0 + 1 / n1));
	return z2 > z_99 * z_99;
}

#endif
