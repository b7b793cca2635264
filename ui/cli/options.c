// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The table of settings (settings.inc) with the check and the error of each value; the command line
 * by argp: options, and their combinations; the lists and reports that options print.
 *
 * Runs on: the main thread.
 */
#include "ui/cli/internal.h"

#include <argp.h>
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <regex.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sampler/count/count.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/ring/ring.h"
#include "sampler/sampler.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "ui/cli/cli.h"
#include "ui/draw/draw.h"
#include "ui/key/key.h"
#include "ui/text/text.h"

#define S_AS_NS	   1000000000.0
#define MEMORY_MIN (1 << 20)
#define MEMORY_MAX (1ULL << 40)

static const char *const theme_words[THEME_NR + 1] = {
	[THEME_AUTO] = "auto",	 [THEME_DARK] = "dark",
	[THEME_LIGHT] = "light", [THEME_COLOR_BLIND] = "color-blind",
	[THEME_MONO] = "mono",
};
static const char *const time_words[] = { "cpu", "wait", "all", "latency", NULL };
static const char *const frames_words[] = { "language", "both", "native", NULL };
static const char *const grouping_words[] = { "name", "PID", "container", "unit", NULL };
static const char *const flame_words[] = { "kind", "module", NULL };
static const char *const sort_words[] = { "self", "total", "symbol", "module", "comm", NULL };
static const char *const color_words[] = { "auto", "always", "never", NULL };
static const char *const format_words[] = { "text", "ndjson", "perf-script", NULL };
static const char *const unwinder_words[] = { "row", "step", NULL };
static const char *const call_graph_words[] = { "dwarf", "fp", "off", "defer", NULL };
static const char *const shell_words[] = { "bash", "zsh", "fish", NULL };
static const char *const window_words[] = { "last", "decay", "total", NULL };

static const char *sort_name(enum ui_config_sort sort)
{
	return sort_words[(unsigned int)sort < CONFIG_SORT_NR ? sort : CONFIG_SORT_SELF];
}

const char *ui_config_grouping_name(enum grouping by)
{
	return grouping_words[(unsigned int)by < GROUPING_NR ? by : GROUPING_NAME];
}

/* Refuse @text: the words of the row, or its list of values. */
static int setting_refuse(const struct setting *s, const char *name, const char *text,
			  struct err *e);

/* ---- numbers ---- */

#define DOUBLE_CHARS_MAX 32
#define NUMBER_CPUS_MAX	 4096

/* Parse digits with at most one point. */
static int number_double(const char *text, double min, double max, double *out)
{
	size_t size = strlen(text), digits = strspn(text, "0123456789");
	size_t rest = text[digits] == '.' ? strspn(text + digits + 1, "0123456789") : 0;
	double value;

	if (size > DOUBLE_CHARS_MAX || digits + rest == 0 ||
	    digits + rest + (text[digits] == '.') != size)
		return -EINVAL;
	value = strtod(text, NULL);
	if (!(value >= min && value <= max))
		return -EINVAL;
	*out = value;
	return 0;
}

/* Parse digits with an optional K, M or G (powers of 1024, either case). */
static int number_size(const char *text, uint64_t max, uint64_t *out)
{
	static const char suffixes[] = "KMG";
	size_t size = strlen(text);
	unsigned int shift = 0;
	uint64_t value;

	for (unsigned int i = 0; size && i < 3; i++)
		if ((text[size - 1] & ~0x20) == suffixes[i])
			shift = 10 * (i + 1);
	if (number_u64(text, size - (shift > 0), 0, max >> shift, &value))
		return -EINVAL;
	*out = value << shift;
	return 0;
}

/* Parse one "5" or "0-3" of @size bytes into @seen; return the number of new CPUs, or -EINVAL. */
static int mark_cpus(const char *text, size_t size, bool *seen)
{
	const char *dash = memchr(text, '-', size);
	size_t head = dash ? (size_t)(dash - text) : size;
	uint64_t first, last;
	int nr = 0;

	if (number_u64(text, head, 0, NUMBER_CPUS_MAX - 1, &first))
		return -EINVAL;
	last = first;
	if (dash && number_u64(dash + 1, size - head - 1, first, NUMBER_CPUS_MAX - 1, &last))
		return -EINVAL;
	for (uint64_t cpu = first; cpu <= last; cpu++) {
		nr += !seen[cpu];
		seen[cpu] = true;
	}
	return nr;
}

/*
 * Parse "0-3,5" and replace *out by the sorted CPUs without duplicates. Return 0 or
 * -EINVAL (then unchanged).
 */
static int number_cpus(const char *text, int **out, uint32_t *nr)
{
	bool seen[NUMBER_CPUS_MAX] = { false };
	uint32_t all = 0;

	for (const char *s = text;; s++) {
		size_t size = strcspn(s, ",");
		int found = mark_cpus(s, size, seen);

		if (found < 0)
			return -EINVAL;
		all += (uint32_t)found;
		s += size;
		if (!*s)
			break;
	}
	*out = xrealloc_array(*out, all, sizeof(**out));
	*nr = 0;
	for (int cpu = 0; cpu < NUMBER_CPUS_MAX; cpu++)
		if (seen[cpu])
			(*out)[(*nr)++] = cpu;
	return 0;
}

