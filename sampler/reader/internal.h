/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of sampler/reader/, and by tests; no other room includes it. */
#ifndef SAMPLER_READER_INTERNAL_H
#define SAMPLER_READER_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include "sampler/event/event.h"
#include "sampler/reader/reader.h"
#include "sampler/ring/ring.h"
#include "symbols/base/base.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/script/script.h"

struct script_functions;
struct frame_channel;
struct frame_channel_ring;
struct frame_channel_writer;

/*
 * Put a copy of @slot with its frames in, and with the bytes of the other stack, behind the
 * functions that were not sent yet. False: it is full.
 */
bool frame_channel_put(struct frame_channel_writer *w, const struct lang_slot *slot,
		       const void *frames, const void *other);
/* 0 or -ENOMEM. */
int frame_channel_init(struct frame_channel *f, struct frame_channel_ring *ring,
		       struct script_functions *codes);
void frame_channel_fini(struct frame_channel *f);

/* A reader as a process, see reader.h. */

/* The descriptors that it gets: the event with the ring, the share, the sampler thread's eventfd.
 */
enum { LANGREADER_DATA, LANGREADER_SHARE, LANGREADER_KICK };

/*
 * Proof that a thread without real-time priority has preempted the CPU's task at its wake-up: the
 * scheduler's own account of how long the thread waited for its CPU, and how often it got it.
 *
 * One thread, about itself.
 */

struct schedstat {
	int fd; /* -1: closed */
	uint64_t waited_ns, nr;
};

/* Open the calling thread's account. Where there is none, nothing is ever instant. */
void schedstat_open(struct schedstat *p);
static inline void schedstat_close(struct schedstat *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
}

/*
 * Since the last call: was the thread switched in once, without a wait? Then no other task has run
 * on its CPU between its wake-up and now.
 */
bool schedstat_was_instant(struct schedstat *p);

/*
 * Which process a reader reads, and since when: to find a read that hangs.
 *
 * Threads: begin and end by the reader, the rest by any. Invariant: a process is only seen with
 * the time at which that read began, so that no other process is blamed.
 */

struct reading {
	_Atomic uint64_t since_ns; /* 0: none */
	atomic_int pid;
	atomic_uint process; /* incarnation */
};

static inline void reading_begin(struct reading *r, pid_t pid, uint32_t process, uint64_t now_ns)
{
	/* Release: the end of the read before; pairs with reading_hangs(). */
	atomic_store_explicit(&r->pid, (int)pid, memory_order_release);
	atomic_store_explicit(&r->process, process, memory_order_release);
	/* Release: which process it is; pairs with reading_hangs(). */
	atomic_store_explicit(&r->since_ns, now_ns, memory_order_release);
}

static inline void reading_end(struct reading *r)
{
	atomic_store_explicit(&r->since_ns, 0, memory_order_relaxed);
}

/* Return whether a read began @hang_ns ago or earlier, and goes on; get its process. */
static inline bool reading_hangs(const struct reading *r, uint64_t now_ns, uint64_t hang_ns,
				 pid_t *pid, uint32_t *process)
{
	uint64_t since_ns = atomic_load_explicit(&r->since_ns, memory_order_acquire);

	if (!since_ns || now_ns < since_ns + hang_ns)
		return false;
	*pid = atomic_load_explicit(&r->pid, memory_order_acquire);
	*process = atomic_load_explicit(&r->process, memory_order_acquire);
	/* Else it has ended, and these may be of the next one. */
	return atomic_load_explicit(&r->since_ns, memory_order_relaxed) == since_ns;
}

/*
 * A copy of one record of a ring that another thread consumes: of a large stack only the first
 * bytes, until the rest is needed. Most chains need no more of it, and 16 KiB push the memory of
 * the sampled thread out of the first cache.
 *
 * Threads: one, beside the consumer. No allocation.
 */

#define RING_COPY_MAX	(64U << 10)
#define RING_COPY_STACK 4096U /* bytes of the stack that are copied at first */

