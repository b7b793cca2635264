// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Print a tick as one JSON object per line. The fields and their meaning are a
 * contract ("schema": 1): fields may be added, none changes.
 *
 * Runs on: the main thread.
 */
#include "ui/cli/internal.h"

#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>

#include "sampler/count/count.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/ring/ring.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "symbols/name/name.h"
#include "ui/cli/cli.h"
#include "ui/text/text.h"

#define SCHEMA 1

/* Processes with their CPU time. */
#define CPU_PROCESSES_MAX 100

/* Make a JSON number: integers as such, others rounded to 1/1000; 0 for NaN. */
static json_t *number(double value)
{
	if (!isfinite(value))
		return json_integer(0);
	value = round(value * 1000) / 1000;
	if (value == floor(value) && fabs(value) < 9e15)
		return json_integer((json_int_t)value);
	return json_real(value);
}

/* null: it is not known. */
static json_t *figure(double value)
{
	return isnan(value) ? json_null() : number(value);
}

static json_t *count(uint64_t value)
{
	return json_integer((json_int_t)MIN(value, (uint64_t)INT64_MAX));
}

/* Sanitise a string of the profile that contains foreign text. */
static json_t *clean(const char *text)
{
	char buf[512];

	return json_string(text_format(buf, sizeof(buf), "%s", text).str);
}

static json_t *safe(struct safe_text t)
{
	return json_stringn(t.str, t.size);
}

static json_t *events(const struct profile *p)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < p->nr_events; i++) {
		const struct profile_event *ev = &p->events[i];
		json_t *o = json_object();

		json_object_set_new(o, "name", clean(ev->event.name));
		json_object_set_new(o, "enabled", json_boolean(ev->enabled));
		json_object_set_new(o, "want_hz", number(ev->want_hz));
		json_object_set_new(o, "got_hz", figure(ev->got_hz));
		json_object_set_new(o, "samples_per_s", number(event_rate_per_s(p, i)));
		json_object_set_new(o, "running_share", number(ev->running_share));
		if (isfinite(ev->count))
			json_object_set_new(o, "count", number(ev->count));
		if (ev->error[0])
			json_object_set_new(o, "error", clean(ev->error));
		json_array_append_new(list, o);
	}
	return list;
}

