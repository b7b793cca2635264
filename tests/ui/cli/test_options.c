// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The command line: accepted values, and for each bad value the exit code and the words of the
 * message.
 * Live: opens perf events.
 */
#include "ui/cli/options.c"

#include "tests/prelude.h"

#include <errno.h>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "ui/text/text.h"
#include "symbols/base/base.h"
#include "symbols/code/code.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/sampler.h"

#define ARGS_MAX 24

struct line {
	struct options o;
	struct err e;
	int code;
	char *words;
	char *argv[ARGS_MAX];
};

/* Parse "words separated by spaces"; "_" is an empty word. */
static void parse_with(struct line *l, const char *words, double max_hz)
{
	const struct options_limits limits = { .max_hz = max_hz };
	int argc = 0;

	memset(l, 0, sizeof(*l));
	l->words = strdup(words);
	l->argv[argc++] = "proftop";
	for (char *w = strtok(l->words, " "); w && argc < ARGS_MAX - 1; w = strtok(NULL, " "))
		l->argv[argc++] = strcmp(w, "_") ? w : "";
	l->code = options_parse(&l->o, argc, l->argv, &limits, &l->e);
}

static void parse(struct line *l, const char *words)
{
	parse_with(l, words, 25000);
}

static void done(struct line *l)
{
	options_fini(&l->o);
	free(l->words);
}

TEST(test_defaults)
{
	struct line l;

	(void)state;
	parse(&l, "");
	assert_int_equal(l.code, EXIT_DONE);
	assert_int_equal(l.o.action, OPTIONS_RUN);
	assert_int_equal(l.o.config.target, TARGET_SYSTEM);
	assert_true(l.o.config.hz == 999);
	assert_int_equal(l.o.config.period, 0);
	assert_int_equal(l.o.config.nr_events, 0);
	assert_int_equal(l.o.config.stack_size, 16384);
	assert_int_equal(l.o.config.ring_size, 0);
	assert_true(l.o.config.tick_ns == 1000000000);
	assert_true(l.o.config.window_ns == 5000000000);
	assert_int_equal(l.o.rows, 100);
	assert_false(l.o.batch);
	assert_false(l.o.config.exact_ticks);
	assert_null(l.o.config.cpus);
	done(&l);
}

/* The kernel may have lowered its limit below our default. */
TEST(test_default_rate_below_limit)
{
	struct line l;

	(void)state;
	parse_with(&l, "", 250);
	assert_int_equal(l.code, EXIT_DONE);
	assert_true(l.o.config.hz == 250);
	done(&l);
	parse_with(&l, "", 0);
	assert_true(l.o.config.hz == 999);
	done(&l);
}

TEST(test_pids_accumulate)
{
	struct line l;

	(void)state;
	parse(&l, "-p 12,34 -p 56 --pid=78");
	assert_int_equal(l.code, EXIT_DONE);
	assert_int_equal(l.o.config.target, TARGET_PIDS);
	assert_int_equal(l.o.config.nr_pids, 4);
	assert_int_equal(l.o.config.pids[0], 12);
	assert_int_equal(l.o.config.pids[2], 56);
	assert_int_equal(l.o.config.pids[3], 78);
	done(&l);
}

TEST(test_events_accumulate)
{
	struct line l;

	(void)state;
	parse(&l, "-e cpu-clock:u,page-faults -e context-switches");
	assert_string_equal(l.e.text, "");
	assert_int_equal(l.code, EXIT_DONE);
	assert_int_equal(l.o.config.nr_events, 3);
	assert_string_equal(l.o.config.events[0].name, "cpu-clock:u");
	assert_false(l.o.config.events[0].kernel);
	assert_string_equal(l.o.config.events[2].name, "context-switches");
	done(&l);
}

TEST(test_cpus)
{
	static const int want[] = { 0, 2, 3, 4, 7 };
	struct line l;

	(void)state;
	parse(&l, "-C 1 -C 7,2-4,0,3");
	assert_int_equal(l.code, EXIT_DONE);
	assert_int_equal(l.o.config.nr_cpus, ARRAY_SIZE(want));
	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		assert_int_equal(l.o.config.cpus[i], want[i]);
	done(&l);
}

