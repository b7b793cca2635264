// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A perf.data file through the path of a live sample: its events, its records, samples that wait
 * for names, languages, switches, how late a stream is; the source of a recording, which the
 * builder's thread reads: one profile, or one for each tick of a stream.
 */
#include "sampler/internal.h"

#include <assert.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <urcu-qsbr.h>

#include "symbols/elf/elf.h"
#include "symbols/image/image.h"
#include "symbols/name/name.h"
#include "symbols/symbols.h"

/*
 * The frames of a replay as perf script prints them, each made once. Runs on: the thread of the
 * replay. Invariant: a frame never changes; a place that gets another name is another frame.
 */

/* A place is the look-up pc: of a caller, one byte before its return address. */
static inline uint64_t frames_gap(const struct place *place, uint64_t ip)
{
	return (ip - place->offset) & 0xfff;
}

static inline uint32_t frames_way(const struct place *place, uint64_t ip)
{
	return (uint32_t)MIN(frames_gap(place, ip), FRAMES_WAYS - 1ULL);
}

static uint32_t frames_meet(struct frames *f, const struct store *st, uint32_t id, uint64_t ip);

/* Return the id of the frame at @ip, in @place. */
static inline uint32_t frames_of(struct frames *f, const struct store *st, uint32_t place,
				 uint64_t ip)
{
	const struct frames_of_place *slot = place < f->room_places ? &f->places[place] : NULL;

	if (slot && slot->place) {
		uint32_t way = frames_way(slot->place, ip);

		/* Relaxed: only a change matters. */
		if (slot->way[way].frame &&
		    slot->way[way].symbol ==
			    atomic_load_explicit(&slot->place->symbol, memory_order_relaxed))
			return slot->way[way].frame;
	}
	return frames_meet(f, st, place, ip);
}

#define FRAME_UNKNOWN 0

static const struct sampler_frame unknown = {
	.file_offset = UINT64_MAX,
	.name = TEXT("[unknown]"),
	.offset = UINT64_MAX,
	.module = TEXT("[unknown]"),
};

static uint64_t file_offset(const struct object *object, const struct place *place, uint64_t ip)
{
	uint64_t gap = frames_gap(place, ip);

	if (gap > 1 ||
	    (object->identity.kind != OBJECT_FILE && object->identity.kind != OBJECT_VDSO))
		return UINT64_MAX;
	return place->offset + gap;
}

/* Return the offset of the raw address in its function. */
static uint64_t offset_in(const struct object *object, const struct place *place,
			  const struct symbol *symbol, uint64_t ip)
{
	const struct image *image = atomic_load_explicit(&object->image, memory_order_acquire);
	uint64_t vaddr = place->offset, gap = frames_gap(place, ip);

	if (gap > 1)
		return UINT64_MAX;
	if (object->identity.kind == OBJECT_KERNEL) /* of unknown kernel code: none */
		return symbol->start ? place->offset + gap - symbol->start : UINT64_MAX;
	if (!image ||
	    (object->identity.kind == OBJECT_FILE && !image_vaddr(image, place->offset, &vaddr)))
		return UINT64_MAX;
	/* A part of the function may be before it. */
	return vaddr >= symbol->start ? vaddr + gap - symbol->start : UINT64_MAX;
}

static uint32_t frames_add(struct frames *f, const struct sampler_frame *frame)
{
	if (f->nr == f->room) {
		f->room = MAX(2 * f->room, 1024u);
		f->known = xrealloc_array(f->known, f->room, sizeof(*f->known));
	}
	assert(f->nr < f->room);
	f->known[f->nr] = *frame;
	return f->nr++;
}

static void frames_init(struct frames *f)
{
	*f = (struct frames){ 0 };
	frames_add(f, &unknown);
}

static void frames_fini(struct frames *f)
{
	free(f->known);
	free(f->places);
	*f = (struct frames){ 0 };
}

static struct frames_of_place *place_slot(struct frames *f, uint32_t place)
{
	if (place >= f->room_places) {
		uint32_t room = MAX(2 * f->room_places, (place | 1023) + 1);

		f->places = xrealloc_array(f->places, room, sizeof(*f->places));
		memset(f->places + f->room_places, 0, (room - f->room_places) * sizeof(*f->places));
		f->room_places = room;
	}
	return &f->places[place];
}

/* Return the module of kernel code, as perf prints it. */
static struct safe_text kernel_module(const struct symbol *symbol)
{
	static const char *const inside[] = { "[kernel]", "[bpf]", "[__builtin__" };

	for (size_t i = 0; symbol && i < ARRAY_SIZE(inside); i++)
		if (!strncmp(symbol->module.str, inside[i], strlen(inside[i])))
			symbol = NULL;
	return symbol ? symbol->module : TEXT("[kernel.kallsyms]");
}

static uint32_t make_frame(struct frames *f, const struct store *st, const struct place *place,
			   uint32_t symbol_id, uint64_t ip)
{
	const struct object *object = objects_at(st->objects, place->object);
	const struct symbol *symbol = symbols_at(st->symbols, symbol_id);
	struct sampler_frame frame = unknown;

	if (!object || object->identity.kind == OBJECT_UNKNOWN)
		return FRAME_UNKNOWN;
	frame.file_offset = file_offset(object, place, ip);
	frame.module = object->path.size ? object->path : object->name;
	if (object->identity.kind == OBJECT_KERNEL)
		frame.module = kernel_module(symbol);
	if (symbol && symbol->kind != '?') {
		frame.name = symbol->name;
		frame.offset = offset_in(object, place, symbol, ip);
	}
	return frames_add(f, &frame);
}

/* Return the id of a frame that is new, or has another name by now. */
static uint32_t frames_meet(struct frames *f, const struct store *st, uint32_t id, uint64_t ip)
{
	const struct place *place = id == PLACE_NONE ? NULL : places_at(st->places, id);
	struct frames_of_place *slot;
	uint32_t symbol, way;

	if (!place)
		return FRAME_UNKNOWN;
	slot = place_slot(f, id);
	slot->place = place;
	way = frames_way(place, ip);
	/* Acquire: pairs with the release in places_name(). */
	symbol = atomic_load_explicit(&place->symbol, memory_order_acquire);
	if (!slot->way[way].frame || slot->way[way].symbol != symbol) {
		slot->way[way].symbol = symbol;
		slot->way[way].frame = make_frame(f, st, place, symbol, ip);
	}
	return slot->way[way].frame;
}

/*
 * Branches and accesses to memory of the samples of a recording. Runs on: the thread of the replay.
 */

/* The most branches that fit in a record. */
#define REPLAY_BRANCHES_MAX (UINT16_MAX / 24)

static void replay_hardware_places(struct store *st, struct pipeline *p,
				   const struct record_sample *s,
				   struct pipeline_branch at[static REPLAY_BRANCHES_MAX])
{
	assert(s->nr_branches <= REPLAY_BRANCHES_MAX);
	for (uint32_t i = 0; i < s->nr_branches; i++)
		at[i] = pipeline_branch(p, s, i);
	if (pipeline_take_asked(p))
		symbols_run_objects(st->symbols);
}

/* The branches with frames, after their places are named. */
static void replay_hardware_branches(const struct store *st, struct frames *frames,
				     const struct record_sample *s,
				     const struct pipeline_branch *at, struct sampler_branch *out)
{
	for (uint32_t i = 0; i < s->nr_branches; i++) {
		out[i].branch = record_branch(s, i);
		out[i].from = frames_of(frames, st, at[i].from, out[i].branch.from);
		out[i].to = frames_of(frames, st, at[i].to, out[i].branch.to);
	}
}

