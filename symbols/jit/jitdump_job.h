/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Jobs on one jitdump: search it and read its new records; read the instructions of one function.
 *
 * A job runs on a helper, or on the caller without helpers, and uses nothing but its memory: it may
 * hang and be left.
 */
#ifndef SYMBOLS_JIT_JITDUMP_JOB_H
#define SYMBOLS_JIT_JITDUMP_JOB_H

#include "symbols/jit/jitdump.h"
#include "symbols/jit/jitreads.h"
#include "symbols/image/image.h"

/* An object with the name of a jitdump. */
struct jitdump_name {
	uint32_t object;
	pid_t first_pid;    /* first process that mapped it: later ones do not change it */
	uint64_t inner_pid; /* the one in its name */
};

/* A file that may be the jitdump of a process, as the job opens it. */
struct jitdump_candidate {
	struct jitdump_name file;
	struct object_identity identity;
	struct object_sighting seen; /* seen.path is owned */
};

/* A job: search a jitdump, or continue reading it. It uses nothing but this. */
struct jitdump_job {
	struct jitread read;
	pid_t pid;
	bool no_proc; /* as in struct jitdumps */
	bool full;    /* no memory for more code */
	char *root;   /* owned */
	struct jitdump_candidate *candidates;
	uint32_t nr_candidates;
	uint64_t process_start; /* field 22 of /proc/PID/stat when it was opened */
	bool asks;		/* whether the process has ended */
	bool closes;		/* the file: names are kept */
	struct jitdump dump;
	int fd;	       /* -1: no jitdump yet, or closed */
	uint64_t size; /* of the jitdump when it was last checked */
	/* Results of one run: */
	int rc;
	bool news; /* code was added */
	bool more; /* it was not read to its end */
	bool gone; /* the process has ended, and its jitdump was read to its end */
	bool closed;
	uint64_t cost_ns;
};

/* Make a job for the process @pid; @root is copied (NULL: none). NULL: no memory. */
struct jitdump_job *jitdump_job_new(pid_t pid, bool no_proc, const char *root);
/* Free a job that does not run; as the job's drop(). */
void jitdump_job_drop(struct job *job);
/* Free the list of candidates. */
void jitdump_job_forget(struct jitdump_job *r);
/*
 * Read @want bytes of @f from the jitdump @fd, within 300 ms, into *@bytes (malloc'ed). Return
 * their number, or -errno.
 */
int jitdump_job_code(struct helpers *helpers, int fd, const struct jitcode_function *f,
		     uint32_t want, uint8_t **bytes);

#endif
