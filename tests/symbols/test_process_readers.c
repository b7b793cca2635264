// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The reader of processes: one that hangs is replaced, and its process is left out; after some of
 * them all processes of its user.
 * Live: waits for threads or processes.
 */
#include "symbols/symbols.c"

#include <poll.h>
#include <unistd.h>

#include "tests/prelude.h"

#include "symbols/base/base.h"
#include "symbols/base/thread.h"
#include "symbols/process/internal.h"

#define T_HANG_NS   50000000ULL
#define PATIENCE_NS 20000000000ULL
#define NR	    ((int)PROC_HUNG_MAX + 8)

/* Requests for processes 1 to NR; the first @nr_hang of them do not answer. */
struct world {
	struct process_readers *readers;
	atomic_int wanted[NR + 1], nr_hang;
	atomic_int nr_read[NR + 1]; /* to the end, by a thread that had the work then */
	atomic_int nr_late;	    /* by one that had it no longer */
	int answer, done;
};

static int of_user; /* processes, in the order of pids */

static uid_t user_of(pid_t pid)
{
	return (uid_t)(pid / of_user);
}

static bool serve(void *ctx)
{
	struct world *w = ctx;
	bool any = false;

	for (int pid = 1; pid <= NR && proc_watch_is_mine(); pid++) {
		struct pollfd p = { .fd = w->answer, .events = POLLIN };

		if (!atomic_exchange(&w->wanted[pid], 0) || !proc_watch_begin(pid))
			continue;
		if (pid <= atomic_load(&w->nr_hang))
			poll(&p, 1, -1);
		atomic_fetch_add(proc_watch_end() ? &w->nr_read[pid] : &w->nr_late, 1);
		any = true;
	}
	return any;
}

static void t_start(struct world *w, int nr_hang, int nr_of_user)
{
	of_user = nr_of_user;
	*w = (struct world){ .answer = wake_new(), .done = wake_new() };
	atomic_store(&w->nr_hang, nr_hang);
	assert_int_equal(process_readers_new(&w->readers, serve, w, user_of, w->done), 0);
	assert_int_equal(process_readers_start(w->readers), 0);
}

static void want(struct world *w, int pid)
{
	atomic_store(&w->wanted[pid], 1);
	process_readers_wake(w->readers);
}

/* Look as the loader does until @pid was read @nr times; false: it was not. */
static bool look_until(struct world *w, int pid, int nr)
{
	uint64_t end_ns = time_now_ns() + PATIENCE_NS;

	while (atomic_load(&w->nr_read[pid]) < nr && time_now_ns() < end_ns) {
		process_readers_look(w->readers, T_HANG_NS);
		usleep(1000);
	}
	return atomic_load(&w->nr_read[pid]) >= nr;
}

static struct symbols_hung hung(const struct world *w)
{
	struct symbols_hung h;

	process_readers_hung(w->readers, &h);
	return h;
}

/* Look until @nr threads hang; false: they do not. */
static bool look_until_hung(struct world *w, uint32_t nr)
{
	uint64_t end_ns = time_now_ns() + PATIENCE_NS;

	while (hung(w).nr != nr && time_now_ns() < end_ns) {
		process_readers_look(w->readers, T_HANG_NS);
		usleep(1000);
	}
	return hung(w).nr == nr;
}

static void answer(struct world *w)
{
	atomic_store(&w->nr_hang, 0);
	wake_send(w->answer);
}

static void end(struct world *w)
{
	assert_true(process_readers_stop(w->readers, time_now_ns() + PATIENCE_NS));
	process_readers_free(w->readers);
	close(w->answer);
	close(w->done);
}

TEST(test_one_hangs)
{
	static struct world w;

	t_start(&w, 1, 1);
	want(&w, 5);
	assert_true(look_until(&w, 5, 1));
	assert_int_equal(hung(&w).nr, 0);
	assert_int_equal(hung(&w).pid, 0);
	want(&w, 1);
	/* The other ones are read, beside it and again. */
	for (int i = 0; i < 3; i++) {
		want(&w, 1);
		want(&w, 6);
		assert_true(look_until(&w, 6, i + 1));
	}
	assert_int_equal(hung(&w).nr, 1);
	assert_int_equal(hung(&w).pid, 1);
	assert_int_equal(hung(&w).left_out, LEFT_OUT_HUNG);
	assert_int_equal(atomic_load(&w.nr_read[1]), 0);
	/* When it answers, its thread ends, and it is read as the others. */
	answer(&w);
	assert_true(look_until_hung(&w, 0));
	assert_int_equal(atomic_load(&w.nr_late), 1);
	want(&w, 1);
	assert_true(look_until(&w, 1, 1));
	end(&w);
}

