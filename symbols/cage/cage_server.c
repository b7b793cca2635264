// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The server of the cage, and its workers.
 *
 * Two processes with one thread each. The server forks workers on request and does nothing else;
 * the kernel collects them. A worker serves calls until the other end of its socket is closed.
 */
#include "symbols/cage/cage_server.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "symbols/base/helper.h"
#include "symbols/cage/cage_lock.h"
#include "symbols/cage/cage_wire.h"

/* Fewer bytes are not worth a page. */
#define MAPPED_MIN 2048U

/* The connection of a worker to its caller. */
struct cage_link {
	int sock;
	const struct cage_reader *reader;
	struct cage_head head;
	uint8_t request[CAGE_REQUEST_MAX];
};

/* Send the reply of @call with the result @code, or CAGE_ASKS; close its descriptors. */
static int send_reply(struct cage_link *l, struct cage_call *call, int code)
{
	struct cage_reply *reply = &call->reply;
	size_t packet, packet_max = l->reader->map_reply ? MAPPED_MIN : CAGE_PACKET_MAX;
	int rc;

	if (code >= 0 && reply->full)
		code = -EFBIG;
	for (unsigned int i = 0; i < CAGE_FDS_MAX; i++)
		if (call->fds[i] >= 0)
			close(call->fds[i]);
	if (code >= 0 && (reply->written || reply->size > packet_max) && !cage_flush(reply))
		code = -ENOMEM;
	/* A reply is in the packet, or in the file. */
	packet = code < 0 || reply->written ? 0 : reply->size;
	l->head.code = code;
	l->head.size = code < 0 ? 0 : reply->written + packet;
	rc = cage_wire_answer(l->sock, &l->head, reply->bytes, packet);
	close(reply->file);
	return rc;
}

/*
 * Make @reply empty, with its file. A buffer that fits into a packet is kept: new pages cost more
 * than names.
 */
static void empty(struct cage_reply *reply, int file)
{
	bool keep = reply->max <= 2 * CAGE_PACKET_MAX;
	const struct cage_reply was = *reply;

	if (!keep)
		free(was.bytes);
	*reply = (struct cage_reply){
		.bytes = keep ? was.bytes : NULL,
		.max = keep ? was.max : 0,
		.limit = was.limit,
		.to_file = true,
		.file = file,
	};
}

/* Take the next request into @call; its reply becomes empty. */
static int take_request(struct cage_link *l, struct cage_call *call)
{
	int fds[CAGE_WIRE_FDS];
	int rc = cage_wire_receive(l->sock, &l->head, l->request, sizeof(l->request), &call->size,
				   fds);

	if (rc)
		return rc;
	call->request = l->request;
	/* The file of the reply is the first one. */
	empty(&call->reply, fds[0]);
	memcpy(call->fds, fds + 1, sizeof(call->fds));
	return 0;
}

int cage_ask(struct cage_call *c)
{
	if (!c->link)
		return -ENOSYS;
	if (send_reply(c->link, c, CAGE_ASKS) || take_request(c->link, c))
		_exit(0);
	return 0;
}

static void __attribute__((noreturn))
worker_main(int sock, pid_t server, const struct cage_reader *reader)
{
	/* Static: a stack copy of a sample would hold nothing else. One thread, one worker. */
	static struct cage_link link;
	struct cage_call call = { .reply.limit = reader->reply_max, .link = &link };

	prctl(PR_SET_NAME, reader->name);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != server ||
	    cage_lock_worker(reader->memory_max,
			     reader->reply_max ? reader->reply_max : CAGE_REPLY_MAX))
		_exit(1);
	link.sock = sock;
	link.reader = reader;
	while (!take_request(&link, &call) && !send_reply(&link, &call, reader->serve(&call)))
		;
	_exit(0);
}

/* Fork a worker: its socket and its pidfd go to the client. 0 or -errno. */
static int start_worker(int sock, const struct cage_reader *reader, struct cage_head *head)
{
	int pair[2], fds[CAGE_WIRE_FDS] = { -1, -1, -1 };
	pid_t server = getpid(), pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	pid = fork();
	if (!pid) {
		close(sock);
		close(pair[0]);
		worker_main(pair[1], server, reader);
	}
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return -EAGAIN;
	}
	fds[0] = pair[0];
	fds[1] = (int)syscall(SYS_pidfd_open, pid, 0); /* Linux 5.3 */
	head->code = pid;
	cage_wire_send(sock, head, NULL, 0, fds);
	close(pair[0]);
	if (fds[1] >= 0)
		close(fds[1]);
	return 0;
}

void cage_server_main(int sock, pid_t parent,
		      const struct cage_reader *const readers[CAGE_NR_KINDS])
{
	struct cage_head head;
	sigset_t none;
	size_t size;

	prctl(PR_SET_NAME, "proftop-cage");
	setpriority(PRIO_PROCESS, 0, HELPERS_NICE); /* needs CAP_SYS_NICE */
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	signal(SIGCHLD, SIG_IGN); /* workers are collected by the kernel */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (unsigned int i = 0; i < CAGE_NR_KINDS; i++)
		if (readers[i] && readers[i]->prepare)
			readers[i]->prepare();
	/* After the change of rights, which clears the signal. */
	if (cage_lock_server(sock) || prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		_exit(1);
	while (!cage_wire_receive(sock, &head, NULL, 0, &size, NULL)) {
		if (head.size >= CAGE_NR_KINDS || !readers[head.size] ||
		    start_worker(sock, readers[head.size], &head)) {
			head.code = 0;
			cage_wire_send(sock, &head, NULL, 0, NULL);
		}
	}
	_exit(0);
}
