// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Actions that change the sampling. Runs on: the main thread.
 *
 * They do not wait: the sampler answers with a message in a later profile.
 */
#include "ui/actions_sampling.h"

#include <string.h>

#include "ui/dialog.h"
#include "ui/view/columns.h"
#include "ui/view/navigate.h"
#include "ui/view/table.h"
#include "ui/view/view.h"

#define STACK_MIN 1024u

static void call_graphs(struct ui_state *st, uint32_t code)
{
	if (st->latest)
		sampler_set_call_graph(st->sampler, (st->latest->call_graph + 1) % CALL_GRAPH_NR);
}

static void dumps(struct ui_state *st, bool larger)
{
	uint32_t size = st->latest ? st->latest->stack_size : 0;

	if (!size)
		ui_state_say(st, false, "no stack copies are taken (C changes the call graph)");
	else if (larger && size >= SAMPLER_STACK_SIZE_MAX)
		ui_state_say(st, false,
			     "stack copies are at their maximum (C: fp has no limit of depth)");
	else if (!larger && size <= STACK_MIN)
		ui_state_say(st, false, "stack copies are at their minimum (C: off)");
	else
		sampler_set_stack_size(st->sampler,
				       larger ? MIN(2 * size, SAMPLER_STACK_SIZE_MAX)
					      : MAX(size / 2, STACK_MIN),
				       false);
}

static void larger_dumps(struct ui_state *st, uint32_t code)
{
	dumps(st, true);
}

static void smaller_dumps(struct ui_state *st, uint32_t code)
{
	dumps(st, false);
}

static void rings(struct ui_state *st, bool larger)
{
	uint64_t size = st->latest ? st->latest->ring_size : 0;

	if (!size)
		ui_state_say(st, false, "not available when replaying a recording");
	else if (larger ? size >= SAMPLER_RING_SIZE_MAX : size <= SAMPLER_RING_SIZE_MIN)
		ui_state_say(st, false, "ring buffers are at their %s",
			     larger ? "maximum" : "minimum");
	else
		sampler_set_ring_size(st->sampler, larger ? 2 * size : size / 2);
}

static void larger_rings(struct ui_state *st, uint32_t code)
{
	rings(st, true);
}

static void smaller_rings(struct ui_state *st, uint32_t code)
{
	rings(st, false);
}

/* Show the modules of all processes, and first the modules that the message is about. */
static void show_modules(struct ui_state *st, const struct profile_message *message)
{
	uint32_t unnamed = columns_parse(&view_modules, "UNNAMED");

	navigate_close_process(st);
	navigate_to(st, VIEW_MODULES);
	if (message->module) {
		st->lists[VIEW_MODULES].selected = message->module - 1;
		st->lists[VIEW_MODULES].pinned = true;
		table_rebuild(st, VIEW_MODULES);
	}
	if (!strcmp(message->key, "names")) {
		st->lists[VIEW_MODULES].sort = (uint8_t)__builtin_ctz(unnamed);
		st->lists[VIEW_MODULES].inverted = false;
		st->lists[VIEW_MODULES].pinned = false;
		table_reorder(st);
		ui_state_say(st, false, "most samples without a symbol first; below is the fix");
	} else {
		ui_state_say(st, false, "%s: %s", message->brief, message->fix);
	}
}

void actions_take_fix(struct ui_state *st, const struct profile_message *message)
{
	switch (message->control) {
	case MESSAGE_NONE:
		ui_state_say(st, false, "not possible from here: %s", message->fix);
		break;
	case MESSAGE_RATE:
		sampler_set_rate(st->sampler, message->event, message->value);
		break;
	case MESSAGE_STACK_SIZE:
		sampler_set_stack_size(st->sampler, (uint32_t)message->value, false);
		break;
	case MESSAGE_RING_SIZE:
		sampler_set_ring_size(st->sampler, (size_t)message->value);
		break;
	case MESSAGE_CALL_GRAPH:
		sampler_set_call_graph(st->sampler, (enum call_graph)message->value);
		break;
	case MESSAGE_RESET:
		sampler_reset(st->sampler);
		break;
	case MESSAGE_EVENTS:
		dialog_open(st, &dialog_events);
		break;
	case MESSAGE_MODULES:
		show_modules(st, message);
		break;
	case MESSAGE_CPUS:
		navigate_to(st, VIEW_CPUS);
		break;
	}
}

static void fix(struct ui_state *st, uint32_t code)
{
	const struct profile_message *worst = ui_state_worst(st);

	if (!worst)
		worst = ui_state_message(st, "banner");
	if (worst)
		actions_take_fix(st, worst);
	else
		ui_state_say(st, false, "no warning in the last tick (7 lists all messages)");
}

/* Sample only the process drilled into, or that of the row, which is drilled into first so that Esc
 * leads back. */
static void focus_process(struct ui_state *st, uint32_t code)
{
	const struct list *list = ui_state_list(st);
	const struct row *row = list->cursor < list->nr ? &list->rows[list->cursor] : NULL;
	const struct profile *p = st->shown;
	uint32_t at;

	if (!p || !st->latest)
		return;
	if (!st->scope.drilled && st->view == VIEW_PROCESSES && !st->by_thread && row &&
	    row->nr_processes <= 1 && row->index < p->nr_processes)
		navigate_into_process(st, p->processes[row->index].id);
	at = ui_state_process(st, st->shown);
	if (!st->scope.drilled || at == UINT32_MAX)
		ui_state_say(st, false, "select a process first (p), then x samples only it");
	else if (p->processes[at].pid < 0)
		ui_state_say(st, true, "cannot sample only %s: it has no PID",
			     p->processes[at].comm.str);
	else if (st->latest->focus == p->processes[at].pid)
		sampler_unfocus(st->sampler);
	else
		sampler_focus(st->sampler, p->processes[at].pid);
}

void (*actions_sampling(enum action action))(struct ui_state *st, uint32_t code)
{
	switch (action) {
	case ACT_CALL_GRAPH:
		return call_graphs;
	case ACT_FIX:
		return fix;
	case ACT_FOCUS:
		return focus_process;
	case ACT_LARGER_STACKS:
		return larger_dumps;
	case ACT_SMALLER_STACKS:
		return smaller_dumps;
	case ACT_LARGER_RINGS:
		return larger_rings;
	case ACT_SMALLER_RINGS:
		return smaller_rings;
	default:
		return NULL;
	}
}
