// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The hot loop, one thread for each CPU: from the ring into the pipeline; deltas of counted group
 * members; lag.
 *
 * Runs on: sampler thread n. Records are read in place; their space is released to the kernel
 * during a batch, so that a long batch loses nothing. A thread is an urcu-qsbr reader that is
 * online only while it handles samples; each batch counts into one set of stats, chosen at its
 * start.
 */
#include "sampler/hot/internal.h"

#include <assert.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>
#include <urcu-qsbr.h>

#include "sampler/count/count.h"
#include "sampler/event/event.h"
#include "sampler/perfdata/perfdata.h"
#include "sampler/reader/reader.h"
#include "sampler/record/record.h"
#include "sampler/ring/ring.h"
#include "sampler/waits/waits.h"
#include "symbols/base/base.h"
#include "symbols/base/table.h"
#include "symbols/base/thread.h"
#include "symbols/name/name.h"
#include "symbols/process/process.h"
#include "symbols/script/script.h"
#include "symbols/symbols.h"
#include "unwind/unwind.h"

/*
 * Dispatch one record of the ring: samples to the pipeline; losses, throttling and switches to the
 * statistics and queues of the thread.
 */

/* A stack is that of a switch so shortly after it: switches are not recorded all the time. */
#define STACK_NS 1000000ULL

/* The time in which stacks of waits are counted. */
#define FLOOD_NS 100000000ULL

static void on_throttle(struct sampler_thread *t, struct sampler_thread_stats *stats,
			const struct record *r)
{
	uint64_t since;

	if (r->type == PERF_RECORD_THROTTLE) {
		stats->throttled++;
		atomic_store_explicit(&t->throttled_since, r->time_ns, memory_order_relaxed);
		return;
	}
	since = atomic_exchange_explicit(&t->throttled_since, 0, memory_order_relaxed);
	if (since)
		stats->throttled_ns += record_pause_ns(since, r->time_ns);
}

/*
 * Report whether to record @r: our own samples and switches are left out, and tasks in the
 * side-band also. Wake-ups of others by interrupts of ours are recorded.
 */
static bool is_recorded(const struct sampler_thread *t, const struct record *r,
			const struct record_layout *layout)
{
	if (r->type == PERF_RECORD_FORK || r->type == PERF_RECORD_EXIT ||
	    r->type == PERF_RECORD_COMM)
		return false;
	if (r->type == PERF_RECORD_SAMPLE)
		return layout->sample_type & PERF_SAMPLE_RAW ||
		       !pipeline_is_own(t->own_pid, t->guard, (pid_t)r->sample.pid);
	return (r->type != PERF_RECORD_SWITCH && r->type != PERF_RECORD_SWITCH_CPU_WIDE) ||
	       !pipeline_is_own(t->own_pid, t->guard, (pid_t)r->pid);
}

_Static_assert(COUNTERS_GONE == PIPELINE_EVENT_GONE, "counted under this reason");

static int slot_of(void *ctx, uint64_t id)
{
	const struct sampler_thread *t = ctx;

	return counters_event_of(t->shared->counters, t->cpu_index, id);
}

/* Count a stack of a wait. By the times of samples: a batch may have been delayed. */
static void note_wait_stack(struct sampler_thread *t, uint64_t time_ns)
{
	if (time_ns > t->waits_since_ns + FLOOD_NS) {
		t->waits_since_ns = time_ns;
		t->nr_waits = 0;
	}
	t->most_waits = MAX(t->most_waits, ++t->nr_waits);
}

/*
 * Pass a step of a task to the builder. The idle task and our own are left out, and the last switch
 * of a task that has exited: the kernel has no number for it any more, and writes -1.
 */
static void put_step(struct sampler_thread *t, uint32_t pid, uint32_t tid, enum task_step step,
		     uint64_t time_ns)
{
	struct switch_note note = {
		.time_ns = time_ns,
		.pid = (pid_t)pid,
		.tid = (pid_t)tid,
		.stack = STACK_NONE,
		.step = step,
	};

	if (!t->queue || note.tid <= 0 || pipeline_is_own(t->own_pid, t->guard, note.pid))
		return;
	if ((step == STEP_OUT || step == STEP_PREEMPTED) && t->wait.tid == note.tid &&
	    time_ns - MIN(t->wait.time_ns, time_ns) < STACK_NS) {
		note.stack = t->wait.stack;
		note.period = t->wait.period;
		note.generation = t->wait.generation;
		t->wait.tid = 0;
	}
	switch_queue_put(t->queue, &note);
}

