// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The only opener of files that others chose, opened with the rights of the invoking user.
 *
 * Each path to a file is a candidate: opened O_PATH (which neither blocks nor has side effects),
 * checked, and only then opened for reading. The first candidate of a wrong kind or size ends the
 * search: another path would lead to another file.
 *
 * Runs on: helpers and loaders.
 */
#include "symbols/base/base.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/types.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "symbols/base/file.h"

/* Of configfs, which <linux/magic.h> has not. */
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
static int check_identity(int fd, const struct stat *st, const struct untrusted_want *want,
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
static int check_file(int fd, const struct untrusted_want *want, bool mapped,
		      struct untrusted_file *out)
{
	uint64_t size_max = want->size_max ? want->size_max : UNTRUSTED_SIZE_MAX;
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
static int reopen(int path_fd, const struct untrusted_want *want, bool mapped,
		  struct untrusted_file *out)
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

static int open_mapped(const struct untrusted_want *want, struct untrusted_file *out)
{
	char link[96];
	int fd;

	assert(want->pid > 0 && want->start < want->end);
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

static int open_path(int root_fd, const char *path, const struct untrusted_want *want,
		     struct untrusted_file *out)
{
	int fd = open_below(root_fd, path, want->owned && !want->linked ? O_NOFOLLOW : 0);

	return fd < 0 ? fd : reopen(fd, want, false, out);
}

/*
 * Open the path as it is, else without the " (deleted)" of the kernel, which only
 * the inode can prove.
 */
static int open_named(int root_fd, const struct untrusted_want *want, struct untrusted_file *out)
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

static int open_in_root(const char *root, const struct untrusted_want *want,
			struct untrusted_file *out)
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
static int open_any(const struct untrusted_want *want, struct untrusted_file *out)
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

int untrusted_open(const struct untrusted_want *want, struct untrusted_file *out, struct err *e)
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
	assert(code < 0);
}

int untrusted_open_proc(pid_t pid)
{
	char path[32];
	int fd;

	if (pid <= 0)
		return -ESRCH;
	snprintf(path, sizeof(path), "/proc/%d", pid);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd >= 0 ? fd : errno == ENOENT ? -ESRCH : -errno;
}

int untrusted_read(int fd, size_t max, char **out, size_t *size)
{
	size_t room = MIN(max, (size_t)4096), used = 0;
	char *buf = malloc(room + 1), *larger;

	assert(fd >= 0 && max);
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

int untrusted_read_at(int dir_fd, const char *name, size_t max, char **out, size_t *size)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
	int code;

	assert(name && out && size);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	code = untrusted_read(fd, max, out, size);
	close(fd);
	return code;
}

int untrusted_read_proc(pid_t pid, const char *name, size_t max, char **out, size_t *size)
{
	int dir_fd = untrusted_open_proc(pid);
	int code;

	assert(name && out && size);
	if (dir_fd < 0)
		return dir_fd;
	code = untrusted_read_at(dir_fd, name, max, out, size);
	close(dir_fd);
	return code;
}

size_t untrusted_read_task(char *buf, size_t size, pid_t pid, pid_t tid, const char *name)
{
	char path[64];
	ssize_t got;
	int fd;

	assert(size);
	assert(pid > 0 && tid > 0);
	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)tid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	got = read(fd, buf, size - 1);
	close(fd);
	buf[MAX(got, 0)] = '\0';
	return (size_t)MAX(got, 0);
}

/*
 * The invoking user.
 *
 * Linux keeps users, groups and capabilities for each thread; the functions of the C library change
 * them in all threads, so system calls are used here.
 */

#define NAME_SIZE 64
#define HOME_SIZE 1024
#define NOBODY	  65534u
#define CACHE	  "DEBUGINFOD_CACHE_PATH"

static struct {
	bool other;
	uid_t uid;
	gid_t gid;
	gid_t groups[INVOKER_GROUPS_MAX];
	int nr_groups;
	char name[NAME_SIZE], home[HOME_SIZE];
	bool hidden;	/* not dumpable */
	bool has_cache; /* the variable CACHE is ours */
} invoker;

/* Parse an id; false: not a number. */
static bool id_of(const char *text, unsigned int *id)
{
	unsigned long n;
	char *end;

	if (!text || *text < '0' || *text > '9')
		return false;
	errno = 0;
	n = strtoul(text, &end, 10);
	if (*end || errno || n >= (unsigned int)-1)
		return false;
	*id = (unsigned int)n;
	return true;
}

/* Copy the entry of /etc/passwd with this name, or with invoker.uid when @name is NULL. */
static bool find_user(const char *name)
{
	FILE *f = fopen("/etc/passwd", "re");
	struct passwd *pw = NULL;

	while (f && (pw = fgetpwent(f)) &&
	       (name ? strcmp(pw->pw_name, name) != 0 : pw->pw_uid != invoker.uid))
		;
	if (pw) {
		invoker.uid = pw->pw_uid;
		invoker.gid = pw->pw_gid;
		snprintf(invoker.name, sizeof(invoker.name), "%s", pw->pw_name);
		if (strlen(pw->pw_dir) < sizeof(invoker.home))
			snprintf(invoker.home, sizeof(invoker.home), "%s", pw->pw_dir);
	}
	if (f)
		fclose(f);
	return pw;
}

static bool is_member(const struct group *g, const char *name)
{
	for (char **member = g->gr_mem; *member; member++)
		if (!strcmp(*member, name))
			return true;
	return false;
}

/* Read the groups of the invoking user: from /etc/group only, as names of users. */
static void find_groups(void)
{
	FILE *f = fopen("/etc/group", "re");
	struct group *g;

	assert(invoker.nr_groups < INVOKER_GROUPS_MAX);
	invoker.groups[invoker.nr_groups++] = invoker.gid;
	while (f && invoker.name[0] && invoker.nr_groups < INVOKER_GROUPS_MAX && (g = fgetgrent(f)))
		if (g->gr_gid != invoker.gid && is_member(g, invoker.name))
			invoker.groups[invoker.nr_groups++] = g->gr_gid;
	if (f)
		fclose(f);
}

/* Find the caller of sudo, pkexec or doas, which set these variables; root alone can forge them.
 */
static bool find_caller(void)
{
	const char *doas = getenv("DOAS_USER");
	unsigned int gid;

	if (id_of(getenv("SUDO_UID"), &invoker.uid) || id_of(getenv("PKEXEC_UID"), &invoker.uid)) {
		invoker.gid = id_of(getenv("SUDO_GID"), &gid) ? gid : NOBODY;
		find_user(NULL);
		return invoker.uid;
	}
	return doas && find_user(doas) && invoker.uid;
}

static bool get_caps(struct __user_cap_data_struct *caps)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };

	return !syscall(SYS_capget, &header, caps);
}

