// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Who is sampled: the whole system, processes, threads, a user's tasks, a
 * cgroup, processes by name, or a command that we start ourselves and sample
 * from its exec on.
 *
 * Runs on: set-up, then the builder.
 */
#include "sampler/session.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <urcu-qsbr.h>

#include "sampler/event/target_cgroup.h"

/* How often TARGET_USER and TARGET_NAME look for new tasks. */
#define TARGET_LOOK_NS 1000000000ULL

/* The child's side: wait for the word, then become the command. */
static void __attribute__((noreturn))
run_command(char *const *command, int release_fd, int failed_fd, bool quiet)
{
	char byte;
	int fd;

	if (read(release_fd, &byte, 1) != 1)
		_exit(127); /* the parent is gone: never start */
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
	t->leader = t->command;
	/* Linux 5.3; before that the end of the command is found by the next tick. */
	t->command_fd = (int)syscall(SYS_pidfd_open, t->command, 0);
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

static pid_t *copy_pids(const pid_t *pids, uint32_t nr)
{
	pid_t *copy = xcalloc(nr, sizeof(*copy));

	memcpy(copy, pids, nr * sizeof(*copy));
	return copy;
}

/* The root has every task: it is sampled as the system is. */
static int open_cgroup(struct target *t, const char *name, struct err *e)
{
	bool whole;
	int fd = target_cgroup_open(TARGET_CGROUP_MOUNTS, name, &whole, e);

	if (fd < 0)
		return fd;
	if (!whole)
		t->cgroup_fd = fd;
	else
		close(fd);
	return 0;
}

static int compile_name(struct target *t, const char *name, struct err *e)
{
	int code;

	t->name = xcalloc(1, sizeof(*t->name));
	code = regcomp(t->name, name, REG_EXTENDED | REG_NOSUB);
	if (!code)
		return 0;
	free(t->name);
	t->name = NULL;
	return err_set(e, -EINVAL,
		       "'%.100s' is not a regular expression\n"
		       "  it is matched with the name of the process and that of its program\n"
		       "  as in --name '^nginx$'",
		       name);
}

/* What /proc calls a process, and the name of the program it was started as. */
static bool name_matches(const struct target *t, pid_t pid)
{
	static const char *const files[] = { "comm", "cmdline" };
	char path[64], text[512];

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		const char *base;
		ssize_t nr;
		int fd;

		snprintf(path, sizeof(path), "/proc/%d/%s", pid, files[i]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return false;
		nr = read(fd, text, sizeof(text) - 1);
		close(fd);
		if (nr <= 0)
			continue;
		text[nr] = '\0';
		text[strcspn(text, "\n")] = '\0';
		/* A comm may hold a slash: it is no path. */
		base = i ? strrchr(text, '/') : NULL;
		if (!regexec(t->name, base ? base + 1 : text, 0, NULL, 0))
			return true;
	}
	return false;
}

/* All threads of the processes whose name matches, ours left out. */
static int list_named(const struct target *t, pid_t **tids, struct err *e)
{
	DIR *dir = opendir("/proc");
	uint32_t nr = 0, max = 0;
	struct dirent *entry;
	pid_t *pids = NULL;
	int found = 0;

	*tids = NULL;
	while (dir && (entry = readdir(dir))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid <= 0 || pid == getpid() || pid == getppid() || !name_matches(t, pid))
			continue;
		if (nr == max) {
			max = 2 * max + 16;
			pids = xrealloc_array(pids, max, sizeof(*pids));
		}
		pids[nr++] = pid;
	}
	if (dir)
		closedir(dir);
	if (nr)
		found = counters_list_tree(pids, nr, tids);
	free(pids);
	if (!*tids)
		*tids = xcalloc(1, sizeof(pid_t));
	return found;
}

