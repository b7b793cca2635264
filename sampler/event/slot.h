/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One event of a session: a file descriptor for each task (or the whole
 * machine) and CPU, all writing to that CPU's data ring.
 *
 * Internal to counters. One thread. An event keeps the counts of its closed fds, so that its sums
 * never go back when tasks end.
 */
#ifndef SAMPLER_EVENT_SLOT_H
#define SAMPLER_EVENT_SLOT_H

#include <linux/perf_event.h>

#include "sampler/event/attr.h"
#include "sampler/event/cores.h"
#include "sampler/event/counters_types.h"
#include "sampler/event/idmap.h"
#include "sampler/event/limits.h"

/* Shared by all slots of a session. */
struct slot_env {
	struct counters_sys sys;
	struct counters_cpu *cpus; /* data_fd: the ring of samples */
	uint32_t nr_cpus;
	struct attr_config attr;
	bool no_lost;	 /* the kernel has no PERF_FORMAT_LOST */
	uint32_t nr_fds; /* open now */
	bool may_be_empty;
	uint32_t nr_named;
	int cgroup_fd;		       /* -1: no cgroup */
	int group_fd;		       /* the leader of the event being opened; -1: none */
	struct limits_refusal refusal; /* of the last failure */
	pid_t refused;		       /* the first task that was left out, and why: -errno */
	int refused_code;
	const struct core_types *cores;
	struct idmap *ids; /* of events that are open, or were lately */
	const bool *wake;  /* by CPU: wake at each sample; NULL: nowhere */
};

struct slot_fd {
	int fd; /* -1: closed, or the event does not exist on this CPU */
	uint64_t id;
	/* Its twin, which wakes at each sample: one of both is on. -1: not open. */
	int wake_fd;
	uint64_t wake_id;
};

struct slot {
	struct event event;
	double hz;
	bool side;		     /* writes to the side-band rings, not to the data rings */
	bool whole;		     /* of whole CPUs whatever the target */
	struct perf_event_attr attr; /* as the kernel took it */
	bool off;		     /* disabled, independent of the others */
	bool settled;		     /* attr is known to open */
	bool plain;		     /* the kernel takes no core type in the config */
	struct slot_fd *fds;	     /* nr_tasks x nr_cpus */
	pid_t *tids;		     /* nr_tasks; -1: the whole CPU */
	uint32_t nr_tasks, max_tasks;
	pid_t *busy; /* tasks that it lacks: they were hanging in an exec */
	uint32_t nr_busy, max_busy;
	struct counters_value *base; /* per CPU, counts of closed fds */
};

/*
 * A sampling event, the event of wake-ups, of switches, a side-band event: nothing opened yet.
 */
void slot_init(struct slot *s, const struct slot_env *env, const struct event *ev, double hz);
void slot_init_waking(struct slot *s, const struct slot_env *env, const struct event *ev);
void slot_init_switches(struct slot *s);
void slot_init_side(struct slot *s, const struct slot_env *env, size_t ring_size);
/*
 * Open it on @tids (NULL: on the CPUs), in the group of @leader (open already;
 * NULL: alone). Tasks that are gone or forbidden are left out: *@nr_out
 * forbidden ones; tasks that hang in an exec are left out and noted as busy; -errno when
 * none is left or something else fails, with env->refusal filled and nothing
 * left open.
 */
int slot_open(struct slot *s, struct slot_env *env, const struct slot *leader, const pid_t *tids,
	      uint32_t nr_tids, uint32_t *nr_out);
void slot_close(struct slot *s, struct slot_env *env);

/* Add a task; it becomes the last one. 0, or -errno and nothing is left open. */
int slot_add_task(struct slot *s, struct slot_env *env, const struct slot *leader, pid_t tid);
/* Note that a task is left out. */
void slot_refuse(struct slot_env *env, pid_t tid, int code);
/* Report whether it was opened on this task. Linear. */
bool slot_has_task(const struct slot *s, pid_t tid);
/* Note that the task is to be added later. Once, however often it is noted. */
void slot_note_busy(struct slot *s, pid_t tid);
bool slot_is_busy(const struct slot *s, pid_t tid);
void slot_forget_busy(struct slot *s, pid_t tid);
/* Close the fds of a task, if it has any, and note it as busy. */
void slot_leave(struct slot *s, struct slot_env *env, pid_t tid);
/*
 * Close the fds of tasks that are gone with all their children; keep the sums. Forget busy tasks
 * that are gone.
 */
void slot_reap(struct slot *s, struct slot_env *env);

int slot_enable(struct slot *s, struct slot_env *env, uint32_t first_task, bool on);
/* Open the twins that env->wake wants. 0 or the first -errno: these events wake at the watermark.
 */
int slot_open_twins(struct slot *s, struct slot_env *env);
/* Turn that one of each pair on that env->wake wants, if the slot runs (@on), and the other off. */
void slot_wake(struct slot *s, struct slot_env *env, bool on);
/* PERF_EVENT_IOC_PERIOD on every fd. It does not reach events inherited already. */
int slot_set_rate(struct slot *s, struct slot_env *env, double hz);
/* Sum over all tasks, closed ones included. */
int slot_read(const struct slot *s, const struct slot_env *env, uint32_t cpu,
	      struct counters_value *v);
/* Take over the counts of @old. */
void slot_inherit_sums(struct slot *s, const struct slot *old, const struct slot_env *env);

/* Open on @cpu and task @tid, into the ring of @cpu. 0, or -errno with env->refusal filled. */
int slot_open_on(struct slot *s, struct slot_env *env, struct slot_fd *out, pid_t tid,
		 const struct counters_cpu *cpu);
/* Open the twin of @fd, which wakes the thread that polls the ring at each sample. 0 or -errno. */
int slot_open_twin(struct slot *s, struct slot_env *env, struct slot_fd *fd, pid_t tid,
		   const struct counters_cpu *cpu);
/* The leader and side-band fds are opened and closed by the same functions. fd or -errno. */
int slot_perf_open(struct slot_env *env, struct perf_event_attr *attr, pid_t tid, int cpu);
void slot_close_fd(struct slot_env *env, int *fd);

#endif
