// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The tables that the hot loop counts into: stacks, counts, pairs; error bars of shares.
 *
 * Runs on: counts_add() on sampler threads, the rest on the builder. Invariant: a slot's key goes
 * from 0 to its value once while the table is in place; the tables that are out of place are empty
 * (all zeroes) and seen by the builder alone, because a grace period has passed since they were
 * taken out.
 *
 * The builder may have no CPU for a minute. So each table has larger ones behind it, made with it
 * (their memory is not resident until they are used): the thread that finds a table full puts the
 * next one in its place, and the builder takes the counts of all of them. A late builder costs
 * memory, up to the limit of slots, and no sample.
 */
#include "sampler/count/internal.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <urcu/urcu-qsbr.h>

#include "symbols/base/base.h"
#include "symbols/base/table.h"
#include "symbols/base/thread.h"

#define PROBES_MAX 128u
#define SLOTS_MIN  8u
#define SLOTS_MAX  (1u << 28)

/* Bits of a key. */
#define TASK_AT 22

#define EVENT_AT (TASK_AT + 20)
#define SLICE_AT (EVENT_AT + 4)

_Static_assert(1u << TASK_AT == COUNTS_TABLE_STACKS, "bits of a key");

_Static_assert(1u << (EVENT_AT - TASK_AT) == COUNTS_TABLE_TASKS, "bits of a key");

_Static_assert(1u << (SLICE_AT - EVENT_AT) == COUNTS_TABLE_EVENTS, "bits of a key");

_Static_assert(1u << (64 - SLICE_AT) == COUNTS_SLICES, "bits of a key");

struct counts_slot {
	_Atomic uint64_t key, count, weight;
};

struct counts_table {
	uint32_t mask;		   /* number of slots - 1 */
	uint32_t tick;		   /* the tick that its counts are of */
	struct counts_table *next; /* when this one is full; fixed while in place; may be NULL */
	char apart_from_mask[CACHELINE];
	atomic_uint used; /* slots used: exact without writers */
	char apart_from_used[CACHELINE];
	struct counts_slot slot[];
};

struct counts {
	_Atomic(struct counts_table *) table; /* the one that is filled */
	struct counts_table *first;	      /* the builder's: the full ones before it, and it */
	struct counts_table *spare;	      /* empty, with its next ones; may be NULL */
	struct count *aside;		      /* of this tick, from tables that were too small */
	uint32_t nr_aside;
	uint32_t min_slots, max_slots;
	atomic_uint crowded_at; /* used slots at which to wake the builder; relaxed */
};

static uint32_t slots_round(uint32_t nr)
{
	uint32_t size = SLOTS_MIN;

	while (size < nr && size < SLOTS_MAX)
		size *= 2;
	return size;
}

/* Set the limit to half full, early enough for a larger table; UINT32_MAX: no larger one. */
static void set_crowded(struct counts *c, const struct counts_table *t)
{
	uint32_t size = t->mask + 1;

	atomic_store_explicit(&c->crowded_at,
			      c->nr_aside + size < c->max_slots ? size / 2 : UINT32_MAX,
			      memory_order_relaxed);
}

static size_t table_size(uint32_t nr_slots)
{
	return sizeof(struct counts_table) + nr_slots * sizeof(((struct counts_table *)0)->slot[0]);
}

static struct counts_table *table_new(uint32_t nr_slots)
{
	struct counts_table *t = alloc_sparse(table_size(nr_slots));

	assert(nr_slots && !(nr_slots & (nr_slots - 1)));
	if (t)
		t->mask = nr_slots - 1;
	return t;
}

static void tables_free(struct counts_table *t)
{
	struct counts_table *next;

	for (; t; t = next) {
		next = t->next;
		free_sparse(t, table_size(t->mask + 1));
	}
}

/*
 * Make a table of @size slots, and behind it, as far as there is memory, larger ones with up to
 * @max slots in all.
 */
static struct counts_table *tables_new(uint32_t size, uint32_t max)
{
	struct counts_table *first = table_new(size), *t = first;
	uint32_t left = max - MIN(size, max);

	for (; t && left >= size; left -= size, t = t->next) {
		size *= left / size >= 4 ? 4 : left / size >= 2 ? 2 : 1;
		t->next = table_new(size);
	}
	return first;
}

/* Return the used slots of all tables from @t on. */
static uint32_t tables_used(const struct counts_table *t)
{
	uint32_t used = 0;

	/* Relaxed: exact without writers. */
	for (; t; t = t->next)
		used += atomic_load_explicit(&t->used, memory_order_relaxed);
	return used;
}

int counts_new(struct counts **out, uint32_t nr_slots, uint32_t max_slots)
{
	struct counts *c = calloc(1, sizeof(*c));
	struct counts_table *t;

	if (!c)
		return -ENOMEM;
	c->min_slots = slots_round(nr_slots);
	c->max_slots = MAX(slots_round(max_slots), c->min_slots);
	assert(c->min_slots <= c->max_slots);
	t = tables_new(c->min_slots, c->max_slots);
	if (!t) {
		free(c);
		return -ENOMEM;
	}
	atomic_init(&c->table, t);
	c->first = t;
	set_crowded(c, t);
	*out = c;
	return 0;
}