/* ---- values with a check for more than their type ---- */

static int value_hz(const char *name, const char *text, double max_hz, double *hz, struct err *e)
{
	double max = max_hz > 0 ? max_hz : NUMBER_HZ_MAX, any;

	if (!number_double(text, 1, max, hz))
		return 0;
	if (max_hz > 0 && !number_double(text, max, 1e15, &any))
		return err_set(e, -EINVAL,
			       "%s %s: above the kernel's limit of %.0f Hz\n"
			       "  kernel.perf_event_max_sample_rate is %.0f\n"
			       "  use a lower rate, or 'sudo sysctl "
			       "kernel.perf_event_max_sample_rate=N'",
			       name, text, max, max);
	return err_set(e, -EINVAL,
		       "%s %s: invalid frequency\n"
		       "  must be 1 to %.0f samples per second",
		       name, text, max);
}

static int take_hz(const struct setting *s, void *base, const char *name, const char *text,
		   struct err *e)
{
	struct settings *set = base;
	bool automatic = !strcmp(text, "automatic");
	double hz = 0;
	int code = automatic ? 0 : value_hz(name, text, set->max_hz, &hz, e);

	if (!code)
		set->hz = hz;
	return code;
}

static void show_hz(const struct setting *s, const struct settings *set, char *out)
{
	if (set->hz > 0)
		snprintf(out, SETTING_MAX, "%.10g", set->hz);
	else
		snprintf(out, SETTING_MAX, "automatic");
}

static int take_seconds(const struct setting *s, const char *name, const char *text, uint64_t *ns,
			struct err *e)
{
	double value;

	if (number_double(text, s->least, s->most, &value))
		return err_set(e, -EINVAL,
			       "%s %s: invalid time\n"
			       "  must be %g to %g seconds, as in '%s 2'",
			       name, text, s->least, s->most, name);
	*ns = (uint64_t)(value * S_AS_NS + 0.5);
	return 0;
}

/* Take "5", "last 5", "last", "decay" or "total". */
static int take_window(const struct setting *s, void *base, const char *name, const char *text,
		       struct err *e)
{
	struct settings *set = base;
	size_t size = strcspn(text, " ");
	int code, window = PROFILE_WINDOW;

	for (int i = 0; i < PROFILE_NR_WINDOWS; i++) {
		if (strlen(window_words[i]) != size || strncmp(window_words[i], text, size))
			continue;
		if (!text[size]) {
			set->window = (enum profile_window)i;
			return 0;
		}
		window = i;
		text += window == PROFILE_WINDOW ? size + 1 : 0;
	}
	code = take_seconds(s, name, text, &set->window_ns, e);
	if (!code)
		set->window = PROFILE_WINDOW;
	return code;
}

static void show_window(const struct setting *s, const struct settings *set, char *out)
{
	if (set->window == PROFILE_WINDOW && set->window_ns)
		snprintf(out, SETTING_MAX, "last %.10g", (double)set->window_ns / S_AS_NS);
	else
		snprintf(out, SETTING_MAX, "%s", window_words[set->window]);
}

static int take_theme(const struct setting *s, void *base, const char *name, const char *text,
		      struct err *e)
{
	int value = 0;

	while (theme_words[value] && strcmp(text, theme_words[value]))
		value++;
	/* Names of former versions are taken, and not listed. */
	if (!strcmp(text, "default"))
		value = THEME_AUTO;
	else if (!strcmp(text, "256"))
		value = THEME_DARK;
	if (value == THEME_NR)
		return setting_refuse(s, name, text, e);
	((struct settings *)base)->theme = value;
	return 0;
}

/* Take names of columns; --print-config writes them to a terminal. */
static int take_columns(const struct setting *s, void *base, const char *name, const char *text,
			struct err *e)
{
	size_t size = 0;

	while (isalnum((unsigned char)text[size]) || (text[size] && strchr("+,-./_ ", text[size])))
		size++;
	if (text[size] || size >= s->size)
		return setting_refuse(s, name, text, e);
	snprintf((char *)base + s->offset, s->size, "%s", strcmp(text, "automatic") ? text : "");
	return 0;
}

static void show_columns(const struct setting *s, const struct settings *set, char *out)
{
	const char *columns = (const char *)set + s->offset;

	snprintf(out, SETTING_MAX, "%s", *columns ? columns : "automatic");
}

static int take_stack_as(struct sampler_config *c, const char *name, const char *text,
			 struct err *e)
{
	bool is_auto = !strcmp(text, "auto");
	uint64_t value = SAMPLER_STACK_SIZE_AUTO;