/* Without -F: the sum of many CPUs' rates is that of 64; with -C of the given CPUs. */
TEST(test_rate_of_many_cpus)
{
	static const struct {
		uint32_t nr_cpus;
		double hz;
	} cases[] = { { 0, 999 },   { 2, 999 },	  { 64, 999 }, { 65, 983 },
		      { 128, 499 }, { 512, 123 }, { 8192, 19 } };
	struct options_limits limits = { .max_hz = 25000 };
	char *argv[] = { "proftop", "-C", "0-3", NULL };
	struct options o;
	struct err e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		limits.nr_cpus = cases[i].nr_cpus;
		assert_int_equal(options_parse(&o, 1, argv, &limits, &e), EXIT_DONE);
		assert_true(o.config.hz == cases[i].hz);
		options_fini(&o);
	}
	assert_int_equal(options_parse(&o, 3, argv, &limits, &e), EXIT_DONE);
	assert_true(o.config.hz == 999);
	options_fini(&o);
	argv[1] = "-F";
	argv[2] = "4000";
	assert_int_equal(options_parse(&o, 3, argv, &limits, &e), EXIT_DONE);
	assert_true(o.config.hz == 4000);
	options_fini(&o);
}

TEST(test_last_wins)
{
	struct line l;

	(void)state;
	parse(&l, "-F 10 -F 49.5 -d 3 -d 0.25 --ring 64K --ring 1M --stack-size 8k --sort=self "
		  "--sort=total --color=never --color=always --stack-size 65528");
	assert_string_equal(l.e.text, "");
	assert_int_equal(l.code, EXIT_DONE);
	assert_true(l.o.config.hz == 49.5);
	assert_true(l.o.config.tick_ns == 250000000);
	assert_int_equal(l.o.config.ring_size, 1 << 20);
	assert_int_equal(l.o.config.stack_size, 65528);
	assert_int_equal(l.o.set.sort, CONFIG_SORT_TOTAL);
	assert_int_equal(l.o.set.color, CONFIG_COLOR_ALWAYS);
	done(&l);
}

TEST(test_call_graph)
{
	static const struct {
		const char *args;
		int code;
		enum call_graph mode;
		uint32_t size;
	} cases[] = {
		{ "", EXIT_DONE, CALL_GRAPH_DWARF, 16384 },
		{ "-g fp", EXIT_DONE, CALL_GRAPH_FP, 16384 },
		{ "--call-graph=off", EXIT_DONE, CALL_GRAPH_OFF, 16384 },
		{ "-g fp --call-graph dwarf,32K", EXIT_DONE, CALL_GRAPH_DWARF, 32768 },
		{ "-g dwarf,65528", EXIT_DONE, CALL_GRAPH_DWARF, 65528 },
		{ "-g defer", EXIT_DONE, CALL_GRAPH_DEFER, 16384 },
		{ "-g fp --ring 64K", EXIT_DONE, CALL_GRAPH_FP, 16384 },
		{ "-g dwarf,65536", EXIT_USAGE, 0, 0 },
		{ "-g dwarf,", EXIT_USAGE, 0, 0 },
		{ "-g fp,8192", EXIT_USAGE, 0, 0 },
		{ "-g fp,defer", EXIT_USAGE, 0, 0 },
		{ "-g lbr", EXIT_USAGE, 0, 0 },
		{ "-g dwarfs", EXIT_USAGE, 0, 0 },
		{ "-g dwarf,32K --ring 64K", EXIT_USAGE, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct line l;

		parse(&l, cases[i].args);
		if (l.code != cases[i].code)
			fail_msg("%s: %d: %s", cases[i].args, l.code, l.e.text);
		if (!l.code) {
			assert_int_equal(l.o.config.call_graph, cases[i].mode);
			assert_int_equal(l.o.config.stack_size, cases[i].size);
		}
		done(&l);
	}
}

TEST(test_batch)
{
	static const char *const implying[] = { "-b", "-n 3", "--format=text", "--rows=5" };
	struct line l;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(implying); i++) {
		parse(&l, implying[i]);
		assert_int_equal(l.code, EXIT_DONE);
		assert_true(l.o.batch);
		assert_true(l.o.config.exact_ticks);
		assert_true(l.o.config.window_ns == l.o.config.tick_ns);
		done(&l);
	}
	parse(&l, "-b -d 2.5 -n 4 --format=ndjson --rows=0 --filter=^json");
	assert_true(l.o.config.window_ns == 2500000000);
	assert_int_equal(l.o.nr_ticks, 4);
	assert_int_equal(l.o.format, OPTIONS_NDJSON);
	assert_int_equal(l.o.rows, 0);
	assert_string_equal(l.o.set.filter, "^json");
	done(&l);
}

