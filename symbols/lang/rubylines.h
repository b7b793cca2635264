/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ruby's line tables: from a position in the instructions to its line.
 *
 * An iseq has an entry for each instruction, and a bit vector of their positions with ranks
 * ("succinct index"). The kept table: number of entries, the line of each, the index. Pure; hostile
 * bytes.
 */
#ifndef SYMBOLS_LANG_RUBYLINES_H
#define SYMBOLS_LANG_RUBYLINES_H

#include <stddef.h>
#include <stdint.h>

#define RUBYLINES_ENTRY 12U /* bytes of an entry in the process: line, node, events */

/* Return the bytes of the index for code of @words; 0: too much code for a table. */
uint32_t rubylines_index_size(uint32_t words);
/* Return the bytes of the table of @nr entries. */
uint32_t rubylines_size(uint32_t nr, uint32_t index_size);
/* Begin a table of rubylines_size() bytes: its number of entries, and the index of the process. */
void rubylines_begin(uint8_t *out, uint32_t nr, const uint8_t *index, uint32_t index_size);
/* Set entry @i, as it is in the process. */
void rubylines_set(uint8_t *out, uint32_t i, const uint8_t entry[RUBYLINES_ENTRY]);
/* Return the line of the instruction at or before word @pos, 0: the table has none. */
uint32_t rubyline_of(const uint8_t *table, size_t size, uint32_t pos);

#endif
