/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * All perf events of a session: opened, steered, read, closed.
 *
 * Per CPU one data ring, shared by every sampling event of that CPU
 * (PERF_EVENT_IOC_SET_OUTPUT onto a leader), and one side-band ring fed by
 * dummy events (MMAP2, COMM, FORK, EXIT), opened first, so that a flood of
 * samples never loses a mapping. The data ring belongs to a never-counting
 * dummy leader, so that sampling events can be opened and closed under it.
 * For a target of tasks the same is done once per task and CPU, inherited by
 * children. All events use CLOCK_MONOTONIC.
 *
 * Threads: everything is called by one thread (set-up, then the builder), but the rings, which
 * belong to that CPU's sampler thread (side-band rings: to the holder of the drain lock), and
 * counters_event_of(), lock-free.
 */
#ifndef SAMPLER_EVENT_COUNTERS_H
#define SAMPLER_EVENT_COUNTERS_H

#include <linux/perf_event.h>
#include <sys/types.h>

#include "sampler/event/counters_types.h"
#include "sampler/event/event.h"
#include "sampler/ring/ring.h"
#include "symbols/base/base.h"

extern const struct counters_sys counters_kernel;

struct core_types;

struct counters_config {
	const int *cpus; /* online ones to sample */
	uint32_t nr_cpus;
	const pid_t *tids; /* tasks, their future threads and children; NULL: every task */
	uint32_t nr_tids;
	uint32_t nr_named; /* one of the first @nr_named tasks has to be permitted; 0: any task */
	bool no_inherit;   /* these tasks alone */
	bool may_be_empty; /* no task is no error: see counters_add_tasks() */
	int cgroup_fd;	   /* with cgroup: only its tasks; tids is NULL */
	bool cgroup;
	bool enable_on_exec; /* the one tid is a command about to exec */
	const struct event *events;
	uint32_t nr_events;
	double hz; /* ignored if period */
	uint64_t period;
	uint32_t stack_size; /* 0: no stack copies, but the kernel's chains of user frames */
	bool no_chain;	     /* without stack copies: no chains either */
	uint64_t regs_mask;
	size_t ring_size; /* 0: choose; the same on all CPUs, halved together on EPERM */
	bool exclude_idle;
	const struct core_types *cores; /* NULL: all cores are alike; copied */
	bool data_maps;			/* also mappings without code: perf's unwinder needs them */
};

struct counters;

/*
 * Open everything, disabled; but side-band events count from here on, and enable_on_exec enables at
 * the exec without counters_enable(). Raises RLIMIT_NOFILE to the hard limit first. A task that is
 * gone or forbidden is left out if there are others (counters_nr_refused). The first two events of
 * a CPU belong to this process itself, so they never hang up while it lives.
 * 0 or -errno with the three-line sentence (EACCES/EPERM: the missing permission and the ways to
 * get it, from least to most power; EMFILE with numbers; -ENOLCK, EPERM from mmap, names
 * kernel.perf_event_mlock_kb).
 */
int counters_open(struct counters **out, const struct counters_config *config,
		  const struct counters_sys *sys, struct err *e);
void counters_close(struct counters *c);
/* Unmap the data rings, after their readers have ended: later samples are lost. */
void counters_unmap(struct counters *c);

uint32_t counters_nr_cpus(const struct counters *c);
struct counters_cpu *counters_cpu(struct counters *c, uint32_t index);
/* The layouts of the records in the data rings and in the side-band rings. */
const struct record_layout *counters_layout(const struct counters *c);
/* Return the layout of this sample: samples of groups that are read also have counts. Any thread.
 */
const struct record_layout *counters_layout_of(const struct counters *c,
					       const struct perf_event_header *h);
const struct record_layout *counters_side_layout(const struct counters *c);
size_t counters_ring_size(const struct counters *c);
size_t counters_ring_wanted(const struct counters *c); /* without limits of locked memory */
/* Return the type of the core of a CPU: "atom"; "": all are alike. */
const char *counters_core_type(const struct counters *c, uint32_t cpu_index);
bool counters_has_lost(const struct counters *c); /* PERF_FORMAT_LOST works here */
uint32_t counters_nr_fds(const struct counters *c);
/* Return the number of requested tasks that run and are not sampled. */
uint32_t counters_nr_refused(const struct counters *c);
/* Return one of them, and -errno: EINTR: it hangs in an exec; 0: there is none. */
pid_t counters_refused(const struct counters *c, int *code);