/* Pass the sample that was counted last to the builder, if it counts for latency. */
static void put_sample(struct sampler_thread *t, const struct record_sample *s, int event)
{
	struct switch_note note;

	if (!t->queue || event != t->latency)
		return;
	note = (struct switch_note){
		.time_ns = s->time_ns,
		.tid = (pid_t)s->tid,
		.period = (uint32_t)MIN(s->period, UINT32_MAX),
		.generation = SWITCH_GENERATION(t->generation),
		.step = STEP_SAMPLE,
	};
	note.stack = pipeline_counted(t->pipeline, &note.task);
	if (note.stack != STACK_NONE && note.tid > 0)
		switch_queue_put(t->queue, &note);
}

/* Pass a wake-up to the builder. */
static void on_waking(struct sampler_thread *t, const struct record_sample *s)
{
	uint32_t tid;

	if (s->raw_size < WAKING_PID_OFFSET + sizeof(tid))
		return;
	memcpy(&tid, s->raw + WAKING_PID_OFFSET, sizeof(tid));
	put_step(t, 0, tid, STEP_WOKEN, s->time_ns);
}

/*
 * Records of samples that wait: for a process, an object or JIT code that is being read, a caller
 * that is being proven, a deferred chain. Copied out of the ring, one behind the other, the oldest
 * first, each with the second copy of its stack, to be handled again. Their room is fixed.
 */

/* Not touched, and so not resident, without such samples. */
#define HELD_SAMPLES_BYTES (512U << 10)

/* A helper reads code within some milliseconds; on a busy machine it waits for a CPU. */
#define HELD_SAMPLES_NS 150000000ULL

/* A task returns to user space when it has a CPU again; one that waits in the kernel, maybe never.
 */
#define DEFERRED_NS 1000000000ULL

struct held_samples {
	uint32_t used;
	_Alignas(8) uint8_t bytes[HELD_SAMPLES_BYTES];
};

/* In front of each record. */
struct held_samples_head {
	uint64_t until_ns;		/* then it is counted as it is */
	struct unwind_interrupted more; /* its bytes are behind the record */
};

static struct held_samples *held_samples_new(void)
{
	struct held_samples *h =
		aligned_alloc(CACHELINE, sizeof(*h) + CACHELINE - sizeof(*h) % CACHELINE);

	if (h)
		h->used = 0;
	return h;
}

static void held_samples_free(struct held_samples *h)
{
	free(h);
}

static uint32_t padded(const struct perf_event_header *record)
{
	return (record->size + 7U) / 8 * 8;
}

/* Copy @record, which is held until @until_ns; false: no room. */
static bool held_samples_put(struct held_samples *h, const struct perf_event_header *record,
			     const struct unwind_interrupted *more, uint64_t until_ns)
{
	const struct held_samples_head head = { .until_ns = until_ns, .more = *more };
	size_t size = sizeof(head) + padded(record) + (more->size + 7) / 8 * 8;
	uint8_t *to = h->bytes + h->used;

	if (size > sizeof(h->bytes) - h->used)
		return false;
	memcpy(to, &head, sizeof(head));
	memcpy(to + sizeof(head), record, record->size);
	if (more->size)
		memcpy(to + sizeof(head) + padded(record), more->bytes, more->size);
	h->used += (uint32_t)size;
	return true;
}

static bool held_samples_any(const struct held_samples *h)
{
	return h->used;
}

/*
 * Handle each record once more: @handle returns whether it is done with it. @last: it was held for
 * long enough, and is removed in any case.
 */
typedef bool (*held_samples_fn)(void *ctx, const struct perf_event_header *record,
				const struct unwind_interrupted *more, bool last);

static void held_samples_again(struct held_samples *h, uint64_t now_ns, bool last,
			       held_samples_fn handle, void *ctx)
{
	uint32_t kept = 0, size;

	for (uint32_t at = 0; at < h->used; at += size) {
		const struct held_samples_head *head = (const void *)(h->bytes + at);
		const struct perf_event_header *record = (const void *)(head + 1);
		bool late = last || now_ns > head->until_ns;
		struct unwind_interrupted more = head->more;

		more.bytes = (const uint8_t *)record + padded(record);
		size = (uint32_t)(sizeof(*head) + padded(record) + (more.size + 7) / 8 * 8);
		if (handle(ctx, record, &more, late) || late)
			continue;
		memmove(h->bytes + kept, h->bytes + at, size);
		kept += size;
	}
	h->used = kept;
}

