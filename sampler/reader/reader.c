// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A reader of frames of interpreters, at each sample of one CPU: its life as a process or thread,
 * the proof that it ran before the sampled task, its loop: wait for a sample, copy it, read its
 * thread or take the kernel's copy of its frames, pass on.
 *
 * Runs on: reader n, a process, or a thread where proftop has no right that a process of its user
 * lacks. Invariants: data_tail is the sampler thread's; a copy is used only if the kernel has not
 * overwritten the record. Of proftop's memory it needs nothing but the share.
 */
#include "sampler/reader/reader.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "sampler/event/event.h"
#include "sampler/ring/ring.h"
#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/base/thread.h"
#include "symbols/image/image.h"
#include "symbols/process/process.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/script/script.h"
#include "unwind/unwind.h"

/* The descriptors it gets: the event with the ring, the share, the sampler thread's eventfd; with
 * copies of frames (copier.c) the area of its CPU, the ring by which the program wakes it, and the
 * eventfd by which the sampler thread does. */
enum { LANGREADER_DATA, LANGREADER_SHARE, LANGREADER_KICK };
enum { LANGREADER_AREA = LANGREADER_KICK + 1, LANGREADER_RING, LANGREADER_WAKE };

/*
 * Which process a reader reads, and since when: to find a read that hangs. A process is only seen
 * with the time at which that read began, so that no other process is blamed.
 * Threads: begin and end by the reader, the rest by any.
 */
struct reading {
	_Atomic uint64_t since_ns; /* 0: none */
	atomic_int pid;
	atomic_uint process; /* incarnation */
};

static inline void reading_begin(struct reading *r, pid_t pid, uint32_t process, uint64_t now_ns)
{
	/* Release: the end of the read before; pairs with reading_hangs(). */
	atomic_store_explicit(&r->pid, (int)pid, memory_order_release);
	atomic_store_explicit(&r->process, process, memory_order_release);
	/* Release: which process it is; pairs with reading_hangs(). */
	atomic_store_explicit(&r->since_ns, now_ns, memory_order_release);
}

static inline void reading_end(struct reading *r)
{
	atomic_store_explicit(&r->since_ns, 0, memory_order_relaxed);
}

/* Return whether a read began @hang_ns ago or earlier, and goes on; get its process. */
static inline bool reading_hangs(const struct reading *r, uint64_t now_ns, uint64_t hang_ns,
				 pid_t *pid, uint32_t *process)
{
	uint64_t since_ns = atomic_load_explicit(&r->since_ns, memory_order_acquire);

	if (!since_ns || now_ns < since_ns + hang_ns)
		return false;
	*pid = atomic_load_explicit(&r->pid, memory_order_acquire);
	*process = atomic_load_explicit(&r->process, memory_order_acquire);
	/* Else it has ended, and these may be of the next one. */
	return atomic_load_explicit(&r->since_ns, memory_order_relaxed) == since_ns;
}

/* The CPU time that a reader may still take; all zero at first. */
struct langreader_allowance {
	uint64_t time_ns, cpu_ns; /* at the last call */
	int64_t left_ns;
};

/* Wake-ups of a reader with nothing to read; all zero at first, @nr 0 once something was read. */
struct langreader_idle {
	uint64_t woken_ns; /* the latest */
	uint32_t nr;	   /* each soon after the one before */
};

/*
 * Memory that a reader and its owner both have: frames and questions of the reader, and facts that
 * it needs, about processes and events.
 *
 * The owner reads no fact back, and trusts no other byte in it. Facts are set when a sample needs
 * them: a reader leaves out the samples of an event or process until then.
 *
 * Threads: facts are set by the sampler thread of the CPU; ids of threads are answered by the
 * builder. Each entry has a sequence number, odd while it is written (seqlock).
 */

#define SHARE_PROCESSES 1024U /* powers of two */
#define SHARE_EVENTS	4096U
#define SHARE_THREADS	1024U
#define SHARE_FAR	1024U
#define SHARE_WORDS	((sizeof(struct lang_process) + 7) / 8)

struct share_process {
	atomic_uint sequence;
	atomic_int pid;
	atomic_uint process;		     /* incarnation */
	atomic_bool reads;		     /* it is an interpreter to be read */
	_Atomic uint64_t words[SHARE_WORDS]; /* struct lang_process */
};

/* The id of a thread in the PID namespace of its process: a question, then its answer. */
struct share_thread {
	_Atomic uint64_t question, answered; /* thread_key(); 0: none. Release, acquire */
	atomic_int inner;
};

/* A thread with a stack that goes on beyond its copies: addresses that walks wanted there. */
struct share_far {
	/* All relaxed: whatever a reader finds here, it reads the memory of the thread it sees. */
	_Atomic uint64_t thread; /* pid << 32 | tid; 0: none */
	_Atomic uint64_t at[LANG_FAR_MAX];
	atomic_uint process; /* incarnation */
};

enum share_event {
	SHARE_UNKNOWN,
	SHARE_SAMPLE, /* the thread runs */
	SHARE_WAIT,   /* it begins to wait */
	SHARE_OTHER,  /* not to be read */
};

struct reader_share {
	struct frame_channel_ring feed;
	struct reading reading;
	_Atomic uint64_t read_to; /* position in the ring: all samples before it were read */
	atomic_bool slow;	  /* no real-time priority; relaxed */
	atomic_ulong memory;	  /* bytes of functions; relaxed */
	atomic_uint nr_questions;
	struct share_thread threads[SHARE_THREADS];
	/* Of the owner: */
	atomic_bool any_new;	/* processes that are not known yet wake the reader; relaxed */
	atomic_uint nr_changes; /* of processes to be read, and of @far; release, acquire */
	struct share_process processes[SHARE_PROCESSES];
	_Atomic uint64_t events[SHARE_EVENTS]; /* id << 2 | enum share_event */
	struct share_far far[SHARE_FAR];
};

/* A copy of the facts, which the owner alone can change. */
struct share_known {
	struct reader_share *share;
	struct {
		pid_t pid;
		uint32_t process;
		bool reads;
	} processes[SHARE_PROCESSES];
	uint64_t events[SHARE_EVENTS];
	struct known_far {
		uint64_t thread, at[LANG_FAR_MAX];
		uint32_t process, next; /* of @at, which gives way */
		uint32_t nr_unused;	/* samples in a row that did not need them */
	} far[SHARE_FAR];
	uint32_t next_way, next_event;
};

/* Return the entry of a thread in share->far, which may be another one's. Few threads have such
 * stacks: two with one entry lose a sample each time. */
static inline uint32_t share_far_at(pid_t tid)
{
	return (uint32_t)hash_u64((uint32_t)tid) & (SHARE_FAR - 1);
}

static inline uint64_t share_far_thread(pid_t pid, pid_t tid)
{
	return (uint64_t)(uint32_t)pid << 32 | (uint32_t)tid;
}

/* A process as a reader has it, until another one is found. */
struct share_found {
	uint32_t slot, sequence; /* of the copy; sequence 0: none */
	pid_t pid;
	uint32_t process;
	struct lang_process info;
};

/* The reader's CPU (-1: it reads on request), and the form of its samples. */
struct langreader_start {
	int cpu;
	bool copies; /* frames are copied by the kernel */
	struct record_layout layout;
	uint64_t ring_size;
};

/*
 * Proof that a thread without real-time priority has preempted the CPU's task at its wake-up: the
 * scheduler's account, /proc/thread-self/schedstat: time on a CPU, time of waiting for one, times
 * switched in. One thread, about itself.
 */

struct schedstat {
	int fd; /* -1: closed */
	uint64_t waited_ns, nr;
};

static void schedstat_close(struct schedstat *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
}

/* A wait of the switch alone. A preemption at the wake-up takes 0, as the scheduler reads its clock
 * once for both; in 12,000 wake-ups no other took less than 3 us. */
#define INSTANT_NS 1000U

/* Since the last call: was the thread switched in once, without a wait? Then no other task has run
 * on its CPU between its wake-up and now. */
static bool schedstat_was_instant(struct schedstat *p)
{
	char text[96], *at = text;
	ssize_t size = p->fd < 0 ? -1 : pread(p->fd, text, sizeof(text) - 1, 0);
	struct schedstat before = *p;

	if (size <= 0)
		return false;
	text[size] = '\0';
	strtoull(at, &at, 10);
	p->waited_ns = strtoull(at, &at, 10);
	p->nr = strtoull(at, &at, 10);
	return p->nr == before.nr + 1 && p->waited_ns - before.waited_ns < INSTANT_NS;
}

/* Open the calling thread's account. Where there is none, nothing is ever instant. */
static void schedstat_open(struct schedstat *p)
{
	*p = (struct schedstat){ .fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC) };
	schedstat_was_instant(p);
}

