// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The target: system, processes, tasks, user, cgroup, names, command; tasks that join later, or
 * hang in an exec.
 *
 * Runs on: set-up, then the builder.
 */
#include "sampler/internal.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <regex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <urcu-qsbr.h>

#include "sampler/event/event.h"
#include "sampler/hot/hot.h"
#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/base/text.h"
#include "symbols/base/thread.h"
#include "symbols/image/image.h"
#include "symbols/process/process.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/symbols.h"

/*
 * The processes of --name: one job at a time reads the names of all processes. A job that hangs is
 * kept until it ends, and the next jobs leave out the command line of its process.
 *
 * Runs on: set-up, then the builder; jobs on helpers.
 */

/* A read that takes longer hangs. */
#define HANG_NS 250000000ULL

/* How often a job is looked at. */
#define STEP_NS 20000000ULL

/* Jobs that hang; then command lines are no longer read. */
#define HUNG_MAX 16U

/* For the helpers at the end. */
#define END_NS 100000000ULL

struct names_job {
	struct job job;
	process_names_read_fn read;
	pid_t guard;
	char *pattern;
	bool threads; /* no command lines */
	uint32_t nr_without;
	pid_t without[HUNG_MAX]; /* no command line is read of these */
	atomic_int pid;		 /* the process that is read; relaxed */
	bool failed;
	pid_t *pids;
	uint32_t nr, room;
};

struct process_names {
	process_names_read_fn read;
	pid_t guard;
	unsigned int nr_users;
	struct helpers *helpers;
	struct names_job *job; /* NULL: none runs */
	struct names_job *hung[HUNG_MAX];
	uint32_t nr_hung;
	pid_t told;		/* hangs, not taken yet; 0: none */
	struct names_job *last; /* finished; NULL: none */
};

static void drop(struct job *job)
{
	struct names_job *j = (struct names_job *)job;

	free(j->pattern);
	free(j->pids);
	free(j);
}

static bool is_without(const struct names_job *j, pid_t pid)
{
	for (uint32_t i = 0; i < j->nr_without; i++)
		if (j->without[i] == pid)
			return true;
	return false;
}

/* Match the name of the first thread, and that of the program. */
static bool matches(struct names_job *j, const regex_t *name, pid_t pid)
{
	char text[512], *base;

	if (!j->read(pid, "comm", text, sizeof(text))) {
		text[strcspn(text, "\n")] = '\0';
		/* It is no path, and may have a slash. */
		if (!regexec(name, text, 0, NULL, 0))
			return true;
	}
	if (j->threads || is_without(j, pid))
		return false;
	atomic_store_explicit(&j->pid, pid, memory_order_relaxed);
	if (watch_begin(&j->job.watch))
		return false;
	if (j->read(pid, "cmdline", text, sizeof(text)))
		text[0] = '\0';
	watch_end(&j->job.watch, 0);
	text[strcspn(text, "\n")] = '\0';
	base = strrchr(text, '/');
	return text[0] && !regexec(name, base ? base + 1 : text, 0, NULL, 0);
}

static void run(struct job *job)
{
	struct names_job *j = (struct names_job *)job;
	struct dirent *entry;
	regex_t name;
	DIR *dir;

	j->failed = regcomp(&name, j->pattern, REG_EXTENDED | REG_NOSUB);
	if (j->failed)
		return;
	dir = opendir("/proc");
	while (dir && !j->failed && (entry = readdir(dir))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid <= 0 || pid == getpid() || pid == j->guard || !matches(j, &name, pid))
			continue;
		j->failed = !array_reserve(&j->pids, &j->room, j->nr + 1ULL);
		if (!j->failed)
			j->pids[j->nr++] = pid;
	}
	if (dir)
		closedir(dir);
	regfree(&name);
}

/* @guard: the guard of this process, which is never found; 0: none. NULL: out of memory. */
static struct process_names *process_names_new(process_names_read_fn read, pid_t guard)
{
	struct process_names *n = calloc(1, sizeof(*n));

	if (!n || helpers_new(&n->helpers, -1)) {
		free(n);
		return NULL;
	}
	n->read = read;
	n->guard = guard;
	n->nr_users = 1;
	return n;
}

/* Return @n for one more user, until its process_names_put(). NULL is allowed in both. */
static struct process_names *process_names_share(struct process_names *n)
{
	if (n)
		n->nr_users++;
	return n;
}

