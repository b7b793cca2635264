// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Actions that change the sampling: rate, events, sizes; events are parsed by a worker.
 *
 * Runs on: the main thread.
 *
 * They do not wait: the sampler answers with a message in a later profile.
 */
#include "ui/internal.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "symbols/base/base.h"
#include "symbols/code/code.h"
#include "ui/cli/cli.h"
#include "ui/key/key.h"
#include "ui/state/state.h"
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

/*
 * The sampling rate: requested here, reported by later profiles. The main
 * thread.
 */

/* Primes: not in step with timers of 100, 250 and 1000 Hz. */
static const double ladder[] = { 49, 97, 199, 397, 997, 1997, 3997, 9973 };

size_t rate_ladder(const double **out)
{
	*out = ladder;
	return ARRAY_SIZE(ladder);
}

void rate_set(struct ui_state *st, double hz)
{
	assert(hz >= 1);
	if (!st->latest || !st->latest->nr_events)
		return;
	sampler_set_rate(st->sampler, ui_state_event(st, st->latest), hz);
	st->asked_hz = hz;
	st->asked_ns = st->now_ns;
}

static void slower(struct ui_state *st)
{
	double want = ui_state_want_hz(st);

	for (size_t i = ARRAY_SIZE(ladder); i-- > 0;) {
		if (ladder[i] < want || want <= 0) {
			rate_set(st, want > 0 ? ladder[i] : 997);
			return;
		}
	}
	ui_state_say(st, false, "%.0f Hz is the lowest step (f takes any)", want);
}

static void faster(struct ui_state *st)
{
	double want = ui_state_want_hz(st), max = sampler_max_hz(st->sampler);

	for (size_t i = 0; i < ARRAY_SIZE(ladder); i++) {
		if (ladder[i] <= want)
			continue;
		if (max > 0 && ladder[i] > max) {
			ui_state_say(st, true,
				     "already at kernel.perf_event_max_sample_rate (%.0f Hz)", max);
			return;
		}
		rate_set(st, want > 0 ? ladder[i] : 997);
		return;
	}
	ui_state_say(st, false, "%.0f Hz is the highest step (f takes any)", want);
}

void rate_step(struct ui_state *st, bool up)
{
	if (up)
		faster(st);
	else
		slower(st);
}

/*
 * Changes of the sampled events. A worker parses them: that reads sysfs, tracefs and libraries, and
 * the file of a probe may be of a file system that does not respond.
 */

/* Events whose names are parsed on a worker. */
struct event_work {
	struct file_work work; /* first: the two are cast */
	struct ui_state *st;   /* of the main thread */
	bool add;
	char *text;
	char filter[EVENT_TEXT_MAX];
	struct event events[EVENTS_MAX];
	uint32_t nr;
};

/* Copy the sampled events except number @but. */
static uint32_t others(const struct ui_state *st, uint32_t but, struct event *events)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; st->latest && i < st->latest->nr_events; i++)
		if (i != but)
			events[nr++] = st->latest->events[i].event;
	return nr;
}

/* Stop sampling event number @at. 0 or -EINVAL; a message in both cases. */
static int take_out(struct ui_state *st, uint32_t at, struct err *e)
{
	const char *name = st->latest->events[at].event.name;
	struct event events[EVENTS_MAX];
	uint32_t nr = others(st, at, events);

	if (!nr)
		return err_set(e, -EINVAL, "%s is the only event", name);
	sampler_set_events(st->sampler, events, nr);
	return err_set(e, 0, "%s is no longer sampled", name);
}

/* Add events to the sampled ones, or remove one. As take_out(). */
static int toggle(struct ui_state *st, const struct event *more, uint32_t nr_more, struct err *e)
{
	struct event events[EVENTS_MAX];
	uint32_t nr;

	for (uint32_t i = 0; st->latest && nr_more == 1 && i < st->latest->nr_events; i++)
		if (!strcmp(st->latest->events[i].event.name, more->name))
			return take_out(st, i, e);
	nr = others(st, UINT32_MAX, events);
	if (nr + nr_more > EVENTS_MAX)
		return err_set(e, -EINVAL, "too many events: at most %d", EVENTS_MAX);
	for (uint32_t i = 0; i < nr_more; i++) {
		events[nr + i] = more[i];
		/* Give it a group number that is not in use. */
		events[nr + i].group += more[i].group ? EVENTS_MAX : 0;
	}
	sampler_set_events(st->sampler, events, nr + nr_more);
	return err_set(e, 0, "also sampling %s (E shows it)", more->name);
}

