// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One sample's way from its record to the tables: its frames by pipeline_frames.c, counted here.
 *
 * Runs on: sampler threads, replay. Every sample ends in exactly one counter.
 */
#include "sampler/hot/hot.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/pipeline/pipeline_private.h"
#include "unwind/unwind.h"

int pipeline_new(struct pipeline **out, const struct pipeline_tables *tables, struct err *e)
{
	struct pipeline *p = calloc(1, sizeof(*p));
	int code;

	if (!p)
		return err_set(e, -ENOMEM, "no memory for a sampler thread");
	p->tables = tables;
	code = unwind_new_with(&p->unwinder, tables->places, tables->objects, &tables->unwind, e);
	if (code) {
		free(p);
		return code;
	}
	*out = p;
	return 0;
}

void pipeline_use(struct pipeline *p, const struct pipeline_tables *tables)
{
	/* Not by those before: they may be freed. */
	if (unwind_use(p->unwinder, tables->places, tables->unwind.rows))
		memset(p->kernel, 0, sizeof(p->kernel));
	p->tables = tables;
}

void pipeline_set_reader(struct pipeline *p, struct langreader *reader)
{
	p->reader = reader;
}

void pipeline_set_slot(struct pipeline *p, const struct lang_slot *slot)
{
	p->slot = slot;
}

void pipeline_set_frames(struct pipeline *p, const struct lang_frames *frames)
{
	p->recorded = frames;
}

void pipeline_free(struct pipeline *p)
{
	if (!p)
		return;
	unwind_free(p->unwinder);
	free(p);
}

/*
 * Intern the current stack as that of a wait, marked if it has no root. DROP_NR: done, else the
 * reason why not.
 */
static enum profile_drop store_wait(struct pipeline *p, uint32_t *stack)
{
	bool cut = p->stop != UNWIND_COMPLETE && p->stop != UNWIND_NO_USER;
	uint32_t nr = MIN(p->nr, PIPELINE_FRAMES_MAX - 2);

	p->wait[0] = p->tables->wait_places[WAIT_ASLEEP];
	if (p->wait[0] == PLACE_NONE || p->frames[0] == PLACE_NONE)
		return DROP_PLACES_FULL;
	memcpy(p->wait + 1, p->frames, nr * sizeof(p->frames[0]));
	p->wait[nr + 1] = p->tables->wait_places[WAIT_CUT];
	cut &= p->wait[nr + 1] != PLACE_NONE;
	*stack = stacks_intern(p->tables->stacks, p->wait, nr + 1 + cut);
	return *stack == STACK_NONE ? DROP_STACKS_FULL : DROP_NR;
}

/* Count the current stack. DROP_NR: done, else the reason why not. */
static enum profile_drop store(struct pipeline *p, uint32_t event, uint64_t weight)
{
	uint32_t stack;

	if (p->frames[0] == PLACE_NONE)
		return DROP_PLACES_FULL;
	stack = stacks_intern(p->tables->stacks, p->frames, p->nr);
	if (stack == STACK_NONE)
		return DROP_STACKS_FULL;
	if (!counts_add(p->tables->counts, stack, p->task, event, weight, p->slice))
		return DROP_CELLS_FULL;
	p->counted = stack;
	return DROP_NR;
}

/* Note the object of the outermost frame of a stack that ends early. */
static void note_end(struct pipeline_stats *stats, const struct pipeline *p, enum unwind_stop stop)
{
	const struct place *last = p->nr > p->nr_kernel && p->frames[p->nr - 1] != PLACE_NONE
					   ? places_at(p->tables->places, p->frames[p->nr - 1])
					   : NULL;

	if (last)
		ends_note(&stats->ends[stop], last->object);
}

/* Note the object of the code from which the first caller was guessed. */
static void note_guess(struct pipeline_stats *stats, const struct pipeline *p)
{
	uint32_t id = p->user.guessed_by < p->user.nr ? p->user.place[p->user.guessed_by]
						      : PLACE_NONE;
	const struct place *place = id != PLACE_NONE ? places_at(p->tables->places, id) : NULL;
	const struct object *object = place ? objects_at(p->tables->objects, place->object) : NULL;

	if (object)
		ends_note(&stats->guesses,
			  object->identity.kind == OBJECT_ANON ? OBJECT_ID_UNKNOWN : object->id);
}

