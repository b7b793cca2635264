/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Around libdw: the owner of a file, the file with common parts made by dwz; how a file is
 * opened, and its sections.
 *
 * Runs on: a helper.
 */
#ifndef SYMBOLS_SOURCE_DWARF_OPEN_H
#define SYMBOLS_SOURCE_DWARF_OPEN_H

#include <elfutils/libdw.h>

#include "symbols/object/elffacts.h"

/* Check whether DWARF of this file may be read, by its owner. 0, -EPERM or -EINVAL. */
int dwarf_open_permitted(int fd);
/*
 * Open the dwz file that a file with @facts refers to: *fd, which the caller closes; -1: it refers
 * to none. 0, -ENOENT when it is missing, -EBADMSG.
 */
int dwarf_open_find_alt(const struct elffacts *facts, int *fd);
/* Return the bytes of a section as libdw has them, decompressed; NULL when there are none. */
const Elf_Data *dwarf_open_section(Dwarf *dw, const char *name);

/* A file as libdw has it open. */
struct dwarf_opened {
	Dwarf *dw; /* NULL: closed */
	Elf *elf;
	uint8_t *image; /* what @elf reads, if sections were compressed; else NULL */
};

/*
 * Open a file with libdw; @lines: they are used. 0 or -EBADMSG. dwarf_open_end(): an alternate file
 * after the main one.
 */
int dwarf_open_begin(struct dwarf_opened *out, int fd, bool lines);
void dwarf_open_end(struct dwarf_opened *d);

#endif
