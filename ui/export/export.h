/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Exports: the shown part of a profile as a file of another program's format.
 *
 * The caller owes: a profile during the call; not the main thread for large ones.
 *
 * The room does: writes pprof, Firefox, speedscope, OTLP, folded, SVG, HTML from one snapshot;
 * pure, with progress and cancellation.
 *
 * Not for: sending them (ui/push, ui/serve).
 *
 * export_write() is pure and takes some ms for each MiB: not for the main thread.
 */
#ifndef UI_EXPORT_EXPORT_H
#define UI_EXPORT_EXPORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sampler/profile/profile.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "ui/cli/cli.h"
#include "ui/text/text.h"

/*
 * Bytes of an export in memory. After a failed allocation, or beyond @max, all calls do nothing
 * and @failed is set, so that a writer checks once, at its end.
 *
 * One thread; @permille may be read by others.
 */

struct out {
	char *data;
	size_t size, capacity;
	size_t max; /* of size, below OUT_MAX; 0: OUT_MAX */
	bool failed;
	atomic_uint *permille; /* progress; NULL: of no interest */
};

void out_fini(struct out *o);
void out_bytes(struct out *o, const void *bytes, size_t size);
/* Add trusted text: ours, never a name. */
void out_text(struct out *o, const char *text);
void out_format(struct out *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Add a number: an integer as such, others with up to @digits decimals; 0 for NaN. */
void out_number(struct out *o, double value, int digits);

struct snapshot_label {
	const char *name, *value;
};

/* Which samples are exported, and facts that are not in the profile. */
struct snapshot_scope {
	struct fold_filter filter;
	/* Only stacks with such a function; as in ui/text/text.h, "": all. */
	char find[MATCH_MAX];
	uint32_t module; /* only stacks with code of this profile_module.id; UINT32_MAX: all */
	char host[65];	 /* clean; "": unknown */
	char range[64];	 /* clean: "last 5.0 s" */
	char title[160]; /* clean: the process drilled into; "": the target is enough */
	char only[384];	 /* clean: "user www-data, cgroup web"; "": of all */
	/* Formats that compare show the differences from it; NULL: none. Borrowed; export_work()
	 * keeps it. */
	struct profile *baseline;
	char against[64]; /* clean: its file or moment */
	/* Of the sender of a pushed profile, for formats that have such; ASCII, borrowed. */
	const struct snapshot_label *labels;
	uint32_t nr_labels;
};

/* One place on a stack: a function, and its line if that is known. */
struct snapshot_frame {
	uint32_t function; /* index in the profile's functions */
	uint32_t line;	   /* index in its lines, or PROFILE_NO_LINE */
};

struct snapshot_stack {
	uint32_t first, nr; /* in calls; root first; 0: all frames are hidden */
	uint32_t task;	    /* index in the profile's tasks */
	double count, weight;
};

/* Processes in order of their weight, each with its stacks side by side. */
struct snapshot_process {
	uint32_t process;   /* index in the profile's processes */
	uint32_t first, nr; /* in stacks */
	double weight;
};

/* Compression by gzip. Pure; any thread. */

/* Append @from to @to, compressed. Return 0 or -ENOMEM. */
int gzip_write(struct out *to, const struct out *from);

/*
 * Escape a string for JSON, harmless also inside an HTML script element. (The format json of
 * --export is written by ui/cli/batch_ndjson.c.)
 *
 * Any thread.
 */

/* Add @t in quotes. */
void json_put(struct out *o, struct safe_text t);

enum export_format {
	EXPORT_HTML,
	EXPORT_SVG,
	EXPORT_PPROF,
	EXPORT_SPEEDSCOPE,
	EXPORT_FIREFOX,
	EXPORT_FOLDED,
	EXPORT_JSON,
	EXPORT_TEXT,
	EXPORT_OTLP,
	EXPORT_NR,
};

/* Return the format that the ending of @path means; EXPORT_NR: none. */
enum export_format export_format_of(const char *path);
/* Return the format by its name: "pprof"; EXPORT_NR: unknown. */
enum export_format export_format_parse(const char *name);
/* Return whether the format can show differences from a baseline. */
static inline bool export_compares(enum export_format format)
{
	return format == EXPORT_HTML || format == EXPORT_SVG || format == EXPORT_FOLDED;
}

/* A format in words. */
struct export_words {
	const char *name;   /* "pprof" */
	const char *ending; /* the usual one of a file: ".pb.gz" */
	const char *help;   /* a short description */
};

struct export_words export_words(enum export_format format);
/* Set @scope to all samples of the event @event. */
void export_scope_all(struct snapshot_scope *scope, uint32_t event);
/* Take the samples of --time, as on the screen; a file has the time itself, not its latency. */
void export_scope_time(struct snapshot_scope *scope, const struct profile *p,
		       enum ui_config_time time);
/* Return the event to export of a profile without a screen: the first with samples. */
uint32_t export_event(const struct profile *p);
/* Append the export to @o. Return 0 or -errno with a message. */
int export_write(struct out *o, const struct profile *p, const struct snapshot_scope *scope,
		 enum export_format format, struct err *e);
/*
 * Make work for file_worker_start(): export to @path, atomically. The work is an owner of @p, and
 * copies @path and @scope with its mask of tasks. NULL: no memory.
 */
struct file_work *export_work(struct profile *p, const struct snapshot_scope *scope,
			      enum export_format format, const char *path, bool replace);

#endif
