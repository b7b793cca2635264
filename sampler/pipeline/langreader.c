// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The loop of a reader: wait for a sample, copy it, read its thread, pass on.
 *
 * Runs on: reader thread n. Invariant: data_tail is the sampler thread's; a
 * copy is used only if the kernel has not overwritten the record.
 */
#include "sampler/pipeline/langreader.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include <urcu-qsbr.h>

#include "sampler/pipeline/preemption.h"
#include "sampler/pipeline/reading.h"
#include "sampler/pipeline/ring_copy.h"
#include "symbols/base/foreign.h"
#include "symbols/base/thread.h"
#include "symbols/base/wake.h"
#include "unwind/unwind.h"

#define PAGE		4096U
#define NAP_NS		1000000
#define LANGREADER_NICE -15
/* The shortest slice that the kernel gives a thread without real-time priority. */
#define SLICE_NS 100000U
/* Above that of sampler threads, which have the lowest. */
#define LANGREADER_PRIORITY 2
/* Later than this after the sample the thread may have run on another CPU. */
#define LATE_NS	     2000000ULL
#define STOP_WAIT_NS 100000000ULL
/* After a search for an unknown thread: a pause of FIND_NS, or of FIND_SHARE times the search. */
#define FIND_NS	   10000000ULL
#define FIND_SHARE 20U
/* DWARF numbers of registers. */
#define X86_64_RDI 5
#define X86_64_R9  9
#define X86_64_RBP 6
#define X86_64_R14 14
#define X86_64_R15 15
#define X86_64_RIP 16
#define NESTED	   256U /* a power of two */

/* The id of a thread in the pid namespace of its process. */
struct nested {
	uint32_t process; /* 0: empty */
	pid_t tid, inner;
};

enum life {
	RUNS,
	LEFT,  /* by its owner: it frees itself */
	ENDED, /* its owner frees it */
};

struct langreader {
	struct langreader_shared *shared;
	struct counters_cpu *cpu; /* not to be looked at when it was left behind */
	int cpu_nr;
	const struct counters *counters;
	uint32_t index; /* of the CPU in @counters */
	struct record_layout layout;
	uint64_t at; /* position in the ring, all before it was looked at */
	int epoll_fd, stop_fd, kick_fd;
	pthread_t thread;
	atomic_bool slow;
	atomic_int state;	      /* enum life */
	struct preemption preemption; /* while slow */
	bool looked;		      /* at it, since the last wake-up */
	struct reading reading;
	pid_t read_pid;	  /* the process that lang.memory reads */
	uint64_t find_ns; /* no thread is looked for until then */
	struct feed *feed;
	struct lang_process about;
	struct lang_chain chain;
	struct nested nested[NESTED];
	struct iovec ours[LANG_PIECES_MAX], theirs[LANG_PIECES_MAX];
	uint8_t gap[PAGE];	 /* between two pieces */
	struct ring_copy record; /* a read may outlive the ring */
	struct lang_reader lang;
};

/* Return whether both pieces can be read as one. The kernel's cost is by range and page. */
static bool is_near(const struct lang_piece *a, const struct lang_piece *b)
{
	uint64_t end = a->addr + a->size;

	return b->addr >= end && ((end - 1) ^ b->addr) < PAGE;
}

/* Fill the lists of the call; returns the number of ranges in @theirs, in *nr_ours the other. */
static unsigned int make_lists(struct langreader *r, const struct lang_piece *pieces, uint32_t nr,
			       uint8_t *bytes, unsigned int *nr_ours)
{
	unsigned int ours = 0, theirs = 0;

	for (uint32_t i = 0; i < nr; i++) {
		const struct lang_piece *p = &pieces[i];

		if (i && is_near(p - 1, p) && ours + 1 + nr - i <= LANG_PIECES_MAX) {
			uint64_t gap = p->addr - (p - 1)->addr - (p - 1)->size;

			if (gap)
				r->ours[ours++] = (struct iovec){ r->gap, gap };
			r->theirs[theirs - 1].iov_len += gap + p->size;
		} else {
			r->theirs[theirs++] = (struct iovec){ (void *)(uintptr_t)p->addr, p->size };
		}
		if (ours == LANG_PIECES_MAX)
			break;
		r->ours[ours++] = (struct iovec){ bytes + p->at, p->size };
	}
	*nr_ours = ours;
	return theirs;
}

