// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * messages: each item of the ledger on a separate line, once, with a fix that works; and lag, the
 * histogram of how late samples are read.
 */
#include "sampler/profile/messages.c"

#include <errno.h>

#include "sampler/profile/internal.h"
#include "symbols/jit/jit.h"
#include "symbols/script/script.h"

#include "tests/prelude.h"

#include <math.h>

#include "sampler/hot/internal.h"
#include "unwind/unwind.h"
#include "symbols/base/text.h"
#include "symbols/image/image.h"
#include "symbols/code/code.h"
#include "sampler/event/event.h"

#define SECOND	  1000000000ULL
#define WINDOW_NS (5 * SECOND)
#define NR_CPUS	  3

struct fixture {
	struct messages n;
	struct profile p;
	struct profile_cpu cpus[NR_CPUS];
	uint64_t now_ns;
};

/* All is well: 3 CPUs, 1000 samples of 997 Hz. */
static int setup(void **state)
{
	static struct fixture f;

	memset(&f, 0, sizeof(f));
	f.p.interval_ns = SECOND;
	f.p.sampling = true;
	f.p.account.taken = f.p.account.complete = 1000;
	f.p.stack_size = 16384;
	f.p.ring_size = f.p.ring_wanted = 1 << 20;
	f.p.max_hz = f.p.max_hz_top = 100000;
	f.p.rate_factor = 1;
	f.p.cpus = f.cpus;
	f.p.nr_cpus = NR_CPUS;
	for (int i = 0; i < NR_CPUS; i++)
		f.cpus[i] = (struct profile_cpu){ .cpu = i, .online = true };
	assert_int_equal(event_parse(&f.p.events[0].event, "cpu-clock", NULL), 0);
	f.p.events[0].enabled = true;
	f.p.events[0].want_hz = f.p.events[0].got_hz = 997;
	f.p.events[0].running_share = 1;
	f.p.nr_events = 1;
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	free(f->p.messages);
	return 0;
}

static void tick(struct fixture *f)
{
	f->now_ns += f->p.interval_ns;
	free(f->p.messages);
	messages_apply(&f->n, &f->p, f->now_ns, WINDOW_NS);
}

static const struct profile_message *find(const struct fixture *f, const char *key)
{
	for (uint32_t i = 0; i < f->p.nr_messages; i++)
		if (!strcmp(f->p.messages[i].key, key))
			return &f->p.messages[i];
	return NULL;
}

/* The only active one: @key, with @words in its text, and a fix that is applied so. */
static void expect(struct fixture *f, const char *key, const char *words,
		   enum message_control control, double value)
{
	const struct profile_message *n;

	tick(f);
	n = find(f, key);
	for (uint32_t i = 0; i < f->p.nr_messages; i++)
		if (f->p.messages[i].active && &f->p.messages[i] != n)
			fail_msg("%s: also %s", key, f->p.messages[i].detail);
	if (!n)
		fail_msg("no %s", key);
	assert_true(n->active);
	if (strlen(n->brief) > 60 || strpbrk(n->brief, "\n"))
		fail_msg("%s: brief '%s'", key, n->brief);
	if (!strstr(n->detail, words))
		fail_msg("%s: no '%s' in '%s'", key, words, n->detail);
	assert_true(n->fix[0]);
	assert_int_equal(n->control, control);
	if (fabs(n->value - value) > 0.5)
		fail_msg("%s: %f", n->fix, n->value);
}

TEST(test_quiet, setup, teardown)
{
	struct fixture *f = *state;

	tick(f);
	tick(f);
	assert_int_equal(f->p.nr_messages, 0);
	assert_true(messages_truncated(&f->n) == 0);
}

/* Counted; first and last time; reported in this tick only; the id is kept. */
TEST(test_once, setup, teardown)
{
	struct fixture *f = *state;
	const struct profile_message *n;

	tick(f);
	for (int i = 0; i < 3; i++) {
		f->p.account.lost = f->cpus[1].lost = 7;
		expect(f, "lost", "samples lost on CPU 1:", MESSAGE_RING_SIZE, 2 << 20);
	}
	f->p.account.lost = f->cpus[1].lost = 0;
	tick(f);
	n = find(f, "lost");
	assert_false(n->active);
	assert_int_equal(n->severity, MESSAGE_GRAVE);
	assert_int_equal(n->count, 21);
	assert_int_equal(n->first_ns, 2 * SECOND);
	assert_int_equal(n->last_ns, 4 * SECOND);
	assert_int_equal(n->id, 0);
	assert_int_equal(f->p.nr_messages, 1);
}

/* If the ring cannot grow the rate falls; of which event, and of which CPUs. */
TEST(test_lost, setup, teardown)
{
	struct fixture *f = *state;

	f->p.nr_events = 2;
	assert_int_equal(event_parse(&f->p.events[1].event, "page-faults", NULL), 0);
	f->p.events[1].want_hz = f->p.events[1].got_hz = 4001;
	f->p.events[1].running_share = 1;
	f->p.ring_size = f->p.ring_wanted = 256 << 20;
	f->p.account.lost = 2;
	f->cpus[0].lost = f->cpus[2].lost = 1;
	expect(f, "lost", "on CPUs 0, 2:", MESSAGE_RATE, 2001);
	assert_int_equal(find(f, "lost")->event, 1);
	assert_non_null(strstr(find(f, "lost")->fix, "page-faults"));
	f->p.events[0].want_hz = f->p.events[1].want_hz = 0;
	expect(f, "lost", "on CPUs 0, 2:", MESSAGE_NONE, 0);
}

