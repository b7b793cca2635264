// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The contents of boxes: rate, process, order, events, columns, menu of a row, formats, users,
 * settings, mutexes, stacks.
 *
 * Runs on: the main thread.
 */
#include "ui/internal.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/count/count.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "sampler/waits/waits.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "ui/cli/cli.h"
#include "ui/draw/draw.h"
#include "ui/export/export.h"
#include "ui/fold/fold.h"
#include "ui/key/key.h"
#include "ui/state/state.h"
#include "ui/text/text.h"
#include "ui/view/view.h"

/* For fill(): append an entry, zeroed. Return NULL if there is no memory for it. */
static struct dialog_entry *dialog_add(struct dialog *d)
{
	if (d->nr == d->capacity) {
		uint32_t capacity = d->capacity ? d->capacity * 2 : 64;
		struct dialog_entry *entries = reallocarray(d->entries, capacity, sizeof(*entries));
		uint32_t *shown;

		if (!entries)
			return NULL;
		d->entries = entries;
		shown = reallocarray(d->shown, capacity, sizeof(*shown));
		if (!shown)
			return NULL;
		d->shown = shown;
		d->capacity = capacity;
	}
	memset(&d->entries[d->nr], 0, sizeof(*d->entries));
	return &d->entries[d->nr++];
}

/*
 * The picker of columns. Runs on: the main thread.
 */

#define AUTOMATIC UINT64_MAX

static uint32_t shown_now(const struct ui_state *st)
{
	const struct view *v = view_of(st->view);
	uint32_t columns = 0;

	for (int i = 0; i < v->nr_columns; i++)
		if (columns_shown(st, v, st->lists[st->view].columns, i, st->cols))
			columns |= 1u << i;
	return columns;
}

static void fill(struct ui_state *st)
{
	const struct view *v = view_of(st->view);
	uint32_t now = shown_now(st);
	struct dialog_entry *entry = dialog_add(&st->dialog);

	if (!entry)
		return;
	entry->value = AUTOMATIC;
	entry->used = !st->lists[st->view].columns;
	snprintf(entry->name, sizeof(entry->name), "automatic");
	snprintf(entry->detail, sizeof(entry->detail), "all that fit the screen");
	for (int i = 0; i < v->nr_columns; i++) {
		char name[COLUMNS_NAME_MAX];

		if (v->columns[i].when && !v->columns[i].when(st))
			continue;
		entry = dialog_add(&st->dialog);
		if (!entry)
			return;
		entry->value = (uint64_t)i;
		entry->used = now & 1u << i;
		snprintf(entry->name, sizeof(entry->name), "%s",
			 columns_name(&v->columns[i], name));
		snprintf(entry->detail, sizeof(entry->detail), "%s",
			 v->columns[i].help ? v->columns[i].help : "");
	}
}

/* Toggle a column; keep the picker open. */
static bool dialog_columns_use(struct ui_state *st, const struct dialog_entry *entry, bool add)
{
	uint32_t now = shown_now(st);

	if (!entry)
		return false;
	if (entry->value == AUTOMATIC)
		now = 0;
	else
		now ^= 1u << entry->value;
	if (entry->value == AUTOMATIC || now)
		st->lists[st->view].columns = now;
	dialog_refresh(st);
	return false;
}

const struct dialog_ops dialog_columns = {
	.title = "Columns",
	.hint = "type to filter",
	.foot = "Enter show or hide   W save   Esc close",
	.fill = fill,
	.use = dialog_columns_use,
};

/*
 * The event picker: the events of this machine, and why some are not
 * available. The main thread; the sampler probes them in the background.
 */

#define STATES_MAX 8192
#define UNKNOWN	   1 /* sampler_event_state.code: not probed yet */

/* Return whether it is sampled now, with any modifiers. */
static bool sampled(const struct ui_state *st, const char *name)
{
	size_t size = strlen(name);

	for (uint32_t i = 0; st->latest && i < st->latest->nr_events; i++) {
		const char *used = st->latest->events[i].event.name;

		if (!strncmp(used, name, size) && (!used[size] || used[size] == ':'))
			return true;
	}
	return false;
}

/* @probing: it is not known yet which of its events this machine has. */
static void add_heading(struct dialog *d, const char *group, bool probing)
{
	struct dialog_entry *entry = dialog_add(d);

	if (!entry)
		return;
	entry->heading = true;
	snprintf(entry->detail, sizeof(entry->detail), "%s", probing ? "probing" : "");
	for (size_t i = 0; group[i] && i < sizeof(entry->name) - 1; i++)
		entry->name[i] = group[i] >= 'a' && group[i] <= 'z' ? (char)(group[i] - 32)
								    : group[i];
}

