/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Growable arrays: a pointer, the number of elements in use, and the number
 * that fit. All zero is an empty array; free() releases it.
 *
 * Threads: an array has one owner; there is no locking.
 */
#ifndef SYMBOLS_BASE_ARRAY_H
#define SYMBOLS_BASE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Reserve @nr elements in *@array, at least doubling it: so appending
 * one by one is linear. False: out of memory, or 2^32 elements are passed;
 * the array is then as before. New elements are not initialised.
 *
 *	if (!array_reserve(&a->items, &a->room, a->nr + 1ull))
 *		return -ENOMEM;
 *	a->items[a->nr++] = item;
 */
#define array_reserve(array, room, nr) array_reserve_size((array), (room), (nr), sizeof(**(array)))

/* The same; new elements are zero: an index by ids. */
#define array_reserve_zeroed(array, room, nr)                                                      \
	array_reserve_zeroed_size((array), (room), (nr), sizeof(**(array)))

/* The same; @array is the address of a pointer to elements of @size bytes. */
bool array_reserve_size(void *array, uint32_t *room, uint64_t nr, size_t size);
bool array_reserve_zeroed_size(void *array, uint32_t *room, uint64_t nr, size_t size);

#endif
