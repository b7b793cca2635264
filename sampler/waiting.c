// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Waits of a session.
 *
 * Runs on: set-up, then the builder, online for urcu-qsbr. Queues are freed only while no sampler
 * thread runs: the threads use them outside of grace periods.
 */
#include "sampler/waiting.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <urcu-qsbr.h>

#include "sampler/session.h"
#include "sampler/sleepers.h"
#include "sampler/switch_windows.h"
#include "symbols/base/foreign.h"
#include "symbols/process/procfs.h"

/* All switches have a stack up to this multiple of the sampling rate, on each CPU. */
#define STACKS_MAX 4
/* Ticks with half of that before all have one again. */
#define CALM_TICKS 3
/* Waits are counted at the end of a tick, and in a long one so often. */
#define SOME_NS 1200000000ULL
/* How often sleeping tasks are looked at in /proc. */
#define LOOK_NS 50000000ULL
/* The same without call chains, for the kinds of waits alone. */
#define LOOK_KINDS_NS 200000000ULL
/* While kinds of waits are read of which nothing else is known: the first tick should have them. */
#define LOOK_NEW_NS 5000000ULL
/* Most tasks that are looked up in /proc: more have no room. */
#define FIND_MAX (1U << 17)
/* Tasks whose state is checked in one tick. */
#define CHECK_TASKS 100

static int slot_of(const struct sampler *s)
{
	return config_wait_slot(&s->config);
}

static bool has_chains(const struct sampler *s)
{
	return s->config.call_graph != CALL_GRAPH_OFF;
}

/*
 * Read the state of a task from /proc, as waits_state_fn. Not from stat: with 6.18 it is read under
 * a lock that the task has while it executes a program, as wchan is, and that may take for ever.
 */
static enum task_step state_of(pid_t pid, pid_t tid)
{
	char text[512], state;
	size_t size = foreign_read_task(text, sizeof(text), pid, tid, "status");

	/* A task that may not be read is not gone. */
	if (!size)
		return tgkill(pid, tid, 0) && errno == ESRCH ? STEP_EXIT : STEP_FOUND;
	state = procfs_status_state(text, size);
	if (!state || state == 'X' || state == 'Z')
		return STEP_EXIT;
	return state == 'R' ? STEP_FOUND : STEP_ASLEEP;
}

/* Add a task that runs or sleeps already. */
static void find_task(struct sampler *s, pid_t pid, pid_t tid)
{
	uint64_t now_ns = time_now_ns();
	enum task_step step = state_of(tid, tid);

	if (step != STEP_EXIT)
		waits_found(s->store.waits, pid, tid, step, now_ns);
}

/*
 * Call find_task() for each thread of @pid, at most *@left, and no more than it has now: it may
 * start others as fast as they are found.
 */
static void find_threads(struct sampler *s, pid_t pid, uint32_t *left)
{
	char path[32];
	struct dirent *d;
	struct stat st;
	nlink_t nr;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir)
		return;
	/* A link for each, and two more. */
	nr = fstat(dirfd(dir), &st) ? 0 : st.st_nlink;
	for (; nr && *left && (d = readdir(dir)); nr--) {
		if (atoi(d->d_name) <= 0)
			continue;
		find_task(s, pid, atoi(d->d_name));
		--*left;
	}
	closedir(dir);
}

/* Find the tasks of the target that exist already. */
static void find_all(struct sampler *s)
{
	uint32_t left = FIND_MAX;
	struct dirent *d;
	DIR *dir;

	if (s->target.cgroup_fd >= 0)
		return; /* at their first switch */
	for (uint32_t i = 0; s->target.tids && i < s->target.nr_tids; i++) {
		pid_t tid = s->target.tids[i];
		char text[1024];
		uint64_t pid;

		if (procfs_status_number(text,
					 foreign_read_task(text, sizeof(text), tid, tid, "status"),
					 "Tgid", &pid))
			find_task(s, (pid_t)pid, tid);
	}
	if (s->target.tids)
		return;
	dir = opendir("/proc");
	while (dir && left && (d = readdir(dir)))
		if (atoi(d->d_name) > 0 && !pipeline_is_own(getpid(), atoi(d->d_name)))
			find_threads(s, atoi(d->d_name), &left);
	if (dir)
		closedir(dir);
}