/* Calls that have not returned are callers, not branches to count. */
static void count_branches(struct store *st, struct pipeline *p, const struct record_sample *s)
{
	struct pipeline_branch at[REPLAY_BRANCHES_MAX];

	if (!s->nr_branches || s->lbr_calls)
		return;
	if (!st->branches)
		st->branches = pairs_new();
	replay_hardware_places(st, p, s, at);
	for (uint32_t i = 0; i < s->nr_branches && st->branches; i++) {
		const struct record_branch b = record_branch(s, i);
		const uint64_t figures[3] = { b.mispredicted, b.predicted, b.cycles };

		if (at[i].from != PLACE_NONE && at[i].to != PLACE_NONE)
			pairs_add(st->branches, at[i].from, at[i].to, figures);
	}
}

/* Return whether the sample is of an access to memory: others have "not available" there. */
static bool is_access(const struct record_memory *m)
{
	const union perf_mem_data_src d = { .val = m->data_src };

	return m->fields & PERF_SAMPLE_DATA_SRC && d.mem_op & ~(uint64_t)PERF_MEM_OP_NA;
}

static void count_access(struct store *st, struct pipeline *p, const struct record_sample *s)
{
	const uint64_t figures[3] = { s->memory.weight, 0, 0 };
	struct pipeline_stack stack;
	struct access_kind kind;

	if (!is_access(&s->memory))
		return;
	kind = access_kind(s->memory.data_src);
	if (!st->accesses)
		st->accesses = pairs_new();
	pipeline_stack(p, &stack);
	if (st->accesses && stack.places[0] != PLACE_NONE)
		pairs_add(st->accesses, stack.places[0], profile_access_pack(&kind), figures);
}

/* Count the branches and the access of a sample that was resolved. */
static void replay_hardware_count(struct store *st, struct pipeline *p,
				  const struct record_sample *s)
{
	count_branches(st, p, s);
	count_access(st, p, s);
}

/*
 * Samples of a replay that wait for names, so that the loader names the places of many together.
 *
 * Runs on: the thread of the replay.
 */

#define HELD_MAX 512U

struct held_event {
	const char *name;
	uint64_t period;
};

struct held_sample {
	struct sampler_sample out; /* without frames */
	struct record_memory memory;
	uint32_t first; /* of its frames */
	uint32_t nr_events;
	struct held_event events[EVENTS_MAX + 1];
};

struct held {
	uint32_t nr, nr_frames;
	uint32_t *places; /* by frame */
	uint64_t *ips;
	uint32_t *ids; /* of the sample in hand */
	struct held_sample samples[HELD_MAX];
};

static inline bool held_is_full(const struct held *h)
{
	return h->nr == HELD_MAX;
}

/* Memory must not run out: it ends the program. */
static struct held *held_new(void)
{
	struct held *h = xrealloc_array(NULL, 1, sizeof(*h));

	h->nr = h->nr_frames = 0;
	h->places = xrealloc_array(NULL, HELD_MAX * STACKS_PLACES_MAX, sizeof(*h->places));
	h->ips = xrealloc_array(NULL, HELD_MAX * STACKS_PLACES_MAX, sizeof(*h->ips));
	h->ids = xrealloc_array(NULL, STACKS_PLACES_MAX, sizeof(*h->ids));
	return h;
}

static void held_free(struct held *h)
{
	free(h->places);
	free(h->ips);
	free(h->ids);
	free(h);
}

/*
 * Add a sample; not when held_is_full(). @out: event, period, frames are not used; branches are
 * borrowed until held_show().
 */
static void held_add(struct held *h, const struct sampler_sample *out,
		     const struct pipeline_stack *stack, const struct held_event *events,
		     uint32_t nr_events)
{
	struct held_sample *s = &h->samples[h->nr++];

	assert(h->nr <= HELD_MAX && stack->nr <= STACKS_PLACES_MAX);
	s->out = *out;
	s->memory = *out->memory;
	s->out.memory = &s->memory;
	s->out.nr_frames = stack->nr;
	s->first = h->nr_frames;
	memcpy(h->places + s->first, stack->places, stack->nr * sizeof(*h->places));
	memcpy(h->ips + s->first, stack->ips, stack->nr * sizeof(*h->ips));
	h->nr_frames += stack->nr;
	s->nr_events = nr_events;
	memcpy(s->events, events, nr_events * sizeof(*events));
}

static int show(struct held *h, struct held_sample *s, struct frames *frames,
		const struct store *st, sampler_sample_fn fn, void *ctx)
{
	const uint64_t *ips = h->ips + s->first;
	int code = 0;

	for (uint32_t i = 0; i < s->out.nr_frames; i++)
		h->ids[i] = frames_of(frames, st, h->places[s->first + i], ips[i]);
	s->out.known = frames->known;
	s->out.frames = h->ids;
	s->out.ips = ips;
	for (uint32_t i = 0; i < s->nr_events && !code; i++) {
		s->out.event = s->events[i].name;
		s->out.period = s->events[i].period;
		code = fn(ctx, &s->out);
	}
	return code;
}

/* Call @fn for each event of each sample, and forget them. Non-zero: @fn stopped. */
static int held_show(struct held *h, struct frames *frames, const struct store *st,
		     sampler_sample_fn fn, void *ctx)
{
	int code = 0;

	for (uint32_t i = 0; i < h->nr && !code; i++)
		code = show(h, &h->samples[i], frames, st, fn, ctx);
	h->nr = h->nr_frames = 0;
	return code;
}

/*
 * Functions and frames of languages in a recording. Runs on: the thread that replays.
 *
 * Records of languages in a recording of ours. They are foreign bytes: lang_record.c checks them.
 */

static void replay_language_fini(struct replay_language *l)
{
	free(l->codes);
}

/* Take code, a method or a chain of a JVM. */
static void take_java(struct replay_language *l, struct store *st, const struct code_text *text)
{
	const struct mapping *m;
	struct maps_hit hit;
	uint64_t addr, time_ns;
	pid_t pid;

	if (!symbols_java_process(text, &pid, &addr, &time_ns))
		return;
	if (!l->java)
		maps_publish(st->maps, time_ns, UINT64_MAX);
	l->java = true;
	maps_find(st->maps, maps_tasks(st->maps), pid, pid, time_ns, &hit);
	m = hit.space ? space_find(hit.space, addr, time_ns) : NULL;
	if (m && m->object->identity.kind == OBJECT_ANON)
		symbols_java_replay(st->symbols, m->object, text);
}

/* Before a sample: let it find the Java code that was taken. True: the maps changed. */
static bool replay_language_settle(struct replay_language *l, struct store *st, uint64_t time_ns)
{
	if (!l->java)
		return false;
	l->java = false;
	return symbols_java_settle(st->symbols, time_ns);
}

/* Add a function of a script. */
static void take_function(struct replay_language *l, struct store *st, const uint8_t *bytes,
			  size_t size)
{
	struct code_text text;
	struct code_key key = { 0 };
	uint32_t number;

	if (lang_record_function(bytes, size, &number, &text))
		return;
	if (text.language == LANG_JAVA) {
		take_java(l, st, &text);
		return;
	}
	if (!array_reserve(&l->codes, &l->max, number + 1ull))
		return;
	while (l->nr <= number)
		l->codes[l->nr++] = CODE_NONE;
	key.process = number / SCRIPT_FUNCTIONS_PROCESS_MAX;
	key.address = number;
	text.user = key.process; /* all of a recording have room */
	if (l->codes[number] == CODE_NONE)
		l->codes[number] = script_functions_add(symbols_codes(st->symbols), &key, &text);
}

