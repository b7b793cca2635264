// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Any bytes as code without unwind tables: rows are in order and inside the code, and the work is
 * bounded by its size.
 * FUZZ: symbols/elf
 */
#include "symbols/elf/internal.h"

#include <elf.h>
#include <stdlib.h>

#include "symbols/elf/elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define VADDR 0x10000u

struct rows {
	uint64_t at, end;
};

static void take(void *ctx, uint64_t start, uint64_t end, const struct derive_row *row,
		 bool guessed)
{
	struct rows *r = ctx;

	if (start < r->at || end <= start || end > r->end || !row->cfa || row->cfa > DERIVE_END)
		abort();
	r->at = end;
}

/* Frames of code made at run time are in order, and inside it. */
static void check_made(const uint8_t *data, size_t size, uint16_t machine)
{
	struct derive_frame frames[64];
	uint32_t nr = derive_function(machine, VADDR, data, size, frames, 64), end = 0;

	if (nr > 64)
		abort();
	for (uint32_t i = 0; i < nr; i++) {
		if (frames[i].start < end || !frames[i].size ||
		    frames[i].size > size - frames[i].start || frames[i].by_fp > 1)
			abort();
		end = frames[i].start + frames[i].size;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rows rows = { VADDR, VADDR + size };
	const struct derive_sink sink = { take, &rows };
	uint64_t starts[4], marks[] = { VADDR + size / 3, VADDR + size / 2 };
	const struct derive_code constants = { data, VADDR / 2, size };
	struct derive_input in = {
		.visits_max = UINT64_MAX,
		.cpu = &derive_x86,
		.code = { data, VADDR, size },
		.starts = starts,
		.nr_starts = ARRAY_SIZE(starts),
		.maybe = marks,
		.nr_maybe = ARRAY_SIZE(marks),
		.marks = marks,
		.nr_marks = ARRAY_SIZE(marks),
		.data = &constants,
		.nr_data = 1,
		.text = &in.code,
		.nr_text = 1,
		.entry = VADDR,
	};

	if (size < 8)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(starts); i++)
		starts[i] = VADDR + i * size / ARRAY_SIZE(starts);
	if (derive_rows(&in, &sink) > 48 * size + 4100)
		abort();
	in.cpu = &derive_arm64;
	rows.at = VADDR;
	if (derive_rows(&in, &sink) > 48 * size + 4100)
		abort();
	check_made(data, size, EM_X86_64);
	check_made(data, size, EM_AARCH64);
	return 0;
}