	if (!is_auto && (number_size(text, SAMPLER_STACK_SIZE_MAX, &value) || value % 8))
		return err_set(e, -EINVAL,
			       "%s %s: invalid size of stack copies\n"
			       "  must be a multiple of 8 up to %u, auto, or 0 for no stacks",
			       name, text, SAMPLER_STACK_SIZE_MAX);
	c->stack_auto = is_auto;
	c->stack_size = (uint32_t)value;
	return 0;
}

static int take_stack_size(const struct setting *s, void *base, const char *name, const char *text,
			   struct err *e)
{
	return take_stack_as(&((struct options *)base)->config, name, text, e);
}

/* Take "dwarf,32K" as perf does: with the size of stack copies. */
static int take_call_graph(const struct setting *s, void *base, const char *name, const char *text,
			   struct err *e)
{
	struct options *o = base;
	size_t n = strcspn(text, ",");
	char with[64];
	int code = 0;

	for (int i = 0; i < CALL_GRAPH_NR; i++) {
		if (strlen(s->words[i]) != n || strncmp(text, s->words[i], n) ||
		    (text[n] && i != CALL_GRAPH_DWARF))
			continue;
		snprintf(with, sizeof(with), "%s dwarf,", name);
		if (text[n])
			code = take_stack_as(&o->config, with, text + n + 1, e);
		if (text[n])
			o->set.given[setting_index("stack-size")] = true;
		if (!code)
			o->config.call_graph = (enum call_graph)i;
		return code;
	}
	return err_set(e, -EINVAL,
		       "%s %s: must be dwarf, dwarf,SIZE, fp, defer or off\n"
		       "  as in 'fp', or 'dwarf,32K' for deep stacks",
		       name, text);
}

/* ---- targets ---- */

static int value_cpus(const char *name, const char *text, int **cpus, uint32_t *nr, struct err *e)
{
	if (!number_cpus(text, cpus, nr))
		return 0;
	return err_set(e, -EINVAL,
		       "%s %s: invalid list of CPUs\n"
		       "  give numbers and ranges from 0 to %d, as in '%s 0-3,5'",
		       name, text, NUMBER_CPUS_MAX - 1, name);
}

static int value_pids(const char *name, const char *text, pid_t **pids, uint32_t *nr, struct err *e)
{
	int code = number_pids(text, pids, nr);

	if (code == -E2BIG)
		return err_set(e, -EINVAL,
			       "%s: more than %d process ids\n"
			       "  use -u USER, or sample the whole system",
			       name, NUMBER_PIDS_MAX);
	if (!code)
		return 0;
	return err_set(e, -EINVAL,
		       "%s %s: invalid list of process ids\n"
		       "  give numbers separated by commas, as in '%s 1234,5678'",
		       name, text, name);
}

static int value_uid(const char *name, const char *text, uid_t *uid, struct err *e)
{
	uint64_t value;

	if (number_u64(text, strlen(text), 0, UINT32_MAX - 1, &value))
		return err_set(e, -EINVAL,
			       "%s %s: invalid user id\n"
			       "  must be 0 to %u",
			       name, text, UINT32_MAX - 1);
	*uid = (uid_t)value;
	return 0;
}

static int value_process_name(const char *name, const char *text, struct err *e)
{
	regex_t re;

	if (!*text || regcomp(&re, text, REG_EXTENDED | REG_NOSUB))
		return err_set(e, -EINVAL,
			       "%s %s: invalid regular expression\n"
			       "  give an extended one, as in %s '^nginx$'",
			       name, text, name);
	regfree(&re);
	return 0;
}

/* -p and -t: repeated options add up; the two exclude each other. */
static int take_ids(struct options *o, const char *name, const char *text, bool tids, struct err *e)
{
	int code;

	if (o->config.nr_pids && o->tids_given != tids)
		return err_set(e, -EINVAL,
			       "-p and -t exclude each other\n"
			       "  give processes or threads, not both");
	o->tids_given = tids;
	code = value_pids(name, text, &o->pids, &o->config.nr_pids, e);
	o->config.pids = o->pids;
	return code;
}

static int take_pids(const struct setting *s, void *base, const char *name, const char *text,
		     struct err *e)
{
	return take_ids(base, name, text, false, e);
}

static int take_tids(const struct setting *s, void *base, const char *name, const char *text,
		     struct err *e)
{
	return take_ids(base, name, text, true, e);
}

static int take_cgroup(const struct setting *s, void *base, const char *name, const char *text,
		       struct err *e)
{
	if (!*text)
		return err_set(e, -EINVAL,
			       "-G: empty name\n"
			       "  give a path below /sys/fs/cgroup, a unit, or the id of a "
			       "container");
	((struct options *)base)->config.cgroup = text;
	return 0;
}

static int take_name(const struct setting *s, void *base, const char *name, const char *text,
		     struct err *e)
{
	((struct options *)base)->config.name = text;
	return value_process_name(name, text, e);
}

