// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Record switches in short windows instead of all the time.
 *
 * Runs on: the builder, online for urcu-qsbr. Only events of whole CPUs have windows: events
 * of tasks are inherited, and closing them would lose the children. A recording that begins
 * ends the windows with the next tick.
 */
#include "sampler/switch_windows.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <urcu-qsbr.h>

#include "sampler/session.h"
#include "symbols/base/foreign.h"

/* Switches a second of each CPU that take two or three percent of the time to record. */
#define RATE_MIN   10000
#define CALM_TICKS 3
/* How often the rate is looked at between ticks, how many high ones begin the windows. */
#define LOOK_NS 50000000ULL
#define LOOKS	2
/* Notes of a switch: out, in, and a wake-up. */
#define NOTES_EACH 3
/* One part in sixteen of the time; the gaps differ, as the program may be periodic. */
#define WINDOW_NS  20000000ULL
#define GAP_MIN_NS 200000000ULL
#define GAP_MAX_NS 400000000ULL
/* Tasks that are read in a tick, and at the begin. */
#define READ_TASKS  2000
#define BEGIN_TASKS 20000

/* How long the end of a tick waits for the sampler threads to read their rings. */
#define READ_MAX_NS 20000000ULL
#define READ_NAP_NS 100000

/* Read the schedstat of a task: times on a CPU and in a run queue. */
static bool read_times(pid_t pid, pid_t tid, struct waits_times *out)
{
	char text[96];

	return foreign_read_task(text, sizeof(text), pid, tid, "schedstat") &&
	       sscanf(text, "%" SCNu64 " %" SCNu64, &out->running_ns, &out->queue_ns) == 2;
}

/* Report whether the kernel counts the times of tasks. */
static bool has_times(void)
{
	struct waits_times times = { 0 };

	return read_times(getpid(), getpid(), &times) && times.running_ns;
}

/* Return the length of the next gap. */
static uint64_t gap_ns(struct session_windows *w)
{
	w->random = w->random * 1664525u + 1013904223u;
	return GAP_MIN_NS +
	       (uint64_t)((double)w->random / 4294967296.0 * (GAP_MAX_NS - GAP_MIN_NS));
}

void windows_read_rings(struct sampler *s, uint64_t now_ns)
{
	const struct timespec nap = { .tv_nsec = READ_NAP_NS };

	if (waits_complete(s->store.waits, now_ns))
		return;
	rcu_thread_offline();
	for (uint32_t i = 0; i < s->live.nr_threads; i++)
		sampler_thread_kick(s->live.threads[i]);
	while (!waits_complete(s->store.waits, now_ns) && time_now_ns() < now_ns + READ_MAX_NS)
		nanosleep(&nap, NULL);
	rcu_thread_online();
}

static void turn_on(struct sampler *s)
{
	const struct waits_tables t = store_waits_tables(&s->store);
	struct session_windows *w = &s->waiting.windows;
	uint64_t now_ns = time_now_ns();

	counters_set_waking(s->live.counters, false);
	windows_read_rings(s, now_ns);
	waits_estimate(s->store.waits, &t, true, now_ns);
	waits_read_times(s->store.waits, read_times, BEGIN_TASKS);
	*w = (struct session_windows){
		.on = true,
		.opened_ns = now_ns,
		.random = (uint32_t)now_ns,
		.turn_ns = counters_has_switches(s->live.counters) ? now_ns + WINDOW_NS
								   : UINT64_MAX,
	};
}

/* Record all switches again. */
static void turn_off(struct sampler *s)
{
	const struct waits_tables t = store_waits_tables(&s->store);

	waits_read_times(s->store.waits, read_times, BEGIN_TASKS);
	counters_set_waking(s->live.counters, true);
	if (s->waiting.windows.closed && counters_set_switches(s->live.counters, true))
		mailbox_say(&s->mailbox, "cannot open the event of switches: waits are not "
					 "measured");
	waits_estimate(s->store.waits, &t, false, time_now_ns());
	s->waiting.windows = (struct session_windows){ .on = false };
}

void windows_begin(struct sampler *s)
{
	if (s->waiting.windows.on) {
		counters_set_waking(s->live.counters, true);
		counters_set_switches(s->live.counters, true);
	}
	s->waiting.windows = (struct session_windows){ .on = false };
}

uint64_t windows_read(struct sampler *s, uint64_t now_ns, uint64_t tick_ns)
{
	struct session_windows *w = &s->waiting.windows;
	uint64_t seen_ns = w->seen_ns;

	if (!w->on)
		return tick_ns;
	waits_read_times(s->store.waits, read_times, READ_TASKS);
	if (!w->closed) {
		seen_ns += now_ns - MIN(w->opened_ns, now_ns);
		w->opened_ns = now_ns;
	}
	w->seen_ns = 0;
	return seen_ns;
}

bool windows_govern(struct sampler *s, double rate)
{
	struct session_windows *w = &s->waiting.windows;

	if (!w->on) {
		if (rate > RATE_MIN && !s->recording.recorder && has_times())
			turn_on(s);
		return false;
	}
	w->nr_calm = rate < RATE_MIN / 2.0 ? w->nr_calm + 1 : 0;
	if (w->nr_calm < CALM_TICKS && !s->recording.recorder)
		return false;
	turn_off(s);
	return true;
}

uint64_t windows_due(const struct sampler *s)
{
	const struct session_windows *w = &s->waiting.windows;

	if (w->on)
		return w->turn_ns;
	return s->recording.recorder ? UINT64_MAX : w->looked_ns + LOOK_NS;
}

/* A tick may be too late for a program that switches often: it would lose half of its time. */
static void look_at_rate(struct sampler *s)
{
	struct session_windows *w = &s->waiting.windows;
	const struct waits_tables t = store_waits_tables(&s->store);
	uint64_t now_ns = time_now_ns(), last_ns = w->looked_ns;
	uint32_t nr = waits_nr_notes(s->store.waits), more = nr - w->nr_notes;
	double rate = (double)more / NOTES_EACH * 1e9 /
		      ((double)MAX(now_ns - last_ns, 1) * s->live.nr_threads);

	/* A queue that is full would show no rate. */
	waits_take(s->store.waits, &t, now_ns);
	w->nr_high = last_ns && rate > RATE_MIN ? w->nr_high + 1 : 0;
	w->looked_ns = now_ns;
	w->nr_notes = nr;
	if (w->nr_high < LOOKS || !has_times())
		return;
	turn_on(s);
	/* All switches of this tick were recorded so far. */
	w->seen_ns = now_ns - MIN(s->ticks.last_ns, now_ns);
}

void windows_turn(struct sampler *s)
{
	struct session_windows *w = &s->waiting.windows;
	const struct waits_tables t = store_waits_tables(&s->store);
	uint64_t now_ns;
	int code;

	if (!w->on) {
		look_at_rate(s);
		return;
	}
	code = counters_set_switches(s->live.counters, w->closed);
	now_ns = time_now_ns();
	if (code) {
		w->turn_ns = now_ns + GAP_MAX_NS;
		return;
	}
	/* The records of a window that ends are still in the rings. */
	if (!w->closed)
		windows_read_rings(s, now_ns);
	waits_interrupt(s->store.waits, &t, !w->closed, now_ns);
	if (w->closed)
		w->opened_ns = now_ns;
	else
		w->seen_ns += now_ns - w->opened_ns;
	w->closed = !w->closed;
	w->turn_ns = now_ns + (w->closed ? gap_ns(w) : WINDOW_NS);
}