/* ---- facts: a reader finds, the sampler thread of its CPU sets, the builder answers ---- */

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

/* Return whether that is set. */
static bool share_knows(const struct share_known *t, pid_t pid, uint32_t process, bool reads)
{
	uint32_t first = ways_of(pid);

	assert(first + WAYS <= SHARE_PROCESSES);
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

/* Note a change of processes to be read, or of @far. Release: that; pairs with copies_read_facts().
 */
static void note_change(struct reader_share *s)
{
	atomic_fetch_add_explicit(&s->nr_changes, 1, memory_order_release);
}

/* Set the fact that incarnation @process of @pid is an interpreter to be read; NULL: it is not. */
static void share_set_process(struct share_known *t, pid_t pid, uint32_t process,
			      const struct lang_process *info)
{
	uint64_t words[SHARE_WORDS] = { 0 };
	struct share_process *p;
	uint32_t way, sequence;
	bool read;

	if (share_knows(t, pid, process, info != NULL))
		return;
	way = take_way(t, pid);
	read = t->processes[way].reads;
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
	if (read || info)
		note_change(t->share);
}

/* Set the fact that incarnation @process is not to be read, if it is known. */
static void share_refuse(struct share_known *t, uint32_t process)
{
	for (uint32_t i = 0; i < SHARE_PROCESSES; i++)
		if (t->processes[i].process == process && t->processes[i].reads)
			share_set_process(t, t->processes[i].pid, process, NULL);
	for (uint32_t i = 0; i < SHARE_FAR; i++)
		if (t->far[i].process == process)
			atomic_store_explicit(&t->share->far[i].thread, t->far[i].thread = 0,
					      memory_order_relaxed);
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

/* Find @pid. 1: it is to be read, @found is set; 0: it is not; -ENOENT: it is not set yet. */
static int share_find(const struct reader_share *s, pid_t pid, struct share_found *found)
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

static void share_set_event(struct share_known *t, uint64_t id, enum share_event is)
{
	uint64_t value = id << KIND_BITS | is;
	uint32_t first = event_slot(id), at = SHARE_EVENTS;

	assert(first + EVENT_WAYS <= SHARE_EVENTS);
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

static enum share_event share_event_of(const struct reader_share *s, uint64_t id)
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

/* Return the inner id of a thread of incarnation @process; -1: it will be known. */
static pid_t share_inner(struct reader_share *s, pid_t pid, pid_t tid, uint32_t process)
{
	uint64_t key = thread_key(pid, tid, process);
	uint32_t first = (uint32_t)hash_u64(key) & (SHARE_THREADS - THREAD_WAYS);
	uint32_t nr = atomic_load_explicit(&s->nr_questions, memory_order_relaxed);
	uint32_t way = first + nr % THREAD_WAYS;
	pid_t inner;

	assert(first + THREAD_WAYS <= SHARE_THREADS);
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

/* Return the id of the thread in the namespace of its process (NSpid); 0 if it is not readable. */
static pid_t read_inner(pid_t pid, pid_t tid)
{
	char text[4096];
	uint64_t inner = 0;

	procfs_status_inner(text, untrusted_read_task(text, sizeof(text), pid, tid, "status"),
			    &inner);
	return (pid_t)inner;
}

/* Answer questions for threads: reads /proc. One that fails is put again by the next sample. False:
 * there are more. Any thread of the owner, one at a time. */
static bool share_answer(struct reader_share *s)
{
	uint32_t left = ANSWERS_MAX;

	for (uint32_t i = 0; i < SHARE_THREADS; i++) {
		struct share_thread *t = &s->threads[i];
		uint64_t question = atomic_load_explicit(&t->question, memory_order_relaxed);
		pid_t inner;

		if (!question ||
		    question == atomic_load_explicit(&t->answered, memory_order_relaxed))
			continue;
		if (!left--)
			return false;
		inner = read_inner((pid_t)(question >> (64 - PID_BITS)),
				   (pid_t)(question >> (64 - 2 * PID_BITS) & PID_MASK));
		atomic_store_explicit(&t->answered, 0, memory_order_relaxed);
		if (!inner) {
			/* Unless the reader has put another one. */
			atomic_compare_exchange_strong(&t->question, &question, 0);
			continue;
		}
		/* Release: there is no answer now; pairs with get_answer(). */
		atomic_store_explicit(&t->inner, inner, memory_order_release);
		/* Release: the id; pairs with share_inner(). */
		atomic_store_explicit(&t->answered, question, memory_order_release);
	}
	return true;
}

/* ---- a reader's end of the copies that the kernel makes (copier.c) ---- */

/* A copy is of a sample of the same thread that is nearer in time than this. The time of a sample
 * is taken after the program up to Linux 6.2, and before it since 6.3 (perf_prepare_sample()). */
#define COPY_NS 100000U

struct copies {
	struct copier_area *area; /* NULL: none */
	/* Of the ring that wakes: how far it is read, and written. */
	uint64_t *ring_read;
	const uint64_t *ring_written;
	uint64_t at;		/* the copies before were looked at */
	uint64_t seen, seen_ns; /* bytes that were written at the last copies_wait_ms() */
	uint32_t nr_changes;	/* of the share, that are in the table of processes */
	bool unknown;		/* the copy that was found last has code that is not in the table */
};

/* Map @size bytes of a map at @at; NULL: that is refused. */
static void *map_of(int fd, size_t size, int protection, size_t at)
{
	void *map = mmap(NULL, size, protection, MAP_SHARED, fd, (off_t)at);

	return map == MAP_FAILED ? NULL : map;
}

/* Map the area and the positions of the ring, each a page. False: that is refused. */
static bool copies_map(struct copies *c, int area_fd, int ring_fd)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	c->area = map_of(area_fd, sizeof(*c->area), PROT_READ | PROT_WRITE, 0);
	c->ring_read = map_of(ring_fd, page, PROT_READ | PROT_WRITE, 0);
	c->ring_written = map_of(ring_fd, page, PROT_READ, page);
	return c->area && c->ring_read && c->ring_written;
}

/* Drop the records of the ring that wakes: a wake-up is all that they are for. */
static void copies_drop_wakes(struct copies *c)
{
	uint64_t written = __atomic_load_n(c->ring_written, __ATOMIC_ACQUIRE);

	__atomic_store_n(c->ring_read, written, __ATOMIC_RELEASE);
}

/* Have the chain of thread @tid of @process copied, as @plan says; NULL: not any more. */
static void copies_plan(struct copies *c, pid_t tid, uint32_t process, const struct lang_plan *plan)
{
	struct copied_thread *pair = &c->area->threads[copies_slot((uint32_t)tid)], *t;
	const bool second = pair[1].tid == (uint32_t)tid;

	/* The program does not run on this CPU while this thread does: no order is needed. */
	if (!second && pair[0].tid != (uint32_t)tid) {
		if (!plan || !copies_fit(plan))
			return;
		/* The newer one of two others is kept. */
		pair[1] = pair[0];
		t = pair;
	} else {
		t = &pair[second];
		if (plan && t->process == process && !memcmp(&t->plan, plan, sizeof(*plan)))
			return;
	}
	t->tid = 0;
	if (!plan || !copies_fit(plan))
		return;
	t->plan = *plan;
	t->process = process;
	t->tid = (uint32_t)tid;
}

/* Return whether the code at @address is of no file: it may be freed at any time. */
static bool is_made(const struct lang_work *w, uint64_t address)
{
	for (uint32_t i = 0; w && i < w->nr_codes; i++)
		if (w->script_functions_of[i].address == address)
			return w->script_functions_of[i].known->made;
	return false;
}

/* Find the next piece of @m at *@at, and pass it. NULL: there is none of @least bytes. */
static const uint8_t *next_piece(const struct lang_moment *m, uint32_t *at, uint32_t least)
{
	const uint8_t *bytes = m->bytes + *at;
	struct lang_moment_piece p;

	if (m->size - *at < sizeof(p))
		return NULL;
	memcpy(&p, bytes, sizeof(p));
	if (p.size > m->size - *at - sizeof(p) || p.size < least)
		return NULL;
	*at += (uint32_t)sizeof(p) + MIN((p.size + 7) & ~7U, m->size - *at - (uint32_t)sizeof(p));
	return bytes + sizeof(p);
}

/* The frames of thread @tid can be taken from a copy such as @m with the functions in @w, or
 * (@known false) cannot: samples with these functions wake the reader no more, or again. */
static void copies_note_codes(struct copies *c, pid_t tid, const struct lang_moment *m,
			      const struct lang_work *w, bool known)
{
	const struct copied_thread *pair = &c->area->threads[copies_slot((uint32_t)tid)];
	const struct copied_thread *t = pair + (pair->tid != (uint32_t)tid);
	const struct lang_plan *plan = &t->plan;
	uint32_t at = 0;

	if (t->tid != (uint32_t)tid)
		return;
	/* The state, words and the C frame are before the frames. */
	for (uint32_t i = 0; i < 2 + LANG_PLAN_WORDS; i++)
		if (!next_piece(m, &at, 0))
			return;
	for (;;) {
		const uint8_t *frame = next_piece(m, &at, plan->frame_code + 8), *head, *name;
		uint64_t word, key;
		bool made;

		head = frame ? next_piece(m, &at, 0) : NULL;
		name = head ? next_piece(m, &at, 0) : NULL;
		if (!name)
			return;
		word = bytes_u64(frame + plan->frame_code);
		key = copies_key(t->process, word);
		made = is_made(w, word & plan->code_mask);
		if (!made || !known)
			copies_set_code(c->area, key, known);
		if ((made || !known) && name - head > (ptrdiff_t)plan->head_size)
			copies_set_code(c->area, copies_other_key(plan, key, head, name), known);
	}
}

/* Note that threads without a plan of process @pid wake the reader (@reads), or do not. */
static void copies_set_process(struct copies *c, pid_t pid, bool reads)
{
	uint32_t *at = &c->area->processes[(uint32_t)pid & (COPIES_PROCESSES - 1)];
	const uint32_t is = (uint32_t)pid << 1 | reads;

	/* Another one there is to be read: both, or that one alone. */
	if (*at & 1 && *at != is)
		*at = reads ? COPIES_READ_ALL : *at;
	else
		*at = is;
}

/* Bring the table of processes in line with the share. */
static void copies_read_facts(struct copies *c, const struct reader_share *s)
{
	/* Acquire: the changes; pairs with note_change(). */
	uint32_t nr = atomic_load_explicit(&s->nr_changes, memory_order_acquire);

	c->area->any_new = atomic_load_explicit(&s->any_new, memory_order_relaxed);
	if (nr == c->nr_changes)
		return;
	c->nr_changes = nr;
	memset(c->area->processes, 0, sizeof(c->area->processes));
	for (uint32_t i = 0; i < SHARE_PROCESSES; i++)
		if (atomic_load_explicit(&s->processes[i].reads, memory_order_relaxed))
			copies_set_process(c,
					   (pid_t)atomic_load_explicit(&s->processes[i].pid,
								       memory_order_relaxed),
					   true);
	for (uint32_t i = 0; i < SHARE_FAR; i++) {
		uint64_t thread = atomic_load_explicit(&s->far[i].thread, memory_order_relaxed);

		if (thread)
			copies_set_process(c, (pid_t)(thread >> 32), true);
	}
}

/* Return the position behind the copy of @size bytes at @pos. */
static uint64_t behind(uint64_t pos, uint32_t size)
{
	uint64_t at = pos & (COPIES_RING - 1);

	return at + size >= COPIES_RING ? pos - at + COPIES_RING : pos + size;
}

/* Find the copy of the sample of @tid; the ones before are dropped. Valid until the next sample. */
static bool copies_find(struct copies *c, uint64_t time_ns, pid_t tid, struct lang_moment *out)
{
	uint64_t written = *(volatile uint64_t *)&c->area->written, best_ns = COPY_NS;
	struct copy_head head;

	out->bytes = NULL;
	/* Behind by a round: the first copy of this round begins with it. */
	if (written - c->at > COPIES_RING - COPY_MAX)
		c->at = written & ~(uint64_t)(COPIES_RING - 1);
	for (uint64_t pos = c->at, next; pos != written; pos = next) {
		const uint8_t *bytes = c->area->bytes + (pos & (COPIES_RING - 1));
		uint64_t away_ns;

		memcpy(&head, bytes, sizeof(head));
		if (head.size < sizeof(head) || head.size > COPY_MAX) {
			c->at = written;
			break;
		}
		if (head.time_ns >= time_ns + COPY_NS)
			break;
		next = behind(pos, head.size);
		away_ns = head.time_ns > time_ns ? head.time_ns - time_ns : time_ns - head.time_ns;
		if (head.tid == (uint32_t)tid && away_ns < best_ns) {
			best_ns = away_ns;
			*out = (struct lang_moment){ bytes + sizeof(head),
						     head.size - (uint32_t)sizeof(head), 0 };
			c->unknown = head.unknown;
		}
		if (out->bytes == bytes + sizeof(head) || head.time_ns + COPY_NS <= time_ns)
			c->at = next;
	}
	return out->bytes;
}

/* A reader is woken within this time by the sampler thread; in less by each sample. */
#define WAIT_MAX_MS 100
#define WAIT_MIN_MS 3

/* Return after how many milliseconds to look at the latest; -1: it is woken soon enough. */
static int copies_wait_ms(struct copies *c, uint64_t now_ns)
{
	const uint64_t written = *(volatile uint64_t *)&c->area->written;
	const uint64_t bytes = written - c->seen, ms = (now_ns - c->seen_ns) / 1000000;
	/* Until the ring is half full. */
	const uint64_t wait_ms = ms * (COPIES_RING / 2) / MAX(bytes, 1UL);

	c->seen = written;
	c->seen_ns = now_ns;
	if (!bytes || ms < WAIT_MIN_MS)
		return -1;
	return wait_ms < WAIT_MAX_MS ? (int)MAX(wait_ms, WAIT_MIN_MS) : -1;
}

/* ---- the reader: its life, its loop ---- */

#define LANGREADER_PAGE 4096U

enum langreader_state {
	LANGREADER_RUNS,
	LANGREADER_LEFT,  /* by its owner: it frees itself */
	LANGREADER_ENDED, /* its owner frees it */
};

struct langreader_loop {
	struct reader_share *share;
	struct ring ring; /* data alone: head and tail are not used */
	int cpu;
	struct record_layout layout;
	uint64_t at; /* position in the ring, all before it was looked at */
	int epoll_fd, rest_fd, stop_fd, kick_fd;
	atomic_int state;	    /* enum langreader_state; of a thread */
	bool slow;		    /* no real-time priority */
	struct schedstat schedstat; /* while slow */
	bool looked;		    /* at it, since the last wake-up */
	pid_t read_pid;		    /* the process that lang.memory reads */
	uint64_t find_ns;	    /* no thread is looked for until then */
	uint64_t kick_ns;	    /* no facts are requested until then */
	struct langreader_idle idle;
	struct copies copies;
	struct frame_channel_writer feed;
	struct share_found found;
	struct lang_chain chain;
	struct iovec ours[LANG_READ_MAX], theirs[LANG_READ_MAX];
	uint8_t gap[LANGREADER_PAGE]; /* between two pieces */
	struct ring_copy record;      /* a read may outlive the ring */
	struct lang_reader lang;
};

#define LANGREADER_NICE -15

/* The shortest slice that the kernel gives a thread without real-time priority. */
#define SLICE_NS 100000U

/* Above that of sampler threads, which have the lowest. */
#define LANGREADER_PRIORITY 2

/* Later than this after the sample the thread may have run on another CPU. */
#define LATE_NS 2000000ULL

/* After a search for an unknown thread: a pause of FIND_NS, or of FIND_SHARE times the search. */
#define FIND_NS	   10000000ULL
#define FIND_SHARE 20U

/* Shortest time between two requests for facts. */
#define KICK_NS 5000000ULL

/* Wake-ups that come within this time of the one before, and found nothing, until it rests. */
#define IDLE_NS	 100000U
#define IDLE_MAX 8U
#define REST_MS	 1

/* DWARF numbers of registers. */
#define X86_64_RDX 1
#define X86_64_RBX 3
#define X86_64_RDI 5
#define X86_64_R9  9
#define X86_64_RBP 6
#define X86_64_R13 13
#define X86_64_R14 14
#define X86_64_R15 15
#define X86_64_RIP 16

/* Return whether both pieces can be read as one. The kernel's cost is by range and page. */
static bool is_near(const struct lang_piece *a, const struct lang_piece *b)
{
	uint64_t end = a->addr + a->size;

	return b->addr >= end && ((end - 1) ^ b->addr) < LANGREADER_PAGE;
}

/* Fill the lists of the call; returns the number of ranges in @theirs, in *nr_ours the other. */
static unsigned int make_lists(struct langreader_loop *r, const struct lang_piece *pieces,
			       uint32_t nr, uint8_t *bytes, unsigned int *nr_ours)
{
	unsigned int ours = 0, theirs = 0;

	for (uint32_t i = 0; i < nr; i++) {
		const struct lang_piece *p = &pieces[i];

		if (i && is_near(p - 1, p) && ours + 1 + nr - i <= LANG_READ_MAX) {
			uint64_t gap = p->addr - (p - 1)->addr - (p - 1)->size;

			if (gap)
				r->ours[ours++] = (struct iovec){ r->gap, gap };
			r->theirs[theirs - 1].iov_len += gap + p->size;
		} else {
			r->theirs[theirs++] = (struct iovec){ (void *)(uintptr_t)p->addr, p->size };
		}
		if (ours == LANG_READ_MAX)
			break;
		r->ours[ours++] = (struct iovec){ bytes + p->at, p->size };
	}
	*nr_ours = ours;
	return theirs;
}

/* One call for all pieces. */
static int read_pieces(void *ctx, const struct lang_piece *pieces, uint32_t nr, uint8_t *bytes)
{
	struct langreader_loop *r = ctx;
	unsigned int nr_ours, nr_theirs = make_lists(r, pieces, nr, bytes, &nr_ours);
	ssize_t got = process_vm_readv(r->read_pid, r->ours, nr_ours, r->theirs, nr_theirs, 0);
	uint32_t whole = 0;

	if (got < 0)
		return errno == EFAULT ? 0 : -errno;
	for (unsigned int i = 0; i < nr_ours && (size_t)got >= r->ours[i].iov_len; i++) {
		got -= (ssize_t)r->ours[i].iov_len;
		whole += r->ours[i].iov_base != r->gap;
	}
	return (int)whole;
}

/* On request, the facts are there before it, and the task of the sample does not run. */
static bool is_asked(const struct langreader_loop *r)
{
	return r->cpu < 0;
}

/* Wake the sampler thread. */
static void kick(const struct langreader_loop *r)
{
	if (!is_asked(r))
		wake_send(r->kick_fd);
}

/* Have the sampler thread look at its ring: it tells about the events and processes there. */
static void want_facts(struct langreader_loop *r, uint64_t time_ns)
{
	if (time_ns < r->kick_ns)
		return;
	r->kick_ns = time_ns + KICK_NS;
	kick(r);
}

/* Return the kind of the event that the record at @pos is of. */
static enum share_event event_at(const struct langreader_loop *r, uint64_t pos,
				 const struct perf_event_header *h)
{
	uint64_t id;

	if (h->type != PERF_RECORD_SAMPLE || h->size < sizeof(*h) + sizeof(id))
		return SHARE_OTHER;
	ring_copy_out(&r->ring, pos + sizeof(*h), &id, sizeof(id));
	return share_event_of(r->share, id);
}

/* Copy the next sample to be read: the newest of the ring, or one of a wait before it, as the
 * thread sleeps; with copies of frames each one. False: there is no new one. */
static bool take_sample(struct langreader_loop *r, bool *newest)
{
	const struct ring *ring = &r->ring;
	struct perf_event_header h;
	uint64_t head = ring_written(ring), last = 0, last_size = 0;
	enum share_event event = SHARE_UNKNOWN;

	*newest = true;
	/* Behind by a round: begin with the first record not taken by the sampler thread. */
	if (head - r->at > ring->size / 2 || r->at > head)
		r->at = head - ring_waiting(ring);
	while (head - r->at >= sizeof(h)) {
		enum share_event next;
		bool reads;

		ring_copy_out(ring, r->at, &h, sizeof(h));
		if (h.size < sizeof(h) || h.size > head - r->at) {
			r->at = head;
			return false;
		}
		next = event_at(r, r->at, &h);
		if (next == SHARE_UNKNOWN)
			want_facts(r, time_now_ns());
		reads = next == SHARE_SAMPLE || next == SHARE_WAIT;
		*newest = !reads || !last_size || (event != SHARE_WAIT && !r->copies.area);
		if (!*newest)
			break;
		if (reads) {
			last = r->at;
			last_size = h.size;
			event = next;
		}
		r->at += h.size;
	}
	return last_size && ring_copy_record(&r->record, ring, &r->layout, last, last_size);
}

static void put_slot(struct langreader_loop *r, const struct record_sample *s, uint32_t process,
		     bool timely)
{
	const struct lang_chain *c = &r->chain;
	struct frame_channel_ring *ring = r->feed.ring;
	struct lang_slot slot = {
		.time_ns = s->time_ns,
		.pid = s->pid,
		.tid = s->tid,
		.same = c->same,
		.none = (uint8_t)c->none,
		.checked = timely && !c->broken ? 1 + c->proven : 0,
		.late = !timely,
		.settled = c->settled,
		.top = (uint8_t)c->top,
		.rooted = c->rooted,
		.deep = c->deep,
		.loops = c->loops,
		.nr = (uint16_t)c->nr,
		.nr_here = (uint16_t)c->nr_here,
		.process = process,
		.other = c->other,
	};

	/* Where there is no room for the stack, the frames are worth more. */
	if (!frame_channel_put(&r->feed, &slot, c->frames, c->other_bytes) && slot.other.size) {
		slot.other = (struct lang_other_stack){ .size = 0 };
		frame_channel_put(&r->feed, &slot, c->frames, NULL);
	}
	/* Stacks fill it faster than the sampler thread looks. */
	if (atomic_load_explicit(&ring->head, memory_order_relaxed) -
		    atomic_load_explicit(&ring->tail, memory_order_relaxed) >
	    FRAME_CHANNEL_SIZE / 2)
		kick(r);
	atomic_store_explicit(&r->share->memory, script_functions_memory(r->lang.codes),
			      memory_order_relaxed);
}

/* Return whether the sampled thread has not run on: so by a real-time priority, else proven. */
static bool is_first(struct langreader_loop *r)
{
	if (!r->slow)
		return true;
	r->looked = true;
	return schedstat_was_instant(&r->schedstat);
}

static void copy_rest(void *ctx)
{
	struct langreader_loop *r = ctx;

	ring_copy_rest(&r->record);
}

/* Find the state of a thread; a process decides how long that takes. True: it was searched. */
static bool find_thread(struct langreader_loop *r, const struct lang_sample *s)
{
	uint64_t begin_ns = time_now_ns(), end_ns;

	if (s->time_ns < r->find_ns || !lang_chain_find_thread(&r->lang, &r->found.info, s))
		return false;
	end_ns = time_now_ns();
	r->find_ns = end_ns + MAX(FIND_NS, FIND_SHARE * (end_ns - begin_ns));
	return true;
}

/* Take the frames of a sample from its copy. Return whether it has all of them. */
static bool decode_copy(struct langreader_loop *r, const struct lang_process *info,
			const struct lang_sample *in, const struct lang_moment *m)
{
	struct lang_memory *memory = &r->lang.memory;
	bool has;

	memory->moment = *m;
	has = lang_chain(&r->lang, info, in, &r->chain) && !memory->missed &&
	      r->chain.none != LANG_NO_THREAD;
	memory->moment = (struct lang_moment){ .bytes = NULL };
	return has;
}

/* Pass on the frames of the sample @s as the kernel copied them. False: the copy has not all of
 * them; it is in @m if it would with functions that are not known yet, else @m->bytes is NULL. */
static bool read_copied(struct langreader_loop *r, const struct lang_process *info,
			const struct lang_sample *in, const struct record_sample *s,
			uint32_t process, struct lang_moment *m)
{
	bool has;

	m->bytes = NULL;
	if (!r->copies.area || !copies_find(&r->copies, s->time_ns, (pid_t)s->tid, m))
		return false;
	if (in->far) {
		m->bytes = NULL;
		return false;
	}
	has = decode_copy(r, info, in, m);
	/* It has them all with code that is not in the table, or lacks some with code that is. */
	if (has == r->copies.unknown)
		copies_note_codes(&r->copies, (pid_t)s->tid, m, &r->lang.work, has);
	if (has && !r->record.overwritten)
		put_slot(r, s, process, true);
	if (!r->lang.memory.missed_code)
		m->bytes = NULL;
	return has;
}

/* Take the registers that the language keeps something in. */
static void take_registers(const struct langreader_loop *r, const struct lang_process *info,
			   const struct record_sample *s, struct lang_sample *in)
{
	const uint64_t mask = r->layout.regs_mask;

	in->pc = unwind_register(s->regs, mask, X86_64_RIP);
	in->fp = unwind_register(s->regs, mask, X86_64_RBP);
	if (info->kind == LANG_NODE || info->kind == LANG_BEAM) {
		in->r13 = unwind_register(s->regs, mask, X86_64_R13);
		in->rdi = unwind_register(s->regs, mask, X86_64_RDI);
		in->r9 = unwind_register(s->regs, mask, X86_64_R9);
		in->r15 = unwind_register(s->regs, mask, X86_64_R15);
	}
	if (info->kind == LANG_PHP && lang_is_eval(info, in->pc)) {
		in->loop[0] = unwind_register(s->regs, mask, X86_64_R14);
		in->loop[1] = unwind_register(s->regs, mask, X86_64_R15);
	}
	if (info->kind == LANG_LUAJIT && lang_is_eval(info, in->pc)) {
		in->loop[0] = unwind_register(s->regs, mask, X86_64_RDX);
		in->loop[1] = unwind_register(s->regs, mask, X86_64_RBX);
	}
	if (info->kind == LANG_LUA)
		in->loop[1] = unwind_register(s->regs, mask, info->pc_register);
}

/* Read the frames of the sampled thread, which this thread has preempted if all is well, and its
 * stack at @far, if that is wanted. */
static void read_thread(struct langreader_loop *r, const struct lang_process *info,
			const struct record_sample *s, uint32_t process, const uint64_t *far,
			bool newest)
{
	struct lang_rest rest = { RING_COPY_STACK, copy_rest, r };
	struct lang_sample in = {
		.process = process,
		.tid = (pid_t)s->tid,
		.is_main = s->tid == s->pid,
		.stack = s->stack,
		.stack_size = s->stack_dyn,
		.time_ns = s->time_ns,
		.rest = r->record.rest_size ? &rest : NULL,
		.far = far,
	};
	struct lang_moment copied;
	bool timely;

	if (!unwind_stack_pointer(s->regs, r->layout.regs_mask, &in.sp))
		return;
	take_registers(r, info, s, &in);
	if (info->nested)
		in.tid = share_inner(r->share, (pid_t)s->pid, (pid_t)s->tid, process);
	if (in.tid < 0) {
		kick(r);
		return;
	}
	if (read_copied(r, info, &in, s, process, &copied))
		return;
	/* A new thread waits for this reader as well; after a long search the read is late. */
	if (!lang_chain(&r->lang, info, &in, &r->chain) && find_thread(r, &in))
		lang_chain(&r->lang, info, &in, &r->chain);
	if (r->copies.area) {
		bool plans = r->chain.planned && r->chain.nr < COPIED_FRAMES_MAX && !far;

		copies_plan(&r->copies, (pid_t)s->tid, process, plans ? &r->chain.plan : NULL);
	}
	if (r->record.overwritten)
		return;
	timely = is_asked(r) || (newest && sched_getcpu() == r->cpu && (int)s->cpu == r->cpu &&
				 time_now_ns() - s->time_ns < LATE_NS && is_first(r));
	put_slot(r, s, process, timely);
	/* With the functions that were new to it the copy may do: then the next ones do. */
	if (copied.bytes && decode_copy(r, info, &in, &copied))
		copies_note_codes(&r->copies, (pid_t)s->tid, &copied, &r->lang.work, true);
}

/* Have a short slice: since Linux 6.12 a thread that wakes up preempts one with a longer slice, and
 * any thread may ask for it. Older kernels ignore it. */
static void shorten_slice(void)
{
	/* struct sched_attr, which <sched.h> and <linux/sched/types.h> do not both allow. */
	const struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr = {
		.size = sizeof(attr),
		.policy = SCHED_OTHER,
		.nice = getpriority(PRIO_PROCESS, 0),
		.runtime = SLICE_NS,
	};

	syscall(SYS_sched_setattr, 0, &attr, 0);
}

/* Have the calling thread run on the CPU of the sampled thread, before that continues. */
static void langreader_loop_go_first(struct langreader_loop *r)
{
	const struct sched_param param = { .sched_priority = LANGREADER_PRIORITY };
	cpu_set_t cpus;
	char name[16];

	snprintf(name, sizeof(name), is_asked(r) ? "read" : "read%d", r->cpu);
	prctl(PR_SET_NAME, name);
	CPU_ZERO(&cpus);
	if (!is_asked(r)) {
		CPU_SET(r->cpu, &cpus);
		sched_setaffinity(0, sizeof(cpus), &cpus);
	}
	if (!sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &param))
		return;
	setpriority(PRIO_PROCESS, 0, LANGREADER_NICE);
	shorten_slice();
	if (is_asked(r))
		return;
	schedstat_open(&r->schedstat);
	r->slow = true;
	atomic_store_explicit(&r->share->slow, true, memory_order_relaxed);
}

/* Return whether it has something to read. Java's frames are on the native stack. */
static bool has_decoder(const struct lang_process *info)
{
	return info->kind == LANG_GO || (info->kind > LANG_NONE && info->kind < LANG_NR);
}

static void on_sample(struct langreader_loop *r, const struct record_sample *s, bool newest)
{
	static const struct lang_process none;
	const struct share_far *far = &r->share->far[share_far_at((pid_t)s->tid)];
	uint64_t at[LANG_FAR_MAX];
	uint32_t process;
	bool wanted, reads;
	int known;

	if ((pid_t)s->pid <= 0 || !s->regs || !s->stack)
		return;
	known = share_find(r->share, (pid_t)s->pid, &r->found);
	if (known < 0)
		want_facts(r, s->time_ns);
	reads = known > 0 && has_decoder(&r->found.info);
	wanted = atomic_load_explicit(&far->thread, memory_order_relaxed) ==
		 share_far_thread((pid_t)s->pid, (pid_t)s->tid);
	if (!reads && r->copies.area) {
		copies_plan(&r->copies, (pid_t)s->tid, 0, NULL);
		if (known >= 0)
			copies_set_process(&r->copies, (pid_t)s->pid, false);
	}
	if (!reads && !wanted)
		return;
	process = reads ? r->found.process
			: atomic_load_explicit(&far->process, memory_order_relaxed);
	for (uint32_t i = 0; wanted && i < LANG_FAR_MAX; i++)
		at[i] = atomic_load_explicit(&far->at[i], memory_order_relaxed);
	r->read_pid = (pid_t)s->pid;
	reading_begin(&r->share->reading, (pid_t)s->pid, process, time_now_ns());
	r->idle.nr = 0;
	read_thread(r, reads ? &r->found.info : &none, s, process, wanted ? at : NULL, newest);
	reading_end(&r->share->reading);
}

static bool is_left(const struct langreader_loop *r)
{
	/* Pairs with the exchange in langreader_leave(). */
	return atomic_load_explicit(&r->state, memory_order_acquire) == LANGREADER_LEFT;
}

/* Read for the new samples. False: the ring may be gone. */
static bool read_samples(struct langreader_loop *r)
{
	struct record rec;
	bool newest;

	while (take_sample(r, &newest)) {
		if (!record_decode(&rec, &r->layout, r->record.bytes,
				   ((struct perf_event_header *)(void *)r->record.bytes)->size) &&
		    rec.type == PERF_RECORD_SAMPLE)
			on_sample(r, &rec.sample, newest);
		if (is_left(r))
			return false;
	}
	return true;
}

/* Wait for the ring and for the end, each at its edge: cheaper than poll(2), which registers with
 * both each time; and an event that hangs up is reported once. */
static int open_waiting(struct langreader_loop *r, int data_fd, int stop_fd)
{
	const int fds[] = { stop_fd, data_fd };

	r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	r->rest_fd = epoll_create1(EPOLL_CLOEXEC);
	if (r->epoll_fd < 0 || r->rest_fd < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.fd = fds[i] };

		if (fds[i] >= 0 && epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, fds[i], &event))
			return -errno;
	}
	return 0;
}