static int find_tasks(struct target *t, const struct sampler_config *config, struct err *e)
{
	switch (config->target) {
	case TARGET_PIDS:
		t->pids = copy_pids(config->pids, config->nr_pids);
		t->nr_pids = config->nr_pids;
		return counters_list_threads(config->pids, config->nr_pids, &t->tids, e);
	case TARGET_TIDS:
		t->pids = copy_pids(config->pids, config->nr_pids);
		t->nr_pids = config->nr_pids;
		t->tids = copy_pids(config->pids, config->nr_pids);
		return (int)config->nr_pids;
	case TARGET_USER:
		return counters_list_user(config->uid, &t->tids, e);
	case TARGET_NAME:
		return compile_name(t, config->name, e) ? -EINVAL : list_named(t, &t->tids, e);
	default:
		return 0;
	}
}

static void target_init(struct target *t, enum sampler_target kind)
{
	*t = (struct target){ .kind = kind,
			      .cgroup_fd = -1,
			      .release_fd = -1,
			      .failed_fd = -1,
			      .command_fd = -1,
			      .status = -1 };
}

int target_open(struct target *t, const struct sampler_config *config, struct err *e)
{
	int nr;

	target_init(t, config->target);
	if (config->target == TARGET_SYSTEM)
		return 0;
	if (config->target == TARGET_COMMAND)
		return start_command(t, config, e);
	if (config->target == TARGET_CGROUP)
		return open_cgroup(t, config->cgroup, e);
	nr = find_tasks(t, config, e);
	if (nr < 0)
		return nr;
	t->nr_tids = config->include_self ? (uint32_t)nr : without_self(t->tids, (uint32_t)nr);
	if (t->nr_tids == 0 && config->target != TARGET_NAME)
		return err_set(e, -ESRCH,
			       "no task of that user runs now\n"
			       "  there is nothing to sample\n"
			       "  start a program first, or run without -u");
	return 0;
}

int target_find(struct target *t, const struct target *old, const struct sampler_config *config,
		struct err *e)
{
	int nr;

	if (config->target != TARGET_COMMAND) {
		int code = target_open(t, config, e);

		/* With its children, as they have been followed until now. */
		if (code || config->target != TARGET_PIDS)
			return code;
		free(t->tids);
		nr = counters_list_tree(t->pids, t->nr_pids, &t->tids);
		t->nr_tids = without_self(t->tids, (uint32_t)MAX(nr, 0));
		return t->nr_tids ? 0
				  : err_set(e, -ESRCH,
					    "no process with pid %d\n"
					    "  it has exited\n"
					    "  'ps -e' lists what runs now",
					    (int)t->pids[0]);
	}
	target_init(t, TARGET_COMMAND);
	nr = old->leader > 0 ? counters_list_tree(&old->leader, 1, &t->tids) : 0;
	t->nr_tids = (uint32_t)MAX(nr, 0);
	return t->nr_tids ? 0
			  : err_set(e, -ESRCH,
				    "the command does not run any more\n"
				    "  it has ended, or there was none\n"
				    "  choose another target");
}

/* What tells who is sampled; the command is none of it. */
static void free_who(struct target *t)
{
	free(t->tids);
	free(t->pids);
	if (t->cgroup_fd >= 0)
		close(t->cgroup_fd);
	if (t->name)
		regfree(t->name);
	free(t->name);
}

void target_drop(struct target *t)
{
	free_who(t);
	*t = (struct target){
		.cgroup_fd = -1, .release_fd = -1, .failed_fd = -1, .command_fd = -1
	};
}

void target_replace(struct target *old, struct target *t)
{
	free_who(old);
	old->kind = t->kind;
	old->tids = t->tids;
	old->nr_tids = t->nr_tids;
	old->pids = t->pids;
	old->nr_pids = t->nr_pids;
	old->cgroup_fd = t->cgroup_fd;
	old->name = t->name;
	old->gone = false;
	old->looked_ns = 0;
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
	return err_set(e, -code,
		       "cannot run '%s': %s\n"
		       "  execvp failed in the child process\n"
		       "  check the name and PATH, or give the path",
		       command[0], strerror(code));
}

static bool is_listed(const pid_t *tids, uint32_t nr, pid_t tid)
{
	for (uint32_t i = 0; i < nr; i++)
		if (tids[i] == tid)
			return true;
	return false;
}

