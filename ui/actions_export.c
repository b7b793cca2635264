// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Export of the shown profile. Runs on: the main thread.
 */
#include "ui/actions_export.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ui/text/users.h"
#include "ui/fold/fold.h"
#include "ui/view/view.h"

static const char *const windows[PROFILE_NR_WINDOWS] = {
	[PROFILE_WINDOW] = "last seconds",
	[PROFILE_DECAY] = "decaying",
	[PROFILE_TOTAL] = "since reset",
};

/* Describe the process and thread drilled into. */
static void set_title(const struct ui_state *st, struct snapshot_scope *scope)
{
	const struct scope *shown = &st->scope;

	if (!shown->drilled)
		return;
	text_format(scope->title, sizeof(scope->title), "%s%s%s", shown->process_name,
		    shown->thread_group[0] ? " threads "
		    : shown->in_thread	   ? " one thread"
					   : "",
		    shown->thread_group);
}

/* Add a limit to the description of the scope: "user www-data, cgroup web". */
static void add_only(struct snapshot_scope *scope, const char *what, const char *value)
{
	char before[sizeof(scope->only)];

	memcpy(before, scope->only, sizeof(before));
	text_format(scope->only, sizeof(scope->only), "%s%s%s %s", before, *before ? ", " : "",
		    what, value);
}

/* Describe the user and cgroup that are shown; set the module if the view shows one alone. */
static void set_only(const struct ui_state *st, struct snapshot_scope *scope)
{
	const struct profile *p = st->shown;
	char name[64];

	if (st->scope.by_user)
		add_only(scope, "user",
			 users_name(st->config->users, st->scope.uid, name, sizeof(name)).str);
	if (match_active(&st->scope.cgroup))
		add_only(scope, "cgroup", st->scope.cgroup.text);
	if (!st->only.on || !view_shown(st)->by_module)
		return;
	scope->module = st->only.id;
	for (uint32_t i = 0; i < p->nr_modules; i++)
		if (p->modules[i].id == st->only.id)
			add_only(scope, "module", p->modules[i].name.str);
}

bool actions_export_scope(const struct ui_state *st, struct snapshot_scope *scope)
{
	const struct match *filter = &st->lists[st->view].filter;
	bool any;

	export_scope_all(scope, ui_state_event(st, st->shown));
	any = folds_filter(st, &scope->filter);
	/* Files have the time itself. */
	if (scope->filter.event == PROFILE_LATENCY)
		scope->filter.event = ui_state_event(st, st->shown);
	/* In the other views the filter is not one of functions. */
	if (match_active(filter) && (st->view == VIEW_FUNCTIONS || view_shown(st)->stacks))
		memcpy(scope->find, filter->text, sizeof(scope->find));
	snprintf(scope->host, sizeof(scope->host), "%s", st->host);
	snprintf(scope->range, sizeof(scope->range), "%s%s",
		 st->shown->past_end_ns ? "a range of the past" : windows[st->shown->window],
		 st->frozen ? ", frozen" : "");
	set_title(st, scope);
	set_only(st, scope);
	return any;
}

void actions_export(struct ui_state *st, const char *path, enum export_format format, bool replace)
{
	struct snapshot_scope scope;
	struct err e;
	int code;

	if (format == EXPORT_NR)
		format = export_format_of(path);
	if (format == EXPORT_NR) {
		ui_state_say(st, true, "%s: the ending names no format (F9 lists them)", path);
		return;
	}
	if (!st->shown) {
		ui_state_say(st, true, "nothing to export yet");
		return;
	}
	if (!actions_export_scope(st, &scope)) {
		ui_state_say(st, true, "nothing to export: no samples of %s in this window",
			     scope.title);
		return;
	}
	code = file_worker_start(st->files, export_work(st->shown, &scope, format, path, replace),
				 time_now_ns(), &e);
	if (code)
		ui_state_say(st, code < 0, "%s", e.text);
}

void actions_export_here(struct ui_state *st, enum export_format format)
{
	time_t now = time(NULL);
	char when[32], path[64];
	struct tm tm;

	if (!st->config->saves) {
		ui_state_say(st, false, "':export FILE' exports the profile");
		return;
	}
	localtime_r(&now, &tm);
	strftime(when, sizeof(when), "%Y%m%d-%H%M%S", &tm);
	snprintf(path, sizeof(path), "proftop-%s%s", when, export_ending(format));
	actions_export(st, path, format, false);
}

bool actions_export_progress(struct ui_state *st)
{
	int permille = file_worker_permille(st->files, st->now_ns);
	const char *doing;

	/* An error remains for a moment. */
	if (permille < 0 || ui_state_is_held(st))
		return false;
	doing = file_worker_doing(st->files);
	if (permille)
		ui_state_say(st, false, "%s: %d %%", doing, permille / 10);
	else
		ui_state_say(st, false, "%s", doing);
	return true;
}