static void langreader_loop_free(struct langreader_loop *r);

/* Make a reader of @ring, woken by @data_fd, until @stop_fd (-1: it is killed) is readable. It
 * writes to @kick_fd, an eventfd, when the sampler thread should look; one that reads on request is
 * woken by @kick_fd. All borrowed. 0 or -errno. */
static int langreader_loop_new(struct langreader_loop **out, const struct langreader_start *start,
			       struct reader_share *share, const struct ring *ring, int data_fd,
			       int kick_fd, int stop_fd)
{
	/* Fresh memory: unused pages are not resident. */
	struct langreader_loop *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return -ENOMEM;
	r->share = share;
	r->ring = *ring;
	r->cpu = start->cpu;
	r->layout = start->layout;
	r->schedstat.fd = r->epoll_fd = r->rest_fd = -1;
	r->at = ring_written(ring);
	r->kick_fd = kick_fd;
	r->stop_fd = stop_fd;
	r->lang.memory.read = read_pieces;
	r->lang.memory.ctx = r;
	r->lang.codes = script_functions_new();
	r->feed = (struct frame_channel_writer){ &share->feed, r->lang.codes, 0 };
	rc = r->lang.codes ? open_waiting(r, is_asked(r) ? kick_fd : data_fd, stop_fd) : -ENOMEM;
	if (rc)
		langreader_loop_free(r);
	else
		*out = r;
	return rc;
}

