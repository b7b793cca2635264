// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A window over a file: most reads are in it.
 *
 * Records are read twice, a small part of the file at a time: their heads in
 * the order of the file, then each record in the order of time. Both use one small buffer that fits
 * into the CPU's cache.
 */
#include "sampler/file/perfdata_bytes.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Least bytes of a read: a read in order has many small records, after a jump often only a head is
 * used. */
#define WINDOW_NEXT 4096u
#define WINDOW_JUMP 512u
/* The heads of records lie too far apart for the kernel to see that the file is read through. */
#define AHEAD (16ULL << 20)

/* How long to wait for data between two calls of the step function. */
#define STEP_MS 100

/* Bytes of a pipe, while they are read. */
struct pipe_bytes {
	uint8_t *p;
	size_t room, used;
	uint64_t step_ns; /* time of the next call */
	bool stopped;
};

/* Wait for data. Return 1: read it, 0: stop here, -ECANCELED. */
static int wait_for_data(struct pipe_bytes *in, int fd, sampler_reading_fn step)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	enum sampler_reading how;
	bool ready;

	for (;;) {
		ready = poll(&pfd, 1, STEP_MS) > 0;
		if (ready && time_now_ns() < in->step_ns)
			return 1;
		how = step(in->used);
		in->step_ns = time_now_ns() + STEP_MS * 1000000ULL;
		if (how == SAMPLER_READING_CANCEL)
			return -ECANCELED;
		in->stopped = how == SAMPLER_READING_STOP ||
			      (how == SAMPLER_READING_DRAIN && !ready);
		if (in->stopped || ready)
			return !in->stopped;
	}
}

/* Return the message for a failed read. */
static int refuse_read(const char *path, int code, struct err *e)
{
	if (code == -EFBIG)
		return err_set(e, code,
			       "cannot replay %.300s: the pipe has more than %llu GiB\n"
			       "  write it to a file and replay the file",
			       path, PERFDATA_MEMORY_MAX >> 30);
	if (code == -EISDIR)
		return err_set(e, code,
			       "cannot replay %.300s: a directory\n"
			       "  perf record --threads writes one; record without it",
			       path);
	return err_set(e, code, "cannot read %.300s: %s", path,
		       code == -ECANCELED ? "interrupted" : strerror(-code));
}

