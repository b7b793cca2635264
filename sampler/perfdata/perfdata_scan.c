// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The reader of a recording in the sandbox: header, then records part by part, compressed blocks
 * inflated.
 *
 * Runs in the worker, or in the thread of the call. Offsets and sizes of the file are checked in
 * one place, perfdata_bytes_at(), which all reads use.
 */
#include "sampler/perfdata/internal.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sampler/event/event.h"
#include "sampler/ring/ring.h"
#include "symbols/base/base.h"
#include "symbols/image/image.h"
#include "symbols/process/process.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/script/script.h"

/*
 * Compressed blocks of perf.data (perf record -z): one zstd stream over all
 * PERF_RECORD_COMPRESSED and _COMPRESSED2 records of a file. Without libzstd at build time every
 * block fails.
 *
 * One thread. Bytes are borrowed until the next call.
 *
 * Compressed blocks of perf.data, through libzstd, if it was found at build time.
 *
 * One buffer: bytes that were walked but not taken, then bytes that were not walked.
 */

#ifdef HAVE_ZSTD
#include <zstd.h>

#define ROOM_MIN ((size_t)1 << 16)

struct perfdata_zstd {
	ZSTD_DStream *stream;
	uint8_t *bytes;
	size_t size, room;
	size_t walked;	  /* of these, from the start */
	uint64_t at;	  /* offset of the first one in all decompressed bytes */
	uint64_t in, out; /* bytes of all blocks */
};

static int make(struct perfdata_zstd **zp)
{
	struct perfdata_zstd *z = xcalloc(1, sizeof(*z));

	z->stream = ZSTD_createDStream();
	if (!z->stream) {
		free(z);
		return -ENOMEM;
	}
	*zp = z;
	return 0;
}

static void make_room(struct perfdata_zstd *z, size_t more)
{
	if (z->room - z->size >= more)
		return;
	z->room = z->size + MAX(more, z->size);
	z->bytes = xrealloc_array(z->bytes, z->room, 1);
}

/*
 * Decompress the next block, behind the bytes that are there. *@z is made at the first call.
 * -EBADMSG: damaged, or larger than any recording; -EFBIG: all blocks are larger than @max bytes;
 * -ENOTSUP: built without libzstd; -ENOMEM.
 */
static int perfdata_zstd_add(struct perfdata_zstd **zp, const uint8_t *block, size_t size,
			     uint64_t max)
{
	ZSTD_inBuffer in = { .src = block, .size = size };
	int rc = *zp ? 0 : make(zp);
	struct perfdata_zstd *z = *zp;
	bool full;

	if (rc)
		return rc;
	z->in += size;
	make_room(z, MAX(8 * size, ROOM_MIN));
	do { /* a full buffer: the stream may hold more even if all input was taken */
		ZSTD_outBuffer o = { .dst = z->bytes + z->size, .size = z->room - z->size };
		size_t code = ZSTD_decompressStream(z->stream, &o, &in);

		z->out += o.pos;
		z->size += o.pos;
		full = o.pos == o.size;
		if (ZSTD_isError(code) || z->out > perfdata_zstd_limit(z->in) ||
		    (!o.pos && in.pos < in.size))
			return -EBADMSG;
		if (z->out > max) {
			/* The caller takes no more than @max bytes. */
			z->out -= o.pos;
			z->size -= o.pos;
			return -EFBIG;
		}
		if (full)
			make_room(z, ROOM_MIN);
	} while (in.pos < in.size || full);
	return 0;
}

static void perfdata_zstd_bytes(const struct perfdata_zstd *z, struct perfdata_bytes *b)
{
	perfdata_bytes_borrow(b, z->bytes + z->walked, z->size - z->walked);
	b->window_at = z->at + z->walked;
	b->size += b->window_at;
}

static void perfdata_zstd_walked(struct perfdata_zstd *z, uint64_t size)
{
	assert(size <= z->size - z->walked);
	z->walked += size;
}

