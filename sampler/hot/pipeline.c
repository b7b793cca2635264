// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One sample from its record to the tables, live and in replay: task, frames, counts.
 *
 * Runs on: sampler threads, replay. Every sample ends in exactly one counter.
 */
#include "sampler/hot/internal.h"

#include <assert.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "sampler/count/count.h"
#include "sampler/event/event.h"
#include "sampler/perfdata/perfdata.h"
#include "sampler/profile/profile.h"
#include "sampler/reader/reader.h"
#include "sampler/ring/ring.h"
#include "symbols/base/base.h"
#include "symbols/image/image.h"
#include "symbols/name/name.h"
#include "symbols/process/process.h"
#include "symbols/script/script.h"
#include "unwind/unwind.h"

/*
 * The state of a pipeline. For pipeline*.c only; one thread.
 */

/* Kernel frames kept; the kernel's own limit is 127 by default. */
#define PIPELINE_KERNEL_MAX 256

#define PIPELINE_FRAMES_MAX (PIPELINE_KERNEL_MAX + INTERLEAVE_FRAMES_MAX)

_Static_assert(PIPELINE_FRAMES_MAX <= STACKS_PLACES_MAX, "a stack is interned whole");

/* Recent kernel places: kernel addresses are the same in all processes. */
#define KERNEL_RECENT 2048 /* a power of two */

struct kernel_recent {
	uint64_t ip; /* 0: empty */
	uint32_t place;
};

struct pipeline {
	const struct pipeline_tables *tables;
	struct unwinder *unwinder;
	bool asked;		      /* the loader has a request */
	struct langreader *reader;    /* NULL: this CPU has none */
	const struct lang_slot *slot; /* instead of the reader's; NULL: none */
	struct unwind_interrupted interrupted;
	struct unwind_interrupted other; /* of the last walk; borrowed */

	/* The current sample. */
	struct unwind_result user;
	struct interleave_result merged;
	enum pipeline_lang lang;
	enum lang_status lang_status;
	enum lang_kind lang_kind;
	const struct lang_frames *recorded; /* in a replay, of the next sample; NULL: none */
	enum unwind_stop stop;
	uint32_t task;
	struct counts_table *counts; /* of the batch; NULL: the present one */
	uint32_t counted; /* the stack of the last sample; STACK_NONE: it was not counted */
	uint32_t slice;	  /* of its time; 0 in a replay, which swaps the counts of each slice */
	bool nameless;	  /* the task table is full */
	bool far;	  /* the stack goes on beyond the kernel's copy, and is read there */
	struct maps_hit hit;
	uint32_t nr, nr_kernel;
	uint32_t frames[PIPELINE_FRAMES_MAX];
	uint32_t wait[PIPELINE_FRAMES_MAX]; /* the same below the frame of a wait */
	uint64_t ips[PIPELINE_FRAMES_MAX];  /* raw addresses; of unwound frames by pipeline_stack()
					       only */

	struct kernel_recent kernel[KERNEL_RECENT];
};

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

void pipeline_use(struct pipeline *p, const struct pipeline_tables *tables, uint32_t *tick)
{
	/* Not by those before: they may be freed. */
	if (unwind_use(p->unwinder, tables->places, tables->unwind.rows))
		memset(p->kernel, 0, sizeof(p->kernel));
	p->tables = tables;
	p->counts = tick ? counts_begin(tables->counts, tick) : NULL;
}

void pipeline_set_reader(struct pipeline *p, struct langreader *reader)
{
	p->reader = reader;
}

void pipeline_set_slot(struct pipeline *p, const struct lang_slot *slot,
		       const struct unwind_interrupted *stack)
{
	p->slot = slot;
	p->interrupted = stack ? *stack : (struct unwind_interrupted){ 0 };
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
	bool added;

	if (p->frames[0] == PLACE_NONE)
		return DROP_PLACES_FULL;
	stack = stacks_intern(p->tables->stacks, p->frames, p->nr);
	if (stack == STACK_NONE)
		return DROP_STACKS_FULL;
	if (!p->counts)
		added = counts_add(p->tables->counts, stack, p->task, event, weight, p->slice);
	else
		added = counts_add_to(p->tables->counts, &p->counts, stack, p->task, event, weight,
				      p->slice);
	if (!added)
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

	assert((unsigned int)stop < UNWIND_NR_STOPS);
	if (last)
		broken_objects_note(&stats->ends[stop], last->object);
}

/*
 * Note the object of the code from which the first caller was guessed; the kernel, if it hides the
 * caller by a return probe.
 */
