// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Check combinations of options, when all are parsed.
 *
 * Runs on: the main thread, before any other.
 */
#include "ui/cli/options.h"

#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ui/cli/cli.h"

#define NS_PER_S     1000000000ULL
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

int options_check(struct options_parse *p, const struct argp_state *state)
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
	/* Batch output has ticks of a fixed length, and a file one size. */
	if (!p->o->stack_given && !p->o->batch && !p->o->script && !c->record && !c->replay)
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
