// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Read the memory of another process. Runs on: a helper.
 */
#include "symbols/process/remote_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/base/watch.h"

#define PAGE   4096U
#define ROUNDS 32U /* of reads that depend on each other */

int remote_open(int dir_fd)
{
	int fd = openat(dir_fd, "mem", O_RDONLY | O_NOCTTY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* /proc/PID/mem belongs to the memory that it was opened for: after an exec it has no byte. */
static int read_process(const struct remote *r, uint64_t addr, void *buf, size_t size)
{
	ssize_t nr = addr > INT64_MAX ? 0 : pread(r->fd, buf, size, (off_t)addr);

	if (addr > INT64_MAX || (nr < 0 && errno == EIO))
		return -EFAULT;
	if (nr < 0)
		return -errno;
	if (!nr && size)
		return -ESRCH;
	return (size_t)nr == size ? 0 : -EFAULT;
}

int remote_read(struct remote *r, uint64_t addr, void *buf, size_t size)
{
	int rc = watch_begin(r->watch);

	if (rc)
		return rc;
	if (r->nr_reads_max && r->nr_reads >= r->nr_reads_max)
		return -E2BIG;
	r->nr_reads++;
	rc = (r->read ? r->read : read_process)(r, addr, buf, size);
	watch_end(r->watch, rc ? 0 : size);
	return rc;
}

int remote_read_each(struct remote *r, const uint64_t *addrs, uint32_t nr, size_t size,
		     uint8_t *buf, bool *got)
{
	if (r->read_each) {
		if (r->nr_reads_max && r->nr_reads + nr > r->nr_reads_max)
			return -E2BIG;
		r->nr_reads += nr;
		return r->read_each(r, addrs, nr, size, buf, got);
	}
	for (uint32_t i = 0; i < nr; i++) {
		int rc = remote_read(r, addrs[i], buf + i * size, size);

		if (rc && rc != -EFAULT)
			return rc;
		got[i] = !rc;
	}
	return 0;
}

/* Do the open items. */
static int do_round(struct remote *r, uint32_t nr, int (*item)(void *of, uint32_t i), void *of,
		    bool *done)
{
	int rc = 0;

	for (uint32_t i = 0; i < nr && !rc; i++) {
		if (done[i])
			continue;
		r->missed = false;
		rc = item(of, i);
		done[i] = !r->missed;
	}
	return rc;
}

int remote_for_each(struct remote *r, uint32_t nr, int (*item)(void *of, uint32_t i), void *of)
{
	bool *done = calloc(MAX(nr, 1U), sizeof(*done));
	int rc = done ? 0 : -ENOMEM;

	/* The last round defers nothing: bytes that change all the time cannot make it endless. */
	for (uint32_t round = r->fetch ? 0 : ROUNDS - 1; round < ROUNDS && !rc; round++) {
		r->may_defer = round < ROUNDS - 1;
		rc = do_round(r, nr, item, of, done);
		if (!rc && r->may_defer) {
			if (!memchr(done, false, nr))
				break;
			rc = r->fetch(r);
		}
	}
	r->may_defer = r->missed = false;
	free(done);
	return rc;
}

int remote_read_u64(struct remote *r, uint64_t addr, uint64_t *value)
{
	return remote_read(r, addr, value, sizeof(*value));
}

int remote_read_u32(struct remote *r, uint64_t addr, uint32_t *value)
{
	return remote_read(r, addr, value, sizeof(*value));
}

int remote_read_u16(struct remote *r, uint64_t addr, uint16_t *value)
{
	return remote_read(r, addr, value, sizeof(*value));
}

ssize_t remote_read_string(struct remote *r, uint64_t addr, char *buf, size_t size)
{
	size_t done = 0;

	while (done < size - 1) {
		/* Not across a page: the next one may not be there. */
		size_t nr = MIN(size - 1 - done, PAGE - (addr + done) % PAGE);
		int rc = remote_read(r, addr + done, buf + done, nr);
		const char *end;

		if (rc)
			return rc;
		end = memchr(buf + done, '\0', nr);
		if (end)
			return end - buf;
		done += nr;
	}
	buf[done] = '\0';
	return (ssize_t)done;
}
