// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The events of a live session and the threads that read them: readers of interpreters, waits and
 * sleepers.
 *
 * Runs on: set-up, then the builder.
 */
#include "sampler/internal.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>
#include <urcu-qsbr.h>

#include "sampler/count/count.h"
#include "sampler/event/event.h"
#include "sampler/hot/hot.h"
#include "sampler/profile/profile.h"
#include "sampler/reader/reader.h"
#include "sampler/ring/ring.h"
#include "sampler/waits/waits.h"
#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/base/thread.h"
#include "symbols/process/process.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/symbols.h"
#include "unwind/unwind.h"

/*
 * Start and end readers by the share of interpreters on each CPU.
 *
 * Runs on: the builder. Order: a reader runs before the events wake it, and
 * the sampler thread has left its feed before it is freed.
 */

/* A reader runs while more of its CPU's samples than this are of interpreters, in percent. */
#define SHARE_ON 2

#define SHARE_OFF 0.5
#define QUIET_MAX 5

/*
 * Readers that may be killed, or hang: DEAD_MAX in a row, then one in FORGIVE_NS. Any user can let
 * them hang.
 */
#define DEAD_MAX 20U

#define FORGIVE_NS 60000000000ULL

/*
 * Readers of one program until it is barred, each within FORGIVE_NS of the one before: a busy
 * machine may have stopped a reader, and does so again in a session of hours.
 */
#define STRIKES_MAX 3U

/*
 * So long after a new interpreter samples of unknown processes wake the readers: the next one may
 * be brief, and its first samples are read soon or never.
 */
#define NEW_NS 2000000000ULL

/* After a reader that could not be started. */
#define TRY_NS 1000000000ULL

int langreaders_open(struct langreaders *r, struct script_functions *codes, uint32_t languages,
		     const struct copier *copier)
{
	r->shared = calloc(1, sizeof(*r->shared));
	if (!r->shared)
		return -ENOMEM;
	r->shared->codes = codes;
	r->shared->languages = languages;
	r->shared->copier = *copier;
	return 0;
}

void langreaders_close(struct langreaders *r)
{
	free(r->quiet);
	free(r->shared);
}

/* Let grace periods pass during a wait. Return whether this thread was online. */
static bool go_offline(void)
{
	bool online = rcu_read_ongoing();

	if (online)
		rcu_thread_offline();
	return online;
}

static void go_online(bool was_online)
{
	if (was_online)
		rcu_thread_online();
}

/* Return whether a reader may be started now. */
static bool may_start(struct langreaders *r)
{
	uint64_t now_ns = time_now_ns();

	for (; r->nr_dead && now_ns - r->forgiven_ns >= FORGIVE_NS; r->nr_dead--)
		r->forgiven_ns += FORGIVE_NS;
	return r->nr_dead < DEAD_MAX && now_ns >= r->next_try_ns;
}

static void note_dead(struct langreaders *r, struct mailbox *mailbox)
{
	if (!r->nr_dead)
		r->forgiven_ns = time_now_ns();
	r->nr_dead = MIN(r->nr_dead + 1, DEAD_MAX);
	if (r->nr_dead < DEAD_MAX || r->said_dead)
		return;
	r->said_dead = true;
	mailbox_add(mailbox, "readers of interpreters hang or are killed: language frames are "
			     "shown after a pause");
}

/* Return whether that was one reader of @process too many. */
static bool strike(struct langreaders *r, uint32_t process, uint64_t now_ns)
{
	struct langreaders_strikes *s = NULL;

	for (uint32_t i = 0; i < ARRAY_SIZE(r->strikes) && !s; i++)
		if (r->strikes[i].process == process)
			s = &r->strikes[i];
	if (!s) {
		s = &r->strikes[r->next_strike++ % ARRAY_SIZE(r->strikes)];
		*s = (struct langreaders_strikes){ .process = process };
	}
	if (now_ns - s->last_ns > FORGIVE_NS)
		s->nr = 0;
	s->last_ns = now_ns;
	return ++s->nr >= STRIKES_MAX;
}