void counts_free(struct counts *c)
{
	if (!c)
		return;
	tables_free(c->first);
	tables_free(c->spare);
	free(c->aside);
	free(c);
}

/* Find or claim the slot of @key, NULL when its neighbourhood is full. */
static struct counts_slot *slot_get(struct counts_table *t, uint64_t key)
{
	uint32_t at = (uint32_t)hash_u64(key);

	for (uint32_t i = 0; i < PROBES_MAX && i <= t->mask; i++, at++) {
		struct counts_slot *slot = &t->slot[at & t->mask];
		/* All relaxed: only the key is published, counts start from zero. */
		uint64_t found = atomic_load_explicit(&slot->key, memory_order_relaxed);

		if (!found && atomic_compare_exchange_strong_explicit(&slot->key, &found, key,
								      memory_order_relaxed,
								      memory_order_relaxed)) {
			atomic_fetch_add_explicit(&t->used, 1, memory_order_relaxed);
			return slot;
		}
		if (found == key)
			return slot;
	}
	return NULL;
}

/* Never 0, which is an empty slot: the last stack is not counted. */
static uint64_t key_of(uint32_t stack, uint32_t task, uint32_t event, uint32_t slice)
{
	return ((uint64_t)stack | (uint64_t)task << TASK_AT | (uint64_t)event << EVENT_AT |
		(uint64_t)slice << SLICE_AT) +
	       1;
}

struct counts_table *counts_begin(struct counts *c, uint32_t *tick)
{
	/* Acquire: the zeroed table; pairs with the release in replace(). */
	struct counts_table *t = atomic_load_explicit(&c->table, memory_order_acquire);

	*tick = t->tick;
	return t;
}

/*
 * Return the table for a sample that has no slot in @t: the next one, or one that the builder has
 * put in its place in the same tick. NULL: neither is there.
 */
static struct counts_table *table_after(struct counts *c, struct counts_table *t)
{
	struct counts_table *full = t, *now;
	uint32_t tick;

	if (t->next) {
		/* For the batches that begin from now on. Release: passes on the zeroed table. */
		atomic_compare_exchange_strong_explicit(&c->table, &full, t->next,
							memory_order_release, memory_order_relaxed);
		return t->next;
	}
	now = counts_begin(c, &tick);
	return tick == t->tick && now != t ? now : NULL;
}

bool counts_add_to(struct counts *c, struct counts_table **t, uint32_t stack, uint32_t task,
		   uint32_t event, uint64_t weight, uint32_t slice)
{
	uint64_t key = key_of(stack, task, event, slice & (COUNTS_SLICES - 1));
	struct counts_slot *slot;
	struct counts_table *next;

	if (stack >= COUNTS_TABLE_STACKS - 1 || task >= COUNTS_TABLE_TASKS ||
	    event >= COUNTS_TABLE_EVENTS)
		return false;
	while (!(slot = slot_get(*t, key)) && (next = table_after(c, *t)))
		*t = next;
	if (slot) {
		/* Relaxed: read after a grace period only. */
		atomic_fetch_add_explicit(&slot->count, 1, memory_order_relaxed);
		atomic_fetch_add_explicit(&slot->weight, weight, memory_order_relaxed);
	}
	grace_reader_done(c);
	return slot != NULL;
}

bool counts_crowded(const struct counts *c)
{
	/* Acquire: as in counts_begin(). */
	const struct counts_table *t = atomic_load_explicit(&c->table, memory_order_acquire);

	return atomic_load_explicit(&t->used, memory_order_relaxed) >=
	       atomic_load_explicit(&c->crowded_at, memory_order_relaxed);
}

/*
 * Return the size of the next table: four times the counts of this tick; it shrinks step by step.
 */
static uint32_t next_size(const struct counts *c)
{
	uint32_t used = c->nr_aside + tables_used(c->first);
	uint32_t size = c->first->mask + 1;

	if (used > size / 4)
		return MIN(slots_round(MIN(used, SLOTS_MAX / 4) * 4), c->max_slots);
	if (used < size / 32)
		return MAX(size / 2, c->min_slots);
	return size;
}

/* Get empty tables, the first of @size slots, or of another size without memory for that. */
static struct counts_table *tables_take(struct counts *c, uint32_t size)
{
	struct counts_table *t = c->spare;

	if (!t || t->mask + 1 != size)
		t = tables_new(size, c->max_slots);
	if (t && t != c->spare)
		tables_free(c->spare);
	if (!t)
		t = c->spare;
	c->spare = NULL;
	return t;
}