/* Make the events on one CPU, in the order of "events". */
static json_t *cpu_events(const struct profile *p, uint32_t cpu)
{
	json_t *list = json_array();

	assert(cpu < p->nr_cpus);
	for (uint32_t i = 0; i < p->nr_events; i++) {
		const struct profile_cpu_event *ev = &p->cpu_events[cpu * p->nr_events + i];
		json_t *o = json_object();

		json_object_set_new(o, "samples", count(ev->samples));
		json_object_set_new(o, "lost", count(ev->lost));
		json_object_set_new(o, "got_hz", figure(ev->got_hz));
		json_object_set_new(o, "enabled_ns", count(ev->enabled_ns));
		json_object_set_new(o, "running_ns", count(ev->running_ns));
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *cpus(const struct profile *p)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < p->nr_cpus; i++) {
		const struct profile_cpu *c = &p->cpus[i];
		json_t *o = json_object();

		json_object_set_new(o, "cpu", json_integer(c->cpu));
		if (c->core[0])
			json_object_set_new(o, "core", clean(c->core));
		json_object_set_new(o, "samples", count(c->samples));
		json_object_set_new(o, "lost", count(c->lost));
		json_object_set_new(o, "throttled", count(c->throttled));
		json_object_set_new(o, "throttled_ns", count(c->throttled_ns));
		json_object_set_new(o, "online", json_boolean(c->online));
		json_object_set_new(o, "busy", figure(c->busy));
		json_object_set_new(o, "lost_total", count(c->lost_total));
		json_object_set_new(o, "throttled_total", count(c->throttled_total));
		json_object_set_new(o, "ring_high", number(c->ring_high));
		json_object_set_new(o, "lag_max_ns", count(c->lag_max_ns));
		json_object_set_new(o, "lag_median_ns", count(c->lag_median_ns));
		if (p->cpu_events)
			json_object_set_new(o, "events", cpu_events(p, i));
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *account(const struct profile_account *a)
{
	json_t *o = json_object();

	json_object_set_new(o, "taken", count(a->taken));
	json_object_set_new(o, "complete", count(a->complete));
	json_object_set_new(o, "guessed", count(a->guessed));
	json_object_set_new(o, "truncated", count(a->truncated));
	json_object_set_new(o, "broken", count(a->broken));
	json_object_set_new(o, "pending", count(a->pending));
	json_object_set_new(o, "dropped", count(a->dropped));
	json_object_set_new(o, "lost", count(a->lost));
	json_object_set_new(o, "own", count(a->own));
	if (a->filtered)
		json_object_set_new(o, "filtered", count(a->filtered));
	if (a->no_outcomes)
		json_object_set_new(o, "outcomes", json_false());
	return o;
}

/* Make the account of the tick, with non-zero reasons. */
static json_t *tick_account(const struct profile *p)
{
	json_t *o = account(&p->account), *broken = json_object(), *dropped = json_object();

	for (uint32_t i = 0; i < PROFILE_NR_BROKEN; i++) {
		const char *key = batch_broken_key(i);

		if (p->broken_by[i])
			json_object_set_new(broken, key ? key : "other", count(p->broken_by[i]));
	}
	for (int i = 0; i < DROP_NR; i++)
		if (p->dropped_by[i])
			json_object_set_new(dropped, profile_drop_name((enum profile_drop)i),
					    count(p->dropped_by[i]));
	json_object_set_new(o, "broken_by", broken);
	json_object_set_new(o, "dropped_by", dropped);
	if (p->account.gaps)
		json_object_set_new(o, "truncated_gaps", count(p->account.gaps));
	if (p->nr_nameless)
		json_object_set_new(o, "task_table_full", count(p->nr_nameless));
	if (p->nr_names_dropped)
		json_object_set_new(o, "names_dropped", count(p->nr_names_dropped));
	if (p->nr_programs_dropped)
		json_object_set_new(o, "programs_dropped", count(p->nr_programs_dropped));
	if (p->nr_forks_shared)
		json_object_set_new(o, "forks_shared", count(p->nr_forks_shared));
	return o;
}

/* The samples of interpreters: with frames of their language, or why without. */
static json_t *languages(const struct profile_lang *l)
{
	json_t *o = json_object(), *by = json_object();
	uint64_t none = 0;

	for (uint32_t i = 0; i < PROFILE_NR_LANG_NONE; i++) {
		none += l->none_by[i];
		if (l->none_by[i])
			json_object_set_new(by, profile_lang_status_name(i), count(l->none_by[i]));
	}
	json_object_set_new(o, "certain", count(l->certain));
	json_object_set_new(o, "guessed", count(l->guessed));
	json_object_set_new(o, "none", count(none));
	json_object_set_new(o, "none_by", by);
	return o;
}

/* Make the 95 % confidence interval of a share, in percent. */
static json_t *interval(double n, double all)
{
	struct interval i = interval_of(n, all);
	json_t *list = json_array();

	json_array_append_new(list, number(100 * i.low));
	json_array_append_new(list, number(100 * i.high));
	return list;
}

/* Add the hottest source line. */
static void set_line(json_t *o, const struct profile *p, const struct profile_line *line)
{
	if (!line)
		return;
	json_object_set_new(o, "file", safe(p->files[line->file]));
	json_object_set_new(o, "line", count(line->line));
}

/* Add "metrics": the ratios that are known; @values NULL: of the tick. */
static void set_ratios(json_t *o, const struct batch_tick *tick, const double *values)
{
	json_t *list = json_object();

	for (uint32_t i = 0; i < tick->nr_ratios; i++) {
		const struct ratio_use *use = &tick->ratios[i];
		double value = values ? values[i] : ratios_of_tick(tick->profile, use);

		if (isfinite(value))
			json_object_set_new(list, use->ratio->key, number(value));
	}
	json_object_set_new(o, "metrics", list);
}

static void append_rows(json_t *list, const struct batch_tick *tick, const struct batch_table *t)
{
	const struct profile *p = tick->profile;

	for (uint32_t i = 0; i < t->nr_rows; i++) {
		const struct batch_row *row = &t->rows[i];
		const char kind[2] = { row->function->kind, 0 };
		json_t *o = json_object();

		json_object_set_new(o, "symbol", safe(row->function->name));
		json_object_set_new(o, "module", safe(row->function->module));
		json_object_set_new(o, "kind", json_string(kind));
		json_object_set_new(o, "comm", safe(row->comm));
		json_object_set_new(o, "self", number(row->self));
		json_object_set_new(o, "total", number(row->total));
		json_object_set_new(o, "self_pct", number(row->self_pct));
		json_object_set_new(o, "total_pct", number(row->total_pct));
		json_object_set_new(o, "self_interval",
				    interval(row->self_pct / 100 * t->count, t->count));
		json_object_set_new(o, "event", clean(p->events[t->event].event.name));
		if (t->latency)
			json_object_set_new(o, "latency", json_true());
		if (t->with_waits)
			json_object_set_new(o, "with_waits", json_true());
		if (p->events[t->event].event.wait) {
			json_object_set_new(o, "self_s", number(row->self_pct / 100 * t->seconds));
			json_object_set_new(o, "wait_s", number(row->total_pct / 100 * t->seconds));
		}
		if (profile_language_name(row->function->kind))
			json_object_set_new(o, "lang",
					    json_string(
						    profile_language_name(row->function->kind)));
		set_line(o, p, row->line);
		if (tick->nr_ratios)
			set_ratios(o, tick, row->ratios);
		if (row->function->reason)
			json_object_set_new(o, "reason", clean(row->function->reason));
		if (row->function->fix)
			json_object_set_new(o, "fix", clean(row->function->fix));
		json_array_append_new(list, o);
	}
}

static json_t *rows(const struct batch_tick *tick)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < tick->nr_tables; i++)
		append_rows(list, tick, &tick->tables[i]);
	return list;
}

