// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Any bytes as .eh_frame: the index is sorted, free of overlaps, inside the
 * section, and every indexed FDE can be read again with the same result.
 * FUZZ: symbols
 */
#include "symbols/debugframe.h"
#include "symbols/ehframe.h"

#include <elf.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ehframe eh;
	uint16_t machine;
	uint8_t *both;
	size_t both_size;

	if (!size)
		return 0;
	/* The same bytes as a .debug_frame behind themselves. */
	if (!debugframe_join(data, size / 2, data + size / 2, size - size / 2, &both, &both_size)) {
		if (!ehframe_init(&eh, both, both_size, 0x10000, EM_X86_64))
			ehframe_fini(&eh);
		free(both);
	}
	machine = data[0] & 1 ? EM_AARCH64 : EM_X86_64;
	ehframe_init(&eh, data + 1, size - 1, 0x10000, machine);
	for (uint32_t i = 0; i < eh.nr_fdes; i++) {
		const struct ehframe_fde *f = &eh.fdes[i];
		struct ehframe_record rec;

		if (i && f->start - f[-1].start < f[-1].size)
			abort();
		if (ehframe_read(&eh, f->offset, &rec) || rec.start != f->start || rec.size != f->size)
			abort();
		if (rec.insns > rec.insns_end || rec.insns_end > eh.size ||
		    rec.cie.insns > rec.cie.insns_end || rec.cie.insns_end > eh.size)
			abort();
		if (ehframe_find(&eh, f->start + f->size - 1) != f)
			abort();
	}
	ehframe_fini(&eh);
	return 0;
}
