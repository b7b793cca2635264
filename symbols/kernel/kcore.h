/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The memory of the running kernel, /proc/kcore: an ELF core file with segments at the addresses of
 * the kernel since boot (proc(5), "/proc/kcore"). It includes modules, BPF programs and code
 * patched at run time.
 *
 * Runs on: a helper; for copies in the cage (kernel_cage.h).
 */
#ifndef SYMBOLS_KERNEL_KCORE_H
#define SYMBOLS_KERNEL_KCORE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Read up to @size bytes at @addr from the file @fd. Returns the number, or -EPERM, -ENOEXEC (not
 * such a file), -EFAULT (nothing at @addr), -EIO.
 */
int kcore_read(int fd, uint64_t addr, void *buf, uint32_t size);

#endif