TEST(test_throttled, setup, teardown)
{
	struct fixture *f = *state;

	f->cpus[2].throttled = 3;
	f->cpus[2].throttled_ns = 40000000;
	expect(f, "throttled", "throttled on CPU 2, 40 ms", MESSAGE_RATE, 499);
	/* half is more than the limit that throttled it: that would be refused */
	f->p.events[0].want_hz = f->p.events[0].got_hz = 3999;
	f->p.max_hz = f->p.max_hz_top = 1500;
	expect(f, "throttled", "throttled on CPU 2, 40 ms", MESSAGE_RATE, 750);
	assert_non_null(strstr(find(f, "throttled")->fix, "lower the rate of cpu-clock to 750 "
							  "Hz"));
	f->p.events[0].want_hz = f->p.events[0].got_hz = 997;
	f->p.max_hz = f->p.max_hz_top = 100000;
	/* still paused, without a new record */
	f->cpus[2].throttled = 0;
	expect(f, "throttled", "on CPU 2", MESSAGE_RATE, 499);
	assert_int_equal(find(f, "throttled")->count, 6);
}

TEST(test_rings, setup, teardown)
{
	struct fixture *f = *state;

	f->cpus[0].ring_high = 0.8;
	expect(f, "ring-full", "ring of CPU 0 was 80% full", MESSAGE_RING_SIZE, 2 << 20);
	f->cpus[0].ring_high = 0;
	/* the limit, or another profiler that has it */
	f->p.ring_size = 64 << 10;
	for (int i = 0; i < 3; i++)
		expect(f, "ring-small", "rings of 64 KiB per CPU instead of 1024",
		       MESSAGE_RING_SIZE, 1 << 20);
	assert_int_equal(find(f, "ring-small")->count, 1);
	/* doubling was tried: it would not help */
	f->p.account.lost = f->cpus[0].lost = 1;
	tick(f);
	assert_int_equal(find(f, "lost")->control, MESSAGE_RATE);
	/* it may now */
	f->p.ring_size = 1 << 20;
	expect(f, "lost", "CPU 0", MESSAGE_RING_SIZE, 2 << 20);
}

/* A share of something is never none. */
TEST(test_share, setup, teardown)
{
	char buf[16];

	assert_string_equal(messages_share(buf, 0.0004), "<0.1%");
	assert_string_equal(messages_share(buf, 0.0005), "0.1%");
	assert_string_equal(messages_share(buf, 0.028), "2.8%");
	assert_string_equal(messages_share(buf, 0), "0.0%");
}

TEST(test_machine, setup, teardown)
{
	struct fixture *f = *state;

	f->cpus[1].online = false;
	expect(f, "offline", "offline: CPU 1", MESSAGE_NONE, 0);
	assert_non_null(strstr(find(f, "offline")->fix, "echo 1 "
							">/sys/devices/system/cpu/cpu1/online"));
	f->cpus[1].online = true;
	f->p.max_hz = 500;
	expect(f, "max-rate", "fell from 100000 to 500", MESSAGE_RATE, 250);
	f->p.max_hz = 50000;
	expect(f, "max-rate", "fell from 100000 to 50000", MESSAGE_NONE, 0);
	assert_non_null(strstr(find(f, "max-rate")->fix, "perf_event_max_sample_rate=100000"));
	f->p.max_hz = 100000;
	f->cpus[2].lag_max_ns = 1500000000;
	expect(f, "lag", "samples of CPU 2 handled 1.5 s late", MESSAGE_RATE, 499);
	f->cpus[2].lag_max_ns = 0;
	f->p.self.cpu_pct = 30;
	expect(f, "own-cpu", "30% of a CPU", MESSAGE_RATE, 499);
	f->p.self.cpu_pct = 0;
	f->p.self.rss_kb = 2 << 20;
	expect(f, "own-memory", "2048 MiB", MESSAGE_RESET, 0);
	f->p.self.rss_kb = 0;
	f->p.past_merged = true;
	expect(f, "history-memory", "longer than 50 ms", MESSAGE_NONE, 0);
	f->p.past_merged = false;
	f->p.rate_factor = 0.25;
	expect(f, "governor", "lowered to 25%", MESSAGE_NONE, 0);
	f->p.rate_capped = true;
	expect(f, "governor", "with more, proftop uses over 25% of all CPUs", MESSAGE_NONE, 0);
	f->p.rate_capped = false;
	f->p.rate_factor = 1;
	/* Which task, why, and the key that helps: for rights and execs none. */
	f->p.nr_refused = 1;
	f->p.refused = 815;
	f->p.refused_code = -EACCES;
	expect(f, "refused", "TID 815 is not sampled: not permitted", MESSAGE_NONE, 0);
	f->p.nr_refused = 4;
	f->p.refused_code = -EMFILE;
	expect(f, "refused", "TID 815 and 3 others are not sampled: too many open files",
	       MESSAGE_EVENTS, 0);
	f->p.nr_refused = 1;
	f->p.refused_code = -EINTR;
	expect(f, "refused", "TID 815 is not sampled: it hangs in an exec", MESSAGE_NONE, 0);
	f->p.nr_refused = 0;
	f->p.waits.hung = 815;
	expect(f, "asleep", "sleeping tasks hangs, at last in process 815", MESSAGE_NONE, 0);
}

