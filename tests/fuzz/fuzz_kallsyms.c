// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Bytes as /proc/kallsyms.
 * FUZZ: symbols
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/kernel/internal.h"
#include "symbols/sandbox/sandbox.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t fixed[] = { 0, 0xffffffff81000000, 0xffffffffc0100010, UINT64_MAX };
	struct kallsyms *k;
	uint64_t addr;

	if (kallsyms_parse(&k, (const char *)data, size, NULL))
		return 0;
	for (size_t i = 0; i < 4 + size / 8; i++) {
		struct kallsyms_symbol s;

		if (i < 4)
			addr = fixed[i];
		else
			memcpy(&addr, data + (i - 4) * 8, 8);
		if (!kallsyms_find(k, addr, &s))
			continue;
		if (addr - s.start >= s.size || !s.name_size || memchr(s.name, '\n', s.name_size) ||
		    (s.module && s.module[0] != '['))
			abort();
	}
	kallsyms_free(k);
	return 0;
}
