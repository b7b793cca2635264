/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Read the memory of another process (/proc/PID/mem, proc(5)), bounded.
 *
 * Bytes are foreign: they may change between two reads and every pointer in
 * them may be wild. A read may hang (userfaultfd, FUSE): helpers only.
 */
#ifndef SYMBOLS_PROCESS_REMOTE_MEMORY_H
#define SYMBOLS_PROCESS_REMOTE_MEMORY_H

#include <sys/types.h>

#include "symbols/base/base.h"

struct watch;

struct remote {
	pid_t pid; /* of a job that reads a JVM */
	int fd;	   /* of /proc/PID/mem, where @read is NULL; -1: not open */
	/*
	 * NULL: the memory of @fd; else a test's image, or the caller of a worker. 0 or -errno,
	 * all of @size or nothing.
	 */
	int (*read)(const struct remote *r, uint64_t addr, void *buf, size_t size);
	/* With it: many pieces at a time, as remote_read_each(). NULL: one after another. */
	int (*read_each)(const struct remote *r, const uint64_t *addrs, uint32_t nr, size_t size,
			 uint8_t *buf, bool *got);
	/*
	 * With it: read() may defer a read (@missed) until this fetches all deferred ones together.
	 * 0 or -errno.
	 */
	int (*fetch)(struct remote *r);
	bool may_defer, missed;
	struct watch *watch;   /* of the job that reads; may be NULL */
	uint64_t nr_reads;     /* so far */
	uint64_t nr_reads_max; /* -E2BIG beyond; 0: no limit */
};

/* Open the memory of the process of a folder, /proc/PID: a descriptor or -errno. */
int remote_open(int dir_fd);
/* Read @size bytes at @addr: 0, -EFAULT, -ESRCH, -EPERM, -ECANCELED, -E2BIG. */
int remote_read(struct remote *r, uint64_t addr, void *buf, size_t size);
#define REMOTE_PIECES_MAX 512U /* a call */
/*
 * Read @size bytes at each of @nr addresses, in order; @got says for each whether it was read. 0,
 * or an error as above except -EFAULT.
 */
int remote_read_each(struct remote *r, const uint64_t *addrs, uint32_t nr, size_t size,
		     uint8_t *buf, bool *got);
/*
 * Do @item for 0 to @nr - 1, and again after fetch() where a read was deferred: it has no result
 * then. 0, or the first error of @item or fetch().
 */
int remote_for_each(struct remote *r, uint32_t nr, int (*item)(void *of, uint32_t i), void *of);
/*
 * Begin a part of an item that does not depend on the parts before: its reads are deferred together
 * with theirs. @missed, at first false, remembers a deferred read of the parts before; after the
 * last part comes remote_end_parts().
 */
static inline void remote_begin_part(struct remote *r, bool *missed)
{
	*missed |= r->missed;
	r->missed = false;
}
/* Return whether a read of any part was deferred: then the item is not done. */
static inline bool remote_end_parts(struct remote *r, bool missed)
{
	return r->missed |= missed;
}
/* Read a pointer, a 32-bit or a 16-bit number. */
int remote_read_u64(struct remote *r, uint64_t addr, uint64_t *value);
int remote_read_u32(struct remote *r, uint64_t addr, uint32_t *value);
int remote_read_u16(struct remote *r, uint64_t addr, uint16_t *value);
/* Read a NUL-terminated string, cut at @size - 1 bytes. Its length or -errno. */
ssize_t remote_read_string(struct remote *r, uint64_t addr, char *buf, size_t size);

#endif
