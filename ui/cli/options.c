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

void ui_config_init(struct ui_config *config)
{
	*config = (struct ui_config){ .saves = false };
	settings_init(&config->set, true);
}

struct options_parse {
	struct options *o;
	const struct options_limits *limits;
	struct err *e;
	int code; /* exit code */
};

/* Set message and exit code; the value makes argp stop. */
#define REFUSE(p, exit_code, ...)                                                                  \
	((p)->code = (exit_code), err_set((p)->e, -EINVAL, __VA_ARGS__), EINVAL)

/* Return whether an option was given. */
static bool is_given(const struct options *o, const char *name)
{
	return setting_given(&o->set, name);
}

#define NS_PER_S	1000000000ULL
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

/* The option at @i; NULL: this setting has none. */
static const struct setting *option_at(size_t i)
{
	const struct setting *s = setting_at(i);

	return s && s->name ? s : NULL;
}

static const struct setting *option_named(const char *name, size_t size)
{
	for (size_t i = 0; setting_at(i); i++) {
		const struct setting *s = option_at(i);

		if (s && !strncmp(s->name, name, size) && !s->name[size])
			return s;
	}
	return NULL;
}

static const struct setting *option_lettered(int letter)
{
	for (size_t i = 0; setting_at(i); i++)
		if (option_at(i) && option_at(i)->letter == letter)
			return option_at(i);
	return NULL;
}

/* Explain why "--name" is refused. */
static int explain_long(struct options_parse *p, const char *name)
{
	size_t size = strcspn(name, "=");
	const struct setting *o = option_named(name, size);
	char text[64];
	struct text_like like = { .text = text };
	const char *meant;

	if (o && o->arg)
		return REFUSE(p, EXIT_USAGE, "--%s needs a value: %s\n  %s", o->name, o->arg,
			      o->help);
	if (o)
		return REFUSE(p, EXIT_USAGE, "--%s takes no value\n  %s", o->name, o->help);
	snprintf(text, sizeof(text), "%.*s", (int)MIN(size, sizeof(text) - 1), name);
	for (size_t i = 0; setting_at(i); i++)
		if (option_at(i))
			text_like(&like, option_at(i)->name);
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
		const struct setting *o = option_lettered(*at);

		if (o && o->arg)
			return REFUSE(p, EXIT_USAGE, "-%c needs a value: %s\n  %s", *at, o->arg,
				      o->help);
		if (!o)
			return REFUSE(p, EXIT_USAGE, "unknown option -%c\n  see 'proftop --help'",
				      *at);
	}
	return REFUSE(p, EXIT_USAGE, "invalid option '%s'\n  see 'proftop --help'", letters);
}

/* Keys of argp: the letter, or this and the row of the table. */
#define KEY_ROWS 256

/* Take option @s of the table. Return 0, or EINVAL with message and code. */
static int take_option(struct options_parse *p, const struct setting *s, const char *text)
{
	struct options *o = p->o;
	char name[40];
	int code;

	o->set.given[setting_index(s->name)] = true;
	if (s->letter)
		snprintf(name, sizeof(name), "-%c", s->letter);
	else
		snprintf(name, sizeof(name), "--%s", s->name);
	if (s->sampling)
		o->sampling = s;
	o->batch |= s->batch;
	code = setting_take(s, o, name, text, p->e);
	if (!code)
		return 0;
	p->code = code == -ESRCH ? EXIT_NO_TARGET : EXIT_USAGE;
	return EINVAL;
}

static int options_check(struct options_parse *p, const struct argp_state *state);

static error_t parse_key(int key, char *arg, struct argp_state *state)
{
	struct options_parse *p = state->input;
	const struct setting *option;

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
	option = key <= 0			 ? NULL
		 : key < KEY_ROWS		 ? option_lettered(key)
		 : key < KEY_ROWS + SETTINGS_MAX ? option_at((size_t)(key - KEY_ROWS))
						 : NULL;
	return option ? take_option(p, option, arg) : ARGP_ERR_UNKNOWN;
}

#define ARGP_ROWS (SETTINGS_MAX + HELP_NR + 1)

/* Make argp's table: a heading for each group, and the options. */
static const struct argp_option *argp_table(void)
{
	static const char *const groups[HELP_NR] = { NULL,
						     "Target and events:",
						     "Display:",
						     "Output without a screen:",
						     "Stacks and memory:",
						     "Lists and help:" };
	static struct argp_option rows[ARGP_ROWS];
	struct argp_option *row = rows;

	for (int i = 1; i < HELP_NR; i++)
		*row++ = (struct argp_option){ .doc = groups[i], .group = i };
	for (size_t i = 0; setting_at(i); i++) {
		const struct setting *s = option_at(i);

		if (s)
			*row++ = (struct argp_option){
				s->name, s->letter ? s->letter : KEY_ROWS + (int)i,
				s->arg,	 0,
				s->help, s->group
			};
	}
	*row = (struct argp_option){ NULL };
	return rows;
}

static struct argp argp = {
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

void options_apply(struct options *o)
{
	o->config.hz = o->set.hz > 0 ? o->set.hz : o->automatic_hz;
	o->config.tick_ns = o->set.tick_ns;
	o->config.window_ns = o->set.window_ns;
	o->config.shown_frames = (enum profile_frames)o->set.frames;
}

/* Set the rate of no -F: by the number of CPUs that are sampled. */
static void set_rate(struct options *o, const struct options_limits *limits)
{
	o->automatic_hz = config_default_hz(o->config.cpus ? o->config.nr_cpus : limits->nr_cpus);
	/* The kernel lowers its limit when interrupts are slow: respect it. */
	if (limits->max_hz >= 1)
		o->automatic_hz = MIN(o->automatic_hz, limits->max_hz);
}

int options_parse(struct options *o, int argc, char **argv, const struct options_limits *limits,
		  struct err *e)
{
	struct options_parse p = { .o = o, .limits = limits, .e = e, .code = EXIT_USAGE };
	int rc;

