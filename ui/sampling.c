// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The rate and the events that are sampled, as keys, pickers and commands change them; events are
 * parsed by a worker.
 *
 * Runs on: the main thread.
 *
 * They do not wait: the sampler answers with a message in a later profile.
 */
#include "ui/internal.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/event/event.h"
#include "sampler/sampler.h"
#include "symbols/base/base.h"
#include "ui/cli/cli.h"
#include "ui/state/state.h"

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

/* The requested rate: the governor may have lowered it for now. */
static double requested_hz(const struct ui_state *st)
{
	double want = ui_state_want_hz(st), factor = st->latest ? st->latest->rate_factor : 0;

	return factor > 0 && want != st->asked_hz ? round(want / factor) : want;
}

static void slower(struct ui_state *st)
{
	double want = requested_hz(st);

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
	double want = requested_hz(st), max = sampler_max_hz(st->sampler);

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

	assert(at < st->latest->nr_events);
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

bool sampling_event_use(struct ui_state *st, const char *text, const char *filter, bool add)
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

void sampling_event_take_out(struct ui_state *st, uint32_t at)
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

bool sampling_event_edit(struct ui_state *st, uint32_t at, const char *modifiers,
			 const char *filter)
{
	struct event events[EVENTS_MAX];
	uint32_t nr = others(st, UINT32_MAX, events);
	struct event *ev = &events[at];
	struct err e = { .text = "" };

	assert(at < nr && (modifiers || filter));
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
