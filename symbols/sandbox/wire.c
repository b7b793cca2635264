// SPDX-License-Identifier: GPL-2.0-or-later
/* Messages between proftop and the processes of the sandbox: a head, bytes, descriptors. Any
 * thread. */
#include "symbols/sandbox/internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "symbols/base/base.h"

union sandbox_message_control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int) * SANDBOX_MESSAGE_FDS)];
};

int sandbox_message_send(int sock, const struct sandbox_head *head, const void *bytes, size_t size,
			 const int fds[SANDBOX_MESSAGE_FDS])
{
	struct iovec parts[] = {
		{ .iov_base = (void *)(uintptr_t)head, .iov_len = sizeof(*head) },
		{ .iov_base = (void *)(uintptr_t)bytes, .iov_len = size },
	};
	struct msghdr msg = { .msg_iov = parts, .msg_iovlen = size ? 2 : 1 };
	union sandbox_message_control control;
	int list[SANDBOX_MESSAGE_FDS];
	unsigned int nr = 0;
	ssize_t sent;

	assert(sock >= 0 && (bytes || !size));
	for (unsigned int i = 0; fds && i < SANDBOX_MESSAGE_FDS; i++)
		if (fds[i] >= 0)
			list[nr++] = fds[i];
	if (nr) {
		struct cmsghdr *c;

		memset(&control, 0, sizeof(control));
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(nr * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(nr * sizeof(int));
		memcpy(CMSG_DATA(c), list, nr * sizeof(int));
	}
	do {
		sent = sendmsg(sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

int sandbox_message_answer(int sock, const struct sandbox_head *head, const void *bytes,
			   size_t size)
{
	const struct iovec parts[] = {
		{ .iov_base = (void *)(uintptr_t)head, .iov_len = sizeof(*head) },
		{ .iov_base = (void *)(uintptr_t)bytes, .iov_len = size },
	};
	ssize_t sent;

	assert(sock >= 0 && (bytes || !size));
	do {
		sent = writev(sock, parts, size ? 2 : 1);
	} while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

/* Take all descriptors out of @msg: the others would leak. */
static void take_fds(struct msghdr *msg, int fds[SANDBOX_MESSAGE_FDS])
{
	unsigned int taken = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t nr = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < nr; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			if (taken < SANDBOX_MESSAGE_FDS)
				fds[taken++] = fd;
			else
				close(fd);
		}
	}
}

int sandbox_message_receive(int sock, struct sandbox_head *head, void *bytes, size_t max,
			    size_t *size, int fds[SANDBOX_MESSAGE_FDS])
{
	struct iovec parts[] = {
		{ .iov_base = head, .iov_len = sizeof(*head) },
		{ .iov_base = bytes, .iov_len = max },
	};
	union sandbox_message_control control;
	struct msghdr msg = {
		.msg_iov = parts,
		.msg_iovlen = max ? 2 : 1,
		.msg_control = fds ? control.bytes : NULL,
		.msg_controllen = fds ? sizeof(control.bytes) : 0,
	};
	ssize_t got;

	assert(sock >= 0 && (bytes || !max));
	for (unsigned int i = 0; fds && i < SANDBOX_MESSAGE_FDS; i++)
		fds[i] = -1;
	do {
		got = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	} while (got < 0 && errno == EINTR);
	if (got <= 0)
		return got < 0 ? -errno : -EPIPE;
	if (fds)
		take_fds(&msg, fds);
	if (got < (ssize_t)sizeof(*head) || msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		return -EBADMSG;
	*size = (size_t)got - sizeof(*head);
	return 0;
}
