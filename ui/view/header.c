// SPDX-License-Identifier: GPL-2.0-or-later
/* The lines above the rows: title, busy CPUs, the process drilled into, heat strip, tabs. */
#include "ui/view/internal.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sampler/count/count.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "symbols/name/name.h"
#include "ui/draw/draw.h"
#include "ui/fold/fold.h"
#include "ui/key/key.h"
#include "ui/state/state.h"
#include "ui/text/text.h"

/*
 * How busy each CPU is: bars while they fit into a quarter of the screen, one
 * cell a CPU beyond.
 *
 * Runs on: the main thread.
 *
 * How busy each CPU is. The main thread; reads the state only.
 */

#define HEADER_TALL 30 /* lines of a screen with two lines of event and health */
#define CELL_MIN    16 /* cells of screen for one bar with its figures */
#define CELL_GOOD   38 /* wider bars add nothing */
#define FIGURES	    10 /* of a bar: number, edges, percent */
#define MARKED	    16 /* cells of a bar with marks at the quarters; of less, at the half */

static enum theme_role busy_role(double busy)
{
	return busy > 0.9 ? ROLE_BAR_HOT : busy > 0.6 ? ROLE_BAR_WARM : ROLE_BAR;
}

static bool in_trouble(const struct profile_cpu *cpu)
{
	return cpu->lost || cpu->throttled;
}

/* Return whether cell @i of @cols ends at a mark of the scale. */
static bool is_marked(unsigned int i, unsigned int cols)
{
	unsigned int parts = cols < MARKED ? 2 : 4;

	for (unsigned int k = 1; k < parts; k++)
		if (i + 1 == (k * cols + parts / 2) / parts)
			return true;
	return false;
}

/* Draw user code, kernel and host beside each other, and the scale. */
static void draw_meter(const struct ui_state *st, struct canvas *c, struct view_field at,
		       const struct profile_cpu *cpu)
{
	static const enum theme_role roles[] = { ROLE_USER, ROLE_KERNEL, ROLE_WAIT };
	double busy = MIN(MAX(cpu->busy, 0), 1);
	double ends[] = { busy - cpu->busy_kernel - cpu->busy_steal, busy - cpu->busy_steal, busy };
	unsigned int eighths = (unsigned int)(busy * at.cols * 8 + 0.5);

	for (unsigned int i = 0; i < at.cols; i++) {
		unsigned int part = eighths > 8 * i ? MIN(eighths - 8 * i, 8) : 0, k = 0;

		while (k < 2 && (i + 0.5) / at.cols > ends[k])
			k++;
		if (!part)
			canvas_text(c, at.row, at.col + i, 1,
				    is_marked(i, at.cols) ? st->glyphs->tick : TEXT(" "),
				    (struct style){ ROLE_DIM, 0 });
		else
			canvas_text(c, at.row, at.col + i, 1,
				    part < 8		    ? st->glyphs->bar[part]
				    : is_marked(i, at.cols) ? st->glyphs->notch[k]
							    : st->glyphs->meter[k],
				    (struct style){ (uint8_t)roles[k], 0 });
	}
}

/* "  0▕█████▓▓╵    ▏ 63%" in @width cells. */
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
	draw_meter(st, c, (struct view_field){ at.row, at.col + 5, bar }, cpu);
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

/* Return how busy the online CPUs are, from 0 to 1; 0: it is not known. */
static double header_cpus_mean(const struct profile *p)
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

/* Return the rows of the bars. */
static unsigned int header_cpus_rows(const struct ui_state *st, const struct canvas *c)
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

/* Draw the bars. Return the rows used. */
static unsigned int header_cpus(const struct ui_state *st, struct canvas *c, unsigned int row)
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
			 (struct view_field){ row + i / per_row, i % per_row * width, width },
			 &p->cpus[i]);
	return rows;
}

/*
 * The process drilled into, or the target if that is not the whole system: identity and
 * cost. The main thread; reads the state.
 *
 * The process drilled into, or the processes sampled, in one or two lines. The main thread; reads
 * the state.
 */

/* Sums of the shown samples of the window. */
struct sums_header_process {
	double count, weight, kernel, cpu_ns;
	uint32_t nr_tasks, nr_processes;
};

/* A process, or a thread, is one, also if it has executed another program. */
static uint32_t nr_different(uint64_t *ids, uint32_t nr)
{
	uint32_t different = 0;

	if (sort_by_number(ids, nr, sizeof(*ids)))
		return nr;
	for (uint32_t i = 0; i < nr; i++)
		different += !i || ids[i] != ids[i - 1];
	return different;
}

static struct sums_header_process sums_of(const struct ui_state *st)
{
	const struct fold_task *tasks = folds_tasks(st);
	uint64_t *pids = malloc((st->shown->nr_tasks + 1ULL) * sizeof(*pids));
	uint64_t *tids = malloc((st->shown->nr_tasks + 1ULL) * sizeof(*tids));
	double *cpu = malloc((st->shown->nr_processes + 1ULL) * sizeof(*cpu));
	struct sums_header_process sums = { .nr_tasks = 0 };
	struct fold_filter f;

	if (!tasks || !pids || !tids || !cpu || !view_filter(st, &f))
		goto out;
	sums.cpu_ns = fold_cpu(st->shown, &f, cpu);
	for (uint32_t i = 0; i < st->shown->nr_tasks; i++) {
		if (!(tasks[i].count > 0) || !fold_passes_task(st->shown, &f, i))
			continue;
		sums.count += tasks[i].count;
		sums.weight += tasks[i].weight;
		sums.kernel += tasks[i].kernel;
		pids[sums.nr_tasks] =
			(uint64_t)st->shown->processes[st->shown->tasks[i].process].pid;
		tids[sums.nr_tasks++] = (uint64_t)st->shown->tasks[i].tid;
	}
	sums.nr_processes = nr_different(pids, sums.nr_tasks);
	sums.nr_tasks = nr_different(tids, sums.nr_tasks);
out:
	free(pids);
	free(tids);
	free(cpu);
	return sums;
}

/* Draw the command line, cut to leave space for user, cgroup and age. */
static void draw_who(const struct ui_state *st, struct canvas *c, unsigned int row,
		     const struct profile_process *p)
{
	struct pen pen = { c, row, 1, c->cols };
	char up[48], name[64], clock[FORMAT_MAX];
	struct safe_text age =
		!p->up_ns ? TEXT("")
			  : text_format(up, sizeof(up), "up %s", format_clock(clock, p->up_ns).str);
	struct safe_text user = users_name(st->config->users, p->uid, name, sizeof(name));
	struct safe_text group = p->container.size ? p->container : p->cgroup;
	unsigned int rest = age.width + user.width + 10u;

	if (c->cols >= 100 && group.size)
		rest += MIN(group.width, c->cols / 3) + 10u;
	if (c->cols > rest + 10)
		pen.col += canvas_elide(c, row, pen.col, c->cols - rest,
					p->command.size ? p->command : p->comm,
					(struct style){ ROLE_VALUE, 0 });
	pen_value(&pen, 3, TEXT("user"), user, ROLE_NORMAL);
	if (c->cols >= 100 && group.size && pen.col + 12 < pen.end) {
		pen_text(&pen, 3, TEXT("cgroup"), ROLE_DIM);
		pen.col += 1 + canvas_elide(c, row, pen.col + 1,
					    MIN(pen.end - pen.col, c->cols / 3), group,
					    (struct style){ ROLE_NORMAL, 0 });
	}
	pen_text(&pen, 3, age, ROLE_NORMAL);
}

/* ---- time of tasks by kind ---- */

#define KINDS_SHOWN 4

