// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Mappings, names, forks and exits applied before the samples that need them; samples in JIT code
 * that is being read; the object in which most broken stacks end.
 *
 * Runs on: the first sampler thread (or the builder) to call; the mutex serialises them. Records
 * are applied in ring order, CPU after CPU; the maps sort by time.
 */
#include "sampler/hot/internal.h"

#include <assert.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/event/event.h"
#include "sampler/record/record.h"
#include "sampler/ring/ring.h"
#include "symbols/base/base.h"
#include "symbols/image/image.h"
#include "symbols/kernel/kernel.h"
#include "symbols/process/process.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/symbols.h"

/* How long replaced mappings and dead processes are kept for late samples. */
#define SIDEBAND_KEEP_NS 3000000000ULL

struct sideband {
	struct counters *counters;
	struct maps *maps;
	struct symbols *symbols;
	struct recorder_lane *lane;	  /* NULL: nothing is recorded; written under the lock */
	struct sideband_parents *parents; /* or NULL */
	pthread_mutex_t lock;
	/*
	 * Drains begun and, of the last one finished, its number. A caller that
	 * finds a finished drain that began after its call has nothing to do.
	 */
	atomic_ulong nr_begun;
	atomic_ulong last_done;
};

int sideband_new(struct sideband **out, struct counters *counters, struct maps *maps,
		 struct symbols *symbols, struct sideband_parents *parents)
{
	struct sideband *sb = calloc(1, sizeof(*sb));

	if (!sb)
		return -ENOMEM;
	sb->counters = counters;
	sb->maps = maps;
	sb->symbols = symbols;
	sb->parents = parents;
	mutex_init_urgent(&sb->lock);
	*out = sb;
	return 0;
}

void sideband_free(struct sideband *sb)
{
	if (!sb)
		return;
	pthread_mutex_destroy(&sb->lock);
	free(sb);
}

void sideband_record(struct sideband *sb, struct recorder_lane *lane)
{
	sb->lane = lane;
}

static void on_mmap(struct maps *maps, const struct record *r)
{
	const struct maps_mmap ev = {
		.pid = (pid_t)r->mmap.pid,
		.tid = (pid_t)r->mmap.tid,
		.start = r->mmap.start,
		.size = r->mmap.size,
		.pgoff = r->mmap.pgoff,
		.time_ns = r->time_ns,
		.prot = r->mmap.prot,
		.is_private = r->mmap.is_private,
		.identity = r->mmap.identity,
		.filename = r->mmap.filename,
		.filename_size = r->mmap.filename_size,
	};

	maps_on_mmap(maps, &ev);
}

/*
 * Apply the recorded address of a module, or of the kernel: "[kernel.kallsyms]_text", or _stext, is
 * the symbol at pgoff (perf, since 2010).
 */
static void on_kernel(struct symbols *symbols, const struct record_mmap *m)
{
	static const char prefix[] = "[kernel.kallsyms]";
	size_t size = strnlen(m->filename, m->filename_size), cut = sizeof(prefix) - 1;
	struct recorded_kernel told = { .mark = m->pgoff,
					.start = m->start,
					.end = m->start + m->size };

	if (told.end < told.start)
		return;
	if (size < cut || memcmp(m->filename, prefix, cut)) {
		symbols_kernel_module(symbols, m->filename, size, told.start, told.end);
		return;
	}
	told.stext = size - cut == 6 && !memcmp(m->filename + cut, "_stext", 6);
	if (!told.stext && (size - cut != 5 || memcmp(m->filename + cut, "_text", 5)))
		return;
	symbols_kernel_was(symbols, &told);
}

static void on_ksymbol(struct symbols *symbols, const struct record_ksymbol *k)
{
	if (k->gone)
		symbols_on_kernel_gone(symbols, k->start, k->size);
	else
		symbols_on_kernel_code(symbols, k->start, k->size,
				       k->type == PERF_RECORD_KSYMBOL_TYPE_BPF, k->name,
				       k->name_size);
}

