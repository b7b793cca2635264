// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The kernel's tracepoints: the mounted tracefs, else a private mount that is in no mount namespace
 * and ends with its descriptor.
 *
 * Any thread. The only state is that mount, which is kept: later there may be no right to make one.
 */
#include "sampler/event/tracefs.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sampler/event/procstat.h"
#include "symbols/base/base.h"

static atomic_int kept = -1;

/* Open tracefs without a place in the file system (kernel 5.2, CAP_SYS_ADMIN). -1: refused. */
static int mount_detached(void)
{
	int config = (int)syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC), fd = -1;

	if (config < 0)
		return -1;
	if (!syscall(SYS_fsconfig, config, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		fd = (int)syscall(SYS_fsmount, config, FSMOUNT_CLOEXEC,
				  MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
					  MOUNT_ATTR_NOEXEC);
	close(config);
	return fd;
}

/* Return the mount, made at the first call that may; not the caller's to close. -1: refused. */
static int private_mount(void)
{
	int fd = atomic_load_explicit(&kept, memory_order_acquire), none = -1;

	if (fd >= 0)
		return fd;
	fd = mount_detached();
	if (fd < 0 || atomic_compare_exchange_strong(&kept, &none, fd))
		return fd;
	close(fd);
	return none;
}

static int open_events(int dir, const char *path)
{
	return openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* The kernel leaves tracefs empty while lockdown forbids reading the kernel's memory. */
static enum tracefs_state missing(const char *root)
{
	char level[20];

	procstat_lockdown(root, level, sizeof(level));
	return strcmp(level, "confidentiality") ? TRACEFS_MISSING : TRACEFS_LOCKED;
}

enum tracefs_state tracefs_open(const char *root, int *fd)
{
	static const char *const places[] = {
		"/sys/kernel/tracing/events",
		"/sys/kernel/debug/tracing/events",
	};
	char path[512];
	int mount;

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		snprintf(path, sizeof(path), "%s%s", root, places[i]);
		*fd = open_events(AT_FDCWD, path);
		if (*fd >= 0)
			return TRACEFS_MOUNTED;
		/* Mounted, but closed to us: say so rather than look elsewhere. */
		if (errno == EACCES)
			return TRACEFS_CLOSED;
	}
	assert(*fd < 0);
	mount = root[0] ? -1 : private_mount();
	if (mount >= 0)
		*fd = open_events(mount, "events");
	return *fd >= 0 ? TRACEFS_DETACHED : missing(root);
}