static size_t perfdata_zstd_left(const struct perfdata_zstd *z)
{
	return z ? z->size - z->walked : 0;
}

static const uint8_t *perfdata_zstd_new(const struct perfdata_zstd *z, size_t *size)
{
	*size = z ? z->walked : 0;
	return z ? z->bytes : NULL;
}

static void perfdata_zstd_clear(struct perfdata_zstd *z)
{
	if (!z)
		return;
	memmove(z->bytes, z->bytes + z->walked, z->size - z->walked);
	z->at += z->walked;
	z->size -= z->walked;
	z->walked = 0;
}

static void perfdata_zstd_free(struct perfdata_zstd *z)
{
	if (!z)
		return;
	ZSTD_freeDStream(z->stream);
	free(z->bytes);
	free(z);
}

#else

static int perfdata_zstd_add(struct perfdata_zstd **z, const uint8_t *block, size_t size,
			     uint64_t max)
{
	return -ENOTSUP;
}

static void perfdata_zstd_bytes(const struct perfdata_zstd *z, struct perfdata_bytes *b)
{
	perfdata_bytes_borrow(b, NULL, 0);
}

static void perfdata_zstd_walked(struct perfdata_zstd *z, uint64_t size)
{
}

static size_t perfdata_zstd_left(const struct perfdata_zstd *z)
{
	return 0;
}

static const uint8_t *perfdata_zstd_new(const struct perfdata_zstd *z, size_t *size)
{
	*size = 0;
	return NULL;
}

static void perfdata_zstd_clear(struct perfdata_zstd *z)
{
}

static void perfdata_zstd_free(struct perfdata_zstd *z)
{
}
#endif

/*
 * The records of a perf.data file, noted in one bounded walk, and all that a scan knows.
 *
 * The walk over the records of a perf.data file: time, event and place of each that counts.
 *
 * One thread. Offsets and sizes of the file are checked in perfdata_bytes_at().
 */

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

/* Note the first damage, for the user, and read no further. */
static void perfdata_damage(struct perfdata_scan *s, const char *fmt, ...)
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

/*
 * Note the records from found.walked on, up to the end of a part. A record cut at the end is left.
 * 0 or -errno; s->full: there is more.
 */
static int perfdata_walk(struct perfdata_scan *s)
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

/* Make @s empty. */
static void perfdata_scan_init(struct perfdata_scan *s)
{
	*s = (struct perfdata_scan){ .bytes = { .fd = -1, .pipe = -1, .memory = -1 } };
}

static void perfdata_scan_fini(struct perfdata_scan *s)
{
	perfdata_zstd_free(s->zstd);
	perfdata_events_fini(&s->events);
	perfdata_bytes_close(&s->bytes);
	free(s->refs);
	s->refs = NULL;
	s->zstd = NULL;
}

/* Note missing data, unless damage was met. */
static void check_whole(struct perfdata_scan *s)
{
	const struct perfdata_extent *extent = &s->extent;
	uint64_t left = s->found.nr_bad + perfdata_zstd_left(s->zstd);

	if (s->found.stop)
		return;
	if (s->stopped)
		perfdata_damage(s, "stopped while it was read: %" PRIu64 " bytes of the pipe",
				s->bytes.size);
	else if (extent->missing)
		perfdata_damage(s,
				"recording cut short: %" PRIu64 " of %" PRIu64 " bytes are "
				"missing",
				extent->missing, extent->missing + extent->data.size);
	else if (extent->cut)
		perfdata_damage(s, "recording cut short: all samples are there, but not the "
				   "facts behind them, such as build-ids");
	else if (left)
		perfdata_damage(s, "recording cut short: it ends in the middle of a record");
	else if (extent->unfinished)
		perfdata_damage(s, "recording not finished: its writer was killed");
	else if (s->aux)
		perfdata_damage(s, "AUX traces (Intel PT, SPE, CoreSight) are not decoded: "
				   "see perf script");
}