/* Take a name or number; a number works without an entry in the user database. */
static int take_user(const struct setting *s, void *base, const char *name, const char *text,
		     struct err *e)
{
	struct options *o = base;
	const struct passwd *pw;

	o->config.user = NULL;
	if (number_is_id(text))
		return value_uid(name, text, &o->config.uid, e);
	pw = *text ? getpwnam(text) : NULL;
	if (!pw)
		return err_set(e, -ESRCH,
			       "%s %s: unknown user\n"
			       "  give a user id, or a name from 'getent passwd'",
			       name, text);
	o->config.uid = pw->pw_uid;
	o->config.user = text;
	return 0;
}

/* "0-3,5"; the last one counts. */
static int take_cpus(const struct setting *s, void *base, const char *name, const char *text,
		     struct err *e)
{
	struct options *o = base;
	int code = value_cpus(name, text, &o->cpus, &o->config.nr_cpus, e);

	o->config.cpus = o->cpus;
	return code;
}

/* Set the filter of the preceding event. */
static int take_event_filter(const struct setting *s, void *base, const char *name,
			     const char *text, struct err *e)
{
	struct sampler_config *c = &((struct options *)base)->config;

	if (!c->nr_events)
		return err_set(e, -EINVAL,
			       "--event-filter: no preceding event\n"
			       "  as in -e sched:sched_switch --event-filter 'prev_pid == 0'");
	return event_set_filter(&c->events[c->nr_events - 1], text, e);
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

static int take_events(const struct setting *s, void *base, const char *name, const char *text,
		       struct err *e)
{
	struct sampler_config *c = &((struct options *)base)->config;

	return event_list_reads_file(text)
		       ? read_events(c, text, e)
		       : event_parse_list(c->events, &c->nr_events, EVENTS_MAX, text, e);
}

static int take_latency(const struct setting *s, void *base, const char *name, const char *text,
			struct err *e)
{
	struct settings *set = base;

	set->time = CONFIG_TIME_LATENCY;
	set->given[setting_index("time")] = true;
	return 0;
}

/* ---- files and output ---- */

static bool options_is_folder(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static int check_folder(const char *name, const char *text, struct err *e)
{
	return options_is_folder(text) ? 0
				       : err_set(e, -EINVAL,
						 "%s %s: no such folder\n"
						 "  create it first",
						 name, text);
}

/* Take a file or folder to show; refuses a second one. */
static int take_replay(const struct setting *s, void *base, const char *name, const char *text,
		       struct err *e)
{
	struct sampler_config *c = &((struct options *)base)->config;

	if (c->replay)
		return err_set(e, -EINVAL,
			       "cannot show two recordings: %.60s and %.60s\n"
			       "  --baseline FILE compares with another one",
			       c->replay, text);
	c->replay = text;
	return 0;
}

static int take_open(const struct setting *s, void *base, const char *name, const char *text,
		     struct err *e)
{
	int code = take_replay(s, base, name, text, e);

	return code ? code : check_folder(name, text, e);
}

static int take_baseline(const struct setting *s, void *base, const char *name, const char *text,
			 struct err *e)
{
	if (!strcmp(text, "-"))
		return err_set(e, -EINVAL,
			       "--baseline -: not from a pipe\n"
			       "  write it to a file first");
	((struct options *)base)->baseline = text;
	return 0;
}

static int take_trap(const struct setting *s, void *base, const char *name, const char *text,
		     struct err *e)
{
	struct options *o = base;
	struct trap_rule rule;

	if (o->config.nr_traps == TRAP_RULES_MAX)
		return err_set(e, -EINVAL,
			       "--trap: too many rules\n"
			       "  at most %d",
			       TRAP_RULES_MAX);
	if (trap_rule_parse(&rule, text, e))
		return -EINVAL;
	o->traps = xrealloc_array(o->traps, o->config.nr_traps + 1, sizeof(*o->traps));
	o->traps[o->config.nr_traps++] = rule;
	o->config.traps = o->traps;
	return 0;
}

/* Refuse an invalid expression; the screen matches it literally instead. */
static int take_filter(const struct setting *s, void *base, const char *name, const char *text,
		       struct err *e)
{
	struct match m;
	bool bad;

	if (strlen(text) >= MATCH_MAX)
		return err_set(e, -EINVAL, "--filter: too long: at most %d characters",
			       MATCH_MAX - 1);
	match_init(&m);
	match_set(&m, text);
	bad = m.bad;
	match_fini(&m);
	if (bad)
		return err_set(e, -EINVAL,
			       "--filter=%s: invalid regular expression\n"
			       "  see regex(7); put a backslash before special characters",
			       text);
	((struct settings *)base)->filter = text;
	return 0;
}

static int take_fields(const struct setting *s, void *base, const char *name, const char *text,
		       struct err *e)
{
	struct options *o = base;
	const char *bad;

	o->fields = batch_fields_parse(text, &bad);
	return o->fields ? 0
			 : err_set(e, -EINVAL, "%s=%s: unknown field '%s'\n  %s", name, text, bad,
				   "see 'proftop --help'");
}

static int take_size(const struct setting *s, void *base, const char *name, const char *text,
		     struct err *e)
{
	struct options *o = base;

	if (number_screen_size(text, strlen(text), CANVAS_MAX, &o->cols, &o->rows_of_screen))
		return 0;
	return err_set(e, -EINVAL,
		       "%s %s: invalid screen size\n"
		       "  give columns and lines, as in '--size 100x30'",
		       name, text);
}

static int take_export(const struct setting *s, void *base, const char *name, const char *text,
		       struct err *e)
{
	((struct options *)base)->export_path = text;
	return *text ? 0
		     : err_set(e, -EINVAL,
			       "--export: empty file name\n"
			       "  name a file, as in --export profile.html");
}

static int take_push_label(const struct setting *s, void *base, const char *name, const char *text,
			   struct err *e)
{
	struct options *o = base;

	o->push_labels =
		xrealloc_array(o->push_labels, o->nr_push_labels + 1ull, sizeof(*o->push_labels));
	o->push_labels[o->nr_push_labels++] = text;
	return 0;
}

static int take_completion(const struct setting *s, void *base, const char *name, const char *text,
			   struct err *e)
{
	struct options *o = base;

	for (int i = 0; s->words[i]; i++) {
		if (strcmp(s->words[i], text))
			continue;
		o->action = OPTIONS_COMPLETION;
		o->shell = text;
		return 0;
	}
	return setting_refuse(s, name, text, e);
}

static int take_stacks(const struct setting *s, void *base, const char *name, const char *text,
		       struct err *e)
{
	struct options *o = base;
	uint64_t pid;

	if (number_u64(text, strlen(text), 1, INT32_MAX, &pid))
		return err_set(e, -EINVAL,
			       "%s %.40s: invalid process id\n"
			       "  give one number, as in 'proftop --stacks 1234'",
			       name, text);
	o->stacks = (pid_t)pid;
	o->action = OPTIONS_STACKS;
	return 0;
}

/* Languages by name, separated by commas. */
static int take_languages(const struct setting *s, void *base, const char *name, const char *text,
			  struct err *e)
{
	uint32_t *languages = &((struct options *)base)->config.languages;

	*languages = 0;
	for (const char *at = text;; at++) {
		char word[16] = "";
		size_t size = strcspn(at, ",");
		uint32_t bits;

		memcpy(word, at, MIN(size, sizeof(word) - 1));
		bits = strcmp(word, "all") ? config_language(word) : UINT32_MAX;
		if (!bits && strcmp(word, "none"))
			return err_set(e, -EINVAL,
				       "--languages=%.40s: unknown language '%s'\n"
				       "  must be java, python, php, ruby, perl, node, lua, r, "
				       "erlang, all or none",
				       text, word);
		*languages |= bits;
		at += size;
		if (!*at)
			return 0;
	}
}

/* ---- the table ---- */

#define ROW(...) { .offset = 0, __VA_ARGS__ },
#define PLACE(place, ...)                                                                          \
	{ .offset = offsetof(struct options, place),                                               \
	  .size = sizeof(((struct options *)NULL)->place),                                         \
	  __VA_ARGS__ },
#define OWN(ctype, member, ...) PLACE(set.member, .is_own = true, __VA_ARGS__)
#define SWITCH(member, ...)	OWN(bool, member, .type = SETTING_SWITCH, __VA_ARGS__)

static const struct setting table[] = {
#include "ui/cli/settings.inc"
};

_Static_assert(ARRAY_SIZE(table) <= SETTINGS_MAX, "struct settings has a bit for each");
_Static_assert(!offsetof(struct options, set), "members of settings have one offset in both");

const struct setting *setting_at(size_t i)
{
	return i < ARRAY_SIZE(table) ? &table[i] : NULL;
}

size_t setting_index(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (table[i].name && !strcmp(table[i].name, name))
			return i;
	assert(!"a setting of the table");
	return 0;
}

bool setting_given(const struct settings *set, const char *name)
{
	return set->given[setting_index(name)];
}

/* Write "a, b or c". */
static const char *list_words(const char *const *words, char *out, size_t size)
{
	size_t n = 0;

	*out = '\0';
	for (int i = 0; words[i] && n < size; i++)
		n += (size_t)snprintf(out + n, size - n, "%s%s",
				      !i	     ? ""
				      : words[i + 1] ? ", "
						     : " or ",
				      words[i]);
	return out;
}

/* "8K", "256M", "1024G" */
static const char *size_text(char out[static 24], double size)
{
	int unit = size < (1 << 20) ? 0 : size < (1 << 30) ? 1 : 2;

	snprintf(out, 24, "%.0f%c", size / (double)(1024ull << 10 * unit), "KMG"[unit]);
	return out;
}

static int setting_refuse(const struct setting *s, const char *name, const char *text,
			  struct err *e)
{
	char must[160];

	snprintf(must, sizeof(must), "%s", s->must ? s->must : s->values ? s->values : "yes or no");
	if (!s->must && s->words)
		list_words(s->words, must, sizeof(must));
	return err_set(e, -EINVAL, "%s %.100s: %s %s\n  must be %s", name, text,
		       s->words && s->what ? "unknown" : "invalid", s->what ? s->what : "value",
		       must);
}

/* Store a whole number in the member. */
static void store(const struct setting *s, void *member, uint64_t value)
{
	if (s->size == sizeof(uint64_t))
		*(uint64_t *)member = value;
	else if (s->size == sizeof(uint32_t))
		*(uint32_t *)member = (uint32_t)value;
	else
		*(bool *)member = value;
}

static int take_switch(const struct setting *s, bool *member, const char *name, const char *text,
		       struct err *e)
{
	/* An option without a value. */
	bool yes = !text || !strcmp(text, "yes") || !strcmp(text, "on");

	if (!yes && strcmp(text, "no") && strcmp(text, "off"))
		return setting_refuse(s, name, text, e);
	*member = text ? yes : !s->off;
	return 0;
}

static int take_word(const struct setting *s, void *member, const char *name, const char *text,
		     struct err *e)
{
	/* Names of columns and groups are shown in capitals. */
	bool any_case = s->words == grouping_words || s->words == sort_words;

	for (int i = 0; s->words[i]; i++) {
		if (any_case ? strcasecmp(text, s->words[i]) : strcmp(text, s->words[i]))
			continue;
		store(s, member, (uint64_t)i);
		return 0;
	}
	return setting_refuse(s, name, text, e);
}

static int take_size_of(const struct setting *s, void *member, const char *name, const char *text,
			struct err *e)
{
	char least[24], most[24];
	uint64_t size;

	if (number_size(text, (uint64_t)s->most, &size) || size < (uint64_t)s->least ||
	    /* The pages of a ring are a power of two: perf_event_open(2), MMAP layout. */
	    (s->power && (size & (size - 1))))
		return err_set(e, -EINVAL, "%s %s: invalid %s\n  must be %s%s to %s, as in '%s %s'",
			       name, text, s->what ? s->what : "size",
			       s->power ? "a power of two from " : "", size_text(least, s->least),
			       size_text(most, s->most), name, s->power ? "1M" : "256M");
	store(s, member, size);
	return 0;
}

static int take_number(const struct setting *s, void *member, const char *name, const char *text,
		       struct err *e)
{
	uint64_t most = s->most > 0		      ? (uint64_t)s->most
			: s->size == sizeof(uint64_t) ? INT64_MAX
						      : UINT32_MAX;
	uint64_t value;

	if (number_u64(text, strlen(text), (uint64_t)s->least, most, &value))
		return setting_refuse(s, name, text, e);
	store(s, member, value);
	return 0;
}

static int take_real(const struct setting *s, double *member, const char *name, const char *text,
		     struct err *e)
{
	if (!number_double(text, s->least, s->most, member))
		return 0;
	return err_set(e, -EINVAL, "%s %s: invalid %s\n  must be %g to %g", name, text, s->what,
		       s->least, s->most);
}

static int take_time(const struct setting *s, uint64_t *member, const char *name, const char *text,
		     struct err *e)
{
	uint64_t ns;

	if (time_parse(text, strlen(text), &ns) || ns < (uint64_t)(s->least * S_AS_NS) ||
	    (s->most > 0 && ns > (uint64_t)(s->most * S_AS_NS)))
		return err_set(e, -EINVAL, "%s %s: invalid time\n  must be %s", name, text,
			       s->must);
	*member = ns;
	return 0;
}

int setting_take(const struct setting *s, void *base, const char *name, const char *text,
		 struct err *e)
{
	void *member = (char *)base + s->offset;

	if (s->take)
		return s->take(s, base, name, text, e);
	switch (s->type) {
	case SETTING_SWITCH:
		return take_switch(s, member, name, text, e);
	case SETTING_WORD:
		return take_word(s, member, name, text, e);
	case SETTING_SECONDS:
		return take_seconds(s, name, text, member, e);
	case SETTING_TIME:
		return take_time(s, member, name, text, e);
	case SETTING_SIZE:
		return take_size_of(s, member, name, text, e);
	case SETTING_NUMBER:
		return take_number(s, member, name, text, e);
	case SETTING_REAL:
		return take_real(s, member, name, text, e);
	case SETTING_ACTION:
		store(s, member, (uint64_t)s->to);
		return 0;
	case SETTING_FOLDER:
	case SETTING_TEXT:
		*(const char **)member = text;
		return s->type == SETTING_FOLDER ? check_folder(name, text, e) : 0;
	default:
		return 0;
	}
}

void setting_show(const struct setting *s, const struct settings *set, char out[static SETTING_MAX])
{
	const void *member = (const char *)set + s->offset;

	assert(s->show || s->is_own);
	if (s->show)
		s->show(s, set, out);
	else if (s->type == SETTING_SWITCH)
		snprintf(out, SETTING_MAX, "%s", *(const bool *)member ? "yes" : "no");
	else if (s->type == SETTING_WORD)
		snprintf(out, SETTING_MAX, "%s", s->words[*(const int *)member]);
	else if (s->type == SETTING_SECONDS)
		snprintf(out, SETTING_MAX, "%.10g", (double)*(const uint64_t *)member / S_AS_NS);
	else
		snprintf(out, SETTING_MAX, "%.10g", *(const double *)member);
}

void setting_next(const struct setting *s, struct settings *set)
{
	void *member = (char *)set + s->offset;

	assert(s->is_own && (s->type == SETTING_SWITCH || s->type == SETTING_WORD));
	if (s->type == SETTING_SWITCH)
		*(bool *)member = !*(bool *)member;
	else if (!s->words[++*(int *)member])
		*(int *)member = 0;
}

static void settings_init(void *base, bool own)
{
	struct err e;

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		const struct setting *s = &table[i];

		if (s->initial && s->is_own == own && setting_take(s, base, "", s->initial, &e))
			assert(!"an initial value of the table");
	}
}

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
	*row = (struct argp_option){ .name = NULL };
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
	if (o->action == OPTIONS_RUN && o->baseline && !o->export_path) {
		err_set(e, -EINVAL,
			"--baseline does not apply to batch output: it has no changes\n"
			"  --export FILE.html, .svg or .folded has them, and the screen");
		return EXIT_USAGE;
	}
	if (o->action == OPTIONS_RUN && o->set.intervals) {
		err_set(e, -EINVAL,
			"--intervals does not apply to batch output: it has no such column\n"
			"  the screen has it: run it in a terminal, or with --script");
		return EXIT_USAGE;
	}
	o->batch = true;
	o->config.exact_ticks = o->config.window_alone = true;
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

static void print_help(FILE *out)
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

/*
 * Set the name of the sampled user, or of the own one where it may be the only one that is
 * permitted. Not else: the C library reads the network for some users, and aborts without memory.
 */
static void set_user(struct options *o)
{
	struct sampler_config *c = &o->config;
	bool own = c->target == TARGET_SYSTEM && getuid() && !c->replay;
	const struct passwd *pw;

	if (c->user || (c->target != TARGET_USER && !own))
		return;
	pw = getpwuid(own ? getuid() : c->uid);
	if (!pw)
		return;
	snprintf(o->user, sizeof(o->user), "%s", pw->pw_name);
	c->user = o->user;
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
			      "  give at least %llu, or a smaller --stack-size",
			      c->ring_size, stack, 1ULL << (64 - __builtin_clzll(need - 1)));
	/* Batch output has ticks of a fixed length, and a file one size. */
	if (!is_given(p->o, "stack-size") && !p->o->batch && !p->o->script && !c->record &&
	    !c->replay)
		c->stack_auto = true;
	c->no_lines = p->o->format == OPTIONS_PERF_SCRIPT;
	set_target(p->o);
	set_user(p->o);
	return 0;
}

