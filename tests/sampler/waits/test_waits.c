// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Switches become counts: exact sums, weights by length and period, order across CPUs.
 * Live: waits for threads or processes.
 */
#include "sampler/waits/waits.c"

#include "tests/prelude.h"

#include <urcu-qsbr.h>

#include "symbols/base/base.h"
#include "tests/unhash.h"
#include "symbols/image/image.h"
#include "symbols/process/process.h"
#include "symbols/name/name.h"
#include "sampler/ring/ring.h"
#include "sampler/event/event.h"
#include "sampler/count/count.h"
#include "sampler/profile/profile.h"

#define SLOT	 1u
#define SEED	 815u
#define SECOND	 1000000000ULL
#define SLICE_NS COUNTS_SLICE_NS

struct world {
	struct objects *objects;
	struct maps *maps;
	struct stacks *stacks;
	struct counts *counts;
	uint32_t kinds[WAIT_NR];
	struct waits_tables t;
	struct waits *waits;
	struct profile_waits account;
	struct count *list;
	uint32_t nr;
};

/* Places are numbers here: kind k is place 1000 + k. */
static void open_world(struct world *w, uint32_t nr_cpus)
{
	memset(w, 0, sizeof(*w));
	assert_int_equal(objects_new(&w->objects), 0);
	assert_int_equal(maps_new(&w->maps, w->objects, 4096), 0);
	maps_no_proc(w->maps);
	assert_int_equal(stacks_new(&w->stacks, 4096, 1 << 20), 0);
	assert_int_equal(counts_new(&w->counts, 1 << 12, 1 << 16), 0);
	for (uint32_t i = 0; i < WAIT_NR; i++)
		w->kinds[i] = 1000 + i;
	for (pid_t pid = 3; pid < 20; pid++)
		maps_on_comm(w->maps, pid, pid, "task", 5, true, 1);
	maps_publish(w->maps, 10, 1);
	w->t = (struct waits_tables){ .maps = w->maps,
				      .tasks = maps_tasks(w->maps),
				      .stacks = w->stacks,
				      .counts = w->counts,
				      .kinds = w->kinds,
				      .recorded = true };
	w->waits = waits_new(nr_cpus, 0);
	assert_non_null(w->waits);
}

static void close_world(struct world *w)
{
	free(w->list);
	waits_free(w->waits);
	counts_free(w->counts);
	stacks_free(w->stacks);
	maps_free(w->maps);
	objects_free(w->objects);
}

static void put(struct world *w, uint32_t cpu, pid_t tid, enum task_step step, uint64_t time_ns,
		uint32_t stack, uint32_t period)
{
	const struct switch_note note = { .time_ns = time_ns,
					  .tid = tid,
					  .pid = tid,
					  .stack = stack,
					  .period = period,
					  .step = step };

	assert_true(switch_queue_put(waits_queue(w->waits, cpu), &note));
}

/* The stack of a wait in function @place. */
static uint32_t stack_in(struct world *w, uint32_t place)
{
	const uint32_t places[] = { w->kinds[WAIT_ASLEEP], place };

	return stacks_intern(w->stacks, places, 2);
}

static void end_tick(struct world *w, uint64_t now_ns)
{
	for (uint32_t i = 0; waits_queue(w->waits, i); i++)
		switch_queue_done(waits_queue(w->waits, i), now_ns);
	waits_count(w->waits, &w->t, SLOT, now_ns, &w->account);
	free(w->list);
	assert_int_equal(counts_swap(w->counts, &w->list, &w->nr), 0);
}

/* Sum the counts of @event with a stack of @kind and @place (0: any). */
static uint64_t sum(const struct world *w, uint32_t event, enum wait_kind kind, uint32_t place)
{
	uint64_t ns = 0;

	for (uint32_t i = 0; i < w->nr; i++) {
		struct stacks_room room;
		uint32_t nr;
		const uint32_t *places = stacks_at(w->stacks, w->list[i].stack, &room, &nr);

		assert_non_null(places);
		if (w->list[i].event != event || (kind && places[0] != 1000u + kind) ||
		    (place && (nr < 2 || places[1] != place)))
			continue;
		ns += w->list[i].weight;
	}
	return ns;
}

/* A wait that moves from CPU to CPU, and one that goes on past the tick. */
TEST(test_exact)
{
	struct world w;
	uint32_t stack;

	open_world(&w, 2);
	stack = stack_in(&w, 7);
	put(&w, 1, 3, STEP_IN, 1300, STACK_NONE, 0);
	put(&w, 0, 3, STEP_IN, 1000, STACK_NONE, 0);
	put(&w, 0, 3, STEP_OUT, 1100, stack, 1);
	put(&w, 1, 3, STEP_OUT, 1700, stack, 1);
	end_tick(&w, 2000);
	assert_int_equal(sum(&w, PROFILE_RUNNING, WAIT_RUNNING, 0), 100 + 400);
	assert_int_equal(sum(&w, SLOT, WAIT_ASLEEP, 7), 200 + 300);
	assert_int_equal(w.account.switched, 2);
	assert_int_equal(w.account.with_stack, 2);
	assert_int_equal(w.account.odd + w.account.late + w.account.lost, 0);
	end_tick(&w, 2500);
	assert_int_equal(sum(&w, SLOT, WAIT_ASLEEP, 7), 500);
	assert_int_equal(sum(&w, PROFILE_RUNNING, 0, 0), 0);
	close_world(&w);
}

static const struct waits_barred none_barred = { NULL, 0 };

/* Use a look at @tid that saw @kind; WAIT_NO: it did not sleep. */
static void slept(struct world *w, pid_t tid, enum waits_look look, enum wait_kind kind,
		  uint64_t time_ns)
{
	waits_slept(w->waits, &w->t, &(struct waits_sleeper){ tid, tid, look },
		    kind ? stacks_intern(w->stacks, &w->kinds[kind], 1) : STACK_NONE, time_ns);
}

/* Find a task that waits, and see the kind. */
static void find_asleep(struct world *w, pid_t tid, enum wait_kind kind, uint64_t time_ns)
{
	waits_found(w->waits, tid, tid, STEP_ASLEEP, time_ns);
	slept(w, tid, LOOK_KIND, kind, time_ns);
}

