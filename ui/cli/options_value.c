// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Parse the values of single options. Strict: the whole word must be valid and
 * in range, else a message says which values are.
 *
 * Runs on: the main thread, before any other.
 */
#include "ui/cli/options_value.h"

#include <errno.h>
#include <pwd.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/sampler.h"
#include "ui/cli/script_fields.h"
#include "ui/text/match.h"
#include "ui/text/number.h"

#define NS_PER_S	  1000000000ULL
#define RING_MAX	  (256ULL << 20)
#define SYMBOL_MEMORY_MIN (1ULL << 20)
#define SYMBOL_MEMORY_MAX (1ULL << 40)

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

	code = number_pids(arg, &o->pids, &o->config.nr_pids);
	o->config.pids = o->pids;
	if (code == -E2BIG)
		return REFUSE(p, EXIT_USAGE,
			      "-%c: more than %d process ids\n"
			      "  use -u USER, or sample the whole system",
			      letter, NUMBER_PIDS_MAX);
	if (code)
		return REFUSE(p, EXIT_USAGE,
			      "-%c %s: invalid list of process ids\n"
			      "  give numbers separated by commas, as in '-%c 1234,5678'",
			      letter, arg, letter);
	return 0;
}

static int parse_pids(struct options_parse *p, const char *arg)
{
	return parse_ids(p, arg, 'p');
}

static int parse_tids(struct options_parse *p, const char *arg)
{
	return parse_ids(p, arg, 't');
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
	regex_t re;

	if (!*arg || regcomp(&re, arg, REG_EXTENDED | REG_NOSUB))
		return REFUSE(p, EXIT_USAGE,
			      "--name %s: invalid regular expression\n"
			      "  give an extended one, as in --name '^nginx$'",
			      arg);
	regfree(&re);
	p->o->config.name = arg;
	return 0;
}

/* Parse a name or number; a number works without an entry in the user database. */
static int parse_user(struct options_parse *p, const char *arg)
{
	const struct passwd *pw;
	uint64_t uid;

	p->o->user_given = true;
	if (*arg && strspn(arg, "0123456789") == strlen(arg)) {
		if (number_u64(arg, strlen(arg), 0, UINT32_MAX - 1, &uid))
			return REFUSE(p, EXIT_USAGE,
				      "-u %s: invalid user id\n"
				      "  must be 0 to %u",
				      arg, UINT32_MAX - 1);
		p->o->config.uid = (uid_t)uid;
		return 0;
	}
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

	if (number_cpus(arg, &o->cpus, &o->config.nr_cpus))
		return REFUSE(p, EXIT_USAGE,
			      "-C %s: invalid list of CPUs\n"
			      "  give numbers and ranges from 0 to %d, as in '-C 0-3,5'",
			      arg, NUMBER_CPUS_MAX - 1);
	o->config.cpus = o->cpus;
	return 0;
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
	double max = p->limits->max_hz > 0 ? p->limits->max_hz : NUMBER_HZ_MAX, hz;

	if (!number_double(arg, 1, max, &hz)) {
		p->o->config.hz = hz;
		p->o->hz_given = true;
		return 0;
	}
	if (p->limits->max_hz > 0 && !number_double(arg, max, 1e15, &hz))
		return REFUSE(p, EXIT_USAGE,
			      "-F %s: above the kernel's limit of %.0f Hz\n"
			      "  kernel.perf_event_max_sample_rate is %.0f\n"
			      "  use a lower -F, or 'sudo sysctl "
			      "kernel.perf_event_max_sample_rate=N'",
			      arg, max, max);
	return REFUSE(p, EXIT_USAGE,
		      "-F %s: invalid frequency\n"
		      "  must be 1 to %.0f samples per second",
		      arg, max);
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

static int parse_seconds(struct options_parse *p, const char *option, const char *arg, double min,
			 double max, uint64_t *ns)
{
	double seconds;

	if (number_double(arg, min, max, &seconds))
		return REFUSE(p, EXIT_USAGE,
			      "%s %s: invalid time\n"
			      "  must be %g to %g seconds, as in '%s 2'",
			      option, arg, min, max, option);
	*ns = (uint64_t)(seconds * (double)NS_PER_S + 0.5);
	return 0;
}

static int parse_delay(struct options_parse *p, const char *arg)
{
	p->o->delay_given = true;
	return parse_seconds(p, "-d", arg, NUMBER_DELAY_MIN, NUMBER_DELAY_MAX,
			     &p->o->config.tick_ns);
}

static int parse_window(struct options_parse *p, const char *arg)
{
	p->o->window_given = true;
	return parse_seconds(p, "--window", arg, 1, NUMBER_WINDOW_MAX, &p->o->config.window_ns);
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
	uint64_t size;

	/* The pages of a ring are a power of two: perf_event_open(2), MMAP layout. */
	if (number_size(arg, RING_MAX, &size) || size < 8192 || (size & (size - 1)))
		return REFUSE(p, EXIT_USAGE,
			      "--ring %s: invalid ring buffer size\n"
			      "  must be a power of two from 8K to 256M, as in '--ring 1M'",
			      arg);
	p->o->config.ring_size = size;
	return 0;
}

static int parse_stack(struct options_parse *p, const char *arg)
{
	uint64_t size;

	p->o->stack_given = true;
	p->o->config.stack_auto = !strcmp(arg, "auto");
	if (p->o->config.stack_auto) {
		p->o->config.stack_size = SAMPLER_STACK_SIZE_AUTO;
		return 0;
	}
	if (number_size(arg, SAMPLER_STACK_SIZE_MAX, &size) || size % 8)
		return REFUSE(p, EXIT_USAGE,
			      "--stack-size %s: invalid size of stack copies\n"
			      "  must be a multiple of 8 up to %u, auto, or 0 for no stacks",
			      arg, SAMPLER_STACK_SIZE_MAX);
	p->o->config.stack_size = (uint32_t)size;
	return 0;
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
	char word[8];
	size_t n = strcspn(arg, ",");

	for (int i = 0; i < CALL_GRAPH_NR; i++) {
		snprintf(word, sizeof(word), "%s", profile_call_graph_name((enum call_graph)i));
		if (strlen(word) != n || strncmp(arg, word, n) || (arg[n] && i != CALL_GRAPH_DWARF))
			continue;
		p->o->config.call_graph = (enum call_graph)i;
		return arg[n] ? parse_stack(p, arg + n + 1) : 0;
	}
	return REFUSE(p, EXIT_USAGE,
		      "--call-graph=%s: must be dwarf, dwarf,SIZE, fp or off\n"
		      "  as in '-g fp', or '-g dwarf,32K' for deep stacks",
		      arg);
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
	int frames = ui_config_frames_parse(arg);

	if (frames < 0)
		return REFUSE(p, EXIT_USAGE,
			      "--frames=%.40s: unknown kind\n"
			      "  must be language, both or native",
			      arg);
	p->o->config.shown_frames = (enum profile_frames)frames;
	p->o->frames_given = true;
	return 0;
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
