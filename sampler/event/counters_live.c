// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Changes while events run: their rate, their set, the tasks followed.
 *
 * Runs on: the builder. Invariant: the old events go on until the new ones are
 * all open; after a failure everything is as it was.
 */
#include "sampler/event/counters.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/event/counters_private.h"
#include "sampler/event/limits.h"
#include "sampler/event/task_set.h"

/* Return whether the command is past its exec. Then its events have been enabled for some time. */
static bool is_running(const struct counters *c)
{
	struct counters_value v;

	if (c->run != RUN_AT_EXEC)
		return c->run == RUN_ON;
	for (uint32_t i = 0; i < c->env.nr_cpus; i++)
		if (c->nr_slots && !slot_read(&c->slots[0], &c->env, i, &v) && v.enabled_ns)
			return true;
	return false;
}

/*
 * Events that are opened past the exec of a command are enabled by hand. Children inherit the flag,
 * and each exec of theirs would enable an event that was disabled since, or has a twin.
 */
static void forget_exec(const struct counters *c, struct slot *s)
{
	if (s->attr.enable_on_exec && (c->run != RUN_AT_EXEC || is_running(c)))
		s->attr.enable_on_exec = 0;
}

int counters_enable_event(struct counters *c, uint32_t event, bool on)
{
	if (event >= c->nr_slots)
		return -EINVAL;
	c->slots[event].off = !on;
	return slot_enable(&c->slots[event], &c->env, 0, on && is_running(c));
}

int counters_apply_wake(struct counters *c)
{
	int first = 0;

	for (uint32_t i = 0; c->wake && i < c->nr_slots; i++) {
		struct slot *s = &c->slots[i];
		int code;

		/* The reader's own switches would wake it again, and again. */
		if (s->event.wait && !c->env.attr.tasks)
			continue;
		code = slot_open_twins(s, &c->env);
		first = first ? first : code;
		/* Known before it can send a sample. */
		for (size_t k = 0; k < (size_t)s->nr_tasks * c->env.nr_cpus; k++)
			if (s->fds[k].wake_fd >= 0)
				idmap_add(&c->ids, s->fds[k].wake_id, counters_id_value(c, s, i));
		slot_wake(s, &c->env, is_running(c) && !s->off);
	}
	return first;
}

/*
 * List the tasks followed now: the side-band's tasks and their children, except tasks that have no
 * events yet: they get all of them together. NULL: the CPUs.
 */
static pid_t *followed(struct counters *c, uint32_t *nr)
{
	const struct counters_sys *sys = &c->env.sys;
	pid_t *tids = NULL;
	int found;

	*nr = 0;
	if (!c->env.attr.tasks)
		return NULL;
	found = c->env.attr.no_inherit
			? 0
			: sys->list_tasks(sys->ctx, c->side.tids, c->side.nr_tasks, &tids);
	if (found > 0) {
		for (int i = 0; i < found; i++)
			if (!slot_is_busy(&c->side, tids[i]))
				tids[(*nr)++] = tids[i];
		return tids;
	}
	free(tids);
	tids = xcalloc(c->side.nr_tasks, sizeof(*tids));
	memcpy(tids, c->side.tids, c->side.nr_tasks * sizeof(*tids));
	*nr = c->side.nr_tasks;
	return tids;
}

/* Open one more event, not enabled yet. */
static int open_slot(struct counters *c, struct slot *s, const struct slot *leader,
		     const struct event *ev, double hz, const pid_t *tids, uint32_t nr_tids,
		     struct err *e)
{
	uint32_t refused;
	int code = ev->hz > 0 ? limits_check_rate(ev->hz, e) : 0;

	if (code)
		return code;
	c->env.refusal.nr_wanted = c->env.nr_fds + MAX(nr_tids, 1) * c->env.nr_cpus;
	slot_init(s, &c->env, ev, hz);
	forget_exec(c, s);
	code = slot_open(s, &c->env, leader, tids, nr_tids, &refused);
	if (code)
		return limits_explain_open(e, code, &c->env.refusal);
	/* They lack the other events also. */
	for (uint32_t i = 0; i < c->side.nr_busy; i++)
		slot_note_busy(s, c->side.busy[i]);
	return 0;
}