TEST(test_events, setup, teardown)
{
	struct fixture *f = *state;

	/* Software events have no counters to share. */
	f->p.events[0].running_share = 0.4;
	tick(f);
	assert_int_equal(f->p.nr_messages, 0);
	f->p.events[0].running_share = 1;
	f->p.events[0].got_hz = 612.7;
	expect(f, "rate-cpu-clock",
	       "cpu-clock: 997 Hz wanted, 613 Hz got: shares are of fewer samples, and ~CPU% is "
	       "too "
	       "low",
	       MESSAGE_RATE, 612);
	f->p.cpu_known = true;
	expect(f, "rate-cpu-clock", "CPU% is by clocks of the kernel", MESSAGE_RATE, 612);
	/* nothing is known: the CPUs were idle */
	f->p.events[0].got_hz = NAN;
	tick(f);
	assert_false(find(f, "rate-cpu-clock")->active);
}

/* Events that share counters; the count of a single event may be off by a little. */
TEST(test_multiplexed, setup, teardown)
{
	struct fixture *f = *state;

	assert_int_equal(event_parse(&f->p.events[0].event, "cycles", NULL), 0);
	f->p.events[0].running_share = 0.98;
	tick(f);
	assert_int_equal(f->p.nr_messages, 0);
	f->p.events[0].running_share = 0.4;
	expect(f, "multiplexed-cycles", "cycles: counted 40% of the time", MESSAGE_NONE, 0);
	assert_null(strstr(find(f, "multiplexed-cycles")->detail, "more events"));
	f->p.nr_events = 2;
	f->p.events[1] = f->p.events[0];
	assert_int_equal(event_parse(&f->p.events[1].event, "instructions", NULL), 0);
	f->p.events[1].running_share = 1;
	f->p.events[1].enabled = true;
	expect(f, "multiplexed-cycles", "cycles: counted 40% of the time", MESSAGE_EVENTS, 0);
	assert_non_null(strstr(find(f, "multiplexed-cycles")->detail, "more events"));
}

/* A starved machine: one line in place of all that follows from it; lost samples are a line also.
 */
TEST(test_starved, setup, teardown)
{
	struct fixture *f = *state;

	f->p.starved = true;
	f->p.rate_factor = 0.25;
	f->p.events[0].want_hz = 500;
	f->p.events[0].got_hz = 100;
	f->p.account.pending = 990;
	f->p.account.complete = 10;
	f->p.self.cpu_pct = 300;
	f->cpus[2].lag_max_ns = 9 * SECOND;
	f->cpus[1].ring_high = 0.99;
	expect(f, "starved", "sampling at 500 of 2000 Hz", MESSAGE_RATE, 250);
	/* At the whole rate there is none to compare it with. */
	f->p.rate_factor = 1;
	tick(f);
	assert_null(strstr(find(f, "starved")->detail, "Hz"));
	f->p.account.lost = f->cpus[1].lost = 7;
	tick(f);
	assert_true(find(f, "lost")->active && find(f, "starved")->active);
	f->p.account.lost = f->cpus[1].lost = 0;
	f->p.starved = false;
	tick(f);
	assert_false(find(f, "starved")->active);
	assert_true(find(f, "lag")->active && find(f, "pending")->active);
}

/* Not the advice to get a right that is there. */
TEST(test_lag_advice, setup, teardown)
{
	struct fixture *f = *state;

	f->cpus[2].lag_max_ns = 1500000000;
	tick(f);
	assert_non_null(strstr(find(f, "lag")->fix, "CAP_SYS_NICE"));
	f->n.goes_first = true;
	tick(f);
	assert_null(strstr(find(f, "lag")->fix, "CAP_SYS_NICE"));
}