static bool set_caps(const struct __user_cap_data_struct *caps)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };

	return !syscall(SYS_capset, &header, caps);
}

/* Forbid core files and tracing. A change of the user sets this back to fs.suid_dumpable. */
static void hide(void)
{
	if (invoker.hidden)
		prctl(PR_SET_DUMPABLE, 0);
}

void invoker_init(void)
{
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];

	if (!getuid() && !geteuid() && !getauxval(AT_SECURE)) {
		invoker.other = find_caller();
		if (invoker.other)
			find_groups();
	} else if (getauxval(AT_SECURE)) {
		invoker.uid = getuid();
		find_user(NULL);
	}
	/* Sanitizers trace their process to find leaks. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	invoker.hidden = get_caps(caps) && (caps[0].permitted | caps[1].permitted);
#else
	(void)caps;
#endif
	hide();
}

bool invoker_is_other(void)
{
	return invoker.other;
}

bool invoker_is_unprivileged(void)
{
	return getauxval(AT_SECURE);
}

uid_t invoker_uid(void)
{
	return invoker.other ? invoker.uid : geteuid();
}

const char *invoker_name(void)
{
	return invoker.other && invoker.name[0] ? invoker.name : NULL;
}

const char *invoker_home(void)
{
	return invoker.home[0] == '/' ? invoker.home : NULL;
}

void invoker_set_cache(void)
{
	char path[HOME_SIZE + sizeof("/.cache/debuginfod_client")];

	if (!invoker.other || !invoker_home() || getenv(CACHE))
		return;
	snprintf(path, sizeof(path), "%s/.cache/debuginfod_client", invoker.home);
	invoker.has_cache = !setenv(CACHE, path, 1);
}

void invoker_unset_cache(void)
{
	if (invoker.has_cache)
		unsetenv(CACHE);
}

void invoker_make_cache(void)
{
	char path[HOME_SIZE + sizeof("/.cache")];

	if (!invoker.has_cache)
		return;
	snprintf(path, sizeof(path), "%s/.cache", invoker.home);
	mkdir(path, 0700);
}

/* Change user and groups of this thread's file accesses. False: not possible, or only in part. */
static bool set_user(uid_t uid, gid_t gid, const gid_t *groups, int nr_groups)
{
	bool done = !syscall(SYS_setgroups, nr_groups, groups);

	syscall(SYS_setfsgid, gid);
	syscall(SYS_setfsuid, uid);
	hide();
	/* Both return the id before, and no error; -1 is no id: nothing is changed. */
	return done && (gid_t)syscall(SYS_setfsgid, -1) == gid &&
	       (uid_t)syscall(SYS_setfsuid, -1) == uid;
}

