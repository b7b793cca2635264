// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rewind: keys, mouse and commands of the heat strip; times of the past as typed.
 *
 * Runs on: the main thread.
 */
#include "ui/internal.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sampler/count/count.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "symbols/base/base.h"
#include "ui/fold/fold.h"
#include "ui/key/key.h"
#include "ui/state/state.h"
#include "ui/text/text.h"
#include "ui/view/view.h"

/*
 * Times of the past as typed: "30s" ago, "14:03[:22]"; in a recording "5s" from its start and "-5s"
 * from its end; in a folder of --keep "3" is 03:00. Runs on: the main thread.
 *
 * Times of the past as typed. Runs on: the main thread.
 */

#define SECOND 1000000000ULL
#define MINUTE (60 * SECOND)

/* The clock of the strip: of this moment, of the end of --keep, or of a recording. */
enum clock { CLOCK_NOW, CLOCK_KEPT, CLOCK_RECORDED };

static enum clock clock_of(const struct ui_state *st)
{
	return !st->config->replayed		? CLOCK_NOW
	       : st->rewind.strip->last_real_ns ? CLOCK_KEPT
						: CLOCK_RECORDED;
}

/* Parse "14:03", "1403" or "14:03:22"; with @hours also "14". Return how long that time is; 0:
 * invalid. */
static uint64_t parse_clock(const char *text, bool hours, struct tm *tm)
{
	unsigned int h, m = 0, s = 0;
	bool digits = strlen(text) == 4 && strspn(text, "0123456789") == 4;
	int used = 0, nr = sscanf(text, digits ? "%2u%n%2u%n" : "%2u%n:%2u%n:%2u%n", &h, &used, &m,
				  &used, &s, &used);

	if (nr < (hours ? 1 : 2) || text[used] || h > 23 || m > 59 || s > 59)
		return 0;
	tm->tm_hour = (int)h;
	tm->tm_min = (int)m;
	tm->tm_sec = (int)s;
	return nr > 2 ? SECOND : MINUTE;
}

/* Return how long before the end of the strip that time of the day was last. */
static uint64_t clock_ago(const struct strip *s, const struct tm *wanted)
{
	time_t end = (time_t)(s->last_real_ns / SECOND), at;
	struct tm tm;

	localtime_r(&end, &tm);
	tm.tm_hour = wanted->tm_hour;
	tm.tm_min = wanted->tm_min;
	tm.tm_sec = wanted->tm_sec;
	tm.tm_isdst = -1;
	at = mktime(&tm);
	if (at > end) {
		tm.tm_mday--;
		tm.tm_isdst = -1;
		at = mktime(&tm);
	}
	return at > end ? UINT64_MAX : (uint64_t)(end - at) * SECOND + s->last_real_ns % SECOND;
}

/*
 * Parse a time, in ns of the strip's clock. @span_ns: the minute or second from that time on that
 * was typed; 0: a moment. 0; -EINVAL; -ERANGE: it is not in the history.
 */
static int rewind_time_parse(const struct ui_state *st, const char *text, uint64_t *time_ns,
			     uint64_t *span_ns)
{
	const struct strip *s = st->rewind.strip;
	enum clock clock = clock_of(st);
	uint64_t all = s->last_ns - s->first_ns, ns;
	bool back = clock != CLOCK_RECORDED;
	struct tm tm;

	*span_ns = s->last_real_ns ? parse_clock(text, clock == CLOCK_KEPT, &tm) : 0;
	if (*span_ns) {
		ns = clock_ago(s, &tm);
	} else {
		back |= *text == '-';
		text += *text == '-';
		if (time_parse(text, strlen(text), &ns))
			return -EINVAL;
	}
	if (ns > all && ns - all > s->column_ns)
		return -ERANGE;
	ns = MIN(ns, all);
	*time_ns = back ? s->last_ns - ns : s->first_ns + ns;
	return 0;
}