/* No wait is longer than its tick, also if the notes at the begin of the tick are taken late. */
TEST(test_discard)
{
	struct world w;
	uint32_t stack;

	open_world(&w, 1);
	stack = stack_in(&w, 7);
	find_asleep(&w, 4, WAIT_SLEEP, 900);
	waits_found(w.waits, 5, 5, STEP_FOUND, 900);
	put(&w, 0, 3, STEP_IN, 1000, STACK_NONE, 0);
	put(&w, 0, 3, STEP_OUT, 1100, stack, 1);
	put(&w, 0, 3, STEP_IN, 1500, STACK_NONE, 0);
	put(&w, 0, 3, STEP_OUT, 1600, stack, 1);
	/* All is read up to 1200, and the tick begins at 2000. */
	switch_queue_done(waits_queue(w.waits, 0), 1200);
	assert_int_equal(waits_take(w.waits, &w.t, 2000), 1200);
	waits_discard(w.waits, 2000);
	put(&w, 0, 5, STEP_OUT, 2100, stack, 1);
	end_tick(&w, 3000);
	assert_int_equal(sum(&w, SLOT, WAIT_ASLEEP, 7), 1000 + 900);
	assert_int_equal(sum(&w, SLOT, WAIT_SLEEP, 0), 1000);
	assert_int_equal(sum(&w, PROFILE_RUNNING, WAIT_RUNNING, 0), 100);
	close_world(&w);
}

static uint64_t fake_base_ns;

/* Of each second 1 part in 4 on a CPU, 1 part in 4 in a run queue; none for task 4. */
static bool fake_times(pid_t pid, pid_t tid, struct waits_times *out)
{
	uint64_t ns = time_now_ns() - fake_base_ns;

	*out = (struct waits_times){ ns / 4, ns / 4 };
	if (tid == 4)
		*out = (struct waits_times){ 0, 0 };
	return tid != 6;
}

/* How long the times were read: two tasks differ by as much. */
static uint64_t unsure_ns;

static void read_times(struct world *w)
{
	uint64_t begin_ns = time_now_ns();

	waits_read_times(w->waits, fake_times, 10);
	unsure_ns += time_now_ns() - begin_ns;
}

static void check_about(uint64_t ns, uint64_t expected)
{
	assert_true(ns + 1000 + unsure_ns >= expected && ns <= expected + 1000 + unsure_ns);
}

/* Read the times, and return the sum of all counts of a tick. */
static uint64_t end_estimated(struct world *w)
{
	read_times(w);
	end_tick(w, time_now_ns());
	return sum(w, PROFILE_RUNNING, 0, 0) + sum(w, SLOT, 0, 0);
}

/*
 * Times of the kernel, shared out to the stacks of the switches in a window: here 1 of 3 ns in
 * function 7, the rest in 8. A task without switches has its last stack.
 */
TEST(test_estimated)
{
	struct world w;
	uint64_t all;

	open_world(&w, 1);
	fake_base_ns = time_now_ns();
	put(&w, 0, 4, STEP_OUT, fake_base_ns, stack_in(&w, 9), 1);
	end_tick(&w, fake_base_ns + 10);
	put(&w, 0, 3, STEP_OUT, fake_base_ns + 20, stack_in(&w, 7), 1);
	switch_queue_done(waits_queue(w.waits, 0), fake_base_ns + 20);
	waits_estimate(w.waits, &w.t, true, fake_base_ns + 20);
	assert_true(w.waits->estimated);
	unsure_ns = 0;
	read_times(&w);
	end_tick(&w, fake_base_ns + 20);
	put(&w, 0, 3, STEP_OUT, fake_base_ns + 100, stack_in(&w, 7), 1);
	put(&w, 0, 3, STEP_IN, fake_base_ns + 200, STACK_NONE, 0);
	put(&w, 0, 3, STEP_OUT, fake_base_ns + 400, stack_in(&w, 8), 1);
	switch_queue_done(waits_queue(w.waits, 0), fake_base_ns + 600);
	waits_interrupt(w.waits, &w.t, true, fake_base_ns + 600);
	while (time_now_ns() < fake_base_ns + 2000000)
		;
	all = end_estimated(&w);
	assert_int_equal(w.account.odd + w.account.late + w.account.lost, 0);
	check_about(sum(&w, PROFILE_RUNNING, 0, 0), sum(&w, SLOT, WAIT_QUEUE, 0));
	check_about(4 * sum(&w, PROFILE_RUNNING, 0, 0), (all + 3) / 2);
	check_about(2 * sum(&w, SLOT, WAIT_ASLEEP, 7), sum(&w, SLOT, WAIT_ASLEEP, 8));
	check_about(sum(&w, SLOT, WAIT_ASLEEP, 9), all / 2);
	/* Off again: all are new, times come from the switches. */
	waits_estimate(w.waits, &w.t, false, time_now_ns());
	end_tick(&w, time_now_ns());
	assert_int_equal(sum(&w, SLOT, 0, 0) + sum(&w, PROFILE_RUNNING, 0, 0), 0);
	close_world(&w);
}

/* Tasks without a stack have the kind that they waited in after a tick without one. */
TEST(test_estimated_kind)
{
	struct waits_sleeper list[4];
	struct world w;

	open_world(&w, 1);
	fake_base_ns = time_now_ns();
	waits_estimate(w.waits, &w.t, true, fake_base_ns);
	waits_interrupt(w.waits, &w.t, true, fake_base_ns);
	put(&w, 0, 3, STEP_BORN, fake_base_ns, STACK_NONE, 0);
	put(&w, 0, 5, STEP_BORN, fake_base_ns, STACK_NONE, 0);
	switch_queue_done(waits_queue(w.waits, 0), fake_base_ns + 1);
	waits_take(w.waits, &w.t, fake_base_ns + 1);
	for (int tick = 0; tick < 2; tick++) {
		uint64_t end_ns = time_now_ns() + 1000000;

		while (time_now_ns() < end_ns)
			;
		waits_read_times(w.waits, fake_times, 10);
		end_tick(&w, time_now_ns());
		assert_true(sum(&w, SLOT, tick ? WAIT_PIPE : WAIT_OTHER, 0) >= 400000);
		assert_true(sum(&w, SLOT, WAIT_OTHER, 0) >= 400000);
		/* The kind of one of them is known, from the second tick on. */
		assert_true(waits_wants_kinds(w.waits));
		assert_int_equal(waits_sleepers(w.waits, LOOK_KIND, &none_barred, list, 4),
				 2 - tick);
		slept(&w, 3, LOOK_KIND, WAIT_PIPE, 0);
		slept(&w, 5, LOOK_KIND, WAIT_NO, 0);
		assert_int_equal(waits_sleepers(w.waits, LOOK_KIND, &none_barred, list, 4), 0);
		assert_false(waits_wants_kinds(w.waits));
	}
	close_world(&w);
}

