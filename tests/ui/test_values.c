// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Values of settings: a value that an option refuses is refused by its command and its saved
 * setting in the same words; the others are taken by all.
 */
#include "ui/cli/settings.c"
#include "ui/command.c"

#include "ui/cli/internal.h"

#include "tests/prelude.h"
#include "tests/ui/fake.h"

#include <unistd.h>

#include "symbols/base/base.h"
#include "sampler/profile/profile.h"

#define MAX_HZ	   25000
#define VALUES_MAX 16

/* One setting wherever it can be given. */
static const struct test_pair {
	const char *option, *command, *setting; /* the beginnings; NULL: not there */
	const char *good[VALUES_MAX], *bad[VALUES_MAX];
} pairs[] = {
	{ "--ring",
	  "ring",
	  NULL,
	  { "64K", "1M", "4M", "256M", "131072" },
	  { "3M", "3000", "100K", "512M", "4K", "1T", "K", "0", "-1", "1MB" } },
	{ "--stack-size",
	  "stack-size",
	  NULL,
	  { "0", "8", "24K", "65528", "auto" },
	  { "7", "1001", "64K", "65529", "-8", "1G", "automatic", "8.0" } },
	{ "-F",
	  "hz",
	  NULL,
	  { "1", "997", "25000", "49.5" },
	  { "0", "0.5", "-5", "nan", "inf", "0x10", "1e3", "99Hz", ".", "25001", "1000000" } },
	{ "-F", "frequency", NULL, { "1", "997" }, { "-5", "0", "x", "25001" } },
	{ "--window",
	  "window",
	  "window",
	  { "1", "30", "3600", "last 7", "decay", "total" },
	  { "0", "x", "-1", "3601", "last 0", "total 5" } },
	{ "-u", "user", NULL, { "0", "4294967294" }, { "4294967295", "nosuch user" } },
	{ "-d",
	  "delay",
	  "delay",
	  { "0.1", "2", "86400" },
	  { "0.05", "0", "1e9", "x", "-1", "86401", "2s" } },
	{ NULL, "limit", "limit", { "0", "0.5", "100" }, { "101", "-1", "x", "1%" } },
	{ "--theme",
	  "theme",
	  "theme",
	  { "auto", "dark", "light", "color-blind", "mono" },
	  { "pink", "Dark", "dark,light" } },
	{ "--frames",
	  "frames",
	  "frames",
	  { "language", "both", "native" },
	  { "some", "Language", "both,native" } },
	{ "--call-graph",
	  "call-graph",
	  NULL,
	  { "dwarf", "fp", "off", "dwarf,32K", "dwarf,8" },
	  { "lbr", "dwarf,7", "fp,8K", "dwarf,", "dwarf,1M", "Dwarf" } },
	{ "-C",
	  "cpus",
	  NULL,
	  { "0", "0-3,5", "1,1" },
	  { "3-1", "0,", "1-", "-1", "4096", "x", "0x1" } },
	{ "-p",
	  "target pid",
	  NULL,
	  { "1", "12,34" },
	  { "0", "1,,2", "1,", "self", "-1", "99999999999" } },
	{ "-t", "target tid", NULL, { "1", "12,34" }, { "0", "1,,2", "self", "99999999999" } },
	{ "-u", "target user", NULL, { "0", "33", "4294967294" }, { "4294967295" } },
	{ "--name", "target name", NULL, { "^nginx$", "a|b" }, { "(", "a{2,1}", "[" } },
};

/* Give the value to the option. True: taken; else the message. */
static bool option_takes(const char *option, const char *value, char said[static 512])
{
	const struct options_limits limits = { .max_hz = MAX_HZ };
	char *argv[] = { "proftop", strdup(option), strdup(value), NULL };
	char *joined[] = { "proftop", NULL, NULL };
	char both[128];
	struct options o;
	struct err e = { .text = "" };
	int code;

	snprintf(both, sizeof(both), "%s=%s", option, value);
	joined[1] = both;
	code = options_parse(&o, option[1] == '-' ? 2 : 3, option[1] == '-' ? joined : argv,
			     &limits, &e);
	snprintf(said, 512, "%.511s", e.text);
	options_fini(&o);
	free(argv[1]);
	free(argv[2]);
	return code == EXIT_DONE;
}

static bool command_takes(const char *command, const char *value, char said[static 512])
{
	char text[128];
	struct bench b;
	bool taken;

	bench_init(&b, 80, 24, true);
	b.sampler.max_hz = MAX_HZ;
	model_take(&b.st, fake_profile(4, NULL));
	b.st.message[0] = '\0';
	b.st.message_bad = false;
	snprintf(text, sizeof(text), "%s %s", command, value);
	command_run(&b.st, text);
	taken = !b.st.message_bad;
	snprintf(said, 512, "%s", b.st.message);
	bench_fini(&b);
	return taken;
}

static bool setting_takes(const char *setting, const char *value, char said[static 512])
{
	char path[] = "/tmp/proftop-values-XXXXXX";
	int fd = mkstemp(path);
	struct settings s = { .theme = 0 };
	struct err e = { .text = "" };
	int code;

	assert_true(fd >= 0);
	dprintf(fd, "%s = %s\n", setting, value);
	close(fd);
	code = settings_read(path, &s, &e);
	unlink(path);
	/* Without "path:1: ". */
	snprintf(said, 512, "%s", code ? strstr(e.text, ":1: ") + 4 : "");
	return !code;
}