/* Replace @old: its sums go on; its last samples may still be in the rings. */
static void take_place(struct counters *c, uint32_t event, struct slot *fresh, bool running)
{
	struct slot *old = &c->slots[event];

	for (size_t i = 0; i < (size_t)fresh->nr_tasks * c->env.nr_cpus; i++)
		idmap_add(&c->ids, fresh->fds[i].id, counters_id_value(c, fresh, event));
	if (running) {
		slot_enable(old, &c->env, 0, false);
		slot_enable(fresh, &c->env, 0, !old->off);
	}
	fresh->off = old->off;
	slot_inherit_sums(fresh, old, &c->env);
}

/* The event with another rate, and all of its group with it: members cannot change their leader. */
static int reopen_slot(struct counters *c, uint32_t event, double hz, uint64_t period,
		       struct err *e)
{
	struct event events[EVENTS_MAX];
	struct slot fresh[EVENTS_MAX];
	bool running = is_running(c);
	uint32_t first, nr, nr_tids, i;
	pid_t *tids = followed(c, &nr_tids);
	int code = 0;

	for (i = 0; i < c->nr_slots; i++)
		events[i] = c->slots[i].event;
	first = event_group_first(events, event);
	nr = event_group_nr(events, c->nr_slots, first);
	/* Its rate or period is no longer the requested one. */
	events[event].period = period;
	events[event].hz = 0;
	for (i = first; i < first + nr && !code; i++)
		code = open_slot(c, &fresh[i], counters_leader(events, fresh, i), &events[i],
				 i == event ? hz : c->slots[i].hz, tids, nr_tids, e);
	free(tids);
	if (code) {
		while (--i > first)
			slot_close(&fresh[i - 1], &c->env);
		return code;
	}
	for (i = first; i < first + nr; i++)
		take_place(c, i, &fresh[i], running);
	for (i = first; i < first + nr; i++) {
		slot_close(&c->slots[i], &c->env);
		c->slots[i] = fresh[i];
	}
	counters_apply_wake(c);
	return 0;
}

/*
 * Open the events again, on all tasks that are followed now. A twin is inherited by tasks that
 * start after it was opened: children that have inherited the event alone would be without both.
 */
static int reopen_all(struct counters *c, struct err *e)
{
	bool running = is_running(c);
	uint32_t nr_tids;
	pid_t *tids;
	int code = 0;

	if (!c->env.attr.tasks || c->env.attr.no_inherit)
		return 0;
	tids = followed(c, &nr_tids);
	for (uint32_t i = 0; i < c->nr_slots && !code; i++) {
		const struct event event = c->slots[i].event;
		struct slot fresh;

		code = open_slot(c, &fresh, NULL, &event, c->slots[i].hz, tids, nr_tids, e);
		if (code)
			break;
		take_place(c, i, &fresh, running);
		slot_close(&c->slots[i], &c->env);
		c->slots[i] = fresh;
	}
	free(tids);
	return code;
}

int counters_wake(struct counters *c, uint32_t cpu_index, bool each_sample)
{
	for (uint32_t i = 0; i < c->nr_slots; i++)
		if (c->slots[i].event.group || c->slots[i].event.counted)
			return -ENOTSUP;
	/* One that is enabled by the exec of a command has no twin that is. */
	if (each_sample && !is_running(c))
		return -EAGAIN;
	/* None has a twin. */
	if (!c->wake && !each_sample)
		return 0;
	if (!c->wake) {
		struct err e = { .text = "" };
		int code = reopen_all(c, &e);

		if (code)
			return code;
		c->wake = xcalloc(c->env.nr_cpus, sizeof(*c->wake));
	}
	c->env.wake = c->wake;
	c->wake[cpu_index] = each_sample;
	return counters_apply_wake(c);
}

