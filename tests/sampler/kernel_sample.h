/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A sample as a ring has it: in the kernel, with one caller. */
#ifndef TESTS_SAMPLER_KERNEL_SAMPLE_H
#define TESTS_SAMPLER_KERNEL_SAMPLE_H

#include <linux/perf_event.h>
#include <stdint.h>

struct kernel_sample {
	struct perf_event_header h;
	uint64_t id, ip;
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, reserved;
	uint64_t period, nr_chain, chain[3];
};

/* The id block of other records (sample_id_all). */
struct kernel_trailer {
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, reserved;
	uint64_t id;
};

static inline struct kernel_sample kernel_sample(uint32_t pid, uint64_t id, uint64_t ip,
						 uint64_t caller)
{
	return (struct kernel_sample){
		.h = { PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL, sizeof(struct kernel_sample) },
		.id = id,
		.ip = ip,
		.pid = pid,
		.tid = pid,
		.nr_chain = 3,
		.chain = { (uint64_t)PERF_CONTEXT_KERNEL, ip, caller },
	};
}

#endif
