/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What maps.c (face), maps_events.c (the side-band's events) and maps_load.c
 * (/proc) share. Everything here that takes a struct maps wants its lock held,
 * unless it says otherwise.
 */
#ifndef SYMBOLS_PROCESS_MAPS_STATE_H
#define SYMBOLS_PROCESS_MAPS_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "symbols/process/requests.h"
#include "symbols/process/maps.h"
#include "symbols/process/process.h"
#include "symbols/process/space.h"
#include "symbols/process/tasks.h"

struct maps_event;

struct maps {
	_Atomic(struct tasks *) tasks; /* the table in use; written by the builder, release */
	struct requests requests;
	struct processes procs;
	struct space_stats spaces;
	struct objects *objects;
	bool no_proc;			       /* set before the first record, then constant */
	_Alignas(CACHELINE) atomic_uint epoch; /* losses of side-band records; release by publish */
	atomic_ulong nr_reads, nr_read_failed;
	_Atomic uint64_t due_ns; /* of the first that waits in the log; UINT64_MAX: none */

	_Alignas(CACHELINE) pthread_mutex_t lock; /* of all below, and of all marked W */
	struct maps_event *log;			  /* told, not yet applied */
	uint32_t nr_log, room_log, seq;
	struct space *empty;
	struct process *dirty; /* those with a draft */
	uint64_t keep_from_ns; /* what ended before may be forgotten */
	uint64_t now_ns;       /* of the last publish: what comes later waits in the log */
	bool lost;	       /* since the last publish */
	bool sweep;	       /* ends may have been lost: look who is still there */
};

static inline uint64_t maps_due_ns(const struct maps *m)
{
	/* Relaxed: written and read by the thread that replays. */
	return atomic_load_explicit(&m->due_ns, memory_order_relaxed);
}

/* Are the maps of @p complete? Any thread. */
bool maps_process_known(const struct maps *m, const struct process *p);
/* The incarnation that an event at @time_ns speaks of; begun, as unknown, if there is none. */
struct process *maps_process_at(struct maps *m, pid_t pid, uint64_t time_ns);
/* A filled-in incarnation of a process; takes one reference of @space. NULL: no memory. */
struct process *maps_begin_process(struct maps *m, pid_t pid, uint64_t birth_ns,
				   struct space *space, const struct process *from);
/* The next space of @p, to be changed; NULL when memory is out. */
struct space_edit *maps_draft(struct maps *m, struct process *p);
/* Publish the draft of @p, if it has one. */
void maps_freeze(struct maps *m, struct process *p);
/* The same for all. */
void maps_freeze_all(struct maps *m);
/* The object of anonymous memory of @p. */
struct object *maps_anon(struct maps *m, const struct process *p, uint64_t start, uint64_t end);

/* Apply what was told, in the order of time. */
void maps_apply_log(struct maps *m);
void maps_free_log(struct maps *m);

#endif
