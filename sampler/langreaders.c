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

/* A reader runs while more of its CPU's samples than this are of interpreters, in percent. */
#define SHARE_ON  2
#define SHARE_OFF 0.5
#define QUIET_MAX 5

int langreaders_open(struct langreaders *r, struct maps *maps, struct codes *codes, pid_t own_pid,
		     uint32_t languages)
{
	r->shared = calloc(1, sizeof(*r->shared));
	if (!r->shared)
		return -ENOMEM;
	r->shared->maps = maps;
	r->shared->codes = codes;
	r->shared->own_pid = own_pid;
	r->shared->languages = languages;
	atomic_init(&r->shared->users, 1);
	return 0;
}

void langreaders_close(struct langreaders *r, void (*free_used)(void *used), void *used)
{
	struct langreader_shared *shared = r->shared;

	free(r->quiet);
	if (!shared) {
		free_used(used);
		return;
	}
	shared->free_used = free_used;
	shared->used = used;
	langreader_put(shared);
}

static void start(struct langreaders *r, struct counters *c, struct sampler_thread *t,
		  uint32_t index)
{
	struct langreader *reader;

	if (langreader_start(&reader, r->shared, c, index, sampler_thread_kick_fd(t), &r->error))
		return;
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
	online = rcu_read_ongoing();
	if (online)
		rcu_thread_offline();
	langreader_stop(reader);
	if (online)
		rcu_thread_online();
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
	*quiet = 100.0 * (double)lang < SHARE_OFF * (double)taken || !taken ? (uint8_t)(*quiet + 1)
									    : 0;
	if (*quiet >= QUIET_MAX)
		stop(r, c, t, index, false);
}

static void replace_hanging(struct langreaders *r, struct counters *c, struct sampler_thread *t,
			    uint32_t index, struct mailbox *mailbox)
{
	const struct langreader *reader = sampler_thread_reader(t);
	uint32_t process;
	pid_t pid;

	if (!reader || !langreader_hangs(reader, time_now_ns(), &pid, &process))
		return;
	langreader_bar(r->shared, process);
	stop(r, c, t, index, true);
	start(r, c, t, index);
	mailbox_add(mailbox,
		    "reading the memory of pid %d hangs: its language frames are not shown",
		    (int)pid);
}

void langreaders_look(struct langreaders *r, struct counters *c, struct sampler_thread **threads,
		      uint32_t nr_threads, uint32_t nr_found, struct mailbox *mailbox)
{
	bool found = nr_found != r->nr_found;

	r->nr_found = nr_found;
	if (!r->shared)
		return;
	for (uint32_t i = 0; i < nr_threads; i++) {
		/* Relaxed: only the request itself counts. */
		if ((sampler_thread_take_wish(threads[i]) || found) &&
		    !sampler_thread_reader(threads[i]))
			start(r, c, threads[i], i);
		replace_hanging(r, c, threads[i], i, mailbox);
		if (!r->said_slow && sampler_thread_reader(threads[i]) &&
		    langreader_is_slow(sampler_thread_reader(threads[i]))) {
			r->said_slow = true;
			mailbox_add(mailbox, "no real-time priority for reading interpreters "
					     "(cap_sys_nice): more of their frames are guesses");
		}
	}
}

void langreaders_stop(struct langreaders *r, struct counters *c, struct sampler_thread **threads,
		      uint32_t nr_threads)
{
	if (!r->shared)
		return;
	for (uint32_t i = 0; i < nr_threads; i++)
		stop(r, c, threads[i], i, false);
}