/* Sum the time of the shown tasks by enum wait_kind. Running time counts where a clock is shown. */
static double sum_kinds(const struct ui_state *st, double sums[static WAIT_NR])
{
	const double *times = times_on(st) ? folds_times(st) : NULL;
	struct fold_filter f;
	double all = 0;

	for (int k = 0; k < WAIT_NR; k++)
		sums[k] = 0;
	if (!times || !view_filter(st, &f))
		return 0;
	for (uint32_t i = 0; i < st->shown->nr_tasks; i++)
		for (int k = 0; k < WAIT_NR && fold_passes_task(st->shown, &f, i); k++)
			sums[k] += times[i * WAIT_NR + (uint32_t)k];
	if (!ui_state_also(st, st->shown))
		sums[WAIT_RUNNING] = 0;
	for (int k = WAIT_RUNNING; k < WAIT_NR; k++)
		all += sums[k];
	return all;
}

/* Draw the time of the shown tasks: "Waiting 10.03 task-s/s". Return false, and draw nothing, where
 * no waits are shown. */
static bool times_draw_total(const struct ui_state *st, struct pen *pen, unsigned int gap)
{
	double sums[WAIT_NR], all = sum_kinds(st, sums);
	char buf[FORMAT_MAX], text[64];

	if (!times_on(st) || !st->shown->window_ns)
		return false;
	return pen_value(pen, gap, ui_state_also(st, st->shown) ? TEXT("Time") : TEXT("Waiting"),
			 text_format(text, sizeof(text), "%s task-s/s",
				     format_tasks(buf, all / (double)st->shown->window_ns).str),
			 ROLE_VALUE);
}

/* Return the time of idle waits that are hidden, in task-seconds per second. */
static double times_hidden(const struct ui_state *st)
{
	double sums[WAIT_NR];

	if (!times_on(st) || !st->shown->window_ns || !ui_state_hides_idle(st, st->shown))
		return 0;
	sum_kinds(st, sums);
	return sums[WAIT_NO] / (double)st->shown->window_ns;
}

/* Return the name of the kind without its brackets. */
static struct safe_text name_of(enum wait_kind kind, char buf[static 32])
{
	const char *name = kind == WAIT_RUNNING ? "[CPU]" : wait_kind_name(kind);
	size_t size = strlen(name);

	return text_format(buf, 32, "%.*s", (int)MAX(size, 2u) - 2, name + 1);
}

/* Draw the shares of its largest kinds, the ones that fit: "lock 30%  sleep 24%". */
static void times_draw_kinds(const struct ui_state *st, struct pen *pen, unsigned int gap)
{
	double sums[WAIT_NR], all = sum_kinds(st, sums);
	char buf[FORMAT_MAX], name[32];

	for (int n = 0; n < KINDS_SHOWN; n++) {
		int best = WAIT_RUNNING;

		for (int k = WAIT_RUNNING; k < WAIT_NR; k++)
			if (sums[k] > sums[best])
				best = k;
		if (!(sums[best] > 0.005 * all) ||
		    !pen_value(pen, n ? 2 : gap, name_of((enum wait_kind)best, name),
			       format_share(buf, sums[best] / all), ROLE_VALUE))
			return;
		sums[best] = 0;
	}
}

/* Draw CPU time, threads and samples in one line: a share of the rows is a share of these. */
static void header_process_sums(const struct ui_state *st, struct canvas *c, unsigned int row)
{
	const struct sums_header_process sums = sums_of(st);
	struct pen pen = { c, row, 1, c->cols };
	unsigned int gap = c->cols < 100 ? 2 : 3;
	char buf[FORMAT_MAX], span[FORMAT_MAX], text[64];
	bool waits = ui_state_waits(st, st->shown);
	struct safe_text cpu;

	if (waits) {
		times_draw_total(st, &pen, 0);
	} else {
		cpu = table_cpu(st, sums.cpu_ns, sums.weight, buf);
		pen_value(&pen, 0,
			  ui_state_latency(st, st->shown) ? TEXT("Wall")
			  : table_by_samples_alone(st)	  ? TEXT("~CPU")
							  : TEXT("CPU"),
			  *cpu.str == '-' ? cpu : text_format(text, sizeof(text), "%s%%", cpu.str),
			  ROLE_VALUE);
	}
	if (!sums.nr_tasks)
		return;
	if (sums.nr_processes > 1)
		pen_value(&pen, gap, TEXT("Processes"), format_count(buf, sums.nr_processes),
			  ROLE_VALUE);
	pen_value(&pen, gap, TEXT("Threads"), format_count(buf, sums.nr_tasks), ROLE_VALUE);
	if (c->cols >= 100)
		pen_text(&pen, 1, TEXT("with samples"), ROLE_DIM);
	pen_value(&pen, gap, TEXT("Samples"), format_count(buf, sums.count), ROLE_VALUE);
	if (st->shown->window_ns)
		pen_text(&pen, 1,
			 text_format(text, sizeof(text), "in %s",
				     format_span(span, st->shown->window_ns).str),
			 ROLE_DIM);
	if (waits)
		times_draw_kinds(st, &pen, gap);
	if (!(sums.weight > 0) || waits)
		return;
	pen_value(&pen, gap, TEXT("user code"), format_share(buf, 1 - sums.kernel / sums.weight),
		  ROLE_VALUE);
	pen_value(&pen, 1, TEXT("kernel"), format_share(buf, sums.kernel / sums.weight),
		  ROLE_VALUE);
}

/*
 * Find the one process that is shown: drilled into or sampled alone, by its newest program.
 * UINT32_MAX: none or several.
 */
static uint32_t process_alone(const struct ui_state *st)
{
	const struct profile_process *all = st->shown->processes;
	uint32_t newest = 0;

	if (view_scope(st) != VIEW_ALL)
		return ui_state_process(st, st->shown);
	for (uint32_t i = 0; i < st->shown->nr_processes; i++) {
		if (all[i].pid != all[0].pid)
			return UINT32_MAX;
		if (all[i].id > all[newest].id)
			newest = i;
	}
	return st->shown->nr_processes ? newest : UINT32_MAX;
}

/* Draw it from @row on. Return the lines used, 0 if the whole system is shown. */
static unsigned int header_process(const struct ui_state *st, struct canvas *c, unsigned int row)
{
	uint32_t alone = st->shown ? process_alone(st) : UINT32_MAX;
	/* Of the system the lines of the CPUs say more. */
	bool drilled = view_scope(st) != VIEW_ALL;
	bool target = st->shown && !st->config->replayed && !drilled &&
		      strcmp(st->shown->target, "system") != 0;

	if (!target && (!drilled || (alone == UINT32_MAX && !st->scope.group[0])))
		return 0;
	/* The breadcrumb has the name. */
	if (c->rows < HEADER_TALL || alone == UINT32_MAX) {
		header_process_sums(st, c, row);
		return 1;
	}
	draw_who(st, c, row, &st->shown->processes[alone]);
	header_process_sums(st, c, row + 1);
	return 2;
}

/*
 * The heat strip in the header: time from left to right, height and colour by the amount of the
 * selected samples. Runs on: the main thread.
 */

#define LATE_NS	    5000000000ULL /* until then a tick that is late is not told */
#define SHOWN_NS    3000000000ULL /* a shorter past is not worth a line */
#define LEFT	    15		  /* cells in front: CPUs or span */
#define RIGHT	    14		  /* cells behind: the subject */
#define STEPS	    20 /* of a key, from one end of the strip of a recording to the other */
#define STEP_MIN_NS 1000000000ULL
#define CPUS_MAX    8 /* more are shown by their mean alone */
/* Multiples of the mean that stand out. */
#define WARM 1.25
#define HOT  1.6

/* Return whether there is a strip to draw. */
static bool header_strip_is_on(const struct ui_state *st)
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

static const char *header_strip_time(const struct ui_state *st, char *buf, size_t size);

