/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One sample's way from its record to the tables: task, kernel and user
 * frames as places, stack, cell, outcome. Shared by the live hot loop and by
 * replay, so that both do the same.
 *
 * Threads: one struct pipeline per thread, which is a registered, online
 * urcu-qsbr reader while it calls. No lock, malloc, file or string in it.
 */
#ifndef SAMPLER_PIPELINE_PIPELINE_H
#define SAMPLER_PIPELINE_PIPELINE_H

#include "sampler/pipeline/ends.h"
#include "sampler/reader/reader.h"
#include "sampler/pipeline/pipeline_frames.h"

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
	uint64_t gaps; /* of truncated: UNWIND_GAP */
	uint64_t broken[UNWIND_NR_STOPS];
	struct ends ends[UNWIND_NR_STOPS]; /* of the broken ones */
	/* Code with the first guessed caller; OBJECT_ID_UNKNOWN: generated at run time. */
	struct ends guesses;
	uint64_t dropped[DROP_NR];
	uint64_t own;	   /* of own_pid: outside "taken" */
	uint64_t nameless; /* of the counted ones: in the unknown task, the table is full */
	uint64_t by_event[EVENTS_MAX]; /* own ones included */
	uint64_t idle[EVENTS_MAX];     /* of by_event: in the idle task */
	uint64_t kernel;	       /* of the taken ones: in the kernel */
	/* Of the taken ones, the samples of interpreters: each under exactly one. */
	uint64_t lang_certain, lang_guessed, lang_none[LANG_NONE_NR];
	/* The guessed ones by language (LANG_NR: Java) and by the doubt that no other fix solves:
	   the number of its bit; MERGE_DOUBTS: not known. */
	uint64_t lang_guesses[LANG_NR + 1][MERGE_DOUBTS + 1];
	/* The hottest places of a CPU; not in sums of stats. */
	struct pipeline_hot hot[PIPELINE_HOT];
	uint32_t hot_of; /* the table of these places: places_serial() */
};

int pipeline_new(struct pipeline **out, const struct pipeline_tables *tables, struct err *e);
void pipeline_free(struct pipeline *p);
/* Return the stack that the last sample was counted with; STACK_NONE: it was not. *@task: its id.
 */
uint32_t pipeline_counted(const struct pipeline *p, uint32_t *task);
/* Switch to another generation of tables; the rest is as before. */
void pipeline_use(struct pipeline *p, const struct pipeline_tables *tables);

/* Until the next call: the frames that the reader of this CPU finds; NULL: there is none. */
void pipeline_set_reader(struct pipeline *p, struct langreader *reader);

/*
 * Use these frames of a language for the sample that they are of, instead of the reader's. Borrowed
 * until the next call; NULL: none.
 */
void pipeline_set_slot(struct pipeline *p, const struct lang_slot *slot);

/*
 * Replay: use these frames for the sample they are of, if it is the next one; numbers are ids of
 * the table of codes. Borrowed until the next call; NULL: none.
 */
void pipeline_set_frames(struct pipeline *p, const struct lang_frames *frames);

/* Instead of the slot of an event: its id is unknown; the recording has more than EVENTS_MAX; it is
 * sampled no more, as COUNTERS_GONE. */
#define PIPELINE_EVENT_UNKNOWN (-1)
#define PIPELINE_EVENT_LIMIT   (-2)
#define PIPELINE_EVENT_GONE    (-3)

/*
 * Count @s; @event is its slot, or one of the above. @regs_mask as in the record's layout.
 * @may_wait: do not count it, and return false, if it ends in code that is being read.
 */
bool pipeline_sample(struct pipeline *p, struct pipeline_stats *stats,
		     const struct record_sample *s, int event, uint64_t regs_mask, bool may_wait);
/*
 * The same of a stack that was taken where a task is switched out: its time is counted later
 * (waits.h). Returns the stack, with a frame of WAIT_ASLEEP on top, and one of WAIT_CUT at the end
 * if it has no root; STACK_NONE: none.
 */
uint32_t pipeline_count_wait(struct pipeline *p, struct pipeline_stats *stats,
			     const struct record_sample *s, int event);
/* The same, and resolve it before. */
uint32_t pipeline_wait(struct pipeline *p, struct pipeline_stats *stats,
		       const struct record_sample *s, int event, uint64_t regs_mask);
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

#endif
