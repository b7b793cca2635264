// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Separate debug files by build-id and debuglink, .gnu_debugdata.
 *
 * Runs on: a helper. A file of the right name with another build-id is ignored.
 */
#include "symbols/elf/internal.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/base/thread.h"
#include "symbols/elf/elf.h"

/* The folders in which libdebuginfod may have its cache. */
static const struct {
	const char *variable, *below;
} folders[DEBUGFILE_CACHES] = {
	{ "DEBUGINFOD_CACHE_PATH", "" },
	{ "XDG_CACHE_HOME", "/debuginfod_client" },
	{ "HOME", "/.cache/debuginfod_client" },
	{ "HOME", "/.debuginfod_client_cache" },
};

int debugfile_cache_folder(unsigned int nr, char *buf, size_t size)
{
	const char *folder = getenv(folders[nr].variable);

	assert(nr < DEBUGFILE_CACHES && size);
	buf[0] = '\0';
	if (!folder || folder[0] != '/')
		return 0;
	return snprintf(buf, size, "%s%s", folder, folders[nr].below);
}

bool debugfile_cache_path(const uint8_t *build_id, size_t size, unsigned int nr, char *buf,
			  size_t buf_size)
{
	int at;

	assert(buf_size);
	/* With file capabilities the environment belongs to the caller. */
	if (nr >= DEBUGFILE_CACHES || size < 2 || getauxval(AT_SECURE))
		return false;
	at = debugfile_cache_folder(nr, buf, buf_size);
	if (!at)
		return true;
	if (at < 0 || (size_t)at + sizeof("/") + 2 * size + sizeof("/debuginfo") > buf_size) {
		buf[0] = '\0';
		return true;
	}
	buf[at++] = '/';
	for (size_t i = 0; i < size; i++)
		at += sprintf(buf + at, "%02x", build_id[i]);
	strcpy(buf + at, "/debuginfo");
	return true;
}

#define DEBUG_ROOT     DEBUGFILE_ROOT "/.build-id/"
#define DEBUG_SIZE_MAX (8ULL << 30)
#define PATH_SIZE_MAX  4096U
#define SUMS_MAX       256U

bool debugfile_path(const uint8_t *build_id, size_t size, char *buf, size_t buf_size)
{
	static const char hex[] = "0123456789abcdef";
	size_t pos = sizeof(DEBUG_ROOT) - 1;

	assert(build_id || !size);
	if (size < 2 || buf_size < pos + 2 * size + sizeof("/.debug"))
		return false;
	memcpy(buf, DEBUG_ROOT, pos);
	for (size_t i = 0; i < size; i++) {
		buf[pos++] = hex[build_id[i] >> 4];
		buf[pos++] = hex[build_id[i] & 15];
		if (i == 0)
			buf[pos++] = '/';
	}
	memcpy(buf + pos, ".debug", sizeof(".debug"));
	return true;
}

static const Elf64_Phdr *first_load(const struct elffile *f)
{
	for (uint32_t i = 0; i < f->nr_phdrs; i++) {
		if (f->phdrs[i].p_type == PT_LOAD)
			return &f->phdrs[i];
	}
	return NULL;
}

static bool same_build_id(const struct elffile *object, const struct elffile *debug)
{
	return debug->build_id_size == object->build_id_size &&
	       !memcmp(debug->build_id, object->build_id, object->build_id_size);
}

/* Return the difference of addresses that prelinking made. */
static uint64_t bias_of(const struct elffile *object, const struct elffile *debug)
{
	const Elf64_Phdr *a = first_load(object), *b = first_load(debug);

	return a && b ? a->p_vaddr - b->p_vaddr : 0;
}

static int open_path(const struct untrusted_want *want, struct watch *watch,
		     struct untrusted_file *out)
{
	int rc = watch_begin(watch);

	if (rc)
		return rc;
	rc = untrusted_open(want, out, NULL);
	watch_end(watch, 0);
	return rc;
}