/* More than 2 % of the window: a warning. Larger stack copies while possible. */
TEST(test_truncated, setup, teardown)
{
	struct fixture *f = *state;
	struct profile_account before;

	f->p.account.truncated = 10;
	expect(f, "truncated", "1.0% of stacks", MESSAGE_STACK_SIZE, 32768);
	assert_int_equal(find(f, "truncated")->severity, MESSAGE_INFO);
	f->p.account.truncated = 100;
	for (int i = 0; i < 8; i++)
		expect(f, "truncated", "", MESSAGE_STACK_SIZE, 32768);
	assert_int_equal(find(f, "truncated")->severity, MESSAGE_WARN);
	assert_true(fabs(messages_truncated(&f->n) - 0.1) < 0.001);
	messages_restart(&f->n);
	assert_true(messages_truncated(&f->n) < 0);
	before = f->p.account;
	f->p.account.taken = 20;
	f->p.account.truncated = 15;
	expect(f, "truncated", "75.0% of stacks", MESSAGE_STACK_SIZE, 32768);
	assert_int_equal(find(f, "truncated")->severity, MESSAGE_INFO);
	f->p.account = before;
	messages_restart(&f->n);
	f->p.stack_size = 32768;
	expect(f, "truncated", "10.0%", MESSAGE_STACK_SIZE, 65528);
	f->p.stack_size = 65528;
	expect(f, "truncated", "10.0%", MESSAGE_NONE, 0);
	/* One key leads back from frame pointers. */
	f->p.call_graph = CALL_GRAPH_FP;
	f->p.stack_size = 0;
	expect(f, "truncated", "10.0%", MESSAGE_CALL_GRAPH, CALL_GRAPH_DWARF);
	/* the window forgets */
	f->p.account.truncated = 0;
	for (int i = 0; i < 5; i++)
		tick(f);
	assert_true(messages_truncated(&f->n) == 0);
	/* A larger copy ends at the same page. */
	f->p.account.truncated = f->p.account.gaps = 100;
	f->p.call_graph = CALL_GRAPH_DWARF;
	for (int i = 0; i < 8; i++)
		expect(f, "gaps", "at unused memory or at another stack", MESSAGE_NONE, 0);
	assert_true(messages_truncated(&f->n) == 0);
	f->p.account.truncated = f->p.account.gaps = 0;
}

/*
 * The module to blame is named and shown; frame pointers, which would make guesses of all the
 * other stacks, are no fix.
 */
TEST(test_broken_module, setup, teardown)
{
	struct profile_module modules[] = { { .id = 7, .name = TEXT("libc.so.6"), .reason = "" },
					    { .id = 9, .name = TEXT("libjvm.so"), .reason = "" } };
	const struct {
		int stop;
		const char *fix;
	} nothing[] = { { UNWIND_CFI_REFUSED, "others, as GHC: none" },
			{ UNWIND_BAD_FRAME, "none: the stack was switched there (OCaml 5" } };
	struct fixture *f = *state;
	char key[24];

	f->p.modules = modules;
	f->p.nr_modules = 2;
	f->p.account.broken = 360;
	for (int i = 0; i < UNWIND_NR_STOPS; i++) {
		const struct profile_message *n;

		if (i <= UNWIND_TRUNCATED || i == UNWIND_PENDING || i == UNWIND_GAP ||
		    i == UNWIND_SWITCHED)
			continue;
		snprintf(key, sizeof(key), "broken-%d", i);
		f->p.broken_by[i] = 360;
		f->p.broken_in[i] = 9;
		expect(f, key, "most in libjvm.so", MESSAGE_MODULES, 0);
		n = find(f, key);
		assert_int_equal(n->module, 9 + 1);
		assert_int_equal(n->severity, MESSAGE_WARN);
		assert_non_null(strstr(n->brief, " in libjvm.so"));
		/* Of several modules none is named. */
		f->p.broken_in[i] = PROFILE_NO_MODULE;
		expect(f, key, profile_broken_name((unsigned int)i), MESSAGE_MODULES, 0);
		n = find(f, key);
		assert_int_equal(n->module, 0);
		assert_null(strstr(n->detail, "most in"));
		f->p.broken_by[i] = 0;
	}
	/* Nor is code of GHC, which has such tables, or of OCaml 5, which switches stacks. */
	for (size_t i = 0; i < ARRAY_SIZE(nothing); i++) {
		f->p.broken_by[nothing[i].stop] = 360;
		f->p.broken_in[nothing[i].stop] = 9;
		snprintf(key, sizeof(key), "broken-%d", nothing[i].stop);
		tick(f);
		assert_non_null(strstr(find(f, key)->fix, nothing[i].fix));
		f->p.broken_by[nothing[i].stop] = 0;
	}
	/* Code without a file is not built again. */
	modules[1].name = TEXT("[anon]");
	f->p.broken_by[UNWIND_NO_CFI] = 360;
	f->p.broken_in[UNWIND_NO_CFI] = 7;
	snprintf(key, sizeof(key), "broken-%d", UNWIND_NO_CFI);
	tick(f);
	assert_non_null(strstr(find(f, key)->fix, "C and C++: build it with -fasynchronous"));
	/* Nor code in assembler. */
	modules[0].path = TEXT("/usr/lib/x86_64-linux-gnu/libgmp.so.10.4.1");
	tick(f);
	assert_non_null(strstr(find(f, key)->fix, "none: its assembler code"));
	modules[0].path = TEXT("");
	f->p.broken_in[UNWIND_NO_CFI] = 9;
	tick(f);
	assert_non_null(strstr(find(f, key)->fix, "generated at run time"));
	/* Of code without a name either may be meant. */
	f->p.broken_in[UNWIND_NO_CFI] = PROFILE_NO_MODULE;
	tick(f);
	assert_non_null(strstr(find(f, key)->fix, "as by a JIT"));
	f->p.broken_by[UNWIND_NO_CFI] = 0;
	f->p.account.guessed = 360;
	f->p.guessed_in = 7;
	expect(f, "guessed", "most callers of libc.so.6,", MESSAGE_MODULES, 0);
	assert_int_equal(find(f, "guessed")->module, 7 + 1);
	f->p.guessed_in = PROFILE_NO_MODULE;
	expect(f, "guessed", "code without unwind tables", MESSAGE_MODULES, 0);
	assert_int_equal(find(f, "guessed")->module, 0);
	f->p.account.guessed = 0;
	f->p.modules = NULL;
	f->p.nr_modules = 0;
}