/*
 * Take the switches that are recorded already: a task that is found in /proc first loses its
 * earlier ones.
 */
static void take_first(struct sampler *s)
{
	const struct waits_tables t = store_waits_tables(&s->store);
	uint64_t now_ns = time_now_ns();

	windows_read_rings(s, now_ns);
	waits_take(s->store.waits, &t, now_ns);
}

void waiting_begin(struct sampler *s)
{
	windows_begin(s);
	if (slot_of(s) < 0 || !s->live.nr_threads) {
		atomic_store_explicit(&s->live.shared->waits, NULL, memory_order_relaxed);
		return;
	}
	if (!s->store.waits &&
	    store_open_waits(&s->store, s->live.nr_threads, config_latency_slot(&s->config))) {
		mailbox_say(&s->mailbox, "out of memory: waits are not measured");
		return;
	}
	waits_restart(s->store.waits);
	waits_set_latency(s->store.waits, config_latency_slot(&s->config));
	/* Not of an event that was added again. */
	s->waiting.limited &= !s->config.events[slot_of(s)].period;
	atomic_store_explicit(&s->live.shared->waits_max, (uint32_t)s->config.hz + 100,
			      memory_order_relaxed);
	/* Release: the queues; pairs with the sampler threads. */
	atomic_store_explicit(&s->live.shared->waits, s->store.waits, memory_order_release);
	if (!s->rates.enabled)
		return;
	take_first(s);
	find_all(s);
	s->waiting.sleepers_left = has_chains(s);
}

static bool is_on(const struct sampler *s)
{
	return s->store.waits && s->live.shared &&
	       atomic_load_explicit(&s->live.shared->waits, memory_order_relaxed);
}

void waiting_count(struct sampler *s, uint64_t now_ns)
{
	struct waits_tables t;
	uint64_t seen_ns;

	memset(&s->waits, 0, sizeof(s->waits));
	if (!is_on(s))
		return;
	windows_read_rings(s, now_ns);
	seen_ns = windows_read(s, now_ns, now_ns - MIN(s->ticks.last_ns, now_ns));
	t = store_waits_tables(&s->store);
	t.chains = has_chains(s);
	waits_count(s->store.waits, &t, (uint32_t)slot_of(s), now_ns, &s->waits);
	if (waits_take_unread(s->store.waits))
		s->waiting.sleepers_left = has_chains(s);
	if (!s->waiting.windows.on && waits_check(s->store.waits, state_of, CHECK_TASKS, now_ns))
		s->waiting.sleepers_left = has_chains(s);
	s->waits.estimated = s->waiting.windows.on;
	s->waits.seen_ns = seen_ns;
	s->waits.hung = sleepers_hung(s->waiting.sleepers);
	s->waits.waking = s->waits.estimated || counters_has_waking(s->live.counters);
	if (waits_take_asked(s->store.waits))
		symbols_wake(s->store.symbols);
}

void waiting_count_some(struct sampler *s, uint64_t now_ns)
{
	struct waits_tables t;

	if (!is_on(s) || now_ns < waits_counted_ns(s->store.waits) + SOME_NS)
		return;
	t = store_waits_tables(&s->store);
	waits_count(s->store.waits, &t, (uint32_t)slot_of(s), now_ns, NULL);
}

uint64_t waiting_counted_ns(const struct sampler *s)
{
	return is_on(s) ? waits_counted_ns(s->store.waits) : UINT64_MAX;
}

