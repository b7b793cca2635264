// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The search for new tasks of a target: which have events already, and that it takes no longer for
 * each of many tasks than for each of few. Tasks that hung in an exec are tried again.
 * Live: waits for threads or processes.
 */
#include "sampler/target.c"

#include "sampler/internal.h"

#include "tests/prelude_rcu.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sampler/fake_kernel.h"
#include "symbols/base/base.h"
#include "symbols/image/image.h"
#include "symbols/process/process.h"
#include "symbols/name/name.h"
#include "symbols/symbols.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/hot/hot.h"

#define MANY  50000u
#define FIRST 1000000 /* tids; the first thread of 100 is their process */

static uint32_t nr_read;

static pid_t fake_process_of(pid_t tid)
{
	nr_read++;
	return tid - tid % 100;
}

static bool fake_inherited(const struct follow_search *f, pid_t pid)
{
	return pid == 77700;
}

TEST(test_fresh)
{
	/* Listed; of a listed process; open; of an open process; inherited; new; hangs, its
	 * threads.
	 */
	static const pid_t some[] = { 101, 205, 301, 406, 77701, 503, 600, 601, 602 };
	struct follow_search f = { .process_of = fake_process_of, .has_inherited = fake_inherited };
	pid_t fresh[ARRAY_SIZE(some)];

	task_set_init(&f.listed, (pid_t[]){ 200, 101, 600 }, 3);
	task_set_init(&f.opened, (pid_t[]){ 400, 301, -1 }, 3);
	task_set_init(&f.left_out, (pid_t[]){ 600 }, 1);
	nr_read = 0;
	/* A process with a second thread no longer hangs: it is opened before this one can start
	 * more. */
	assert_int_equal(follow_search(&f, some, ARRAY_SIZE(some), fresh), 4);
	assert_int_equal(fresh[0], 503);
	assert_int_equal(fresh[1], 600);
	assert_int_equal(fresh[2], 601);
	assert_int_equal(fresh[3], 602);
	/* Only of tasks that are not known. */
	assert_int_equal(nr_read, 6);
	task_set_fini(&f.listed);
	task_set_fini(&f.opened);
	task_set_fini(&f.left_out);
}