static void start(struct langreaders *r, struct counters *c, struct sampler_thread *t,
		  uint32_t index)
{
	struct langreader *reader;
	bool online;
	int rc;

	if (!may_start(r))
		return;
	/* The server may not answer. */
	online = go_offline();
	rc = langreader_start(&reader, r->shared, c, index, sampler_thread_kick_fd(t), &r->error);
	go_online(online);
	if (rc < 0) {
		r->next_try_ns = time_now_ns() + TRY_NS;
		return;
	}
	sampler_thread_set_reader(t, reader);
	r->nr++;
	if (!counters_wake(c, index, rc ? COUNTERS_WAKE_OTHERS : COUNTERS_WAKE_ALL))
		return;
	/* No event wakes it: nothing is gained by it. */
	counters_wake(c, index, COUNTERS_WAKE_NONE);
	sampler_thread_drop_reader(t);
	r->nr--;
	langreader_stop(reader);
}

/* @hangs: it is not waited for. */
static void stop(struct langreaders *r, struct counters *c, struct sampler_thread *t,
		 uint32_t index, bool hangs)
{
	struct langreader *reader = sampler_thread_reader(t);
	bool online;

	if (!reader)
		return;
	counters_wake(c, index, COUNTERS_WAKE_NONE);
	sampler_thread_drop_reader(t);
	r->nr--;
	if (hangs) {
		langreader_leave(reader);
		return;
	}
	online = go_offline();
	langreader_stop(reader);
	go_online(online);
}

static uint8_t *quiet_of(struct langreaders *r, uint32_t index)
{
	if (index >= r->nr_quiet) {
		r->quiet = xrealloc_array(r->quiet, index + 1, sizeof(*r->quiet));
		for (; r->nr_quiet <= index; r->nr_quiet++)
			r->quiet[r->nr_quiet] = 0;
	}
	return &r->quiet[index];
}

void langreaders_note(struct langreaders *r, struct counters *c, struct sampler_thread *t,
		      uint32_t index, uint64_t taken, uint64_t lang)
{
	uint8_t *quiet;

	if (!r->shared)
		return;
	quiet = quiet_of(r, index);
	if (!sampler_thread_reader(t)) {
		*quiet = 0;
		if (100.0 * (double)lang > SHARE_ON * (double)taken)
			start(r, c, t, index);
		return;
	}
	langreader_charge(sampler_thread_reader(t), taken);
	*quiet = 100.0 * (double)lang < SHARE_OFF * (double)taken || !taken ? (uint8_t)(*quiet + 1)
									    : 0;
	if (*quiet >= QUIET_MAX) {
		stop(r, c, t, index, false);
	} else if (langreader_is_spent(sampler_thread_reader(t), time_now_ns())) {
		stop(r, c, t, index, false);
		start(r, c, t, index);
	}
}

/*
 * Put another reader in the place of one that hangs, or was killed. Return whether the process that
 * it read was barred.
 */
static bool replace(struct langreaders *r, struct counters *c, struct sampler_thread *t,
		    uint32_t index, struct mailbox *mailbox)
{
	const struct langreader *reader = sampler_thread_reader(t);
	bool hangs, bars = false;
	uint32_t process;
	pid_t pid;

	if (!reader)
		return false;
	hangs = langreader_hangs(reader, time_now_ns(), &pid, &process);
	if (!hangs && !langreader_is_dead(reader, &pid, &process))
		return false;
	/* One program may be read on all CPUs: that is one event. */
	if (!process || !langreader_is_barred(r->shared, process)) {
		bars = process && strike(r, process, time_now_ns());
		note_dead(r, mailbox);
	}
	if (bars) {
		mailbox_add(mailbox,
			    hangs ? "reading the memory of pid %d hangs: its language frames are "
				    "not shown"
				  : "the reader of pid %d was killed: its language frames are not "
				    "shown",
			    (int)pid);
		langreader_bar(r->shared, process);
	}
	stop(r, c, t, index, true);
	start(r, c, t, index);
	return bars;
}

void langreaders_look(struct langreaders *r, struct counters *c, struct sampler_thread **threads,
		      uint32_t nr_threads, uint32_t nr_found, uint32_t nr_described,
		      struct mailbox *mailbox)
{
	bool found = nr_found != r->nr_found, described = nr_described != r->nr_described;
	bool barred = false, new;

