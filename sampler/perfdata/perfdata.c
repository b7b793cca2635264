// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A recording: its bytes here, their meaning found in the cage.
 *
 * The places of its records come from there, in the order of the file. Here they are sorted by
 * time, and each record is read when its turn has come.
 */
#include "sampler/perfdata/perfdata.h"

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
#include "sampler/file/perfdata_call.h"
#include "sampler/file/perfdata_events.h"
#include "sampler/file/perfdata_order.h"
#include "sampler/file/perfdata_private.h"
#include "sampler/file/perfdata_refuse.h"
#include "symbols/base/search.h"

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
	return pd->found.max_ns;
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
	return pd->found.has_kernel;
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

/* Find events and records; pd->bytes are there. */
static int parse(struct perfdata *pd, const char *path, struct err *e)
{
	int code = perfdata_call_all(pd);

	perfdata_call_end(pd);
	code = !code && !pd->events.nr ? -EINVAL : code;
	if (code) {
		/* A file system that does not respond may be why it was given up. */
		uint64_t size = code == -ECANCELED ? 0 : MIN(pd->bytes.size, 8U);
		const uint8_t *head = perfdata_bytes_at(&pd->bytes, 0, size);

		return perfdata_refuse(e, code, path, head, head ? size : 0);
	}
	perfdata_order_sort(pd->refs, pd->nr_refs);
	return 0;
}

static struct perfdata *new_perfdata(void)
{
	struct perfdata *pd = xcalloc(1, sizeof(*pd));

	pd->bytes = (struct perfdata_bytes){ .fd = -1, .pipe = -1, .memory = -1 };
	pd->slot = -1;
	pd->first_at = UINT64_MAX;
	return pd;
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
	pd->step = NULL;
	*out = pd;
	return 0;
}

/* Read a pipe that is no stream: its first bytes were read already. */
static int finish_whole(struct perfdata **out, struct perfdata *pd, const char *path,
			sampler_reading_fn step, int code, struct err *e)
{
	struct perfdata *whole = new_perfdata();

	whole->bytes = pd->bytes;
	whole->step = step;
	pd->bytes = (struct perfdata_bytes){ .fd = -1, .pipe = -1, .memory = -1 };
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
	pd = new_perfdata();
	pd->step = step;
	return finish(out, pd, path, perfdata_bytes_open(&pd->bytes, fd, path, step, e), e);
}

/* Note why reading a pipe ends, unless that is known. */
static void stop_reading(struct perfdata *pd, int code)
{
	if (!pd->found.stop)
		snprintf(pd->found.note, sizeof(pd->found.note), "reading stopped: %s",
			 perfdata_reason(code));
	pd->found.stop = true;
}

/* Note the first place in the bytes of a pipe, from ref @from on: bytes before it may be freed. */
static void note_first(struct perfdata *pd, uint64_t from)
{
	for (uint64_t i = from; i < pd->nr_refs; i++)
		if (!pd->refs[i].inflated)
			pd->first_at = MIN(pd->first_at, pd->refs[i].at);
}

/* Read the available bytes of a pipe, and find their records. False: this was the end. */
static bool read_more(struct perfdata *pd)
{
	/* All bytes, while another way of reading may be chosen. */
	uint64_t keep = pd->streaming ? MIN(pd->found.walked, pd->first_at) : 0;
	const uint64_t nr_before = pd->nr_refs;
	int64_t got;
	int code;

	got = perfdata_bytes_more(&pd->bytes, keep);
	code = got < 0 ? (int)got : 0;
	if (got > 0)
		code = perfdata_call_feed(pd,
					  perfdata_bytes_at(&pd->bytes,
							    pd->bytes.size - (uint64_t)got,
							    (uint64_t)got),
					  (size_t)got, pd->streaming);
	note_first(pd, nr_before);
	if (code)
		stop_reading(pd, code);
	return got > 0 && !pd->found.stop;
}

