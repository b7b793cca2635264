// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Bytes as the answers of the reader of a recording: refused, or no record that they name leaves
 * the recording. Input: u32 size of the facts, the facts, the answer.
 * FUZZ: sampler
 */
#include "sampler/perfdata/perfdata.c"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/sandbox/sandbox.h"
#include "symbols/base/base.h"
#include "sampler/ring/ring.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The recording: its bytes end with the block. */
#define RECORDING_SIZE 65536U

static void look_up(struct perfdata *pd)
{
	for (uint64_t i = 0; i < perfdata_info(pd).nr_records; i++) {
		const struct record_layout *layout;
		size_t size;
		const uint8_t *bytes = perfdata_record(pd, i, &size, &layout);
		struct record r;

		if (!bytes)
			abort();
		if (record_decode(&r, layout, bytes, size))
			continue;
		if (perfdata_event_of(pd, r.id) >= (int)perfdata_info(pd).nr_events)
			abort();
		if (r.type == PERF_RECORD_MMAP || r.type == PERF_RECORD_MMAP2)
			perfdata_identify(pd, &r.mmap);
	}
}

static int take_answer(struct perfdata *pd, const uint8_t *bytes, size_t size)
{
	struct sandbox_answer a = { .bytes = malloc(size), .size = size };
	int code;

	memcpy(a.bytes, bytes, size);
	code = perfdata_accept_answer(pd, &a);
	sandbox_answer_free(&a);
	return code;
}

/* Take the answers. */
static void accept(struct perfdata *pd, const uint8_t *data, size_t size)
{
	struct perfdata_found found;
	uint32_t facts;

	memcpy(&facts, data, sizeof(facts));
	data += sizeof(facts);
	size -= sizeof(facts);
	if (facts > size || perfdata_accept_found(data + facts, size - facts, &found) ||
	    perfdata_accept_facts(pd, data, facts))
		return;
	/* Once more: the next one of a recording. A stream goes on after one that is refused. */
	take_answer(pd, data + facts, size - facts);
	take_answer(pd, data + facts, size - facts);
	perfdata_order_sort(pd->refs, pd->nr_refs);
	look_up(pd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t *recording;
	struct perfdata *pd;

	if (size < sizeof(uint32_t))
		return 0;
	if (!recording) {
		recording = xcalloc(1, RECORDING_SIZE);
		for (size_t i = 0; i < RECORDING_SIZE; i++)
			recording[i] = (uint8_t)(i % 48 ? i : 9);
	}
	pd = xcalloc(1, sizeof(*pd));
	pd->slot = -1;
	perfdata_bytes_borrow(&pd->bytes, recording, RECORDING_SIZE);
	accept(pd, data, size);
	perfdata_close(pd);
	return 0;
}
