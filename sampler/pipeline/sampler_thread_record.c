// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Dispatch one record of the ring: samples to the pipeline; losses, throttling and switches to the
 * statistics and queues of the thread.
 */
#include "sampler/pipeline/sampler_thread_record.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>

#include "sampler/event/waking.h"
#include "sampler/reader/reader.h"
#include "unwind/unwind.h"

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
		       !pipeline_is_own(t->own_pid, (pid_t)r->sample.pid);
	return (r->type != PERF_RECORD_SWITCH && r->type != PERF_RECORD_SWITCH_CPU_WIDE) ||
	       !pipeline_is_own(t->own_pid, (pid_t)r->pid);
}

_Static_assert(COUNTERS_GONE == PIPELINE_EVENT_GONE, "counted under this reason");

static int slot_of(void *ctx, uint64_t id)
{
	const struct sampler_thread *t = ctx;

	return counters_event_of(t->shared->counters, t->cpu_index, id);
}

/* Count a stack of a wait. By the times of samples: a batch may have been delayed. */
static void count_wait(struct sampler_thread *t, uint64_t time_ns)
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

	if (!t->queue || note.tid <= 0 || pipeline_is_own(t->own_pid, note.pid))
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

/* A held sample, to be handled once more. */
struct again {
	struct sampler_thread *t;
	struct sampler_thread_stats *stats;
};

static bool handle_again(void *ctx, const struct perf_event_header *h, bool last)
{
	const struct again *a = ctx;
	struct sampler_thread *t = a->t;
	const struct record_layout *layout = counters_layout_of(t->shared->counters, h);
	struct record r;

	if (record_decode(&r, layout, h, h->size)) { /* it was decoded before */
		pipeline_bad_record(&a->stats->samples);
		return true;
	}
	return pipeline_sample(t->pipeline, &a->stats->samples, &r.sample, slot_of(t, r.sample.id),
			       layout->regs_mask, !last);
}

void sampler_thread_again(struct sampler_thread *t, struct sampler_thread_stats *stats, bool last)
{
	struct again a = { t, stats };

	unread_again(t->unread, t->now_ns, last, handle_again, &a);
}

/*
 * Count a sample, or hold it while code is read. Not one whose count is used at once: by its group,
 * or for latency.
 */
static void count_sample(struct sampler_thread *t, struct sampler_thread_stats *stats,
			 const struct record_sample *s, int event, uint64_t regs_mask,
			 const struct perf_event_header *h)
{
	bool may_wait = !s->nr_reads && !(t->queue && event == t->latency);

	if (pipeline_sample(t->pipeline, &stats->samples, s, event, regs_mask, may_wait) ||
	    unread_put(t->unread, h, t->now_ns))
		return;
	pipeline_count(t->pipeline, &stats->samples, s, event);
}

/* Handle a sample. Return whether the pipeline has its frames: else they are of another sample. */
static bool on_sample(struct sampler_thread *t, struct sampler_thread_stats *stats,
		      struct record_sample *s, uint64_t regs_mask,
		      const struct perf_event_header *h)
{
	bool own = pipeline_is_own(t->own_pid, (pid_t)s->pid);
	struct pipeline_member members[EVENTS_MAX];
	int event = slot_of(t, s->id);
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

	if (event >= 0 && event == counters_wait_slot(t->shared->counters)) {
		count_wait(t, s->time_ns);
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
	count_sample(t, stats, s, event, regs_mask, h);
	put_sample(t, s, event);
	if (nr && !own)
		pipeline_members(t->pipeline, members, nr, event);
	return !own;
}

static void on_switch(struct sampler_thread *t, const struct record *r)
{
	enum task_step out = r->change.preempt ? STEP_PREEMPTED : STEP_OUT;

	put_step(t, r->pid, r->tid, r->change.out ? out : STEP_IN, r->time_ns);
}

/* Record the frames of the sample that was handled last, before the sample. */
static void record_frames(struct sampler_thread *t, const struct record_sample *s)
{
	size_t size;

	if (!pipeline_get_frames(t->pipeline, s, &t->notes->frames))
		return;
	size = lang_record_put_frames(t->notes->bytes, &t->notes->frames);
	if (size)
		recorder_put_bytes(t->lane, t->notes->bytes, size);
}

void sampler_thread_record(struct sampler_thread *t, struct sampler_thread_stats *stats,
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
		if (recorded)
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
