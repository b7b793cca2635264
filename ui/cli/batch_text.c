// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Print a tick as text: a header, then one table per event. No escape sequences, numbers in the C
 * locale, an empty line between ticks. Full names; on a terminal a row is one line, and its names
 * are cut.
 *
 * Runs on: the main thread.
 */
#include "ui/cli/internal.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "ui/cli/cli.h"
#include "ui/text/text.h"

#define SYMBOL_COLS_MAX 60
#define MODULE_COLS_MAX 24

/* Print a string of the profile that contains foreign text, sanitised. */
static void print_clean(FILE *out, const char *before, const char *text)
{
	char clean[512];

	fprintf(out, "%s%s", before, text_format(clean, sizeof(clean), "%s", text).str);
}

static void print_title(FILE *out, const struct profile *p)
{
	time_t seconds = (time_t)(p->time_ns / 1000000000U);
	struct tm tm = { 0 };
	char when[32] = "";

	if (p->time_ns && gmtime_r(&seconds, &tm))
		strftime(when, sizeof(when), "  %Y-%m-%dT%H:%M:%SZ", &tm);
	fprintf(out, "proftop %s%s", PROFTOP_VERSION, when);
	print_clean(out, "  ", p->target);
	fprintf(out, "  tick %.3f s%s%s\n", (double)p->interval_ns / 1e9,
		p->sampling ? "" : "  sampling stopped", p->target_gone ? "  target gone" : "");
}

/* Print the scope and span of an export's rows; its account is of the tick. */
static void print_export(FILE *out, const struct batch_tick *tick)
{
	if (tick->only) {
		print_clean(out, "only    ", tick->only);
		fputc('\n', out);
	}
	if (tick->range)
		fprintf(out, "span    %s%s%.1f s\n", tick->range, *tick->range ? ", " : "",
			(double)tick->profile->window_ns / 1e9);
}

static void print_event(FILE *out, const struct profile *p, uint32_t index)
{
	const struct profile_event *ev = &p->events[index];
	double per_s = event_rate_per_s(p, index);

	assert(index < p->nr_events);
	print_clean(out, "event   ", ev->event.name);
	if (ev->event.counted)
		fputs("  counted with the samples of its group", out);
	else if (ev->want_hz > 0)
		fprintf(out, "  wanted %.0f Hz", ev->want_hz);
	else
		fputs("  fixed period", out);
	if (event_rate_is_frequency(ev) && !isnan(ev->got_hz) && !ev->event.counted)
		fprintf(out, "  got %.1f Hz", ev->got_hz);
	else if (!event_rate_is_frequency(ev) && !isnan(per_s) && !ev->event.counted)
		fprintf(out, "  %.1f samples/s", per_s);
	if (ev->error[0])
		print_clean(out, "  ! ", ev->error);
	fputc('\n', out);
}

/* Print the ratios of the tick's events, by their counters: "metrics IPC 1.23". */
static void print_ratios(FILE *out, const struct batch_tick *tick)
{
	char buf[FORMAT_MAX];

	for (uint32_t i = 0; i < tick->nr_ratios; i++)
		fprintf(out, "%s%s %s", i ? "  " : "metrics ", tick->ratios[i].ratio->title,
			format_ratio(buf, ratios_of_tick(tick->profile, &tick->ratios[i]),
				     tick->ratios[i].ratio->digits)
				.str);
	if (tick->nr_ratios)
		fputc('\n', out);
}

/* Print the non-zero reasons. */
static void print_reasons(FILE *out, const struct profile *p)
{
	for (uint32_t i = 0; i < PROFILE_NR_BROKEN; i++) {
		const char *key = batch_broken_key(i);

		if (p->broken_by[i])
			fprintf(out, "! broken  %" PRIu64 " %s\n", p->broken_by[i],
				key ? key : "other");
	}
	for (int i = 0; i < DROP_NR; i++)
		if (p->dropped_by[i])
			fprintf(out, "! dropped %" PRIu64 " %s\n", p->dropped_by[i],
				profile_drop_name((enum profile_drop)i));
	if (p->nr_nameless)
		fprintf(out, "! unknown %" PRIu64 " task table full\n", p->nr_nameless);
}

static void print_account(FILE *out, const struct profile *p)
{
	const struct profile_account *a = &p->account;

	if (a->no_outcomes) {
		fprintf(out,
			"samples %" PRIu64 " + lost %" PRIu64 ", complete or not is not kept\n",
			a->complete, a->lost);
		return;
	}
	fprintf(out,
		"samples %" PRIu64 " = complete %" PRIu64 " + guessed %" PRIu64
		" + truncated %" PRIu64 " + broken %" PRIu64 " + pending %" PRIu64
		" + dropped %" PRIu64 " + lost %" PRIu64 "\n",
		a->taken, a->complete, a->guessed, a->truncated, a->broken, a->pending, a->dropped,
		a->lost);
	print_reasons(out, p);
	if (p->waits.cut_ns)
		fprintf(out, "! waits   callers unknown in %.2f s of %.2f s asleep\n",
			(double)p->waits.cut_ns / 1e9, (double)p->waits.slept_ns / 1e9);
}

