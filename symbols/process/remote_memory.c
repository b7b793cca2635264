// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Read the memory of another process. Runs on: a helper.
 */
#include "symbols/process/remote_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "symbols/base/watch.h"

#define PAGE   4096U
#define ROUNDS 32U /* of reads that depend on each other */

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
	if (r->read_each) {
		if (r->nr_reads_max && r->nr_reads + nr > r->nr_reads_max)
			return -E2BIG;
		r->nr_reads += nr;
		return r->read_each(r, addrs, nr, size, buf, got);
	}
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
