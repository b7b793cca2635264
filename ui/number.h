/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Numbers as people type them, parsed strictly: the whole text, within a
 * range, no sign, no hexadecimal, no locale. Pure; any thread.
 */
#ifndef UI_NUMBER_H
#define UI_NUMBER_H

#include <stddef.h>
#include <stdint.h>

/* Decimal digits only, @size bytes of @text. 0 or -EINVAL (then *out is untouched). */
int number_u64(const char *text, size_t size, uint64_t min, uint64_t max, uint64_t *out);
/* Digits with at most one point among them. */
int number_double(const char *text, double min, double max, double *out);
/* Digits and at most one of K, M, G (powers of 1024, either case). */
int number_size(const char *text, uint64_t max, uint64_t *out);

#endif