/* A task that is born and ends while times are estimated: by the sums of its switches. */
TEST(test_estimated_life)
{
	struct world w;

	open_world(&w, 1);
	waits_estimate(w.waits, &w.t, true, 1000);
	put(&w, 0, 6, STEP_BORN, 1000, STACK_NONE, 0);
	put(&w, 0, 6, STEP_IN, 1100, STACK_NONE, 0);
	put(&w, 0, 6, STEP_OUT, 1400, stack_in(&w, 7), 1);
	switch_queue_done(waits_queue(w.waits, 0), 1500);
	waits_interrupt(w.waits, &w.t, true, 1500);
	put(&w, 0, 6, STEP_EXIT, 6000, STACK_NONE, 0);
	/* Nothing is known of this one but its life. */
	put(&w, 0, 5, STEP_BORN, 2000, STACK_NONE, 0);
	put(&w, 0, 5, STEP_EXIT, 2300, STACK_NONE, 0);
	waits_read_times(w.waits, fake_times, 10);
	end_tick(&w, 7000);
	assert_int_equal(sum(&w, PROFILE_RUNNING, 0, 0), 3000 + 300);
	assert_int_equal(sum(&w, SLOT, WAIT_QUEUE, 0), 1000);
	assert_int_equal(sum(&w, SLOT, WAIT_ASLEEP, 7), 1000);
	close_world(&w);
}

/* A thread that calls exec has the id of the first one, which has ended; the one it had is gone. */
TEST(test_exec_of_a_thread)
{
	const struct switch_note exec = {
		.time_ns = 1500, .pid = 3, .tid = 3, .stack = STACK_NONE, .step = STEP_EXEC
	};
	struct switch_note thread = {
		.time_ns = 1100, .pid = 3, .tid = 30, .stack = STACK_NONE, .step = STEP_IN
	};
	struct world w;

	open_world(&w, 1);
	put(&w, 0, 3, STEP_IN, 1000, STACK_NONE, 0);
	put(&w, 0, 3, STEP_OUT, 1050, STACK_NONE, 0);
	switch_queue_put(waits_queue(w.waits, 0), &thread);
	put(&w, 0, 3, STEP_EXIT, 1400, STACK_NONE, 0);
	put(&w, 0, 3, STEP_OUT, 1410, STACK_NONE, 0);
	switch_queue_put(waits_queue(w.waits, 0), &exec);
	put(&w, 0, 3, STEP_OUT, 1800, stack_in(&w, 7), 1);
	end_tick(&w, 2000);
	assert_int_equal(sum(&w, PROFILE_RUNNING, 0, 0), 50 + 400 + 300);
	assert_int_equal(sum(&w, SLOT, WAIT_ASLEEP, 7), 350 + 200);
	end_tick(&w, 3000);
	assert_int_equal(sum(&w, PROFILE_RUNNING, 0, 0), 0);
	assert_int_equal(sum(&w, SLOT, WAIT_ASLEEP, 7), 1000);
	close_world(&w);
}

/* Take notes without a queue. */
static void step(struct world *w, pid_t pid, pid_t tid, enum task_step step, uint64_t *time_ns)
{
	const struct switch_note note = {
		.time_ns = ++*time_ns, .pid = pid, .tid = tid, .stack = STACK_NONE, .step = step
	};

	assert_int_equal(waits_step(w->waits, &w->t, &note), 0);
}

/* Return the CPU time of 200 execs by threads of @pid that are not the first, after one. */
static uint64_t exec_ns(struct world *w, pid_t pid, uint64_t *time_ns)
{
	uint64_t begin_ns = 0;

	for (uint32_t i = 0; i <= 200; i++) {
		/* The first one ends the threads that there are. */
		begin_ns = i == 1 ? time_thread_ns() : begin_ns;
		step(w, pid, pid, STEP_OUT, time_ns);
		step(w, pid, pid, STEP_EXEC, time_ns);
	}
	return time_thread_ns() - begin_ns;
}

/* An exec costs the same beside many tasks, of other processes or of this one. */
TEST(test_exec_beside_many)
{
	uint64_t time_ns = 1000, few_ns, ns;
	struct world w;

	open_world(&w, 1);
	few_ns = exec_ns(&w, 900000, &time_ns);
	for (pid_t tid = 1000; tid < 61000; tid++) {
		step(&w, tid, tid, STEP_BORN, &time_ns);
		step(&w, tid, tid, STEP_EXIT, &time_ns);
		step(&w, 900000, tid + 100000, STEP_BORN, &time_ns);
		step(&w, 900000, tid + 100000, STEP_EXIT, &time_ns);
	}
	ns = exec_ns(&w, 900000, &time_ns);
	print_message("an exec: %u and %u ns\n", (unsigned int)few_ns / 200,
		      (unsigned int)ns / 200);
	assert_in_range(ns, 0, 10 * few_ns + 2000000);
	close_world(&w);
}

/* The threads that an exec ends are the ones that the process has then. */
TEST(test_exec_after_changes)
{
	uint64_t time_ns = 1000;
	struct world w;

	open_world(&w, 1);
	for (pid_t tid = 100; tid < 110; tid++)
		step(&w, 3, tid, STEP_IN, &time_ns);
	/* Two threads have ids in another process now, and one began there. */
	step(&w, 4, 105, STEP_EXIT, &time_ns);
	step(&w, 4, 105, STEP_BORN, &time_ns);
	step(&w, 4, 100, STEP_BORN, &time_ns);
	step(&w, 4, 200, STEP_IN, &time_ns);
	step(&w, 3, 200, STEP_IN, &time_ns);
	step(&w, 3, 3, STEP_OUT, &time_ns);
	step(&w, 3, 3, STEP_EXEC, &time_ns);
	end_tick(&w, 2000);
	/* Forgets the tasks that are gone; the others are in new places. */
	end_tick(&w, 100000000000);
	assert_int_equal(w.account.tasks, 3);
	step(&w, 4, 4, STEP_OUT, &time_ns);
	step(&w, 4, 4, STEP_EXEC, &time_ns);
	end_tick(&w, 300000000000);
	end_tick(&w, 500000000000);
	assert_int_equal(w.account.tasks, 2);
	close_world(&w);
}

