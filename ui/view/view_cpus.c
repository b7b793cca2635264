// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * View 5: the CPUs, and the ledger of every sample below them. The main thread; reads the state
 * only.
 *
 * Always of the newest tick, also when the rows of other views are frozen.
 */
#include "ui/view/internal.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "ui/draw/draw.h"
#include "ui/fold/fold.h"
#include "ui/key/key.h"
#include "ui/state/state.h"
#include "ui/text/text.h"

static const struct profile_cpu *cpu_of(const struct ui_state *st, const struct row *row)
{
	return &st->latest->cpus[row->index];
}

static int by_cpu(const struct ui_state *st, const struct row *a, const struct row *b)
{
	return (cpu_of(st, a)->cpu > cpu_of(st, b)->cpu) -
	       (cpu_of(st, a)->cpu < cpu_of(st, b)->cpu);
}

static int by_busy(const struct ui_state *st, const struct row *a, const struct row *b)
{
	return COMPARE(a->self, b->self);
}

static int by_samples(const struct ui_state *st, const struct row *a, const struct row *b)
{
	return COMPARE(a->count, b->count);
}

static int by_lost(const struct ui_state *st, const struct row *a, const struct row *b)
{
	return COMPARE(cpu_of(st, a)->lost_total, cpu_of(st, b)->lost_total);
}

static int by_throttled(const struct ui_state *st, const struct row *a, const struct row *b)
{
	return COMPARE(cpu_of(st, a)->throttled_total, cpu_of(st, b)->throttled_total);
}

static int by_paused(const struct ui_state *st, const struct row *a, const struct row *b)
{
	return COMPARE(cpu_of(st, a)->throttled_ns, cpu_of(st, b)->throttled_ns);
}

static int by_ring(const struct ui_state *st, const struct row *a, const struct row *b)
{
	return COMPARE(cpu_of(st, a)->ring_high, cpu_of(st, b)->ring_high);
}

static void draw_right(struct canvas *c, struct view_field at, struct safe_text t,
		       enum theme_role role)
{
	canvas_right(c, at.row, at.col, at.cols, t, (struct style){ role, 0 });
}

static void draw_cpu(const struct ui_state *st, const struct row *row, struct canvas *c,
		     struct view_field at)
{
	const struct profile_cpu *cpu = cpu_of(st, row);
	bool trouble = cpu->lost || cpu->throttled;
	char buf[24];

	draw_right(c, at, text_format(buf, sizeof(buf), "%s%d", trouble ? "!" : "", cpu->cpu),
		   trouble ? ROLE_WARN : ROLE_NORMAL);
}

static bool has_cores(const struct ui_state *st)
{
	return st->shown && st->shown->nr_cpus && st->shown->cpus[0].core[0];
}

static int by_core(const struct ui_state *st, const struct row *a, const struct row *b)
{
	int d = strcmp(cpu_of(st, a)->core, cpu_of(st, b)->core);

	return d ? d : by_cpu(st, a, b);
}

static void draw_core(const struct ui_state *st, const struct row *row, struct canvas *c,
		      struct view_field at)
{
	char buf[TEXT_MAX];

	canvas_elide(c, at.row, at.col, at.cols,
		     ui_state_clean(buf, sizeof(buf), cpu_of(st, row)->core),
		     (struct style){ ROLE_NORMAL, 0 });
}

static void draw_bar(const struct ui_state *st, const struct row *row, struct canvas *c,
		     struct view_field at)
{
	double busy = cpu_of(st, row)->busy;

	if (st->config->replayed)
		return;
	if (!cpu_of(st, row)->online)
		canvas_text(c, at.row, at.col, at.cols, TEXT("offline"),
			    (struct style){ ROLE_DIM, 0 });
	else
		view_draw_bar(st, c, at, busy,
			      busy > 0.9   ? ROLE_BAR_HOT
			      : busy > 0.6 ? ROLE_BAR_WARM
					   : ROLE_BAR);
}

static void draw_busy(const struct ui_state *st, const struct row *row, struct canvas *c,
		      struct view_field at)
{
	char buf[FORMAT_MAX];

