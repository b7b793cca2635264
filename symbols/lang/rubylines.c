// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Line tables of Ruby 3.1: see succ_index_lookup() in its iseq.c.
 *
 * Runs on: readers (begin, set), the loader.
 */
#include "symbols/lang/rubylines.h"

#include <string.h>

#include "symbols/base/base.h"
#include "symbols/base/bytes.h"
#include "symbols/lang/codes.h"

#define FIRST	    54U /* positions with a rank of 7 bits each, 9 in a word */
#define FIRST_WORDS 6U
#define BLOCK_BITS  512U
#define BLOCK_SIZE  80U /* rank, ranks of the parts but the first, 8 words of bits */
#define BLOCK_RANKS 8U
#define BLOCK_PARTS 16U

uint32_t rubylines_index_size(uint32_t words)
{
	if (words < FIRST)
		return 8 * ((words + 8) / 9);
	if (words > CODES_TABLE_MAX * 8)
		return 0;
	return 8 * FIRST_WORDS + BLOCK_SIZE * ((words - FIRST + BLOCK_BITS - 1) / BLOCK_BITS);
}

uint32_t rubylines_size(uint32_t nr, uint32_t index_size)
{
	return 4 + 4 * nr + index_size;
}

void rubylines_begin(uint8_t *out, uint32_t nr, const uint8_t *index, uint32_t index_size)
{
	memcpy(out, &nr, 4);
	memcpy(out + 4 + 4ULL * nr, index, index_size);
}

void rubylines_set(uint8_t *out, uint32_t i, const uint8_t entry[RUBYLINES_ENTRY])
{
	memcpy(out + 4 + 4ULL * i, entry, 4);
}

/* Return how many instructions begin at or before @pos; 0: the index does not reach so far. */
static uint32_t rank_of(const uint8_t *index, size_t size, uint32_t pos)
{
	uint32_t bit = (pos - FIRST) % BLOCK_BITS, part = bit / 64;
	const uint8_t *block;
	uint64_t bits;

	if (pos < FIRST) {
		if (8ULL * (pos / 9) + 8 > size)
			return 0;
		return (uint32_t)(bytes_u64(index + 8ULL * (pos / 9)) >> 7 * (pos % 9)) & 0x7f;
	}
	block = index + 8ULL * FIRST_WORDS + (size_t)BLOCK_SIZE * ((pos - FIRST) / BLOCK_BITS);
	if ((size_t)(block - index) + BLOCK_SIZE > size)
		return 0;
	bits = bytes_u64(block + BLOCK_PARTS + 8ULL * part) << (63 - bit % 64);
	return bytes_u32(block) +
	       (part ? (uint32_t)(bytes_u64(block + BLOCK_RANKS) >> 9 * (part - 1)) & 0x1ff : 0) +
	       (uint32_t)__builtin_popcountll(bits);
}

uint32_t rubyline_of(const uint8_t *table, size_t size, uint32_t pos)
{
	uint32_t nr = size >= 4 ? bytes_u32(table) : 0, rank, line;

	if (!nr || nr > (size - 4) / 4)
		return 0;
	rank = nr == 1 ? 1 : rank_of(table + 4 + 4ULL * nr, size - 4 - 4ULL * nr, pos);
	if (!rank || rank > nr)
		return 0;
	line = bytes_u32(table + 4ULL * rank);
	return line <= INT32_MAX ? line : 0;
}
