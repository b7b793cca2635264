/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checks before libdw may see a file: its owner, the sizes of its debug sections,
 * and the file with common parts made by dwz.
 *
 * Runs on: a helper.
 */
#ifndef SYMBOLS_SOURCE_DWARF_OPEN_H
#define SYMBOLS_SOURCE_DWARF_OPEN_H

#include <elfutils/libdw.h>

#include "symbols/object/elffile.h"

#define DWARF_SIZE_MAX (512ULL << 20) /* of all debug sections, decompressed */

/*
 * Check whether the DWARF of @f may be read. 0 and its *size, -ENODATA, -EPERM,
 * -EFBIG, or -errno.
 */
int dwarf_open_check(const struct elffile *f, uint64_t *size);
/*
 * Open the dwz file that @f refers to: *fd, which the caller closes; -1: it refers to none. 0,
 * -ENOENT when it is missing, -EBADMSG.
 */
int dwarf_open_find_alt(const struct elffile *f, int *fd);
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
