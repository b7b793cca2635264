/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Format figures as text, independent of the locale. Results are in the
 * caller's buffer. Pure; any thread.
 */
#ifndef UI_TEXT_FORMAT_H
#define UI_TEXT_FORMAT_H

#include <stdint.h>
#include <sys/types.h>

#include "symbols/base/text.h"

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

/*
 * Return @name without template arguments: "Engine<>::crank<>", or @name if there are none
 * or they are malformed. @name: clean.
 */
struct safe_text format_name(char buf[static TEXT_MAX], struct safe_text name);

/* "make[812]"; without a PID (below 0) the name alone. @comm: clean. */
struct safe_text format_process(char *buf, size_t size, struct safe_text comm, pid_t pid);

/* Replace each run of digits by '*', so that threads of one pool have the same name. @t: clean. */
struct safe_text format_folded(char buf[static FORMAT_MAX * 2], struct safe_text t);

#endif