TEST(test_stacks, setup, teardown)
{
	struct fixture *f = *state;

	for (int i = 0; i < UNWIND_NR_STOPS; i++) {
		if (i <= UNWIND_TRUNCATED || i == UNWIND_PENDING || i == UNWIND_GAP ||
		    i == UNWIND_SWITCHED)
			continue;
		f->p.broken_by[i] = f->p.account.broken = 100;
		tick(f);
		f->p.broken_by[i] = f->p.account.broken = 0;
	}
	assert_int_equal(f->p.nr_messages, UNWIND_NR_STOPS - 6);
	for (uint32_t i = 0; i < f->p.nr_messages; i++)
		assert_true(f->p.messages[i].fix[0] && f->p.messages[i].control != MESSAGE_NONE);
	f->p.account.guessed = 900;
	expect(f, "guessed", "without unwind tables", MESSAGE_MODULES, 0);
	f->p.guessed_in_jit = true;
	expect(f, "guessed", "generated at run time", MESSAGE_MODULES, 0);
	assert_null(strstr(find(f, "guessed")->fix, "-fasynchronous-unwind-tables"));
	f->p.guessed_in_jit = false;
	f->p.guessed_in = OBJECT_ID_KERNEL;
	expect(f, "guessed", "behind a return probe", MESSAGE_MODULES, 0);
	f->p.guessed_in = OBJECT_ID_UNKNOWN;
	f->p.lang.guessed = 800;
	for (int language = LANG_PYTHON; language <= LANG_NR; language++) {
		f->p.lang.guessed_by[language][0] = 500;
		f->p.lang.guessed_by[language][3] = 300;
		expect(f, "guessed", "the native stack is not whole", MESSAGE_MODULES, 0);
		assert_int_equal(strstr(find(f, "guessed")->fix, "-XX:") != NULL,
				 language == LANG_NR);
		assert_int_equal(strstr(find(f, "guessed")->detail, "Java:") != NULL,
				 language == LANG_NR);
		assert_int_equal(strstr(find(f, "guessed")->detail, "JavaScript:") != NULL,
				 language == LANG_NODE);
		assert_null(strstr(find(f, "guessed")->fix, "cap_sys_nice"));
		memset(f->p.lang.guessed_by, 0, sizeof(f->p.lang.guessed_by));
	}
	f->p.lang.guessed = 0;
	f->p.call_graph = CALL_GRAPH_FP;
	expect(f, "guessed", "by frame pointers", MESSAGE_CALL_GRAPH, CALL_GRAPH_DWARF);
	f->p.account.guessed = 0;
	f->p.account.pending = 3;
	expect(f, "pending", "not read yet", MESSAGE_MODULES, 0);
	f->p.account.pending = 0;
	f->p.unwind.verify_differ = 1;
	expect(f, "verify", "libunwind", MESSAGE_NONE, 0);
}

TEST(test_dropped, setup, teardown)
{
	struct fixture *f = *state;

	for (int i = 0; i < DROP_NR; i++) {
		char key[24];

		snprintf(key, sizeof(key), "dropped-%d", i);
		f->p.dropped_by[i] = 5;
		/* These are the last samples before a change of events. */
		if (i == DROP_EVENT_GONE) {
			tick(f);
			assert_null(find(f, key));
			f->p.dropped_by[i] = 0;
			continue;
		}
		expect(f, key, profile_drop_name((enum profile_drop)i),
		       i == DROP_STACKS_FULL || i == DROP_CELLS_FULL ? MESSAGE_RESET : MESSAGE_NONE,
		       0);
		assert_int_equal(find(f, key)->severity, MESSAGE_GRAVE);
		f->p.dropped_by[i] = 0;
	}
	f->p.nr_nameless = 3;
	expect(f, "nameless", "task table full", MESSAGE_RESET, 0);
	assert_int_equal(find(f, "nameless")->severity, MESSAGE_WARN);
	f->p.nr_nameless = 0;
	f->p.nr_names_dropped = 1234;
	expect(f, "renames", "1234 thread names dropped", MESSAGE_NONE, 0);
	assert_int_equal(find(f, "renames")->severity, MESSAGE_INFO);
	f->p.nr_names_dropped = 0;
	f->p.nr_programs_dropped = 1234;
	expect(f, "programs", "1234 programs dropped", MESSAGE_NONE, 0);
	assert_int_equal(find(f, "programs")->severity, MESSAGE_INFO);
	f->p.nr_programs_dropped = 0;
	f->p.nr_forks_shared = 1234;
	expect(f, "children", "1234 children share older mappings", MESSAGE_NONE, 0);
	assert_int_equal(find(f, "children")->severity, MESSAGE_INFO);
	f->p.nr_forks_shared = 0;
}

