// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Parse the values of single options. Strict: the whole word must be valid and
 * in range, else a message says which values are.
 *
 * Runs on: the main thread, before any other.
 */
#include "ui/cli/cli.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/sampler.h"
#include "ui/cli/script_fields.h"
#include "ui/cli/value.h"
#include "ui/text/text.h"
#include "ui/text/number.h"

#define SYMBOL_MEMORY_MIN (1ULL << 20)
#define SYMBOL_MEMORY_MAX (1ULL << 40)

/* Return @code of a check of value.h; a refusal is a usage error. */
static int checked(struct options_parse *p, int code)
{
	if (!code)
		return 0;
	p->code = EXIT_USAGE;
	return EINVAL;
}

/* Parse -p and -t: repeated options add up; the two exclude each other. */
static int parse_ids(struct options_parse *p, const char *arg, char letter)
{
	struct options *o = p->o;
	int code;

	if (o->config.nr_pids && o->tids_given != (letter == 't'))
		return REFUSE(p, EXIT_USAGE,
			      "-p and -t exclude each other\n"
			      "  give processes or threads, not both");
	o->tids_given = letter == 't';

	code = value_pids(letter == 't' ? "-t" : "-p", arg, &o->pids, &o->config.nr_pids, p->e);
	o->config.pids = o->pids;
	return checked(p, code);
}

static int parse_pids(struct options_parse *p, const char *arg)
{
	return parse_ids(p, arg, 'p');
}

static int parse_tids(struct options_parse *p, const char *arg)
{
	return parse_ids(p, arg, 't');
}

static int parse_stacks(struct options_parse *p, const char *arg)
{
	uint64_t pid;

	if (number_u64(arg, strlen(arg), 1, INT32_MAX, &pid))
		return REFUSE(p, EXIT_USAGE,
			      "--stacks %.40s: invalid process id\n"
			      "  give one number, as in 'proftop --stacks 1234'",
			      arg);
	p->o->stacks = (pid_t)pid;
	p->o->action = OPTIONS_STACKS;
	return 0;
}

static int parse_cgroup(struct options_parse *p, const char *arg)
{
	if (!*arg)
		return REFUSE(p, EXIT_USAGE,
			      "-G: empty name\n"
			      "  give a path below /sys/fs/cgroup, a unit, or the id of a "
			      "container");
	p->o->config.cgroup = arg;
	return 0;
}

static int parse_name(struct options_parse *p, const char *arg)
{
	p->o->config.name = arg;
	return checked(p, value_process_name("--name", arg, p->e));
}

/* Parse a name or number; a number works without an entry in the user database. */
static int parse_user(struct options_parse *p, const char *arg)
{
	const struct passwd *pw;

	p->o->user_given = true;
	if (value_is_uid(arg))
		return checked(p, value_uid("-u", arg, &p->o->config.uid, p->e));
	pw = *arg ? getpwnam(arg) : NULL;
	if (!pw)
		return REFUSE(p, EXIT_NO_TARGET,
			      "-u %s: unknown user\n"
			      "  give a user id, or a name from 'getent passwd'",
			      arg);
	p->o->config.uid = pw->pw_uid;
	return 0;
}

/* Parse "0-3,5"; the last -C counts. */
static int parse_cpus(struct options_parse *p, const char *arg)
{
	struct options *o = p->o;

	int code = value_cpus("-C", arg, &o->cpus, &o->config.nr_cpus, p->e);

	o->config.cpus = o->cpus;
	return checked(p, code);
}

/* Set the filter of the preceding event. */
static int parse_event_filter(struct options_parse *p, const char *arg)
{
	struct sampler_config *c = &p->o->config;

	if (!c->nr_events)
		return REFUSE(p, EXIT_USAGE,
			      "--event-filter: no preceding event\n"
			      "  as in -e sched:sched_switch --event-filter 'prev_pid == 0'");
	if (!event_set_filter(&c->events[c->nr_events - 1], arg, p->e))
		return 0;
	p->code = EXIT_USAGE;
	return EINVAL;
}

/* Parse events with a program, which is read in the cage. */
static int read_events(struct sampler_config *c, const char *arg, struct err *e)
{
	int code;

	sampler_cage_start(false);
	code = event_parse_list(c->events, &c->nr_events, EVENTS_MAX, arg, e);
	sampler_cage_stop();
	return code;
}

