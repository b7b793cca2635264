/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One writer for each format: snapshot → bytes. Pure; any thread.
 *
 * A writer returns 0, or -ENOMEM beside out.failed, and escapes all texts for its format.
 */
#ifndef UI_EXPORT_WRITERS_H
#define UI_EXPORT_WRITERS_H

#include "ui/export/out.h"
#include "ui/export/snapshot.h"

/* pprof's profile.proto, with gzip. */
int pprof_write(struct out *o, const struct snapshot *s);
/* OpenTelemetry's ProfilesData; its layout still changes. */
int otlp_write(struct out *o, const struct snapshot *s);
/* speedscope's file format: one profile per process, and one of all. */
int speedscope_write(struct out *o, const struct snapshot *s);
/* One line per stack: comm;root;...;leaf weight. */
int folded_write(struct out *o, const struct snapshot *s);
/* The processed format 60 of the Firefox profiler: one thread per task. */
int firefox_write(struct out *o, const struct snapshot *s);
/* A flame graph, without scripts. */
int svg_write(struct out *o, const struct snapshot *s);
/* A page with flame graph, functions and account; needs no network. */
int html_write(struct out *o, const struct snapshot *s);

#endif
