// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A perf.data file or stream: created safely, records, attributes, formats of tracepoints, header
 * completed at the end.
 *
 * Runs on: the recorder's writer (creation: set-up). Invariant: up to w->end the file holds whole
 * records; the rest of a failed write is cut off.
 */
#include "sampler/perfdata/internal.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "sampler/event/event.h"
#include "symbols/base/base.h"
#include "symbols/base/file.h"

/*
 * Events of a recording, each once, with sorted ids.
 *
 * Runs on: the writer of the recording.
 */

static bool same_attr(const struct perf_event_attr *a, const struct perf_event_attr *b)
{
	struct perf_event_attr x = *a, y = *b;

	x.sample_period = y.sample_period = 0;
	x.wakeup_watermark = y.wakeup_watermark = 0;
	return !memcmp(&x, &y, sizeof(x));
}

static struct perfdata_attr *find_attr(struct perfdata_attrs *attrs, const char *name,
				       const struct perf_event_attr *attr)
{
	struct perfdata_attr *pa;

	for (uint32_t i = 0; i < attrs->nr; i++)
		if (same_attr(&attrs->events[i].attr, attr) && !strcmp(attrs->events[i].name, name))
			return &attrs->events[i];
	attrs->events = xrealloc_array(attrs->events, attrs->nr + 1, sizeof(*attrs->events));
	pa = &attrs->events[attrs->nr++];
	*pa = (struct perfdata_attr){ .attr = *attr };
	snprintf(pa->name, sizeof(pa->name), "%s", name);
	return pa;
}

static bool has_id(const struct perfdata_attr *pa, size_t nr, uint64_t id)
{
	size_t at = search_split(nr, i, pa->ids[i] < id);

	return at < nr && pa->ids[at] == id;
}

static void append_id(struct perfdata_attr *pa, uint64_t id)
{
	if (pa->nr_ids == pa->room_ids) {
		pa->room_ids = MAX(2 * pa->room_ids, 16);
		pa->ids = xrealloc_array(pa->ids, pa->room_ids, sizeof(*pa->ids));
	}
	pa->ids[pa->nr_ids++] = id;
}

static int compare_ids(const void *a, const void *b)
{
	return COMPARE(*(const uint64_t *)a, *(const uint64_t *)b);
}

/* Sort the ids behind the first @known ones among these; the kernel gives them out rising. */
static void sort_ids(struct perfdata_attr *pa, size_t known)
{
	size_t at = MAX(known, 1), kept = 1;

	while (at < pa->nr_ids && pa->ids[at - 1] < pa->ids[at])
		at++;
	if (at >= pa->nr_ids)
		return;
	qsort(pa->ids, pa->nr_ids, sizeof(*pa->ids), compare_ids);
	for (size_t i = 1; i < pa->nr_ids; i++)
		if (pa->ids[i] != pa->ids[kept - 1])
			pa->ids[kept++] = pa->ids[i];
	pa->nr_ids = kept;
}

void perfdata_attrs_add(struct perfdata_attrs *attrs, const char *name,
			const struct perf_event_attr *attr, const uint64_t *ids, size_t nr_ids)
{
	struct perfdata_attr *pa = find_attr(attrs, name, attr);
	size_t known = pa->nr_ids;

	assert(ids || !nr_ids);
	for (size_t i = 0; i < nr_ids; i++)
		if (!has_id(pa, known, ids[i]))
			append_id(pa, ids[i]);
	sort_ids(pa, known);
}

void perfdata_attrs_fini(struct perfdata_attrs *attrs)
{
	for (uint32_t i = 0; i < attrs->nr; i++)
		free(attrs->events[i].ids);
	free(attrs->events);
	*attrs = (struct perfdata_attrs){ 0 };
}

/*
 * The pipe mode of perf.data: the header's parts are records, so that a reader needs no end.
 *
 * One thread at a time, but perfdata_stream_stop().
 *
 * perf.data to a pipe, as "perf record -o -" writes it.
 *
 * Runs on: the recorder's writer.
 */

#define STALLED_NS (5 * 1000000000ull)
#define POLL_MS	   100