static json_t *self(const struct profile *p)
{
	json_t *o = json_object();

	json_object_set_new(o, "cpu_pct", number(p->self.cpu_pct));
	json_object_set_new(o, "rss_kb", count(p->self.rss_kb));
	json_object_set_new(o, "samplers_pct", number(p->self.samplers_pct));
	json_object_set_new(o, "builder_pct", number(p->self.builder_pct));
	json_object_set_new(o, "ui_pct", number(p->self.ui_pct));
	json_object_set_new(o, "loaders_pct", number(p->self.loaders_pct));
	return o;
}

/* Make the statistics of unwinding since the start. */
static json_t *unwind(const struct profile_unwind *u)
{
	json_t *o = json_object();

	json_object_set_new(o, "frames", count(u->frames));
	json_object_set_new(o, "row_hits", count(u->row_hits));
	json_object_set_new(o, "steps", count(u->steps));
	json_object_set_new(o, "guessed", count(u->guessed));
	json_object_set_new(o, "rows", count(u->rows));
	json_object_set_new(o, "rows_differ", count(u->rows_differ));
	json_object_set_new(o, "verified", count(u->verified));
	json_object_set_new(o, "verify_differ", count(u->verify_differ));
	return o;
}

static json_t *names(const struct profile *p)
{
	json_t *o = json_object();

	json_object_set_new(o, "places", count(p->nr_places));
	json_object_set_new(o, "named", count(p->nr_places_named));
	json_object_set_new(o, "stacks", count(p->nr_stacks));
	json_object_set_new(o, "waiting", count(p->nr_places_waiting));
	return o;
}

/* Make the modules: source of symbols, reason and fix if symbols are missing. */
static json_t *modules(const struct profile *p)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < p->nr_modules; i++) {
		const struct profile_module *m = &p->modules[i];
		json_t *o = json_object();

		json_object_set_new(o, "name", safe(m->name));
		json_object_set_new(o, "path", safe(m->path));
		json_object_set_new(o, "state", json_string(profile_module_state_name(m->state)));
		json_object_set_new(o, "source", clean(m->source));
		json_object_set_new(o, "symbols", count(m->nr_symbols));
		json_object_set_new(o, "tabled", count(m->nr_tabled));
		json_object_set_new(o, "derived", count(m->nr_derived));
		json_object_set_new(o, "bare", count(m->nr_bare));
		json_object_set_new(o, "reason", clean(m->reason));
		json_object_set_new(o, "fix", clean(m->fix));
		if (m->language_reason)
			json_object_set_new(o, "lang_reason", clean(m->language_reason));
		if (m->language_reason && m->language_fix)
			json_object_set_new(o, "lang_fix", clean(m->language_fix));
		json_array_append_new(list, o);
	}
	return list;
}

