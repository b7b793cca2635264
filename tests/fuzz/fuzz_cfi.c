// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Any bytes as .eh_frame through the gate: rows are in order, inside their FDE, and agree with the
 * look-up of a single pc.
 * FUZZ: unwind
 */
#include "tests/unwind/row_at.h"
#include "symbols/elf/elf.h"
#include "symbols/script/script.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct rows {
	uint64_t at, end;
	struct cfi_row first;
	uint64_t first_pc;
	int nr;
};

static void take(void *ctx, const struct cfi_rule *rule)
{
	struct rows *r = ctx;

	if (rule->start != r->at || rule->end <= rule->start || rule->end > r->end ||
	    rule->row.kind > CFI_COMPLEX)
		abort();
	if (!r->nr++) {
		r->first = rule->row;
		r->first_pc = rule->start;
	}
	r->at = rule->end;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct arch_ops *arch;
	struct ehframe eh;

	if (!size)
		return 0;
	arch = data[0] & 1 ? &arch_aarch64 : &arch_x86_64;
	ehframe_init(&eh, data + 1, size - 1, 0x10000, arch->machine);
	for (uint32_t i = 0; i < eh.nr_fdes; i++) {
		uint32_t offset = (uint32_t)eh.fdes[i];
		struct ehframe_record rec;
		struct rows rows = { .nr = 0 };
		struct cfi_sink sink = { take, &rows };
		struct cfi_row row;

		if (ehframe_read(&eh, offset, &rec))
			abort();
		rows.at = rec.start;
		rows.end = rec.start + rec.size;
		if (cfi_check(arch, &eh, offset, &sink, NULL) != CFI_OK)
			continue;
		if (!rows.nr || rows.at != rows.end)
			abort();
		if (cfi_row_at(arch, &eh, offset, rows.first_pc, &row) != CFI_OK ||
		    memcmp(&row, &rows.first, sizeof(row)) != 0)
			abort();
	}
	ehframe_fini(&eh);
	return 0;
}
