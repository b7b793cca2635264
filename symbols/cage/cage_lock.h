/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Give up all rights of this process, for good.
 *
 * The server gives up capabilities and takes a user namespace if permitted. A worker then has
 * limits of memory, files and CPU time, no path (Landlock), and a list of allowed system calls
 * (seccomp): read, write, map private memory, take messages. To open a file fails; anything
 * else kills the worker. It can make no file; a file of a call ends at @file_max bytes.
 */
#ifndef SYMBOLS_CAGE_CAGE_LOCK_H
#define SYMBOLS_CAGE_CAGE_LOCK_H

#include <stdint.h>

#define CAGE_CPU_SECONDS 3600U /* a worker is replaced before */

/* The server: no terminal, no descriptors but @sock, no capabilities. 0 or -errno. */
int cage_lock_server(int sock);
/* A worker: all of the above, with only descriptor @sock. 0 or -errno: it must not read then. */
int cage_lock_worker(uint64_t memory_max, uint64_t file_max);
/* The server of readers of memory: no descriptors but @sock, the capabilities in @keep. */
int cage_lock_readers(int sock, uint64_t keep);
/*
 * A reader of memory: as a worker, but it may wait for its descriptors and read the memory of
 * processes (process_vm_readv(2), CAP_SYS_PTRACE). 0 or -errno: it must not read then.
 */
int cage_lock_reader(uint64_t memory_max);

#endif