	/* A recording has no idle time. */
	draw_right(c, at,
		   st->config->replayed ? TEXT("-") : format_share(buf, cpu_of(st, row)->busy),
		   ROLE_NORMAL);
}

/* Samples a second in the newest tick, all events. */
static void draw_rate(const struct ui_state *st, const struct row *row, struct canvas *c,
		      struct view_field at)
{
	char buf[FORMAT_MAX];

	draw_right(c, at, format_count(buf, row->count), ROLE_NORMAL);
}

static void draw_loss(struct canvas *c, struct view_field at, uint64_t now, uint64_t ever)
{
	char buf[96], a[FORMAT_MAX], b[FORMAT_MAX];

	format_count(a, (double)now);
	format_count(b, (double)ever);
	draw_right(c, at,
		   now == ever || at.cols < 14 ? text_format(buf, sizeof(buf), "%s", a)
					       : text_format(buf, sizeof(buf), "%s of %s", a, b),
		   now	  ? ROLE_ALARM
		   : ever ? ROLE_WARN
			  : ROLE_DIM);
}

static void draw_lost(const struct ui_state *st, const struct row *row, struct canvas *c,
		      struct view_field at)
{
	draw_loss(c, at, cpu_of(st, row)->lost, cpu_of(st, row)->lost_total);
}

static void draw_throttled(const struct ui_state *st, const struct row *row, struct canvas *c,
			   struct view_field at)
{
	draw_loss(c, at, cpu_of(st, row)->throttled, cpu_of(st, row)->throttled_total);
}

static void draw_paused(const struct ui_state *st, const struct row *row, struct canvas *c,
			struct view_field at)
{
	uint64_t ns = cpu_of(st, row)->throttled_ns;
	char buf[FORMAT_MAX];

	draw_right(c, at, ns ? format_span(buf, ns) : TEXT("-"), ns ? ROLE_WARN : ROLE_DIM);
}

static void draw_ring(const struct ui_state *st, const struct row *row, struct canvas *c,
		      struct view_field at)
{
	double high = cpu_of(st, row)->ring_high;
	char buf[FORMAT_MAX];

	draw_right(c, at, st->config->replayed ? TEXT("-") : format_share(buf, high),
		   high > 0.5 ? ROLE_WARN : ROLE_NORMAL);
}

static int by_lag(const struct ui_state *st, const struct row *a, const struct row *b)
{
	return COMPARE(cpu_of(st, a)->lag_max_ns, cpu_of(st, b)->lag_max_ns);
}

static void draw_lag(const struct ui_state *st, const struct row *row, struct canvas *c,
		     struct view_field at)
{
	uint64_t ns = cpu_of(st, row)->lag_max_ns;
	char buf[FORMAT_MAX];

	draw_right(c, at, ns ? format_span(buf, ns) : TEXT("-"),
		   ns > 500000000 ? ROLE_WARN : ROLE_NORMAL);
}

static double kernel_share(const struct ui_state *st, const struct row *row)
{
	const struct profile_cpu *cpu = cpu_of(st, row);

	return cpu->samples ? (double)cpu->kernel / (double)cpu->samples : 0;
}

static int by_kernel(const struct ui_state *st, const struct row *a, const struct row *b)
{
	return COMPARE(kernel_share(st, a), kernel_share(st, b));
}

static void draw_kernel(const struct ui_state *st, const struct row *row, struct canvas *c,
			struct view_field at)
{
	char buf[FORMAT_MAX];

	draw_right(c, at,
		   cpu_of(st, row)->samples ? format_share(buf, kernel_share(st, row)) : TEXT("-"),
		   ROLE_NORMAL);
}

/* Return the hottest function of the CPU; NULL: none clearly, or it has no row yet. */
static const struct profile_function *hot_function_of(const struct ui_state *st,
						      const struct row *row)
{
	return row->top_function < st->latest->nr_functions
		       ? &st->latest->functions[row->top_function]
		       : NULL;
}

