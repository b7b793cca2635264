/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The function table that Go programs keep for their tracebacks, .gopclntab: present even in
 * stripped programs. The layout is that of Go 1.18 and later (go/src/internal/abi, debug/gosym).
 *
 * Pure except for reading the file; any thread; slow.
 */
#ifndef SYMBOLS_OBJECT_ELFGO_H
#define SYMBOLS_OBJECT_ELFGO_H

#include "symbols/object/elfsym.h"

/* Add the functions of @f to @t. 0, -ENOENT (no known table), or -errno. */
int elfgo_add(struct elfsym *t, const struct elffile *f);
/*
 * Write the depths of the stack as a .debug_frame (malloc'ed): exact unwind tables of all
 * functions that do not change the stack. x86-64. 0, -ENOENT (no known table), or -errno.
 */
int elfgo_frames(const struct elffile *f, uint8_t **out, size_t *size);

#endif
