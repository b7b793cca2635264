/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Functions and lines that the source has at places: chains of functions by place
 * id, and the source files' paths by id. Both append-only.
 *
 * One writer (the loader; chains of a new generation of places are written by the builder before);
 * readers from any thread, lock-free.
 */
#ifndef SYMBOLS_SOURCE_CHAINS_H
#define SYMBOLS_SOURCE_CHAINS_H

#include "symbols/name/symbol.h"

#define CHAINS_MEMORY_MAX (128UL << 20)

struct chains;

int chains_new(struct chains **out);
/* Make a table for other places, with the files of @old, which both use. 0 or -ENOMEM. */
int chains_new_beside(struct chains **out, const struct chains *old);
void chains_free(struct chains *c);

/* Writer. Set the chain of @place, once. 0, -ENOSPC, -ENOMEM. */
int chains_put(struct chains *c, uint32_t place, const struct symbol_frame *frames, uint32_t nr);
/* Writer. Return the id of a path (foreign bytes); SYMBOL_NO_FILE when the table is full. */
uint32_t chains_intern_file(struct chains *c, const char *path);

/* Any thread. */
const struct symbol_frame *chains_at(const struct chains *c, uint32_t place, uint32_t *nr);
struct safe_text chains_file(const struct chains *c, uint32_t id);
uint32_t chains_nr_files(const struct chains *c);
/* Writer. */
size_t chains_memory(const struct chains *c);

#endif