/* Complete the chain of @s, if it is in two records. False: the second one is not there. */
static bool complete_chain(struct sampler_thread *t, struct record_sample *s)
{
	uint64_t cookie = record_deferred(s), own = s->nr_chain - 1;
	uint64_t ips[SAMPLER_THREAD_JOINED];
	int nr;

	if (!cookie || own >= SAMPLER_THREAD_JOINED || !t->shared->sideband)
		return true;
	nr = sideband_chain(t->shared->sideband, s->tid, cookie, ips,
			    SAMPLER_THREAD_JOINED - (uint32_t)own);
	if (nr >= 0)
		record_join(s, t->joined, ips, (uint64_t)nr);
	return nr >= 0;
}

/* A held sample, to be handled once more. */
struct again {
	struct sampler_thread *t;
	struct sampler_thread_stats *stats;
};

static bool handle_again(void *ctx, const struct perf_event_header *h,
			 const struct unwind_interrupted *more, bool last)
{
	const struct again *a = ctx;
	struct sampler_thread *t = a->t;
	const struct record_layout *layout = counters_layout_of(t->shared->counters, h);
	struct record r;
	bool done;

	if (record_decode(&r, layout, h, h->size)) { /* it was decoded before */
		pipeline_bad_record(&a->stats->samples);
		return true;
	}
	if (!complete_chain(t, &r.sample) && !last)
		return false;
	pipeline_set_slot(t->pipeline, NULL, more);
	done = pipeline_sample(t->pipeline, &a->stats->samples, &r.sample, slot_of(t, r.sample.id),
			       layout->regs_mask, !last);
	pipeline_set_slot(t->pipeline, NULL, NULL);
	return done;
}

/* Handle the held samples again. @last: all of them are counted. */
static void sampler_thread_again(struct sampler_thread *t, struct sampler_thread_stats *stats,
				 bool last)
{
	struct again a = { t, stats };

	held_samples_again(t->held_samples, t->now_ns, last, handle_again, &a);
}

/*
 * Count a sample, or hold it while code is read, or until its chain is there. Not one whose count
 * is used at once: by its group, for latency, or to see whether all is read. Return whether the
 * pipeline has its frames.
 */
static bool count_sample(struct sampler_thread *t, struct sampler_thread_stats *stats,
			 struct record_sample *s, int event, uint64_t regs_mask,
			 const struct perf_event_header *h)
{
	static const struct unwind_interrupted none;
	bool may_wait = !s->nr_reads && !(t->queue && event == t->latency) &&
			!atomic_load_explicit(&t->shared->warming, memory_order_relaxed);

	if (!complete_chain(t, s) && may_wait &&
	    held_samples_put(t->held_samples, h, &none, t->now_ns + DEFERRED_NS))
		return false;
	if (!pipeline_sample(t->pipeline, &stats->samples, s, event, regs_mask, may_wait) &&
	    !held_samples_put(t->held_samples, h, pipeline_other(t->pipeline),
			      t->now_ns + HELD_SAMPLES_NS))
		pipeline_count(t->pipeline, &stats->samples, s, event);
	return true;
}

/* Handle a sample. Return whether the pipeline has its frames: else they are of another sample. */
static bool on_sample(struct sampler_thread *t, struct sampler_thread_stats *stats,
		      struct record_sample *s, uint64_t regs_mask,
		      const struct perf_event_header *h)
{
	bool own = pipeline_is_own(t->own_pid, t->guard, (pid_t)s->pid);
	struct pipeline_member members[EVENTS_MAX];
	int event = slot_of(t, s->id);
	bool resolved;
	uint32_t nr;

	if (t->batch_reader)
		langreader_note_event(t->batch_reader, s->id, event);
	if (event == COUNTERS_WAKING) {
		on_waking(t, s);
		return false;
	}
	lag_note(&stats->lag, t->now_ns, s->time_ns);
	/* Consume deltas of our own samples too, or they leak into the next one. */
	nr = s->nr_reads ? deltas_of_sample(t->deltas, s, 0, slot_of, t, members) : 0;
	t->filtered =
		t->shared->only_chosen && !own &&
		!maps_is_chosen(sampler_thread_tables(t->shared)->maps, (pid_t)s->pid, s->time_ns);
	if (t->filtered) {
		pipeline_leave_out(t->pipeline, &stats->samples, s, event,
				   &stats->samples.filtered);
		return false;
	}
	if (event >= 0 && event == counters_wait_slot(t->shared->counters)) {
		note_wait_stack(t, s->time_ns);
		t->wait = (struct switch_note){
			.time_ns = s->time_ns,
			.tid = (pid_t)s->tid,
			.stack = pipeline_wait(t->pipeline, &stats->samples, s, event, regs_mask),
			.period = (uint32_t)MIN(s->period, UINT32_MAX),
			.generation = SWITCH_GENERATION(t->generation),
		};
		return !own;
	}
	for (uint32_t i = 0; i < nr; i++)
		if (members[i].event == event)
			s->period = members[i].count;
	resolved = count_sample(t, stats, s, event, regs_mask, h);
	put_sample(t, s, event);
	if (nr && !own)
		pipeline_members(t->pipeline, members, nr, event);
	return resolved && !own;
}

