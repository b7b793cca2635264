/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The hot loop: one sample from its record to the tables.
 *
 * The caller owes: a thread for each CPU, a urcu-qsbr reader, online only in a batch; tables of the
 * current generation.
 *
 * The room does: applies side-band records first, finds task and mapping, unwinds, counts; each
 * sample has exactly one outcome.
 *
 * Not for: locks, malloc, files, strings or system calls for a sample.
 */
#ifndef SAMPLER_HOT_HOT_H
#define SAMPLER_HOT_HOT_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/record/record.h"
#include "symbols/base/base.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/script/script.h"
#include "unwind/unwind.h"

struct counters;
struct counts;
struct deltas;
struct lang_frames;
struct langreader;
struct maps;
struct objects;
struct pipeline;
struct places;
struct record;
struct record_sample;
struct recorder;
struct recorder_lane;
struct sampler_thread;
struct script_functions;
struct sideband;
struct stacks;
struct symbols;
struct tasks;
struct waits;

/*
 * The object in which most broken stacks end, at a fixed cost: in each slot the most frequent
 * object outlasts the others (Boyer and Moore's majority vote). One owner, no locks.
 */

#define BROKEN_OBJECTS_SLOTS 8 /* a power of two */

struct broken_objects {
	struct ends_slot {
		uint32_t object;
		uint32_t lead; /* how many more than of all others; 0: none */
	} slots[BROKEN_OBJECTS_SLOTS];
};

/* Return the object in which at least half of @all stacks end; UINT32_MAX: none. */
uint32_t broken_objects_most(const struct broken_objects *e, uint64_t all);

/*
 * How late samples are handled: from their time stamp to their batch. The maximum, and a histogram
 * by powers of two for the median. One writer; copied as a value. In the hot path: no call, no
 * division.
 */

#define LAG_BUCKETS 40 /* the last one: 2^38 ns, 4.6 minutes, and more */

struct lag {
	uint64_t max_ns;
	uint32_t buckets[LAG_BUCKETS]; /* by the number of bits of the ns */
};

/* Return the middle of the bucket of the median: exact to a factor of 1.5. 0: no samples. */
static inline uint64_t lag_median(const struct lag *l)
{
	uint64_t nr = 0, seen = 0;

	for (int i = 0; i < LAG_BUCKETS; i++)
		nr += l->buckets[i];
	for (int i = 0; i < LAG_BUCKETS && nr; i++) {
		seen += l->buckets[i];
		if (2 * seen >= nr)
			return i < 2 ? (uint64_t)i : 3ULL << (i - 2);
	}
	return 0;
}

/* The input and the result of finding the frames of a sample. */

/* Default of kernel.perf_event_max_stack. */
#define PIPELINE_CHAIN_MAX 127

/* The tables that samples go into. Everything is borrowed and shared by all threads. */
struct pipeline_tables {
	struct objects *objects;
	struct maps *maps;
	struct tasks *tasks; /* the ids of counts are of this table */
	struct places *places;
	struct stacks *stacks;
	struct counts *counts;
	struct unwind_config unwind; /* its rows are shared by all threads */
	pid_t own_pid; /* pid of samples that are not counted (and all of the sandbox); -1: none */
	pid_t guard;   /* the same, of the guard of the terminal; 0: none */
	bool recorded; /* no process is read later: unknown ones are [unknown] */
	uint32_t chain_max; /* frames that the kernel follows; 0: PIPELINE_CHAIN_MAX */
	const struct script_functions *codes; /* functions of interpreters */
	uint32_t script;    /* the object of all code of interpreters (symbols_script()) */
	uint32_t languages; /* interpreted languages to show: lang_bit() */
	uint32_t wait;	    /* the object of the kinds of waits (symbols_wait()) */
	/* By enum wait_kind: the place of its frame; PLACE_NONE: not made. */
	uint32_t wait_places[WAIT_NR];
	uint32_t generation; /* of stacks, counts and tasks; places are replaced with some */
};