/*
 * Event slot (0..EVENTS_MAX-1 of this generation, see below) of a sample's id, COUNTERS_WAKING,
 * COUNTERS_GONE, or -1. Any thread.
 * An id that was never ours is taken for that of the only software event, if there is only one:
 * the kernel mixes up ids when two sessions have the same software event. (Two such events of one
 * session, as page-faults:u and page-faults:k, it mixes up past help.)
 */
int counters_event_of(const struct counters *c, uint32_t cpu_index, uint64_t id);

/* In the place of a slot: of a wake-up, a sample with @raw alone. */
#define COUNTERS_WAKING EVENTS_MAX
/* The same: of an event that was sampled up to the last change of events. */
#define COUNTERS_GONE (-3)
/* Return whether wake-ups are recorded. The caller's thread of set-up. */
bool counters_has_waking(const struct counters *c);
/* Report whether switches of whole CPUs are recorded now. */
bool counters_has_switches(const struct counters *c);
/* Where waits are measured: record switches of whole CPUs, or not. 0 or -errno. */
int counters_set_switches(struct counters *c, bool on);
/* The same of wake-ups, where they may be recorded. */
void counters_set_waking(struct counters *c, bool on);
/* The slot of the event of waits; -1: there is none. Any thread. */
int counters_wait_slot(const struct counters *c);

/* Events that were disabled one by one are left disabled. */
int counters_enable(struct counters *c, bool on);
int counters_enable_event(struct counters *c, uint32_t event, bool on);
/*
 * Change the rate in the running event (PERF_EVENT_IOC_PERIOD: ns for clocks, Hz for the rest).
 * That does not reach events that children have inherited: for tasks the event is opened again on
 * all tasks followed now, and the old one closed; sums and ids go on. -EINVAL with a sentence above
 * kernel.perf_event_max_sample_rate.
 */
int counters_set_rate(struct counters *c, uint32_t event, double hz, struct err *e);
/* Sample every @period-th event instead of at a rate; opened again on all tasks. As above. */
int counters_set_period(struct counters *c, uint32_t event, uint64_t period, struct err *e);
/*
 * Replace the events; events in both sets keep their fds and counts. On failure
 * the old set goes on. Slots are positions in @events: the caller resets its counts.
 */
int counters_set_events(struct counters *c, const struct event *events, uint32_t nr, double hz,
			struct err *e);
/*
 * More tasks, each once (TARGET_USER looks for new ones). Tasks that are gone or forbidden are no
 * error. Not for tasks that descend from one already followed: they would be counted twice. A busy
 * task (see below) gets the events that it lacks, and no others. Also the moment at which fds of
 * tasks that are gone are closed, and busy tasks that are gone forgotten; @nr may be 0.
 */
int counters_add_tasks(struct counters *c, const pid_t *tids, uint32_t nr, struct err *e);
/*
 * Write up to @nr busy tasks to @tids, in the order of their numbers, above @after only; return how
 * many. Busy tasks lack events, as they were hanging in an exec when these were to be opened. They
 * may be added again, which takes time if they still hang (see in_time.h); until then they are
 * among counters_nr_refused().
 */
uint32_t counters_busy(const struct counters *c, pid_t after, pid_t *tids, uint32_t nr);
/* Report whether @tid is a busy task. */
bool counters_is_busy(const struct counters *c, pid_t tid);
/* Return the busy tasks that have no event at all, which their children could inherit; borrowed. */
const pid_t *counters_left_out(const struct counters *c, uint32_t *nr);
/* Return the tasks that it was opened on, some of which may have ended, and how many; borrowed.
 * Inherited events do not count. */
const pid_t *counters_tasks(const struct counters *c, uint32_t *nr);
/* Called for each event. @ids are of all its fds open now; borrowed. */
typedef void (*counters_attr_fn)(void *ctx, const char *name, const struct perf_event_attr *attr,
				 const uint64_t *ids, size_t nr_ids);
/* Return the events with records in the rings now, side-band events last: for a file header.
 */
void counters_each_attr(const struct counters *c, counters_attr_fn fn, void *ctx);
/*
 * Wake the thread that polls the ring of a CPU at each sample, instead of at the watermark: each
 * event there gives way to a twin that does. Sums, ids and whatever changes later go on for both.
 * -ENOTSUP: groups of events, which are not changed.
 */
int counters_wake(struct counters *c, uint32_t cpu_index, bool each_sample);
int counters_read(struct counters *c, uint32_t cpu_index, uint32_t event, struct counters_value *v);
/*
 * Return, once, that the events of a CPU have ended since the last call. They end when it goes
 * offline, however short: in a suspend all CPUs but the first do. Events of tasks go on.
 */
bool counters_has_ended(struct counters *c, uint32_t cpu_index);

#endif