/* Count the outcome of a sample, exactly one. */
static void count_outcome(struct pipeline_stats *stats, const struct pipeline *p,
			  enum unwind_stop stop)
{
	switch (stop) {
	case UNWIND_COMPLETE:
	case UNWIND_NO_USER:
		if (!p->user.nr_guessed) {
			stats->complete++;
			break;
		}
		stats->guessed++;
		note_guess(stats, p);
		break;
	case UNWIND_GAP:
	case UNWIND_TRUNCATED:
		stats->truncated++;
		stats->gaps += stop == UNWIND_GAP;
		break;
	case UNWIND_PENDING:
		stats->pending++;
		break;
	default:
		assert(stop < UNWIND_NR_STOPS);
		stats->broken[stop]++;
		note_end(stats, p, stop);
		break;
	}
}

/*
 * Note the place of the CPU, at a fixed cost: in each slot the most frequent place outlasts the
 * others (Boyer and Moore's majority vote).
 */
static void note_hot(struct pipeline_stats *stats, const struct places *places, uint32_t place)
{
	struct pipeline_hot *hot = &stats->hot[place & (PIPELINE_HOT - 1)];

	if (stats->hot_of != places_serial(places)) {
		memset(stats->hot, 0, sizeof(stats->hot));
		stats->hot_of = places_serial(places);
	}
	if (hot->place == place && hot->lead)
		hot->lead++;
	else if (hot->lead)
		hot->lead--;
	else
		*hot = (struct pipeline_hot){ place, 1 };
}

/* Return the number of the doubt that stays if all after it are solved. */
static unsigned int first_doubt(uint32_t doubts)
{
	static const enum merge_doubt order[] = { MERGE_UNTRIED, MERGE_CUT,  MERGE_UNALIGNED,
						  MERGE_BROKEN,	 MERGE_LATE, MERGE_CHANGED,
						  MERGE_ENTERING };

	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		if (doubts & order[i])
			return (unsigned int)__builtin_ctz(order[i]);
	return MERGE_DOUBTS;
}

static void count_language(struct pipeline_stats *stats, const struct pipeline *p)
{
	switch (p->lang) {
	case PIPELINE_LANG_NO:
		break;
	case PIPELINE_LANG_CERTAIN:
		stats->lang_certain++;
		break;
	case PIPELINE_LANG_GUESSED:
		stats->lang_guessed++;
		stats->lang_guesses[p->lang_kind == LANG_JAVA ? LANG_NR : p->lang_kind]
				   [first_doubt(p->merged.doubts)]++;
		break;
	case PIPELINE_LANG_NONE:
		stats->lang_none[MIN(p->lang_none, LANG_NONE_NR - 1)]++;
		break;
	}
}

/* Return whether the sample is of the idle task. */
static bool is_idle(const struct pipeline *p, const struct record_sample *s)
{
	return !s->pid && !s->tid && !p->hit.outside;
}

void pipeline_count(struct pipeline *p, struct pipeline_stats *stats, const struct record_sample *s,
		    int event)
{
	enum profile_drop drop;

	assert(p->nr <= PIPELINE_FRAMES_MAX && p->nr_kernel <= p->nr);
	p->counted = STACK_NONE;
	p->slice = p->tables->recorded ? 0 : tables_slice(s->time_ns);
	stats->taken++;
	if (event < 0 || event >= EVENTS_MAX) {
		stats->dropped[event == PIPELINE_EVENT_LIMIT  ? DROP_EVENT_LIMIT
			       : event == PIPELINE_EVENT_GONE ? DROP_EVENT_GONE
							      : DROP_UNKNOWN_EVENT]++;
		return;
	}
	stats->by_event[event]++;
	stats->idle[event] += is_idle(p, s);
	stats->kernel += p->nr_kernel > 0;
	count_language(stats, p);
	if (!p->nr) {
		stats->pending++;
		return;
	}
	if (p->frames[0] != PLACE_NONE)
		note_hot(stats, p->tables->places, p->frames[0]);
	drop = store(p, (uint32_t)event, s->period ? s->period : 1);
	if (drop != DROP_NR) {
		stats->dropped[drop]++;
		return;
	}
	stats->nameless += p->nameless;
	count_outcome(stats, p, p->stop);
}

uint32_t pipeline_counted(const struct pipeline *p, uint32_t *task)
{
	*task = p->task;
	return p->counted;
}