/* Read the header; s->bytes are there. 0, -E2BIG: too many events, or -EINVAL. */
static int perfdata_scan_open(struct perfdata_scan *s)
{
	int code = perfdata_header_read(&s->bytes, &s->events, &s->extent);

	assert(!s->opened);
	s->opened = true;
	s->found.version++;
	s->found.walked = s->extent.data.offset;
	s->end = s->extent.data.offset + s->extent.data.size;
	return code;
}

/*
 * Find more records, until found.done. 0, -ENOTSUP: compressed, and built without libzstd, -ENOMEM,
 * -E2BIG or -EINVAL.
 */
static int perfdata_scan_more(struct perfdata_scan *s)
{
	int code = perfdata_walk(s);

	s->found.done = code || !s->full;
	if (code || !s->found.done || s->found.kind == PERFDATA_KIND_STREAM)
		return code;
	s->found.nr_bad = s->end - s->found.walked;
	check_whole(s);
	return s->events.nr ? 0 : -EINVAL;
}

/* Note a record that is cut at the end of a pipe. */
static void end_stream(struct perfdata_scan *s)
{
	s->found.done = true;
	s->found.nr_bad = s->bytes.size - s->found.walked;
	if (s->found.nr_bad || perfdata_zstd_left(s->zstd))
		perfdata_damage(s, "recording cut short: it ends in the middle of a record");
}

/*
 * Add bytes of a pipe, and find their records. @size 0: this was the end. As perfdata_scan_more();
 * found.kind and found.stop tell whether to go on.
 */
static int perfdata_scan_feed(struct perfdata_scan *s, const uint8_t *bytes, size_t size)
{
	int code;

	if (!size) {
		end_stream(s);
		return 0;
	}
	perfdata_bytes_append(&s->bytes, bytes, size, s->found.walked);
	if (!s->opened) {
		if (s->bytes.size < sizeof(struct perfdata_header))
			return 0;
		code = perfdata_scan_open(s);
		s->found.kind = !code && s->extent.data.offset == PERFDATA_PIPE_HEADER
					? PERFDATA_KIND_STREAM
					: PERFDATA_KIND_WHOLE;
	}
	s->end = s->bytes.size;
	return s->found.kind == PERFDATA_KIND_STREAM ? perfdata_scan_more(s) : 0;
}

/*
 * Return the decompressed bytes of the records since perfdata_scan_clear(), whole ones; *@size may
 * be 0.
 */
static const uint8_t *perfdata_scan_inflated(const struct perfdata_scan *s, size_t *size)
{
	return perfdata_zstd_new(s->zstd, size);
}

/* Forget the refs and the decompressed bytes. */
static void perfdata_scan_clear(struct perfdata_scan *s)
{
	s->nr_refs = 0;
	perfdata_zstd_clear(s->zstd);
}

/*
 * Scan a recording, and send what was found since the last call.
 *
 * Runs in the worker, or in the thread of the call. A worker has one recording, for all its life.
 */

/* The recordings that are open, by reader. */
static struct perfdata_scan *scans[PERFDATA_READERS];

static void close_scan(uint32_t slot)
{
	assert(slot < ARRAY_SIZE(scans));
	if (!scans[slot])
		return;
	perfdata_scan_fini(scans[slot]);
	free(scans[slot]);
	scans[slot] = NULL;
}

static struct perfdata_scan *new_scan(uint32_t slot)
{
	assert(slot < ARRAY_SIZE(scans) && !scans[slot]);
	close_scan(slot);
	scans[slot] = xcalloc(1, sizeof(*scans[slot]));
	perfdata_scan_init(scans[slot]);
	return scans[slot];
}

