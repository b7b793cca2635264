// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The hot loop: ring -> record -> space -> unwind -> stack -> cell.
 *
 * Runs on: sampler thread n. Records are read in place; their space goes back
 * to the kernel in the middle of a batch, so that a long batch loses nothing.
 * A thread is an urcu-qsbr reader that is online only while it handles
 * samples; each batch counts into one set of stats, chosen at its start.
 */
#define _LGPL_SOURCE
#include "sampler/thread.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <urcu-qsbr.h>

/* Samples wait at most this long for a watermark that is not reached. */
#define THREAD_POLL_MS 50
/* Ring space is given back, and a quiescent state told, after so many records. */
#define THREAD_RELEASE_EVERY 16
/* Kernel frames kept; the kernel's own limit is 127 by default. */
#define THREAD_KERNEL_FRAMES_MAX 256
#define THREAD_FRAMES_MAX (THREAD_KERNEL_FRAMES_MAX + UNWIND_FRAMES_MAX)

struct thread {
	struct thread_shared *shared;
	struct counters_cpu *cpu;
	uint32_t cpu_index;
	struct unwinder *unwinder;
	struct unwind_result user;	/* of the sample in hand */
	uint32_t frames[THREAD_FRAMES_MAX];
	bool wake_loader;
	int stop_fd;
	pthread_t id;

	_Alignas(CACHELINE) struct thread_stats stats[2];
	atomic_ullong throttled_since;	/* relaxed: a gauge for the builder */
	atomic_ullong ring_high_ppm;	/* relaxed: a gauge for the builder */
};

/* Is @ip one of the markers that part a call chain (PERF_CONTEXT_*)? */
static bool is_context(uint64_t ip)
{
	return ip >= (uint64_t)PERF_CONTEXT_MAX;
}

/* Kernel frames of the call chain as places; returns how many. */
static uint32_t kernel_frames(struct thread *t, const struct record_sample *s)
{
	uint64_t context = 0, ip;
	uint32_t nr = 0;

	for (uint64_t i = 0; i < s->nr_chain && nr < THREAD_KERNEL_FRAMES_MAX; i++) {
		memcpy(&ip, s->chain + 8 * i, sizeof(ip));
		if (is_context(ip)) {
			context = ip;
			continue;
		}
		if (context != (uint64_t)PERF_CONTEXT_KERNEL)
			continue;
		/* All but the innermost are return addresses: look inside the call. */
		t->frames[nr] = places_intern(t->shared->places, DSO_ID_KERNEL, ip - (nr > 0));
		nr++;
	}
	return nr;
}

/* Unwind the user part into t->user. */
static enum unwind_stop unwind_user(struct thread *t, const struct record_sample *s,
				    const struct maps_hit *hit)
{
	const struct unwind_input in = {
		.regs = (const uint64_t *)(const void *)s->regs,
		.regs_mask = counters_layout(t->shared->counters)->regs_mask,
		.regs_abi = s->regs_abi,
		.stack = s->stack,
		.stack_size = s->stack_dyn,
		.stack_full = s->stack_dyn == s->stack_size,
		.space = hit->space,
		.time_ns = s->time_ns,
	};

	unwind_sample(t->unwinder, &in, &t->user);
	t->wake_loader |= t->user.asked;
	if (t->user.maps_stale)
		t->wake_loader |= maps_ask(t->shared->maps, (pid_t)s->pid, s->time_ns);
	return t->user.stop;
}

/* The user part of the sample, if there is one: frames appended at @nr, and why they end. */
static enum unwind_stop user_frames(struct thread *t, const struct record_sample *s,
				    const struct maps_hit *hit, uint32_t *nr)
{
	enum unwind_stop stop;

	t->user.nr = 0;
	t->user.nr_guessed = 0;
	if (hit->known && (hit->kernel_thread || !s->regs))
		return UNWIND_NO_USER;
	if (!hit->known || !hit->space) {
		t->wake_loader |= maps_ask(t->shared->maps, (pid_t)s->pid, s->time_ns);
		if (!s->regs)
			return UNWIND_NO_USER;
		t->frames[(*nr)++] = places_intern(t->shared->places, DSO_ID_UNKNOWN, 0);
		return UNWIND_PENDING;
	}
	stop = unwind_user(t, s, hit);
	memcpy(t->frames + *nr, t->user.place, t->user.nr * sizeof(t->frames[0]));
	*nr += t->user.nr;
	return stop;
}