	r->nr_found = nr_found;
	r->nr_described = nr_described;
	if (!r->shared)
		return;
	sandbox_memory_tidy();
	if (described)
		r->described_ns = time_now_ns();
	new = time_now_ns() - r->described_ns < NEW_NS;
	for (uint32_t i = 0; i < nr_threads; i++) {
		/* Relaxed: only the request itself counts. A wish that is not taken stays. */
		if (may_start(r) && (sampler_thread_take_wish(threads[i]) || found) &&
		    !sampler_thread_reader(threads[i]))
			start(r, c, threads[i], i);
		barred |= replace(r, c, threads[i], i, mailbox);
		if (r->error.text[0] && !r->said_error)
			mailbox_add(mailbox, "%s: their functions are not shown", r->error.text);
		r->said_error |= r->error.text[0] != '\0';
		if (!sampler_thread_reader(threads[i]))
			continue;
		langreader_answer(sampler_thread_reader(threads[i]), new);
		/* It tells its reader about the new one. */
		if (described)
			wake_send(sampler_thread_kick_fd(threads[i]));
		if (!r->said_slow && langreader_is_slow(sampler_thread_reader(threads[i]))) {
			r->said_slow = true;
			mailbox_add(mailbox, "no real-time priority for reading interpreters "
					     "(cap_sys_nice): more of their frames are guesses");
		}
	}
	for (uint32_t i = 0; i < nr_threads && barred; i++)
		sampler_thread_note_barred(threads[i]);
}

/* End all of them; the events wake at the watermark again. */
static void langreaders_stop(struct langreaders *r, struct counters *c,
			     struct sampler_thread **threads, uint32_t nr_threads)
{
	if (!r->shared)
		return;
	for (uint32_t i = 0; i < nr_threads; i++)
		stop(r, c, threads[i], i, false);
}

#define OPEN_TRIES 3

static int open_on(const struct sampler_config *c, const struct target *t, const int *cpus,
		   uint32_t nr_cpus, struct counters **out, struct err *e)
{
	const bool dwarf = c->call_graph == CALL_GRAPH_DWARF;
	struct core_types cores;
	const struct counters_config config = {
		.cpus = cpus,
		.nr_cpus = nr_cpus,
		.tids = t->tids,
		.nr_tids = t->nr_tids,
		.nr_named = t->nr_named,
		.no_inherit = t->kind == TARGET_TIDS,
		.may_be_empty = t->kind == TARGET_NAME,
		.cgroup = t->cgroup_fd >= 0,
		.cgroup_fd = t->cgroup_fd,
		/* Until its exec; afterwards a command is like other processes. */
		.enable_on_exec = t->kind == TARGET_COMMAND && t->release_fd >= 0,
		.events = c->events,
		.nr_events = c->nr_events,
		.hz = c->hz,
		.period = c->period,
		.stack_size = dwarf ? c->stack_size : 0,
		.regs_mask = dwarf ? unwind_regs_mask() : 0,
		.no_chain = c->call_graph == CALL_GRAPH_OFF,
		.deferred = c->call_graph == CALL_GRAPH_DEFER,
		.ring_size = c->ring_size,
		.exclude_idle = true,
		.data_maps = c->record,
		.program_fd = c->program_fd,
		.cores = &cores,
	};

	core_types_read(&cores, "");
	return counters_open(out, &config, c->sys ? c->sys : &counters_kernel, e);
}

static bool has_cpu(const int *cpus, int nr, int cpu)
{
	for (int i = 0; i < nr; i++)
		if (cpus[i] == cpu)
			return true;
	return false;
}

/* Get the CPUs to sample: the list of @c, or all that are online. nr or -errno with a message. */
static int choose_cpus(const struct sampler_config *c, int **cpus, struct err *e)
{
	int *online = NULL, nr = task_list_online_cpus(&online, e), kept = 0, missing = -1;

	*cpus = online;
	if (nr < 0 || !c->cpus)
		return nr;
	*cpus = xcalloc(c->nr_cpus, sizeof(**cpus));
	for (uint32_t i = 0; i < c->nr_cpus; i++) {
		if (!has_cpu(online, nr, c->cpus[i]))
			missing = c->cpus[i];
		else if (!has_cpu(*cpus, kept, c->cpus[i]))
			(*cpus)[kept++] = c->cpus[i];
	}
	free(online);
	if (missing < 0 || (c->skip_offline && kept))
		return kept;
	return err_set(e, -ENODEV,
		       "CPU %d is not online\n"
		       "  /sys/devices/system/cpu/online lists the online CPUs\n"
		       "  leave it out of -C",
		       missing);
}

