// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ended: a full table costs the same, whatever the names are. The rest is in test_maps.
 * Live: reads a clock.
 */
#include "tests/prelude.h"

#include <stdio.h>
#include <string.h>

#include "symbols/process/maps.c"
#include "tests/unhash.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"

#define BLOCKS 12U
#define SIZE   (BLOCKS * UNHASH_TWIN)
#define TASKS  60000U

static char twins[BLOCKS][2][UNHASH_TWIN + 1];

/* Make texts for the cgroups of ENDED_MAX processes "p" of user 0 that have one hash FNV-1a. */
static void make_twins(void)
{
	uint64_t hash = 0;

	unhash_append(&hash, 'p');
	hash = hash_u64(hash + 1);
	for (uint32_t i = 0; i < BLOCKS; i++)
		unhash_twins(twins[i][0], twins[i][1], &hash, i);
}

/* Return the CPU time of the names of TASKS ended tasks: @chosen such that their hashes are one. */
static uint64_t merge_tasks(bool chosen)
{
	uint64_t start_ns = time_thread_ns();
	struct tasks *tasks = tasks_new(2 * ENDED_MAX, 1);
	struct ended *e = ended_new();
	char cgroup[SIZE + 1];

	for (uint32_t i = 0; i < TASKS; i++) {
		struct task task = {
			.pid = 7, .tid = 7, .comm = TEXT("p"), .process_comm = TEXT("p")
		};
		struct process_details known = { .container = TEXT("") };
		struct ended_ids ids = { .process = 1000 + i, .number = 1000 + i };

		for (uint32_t k = 0; k < BLOCKS; k++)
			memcpy(cgroup + k * UNHASH_TWIN, twins[k][i >> k & 1], UNHASH_TWIN);
		if (!chosen)
			snprintf(cgroup, sizeof(cgroup), "%0*u", (int)SIZE, i % ENDED_MAX);
		known.cgroup = (struct safe_text){ cgroup, SIZE, 0 };
		tasks_grow(tasks);
		assert_int_not_equal(ended_task(e, tasks, &task, &known, &ids), TASK_UNKNOWN);
	}
	assert_in_range(tasks_nr(tasks), ENDED_PLACED_MAX, ENDED_PLACED_MAX + 2);
	ended_free(e);
	tasks_free(tasks);
	return time_thread_ns() - start_ns;
}

TEST(test_chosen_hashes)
{
	make_twins();
	unhash_compare("tasks", merge_tasks);
}

/* New cgroups without end do not take the names. */
TEST(many_cgroups)
{
	struct tasks *tasks = tasks_new(2 * ENDED_MAX, 1);
	struct ended *e = ended_new();
	struct process_details out;
	char cgroup[32], name[16];
	uint32_t nr_unknown = 0;

	for (uint32_t i = 0; i < 2 * ENDED_MAX; i++) {
		struct process_details known = { .container = TEXT("") };
		struct ended_ids ids = { .process = 1000 + i, .number = 1000 + i };
		struct task task = { .pid = 7, .tid = 7 };

		snprintf(cgroup, sizeof(cgroup), "/session-%u.scope", i);
		snprintf(name, sizeof(name), "p%u", i % 900);
		known.cgroup = (struct safe_text){ cgroup, (uint16_t)strlen(cgroup), 0 };
		task.comm = task.process_comm =
			(struct safe_text){ name, (uint16_t)strlen(name), 0 };
		tasks_grow(tasks);
		nr_unknown += ended_task(e, tasks, &task, &known, &ids) == TASK_UNKNOWN;
		if (!i || !ids.process_used)
			continue;
		assert_true(ended_details(e, 1000 + i, &out));
		assert_int_equal(!out.cgroup.size, i >= ENDED_PLACED_MAX);
	}
	assert_int_equal(nr_unknown, 0);
	ended_free(e);
	tasks_free(tasks);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
