// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A recording from open to close: its events, its records by replay_walk.c, its results.
 */
#include "sampler/replay.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sampler/pipeline/deltas.h"
#include "sampler/perfdata/perfdata.h"
#include "sampler/keep_read.h"
#include "sampler/replay_private.h"
#include "unwind/unwind.h"

#define REPLAY_CELLS_MIN (1u << 9)
#define REPLAY_CELLS_MAX (1u << 23)

/* A recording without copies of user stacks may be of any CPU. */
static int check_machine(const struct replay *r, const char *path, struct err *e)
{
	const char *machine = perfdata_machine(r->data);
	char clean[PERFDATA_MACHINE_MAX * 4];
	bool stacks = false;

	for (uint32_t i = 0; i < perfdata_nr_events(r->data); i++)
		stacks |= perfdata_event(r->data, i)->layout.sample_type & PERF_SAMPLE_STACK_USER;
	if (!stacks || !*machine || replay_machine(r))
		return 0;
	text_sanitise(clean, sizeof(clean), machine, strlen(machine));
	return err_set(e, -ENOTSUP,
		       "%.300s: recorded on %s: its stacks cannot be unwound\n  stacks of x86_64 "
		       "and aarch64 can; use perf report for others",
		       path, clean);
}

/* Open a folder of --keep. @waits: it must have waiting time. */
static int open_kept(struct replay *r, struct sampler_config *config, bool waits, struct err *e)
{
	int code;

	r->cpus = xcalloc(REPLAY_CPUS_MAX, sizeof(*r->cpus));
	frames_init(&r->frames);
	code = keep_read_open(&r->kept, config, e);
	if (!code && waits && config_wait_slot(config) < 0)
		code = err_set(e, -ENODATA,
			       "%.300s: no waiting time was kept\n"
			       "  keep it with --time=all --keep",
			       config->replay);
	return code;
}

static bool is_folder(const char *path)
{
	struct stat st;

	return strcmp(path, "-") && !stat(path, &st) && S_ISDIR(st.st_mode);
}

int replay_open(struct replay **out, struct sampler_config *config, struct err *e)
{
	struct replay *r = xcalloc(1, sizeof(*r));
	bool asked = config_wait_slot(config) >= 0;
	int code;

	if (is_folder(config->replay)) {
		code = open_kept(r, config, asked, e);
		if (code)
			replay_close(r);
		else
			*out = r;
		return code;
	}
	code = (config->follow ? perfdata_open_stream
			       : perfdata_open_step)(&r->data, config->replay, config->reading, e);

	if (code) {
		free(r);
		return code;
	}
	perfdata_stop_by(r->data, &r->stopped);
	r->stream = perfdata_stream_fd(r->data) >= 0;
	code = check_machine(r, config->replay, e);
	if (code) {
		replay_close(r);
		return code;
	}
	/* Libunwind alone may read more of a stack than rows do. */
	r->part = config->verify_every ? 0 : 2 * REPLAY_PART_MIN;
	r->cpus = xcalloc(REPLAY_CPUS_MAX, sizeof(*r->cpus));
	frames_init(&r->frames);
	r->deltas = deltas_new(perfdata_nr_ids(r->data));
	if (!r->deltas) {
		replay_close(r);
		return err_set(e, -ENOMEM, "no memory for the events of the recording");
	}
	replay_events_take(&r->events, r->data, config);
	r->waits.slot = r->events.wait;
	r->waits.latency = r->waits.slot < 0 ? -1 : config_latency_slot(config);
	if (asked && r->waits.slot < 0) {
		replay_close(r);
		return err_set(e, -ENODATA,
			       "%.300s: no records of switches: waiting time is not known\n  it "
			       "was "
			       "recorded without them\n  'perf record -e "
			       "cpu-clock,context-switches/period=1/ "
			       "--switch-events --call-graph dwarf', or proftop --time=all "
			       "--record",
			       config->replay);
	}
	*out = r;
	return 0;
}