static int open_all(const struct sampler_config *c, const struct target *t, struct counters **out,
		    struct err *e)
{
	int code = -ENODEV;

	/* A CPU may go offline after the list was read. */
	for (int i = 0; i < OPEN_TRIES && code == -ENODEV; i++) {
		int *cpus = NULL, nr = choose_cpus(c, &cpus, e);

		code = nr < 0 ? nr : open_on(c, t, cpus, (uint32_t)nr, out, e);
		free(cpus);
	}
	return code;
}

/*
 * Return -EACCES or -EPERM if an event is not permitted on our own task: there may be no other one
 * yet.
 */
static int probe_rights(const struct sampler_config *c, struct err *e)
{
	for (uint32_t i = 0; i < c->nr_events; i++) {
		int code = event_probe(&c->events[i], 0, -1);

		if (code == -EACCES || code == -EPERM)
			return err_set(e, code, "%s is not permitted: perf_event_open: %s",
				       c->events[i].name, strerror(-code));
	}
	return 0;
}

/*
 * Events on processes that are found by name miss the ones that end before the next search, and a
 * timer of a task that ends soon does not expire: with the right to whole CPUs, all is sampled,
 * and samples of other processes are left out. Waits are measured of tasks: switches of whole CPUs
 * are many.
 */
int live_open_counters(const struct sampler_config *c, struct target *t, struct counters **out,
		       struct err *e)
{
	const struct target all = { .cgroup_fd = -1, .release_fd = -1 };
	int code;

	t->wide = false;
	if ((t->kind == TARGET_NAME || t->brief) && !t->per_task && config_wait_slot(c) < 0) {
		code = open_all(c, &all, out, e);
		t->wide = !code;
		if (code != -EACCES && code != -EPERM)
			return code;
	}
	code = t->kind == TARGET_NAME ? probe_rights(c, e) : 0;
	return code ? code : open_all(c, t, out, e);
}

uint8_t *live_online(void)
{
	uint8_t *set = xcalloc(LIVE_CPUS_MAX, 1);
	int *cpus = NULL, nr = task_list_online_cpus(&cpus, NULL);

	for (int i = 0; i < nr; i++)
		if (cpus[i] < LIVE_CPUS_MAX)
			set[cpus[i]] = 1;
	free(cpus);
	return set;
}

/* Add the statistics of one thread. */
static void add_unwind_stats(struct unwind_stats *sum, const struct sampler_thread *t)
{
	struct unwind_stats st;

	sampler_thread_unwind_stats(t, &st);
	sum->nr_frames += st.nr_frames;
	sum->nr_row_hits += st.nr_row_hits;
	sum->nr_steps += st.nr_steps;
	sum->nr_guessed += st.nr_guessed;
	sum->nr_rows += st.nr_rows;
	sum->nr_rows_differ += st.nr_rows_differ;
	sum->nr_verified += st.nr_verified;
	sum->nr_verify_differ += st.nr_verify_differ;
}

int live_start_threads(struct live *l, struct err *e)
{
	uint32_t nr = counters_nr_cpus(l->counters);
	int code = 0;

	assert(!l->nr_threads);
	l->shared->counters = l->counters;
	l->shared->sideband = l->sideband;
	l->shared->only_chosen = l->only_chosen;
	free(l->threads);
	l->threads = xcalloc(nr, sizeof(struct sampler_thread *));
	for (uint32_t i = 0; i < nr && !code; i++) {
		code = sampler_thread_start(&l->threads[i], l->shared, i, e);
		l->nr_threads += !code;
	}
	return code;
}

void live_finish_threads(struct live *l)
{
	langreaders_stop(&l->readers, l->counters, l->threads, l->nr_threads);
	for (uint32_t i = 0; i < l->nr_threads; i++)
		sampler_thread_finish(l->threads[i]);
}

void live_stop_threads(struct live *l)
{
	langreaders_stop(&l->readers, l->counters, l->threads, l->nr_threads);
	for (uint32_t i = 0; i < l->nr_threads; i++) {
		sampler_thread_finish(l->threads[i]);
		l->ended_ns += sampler_thread_cpu_ns(l->threads[i]);
		add_unwind_stats(&l->ended_unwind, l->threads[i]);
		sampler_thread_stop(l->threads[i]);
	}
	l->nr_threads = 0;
}