/* One call for all pieces. */
static int read_pieces(void *ctx, const struct lang_piece *pieces, uint32_t nr, uint8_t *bytes)
{
	struct langreader *r = ctx;
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

/* Return the event of the record at @pos; -1: it is no sample of a task on this CPU. */
static int event_at(const struct langreader *r, uint64_t pos, const struct perf_event_header *h)
{
	uint64_t id;
	int event;

	if (h->type != PERF_RECORD_SAMPLE || h->size < sizeof(*h) + sizeof(id))
		return -1;
	ring_copy_out(&r->cpu->data, pos + sizeof(*h), &id, sizeof(id));
	event = counters_event_of(r->counters, r->index, id);
	return event == COUNTERS_WAKING ? -1 : event;
}

/*
 * Copy the next sample to be read: the newest of the ring, or one of a wait before it, as the
 * thread sleeps. False: there is no new one.
 */
static bool take_sample(struct langreader *r, bool *newest)
{
	const struct ring *ring = &r->cpu->data;
	struct perf_event_header h;
	uint64_t head = ring_written(ring), last = 0, last_size = 0;
	int waits = counters_wait_slot(r->counters), event = -1;

	*newest = true;
	/* Behind by a round: begin with the first record not taken by the sampler thread. */
	if (head - r->at > ring->size / 2 || r->at > head)
		r->at = head - ring_waiting(ring);
	while (head - r->at >= sizeof(h)) {
		int next;

		ring_copy_out(ring, r->at, &h, sizeof(h));
		if (h.size < sizeof(h) || h.size > head - r->at) {
			r->at = head;
			return false;
		}
		next = event_at(r, r->at, &h);
		*newest = next < 0 || !last_size || event != waits;
		if (!*newest)
			break;
		if (next >= 0) {
			last = r->at;
			last_size = h.size;
			event = next;
		}
		r->at += h.size;
	}
	return last_size && ring_copy_record(&r->record, ring, &r->layout, last, last_size);
}

static bool is_barred(const struct langreader_shared *s, uint32_t process)
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

/* Get the thread's id in the namespace of its process: the last of NSpid. */
static pid_t inner_tid(struct langreader *r, uint32_t process, pid_t pid, pid_t tid)
{
	struct nested *n =
		&r->nested[hash_u64((uint64_t)process << 32 ^ (uint32_t)tid) & (NESTED - 1)];
	char text[4096] = "";
	const char *line;

	if (n->process == process && n->tid == tid)
		return n->inner;
	*n = (struct nested){ process, tid, tid };
	foreign_read_task(text, sizeof(text), pid, tid, "status");
	line = strstr(text, "\nNSpid:");
	for (char *at = line ? (char *)(uintptr_t)line + 7 : NULL; at && *at == '\t';)
		n->inner = (pid_t)strtol(at, &at, 10);
	return n->inner;
}

static void put_slot(struct langreader *r, const struct record_sample *s, uint32_t process,
		     bool timely)
{
	const struct lang_chain *c = &r->chain;
	const struct lang_slot slot = {
		.time_ns = s->time_ns,
		.pid = s->pid,
		.tid = s->tid,
		.same = c->same,
		.none = (uint8_t)c->none,
		.checked = timely && !c->broken,
		.late = !timely,
		.settled = c->settled,
		.top = (uint8_t)c->top,
		.rooted = c->rooted,
		.nr = (uint16_t)c->nr,
		.nr_here = (uint16_t)c->nr_here,
		.process = process,
	};

	feed_put(r->feed, &slot, c->frames);
}

/* Return whether the sampled thread has not run on: so by a real-time priority, else proven. */
static bool is_first(struct langreader *r)
{
	if (!langreader_is_slow(r))
		return true;
	r->looked = true;
	return preemption_was_instant(&r->preemption);
}

static void copy_rest(void *ctx)
{
	struct langreader *r = ctx;

	ring_copy_rest(&r->record);
}

/* Find the state of a thread; a process decides how long that takes. */
static void find_thread(struct langreader *r, uint32_t process, pid_t tid)
{
	uint64_t begin_ns = time_now_ns(), end_ns;

	if (!lang_chain_find_thread(&r->lang, &r->about, process, tid))
		return;
	end_ns = time_now_ns();
	r->find_ns = end_ns + MAX(FIND_NS, FIND_SHARE * (end_ns - begin_ns));
}

/* Read the frames of the sampled thread, which this thread has preempted if all is well. */
static void read_thread(struct langreader *r, const struct record_sample *s, uint32_t process,
			bool newest)
{
	struct lang_rest rest = { RING_COPY_STACK, copy_rest, r };
	struct lang_sample in = {
		.process = process,
		.tid = (pid_t)s->tid,
		.stack = s->stack,
		.stack_size = s->stack_dyn,
		.time_ns = s->time_ns,
		.rest = r->record.rest_size ? &rest : NULL,
	};
	bool known, timely;

	if (!unwind_stack_pointer(s->regs, r->layout.regs_mask, &in.sp))
		return;
	in.pc = unwind_register(s->regs, r->layout.regs_mask, X86_64_RIP);
	if (r->about.kind == LANG_NODE) {
		in.fp = unwind_register(s->regs, r->layout.regs_mask, X86_64_RBP);
		in.rdi = unwind_register(s->regs, r->layout.regs_mask, X86_64_RDI);
		in.r9 = unwind_register(s->regs, r->layout.regs_mask, X86_64_R9);
		in.r15 = unwind_register(s->regs, r->layout.regs_mask, X86_64_R15);
	}
	if (r->about.kind == LANG_PHP && lang_is_eval(&r->about, in.pc)) {
		in.loop[0] = unwind_register(s->regs, r->layout.regs_mask, X86_64_R14);
		in.loop[1] = unwind_register(s->regs, r->layout.regs_mask, X86_64_R15);
	}
	if (r->about.nested)
		in.tid = inner_tid(r, process, (pid_t)s->pid, (pid_t)s->tid);
	known = lang_chain(&r->lang, &r->about, &in, &r->chain);
	if (r->record.overwritten)
		return;
	timely = newest && sched_getcpu() == r->cpu_nr && (int)s->cpu == r->cpu_nr &&
		 time_now_ns() - s->time_ns < LATE_NS && is_first(r);
	put_slot(r, s, process, timely);
	if (!known && s->time_ns >= r->find_ns)
		find_thread(r, process, in.tid);
}

static void on_sample(struct langreader *r, const struct record_sample *s, bool newest)
{
	uint32_t process;
	bool known;

	if ((pid_t)s->pid <= 0 || (pid_t)s->pid == r->shared->own_pid || !s->regs || !s->stack)
		return;
	rcu_thread_online();
	known = maps_interpreter(r->shared->maps, (pid_t)s->pid, s->time_ns, &r->about, &process);
	rcu_thread_offline();
	/* Java's frames are on the native stack. */
	if (!known || r->about.reason || r->about.kind <= LANG_NONE || r->about.kind >= LANG_NR ||
	    !(r->shared->languages & lang_bit(r->about.kind)) || is_barred(r->shared, process))
		return;
	r->read_pid = (pid_t)s->pid;
	reading_begin(&r->reading, (pid_t)s->pid, process, time_now_ns());
	read_thread(r, s, process, newest);
	reading_end(&r->reading);
}

/*
 * Have a short slice: since Linux 6.12 a thread that wakes up preempts one with a longer slice, and
 * any thread may ask for it. Older kernels ignore it.
 */
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

/* Run on the CPU of the sampled thread, before it continues. */
static void go_first(struct langreader *r)
{
	const struct sched_param param = { .sched_priority = LANGREADER_PRIORITY };
	cpu_set_t cpus;
	char name[16];

	snprintf(name, sizeof(name), "read%d", r->cpu->cpu);
	prctl(PR_SET_NAME, name);
	CPU_ZERO(&cpus);
	CPU_SET(r->cpu->cpu, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
	if (!sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &param))
		return;
	setpriority(PRIO_PROCESS, 0, LANGREADER_NICE);
	shorten_slice();
	preemption_open(&r->preemption);
	atomic_store_explicit(&r->slow, true, memory_order_relaxed);
}

static bool is_left(const struct langreader *r)
{
	/* Pairs with the exchange in langreader_leave(). */
	return atomic_load_explicit(&r->state, memory_order_acquire) == LEFT;
}

/* Read for the new samples. False: the ring may be gone. */
static bool read_samples(struct langreader *r)
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

void langreader_put(struct langreader_shared *shared)
{
	/* Acquire and release: all uses precede the free. */
	if (atomic_fetch_sub_explicit(&shared->users, 1, memory_order_acq_rel) != 1)
		return;
	shared->free_used(shared->used);
	free(shared);
}

static void langreader_free(struct langreader *r)
{
	if (r->feed)
		feed_fini(r->feed);
	free(r->feed);
	if (r->stop_fd >= 0)
		close(r->stop_fd);
	if (r->epoll_fd >= 0)
		close(r->epoll_fd);
	preemption_close(&r->preemption);
	langreader_put(r->shared);
	free(r);
}

static void *langreader_main(void *arg)
{
	struct langreader *r = arg;
	struct epoll_event event = { .data.fd = -1 };

	go_first(r);
	rcu_register_thread();
	rcu_thread_offline();
	while (epoll_wait(r->epoll_fd, &event, 1, -1) >= 0 || errno == EINTR) {
		if (event.data.fd == r->stop_fd || is_left(r))
			break;
		if (ring_waiting(&r->cpu->data) > r->cpu->data.size / 8)
			wake_send(r->kick_fd);
		if (!read_samples(r))
			break;
		if (langreader_is_slow(r) && !r->looked)
			preemption_was_instant(&r->preemption);
		r->looked = false;
	}
	rcu_thread_online();
	rcu_unregister_thread();
	/* Release: the owner may free it; acquire: the owner has left. */
	if (atomic_exchange_explicit(&r->state, ENDED, memory_order_acq_rel) == LEFT)
		langreader_free(r);
	return NULL;
}

/*
 * Wait for the ring and for the end, each at its edge: cheaper than poll(2), which registers with
 * both each time; and an event that hangs up is reported once.
 */
static int open_waiting(struct langreader *r)
{
	const int fds[] = { r->stop_fd, r->cpu->data_fd };

	if (r->stop_fd < 0)
		return r->stop_fd;
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.fd = fds[i] };

		if (fds[i] >= 0 && epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, fds[i], &event))
			return -errno;
	}
	return 0;
}

