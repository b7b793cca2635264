// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The samples of a recording one by one, with their stacks and names, as perf script prints them.
 */
#include "sampler/replay.h"

#include "sampler/replay_held.h"
#include "sampler/replay_hardware.h"
#include "sampler/replay_private.h"
#include "unwind/unwind.h"

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

	if (event >= 0)
		return perfdata_event(each->replay->data, (uint32_t)event)->event.name;
	return slot >= 0 && slot < EVENTS_MAX ? each->events[slot].name : "?";
}

/* The event of a sample, and each that is counted with it: as perf script prints them. */
static uint32_t find_events(const struct each *each, const struct record_sample *sample,
			    struct held_event out[static EVENTS_MAX + 1])
{
	struct pipeline_member members[EVENTS_MAX];
	struct record_sample s = *sample;
	int slot = replay_slot_of(each->replay, s.id);
	uint32_t nr = replay_members(each->replay, &s, slot, members), nr_out = 0;

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

int replay_each(struct replay *r, struct store *st, const struct event *events,
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
