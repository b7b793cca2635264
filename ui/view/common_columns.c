// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Columns that several views have. The main thread; pure.
 */
#include "ui/view/common_columns.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ui/text/format.h"

static int by_double(double a, double b)
{
	return COMPARE(a, b);
}

/* Of equal self shares, the larger total is the hotter. */
int common_by_self(const struct ui_state *st, const struct row *a, const struct row *b)
{
	int d = by_double(a->self, b->self);

	return d ? d : by_double(a->total, b->total);
}

int common_by_total(const struct ui_state *st, const struct row *a, const struct row *b)
{
	int d = by_double(a->total, b->total);

	return d ? d : by_double(a->self, b->self);
}

int common_by_samples(const struct ui_state *st, const struct row *a, const struct row *b)
{
	return by_double(a->count, b->count);
}

int common_by_change(const struct ui_state *st, const struct row *a, const struct row *b)
{
	int d = by_double((double)a->delta, (double)b->delta);

	return d ? d : common_by_self(st, a, b);
}

void common_total(const struct ui_state *st, const struct row *row, struct canvas *c,
		  struct view_field at)
{
	view_draw_percent(c, at, row->total);
}

void common_share(struct canvas *c, struct view_field at, double share)
{
	char buf[FORMAT_MAX];
	double pct = share * 100;
	int n = snprintf(buf, sizeof(buf), "%.1f", MIN(MAX(pct, 0), 9999));

	canvas_right(c, at.row, at.col, at.cols,
		     (struct safe_text){ buf, (uint16_t)n, (uint16_t)n },
		     (struct style){ share >= 0.005 ? ROLE_NORMAL : ROLE_DIM, 0 });
}

void common_plain(const struct ui_state *st, const struct row *row, struct canvas *c,
		  struct view_field at)
{
	common_share(c, at, row->total);
}

void common_samples(const struct ui_state *st, const struct row *row, struct canvas *c,
		    struct view_field at)
{
	char buf[FORMAT_MAX];

	canvas_right(c, at.row, at.col, at.cols, format_count(buf, row->count),
		     (struct style){ ROLE_NORMAL, 0 });
}

struct safe_text common_time(const struct ui_state *st, double weight, char buf[static FORMAT_MAX])
{
	const struct profile *p = st->shown;

	if (!p->window_ns || !p->nr_events)
		return TEXT("-");
	if (ui_state_waits(st, p))
		return format_tasks(buf, weight / (double)p->window_ns);
	if (!p->events[ui_state_event(st, p)].event.clock)
		return TEXT("-");
	return text_format(buf, FORMAT_MAX, "%.1f", weight * 100 / (double)p->window_ns);
}

bool common_by_samples_alone(const struct ui_state *st)
{
	const struct profile *p = st->shown;

	return p && !p->cpu_known && p->nr_events && !ui_state_waits(st, p) &&
	       !ui_state_latency(st, p) && p->events[ui_state_event(st, p)].event.clock;
}

struct safe_text common_cpu(const struct ui_state *st, double cpu_ns, double weight,
			    char buf[static FORMAT_MAX])
{
	const struct profile *p = st->shown;

	if (!p->cpu_known || !p->window_ns || ui_state_waits(st, p) || ui_state_latency(st, p))
		return common_time(st, weight, buf);
	return text_format(buf, FORMAT_MAX, "%.1f", cpu_ns * 100 / (double)p->window_ns);
}

struct safe_text common_change_text(const struct row *row, char buf[static FORMAT_MAX])
{
	double pct = (double)row->delta * 100;

	if (row->change == CHANGE_UNKNOWN || (row->change != CHANGE_NEW && fabs(pct) < 0.05))
		return TEXT("");
	if (row->change == CHANGE_NEW)
		return TEXT("new!");
	return text_format(buf, FORMAT_MAX, "%+.1f%s", MIN(MAX(pct, -999), 999),
			   row->change == CHANGE_SURE ? "!" : "");
}

struct style common_change_style(const struct row *row)
{
	bool sure = row->change == CHANGE_SURE || row->change == CHANGE_NEW;

	return (struct style){ row->change == CHANGE_UNSURE ? ROLE_DIM
			       : row->delta > 0		    ? ROLE_BAR_HOT
							    : ROLE_BAR,
			       sure ? CELL_BOLD : 0 };
}

void common_change(const struct ui_state *st, const struct row *row, struct canvas *c,
		   struct view_field at)
{
	char buf[FORMAT_MAX];

	canvas_right(c, at.row, at.col, at.cols, common_change_text(row, buf),
		     common_change_style(row));
}

/* Return the row's function; NULL: none. */
static const struct profile_function *function_of(const struct ui_state *st, const struct row *row)
{
	uint32_t fn = view_of(st->view)->function(st, row);

	return fn < st->shown->nr_functions ? &st->shown->functions[fn] : NULL;
}

void common_kind(const struct ui_state *st, const struct row *row, struct canvas *c,
		 struct view_field at)
{
	const struct profile_function *f = function_of(st, row);
	char kind[2] = "?";

	if (!f)
		return;
	if (f->kind && (strchr("ukjvw", f->kind) || profile_language_name(f->kind)))
		kind[0] = f->kind;
	canvas_text(c, at.row, at.col, at.cols, (struct safe_text){ kind, 1, 1 },
		    (struct style){ theme_kind(kind[0]), 0 });
}

void common_module(const struct ui_state *st, const struct row *row, struct canvas *c,
		   struct view_field at)
{
	const struct profile_function *f = function_of(st, row);

	if (f)
		canvas_elide(c, at.row, at.col, at.cols, f->module,
			     (struct style){ ROLE_NORMAL, 0 });
}

size_t common_whole(const struct ui_state *st, char *buf, size_t size)
{
	const struct scope *s = &st->scope;
	bool part = s->drilled || scope_chooses(s);
	const char *of = part && st->rewind.on ? "  of all processes, of the whole time"
			 : part		       ? "  of all processes"
			 : st->rewind.on       ? "  of the whole time"
					       : "";

	return (size_t)snprintf(buf, size, "%s", of);
}
