/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parsers of the kinds of events, for event.c only: each parses a part of the text and fills in
 * the event. @root is put before /sys ("" but in tests).
 *
 * Any thread.
 */
#ifndef SAMPLER_EVENT_EVENT_PARSE_H
#define SAMPLER_EVENT_EVENT_PARSE_H

#include "sampler/event/event_type.h"

/* event.c */

/* Add "uk", "ppp" to the modifiers of the event. 0, or -EINVAL with a message. */
int event_add_modifiers(struct event *ev, const char *text, struct err *e);

/* pmu.c */

/* "cpu" and "event=0x3c,umask=1": 0 or -EINVAL with a sentence. */
int pmu_parse(const char *root, struct event *ev, const char *pmu, const char *terms,
	      struct err *e);
/*
 * Write the group of events of the top-down method's level 1 that a PMU here has, as text. False:
 * none has them.
 */
bool pmu_topdown(const char *root, char *dst, size_t size);
/* Terms of any event: "period=1000", "freq=99", "name=x". */
int pmu_parse_terms(struct event *ev, const char *terms, struct err *e);
/* The type of a PMU; false if there is none of that name. */
bool pmu_type(const char *root, const char *pmu, uint32_t *type);
/* Read the first line of a small file; false if it cannot be read. */
bool pmu_read_line(const char *path, char *dst, size_t size);
/* The same for a path below the open folder @dir. */
bool pmu_read_line_at(int dir, const char *path, char *dst, size_t size);
/* A word that may be part of a path: letters, digits, '_', '-', '.', no "..". */
bool pmu_is_word(const char *text);
/* Call @fn with "msr/tsc/", for each event of each PMU. */
void pmu_each(const char *root, void (*fn)(void *ctx, const char *name, const char *pmu),
	      void *ctx);

/* tracepoint.c */

/* "sched:sched_switch". 0, -ENOENT: there is no such one (no sentence), -EINVAL with a sentence. */
int tracepoint_parse(const char *root, struct event *ev, const char *system, const char *name,
		     struct err *e);
void tracepoint_each(const char *root, void (*fn)(void *ctx, const char *name), void *ctx);

/* libpfm.c */

/*
 * "pfm:NAME:ATTRIBUTES", as libpfm4 has them; false: it is none. As probe_parse(); @text is cut
 * where modifiers begin that the library does not know.
 */
bool libpfm_parse(struct event *ev, char *text, const char **modifiers, int *code, struct err *e);
/* Call @fn with each event of this CPU that the library knows, and its description. */
typedef void libpfm_fn(void *ctx, const char *name, const char *description);
void libpfm_each(const char *root, libpfm_fn *fn, void *ctx);

/* probe.c */

/*
 * "mem:…", "uprobe:…", "uretprobe:…", "kprobe:…",
 * "kretprobe:…": true, *@code 0 or -EINVAL with a
 * sentence, and where its modifiers begin (NULL: none); false: it is none of these.
 */
bool probe_parse(const char *root, struct event *ev, const char *text, const char **modifiers,
		 int *code, struct err *e);

#endif
