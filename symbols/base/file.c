// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The only opener of files that others chose.
 *
 * Each path to a file is a candidate: opened O_PATH (which neither blocks nor
 * has side effects), checked, and only then opened for reading. The first
 * candidate of a wrong kind or size ends the search: another path would lead to
 * another file.
 *
 * Runs on: helpers and loaders.
 */
#include "symbols/base/foreign.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Of configfs, which linux/magic.h has not. */
#define CONFIGFS_MAGIC 0x62656570

#define DELETED	     " (deleted)"
#define DELETED_SIZE (sizeof(DELETED) - 1)

/*
 * Test for a file system with reads that run kernel code and sizes that are no file sizes.
 */
static bool is_pseudo(int fd)
{
	static const unsigned long magic[] = {
		PROC_SUPER_MAGIC,   SYSFS_MAGIC,	 DEBUGFS_MAGIC,	   TRACEFS_MAGIC,
		CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, SECURITYFS_MAGIC, BPF_FS_MAGIC,
		EFIVARFS_MAGIC,	    SELINUX_MAGIC,	 SMACK_MAGIC,	   CONFIGFS_MAGIC,
	};
	struct statfs fs;

	if (fstatfs(fd, &fs))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(magic); i++)
		if ((unsigned long)fs.f_type == magic[i])
			return true;
	return false;
}

/*
 * Test for a file system where stat(2) has another device (or inode) than the kernel's records.
 */
static bool is_translated(int fd, bool inode_too)
{
	struct statfs fs;

	if (fstatfs(fd, &fs))
		return false;
	if ((unsigned long)fs.f_type == OVERLAYFS_SUPER_MAGIC)
		return true;
	return !inode_too && (unsigned long)fs.f_type == BTRFS_SUPER_MAGIC;
}

/*
 * Check that @fd is the wanted file. @mapped: it was opened by map_files, so it is
 * the file of the mapping even where numbers are translated.
 */
static int check_identity(int fd, const struct stat *st, const struct foreign_want *want,
			  bool mapped, bool *same)
{
	bool same_dev = major(st->st_dev) == want->maj && minor(st->st_dev) == want->min;
	bool any_dev = !want->maj && !want->min;

	*same = want->ino && st->st_ino == want->ino && (same_dev || any_dev);
	/* A copy has another device and inode: only the build-id can identify it. */
	if (!want->ino || *same || (want->pid <= 0 && want->root))
		return 0;
	if (st->st_ino == want->ino && is_translated(fd, false))
		return 0;
	return mapped && is_translated(fd, true) ? 0 : -ESTALE;
}

/* Check that the file at the O_PATH descriptor @fd may be read. */
static int check_file(int fd, const struct foreign_want *want, bool mapped,
		      struct foreign_file *out)
{
	uint64_t size_max = want->size_max ? want->size_max : FOREIGN_SIZE_MAX;
	struct stat st;
	int code;

	if (fstat(fd, &st))
		return -errno;
	/* Identity first: size and kind of another file at this path do not matter. */
	code = check_identity(fd, &st, want, mapped, &out->same);
	if (code)
		return code;
	if (!S_ISREG(st.st_mode) || (!want->kernel && is_pseudo(fd)))
		return -EINVAL;
	if (want->owned && st.st_uid != want->uid && st.st_uid)
		return -EPERM;
	if (want->owned && !want->linked && st.st_nlink != 1)
		return -EMLINK;
	if ((uint64_t)st.st_size > size_max && !want->kernel)
		return -EFBIG;
	out->size = (uint64_t)st.st_size;
	out->maj = major(st.st_dev);
	out->min = minor(st.st_dev);
	out->ino = st.st_ino;
	out->mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec;
	return 0;
}

/*
 * Get the generation of an inode, as the kernel's records have it; 0: unknown. Of FUSE its server
 * would answer.
 */
static uint64_t generation_of(int fd)
{
	unsigned long version = 0; /* 32 bits are written */
	struct statfs fs;

	if (fstatfs(fd, &fs) || (unsigned long)fs.f_type == FUSE_SUPER_MAGIC ||
	    ioctl(fd, FS_IOC_GETVERSION, &version))
		return 0;
	return (uint32_t)version;
}

/* Reopen a checked O_PATH descriptor for reading; closes @path_fd. */
static int reopen(int path_fd, const struct foreign_want *want, bool mapped,
		  struct foreign_file *out)
{
	char link[64];
	int code = check_file(path_fd, want, mapped, out);

	if (!code) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", path_fd);
		out->fd = open(link, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		if (out->fd < 0)
			code = -errno;
	}
	close(path_fd);
	if (code)
		return code;
	out->generation = out->same ? generation_of(out->fd) : 0;
	if (!out->generation || !want->generation || out->generation == want->generation)
		return 0;
	close(out->fd);
	return -ESTALE;
}

static int open_mapped(const struct foreign_want *want, struct foreign_file *out)
{
	char link[96];
	int fd;

	snprintf(link, sizeof(link), "/proc/%d/map_files/%llx-%llx", want->pid,
		 (unsigned long long)want->start, (unsigned long long)want->end);
	fd = open(link, O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : reopen(fd, want, true, out);
}

/* Open @path below @root_fd, never outside it, as O_PATH. @flags: O_NOFOLLOW or 0. */
static int open_below(int root_fd, const char *path, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)(O_PATH | O_CLOEXEC | flags),
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	long fd;
	int tries = 8;

	do { /* EAGAIN: a rename raced with the walk, see openat2(2) */
		fd = syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	} while (fd < 0 && errno == EAGAIN && --tries);
	return fd < 0 ? -errno : (int)fd;
}