/*
 * Return whether samples of @pid are of proftop: of @own_pid, its sandbox, its readers, or @guard
 * (0: none).
 */
static inline bool pipeline_is_own(pid_t own_pid, pid_t guard, pid_t pid)
{
	return pid == own_pid || (own_pid >= 0 && ((guard && pid == guard) || sandbox_has(pid) ||
						   sandbox_memory_has(pid)));
}

/* The result of pipeline_resolve(); borrowed until the next sample. */
struct pipeline_stack {
	const uint32_t *places; /* innermost first, kernel before user */
	const uint64_t *ips;	/* raw addresses, one for each place */
	uint32_t nr, nr_kernel; /* at most STACKS_PLACES_MAX */
	uint32_t task;
	enum unwind_stop stop;
	uint32_t nr_guessed; /* of the user frames */
	enum pipeline_lang {
		PIPELINE_LANG_NO, /* no interpreter */
		PIPELINE_LANG_CERTAIN,
		PIPELINE_LANG_GUESSED,
		PIPELINE_LANG_NONE, /* an interpreter, but no frames of its language: see
				     * lang_status
				     */
	} lang;
	enum lang_status lang_status;
	uint32_t doubts; /* of guessed ones: enum interleave_doubt */
	uint64_t sp;	 /* in the outermost native frame */
};

/* The places of both ends of a branch. */
struct pipeline_branch {
	uint32_t from, to; /* PLACE_NONE: table full */
};

/*
 * The side-band: mappings, names, starts and ends of processes, from the dummy events' rings into
 * the maps. Rings of different CPUs are not ordered among themselves. Before a thread handles
 * samples it reads the head of its sample ring *first* and then drains the side-band of *all* CPUs:
 * then every mapping made before one of its samples is known. Later mappings are distinguished by
 * time. Threads: sideband_drain() from any thread that is offline for urcu-qsbr; one drains, the
 * others wait or find it done.
 */

/* Apply one side-band record to the maps; other records are ignored. Publish afterwards. */
void sideband_apply(struct maps *maps, struct symbols *symbols, const struct record *r);
/* Slots of begins of tasks, by tid. */
#define SIDEBAND_BIRTHS 4096U

struct sideband_birth {
	uint64_t time_ns;
	pid_t tid;
};

/* Begins and ends of tasks. */
struct sideband_parents {
	/* Processes that forked; 0: free. A pid has one slot, where the newest is. Any thread. */
	_Atomic pid_t pids[128];
	/* The newest begins. Under the lock of the side-band. */
	struct sideband_birth births[SIDEBAND_BIRTHS];
	/*
	 * A task's timer begins with it: in the mean, half of the time between two samples is
	 * missed at its end, or its life. Half of that time (0: not wanted), and the sum. Any
	 * thread.
	 */
	atomic_ullong half_ns, missed_ns;
};

/* Both are borrowed. @parents: not NULL: it is filled. 0 or -ENOMEM. */
int sideband_new(struct sideband **out, struct counters *counters, struct maps *maps,
		 struct symbols *symbols, struct sideband_parents *parents);
void sideband_free(struct sideband *sb);
/* Also write records to @lane (borrowed); before any thread drains. */
void sideband_record(struct sideband *sb, struct recorder_lane *lane);
/* Apply all records that were in any side-band ring at the call. */
void sideband_drain(struct sideband *sb);

/* Find the task and the frames of one sample, for a pipeline. Threads: see below. */

/*
 * Find the task and the stack of @s; @regs_mask as in the record's layout. The first half of
 * pipeline_sample().
 */
void pipeline_resolve(struct pipeline *p, const struct record_sample *s, uint64_t regs_mask);
/*
 * Get the result of pipeline_resolve(); borrowed until the next sample. Live, it may have no frame:
 * the process is not read yet.
 */