const struct kernel_identity *replay_kernel(const struct replay *r)
{
	static const struct kernel_identity none;

	return r->data ? perfdata_kernel(r->data) : &none;
}

uint64_t replay_date_ns(const struct replay *r)
{
	return r->data ? perfdata_date_ns(r->data) : r->kept_result.last_ns;
}

bool replay_has_kernel(const struct replay *r)
{
	return r->data && perfdata_has_kernel(r->data);
}

const char *replay_note(const struct replay *r)
{
	return r->data ? perfdata_note(r->data) : r->kept_note;
}

uint16_t replay_machine(const struct replay *r)
{
	return r->data ? unwind_machine(perfdata_machine(r->data)) : 0;
}

bool replay_monotonic(const struct replay *r)
{
	bool all = true;

	for (uint32_t i = 0; r->data && i < perfdata_nr_events(r->data); i++)
		all &= perfdata_event(r->data, i)->monotonic;
	return all;
}

int replay_permille(const struct replay *r)
{
	if (r->kept)
		return (int)keep_read_permille(r->kept);
	return r->stream ? -1 : (int)atomic_load_explicit(&r->permille, memory_order_relaxed);
}

void replay_stop(struct replay *r)
{
	atomic_store_explicit(&r->stopped, true, memory_order_relaxed);
}

void replay_close(struct replay *r)
{
	if (!r)
		return;
	if (r->data)
		perfdata_close(r->data);
	keep_read_close(r->kept);
	deltas_free(r->deltas);
	frames_fini(&r->frames);
	free(r->branches);
	replay_language_fini(&r->language);
	free(r->cpus);
	free(r);
}

/* Report the segments and samples of a folder that are left out. */
static void note_kept(struct replay *r)
{
	const struct keep_read_result *k = &r->kept_result;
	char *text = r->kept_note;
	size_t size = 0, max = sizeof(r->kept_note);

	if (k->nr_damaged)
		size += (size_t)snprintf(text, max, "segments that are damaged or cut short: %u",
					 k->nr_damaged);
	if (k->other_events)
		size += (size_t)snprintf(text + size, max - size,
					 "%s%" PRIu64 " samples of other events are left out",
					 size ? "; " : "", k->other_events);
	if (k->back)
		snprintf(text + size, max - size,
			 "%s%" PRIu64 " samples are left out: the clock was set back",
			 size ? "; " : "", k->back);
}

/* Read a folder of --keep into the tables. */
static int run_kept(struct replay *r, struct store *st, struct replay_result *out)
{
	struct keep_read_result *k = &r->kept_result;
	int code = keep_read_run(r->kept, st, &r->stopped, k);

	r->nr_cpus = 1;
	r->cpus[0] = (struct replay_cpu){ .lost = k->lost, .throttled = k->throttled };
	r->cpus[0].samples.taken = r->cpus[0].samples.complete = k->samples;
	r->cpus[0].samples.nameless = k->nameless;
	note_kept(r);
	*out = (struct replay_result){
		.cpus = r->cpus,
		.nr_cpus = 1,
		.span_ns = MAX(k->last_ns - k->first_ns, 1),
		.interval_ns = MAX(k->last_ns - k->first_ns, 1),
	};
	return code;
}

/*
 * The counts of a slice may reach the number of its samples; like places and stacks they
 * grow on demand.
 */
static int make_cells(struct replay *r, struct store *st)
{
	struct counts *counts;
	int code = r->has_cells ? 0 : counts_new(&counts, REPLAY_CELLS_MIN, REPLAY_CELLS_MAX);

	if (code || r->has_cells)
		return code;
	counts_free(st->counts);
	st->counts = st->tables->counts = counts;
	r->has_cells = true;
	return 0;
}

