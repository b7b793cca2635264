// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Start and end of the state, and the profiles it takes in. Runs on: the main thread.
 */

#include "ui/model.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ui/dialog.h"
#include "ui/serve/serve.h"
#include "ui/text/format.h"
#include "ui/view/arrows.h"
#include "ui/view/columns.h"
#include "ui/view/folding.h"
#include "ui/fold/fold.h"
#include "ui/view/function_columns.h"
#include "ui/view/baseline.h"
#include "ui/view/table.h"
#include "ui/view/view.h"
#include "ui/view/view_annotate.h"

#define ALARM_NS (5 * 1000000000ull)
/* A request without an answer after this time was refused. */

void model_init(struct ui_state *st, struct sampler *s, const struct ui_config *config, bool ascii)
{
	char host[65] = "";
	struct list *functions;

	memset(st, 0, sizeof(*st));
	st->sampler = s;
	st->config = config;
	st->glyphs = theme_glyphs(ascii);
	if (!config->host && gethostname(host, sizeof(host) - 1))
		host[0] = '\0';
	ui_state_clean(st->host, sizeof(st->host), config->host ? config->host : host);
	st->tick_ns = config->tick_ns;
	st->scope.hide_kernel = config->hide_kernel;
	st->scope.hide_user = config->hide_user;
	ui_state_set_time(st, config->time);
	st->fold_threads = config->fold_threads;
	st->grouping = config->grouping;
	st->theme = config->theme;
	st->mouse = config->mouse;
	st->user_keys = config->user_keys;
	for (unsigned int i = 0; i < CONFIG_COLUMN_VIEWS; i++)
		st->lists[columns_view(i)].columns =
			columns_parse(view_of(columns_view(i)), config->columns[i]);
	st->percent_limit = config->percent_limit;
	st->intervals = config->intervals;
	st->folds = folds_new();
	st->annotate.function = UINT32_MAX;
	if (st->folds)
		st->folds->by_module = config->flame_modules;
	st->baseline = config->baseline;
	st->baseline_path = config->baseline_path;
	if (st->folds)
		st->folds->by_change = st->baseline != NULL;
	functions = &st->lists[VIEW_FUNCTIONS];
	functions->sort = function_columns_find(config->sort);
	functions->inverted = config->sort_inverted;
	for (unsigned int i = 0; i < CONFIG_COLUMN_VIEWS; i++)
		columns_parse_sort(view_of(columns_view(i)), config->sorts[i],
				   &st->lists[columns_view(i)]);
	st->lists[VIEW_MESSAGES].sort = view_messages.sorts->self;
	if (config->filter) {
		match_set(&functions->filter, config->filter);
		match_set(&st->lists[VIEW_PROCESSES].filter, config->filter);
	}
	table_rebuild(st, VIEW_HELP);
}

void model_fini(struct ui_state *st)
{
	dialog_close(st);
	words_fini(&st->words);
	folds_free(st->folds);
	free(st->rewind.strip);
	free(st->rewind.query);
	for (int i = 0; i < VIEW_NR; i++)
		list_fini(&st->lists[i]);
	match_fini(&st->scope.cgroup);
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

/* Record lost and throttled samples of each CPU; they are shown for some seconds. */
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

void model_release(const struct ui_state *st, struct profile *p)
{
	if (p != st->latest && p != st->shown && p != st->baseline)
		folding_discard(st->folding, p);
}

/* Show a new message of the sampler; an error about the last key or command is not cut short. */
static void take_status(struct ui_state *st, const struct profile *p)
{
	if (p->status_seq == st->status_seq || ui_state_is_held(st))
		return;
	if (p->status[0])
		ui_state_say(st, false, "%s", p->status);
	st->status_seq = p->status_seq;
}

/*
 * When all processes of the target have exited, show all samples: the last seconds would soon be an
 * empty screen.
 */
static void show_whole(struct ui_state *st, const struct profile *p)
{
	bool ends = p->target_gone && !st->target_gone && !st->config->replayed;
	char span[FORMAT_MAX];

	st->target_gone = p->target_gone;
	if (st->whole_at_end && !p->target_gone) {
		/* Another target. */
		st->whole_at_end = false;
		ui_state_ask_window(st, PROFILE_WINDOW);
	}
	if (!ends || ui_state_want_window(st) != PROFILE_WINDOW)
		return;
	st->whole_at_end = true;
	ui_state_ask_window(st, PROFILE_TOTAL);
	ui_state_say(st, false,
		     "%.80s: all processes have exited; this is the whole run (z: its last %s)",
		     p->target, format_span(span, st->config->window_ns).str);
}

void model_take(struct ui_state *st, struct profile *p)
{
	struct profile *before = st->latest;

	if (!p)
		return;
	assert(p != before && p != st->shown && p != st->baseline);
	st->latest = p;
	serve_publish(st->config->serve, p, NULL);
	folds_arrived(st);
	if (!st->frozen) {
		st->shown = p;
		folds_note(st);
	}
	model_release(st, before);
	note_alarms(st, p);
	ui_state_choose_worst(st);
	take_status(st, p);
	show_whole(st, p);
	if (!before && st->baseline_path && !baseline_is_on(st))
		ui_state_say(st, true, "not compared: %.100s has no event %s", st->baseline_path,
			     p->nr_events ? p->events[ui_state_event(st, p)].event.name : "");
	if (p->nr_events && p->events[ui_state_event(st, p)].want_hz == st->asked_hz)
		st->asked_hz = 0;
	if (p->window == st->asked_window)
		st->asked_window_ns = 0;
	/* Other views are rebuilt when they are shown. */
	if (!st->frozen || view_shown(st)->newest)
		table_rebuild(st, st->view);
	view_annotate_arrived(st);
	if (st->dialog.ops)
		dialog_refresh(st);
}

void model_folded(struct ui_state *st)
{
	folds_returned(st);
	table_rebuild(st, st->view);
}