static void put_sample(struct world *w, uint32_t cpu, pid_t tid, uint64_t time_ns, uint32_t stack)
{
	const struct switch_note note = { .time_ns = time_ns,
					  .tid = tid,
					  .task = 5,
					  .stack = stack,
					  .period = 1000,
					  .step = STEP_SAMPLE };

	assert_true(switch_queue_put(waits_queue(w->waits, cpu), &note));
}

/* A sample weighs less the more tasks run at its time, on any CPU. */
TEST(test_latency)
{
	struct world w;

	open_world(&w, 2);
	put(&w, 0, 3, STEP_IN, 1000, STACK_NONE, 0);
	put(&w, 1, 4, STEP_IN, 1200, STACK_NONE, 0);
	put_sample(&w, 0, 3, 1100, stack_in(&w, 7)); /* alone */
	put_sample(&w, 0, 3, 1300, stack_in(&w, 8)); /* two */
	put_sample(&w, 1, 4, 1400, stack_in(&w, 8));
	put(&w, 0, 3, STEP_OUT, 1500, STACK_NONE, 0);
	put_sample(&w, 1, 4, 1600, stack_in(&w, 9)); /* alone again */
	put(&w, 1, 4, STEP_EXIT, 1700, STACK_NONE, 0);
	put_sample(&w, 0, 5, 1800, stack_in(&w, 10)); /* not seen before */
	end_tick(&w, 2000);
	assert_int_equal(sum(&w, PROFILE_LATENCY, 0, 7), 1000);
	assert_int_equal(sum(&w, PROFILE_LATENCY, 0, 8), 500 + 500);
	assert_int_equal(sum(&w, PROFILE_LATENCY, 0, 9), 1000);
	assert_int_equal(sum(&w, PROFILE_LATENCY, 0, 10), 1000);
	assert_int_equal(w.account.queue_ns, 0);
	close_world(&w);
}

/* Its weight is in the slice of its time, and not in that of the tick's end. */
TEST(test_latency_slices)
{
	const uint64_t begin = 1000 * SECOND;
	struct world w;

	open_world(&w, 1);
	put(&w, 0, 3, STEP_IN, begin, STACK_NONE, 0);
	for (uint32_t i = 0; i < 5; i++)
		put_sample(&w, 0, 3, begin + i * SECOND / 5 + 1, stack_in(&w, 7));
	put(&w, 0, 3, STEP_EXIT, begin + SECOND, STACK_NONE, 0);
	end_tick(&w, begin + 9 * SECOND);
	for (uint32_t i = 0; i < 5; i++) {
		uint64_t ns = 0;

		for (uint32_t k = 0; k < w.nr; k++)
			ns += w.list[k].event == PROFILE_LATENCY &&
					      w.list[k].slice ==
						      tables_slice(begin + i * SECOND / 5)
				      ? w.list[k].weight
				      : 0;
		assert_int_equal(ns, 1000);
	}
	close_world(&w);
}

/* Without stacks: kinds seen at regular times share the sleep of the task. */
TEST(test_look)
{
	struct waits_sleeper one;
	struct world w;

	open_world(&w, 1);
	put(&w, 0, 3, STEP_IN, 1000, STACK_NONE, 0);
	put(&w, 0, 3, STEP_OUT, 1100, STACK_NONE, 0);
	put(&w, 0, 4, STEP_IN, 1100, STACK_NONE, 0);
	switch_queue_done(waits_queue(w.waits, 0), 1200);
	waits_take(w.waits, &w.t, 1200);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(waits_sleepers(w.waits, LOOK_NOW, &none_barred, &one, 1), 1);
		assert_int_equal(one.tid, 3);
		slept(&w, one.tid, one.look, i < 3 ? WAIT_LOCK : WAIT_PIPE, 1200);
	}
	end_tick(&w, 1500);
	assert_int_equal(sum(&w, SLOT, WAIT_LOCK, 0), 300);
	assert_int_equal(sum(&w, SLOT, WAIT_PIPE, 0), 100);
	/* Not seen: as at the last look. */
	end_tick(&w, 1600);
	assert_int_equal(sum(&w, SLOT, WAIT_PIPE, 0), 100);
	/* A task that is awake is not looked at. */
	put(&w, 0, 3, STEP_IN, 1600, STACK_NONE, 0);
	switch_queue_done(waits_queue(w.waits, 0), 1650);
	waits_take(w.waits, &w.t, 1650);
	assert_int_equal(waits_sleepers(w.waits, LOOK_NOW, &none_barred, &one, 1), 0);
	end_tick(&w, 1700);
	assert_int_equal(sum(&w, SLOT, 0, 0), 0);
	close_world(&w);
}

/* More tasks than one look has: the next look goes on with the others, and again if it hung. */
TEST(test_look_at_all)
{
	const struct waits_barred barred = { (pid_t[]){ 5 }, 1 };
	struct waits_sleeper one;
	struct world w;

	open_world(&w, 1);
	waits_found(w.waits, 3, 3, STEP_ASLEEP, 1000);
	waits_found(w.waits, 4, 4, STEP_ASLEEP, 1000);
	waits_found(w.waits, 5, 5, STEP_ASLEEP, 1000);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(waits_sleepers(w.waits, LOOK_KIND, &barred, &one, 1), 1);
		assert_int_equal(one.tid, 3 + i % 2);
		if (i >= 2)
			slept(&w, one.tid, LOOK_KIND, WAIT_PIPE, 1100);
	}
	assert_int_equal(waits_sleepers(w.waits, LOOK_KIND, &barred, &one, 1), 0);
	end_tick(&w, 1500);
	assert_int_equal(sum(&w, SLOT, WAIT_PIPE, 0), 2 * 500);
	assert_int_equal(sum(&w, SLOT, WAIT_OTHER, 0), 500);
	close_world(&w);
}

#define CHAINED 8192

static uint64_t tasks_ns(bool chosen)
{
	uint64_t begin_ns, ns = 0;
	struct world w;
	pid_t tid = 0;

	open_world(&w, 1);
	for (int i = 0; i < CHAINED; i++) {
		tid = unhash_pid(tid, 2 * CHAINED, 0, chosen);
		begin_ns = time_thread_ns();
		waits_found(w.waits, tid, tid, STEP_FOUND, 1000);
		ns += time_thread_ns() - begin_ns;
	}
	close_world(&w);
	return ns;
}

