/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A row of an FDE without its rule. */
#ifndef TESTS_UNWIND_ROW_AT_H
#define TESTS_UNWIND_ROW_AT_H

#include "unwind/cfi.c"

/*
 * Get the row at @pc (a vaddr inside the FDE). Instructions more than
 * CFI_REWRITE_EARLY bytes of code after that row are not read.
 */
static inline enum cfi_reason cfi_row_at(const struct arch_ops *arch, const struct ehframe *eh,
					 uint32_t offset, uint64_t pc, struct cfi_row *out)
{
	struct cfi_rule rule;
	uint32_t cost;
	enum cfi_reason reason = cfi_rule_at(arch, eh, offset, pc, &rule, &cost);

	*out = reason == CFI_OK ? rule.row : (struct cfi_row){ .kind = CFI_ROW };
	return reason;
}

#endif