/* Print the CPU time of the target, and of the busiest process. */
static void print_cpu_time(FILE *out, const struct profile *p)
{
	const struct fold_filter all = { .process = UINT32_MAX, .task = UINT32_MAX };
	double *ns = calloc(p->nr_processes + 1ULL, sizeof(*ns)), sum;
	uint32_t most = 0;

	if (!p->cpu_known || !p->window_ns || !ns) {
		free(ns);
		return;
	}
	sum = fold_cpu(p, &all, ns);
	for (uint32_t i = 1; i < p->nr_processes; i++)
		if (ns[i] > ns[most])
			most = i;
	fprintf(out, "cpu     %.1f%% of one CPU", sum * 100 / (double)p->window_ns);
	if (ns[most] > 0) {
		fprintf(out, "  most %.1f%% ", ns[most] * 100 / (double)p->window_ns);
		print_clean(out, "", p->processes[most].comm.str);
		fprintf(out, " pid %d", (int)p->processes[most].pid);
	}
	fputc('\n', out);
	free(ns);
}

/* Print one line for all CPUs, and one for each with lost samples or throttling. */
static void print_cpus(FILE *out, const struct profile *p)
{
	double busy = 0;
	uint32_t nr = 0;

	for (uint32_t i = 0; i < p->nr_cpus; i++) {
		busy += p->cpus[i].busy;
		nr += p->cpus[i].online;
	}
	if (!p->nr_cpus) {
		fprintf(out, "own     %.1f%% of one CPU, %" PRIu64 " KiB\n", p->self.cpu_pct,
			p->self.rss_kb);
		return;
	}
	/* A recording has no idle time. */
	if (isnan(busy))
		fprintf(out, "cpus    %" PRIu32 " recorded", nr);
	else
		fprintf(out, "cpus    %" PRIu32 " online  busy %.0f%%", nr,
			nr ? 100 * busy / nr : 0);
	fprintf(out, "  own cost %.1f%% of one CPU, %" PRIu64 " KiB\n", p->self.cpu_pct,
		p->self.rss_kb);
	for (uint32_t i = 0; i < p->nr_cpus; i++) {
		const struct profile_cpu *c = &p->cpus[i];

		if (!c->online)
			fprintf(out, "! cpu %d  offline\n", c->cpu);
		else if (c->lost || c->throttled || c->throttled_ns)
			fprintf(out,
				"! cpu %d  samples %" PRIu64 "  lost %" PRIu64 "  throttled "
				"%" PRIu64 " times, "
				"%.1f "
				"ms\n",
				c->cpu, c->samples, c->lost, c->throttled,
				(double)c->throttled_ns / 1e6);
	}
}

static void print_padded(FILE *out, struct safe_text t, unsigned int cols)
{
	fprintf(out, "%s%*s", t.str, t.width < cols ? (int)(cols - t.width) : 0, "");
}

/* Print a name in a column of @cols; if it is longer, cut with @more at its end, "": never. */
static void print_name(FILE *out, struct safe_text t, unsigned int cols, const char *more)
{
	unsigned int width;
	size_t size;

	if (!*more || t.width <= cols) {
		print_padded(out, t, cols);
		return;
	}
	size = text_clip(t, cols - 1, &width);
	fprintf(out, "%.*s%s%*s", (int)size, t.str, more, (int)(cols - 1 - width), "");
}

/* "cart.py:12" */
static struct safe_text line_text(const struct profile *p, const struct profile_line *line,
				  char *buf, size_t size)
{
	const char *path = line ? p->files[line->file].str : "", *slash = strrchr(path, '/');

	return line ? text_format(buf, size, "%s:%u", slash ? slash + 1 : path, line->line)
		    : TEXT("");
}

/* The widths of the columns; line: 0 if no row has one. @cut: a row is a line of the terminal. */
struct widths {
	unsigned int symbol, module, line, comm;
	bool cut;
};

/* Take at most *@over of @width, down to @least. */
static void narrow(unsigned int *width, unsigned int least, unsigned int *over)
{
	unsigned int by = *width > least ? MIN(*width - least, *over) : 0;

	*width -= by;
	*over -= by;
}

/* Make a row @cols wide: without lines, then with names cut, of functions last. */
static void fit(struct widths *w, unsigned int nr_ratios, unsigned int cols)
{
	/* " SELF% TOTAL% SAMPLES RATIOS K " and the spaces before MODULE and COMM. */
	unsigned int used = 32 + 9 * nr_ratios + w->symbol + w->module + w->comm, over;

	w->cut = true;
	if (w->line && used + 2 + w->line > cols)
		w->line = 0;
	over = used > cols ? used - cols : 0;
	narrow(&w->module, 12, &over);
	narrow(&w->comm, 10, &over);
	narrow(&w->symbol, 20, &over);
	narrow(&w->module, 6, &over);
	narrow(&w->comm, 4, &over);
	narrow(&w->symbol, 6, &over);
}

