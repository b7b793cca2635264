/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of symbols/, and by tests; no other room includes it. */
#ifndef SYMBOLS_INTERNAL_H
#define SYMBOLS_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "symbols/dwarf/dwarf.h"
#include "symbols/image/image.h"
#include "symbols/name/name.h"
#include "symbols/process/process.h"
#include "symbols/script/script.h"
#include "symbols/symbols.h"

struct inlines;
struct code_desk;
struct script_functions;
struct details;
struct fetch_desk;
struct ksyms;
struct loader;
struct maps;
struct objects;
struct places;
struct places_move;
struct process_readers;
struct symbols_hung;
struct symbols_stats;
struct symtab;

/*
 * Places on their way into another table, with their names and chains.
 *
 * Code that a JIT made in a process that has ended has names, and its addresses are of no use any
 * more: such places with one function and chain become one, of an object of their own. Else a
 * program that starts again and again fills the tables with the same stacks.
 *
 * One thread at a time: the builder moves the places that are in use, then the loader takes the new
 * table over, and frees the old one.
 */

/*
 * Begin to move to @to (borrowed), with a new table of chains. Later ids of @from do not move, if
 * it does not grow until all threads use @to. NULL: out of memory.
 */
struct places_move *places_move_new(struct places *from, struct places *to,
				    const struct inlines *chains, struct objects *objects,
				    const struct symtab *symtab);
/* Free @m, and none of the tables. */
void places_move_free(struct places_move *m);
/* The same, and the new chains. */
void places_move_cancel(struct places_move *m);

/*
 * The thread that reads /proc of new processes; in the place of one that hangs, another one.
 *
 * Threads: @serve on the reader, offline for urcu-qsbr; process_readers_wake() and
 * process_readers_hung(): any thread; the rest by one owner at a time.
 */

/*
 * Do the requested work, each read between proc_watch_begin() and proc_watch_end(), until
 * proc_watch_is_mine() is false. Return whether there was any.
 */
typedef bool (*process_readers_fn)(void *ctx);

/* Prepare; after work, @done_fd is woken. @user_of: proc_user_of(). 0 or -errno. */
int process_readers_new(struct process_readers **out, process_readers_fn serve, void *ctx,
			proc_user_fn user_of, int done_fd);
/* Start the thread. 0 or -errno, as thread_start(). */
int process_readers_start(struct process_readers *r);
/* Announce work. Async-signal-safe. */
void process_readers_wake(struct process_readers *r);
/* From time to time: start another thread if this one has hung for @ns. */
void process_readers_look(struct process_readers *r, uint64_t ns);
/* Get the threads that hang. */
void process_readers_hung(struct process_readers *r, struct symbols_hung *out);
/* Stop until @deadline_ns. False: a thread still hangs, and uses @r. */
bool process_readers_stop(struct process_readers *r, uint64_t deadline_ns);
/* After a stop without such a thread, or before the start. NULL is allowed. */
void process_readers_free(struct process_readers *r);

/*
 * The background of symbols: two threads, one loop each.
 *
 * "process reader" reads /proc/PID, because stacks wait for it; "loader" names places, and
 * has helpers (helper.h) read the files of objects: a large object, or a file
 * system that hangs, delays no stack and no name.
 */

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
const struct inlines *loader_chains(const struct loader *l);
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
/* Return the queue of fetches. */
struct fetch_desk *loader_fetch(struct loader *l);
/* Side-band about kernel code. */
struct ksyms *loader_ksyms(struct loader *l);
/* Code of interpreters, and the object that all its places are in. */
struct script_functions *loader_codes(struct loader *l);
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
/* Return the queue of requests for instructions. */
struct code_desk *loader_code(struct loader *l);
/* Any thread. */
void loader_stats(const struct loader *l, struct symbols_stats *out);

/*
 * Names of the sampled places: each place once, in the order of ids; again when there are better
 * symbols.
 *
 * One thread: the loader; the counters are read by any thread. Everything is borrowed.
 */

struct place_names {
	struct places *places;
	struct objects *objects;
	struct symtab *symtab;
	struct naming *naming;
	struct lines *lines;
	struct inlines *chains;
	const struct script_functions *codes;
	const atomic_bool *stop; /* release by loader_stop() */
	uint32_t script;	 /* object of all code of interpreters */
	uint32_t wait;		 /* object of the kinds of waits */
	struct place_names_waiting {
		uint32_t place; /* without a name yet */
		uint64_t since_ns;
	} * waiting; /* owned */
	uint32_t nr_waiting, max_waiting;
	uint32_t next_waiting; /* where the next pass goes on */
	bool any_named;	       /* since it began with the first */
	uint32_t next_place;   /* places below this id are done */
	uint64_t named_ns;     /* time of the last pass */
	bool held;	       /* new places wait for the next pass */
	uint8_t *changed;      /* by object: 1: place_names_note(); owned */
	uint32_t max_changed;
	bool has_changed;
	/* Relaxed: statistics. */
	_Alignas(CACHELINE) atomic_ulong nr_named, nr_unnamed;
};

void place_names_fini(struct place_names *n);
/* Use the new table of @m, with what is known of the old one; all others are named again. */
void place_names_move(struct place_names *n, struct places_move *m);
/*
 * Name the places that waited for images, then new ones, then look up source lines. @more: an image
 * was read; @now: make up names instead of waiting for better ones. True: more work.
 */
bool place_names_pass(struct place_names *n, bool more, bool now);
/* Note that @object has more symbols; without memory its places keep their names. */
void place_names_note(struct place_names *n, uint32_t object);
/* Name the places of noted objects again that have only an address, or changed code: in one pass.
 */
void place_names_rename(struct place_names *n);
/* The same of kernel code that was made where other code may have been. */
void place_names_rename_kernel(struct place_names *n);
/* The debug file of @object arrived: look up the source of its places again. */
void place_names_fetched(struct place_names *n, uint32_t object);
/* Return the number of places without a name. */
uint32_t place_names_left(const struct place_names *n);

#endif