struct perfdata_stream {
	int fd;
	bool is_pipe;
	int code; /* the first failure */
	uint64_t written;
	struct perfdata_attrs sent; /* events and ids in the stream */
	atomic_bool stop;
};

/* Write to a copy of @fd, which must be no terminal. 0 or -errno with a sentence. */
static int perfdata_stream_new(struct perfdata_stream **out, int fd, struct err *e)
{
	struct perfdata_stream *s;
	struct stat st;

	if (isatty(fd))
		return err_set(e, -EINVAL,
			       "--record -: standard output is a terminal\n"
			       "  pipe it, as in 'proftop --record - | proftop --replay -'");
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (fd < 0 || fstat(fd, &st)) {
		int code = -errno;

		if (fd >= 0)
			close(fd);
		return err_set(e, code, "--record -: %s", strerror(-code));
	}
	s = xcalloc(1, sizeof(*s));
	s->fd = fd;
	s->is_pipe = S_ISFIFO(st.st_mode);
	*out = s;
	return 0;
}

/*
 * Wait until a pipe has space for PIPE_BUF bytes, which are then written without blocking. 0 or
 * -errno.
 */
static int wait_for_reader(const struct perfdata_stream *s)
{
	struct pollfd fd = { .fd = s->fd, .events = POLLOUT };
	uint64_t stopped_ns = 0;

	while (poll(&fd, 1, POLL_MS) <= 0) {
		/* Relaxed: the flag is all there is to see. */
		if (!atomic_load_explicit(&s->stop, memory_order_relaxed))
			continue;
		if (!stopped_ns)
			stopped_ns = time_now_ns();
		if (time_now_ns() - stopped_ns > STALLED_NS)
			return -ETIMEDOUT;
	}
	return 0;
}

static void put(struct perfdata_stream *s, const void *bytes, size_t size)
{
	const uint8_t *p = bytes;

	while (size && !s->code) {
		ssize_t nr;

		s->code = s->is_pipe ? wait_for_reader(s) : 0;
		if (s->code)
			return;
		nr = write(s->fd, p, s->is_pipe ? MIN(size, (size_t)PIPE_BUF) : size);
		if (nr < 0 && errno != EINTR)
			s->code = -errno;
		if (nr <= 0)
			continue;
		p += nr;
		size -= (size_t)nr;
		s->written += (uint64_t)nr;
	}
}

/* Begin the stream with the header of pipe mode. */
static void begin(struct perfdata_stream *s)
{
	const uint64_t size = PERFDATA_PIPE_HEADER;

	if (s->written || s->code)
		return;
	put(s, PERFDATA_MAGIC, strlen(PERFDATA_MAGIC));
	put(s, &size, sizeof(size));
}

/* Write a record of three parts; the last one is padded to 8 bytes. */
static int put_record(struct perfdata_stream *s, uint32_t type, const void *a, size_t a_size,
		      const void *b, size_t b_size)
{
	static const char zeros[8];
	size_t size = sizeof(struct perf_event_header) + a_size + b_size;
	size_t padding = (8 - size % 8) % 8;
	struct perf_event_header h = { .type = type, .size = (uint16_t)(size + padding) };

	begin(s);
	/* Longer than a record can be: left out. */
	if (size + padding > UINT16_MAX)
		return s->code;
	put(s, &h, sizeof(h));
	put(s, a, a_size);
	put(s, b, b_size);
	put(s, zeros, padding);
	return s->code;
}

/* A feature of the header, as enum perfdata_feature, with the bytes of its section. */
static int perfdata_stream_feature(struct perfdata_stream *s, unsigned int bit, const void *bytes,
				   size_t size)
{
	uint64_t id = bit;

	return put_record(s, PERFDATA_HEADER_FEATURE, &id, sizeof(id), bytes, size);
}

/* The formats of tracepoints. */
static int perfdata_stream_tracing(struct perfdata_stream *s, const void *bytes, size_t size)
{
	static const char zeros[8];
	size_t padding = (8 - size % 8) % 8;
	/* With the padding: perf reads no stream where it is left out. */
	uint32_t of_data = (uint32_t)(size + padding);

	put_record(s, PERFDATA_TRACING_DATA, &of_data, sizeof(of_data), zeros, sizeof(of_data));
	put(s, bytes, size);
	put(s, zeros, padding);
	return s->code;
}