/* Read .gnu_debuglink: a basename and the CRC of that file. */
static void read_link(const struct elffile *f, struct debugfile_names *n)
{
	const Elf64_Shdr *s = elffile_section(f, ".gnu_debuglink");
	char bytes[DEBUGFILE_LINK_MAX];

	if (!s || s->sh_size < 8 || s->sh_size > sizeof(bytes) ||
	    elffile_read(f, s->sh_offset, bytes, s->sh_size) ||
	    strnlen(bytes, s->sh_size - 4) == s->sh_size - 4 || !debugfile_link_ok(bytes))
		return;
	strcpy(n->link, bytes);
	memcpy(&n->crc, bytes + s->sh_size - 4, sizeof(n->crc));
}

void debugfile_names(struct debugfile_names *n, const struct elffile *object)
{
	*n = (struct debugfile_names){ .build_id_size = object->build_id_size };
	memcpy(n->build_id, object->build_id, sizeof(n->build_id));
	read_link(object, n);
}

/* Folders of the file of a link, as gdb has them, in its order. */
enum link_folder { BESIDE, BESIDE_DEBUG, INSTALLED, INSTALLED_ROOT, LINK_FOLDERS };

/* Write the path of the link in @folder. 0 or -ENOENT. */
static int link_path(const struct debugfile_names *n, enum link_folder folder,
		     const struct debugfile_where *where, char path[PATH_SIZE_MAX])
{
	const char *slash = where->path ? strrchr(where->path, '/') : NULL;
	bool below = folder == INSTALLED || folder == INSTALLED_ROOT;
	int size, length = 0;

	assert(folder < LINK_FOLDERS);
	if (folder != INSTALLED_ROOT) {
		if (!slash || where->path[0] != '/' || strstr(where->path, "/../"))
			return -ENOENT;
		length = (int)(slash - where->path);
	}
	size = snprintf(path, PATH_SIZE_MAX, "%s%.*s/%s%s", below ? where->folder : "", length,
			length ? where->path : "", folder == BESIDE_DEBUG ? ".debug/" : "",
			n->link);
	return size > 0 && size < (int)PATH_SIZE_MAX ? 0 : -ENOENT;
}

/*
 * Return the path of the object below the root of its process. After chroot() its maps have the
 * path below ours, as no other file system is mounted there.
 */
static const char *path_there(const struct debugfile_where *where)
{
	char link[32], root[PATH_SIZE_MAX];
	ssize_t size;

	snprintf(link, sizeof(link), "/proc/%d/root", where->pid);
	size = where->pid > 0 && where->path ? readlink(link, root, sizeof(root)) : 0;
	return size > 1 && !strncmp(where->path, root, (size_t)size) && where->path[size] == '/'
		       ? where->path + size
		       : where->path;
}

/* Try the link: place @i, first all of them below the root of the object, then below ours. */
static int try_link(const struct debugfile_names *n, unsigned int i,
		    const struct debugfile_where *where, struct untrusted_file *out)
{
	bool elsewhere = where->pid > 0 || where->root, there = elsewhere && i < LINK_FOLDERS;
	enum link_folder folder = i % LINK_FOLDERS;
	struct debugfile_where at = *where;
	char path[PATH_SIZE_MAX];
	struct untrusted_want want = {
		.path = path,
		.size_max = DEBUG_SIZE_MAX,
		.pid = there ? where->pid : 0,
		.root = there ? where->root : NULL,
	};
	struct stat st;
	int rc;

	if (!n->link[0] || i >= (elsewhere ? 2U : 1U) * LINK_FOLDERS)
		return -ERANGE;
	if (there)
		at.path = path_there(where);
	rc = link_path(n, folder, &at, path);
	if (!rc && (folder == BESIDE || folder == BESIDE_DEBUG)) {
		/* Of the program's own user, or of root: else anybody may rename its functions. */
		want.owned = want.linked = true;
		want.uid = !fstat(where->fd, &st) ? st.st_uid : 0;
	}
	return rc ? rc : open_path(&want, where->watch, out);
}

