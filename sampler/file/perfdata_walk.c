// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The walk over the records of a perf.data file: time, event and place of each that counts.
 *
 * One thread. Offsets and sizes of the file are checked in perfdata_bytes_at().
 */
#include "sampler/file/perfdata_walk.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "sampler/file/lang_record.h"
#include "sampler/file/perfdata_header.h"
#include "sampler/file/perfdata_zstd.h"
#include "symbols/base/bytes.h"

/* The bytes of a sample that are read to sort it: the header, its event, its time. */
#define SAMPLE_HEAD (sizeof(struct perf_event_header) + 7 * 8)

/* Offset of the protection in MMAP2: behind the header, ids, range, and the file's identity. */
#define MMAP2_PROT_AT 64
/* CPUs are read one after another in a round: its last records may have earlier ones behind. */
#define FIRST_NS 50000000ULL

void perfdata_damage(struct perfdata *pd, const char *fmt, ...)
{
	va_list ap;

	if (!pd->stop) {
		va_start(ap, fmt);
		vsnprintf(pd->note, sizeof(pd->note), fmt, ap);
		va_end(ap);
	}
	pd->stop = true;
}

/* Return the offset of the time in a sample, from the header's end; SIZE_MAX: it has none. */
static size_t sample_time_offset(uint64_t type)
{
	if (!(type & PERF_SAMPLE_TIME))
		return SIZE_MAX;
	return 8 * (size_t)(!!(type & PERF_SAMPLE_IDENTIFIER) + !!(type & PERF_SAMPLE_IP) +
			    !!(type & PERF_SAMPLE_TID));
}

/* Return the offset of the time in the id block of other records, back from the record's end. */
static size_t other_time_offset(uint64_t type)
{
	if (!(type & PERF_SAMPLE_TIME))
		return SIZE_MAX;
	return 8 * (size_t)(1 + !!(type & PERF_SAMPLE_ID) + !!(type & PERF_SAMPLE_STREAM_ID) +
			    !!(type & PERF_SAMPLE_CPU) + !!(type & PERF_SAMPLE_IDENTIFIER));
}

/* Return the event of a record: by its identifier where there is one. */
static uint32_t event_of_record(const struct perfdata *pd, const uint8_t *at, uint32_t type,
				size_t size)
{
	uint64_t id;
	int event;

	if (pd->events.nr <= 1 ||
	    !(pd->events.events[0].layout.sample_type & PERF_SAMPLE_IDENTIFIER) ||
	    size < sizeof(struct perf_event_header) + 8)
		return 0;
	id = bytes_u64(type == PERF_RECORD_SAMPLE ? at + sizeof(struct perf_event_header)
						  : at + size - 8);
	event = perfdata_events_of(&pd->events, id);
	return event < 0 ? 0 : (uint32_t)event;
}

/*
 * Return whether the record is a mapping of data: no address is ever looked up in it, so it is not
 * sorted. Mappings of the kernel's image may be marked as data also, and are kept: they have its
 * address.
 */