static int by_hottest(const struct ui_state *st, const struct row *a, const struct row *b)
{
	const struct profile_function *x = hot_function_of(st, a), *y = hot_function_of(st, b);

	if (!x || !y)
		return !x - !y;
	return strcasecmp(x->name.str, y->name.str);
}

static void draw_hottest(const struct ui_state *st, const struct row *row, struct canvas *c,
			 struct view_field at)
{
	const struct profile_cpu *cpu = cpu_of(st, row);
	const struct profile_function *f = hot_function_of(st, row);
	double share = cpu->samples ? (double)cpu->hot_samples / (double)cpu->samples : 0;
	struct pen pen = { c, at.row, at.col, at.col + at.cols };
	char buf[FORMAT_MAX], name[TEXT_MAX];

	if (!f)
		return;
	pen_text(&pen, 0, format_share(buf, share), ROLE_DIM);
	if (pen.col + 1 < pen.end)
		canvas_elide(c, at.row, pen.col + 1, pen.end - pen.col - 1,
			     ui_state_name(st, name, f->name),
			     (struct style){ theme_kind(f->kind), 0 });
}

enum { CPU, CORE, BAR, BUSY, KERNEL, RATE, LOST, THROTTLED, PAUSED, RING, LAG, HOTTEST };

static const struct view_column columns[] = {
	[CPU] = { .title = TEXT("CPU"),
		  .help = "number",
		  .width = 5,
		  .right = true,
		  .ascending = true,
		  .compare = by_cpu,
		  .draw = draw_cpu },
	[CORE] = { .title = TEXT("CORE"),
		   .help = "type of the core, where there are several",
		   .width = 6,
		   .wide = 11,
		   .ascending = true,
		   .when = has_cores,
		   .compare = by_core,
		   .draw = draw_core },
	[BAR] = { .title = TEXT(""),
		  .name = "bar",
		  .help = "the share as a bar",
		  .width = 10,
		  .wide = 14,
		  .from = 110,
		  .draw = draw_bar },
	[BUSY] = { .title = TEXT("BUSY"),
		   .help = "share of the tick that was not idle",
		   .width = 5,
		   .right = true,
		   .compare = by_busy,
		   .draw = draw_busy },
	[KERNEL] = { .title = TEXT("SYS"),
		     .help = "share of samples in the kernel",
		     .width = 5,
		     .from = 84,
		     .right = true,
		     .compare = by_kernel,
		     .draw = draw_kernel },
	[RATE] = { .title = TEXT("GOT/s"),
		   .help = "samples per second, all events",
		   .width = 8,
		   .right = true,
		   .compare = by_samples,
		   .draw = draw_rate },
	[LOST] = { .title = TEXT("LOST"),
		   .help = "samples lost by the kernel: in the tick, and in total",
		   .width = 8,
		   .wide = 16,
		   .right = true,
		   .compare = by_lost,
		   .draw = draw_lost },
	[THROTTLED] = { .title = TEXT("THROTTLED"),
			.help = "times an event was paused",
			.width = 10,
			.wide = 12,
			.from = 50,
			.right = true,
			.compare = by_throttled,
			.draw = draw_throttled },
	[PAUSED] = { .title = TEXT("PAUSED"),
		     .help = "time events were paused in the tick",
		     .width = 8,
		     .from = 120,
		     .right = true,
		     .compare = by_paused,
		     .draw = draw_paused },
	[RING] = { .title = TEXT("RING"),
		   .help = "highest fill of the ring",
		   .width = 6,
		   .right = true,
		   .compare = by_ring,
		   .draw = draw_ring },
	[LAG] = { .title = TEXT("LAG"),
		  .help = "longest wait of a sample for its thread",
		  .width = 7,
		  .from = 76,
		  .right = true,
		  .compare = by_lag,
		  .draw = draw_lag },
	[HOTTEST] = { .title = TEXT("HOTTEST NOW"),
		      .help = "hottest function of the tick, and at least how hot",
		      .from = 62,
		      .ascending = true,
		      .compare = by_hottest,
		      .draw = draw_hottest },
};

