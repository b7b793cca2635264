/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CPython's line tables: from an instruction to its line.
 *
 * 3.8, 3.9: lnotab; 3.10: PEP 626; from 3.11 on: PEP 657. Pure; hostile bytes;
 * at most one pass over the table.
 */
#ifndef SYMBOLS_LANG_PYLINES_H
#define SYMBOLS_LANG_PYLINES_H

#include <stddef.h>
#include <stdint.h>

/* The line of the instruction at byte @instr, 0: the table has none. */
uint32_t pyline_of(uint8_t minor, const uint8_t *table, size_t size, uint32_t first_line,
		   uint32_t instr);

#endif
