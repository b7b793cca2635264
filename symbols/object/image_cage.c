// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Read an image: the bytes of the file here, their meaning in the cage.
 *
 * A read may hang, and a worker that waits for a file would hold up the images of all others. So
 * the worker reads parts that this thread has read before: from the page cache, of a file system
 * that is a disk or memory, else from a copy. It begins with both ends of the file and names the
 * parts that it misses; this thread reads them, and calls again. Most files take one call or two.
 *
 * Runs on: a helper. Invariant: the worker cannot write to a descriptor that
 * it gets.
 */
#include "symbols/object/image_read.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "symbols/cage/cage.h"
#include "symbols/object/image_flat.h"
#include "symbols/object/image_wire.h"

#define TIMEOUT_NS 10000000000ULL
#define CALLS_MAX  24U		/* for one image */
#define PIECE	   (64UL << 10) /* below HEAP_PIECE of ui/main.c */
/* A smaller file is copied as a whole, of another one that many bytes at both ends. */
#define WHOLE_SIZE (256UL << 10)
#define ENDS_SIZE  (64UL << 10)
/* Files with fewer bytes to copy are read without regard to others: a few are read at a time. */
#define SMALL_SIZE (16ULL << 20)
/* Above twice --symbol-memory: tables that have a limit of their own. */
#define OTHERS_SIZE (256ULL << 20)

/* Bytes of large files that are being read, by all threads; relaxed: a limit, no order. */
static atomic_ullong all_reading;
static atomic_ullong last_serial; /* relaxed */

/* A file, and its parts that the worker may read. */
struct source {
	int fd; /* -1: none */
	uint64_t size;
	int copy; /* a memfd; -1: the worker reads the file itself */
	int sent; /* its descriptor, read-only */
	struct elfparts there;
};

struct reading {
	const struct image_input *in;
	const struct cage_reader *reader;
	struct source files[IMAGE_NR_FILES];
	uint64_t held;
	uint8_t *buf; /* PIECE bytes */
	bool by_link, same_crc;
	uint64_t serial;
	unsigned int nr_calls;
	struct image_answer answer;
	uint8_t request[sizeof(struct image_request) +
			IMAGE_NR_FILES * ELFPARTS_MAX * sizeof(struct elfpart)];
};
_Static_assert(sizeof(((struct reading *)0)->request) <= CAGE_REQUEST_MAX, "all parts fit");

/* Test whether @size bytes at @offset can be read without waiting, by the first and the last. */
static bool is_cached(int fd, uint64_t offset, size_t size)
{
	uint8_t byte;
	struct iovec iov = { &byte, 1 };

	return preadv2(fd, &iov, 1, (off_t)offset, RWF_NOWAIT) == 1 &&
	       preadv2(fd, &iov, 1, (off_t)(offset + size - 1), RWF_NOWAIT) == 1;
}

/* Read a piece of the file, to the same place of the copy. Return how many bytes, or -errno. */
static ssize_t read_piece(struct reading *r, struct source *s, uint64_t offset, size_t size)
{
	ssize_t nr;

	if (s->copy < 0 && is_cached(s->fd, offset, size))
		return (ssize_t)size;
	nr = pread(s->fd, r->buf, size, (off_t)offset);
	if (nr < 0)
		return errno == EINTR ? -EINTR : -EIO;
	if (s->copy >= 0 && pwrite(s->copy, r->buf, (size_t)nr, (off_t)offset) != nr)
		return -ENOMEM;
	return nr;
}

