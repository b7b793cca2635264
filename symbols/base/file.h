/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files that others chose, and the invoking user.
 *
 * The caller owes: paths as bytes; a limit for each file.
 *
 * The room does: opens O_PATH, then fstat(2), size, and openat2(2) below the root of the process;
 * checks the inode; gives up rights of the invoking user where sudo or file capabilities gave them.
 *
 * Not for: files that proftop itself chose and made.
 */
#ifndef SYMBOLS_BASE_FILE_H
#define SYMBOLS_BASE_FILE_H

#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbols/base/base.h"

struct __user_cap_data_struct;
struct err;

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

/* The kinds of mappings; a file is known by its inode, never by its path. */
enum object_kind {
	OBJECT_UNKNOWN, /* id 0: addresses outside all maps */
	OBJECT_KERNEL,	/* id 1: kernel and modules; offset = address */
	OBJECT_VDSO,	/* id 2: the vdso, one for all 64-bit processes */
	OBJECT_FILE,
	OBJECT_ANON,   /* code made at run time, heap, stack of one process; offset = address */
	OBJECT_SCRIPT, /* code of interpreters: all (lang_place()), or one file's */
	OBJECT_WAIT,   /* no code: the kinds of waits (wait_kind.c) */
};

struct object_identity {
	enum object_kind kind;
	uint32_t maj, min;
	uint64_t ino, ino_generation;
	uint64_t owner; /* OBJECT_ANON: id of the process incarnation */
	uint32_t layer; /* OBJECT_ANON: number of the code at a reused address (jit.h) */
	uint8_t build_id[20];
	uint8_t build_id_size;
};

#define UNTRUSTED_SIZE_MAX (2ULL << 30)

struct untrusted_want {
	pid_t pid;	     /* process with the mapping or the root; 0: our root */
	uint64_t start, end; /* the mapping, for map_files; 0: unknown */
	const char *path;    /* as the process sees it; NULL: map_files only */
	const char *root;    /* with pid 0: a copy of the files of another machine; NULL: ours */
	uint64_t size_max;   /* 0: UNTRUSTED_SIZE_MAX */
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

struct untrusted_file {
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
int untrusted_open(const struct untrusted_want *want, struct untrusted_file *out, struct err *e);
/*
 * Read @fd to its end, at most @max bytes, into malloc'ed memory, and append a NUL.
 * 0 or -errno.
 */
int untrusted_read(int fd, size_t max, char **out, size_t *size);
/* Read a small file of /proc/PID, as untrusted_read(). */
int untrusted_read_proc(pid_t pid, const char *name, size_t max, char **out, size_t *size);
/*
 * Open the directory /proc/PID, which never shows another process when the pid is reused. fd or
 * -errno.
 */
int untrusted_open_proc(pid_t pid);
/* Read a file below such a directory, as untrusted_read(). -ESRCH: the process has ended. */
int untrusted_read_at(int dir_fd, const char *name, size_t max, char **out, size_t *size);
/*
 * Read the file @name of a task, at most @size - 1 bytes, with a NUL behind. Return their number;
 * 0: none. @pid may be the number of any thread of the process.
 */
size_t untrusted_read_task(char *buf, size_t size, pid_t pid, pid_t tid, const char *name);

/*
 * The invoking user, and the rights of that user.
 *
 * proftop may have more rights than the invoking user at the keyboard: by sudo, doas or pkexec, or
 * by file capabilities. Files that the user names, and programs that the user starts, are used with
 * the rights of the invoking user alone: no capability, and behind sudo the user and groups of the
 * caller. See doc/SECURITY.md.
 */

#define INVOKER_GROUPS_MAX 64

/* The rights of a thread, to be restored. */
struct invoker_saved {
	uid_t uid;
	gid_t gid;
	gid_t groups[INVOKER_GROUPS_MAX];
	int nr_groups; /* -1: the user is not changed */
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];
	bool has_caps;
	int death_signal; /* a change of the user clears it */
};

/*
 * Find the invoking user: in the environment, /etc/passwd and /etc/group. Then forbid core files
 * and tracing of a process with capabilities, since its memory has that of others. Before any
 * thread.
 */
void invoker_init(void);
/* Return whether the invoking user is another user than the one of this process: it was started by
 * sudo.
 */
bool invoker_is_other(void);
/* Return whether the caller controls the environment of a process with capabilities (AT_SECURE). */
bool invoker_is_unprivileged(void);
/* Return the user of files that the invoking user makes: behind sudo not geteuid(). */
uid_t invoker_uid(void);
/* Return the user behind sudo; NULL: none, or unknown. Static. */
const char *invoker_name(void);
/* Return the home where that is not to be taken from the environment; NULL otherwise. Static. */
const char *invoker_home(void);
/*
 * Behind sudo, name a folder in the home of the caller for libdebuginfod, unless the environment
 * names one: HOME may be of root, where the caller cannot write. Before any thread.
 */
void invoker_set_cache(void);
/* Take that name back: for a command, which may have the rights of root; after fork(). */
void invoker_unset_cache(void);
/* Make the folder above the cache, ~/.cache, if the name is of invoker_set_cache(). */
void invoker_make_cache(void);
/*
 * Take the rights of the invoking user in this thread, and in threads it starts, until
 * invoker_end(). 0, or -EPERM with a message (@e may be NULL): not possible, no right is changed.
 */
int invoker_begin(struct invoker_saved *saved, struct err *e);
void invoker_end(const struct invoker_saved *saved);
/*
 * In a thread with these rights, for good: give up all capabilities, except of root the ones for
 * files. Without invoker_end().
 */
void invoker_stay(void);
/*
 * Take the rights of the invoking user in this process for good; after fork(): async-signal-safe.
 * False: not possible.
 */
bool invoker_become(void);

/* How the read of a file or pipe that takes long goes on. */
enum file_reading {
	FILE_READING_GO,
	FILE_READING_DRAIN,  /* until there is no more data at the moment */
	FILE_READING_STOP,   /* show the data so far */
	FILE_READING_CANCEL, /* -ECANCELED */
};

/*
 * Decide how to go on after @bytes of a pipe. 0: there are none so far, or records are searched in
 * a file, or in the bytes read from the pipe; then only FILE_READING_CANCEL ends that.
 */
typedef enum file_reading (*file_reading_fn)(uint64_t bytes);

#endif
