// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The event picker: what the kernel offers here, and why not the rest. The
 * main thread; probing is done by the sampler, in the background.
 */
#include "ui/dialog.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/screen.h"

#define STATES_MAX 8192
#define UNKNOWN	   1 /* sampler_event_state.code: not probed yet */

/* Is it among the events sampled now, whatever its modifiers? */
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

static void add_heading(struct dialog *d, const char *group)
{
	struct dialog_entry *entry = dialog_add(d);

	if (!entry)
		return;
	entry->heading = true;
	for (size_t i = 0; group[i] && i < sizeof(entry->name) - 1; i++)
		entry->name[i] =
			group[i] >= 'a' && group[i] <= 'z' ? (char)(group[i] - 32) : group[i];
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
		snprintf(entry->detail, sizeof(entry->detail), "%s%s",
			 state->info->description ? state->info->description : "",
			 state->code == UNKNOWN && !entry->used ? " (being looked at)" : "");
}

static void fill(struct ui_state *st)
{
	struct sampler_event_state *states = calloc(STATES_MAX, sizeof(*states));
	const char *group = "";
	uint32_t nr;

	if (!states)
		return;
	nr = sampler_event_states(st->sampler, states, STATES_MAX);
	for (uint32_t i = 0; i < MIN(nr, STATES_MAX); i++) {
		if (states[i].info->group && strcmp(states[i].info->group, group)) {
			group = states[i].info->group;
			add_heading(&st->dialog, group);
		}
		add_state(st, &states[i]);
	}
	free(states);
}

/* Add to the events sampled now, or take out of them. */
static bool toggle(struct ui_state *st, const struct event *ev)
{
	struct event events[EVENTS_MAX];
	uint32_t nr = 0;
	bool removed = false;

	for (uint32_t i = 0; st->latest && i < st->latest->nr_events; i++) {
		const struct event *used = &st->latest->events[i].event;

		if (!strcmp(used->name, ev->name))
			removed = true;
		else
			events[nr++] = *used;
	}
	if (!removed && nr == EVENTS_MAX) {
		ui_state_say(st, true, "no more than %d events at a time", EVENTS_MAX);
		return false;
	}
	if (!removed)
		events[nr++] = *ev;
	if (!nr) {
		ui_state_say(st, true, "%s is the only event", ev->name);
		return false;
	}
	sampler_set_events(st->sampler, events, nr);
	ui_state_say(st, false,
		     removed ? "%s is no longer sampled" : "%s is sampled, too (E shows it)",
		     ev->name);
	return false;
}

static bool use(struct ui_state *st, const struct dialog_entry *entry, bool add)
{
	struct event ev;
	struct err e;

	if (event_parse(&ev, entry ? entry->name : st->dialog.line.text, &e)) {
		e.text[strcspn(e.text, "\n")] = '\0';
		ui_state_say(st, true, "%s", e.text);
		return false;
	}
	if (add)
		return toggle(st, &ev);
	sampler_set_events(st->sampler, &ev, 1);
	snprintf(st->event_name, sizeof(st->event_name), "%s", ev.name);
	ui_state_say(st, false, "event %s", ev.name);
	return true;
}

const struct dialog_ops dialog_events = {
	.title = "F7 Event",
	.hint = "type to filter, or a name such as cycles:u",
	.foot = "Enter use   Tab add or take out   Esc close",
	.can_add = true,
	.fill = fill,
	.use = use,
};