static void process_names_put(struct process_names *n)
{
	if (!n || --n->nr_users)
		return;
	if (n->job)
		helper_job_leave(&n->job->job);
	for (uint32_t i = 0; i < n->nr_hung; i++)
		helper_job_leave(&n->hung[i]->job);
	if (n->last)
		drop(&n->last->job);
	helpers_free(n->helpers, time_now_ns() + END_NS);
	free(n);
}

/* Make a job; NULL: out of memory. */
static struct names_job *new_job(struct process_names *n, const char *pattern, bool threads)
{
	struct names_job *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	j->job.run = run;
	j->job.drop = drop;
	j->read = n->read;
	j->guard = n->guard;
	j->threads = threads;
	j->pattern = strdup(pattern);
	for (uint32_t i = 0; i < n->nr_hung; i++)
		j->without[j->nr_without++] =
			atomic_load_explicit(&n->hung[i]->pid, memory_order_relaxed);
	if (!j->pattern) {
		drop(&j->job);
		return NULL;
	}
	return j;
}

/* Keep the list of a job that has ended as the last one. */
static void keep(struct process_names *n, struct names_job *j)
{
	if (j->failed) {
		drop(&j->job);
		return;
	}
	if (n->last)
		drop(&n->last->job);
	n->last = j;
}

/* Return the number of processes in the last list; -ENOMEM: none is of this pattern. */
static int take_last(const struct process_names *n, const char *pattern, const pid_t **pids)
{
	if (!n->last || strcmp(n->last->pattern, pattern))
		return -ENOMEM;
	*pids = n->last->pids;
	return (int)n->last->nr;
}

/* Make the list here, without command lines: then nothing hangs. */
static int look_at_threads(struct process_names *n, const char *pattern, const pid_t **pids)
{
	struct names_job *j = new_job(n, pattern, true);

	if (j) {
		run(&j->job);
		keep(n, j);
	}
	return take_last(n, pattern, pids);
}

/* Free the jobs that no longer hang. */
static void tidy(struct process_names *n)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n->nr_hung; i++)
		if (helper_job_done(&n->hung[i]->job))
			drop(&n->hung[i]->job);
		else
			n->hung[kept++] = n->hung[i];
	n->nr_hung = kept;
}

/* Take the list of the job if it has ended, put it aside if it hangs. False: it goes on. */
static bool end_job(struct process_names *n)
{
	struct names_job *j = n->job;

	if (helper_job_done(&j->job)) {
		keep(n, j);
	} else if (watch_blocked_ns(&j->job.watch, time_now_ns()) >= HANG_NS) {
		n->told = atomic_load_explicit(&j->pid, memory_order_relaxed);
		n->hung[n->nr_hung++] = j;
		/* It ends with this read. */
		atomic_store_explicit(&j->job.watch.cancel, true, memory_order_relaxed);
	} else {
		return false;
	}
	n->job = NULL;
	return true;
}

/* Start a job; false: there are no more helpers. */
static bool start_job(struct process_names *n, const char *pattern)
{
	n->job = n->nr_hung < HUNG_MAX ? new_job(n, pattern, false) : NULL;
	if (n->job && helpers_start(n->helpers, &n->job->job)) {
		drop(&n->job->job);
		n->job = NULL;
	}
	return n->job;
}

/* Run jobs until one ends that began in this call; false: none did until @until_ns. */
static bool run_jobs(struct process_names *n, const char *pattern, uint64_t until_ns)
{
	uint32_t nr_hung;
	uint64_t now_ns;

	do {
		if (!n->job && !start_job(n, pattern))
			return false;
		helpers_wait(n->helpers, &n->job->job, MIN(time_now_ns() + STEP_NS, until_ns));
		nr_hung = n->nr_hung;
		if (end_job(n) && n->nr_hung == nr_hung)
			return true;
		now_ns = time_now_ns();
	} while (now_ns < until_ns);
	return false;
}

/*
 * Get the processes that match @pattern, but for this one and its guard: *pids, until the next
 * call. Waits at most @wait_ns for a list, then takes the last one; where there is none, names of
 * threads alone. Returns their number or -ENOMEM.
 */
