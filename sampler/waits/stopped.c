// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The tracer thread stops the task, passes its registers on, waits for the copy or the deadline,
 * and detaches.
 *
 * Runs on: the caller, and the tracer. A signal that arrives in the stop is delivered by the
 * detach; a task in a group stop remains so.
 */
#include "sampler/waits/stopped.h"

#include <elf.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "symbols/base/base.h"
#include "symbols/base/thread.h"
#include "unwind/unwind.h"

/* Between two looks at whether it has stopped, and how long to look: it may have no CPU. */
#define NAP_NS	30000
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
