/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Search in sorted arrays. Pure; any thread. */
#ifndef SYMBOLS_BASE_SEARCH_H
#define SYMBOLS_BASE_SEARCH_H

#include <stdint.h>

/*
 * Return how many of the elements 0 to @nr - 1 are the first ones: @is_first is an expression of
 * the index @i, true for the first elements and false for all after them. Evaluates it log2(@nr)
 * times.
 *
 *	uint32_t after = search_split(nr, i, starts[i] <= addr);
 *
 *	return after && addr < ends[after - 1] ? after - 1 : NONE;
 */
#define search_split(nr, i, is_first)                                                              \
	({                                                                                         \
		uint32_t low_ = 0, high_ = (nr);                                                   \
                                                                                                   \
		while (low_ < high_) {                                                             \
			const uint32_t i = low_ + (high_ - low_) / 2;                              \
                                                                                                   \
			if (is_first)                                                              \
				low_ = i + 1;                                                      \
			else                                                                       \
				high_ = i;                                                         \
		}                                                                                  \
		low_;                                                                              \
	})

#endif
