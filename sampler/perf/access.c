// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The kind of an access to memory. Pure; any thread.
 */
#include "sampler/perf/access.h"

#include <linux/perf_event.h>
#include <stddef.h>

#include "symbols/base/base.h"

/* Levels by PERF_MEM_LVLNUM_*, since Linux 4.14. */
static enum access_level level_of_number(uint64_t number, bool remote)
{
	switch (number) {
	case PERF_MEM_LVLNUM_L1:
		return ACCESS_L1;
	case PERF_MEM_LVLNUM_L2:
		return ACCESS_L2;
	case PERF_MEM_LVLNUM_L3:
		return ACCESS_L3;
	case PERF_MEM_LVLNUM_L4:
		return ACCESS_L4;
	case PERF_MEM_LVLNUM_ANY_CACHE:
		return remote ? ACCESS_REMOTE_CACHE : ACCESS_CACHE;
	case PERF_MEM_LVLNUM_LFB:
		return ACCESS_LFB;
	case PERF_MEM_LVLNUM_RAM:
		return remote ? ACCESS_REMOTE_RAM : ACCESS_RAM;
	case PERF_MEM_LVLNUM_PMEM:
		return ACCESS_PMEM;
	default:
		return ACCESS_ANYWHERE;
	}
}

/* Levels by PERF_MEM_LVL_*: the first bit that is set, as several mean the nearest or others. */
static enum access_level level_of_bits(uint64_t bits)
{
	static const struct {
		uint64_t bits;
		enum access_level level;
	} levels[] = {
		{ PERF_MEM_LVL_L1, ACCESS_L1 },
		{ PERF_MEM_LVL_LFB, ACCESS_LFB },
		{ PERF_MEM_LVL_L2, ACCESS_L2 },
		{ PERF_MEM_LVL_L3, ACCESS_L3 },
		{ PERF_MEM_LVL_LOC_RAM, ACCESS_RAM },
		{ PERF_MEM_LVL_REM_RAM1 | PERF_MEM_LVL_REM_RAM2, ACCESS_REMOTE_RAM },
		{ PERF_MEM_LVL_REM_CCE1 | PERF_MEM_LVL_REM_CCE2, ACCESS_REMOTE_CACHE },
		{ PERF_MEM_LVL_IO, ACCESS_IO },
		{ PERF_MEM_LVL_UNC, ACCESS_UNCACHED },
	};

	for (size_t i = 0; i < ARRAY_SIZE(levels); i++)
		if (bits & levels[i].bits)
			return levels[i].level;
	return ACCESS_ANYWHERE;
}

struct access_kind access_kind(uint64_t data_src)
{
	const union perf_mem_data_src d = { .val = data_src };
	struct access_kind k = { .op = d.mem_op & PERF_MEM_OP_STORE    ? ACCESS_STORE
				       : d.mem_op & PERF_MEM_OP_LOAD   ? ACCESS_LOAD
				       : d.mem_op & PERF_MEM_OP_PFETCH ? ACCESS_PREFETCH
								       : ACCESS_UNKNOWN };

	k.level = level_of_number(d.mem_lvl_num, d.mem_remote);
	if (k.level == ACCESS_ANYWHERE)
		k.level = level_of_bits(d.mem_lvl);
	k.miss = k.level != ACCESS_ANYWHERE && d.mem_lvl & PERF_MEM_LVL_MISS;
	k.tlb_miss = d.mem_dtlb & PERF_MEM_TLB_MISS;
	return k;
}

const char *access_op_name(enum access_op op)
{
	static const char *const names[] = { "", "load", "store", "prefetch" };

	return op < ARRAY_SIZE(names) ? names[op] : "";
}

const char *access_level_name(enum access_level level)
{
	static const char *const names[] = {
		[ACCESS_ANYWHERE] = "unknown",
		[ACCESS_L1] = "L1",
		[ACCESS_LFB] = "LFB",
		[ACCESS_L2] = "L2",
		[ACCESS_L3] = "L3",
		[ACCESS_L4] = "L4",
		[ACCESS_CACHE] = "cache",
		[ACCESS_REMOTE_CACHE] = "remote cache",
		[ACCESS_RAM] = "RAM",
		[ACCESS_REMOTE_RAM] = "remote RAM",
		[ACCESS_PMEM] = "PMEM",
		[ACCESS_IO] = "I/O",
		[ACCESS_UNCACHED] = "uncached",
	};

	return level < ARRAY_SIZE(names) ? names[level] : names[ACCESS_ANYWHERE];
}
