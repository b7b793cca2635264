// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The pickers of frequency, process and sort column. Runs on: the main thread.
 */
#include "ui/dialog.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/cli/value.h"
#include "ui/rate.h"
#include "ui/text/event_rate.h"
#include "ui/text/format.h"
#include "ui/view/columns.h"
#include "ui/fold/fold.h"
#include "ui/view/navigate.h"
#include "ui/view/table.h"
#include "ui/view/view.h"

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
	double hz;

	/* Typed text takes precedence over a matching entry. */
	if (size)
		snprintf(typed, sizeof(typed), "%.*s", is_number ? (int)size : INT_MAX, text);
	else if (entry)
		snprintf(typed, sizeof(typed), "%llu", (unsigned long long)entry->value);
	else {
		ui_state_say(st, true, "type a frequency in Hz");
		return false;
	}
	if (value_hz("frequency", typed, sampler_max_hz(st->sampler), &hz, &e)) {
		ui_state_say_error(st, &e);
		return false;
	}
	rate_set(st, rint(hz));
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
	if (!entry) {
		ui_state_say(st, true, "no matching process");
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