/* Make the messages since the start, with fixes. */
static json_t *messages(const struct profile *p)
{
	static const char *const severities[] = { "info", "warn", "grave" };
	json_t *list = json_array();

	for (uint32_t i = 0; i < p->nr_messages; i++) {
		const struct profile_message *n = &p->messages[i];
		json_t *o = json_object();

		json_object_set_new(o, "key", clean(n->key));
		json_object_set_new(o, "severity", json_string(severities[n->severity]));
		json_object_set_new(o, "active", json_boolean(n->active));
		json_object_set_new(o, "count", count(n->count));
		json_object_set_new(o, "first_ns", count(n->first_ns));
		json_object_set_new(o, "last_ns", count(n->last_ns));
		json_object_set_new(o, "text", clean(n->detail));
		json_object_set_new(o, "fix", clean(n->fix));
		json_array_append_new(list, o);
	}
	return list;
}

/* The tasks of each process, in their order: lists by index + 1, 0 is the end. */
struct by_process {
	uint32_t *first; /* by process */
	uint32_t *next;	 /* by task */
};

/* Group the tasks by process, in one pass: there may be tens of thousands of both. */
static bool group_tasks(const struct profile *p, struct by_process *by)
{
	by->first = calloc(p->nr_processes + 1ULL, sizeof(*by->first));
	by->next = calloc(p->nr_tasks + 1ULL, sizeof(*by->next));
	if (!by->first || !by->next)
		return false;
	for (uint32_t i = p->nr_tasks; i-- > 0;) {
		uint32_t process = p->tasks[i].process;

		if (process >= p->nr_processes)
			continue;
		by->next[i] = by->first[process];
		by->first[process] = i + 1;
	}
	return true;
}

/* Write the comm of a process, and the texts of its service. */
static void put_name(json_t *o, const struct profile_process *p)
{
	json_object_set_new(o, "comm", safe(p->comm));
	for (unsigned int i = 0; i < SERVICE_NR; i++)
		if (p->service[i].size)
			json_object_set_new(o, profile_service_label(i).str, safe(p->service[i]));
}

/* Write the time of one process by the state of its threads, in seconds of the window. */
static json_t *process_times(const struct profile *p, uint32_t process, const struct by_process *by,
			     const double *tasks)
{
	json_t *o = json_object(), *threads = json_array();
	double sums[WAIT_NR] = { 0 };

	assert(process < p->nr_processes);
	for (uint32_t next = by->first[process]; next; next = by->next[next - 1]) {
		uint32_t i = next - 1;
		json_t *t = json_object();

		json_object_set_new(t, "tid", json_integer(p->tasks[i].tid));
		for (int k = WAIT_RUNNING; k < WAIT_NR; k++) {
			double time = tasks[i * WAIT_NR + (uint32_t)k];

			sums[k] += time;
			if (time > 0)
				json_object_set_new(t, wait_kind_key((enum wait_kind)k),
						    number(time / 1e9));
		}
		json_array_append_new(threads, t);
	}
	json_object_set_new(o, "pid", json_integer(p->processes[process].pid));
	put_name(o, &p->processes[process]);
	for (int k = WAIT_RUNNING; k < WAIT_ASLEEP; k++)
		json_object_set_new(o, wait_kind_key((enum wait_kind)k), number(sums[k] / 1e9));
	json_object_set_new(o, "threads", threads);
	return o;
}

/* Waits: the account of the tick's switches, and the time of processes and threads by kind. */
static json_t *waits(const struct profile *p)
{
	json_t *o = json_object(), *list = json_array();
	double *tasks = calloc(p->nr_tasks + 1ULL, WAIT_NR * sizeof(*tasks));
	struct by_process by;
	bool grouped = group_tasks(p, &by);

	json_object_set_new(o, "window_s", number((double)p->window_ns / 1e9));
	json_object_set_new(o, "switched", count(p->waits.switched));
	json_object_set_new(o, "with_stack", count(p->waits.with_stack));
	json_object_set_new(o, "without_stack", count(p->waits.without_stack));
	json_object_set_new(o, "slept_s", number((double)p->waits.slept_ns / 1e9));
	json_object_set_new(o, "callers_unknown_s", number((double)p->waits.cut_ns / 1e9));
	json_object_set_new(o, "lost", count(p->waits.lost));
	json_object_set_new(o, "odd", count(p->waits.odd));
	json_object_set_new(o, "late", count(p->waits.late));
	json_object_set_new(o, "tasks", count(p->waits.tasks));
	json_object_set_new(o, "waking", json_boolean(p->waits.waking));
	json_object_set_new(o, "estimated", json_boolean(p->waits.estimated));
	json_object_set_new(o, "seen_s", number((double)p->waits.seen_ns / 1e9));
	if (tasks)
		fold_waits(p, 0, tasks);
	for (uint32_t i = 0; i < p->nr_processes && tasks && grouped; i++)
		json_array_append_new(list, process_times(p, i, &by, tasks));
	json_object_set_new(o, "processes", list);
	free(by.first);
	free(by.next);
	free(tasks);
	return o;
}

