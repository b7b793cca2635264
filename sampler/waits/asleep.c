// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A sleeping task from outside: the kind of its wait and a copy of its user stack, read by a
 * helper, which may hang; a task stopped for a moment.
 *
 * Invariant: a stack is used only if the task was not switched in between the first read and the
 * last one, by its count of runs in schedstat.
 */
#include "sampler/waits/waits.h"

#include <assert.h>
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>

#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/base/thread.h"
#include "symbols/name/name.h"
#include "symbols/process/process.h"
#include "unwind/unwind.h"

#define PAGE	  4096U
#define PAGES_MAX (ASLEEP_COPY_MAX / PAGE + 1)

/* Stack pointers of 32-bit programs: their stacks are not unwound. */
#define SP_MIN (1ULL << 32)

/* A system call in progress. */
struct call {
	long number; /* -1: the task sleeps outside of system calls */
	uint64_t op; /* second argument */
	uint64_t sp, pc;
};

/* Read the system call of a task. */
static bool read_call(pid_t tid, struct call *out)
{
	uint64_t a[7];
	char text[256];

	if (!untrusted_read_task(text, sizeof(text), tid, tid, "syscall"))
		return false;
	if (sscanf(text, "%ld", &out->number) != 1)
		return false; /* "running" */
	out->op = 0;
	if (out->number < 0)
		return sscanf(text, "%*d %" SCNx64 " %" SCNx64, &out->sp, &out->pc) == 2;
	if (sscanf(text,
		   "%*d %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64
		   " %" SCNx64 " %" SCNx64,
		   &a[0], &a[1], &a[2], &a[3], &a[4], &a[5], &out->sp, &out->pc) != 8)
		return false;
	out->op = a[1];
	return true;
}

/* Report whether @tid is a kernel thread. */
static bool is_kthread(pid_t tid)
{
	char text[512];
	size_t size = untrusted_read_task(text, sizeof(text), tid, tid, "stat");
	uint64_t flags;

	return size && procfs_stat_flags(text, size, &flags) && flags & PROCFS_PF_KTHREAD;
}

/* Read the kind of a wait from its wait channel alone: any futex is a WAIT_LOCK. */
static enum wait_kind kind_of_channel(pid_t tid)
{
	char text[64];
	size_t size = untrusted_read_task(text, sizeof(text), tid, tid, "wchan");
	enum wait_kind kind;

	if (!size || !strcmp(text, "0"))
		return WAIT_NO;
	kind = (enum wait_kind)wait_hint(text, size, true).kind;
	if (kind)
		return kind;
	return is_kthread(tid) ? WAIT_KTHREAD : WAIT_OTHER;
}

enum wait_kind asleep_kind(pid_t tid)
{
	enum wait_kind kind = kind_of_channel(tid);
	struct utsname us;
	struct call call;

