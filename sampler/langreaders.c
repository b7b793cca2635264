// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Start and end readers by the share of interpreters on each CPU.
 *
 * Runs on: the builder. Order: a reader runs before the events wake it, and
 * the sampler thread has left its feed before it is freed.
 */
#include "sampler/langreaders.h"

#include <errno.h>
#include <stdlib.h>
#include <urcu-qsbr.h>

#include "symbols/base/intern.h"
#include "symbols/base/wake.h"
#include "symbols/cage/cage_memory.h"

/* A reader runs while more of its CPU's samples than this are of interpreters, in percent. */
#define SHARE_ON  2
#define SHARE_OFF 0.5
#define QUIET_MAX 5
/*
 * Readers that may be killed, or hang: DEAD_MAX in a row, then one in FORGIVE_NS. Any user can let
 * them hang.
 */
#define DEAD_MAX   20U
#define FORGIVE_NS 60000000000ULL
/* Readers of one program until it is barred: a busy machine may have stopped the first one. */
#define STRIKES_MAX 3U
/* After a reader that could not be started. */
#define TRY_NS 1000000000ULL

int langreaders_open(struct langreaders *r, struct codes *codes, uint32_t languages)
{
	r->shared = calloc(1, sizeof(*r->shared));
	if (!r->shared)
		return -ENOMEM;
	r->shared->codes = codes;
	r->shared->languages = languages;
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
static bool strike(struct langreaders *r, uint32_t process)
{
	struct langreaders_strikes *s = NULL;

	for (uint32_t i = 0; i < ARRAY_SIZE(r->strikes) && !s; i++)
		if (r->strikes[i].process == process)
			s = &r->strikes[i];
	if (!s) {
		s = &r->strikes[r->next_strike++ % ARRAY_SIZE(r->strikes)];
		*s = (struct langreaders_strikes){ .process = process };
	}
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
	if (rc) {
		r->next_try_ns = time_now_ns() + TRY_NS;
		return;
	}
	sampler_thread_set_reader(t, reader);
	r->nr++;
	if (!counters_wake(c, index, true))
		return;
	/* No event wakes it: nothing is gained by it. */
	counters_wake(c, index, false);
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
	counters_wake(c, index, false);
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
		bars = process && strike(r, process);
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
	bool barred = false;

	r->nr_found = nr_found;
	r->nr_described = nr_described;
	if (!r->shared)
		return;
	cage_memory_tidy();
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
		langreader_answer(sampler_thread_reader(threads[i]));
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

void langreaders_stop(struct langreaders *r, struct counters *c, struct sampler_thread **threads,
		      uint32_t nr_threads)
{
	if (!r->shared)
		return;
	for (uint32_t i = 0; i < nr_threads; i++)
		stop(r, c, threads[i], i, false);
}