/* Threads that hash_u64() has in one chain cost as much as others. */
TEST(test_chosen_tids)
{
	unhash_compare_pids("tasks by tid and process", tasks_ns);
}

static enum task_step actual; /* of task 3; others run */

static enum task_step state_of(pid_t pid, pid_t tid)
{
	return tid == 3 ? actual : STEP_FOUND;
}

/* Switches of a task were lost: it has none for a second, and /proc has another state twice. */
TEST(test_check)
{
	const uint64_t s = 1000000000;
	struct world w;

	open_world(&w, 1);
	put(&w, 0, 3, STEP_IN, 1, STACK_NONE, 0);
	put(&w, 0, 3, STEP_OUT, 2, STACK_NONE, 0);
	put(&w, 0, 3, STEP_WOKEN, s, STACK_NONE, 0);
	put(&w, 0, 4, STEP_IN, s, STACK_NONE, 0);
	end_tick(&w, 2 * s);
	actual = STEP_ASLEEP;
	assert_int_equal(waits_check(w.waits, state_of, 9, s + 1), 0);
	assert_int_equal(waits_check(w.waits, state_of, 9, 2 * s), 0);
	/* A switch in between: the doubt is over. */
	put(&w, 0, 3, STEP_PREEMPTED, 2 * s, STACK_NONE, 0);
	end_tick(&w, 3 * s);
	assert_int_equal(waits_check(w.waits, state_of, 9, 3 * s), 0);
	actual = STEP_FOUND;
	assert_int_equal(waits_check(w.waits, state_of, 9, 3 * s), 0);
	actual = STEP_ASLEEP;
	assert_int_equal(sum(&w, SLOT, WAIT_QUEUE, 0), s);
	assert_int_equal(waits_check(w.waits, state_of, 9, 3 * s), 1);
	slept(&w, 3, LOOK_KIND, WAIT_SLEEP, 3 * s);
	/* Of a task without records of switches, wake-ups say nothing. */
	put(&w, 0, 3, STEP_WOKEN, 3 * s + s / 2, STACK_NONE, 0);
	end_tick(&w, 4 * s);
	assert_int_equal(sum(&w, SLOT, WAIT_QUEUE, 0), 0);
	assert_int_equal(sum(&w, SLOT, WAIT_LONG, w.kinds[WAIT_SLEEP]), s);
	assert_int_equal(sum(&w, PROFILE_RUNNING, WAIT_RUNNING, 0), s);
	/* Gone while it was on a CPU. */
	put(&w, 0, 3, STEP_IN, 4 * s, STACK_NONE, 0);
	end_tick(&w, 5 * s);
	actual = STEP_EXIT;
	assert_int_equal(waits_check(w.waits, state_of, 9, 5 * s), 0);
	assert_int_equal(waits_check(w.waits, state_of, 9, 5 * s), 1);
	end_tick(&w, 6 * s);
	assert_int_equal(sum(&w, PROFILE_RUNNING, WAIT_RUNNING, 0), s);
	assert_int_equal(sum(&w, SLOT, 0, 0), 0);
	close_world(&w);
}

/* Preempted, and woken but not yet in: in the run queue, with the stack it was taken with. */
TEST(test_run_queue)
{
	struct world w;

	open_world(&w, 1);
	put(&w, 0, 3, STEP_IN, 1000, STACK_NONE, 0);
	put(&w, 0, 3, STEP_PREEMPTED, 1100, stack_in(&w, 8), 1);
	put(&w, 0, 3, STEP_IN, 1150, STACK_NONE, 0);
	put(&w, 0, 3, STEP_OUT, 1200, stack_in(&w, 9), 1);
	put(&w, 0, 3, STEP_WOKEN, 1900, STACK_NONE, 0);
	put(&w, 0, 3, STEP_IN, 1910, STACK_NONE, 0);
	end_tick(&w, 2000);
	assert_int_equal(sum(&w, SLOT, WAIT_QUEUE, 8), 50);
	assert_int_equal(sum(&w, SLOT, WAIT_QUEUE, 9), 10);
	assert_int_equal(w.account.queue_ns, 50 + 10);
	assert_int_equal(sum(&w, SLOT, WAIT_ASLEEP, 9), 700);
	assert_int_equal(sum(&w, PROFILE_RUNNING, 0, 0), 100 + 50 + 90);
	/* A task of others, which is woken by one of the target. */
	put(&w, 0, 4, STEP_WOKEN, 2100, STACK_NONE, 0);
	end_tick(&w, 2200);
	assert_int_equal(w.account.tasks, 1);
	assert_int_equal(sum(&w, SLOT, 0, 0), 0);
	close_world(&w);
}

/* One of @period waits has a stack: shares by length are right, and the sum is exact. */
TEST(test_weights)
{
	struct world w;
	uint64_t time = 1000;
	double share;

	open_world(&w, 1);
	put(&w, 0, 3, STEP_IN, time, STACK_NONE, 0);
	for (int i = 0; i < 3000; i++) {
		/* Two kinds of waits, 300 and 100 ns, in turn; every 7th has its stack. */
		bool sampled = i % 7 == 3;

		put(&w, 0, 3, STEP_OUT, time += 10,
		    sampled ? stack_in(&w, i % 2 ? 7 : 8) : STACK_NONE, 7);
		put(&w, 0, 3, STEP_IN, time += i % 2 ? 300 : 100, STACK_NONE, 0);
	}
	end_tick(&w, time);
	assert_int_equal(sum(&w, SLOT, 0, 0), 1500 * 300 + 1500 * 100);
	share = (double)sum(&w, SLOT, 0, 7) / (double)sum(&w, SLOT, 0, 0);
	assert_true(share > 0.74 && share < 0.76);
	assert_int_equal(w.account.switched, 3000);
	assert_int_equal(w.account.with_stack + w.account.without_stack, 3000);
	/* A tick with no stack at all: as the last one. */
	put(&w, 0, 3, STEP_OUT, time + 10, STACK_NONE, 0);
	end_tick(&w, time + 1010);
	assert_int_equal(sum(&w, SLOT, WAIT_ASLEEP, 7), 1000);
	close_world(&w);
}

/* A task that slept before: its kind is known, its stack is not, until its switch is read late. */
TEST(test_found)
{
	struct world w;

	open_world(&w, 1);
	find_asleep(&w, 3, WAIT_POLL, 1000);
	find_asleep(&w, 4, WAIT_POLL, 1000);
	put(&w, 0, 4, STEP_OUT, 990, stack_in(&w, 7), 1);
	end_tick(&w, 1500);
	assert_int_equal(sum(&w, SLOT, WAIT_POLL, 0), 500);
	assert_int_equal(sum(&w, SLOT, WAIT_ASLEEP, 7), 500);
	close_world(&w);
}

