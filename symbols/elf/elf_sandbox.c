// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ELF files for a worker of the sandbox: the parts that it needs are read, watched and passed; the
 * worker's side; the messages.
 */
#include "symbols/elf/internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/thread.h"
#include "symbols/sandbox/sandbox.h"

/* The lists of parts that are there follow, then the request of the reader. */
struct elf_sandbox_request {
	uint64_t size[ELF_SANDBOX_FILES];
	uint32_t nr_parts[ELF_SANDBOX_FILES];
	bool stable[ELF_SANDBOX_FILES]; /* may be mapped */
};

/*
 * Read the parts of files that a worker needs.
 */

/* Of a reading that is not told otherwise. A call may take twice its time on a busy machine. */
#define ELF_SANDBOX_MEMORY (256ULL << 20)

#define CALLS_MAX 24U	       /* for one answer */
#define PIECE	  (64UL << 10) /* bytes of one read */

/* A smaller file is copied as a whole, of another one that many bytes at both ends. */
#define WHOLE_SIZE (256UL << 10)

#define ENDS_SIZE (64UL << 10)

/* Files with fewer bytes to copy are read without regard to others: a few are read at a time. */
#define SMALL_SIZE (16ULL << 20)

/* Above twice --symbol-memory: tables that have a limit of their own. */
#define OTHERS_SIZE (256ULL << 20)

/* Bytes of large files that are being read, by all threads; relaxed: a limit, no order. */
static atomic_ullong all_reading;

/* Return the sum of all bytes. */
static uint64_t elfparts_sum(const struct elfparts *p)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < p->nr; i++)
		sum += p->list[i].end - p->list[i].start;
	return sum;
}

/* Test whether @size bytes at @offset can be read without waiting, by the first and the last. */
static bool is_cached(int fd, uint64_t offset, size_t size)
{
	uint8_t byte;
	struct iovec iov = { &byte, 1 };

	return preadv2(fd, &iov, 1, (off_t)offset, RWF_NOWAIT) == 1 &&
	       preadv2(fd, &iov, 1, (off_t)(offset + size - 1), RWF_NOWAIT) == 1;
}

/* Read a piece of the file, to the same place of the copy. Return how many bytes, or -errno. */
static ssize_t read_piece(struct elf_sandbox *c, struct elf_sandbox_file *s, uint64_t offset,
			  size_t size)
{
	ssize_t nr;

	if (s->copy < 0 && is_cached(s->fd, offset, size))
		return (ssize_t)size;
	nr = pread(s->fd, c->buf, size, (off_t)offset);
	if (nr < 0)
		return errno == EINTR ? -EINTR : -EIO;
	if (s->copy >= 0 && pwrite(s->copy, c->buf, (size_t)nr, (off_t)offset) != nr)
		return -ENOMEM;
	return nr;
}

/* Read a part, watched. 0 or -errno. */
static int read_part(struct elf_sandbox *c, struct elf_sandbox_file *s, struct elfpart part)
{
	struct watch *w = c->watch;

	watch_expect(w, part.end - part.start);
	while (part.start < part.end) {
		ssize_t nr = watch_begin(w);

		if (nr)
			return (int)nr;
		nr = read_piece(c, s, part.start, MIN(part.end - part.start, PIECE));
		watch_end(w, nr > 0 ? (uint64_t)nr : 0);
		if (nr == -EINTR)
			continue;
		/* The file has become shorter: the worker finds that, or zeros. */
		if (nr <= 0)
			return (int)nr;
		part.start += (uint64_t)nr;
	}
	return 0;
}

/*
 * Reserve memory for @size bytes more. -ENOSPC: they never fit; -EAGAIN: other files are read now.
 */
static int hold(struct elf_sandbox *c, uint64_t size)
{
	uint64_t max = c->memory_max, more, now;

	c->sum += size;
	if (!max || c->sum < SMALL_SIZE)
		return 0;
	if (c->sum > 2 * max + OTHERS_SIZE)
		return -ENOSPC;
	more = c->sum - c->held;
	now = atomic_fetch_add_explicit(&all_reading, more, memory_order_relaxed) + more;
	/* The memory that this file already has is no reason to wait. */
	if (now <= max || now == c->sum) {
		c->held = c->sum;
		return 0;
	}
	atomic_fetch_sub_explicit(&all_reading, more, memory_order_relaxed);
	return -EAGAIN;
}