/* ---- lists and reports that options print instead of a session ---- */

static void print_columns(FILE *out)
{
	static const char *const help[CONFIG_SORT_NR] = {
		[CONFIG_SORT_SELF] = "share of samples in the function itself",
		[CONFIG_SORT_TOTAL] = "share of samples with the function on the stack",
		[CONFIG_SORT_SYMBOL] = "name of the function",
		[CONFIG_SORT_MODULE] = "program, library or kernel module",
		[CONFIG_SORT_COMM] = "process with most of its samples",
	};

	for (int i = 0; i < CONFIG_SORT_NR; i++)
		fprintf(out, "%-8s %s\n", sort_name((enum ui_config_sort)i), help[i]);
}

static void print_key_group(FILE *out, enum key_group group)
{
	char keys[64];

	fprintf(out, "%s\n", key_group(group));
	for (const struct key_binding *b = key_table(); b->action != ACT_NONE; b++)
		if (b->group == group)
			fprintf(out, "  %-16s  %-16s  %s%s\n", key_names_of(keys, sizeof(keys), b),
				b->name, b->help, key_where(b));
}

static void print_keys(FILE *out)
{
	for (int i = 0; i < GROUP_NR; i++)
		print_key_group(out, (enum key_group)i);
}

/* Open an event on a CPU; without permission, for this process. */
static int probe(const struct event *ev)
{
	int code = event_probe(ev, -1, 0);

	return code == -EACCES || code == -EPERM ? event_probe(ev, 0, -1) : code;
}

