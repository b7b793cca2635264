/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages between proftop, the server of the cage and its workers: one packet with descriptors.
 * Any thread; may wait.
 */
#ifndef SYMBOLS_CAGE_CAGE_WIRE_H
#define SYMBOLS_CAGE_CAGE_WIRE_H

#include "symbols/cage/cage_reader.h"

struct cage_head {
	uint32_t serial; /* of the call; the answer has the same */
	int32_t code;	 /* answer: result of the reader */
	uint64_t size;	 /* of the bytes that follow, or of the memfd */
};

/* Send @head, @size bytes and the descriptors that are not -1. 0 or -errno. */
int cage_wire_send(int sock, const struct cage_head *head, const void *bytes, size_t size,
		   const int fds[CAGE_FDS_MAX]);
/*
 * Receive a packet of at most @max bytes after the head; *size: their number. @fds: -1 if there
 * is none; the caller closes them. 0, -EPIPE at the end, -EBADMSG, or -errno.
 */
int cage_wire_receive(int sock, struct cage_head *head, void *bytes, size_t max, size_t *size,
		      int fds[CAGE_FDS_MAX]);

#endif
