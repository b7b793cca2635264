/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The running kernel's memory, /proc/kcore: an ELF core file whose segments
 * are at the addresses that the kernel has now, wherever it was moved to at
 * boot (proc(5), "/proc/kcore"). Modules, BPF programs and what was patched
 * at run time are in it, too.
 *
 * Runs on: a helper.
 */
#ifndef SYMBOLS_KERNEL_KCORE_H
#define SYMBOLS_KERNEL_KCORE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Up to @size bytes at @addr, of the file @path. How many, or -ENOENT (this
 * kernel has none), -EACCES or -EPERM, -ENOEXEC (not such a file), -EFAULT
 * (nothing is at @addr), -EIO.
 */
int kcore_read(const char *path, uint64_t addr, void *buf, uint32_t size);

#endif