/* Read the first records of a pipe. 1: so far; 0: it is to be read as a whole; -ECANCELED. */
static int begin_stream(struct perfdata *pd, sampler_reading_fn step)
{
	while (!pd->found.begun || !pd->events.nr) {
		int code = perfdata_bytes_wait(&pd->bytes, step);

		if (code <= 0)
			return code;
		if (!read_more(pd) || pd->found.kind == PERFDATA_KIND_WHOLE)
			return pd->cancelled ? -ECANCELED : 0;
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
	pd = new_perfdata();
	pd->step = step;
	perfdata_bytes_begin(&pd->bytes, fd);
	code = begin_stream(pd, step);
	if (code == 1) {
		pd->step = NULL;
		pd->streaming = true;
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
	struct perfdata *pd = new_perfdata();

	if (e)
		e->text[0] = '\0';
	return finish(out, pd, "recording", perfdata_bytes_copy(&pd->bytes, bytes, size), e);
}

void perfdata_close(struct perfdata *pd)
{
	if (!pd)
		return;
	perfdata_call_end(pd);
	perfdata_events_fini(&pd->events);
	perfdata_bytes_close(&pd->bytes);
	for (uint32_t i = 0; i < pd->nr_chunks; i++)
		free(pd->chunks[i].bytes);
	free(pd->chunks);
	free(pd->refs);
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

void perfdata_stop_by(struct perfdata *pd, const atomic_bool *stopped)
{
	pd->stopped = stopped;
}

int perfdata_stream_fd(const struct perfdata *pd)
{
	return pd->streaming ? pd->bytes.pipe : -1;
}

bool perfdata_more(struct perfdata *pd, bool idle)
{
	bool more = idle || read_more(pd);

	if (!more) {
		int code = pd->found.stop ? 0 : perfdata_call_feed(pd, NULL, 0, true);

		if (code)
			stop_reading(pd, code);
		perfdata_call_end(pd);
		close(pd->bytes.pipe);
		pd->bytes.pipe = -1;
	}
	pd->nr_ready = 0;
	/* Before the end of the next round nothing is ready. */
	if (!idle && more && pd->found.flush_ns == pd->sorted_ns)
		return true;
	pd->sorted_ns = pd->found.flush_ns;
	perfdata_order_sort(pd->refs, pd->nr_refs);
	pd->nr_ready = idle || !more
			       ? pd->nr_refs
			       : perfdata_order_later(pd->refs, 0, pd->nr_refs, pd->found.flush_ns);
	return more;
}

/* Free decompressed bytes that no record is in any more. */
static void drop_chunks(struct perfdata *pd)
{
	uint64_t keep = UINT64_MAX;
	uint32_t nr = 0;

	if (!pd->nr_chunks)
		return;
	for (uint64_t i = 0; i < pd->nr_refs; i++)
		if (pd->refs[i].inflated)
			keep = MIN(keep, pd->refs[i].at);
	for (; nr < pd->nr_chunks && pd->chunks[nr].at + pd->chunks[nr].size <= keep; nr++) {
		pd->kept -= pd->chunks[nr].size;
		free(pd->chunks[nr].bytes);
	}
	pd->nr_chunks -= nr;
	memmove(pd->chunks, pd->chunks + nr, pd->nr_chunks * sizeof(*pd->chunks));
}

void perfdata_drop(struct perfdata *pd)
{
	uint64_t nr = pd->nr_ready;

	assert(nr <= pd->nr_refs);
	if (!nr)
		return;
	memmove(pd->refs, pd->refs + nr, (pd->nr_refs - nr) * sizeof(*pd->refs));
	pd->nr_refs -= nr;
	pd->nr_ready = 0;
	pd->first_at = UINT64_MAX;
	note_first(pd, 0);
	drop_chunks(pd);
}

uint64_t perfdata_nr_records(const struct perfdata *pd)
{
	return pd->streaming ? pd->nr_ready : pd->nr_refs;
}

uint64_t perfdata_nr_bad(const struct perfdata *pd)
{
	return pd->found.nr_bad;
}

const char *perfdata_note(const struct perfdata *pd)
{
	return pd->found.note;
}

/* Return the bytes of a record that was decompressed: of the last chunk that begins before it. */
static const uint8_t *inflated_at(const struct perfdata *pd, const struct perfdata_ref *ref)
{
	uint32_t next = search_split(pd->nr_chunks, i, pd->chunks[i].at <= ref->at);
	const struct perfdata_chunk *c = next ? &pd->chunks[next - 1] : NULL;

	if (!c || ref->at - c->at > c->size || ref->size > c->size - (ref->at - c->at))
		return NULL;
	return c->bytes + (ref->at - c->at);
}

const uint8_t *perfdata_record(struct perfdata *pd, uint64_t index, size_t *size,
			       const struct record_layout **layout)
{
	const struct perfdata_ref *ref = &pd->refs[index];

	*size = ref->size;
	*layout = &pd->events.events[ref->event].layout;
	if (ref->inflated)
		return inflated_at(pd, ref);
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
	*first_ns = pd->found.first_sample_ns;
	*last_ns = pd->found.last_sample_ns;
}
