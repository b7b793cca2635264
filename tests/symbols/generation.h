/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The generation of an inode: its number may belong to another file later. */
#ifndef TESTS_SYMBOLS_GENERATION_H
#define TESTS_SYMBOLS_GENERATION_H

#include <linux/fs.h>
#include <stdint.h>
#include <sys/ioctl.h>

/* Return the generation of the inode of @fd; 0: its file system reports none. */
static inline uint64_t generation_of(int fd)
{
	unsigned long version = 0;

	return ioctl(fd, FS_IOC_GETVERSION, &version) ? 0 : (uint32_t)version;
}

#endif