int debugfile_try(const struct debugfile_names *n, unsigned int i,
		  const struct debugfile_where *where, struct untrusted_file *out, bool *by_link)
{
	char path[PATH_SIZE_MAX];
	struct untrusted_want want = { .path = path, .size_max = DEBUG_SIZE_MAX };
	unsigned int nr = 0;

	*by_link = false;
	if (i < 2) {
		/* In our root, and in the one of the object, as of a container. */
		want.pid = i ? where->pid : 0;
		want.root = i ? where->root : NULL;
		if ((i && where->pid <= 0 && !where->root) ||
		    !debugfile_path(n->build_id, n->build_id_size, path, sizeof(path)))
			return -ENOENT;
		return open_path(&want, where->watch, out);
	}
	/* In the cache of debuginfod. */
	want.owned = true;
	want.uid = invoker_uid();
	for (; debugfile_cache_path(n->build_id, n->build_id_size, nr, path, sizeof(path)); nr++)
		if (nr == i - 2)
			return *path ? open_path(&want, where->watch, out) : -ENOENT;
	*by_link = true;
	return try_link(n, i - 2 - nr, where, out);
}

enum debugfile_match debugfile_match(const struct elffile *object, const struct elffile *debug,
				     bool by_link, uint64_t *bias)
{
	*bias = bias_of(object, debug);
	if (debug->machine != object->machine)
		return DEBUGFILE_OTHER;
	if (by_link && (!object->build_id_size || !debug->build_id_size))
		return DEBUGFILE_CRC_DECIDES;
	return same_build_id(object, debug) ? DEBUGFILE_SAME : DEBUGFILE_OTHER;
}

/* The CRC of a file that has not changed since. */
struct debugfile_sum {
	dev_t dev;
	ino_t ino;
	uint64_t size;
	struct timespec mtime, ctime;
	uint32_t crc;
	int rc; /* of computing it: 0 or -ETIME */
};

/*
 * The last sums, of all threads: many objects may name one file. One file is summed at a time, but
 * the lock is not held while it is read.
 */
static struct {
	pthread_mutex_t lock;
	struct debugfile_sum list[SUMS_MAX];
	uint32_t nr;	   /* ever added: the oldest one leaves */
	uint64_t since_ns; /* a sum is computed since then; 0: none is */
} sums = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool same_file(const struct debugfile_sum *a, const struct debugfile_sum *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
	       same_time(&a->mtime, &b->mtime) && same_time(&a->ctime, &b->ctime);
}

/* Set the identity of the file @fd: inode, size and times. */
static int identify(struct debugfile_sum *s, int fd, uint64_t size, struct watch *watch)
{
	struct stat st;
	int rc = watch_begin(watch);

	if (rc)
		return rc;
	rc = fstat(fd, &st) ? -errno : 0;
	watch_end(watch, 0);
	*s = (struct debugfile_sum){ .size = size };
	if (rc)
		return rc;
	s->dev = st.st_dev;
	s->ino = st.st_ino;
	s->mtime = st.st_mtim;
	s->ctime = st.st_ctim;
	return 0;
}

/*
 * Take the sum of the file from the list, else begin it: *@since_ns is not 0 then. -EAGAIN: another
 * one is computed, for less than @time_ns.
 */
static int begin_sum(struct debugfile_sum *s, uint64_t time_ns, uint64_t *since_ns)
{
	uint64_t now = time_now_ns();
	int rc = 0;

	assert(time_ns);
	*since_ns = 0;
	pthread_mutex_lock(&sums.lock);
	for (uint32_t i = 0; i < MIN(sums.nr, SUMS_MAX); i++) {
		if (same_file(&sums.list[i], s)) {
			*s = sums.list[i];
			pthread_mutex_unlock(&sums.lock);
			return 0;
		}
	}
	if (sums.since_ns && now - sums.since_ns < time_ns)
		rc = -EAGAIN;
	else
		sums.since_ns = *since_ns = now;
	pthread_mutex_unlock(&sums.lock);
	return rc;
}

/* Keep the sum that was begun at @since_ns; another one may begin. */
static void end_sum(const struct debugfile_sum *s, uint64_t since_ns)
{
	assert(since_ns);
	pthread_mutex_lock(&sums.lock);
	if (!s->rc || s->rc == -ETIME)
		sums.list[sums.nr++ % SUMS_MAX] = *s;
	if (sums.since_ns == since_ns)
		sums.since_ns = 0;
	pthread_mutex_unlock(&sums.lock);
}

