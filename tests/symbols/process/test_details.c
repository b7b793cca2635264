// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The details in /proc: of this process and of a child.
 * Live: waits for threads or processes.
 */
#include "symbols/process/internal.h"

#include "tests/prelude.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <urcu-qsbr.h>

#include "symbols/image/image.h"
#include "tests/unhash.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"

static struct objects *objects;
static struct maps *maps;
static struct details *details;
static struct text_arena *arena;

static int setup(void **state)
{
	rcu_register_thread();
	assert_int_equal(objects_new(&objects), 0);
	assert_int_equal(maps_new(&maps, objects, 1000), 0);
	details = details_new(maps);
	arena = text_arena_new();
	return 0;
}

static int teardown(void **state)
{
	text_arena_free(arena);
	details_free(details);
	maps_free(maps);
	objects_free(objects);
	rcu_unregister_thread();
	return 0;
}

/* The id of the incarnation that has @pid now. */
static uint32_t incarnation(pid_t pid)
{
	struct maps_hit hit;

	assert_int_equal(maps_load(maps, pid), 0);
	maps_find(maps, maps_tasks(maps), pid, pid, time_now_ns(), &hit);
	return maps_task(maps, hit.task)->process;
}

static pid_t sleeper(char *const argv[])
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execv("/bin/sleep", argv);
		_exit(1);
	}
	/* Until the new program has its arguments: execve() sets the name before. */
	for (char path[64], text[64] = ""; strcmp(text, argv[0]) != 0; usleep(1000)) {
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
		f = fopen(path, "r");
		assert_non_null(f);
		if (!fgets(text, sizeof(text), f))
			text[0] = '\0';
		fclose(f);
	}
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static struct safe_text text_of(const char *text)
{
	return (struct safe_text){ text, (uint16_t)strlen(text), (uint16_t)strlen(text) };
}

