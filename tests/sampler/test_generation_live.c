// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A live session with waits that replaces its tables at each tick, with its places, beside programs
 * that begin and end: the account sums up, and the function that takes the time has its name, once.
 * Needs the right to sample.
 * Live: opens perf events.
 */
#include "sampler/sampler.c"

#include "sampler/internal.h"

#include "tests/prelude_rcu.h"
#include "tests/yardstick.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unwind/unwind.h"
#include "symbols/base/base.h"
#include "symbols/process/process.h"
#include "symbols/name/name.h"
#include "sampler/ring/ring.h"
#include "sampler/event/event.h"
#include "sampler/count/count.h"
#include "sampler/profile/profile.h"
#include "sampler/waits/waits.h"
#include "sampler/hot/hot.h"

#define TICK_NS 250000000ULL
#define TICKS	14
/* This thread was on time in a tick if it never did without a CPU for longer. */
#define HELD_UP_NS 20000000ULL

static volatile unsigned long turns;

/* Not instrumented: the leaf of its samples would be a function of the thread sanitizer. */
__attribute__((noinline, noclone, no_sanitize("thread"))) static void spin_in_generation(void)
{
	for (;;)
		turns++;
}

static pid_t start_child(void (*run)(void))
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	run();
	_exit(0);
}

static void stop_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Programs with other code at other addresses. */
static void begin_programs(void)
{
	for (;;)
		if (system("ls /proc/self /usr/lib >/dev/null; true") < 0)
			return;
}

/*
 * Add the samples of CPU time of a process, and of these in a function that has its name, once:
 * another process may have a function of that name, from this test in another build.
 */
static void add_samples(const struct profile *p, pid_t pid, const char *name, double *all,
			double *named)
{
	const struct profile_function *first = NULL;

	for (uint32_t i = 0; i < p->nr_counts; i++) {
		const struct profile_count *c = &p->counts[i];
		const struct profile_stack *s = &p->stacks[c->stack];
		const struct profile_function *leaf = &p->functions[p->frames[s->first]];

		if (c->event || p->processes[p->tasks[c->task].process].pid != pid)
			continue;
		*all += c->count;
		if (strcmp(leaf->name.str, name))
			continue;
		*named += c->count;
		first = first ? first : leaf;
		assert_ptr_equal(leaf, first);
	}
}

/* Return the time since the last call in which this thread did not run: it slept, or had no CPU. */
static uint64_t not_run_ns(void)
{
	static uint64_t last_ns;
	uint64_t now_ns = time_now_ns() - yardstick_cpu_ns();
	int64_t ns = (int64_t)(now_ns - last_ns);

	last_ns = now_ns;
	/* The clocks are not read at the same time. */
	return ns > 0 ? (uint64_t)ns : 0;
}

/*
 * Wait for a while, with more room for the threads on demand, as from the builder; raise @gap_ns to
 * the longest time in which it did not run between two looks.
 */
static void give_room_for(struct sampler *s, uint64_t ns, uint64_t *gap_ns)
{
	uint64_t end = time_now_ns() + ns, look_ns;

	while (time_now_ns() < end) {
		urcu_qsbr_thread_offline();
		usleep(1000);
		urcu_qsbr_thread_online();
		if (atomic_exchange(&s->live.shared->room_wanted, false))
			tick_make_room(s);
		look_ns = not_run_ns();
		*gap_ns = MAX(*gap_ns, look_ns);
	}
}

/* Check that of a tick that has just ended. Return whether the dropped samples were judged. */
static bool check_account(const struct profile_account *a, uint64_t *gap_ns)
{
	uint64_t end_ns = not_run_ns(), longest_ns = MAX(*gap_ns, end_ns);

	*gap_ns = end_ns; /* the next tick begins in it */
	assert_true(a->taken == a->complete + a->guessed + a->truncated + a->broken + a->pending +
					a->dropped + a->lost);
	/* Where the machine gives this thread no CPU, the tables fill up before it makes room. */
	if (longest_ns >= HELD_UP_NS)
		return false;
	assert_in_range(a->dropped, 0, a->taken / 10);
	return true;
}

/* The test is the builder: a new generation before each tick, and one in its middle. */
TEST(test_generations_live)
{
	struct sampler_config config = {
		.target = TARGET_SYSTEM,
		.hz = 499,
		.stack_size = 8192,
		.tick_ns = TICK_NS,
		.window_ns = 1000000000,
		.history_ns = 10000000000,
		.history_memory = 16 << 20,
		.ring_size = 1 << 20,
	};
	pid_t spin = start_child(spin_in_generation), programs = start_child(begin_programs);
	uint32_t serial = 0, renewed = 0, judged = 0;
	uint64_t gap_ns = 0;
	double all = 0, named = 0;
	struct sampler *s;
	struct err e;
	int code;

	assert_int_equal(event_parse(&config.events[config.nr_events++], "cpu-clock", &e), 0);
	assert_int_equal(event_parse(&config.events[config.nr_events++], EVENT_WAITS, &e), 0);
	code = session_new(&s, &config, &e);
	if (code || s->source->start(s, &e)) {
		kill(spin, SIGKILL);
		kill(programs, SIGKILL);
		skip_test("not permitted: perf_event_open(2)");
	}
	/* As sampler_start() does: for its CPU time glibc 2.43 reads the thread. */
	s->ticks.ui = pthread_self();
	s->store.caps.places = 1;
	not_run_ns();
	for (int i = 0; i < 2 * TICKS; i++) {
		struct profile *p;

		give_room_for(s, TICK_NS / 2, &gap_ns);
		s->store.places_kept = 0;
		if (i % 2) {
			assert_int_equal(store_keep_room(&s->store), 0);
			tick_slice(s, time_now_ns());
			continue;
		}
		tick_end(s);
		renewed += places_serial(s->store.places) != serial;
		serial = places_serial(s->store.places);
		p = sampler_take(s);
		assert_non_null(p);
		judged += check_account(&p->account, &gap_ns);
		add_samples(p, spin, "spin_in_generation", &all, &named);
		profile_free(p);
	}
	live_stop_threads(&s->live);
	session_free(s);
	stop_child(spin);
	stop_child(programs);
	print_message("%u generations of places, drops judged in %u ticks, %.0f of %.0f samples "
		      "with the name\n",
		      renewed, judged, named, all);
	assert_in_range(renewed, TICKS / 4, TICKS);
	assert_true(all > 0 && named > 0.8 * all);
	if (!judged)
		skip_test("not on this machine: no tick in which this thread was on time");
}

int main(void)
{
	return run_rcu_tests(NULL, NULL);
}