/* Write the attribute with these ids, and its name. */
static void put_attr(struct perfdata_stream *s, const struct perfdata_attr *a, const uint64_t *ids,
		     size_t nr)
{
	uint64_t update[2] = { PERFDATA_UPDATE_NAME, nr ? ids[0] : 0 };
	size_t first = 0, some;

	do {
		some = MIN(nr - first, (size_t)PERFDATA_STREAM_IDS);
		put_record(s, PERFDATA_HEADER_ATTR, &a->attr, sizeof(a->attr), ids + first,
			   some * sizeof(*ids));
		first += some;
	} while (first < nr);
	if (nr)
		put_record(s, PERFDATA_EVENT_UPDATE, update, sizeof(update), a->name,
			   strlen(a->name) + 1);
}

/* Collect the ids of @a that are not among the sorted ones of @sent. */
static size_t new_ids(const struct perfdata_attr *a, const struct perfdata_attr *sent,
		      uint64_t *out)
{
	size_t nr = 0, k = 0;

	for (size_t i = 0; i < a->nr_ids; i++) {
		while (k < sent->nr_ids && sent->ids[k] < a->ids[i])
			k++;
		if (k == sent->nr_ids || sent->ids[k] != a->ids[i])
			out[nr++] = a->ids[i];
	}
	return nr;
}

/* Events and ids that are not in the stream yet: before the records that have them. */
static int perfdata_stream_attrs(struct perfdata_stream *s, const struct perfdata_attrs *attrs)
{
	for (uint32_t i = 0; i < attrs->nr; i++) {
		const struct perfdata_attr *a = &attrs->events[i];
		uint64_t *ids = xcalloc(a->nr_ids + 1, sizeof(*ids));
		uint32_t before = s->sent.nr;
		size_t nr;

		/* Both lists grow in the same order. */
		perfdata_attrs_add(&s->sent, a->name, &a->attr, NULL, 0);
		nr = new_ids(a, &s->sent.events[i], ids);
		if (nr || s->sent.nr > before)
			put_attr(s, a, ids, nr);
		perfdata_attrs_add(&s->sent, a->name, &a->attr, ids, nr);
		free(ids);
	}
	return s->code;
}

/* Append whole records. After the first -errno nothing is written any more. */
static int perfdata_stream_append(struct perfdata_stream *s, const struct iovec *pieces, int nr)
{
	begin(s);
	for (int i = 0; i < nr; i++)
		put(s, pieces[i].iov_base, pieces[i].iov_len);
	return s->code;
}

/* From now on a reader that does not read ends the stream after some seconds. Any thread. */
static void perfdata_stream_stop(struct perfdata_stream *s)
{
	if (s)
		atomic_store_explicit(&s->stop, true, memory_order_relaxed);
}

static uint64_t perfdata_stream_written(const struct perfdata_stream *s)
{
	return s->written;
}

static void perfdata_stream_free(struct perfdata_stream *s)
{
	if (!s)
		return;
	perfdata_attrs_fini(&s->sent);
	close(s->fd);
	free(s);
}

/*
 * The TRACING_DATA section of a recording: the formats of its tracepoints, without which perf
 * reads no file that has one.
 *
 * Any thread; no state.
 *
 * Formats of tracepoints, laid out as by tools/perf/util/trace-event-info.c, version 0.6.
 *
 * Runs on: the recorder's writer.
 */

/* A file of tracefs; its size is not known before it is read. */
#define TRACING_DATA_TEXT_MAX (1u << 20)

static void put_u32(FILE *out, uint32_t v)
{
	fwrite(&v, sizeof(v), 1, out);
}

static void put_u64(FILE *out, uint64_t v)
{
	fwrite(&v, sizeof(v), 1, out);
}