int langreader_start(struct langreader **out, struct langreader_shared *shared,
		     struct counters *counters, uint32_t index, int kick_fd, struct err *e)
{
	/* Fresh memory: unused pages are not resident. */
	struct langreader *r = calloc(1, sizeof(*r));
	int code;

	if (!r)
		return err_set(e, -ENOMEM, "no memory for a reader thread");
	/* Relaxed: the owner is one of the users. */
	atomic_fetch_add_explicit(&shared->users, 1, memory_order_relaxed);
	r->shared = shared;
	r->cpu = counters_cpu(counters, index);
	r->cpu_nr = r->cpu->cpu;
	r->counters = counters;
	r->index = index;
	r->layout = *counters_layout(counters);
	r->preemption.fd = -1;
	r->at = ring_written(&r->cpu->data);
	r->kick_fd = kick_fd;
	r->lang.memory.read = read_pieces;
	r->lang.memory.ctx = r;
	r->lang.codes = shared->codes;
	r->stop_fd = wake_new();
	r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	r->feed = aligned_alloc(CACHELINE, sizeof(*r->feed));
	code = r->feed ? feed_init(r->feed) : -ENOMEM;
	if (!code)
		code = open_waiting(r);
	if (!code)
		code = thread_start(&r->thread, 0, langreader_main, r);
	if (code) {
		langreader_free(r);
		return err_set(e, code, "cannot start a reader thread: %s", strerror(-code));
	}
	*out = r;
	return 0;
}

