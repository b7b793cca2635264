// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Any bytes as .eh_frame: the index ascends, is inside the section, and
 * every indexed FDE can be read again with the same result. Any bytes as
 * .eh_frame_hdr before it: a result equals the FDE.
 * FUZZ: symbols
 */
#include "symbols/elf/internal.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/elf/elf.h"

#define VADDR 0x10000ULL

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* One FDE of an index; @walked: one that a walk has accepted. */
static void check_fde(const struct ehframe *eh, uint32_t i, bool walked)
{
	struct ehframe_fde fde, found;
	struct ehframe_record rec;

	if (i && eh->fdes[i] >> 32 <= eh->fdes[i - 1] >> 32)
		abort();
	if (!ehframe_at(eh, i, &fde)) {
		if (walked)
			abort();
		return;
	}
	if (ehframe_read(eh, fde.offset, &rec) || rec.start != fde.start || !fde.size ||
	    rec.size < fde.size)
		abort();
	if (rec.insns > rec.insns_end || rec.insns_end > eh->size ||
	    rec.cie.insns > rec.cie.insns_end || rec.cie.insns_end > eh->size)
		abort();
	if (fde.start + fde.size - 1 - ehhdr_base(eh->vaddr) <= UINT32_MAX &&
	    (!ehframe_find(eh, fde.start + fde.size - 1, &found) || found.offset != fde.offset))
		abort();
}

static void by_walk(const uint8_t *data, size_t size, uint16_t machine)
{
	struct ehframe eh;

	ehframe_init(&eh, data, size, VADDR, machine);
	for (uint32_t i = 0; i < eh.nr_fdes; i++)
		check_fde(&eh, i, true);
	ehframe_fini(&eh);
}

/* The bytes as .eh_frame_hdr with the number of entries in its header, then .eh_frame. */
static void by_table(const uint8_t *data, size_t size, uint16_t machine)
{
	struct ehframe eh;
	uint64_t *entries;
	struct ehhdr h;
	size_t used;

	if (!ehhdr_parse(&h, data, size, size, VADDR) || !h.nr)
		return;
	used = EHHDR_SIZE + h.nr * sizeof(*entries);
	entries = malloc(h.nr * sizeof(*entries));
	if (!entries)
		abort();
	memcpy(entries, data + EHHDR_SIZE, h.nr * sizeof(*entries));
	if (ehframe_init_hdr(&eh, data + used, size - used, machine, &h, entries)) {
		free(entries);
		return;
	}
	for (uint32_t i = 0; i < eh.nr_fdes; i++)
		check_fde(&eh, i, false);
	ehframe_fini(&eh);
}

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
		if (!ehframe_init(&eh, both, both_size, VADDR, EM_X86_64))
			ehframe_fini(&eh);
		free(both);
	}
	machine = data[0] & 1 ? EM_AARCH64 : EM_X86_64;
	by_walk(data + 1, size - 1, machine);
	by_table(data + 1, size - 1, machine);
	return 0;
}