static void on_switch(struct sampler_thread *t, const struct record *r)
{
	enum task_step out = r->change.preempt ? STEP_PREEMPTED : STEP_OUT;

	put_step(t, r->pid, r->tid, r->change.out ? out : STEP_IN, r->time_ns);
}

/* Record the frames, and the other stack, of the sample that was handled last, before it. */
static void record_frames(struct sampler_thread *t, const struct record_sample *s)
{
	size_t size;

	if (!pipeline_get_frames(t->pipeline, s, &t->notes->frames))
		return;
	size = lang_record_put_frames(t->notes->bytes, &t->notes->frames);
	if (size)
		recorder_put_bytes(t->lane, t->notes->bytes, size);
}

/* Handle the record @h, in place: no lock, malloc, file or string. */
static void sampler_thread_record(struct sampler_thread *t, struct sampler_thread_stats *stats,
				  const struct perf_event_header *h)
{
	const struct sampler_thread_shared *shared = t->shared;
	const struct record_layout *layout = counters_layout_of(shared->counters, h);
	struct record r;
	int code = record_decode(&r, layout, h, h->size);

	bool recorded = t->lane && (!code || code == -ENOTSUP) && is_recorded(t, &r, layout);

	/* A sample after its frames. */
	if (recorded && (code || r.type != PERF_RECORD_SAMPLE))
		recorder_put(t->lane, h, &r);
	if (code == -ENOTSUP)
		return;
	if (code) {
		pipeline_bad_record(&stats->samples);
		return;
	}
	switch (r.type) {
	case PERF_RECORD_SAMPLE:
		if (on_sample(t, stats, &r.sample, layout->regs_mask, h) && recorded && t->notes)
			record_frames(t, &r.sample);
		if (recorded && !t->filtered)
			recorder_put(t->lane, h, &r);
		break;
	case PERF_RECORD_LOST:
		stats->lost_records += r.lost;
		break;
	case PERF_RECORD_THROTTLE:
	case PERF_RECORD_UNTHROTTLE:
		on_throttle(t, stats, &r);
		break;
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		on_switch(t, &r);
		break;
	case PERF_RECORD_FORK:
		put_step(t, r.task.pid, r.task.tid, STEP_BORN, r.task.time_ns);
		break;
	case PERF_RECORD_EXIT:
		put_step(t, r.task.pid, r.task.tid, STEP_EXIT, r.task.time_ns);
		break;
	case PERF_RECORD_COMM:
		if (r.comm.exec)
			put_step(t, r.comm.pid, r.comm.tid, STEP_EXEC, r.time_ns);
		break;
	default:
		break;
	}
}

/* Samples are queued at most this long when the watermark is not reached. */
#define SAMPLER_THREAD_POLL_MS 50

/* The same while no process and no object is new. */
#define SAMPLER_THREAD_CALM_MS 100

/*
 * After a request to the loader, and at the start, poll sooner: samples are pending until the
 * answer is seen, and a stack may need two.
 */
#define THREAD_QUICK_MS 4

#define THREAD_QUICK_ROUNDS 16

/* Batches without a request after which nothing new is expected: about a second. */
#define THREAD_CALM_ROUNDS 36

#define THREAD_NICE -10

/* Without a pause of a millisecond for BUSY_NS it rests. */
#define PAUSE_NS 1000000ULL
#define BUSY_NS	 20000000ULL
#define REST_NS	 10000000ULL

/* Records after which ring space is released and the clock is read. */
#define THREAD_RELEASE_EVERY 16

/* Events of groups with counts in the samples: not touched, and so not resident, without such
 * groups. */
#define THREAD_DELTAS 12288

/* Shortest time between two calls of the builder for a reader. */
#define ASK_NS 10000000ULL

/* Samples of interpreters in a tick before a reader is wished for. */
#define LANGREADER_SAMPLES 3

/* The same of stacks that are longer than their copies: one sample in this number. */
#define FAR_PART 50

static void note_ring_high(struct sampler_thread *t)
{
	uint64_t ppm = (uint64_t)(ring_take_high(&t->cpu->data) * 1e6);

	if (ppm > atomic_load_explicit(&t->ring_high_ppm, memory_order_relaxed))
		atomic_store_explicit(&t->ring_high_ppm, ppm, memory_order_relaxed);
}