/* Why functions of scripts have no names, and when that is worth a word. */
TEST(test_languages, setup, teardown)
{
	struct fixture *f = *state;
	struct profile_module module = { .name = TEXT("php8.3"),
					 .path = TEXT("/usr/bin/php8.3"),
					 .reason = "",
					 .fix = "",
					 .source = "" };

	f->p.lang.none_by[LANG_NO_FRAMES] = 5;
	f->p.lang.none_by[LANG_REFUSED] = 17;
	expect(f, "lang-refused", "no permission to read interpreters", MESSAGE_NONE, 0);
	assert_int_equal(find(f, "lang-refused")->count, 17);
	assert_null(find(f, "lang-version"));
	f->p.lang.none_by[LANG_REFUSED] = 0;

	f->p.lang.none_by[LANG_VERSION] = 9;
	module.language_reason = "not supported (8.2 is)";
	module.language_version = lang_packed_version(LANG_PHP, 0x08030000);
	f->p.modules = &module;
	f->p.nr_modules = 1;
	expect(f, "lang-version",
	       "no functions of scripts: PHP 8.3 (php8.3): not supported (8.2 is)", MESSAGE_NONE,
	       0);
	assert_int_equal(find(f, "lang-version")->severity, MESSAGE_INFO);
	/* A large share: text and bottom line have it, instead of code without a symbol. */
	f->p.lang.samples = 60;
	f->p.lang.none_by[LANG_VERSION] = 60;
	f->p.account.taken = f->p.account.complete = 1000;
	f->p.window_samples = 1000;
	f->p.window_unnamed = 55;
	f->p.nr_places = f->p.nr_places_named = 100;
	module.language_fix = "node --perf-basic-prof writes the names";
	expect(f, "lang-version", "no functions of scripts: PHP 8.3", MESSAGE_NONE, 0);
	assert_int_equal(find(f, "lang-version")->severity, MESSAGE_WARN);
	assert_string_equal(find(f, "lang-version")->fix, module.language_fix);
	assert_string_equal(find(f, "lang-version")->brief, "PHP 8.3: not supported (8.2 is)");
	/* An untried version, which was read as another one at first. */
	module.language_reason = lang_untried;
	module.language_version = lang_packed_version(LANG_NODE, 0x0f020000);
	expect(f, "lang-version",
	       "no functions of scripts: V8 15.2 (php8.3): untried, and laid out as no "
	       "known "
	       "version",
	       MESSAGE_NONE, 0);
	assert_string_equal(find(f, "lang-version")->fix, module.language_fix);
	assert_false(find(f, "names")->active);
	f->p.window_unnamed = 300;
	tick(f);
	assert_true(find(f, "names")->active);
	f->p.window_samples = f->p.window_unnamed = f->p.nr_places = f->p.nr_places_named = 0;
	f->p.lang.samples = 0;
	module.language_fix = NULL;
	f->p.nr_modules = 0;
	f->p.lang.none_by[LANG_VERSION] = 0;

	/* Read too late: of few samples, or a small share, nothing is said. */
	f->p.lang = (struct profile_lang){ .certain = 60, .samples = 100, .guessed = 10 };
	f->p.lang.none_by[LANG_NO_READER] = 28;
	f->p.lang.none_by[LANG_BAD_CHAIN] = 2;
	expect(f, "lang-none", "30% of samples of interpreters", MESSAGE_NONE, 0);
	assert_non_null(strstr(find(f, "lang-none")->detail, "ran on before"));
	assert_non_null(strstr(find(f, "lang-none")->fix, "cap_sys_nice"));
	f->p.call_graph = CALL_GRAPH_FP;
	expect(f, "lang-none", "without stack copies", MESSAGE_CALL_GRAPH, CALL_GRAPH_DWARF);
	f->p.call_graph = CALL_GRAPH_DWARF;
	f->p.account.taken = f->p.account.complete = 2001; /* 5 % are 100.05 */
	tick(f);
	assert_false(find(f, "lang-none")->active);
	f->p.account.taken = f->p.account.complete = 1000;
	f->p.lang.none_by[LANG_NO_READER] = 8;
	f->p.lang.guessed = 26;
	f->p.lang.guessed_by[LANG_PYTHON][5] = 26;
	expect(f, "lang-guessed", "26% of samples of interpreters", MESSAGE_MODULES, 0);
	assert_non_null(strstr(find(f, "lang-guessed")->detail, "Python: the thread ran on"));
	assert_non_null(strstr(find(f, "lang-guessed")->fix, "cap_sys_nice"));
	/* It has that right. */
	f->n.goes_first = true;
	tick(f);
	assert_null(strstr(find(f, "lang-guessed")->fix, "cap_sys_nice"));
	f->n.goes_first = false;
	/* The right would not change a stack with frames of other code in between. */
	f->p.lang.guessed_by[LANG_PYTHON][5] = 0;
	f->p.lang.guessed_by[LANG_PYTHON][0] = 26;
	tick(f);
	assert_null(strstr(find(f, "lang-guessed")->fix, "cap_sys_nice"));
	assert_null(strstr(find(f, "lang-guessed")->fix, "-XX:"));
	/* Too deep: no check failed. */
	f->p.broken_by[UNWIND_DEPTH] = 1;
	tick(f);
	assert_false(find(f, "lang-guessed")->active);
	f->p.broken_by[UNWIND_DEPTH] = 0;
	/* All guesses of an untried version: no right would change that. */
	module.language_reason = lang_untried;
	f->p.nr_modules = 1;
	memset(f->p.lang.guessed_by, 0, sizeof(f->p.lang.guessed_by));
	f->p.lang.guessed_by[LANG_PHP][6] = 26;
	expect(f, "lang-guessed", "/usr/bin/php8.3: functions of scripts are guesses",
	       MESSAGE_MODULES, 0);
	assert_null(strstr(find(f, "lang-guessed")->fix, "cap_sys_nice"));
	f->p.nr_modules = 0;
	f->p.lang.guessed = 25;
	tick(f);
	assert_false(find(f, "lang-guessed")->active);
}

