// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The table of formats; an export as file work; a growing buffer with progress; where and when a
 * profile was made.
 */
#include "ui/export/internal.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "symbols/code/code.h"
#include "ui/cli/cli.h"

static const struct format {
	const char *name;
	const char *endings[3]; /* the first is the usual one */
	const char *help;
	int (*write)(struct out *o, const struct snapshot *s);
	batch_sink_fn sink; /* instead: a format of the batch output */
} formats[EXPORT_NR] = {
	[EXPORT_HTML] = { "html",
			  { ".html", ".htm" },
			  "page with flame graph, functions and account",
			  html_write,
			  NULL },
	[EXPORT_SVG] = { "svg", { ".svg" }, "flame graph as a picture", svg_write, NULL },
	[EXPORT_PPROF] = { "pprof",
			   { ".pb.gz", ".pprof" },
			   "for go tool pprof, Pyroscope, Parca",
			   pprof_write,
			   NULL },
	[EXPORT_SPEEDSCOPE] = { "speedscope",
				{ ".speedscope.json" },
				"for speedscope.app",
				speedscope_write,
				NULL },
	[EXPORT_FIREFOX] = { "firefox",
			     { ".firefox.json" },
			     "for profiler.firefox.com, Perfetto",
			     firefox_write,
			     NULL },
	[EXPORT_FOLDED] = { "folded",
			    { ".folded", ".collapsed" },
			    "folded stacks, for flamegraph.pl",
			    folded_write,
			    NULL },
	[EXPORT_JSON] = { "json",
			  { ".json", ".ndjson" },
			  "functions and account, as --format=ndjson",
			  NULL,
			  batch_ndjson },
	[EXPORT_TEXT] = { "text",
			  { ".txt" },
			  "functions and account, as --format=text",
			  NULL,
			  batch_text },
	[EXPORT_OTLP] = { "otlp",
			  { ".otlp.pb", ".otlp" },
			  "OpenTelemetry profiles (experimental)",
			  otlp_write,
			  NULL },
};

static bool ends_with(const char *text, const char *end)
{
	size_t size = strlen(text), n = strlen(end);

	return size > n && !strcmp(text + size - n, end);
}

enum export_format export_format_of(const char *path)
{
	enum export_format found = EXPORT_NR;
	size_t longest = 0;

	/* "x.speedscope.json" also ends with ".json". */
	for (int i = 0; i < EXPORT_NR; i++)
		for (size_t k = 0; k < ARRAY_SIZE(formats[i].endings); k++) {
			const char *end = formats[i].endings[k];

			if (!end || !ends_with(path, end) || strlen(end) <= longest)
				continue;
			longest = strlen(end);
			found = (enum export_format)i;
		}
	return found;
}

enum export_format export_format_parse(const char *name)
{
	int i = 0;

	while (i < EXPORT_NR && strcmp(formats[i].name, name))
		i++;
	return (enum export_format)i;
}

const char *export_name(enum export_format format)
{
	assert((unsigned int)format < EXPORT_NR);
	return formats[format].name;
}

const char *export_ending(enum export_format format)
{
	assert((unsigned int)format < EXPORT_NR);
	return formats[format].endings[0];
}

const char *export_help(enum export_format format)
{
	assert((unsigned int)format < EXPORT_NR);
	return formats[format].help;
}

void export_scope_all(struct snapshot_scope *scope, uint32_t event)
{
	*scope = (struct snapshot_scope){
		.filter = { .event = event,
			    .process = UINT32_MAX,
			    .task = UINT32_MAX,
			    .hide_idle = PROFILE_IDLE_KTHREAD },
		.module = UINT32_MAX,
	};
}

/* Return the event of waits, or of a clock. UINT32_MAX: none. */
static uint32_t find_time(const struct profile *p, bool waits)
{
	for (uint32_t i = 0; i < p->nr_events; i++)
		if (waits ? p->events[i].event.wait : p->events[i].event.clock)
			return i;
	return UINT32_MAX;
}

void export_scope_time(struct snapshot_scope *scope, const struct profile *p,
		       enum ui_config_time time)
{
	uint32_t waits = find_time(p, true), clock = find_time(p, false);

	if (time == CONFIG_TIME_WAIT && waits < p->nr_events)
		scope->filter.event = waits;
	if (time != CONFIG_TIME_ALL || waits >= p->nr_events || clock >= p->nr_events)
		return;
	scope->filter.event = clock;
	scope->filter.also = waits + 1;
	scope->filter.hide_idle = PROFILE_IDLE;
}

uint32_t export_event(const struct profile *p)
{
	uint32_t first = p->nr_events;

	for (uint32_t i = 0; i < p->nr_counts; i++)
		first = MIN(first, p->counts[i].event);
	return first < p->nr_events ? first : 0;
}