/* Write the size of a file below @events and its bytes; a file that cannot be read is empty. */
static void put_file(FILE *out, int events, const char *path)
{
	int fd = openat(events, path, O_RDONLY | O_CLOEXEC);
	char *text = xcalloc(1, TRACING_DATA_TEXT_MAX);
	size_t size = 0;
	ssize_t got = 0;

	while (fd >= 0 && (got = read(fd, text + size, TRACING_DATA_TEXT_MAX - size)) > 0)
		size += (size_t)got;
	put_u64(out, size);
	fwrite(text, 1, size, out);
	free(text);
	if (fd >= 0)
		close(fd);
}

/* Split "sched:sched_switch:k"; false: not the name of a tracepoint. */
static bool split_name(const char *name, char system[128], char event[128])
{
	return sscanf(name, "%127[a-zA-Z0-9_-]:%127[a-zA-Z0-9_-]", system, event) == 2;
}

/* Return whether event @at is a tracepoint, with another name than all before it. */
static bool is_new(const struct perfdata_attrs *attrs, uint32_t at, char system[128],
		   char event[128])
{
	char other_system[128], other[128];

	assert(at < attrs->nr);
	if (attrs->events[at].attr.type != PERF_TYPE_TRACEPOINT ||
	    !split_name(attrs->events[at].name, system, event))
		return false;
	for (uint32_t i = 0; i < at; i++)
		if (attrs->events[i].attr.type == PERF_TYPE_TRACEPOINT &&
		    split_name(attrs->events[i].name, other_system, other) &&
		    !strcmp(system, other_system) && !strcmp(event, other))
			return false;
	return true;
}

/* Write the formats of all tracepoints: each as a system with one event. */
static void put_formats(FILE *out, int events, const struct perfdata_attrs *attrs, uint32_t nr)
{
	char system[128], event[128], path[300];

	put_u32(out, nr);
	for (uint32_t i = 0; i < attrs->nr; i++) {
		if (!is_new(attrs, i, system, event))
			continue;
		fwrite(system, 1, strlen(system) + 1, out);
		put_u32(out, 1);
		snprintf(path, sizeof(path), "%s/%s/format", system, event);
		put_file(out, events, path);
	}
}

/* Write the section to @out. False: no event is a tracepoint, or tracefs is not readable. */
static bool tracing_data_write(FILE *out, const struct perfdata_attrs *attrs)
{
	static const char magic[] = "\x17\x08\x44tracing0.6"; /* with its NUL */
	const uint16_t one = 1;
	char system[128], event[128];
	uint32_t nr = 0;
	int events;

	for (uint32_t i = 0; i < attrs->nr; i++)
		nr += is_new(attrs, i, system, event);
	if (!nr)
		return false;
	tracefs_open("", &events);
	if (events < 0)
		return false;
	fwrite(magic, 1, sizeof(magic), out);
	fputc(!*(const uint8_t *)&one, out); /* big endian */
	fputc(sizeof(long), out);
	put_u32(out, (uint32_t)sysconf(_SC_PAGESIZE));
	fwrite("header_page", 1, 12, out);
	put_file(out, events, "header_page");
	fwrite("header_event", 1, 13, out);
	put_file(out, events, "header_event");
	put_u32(out, 0); /* events of ftrace */
	put_formats(out, events, attrs, nr);
	put_u32(out, 0); /* kallsyms */
	put_u32(out, 0); /* printk formats */
	put_u64(out, 0); /* saved command lines */
	close(events);
	return true;
}

/* perf pads its strings so. */
#define STRING_ALIGN 64

#define CMDLINE_MAX 4096

struct perfdata_writer {
	int fd;
	struct perfdata_stream *stream; /* instead: to standard output */
	int code;			/* the first failure */
	uint64_t data;			/* where records begin */
	uint64_t end;			/* their end */
	struct perfdata_header header;
	struct bytes { /* a piece of the file in the making */
		uint8_t *p;
		size_t size, room;
	} build_ids; /* of a stream: records that are queued */
};

static void perfdata_write_put(struct bytes *b, const void *p, size_t size)
{
	if (b->size + size > b->room) {
		b->room = MAX(2 * b->room, b->size + size);
		b->p = xrealloc_array(b->p, b->room, 1);
	}
	if (size)
		memcpy(b->p + b->size, p, size);
	b->size += size;
}