static json_t *pushed_sum(struct pushed_sum sum)
{
	json_t *o = json_object();

	json_object_set_new(o, "profiles", count(sum.profiles));
	json_object_set_new(o, "samples", count(sum.samples));
	return o;
}

/* Make the figures of --push since the start. */
static json_t *pushed(const struct pushed *p)
{
	json_t *o = json_object(), *dropped = json_object();

	for (int i = 0; i < PUSHED_DROP_NR; i++)
		json_object_set_new(dropped, pushed_drop_name((enum pushed_drop)i),
				    pushed_sum(p->dropped[i]));
	json_object_set_new(o, "taken", pushed_sum(p->taken));
	json_object_set_new(o, "delivered", pushed_sum(p->delivered));
	json_object_set_new(o, "queued", pushed_sum(p->queued));
	json_object_set_new(o, "dropped", dropped);
	json_object_set_new(o, "retries", count(p->retries));
	json_object_set_new(o, "error", clean(p->error));
	return o;
}

/* How much of the time some task of the system waited. */
static json_t *pressure(const struct profile *p)
{
	json_t *o = json_object();

	json_object_set_new(o, "cpu", figure(p->pressure.cpu));
	json_object_set_new(o, "io", figure(p->pressure.io));
	json_object_set_new(o, "memory", figure(p->pressure.memory));
	return o;
}

/* "branches": the most frequent taken ones; "memory": accesses by function, operation and level. */
static json_t *branches(const struct profile *p)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < p->nr_branches; i++) {
		const struct profile_branch *b = &p->branches[i];
		json_t *o = json_object();

		json_object_set_new(o, "from", safe(p->functions[b->from].name));
		if (b->from_offset != UINT64_MAX)
			json_object_set_new(o, "from_offset", count(b->from_offset));
		json_object_set_new(o, "to", safe(p->functions[b->to].name));
		if (b->to_offset != UINT64_MAX)
			json_object_set_new(o, "to_offset", count(b->to_offset));
		json_object_set_new(o, "count", count(b->count));
		json_object_set_new(o, "mispredicted", count(b->mispredicted));
		json_object_set_new(o, "predicted", count(b->predicted));
		json_object_set_new(o, "cycles", count(b->cycles));
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *memory(const struct profile *p)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < p->nr_accesses; i++) {
		const struct profile_access *a = &p->accesses[i];
		const struct access_kind kind = profile_access_kind(a->kind);
		json_t *o = json_object();

		json_object_set_new(o, "symbol", safe(p->functions[a->function].name));
		json_object_set_new(o, "op", json_string(access_op_name(kind.op)));
		json_object_set_new(o, "level", json_string(access_level_name(kind.level)));
		json_object_set_new(o, "miss", json_boolean(kind.miss));
		json_object_set_new(o, "tlb_miss", json_boolean(kind.tlb_miss));
		json_object_set_new(o, "count", count(a->count));
		json_object_set_new(o, "latency", count(a->latency));
		json_array_append_new(list, o);
	}
	return list;
}

static int by_cpu(const void *a, const void *b)
{
	const double *x = *(const double *const *)a, *y = *(const double *const *)b;

	return COMPARE(*y, *x);
}

/* Write the CPU time of the processes that are not listed, which used least. */
static json_t *other_processes(const struct profile *p, const double *const *order)
{
	json_t *o = json_object();
	double sum = 0;

	for (uint32_t i = CPU_PROCESSES_MAX; i < p->nr_processes; i++)
		sum += *order[i];
	json_object_set_new(o, "count", json_integer(p->nr_processes - CPU_PROCESSES_MAX));
	json_object_set_new(o, "pct", number(sum * 100 / (double)p->window_ns));
	return o;
}