/* Take the frames of the next sample; false: they make no sense. */
static bool take_frames(struct replay_language *l, const uint8_t *bytes, size_t size)
{
	struct lang_frames *f = &l->frames;

	if (lang_record_frames(bytes, size, f))
		return false;
	assert(f->other.size <= sizeof(l->stack));
	if (f->other.size)
		memcpy(l->stack, f->other.bytes, f->other.size);
	f->other.bytes = l->stack;
	for (uint32_t i = 0; i < f->nr; i++) {
		uint32_t number = lang_entry_number(f->entries[i]);

		if (!(f->entries[i] & LANG_ENTRY))
			continue;
		number = number < l->nr ? l->codes[number] : CODE_NONE;
		/* A function that is not in the file: its frame is left out. */
		if (number == CODE_NONE)
			f->outcome = LANG_OUTCOME_GUESSED;
		f->entries[i] =
			lang_entry(MIN(number, CODE_UNNAMED), lang_entry_instr(f->entries[i]));
	}
	return true;
}

/* Take a record of languages; false: it is another one. */
static bool replay_language_take(struct replay_language *l, struct store *st, struct pipeline *p,
				 const uint8_t *bytes, size_t size)
{
	uint64_t time_ns;

	switch (lang_record_kind(bytes, size, &time_ns)) {
	case LANG_RECORD_FUNCTION:
		take_function(l, st, bytes, size);
		return true;
	case LANG_RECORD_FRAMES:
		if (take_frames(l, bytes, size))
			pipeline_set_frames(p, &l->frames);
		return true;
	default:
		return false;
	}
}

/* A recording while it is replayed. One thread. */

#define REPLAY_CPUS_MAX 4096

/* Bytes of a sample that are read at first: most stacks are much smaller than their copies. */
#define REPLAY_PART_MIN 2048

#define REPLAY_PART_MAX (64 << 10)

/* Called for each sample with its stack. Non-zero stops. */
typedef int (*replay_resolved_fn)(void *ctx, struct pipeline *p,
				  const struct record_sample *sample);

/*
 * The samples of a recording one by one, with their stacks and names, as perf script prints them.
 */

struct each {
	struct replay *replay;
	struct store *store;
	struct held *held;
	const struct event *events; /* by slot */
	sampler_sample_fn fn;
	void *ctx;
};

/* Return the name of an event in the file: that of waits is another one there. */
static const char *event_name(const struct each *each, int slot, uint64_t id)
{
	bool other = slot == each->replay->waits.slot || slot >= EVENTS_MAX;
	int event = other ? perfdata_event_of(each->replay->data, id) : -1;

	assert(slot >= 0);
	if (event >= 0)
		return perfdata_event(each->replay->data, (uint32_t)event)->event.name;
	return slot >= 0 && slot < EVENTS_MAX ? each->events[slot].name : "?";
}

static int replay_slot_of(void *ctx, uint64_t id);
static uint32_t members_of(struct replay *r, struct record_sample *sample, int slot,
			   struct pipeline_member members[static EVENTS_MAX]);

/* The event of a sample, and each that is counted with it: as perf script prints them. */
static uint32_t find_events(const struct each *each, const struct record_sample *sample,
			    struct held_event out[static EVENTS_MAX + 1])
{
	struct pipeline_member members[EVENTS_MAX];
	struct record_sample s = *sample;
	int slot = replay_slot_of(each->replay, s.id);
	uint32_t nr = members_of(each->replay, &s, slot, members), nr_out = 0;

	out[nr_out++] = (struct held_event){
		.name = event_name(each, slot, s.id),
		.period = s.period,
	};
	for (uint32_t i = 0; i < nr; i++) {
		/* Wake-ups are no event of the session. */
		if (members[i].event != slot && members[i].event < EVENTS_MAX)
			out[nr_out++] = (struct held_event){ each->events[members[i].event].name,
							     members[i].count };
	}
	return nr_out;
}

/* Name the places that are met for the first time. */
static void name_places(struct replay *r, struct store *st)
{
	if (places_nr(st->places) == r->nr_named)
		return;
	symbols_run(st->symbols);
	r->nr_named = places_nr(st->places);
}

/* Find the frames of both ends of each branch. */
static void find_branches(struct replay *r, struct store *st, struct pipeline *p,
			  const struct record_sample *sample)
{
	struct pipeline_branch at[REPLAY_BRANCHES_MAX];

	if (!sample->nr_branches)
		return;
	r->branches = xrealloc_array(r->branches, ARRAY_SIZE(at), sizeof(*r->branches));
	replay_hardware_places(st, p, sample, at);
	name_places(r, st);
	replay_hardware_branches(st, &r->frames, sample, at, r->branches);
}

/* Show the samples that are held. */
static int show_held(const struct each *each)
{
	name_places(each->replay, each->store);
	return held_show(each->held, &each->replay->frames, each->store, each->fn, each->ctx);
}

static int show_sample(void *arg, struct pipeline *p, const struct record_sample *sample)
{
	const struct each *each = arg;
	struct replay *r = each->replay;
	struct held_event events[EVENTS_MAX + 1];
	struct pipeline_stack stack;
	const struct task *task;
	/* Of one sample only: they are in memory that the next one uses. */
	int code = sample->nr_branches ? show_held(each) : 0;

	if (code)
		return code;
	pipeline_stack(p, &stack);
	task = maps_task(each->store->maps, stack.task);
	find_branches(r, each->store, p, sample);
	held_add(each->held,
		 &(struct sampler_sample){
			 .comm = task ? task->comm : TEXT("?"),
			 .pid = (pid_t)sample->pid,
			 .tid = (pid_t)sample->tid,
			 .cpu = sample->cpu,
			 .time_ns = sample->time_ns,
			 .nr_kernel = stack.nr_kernel,
			 .branches = r->branches,
			 .nr_branches = sample->nr_branches,
			 .memory = &sample->memory,
			 .stop = stack.nr_guessed ? "guessed" : unwind_stop_name(stack.stop),
		 },
		 &stack, events, find_events(each, sample, events));
	return sample->nr_branches || held_is_full(each->held) ? show_held(each) : 0;
}

static int replay_walk(struct replay *r, struct store *st, struct pipeline *p, bool side_band,
		       replay_resolved_fn fn, void *ctx);

/* The samples one by one with their stacks, after replay_run(). @events: of the config, by slot.
 * Stops when @fn returns non-zero. */
static int replay_each(struct replay *r, struct store *st, const struct event *events,
		       sampler_sample_fn fn, void *ctx)
{
	struct each each = { .replay = r, .store = st, .events = events, .fn = fn, .ctx = ctx };
	struct pipeline *p;
	int code = pipeline_new(&p, sampler_thread_tables(st->shared), NULL);

	if (code)
		return code;
	each.held = held_new();
	code = replay_walk(r, st, p, true, show_sample, &each);
	if (!code)
		code = show_held(&each);
	held_free(each.held);
	pipeline_free(p);
	return code;
}

