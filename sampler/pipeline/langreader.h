/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A reader: reads the frames of interpreters at each sample of one CPU.
 *
 * It is pinned to the CPU, has a real-time priority where that is allowed, and
 * is woken by each sample: so it runs in the return from the sampling
 * interrupt, before the sampled thread has gone on by one instruction. Reading
 * another process may hang for good (userfaultfd, FUSE), so it is never done on
 * a sampler thread: a hanging reader is left behind with its memory, and its
 * process is barred. It frees itself when the read returns.
 *
 * Threads: langreader_start(), langreader_stop(), langreader_hangs() by the builder; the
 * feed by the sampler thread of the CPU.
 */
#ifndef SAMPLER_PIPELINE_LANGREADER_H
#define SAMPLER_PIPELINE_LANGREADER_H

#include "sampler/event/counters.h"
#include "sampler/pipeline/feed.h"
#include "symbols/lang/chain.h"
#include "symbols/process/maps.h"

/* A read that takes longer hangs. */
#define LANGREADER_HANG_NS 50000000ULL
#define LANGREADER_BARRED  64U

/* Shared by all readers and their owner, of which the last user frees it with what it points to. */
struct langreader_shared {
	struct maps *maps;
	struct codes *codes;
	atomic_uint users;	       /* 1: the owner */
	void (*free_used)(void *used); /* set by the owner before its put */
	void *used;
	pid_t own_pid;
	uint32_t languages; /* to be read: lang_bit() */
	atomic_uint nr_barred;
	atomic_uint barred[LANGREADER_BARRED]; /* incarnations that are not read; published by nr */
};

struct langreader;

/*
 * For the CPU with @index. @kick_fd: an eventfd of its sampler thread, which does not look at the
 * ring during the read: written to when that fills.
 */
int langreader_start(struct langreader **out, struct langreader_shared *shared,
		     struct counters *counters, uint32_t index, int kick_fd, struct err *e);
/* End it, join it, free it; one that hangs is left behind, and its feed with it. */
void langreader_stop(struct langreader *r);
/* Leave a hanging reader behind: it frees itself at its end. */
void langreader_leave(struct langreader *r);
struct feed *langreader_feed(struct langreader *r);
/* Since when has it been reading, if that is longer ago than LANGREADER_HANG_NS? Which process? */
bool langreader_hangs(const struct langreader *r, uint64_t now_ns, pid_t *pid, uint32_t *process);
/* Return whether a real-time priority was refused. Then samples may be read late, and are guesses.
 */
bool langreader_is_slow(const struct langreader *r);
/* End the use of @shared; the last user calls free_used(), on any thread, and frees @shared. */
void langreader_put(struct langreader_shared *shared);
/* Read no process of this incarnation again. */
void langreader_bar(struct langreader_shared *shared, uint32_t process);

#endif