static void add_state(struct ui_state *st, const struct sampler_event_state *state)
{
	struct dialog_entry *entry = dialog_add(&st->dialog);
	const char *reason = state->code < 0 ? event_errno(-state->code) : "";

	if (!entry)
		return;
	snprintf(entry->name, sizeof(entry->name), "%s", state->info->name);
	entry->used = sampled(st, state->info->name);
	entry->refused = state->code < 0 && !entry->used;
	if (entry->refused)
		snprintf(entry->detail, sizeof(entry->detail), "%s", reason ? reason : "");
	else
		snprintf(entry->detail, sizeof(entry->detail), "%s",
			 state->info->description ? state->info->description : "");
}

/* List the sampled events with the keys that turn them on and off. */
static void add_sampled(struct ui_state *st)
{
	const struct profile *p = st->latest;

	add_heading(&st->dialog, "sampled now", false);
	for (uint32_t i = 0; p && i < p->nr_events; i++) {
		const struct profile_event *ev = &p->events[i];
		struct dialog_entry *entry = dialog_add(&st->dialog);
		char rate[32] = "fixed period";

		if (!entry)
			return;
		entry->value = i + 1;
		entry->used = ev->enabled;
		snprintf(entry->name, sizeof(entry->name), "%s", ev->event.name);
		if (ev->event.counted)
			snprintf(rate, sizeof(rate), "counted with its group");
		else if (ev->want_hz > 0)
			snprintf(rate, sizeof(rate), "%.0f Hz", ev->want_hz);
		snprintf(entry->detail, sizeof(entry->detail), "%s%s%.60s; press %u to %s it", rate,
			 ev->event.filter[0] ? ", filter " : "", ev->event.filter, i + 1,
			 ev->enabled ? "stop" : "start");
	}
}

/* Is an event of the group of the first of @nr states unknown? */
static bool is_probing(const struct sampler_event_state *states, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		if (i && states[i].info->group &&
		    strcmp(states[i].info->group, states[0].info->group))
			return false;
		if (states[i].code == UNKNOWN)
			return true;
	}
	return false;
}

static void dialog_event_fill(struct ui_state *st)
{
	struct sampler_event_state *states = calloc(STATES_MAX, sizeof(*states));
	const char *group = "";
	uint32_t nr;

	if (!states)
		return;
	add_sampled(st);
	nr = sampler_event_states(st->sampler, states, STATES_MAX);
	for (uint32_t i = 0; i < MIN(nr, STATES_MAX); i++) {
		if (states[i].info->group && strcmp(states[i].info->group, group)) {
			group = states[i].info->group;
			add_heading(&st->dialog, group,
				    is_probing(&states[i], MIN(nr, STATES_MAX) - i));
		}
		add_state(st, &states[i]);
	}
	free(states);
}

/* Write the chosen levels as modifiers: "", "u", "kpp". */
static void format_levels(const struct dialog_levels *l, char *out, size_t max)
{
	static const char precise[] = "ppp";

	snprintf(out, max, "%s%s%s", l->user && !l->kernel ? "u" : "",
		 l->kernel && !l->user ? "k" : "", &precise[3 - MIN(l->precise, 3)]);
}

/* Name a picked event with the chosen levels, or return the typed text as it is. */
static const char *chosen(const struct ui_state *st, const struct dialog_entry *entry, char *out,
			  size_t max)
{
	size_t size = entry ? strlen(entry->name) : 0;
	char modifiers[8];

	if (!entry)
		return st->dialog.line.text;
	format_levels(&st->dialog.levels, modifiers, sizeof(modifiers));
	snprintf(out, max, "%s%s%s", entry->name,
		 modifiers[0] && size && entry->name[size - 1] != '/' ? ":" : "", modifiers);
	return out;
}

/* Apply the chosen levels to sampled event number @at. */
static void change_levels(struct ui_state *st, uint32_t at)
{
	char modifiers[8];

	format_levels(&st->dialog.levels, modifiers, sizeof(modifiers));
	sampling_event_edit(st, at, modifiers, NULL);
}

static bool levels_are_chosen(const struct dialog_levels *l)
{
	return !l->user || !l->kernel || l->precise;
}

static bool dialog_event_use(struct ui_state *st, const struct dialog_entry *entry, bool add)
{
	char text[EVENT_NAME_MAX + 16];
	const struct dialog *d = &st->dialog;

	if (entry && entry->value) {
		if (d->in_field)
			return sampling_event_edit(st, (uint32_t)entry->value - 1, NULL,
						   d->field.text);
		if (add)
			sampling_event_take_out(st, (uint32_t)entry->value - 1);
		else if (levels_are_chosen(&st->dialog.levels))
			change_levels(st, (uint32_t)entry->value - 1);
		else
			snprintf(st->scope.event_name, sizeof(st->scope.event_name), "%s",
				 entry->name);
		return !add;
	}
	return sampling_event_use(st, chosen(st, entry, text, sizeof(text)),
				  d->in_field ? d->field.text : "", add) &&
	       !add;
}

/* Start from the filter of a sampled event. Names with a colon are tracepoints here. */
static bool dialog_event_field(struct ui_state *st, const struct dialog_entry *entry,
			       struct line *line)
{
	const struct profile *p = st->latest;
	const struct event *ev = entry->value && p && entry->value <= p->nr_events
					 ? &p->events[entry->value - 1].event
					 : NULL;