/* Copy the counts and clear the table, which no other thread sees. */
static uint32_t table_drain(struct counts_table *t, struct count *out)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i <= t->mask; i++) {
		struct counts_slot *slot = &t->slot[i];
		uint64_t key = atomic_load_explicit(&slot->key, memory_order_relaxed);

		if (!key)
			continue;
		key--;
		out[nr].stack = (uint32_t)key & (COUNTS_TABLE_STACKS - 1);
		out[nr].task = (uint32_t)(key >> TASK_AT) & (COUNTS_TABLE_TASKS - 1);
		out[nr].event = (uint32_t)(key >> EVENT_AT) & (COUNTS_TABLE_EVENTS - 1);
		out[nr].slice = (uint32_t)(key >> SLICE_AT);
		out[nr].count = atomic_exchange_explicit(&slot->count, 0, memory_order_relaxed);
		out[nr].weight = atomic_exchange_explicit(&slot->weight, 0, memory_order_relaxed);
		atomic_store_explicit(&slot->key, 0, memory_order_relaxed);
		nr++;
	}
	atomic_store_explicit(&t->used, 0, memory_order_relaxed);
	return nr;
}

/* Get the list of counts set aside, with space for @more. NULL: out of memory, nothing changed. */
static struct count *aside_reserve(struct counts *c, uint32_t more)
{
	struct count *list = realloc(c->aside, ((size_t)c->nr_aside + more) * sizeof(*list));

	if (list)
		c->aside = list;
	return list;
}

/* Return the slots of the tables up to the one that is filled now, and of the next one. */
static uint32_t slots_ahead(const struct counts *c)
{
	/* Relaxed: it may move on. */
	const struct counts_table *now = atomic_load_explicit(&c->table, memory_order_relaxed);
	uint32_t nr = 0;

	for (const struct counts_table *t = c->first; t != now; t = t->next)
		nr += t->mask + 1;
	return nr + now->mask + 1 + (now->next ? now->next->mask + 1 : 0);
}

/* Set aside the counts of @old and its next tables, which have no writer, and keep or free them. */
static void retire(struct counts *c, struct counts_table *old)
{
	bool one = !tables_used(old->next);

	assert(!c->spare && old != c->first);
	for (struct counts_table *t = old; t && tables_used(t); t = t->next)
		c->nr_aside += table_drain(t, c->aside + c->nr_aside);
	if (one) {
		c->spare = old;
		return;
	}
	/* Much was late: its memory would stay resident. */
	tables_free(old->next);
	old->next = NULL;
	tables_free(old);
}

/*
 * Swap in an empty table of @size for @tick; set aside the counts of the old ones. 0 or -ENOMEM.
 */
static int replace(struct counts *c, uint32_t size, uint32_t tick)
{
	struct counts_table *old = c->first;
	/* As if they were full: they may still fill up. The caller returns unused memory. */
	uint32_t room = slots_ahead(c), used;
	struct counts_table *new = aside_reserve(c, room) ? tables_take(c, size) : NULL;

	if (!new)
		return -ENOMEM;
	for (struct counts_table *t = new; t; t = t->next)
		t->tick = tick;
	c->first = new;
	/* Release: the zeroed tables; pairs with the acquire in counts_begin(). */
	atomic_store_explicit(&c->table, new, memory_order_release);
	urcu_qsbr_synchronize_rcu();
	grace_waited(c);
	used = tables_used(old);
	/* A whole table since: seldom. */
	if (used > room)
		c->aside = xrealloc_array(c->aside, (size_t)c->nr_aside + used, sizeof(*c->aside));
	retire(c, old);
	return 0;
}

bool counts_grow(struct counts *c)
{
	struct counts_table *t = c->first;
	bool more = c->nr_aside + t->mask + 1 < c->max_slots && !replace(c, next_size(c), t->tick);

	/* Without memory another try before the next tick is useless. */
	if (more)
		set_crowded(c, c->first);
	else
		atomic_store_explicit(&c->crowded_at, UINT32_MAX, memory_order_relaxed);
	return more;
}

int counts_swap_for(struct counts *c, uint32_t tick, struct count **out, uint32_t *nr)
{
	int code = replace(c, next_size(c), tick);
	struct count *shrunk;

	if (code)
		return code;
	*nr = c->nr_aside;
	shrunk = realloc(c->aside, MAX(*nr, 1u) * sizeof(*shrunk));
	*out = shrunk ? shrunk : c->aside;
	c->aside = NULL;
	c->nr_aside = 0;
	set_crowded(c, c->first);
	assert(!c->aside && !c->nr_aside);
	return 0;
}

void counts_set_tick(struct counts *c, uint32_t tick)
{
	for (struct counts_table *t = c->first; t; t = t->next)
		t->tick = tick;
}

/*
 * Stacks: entries in chunks, their places in an arena of words.
 *
 * A stack is one record of the arena: a head, and its places, innermost first. Most stacks have
 * their outer frames in common with an earlier one, and name its record instead: {head, the
 * other one, inner places...}; two thirds of the words are saved so. The longest such record is
 * found by hashes of the outer places in steps of TAIL_STEP (struct stacks.tails): a hint, compared
 * place by place. Two threads that put a hint at the same time lose one, and words.
 *
 * Runs on: sampler threads; stacks_grow() on the builder, which alone makes
 * chunks. Invariant: a record is in one arena chunk, complete before its entry or a hint names it,
 * and never changes or moves; it names earlier records only; an entry of 0 was never completed.
 */