static int probe_name(const char *name)
{
	struct event ev;
	int code = event_parse(&ev, name, NULL);

	return code ? code : probe(&ev);
}

static bool is_tracepoint(const struct event_info *info)
{
	return !strcmp(info->group, EVENT_GROUP_TRACEPOINTS);
}

/* Print the forms of event names that have no list. */
static void print_spelled(FILE *out)
{
	static const char *const lines[] = {
		"rNNN                         raw event code in hexadecimal",
		"PMU/term=value,.../          terms: /sys/bus/event_source/devices/PMU/format",
		"pfm:NAME[:UMASK][:c=N]...    as in perf's --pfm-events, if built with libpfm4",
		"mem:ADDRESS[/LEN][:rwx]      accesses to an address (hardware breakpoint)",
		"uprobe:/FILE:FUNCTION[+OFF]  calls of a function; uretprobe: returns",
		"kprobe:FUNCTION[+OFF]        the same in the kernel; kretprobe: returns",
	};

	fputs("\nothers\n", out);
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		fprintf(out, "  %s\n", lines[i]);
	fputs("\nModifiers: cycles:u user code only, cycles:k kernel only.\n"
	      "Rate of one event: cycles/freq=99/, page-faults/period=1/.\n",
	      out);
}

/*
 * Print all events of this system, and which are available: each is opened once, of
 * tracepoints one.
 */
