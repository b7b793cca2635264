// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rows in one word each, and their memory.
 *
 * Any thread. Invariant: a word is either 0 or complete.
 */
#include "unwind/rows.h"

#include <assert.h>

uint64_t row_pack(const struct cfi_row *row)
{
	uint64_t word;

	if (row->kind == CFI_END)
		return ROW_END;
	if (row->kind != CFI_ROW || row->cfa_off < -(1 << 23) || row->cfa_off >= 1 << 23 ||
	    row->ra_off % 8 || row->fp_off % 8 || row->ra_off / 8 != (int16_t)(row->ra_off / 8) ||
	    row->fp_off / 8 != (int16_t)(row->fp_off / 8))
		return ROW_STEP;
	word = ROW_SIMPLE;
	word |= (uint64_t)row->cfa_is_fp << 3;
	word |= (uint64_t)(row->ra_where == CFI_AT_CFA) << 4;
	word |= (uint64_t)(row->fp_where == CFI_AT_CFA) << 5;
	word |= (uint64_t)row->cfa_is_word << 6;
	word |= (uint64_t)((uint32_t)row->cfa_off << 8);
	word |= (uint64_t)(uint16_t)(row->ra_off / 8) << 32;
	word |= (uint64_t)(uint16_t)(row->fp_off / 8) << 48;
	assert(row_kind(word) == ROW_SIMPLE && row_cfa_off(word) == row->cfa_off);
	return word;
}