/* The stack of a task that slept before the start, read from outside, is that of its wait. */
TEST(test_sleepers)
{
	struct waits_sleeper list[4];
	struct world w;
	uint32_t stack;

	open_world(&w, 1);
	stack = stacks_intern(w.stacks, (uint32_t[]){ w.kinds[WAIT_POLL], 7 }, 2);
	for (pid_t pid = 3; pid < 6; pid++)
		find_asleep(&w, pid, WAIT_POLL, 1000);
	waits_found(w.waits, 6, 6, STEP_FOUND, 1000);
	/* Each in its turn. */
	assert_int_equal(waits_sleepers(w.waits, LOOK_BEFORE, &none_barred, list, 2), 2);
	assert_int_equal(waits_sleepers(w.waits, LOOK_BEFORE, &none_barred, list + 2, 2), 2);
	assert_int_equal(list[0].tid + list[1].tid + list[2].tid, 3 + 4 + 5);
	assert_int_equal(list[0].look, LOOK_BEFORE);
	/* Of one task the kernel has a stack after all; one wakes up. */
	put(&w, 0, 4, STEP_OUT, 990, stack_in(&w, 8), 1);
	put(&w, 0, 5, STEP_IN, 1100, STACK_NONE, 0);
	switch_queue_done(waits_queue(w.waits, 0), 1200);
	waits_take(w.waits, &w.t, 1200);
	for (pid_t tid = 3; tid < 6; tid++)
		waits_slept(w.waits, &w.t, &(struct waits_sleeper){ tid, tid, LOOK_BEFORE }, stack,
			    1150);
	end_tick(&w, 1500);
	assert_int_equal(sum(&w, SLOT, WAIT_POLL, 7), 500);
	assert_int_equal(sum(&w, SLOT, WAIT_ASLEEP, 8), 500);
	assert_int_equal(sum(&w, SLOT, WAIT_POLL, 0), 500 + 100);
	/* All are done. */
	assert_int_equal(waits_sleepers(w.waits, LOOK_BEFORE, &none_barred, list, 4), 0);
	/* Without samples of switches: a look at each task that sleeps now. */
	put(&w, 0, 5, STEP_OUT, 1600, STACK_NONE, 0);
	switch_queue_done(waits_queue(w.waits, 0), 1650);
	waits_take(w.waits, &w.t, 1650);
	assert_int_equal(waits_sleepers(w.waits, LOOK_NOW, &none_barred, list, 4), 1);
	assert_int_equal(list[0].tid, 5);
	assert_int_equal(list[0].look, LOOK_NOW);
	waits_slept(w.waits, &w.t, &list[0], stack, 1650);
	end_tick(&w, 1700);
	assert_int_equal(sum(&w, SLOT, WAIT_POLL, 7), 200 + 100);
	close_world(&w);
}

/*
 * A wait of which the switch left no stack is read as one found asleep, when it lasts; until then
 * it is not the stack of an earlier wait that is shown as complete.
 */
TEST(test_unread)
{
	const uint64_t long_ns = 2 * WAIT_LONG_NS;
	struct waits_sleeper look;
	struct world w;
	uint32_t cut;

	open_world(&w, 1);
	w.t.chains = true;
	cut = stacks_intern(w.stacks, (uint32_t[]){ w.kinds[WAIT_POLL], 7, w.kinds[WAIT_CUT] }, 3);
	for (pid_t tid = 3; tid < 6; tid++)
		put(&w, 0, tid, STEP_IN, 1000, STACK_NONE, 0);
	put(&w, 0, 3, STEP_OUT, 2000, STACK_NONE, 0);
	put(&w, 0, 4, STEP_OUT, 2000, stack_in(&w, 8), 1);
	put(&w, 0, 5, STEP_PREEMPTED, 2000, STACK_NONE, 0);
	end_tick(&w, 3000);
	assert_int_equal(sum(&w, SLOT, WAIT_OTHER, w.kinds[WAIT_CUT]), 1000);
	assert_int_equal(w.account.slept_ns, 2000);
	assert_int_equal(w.account.cut_ns, 1000);
	/* Short waits are not looked at. */
	assert_false(waits_take_unread(w.waits));
	assert_int_equal(waits_sleepers(w.waits, LOOK_BEFORE, &none_barred, &look, 1), 0);
	end_tick(&w, long_ns);
	assert_true(waits_take_unread(w.waits));
	assert_false(waits_take_unread(w.waits));
	assert_int_equal(waits_sleepers(w.waits, LOOK_BEFORE, &none_barred, &look, 1), 1);
	assert_int_equal(look.tid, 3);
	waits_slept(w.waits, &w.t, &look, cut, long_ns + 10);
	end_tick(&w, long_ns + 1000);
	/* A long one: its kind is the second frame. */
	assert_int_equal(sum(&w, SLOT, WAIT_LONG, w.kinds[WAIT_POLL]), 1000);
	assert_int_equal(w.account.cut_ns, 1000);
	assert_int_equal(waits_sleepers(w.waits, LOOK_BEFORE, &none_barred, &look, 1), 0);
	/* The next one is another wait; one of which the switch left a cut stack is read too. */
	put(&w, 0, 3, STEP_IN, long_ns + 1100, STACK_NONE, 0);
	put(&w, 0, 3, STEP_OUT, long_ns + 1200, cut, 1);
	end_tick(&w, 3 * long_ns);
	assert_int_equal(sum(&w, SLOT, WAIT_LONG, w.kinds[WAIT_POLL]), 2 * long_ns - 1100);
	assert_true(waits_take_unread(w.waits));
	assert_int_equal(waits_sleepers(w.waits, LOOK_BEFORE, &none_barred, &look, 1), 1);
	/* A look that is cut at the same place is no better; a whole one is. */
	slept(&w, 3, LOOK_BEFORE, WAIT_SLEEP, 3 * long_ns + 10);
	end_tick(&w, 4 * long_ns);
	assert_int_equal(sum(&w, SLOT, WAIT_LONG, w.kinds[WAIT_POLL]), long_ns);
	close_world(&w);
}

