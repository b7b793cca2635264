/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * --keep: the slices of the history on disk, in a ring of segments (keepfile.h). Once a tick the
 * builder packs the new slices, and a thread appends them to the newest segment: a killed proftop
 * loses the last tick. The oldest segments are removed beyond a size or an age.
 *
 * Threads: the builder; open and close by the owner.
 */
#ifndef SAMPLER_KEEP_H
#define SAMPLER_KEEP_H

#include "sampler/count/slices.h"
#include "sampler/profile/assemble_input.h"
#include "sampler/event/event.h"
#include "sampler/keep_config.h"
#include "symbols/base/base.h"

struct keep;
struct past_events;

/* Open the folder for one session. NULL without a folder. 0 or -errno with a sentence. */
int keep_open(struct keep **out, const struct keep_config *config, struct err *e);
/*
 * Write the queued slices; no tick may follow. 0 or the -errno that ended it, with a sentence, also
 * if that was reported before. NULL is allowed.
 */
int keep_finish(struct keep *k, struct err *e);
/* The same, and close. NULL is allowed. */
void keep_close(struct keep *k);

struct keep_input {
	struct slices *slices;		     /* slices_keep() marks the queued ones */
	const struct assemble_input *tables; /* without counts */
	const struct event *events;
	const double *hz; /* wanted, of each event; 0: a fixed period */
	uint32_t nr_events;
	const struct past_events *sets; /* of the slices; NULL: all are of @events */
	uint64_t real_ns;		/* CLOCK_REALTIME minus the clock of the slices */
	uint64_t settled_ns;		/* later slices may get late samples, and wait */
};

/* Queue the slices that are new. */
void keep_tick(struct keep *k, const struct keep_input *in);
/* Return the number of samples that the history dropped before they could be queued. */
uint64_t keep_missing(const struct keep *k);
/* Return the -errno that ended it, with a sentence, once; else 0. */
int keep_check(struct keep *k, struct err *e);

#endif
