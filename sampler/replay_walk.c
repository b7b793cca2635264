// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Walk over the records of a recording: decode, apply or unwind, count.
 *
 * Records are in time order, so a mapping is applied before the samples that need it, and published
 * with the first of them. Runs on: the thread of the replay.
 */
#include <errno.h>
#include <urcu-qsbr.h>

#include "sampler/event/counters.h"
#include "sampler/perfdata/perfdata.h"
#include "sampler/pipeline/deltas.h"
#include "sampler/pipeline/sideband.h"
#include "sampler/replay.h"
#include "sampler/replay_hardware.h"
#include "sampler/replay_private.h"
#include "unwind/unwind.h"

/* Objects and processes are requested one after the other: a stack needs each of its objects. */
#define REPLAY_TRIES_MAX 64
/* The tables grow after this number of samples, or when they are crowded. */
#define REPLAY_ROOM_EVERY 4096
#define PROGRESS_RECORDS  256 /* from one note of the progress to the next */
#define SLICES_MAX	  6000

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

/* A record that is read. */
struct reading {
	uint64_t index;
	const uint8_t *bytes; /* NULL: reading failed */
	size_t size;
	const struct record_layout *layout;
	bool is_part; /* see perfdata_record_part() */
	struct record rec;
};

/* Limit the times of a record, as perfdata_span() has them. */
static void limit_times(const struct replay *r, struct record *rec)
{
	uint64_t first;

	if (rec->type == PERF_RECORD_SAMPLE && rec->time_ns >= PERFDATA_TIME_NONE)
		perfdata_span(r->data, &first, &rec->time_ns);
	rec->time_ns = MIN(rec->time_ns, PERFDATA_TIME_MAX);
	if (rec->type == PERF_RECORD_SAMPLE)
		rec->sample.time_ns = rec->time_ns;
	else if (rec->type == PERF_RECORD_FORK || rec->type == PERF_RECORD_EXIT)
		rec->task.time_ns = MIN(rec->task.time_ns, PERFDATA_TIME_MAX);
}