/* Source lines are read for rows only. */
TEST(test_lines_by_format)
{
	static const struct {
		const char *args;
		bool no_lines;
	} cases[] = {
		{ "-b --replay x.data", false },
		{ "--format=ndjson --replay x.data", false },
		{ "--format=perf-script --replay x.data", true },
	};
	struct line l;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		parse(&l, cases[i].args);
		assert_int_equal(l.code, EXIT_DONE);
		assert_int_equal(l.o.config.no_lines, cases[i].no_lines);
		done(&l);
	}
}

/* The past of a screen; batch output has none. */
TEST(test_history)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} times[] = { { "90", 90000000000 },   { "1.5s", 1500000000 },	{ "100ms", 100000000 },
		      { "10m", 600000000000 }, { "1h", 3600000000000 }, { "0", 0 } };
	static const char *const bad[] = { "",	      "m",  ".",   "-1",   "1.2.3",
					   "1 s",     "1d", "1e3", "0x10", "99999999999999999999",
					   "1000000h" };
	struct line l;
	uint64_t ns;

	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		assert_int_equal(time_parse(times[i].text, strlen(times[i].text), &ns), 0);
		assert_int_equal(ns, times[i].ns);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(time_parse(bad[i], strlen(bad[i]), &ns), -EINVAL);
	parse(&l, "");
	assert_int_equal(l.o.config.history_ns, 600000000000);
	assert_int_equal(l.o.config.history_memory, 0);
	done(&l);
	parse(&l, "--history 1h --history-memory 8M");
	assert_int_equal(l.o.config.history_ns, 3600000000000);
	assert_int_equal(l.o.config.history_memory, 8 << 20);
	done(&l);
	parse(&l, "-b");
	assert_int_equal(l.o.config.history_ns, 0);
	done(&l);
}

/* Output that is no terminal turns a screen into batch; --window has no meaning there. */
TEST(test_batch_by_output)
{
	struct line l;

	(void)state;
	parse(&l, "-d 2");
	assert_int_equal(options_set_batch(&l.o, &l.e), EXIT_DONE);
	assert_true(l.o.config.window_ns == 2000000000);
	done(&l);
	parse(&l, "--window 9");
	assert_int_equal(l.code, EXIT_DONE);
	assert_true(l.o.config.window_ns == 9000000000);
	assert_int_equal(options_set_batch(&l.o, &l.e), EXIT_USAGE);
	assert_non_null(strstr(l.e.text, "-d SEC"));
	done(&l);
}

TEST(test_command)
{
	struct line l;

	(void)state;
	parse(&l, "-F 100 -- make -j2 -- -p 1");
	assert_int_equal(l.code, EXIT_DONE);
	assert_int_equal(l.o.config.target, TARGET_COMMAND);
	assert_string_equal(l.o.config.command[0], "make");
	assert_string_equal(l.o.config.command[1], "-j2");
	assert_string_equal(l.o.config.command[2], "--");
	assert_string_equal(l.o.config.command[4], "1");
	assert_null(l.o.config.command[5]);
	assert_int_equal(l.o.config.nr_pids, 0);
	done(&l);
}

TEST(test_user)
{
	struct line l;

	(void)state;
	parse(&l, "-u root");
	assert_int_equal(l.code, EXIT_DONE);
	assert_int_equal(l.o.config.target, TARGET_USER);
	assert_int_equal(l.o.config.uid, 0);
	assert_string_equal(l.o.config.user, "root");
	done(&l);
	/* A number has its name, if there is one. */
	parse(&l, "-u 0");
	assert_string_equal(l.o.config.user, "root");
	done(&l);
	parse(&l, "-u root -u 3999999999");
	assert_int_equal(l.code, EXIT_DONE);
	assert_true(l.o.config.uid == 3999999999U);
	assert_null(l.o.config.user);
	done(&l);
}

