/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages between proftop, the server of the cage and its workers: one packet with descriptors.
 * Any thread; to receive may wait.
 */
#ifndef SYMBOLS_CAGE_CAGE_WIRE_H
#define SYMBOLS_CAGE_CAGE_WIRE_H

#include "symbols/sandbox/sandbox.h"

#define CAGE_WIRE_FDS (CAGE_FDS_MAX + 1)

#define CAGE_ASKS 1 /* code of an answer that is a question, cage_ask() */

struct cage_head {
	uint32_t serial; /* of the call, random; the answer has the same */
	int32_t code;	 /* answer: result of the reader */
	uint64_t size;	 /* of the bytes that follow, or of those in the reply file */
};

/*
 * Send @head, @size bytes and the descriptors that are not -1 (NULL: none). Does not wait: a full
 * socket is -EAGAIN, for its reader has not taken earlier packets. 0 or -errno.
 */
int cage_wire_send(int sock, const struct cage_head *head, const void *bytes, size_t size,
		   const int fds[CAGE_WIRE_FDS]);
/* The same of a worker, which may not send descriptors, and may wait. */
int cage_wire_answer(int sock, const struct cage_head *head, const void *bytes, size_t size);
/*
 * Receive a packet of at most @max bytes after the head; *size: their number. @fds: -1 if there
 * is none; the caller closes them. NULL: descriptors are refused. 0, -EPIPE at the end, -EBADMSG,
 * or -errno.
 */
int cage_wire_receive(int sock, struct cage_head *head, void *bytes, size_t max, size_t *size,
		      int fds[CAGE_WIRE_FDS]);

#endif
