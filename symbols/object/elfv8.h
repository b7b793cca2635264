/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The builtins of V8 in a file: one range of code, a table of their places in it, and a table of
 * their names. A stripped file has no symbols of them, but exports the functions that return the
 * addresses of these tables. x86-64.
 *
 * Any thread; slow. Every byte is hostile.
 */
#ifndef SYMBOLS_OBJECT_ELFV8_H
#define SYMBOLS_OBJECT_ELFV8_H

#include "symbols/object/elfsym.h"

/* Addresses of functions; 0: missing. */
struct elfv8_symbols {
	uint64_t code, code_size, data, data_size, name;
};

struct elfv8_blob {
	uint64_t code, code_size; /* addresses in the file */
	uint64_t data, data_size;
};

/* Note a symbol if it is one of these. */
void elfv8_symbol(struct elfv8_symbols *s, const char *name, uint64_t address);
/* Find the builtins. False: not found. */
bool elfv8_blob(struct elfv8_blob *out, const struct elfv8_symbols *s, const struct elffile *f);
/* Add the builtins to @t, which has the exported functions. 0 (also: none), or -errno. */
int elfv8_add(struct elfsym *t, const struct elffile *f);

#endif