/* Return one line on a recording that is cut short or damaged; "" if it is whole. Borrowed. */
static const char *replay_note(const struct replay *r)
{
	return r->data ? perfdata_info(r->data).found->note : r->kept_result.note;
}

void replay_missing(const struct replay *r, struct sampler_missing *out)
{
	*out = (struct sampler_missing){
		.note = replay_note(r),
		/* No other sample is dropped here. */
		.nr_dropped = r->cpus[0].samples.dropped[DROP_BAD_RECORD],
		/* The sum includes the samples of LOST records. */
		.nr_lost = MAX(r->lost_samples, r->lost_records),
	};
}

/*
 * Waits of a recording: its records of switches and wake-ups, and stacks of context-switches, into
 * the same counts as live. Runs on: the thread that replays.
 *
 * Records of a recording as steps of tasks. They are in order of time already: there are no queues.
 */

/* Return whether the samples of this event are the stacks of switches. */
static bool replay_waits_is_stack(const struct perfdata_event *ev)
{
	return ev->event.type == PERF_TYPE_SOFTWARE &&
	       ev->event.config == PERF_COUNT_SW_CONTEXT_SWITCHES;
}

/* Return whether the samples of this event are wake-ups. *@alone: they show nothing else. */
static bool replay_waits_is_waking(const struct perfdata_event *ev, bool *alone)
{
	*alone = !(ev->layout.sample_type & (PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_STACK_USER));
	/* Where some wake-ups are missing, a run queue would begin at some of them. */
	return ev->event.type == PERF_TYPE_TRACEPOINT && ev->period == 1 &&
	       ev->layout.sample_type & PERF_SAMPLE_RAW && !strcmp(ev->event.name, WAKING_NAME);
}

/* Begin, with no task known. 0 or -ENOMEM. */
static int replay_waits_begin(struct replay_waits *w, struct store *st)
{
	w->account = (struct profile_waits){ 0 };
	if (w->slot < 0)
		return 0;
	if (!st->waits)
		return store_open_waits(st, 0, w->latency);
	waits_restart(st->waits);
	return 0;
}

/* Take a step of a task other than the idle one; the number of one that has exited is -1. */
static void step(struct store *st, const struct switch_note *note)
{
	const struct waits_tables t = store_waits_tables(st);

	if (note->tid > 0)
		waits_step(st->waits, &t, note);
}

static struct switch_note note_of(uint32_t pid, uint32_t tid, enum task_step step, uint64_t time_ns)
{
	return (struct switch_note){
		.time_ns = time_ns,
		.pid = (pid_t)pid,
		.tid = (pid_t)tid,
		.stack = STACK_NONE,
		.step = step,
	};
}

/* Take a record that is no sample. */
static void replay_waits_record(struct replay_waits *w, struct store *st, const struct record *rec)
{
	enum task_step out = rec->change.preempt ? STEP_PREEMPTED : STEP_OUT;
	struct switch_note note = note_of(rec->pid, rec->tid, out, rec->time_ns);

	if (w->slot < 0 || !rec->time_ns)
		return;
	switch (rec->type) {
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		if (!rec->change.out)
			note.step = STEP_IN;
		break;
	case PERF_RECORD_FORK:
		note = note_of(rec->task.pid, rec->task.tid, STEP_BORN, rec->task.time_ns);
		/* perf makes up such records of tasks that exist already, without a time. */
		if (!rec->task.time_ns)
			return;
		break;
	case PERF_RECORD_EXIT:
		note = note_of(rec->task.pid, rec->task.tid, STEP_EXIT, rec->task.time_ns);
		break;
	case PERF_RECORD_COMM:
		if (!rec->comm.exec)
			return;
		note = note_of(rec->comm.pid, rec->comm.tid, STEP_EXEC, rec->time_ns);
		break;
	default:
		return;
	}
	step(st, &note);
}

/* Take a wake-up. */
static void replay_waits_waking(struct replay_waits *w, struct store *st,
				const struct record_sample *s)
{
	struct switch_note note;
	uint32_t tid;

	if (w->slot < 0 || s->raw_size < WAKING_PID_OFFSET + sizeof(tid))
		return;
	memcpy(&tid, s->raw + WAKING_PID_OFFSET, sizeof(tid));
	note = note_of(0, tid, STEP_WOKEN, s->time_ns);
	w->account.waking = true;
	step(st, &note);
}

/* Take the stack of the switch that follows; STACK_NONE: it could not be counted. */
static void replay_waits_stack(struct replay_waits *w, struct store *st,
			       const struct record_sample *s, uint32_t stack)
{
	struct switch_note note = note_of(s->pid, s->tid, STEP_STACK, s->time_ns);

	note.stack = stack;
	note.period = (uint32_t)MIN(s->period, UINT32_MAX);
	note.generation = SWITCH_GENERATION(store_waits_tables(st).generation);
	step(st, &note);
}

/* Take the sample of a running task that @p has counted. */
static void replay_waits_sample(struct replay_waits *w, struct store *st, const struct pipeline *p,
				const struct record_sample *s)
{
	struct switch_note note = note_of(s->pid, s->tid, STEP_SAMPLE, s->time_ns);

	note.period = (uint32_t)MIN(s->period, UINT32_MAX);
	note.generation = SWITCH_GENERATION(store_waits_tables(st).generation);
	note.stack = pipeline_counted(p, &note.task);
	if (note.stack != STACK_NONE)
		step(st, &note);
}

/* Add the figures of a slice. */
static void add_account(struct profile_waits *to, const struct profile_waits *from)
{
	to->switched += from->switched;
	to->with_stack += from->with_stack;
	to->without_stack += from->without_stack;
	to->lost += from->lost;
	to->odd += from->odd;
	to->late += from->late;
	to->queue_ns += from->queue_ns;
	to->tasks = from->tasks;
}

/* Before the counts of a slice are taken: add the times up to @now_ns. */
static void replay_waits_cut(struct replay_waits *w, struct store *st, uint64_t now_ns)
{
	struct profile_waits slice;
	struct waits_tables t;

	if (w->slot < 0 || !st->waits)
		return;
	t = store_waits_tables(st);
	waits_count(st->waits, &t, (uint32_t)w->slot, now_ns, &slice);
	add_account(&w->account, &slice);
}

/* Events of a file as slots of a session. */

/* Return whether the file has records of switches. */
static bool has_switches(const struct perfdata *data, uint32_t nr)
{
	bool switches = false;

	for (uint32_t i = 0; i < nr; i++)
		switches |= perfdata_event(data, i)->switches;
	return switches;
}

/* Return whether the samples of the event are only the wake-ups of waits. */
static bool is_wake_up(const struct replay_events *v, const struct perfdata_event *ev)
{
	bool alone;

	return v->switches && replay_waits_is_waking(ev, &alone) && alone;
}

/* Return whether the event is no more than a part of others. */
static bool is_hidden(const struct replay_events *v, const struct perfdata_event *ev)
{
	return ev->dummy || is_wake_up(v, ev);
}

/* Return whether event @index is one of the EVENTS_MAX that have most samples. */
static bool is_shown(const struct replay_events *v, const struct perfdata *data, uint32_t index)
{
	const struct perfdata_event *ev = perfdata_event(data, index);
	uint32_t nr_before = 0;

	for (uint32_t i = 0; i < v->nr; i++) {
		const struct perfdata_event *other = perfdata_event(data, i);

		nr_before += !is_hidden(v, other) &&
			     (other->nr_samples > ev->nr_samples ||
			      (other->nr_samples == ev->nr_samples && i < index));
	}
	return nr_before < EVENTS_MAX;
}