/* Write the position in the past: "32.4s ago", "+12.3s" in a recording; "" if it is now. */
static const char *header_strip_ago(const struct ui_state *st, char *buf, size_t size)
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

	assert(buf && size);
	*buf = '\0';
	if (local_at(s, time_ns, &tm))
		strftime(buf, size, needs_date(s) ? "%m-%d %H:%M:%S" : "%H:%M:%S", &tm);
	else if (s)
		snprintf(buf, size, "+%s",
			 format_age(span, time_ns - MIN(time_ns, s->first_ns)).str);
	return buf;
}

/* Write the time of the day at the position: "14:03:22"; "" if it is unknown. */
static const char *header_strip_time(const struct ui_state *st, char *buf, size_t size)
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
					     : st->set.window_ns;

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

	assert(buf && size);
	*buf = '\0';
	if (!st->rewind.on || !st->rewind.strip)
		return buf;
	if (st->rewind.steers) {
		snprintf(buf, size,
			 "showing %s: arrows 50 ms, 1 s; Space mark, Enter rows, Esc now",
			 header_strip_ago(st, at, sizeof(at)));
		return buf;
	}
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

/* Return the mean of the columns in sight that have samples. */
static double mean_of(const struct strip *s, uint32_t first)
{
	double sum = 0;
	uint32_t nr = 0;

	for (uint32_t i = first; i < s->nr; i++) {
		sum += s->columns[i].peak;
		nr += s->columns[i].peak > 0;
	}
	return nr ? sum / nr : 0;
}