/* Take the stack of each switch again, or of some at the rate of the session. */
static void set_limited(struct sampler *s, bool limited)
{
	uint32_t slot = (uint32_t)slot_of(s);
	double hz = s->config.hz;
	struct err e;
	int code = limited ? counters_set_rate(s->live.counters, slot, hz, &e)
			   : counters_set_period(s->live.counters, slot, 1, &e);

	s->waiting.nr_calm = 0;
	if (code) {
		mailbox_say(&s->mailbox, "%s", e.text);
		return;
	}
	s->waiting.limited = limited;
	s->rates.hz[slot] = s->rates.asked_hz[slot] = limited ? hz : 0;
	s->config.events[slot].period = !limited;
	rates_mix(&s->rates);
	recording_note(&s->recording, s->live.counters);
}

void waiting_govern(struct sampler *s)
{
	/* Relaxed: a wish. */
	bool flood =
		atomic_exchange_explicit(&s->live.shared->waits_flood, false, memory_order_relaxed);
	int slot = is_on(s) ? slot_of(s) : -1;
	double each;

	if (slot < 0)
		return;
	/* Of the lost notes two in three may be of switches in and of wake-ups. */
	each = ((double)s->waits.switched + (double)s->waits.lost / 3) * 1e9 /
	       ((double)MAX(s->waits.seen_ns, 1) * s->live.nr_threads);
	if (s->waits.seen_ns && windows_govern(s, each))
		find_all(s);
	/* A rate that the user chose is kept. */
	if (!s->config.events[slot].period && !s->waiting.limited)
		return;
	if (!s->waiting.limited && (flood || each > s->config.hz * STACKS_MAX)) {
		set_limited(s, true);
		return;
	}
	s->waiting.nr_calm = each < s->config.hz * STACKS_MAX / 2 ? s->waiting.nr_calm + 1 : 0;
	if (s->waiting.limited && s->waiting.nr_calm >= CALM_TICKS)
		set_limited(s, false);
}

void waiting_discard(struct sampler *s, uint64_t begin_ns)
{
	struct waits_tables t;

	if (!is_on(s))
		return;
	windows_read_rings(s, begin_ns);
	t = store_waits_tables(&s->store);
	waits_take(s->store.waits, &t, begin_ns);
	waits_discard(s->store.waits, begin_ns);
}

/* A switch is an event of the kernel: without the right to sample it there are no stacks. */
static bool has_stacks(const struct sampler *s)
{
	return s->config.events[slot_of(s)].kernel && has_chains(s);
}

/* Return when tasks that sleep are looked at; UINT64_MAX: never. */
static uint64_t look_due(const struct sampler *s)
{
	if (sleepers_hung(s->waiting.sleepers))
		return UINT64_MAX;
	if (waits_wants_kinds(s->store.waits))
		return s->waiting.looked_ns +
		       (s->waiting.look_failed ? LOOK_KINDS_NS : LOOK_NEW_NS);
	/* A process that was left out may be read when that read ends. */
	if (has_stacks(s) && !s->waiting.sleepers_left)
		return sleepers_barred(s->waiting.sleepers) ? s->waiting.looked_ns + LOOK_KINDS_NS
							    : UINT64_MAX;
	return s->waiting.looked_ns + (has_chains(s) ? LOOK_NS : LOOK_KINDS_NS);
}

uint64_t waiting_due(const struct sampler *s)
{
	return is_on(s) ? MIN(look_due(s), windows_due(s)) : UINT64_MAX;
}

void waiting_look(struct sampler *s, uint64_t now_ns)
{
	const struct waits_tables t = store_waits_tables(&s->store);

	if (now_ns >= windows_due(s))
		windows_turn(s);
	if (now_ns < look_due(s))
		return;
	s->waiting.looked_ns = now_ns;
	waits_take(s->store.waits, &t, now_ns);
	s->waiting.sleepers_left = sleepers_look(s, !has_stacks(s), has_chains(s));
	s->waiting.look_failed = !s->waiting.sleepers_left && waits_wants_kinds(s->store.waits);
}

void waiting_end(struct sampler *s)
{
	sleepers_free(s->waiting.sleepers);
	s->waiting.sleepers = NULL;
}

void waiting_make_room(struct sampler *s)
{
	struct waits_tables t;

	if (!is_on(s))
		return;
	t = store_waits_tables(&s->store);
	waits_take(s->store.waits, &t, time_now_ns());
}