static int process_names_look(struct process_names *n, const char *pattern, uint64_t wait_ns,
			      const pid_t **pids)
{
	uint64_t until_ns = time_now_ns() + wait_ns;
	bool online = rcu_read_ongoing();

	tidy(n);
	/* Of an earlier call. */
	if (n->job && !end_job(n) && strcmp(n->job->pattern, pattern)) {
		helper_job_leave(&n->job->job);
		n->job = NULL;
	}
	if (online)
		rcu_thread_offline();
	run_jobs(n, pattern, until_ns);
	if (online)
		rcu_thread_online();
	if (n->nr_hung == HUNG_MAX || take_last(n, pattern, pids) < 0)
		return look_at_threads(n, pattern, pids);
	return take_last(n, pattern, pids);
}

/* Return a process with a command line that was found to hang since the last call; 0: none. *@nr:
 * how many hang now. */
static pid_t process_names_take_hung(struct process_names *n, uint32_t *nr)
{
	pid_t pid = n->told;

	n->told = 0;
	*nr = n->nr_hung;
	return pid;
}

/* ---- the sampled processes ---- */

#define END_MS 500 /* at most, for the end of the command */

/* At most, for a list of names: at the start, and while sampling. */
#define NAMES_START_NS 1000000000ULL

#define NAMES_LOOK_NS 50000000ULL

/* In the child: wait for the release, then exec the command. */
static void __attribute__((noreturn))
run_command(char *const *command, int release_fd, int failed_fd, bool quiet)
{
	char byte;
	int fd;

	if (read(release_fd, &byte, 1) != 1)
		_exit(127); /* the parent has ended */
	if (quiet) {
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
		for (int i = 0; i < 3 && fd >= 0; i++)
			dup2(fd, i);
	} else {
		dup2(STDERR_FILENO, STDOUT_FILENO);
	}
	signal(SIGPIPE, SIG_DFL);
	invoker_unset_cache();
	execvp(command[0], command);
	fd = errno;
	if (write(failed_fd, &fd, sizeof(fd)) < 0)
		_exit(126);
	_exit(127);
}