static int parse_events(struct options_parse *p, const char *arg)
{
	struct sampler_config *c = &p->o->config;

	if (!(event_list_reads_file(arg)
		      ? read_events(c, arg, p->e)
		      : event_parse_list(c->events, &c->nr_events, EVENTS_MAX, arg, p->e)))
		return 0;
	p->code = EXIT_USAGE;
	return EINVAL;
}

static int parse_overhead(struct options_parse *p, const char *arg)
{
	if (!number_double(arg, 0.1, 100, &p->o->config.max_overhead_pct))
		return 0;
	return REFUSE(p, EXIT_USAGE,
		      "--max-overhead %s: invalid percentage\n"
		      "  must be 0.1 to 100 (percent of one CPU)",
		      arg);
}

static int parse_hz(struct options_parse *p, const char *arg)
{
	p->o->hz_given = true;
	return checked(p, value_hz("-F", arg, p->limits->max_hz, &p->o->config.hz, p->e));
}

static int parse_period(struct options_parse *p, const char *arg)
{
	if (number_u64(arg, strlen(arg), 1, INT64_MAX, &p->o->config.period))
		return REFUSE(p, EXIT_USAGE,
			      "-c %s: invalid period\n"
			      "  must be a number of events, at least 1",
			      arg);
	return 0;
}

static int parse_delay(struct options_parse *p, const char *arg)
{
	p->o->delay_given = true;
	return checked(p, value_delay("-d", arg, &p->o->config.tick_ns, p->e));
}

static int parse_window(struct options_parse *p, const char *arg)
{
	p->o->window_given = true;
	return checked(p, value_window("--window", arg, &p->o->config.window_ns, p->e));
}

static int parse_ticks(struct options_parse *p, const char *arg)
{
	if (number_u64(arg, strlen(arg), 0, INT64_MAX, &p->o->nr_ticks))
		return REFUSE(p, EXIT_USAGE,
			      "-n %s: invalid number of ticks\n"
			      "  must be a whole number; 0: until ^C",
			      arg);
	p->o->batch = true;
	return 0;
}

static int parse_rows(struct options_parse *p, const char *arg)
{
	uint64_t rows;

	if (number_u64(arg, strlen(arg), 0, UINT32_MAX, &rows))
		return REFUSE(p, EXIT_USAGE,
			      "--rows=%s: invalid number of rows\n"
			      "  must be a whole number; 0: all",
			      arg);
	p->o->rows = (uint32_t)rows;
	p->o->batch = true;
	return 0;
}

/* Return the index of @arg in @words, or -1. */
static int find_word(const char *arg, const char *const *words, int nr)
{
	for (int i = 0; i < nr; i++)
		if (!strcmp(arg, words[i]))
			return i;
	return -1;
}

static int parse_format(struct options_parse *p, const char *arg)
{
	static const char *const words[] = { "text", "ndjson", "perf-script" };
	int i = find_word(arg, words, ARRAY_SIZE(words));

	if (i < 0)
		return REFUSE(p, EXIT_USAGE,
			      "--format=%s: unknown format\n"
			      "  must be text, ndjson, or perf-script (with --replay)",
			      arg);
	p->o->format = (enum options_format)i;
	p->o->batch = true;
	return 0;
}

static int parse_fields(struct options_parse *p, const char *arg)
{
	const char *bad;

	p->o->fields = script_fields_parse(arg, &bad);
	if (!p->o->fields)
		return REFUSE(p, EXIT_USAGE, "--fields=%s: unknown field '%s'\n  %s", arg, bad,
			      "see 'proftop --help'");
	return 0;
}

static int parse_color(struct options_parse *p, const char *arg)
{
	static const char *const words[] = { "auto", "always", "never" };
	int i = find_word(arg, words, ARRAY_SIZE(words));

	if (i < 0)
		return REFUSE(p, EXIT_USAGE, "--color=%s: must be auto, always or never", arg);
	p->o->color = (enum ui_config_color)i;
	return 0;
}

static int parse_sort(struct options_parse *p, const char *arg)
{
	int sort = ui_config_sort_parse(arg, p->e);

	if (sort < 0) {
		p->code = EXIT_USAGE;
		return EINVAL;
	}
	p->o->sort = (enum ui_config_sort)sort;
	p->o->sort_given = true;
	return 0;
}