	if (ev ? ev->type != PERF_TYPE_TRACEPOINT : !strchr(entry->name, ':')) {
		ui_state_say(st, true, "%.100s is not a tracepoint: it has no fields to filter by",
			     entry->name);
		return false;
	}
	line_set(line, ev ? ev->filter : "");
	return true;
}

static void status(const struct ui_state *st, char *buf, size_t size)
{
	const struct dialog_levels *l = &st->dialog.levels;

	snprintf(buf, size,
		 "[%c] user ^U  [%c] kernel ^K  precise %u ^T  filter ^F  (E: each alone)",
		 l->user ? 'x' : ' ', l->kernel ? 'x' : ' ', l->precise);
}

/* 1 to 9 toggle the sampled events; ^U, ^K, ^T choose the levels of the next event. */
static bool key(struct ui_state *st, uint32_t code)
{
	struct dialog_levels *l = &st->dialog.levels;
	const struct profile *p = st->latest;

	if (code >= '1' && code <= '9') {
		uint32_t i = code - '1';

		if (p && i < p->nr_events)
			sampler_set_event_enabled(st->sampler, i, !p->events[i].enabled);
		return true;
	}
	switch (key_find(CTX_PICKER, code)) {
	case ACT_EVENT_USER:
		l->user = !l->user || !l->kernel;
		return true;
	case ACT_EVENT_KERNEL:
		l->kernel = !l->kernel || !l->user;
		return true;
	case ACT_EVENT_PRECISE:
		l->precise = (l->precise + 1) % 4;
		return true;
	default:
		return false;
	}
}

const struct dialog_ops dialog_events = {
	.title = "F7 Event",
	.hint = "type to filter, or a name such as cycles:u or {cycles,instructions}",
	.foot = "Enter use   Tab add or remove   1-9 on, off   Esc close",
	.status = status,
	.key = key,
	.field = dialog_event_field,
	.can_add = true,
	.fill = dialog_event_fill,
	.use = dialog_event_use,
};

/*
 * The picker of formats for an export. Runs on: the main thread.
 */

static void dialog_export_fill(struct ui_state *st)
{
	struct dialog_entry *entry;

	for (int i = 0; i < EXPORT_NR && (entry = dialog_add(&st->dialog)); i++) {
		const struct export_words words = export_words(i);

		entry->value = (uint64_t)i;
		snprintf(entry->name, sizeof(entry->name), "%s", words.name);
		snprintf(entry->detail, sizeof(entry->detail), "%-16s %s", words.ending,
			 words.help);
	}
	entry = dialog_add(&st->dialog);
	if (!entry)
		return;
	entry->value = EXPORT_NR;
	snprintf(entry->name, sizeof(entry->name), "screen");
	snprintf(entry->detail, sizeof(entry->detail), "%-16s the screen as it is, as text (w)",
		 ".txt");
}

/* Export to a file in the working directory, named by the time. */
static void export_here(struct ui_state *st, enum export_format format)
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
	snprintf(path, sizeof(path), "proftop-%s%s", when, export_words(format).ending);
	outputs_export(st, path, format, false);
}

static bool dialog_export_use(struct ui_state *st, const struct dialog_entry *entry, bool add)
{
	char path[LINE_SIZE];

	if (!entry) {
		snprintf(path, sizeof(path), "%s", st->dialog.line.text);
		/* It may open a prompt. */
		dialog_close(st);
		outputs_export(st, path, EXPORT_NR, false);
		return false;
	}
	if (entry->value < EXPORT_NR) {
		export_here(st, (enum export_format)entry->value);
		return true;
	}
	/* Close it first: it would be on the saved screen. */
	dialog_close(st);
	actions_do(st, ACT_SAVE_SCREEN, 0);
	return false;
}

const struct dialog_ops dialog_export = {
	.title = "F9 Export",
	.hint = "type a file name, or pick a format for a file here",
	.foot = "Exports the shown samples: window, process, filter, event",
	.fill = dialog_export_fill,
	.use = dialog_export_use,
};

/*
 * The menu of a row: its actions, and why some of them are not possible. The
 * main thread.
 */

static void add_entry(struct ui_state *st, const struct key_binding *b)
{
	const char *refusal = actions_row_refusal(st, b->action);
	struct dialog_entry *entry = dialog_add(&st->dialog);
	char dialog_menu_key[8];

	if (!entry)
		return;
	entry->value = b->action;
	entry->refused = refusal;
	snprintf(entry->name, sizeof(entry->name), "%-6s %s",
		 key_name_of(dialog_menu_key, user_keys_first(st->user_keys, CTX_LIST, b->action)),
		 b->name);
	snprintf(entry->detail, sizeof(entry->detail), "%s", refusal ? refusal : b->help);
}