/* A process may be read late: looks until then are not counted, others are. */
TEST(test_looks)
{
	struct waits_sleeper look;
	struct world w;

	open_world(&w, 1);
	find_asleep(&w, 3, WAIT_POLL, 1000);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(waits_sleepers(w.waits, LOOK_BEFORE, &none_barred, &look, 1), 1);
		waits_look_again(w.waits, &look);
	}
	for (int i = 0; i < 60; i++)
		assert_int_equal(waits_sleepers(w.waits, LOOK_BEFORE, &none_barred, &look, 1), 1);
	assert_int_equal(waits_sleepers(w.waits, LOOK_BEFORE, &none_barred, &look, 1), 0);
	/* The last one found it after all. */
	waits_slept(w.waits, &w.t, &look, stack_in(&w, 7), 1400);
	waits_look_again(w.waits, &look);
	assert_int_equal(waits_sleepers(w.waits, LOOK_BEFORE, &none_barred, &look, 1), 0);
	end_tick(&w, 1500);
	assert_int_equal(sum(&w, SLOT, WAIT_ASLEEP, 7), 500);
	close_world(&w);
}

/* A process may never be read: looks end. */
TEST(test_looks_end)
{
	struct waits_sleeper look;
	struct world w;
	int nr = 0;

	open_world(&w, 1);
	find_asleep(&w, 3, WAIT_POLL, 1000);
	while (nr < 10000 && waits_sleepers(w.waits, LOOK_BEFORE, &none_barred, &look, 1)) {
		waits_look_again(w.waits, &look);
		nr++;
	}
	assert_int_equal(nr, 1200 + 60);
	close_world(&w);
}

/* Tasks of a process that hangs its reader are left out; others keep their turns. */
TEST(test_barred)
{
	const struct waits_barred barred = { (pid_t[]){ 100, 4 }, 2 };
	struct waits_sleeper list[4];
	struct world w;

	open_world(&w, 1);
	for (pid_t pid = 3; pid < 6; pid++)
		find_asleep(&w, pid, WAIT_POLL, 1000);
	assert_int_equal(waits_sleepers(w.waits, LOOK_BEFORE, &barred, list, 4), 2);
	assert_int_equal(list[0].tid + list[1].tid, 3 + 5);
	assert_int_equal(waits_sleepers(w.waits, LOOK_BEFORE, &none_barred, list, 4), 3);
	close_world(&w);
}

/* Waits of WAIT_LONG_NS and more have another stack, from that age on, in later ticks also. */
TEST(test_long)
{
	const uint64_t ms = 1000000;
	struct world w;

	open_world(&w, 1);
	find_asleep(&w, 5, WAIT_POLL, ms);
	put(&w, 0, 3, STEP_IN, 1 * ms, STACK_NONE, 0);
	put(&w, 0, 3, STEP_OUT, 2 * ms, stack_in(&w, 7), 1);
	put(&w, 0, 3, STEP_IN, 101 * ms, STACK_NONE, 0); /* 99 ms */
	put(&w, 0, 3, STEP_OUT, 102 * ms, stack_in(&w, 7), 1);
	put(&w, 0, 3, STEP_IN, 202 * ms, STACK_NONE, 0); /* 100 ms */
	put(&w, 0, 3, STEP_OUT, 203 * ms, stack_in(&w, 7), 1);
	end_tick(&w, 253 * ms); /* 50 ms so far */
	assert_int_equal(sum(&w, SLOT, WAIT_ASLEEP, 7), 149 * ms);
	assert_int_equal(sum(&w, SLOT, WAIT_LONG, 7), 100 * ms);
	assert_int_equal(sum(&w, SLOT, WAIT_LONG, 1000 + WAIT_POLL), 252 * ms);
	/* It goes on, and then in the run queue. */
	put(&w, 0, 3, STEP_WOKEN, 403 * ms, STACK_NONE, 0);
	end_tick(&w, 404 * ms);
	assert_int_equal(sum(&w, SLOT, WAIT_ASLEEP, 7), 0);
	assert_int_equal(sum(&w, SLOT, WAIT_LONG, 7), 150 * ms);
	assert_int_equal(sum(&w, SLOT, WAIT_QUEUE, 7), 1 * ms);
	close_world(&w);
}

/* Random switches of many tasks on two CPUs: all columns add up to wall time x tasks. */
TEST(test_sum)
{
	uint64_t time = 1000, begin = 1000;
	bool runs[17] = { false };
	struct world w;

	srand(SEED);
	open_world(&w, 2);
	for (pid_t tid = 0; tid < 17; tid++)
		put(&w, 0, 3 + tid, STEP_OUT, time, STACK_NONE, 0);
	for (int tick = 0; tick < 20; tick++) {
		for (int i = 0; i < 500; i++) {
			int at = rand() % 17;
			enum task_step out = rand() % 2 ? STEP_OUT : STEP_PREEMPTED;

			time += (uint64_t)(rand() % 1000);
			put(&w, (uint32_t)at & 1, 3 + at, runs[at] ? out : STEP_IN, time,
			    rand() % 3 ? STACK_NONE : stack_in(&w, (uint32_t)(rand() % 9)),
			    (uint32_t)(rand() % 9));
			runs[at] = !runs[at];
		}
		end_tick(&w, time);
		assert_int_equal(sum(&w, SLOT, 0, 0) + sum(&w, PROFILE_RUNNING, 0, 0),
				 17 * (time - begin));
		begin = time;
	}
	assert_int_equal(w.account.lost + w.account.odd + w.account.late, 0);
	close_world(&w);
}

/* Sum the time of each task and slice; the tick of @begin_ns to @end_ns. */
static void check_slices(const struct world *w, uint64_t begin_ns, uint64_t end_ns,
			 uint32_t nr_tasks)
{
	uint64_t all = 0;

	for (uint64_t at = begin_ns; at < end_ns; at = (at / SLICE_NS + 1) * SLICE_NS) {
		uint64_t to = MIN((at / SLICE_NS + 1) * SLICE_NS, end_ns), ns = 0;

		for (uint32_t i = 0; i < w->nr; i++)
			ns += w->list[i].slice == tables_slice(at) ? w->list[i].weight : 0;
		/* Each task is in one state at a time. */
		assert_int_equal(ns, nr_tasks * (to - at));
		all += ns;
	}
	assert_int_equal(all, nr_tasks * (end_ns - begin_ns));
}

/* Waits of microseconds to minutes, with a stack or not: each slice has the time that passed in it,
 * of all tasks. */
