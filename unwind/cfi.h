/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A strict, bounded reader of call frame instructions (DWARF 5, 6.4.2).
 *
 * It is the gate: an FDE that cfi_check() has not accepted is never given to
 * libunwind. It also makes the rows: the rule of a pc in three numbers, or
 * COMPLEX where only libunwind's interpreter can do it.
 *
 * Accepted are instructions that libunwind reads in the same way: known opcodes,
 * valid register numbers, states that nest, locations that only grow, expressions
 * without branches, calls or division. All instructions of an FDE are checked.
 * Pure; any thread; no allocation.
 */
#ifndef UNWIND_CFI_H
#define UNWIND_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/object/ehframe.h"
#include "unwind/arch.h"
#include "unwind/cfi_types.h"

/* Return how far the CFI at @vaddr can be believed. */
enum cfi_doubt cfi_doubt(const struct cfi_rewrite *r, uint64_t vaddr);

/* Check a whole FDE, at @offset; @sink and @out may be NULL. CFI_OK or the reason. */
enum cfi_reason cfi_check(const struct arch_ops *arch, const struct ehframe *eh, uint32_t offset,
			  const struct cfi_sink *sink, struct cfi_fde *out);
/* Return the bytes of instructions in an FDE and its CIE; 0: unreadable. */
uint32_t cfi_size(const struct ehframe *eh, uint32_t offset);
/*
 * Get the row at @pc (a vaddr inside the FDE). Instructions more than
 * CFI_REWRITE_BEFORE bytes of code after that row are not read.
 */
enum cfi_reason cfi_row_at(const struct arch_ops *arch, const struct ehframe *eh, uint32_t offset,
			   uint64_t pc, struct cfi_row *out);

/* Get the row at @pc with its range and program; @cost: bytes read. */
enum cfi_reason cfi_rule_at(const struct arch_ops *arch, const struct ehframe *eh, uint32_t offset,
			    uint64_t pc, struct cfi_rule *out, uint32_t *cost);

/* Count the states that an accepted FDE remembers up to @pc; @cost: bytes read. */
uint32_t cfi_remembers(const struct arch_ops *arch, const struct ehframe *eh, uint32_t offset,
		       uint64_t pc, uint32_t *cost);

/*
 * Find DW_CFA_AARCH64_negate_ra_state in an accepted FDE: at most @room section offsets; @cost:
 * bytes read.
 */
uint32_t cfi_negates(const struct arch_ops *arch, const struct ehframe *eh, uint32_t offset,
		     uint32_t *at, uint32_t room, uint32_t *cost);

/* Return the reason as static text: "unknown opcode". */
const char *cfi_reason_name(enum cfi_reason reason);

#endif