/* Refuse an invalid expression; the screen matches it literally instead. */
static int parse_filter(struct options_parse *p, const char *arg)
{
	struct match m;
	bool bad;

	if (strlen(arg) >= MATCH_MAX)
		return REFUSE(p, EXIT_USAGE, "--filter: too long: at most %d characters",
			      MATCH_MAX - 1);
	match_init(&m);
	match_set(&m, arg);
	bad = m.bad;
	match_fini(&m);
	if (bad)
		return REFUSE(p, EXIT_USAGE,
			      "--filter=%s: invalid regular expression\n"
			      "  see regex(7); put a backslash before special characters",
			      arg);
	p->o->filter = arg;
	return 0;
}

static int parse_ring(struct options_parse *p, const char *arg)
{
	uint64_t size = p->o->config.ring_size;
	int code = value_ring("--ring", arg, &size, p->e);

	p->o->config.ring_size = size;
	return checked(p, code);
}

static int parse_stack_as(struct options_parse *p, const char *name, const char *arg)
{
	struct sampler_config *c = &p->o->config;

	p->o->stack_given = true;
	return checked(p, value_stack_size(name, arg, &c->stack_size, &c->stack_auto, p->e));
}

static int parse_stack(struct options_parse *p, const char *arg)
{
	return parse_stack_as(p, "--stack-size", arg);
}

static int parse_symbol_memory(struct options_parse *p, const char *arg)
{
	uint64_t size;

	if (number_size(arg, SYMBOL_MEMORY_MAX, &size) || size < SYMBOL_MEMORY_MIN)
		return REFUSE(p, EXIT_USAGE,
			      "--symbol-memory %s: invalid size\n"
			      "  must be at least 1M, as in '--symbol-memory 1G'",
			      arg);
	p->o->config.symbol_memory = size;
	return 0;
}

/* Parse "dwarf,32K" as perf does: with the size of stack copies. */
static int parse_call_graph(struct options_parse *p, const char *arg)
{
	const char *size = NULL;
	int code = value_call_graph("--call-graph", arg, &p->o->config.call_graph, &size, p->e);

	return code || !size ? checked(p, code) : parse_stack_as(p, "--call-graph dwarf,", size);
}

static int parse_record(struct options_parse *p, const char *arg)
{
	p->o->config.record = arg;
	return 0;
}

static int parse_replay(struct options_parse *p, const char *arg)
{
	return options_take_replay(p, arg);
}

static int parse_baseline(struct options_parse *p, const char *arg)
{
	if (!strcmp(arg, "-"))
		return REFUSE(p, EXIT_USAGE,
			      "--baseline -: not from a pipe\n"
			      "  write it to a file first");
	p->o->baseline = arg;
	return 0;
}

static int parse_symfs(struct options_parse *p, const char *arg)
{
	p->o->config.symfs = arg;
	return 0;
}

static int parse_unwinder(struct options_parse *p, const char *arg)
{
	static const char *const words[] = { "row", "step" };
	int i = find_word(arg, words, ARRAY_SIZE(words));

	if (i < 0)
		return REFUSE(p, EXIT_USAGE, "--unwinder=%s: must be row or step", arg);
	p->o->config.step_only = i == 1;
	return 0;
}

static int parse_verify(struct options_parse *p, const char *arg)
{
	uint64_t n;

	if (number_u64(arg, strlen(arg), 1, UINT32_MAX, &n))
		return REFUSE(p, EXIT_USAGE,
			      "--verify %s: invalid number of samples\n"
			      "  must be at least 1, as in '--verify 1024'",
			      arg);
	p->o->config.verify_every = (uint32_t)n;
	return 0;
}

/* Languages by name, separated by commas. */
static int parse_languages(struct options_parse *p, const char *arg)
{
	p->o->config.languages = 0;
	for (const char *at = arg;; at++) {
		char word[16] = "";
		size_t size = strcspn(at, ",");
		uint32_t bits;

		memcpy(word, at, MIN(size, sizeof(word) - 1));
		bits = strcmp(word, "all") ? config_language(word) : UINT32_MAX;
		if (!bits && strcmp(word, "none"))
			return REFUSE(p, EXIT_USAGE,
				      "--languages=%.40s: unknown language '%s'\n"
				      "  must be java, python, php, ruby, perl, node, all or none",
				      arg, word);
		p->o->config.languages |= bits;
		at += size;
		if (!*at)
			return 0;
	}
}

