// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The descriptor of a copy to a worker; its table, or a few bytes, back.
 *
 * Runs on: a helper; serve() in the worker.
 */
#include "symbols/kernel/kernel_cage.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "symbols/base/foreign.h"
#include "symbols/cage/cage.h"
#include "symbols/kernel/kcore.h"

#define TIMEOUT_NS 8000000000ULL
#define MEMORY_MAX (64U << 10) /* bytes of the kernel's memory in one call */

struct request {
	uint64_t addr;
	uint64_t size; /* of the memory at @addr; 0: the list of symbols */
};

/* Open a foreign file, @path below @root. */
static int open_below(const char *root, const char *path)
{
	const struct foreign_want want = { .root = root, .path = path, .kernel = true };
	struct foreign_file file;
	int rc = foreign_open(&want, &file, NULL);

	return rc ? rc : file.fd;
}

/*
 * Open @path. *own: a file of this kernel. Return the descriptor; -EISDIR; -EINVAL for anything
 * else that is not a regular file; or another -errno.
 */
static int open_file(const char *root, const char *path, bool *own)
{
	int fd = root ? open_below(root, path)
		      : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct statfs fs;
	struct stat st;
	int rc;

	if (fd < 0)
		return root ? fd : -errno;
	rc = fstatfs(fd, &fs) || fstat(fd, &st) ? -errno : 0;
	*own = !rc && fs.f_type == PROC_SUPER_MAGIC;
	if (!rc && !S_ISREG(st.st_mode))
		rc = S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

int kernel_cage_list(struct kallsyms **out, const char *root, const char *path, struct err *e)
{
	const struct request request = { .size = 0 };
	struct cage_answer a;
	bool own;
	int fds[CAGE_FDS_MAX] = { open_file(root, path, &own), -1 };
	int rc = fds[0];

	if (rc < 0)
		return err_set(e, rc, "cannot open the kernel symbol list");
	if (own) {
		rc = kallsyms_read(out, fds[0], e);
		close(fds[0]);
		return rc;
	}
	rc = cage_call(&kernel_reader, &request, sizeof(request), fds, 0, TIMEOUT_NS, &a);
	close(fds[0]);
	if (!rc) {
		rc = kallsyms_adopt(out, a.bytes, a.size);
		cage_answer_free(&a);
	}
	return rc ? err_set(e, rc, "cannot use the kernel symbol list") : 0;
}

/* Read a piece of a copy in the cage. Return the number of bytes, or -errno. */
static int read_piece(int fd, uint64_t addr, void *buf, uint32_t size)
{
	const struct request request = { .addr = addr, .size = size };
	const int fds[CAGE_FDS_MAX] = { fd, -1 };
	struct cage_answer a;
	int rc = cage_call(&kernel_reader, &request, sizeof(request), fds, 0, TIMEOUT_NS, &a);

	if (rc)
		return rc;
	if (a.size && a.size <= size) {
		memcpy(buf, a.bytes, a.size);
		rc = (int)a.size;
	}
	cage_answer_free(&a);
	return rc ? rc : -EIO;
}

int kernel_cage_memory(const char *root, const char *path, uint64_t addr, void *buf, uint32_t size)
{
	bool own;
	int fd = open_file(root, path, &own), rc = 0;
	uint32_t done = 0;

	if (fd < 0)
		return fd;
	while (!own && done < size && rc >= 0) {
		uint32_t piece = MIN(size - done, MEMORY_MAX);

		rc = read_piece(fd, addr + done, (uint8_t *)buf + done, piece);
		done += rc > 0 ? (uint32_t)rc : 0;
		if (rc >= 0 && (uint32_t)rc < piece)
			break;
	}
	if (own)
		rc = kcore_read(fd, addr, buf, size);
	else if (done)
		rc = (int)done;
	close(fd);
	return rc;
}

static int serve_list(struct cage_call *c)
{
	struct kallsyms *k;
	int rc = kallsyms_read(&k, c->fds[0], NULL);

	if (rc)
		return rc;
	kallsyms_put(k, &c->reply);
	kallsyms_free(k);
	return 0;
}

static int serve_memory(struct cage_call *c, const struct request *r)
{
	uint8_t bytes[MEMORY_MAX];
	int nr = kcore_read(c->fds[0], r->addr, bytes, (uint32_t)MIN(r->size, sizeof(bytes)));

	if (nr > 0)
		cage_put(&c->reply, bytes, (size_t)nr);
	return MIN(nr, 0);
}

static int serve(struct cage_call *c)
{
	struct request r;

	if (c->size != sizeof(r) || c->fds[0] < 0)
		return -EINVAL;
	memcpy(&r, c->request, sizeof(r));
	return r.size ? serve_memory(c, &r) : serve_list(c);
}

const struct cage_reader kernel_reader = {
	.kind = CAGE_KERNEL,
	.name = "proftop-kernel",
	.serve = serve,
	.memory_max = 1ULL << 30,
	.reply_max = 2ULL * KALLSYMS_TEXT_MAX,
};