/* Fork the command; it waits for target_release(). */
static int start_command(struct target *t, const struct sampler_config *config, struct err *e)
{
	int release[2], failed[2];

	if (pipe2(release, O_CLOEXEC))
		return err_set(e, -errno, "cannot run '%s': pipe: %s", config->command[0],
			       strerror(errno));
	if (pipe2(failed, O_CLOEXEC)) {
		int code = -errno;

		close(release[0]);
		close(release[1]);
		return err_set(e, code, "cannot run '%s': pipe: %s", config->command[0],
			       strerror(-code));
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
		return err_set(e, -errno, "cannot run '%s': fork: %s", config->command[0],
			       strerror(errno));
	t->leader = t->command;
	t->command_fd = (int)syscall(SYS_pidfd_open, t->command, 0);
	t->tids = xcalloc(1, sizeof(pid_t));
	t->tids[0] = t->command;
	t->nr_tids = 1;
	return 0;
}

/* Remove our own threads and processes from a list of tasks. Returns how many are left. */
static uint32_t without_self(pid_t *tids, uint32_t nr, pid_t guard)
{
	pid_t self = getpid();
	uint32_t kept = 0;

	for (uint32_t i = 0; i < nr; i++)
		if (tids[i] != guard && !sandbox_has(tids[i]) && !sandbox_memory_has(tids[i]) &&
		    syscall(SYS_tgkill, self, tids[i], 0))
			tids[kept++] = tids[i];
	return kept;
}

static pid_t *copy_pids(const pid_t *pids, uint32_t nr)
{
	pid_t *copy = xcalloc(nr, sizeof(*copy));

	memcpy(copy, pids, nr * sizeof(*copy));
	return copy;
}

/* The root has every task: sampled like the system. */
static int open_cgroup(struct target *t, const char *name, struct err *e)
{
	bool whole;
	int fd = task_list_open_cgroup(TARGET_CGROUP_MOUNTS, name, &whole, e);

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
	t->pattern = xcalloc(1, sizeof(*t->pattern));
	if (!regcomp(t->pattern, name, REG_EXTENDED | REG_NOSUB))
		return 0;
	free(t->pattern);
	t->pattern = NULL;
	return err_set(e, -EINVAL,
		       "'%.100s' is not a regular expression\n"
		       "  process and program names are matched\n"
		       "  example: --name '^nginx$'",
		       name);
}

/* Return the list of @nr tasks, also if there is none: NULL would be every task. */
static pid_t *as_list(pid_t *tids, int nr)
{
	return tids || nr < 0 ? tids : xcalloc(1, sizeof(*tids));
}

/* List all threads of processes with a matching name. */
static int list_named(const struct target *t, const char *name, uint64_t wait_ns, pid_t **tids)
{
	const pid_t *pids;
	int nr = process_names_look(t->names, name, wait_ns, &pids);

	*tids = NULL;
	if (nr > 0)
		nr = task_list_tree(pids, (uint32_t)nr, tids);
	*tids = as_list(*tids, nr);
	return nr;
}

/* List the tasks with a name for the first time. */
static int find_named(struct target *t, const struct sampler_config *config, struct err *e)
{
	int code = compile_name(t, config->name, e);

	if (code)
		return code;
	if (!t->names)
		t->names = process_names_new(task_list_read, config->guard);
	if (!t->names)
		return err_set(e, -ENOMEM, "out of memory");
	code = list_named(t, config->name, NAMES_START_NS, &t->tids);
	return code >= 0 ? code : err_set(e, code, "out of memory");
}

/* List the threads of the processes and of their descendants. All processes have to exist. */
static int list_pids(struct target *t, struct err *e)
{
	int nr = task_list_threads(t->pids, t->nr_pids, &t->tids, e);

	if (nr < 0)
		return nr;
	t->nr_named = (uint32_t)nr;
	free(t->tids);
	return task_list_tree(t->pids, t->nr_pids, &t->tids);
}

/* Copy the list of threads. All have to exist. */
static int list_tids(struct target *t, struct err *e)
{
	for (uint32_t i = 0; i < t->nr_pids; i++)
		if (kill(t->pids[i], 0) && errno == ESRCH)
			return err_set(e, -ESRCH,
				       "no thread with tid %d\n"
				       "  it has exited, or never existed\n"
				       "  'ps -eL' lists the running threads",
				       (int)t->pids[i]);
	t->tids = copy_pids(t->pids, t->nr_pids);
	return (int)t->nr_pids;
}

static int find_tasks(struct target *t, const struct sampler_config *config, struct err *e)
{
	switch (config->target) {
	case TARGET_PIDS:
		t->pids = copy_pids(config->pids, config->nr_pids);
		t->nr_pids = config->nr_pids;
		return list_pids(t, e);
	case TARGET_TIDS:
		t->pids = copy_pids(config->pids, config->nr_pids);
		t->nr_pids = config->nr_pids;
		return list_tids(t, e);
	case TARGET_USER:
		return task_list_user(config->uid, &t->tids, e);
	case TARGET_NAME:
		return find_named(t, config, e);
	default:
		return 0;
	}
}

void target_init(struct target *t)
{
	*t = (struct target){
		.cgroup_fd = -1, .release_fd = -1, .failed_fd = -1, .command_fd = -1
	};
}

/* Return the name of the user, or the number if it has none. */
static const char *name_of_user(const struct sampler_config *config, char buf[static 16])
{
	snprintf(buf, 16, "%u", (unsigned int)config->uid);
	return config->user ? config->user : buf;
}

/* Find the tasks, or start the command, of a target without any. */
static int open_target(struct target *t, const struct sampler_config *config, struct err *e)
{
	char user[16];
	int nr;

	t->kind = config->target;
	if (config->target == TARGET_SYSTEM)
		return 0;
	if (config->target == TARGET_COMMAND)
		return start_command(t, config, e);
	if (config->target == TARGET_CGROUP)
		return open_cgroup(t, config->cgroup, e);
	nr = find_tasks(t, config, e);
	if (nr < 0)
		return nr;
	t->nr_tids = config->include_self ? (uint32_t)nr
					  : without_self(t->tids, (uint32_t)nr, config->guard);
	if (t->nr_tids == 0 && config->target == TARGET_PIDS)
		return task_list_no_process(t->pids[0], e);
	if (t->nr_tids == 0 && config->target != TARGET_NAME)
		return err_set(e, -ESRCH,
			       "user %s has no process\n"
			       "  there is nothing to sample\n"
			       "  start a program first, or run without -u",
			       name_of_user(config, user));
	return 0;
}

int target_open(struct target *t, const struct sampler_config *config, struct err *e)
{
	target_init(t);
	return open_target(t, config, e);
}

int target_find(struct target *t, const struct target *old, const struct sampler_config *config,
		struct err *e)
{
	int nr;

	target_init(t);
	/* Reads that hang are known. */
	t->names = config->target == TARGET_NAME ? process_names_share(old->names) : NULL;
	if (config->target != TARGET_COMMAND)
		return open_target(t, config, e);
	t->kind = TARGET_COMMAND;
	nr = old->leader > 0 ? task_list_tree(&old->leader, 1, &t->tids) : 0;
	t->nr_tids = (uint32_t)MAX(nr, 0);
	return t->nr_tids ? 0
			  : err_set(e, -ESRCH,
				    "the command has ended\n"
				    "  or none was started\n"
				    "  choose another target");
}

/* Free everything but the command. */
static void free_tasks(struct target *t)
{
	free(t->tids);
	free(t->pids);
	if (t->cgroup_fd >= 0)
		close(t->cgroup_fd);
	process_names_put(t->names);
	if (t->pattern)
		regfree(t->pattern);
	free(t->pattern);
}

void target_drop(struct target *t)
{
	free_tasks(t);
	target_init(t);
}

void target_replace(struct target *old, struct target *t)
{
	assert(old != t);
	free_tasks(old);
	old->kind = t->kind;
	old->tids = t->tids;
	old->nr_tids = t->nr_tids;
	old->nr_named = t->nr_named;
	old->pids = t->pids;
	old->nr_pids = t->nr_pids;
	old->cgroup_fd = t->cgroup_fd;
	old->names = t->names;
	old->pattern = t->pattern;
	old->per_task = t->per_task;
	old->brief = t->brief;
	old->ran_ns = 0;
	old->wide = t->wide;
	old->gone = false;
	old->looked_ns = 0;
}

void target_describe(struct target *t, const struct sampler_config *c)
{
	char text[sizeof(t->text)] = "system", user[16];
	size_t size;

	if (c->replay) {
		text_format(t->text, sizeof(t->text), "recording %s", c->replay);
		return;
	}
	switch (c->target) {
	case TARGET_SYSTEM:
		break;
	case TARGET_PIDS:
		snprintf(text, sizeof(text), c->nr_pids > 1 ? "pid %d and %u more" : "pid %d",
			 (int)c->pids[0], c->nr_pids - 1);
		break;
	case TARGET_TIDS:
		snprintf(text, sizeof(text), c->nr_pids > 1 ? "thread %d and %u more" : "thread %d",
			 (int)c->pids[0], c->nr_pids - 1);
		break;
	case TARGET_CGROUP:
		snprintf(text, sizeof(text), "cgroup %s", c->cgroup);
		break;
	case TARGET_NAME:
		snprintf(text, sizeof(text), "name %s", c->name);
		break;
	case TARGET_USER:
		snprintf(text, sizeof(text), "user %s", name_of_user(c, user));
		break;
	case TARGET_COMMAND:
		snprintf(text, sizeof(text), "command %s", c->command[0]);
		break;
	}
	size = strlen(text);
	if (c->cpus)
		snprintf(text + size, sizeof(text) - size,
			 c->nr_cpus > 1 ? " on CPU %d and %u more" : " on CPU %d", c->cpus[0],
			 c->nr_cpus - 1);
	text_sanitise(t->text, sizeof(t->text), text, strlen(text));
}

/*
 * Get the tasks of TARGET_USER and TARGET_NAME as of now: malloc'ed *tids, not NULL also if there
 * are none. nr or -errno.
 */
static int target_list(const struct target *t, const struct sampler_config *config, pid_t **tids)
{
	int nr = t->kind == TARGET_NAME ? list_named(t, config->name, NAMES_LOOK_NS, tids)
					: task_list_user(config->uid, tids, NULL);

	*tids = as_list(*tids, nr);
	return nr < 0 ? nr : (int)without_self(*tids, (uint32_t)nr, config->guard);
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
	/* A successful exec closes the other end: then nothing is read. */
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

bool target_reap(struct target *t)
{
	if (!t->command || waitpid(t->command, NULL, WNOHANG) != t->command)
		return false;
	t->command = 0;
	if (t->command_fd >= 0)
		close(t->command_fd);
	t->command_fd = -1;
	t->gone |= t->kind == TARGET_COMMAND;
	return t->gone;
}

/* Note the ends of processes and of the command. */
static void target_check(struct target *t)
{
	bool alive = false;

	if (t->kind == TARGET_PIDS || t->kind == TARGET_TIDS) {
		for (uint32_t i = 0; i < t->nr_pids; i++)
			alive |= kill(t->pids[i], 0) == 0 || errno == EPERM;
		t->gone = !alive;
	}
	/* For all targets: the command is our child. */
	target_reap(t);
}

/* As perf record does, and wait a moment for its end. */
void target_end_command(struct target *t)
{
	struct pollfd ended = { .fd = t->command_fd, .events = POLLIN };

	if (t->command <= 0 || t->release_fd >= 0 || target_reap(t) ||
	    syscall(SYS_pidfd_send_signal, t->command_fd, SIGTERM, NULL, 0))
		return;
	poll(&ended, 1, END_MS);
	target_reap(t);
}

void target_close(struct target *t)
{
	target_end_command(t);
	if (t->release_fd >= 0) {
		/* Not released: the child reads the end of the pipe and exits. */
		close(t->release_fd);
		if (t->command > 0)
			waitpid(t->command, NULL, 0);
	}
	if (t->failed_fd >= 0)
		close(t->failed_fd);
	if (t->command_fd >= 0)
		close(t->command_fd);
	free_tasks(t);
}

/*
 * Open events on new tasks of a user or with a name, and again on tasks that were hanging in an
 * exec. Runs on: the builder.
 */

/* How often to search for new tasks. */
#define FOLLOW_NS 1000000000ULL

/* Tasks that are tried again together: each takes 1.5 ms if it still hangs, the first ones more. */
#define AGAIN_MAX 8

/* Return the process of a thread; 0: it has ended. */
static pid_t process_of(pid_t tid)
{
	char text[1024];
	uint64_t pid;

	if (task_list_read(tid, "status", text, sizeof(text)) ||
	    !procfs_status_number(text, strlen(text), "Tgid", &pid))
		return 0;
	return (pid_t)pid;
}

/* Report whether @pid inherited events from its parent: then its fork or exec was in our records.
 */
static bool has_inherited(const struct follow_search *f, pid_t pid)
{
	const struct sampler *s = f->sampler;
	uint64_t birth_ns;
	pid_t parent;

	if (!maps_birth(s->store.maps, pid, time_now_ns(), &birth_ns, &parent))
		return false;
	/* While events of another target were open, their records covered all processes. */
	return birth_ns >= s->live.alone_ns ||
	       (birth_ns >= s->live.opened_ns && task_set_has(&f->opened, parent));
}

/*
 * Report whether @tid has events already. Threads and children of our tasks inherit them, and
 * opening them again would count twice. New are tasks of a parent that never had events, and tasks
 * known from earlier events. *@left_out: its process, if that was left out.
 */
static bool is_followed(const struct follow_search *f, pid_t tid, pid_t *left_out)
{
	pid_t pid;

	*left_out = 0;
	if (task_set_has(&f->listed, tid) || task_set_has(&f->opened, tid))
		return true;
	pid = f->process_of(tid);
	/* Its threads and children inherit nothing before its events are open. */
	if (task_set_has(&f->left_out, pid)) {
		*left_out = pid;
		return false;
	}
	return task_set_has(&f->listed, pid) || task_set_has(&f->opened, pid) ||
	       f->has_inherited(f, pid);
}

/*
 * Write the tasks of @tids without events to @fresh, which has @nr elements. Returns how many. A
 * process that was left out comes before its threads: their next ones inherit.
 */
static uint32_t follow_search(const struct follow_search *f, const pid_t *tids, uint32_t nr,
			      pid_t *fresh)
{
	uint32_t nr_fresh = 0;
	pid_t left_out;

	for (uint32_t i = 0; i < nr; i++) {
		if (is_followed(f, tids[i], &left_out))
			continue;
		/* With more than one thread, its exec is over. */
		if (left_out && task_find(fresh, nr_fresh, left_out) == nr_fresh &&
		    nr_fresh + 1 < nr)
			fresh[nr_fresh++] = left_out;
		fresh[nr_fresh++] = tids[i];
	}
	return nr_fresh;
}

/* Search @tids for tasks without events. Returns how many are @fresh. */
static uint32_t find_fresh(const struct sampler *s, const pid_t *tids, uint32_t nr, pid_t *fresh)
{
	struct follow_search f = { .process_of = process_of,
				   .has_inherited = has_inherited,
				   .sampler = s };
	uint32_t nr_opened, nr_left, nr_fresh;
	const pid_t *opened = counters_tasks(s->live.counters, &nr_opened);
	const pid_t *left = counters_left_out(s->live.counters, &nr_left);

	task_set_init(&f.listed, s->target.tids, s->target.nr_tids);
	task_set_init(&f.opened, opened, nr_opened);
	task_set_init(&f.left_out, left, nr_left);
	nr_fresh = follow_search(&f, tids, nr, fresh);
	task_set_fini(&f.listed);
	task_set_fini(&f.opened);
	task_set_fini(&f.left_out);
	return nr_fresh;
}

static bool has_name(const void *pattern, const char *name)
{
	return !regexec(pattern, name, 0, NULL, 0);
}

/* Choose the processes of some tasks. */
static void choose_all(struct sampler *s, const pid_t *tids, int nr)
{
	uint64_t now_ns = time_now_ns();

	for (int i = 0; i < nr; i++)
		if (process_of(tids[i]) == tids[i])
			maps_choose(s->store.maps, tids[i], now_ns);
}

/* Tasks of a target: their processes are read before their first samples. */
#define ASKED_MAX 256u

/* Have the processes of the target read: at their first samples would be too late, and these would
 * be of an unknown process. */
static void ask_processes(struct sampler *s)
{
	uint64_t now_ns = time_now_ns();
	bool any = false;

	for (uint32_t i = 0; i < MIN(s->target.nr_tids, ASKED_MAX); i++)
		any |= maps_ask(s->store.maps, process_of(s->target.tids[i]), now_ns);
	if (any)
		symbols_wake(s->store.symbols);
}

void target_choose(struct sampler *s)
{
	struct target *t = &s->target;

	ask_processes(s);
	s->live.only_chosen = t->wide;
	maps_choose_by(s->store.maps, t->wide && t->pattern ? has_name : NULL, t->pattern);
	if (!t->wide)
		return;
	choose_all(s, t->tids, (int)t->nr_tids);
	free(t->tids);
	t->tids = NULL;
	t->nr_tids = 0;
}

/* Of the processes of the target, choose the ones that were forked before their parent was chosen.
 */
static void choose_children(struct sampler *s)
{
	const struct target *t = &s->target;
	pid_t *tids = NULL;
	int nr = 0;

	if (t->kind == TARGET_USER)
		nr = target_list(t, &s->config, &tids);
	else if (t->kind == TARGET_PIDS)
		nr = task_list_tree(t->pids, t->nr_pids, &tids);
	else if (t->leader > 0)
		nr = task_list_tree(&t->leader, 1, &tids);
	choose_all(s, tids, nr);
	free(tids);
}

/* Choose the processes that have the name in their command line, with their children. */
static void choose_new(struct sampler *s)
{
	const pid_t *pids;
	pid_t *fresh, *tids = NULL;
	uint32_t nr_fresh = 0;
	int nr = process_names_look(s->target.names, s->config.name, NAMES_LOOK_NS, &pids);

	fresh = xcalloc((size_t)MAX(nr, 0) + 1, sizeof(*fresh));
	for (int i = 0; i < nr; i++)
		if (!maps_is_chosen(s->store.maps, pids[i], time_now_ns()))
			fresh[nr_fresh++] = pids[i];
	nr = nr_fresh ? task_list_tree(fresh, nr_fresh, &tids) : 0;
	choose_all(s, tids, nr);
	free(tids);
	free(fresh);
}

/* Open events on tasks of the user or name that are new. */
static void add_tasks(struct sampler *s, uint64_t since_ns)
{
	struct target *t = &s->target;
	pid_t *tids = NULL, *fresh;
	uint32_t nr_fresh;
	struct err e;
	int nr = target_list(t, &s->config, &tids);

	if (nr < 0) {
		free(tids);
		return;
	}
	/* Read forks of our tasks first: no thread drains the side-band while nothing is sampled.
	 */
	rcu_thread_offline();
	sideband_drain(s->live.sideband);
	rcu_thread_online();
	fresh = xcalloc((size_t)nr, sizeof(*fresh));
	nr_fresh = find_fresh(s, tids, (uint32_t)nr, fresh);
	if (nr_fresh) {
		if (counters_add_tasks(s->live.counters, fresh, nr_fresh, &e))
			mailbox_say(&s->mailbox, "%s", e.text);
		recording_add(&s->recording, s->live.counters, fresh, nr_fresh, since_ns);
	}
	free(fresh);
	free(t->tids);
	t->tids = tids;
	t->nr_tids = (uint32_t)nr;
}

/* Report a process of which the command line hangs. */
static void say_hung(struct sampler *s)
{
	uint32_t nr;
	pid_t pid = process_names_take_hung(s->target.names, &nr);
	char name[32];

	if (!pid)
		return;
	if (task_list_read(pid, "comm", name, sizeof(name)))
		name[0] = '\0';
	name[strcspn(name, "\n")] = '\0';
	mailbox_add(&s->mailbox,
		    "cannot read the command line of pid %d (%s): it hangs, as %u do; --name "
		    "finds it by that name alone",
		    (int)pid, name, nr);
}

/*
 * List the busy tasks, each followed by the threads of its process that have no events, if it was
 * left out: they inherited nothing. Returns how many; *@out malloc'ed.
 */
static uint32_t with_threads(const struct sampler *s, const pid_t *busy, uint32_t nr, pid_t **out)
{
	uint32_t nr_opened, nr_left, nr_out = 0;
	const pid_t *opened = counters_tasks(s->live.counters, &nr_opened);
	const pid_t *left = counters_left_out(s->live.counters, &nr_left);

	*out = NULL;
	for (uint32_t i = 0; i < nr; i++) {
		bool whole = s->target.kind != TARGET_TIDS &&
			     task_find(left, nr_left, busy[i]) < nr_left;
		pid_t *threads = NULL;
		struct err e;
		int found = whole ? task_list_threads(&busy[i], 1, &threads, &e) : 0;

		*out = xrealloc_array(*out, nr_out + 1 + (uint32_t)MAX(found, 0), sizeof(**out));
		(*out)[nr_out++] = busy[i];
		for (int k = 0; k < found; k++)
			if (threads[k] != busy[i] &&
			    task_find(opened, nr_opened, threads[k]) == nr_opened)
				(*out)[nr_out++] = threads[k];
		free(threads);
	}
	return nr_out;
}

/*
 * Try some of the tasks again that were hanging in an exec, the next ones each time: none has to
 * wait for others that never go on.
 */
static void add_busy(struct sampler *s, uint64_t since_ns)
{
	struct target *t = &s->target;
	pid_t busy[AGAIN_MAX], *tids;
	uint32_t nr = counters_busy(s->live.counters, t->again, busy, AGAIN_MAX);
	struct err e;

	t->again = nr == AGAIN_MAX ? busy[nr - 1] : 0;
	if (!nr)
		return;
	nr = with_threads(s, busy, nr, &tids);
	if (counters_add_tasks(s->live.counters, tids, nr, &e))
		mailbox_say(&s->mailbox, "%s", e.text);
	for (uint32_t i = 0; i < nr; i++)
		if (!counters_is_busy(s->live.counters, tids[i]))
			recording_add(&s->recording, s->live.counters, &tids[i], 1, since_ns);
	free(tids);
}

/* Report a task without events, once. */
static void say_busy(struct sampler *s)
{
	pid_t tid = 0;

	if (counters_busy(s->live.counters, 0, &tid, 1) && tid != s->target.busy)
		mailbox_add(&s->mailbox, "cannot sample task %d: it hangs in an exec", (int)tid);
	s->target.busy = tid;
}

void follow_target(struct sampler *s, uint64_t now_ns)
{
	struct target *t = &s->target;

	if (now_ns - t->looked_ns >= FOLLOW_NS) {
		t->looked_ns = now_ns;
		if (t->wide && t->names)
			choose_new(s);
		else if (t->wide)
			choose_children(s);
		else if (t->kind == TARGET_USER || t->kind == TARGET_NAME)
			add_tasks(s, now_ns);
		if (t->names)
			say_hung(s);
		add_busy(s, now_ns);
	}
	say_busy(s);
	target_check(t);
}
