/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shares of each function in each of the last 60 seconds, by function id.
 * Bounded: light functions are left out when it is full. Runs on: the main thread.
 *
 * A history belongs to one event, rate, window, target and process or thread; for another one
 * it starts again.
 */
#ifndef UI_VIEW_TREND_H
#define UI_VIEW_TREND_H

#include "sampler/profile/fold.h"

#define TREND_SECONDS	60
#define TREND_FUNCTIONS 4096 /* a power of two */

struct trend_entry {
	uint32_t id;
	bool used;
	float shares[TREND_SECONDS]; /* 0..1, at second % TREND_SECONDS */
};

struct trend {
	struct trend_entry *entries; /* TREND_FUNCTIONS of them, by hash; NULL: none yet */
	uint32_t nr;
	uint64_t key;	      /* of event, scope, window: folds_trend_key() */
	uint64_t first, last; /* known seconds; first > last: none */
	uint64_t begun;	      /* the second in which the history of this key began */
	uint64_t purged;      /* when functions without samples were removed */
};

void trend_fini(struct trend *t);
/* Return whether a note is due at @time_ns: once a second. */
bool trend_wants(const struct trend *t, uint64_t key, uint64_t time_ns);
/* Note the self shares of all functions at @time_ns; an earlier time than before starts again. */
void trend_note(struct trend *t, uint64_t key, uint64_t time_ns, const struct profile *p,
		const struct fold_functions *fold);
/* Return the share of a function @ago seconds before the last; negative: unknown. */
double trend_share(const struct trend *t, uint32_t id, uint32_t ago);

#endif