TEST(test_flags)
{
	struct line l;

	(void)state;
	parse(&l, "--include-self --no-mouse --ascii -c 100");
	assert_int_equal(l.code, EXIT_DONE);
	assert_true(l.o.config.include_self && !l.o.set.mouse && l.o.set.ascii);
	assert_int_equal(l.o.config.period, 100);
	done(&l);
	parse(&l, "--help");
	assert_int_equal(l.o.action, OPTIONS_HELP);
	done(&l);
	parse(&l, "--version");
	assert_int_equal(l.o.action, OPTIONS_VERSION);
	done(&l);
	parse(&l, "--list-events");
	assert_int_equal(l.o.action, OPTIONS_LIST_EVENTS);
	done(&l);
	parse(&l, "--list-keys");
	assert_int_equal(l.o.action, OPTIONS_LIST_KEYS);
	done(&l);
	parse(&l, "--list-columns");
	assert_int_equal(l.o.action, OPTIONS_LIST_COLUMNS);
	done(&l);
}

static const struct bad {
	const char *words;
	int code;
	const char *names[3]; /* the words of the message */
} bad[] = {
	{ "-F 0", EXIT_USAGE, { "-F 0", "1 to 25000" } },
	{ "-F 10000000", EXIT_USAGE, { "perf_event_max_sample_rate is 25000", "sysctl" } },
	{ "-F 25000.5", EXIT_USAGE, { "25000", "lower" } },
	{ "-F -5", EXIT_USAGE, { "-F -5" } },
	{ "-F nan", EXIT_USAGE, { "-F nan" } },
	{ "-F inf", EXIT_USAGE, { "-F inf" } },
	{ "-F 0x10", EXIT_USAGE, { "-F 0x10" } },
	{ "-F 1e3", EXIT_USAGE, { "-F 1e3" } },
	{ "-F 99Hz", EXIT_USAGE, { "99Hz" } },
	{ "-F _", EXIT_USAGE, { "-F" } },
	{ "-F .", EXIT_USAGE, { "-F" } },
	{ "-F 99999999999999999999999999999999999999", EXIT_USAGE, { "25000" } },
	{ "-c 0", EXIT_USAGE, { "-c 0", "at least 1" } },
	{ "-c 9223372036854775808", EXIT_USAGE, { "-c" } },
	{ "-c 18446744073709551617", EXIT_USAGE, { "-c" } },
	{ "-F 10 -c 10", EXIT_USAGE, { "-F", "-c" } },
	{ "-p 0", EXIT_USAGE, { "-p 0" } },
	{ "-p 1,,2", EXIT_USAGE, { "1,,2" } },
	{ "-p 1,", EXIT_USAGE, { "-p 1," } },
	{ "-p self", EXIT_USAGE, { "self" } },
	{ "-p -1", EXIT_USAGE, { "-1" } },
	{ "-p 99999999999", EXIT_USAGE, { "99999999999" } },
	{ "-u no-such-user-here", EXIT_NO_TARGET, { "no-such-user-here", "unknown user" } },
	{ "-u _", EXIT_NO_TARGET, { "-u" } },
	{ "-u 4294967295", EXIT_USAGE, { "4294967295" } },
	{ "-C 3-1", EXIT_USAGE, { "3-1" } },
	{ "-C 0,", EXIT_USAGE, { "0,", "0-3,5" } },
	{ "-C 1-", EXIT_USAGE, { "1-" } },
	{ "-C -1", EXIT_USAGE, { "-1" } },
	{ "-C 4096", EXIT_USAGE, { "4095" } },
	{ "-C _", EXIT_USAGE, { "-C" } },
	{ "-e no-such-event", EXIT_USAGE, { "no-such-event" } },
	{ "-e cpu-clock,", EXIT_USAGE, { "" } },
	{ "-e cs,cs,cs,cs,cs,cs,cs,cs,cs", EXIT_USAGE, { "too many events" } },
	{ "-d 0.05", EXIT_USAGE, { "-d 0.05", "0.1" } },
	{ "-d 1,5", EXIT_USAGE, { "1,5" } },
	{ "-d 1e9", EXIT_USAGE, { "1e9" } },
	{ "-n -1", EXIT_USAGE, { "-n -1" } },
	{ "-n 1.5", EXIT_USAGE, { "1.5" } },
	{ "--rows=x", EXIT_USAGE, { "--rows x" } },
	{ "--format=xml", EXIT_USAGE, { "xml", "ndjson" } },
	{ "--color=red", EXIT_USAGE, { "red", "never" } },
	{ "--sort=colour", EXIT_USAGE, { "colour" } },
	{ "--filter=(", EXIT_USAGE, { "--filter=(", "regular expression" } },
	{ "--ring 3000", EXIT_USAGE, { "3000", "power of two" } },
	{ "--ring 100K", EXIT_USAGE, { "100K", "power of two" } },
	{ "--ring 16K --stack-size 16K", EXIT_USAGE, { "16384", "at least 65536," } },
	{ "--ring 1T", EXIT_USAGE, { "1T" } },
	{ "--ring 512M", EXIT_USAGE, { "256M" } },
	{ "--ring K", EXIT_USAGE, { "K" } },
	{ "--ring 18446744073709551615G", EXIT_USAGE, { "256M" } },
	{ "--ring 32K", EXIT_USAGE, { "32768", "--stack-size" } },
	{ "--stack-size 64K", EXIT_USAGE, { "64K", "65528" } },
	{ "--stack-size 1001", EXIT_USAGE, { "1001", "multiple of 8" } },
	{ "--frames=some", EXIT_USAGE, { "--frames some", "language, both or native" } },
	{ "--history 10x", EXIT_USAGE, { "--history 10x", "30m" } },
	{ "--history 169h", EXIT_USAGE, { "168h" } },
	{ "--history-memory 1K", EXIT_USAGE, { "--history-memory 1K", "1M" } },
	{ "--window 0", EXIT_USAGE, { "--window 0" } },
	{ "-b --window 5", EXIT_USAGE, { "--window", "-d" } },
	{ "-p 1 -u root", EXIT_USAGE, { "-p", "-u" } },
	{ "--replay x -p 1", EXIT_USAGE, { "--replay" } },
	{ "-b --baseline x", EXIT_USAGE, { "--baseline", "batch output" } },
	{ "-b --baseline x --listen 1", EXIT_USAGE, { "--baseline", "--export FILE.html" } },
	{ "--keep-size 2M", EXIT_USAGE, { "--keep-size", "add --keep DIR" } },
	{ "--keep-time 2h", EXIT_USAGE, { "--keep-time", "add --keep DIR" } },
	{ "--save-files 2 --trap lost", EXIT_USAGE, { "--save-files", "add --save-dir DIR" } },
	{ "--save-size 2G --trap lost", EXIT_USAGE, { "--save-size", "add --save-dir DIR" } },
	{ "--trap-memory 9M --trap lost", EXIT_USAGE, { "--trap-memory", "add --save-dir" } },
	{ "--save-dir /", EXIT_USAGE, { "--save-dir", "add --trap RULE" } },
	{ "--push-timeout 3s", EXIT_USAGE, { "--push-timeout", "add --push URL" } },
	{ "--push-label a=b", EXIT_USAGE, { "--push-label", "add --push URL" } },
	{ "--export-format html", EXIT_USAGE, { "--export-format", "add --export FILE" } },
	{ "--size 80x24", EXIT_USAGE, { "--size", "add --script KEYS" } },
	{ "--script q --listen 1", EXIT_USAGE, { "--listen and --script" } },
	{ "--script q --format=ndjson", EXIT_USAGE, { "--format and --script" } },
	{ "--script q -n 1", EXIT_USAGE, { "--iterations and --script" } },
	{ "--script q --push x", EXIT_USAGE, { "--push and --script" } },
	{ "--export - --format=ndjson", EXIT_USAGE, { "--format and --export -" } },
	{ "--replay x --format=perf-script --filter y", EXIT_USAGE, { "--filter and --f" } },
	{ "--replay x --format=perf-script --listen 1", EXIT_USAGE, { "--listen and --f" } },
	{ "--replay x --format=perf-script --export y", EXIT_USAGE, { "--export and --f" } },
	{ "--replay x --include-self", EXIT_USAGE, { "--include-self and --replay" } },
	{ "--baseline -", EXIT_USAGE, { "not from a pipe" } },
	{ "--replay x --replay y", EXIT_USAGE, { "two recordings: x and y" } },
	{ "--open / --latency", EXIT_USAGE, { "--latency and a folder of --keep" } },
	{ "--replay x --open /", EXIT_USAGE, { "two recordings: x and /" } },
	{ "--replay x -F 99", EXIT_USAGE, { "-F and --replay" } },
	{ "-g fp --replay x", EXIT_USAGE, { "-g and --replay" } },
	{ "--replay x -e cs --stack-size 8", EXIT_USAGE, { "--stack-size and --replay" } },
	{ "--replay x -C 0", EXIT_USAGE, { "-C and --replay" } },
	{ "--replay x -e cs", EXIT_USAGE, { "-e and --replay" } },
	{ "-c 100 --replay x", EXIT_USAGE, { "-c and --replay" } },
	{ "--replay x --ring 256K", EXIT_USAGE, { "--ring and --replay" } },
	{ "--replay x --max-overhead 3", EXIT_USAGE, { "--max-overhead and --replay" } },
	{ "--replay x -t 1", EXIT_USAGE, { "--replay" } },
	{ "--replay x -u 0", EXIT_USAGE, { "--replay" } },
	{ "--replay x -G /", EXIT_USAGE, { "--replay" } },
	{ "--replay x --name y", EXIT_USAGE, { "--replay" } },
	{ "--replay x -- true", EXIT_USAGE, { "--replay" } },
	{ "--replay x --keep /tmp", EXIT_USAGE, { "--keep and a recording" } },
	{ "--replay x --trap lost --save-dir /tmp", EXIT_USAGE, { "--save-dir and a rec" } },
	{ "--record y --replay x", EXIT_USAGE, { "--record", "--replay" } },
	{ "--record - --format=ndjson", EXIT_USAGE, { "--record -", "--format" } },
	{ "--format=perf-script", EXIT_USAGE, { "--replay" } },
	{ "--unwinder=magic", EXIT_USAGE, { "magic", "step" } },
	{ "--languages=python,cobol", EXIT_USAGE, { "cobol", "python" } },
	{ "--verify 0", EXIT_USAGE, { "--verify 0" } },
	{ "-p 1 -- true", EXIT_USAGE, { "more than one target" } },
	{ "-u 0 -- true", EXIT_USAGE, { "more than one target" } },
	{ "true", EXIT_USAGE, { "'true'", "'--'" } },
	{ "true -- false", EXIT_USAGE, { "'true'" } },
	{ "--", EXIT_USAGE, { "after '--'" } },
};