static void perfdata_write_put_u32(struct bytes *b, uint32_t v)
{
	perfdata_write_put(b, &v, sizeof(v));
}

/* Its padded length, then the string, as perf has it. */
static void put_string(struct bytes *b, const char *s)
{
	static const char zeros[STRING_ALIGN];
	size_t size = strlen(s) + 1,
	       padded = (size + STRING_ALIGN - 1) & ~(size_t)(STRING_ALIGN - 1);

	perfdata_write_put_u32(b, (uint32_t)padded);
	perfdata_write_put(b, s, size);
	perfdata_write_put(b, zeros, padded - size);
}

void perfdata_put_build_id(struct perfdata_writer *w, bool kernel, const char *name,
			   const uint8_t *id, uint8_t id_size)
{
	static const char zeros[STRING_ALIGN];
	size_t size = MIN(strlen(name), (size_t)PATH_MAX) + 1;
	/* The whole record is padded: in a pipe, perf 7.2 reads none of a size that is no
	 * multiple of 8. */
	size_t whole = (sizeof(struct perfdata_build_id_record) + size + STRING_ALIGN - 1) &
		       ~(size_t)(STRING_ALIGN - 1);
	struct perfdata_build_id_record r = {
		.h = { .type = PERFDATA_HEADER_BUILD_ID, .size = (uint16_t)whole },
		.pid = -1,
		.size = MIN(id_size, (uint8_t)sizeof(r.id)),
	};

	assert(id || !id_size);
	r.h.misc = kernel ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER;
	r.h.misc |= PERFDATA_MISC_BUILD_ID_SIZE;
	memcpy(r.id, id, r.size);
	perfdata_write_put(&w->build_ids, &r, sizeof(r));
	perfdata_write_put(&w->build_ids, name, size - 1);
	perfdata_write_put(&w->build_ids, zeros, whole - sizeof(r) - (size - 1));
}

/* Kinds of files that a recording may replace, or not. */
enum old_kind { OLD_NONE, OLD_EMPTY, OLD_RECORDING, OLD_OTHER };

/* Return the kind of the file @path, or -errno; links are not followed. */
static int old_kind(const char *path)
{
	char magic[sizeof(((struct perfdata_header *)0)->magic)];
	struct stat st;
	ssize_t size;
	int fd, kind = OLD_OTHER;

	if (lstat(path, &st))
		return errno == ENOENT ? OLD_NONE : -errno;
	if (!S_ISREG(st.st_mode))
		return -EEXIST;
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	size = read(fd, magic, sizeof(magic));
	if (!size)
		kind = OLD_EMPTY;
	else if (size == sizeof(magic) && !memcmp(magic, PERFDATA_MAGIC, sizeof(magic)))
		kind = OLD_RECORDING;
	close(fd);
	return kind;
}

/* Refuse to replace @path, which is of @kind. */
static int refuse_old(const char *path, int kind, struct err *e)
{
	if (kind == -EEXIST)
		return err_set(e, kind,
			       "cannot record to %s: it is not a regular file\n"
			       "  a recording is written to a new file only\n"
			       "  give another name",
			       path);
	if (kind < 0)
		return err_set(e, kind, "cannot record to %s: %s", path, strerror(-kind));
	return err_set(e, -EEXIST,
		       "cannot record: %s exists and is not a recording\n"
		       "  only a perf.data file is replaced: give another name",
		       path);
}

/* Rename an old recording, as perf does; no other file is moved or replaced. */
static int move_old(const char *path, struct err *e)
{
	char old[PATH_MAX];
	int kind = old_kind(path), older;

	if (kind == OLD_NONE)
		return 0;
	if (kind < 0 || kind == OLD_OTHER)
		return refuse_old(path, kind, e);
	if (kind == OLD_EMPTY)
		return unlink(path) ? refuse_old(path, -errno, e) : 0;
	if (snprintf(old, sizeof(old), "%s.old", path) >= (int)sizeof(old))
		return err_set(e, -ENAMETOOLONG, "cannot record to %s: the name is too long", path);
	older = old_kind(old);
	if (older < 0 || older == OLD_OTHER)
		return refuse_old(old, older, e);
	if (rename(path, old))
		return err_set(e, -errno, "cannot rename %s to %s: %s", path, old, strerror(errno));
	return 0;
}

