/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Functions and lines that the source has at places: chains of functions by place
 * id, and the source files' paths by id. Both append-only; each generation of places has another
 * table, with the chains and files of the places that moved.
 *
 * One writer (the loader; chains of a new generation of places are written by the builder before);
 * readers from any thread, lock-free.
 */
#ifndef SYMBOLS_SOURCE_CHAINS_H
#define SYMBOLS_SOURCE_CHAINS_H

#include "symbols/name/symbol.h"

#define CHAINS_MEMORY_MAX (128UL << 20)
/* Of the paths, beside the chains. */
#define CHAINS_FILES_MEMORY_MAX (32U << 20)

struct chains;

int chains_new(struct chains **out);
void chains_free(struct chains *c);

#define CHAINS_NONE UINT32_MAX

/* Writer. Return the number of a chain, the same for equal ones; CHAINS_NONE: the table is full. */
uint32_t chains_intern(struct chains *c, const struct symbol_frame *frames, uint32_t nr);
/* Writer. Set the chain of @place, once, by its number. 0, -ENOSPC, -ENOMEM. */
int chains_set(struct chains *c, uint32_t place, uint32_t number);
/* Writer. Both. */
int chains_put(struct chains *c, uint32_t place, const struct symbol_frame *frames, uint32_t nr);
/*
 * Writer. Return the id of a path (foreign bytes) that @object names; SYMBOL_NO_FILE when the
 * table is full, or @object has had its share.
 */
uint32_t chains_intern_file(struct chains *c, uint32_t object, const char *path);
/* Writer. The same of a file of the table before: it is not refused for the share of @object. */
uint32_t chains_move_file(struct chains *c, uint32_t object, struct safe_text file);

/* Any thread. */
const struct symbol_frame *chains_at(const struct chains *c, uint32_t place, uint32_t *nr);
struct safe_text chains_file(const struct chains *c, uint32_t id);
uint32_t chains_nr_files(const struct chains *c);
/* Writer. */
size_t chains_memory(const struct chains *c);

#endif