/* Write the CPU time of the target, and of the processes that used most, in percent of one CPU. */
static json_t *cpu_times(const struct profile *p)
{
	const struct fold_filter all = { .process = UINT32_MAX, .task = UINT32_MAX };
	double *ns = calloc(p->nr_processes + 1ULL, sizeof(*ns));
	const double **order = calloc(p->nr_processes + 1ULL, sizeof(*order));
	json_t *o = json_object(), *list = json_array();
	double sum = ns && order ? fold_cpu(p, &all, ns) : 0;

	for (uint32_t i = 0; ns && order && i < p->nr_processes; i++)
		order[i] = &ns[i];
	if (ns && order)
		qsort(order, p->nr_processes, sizeof(*order), by_cpu);
	for (uint32_t i = 0; ns && order && i < MIN(p->nr_processes, CPU_PROCESSES_MAX); i++) {
		const struct profile_process *process = &p->processes[order[i] - ns];
		json_t *one = json_object();

		json_object_set_new(one, "pid", json_integer(process->pid));
		put_name(one, process);
		json_object_set_new(one, "pct", number(*order[i] * 100 / (double)p->window_ns));
		json_array_append_new(list, one);
	}
	json_object_set_new(o, "pct", number(sum * 100 / (double)p->window_ns));
	json_object_set_new(o, "processes", list);
	if (ns && order && p->nr_processes > CPU_PROCESSES_MAX)
		json_object_set_new(o, "other_processes", other_processes(p, order));
	free(ns);
	free(order);
	return o;
}

static json_t *object(const struct batch_tick *tick)
{
	const struct profile *p = tick->profile;
	json_t *o = json_object();

	json_object_set_new(o, "schema", json_integer(SCHEMA));
	json_object_set_new(o, "tool", json_string("proftop"));
	json_object_set_new(o, "version", json_string(PROFTOP_VERSION));
	json_object_set_new(o, "time_ns", count(p->time_ns));
	json_object_set_new(o, "interval_ns", count(p->interval_ns));
	json_object_set_new(o, "target", clean(p->target));
	if (tick->only)
		json_object_set_new(o, "only", clean(tick->only));
	if (tick->range) {
		json_object_set_new(o, "span", clean(tick->range));
		json_object_set_new(o, "span_s", number((double)p->window_ns / 1e9));
	}
	json_object_set_new(o, "events", events(p));
	json_object_set_new(o, "cpus", cpus(p));
	json_object_set_new(o, "account", tick_account(p));
	json_object_set_new(o, "self", self(p));
	json_object_set_new(o, "pressure", pressure(p));
	if (p->cpu_known && p->window_ns)
		json_object_set_new(o, "cpu", cpu_times(p));
	if (p->stack_waits)
		json_object_set_new(o, "waits", waits(p));
	if (tick->nr_ratios)
		set_ratios(o, tick, NULL);
	if (p->nr_branches)
		json_object_set_new(o, "branches", branches(p));
	if (p->nr_accesses)
		json_object_set_new(o, "memory", memory(p));
	json_object_set_new(o, "rows", rows(tick));
	json_object_set_new(o, "seq", count(p->seq));
	json_object_set_new(o, "sampling", json_boolean(p->sampling));
	json_object_set_new(o, "target_gone", json_boolean(p->target_gone));
	json_object_set_new(o, "banner", clean(p->banner));
	json_object_set_new(o, "message", clean(p->status));
	json_object_set_new(o, "account_total", account(&p->account_total));
	json_object_set_new(o, "unwind", unwind(&p->unwind));
	json_object_set_new(o, "call_graph", json_string(profile_call_graph_name(p->call_graph)));
	json_object_set_new(o, "stack_size", count(p->stack_size));
	json_object_set_new(o, "ring_size", count(p->ring_size));
	json_object_set_new(o, "ring_wanted", count(p->ring_wanted));
	json_object_set_new(o, "tasks_refused", count(p->nr_refused));
	json_object_set_new(o, "max_sample_rate", count(p->max_hz));
	json_object_set_new(o, "max_sample_rate_top", count(p->max_hz_top));
	json_object_set_new(o, "rate_factor", number(p->rate_factor));
	json_object_set_new(o, "names", names(p));
	json_object_set_new(o, "modules", modules(p));
	json_object_set_new(o, "notices", messages(p));
	if (tick->pushed)
		json_object_set_new(o, "push", pushed(tick->pushed));
	json_object_set_new(o, "frames", json_string(profile_frames_name(p->shown_frames)));
	json_object_set_new(o, "lang", languages(&p->lang));
	return o;
}

int batch_ndjson(FILE *out, const struct batch_tick *tick)
{
	json_t *o = object(tick);
	char *line;

	errno = 0;
	line = json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(15));
	json_decref(o);
	if (!line)
		return -ENOMEM;
	fputs(line, out);
	fputc('\n', out);
	free(line);
	return ferror(out) ? -(errno ? errno : EIO) : 0;
}
