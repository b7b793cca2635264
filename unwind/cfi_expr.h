/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which DWARF expressions may be shown to libunwind. Pure.
 */
#ifndef UNWIND_CFI_EXPR_H
#define UNWIND_CFI_EXPR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/arch.h"

/*
 * Straight-line arithmetic over registers that exist: no branches (libunwind
 * has no limit on them), no calls, no register names as results, no division
 * (INT64_MIN / -1 traps), no operand beyond the end.
 */
bool cfi_expr_ok(const struct arch_ops *arch, const uint8_t *bytes, size_t size);

/*
 * Is an accepted expression "the word at register + *@off, and a word more"? So
 * functions say it that keep the stack pointer of their caller on a stack that
 * they align themselves (OpenSSL's do).
 */
bool cfi_expr_is_word(const struct arch_ops *arch, const uint8_t *bytes, size_t size, uint64_t *reg,
		      int64_t *off);

#endif