void pipeline_stack(struct pipeline *p, struct pipeline_stack *out);
/*
 * Get the places of both ends of branch @index of @s, which was resolved last;
 * pipeline_take_asked() as after pipeline_resolve().
 */
struct pipeline_branch pipeline_branch(struct pipeline *p, const struct record_sample *s,
				       uint32_t index);

/*
 * One sample's way from its record to the tables: task, kernel and user
 * frames as places, stack, cell, outcome. Shared by the live hot loop and by
 * replay, so that both do the same.
 *
 * Threads: one struct pipeline per thread, which is a registered, online
 * urcu-qsbr reader while it calls. No lock, malloc, file or string in it.
 */

/* Slots for the innermost places of a tick; a power of two. */
#define PIPELINE_HOT 256

/* One slot: the place with most of its samples, and by how many at least. */
struct pipeline_hot {
	uint32_t place;
	uint32_t lead; /* 0: none */
};

/*
 * Outcomes of samples. taken = complete + guessed + truncated + pending + broken[] + dropped[].
 */
struct pipeline_stats {
	uint64_t taken; /* counted when a sample is read, the rest when it is done */
	uint64_t complete, guessed, truncated, pending;
	uint64_t gaps; /* of truncated: UNWIND_GAP, UNWIND_SWITCHED */
	uint64_t broken[UNWIND_NR_STOPS];
	struct broken_objects ends[UNWIND_NR_STOPS]; /* of the broken ones */
	/* Code with the first guessed caller; OBJECT_ID_UNKNOWN: generated at run time. */
	struct broken_objects guesses;
	uint64_t dropped[DROP_NR];
	uint64_t own;	   /* of own_pid: outside "taken" */
	uint64_t filtered; /* of processes that are not chosen: outside "taken" */
	uint64_t nameless; /* of the counted ones: in the unknown task, the table is full */
	uint64_t by_event[EVENTS_MAX]; /* own and filtered ones included */
	uint64_t idle[EVENTS_MAX];     /* of by_event: in the idle task */
	uint64_t kernel;	       /* of the taken ones: in the kernel */
	uint64_t far; /* of the taken ones: of a stack beyond its copy, for a reader */
	/* Of the taken ones, the samples of interpreters: each under exactly one. */
	uint64_t lang_certain, lang_guessed, lang_status[LANG_OK];
	/* The guessed ones by language (LANG_NR: Java) and by the doubt that no other fix solves:
	   the number of its bit; INTERLEAVE_DOUBTS: not known. */
	uint64_t lang_guesses[LANG_NR + 1][INTERLEAVE_DOUBTS + 1];
	/* The hottest places of a CPU; not in sums of stats. */
	struct pipeline_hot hot[PIPELINE_HOT];
	uint32_t hot_of; /* the table of these places: places_serial() */
};

int pipeline_new(struct pipeline **out, const struct pipeline_tables *tables, struct err *e);
void pipeline_free(struct pipeline *p);
/* Return the stack that the last sample was counted with; STACK_NONE: it was not. *@task: its id.
 */
uint32_t pipeline_counted(const struct pipeline *p, uint32_t *task);
/*
 * Switch to another generation of tables; the rest is as before. @tick: for a batch of a thread
 * that is online for urcu-qsbr until its end; all of its samples count for this tick, even if the
 * builder ends it before. NULL: no batch.
 */
void pipeline_use(struct pipeline *p, const struct pipeline_tables *tables, uint32_t *tick);
/*
 * Use these frames of a language for the sample that they are of, instead of the reader's, and this
 * stack behind a signal handler. Borrowed until the next call; NULL: none.
 */
void pipeline_set_slot(struct pipeline *p, const struct lang_slot *slot,
		       const struct unwind_interrupted *stack);
/*
 * Replay: use these frames for the sample they are of, if it is the next one; numbers are ids of
 * the table of codes. Borrowed until the next call; NULL: none.
 */