void rewind_time_hint(const struct ui_state *st, const char *text, char *buf, size_t size)
{
	static const char *const examples[] = {
		[CLOCK_NOW] = "as in 30s, 5m (ago), 1403 or 14:03:22",
		[CLOCK_KEPT] = "as in 3 (03:00), 1403, 14:03:22 or -30s",
		[CLOCK_RECORDED] = "as in 5s (from the start) or -5s",
	};
	const struct strip *s = st->rewind.strip;
	char first[32], last[32];
	uint64_t at, span;
	int code;

	assert(text && buf && size);
	snprintf(buf, size, "no history yet");
	if (!s)
		return;
	code = *text ? rewind_time_parse(st, text, &at, &span) : -EINVAL;
	header_strip_moment(st, code ? s->first_ns : at, first, sizeof(first));
	header_strip_moment(st, s->last_ns, last, sizeof(last));
	if (code)
		snprintf(buf, size, "%s to %s, %s", first, last,
			 code == -ERANGE ? "not earlier" : examples[clock_of(st)]);
	else
		snprintf(buf, size, "= %s", first);
}

#define SPAN_MIN_NS 2000000000ULL

/* Return whether there is a past to show. Report it if not. */
static bool has_past(struct ui_state *st)
{
	if (st->rewind.strip)
		return true;
	ui_state_say(st, false,
		     st->config->replayed && !st->latest ? "the recording is still being read"
							 : "no history yet");
	return false;
}

/* Show a range; sampling goes on. */
static void rewind_to(struct ui_state *st, uint64_t begin_ns, uint64_t end_ns)
{
	struct rewind *r = &st->rewind;

	if (!has_past(st) || !st->shown)
		return;
	if (st->view == VIEW_HELP)
		navigate_to(st, st->help_from);
	r->begin_ns = MAX(begin_ns, r->strip->first_ns);
	r->end_ns = MAX(end_ns, r->begin_ns + 1);
	r->on = true;
	if (r->subject == REWIND_OFF)
		r->subject = REWIND_ALL;
	/* The shown profile is kept until the range arrives. */
	st->frozen = true;
	assert(r->begin_ns < r->end_ns);
	sampler_show_past(st->sampler, r->begin_ns, r->end_ns);
	/* The foot shows the position instead, which moves on. */
	st->message_until_ns = 0;
}

void rewind_live(struct ui_state *st)
{
	struct profile *before = st->shown;

	if (!st->rewind.on)
		return;
	st->rewind.on = false;
	sampler_show_past(st->sampler, 0, 0);
	st->frozen = false;
	if (before == st->latest)
		return;
	folds_forget(st->folds);
	st->shown = st->latest;
	folds_release(st, before);
	table_rebuild(st, st->view);
}

static void show_columns(struct ui_state *st, uint32_t from, uint32_t to)
{
	const struct strip *s = st->rewind.strip;

	rewind_to(st, s->begin_ns + MIN(from, to) * s->column_ns,
		  s->begin_ns + (MAX(from, to) + 1ULL) * s->column_ns);
}

/* Return whether the strip is as it was drawn: its lines are one, or divide a second. */
static bool is_drawn(const struct rewind *r)
{
	uint32_t nr = !r->strip ? 0 : r->rows == 1 ? r->strip->nr : r->strip->nr / STRIP_GRID_ROWS;

	return r->cols && r->cols <= nr && (r->rows == 1 || r->strip->grid);
}

/* Get the columns of the strip at a cell of the screen: a line of a grid may have several. */
static void columns_at(const struct rewind *r, unsigned int row, unsigned int col, uint32_t *first,
		       uint32_t *last)
{
	unsigned int at = MIN(col > r->col ? col - r->col : 0, r->cols - 1u);
	unsigned int line = MIN(row > r->row ? row - r->row : 0, r->rows - 1u);
	uint32_t height = r->rows == 1 ? 1 : STRIP_GRID_ROWS, lines = height / r->rows;

	assert(is_drawn(r));
	*first = (r->strip->nr / height - r->cols + at) * height + line * lines;
	*last = *first + lines - 1;
}