static void note_guess(struct pipeline_stats *stats, const struct pipeline *p)
{
	uint32_t id = p->user.guessed_by < p->user.nr ? p->user.place[p->user.guessed_by]
						      : PLACE_NONE;
	const struct place *place = id != PLACE_NONE ? places_at(p->tables->places, id) : NULL;
	const struct object *object = place ? objects_at(p->tables->objects, place->object) : NULL;

	if (p->user.probed)
		broken_objects_note(&stats->guesses, OBJECT_ID_KERNEL);
	else if (object)
		broken_objects_note(&stats->guesses, object->identity.kind == OBJECT_ANON
							     ? OBJECT_ID_UNKNOWN
							     : object->id);
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
	case UNWIND_SWITCHED:
	case UNWIND_TRUNCATED:
		stats->truncated++;
		stats->gaps += stop != UNWIND_TRUNCATED;
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
	static const enum interleave_doubt order[] = { INTERLEAVE_UNTRIED,   INTERLEAVE_CUT,
						       INTERLEAVE_UNALIGNED, INTERLEAVE_BROKEN,
						       INTERLEAVE_LATE,	     INTERLEAVE_CHANGED,
						       INTERLEAVE_ENTERING };

	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		if (doubts & order[i])
			return (unsigned int)__builtin_ctz(order[i]);
	return INTERLEAVE_DOUBTS;
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
		stats->lang_status[MIN(p->lang_status, LANG_OK - 1)]++;
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
	stats->far += p->far;
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

void pipeline_leave_out(struct pipeline *p, struct pipeline_stats *stats,
			const struct record_sample *s, int event, uint64_t *outcome)
{
	assert(event < EVENTS_MAX);
	/* Its process is not to be read. */
	if (p->reader)
		langreader_note_process(p->reader, (pid_t)s->pid, UINT32_MAX, NULL, true);
	++*outcome;
	p->counted = STACK_NONE;
	/* Not shown, but the kernel took it: it counts for the got rate. */
	if (event >= 0 && event < EVENTS_MAX)
		stats->by_event[event]++;
}

uint32_t pipeline_wait(struct pipeline *p, struct pipeline_stats *stats,
		       const struct record_sample *s, int event, uint64_t regs_mask)
{
	assert(event >= 0 && event < EVENTS_MAX);
	if (pipeline_is_own(p->tables->own_pid, p->tables->guard, (pid_t)s->pid)) {
		pipeline_leave_out(p, stats, s, event, &stats->own);
		return STACK_NONE;
	}
	pipeline_resolve(p, s, regs_mask);
	return pipeline_count_wait(p, stats, s, event);
}

bool pipeline_sample(struct pipeline *p, struct pipeline_stats *stats,
		     const struct record_sample *s, int event, uint64_t regs_mask, bool may_wait)
{
	if (pipeline_is_own(p->tables->own_pid, p->tables->guard, (pid_t)s->pid)) {
		pipeline_leave_out(p, stats, s, event, &stats->own);
		return true;
	}
	pipeline_resolve(p, s, regs_mask);
	if (may_wait && p->lang != PIPELINE_LANG_NO && p->lang_kind == LANG_JAVA &&
	    p->user.unread_code) {
		p->asked = true; /* its place is in the queue of the loader, which reads the code */
		return false;
	}
	/* The process, an object or code is being read; frames of a language would be lost. */
	if (may_wait && p->lang == PIPELINE_LANG_NO && (p->user.asked || p->stop == UNWIND_PENDING))
		return false;
	pipeline_count(p, stats, s, event);
	return true;
}

const struct unwind_interrupted *pipeline_other(const struct pipeline *p)
{
	return &p->other;
}

/* Members have no samples: the account has the leader's, also when a table is full. */
void pipeline_members(struct pipeline *p, const struct pipeline_member *members, uint32_t nr,
		      int event)
{
	assert(members || !nr);
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
	assert(sum != add);
	sum->taken += add->taken;
	sum->complete += add->complete;
	sum->guessed += add->guessed;
	broken_objects_add(&sum->guesses, &add->guesses);
	sum->truncated += add->truncated;
	sum->gaps += add->gaps;
	sum->pending += add->pending;
	sum->own += add->own;
	sum->filtered += add->filtered;
	sum->nameless += add->nameless;
	for (int i = 0; i < UNWIND_NR_STOPS; i++) {
		sum->broken[i] += add->broken[i];
		broken_objects_add(&sum->ends[i], &add->ends[i]);
	}
	for (int i = 0; i < DROP_NR; i++)
		sum->dropped[i] += add->dropped[i];
	for (int i = 0; i < EVENTS_MAX; i++) {
		sum->by_event[i] += add->by_event[i];
		sum->idle[i] += add->idle[i];
	}
	sum->kernel += add->kernel;
	sum->far += add->far;
	sum->lang_certain += add->lang_certain;
	sum->lang_guessed += add->lang_guessed;
	for (int i = 0; i <= LANG_NR; i++)
		for (int k = 0; k <= INTERLEAVE_DOUBTS; k++)
			sum->lang_guesses[i][k] += add->lang_guesses[i][k];
	for (int i = 0; i < LANG_OK; i++)
		sum->lang_status[i] += add->lang_status[i];
}

/*
 * Find the task and the frames of one sample: kernel, user, and of interpreted languages.
 *
 * Runs on: sampler threads, replay.
 */

/* Calls that recent hardware records. */
#define LBR_DEPTH 32

/* Report whether @ip is a marker in a call chain (PERF_CONTEXT_*). */
static bool is_context(uint64_t ip)
{
	return ip >= (uint64_t)PERF_CONTEXT_MAX;
}

/* Return the place of a kernel address. Cached: a place never changes. */
static uint32_t kernel_place(struct pipeline *p, uint64_t ip)
{
	struct kernel_recent *r =
		&p->kernel[ip * 0x9e3779b97f4a7c15ULL >> 32 & (KERNEL_RECENT - 1)];

	if (r->ip != ip || !ip) {
		uint32_t place = places_intern(p->tables->places, OBJECT_ID_KERNEL, ip);

		if (place == PLACE_NONE)
			return place;
		*r = (struct kernel_recent){ ip, place };
	}
	return r->place;
}

/*
 * The context that the sample's own address is in: PERF_CONTEXT_KERNEL or _USER; 0: a guest or a
 * hypervisor, with code that is not known here.
 */
static uint64_t own_context(const struct record_sample *s)
{
	uint64_t first;

	switch (s->cpumode) {
	case PERF_RECORD_MISC_KERNEL:
		return (uint64_t)PERF_CONTEXT_KERNEL;
	case PERF_RECORD_MISC_USER:
		return (uint64_t)PERF_CONTEXT_USER;
	case PERF_RECORD_MISC_CPUMODE_UNKNOWN:
		break;
	default:
		return 0;
	}
	memcpy(&first, s->nr_chain ? s->chain : (const uint8_t *)&s->ip, sizeof(first));
	if (!is_context(first))
		return (uint64_t)(s->ip >> 63 ? PERF_CONTEXT_KERNEL : PERF_CONTEXT_USER);
	return first;
}

/* Copy the addresses of one context of the call chain to @ips; returns how many. */
static uint32_t chain_part(const struct record_sample *s, uint64_t part, uint64_t *ips,
			   uint32_t max)
{
	uint64_t context = 0, ip;
	uint32_t nr = 0;

	for (uint64_t i = 0; i < s->nr_chain && nr < max; i++) {
		memcpy(&ip, s->chain + 8 * i, sizeof(ip));
		if (is_context(ip))
			context = ip;
		else if (context == part)
			ips[nr++] = ip;
	}
	return nr;
}

/* Find the places of the kernel frames; returns how many. */
static uint32_t kernel_frames(struct pipeline *p, const struct record_sample *s, uint64_t own)
{
	uint32_t nr;

	/* An event of user code, interrupted in the kernel: the chain is of other code. */
	if (own == (uint64_t)PERF_CONTEXT_USER)
		return 0;
	nr = chain_part(s, (uint64_t)PERF_CONTEXT_KERNEL, p->ips, PIPELINE_KERNEL_MAX);
	/* The chain of a precise event begins elsewhere; it may also lack the kernel part. */
	if (own == (uint64_t)PERF_CONTEXT_KERNEL) {
		p->ips[0] = s->ip;
		nr = MAX(nr, 1u);
	}
	/* All but the innermost are return addresses: look inside the call. */
	for (uint32_t i = 0; i < nr; i++)
		p->frames[i] = kernel_place(p, p->ips[i] - (i > 0));
	return nr;
}

static bool is_of(const struct lang_frames *f, const struct record_sample *s)
{
	return f && f->time_ns == s->time_ns && f->pid == s->pid && f->tid == s->tid;
}

/*
 * Return the stack that the sampled one goes on on: of a handler, of the goroutine that called C,
 * or the same one beyond the kernel's copy.
 */
static struct unwind_interrupted
other_stack(const struct pipeline *p, const struct record_sample *s, const struct maps_hit *hit)
{
	const struct lang_slot *slot = p->slot;

	if (is_of(p->recorded, s))
		return p->recorded->other;
	if (!slot && p->reader &&
	    ((hit->lang && hit->lang->kind == LANG_GO) ||
	     langreader_reads_far(p->reader, (pid_t)s->pid, (pid_t)s->tid, hit->process, 0)))
		slot = frame_channel_find(langreader_feed(p->reader), s->time_ns, s->pid, s->tid);
	if (!slot || slot->process != hit->process || !slot->other.size)
		return p->interrupted;
	return (struct unwind_interrupted){
		.sp = slot->other.sp,
		.bytes = (const uint8_t *)(slot->frames + slot->nr),
		.size = slot->other.size,
		.rest = slot->other.rest,
		.from = slot->other.from,
		.guessed = slot->other.from ? !slot->checked : slot->late,
	};
}

/*
 * A walk wanted words beyond the copy, or below sp: have the reader read them at the thread's next
 * sample.
 */
static void ask_far(struct pipeline *p, const struct record_sample *s, const struct maps_hit *hit)
{
	bool below = p->user.wanted && p->user.nr &&
		     p->user.sp[0] - p->user.wanted - 1 < LANG_BELOW_MAX;

	if (p->user.stop == UNWIND_BAD_FRAME && !below)
		return;
	p->far = p->user.wanted != 0;
	if (p->far && p->reader)
		langreader_reads_far(p->reader, (pid_t)s->pid, (pid_t)s->tid, hit->process,
				     below ? LANG_FAR_BELOW : p->user.wanted & ~7ULL);
}

/* No word that a frame needs is farther above its stack pointer, mostly. */
#define FAR_NEAR 1024U

/*
 * Note whether the walk needed the stack beyond the copy, if that is read for it: a thread that was
 * deep once, as each Python is at its start, is not read for ever.
 */
static void note_far(struct pipeline *p, const struct record_sample *s, const struct maps_hit *hit)
{
	bool unused = p->user.stop == UNWIND_COMPLETE && !p->user.wanted;

	for (uint32_t i = 0; i < p->user.nr && unused; i++)
		unused = p->user.sp[i] - p->user.sp[0] + FAR_NEAR < s->stack_dyn;
	langreader_reads_far(p->reader, (pid_t)s->pid, (pid_t)s->tid, hit->process,
			     unused ? LANGREADER_FAR_UNUSED : LANGREADER_FAR_USED);
}

/* Unwind the user part into p->user. */
static enum unwind_stop unwind_user(struct pipeline *p, const struct record_sample *s,
				    const struct maps_hit *hit, uint64_t regs_mask)
{
	const struct unwind_input in = {
		.regs = (const uint64_t *)(const void *)s->regs,
		.regs_mask = regs_mask,
		.regs_abi = s->regs_abi,
		.stack = s->stack,
		.stack_size = s->stack_dyn,
		.stack_full = s->stack_dyn == s->stack_size,
		.space = hit->space,
		.v8 = hit->lang && hit->lang->kind == LANG_NODE ? hit->lang : NULL,
		.ruby = hit->lang && hit->lang->kind == LANG_RUBY ? hit->lang : NULL,
		.time_ns = s->time_ns,
		.pid = s->pid,
		.interrupted = other_stack(p, s, hit),
	};

	unwind_sample(p->unwinder, &in, &p->user);
	p->other = in.interrupted;
	p->far = in.interrupted.size && !in.interrupted.from;
	if (p->reader &&
	    langreader_reads_far(p->reader, (pid_t)s->pid, (pid_t)s->tid, hit->process, 0))
		note_far(p, s, hit);
	if (p->user.stop == UNWIND_TRUNCATED || p->user.stop == UNWIND_GAP ||
	    p->user.stop == UNWIND_SWITCHED || p->user.stop == UNWIND_BAD_FRAME)
		ask_far(p, s, hit);
	/* During an exec: the old program counter with the new address space. */
	if (p->user.stop == UNWIND_NO_MAP && !s->stack_dyn) {
		p->user.nr = 0;
		return UNWIND_NO_USER;
	}
	if (p->user.asked) {
		p->asked = true;
		space_want(hit->space);
	}
	if (p->user.maps_stale)
		p->asked |= maps_ask(p->tables->maps, (pid_t)s->pid, s->time_ns);
	return p->user.stop;
}

/* Return the place of a user address in the process's maps at that time. */
static uint32_t user_place(struct pipeline *p, const struct maps_hit *hit, uint64_t address,
			   uint64_t time_ns)
{
	const struct mapping *m = space_find(hit->space, address, time_ns);

	if (!m)
		return places_intern(p->tables->places, OBJECT_ID_UNKNOWN, 0);
	p->asked |= object_want(m->object);
	object_touch(m->object, object_clock(time_ns));
	return places_intern(p->tables->places, m->object->id, address - m->start + m->offset);
}

/*
 * Without a copy of the stack: the chain of frame pointers, or the address alone. A chain does not
 * distinguish a caller from a value that looks like one, nor a root from the end of the frame
 * pointers: it counts as a guess.
 */
static enum unwind_stop chain_frames(struct pipeline *p, const struct record_sample *s,
				     const struct maps_hit *hit, uint64_t own, uint32_t *nr)
{
	uint32_t max = p->tables->chain_max ? p->tables->chain_max : PIPELINE_CHAIN_MAX;
	uint32_t first = *nr, nr_user;
	uint64_t *ips = p->ips + first, record;

	nr_user = chain_part(s, (uint64_t)PERF_CONTEXT_USER, ips, PIPELINE_FRAMES_MAX - first);
	/* The sample's own address alone is no guess. */
	p->user.nr_guessed = nr_user;
	p->user.nr_loop_guessed = 0;
	if (own == (uint64_t)PERF_CONTEXT_USER) {
		ips[0] = s->ip;
		nr_user = MAX(nr_user, 1u);
	}
	for (uint32_t i = 0; i < nr_user; i++)
		p->frames[(*nr)++] = user_place(p, hit, ips[i] - (i > 0), s->time_ns);
	/* That record was lost, or this is no replay. */
	if (chain_part(s, RECORD_CONTEXT_DEFERRED, &record, 1))
		return UNWIND_TRUNCATED;
	return first + nr_user >= max ? UNWIND_TRUNCATED : UNWIND_COMPLETE;
}

/*
 * The callers by the hardware's record of calls that have not returned (LBR): the calls
 * themselves, so no address is one of a return. It has no root, and a limited depth.
 */
static enum unwind_stop lbr_frames(struct pipeline *p, const struct record_sample *s,
				   const struct maps_hit *hit, uint64_t own, uint32_t *nr)
{
	uint64_t *ips = p->ips + *nr;
	uint32_t n;

	/* The innermost frame: exact if the kernel recorded it; else the function of the last call.
	 */
	n = MIN(chain_part(s, (uint64_t)PERF_CONTEXT_USER, ips, 1), 1u);
	if (own == (uint64_t)PERF_CONTEXT_USER) {
		ips[0] = s->ip;
		n = 1;
	} else if (!n) {
		ips[n++] = record_branch(s, 0).to;
	}
	for (uint32_t i = 0; i < s->nr_branches && *nr + n < PIPELINE_FRAMES_MAX; i++)
		ips[n++] = record_branch(s, i).from;
	for (uint32_t i = 0; i < n; i++)
		p->frames[(*nr)++] = user_place(p, hit, ips[i], s->time_ns);
	p->user.nr_guessed = s->nr_branches;
	p->user.nr_loop_guessed = 0;
	return s->nr_branches >= LBR_DEPTH ? UNWIND_TRUNCATED : UNWIND_COMPLETE;
}

/* Return whether the sample has a user stack by LBR. As in perf: of the user code that the chain
 * passes. */
static bool has_lbr(const struct record_sample *s, uint64_t own)
{
	uint64_t ip;

	return s->lbr_calls && s->nr_branches &&
	       (own == (uint64_t)PERF_CONTEXT_USER ||
		chain_part(s, (uint64_t)PERF_CONTEXT_USER, &ip, 1));
}

/* Append the user frames at @nr; returns why they end. */
static enum unwind_stop user_frames(struct pipeline *p, const struct record_sample *s,
				    const struct maps_hit *hit, uint64_t regs_mask, uint64_t own,
				    uint32_t *nr)
{
	uint32_t first = *nr;
	enum unwind_stop stop;
	p->user.nr = 0;
	p->user.nr_guessed = p->user.nr_loop_guessed = p->user.nr_java = 0;
	p->far = p->user.asked = false;
	p->other = (struct unwind_interrupted){ 0 };
	p->user.new_code = p->user.unread_code = false;
	if ((pid_t)s->pid < 0) /* ended and unhashed: its process is unknown */
		return UNWIND_NO_USER;
	if (!hit->known) {
		p->asked |= maps_ask(p->tables->maps, (pid_t)s->pid, s->time_ns);
		return UNWIND_PENDING;
	}
	/* The idle task runs no user code, and has no registers of any. */
	if (!s->pid && (own == (uint64_t)PERF_CONTEXT_USER || s->regs_abi))
		return UNWIND_OUTSIDE;
	if (hit->kernel_thread || !hit->space || !own)
		return UNWIND_NO_USER; /* perf record -g has registers without a copy of the stack
					  on some architectures. */
	if (has_lbr(s, own))
		return lbr_frames(p, s, hit, own, nr);
	if (!regs_mask)
		return chain_frames(p, s, hit, own, nr);
	if (!s->regs || !s->stack_size) {
		stop = chain_frames(p, s, hit, own, nr);
		return *nr > first ? stop : UNWIND_NO_USER;
	}
	stop = unwind_user(p, s, hit, regs_mask);
	memcpy(p->frames + *nr, p->user.place, p->user.nr * sizeof(p->frames[0]));
	*nr += p->user.nr;
	return stop;
}

/* The merged frames as places; user frames begin at @first. */
static void put_merged(struct pipeline *p, uint32_t first)
{
	const struct interleave_result *m = &p->merged;

	assert(first + m->nr <= ARRAY_SIZE(p->frames));
	for (uint32_t i = 0; i < m->nr; i++) {
		uint32_t frame = m->frame[i];

		p->frames[first + i] =
			frame & INTERLEAVE_LANG
				? places_intern(p->tables->places, p->tables->script, m->place[i])
				: p->user.place[frame];
	}
	p->nr = first + m->nr;
	/* Its root is missing. */
	if (m->nr == INTERLEAVE_FRAMES_MAX)
		p->stop = UNWIND_TRUNCATED;
}

/* Merge the frames of @slot; returns the reason if the result is none. */
static enum lang_status merge(struct pipeline *p, const struct lang_process *lang,
			      const struct lang_slot *slot)
{
	if (lang->kind != LANG_NODE) {
		interleave_stacks(lang, &p->user, slot, &p->merged);
		return LANG_MISMATCH;
	}
	interleave_v8(lang, p->tables->codes, &p->user, slot, &p->merged);
	/* Values that were left on the stack look like frames. */
	for (uint32_t i = 0; i < p->user.nr_v8; i++)
		if (p->user.v8[i].javascript)
			return LANG_MISMATCH;
	return LANG_NO_FRAMES;
}

/* Find out why a sample of a JVM has no frames of Java. */
static enum lang_status why_no_java(const struct pipeline *p)
{
	if (p->hit.own_thread != LANG_NO_FRAMES)
		return (enum lang_status)p->hit.own_thread;
	if (p->user.new_code || p->stop == UNWIND_PENDING)
		return LANG_NEW_CODE;
	return p->stop == UNWIND_COMPLETE || p->stop == UNWIND_NO_USER ? LANG_NO_FRAMES
								       : LANG_BAD_CHAIN;
}

/* A JVM: frames of Java are native ones. */
static void judge_java(struct pipeline *p)
{
	bool whole = p->stop == UNWIND_COMPLETE && !p->user.nr_guessed;

	p->lang_kind = LANG_JAVA;
	p->lang = !p->user.nr_java ? PIPELINE_LANG_NONE
		  : whole	   ? PIPELINE_LANG_CERTAIN
				   : PIPELINE_LANG_GUESSED;
	p->lang_status = p->user.nr_java ? LANG_OK : why_no_java(p);
	p->merged.doubts = p->lang == PIPELINE_LANG_GUESSED ? INTERLEAVE_CUT : 0;
}

/* Return whether a native frame is in the loop of the interpreter. */
static bool runs_loop(const struct pipeline *p, const struct lang_process *lang)
{
	for (uint32_t i = 0; i < p->user.nr; i++)
		if (lang_is_eval(lang, p->user.ip[i]))
			return true;
	return false;
}

/* An interpreter: put the frames of its language between the native ones, which begin at @first. */
static void add_language(struct pipeline *p, const struct record_sample *s,
			 const struct maps_hit *hit, uint32_t first)
{
	const struct lang_slot *slot = p->slot;

	if (!slot && p->reader)
		slot = frame_channel_find(langreader_feed(p->reader), s->time_ns, s->pid, s->tid);

	p->lang_kind = hit->lang->kind;
	p->lang = PIPELINE_LANG_NONE;
	p->lang_status = hit->lang->refused  ? LANG_REFUSED
			 : hit->lang->reason ? LANG_VERSION
					     : LANG_NO_READER;
	if (!slot || slot->process != hit->process)
		return;
	p->lang_status = (enum lang_status)slot->none;
	/* A thread of a library, as of BLAS, or a program that only links the interpreter. */
	if (slot->none == LANG_NO_THREAD && !runs_loop(p, hit->lang))
		p->lang_status = LANG_NO_FRAMES;
	/* A thread of V8 itself, which compiles or collects. */
	if (p->lang_status == LANG_NO_FRAMES && hit->own_thread != LANG_NO_FRAMES)
		p->lang_status = (enum lang_status)hit->own_thread;
	if (slot->none != LANG_OK)
		return;
	p->user.stop = p->stop;
	p->lang_status = merge(p, hit->lang, slot);
	if (p->merged.verdict == INTERLEAVE_NONE)
		return;
	put_merged(p, first);
	if (p->merged.deep && p->stop != UNWIND_PENDING)
		p->stop = UNWIND_DEPTH;
	if (p->merged.whole) {
		p->stop = UNWIND_COMPLETE;
		p->user.nr_guessed = 0;
	}
	p->lang = p->merged.verdict == INTERLEAVE_CERTAIN ? PIPELINE_LANG_CERTAIN
							  : PIPELINE_LANG_GUESSED;
	/* The frames of JavaScript prove the guess about the innermost frame of V8, Ruby's its
	 * loop. */
	if (p->merged.verdict == INTERLEAVE_CERTAIN)
		p->user.nr_guessed -=
			MIN(p->user.nr_guessed, p->user.nr_v8_guessed + p->user.nr_loop_guessed);
}

/* Merged frame @i as it is recorded. */
static uint64_t recorded_entry(const struct interleave_result *m, uint32_t i)
{
	assert(i < m->nr);
	if (!(m->frame[i] & INTERLEAVE_LANG))
		return m->frame[i];
	return lang_entry(lang_place_code(m->place[i]), lang_place_instr(m->place[i]));
}

bool pipeline_get_frames(const struct pipeline *p, const struct record_sample *s,
			 struct lang_frames *out)
{
	static const uint8_t outcomes[] = {
		[PIPELINE_LANG_CERTAIN] = LANG_OUTCOME_CERTAIN,
		[PIPELINE_LANG_GUESSED] = LANG_OUTCOME_GUESSED,
		[PIPELINE_LANG_NONE] = LANG_OUTCOME_NONE,
	};
	const struct interleave_result *m = &p->merged;

	bool none = p->lang == PIPELINE_LANG_NO || p->lang_kind == LANG_JAVA;

	if (none && !p->other.size)
		return false;
	out->other = p->other;
	out->time_ns = s->time_ns;
	out->pid = s->pid;
	out->tid = s->tid;
	out->language = LANG_NONE;
	out->outcome = out->none = 0;
	out->deep = false;
	out->nr_native = out->nr = 0;
	if (none)
		return true;
	out->language = (uint8_t)p->lang_kind;
	out->outcome = outcomes[p->lang];
	out->none = (uint8_t)MIN(p->lang_status, LANG_OK - 1);
	out->deep = p->lang != PIPELINE_LANG_NONE && m->deep;
	out->nr_native = (uint16_t)p->user.nr;
	out->nr = p->lang == PIPELINE_LANG_NONE ? 0 : (uint16_t)m->nr;
	for (uint32_t i = 0; i < out->nr; i++)
		out->entries[i] = recorded_entry(m, i);
	return true;
}

/* Mark the object of an interpreter by its name: the loader of a replay sees no process. False: it
 * is another one. */
static bool mark_interpreter(const struct pipeline *p, uint32_t place, enum lang_kind kind)
{
	const struct place *at = places_at(p->tables->places, place);
	struct object *object = at ? objects_at(p->tables->objects, at->object) : NULL;

	if (!object || object->identity.kind != OBJECT_FILE || detect_kind(object) != kind)
		return false;
	atomic_store_explicit(&object->interpreter, true, memory_order_relaxed);
	return true;
}

/* Return the place of a recorded frame; PLACE_NONE: not among the @nr @native ones. */
static uint32_t place_of_entry(struct pipeline *p, uint64_t entry, const uint32_t *native,
			       uint32_t nr)
{
	const struct lang_frame frame = { .code = lang_entry_number(entry),
					  .instr = lang_entry_instr(entry) };

	if (!(entry & LANG_ENTRY))
		return entry < nr ? native[entry] : PLACE_NONE;
	return frame.code < SCRIPT_FUNCTIONS_MAX
		       ? places_intern(p->tables->places, p->tables->script, lang_place(&frame))
		       : PLACE_NONE;
}

/*
 * Replay: put the recorded frames between the native ones, which begin at @first. Native frames
 * that were not found here are missing; then the rest is a guess. Callers
 * beyond a deep stack were left out.
 */
static void put_recorded(struct pipeline *p, const struct lang_frames *f, uint32_t first)
{
	uint32_t native[PIPELINE_FRAMES_MAX], nr = p->nr - first;

	assert(p->nr >= first);
	p->lang = f->outcome == LANG_OUTCOME_NONE ? PIPELINE_LANG_NONE
		  : f->outcome == LANG_OUTCOME_CERTAIN && f->nr_native == nr
			  ? PIPELINE_LANG_CERTAIN
			  : PIPELINE_LANG_GUESSED;
	p->lang_status = (enum lang_status)f->none;
	p->lang_kind = (enum lang_kind)f->language;
	p->merged.doubts = 0; /* not recorded */
	if (p->lang == PIPELINE_LANG_NONE)
		return;
	memcpy(native, p->frames + first, nr * sizeof(native[0]));
	p->nr = first;
	/* The innermost: a program whose interpreter is a library has that name also, as python3.
	 */
	for (uint32_t i = 0; i < nr && !mark_interpreter(p, native[i], (enum lang_kind)f->language);
	     i++)
		;
	for (uint32_t i = 0; i < f->nr && p->nr < PIPELINE_FRAMES_MAX; i++) {
		uint32_t place = place_of_entry(p, f->entries[i], native, nr);

		if (place != PLACE_NONE)
			p->frames[p->nr++] = place;
	}
	if (f->deep)
		p->stop = UNWIND_DEPTH;
	else if (f->nr == INTERLEAVE_FRAMES_MAX) /* as in put_merged() */
		p->stop = UNWIND_TRUNCATED;
	for (uint32_t i = f->nr_native; i < nr && !f->deep && p->nr < PIPELINE_FRAMES_MAX; i++)
		p->frames[p->nr++] = native[i];
}

/*
 * End the stack before the first frame that does not fit into the place table: with that frame left
 * out, its callee would be shown below the wrong caller. The innermost one is kept, for store().
 */
static void cut_full_places(struct pipeline *p)
{
	uint32_t kept = 1;

	while (kept < p->nr && p->frames[kept] != PLACE_NONE)
		kept++;
	if (kept >= p->nr)
		return;
	p->nr = kept;
	p->nr_kernel = MIN(p->nr_kernel, kept);
	p->stop = UNWIND_TRUNCATED;
	if (p->lang == PIPELINE_LANG_CERTAIN)
		p->lang = PIPELINE_LANG_GUESSED;
}

void pipeline_resolve(struct pipeline *p, const struct record_sample *s, uint64_t regs_mask)
{
	uint64_t own = own_context(s);
	struct maps_hit hit;
	bool go;

	maps_find(p->tables->maps, p->tables->tasks, (pid_t)s->pid, (pid_t)s->tid, s->time_ns,
		  &hit);
	if (hit.ask)
		p->asked |= maps_ask(p->tables->maps, (pid_t)s->pid, s->time_ns);
	/* Most stacks of Go are on one stack: it is read once one was not. */
	go = hit.lang && hit.lang->kind == LANG_GO;
	if (p->reader && hit.known)
		langreader_note_process(p->reader, (pid_t)s->pid, hit.process, hit.lang, !go);
	p->hit = hit;
	p->task = hit.task;
	p->nameless = hit.full;
	p->lang = PIPELINE_LANG_NO;
	p->nr = p->nr_kernel = kernel_frames(p, s, own);
	p->stop = user_frames(p, s, &hit, regs_mask, own, &p->nr);
	if (p->reader && go && p->stop == UNWIND_SWITCHED)
		langreader_note_process(p->reader, (pid_t)s->pid, hit.process, hit.lang, true);
	if (hit.lang && hit.lang->kind == LANG_JAVA && p->tables->languages & lang_bit(LANG_JAVA))
		judge_java(p);
	else if (hit.lang && !go && p->tables->languages & lang_bit(hit.lang->kind))
		add_language(p, s, &hit, p->nr_kernel);
	if (is_of(p->recorded, s) && p->recorded->language != LANG_NONE &&
	    p->tables->languages & lang_bit(p->recorded->language))
		put_recorded(p, p->recorded, p->nr_kernel);
	if (p->nr == 0 && p->stop == UNWIND_PENDING && !p->tables->recorded)
		return;	  /* no row: its place will be known for later samples */
	if (p->nr == 0) { /* hidden from us, of a guest, or never known: only the task is known */
		p->ips[0] = s->ip;
		p->frames[p->nr++] = places_intern(p->tables->places, OBJECT_ID_UNKNOWN, 0);
	}
	cut_full_places(p);
}

void pipeline_stack(struct pipeline *p, struct pipeline_stack *out)
{
	uint32_t nr_user = MIN(p->user.nr, p->nr - p->nr_kernel);

	assert(p->nr_kernel <= p->nr);
	memcpy(p->ips + p->nr_kernel, p->user.ip, nr_user * sizeof(p->ips[0]));
	*out = (struct pipeline_stack){
		.places = p->frames,
		.ips = p->ips,
		.nr = p->nr,
		.nr_kernel = p->nr_kernel,
		.task = p->task,
		.stop = p->stop,
		.nr_guessed = p->user.nr_guessed,
		.lang = p->lang,
		.doubts = p->merged.doubts,
		.lang_status = p->lang_status,
		.sp = p->user.nr ? p->user.sp[p->user.nr - 1] : 0,
	};
}

/* Return the place of @ip, in the kernel or in the process of the sample. */
static uint32_t place_of(struct pipeline *p, const struct record_sample *s, uint64_t ip)
{
	const struct maps_hit *hit = &p->hit;

	if (hit->known && hit->space && space_find(hit->space, ip, s->time_ns))
		return user_place(p, hit, ip, s->time_ns);
	return ip >> 63 ? kernel_place(p, ip)
			: places_intern(p->tables->places, OBJECT_ID_UNKNOWN, 0);
}

struct pipeline_branch pipeline_branch(struct pipeline *p, const struct record_sample *s,
				       uint32_t index)
{
	const struct record_branch b = record_branch(s, index);

	return (struct pipeline_branch){ place_of(p, s, b.from), place_of(p, s, b.to) };
}

/*
 * The hottest function of a CPU: places summed by symbol. Runs on: the builder.
 */

/* A function, by the id that it has in profiles. */
struct hot_function {
	uint32_t id, lead;
};

static int by_hot_id(const void *pa, const void *pb)
{
	const struct hot_function *a = pa, *b = pb;

	return COMPARE(a->id, b->id);
}

static uint32_t hot_id(const struct places *places, uint32_t id)
{
	const struct place *place = places_at(places, id);
	/* Acquire: pairs with the release in places_name(). */
	uint32_t symbol = place ? atomic_load_explicit(&place->symbol, memory_order_acquire)
				: SYMBOL_NONE;

	return symbol == SYMBOL_NONE ? ASSEMBLE_PLACE | id : symbol;
}

void hot_function_fill(struct profile_cpu *cpu, const struct pipeline_stats *stats,
		       const struct places *places)
{
	struct hot_function all[PIPELINE_HOT];
	uint32_t nr = 0, sum = 0;

	cpu->kernel = stats->kernel;
	cpu->hot_samples = 0;
	if (stats->hot_of != places_serial(places))
		return; /* the last sample was before these */
	for (uint32_t i = 0; i < PIPELINE_HOT; i++)
		if (stats->hot[i].lead)
			all[nr++] = (struct hot_function){ hot_id(places, stats->hot[i].place),
							   stats->hot[i].lead };
	assert(nr <= PIPELINE_HOT);
	qsort(all, nr, sizeof(*all), by_hot_id);
	for (uint32_t i = 0; i < nr; i++) {
		sum = i && all[i].id == all[i - 1].id ? sum + all[i].lead : all[i].lead;
		if (sum <= cpu->hot_samples)
			continue;
		cpu->hot_samples = sum;
		cpu->hot = all[i].id;
	}
}