/* Write a format of the batch output. */
static int write_tick(struct out *o, const struct profile *p, const struct snapshot_scope *scope,
		      batch_sink_fn sink)
{
	char only[sizeof(scope->title) + sizeof(scope->only) + 2];
	struct batch_config config = { .sink = sink,
				       .filter = scope->find[0] ? scope->find : NULL,
				       .scope = &scope->filter,
				       .one_module = scope->module != UINT32_MAX,
				       .module = scope->module,
				       .range = scope->range };
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);
	int code;

	snprintf(only, sizeof(only), "%s%s%s", scope->title,
		 scope->title[0] && scope->only[0] ? ", " : "", scope->only);
	config.only = *only ? only : NULL;
	code = f ? batch_print(f, p, &config) : -ENOMEM;
	if (f && fclose(f) && !code)
		code = -ENOMEM;
	if (!code)
		out_bytes(o, text, size);
	free(text);
	return code ? code : o->failed ? -ENOMEM : 0;
}

int export_write(struct out *o, const struct profile *p, const struct snapshot_scope *scope,
		 enum export_format format, struct err *e)
{
	struct snapshot s;
	int code;

	assert((unsigned int)format < EXPORT_NR);
	if (formats[format].sink) {
		code = write_tick(o, p, scope, formats[format].sink);
	} else {
		code = snapshot_make(&s, p, scope, format == EXPORT_PPROF);
		if (!code) {
			code = formats[format].write(o, &s);
			snapshot_fini(&s);
		}
	}
	if (code == -ENODATA)
		return err_set(e, code, "cannot export: the profile has no events");
	if (code == -ENOENT)
		return err_set(e, code, "cannot compare: %s has no event %s", scope->against,
			       p->events[scope->filter.event].event.name);
	if (code)
		return err_set(e, code, "cannot export: %s",
			       o->size >= OUT_MAX / 2 ? "more than 1 GiB" : strerror(-code));
	return 0;
}

struct work {
	struct file_work work; /* first: the two are cast */
	struct profile *profile;
	struct snapshot_scope scope;
	uint8_t *tasks; /* owned copy of the filter's mask; NULL: none */
	enum export_format format;
	char *path;
	bool replace;
};

static int run(struct file_work *work, struct err *e)
{
	struct work *w = (struct work *)work;
	struct out o = { .permille = &work->permille };
	int code = export_write(&o, w->profile, &w->scope, w->format, e);

	if (!code)
		code = file_work_write_text(w->path, o.data ? o.data : "", o.size, w->replace, e);
	out_fini(&o);
	return code;
}

static void free_work(struct file_work *work)
{
	struct work *w = (struct work *)work;

	profile_free(w->profile);
	profile_free(w->scope.baseline);
	free(w->tasks);
	free(w->path);
	free(w);
}

/* Write where @path is, with its folder; below the home folder as "~/...". A long one is cut in the
 * middle. */
static void show_place(char *buf, size_t size, const char *path)
{
	enum { HEAD = 20, LONGEST = 60 };
	char folder[512], text[1024];
	const char *home = getenv("HOME"), *at = text;
	size_t n;

	if (*path == '/' || !getcwd(folder, sizeof(folder)))
		*folder = '\0';
	snprintf(text, sizeof(text), "%s%s%s", folder, *folder && folder[1] ? "/" : "", path);
	n = home ? strlen(home) : 0;
	if (n > 1 && !strncmp(text, home, n) && text[n] == '/') {
		at = text + n - 1;
		text[n - 1] = '~';
	}
	n = strlen(at);
	if (n <= LONGEST)
		snprintf(buf, size, "%s", at);
	else
		snprintf(buf, size, "%.*s...%s", HEAD, at, at + n - (LONGEST - HEAD - 3));
}

struct file_work *export_work(struct profile *p, const struct snapshot_scope *scope,
			      enum export_format format, const char *path, bool replace)
{
	struct work *w = calloc(1, sizeof(*w));
	char place[128];

	assert((unsigned int)format < EXPORT_NR);
	if (!w)
		return NULL;
	*w = (struct work){ .work = { .run = run, .free = free_work },
			    .profile = profile_keep(p),
			    .scope = *scope,
			    .format = format,
			    .path = strdup(path),
			    .replace = replace };
	if (scope->baseline)
		w->scope.baseline = profile_keep(scope->baseline);
	if (scope->filter.tasks) {
		w->tasks = malloc(p->nr_tasks + 1ULL);
		if (w->tasks)
			memcpy(w->tasks, scope->filter.tasks, p->nr_tasks);
		w->scope.filter.tasks = w->tasks;
	}
	if (!w->path || (scope->filter.tasks && !w->tasks)) {
		free_work(&w->work);
		return NULL;
	}
	show_place(place, sizeof(place), path);
	snprintf(w->work.done, sizeof(w->work.done), "exported to %s (%s)", place,
		 formats[format].name);
	return &w->work;
}