/* Compare two messages but for the name, the separators of lines, and the example. */
static void assert_same_words(const char *a, const char *b)
{
	char words[2][512];
	const char *const texts[] = { a, b };

	for (int i = 0; i < 2; i++) {
		const char *at = strstr(texts[i], ": "), *end;
		size_t n = 0;

		assert_non_null(at);
		end = strstr(at, ", as in ");
		for (; *at && at != end; at++)
			if (!strchr("\n; ", *at))
				words[i][n++] = *at;
		words[i][n] = '\0';
	}
	/* A message of the screen may be cut. */
	words[0][MIN(strlen(words[0]), strlen(words[1]))] = '\0';
	assert_string_equal(words[0], words[1]);
}

static void check(const struct test_pair *p, const char *value, bool good)
{
	char option[512] = "", command[512] = "", setting[512] = "";
	bool taken = p->option ? option_takes(p->option, value, option) : good;

	if (taken != good || command_takes(p->command, value, command) != good ||
	    (p->setting && setting_takes(p->setting, value, setting) != good))
		fail_msg("%s '%s': %s%s%s%s%s", p->command, value, good ? "refused" : "taken",
			 "\n option: ", option, "\n command: ", command);
	if (good)
		return;
	if (p->option)
		assert_same_words(option, command);
	if (p->setting)
		assert_same_words(setting, command);
}

TEST(test_pairs)
{
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		for (int k = 0; k < VALUES_MAX && pairs[i].good[k]; k++)
			check(&pairs[i], pairs[i].good[k], true);
		for (int k = 0; k < VALUES_MAX && pairs[i].bad[k]; k++)
			check(&pairs[i], pairs[i].bad[k], false);
	}
}

/* Words of the table are the names of their values. */
TEST(test_words)
{
	const struct setting *frames = setting_at(setting_index("frames"));
	const struct setting *graph = setting_at(setting_index("call-graph"));
	const struct setting *theme = setting_at(setting_index("theme"));

	for (int i = 0; i < FRAMES_NR; i++)
		assert_string_equal(frames->words[i], profile_frames_name((enum profile_frames)i));
	for (int i = 0; i < CALL_GRAPH_NR; i++)
		assert_string_equal(graph->words[i], profile_call_graph_name((enum call_graph)i));
	assert_null(frames->words[FRAMES_NR]);
	assert_null(graph->words[CALL_GRAPH_NR]);
	assert_null(theme->words[THEME_NR]);
}

/* The sampler gets the value that was typed. */
TEST(test_reaches)
{
	struct settings set;
	struct bench b;

	bench_init(&b, 80, 24, true);
	model_take(&b.st, fake_profile(4, NULL));
	command_run(&b.st, "row x");
	assert_non_null(strstr(look(&b), "row x: must be a number from 1"));
	command_run(&b.st, "pid abc");
	assert_non_null(strstr(look(&b), "pid abc: not a number"));
	command_run(&b.st, "frequency 49");
	assert_true(b.sampler.rate == 49);
	command_run(&b.st, "user 33");
	assert_true(b.st.scope.by_user && b.st.scope.uid == 33);
	b.st.scope.by_user = false;
	/* Refused before, though --window took it. The header, F2 and W have it also. */
	b.st.latest->window = PROFILE_TOTAL;
	command_run(&b.st, "window 60");
	assert_int_equal(b.sampler.span_ns, 60000000000);
	assert_int_equal(b.sampler.window, PROFILE_WINDOW);
	b.st.latest->window = PROFILE_WINDOW;
	assert_non_null(strstr(look(&b), "last 60s"));
	actions_settings(&b.st, &set);
	assert_int_equal(set.window_ns, 60000000000);
	command_run(&b.st, "window decay");
	assert_int_equal(b.sampler.window, PROFILE_DECAY);
	assert_int_equal(b.sampler.span_ns, 60000000000);
	b.st.message[0] = '\0';
	command_run(&b.st, "show a(");
	assert_non_null(strstr(look(&b), "a(: not a regular expression (Unmatched ("));
	b.st.message[0] = '\0';
	command_run(&b.st, "show a.c");
	assert_null(strstr(look(&b), "regular expression"));
	command_run(&b.st, "ring 2M");
	assert_int_equal(b.sampler.ring_size, 2 << 20);
	command_run(&b.st, "ring 3M");
	assert_int_equal(b.sampler.ring_size, 2 << 20);
	command_run(&b.st, "stack-size 24K");
	assert_true(b.sampler.stack_size == 24576 && !b.sampler.stack_auto);
	command_run(&b.st, "stack-size 7");
	assert_int_equal(b.sampler.stack_size, 24576);
	command_run(&b.st, "stack-size auto");
	assert_true(b.sampler.stack_auto);
	command_run(&b.st, "call-graph dwarf,32K");
	assert_true(b.sampler.stack_size == 32768 && !b.sampler.stack_auto);
	bench_fini(&b);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