/* Draw a column; its colour is by the multiple of @mean: a steady load has no peak. */
static void draw_column(const struct ui_state *st, struct canvas *c, unsigned int row,
			unsigned int col, uint32_t i, double mean)
{
	const struct strip_column *column = &st->rewind.strip->columns[i];
	double share = column->peak / st->rewind.strip->max;
	/* Not a full cell: the line above has bars too. */
	unsigned int level = column->peak > 0 ? MAX((unsigned int)(share * 7 + 0.5), 1u) : 0;
	enum theme_role role = column->peak > HOT * mean    ? ROLE_BAR_HOT
			       : column->peak > WARM * mean ? ROLE_BAR_WARM
							    : ROLE_FRAME;
	enum theme_role mark_role;
	const char *mark = mark_of(column->marks, &mark_role);
	struct style style = { (uint8_t)role, is_selected(&st->rewind, i) ? CELL_REVERSE : 0 };
	char buf[16];

	assert(i < st->rewind.strip->nr);
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

/* Note the place of the strip, for the mouse. */
static void add_strip_zone(struct ui_state *st, unsigned int row, unsigned int col,
			   unsigned int rows, unsigned int cols)
{
	struct rewind *r = &st->rewind;

	r->row = (uint16_t)row;
	r->col = (uint16_t)col;
	r->rows = (uint16_t)rows;
	r->cols = (uint16_t)cols;
	ui_state_zone(st, &(struct zone){ r->row, r->col, r->rows, r->cols, ZONE_STRIP, 0 });
}

/* Slices of a grid that are drawn as one. */
struct grid_part {
	unsigned int level; /* below THEME_HEATS */
	uint32_t marks;
	bool any, selected;
};

static struct grid_part part_of(const struct rewind *r, uint32_t first, uint32_t nr)
{
	const struct strip *s = r->strip;
	uint64_t begin_ns = s->begin_ns + first * s->column_ns;
	struct grid_part part = { .selected = r->on && begin_ns < r->end_ns &&
					      begin_ns + nr * s->column_ns > r->begin_ns };
	double peak = 0;

	assert(nr && first + nr <= s->nr);
	for (uint32_t i = first; i < first + nr; i++) {
		peak = MAX(peak, s->columns[i].peak);
		part.marks |= s->columns[i].marks;
		part.any |= s->columns[i].end_ns > 0;
	}
	part.level = (unsigned int)ceil(peak / s->max * (THEME_HEATS - 1));
	part.level = MIN(part.level, THEME_HEATS - 1u);
	return part;
}

/* Draw a cell of a grid in characters: its level, or the letter of an incident. */
static void draw_grid_cell(const struct ui_state *st, struct canvas *c, unsigned int row,
			   unsigned int col, const struct grid_part *part)
{
	static const enum theme_role roles[THEME_HEATS] = { ROLE_DIM, ROLE_FRAME, ROLE_BAR,
							    ROLE_BAR_WARM, ROLE_BAR_HOT };
	enum theme_role role = roles[part->level];
	const char *mark = part->marks ? mark_of(part->marks, &role) : NULL;
	char buf[16];

	canvas_text(c, row, col, 1,
		    mark	? text_format(buf, sizeof(buf), "%s", mark)
		    : part->any ? st->glyphs->heat[part->level]
				: TEXT(" "),
		    (struct style){ (uint8_t)role, part->selected ? CELL_REVERSE : 0 });
}

/* Draw a cell with two parts of a grid, one above the other. */
static void draw_grid_halves(const struct ui_state *st, struct canvas *c, unsigned int row,
			     unsigned int col, const struct grid_part part[static 2])
{
	unsigned int level[2];

	for (unsigned int i = 0; i < 2; i++)
		level[i] = part[i].level + (part[i].selected ? THEME_HEATS : 0);
	canvas_text(c, row, col, 1, st->glyphs->half,
		    (struct style){ (uint8_t)theme_heats(level[0], level[1]), 0 });
}

/* Draw the seconds of a grid in @lines lines, with the times of their slices. */
static unsigned int header_grid(struct ui_state *st, struct canvas *c, unsigned int row,
				unsigned int lines)
{
	struct rewind *r = &st->rewind;
	unsigned int cols = header_strip_columns(c->cols), left = is_narrow(c->cols) ? 1 : LEFT;
	uint32_t seconds = r->strip->nr / STRIP_GRID_ROWS, nr = MIN(seconds, cols);
	unsigned int skip = left + cols - nr, each = STRIP_GRID_ROWS / lines;
	char buf[FORMAT_MAX], span[FORMAT_MAX], name[TEXT_MAX];
	struct pen pen = { c, row, 1, left };

	format_span(span, nr * 1000000000ULL);
	if (left > 1)
		pen_text(&pen, 0, text_format(buf, sizeof(buf), "-%s", span), ROLE_DIM);
	for (unsigned int line = 0; line < lines; line++) {
		if (left > 1 && line * each % 5 == 0)
			canvas_right(c, row + line, left - 7, 6,
				     text_format(buf, sizeof(buf), "%u ms", line * each * 50),
				     (struct style){ ROLE_DIM, 0 });
		for (uint32_t i = 0; i < nr; i++) {
			uint32_t at = (seconds - nr + i) * STRIP_GRID_ROWS + line * each;
			struct grid_part part = part_of(r, at, each), halves[2];

			if (!c->halves || each == 1 || part.marks || !part.any) {
				draw_grid_cell(st, c, row + line, skip + i, &part);
				continue;
			}
			halves[0] = part_of(r, at, each / 2);
			halves[1] = part_of(r, at + each / 2, each / 2);
			draw_grid_halves(st, c, row + line, skip + i, halves);
		}
	}
	if (left > 1)
		canvas_elide(c, row, left + cols + 1, RIGHT - 2, subject(st, name),
			     (struct style){ ROLE_DIM, 0 });
	add_strip_zone(st, row, skip, lines, nr);
	return lines;
}

/* Draw the strip; with @cpus after the CPUs in short. Return the rows used. */
static unsigned int header_strip(struct ui_state *st, struct canvas *c, unsigned int row, bool cpus)
{
	struct rewind *r = &st->rewind;
	unsigned int lines = r->strip->grid ? header_grid_lines(c->rows) : 0;
	unsigned int cols = header_strip_columns(c->cols), skip;
	unsigned int left = is_narrow(c->cols) ? 1 : LEFT;
	struct pen pen = { c, row, 1, left };
	char buf[FORMAT_MAX], span[FORMAT_MAX], name[TEXT_MAX];
	uint32_t nr = MIN(r->strip->nr, cols);
	uint64_t begin;
	double mean;

	if (lines)
		return header_grid(st, c, row, lines);
	if (left > 1 && cpus)
		draw_cpus(st, &pen);
	if (left > 1) {
		/* The first column may begin before the first slice, the last one end after now. */
		begin = r->strip->begin_ns + (r->strip->nr - nr) * r->strip->column_ns;
		begin = MAX(begin, r->strip->first_ns);
		format_span(span, r->strip->last_ns - MIN(begin, r->strip->last_ns));
		pen_text(&pen, cpus ? 1 : 0, text_format(buf, sizeof(buf), "-%s", span), ROLE_DIM);
	}
	/* The newest column is at the right edge. */
	skip = cols - nr;
	mean = mean_of(r->strip, r->strip->nr - nr);
	for (uint32_t i = 0; i < nr; i++)
		draw_column(st, c, row, left + skip + i, r->strip->nr - nr + i, mean);
	if (left > 1)
		canvas_elide(c, row, left + cols + 1, RIGHT - 2, subject(st, name),
			     (struct style){ ROLE_DIM, 0 });
	add_strip_zone(st, row, left + skip, 1, nr);
	return 1;
}

/*
 * The tabs: all views, the shown one, and everything that hides rows.
 *
 * Runs on: the main thread.
 *
 * The tabs. The main thread; reads the state, adds mouse zones.
 *
 * Everything that hides rows must be visible: if the line is too short, the
 * names of other views are shortened first.
 */

static const enum action actions[VIEW_HELP] = {
	[VIEW_FUNCTIONS] = ACT_VIEW_FUNCTIONS, [VIEW_PROCESSES] = ACT_VIEW_PROCESSES,
	[VIEW_TREE] = ACT_VIEW_TREE,	       [VIEW_FLAME] = ACT_VIEW_FLAME,
	[VIEW_CPUS] = ACT_VIEW_CPUS,	       [VIEW_MODULES] = ACT_VIEW_MODULES,
	[VIEW_MESSAGES] = ACT_VIEW_MESSAGES,
};

/* Write the file of the baseline, or when it was: the running time, or the moment of a range of the
 * past. */
static const char *baseline_time(const struct ui_state *st, char *buf, size_t size)
{
	const struct profile *b = st->baseline;
	char clock[FORMAT_MAX];
	const char *name;

	if (st->baseline_path) {
		name = strrchr(st->baseline_path, '/');
		ui_state_clean(buf, size, name && name[1] ? name + 1 : st->baseline_path);
		return buf;
	}
	if (b->past_end_ns)
		return header_strip_moment(st, b->past_begin_ns, buf, size);
	snprintf(buf, size, "%s", format_clock(clock, b->running_ns).str);
	return buf;
}

/* Say that the rows are not of the shown moment. */
static size_t live_note(const struct ui_state *st, char *buf, size_t size)
{
	const char *rows = st->config->replayed ? "rows of the whole recording" : "live rows";
	char at[64];

	/* Of a recording that is read to its end, the frozen rows are the newest. */
	if (!st->rewind.on)
		return st->config->replayed && st->shown == st->latest
			       ? 0
			       : (size_t)snprintf(buf, size, "  live rows, not frozen");
	return (size_t)snprintf(buf, size, "  %s, not of %s", rows,
				header_strip_moment(st, st->rewind.begin_ns, at, sizeof(at)));
}

/* Write all that hides rows; "": nothing. */
static struct safe_text left_out(const struct ui_state *st, char *buf, size_t size)
{
	const struct list *list = &st->lists[st->view];
	const struct view *v = view_shown(st);
	char limit[FORMAT_MAX], user[64];
	size_t n = 0;

	*buf = '\0';
	if (v->newest && st->frozen)
		n += live_note(st, buf, size);
	if (match_active(&list->filter) && n < size)
		n += (size_t)snprintf(buf + n, size - n, "  filter %s%s", list->filter.text,
				      list->filter.bad ? " (literal)" : "");
	if (match_active(&st->scope.cgroup) && n < size)
		n += (size_t)snprintf(buf + n, size - n, "  cgroup %s (:cgroup)",
				      st->scope.cgroup.text);
	if (st->scope.by_user && n < size)
		n += (size_t)snprintf(
			buf + n, size - n, "  user %s (u)",
			users_name(st->config->users, st->scope.uid, user, sizeof(user)).str);
	if (v->options && n < size)
		n += v->options(st, buf + n, size - n);
	if (!v->newest && st->shown && st->shown->past_other_events && n < size)
		n += (size_t)snprintf(buf + n, size - n, "  samples of other events left out");
	if (v->compared && baseline_is_on(st) && n < size)
		n += (size_t)snprintf(buf + n, size - n, "  against %s (B)",
				      baseline_time(st, user, sizeof(user)));
	if (st->shown && st->shown->shown_frames != FRAMES_LANGUAGE && n < size)
		n += (size_t)snprintf(buf + n, size - n, "  frames: %s (l)",
				      profile_frames_name(st->shown->shown_frames));
	if (st->set.hide_kernel && n < size)
		n += (size_t)snprintf(buf + n, size - n, "  kernel hidden (K)");
	if (st->set.hide_user && n < size)
		n += (size_t)snprintf(buf + n, size - n, "  user hidden (U)");
	if (ui_state_latency(st, st->shown) && n < size)
		n += (size_t)snprintf(buf + n, size - n, "  1 / running tasks (^)");
	if (times_hidden(st) >= 0.005 && n < size)
		n += (size_t)snprintf(buf + n, size - n, "  idle %s hidden (\")",
				      format_tasks(limit, times_hidden(st)).str);
	if (st->set.percent_limit > 0 && n < size)
		snprintf(buf + n, size - n, "  under %s%% hidden (L)",
			 format_percent(limit, st->set.percent_limit / 100).str);
	return (struct safe_text){ buf, 0, 0 };
}

/* The form of the tabs: spaced, and the first @named with names. */
struct tabs_form {
	bool apart;
	int named;
};

/* "[1:Functions]", " 2:Processes ", or " 2:" on narrow screens: a number that no row begins with.
 */
static struct safe_text tab_text(const struct ui_state *st, enum view_id id, struct tabs_form form,
				 char *buf, size_t size)
{
	bool here = id == st->view, named = here || (int)id < form.named;
	char key[8];

	assert((unsigned int)id < ARRAY_SIZE(actions));
	return text_format(buf, size,
			   here		? "%s[%s:%s]"
			   : form.apart ? "%s %s:%s "
					: "%s %s:%s",
			   here && id && !form.apart ? " " : "",
			   key_name_of(key, user_keys_first(st->user_keys, CTX_LIST, actions[id])),
			   named ? view_of(id)->title.str : "");
}

/* "[% Branches]": a view without a tab, while it is shown. */
static struct safe_text other_text(const struct ui_state *st, struct tabs_form form, char *buf,
				   size_t size)
{
	char key[8] = "";
	enum action action = st->view == VIEW_BRANCHES ? ACT_VIEW_BRANCHES
			     : st->view == VIEW_MEMORY ? ACT_VIEW_MEMORY
						       : ACT_NONE;

	if (st->view <= VIEW_HELP)
		return TEXT("");
	if (action != ACT_NONE)
		key_name_of(key, user_keys_first(st->user_keys, CTX_LIST, action));
	return text_format(buf, size, "%s[%s%s%s]", form.apart ? "" : " ", key, *key ? ":" : "",
			   view_of(st->view)->title.str);
}

static unsigned int tabs_width(const struct ui_state *st, struct tabs_form form)
{
	unsigned int width = 0;
	char buf[64];

	for (int i = 0; i < VIEW_HELP; i++)
		width += tab_text(st, (enum view_id)i, form, buf, sizeof(buf)).width + form.apart;
	return width + other_text(st, form, buf, sizeof(buf)).width;
}

/* Choose the form that fits into @cols; the last names are dropped first. */
static struct tabs_form tabs_fit(const struct ui_state *st, unsigned int cols)
{
	struct tabs_form form = { true, VIEW_HELP };

	if (tabs_width(st, form) <= cols)
		return form;
	form.apart = false;
	while (form.named && tabs_width(st, form) > cols)
		form.named--;
	return form;
}

static void header_tabs(struct ui_state *st, struct canvas *c, unsigned int row)
{
	char text[MATCH_MAX * 2 + 128], clean[sizeof(text)], buf[64];
	struct safe_text out =
		ui_state_clean(clean, sizeof(clean), left_out(st, text, sizeof(text)).str);
	struct tabs_form form = tabs_fit(st, c->cols - MIN(out.width + 2u, c->cols));
	struct pen pen = { c, row, 1, c->cols };

	for (int i = 0; i < VIEW_HELP; i++) {
		unsigned int col = pen.col;
		bool here = i == (int)st->view;

		pen_text(&pen, 0, tab_text(st, (enum view_id)i, form, buf, sizeof(buf)),
			 here ? ROLE_TITLE : ROLE_NORMAL);
		ui_state_zone(st,
			      &(struct zone){ (uint16_t)row, (uint16_t)col, 1,
					      (uint16_t)(pen.col - col), ZONE_VIEW, (uint32_t)i });
		pen.col += form.apart;
	}
	pen_text(&pen, 0, other_text(st, form, buf, sizeof(buf)), ROLE_VALUE);
	if (out.size && pen.col + 1 < c->cols)
		canvas_elide(c, row, pen.col, c->cols - pen.col, out,
			     (struct style){ ROLE_WARN, 0 });
}

#define DETAILS_MAX 3  /* CPUs named in a line */
#define WIDE_TITLE  60 /* cells, for more than the last crumb */
#define HOST_COLS   24u
#define BOTH_LEAST  24 /* lines of a screen with lines of CPUs, or the process, and of the strip */
#define WELL	    0.95 /* from this share of names or whole stacks on nothing is wrong */

/* Return the profile of the figures: of the moment in the past, else the newest. */
static const struct profile *source(const struct ui_state *st)
{
	return st->rewind.on && st->shown ? st->shown : st->latest;
}

static bool is_past(const struct ui_state *st)
{
	return source(st)->past_end_ns > 0;
}

static struct safe_text window_text(const struct ui_state *st, char *buf, size_t size)
{
	char span[FORMAT_MAX];
	const struct profile *p = st->shown;

	if (p && p->window == PROFILE_DECAY)
		return TEXT("decay");
	if (p && p->window == PROFILE_TOTAL)
		return TEXT("total");
	/* Of a recording all samples, but while one of a pipe grows. */
	if (ui_state_whole(st))
		return TEXT("all");
	return text_format(buf, size, "last %s", format_span(span, st->set.window_ns).str);
}

/* Write the length of the shown range of the past. */
static struct safe_text range_text(const struct ui_state *st, char *buf, size_t size)
{
	char span[FORMAT_MAX];

	if (!st->shown || !st->shown->past_end_ns)
		return TEXT("reading");
	return text_format(buf, size, "for %s", format_span(span, st->shown->window_ns).str);
}

/* The rows are old, whether or not there are samples after them. */
static struct safe_text frozen_text(const struct profile *p)
{
	return p->target_gone ? TEXT("FROZEN ENDED")
	       : !p->sampling ? TEXT("FROZEN STOPPED")
			      : TEXT("FROZEN");
}

/* Write the size of the recording that is written, and how it grows; "": there is none. */
static struct safe_text record_text(const struct ui_state *st, char *buf, size_t size)
{
	const struct profile *p = st->latest;
	char bytes[FORMAT_MAX], more[FORMAT_MAX];

	if (!p || !p->recording.on)
		return TEXT("");
	return text_format(buf, size, "rec %s%s +%s/s",
			   format_memory(bytes, p->recording.bytes >> 10).str,
			   p->recording.failed ? "!" : "",
			   format_memory(more, st->recorded_kb).str);
}

/* Return how long the next profile is overdue on a machine that is too busy; 0: it is not. */
static uint64_t overdue_ns(const struct ui_state *st)
{
	const struct profile *p = st->latest;
	uint64_t age_ns = st->now_ns - MIN(st->taken_ns, st->now_ns);
	bool live = p && p->sampling && !p->target_gone && !st->config->replayed;

	return live && age_ns > MAX(3 * st->set.tick_ns, LATE_NS) ? age_ns : 0;
}

/* Draw the right end in @cols: state, window, tick, running time; as much as fits. Return its first
 * column. */
static unsigned int draw_badge(const struct ui_state *st, struct canvas *c, unsigned int cols)
{
	const struct profile *p = st->latest;
	bool stopped = p && !p->sampling;
	char late[FORMAT_MAX + 8], span[FORMAT_MAX];
	uint64_t late_ns = overdue_ns(st);
	enum theme_role role = st->rewind.on			  ? ROLE_ALARM
			       : st->frozen || stopped || late_ns ? ROLE_WARN
								  : ROLE_OK;
	struct safe_text word = !p		       ? TEXT("START")
				: st->rewind.on	       ? TEXT("REWIND")
				: st->frozen	       ? frozen_text(p)
				: p->target_gone       ? TEXT("ENDED")
				: st->config->replayed ? TEXT("REPLAY")
				: stopped	       ? TEXT("STOPPED")
				: late_ns	       ? text_format(late, sizeof(late), "LATE %s",
								     format_span(span, late_ns).str)
						       : TEXT("LIVE");
	char clock[FORMAT_MAX], run[64], tick[64], window[64], ago[64], at[32];
	uint64_t run_ns = p && p->target_gone ? st->gone_ns
			  : p		      ? MAX(p->running_ns, p->session_ns)
					      : 0;
	/* The window of the rows, the interval of ticks, the time since the start. */
	struct safe_text live[] = {
		window_text(st, window, sizeof(window)),
		text_format(tick, sizeof(tick), "every %s", format_span(span, st->set.tick_ns).str),
		text_format(run, sizeof(run), "run %s", format_clock(clock, run_ns).str),
	};
	struct safe_text past[] = {
		ui_state_clean(ago, sizeof(ago), header_strip_ago(st, (char[64]){ 0 }, 64)),
		range_text(st, window, sizeof(window)),
		/* Of --keep, the first is this time. */
		st->config->replayed ? TEXT("")
				     : ui_state_clean(at, sizeof(at),
						      header_strip_time(st, (char[32]){ 0 }, 32)),
	};
	const struct safe_text *parts = st->rewind.on ? past : live;
	char size[48];
	struct safe_text rec = record_text(st, size, sizeof(size));
	unsigned int width = 2 + word.width + (rec.width ? rec.width + 2u : 0), nr = 0;
	struct pen pen = { c, 0, 0, c->cols };

	while (nr < ARRAY_SIZE(live) && width + parts[nr].width + 2 < cols)
		width += parts[nr++].width + 2;
	pen.col = c->cols > width + 1 ? c->cols - width - 1 : 0;
	width = pen.col;
	pen_text(&pen, 0, st->glyphs->live, role);
	pen_text(&pen, 1, word, role);
	if (rec.width)
		pen_text(&pen, 2, rec, p->recording.failed ? ROLE_ALARM : ROLE_BAR_HOT);
	for (unsigned int i = 0; i < nr; i++)
		pen_text(&pen, 2, parts[i], ROLE_NORMAL);
	return width;
}

/* Name the scope of the rows, and of rows of all the process that is open and not shown. */
static struct safe_text scope_text(const struct ui_state *st, char *buf, size_t size)
{
	enum view_scope scope = view_scope(st);
	uint32_t at = scope == VIEW_ALL_THREADS ? ui_state_process(st, st->shown) : UINT32_MAX;
	char text[sizeof(st->scope.process_name) + 32] = "";

	if (at != UINT32_MAX)
		format_process(text, sizeof(text), st->shown->processes[at].comm,
			       st->shown->processes[at].pid);
	else if (scope != VIEW_ALL)
		snprintf(text, sizeof(text), "%s", st->scope.process_name);
	else if (st->scope.drilled)
		snprintf(text, sizeof(text), "(Esc closes %s)", st->scope.process_name);
	return ui_state_clean(buf, size, text);
}

/* Draw the names of program, host, target and process, up to @end. */
static void draw_crumbs(const struct ui_state *st, struct canvas *c,
			const struct safe_text crumbs[2], unsigned int end)
{
	const struct style name = { ROLE_TITLE, 0 }, dim = { ROLE_DIM, 0 };
	bool wide = c->cols >= WIDE_TITLE, drilled = view_scope(st) != VIEW_ALL;
	struct safe_text host = { st->host, (uint16_t)strlen(st->host),
				  (uint16_t)strlen(st->host) };
	unsigned int col = 1;

	if (wide)
		col += canvas_text(c, 0, col, end - col, TEXT("proftop "),
				   (struct style){ ROLE_VALUE, 0 });
	if (wide && host.size)
		col += canvas_elide(c, 0, col, MIN(end - col, HOST_COLS), host, name) + 1;
	/* A narrow screen shows the last crumb only. */
	if ((wide || !drilled) && col < end)
		col += canvas_elide(c, 0, col, end - col, crumbs[0], name) + 1;
	if (wide && drilled && col < end) {
		canvas_text(c, 0, col, end - col, st->glyphs->crumb, dim);
		col += 2;
	}
	/* Dim: a process is open, but these rows are of all. */
	if (crumbs[1].size && (drilled || wide) && col < end)
		canvas_elide(c, 0, col, end - col, crumbs[1], drilled ? name : dim);
}

static void draw_title(const struct ui_state *st, struct canvas *c)
{
	char buf[192], inner[192];
	bool help = view_shown(st)->context == CTX_HELP;
	struct safe_text crumbs[2] = {
		ui_state_clean(buf, sizeof(buf),
			       help	    ? "help"
			       : st->latest ? st->latest->target
					    : "starting"),
		help ? TEXT("") : scope_text(st, inner, sizeof(inner)),
	};
	bool wide = c->cols >= WIDE_TITLE;
	unsigned int before = wide ? 9 + MIN((unsigned int)strlen(st->host), HOST_COLS) : 0;
	unsigned int crumbs_cols = before + crumbs[!wide && crumbs[1].size].width + 3u, end;

	if (wide && crumbs[1].size)
		crumbs_cols += crumbs[1].width + 3u;
	end = draw_badge(st, c, MAX(c->cols - MIN(c->cols, crumbs_cols), c->cols / 3));
	/* The process is of more use than the folder of the recording. */
	if (crumbs_cols > end && st->latest && !help)
		crumbs[0] = ui_state_target(st->latest, buf, sizeof(buf));
	if (end >= 4)
		draw_crumbs(st, c, crumbs, end - 2);
}

/* Draw the wanted and the actual rate of the shown event. */
static void draw_rate(const struct ui_state *st, struct pen *pen, const struct profile_event *ev,
		      bool brief)
{
	const struct profile *p = source(st);
	/* The governor holds it down for as long as it lacks CPU. */
	bool lowered = p->rate_factor > 0 && p->rate_factor < 1 && !p->rate_climbs;
	char want[FORMAT_MAX], got[FORMAT_MAX], whole[FORMAT_MAX], buf[96];
	double hz = is_past(st) ? ev->want_hz : ui_state_want_hz(st);
	bool rated = event_rate_is_frequency(ev);
	bool behind = ev->enabled && rated && ev->got_hz < ev->want_hz * 0.95;
	struct safe_text value;

	/* Every switch is timed. */
	if (ev->event.wait || (is_past(st) && !ev->want_hz))
		return;
	format_count(got, ev->got_hz);
	if (!ev->want_hz)
		value = TEXT("fixed period");
	else if (hz != ev->want_hz)
		value = text_format(buf, sizeof(buf), "%s Hz requested",
				    format_count(want, hz).str);
	else if (!rated || is_past(st) || isnan(ev->got_hz))
		value = text_format(buf, sizeof(buf), "%s Hz%s", format_count(want, hz).str,
				    source(st)->past_rates_differ ? ", changed" : "");
	else
		value = text_format(buf, sizeof(buf), "%s%s%s Hz, got %s%s",
				    format_count(want, hz).str, lowered ? " of " : "",
				    lowered ? format_count(whole, hz / p->rate_factor).str : "",
				    got, behind ? "!" : "");
	if (brief)
		pen_text(pen, 2, value, behind ? ROLE_WARN : ROLE_VALUE);
	else
		pen_value(pen, 3, TEXT("Freq"), value, behind ? ROLE_WARN : ROLE_VALUE);
}

/* Test whether the banner says no more than that the event is cpu-clock: a word is enough for that.
 */
static bool banner_is_word(const struct profile *p)
{
	return !strncmp(p->banner, PROFILE_NO_CYCLES, sizeof(PROFILE_NO_CYCLES) - 1);
}

/* Draw the name of the event; why it is not cycles, in a word; and its number. */
static void draw_event(const struct ui_state *st, struct pen *pen, bool brief)
{
	const struct profile *p = source(st);
	uint32_t index = ui_state_event(st, p);
	char buf[48], name[EVENT_NAME_MAX * 2], filter[TEXT_MAX];
	struct safe_text text = ui_state_clean(name, sizeof(name), p->events[index].event.name);

	if (ui_state_also(st, p))
		text = text_format(name, sizeof(name), "%.40s + %s", p->events[index].event.name,
				   EVENT_WAITS);
	if (ui_state_latency(st, p))
		text = text_format(name, sizeof(name), "%.40s, latency",
				   p->events[index].event.name);
	if (brief)
		pen_text(pen, 0, text, ROLE_VALUE);
	else
		pen_value(pen, 0, TEXT("Event"), text, ROLE_VALUE);
	if (p->events[index].event.filter[0]) {
		snprintf(name, sizeof(name), "if %.40s", p->events[index].event.filter);
		pen_text(pen, 1, ui_state_clean(filter, sizeof(filter), name), ROLE_DIM);
	}
	if (p->nr_events > 1)
		pen_text(pen, 1,
			 text_format(buf, sizeof(buf), "%u of %u (E)", index + 1, p->nr_events),
			 ROLE_DIM);
	/* The banner is about the event in the place of cycles. */
	if (banner_is_word(p) && p->events[index].event.clock)
		pen_text(pen, 1,
			 strstr(p->banner, PROFILE_NO_PMU) ? TEXT("(no PMU)")
							   : TEXT("(instead of cycles)"),
			 ROLE_DIM);
}

/* Draw the ratios of the tick's events that fit: "IPC 1.23". */
static void draw_ratios(const struct ui_state *st, struct pen *pen, unsigned int gap)
{
	const struct profile *p = source(st);
	struct ratio_use uses[RATIOS_MAX];
	uint32_t nr = ratios_find(p->events, p->nr_events, uses);
	char buf[FORMAT_MAX], title[TEXT_MAX];

	for (uint32_t i = 0; i < nr; i++)
		pen_value(pen, i ? 2 : gap,
			  ui_state_clean(title, sizeof(title), uses[i].ratio->title),
			  format_ratio(buf, ratios_of_tick(p, &uses[i]), uses[i].ratio->digits),
			  ROLE_VALUE);
}

/* Draw our CPU and memory; and the CPU that is neither sampling nor the screen, where that is most,
 * as after the start. */
static void draw_own(const struct profile *p, struct pen *pen)
{
	const struct profile_self *self = &p->self;
	double rest = self->cpu_pct - self->samplers_pct - self->builder_pct - self->ui_pct;
	char buf[160], number[FORMAT_MAX];

	pen_value(pen, 3, TEXT("Own"),
		  text_format(buf, sizeof(buf), "%.1f%% CPU %s", self->cpu_pct,
			      format_memory(number, self->rss_kb).str),
		  ROLE_VALUE);
	/* The parts are known from the second tick on. */
	if (self->samplers_pct > 0 && rest >= 5 && rest > self->cpu_pct / 2)
		pen_text(pen, 1,
			 text_format(buf, sizeof(buf), "(%.1f%% to read symbols and scripts)",
				     rest),
			 ROLE_DIM);
}

static void draw_event_line(const struct ui_state *st, struct canvas *c, unsigned int row,
			    bool total)
{
	const struct profile *p = source(st);
	struct pen pen = { c, row, 1, c->cols };
	const struct profile_event *ev;
	char buf[160], number[FORMAT_MAX];

	if (!p->nr_events)
		return;
	ev = &p->events[ui_state_event(st, p)];
	draw_event(st, &pen, false);
	if (ev->error[0]) {
		pen_text(&pen, 2, TEXT("!"), ROLE_WARN);
		canvas_elide(c, row, pen.col + 1, c->cols - MIN(pen.col + 1, c->cols),
			     ui_state_clean(buf, sizeof(buf), ev->error),
			     (struct style){ ROLE_WARN, 0 });
		return;
	}
	draw_rate(st, &pen, ev, false);
	if (total)
		times_draw_total(st, &pen, 3);
	draw_ratios(st, &pen, 3);
	/* Reading a recording costs other than sampling: not shown. */
	if (!st->config->replayed && !is_past(st))
		draw_own(p, &pen);
	pen_value(&pen, 3, TEXT("Samples"),
		  text_format(buf, sizeof(buf), "%s/s", format_count(number, p->samples_per_s).str),
		  ROLE_VALUE);
}

/* Lost or throttled samples, as the header shows them. */
struct trouble {
	struct safe_text label;
	uint64_t now, recent, ever;
	bool throttled;
};

static uint64_t trouble_of(const struct profile_cpu *cpu, bool throttled)
{
	return throttled ? cpu->throttled : cpu->lost;
}

static void add_up(const struct ui_state *st, struct trouble *t)
{
	const struct profile *p = source(st);

	if (!p->nr_cpus) {
		t->ever = t->throttled ? p->throttled : p->account.lost;
		t->now = is_past(st) ? t->ever : 0;
		return;
	}
	for (uint32_t i = 0; i < p->nr_cpus; i++) {
		t->now += trouble_of(&p->cpus[i], t->throttled);
		t->ever += t->throttled ? p->cpus[i].throttled_total : p->cpus[i].lost_total;
	}
	for (uint32_t i = 0; i < st->nr_alarms; i++)
		if (st->now_ns < st->alarms[i].until_ns)
			t->recent += t->throttled ? st->alarms[i].throttled : st->alarms[i].lost;
}

/* Draw the CPUs concerned: "cpu1 37", "cpu1 2x 41ms". */
static void draw_details(const struct ui_state *st, struct pen *pen, const struct trouble *t)
{
	const struct profile *p = source(st);
	unsigned int nr = 0;
	char buf[96], count[FORMAT_MAX], span[FORMAT_MAX];

	for (uint32_t i = 0; i < p->nr_cpus; i++) {
		const struct profile_cpu *cpu = &p->cpus[i];
		uint64_t n = trouble_of(cpu, t->throttled);

		if (!n)
			continue;
		if (++nr > DETAILS_MAX) {
			pen_text(pen, 1, st->glyphs->more, ROLE_WARN);
			return;
		}
		format_count(count, (double)n);
		if (t->throttled && cpu->throttled_ns)
			text_format(buf, sizeof(buf), "cpu%d %sx %s", cpu->cpu, count,
				    format_span(span, cpu->throttled_ns).str);
		else
			text_format(buf, sizeof(buf), "cpu%d %s", cpu->cpu, count);
		pen_text(pen, 1, ui_state_clean((char[96]){ 0 }, 96, buf), ROLE_WARN);
	}
}

/* Draw it as a warning while it happens and for some seconds; the total always. */
static void draw_trouble(const struct ui_state *st, struct pen *pen, unsigned int gap,
			 struct trouble *t, bool brief)
{
	char buf[96], a[FORMAT_MAX];
	struct safe_text value;

	add_up(st, t);
	if (t->now) {
		value = text_format(buf, sizeof(buf), " %s %s! ", t->label.str,
				    format_count(a, (double)t->now).str);
		pen_text(pen, gap ? gap - 1 : 0, value, ROLE_ALARM);
		draw_details(st, pen, t);
	} else if (t->recent) {
		value = text_format(buf, sizeof(buf), "0 (%s!)",
				    format_count(a, (double)t->recent).str);
		pen_value(pen, gap, t->label, value, ROLE_WARN);
	} else if (t->ever && !brief) {
		value = text_format(buf, sizeof(buf), "0 (%s in all)",
				    format_count(a, (double)t->ever).str);
		pen_value(pen, gap, t->label, value, ROLE_DIM);
	} else {
		pen_value(pen, gap, t->label, TEXT("0"), ROLE_OK);
	}
}

/* Draw the share of samples with a symbol: of the rows, not of all processes. */
static void draw_symbols(const struct ui_state *st, struct pen *pen, unsigned int gap)
{
	const struct profile *p = source(st);
	bool of_all = view_is_whole(st);
	/* The fold is of the process that is open, if any. */
	bool folded = view_scope(st) == VIEW_DRILLED || (!of_all && !st->scope.drilled);
	const struct fold_functions *fold = folded ? folds_functions(st) : NULL;
	double all = of_all ? p->window_samples : fold ? fold->count : 0;
	double named = of_all ? all - p->window_unnamed - p->window_no_stack : 0;
	char buf[FORMAT_MAX];

	for (uint32_t i = 0; fold && i < fold->nr_rows; i++) {
		const struct profile_function *f = &st->shown->functions[fold->rows[i].function];

		/* Objects that are still loading may give names. */
		if (!f->unnamed ||
		    (f->module_index < st->shown->nr_modules &&
		     st->shown->modules[f->module_index].state == PROFILE_MODULE_LOADING))
			named += fold->rows[i].self;
	}
	if (all > 0)
		pen_value(pen, gap, TEXT("Symbols"), format_share(buf, named / all),
			  named >= WELL * all ? ROLE_OK : ROLE_WARN);
}

/* Draw the share of the time asleep of which the callers are not known; from a fifth on, the key
 * for the stacks of now. */
static void draw_cut_waits(const struct ui_state *st, const struct profile *p, struct pen *pen)
{
	bool live = !st->config->replayed && !is_past(st);
	double share = p->waits.slept_ns ? (double)p->waits.cut_ns / (double)p->waits.slept_ns : 0;
	char buf[FORMAT_MAX], text[FORMAT_MAX + 16];

	if (share >= 0.005)
		pen_value(pen, 1, TEXT("waits cut"),
			  text_format(text, sizeof(text), "%s%s", format_share(buf, share).str,
				      live && share >= 0.2 ? " (^W: whole)" : ""),
			  share >= 0.02 ? ROLE_WARN : ROLE_VALUE);
}

/*
 * Outcomes of the user stacks, as shares of all samples of the tick: of all processes; once these
 * have ended, of all samples.
 */
static void draw_stacks(const struct ui_state *st, struct pen *pen, unsigned int gap)
{
	bool whole = source(st)->target_gone && source(st)->window == PROFILE_TOTAL;
	const struct profile_account *a = whole ? &source(st)->account_total : &source(st)->account;
	const struct {
		struct safe_text name;
		uint64_t n;
		double loud;	/* a warning from this share on */
		uint64_t quiet; /* of these no warning: the last ones before a change of events */
	} parts[] = {
		{ TEXT("dropped"), a->dropped, 0, source(st)->dropped_by[DROP_EVENT_GONE] },
		{ TEXT("lost"), a->lost, 0.02, 0 },
		{ TEXT("broken"), a->broken, 0.05, 0 },
		{ TEXT("guessed"), a->guessed, 0.25, 0 },
		{ TEXT("truncated"), a->truncated, 0.02, 0 },
		{ TEXT("pending"), a->pending, 0.5, 0 },
	};
	double taken = (double)a->taken;
	struct safe_text label = view_is_whole(st) ? TEXT("Stacks") : TEXT("All stacks");
	bool narrow = pen->end < 100;
	char buf[FORMAT_MAX];

	if (!a->taken || a->no_outcomes) {
		pen_value(pen, gap, label, TEXT("-"), ROLE_VALUE);
		draw_cut_waits(st, source(st), pen);
		return;
	}
	/* Not "100%" if one is not. */
	if (!pen_value(pen, gap, label,
		       a->complete < a->taken && (double)a->complete >= 0.995 * taken
			       ? TEXT(">99%")
			       : format_share(buf, (double)a->complete / taken),
		       (double)a->complete >= WELL * taken ? ROLE_OK : ROLE_VALUE))
		return;
	pen_text(pen, 1, TEXT("complete"), ROLE_DIM);
	draw_cut_waits(st, source(st), pen);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		double share = (double)parts[i].n / taken;
		bool loud = (double)(parts[i].n - MIN(parts[i].quiet, parts[i].n)) / taken >
			    parts[i].loud;

		/* On narrow screens the smallest are left to the CPU view. */
		if (!parts[i].n || (narrow && share < 0.005 && !loud))
			continue;
		/* Not "0%" if there is any. */
		pen_value(pen, 1, parts[i].name,
			  share < 0.005 ? TEXT("<1%") : format_share(buf, share),
			  loud ? ROLE_WARN : ROLE_VALUE);
	}
}

