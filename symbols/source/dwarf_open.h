/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is looked at before libdw may see a file: its owner, the sizes of its
 * debug sections, and the file that dwz has moved common parts to.
 *
 * Runs on: a helper.
 */
#ifndef SYMBOLS_SOURCE_DWARF_OPEN_H
#define SYMBOLS_SOURCE_DWARF_OPEN_H

#include <elfutils/libdw.h>

#include "symbols/object/elffile.h"

/* May the DWARF of @f be read? 0 and its *size, -ENODATA, -EPERM, -EFBIG, or -errno. */
int dwarf_open_check(const struct elffile *f, uint64_t *size);
/*
 * Open the dwz file that @f wants and give it to @dw; neither when it wants
 * none. 0, -ENOENT when it is not there: libdw would look for it anywhere.
 */
int dwarf_open_alt(const struct elffile *f, Dwarf *dw, Dwarf **alt, int *fd);
/* The bytes of a section as libdw has them, decompressed; NULL when there are none. */
const Elf_Data *dwarf_open_section(Dwarf *dw, const char *name);

#endif