#define ENTRY_BITS  14
#define ENTRY_CHUNK (1u << ENTRY_BITS)
#define SLOTS_FIRST (1u << 17)
#define SLOTS_SMALL (1u << 11)

/* Minimum reserve for the next tick: unwritten memory is not resident. */
#define AHEAD_STACKS (1u << 16)

#define AHEAD_WORDS (1u << 20)

#define CHUNK_BITS_MIN 11 /* a stack, and part of a second one */
#define CHUNK_BITS_MAX 18
#define MEMORY_MAX     (8ULL << 30) /* places of words have 32 bits */

/* Outer places are looked for in steps of that many, and shared from one step on. */
#define TAIL_STEP 4u

/* Hints: more are overwritten. */
#define TAILS_MAX (1u << 15)

/* Records that a stack is in, at most: each may be a cache line. */
#define DEPTH_MAX 8u

/* Bits of a head: number of places; of these in this record; its depth, 0: it names no other. */
#define HEAD_BITS  11
#define HEAD_OWN   HEAD_BITS
#define HEAD_DEPTH (2 * HEAD_BITS)

_Static_assert(STACKS_PLACES_MAX < 1u << HEAD_BITS, "bits of a head");

struct entry {
	atomic_uint at; /* the place of its record in the arena, in words, + 1; 0: none */
};

struct stacks {
	struct intern intern;
	uint32_t serial;
	uint64_t max_memory;
	uint32_t chunk_bits; /* an arena chunk has 1 << chunk_bits words */
	uint32_t max_entry_chunks, max_word_chunks;
	uint32_t nr_entry_chunks; /* builder only */
	uint32_t nr_before;	  /* stacks and words at the last stacks_grow() */
	uint64_t words_before;
	atomic_uint crowded_at;		/* stacks and words at which to wake the builder: */
	_Atomic uint64_t crowded_words; /* relaxed: hints */
	_Atomic(struct entry *) *entries;
	uint32_t **chunks; /* of words; apart from the used words, which change all the time */
	atomic_uint *used;
	atomic_uint *tails; /* by the hash of outer places: a record that has them, as entry.at */
	uint32_t tails_mask;
	atomic_uint nr_word_chunks;		 /* release by the builder */
	_Alignas(CACHELINE) atomic_uint current; /* the arena chunk being filled */
};

struct stacks_key {
	const uint32_t *places;
	uint32_t nr;
};

/*
 * Two places a step: a multiply and a rotate spread the bits, hash_u64() finishes. The secret is
 * the first value and the factor: else a process could choose stacks that fill one run of slots.
 */
static uint64_t stack_hash(const struct keyhash_key *secret, const uint32_t *places, uint32_t nr)
{
	uint64_t hash = nr ^ secret->k0, factor = secret->k1;
	uint32_t i;

	for (i = 0; i + 1 < nr; i += 2) {
		hash = (hash << 29 | hash >> 35) ^ ((uint64_t)places[i] << 32 | places[i + 1]);
		hash *= factor;
	}
	if (i < nr)
		hash = ((hash << 29 | hash >> 35) ^ places[i]) * factor;
	return hash_u64(hash);
}

static struct entry *entry(const struct stacks *s, uint32_t id)
{
	/* Acquire: the zeroed entries; pairs with the release in entries_add(). */
	struct entry *chunk =
		atomic_load_explicit(&s->entries[id >> ENTRY_BITS], memory_order_acquire);

	return chunk ? &chunk[id & (ENTRY_CHUNK - 1)] : NULL;
}

static uint32_t chunk_words(const struct stacks *s)
{
	return 1u << s->chunk_bits;
}

static uint32_t *words_at(const struct stacks *s, uint32_t at)
{
	return s->chunks[at >> s->chunk_bits] + (at & (chunk_words(s) - 1));
}

/* A part of a stack: of one record. */
struct part {
	const uint32_t *record;
	const uint32_t *places;
	uint32_t nr;
	uint32_t left; /* outer places behind them, in the next record */
};

static uint32_t head_nr(const uint32_t *record)
{
	return *record & ((1u << HEAD_BITS) - 1);
}

static uint32_t head_own(const uint32_t *record)
{
	return *record >> HEAD_OWN & ((1u << HEAD_BITS) - 1);
}

static uint32_t head_depth(const uint32_t *record)
{
	return *record >> HEAD_DEPTH;
}

/* Return the first part of the outer @left places of @record. */
static struct part part_of(const uint32_t *record, uint32_t left)
{
	uint32_t own = head_own(record), skip = head_nr(record) - left;

	assert(left <= head_nr(record) && skip <= own);
	return (struct part){ record, record + 1 + (head_depth(record) > 0) + skip, own - skip,
			      left - (own - skip) };
}

static struct part next_part(const struct stacks *s, const struct part *p)
{
	return part_of(words_at(s, p->record[1] - 1), p->left);
}

