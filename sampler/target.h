/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tasks that are sampled.
 *
 * Threads: set-up, then the builder. TARGET_COMMAND: the command is our child.
 */
#ifndef SAMPLER_TARGET_H
#define SAMPLER_TARGET_H

#include "sampler/config.h"

struct process_names;

struct target {
	enum sampler_target kind;
	pid_t *tids; /* of the tasks opened; NULL: every task */
	uint32_t nr_tids;
	uint32_t nr_named; /* TARGET_PIDS: the first of them, threads of the processes named */
	pid_t *pids;	   /* its end is the target's end */
	uint32_t nr_pids;
	int cgroup_fd;		     /* its folder; -1: none, or the root, which is every task */
	struct process_names *names; /* TARGET_NAME; else NULL */
	pid_t command;		     /* child pid, 0: none */
	pid_t leader;		     /* pid of the command, once started; kept after its end */
	int release_fd;		     /* write one byte: the child execs; -1: none */
	int failed_fd;		     /* readable: the errno of a failed exec; -1: none */
	int command_fd;	    /* pidfd of the command, readable once it has ended; -1: none */
	uint64_t looked_ns; /* when new and busy tasks were last looked for */
	bool gone;	    /* all tasks have ended */
	pid_t busy;	    /* hangs in an exec, as was reported; 0: none */
	pid_t again;	    /* busy tasks above this one are tried next */
	char text[160];	    /* for the title: "system", "pid 42"; clean */
};

/* Set @t to no target at all. */
void target_init(struct target *t);
/* Find the tasks of @config, or start its command. 0, -ESRCH, other -errno with a sentence. */
int target_open(struct target *t, const struct sampler_config *config, struct err *e);
/*
 * Find the tasks of @config for a target beside @old, which does not change. TARGET_COMMAND: that
 * of @old. 0 or -errno with a sentence.
 */
int target_find(struct target *t, const struct target *old, const struct sampler_config *config,
		struct err *e);
/* Free the result of target_find(). */
void target_drop(struct target *t);
/* Move the result of target_find() into @old; the command is kept. */
void target_replace(struct target *old, struct target *t);
/* Set the text of the title. */
void target_describe(struct target *t, const struct sampler_config *config);
/* Return whether single tasks or a cgroup are sampled, not all that a CPU runs. */
bool target_is_part(const struct target *t);
/* Let the command exec. 0, or -errno with a sentence: the exec failed. */
int target_release(struct target *t, char *const *command, struct err *e);
/*
 * Get the tasks of TARGET_USER and TARGET_NAME as of now: malloc'ed *tids, not NULL also if there
 * are none. nr or -errno.
 */
int target_list(const struct target *t, const struct sampler_config *config, pid_t **tids);
/* Reap the command if it has ended. Returns true if that was the end of the target. */
bool target_reap(struct target *t);
/* Note the ends of processes and of the command. */
void target_check(struct target *t);
/* End the command with SIGTERM if it still runs. */
void target_end_command(struct target *t);
/* The same, and free everything. */
void target_close(struct target *t);

#endif
