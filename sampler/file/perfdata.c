// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perf.data: header, events, records sorted by time.
 * * One bounded walk finds the records that count and their times; merging runs
 * that are in order replaces perf's rounds. Offsets and sizes of the file are checked once, in
 * perfdata_bytes_at(), which all reads use.
 */
#include "sampler/file/perfdata.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sampler/file/lang_record.h"
#include "sampler/file/perfdata_bytes.h"
#include "sampler/file/perfdata_events.h"
#include "sampler/file/perfdata_header.h"
#include "sampler/file/perfdata_refuse.h"
#include "sampler/file/perfdata_zstd.h"
#include "symbols/base/bytes.h"

/* The bytes of a sample that are read to sort it: the header, its event, its time. */
#define SAMPLE_HEAD (sizeof(struct perf_event_header) + 7 * 8)

/* Offset of the protection in MMAP2: behind the header, ids, range, and the file's identity. */
#define MMAP2_PROT_AT 64
/* CPUs are read one after another in a round: its last records may have earlier ones behind. */
#define FIRST_NS 50000000ULL

struct record_ref {
	uint64_t time_ns;
	uint64_t at; /* offset in the file, or address of the inflated bytes */
	uint16_t event, size;
	bool inflated;
};

struct perfdata {
	struct perfdata_bytes bytes;
	uint8_t *copy; /* perfdata_from_memory */
	struct perfdata_events events;
	struct record_ref *refs;
	uint64_t nr_refs, room_refs;
	uint64_t nr_bad;
	char note[PERFDATA_NOTE_MAX]; /* "": the file is whole */
	bool stop;		      /* damage was met: nothing behind it is read */
	bool has_kernel;	      /* samples in the kernel */
	bool aux;		      /* it has traces of hardware, which are not decoded */
	uint64_t last_time_ns;
	uint64_t first_sample_ns, last_sample_ns;
	/* Of a pipe that is read as it is written. */
	struct {
		bool on, begun;		/* there is a record behind the header's */
		uint64_t walked;	/* all records before this offset are noted */
		uint64_t nr_ready;	/* records in order, with none to follow before them */
		uint64_t max_ns;	/* of all records */
		uint64_t flush_ns;	/* the same at the end of the last round but one */
		uint64_t next_flush_ns; /* at the end of the last round */
	} stream;
	struct perfdata_zstd *zstd; /* NULL until a compressed record was met */
};

/* The bytes that records are read from. */
struct source {
	struct perfdata_bytes *bytes;
	bool inflated;
};

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

const char *perfdata_machine(const struct perfdata *pd)
{
	return pd->events.machine;
}

const char *perfdata_host(const struct perfdata *pd)
{
	return pd->events.host;
}

uint64_t perfdata_newest_ns(const struct perfdata *pd)
{
	return pd->stream.max_ns;
}

const struct kernel_identity *perfdata_kernel(const struct perfdata *pd)
{
	return &pd->events.kernel;
}

uint64_t perfdata_date_ns(const struct perfdata *pd)
{
	return pd->bytes.date_ns;
}

bool perfdata_has_kernel(const struct perfdata *pd)
{
	return pd->has_kernel;
}

void perfdata_identify(struct perfdata *pd, struct record_mmap *m)
{
	size_t size = strnlen(m->filename, m->filename_size);

	if (!m->identity.build_id_size)
		perfdata_build_ids_find(&pd->events.build_ids, m->filename, size, &m->identity);
}

uint32_t perfdata_nr_ids(const struct perfdata *pd)
{
	return pd->events.nr_ids;
}

int perfdata_event_of(const struct perfdata *pd, uint64_t id)
{
	return perfdata_events_of(&pd->events, id);
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
	event = perfdata_event_of(pd, id);
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
		event = perfdata_event_of(pd, bytes_u64(at + offset));
	assert(event < (int)pd->events.nr);
	if (event >= 0)
		pd->events.events[event].nr_samples++;
}

static void append_ref(struct perfdata *pd, const struct record_ref *ref)
{
	if (pd->nr_refs == pd->room_refs) {
		pd->room_refs = pd->room_refs ? 2 * pd->room_refs : 1024;
		pd->refs = xrealloc_array(pd->refs, pd->room_refs, sizeof(*pd->refs));
	}
	assert(pd->nr_refs < pd->room_refs);
	pd->refs[pd->nr_refs++] = *ref;
}