/* Take the user and groups of the caller of sudo. */
static bool take_user(struct invoker_saved *saved)
{
	prctl(PR_GET_PDEATHSIG, &saved->death_signal);
	saved->uid = geteuid();
	saved->gid = getegid();
	saved->nr_groups = getgroups(INVOKER_GROUPS_MAX, saved->groups);
	return saved->nr_groups >= 0 &&
	       set_user(invoker.uid, invoker.gid, invoker.groups, invoker.nr_groups);
}

/* Remove the effective capabilities. Root itself has the rights of root. */
static bool take_caps(const struct invoker_saved *saved)
{
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3];

	if (!invoker.other && !geteuid())
		return true;
	if (!saved->has_caps || !(saved->caps[0].effective | saved->caps[1].effective))
		return saved->has_caps;
	memcpy(none, saved->caps, sizeof(none));
	none[0].effective = none[1].effective = 0;
	return set_caps(none);
}

static int refuse(struct err *e)
{
	return e ? err_set(e, -EPERM,
			   "cannot take the rights of the invoking user %u: %s\n"
			   "  files are read and written with these rights; CAP_SETUID and "
			   "CAP_SETGID are needed\n"
			   "  'env -u SUDO_UID proftop' has the rights of root",
			   invoker.uid, strerror(EPERM))
		 : -EPERM;
}

int invoker_begin(struct invoker_saved *saved, struct err *e)
{
	*saved = (struct invoker_saved){ .nr_groups = -1 };
	saved->has_caps = get_caps(saved->caps);
	if ((!invoker.other || take_user(saved)) && take_caps(saved))
		return 0;
	invoker_end(saved);
	return refuse(e);
}

void invoker_end(const struct invoker_saved *saved)
{
	if (saved->has_caps)
		set_caps(saved->caps);
	if (!invoker.other || saved->nr_groups < 0)
		return;
	set_user(saved->uid, saved->gid, saved->groups, saved->nr_groups);
	/* A change of the user removes the capabilities for files. */
	if (saved->has_caps)
		set_caps(saved->caps);
	if (saved->death_signal)
		prctl(PR_SET_PDEATHSIG, saved->death_signal);
}

void invoker_stay(void)
{
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	/* Root itself reads and writes in the folders of others. */
	if (!invoker.other && !geteuid() && get_caps(caps)) {
		caps[0].effective &= 1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH;
		caps[0].permitted = caps[0].effective;
		caps[0].inheritable = 0;
		caps[1] = (struct __user_cap_data_struct){ 0 };
	}
	set_caps(caps);
}

bool invoker_become(void)
{
	static const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3];

	if (invoker.other && (syscall(SYS_setgroups, invoker.nr_groups, invoker.groups) ||
			      syscall(SYS_setresgid, invoker.gid, invoker.gid, invoker.gid) ||
			      syscall(SYS_setresuid, invoker.uid, invoker.uid, invoker.uid)))
		return false;
	hide();
	return (!invoker.other && !geteuid()) || set_caps(none);
}