TEST(test_slices)
{
	uint64_t time = 1000 * SECOND, begin = time;
	bool runs[17] = { false };
	struct world w;

	srand(SEED);
	open_world(&w, 2);
	for (pid_t tid = 0; tid < 17; tid++)
		put(&w, 0, 3 + tid, STEP_OUT, time, STACK_NONE, 0);
	for (int tick = 0; tick < 300; tick++) {
		uint64_t until = begin + (uint64_t)(rand() % 3000) * SECOND / 1000 + 1;

		/* Some tasks switch often, others each minute. */
		for (; time < until; time += (uint64_t)(rand() % 20000000)) {
			int at = rand() % 100 ? rand() % 5 : rand() % 17;
			enum task_step out = rand() % 2 ? STEP_OUT : STEP_PREEMPTED;

			put(&w, (uint32_t)at & 1, 3 + at, runs[at] ? out : STEP_IN, time,
			    rand() % 3 ? stack_in(&w, (uint32_t)(rand() % 9)) : STACK_NONE,
			    (uint32_t)(rand() % 9));
			runs[at] = !runs[at];
		}
		/* The last of them is in the next tick. */
		end_tick(&w, until);
		check_slices(&w, begin, until, 17);
		begin = until;
	}
	assert_int_equal(w.account.lost + w.account.odd + w.account.late, 0);
	close_world(&w);
}

/* A known wait is in the slices of its time alone, also if others have no stack. */
TEST(test_own_slices)
{
	const uint64_t begin = 1000 * SECOND, ms = SECOND / 1000;
	struct world w;

	open_world(&w, 1);
	put(&w, 0, 3, STEP_IN, begin, STACK_NONE, 0);
	put(&w, 0, 3, STEP_OUT, begin + 110 * ms, stack_in(&w, 7), 1);
	put(&w, 0, 3, STEP_IN, begin + 190 * ms, STACK_NONE, 0);
	put(&w, 0, 3, STEP_OUT, begin + 410 * ms, STACK_NONE, 0);
	put(&w, 0, 3, STEP_IN, begin + 490 * ms, STACK_NONE, 0);
	put(&w, 0, 3, STEP_OUT, begin + 610 * ms, stack_in(&w, 8), 1);
	put(&w, 0, 3, STEP_IN, begin + 690 * ms, STACK_NONE, 0);
	end_tick(&w, begin + SECOND);
	check_slices(&w, begin, begin + SECOND, 1);
	/* The one without a stack is shared out to both. */
	assert_int_equal(sum(&w, SLOT, WAIT_ASLEEP, 7), 120 * ms);
	assert_int_equal(sum(&w, SLOT, WAIT_ASLEEP, 8), 120 * ms);
	for (uint32_t i = 0; i < w.nr; i++)
		if (w.list[i].slice == tables_slice(begin + 100 * ms) && w.list[i].event == SLOT)
			assert_int_equal(w.list[i].weight, 40 * ms);
	close_world(&w);
}

/* The waits of a process that is read later are in their slices also. */
TEST(test_slices_of_unknown)
{
	const uint64_t begin = 1000 * SECOND;
	uint64_t ns = 0;
	struct world w;

	open_world(&w, 1);
	w.t.recorded = false;
	put(&w, 0, 300, STEP_IN, begin, STACK_NONE, 0);
	put(&w, 0, 300, STEP_OUT, begin + SECOND / 2, stack_in(&w, 7), 1);
	for (uint32_t tick = 1; !ns && tick < 9; tick++) {
		end_tick(&w, begin + tick * SECOND);
		for (uint32_t i = 0; i < w.nr; i++)
			ns += w.list[i].weight;
		if (ns)
			check_slices(&w, begin, begin + tick * SECOND, 1);
	}
	assert_true(ns >= 2 * SECOND);
	close_world(&w);
}

/* proftop was stopped for an hour: the times are exact, and not in 72,000 slices. */
TEST(test_slices_after_a_stop)
{
	const uint64_t begin = 1000 * SECOND;
	uint64_t ns = 0;
	struct world w;

	open_world(&w, 1);
	put(&w, 0, 3, STEP_IN, begin, STACK_NONE, 0);
	put(&w, 0, 3, STEP_OUT, begin + 1, stack_in(&w, 7), 1);
	end_tick(&w, begin + 3600 * SECOND);
	for (uint32_t i = 0; i < w.nr; i++)
		ns += w.list[i].weight;
	assert_int_equal(ns, 3600 * SECOND);
	assert_in_range(w.nr, 100, 400);
	close_world(&w);
}

/* An exited task is not a waiting one, also when its last switch follows. */
TEST(test_exit)
{
	struct world w;

	open_world(&w, 1);
	put(&w, 0, 3, STEP_BORN, 1000, STACK_NONE, 0);
	put(&w, 0, 3, STEP_IN, 1100, STACK_NONE, 0);
	put(&w, 0, 3, STEP_EXIT, 1200, STACK_NONE, 0);
	put(&w, 0, 3, STEP_OUT, 1210, STACK_NONE, 0);
	end_tick(&w, 1300);
	assert_int_equal(sum(&w, SLOT, 0, 0), 100);
	assert_int_equal(sum(&w, PROFILE_RUNNING, 0, 0), 100);
	end_tick(&w, 5000000000);
	assert_int_equal(sum(&w, SLOT, 0, 0), 0);
	assert_int_equal(w.account.tasks, 0);
	close_world(&w);
}

TEST(test_full_queue)
{
	struct switch_queue *q = switch_queue_new(8);
	struct switch_note note = { .time_ns = 1 };

	for (int i = 0; i < 8; i++)
		assert_true(switch_queue_put(q, &note));
	assert_true(switch_queue_crowded(q));
	assert_false(switch_queue_put(q, &note));
	assert_int_equal(switch_queue_take_full(q), 1);
	assert_int_equal(switch_queue_take_full(q), 0);
	switch_queue_drop(q);
	note.time_ns = 2;
	assert_true(switch_queue_put(q, &note));
	for (int i = 0; i < 7; i++)
		switch_queue_drop(q);
	assert_int_equal(switch_queue_first(q)->time_ns, 2);
	switch_queue_drop(q);
	assert_null(switch_queue_first(q));
	switch_queue_free(q);
}

static int begin(void **state)
{
	rcu_register_thread();
	return 0;
}

static int end(void **state)
{
	rcu_unregister_thread();
	return 0;
}

int main(void)
{
	return run_unit_tests(begin, end);
}
