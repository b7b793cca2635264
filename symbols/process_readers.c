// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One reader at a time works. One that hangs ends with its read; until then, its process is left
 * out by the next ones, and after some of them each process of its user.
 */
#include "symbols/process_readers.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>
#include <urcu-qsbr.h>

#include "symbols/base/thread.h"
#include "symbols/base/wake.h"
#include "symbols/stats.h"

#define NICE	   -10
#define WAIT_MS	   200
#define STACK_SIZE (1UL << 20)
/* At the end, for threads that hang already. */
#define LEFT_NS 50000000ULL

struct reader {
	struct process_readers *of;
	pthread_t thread;
	struct proc_watch watch;
	atomic_bool ended; /* release by the thread */
};

struct process_readers {
	process_readers_fn serve;
	void *ctx;
	int event, done_fd;
	atomic_bool stop;
	struct reader *now; /* NULL: none works */
	struct reader *left[PROC_HUNG_MAX];
	struct proc_hung hung; /* the processes of @left, by index */
	pthread_mutex_t lock;  /* of @known */
	struct symbols_hung known;
};

int process_readers_new(struct process_readers **out, process_readers_fn serve, void *ctx,
			proc_user_fn user_of, int done_fd)
{
	struct process_readers *r = calloc(1, sizeof(*r));
	int code;

	if (!r)
		return -ENOMEM;
	r->serve = serve;
	r->ctx = ctx;
	r->done_fd = done_fd;
	r->hung.user_of = user_of;
	r->event = wake_new();
	if (r->event < 0) {
		code = r->event;
		free(r);
		return code;
	}
	pthread_mutex_init(&r->lock, NULL);
	*out = r;
	return 0;
}

static bool is_stopping(const struct process_readers *r)
{
	return atomic_load_explicit(&r->stop, memory_order_acquire);
}

static void *reader_main(void *arg)
{
	struct reader *own = arg;
	struct process_readers *r = own->of;
	struct pollfd fd = { .fd = r->event, .events = POLLIN };
	bool any;

	pthread_setname_np(pthread_self(), "proftop/proc");
	/* Small work that all samples of a new process wait for. Most users have no permission. */
	setpriority(PRIO_PROCESS, 0, NICE);
	rcu_register_thread();
	/* Offline forever: /proc may hang, and the maps are read under their mutex here. */
	rcu_thread_offline();
	proc_watch_use(&own->watch);
	while (!is_stopping(r) && proc_watch_is_mine()) {
		any = poll(&fd, 1, WAIT_MS) > 0 && wake_clear(r->event);
		if (is_stopping(r))
			break;
		any |= r->serve(r->ctx);
		/* A wake is for both threads. */
		if (any)
			wake_send(r->done_fd);
	}
	rcu_unregister_thread();
	atomic_store_explicit(&own->ended, true, memory_order_release);
	return NULL;
}

/* Start a thread in the place of @now, which is NULL. */
static int start(struct process_readers *r)
{
	struct reader *reader = calloc(1, sizeof(*reader));
	int code;

	if (!reader)
		return -ENOMEM;
	reader->of = r;
	reader->watch.hung = &r->hung;
	code = thread_start(&reader->thread, STACK_SIZE, reader_main, reader);
	if (code)
		free(reader);
	else
		r->now = reader;
	return code;
}

int process_readers_start(struct process_readers *r)
{
	atomic_store_explicit(&r->stop, false, memory_order_relaxed); /* no thread yet */
	return start(r);
}

void process_readers_wake(struct process_readers *r)
{
	wake_send(r->event);
}

/* Free the readers that no longer hang. */
static void tidy(struct process_readers *r)
{
	for (uint32_t i = 0; i < PROC_HUNG_MAX; i++) {
		struct reader *reader = r->left[i];

		if (!reader || !atomic_load_explicit(&reader->ended, memory_order_acquire))
			continue;
		pthread_join(reader->thread, NULL);
		free(reader);
		r->left[i] = NULL;
		atomic_store_explicit(&r->hung.pids[i], 0, memory_order_relaxed);
	}
}

/* Put the reader aside that hangs in @pid since @since_ns. False: it does not any more. */
static bool leave(struct process_readers *r, uint32_t at, pid_t pid, uid_t user, uint64_t since_ns)
{
	if (!proc_watch_leave(&r->now->watch, since_ns))
		return false;
	r->left[at] = r->now;
	r->now = NULL;
	atomic_store_explicit(&r->hung.users[at], user, memory_order_relaxed);
	atomic_store_explicit(&r->hung.pids[at], pid, memory_order_relaxed);
	return true;
}

/* Note the threads that hang. @pid: the process of the newest one; 0: none is new. */
static void note_hung(struct process_readers *r, pid_t pid, uid_t user)
{
	/* There is no slot for the present one: none takes its place. */
	bool all = pid && r->now;
	uint32_t nr = all;

	for (uint32_t i = 0; i < PROC_HUNG_MAX; i++)
		nr += r->left[i] != NULL;
	pthread_mutex_lock(&r->lock);
	r->known.nr = nr;
	if (pid) {
		r->known.pid = pid;
		r->known.user = user;
		r->known.left_out = all					? LEFT_OUT_ALL
				    : proc_hung_is_full(&r->hung, user) ? LEFT_OUT_USER
									: LEFT_OUT_HUNG;
	}
	pthread_mutex_unlock(&r->lock);
}

void process_readers_look(struct process_readers *r, uint64_t ns)
{
	uid_t user = (uid_t)-1;
	uint64_t since_ns;
	uint32_t at = 0;
	pid_t pid;

	tidy(r);
	pid = r->now ? proc_watch_hangs(&r->now->watch, ns, &since_ns) : 0;
	while (at < PROC_HUNG_MAX && r->left[at])
		at++;
	if (pid)
		user = r->hung.user_of(pid);
	if (pid && at < PROC_HUNG_MAX && !leave(r, at, pid, user, since_ns))
		pid = 0;
	note_hung(r, pid, user);
	/* Again at the next look, where there is no thread. */
	if (!r->now && !start(r))
		process_readers_wake(r);
}

void process_readers_hung(struct process_readers *r, struct symbols_hung *out)
{
	pthread_mutex_lock(&r->lock);
	*out = r->known;
	pthread_mutex_unlock(&r->lock);
}

/* Join a reader until @deadline_ns; false: it hangs. */
static bool join(struct reader *reader, uint64_t deadline_ns)
{
	bool ended = !reader || thread_join_until(reader->thread, deadline_ns);

	if (ended)
		free(reader);
	return ended;
}

bool process_readers_stop(struct process_readers *r, uint64_t deadline_ns)
{
	uint64_t left_ns;
	bool ended;

	/* Release: pairs with is_stopping(). */
	atomic_store_explicit(&r->stop, true, memory_order_release);
	wake_send(r->event);
	ended = join(r->now, deadline_ns);
	r->now = NULL;
	left_ns = MIN(deadline_ns, time_now_ns() + LEFT_NS);
	for (uint32_t i = 0; i < PROC_HUNG_MAX; i++) {
		ended &= join(r->left[i], left_ns);
		r->left[i] = NULL;
	}
	return ended;
}

void process_readers_free(struct process_readers *r)
{
	if (!r)
		return;
	close(r->event);
	pthread_mutex_destroy(&r->lock);
	free(r);
}