/* Squeeze out the places that found no room. True if any frame is left. */
static bool drop_full_places(uint32_t *frames, uint32_t *nr)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < *nr; i++)
		if (frames[i] != PLACE_NONE)
			frames[kept++] = frames[i];
	*nr = kept;
	return kept > 0;
}

/* Put the stack in hand into the tables. DROP_NR: it is in. */
static enum profile_drop store(struct thread *t, uint32_t nr, uint32_t task, uint32_t event,
			       uint64_t weight)
{
	uint32_t stack;

	if (!drop_full_places(t->frames, &nr))
		return DROP_PLACES_FULL;
	stack = stacks_intern(t->shared->stacks, t->frames, nr);
	if (stack == STACK_NONE)
		return DROP_STACKS_FULL;
	if (!cells_add(t->shared->cells, stack, task, event, weight))
		return DROP_CELLS_FULL;
	return DROP_NR;
}

/* Each sample is counted under exactly one outcome. */
static void count_outcome(struct thread_stats *stats, const struct thread *t, enum unwind_stop stop)
{
	switch (stop) {
	case UNWIND_COMPLETE:
	case UNWIND_NO_USER:
		if (t->user.nr_guessed)
			stats->guessed++;
		else
			stats->complete++;
		break;
	case UNWIND_TRUNCATED:
		stats->truncated++;
		break;
	case UNWIND_PENDING:
		stats->pending++;
		break;
	default:
		stats->broken[stop]++;
		break;
	}
}

static void on_sample(struct thread *t, struct thread_stats *stats, const struct record_sample *s)
{
	int event = counters_event_of(t->shared->counters, t->cpu_index, s->id);
	enum unwind_stop stop;
	enum profile_drop drop;
	struct maps_hit hit;
	uint32_t nr;

	if ((pid_t)s->pid == t->shared->own_pid) {
		stats->own++;
		return;
	}
	stats->taken++;
	if (event < 0) {
		stats->dropped[DROP_UNKNOWN_EVENT]++;
		return;
	}
	stats->by_event[event]++;
	maps_find(t->shared->maps, (pid_t)s->pid, (pid_t)s->tid, s->time_ns, &hit);
	nr = kernel_frames(t, s);
	stop = user_frames(t, s, &hit, &nr);
	if (nr == 0)			/* kernel hidden from us, no user part: only the task is known */
		t->frames[nr++] = places_intern(t->shared->places, DSO_ID_UNKNOWN, 0);
	drop = store(t, nr, hit.task, (uint32_t)event, s->period ? s->period : 1);
	if (drop != DROP_NR)
		stats->dropped[drop]++;
	else
		count_outcome(stats, t, stop);
}

static void on_throttle(struct thread *t, struct thread_stats *stats, const struct record *r)
{
	uint64_t since;

	if (r->type == PERF_RECORD_THROTTLE) {
		stats->throttled++;
		atomic_store_explicit(&t->throttled_since, r->time_ns, memory_order_relaxed);
		return;
	}
	since = atomic_exchange_explicit(&t->throttled_since, 0, memory_order_relaxed);
	if (since && r->time_ns > since)
		stats->throttled_ns += r->time_ns - since;
}

static void on_record(struct thread *t, struct thread_stats *stats,
		      const struct perf_event_header *h)
{
	struct record r;
	int code = record_decode(&r, counters_layout(t->shared->counters), h, h->size);

	if (code == -ENOTSUP)
		return;
	if (code) {
		stats->taken++;
		stats->dropped[DROP_BAD_RECORD]++;
		return;
	}
	switch (r.type) {
	case PERF_RECORD_SAMPLE:
		on_sample(t, stats, &r.sample);
		break;
	case PERF_RECORD_LOST:
		stats->lost_records += r.lost;
		break;
	case PERF_RECORD_THROTTLE:
	case PERF_RECORD_UNTHROTTLE:
		on_throttle(t, stats, &r);
		break;
	default:
		break;
	}
}

static void note_ring_high(struct thread *t)
{
	uint64_t ppm = (uint64_t)(ring_take_high(&t->cpu->data) * 1e6);

	if (ppm > atomic_load_explicit(&t->ring_high_ppm, memory_order_relaxed))
		atomic_store_explicit(&t->ring_high_ppm, ppm, memory_order_relaxed);
}