static void print_events(FILE *out)
{
	const char *group = "";
	struct event_list list;
	int code = 0;

	event_list_init(&list, "");
	for (const struct event_info *info = list.infos; info->name; info++) {
		bool first = strcmp(group, info->group);

		/* Opening a tracepoint waits for all CPUs: one result serves all. */
		if (first || !is_tracepoint(info))
			code = probe_name(info->name);
		if (first) {
			fprintf(out, "%s%s%s\n", *group ? "\n" : "", info->group,
				is_tracepoint(info) ? "" : " events");
			group = info->group;
		}
		if (info->description && info->description[0])
			fprintf(out, "  %-28s %s", info->name, info->description);
		else
			fprintf(out, "  %s", info->name);
		if (info->alias)
			fprintf(out, " (also %s)", info->alias);
		if (code)
			fprintf(out, "  [not available: %s]", event_errno(-code));
		fputc('\n', out);
	}
	print_spelled(out);
	event_list_fini(&list);
}

/* Print the events as JSON, one object per line. */
static void print_events_ndjson(FILE *out)
{
	struct event_list list;
	bool tried = false;
	int code = 0;

	event_list_init(&list, "");
	for (const struct event_info *info = list.infos; info->name; info++) {
		struct event ev;
		int bad = event_parse(&ev, info->name, NULL);

		if (bad)
			code = bad;
		else if (!tried)
			code = probe(&ev);
		/* As above: one result serves all. */
		tried = !bad && is_tracepoint(info);
		/* Names need no quoting: they are ours or the kernel's. */
		fprintf(out,
			"{\"name\":\"%s\",\"group\":\"%s\",\"type\":%u,\"config\":%llu,"
			"\"config1\":%llu,\"config2\":%llu,\"usable\":%s,\"errno\":%d,"
			"\"reason\":\"%s\"}\n",
			info->name, info->group, ev.type, (unsigned long long)ev.config,
			(unsigned long long)ev.config1, (unsigned long long)ev.config2,
			code ? "false" : "true", -code, event_errno(-code));
	}
	event_list_fini(&list);
}

