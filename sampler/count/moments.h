/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counts in the slices of their moments. Samples arrive late: of a CPU that had no time to read
 * its ring, or of a wait that was counted at the end of a tick. So slices, on a grid of
 * COUNTS_SLICE_NS, are open until all counts of their time have arrived, and then added to the
 * past; what comes later is added to the slice of its time there.
 *
 * Runs on: the builder. Times are in ns of the clock of the samples.
 */
#ifndef SAMPLER_COUNT_MOMENTS_H
#define SAMPLER_COUNT_MOMENTS_H

#include "sampler/count/slices.h"
#include "sampler/count/count.h"

struct moments;

/*
 * When proftop did not run for so long, the time but for the last half is one slice: else each wait
 * would be in thousands of them.
 */
#define MOMENTS_STOP_NS (200 * COUNTS_SLICE_NS)

/* @past: gets the closed slices; borrowed. 0 or -ENOMEM. */
int moments_new(struct moments **out, struct slices *past);
void moments_free(struct moments *m);
/* Drop the open slices. The next one begins at @now_ns or, as the first of all, on the grid. */
void moments_reset(struct moments *m, uint64_t now_ns);
/* Let the slices from @now_ns on be of the events @events. */
void moments_set_events(struct moments *m, uint16_t events, uint64_t now_ns);
/*
 * Add counts that arrived until @now_ns (reordered), each to the slice of its time. @about: epoch,
 * and marks for the slice of @now_ns. 0, or -ENOMEM: some counts are in no slice.
 */
int moments_add(struct moments *m, struct count *counts, uint32_t nr, uint64_t now_ns,
		const struct slice *about);
/* Add to the newest open slice, as slices_note(). False: none is open. */
bool moments_note(struct moments *m, unsigned int marks, uint64_t lost, uint64_t throttled);
/* Close the slices that end until @complete_ns; all counts before have arrived. 0 or -ENOMEM. */
int moments_close(struct moments *m, uint64_t complete_ns);
/* Close all. 0 or -ENOMEM. */
int moments_finish(struct moments *m);
/* Replace the ids of tasks, and then of stacks, in the open slices. */
void moments_map_tasks(struct moments *m, const struct history_ids *ids);
void moments_map_stacks(struct moments *m, const struct history_ids *ids);
size_t moments_memory(const struct moments *m);

#endif