static int put_found(struct sandbox_reply *reply, struct perfdata_scan *s)
{
	struct perfdata_answer a = { .nr_refs = s->nr_refs, .found = s->found };
	const uint8_t *inflated;
	size_t size;

	inflated = perfdata_scan_inflated(s, &size);
	a.inflated = size;
	sandbox_put(reply, inflated, size);
	sandbox_put(reply, s->refs, s->nr_refs * sizeof(*s->refs));
	sandbox_put(reply, &a, sizeof(a));
	perfdata_scan_clear(s);
	return 0;
}

static void put_event(struct sandbox_reply *reply, const struct perfdata_events *t, uint32_t i)
{
	struct perfdata_fact_event ev = {
		.attr = t->attrs[i],
		.nr_samples = t->events[i].nr_samples,
		.group = t->events[i].event.group,
	};

	assert(i < t->nr);
	memcpy(ev.name, t->events[i].event.name, sizeof(ev.name));
	sandbox_put(reply, &ev, sizeof(ev));
}

static int put_facts(struct sandbox_reply *reply, const struct perfdata_events *t)
{
	struct perfdata_facts f = {
		.nr_events = t->nr,
		.nr_ids = t->nr_ids,
		.nr_build_ids = t->build_ids.nr,
		.names_size = (uint32_t)t->build_ids.names_size,
		.kernel = t->kernel,
	};

	memcpy(f.machine, t->machine, sizeof(f.machine));
	memcpy(f.host, t->host, sizeof(f.host));
	sandbox_put(reply, &f, sizeof(f));
	for (uint32_t i = 0; i < t->nr; i++)
		put_event(reply, t, i);
	sandbox_put(reply, t->ids, t->nr_ids * sizeof(*t->ids));
	sandbox_put(reply, t->build_ids.ids, t->build_ids.nr * sizeof(*t->build_ids.ids));
	sandbox_put(reply, t->build_ids.names, t->build_ids.names_size);
	return 0;
}

/* Keep the file of the call, and read its header. */
static int open_file(struct sandbox_call *c, const struct perfdata_request *r)
{
	struct perfdata_scan *s = new_scan(r->slot);

	if (c->fds[0] < 0)
		return -EINVAL;
	s->bytes.fd = c->fds[0];
	s->bytes.size = r->size;
	/* To read ahead is up to the caller. */
	s->bytes.ahead = r->size;
	c->fds[0] = -1;
	s->stopped = r->stopped;
	return perfdata_scan_open(s);
}

static int serve_scan(struct sandbox_call *c, const struct perfdata_request *r)
{
	struct perfdata_scan *s = scans[r->slot];
	int code;

	switch (r->call) {
	case PERFDATA_OPEN:
		return open_file(c, r);
	case PERFDATA_CLOSE:
		close_scan(r->slot);
		return 0;
	case PERFDATA_FACTS:
		return s ? put_facts(&c->reply, &s->events) : -EINVAL;
	case PERFDATA_FEED:
		s = s ? s : new_scan(r->slot);
		s->fixed = r->fixed;
		code = perfdata_scan_feed(s, (const uint8_t *)c->request + sizeof(*r),
					  c->size - sizeof(*r));
		break;
	case PERFDATA_MORE:
		code = s ? perfdata_scan_more(s) : -EINVAL;
		break;
	default:
		code = -EINVAL;
	}
	return code ? code : put_found(&c->reply, s);
}

static int serve(struct sandbox_call *c)
{
	struct perfdata_request r;

	if (c->size < sizeof(r))
		return -EINVAL;
	memcpy(&r, c->request, sizeof(r));
	return r.slot < PERFDATA_READERS ? serve_scan(c, &r) : -EINVAL;
}

#define READER(nr)                                                                                 \
	{                                                                                          \
		.kind = SANDBOX_RECORDING + (nr), .name = "proftop-record", .serve = serve,        \
		.memory_max = 4ULL << 30, .reply_max = 1UL << 30, .stateful = true,                \
	}

const struct sandbox_reader perfdata_readers[PERFDATA_READERS] = { READER(0), READER(1), READER(2),
								   READER(3) };
