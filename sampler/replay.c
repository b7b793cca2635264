// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A recording through the real decode → unwind → table path.
 *
 * Records are in time order, so a mapping is applied before the samples that need it, and published
 * with the first of them.
 */
#include "sampler/replay.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sampler/pipeline/deltas.h"
#include "sampler/pipeline/sideband.h"
#include "sampler/file/perfdata.h"
#include "sampler/keep_read.h"
#include "sampler/replay_hardware.h"
#include "sampler/replay_private.h"

#define REPLAY_CPUS_MAX 4096
/* Objects and processes are requested one after the other: a stack needs each of its objects. */
#define REPLAY_TRIES_MAX 64

/* The tables grow after this number of samples, or when they are crowded. */
#define REPLAY_ROOM_EVERY 4096
#define REPLAY_CELLS_MIN  (1u << 13)
#define REPLAY_CELLS_MAX  (1u << 23)
#define SLICES_MAX	  6000

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

/* Open a folder of --keep. */
static int open_kept(struct replay *r, struct sampler_config *config, struct err *e)
{
	r->cpus = xcalloc(REPLAY_CPUS_MAX, sizeof(*r->cpus));
	frames_init(&r->frames);
	return keep_read_open(&r->kept, config, e);
}

static bool is_folder(const char *path)
{
	struct stat st;

	return strcmp(path, "-") && !stat(path, &st) && S_ISDIR(st.st_mode);
}

