/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The text in which JIT compilers write the names of their code,
 * /tmp/perf-PID.map: "START SIZE name" a line, numbers in hex (Linux,
 * tools/perf/Documentation/jit-interface.txt).
 *
 * Hostile: the user of the process writes it. Of overlapping entries the later
 * one wins: code was compiled again, or its memory reused. A last line without a
 * newline is still being written and is ignored.
 *
 * Pure: bytes in, table out; immutable once made. Any thread.
 */
#ifndef SYMBOLS_JIT_PERFMAP_H
#define SYMBOLS_JIT_PERFMAP_H

#include "symbols/base/base.h"
#include "symbols/cage/cage.h"

#define PERFMAP_SIZE_MAX    (64U << 20)
#define PERFMAP_ENTRIES_MAX (2U << 20)
#define PERFMAP_NAME_MAX    512U /* bytes of one name; the rest is cut */

/* Bytes of a table: names, entries, and two spans for each entry. */
#define PERFMAP_FLAT_MAX (64U + PERFMAP_SIZE_MAX + PERFMAP_ENTRIES_MAX * 3U * 24U)

struct perfmap;

/* Borrowed from the map; the name is foreign bytes, not NUL-terminated. */
struct perfmap_symbol {
	uint64_t start, size;
	const char *name;
	uint32_t name_size;
};

/* Parse a map. 0, -ENODATA (no entry), -E2BIG, -ENOMEM. */
int perfmap_parse(struct perfmap **out, const char *text, size_t size);
/* Append the table of @map to @reply. */
void perfmap_put(const struct perfmap *map, struct cage_reply *reply);
/*
 * Make a map of the table in @answer, which is foreign: every offset and the order are checked.
 * 0: the map owns its bytes; -EBADMSG, -ENOMEM.
 */
int perfmap_adopt(struct perfmap **out, const struct cage_answer *answer);
void perfmap_free(struct perfmap *map);

/* Find the entry with @addr; false when there is none. */
bool perfmap_find(const struct perfmap *map, uint64_t addr, struct perfmap_symbol *out);
uint32_t perfmap_nr(const struct perfmap *map);
uint32_t perfmap_nr_bad(const struct perfmap *map); /* Return the number of invalid lines. */
size_t perfmap_memory(const struct perfmap *map);

#endif