/* Take an event with a separate rate or period. */
static void take_recorded(struct event *out, const struct perfdata_event *ev)
{
	*out = ev->event;
	out->hz = ev->hz;
	out->period = ev->period;
	/* The period of a clock is a rate. */
	if (ev->event.clock && ev->period) {
		out->hz = 1e9 / (double)ev->period;
		out->period = 0;
	}
}

/* Stacks of switches are stacks of waits if the switches are in the file as well. */
static void take_waits(struct replay_events *v, const struct perfdata *data,
		       struct sampler_config *config)
{
	v->wait = -1;
	for (uint32_t i = 0; i < v->nr && v->switches && v->wait < 0; i++)
		if (v->slots[i] >= 0 && v->slots[i] < EVENTS_MAX &&
		    replay_waits_is_stack(perfdata_event(data, i)))
			v->wait = v->slots[i];
	if (v->switches && v->wait < 0 && config->nr_events < EVENTS_MAX)
		v->wait = (int)config->nr_events++;
	if (v->wait < 0)
		return;
	event_parse(&config->events[v->wait], EVENT_WAITS, NULL);
}

/* Take how the stacks of the events in the file were recorded. */
static void take_stacks(const struct replay_events *v, const struct perfdata *data,
			struct sampler_config *config)
{
	bool chain = false;

	config->stack_size = 0;
	for (uint32_t i = 0; i < v->nr; i++) {
		const struct perfdata_event *ev = perfdata_event(data, i);

		if (ev->dummy)
			continue;
		config->stack_size = MAX(config->stack_size, ev->stack_size);
		chain |= ev->user_chain;
	}
	config->call_graph = config->stack_size ? CALL_GRAPH_DWARF
			     : chain		? CALL_GRAPH_FP
						: CALL_GRAPH_OFF;
}

/*
 * Take the events of the file that have samples into @config, in the order of the file, and how
 * stacks were recorded.
 */
static void replay_events_take(struct replay_events *v, const struct perfdata *data,
			       struct sampler_config *config)
{
	config->nr_events = 0;
	config->hz = 0;
	config->period = 1; /* an event without a rate has none of the session either */
	v->nr = MIN(perfdata_info(data).nr_events, (uint32_t)ARRAY_SIZE(v->slots));
	v->switches = has_switches(data, v->nr);
	for (uint32_t i = 0; i < v->nr; i++) {
		const struct perfdata_event *ev = perfdata_event(data, i);
		bool alone;

		v->slots[i] = ev->dummy ? PIPELINE_EVENT_UNKNOWN : PIPELINE_EVENT_LIMIT;
		v->wakes[i] = replay_waits_is_waking(ev, &alone);
		v->waking |= v->wakes[i];
		if (is_hidden(v, ev) || !is_shown(v, data, i))
			continue;
		v->slots[i] = (int)config->nr_events;
		take_recorded(&config->events[config->nr_events++], ev);
	}
	take_waits(v, data, config);
	/* Without waits they are of an event that is not shown. */
	for (uint32_t i = 0; i < v->nr && v->wait >= 0; i++)
		if (is_wake_up(v, perfdata_event(data, i)))
			v->slots[i] = COUNTERS_WAKING;
	take_stacks(v, data, config);
	event_groups_tidy(config->events, config->nr_events);
}

/*
 * Walk over the records of a recording: decode, apply or unwind, count.
 *
 * Records are in time order, so a mapping is applied before the samples that need it, and published
 * with the first of them. Runs on: the thread of the replay.
 */

/* Objects and processes are requested one after the other: a stack needs each of its objects. */
#define REPLAY_TRIES_MAX 64

/* The tables grow after this number of samples, or when they are crowded. */
#define REPLAY_ROOM_EVERY 4096

#define PROGRESS_RECORDS 256 /* from one note of the progress to the next */
#define SLICES_MAX	 12000

static struct replay_cpu *cpu_of(struct replay *r, uint32_t cpu)
{
	if (cpu >= REPLAY_CPUS_MAX)
		cpu = 0;
	r->nr_cpus = MAX(r->nr_cpus, cpu + 1);
	return &r->cpus[cpu];
}

/* Return the slot of the event with this id, or PIPELINE_EVENT_UNKNOWN. @ctx: struct replay. */
static int replay_slot_of(void *ctx, uint64_t id)
{
	const struct replay *r = ctx;
	int event = perfdata_event_of(r->data, id);
	return event < 0 || (uint32_t)event >= r->events.nr ? PIPELINE_EVENT_UNKNOWN
							    : r->events.slots[event];
}

/* A record that is read. */
struct replay_walk_reading {
	uint64_t index;
	const uint8_t *bytes; /* NULL: reading failed */
	size_t size;
	const struct record_layout *layout;
	bool is_part; /* see perfdata_record_part() */
	struct record rec;
};

/* Limit the times of a record, as struct perfdata_found has them. */
static void limit_times(const struct replay *r, struct record *rec)
{
	if (rec->type == PERF_RECORD_SAMPLE && rec->time_ns >= PERFDATA_TIME_NONE)
		rec->time_ns = perfdata_info(r->data).found->last_sample_ns;
	rec->time_ns = MIN(rec->time_ns, PERFDATA_TIME_MAX);
	if (rec->type == PERF_RECORD_SAMPLE)
		rec->sample.time_ns = rec->time_ns;
	else if (rec->type == PERF_RECORD_FORK || rec->type == PERF_RECORD_EXIT)
		rec->task.time_ns = MIN(rec->task.time_ns, PERFDATA_TIME_MAX);
}

/* Decode the bytes. As record_decode(), or -EIO. */
static int decode(const struct replay *r, struct replay_walk_reading *in)
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

/*
 * User chains that the kernel recorded at the return to user space (perf record --call-graph
 * fp,defer): in a record after the sample's, by task and number. All of the records that are in
 * order are collected when the first sample needs one.
 */

/* Together. Chains beyond it are missing: their samples have no user callers. */
#define CHAIN_IPS_MAX (32U << 20)

struct replay_chain {
	uint64_t cookie;
	uint32_t tid, at, nr; /* @at: the first in replay_chains.ips */
};

static int by_task_and_number(const void *pa, const void *pb)
{
	const struct replay_chain *a = pa, *b = pb;

	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	return a->cookie < b->cookie ? -1 : a->cookie > b->cookie;
}

static void add_chain(struct replay_chains *c, uint32_t tid, const struct record_chain *chain)
{
	if (chain->nr > CHAIN_IPS_MAX - c->nr_ips ||
	    !array_reserve(&c->ips, &c->max_ips, c->nr_ips + chain->nr) ||
	    !array_reserve(&c->list, &c->max, c->nr + 1ull))
		return;
	memcpy(c->ips + c->nr_ips, chain->ips, chain->nr * sizeof(*c->ips));
	c->list[c->nr++] = (struct replay_chain){
		.cookie = chain->cookie, .at = c->nr_ips, .tid = tid, .nr = (uint32_t)chain->nr
	};
	c->nr_ips += (uint32_t)chain->nr;
}