	assert(tid > 0);
	if ((kind != WAIT_LOCK && kind != WAIT_OTHER) || !read_call(tid, &call))
		return kind;
	/* glibc's mutexes wait without a bit set, its conditions with one. */
	if (kind == WAIT_LOCK)
		return call.number == SYS_futex && (call.op & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET
			       ? WAIT_CONDITION
			       : WAIT_LOCK;
	/* Kernel threads have no registers of a program. */
	if (!call.sp && !call.pc)
		return WAIT_KTHREAD;
	kind = uname(&us) ? WAIT_NO : wait_kind_of_call(call.number, unwind_machine(us.machine));
	return kind ? kind : WAIT_OTHER;
}

bool asleep_registers(pid_t tid, uint64_t *sp, uint64_t *pc)
{
	struct call call;

	if (!read_call(tid, &call) || call.sp < SP_MIN || !call.pc)
		return false;
	*sp = call.sp;
	*pc = call.pc;
	return true;
}

bool asleep_runs(pid_t tid, uint64_t *nr)
{
	char text[96];

	return untrusted_read_task(text, sizeof(text), tid, tid, "schedstat") &&
	       sscanf(text, "%*u %*u %" SCNu64, nr) == 1;
}

size_t asleep_copy_stack(pid_t pid, uint64_t sp, void *bytes, size_t max)
{
	struct iovec ours = { bytes, max }, theirs[PAGES_MAX];
	uint64_t at = sp, end = sp + max;
	unsigned int nr = 0;
	ssize_t size;

	assert(bytes && max);
	for (; at < end && nr < PAGES_MAX; nr++) {
		uint64_t next = MIN((at / PAGE + 1) * PAGE, end);

		theirs[nr] = (struct iovec){ (void *)(uintptr_t)at, next - at };
		at = next;
	}
	size = process_vm_readv(pid, &ours, 1, theirs, nr, 0);
	return size > 0 ? (size_t)size : 0;
}

void asleep_read(struct asleep *a)
{
	uint64_t before, after;
	struct call call;

	assert(a->tid > 0);
	a->kind = WAIT_NO;
	a->size = 0;
	a->time_ns = time_now_ns();
	if (!asleep_runs(a->tid, &before))
		return;
	a->kind = asleep_kind(a->tid);
	if (a->kind && read_call(a->tid, &call) && call.sp >= SP_MIN && call.pc) {
		a->sp = call.sp;
		a->pc = call.pc;
		a->size = asleep_copy_stack(a->pid, a->sp, a->stack, sizeof(a->stack));
	}
	if (asleep_runs(a->tid, &after) && before == after)
		return;
	a->kind = WAIT_NO;
	a->size = 0;
}

/*
 * One job at a time reads the stacks of sleeping tasks, or kinds of waits, on a helper.
 *
 * Runs on: the owner; read_all() on a helper. A process may hang its reader (userfaultfd, a file
 * system that does not respond): that job is put aside until it ends, and the process is
 * reported until then.
 */

/* A read that takes longer hangs; a job that takes longer hangs in the process that it reads. */
#define HANG_NS 1000000000ULL

#define JOB_HANG_NS (4 * HANG_NS)

/* Jobs that may hang. */
#define HUNG_MAX (HELPERS_MAX / 2)

struct sleep_job {
	struct job job;
	uint64_t began_ns;
	struct sleep_reader_calls calls;
	atomic_int pid; /* of the process that is read; 0: none. Relaxed: a number */
	/* Copies that are complete. Release by the helper, acquire in sleep_reader_copies(). */
	atomic_uint nr_read;
	uint32_t nr;
	struct sleep_copy copies[SLEEP_READER_KINDS];
	struct asleep stacks[]; /* SLEEP_READER_TASKS, or none */
};

struct sleep_reader {
	struct helpers *helpers;
	struct sleep_reader_calls calls;
	struct sleep_job *job; /* NULL: none */
	/* Jobs that hang, and their processes, by index. */
	struct sleep_job *left[HUNG_MAX];
	pid_t hung[HUNG_MAX];
	unsigned int nr_hung;
};

static void read_task(const struct sleep_job *j, struct sleep_copy *c)
{
	c->time_ns = time_now_ns();
	if (!c->copy) {
		c->kind = j->calls.kind_of(c->task.tid);
		return;
	}
	c->copy->pid = c->task.pid;
	c->copy->tid = c->task.tid;
	j->calls.read(c->copy);
	c->kind = c->copy->kind;
}

static void read_all(struct job *job)
{
	struct sleep_job *j = (struct sleep_job *)job;

	for (uint32_t i = 0; i < j->nr && !watch_begin(&job->watch); i++) {
		atomic_store_explicit(&j->pid, j->copies[i].task.pid, memory_order_relaxed);
		read_task(j, &j->copies[i]);
		atomic_store_explicit(&j->nr_read, i + 1, memory_order_release);
		atomic_store_explicit(&j->pid, 0, memory_order_relaxed);
		watch_end(&job->watch, 0);
	}
}

static void drop(struct job *job)
{
	free(job);
}

struct sleep_reader *sleep_reader_new(struct sleep_reader_calls calls)
{
	struct sleep_reader *r = calloc(1, sizeof(*r));

	if (!r || helpers_new(&r->helpers, -1)) {
		free(r);
		return NULL;
	}
	r->calls = calls;
	return r;
}

void sleep_reader_free(struct sleep_reader *r)
{
	if (!r)
		return;
	sleep_reader_drop(r);
	for (uint32_t i = 0; i < r->nr_hung; i++)
		helper_job_leave(&r->left[i]->job);
	helpers_free(r->helpers, time_now_ns() + HANG_NS / 10);
	free(r);
}

bool sleep_reader_stopped(const struct sleep_reader *r)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < r->nr_hung; i++)
		nr += !helper_job_done(&r->left[i]->job);
	return nr == HUNG_MAX;
}

/* Free the jobs that no longer hang: their processes ended, went on, or proftop was stopped. */
static void tidy(struct sleep_reader *r)
{
	uint32_t kept = 0;

	assert(!r->job);
	for (uint32_t i = 0; i < r->nr_hung; i++) {
		if (helper_job_done(&r->left[i]->job)) {
			free(r->left[i]);
			continue;
		}
		r->left[kept] = r->left[i];
		r->hung[kept++] = r->hung[i];
	}
	r->nr_hung = kept;
}

