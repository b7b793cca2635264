// SPDX-License-Identifier: GPL-2.0-or-later
/* Access to the bytes of a recording: a window over a file, a pipe in memory. */
#include "sampler/perfdata/internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sampler/event/event.h"
#include "sampler/ring/ring.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "symbols/image/image.h"
#include "symbols/kernel/kernel.h"
#include "symbols/sandbox/sandbox.h"

int perfdata_refuse_folder(struct err *e, const char *path)
{
	return err_set(e, -EISDIR,
		       "cannot replay %.300s: a directory\n"
		       "  perf record --threads writes one; record without it",
		       path);
}

/*
 * A window over a file: most reads are in it.
 *
 * Records are read twice, a small part of the file at a time: their heads in
 * the order of the file, then each record in the order of time. Both use one small buffer that fits
 * into the CPU's cache.
 */

/* Least bytes of a read: a read in order has many small records, after a jump often only a head is
 * used. */
#define WINDOW_NEXT 4096u

#define WINDOW_JUMP 512u

/* The heads of records lie too far apart for the kernel to see that the file is read through. */
#define AHEAD (16ULL << 20)

/* How long to wait for data between two calls of the step function. */
#define STEP_MS 100

/* A pipe, while it is read. */
struct pipe_reading {
	uint64_t used;
	uint64_t step_ns; /* time of the next call */
	bool stopped;
};

/* Wait for data. Return 1: read it, 0: stop here, -ECANCELED. */
static int wait_for_data(struct pipe_reading *in, int fd, sampler_reading_fn step)
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
		return perfdata_refuse_folder(e, path);
	return err_set(e, code, "cannot read %.300s: %s", path,
		       code == -ECANCELED ? "interrupted" : strerror(-code));
}

/*
 * Make room for @room bytes in a memfd, which another process can be given. They are mapped, and
 * keep their contents.
 */
static int grow_memory(struct perfdata_bytes *b, size_t room)
{
	int fd = b->memory < 0 ? sandbox_file() : b->memory;
	void *p;

	if (fd < 0)
		return fd;
	b->memory = fd;
	if (ftruncate(fd, (off_t)room))
		return -errno;
	if (b->own)
		p = mremap(b->own, b->room, room, MREMAP_MAYMOVE);
	else
		p = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED, b->memory, 0);
	if (p == MAP_FAILED)
		return -ENOMEM;
	b->own = p;
	b->room = room;
	return 0;
}

