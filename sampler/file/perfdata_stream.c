// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perf.data to a pipe, as "perf record -o -" writes it.
 *
 * Runs on: the recorder's writer.
 */
#include "sampler/file/perfdata_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sampler/file/perfdata_format.h"

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

int perfdata_stream_new(struct perfdata_stream **out, int fd, struct err *e)
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

int perfdata_stream_feature(struct perfdata_stream *s, unsigned int bit, const void *bytes,
			    size_t size)
{
	uint64_t id = bit;

	return put_record(s, PERFDATA_HEADER_FEATURE, &id, sizeof(id), bytes, size);
}

int perfdata_stream_tracing(struct perfdata_stream *s, const void *bytes, size_t size)
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

int perfdata_stream_attrs(struct perfdata_stream *s, const struct perfdata_attrs *attrs)
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

int perfdata_stream_append(struct perfdata_stream *s, const struct iovec *pieces, int nr)
{
	begin(s);
	for (int i = 0; i < nr; i++)
		put(s, pieces[i].iov_base, pieces[i].iov_len);
	return s->code;
}

void perfdata_stream_stop(struct perfdata_stream *s)
{
	if (s)
		atomic_store_explicit(&s->stop, true, memory_order_relaxed);
}

uint64_t perfdata_stream_written(const struct perfdata_stream *s)
{
	return s->written;
}

void perfdata_stream_free(struct perfdata_stream *s)
{
	if (!s)
		return;
	perfdata_attrs_fini(&s->sent);
	close(s->fd);
	free(s);
}