/* Draw the time of tasks in a run queue, and the pressure on the system, where there is any. */
static void draw_pressure(const struct ui_state *st, struct pen *pen, unsigned int gap)
{
	const struct profile *p = source(st);
	const struct {
		struct safe_text name;
		double share;
	} parts[] = { { TEXT("CPU pressure"), p->pressure.cpu },
		      { TEXT("I/O pressure"), p->pressure.io },
		      { TEXT("Memory pressure"), p->pressure.memory } };
	char buf[FORMAT_MAX], text[64];

	if (p->waits.queue_ns && p->interval_ns)
		pen_value(pen, gap, TEXT("Run queue"),
			  text_format(text, sizeof(text), "%s task-s/s",
				      format_tasks(buf, (double)p->waits.queue_ns /
								(double)p->interval_ns)
					      .str),
			  ROLE_VALUE);
	for (size_t i = 0; i < ARRAY_SIZE(parts) && !st->config->replayed; i++)
		if (parts[i].share >= 0.005)
			pen_value(pen, gap, parts[i].name, format_share(buf, parts[i].share),
				  ROLE_VALUE);
}

static void draw_health_line(const struct ui_state *st, struct canvas *c, unsigned int row,
			     bool brief)
{
	const struct profile *p = source(st);
	struct pen pen = { c, row, 1, c->cols };
	struct trouble lost = { .label = TEXT("Lost") };
	struct trouble throttled = { .label = TEXT("Throttled"), .throttled = true };
	unsigned int gap = c->cols < 100 ? 2 : 3;

	if (brief && times_draw_total(st, &pen, 0)) {
		draw_trouble(st, &pen, gap, &lost, brief);
		draw_trouble(st, &pen, gap, &throttled, brief);
		return;
	}
	draw_trouble(st, &pen, 0, &lost, brief);
	draw_trouble(st, &pen, gap, &throttled, brief);
	if (brief && p->nr_events) {
		draw_rate(st, &pen, &p->events[ui_state_event(st, p)], true);
		return;
	}
	draw_symbols(st, &pen, gap);
	draw_stacks(st, &pen, gap);
	draw_pressure(st, &pen, gap);
}