/* Use copies of frames, with the descriptors for them; woken by two of these as well. 0, -errno. */
static int use_copies(struct langreader_loop *r, const int fds[SANDBOX_MEMORY_FDS])
{
	const int wakes[] = { fds[LANGREADER_RING], fds[LANGREADER_WAKE] };

	if (!copies_map(&r->copies, fds[LANGREADER_AREA], fds[LANGREADER_RING]))
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(wakes); i++) {
		struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.fd = wakes[i] };

		if (epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, wakes[i], &event))
			return -errno;
	}
	return 0;
}

static void langreader_loop_free(struct langreader_loop *r)
{
	if (r->epoll_fd >= 0)
		close(r->epoll_fd);
	if (r->rest_fd >= 0)
		close(r->rest_fd);
	schedstat_close(&r->schedstat);
	script_functions_free(r->lang.codes);
	free(r);
}

/* Note a wake-up. True: they are due to the reader itself. Pure. */
static bool langreader_should_rest(struct langreader_idle *idle, uint64_t now_ns)
{
	bool soon = now_ns - idle->woken_ns < IDLE_NS;

	idle->woken_ns = now_ns;
	idle->nr = soon ? idle->nr + 1 : 0;
	return idle->nr > IDLE_MAX;
}

/* A wake-up is a sample itself where the events are of the scheduler: with nothing to read they
 * would go on for ever, at a real-time priority. */
