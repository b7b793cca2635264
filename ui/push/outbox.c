// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A bounded queue of requests, with an account that is complete.
 */
#include "ui/push/outbox.h"

#include <assert.h>
#include <stdlib.h>

#include "symbols/base/base.h"

static void move(struct pushed_sum *from, struct pushed_sum *to, const struct outbox_request *r)
{
	if (from) {
		assert(from->profiles && from->samples >= r->samples);
		from->profiles--;
		from->samples -= r->samples;
	}
	to->profiles++;
	to->samples += r->samples;
}

void outbox_request_free(struct outbox_request *r)
{
	if (!r)
		return;
	free(r->url);
	free(r->body);
	free(r);
}

enum outbox_result outbox_judge(long status)
{
	if (status >= 200 && status < 300)
		return OUTBOX_DELIVERED;
	if (status == 413)
		return OUTBOX_TOO_LARGE;
	/* No answer, a timeout, too many requests, or an error of the server: it may pass. */
	if (status < 200 || status == 408 || status == 429 || status >= 500)
		return OUTBOX_RETRY;
	return OUTBOX_REFUSED;
}

struct outbox_request *outbox_take(struct outbox *o)
{
	struct outbox_request *r = o->first;

	if (!r)
		return NULL;
	o->first = r->next;
	if (!o->first)
		o->last = NULL;
	r->next = NULL;
	o->nr--;
	o->bytes -= r->size;
	return r;
}

static void drop(struct outbox *o, struct outbox_request *r, enum pushed_drop why)
{
	move(&o->pushed.queued, &o->pushed.dropped[why], r);
	outbox_request_free(r);
}

static bool is_full(const struct outbox *o, const struct outbox_request *add)
{
	return o->nr >= OUTBOX_REQUESTS_MAX || o->bytes + add->size > OUTBOX_BYTES_MAX;
}

void outbox_add(struct outbox *o, struct outbox_request *r)
{
	move(NULL, &o->pushed.taken, r);
	move(NULL, &o->pushed.queued, r);
	if (r->size > OUTBOX_BYTES_MAX) {
		drop(o, r, PUSHED_TOO_LARGE);
		return;
	}
	while (is_full(o, r))
		drop(o, outbox_take(o), PUSHED_FULL);
	r->next = NULL;
	if (o->last)
		o->last->next = r;
	else
		o->first = r;
	o->last = r;
	o->nr++;
	o->bytes += r->size;
}

static void set_pause(struct outbox *o, uint64_t retry_after_s, uint64_t random)
{
	uint64_t ms = o->pause_ms ? 2ull * o->pause_ms : OUTBOX_PAUSE_MIN_MS;

	/* Up to a quarter more, or all senders of a fleet would return together. */
	ms += ms * (random % 256) / 1024;
	ms = MAX(ms, MIN(retry_after_s, OUTBOX_PAUSE_MAX_MS / 1000) * 1000);
	o->pause_ms = (unsigned int)MIN(ms, OUTBOX_PAUSE_MAX_MS);
}

/* Queue @r again as the oldest, or drop it if newer ones filled the queue. */
static void put_back(struct outbox *o, struct outbox_request *r)
{
	o->pushed.retries++;
	if (is_full(o, r)) {
		drop(o, r, PUSHED_FULL);
		return;
	}
	r->next = o->first;
	o->first = r;
	if (!o->last)
		o->last = r;
	o->nr++;
	o->bytes += r->size;
}

void outbox_settle(struct outbox *o, struct outbox_request *r, enum outbox_result result,
		   uint64_t retry_after_s, uint64_t random)
{
	if (result == OUTBOX_RETRY) {
		set_pause(o, retry_after_s, random);
		put_back(o, r);
		return;
	}
	o->pause_ms = 0;
	if (result == OUTBOX_DELIVERED) {
		move(&o->pushed.queued, &o->pushed.delivered, r);
		outbox_request_free(r);
	} else {
		drop(o, r, result == OUTBOX_TOO_LARGE ? PUSHED_TOO_LARGE : PUSHED_REFUSED);
	}
}

void outbox_end(struct outbox *o)
{
	struct outbox_request *r;

	while ((r = outbox_take(o)))
		drop(o, r, PUSHED_ENDED);
	o->pushed.dropped[PUSHED_ENDED].profiles += o->pushed.queued.profiles;
	o->pushed.dropped[PUSHED_ENDED].samples += o->pushed.queued.samples;
	o->pushed.queued = (struct pushed_sum){ 0 };
}
