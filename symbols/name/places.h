/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Places: (object, offset) -> dense u32, the unit in which code is counted.
 *
 * The offset is the *file* offset of the instruction for a file (so a place needs
 * no ELF reading and is the same in every process), the address for the kernel
 * and for anonymous (JIT) memory, and the offset from its start for the vdso. For
 * frames other than the innermost it is the offset of the return address minus
 * one: the look-up pc, inside the call.
 *
 * A place has a symbol, SYMBOL_NONE until the loader has named it: late names
 * improve old counts. Insert-only, lock-free; see intern.h for threads.
 */
#ifndef SYMBOLS_NAME_PLACES_H
#define SYMBOLS_NAME_PLACES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLACE_NONE  UINT32_MAX
#define SYMBOL_NONE UINT32_MAX

struct places;

struct place {
	uint64_t offset;
	uint32_t object;    /* object->id */
	atomic_uint symbol; /* symbol id or SYMBOL_NONE; release by the loader */
};

int places_new(struct places **out, uint32_t max_places);
void places_free(struct places *p);

/*
 * Before the first place, if places_crowded() is called before each sample: a table that grows as
 * it fills remains in the CPU's cache.
 */
int places_begin_small(struct places *p);

/* Any thread, lock-free. PLACE_NONE when the table is full. */
uint32_t places_intern(struct places *p, uint32_t object, uint64_t offset);
/* Borrowed; NULL while entry @id is still under construction. */
const struct place *places_at(const struct places *p, uint32_t id);
uint32_t places_nr(const struct places *p);
/* One thread at a time: the loader; of a new generation the builder before. */
void places_name(struct places *p, uint32_t id, uint32_t symbol);
/* Builder, once a tick: add chunks ahead of the writers. */
int places_grow(struct places *p);
/* Any thread: return true if places_grow() is needed before a sample with the deepest stack. */
bool places_crowded(const struct places *p);
/* Builder: return the number that all ids are below until places_grow(). */
uint32_t places_room(const struct places *p);
/* Return the number of this table; no other one has it, or 0. */
uint32_t places_serial(const struct places *p);
size_t places_memory(const struct places *p);

#endif
