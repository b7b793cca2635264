// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * reader_share: facts are found as they were set, the newest ones, also while they are set; the
 * ids of many threads are answered, and stay.
 */
#include "sampler/reader/reader.c"

#include "tests/prelude.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/script/script.h"

static struct reader_share *share;
static struct share_known known;

static int set_up(void **state)
{
	(void)state;
	share = aligned_alloc(CACHELINE, sizeof(*share));
	if (!share)
		return -1;
	memset(share, 0, sizeof(*share));
	memset(&known, 0, sizeof(known));
	known.share = share;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	free(share);
	return 0;
}

/* An interpreter with the number @n in all places that are compared. */
static struct lang_process made(uint32_t n)
{
	return (struct lang_process){
		.kind = LANG_PYTHON, .version = n, .runtime = n, .code_size = n, .reason = "here"
	};
}

static void check(pid_t pid, uint32_t process, uint32_t n, struct share_found *found)
{
	assert_int_equal(share_find(share, pid, found), 1);
	assert_int_equal(found->process, process);
	assert_int_equal(found->info.version, n);
	assert_int_equal(found->info.code_size, n);
	/* An address of the owner is of no use to a reader. */
	assert_null(found->info.reason);
}

TEST(test_processes, .setup_func = set_up, .teardown_func = tear_down)
{
	struct share_found found = { .sequence = 0 };
	struct lang_process info = made(5);

	(void)state;
	assert_int_equal(share_find(share, 100, &found), -ENOENT);
	share_set_process(&known, 100, 1, &info);
	check(100, 1, 5, &found);
	check(100, 1, 5, &found);
	assert_true(share_knows(&known, 100, 1, true));
	assert_false(share_knows(&known, 100, 1, false));
	/* It executes another program, which is no interpreter, then one that is. */
	share_set_process(&known, 100, 2, NULL);
	assert_int_equal(share_find(share, 100, &found), 0);
	info = made(6);
	share_set_process(&known, 100, 3, &info);
	check(100, 3, 6, &found);
	/* More processes than there are entries: the newest ones are there. */
	for (pid_t pid = 1000; pid < 3000; pid++) {
		info = made((uint32_t)pid);
		share_set_process(&known, pid, (uint32_t)pid, &info);
		check(pid, (uint32_t)pid, (uint32_t)pid, &found);
	}
}

TEST(test_events, .setup_func = set_up, .teardown_func = tear_down)
{
	(void)state;
	assert_int_equal(share_event_of(share, 7), SHARE_UNKNOWN);
	for (uint64_t id = 1; id < 500; id++)
		share_set_event(&known, id, SHARE_SAMPLE);
	share_set_event(&known, 7, SHARE_WAIT);
	share_set_event(&known, 8, SHARE_OTHER);
	assert_int_equal(share_event_of(share, 6), SHARE_SAMPLE);
	assert_int_equal(share_event_of(share, 7), SHARE_WAIT);
	assert_int_equal(share_event_of(share, 8), SHARE_OTHER);
	assert_int_equal(share_event_of(share, 500), SHARE_UNKNOWN);
}

/* More events than there are entries: two of one bucket that are used are known at last. */
TEST(test_many_events, .setup_func = set_up, .teardown_func = tear_down)
{
	uint64_t lost = 0;

	(void)state;
	for (uint64_t id = 1; id < 4 * SHARE_EVENTS; id++)
		share_set_event(&known, id, SHARE_OTHER);
	for (int round = 0; round < 3; round++) {
		lost = 0;
		for (uint64_t id = 100000; id < 100200; id++) {
			lost += share_event_of(share, id) == SHARE_UNKNOWN;
			share_set_event(&known, id, SHARE_SAMPLE);
		}
	}
	assert_int_equal(lost, 0);
}

#define ROUNDS 200000U

static void *set_all(void *arg)
{
	for (uint32_t n = 1; n <= ROUNDS; n++) {
		const struct lang_process info = made(n);

		share_set_process(arg, 100, n, &info);
	}
	return NULL;
}

/* A reader looks while the owner writes: what it finds is of one time. */
TEST(test_threads, .setup_func = set_up, .teardown_func = tear_down)
{
	struct share_found found = { .sequence = 0 };
	uint32_t nr = 0, last = 0;
	pthread_t owner;

	(void)state;
	assert_int_equal(pthread_create(&owner, NULL, set_all, &known), 0);
	while (last < ROUNDS) {
		if (share_find(share, 100, &found) != 1)
			continue;
		assert_int_equal(found.info.version, found.process);
		assert_int_equal(found.info.runtime, found.process);
		assert_int_equal(found.info.code_size, found.process);
		assert_true(found.process >= last);
		nr += found.process != last;
		last = found.process;
	}
	pthread_join(owner, NULL);
	print_message("%u of %u states were seen\n", nr, ROUNDS);
}

