/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A job: read one JVM. It runs on a helper and uses nothing but its memory: it may hang and be
 * left.
 *
 * The loader owns the job while it does not run.
 */
#ifndef SYMBOLS_JIT_HOTSPOT_JOB_H
#define SYMBOLS_JIT_HOTSPOT_JOB_H

#include "symbols/base/helper.h"
#include "symbols/jit/hotspot.h"

/* The source of a place in compiled code: methods inlined there, innermost first. */
struct hotspot_job_frame {
	const char *name, *file; /* foreign bytes; file "": not known */
	uint32_t line;
};
struct hotspot_method_name {
	uint64_t method, code;
	uint32_t code_size;
	int rc;
	char *name; /* owned; NULL: makes no sense */
};

/* A place with its source: requested, then found. */
struct hotspot_job_chain {
	uint64_t addr;
	uint32_t place, layer;
	uint32_t nr;			  /* 0: not known */
	bool exact;			  /* hotspot_chain() */
	struct hotspot_job_frame *frames; /* owned, with the texts behind them */
};

#define HOTSPOT_FIRST_MAX 64U
#define HOTSPOT_READS_MAX 4000000U /* of pieces of memory, by one job */

/* A job for a helper: read one JVM. */
struct hotspot_job {
	struct job job;
	uint64_t id;		 /* never used again; not 0 */
	_Atomic uint64_t worker; /* hotspot_cage.h; 0: none */
	struct remote remote;
	int dir_fd; /* of /proc/PID: the process that was opened */
	bool open;
	bool left; /* abandoned by its owner while it ran */
	bool scan; /* read the whole code cache; else the code at these addresses */
	uint64_t *pcs;
	uint32_t nr_pcs;
	struct hotspot vm;
	/* Of a worker: memory that each scan begins with, to be read together. */
	uint64_t first[HOTSPOT_FIRST_MAX];
	uint32_t nr_first;
	struct hotspot_method_name *methods; /* wanted, then read */
	uint32_t nr_methods;
	struct hotspot_job_chain *chains; /* the same */
	uint32_t nr_chains;
	size_t chains_memory;	      /* of the frames that were found */
	struct hotspot_frame *frames; /* buffer for one chain */
	/* Out: */
	int rc;
	uint64_t cost_ns, scan_ns; /* CPU time: of all; of the scan alone */
	uint64_t worker_ns;	   /* of all that a worker took */
	double scan_share;	   /* of the scan in that, 0 to 1 */
};

/* Make a job for the process @pid; it does @run. NULL: no memory. */
struct hotspot_job *hotspot_job_new(pid_t pid, void (*run)(struct job *job));
/*
 * Read the tables, if the JVM is not open, then all that the job lists, by @j->remote: without a
 * cage, or in its worker. 0 or -errno.
 */
int hotspot_job_read(struct hotspot_job *j, const struct hotspot_tables *t);
/* Make room for the frames of one chain, j->frames. 0 or -ENOMEM. */
int hotspot_job_begin_chains(struct hotspot_job *j);
/* Store a copy of the first @nr of j->frames as the chain @c; none if the job has no memory left.
 */
void hotspot_job_add_chain(struct hotspot_job *j, struct hotspot_job_chain *c, int nr, bool exact);
/* Free a job that does not run; as the job's drop(). */
void hotspot_job_drop(struct job *job);
/* Abandon a job that runs: it is freed when it ends, if it does. */
void hotspot_job_leave(struct hotspot_job *r);
/* Return how many abandoned jobs still have a helper. Any thread. */
unsigned int hotspot_job_nr_left(void);
/* Free the methods and addresses. */
void hotspot_job_forget(struct hotspot_job *r);
void hotspot_job_free_chains(struct hotspot_job_chain *chains, uint32_t nr);

#endif
