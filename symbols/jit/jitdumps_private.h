/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One process with JIT code: shared by jitdumps.c and jitdumps_limits.c. One thread: the loader. */
#ifndef SYMBOLS_JIT_JITDUMPS_PRIVATE_H
#define SYMBOLS_JIT_JITDUMPS_PRIVATE_H

#include "symbols/jit/jitdump_job.h"

struct jitdumps;

struct jitdumps_entry {
	struct jitdump_job *r; /* the job's while it runs */
	uint32_t object;       /* the memory, layer 0 */
	uint32_t nr_found;     /* jitdumps found before the last search without a result */
	uint64_t due_ns;       /* not checked before */
	uint64_t tell_ns;      /* not reported before */
	uint64_t ask_ns;       /* not asked before whether the process has ended */
	uint64_t gone_ns;      /* when it had; 0: it runs */
	size_t memory;
	uint32_t uid; /* of the process */
	bool runs;    /* the job; it may hang */
	bool looked;  /* the first search has ended, or hangs */
	bool opened;  /* there is a jitdump, */
	bool held;    /* and its file is open */
	bool wanted;  /* addresses are missing */
	bool news;    /* sampled code is not in the jitdump */
	struct jitreads_end end;
};

/* Free entry @i, which does not run. */
void jitdumps_remove(struct jitdumps *j, uint32_t i);
/* Make room for a process of @uid. False: there is none. */
bool jitdumps_evict(struct jitdumps *j, uint32_t uid);
/* Return whether @e may open its jitdump: all processes, and its user, have a limit. */
bool jitdumps_may_open(const struct jitdumps *j, const struct jitdumps_entry *e);
/* Return whether the jitdumps of all, or of the user of @e, have the memory that they may take. */
bool jitdumps_is_full(const struct jitdumps *j, const struct jitdumps_entry *e);

#endif