/* The rows of CPUs with a hottest function, in the order of its id. */
struct hot_row {
	uint64_t id; /* first, for sort_by_number() */
	struct row *row;
};

/* Find the hottest function of each CPU: among many functions once for all rows, not for each. */
static int find_hottest(const struct profile *p, struct list *list)
{
	struct hot_row *hot = alloc_to_fill(list->nr * sizeof(*hot) + 1);
	uint32_t nr = 0;
	int rc;

	if (!hot)
		return -ENOMEM;
	for (uint32_t i = 0; i < list->nr; i++) {
		const struct profile_cpu *cpu = &p->cpus[list->rows[i].index];

		if (cpu->hot_samples)
			hot[nr++] = (struct hot_row){ cpu->hot, &list->rows[i] };
	}
	rc = sort_by_number(hot, nr, sizeof(*hot));
	for (uint32_t f = 0; !rc && f < p->nr_functions; f++) {
		uint32_t i = search_split(nr, k, hot[k].id < p->functions[f].id);

		for (; i < nr && hot[i].id == p->functions[f].id; i++)
			hot[i].row->top_function = f;
	}
	free(hot);
	return rc;
}

static int build(const struct ui_state *st, struct list *list)
{
	const struct profile *p = st->latest;

	for (uint32_t i = 0; p && i < p->nr_cpus; i++) {
		struct row *row = list_add(list);

		if (!row)
			return -ENOMEM;
		row->id = (uint32_t)p->cpus[i].cpu;
		row->index = i;
		row->self = p->cpus[i].busy;
		row->total = 1;
		row->count = p->interval_ns
				     ? (double)p->cpus[i].samples * 1e9 / (double)p->interval_ns
				     : 0;
		list->count += (double)p->cpus[i].samples;
	}
	return p ? find_hottest(p, list) : 0;
}

static bool finds(const struct ui_state *st, const struct row *row, const struct match *m)
{
	const struct profile_function *f = hot_function_of(st, row);
	char buf[24];

	return match_finds(m, text_format(buf, sizeof(buf), "cpu%d", cpu_of(st, row)->cpu)) ||
	       (f && match_finds(m, f->name));
}

/* Convert it from the newest profile to the shown one, for actions. */
static uint32_t function(const struct ui_state *st, const struct row *row)
{
	const struct profile_cpu *cpu = cpu_of(st, row);

	return cpu->hot_samples ? folds_function(st->shown, cpu->hot) : UINT32_MAX;
}

/* ---- the ledger ---- */

/* Text that is appended to, cut at the end of its buffer. */
struct words {
	char text[512];
	size_t size;
};

__attribute__((format(printf, 2, 3))) static void say(struct words *w, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(w->text + w->size, sizeof(w->text) - w->size, fmt, ap);
	va_end(ap);
	if (n > 0)
		w->size = MIN(w->size + (size_t)n, sizeof(w->text) - 1);
}

static void say_part(struct words *w, const char *name, uint64_t n, uint64_t all)
{
	char count[FORMAT_MAX], share[FORMAT_MAX];

	say(w, "%s%s %s", !w->size || *name == ';' ? "" : "  ", name,
	    format_count(count, (double)n).str);
	if (all && n && n != all)
		say(w, " (%s%%)", format_percent(share, (double)n / (double)all).str);
}

static void foot_account(struct foot *f, struct safe_text label, const struct profile_account *a)
{
	struct words w = { .size = 0 };

	say_part(&w, "taken", a->taken, 0);
	if (a->no_outcomes) {
		say_part(&w, "; lost", a->lost, a->taken);
		foot_text(f, label, w.text);
		return;
	}
	say_part(&w, "= complete", a->complete, a->taken);
	say_part(&w, "+ guessed", a->guessed, a->taken);
	say_part(&w, "+ truncated", a->truncated, a->taken);
	say_part(&w, "+ broken", a->broken, a->taken);
	say_part(&w, "+ pending", a->pending, a->taken);
	say_part(&w, "+ dropped", a->dropped, a->taken);
	say_part(&w, "+ lost", a->lost, a->taken);
	say_part(&w, "; own", a->own, 0);
	if (a->filtered)
		say_part(&w, "; of others", a->filtered, 0);
	foot_text(f, label, w.text);
}

