// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perf.data: from records to a file.
 *
 * Runs on: the recorder's writer (creation: set-up). Invariant: up to w->end the file holds whole
 * records; the rest of a failed write is cut off.
 */
#include "sampler/file/perfdata_write.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "sampler/file/perfdata_format.h"
#include "sampler/file/perfdata_stream.h"
#include "sampler/file/tracing_data.h"
#include "symbols/base/invoker.h"

/* perf pads its strings so. */
#define STRING_ALIGN 64
#define CMDLINE_MAX  4096

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

static void put(struct bytes *b, const void *p, size_t size)
{
	if (b->size + size > b->room) {
		b->room = MAX(2 * b->room, b->size + size);
		b->p = xrealloc_array(b->p, b->room, 1);
	}
	if (size)
		memcpy(b->p + b->size, p, size);
	b->size += size;
}

static void put_u32(struct bytes *b, uint32_t v)
{
	put(b, &v, sizeof(v));
}

/* Its padded length, then the string, as perf has it. */
static void put_string(struct bytes *b, const char *s)
{
	static const char zeros[STRING_ALIGN];
	size_t size = strlen(s) + 1,
	       padded = (size + STRING_ALIGN - 1) & ~(size_t)(STRING_ALIGN - 1);

	put_u32(b, (uint32_t)padded);
	put(b, s, size);
	put(b, zeros, padded - size);
}

void perfdata_put_build_id(struct perfdata_writer *w, bool kernel, const char *name,
			   const uint8_t *id, uint8_t id_size)
{
	static const char zeros[STRING_ALIGN];
	size_t size = MIN(strlen(name), (size_t)PATH_MAX) + 1;
	size_t padded = (size + STRING_ALIGN - 1) & ~(size_t)(STRING_ALIGN - 1);
	struct perfdata_build_id_record r = {
		.h = { .type = PERFDATA_HEADER_BUILD_ID, .size = (uint16_t)(sizeof(r) + padded) },
		.pid = -1,
		.size = MIN(id_size, (uint8_t)sizeof(r.id)),
	};

	r.h.misc = kernel ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER;
	r.h.misc |= PERFDATA_MISC_BUILD_ID_SIZE;
	memcpy(r.id, id, r.size);
	put(&w->build_ids, &r, sizeof(r));
	put(&w->build_ids, name, size - 1);
	put(&w->build_ids, zeros, padded - (size - 1));
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
	put(&w->build_ids, record, size);
}

void perfdata_take_queue(struct perfdata_writer *w, struct perfdata_queued *out)
{
	*out = (struct perfdata_queued){ w->build_ids.p, w->build_ids.size };
	w->build_ids = (struct bytes){ 0 };
}

void perfdata_write_queue(struct perfdata_writer *w, struct perfdata_queued *q)
{
	const struct iovec piece = { q->records, q->size };

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
		put(b, attrs->events[i].ids, 8 * attrs->events[i].nr_ids);
	w->header.attr_size = sizeof(struct perf_event_attr) + sizeof(ids);
	w->header.attrs =
		(struct perfdata_section){ at + b->size, attrs->nr * w->header.attr_size };
	for (uint32_t i = 0; i < attrs->nr; i++) {
		ids.size = 8 * attrs->events[i].nr_ids;
		put(b, &attrs->events[i].attr, sizeof(attrs->events[i].attr));
		put(b, &ids, sizeof(ids));
		ids.offset += ids.size;
	}
}

int perfdata_append(struct perfdata_writer *w, const struct iovec *pieces, int nr)
{
	uint64_t at = w->end;

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
	put_u32(b, nr);
	for (ssize_t at = 0; at < size; at += (ssize_t)strlen(text + at) + 1)
		put_string(b, text + at);
}

static void put_event_desc(struct bytes *b, const struct perfdata_attrs *attrs)
{
	put_u32(b, attrs->nr);
	put_u32(b, sizeof(struct perf_event_attr));
	for (uint32_t i = 0; i < attrs->nr; i++) {
		const struct perfdata_attr *pa = &attrs->events[i];

		put(b, &pa->attr, sizeof(pa->attr));
		put_u32(b, (uint32_t)pa->nr_ids);
		put_string(b, pa->name);
		put(b, pa->ids, 8 * pa->nr_ids);
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
		put(b, text, size);
	fclose(out);
	free(text);
}

/* Append the section of one feature. */
static void put_feature(const struct perfdata_writer *w, struct bytes *b, unsigned int bit,
			const struct utsname *host, const struct perfdata_attrs *attrs)
{
	switch (bit) {
	case PERFDATA_BUILD_ID:
		put(b, w->build_ids.p, w->build_ids.size);
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
		put_u32(b, (uint32_t)sysconf(_SC_NPROCESSORS_CONF));
		put_u32(b, (uint32_t)sysconf(_SC_NPROCESSORS_ONLN));
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
	put(b, table + first, sizeof(table) - first * sizeof(table[0]));
	for (size_t i = first; i < ARRAY_SIZE(bits); i++) {
		table[i].offset = w->end + b->size;
		if (i)
			put_feature(w, b, bits[i], &host, attrs);
		else
			put(b, tracing.p, tracing.size);
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
		put(&b, "", 1);
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