/* Return whether the outer @nr places of @record are @places. */
static bool has_tail(const struct stacks *s, const uint32_t *record, const uint32_t *places,
		     uint32_t nr)
{
	struct part p = part_of(record, nr);

	while (!memcmp(places, p.places, p.nr * sizeof(*places))) {
		if (!p.left)
			return true;
		places += p.nr;
		p = next_part(s, &p);
	}
	return false;
}

static bool same(const void *store, uint32_t id, const void *key)
{
	const struct entry *e = entry(store, id);
	const struct stacks_key *k = key;
	/* Relaxed: the slot that led here was acquired. */
	unsigned int at = atomic_load_explicit(&e->at, memory_order_relaxed);
	const uint32_t *record = words_at(store, at - 1);

	return head_nr(record) == k->nr && has_tail(store, record, k->places, k->nr);
}

/* The outer places that a new stack has in common with an earlier one. */
struct tail {
	uint32_t nr;	/* 0: none */
	uint32_t at;	/* the record that has the innermost of them, as entry.at */
	uint32_t depth; /* of the new record */
	uint32_t nr_slots;
	uint32_t slots[STACKS_PLACES_MAX / TAIL_STEP]; /* in s->tails, of 4, 8, ... places */
};

/* Try the hint for the outer @nr places of @k. */
static bool try_tail(const struct stacks *s, const struct stacks_key *k, uint32_t nr,
		     struct tail *tail)
{
	/* Acquire: the record; pairs with the release in put_hints(). */
	uint32_t at = atomic_load_explicit(&s->tails[tail->slots[nr / TAIL_STEP - 1]],
					   memory_order_acquire);
	const uint32_t *record = at ? words_at(s, at - 1) : NULL;

	if (!record || head_nr(record) < nr)
		return false;
	/* The record that has the first one of them. */
	while (head_nr(record) - nr >= head_own(record)) {
		at = record[1];
		record = words_at(s, at - 1);
	}
	if (head_depth(record) + 1 == DEPTH_MAX || !has_tail(s, record, k->places + k->nr - nr, nr))
		return false;
	tail->nr = nr;
	tail->at = at;
	tail->depth = head_depth(record) + 1;
	return true;
}

static void find_tail(const struct stacks *s, const struct stacks_key *k, struct tail *tail)
{
	uint64_t hash = s->intern.secret.k0, factor = s->intern.secret.k1;
	uint32_t nr;

	tail->nr = tail->at = tail->depth = 0;
	tail->nr_slots = k->nr / TAIL_STEP;
	for (nr = 1; nr <= tail->nr_slots * TAIL_STEP; nr++) {
		hash = ((hash << 29 | hash >> 35) ^ k->places[k->nr - nr]) * factor;
		if (nr % TAIL_STEP == 0)
			tail->slots[nr / TAIL_STEP - 1] = (uint32_t)(hash >> 32) & s->tails_mask;
	}
	for (nr = tail->nr_slots; nr && !try_tail(s, k, nr * TAIL_STEP, tail);)
		nr--;
}

/* Name the record @at for the outer places that it is the first to have. */
static void put_hints(struct stacks *s, const struct tail *tail, uint32_t at)
{
	for (uint32_t i = tail->nr / TAIL_STEP; i < tail->nr_slots; i++)
		/* Release: the record; pairs with the acquire in try_tail(). */
		atomic_store_explicit(&s->tails[tail->slots[i]], at, memory_order_release);
}

/* Claim @nr words of the current arena chunk, or of the next one if it exists: as entry.at. */
static uint32_t words_claim(struct stacks *s, uint32_t nr)
{
	/* Acquire: the chunk's pointer, through the thread that moved on to it. */
	unsigned int at = atomic_load_explicit(&s->current, memory_order_acquire);

	for (;;) {
		unsigned int used = atomic_load_explicit(&s->used[at], memory_order_relaxed);

		while (used + nr <= chunk_words(s))
			/* Relaxed: the words are published with the entry. */
			if (atomic_compare_exchange_weak_explicit(&s->used[at], &used, used + nr,
								  memory_order_relaxed,
								  memory_order_relaxed))
				return (at << s->chunk_bits) + used + 1;
		/* Acquire: pairs with the release in words_add(). */
		if (at + 1 >= atomic_load_explicit(&s->nr_word_chunks, memory_order_acquire))
			return 0;
		if (atomic_compare_exchange_strong_explicit(&s->current, &at, at + 1,
							    memory_order_acq_rel,
							    memory_order_acquire))
			at++;
	}
}

static bool room(const void *store, uint32_t id, const void *key)
{
	const struct stacks *s = store;
	const struct stacks_key *k = key;
	/* As in words_claim(), which has the last word. */
	unsigned int at = atomic_load_explicit(&s->current, memory_order_acquire);
	unsigned int used = atomic_load_explicit(&s->used[at], memory_order_relaxed);

	return entry(s, id) &&
	       (used + k->nr + 1 <= chunk_words(s) ||
		at + 1 < atomic_load_explicit(&s->nr_word_chunks, memory_order_relaxed));
}