/* Test whether the present job was found to hang. */
static bool is_left(const struct sleep_reader *r)
{
	return r->nr_hung && r->left[r->nr_hung - 1] == r->job;
}

enum sleep_reader_state sleep_reader_look(struct sleep_reader *r, uint64_t now_ns)
{
	struct sleep_job *j = r->job;
	pid_t pid;

	assert(r->nr_hung <= HUNG_MAX);
	if (!j) {
		tidy(r);
		return r->nr_hung == HUNG_MAX ? SLEEP_READER_STOPPED : SLEEP_READER_IDLE;
	}
	if (helper_job_done(&j->job) || is_left(r))
		return is_left(r) ? SLEEP_READER_HUNG : SLEEP_READER_DONE;
	/* Between two reads, or before the first one, there is no process to blame. */
	pid = atomic_load_explicit(&j->pid, memory_order_relaxed);
	if (!pid || (watch_blocked_ns(&j->job.watch, now_ns) < HANG_NS &&
		     now_ns < j->began_ns + JOB_HANG_NS))
		return SLEEP_READER_BUSY;
	r->left[r->nr_hung] = j;
	r->hung[r->nr_hung++] = pid;
	return SLEEP_READER_HUNG;
}

struct waits_barred sleep_reader_hung(const struct sleep_reader *r)
{
	return (struct waits_barred){ r->hung, r->nr_hung };
}

const struct sleep_copy *sleep_reader_copies(const struct sleep_reader *r, uint32_t *nr)
{
	assert(r->job);
	*nr = atomic_load_explicit(&r->job->nr_read, memory_order_acquire);
	return r->job->copies;
}

void sleep_reader_drop(struct sleep_reader *r)
{
	if (!r->job)
		return;
	if (is_left(r))
		/* It ends with this read. */
		atomic_store_explicit(&r->job->job.watch.cancel, true, memory_order_relaxed);
	else
		helper_job_leave(&r->job->job);
	r->job = NULL;
	tidy(r);
	assert(!r->job);
}

bool sleep_reader_start(struct sleep_reader *r, const struct waits_sleeper *tasks, uint32_t nr,
			bool stacks)
{
	struct sleep_job *j;

	assert(!r->job && nr <= (stacks ? SLEEP_READER_TASKS : SLEEP_READER_KINDS));
	if (!nr || r->nr_hung == HUNG_MAX)
		return false;
	j = calloc(1, sizeof(*j) + (stacks ? SLEEP_READER_TASKS * sizeof(j->stacks[0]) : 0));
	if (!j)
		return false;
	j->job.run = read_all;
	j->job.drop = drop;
	j->calls = r->calls;
	j->began_ns = time_now_ns();
	j->nr = nr;
	for (uint32_t i = 0; i < nr; i++)
		j->copies[i] = (struct sleep_copy){ .task = tasks[i],
						    .copy = stacks ? &j->stacks[i] : NULL };
	if (helpers_start(r->helpers, &j->job)) {
		free(j);
		return false;
	}
	r->job = j;
	return true;
}

/*
 * The tracer thread stops the task, passes its registers on, waits for the copy or the deadline,
 * and detaches.
 *
 * Runs on: the caller, and the tracer. A signal that arrives in the stop is delivered by the
 * detach; a task in a group stop remains so.
 */

/* The longest stop that is intended. A machine without a free CPU may make it longer. */
#define STOPPED_MAX_NS 4000000ULL

/* Between two looks at whether it has stopped, and how long to look: it may have no CPU. */
#define NAP_NS 30000

#define WAIT_NS 200000000ULL

struct stop {
	pid_t tid;
	uint64_t user[UNWIND_USER_MAX];
	size_t size; /* of the registers */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Under the lock. */
	bool is_stopped, is_over, is_copied;
	int code;
	uint64_t deadline_ns, stop_ns;
};

/* Have this thread run at once while the task waits for it; refused to most users. */
static void hurry(bool on)
{
	const struct sched_param real = { .sched_priority = on };

	sched_setscheduler(0, (on ? SCHED_RR : SCHED_OTHER) | SCHED_RESET_ON_FORK, &real);
}

/*
 * Wait until the task has stopped, after *@begin_ns; *@sig: the signal to deliver afterwards, 0:
 * none. -ETIME: it did not: it waits for a disk, or gets no CPU.
 */