/* Create the file with the rights of the invoking user. The descriptor, or -errno with a message.
 */
static int create(const char *path, struct err *e)
{
	struct invoker_saved saved;
	int code = invoker_begin(&saved, e), fd = -1;

	if (code)
		return code;
	code = move_old(path, e);
	if (!code) {
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd < 0)
			code = err_set(e, -errno, "cannot record to %s: %s", path, strerror(errno));
	}
	invoker_end(&saved);
	if ((code == -EACCES || code == -EPERM) && invoker_name())
		err_set(e, code,
			"cannot record to %s: %s\n"
			"  written with the rights of %s, since sudo was used\n"
			"  give a file in a folder of that user, or use 'sudo env -u SUDO_UID'",
			path, strerror(-code), invoker_name());
	return code ? code : fd;
}

void perfdata_remove(const char *path)
{
	struct invoker_saved saved;

	if (invoker_begin(&saved, NULL))
		return;
	unlink(path);
	invoker_end(&saved);
}

int perfdata_create(struct perfdata_writer **out, const char *path, struct err *e)
{
	struct perfdata_stream *stream = NULL;
	struct perfdata_writer *w;
	int code = 0, fd = -1;

	if (!strcmp(path, "-"))
		code = perfdata_stream_new(&stream, STDOUT_FILENO, e);
	else
		fd = create(path, e);
	if (code || (!stream && fd < 0))
		return code ? code : fd;
	w = xcalloc(1, sizeof(*w));
	w->fd = fd;
	w->stream = stream;
	*out = w;
	return 0;
}

void perfdata_queue(struct perfdata_writer *w, const void *record, size_t size)
{
	assert(record && size);
	perfdata_write_put(&w->build_ids, record, size);
}

void perfdata_take_queue(struct perfdata_writer *w, struct perfdata_queued *out)
{
	*out = (struct perfdata_queued){ w->build_ids.p, w->build_ids.size };
	w->build_ids = (struct bytes){ 0 };
}

void perfdata_write_queue(struct perfdata_writer *w, struct perfdata_queued *q)
{
	const struct iovec piece = { q->records, q->size };

	assert(w->stream);
	w->code = perfdata_stream_append(w->stream, &piece, 1);
	free(q->records);
}

bool perfdata_is_stream(const struct perfdata_writer *w)
{
	return w->stream != NULL;
}

int perfdata_add_attrs(struct perfdata_writer *w, const struct perfdata_attrs *attrs)
{
	if (w->stream)
		w->code = perfdata_stream_attrs(w->stream, attrs);
	return w->code;
}

void perfdata_stop(struct perfdata_writer *w)
{
	perfdata_stream_stop(w->stream);
}

void perfdata_writer_close(struct perfdata_writer *w)
{
	if (!w)
		return;
	if (w->fd >= 0)
		close(w->fd);
	perfdata_stream_free(w->stream);
	free(w->build_ids.p);
	free(w);
}

static int write_at(int fd, const void *bytes, size_t size, uint64_t at)
{
	const uint8_t *p = bytes;

	while (size) {
		ssize_t nr = pwrite(fd, p, size, (off_t)at);

		if (nr < 0 && errno == EINTR)
			continue;
		if (nr <= 0)
			return nr ? -errno : -EIO;
		p += nr;
		at += (uint64_t)nr;
		size -= (size_t)nr;
	}
	return 0;
}

/* The ids of all events, then their attributes. @b goes to @at of the file. */
static void put_attrs(struct perfdata_writer *w, struct bytes *b, uint64_t at,
		      const struct perfdata_attrs *attrs)
{
	struct perfdata_section ids = { .offset = at + b->size };

	for (uint32_t i = 0; i < attrs->nr; i++)
		perfdata_write_put(b, attrs->events[i].ids, 8 * attrs->events[i].nr_ids);
	w->header.attr_size = sizeof(struct perf_event_attr) + sizeof(ids);
	w->header.attrs =
		(struct perfdata_section){ at + b->size, attrs->nr * w->header.attr_size };
	for (uint32_t i = 0; i < attrs->nr; i++) {
		ids.size = 8 * attrs->events[i].nr_ids;
		perfdata_write_put(b, &attrs->events[i].attr, sizeof(attrs->events[i].attr));
		perfdata_write_put(b, &ids, sizeof(ids));
		ids.offset += ids.size;
	}
}

