// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The command line by argp: table of options, their values and combinations, how the screen starts.
 *
 * Runs on: the main thread, before any other.
 */
#include "ui/cli/internal.h"

#include <argp.h>
#include <errno.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "sampler/count/count.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/ring/ring.h"
#include "sampler/sampler.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "symbols/code/code.h"
#include "ui/draw/draw.h"
#include "ui/text/text.h"

/*
 * Set defaults of the screen, and parse --sort.
 */

static const struct {
	const char *name, *help;
} sorts[CONFIG_SORT_NR] = {
	[CONFIG_SORT_SELF] = { "self", "share of samples in the function itself" },
	[CONFIG_SORT_TOTAL] = { "total", "share of samples with the function on the stack" },
	[CONFIG_SORT_SYMBOL] = { "symbol", "name of the function" },
	[CONFIG_SORT_MODULE] = { "module", "program, library or kernel module" },
	[CONFIG_SORT_COMM] = { "comm", "process with most of its samples" },
};

void ui_config_init(struct ui_config *config)
{
	*config = (struct ui_config){
		.mouse = true,
		.tick_ns = 1000000000ull,
		.window_ns = 5 * 1000000000ull,
		.window = PROFILE_WINDOW,
		.sort = CONFIG_SORT_SELF,
	};
}

/*
 * Parse "self", "total", "symbol", "module" or "comm". Return enum ui_config_sort, or
 * -EINVAL with a message.
 */
static int ui_config_sort_parse(const char *text, struct err *e)
{
	for (int i = 0; i < CONFIG_SORT_NR; i++)
		if (!strcasecmp(text, sorts[i].name))
			return i;
	return err_set(e, -EINVAL, "unknown column '%.40s'\n  see proftop --list-columns", text);
}

const char *ui_config_sort_name(enum ui_config_sort sort)
{
	return sorts[(unsigned int)sort < CONFIG_SORT_NR ? sort : CONFIG_SORT_SELF].name;
}

const char *ui_config_sort_help(enum ui_config_sort sort)
{
	return sorts[(unsigned int)sort < CONFIG_SORT_NR ? sort : CONFIG_SORT_SELF].help;
}

static const char *const times[CONFIG_TIME_NR] = { "cpu", "wait", "all", "latency" };

int ui_config_time_parse(const char *text)
{
	for (int i = 0; i < CONFIG_TIME_NR; i++)
		if (!strcmp(text, times[i]))
			return i;
	return -EINVAL;
}

const char *ui_config_time_name(enum ui_config_time time)
{
	return times[(unsigned int)time < CONFIG_TIME_NR ? time : CONFIG_TIME_CPU];
}

const char *ui_config_grouping_name(enum grouping by)
{
	static const char *const names[GROUPING_NR] = { "name", "PID", "container", "unit" };

	return names[(unsigned int)by < GROUPING_NR ? by : GROUPING_NAME];
}

/*
 * Parse the values of single options into struct options. Private to
 * options*.c. Runs on: the main thread, before any other.
 *
 * Parse the values of single options. Strict: the whole word must be valid and
 * in range, else a message says which values are.
 *
 * Runs on: the main thread, before any other.
 */

/* Keys of options without a letter, above all letters. */
enum {
	KEY_FORMAT = 256,
	KEY_ROWS,
	KEY_SORT,
	KEY_FILTER,
	KEY_RING,
	KEY_STACK,
	KEY_WINDOW,
	KEY_REPLAY,
	KEY_BASELINE,
	KEY_SYMFS,
	KEY_RECORD,
	KEY_UNWINDER,
	KEY_VERIFY,
	KEY_NO_INLINE,
	KEY_LANGUAGES,
	KEY_FRAMES,
	KEY_FIELDS,
	KEY_TIME,
	KEY_LATENCY,
	KEY_SYMBOL_MEMORY,
	KEY_HISTORY,
	KEY_HISTORY_MEMORY,
	KEY_TRAP,
	KEY_TRAP_MEMORY,
	KEY_SAVE_DIR,
	KEY_KEEP,
	KEY_KEEP_SIZE,
	KEY_KEEP_TIME,
	KEY_OPEN,
	KEY_SAVE_FILES,
	KEY_SAVE_SIZE,
	KEY_EVENT_FILTER,
	KEY_OVERHEAD,
	KEY_NAME,
	KEY_COLOR,
	KEY_SELF,
	KEY_SCRIPT,
	KEY_EXPORT,
	KEY_LISTEN,
	KEY_PUSH,
	KEY_PUSH_LABEL,
	KEY_PUSH_HEADERS,
	KEY_PUSH_CA,
	KEY_PUSH_TIMEOUT,
	KEY_EXPORT_FORMAT,
	KEY_SIZE,
	KEY_THEME,
	KEY_COMPLETION,
	KEY_NO_MOUSE,
	KEY_FOLD_THREADS,
	KEY_INTERVALS,
	KEY_ASCII,
	KEY_LIST_EVENTS,
	KEY_LIST_COLUMNS,
	KEY_LIST_KEYS,
	KEY_PRINT_CONFIG,
	KEY_CHECK,
	KEY_STACKS,
	KEY_NO_STOP,
	KEY_END, /* end */
};

struct options_parse {
	struct options *o;
	const struct options_limits *limits;
	struct err *e;
	int code;	     /* exit code */
	bool given[KEY_END]; /* by key */
};

/* Set message and exit code; the value makes argp stop. */
#define REFUSE(p, exit_code, ...)                                                                  \
	((p)->code = (exit_code), err_set((p)->e, -EINVAL, __VA_ARGS__), EINVAL)

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