/* Collect the chains of all records. Bytes of the current record are gone then. */
static void collect_chains(struct replay *r)
{
	for (uint64_t i = 0; i < perfdata_info(r->data).nr_records; i++) {
		struct replay_walk_reading in = { .index = i };
		struct perf_event_header h;

		in.bytes = perfdata_record_part(r->data, i, REPLAY_PART_MIN, &in.size, &in.layout,
						&in.is_part);
		if (!in.bytes || in.size < sizeof(h))
			continue;
		memcpy(&h, in.bytes, sizeof(h));
		if (h.type == RECORD_CHAIN_DEFERRED && !decode(r, &in))
			add_chain(&r->chains, in.rec.tid, &in.rec.chain);
	}
	if (r->chains.nr)
		qsort(r->chains.list, r->chains.nr, sizeof(*r->chains.list), by_task_and_number);
	r->chains.collected = true;
}

static void forget_chains(struct replay_chains *c)
{
	c->nr = 0;
	c->nr_ips = 0;
	c->collected = false;
}

/* Put the user chain of another record behind that of a sample, in place of its number. */
static void join_chain(struct replay *r, struct record_sample *s)
{
	const struct replay_chain key = { .cookie = record_deferred(s), .tid = s->tid };
	struct replay_chains *c = &r->chains;
	const struct replay_chain *found;

	found = c->nr ? bsearch(&key, c->list, c->nr, sizeof(key), by_task_and_number) : NULL;
	if (found && array_reserve(&c->joined, &c->max_joined, s->nr_chain + found->nr))
		record_join(s, c->joined, c->ips + found->at, found->nr);
}

/* Complete the chain of a sample, if it is in two records. False: reading failed. */
static bool complete_chain(struct replay *r, struct replay_walk_reading *in)
{
	if (!record_deferred(&in->rec.sample))
		return true;
	if (!r->chains.collected) {
		collect_chains(r);
		in->bytes = perfdata_record_part(r->data, in->index, r->part, &in->size,
						 &in->layout, &in->is_part);
		if (decode(r, in) || in->rec.type != PERF_RECORD_SAMPLE ||
		    !record_deferred(&in->rec.sample))
			return false;
	}
	join_chain(r, &in->rec.sample);
	return true;
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
			   struct replay_walk_reading *in)
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
	if (record_deferred(&in->rec.sample))
		join_chain(r, &in->rec.sample);
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

/* Choose the length of slices: a multiple of 50 ms, a small part of the recording. */
static void replay_begin_slices(struct replay *r, struct store *st)
{
	const struct perfdata_found *found = perfdata_info(r->data).found;
	uint64_t first = found->first_sample_ns, last = found->last_sample_ns, times;

	times = (last - MIN(first, last)) / SLICES_MAX / COUNTS_SLICE_NS + 1;
	r->store = st;
	r->slice_ns = times * COUNTS_SLICE_NS;
	r->cut_ns = first;
	history_begin(st->history, first);
}

/* End the slice at @time_ns. */
static void replay_cut(struct replay *r, uint64_t time_ns)
{
	struct count *counts = NULL;
	uint32_t nr = 0;

	replay_waits_cut(&r->waits, r->store, time_ns);
	if (counts_swap(r->store->counts, &counts, &nr) ||
	    history_add(r->store->history, counts, nr, time_ns - r->cut_ns))
		r->out_of_memory = true;
	r->cut_ns = time_ns;
}

/* Return the end of the slice that has begun: on the grid of the clock, as live. */
static uint64_t slice_end(const struct replay *r)
{
	return (r->cut_ns / r->slice_ns + 1) * r->slice_ns;
}

/* End the slice before a sample of @time_ns, and the gap between them. */
static void cut_slices(struct replay *r, uint64_t time_ns)
{
	if (time_ns < slice_end(r))
		return;
	replay_cut(r, slice_end(r));
	if (time_ns >= slice_end(r))
		replay_cut(r, time_ns / r->slice_ns * r->slice_ns);
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
	pipeline_use(p, sampler_thread_tables(st->shared), NULL);
}

