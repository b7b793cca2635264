/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The background of symbols: two threads, one loop each.
 *
 * "process reader" reads /proc/PID, because stacks wait for it; "loader" names places, and
 * has helpers (helper.h) read the files of objects: a large object, or a file
 * system that hangs, delays no stack and no name.
 */
#ifndef SYMBOLS_LOADER_H
#define SYMBOLS_LOADER_H

#include "symbols/source/chains.h"
#include "symbols/dwarf/dwarf.h"
#include "symbols/process/maps.h"
#include "symbols/name/naming.h"
#include "symbols/object/image_cache.h"
#include "symbols/name/places.h"
#include "symbols/name/symtab.h"
#include "symbols/stats.h"

struct loader;

/* All borrowed; @maps may be NULL (replay). */
int loader_new(struct loader **out, struct places *places, struct objects *objects,
	       struct maps *maps, struct symtab *symtab, struct err *e);
/* Free. False: a thread hangs in a file; then neither the loader nor @symtab may be freed. */
bool loader_free(struct loader *l);

/* Before the start: no lines, no inlined functions. */
void loader_no_inline(struct loader *l);
/* Before the start: no lines. */
void loader_no_lines(struct loader *l);
void loader_no_java(struct loader *l);
/* As symbols_java_replay() and symbols_java_settle(). */
void loader_java_replay(struct loader *l, const struct object *memory,
			const struct code_text *text);
bool loader_java_settle(struct loader *l, uint64_t time_ns);
/* Before the start: limit the bytes of images. */
void loader_limit_memory(struct loader *l, size_t max);
/* Return the source lines of the places of loader_new(); any thread. */
const struct chains *loader_chains(const struct loader *l);
/* Before the start: a recording. Open nothing through /proc/PID, only files here or below @root. */
void loader_recorded(struct loader *l, const char *root);
/* After loader_recorded(), before the start: the recorded kernel; the addresses of its code. */
enum kernel_match loader_recorded_kernel(struct loader *l, const struct kernel_identity *was);
void loader_kernel_module(struct loader *l, const char *file, size_t size, uint64_t start,
			  uint64_t end);
void loader_kernel_was(struct loader *l, const struct recorded_kernel *told);
/* Names of the kernel will be requested: read its symbols in the background. */
void loader_expect_kernel(struct loader *l);
/* Before the start: sample times are not of CLOCK_MONOTONIC. */
void loader_other_clock(struct loader *l);
struct fetch_desk;
/* Return the queue of fetches. */
struct fetch_desk *loader_fetch(struct loader *l);
struct ksyms;
/* Side-band about kernel code. */
struct ksyms *loader_ksyms(struct loader *l);
/* Code of interpreters, and the object that all its places are in. */
struct codes *loader_codes(struct loader *l);
uint32_t loader_script(const struct loader *l);
/* Before the start: wake eventfd @fd whenever a process is found to be an interpreter. */
void loader_watch_interpreters(struct loader *l, int fd);
/* Return how many were found. */
uint32_t loader_nr_interpreters(const struct loader *l);
/* The object of the kinds of waits: enum wait_kind is the offset in it. */
uint32_t loader_wait(const struct loader *l);
int loader_start(struct loader *l, struct err *e);
/*
 * Builder: give the loader the next generation of places. It frees the table before, the new one is
 * borrowed. Not before loader_takes_places(): it has taken the last one.
 */
bool loader_takes_places(const struct loader *l);
struct places_move;
void loader_hand_places(struct loader *l, struct places_move *m);
/* Stop within two seconds; a thread that hangs is abandoned. */
void loader_stop(struct loader *l);
/* Async-signal-safe. */
void loader_wake(struct loader *l);
/* Do all requested work on this thread; not between start and stop. */
void loader_run(struct loader *l);
/* Have it return early, from now on. Any thread. */
void loader_stop_run(struct loader *l);
/* Load only objects and processes, not names. */
void loader_run_objects(struct loader *l);

/* Return the source of process details; NULL: none (replay, or before the start). */
struct details *loader_details(struct loader *l);

struct code_desk;
/* Return the queue of requests for instructions. */
struct code_desk *loader_code(struct loader *l);

/* Any thread. */
void loader_stats(const struct loader *l, struct symbols_stats *out);

#endif
