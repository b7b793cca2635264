// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Run the batch loop: wait for a profile, a signal, or a closed pipe; print;
 * count.
 *
 * Runs on: the main thread.
 */
#include "ui/cli/batch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

static void read_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
}

void batch_block_signals(void)
{
	sigset_t set;

	read_signals(&set);
	/* Blocked, not ignored: a write to a closed pipe then fails with EPIPE. */
	sigaddset(&set, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

struct progress {
	uint64_t nr_printed;
	uint32_t status_seq; /* of the last printed status */
};

/* Print the next profile. Return 1: it was the last tick; 0; -errno. */
static int print_waiting(struct sampler *s, FILE *out, const struct batch_config *config,
			 struct progress *done, struct err *e)
{
	struct profile *p = sampler_take(s);
	bool gone;
	int code;

	if (!p)
		return 0;
	gone = p->target_gone;
	if (p->status_seq == done->status_seq)
		p->status[0] = '\0';
	done->status_seq = p->status_seq;
	code = config->each ? config->each(config, p, e) : 0;
	if (!code && config->sink)
		code = batch_print(out, p, config);
	profile_free(p);
	if (code)
		return code;
	done->nr_printed++;
	return gone || done->nr_printed == config->nr_ticks;
}

static int loop(struct sampler *s, FILE *out, const struct batch_config *config, int signal_fd,
		struct err *e)
{
	/* Poll the output for errors only: the reader may exit between two ticks. */
	struct pollfd fds[] = {
		{ .fd = sampler_fd(s), .events = POLLIN },
		{ .fd = signal_fd, .events = POLLIN },
		{ .fd = fileno(out) },
	};
	struct progress done = { 0 };

	for (;;) {
		struct signalfd_siginfo info;
		int code;

		if (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
			return -errno;
		if (fds[1].revents && read(signal_fd, &info, sizeof(info)) == sizeof(info)) {
			/* A tick may have ended in the same moment. */
			code = print_waiting(s, out, config, &done, e);
			return code < 0 ? code : (int)info.ssi_signo;
		}
		if (fds[2].revents & (POLLERR | POLLHUP | POLLNVAL))
			return -EPIPE;
		if (!fds[0].revents)
			continue;
		code = print_waiting(s, out, config, &done, e);
		if (code)
			return MIN(code, 0);
	}
}

int batch_run(struct sampler *s, FILE *out, const struct batch_config *config, struct err *e)
{
	sigset_t set;
	int fd, code;

	read_signals(&set);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return err_set(e, -errno, "signalfd: %s", strerror(errno));
	code = loop(s, out, config, fd, e);
	close(fd);
	if (code == -EPIPE)
		return 0;
	if (code < 0 && !e->text[0])
		err_set(e, code,
			"cannot write the profile: %s\n"
			"  the output may be incomplete",
			strerror(-code));
	return code;
}
