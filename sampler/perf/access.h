/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What hardware records with a sample: a taken branch, an access to memory.
 */
#ifndef SAMPLER_PERF_ACCESS_H
#define SAMPLER_PERF_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

/* One taken branch. */
struct record_branch {
	uint64_t from, to;
	bool mispredicted, predicted; /* neither: not known */
	bool in_tx, abort;
	uint32_t cycles; /* since the branch before; 0: not known */
};

/* One access to memory. Fields that were not recorded are 0. */
struct record_memory {
	uint64_t fields; /* PERF_SAMPLE_*: the recorded ones */
	uint64_t addr, phys_addr;
	uint64_t data_src;	 /* union perf_mem_data_src */
	uint64_t weight;	 /* latency in cycles */
	uint64_t page_size;	 /* of the page of @addr, in bytes */
	uint64_t code_page_size; /* of the page of the instruction */
};

#endif
