/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Figures of pushed profiles since the start. Each queued profile is delivered, dropped for one
 * reason, or still queued.
 */
#ifndef UI_CLI_PUSHED_H
#define UI_CLI_PUSHED_H

#include <stdint.h>

enum pushed_drop {
	PUSHED_REFUSED,	  /* by the server: 400, 401 ... */
	PUSHED_TOO_LARGE, /* 413, or larger than the whole queue */
	PUSHED_FULL,	  /* the oldest of a full queue */
	PUSHED_ENDED,	  /* queued when the session ended */
	PUSHED_DROP_NR,
};

struct pushed_sum {
	uint64_t profiles, samples;
};

struct pushed {
	struct pushed_sum taken, delivered, dropped[PUSHED_DROP_NR], queued;
	uint64_t retries;
	char error[160]; /* the last one, clean; "": the last attempt succeeded */
};

/* Return the name of a reason: "refused", "too_large", "queue_full", "ended". */
static inline const char *pushed_drop_name(enum pushed_drop drop)
{
	static const char *const names[] = { "refused", "too_large", "queue_full", "ended" };

	return names[drop];
}

/* Return all that was dropped. */
static inline struct pushed_sum pushed_dropped(const struct pushed *p)
{
	struct pushed_sum sum = { 0, 0 };

	for (int i = 0; i < PUSHED_DROP_NR; i++) {
		sum.profiles += p->dropped[i].profiles;
		sum.samples += p->dropped[i].samples;
	}
	return sum;
}

#endif
