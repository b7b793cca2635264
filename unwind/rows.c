// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rows in one word each, and their memory.
 *
 * Any thread. Invariant: a word is either 0 or complete.
 */
#include "unwind/rows.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "unwind/unwind.h"

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

int unwind_rows_new(struct unwind_rows **out, uint32_t max_places)
{
	struct unwind_rows *t = xcalloc(1, sizeof(*t));
	void *mem = mmap(NULL, (size_t)max_places * sizeof(*t->rows), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (mem == MAP_FAILED) {
		free(t);
		return -ENOMEM;
	}
	t->rows = mem;
	t->nr = max_places;
	*out = t;
	return 0;
}

void unwind_rows_free(struct unwind_rows *t)
{
	if (!t)
		return;
	munmap(t->rows, t->nr * sizeof(*t->rows));
	free(t);
}