void langreader_leave(struct langreader *r)
{
	/* It may wait for samples again by now. */
	wake_send(r->stop_fd);
	pthread_detach(r->thread);
	/* Release: the ring may be unmapped after this. The last one of the two frees it. */
	if (atomic_exchange_explicit(&r->state, LEFT, memory_order_acq_rel) == ENDED)
		langreader_free(r);
}

void langreader_stop(struct langreader *r)
{
	const uint64_t deadline_ns = time_now_ns() + STOP_WAIT_NS;
	const struct timespec nap = { .tv_nsec = NAP_NS };

	if (!r)
		return;
	wake_send(r->stop_fd);
	while (atomic_load_explicit(&r->state, memory_order_acquire) != ENDED) {
		if (time_now_ns() > deadline_ns) {
			langreader_leave(r);
			return;
		}
		nanosleep(&nap, NULL);
	}
	pthread_join(r->thread, NULL);
	langreader_free(r);
}

struct feed *langreader_feed(struct langreader *r)
{
	return r->feed;
}

bool langreader_hangs(const struct langreader *r, uint64_t now_ns, pid_t *pid, uint32_t *process)
{
	return reading_hangs(&r->reading, now_ns, LANGREADER_HANG_NS, pid, process);
}

bool langreader_is_slow(const struct langreader *r)
{
	return atomic_load_explicit(&r->slow, memory_order_relaxed);
}