/* Read a pipe to its end, or as far as @step allows. */
static int read_all(struct pipe_bytes *in, int fd, sampler_reading_fn step)
{
	ssize_t got;
	int code;

	for (;;) {
		if (in->used == in->room) {
			in->room = MAX(2 * in->room, (size_t)1 << 20);
			in->p = xrealloc_array(in->p, in->room, 1);
		}
		code = step ? wait_for_data(in, fd, step) : 1;
		if (code <= 0)
			return code;
		got = read(fd, in->p + in->used, in->room - in->used);
		if (got < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (got < 0)
			return -errno;
		/* The signal that ended the writer is for this pipe, not for the screen after it.
		 */
		if (!got)
			return step && step(in->used) == SAMPLER_READING_CANCEL ? -ECANCELED : 0;
		in->used += (size_t)got;
		if (in->used > PERFDATA_MEMORY_MAX)
			return -EFBIG;
	}
}

int perfdata_bytes_open(struct perfdata_bytes *b, int fd, const char *path, sampler_reading_fn step,
			struct err *e)
{
	struct stat st;
	struct pipe_bytes in = { .p = NULL };
	int code;

	*b = (struct perfdata_bytes){ .fd = -1, .pipe = -1 };
	if (!fstat(fd, &st) && S_ISREG(st.st_mode)) {
		b->fd = fd;
		b->size = (uint64_t)st.st_size;
		b->date_ns =
			(uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec;
		return 0;
	}
	code = read_all(&in, fd, step);
	close(fd);
	if (code) {
		free(in.p);
		return refuse_read(path, code, e);
	}
	perfdata_bytes_borrow(b, in.p, in.used);
	b->own = in.p;
	b->stopped = in.stopped;
	return 0;
}

void perfdata_bytes_borrow(struct perfdata_bytes *b, const void *memory, size_t size)
{
	*b = (struct perfdata_bytes){
		.size = size, .fd = -1, .pipe = -1, .window = memory, .window_size = size
	};
}

void perfdata_bytes_close(struct perfdata_bytes *b)
{
	free(b->own);
	if (b->fd >= 0)
		close(b->fd);
	if (b->pipe >= 0)
		close(b->pipe);
	*b = (struct perfdata_bytes){ .fd = -1, .pipe = -1 };
}

void perfdata_bytes_begin(struct perfdata_bytes *b, int fd)
{
	*b = (struct perfdata_bytes){ .fd = -1, .pipe = fd };
}

/* Move the bytes from offset @keep on to the front, once they are the smaller part. */
static void forget(struct perfdata_bytes *b, uint64_t keep)
{
	uint64_t gone = keep - b->window_at;

	assert(keep >= b->window_at && gone <= b->window_size);
	if (gone < b->window_size - gone || !gone)
		return;
	memmove(b->own, b->own + gone, b->window_size - gone);
	b->window_at = keep;
	b->window_size -= gone;
}

int64_t perfdata_bytes_more(struct perfdata_bytes *b, uint64_t keep)
{
	ssize_t got;

	forget(b, keep);
	if (b->window_size == b->room) {
		if (b->room >= PERFDATA_MEMORY_MAX)
			return -EFBIG;
		b->room = MAX(2 * b->room, (size_t)1 << 20);
		b->own = xrealloc_array(b->own, b->room, 1);
	}
	do
		got = read(b->pipe, b->own + b->window_size, b->room - b->window_size);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	b->window = b->own;
	b->window_size += (uint64_t)got;
	b->size = b->window_at + b->window_size;
	return got;
}

int perfdata_bytes_wait(const struct perfdata_bytes *b, sampler_reading_fn step)
{
	struct pipe_bytes in = { .used = b->size };

	return wait_for_data(&in, b->pipe, step);
}

int perfdata_bytes_finish(struct perfdata_bytes *b, const char *path, sampler_reading_fn step,
			  struct err *e)
{
	struct pipe_bytes in = { .p = b->own, .room = b->room, .used = b->window_size };
	int fd = b->pipe, code = read_all(&in, fd, step);

	assert(!b->window_at);
	close(fd);
	perfdata_bytes_borrow(b, in.p, in.used);
	b->own = in.p;
	b->stopped = in.stopped;
	return code ? refuse_read(path, code, e) : 0;
}

/* Let the kernel read ahead. */
static void read_ahead(struct perfdata_bytes *b, uint64_t offset)
{
	if (offset + AHEAD / 2 < b->ahead || b->ahead >= b->size)
		return;
	b->ahead = MAX(b->ahead, offset);
	posix_fadvise(b->fd, (off_t)b->ahead, AHEAD, POSIX_FADV_WILLNEED);
	b->ahead += AHEAD;
}

static void make_room(struct perfdata_bytes *b, uint64_t size)
{
	if (size <= b->room)
		return;
	free(b->own);
	b->room = 2 * size;
	b->own = xcalloc(1, b->room);
}

/* Read from @offset to @to until there are @least bytes; at most @most. Returns their number; 0:
 * fewer.
 */
static uint64_t read_at(const struct perfdata_bytes *b, uint8_t *to, uint64_t offset,
			uint64_t least, uint64_t most)
{
	uint64_t have = 0;

	while (have < least) {
		ssize_t got = pread(b->fd, to + have, most - have, (off_t)(offset + have));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) /* shorter than it was, or it cannot be read */
			return 0;
		have += (uint64_t)got;
	}
	return have;
}

bool perfdata_bytes_move(struct perfdata_bytes *b, uint64_t offset, uint64_t size)
{
	bool next = offset - b->window_at <= b->window_size;
	uint64_t want = MAX(size, next ? WINDOW_NEXT : WINDOW_JUMP);

	if (b->fd < 0 || offset > b->size || size > b->size - offset)
		return false;
	make_room(b, want);
	read_ahead(b, offset);
	assert(b->room >= size);
	b->window = b->own;
	b->window_at = offset;
	b->window_size = read_at(b, b->own, offset, size, MIN(want, b->size - offset));
	return b->window_size >= size;
}
