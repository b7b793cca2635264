/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parts of a file that a reader in the cage has. A helper, which may hang, copies them; the
 * reader goes as far as it can, notes the missed ones, and is called again with them.
 *
 * Pure; one thread.
 */
#ifndef SYMBOLS_OBJECT_ELFPARTS_H
#define SYMBOLS_OBJECT_ELFPARTS_H

#include <stdbool.h>
#include <stdint.h>

#define ELFPARTS_MAX	 1024U /* of one file */
#define ELFPARTS_ALIGNED (16U << 10)

struct elfpart { /* bytes of the file, from multiples of ELFPARTS_ALIGNED */
	uint64_t start, end;
};

/* Ascending, with gaps between them. All zero: none. */
struct elfparts {
	struct elfpart list[ELFPARTS_MAX];
	uint32_t nr;
	bool full; /* some are not in it */
};

/* Test whether all bytes from @start to before @end are there. */
bool elfparts_has(const struct elfparts *p, uint64_t start, uint64_t end);
/* Return the bytes from @start to before @end <= @size, the size of the file, and the ones around.
 */
struct elfpart elfparts_round(uint64_t start, uint64_t end, uint64_t size);
/* Add them. */
void elfparts_add(struct elfparts *p, uint64_t start, uint64_t end, uint64_t size);
/* Return the sum of all bytes. */
uint64_t elfparts_sum(const struct elfparts *p);

#endif
