// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The loop of a reader: wait for a sample, copy it, read its thread, pass on.
 *
 * Runs on: reader n, a process, or a thread where proftop has no right that a process of its
 * user lacks. Invariants: data_tail is the sampler thread's; a copy is used only if the kernel has
 * not overwritten the record. Of proftop's memory it needs nothing but the share.
 */
#include "sampler/pipeline/langreader_loop.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "symbols/base/wake.h"
#include "unwind/unwind.h"

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
/* DWARF numbers of registers. */
#define X86_64_RDI 5
#define X86_64_R9  9
#define X86_64_RBP 6
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

/*
 * Copy the next sample to be read: the newest of the ring, or one of a wait before it, as the
 * thread sleeps. False: there is no new one.
 */
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
		*newest = !reads || !last_size || event != SHARE_WAIT;
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
		.deep = c->deep,
		.nr = (uint16_t)c->nr,
		.nr_here = (uint16_t)c->nr_here,
		.process = process,
	};

	feed_put(&r->feed, &slot, c->frames);
	atomic_store_explicit(&r->share->memory, codes_memory(r->lang.codes), memory_order_relaxed);
}

/* Return whether the sampled thread has not run on: so by a real-time priority, else proven. */
static bool is_first(struct langreader_loop *r)
{
	if (!r->slow)
		return true;
	r->looked = true;
	return preemption_was_instant(&r->preemption);
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

/* Read the frames of the sampled thread, which this thread has preempted if all is well. */
static void read_thread(struct langreader_loop *r, const struct record_sample *s, uint32_t process,
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
	};
	bool timely;

	if (!unwind_stack_pointer(s->regs, r->layout.regs_mask, &in.sp))
		return;
	in.pc = unwind_register(s->regs, r->layout.regs_mask, X86_64_RIP);
	if (r->found.info.kind == LANG_NODE) {
		in.fp = unwind_register(s->regs, r->layout.regs_mask, X86_64_RBP);
		in.rdi = unwind_register(s->regs, r->layout.regs_mask, X86_64_RDI);
		in.r9 = unwind_register(s->regs, r->layout.regs_mask, X86_64_R9);
		in.r15 = unwind_register(s->regs, r->layout.regs_mask, X86_64_R15);
	}
	if (r->found.info.kind == LANG_PHP && lang_is_eval(&r->found.info, in.pc)) {
		in.loop[0] = unwind_register(s->regs, r->layout.regs_mask, X86_64_R14);
		in.loop[1] = unwind_register(s->regs, r->layout.regs_mask, X86_64_R15);
	}
	if (r->found.info.nested)
		in.tid = share_inner(r->share, (pid_t)s->pid, (pid_t)s->tid, process);
	if (in.tid < 0) {
		kick(r);
		return;
	}
	/* A new thread waits for this reader as well; after a long search the read is late. */
	if (!lang_chain(&r->lang, &r->found.info, &in, &r->chain) && find_thread(r, &in))
		lang_chain(&r->lang, &r->found.info, &in, &r->chain);
	if (r->record.overwritten)
		return;
	timely = is_asked(r) || (newest && sched_getcpu() == r->cpu && (int)s->cpu == r->cpu &&
				 time_now_ns() - s->time_ns < LATE_NS && is_first(r));
	put_slot(r, s, process, timely);
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

void langreader_loop_go_first(struct langreader_loop *r)
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
	preemption_open(&r->preemption);
	r->slow = true;
	atomic_store_explicit(&r->share->slow, true, memory_order_relaxed);
}

static void on_sample(struct langreader_loop *r, const struct record_sample *s, bool newest)
{
	int known;

	if ((pid_t)s->pid <= 0 || !s->regs || !s->stack)
		return;
	known = share_find(r->share, (pid_t)s->pid, &r->found);
	if (known < 0)
		want_facts(r, s->time_ns);
	if (known <= 0 || r->found.info.kind <= LANG_NONE || r->found.info.kind >= LANG_NR)
		return;
	r->read_pid = (pid_t)s->pid;
	reading_begin(&r->share->reading, (pid_t)s->pid, r->found.process, time_now_ns());
	read_thread(r, s, r->found.process, newest);
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

/*
 * Wait for the ring and for the end, each at its edge: cheaper than poll(2), which registers with
 * both each time; and an event that hangs up is reported once.
 */
static int open_waiting(struct langreader_loop *r, int data_fd, int stop_fd)
{
	const int fds[] = { stop_fd, data_fd };

	r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (r->epoll_fd < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.fd = fds[i] };

		if (fds[i] >= 0 && epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, fds[i], &event))
			return -errno;
	}
	return 0;
}

int langreader_loop_new(struct langreader_loop **out, const struct langreader_start *start,
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
	r->preemption.fd = r->epoll_fd = -1;
	r->at = ring_written(ring);
	r->kick_fd = kick_fd;
	r->stop_fd = stop_fd;
	r->lang.memory.read = read_pieces;
	r->lang.memory.ctx = r;
	r->lang.codes = codes_new();
	r->feed = (struct feed_writer){ &share->feed, r->lang.codes, 0 };
	rc = r->lang.codes ? open_waiting(r, is_asked(r) ? kick_fd : data_fd, stop_fd) : -ENOMEM;
	if (rc)
		langreader_loop_free(r);
	else
		*out = r;
	return rc;
}

void langreader_loop_free(struct langreader_loop *r)
{
	if (r->epoll_fd >= 0)
		close(r->epoll_fd);
	preemption_close(&r->preemption);
	codes_free(r->lang.codes);
	free(r);
}

void langreader_loop_run(struct langreader_loop *r)
{
	struct epoll_event event = { .data.fd = -1 };

	while (epoll_wait(r->epoll_fd, &event, 1, -1) >= 0 || errno == EINTR) {
		if (event.data.fd == r->stop_fd || is_left(r))
			break;
		if (ring_waiting(&r->ring) > r->ring.size / 8)
			kick(r);
		if (!read_samples(r))
			break;
		/* Release: the slot; pairs with langreader_ask(). */
		atomic_store_explicit(&r->share->read_to, r->at, memory_order_release);
		if (r->slow && !r->looked)
			preemption_was_instant(&r->preemption);
		r->looked = false;
	}
}
