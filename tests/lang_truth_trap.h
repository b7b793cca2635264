/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Loaded into an interpreter by LD_PRELOAD: at each SIGTRAP of a sample
 * (perf_event_attr.sigtrap) truth_walk() writes the chain to the file TRUTH_FILE.
 * Shares no offset with proftop. Include once; after #define TRUTH_START_LATER truth_start() is to
 * be called.
 */
#ifndef TESTS_LANG_TRUTH_TRAP_H
#define TESTS_LANG_TRUTH_TRAP_H

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "tests/lang_truth.h"

#define TRUTH_TEXT_MAX 512 /* longer texts are cut */

static struct truth *truth;

/* To be written: puts all frames of the calling thread, innermost first. */
static void truth_walk(struct truth_entry *e, const ucontext_t *context);

struct truth_name {
	uint64_t hash;
	size_t size;
};

/* Add a part to a name or path. */
static void truth_text(struct truth_name *n, const char *text, size_t size)
{
	for (size_t i = 0; i < size && n->size < TRUTH_TEXT_MAX; i++, n->size++)
		n->hash = (n->hash ^ (uint8_t)text[i]) * TRUTH_PRIME;
}

/* Put a frame: SCOPE::NAME, or NAME. @line: of the statement; -1: it has none. */
static void truth_put(struct truth_entry *e, uint32_t first_line, const char *scope,
		      size_t scope_size, const char *name, size_t name_size, const char *file,
		      size_t file_size, int line)
{
	struct truth_name n = { TRUTH_SEED ^ first_line, 0 }, f = { TRUTH_SEED, 0 };

	if (e->nr == TRUTH_FRAMES) {
		e->cut = 1;
		return;
	}
	truth_text(&n, scope, scope_size);
	if (scope_size)
		truth_text(&n, "::", 2);
	truth_text(&n, name, name_size);
	truth_text(&f, file, file_size);
	e->hash[e->nr] = truth_join(n.hash, f.hash);
	e->instr[e->nr++] = line;
}

static void truth_trap(int sig, siginfo_t *info, void *context)
{
	uint32_t at = atomic_fetch_add(&truth->nr, 1);
	struct truth_entry *e;
	struct timespec ts;

	(void)sig;
	(void)info;
	if (at >= TRUTH_ENTRIES)
		return;
	e = &truth->entries[at];
	clock_gettime(CLOCK_MONOTONIC, &ts);
	e->tid = (int)syscall(SYS_gettid);
	e->pc = (uint64_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	e->sp = (uint64_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RSP];
	truth_walk(e, context);
	atomic_store(&e->time_ns, (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec);
}

#ifndef TRUTH_START_LATER
__attribute__((constructor))
#endif
static void
truth_start(void)
{
	struct sigaction sa = { .sa_sigaction = truth_trap, .sa_flags = SA_SIGINFO | SA_RESTART };
	const char *path = getenv("TRUTH_FILE");
	int fd = path ? open(path, O_RDWR) : -1;

	if (fd < 0)
		return;
	truth = mmap(NULL, sizeof(*truth), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (truth == MAP_FAILED || sigaction(SIGTRAP, &sa, NULL))
		_exit(99);
	close(fd);
}

#endif