int counters_set_rate(struct counters *c, uint32_t event, double hz, struct err *e)
{
	int code;

	if (event >= c->nr_slots)
		return err_set(e, -EINVAL, "there is no event %u", event);
	if (c->slots[event].event.counted)
		return err_set(e, -EINVAL,
			       "%.100s is counted whenever its group is sampled\n"
			       "  its rate is that of the group\n  change the rate of the member "
			       "that "
			       "is sampled",
			       c->slots[event].event.name);
	code = limits_check_rate(hz, e);
	if (code)
		return code;
	/* From a fixed period there is no way back to a rate but a new event. */
	c->env.attr.period = 0;
	/*
	 * A clock's samples keep the period that it was opened with: the kernel sets
	 * hw.last_period of cpu-clock and task-clock at their start only, not in
	 * PERF_EVENT_IOC_PERIOD.
	 */
	if (c->env.attr.tasks || !c->slots[event].attr.freq)
		return reopen_slot(c, event, hz, 0, e);
	code = slot_set_rate(&c->slots[event], &c->env, hz);
	if (!code)
		c->slots[event].event.hz = c->slots[event].event.period = 0;
	return !code ? 0
		     : err_set(e, code,
			       "%s does not take %.0f Hz: %s\n"
			       "  PERF_EVENT_IOC_PERIOD was refused\n"
			       "  kernel.perf_event_max_sample_rate may have been lowered",
			       c->slots[event].event.name, hz, strerror(-code));
}

int counters_set_period(struct counters *c, uint32_t event, uint64_t period, struct err *e)
{
	if (event >= c->nr_slots)
		return err_set(e, -EINVAL, "there is no event %u", event);
	return reopen_slot(c, event, c->slots[event].hz, period, e);
}

static bool in_group(const struct counters *c, uint32_t at, uint32_t group)
{
	return group && at < c->nr_slots && c->slots[at].event.group == group;
}

/* From slot @at on, are there the same @nr events in the same order, and no others in their group?
 */
static bool same_group(const struct counters *c, uint32_t at, const struct event *events,
		       uint32_t nr)
{
	uint32_t group = c->slots[at].event.group;

	if ((nr > 1) != !!group || at + nr > c->nr_slots || in_group(c, at + nr, group) ||
	    (at && in_group(c, at - 1, group)))
		return false;
	for (uint32_t i = 0; i < nr; i++)
		if (c->slots[at + i].event.group != group ||
		    !event_same(&c->slots[at + i].event, &events[i]))
			return false;
	return true;
}

/* The slots that have the @nr events of a group (or the one alone) already; -1: none. */
static int find_slots(const struct counters *c, const struct event *events, uint32_t nr,
		      uint32_t taken)
{
	for (uint32_t i = 0; i < c->nr_slots; i++)
		if (!(taken & 1u << i) && same_group(c, i, events, nr))
			return (int)i;
	return -1;
}

/* Open the @nr events of a group, or the one; *@i is the one that failed. */
static int open_group(struct counters *c, struct slot *slots, const struct event *events,
		      uint32_t first, uint32_t nr, uint32_t *fresh, double hz, const pid_t *tids,
		      uint32_t nr_tids, struct err *e)
{
	for (uint32_t i = first; i < first + nr; i++) {
		int code = open_slot(c, &slots[i], counters_leader(events, slots, i), &events[i],
				     hz, tids, nr_tids, e);

		if (code)
			return code;
		*fresh |= 1u << i;
	}
	return 0;
}

/* Enable the events of switches and of wake-ups, if they are open. */
static void enable_waits(struct counters *c)
{
	slot_enable(&c->waking, &c->env, 0, true);
	slot_enable(&c->switches, &c->env, 0, true);
}

/* Open the new events; then, when nothing can fail any more, close the old ones. */
int counters_set_events(struct counters *c, const struct event *events, uint32_t nr, double hz,
			struct err *e)
{
	struct slot slots[EVENTS_MAX], gone[EVENTS_MAX];
	uint32_t kept = 0, fresh = 0, nr_gone = 0, nr_tids, i, size;
	bool running = is_running(c);
	pid_t *tids;
	int code = 0;

