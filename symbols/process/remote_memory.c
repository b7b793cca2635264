// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Read the memory of another process. Runs on: a helper.
 */
#include "symbols/process/remote_memory.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "symbols/base/watch.h"

#define PAGE 4096U

static int read_process(const struct remote *r, uint64_t addr, void *buf, size_t size)
{
	struct iovec local = { .iov_base = buf, .iov_len = size };
	struct iovec there = { .iov_base = (void *)(uintptr_t)addr, .iov_len = size };
	ssize_t nr = process_vm_readv(r->pid, &local, 1, &there, 1, 0);

	if (nr < 0)
		return -errno;
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

/* Read pieces in one call; returns how many were read whole before one that was not, or -errno. */
static int read_pieces(struct remote *r, const uint64_t *addrs, uint32_t nr, size_t size,
		       uint8_t *buf)
{
	struct iovec local = { .iov_base = buf, .iov_len = nr * size };
	struct iovec there[REMOTE_PIECES_MAX];
	ssize_t got;
	int rc = watch_begin(r->watch);

	if (rc)
		return rc;
	if (r->nr_reads_max && r->nr_reads + nr > r->nr_reads_max)
		return -E2BIG;
	r->nr_reads += nr;
	for (uint32_t i = 0; i < nr; i++)
		there[i] = (struct iovec){ (void *)(uintptr_t)addrs[i], size };
	got = process_vm_readv(r->pid, &local, 1, there, nr, 0);
	rc = got < 0 ? -errno : (int)((size_t)got / size);
	watch_end(r->watch, got < 0 ? 0 : (size_t)got);
	return rc == -EFAULT ? 0 : rc;
}

int remote_read_each(struct remote *r, const uint64_t *addrs, uint32_t nr, size_t size,
		     uint8_t *buf, bool *got)
{
	for (uint32_t i = 0; i < nr;) {
		uint32_t part = MIN(nr - i, REMOTE_PIECES_MAX);
		int rc;

		if (r->read) {
			rc = remote_read(r, addrs[i], buf + i * size, size);
			if (rc && rc != -EFAULT)
				return rc;
			rc = !rc;
			part = 1;
		} else {
			rc = read_pieces(r, addrs + i, part, size, buf + i * size);
			if (rc < 0)
				return rc;
		}
		memset(got + i, true, (size_t)rc);
		i += (uint32_t)rc;
		/* The next piece cannot be read. */
		if ((uint32_t)rc < part)
			got[i++] = false;
	}
	return 0;
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
