/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Numbers in foreign bytes, at any alignment, in the order of this machine.
 *
 * Threads: any.
 */
#ifndef SYMBOLS_BASE_BYTES_H
#define SYMBOLS_BASE_BYTES_H

#include <stdint.h>
#include <string.h>

static inline uint32_t bytes_u32(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static inline uint64_t bytes_u64(const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

#endif