static bool write_stack(void *store, uint32_t id, const void *key)
{
	struct entry *e = entry(store, id);
	const struct stacks_key *k = key;
	uint32_t at, own, *words;
	struct tail tail;

	if (!e)
		return false;
	find_tail(store, k, &tail);
	own = k->nr - tail.nr;
	/* Never more words than room() has seen: a tail has more than the word that names it. */
	at = words_claim(store, 1 + (tail.nr > 0) + own);
	if (!at)
		return false;
	words = words_at(store, at - 1);
	*words++ = k->nr | own << HEAD_OWN | tail.depth << HEAD_DEPTH;
	if (tail.nr)
		*words++ = tail.at;
	memcpy(words, k->places, own * sizeof(*words));
	/* Release: the stack is complete; pairs with the acquire in stacks_at(). */
	atomic_store_explicit(&e->at, at, memory_order_release);
	put_hints(store, &tail, at);
	return true;
}

static const struct intern_ops ops = { same, room, write_stack };

static size_t entries_size(void)
{
	return ENTRY_CHUNK * sizeof(struct entry);
}

static size_t words_size(const struct stacks *s)
{
	return chunk_words(s) * sizeof(uint32_t);
}

static int entries_add(struct stacks *s)
{
	struct entry *chunk = alloc_sparse(entries_size());

	if (!chunk)
		return -ENOMEM;
	/* Release: the zeroes; pairs with the acquire in entry(). */
	atomic_store_explicit(&s->entries[s->nr_entry_chunks++], chunk, memory_order_release);
	return 0;
}

static uint32_t nr_word_chunks(const struct stacks *s)
{
	return atomic_load_explicit(&s->nr_word_chunks, memory_order_relaxed);
}

static int words_add(struct stacks *s)
{
	uint32_t nr = nr_word_chunks(s);
	uint32_t *words = alloc_sparse(words_size(s));

	if (!words)
		return -ENOMEM;
	s->chunks[nr] = words;
	/* Release: the chunk's pointer; pairs with the acquire in words_claim(). */
	atomic_store_explicit(&s->nr_word_chunks, nr + 1, memory_order_release);
	return 0;
}

/* Allocate the directories and the first chunks of each kind. */
static int stacks_init(struct stacks *s, uint32_t max_stacks)
{
	for (s->chunk_bits = CHUNK_BITS_MIN;
	     s->chunk_bits < CHUNK_BITS_MAX && 2ULL << s->chunk_bits <= s->max_memory / 256;)
		s->chunk_bits++;
	s->tails_mask = MIN(chunk_words(s), TAILS_MAX) - 1;
	s->max_entry_chunks = (max_stacks + ENTRY_CHUNK - 1) / ENTRY_CHUNK;
	s->max_word_chunks = s->max_memory / words_size(s) + 1;
	s->entries = calloc(s->max_entry_chunks, sizeof(*s->entries));
	s->chunks = calloc(s->max_word_chunks, sizeof(*s->chunks));
	s->used = calloc(s->max_word_chunks, sizeof(*s->used));
	s->tails = alloc_sparse((s->tails_mask + 1) * sizeof(*s->tails));
	if (!s->entries || !s->chunks || !s->used || !s->tails || entries_add(s) || words_add(s))
		return -ENOMEM;
	return intern_init(&s->intern,
			   (uint32_t)MIN(MIN(SLOTS_FIRST, 2 * max_stacks), s->max_memory / 64),
			   max_stacks);
}

int stacks_new(struct stacks **out, uint32_t max_stacks, size_t max_memory)
{
	static atomic_uint nr_tables;
	struct stacks *s = aligned_alloc(CACHELINE, sizeof(*s));
	int ret;

	if (!s)
		return -ENOMEM;
	memset(s, 0, sizeof(*s));
	/* Relaxed: only unique. */
	s->serial = atomic_fetch_add_explicit(&nr_tables, 1, memory_order_relaxed) + 1;
	s->max_memory = MIN(max_memory, MEMORY_MAX);
	ret = stacks_init(s, MIN(MAX(max_stacks, 1u), 1u << 31));
	if (ret) {
		stacks_free(s);
		return ret;
	}
	stacks_grow(s);
	*out = s;
	return 0;
}

int stacks_begin_small(struct stacks *s)
{
	uint32_t nr_slots = (uint32_t)MIN(intern_slots_nr(&s->intern), SLOTS_SMALL);
	int ret;

	assert(!stacks_nr(s));
	intern_fini(&s->intern);
	ret = intern_init(&s->intern, nr_slots, s->intern.max_ids);
	if (!ret)
		stacks_grow(s); /* sets the crowded limits */
	return ret;
}

void stacks_free(struct stacks *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->nr_entry_chunks; i++)
		free_sparse(atomic_load_explicit(&s->entries[i], memory_order_relaxed),
			    entries_size());
	for (uint32_t i = 0; i < nr_word_chunks(s); i++)
		free_sparse(s->chunks[i], words_size(s));
	intern_fini(&s->intern);
	free_sparse(s->tails, (s->tails_mask + 1) * sizeof(*s->tails));
	free(s->entries);
	free(s->chunks);
	free(s->used);
	free(s);
}