int replay_open(struct replay **out, struct sampler_config *config, struct err *e)
{
	struct replay *r = xcalloc(1, sizeof(*r));
	bool asked;
	int code;

	if (is_folder(config->replay)) {
		code = open_kept(r, config, e);
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
	code = check_machine(r, config->replay, e);
	if (code) {
		replay_close(r);
		return code;
	}
	r->cpus = xcalloc(REPLAY_CPUS_MAX, sizeof(*r->cpus));
	frames_init(&r->frames);
	r->deltas = deltas_new(perfdata_nr_ids(r->data));
	if (!r->deltas) {
		replay_close(r);
		return err_set(e, -ENOMEM, "no memory for the events of the recording");
	}
	asked = config_wait_slot(config) >= 0;
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
	return r->data ? perfdata_note(r->data) : "";
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

static struct replay_cpu *cpu_of(struct replay *r, uint32_t cpu)
{
	if (cpu >= REPLAY_CPUS_MAX)
		cpu = 0;
	r->nr_cpus = MAX(r->nr_cpus, cpu + 1);
	return &r->cpus[cpu];
}

int replay_slot_of(void *ctx, uint64_t id)
{
	const struct replay *r = ctx;
	int event = perfdata_event_of(r->data, id);
	return event < 0 || (uint32_t)event >= r->events.nr ? PIPELINE_EVENT_UNKNOWN
							    : r->events.slots[event];
}

/* Read record @index. As record_decode(), or -EIO. */
static int read_record(struct replay *r, uint64_t index, const struct record_layout **layout,
		       struct record *rec)
{
	size_t size;
	const uint8_t *bytes = perfdata_record(r->data, index, &size, layout);
	int code = bytes ? record_decode(rec, *layout, bytes, size) : -EIO, event;

	/* A fixed period is not in each sample. */
	if (!code && rec->type == PERF_RECORD_SAMPLE &&
	    !((*layout)->sample_type & PERF_SAMPLE_PERIOD)) {
		event = perfdata_event_of(r->data, rec->id);
		if (event >= 0)
			rec->sample.period = perfdata_event(r->data, (uint32_t)event)->period;
	}
	return code;
}

/* Find the sample's stack; load missing objects until there are none. */
static void resolve(struct store *st, struct pipeline *p, const struct record_sample *sample,
		    uint64_t regs_mask)
{
	for (int i = 0; i < REPLAY_TRIES_MAX; i++) {
		pipeline_resolve(p, sample, regs_mask);
		if (!pipeline_take_asked(p))
			return;
		symbols_run_objects(st->symbols);
	}
}

static void on_throttle(struct replay_cpu *cpu, const struct record *rec)
{
	if (rec->type == PERF_RECORD_THROTTLE) {
		cpu->throttled++;
		cpu->throttled_since = rec->time_ns;
	} else if (cpu->throttled_since) {
		cpu->throttled_ns += rec->time_ns - MIN(rec->time_ns, cpu->throttled_since);
		cpu->throttled_since = 0;
	}
}

/* Return whether the record belongs to a side-band event. */
static bool is_side_band(const struct replay *r, const struct record *rec)
{
	int event = rec->id ? perfdata_event_of(r->data, rec->id) : -1;

	return event >= 0 && perfdata_event(r->data, (uint32_t)event)->dummy;
}

/* Everything but samples. True: the maps changed. */
static bool on_other(struct replay *r, struct store *st, struct record *rec)
{
	struct replay_cpu *cpu = cpu_of(r, rec->cpu == UINT32_MAX ? 0 : rec->cpu);

	switch (rec->type) {
	case PERF_RECORD_LOST:
		if (is_side_band(r, rec)) {
			sideband_apply(st->maps, st->symbols, rec);
			return true;
		}
		cpu->lost += rec->lost;
		r->lost_records += rec->lost;
		return false;
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		return false;
	case PERF_RECORD_LOST_SAMPLES:
		r->lost_samples += rec->lost;
		return false;
	case PERF_RECORD_THROTTLE:
	case PERF_RECORD_UNTHROTTLE:
		on_throttle(cpu, rec);
		return false;
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		perfdata_identify(r->data, &rec->mmap);
		break;
	default:
		break;
	}
	sideband_apply(st->maps, st->symbols, rec);
	return true;
}

/*
 * Before a sample: publish the changes since the last one. New objects are read: a jitdump has
 * events of later times, and maybe some that are due.
 */
static void keep_up(struct replay *r, struct store *st, uint64_t time_ns, bool changed)
{
	if (changed || maps_due(st->maps, time_ns))
		maps_publish(st->maps, time_ns, UINT64_MAX);
	if (objects_nr(st->objects) == r->nr_objects)
		return;
	r->nr_objects = objects_nr(st->objects);
	symbols_run_objects(st->symbols);
	if (maps_due(st->maps, time_ns))
		maps_publish(st->maps, time_ns, UINT64_MAX);
}

/* Choose the length of slices: a multiple of 100 ms, a small part of the recording. */
static void begin_slices(struct replay *r, struct store *st)
{
	uint64_t first, last, times;

	perfdata_span(r->data, &first, &last);
	times = (last - MIN(first, last)) / SLICES_MAX / SAMPLER_SLICE_NS + 1;
	r->store = st;
	r->slice_ns = times * SAMPLER_SLICE_NS;
	r->cut_ns = first;
	history_begin(st->history, first);
}

/* End the slice at @time_ns. */
static void cut_slice(struct replay *r, uint64_t time_ns)
{
	struct count *counts = NULL;
	uint32_t nr = 0;

	replay_waits_cut(&r->waits, r->store, time_ns);
	if (counts_swap(r->store->counts, &counts, &nr) ||
	    history_add(r->store->history, counts, nr, time_ns - r->cut_ns))
		r->out_of_memory = true;
	r->cut_ns = time_ns;
}

/* End the slice before a sample of @time_ns, and the gap between them. */
static void cut_slices(struct replay *r, uint64_t time_ns)
{
	uint64_t slices;

	if (time_ns < r->cut_ns + r->slice_ns)
		return;
	cut_slice(r, r->cut_ns + r->slice_ns);
	slices = (time_ns - r->cut_ns) / r->slice_ns;
	if (slices)
		cut_slice(r, r->cut_ns + slices * r->slice_ns);
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

/* Grow the tables before a sample, where no other thread does. */
static void make_room(struct replay *r, struct store *st, struct pipeline *p)
{
	if (counts_crowded(st->counts))
		counts_grow(st->counts);
	if (++r->nr_samples % REPLAY_ROOM_EVERY && !places_crowded(st->places) &&
	    !stacks_crowded(st->stacks))
		return;
	r->out_of_memory |= store_keep_room(st) != 0;
	pipeline_use(p, sampler_thread_tables(st->shared));
}

/* Take record @index if it is of languages. */
static bool take_language(struct replay *r, struct store *st, struct pipeline *p, uint64_t index)
{
	const struct record_layout *layout;
	size_t size;
	const uint8_t *bytes = perfdata_record(r->data, index, &size, &layout);

	return bytes && replay_language_take(&r->language, st, p, bytes, size);
}

static int count_sample(void *ctx, struct pipeline *p, const struct record_sample *sample);

/* Take a record of a switch, or of a task's begin or end. *@changed: the maps, since published. */
static void take_switch(struct replay *r, struct store *st, const struct record *rec, bool *changed)
{
	bool is_switch = rec->type == PERF_RECORD_SWITCH ||
			 rec->type == PERF_RECORD_SWITCH_CPU_WIDE;

	if (r->waits.slot < 0)
		return;
	if (is_switch && rec->time_ns >= r->cut_ns + r->slice_ns) {
		/* The counts of the slice need the tasks. */
		keep_up(r, st, rec->time_ns, *changed);
		*changed = false;
		cut_slices(r, rec->time_ns);
	}
	if (is_switch)
		r->fed_ns = MAX(r->fed_ns, rec->time_ns);
	replay_waits_record(&r->waits, st, rec);
}

/* Take a sample of a wake-up; false: it also counts, or is another one. */
static bool take_waking(struct replay *r, struct store *st, const struct record_sample *s,
			bool counting)
{
	int event = r->events.waking ? perfdata_event_of(r->data, s->id) : -1;
	bool alone;

	if (event < 0 || !replay_waits_is_waking(perfdata_event(r->data, (uint32_t)event), &alone))
		return false;
	if (counting)
		replay_waits_waking(&r->waits, st, s);
	return alone;
}

int replay_walk(struct replay *r, struct store *st, struct pipeline *p, bool side_band,
		replay_resolved_fn fn, void *ctx)
{
	int code = 0;

	for (uint32_t i = 0; i < perfdata_nr_events(r->data); i++)
		if (perfdata_event(r->data, i)->event.kernel)
			symbols_expect_kernel(st->symbols);
	for (uint64_t i = 0; i < perfdata_nr_records(r->data) && !code; i++) {
		const struct record_layout *layout;
		struct record rec;
		int bad;

		if (fn == count_sample && take_language(r, st, p, i))
			continue;
		bad = read_record(r, i, &layout, &rec);
		if (bad == -EIO || (bad && rec.type == PERF_RECORD_SAMPLE))
			pipeline_bad_record(&r->cpus[0].samples);
		if (bad)
			continue;
		if (rec.type != PERF_RECORD_SAMPLE) {
			if (side_band)
				r->changed |= on_other(r, st, &rec);
			if (fn == count_sample)
				take_switch(r, st, &rec, &r->changed);
			continue;
		}
		if (take_waking(r, st, &rec.sample, fn == count_sample))
			continue;
		keep_up(r, st, rec.time_ns, r->changed);
		r->changed = false;
		make_room(r, st, p);
		resolve(st, p, &rec.sample, layout->regs_mask);
		code = fn(ctx, p, &rec.sample);
	}
	return code;
}

uint32_t replay_members(struct replay *r, struct record_sample *sample, int slot,
			struct pipeline_member members[static EVENTS_MAX])
{
	uint32_t nr = sample->nr_reads
			      ? deltas_of_sample(r->deltas, sample, replay_slot_of, r, members)
			      : 0;

	for (uint32_t i = 0; i < nr; i++)
		if (members[i].event == slot)
			sample->period = members[i].count;
	return nr;
}

static int count_sample(void *ctx, struct pipeline *p, const struct record_sample *sample)
{
	struct replay *r = ctx;
	struct replay_cpu *cpu = cpu_of(r, sample->cpu);
	struct pipeline_member members[EVENTS_MAX];
	struct record_sample s = *sample;
	int slot = replay_slot_of(r, s.id);
	uint32_t nr = replay_members(r, &s, slot, members);

	cut_slices(r, s.time_ns);
	r->fed_ns = MAX(r->fed_ns, s.time_ns);
	if (slot >= 0 && slot == r->waits.slot) {
		replay_waits_stack(&r->waits, r->store, &s,
				   pipeline_count_wait(p, &cpu->samples, &s, slot));
		return 0;
	}
	pipeline_count(p, &cpu->samples, &s, slot);
	if (slot >= 0 && slot == r->waits.latency)
		replay_waits_sample(&r->waits, r->store, p, &s);
	pipeline_members(p, members, nr, slot);
	replay_hardware_count(r->store, p, &s);
	return 0;
}

/* Read a folder of --keep into the tables. */
static int run_kept(struct replay *r, struct store *st, struct replay_result *out)
{
	struct keep_read_result *k = &r->kept_result;
	int code = keep_read_run(r->kept, st, k);

	r->nr_cpus = 1;
	r->cpus[0] = (struct replay_cpu){ .lost = k->lost, .throttled = k->throttled };
	r->cpus[0].samples.taken = r->cpus[0].samples.complete = k->samples;
	*out = (struct replay_result){
		.cpus = r->cpus,
		.nr_cpus = 1,
		.span_ns = MAX(k->last_ns - k->first_ns, 1),
		.interval_ns = MAX(k->last_ns - k->first_ns, 1),
	};
	return code;
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
		begin_slices(r, st);
		r->sliced = true;
	}
	r->nr_records += perfdata_nr_records(r->data);
	return replay_walk(r, st, r->pipeline, true, count_sample, r);
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
		cut_slice(r, MAX(r->fed_ns, r->cut_ns));
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
