/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests that are not delivered yet: a bounded queue, the account, and when to try again. The
 * oldest request goes first; a full queue drops it. Pure; one thread at a time.
 */
#ifndef UI_PUSH_OUTBOX_H
#define UI_PUSH_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>

#include "ui/cli/pushed.h"

#define OUTBOX_REQUESTS_MAX 256
#define OUTBOX_BYTES_MAX    ((size_t)64 << 20)
/* Between two attempts: doubled each time, up to the second. */
#define OUTBOX_PAUSE_MIN_MS 250u
#define OUTBOX_PAUSE_MAX_MS 60000u

struct outbox_request {
	struct outbox_request *next;
	char *url, *body; /* owned */
	size_t size;	  /* of the body */
	uint64_t samples;
};

struct outbox {
	struct outbox_request *first, *last;
	unsigned int nr;
	size_t bytes;
	unsigned int pause_ms; /* before the next attempt; 0: the last one succeeded */
	struct pushed pushed;
};

/* The result of an attempt. */
enum outbox_result { OUTBOX_DELIVERED, OUTBOX_RETRY, OUTBOX_REFUSED, OUTBOX_TOO_LARGE };

/* Return the meaning of the status of an answer; 0: there was no answer. */
enum outbox_result outbox_judge(long status);

/* Queue @r, which is taken over; makes space for it. */
void outbox_add(struct outbox *o, struct outbox_request *r);
/* Take the oldest request for an attempt; NULL: none. It still counts as queued. */
struct outbox_request *outbox_take(struct outbox *o);
/*
 * End an attempt: @r is freed, or queued again as the oldest with a pause of at least
 * @retry_after_s, 0: not requested; @random spreads the attempts of many senders.
 */
void outbox_settle(struct outbox *o, struct outbox_request *r, enum outbox_result result,
		   uint64_t retry_after_s, uint64_t random);
/* Drop all requests: the session has ended. Also the one of an attempt whose thread is left. */
void outbox_end(struct outbox *o);
void outbox_request_free(struct outbox_request *r);

#endif
