/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The only opener of files that others chose.
 *
 * Every file that another user or container can choose (mapped objects, debug
 * files, perf maps) is opened here and read, never mapped: O_PATH first, fstat
 * must say regular file within the size limit (and the expected inode where one
 * is known), only then reopened O_RDONLY|O_NONBLOCK|O_NOCTTY|O_CLOEXEC. A path
 * inside a process is resolved with openat2(RESOLVE_IN_ROOT |
 * RESOLVE_NO_MAGICLINKS) below /proc/PID/root, so that no symlink of a
 * container reaches the files of the host. See openat2(2), proc(5).
 *
 * Threads: helpers and loaders only, as a read from a file system may hang; of /proc any.
 */
#ifndef SYMBOLS_BASE_FOREIGN_H
#define SYMBOLS_BASE_FOREIGN_H

#include <sys/types.h>

#include "symbols/base/base.h"

#define FOREIGN_SIZE_MAX (2ULL << 30)

struct foreign_want {
	pid_t pid;	     /* process with the mapping or the root; 0: our root */
	uint64_t start, end; /* the mapping, for map_files; 0: unknown */
	const char *path;    /* as the process sees it; NULL: map_files only */
	const char *root;    /* with pid 0: a copy of the files of another machine; NULL: ours */
	uint64_t size_max;   /* 0: FOREIGN_SIZE_MAX */
	bool kernel;	     /* accept files of /proc and sparse ones of any size */
	uint32_t maj, min;   /* expected device; 0:0: unknown */
	uint64_t ino;	     /* expected inode; 0: unknown */
	uint64_t generation; /* of that inode; 0: unknown */
	/*
	 * Accept only a file that @uid or root made:
	 * owned by them, one link, no symbolic link. Else -EINVAL, -EMLINK, -EPERM.
	 */
	bool owned;
	bool linked; /* with @owned: it may have several links, and the folders may be links */
	uid_t uid;
};

struct foreign_file {
	int fd;
	uint64_t size;
	uint32_t maj, min;
	uint64_t ino;
	uint64_t generation; /* of an inode that was expected; 0: unknown */
	int64_t mtime_ns;
	bool same; /* device and inode are as expected */
};

/*
 * Open the file that a process has mapped: by map_files (the exact inode, also when
 * deleted), else the path inside the root of the process, else the path in ours. A
 * file with another inode or generation than expected is refused with -ESTALE. Returns 0, or
 * -errno with a message. The caller closes out->fd.
 */
int foreign_open(const struct foreign_want *want, struct foreign_file *out, struct err *e);

/*
 * Read @fd to its end, at most @max bytes, into malloc'ed memory, and append a NUL.
 * 0 or -errno.
 */
int foreign_read(int fd, size_t max, char **out, size_t *size);
/* Read a small file of /proc/PID, as foreign_read(). */
int foreign_read_proc(pid_t pid, const char *name, size_t max, char **out, size_t *size);
/*
 * Open the directory /proc/PID, which never shows another process when the pid is reused. fd or
 * -errno.
 */
int foreign_open_proc(pid_t pid);
/* Read a file below such a directory, as foreign_read(). -ESRCH: the process has ended. */
int foreign_read_at(int dir_fd, const char *name, size_t max, char **out, size_t *size);

/*
 * Read the file @name of a task, at most @size - 1 bytes, with a NUL behind. Return their number;
 * 0: none. @pid may be the number of any thread of the process.
 */
size_t foreign_read_task(char *buf, size_t size, pid_t pid, pid_t tid, const char *name);

#endif
