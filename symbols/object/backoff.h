/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * File systems that do not answer: which to leave alone, and until when.
 *
 * A read that hangs holds a helper thread for as long as it hangs. One dead
 * server with a thousand libraries must not hold a thousand, so what lies on
 * its device is not even tried: after each try that hangs for twice as long,
 * until something of it comes.
 *
 * Pure; one thread: the loader.
 */
#ifndef SYMBOLS_OBJECT_BACKOFF_H
#define SYMBOLS_OBJECT_BACKOFF_H

#include "symbols/base/base.h"

#define BACKOFF_MAX	    64U
#define BACKOFF_SLOW_MAX    12U /* reads that hang, in all */
#define BACKOFF_SLOW_EACH   2U	/* of one device */
#define BACKOFF_REST_MIN_NS 2000000000ULL
#define BACKOFF_REST_MAX_NS 300000000000ULL

struct device {
	uint32_t maj, min;
	unsigned int nr_slow;	    /* reads of it that hang now */
	bool answered;		    /* it has been known to */
	uint64_t rest_ns, until_ns; /* it is left alone until then; 0: it is not */
};

struct backoff {
	struct device list[BACKOFF_MAX];
	unsigned int nr, nr_slow;
};

/* May a file of the device be read now? 0, or when to ask again. 0:0 is a device that nobody knows.
 */
uint64_t backoff_rest(struct backoff *d, uint32_t maj, uint32_t min, uint64_t now_ns);
/* A read of it hangs; its end is told by backoff_came() or backoff_failed(), @slow. */
void backoff_hang(struct backoff *d, uint32_t maj, uint32_t min, uint64_t now_ns);
/* A read of it came to its end, well or not; @slow: one that hung. True: its rest is over. */
bool backoff_came(struct backoff *d, uint32_t maj, uint32_t min, bool slow);
/* A read was given up: the rest stays. */
void backoff_failed(struct backoff *d, uint32_t maj, uint32_t min);

#endif