void live_unwind_stats(const struct live *l, struct unwind_stats *out)
{
	*out = l->ended_unwind;
	for (uint32_t i = 0; i < l->nr_threads; i++)
		add_unwind_stats(out, l->threads[i]);
}

uint64_t live_cpu_ns(const struct live *l)
{
	uint64_t ns = l->ended_ns;

	for (uint32_t i = 0; i < l->nr_threads; i++)
		ns += sampler_thread_cpu_ns(l->threads[i]);
	return ns;
}

void live_close(struct live *l)
{
	assert(!l->nr_threads);
	sideband_free(l->sideband);
	if (l->counters)
		counters_close(l->counters);
	free(l->online);
	free(l->threads);
	free(l->shared);
}

/*
 * Waits at high rates of switches: a record of each switch costs the program half a microsecond,
 * one of each wake-up a whole one. Then wake-ups are not recorded, and switches of whole CPUs in
 * short windows only. The kernel counts the times of the tasks.
 *
 * Threads: the builder.
 *
 * Record switches in short windows instead of all the time.
 *
 * Runs on: the builder, online for urcu-qsbr. Only events of whole CPUs have windows: events
 * of tasks are inherited, and closing them would lose the children. A recording that begins
 * ends the windows with the next tick.
 */

/* Switches a second of each CPU that take two or three percent of the time to record. */
#define RATE_MIN 10000

#define CALM_TICKS 3

/* How often the rate is looked at between ticks, how many high ones begin the windows. */
#define LOOK_NS 50000000ULL

#define LOOKS 2

/* Notes of a switch: out, in, and a wake-up. */
#define NOTES_EACH 3

/* One part in sixteen of the time; the gaps differ, as the program may be periodic. */
#define WINDOW_NS 20000000ULL

#define GAP_MIN_NS 200000000ULL
#define GAP_MAX_NS 400000000ULL

/* Tasks that are read in a tick, and at the begin. */
#define READ_TASKS 2000

#define BEGIN_TASKS 20000

/* How long the end of a tick waits for the sampler threads to read their rings. */
#define READ_MAX_NS 20000000ULL

#define READ_NAP_NS 100000

