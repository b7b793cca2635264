/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Exports: the shown part of a profile as a file of another program's format.
 *
 * export_write() is pure and takes some ms for each MiB: not for the main thread.
 */
#ifndef UI_EXPORT_EXPORT_H
#define UI_EXPORT_EXPORT_H

#include "ui/cli/config.h"
#include "ui/cli/file_work.h"
#include "ui/export/out.h"
#include "ui/export/snapshot.h"

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
const char *export_name(enum export_format format);
/* Return the usual ending of a file: ".pb.gz". */
const char *export_ending(enum export_format format);
/* Return its description in some words. */
const char *export_help(enum export_format format);

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
