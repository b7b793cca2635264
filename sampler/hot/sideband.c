// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Mappings, names, forks and exits applied before the samples that need them; user chains that the
 * kernel records after their samples; the object in which most broken stacks end.
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
#include "symbols/symbols.h"

/* How long replaced mappings and dead processes are kept for late samples. */
#define SIDEBAND_KEEP_NS 3000000000ULL

/*
 * User chains that the kernel records when a task returns to user space (-g defer): the newest, by
 * task and number. Written under the lock. Threads read without one: a chain that is being
 * overwritten is not found.
 */

/* Of a CPU: as much as a side-band ring with chains, for a thread that was delayed. */
#define CHAIN_WORDS	(1u << 18)
#define CHAIN_WORDS_MAX (1u << 23)
#define CHAIN_WAYS	4u

struct chains {
	uint64_t nr; /* of words: a power of two */
	/* Words that are written, or being written. Its fences pair with the readers'. */
	atomic_ullong end;
	atomic_ullong *words; /* of a chain: its number, task and size, then the addresses */
	/* The positions of chains + 1, in sets by hash; release: the chain is there. */
	atomic_ullong *sets;
};

static bool chains_init(struct chains *c, uint32_t nr_cpus)
{
	c->nr = CHAIN_WORDS;
	while (c->nr < (uint64_t)nr_cpus * CHAIN_WORDS && c->nr < CHAIN_WORDS_MAX)
		c->nr *= 2;
	c->words = calloc(c->nr, sizeof(*c->words));
	c->sets = calloc(c->nr / 4, sizeof(*c->sets));
	return c->words && c->sets;
}

static atomic_ullong *chains_set(const struct chains *c, uint32_t tid, uint64_t cookie)
{
	uint64_t hash = hash_u64(cookie + ((uint64_t)tid << 32));

	return &c->sets[hash % (c->nr / 4 / CHAIN_WAYS) * CHAIN_WAYS];
}

static atomic_ullong *word_at(const struct chains *c, uint64_t at)
{
	return &c->words[at & (c->nr - 1)];
}

static void chains_put(struct chains *c, uint32_t tid, const struct record_chain *chain)
{
	atomic_ullong *set = chains_set(c, tid, chain->cookie), *oldest = set;
	uint64_t at = atomic_load_explicit(&c->end, memory_order_relaxed), ip;

	atomic_store_explicit(&c->end, at + 2 + chain->nr, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	atomic_store_explicit(word_at(c, at), chain->cookie, memory_order_relaxed);
	atomic_store_explicit(word_at(c, at + 1), (uint64_t)tid << 32 | chain->nr,
			      memory_order_relaxed);
	for (uint64_t i = 0; i < chain->nr; i++) {
		memcpy(&ip, chain->ips + i * sizeof(ip), sizeof(ip));
		atomic_store_explicit(word_at(c, at + 2 + i), ip, memory_order_relaxed);
	}
	for (atomic_ullong *one = set + 1; one < set + CHAIN_WAYS; one++)
		if (atomic_load_explicit(one, memory_order_relaxed) <
		    atomic_load_explicit(oldest, memory_order_relaxed))
			oldest = one;
	atomic_store_explicit(oldest, at + 1, memory_order_release);
}

/* Copy the chain at @at. Return its size; -1: another one is there. */
static int chain_at(const struct chains *c, uint64_t at, uint32_t tid, uint64_t cookie,
		    uint64_t *ips, uint32_t max)
{
	uint64_t head = atomic_load_explicit(word_at(c, at + 1), memory_order_relaxed);
	uint32_t nr = MIN((uint32_t)head, max);

	if (atomic_load_explicit(word_at(c, at), memory_order_relaxed) != cookie ||
	    head >> 32 != tid)
		return -1;
	for (uint32_t i = 0; i < nr; i++)
		ips[i] = atomic_load_explicit(word_at(c, at + 2 + i), memory_order_relaxed);
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&c->end, memory_order_relaxed) - at > c->nr ? -1 : (int)nr;
}

struct sideband {
	struct chains chains;
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
	if (!chains_init(&sb->chains, counters_nr_cpus(counters))) {
		free(sb->chains.words);
		free(sb->chains.sets);
		free(sb);
		return -ENOMEM;
	}
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
	free(sb->chains.words);
	free(sb->chains.sets);
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

/* Note the begin or the end of a task. */
static void note_task(struct sideband_parents *p, const struct record *r)
{
	struct sideband_birth *b = &p->births[r->task.tid % SIDEBAND_BIRTHS];
	/* Relaxed: numbers. */
	uint64_t half_ns = atomic_load_explicit(&p->half_ns, memory_order_relaxed);

	if (r->type == PERF_RECORD_FORK) {
		*b = (struct sideband_birth){ r->task.time_ns, (pid_t)r->task.tid };
		if (r->task.pid != r->task.ppid)
			atomic_store_explicit(&p->pids[r->task.ppid % ARRAY_SIZE(p->pids)],
					      (pid_t)r->task.ppid, memory_order_relaxed);
	} else if (r->type == PERF_RECORD_EXIT && b->tid == (pid_t)r->task.tid &&
		   r->task.time_ns > b->time_ns) {
		atomic_fetch_add_explicit(&p->missed_ns, MIN(r->task.time_ns - b->time_ns, half_ns),
					  memory_order_relaxed);
		b->tid = 0;
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
		if (!code && r.type == RECORD_CHAIN_DEFERRED) {
			chains_put(&sb->chains, r.tid, &r.chain);
			continue;
		}
		if (!code)
			sideband_apply(sb->maps, sb->symbols, &r);
		if (!code && sb->parents)
			note_task(sb->parents, &r);
		had = true;
	}
	ring_end(&cpu->side);
	return had;
}

int sideband_chain(const struct sideband *sb, uint32_t tid, uint64_t cookie, uint64_t *ips,
		   uint32_t max)
{
	const atomic_ullong *set = chains_set(&sb->chains, tid, cookie);
	int nr = -1;

	assert(ips || !max);
	for (uint32_t i = 0; i < CHAIN_WAYS && nr < 0; i++) {
		uint64_t at = atomic_load_explicit(&set[i], memory_order_acquire);

		if (at)
			nr = chain_at(&sb->chains, at - 1, tid, cookie, ips, max);
	}
	return nr;
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
