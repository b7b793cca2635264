/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The stacks of the threads of one process at this moment, on request: whole, with functions of
 * languages, and of the kernel where that is permitted.
 *
 * A thread that sleeps is read from outside. Only where that does not reach the root, and with
 * leave, it is stopped for a moment (stopped.h); its stack is unwound after that.
 *
 * Any thread that may hang, not registered with urcu; beside a session or without one.
 */
#ifndef SAMPLER_TASK_STACKS_H
#define SAMPLER_TASK_STACKS_H

#include "sampler/config.h"
#include "sampler/profile/profile.h"

#define TASK_STACKS_MAX	   4096 /* threads */
#define TASK_STACKS_KERNEL 2048

struct task_stacks_want {
	pid_t pid;
	const pid_t *tids; /* of its threads; NULL: all */
	uint32_t nr_tids;
	bool stop;	    /* threads may be stopped */
	uint32_t languages; /* as in struct sampler_config */
	enum profile_frames frames;
	const atomic_bool *cancel; /* NULL: none */
};

enum task_stacks_state {
	TASK_STACKS_COMPLETE,
	TASK_STACKS_GUESSED, /* the root was reached by a guess */
	TASK_STACKS_CUT,     /* there are callers that are not known */
	TASK_STACKS_NONE,
};

struct task_stack {
	pid_t tid;
	struct safe_text comm; /* owned by the result */
	char state;	       /* as in /proc/PID/stat: S, R, D ...; 0: not known */
	enum task_stacks_state result;
	uint32_t stack;	  /* index in the stacks of the profile; UINT32_MAX: none */
	uint64_t stop_ns; /* that it was stopped; 0: it was not */
	char why[128];	  /* there is no stack, or a cut one; "": not known */
	/* Functions of the kernel, one a line; "": not permitted, or it is not in the kernel. */
	char kernel[TASK_STACKS_KERNEL];
};

struct task_stacks {
	pid_t pid;
	struct safe_text comm, command; /* command line; "": none */
	struct profile *profile;	/* each thread with a stack counts once */
	uint32_t nr;
	struct task_stack *list; /* by tid, the first thread first */
	struct text_arena *texts;
};

/*
 * Read them. 0; -ESRCH: no such process; -EPERM: none of its threads may be read; other -errno,
 * with a sentence.
 */
int task_stacks_read(struct task_stacks **out, const struct task_stacks_want *want, struct err *e);
/* NULL is fine. */
void task_stacks_free(struct task_stacks *t);

/* Return "complete", "guessed", "cut", "none". */
const char *task_stacks_state_name(enum task_stacks_state state);

#endif
