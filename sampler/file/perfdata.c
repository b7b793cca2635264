// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perf.data: header, events, records sorted by time.
 *
 * One bounded walk (perfdata_walk.c) finds the records that count and their times; merging runs
 * that are in order replaces perf's rounds. Offsets and sizes of the file are checked once, in
 * perfdata_bytes_at(), which all reads use.
 */
#include "sampler/file/perfdata.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sampler/file/perfdata_bytes.h"
#include "sampler/file/perfdata_events.h"
#include "sampler/file/perfdata_header.h"
#include "sampler/file/perfdata_refuse.h"
#include "sampler/file/perfdata_walk.h"
#include "sampler/file/perfdata_zstd.h"

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

/* Return the first of refs[from..to) that is later than @time_ns; they are in order. */
static uint64_t first_later(const struct perfdata_ref *refs, uint64_t from, uint64_t to,
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
static void merge(struct perfdata_ref *refs, uint64_t from, uint64_t mid, uint64_t to,
		  struct perfdata_ref *spare)
{
	const struct perfdata_ref *left = spare, *end;

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
	struct perfdata_ref *spare = malloc(nr * sizeof(*spare));

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
		perfdata_damage(pd, "stopped while it was read: %" PRIu64 " bytes of the pipe",
				pd->bytes.size);
	else if (extent->missing)
		perfdata_damage(pd,
				"recording cut short: %" PRIu64 " of %" PRIu64 " bytes are missing",
				extent->missing, extent->missing + extent->data.size);
	else if (extent->cut)
		perfdata_damage(pd, "recording cut short: all samples are there, but not the facts "
				    "behind them, such as build-ids");
	else if (left)
		perfdata_damage(pd, "recording cut short: it ends in the middle of a record");
	else if (extent->unfinished)
		perfdata_damage(pd, "recording not finished: its writer was killed");
	else if (pd->aux)
		perfdata_damage(pd, "AUX traces (Intel PT, SPE, CoreSight) are not decoded: see "
				    "perf "
				    "script");
}

/* Find events and records; pd->bytes are there. */
static int parse(struct perfdata *pd, const char *path, struct err *e)
{
	const struct perfdata_source src = { &pd->bytes, false };
	struct perfdata_extent extent;
	int code = perfdata_header_read(&pd->bytes, &pd->events, &extent);

	if (!code)
		pd->nr_bad = extent.data.size - perfdata_walk(pd, &src, extent.data.offset,
							      extent.data.size, e, &code);
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
	int fd = strcmp(path, "-") ? open(path, flags) : fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
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
		perfdata_damage(pd, "reading stopped: %s", strerror((int)-got));
	return got > 0;
}

/* Note the new records. Return false if nothing behind them can be read. */
static bool walk_new(struct perfdata *pd, struct err *e)
{
	const struct perfdata_source src = { &pd->bytes, false };
	int code = 0;

	pd->stream.walked += perfdata_walk(pd, &src, pd->stream.walked,
					   pd->bytes.size - pd->stream.walked, e, &code);
	if (code)
		perfdata_damage(pd, "reading stopped: %s", strerror(-code));
	return !pd->stop;
}

/* Return whether this is the start of a recording of pipe mode. */
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
	int fd = strcmp(path, "-") ? -1 : fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0), code;
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
			perfdata_damage(pd, "recording cut short: it ends in the middle of a "
					    "record");
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
	const struct perfdata_ref *ref = &pd->refs[index];

	*size = ref->size;
	*layout = &pd->events.events[ref->event].layout;
	if (ref->inflated)
		return (const uint8_t *)(uintptr_t)ref->at;
	return perfdata_bytes_at(&pd->bytes, ref->at, ref->size);
}

/* A part of a record is read only if it has fewer bytes by this number. */
#define PART_SAVED 1024u
/* Records that follow so soon are read with the end of the one before. */
#define BEHIND_MAX 4096u

/*
 * Return the bytes to read behind @ref, which ends at @end: up to @begin of each record that is
 * next both in time and in the file. Records of other CPUs are elsewhere.
 */
static uint64_t behind(const struct perfdata *pd, const struct perfdata_ref *ref, uint64_t end,
		       size_t begin)
{
	const struct perfdata_ref *last = pd->refs + pd->nr_refs;
	uint64_t to = end;

	while (++ref < last && !ref->inflated && ref->at >= to && ref->at - end <= BEHIND_MAX)
		to = ref->at + MIN(begin, ref->size);
	return to - end;
}

/*
 * Make a record of the first @begin bytes of one and of those after its stack copy, which has its
 * size at @at.
 */
static const uint8_t *shorten(struct perfdata *pd, const struct perfdata_ref *ref,
			      const uint8_t *bytes, size_t begin, size_t at, size_t *size)
{
	uint64_t stack_size, part = begin - at - sizeof(part), end, left, more;
	struct perf_event_header header;

	memcpy(&stack_size, bytes + at, sizeof(stack_size));
	if (stack_size > ref->size - begin + part || stack_size <= part || !part)
		return NULL;
	end = at + sizeof(stack_size) + stack_size;
	left = ref->size - end;
	*size = begin + left;
	memcpy(pd->part, bytes, begin);
	memcpy(&header, pd->part, sizeof(header));
	header.size = (uint16_t)*size;
	memcpy(pd->part, &header, sizeof(header));
	memcpy(pd->part + at, &part, sizeof(part));
	end += ref->at;
	more = behind(pd, ref, end + left, begin);
	bytes = perfdata_bytes_at(&pd->bytes, end, MIN(left + more, pd->bytes.size - end));
	if (!bytes)
		return NULL;
	memcpy(pd->part + begin, bytes, left);
	return pd->part;
}

const uint8_t *perfdata_record_part(struct perfdata *pd, uint64_t index, size_t begin, size_t *size,
				    const struct record_layout **layout, bool *is_part)
{
	const struct perfdata_ref *ref = &pd->refs[index];
	const uint8_t *bytes = NULL;
	size_t at;

	*layout = &pd->events.events[ref->event].layout;
	begin &= ~(sizeof(uint64_t) - 1);
	if (!ref->inflated && pd->bytes.fd >= 0 && begin + PART_SAVED < ref->size)
		bytes = perfdata_bytes_at(&pd->bytes, ref->at, begin);
	at = bytes ? record_stack_at(*layout, bytes, begin) : 0;
	bytes = at ? shorten(pd, ref, bytes, begin, at, size) : NULL;
	*is_part = bytes != NULL;
	return bytes ? bytes : perfdata_record(pd, index, size, layout);
}

void perfdata_span(const struct perfdata *pd, uint64_t *first_ns, uint64_t *last_ns)
{
	*first_ns = pd->first_sample_ns;
	*last_ns = pd->last_sample_ns;
}