/* An interpreter without a reader: it is named alone, whatever other interpreters run. */
TEST(test_unreadable, setup, teardown)
{
	struct fixture *f = *state;
	struct profile_module modules[] = {
		{ .id = 1,
		  .name = TEXT("tclsh8.6"),
		  .path = TEXT("/usr/bin/tclsh8.6"),
		  .reason = "",
		  .self = 80 },
		{ .id = 2,
		  .name = TEXT("php8.3"),
		  .path = TEXT("/usr/bin/php8.3"),
		  .language_reason = "a version of PHP that is not supported",
		  .reason = "",
		  .self = 20 },
	};

	modules[0].language_reason = runtime_fix_in(RUNTIME_SCRIPTS, "/usr/bin/tclsh8.6");
	f->p.modules = modules;
	f->p.nr_modules = 2;
	f->p.window_samples = 1000;
	expect(f, "lang-unread", "functions of Tcl: 8.0% of samples, /usr/bin/tclsh8.6",
	       MESSAGE_MODULES, 0);
	assert_null(strstr(find(f, "lang-unread")->fix, "dbgsym"));
	f->p.lang.none_by[LANG_VERSION] = 9;
	tick(f);
	assert_non_null(strstr(find(f, "lang-version")->detail, "(php8.3): "));
	f->p.lang.none_by[LANG_VERSION] = 0;
	/* A start script that runs for a moment. */
	modules[0].self = 40;
	tick(f);
	assert_false(find(f, "lang-unread")->active);
	f->p.modules = NULL;
	f->p.nr_modules = 0;
	f->p.window_samples = 0;
}

/* A quarter of the samples is in a function that is but an address. */
TEST(test_names, setup, teardown)
{
	struct profile_module modules[] = {
		{ .unnamed = 20, .name = TEXT("a"), .reason = "no", .fix = "other" },
		{ .unnamed = 80, .name = TEXT("[anon]"), .reason = "no perf map", .fix = "flag" },
	};
	struct fixture *f = *state;

	f->p.window_samples = 400;
	f->p.window_unnamed = 100;
	f->p.nr_places = 100;
	f->p.nr_places_named = 97;
	f->p.nr_places_waiting = 20;
	tick(f);
	assert_null(find(f, "names"));
	f->p.nr_places_waiting = 1;
	expect(f, "names", "25.0% of samples", MESSAGE_MODULES, 0);
	assert_int_equal(find(f, "names")->count, 2);
	/* The reason and the fix are of the module with most of them. */
	f->p.modules = modules;
	f->p.nr_modules = 2;
	expect(f, "names", "25.0% of samples have no symbol, most in [anon]: no perf map",
	       MESSAGE_MODULES, 0);
	assert_string_equal(find(f, "names")->fix, modules[1].fix);
	modules[1].fix = "";
	expect(f, "names", "25.0% of samples have no symbol", MESSAGE_MODULES, 0);
	f->p.modules = NULL;
	f->p.nr_modules = 0;
}

/* Samples without a stack are no samples with a symbol: a message reports how many. */
TEST(test_no_stack, setup, teardown)
{
	struct fixture *f = *state;

	f->p.window_samples = 400;
	tick(f);
	assert_null(find(f, "no-stack"));
	f->p.window_no_stack = 100;
	expect(f, "no-stack", "25.0% of samples have no stack", MESSAGE_NONE, 0);
	assert_int_equal(find(f, "no-stack")->count, 100);
	assert_int_equal(find(f, "no-stack")->severity, MESSAGE_WARN);
	f->p.window_no_stack = 4;
	tick(f);
	assert_int_equal(find(f, "no-stack")->severity, MESSAGE_INFO);
}