void rewind_press(struct ui_state *st, unsigned int row, unsigned int col)
{
	struct rewind *r = &st->rewind;

	if (!is_drawn(r))
		return;
	columns_at(r, row, col, &r->from, &r->to);
	r->dragging = true;
	r->mark_ns = 0;
	r->at_ns = r->strip->begin_ns + r->from * r->strip->column_ns;
	show_columns(st, r->from, r->to);
}

void rewind_release(struct ui_state *st, unsigned int row, unsigned int col)
{
	struct rewind *r = &st->rewind;
	uint32_t first, last;

	if (!r->dragging || !is_drawn(r))
		return;
	r->dragging = false;
	columns_at(r, row, col, &first, &last);
	if (first != r->from)
		show_columns(st, MIN(MIN(r->from, first), r->strip->nr - 1),
			     MAX(MIN(r->to, r->strip->nr - 1), last));
}

/* ---- the grid ---- */

#define GRID_SLICE (SECOND / STRIP_GRID_ROWS)

/* Return the slice at which the arrows begin: of the shown range, or the newest. */
static uint64_t first_slice(const struct rewind *r)
{
	uint64_t at = r->on ? r->begin_ns : r->strip->last_ns - 1;

	return at / GRID_SLICE * GRID_SLICE;
}

/* Move by @step slices, within the past, and show the slice, or the range from the mark. */
static void steer(struct ui_state *st, int step)
{
	struct rewind *r = &st->rewind;
	uint64_t by = (uint64_t)abs(step) * GRID_SLICE, from, to;

	if (!has_past(st))
		return;
	if (!r->at_ns || !r->on)
		r->at_ns = first_slice(r);
	else
		r->at_ns = step < 0 ? r->at_ns - MIN(r->at_ns, by) : r->at_ns + by;
	r->at_ns = MIN(r->at_ns, (r->strip->last_ns - 1) / GRID_SLICE * GRID_SLICE);
	r->at_ns = MAX(r->at_ns, r->strip->first_ns / GRID_SLICE * GRID_SLICE);
	from = r->mark_ns ? MIN(r->mark_ns, r->at_ns) : r->at_ns;
	to = MAX(r->mark_ns, r->at_ns) + GRID_SLICE;
	rewind_to(st, from, to);
}

bool rewind_steer(struct ui_state *st, uint32_t code)
{
	struct rewind *r = &st->rewind;

	if (!r->steers || !r->grid || r->subject == REWIND_OFF)
		return false;
	switch (code) {
	case K_UP:
		steer(st, -1);
		return true;
	case K_DOWN:
		steer(st, 1);
		return true;
	case K_LEFT:
		steer(st, -STRIP_GRID_ROWS);
		return true;
	case K_RIGHT:
		steer(st, STRIP_GRID_ROWS);
		return true;
	case ' ':
		r->mark_ns = r->mark_ns || !r->on ? 0 : r->at_ns;
		ui_state_say(st, false, "%s",
			     r->mark_ns ? "the arrows move the end of the range"
					: "the arrows move one slice");
		return true;
	case K_ENTER:
		r->steers = false;
		ui_state_say(st, false, "the arrows move in the rows");
		return true;
	case K_ESC:
		r->steers = false;
		rewind_live(st);
		return true;
	}
	return false;
}

static void strip_grid(struct ui_state *st, uint32_t code)
{
	struct rewind *r = &st->rewind;

	r->grid = r->steers = !r->grid;
	r->at_ns = r->mark_ns = 0;
	if (r->subject == REWIND_OFF)
		r->subject = REWIND_ALL;
	if (!r->grid)
		ui_state_say(st, false, "the strip is one line");
	else if (!header_grid_lines(st->rows))
		ui_state_say(st, false, "the screen is too low for seconds by 50 ms");
	else
		ui_state_say(st, false,
			     "arrows: 50 ms, 1 s; Space: mark; Enter: arrows to the rows; Esc: "
			     "now");
}

/* ---- keys ---- */