/* Add why the row's function has no name, and how to fix it. */
static void add_reason(struct ui_state *st)
{
	uint32_t function = view_function(st);
	const struct profile_function *f = function == UINT32_MAX ? NULL
								  : &st->shown->functions[function];
	struct dialog_entry *entry;

	if (!f || !f->reason || !*f->reason || !(entry = dialog_add(&st->dialog)))
		return;
	snprintf(entry->name, sizeof(entry->name), "why it has no name");
	snprintf(entry->detail, sizeof(entry->detail), "%s", f->reason);
	if (!f->fix || !*f->fix || !(entry = dialog_add(&st->dialog)))
		return;
	snprintf(entry->name, sizeof(entry->name), "how to fix it");
	snprintf(entry->detail, sizeof(entry->detail), "%s", f->fix);
}

/* Add all actions on rows of the key table. */
static void dialog_menu_fill(struct ui_state *st)
{
	for (const struct key_binding *b = key_table(); b->action; b++)
		if (b->action == ACT_OPEN || (b->group == GROUP_ROW && b->action != ACT_MENU))
			add_entry(st, b);
	add_reason(st);
}

static bool dialog_menu_use(struct ui_state *st, const struct dialog_entry *entry, bool add)
{
	enum action action = entry ? (enum action)entry->value : ACT_NONE;

	if (!entry) {
		ui_state_say(st, true, "no matching action");
		return false;
	}
	if (action == ACT_NONE) {
		ui_state_say(st, false, "%s: %s", entry->name, entry->detail);
		return true;
	}
	/* Close it first: the action may open another one. */
	dialog_close(st);
	actions_do(st, action, user_keys_first(NULL, CTX_LIST, action));
	return false;
}

/* Handle keys as without the menu; after a slash they are text. */
static bool dialog_menu_key(struct ui_state *st, uint32_t code)
{
	enum action action = user_keys_find(st->user_keys, CTX_LIST, code);
	const struct dialog *d = &st->dialog;

	if (d->typing || code <= ' ' || code >= K_BACKSPACE)
		return false;
	if (code == '/') {
		st->dialog.typing = true;
		return true;
	}
	for (uint32_t i = 0; i < d->nr; i++)
		if (action && d->entries[i].value == action && !d->entries[i].refused) {
			dialog_menu_use(st, &d->entries[i], false);
			return true;
		} else if (action && d->entries[i].value == action) {
			ui_state_say(st, true, "%s", d->entries[i].detail);
			return true;
		}
	ui_state_say(st, false, "no such key in this menu (/ filters it)");
	return true;
}

const struct dialog_ops dialog_menu = {
	.title = "m Actions of this row",
	.hint = "press a key on the left; / filters",
	.foot = "Enter run the selected action   Esc close",
	.key = dialog_menu_key,
	.fill = dialog_menu_fill,
	.use = dialog_menu_use,
};

/*
 * The pickers of frequency, process and sort column. Runs on: the main thread.
 */

static void add_frequency(struct ui_state *st, double hz, const char *note)
{
	struct dialog_entry *entry = dialog_add(&st->dialog);
	double limit = sampler_max_hz(st->sampler);
	uint32_t nr_cpus = st->latest ? st->latest->nr_cpus : 0;
	const struct profile_event *ev =
		st->latest && st->latest->nr_events
			? &st->latest->events[ui_state_event(st, st->latest)]
			: NULL;
	char rate[FORMAT_MAX];

	if (!entry)
		return;
	entry->value = (uint64_t)hz;
	entry->used = ui_state_want_hz(st) == hz;
	entry->refused = limit > 0 && hz > limit;
	snprintf(entry->name, sizeof(entry->name), "%6.0f Hz", hz);
	if (entry->refused)
		snprintf(entry->detail, sizeof(entry->detail),
			 "above perf_event_max_sample_rate, %.0f", limit);
	else if (entry->used && ev && event_rate_is_frequency(ev) && ev->got_hz > 0)
		snprintf(entry->detail, sizeof(entry->detail), "got %.0f Hz  %s", ev->got_hz, note);
	else
		snprintf(entry->detail, sizeof(entry->detail), "at most %s samples/s  %s",
			 format_count(rate, hz * nr_cpus).str, note);
}

static void fill_frequencies(struct ui_state *st)
{
	static const char *const notes[] = { "always on", "", "", "",
					     "default",	  "", "", "short runs only" };
	double want = ui_state_want_hz(st);
	const double *ladder;
	size_t nr = rate_ladder(&ladder);
	bool listed = want <= 0;

	for (size_t i = 0; i < nr; i++) {
		/* A custom frequency is listed in order. */
		if (!listed && want < ladder[i]) {
			add_frequency(st, want, "");
			listed = true;
		}
		listed |= want == ladder[i];
		add_frequency(st, ladder[i],
			      i < ARRAY_SIZE(notes) && ladder[i] != 997 ? notes[i] : "");
	}
	if (!listed)
		add_frequency(st, want, "");
}