/* Of one user more than there may be: then no other one of that user is read, but all others. */
TEST(test_user)
{
	const int nr = (int)PROC_HUNG_OF_USER, others = NR / 2;
	static struct world w;

	t_start(&w, others - 2, others);
	for (int pid = 1; pid < others; pid++)
		want(&w, pid);
	assert_true(look_until_hung(&w, PROC_HUNG_OF_USER));
	assert_int_equal(hung(&w).left_out, LEFT_OUT_USER);
	assert_int_equal(hung(&w).user, 0);
	for (int i = 1; i <= 3; i++) {
		want(&w, others - 1);
		want(&w, others);
		assert_true(look_until(&w, others, i));
	}
	assert_int_equal(hung(&w).nr, nr);
	/* One that does not hang is left out as well, until others of its user end. */
	assert_int_equal(atomic_load(&w.nr_read[others - 1]), 0);
	answer(&w);
	assert_true(look_until_hung(&w, 0));
	assert_int_equal(atomic_load(&w.nr_late), nr);
	want(&w, others - 1);
	assert_true(look_until(&w, others - 1, 1));
	end(&w);
}

/* More than there may be: then no process is read, and the end does not wait. */
TEST(test_many_hang)
{
	static struct world w;
	uint64_t end_ns;

	t_start(&w, NR - 1, (int)PROC_HUNG_OF_USER - 1);
	for (int i = 1; i < NR; i++)
		want(&w, i);
	/* The last one has no substitute. */
	assert_true(look_until_hung(&w, PROC_HUNG_MAX + 1));
	assert_int_equal(hung(&w).left_out, LEFT_OUT_ALL);
	end_ns = time_now_ns();
	assert_false(process_readers_stop(w.readers, end_ns + 20000000));
	assert_true(time_now_ns() - end_ns < 5000000000ULL);
	/* They use it until they end. */
	answer(&w);
	end_ns = time_now_ns() + PATIENCE_NS;
	while (atomic_load(&w.nr_late) < (int)PROC_HUNG_MAX && time_now_ns() < end_ns)
		usleep(1000);
	assert_int_equal(atomic_load(&w.nr_late), PROC_HUNG_MAX);
	usleep(50000);
}

/* A worker that had no time, or was killed, hides no interpreter for good. */
TEST(test_description_again)
{
	static const int passing[] = { -ETIME, -EPIPE, -ENOMEM };

	for (size_t i = 0; i < ARRAY_SIZE(passing); i++) {
		for (uint32_t tries = 0; tries < FAILED_MAX; tries++)
			assert_true(again_ns(passing[i], tries) > AGAIN_NS);
		assert_int_equal(again_ns(passing[i], FAILED_MAX), 0);
	}
	assert_true(again_ns(-EAGAIN, TRIES_MAX - 1) > 0);
	assert_int_equal(again_ns(-EAGAIN, TRIES_MAX), 0);
	assert_int_equal(again_ns(-ENOENT, 0), 0);
	assert_int_equal(again_ns(0, 0), 0);
}

/*
 * The description of an interpreter has two seconds without the time that its worker took, which
 * has a limit apart: on a busy machine the process had no names for good.
 */
TEST(test_description_after_its_worker)
{
	struct detect d = { .rc = 0 };
	const struct interpreters_job job = { .detect = &d, .since_ns = 1 };
	const uint64_t end_ns = WORKER_NS - 1;

	(void)state;
	assert_false(hangs(&job, DETECT_NS));
	assert_true(hangs(&job, DETECT_NS + 2));
	atomic_store(&d.asks, true);
	assert_false(hangs(&job, end_ns));
	assert_true(hangs(&job, WORKER_NS + 2));
	atomic_store(&d.since_ns, end_ns);
	atomic_store(&d.asks, false);
	assert_false(hangs(&job, end_ns + DETECT_NS));
	assert_true(hangs(&job, end_ns + DETECT_NS + 1));
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