uint32_t stacks_intern(struct stacks *s, const uint32_t *places, uint32_t nr)
{
	struct stacks_key key = { .places = places, .nr = MIN(nr, (uint32_t)STACKS_PLACES_MAX) };

	assert(places || !nr);
	if (!key.nr)
		key.places = &key.nr; /* memcpy(3) takes no NULL, even for 0 bytes */
	return intern_get(&s->intern, &ops, s, stack_hash(&s->intern.secret, key.places, key.nr),
			  &key);
}

/* As memcpy(3), which costs more for the few places of a part. */
static void copy_few(uint32_t *to, const uint32_t *from, uint32_t nr)
{
	for (; nr >= 4; nr -= 4, to += 4, from += 4)
		memcpy(to, from, 4 * sizeof(*to));
	if (nr & 2)
		memcpy(to, from, 2 * sizeof(*to));
	if (nr & 1)
		to[nr - 1] = from[nr - 1];
}

const uint32_t *stacks_at(const struct stacks *s, uint32_t id, struct stacks_room *room,
			  uint32_t *nr)
{
	const struct entry *e = id < s->intern.max_ids ? entry(s, id) : NULL;
	/* Acquire: the places; pairs with the release in write_stack(). */
	unsigned int at = e ? atomic_load_explicit(&e->at, memory_order_acquire) : 0;
	struct part p;

	*nr = 0;
	if (!at)
		return NULL;
	*nr = head_nr(words_at(s, at - 1));
	p = part_of(words_at(s, at - 1), *nr);
	if (!p.left)
		return p.places;
	for (uint32_t *out = room->places;; p = next_part(s, &p)) {
		copy_few(out, p.places, p.nr);
		out += p.nr;
		if (!p.left)
			return room->places;
	}
}

uint32_t stacks_nr(const struct stacks *s)
{
	return intern_nr(&s->intern);
}

uint32_t stacks_serial(const struct stacks *s)
{
	return s->serial;
}

static size_t stacks_memory(const struct stacks *s)
{
	return sizeof(*s) + s->max_entry_chunks * sizeof(*s->entries) +
	       (s->tails_mask + 1) * sizeof(*s->tails) +
	       s->max_word_chunks * (sizeof(*s->chunks) + sizeof(*s->used)) +
	       intern_memory(&s->intern) + s->nr_entry_chunks * entries_size() +
	       nr_word_chunks(s) * words_size(s);
}

static bool fits(const struct stacks *s, size_t size)
{
	return stacks_memory(s) + size <= s->max_memory;
}

/* Return the used words, including unusable ends of chunks. */
static uint64_t words_used(const struct stacks *s)
{
	unsigned int at = atomic_load_explicit(&s->current, memory_order_relaxed);

	return (uint64_t)at * chunk_words(s) +
	       atomic_load_explicit(&s->used[at], memory_order_relaxed);
}

size_t stacks_used(const struct stacks *s)
{
	return words_used(s) * sizeof(uint32_t) +
	       stacks_nr(s) * (sizeof(struct entry) + 2 * sizeof(uint64_t));
}

/* Return the minimum reserve of words: of a small table a part, which leaves entries and slots
 * some.
 */
static uint64_t words_ahead(const struct stacks *s)
{
	return MIN((uint64_t)AHEAD_WORDS, s->max_memory / sizeof(uint32_t) / 4);
}

/* Make chunks for @nr stacks and @words words, as far as there is memory. */
static void chunks_add(struct stacks *s, uint64_t nr, uint64_t words)
{
	bool more = true;

	while (more) {
		more = false;
		if (s->nr_entry_chunks < s->max_entry_chunks &&
		    (uint64_t)s->nr_entry_chunks * ENTRY_CHUNK < nr && fits(s, entries_size()))
			more |= !entries_add(s);
		if (nr_word_chunks(s) < s->max_word_chunks &&
		    (uint64_t)nr_word_chunks(s) * chunk_words(s) < words && fits(s, words_size(s)))
			more |= !words_add(s);
	}
}

/* Report whether so little room is left that new tables are needed. */
static bool is_full(const struct stacks *s, uint64_t room_stacks, uint64_t room_words)
{
	return room_stacks <= MIN(AHEAD_STACKS / 4, s->intern.max_ids / 16) ||
	       room_words <= MIN(AHEAD_WORDS / 4, s->max_memory / sizeof(uint32_t) / 16);
}

/* Set the crowded limits: half of the room, or full slots. */
static void stacks_set_crowded(struct stacks *s, uint32_t nr, uint64_t words, uint64_t room_stacks,
			       uint64_t room_words)
{
	bool full = is_full(s, room_stacks, room_words);
	uint64_t half = intern_slots_nr(&s->intern) / 2 + 1;
	/* Still over half full: out of memory, which is not retried at each stack. */
	uint64_t at = MIN(nr + room_stacks / 2, half > nr ? half : nr + AHEAD_STACKS / 16);

	atomic_store_explicit(&s->crowded_at, full ? UINT32_MAX : (unsigned int)at,
			      memory_order_relaxed);
	atomic_store_explicit(&s->crowded_words, full ? UINT64_MAX : words + room_words / 2,
			      memory_order_relaxed);
}