	memset(o, 0, sizeof(*o));
	settings_init(o, true);
	settings_init(o, false);
	o->set.max_hz = limits->max_hz;
	argp.options = argp_table();
	e->text[0] = 0;
	rc = argp_parse(&argp, argc, argv,
			ARGP_NO_EXIT | ARGP_NO_HELP | ARGP_NO_ERRS | ARGP_IN_ORDER, NULL, &p);
	if (rc == ENOMEM && !e->text[0]) {
		err_set(e, -ENOMEM, "out of memory");
		return EXIT_FAILED;
	}
	if (rc)
		return p.code;
	return o->batch ? options_set_batch(o, e) : EXIT_DONE;
}

int options_set_batch(struct options *o, struct err *e)
{
	if (o->action == OPTIONS_RUN && is_given(o, "window")) {
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
	if (o->action == OPTIONS_RUN && o->set.intervals) {
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
	argp.options = argp_table();
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
	for (size_t i = 0; setting_at(i); i++) {
		const struct setting *s = setting_at(i), *other;

		if (!s->needs || !p->o->set.given[i] || is_given(p->o, s->needs))
			continue;
		other = option_named(s->needs, strlen(s->needs));
		return REFUSE(p, EXIT_USAGE,
			      "--%s has no effect without --%s\n"
			      "  add --%s %s",
			      s->name, other->name, other->name, other->arg);
	}
	return 0;
}

/* Refuse the first given one of @names, which end with NULL: it has no effect beside @option. */
static int refuse_beside(struct options_parse *p, const char *const *names, const char *option,
			 const char *why)
{
	for (; *names; names++)
		if (is_given(p->o, *names))
			return REFUSE(p, EXIT_USAGE,
				      "--%s and %s exclude each other\n"
				      "  %s",
				      *names, option, why);
	return 0;
}

/* Refuse options of other output than the one that is printed. */
static int check_output(struct options_parse *p)
{
	static const char *const profiles[] = { "batch",  "iterations", "format", "rows",
						"listen", "export",	"push",	  NULL };
	static const char *const tables[] = { "iterations", "rows",   "sort",	 "filter",
					      "frames",	    "time",   "latency", "trap",
					      "listen",	    "export", "push",	 NULL };
	static const char *const printed[] = { "format", "rows", NULL };

	if (p->o->script)
		return refuse_beside(p, profiles, "--script", "it prints the screen, no profiles");
	if (p->o->format == OPTIONS_PERF_SCRIPT)
		return refuse_beside(p, tables, "--format=perf-script",
				     "it prints all samples, with the frames of the processor");
	if (p->o->export_path && !strcmp(p->o->export_path, "-"))
		return refuse_beside(p, printed, "--export -", "standard output is the export");
	return 0;
}

/* Check the options of a recording. */
static int check_recording(struct options_parse *p)
{
	const struct sampler_config *c = &p->o->config;
	char option[40];

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
	if (p->o->sampling && p->o->sampling->letter)
		snprintf(option, sizeof(option), "-%c", p->o->sampling->letter);
	else if (p->o->sampling)
		snprintf(option, sizeof(option), "--%s", p->o->sampling->name);
	if (p->o->sampling && c->replay)
		return REFUSE(p, EXIT_USAGE,
			      "%s and --replay exclude each other\n"
			      "  a recording has its events, rate, CPUs and stacks",
			      option);
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
	if (!is_given(o, "delay"))
		o->set.tick_ns = o->config.tick_ns = PUSH_TICK_NS;
}

int options_add_time(struct options *o, struct err *e)
{
	struct sampler_config *c = &o->config;
	bool waits = false, clock = false;

	if (o->set.time == CONFIG_TIME_CPU)
		return 0;
	if (c->replay && o->set.time == CONFIG_TIME_LATENCY && options_is_folder(c->replay))
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
	if (o->set.time == CONFIG_TIME_ALL && !clock)
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

	return (c->nr_pids > 0) + is_given(p->o, "user") + (c->command != NULL) +
	       (c->replay != NULL) + (c->cgroup != NULL) + (c->name != NULL);
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

static void set_target(struct options *o)
{
	struct sampler_config *c = &o->config;

	c->target = c->command		  ? TARGET_COMMAND
		    : o->tids_given	  ? TARGET_TIDS
		    : c->nr_pids	  ? TARGET_PIDS
		    : c->cgroup		  ? TARGET_CGROUP
		    : c->name		  ? TARGET_NAME
		    : is_given(o, "user") ? TARGET_USER
					  : TARGET_SYSTEM;
}

/* Check combinations of the options, and complete them. Return as options_value(). */
static int options_check(struct options_parse *p, const struct argp_state *state)
{
	struct sampler_config *c = &p->o->config;
	int nr_targets = count_targets(p), code;
	uint32_t stack = c->call_graph == CALL_GRAPH_DWARF ? c->stack_size : 0;
	uint64_t need = 2 * (stack + RECORD_ROOM);

	set_rate(p->o, p->limits);
	options_apply(p->o);
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
	if (c->period && is_given(p->o, "freq"))
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
	if (!is_given(p->o, "stack-size") && !p->o->script && !c->record && !c->replay)
		c->stack_auto = true;
	c->no_lines = p->o->format == OPTIONS_PERF_SCRIPT;
	set_target(p->o);
	return 0;
}