/* Decode the bytes. As record_decode(), or -EIO. */
static int decode(const struct replay *r, struct reading *in)
{
	struct record *rec = &in->rec;
	int code = in->bytes ? record_decode(rec, in->layout, in->bytes, in->size) : -EIO, event;

	if (!code)
		limit_times(r, rec);
	/* A fixed period is not in each sample. */
	if (!code && rec->type == PERF_RECORD_SAMPLE &&
	    !(in->layout->sample_type & PERF_SAMPLE_PERIOD)) {
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

/* Return whether a part of the stack copy was certainly enough for the stack found. */
static bool is_sure(struct pipeline *p)
{
	struct pipeline_stack stack;

	pipeline_stack(p, &stack);
	return stack.stop == UNWIND_COMPLETE && !stack.nr_guessed && stack.lang == PIPELINE_LANG_NO;
}

/*
 * Find the sample's stack. If a part was read and was not enough, read the whole record: one sample
 * in sixteen. False: reading failed, or the file has changed and has another record there.
 */
static bool resolve_record(struct replay *r, struct store *st, struct pipeline *p,
			   struct reading *in)
{
	resolve(st, p, &in->rec.sample, in->layout->regs_mask);
	/* Also after a whole one: the next stacks may be smaller. */
	if (!in->is_part || is_sure(p)) {
		r->part = MAX(r->part - r->part / 128, REPLAY_PART_MIN);
		return true;
	}
	r->part = MIN(r->part + r->part / 8, REPLAY_PART_MAX);
	in->bytes = perfdata_record(r->data, in->index, &in->size, &in->layout);
	/* It may have changed: then it is a bad record. */
	if (decode(r, in) || in->rec.type != PERF_RECORD_SAMPLE)
		return false;
	resolve(st, p, &in->rec.sample, in->layout->regs_mask);
	return true;
}

static void on_throttle(struct replay_cpu *cpu, const struct record *rec)
{
	if (rec->type == PERF_RECORD_THROTTLE) {
		cpu->throttled++;
		cpu->throttled_since = rec->time_ns;
	} else if (cpu->throttled_since) {
		cpu->throttled_ns += record_pause_ns(cpu->throttled_since, rec->time_ns);
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
	if (objects_nr_added(st->objects) == r->nr_objects)
		return;
	r->nr_objects = objects_nr_added(st->objects);
	symbols_run_objects(st->symbols);
	if (maps_due(st->maps, time_ns))
		maps_publish(st->maps, time_ns, UINT64_MAX);
}

void replay_begin_slices(struct replay *r, struct store *st)
{
	uint64_t first, last, times;

	perfdata_span(r->data, &first, &last);
	times = (last - MIN(first, last)) / SLICES_MAX / SAMPLER_SLICE_NS + 1;
	r->store = st;
	r->slice_ns = times * SAMPLER_SLICE_NS;
	r->cut_ns = first;
	history_begin(st->history, first);
}

void replay_cut(struct replay *r, uint64_t time_ns)
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
	replay_cut(r, r->cut_ns + r->slice_ns);
	slices = (time_ns - r->cut_ns) / r->slice_ns;
	if (slices)
		replay_cut(r, r->cut_ns + slices * r->slice_ns);
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
static bool take_waking(struct replay *r, struct store *st, const struct record_sample *s)
{
	int event = r->events.waking ? perfdata_event_of(r->data, s->id) : -1;

	if (event < 0 || (uint32_t)event >= r->events.nr || !r->events.wakes[event])
		return false;
	replay_waits_waking(&r->waits, st, s);
	return r->events.slots[event] == COUNTERS_WAKING;
}

/* Note the progress, between records; let replaced tables be freed if no sample is held. */
static void note_progress(struct replay *r, uint64_t index, bool counting)
{
	if (index % PROGRESS_RECORDS)
		return;
	atomic_store_explicit(&r->permille, (uint32_t)(1000 * index / perfdata_nr_records(r->data)),
			      memory_order_relaxed);
	/* Unit tests replay in a thread without registration. */
	if (counting && rcu_read_ongoing())
		rcu_quiescent_state();
}

int replay_walk(struct replay *r, struct store *st, struct pipeline *p, bool side_band,
		replay_resolved_fn fn, void *ctx)
{
	int code = 0;

	for (uint32_t i = 0; i < perfdata_nr_events(r->data); i++)
		if (perfdata_event(r->data, i)->event.kernel)
			symbols_expect_kernel(st->symbols);
	for (uint64_t i = 0; i < perfdata_nr_records(r->data) && !code; i++) {
		struct reading in = { .index = i };
		struct record *rec = &in.rec;
		int bad;

		/* Relaxed: the owner waits for the thread. */
		if (atomic_load_explicit(&r->stopped, memory_order_relaxed))
			return -ECANCELED;
		note_progress(r, i, fn == replay_count);
		in.bytes = perfdata_record_part(r->data, i, r->part, &in.size, &in.layout,
						&in.is_part);
		if (fn == replay_count && in.bytes &&
		    replay_language_take(&r->language, st, p, in.bytes, in.size))
			continue;
		bad = decode(r, &in);
		if (bad == -EIO || (bad && rec->type == PERF_RECORD_SAMPLE))
			pipeline_bad_record(&r->cpus[0].samples);
		if (bad)
			continue;
		if (rec->type != PERF_RECORD_SAMPLE) {
			if (side_band)
				r->changed |= on_other(r, st, rec);
			if (fn == replay_count)
				take_switch(r, st, rec, &r->changed);
			continue;
		}
		/* One by one they are samples as any. */
		if (fn == replay_count && take_waking(r, st, &rec->sample))
			continue;
		r->changed |= replay_language_settle(&r->language, st, rec->time_ns);
		keep_up(r, st, rec->time_ns, r->changed);
		r->changed = false;
		make_room(r, st, p);
		if (resolve_record(r, st, p, &in))
			code = fn(ctx, p, &rec->sample);
		else
			pipeline_bad_record(&r->cpus[0].samples);
	}
	return code;
}

uint32_t replay_members(struct replay *r, struct record_sample *sample, int slot,
			struct pipeline_member members[static EVENTS_MAX])
{
	int event = sample->nr_reads ? perfdata_event_of(r->data, sample->id) : -1;
	bool by_task = event >= 0 && perfdata_event(r->data, (uint32_t)event)->by_task;
	uint32_t nr;

	if (!sample->nr_reads)
		return 0;
	/* In a stream there are ids of later tasks. */
	r->deltas = deltas_reserve(r->deltas, sample->nr_reads);
	nr = deltas_of_sample(r->deltas, sample, by_task ? sample->tid : 0, replay_slot_of, r,
			      members);
	for (uint32_t i = 0; i < nr; i++)
		if (members[i].event == slot)
			sample->period = members[i].count;
	return nr;
}

int replay_count(void *ctx, struct pipeline *p, const struct record_sample *sample)
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
