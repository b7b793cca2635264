/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rule of each place, in one word, shared by all sampler threads.
 *
 * Indexed by place id: the look-up of the place is the look-up of its row. A
 * place is (object, offset), so a row serves every process. A rule gets in
 * only after libunwind came to the same pc, sp and fp: at that pc, or at one
 * whose rule is made by the same instructions (cfi_rule.program). What
 * libunwind makes of a pc is made by these alone, and functions begin and end
 * much alike: of many thousand places it is asked for some hundred.
 *
 * Lock-free: a row is one atomic word that says everything; relaxed order is
 * enough, since nothing else is published by it. Two threads that fill the
 * same row write the same word. Memory: 8 bytes a place, reserved at set-up,
 * taken from the kernel page by page as places appear; places beyond the end
 * have no row (they are stepped by libunwind each time).
 */
#ifndef UNWIND_ROWS_H
#define UNWIND_ROWS_H

#include <stdatomic.h>

#include "symbols/base/base.h"
#include "unwind/cfi.h"

enum row_kind {
	ROW_UNKNOWN, /* not looked at yet */
	ROW_SIMPLE,  /* apply */
	ROW_END,     /* the root */
	ROW_STEP,    /* libunwind each time */
	ROW_NO_CFI,  /* guess */
	ROW_REFUSED, /* by the gate */
	ROW_ENTRY,   /* no code, but a function begins behind it: no call was here */
	ROW_SIGNAL,  /* a signal handler returns here: by the kernel's frame */
};

#define ROWS_PROGRAMS 16384 /* a power of two */

struct unwind_rows {
	_Atomic uint64_t *rows;
	uint32_t nr;
	_Atomic uint64_t programs[ROWS_PROGRAMS]; /* that libunwind agreed to; some are forgotten */
};

/*
 * The word: kind 0-2, CFA is fp 3, return address at CFA 4, fp at CFA 5, CFA by
 * the word there 6, offsets of CFA (bytes) 8-31, return address (words) 32-47, fp (words) 48-63.
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

/* The word of a row; ROW_STEP when its numbers do not fit. */
uint64_t row_pack(const struct cfi_row *row);

/* Is there room for the row of @place? */
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

/* Did libunwind agree to what this program makes? */
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
