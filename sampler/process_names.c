// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The processes of --name: one job at a time reads the names of all processes. A job that hangs is
 * kept until it ends, and the next jobs leave out the command line of its process.
 *
 * Runs on: set-up, then the builder; jobs on helpers.
 */
#include "sampler/internal.h"

#include <dirent.h>
#include <errno.h>
#include <regex.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sampler/event/event.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "symbols/base/thread.h"
#include "symbols/process/process.h"

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

struct process_names *process_names_new(process_names_read_fn read, pid_t guard)
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

struct process_names *process_names_share(struct process_names *n)
{
	if (n)
		n->nr_users++;
	return n;
}

void process_names_put(struct process_names *n)
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

int process_names_look(struct process_names *n, const char *pattern, uint64_t wait_ns,
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

pid_t process_names_take_hung(struct process_names *n, uint32_t *nr)
{
	pid_t pid = n->told;

	n->told = 0;
	*nr = n->nr_hung;
	return pid;
}