/* Take a record of a switch, or of a task's begin or end. *@changed: the maps, since published. */
static void take_switch(struct replay *r, struct store *st, const struct record *rec, bool *changed)
{
	bool is_switch = rec->type == PERF_RECORD_SWITCH ||
			 rec->type == PERF_RECORD_SWITCH_CPU_WIDE;

	if (r->waits.slot < 0)
		return;
	if (is_switch && rec->time_ns >= slice_end(r)) {
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
	atomic_store_explicit(&r->permille,
			      (uint32_t)(1000 * index / perfdata_info(r->data).nr_records),
			      memory_order_relaxed);
	/* Unit tests replay in a thread without registration. */
	if (counting && rcu_read_ongoing())
		rcu_quiescent_state();
}

static int replay_count(void *ctx, struct pipeline *p, const struct record_sample *sample);

/*
 * Walk the records in order; frames of languages are for counting only. 0, -ECANCELED after
 * replay_stop(), or the result of @fn.
 */
static int replay_walk(struct replay *r, struct store *st, struct pipeline *p, bool side_band,
		       replay_resolved_fn fn, void *ctx)
{
	const struct perfdata_info info = perfdata_info(r->data);
	int code = 0;

	/* A stream has others each time. */
	forget_chains(&r->chains);
	for (uint32_t i = 0; i < info.nr_events; i++)
		if (perfdata_event(r->data, i)->event.kernel)
			symbols_expect_kernel(st->symbols);
	for (uint64_t i = 0; i < info.nr_records && !code; i++) {
		struct replay_walk_reading in = { .index = i };
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
		if (complete_chain(r, &in) && resolve_record(r, st, p, &in))
			code = fn(ctx, p, &rec->sample);
		else
			pipeline_bad_record(&r->cpus[0].samples);
	}
	return code;
}

static uint32_t members_of(struct replay *r, struct record_sample *sample, int slot,
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

/* Count one sample: the replay_resolved_fn of replay_run(). @ctx: struct replay. */
static int replay_count(void *ctx, struct pipeline *p, const struct record_sample *sample)
{
	struct replay *r = ctx;
	struct replay_cpu *cpu = cpu_of(r, sample->cpu);
	struct pipeline_member members[EVENTS_MAX];
	struct record_sample s = *sample;
	int slot = replay_slot_of(r, s.id);
	uint32_t nr = members_of(r, &s, slot, members);

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

/*
 * How late the records of a stream are. The clocks of both machines differ by an unknown time: the
 * fastest transfer so far counts as 0. Zero-initialised is empty; one thread.
 */

/* Note that the newest record, of @record_ns, has arrived by @now_ns. */
static inline void arrival_note(struct arrival *a, uint64_t record_ns, uint64_t now_ns)
{
	int64_t late_ns = (int64_t)(now_ns - record_ns);

	if (record_ns <= a->newest_ns)
		return;
	if (!a->newest_ns || late_ns < a->least_ns)
		a->least_ns = late_ns;
	a->newest_ns = record_ns;
}

/* Return how late a record of @record_ns is at @now_ns; 0: unknown. */
static inline uint64_t arrival_delay_ns(const struct arrival *a, uint64_t record_ns,
					uint64_t now_ns)
{
	int64_t late_ns = (int64_t)(now_ns - record_ns) - a->least_ns;

	return a->newest_ns && record_ns && late_ns > 0 ? (uint64_t)late_ns : 0;
}

#define REPLAY_CELLS_MIN (1u << 9)
#define REPLAY_CELLS_MAX (1u << 23)

/* Return the e_machine of the recorded CPU; 0: this one's, or not known. */
static uint16_t replay_machine(const struct replay *r)
{
	return r->data ? unwind_machine(perfdata_info(r->data).machine) : 0;
}

/* A recording without copies of user stacks may be of any CPU. */
static int check_machine(const struct replay *r, const char *path, struct err *e)
{
	const char *machine = perfdata_info(r->data).machine;
	char clean[PERFDATA_MACHINE_MAX * 4];
	bool stacks = false;

	for (uint32_t i = 0; i < perfdata_info(r->data).nr_events; i++)
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
	int code = keep_read_open(&r->kept, config, e);

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

static int open_recorded(struct replay *r, struct sampler_config *config, bool waits, struct err *e)
{
	int code = (config->follow ? perfdata_open_stream : perfdata_open_step)(&r->data,
										config->replay,
										config->reading, e);

	if (code)
		return code;
	perfdata_stop_by(r->data, &r->stopped);
	r->stream = perfdata_info(r->data).stream_fd >= 0;
	code = check_machine(r, config->replay, e);
	if (code)
		return code;
	/* Libunwind alone may read more of a stack than rows do. */
	r->part = config->verify_every ? 0 : 2 * REPLAY_PART_MIN;
	r->deltas = deltas_new(perfdata_info(r->data).nr_ids);
	if (!r->deltas)
		return err_set(e, -ENOMEM, "no memory for the events of the recording");
	replay_events_take(&r->events, r->data, config);
	r->waits.slot = r->events.wait;
	r->waits.latency = r->waits.slot < 0 ? -1 : config_latency_slot(config);
	if (!waits || r->waits.slot >= 0)
		return 0;
	return err_set(e, -ENODATA,
		       "%.300s: no records of switches: waiting time is not known\n"
		       "  it was recorded without them\n"
		       "  'perf record -e cpu-clock,context-switches/period=1/ "
		       "--switch-events --call-graph dwarf', or proftop --time=all --record",
		       config->replay);
}

/* Read the file; its events go into @config. 0 or -errno with a sentence. */
static int replay_open(struct replay **out, struct sampler_config *config, struct err *e)
{
	struct replay *r = xcalloc(1, sizeof(*r));
	bool waits = config_wait_slot(config) >= 0;
	int code;

	r->cpus = xcalloc(REPLAY_CPUS_MAX, sizeof(*r->cpus));
	frames_init(&r->frames);
	code = (is_folder(config->replay) ? open_kept : open_recorded)(r, config, waits, e);
	if (code)
		replay_close(r);
	else
		*out = r;
	return code;
}

/* The kernel that it was recorded on. Borrowed. */
static const struct kernel_identity *replay_kernel(const struct replay *r)
{
	static const struct kernel_identity none;

	return r->data ? perfdata_info(r->data).kernel : &none;
}

/* Return whether all times are of the clock that JITs use in their jitdumps. */
static bool replay_monotonic(const struct replay *r)
{
	bool all = true;

	for (uint32_t i = 0; r->data && i < perfdata_info(r->data).nr_events; i++)
		all &= perfdata_event(r->data, i)->monotonic;
	return all;
}

static void replay_stop(struct replay *r)
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
	free(r->chains.list);
	free(r->chains.ips);
	free(r->chains.joined);
	replay_language_fini(&r->language);
	free(r->cpus);
	free(r);
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
	*out = (struct replay_result){
		.cpus = r->cpus,
		.nr_cpus = 1,
		.span_ns = MAX(k->last_ns - k->first_ns, 1),
		.interval_ns = MAX(k->last_ns - k->first_ns, 1),
		.host = "",
		.date_ns = k->last_ns,
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

/*
 * In steps, for a pipe (config.follow): begin; more, feed and perfdata_drop() while replay_more()
 * is true and once after it; result at any time; end.
 */
static int replay_begin(struct replay *r, struct store *st)
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

/* Count the records that are there. */
static int replay_feed(struct replay *r, struct store *st)
{
	const struct perfdata_info info = perfdata_info(r->data);

	if (!r->sliced && (info.found->first_sample_ns || info.stream_fd < 0)) {
		replay_begin_slices(r, st);
		r->sliced = true;
	}
	r->nr_records += info.nr_records;
	return replay_walk(r, st, r->pipeline, true, replay_count, r);
}

/* Read more of a pipe. @idle: as for perfdata_more(). */
static bool replay_more(struct replay *r, bool idle)
{
	bool more = perfdata_more(r->data, idle);

	arrival_note(&r->arrival, perfdata_info(r->data).found->max_ns, time_now_ns());
	return more;
}

/* Return a descriptor that is readable when a pipe has more; -1: all is read. */
static int replay_fd(const struct replay *r)
{
	return r->data ? perfdata_info(r->data).stream_fd : -1;
}

/*
 * Get the result so far. Of a stream: the machine, foreign bytes, "" if it is not known; the age of
 * the newest sample that is counted, by the recorder's clock: age 0 is the fastest transfer so far.
 */
static void replay_result(struct replay *r, struct store *st, struct replay_result *out)
{
	const struct perfdata_info info = perfdata_info(r->data);
	uint64_t first = info.found->first_sample_ns, last = info.found->last_sample_ns, extra;

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
		.host = info.host,
		.date_ns = info.date_ns,
		.delay_ns = arrival_delay_ns(&r->arrival, r->fed_ns, time_now_ns()),
	};
	out->waits = r->waits.account;
	pipeline_unwind_stats(r->pipeline, &out->unwind);
}

static void replay_next(struct replay *r)
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

/* The next result has only the samples and figures that follow. */
static void replay_end(struct replay *r)
{
	pipeline_free(r->pipeline);
	r->pipeline = NULL;
}

/* All records, in time order, into the tables of @st. May be called again (tables are not cleared).
 */
static int replay_run(struct replay *r, struct store *st, struct replay_result *out)
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

/* A pipe without data for this long has no records of an earlier time to follow. */
#define FOLLOW_IDLE_NS 2000000000ULL

/* The same before the first rows: perf writes its second round a second after the first one. */
#define FOLLOW_FIRST_NS 250000000ULL

static int check_symfs(const char *symfs, struct err *e)
{
	struct stat st;

	if (!symfs || (!stat(symfs, &st) && S_ISDIR(st.st_mode)))
		return 0;
	return err_set(e, -ENOTDIR,
		       "--symfs %.400s: no such folder\n"
		       "  it has copies of the recorded machine's files, for example "
		       "DIR/usr/bin/app",
		       symfs);
}

/* Report kernel samples without symbols: the kernel is not the running one. */
static void note_kernel(struct sampler *s, const struct replay *r)
{
	const struct kernel_identity *was = replay_kernel(r);
	enum kernel_match match = symbols_recorded_kernel(s->store.symbols, was);
	char text[160], release[2 * KERNEL_RELEASE_MAX];

	if (match == KERNEL_SAME || !r->data || !perfdata_info(r->data).found->has_kernel)
		return;
	text_sanitise(release, sizeof(release), was->release, strlen(was->release));
	snprintf(text, sizeof(text), "%s%s%s: no kernel symbols", recorded_kernel_reason(match),
		 release[0] ? ", " : "", release);
	mailbox_add_banner(s, text);
}

static int open_recording(struct sampler *s, struct err *e)
{
	struct object_identity *kernel = &objects_at(s->store.objects, OBJECT_ID_KERNEL)->identity;
	int code = check_symfs(s->config.symfs, e);
	const struct kernel_identity *was;
	struct replay *r;

	if (!code)
		code = replay_open(&s->replay, &s->config, e);
	if (code)
		return code;
	r = s->replay;
	s->facts = (struct source_facts){
		.recorded = true,
		.kept = r->kept != NULL,
		.machine = replay_machine(r),
	};
	rates_init(&s->rates, &s->config);
	maps_no_proc(s->store.maps);
	symbols_recorded(s->store.symbols, s->config.symfs);
	note_kernel(s, r);
	if (!replay_monotonic(r))
		symbols_other_clock(s->store.symbols);
	if (replay_note(r)[0])
		mailbox_add_banner(s, replay_note(r));
	/* For exports; of a stream it may still be unknown. */
	was = replay_kernel(r);
	kernel->build_id_size = was->build_id_size;
	memcpy(kernel->build_id, was->build_id, sizeof(was->build_id));
	return 0;
}

static int start_recording(struct sampler *s, struct err *e)
{
	return 0;
}

static struct replay *replay_of(const struct sampler *s)
{
	return s->replay;
}

/* Count the records of a pipe that are there. Return false if they were the last ones. */
static bool follow_pipe(struct sampler *s, struct replay *r, bool idle)
{
	bool more = replay_more(r, idle);
	int code = replay_feed(r, &s->store);

	if (code && code != -ECANCELED)
		mailbox_say(&s->mailbox, "out of memory: samples of the recording are missing");
	perfdata_drop(r->data);
	return more;
}

/* Say that the pipe has ended, and whether the recording is whole. */
static void say_end(struct sampler *s, const struct replay *r)
{
	const char *note = replay_note(r);

	s->target.gone = true;
	mailbox_say(&s->mailbox, "%s", note[0] ? note : "the recording has ended");
}

/* Return when the tick of a pipe after @now ends: soon after its first samples, at @first_ns. */
static uint64_t next_follow(const struct sampler *s, uint64_t first_ns, uint64_t now)
{
	uint64_t next = builder_next_tick(s, now);

	if (first_ns && !s->config.exact_ticks)
		next = MIN(next, builder_early_tick(first_ns, now));
	return next;
}

/* Return how long a pipe may have no data before all records that are there are counted. */
static uint64_t follow_idle(const struct sampler *s, uint64_t first_ns)
{
	return first_ns || s->config.exact_ticks ? FOLLOW_IDLE_NS : FOLLOW_FIRST_NS;
}

/* Read a recording while it is written, with a profile for each tick and after each control. */
static void run_follow(struct sampler *s, struct replay *r, struct replay_result *result)
{
	struct pollfd fds[] = {
		{ .fd = s->controls.fd, .events = POLLIN },
		{ .fd = replay_fd(r), .events = POLLIN },
	};
	uint64_t now = time_now_ns(), due = builder_next_tick(s, now), data_ns = now, first_ns = 0;
	bool more = true;

	if (s->config.exact_ticks)
		s->ticks.window = PROFILE_TOTAL;
	while (more && !atomic_load_explicit(&s->builder.stop, memory_order_acquire)) {
		uint64_t wake = MIN(due, data_ns + follow_idle(s, first_ns));

		rcu_thread_offline();
		poll(fds, ARRAY_SIZE(fds), wake > now ? (int)((wake - now + 999999) / 1000000) : 0);
		rcu_thread_online();
		now = time_now_ns();
		if (fds[1].revents) {
			more = follow_pipe(s, r, false);
			data_ns = now;
		} else if (now - data_ns >= follow_idle(s, first_ns)) {
			follow_pipe(s, r, true);
			data_ns = now;
		}
		if (!first_ns && r->fed_ns) {
			first_ns = now;
			due = MIN(due, next_follow(s, first_ns, now));
		}
		if (builder_apply(s))
			due = MIN(due, now);
		if (!more)
			say_end(s, r);
		if (more && now < due)
			continue;
		replay_result(r, &s->store, result);
		tick_replay(s, result);
		replay_next(r);
		/* Batch: the next rows are of the next samples. */
		if (s->config.exact_ticks)
			history_restart(s->store.history);
		now = time_now_ns();
		due = next_follow(s, first_ns, now);
	}
}

/* Read the whole recording, and make its profile unless the session ends. */
static void run_replay(struct sampler *s, struct replay *r, struct replay_result *result)
{
	int code = replay_run(r, &s->store, result);

	if (code == -ECANCELED)
		return;
	if (code || result->out_of_memory)
		mailbox_say(&s->mailbox, "out of memory: the recording was not read completely");
	/* Known at the end only. */
	if (s->facts.kept && replay_note(r)[0])
		mailbox_add_banner(s, replay_note(r));
	/* Nothing was left to follow. */
	s->target.gone = s->config.follow;
	tick_replay(s, result);
}

/* Read the recording, then make its profile again for each control. */
static void *replay_main(void *arg)
{
	struct sampler *s = arg;
	struct replay *r = replay_of(s);
	struct pollfd fd = { .fd = s->controls.fd, .events = POLLIN };
	struct replay_result result = { .nr_cpus = 0 };

	prctl(PR_SET_NAME, "replay");
	rcu_register_thread();
	if (replay_fd(r) < 0) {
		run_replay(s, r, &result);
	} else if (replay_begin(r, &s->store)) {
		out_of_memory();
	} else {
		run_follow(s, r, &result);
		replay_end(r);
	}
	while (!atomic_load_explicit(&s->builder.stop, memory_order_acquire)) {
		controls_settle(&s->controls);
		rcu_thread_offline();
		poll(&fd, 1, 1000);
		rcu_thread_online();
		if (builder_apply(s))
			tick_replay(s, &result);
	}
	rcu_unregister_thread();
	return NULL;
}

static bool stop_recording(struct sampler *s)
{
	replay_stop(replay_of(s));
	symbols_stop_run(s->store.symbols);
	/* It is read to the end of a part, from files of this user. */
	pthread_join(s->builder.id, NULL);
	return true;
}

static uint32_t recording_cpus(const struct sampler *s)
{
	return replay_of(s)->nr_cpus;
}

static double recorded_hz(const struct sampler *s, uint32_t event)
{
	assert(event < s->config.nr_events);
	return s->config.events[event].hz;
}

/* Slices of --keep have the time of the day. */
static uint64_t recorded_real_ns(const struct sampler *s, uint64_t time_ns)
{
	return s->facts.kept ? time_ns : 0;
}

static int recording_permille(const struct sampler *s)
{
	const struct replay *r = replay_of(s);

	if (r->kept)
		return (int)keep_read_permille(r->kept);
	return r->stream ? -1 : (int)atomic_load_explicit(&r->permille, memory_order_relaxed);
}

static int each_sample(struct sampler *s, sampler_sample_fn fn, void *ctx, struct err *e)
{
	int code;

	if (s->facts.kept)
		return err_set(e, -ENOTSUP,
			       "samples one by one need a recording\n"
			       "  --keep writes counts, not samples\n"
			       "  record with --record");
	rcu_register_thread();
	code = replay_each(replay_of(s), &s->store, s->config.events, fn, ctx);
	rcu_unregister_thread();
	return code;
}

const struct source source_replay = {
	.open = open_recording,
	.start = start_recording,
	.run = replay_main,
	.stop = stop_recording,
	.nr_cpus = recording_cpus,
	.hz = recorded_hz,
	.real_ns = recorded_real_ns,
	.permille = recording_permille,
	.each = each_sample,
};
