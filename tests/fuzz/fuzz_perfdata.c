// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perf.data from anywhere, as its reader in the sandbox has it: header, events, records, and their
 * decoding. In pipe mode also in pieces, with the same records.
 * FUZZ: sampler
 */
#include "sampler/perfdata/perfdata_read.c"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/ring/ring.h"
#include "symbols/base/base.h"
#include "symbols/image/image.h"
#include "sampler/event/event.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Decompressed bytes of an input that are decoded. */
#define INFLATED_MAX (1U << 20)
#define PIECE	     509U

struct sum {
	uint64_t nr_refs, times, first_ns, last_ns;
};

/* Decode the records that were found. @inflated: all decompressed bytes. */
static void decode(struct perfdata_scan *s, const uint8_t *data, const uint8_t *inflated,
		   struct sum *sum)
{
	for (uint64_t i = 0; i < s->nr_refs; i++) {
		const struct perfdata_ref *ref = &s->refs[i];
		struct record r;

		sum->nr_refs++;
		sum->times = sum->times * 31 + ref->time_ns;
		if (ref->event >= s->events.nr)
			abort();
		if (ref->inflated && ref->at + ref->size > INFLATED_MAX)
			continue;
		if (record_decode(&r, &s->events.events[ref->event].layout,
				  (ref->inflated ? inflated : data) + ref->at, ref->size))
			continue;
		perfdata_events_of(&s->events, r.id);
		if (r.type == PERF_RECORD_MMAP || r.type == PERF_RECORD_MMAP2)
			perfdata_build_ids_find(&s->events.build_ids, r.mmap.filename,
						strnlen(r.mmap.filename, r.mmap.filename_size),
						&r.mmap.identity);
	}
}

/* Take the findings, as the client does it. */
static void take(struct perfdata_scan *s, const uint8_t *data, struct sum *sum)
{
	static uint8_t inflated[INFLATED_MAX];
	static size_t used;
	size_t size;
	const uint8_t *bytes = perfdata_scan_inflated(s, &size);

	if (!sum->nr_refs && !s->has_refs)
		used = 0;
	size = MIN(size, INFLATED_MAX - used);
	if (size)
		memcpy(inflated + used, bytes, size);
	used += size;
	decode(s, data, inflated, sum);
	perfdata_scan_clear(s);
}

static bool scan_file(struct perfdata_scan *s, const uint8_t *data, size_t size, struct sum *sum)
{
	int code;

	perfdata_bytes_borrow(&s->bytes, data, size);
	code = perfdata_scan_open(s);
	while (!code && !s->found.done) {
		code = perfdata_scan_more(s);
		take(s, data, sum);
	}
	sum->first_ns = s->found.first_sample_ns;
	sum->last_ns = s->found.last_sample_ns;
	return !code;
}

static bool scan_pieces(struct perfdata_scan *s, const uint8_t *data, size_t size, struct sum *sum)
{
	int code = 0;

	for (size_t at = 0; at < size && !code && !s->found.stop; at += PIECE) {
		code = perfdata_scan_feed(s, data + at, MIN(PIECE, size - at));
		if (s->found.kind == PERFDATA_KIND_WHOLE)
			return false;
		take(s, data, sum);
		while (!code && !s->found.stop && s->found.kind == PERFDATA_KIND_STREAM &&
		       !s->found.done) {
			code = perfdata_scan_more(s);
			take(s, data, sum);
		}
	}
	if (!code)
		perfdata_scan_feed(s, NULL, 0);
	sum->first_ns = s->found.first_sample_ns;
	sum->last_ns = s->found.last_sample_ns;
	return !code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct perfdata_scan s;
	struct sum whole = { 0 }, pieces = { 0 };
	bool both;

	perfdata_scan_init(&s);
	both = scan_file(&s, data, size, &whole) && s.extent.data.offset == PERFDATA_PIPE_HEADER &&
	       size >= sizeof(struct perfdata_header);
	perfdata_scan_fini(&s);
	if (!both)
		return 0;
	perfdata_scan_init(&s);
	both = scan_pieces(&s, data, size, &pieces);
	perfdata_scan_fini(&s);
	if (both && memcmp(&whole, &pieces, sizeof(whole)) != 0)
		abort();
	return 0;
}