int perfdata_append(struct perfdata_writer *w, const struct iovec *pieces, int nr)
{
	uint64_t at = w->end;

	assert(pieces || !nr);
	if (w->stream) {
		w->code = perfdata_stream_append(w->stream, pieces, nr);
		return w->code;
	}
	for (int i = 0; i < nr && !w->code; i++) {
		w->code = write_at(w->fd, pieces[i].iov_base, pieces[i].iov_len, at);
		at += pieces[i].iov_len;
	}
	if (!w->code)
		w->end = at;
	return w->code;
}

static void put_cmdline(struct bytes *b)
{
	char text[CMDLINE_MAX + 1] = "";
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t size = fd < 0 ? 0 : read(fd, text, CMDLINE_MAX);
	uint32_t nr = 0;

	if (fd >= 0)
		close(fd);
	for (ssize_t at = 0; at < size; at += (ssize_t)strlen(text + at) + 1)
		nr++;
	perfdata_write_put_u32(b, nr);
	for (ssize_t at = 0; at < size; at += (ssize_t)strlen(text + at) + 1)
		put_string(b, text + at);
}

static void put_event_desc(struct bytes *b, const struct perfdata_attrs *attrs)
{
	perfdata_write_put_u32(b, attrs->nr);
	perfdata_write_put_u32(b, sizeof(struct perf_event_attr));
	for (uint32_t i = 0; i < attrs->nr; i++) {
		const struct perfdata_attr *pa = &attrs->events[i];

		perfdata_write_put(b, &pa->attr, sizeof(pa->attr));
		perfdata_write_put_u32(b, (uint32_t)pa->nr_ids);
		put_string(b, pa->name);
		perfdata_write_put(b, pa->ids, 8 * pa->nr_ids);
	}
}

/* Append the formats of the tracepoints. */
static void put_tracing_data(struct bytes *b, const struct perfdata_attrs *attrs)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	if (tracing_data_write(out, attrs) && !fflush(out))
		perfdata_write_put(b, text, size);
	fclose(out);
	free(text);
}

/* Append the section of one feature. */
static void put_feature(const struct perfdata_writer *w, struct bytes *b, unsigned int bit,
			const struct utsname *host, const struct perfdata_attrs *attrs)
{
	switch (bit) {
	case PERFDATA_BUILD_ID:
		perfdata_write_put(b, w->build_ids.p, w->build_ids.size);
		break;
	case PERFDATA_HOSTNAME:
		put_string(b, host->nodename);
		break;
	case PERFDATA_OSRELEASE:
		put_string(b, host->release);
		break;
	case PERFDATA_VERSION:
		put_string(b, "proftop " PROFTOP_VERSION);
		break;
	case PERFDATA_ARCH:
		put_string(b, host->machine);
		break;
	case PERFDATA_NRCPUS:
		perfdata_write_put_u32(b, (uint32_t)sysconf(_SC_NPROCESSORS_CONF));
		perfdata_write_put_u32(b, (uint32_t)sysconf(_SC_NPROCESSORS_ONLN));
		break;
	case PERFDATA_CMDLINE:
		put_cmdline(b);
		break;
	case PERFDATA_EVENT_DESC:
		put_event_desc(b, attrs);
		break;
	}
}

/* Behind the records: a table of sections, one for each feature in the order of its bit, then
 * these. */
