// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Facts from the owner to a reader, and ids of threads.
 *
 * Runs on: a reader (find), the sampler thread of its CPU (set), the builder (answer).
 */
#include "sampler/pipeline/reader_share.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/foreign.h"
#include "symbols/process/procfs.h"

#define WAYS	    8U
#define EVENT_WAYS  8U
#define THREAD_WAYS 8U
#define KIND_BITS   2
#define PID_BITS    22 /* the kernel's PID_MAX_LIMIT */
#define PID_MASK    ((1U << PID_BITS) - 1)
#define ANSWERS_MAX 64U /* of one call: files of /proc */

static uint32_t ways_of(pid_t pid)
{
	return (uint32_t)hash_u64((uint32_t)pid) & (SHARE_PROCESSES - WAYS);
}

static uint32_t event_slot(uint64_t id)
{
	return (uint32_t)hash_u64(id) & (SHARE_EVENTS - EVENT_WAYS);
}

bool share_knows(const struct share_known *t, pid_t pid, uint32_t process, bool reads)
{
	uint32_t first = ways_of(pid);

	for (uint32_t i = first; i < first + WAYS; i++)
		if (t->processes[i].pid == pid)
			return t->processes[i].process == process && t->processes[i].reads == reads;
	return false;
}

/* Return the entry for @pid: its own, a free one, or that of another one, which is forgotten. */
static uint32_t take_way(struct share_known *t, pid_t pid)
{
	uint32_t first = ways_of(pid);

	for (uint32_t i = first; i < first + WAYS; i++)
		if (t->processes[i].pid == pid)
			return i;
	for (uint32_t i = first; i < first + WAYS; i++)
		if (!t->processes[i].pid)
			return i;
	return first + t->next_way++ % WAYS;
}

void share_set_process(struct share_known *t, pid_t pid, uint32_t process,
		       const struct lang_process *info)
{
	uint64_t words[SHARE_WORDS] = { 0 };
	struct share_process *p;
	uint32_t way, sequence;

	if (share_knows(t, pid, process, info != NULL))
		return;
	way = take_way(t, pid);
	t->processes[way].pid = pid;
	t->processes[way].process = process;
	t->processes[way].reads = info != NULL;
	if (info) {
		memcpy(words, info, sizeof(*info));
		/* Of this address space. */
		((struct lang_process *)(void *)words)->reason = NULL;
	}
	p = &t->share->processes[way];
	sequence = atomic_load_explicit(&p->sequence, memory_order_relaxed) | 1;
	atomic_store_explicit(&p->sequence, sequence, memory_order_relaxed);
	/* Release: the number is odd before any of these; pairs with copy(). */
	atomic_store_explicit(&p->pid, (int)pid, memory_order_release);
	atomic_store_explicit(&p->process, process, memory_order_release);
	atomic_store_explicit(&p->reads, info != NULL, memory_order_release);
	for (size_t i = 0; i < SHARE_WORDS && info; i++)
		atomic_store_explicit(&p->words[i], words[i], memory_order_release);
	/* Release: all of these; pairs with copy(). */
	atomic_store_explicit(&p->sequence, sequence + 1, memory_order_release);
}

void share_refuse(struct share_known *t, uint32_t process)
{
	for (uint32_t i = 0; i < SHARE_PROCESSES; i++)
		if (t->processes[i].process == process && t->processes[i].reads)
			share_set_process(t, t->processes[i].pid, process, NULL);
}

/* Copy an entry of @pid. False: it was written at that time, or is not to be read. */
static bool copy(const struct share_process *p, uint32_t slot, pid_t pid, struct share_found *found)
{
	uint64_t words[SHARE_WORDS];
	uint32_t sequence = atomic_load_explicit(&p->sequence, memory_order_acquire);
	bool same;

	if (found->slot == slot && found->sequence == sequence && sequence)
		return found->pid == pid;
	/* Acquire: these are before the second look; pairs with share_set_process(). */
	same = atomic_load_explicit(&p->pid, memory_order_acquire) == pid &&
	       atomic_load_explicit(&p->reads, memory_order_acquire);
	found->process = atomic_load_explicit(&p->process, memory_order_acquire);
	for (size_t i = 0; i < SHARE_WORDS; i++)
		words[i] = atomic_load_explicit(&p->words[i], memory_order_acquire);
	memcpy(&found->info, words, sizeof(found->info));
	found->slot = slot;
	found->sequence = sequence;
	found->pid = pid;
	if (same && !(sequence & 1) &&
	    atomic_load_explicit(&p->sequence, memory_order_relaxed) == sequence)
		return true;
	found->sequence = 0;
	return false;
}

