/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Readers of interpreters: one for each CPU that runs some, and only as long.
 *
 * Where a CPU has one, its events wake at each sample. A reader that hangs is left behind, its
 * process barred, and another takes its place.
 *
 * Threads: the builder, online for urcu-qsbr.
 */
#ifndef SAMPLER_LANGREADERS_H
#define SAMPLER_LANGREADERS_H

#include "sampler/event/counters.h"
#include "sampler/mailbox.h"
#include "sampler/reader/reader.h"
#include "sampler/pipeline/sampler_thread.h"

/* Readers that incarnation @process of a program was read by when they hung, or were killed. */
struct langreaders_strikes {
	uint32_t process, nr;
};

struct langreaders {
	struct langreader_shared *shared; /* NULL: frames of interpreters are not wanted */
	uint32_t nr;			  /* that run */
	uint32_t nr_found;		  /* interpreters, of which readers were started */
	uint32_t nr_described;		  /* that readers know */
	uint8_t *quiet;			  /* by CPU: ticks in a row with hardly an interpreter */
	uint32_t nr_quiet;
	struct langreaders_strikes strikes[LANGREADER_BARRED];
	uint32_t next_strike;
	uint64_t next_try_ns; /* no reader is started before it */
	uint32_t nr_dead;     /* that were killed, or hung: DEAD_MAX at most */
	uint64_t forgiven_ns; /* time at which the last one of these was forgiven */
	bool said_slow;	      /* that message was shown */
	bool said_error;      /* also that one */
	bool said_dead;
	struct err error; /* why the last one could not be started */
};

/* 0 or -ENOMEM. @codes is borrowed. */
int langreaders_open(struct langreaders *r, struct codes *codes, uint32_t languages);
/* After langreaders_stop(). */
void langreaders_close(struct langreaders *r);

/* The samples of CPU @index in the tick: @taken, and of these @lang of interpreters. */
void langreaders_note(struct langreaders *r, struct counters *c, struct sampler_thread *t,
		      uint32_t index, uint64_t taken, uint64_t lang);
/*
 * Start the readers that sampler threads wish for; replace hanging ones. @nr_found: interpreters
 * found in a target until now: at the first samples of a new one, readers run on all CPUs.
 * @nr_described: interpreters until now, which readers have to know.
 */
void langreaders_look(struct langreaders *r, struct counters *c, struct sampler_thread **threads,
		      uint32_t nr_threads, uint32_t nr_found, uint32_t nr_described,
		      struct mailbox *mailbox);
/* End all of them; the events wake at the watermark again. */
void langreaders_stop(struct langreaders *r, struct counters *c, struct sampler_thread **threads,
		      uint32_t nr_threads);

#endif
