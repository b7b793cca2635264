/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Translate .debug_frame into .eh_frame, so that one reader serves both.
 *
 * Pure: bytes in, bytes out. Runs on: the loader. Every byte is hostile.
 */
#ifndef SYMBOLS_OBJECT_DEBUGFRAME_H
#define SYMBOLS_OBJECT_DEBUGFRAME_H

#include <stddef.h>
#include <stdint.h>

/*
 * Append the records of a .debug_frame (DWARF 5, 6.4.1; versions 1, 3 and 4, 32-bit
 * format) to the records of @eh up to its terminator (@eh_size may be 0), as one section for
 * ehframe_init(), in malloc'ed memory. Unknown records are left out. 0, -ENODATA (nothing added, no
 * memory returned) or -ENOMEM.
 */
int debugframe_join(const uint8_t *eh, size_t eh_size, const uint8_t *debug, size_t debug_size,
		    uint8_t **out, size_t *out_size);

#endif