/* A process that was barred is not read by a reader that knows it, without a sample. */
TEST(test_refuse, .setup_func = set_up, .teardown_func = tear_down)
{
	struct share_found found = { .sequence = 0 };
	struct lang_process info = made(5);

	(void)state;
	share_set_process(&known, 100, 1, &info);
	share_set_process(&known, 101, 2, &info);
	check(100, 1, 5, &found);
	share_refuse(&known, 1);
	share_refuse(&known, 3);
	assert_int_equal(share_find(share, 100, &found), 0);
	check(101, 2, 5, &found);
	assert_true(share_knows(&known, 100, 1, false));
}

/* Threads of a large pool keep their answers: no question is put twice. */
TEST(test_inner, .setup_func = set_up, .teardown_func = tear_down)
{
	const pid_t pid = getpid(), tid = (pid_t)syscall(SYS_gettid);
	uint32_t nr;

	(void)state;
	assert_int_equal(share_inner(share, pid, tid, 5), -1);
	assert_int_equal(share_inner(share, pid, tid, 5), -1);
	assert_int_equal(atomic_load(&share->nr_questions), 1);
	assert_true(share_answer(share));
	assert_true(share_inner(share, pid, tid, 5) > 0);
	/* The id may be another one's in the next incarnation. */
	assert_int_equal(share_inner(share, pid, tid, 6), -1);
	for (uint32_t i = 1; i <= 200; i++)
		assert_int_equal(share_inner(share, pid, tid, 10 + i), -1);
	/* Some at a time. */
	assert_false(share_answer(share));
	for (int i = 0; i < 5; i++)
		share_answer(share);
	assert_true(share_answer(share));
	nr = atomic_load(&share->nr_questions);
	for (int round = 0; round < 3; round++)
		for (uint32_t i = 1; i <= 200; i++)
			assert_int_equal(share_inner(share, pid, tid, 10 + i), tid);
	assert_int_equal(atomic_load(&share->nr_questions), nr);
}

/* A status that cannot be read is no answer for good: the next sample puts the question again. */
TEST(test_inner_again, .setup_func = set_up, .teardown_func = tear_down)
{
	const pid_t pid = getpid(), gone = (1 << 22) - 1;

	(void)state;
	for (uint32_t i = 1; i <= 3; i++) {
		assert_int_equal(share_inner(share, pid, gone, 5), -1);
		assert_int_equal(atomic_load(&share->nr_questions), i);
		assert_true(share_answer(share));
	}
}

/* Return how many addresses the reader finds for a thread. */
static uint32_t nr_far(pid_t pid, pid_t tid)
{
	const struct share_far *far = &share->far[share_far_at(tid)];
	uint32_t nr = 0;

	for (uint32_t i = 0; i < LANG_FAR_MAX; i++)
		nr += far->thread == share_far_thread(pid, tid) && far->at[i];
	return nr;
}

/*
 * All addresses that were wanted of a thread are kept, nearly the same ones once, and the newest
 * if there are many; none of another incarnation of the process.
 */
TEST(test_far, .setup_func = set_up, .teardown_func = tear_down)
{
	static struct langreader_shared shared;
	struct langreader r = {
		.share = share, .known = known, .shared = &shared, .copies_cpu = -1
	};
	const uint64_t sp = 0x7ffc00000000;

	assert_false(langreader_reads_far(&r, 5, 6, 70, 0));
	assert_true(langreader_reads_far(&r, 5, 6, 70, sp));
	assert_true(langreader_reads_far(&r, 5, 6, 70, sp + 0x84180));
	assert_true(langreader_reads_far(&r, 5, 6, 70, LANG_FAR_BELOW));
	assert_int_equal(nr_far(5, 6), 3);
	assert_true(langreader_reads_far(&r, 5, 6, 70, sp + 64));
	assert_true(langreader_reads_far(&r, 5, 6, 70, sp + 0x84180 - 64));
	assert_true(langreader_reads_far(&r, 5, 6, 70, LANG_FAR_BELOW));
	assert_true(langreader_reads_far(&r, 5, 6, 70, 0));
	assert_int_equal(nr_far(5, 6), 3);
	assert_int_equal(share->far[share_far_at(6)].at[1], sp + 0x84180);
	for (uint32_t i = 0; i < LANG_FAR_MAX; i++)
		langreader_reads_far(&r, 5, 6, 70, sp + 0x100000 * (i + 1));
	assert_int_equal(nr_far(5, 6), LANG_FAR_MAX);
	assert_int_equal(share->far[share_far_at(6)].at[1], sp + 0x100000 * (LANG_FAR_MAX - 1));
	assert_false(langreader_reads_far(&r, 5, 6, 71, 0));
	assert_true(langreader_reads_far(&r, 5, 6, 71, sp));
	assert_int_equal(nr_far(5, 6), 1);
}