/* Read the @nr parts at @list, of which the worker chose the numbers. */
static int read_parts(struct elf_sandbox *c, struct elf_sandbox_file *s, const struct elfpart *list,
		      uint32_t nr)
{
	uint64_t before = elfparts_sum(&s->there), sum = 0;
	int rc;

	/* An honest list is short, in order and without overlap: else a part is read again and
	 * again. */
	if (nr > ELFPARTS_MAX)
		return -EBADMSG;
	for (uint32_t i = 0; i < nr; i++) {
		if (list[i].start >= list[i].end || list[i].end > s->size ||
		    (i && list[i].start < list[i - 1].end))
			return -EBADMSG;
		elfparts_add(&s->there, list[i].start, list[i].end, s->size);
	}
	sum = elfparts_sum(&s->there) - before;
	if (nr && !sum)
		return -EBADMSG;
	rc = s->there.full ? -E2BIG : hold(c, sum);
	for (uint32_t i = 0; i < nr && !rc; i++)
		rc = read_part(c, s, elfparts_round(list[i].start, list[i].end, s->size));
	return rc;
}

void elf_sandbox_close(struct elf_sandbox *c, int i)
{
	struct elf_sandbox_file *s = &c->files[i];

	assert(i >= 0 && i < ELF_SANDBOX_FILES);
	if (s->copy >= 0) {
		close(s->copy);
		if (s->sent >= 0)
			close(s->sent);
	}
	s->fd = s->copy = s->sent = -1;
}

/* Test for a file system that is a disk or memory: no program decides when it responds. */
static bool is_local(int fd, struct watch *w)
{
	static const long local[] = { EXT4_SUPER_MAGIC,	   XFS_SUPER_MAGIC,  BTRFS_SUPER_MAGIC,
				      TMPFS_MAGIC,	   F2FS_SUPER_MAGIC, SQUASHFS_MAGIC,
				      EROFS_SUPER_MAGIC_V1 };
	struct statfs st;
	int rc = watch_begin(w);

	if (rc)
		return false;
	rc = fstatfs(fd, &st);
	watch_end(w, 0);
	if (rc)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(local); i++)
		if (st.f_type == local[i])
			return true;
	return false;
}

/*
 * Test for a file that no one but root may change: its worker may map it, instead of copying all
 * that it reads. Should root make it shorter in the middle of a call, the worker ends.
 */