static struct widths widths_of(const struct batch_tick *tick, const struct batch_table *t)
{
	struct widths w = { 6, 6, 0, 4, false };

	for (uint32_t i = 0; i < t->nr_rows; i++) {
		const struct batch_row *row = &t->rows[i];
		char buf[TEXT_MAX];

		w.symbol = MAX(w.symbol, row->function->name.width);
		w.module = MAX(w.module, row->function->module.width);
		w.line = MAX(w.line, line_text(tick->profile, row->line, buf, sizeof(buf)).width);
		w.comm = MAX(w.comm, row->comm.width);
	}
	w.line = MIN(w.line, MODULE_COLS_MAX);
	if (tick->cols) {
		fit(&w, tick->nr_ratios, tick->cols);
		return w;
	}
	w.symbol = MIN(w.symbol, SYMBOL_COLS_MAX);
	w.module = MIN(w.module, MODULE_COLS_MAX);
	return w;
}

static void print_row(FILE *out, const struct batch_tick *tick, const struct batch_row *row,
		      const struct widths *w)
{
	const struct profile *p = tick->profile;
	const char *more = !w->cut ? "" : tick->ascii ? "~" : "…";
	char buf[TEXT_MAX], number[FORMAT_MAX];

	fprintf(out, " %7.2f %7.2f %8.0f ", row->self_pct, row->total_pct, row->self);
	for (uint32_t i = 0; i < tick->nr_ratios; i++)
		fprintf(out, "%8s ",
			format_ratio(number, row->ratios[i], tick->ratios[i].ratio->digits).str);
	fprintf(out, "%c ", row->function->kind);
	print_name(out, row->function->name, w->symbol, more);
	fputs("  ", out);
	print_name(out, row->function->module, w->module, more);
	fputs("  ", out);
	if (w->line) {
		print_name(out, line_text(p, row->line, buf, sizeof(buf)), w->line, more);
		fputs("  ", out);
	}
	print_name(out, row->comm, w->cut ? MIN(w->comm, row->comm.width) : 0, more);
	fputc('\n', out);
}

static void print_table(FILE *out, const struct batch_tick *tick, const struct batch_table *t)
{
	const struct profile *p = tick->profile;
	struct widths w = widths_of(tick, t);
	char idle[IDLE_MAX];

	if (tick->nr_tables > 1)
		print_clean(out, "\n", p->events[t->event].event.name);
	if (t->with_waits)
		fputs(" + " EVENT_WAITS, out);
	if (t->latency)
		fputs("\nshares are weighted with 1 / number of running tasks", out);
	fprintf(out, "\n %7s %7s %8s ", "SELF%", "TOTAL%", "SAMPLES");
	for (uint32_t i = 0; i < tick->nr_ratios; i++)
		fprintf(out, "%8s ", tick->ratios[i].ratio->title);
	fputs("K ", out);
	print_padded(out, TEXT("SYMBOL"), w.symbol);
	fputs("  ", out);
	print_padded(out, TEXT("MODULE"), w.module);
	fputs("  ", out);
	if (w.line) {
		print_padded(out, TEXT("LINE"), w.line);
		fputs("  ", out);
	}
	fputs("COMM\n", out);
	for (uint32_t i = 0; i < t->nr_rows; i++)
		print_row(out, tick, &t->rows[i], &w);
	if (t->nr_rows < t->nr_matching)
		fprintf(out, " %" PRIu32 " more rows (--rows)\n", t->nr_matching - t->nr_rows);
	if (!p->nr_counts)
		fprintf(out, " %s\n", idle_text(p, 0, idle).str);
	/* perf's --filter is for tracepoint fields: hint at ours. */
	if (!t->nr_matching && t->count > 0)
		fputs(" no row matches --filter (for fields of a tracepoint: --event-filter)\n",
		      out);
}

/* Print the warnings of this tick, with fixes. */
static void print_messages(FILE *out, const struct profile *p)
{
	for (uint32_t i = 0; i < p->nr_messages; i++) {
		const struct profile_message *n = &p->messages[i];

		if (!n->active || n->severity < MESSAGE_WARN)
			continue;
		print_clean(out, "! ", n->detail);
		print_clean(out, "\n  ", n->fix);
		fputc('\n', out);
	}
}

int batch_text(FILE *out, const struct batch_tick *tick)
{
	const struct profile *p = tick->profile;

	errno = 0;
	print_title(out, p);
	print_export(out, tick);
	for (uint32_t i = 0; i < p->nr_events; i++)
		print_event(out, p, i);
	print_ratios(out, tick);
	print_account(out, p);
	print_cpu_time(out, p);
	print_cpus(out, p);
	if (p->banner[0]) {
		print_clean(out, "! ", p->banner);
		fputc('\n', out);
	}
	if (p->status[0]) {
		print_clean(out, "! ", p->status);
		fputc('\n', out);
	}
	print_messages(out, p);
	for (uint32_t i = 0; i < tick->nr_tables; i++)
		print_table(out, tick, &tick->tables[i]);
	fputc('\n', out);
	return ferror(out) ? -(errno ? errno : EIO) : 0;
}
