/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sorting large tables by a number: addresses, times.
 *
 * Pure. Time is linear in the number of records, whatever their numbers are.
 */
#ifndef SYMBOLS_BASE_SORT_H
#define SYMBOLS_BASE_SORT_H

#include "symbols/base/base.h"

/*
 * Sort records of @size bytes by the uint64_t that each has at @key_at; those
 * of equal numbers stay in their order. 0, or -ENOMEM: they are in no order.
 */
int sort_records(void *records, size_t nr, size_t size, size_t key_at);

#endif