/* Search twice, as after the start and a second later. Return the CPU time. */
static uint64_t rounds_ns(uint32_t nr)
{
	struct follow_search f = { .process_of = fake_process_of, .has_inherited = fake_inherited };
	pid_t *many = xcalloc(nr, sizeof(*many)), *fresh = xcalloc(nr, sizeof(*fresh));
	uint64_t begin_ns;

	for (uint32_t i = 0; i < nr; i++)
		many[i] = (pid_t)(FIRST + nr - i);
	begin_ns = time_thread_ns();
	nr_read = 0;
	for (uint32_t round = 0; round < 2; round++) {
		task_set_init(&f.listed, many, round ? nr : 0);
		task_set_init(&f.opened, many, round ? nr : 0);
		assert_int_equal(follow_search(&f, many, nr, fresh), round ? 0 : nr);
		task_set_fini(&f.listed);
		task_set_fini(&f.opened);
	}
	assert_int_equal(nr_read, nr);
	begin_ns = time_thread_ns() - begin_ns;
	free(many);
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

/* Count the tasks from @first to @last that have events. */
static uint32_t nr_opened(const struct counters *c, pid_t first, pid_t last)
{
	uint32_t nr, found = 0;
	const pid_t *opened = counters_tasks(c, &nr);

	for (uint32_t i = 0; i < nr; i++)
		found += opened[i] >= first && opened[i] <= last;
	return found;
}

/* Of any target: once a second some tasks are tried again, also behind more that never go on. */
TEST(test_busy_again)
{
	struct event event = parse("cpu-clock");
	struct counters_config config = tasks_config(&event, 1);
	struct sampler *s = xcalloc(1, sizeof(*s));
	char text[sizeof(s->mailbox.status)];
	struct fake *f = fake_new();
	pid_t all[30];
	int before;

	for (int i = 0; i < 30; i++)
		all[i] = 600 + i;
	config.tids = all;
	config.nr_tids = 30;
	f->busy = 601;
	f->last_busy = 629;
	target_init(&s->target);
	s->target.kind = TARGET_PIDS;
	s->live.counters = open_fake(f, &config);
	f->last_busy = 619;
	for (uint64_t ms = 1000; ms < 6000; ms += 250) {
		before = f->nr_calls;
		follow_target(s, ms * 1000000);
		assert_int_equal(mailbox_status(&s->mailbox, text), 1);
		assert_string_equal(text, "cannot sample task 601: it hangs in an exec");
		if (ms % 1000)
			assert_int_equal(f->nr_calls, before);
		/* The last ones are open after the fourth time. */
		assert_int_equal(nr_opened(s->live.counters, 620, 629), ms < 3000   ? 0
									: ms < 4000 ? 5
										    : 10);
		assert_int_equal(s->target.busy, 601);
	}
	f->busy = f->last_busy = 0;
	for (uint64_t ms = 6000; ms < 10000; ms += 1000)
		follow_target(s, ms * 1000000);
	assert_int_equal(nr_opened(s->live.counters, 600, 629), 30);
	assert_int_equal(counters_nr_refused(s->live.counters), 0);
	assert_int_equal(s->target.busy, 0);
	counters_close(s->live.counters);
	assert_int_equal(f->nr_open, 0);
	free(f);
	free(s);
}

/* The processes of the target are read without a sample of them, each once. */
TEST(test_processes_are_read)
{
	struct sampler *s = xcalloc(1, sizeof(*s));
	struct maps_hit hit;

	target_init(&s->target);
	s->target.kind = s->config.target = TARGET_PIDS;
	s->target.tids = xcalloc(2, sizeof(pid_t));
	s->target.tids[s->target.nr_tids++] = getpid();
	s->target.tids[s->target.nr_tids++] = getpid();
	assert_int_equal(objects_new(&s->store.objects), 0);
	assert_int_equal(maps_new(&s->store.maps, s->store.objects, 64), 0);
	assert_int_equal(places_new(&s->store.places, 1000), 0);
	assert_int_equal(symbols_new(&s->store.symbols, s->store.places, s->store.objects,
				     s->store.maps, NULL),
			 0);
	target_choose(s);
	assert_int_equal(maps_load_asked(s->store.maps), 1);
	maps_find(s->store.maps, maps_tasks(s->store.maps), getpid(), getpid(), time_now_ns(),
		  &hit);
	assert_true(hit.known);
	assert_true(hit.task != TASK_UNKNOWN);
	symbols_free(s->store.symbols);
	places_free(s->store.places);
	maps_free(s->store.maps);
	objects_free(s->store.objects);
	target_drop(&s->target);
	free(s);
}

/* A user is called by its name, clean, as in top; one without a name by its number. */
TEST(test_user_name)
{
	struct sampler_config config = { .target = TARGET_USER, .uid = 4294000001u };
	struct sampler_target_spec *spec;
	struct target *t = xcalloc(1, sizeof(*t));
	struct err e;

	target_describe(t, &config);
	assert_string_equal(t->text, "user 4294000001");
	assert_int_equal(target_open(t, &config, &e), -ESRCH);
	assert_non_null(strstr(e.text, "user 4294000001 has no process"));
	config.user = "post\033gres";
	target_describe(t, &config);
	assert_string_equal(t->text, "user post·gres");
	/* Also with other CPUs. */
	spec = config_get_spec(&config);
	config.user = NULL;
	config_set_spec(&config, spec);
	target_describe(t, &config);
	assert_string_equal(t->text, "user post·gres");
	config_free_spec(spec);
	target_drop(t);
	free(t);
}

/* A user without tasks for a while is the target all along, and not every task. */
TEST(test_user_without_tasks)
{
	struct event event = parse("cpu-clock");
	struct counters_config config = tasks_config(&event, 1);
	struct sampler *s = xcalloc(1, sizeof(*s));
	struct fake *f = fake_new();

	target_init(&s->target);
	s->target.kind = s->config.target = TARGET_USER;
	s->config.uid = 4294000001u;
	s->target.tids = xcalloc(1, sizeof(pid_t));
	s->target.tids[s->target.nr_tids++] = 501;
	assert_int_equal(objects_new(&s->store.objects), 0);
	assert_int_equal(maps_new(&s->store.maps, s->store.objects, 64), 0);
	s->live.counters = open_fake(f, &config);
	assert_int_equal(sideband_new(&s->live.sideband, s->live.counters, s->store.maps, NULL,
				      NULL),
			 0);
	follow_target(s, 1000000000);
	assert_int_equal(s->target.nr_tids, 0);
	assert_non_null(s->target.tids);
	assert_true(target_is_part(&s->target));
	sideband_free(s->live.sideband);
	counters_close(s->live.counters);
	maps_free(s->store.maps);
	objects_free(s->store.objects);
	target_drop(&s->target);
	free(f);
	free(s);
}

static void *stay(void *arg)
{
	for (;;)
		pause();
	return arg;
}

/* Start a process with three more threads. */
static pid_t start_threads(void)
{
	int ready[2];
	pthread_t t;
	pid_t pid;
	char c;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (int i = 0; i < 3; i++)
			pthread_create(&t, NULL, stay, NULL);
		_exit(write(ready[1], "x", 1) == 1 && stay(NULL));
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

/* Threads that it started before its events are open are opened with it. */
TEST(test_busy_with_threads)
{
	struct event event = parse("cpu-clock");
	struct counters_config config = tasks_config(&event, 1);
	struct sampler *s = xcalloc(1, sizeof(*s));
	struct fake *f = fake_new();
	pid_t all[] = { getppid(), start_threads() };

	config.tids = all;
	config.nr_tids = 2;
	f->busy = all[1];
	target_init(&s->target);
	s->target.kind = TARGET_PIDS;
	s->live.counters = open_fake(f, &config);
	assert_int_equal(nr_opened(s->live.counters, 1, INT32_MAX), 1);
	f->busy = 0;
	follow_target(s, 1000000000);
	assert_int_equal(nr_opened(s->live.counters, 1, INT32_MAX), 5);
	/* Nothing is opened again. */
	follow_target(s, 2000000000);
	assert_int_equal(nr_opened(s->live.counters, 1, INT32_MAX), 5);
	kill(all[1], SIGKILL);
	waitpid(all[1], NULL, 0);
	counters_close(s->live.counters);
	free(f);
	free(s);
}

int main(void)
{
	return run_rcu_tests(NULL, NULL);
}
