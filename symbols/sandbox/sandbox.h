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

#define CAGE_REQUEST_MAX (64U << 10)
#define CAGE_PACKET_MAX	 (80U << 10) /* larger replies are in the reply file */
#define CAGE_FDS_MAX	 2U
#define CAGE_REPLY_MAX	 (64U << 20) /* unless the reader has another limit */

enum cage_kind {
	CAGE_DWARF,
	CAGE_NAMES, /* mangled names */
	/* ELF files: unwind tables and symbols. Several, since a start needs hundreds of them. */
	CAGE_IMAGE,
	CAGE_IMAGE_LAST = CAGE_IMAGE + 3,
	CAGE_ELF,      /* facts about ELF files */
	CAGE_DESCRIBE, /* files of interpreters */
	CAGE_PERFMAP,
	CAGE_JITDUMP,
	CAGE_DISASM, /* machine code */
	CAGE_KERNEL, /* copies of /proc/kallsyms and /proc/kcore */
	/* Code caches of JVMs. One reading is by one worker. */
	CAGE_HOTSPOT,
	CAGE_HOTSPOT_LAST = CAGE_HOTSPOT + 7,
	/* Recordings of others (perf.data). One is read by one worker. */
	CAGE_RECORDING,
	CAGE_RECORDING_LAST = CAGE_RECORDING + 3,
	CAGE_NR_KINDS
};

/* The result in the making; cage_put() appends. */
struct cage_reply {
	uint8_t *bytes;
	size_t size, max;
	size_t limit; /* 0: CAGE_REPLY_MAX */
	bool full;    /* too large, or out of memory */
	/* In a worker large pieces are written to the file of the call, behind the bytes before
	 * them. */
	bool to_file;
	int file;
	size_t written;
};

/* One call, as the reader sees it. */
struct cage_call {
	const void *request;
	size_t size;
	int fds[CAGE_FDS_MAX]; /* -1: none; closed after the call unless the reader sets it to -1 */
	struct cage_reply reply;
	struct cage_link *link; /* to the caller, for cage_ask(); NULL: in its thread */
};

/*
 * Put a question to the caller in the middle of a call: send the reply so far, which is then empty,
 * and replace the request and the descriptors by those of the caller's answer. 0 or -errno: the
 * call is to end.
 */
int cage_ask(struct cage_call *c);
/* Append @size bytes; at the limit reply->full is set. Return their offset in all. */
size_t cage_put(struct cage_reply *reply, const void *bytes, size_t size);
/* Write all bytes to the file. False: out of memory. */
bool cage_flush(struct cage_reply *reply);
/* Read @size bytes of descriptor @i of the call: *out is malloc'ed, a NUL follows. 0 or -errno. */
int cage_take(const struct cage_call *c, unsigned int i, size_t size, uint8_t **out);

/*
 * A reader: serve one call. 0 or -errno. In a worker it runs in one thread and may keep state
 * between calls.
 */
struct cage_reader {
	enum cage_kind kind;
	const char *name; /* of the process, 15 bytes at most */
	/* Load libraries, in the server before it gives up its files; NULL: none. */
	void (*prepare)(void);
	int (*serve)(struct cage_call *c);
	uint64_t memory_max; /* address space of the worker */
	size_t reply_max;    /* 0: CAGE_REPLY_MAX */
	/* Map a reply that is in the file, do not copy it. Only if all descriptors are copies, or
	 * of file systems that respond. */
	bool map_reply;
	/* Its calls build on each other: the worker is not replaced before cage_end(). */
	bool stateful;
	/* It has questions in the middle of a call, cage_ask(). */
	bool asks;
};

#endif
