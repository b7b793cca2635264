// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Bytes as a perf map; a result must cover the requested address.
 * FUZZ: symbols
 */
#include "symbols/jit/perfmap.c"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/jit/internal.h"
#include "symbols/sandbox/sandbox.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct perfmap *map;
	uint64_t addr;

	if (perfmap_parse(&map, (const char *)data, size))
		return 0;
	if (!perfmap_nr(map))
		abort();
	for (size_t i = 0; i < 64 + size; i++) {
		struct perfmap_symbol s;

		addr = i;
		if (i >= 64 && size - (i - 64) >= 8)
			memcpy(&addr, data + (i - 64), 8);
		else if (i >= 64)
			addr = 0x1000 + i;
		if (!perfmap_find(map, addr, &s))
			continue;
		if (addr - s.start >= s.size || !s.name_size || s.name_size > PERFMAP_NAME_MAX ||
		    memchr(s.name, '\n', s.name_size))
			abort();
	}
	perfmap_free(map);
	return 0;
}
