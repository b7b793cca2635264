/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reader of DWARF for the cage; its requests are in dwarf_wire.h. */
#ifndef SYMBOLS_SOURCE_DWARF_SERVE_H
#define SYMBOLS_SOURCE_DWARF_SERVE_H

#include "symbols/sandbox/sandbox.h"

extern const struct cage_reader dwarf_cage_reader;

#endif
