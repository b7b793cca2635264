/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Readers of script frames, one for each CPU that runs an interpreter.
 *
 * The caller owes: facts about processes in the shared memory, written by the sampler thread.
 *
 * The room does: follows the ring of its CPU, reads the frames of the sampled thread before it runs
 * on, passes them in a ring; its owner checks the bytes.
 *
 * Not for: native stacks (unwind).
 */
#ifndef SAMPLER_READER_READER_H
#define SAMPLER_READER_READER_H

#include <stdatomic.h>

#include "symbols/base/base.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/script/script.h"

struct counters;
struct frame_channel_copy;
struct langreader;
struct record_sample;
struct ring;

/*
 * Frames on their way from a reader to the sampler thread of its CPU: a ring of
 * slots in the order of their samples, each behind the functions in it that are new. One producer,
 * one consumer, no lock; when the ring is full the sample keeps its native frames.
 *
 * The ring is memory that both have. The sampler thread trusts nothing in it: a reader may have
 * been taken over by a process that it reads.
 */

#define FRAME_CHANNEL_SIZE (1U << 20) /* a power of two */

/* All zero is an empty ring. */
struct frame_channel_ring {
	_Alignas(CACHELINE) atomic_ullong head; /* producer: release; consumer: acquire */
	_Alignas(CACHELINE) atomic_ullong tail; /* consumer: release; producer: acquire */
	_Alignas(CACHELINE) uint8_t bytes[FRAME_CHANNEL_SIZE];
};

/* The end of the reader. */
struct frame_channel_writer {
	struct frame_channel_ring *ring;
	const struct script_functions *codes; /* its functions */
	uint32_t nr_sent;		      /* of them */
};

/* The end of the sampler thread. */
struct frame_channel {
	struct frame_channel_ring *ring;
	struct script_functions *codes; /* of all; both are borrowed */
	uint64_t tail;
	uint32_t *ids; /* of the reader's functions, in @codes; SCRIPT_FUNCTIONS_MAX */
	uint32_t nr_ids;
	struct frame_channel_copy *copy;
	atomic_uint nr_bad;  /* parts that made no sense; relaxed */
	atomic_bool refused; /* a slot had a function that found no room; relaxed */
};

/* The sampler thread's end. 0 or -ENOMEM. */
int frame_channel_init(struct frame_channel *f, struct frame_channel_ring *ring,
		       struct script_functions *codes);
void frame_channel_fini(struct frame_channel *f);
/*
 * The reader: put a copy of @slot with its frames in, and with the bytes of the other stack, behind
 * the functions that were not sent yet. False: it is full.
 */
bool frame_channel_put(struct frame_channel_writer *w, const struct lang_slot *slot,
		       const void *frames, const void *other);
/*
 * Return a copy of the slot of this sample, checked, with the ids of @f->codes; NULL: there is
 * none. Drops slots of earlier samples; valid until the next call.
 */
const struct lang_slot *frame_channel_find(struct frame_channel *f, uint64_t time_ns, uint32_t pid,
					   uint32_t tid);

/*
 * Copies of the frames of threads, made by a BPF program at each sample (copier.c): the program of
 * a CPU and its reader, which is pinned to it, never run at the same time. The owner's side.
 */
struct copier {
	int cpus_fd, rings_fd, program_fd; /* 0: none */
};

/* A sample of each event, as each wait is, wakes no reader: the thread sleeps. */
#define COPIER_QUIET_PERIOD 1

/* Load it; main thread, before capabilities are dropped. 0 or -errno: readers do without it. */
int copier_load(struct copier *c);
void copier_close(struct copier *c);
/*
 * Make the area of a CPU, and the ring that wakes its reader, both empty: descriptors in this
 * order. NULL: there are no copies any more. 0 or -errno.
 */
int copier_set_cpu(const struct copier *c, int cpu, int fds[2]);

#define COPIES_THREADS	  1024U	       /* a power of two; in pairs */
#define COPIES_PROCESSES  4096U	       /* a power of two */
#define COPIES_CODES	  8192U	       /* a power of two; in pairs */
#define COPIES_RING	  (512U << 10) /* a power of two */
#define COPY_MAX	  (80U << 10)  /* bytes of one copy: of all frames with heads */
#define COPY_STATE_MAX	  511U	       /* bytes of a state */
#define COPY_FRAME_MAX	  255U	       /* of a frame, of the head of a function */
#define COPIED_FRAMES_MAX 128U /* of a longer chain the innermost ones, which is of no use */

/* One thread of which the program copies the frames. */
struct copied_thread {
	uint32_t tid;	  /* 0: none */
	uint32_t process; /* incarnation */
	struct lang_plan plan;
};