	if (!nr || nr > EVENTS_MAX)
		return err_set(e, -EINVAL, "invalid number of events: %u", nr);
	tids = followed(c, &nr_tids);
	for (i = 0; i < nr && !code; i += size) {
		int was;

		size = event_group_nr(events, nr, i);
		was = find_slots(c, &events[i], size, kept);
		for (uint32_t k = 0; was >= 0 && k < size; k++) {
			slots[i + k] = c->slots[(uint32_t)was + k];
			slots[i + k].event = events[i + k];
			kept |= 1u << ((uint32_t)was + k);
		}
		if (was < 0)
			code = open_group(c, slots, events, i, size, &fresh, hz, tids, nr_tids, e);
	}
	free(tids);
	for (i = 0; i < nr && code; i++)
		if (fresh & 1u << i)
			slot_close(&slots[i], &c->env);
	if (code)
		return code;
	for (i = 0; i < c->nr_slots; i++)
		if (!(kept & 1u << i))
			gone[nr_gone++] = c->slots[i];
	memcpy(c->slots, slots, nr * sizeof(slots[0]));
	c->nr_slots = nr;
	counters_open_switches(c);
	counters_open_waking(c);
	counters_fill_ids(c, gone, nr_gone);
	counters_close_waits(c);
	while (nr_gone)
		slot_close(&gone[--nr_gone], &c->env);
	for (i = 0; i < nr && running; i++)
		if (fresh & 1u << i)
			slot_enable(&c->slots[i], &c->env, 0, true);
	if (running)
		enable_waits(c);
	counters_apply_wake(c);
	return 0;
}

/* Add the ids of wake-ups to the table. */
static void add_waking_ids(struct counters *c)
{
	size_t nr = (size_t)c->waking.nr_tasks * c->env.nr_cpus;

	for (size_t i = 0; i < nr; i++)
		if (c->waking.fds[i].fd >= 0)
			idmap_add(&c->ids, c->waking.fds[i].id, ID_WAKING);
}

bool counters_has_switches(const struct counters *c)
{
	return c->switches.nr_tasks > 0;
}

int counters_set_switches(struct counters *c, bool on)
{
	int code;

	if (!on) {
		slot_close(&c->switches, &c->env);
		return 0;
	}
	code = counters_open_switches(c);
	if (!code && is_running(c))
		slot_enable(&c->switches, &c->env, 0, true);
	return code;
}

void counters_set_waking(struct counters *c, bool on)
{
	if (!on) {
		slot_close(&c->waking, &c->env);
		return;
	}
	if (c->waking.nr_tasks)
		return;
	counters_open_waking(c);
	add_waking_ids(c);
	if (is_running(c))
		slot_enable(&c->waking, &c->env, 0, true);
}

static const struct slot *leader_of(const struct counters *c, uint32_t at)
{
	uint32_t first = at;

	while (first && c->slots[first - 1].event.group == c->slots[at].event.group)
		first--;
	return first == at ? NULL : &c->slots[first];
}

uint32_t counters_busy(const struct counters *c, pid_t after, pid_t *tids, uint32_t nr)
{
	uint32_t found = 0;

	for (; found < nr; found++) {
		pid_t next = 0;

		for (uint32_t i = 0; i <= c->nr_slots; i++) {
			const struct slot *s = i ? &c->slots[i - 1] : &c->side;

			for (uint32_t k = 0; k < s->nr_busy; k++)
				if (s->busy[k] > after && (!next || s->busy[k] < next))
					next = s->busy[k];
		}
		if (!next)
			break;
		tids[found] = after = next;
	}
	return found;
}

const pid_t *counters_left_out(const struct counters *c, uint32_t *nr)
{
	*nr = c->side.nr_busy;
	return c->side.busy;
}

