/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory that a reader and its owner both have: frames and questions of the reader, and facts that
 * it needs, about processes and events.
 *
 * The owner reads no fact back, and trusts no other byte in it. Facts are set when a sample needs
 * them: a reader leaves out the samples of an event or process until then.
 *
 * Threads: facts are set by the sampler thread of the CPU; ids of threads are answered by the
 * builder. Each entry has a sequence number, odd while it is written (seqlock).
 */
#ifndef SAMPLER_PIPELINE_READER_SHARE_H
#define SAMPLER_PIPELINE_READER_SHARE_H

#include <stdatomic.h>
#include <sys/types.h>

#include "sampler/pipeline/feed.h"
#include "sampler/pipeline/reading.h"

#define SHARE_PROCESSES 1024U /* powers of two */
#define SHARE_EVENTS	4096U
#define SHARE_THREADS	1024U
#define SHARE_WORDS	((sizeof(struct lang_process) + 7) / 8)

struct share_process {
	atomic_uint sequence;
	atomic_int pid;
	atomic_uint process;		     /* incarnation */
	atomic_bool reads;		     /* it is an interpreter to be read */
	_Atomic uint64_t words[SHARE_WORDS]; /* struct lang_process */
};

/* The id of a thread in the PID namespace of its process: a question, then its answer. */
struct share_thread {
	_Atomic uint64_t question, answered; /* thread_key(); 0: none. Release, acquire */
	atomic_int inner;
};

enum share_event {
	SHARE_UNKNOWN,
	SHARE_SAMPLE, /* the thread runs */
	SHARE_WAIT,   /* it begins to wait */
	SHARE_OTHER,  /* not to be read */
};

struct reader_share {
	struct feed_ring feed;
	struct reading reading;
	_Atomic uint64_t read_to; /* position in the ring: all samples before it were read */
	atomic_bool slow;	  /* no real-time priority; relaxed */
	atomic_ulong memory;	  /* bytes of functions; relaxed */
	atomic_uint nr_questions;
	struct share_thread threads[SHARE_THREADS];
	/* Of the owner: */
	struct share_process processes[SHARE_PROCESSES];
	_Atomic uint64_t events[SHARE_EVENTS]; /* id << 2 | enum share_event */
};

/* A copy of the facts, which the owner alone can change. */
struct share_known {
	struct reader_share *share;
	struct {
		pid_t pid;
		uint32_t process;
		bool reads;
	} processes[SHARE_PROCESSES];
	uint64_t events[SHARE_EVENTS];
	uint32_t next_way, next_event;
};

/* Set the fact that incarnation @process of @pid is an interpreter to be read; NULL: it is not. */
void share_set_process(struct share_known *t, pid_t pid, uint32_t process,
		       const struct lang_process *info);
void share_set_event(struct share_known *t, uint64_t id, enum share_event is);
/* Return whether that is set. */
bool share_knows(const struct share_known *t, pid_t pid, uint32_t process, bool reads);
/* Set the fact that incarnation @process is not to be read, if it is known. */
void share_refuse(struct share_known *t, uint32_t process);
/*
 * Answer questions for threads: reads /proc. False: there are more. Any thread of the owner, one at
 * a time.
 */
bool share_answer(struct reader_share *s);

/* A process as a reader has it, until another one is found. */
struct share_found {
	uint32_t slot, sequence; /* of the copy; sequence 0: none */
	pid_t pid;
	uint32_t process;
	struct lang_process info;
};

/* Find @pid. 1: it is to be read, @found is set; 0: it is not; -ENOENT: it is not set yet. */
int share_find(const struct reader_share *s, pid_t pid, struct share_found *found);
enum share_event share_event_of(const struct reader_share *s, uint64_t id);
/* Return the inner id of a thread of incarnation @process; -1: it will be known. */
pid_t share_inner(struct reader_share *s, pid_t pid, pid_t tid, uint32_t process);

#endif
