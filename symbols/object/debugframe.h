/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * .debug_frame translated into .eh_frame, so that one reader serves both.
 *
 * Pure: bytes in, bytes out. Runs on: the loader. Every byte is hostile.
 */
#ifndef SYMBOLS_OBJECT_DEBUGFRAME_H
#define SYMBOLS_OBJECT_DEBUGFRAME_H

#include <stddef.h>
#include <stdint.h>

/*
 * The records of a .debug_frame (DWARF 5, 6.4.1; versions 1, 3 and 4, 32-bit format) as those of an
 * .eh_frame, behind the ones of @eh up to its terminator (@eh_size may be 0): one section for
 * ehframe_init(), in new memory. What is not understood is left out. 0, -ENODATA (nothing was
 * added, no memory is given) or -ENOMEM.
 */
int debugframe_join(const uint8_t *eh, size_t eh_size, const uint8_t *debug, size_t debug_size,
		    uint8_t **out, size_t *out_size);

#endif
