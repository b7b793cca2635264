/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From a place to a name, in the background.
 *
 * The loader thread serves three kinds of questions, none of which a sampler
 * or the UI ever waits for: /proc/PID of a new process (maps_ask), the image
 * of an object (object_want), the symbol of a place (every place, in order of
 * id). A symbol is a function: its id is the identity that counts are summed
 * by and that the UI keeps its selection by. Ids are dense and append-only.
 *
 * Code without a symbol gets one made of what is known: the FDE that covers
 * it ("libfoo.so+0x1230"), else the address itself.
 */
#ifndef SYMBOLS_SYMBOLS_H
#define SYMBOLS_SYMBOLS_H

#include "symbols/base/base.h"
#include "symbols/object/object.h"
#include "symbols/process/maps.h"
#include "symbols/name/places.h"
#include "symbols/name/symbol.h"

struct symbols;
struct details;
struct listing;

struct symbols_stats {
	uint64_t nr_images, nr_failed;	       /* objects loaded, not loadable */
	uint64_t nr_evicted;		       /* times that an image left for want of room */
	size_t image_memory, image_memory_max; /* bytes that images take, and may take */
	uint64_t nr_named, nr_unnamed;	       /* places with a name, with an address only */
	uint64_t nr_waiting;		       /* places not looked at yet */
	uint64_t nr_lines, nr_lines_waiting;   /* places with source lines; not looked up yet */
	size_t memory;			       /* bytes held by images and names */
};

/* All three tables are borrowed and must outlive the result. */
int symbols_new(struct symbols **out, struct places *places, struct objects *objects,
		struct maps *maps, struct err *e);
/*
 * Before the start: a recording. Its pids may be anybody's by now, so only files
 * count: those here, or below @root (borrowed; NULL: here), a copy of the files
 * of the machine that was recorded.
 */
void symbols_recorded(struct symbols *s, const char *root);
struct recorded_kernel;
struct kernel_identity;
/* After that, before the start: which kernel it was recorded on (kernel.h). */
void symbols_recorded_kernel(struct symbols *s, const struct kernel_identity *was);
/* Side-band of a recording: where that kernel's code was. */
void symbols_kernel_was(struct symbols *s, const struct recorded_kernel *told);
/* Before the start: a recording by another clock than CLOCK_MONOTONIC. */
void symbols_other_clock(struct symbols *s);
/*
 * Side-band: the kernel made code (a BPF program, a trampoline) called @name,
 * foreign bytes; it is gone. Not while the symbols go.
 */
void symbols_on_kernel_code(struct symbols *s, uint64_t start, uint32_t size, bool bpf,
			    const char *name, size_t name_size);
void symbols_on_kernel_gone(struct symbols *s, uint64_t start, uint32_t size);
int symbols_start(struct symbols *s, struct err *e);
/* Stop and join the loader thread (bounded: a hanging file is left behind). */
void symbols_stop(struct symbols *s);
/* False: a thread was left behind; the maps, places and objects are its own from now on. */
bool symbols_free(struct symbols *s);

/* Any thread, async-signal-safe: there is something to do (one eventfd write). */
void symbols_wake(struct symbols *s);
/* Do all that is asked, now, on the caller's thread (tests and replay; only without symbols_start).
 */
void symbols_run(struct symbols *s);
/* The same of what stacks wait for: processes and objects. Names can wait. */
void symbols_run_objects(struct symbols *s);
/* There are samples of the kernel: let its list be read while others are worked on. */
void symbols_expect_kernel(struct symbols *s);

/* Any thread; NULL for ids never given out. */
const struct symbol *symbols_at(const struct symbols *s, uint32_t id);
uint32_t symbols_nr(const struct symbols *s);
/*
 * Any thread, lock-free: the functions at place @place, innermost first, where
 * debug information tells; else NULL. Comes later than the name; lives as long
 * as the table.
 */
const struct symbol_frame *symbols_source(const struct symbols *s, uint32_t place, uint32_t *nr);
/* Any thread: a source file's path; TEXT("") for ids never given out. */
struct safe_text symbols_file(const struct symbols *s, uint32_t id);
uint32_t symbols_nr_files(const struct symbols *s);
/* Before the start: read no debug information (--no-inline). */
void symbols_no_inline(struct symbols *s);
/* Before the start: bytes that images may take (--symbol-memory). */
void symbols_limit_memory(struct symbols *s, size_t max);
void symbols_stats(const struct symbols *s, struct symbols_stats *out);

/* The desk for what /proc tells of processes (details.h); NULL in a recording. */
struct details *symbols_details(struct symbols *s);

/*
 * Any thread: fetch the debug file of an object from debuginfod, in the
 * background; once more, while it is under way: cancel.
 */
void symbols_fetch(struct symbols *s, uint32_t object);
/* Any thread: what there is to say of it; false: nothing new. */
bool symbols_fetch_news(struct symbols *s, char *buf, size_t size);

/* Any thread: have the instructions of a function read; the newest question replaces the others. */
void symbols_want_code(struct symbols *s, uint32_t symbol);
/* What was read, the caller's reference; NULL: not yet. */
struct listing *symbols_code(struct symbols *s, uint32_t symbol);

#endif