int share_find(const struct reader_share *s, pid_t pid, struct share_found *found)
{
	uint32_t first = ways_of(pid);

	for (uint32_t i = first; i < first + WAYS; i++) {
		const struct share_process *p = &s->processes[i];

		if (atomic_load_explicit(&p->pid, memory_order_relaxed) != pid)
			continue;
		/* Most samples are of no interpreter: the copy of the last one stays. */
		if (!atomic_load_explicit(&p->reads, memory_order_relaxed))
			return 0;
		return copy(p, i, pid, found);
	}
	return -ENOENT;
}

void share_set_event(struct share_known *t, uint64_t id, enum share_event is)
{
	uint64_t value = id << KIND_BITS | is;
	uint32_t first = event_slot(id), at = SHARE_EVENTS;

	for (uint32_t i = first; i < first + EVENT_WAYS; i++)
		if (t->events[i] == value)
			return;
	for (uint32_t i = first + EVENT_WAYS; i-- > first;)
		if (!t->events[i] || t->events[i] >> KIND_BITS == id)
			at = i;
	/* In turn, or two that are used would displace each other. */
	if (at == SHARE_EVENTS)
		at = first + t->next_event++ % EVENT_WAYS;
	t->events[at] = value;
	atomic_store_explicit(&t->share->events[at], value, memory_order_relaxed);
}

enum share_event share_event_of(const struct reader_share *s, uint64_t id)
{
	uint32_t first = event_slot(id);

	for (uint32_t i = first; i < first + EVENT_WAYS; i++) {
		uint64_t value = atomic_load_explicit(&s->events[i], memory_order_relaxed);

		if (value && value >> KIND_BITS == id)
			return (enum share_event)(value & ((1U << KIND_BITS) - 1));
	}
	return SHARE_UNKNOWN;
}

/* A thread of an incarnation of a process, of which the low bits do. */
static uint64_t thread_key(pid_t pid, pid_t tid, uint32_t process)
{
	return (uint64_t)pid << (64 - PID_BITS) |
	       ((uint64_t)tid & PID_MASK) << (64 - 2 * PID_BITS) |
	       (process & ((1U << (64 - 2 * PID_BITS)) - 1));
}

/* Get the answer for @key; false: it is not there. */
static bool get_answer(const struct share_thread *t, uint64_t key, pid_t *inner)
{
	/* Acquire: the id; pairs with share_answer(). */
	if (atomic_load_explicit(&t->answered, memory_order_acquire) != key)
		return false;
	/* Acquire: before the second look. */
	*inner = atomic_load_explicit(&t->inner, memory_order_acquire);
	return atomic_load_explicit(&t->answered, memory_order_relaxed) == key;
}

pid_t share_inner(struct reader_share *s, pid_t pid, pid_t tid, uint32_t process)
{
	uint64_t key = thread_key(pid, tid, process);
	uint32_t first = (uint32_t)hash_u64(key) & (SHARE_THREADS - THREAD_WAYS);
	uint32_t nr = atomic_load_explicit(&s->nr_questions, memory_order_relaxed);
	uint32_t way = first + nr % THREAD_WAYS;
	pid_t inner;

	for (uint32_t i = first; i < first + THREAD_WAYS; i++) {
		struct share_thread *t = &s->threads[i];
		uint64_t question = atomic_load_explicit(&t->question, memory_order_relaxed);

		if (get_answer(t, key, &inner))
			return inner;
		if (question == key)
			return -1;
		way = question ? way : i;
	}
	atomic_store_explicit(&s->threads[way].question, key, memory_order_relaxed);
	/* Release: the question; pairs with the owner's look at the number. */
	atomic_store_explicit(&s->nr_questions, nr + 1, memory_order_release);
	return -1;
}

/* Read the thread's id in the namespace of its process: the last of NSpid. */
static pid_t read_inner(pid_t pid, pid_t tid)
{
	char text[4096];
	uint64_t inner = (uint64_t)tid;

	procfs_status_inner(text, foreign_read_task(text, sizeof(text), pid, tid, "status"),
			    &inner);
	return (pid_t)inner;
}

bool share_answer(struct reader_share *s)
{
	uint32_t left = ANSWERS_MAX;

	for (uint32_t i = 0; i < SHARE_THREADS; i++) {
		struct share_thread *t = &s->threads[i];
		uint64_t question = atomic_load_explicit(&t->question, memory_order_relaxed);

		if (!question ||
		    question == atomic_load_explicit(&t->answered, memory_order_relaxed))
			continue;
		if (!left--)
			return false;
		atomic_store_explicit(&t->answered, 0, memory_order_relaxed);
		/* Release: there is no answer now; pairs with get_answer(). */
		atomic_store_explicit(&t->inner,
				      read_inner((pid_t)(question >> (64 - PID_BITS)),
						 (pid_t)(question >> (64 - 2 * PID_BITS) &
							 PID_MASK)),
				      memory_order_release);
		/* Release: the id; pairs with share_inner(). */
		atomic_store_explicit(&t->answered, question, memory_order_release);
	}
	return true;
}
