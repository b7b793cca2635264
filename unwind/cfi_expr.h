/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The gate for DWARF expressions: which are safe for libunwind. Pure. */
#ifndef UNWIND_CFI_EXPR_H
#define UNWIND_CFI_EXPR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/arch.h"

/*
 * Return true for straight-line arithmetic over valid registers: no branches
 * (libunwind does not limit them), no calls, no register names as results, no
 * division (INT64_MIN / -1 traps), no operand beyond the end.
 */
bool cfi_expr_ok(const struct arch_ops *arch, const uint8_t *bytes, size_t size);

/*
 * Return true if an accepted expression is "the word at register + *@off, plus
 * one word". Functions that align their stack and save the caller's sp there use
 * this form (OpenSSL).
 */
bool cfi_expr_is_word(const struct arch_ops *arch, const uint8_t *bytes, size_t size, uint64_t *reg,
		      int64_t *off);

#endif