/* Read the schedstat of a task: times on a CPU and in a run queue. */
static bool read_times(pid_t pid, pid_t tid, struct waits_times *out)
{
	char text[96];

	return untrusted_read_task(text, sizeof(text), pid, tid, "schedstat") &&
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

/* Have the sampler threads read their rings up to @now_ns, which takes a moment. */
static void windows_read_rings(struct sampler *s, uint64_t now_ns)
{
	const struct timespec nap = { .tv_nsec = READ_NAP_NS };

	if (waits_complete(s->store.waits, now_ns))
		return;
	rcu_thread_offline();
	for (uint32_t i = 0; i < s->live.nr_threads; i++)
		wake_send(sampler_thread_kick_fd(s->live.threads[i]));
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

/* Waits begin: record all switches. */
static void windows_begin(struct sampler *s)
{
	if (s->waiting.windows.on) {
		counters_set_waking(s->live.counters, true);
		counters_set_switches(s->live.counters, true);
	}
	s->waiting.windows = (struct session_windows){ .on = false };
}

/* Before a tick is counted: read the times of the tasks. Return the time with switches recorded. */
static uint64_t windows_read(struct sampler *s, uint64_t now_ns, uint64_t tick_ns)
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

/*
 * After a tick with @rate switches a second of each CPU: begin, go on or end. Return true if all
 * switches are recorded again: the tasks are to be found again.
 */
static bool windows_govern(struct sampler *s, double rate)
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

/* While waits are measured: return when windows_turn() is due; UINT64_MAX: never. */
static uint64_t windows_due(const struct sampler *s)
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

/* Open or close a window; without windows look at the rate, and begin where it is high. */
static void windows_turn(struct sampler *s)
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

/*
 * Kinds and user stacks of tasks that sleep while the kernel samples no switch of theirs: they
 * slept before the start, or the user may not sample the kernel.
 *
 * Threads: the builder; tasks are read on a helper thread, which may hang.
 *
 * One job at a time: copies of a few stacks, which the builder unwinds with a pipeline, or kinds of
 * waits alone.
 *
 * Runs on: the builder, online for urcu-qsbr. A stack is unwound from two registers, so it ends at
 * the first frame that needs another one.
 */

struct sleepers {
	struct sleep_reader *reader;
	struct pipeline *pipeline;
	uint32_t places[STACKS_PLACES_MAX]; /* scratch */
};

static void sleepers_free(struct sleepers *l);

/* Make the reader and the pipeline; NULL: out of memory. */
static struct sleepers *get_sleepers(struct sampler *s)
{
	struct sleepers *l = s->waiting.sleepers;
	struct err e;

	if (l)
		return l;
	l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	l->reader = sleep_reader_new((struct sleep_reader_calls){ asleep_read, asleep_kind });
	if (!l->reader || pipeline_new(&l->pipeline, sampler_thread_tables(s->live.shared), &e)) {
		sleepers_free(l);
		return NULL;
	}
	s->waiting.sleepers = l;
	return l;
}

/* NULL is allowed. */
static void sleepers_free(struct sleepers *l)
{
	if (!l)
		return;
	sleep_reader_free(l->reader);
	pipeline_free(l->pipeline);
	free(l);
}

/*
 * Unwind a copy, with @cut as outermost place if it has no root. Return the number of places;
 * *@pending: its process is not read yet.
 */
static uint32_t unwind_copy(struct sleepers *l, const struct asleep *a, uint32_t cut, bool *pending)
{
	const uint64_t regs[] = { a->sp, a->pc };
	const struct record_sample sample = {
		.ip = a->pc,
		.time_ns = a->time_ns,
		.pid = (uint32_t)a->pid,
		.tid = (uint32_t)a->tid,
		.cpumode = PERF_RECORD_MISC_USER,
		.regs_abi = PERF_SAMPLE_REGS_ABI_64,
		.regs = (const uint8_t *)regs,
		.stack = a->stack,
		.stack_size = sizeof(a->stack),
		.stack_dyn = a->size,
	};
	struct pipeline_stack stack;
	uint32_t nr;

	pipeline_resolve(l->pipeline, &sample, unwind_regs_mask_of_stack());
	pipeline_stack(l->pipeline, &stack);
	*pending = !stack.nr || stack.stop == UNWIND_PENDING;
	if (*pending)
		return 0;
	nr = MIN(stack.nr, STACKS_PLACES_MAX - 3);
	memcpy(l->places + 2, stack.places, nr * sizeof(*l->places));
	if (stack.stop != UNWIND_COMPLETE && stack.stop != UNWIND_NO_USER)
		l->places[2 + nr++] = cut;
	return nr;
}

/* Report whether a wait of this kind is of a program, with callers. */
static bool has_callers(enum wait_kind kind)
{
	return kind != WAIT_KTHREAD;
}

/* Count a copy: kind, mark, functions of the program. */
static void count_copy(struct sampler *s, struct sleepers *l, const struct waits_sleeper *task,
		       const struct asleep *a)
{
	const struct waits_tables t = store_waits_tables(&s->store);
	bool pending = false;
	uint32_t nr = a->size ? unwind_copy(l, a, t.kinds[WAIT_CUT], &pending) : 0;
	bool before = task->look == LOOK_BEFORE;
	uint32_t *first = l->places + !before;

	if (pending && before) {
		waits_look_again(s->store.waits, task);
		return;
	}
	if (!nr && has_callers(a->kind))
		l->places[2 + nr++] = t.kinds[WAIT_CUT];
	l->places[1] = t.kinds[WAIT_FOUND];
	first[0] = t.kinds[a->kind];
	waits_slept(s->store.waits, &t, task,
		    stacks_intern(t.stacks, first, nr ? nr + 1 + before : 1), a->time_ns);
}

/* Count the kind of the wait of a task, of which nothing else is known. */
static void count_kind(struct sampler *s, const struct sleep_copy *c)
{
	const struct waits_tables t = store_waits_tables(&s->store);
	const uint32_t places[] = { t.kinds[c->kind], t.kinds[WAIT_CUT] };
	bool cut = s->config.call_graph != CALL_GRAPH_OFF && has_callers(c->kind);

	waits_slept(s->store.waits, &t, &c->task,
		    c->kind ? stacks_intern(t.stacks, places, 1 + cut) : STACK_NONE, c->time_ns);
}

/* Take the results of a job that has ended, or hangs. */
static void take_job(struct sampler *s, struct sleepers *l)
{
	uint32_t nr;
	const struct sleep_copy *copies = sleep_reader_copies(l->reader, &nr);

	pipeline_use(l->pipeline, sampler_thread_tables(s->live.shared), NULL);
	for (uint32_t i = 0; i < nr; i++)
		if (!copies[i].copy)
			count_kind(s, &copies[i]);
		else if (copies[i].kind)
			count_copy(s, l, &copies[i].task, copies[i].copy);
	if (pipeline_take_asked(l->pipeline))
		symbols_wake(s->store.symbols);
	sleep_reader_drop(l->reader);
}

/* Start a job for the next tasks, of an unknown kind first; false: there are none. */
static bool start_job(struct sampler *s, struct sleepers *l, bool all, bool stacks)
{
	struct waits_sleeper tasks[SLEEP_READER_KINDS];
	const struct waits_barred hung = sleep_reader_hung(l->reader);
	uint32_t nr = waits_sleepers(s->store.waits, LOOK_KIND, &hung, tasks, SLEEP_READER_KINDS);

	if (nr)
		return sleep_reader_start(l->reader, tasks, nr, false);
	nr = waits_sleepers(s->store.waits, all ? LOOK_NOW : LOOK_BEFORE, &hung, tasks,
			    stacks ? SLEEP_READER_TASKS : SLEEP_READER_KINDS);
	return sleep_reader_start(l->reader, tasks, nr, stacks);
}

/*
 * Count the waits that were read since the last call, and have more read: of tasks whose kind is
 * wanted (waits_wants_kinds()), then of tasks that slept before the start, or of @all that sleep.
 * @stacks: kinds of waits with stacks of a few tasks, else
 * the kinds alone, of many. A process that hangs its reader is left out until that read ends.
 * False: there are no more.
 */
static bool sleepers_look(struct sampler *s, bool all, bool stacks)
{
	struct sleepers *l = get_sleepers(s);

	if (!l)
		return false;
	switch (sleep_reader_look(l->reader, time_now_ns())) {
	case SLEEP_READER_BUSY:
	case SLEEP_READER_STOPPED:
		return true;
	case SLEEP_READER_HUNG:
	case SLEEP_READER_DONE:
		take_job(s, l);
		break;
	case SLEEP_READER_IDLE:
		break;
	}
	return start_job(s, l, all, stacks) || sleep_reader_stopped(l->reader);
}

/* Report whether processes are left out. */
static bool sleepers_barred(const struct sleepers *l)
{
	return l && sleep_reader_hung(l->reader).nr;
}

/* Return one of too many processes that hang their reader; 0: few enough, stacks are read. */
static pid_t sleepers_hung(const struct sleepers *l)
{
	struct waits_barred hung;

	if (!l || !sleep_reader_stopped(l->reader))
		return 0;
	hung = sleep_reader_hung(l->reader);
	return hung.pids[hung.nr - 1];
}

/*
 * Waits of a session.
 *
 * Runs on: set-up, then the builder, online for urcu-qsbr. Queues are freed only while no sampler
 * thread runs: the threads use them outside of grace periods.
 */

/* All switches have a stack up to this multiple of the sampling rate, on each CPU. */
#define STACKS_MAX 4

/* Waits are counted at the end of a tick, and in a long one so often. */
#define SOME_NS 1200000000ULL

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
	size_t size = untrusted_read_task(text, sizeof(text), pid, tid, "status");

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
	bool own = !s->config.include_self && pipeline_is_own(getpid(), s->config.guard, pid);

	if (step != STEP_EXIT && !own)
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
					 untrusted_read_task(text, sizeof(text), tid, tid,
							     "status"),
					 "Tgid", &pid))
			find_task(s, (pid_t)pid, tid);
	}
	if (s->target.tids)
		return;
	dir = opendir("/proc");
	while (dir && left && (d = readdir(dir)))
		if (atoi(d->d_name) > 0 &&
		    !pipeline_is_own(getpid(), s->config.guard, atoi(d->d_name)))
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
	s->rates.mixed = true;
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