/* Read a part, watched. 0 or -errno. */
static int read_part(struct reading *r, struct source *s, struct elfpart part)
{
	struct watch *w = r->in->watch;

	watch_expect(w, part.end - part.start);
	while (part.start < part.end) {
		ssize_t nr = watch_begin(w);

		if (nr)
			return (int)nr;
		nr = read_piece(r, s, part.start, MIN(part.end - part.start, PIECE));
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

/* Reserve memory for @size bytes. -ENOSPC: they never fit; -EAGAIN: other files are read now. */
static int hold(struct reading *r, uint64_t size)
{
	uint64_t max = r->in->memory_max, now;

	if (!max || size < SMALL_SIZE)
		return 0;
	if (r->held + size > 2 * max + OTHERS_SIZE)
		return -ENOSPC;
	now = atomic_fetch_add_explicit(&all_reading, size, memory_order_relaxed) + size;
	/* The memory that this file already has is no reason to wait. */
	if (now <= max || now == r->held + size) {
		r->held += size;
		return 0;
	}
	atomic_fetch_sub_explicit(&all_reading, size, memory_order_relaxed);
	return -EAGAIN;
}

/* Read the @nr parts at @list, of which the worker chose the numbers. */
static int read_parts(struct reading *r, struct source *s, const struct elfpart *list, uint32_t nr)
{
	uint64_t before = elfparts_sum(&s->there), sum = 0;
	int rc;

	for (uint32_t i = 0; i < nr; i++) {
		if (list[i].start >= list[i].end || list[i].end > s->size)
			return -EBADMSG;
		elfparts_add(&s->there, list[i].start, list[i].end, s->size);
	}
	sum = elfparts_sum(&s->there) - before;
	if (nr && !sum)
		return -EBADMSG;
	rc = s->there.full ? -E2BIG : hold(r, sum);
	for (uint32_t i = 0; i < nr && !rc; i++)
		rc = read_part(r, s, elfparts_round(list[i].start, list[i].end, s->size));
	return rc;
}

static void close_source(struct source *s)
{
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

/* Make an empty copy, of which the worker gets a descriptor that it can only read. */
static int make_copy(struct source *s)
{
	char path[64];

	s->copy = cage_file();
	if (s->copy < 0)
		return s->copy;
	if (ftruncate(s->copy, (off_t)s->size))
		return -ENOMEM;
	cage_fix_size(s->copy);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", s->copy);
	s->sent = open(path, O_RDONLY | O_CLOEXEC);
	return s->sent < 0 ? -errno : 0;
}

/* Begin with both ends of a file. 0 or -errno. */
static int open_source(struct reading *r, int i, int fd, uint64_t size)
{
	struct source *s = &r->files[i];
	uint64_t part = size <= WHOLE_SIZE ? size : ENDS_SIZE;
	const struct elfpart ends[2] = { { 0, part }, { size - part, size } };
	int rc = 0;

	if (!size)
		return -ENOEXEC;
	*s = (struct source){ .fd = fd, .size = size, .copy = -1, .sent = fd };
	if (r->in->copied || !is_local(fd, r->in->watch)) {
		s->sent = -1;
		rc = make_copy(s);
	}
	return rc ? rc : read_parts(r, s, ends, size <= WHOLE_SIZE ? 1 : 2);
}

static size_t make_request(struct reading *r)
{
	struct image_request head = {
		.serial = r->serial,
		.memory_max = r->in->memory_max,
		.by_link = r->by_link,
		.same_crc = r->same_crc,
	};
	size_t at = sizeof(head);

	for (int i = 0; i < IMAGE_NR_FILES; i++) {
		const struct source *s = &r->files[i];
		uint32_t nr = s->fd < 0 ? 0 : s->there.nr;

		head.size[i] = s->size;
		head.nr_parts[i] = nr;
		memcpy(r->request + at, s->there.list, nr * sizeof(struct elfpart));
		at += nr * sizeof(struct elfpart);
	}
	memcpy(r->request, &head, sizeof(head));
	return at;
}

/* Check the head of an answer. */
static int take_head(struct reading *r, const struct cage_answer *a)
{
	struct image_answer *head = &r->answer;
	struct debugfile_names *n = &head->names;
	uint64_t nr;

	if (a->size < sizeof(*head))
		return -EBADMSG;
	memcpy(head, a->bytes, sizeof(*head));
	nr = (uint64_t)head->nr_missed[0] + head->nr_missed[1];
	if (nr > (a->size - sizeof(*head)) / sizeof(struct elfpart) ||
	    n->build_id_size > sizeof(n->build_id) || !memchr(n->link, 0, sizeof(n->link)) ||
	    (n->link[0] && !debugfile_link_ok(n->link)))
		return -EBADMSG;
	return 0;
}

/* Read the parts that the worker misses. */
static int read_missed(struct reading *r, const struct cage_answer *a)
{
	const struct elfpart *list = (const void *)(a->bytes + sizeof(r->answer));
	int rc = 0;

	for (int i = 0; i < IMAGE_NR_FILES && !rc; i++) {
		uint32_t nr = r->answer.nr_missed[i];

		if (nr && r->files[i].fd < 0)
			return -EBADMSG;
		rc = nr ? read_parts(r, &r->files[i], list, nr) : 0;
		list += nr;
	}
	return rc;
}

/* Call the worker until it misses nothing. 0 (the caller frees the answer), or -errno. */
static int ask(struct reading *r, struct cage_answer *a)
{
	int rc;

	r->serial = atomic_fetch_add_explicit(&last_serial, 1, memory_order_relaxed) + 1;
	r->reader = &image_readers[cage_idle(CAGE_IMAGE, CAGE_IMAGE_LAST) - CAGE_IMAGE];
	for (;;) {
		const int fds[CAGE_FDS_MAX] = { r->files[0].sent, r->files[1].sent };

		if (r->nr_calls++ == CALLS_MAX)
			return -EBADMSG;
		rc = cage_call(r->reader, r->request, make_request(r), fds, 0, TIMEOUT_NS, a);
		if (rc)
			return rc;
		rc = take_head(r, a);
		if (!rc && !r->answer.nr_missed[0] && !r->answer.nr_missed[1])
			return 0;
		if (!rc)
			rc = read_missed(r, a);
		cage_answer_free(a);
		if (rc)
			return rc;
	}
}

/* Take the image of an answer, which is freed. */
static int take_image(struct cage_answer *a, struct image **out)
{
	int rc = image_flat_take(out, a, sizeof(struct image_answer));

	cage_answer_free(a);
	return rc;
}

static bool is_from_debug_file(const struct image *image)
{
	return !strcmp(image->source, "debug file") || !strcmp(image->source, "debug link");
}

/* Read the image again with the debug file @fd. NULL: of another object, or without functions. */
static int read_with(struct reading *r, int fd, uint64_t size, struct image **out)
{
	struct cage_answer a = { 0 };
	uint32_t crc;
	int rc = open_source(r, IMAGE_DEBUG, fd, size);

	r->same_crc = false;
	if (!rc)
		rc = ask(r, &a);
	if (!rc && r->answer.match == DEBUGFILE_CRC_DECIDES &&
	    !debugfile_crc(fd, size, r->in->watch, &crc) && crc == r->answer.names.crc) {
		cage_answer_free(&a);
		r->same_crc = true;
		rc = ask(r, &a);
	}
	if (!rc && r->answer.match == DEBUGFILE_SAME)
		rc = take_image(&a, out);
	cage_answer_free(&a);
	close_source(&r->files[IMAGE_DEBUG]);
	if (!rc && *out && !is_from_debug_file(*out)) {
		image_free(*out);
		*out = NULL;
	}
	return rc;
}

/*
 * Replace @image by one with the functions of its debug file: by build-id, else by link. 0, or
 * -EAGAIN; after other errors the image is as before.
 */
static int add_debug_file(struct reading *r, struct image **image)
{
	const struct debugfile_names names = r->answer.names;
	struct image *better = NULL;
	struct foreign_file file;
	int rc = 0;

	watch_aside(r->in->watch, true);
	for (unsigned int i = 0; rc != -ERANGE && rc != -EAGAIN && !better; i++) {
		rc = debugfile_try(&names, i, DEBUGFILE_ROOT, r->in->path, r->in->watch, &file,
				   &r->by_link);
		if (rc)
			continue;
		rc = read_with(r, file.fd, file.size, &better);
		close(file.fd);
	}
	watch_aside(r->in->watch, false);
	if (better) {
		image_free(*image);
		*image = better;
	}
	return rc == -EAGAIN ? rc : 0;
}

static int read_image(struct reading *r, struct image **image)
{
	struct cage_answer a = { 0 };
	int rc = open_source(r, IMAGE_OBJECT, r->in->fd, r->in->size);

	if (!rc)
		rc = ask(r, &a);
	if (!rc)
		rc = take_image(&a, image);
	if (!rc && !r->in->no_debug_files && strcmp((*image)->source, ".symtab") != 0)
		rc = add_debug_file(r, image);
	return rc;
}

int image_read(struct image **out, const struct image_input *in, struct err *e)
{
	struct reading *r = calloc(1, sizeof(*r));
	struct image *image = NULL;
	int rc = -ENOMEM;

	if (r) {
		r->in = in;
		for (int i = 0; i < IMAGE_NR_FILES; i++)
			r->files[i].fd = r->files[i].copy = r->files[i].sent = -1;
		r->buf = malloc(PIECE);
		if (r->buf)
			rc = read_image(r, &image);
		for (int i = 0; i < IMAGE_NR_FILES; i++)
			close_source(&r->files[i]);
		atomic_fetch_sub_explicit(&all_reading, r->held, memory_order_relaxed);
		free(r->buf);
		free(r);
	}
	if (rc) {
		image_free(image);
		return err_set(e, rc, "cannot read the ELF file");
	}
	*out = image;
	return 0;
}

int image_read_fd(struct image **out, int fd, uint64_t file_size, struct err *e)
{
	const struct image_input in = { .fd = fd, .size = file_size };

	return image_read(out, &in, e);
}