/*
 * Beyond its copy the stack of a thread is read until many samples in a row end within it; the
 * copier learns of each change.
 */
TEST(test_far_ends, .setup_func = set_up, .teardown_func = tear_down)
{
	static struct langreader_shared shared;
	struct langreader r = {
		.share = share, .known = known, .shared = &shared, .copies_cpu = -1
	};
	const uint64_t sp = 0x7ffc00000000;

	assert_false(langreader_reads_far(&r, 5, 6, 70, LANGREADER_FAR_UNUSED));
	assert_true(langreader_reads_far(&r, 5, 6, 70, sp));
	assert_int_equal(share->nr_changes, 1);
	for (uint32_t i = 1; i < FAR_UNUSED_MAX; i++)
		assert_true(langreader_reads_far(&r, 5, 6, 70, LANGREADER_FAR_UNUSED));
	assert_true(langreader_reads_far(&r, 5, 6, 70, LANGREADER_FAR_USED));
	for (uint32_t i = 1; i < FAR_UNUSED_MAX; i++)
		assert_true(langreader_reads_far(&r, 5, 6, 70, LANGREADER_FAR_UNUSED));
	assert_int_equal(nr_far(5, 6), 1);
	assert_int_equal(share->nr_changes, 1);
	langreader_reads_far(&r, 5, 6, 70, LANGREADER_FAR_UNUSED);
	assert_int_equal(nr_far(5, 6), 0);
	assert_int_equal(share->nr_changes, 2);
	assert_false(langreader_reads_far(&r, 5, 6, 70, 0));
	/* The same address again. */
	assert_true(langreader_reads_far(&r, 5, 6, 70, sp));
	assert_int_equal(nr_far(5, 6), 1);
	assert_int_equal(share->nr_changes, 3);
}

/*
 * The copier's table has the processes that are to be read, and the ones with a thread that is read
 * beyond its copy, after each change; two in one place are both woken for.
 */
TEST(test_copier_facts, .setup_func = set_up, .teardown_func = tear_down)
{
	static struct langreader_shared shared;
	struct langreader r = {
		.share = share, .known = known, .shared = &shared, .copies_cpu = -1
	};
	struct copier_area *area = xcalloc(1, sizeof(*area));
	struct copies c = { .area = area };
	struct lang_process p = made(1);
	const uint32_t *at = area->processes;

	copies_read_facts(&c, share);
	assert_int_equal(at[10], 0);
	share_set_process(&r.known, 10, 70, &p);
	share_set_process(&r.known, 11, 71, NULL);
	share_set_process(&r.known, 12, 72, &p);
	share_set_process(&r.known, 12 + (int)COPIES_PROCESSES, 73, &p);
	langreader_reads_far(&r, 5, 6, 70, 0x7ffc00000000);
	assert_int_equal(at[10], 0);
	copies_read_facts(&c, share);
	assert_int_equal(at[10], 10 << 1 | 1);
	assert_int_equal(at[11], 0);
	assert_int_equal(at[12], COPIES_READ_ALL);
	assert_int_equal(at[5], 5 << 1 | 1);
	/* A process that is found not to be read does not hide one that is. */
	copies_set_process(&c, 11, false);
	copies_set_process(&c, 10 + (int)COPIES_PROCESSES, false);
	copies_set_process(&c, 12, false);
	assert_int_equal(at[11], 11 << 1);
	assert_int_equal(at[10], 10 << 1 | 1);
	assert_int_equal(at[12], COPIES_READ_ALL);
	/* They end: so does the table's entry, at the next change. */
	share_set_process(&r.known, 10, 80, NULL);
	share_set_process(&r.known, 12, 82, NULL);
	share->any_new = true;
	copies_read_facts(&c, share);
	assert_int_equal(at[10], 0);
	assert_int_equal(at[11], 0);
	assert_int_equal(at[12], (12 + COPIES_PROCESSES) << 1 | 1);
	assert_int_equal(area->any_new, 1);
	free(area);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