static bool use_frequency(struct ui_state *st, const struct dialog_entry *entry, bool add)
{
	const char *text = st->dialog.line.text;
	size_t size = strspn(text, "0123456789.");
	bool is_number = strspn(text + size, " Hhz") == strlen(text + size);
	char typed[LINE_SIZE];
	struct err e;
	struct options o = { .action = OPTIONS_RUN };

	/* Typed text takes precedence over a matching entry. */
	if (size)
		snprintf(typed, sizeof(typed), "%.*s", is_number ? (int)size : INT_MAX, text);
	else if (entry)
		snprintf(typed, sizeof(typed), "%llu", (unsigned long long)entry->value);
	else {
		ui_state_say(st, true, "type a frequency in Hz");
		return false;
	}
	o.set.max_hz = sampler_max_hz(st->sampler);
	if (setting_take(setting_at(setting_index("freq")), &o, "frequency", typed, &e)) {
		ui_state_say_error(st, &e);
		return false;
	}
	rate_set(st, rint(o.set.hz > 0 ? o.set.hz : st->config->automatic_hz));
	return true;
}

const struct dialog_ops dialog_frequency = {
	.title = "F8 Frequency",
	.hint = "or type a frequency in Hz",
	.foot = "Primes avoid lockstep with timers   [ lower   ] higher, without this list",
	.fill = fill_frequencies,
	.use = use_frequency,
};

static int compare_weight(const void *pa, const void *pb)
{
	const struct fold_process_row *a = pa, *b = pb;

	return (a->weight < b->weight) - (a->weight > b->weight);
}

/* List the processes with samples, hottest first, after "all processes". */
static void fill_processes(struct ui_state *st)
{
	struct fold_filter filter;
	struct fold_processes fold;
	struct dialog_entry *entry = dialog_add(&st->dialog);

	if (entry) {
		entry->value = UINT64_MAX;
		entry->used = !st->scope.drilled;
		snprintf(entry->name, sizeof(entry->name), "all processes");
	}
	if (!st->shown)
		return;
	folds_filter_all(st, &filter);
	if (fold_processes(st->shown, &filter, &fold))
		return;
	qsort(fold.rows, fold.nr_rows, sizeof(*fold.rows), compare_weight);
	for (uint32_t i = 0; i < fold.nr_rows && (entry = dialog_add(&st->dialog)); i++) {
		const struct profile_process *p = &st->shown->processes[fold.rows[i].process];
		char pct[FORMAT_MAX];

		entry->value = p->id;
		entry->used = st->scope.drilled && st->scope.process == p->id;
		/* The hottest one is wanted most often. */
		entry->first = !st->scope.drilled && !i;
		format_process(entry->name, sizeof(entry->name), p->comm, p->pid);
		snprintf(entry->detail, sizeof(entry->detail), "%6s%%  uid %u",
			 format_percent(pct,
					fold.weight > 0 ? fold.rows[i].weight / fold.weight : 0)
				 .str,
			 p->uid);
	}
	fold_processes_fini(&fold);
}

static bool use_process(struct ui_state *st, const struct dialog_entry *entry, bool add)
{
	const char *text = st->dialog.line.text;
	pid_t *pids = NULL;
	uint32_t nr = 0;

	if (!entry && *text && strspn(text, "0123456789") == strlen(text)) {
		/* A process without samples sleeps: its stacks can be read. */
		if (!number_pids(text, &pids, &nr))
			outputs_stacks_of(st, pids[0]);
		free(pids);
		return false;
	}
	if (!entry) {
		ui_state_say(st, true,
			     "no process with samples matches; a PID shows the stacks of a "
			     "sleeper");
		return false;
	}
	if (entry->value == UINT64_MAX)
		navigate_out_of_process(st);
	else
		navigate_into_process(st, (uint32_t)entry->value);
	return true;
}

const struct dialog_ops dialog_processes = {
	.title = "Process",
	.hint = "type a name or a pid",
	.foot = "Enter open   Esc close",
	.fill = fill_processes,
	.use = use_process,
};

static void fill_columns(struct ui_state *st)
{
	const struct view *v = view_of(st->view);
	bool ascii = st->glyphs == theme_glyphs(true);

	for (uint8_t i = 0; i < v->nr_columns; i++) {
		struct dialog_entry *entry;
		char name[COLUMNS_NAME_MAX], buf[TEXT_MAX];
		struct safe_text heading = columns_heading(st, &v->columns[i], ascii, buf);

		if (!columns_sortable(st, v, i) || !(entry = dialog_add(&st->dialog)))
			continue;
		entry->value = i;
		entry->used = ui_state_list(st)->sort == i;
		snprintf(entry->name, sizeof(entry->name), "%s",
			 heading.str[0] != ' ' ? heading.str : columns_name(&v->columns[i], name));
		snprintf(entry->detail, sizeof(entry->detail), "%s",
			 v->columns[i].help ? v->columns[i].help : "");
	}
}

static bool use_column(struct ui_state *st, const struct dialog_entry *entry, bool add)
{
	if (!entry)
		return false;
	table_sort_by(st, (uint8_t)entry->value);
	return true;
}