/* Each is refused with its code, in at most three lines that name the problem and the fix. */
TEST(test_bad_values)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct line l;
		int lines = 1;

		parse(&l, bad[i].words);
		if (l.code != bad[i].code || !l.e.text[0])
			fail_msg("%s: exit %d, want %d: %s", bad[i].words, l.code, bad[i].code,
				 l.e.text);
		for (int n = 0; n < 3 && bad[i].names[n]; n++)
			if (!strstr(l.e.text, bad[i].names[n]))
				fail_msg("%s: '%s' is not in: %s", bad[i].words, bad[i].names[n],
					 l.e.text);
		for (const char *c = l.e.text; *c; c++)
			lines += *c == '\n' && c[1];
		if (lines > 3)
			fail_msg("%s: %d lines", bad[i].words, lines);
		done(&l);
	}
}

/* Unknown options, and suggestions, in our words: nothing is printed here. */
TEST(test_unknown_options)
{
	static const struct {
		const char *words, *says, *meant;
	} cases[] = {
		{ "--no-such-option", "unknown option --no-such-option", "--help" },
		{ "--delai 3", "unknown option --delai", "did you mean --delay?" },
		{ "--frequency=3", "unknown option --frequency", "did you mean --freq?" },
		{ "-X", "unknown option -X", "--help" },
		{ "-bX", "unknown option -X", "--help" },
		{ "-Xb", "unknown option -X", "--help" },
		{ "-F", "-F needs a value: HZ", "samples per second" },
		{ "--ring", "--ring needs a value: SIZE", "ring buffer size" },
		{ "--ascii=1", "--ascii takes no value", "ASCII" },
	};
	struct line l;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		parse(&l, cases[i].words);
		assert_int_equal(l.code, EXIT_USAGE);
		assert_non_null(strstr(l.e.text, cases[i].says));
		assert_non_null(strstr(l.e.text, cases[i].meant));
		done(&l);
	}
	parse(&l, "-h");
	assert_int_equal(l.o.action, OPTIONS_HELP);
	done(&l);
	parse(&l, "-V");
	assert_int_equal(l.o.action, OPTIONS_VERSION);
	done(&l);
}

