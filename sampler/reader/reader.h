/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A reader: reads the frames of interpreters at each sample of one CPU.
 *
 * It is pinned to the CPU, has a real-time priority where that is allowed, and
 * is woken by each sample: so it runs in the return from the sampling
 * interrupt, before the sampled thread has gone on by one instruction.
 *
 * The memory that it parses is hostile. So it is a process that can read the memory of others and
 * nothing else (cage_memory.h): no file, no socket, no process. Only where proftop itself has no
 * right that a process of its user lacks it is a thread. Both have one loop (langreader_loop.h) and
 * one way to pass frames on, which is not trusted (feed.h).
 *
 * Reading another process may hang for good (userfaultfd, FUSE), so it is never done on
 * a sampler thread: a hanging reader is killed, or left behind with its memory, and its
 * process is barred. A thread that was left frees itself when the read returns.
 *
 * Threads: langreader_start(), langreader_stop(), langreader_hangs() by the builder; the
 * feed by the sampler thread of the CPU.
 */
#ifndef SAMPLER_PIPELINE_LANGREADER_H
#define SAMPLER_PIPELINE_LANGREADER_H

#include "sampler/event/counters.h"
#include "sampler/ring/ring.h"
#include "sampler/pipeline/feed.h"
#include "symbols/lang/lang.h"

/* A read that takes longer hangs. */
#define LANGREADER_HANG_NS 50000000ULL
#define LANGREADER_BARRED  64U

/* Shared by the owners of all readers. */
struct langreader_shared {
	struct codes *codes;
	uint32_t languages; /* to be read: lang_bit() */
	atomic_uint nr_barred;
	atomic_uint barred[LANGREADER_BARRED]; /* incarnations that are not read; published by nr */
};

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

struct langreader;

/*
 * For the CPU with @index. @kick_fd: an eventfd of its sampler thread, which does not look at the
 * ring during the read: written to when that fills, or facts are needed.
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
/* The sampler thread: the frames. */
struct feed *langreader_feed(struct langreader *r);
/* The sampler thread: incarnation @process of @pid is an interpreter; NULL: it is none. */
void langreader_note_process(struct langreader *r, pid_t pid, uint32_t process,
			     const struct lang_process *info);
/* The sampler thread: have processes that were barred not read any more. */
void langreader_refuse_barred(struct langreader *r);
/* The sampler thread: samples with @id are of @event, as counters_event_of(). */
void langreader_note_event(struct langreader *r, uint64_t id, int event);
/* Return whether it has questions, which langreader_answer() answers. Any thread; any. */
bool langreader_has_questions(const struct langreader *r);
void langreader_answer(struct langreader *r);
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