static void foot_reasons(struct foot *f, const struct profile *p)
{
	struct words broken = { .size = 0 }, dropped = { .size = 0 }, nameless = { .size = 0 };

	for (unsigned int i = 0; i < PROFILE_NR_BROKEN; i++)
		if (p->broken_by[i])
			say_part(&broken, profile_broken_name(i), p->broken_by[i], 0);
	for (int i = 0; i < DROP_NR; i++)
		if (p->dropped_by[i])
			say_part(&dropped, profile_drop_name((enum profile_drop)i),
				 p->dropped_by[i], 0);
	if (p->nr_nameless)
		say_part(&nameless, "without a name, task table full", p->nr_nameless,
			 p->account.taken);
	if (p->nr_names_dropped)
		say_part(&nameless, "thread names dropped, renamed too often", p->nr_names_dropped,
			 0);
	if (p->nr_programs_dropped)
		say_part(&nameless, "programs dropped, executed too often", p->nr_programs_dropped,
			 0);
	if (p->nr_forks_shared)
		say_part(&nameless, "children share older mappings", p->nr_forks_shared, 0);
	if (broken.size)
		foot_text(f, TEXT("Broken by"), broken.text);
	if (dropped.size)
		foot_text(f, TEXT("Dropped"), dropped.text);
	if (nameless.size)
		foot_text(f, TEXT("Processes"), nameless.text);
}

/* The waits of the tick, if callers are missing. */
static void foot_waits(struct foot *f, const struct profile_waits *w)
{
	char cut[FORMAT_MAX], all[FORMAT_MAX], text[96];

	if (!w->cut_ns)
		return;
	snprintf(text, sizeof(text), "callers unknown in %s of %s asleep (^W: stacks of now)",
		 format_span(cut, w->cut_ns).str, format_span(all, w->slept_ns).str);
	foot_text(f, TEXT("Waits"), text);
}

static void foot_unwinder(struct foot *f, const struct profile_unwind *u)
{
	struct words w = { .size = 0 };

	if (!u->frames)
		return;
	say_part(&w, "frames", u->frames, 0);
	/* Not a sum: the first frame of a stack is the sample's, and its end takes a rule. */
	say_part(&w, "by cached rules", u->row_hits, u->frames);
	say_part(&w, "by libunwind", u->steps, u->frames);
	say_part(&w, "guessed", u->guessed, u->frames);
	say_part(&w, "; rules", u->rows, 0);
	say_part(&w, "refused", u->rows_differ, 0);
	if (u->verified) {
		say_part(&w, "; verified", u->verified, 0);
		say_part(&w, "differ", u->verify_differ, u->verified);
	}
	foot_text(f, TEXT("Unwinder"), w.text);
}

/* Append the memory of images, and evictions. */
static void foot_images(struct words *w, const struct profile_images *i)
{
	char n[FORMAT_MAX], is[FORMAT_MAX], may[FORMAT_MAX];

	say(w, "; %s objects in %s of %s", format_count(n, (double)i->nr).str,
	    format_memory(is, i->memory >> 10).str, format_memory(may, i->memory_max >> 10).str);
	if (i->nr_evicted)
		say(w, ", %s evicted", format_count(n, (double)i->nr_evicted).str);
}