/* The smallest ring goes with the stacks it has to hold. */
TEST(test_ring_and_stack)
{
	static const struct {
		const char *words;
		uint32_t size;
		bool grows;
	} sizes[] = {
		{ "", 16384, true },
		{ "--stack-size=32K", 32768, false },
		{ "--stack-size=auto", 8192, true },
		{ "-b --stack-size=auto", 8192, true },
		{ "-b", 16384, false },
		{ "-n 3", 16384, false },
		{ "--record=/tmp/x.data", 16384, false },
	};
	struct line l;

	(void)state;
	parse(&l, "--ring 64K");
	assert_int_equal(l.code, EXIT_DONE);
	done(&l);
	parse(&l, "--ring 8K --stack-size 0");
	assert_int_equal(l.code, EXIT_DONE);
	done(&l);
	/* On the screen the size follows the stacks, unless it is given. */
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		parse(&l, sizes[i].words);
		assert_int_equal(l.code, EXIT_DONE);
		assert_int_equal(l.o.config.stack_size, sizes[i].size);
		assert_int_equal(l.o.config.stack_auto, sizes[i].grows);
		done(&l);
	}
}

/* Every option of --help is parsed, in 80 columns. */
TEST(test_help)
{
	char text[8192] = "";
	FILE *file = tmpfile();
	int cols = 0;

	(void)state;
	print_help(file);
	rewind(file);
	assert_true(fread(text, 1, sizeof(text) - 1, file) > 500);
	fclose(file);
	for (const char *c = text; *c; c++) {
		cols = *c == '\n' ? 0 : cols + 1;
		assert_true(cols <= 80);
	}
	assert_non_null(strstr(text, "--list-columns"));
	assert_non_null(strstr(text, "-- COMMAND"));
	assert_non_null(strstr(text, "proftop -b -n 5"));
}