void pipeline_set_frames(struct pipeline *p, const struct lang_frames *frames);

/* Instead of the slot of an event: its id is unknown; the recording has more than EVENTS_MAX; it is
 * sampled no more, as COUNTERS_GONE. */
#define PIPELINE_EVENT_UNKNOWN (-1)
#define PIPELINE_EVENT_LIMIT   (-2)

/*
 * The same of a stack that was taken where a task is switched out: its time is counted later
 * (waits.h). Returns the stack, with a frame of WAIT_ASLEEP on top, and one of WAIT_CUT at the end
 * if it has no root; STACK_NONE: none.
 */
uint32_t pipeline_count_wait(struct pipeline *p, struct pipeline_stats *stats,
			     const struct record_sample *s, int event);
/* Its second half, for replay: count the result of pipeline_resolve(). */
void pipeline_count(struct pipeline *p, struct pipeline_stats *stats, const struct record_sample *s,
		    int event);

/*
 * The count of one event of a group since the previous sample, added where this sample was taken.
 */
struct pipeline_member {
	int event; /* slot */
	uint64_t count;
};

/* After pipeline_sample() or pipeline_count() of the leader's sample, which has @event. */
void pipeline_members(struct pipeline *p, const struct pipeline_member *members, uint32_t nr,
		      int event);
/* Count a record that could not be decoded. */
void pipeline_bad_record(struct pipeline_stats *stats);
/* Report whether a sample since the last call requested something from the loader. */
bool pipeline_take_asked(struct pipeline *p);
/* Get the unwinder's statistics since the start; any thread. */
void pipeline_unwind_stats(const struct pipeline *p, struct unwind_stats *out);
void pipeline_add_stats(struct pipeline_stats *sum, const struct pipeline_stats *add);

/*
 * Counts in samples of events that are only counted: from totals since the event was opened to
 * increments since the previous sample. One thread; memory is allocated by deltas_new() and
 * deltas_reserve() alone.
 */

/* Make a table for the counts of at least @nr event ids. NULL: out of memory. */
struct deltas *deltas_new(uint32_t nr);
void deltas_free(struct deltas *d);
/*
 * Return a table with space for @nr more counts in place of @d: @d if it has the space, is as large
 * as tables get, or memory is short.
 */
struct deltas *deltas_reserve(struct deltas *d, uint32_t nr);

/* Return the event slot of an id, or -1. */
typedef int (*deltas_slot_fn)(void *ctx, uint64_t id);

/*
 * Get the increments of all members of the group of @s, the leader first. Returns how many. @tid:
 * of the task whose counts they are; 0: of all tasks of the event.
 */
uint32_t deltas_of_sample(struct deltas *d, const struct record_sample *s, uint32_t tid,
			  deltas_slot_fn slot, void *ctx,
			  struct pipeline_member out[static EVENTS_MAX]);

/*
 * The hottest function of a CPU during a tick, from the places that its thread noted (struct
 * pipeline_hot).
 */

/* Fill hot, hot_samples and kernel of @cpu. Runs on: the builder. */
void hot_function_fill(struct profile_cpu *cpu, const struct pipeline_stats *stats,
		       const struct places *places);

/* Definitions shared by the sampler threads and the builder. */

