// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The event picker: the events of this machine, and why some are not
 * available. The main thread; the sampler probes them in the background.
 */
#include "ui/dialog.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/sampled.h"
#include "ui/view/navigate.h"

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
		snprintf(entry->detail, sizeof(entry->detail), "%s; press %u to %s it", rate, i + 1,
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

static void fill(struct ui_state *st)
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
	sampled_change(st, at, modifiers);
}

static bool levels_are_chosen(const struct dialog_levels *l)
{
	return !l->user || !l->kernel || l->precise;
}

static bool use(struct ui_state *st, const struct dialog_entry *entry, bool add)
{
	char text[EVENT_NAME_MAX + 16];

	if (entry && entry->value) {
		if (add)
			sampled_take_out(st, (uint32_t)entry->value - 1);
		else if (levels_are_chosen(&st->dialog.levels))
			change_levels(st, (uint32_t)entry->value - 1);
		else
			snprintf(st->scope.event_name, sizeof(st->scope.event_name), "%s",
				 entry->name);
		return !add;
	}
	return sampled_use(st, chosen(st, entry, text, sizeof(text)), add) && !add;
}

static void status(const struct ui_state *st, char *buf, size_t size)
{
	const struct dialog_levels *l = &st->dialog.levels;

	snprintf(buf, size,
		 "[%c] user ^U  [%c] kernel ^K  precise %u ^T  of the pick; E shows each alone",
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
	.can_add = true,
	.fill = fill,
	.use = use,
};
