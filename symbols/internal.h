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
struct objects;
struct places;
struct places_move;
struct process_readers;
struct symbols_hung;
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

#endif
