// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The tabs. The main thread; reads the state, adds mouse zones.
 *
 * Everything that hides rows must be visible: if the line is too short, the
 * names of other views are shortened first.
 */
#include "ui/view/header_tabs.h"

#include <stdio.h>
#include <string.h>

#include "ui/draw/pen.h"
#include "ui/text/format.h"
#include "ui/text/users.h"
#include "ui/view/baseline.h"
#include "ui/fold/fold.h"
#include "ui/view/header_strip.h"
#include "ui/view/times.h"
#include "ui/view/view.h"

static const enum action actions[VIEW_HELP] = {
	[VIEW_FUNCTIONS] = ACT_VIEW_FUNCTIONS, [VIEW_PROCESSES] = ACT_VIEW_PROCESSES,
	[VIEW_TREE] = ACT_VIEW_TREE,	       [VIEW_FLAME] = ACT_VIEW_FLAME,
	[VIEW_CPUS] = ACT_VIEW_CPUS,	       [VIEW_MODULES] = ACT_VIEW_MODULES,
	[VIEW_MESSAGES] = ACT_VIEW_MESSAGES,
};

/* Write the file of the baseline, or when it was: the running time, or the moment of a range of the
 * past. */
static const char *baseline_time(const struct ui_state *st, char *buf, size_t size)
{
	const struct profile *b = st->baseline;
	char clock[FORMAT_MAX];
	const char *name;

	if (st->baseline_path) {
		name = strrchr(st->baseline_path, '/');
		ui_state_clean(buf, size, name && name[1] ? name + 1 : st->baseline_path);
		return buf;
	}
	if (b->past_end_ns)
		return header_strip_moment(st, b->past_begin_ns, buf, size);
	snprintf(buf, size, "%s", format_clock(clock, b->running_ns).str);
	return buf;
}

/* Say that the rows are not of the shown moment. */
static size_t live_note(const struct ui_state *st, char *buf, size_t size)
{
	const char *rows = st->config->replayed ? "rows of the whole recording" : "live rows";
	char at[64];

	/* Of a recording that is read to its end, the frozen rows are the newest. */
	if (!st->rewind.on)
		return st->config->replayed && st->shown == st->latest
			       ? 0
			       : (size_t)snprintf(buf, size, "  live rows, not frozen");
	return (size_t)snprintf(buf, size, "  %s, not of %s", rows,
				header_strip_moment(st, st->rewind.begin_ns, at, sizeof(at)));
}

/* Write all that hides rows; "": nothing. */
static struct safe_text left_out(const struct ui_state *st, char *buf, size_t size)
{
	const struct list *list = &st->lists[st->view];
	const struct view *v = view_shown(st);
	char limit[FORMAT_MAX], user[64];
	size_t n = 0;

	*buf = '\0';
	if (v->newest && st->frozen)
		n += live_note(st, buf, size);
	if (match_active(&list->filter) && n < size)
		n += (size_t)snprintf(buf + n, size - n, "  filter %s%s", list->filter.text,
				      list->filter.bad ? " (literal)" : "");
	if (match_active(&st->scope.cgroup) && n < size)
		n += (size_t)snprintf(buf + n, size - n, "  cgroup %s (:cgroup)",
				      st->scope.cgroup.text);
	if (st->scope.by_user && n < size)
		n += (size_t)snprintf(
			buf + n, size - n, "  user %s (u)",
			users_name(st->config->users, st->scope.uid, user, sizeof(user)).str);
	if (v->options && n < size)
		n += v->options(st, buf + n, size - n);
	if (!v->newest && st->shown && st->shown->past_other_events && n < size)
		n += (size_t)snprintf(buf + n, size - n, "  samples of other events left out");
	if (v->compared && baseline_is_on(st) && n < size)
		n += (size_t)snprintf(buf + n, size - n, "  against %s (B)",
				      baseline_time(st, user, sizeof(user)));
	if (st->shown && st->shown->shown_frames != FRAMES_LANGUAGE && n < size)
		n += (size_t)snprintf(buf + n, size - n, "  frames: %s (l)",
				      profile_frames_name(st->shown->shown_frames));
	if (st->scope.hide_kernel && n < size)
		n += (size_t)snprintf(buf + n, size - n, "  kernel hidden (K)");
	if (st->scope.hide_user && n < size)
		n += (size_t)snprintf(buf + n, size - n, "  user hidden (U)");
	if (ui_state_latency(st, st->shown) && n < size)
		n += (size_t)snprintf(buf + n, size - n, "  1 / running tasks (^)");
	if (times_hidden(st) >= 0.005 && n < size)
		n += (size_t)snprintf(buf + n, size - n, "  idle %s hidden (\")",
				      format_tasks(limit, times_hidden(st)).str);
	if (st->percent_limit > 0 && n < size)
		snprintf(buf + n, size - n, "  under %s%% hidden (L)",
			 format_percent(limit, st->percent_limit / 100).str);
	return (struct safe_text){ buf, 0, 0 };
}

