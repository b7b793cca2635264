/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Debug sections inflated, by libdeflate where it is installed: it takes two fifths of the time of
 * zlib, which libdw uses.
 *
 * Runs in the worker of the cage, or in the thread of the call.
 */
#ifndef SYMBOLS_SOURCE_DWARF_INFLATE_H
#define SYMBOLS_SOURCE_DWARF_INFLATE_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Load libdeflate: the worker cannot open it. */
void dwarf_inflate_prepare(void);
/*
 * Make an ELF file in memory that has the debug sections of @elf that are used, inflated, at most
 * @max bytes; .debug_line only with @lines. *out is malloc'ed. 0; -ENOENT: nothing to inflate, or
 * in another way; -EBADMSG, -EFBIG or -ENOMEM.
 */
int dwarf_inflate(Elf *elf, bool lines, size_t max, uint8_t **out, size_t *size);

#endif