/* Wake the builder when the tables fill up, once for all threads. */
static void ask_room(struct sampler_thread *t)
{
	const struct pipeline_tables *tables = sampler_thread_tables(t->shared);
	bool queue = t->queue && switch_queue_crowded(t->queue);

	if (!queue && !counts_crowded(tables->counts) && !stacks_crowded(tables->stacks) &&
	    !places_crowded(tables->places))
		return;
	if (atomic_exchange_explicit(&t->shared->room_wanted, true, memory_order_relaxed))
		return;
	wake_send(t->shared->builder_fd);
}

/* Report to the builder that too many stacks of waits are taken. */
static void note_flood(struct sampler_thread *t)
{
	uint32_t max = atomic_load_explicit(&t->shared->waits_max, memory_order_relaxed);
	bool is_flood = max && t->most_waits >= max;

	t->most_waits = 0;
	if (!is_flood ||
	    atomic_exchange_explicit(&t->shared->waits_flood, true, memory_order_relaxed))
		return;
	wake_send(t->shared->builder_fd);
}

/* Return whether interpreters ran in this tick, or stacks that are longer than their copies. */
static bool wants_reader(const struct pipeline_stats *st)
{
	return st->lang_status[LANG_NO_READER] >= LANGREADER_SAMPLES ||
	       (st->far >= LANGREADER_SAMPLES && st->far > st->taken / FAR_PART);
}

/*
 * Wake the builder: interpreters run here without a reader (once), or the reader hangs, or has
 * questions.
 */
static void ask_reader(struct sampler_thread *t, const struct sampler_thread_stats *stats,
		       const struct langreader *reader)
{
	uint32_t process;
	pid_t pid;

	if (reader && !langreader_has_questions(reader) &&
	    !langreader_hangs(reader, time_now_ns(), &pid, &process))
		return;
	if (reader && t->now_ns - t->asked_ns < ASK_NS)
		return;
	t->asked_ns = t->now_ns;
	if (!reader && (!wants_reader(&stats->samples) ||
			atomic_exchange_explicit(&t->wish, true, memory_order_relaxed)))
		return;
	wake_send(t->shared->builder_fd);
}

/* Return the stats for a new batch of @tick. */
static struct sampler_thread_stats *begin_stats(struct sampler_thread *t, uint32_t tick)
{
	atomic_store_explicit(&t->handled[tick & 1], t->cpu->data.head, memory_order_relaxed);
	return &t->stats[tick & 1];
}

/* A thread needs little CPU time, but soon, or the ring overflows on a busy machine. */
static void go_first(struct sampler_thread *t)
{
	t->first = thread_go_first(THREAD_NICE);
	if (t->first)
		atomic_store_explicit(&t->shared->goes_first, true, memory_order_relaxed);
}

/*
 * A thread with a real-time priority that has much to do rests now and then: the loader needs the
 * CPU to read the objects of the samples. It keeps the priority: a share of a busy machine's CPU
 * would come too late for the ring, which has room for such a rest.
 */
static void rest(struct sampler_thread *t, uint64_t before_ns, uint64_t after_ns)
{
	const struct timespec time = { .tv_nsec = REST_NS };

	if (after_ns - before_ns > PAUSE_NS) {
		t->paused_ns = after_ns;
	} else if (t->first && after_ns - t->paused_ns > BUSY_NS) {
		nanosleep(&time, NULL);
		t->paused_ns = time_now_ns();
	}
}

/* Handle all records that are in the ring now. */
static void run_batch(struct sampler_thread *t, bool last)
{
	struct ring *ring = &t->cpu->data;
	const struct perf_event_header *h;
	const struct pipeline_tables *tables;
	struct sampler_thread_stats *stats;
	struct langreader *reader;
	unsigned int nr = 0;
	uint32_t tick;

	if (!ring_begin(ring) && !held_samples_any(t->held_samples) &&
	    !atomic_load_explicit(&t->barred, memory_order_relaxed))
		return;
	/* After the head: every mapping older than these samples. */
	sideband_drain(t->shared->sideband);
	rcu_thread_online();
	tables = sampler_thread_tables(t->shared);
	pipeline_use(t->pipeline, tables, &tick);
	stats = begin_stats(t, tick);
	t->generation = tables->generation;
	/* Pairs with sampler_thread_set_reader(). */
	reader = atomic_load_explicit(&t->reader, memory_order_acquire);
	t->batch_reader = reader;
	pipeline_set_reader(t->pipeline, reader);
	if (reader)
		langreader_catch_up(reader, ring);
	/* Acquire: the process that was barred; pairs with sampler_thread_note_barred(). */
	if (atomic_load_explicit(&t->barred, memory_order_relaxed) &&
	    atomic_exchange_explicit(&t->barred, false, memory_order_acquire) && reader)
		langreader_refuse_barred(reader);
	t->now_ns = time_now_ns();
	sampler_thread_again(t, stats, false);
	while ((h = ring_next(ring))) {
		sampler_thread_record(t, stats, h);
		if (++nr % THREAD_RELEASE_EVERY == 0) {
			ring_release(ring);
			t->now_ns = time_now_ns();
			rest(t, t->now_ns, t->now_ns);
			ask_room(t);
		}
	}
	ring_end(ring);
	for (uint64_t bad = ring_take_bad(ring); bad; bad--)
		pipeline_bad_record(&stats->samples);
	if (last)
		sampler_thread_again(t, stats, true);
	ask_room(t);
	ask_reader(t, stats, reader);
	note_flood(t);
	note_ring_high(t);
	grace_reader_done(t->shared);
	rcu_thread_offline();
	if (pipeline_take_asked(t->pipeline)) {
		symbols_wake(t->shared->symbols);
		t->quick = THREAD_QUICK_ROUNDS;
		t->calm = 0;
	}
}

