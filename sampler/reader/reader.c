// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The life of a reader, and the facts that it needs.
 *
 * Runs on: the builder; facts are noted by the sampler thread of the CPU.
 */
#include "sampler/reader/reader.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "sampler/pipeline/langreader_loop.h"
#include "sampler/pipeline/langreader_main.h"
#include "symbols/base/thread.h"
#include "symbols/base/wake.h"
#include "unwind/unwind.h"

#define NAP_NS	     1000000
#define STOP_WAIT_NS 100000000ULL
#define BAD_MAX	     1000U /* of parts of its ring; an honest one has none */
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
	struct reader_share *share;
	struct share_known known;
	struct feed feed;
	uint32_t nr_answered, nr_barred;
	uint64_t since_ns;
	struct langreader_allowance allowance;
	bool overspent;
	struct cage_memory_reader process; /* pid 0: it is a thread */
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

/* Return whether @info is of an interpreter that is read. Java's frames are on the native stack. */
static bool is_read(const struct langreader *r, uint32_t process, const struct lang_process *info)
{
	return !info->reason && info->kind > LANG_NONE && info->kind < LANG_NR &&
	       r->shared->languages & lang_bit(info->kind) &&
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

void langreader_note_process(struct langreader *r, pid_t pid, uint32_t process,
			     const struct lang_process *info)
{
	if (!process || share_knows(&r->known, pid, process, info != NULL))
		return;
	share_set_process(&r->known, pid, process, info && is_read(r, process, info) ? info : NULL);
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

void langreader_answer(struct langreader *r)
{
	uint32_t nr;

	if (!langreader_has_questions(r))
		return;
	nr = atomic_load_explicit(&r->share->nr_questions, memory_order_acquire);
	/* The rest at the next look. */
	if (share_answer(r->share))
		r->nr_answered = nr;
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
			const struct ring *ring, int data_fd, int kick_fd)
{
	int rc;

	r->stop_fd = wake_new();
	if (r->stop_fd < 0)
		return r->stop_fd;
	rc = langreader_loop_new(&r->loop, start, r->share, ring, data_fd, kick_fd, r->stop_fd);
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
	if (!r->counters && r->wake_fd >= 0 && !r->loop)
		close(r->wake_fd);
	feed_fini(&r->feed);
	free(r);
}

/* Start it on @ring, of @data_fd. */
static int start(struct langreader *r, const struct langreader_start *start,
		 const struct ring *ring, int data_fd, int kick_fd)
{
	int fds[CAGE_MEMORY_FDS] = {
		[LANGREADER_DATA] = data_fd,
		[LANGREADER_SHARE] = -1,
		[LANGREADER_KICK] = kick_fd,
	};
	int rc = -ENOMEM;

	r->share = r->known.share = cage_memory_share(sizeof(*r->share), &fds[LANGREADER_SHARE]);
	if (r->share)
		rc = feed_init(&r->feed, &r->share->feed, r->shared->codes);
	if (!rc && cage_memory_is_on())
		rc = cage_memory_fork(&r->process, start, sizeof(*start), fds);
	else if (!rc && cage_memory_is_refused())
		rc = -EAGAIN;
	else if (!rc)
		rc = start_thread(r, start, ring, data_fd, kick_fd);
	if (fds[LANGREADER_SHARE] >= 0)
		close(fds[LANGREADER_SHARE]);
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
	r->stop_fd = r->ring_fd = r->wake_fd = -1;
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
	const struct langreader_start on = {
		.cpu = cpu->cpu,
		.layout = *counters_layout(counters),
		.ring_size = cpu->data.size,
	};
	struct langreader *r = new_owner(shared);
	int rc;

	if (!r)
		return err_set(e, -ENOMEM, "no memory for a reader");
	r->counters = counters;
	rc = start(r, &on, &cpu->data, cpu->data_fd, kick_fd);
	if (rc)
		return fail(r, rc, e);
	*out = r;
	return 0;
}

/* Make the ring of a reader that reads on request: a page with its head, then records. */
static int make_ring(struct langreader *r)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *map;

	r->wake_fd = wake_new();
	map = cage_memory_share(page + ASKED_RING, &r->ring_fd);
	if (!map || r->wake_fd < 0)
		return -ENOMEM;
	r->ring = (struct ring){ .page = (void *)map, .data = map + page, .size = ASKED_RING };
	return 0;
}

int langreader_start_asked(struct langreader **out, struct langreader_shared *shared, struct err *e)
{
	const struct langreader_start on = {
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
	cage_memory_end(&r->process);
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

struct feed *langreader_feed(struct langreader *r)
{
	return &r->feed;
}

bool langreader_hangs(const struct langreader *r, uint64_t now_ns, pid_t *pid, uint32_t *process)
{
	return reading_hangs(&r->share->reading, now_ns, LANGREADER_HANG_NS, pid, process);
}

bool langreader_allow(struct langreader_allowance *a, uint64_t time_ns, uint64_t cpu_ns,
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
					  cage_memory_reader_cpu_ns(&r->process), nr_samples))
		r->overspent = true;
}

bool langreader_is_dead(const struct langreader *r, pid_t *pid, uint32_t *process)
{
	bool senseless = atomic_load_explicit(&r->feed.nr_bad, memory_order_relaxed) > BAD_MAX;

	if (r->loop || !(senseless || r->overspent || cage_memory_is_dead(&r->process)))
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
