// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A profile of the next seconds, beside the ticks.
 */
#include "sampler/collect.h"

int collect_open(struct collect *c, struct err *e)
{
	c->due_ns = UINT64_MAX;
	return mailbox_open(&c->mailbox, e);
}

void collect_close(struct collect *c)
{
	mailbox_close(&c->mailbox);
}

bool collect_begin(struct collect *c, uint64_t now_ns)
{
	/* Relaxed: the span is all there is to see. */
	uint64_t span_ns = atomic_exchange_explicit(&c->wanted_ns, 0, memory_order_relaxed);

	if (!span_ns)
		return false;
	c->begin_ns = now_ns;
	c->due_ns = now_ns + span_ns;
	return true;
}