/* Everything that is in the ring now. */
static void run_batch(struct thread *t)
{
	struct ring *ring = &t->cpu->data;
	const struct perf_event_header *h;
	struct thread_stats *stats;
	unsigned int nr = 0;

	if (!ring_begin(ring))
		return;
	/* The head is read: now every mapping older than these samples. */
	sideband_drain(t->shared->sideband);
	rcu_thread_online();
	/* Pairs with the builder's flip: a batch begun before it counts into the old set. */
	stats = &t->stats[atomic_load_explicit(&t->shared->epoch, memory_order_acquire) & 1];
	while ((h = ring_next(ring))) {
		on_record(t, stats, h);
		if (++nr % THREAD_RELEASE_EVERY == 0)
			ring_release(ring);
	}
	ring_end(ring);
	note_ring_high(t);
	rcu_thread_offline();
	if (t->wake_loader) {
		t->wake_loader = false;
		symbols_wake(t->shared->symbols);
	}
}

static void *thread_main(void *arg)
{
	struct thread *t = arg;
	struct pollfd fds[] = {
		{ .fd = t->stop_fd, .events = POLLIN },
		{ .fd = t->cpu->data_fd, .events = POLLIN },
		{ .fd = t->cpu->side_fd, .events = POLLIN },
	};

	char name[16] = "cpu";

	/* The thread's name as perf and top show it: "cpu0" … (prctl(2), 15 bytes). */
	for (int i = 3, v = t->cpu->cpu, d = v >= 1000 ? 1000 : v >= 100 ? 100 : v >= 10 ? 10 : 1; d;
	     d /= 10)
		name[i++] = (char)('0' + v / d % 10);
	prctl(PR_SET_NAME, name);
	rcu_register_thread();
	rcu_thread_offline();
	while (poll(fds, ARRAY_SIZE(fds), THREAD_POLL_MS) >= 0 || errno == EINTR) {
		if (fds[0].revents)
			break;
		/* A task's event hangs up when the task is gone: the ring stays readable by time. */
		for (size_t i = 1; i < ARRAY_SIZE(fds); i++)
			if (fds[i].revents & (POLLHUP | POLLERR | POLLNVAL))
				fds[i].fd = -1;
		if (fds[2].revents & POLLIN)
			sideband_drain(t->shared->sideband);
		run_batch(t);
	}
	rcu_thread_online();
	rcu_unregister_thread();
	return NULL;
}

/* All signals stay with the main thread. */
static int create_blocked(pthread_t *id, void *(*fn)(void *), void *arg)
{
	sigset_t all, old;
	int code;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	code = pthread_create(id, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -code;
}

int thread_start(struct thread **out, struct thread_shared *shared, uint32_t cpu_index,
		 struct err *e)
{
	struct thread *t = aligned_alloc(CACHELINE, sizeof(*t));
	int code;

	if (!t)
		return err_set(e, -ENOMEM, "no memory for a sampler thread");
	memset(t, 0, sizeof(*t));
	t->shared = shared;
	t->cpu_index = cpu_index;
	t->cpu = counters_cpu(shared->counters, cpu_index);
	t->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (t->stop_fd < 0) {
		code = err_set(e, -errno, "eventfd: %s", strerror(errno));
		goto out;
	}
	code = unwind_new(&t->unwinder, shared->places, shared->dsos, e);
	if (code)
		goto out;
	code = create_blocked(&t->id, thread_main, t);
	if (!code) {
		*out = t;
		return 0;
	}
	err_set(e, code, "cannot start a sampler thread: %s", strerror(-code));
out:
	unwind_free(t->unwinder);
	if (t->stop_fd >= 0)
		close(t->stop_fd);
	free(t);
	return code;
}

void thread_stop(struct thread *t)
{
	const uint64_t one = 1;

	if (!t)
		return;
	if (write(t->stop_fd, &one, sizeof(one)) == sizeof(one))
		pthread_join(t->id, NULL);
	unwind_free(t->unwinder);
	close(t->stop_fd);
	free(t);
}

void thread_take_stats(struct thread *t, unsigned int epoch, struct thread_stats *out)
{
	*out = t->stats[epoch & 1];
	memset(&t->stats[epoch & 1], 0, sizeof(t->stats[0]));
}

uint64_t thread_throttled_since(const struct thread *t)
{
	return atomic_load_explicit(&t->throttled_since, memory_order_relaxed);
}

double thread_take_ring_high(struct thread *t)
{
	return (double)atomic_exchange_explicit(&t->ring_high_ppm, 0, memory_order_relaxed) / 1e6;
}
