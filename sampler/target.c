// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Who is sampled: the whole system, processes, a user's tasks, or a command
 * that we start ourselves and sample from its exec on.
 *
 * Runs on: set-up, then the builder.
 */
#include "sampler/session.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* How often TARGET_USER looks for new tasks. */
#define TARGET_LOOK_NS 1000000000ULL

/* The child's side: wait for the word, then become the command. */
static void __attribute__((noreturn))
run_command(char *const *command, int release_fd, int failed_fd, bool quiet)
{
	char byte;
	int fd;

	if (read(release_fd, &byte, 1) != 1)
		_exit(127);		/* the parent is gone: never start */
	if (quiet) {
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
		for (int i = 0; i < 3 && fd >= 0; i++)
			dup2(fd, i);
	} else {
		dup2(STDERR_FILENO, STDOUT_FILENO);
	}
	execvp(command[0], command);
	fd = errno;
	if (write(failed_fd, &fd, sizeof(fd)) < 0)
		_exit(126);
	_exit(127);
}

/* Fork the command, held back until target_release(). */
static int start_command(struct target *t, const struct sampler_config *config, struct err *e)
{
	int release[2], failed[2];

	if (pipe2(release, O_CLOEXEC))
		return err_set(e, -errno, "pipe: %s", strerror(errno));
	if (pipe2(failed, O_CLOEXEC)) {
		int code = -errno;

		close(release[0]);
		close(release[1]);
		return err_set(e, code, "pipe: %s", strerror(-code));
	}
	t->command = fork();
	if (t->command == 0) {
		close(release[1]);
		run_command(config->command, release[0], failed[1], config->command_quiet);
	}
	close(release[0]);
	close(failed[1]);
	t->release_fd = release[1];
	t->failed_fd = failed[0];
	if (t->command < 0)
		return err_set(e, -errno, "fork: %s", strerror(errno));
	t->tids = xcalloc(1, sizeof(pid_t));
	t->tids[0] = t->command;
	t->nr_tids = 1;
	return 0;
}

/* Leave our own threads out of a list of tasks; returns how many stay. */
static uint32_t without_self(pid_t *tids, uint32_t nr)
{
	pid_t self = getpid(), guard = getppid();
	uint32_t kept = 0;

	for (uint32_t i = 0; i < nr; i++)
		if (tids[i] != self && tids[i] != guard)
			tids[kept++] = tids[i];
	return kept;
}

int target_open(struct target *t, const struct sampler_config *config, struct err *e)
{
	int nr = 0;

	*t = (struct target){ .kind = config->target, .release_fd = -1, .failed_fd = -1, .status = -1 };
	switch (config->target) {
	case TARGET_SYSTEM:
		return 0;
	case TARGET_PIDS:
		t->pids = xcalloc(config->nr_pids, sizeof(pid_t));
		memcpy(t->pids, config->pids, config->nr_pids * sizeof(pid_t));
		t->nr_pids = config->nr_pids;
		nr = counters_list_threads(config->pids, config->nr_pids, &t->tids, e);
		break;
	case TARGET_USER:
		nr = counters_list_user(config->uid, &t->tids, e);
		break;
	case TARGET_COMMAND:
		return start_command(t, config, e);
	}
	if (nr < 0)
		return nr;
	t->nr_tids = config->include_self ? (uint32_t)nr : without_self(t->tids, (uint32_t)nr);
	if (t->nr_tids == 0)
		return err_set(e, -ESRCH, "no task of that user runs now\n"
			       "  there is nothing to sample\n"
			       "  start a program first, or run without -u");
	return 0;
}

int target_release(struct target *t, char *const *command, struct err *e)
{
	int code = 0;

	if (t->release_fd < 0)
		return 0;
	if (write(t->release_fd, "x", 1) != 1)
		code = EIO;
	close(t->release_fd);
	t->release_fd = -1;
	/* Closed by a successful exec (close-on-exec): then this reads nothing. */
	if (!code && read(t->failed_fd, &code, sizeof(code)) != sizeof(code))
		code = 0;
	close(t->failed_fd);
	t->failed_fd = -1;
	if (!code)
		return 0;
	waitpid(t->command, NULL, 0);
	t->command = 0;
	return err_set(e, -code, "cannot run '%s': %s\n"
		       "  execvp failed in the child process\n"
		       "  check the name and PATH, or give the path",
		       command[0], strerror(code));
}

/* Tasks of the user that were not there before. */
static void look_for_tasks(struct sampler *s)
{
	struct target *t = &s->target;
	pid_t *tids = NULL, *fresh;
	uint32_t nr_fresh = 0;
	int nr = counters_list_user(s->config.uid, &tids, NULL);

	if (nr <= 0)
		goto out;
	nr = (int)without_self(tids, (uint32_t)nr);
	fresh = xcalloc((size_t)nr, sizeof(*fresh));
	for (int i = 0; i < nr; i++) {
		bool known = false;

		for (uint32_t k = 0; k < t->nr_tids && !known; k++)
			known = t->tids[k] == tids[i];
		if (!known)
			fresh[nr_fresh++] = tids[i];
	}
	/*
	 * Children of tasks we hold are followed by inheritance already: opening
	 * them again would count them twice. Only those whose parent we never
	 * held are new; counters_add_tasks() is told of these alone.
	 */
	for (uint32_t i = 0; i < nr_fresh;) {
		struct maps_hit hit;

		maps_find(s->maps, fresh[i], fresh[i], time_now_ns(), &hit);
		if (hit.known)
			fresh[i] = fresh[--nr_fresh];
		else
			i++;
	}
	if (nr_fresh) {
		counters_add_tasks(s->counters, fresh, nr_fresh, NULL);
		recording_add(s, fresh, nr_fresh, t->looked_ns);
	}
	free(fresh);
	free(t->tids);
	t->tids = tids;
	t->nr_tids = (uint32_t)nr;
	return;
out:
	free(tids);
}

static void reap_command(struct target *t)
{
	int status;

	if (!t->command || waitpid(t->command, &status, WNOHANG) != t->command)
		return;
	atomic_store_explicit(&t->status, status, memory_order_relaxed);
	t->command = 0;
	t->gone = true;
}

void target_update(struct sampler *s, uint64_t now_ns)
{
	struct target *t = &s->target;
	bool alive = false;

	switch (t->kind) {
	case TARGET_SYSTEM:
		break;
	case TARGET_PIDS:
		for (uint32_t i = 0; i < t->nr_pids; i++)
			alive |= kill(t->pids[i], 0) == 0 || errno == EPERM;
		t->gone = !alive;
		break;
	case TARGET_USER:
		if (now_ns - t->looked_ns >= TARGET_LOOK_NS) {
			t->looked_ns = now_ns;
			look_for_tasks(s);
		}
		break;
	case TARGET_COMMAND:
		reap_command(t);
		break;
	}
}

void target_close(struct target *t)
{
	if (t->release_fd >= 0) {
		/* Never released: the child reads the end of the pipe and exits. */
		close(t->release_fd);
		if (t->command > 0)
			waitpid(t->command, NULL, 0);
	}
	if (t->failed_fd >= 0)
		close(t->failed_fd);
	free(t->tids);
	free(t->pids);
}
