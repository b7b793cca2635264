// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The top of the screen. The main thread; reads the state, adds mouse zones.
 */
#include "ui/view/header.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sampler/profile/ratios.h"
#include "ui/draw/pen.h"
#include "ui/text/event_rate.h"
#include "ui/text/format.h"
#include "ui/fold/fold.h"
#include "ui/view/header_cpus.h"
#include "ui/view/header_process.h"
#include "ui/view/header_strip.h"
#include "ui/view/header_tabs.h"
#include "ui/view/times.h"
#include "ui/view/view.h"

#define DETAILS_MAX 3  /* CPUs named in a line */
#define WIDE_TITLE  60 /* cells, for more than the last crumb */
#define HOST_COLS   24u

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
	return text_format(buf, size, "last %s", format_span(span, st->config->window_ns).str);
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

/* Draw the right end in @cols: state, window, tick, running time; as much as fits. Return its first
 * column. */
static unsigned int draw_badge(const struct ui_state *st, struct canvas *c, unsigned int cols)
{
	const struct profile *p = st->latest;
	bool stopped = p && !p->sampling;
	enum theme_role role = st->rewind.on	       ? ROLE_ALARM
			       : st->frozen || stopped ? ROLE_WARN
						       : ROLE_OK;
	struct safe_text word = !p		       ? TEXT("START")
				: st->rewind.on	       ? TEXT("REWIND")
				: st->frozen	       ? frozen_text(p)
				: p->target_gone       ? TEXT("ENDED")
				: st->config->replayed ? TEXT("REPLAY")
				: stopped	       ? TEXT("STOPPED")
						       : TEXT("LIVE");
	char clock[FORMAT_MAX], run[64], span[FORMAT_MAX], tick[64], window[64], ago[64], at[32];
	/* The window of the rows, the interval of ticks, the time since the start. */
	struct safe_text live[] = {
		window_text(st, window, sizeof(window)),
		text_format(tick, sizeof(tick), "every %s", format_span(span, st->tick_ns).str),
		text_format(run, sizeof(run), "run %s",
			    format_clock(clock, p ? MAX(p->running_ns, p->session_ns) : 0).str),
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
	unsigned int width = 2 + word.width, nr = 0;
	struct pen pen = { c, 0, 0, c->cols };

	while (nr < ARRAY_SIZE(live) && width + parts[nr].width + 2 < cols)
		width += parts[nr++].width + 2;
	pen.col = c->cols > width + 1 ? c->cols - width - 1 : 0;
	width = pen.col;
	pen_text(&pen, 0, st->glyphs->live, role);
	pen_text(&pen, 1, word, role);
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
	char want[FORMAT_MAX], got[FORMAT_MAX], buf[96];
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
		value = text_format(buf, sizeof(buf), "%s Hz, got %s%s", format_count(want, hz).str,
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
	char buf[48], name[EVENT_NAME_MAX * 2];
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
		pen_value(pen, gap, t->label, TEXT("0"), ROLE_VALUE);
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
		pen_value(pen, gap, TEXT("Symbols"), format_share(buf, named / all), ROLE_VALUE);
}

/* Draw the share of the time asleep of which the callers are not known. */
static void draw_cut_waits(const struct profile *p, struct pen *pen)
{
	double share = p->waits.slept_ns ? (double)p->waits.cut_ns / (double)p->waits.slept_ns : 0;
	char buf[FORMAT_MAX];

	if (share >= 0.005)
		pen_value(pen, 1, TEXT("waits cut"), format_share(buf, share),
			  share >= 0.02 ? ROLE_WARN : ROLE_VALUE);
}

/* Outcomes of the user stacks, as shares of all samples of the tick: of all processes. */
static void draw_stacks(const struct ui_state *st, struct pen *pen, unsigned int gap)
{
	const struct profile_account *a = &source(st)->account;
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
		draw_cut_waits(source(st), pen);
		return;
	}
	if (!pen_value(pen, gap, label, format_share(buf, (double)a->complete / taken), ROLE_VALUE))
		return;
	pen_text(pen, 1, TEXT("complete"), ROLE_DIM);
	draw_cut_waits(source(st), pen);
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
static unsigned int draw_cpus(const struct ui_state *st, struct canvas *c, unsigned int row)
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
	only_strip = strip && c->rows < HEADER_TALL;
	alone = c->rows >= 14 && !only_strip ? header_process(st, c, row) : 0;
	row += alone;
	if (c->rows >= 14 && !alone && !only_strip && !st->config->replayed)
		row += draw_cpus(st, c, row);
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