const struct dialog_ops dialog_sort = {
	.title = "F6 Sort by",
	.hint = "type to filter",
	.foot = "Enter sort   Esc close",
	.fill = fill_columns,
	.use = use_column,
};

/*
 * The picker of a user, and the settings: each with its value, changed by Enter. Runs on: the main
 * thread.
 */

/* ---- users ---- */

struct user_sum {
	uid_t uid;
	double weight;
};

static int by_weight(const void *pa, const void *pb)
{
	const struct user_sum *a = pa, *b = pb;

	return a->weight != b->weight ? COMPARE(b->weight, a->weight) : COMPARE(a->uid, b->uid);
}

static int by_uid(const void *pa, const void *pb)
{
	const struct user_sum *a = pa, *b = pb;

	return COMPARE(a->uid, b->uid);
}

/* Sum the samples of each user. Return their number. */
static uint32_t sum_users(const struct profile *p, const struct fold_task *tasks,
			  struct user_sum *sums)
{
	uint32_t nr = 0, users = 0;

	for (uint32_t i = 0; i < p->nr_tasks; i++)
		if (tasks[i].count > 0 && p->tasks[i].process < p->nr_processes)
			sums[nr++] = (struct user_sum){ p->processes[p->tasks[i].process].uid,
							tasks[i].weight };
	qsort(sums, nr, sizeof(*sums), by_uid);
	for (uint32_t i = 0; i < nr; i++) {
		if (users && sums[users - 1].uid == sums[i].uid)
			sums[users - 1].weight += sums[i].weight;
		else
			sums[users++] = sums[i];
	}
	qsort(sums, users, sizeof(*sums), by_weight);
	return users;
}

static void fill_users(struct ui_state *st)
{
	const struct fold_task *tasks = folds_tasks(st);
	struct dialog_entry *entry = dialog_add(&st->dialog);
	struct user_sum *sums;
	char name[64], pct[FORMAT_MAX];
	double all = 0;
	uint32_t nr;

	if (entry) {
		entry->value = UINT64_MAX;
		entry->used = !st->scope.by_user;
		snprintf(entry->name, sizeof(entry->name), "all users");
	}
	sums = tasks ? calloc(st->shown->nr_tasks + 1ULL, sizeof(*sums)) : NULL;
	if (!sums)
		return;
	nr = sum_users(st->shown, tasks, sums);
	for (uint32_t i = 0; i < nr; i++)
		all += sums[i].weight;
	for (uint32_t i = 0; i < nr && (entry = dialog_add(&st->dialog)); i++) {
		entry->value = sums[i].uid;
		entry->used = st->scope.by_user && st->scope.uid == sums[i].uid;
		snprintf(entry->name, sizeof(entry->name), "%s",
			 users_name(st->config->users, sums[i].uid, name, sizeof(name)).str);
		snprintf(entry->detail, sizeof(entry->detail), "%6s%%  uid %u",
			 format_percent(pct, all > 0 ? sums[i].weight / all : 0).str, sums[i].uid);
	}
	free(sums);
}

static bool use_user(struct ui_state *st, const struct dialog_entry *entry, bool add)
{
	if (!entry) {
		ui_state_say(st, true, "no such user has samples");
		return false;
	}
	st->scope.by_user = entry->value != UINT64_MAX;
	st->scope.uid = (uid_t)entry->value;
	folds_forget(st->folds);
	folds_forget_baseline(st->folds);
	table_rebuild(st, st->view);
	return true;
}

const struct dialog_ops dialog_users = {
	.title = "u User",
	.hint = "type a name",
	.fill = fill_users,
	.use = use_user,
};

/* ---- settings ---- */

/* Write the value of a setting for a person; "" if it has none. */
static void setting_value(const struct ui_state *st, const struct setting *s, char *out,
			  size_t size)
{
	char value[SETTING_MAX], n[FORMAT_MAX];
	double hz = ui_state_want_hz(st);
	struct settings set;

	*out = '\0';
	switch (s->action) {
	case ACT_COLUMNS:
	case ACT_WRITE_CONFIG:
		return;
	case ACT_SORT_MENU:
		columns_format_sort(view_of(st->view), &st->lists[st->view], out, size);
		return;
	case ACT_WINDOW:
		if (ui_state_want_window(st) == PROFILE_WINDOW)
			snprintf(out, size, ui_state_whole(st) ? "all" : "last %s",
				 format_span(n, st->set.window_ns).str);
		if (*out)
			return;
		break;
	case ACT_DELAY:
		snprintf(out, size, "%s", format_span(n, st->set.tick_ns).str);
		return;
	case ACT_PICK_FREQUENCY:
		/* Waits are recorded at each switch, and an event with a period has no rate. */
		if (hz > 0)
			snprintf(out, size, "%s Hz", format_count(n, hz).str);
		else
			snprintf(out, size, "%s",
				 ui_state_waits(st, st->latest) ? "each switch" : "fixed period");
		return;
	case ACT_LIMIT:
		snprintf(out, size, "%g%%", st->set.percent_limit);
		return;
	default:
		break;
	}
	actions_settings(st, &set);
	setting_show(s, &set, value);
	snprintf(out, size, "%.30s", value);
}

