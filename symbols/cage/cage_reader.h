/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A reader of foreign bytes: a function that serves calls, in a worker of the cage or, without one,
 * in the calling thread.
 */
#ifndef SYMBOLS_CAGE_CAGE_READER_H
#define SYMBOLS_CAGE_CAGE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/base/base.h"

#define CAGE_REQUEST_MAX 4096U
#define CAGE_FDS_MAX	 2U
#define CAGE_REPLY_MAX	 (64U << 20)

enum cage_kind { CAGE_DWARF, CAGE_NR_KINDS };

/* The result in the making; cage_put() appends. */
struct cage_reply {
	uint8_t *bytes;
	size_t size, max;
	bool full; /* too large, or memory is out */
};

/* One call, as the reader sees it. */
struct cage_call {
	const void *request;
	size_t size;
	int fds[CAGE_FDS_MAX]; /* -1: none; closed after the call unless the reader sets it to -1 */
	struct cage_reply reply;
};

/* Append @size bytes; at the limit reply->full is set. Return their offset. */
size_t cage_put(struct cage_reply *reply, const void *bytes, size_t size);

/*
 * A reader: serve one call. 0 or -errno. In a worker it runs in one thread and may keep state
 * between calls.
 */
struct cage_reader {
	const char *name; /* of the process, 15 bytes at most */
	int (*serve)(struct cage_call *c);
	uint64_t memory_max; /* address space of the worker */
};

#endif
