// SPDX-License-Identifier: GPL-2.0-or-later
/* Files in memory between proftop and the workers of the cage. */
#include "symbols/cage/cage_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbols/base/base.h"

#define SIZE_SEALS  (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW)
#define NOEXEC_SEAL 8U /* MFD_NOEXEC_SEAL of Linux 6.3, which a sysctl may require */

int cage_file(void)
{
	const unsigned int flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = memfd_create("proftop", flags | NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("proftop", flags);
	return fd < 0 ? -errno : fd;
}

int cage_wrap(const void *bytes, size_t size)
{
	int fd = cage_file();

	if (fd < 0)
		return fd;
	if (fd_write_all(fd, bytes, size)) {
		close(fd);
		return -ENOMEM;
	}
	cage_fix_size(fd);
	return fd;
}

void cage_fix_size(int fd)
{
	fcntl(fd, F_ADD_SEALS, SIZE_SEALS);
}

size_t cage_file_copied(int fd)
{
	int seals = fd < 0 ? -1 : fcntl(fd, F_GET_SEALS);
	struct stat st;

	return seals >= 0 && seals & F_SEAL_GROW && !fstat(fd, &st) ? (size_t)st.st_blocks * 512
								    : 0;
}

bool cage_file_seal(int fd, size_t size)
{
	struct stat st;

	return !fcntl(fd, F_ADD_SEALS, SIZE_SEALS | F_SEAL_WRITE) && !fstat(fd, &st) &&
	       (uint64_t)st.st_size == size && lseek(fd, 0, SEEK_HOLE) == st.st_size;
}
