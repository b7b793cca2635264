/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Find the debug information of an object, in the object or in its debug file, and open it.
 *
 * Threads: any that may hang.
 */
#ifndef SYMBOLS_SOURCE_DWARF_OBJECT_H
#define SYMBOLS_SOURCE_DWARF_OBJECT_H

#include "symbols/object/load.h"
#include "symbols/source/dwarf_cage.h"

/*
 * Open it for many look-ups: 0, -ESTALE (not the file of the image), or -errno as
 * dwarf_cage_open(); then the caller owns *out.
 */
int dwarf_object_open(const struct load_where *where, bool no_lines, struct dwarf_cage **out);

#endif