TEST(test_banner, setup, teardown)
{
	struct fixture *f = *state;

	strcpy(f->p.banner, "kernel hidden: paranoid is 3");
	for (int i = 0; i < 5; i++)
		tick(f);
	assert_int_equal(find(f, "banner")->count, 1);
	strcpy(f->p.banner, "something else");
	tick(f);
	assert_int_equal(find(f, "banner")->count, 2);
	f->p.banner[0] = '\0';
	f->p.target_gone = true;
	strcpy(f->p.target, "pid 42");
	tick(f);
	expect(f, "gone", "pid 42", MESSAGE_NONE, 0);
	assert_int_equal(find(f, "gone")->count, 1);
}

/* The last match of a trap, with its time and number, until the traps are removed. */
TEST(test_trap, setup, teardown)
{
	struct fixture *f = *state;
	struct profile_trap *t = &f->p.trap;
	const struct profile_message *n;

	f->p.starved = true;
	tick(f);
	*t = (struct profile_trap){ .nr = 1, .at = "18:44:56", .what = "lost > 1: 2.0%" };
	tick(f);
	n = find(f, "trap");
	assert_string_equal(n->detail, "trap at 18:44:56: lost > 1: 2.0%");
	assert_int_equal(n->severity, MESSAGE_INFO);
	assert_true(n->active);
	assert_int_equal(n->id, 1);
	/* Kept, with the time of the match. */
	tick(f);
	n = find(f, "trap");
	assert_false(n->active);
	assert_int_equal(n->last_ns, 2 * SECOND);
	t->nr = 3;
	snprintf(t->at, sizeof(t->at), "18:45:07");
	tick(f);
	n = find(f, "trap");
	assert_string_equal(n->detail, "trap at 18:45:07: lost > 1: 2.0%, the last of 3 matches");
	assert_int_equal(n->count, 3);
	assert_int_equal(n->last_ns, 4 * SECOND);
	/* Until the traps are removed; the others stay, and its id is not used again. */
	t->nr = 0;
	tick(f);
	assert_null(find(f, "trap"));
	assert_int_equal(find(f, "starved")->id, 0);
	t->nr = 1;
	tick(f);
	assert_int_equal(find(f, "trap")->id, 2);
	assert_int_equal(find(f, "trap")->first_ns, 6 * SECOND);
}

/* A recording cannot be changed: its messages keep their fixes. */
TEST(test_recorded, setup, teardown)
{
	struct fixture *f = *state;

	f->n.recorded = true;
	f->p.ring_size = f->p.ring_wanted = 0;
	f->p.account.truncated = f->p.account.lost = f->cpus[0].lost = 100;
	f->p.account.guessed = 100;
	tick(f);
	assert_int_equal(find(f, "lost")->control, MESSAGE_NONE);
	assert_int_equal(find(f, "truncated")->control, MESSAGE_NONE);
	assert_true(find(f, "lost")->fix[0] && find(f, "truncated")->fix[0]);
	assert_int_equal(find(f, "guessed")->control, MESSAGE_MODULES);
	/* Of frame pointers: not of code without unwind tables. */
	f->p.call_graph = CALL_GRAPH_FP;
	tick(f);
	assert_int_equal(find(f, "guessed")->control, MESSAGE_NONE);
	assert_non_null(strstr(find(f, "guessed")->detail, "by frame pointers"));
	assert_non_null(strstr(find(f, "guessed")->fix, "record copies of the stack"));
	assert_non_null(strstr(find(f, "truncated")->fix, "record larger stack copies"));
}

/* However many kinds there are, the table holds; texts are clean. */
TEST(test_full, setup, teardown)
{
	struct fixture *f = *state;

	f->p.events[0].event.hardware = true;
	f->p.events[0].running_share = 0.5;
	for (int i = 0; i < 200; i++) {
		snprintf(f->p.events[0].event.name, sizeof(f->p.events[0].event.name),
			 "e%d\033[31m", i);
		tick(f);
	}
	assert_int_equal(f->p.nr_messages, MESSAGES_MAX);
	for (uint32_t i = 0; i < f->p.nr_messages; i++)
		for (const char *c = f->p.messages[i].detail; *c; c++)
			assert_true((unsigned char)*c >= 32);
}

TEST(test_lag)
{
	struct lag l = { 0 };

	assert_int_equal(lag_median(&l), 0);
	lag_note(&l, 5, 10); /* newer than the clock */
	assert_int_equal(l.max_ns, 0);
	assert_int_equal(lag_median(&l), 0);
	for (int i = 0; i < 10; i++)
		lag_note(&l, 1000000, 0);
	for (int i = 0; i < 5; i++)
		lag_note(&l, UINT64_MAX, 1);
	assert_true(l.max_ns == UINT64_MAX - 1);
	/* right to a factor of 1.5 */
	assert_in_range(lag_median(&l), 1000000 * 2 / 3, 1000000 * 3 / 2);
	for (uint64_t ns = 1; ns < 1ULL << 37; ns = ns * 5 / 4 + 1) {
		struct lag one = { 0 };
		double off;

		lag_note(&one, ns, 0);
		off = (double)lag_median(&one) / (double)ns;
		assert_true(off >= 0.66 && off <= 1.51);
	}
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