/* Sample parsed events. As take_out(). */
static int apply(struct ui_state *st, const struct event *events, uint32_t nr, bool add,
		 struct err *e)
{
	if (add)
		return toggle(st, events, nr, e);
	sampler_set_events(st->sampler, events, nr);
	snprintf(st->scope.event_name, sizeof(st->scope.event_name), "%s", events[0].name);
	return err_set(e, 0, nr > 1 ? "event %s and %u more" : "event %s", events[0].name, nr - 1);
}

/* Parse a list of events, the last one with a filter. */
static int parse(struct event *events, uint32_t *nr, const char *text, const char *filter,
		 struct err *e)
{
	int code = event_parse_list(events, nr, EVENTS_MAX, text, e);

	return code || !*filter ? code : event_set_filter(&events[*nr - 1], filter, e);
}

static int run(struct file_work *work, struct err *e)
{
	struct event_work *w = (struct event_work *)work;

	return parse(w->events, &w->nr, w->text, w->filter, e);
}

static int finish(struct file_work *work, struct err *e)
{
	struct event_work *w = (struct event_work *)work;

	return apply(w->st, w->events, w->nr, w->add, e);
}

static void free_work(struct file_work *work)
{
	struct event_work *w = (struct event_work *)work;

	free(w->text);
	free(w);
}

/* Have them parsed. 0: later, 1: done; 1 and -errno with a message. */
static int start(struct ui_state *st, const char *text, const char *filter, bool add, struct err *e)
{
	struct event_work *w = calloc(1, sizeof(*w));
	char *copy = strdup(text);

	if (!w || !copy) {
		free(w);
		free(copy);
		return file_worker_start(st->files, NULL, time_now_ns(), e);
	}
	*w = (struct event_work){ .work = { .run = run,
					    .finish = finish,
					    .free = free_work,
					    .doing = event_list_reads_file(text) ? "reading the "
										   "program of the "
										   "probe"
										 : "looking up the "
										   "event",
					    .own_rights = true },
				  .st = st,
				  .add = add,
				  .text = copy };
	snprintf(w->filter, sizeof(w->filter), "%s", filter);
	return file_worker_start(st->files, &w->work, time_now_ns(), e);
}

/* Parse and apply them here. As apply(). */
static int use_here(struct ui_state *st, const char *text, const char *filter, bool add,
		    struct err *e)
{
	struct event events[EVENTS_MAX];
	uint32_t nr = 0;
	int code = parse(events, &nr, text, filter, e);

	return code ? code : apply(st, events, nr, add, e);
}

bool event_change_use(struct ui_state *st, const char *text, const char *filter, bool add)
{
	bool reads_file = event_list_reads_file(text);
	struct err e;
	int code = start(st, text, filter, add, &e);

	/* A file is being written. */
	if (code == -EBUSY && !reads_file)
		code = use_here(st, text, filter, add, &e);
	else if (!code && reads_file)
		err_set(&e, 0, "reading the program of %.200s", text);
	else if (!code && !(file_worker_wait(st->files) && file_worker_take(st->files, &code, &e)))
		err_set(&e, 0, "looking up %.200s", text);
	if (code < 0)
		ui_state_say_error(st, &e);
	else
		ui_state_say(st, false, "%s", e.text);
	return code >= 0;
}

void event_change_take_out(struct ui_state *st, uint32_t at)
{
	struct err e;
	int code = take_out(st, at, &e);

	ui_state_say(st, code < 0, "%s", e.text);
}

/* Give @ev another filter, or none. 0 or -EINVAL; a message in both cases. */
static int set_filter(struct event *ev, const char *filter, struct err *e)
{
	if (*filter && event_set_filter(ev, filter, e))
		return -EINVAL;
	if (*filter)
		return err_set(e, 0, "filter of %s: %s", ev->name, filter);
	memset(ev->filter, 0, sizeof(ev->filter));
	return err_set(e, 0, "%s has no filter", ev->name);
}

bool event_change_edit(struct ui_state *st, uint32_t at, const char *modifiers, const char *filter)
{
	struct event events[EVENTS_MAX];
	uint32_t nr = others(st, UINT32_MAX, events);
	struct event *ev = &events[at];
	struct err e = { .text = "" };

	if (filter ? set_filter(ev, filter, &e) : event_change_modifiers(ev, modifiers, &e)) {
		ui_state_say_error(st, &e);
		return false;
	}
	if (!filter)
		ev->hz = st->latest->events[at].want_hz;
	sampler_set_events(st->sampler, events, nr);
	snprintf(st->scope.event_name, sizeof(st->scope.event_name), "%s", ev->name);
	if (filter)
		ui_state_say(st, false, "%s", e.text);
	return true;
}