/* The form of the tabs: spaced, and the first @named with names. */
struct tabs_form {
	bool apart;
	int named;
};

/* "[1 Functions]", " 2 Processes ", or " 2" on narrow screens. */
static struct safe_text tab_text(const struct ui_state *st, enum view_id id, struct tabs_form form,
				 char *buf, size_t size)
{
	bool here = id == st->view, named = here || (int)id < form.named;
	char key[8];

	return text_format(buf, size,
			   here		? "%s[%s%s%s]"
			   : form.apart ? "%s %s%s%s "
					: "%s %s%s%s",
			   here && id && !form.apart ? " " : "",
			   key_name_of(key, user_keys_first(st->user_keys, CTX_LIST, actions[id])),
			   named ? " " : "", named ? view_of(id)->title.str : "");
}

/* "[% Branches]": a view without a tab, while it is shown. */
static struct safe_text other_text(const struct ui_state *st, struct tabs_form form, char *buf,
				   size_t size)
{
	char key[8] = "";
	enum action action = st->view == VIEW_BRANCHES ? ACT_VIEW_BRANCHES
			     : st->view == VIEW_MEMORY ? ACT_VIEW_MEMORY
						       : ACT_NONE;

	if (st->view <= VIEW_HELP)
		return TEXT("");
	if (action != ACT_NONE)
		key_name_of(key, user_keys_first(st->user_keys, CTX_LIST, action));
	return text_format(buf, size, "%s[%s%s%s]", form.apart ? "" : " ", key, *key ? " " : "",
			   view_of(st->view)->title.str);
}

static unsigned int tabs_width(const struct ui_state *st, struct tabs_form form)
{
	unsigned int width = 0;
	char buf[64];

	for (int i = 0; i < VIEW_HELP; i++)
		width += tab_text(st, (enum view_id)i, form, buf, sizeof(buf)).width + form.apart;
	return width + other_text(st, form, buf, sizeof(buf)).width;
}

/* Choose the form that fits into @cols; the last names are dropped first. */
static struct tabs_form tabs_fit(const struct ui_state *st, unsigned int cols)
{
	struct tabs_form form = { true, VIEW_HELP };

	if (tabs_width(st, form) <= cols)
		return form;
	form.apart = false;
	while (form.named && tabs_width(st, form) > cols)
		form.named--;
	return form;
}

void header_tabs(struct ui_state *st, struct canvas *c, unsigned int row)
{
	char text[MATCH_MAX * 2 + 128], clean[sizeof(text)], buf[64];
	struct safe_text out =
		ui_state_clean(clean, sizeof(clean), left_out(st, text, sizeof(text)).str);
	struct tabs_form form = tabs_fit(st, c->cols - MIN(out.width + 2u, c->cols));
	struct pen pen = { c, row, 1, c->cols };

	for (int i = 0; i < VIEW_HELP; i++) {
		unsigned int col = pen.col;
		bool here = i == (int)st->view;

		pen_text(&pen, 0, tab_text(st, (enum view_id)i, form, buf, sizeof(buf)),
			 here ? ROLE_VALUE : ROLE_NORMAL);
		ui_state_zone(st,
			      &(struct zone){ (uint16_t)row, (uint16_t)col, 1,
					      (uint16_t)(pen.col - col), ZONE_VIEW, (uint32_t)i });
		pen.col += form.apart;
	}
	pen_text(&pen, 0, other_text(st, form, buf, sizeof(buf)), ROLE_VALUE);
	if (out.size && pen.col + 1 < c->cols)
		canvas_elide(c, row, pen.col, c->cols - pen.col, out,
			     (struct style){ ROLE_WARN, 0 });
}