/* Print the report of --check. */
static int print_check(FILE *out)
{
	static const char *const words[] = { "ok", "note", "degraded", "NOT POSSIBLE" };
	static const int codes[] = { EXIT_DONE, EXIT_DONE, EXIT_FAILED, EXIT_NOT_PERMITTED };
	struct doctor_finding findings[DOCTOR_FINDINGS_MAX];
	struct doctor_facts facts;
	uint32_t nr;

	doctor_read(&facts, "");
	nr = doctor_judge(&facts, findings);
	for (uint32_t i = 0; i < nr; i++) {
		char clean[sizeof(findings[i].fix)];

		/* Parts are of /proc, as the names of processes: foreign text. */
		fprintf(out, "%-12s  %-20s %s\n", words[findings[i].level], findings[i].topic,
			text_format(clean, sizeof(clean), "%s", findings[i].says).str);
		if (findings[i].fix[0])
			fprintf(out, "%-12s  %-20s   fix: %s\n", "", "",
				text_format(clean, sizeof(clean), "%s", findings[i].fix).str);
	}
	return codes[doctor_worst(findings, nr)];
}

int options_print(FILE *out, const struct options *o)
{
	assert(o->action != OPTIONS_RUN);
	switch (o->action) {
	case OPTIONS_CHECK:
		return print_check(out);
	case OPTIONS_HELP:
		print_help(out);
		break;
	case OPTIONS_LIST_KEYS:
		print_keys(out);
		break;
	case OPTIONS_LIST_EVENTS:
		if (o->format == OPTIONS_NDJSON)
			print_events_ndjson(out);
		else
			print_events(out);
		break;
	default:
		print_columns(out);
		break;
	}
	return EXIT_DONE;
}