static bool is_stable(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && !st.st_uid &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* Make an empty copy, of which the worker gets a descriptor that it can only read. */
static int make_copy(struct elf_sandbox_file *s)
{
	char path[64];

	s->copy = sandbox_file();
	if (s->copy < 0)
		return s->copy;
	if (ftruncate(s->copy, (off_t)s->size))
		return -ENOMEM;
	sandbox_fix_size(s->copy);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", s->copy);
	s->sent = open(path, O_RDONLY | O_CLOEXEC);
	return s->sent < 0 ? -errno : 0;
}

int elf_sandbox_open(struct elf_sandbox *c, int i, int fd, uint64_t size)
{
	struct elf_sandbox_file *s = &c->files[i];
	uint64_t part = size <= WHOLE_SIZE ? size : ENDS_SIZE;
	const struct elfpart ends[2] = { { 0, part }, { size - part, size } };
	int rc = 0;

	assert(i >= 0 && i < ELF_SANDBOX_FILES);
	assert(fd >= 0);
	if (!size)
		return -ENOEXEC;
	*s = (struct elf_sandbox_file){ .fd = fd, .size = size, .copy = -1, .sent = fd };
	if (c->copied || !is_local(fd, c->watch)) {
		s->sent = -1;
		rc = make_copy(s);
	}
	s->stable = s->copy < 0 && is_stable(fd);
	return rc ? rc : read_parts(c, s, ends, size <= WHOLE_SIZE ? 1 : 2);
}

/* Write the head and the lists of the request; return their size. */
static size_t make_request(struct elf_sandbox *c)
{
	struct elf_sandbox_request head = { .size = { 0 } };
	size_t at = sizeof(head);

	for (int i = 0; i < ELF_SANDBOX_FILES; i++) {
		const struct elf_sandbox_file *s = &c->files[i];
		uint32_t nr = s->fd < 0 ? 0 : s->there.nr;

		head.size[i] = s->size;
		head.nr_parts[i] = nr;
		head.stable[i] = s->stable;
		memcpy(c->request + at, s->there.list, nr * sizeof(struct elfpart));
		at += nr * sizeof(struct elfpart);
	}
	memcpy(c->request, &head, sizeof(head));
	return at;
}

/* Read the parts that the worker misses. *@more: there are some. */
static int read_missed(struct elf_sandbox *c, const struct sandbox_answer *a, bool *more)
{
	struct elf_sandbox_answer head;
	const struct elfpart *list = (const void *)(a->bytes + sizeof(head));
	int rc = 0;

	if (a->size < sizeof(head))
		return -EBADMSG;
	memcpy(&head, a->bytes, sizeof(head));
	*more = head.nr_missed[0] || head.nr_missed[1];
	if ((uint64_t)head.nr_missed[0] + head.nr_missed[1] >
	    (a->size - sizeof(head)) / sizeof(struct elfpart))
		return -EBADMSG;
	for (int i = 0; i < ELF_SANDBOX_FILES && !rc; i++) {
		uint32_t nr = head.nr_missed[i];

		if (nr && c->files[i].fd < 0)
			return -EBADMSG;
		rc = nr ? read_parts(c, &c->files[i], list, nr) : 0;
		list += nr;
	}
	return rc;
}

/*
 * Return the error for @rc, a number that the worker chose: -EAGAIN and -ERANGE have another
 * meaning here.
 */
static int known_error(int rc)
{
	static const int known[] = { -ENOEXEC, -ENOENT, -ESTALE, -E2BIG,  -ENOSPC, -ENOMEM,
				     -EFBIG,   -ETIME,	-EPIPE,	 -ENOSYS, -EINVAL, -EIO };

	if (rc == -ERANGE)
		return -EIO;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (rc == known[i])
			return rc;
	return -EBADMSG;
}

/* Call the reader once. The calls of a reading have one limit of number and time. */
static int call(struct elf_sandbox *c, const struct sandbox_reader *reader, const void *request,
		size_t size, struct sandbox_answer *out)
{
	const int fds[SANDBOX_FDS_MAX] = { c->files[0].sent, c->files[1].sent };
	size_t at = make_request(c);
	int rc;

	if (c->nr_calls >= CALLS_MAX || c->took_ns >= c->time_ns || size > sizeof(c->request) - at)
		return -EBADMSG;
	c->nr_calls++;
	memcpy(c->request + at, request, size);
	rc = sandbox_call(reader, c->request, at + size, fds, 0, c->time_ns - c->took_ns, out);
	/* One that was given up ends the reading. */
	c->took_ns = rc == -ETIME ? c->time_ns : c->took_ns + out->took_ns;
	c->reader = reader;
	c->generation = out->generation;
	return rc ? known_error(rc) : 0;
}

int elf_sandbox_refuse(struct elf_sandbox *c)
{
	sandbox_refuse(c->reader, c->generation);
	return -EBADMSG;
}

int elf_sandbox_ask(struct elf_sandbox *c, const struct sandbox_reader *reader, const void *request,
		    size_t size, struct sandbox_answer *out)
{
	bool more = true;

	assert(size <= SANDBOX_REQUEST_MAX);
	for (;;) {
		int rc = call(c, reader, request, size, out);

		if (rc)
			return rc;
		rc = read_missed(c, out, &more);
		if (!rc && !more)
			return 0;
		sandbox_answer_free(out);
		if (rc == -EBADMSG)
			elf_sandbox_refuse(c);
		if (rc)
			return rc;
	}
}

struct elf_sandbox *elf_sandbox_new(void)
{
	struct elf_sandbox *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->memory_max = ELF_SANDBOX_MEMORY;
	c->time_ns = ELF_SANDBOX_TIME_NS;
	for (int i = 0; i < ELF_SANDBOX_FILES; i++)
		c->files[i].fd = c->files[i].copy = c->files[i].sent = -1;
	c->buf = malloc(PIECE);
	if (c->buf)
		return c;
	free(c);
	return NULL;
}

void elf_sandbox_free(struct elf_sandbox *c)
{
	for (int i = 0; i < ELF_SANDBOX_FILES; i++)
		elf_sandbox_close(c, i);
	atomic_fetch_sub_explicit(&all_reading, c->held, memory_order_relaxed);
	free(c->buf);
	free(c);
}

/*
 * Files in the sandbox.
 */

/* Take the lists of the request. False: invalid. */
static bool take_request(struct elf_sandbox_serve *v, const struct sandbox_call *c)
{
	struct elf_sandbox_request r;
	const uint8_t *at = (const uint8_t *)c->request + sizeof(r);
	size_t left;

	if (c->size < sizeof(r))
		return false;
	memcpy(&r, c->request, sizeof(r));
	left = c->size - sizeof(r);
	for (int i = 0; i < ELF_SANDBOX_FILES; i++) {
		size_t size = r.nr_parts[i] * sizeof(struct elfpart);

		if (r.nr_parts[i] > ELFPARTS_MAX || size > left)
			return false;
		v->missed[i].nr = 0;
		v->missed[i].full = false;
		v->there[i].nr = r.nr_parts[i];
		v->size[i] = r.size[i];
		v->stable[i] = r.stable[i];
		memcpy(v->there[i].list, at, size);
		at += size;
		left -= size;
	}
	v->request = at;
	v->request_size = left;
	return true;
}

int elf_sandbox_serve_call(struct sandbox_call *c, void *request, size_t size,
			   elf_sandbox_serve_fn fn)
{
	struct elf_sandbox_serve *v = calloc(1, sizeof(*v));
	int rc = -EINVAL;

	assert(fn && size);
	if (!v)
		return -ENOMEM;
	if (take_request(v, c) && v->request_size == size && c->fds[0] >= 0) {
		memcpy(request, v->request, size);
		rc = fn(v, c, request);
	}
	for (int i = 0; i < ELF_SANDBOX_FILES; i++) {
		elffile_close(&v->file[i]);
		if (v->mapped[i])
			munmap(v->mapped[i], v->size[i]);
	}
	free(v);
	return rc;
}

int elf_sandbox_serve_open(struct elf_sandbox_serve *v, const struct sandbox_call *c, int i)
{
	/* Without a worker, a file that becomes shorter would end the caller. */
	void *all = c->link && v->stable[i] && v->size[i]
			    ? mmap(NULL, v->size[i], PROT_READ, MAP_PRIVATE, c->fds[i], 0)
			    : MAP_FAILED;

	v->mapped[i] = all == MAP_FAILED ? NULL : all;
	return elffile_open_parts(&v->file[i], c->fds[i], v->mapped[i], v->size[i], &v->there[i],
				  &v->missed[i]);
}

bool elf_sandbox_serve_misses(const struct elf_sandbox_serve *v)
{
	return v->missed[0].nr || v->missed[1].nr;
}

int elf_sandbox_serve_begin(const struct elf_sandbox_serve *v, struct sandbox_call *c, int rc)
{
	struct elf_sandbox_answer a = { .nr_missed = { v->missed[0].nr, v->missed[1].nr } };

	if (!elf_sandbox_serve_misses(v) && rc)
		return rc;
	sandbox_put(&c->reply, &a, sizeof(a));
	for (int i = 0; i < ELF_SANDBOX_FILES; i++)
		sandbox_put(&c->reply, v->missed[i].list, v->missed[i].nr * sizeof(struct elfpart));
	return v->missed[0].full || v->missed[1].full ? -E2BIG : 0;
}
