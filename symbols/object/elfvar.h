/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Addresses of data symbols of an ELF file by name (System V gABI, chapter 4):
 * the tables that language runtimes export.
 *
 * Any thread; slow. Bounded by the limits of elfsym.h.
 */
#ifndef SYMBOLS_OBJECT_ELFVAR_H
#define SYMBOLS_OBJECT_ELFVAR_H

#include "symbols/elf/elf.h"

struct elfvar {
	const char *name;
	uint64_t vaddr, size; /* out; vaddr 0: not found */
};

/*
 * Look up @nr symbols of any type but undefined ones, in .dynsym, then in
 * .symtab. How many were found, or -errno.
 */
int elfvar_find(const struct elffile *f, struct elfvar *vars, uint32_t nr);

/*
 * Find the variable that @vaddr is in, in .symtab, else in .dynsym: its name, cut at @size - 1
 * bytes, foreign text, and its begin. False: none.
 */
bool elfvar_at(const struct elffile *f, uint64_t vaddr, char *name, size_t size, uint64_t *begin);

/* The vaddr of the byte at file offset @offset, by the PT_LOAD segments; false outside of all. */
bool elfvar_vaddr(const struct elffile *f, uint64_t offset, uint64_t *vaddr);

#endif