/* In a place of more than one process that is read: each one there wakes the reader. */
#define COPIES_READ_ALL 1U

/* The value of the one entry of a BPF array, mapped by the reader. */
struct copier_area {
	uint64_t written; /* bytes, since the start: of the program */
	uint64_t any_new; /* not 0: a process that is not in the table wakes the reader */
	struct copied_thread threads[COPIES_THREADS];
	uint64_t codes[COPIES_CODES]; /* keys of code that copies are enough for */
	/* At the lower bits of a pid: pid << 1, and 1 if threads without a plan wake the reader. */
	uint32_t processes[COPIES_PROCESSES];
	/* Copies, each as struct copy_head and pieces (struct lang_moment). The next one begins at
	 * the start when this one ends behind the ring. */
	_Alignas(8) uint8_t bytes[COPIES_RING + COPY_MAX];
};

struct copy_head {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint32_t tid, size;
	uint64_t unknown; /* not 0: it has code that is not in the table */
};

/* The multiplier of Fibonacci hashing: 2^32 by the golden ratio. */
#define COPIES_HASH	  0x9E3779B1U
#define COPIES_HASH_SHIFT 22
#define COPIES_CODE_SHIFT 20

/* Addresses of user space are below it. */
#define COPIES_PROCESS_SHIFT 47

/* The first one of the two in which the plan of a thread may be. */
static inline uint32_t copies_slot(uint32_t tid)
{
	return tid * COPIES_HASH >> COPIES_HASH_SHIFT & ~1U;
}

/* The key of a function that lasts: the word of a frame that tells its code, in this process. */
static inline uint64_t copies_key(uint32_t process, uint64_t word)
{
	return word ^ (uint64_t)process << COPIES_PROCESS_SHIFT;
}

/* That of another one goes on with each word of its head and name. */
#define COPIES_MIX 31

static inline uint64_t copies_mix(uint64_t key, uint64_t word)
{
	return key * COPIES_MIX ^ word;
}

/* The first one of the two in which it may be. */
static inline uint32_t copies_code_slot(uint64_t key)
{
	return ((uint32_t)(key >> 4) * COPIES_HASH >> COPIES_CODE_SHIFT) * 2;
}

/* Return the key of a function that may not last. */
static inline uint64_t copies_other_key(const struct lang_plan *plan, uint64_t key,
					const uint8_t *head, const uint8_t *name)
{
	for (uint32_t i = 0; i < LANG_PLAN_HEAD; i++)
		key = copies_mix(key, bytes_u64(head + plan->head_words[i]));
	return copies_mix(copies_mix(key, bytes_u64(name)), bytes_u64(name + 8));
}

/* Have a key in the table, or (@known false) not any more. */
static inline void copies_set_code(struct copier_area *a, uint64_t key, bool known)
{
	uint64_t *pair = &a->codes[copies_code_slot(key)];

	if (known && pair[0] != key && pair[1] != key) {
		/* The newer one of two others is kept. */
		pair[1] = pair[0];
		pair[0] = key;
	}
	for (int i = 0; i < 2 && !known; i++)
		if (pair[i] == key)
			pair[i] = 0;
}

static inline bool copies_fit_head(const struct lang_plan *plan)
{
	uint32_t last = plan->head_name;

	for (uint32_t i = 0; i < LANG_PLAN_HEAD; i++)
		last = MAX(last, plan->head_words[i]);
	return plan->head_size <= COPY_FRAME_MAX && last + 8 <= plan->head_size;
}

/* Return whether the program can follow the plan: it cuts sizes and offsets. */
static inline bool copies_fit(const struct lang_plan *plan)
{
	return plan->state_size <= COPY_STATE_MAX && plan->cframe_size <= COPY_FRAME_MAX &&
	       plan->frame_size <= COPY_FRAME_MAX && plan->frame_previous + 8 <= plan->frame_size &&
	       plan->frame_code + 8 <= plan->frame_size && copies_fit_head(plan);
}

/* Read with the struct langreader_start in @bytes, until it is killed; returns if it cannot. */
void langreader_process(const void *bytes, size_t size, const int fds[SANDBOX_MEMORY_FDS]);

/*
 * A reader: reads the frames of interpreters at each sample of one CPU.
 *
 * It is pinned to the CPU, has a real-time priority where that is allowed, and
 * is woken by each sample: so it runs in the return from the sampling
 * interrupt, before the sampled thread has gone on by one instruction.
 *
 * The memory that it parses is hostile. So it is a process that can read the memory of others and
 * nothing else (sandbox.h): no file, no socket, no process. Only where proftop itself has no
 * right that a process of its user lacks it is a thread. Both have one loop (reader.c) and
 * one way to pass frames on, which is not trusted (frame_channel).
 *
 * Reading another process may hang for good (userfaultfd, FUSE), so it is never done on
 * a sampler thread: a hanging reader is killed, or left behind with its memory, and its
 * process is barred. A thread that was left frees itself when the read returns.
 *
 * Threads: langreader_start(), langreader_stop(), langreader_hangs() by the builder; the
 * feed by the sampler thread of the CPU.
 */

