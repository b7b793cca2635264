// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perf.data from anywhere: header, events, records, and their decoding.
 * FUZZ: sampler
 */
#include <linux/perf_event.h>
#include <stdint.h>

#include "sampler/file/perfdata.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct perfdata *pd;

	if (perfdata_from_memory(&pd, data, size, NULL))
		return 0;
	for (uint64_t i = 0; i < perfdata_nr_records(pd); i++) {
		const struct record_layout *layout;
		size_t record_size;
		const uint8_t *bytes = perfdata_record(pd, i, &record_size, &layout);
		struct record r;

		if (record_decode(&r, layout, bytes, record_size))
			continue;
		perfdata_event_of(pd, r.id);
		if (r.type == PERF_RECORD_MMAP || r.type == PERF_RECORD_MMAP2)
			perfdata_identify(pd, &r.mmap);
	}
	perfdata_close(pd);
	return 0;
}
