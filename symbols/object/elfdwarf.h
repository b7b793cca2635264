/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sections with DWARF in an ELF file, before libdw may see it: their sizes, and the file with
 * common parts made by dwz.
 *
 * Pure; hostile files.
 */
#ifndef SYMBOLS_OBJECT_ELFDWARF_H
#define SYMBOLS_OBJECT_ELFDWARF_H

#include "symbols/elf/elf.h"

#define ELFDWARF_SIZE_MAX (512ULL << 20) /* of all debug sections, decompressed */
#define ELFDWARF_LINK_MAX 1024U

/* The dwz file that a file refers to. */
struct elfdwarf_alt {
	char link[ELFDWARF_LINK_MAX + 1];
	uint8_t id[20];
	uint8_t id_size;
};

/* Sum up the sizes. 0, -ENODATA: no debug information, or -EFBIG. */
int elfdwarf_size(const struct elffile *f, uint64_t *size);
/* Read .gnu_debugaltlink. 0, -ENOENT: it refers to none, or -EBADMSG. */
int elfdwarf_alt(const struct elffile *f, struct elfdwarf_alt *alt);

#endif