static void put_features(struct perfdata_writer *w, struct bytes *b,
			 const struct perfdata_attrs *attrs)
{
	static const unsigned int bits[] = {
		PERFDATA_FEATURE_TRACING_DATA,
		PERFDATA_BUILD_ID,
		PERFDATA_HOSTNAME,
		PERFDATA_OSRELEASE,
		PERFDATA_VERSION,
		PERFDATA_ARCH,
		PERFDATA_NRCPUS,
		PERFDATA_CMDLINE,
		PERFDATA_EVENT_DESC,
	};
	struct perfdata_section table[ARRAY_SIZE(bits)] = { { 0 } };
	struct bytes tracing = { 0 };
	struct utsname host;
	size_t first;

	if (uname(&host))
		memset(&host, 0, sizeof(host));
	put_tracing_data(&tracing, attrs);
	first = tracing.size ? 0 : 1; /* without tracepoints there is no such section */
	perfdata_write_put(b, table + first, sizeof(table) - first * sizeof(table[0]));
	for (size_t i = first; i < ARRAY_SIZE(bits); i++) {
		table[i].offset = w->end + b->size;
		if (i)
			put_feature(w, b, bits[i], &host, attrs);
		else
			perfdata_write_put(b, tracing.p, tracing.size);
		table[i].size = w->end + b->size - table[i].offset;
		w->header.features[0] |= 1ULL << bits[i];
	}
	memcpy(b->p, table + first, sizeof(table) - first * sizeof(table[0]));
	free(tracing.p);
}

/* Begin a stream: events, the formats of tracepoints, features. */
static int begin_stream(struct perfdata_writer *w, const struct perfdata_attrs *attrs)
{
	static const unsigned int bits[] = { PERFDATA_HOSTNAME, PERFDATA_OSRELEASE,
					     PERFDATA_VERSION,	PERFDATA_ARCH,
					     PERFDATA_NRCPUS,	PERFDATA_CMDLINE };
	struct bytes b = { 0 };
	struct utsname host;

	if (uname(&host))
		memset(&host, 0, sizeof(host));
	perfdata_stream_attrs(w->stream, attrs);
	put_tracing_data(&b, attrs);
	if (b.size)
		perfdata_stream_tracing(w->stream, b.p, b.size);
	for (size_t i = 0; i < ARRAY_SIZE(bits); i++) {
		b.size = 0;
		put_feature(w, &b, bits[i], &host, attrs);
		w->code = perfdata_stream_feature(w->stream, bits[i], b.p, b.size);
	}
	free(b.p);
	return w->code;
}

int perfdata_begin(struct perfdata_writer *w, const struct perfdata_attrs *attrs)
{
	struct perfdata_header *h = &w->header;
	struct bytes b = { 0 };

	if (w->stream)
		return begin_stream(w, attrs);
	memcpy(h->magic, PERFDATA_MAGIC, sizeof(h->magic));
	h->size = sizeof(*h);
	put_attrs(w, &b, sizeof(*h), attrs);
	h->data.offset = sizeof(*h) + b.size;
	w->data = w->end = h->data.offset;
	w->code = write_at(w->fd, b.p, b.size, sizeof(*h));
	if (!w->code)
		w->code = write_at(w->fd, h, sizeof(*h), 0);
	free(b.p);
	return w->code;
}

int perfdata_finish(struct perfdata_writer *w, const struct perfdata_attrs *attrs)
{
	struct bytes b = { 0 };
	struct perfdata_header first = w->header;
	int code;

	if (w->stream)
		return perfdata_add_attrs(w, attrs);
	assert(w->end >= w->data);
	if (!w->data)
		return w->code;
	put_features(w, &b, attrs);
	while (b.size % 8)
		perfdata_write_put(&b, "", 1);
	put_attrs(w, &b, w->end, attrs);
	code = ftruncate(w->fd, (off_t)w->end) ? -errno : 0;
	if (!code)
		code = write_at(w->fd, b.p, b.size, w->end);
	free(b.p);
	/* The disk is full: the events of the start, and all records, still make a file. */
	if (code)
		w->header = first;
	w->header.data.size = w->end - w->data;
	if (!w->code)
		w->code = code;
	code = write_at(w->fd, &w->header, sizeof(w->header), 0);
	if (!w->code)
		w->code = code;
	return w->code;
}

uint64_t perfdata_written(const struct perfdata_writer *w)
{
	return w->stream ? perfdata_stream_written(w->stream) : w->end - w->data;
}
