/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of symbols/sandbox/, and by tests; no other room includes it. */
#ifndef SYMBOLS_SANDBOX_INTERNAL_H
#define SYMBOLS_SANDBOX_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbols/base/base.h"
#include "symbols/sandbox/sandbox.h"

struct sandbox_reader;

/*
 * Give up all rights of this process, for good.
 *
 * The server gives up capabilities and takes a user namespace if permitted. A worker then has
 * limits of memory, files and CPU time, no path (Landlock), and a list of allowed system calls
 * (seccomp): read, write, map private memory, take messages. To open a file fails; anything
 * else kills the worker. It can make no file; a file of a call ends at @file_max bytes.
 */

#define SANDBOX_CPU_SECONDS 3600U /* a worker is replaced before */

#define SANDBOX_PACKET_MAX (80U << 10) /* larger replies are in the reply file */
#define SANDBOX_REPLY_MAX  (64U << 20) /* unless the reader has another limit */

/* The server of the sandbox: a process with one thread, forked before all others. */

/* The server: serve until the other end of @sock is closed, or @parent ends. */
void __attribute__((noreturn))
sandbox_server_main(int sock, pid_t parent,
		    const struct sandbox_reader *const readers[SANDBOX_NR_KINDS]);

/*
 * Messages between proftop, the server of the sandbox and its workers: one packet with descriptors.
 * Any thread; to receive may wait.
 */

#define SANDBOX_MESSAGE_FDS SANDBOX_MEMORY_FDS
#define SANDBOX_NO_FDS                                                                             \
	{                                                                                          \
		[0 ... SANDBOX_MESSAGE_FDS - 1] = -1                                               \
	}
#define SANDBOX_ASKS 1 /* code of an answer that is a question, sandbox_ask() */

struct sandbox_head {
	uint32_t serial; /* of the call, random; the answer has the same */
	int32_t code;	 /* answer: result of the reader */
	uint64_t size;	 /* of the bytes that follow, or of those in the reply file */
};

/*
 * Send @head, @size bytes and the descriptors that are not -1 (NULL: none). Does not wait: a full
 * socket is -EAGAIN, for its reader has not taken earlier packets. 0 or -errno.
 */
int sandbox_message_send(int sock, const struct sandbox_head *head, const void *bytes, size_t size,
			 const int fds[SANDBOX_MESSAGE_FDS]);
/* The same of a worker, which may not send descriptors, and may wait. */
int sandbox_message_answer(int sock, const struct sandbox_head *head, const void *bytes,
			   size_t size);
/*
 * Receive a packet of at most @max bytes after the head; *size: their number. @fds: -1 if there
 * is none; the caller closes them. NULL: descriptors are refused. 0, -EPIPE at the end, -EBADMSG,
 * or -errno.
 */
int sandbox_message_receive(int sock, struct sandbox_head *head, void *bytes, size_t max,
			    size_t *size, int fds[SANDBOX_MESSAGE_FDS]);

#endif