/* Each name, letter and key is in the table once. */
TEST(test_listed_once)
{
	const struct setting *a, *b;

	(void)state;
	for (size_t i = 0; (a = setting_at(i)); i++)
		for (size_t k = i + 1; (b = setting_at(k)); k++) {
			if (a->name && b->name &&
			    (!strcmp(a->name, b->name) || (a->letter && a->letter == b->letter)))
				fail_msg("--%s and --%s are the same option", a->name, b->name);
			if (a->saved && b->saved && !strcmp(a->saved, b->saved))
				fail_msg("%s is saved twice", a->saved);
		}
}

TEST(test_numbers)
{
	uint64_t u = 7;
	double d = 7;

	(void)state;
	assert_int_equal(number_u64("18446744073709551615", 20, 0, UINT64_MAX, &u), 0);
	assert_true(u == UINT64_MAX);
	u = 7;
	assert_int_not_equal(number_u64("18446744073709551616", 20, 0, UINT64_MAX, &u), 0);
	assert_int_not_equal(number_u64("", 0, 0, 9, &u), 0);
	assert_int_not_equal(number_u64(" 1", 2, 0, 9, &u), 0);
	assert_true(u == 7);
	assert_int_equal(number_double("5.", 0, 9, &d), 0);
	assert_true(d == 5);
	assert_int_equal(number_double(".5", 0, 9, &d), 0);
	assert_true(d == 0.5);
	assert_int_not_equal(number_double("1.2.3", 0, 9, &d), 0);
	assert_int_not_equal(number_double("", 0, 9, &d), 0);
	assert_int_equal(number_size("2g", 1ULL << 40, &u), 0);
	assert_true(u == 2ULL << 30);
	assert_int_equal(number_size("17179869183G", UINT64_MAX, &u), 0);
	assert_int_not_equal(number_size("17179869184G", UINT64_MAX, &u), 0);
	assert_int_not_equal(number_size("1KK", UINT64_MAX, &u), 0);
	assert_int_not_equal(number_size("", UINT64_MAX, &u), 0);
}

/* --check names processes with code that they made; no name is a command for the terminal. */
TEST(test_check_is_clean)
{
	void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_true(code != MAP_FAILED);
	assert_int_equal(prctl(PR_SET_NAME, "\033[2J\007\x9b"), 0);
	options_print(out, &(struct options){ .action = OPTIONS_CHECK });
	assert_int_equal(fclose(out), 0);
	assert_non_null(strstr(text, "JIT maps"));
	for (const char *p = text; *p; p++)
		assert_true((unsigned char)*p >= ' ' || *p == '\n');
	assert_null(strchr(text, '\x9b'));
	free(text);
	munmap(code, 4096);
	prctl(PR_SET_NAME, "test_options");
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
