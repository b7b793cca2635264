/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Each tick to a server of profiles: --push.
 *
 * The caller owes: all calls from the main thread.
 *
 * The room does: queues within a limit, a thread delivers by libcurl, keeps an account of sent,
 * dropped and refused ones.
 *
 * Not for: reading answers: they are only checked.
 *
 * All calls are from the main thread; NULL is valid where "no push" is.
 */
#ifndef UI_PUSH_PUSH_H
#define UI_PUSH_PUSH_H

#include "symbols/base/base.h"

struct profile;
struct push;
struct pushed;

/* From the command line; all borrowed until push_new() returns. */
struct push_config {
	const char *url;
	const char *const *labels; /* "name=value" */
	uint32_t nr_labels;
	const char *headers;   /* file of lines "Name: value", sent with each request; NULL: none */
	const char *authority; /* file of certificates to trust; NULL: the system's */
	uint64_t timeout_ns;   /* of a request */
	const char *host;      /* of this machine, for the label host; "": unknown */
};

/*
 * Start the thread. 0 or -errno with a message. *remark: a warning, or "".
 */
int push_new(struct push **out, const struct push_config *config, char *remark, size_t remark_size,
	     struct err *e);
/*
 * Queue a profile of each event of @p that has samples, and add a message to @p while profiles are
 * not delivered; get the figures. @p has no other owner yet.
 */
void push_tick(struct push *push, struct profile *p, struct pushed *figures);
/* Deliver for a few seconds more, end the thread, free. Sets the last figures. */
void push_free(struct push *push, struct pushed *last);

#endif