/* Read a pipe behind the @used bytes that are there, to its end or as far as @step allows. */
static int read_all(struct perfdata_bytes *b, uint64_t used, int fd, sampler_reading_fn step)
{
	struct pipe_reading in = { .used = used };
	ssize_t got;
	int code;

	for (;;) {
		code = in.used < b->room ? 0 : grow_memory(b, MAX(2 * b->room, (size_t)1 << 20));
		if (code)
			return code;
		code = step ? wait_for_data(&in, fd, step) : 1;
		if (code < 0)
			return code;
		if (!code)
			break;
		got = read(fd, b->own + in.used, b->room - in.used);
		if (got < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (got < 0)
			return -errno;
		/* The signal that ended the writer is for this pipe, not for the screen after it.
		 */
		if (!got && step && step(in.used) == SAMPLER_READING_CANCEL)
			return -ECANCELED;
		if (!got)
			break;
		in.used += (uint64_t)got;
		if (in.used > PERFDATA_MEMORY_MAX)
			return -EFBIG;
	}
	b->window = b->own;
	b->size = b->window_size = in.used;
	b->stopped = in.stopped;
	return 0;
}

/*
 * Take over @fd, which is @path. 0 or -errno with a message; then @fd is closed. @step: called
 * while a pipe is read, or NULL.
 */
int perfdata_bytes_open(struct perfdata_bytes *b, int fd, const char *path, sampler_reading_fn step,
			struct err *e)
{
	struct stat st;
	int code;

	*b = (struct perfdata_bytes){ .fd = -1, .pipe = -1, .memory = -1 };
	if (!fstat(fd, &st) && S_ISREG(st.st_mode)) {
		b->fd = fd;
		b->size = (uint64_t)st.st_size;
		b->date_ns =
			(uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec;
		return 0;
	}
	code = read_all(b, 0, fd, step);
	close(fd);
	if (code) {
		perfdata_bytes_close(b);
		return refuse_read(path, code, e);
	}
	return 0;
}

int perfdata_bytes_copy(struct perfdata_bytes *b, const void *bytes, size_t size)
{
	int code;

	assert(bytes || !size);
	*b = (struct perfdata_bytes){ .fd = -1, .pipe = -1, .memory = -1 };
	code = grow_memory(b, MAX(size, (size_t)1));
	if (code)
		return code;
	memcpy(b->own, bytes, size);
	b->window = b->own;
	b->size = b->window_size = size;
	return 0;
}

/* Open the bytes once more, for reading only. Return a descriptor, which the caller closes, or
 * -errno. */
int perfdata_bytes_share(const struct perfdata_bytes *b)
{
	int fd = b->fd >= 0 ? b->fd : b->memory;
	char path[64];

	assert(b->fd >= 0 || b->memory >= 0);
	/* Standard input may also be open for writing. */
	if (b->fd >= 0 && (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY)
		fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	else {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	return fd < 0 ? -errno : fd;
}

void perfdata_bytes_borrow(struct perfdata_bytes *b, const void *memory, size_t size)
{
	*b = (struct perfdata_bytes){
		.size = size,
		.fd = -1,
		.pipe = -1,
		.memory = -1,
		.window = memory,
		.window_size = size,
	};
}

void perfdata_bytes_close(struct perfdata_bytes *b)
{
	if (b->memory >= 0 && b->own)
		munmap(b->own, b->room);
	else
		free(b->own);
	if (b->fd >= 0)
		close(b->fd);
	if (b->pipe >= 0)
		close(b->pipe);
	if (b->memory >= 0)
		close(b->memory);
	*b = (struct perfdata_bytes){ .fd = -1, .pipe = -1, .memory = -1 };
}

/*
 * Begin to read @fd, a pipe, as far as it has data: perfdata_bytes_more() reads on. @fd is closed
 * by perfdata_bytes_close().
 */
void perfdata_bytes_begin(struct perfdata_bytes *b, int fd)
{
	*b = (struct perfdata_bytes){ .fd = -1, .pipe = fd, .memory = -1 };
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

/*
 * Forget all bytes before offset @keep, and read the bytes that are there, or wait for them. Return
 * the number of new bytes, 0: the end, -EFBIG or other -errno.
 */
int64_t perfdata_bytes_more(struct perfdata_bytes *b, uint64_t keep)
{
	ssize_t got;

	assert(b->pipe >= 0 && b->window_size <= b->room);
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

/* Wait until a pipe has data. Return 1: it has, 0: @step stops here, -ECANCELED. */
int perfdata_bytes_wait(const struct perfdata_bytes *b, sampler_reading_fn step)
{
	struct pipe_reading in = { .used = b->size };

	return wait_for_data(&in, b->pipe, step);
}

/* Read the rest of a pipe, as perfdata_bytes_open(). */
int perfdata_bytes_finish(struct perfdata_bytes *b, const char *path, sampler_reading_fn step,
			  struct err *e)
{
	struct perfdata_bytes first = *b;
	int code;

	assert(!b->window_at);
	code = perfdata_bytes_copy(b, first.own, first.window_size);
	if (!code)
		code = read_all(b, b->size, first.pipe, step);
	perfdata_bytes_close(&first);
	return code ? refuse_read(path, code, e) : 0;
}

void perfdata_bytes_append(struct perfdata_bytes *b, const uint8_t *bytes, size_t size,
			   uint64_t keep)
{
	assert(bytes && size);
	if (b->own)
		forget(b, keep);
	if (b->room - b->window_size < size) {
		b->room = 2 * b->room + size;
		b->own = xrealloc_array(b->own, b->room, 1);
	}
	memcpy(b->own + b->window_size, bytes, size);
	b->window = b->own;
	b->window_size += size;
	b->size = b->window_at + b->window_size;
	assert(b->window_size <= b->room);
}

/* Let the kernel read on behind @offset, for the reader of a file that is shared. */
void perfdata_bytes_ahead(struct perfdata_bytes *b, uint64_t offset)
{
	if (b->fd < 0 || offset + AHEAD / 2 < b->ahead || b->ahead >= b->size)
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
	perfdata_bytes_ahead(b, offset);
	assert(b->room >= size);
	b->window = b->own;
	b->window_at = offset;
	b->window_size = read_at(b, b->own, offset, size, MIN(want, b->size - offset));
	return b->window_size >= size;
}