static void fill_settings(struct ui_state *st)
{
	const struct setting *s;

	for (size_t i = 0; (s = setting_at(i)); i++) {
		struct dialog_entry *entry = s->label ? dialog_add(&st->dialog) : NULL;
		char value[40];

		if (!entry)
			continue;
		setting_value(st, s, value, sizeof(value));
		entry->value = i;
		snprintf(entry->name, sizeof(entry->name), "%-13s %s", s->label, value);
		snprintf(entry->detail, sizeof(entry->detail), "%s", s->about);
	}
}

static bool use_setting(struct ui_state *st, const struct dialog_entry *entry, bool add)
{
	const struct setting *setting;

	if (!entry) {
		ui_state_say(st, true, "unknown setting");
		return false;
	}
	setting = setting_at(entry->value);
	if (!setting->action) {
		command_set_next(st, setting);
		dialog_refresh(st);
		return false;
	}
	/* Close it first: the action may open another one. */
	dialog_close(st);
	/* By Enter, as a command: some views use the key of an action for another one. */
	actions_do(st, setting->action, K_ENTER);
	return false;
}

const struct dialog_ops dialog_settings = {
	.title = "F2 Settings",
	.hint = "type to filter",
	.foot = "Enter change   Esc close",
	.fill = fill_settings,
	.use = use_setting,
};

/*
 * Boxes with stacks: of a mutex, its owner and the threads that wait for it; of all threads of a
 * process. Runs on: the main thread.
 */

/* Values of entries that are no thread. */
#define READ_STOP UINT64_MAX

#define READ_NO_STOP (UINT64_MAX - 1)

static struct dialog_entry *add(struct dialog *d, pid_t tid, bool heading)
{
	struct dialog_entry *entry = dialog_add(d);

	if (entry) {
		entry->value = (uint64_t)tid;
		entry->heading = heading;
	}
	return entry;
}

/* Add the frames of a thread: functions of the kernel, then of the program. */
static void add_frames(struct dialog *d, const struct task_stacks *t, const struct task_stack *s)
{
	const struct profile_stack *at =
		s->stack < t->profile->nr_stacks ? &t->profile->stacks[s->stack] : NULL;

	for (const char *line = s->kernel; *line;) {
		size_t size = strcspn(line, "\n");
		struct dialog_entry *entry = add(d, s->tid, false);

		if (!entry)
			return;
		snprintf(entry->name, sizeof(entry->name), "  %.*s", (int)MIN(size, 200u), line);
		snprintf(entry->detail, sizeof(entry->detail), "[kernel]");
		line += size + (line[size] == '\n');
	}
	for (uint32_t i = 0; at && i < at->nr; i++) {
		const struct profile_function *f =
			&t->profile->functions[t->profile->frames[at->first + i]];
		struct dialog_entry *entry = add(d, s->tid, false);

		if (!entry)
			return;
		snprintf(entry->name, sizeof(entry->name), "  %.240s", f->name.str);
		snprintf(entry->detail, sizeof(entry->detail), "%.100s%s", f->module.str,
			 f->inlined ? " (inlined)" : "");
	}
	if (at && s->result == TASK_STACKS_CUT) {
		struct dialog_entry *entry = add(d, s->tid, false);

		if (entry)
			snprintf(entry->name, sizeof(entry->name), "  [callers unknown]");
	}
}

/* Add a thread with its stack; @role: "held by". */
static void add_thread(struct dialog *d, const struct task_stacks *t, const struct task_stack *s,
		       const char *role)
{
	struct dialog_entry *entry = add(d, s->tid, false);
	char how[200];

	if (!entry)
		return;
	entry->first = *role == 'h';
	if (s->goroutine)
		snprintf(entry->name, sizeof(entry->name), "goroutine %" PRIu64, s->goroutine);
	else
		snprintf(entry->name, sizeof(entry->name), "%s%.64s %d", role, s->comm.str,
			 (int)s->tid);
	snprintf(entry->detail, sizeof(entry->detail), "%.127s",
		 stacks_describe(s, how, sizeof(how)).str);
	if (s->waits_for && *role != 'w' && (entry = add(d, s->tid, false)))
		snprintf(entry->name, sizeof(entry->name), "  waits for %s", s->waits_for);
	add_frames(d, t, s);
}

static const struct task_stack *find_thread(const struct task_stacks *t, pid_t tid)
{
	for (uint32_t i = 0; t && i < t->nr; i++)
		if (t->list[i].tid == tid)
			return &t->list[i];
	return NULL;
}

static bool is_any_cut(const struct task_stacks *t)
{
	for (uint32_t i = 0; t && i < t->nr; i++)
		if (t->list[i].result >= TASK_STACKS_CUT)
			return true;
	return false;
}

