/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Records of the hardware in a sample: a taken branch, an access to memory.
 *
 * Pure; any thread.
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

enum access_op { ACCESS_UNKNOWN, ACCESS_LOAD, ACCESS_STORE, ACCESS_PREFETCH, ACCESS_OP_NR };

/* The memory that had the data. */
enum access_level {
	ACCESS_ANYWHERE, /* not known */
	ACCESS_L1,
	ACCESS_LFB,
	ACCESS_L2,
	ACCESS_L3,
	ACCESS_L4,
	ACCESS_CACHE,	     /* any cache */
	ACCESS_REMOTE_CACHE, /* of another node */
	ACCESS_RAM,
	ACCESS_REMOTE_RAM,
	ACCESS_PMEM,
	ACCESS_IO,
	ACCESS_UNCACHED,
	ACCESS_LEVEL_NR,
};

/* The kind of an access, from data_src. */
struct access_kind {
	enum access_op op;
	enum access_level level;
	bool miss;     /* it was not at that level */
	bool tlb_miss; /* nor its address in a TLB */
};

struct access_kind access_kind(uint64_t data_src);
/* "load"; "": unknown. */
const char *access_op_name(enum access_op op);
/* "L1", "remote RAM". */
const char *access_level_name(enum access_level level);

#endif
