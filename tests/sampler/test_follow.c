// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The search for new tasks of a target: which have events already, and that it takes no longer for
 * each of many tasks than for each of few.
 */
#include "sampler/follow.h"

#include "tests/prelude.h"

#define MANY  50000u
#define FIRST 1000000 /* tids; the first thread of 100 is their process */

static uint32_t nr_read;

static pid_t process_of(pid_t tid)
{
	nr_read++;
	return tid - tid % 100;
}

static bool has_inherited(const struct follow_search *f, pid_t pid)
{
	return pid == 77700;
}

TEST(test_fresh)
{
	/* Listed; of a listed process; open; of an open process; inherited; new. */
	static const pid_t tids[] = { 101, 205, 301, 406, 77701, 503 };
	struct follow_search f = { .process_of = process_of, .has_inherited = has_inherited };
	pid_t fresh[ARRAY_SIZE(tids)];

	task_set_init(&f.listed, (pid_t[]){ 200, 101 }, 2);
	task_set_init(&f.opened, (pid_t[]){ 400, 301, -1 }, 3);
	nr_read = 0;
	assert_int_equal(follow_search(&f, tids, ARRAY_SIZE(tids), fresh), 1);
	assert_int_equal(fresh[0], 503);
	/* Only of tasks that are not known. */
	assert_int_equal(nr_read, 4);
	task_set_fini(&f.listed);
	task_set_fini(&f.opened);
}

/* Search twice, as after the start and a second later. Return the CPU time. */
static uint64_t rounds_ns(uint32_t nr)
{
	struct follow_search f = { .process_of = process_of, .has_inherited = has_inherited };
	pid_t *tids = xcalloc(nr, sizeof(*tids)), *fresh = xcalloc(nr, sizeof(*fresh));
	uint64_t begin_ns;

	for (uint32_t i = 0; i < nr; i++)
		tids[i] = (pid_t)(FIRST + nr - i);
	begin_ns = time_thread_ns();
	nr_read = 0;
	for (uint32_t round = 0; round < 2; round++) {
		task_set_init(&f.listed, tids, round ? nr : 0);
		task_set_init(&f.opened, tids, round ? nr : 0);
		assert_int_equal(follow_search(&f, tids, nr, fresh), round ? 0 : nr);
		task_set_fini(&f.listed);
		task_set_fini(&f.opened);
	}
	assert_int_equal(nr_read, nr);
	begin_ns = time_thread_ns() - begin_ns;
	free(tids);
	free(fresh);
	return begin_ns;
}

/* Ten times the tasks: ten times the time, not a hundred. */
TEST(test_many)
{
	uint64_t few_ns = rounds_ns(MANY / 10), many_ns = rounds_ns(MANY);

	print_message("%u us, and %u us\n", (unsigned int)(few_ns / 1000),
		      (unsigned int)(many_ns / 1000));
	assert_in_range(many_ns, 0, 30 * few_ns + 10000000);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