/* @at: all of the record, or SAMPLE_HEAD of a sample. */
static void add_record(struct perfdata *pd, const struct source *src, uint64_t offset,
		       const uint8_t *at, const struct perf_event_header *h)
{
	uint32_t event = event_of_record(pd, at, h->type, h->size);
	struct record_ref ref = { .event = (uint16_t)event,
				  .size = h->size,
				  .inflated = src->inflated };

	ref.at = src->inflated ? (uintptr_t)at : offset;
	ref.time_ns = time_of(pd, &pd->events.events[event].layout, at, h->type, h->size);
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
static void add_lang_record(struct perfdata *pd, const struct source *src, uint64_t offset,
			    const uint8_t *at, const struct perf_event_header *h)
{
	struct record_ref ref = { .size = h->size, .inflated = src->inflated };

	if (lang_record_kind(at, h->size, &ref.time_ns) == LANG_RECORD_NONE)
		return;
	ref.at = src->inflated ? (uintptr_t)at : offset;
	append_ref(pd, &ref);
}

/* Note the first damage, for the user, and read no further. */
static void __attribute__((format(printf, 2, 3)))
set_damage(struct perfdata *pd, const char *fmt, ...)
{
	va_list ap;

	if (!pd->stop) {
		va_start(ap, fmt);
		vsnprintf(pd->note, sizeof(pd->note), fmt, ap);
		va_end(ap);
	}
	pd->stop = true;
}

static uint64_t walk(struct perfdata *pd, const struct source *src, uint64_t offset, uint64_t size,
		     struct err *e, int *code);

/* Note the records of a compressed block; a record may go on in the next block. */
static int inflate(struct perfdata *pd, const uint8_t *block, size_t size, struct err *e)
{
	struct perfdata_bytes inner;
	const struct source src = { &inner, true };
	const uint8_t *out;
	size_t out_size;
	int code = perfdata_zstd_add(&pd->zstd, block, size, &out, &out_size, e);

	if (code == -EBADMSG) {
		set_damage(pd, "recording damaged: a compressed block cannot be read");
		return 0;
	}
	if (code)
		return code;
	perfdata_bytes_borrow(&inner, out, out_size);
	perfdata_zstd_keep(pd->zstd, walk(pd, &src, 0, out_size, e, &code));
	return code;
}

/* A block that gives its size, since the record is padded. */
static int inflate_sized(struct perfdata *pd, const uint8_t *body, size_t size, struct err *e)
{
	if (size < 8 || bytes_u64(body) > size - 8) {
		set_damage(pd, "recording damaged: a compressed block cannot be read");
		return 0;
	}
	return inflate(pd, body + 8, bytes_u64(body), e);
}

/*
 * Handle one of perf's own records. *@extra: bytes behind it that belong to it. A compressed block
 * has no record with such bytes, and no compressed one.
 */
static int user_record(struct perfdata *pd, const struct source *src, const uint8_t *at,
		       const struct perf_event_header *h, uint64_t *extra, struct err *e)
{
	const size_t body = sizeof(*h);

	if (src->inflated && (h->type == PERFDATA_COMPRESSED || h->type == PERFDATA_COMPRESSED2 ||
			      h->type == PERFDATA_TRACING_DATA || h->type == PERFDATA_AUXTRACE)) {
		set_damage(pd, "recording damaged: record %u in a compressed block", h->type);
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
static bool read_header(struct perfdata *pd, const struct source *src, uint64_t at, uint64_t left,
			struct perf_event_header *h)
{
	const uint8_t *p = left < sizeof(*h) ? NULL : perfdata_bytes_at(src->bytes, at, sizeof(*h));

	if (!p)
		return false;
	memcpy(h, p, sizeof(*h));
	if (h->size < sizeof(*h))
		set_damage(pd, "recording damaged: record of %u bytes at %s %" PRIu64, h->size,
			   src->inflated ? "decompressed byte" : "byte", at);
	return h->size >= sizeof(*h) && h->size <= left;
}

/*
 * Note every record in @size bytes from @offset. Returns how many bytes were
 * whole records; a record cut at the end is left (compressed data goes on in
 * the next block).
 */
static uint64_t walk(struct perfdata *pd, const struct source *src, uint64_t offset, uint64_t size,
		     struct err *e, int *code)
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

/* Return the first of refs[from..to) that is later than @time_ns; they are in order. */
static uint64_t first_later(const struct record_ref *refs, uint64_t from, uint64_t to,
			    uint64_t time_ns)
{
	while (from < to) {
		uint64_t mid = from + (to - from) / 2;

		if (refs[mid].time_ns > time_ns)
			to = mid;
		else
			from = mid + 1;
	}
	return from;
}

/* Merge refs[from..mid) and refs[mid..to), each in order: only the overlap is moved. */
static void merge(struct record_ref *refs, uint64_t from, uint64_t mid, uint64_t to,
		  struct record_ref *spare)
{
	const struct record_ref *left = spare, *end;

	assert(from < mid && mid < to);
	from = first_later(refs, from, mid, refs[mid].time_ns);
	end = spare + (mid - from);
	memcpy(spare, refs + from, (mid - from) * sizeof(*refs));
	while (left < end)
		refs[from++] = mid < to && refs[mid].time_ns < left->time_ns ? refs[mid++]
									     : *left++;
}

/*
 * Sort the records by time, and as they were found. They are in runs, one for
 * each CPU in each of perf's rounds; neighbours are merged until one run is left.
 */
static int sort_refs(struct perfdata *pd)
{
	uint64_t nr = pd->nr_refs, nr_runs = 0, *starts = calloc(nr, sizeof(*starts));
	struct record_ref *spare = malloc(nr * sizeof(*spare));

	for (uint64_t i = 0; i < nr && starts; i++)
		if (!i || pd->refs[i].time_ns < pd->refs[i - 1].time_ns)
			starts[nr_runs++] = i;
	for (; nr_runs > 1 && spare; nr_runs = (nr_runs + 1) / 2) {
		for (uint64_t i = 0; i < nr_runs; i += 2) {
			if (i + 1 < nr_runs)
				merge(pd->refs, starts[i], starts[i + 1],
				      i + 2 < nr_runs ? starts[i + 2] : nr, spare);
			starts[i / 2] = starts[i];
		}
	}
	free(starts);
	free(spare);
	return nr_runs == 1 ? 0 : -ENOMEM;
}

/* Note missing data, unless damage was met. */
static void check_whole(struct perfdata *pd, const struct perfdata_extent *extent)
{
	uint64_t left = pd->nr_bad + perfdata_zstd_left(pd->zstd);

	if (pd->stop)
		return;
	if (pd->bytes.stopped)
		set_damage(pd, "stopped while it was read: %" PRIu64 " bytes of the pipe",
			   pd->bytes.size);
	else if (extent->missing)
		set_damage(pd, "recording cut short: %" PRIu64 " of %" PRIu64 " bytes are missing",
			   extent->missing, extent->missing + extent->data.size);
	else if (left)
		set_damage(pd, "recording cut short: it ends in the middle of a record");
	else if (extent->unfinished)
		set_damage(pd, "recording not finished: its writer was killed");
	else if (pd->aux)
		set_damage(pd, "AUX traces (Intel PT, SPE, CoreSight) are not decoded: see perf "
			       "script");
}

/* Find events and records; pd->bytes are there. */
static int parse(struct perfdata *pd, const char *path, struct err *e)
{
	const struct source src = { &pd->bytes, false };
	struct perfdata_extent extent;
	int code = perfdata_header_read(&pd->bytes, &pd->events, &extent);

	if (!code)
		pd->nr_bad = extent.data.size -
			     walk(pd, &src, extent.data.offset, extent.data.size, e, &code);
	if (code == -ENOTSUP || code == -ENOMEM)
		return code;
	if (code || !pd->events.nr) {
		uint64_t size = MIN(pd->bytes.size, 8U);
		const uint8_t *head = perfdata_bytes_at(&pd->bytes, 0, size);

		return perfdata_refuse(e, code ? code : -EINVAL, path, head, head ? size : 0);
	}
	check_whole(pd, &extent);
	if (pd->nr_refs && sort_refs(pd))
		return err_set(e, -ENOMEM, "no memory for the records of the file");
	return 0;
}

/* Finish @pd; @code: of opening its bytes. */
static int finish(struct perfdata **out, struct perfdata *pd, const char *path, int code,
		  struct err *e)
{
	if (!code)
		code = parse(pd, path, e);
	if (code) {
		perfdata_close(pd);
		return code;
	}
	*out = pd;
	return 0;
}

/* Read a pipe that is no stream: its first bytes were read already. */
static int finish_whole(struct perfdata **out, struct perfdata *pd, const char *path,
			sampler_reading_fn step, int code, struct err *e)
{
	struct perfdata *whole = xcalloc(1, sizeof(*whole));

	whole->bytes = pd->bytes;
	pd->bytes = (struct perfdata_bytes){ .fd = -1, .pipe = -1 };
	perfdata_close(pd);
	if (code)
		err_set(e, code, "cannot read %.300s: interrupted", path);
	else
		code = perfdata_bytes_finish(&whole->bytes, path, step, e);
	return finish(out, whole, path, code, e);
}

int perfdata_open_step(struct perfdata **out, const char *path, sampler_reading_fn step,
		       struct err *e)
{
	/* Else a FIFO without a writer hangs here. */
	int flags = O_RDONLY | O_CLOEXEC | (step ? O_NONBLOCK : 0);
	int fd = strcmp(path, "-") ? open(path, flags) : dup(STDIN_FILENO);
	struct perfdata *pd;

	if (e)
		e->text[0] = '\0';
	if (fd < 0)
		return err_set(e, -errno, "cannot open %s: %s", path, strerror(errno));
	pd = xcalloc(1, sizeof(*pd));
	return finish(out, pd, path, perfdata_bytes_open(&pd->bytes, fd, path, step, e), e);
}

/* Read the available bytes of a pipe. Return false at its end or on an error. */
static bool read_more(struct perfdata *pd)
{
	/* All bytes, while another way of reading may be chosen. */
	uint64_t keep = pd->stream.on ? pd->stream.walked : 0;
	int64_t got;

	for (uint64_t i = 0; i < pd->nr_refs && keep; i++)
		if (!pd->refs[i].inflated)
			keep = MIN(keep, pd->refs[i].at);
	got = perfdata_bytes_more(&pd->bytes, keep);
	if (got < 0)
		set_damage(pd, "reading stopped: %s", strerror((int)-got));
	return got > 0;
}

/* Note the new records. Return false if nothing behind them can be read. */
static bool walk_new(struct perfdata *pd, struct err *e)
{
	const struct source src = { &pd->bytes, false };
	int code = 0;

	pd->stream.walked +=
		walk(pd, &src, pd->stream.walked, pd->bytes.size - pd->stream.walked, e, &code);
	if (code)
		set_damage(pd, "reading stopped: %s", strerror(-code));
	return !pd->stop;
}

/* Is this the start of a recording of pipe mode? */
static bool is_pipe_mode(struct perfdata *pd)
{
	struct perfdata_extent extent;

	return !perfdata_header_read(&pd->bytes, &pd->events, &extent) &&
	       extent.data.offset == PERFDATA_PIPE_HEADER;
}

/* Read the first records of a pipe. 1: so far; 0: it is to be read as a whole; -ECANCELED. */
static int begin_stream(struct perfdata *pd, sampler_reading_fn step, struct err *e)
{
	while (!pd->stream.begun || !pd->events.nr) {
		int code = perfdata_bytes_wait(&pd->bytes, step);

		if (code <= 0)
			return code;
		if (!read_more(pd))
			return 0;
		if (pd->bytes.size < sizeof(struct perfdata_header))
			continue;
		if (!pd->stream.walked) {
			if (!is_pipe_mode(pd))
				return 0;
			pd->stream.walked = PERFDATA_PIPE_HEADER;
		}
		if (!walk_new(pd, e))
			return 0;
	}
	return 1;
}

int perfdata_open_stream(struct perfdata **out, const char *path, sampler_reading_fn step,
			 struct err *e)
{
	int fd = strcmp(path, "-") ? -1 : dup(STDIN_FILENO), code;
	struct perfdata *pd;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || !S_ISFIFO(st.st_mode)) {
		if (fd >= 0)
			close(fd);
		return perfdata_open_step(out, path, step, e);
	}
	if (e)
		e->text[0] = '\0';
	pd = xcalloc(1, sizeof(*pd));
	perfdata_bytes_begin(&pd->bytes, fd);
	code = begin_stream(pd, step, e);
	if (code == 1) {
		pd->stream.on = true;
		*out = pd;
		return 0;
	}
	return finish_whole(out, pd, path, step, code, e);
}

int perfdata_open(struct perfdata **out, const char *path, struct err *e)
{
	return perfdata_open_step(out, path, NULL, e);
}

int perfdata_from_memory(struct perfdata **out, const void *bytes, size_t size, struct err *e)
{
	struct perfdata *pd = xcalloc(1, sizeof(*pd));

	if (e)
		e->text[0] = '\0';
	pd->copy = xcalloc(1, size);
	memcpy(pd->copy, bytes, size);
	perfdata_bytes_borrow(&pd->bytes, pd->copy, size);
	return finish(out, pd, "recording", 0, e);
}

void perfdata_close(struct perfdata *pd)
{
	if (!pd)
		return;
	perfdata_zstd_free(pd->zstd);
	perfdata_events_fini(&pd->events);
	perfdata_bytes_close(&pd->bytes);
	free(pd->refs);
	free(pd->copy);
	free(pd);
}

uint32_t perfdata_nr_events(const struct perfdata *pd)
{
	return pd->events.nr;
}

const struct perfdata_event *perfdata_event(const struct perfdata *pd, uint32_t index)
{
	return index < pd->events.nr ? &pd->events.events[index] : NULL;
}

int perfdata_stream_fd(const struct perfdata *pd)
{
	return pd->stream.on ? pd->bytes.pipe : -1;
}

bool perfdata_more(struct perfdata *pd, bool idle)
{
	bool more = idle || (read_more(pd) && walk_new(pd, NULL));
	uint64_t left = pd->bytes.size - pd->stream.walked;

	if (!more) {
		pd->nr_bad = left;
		if (left || perfdata_zstd_left(pd->zstd))
			set_damage(pd, "recording cut short: it ends in the middle of a record");
		close(pd->bytes.pipe);
		pd->bytes.pipe = -1;
	}
	pd->stream.nr_ready = 0;
	if (pd->nr_refs && !sort_refs(pd))
		pd->stream.nr_ready =
			idle || !more ? pd->nr_refs
				      : first_later(pd->refs, 0, pd->nr_refs, pd->stream.flush_ns);
	return more;
}

void perfdata_drop(struct perfdata *pd)
{
	uint64_t nr = pd->stream.nr_ready;

	assert(nr <= pd->nr_refs);
	memmove(pd->refs, pd->refs + nr, (pd->nr_refs - nr) * sizeof(*pd->refs));
	pd->nr_refs -= nr;
	pd->stream.nr_ready = 0;
}

uint64_t perfdata_nr_records(const struct perfdata *pd)
{
	if (pd->stream.on)
		return pd->stream.nr_ready;
	return pd->nr_refs;
}

uint64_t perfdata_nr_bad(const struct perfdata *pd)
{
	return pd->nr_bad;
}

const char *perfdata_note(const struct perfdata *pd)
{
	return pd->note;
}

const uint8_t *perfdata_record(struct perfdata *pd, uint64_t index, size_t *size,
			       const struct record_layout **layout)
{
	const struct record_ref *ref = &pd->refs[index];

	*size = ref->size;
	*layout = &pd->events.events[ref->event].layout;
	if (ref->inflated)
		return (const uint8_t *)(uintptr_t)ref->at;
	return perfdata_bytes_at(&pd->bytes, ref->at, ref->size);
}

void perfdata_span(const struct perfdata *pd, uint64_t *first_ns, uint64_t *last_ns)
{
	*first_ns = pd->first_sample_ns;
	*last_ns = pd->last_sample_ns;
}