/* Run a batch; report to a recorder up to which time its lane is complete. */
static void run_round(struct sampler_thread *t, bool last)
{
	/* Acquire: the queues; pairs with the builder's release. They live as long as the threads.
	 */
	struct waits *waits = atomic_load_explicit(&t->shared->waits, memory_order_acquire);
	uint64_t now_ns = time_now_ns();

	t->queue = waits ? waits_queue(waits, t->cpu_index) : NULL;
	t->latency = waits ? waits_latency(waits) : -1;
	t->calm++;
	run_batch(t, last);
	atomic_store_explicit(&t->done_ns, now_ns, memory_order_release);
	if (t->queue)
		switch_queue_done(t->queue, now_ns);
	if (t->lane)
		recorder_drained(t->lane, now_ns);
}

/*
 * Return how long samples may be queued. At few samples most of a batch's time is spent on caches
 * that others have used since: half as many batches. Waits are counted by batches of one length.
 */
static int step_ms(const struct sampler_thread *t)
{
	return t->calm < THREAD_CALM_ROUNDS || t->queue ? SAMPLER_THREAD_POLL_MS
							: SAMPLER_THREAD_CALM_MS;
}

/* Return the time until the next point of the grid. */
static int grid_ms(const struct sampler_thread *t)
{
	const uint64_t step_ns = (uint64_t)step_ms(t) * 1000000ULL;
	uint64_t grid_ns = atomic_load_explicit(&t->shared->grid_ns, memory_order_relaxed);
	uint64_t now_ns = time_now_ns();

	if (!grid_ns || now_ns < grid_ns)
		return step_ms(t);
	/* Not twice for one point: poll(2) may wake a little early. */
	return (int)((step_ns - (now_ns - grid_ns) % step_ns) / 1000000) + 1;
}

static int wait_ms(struct sampler_thread *t)
{
	if (!t->quick)
		return grid_ms(t);
	t->quick--;
	return THREAD_QUICK_MS;
}

/* With a reader the ring is not looked at, or each sample would wake us as well. */
static void choose_ring(struct sampler_thread *t, bool hung_up, struct pollfd fds[4])
{
	if (fds[3].revents & POLLIN)
		wake_clear(t->kick_fd);
	fds[1].fd = hung_up || atomic_load_explicit(&t->reader, memory_order_relaxed)
			    ? -1
			    : t->cpu->data_fd;
}

/* Name the thread as perf and top show it: "cpu0" (prctl(2), 15 bytes). */
static void name_thread(int cpu)
{
	char name[16];

	snprintf(name, sizeof(name), "cpu%d", cpu);
	prctl(PR_SET_NAME, name);
}

static void *thread_main(void *arg)
{
	struct sampler_thread *t = arg;
	struct pollfd fds[] = {
		{ .fd = t->stop_fd, .events = POLLIN },
		{ .fd = t->cpu->data_fd, .events = POLLIN },
		{ .fd = t->cpu->side_fd, .events = POLLIN },
		{ .fd = t->kick_fd, .events = POLLIN },
	};
	bool hung_up = false;
	uint64_t before_ns;

	name_thread(t->cpu->cpu);
	limits_drop_thread_caps(LIMITS_SAMPLER);
	go_first(t);
	rcu_register_thread();
	rcu_thread_offline();
	t->quick = THREAD_QUICK_ROUNDS;
	t->paused_ns = before_ns = time_now_ns();
	while (poll(fds, ARRAY_SIZE(fds), wait_ms(t)) >= 0 || errno == EINTR) {
		rest(t, before_ns, time_now_ns());
		if (fds[0].revents)
			break;
		/* The event of a task hangs up when the task ends: then the ring is read by time.
		 */
		hung_up |= fds[1].revents & (POLLHUP | POLLERR | POLLNVAL);
		if (fds[2].revents & (POLLHUP | POLLERR | POLLNVAL))
			fds[2].fd = -1;
		choose_ring(t, hung_up, fds);
		if (fds[2].revents & POLLIN)
			sideband_drain(t->shared->sideband);
		run_round(t, false);
		before_ns = time_now_ns();
	}
	/* Samples taken before the end count. */
	run_round(t, true);
	rcu_thread_online();
	rcu_unregister_thread();
	t->cpu_ns = time_thread_ns();
	return NULL;
}

