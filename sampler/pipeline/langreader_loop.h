/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The loop of a reader, see langreader.h.
 *
 * Threads: one, but for the state.
 */
#ifndef SAMPLER_PIPELINE_LANGREADER_LOOP_H
#define SAMPLER_PIPELINE_LANGREADER_LOOP_H

#include <sys/uio.h>

#include "sampler/ring/ring.h"
#include "sampler/perf/ring.h"
#include "sampler/pipeline/preemption.h"
#include "sampler/pipeline/reader_share.h"
#include "sampler/pipeline/ring_copy.h"
#include "symbols/script/script.h"

#define LANGREADER_PAGE 4096U

enum langreader_state {
	LANGREADER_RUNS,
	LANGREADER_LEFT,  /* by its owner: it frees itself */
	LANGREADER_ENDED, /* its owner frees it */
};

/* The reader's CPU (-1: it reads on request), and the form of its samples. */
struct langreader_start {
	int cpu;
	struct record_layout layout;
	uint64_t ring_size;
};

struct langreader_loop {
	struct reader_share *share;
	struct ring ring; /* data alone: head and tail are not used */
	int cpu;
	struct record_layout layout;
	uint64_t at; /* position in the ring, all before it was looked at */
	int epoll_fd, stop_fd, kick_fd;
	atomic_int state;	      /* enum langreader_state; of a thread */
	bool slow;		      /* no real-time priority */
	struct preemption preemption; /* while slow */
	bool looked;		      /* at it, since the last wake-up */
	pid_t read_pid;		      /* the process that lang.memory reads */
	uint64_t find_ns;	      /* no thread is looked for until then */
	uint64_t kick_ns;	      /* no facts are requested until then */
	struct feed_writer feed;
	struct share_found found;
	struct lang_chain chain;
	struct iovec ours[LANG_READ_MAX], theirs[LANG_READ_MAX];
	uint8_t gap[LANGREADER_PAGE]; /* between two pieces */
	struct ring_copy record;      /* a read may outlive the ring */
	struct lang_reader lang;
};

/*
 * Make a reader of @ring, woken by @data_fd, until @stop_fd (-1: it is killed) is readable. It
 * writes to @kick_fd, an eventfd, when the sampler thread should look; one that reads on request is
 * woken by @kick_fd. All borrowed. 0 or -errno.
 */
int langreader_loop_new(struct langreader_loop **out, const struct langreader_start *start,
			struct reader_share *share, const struct ring *ring, int data_fd,
			int kick_fd, int stop_fd);
void langreader_loop_free(struct langreader_loop *r);
/* Have the calling thread run on the CPU of the sampled thread, before that continues. */
void langreader_loop_go_first(struct langreader_loop *r);
/* Read until the end. */
void langreader_loop_run(struct langreader_loop *r);

#endif
