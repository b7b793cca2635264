/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rule of each place, in one word, shared by all sampler threads.
 *
 * Indexed by place id: finding the place finds its row. A place is (object,
 * offset), so a row serves every process. A rule is admitted only after libunwind
 * computed the same pc, sp and fp, at that pc or at another one with a rule made
 * by the same instructions (cfi_rule.program). libunwind's result depends on
 * nothing else, and functions begin and end in similar ways: of many thousand
 * places it unwinds some hundred.
 *
 * Lock-free: a row is one atomic word; relaxed order is enough, since no other
 * data is published by it. Two threads that fill the same row write the same
 * word. Memory: 8 bytes a place, reserved at set-up, allocated by the kernel page
 * by page; places beyond the end have no row and are unwound by libunwind each
 * time.
 */
#ifndef UNWIND_ROWS_H
#define UNWIND_ROWS_H

#include <stdatomic.h>

#include "symbols/base/base.h"
#include "unwind/cfi.h"

enum row_kind {
	ROW_UNKNOWN, /* not read yet */
	ROW_SIMPLE,  /* apply */
	ROW_END,     /* the root */
	ROW_STEP,    /* libunwind each time */
	ROW_NO_CFI,  /* guess */
	ROW_REFUSED, /* refused by the gate */
	ROW_ENTRY,   /* no code, but a function begins after it: not a return from a call */
	ROW_SIGNAL,  /* a signal handler returns here: use the kernel's frame */
};

#define ROWS_PROGRAMS 16384 /* a power of two */

struct unwind_rows {
	_Atomic uint64_t *rows;
	uint32_t nr;
	_Atomic uint64_t
		programs[ROWS_PROGRAMS]; /* accepted by libunwind; old ones are overwritten */
};

/*
 * The word: bits 0-2 kind, 3 CFA is fp, 4 return address at CFA, 5 fp at CFA, 6
 * CFA by the word there, 8-31 offset of the CFA (bytes), 32-47 of the return
 * address (words), 48-63 of fp (words).
 */
static inline enum row_kind row_kind(uint64_t row)
{
	return (enum row_kind)(row & 7);
}

static inline bool row_cfa_is_fp(uint64_t row)
{
	return row >> 3 & 1;
}

static inline bool row_ra_at_cfa(uint64_t row)
{
	return row >> 4 & 1;
}

static inline bool row_fp_at_cfa(uint64_t row)
{
	return row >> 5 & 1;
}

static inline bool row_cfa_is_word(uint64_t row)
{
	return row >> 6 & 1;
}

static inline int64_t row_cfa_off(uint64_t row)
{
	return (int32_t)(uint32_t)row >> 8;
}

static inline int64_t row_ra_off(uint64_t row)
{
	return (int64_t)(int16_t)(row >> 32) * 8;
}

static inline int64_t row_fp_off(uint64_t row)
{
	return (int64_t)(int16_t)(row >> 48) * 8;
}

/* Pack a row; ROW_STEP when its numbers do not fit. */
uint64_t row_pack(const struct cfi_row *row);

/* Return true if @place has a row in the table. */
static inline bool rows_hold(const struct unwind_rows *t, uint32_t place)
{
	return place < t->nr;
}

static inline uint64_t rows_get(const struct unwind_rows *t, uint32_t place)
{
	return place < t->nr ? atomic_load_explicit(&t->rows[place], memory_order_relaxed) : 0;
}

static inline void rows_put(struct unwind_rows *t, uint32_t place, uint64_t row)
{
	if (place < t->nr)
		atomic_store_explicit(&t->rows[place], row, memory_order_relaxed);
}

/* Return true if libunwind accepted a row of this program. */
static inline bool rows_proven(const struct unwind_rows *t, uint64_t program)
{
	return program && atomic_load_explicit(&t->programs[program & (ROWS_PROGRAMS - 1)],
					       memory_order_relaxed) == program;
}

static inline void rows_prove(struct unwind_rows *t, uint64_t program)
{
	atomic_store_explicit(&t->programs[program & (ROWS_PROGRAMS - 1)], program,
			      memory_order_relaxed);
}

#endif