uint32_t pipeline_count_wait(struct pipeline *p, struct pipeline_stats *stats,
			     const struct record_sample *s, int event)
{
	uint32_t stack = STACK_NONE;
	enum profile_drop drop;

	assert(event >= 0 && event < EVENTS_MAX);
	stats->by_event[event]++;
	stats->taken++;
	stats->idle[event] += is_idle(p, s);
	count_language(stats, p);
	if (!p->nr) {
		stats->pending++;
		return STACK_NONE;
	}
	drop = store_wait(p, &stack);
	if (drop != DROP_NR)
		stats->dropped[drop]++;
	else
		count_outcome(stats, p, p->stop);
	return stack;
}

/* Set for the reader that a process of ours is not to be read. */
static void note_own(struct pipeline *p, const struct record_sample *s)
{
	if (p->reader)
		langreader_note_process(p->reader, (pid_t)s->pid, UINT32_MAX, NULL);
}

uint32_t pipeline_wait(struct pipeline *p, struct pipeline_stats *stats,
		       const struct record_sample *s, int event, uint64_t regs_mask)
{
	if (pipeline_is_own(p->tables->own_pid, (pid_t)s->pid)) {
		note_own(p, s);
		stats->by_event[event]++;
		stats->own++;
		return STACK_NONE;
	}
	pipeline_resolve(p, s, regs_mask);
	return pipeline_count_wait(p, stats, s, event);
}

bool pipeline_sample(struct pipeline *p, struct pipeline_stats *stats,
		     const struct record_sample *s, int event, uint64_t regs_mask, bool may_wait)
{
	if (pipeline_is_own(p->tables->own_pid, (pid_t)s->pid)) {
		note_own(p, s);
		stats->own++;
		p->counted = STACK_NONE;
		/* Not shown, but the kernel took it: it counts for the got rate. */
		if (event >= 0 && event < EVENTS_MAX)
			stats->by_event[event]++;
		return true;
	}
	pipeline_resolve(p, s, regs_mask);
	if (may_wait && p->lang != PIPELINE_LANG_NO && p->lang_kind == LANG_JAVA &&
	    p->user.unread_code) {
		p->asked = true; /* its place is in the queue of the loader, which reads the code */
		return false;
	}
	pipeline_count(p, stats, s, event);
	return true;
}

/* Members have no samples: the account has the leader's, also when a table is full. */
void pipeline_members(struct pipeline *p, const struct pipeline_member *members, uint32_t nr,
		      int event)
{
	for (uint32_t i = 0; i < nr && p->nr; i++)
		if (members[i].event != event && members[i].event < EVENTS_MAX)
			store(p, (uint32_t)members[i].event, members[i].count);
}

void pipeline_unwind_stats(const struct pipeline *p, struct unwind_stats *out)
{
	unwind_stats(p->unwinder, out);
}

void pipeline_bad_record(struct pipeline_stats *stats)
{
	stats->taken++;
	stats->dropped[DROP_BAD_RECORD]++;
}

bool pipeline_take_asked(struct pipeline *p)
{
	bool asked = p->asked;

	p->asked = false;
	return asked;
}

void pipeline_add_stats(struct pipeline_stats *sum, const struct pipeline_stats *add)
{
	sum->taken += add->taken;
	sum->complete += add->complete;
	sum->guessed += add->guessed;
	ends_add(&sum->guesses, &add->guesses);
	sum->truncated += add->truncated;
	sum->gaps += add->gaps;
	sum->pending += add->pending;
	sum->own += add->own;
	sum->nameless += add->nameless;
	for (int i = 0; i < UNWIND_NR_STOPS; i++) {
		sum->broken[i] += add->broken[i];
		ends_add(&sum->ends[i], &add->ends[i]);
	}
	for (int i = 0; i < DROP_NR; i++)
		sum->dropped[i] += add->dropped[i];
	for (int i = 0; i < EVENTS_MAX; i++) {
		sum->by_event[i] += add->by_event[i];
		sum->idle[i] += add->idle[i];
	}
	sum->kernel += add->kernel;
	sum->lang_certain += add->lang_certain;
	sum->lang_guessed += add->lang_guessed;
	for (int i = 0; i <= LANG_NR; i++)
		for (int k = 0; k <= MERGE_DOUBTS; k++)
			sum->lang_guesses[i][k] += add->lang_guesses[i][k];
	for (int i = 0; i < LANG_NONE_NR; i++)
		sum->lang_none[i] += add->lang_none[i];
}