bool stacks_crowded(const struct stacks *s)
{
	return stacks_nr(s) >= atomic_load_explicit(&s->crowded_at, memory_order_relaxed) ||
	       words_used(s) >= atomic_load_explicit(&s->crowded_words, memory_order_relaxed);
}

bool stacks_grow(struct stacks *s)
{
	uint32_t nr = stacks_nr(s);
	uint64_t words = words_used(s);
	/* Returned ids may make the number smaller than before. */
	uint64_t stacks_tick = nr > s->nr_before ? nr - s->nr_before : 0;
	uint64_t words_tick = words - s->words_before;
	uint64_t room_stacks, room_words;

	s->nr_before = nr;
	s->words_before = words;
	/* Slots first: the rest needs them. */
	if (fits(s, intern_growth(&s->intern)))
		intern_grow(&s->intern);
	chunks_add(s, nr + MAX((uint64_t)AHEAD_STACKS, 2 * stacks_tick),
		   words + MAX(words_ahead(s), 2 * words_tick));
	room_stacks = MIN((uint64_t)s->nr_entry_chunks * ENTRY_CHUNK, s->intern.max_ids) - nr;
	room_words = (uint64_t)nr_word_chunks(s) * chunk_words(s) - words;
	stacks_set_crowded(s, nr, words, room_stacks, room_words);
	return room_stacks > stacks_tick && room_words > words_tick + STACKS_PLACES_MAX &&
	       !is_full(s, room_stacks, room_words) && !intern_growth(&s->intern);
}

#define COUNTS_EVENTS_MAX (1u << 8)

/*
 * Counts by place and number, in a hash table. Runs on: the builder.
 */

/* Pairs of a table; samples of further ones are counted as left out. */
#define PAIRS_MAX (1u << 20)

struct pairs {
	struct hashset set;
	struct pair *pairs;
	uint32_t nr, room;
	uint64_t left_out;
};

struct pairs *pairs_new(void)
{
	return calloc(1, sizeof(struct pairs));
}

void pairs_free(struct pairs *p)
{
	if (!p)
		return;
	hashset_fini(&p->set);
	free(p->pairs);
	free(p);
}

static struct pair *find(struct pairs *p, uint32_t place, uint32_t other)
{
	uint64_t hash = keyhash_number((uint64_t)place << 32 | other);
	uint32_t at = 0, id;

	while ((id = hashset_next(&p->set, hash, &at)) != HASHSET_NONE)
		if (p->pairs[id].place == place && p->pairs[id].other == other)
			return &p->pairs[id];
	if (p->nr == PAIRS_MAX || hashset_reserve(&p->set, 1) ||
	    !array_reserve(&p->pairs, &p->room, p->nr + 1ull))
		return NULL;
	hashset_add(&p->set, hash, p->nr);
	p->pairs[p->nr] = (struct pair){ .place = place, .other = other };
	return &p->pairs[p->nr++];
}

void pairs_add(struct pairs *p, uint32_t place, uint32_t other, const uint64_t figures[static 3])
{
	struct pair *pair = find(p, place, other);

	if (!pair) {
		p->left_out++;
		return;
	}
	pair->count++;
	for (int i = 0; i < 3; i++)
		pair->sums[i] += figures[i];
}

const struct pair *pairs_all(const struct pairs *p, uint32_t *nr)
{
	*nr = p ? p->nr : 0;
	return p ? p->pairs : NULL;
}

uint64_t pairs_left_out(const struct pairs *p)
{
	return p ? p->left_out : 0;
}

/*
 * Error bars from counts alone. Pure.
 */

#define Z INTERVAL_Z

struct interval interval_of(double count, double total)
{
	double p, middle, half, scale;

	assert(count >= 0);
	if (!(total > 0))
		return (struct interval){ 0, 1 };
	p = MIN(MAX(count / total, 0.0), 1.0);
	scale = 1 + Z * Z / total;
	middle = (p + Z * Z / (2 * total)) / scale;
	half = Z / scale * sqrt(p * (1 - p) / total + Z * Z / (4 * total * total));
	assert(half >= 0);
	return (struct interval){ MAX(middle - half, 0.0), MIN(middle + half, 1.0) };
}

/* The variance of a sum of weights that are about equal. A weight without a sample is one of one.
 */
static double variance(struct interval_sum s)
{
	return s.weight * s.weight / (s.count > 0 ? s.count : 1);
}

bool interval_exceeds(struct interval_sum more, struct interval_sum less, double z)
{
	double count = more.count + less.count, d = more.weight - less.weight;

	/* For continuity: a count is at least half a sample away from the next. */
	if (count > 0)
		d -= (more.weight + less.weight) / count;
	return d > 0 && d * d > z * z * (variance(more) + variance(less));
}