void sideband_apply(struct maps *maps, struct symbols *symbols, const struct record *r)
{
	switch (r->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		if ((r->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL)
			on_kernel(symbols, &r->mmap);
		on_mmap(maps, r);
		break;
	case PERF_RECORD_COMM:
		maps_on_comm(maps, (pid_t)r->comm.pid, (pid_t)r->comm.tid, r->comm.comm,
			     r->comm.comm_size, r->comm.exec, r->time_ns);
		break;
	case PERF_RECORD_FORK:
		maps_on_fork(maps, (pid_t)r->task.pid, (pid_t)r->task.ppid, (pid_t)r->task.tid,
			     (pid_t)r->task.ptid, r->task.time_ns);
		break;
	case PERF_RECORD_EXIT:
		maps_on_exit(maps, (pid_t)r->task.pid, (pid_t)r->task.tid, r->task.time_ns);
		break;
	case PERF_RECORD_KSYMBOL:
		on_ksymbol(symbols, &r->ksymbol);
		break;
	case PERF_RECORD_LOST:
		maps_on_lost(maps);
		break;
	default:
		break;
	}
}

/* Drain the ring of one CPU. True if it had records. */
static bool drain_cpu(struct sideband *sb, struct counters_cpu *cpu)
{
	const struct record_layout *layout = counters_side_layout(sb->counters);
	const struct perf_event_header *h;
	struct record r;
	bool had = false;

	if (!ring_begin(&cpu->side))
		return false;
	while ((h = ring_next(&cpu->side))) {
		int code = record_decode(&r, layout, h, h->size);

		if (sb->lane && (!code || code == -ENOTSUP))
			recorder_put(sb->lane, h, &r);
		if (!code)
			sideband_apply(sb->maps, sb->symbols, &r);
		/* Relaxed: a number. */
		if (!code && sb->parents && r.type == PERF_RECORD_FORK && r.task.pid != r.task.ppid)
			atomic_store_explicit(
				&sb->parents->pids[r.task.ppid % ARRAY_SIZE(sb->parents->pids)],
				(pid_t)r.task.ppid, memory_order_relaxed);
		had = true;
	}
	ring_end(&cpu->side);
	return had;
}

void sideband_drain(struct sideband *sb)
{
	unsigned long before = atomic_load_explicit(&sb->nr_begun, memory_order_acquire);
	unsigned long mine;
	uint64_t now_ns;
	bool any;

	pthread_mutex_lock(&sb->lock);
	/* A drain that began after our call has applied all that we need. */
	if (atomic_load_explicit(&sb->last_done, memory_order_acquire) > before)
		goto out;
	mine = atomic_fetch_add_explicit(&sb->nr_begun, 1, memory_order_acq_rel) + 1;
	assert(mine > before);
	now_ns = time_now_ns();
	any = maps_due(sb->maps, now_ns);
	for (uint32_t i = 0; i < counters_nr_cpus(sb->counters); i++)
		any |= drain_cpu(sb, counters_cpu(sb->counters, i));
	if (sb->lane)
		recorder_drained(sb->lane, now_ns);
	if (any)
		maps_publish(sb->maps, time_now_ns(), SIDEBAND_KEEP_NS);
	atomic_store_explicit(&sb->last_done, mine, memory_order_release);
out:
	pthread_mutex_unlock(&sb->lock);
}

/*
 * Records one behind the other, oldest first. Runs on: the sampler thread.
 */

#define HELD_SAMPLES_BYTES                                                                         \
	(512U << 10) /* not touched, and so not resident, without such samples                     \
		      */

/* A helper reads code within some milliseconds; on a busy machine it waits for a CPU. */
#define HELD_SAMPLES_NS 150000000ULL

struct held_samples {
	uint32_t used;
	_Alignas(8) uint8_t bytes[HELD_SAMPLES_BYTES];
};

/* In front of each record. */
struct held_samples_head {
	uint64_t since_ns;
	struct unwind_interrupted more; /* its bytes are behind the record */
};

struct held_samples *held_samples_new(void)
{
	struct held_samples *h =
		aligned_alloc(CACHELINE, sizeof(*h) + CACHELINE - sizeof(*h) % CACHELINE);

	if (h)
		h->used = 0;
	return h;
}

void held_samples_free(struct held_samples *h)
{
	free(h);
}

static uint32_t padded(const struct perf_event_header *record)
{
	return (record->size + 7U) / 8 * 8;
}

bool held_samples_put(struct held_samples *h, const struct perf_event_header *record,
		      const struct unwind_interrupted *more, uint64_t now_ns)
{
	const struct held_samples_head head = { .since_ns = now_ns, .more = *more };
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

bool held_samples_any(const struct held_samples *h)
{
	return h->used;
}

void held_samples_again(struct held_samples *h, uint64_t now_ns, bool last, held_samples_fn handle,
			void *ctx)
{
	uint32_t kept = 0, size;

	for (uint32_t at = 0; at < h->used; at += size) {
		const struct held_samples_head *head = (const void *)(h->bytes + at);
		const struct perf_event_header *record = (const void *)(head + 1);
		bool late = last || now_ns - head->since_ns > HELD_SAMPLES_NS;
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

/*
 * The object in which most broken stacks end. Runs on: sampler threads, the builder.
 */

static void vote(struct ends_slot *slot, uint32_t object, uint32_t votes)
{
	if (slot->object == object || !slot->lead)
		*slot = (struct ends_slot){ object, slot->lead + votes };
	else if (slot->lead >= votes)
		slot->lead -= votes;
	else
		*slot = (struct ends_slot){ object, votes - slot->lead };
}

void broken_objects_note(struct broken_objects *e, uint32_t object)
{
	vote(&e->slots[object & (BROKEN_OBJECTS_SLOTS - 1)], object, 1);
}

void broken_objects_add(struct broken_objects *sum, const struct broken_objects *add)
{
	for (int i = 0; i < BROKEN_OBJECTS_SLOTS; i++)
		vote(&sum->slots[i], add->slots[i].object, add->slots[i].lead);
}

uint32_t broken_objects_most(const struct broken_objects *e, uint64_t all)
{
	for (int i = 0; i < BROKEN_OBJECTS_SLOTS; i++)
		if (e->slots[i].lead && 2ULL * e->slots[i].lead >= all)
			return e->slots[i].object;
	return UINT32_MAX;
}
