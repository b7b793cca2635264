/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parts of an unwinder; private to unwind/.
 *
 * Owned by one sampler thread; the counters are read by any thread.
 */
#ifndef UNWIND_UNWINDER_H
#define UNWIND_UNWINDER_H

#include <stdatomic.h>

#include "symbols/name/places.h"
#include "unwind/arch.h"
#include "unwind/libunwind.h"
#include "unwind/recent.h"
#include "unwind/result.h"
#include "unwind/rows.h"

#define WALK_TRIED 1024 /* a power of two */

/*
 * Results of a frame other than the reasons to stop: go on; apply the row, which
 * is known now; walk the stack again without rows (the only one that walk_stack()
 * returns).
 */
enum { WALK_ON = UNWIND_NR_STOPS, WALK_AGAIN, WALK_REDO };

/* Written by the owning thread, read by any (relaxed; each is independent). */
struct walk_counters {
	atomic_ullong samples, frames, guessed, stop[UNWIND_NR_STOPS];
	atomic_ullong row_hits, steps, rows, rows_differ, redone, verified, verify_differ;
};

struct unwinder {
	const struct arch_ops *arch;
	struct places *places;
	uint32_t serial; /* of the places */
	struct step *step;
	struct unwind_rows *rows;
	struct arch_order order; /* order of the registers in recent samples */
	bool own_rows, step_only, allowance;
	uint32_t verify_every, verify_in;
	uint32_t tried[WALK_TRIED];   /* ids of recent places that libunwind unwound */
	struct unwind_result scratch; /* result of a verification */
	_Alignas(CACHELINE) struct recent recent;
	_Alignas(CACHELINE) struct walk_counters count;
};

static inline void unwinder_count(atomic_ullong *c, uint64_t n)
{
	/* One writer: a plain add, without the cost of a locked one. */
	atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

#endif
