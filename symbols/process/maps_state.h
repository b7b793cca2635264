/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by maps.c (public functions), maps_events.c (side-band events) and
 * maps_load.c (/proc). All functions that take a struct maps need its lock,
 * unless noted.
 */
#ifndef SYMBOLS_PROCESS_MAPS_STATE_H
#define SYMBOLS_PROCESS_MAPS_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "symbols/process/requests.h"
#include "symbols/process/process.h"
#include "symbols/process/space.h"
#include "symbols/process/tasks.h"

struct ended;
struct maps_event;
struct maps_interpreter;

/* Renames of one thread in the log. */
struct maps_rename {
	uint32_t nr, last;  /* their number; index of the last one */
	uint64_t before_ns; /* time of the one before the last */
};

#define MAPS_RENAMES 64u /* threads by tid; others are logged without being replaced */

struct maps {
	_Atomic(struct tasks *) tasks; /* the present table; written by the builder, release */
	struct ended *ended;	       /* of the builder; NULL: none yet */
	struct requests requests;
	struct processes procs;
	struct space_stats spaces;
	struct objects *objects;
	bool in_namespace;		       /* set before the first record, then constant */
	bool no_proc;			       /* set before the first record, then constant */
	_Alignas(CACHELINE) atomic_uint epoch; /* losses of side-band records; release by publish */
	atomic_ulong nr_reads, nr_read_failed;
	atomic_ulong nr_forks_shared; /* relaxed: a figure only */
	_Atomic uint64_t due_ns;      /* of the first entry kept in the log; UINT64_MAX: none */
	_Atomic uint64_t reread_ns;   /* processes are read again then; UINT64_MAX: not lost */

	_Alignas(CACHELINE) pthread_mutex_t lock; /* of all fields below, and of all marked W */
	struct maps_event *log;			  /* events not yet applied */
	uint32_t nr_log, room_log, seq;
	struct maps_rename renames[MAPS_RENAMES];
	struct maps_interpreter *interpreters; /* not looked at yet */
	uint32_t nr_interpreters, room_interpreters;
	struct space *empty;
	struct process *dirty; /* spaces with a draft */
	struct object **held;  /* a reference of each, until the drafts are published */
	uint32_t nr_held, room_held;
	uint64_t keep_from_ns; /* mappings that ended before may be dropped */
	uint64_t now_ns;       /* of the last publish: later events are kept in the log */
	bool lost;	       /* records, since processes were last to be read again */
	uint64_t lost_ns;      /* time of that; 0: never */
	uint64_t rest_ns;      /* pause after it */
	bool sweep;	       /* exits may be lost: check which processes are alive */
};

static inline uint64_t maps_due_ns(const struct maps *m)
{
	/* Relaxed: written and read by the thread that replays. */
	return atomic_load_explicit(&m->due_ns, memory_order_relaxed);
}

/* Test whether the maps of @p are complete. Any thread. */
bool maps_process_known(const struct maps *m, const struct process *p);
/* Find the incarnation of an event at @time_ns; begin one, unknown, if there is none. */
struct process *maps_process_at(struct maps *m, pid_t pid, uint64_t time_ns);
/* Make an incarnation of a process; takes over one reference of @space. NULL: no memory. */
struct process *maps_begin_process(struct maps *m, pid_t pid, uint64_t birth_ns,
				   struct space *space, const struct process *from);
/* Return the draft of the next space of @p; NULL when out of memory. */
struct space_edit *maps_draft(struct maps *m, struct process *p);
/* Publish the draft of @p, if it has one. */
void maps_freeze(struct maps *m, struct process *p);
/* Return the space that a child of @parent begins with at @time_ns, with a reference. */
struct space *maps_fork_space(struct maps *m, struct process *parent, uint64_t time_ns);
/* Publish all drafts. */
void maps_freeze_all(struct maps *m);
/* Take over a reference of @object, which a draft has without one. */
void maps_hold(struct maps *m, struct object *object);
/* Return the object of anonymous memory of @p, with a reference. */
struct object *maps_anon(struct maps *m, const struct process *p, uint64_t start, uint64_t end);

/* Give @th the name that it has from @time_ns on, raw, if that is another one. */
void maps_rename_thread(struct maps *m, struct process_thread *th, uint64_t time_ns,
			const char *name, size_t size);

/* @p has mapped @mapping: if that is an interpreter, it is to be looked at. */
void maps_note_interpreter(struct maps *m, struct process *p, const struct mapping *mapping);
/* @child was forked by @parent: it has the same interpreter, at the same addresses. */
void maps_inherit_interpreter(struct maps *m, struct process *child, struct process *parent);

/* Apply the log in the order of time. */
void maps_apply_log(struct maps *m);
void maps_free_log(struct maps *m);

#endif