/* Parse events with a program, which is read in the sandbox. */
static int read_events(struct sampler_config *c, const char *arg, struct err *e)
{
	int code;

	sampler_sandbox_start(false);
	code = event_parse_list(c->events, &c->nr_events, EVENTS_MAX, arg, e);
	sampler_sandbox_stop();
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

static int options_take_replay(struct options_parse *p, const char *arg);

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

static int options_parse_history(struct options_parse *p, const char *arg);
static int options_parse_trap_memory(struct options_parse *p, const char *arg);
static int options_parse_keep(struct options_parse *p, const char *arg);
static int options_parse_keep_size(struct options_parse *p, const char *arg);
static int options_parse_keep_time(struct options_parse *p, const char *arg);
static int options_parse_open(struct options_parse *p, const char *arg);
static int options_parse_save_dir(struct options_parse *p, const char *arg);
static int options_parse_save_files(struct options_parse *p, const char *arg);
static int options_parse_save_size(struct options_parse *p, const char *arg);
static int options_parse_trap(struct options_parse *p, const char *arg);
static int options_parse_history_memory(struct options_parse *p, const char *arg);

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

static int options_screen_value(struct options_parse *p, int key, const char *arg);

/*
 * Parse the value of option @key. Return 0, EINVAL with message and code, or -1: @key
 * takes no value.
 */
static int options_value(struct options_parse *p, int key, const char *arg)
{
	if (sampling_option(key))
		p->o->sampling = sampling_option(key);
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		if (values[i].key == key)
			return values[i].parse(p, arg);
	return options_screen_value(p, key, arg);
}

#define NS_PER_S	1000000000ULL
#define WINDOW_NS	(5 * NS_PER_S)
#define ROWS_DEFAULT	100
#define HISTORY_NS	(600 * NS_PER_S)
#define HISTORY_MEMORY	((size_t)64 << 20)
#define TRAP_HISTORY_NS (60 * NS_PER_S)

/* Take everything after "--" as the command. */
static int parse_command(struct options_parse *p, struct argp_state *state)
{
	if (!state->quoted || state->next <= state->quoted)
		return REFUSE(p, EXIT_USAGE,
			      "unexpected argument '%s'\n"
			      "  a command to run goes after '--', a process id after -p",
			      state->argv[state->next - 1]);
	p->o->config.command = &state->argv[state->next - 1];
	state->next = state->argc;
	return 0;
}

static const struct argp_option argp_options[] = {
	{ NULL, 0, NULL, 0, "Target and events:", 1 },
	{ "pid", 'p', "PID,...", 0, "these processes with their threads and children", 1 },
	{ "tid", 't', "TID,...", 0, "only these threads", 1 },
	{ "cgroup", 'G', "CGROUP", 0, "all tasks in a cgroup, including new ones", 1 },
	{ "name", KEY_NAME, "RE", 0,
	  "processes with a matching name, including new ones, and their children", 1 },
	{ "user", 'u', "USER", 0, "all processes of a user (name or number)", 1 },
	{ "cpu", 'C', "CPUS", 0, "only these CPUs, as in 0-3,5", 1 },
	{ "event", 'e', "EVENT,...", 0, "events to sample (default: cycles or cpu-clock)", 1 },
	{ "event-filter", KEY_EVENT_FILTER, "EXPR", 0,
	  "filter for the fields of the preceding tracepoint", 1 },
	{ "freq", 'F', "HZ", 0,
	  "samples per second on each CPU, per event (default: 999, less on more than 64 CPUs)",
	  1 },
	{ "period", 'c', "PERIOD", 0, "one sample every N events instead of -F", 1 },
	{ "time", KEY_TIME, "KIND", 0,
	  "time to show: cpu (default), wait, all (both), or latency (see --latency)", 1 },
	{ "latency", KEY_LATENCY, NULL, 0,
	  "weight each sample with 1 / number of running tasks of the target", 1 },
	{ "replay", KEY_REPLAY, "FILE", 0,
	  "read a perf.data file (-: standard input) instead of the live system", 1 },
	{ "baseline", KEY_BASELINE, "FILE", 0,
	  "compare with a perf.data file or a folder of --keep (on the screen: B)", 1 },
	{ "symfs", KEY_SYMFS, "DIR", 0,
	  "with --replay: root of a copy of the recorded system's files", 1 },
	{ "record", KEY_RECORD, "FILE", 0,
	  "also write the samples to a perf.data file (-: to standard output), for perf and "
	  "--replay",
	  1 },
	{ "trap", KEY_TRAP, "RULE", 0,
	  "stop the screen when a rule matches, as 'total:parse > 50 for 1s'; may be repeated", 1 },
	{ "keep", KEY_KEEP, "DIR", 0, "keep the past in this folder, for --open", 1 },
	{ "keep-size", KEY_KEEP_SIZE, "SIZE", 0, "keep at most SIZE bytes (default: 200M)", 1 },
	{ "keep-time", KEY_KEEP_TIME, "TIME", 0, "keep at most this past (default: 24h)", 1 },
	{ "open", KEY_OPEN, "DIR", 0, "show a folder of --keep, not the live system", 1 },
	{ "save-dir", KEY_SAVE_DIR, "DIR", 0,
	  "save the moments before and after a match as perf.data files instead", 1 },
	{ "save-files", KEY_SAVE_FILES, "N", 0, "save at most N files (default: 16)", 1 },
	{ "save-size", KEY_SAVE_SIZE, "SIZE", 0, "save at most SIZE bytes (default: 4G)", 1 },
	{ "trap-memory", KEY_TRAP_MEMORY, "SIZE", 0,
	  "memory for the records before a match (default: 256M)", 1 },
	{ "max-overhead", KEY_OVERHEAD, "PCT", 0,
	  "lower the rate if proftop uses more than PCT percent of one CPU (default: a quarter of "
	  "all CPUs, for rates above 1000 Hz)",
	  1 },
	{ "include-self", KEY_SELF, NULL, 0, "also sample proftop", 1 },
	{ NULL, 0, NULL, 0, "Display:", 2 },
	{ "delay", 'd', "SEC", 0, "seconds between updates (default: 1)", 2 },
	{ "window", KEY_WINDOW, "SEC", 0, "seconds of samples to show (default: 5)", 2 },
	{ "history", KEY_HISTORY, "TIME", 0,
	  "past that can be shown, as in 90s, 10m, 1h (default: 10m); 0: none", 2 },
	{ "history-memory", KEY_HISTORY_MEMORY, "SIZE", 0,
	  "memory limit for the past (default: 64M)", 2 },
	{ "sort", KEY_SORT, "COL", 0, "sort rows by this column (see --list-columns)", 2 },
	{ "filter", KEY_FILTER, "RE", 0,
	  "show only matching functions, modules or processes; !RE: non-matching", 2 },
	{ "intervals", KEY_INTERVALS, NULL, 0, "show the 95 % confidence interval of SELF%", 2 },
	{ "color", KEY_COLOR, "WHEN", 0, "auto, always or never", 2 },
	{ "theme", KEY_THEME, "THEME", 0, "auto, dark, light, color-blind or mono", 2 },
	{ "ascii", KEY_ASCII, NULL, 0, "draw with ASCII only", 2 },
	{ "fold-threads", KEY_FOLD_THREADS, NULL, 0, "merge threads with similar names: worker-*",
	  2 },
	{ "no-mouse", KEY_NO_MOUSE, NULL, 0, "disable the mouse", 2 },
	{ NULL, 0, NULL, 0, "Output without a screen:", 3 },
	{ "script", KEY_SCRIPT, "KEYS", 0,
	  "send these keys, print the screen and exit; needs no terminal", 3 },
	{ "size", KEY_SIZE, "COLSxLINES", 0,
	  "screen size for --script (default: COLUMNS, LINES or 80x24)", 3 },
	{ "batch", 'b', NULL, 0, "print one profile per tick (default if output is not a terminal)",
	  3 },
	{ "iterations", 'n', "N", 0, "exit after N ticks (implies -b)", 3 },
	{ "format", KEY_FORMAT, "FORMAT", 0, "text, ndjson or perf-script (implies -b)", 3 },
	{ "fields", KEY_FIELDS, "LIST", 0,
	  "with --format=perf-script: also brstack, brstacksym, addr, weight, data_src, phys_addr, "
	  "data_page_size, code_page_size",
	  3 },
	{ "export", KEY_EXPORT, "FILE", 0,
	  "write each tick to FILE (-: standard output); one tick, unless -b or -n are given", 3 },
	{ "export-format", KEY_EXPORT_FORMAT, "FORMAT", 0,
	  "html, svg, pprof, speedscope, firefox, folded, json, text or otlp (default: by the "
	  "ending)",
	  3 },
	{ "listen", KEY_LISTEN, "[ADDR:]PORT", 0,
	  "serve profiles and metrics over HTTP, also with a screen (default address: 127.0.0.1)",
	  3 },
	{ "push", KEY_PUSH, "URL", 0,
	  "send each tick to Pyroscope (URL/ingest), Parca (URL/profiles/writeraw) or "
	  "OpenTelemetry "
	  "(experimental, URL/v1development/profiles); ticks of 10 s, unless -d is given; no "
	  "screen",
	  3 },
	{ "push-label", KEY_PUSH_LABEL, "NAME=VALUE", 0,
	  "label of pushed profiles; may be repeated (default: service_name=proftop, host)", 3 },
	{ "push-headers", KEY_PUSH_HEADERS, "FILE", 0,
	  "headers to send, as 'Authorization: Bearer ...', one per line", 3 },
	{ "push-ca", KEY_PUSH_CA, "FILE", 0, "certificates to trust instead of the system's", 3 },
	{ "push-timeout", KEY_PUSH_TIMEOUT, "TIME", 0, "limit of a request (default: 10s)", 3 },
	{ "rows", KEY_ROWS, "N", 0, "rows per tick, 0: all (default: 100; implies -b)", 3 },
	{ NULL, 0, NULL, 0, "Stacks and memory:", 4 },
	{ "call-graph", 'g', "HOW", 0,
	  "stack unwinding: dwarf[,SIZE] (default), fp (by the kernel: cheap, inexact) or off", 4 },
	{ "ring", KEY_RING, "SIZE", 0,
	  "ring buffer size per CPU, a power of two from 8K to 256M (default: 2M, more or less by "
	  "the rate and the number of CPUs)",
	  4 },
	{ "unwinder", KEY_UNWINDER, "HOW", 0, "row (cached rules) or step (libunwind each time)",
	  4 },
	{ "verify", KEY_VERIFY, "N", 0, "check one sample in N against libunwind", 4 },
	{ "no-inline", KEY_NO_INLINE, NULL, 0, "do not show inlined functions and source lines",
	  4 },
	{ "frames", KEY_FRAMES, "KIND", 0,
	  "frames of interpreted code: language (default), both or native", 4 },
	{ "languages", KEY_LANGUAGES, "LIST", 0,
	  "show frames of languages: java, python, php, ruby, perl, node, all or none (default: "
	  "all)",
	  4 },
	{ "symbol-memory", KEY_SYMBOL_MEMORY, "SIZE", 0,
	  "memory limit for unwind tables and symbols (default: 3 % of all, up to 512M)", 4 },
	{ "stack-size", KEY_STACK, "SIZE", 0,
	  "user stack bytes copied per sample; auto: grow as needed (default: from 16K)", 4 },
	{ NULL, 0, NULL, 0, "Lists and help:", 5 },
	{ "check", KEY_CHECK, NULL, 0,
	  "report features that work on this system, with fixes for the rest", 5 },
	{ "stacks", KEY_STACKS, "PID", 0,
	  "print the stacks of all threads of a process; one that cannot be read otherwise is "
	  "stopped for up to 5 ms",
	  5 },
	{ "no-stop", KEY_NO_STOP, NULL, 0, "with --stacks: stop no thread", 5 },
	{ "list-events", KEY_LIST_EVENTS, NULL, 0, "list events, and which are available", 5 },
	{ "list-columns", KEY_LIST_COLUMNS, NULL, 0, "list columns for --sort", 5 },
	{ "list-keys", KEY_LIST_KEYS, NULL, 0, "list keys", 5 },
	{ "print-config", KEY_PRINT_CONFIG, NULL, 0,
	  "print the settings, and the keys that they bind", 5 },
	{ "completion", KEY_COMPLETION, "SHELL", 0, "print completion for bash, zsh or fish", 5 },
	{ "help", 'h', NULL, 0, "print this help", 5 },
	{ "version", 'V', NULL, 0, "print the version", 5 },
	{ NULL, 0, NULL, 0, NULL, 0 },
};

const struct argp_option *options_table(void)
{
	return argp_options;
}

static const struct argp_option *option_called(const char *name, size_t size)
{
	for (const struct argp_option *o = argp_options; o->name || o->doc; o++)
		if (o->name && !strncmp(o->name, name, size) && !o->name[size])
			return o;
	return NULL;
}

/* Return the option with a key. */
static const struct argp_option *options_of(int key)
{
	for (const struct argp_option *o = argp_options; o->name || o->doc; o++)
		if (o->key == key)
			return o;
	return NULL;
}

/* Explain why "--name" is refused. */
static int explain_long(struct options_parse *p, const char *name)
{
	size_t size = strcspn(name, "=");
	const struct argp_option *o = option_called(name, size);
	char text[64];
	struct text_like like = { .text = text };
	const char *meant;

	if (o && o->arg)
		return REFUSE(p, EXIT_USAGE, "--%s needs a value: %s\n  %s", o->name, o->arg,
			      o->doc);
	if (o)
		return REFUSE(p, EXIT_USAGE, "--%s takes no value\n  %s", o->name, o->doc);
	snprintf(text, sizeof(text), "%.*s", (int)MIN(size, sizeof(text) - 1), name);
	for (o = argp_options; o->name || o->doc; o++)
		if (o->name)
			text_like(&like, o->name);
	meant = like.found ? like.found : like.begins;
	return REFUSE(p, EXIT_USAGE, "unknown option --%s\n  %s%s%ssee 'proftop --help'", text,
		      meant ? "did you mean --" : "", meant ? meant : "", meant ? "? " : "");
}

/* Explain why getopt(3) refused an option: it reports only its position. */
static int explain_unknown(struct options_parse *p, const struct argp_state *state)
{
	const char *last = state->next > 0 ? state->argv[state->next - 1] : "", *letters;

	if (!strncmp(last, "--", 2))
		return explain_long(p, last + 2);
	/* Between letters of one word, next is not advanced yet. */
	letters = state->next < state->argc && *last != '-' ? state->argv[state->next] : last;
	for (const char *at = letters + (*letters == '-'); *at; at++) {
		const struct argp_option *o = options_of(*at);

		if (o && o->arg)
			return REFUSE(p, EXIT_USAGE, "-%c needs a value: %s\n  %s", *at, o->arg,
				      o->doc);
		if (!o)
			return REFUSE(p, EXIT_USAGE, "unknown option -%c\n  see 'proftop --help'",
				      *at);
	}
	return REFUSE(p, EXIT_USAGE, "invalid option '%s'\n  see 'proftop --help'", letters);
}

static void set_flag(struct options *o, int key)
{
	switch (key) {
	case 'b':
		o->batch = true;
		break;
	case KEY_NO_INLINE:
		o->config.no_inline = true;
		break;
	case KEY_SELF:
		o->config.include_self = true;
		break;
	case KEY_INTERVALS:
		o->intervals = true;
		break;
	case KEY_NO_MOUSE:
		o->no_mouse = true;
		break;
	case KEY_FOLD_THREADS:
		o->fold_threads = true;
		break;
	case KEY_ASCII:
		o->ascii = true;
		break;
	case KEY_LIST_EVENTS:
		o->action = OPTIONS_LIST_EVENTS;
		break;
	case KEY_LIST_COLUMNS:
		o->action = OPTIONS_LIST_COLUMNS;
		break;
	case KEY_CHECK:
		o->action = OPTIONS_CHECK;
		break;
	case KEY_NO_STOP:
		o->no_stop = true;
		break;
	case KEY_LIST_KEYS:
		o->action = OPTIONS_LIST_KEYS;
		break;
	case KEY_PRINT_CONFIG:
		o->action = OPTIONS_PRINT_CONFIG;
		break;
	case 'h':
		o->action = OPTIONS_HELP;
		break;
	default:
		o->action = OPTIONS_VERSION;
		break;
	}
}

static int options_check(struct options_parse *p, const struct argp_state *state);

static error_t parse_key(int key, char *arg, struct argp_state *state)
{
	struct options_parse *p = state->input;
	int code;

	switch (key) {
	case ARGP_KEY_INIT:
		state->name = (char *)"proftop";
		return 0;
	case ARGP_KEY_ARG:
		return parse_command(p, state);
	case ARGP_KEY_END:
		return options_check(p, state);
	case ARGP_KEY_ERROR:
		return p->e->text[0] ? 0 : explain_unknown(p, state);
	}
	if (key <= 0 || key >= KEY_END)
		return ARGP_ERR_UNKNOWN;
	p->given[key] = true;
	code = options_value(p, key, arg);
	/* Without a value: a flag. */
	if (code < 0)
		set_flag(p->o, key);
	return MAX(code, 0);
}

static const struct argp argp = {
	.options = argp_options,
	.parser = parse_key,
	.args_doc = "[-- COMMAND...]",
	.doc = "Show live how the CPUs spend their time: the hottest functions with exact "
	       "call stacks, and all lost and throttled samples.\v"
	       "Examples:\n"
	       "  proftop                          the whole system\n"
	       "  proftop -p 1234                  one process\n"
	       "  proftop -F 4999 -- make -j2      a command, which ends with proftop\n"
	       "  proftop -b -n 5 --format=ndjson  five ticks as JSON lines\n"
	       "Permissions, keys and figures: see proftop(1).",
};

/* Set the rate of no -F: by the number of CPUs that are sampled. */
static void set_rate(struct options *o, const struct options_limits *limits)
{
	o->automatic_hz = config_default_hz(o->config.cpus ? o->config.nr_cpus : limits->nr_cpus);
	/* The kernel lowers its limit when interrupts are slow: respect it. */
	if (limits->max_hz >= 1)
		o->automatic_hz = MIN(o->automatic_hz, limits->max_hz);
	if (!o->hz_given)
		o->config.hz = o->automatic_hz;
}

static void set_defaults(struct options *o)
{
	memset(o, 0, sizeof(*o));
	o->rows = ROWS_DEFAULT;
	o->config.languages = UINT32_MAX;
	o->config.stack_size = SAMPLER_STACK_SIZE_DEFAULT;
	o->config.tick_ns = NS_PER_S;
	o->push_timeout_ns = 10 * NS_PER_S;
	o->config.window_ns = WINDOW_NS;
	o->config.history_ns = HISTORY_NS;
	o->config.history_memory = HISTORY_MEMORY;
	o->config.keep = (struct keep_config){ NULL, 200ULL << 20, 86400 * NS_PER_S };
	o->config.saving = (struct saving_config){ NULL, 16, 4ULL << 30, 256u << 20 };
}

int options_parse(struct options *o, int argc, char **argv, const struct options_limits *limits,
		  struct err *e)
{
	struct options_parse p = { .o = o, .limits = limits, .e = e, .code = EXIT_USAGE };
	int rc;

	set_defaults(o);
	e->text[0] = 0;
	rc = argp_parse(&argp, argc, argv,
			ARGP_NO_EXIT | ARGP_NO_HELP | ARGP_NO_ERRS | ARGP_IN_ORDER, NULL, &p);
	if (rc == ENOMEM && !e->text[0]) {
		err_set(e, -ENOMEM, "out of memory");
		return EXIT_FAILED;
	}
	if (rc)
		return p.code;
	o->max_hz = limits->max_hz;
	set_rate(o, limits);
	return o->batch ? options_set_batch(o, e) : EXIT_DONE;
}

int options_set_batch(struct options *o, struct err *e)
{
	if (o->action == OPTIONS_RUN && o->window_given) {
		err_set(e, -EINVAL,
			"--window does not apply to batch output\n"
			"  use -d SEC for longer ticks");
		return EXIT_USAGE;
	}
	if (o->action == OPTIONS_RUN && o->baseline) {
		err_set(e, -EINVAL,
			"--baseline does not apply to batch output: it has no changes\n"
			"  the screen has them; or compare two outputs of -b");
		return EXIT_USAGE;
	}
	if (o->action == OPTIONS_RUN && o->intervals) {
		err_set(e, -EINVAL,
			"--intervals does not apply to batch output: it has no such column\n"
			"  the screen has it: run it in a terminal, or with --script");
		return EXIT_USAGE;
	}
	o->batch = true;
	o->config.exact_ticks = true;
	/* A command is sampled from its first instruction, a recording has everything. */
	o->config.warm_up = o->nr_ticks == 1 && o->config.target != TARGET_COMMAND &&
			    !o->config.record && !o->config.replay;
	o->config.window_ns = o->config.tick_ns;
	/* There is no key to look back with: for traps; requests collect from the history. */
	if (!o->listen)
		o->config.history_ns = o->config.nr_traps || o->config.keep.dir ? TRAP_HISTORY_NS
										: 0;
	return EXIT_DONE;
}

void options_fini(struct options *o)
{
	free(o->pids);
	free(o->cpus);
	free(o->traps);
	free(o->push_labels);
	o->push_labels = NULL;
	o->traps = NULL;
	o->pids = NULL;
	o->cpus = NULL;
}

void options_print_help(FILE *out)
{
	argp_help(&argp, out, ARGP_HELP_STD_HELP, (char *)"proftop");
}

/*
 * Check combinations of options, when all are parsed.
 *
 * Runs on: the main thread, before any other.
 */

#define PUSH_TICK_NS (10 * NS_PER_S)

/* Two records with full stack copies must fit, or every sample is lost. */
#define RECORD_ROOM 4096ULL

/* Refuse options that have an effect only beside another. */
static int check_needs(struct options_parse *p)
{
	static const struct {
		int key, other;
	} needs[] = {
		{ KEY_KEEP_SIZE, KEY_KEEP },	   { KEY_KEEP_TIME, KEY_KEEP },
		{ KEY_SAVE_FILES, KEY_SAVE_DIR },  { KEY_SAVE_SIZE, KEY_SAVE_DIR },
		{ KEY_TRAP_MEMORY, KEY_SAVE_DIR }, { KEY_SAVE_DIR, KEY_TRAP },
		{ KEY_PUSH_LABEL, KEY_PUSH },	   { KEY_PUSH_HEADERS, KEY_PUSH },
		{ KEY_PUSH_CA, KEY_PUSH },	   { KEY_PUSH_TIMEOUT, KEY_PUSH },
		{ KEY_EXPORT_FORMAT, KEY_EXPORT }, { KEY_SIZE, KEY_SCRIPT },
	};

	for (size_t i = 0; i < ARRAY_SIZE(needs); i++) {
		const struct argp_option *other = options_of(needs[i].other);

		if (p->given[needs[i].key] && !p->given[needs[i].other])
			return REFUSE(p, EXIT_USAGE,
				      "--%s has no effect without --%s\n"
				      "  add --%s %s",
				      options_of(needs[i].key)->name, other->name, other->name,
				      other->arg);
	}
	return 0;
}

/* Refuse the first given one of @keys: it has no effect beside @option. */
static int refuse_beside(struct options_parse *p, const int *keys, size_t nr, const char *option,
			 const char *why)
{
	for (size_t i = 0; i < nr; i++)
		if (p->given[keys[i]])
			return REFUSE(p, EXIT_USAGE,
				      "--%s and %s exclude each other\n"
				      "  %s",
				      options_of(keys[i])->name, option, why);
	return 0;
}

/* Refuse options of other output than the one that is printed. */
static int check_output(struct options_parse *p)
{
	static const int profiles[] = { 'b',	    'n',	KEY_FORMAT, KEY_ROWS,
					KEY_LISTEN, KEY_EXPORT, KEY_PUSH };
	static const int tables[] = { 'n',	  KEY_ROWS,   KEY_SORT,	   KEY_FILTER,
				      KEY_FRAMES, KEY_TIME,   KEY_LATENCY, KEY_TRAP,
				      KEY_LISTEN, KEY_EXPORT, KEY_PUSH };
	static const int printed[] = { KEY_FORMAT, KEY_ROWS };

	if (p->o->script)
		return refuse_beside(p, profiles, ARRAY_SIZE(profiles), "--script",
				     "it prints the screen, no profiles");
	if (p->o->format == OPTIONS_PERF_SCRIPT)
		return refuse_beside(p, tables, ARRAY_SIZE(tables), "--format=perf-script",
				     "it prints all samples, with the frames of the processor");
	if (p->o->export_path && !strcmp(p->o->export_path, "-"))
		return refuse_beside(p, printed, ARRAY_SIZE(printed), "--export -",
				     "standard output is the export");
	return 0;
}

/* Check the options of a recording. */
static int check_recording(struct options_parse *p)
{
	const struct sampler_config *c = &p->o->config;

	/* Standard output is the recording's. */
	if (c->record && !strcmp(c->record, "-")) {
		if (p->o->export_path || p->o->script || p->o->format != OPTIONS_TEXT)
			return REFUSE(p, EXIT_USAGE,
				      "--record - and %s exclude each other\n"
				      "  standard output is the recording",
				      p->o->export_path ? "--export"
				      : p->o->script	? "--script"
							: "--format");
		p->o->batch = p->o->quiet = true;
	}
	if (c->keep.dir && c->replay)
		return REFUSE(p, EXIT_USAGE,
			      "--keep and a recording exclude each other\n"
			      "  --keep is for live sampling");
	if (c->keep.dir && !c->history_ns)
		return REFUSE(p, EXIT_USAGE,
			      "--keep needs the history\n"
			      "  leave out --history 0");
	if (c->saving.dir && c->record)
		return REFUSE(p, EXIT_USAGE,
			      "--record and --save-dir exclude each other\n"
			      "  a recording has all moments");
	if (c->saving.dir && c->replay)
		return REFUSE(p, EXIT_USAGE,
			      "--save-dir and a recording exclude each other\n"
			      "  --trap marks the matches in the heat strip; F9 exports one");
	if (c->record && c->replay)
		return REFUSE(p, EXIT_USAGE,
			      "--record and --replay exclude each other\n"
			      "  give one of them");
	if (p->o->sampling && c->replay)
		return REFUSE(p, EXIT_USAGE,
			      "%s and --replay exclude each other\n"
			      "  a recording has its events, rate, CPUs and stacks",
			      p->o->sampling);
	if (p->o->format == OPTIONS_PERF_SCRIPT && !c->replay)
		return REFUSE(p, EXIT_USAGE,
			      "--format=perf-script needs a recording\n"
			      "  add --replay FILE");
	if (p->o->fields && p->o->format != OPTIONS_PERF_SCRIPT)
		return REFUSE(p, EXIT_USAGE,
			      "--fields needs --format=perf-script\n"
			      "  add it, and --replay FILE");
	if (c->symfs && !c->replay)
		return REFUSE(p, EXIT_USAGE,
			      "--symfs needs a recording\n"
			      "  add --replay FILE");
	return 0;
}

/* Complete the options of an export; alone it is one tick without other output. */
static void set_export(struct options *o)
{
	if (!o->export_path)
		return;
	o->quiet = !o->batch || !strcmp(o->export_path, "-");
	if (!o->batch)
		o->nr_ticks = 1;
	o->batch = true;
}

/* Complete the options of a push; alone it goes on without other output. */
static void set_push(struct options *o)
{
	if (!o->push)
		return;
	o->quiet |= !o->batch;
	o->batch = true;
	if (!o->delay_given)
		o->config.tick_ns = PUSH_TICK_NS;
}

static bool options_is_folder(const char *path);

int options_add_time(struct options *o, struct err *e)
{
	struct sampler_config *c = &o->config;
	bool waits = false, clock = false;

	if (o->time == CONFIG_TIME_CPU)
		return 0;
	if (c->replay && o->time == CONFIG_TIME_LATENCY && options_is_folder(c->replay))
		return err_set(e, EINVAL,
			       "--latency and a folder of --keep exclude each other\n"
			       "  it has no weights of samples: record with --record");
	/* The recording must have it. */
	if (c->replay)
		return event_parse(&c->events[c->nr_events++], EVENT_WAITS, e);
	if (!c->nr_events && event_parse(&c->events[c->nr_events++], "cpu-clock", e))
		return EINVAL;
	for (uint32_t i = 0; i < c->nr_events; i++) {
		waits |= c->events[i].wait;
		clock |= c->events[i].clock;
	}
	if (o->time == CONFIG_TIME_ALL && !clock)
		return err_set(e, EINVAL,
			       "--time=all needs an event that counts time\n"
			       "  add -e cpu-clock");
	if (waits)
		return 0;
	if (c->nr_events == EVENTS_MAX)
		return err_set(e, EINVAL, "--time needs an event more than %d\n  give fewer -e",
			       EVENTS_MAX);
	return event_parse(&c->events[c->nr_events++], EVENT_WAITS, e);
}

/* Return the number of targets that are given. */
static int count_targets(const struct options_parse *p)
{
	const struct sampler_config *c = &p->o->config;

	return (c->nr_pids > 0) + p->o->user_given + (c->command != NULL) + (c->replay != NULL) +
	       (c->cgroup != NULL) + (c->name != NULL);
}

/* With --stacks there is no other target. */
static int check_stacks(struct options_parse *p, int nr_targets)
{
	if (p->o->action == OPTIONS_STACKS && (nr_targets || p->o->config.record))
		return REFUSE(p, EXIT_USAGE,
			      "--stacks PID is a target, and prints once\n"
			      "  give it without -p, -t, -u, -G, --name, --replay, --record "
			      "and a command");
	if (p->o->action != OPTIONS_STACKS)
		return REFUSE(p, EXIT_USAGE, "--no-stop needs --stacks PID");
	return 0;
}

/* Check combinations of the options, and complete them. Return as options_value(). */
static int options_check(struct options_parse *p, const struct argp_state *state)
{
	struct sampler_config *c = &p->o->config;
	int nr_targets = count_targets(p), code;
	uint32_t stack = c->call_graph == CALL_GRAPH_DWARF ? c->stack_size : 0;
	uint64_t need = 2 * (stack + RECORD_ROOM);

	if (p->o->action == OPTIONS_STACKS || p->o->no_stop)
		return check_stacks(p, nr_targets);
	if (p->o->action != OPTIONS_RUN)
		return 0;
	if (state->quoted && !c->command)
		return REFUSE(p, EXIT_USAGE,
			      "no command after '--'\n"
			      "  give the command to run, as in 'proftop -- make -j2'");
	if (nr_targets > 1)
		return REFUSE(p, EXIT_USAGE,
			      "more than one target\n"
			      "  give one of -p PID, -t TID, -u USER, -G CGROUP, "
			      "--name RE, --replay FILE, -- COMMAND");
	if (c->record && c->stack_auto)
		return REFUSE(p, EXIT_USAGE,
			      "--record and --stack-size=auto exclude each other\n"
			      "  give a size, as in --stack-size "
			      "32K");
	code = check_recording(p);
	if (!code)
		code = check_needs(p);
	if (!code)
		code = check_output(p);
	if (code)
		return code;
	set_export(p->o);
	set_push(p->o);
	code = options_add_time(p->o, p->e);
	if (code)
		return code;
	if (c->period && p->o->hz_given)
		return REFUSE(p, EXIT_USAGE,
			      "-F and -c exclude each other\n"
			      "  give one of them");
	if (c->ring_size && c->ring_size < need)
		return REFUSE(p, EXIT_USAGE,
			      "--ring: %zu bytes are too few for two samples with stacks of %u "
			      "bytes\n"
			      "  give at least %llu (a power of two), or a smaller --stack-size",
			      c->ring_size, stack, (unsigned long long)need);
	/* A file has one size. */
	if (!p->o->stack_given && !p->o->script && !c->record && !c->replay)
		c->stack_auto = true;
	c->no_lines = p->o->format == OPTIONS_PERF_SCRIPT;
	c->target = c->command	       ? TARGET_COMMAND
		    : p->o->tids_given ? TARGET_TIDS
		    : c->nr_pids       ? TARGET_PIDS
		    : c->cgroup	       ? TARGET_CGROUP
		    : c->name	       ? TARGET_NAME
		    : p->o->user_given ? TARGET_USER
				       : TARGET_SYSTEM;
	return 0;
}

/*
 * Options about the past: --history, --keep, --open, --save-*, --trap. (--time is in
 * options_value.c.)
 *
 * Runs on: the main thread, before any other.
 */

#define HISTORY_MAX_NS (7 * 86400 * 1000000000ULL)
#define MEMORY_MIN     (1ULL << 20)
#define MEMORY_MAX     (1ULL << 40)

/* Options about the past, in options_past.c. */
static int options_parse_history(struct options_parse *p, const char *arg)
{
	if (time_parse(arg, strlen(arg), &p->o->config.history_ns) ||
	    p->o->config.history_ns > HISTORY_MAX_NS)
		return REFUSE(p, EXIT_USAGE,
			      "--history %s: invalid time\n"
			      "  must be 0 to 168h, as in '--history 30m'",
			      arg);
	return 0;
}

/* Parse a size of at least 1M. */
static int parse_memory(struct options_parse *p, const char *option, const char *arg, uint64_t *out)
{
	uint64_t size;

	if (number_size(arg, MEMORY_MAX, &size) || size < MEMORY_MIN)
		return REFUSE(p, EXIT_USAGE,
			      "%s %s: invalid size\n"
			      "  must be 1M to 1024G, as in '%s 256M'",
			      option, arg, option);
	*out = size;
	return 0;
}

static int options_parse_history_memory(struct options_parse *p, const char *arg)
{
	uint64_t size;
	int code = parse_memory(p, "--history-memory", arg, &size);

	if (!code)
		p->o->config.history_memory = size;
	return code;
}

static int options_parse_trap_memory(struct options_parse *p, const char *arg)
{
	uint64_t size;
	int code = parse_memory(p, "--trap-memory", arg, &size);

	if (!code)
		p->o->config.saving.memory = size;
	return code;
}

static int options_parse_save_size(struct options_parse *p, const char *arg)
{
	return parse_memory(p, "--save-size", arg, &p->o->config.saving.max_bytes);
}

static bool options_is_folder(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static int check_folder(struct options_parse *p, const char *option, const char *arg)
{
	if (!options_is_folder(arg))
		return REFUSE(p, EXIT_USAGE,
			      "%s %s: no such folder\n"
			      "  create it first",
			      option, arg);
	return 0;
}

static int options_parse_save_dir(struct options_parse *p, const char *arg)
{
	p->o->config.saving.dir = arg;
	return check_folder(p, "--save-dir", arg);
}

static int options_parse_keep(struct options_parse *p, const char *arg)
{
	p->o->config.keep.dir = arg;
	return check_folder(p, "--keep", arg);
}

static int options_parse_keep_size(struct options_parse *p, const char *arg)
{
	return parse_memory(p, "--keep-size", arg, &p->o->config.keep.size);
}

static int options_parse_keep_time(struct options_parse *p, const char *arg)
{
	if (time_parse(arg, strlen(arg), &p->o->config.keep.time_ns))
		return REFUSE(p, EXIT_USAGE,
			      "--keep-time %s: invalid time\n"
			      "  as in '--keep-time 24h'",
			      arg);
	return 0;
}

/* Take a file or folder to show; refuses a second one. */
static int options_take_replay(struct options_parse *p, const char *arg)
{
	if (p->o->config.replay)
		return REFUSE(p, EXIT_USAGE,
			      "cannot show two recordings: %.60s and %.60s\n"
			      "  --baseline FILE compares with another one",
			      p->o->config.replay, arg);
	p->o->config.replay = arg;
	return 0;
}

static int options_parse_open(struct options_parse *p, const char *arg)
{
	int code = options_take_replay(p, arg);

	return code ? code : check_folder(p, "--open", arg);
}

static int options_parse_save_files(struct options_parse *p, const char *arg)
{
	uint64_t nr;

	if (number_u64(arg, strlen(arg), 1, 1000000, &nr))
		return REFUSE(p, EXIT_USAGE,
			      "--save-files %s: invalid number\n"
			      "  must be 1 to 1000000",
			      arg);
	p->o->config.saving.max_files = (uint32_t)nr;
	return 0;
}

static int options_parse_trap(struct options_parse *p, const char *arg)
{
	struct options *o = p->o;
	struct trap_rule rule;

	if (o->config.nr_traps == TRAP_RULES_MAX)
		return REFUSE(p, EXIT_USAGE,
			      "--trap: too many rules\n"
			      "  at most %d",
			      TRAP_RULES_MAX);
	if (trap_rule_parse(&rule, arg, p->e)) {
		p->code = EXIT_USAGE;
		return EINVAL;
	}
	o->traps = xrealloc_array(o->traps, o->config.nr_traps + 1, sizeof(*o->traps));
	o->traps[o->config.nr_traps++] = rule;
	o->config.traps = o->traps;
	return 0;
}

/*
 * Parse the values of options for the screen: size, keys, theme.
 *
 * Runs on: the main thread, before any other.
 */

#define PUSH_TIMEOUT_MIN_NS 100000000ull
#define PUSH_TIMEOUT_MAX_NS (3600 * 1000000000ull)

static int parse_script(struct options_parse *p, const char *arg)
{
	p->o->script = arg;
	return 0;
}

static int parse_export(struct options_parse *p, const char *arg)
{
	p->o->export_path = arg;
	return *arg ? 0
		    : REFUSE(p, EXIT_USAGE,
			     "--export: empty file name\n"
			     "  name a file, as in --export profile.html");
}

/* The address is checked when it is bound: see serve.h. */
static int parse_listen(struct options_parse *p, const char *arg)
{
	p->o->listen = arg;
	return 0;
}

/* The URL and the labels are checked when they are used: see push.h. */
static int parse_push(struct options_parse *p, const char *arg)
{
	p->o->push = arg;
	return 0;
}

static int parse_push_label(struct options_parse *p, const char *arg)
{
	struct options *o = p->o;

	o->push_labels =
		xrealloc_array(o->push_labels, o->nr_push_labels + 1ull, sizeof(*o->push_labels));
	o->push_labels[o->nr_push_labels++] = arg;
	return 0;
}

static int parse_push_headers(struct options_parse *p, const char *arg)
{
	p->o->push_headers = arg;
	return 0;
}

static int parse_push_ca(struct options_parse *p, const char *arg)
{
	p->o->push_ca = arg;
	return 0;
}

static int parse_push_timeout(struct options_parse *p, const char *arg)
{
	uint64_t *ns = &p->o->push_timeout_ns;

	if (!time_parse(arg, strlen(arg), ns) && *ns >= PUSH_TIMEOUT_MIN_NS &&
	    *ns <= PUSH_TIMEOUT_MAX_NS)
		return 0;
	return REFUSE(p, EXIT_USAGE,
		      "--push-timeout %s: invalid time\n"
		      "  must be 100ms to 1h, as in 10s",
		      arg);
}

/* The name is checked with the path: see export.h. */
static int parse_export_format(struct options_parse *p, const char *arg)
{
	p->o->export_format = arg;
	return 0;
}

static int parse_size(struct options_parse *p, const char *arg)
{
	if (!number_screen_size(arg, strlen(arg), CANVAS_MAX, &p->o->cols, &p->o->rows_of_screen))
		return REFUSE(p, EXIT_USAGE,
			      "--size %s: invalid screen size\n"
			      "  give columns and lines, as in '--size 100x30'",
			      arg);
	return 0;
}

static int parse_theme(struct options_parse *p, const char *arg)
{
	p->o->theme_given = true;
	if (!value_theme("--theme", arg, &p->o->theme, p->e))
		return 0;
	p->code = EXIT_USAGE;
	return EINVAL;
}

static int parse_completion(struct options_parse *p, const char *arg)
{
	if (strcmp(arg, "bash") && strcmp(arg, "zsh") && strcmp(arg, "fish"))
		return REFUSE(p, EXIT_USAGE, "--completion=%s: must be bash, zsh or fish", arg);
	p->o->action = OPTIONS_COMPLETION;
	p->o->shell = arg;
	return 0;
}

static const struct {
	int key;
	int (*parse)(struct options_parse *p, const char *arg);
} options_screen_values[] = {
	{ KEY_SCRIPT, parse_script },
	{ KEY_SIZE, parse_size },
	{ KEY_EXPORT, parse_export },
	{ KEY_LISTEN, parse_listen },
	{ KEY_PUSH, parse_push },
	{ KEY_PUSH_LABEL, parse_push_label },
	{ KEY_PUSH_HEADERS, parse_push_headers },
	{ KEY_PUSH_CA, parse_push_ca },
	{ KEY_PUSH_TIMEOUT, parse_push_timeout },
	{ KEY_EXPORT_FORMAT, parse_export_format },
	{ KEY_THEME, parse_theme },
	{ KEY_COMPLETION, parse_completion },
};

/* Parse the value of an option for the screen, in the same way. */
static int options_screen_value(struct options_parse *p, int key, const char *arg)
{
	for (size_t i = 0; i < ARRAY_SIZE(options_screen_values); i++)
		if (options_screen_values[i].key == key)
			return options_screen_values[i].parse(p, arg);
	return -1;
}
