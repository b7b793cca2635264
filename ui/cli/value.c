// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Values of settings: the table (settings.inc), and the check and the error of each value, for all
 * places where it can be given.
 */
#include "ui/cli/internal.h"

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

#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/ring/ring.h"
#include "sampler/sampler.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "symbols/code/code.h"
#include "ui/draw/draw.h"
#include "ui/key/key.h"
#include "ui/text/text.h"

#define NS_PER_S   1000000000.0
#define MEMORY_MIN (1 << 20)
#define MEMORY_MAX (1ULL << 40)

static const char *const theme_words[] = { "auto", "dark", "light", "color-blind", "mono", NULL };
static const char *const time_words[] = { "cpu", "wait", "all", "latency", NULL };
static const char *const frames_words[] = { "language", "both", "native", NULL };
static const char *const grouping_words[] = { "name", "PID", "container", "unit", NULL };
static const char *const flame_words[] = { "kind", "module", NULL };
static const char *const sort_words[] = { "self", "total", "symbol", "module", "comm", NULL };
static const char *const color_words[] = { "auto", "always", "never", NULL };
static const char *const format_words[] = { "text", "ndjson", "perf-script", NULL };
static const char *const unwinder_words[] = { "row", "step", NULL };
static const char *const call_graph_words[] = { "dwarf", "fp", "off", NULL };
static const char *const shell_words[] = { "bash", "zsh", "fish", NULL };
static const char *const window_words[] = { "last", "decay", "total", NULL };

const char *ui_config_sort_name(enum ui_config_sort sort)
{
	return sort_words[(unsigned int)sort < CONFIG_SORT_NR ? sort : CONFIG_SORT_SELF];
}

const char *ui_config_time_name(enum ui_config_time time)
{
	return time_words[(unsigned int)time < CONFIG_TIME_NR ? time : CONFIG_TIME_CPU];
}

const char *ui_config_grouping_name(enum grouping by)
{
	return grouping_words[(unsigned int)by < GROUPING_NR ? by : GROUPING_NAME];
}

/* Refuse @text: the words of the row, or its list of values. */
static int setting_refuse(const struct setting *s, const char *name, const char *text,
			  struct err *e);

/* ---- values with a check for more than their type ---- */

int value_hz(const char *name, const char *text, double max_hz, double *hz, struct err *e)
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
	*ns = (uint64_t)(value * NS_PER_S + 0.5);
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
		snprintf(out, SETTING_MAX, "last %.10g", (double)set->window_ns / NS_PER_S);
	else
		snprintf(out, SETTING_MAX, "%s", window_words[set->window]);
}

static int take_theme(const struct setting *s, void *base, const char *name, const char *text,
		      struct err *e)
{
	int value = theme_parse(text);

	/* Names of former versions are taken, and not listed. */
	if (value < 0)
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
		       "%s %s: must be dwarf, dwarf,SIZE, fp or off\n"
		       "  as in 'fp', or 'dwarf,32K' for deep stacks",
		       name, text);
}

/* ---- targets ---- */

int value_cpus(const char *name, const char *text, int **cpus, uint32_t *nr, struct err *e)
{
	if (!number_cpus(text, cpus, nr))
		return 0;
	return err_set(e, -EINVAL,
		       "%s %s: invalid list of CPUs\n"
		       "  give numbers and ranges from 0 to %d, as in '%s 0-3,5'",
		       name, text, NUMBER_CPUS_MAX - 1, name);
}

int value_pids(const char *name, const char *text, pid_t **pids, uint32_t *nr, struct err *e)
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

bool value_is_uid(const char *text)
{
	return *text && strspn(text, "0123456789") == strlen(text);
}

int value_uid(const char *name, const char *text, uid_t *uid, struct err *e)
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

int value_process_name(const char *name, const char *text, struct err *e)
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

	if (value_is_uid(text))
		return value_uid(name, text, &o->config.uid, e);
	pw = *text ? getpwnam(text) : NULL;
	if (!pw)
		return err_set(e, -ESRCH,
			       "%s %s: unknown user\n"
			       "  give a user id, or a name from 'getent passwd'",
			       name, text);
	o->config.uid = pw->pw_uid;
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

bool options_is_folder(const char *path)
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

	o->fields = script_fields_parse(text, &bad);
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
				       "  must be java, python, php, ruby, perl, node, all or none",
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

	if (time_parse(text, strlen(text), &ns) || ns < (uint64_t)(s->least * NS_PER_S) ||
	    (s->most > 0 && ns > (uint64_t)(s->most * NS_PER_S)))
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
		snprintf(out, SETTING_MAX, "%.10g", (double)*(const uint64_t *)member / NS_PER_S);
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

void settings_init(void *base, bool own)
{
	struct err e;

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		const struct setting *s = &table[i];

		if (s->initial && s->is_own == own && setting_take(s, base, "", s->initial, &e))
			assert(!"an initial value of the table");
	}
}