/* Sum the bytes until @end_ns. */
static int sum_bytes(int fd, uint64_t size, struct watch *watch, uint64_t end_ns, uint32_t *out)
{
	struct elffile f = { .fd = fd, .size = size, .watch = watch };
	static const size_t room = 1U << 20;
	uint8_t *buf = malloc(room);
	int rc = buf ? 0 : -ENOMEM;
	uLong crc = crc32(0, NULL, 0);

	assert(fd >= 0);
	watch_expect(watch, size);
	for (uint64_t at = 0; at < size && !rc; at += room) {
		size_t here = MIN(size - at, room);

		rc = time_now_ns() < end_ns ? elffile_read(&f, at, buf, here) : -ETIME;
		if (!rc)
			crc = crc32(crc, buf, (uInt)here);
	}
	free(buf);
	*out = (uint32_t)crc;
	return rc;
}

int debugfile_crc(int fd, uint64_t size, struct watch *watch, uint64_t time_ns, uint32_t *out)
{
	uint64_t since_ns;
	struct debugfile_sum s;
	int rc = identify(&s, fd, size, watch);

	assert(fd >= 0 && time_ns);
	if (!rc)
		rc = begin_sum(&s, time_ns, &since_ns);
	if (rc)
		return rc;
	if (since_ns) {
		s.rc = sum_bytes(fd, size, watch, since_ns + time_ns, &s.crc);
		end_sum(&s, since_ns);
	}
	*out = s.crc;
	return s.rc;
}

/*
 * liblzma with limits of output and of memory.
 *
 * Runs on: a helper.
 */

#define XZ_MEMORY_MAX (128UL << 20) /* of the decoder: dictionaries */

#ifdef HAVE_LZMA
#include <lzma.h>

#define FIRST_ROOM (256UL << 10)

/* Enlarge the output buffer; false at the limit (*code: the error). */
static bool grow(lzma_stream *s, uint8_t **buf, size_t *room, int *code)
{
	size_t used = *room - s->avail_out, more = MIN(*room * 2, XZ_OUTPUT_MAX);
	uint8_t *larger;

	if (*room == XZ_OUTPUT_MAX) {
		*code = -EFBIG;
		return false;
	}
	larger = realloc(*buf, more);
	if (!larger) {
		*code = -ENOMEM;
		return false;
	}
	*buf = larger;
	s->next_out = larger + used;
	s->avail_out = more - used;
	*room = more;
	return true;
}

static int code_of(lzma_ret ret)
{
	switch (ret) {
	case LZMA_STREAM_END:
		return 0;
	case LZMA_MEM_ERROR:
		return -ENOMEM;
	case LZMA_MEMLIMIT_ERROR:
		return -EFBIG;
	default:
		return -EBADMSG;
	}
}

int xz_decode(const void *in, size_t in_size, void **out, size_t *out_size)
{
	assert(in || !in_size);
	lzma_stream s = LZMA_STREAM_INIT;
	size_t room = FIRST_ROOM;
	uint8_t *buf = malloc(room);
	lzma_ret ret;
	int code = 0;

	if (!buf || lzma_stream_decoder(&s, XZ_MEMORY_MAX, 0) != LZMA_OK) {
		free(buf);
		return -ENOMEM;
	}
	s.next_in = in;
	s.avail_in = in_size;
	s.next_out = buf;
	s.avail_out = room;
	do {
		ret = lzma_code(&s, LZMA_FINISH);
	} while (ret == LZMA_OK && (s.avail_out || grow(&s, &buf, &room, &code)));
	lzma_end(&s);
	if (!code)
		code = code_of(ret);
	if (code) {
		free(buf);
		return code;
	}
	*out = buf;
	*out_size = (size_t)s.total_out;
	return 0;
}

#else

int xz_decode(const void *in, size_t in_size, void **out, size_t *out_size)
{
	return -EOPNOTSUPP;
}

#endif