struct ring_copy {
	const struct ring *ring; /* borrowed */
	uint64_t pos;		 /* of the record in it */
	size_t rest_at;		 /* of the bytes left out, in the record */
	size_t rest_size;	 /* 0: none */
	bool overwritten;	 /* by the kernel, before the copy was whole: not to be used */
	_Alignas(16) uint8_t bytes[RING_COPY_MAX];
};

/* Copy @size bytes at @pos to @out. The kernel may overwrite them during it. */
void ring_copy_out(const struct ring *ring, uint64_t pos, void *out, size_t size);
/* Copy the record at @pos, of @size bytes. False: it is too large, or overwritten. */
bool ring_copy_record(struct ring_copy *c, const struct ring *ring,
		      const struct record_layout *layout, uint64_t pos, size_t size);
/* Copy the rest of the stack, once; sets overwritten. */
void ring_copy_rest(struct ring_copy *c);

/* The CPU time that a reader may still take; all zero at first. */
struct langreader_allowance {
	uint64_t time_ns, cpu_ns; /* at the last call */
	int64_t left_ns;
};

/*
 * Charge the CPU time of a reader since the last call, in which its CPU had @nr_samples. False:
 * more than half of the time, and more than an honest one needs for them. Pure.
 */
bool langreader_allow(struct langreader_allowance *a, uint64_t time_ns, uint64_t cpu_ns,
		      uint64_t nr_samples);

/* Wake-ups of a reader with nothing to read; all zero at first, @nr 0 once something was read. */
struct langreader_idle {
	uint64_t woken_ns; /* the latest */
	uint32_t nr;	   /* each soon after the one before */
};

/* Note a wake-up. True: they are due to the reader itself. Pure. */
bool langreader_should_rest(struct langreader_idle *idle, uint64_t now_ns);

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

#define SHARE_PROCESSES 1024U /* powers of two */
#define SHARE_EVENTS	4096U
#define SHARE_THREADS	1024U
#define SHARE_FAR	1024U
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

/* A thread with a stack that goes on beyond its copies: an address that a walk wanted there. */
struct share_far {
	/* All relaxed: whatever a reader finds here, it reads the memory of the thread it sees. */
	_Atomic uint64_t thread; /* pid << 32 | tid; 0: none */
	_Atomic uint64_t at;
	atomic_uint process; /* incarnation */
};

enum share_event {
	SHARE_UNKNOWN,
	SHARE_SAMPLE, /* the thread runs */
	SHARE_WAIT,   /* it begins to wait */
	SHARE_OTHER,  /* not to be read */
};

struct reader_share {
	struct frame_channel_ring feed;
	struct reading reading;
	_Atomic uint64_t read_to; /* position in the ring: all samples before it were read */
	atomic_bool slow;	  /* no real-time priority; relaxed */
	atomic_ulong memory;	  /* bytes of functions; relaxed */
	atomic_uint nr_questions;
	struct share_thread threads[SHARE_THREADS];
	/* Of the owner: */
	struct share_process processes[SHARE_PROCESSES];
	_Atomic uint64_t events[SHARE_EVENTS]; /* id << 2 | enum share_event */
	struct share_far far[SHARE_FAR];
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
	struct {
		uint64_t thread, at;
		uint32_t process;
	} far[SHARE_FAR];
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

/*
 * Return the entry of a thread in share->far, which may be another one's. Few threads have such
 * stacks: two with one entry lose a sample each time.
 */
static inline uint32_t share_far_at(pid_t tid)
{
	return (uint32_t)hash_u64((uint32_t)tid) & (SHARE_FAR - 1);
}

static inline uint64_t share_far_thread(pid_t pid, pid_t tid)
{
	return (uint64_t)(uint32_t)pid << 32 | (uint32_t)tid;
}

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

/* The reader's CPU (-1: it reads on request), and the form of its samples. */
struct langreader_start {
	int cpu;
	struct record_layout layout;
	uint64_t ring_size;
};

#endif
