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

/* The bytes that records are read from. */
struct perfdata_source {
	struct perfdata_bytes *bytes;
	bool inflated;
};

void perfdata_damage(struct perfdata_scan *s, const char *fmt, ...)
{
	va_list ap;

	if (!s->found.stop) {
		va_start(ap, fmt);
		vsnprintf(s->found.note, sizeof(s->found.note), fmt, ap);
		va_end(ap);
	}
	s->found.stop = true;
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
static uint32_t event_of_record(const struct perfdata_scan *s, const uint8_t *at, uint32_t type,
				size_t size)
{
	uint64_t id;
	int event;

	if (s->events.nr <= 1 ||
	    !(s->events.events[0].layout.sample_type & PERF_SAMPLE_IDENTIFIER) ||
	    size < sizeof(struct perf_event_header) + 8)
		return 0;
	id = bytes_u64(type == PERF_RECORD_SAMPLE ? at + sizeof(struct perf_event_header)
						  : at + size - 8);
	event = perfdata_events_of(&s->events, id);
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
	       !(record_prot(bytes_u32(at + MMAP2_PROT_AT)) & PROT_EXEC);
}

/* Return the record's time; a record without one follows the one before. */
static uint64_t time_of(const struct perfdata_scan *s, const struct record_layout *layout,
			const uint8_t *at, uint32_t type, size_t size)
{
	size_t offset, body = sizeof(struct perf_event_header);
	uint64_t time_ns;

	if (type == PERF_RECORD_SAMPLE) {
		offset = sample_time_offset(layout->sample_type);
		if (offset <= size && size - offset >= body + 8) {
			time_ns = bytes_u64(at + body + offset);
			return time_ns < PERFDATA_TIME_NONE ? time_ns : s->found.max_ns;
		}
	} else if (layout->id_all) {
		offset = other_time_offset(layout->sample_type);
		if (offset <= size - body)
			return bytes_u64(at + size - offset);
	}
	return s->last_time_ns;
}

/* Count the sample for its event: by the id, which old recordings have behind other fields. */
static void count_sample(struct perfdata_scan *s, const uint8_t *at, size_t size)
{
	uint64_t type = s->events.events[0].layout.sample_type;
	size_t offset = sizeof(struct perf_event_header);
	int event = 0;

	if (!(type & PERF_SAMPLE_IDENTIFIER))
		offset += 8 * (size_t)(!!(type & PERF_SAMPLE_IP) + !!(type & PERF_SAMPLE_TID) +
				       !!(type & PERF_SAMPLE_TIME) + !!(type & PERF_SAMPLE_ADDR));
	if (type & (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ID) && size >= offset + 8)
		event = perfdata_events_of(&s->events, bytes_u64(at + offset));
	assert(event < (int)s->events.nr);
	if (event >= 0)
		s->events.events[event].nr_samples++;
}

static void append_ref(struct perfdata_scan *s, const struct perfdata_ref *ref)
{
	if (s->nr_refs == s->room_refs) {
		s->room_refs = s->room_refs ? 2 * s->room_refs : 1024;
		s->refs = xrealloc_array(s->refs, s->room_refs, sizeof(*s->refs));
	}
	assert(s->nr_refs < s->room_refs);
	s->refs[s->nr_refs++] = *ref;
	s->has_refs = true;
}

/* @at: all of the record, or SAMPLE_HEAD of a sample. */
static void add_record(struct perfdata_scan *s, const struct perfdata_source *src, uint64_t offset,
		       const uint8_t *at, const struct perf_event_header *h)
{
	uint32_t event = event_of_record(s, at, h->type, h->size);
	struct perfdata_ref ref = { .event = (uint16_t)event,
				    .size = h->size,
				    .inflated = src->inflated };

	ref.at = offset;
	ref.time_ns = MIN(time_of(s, &s->events.events[event].layout, at, h->type, h->size),
			  PERFDATA_TIME_MAX);
	s->last_time_ns = ref.time_ns;
	s->found.max_ns = MAX(s->found.max_ns, ref.time_ns);
	s->found.begun |= h->type == PERF_RECORD_SAMPLE;
	if (h->type == PERF_RECORD_SAMPLE) {
		count_sample(s, at, h->size);
		s->found.has_kernel |= (h->misc & PERF_RECORD_MISC_CPUMODE_MASK) ==
				       PERF_RECORD_MISC_KERNEL;
		if (!s->found.first_sample_ns || ref.time_ns < s->found.first_sample_ns)
			s->found.first_sample_ns = ref.time_ns;
		s->found.last_sample_ns = MAX(s->found.last_sample_ns, ref.time_ns);
	}
	s->has_refs = true;
	/* Of others only the time counts: places of them may need more memory than the file. */
	if (record_is_known(h->type))
		append_ref(s, &ref);
}

/* Note a record with frames of a language: a function is needed before all samples. */
static void add_lang_record(struct perfdata_scan *s, const struct perfdata_source *src,
			    uint64_t offset, const uint8_t *at, const struct perf_event_header *h)
{
	struct perfdata_ref ref = { .size = h->size, .inflated = src->inflated };

	if (lang_record_kind(at, h->size, &ref.time_ns) == LANG_RECORD_NONE)
		return;
	ref.at = offset;
	append_ref(s, &ref);
}

static uint64_t walk(struct perfdata_scan *s, const struct perfdata_source *src, uint64_t offset,
		     uint64_t size, int *code);

/* Note the records of decompressed bytes; one that is cut goes on in the next block. */
static int walk_inflated(struct perfdata_scan *s)
{
	struct perfdata_bytes inner;
	const struct perfdata_source src = { &inner, true };
	int code = 0;

	if (!s->zstd)
		return 0;
	perfdata_zstd_bytes(s->zstd, &inner);
	perfdata_zstd_walked(s->zstd, walk(s, &src, inner.window_at, inner.window_size, &code));
	return code;
}

static int inflate(struct perfdata_scan *s, const uint8_t *block, size_t size)
{
	bool stream = s->found.kind == PERFDATA_KIND_STREAM;
	int code =
		perfdata_zstd_add(&s->zstd, block, size, stream ? UINT64_MAX : PERFDATA_ZSTD_MAX);

	if (code == -EFBIG) {
		perfdata_damage(s, "not all is read: more than %llu GiB of decompressed records",
				PERFDATA_ZSTD_MAX >> 30);
		return 0;
	}
	if (code == -EBADMSG) {
		perfdata_damage(s, "recording damaged: a compressed block cannot be read");
		return 0;
	}
	return code ? code : walk_inflated(s);
}

/* A block that gives its size, since the record is padded. */
static int inflate_sized(struct perfdata_scan *s, const uint8_t *body, size_t size)
{
	if (size < 8 || bytes_u64(body) > size - 8) {
		perfdata_damage(s, "recording damaged: a compressed block cannot be read");
		return 0;
	}
	return inflate(s, body + 8, bytes_u64(body));
}

/*
 * Handle one of perf's own records. *@extra: bytes behind it that belong to it. A compressed block
 * has no record with such bytes, and no compressed one.
 */
static int user_record(struct perfdata_scan *s, const struct perfdata_source *src,
		       const uint8_t *at, const struct perf_event_header *h, uint64_t *extra)
{
	const size_t body = sizeof(*h);

	if (src->inflated && (h->type == PERFDATA_COMPRESSED || h->type == PERFDATA_COMPRESSED2 ||
			      h->type == PERFDATA_TRACING_DATA || h->type == PERFDATA_AUXTRACE)) {
		perfdata_damage(s, "recording damaged: record %u in a compressed block", h->type);
		return 0;
	}
	switch (h->type) {
	case PERFDATA_HEADER_ATTR:
		s->found.version++;
		return perfdata_header_attr(&s->events, at, h->size, s->has_refs, s->fixed);
	case PERFDATA_HEADER_BUILD_ID:
		s->found.version++;
		perfdata_build_ids_add(&s->events.build_ids, &s->events.kernel, at, h->size);
		return 0;
	case PERFDATA_TRACING_DATA:
		*extra = h->size >= body + 4 ? (bytes_u32(at + body) + 7ULL) & ~7ULL : 0;
		return 0;
	case PERFDATA_AUXTRACE:
		s->aux = true;
		*extra = h->size >= body + 8 ? bytes_u64(at + body) : 0;
		return 0;
	case PERFDATA_HEADER_FEATURE:
		s->found.version++;
		perfdata_header_piped_feature(&s->events, at, h->size);
		return 0;
	case PERFDATA_FINISHED_ROUND:
		/* A CPU's ring may have had records of the last round, but none of earlier ones. */
		s->found.flush_ns = s->next_flush_ns;
		/* The first rows soon: a late record is late for a few samples only. */
		if (!s->found.flush_ns)
			s->found.flush_ns = s->found.max_ns - MIN(s->found.max_ns, FIRST_NS);
		s->next_flush_ns = s->found.max_ns;
		s->found.begun = true;
		return 0;
	case PERFDATA_EVENT_UPDATE:
		s->found.version++;
		perfdata_header_update(&s->events, at, h->size);
		return 0;
	case PERFDATA_COMPRESSED:
		return inflate(s, at + body, h->size - body);
	case PERFDATA_COMPRESSED2:
		return inflate_sized(s, at + body, h->size - body);
	default:
		return 0;
	}
}

/* The header of the record at @at; false: it does not fit into @left bytes. */
static bool read_header(struct perfdata_scan *s, const struct perfdata_source *src, uint64_t at,
			uint64_t left, struct perf_event_header *h)
{
	const uint8_t *p = left < sizeof(*h) ? NULL : perfdata_bytes_at(src->bytes, at, sizeof(*h));

	if (!p)
		return false;
	memcpy(h, p, sizeof(*h));
	if (h->size < sizeof(*h))
		perfdata_damage(s, "recording damaged: record of %u bytes at %s %" PRIu64, h->size,
				src->inflated ? "decompressed byte" : "byte", at);
	return h->size >= sizeof(*h) && h->size <= left;
}

/* Test whether a part is complete: the caller takes it before the walk goes on. */
static bool is_full(const struct perfdata_scan *s, const struct perfdata_source *src,
		    uint64_t offset)
{
	size_t inflated;

	if (src->inflated)
		return s->nr_refs >= PERFDATA_PART_REFS;
	perfdata_zstd_new(s->zstd, &inflated);
	return s->nr_refs >= PERFDATA_PART_REFS || offset >= s->pause ||
	       inflated >= PERFDATA_PART_INFLATED;
}

/* Note the records in @size bytes from @offset. Return how many bytes were whole records. */
static uint64_t walk(struct perfdata_scan *s, const struct perfdata_source *src, uint64_t offset,
		     uint64_t size, int *code)
{
	uint64_t done = 0, extra;
	struct perf_event_header h;

	while (!*code && !s->full && !s->found.stop &&
	       read_header(s, src, offset + done, size - done, &h)) {
		const uint8_t *at;

		s->full = is_full(s, src, offset + done);
		if (s->full)
			break;
		at = perfdata_bytes_at(src->bytes, offset + done,
				       h.type == PERF_RECORD_SAMPLE ? MIN(h.size, SAMPLE_HEAD)
								    : h.size);
		if (!at)
			break;
		extra = 0;
		if (h.type == LANG_RECORD_TYPE && s->events.nr)
			add_lang_record(s, src, offset + done, at, &h);
		else if (h.type >= PERFDATA_USER_FIRST)
			*code = user_record(s, src, at, &h, &extra);
		else if (s->events.nr && !is_data(at, &h))
			add_record(s, src, offset + done, at, &h);
		if (extra > size - done - h.size)
			break;
		done += h.size + extra;
	}
	return done;
}

int perfdata_walk(struct perfdata_scan *s)
{
	const struct perfdata_source file = { &s->bytes, false };
	int code;

	s->full = false;
	s->pause = s->found.walked + PERFDATA_PART_SIZE;
	code = walk_inflated(s);
	if (!code && !s->full)
		s->found.walked += walk(s, &file, s->found.walked, s->end - s->found.walked, &code);
	return code;
}