#define LANGREADER_BARRED 64U

/* Shared by the owners of all readers. */
struct langreader_shared {
	struct script_functions *codes;
	uint32_t languages; /* to be read: lang_bit() */
	struct copier copier;
	atomic_uint nr_barred;
	atomic_uint barred[LANGREADER_BARRED]; /* incarnations that are not read; published by nr */
};

/*
 * For the CPU with @index. @kick_fd: an eventfd of its sampler thread, which does not look at the
 * ring during the read: written to when that fills, or facts are needed. 0; 1: the program wakes
 * it, no sample of an event with the program has to; or -errno.
 */
int langreader_start(struct langreader **out, struct langreader_shared *shared,
		     struct counters *counters, uint32_t index, int kick_fd, struct err *e);
/*
 * One that reads the samples of langreader_ask() alone, of tasks that do not run: its slots are
 * checked ones.
 */
int langreader_start_asked(struct langreader **out, struct langreader_shared *shared,
			   struct err *e);
/*
 * Have it read the frames for @s, of a process that was noted, into the feed. The time stamps of
 * samples rise. False: not until @deadline_ns; it may be read later.
 */
bool langreader_ask(struct langreader *r, const struct record_sample *s, uint64_t deadline_ns);
/* End it, join it, free it; one that hangs is left behind, and its feed with it. */
void langreader_stop(struct langreader *r);
/* Leave a hanging reader behind. */
void langreader_leave(struct langreader *r);
/* The sampler thread: have the samples of the batch that @ring begins read; waits 2 ms at most. */
void langreader_catch_up(struct langreader *r, const struct ring *ring);
/* The sampler thread: the frames. */
struct frame_channel *langreader_feed(struct langreader *r);
/*
 * The sampler thread: incarnation @process of @pid is an interpreter; NULL: it is none. With
 * @needed false it is not read before it was noted as needed.
 */
void langreader_note_process(struct langreader *r, pid_t pid, uint32_t process,
			     const struct lang_process *info, bool needed);
/* No address: a walk used the stack beyond the copy, or did not. */
#define LANGREADER_FAR_USED   2ULL
#define LANGREADER_FAR_UNUSED 3ULL
/*
 * The sampler thread: have the stack of a thread of incarnation @process read up to @at, beyond the
 * kernel's copy, from the next sample on, until many samples in a row did not use it; 0: no change.
 * Return whether it is.
 */
bool langreader_reads_far(struct langreader *r, pid_t pid, pid_t tid, uint32_t process,
			  uint64_t at);
/* The sampler thread: have processes that were barred not read any more. */
void langreader_refuse_barred(struct langreader *r);
/* The sampler thread: samples with @id are of @event, as counters_event_of(). */
void langreader_note_event(struct langreader *r, uint64_t id, int event);
/* Return whether it has questions, which langreader_answer() answers. Any thread. */
bool langreader_has_questions(const struct langreader *r);
/*
 * Answer them. With @any_new, as there are new interpreters, samples of processes that it does not
 * know wake it.
 */
void langreader_answer(struct langreader *r, bool any_new);
/* Since when has it been reading, if that is longer ago than LANGREADER_HANG_NS? Which process? */
bool langreader_hangs(const struct langreader *r, uint64_t now_ns, pid_t *pid, uint32_t *process);
/* Note how many samples its CPU had since the last call. The builder, once a tick. */
void langreader_charge(struct langreader *r, uint64_t nr_samples);
/*
 * Return whether it was killed, returns senseless bytes, or takes too much CPU time, and is to be
 * left; while it read incarnation *@process of *@pid, 0: none.
 */
bool langreader_is_dead(const struct langreader *r, pid_t *pid, uint32_t *process);
/* Return whether a real-time priority was refused. Then samples may be read late, and are guesses.
 */
bool langreader_is_slow(const struct langreader *r);
/*
 * Return whether another reader should take its place: it has many functions, or some that were
 * refused, perhaps of another process only.
 */
bool langreader_is_spent(const struct langreader *r, uint64_t now_ns);
/* Read no process of this incarnation again, after langreader_refuse_barred(). */
void langreader_bar(struct langreader_shared *shared, uint32_t process);
bool langreader_is_barred(const struct langreader_shared *shared, uint32_t process);

#endif
