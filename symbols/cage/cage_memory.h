/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Processes that read the memory of others, forked by a server, which is forked before there are
 * threads.
 *
 * A reader keeps CAP_SYS_PTRACE, for process_vm_readv(2). All other rights are given up by
 * seccomp(2) and capabilities(7): it has no file but the ones that it was given, and the memory
 * that it shares with proftop.
 *
 * Threads: start before any thread; pids and CPU time any; a reader has one owner.
 */
#ifndef SYMBOLS_CAGE_CAGE_MEMORY_H
#define SYMBOLS_CAGE_CAGE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CAGE_MEMORY_START 256U /* bytes that a reader gets */
#define CAGE_MEMORY_FDS	  3U   /* descriptors */

/* In the new process: open and map all that is needed, lock it up, and read. It ends on return. */
typedef void (*cage_memory_fn)(const void *start, size_t size, const int fds[CAGE_MEMORY_FDS]);

struct cage_memory_reader {
	pid_t pid; /* 0: none */
	int pidfd;
	uint32_t slot;
};

/*
 * Start the server, if this process may read the memory of processes of others. Without that right
 * it is of no use: a reader could read, at most, the memory that any program of the user can.
 */
void cage_memory_start(cage_memory_fn run);
void cage_memory_stop(void);
bool cage_memory_is_on(void);
/* Return whether it should be on, and could not be started: then there must be no reader. */
bool cage_memory_is_refused(void);
/* Kill readers that were forked after their request had timed out. */
void cage_memory_tidy(void);
/* Fork a reader. 0 or -errno: -EAGAIN: too many; -ETIME: the server does not answer. */
int cage_memory_fork(struct cage_memory_reader *out, const void *start, size_t size,
		     const int fds[CAGE_MEMORY_FDS]);
/* Return whether it was killed, by itself or by others. */
bool cage_memory_is_dead(const struct cage_memory_reader *p);
/* Kill a reader. */
void cage_memory_end(struct cage_memory_reader *p);
/* Return whether @pid is the server, or a reader. Lock-free: for each sample. */
bool cage_memory_has(pid_t pid);
/* Return the CPU time of a reader so far. */
uint64_t cage_memory_reader_cpu_ns(const struct cage_memory_reader *p);
/* Return the CPU time of all readers so far. */
uint64_t cage_memory_cpu_ns(void);
/* In a reader: give up all but the reading of memory. 0 or -errno: it must not read then. */
int cage_memory_lock(uint64_t memory_max);
/* Map @size bytes for both; *@fd: their file, for fork; the caller closes it. NULL: no memory. */
void *cage_memory_share(size_t size, int *fd);

#endif
