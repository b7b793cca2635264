/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The background of symbols: two threads, one loop each.
 *
 * "asker" answers questions about /proc/PID, because stacks wait for them;
 * "loader" names places, and has helpers (helper.h) read the files of objects:
 * a large object, or a file system that hangs, holds up no stack and no name.
 */
#ifndef SYMBOLS_LOADER_H
#define SYMBOLS_LOADER_H

#include "symbols/source/chains.h"
#include "symbols/source/lines.h"
#include "symbols/process/maps.h"
#include "symbols/name/naming.h"
#include "symbols/object/image_cache.h"
#include "symbols/name/places.h"
#include "symbols/name/symtab.h"

struct loader;

/* All borrowed; @maps may be NULL (replay). */
int loader_new(struct loader **out, struct places *places, struct objects *objects,
	       struct maps *maps, struct symtab *symtab, struct err *e);
/* False: a thread still hangs in a file; then nothing of it or of @symtab may be freed. */
bool loader_free(struct loader *l);

/* Before the start: no lines, no inlined functions. */
void loader_no_inline(struct loader *l);
/* Before the start: bytes that images may take. */
void loader_limit_memory(struct loader *l, size_t max);
/* What is known of the source of places; any thread. */
const struct chains *loader_chains(const struct loader *l);
/* Before the start: open nothing through /proc/PID, only files here or below @root. */
void loader_recorded(struct loader *l, const char *root);
/* After that, before the start: which kernel it was; the code of the kernel was at these places. */
void loader_recorded_kernel(struct loader *l, const struct kernel_identity *was);
void loader_kernel_was(struct loader *l, const struct recorded_kernel *told);
/* Names of the kernel will be asked for: read its list beside. */
void loader_expect_kernel(struct loader *l);
/* Before the start: the samples' times are not of CLOCK_MONOTONIC. */
void loader_other_clock(struct loader *l);
struct fetch_desk;
/* Where debug files are asked for. */
struct fetch_desk *loader_fetch(struct loader *l);
struct ksyms;
/* What the side-band tells of kernel code. */
struct ksyms *loader_ksyms(struct loader *l);
int loader_start(struct loader *l, struct err *e);
/* At most two seconds; a thread that hangs is left behind. */
void loader_stop(struct loader *l);
/* Async-signal-safe. */
void loader_wake(struct loader *l);
/* All that is asked, now, on this thread; not between start and stop. */
void loader_run(struct loader *l);
/* Of that the objects and processes alone: names can wait. */
void loader_run_objects(struct loader *l);

/* What /proc tells of processes; NULL: nothing (replay, or before the start). */
struct details *loader_details(struct loader *l);

struct code_desk;
/* Where the instructions of functions are asked for. */
struct code_desk *loader_code(struct loader *l);

struct symbols_stats;
/* Any thread. */
void loader_stats(const struct loader *l, struct symbols_stats *out);

#endif