static void rest(struct langreader_loop *r)
{
	struct epoll_event none;

	if (is_asked(r) || !langreader_should_rest(&r->idle, time_now_ns()))
		return;
	/* Of no descriptor: it sleeps, and the filter of system calls allows it. */
	epoll_wait(r->rest_fd, &none, 1, REST_MS);
	r->idle.woken_ns = time_now_ns();
}

/* Read until the end. */
static void langreader_loop_run(struct langreader_loop *r)
{
	struct epoll_event event = { .data.fd = -1 };
	int wait_ms = -1;

	while (epoll_wait(r->epoll_fd, &event, 1, wait_ms) >= 0 || errno == EINTR) {
		if (event.data.fd == r->stop_fd || is_left(r))
			break;
		if (r->copies.area) {
			copies_drop_wakes(&r->copies);
			copies_read_facts(&r->copies, r->share);
		}
		if (ring_waiting(&r->ring) > r->ring.size / 8)
			kick(r);
		if (!read_samples(r))
			break;
		/* Release: the slot; pairs with langreader_ask(). */
		atomic_store_explicit(&r->share->read_to, r->at, memory_order_release);
		if (r->slow && !r->looked)
			schedstat_was_instant(&r->schedstat);
		r->looked = false;
		if (r->copies.area)
			wait_ms = copies_wait_ms(&r->copies, time_now_ns());
		rest(r);
	}
}