static bool is_data(const uint8_t *at, const struct perf_event_header *h)
{
	if ((h->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL)
		return false;
	if (h->type == PERF_RECORD_MMAP)
		return h->misc & PERF_RECORD_MISC_MMAP_DATA;
	return h->type == PERF_RECORD_MMAP2 && h->size >= MMAP2_PROT_AT + sizeof(uint32_t) &&
	       !(bytes_u32(at + MMAP2_PROT_AT) & PROT_EXEC);
}

/* Return the record's time; a record without one follows the one before. */
static uint64_t time_of(const struct perfdata *pd, const struct record_layout *layout,
			const uint8_t *at, uint32_t type, size_t size)
{
	size_t offset, body = sizeof(struct perf_event_header);

	if (type == PERF_RECORD_SAMPLE) {
		offset = sample_time_offset(layout->sample_type);
		if (offset <= size && size - offset >= body + 8)
			return bytes_u64(at + body + offset);
	} else if (layout->id_all) {
		offset = other_time_offset(layout->sample_type);
		if (offset <= size - body)
			return bytes_u64(at + size - offset);
	}
	return pd->last_time_ns;
}

/* Count the sample for its event: by the id, which old recordings have behind other fields. */
static void count_sample(struct perfdata *pd, const uint8_t *at, size_t size)
{
	uint64_t type = pd->events.events[0].layout.sample_type;
	size_t offset = sizeof(struct perf_event_header);
	int event = 0;

	if (!(type & PERF_SAMPLE_IDENTIFIER))
		offset += 8 * (size_t)(!!(type & PERF_SAMPLE_IP) + !!(type & PERF_SAMPLE_TID) +
				       !!(type & PERF_SAMPLE_TIME) + !!(type & PERF_SAMPLE_ADDR));
	if (type & (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ID) && size >= offset + 8)
		event = perfdata_events_of(&pd->events, bytes_u64(at + offset));
	assert(event < (int)pd->events.nr);
	if (event >= 0)
		pd->events.events[event].nr_samples++;
}

static void append_ref(struct perfdata *pd, const struct perfdata_ref *ref)
{
	if (pd->nr_refs == pd->room_refs) {
		pd->room_refs = pd->room_refs ? 2 * pd->room_refs : 1024;
		pd->refs = xrealloc_array(pd->refs, pd->room_refs, sizeof(*pd->refs));
	}
	assert(pd->nr_refs < pd->room_refs);
	pd->refs[pd->nr_refs++] = *ref;
}

/* @at: all of the record, or SAMPLE_HEAD of a sample. */
static void add_record(struct perfdata *pd, const struct perfdata_source *src, uint64_t offset,
		       const uint8_t *at, const struct perf_event_header *h)
{
	uint32_t event = event_of_record(pd, at, h->type, h->size);
	struct perfdata_ref ref = { .event = (uint16_t)event,
				    .size = h->size,
				    .inflated = src->inflated };

	ref.at = src->inflated ? (uintptr_t)at : offset;
	ref.time_ns = MIN(time_of(pd, &pd->events.events[event].layout, at, h->type, h->size),
			  PERFDATA_TIME_MAX);
	pd->last_time_ns = ref.time_ns;
	pd->stream.max_ns = MAX(pd->stream.max_ns, ref.time_ns);
	pd->stream.begun |= h->type == PERF_RECORD_SAMPLE;
	if (h->type == PERF_RECORD_SAMPLE) {
		count_sample(pd, at, h->size);
		pd->has_kernel |= (h->misc & PERF_RECORD_MISC_CPUMODE_MASK) ==
				  PERF_RECORD_MISC_KERNEL;
		if (!pd->first_sample_ns || ref.time_ns < pd->first_sample_ns)
			pd->first_sample_ns = ref.time_ns;
		pd->last_sample_ns = MAX(pd->last_sample_ns, ref.time_ns);
	}
	append_ref(pd, &ref);
}

/* Note a record with frames of a language: a function is needed before all samples. */
static void add_lang_record(struct perfdata *pd, const struct perfdata_source *src, uint64_t offset,
			    const uint8_t *at, const struct perf_event_header *h)
{
	struct perfdata_ref ref = { .size = h->size, .inflated = src->inflated };

	if (lang_record_kind(at, h->size, &ref.time_ns) == LANG_RECORD_NONE)
		return;
	ref.at = src->inflated ? (uintptr_t)at : offset;
	append_ref(pd, &ref);
}

/* Note the records of a compressed block; a record may go on in the next block. */
static int inflate(struct perfdata *pd, const uint8_t *block, size_t size, struct err *e)
{
	struct perfdata_bytes inner;
	const struct perfdata_source src = { &inner, true };
	const uint8_t *out;
	size_t out_size;
	int code = perfdata_zstd_add(&pd->zstd, block, size, &out, &out_size, e);

	if (code == -EBADMSG) {
		perfdata_damage(pd, "recording damaged: a compressed block cannot be read");
		return 0;
	}
	if (code)
		return code;
	perfdata_bytes_borrow(&inner, out, out_size);
	perfdata_zstd_keep(pd->zstd, perfdata_walk(pd, &src, 0, out_size, e, &code));
	return code;
}

/* A block that gives its size, since the record is padded. */
static int inflate_sized(struct perfdata *pd, const uint8_t *body, size_t size, struct err *e)
{
	if (size < 8 || bytes_u64(body) > size - 8) {
		perfdata_damage(pd, "recording damaged: a compressed block cannot be read");
		return 0;
	}
	return inflate(pd, body + 8, bytes_u64(body), e);
}

/*
 * Handle one of perf's own records. *@extra: bytes behind it that belong to it. A compressed block
 * has no record with such bytes, and no compressed one.
 */
static int user_record(struct perfdata *pd, const struct perfdata_source *src, const uint8_t *at,
		       const struct perf_event_header *h, uint64_t *extra, struct err *e)
{
	const size_t body = sizeof(*h);

	if (src->inflated && (h->type == PERFDATA_COMPRESSED || h->type == PERFDATA_COMPRESSED2 ||
			      h->type == PERFDATA_TRACING_DATA || h->type == PERFDATA_AUXTRACE)) {
		perfdata_damage(pd, "recording damaged: record %u in a compressed block", h->type);
		return 0;
	}
	switch (h->type) {
	case PERFDATA_HEADER_ATTR:
		return perfdata_header_attr(&pd->events, at, h->size, pd->nr_refs > 0,
					    pd->stream.on);
	case PERFDATA_HEADER_BUILD_ID:
		perfdata_build_ids_add(&pd->events.build_ids, &pd->events.kernel, at, h->size);
		return 0;
	case PERFDATA_TRACING_DATA:
		*extra = h->size >= body + 4 ? (bytes_u32(at + body) + 7ULL) & ~7ULL : 0;
		return 0;
	case PERFDATA_AUXTRACE:
		pd->aux = true;
		*extra = h->size >= body + 8 ? bytes_u64(at + body) : 0;
		return 0;
	case PERFDATA_HEADER_FEATURE:
		perfdata_header_piped_feature(&pd->events, at, h->size);
		return 0;
	case PERFDATA_FINISHED_ROUND:
		/* A CPU's ring may have had records of the last round, but none of earlier ones. */
		pd->stream.flush_ns = pd->stream.next_flush_ns;
		/* The first rows soon: a late record is late for a few samples only. */
		if (!pd->stream.flush_ns)
			pd->stream.flush_ns = pd->stream.max_ns - MIN(pd->stream.max_ns, FIRST_NS);
		pd->stream.next_flush_ns = pd->stream.max_ns;
		pd->stream.begun = true;
		return 0;
	case PERFDATA_EVENT_UPDATE:
		perfdata_header_update(&pd->events, at, h->size);
		return 0;
	case PERFDATA_COMPRESSED:
		return inflate(pd, at + body, h->size - body, e);
	case PERFDATA_COMPRESSED2:
		return inflate_sized(pd, at + body, h->size - body, e);
	default:
		return 0;
	}
}

/* The header of the record at @at; false: it does not fit into @left bytes. */
static bool read_header(struct perfdata *pd, const struct perfdata_source *src, uint64_t at,
			uint64_t left, struct perf_event_header *h)
{
	const uint8_t *p = left < sizeof(*h) ? NULL : perfdata_bytes_at(src->bytes, at, sizeof(*h));

	if (!p)
		return false;
	memcpy(h, p, sizeof(*h));
	if (h->size < sizeof(*h))
		perfdata_damage(pd, "recording damaged: record of %u bytes at %s %" PRIu64, h->size,
				src->inflated ? "decompressed byte" : "byte", at);
	return h->size >= sizeof(*h) && h->size <= left;
}

uint64_t perfdata_walk(struct perfdata *pd, const struct perfdata_source *src, uint64_t offset,
		       uint64_t size, struct err *e, int *code)
{
	uint64_t done = 0, extra;
	struct perf_event_header h;

	while (!*code && !pd->stop && read_header(pd, src, offset + done, size - done, &h)) {
		const uint8_t *at = perfdata_bytes_at(src->bytes, offset + done,
						      h.type == PERF_RECORD_SAMPLE
							      ? MIN(h.size, SAMPLE_HEAD)
							      : h.size);

		if (!at)
			break;
		extra = 0;
		if (h.type == LANG_RECORD_TYPE && pd->events.nr)
			add_lang_record(pd, src, offset + done, at, &h);
		else if (h.type >= PERFDATA_USER_FIRST)
			*code = user_record(pd, src, at, &h, &extra, e);
		else if (pd->events.nr && !is_data(at, &h))
			add_record(pd, src, offset + done, at, &h);
		if (extra > size - done - h.size)
			break;
		done += h.size + extra;
	}
	return done;
}
