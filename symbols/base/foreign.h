/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The only opener of other people's files.
 *
 * Every file that another user or container can choose (mapped objects, debug
 * files, perf maps) is opened here and read, never mapped: O_PATH first, fstat
 * must say regular file within the size limit (and the expected inode where one
 * is known), only then reopened O_RDONLY|O_NONBLOCK|O_NOCTTY|O_CLOEXEC. A path
 * inside a process is resolved with openat2(RESOLVE_IN_ROOT |
 * RESOLVE_NO_MAGICLINKS) below /proc/PID/root, so that no symlink of a
 * container reaches the host's files. See openat2(2), proc(5).
 *
 * Runs on: helpers and loaders. A file system may hang here; never call it elsewhere.
 */
#ifndef SYMBOLS_BASE_FOREIGN_H
#define SYMBOLS_BASE_FOREIGN_H

#include <sys/types.h>

#include "symbols/base/base.h"

#define FOREIGN_SIZE_MAX (2ULL << 30)

struct foreign_want {
	pid_t pid;	     /* whose mapping or root; 0: our own root */
	uint64_t start, end; /* the mapping, for map_files; 0: unknown */
	const char *path;    /* as the process sees it; NULL: map_files only */
	const char *root;    /* with pid 0: a copy of another machine's files; NULL: ours */
	uint64_t size_max;   /* 0: FOREIGN_SIZE_MAX */
	uint32_t maj, min;   /* expected device; 0:0: unknown */
	uint64_t ino;	     /* expected inode; 0: unknown */
	/*
	 * Trust only what @uid or root alone could have put there: no symbolic
	 * link, one name only, theirs; else -EINVAL, -EMLINK, -EPERM.
	 */
	bool owned;
	uid_t uid;
};

struct foreign_file {
	int fd;
	uint64_t size;
	uint32_t maj, min;
	uint64_t ino;
	int64_t mtime_ns;
	bool same; /* device and inode are the expected ones */
};

/*
 * Open what the process has mapped: map_files (the exact inode, survives
 * deletion), else the path inside the process's root, else the path here. A
 * file whose inode differs from the expected one is refused with -ESTALE.
 * Returns 0 or -errno with a sentence; the caller closes out->fd.
 */
int foreign_open(const struct foreign_want *want, struct foreign_file *out, struct err *e);

/* Read @fd to its end or to @max bytes into new memory, NUL added. 0 or -errno. */
int foreign_read(int fd, size_t max, char **out, size_t *size);
/* Read a whole small file of /proc into memory (at most @max bytes, NUL added). Caller frees. */
int foreign_read_proc(pid_t pid, const char *name, size_t max, char **out, size_t *size);
/* /proc/PID as a directory: stays that of one process, even if its pid is used anew. fd or -errno.
 */
int foreign_open_proc(pid_t pid);
/* The same as foreign_read_proc(), below such a directory. -ESRCH: the process is gone. */
int foreign_read_at(int dir_fd, const char *name, size_t max, char **out, size_t *size);

#endif