static int wait_for_stop(pid_t tid, uint64_t *begin_ns, int *sig)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };
	const uint64_t deadline_ns = *begin_ns + WAIT_NS;
	int status;

	*sig = 0;
	for (;;) {
		uint64_t now_ns = time_now_ns();
		pid_t pid = waitpid(tid, &status, __WALL | WNOHANG);

		if (pid < 0 && errno != EINTR)
			return -errno;
		if (pid == tid && !WIFSTOPPED(status))
			return -ESRCH;
		if (pid == tid) {
			if (status >> 16 != PTRACE_EVENT_STOP)
				*sig = WSTOPSIG(status);
			return 0;
		}
		if (now_ns >= deadline_ns)
			return -ETIME;
		*begin_ns = now_ns;
		nanosleep(&nap, NULL);
	}
}

/* Report the registers, or that there are none, and wait for the copy. */
static void pass_on(struct stop *s, int code)
{
	struct timespec until;

	pthread_mutex_lock(&s->lock);
	s->code = code;
	s->is_stopped = !code;
	pthread_cond_broadcast(&s->changed);
	until = (struct timespec){ (time_t)(s->deadline_ns / 1000000000),
				   (long)(s->deadline_ns % 1000000000) };
	while (!code && !s->is_copied &&
	       pthread_cond_clockwait(&s->changed, &s->lock, CLOCK_MONOTONIC, &until) != ETIMEDOUT)
		;
	pthread_mutex_unlock(&s->lock);
}

/* Note the end of the stop. */
static void end(struct stop *s, uint64_t begin_ns, int code)
{
	pthread_mutex_lock(&s->lock);
	s->code = s->code ? s->code : code;
	s->is_over = true;
	s->stop_ns = time_now_ns() - begin_ns;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

static void *tracer_main(void *arg)
{
	struct stop *s = arg;
	struct iovec regs = { s->user, sizeof(s->user) };
	uint64_t begin_ns;
	int sig = 0, code = 0;

	hurry(true);
	if (ptrace(PTRACE_SEIZE, s->tid, NULL, NULL))
		code = -errno;
	begin_ns = time_now_ns();
	if (!code && ptrace(PTRACE_INTERRUPT, s->tid, NULL, NULL))
		code = -errno;
	if (!code)
		code = wait_for_stop(s->tid, &begin_ns, &sig);
	s->deadline_ns = begin_ns + STOPPED_MAX_NS;
	if (code) {
		/* The end of this thread detaches it. */
		pass_on(s, code);
		return NULL;
	}
	if (ptrace(PTRACE_GETREGSET, s->tid, NT_PRSTATUS, &regs))
		code = -errno;
	s->size = regs.iov_len;
	pass_on(s, code);
	if (ptrace(PTRACE_DETACH, s->tid, NULL, (void *)(intptr_t)sig))
		code = -errno;
	end(s, begin_ns, code);
	return NULL;
}

/* Wait for the registers. 0 or -errno. */
static int wait_for_registers(struct stop *s)
{
	int code;

	pthread_mutex_lock(&s->lock);
	while (!s->is_stopped && !s->code)
		pthread_cond_wait(&s->changed, &s->lock);
	code = s->code;
	pthread_mutex_unlock(&s->lock);
	return code;
}

int stopped_read(pid_t tid, struct stopped *out, stopped_copy_fn copy, void *ctx)
{
	struct stop s = { .tid = tid,
			  .lock = PTHREAD_MUTEX_INITIALIZER,
			  .changed = PTHREAD_COND_INITIALIZER };
	pthread_t thread;
	int code;

	assert(tid > 0);
	memset(out, 0, sizeof(*out));
	hurry(true);
	code = thread_start(&thread, 0, tracer_main, &s);
	if (code) {
		hurry(false);
		return code;
	}
	code = wait_for_registers(&s);
	if (!code && !unwind_regs_of_user(s.user, s.size, out->regs))
		code = -EPROTO; /* of a 32-bit program */
	if (!code && !unwind_stack_pointer(out->regs, unwind_regs_mask(), &out->sp))
		code = -EPROTO;
	if (!code)
		copy(ctx, out, s.deadline_ns);
	pthread_mutex_lock(&s.lock);
	out->whole = !code && !s.is_over;
	s.is_copied = true;
	pthread_cond_broadcast(&s.changed);
	pthread_mutex_unlock(&s.lock);
	pthread_join(thread, NULL);
	hurry(false);
	out->stop_ns = s.stop_ns;
	return code ? code : s.code;
}