/* Each event on the selected CPU, in the tick. */
static void foot_events(struct foot *f, const struct profile *p, uint32_t index)
{
	struct words w = { .size = 0 };
	char label[24], name[EVENT_NAME_MAX * 2], n[FORMAT_MAX];

	if (!p->cpu_events || index >= p->nr_cpus)
		return;
	for (uint32_t i = 0; i < p->nr_events; i++) {
		const struct profile_cpu_event *ev = &p->cpu_events[index * p->nr_events + i];

		say(&w, "%s%s", w.size ? "; " : "",
		    ui_state_clean(name, sizeof(name), p->events[i].event.name).str);
		if (p->events[i].want_hz > 0)
			say(&w, " wanted %s Hz", format_count(n, p->events[i].want_hz).str);
		if (event_rate_is_frequency(&p->events[i]) && !isnan(ev->got_hz))
			say(&w, " got %s Hz", format_count(n, ev->got_hz).str);
		say_part(&w, " samples", ev->samples, 0);
		say_part(&w, "lost", ev->lost, 0);
		if (ev->running_ns < ev->enabled_ns)
			say(&w, "  ran %s%%",
			    format_percent(n, (double)ev->running_ns / (double)ev->enabled_ns).str);
	}
	if (p->cpus[index].lag_median_ns)
		say(&w, "; samples waited %s", format_span(n, p->cpus[index].lag_median_ns).str);
	text_format(label, sizeof(label), "CPU %d", p->cpus[index].cpu);
	foot_text(f, ui_state_clean((char[24]){ 0 }, 24, label), w.text);
}

/* Show how samples are taken, and the limits. */
static void foot_sampling(struct foot *f, const struct ui_state *st, const struct profile *p)
{
	struct words w = { .size = 0 };
	char n[FORMAT_MAX];

	say(&w, "stacks %s", profile_call_graph_name(p->call_graph));
	if (p->stack_size)
		say(&w, ", stack copies of %u bytes", p->stack_size);
	if (p->ring_size)
		say(&w, "; rings of %s KiB", format_count(n, (double)(p->ring_size >> 10)).str);
	if (p->ring_wanted > p->ring_size)
		say(&w, " (wanted %s)", format_count(n, (double)(p->ring_wanted >> 10)).str);
	if (p->nr_refused)
		say(&w, "; %u tasks refused", p->nr_refused);
	say(&w, "; kernel limit %s Hz", format_count(n, sampler_max_hz(st->sampler)).str);
	if (p->max_hz < p->max_hz_top)
		say(&w, " (was %s)", format_count(n, (double)p->max_hz_top).str);
	foot_text(f, TEXT("Sampling"), w.text);
}

/* Show the outcome of all samples, and our cost. */
static unsigned int foot(const struct ui_state *st, const struct row *row, struct foot *f)
{
	const struct profile *p = st->latest;
	struct words own = { .size = 0 };
	char n[FORMAT_MAX];

	if (!p)
		return 0;
	foot_account(f, TEXT("Tick"), &p->account);
	foot_account(f, TEXT("Ever"), &p->account_total);
	foot_reasons(f, p);
	foot_waits(f, &p->waits);
	foot_unwinder(f, &p->unwind);
	foot_events(f, p, row ? row->index : UINT32_MAX);
	if (st->config->replayed)
		return f->used;
	say(&own, "%.1f%% of one CPU, %s", p->self.cpu_pct, format_memory(n, p->self.rss_kb).str);
	say(&own, "; places %s", format_count(n, (double)p->nr_places).str);
	say(&own, ", named %s", format_count(n, (double)p->nr_places_named).str);
	say(&own, "; stacks %s", format_count(n, (double)p->nr_stacks).str);
	if (p->images.memory_max)
		foot_images(&own, &p->images);
	say(&own, "; samplers %.1f%%, builder %.1f%%, UI %.1f%%, loading and folding %.1f%%",
	    p->self.samplers_pct, p->self.builder_pct, p->self.ui_pct, p->self.loaders_pct);
	foot_sampling(f, st, p);
	foot_text(f, TEXT("proftop"), own.text);
	return f->used;
}

const struct view view_cpus = {
	.title = TEXT("CPUs"),
	.context = CTX_LIST,
	.newest = true,
	.empty = TEXT("the CPUs are not known: slices of --keep are of all together"),
	.columns = columns,
	.nr_columns = ARRAY_SIZE(columns),
	.sorts = &(const struct view_sorts){ BUSY, RATE, VIEW_NO_COLUMN },
	.build = build,
	.finds = finds,
	.foot = foot,
	.function = function,
};
