// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Everything that the screen depends on: taken in, and asked for. The main
 * thread.
 */
#include "ui/state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ui/view/arrows.h"
#include "ui/columns.h"
#include "ui/view/folding.h"
#include "ui/view/folds.h"
#include "ui/text/format.h"
#include "ui/view/view.h"
#include "ui/view/view_annotate.h"

#define ALARM_NS   (5 * 1000000000ull)
#define MESSAGE_NS (6 * 1000000000ull)
/* An answer that takes longer will not come. */
#define ASKED_NS (2 * 1000000000ull)

struct safe_text ui_clean(char *buf, size_t size, const char *text)
{
	return text_sanitise(buf, size, text, strlen(text));
}

void ui_state_init(struct ui_state *st, struct sampler *s, const struct app_config *config,
		   bool ascii)
{
	char host[65] = "";
	struct list *functions;

	memset(st, 0, sizeof(*st));
	st->sampler = s;
	st->config = config;
	st->glyphs = theme_glyphs(ascii);
	if (!config->host && gethostname(host, sizeof(host) - 1))
		host[0] = '\0';
	ui_clean(st->host, sizeof(st->host), config->host ? config->host : host);
	st->tick_ns = config->tick_ns;
	st->hide_kernel = config->hide_kernel;
	st->hide_user = config->hide_user;
	st->fold_threads = config->fold_threads;
	st->theme = config->theme;
	st->mouse = config->mouse;
	st->bindings = config->bindings;
	for (unsigned int i = 0; i < APP_COLUMN_VIEWS; i++)
		st->lists[columns_view(i)].columns =
			columns_parse(view_of(columns_view(i)), config->columns[i]);
	st->percent_limit = config->percent_limit;
	st->intervals = config->intervals;
	st->folds = folds_new();
	st->annotate.function = UINT32_MAX;
	if (st->folds)
		st->folds->by_module = config->flame_modules;
	functions = &st->lists[VIEW_FUNCTIONS];
	functions->sort = view_functions_column(config->sort);
	functions->inverted = config->sort_inverted;
	st->lists[VIEW_MESSAGES].sort = view_messages.sort_self;
	if (config->filter) {
		match_set(&functions->filter, config->filter);
		match_set(&st->lists[VIEW_PROCESSES].filter, config->filter);
	}
	list_rebuild(st, VIEW_HELP);
}

void ui_state_fini(struct ui_state *st)
{
	dialog_close(st);
	words_fini(&st->words);
	folds_free(st->folds);
	for (int i = 0; i < VIEW_NR; i++)
		list_fini(&st->lists[i]);
	match_fini(&st->cgroup);
	if (st->baseline != st->shown && st->baseline != st->latest)
		profile_free(st->baseline);
	if (st->shown != st->latest)
		profile_free(st->shown);
	profile_free(st->latest);
	free(st->alarms);
	if (st->annotate.arrows)
		arrows_fini(st->annotate.arrows);
	free(st->annotate.arrows);
}

/* Remember the trouble of each CPU for a while. */
static void note_alarms(struct ui_state *st, const struct profile *p)
{
	if (st->nr_alarms != p->nr_cpus) {
		struct alarm *alarms = calloc(p->nr_cpus ? p->nr_cpus : 1, sizeof(*alarms));

		if (!alarms)
			return;
		free(st->alarms);
		st->alarms = alarms;
		st->nr_alarms = p->nr_cpus;
	}
	for (uint32_t i = 0; i < p->nr_cpus; i++) {
		struct alarm *a = &st->alarms[i];

		a->cpu = p->cpus[i].cpu;
		if (!p->cpus[i].lost && !p->cpus[i].throttled)
			continue;
		a->lost = p->cpus[i].lost;
		a->throttled = p->cpus[i].throttled;
		a->until_ns = st->now_ns + ALARM_NS;
	}
}

void ui_state_release(const struct ui_state *st, struct profile *p)
{
	if (p != st->latest && p != st->shown && p != st->baseline)
		folding_discard(st->folding, p);
}

void ui_state_take(struct ui_state *st, struct profile *p)
{
	struct profile *before = st->latest;

	if (!p)
		return;
	st->latest = p;
	folds_arrived(st, p);
	if (!st->frozen) {
		st->shown = p;
		folds_note(st);
	}
	ui_state_release(st, before);
	note_alarms(st, p);
	if (p->message_seq != st->message_seq && p->message[0])
		ui_state_say(st, false, "%s", p->message);
	st->message_seq = p->message_seq;
	if (st->asked_hz > 0 && p->nr_events) {
		double want = p->events[ui_state_event(st, p)].want_hz;

		if (want == st->asked_hz || st->now_ns - st->asked_ns > ASKED_NS)
			st->asked_hz = 0;
	}
	/* The others are made anew when they are shown. */
	if (!st->frozen || st->view == VIEW_CPUS || st->view == VIEW_MESSAGES ||
	    st->view == VIEW_ANNOTATE)
		list_rebuild(st, st->view);
	view_annotate_arrived(st);
	if (st->dialog.ops)
		dialog_refresh(st);
}

struct safe_text ui_name(const struct ui_state *st, char buf[static TEXT_MAX],
			 struct safe_text name)
{
	return st->full_names ? name : format_name(buf, name);
}

void ui_state_say(struct ui_state *st, bool bad, const char *fmt, ...)
{
	char text[sizeof(st->message)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	ui_clean(st->message, sizeof(st->message), text);
	st->message_bad = bad;
	st->message_until_ns = st->now_ns + MESSAGE_NS;
}

uint32_t ui_state_event(const struct ui_state *st, const struct profile *p)
{
	for (uint32_t i = 0; i < p->nr_events; i++)
		if (!strcmp(p->events[i].event.name, st->event_name))
			return i;
	return 0;
}

double ui_state_want_hz(const struct ui_state *st)
{
	if (st->asked_hz > 0 && st->now_ns - st->asked_ns <= ASKED_NS)
		return st->asked_hz;
	if (!st->latest || !st->latest->nr_events)
		return 0;
	return st->latest->events[ui_state_event(st, st->latest)].want_hz;
}

uint32_t ui_state_process(const struct ui_state *st)
{
	for (uint32_t i = 0; st->shown && i < st->shown->nr_processes; i++)
		if (st->shown->processes[i].id == st->process)
			return i;
	return UINT32_MAX;
}

uint32_t ui_state_thread(const struct ui_state *st)
{
	for (uint32_t i = 0; st->drilled && st->in_thread && st->shown && i < st->shown->nr_tasks;
	     i++)
		if (st->shown->tasks[i].id == st->thread)
			return i;
	return UINT32_MAX;
}

void ui_state_zone(struct ui_state *st, const struct zone *zone)
{
	if (st->nr_zones < ZONES_MAX)
		st->zones[st->nr_zones++] = *zone;
}