const pid_t *counters_tasks(const struct counters *c, uint32_t *nr)
{
	*nr = c->side.nr_tasks;
	return c->side.tids;
}

bool counters_is_busy(const struct counters *c, pid_t tid)
{
	pid_t next;

	return counters_busy(c, tid - 1, &next, 1) && next == tid;
}

/* Open one event on one more task. Its ids are known before it can send a sample. */
static int open_task(struct counters *c, uint32_t at, pid_t tid)
{
	struct slot *s = counters_slot(c, at);
	int code;

	forget_exec(c, s);
	code = slot_add_task(s, &c->env, s->event.group ? leader_of(c, at - 1) : NULL, tid);
	if (code || s->side)
		return code;
	for (uint32_t i = 0; i < c->env.nr_cpus; i++)
		idmap_add(&c->ids, s->fds[(size_t)(s->nr_tasks - 1) * c->env.nr_cpus + i].id,
			  counters_id_value(c, s, at - 1));
	if (is_running(c) && !s->off)
		slot_enable(s, &c->env, s->nr_tasks - 1, true);
	return 0;
}

/*
 * Open the events on a task that it lacks: all if it is new, else where it is busy. If it hangs in
 * an exec, leave it without any of them. @left_out: others were, so their threads and
 * children may have an event that was opened since.
 */
static int add_task(struct counters *c, const struct task_set *there, bool left_out, pid_t tid)
{
	bool is_new = !task_set_has(there, tid) && !counters_is_busy(c, tid);
	bool lacks[EVENTS_MAX + 1];
	int code = 0;

	for (uint32_t i = 0; i <= c->nr_slots; i++) {
		lacks[i] = is_new ? !left_out || !slot_has_task(counters_slot(c, i), tid)
				  : slot_is_busy(counters_slot(c, i), tid);
		if (lacks[i] && !code)
			code = open_task(c, i, tid);
	}
	for (uint32_t i = 0; i <= c->nr_slots; i++) {
		if (lacks[i] && code == -EINTR)
			slot_leave(counters_slot(c, i), &c->env, tid);
		else if (lacks[i])
			slot_forget_busy(counters_slot(c, i), tid);
	}
	return code;
}

/* Add the tasks that are not in @there. */
static int add_tasks(struct counters *c, const struct task_set *there, const pid_t *tids,
		     uint32_t nr, struct err *e)
{
	const bool left_out = c->side.nr_busy;
	uint32_t nr_fds = c->env.nr_fds;

	for (uint32_t i = 0; i < nr; i++) {
		int code = add_task(c, there, left_out, tids[i]);

		if (!code || code == -ESRCH || code == -EINTR)
			continue;
		if (code == -EACCES || code == -EPERM) {
			slot_refuse(&c->env, tids[i], code);
			c->nr_refused++;
			continue;
		}
		c->env.refusal.nr_wanted =
			c->env.nr_fds + (nr - i) * (c->nr_slots + 1) * c->env.nr_cpus;
		slot_refuse(&c->env, tids[i], code);
		/* Nor the others, except that busy ones may be added again. */
		for (; i < nr; i++)
			c->nr_refused += !counters_is_busy(c, tids[i]);
		return limits_explain_open(e, code, &c->env.refusal);
	}
	if (c->env.nr_fds > nr_fds)
		counters_apply_wake(c);
	return 0;
}

int counters_add_tasks(struct counters *c, const pid_t *tids, uint32_t nr, struct err *e)
{
	struct task_set there;
	int code;

	if (!c->env.attr.tasks)
		return nr ? err_set(e, -EINVAL, "the whole system is sampled already") : 0;
	slot_reap(&c->side, &c->env);
	for (uint32_t i = 0; i < c->nr_slots; i++)
		slot_reap(&c->slots[i], &c->env);
	if (!nr)
		return 0;
	task_set_init(&there, c->side.tids, c->side.nr_tasks);
	code = add_tasks(c, &there, tids, nr, e);
	task_set_fini(&there);
	return code;
}
