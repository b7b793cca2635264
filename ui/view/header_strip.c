// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The heat strip in the header: time from left to right, height and colour by the amount of the
 * selected samples. Runs on: the main thread.
 */
#include "ui/view/header_strip.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ui/draw/pen.h"
#include "ui/text/format.h"
#include "ui/view/header_cpus.h"
#include "ui/view/view.h"

#define SHOWN_NS    3000000000ULL /* a shorter past is not worth a line */
#define LEFT	    15		  /* cells in front: CPUs or span */
#define RIGHT	    14		  /* cells behind: the subject */
#define STEPS	    20 /* of a key, from one end of the strip of a recording to the other */
#define STEP_MIN_NS 1000000000ULL
#define CPUS_MAX    8 /* more are shown by their mean alone */

bool header_strip_is_on(const struct ui_state *st)
{
	const struct rewind *r = &st->rewind;

	return r->strip && r->subject != REWIND_OFF && r->strip->max > 0 &&
	       (r->on || r->strip->last_ns - r->strip->first_ns >= SHOWN_NS);
}

static bool is_narrow(unsigned int cols)
{
	return cols < 60;
}

uint32_t header_strip_columns(unsigned int cols)
{
	unsigned int labels = is_narrow(cols) ? 2 : LEFT + RIGHT;

	return cols > labels + 8 ? MIN(cols - labels, STRIP_COLUMNS_MAX) : 8;
}

const char *header_strip_ago(const struct ui_state *st, char *buf, size_t size)
{
	const struct rewind *r = &st->rewind;
	char span[FORMAT_MAX];
	uint64_t ns;

	*buf = '\0';
	if (!r->on || !r->strip)
		return buf;
	/* The end of --keep is not now. */
	if (st->config->replayed && r->strip->last_real_ns)
		return header_strip_time(st, buf, size);
	ns = st->config->replayed ? r->begin_ns - MIN(r->begin_ns, r->strip->first_ns)
				  : r->strip->last_ns - MIN(r->strip->last_ns, r->begin_ns);
	format_age(span, ns);
	snprintf(buf, size, st->config->replayed ? "+%s" : "%s ago", span);
	return buf;
}

/* Get the local time at @time_ns. False: it is unknown. */
static bool local_at(const struct strip *s, uint64_t time_ns, struct tm *tm)
{
	time_t t;

	if (!s || !s->last_real_ns)
		return false;
	t = (time_t)((s->last_real_ns - s->last_ns + time_ns) / 1000000000);
	return localtime_r(&t, tm) != NULL;
}

/* Write the time of the day at @time_ns; "" if it is unknown. */
static const char *clock_at(const struct strip *s, uint64_t time_ns, char *buf, size_t size)
{
	struct tm tm;

	*buf = '\0';
	if (local_at(s, time_ns, &tm))
		strftime(buf, size, "%H:%M:%S", &tm);
	return buf;
}

/* Return whether the first and the last moment differ in their date. */
static bool needs_date(const struct strip *s)
{
	struct tm first, last;

	return local_at(s, s->first_ns, &first) && local_at(s, s->last_ns, &last) &&
	       (first.tm_yday != last.tm_yday || first.tm_year != last.tm_year);
}

const char *header_strip_moment(const struct ui_state *st, uint64_t time_ns, char *buf, size_t size)
{
	const struct strip *s = st->rewind.strip;
	char span[FORMAT_MAX];
	struct tm tm;

	*buf = '\0';
	if (local_at(s, time_ns, &tm))
		strftime(buf, size, needs_date(s) ? "%m-%d %H:%M:%S" : "%H:%M:%S", &tm);
	else if (s)
		snprintf(buf, size, "+%s",
			 format_age(span, time_ns - MIN(time_ns, s->first_ns)).str);
	return buf;
}

const char *header_strip_time(const struct ui_state *st, char *buf, size_t size)
{
	*buf = '\0';
	return st->rewind.on ? clock_at(st->rewind.strip, st->rewind.begin_ns, buf, size) : buf;
}

void header_strip_range(const struct ui_state *st, uint64_t *begin_ns, uint64_t *end_ns)
{
	const struct rewind *r = &st->rewind;
	const struct profile *p = st->shown;

	*begin_ns = r->begin_ns;
	*end_ns = r->end_ns;
	/* Before the answer it is of another range. */
	if (!p || p->past_begin_ns >= r->end_ns || p->past_end_ns <= r->begin_ns)
		return;
	*begin_ns = MIN(*begin_ns, p->past_begin_ns);
	*end_ns = MAX(*end_ns, p->past_end_ns);
}

uint64_t header_strip_step(const struct ui_state *st)
{
	const struct rewind *r = &st->rewind;
	uint64_t begin_ns, end_ns;
	uint64_t all = r->strip->last_ns - r->strip->first_ns;
	uint64_t step = st->config->replayed ? r->strip->column_ns * (r->strip->nr / STEPS)
					     : st->config->window_ns;

	header_strip_range(st, &begin_ns, &end_ns);
	return r->on ? end_ns - begin_ns : MAX(MIN(MAX(step, STEP_MIN_NS), all), 1u);
}

static const char *key_of(const struct ui_state *st, enum action action, char buf[static 8])
{
	return key_name_of(buf, user_keys_first(st->user_keys, CTX_LIST, action));
}

const char *header_strip_hint(const struct ui_state *st, char *buf, size_t size)
{
	char at[64], step[FORMAT_MAX], keys[5][8];

	*buf = '\0';
	if (!st->rewind.on || !st->rewind.strip)
		return buf;
	snprintf(buf, size, "showing %s: %s %s move by %s, %s longer, %s peak before, %s now",
		 header_strip_ago(st, at, sizeof(at)), key_of(st, ACT_EARLIER, keys[0]),
		 key_of(st, ACT_LATER, keys[1]), format_span(step, header_strip_step(st)).str,
		 key_of(st, ACT_WIDEN, keys[2]), key_of(st, ACT_PEAK, keys[3]),
		 key_of(st, ACT_LIVE, keys[4]));
	return buf;
}

