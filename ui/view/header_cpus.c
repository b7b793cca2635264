// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How busy each CPU is. The main thread; reads the state only.
 */
#include "ui/view/header_cpus.h"

#include "ui/text/format.h"
#include "ui/view/view.h"

#define CELL_MIN  16 /* cells of screen for one bar with its figures */
#define CELL_GOOD 38 /* wider bars add nothing */
#define FIGURES	  10 /* of a bar: number, edges, percent */

static enum theme_role busy_role(double busy)
{
	return busy > 0.9 ? ROLE_BAR_HOT : busy > 0.6 ? ROLE_BAR_WARM : ROLE_BAR;
}

static bool in_trouble(const struct profile_cpu *cpu)
{
	return cpu->lost || cpu->throttled;
}

/* "  0▕█████▏     ▏ 63%" in @width cells. */
static void draw_bar(const struct ui_state *st, struct canvas *c, struct view_field at,
		     const struct profile_cpu *cpu)
{
	char buf[FORMAT_MAX];
	unsigned int bar = at.cols - FIGURES;
	const struct style label = { in_trouble(cpu) ? ROLE_ALARM : ROLE_DIM, 0 };

	canvas_right(c, at.row, at.col, 4,
		     text_format(buf, sizeof(buf), in_trouble(cpu) ? "!%d" : "%d", cpu->cpu),
		     label);
	canvas_text(c, at.row, at.col + 4, 1, st->glyphs->bar_begin, (struct style){ ROLE_DIM, 0 });
	canvas_text(c, at.row, at.col + 5 + bar, 1, st->glyphs->bar_end,
		    (struct style){ ROLE_DIM, 0 });
	if (!cpu->online) {
		canvas_text(c, at.row, at.col + 5, bar, TEXT("offline"),
			    (struct style){ ROLE_DIM, 0 });
		return;
	}
	view_draw_bar(st, c, (struct view_field){ at.row, at.col + 5, bar }, cpu->busy,
		      busy_role(cpu->busy));
	canvas_right(c, at.row, at.col + 6 + bar, 4,
		     format_share(buf, cpu->busy >= 0.995 ? 1
				       : cpu->busy < 0.99 ? cpu->busy
							  : 0.99),
		     (struct style){ ROLE_NORMAL, 0 });
}

/* Return the CPUs of a line, one cell each. */
static unsigned int compact_cells(const struct canvas *c)
{
	return c->cols > 24 ? c->cols - 16 : 8;
}

double header_cpus_mean(const struct profile *p)
{
	uint32_t nr = 0;
	double sum = 0;

	for (uint32_t i = 0; i < p->nr_cpus; i++)
		if (p->cpus[i].online) {
			sum += MIN(MAX(p->cpus[i].busy, 0), 1);
			nr++;
		}
	return nr ? sum / nr : 0;
}

/* Draw one cell per CPU, and the mean. */
static void draw_compact(const struct ui_state *st, struct canvas *c, unsigned int row,
			 unsigned int max_rows)
{
	const struct profile *p = st->latest;
	unsigned int per_row = compact_cells(c);
	char buf[FORMAT_MAX], share[FORMAT_MAX];

	canvas_text(c, row, 1, 4, TEXT("CPUs"), (struct style){ ROLE_DIM, 0 });
	for (uint32_t i = 0; i < p->nr_cpus; i++) {
		const struct profile_cpu *cpu = &p->cpus[i];
		double busy = MIN(MAX(cpu->busy, 0), 1);
		unsigned int level = (unsigned int)(busy * 8 + 0.5);

		if (i / per_row >= max_rows)
			continue;
		canvas_text(c, row + i / per_row, 6 + i % per_row, 1,
			    !cpu->online ? TEXT(" ") : st->glyphs->level[level],
			    (struct style){ in_trouble(cpu) ? ROLE_ALARM : busy_role(busy), 0 });
	}
	canvas_right(c, row, c->cols > 10 ? c->cols - 10 : 0, 9,
		     text_format(buf, sizeof(buf), "mean %s",
				 format_share(share, header_cpus_mean(p)).str),
		     (struct style){ ROLE_NORMAL, 0 });
}

/* The cells of one line of @c, and lines, that bars may take. */
struct space {
	unsigned int most, good, max_rows;
};

static struct space space_of(const struct canvas *c)
{
	return (struct space){ MAX((c->cols - 1) / CELL_MIN, 1u),
			       MAX((c->cols - 1) / CELL_GOOD, 1u),
			       c->rows < HEADER_TALL ? 1 : c->rows / 4 - 4 };
}

static bool is_compact(const struct profile *p, const struct space *s)
{
	return (p->nr_cpus + s->most - 1) / s->most > s->max_rows;
}

unsigned int header_cpus_rows(const struct ui_state *st, const struct canvas *c)
{
	const struct profile *p = st->latest;
	const struct space s = space_of(c);

	if (!p->nr_cpus || c->cols < CELL_MIN + 1)
		return 0;
	if (is_compact(p, &s)) {
		unsigned int per_row = compact_cells(c);

		return MIN((p->nr_cpus + per_row - 1) / per_row, s.max_rows);
	}
	return MIN((p->nr_cpus + s.good - 1) / s.good, s.max_rows);
}

unsigned int header_cpus(const struct ui_state *st, struct canvas *c, unsigned int row)
{
	const struct profile *p = st->latest;
	const struct space s = space_of(c);
	unsigned int rows = header_cpus_rows(st, c), per_row, width;

	if (!rows)
		return 0;
	if (is_compact(p, &s)) {
		draw_compact(st, c, row, rows);
		return rows;
	}
	per_row = (p->nr_cpus + rows - 1) / rows;
	width = (c->cols - 2) / per_row;
	for (uint32_t i = 0; i < p->nr_cpus; i++)
		draw_bar(st, c,
			 (struct view_field){ row + i / per_row, i % per_row * width,
					      MIN(width, 64u) },
			 &p->cpus[i]);
	return rows;
}
