/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A profile of the next seconds, beside the ticks: for a request over the network.
 *
 * Threads: the builder, and one thread that requests and takes.
 */
#ifndef SAMPLER_COLLECT_H
#define SAMPLER_COLLECT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "sampler/mailbox.h"

struct collect {
	_Atomic uint64_t wanted_ns; /* requested span; 0: none */
	uint64_t begin_ns;	    /* of the builder */
	uint64_t due_ns;	    /* the same; UINT64_MAX: none is collected */
	struct mailbox mailbox;	    /* the result */
};

/* 0 or -errno with a sentence. */
int collect_open(struct collect *c, struct err *e);
void collect_close(struct collect *c);
/* Begin a requested collection at @now_ns. Return true if there was a request. */
bool collect_begin(struct collect *c, uint64_t now_ns);

#endif