/* Shared by all sampler threads. Everything is borrowed. */
struct sampler_thread_shared {
	struct counters *counters;
	struct sideband *sideband;
	struct symbols *symbols;
	struct recorder *recorder; /* NULL: nothing is recorded */
	/*
	 * The generation of tables to count into: read once a batch (acquire),
	 * replaced by the builder (release) when the stacks are full.
	 */
	_Atomic(const struct pipeline_tables *) tables;
	/*
	 * The tables fill up before the next tick: set by a thread (relaxed), which then writes to
	 * the builder's eventfd; reset by the builder.
	 */
	int builder_fd;
	_Atomic(struct waits *) waits; /* NULL: not measured; release by the builder */
	/*
	 * Stacks of waits on one CPU in a tenth of a second that are too many; set and read
	 * relaxed. A thread that sees more wakes the builder.
	 */
	atomic_uint waits_max;
	atomic_bool waits_flood;
	_Alignas(CACHELINE) atomic_bool room_wanted;
	/* Samples for nothing until all is read: none waits for code that is being read. */
	atomic_bool warming;
	atomic_bool goes_first; /* the threads have a real-time priority; relaxed */
	/* Only samples of maps_is_chosen() count. Written while no thread runs. */
	bool only_chosen;
	/*
	 * The threads look at their rings a little before the builder cuts a slice: at this time
	 * and every SAMPLER_THREAD_POLL_MS or SAMPLER_THREAD_CALM_MS after it. Relaxed: a thread
	 * that sees it late only has samples in the next slice. 0: at any time.
	 */
	atomic_ullong grid_ns;
};

static inline const struct pipeline_tables *
sampler_thread_tables(struct sampler_thread_shared *shared)
{
	return atomic_load_explicit(&shared->tables, memory_order_acquire);
}

/* Outcomes of the samples of one tick on one CPU. Written by its thread only. */
struct sampler_thread_stats {
	struct pipeline_stats samples;
	uint64_t lost_records; /* by LOST records */
	uint64_t throttled, throttled_ns;
	uint64_t handled; /* bytes of the ring, since it was opened; sampler_thread_take_stats() */
	struct lag lag;
};

/*
 * The hot loop: one thread per CPU moves that CPU's samples from the ring to the tables. No lock,
 * malloc, file or string per sample. Threads: start and stop by the owner; stats by the builder.
 */

int sampler_thread_start(struct sampler_thread **out, struct sampler_thread_shared *shared,
			 uint32_t cpu_index, struct err *e);
/* Handle the rest of the ring, end and join; the stats are kept. Caller: offline for urcu-qsbr. */
void sampler_thread_finish(struct sampler_thread *t);
/* Finish and free. */
void sampler_thread_stop(struct sampler_thread *t);
/* Take and clear the stats of @tick, after counts_end_tick(); of the tick after this one: none. */
void sampler_thread_take_stats(struct sampler_thread *t, uint32_t tick,
			       struct sampler_thread_stats *out);
/*
 * Builder: from the next batch on use the frames of @reader (NULL: none); with one, the thread
 * checks the ring periodically and when its eventfd is written to.
 */
void sampler_thread_set_reader(struct sampler_thread *t, struct langreader *reader);
/* Builder: end the use of its reader. Waits for a grace period. */
void sampler_thread_drop_reader(struct sampler_thread *t);
struct langreader *sampler_thread_reader(const struct sampler_thread *t);
/* Builder: a process was barred; its reader gets to know it. */
void sampler_thread_note_barred(struct sampler_thread *t);
/* Builder: test and clear the wish for a reader. */
bool sampler_thread_take_wish(struct sampler_thread *t);
/* Return the eventfd (wake_send()) by which it reads its ring now, not at the watermark. */
int sampler_thread_kick_fd(const struct sampler_thread *t);
/* Get the statistics of its unwinder since the start. */
void sampler_thread_unwind_stats(const struct sampler_thread *t, struct unwind_stats *out);
/* Return a time: all samples of the CPU before it are counted, but the held ones. */
uint64_t sampler_thread_done_ns(const struct sampler_thread *t);
/* Return the time since which the CPU's event is throttled; 0: it is not. */
uint64_t sampler_thread_throttled_since(const struct sampler_thread *t);
/* Return the CPU time of the thread, also after its end. */
uint64_t sampler_thread_cpu_ns(const struct sampler_thread *t);
/* Return how full the data ring was at most, 0..1, since the last call. */
double sampler_thread_take_ring_high(struct sampler_thread *t);

#endif
