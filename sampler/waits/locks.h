/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Mutexes that tasks wait for now, and their owners: from /proc and the memory of the process.
 *
 * Any thread that may hang: the memory of a process may be of a file system that does not respond.
 */
#ifndef SAMPLER_WAITS_LOCKS_H
#define SAMPLER_WAITS_LOCKS_H

#include <stdint.h>
#include <sys/types.h>

#define LOCKS_COMM    64
#define LOCKS_WAITERS 16

struct lock_task {
	pid_t pid, tid;
};

struct lock {
	pid_t pid;
	uint64_t address;
	uint32_t nr_waiters;
	pid_t waiters[LOCKS_WAITERS]; /* the first of them */
	char symbol[128];	      /* its variable; "": not known; clean text, as the next */
	char where[128];	      /* the mapping: "[heap]", "libfoo.so" */
	pid_t owner;		/* a task of @pid; 0: not known, the mutex is not one of glibc */
	char state;		/* of the owner, as in /proc/PID/stat: R, S, D ...; 0: not known */
	char wchan[LOCKS_COMM]; /* the kernel function that it sleeps in; "": none; foreign text */
};

/*
 * Find the mutexes that @tasks wait for at this moment: the one with most waiters first. Tasks that
 * do not wait for a mutex are ignored. Returns how many; the first one has its variable.
 */
uint32_t locks_find(const struct lock_task *tasks, uint32_t nr, struct lock *out, uint32_t max);

#endif
