/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The function table of Go programs (elfgo.h), read in the cage.
 *
 * Any thread that may wait: one call runs at a time. Slow. Every byte is hostile.
 */
#ifndef SYMBOLS_OBJECT_ELFGO_CAGE_H
#define SYMBOLS_OBJECT_ELFGO_CAGE_H

#include "symbols/object/elfsym.h"

/*
 * Write the depths of the stack as a .debug_frame (malloc'ed): exact unwind tables of all
 * functions that do not change the stack. x86-64. 0, -ENOENT (no known table), an
 * error of cage_call(), or -errno.
 */
int elfgo_cage_frames(const struct elffile *f, uint8_t **out, size_t *size);
/* Add the functions of @f to @t. 0, -ENOENT (no known table), or -errno. */
int elfgo_cage_add(struct elfsym *t, const struct elffile *f);

#endif