/* Return how much of the newest past the screen of now shows. */
static uint64_t shown_now(const struct ui_state *st)
{
	bool window = !st->config->replayed && ui_state_want_window(st) == PROFILE_WINDOW;

	return window ? st->set.window_ns : 0;
}

static void earlier(struct ui_state *st, uint32_t code)
{
	const struct rewind *r = &st->rewind;
	uint64_t step, at, first, end;

	if (!has_past(st))
		return;
	step = header_strip_step(st);
	first = r->strip->first_ns;
	header_strip_range(st, &at, &end);
	if (r->on && at <= first) {
		ui_state_say(st, false, "this is the beginning of the history");
		return;
	}
	at = r->on ? at : r->strip->last_ns - MIN(r->strip->last_ns, shown_now(st));
	at = MAX(at - MIN(at, step), first);
	rewind_to(st, at, at + step);
}

static void later(struct ui_state *st, uint32_t code)
{
	const struct rewind *r = &st->rewind;
	uint64_t step, begin, end;

	if (!has_past(st) || !r->on)
		return;
	step = header_strip_step(st);
	header_strip_range(st, &begin, &end);
	if (end + shown_now(st) >= r->strip->last_ns)
		rewind_live(st);
	else
		rewind_to(st, end, end + step);
}

/* Go to the peak before the position; from the first one to the last one. */
static void peak(struct ui_state *st, uint32_t code)
{
	struct rewind *r = &st->rewind;
	uint64_t begin = r->begin_ns, end;
	char filter[8], row[8];
	bool again;
	uint32_t i;

	if (!has_past(st))
		return;
	/* A filter was typed, or another row selected: its strip is on the way. */
	r->peak_wanted = r->query && r->query->columns && r->strip->seq != r->query->seq;
	if (r->peak_wanted)
		return;
	header_strip_range(st, &begin, &end);
	i = strip_peak(r->strip, r->on ? begin : UINT64_MAX, false);
	again = r->on && i == r->strip->nr;
	if (again)
		i = strip_peak(r->strip, UINT64_MAX, false);
	if (i == r->strip->nr) {
		ui_state_say(st, false, "no peak in the strip (%s: of a name, %s: of a row)",
			     key_name_of(filter,
					 user_keys_first(st->user_keys, CTX_LIST, ACT_FILTER)),
			     key_name_of(row, user_keys_first(st->user_keys, CTX_LIST, ACT_STRIP)));
		return;
	}
	again = again && r->strip->columns[i].end_ns > begin;
	rewind_to(st, r->strip->columns[i].begin_ns, r->strip->columns[i].end_ns);
	if (again)
		ui_state_say(st, false, "no peak before it: from the last one again");
}

static void live(struct ui_state *st, uint32_t code)
{
	if (!st->rewind.on)
		ui_state_say(st, false, "this is now (i: earlier, ^R: a time)");
	rewind_live(st);
}

static void ask_time(struct ui_state *st, uint32_t code)
{
	if (has_past(st))
		prompt_open(st, PROMPT_REWIND);
}

/* Double the range, towards the past. */
static void widen(struct ui_state *st, uint32_t code)
{
	uint64_t begin, end;

	header_strip_range(st, &begin, &end);
	if (!st->rewind.on)
		ui_state_say(st, false, "this is now (i: earlier, ^R: a time)");
	else
		rewind_to(st, begin - MIN(begin, end - begin), end);
}

static void zoom(struct ui_state *st, bool in)
{
	struct rewind *r = &st->rewind;
	uint64_t all, span;
	char text[FORMAT_MAX];

	if (!has_past(st))
		return;
	if (r->strip->grid) {
		ui_state_say(st, false, "seconds by 50 ms have one length");
		return;
	}
	all = r->strip->last_ns - r->strip->first_ns;
	span = r->span_ns ? MIN(r->span_ns, all) : all;
	span = in ? MAX(span / 2, SPAN_MIN_NS) : span * 2;
	r->span_ns = span >= all ? 0 : span;
	ui_state_say(st, false, "the strip shows %s%s",
		     r->span_ns ? "the last " : "all: ", format_span(text, MIN(span, all)).str);
}