/* A name that says only "main thread" is that of a runtime; all others were chosen by a program. */
TEST(test_main_thread)
{
	static const char *const generic[] = { "MainThread", "node-MainThread", "Main Thread",
					       "main-thread", "main_thread" };
	static const char *const chosen[] = {
		"node",	       "postgres",    "Web Content", "main",  "Thread",
		"kworker/0:1", "MainThread2", "(sd-pam)",    "nginx", ""
	};

	for (size_t i = 0; i < ARRAY_SIZE(generic); i++) {
		assert_string_equal(details_name(text_of(generic[i]), TEXT("node")).str, "node");
		assert_string_equal(details_name(text_of(generic[i]), TEXT("")).str, generic[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(chosen); i++)
		assert_string_equal(details_name(text_of(chosen[i]), TEXT("node")).str, chosen[i]);
}

TEST(test_child, setup, teardown)
{
	char *const argv[] = { "s\033[31m", "1000", NULL };
	struct process_details d;
	pid_t pid = sleeper(argv);
	uint32_t id = incarnation(pid);
	uint64_t now = time_now_ns();

	/* Not known yet; requested once, not twice. */
	assert_false(details_get(details, id, pid, now, arena, &d));
	assert_false(details_get(details, id, pid, now, arena, &d));
	assert_true(details_wanted(details));
	assert_true(details_serve(details, 1) == 1);
	assert_true(details_get(details, id, pid, now, arena, &d));
	assert_string_equal(d.command.str, "s\u00b7[31m 1000");
	assert_string_equal(d.comm.str, "sleep");
	assert_true(d.program.size);
	assert_int_equal(d.parent, getpid());
	assert_int_equal(d.uid, getuid());
	assert_true(d.start_ns > 0);
	/* Its ancestors were requested with it. */
	assert_true(details_serve(details, 100) >= 1);
	assert_true(details_get(details, 0, getpid(), now, arena, &d));
	assert_int_equal(d.parent, getppid());
	assert_false(details_wanted(details));
	/* Old details are requested again, and shown until then. */
	assert_true(details_get(details, id, pid, now + 60000000000, arena, &d));
	assert_true(details_wanted(details));
	/* Ended: the known details remain. */
	end(pid);
	assert_int_equal(details_serve(details, 1), 1);
	assert_true(details_get(details, id, pid, now + 120000000000, arena, &d));
	assert_int_equal(d.parent, getpid());
	assert_false(details_wanted(details));
	/* Without a request. */
	assert_true(details_known(details, id, arena, &d));
	assert_string_equal(d.comm.str, "sleep");
	assert_false(details_known(details, id + 1, arena, &d));
	assert_false(details_wanted(details));
}

/* A pid that now belongs to another incarnation has no details for the requested one. */
TEST(test_other, setup, teardown)
{
	char *const argv[] = { "sleep", "1000", NULL };
	struct process_details d;
	pid_t pid = sleeper(argv);
	uint32_t id = incarnation(pid);

	maps_on_comm(maps, pid, pid, "other", 5, true, time_now_ns());
	maps_publish(maps, time_now_ns(), 0);
	assert_false(details_get(details, id, pid, time_now_ns(), arena, &d));
	details_serve(details, 100);
	assert_false(details_get(details, id, pid, time_now_ns(), arena, &d));
	end(pid);
}

/* Few entries also leave without a request: with the second sweep. */
TEST(test_not_requested, setup, teardown)
{
	char *const argv[] = { "sleep", "1000", NULL };
	const uint64_t minute = 60000000000;
	uint64_t now = time_now_ns();
	struct process_details d;
	pid_t pids[2];
	uint32_t ids[2];

	for (int i = 0; i < 2; i++) {
		pids[i] = sleeper(argv);
		ids[i] = incarnation(pids[i]);
		details_get(details, ids[i], pids[i], now, arena, &d);
	}
	details_serve(details, 100);
	for (uint32_t i = 1; i <= 22; i++) {
		assert_true(details_known(details, ids[0], arena, &d));
		assert_int_equal(details_known(details, ids[1], arena, &d), i <= 20);
		assert_true(details_get(details, ids[0], pids[0], now + i * minute, arena, &d));
		details_get(details, 100000 + i, 1 << 21, now + i * minute, arena, &d);
	}
	/* As long as the past. */
	details_keep(details, 60 * minute);
	details_get(details, ids[1], pids[1], now + 23 * minute, arena, &d);
	details_serve(details, 100);
	for (uint32_t i = 24; i < 84; i++) {
		details_get(details, 100000 + i, 1 << 21, now + i * minute, arena, &d);
		assert_true(details_known(details, ids[1], arena, &d));
	}
	for (int i = 0; i < 2; i++)
		end(pids[i]);
}

/* Many more than the limit: the latest are kept, and nothing breaks. */
TEST(test_many, setup, teardown)
{
	struct process_details d;

	uint64_t now = time_now_ns();

	for (uint32_t i = 1; i < 200000; i++)
		details_get(details, i, 1 << 21, now + i * 100000, arena, &d);
	assert_true(details_wanted(details));
	while (details_serve(details, 1000))
		;
	/* Two sweeps: details not requested between them are gone. */
	now += 60000000000;
	for (int i = 0; i < 3; i++, now += 2000000000)
		assert_false(details_get(details, 0, getpid(), now, arena, &d) && !i);
	details_serve(details, 1);
	assert_true(details_get(details, 0, getpid(), now, arena, &d));
	assert_false(details_get(details, 5, -1, time_now_ns(), arena, &d));
}

#define CHAINED 16384

static uint64_t ancestors_ns(bool chosen)
{
	struct details *d = details_new(maps);
	uint64_t begin_ns, ns = 0;
	struct process_details out;
	pid_t pid = 0;

	for (int i = 0; i < CHAINED; i++) {
		pid = unhash_pid(pid, 2 * CHAINED, 1U << 31, chosen);
		begin_ns = time_thread_ns();
		assert_false(details_get(d, 0, pid, 1, arena, &out));
		ns += time_thread_ns() - begin_ns;
	}
	details_free(d);
	return ns;
}

/* Parents with pids that hash_u64() has in one chain cost as much as others. */
TEST(test_chosen_pids, setup, teardown)
{
	/* Pids that are far apart need more pages. */
	unhash_compare_by("ancestors by pid", ancestors_ns, 10, 10000000);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