/* Return the letter of an incident, which takes the place of the level; NULL: none. */
static const char *mark_of(uint32_t marks, enum theme_role *role)
{
	*role = ROLE_ALARM;
	if (marks & STRIP_TRAP)
		return "T";
	if (marks & (STRIP_LOST | STRIP_THROTTLED))
		return "!";
	*role = ROLE_WARN;
	if (marks & STRIP_EVENTS)
		return "e";
	if (marks & STRIP_RATE)
		return "f";
	return marks & STRIP_RESET ? "r" : NULL;
}

static bool is_selected(const struct rewind *r, uint32_t i)
{
	return r->on && i >= strip_column_at(r->strip, r->begin_ns) &&
	       i <= strip_column_at(r->strip, r->end_ns - 1);
}

static void draw_column(const struct ui_state *st, struct canvas *c, unsigned int row,
			unsigned int col, uint32_t i)
{
	const struct strip_column *column = &st->rewind.strip->columns[i];
	double share = column->peak / st->rewind.strip->max;
	unsigned int level = column->peak > 0 ? MAX((unsigned int)(share * 8 + 0.5), 1u) : 0;
	enum theme_role role = share > 0.66   ? ROLE_BAR_HOT
			       : share > 0.33 ? ROLE_BAR_WARM
					      : ROLE_BAR;
	enum theme_role mark_role;
	const char *mark = mark_of(column->marks, &mark_role);
	struct style style = { (uint8_t)role, is_selected(&st->rewind, i) ? CELL_REVERSE : 0 };
	char buf[16];

	if (mark) {
		style.role = (uint8_t)mark_role;
		canvas_text(c, row, col, 1, text_format(buf, sizeof(buf), "%s", mark), style);
	} else if (!column->end_ns) {
		style.role = ROLE_DIM;
		canvas_text(c, row, col, 1, TEXT(" "), style);
	} else if (c->ascii) {
		canvas_text(c, row, col, 1,
			    text_format(buf, sizeof(buf), "%u", (unsigned int)(share * 9 + 0.5)),
			    style);
	} else {
		canvas_text(c, row, col, 1, st->glyphs->level[MAX(level, 1u)], style);
	}
}

/* Draw the CPUs, a cell each, and their mean. */
static void draw_cpus(const struct ui_state *st, struct pen *pen)
{
	const struct profile *p = st->latest;
	char buf[FORMAT_MAX];

	for (uint32_t i = 0; i < p->nr_cpus && p->nr_cpus <= CPUS_MAX; i++) {
		double busy = MIN(MAX(p->cpus[i].busy, 0), 1);

		pen_text(pen, 0, st->glyphs->level[(unsigned int)(busy * 8 + 0.5)], ROLE_BAR);
	}
	pen_text(pen, 1, format_share(buf, header_cpus_mean(p)), ROLE_VALUE);
}

/* Write a text, and the key to go to a time: the first question of a reader. */
static struct safe_text with_key(const struct ui_state *st, const char *what,
				 char buf[static TEXT_MAX])
{
	char key[8];

	return text_format(buf, TEXT_MAX, "%s %s: time", what,
			   key_name_of(key, user_keys_first(st->user_keys, CTX_LIST, ACT_REWIND)));
}

/* Write the subject: "all", the process, or the row. */
static struct safe_text subject(const struct ui_state *st, char buf[static TEXT_MAX])
{
	const struct strip_query *q = st->rewind.query;
	const char *name;

	if (q && q->filter[0])
		return ui_state_clean(buf, TEXT_MAX, q->filter);
	if (st->rewind.subject == REWIND_ROW && q &&
	    (q->function != STRIP_ALL || q->process != STRIP_ALL)) {
		name = view_row_name(st, buf);
		return (struct safe_text){ name, (uint16_t)strlen(name), (uint16_t)strlen(name) };
	}
	if (!st->scope.drilled)
		return with_key(st, "all", buf);
	return st->scope.in_thread ? TEXT("thread") : TEXT("process");
}

unsigned int header_strip(struct ui_state *st, struct canvas *c, unsigned int row, bool cpus)
{
	struct rewind *r = &st->rewind;
	unsigned int cols = header_strip_columns(c->cols), skip;
	unsigned int left = is_narrow(c->cols) ? 1 : LEFT;
	struct pen pen = { c, row, 1, left };
	char buf[FORMAT_MAX], span[FORMAT_MAX], name[TEXT_MAX];
	uint32_t nr = MIN(r->strip->nr, cols);

	if (left > 1 && cpus)
		draw_cpus(st, &pen);
	if (left > 1) {
		format_span(span, r->strip->nr * r->strip->column_ns);
		pen_text(&pen, cpus ? 1 : 0, text_format(buf, sizeof(buf), "-%s", span), ROLE_DIM);
	}
	/* The newest column is at the right edge. */
	skip = cols - nr;
	for (uint32_t i = 0; i < nr; i++)
		draw_column(st, c, row, left + skip + i, r->strip->nr - nr + i);
	if (left > 1)
		canvas_elide(c, row, left + cols + 1, RIGHT - 2, subject(st, name),
			     (struct style){ ROLE_DIM, 0 });
	r->row = (uint16_t)row;
	r->col = (uint16_t)(left + skip);
	r->cols = (uint16_t)nr;
	ui_state_zone(st, &(struct zone){ r->row, r->col, 1, r->cols, ZONE_STRIP, 0 });
	return 1;
}