static void zoom_in(struct ui_state *st, uint32_t code)
{
	zoom(st, true);
}

static void zoom_out(struct ui_state *st, uint32_t code)
{
	zoom(st, false);
}

static void strip(struct ui_state *st, uint32_t code)
{
	static const char *const said[REWIND_NR] = {
		[REWIND_ALL] = "the strip shows all samples, or of the filter",
		[REWIND_ROW] = "the strip shows the samples of the selected row",
		[REWIND_OFF] = "strip hidden",
	};

	st->rewind.subject = (st->rewind.subject + 1) % REWIND_NR;
	if (st->rewind.subject == REWIND_OFF)
		rewind_live(st);
	ui_state_say(st, false, "%s", said[st->rewind.subject]);
}

void rewind_do(struct ui_state *st, enum action action, uint32_t code)
{
	static void (*const run[ACT_NR])(struct ui_state * st, uint32_t code) = {
		[ACT_STRIP] = strip,	    [ACT_EARLIER] = earlier,
		[ACT_LATER] = later,	    [ACT_PEAK] = peak,
		[ACT_LIVE] = live,	    [ACT_REWIND] = ask_time,
		[ACT_WIDEN] = widen,	    [ACT_STRIP_IN] = zoom_in,
		[ACT_STRIP_OUT] = zoom_out, [ACT_STRIP_GRID] = strip_grid,
	};

	assert(run[action]);
	run[action](st, code);
}

/* ---- the command ---- */

void rewind_command(struct ui_state *st, const char *arg)
{
	const struct strip *s = st->rewind.strip;
	uint64_t at, span, width;
	int code;

	if (!*arg) {
		live(st, 0);
		return;
	}
	if (!has_past(st))
		return;
	code = rewind_time_parse(st, arg, &at, &span);
	if (code) {
		ui_state_say(st, true,
			     code == -ERANGE ? "the history does not reach back to '%s'"
					     : "invalid time '%s': as in 30s, 5m, 1403 or 14:03:22",
			     arg);
		return;
	}
	/* A time of the day is that minute or second, also where a column of the strip is longer.
	 */
	width = MAX(s->column_ns, 1000000000ULL);
	if (span)
		rewind_to(st, at, at + span);
	else
		rewind_to(st, at - MIN(at, width / 2), at + width / 2);
}

void rewind_trap(struct ui_state *st, const char *arg)
{
	struct err e;

	if (!*arg)
		sampler_list_traps(st->sampler);
	else if (sampler_trap(st->sampler, strcmp(arg, "off") ? arg : "", &e))
		ui_state_say_error(st, &e);
}

void rewind_trapped(struct ui_state *st)
{
	const struct profile_trap *trap = &st->latest->trap;
	char message[sizeof(st->message)];

	/* The strip of a recording is made after its profile. */
	if (trap->seq == st->rewind.trap_seq || (!st->rewind.strip && st->config->replayed))
		return;
	st->rewind.trap_seq = trap->seq;
	if (!st->rewind.strip || st->rewind.on)
		return;
	/* The message names the rule. */
	memcpy(message, st->message, sizeof(message));
	rewind_to(st, trap->begin_ns, trap->end_ns);
	ui_state_say(st, true, "%s; . returns to now", message);
}

/* ---- requests and answers ---- */

/* Add the filter of the rows, also if it passes none of the shown moment. */
static void add_filter(const struct ui_state *st, struct strip_query *q)
{
	const struct match *m = &st->lists[st->view].filter;
	bool named = st->view == VIEW_FUNCTIONS || st->view == VIEW_TREE ||
		     st->view == VIEW_PROCESSES;

	_Static_assert(STRIP_FILTER_MAX >= MATCH_MAX, "a filter is cut");
	if (!named || !match_active(m))
		return;
	snprintf(q->filter, sizeof(q->filter), "%s", m->text);
	q->matcher = &match_strip;
	q->inverted = m->negate;
	q->only_tasks = st->view == VIEW_PROCESSES;
}