static int open_path(int root_fd, const char *path, const struct foreign_want *want,
		     struct foreign_file *out)
{
	int fd = open_below(root_fd, path, want->owned && !want->linked ? O_NOFOLLOW : 0);

	return fd < 0 ? fd : reopen(fd, want, false, out);
}

/*
 * Open the path as it is, else without the " (deleted)" of the kernel, which only
 * the inode can prove.
 */
static int open_named(int root_fd, const struct foreign_want *want, struct foreign_file *out)
{
	size_t size = strlen(want->path);
	int code = open_path(root_fd, want->path, want, out);
	char *path;
	int bare;

	if ((code != -ENOENT && code != -ESTALE) || !want->ino || size <= DELETED_SIZE ||
	    strcmp(want->path + size - DELETED_SIZE, DELETED))
		return code;
	path = strndup(want->path, size - DELETED_SIZE);
	if (!path)
		return -ENOMEM;
	bare = open_path(root_fd, path, want, out);
	free(path);
	/* Report that another file is there rather than that none is. */
	return bare == -ENOENT ? code : bare;
}

static int open_in_root(const char *root, const struct foreign_want *want, struct foreign_file *out)
{
	int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int code;

	if (root_fd < 0)
		return -errno;
	code = open_named(root_fd, want, out);
	close(root_fd);
	return code;
}

/* Test for errors that say nothing of the file: another path to it may work. */
static bool is_soft(int code)
{
	switch (code) {
	case -EPERM:
	case -EACCES:
	case -ENOENT:
	case -ESRCH:
	case -ESTALE:
	case -ENOTDIR:
		return true;
	default:
		return false;
	}
}

/* Try all paths in order; return the error of the last one, but keep -ESTALE. */
static int open_any(const struct foreign_want *want, struct foreign_file *out)
{
	int code = -ENOENT, next;
	char root[32];

	if (want->pid > 0 && want->start < want->end) {
		code = open_mapped(want, out);
		if (!is_soft(code))
			return code;
	}
	/* Relative names ("(unreachable)/x") have no meaning outside their mount. */
	if (!want->path || want->path[0] != '/')
		return code;
	if (want->pid > 0) {
		snprintf(root, sizeof(root), "/proc/%d/root", want->pid);
		next = open_in_root(root, want, out);
		code = code == -ESTALE && next ? code : next;
		/*
		 * The root of the process cannot be opened: use ours, but only with
		 * the inode as proof.
		 */
		if (!is_soft(code) || !want->ino)
			return code;
	}
	next = open_in_root(want->pid <= 0 && want->root ? want->root : "/", want, out);
	return code == -ESTALE && next ? code : next;
}

static const char *reason(int code)
{
	switch (code) {
	case -ESTALE:
		return "replaced since it was mapped";
	case -EINVAL:
		return "not a regular file";
	case -EFBIG:
		return "too large";
	default:
		return strerror(-code);
	}
}

int foreign_open(const struct foreign_want *want, struct foreign_file *out, struct err *e)
{
	int code;

	memset(out, 0, sizeof(*out));
	out->fd = -1;
	code = open_any(want, out);
	if (!code)
		return 0;
	out->fd = -1;
	return err_set(e, code, "cannot read %.400s of process %d: %s",
		       want->path ? want->path : "the mapped file", (int)want->pid, reason(code));
}

int foreign_open_proc(pid_t pid)
{
	char path[32];
	int fd;

	if (pid <= 0)
		return -ESRCH;
	snprintf(path, sizeof(path), "/proc/%d", pid);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd >= 0 ? fd : errno == ENOENT ? -ESRCH : -errno;
}

int foreign_read(int fd, size_t max, char **out, size_t *size)
{
	size_t room = MIN(max, (size_t)4096), used = 0;
	char *buf = malloc(room + 1), *larger;

	while (buf) {
		ssize_t n = read(fd, buf + used, room - used);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			int code = -errno;

			free(buf);
			return code;
		}
		used += (size_t)n;
		if (!n || used == max)
			break;
		if (used < room)
			continue;
		room = MIN(max, room * 2);
		larger = realloc(buf, room + 1);
		if (!larger)
			free(buf);
		buf = larger;
	}
	if (!buf)
		return -ENOMEM;
	buf[used] = '\0';
	*out = buf;
	*size = used;
	return 0;
}

int foreign_read_at(int dir_fd, const char *name, size_t max, char **out, size_t *size)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
	int code;

	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	code = foreign_read(fd, max, out, size);
	close(fd);
	return code;
}

int foreign_read_proc(pid_t pid, const char *name, size_t max, char **out, size_t *size)
{
	int dir_fd = foreign_open_proc(pid);
	int code;

	if (dir_fd < 0)
		return dir_fd;
	code = foreign_read_at(dir_fd, name, max, out, size);
	close(dir_fd);
	return code;
}

size_t foreign_read_task(char *buf, size_t size, pid_t pid, pid_t tid, const char *name)
{
	char path[64];
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)tid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	got = read(fd, buf, size - 1);
	close(fd);
	buf[MAX(got, 0)] = '\0';
	return (size_t)MAX(got, 0);
}