/* ---- the owner: the builder; facts are noted by the sampler thread of the CPU ---- */

/* A read that takes longer hangs. */
#define LANGREADER_HANG_NS 50000000ULL
#define NAP_NS		   1000000
#define STOP_WAIT_NS	   100000000ULL
#define BAD_MAX		   1000U /* of parts of its ring; an honest one has none */

/* One with more bytes of functions is replaced, and reads the ones that run again: but not soon. */
#define FUNCTIONS_MAX (16UL << 20)
#define SPENT_NS      60000000000ULL

/*
 * With a real-time priority and pauses a reader could keep its CPU for ever. An honest one takes
 * some tens of microseconds a sample, of deep stacks more.
 */
#define ALLOWED_PART	  2
#define ALLOWED_SAMPLE_NS 200000
#define ALLOWED_MAX_NS	  2000000000LL

/* Of a reader that reads on request: its samples, and bytes of the stack in one. */
#define ASKED_TYPE                                                                                 \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |            \
	 PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)

#define ASKED_ID    1U
#define ASKED_RING  (256U << 10)
#define ASKED_STACK (60U << 10)

struct langreader {
	struct langreader_shared *shared;
	const struct counters *counters; /* NULL: it reads on request */
	/* On request: the ring is ours. */
	struct ring ring;
	int ring_fd, wake_fd;
	uint32_t cpu_index;
	int copies_cpu; /* its frames are copied; -1: they are not */
	struct reader_share *share;
	struct share_known known;
	struct frame_channel feed;
	uint32_t nr_answered, nr_barred;
	uint64_t since_ns;
	struct langreader_allowance allowance;
	bool overspent;
	struct sandbox_memory_reader process; /* pid 0: it is a thread */
	/* Of a thread: */
	pthread_t thread;
	struct langreader_loop *loop;
	int stop_fd;
};

bool langreader_is_barred(const struct langreader_shared *s, uint32_t process)
{
	/* Acquire: the entries below it; pairs with langreader_bar(). */
	uint32_t nr = atomic_load_explicit(&s->nr_barred, memory_order_acquire);

	for (uint32_t i = 0; i < MIN(nr, LANGREADER_BARRED); i++)
		if (atomic_load_explicit(&s->barred[i], memory_order_relaxed) == process)
			return true;
	return false;
}

void langreader_bar(struct langreader_shared *s, uint32_t process)
{
	uint32_t nr = atomic_load_explicit(&s->nr_barred, memory_order_relaxed);

	/* When all are taken, the oldest gives way: it would be found out again. */
	atomic_store_explicit(&s->barred[nr % LANGREADER_BARRED], process, memory_order_relaxed);
	atomic_store_explicit(&s->nr_barred, nr + 1, memory_order_release);
}

/* Return whether @info is of an interpreter that is read. */
static bool is_read(const struct langreader *r, uint32_t process, const struct lang_process *info)
{
	return !info->reason && has_decoder(info) &&
	       (info->kind == LANG_GO || r->shared->languages & lang_bit(info->kind)) &&
	       !langreader_is_barred(r->shared, process);
}

void langreader_refuse_barred(struct langreader *r)
{
	/* Acquire: the entries below it; pairs with langreader_bar(). */
	uint32_t nr = atomic_load_explicit(&r->shared->nr_barred, memory_order_acquire);

	for (; r->nr_barred != nr; r->nr_barred++)
		share_refuse(
			&r->known,
			atomic_load_explicit(&r->shared->barred[r->nr_barred % LANGREADER_BARRED],
					     memory_order_relaxed));
}

/* Have it look at its facts: no sample does, where the program wakes it. */
static void wake(const struct langreader *r)
{
	if (r->copies_cpu >= 0)
		wake_send(r->wake_fd);
}

void langreader_note_process(struct langreader *r, pid_t pid, uint32_t process,
			     const struct lang_process *info, bool needed)
{
	if (!process || share_knows(&r->known, pid, process, info != NULL))
		return;
	needed = needed && info && is_read(r, process, info);
	share_set_process(&r->known, pid, process, needed ? info : NULL);
	if (needed)
		wake(r);
}

/* After this many samples in a row that end within the copy a thread is not read beyond it. */
#define FAR_UNUSED_MAX 256U

/* Note whether a sample needed its stack beyond the copy. True: it is not read any more. */
static bool note_use(struct known_far *known, bool used)
{
	known->nr_unused = used ? 0 : known->nr_unused + 1;
	if (known->nr_unused < FAR_UNUSED_MAX)
		return false;
	*known = (struct known_far){ .thread = 0 };
	return true;
}

bool langreader_reads_far(struct langreader *r, pid_t pid, pid_t tid, uint32_t process, uint64_t at)
{
	const uint32_t slot = share_far_at(tid);
	const uint64_t thread = share_far_thread(pid, tid);
	struct share_far *shared = &r->share->far[slot];
	struct known_far *known = &r->known.far[slot];
	bool is_same = known->thread == thread && known->process == process;

	if (at == LANGREADER_FAR_USED || at == LANGREADER_FAR_UNUSED) {
		if (is_same && note_use(known, at == LANGREADER_FAR_USED)) {
			atomic_store_explicit(&shared->thread, 0, memory_order_relaxed);
			note_change(r->share);
		}
		return is_same;
	}
	if (!at || langreader_is_barred(r->shared, process))
		return is_same;
	known->nr_unused = 0;
	if (!is_same)
		*known = (struct known_far){ .thread = thread, .process = process };
	/* A part that is read has the addresses near it: frames move a little. */
	for (uint32_t i = 0; i < LANG_FAR_MAX; i++)
		if (known->at[i] && at + 192 - known->at[i] < 768)
			return true;
	known->at[known->next++ % LANG_FAR_MAX] = at;
	for (uint32_t i = 0; i < LANG_FAR_MAX; i++)
		atomic_store_explicit(&shared->at[i], known->at[i], memory_order_relaxed);
	atomic_store_explicit(&shared->process, process, memory_order_relaxed);
	atomic_store_explicit(&shared->thread, thread, memory_order_relaxed);
	if (!is_same) {
		note_change(r->share);
		wake(r);
	}
	return true;
}

