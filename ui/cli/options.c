// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Parse the command line with argp: the table of options, defaults. The last of repeated options
 * counts; -p, -t, -e, --trap and --push-label add up; two recordings of --replay and --open are
 * an error.
 *
 * Runs on: the main thread, before any other.
 */
#include "ui/cli/options.h"

#include <errno.h>
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/text.h"
#include "ui/cli/cli.h"

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
	  "memory limit for unwind tables and symbols (default: 512M)", 4 },
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

const struct argp_option *options_of(int key)
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
