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
#ifndef SYMBOLS_DEVICES_H
#define SYMBOLS_DEVICES_H

#include "symbols/base.h"

#define DEVICES_MAX	    64U
#define DEVICES_SLOW_MAX    12U		/* reads that hang, in all */
#define DEVICES_SLOW_EACH   2U		/* of one device */
#define DEVICES_REST_MIN_NS 2000000000ULL
#define DEVICES_REST_MAX_NS 300000000000ULL

struct device {
	uint32_t maj, min;
	unsigned int nr_slow;		/* reads of it that hang now */
	bool answered;			/* it has been known to */
	uint64_t rest_ns, until_ns;	/* it is left alone until then; 0: it is not */
};

struct devices {
	struct device list[DEVICES_MAX];
	unsigned int nr, nr_slow;
};

/* May a file of the device be read now? 0, or when to ask again. 0:0 is a device that nobody knows. */
uint64_t devices_rest(struct devices *d, uint32_t maj, uint32_t min, uint64_t now_ns);
/* A read of it hangs; its end is told by devices_came() or devices_failed(), @slow. */
void devices_hang(struct devices *d, uint32_t maj, uint32_t min, uint64_t now_ns);
/* A read of it came to its end, well or not; @slow: one that hung. True: its rest is over. */
bool devices_came(struct devices *d, uint32_t maj, uint32_t min, bool slow);
/* A read was given up: the rest stays. */
void devices_failed(struct devices *d, uint32_t maj, uint32_t min);

#endif
