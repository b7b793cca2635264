// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Wake a thread that polls. Runs on: any thread.
 */
#include "symbols/base/wake.h"

#include <errno.h>
#include <sys/eventfd.h>

int wake_new(void)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	return fd < 0 ? -errno : fd;
}

void wake_send(int fd)
{
	int saved = errno;

	/* Fails otherwise only when the counter is full: then a wake-up is pending already. */
	while (eventfd_write(fd, 1) && errno == EINTR)
		;
	errno = saved;
}

bool wake_clear(int fd)
{
	eventfd_t nr;
	int rc;

	do
		rc = eventfd_read(fd, &nr);
	while (rc && errno == EINTR);
	return !rc;
}