/* Offer to stop threads for the rest of their stacks. */
static void offer_stop(struct dialog *d, const struct asked_stacks *a)
{
	struct dialog_entry *entry;

	if (a->stop || (a->stacks && !is_any_cut(a->stacks)) || !(entry = dialog_add(d)))
		return;
	entry->value = READ_STOP;
	snprintf(entry->name, sizeof(entry->name), a->stacks ? "whole stacks" : "read the stacks");
	snprintf(entry->detail, sizeof(entry->detail), "may stop threads, for 4 ms at most each");
	if (a->stacks || !(entry = dialog_add(d)))
		return;
	entry->value = READ_NO_STOP;
	snprintf(entry->name, sizeof(entry->name), "read without a stop");
	snprintf(entry->detail, sizeof(entry->detail), "stacks may end early");
}

/* Add one mutex, its owner and the threads that wait for it. */
static void add_lock(struct dialog *d, const struct asked_stacks *a)
{
	const struct lock *lock = &a->lock;
	const struct task_stack *owner = find_thread(a->stacks, lock->owner);
	struct dialog_entry *entry = add(d, 0, true);
	char address[40];

	if (!entry)
		return;
	snprintf(address, sizeof(address), "%s0x%" PRIx64 " of ", lock->symbol[0] ? "at " : "",
		 lock->address);
	snprintf(entry->name, sizeof(entry->name), "%s %s", a->holder ? "a lock" : "mutex",
		 a->holder	   ? "that is no mutex"
		 : lock->symbol[0] ? lock->symbol
				   : lock->where);
	snprintf(entry->detail, sizeof(entry->detail), "%spid %d; %u %s%s%.40s",
		 a->holder ? "" : address, (int)lock->pid, lock->nr_waiters,
		 lock->nr_waiters == 1 ? "waiter" : "waiters", a->more[0] ? "; " : "", a->more);
	offer_stop(d, a);
	if (owner)
		add_thread(d, a->stacks, owner, "held by ");
	else if ((entry = add(d, 0, true)))
		snprintf(entry->name, sizeof(entry->name), "%s",
			 a->holder     ? a->holder
			 : lock->owner ? "its owner has ended"
				       : "owner not known: the mutex is not one of glibc");
	for (uint32_t i = 0; i < MIN(lock->nr_waiters, (uint32_t)LOCKS_WAITERS); i++) {
		const struct task_stack *s = find_thread(a->stacks, lock->waiters[i]);

		if (s)
			add_thread(d, a->stacks, s, "waits: ");
	}
}

static void fill_lock(struct ui_state *st)
{
	const struct asked_stacks *a = st->dialog.data;

	if (!a)
		return;
	add_lock(&st->dialog, a);
}

static void fill_stacks(struct ui_state *st)
{
	const struct asked_stacks *a = st->dialog.data;
	struct dialog_entry *note;

	if (!a)
		return;
	offer_stop(&st->dialog, a);
	for (uint32_t i = 0; a->stacks && i < a->stacks->nr; i++)
		add_thread(&st->dialog, a->stacks, &a->stacks->list[i], "");
	if (a->stacks && a->stacks->note[0] && (note = add(&st->dialog, 0, true)))
		snprintf(note->name, sizeof(note->name), "%s", a->stacks->note);
}

/* Drill into a thread, if it is in the shown profile. */
static bool open_thread(struct ui_state *st, pid_t pid, pid_t tid)
{
	const struct profile *p = st->shown;

	for (uint32_t i = 0; p && i < p->nr_tasks; i++)
		if (p->tasks[i].tid == tid && p->processes[p->tasks[i].process].pid == pid) {
			const struct row row = { .task = i, .nr = 1 };

			dialog_close(st);
			navigate_into_thread(st, &row);
			return true;
		}
	ui_state_say(st, false, "thread %d has no samples in the shown time", (int)tid);
	return false;
}

static bool dialog_stacks_use(struct ui_state *st, const struct dialog_entry *entry, bool add)
{
	const struct asked_stacks *a = st->dialog.data;
	uint64_t value = entry ? entry->value : 0;
	struct asked_stacks again;

	if (!a || !value)
		return false;
	if (value != READ_STOP && value != READ_NO_STOP) {
		open_thread(st, a->pid, (pid_t)value);
		return false;
	}
	again = *a;
	/* Frees @a; the answer opens a box again. */
	dialog_close(st);
	outputs_stacks_again(st, &again, value == READ_STOP);
	return false;
}

const struct dialog_ops dialog_lock = {
	.title = "$ The lock that most threads wait for",
	.hint = "type to filter the threads",
	.foot = "Enter open the thread   PgDn more   Esc close",
	.fill = fill_lock,
	.use = dialog_stacks_use,
};

const struct dialog_ops dialog_stacks = {
	.title = "^W Stacks of the threads now",
	.hint = "type to filter the threads",
	.foot = "Enter open the thread   PgDn more   Esc close",
	.fill = fill_stacks,
	.use = dialog_stacks_use,
};
