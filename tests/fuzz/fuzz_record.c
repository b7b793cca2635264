// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * FUZZ: sampler
 *
 * record_decode() on hostile bytes: 8 bytes of layout, then one record. All
 * that an accepted record points to must lie inside it and be readable.
 */
#include "sampler/ring/ring.h"
#include "symbols/image/image.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t *first, *last;
static volatile uint8_t sink;

/* Read it all, so that ASan sees it; a NULL must be empty. */
static void check(const void *p, uint64_t nr, uint64_t width)
{
	const uint8_t *b = p;

	if (!p || !nr)
		return;
	if (b < first || nr > (uint64_t)(last - b) / width)
		abort();
	for (uint64_t i = 0; i < nr * width; i++)
		sink = (uint8_t)(sink + b[i]);
}

static void check_record(const struct record *r, const struct record_layout *l)
{
	switch (r->type) {
	case PERF_RECORD_SAMPLE:
		check(r->sample.chain, r->sample.nr_chain, 8);
		check(r->sample.regs, (uint64_t)__builtin_popcountll(l->regs_mask), 8);
		check(r->sample.stack, r->sample.stack_size, 1);
		if (r->sample.stack_dyn > r->sample.stack_size)
			abort();
		check(r->sample.branches, r->sample.nr_branches, 24);
		for (uint32_t i = 0; i < r->sample.nr_branches; i++)
			sink = (uint8_t)(sink + record_branch(&r->sample, i).cycles);
		break;
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		check(r->mmap.filename, r->mmap.filename_size + 1, 1);
		if (r->mmap.filename[r->mmap.filename_size] || r->mmap.identity.build_id_size > 20)
			abort();
		break;
	case PERF_RECORD_KSYMBOL:
		check(r->ksymbol.name, r->ksymbol.name_size + 1, 1);
		if (r->ksymbol.name[r->ksymbol.name_size])
			abort();
		break;
	case PERF_RECORD_COMM:
		check(r->comm.comm, r->comm.comm_size + 1, 1);
		if (r->comm.comm[r->comm.comm_size])
			abort();
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct record_layout l = { 0 };
	struct record r;
	uint32_t type;
	uint8_t *copy;

	if (size < 8 || size - 8 > UINT16_MAX)
		return 0;
	memcpy(&type, data, 4);
	l.sample_type = type & ((1u << 25) - 1);
	memcpy(&l.regs_mask, data + 4, 3);
	l.id_all = data[7] & 1;
	l.branch_type = (data[7] & 4 ? PERF_SAMPLE_BRANCH_HW_INDEX : 0) |
			(data[7] & 8 ? 1ULL << 19 : 0) |
			(data[7] & 16 ? PERF_SAMPLE_BRANCH_CALL_STACK : 0);
	l.intr_mask = data[7] >> 5;
	l.read_format = data[6] & 31;
	size -= 8;
	copy = malloc(size ? size : 1);
	memcpy(copy, data + 8, size);
	/* Mostly the size that the ring would have checked. */
	if (size >= 8 && !(data[7] & 2))
		memcpy(copy + 6, &(uint16_t){ (uint16_t)size }, 2);
	first = copy;
	last = copy + size;
	if (!record_decode(&r, &l, copy, size))
		check_record(&r, &l);
	free(copy);
	return 0;
}
