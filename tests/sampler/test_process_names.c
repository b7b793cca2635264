// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Processes by name, beside command lines that are read for ever.
 * Live: waits for threads or processes.
 */
#include "sampler/target.c"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/prelude.h"

#include "symbols/base/base.h"
#include "symbols/base/thread.h"

#define NR	20
#define LONG_NS 10000000000ULL

static pid_t children[NR]; /* "wanted": by its thread the first one, by its program the last one */
static atomic_int nr_hang; /* this number of the others have no answer */
static int answer;	   /* readable: all are answered */

static int read_fake(pid_t pid, const char *name, char *text, size_t size)
{
	struct pollfd p = { .fd = answer, .events = POLLIN };
	int i = 0;

	while (i < NR && children[i] != pid)
		i++;
	if (i == NR)
		return -ENOENT;
	if (!strcmp(name, "comm")) {
		snprintf(text, size, "%s\n", i ? "a/wanted" : "wanted");
		return 0;
	}
	if (i && i <= atomic_load(&nr_hang))
		poll(&p, 1, -1);
	snprintf(text, size, "/usr/bin/%s", i == NR - 1 ? "wanted" : "other");
	return 0;
}

static int start(void **state)
{
	answer = wake_new();
	for (int i = 0; i < NR; i++) {
		children[i] = fork();
		if (children[i])
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return 0;
}

static int stop(void **state)
{
	for (int i = 0; i < NR; i++) {
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
	}
	close(answer);
	return 0;
}

/* Look for "^wanted$"; return the processes as bits of their numbers. */
static uint32_t look(struct process_names *n, uint64_t wait_ns)
{
	uint64_t begin_ns = time_now_ns();
	const pid_t *pids;
	uint32_t found = 0;
	int nr = process_names_look(n, "^wanted$", wait_ns, &pids);

	assert_true(nr >= 0);
	/* Never much longer than allowed, but for a busy machine. */
	assert_true(time_now_ns() - begin_ns < wait_ns + 20000000000ULL);
	for (int i = 0; i < nr; i++)
		for (int k = 0; k < NR; k++)
			if (children[k] == pids[i])
				found |= 1u << k;
	return found;
}

/* The same until the two are found: on a busy machine any read may take long. */
static void look_until(struct process_names *n)
{
	for (int i = 0; i < 100; i++)
		if (look(n, LONG_NS) == (1 | 1u << (NR - 1)))
			return;
	fail_msg("not found");
}

TEST(test_match)
{
	struct process_names *n = process_names_new(read_fake, 0);

	assert_non_null(n);
	look_until(n);
	process_names_put(n);
}

/* The others are found; its name is reported once, and its command line is read when it can be. */
TEST(test_one_hangs)
{
	struct process_names *n = process_names_new(read_fake, 0);
	uint32_t nr;

	atomic_store(&nr_hang, 1);
	look_until(n);
	assert_int_equal(process_names_take_hung(n, &nr), children[1]);
	assert_true(nr);
	look_until(n);
	assert_int_equal(process_names_take_hung(n, &nr), 0);
	atomic_store(&nr_hang, 0);
	wake_send(answer);
	for (int i = 0; i < 1000 && nr; i++) {
		look(n, LONG_NS);
		process_names_take_hung(n, &nr);
		usleep(1000);
	}
	assert_int_equal(nr, 0);
	assert_true(wake_clear(answer));
	process_names_put(n);
}

/* More than there are helpers: then by the names of threads alone. The end does not wait. */
TEST(test_many_hang)
{
	struct process_names *n = process_names_new(read_fake, 0);
	uint64_t begin_ns = time_now_ns();
	uint32_t nr;

	atomic_store(&nr_hang, NR - 2);
	/* Without a finished list, at first. */
	assert_int_equal(look(n, 50000000), 1);
	assert_int_equal(look(n, LONG_NS), 1);
	process_names_take_hung(n, &nr);
	assert_in_range(nr, 10, NR - 3);
	assert_ptr_equal(process_names_share(n), n);
	process_names_put(n);
	assert_int_equal(look(n, 0), 1);
	process_names_put(n);
	assert_true(time_now_ns() - begin_ns < LONG_NS + 5000000000ULL);
	atomic_store(&nr_hang, 0);
	wake_send(answer);
}

int main(void)
{
	return run_unit_tests(start, stop);
}