static int parse_frames(struct options_parse *p, const char *arg)
{
	p->o->frames_given = true;
	return checked(p, value_frames("--frames", arg, &p->o->config.shown_frames, p->e));
}

static int parse_time(struct options_parse *p, const char *arg)
{
	int time = ui_config_time_parse(arg);

	if (time < 0)
		return REFUSE(p, EXIT_USAGE,
			      "--time=%.40s: unknown kind of time\n"
			      "  must be cpu, wait, all or latency",
			      arg);
	p->o->time = (enum ui_config_time)time;
	p->o->time_given = true;
	return 0;
}

static int parse_latency(struct options_parse *p, const char *arg)
{
	p->o->time = CONFIG_TIME_LATENCY;
	p->o->time_given = true;
	return 0;
}

static const struct {
	int key;
	int (*parse)(struct options_parse *p, const char *arg);
} values[] = {
	{ 'p', parse_pids },
	{ 'u', parse_user },
	{ 'C', parse_cpus },
	{ 'e', parse_events },
	{ 'F', parse_hz },
	{ 'c', parse_period },
	{ 'd', parse_delay },
	{ 'n', parse_ticks },
	{ KEY_FORMAT, parse_format },
	{ KEY_FIELDS, parse_fields },
	{ KEY_ROWS, parse_rows },
	{ KEY_SORT, parse_sort },
	{ KEY_FILTER, parse_filter },
	{ KEY_RING, parse_ring },
	{ KEY_STACK, parse_stack },
	{ KEY_SYMBOL_MEMORY, parse_symbol_memory },
	{ KEY_HISTORY, options_parse_history },
	{ KEY_TRAP, options_parse_trap },
	{ KEY_TRAP_MEMORY, options_parse_trap_memory },
	{ KEY_SAVE_DIR, options_parse_save_dir },
	{ KEY_KEEP, options_parse_keep },
	{ KEY_KEEP_SIZE, options_parse_keep_size },
	{ KEY_KEEP_TIME, options_parse_keep_time },
	{ KEY_OPEN, options_parse_open },
	{ KEY_SAVE_FILES, options_parse_save_files },
	{ KEY_SAVE_SIZE, options_parse_save_size },
	{ KEY_HISTORY_MEMORY, options_parse_history_memory },
	{ KEY_WINDOW, parse_window },
	{ KEY_COLOR, parse_color },
	{ KEY_REPLAY, parse_replay },
	{ KEY_BASELINE, parse_baseline },
	{ KEY_SYMFS, parse_symfs },
	{ KEY_RECORD, parse_record },
	{ 't', parse_tids },
	{ 'G', parse_cgroup },
	{ KEY_NAME, parse_name },
	{ KEY_OVERHEAD, parse_overhead },
	{ KEY_EVENT_FILTER, parse_event_filter },
	{ 'g', parse_call_graph },
	{ KEY_UNWINDER, parse_unwinder },
	{ KEY_VERIFY, parse_verify },
	{ KEY_LANGUAGES, parse_languages },
	{ KEY_FRAMES, parse_frames },
	{ KEY_TIME, parse_time },
	{ KEY_LATENCY, parse_latency },
	{ KEY_STACKS, parse_stacks },
};

/* The option's name if it has no meaning for a recording. */
static const char *sampling_option(int key)
{
	static const struct {
		int key;
		const char *name;
	} all[] = {
		{ 'C', "-C" },
		{ 'e', "-e" },
		{ 'F', "-F" },
		{ 'c', "-c" },
		{ 'g', "-g" },
		{ KEY_STACK, "--stack-size" },
		{ KEY_RING, "--ring" },
		{ KEY_OVERHEAD, "--max-overhead" },
		{ KEY_SELF, "--include-self" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (all[i].key == key)
			return all[i].name;
	return NULL;
}

int options_value(struct options_parse *p, int key, const char *arg)
{
	if (sampling_option(key))
		p->o->sampling = sampling_option(key);
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		if (values[i].key == key)
			return values[i].parse(p, arg);
	return options_screen_value(p, key, arg);
}