int replay_begin(struct replay *r, struct store *st)
{
	int code = make_cells(r, st);

	if (!code)
		code = replay_waits_begin(&r->waits, st);
	if (!code)
		code = pipeline_new(&r->pipeline, sampler_thread_tables(st->shared), NULL);
	if (code)
		return code;
	memset(r->cpus, 0, r->nr_cpus * sizeof(*r->cpus));
	r->nr_cpus = 1;
	r->lost_records = r->lost_samples = r->lost_extra = 0;
	r->shown_ns = 0;
	r->fed_ns = r->nr_records = 0;
	r->sliced = false;
	return 0;
}

int replay_feed(struct replay *r, struct store *st)
{
	uint64_t first, last;

	perfdata_span(r->data, &first, &last);
	if (!r->sliced && (first || perfdata_stream_fd(r->data) < 0)) {
		replay_begin_slices(r, st);
		r->sliced = true;
	}
	r->nr_records += perfdata_nr_records(r->data);
	return replay_walk(r, st, r->pipeline, true, replay_count, r);
}

bool replay_begun(const struct replay *r)
{
	return r->fed_ns != 0;
}

bool replay_more(struct replay *r, bool idle)
{
	bool more = perfdata_more(r->data, idle);

	arrival_note(&r->arrival, perfdata_newest_ns(r->data), time_now_ns());
	return more;
}

const char *replay_host(const struct replay *r)
{
	return r->data ? perfdata_host(r->data) : "";
}

uint64_t replay_delay_ns(const struct replay *r)
{
	return arrival_delay_ns(&r->arrival, r->fed_ns, time_now_ns());
}

void replay_drop(struct replay *r)
{
	perfdata_drop(r->data);
}

int replay_fd(const struct replay *r)
{
	return r->data ? perfdata_stream_fd(r->data) : -1;
}

void replay_result(struct replay *r, struct store *st, struct replay_result *out)
{
	uint64_t first, last, extra;

	perfdata_span(r->data, &first, &last);
	if (r->sliced)
		replay_cut(r, MAX(r->fed_ns, r->cut_ns));
	symbols_run(st->symbols);
	for (uint32_t i = 0; i < r->nr_cpus; i++)
		r->cpus[i].cpu = (int)i;
	/* The sum includes the samples of LOST records. */
	extra = r->lost_samples - MIN(r->lost_samples, r->lost_records);
	r->cpus[0].lost += extra - r->lost_extra;
	r->lost_extra = extra;
	*out = (struct replay_result){
		.cpus = r->cpus,
		.nr_cpus = r->nr_cpus,
		.span_ns = MAX(last - first, 1),
		.interval_ns = MAX(r->fed_ns - MIN(r->fed_ns, MAX(first, r->shown_ns)), 1),
		.nr_records = r->nr_records,
		.out_of_memory = r->out_of_memory,
	};
	out->waits = r->waits.account;
	pipeline_unwind_stats(r->pipeline, &out->unwind);
}

void replay_next(struct replay *r)
{
	for (uint32_t i = 0; i < r->nr_cpus; i++) {
		struct replay_cpu *cpu = &r->cpus[i];

		cpu->samples = (struct pipeline_stats){ 0 };
		cpu->lost_shown = cpu->lost;
		cpu->throttled_shown = cpu->throttled;
		cpu->throttled_ns = 0;
	}
	r->shown_ns = r->fed_ns;
	r->waits.account = (struct profile_waits){ .waking = r->waits.account.waking };
}

void replay_end(struct replay *r)
{
	pipeline_free(r->pipeline);
	r->pipeline = NULL;
}

int replay_run(struct replay *r, struct store *st, struct replay_result *out)
{
	int code;

	if (r->kept)
		return run_kept(r, st, out);
	code = replay_begin(r, st);
	if (code)
		return code;
	code = replay_feed(r, st);
	/* Names of all places take a while. */
	if (code != -ECANCELED)
		replay_result(r, st, out);
	replay_end(r);
	return code;
}

bool replay_is_kept(const struct replay *r)
{
	return r->kept != NULL;
}

uint32_t replay_nr_cpus(const struct replay *r)
{
	return r->nr_cpus;
}