void langreader_note_event(struct langreader *r, uint64_t id, int event)
{
	enum share_event is = event < 0 ? SHARE_OTHER : SHARE_SAMPLE;

	if (event >= 0 && event == counters_wait_slot(r->counters))
		is = SHARE_WAIT;
	share_set_event(&r->known, id, is);
}

bool langreader_has_questions(const struct langreader *r)
{
	/* Acquire: the questions; pairs with share_inner(). */
	return atomic_load_explicit(&r->share->nr_questions, memory_order_acquire) !=
	       r->nr_answered;
}

void langreader_answer(struct langreader *r, bool any_new)
{
	uint32_t nr = atomic_load_explicit(&r->share->nr_questions, memory_order_acquire);

	/* The rest at the next look. */
	if (nr != r->nr_answered && share_answer(r->share))
		r->nr_answered = nr;
	if (atomic_exchange_explicit(&r->share->any_new, any_new, memory_order_relaxed) != any_new)
		wake(r);
}

static void unmap(struct reader_share *share)
{
	if (share)
		munmap(share, sizeof(*share));
}

/* Free a thread that has ended. */
static void free_thread(struct langreader_loop *loop)
{
	struct reader_share *share = loop->share;

	close(loop->stop_fd);
	langreader_loop_free(loop);
	unmap(share);
}

static void *langreader_main(void *arg)
{
	struct langreader_loop *loop = arg;

	langreader_loop_go_first(loop);
	langreader_loop_run(loop);
	/* Release: the owner may free it; acquire: the owner has left. */
	if (atomic_exchange_explicit(&loop->state, LANGREADER_ENDED, memory_order_acq_rel) ==
	    LANGREADER_LEFT)
		free_thread(loop);
	return NULL;
}

static int start_thread(struct langreader *r, const struct langreader_start *start,
			const struct ring *ring, const int fds[SANDBOX_MEMORY_FDS])
{
	int rc;

	r->stop_fd = wake_new();
	if (r->stop_fd < 0)
		return r->stop_fd;
	rc = langreader_loop_new(&r->loop, start, r->share, ring, fds[LANGREADER_DATA],
				 fds[LANGREADER_KICK], r->stop_fd);
	if (!rc && start->copies)
		rc = use_copies(r->loop, fds);
	if (!rc)
		rc = thread_start(&r->thread, 0, langreader_main, r->loop);
	if (rc && r->loop) {
		langreader_loop_free(r->loop);
		r->loop = NULL;
	}
	return rc;
}

/* Free all but a thread and its share. */
static void free_owner(struct langreader *r)
{
	/* A thread that hangs keeps its ring. */
	if (r->ring.page && !r->loop)
		munmap(r->ring.page, (size_t)sysconf(_SC_PAGESIZE) + r->ring.size);
	if (!r->counters && r->ring_fd >= 0)
		close(r->ring_fd);
	if (r->wake_fd >= 0 && !r->loop)
		close(r->wake_fd);
	if (r->copies_cpu >= 0)
		copier_set_cpu(&r->shared->copier, r->copies_cpu, NULL);
	frame_channel_fini(&r->feed);
	free(r);
}

/* Have the frames of threads of this CPU copied, if the kernel does. */
static bool begin_copies(struct langreader *r, int cpu, int fds[SANDBOX_MEMORY_FDS])
{
	int wake_fd;

	if (cpu < 0 || r->shared->copier.program_fd <= 0)
		return false;
	wake_fd = wake_new();
	if (wake_fd < 0)
		return false;
	if (copier_set_cpu(&r->shared->copier, cpu, fds + LANGREADER_AREA)) {
		close(wake_fd);
		return false;
	}
	r->wake_fd = fds[LANGREADER_WAKE] = wake_fd;
	r->copies_cpu = cpu;
	return true;
}

/* Start it on @ring, of @data_fd. */
static int start(struct langreader *r, struct langreader_start *start, const struct ring *ring,
		 int data_fd, int kick_fd)
{
	int fds[SANDBOX_MEMORY_FDS] = {
		[LANGREADER_DATA] = data_fd, [LANGREADER_SHARE] = -1, [LANGREADER_KICK] = kick_fd,
		[LANGREADER_AREA] = -1,	     [LANGREADER_RING] = -1,  [LANGREADER_WAKE] = -1,
	};
	int rc = -ENOMEM;

	r->share = r->known.share = sandbox_memory_share(sizeof(*r->share), &fds[LANGREADER_SHARE]);
	if (r->share)
		rc = frame_channel_init(&r->feed, &r->share->feed, r->shared->codes);
	start->copies = !rc && begin_copies(r, start->cpu, fds);
	if (!rc && sandbox_memory_is_on())
		rc = sandbox_memory_fork(&r->process, start, sizeof(*start), fds);
	else if (!rc && sandbox_memory_is_refused())
		rc = -EAGAIN;
	else if (!rc)
		rc = start_thread(r, start, ring, fds);
	for (int i = LANGREADER_SHARE; i < LANGREADER_WAKE; i++)
		if (i != LANGREADER_KICK && fds[i] >= 0)
			close(fds[i]);
	return rc;
}

/* Make an owner without a reader. */
static struct langreader *new_owner(struct langreader_shared *shared)
{
	struct langreader *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->shared = shared;
	r->nr_barred = atomic_load_explicit(&shared->nr_barred, memory_order_relaxed);
	r->since_ns = time_now_ns();
	r->stop_fd = r->ring_fd = r->wake_fd = r->copies_cpu = -1;
	return r;
}

/* Free an owner of which no reader was started. */
static int fail(struct langreader *r, int rc, struct err *e)
{
	if (r->stop_fd >= 0)
		close(r->stop_fd);
	unmap(r->share);
	free_owner(r);
	return err_set(e, rc, "cannot start a reader of interpreters: %s", strerror(-rc));
}

int langreader_start(struct langreader **out, struct langreader_shared *shared,
		     struct counters *counters, uint32_t index, int kick_fd, struct err *e)
{
	const struct counters_cpu *cpu = counters_cpu(counters, index);
	struct langreader_start on = {
		.cpu = cpu->cpu,
		.layout = *counters_layout(counters),
		.ring_size = cpu->data.size,
	};
	struct langreader *r = new_owner(shared);
	int rc;

	if (!r)
		return err_set(e, -ENOMEM, "no memory for a reader");
	r->counters = counters;
	r->cpu_index = index;
	rc = start(r, &on, &cpu->data, cpu->data_fd, kick_fd);
	if (rc)
		return fail(r, rc, e);
	*out = r;
	return r->copies_cpu >= 0;
}

/* Make the ring of a reader that reads on request: a page with its head, then records. */
static int make_ring(struct langreader *r)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *map;

	r->wake_fd = wake_new();
	map = sandbox_memory_share(page + ASKED_RING, &r->ring_fd);
	if (!map || r->wake_fd < 0)
		return -ENOMEM;
	r->ring = (struct ring){ .page = (void *)map, .data = map + page, .size = ASKED_RING };
	return 0;
}

int langreader_start_asked(struct langreader **out, struct langreader_shared *shared, struct err *e)
{
	struct langreader_start on = {
		.cpu = -1,
		.layout = { .sample_type = ASKED_TYPE, .regs_mask = unwind_regs_mask() },
		.ring_size = ASKED_RING,
	};
	struct langreader *r = new_owner(shared);
	int rc;

	if (!r)
		return err_set(e, -ENOMEM, "no memory for a reader");
	rc = make_ring(r);
	if (!rc)
		rc = start(r, &on, &r->ring, r->ring_fd, r->wake_fd);
	if (rc)
		return fail(r, rc, e);
	share_set_event(&r->known, ASKED_ID, SHARE_WAIT);
	*out = r;
	return 0;
}

/* Append @size bytes to the record at *@at. */
static void put(struct langreader *r, uint64_t *at, const void *bytes, size_t size)
{
	for (size_t i = 0; i < size;) {
		uint64_t pos = (*at + i) & (r->ring.size - 1);
		size_t part = MIN(size - i, (size_t)(r->ring.size - pos));

		memcpy(r->ring.data + pos, (const uint8_t *)bytes + i, part);
		i += part;
	}
	*at += size;
}

