/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * --open: the segments of --keep into the tables of a replay. All bytes are hostile: a damaged
 * segment is read as far as it goes.
 *
 * Runs on: the builder, a registered urcu-qsbr reader; open and close by the owner.
 */
#ifndef SAMPLER_KEEP_READ_H
#define SAMPLER_KEEP_READ_H

#include "sampler/store.h"

struct keep_read;

struct keep_read_result {
	uint64_t first_ns, last_ns; /* CLOCK_REALTIME */
	uint64_t samples, lost, throttled;
	uint32_t nr_damaged;   /* segments that end early, slices with which a sum is too large */
	uint64_t other_events; /* samples of other events, which are left out */
	uint64_t back;	       /* samples of slices that a clock that was set back had again */
	uint64_t nameless;     /* in the unknown task, the table is full */
};

/* Open a folder; its events go into @config. 0 or -errno with a sentence. */
int keep_read_open(struct keep_read **out, struct sampler_config *config, struct err *e);
void keep_read_close(struct keep_read *k);
/* Return how much of the folder is read. Any thread. */
uint32_t keep_read_permille(const struct keep_read *k);
/*
 * Read all segments into @st. 0, -ENOMEM, or -ECANCELED soon after another thread has set @stopped.
 */
int keep_read_run(struct keep_read *k, struct store *st, const atomic_bool *stopped,
		  struct keep_read_result *out);

#endif