int sampler_thread_start(struct sampler_thread **out, struct sampler_thread_shared *shared,
			 uint32_t cpu_index, struct err *e)
{
	struct sampler_thread *t = aligned_alloc(CACHELINE, sizeof(*t));
	int code;

	if (!t)
		return err_set(e, -ENOMEM, "no memory for a sampler thread");
	memset(t, 0, sizeof(*t));
	t->shared = shared;
	t->cpu_index = cpu_index;
	t->cpu = counters_cpu(shared->counters, cpu_index);
	t->own_pid = sampler_thread_tables(shared)->own_pid;
	t->guard = sampler_thread_tables(shared)->guard;
	atomic_init(&t->done_ns, time_now_ns());
	if (shared->recorder)
		t->lane = recorder_lane(shared->recorder, cpu_index);
	if (t->lane)
		t->notes = calloc(1, sizeof(*t->notes));
	t->stop_fd = wake_new();
	t->kick_fd = wake_new();
	if (t->stop_fd < 0 || t->kick_fd < 0) {
		code = MIN(t->stop_fd, t->kick_fd);
		err_set(e, code, "cannot start sampling: eventfd: %s", strerror(-code));
		goto out;
	}
	code = pipeline_new(&t->pipeline, sampler_thread_tables(shared), e);
	if (code)
		goto out;
	t->deltas = deltas_new(THREAD_DELTAS);
	t->held_samples = held_samples_new();
	if (!t->deltas || !t->held_samples) {
		code = err_set(e, -ENOMEM, "no memory for a sampler thread");
		goto out;
	}
	code = thread_start(&t->id, 0, thread_main, t);
	if (!code) {
		*out = t;
		return 0;
	}
	err_set(e, code, "cannot start a sampler thread: %s", strerror(-code));
out:
	pipeline_free(t->pipeline);
	deltas_free(t->deltas);
	held_samples_free(t->held_samples);
	if (t->stop_fd >= 0)
		close(t->stop_fd);
	if (t->kick_fd >= 0)
		close(t->kick_fd);
	free(t->notes);
	free(t);
	return code;
}

void sampler_thread_finish(struct sampler_thread *t)
{
	if (!t->finished) {
		wake_send(t->stop_fd);
		pthread_join(t->id, NULL);
	}
	t->finished = true;
}

void sampler_thread_stop(struct sampler_thread *t)
{
	if (!t)
		return;
	sampler_thread_finish(t);
	pipeline_free(t->pipeline);
	deltas_free(t->deltas);
	held_samples_free(t->held_samples);
	close(t->stop_fd);
	close(t->kick_fd);
	free(t->notes);
	free(t);
}

void sampler_thread_set_reader(struct sampler_thread *t, struct langreader *reader)
{
	/* Release: the reader is whole; pairs with run_batch(). */
	atomic_store_explicit(&t->reader, reader, memory_order_release);
}

void sampler_thread_drop_reader(struct sampler_thread *t)
{
	sampler_thread_set_reader(t, NULL);
	synchronize_rcu();
	grace_waited(t->shared);
}

struct langreader *sampler_thread_reader(const struct sampler_thread *t)
{
	return atomic_load_explicit(&t->reader, memory_order_relaxed);
}

void sampler_thread_note_barred(struct sampler_thread *t)
{
	/* Release: which one it is; pairs with run_batch(). */
	atomic_store_explicit(&t->barred, true, memory_order_release);
	wake_send(t->kick_fd);
}

bool sampler_thread_take_wish(struct sampler_thread *t)
{
	return atomic_load_explicit(&t->wish, memory_order_relaxed) &&
	       atomic_exchange_explicit(&t->wish, false, memory_order_relaxed);
}

int sampler_thread_kick_fd(const struct sampler_thread *t)
{
	return t->kick_fd;
}