/* Put a sample into the ring: in the layout of ASKED_TYPE. */
static uint64_t put_sample(struct langreader *r, const struct record_sample *s)
{
	const size_t nr_regs = (size_t)__builtin_popcountll(unwind_regs_mask());
	const uint64_t stack_size = MIN(s->stack_dyn, (uint64_t)ASKED_STACK) & ~7ULL;
	const struct {
		struct perf_event_header header;
		uint64_t id, ip;
		uint32_t pid, tid;
		uint64_t time_ns;
		uint64_t abi;
	} head = {
		.header = { PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER,
			    (uint16_t)(sizeof(head) + (nr_regs + 2) * 8 + stack_size) },
		.id = ASKED_ID,
		.ip = s->ip,
		.pid = s->pid,
		.tid = s->tid,
		.time_ns = s->time_ns,
		.abi = s->regs_abi,
	};
	uint64_t at = r->ring.page->data_head;

	put(r, &at, &head, sizeof(head));
	put(r, &at, s->regs, nr_regs * 8);
	put(r, &at, &stack_size, sizeof(stack_size));
	put(r, &at, s->stack, stack_size);
	put(r, &at, &stack_size, sizeof(stack_size));
	/* Release: the record; pairs with ring_written(). */
	__atomic_store_n(&r->ring.page->data_head, at, __ATOMIC_RELEASE);
	return at;
}

bool langreader_ask(struct langreader *r, const struct record_sample *s, uint64_t deadline_ns)
{
	const struct timespec nap = { .tv_nsec = NAP_NS / 50 };
	uint64_t at = put_sample(r, s);

	assert(!r->loop || r->share);
	wake_send(r->wake_fd);
	/* Acquire: the slot; pairs with langreader_loop_run(). */
	while (atomic_load_explicit(&r->share->read_to, memory_order_acquire) != at) {
		if (time_now_ns() > deadline_ns)
			return false;
		nanosleep(&nap, NULL);
	}
	return true;
}

/* Kill a process: it has nothing to save. */
static void end_process(struct langreader *r)
{
	sandbox_memory_end(&r->process);
	unmap(r->share);
	free_owner(r);
}

void langreader_leave(struct langreader *r)
{
	struct langreader_loop *loop = r->loop;

	if (!loop) {
		end_process(r);
		return;
	}
	/* It may wait for samples again by now. */
	wake_send(r->stop_fd);
	pthread_detach(r->thread);
	free_owner(r);
	/* Release: the ring may be unmapped after this. The last one of the two frees it. */
	if (atomic_exchange_explicit(&loop->state, LANGREADER_LEFT, memory_order_acq_rel) ==
	    LANGREADER_ENDED)
		free_thread(loop);
}

void langreader_stop(struct langreader *r)
{
	const uint64_t deadline_ns = time_now_ns() + STOP_WAIT_NS;
	const struct timespec nap = { .tv_nsec = NAP_NS };

	if (!r)
		return;
	if (!r->loop) {
		end_process(r);
		return;
	}
	wake_send(r->stop_fd);
	while (atomic_load_explicit(&r->loop->state, memory_order_acquire) != LANGREADER_ENDED) {
		if (time_now_ns() > deadline_ns) {
			langreader_leave(r);
			return;
		}
		nanosleep(&nap, NULL);
	}
	pthread_join(r->thread, NULL);
	free_thread(r->loop);
	r->loop = NULL;
	free_owner(r);
}

/* Most of them come at once: it has a higher priority, and runs on the same CPU. */
#define CATCH_UP_NS	100000
#define CATCH_UP_ROUNDS 20

/* Note the events of the samples in @ring that wait to be handled: it leaves out unknown ones. */
static void note_events(struct langreader *r, const struct ring *ring)
{
	struct perf_event_header h;
	uint64_t last = 0, id;

	for (uint64_t pos = ring->tail; ring->head - pos >= sizeof(h) + sizeof(id); pos += h.size) {
		ring_copy_out(ring, pos, &h, sizeof(h));
		if (h.size < sizeof(h) || h.size > ring->head - pos)
			return;
		if (h.type != PERF_RECORD_SAMPLE || h.size < sizeof(h) + sizeof(id))
			continue;
		ring_copy_out(ring, pos + sizeof(h), &id, sizeof(id));
		if (id != last)
			langreader_note_event(r, id,
					      counters_event_of(r->counters, r->cpu_index, id));
		last = id;
	}
}

void langreader_catch_up(struct langreader *r, const struct ring *ring)
{
	const struct timespec pause = { .tv_nsec = CATCH_UP_NS };

	/* Acquire: the slots; pairs with langreader_loop_run(). */
	if (r->copies_cpu < 0 ||
	    atomic_load_explicit(&r->share->read_to, memory_order_acquire) >= ring->head)
		return;
	note_events(r, ring);
	wake_send(r->wake_fd);
	for (int i = 0; i < CATCH_UP_ROUNDS; i++) {
		if (atomic_load_explicit(&r->share->read_to, memory_order_acquire) >= ring->head)
			return;
		nanosleep(&pause, NULL);
	}
}

struct frame_channel *langreader_feed(struct langreader *r)
{
	return &r->feed;
}

bool langreader_hangs(const struct langreader *r, uint64_t now_ns, pid_t *pid, uint32_t *process)
{
	return reading_hangs(&r->share->reading, now_ns, LANGREADER_HANG_NS, pid, process);
}

/* Charge the CPU time of a reader since the last call, in which its CPU had @nr_samples. False:
 * more than half of the time, and more than an honest one needs for them. Pure. */
static bool langreader_allow(struct langreader_allowance *a, uint64_t time_ns, uint64_t cpu_ns,
			     uint64_t nr_samples)
{
	uint64_t span_ns = a->time_ns ? time_ns - a->time_ns : 0;
	double left_ns = (double)a->left_ns + (double)span_ns / ALLOWED_PART +
			 (double)nr_samples * ALLOWED_SAMPLE_NS - (double)(cpu_ns - a->cpu_ns);

	if (!a->time_ns)
		left_ns = ALLOWED_MAX_NS;
	*a = (struct langreader_allowance){ time_ns, cpu_ns,
					    (int64_t)MIN(left_ns, (double)ALLOWED_MAX_NS) };
	return left_ns >= 0;
}

void langreader_charge(struct langreader *r, uint64_t nr_samples)
{
	if (!r->loop && !langreader_allow(&r->allowance, time_now_ns(),
					  sandbox_memory_reader_cpu_ns(&r->process), nr_samples))
		r->overspent = true;
}

bool langreader_is_dead(const struct langreader *r, pid_t *pid, uint32_t *process)
{
	bool senseless = atomic_load_explicit(&r->feed.nr_bad, memory_order_relaxed) > BAD_MAX;

	if (r->loop || !(senseless || r->overspent || sandbox_memory_is_dead(&r->process)))
		return false;
	*process = 0;
	*pid = 0;
	/* Any time ago: it ends no reading any more. */
	reading_hangs(&r->share->reading, UINT64_MAX, 0, pid, process);
	return true;
}

bool langreader_is_spent(const struct langreader *r, uint64_t now_ns)
{
	return now_ns - r->since_ns > SPENT_NS &&
	       (atomic_load_explicit(&r->feed.refused, memory_order_relaxed) ||
		atomic_load_explicit(&r->share->memory, memory_order_relaxed) > FUNCTIONS_MAX);
}

bool langreader_is_slow(const struct langreader *r)
{
	return atomic_load_explicit(&r->share->slow, memory_order_relaxed);
}

/* A reader as a process: its ring, its share, then its loop. Runs on: that process. */

#define MEMORY_MAX (512ULL << 20) /* the functions that it knows, and scripts */

/* Map the ring of @fd to read. */
static bool map_ring(struct ring *r, int fd, uint64_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *map = mmap(NULL, page + size, PROT_READ, MAP_SHARED, fd, 0);

	*r = (struct ring){ .size = size };
	if (map == MAP_FAILED)
		return false;
	r->page = map;
	r->data = (uint8_t *)map + page;
	return true;
}

void langreader_process(const void *bytes, size_t size, const int fds[SANDBOX_MEMORY_FDS])
{
	struct langreader_loop *loop;
	struct langreader_start start;
	struct reader_share *share;
	struct ring ring;

	_Static_assert(sizeof(start) <= SANDBOX_MEMORY_START, "it is sent");
	if (size != sizeof(start))
		return;
	memcpy(&start, bytes, sizeof(start));
	if (!map_ring(&ring, fds[LANGREADER_DATA], start.ring_size))
		return;
	share = mmap(NULL, sizeof(*share), PROT_READ | PROT_WRITE, MAP_SHARED,
		     fds[LANGREADER_SHARE], 0);
	if (share == MAP_FAILED ||
	    langreader_loop_new(&loop, &start, share, &ring, fds[LANGREADER_DATA],
				fds[LANGREADER_KICK], -1))
		return;
	if (start.copies && use_copies(loop, fds))
		return;
	langreader_loop_go_first(loop);
	if (!sandbox_memory_lock(MEMORY_MAX))
		langreader_loop_run(loop);
}