/* Add the function or the process of the selected row. */
static void add_row(const struct ui_state *st, struct strip_query *q)
{
	uint32_t function = view_function(st);
	const struct row *row = view_row(st);

	if (!st->shown || !row)
		return;
	if (st->view == VIEW_PROCESSES && row->index < st->shown->nr_processes)
		q->process = st->shown->processes[row->index].id;
	else if (function != FOLD_NONE)
		q->function = st->shown->functions[function].id;
}

/* Return the last second of a grid that shows the range, in steps of half a grid; 0: the newest. */
static uint64_t grid_until(const struct rewind *r, uint32_t columns)
{
	uint64_t half = MAX(columns / 2, 1u) * SECOND, all = columns * SECOND;

	if (!r->on || !r->strip || r->begin_ns + all > r->strip->last_ns + SECOND)
		return 0;
	return (r->begin_ns / half + 2) * half;
}

void rewind_refresh(struct ui_state *st)
{
	struct rewind *r = &st->rewind;
	struct strip_query *q;

	if (!st->latest || !st->cols)
		return;
	q = calloc(1, sizeof(*q));
	if (!q)
		return;
	q->columns = r->subject == REWIND_OFF ? 0 : header_strip_columns(st->cols);
	q->span_ns = r->span_ns;
	q->grid = r->grid && header_grid_lines(st->rows);
	q->until_ns = q->grid ? grid_until(r, q->columns) : 0;
	q->event = ui_state_event(st, st->latest);
	q->process = st->scope.drilled ? st->scope.process : STRIP_ALL;
	q->thread = st->scope.drilled && st->scope.in_thread ? st->scope.thread : STRIP_ALL;
	q->function = STRIP_ALL;
	if (r->subject == REWIND_ROW)
		add_row(st, q);
	else
		add_filter(st, q);
	if (r->query && strip_same_query(r->query, q)) {
		free(q);
		return;
	}
	q->seq = ++r->seq;
	sampler_set_strip(st->sampler, q);
	free(r->query);
	r->query = q;
}

static void show(struct ui_state *st, struct profile *p)
{
	struct profile *before = st->shown;

	assert(st->rewind.on && st->frozen && p != before);
	folds_forget(st->folds);
	st->shown = p;
	folds_release(st, before);
	table_rebuild(st, st->view);
}

/* Report the times of a folder of --keep, and how to get there. */
static void say_kept(struct ui_state *st)
{
	const struct strip *s = st->rewind.strip;
	char first[32], last[32], key[8], peak[8];

	header_strip_moment(st, s->first_ns, first, sizeof(first));
	header_strip_moment(st, s->last_ns, last, sizeof(last));
	ui_state_say(st, false, "kept %s to %s; %s rewinds to a time, %s to the last peak", first,
		     last, key_name_of(key, user_keys_first(st->user_keys, CTX_LIST, ACT_REWIND)),
		     key_name_of(peak, user_keys_first(st->user_keys, CTX_LIST, ACT_PEAK)));
	st->rewind.said_kept = true;
}

void rewind_take(struct ui_state *st, struct profile *p, struct strip *s)
{
	if (s) {
		free(st->rewind.strip);
		st->rewind.strip = s;
		/* A recording is merged from its start on: no setting was exceeded. */
		if (s->merged && !st->rewind.said_merged && !st->config->replayed)
			ui_state_say(st, false,
				     "old slices of the past are longer now: "
				     "--history-memory is used up");
		st->rewind.said_merged = s->merged;
		if (st->config->replayed && s->last_real_ns && !st->rewind.said_kept)
			say_kept(st);
		if (st->config->replayed && st->latest)
			rewind_trapped(st);
	}
	if (p && st->rewind.on)
		show(st, p);
	else
		profile_free(p);
	if (s && st->rewind.peak_wanted && s->seq == st->rewind.query->seq)
		peak(st, 0);
}