void sampler_thread_take_stats(struct sampler_thread *t, uint32_t tick,
			       struct sampler_thread_stats *out)
{
	*out = t->stats[tick & 1];
	out->handled = atomic_load_explicit(&t->handled[tick & 1], memory_order_relaxed);
	memset(&t->stats[tick & 1], 0, sizeof(t->stats[0]));
}

uint64_t sampler_thread_done_ns(const struct sampler_thread *t)
{
	return atomic_load_explicit(&t->done_ns, memory_order_acquire);
}

uint64_t sampler_thread_throttled_since(const struct sampler_thread *t)
{
	return atomic_load_explicit(&t->throttled_since, memory_order_relaxed);
}

double sampler_thread_take_ring_high(struct sampler_thread *t)
{
	return (double)atomic_exchange_explicit(&t->ring_high_ppm, 0, memory_order_relaxed) / 1e6;
}

uint64_t sampler_thread_cpu_ns(const struct sampler_thread *t)
{
	clockid_t clock;

	if (t->finished)
		return t->cpu_ns;
	return pthread_getcpuclockid(t->id, &clock) ? 0 : time_clock_ns(clock);
}

void sampler_thread_unwind_stats(const struct sampler_thread *t, struct unwind_stats *out)
{
	pipeline_unwind_stats(t->pipeline, out);
}

/*
 * The last count of each event, by its id and its task: open addressing, never removed from.
 *
 * Runs on: one sampler thread, or the replay. Invariant: at most three
 * quarters are used, so a search ends.
 */

/* Slots of the largest table. */
#define DELTAS_MAX (1U << 22)

struct last {
	uint64_t id, value; /* id 0: empty; the kernel's begin with 1 */
	uint32_t tid;	    /* 0: of all tasks of the event */
};

struct deltas {
	uint32_t mask, used;
	struct last last[];
};

/* Return how many of @size slots may be used. */
static uint32_t limit_of(uint32_t size)
{
	return size / 4 * 3;
}

struct deltas *deltas_new(uint32_t nr)
{
	uint32_t size = 16;
	struct deltas *d;

	while (limit_of(size) < nr && size < DELTAS_MAX)
		size *= 2;
	d = calloc(1, sizeof(*d) + size * sizeof(d->last[0]));
	assert(!(size & (size - 1)));
	if (d)
		d->mask = size - 1;
	return d;
}

void deltas_free(struct deltas *d)
{
	free(d);
}

/* Find the slot of a count; an empty one: it is new. */
static struct last *find(struct deltas *d, uint64_t id, uint32_t tid)
{
	/* The author of a recording chooses the ids. */
	uint64_t at = keyhash_number(id);

	if (tid)
		at = keyhash_number(at + tid);
	for (;; at++) {
		struct last *last = &d->last[at & d->mask];

		if (!last->id || (last->id == id && last->tid == tid))
			return last;
	}
}

struct deltas *deltas_reserve(struct deltas *d, uint32_t nr)
{
	uint32_t size = d->mask + 1;
	struct deltas *larger;

	if (nr <= limit_of(size) - d->used || size >= DELTAS_MAX)
		return d;
	larger = deltas_new(MAX(2 * limit_of(size), d->used + nr));
	if (!larger)
		return d;
	for (const struct last *last = d->last; last < d->last + size; last++)
		if (last->id)
			*find(larger, last->id, last->tid) = *last;
	larger->used = d->used;
	free(d);
	return larger;
}

/*
 * Return the increase of @value since the last call with @id and @tid; at first @value. 0: the
 * table is full.
 */
static uint64_t deltas_take(struct deltas *d, uint64_t id, uint32_t tid, uint64_t value)
{
	struct last *last = find(d, id, tid);
	uint32_t limit = limit_of(d->mask + 1);
	uint64_t was;

	if (!id || (!last->id && d->used >= limit))
		return 0;
	d->used += !last->id;
	assert(d->used <= limit);
	last->id = id;
	last->tid = tid;
	was = last->value;
	last->value = value;
	/* A hostile file may have a smaller value. */
	return value > was ? value - was : 0;
}

uint32_t deltas_of_sample(struct deltas *d, const struct record_sample *s, uint32_t tid,
			  deltas_slot_fn slot, void *ctx,
			  struct pipeline_member out[static EVENTS_MAX])
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < s->nr_reads && nr < EVENTS_MAX; i++) {
		uint64_t value[2];

		memcpy(value, s->reads + (size_t)i * s->read_size, sizeof(value));
		out[nr].event = slot(ctx, value[1]);
		out[nr].count = deltas_take(d, value[1], tid, value[0]);
		nr += out[nr].event >= 0 && out[nr].count;
	}
	return nr;
}