/* The process of a thread; 0 when it is gone. */
static pid_t process_of(pid_t tid)
{
	char path[64], text[1024], *line;
	int pid = 0, fd;
	ssize_t nr;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	nr = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[MAX(nr, 0)] = '\0';
	line = strstr(text, "\nTgid:");
	return line && sscanf(line, "\nTgid: %d", &pid) == 1 ? pid : 0;
}

/* Has @pid its events from its parent? Then these events told of its fork, or of an exec since. */
static bool has_inherited(struct sampler *s, pid_t pid)
{
	uint64_t birth_ns;
	pid_t parent;

	if (!maps_birth(s->maps, pid, time_now_ns(), &birth_ns, &parent))
		return false;
	/* While there were others they told of everybody, too. */
	return birth_ns >= s->alone_ns ||
	       (birth_ns >= s->opened_ns && counters_has_task(s->counters, parent));
}

/*
 * Threads and children of tasks we hold are followed by inheritance already:
 * opening them again would count them twice. Only those whose parent we never
 * held are new, and those who were known by other events before these.
 */
static bool is_followed(struct sampler *s, pid_t tid)
{
	pid_t pid = process_of(tid);

	return is_listed(s->target.tids, s->target.nr_tids, tid) ||
	       is_listed(s->target.tids, s->target.nr_tids, pid) ||
	       counters_has_task(s->counters, tid) || counters_has_task(s->counters, pid) ||
	       has_inherited(s, pid);
}

/* Tasks of the user, or of that name, that were not there before. */
static void look_for_tasks(struct sampler *s, uint64_t since_ns)
{
	struct target *t = &s->target;
	pid_t *tids = NULL, *fresh;
	uint32_t nr_fresh = 0;
	struct err e;
	int nr = t->kind == TARGET_NAME ? list_named(t, &tids, NULL)
					: counters_list_user(s->config.uid, &tids, NULL);

	if (nr < 0) {
		free(tids);
		return;
	}
	/* Who was forked by one we hold: nobody asks for the side-band while nothing is sampled. */
	rcu_thread_offline();
	sideband_drain(s->sideband);
	rcu_thread_online();
	nr = (int)without_self(tids, (uint32_t)nr);
	fresh = xcalloc((size_t)nr, sizeof(*fresh));
	for (int i = 0; i < nr; i++)
		if (!is_followed(s, tids[i]))
			fresh[nr_fresh++] = tids[i];
	if (nr_fresh) {
		if (counters_add_tasks(s->counters, fresh, nr_fresh, &e))
			tick_message(s, "%s", e.text);
		recording_add(s, fresh, nr_fresh, since_ns);
	}
	free(fresh);
	free(t->tids);
	t->tids = tids;
	t->nr_tids = (uint32_t)nr;
}

bool target_reap(struct target *t)
{
	int status;

	if (!t->command || waitpid(t->command, &status, WNOHANG) != t->command)
		return false;
	atomic_store_explicit(&t->status, status, memory_order_relaxed);
	t->command = 0;
	if (t->command_fd >= 0)
		close(t->command_fd);
	t->command_fd = -1;
	t->gone |= t->kind == TARGET_COMMAND;
	return t->gone;
}

void target_update(struct sampler *s, uint64_t now_ns)
{
	struct target *t = &s->target;
	bool alive = false;

	switch (t->kind) {
	case TARGET_SYSTEM:
	case TARGET_CGROUP:
	case TARGET_COMMAND:
		break;
	case TARGET_PIDS:
	case TARGET_TIDS:
		for (uint32_t i = 0; i < t->nr_pids; i++)
			alive |= kill(t->pids[i], 0) == 0 || errno == EPERM;
		t->gone = !alive;
		break;
	case TARGET_USER:
	case TARGET_NAME:
		if (now_ns - t->looked_ns >= TARGET_LOOK_NS) {
			t->looked_ns = now_ns;
			look_for_tasks(s, now_ns);
		}
		break;
	}
	/* Whoever is sampled now: it is our child, and main returns how it ended. */
	target_reap(t);
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
	if (t->command_fd >= 0)
		close(t->command_fd);
	free_who(t);
}
