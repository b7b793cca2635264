/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * File systems that do not answer: which devices to leave alone, and until when.
 *
 * A read that hangs holds a helper thread. One dead server with a thousand
 * libraries must not hold a thousand helpers, so files on its device are not
 * tried for a while: twice as long after each read that hangs, until one
 * succeeds.
 *
 * Pure; one thread: the loader.
 */
#ifndef SYMBOLS_OBJECT_BACKOFF_H
#define SYMBOLS_OBJECT_BACKOFF_H

#include "symbols/base/base.h"

#define BACKOFF_MAX	    64U
#define BACKOFF_SLOW_MAX    12U /* reads that hang, on all devices */
#define BACKOFF_SLOW_EACH   2U	/* on one device */
#define BACKOFF_REST_MIN_NS 2000000000ULL
#define BACKOFF_REST_MAX_NS 300000000000ULL

struct device {
	uint32_t maj, min;
	unsigned int nr_slow;	    /* reads that hang now */
	bool answered;		    /* a read has succeeded */
	uint64_t rest_ns, until_ns; /* length and end of the pause; 0: none */
};

struct backoff {
	struct device list[BACKOFF_MAX];
	unsigned int nr, nr_slow;
};

/*
 * Return 0 if a file of the device may be read now, else the time of the next try. 0:0 is the
 * unknown device.
 */
uint64_t backoff_rest(struct backoff *d, uint32_t maj, uint32_t min, uint64_t now_ns);
/* Count a read that hangs; backoff_ended() or backoff_cancelled() with @slow report its end. */
void backoff_hang(struct backoff *d, uint32_t maj, uint32_t min, uint64_t now_ns);
/*
 * Count a read that ended, with or without error; @slow: it was counted as hanging.
 * True: the pause is over.
 */
bool backoff_ended(struct backoff *d, uint32_t maj, uint32_t min, bool slow);
/* Count a hanging read that was cancelled: the pause is unchanged. */
void backoff_cancelled(struct backoff *d, uint32_t maj, uint32_t min);

#endif