/* Draw event and health in one line, the most important first: the end may not fit. */
static void draw_status_line(const struct ui_state *st, struct canvas *c, unsigned int row,
			     bool total)
{
	const struct profile *p = source(st);
	struct pen pen = { c, row, 1, c->cols };
	struct trouble lost = { .label = TEXT("Lost") };
	struct trouble throttled = { .label = TEXT("Throttled"), .throttled = true };

	draw_event(st, &pen, true);
	draw_rate(st, &pen, &p->events[ui_state_event(st, p)], true);
	if (total)
		times_draw_total(st, &pen, 2);
	draw_ratios(st, &pen, 2);
	draw_trouble(st, &pen, 2, &lost, true);
	add_up(st, &throttled);
	if (throttled.now || throttled.recent || c->cols >= 100) {
		throttled.now = throttled.recent = throttled.ever = 0;
		draw_trouble(st, &pen, 2, &throttled, true);
	}
	draw_symbols(st, &pen, 2);
	draw_stacks(st, &pen, 2);
}

/* Draw two lines on tall screens and if the event fails, else one. Return their number. @total:
 * the time of waits is in no other line. */
static unsigned int draw_status(const struct ui_state *st, struct canvas *c, unsigned int row,
				bool total)
{
	const struct profile *p = source(st);

	if (c->rows < HEADER_TALL && p->nr_events && !p->events[ui_state_event(st, p)].error[0]) {
		draw_status_line(st, c, row, total);
		return 1;
	}
	draw_event_line(st, c, row, total);
	draw_health_line(st, c, row + 1, false);
	return 2;
}

/* Draw the CPUs now; of the past, which has no figures of single CPUs, the sums in their place. */
static unsigned int header_draw_cpus(const struct ui_state *st, struct canvas *c, unsigned int row)
{
	if (!st->rewind.on)
		return header_cpus(st, c, row);
	header_process_sums(st, c, row);
	return header_cpus_rows(st, c);
}

unsigned int header_draw(struct ui_state *st, struct canvas *c)
{
	const struct profile *p = source(st);
	unsigned int row = 1, alone;
	bool strip = header_strip_is_on(st), only_strip;
	char buf[sizeof(p->banner) * 2];

	draw_title(st, c);
	if (!p || view_shown(st)->context == CTX_HELP)
		return row;
	if (st->hide_header || c->rows < 10) {
		if (strip && st->rewind.on)
			header_strip(st, c, row++, false);
		else
			draw_health_line(st, c, row++, true);
		return row;
	}
	/* On low screens the strip takes the line of the CPUs, or of the process. */
	only_strip = strip && c->rows < BOTH_LEAST;
	alone = c->rows >= 14 && !only_strip ? header_process(st, c, row) : 0;
	row += alone;
	if (c->rows >= 14 && !alone && !only_strip && !st->config->replayed)
		row += header_draw_cpus(st, c, row);
	if (strip)
		row += header_strip(st, c, row,
				    only_strip && !st->config->replayed && !st->rewind.on);
	row += draw_status(st, c, row, !alone);
	if (p->banner[0] && !banner_is_word(p) && c->rows >= 14) {
		canvas_text(c, row, 1, 1, TEXT("!"), (struct style){ ROLE_WARN, 0 });
		canvas_elide(c, row++, 3, c->cols - 3, ui_state_clean(buf, sizeof(buf), p->banner),
			     (struct style){ ROLE_WARN, 0 });
	}
	if (c->rows >= 12)
		header_tabs(st, c, row++);
	return row;
}
