// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Stacks: entries in chunks, their places in an arena of words.
 *
 * Runs on: sampler threads; stacks_grow() on the builder, which alone makes
 * chunks. Invariant: a stack is in one arena chunk as {nr, places...} and never moves; an entry
 * with NULL words was never completed.
 */
#include "sampler/count/count.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"
#include "symbols/base/intern.h"

#define ENTRY_BITS  14
#define ENTRY_CHUNK (1u << ENTRY_BITS)
#define SLOTS_FIRST (1u << 17)
#define SLOTS_SMALL (1u << 11)
/* Minimum reserve for the next tick: unwritten memory is not resident. */
#define AHEAD_STACKS (1u << 16)
#define AHEAD_WORDS  (1u << 22)
#define MEMORY_MAX   (16ULL << 30)

struct entry {
	_Atomic(const uint32_t *) words; /* nr, then the places, innermost first */
};

struct word_chunk {
	uint32_t *words;
	atomic_uint used;
};

struct stacks {
	struct intern intern;
	uint32_t serial;
	uint64_t max_memory;
	uint32_t chunk_words; /* words in an arena chunk */
	uint32_t max_entry_chunks, max_word_chunks;
	uint32_t nr_entry_chunks; /* builder only */
	uint32_t nr_before;	  /* stacks and words at the last stacks_grow() */
	uint64_t words_before;
	atomic_uint crowded_at;		/* stacks and words at which to wake the builder: */
	_Atomic uint64_t crowded_words; /* relaxed: hints */
	_Atomic(struct entry *) *entries;
	struct word_chunk *chunks;
	atomic_uint nr_word_chunks;		 /* release by the builder */
	_Alignas(CACHELINE) atomic_uint current; /* the arena chunk being filled */
};

struct key {
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

static bool same(const void *store, uint32_t id, const void *key)
{
	const struct entry *e = entry(store, id);
	const struct key *k = key;
	/* Relaxed: the slot that led here was acquired. */
	const uint32_t *words = atomic_load_explicit(&e->words, memory_order_relaxed);

	return words[0] == k->nr && !memcmp(words + 1, k->places, k->nr * sizeof(*words));
}

/* Claim @nr words of the current arena chunk, or of the next one if it exists. */
static uint32_t *words_claim(struct stacks *s, uint32_t nr)
{
	/* Acquire: the chunk's pointer, through the thread that moved on to it. */
	unsigned int at = atomic_load_explicit(&s->current, memory_order_acquire);

	for (;;) {
		struct word_chunk *c = &s->chunks[at];
		unsigned int used = atomic_load_explicit(&c->used, memory_order_relaxed);

		while (used + nr <= s->chunk_words)
			/* Relaxed: the words are published with the entry. */
			if (atomic_compare_exchange_weak_explicit(&c->used, &used, used + nr,
								  memory_order_relaxed,
								  memory_order_relaxed))
				return c->words + used;
		/* Acquire: pairs with the release in words_add(). */
		if (at + 1 >= atomic_load_explicit(&s->nr_word_chunks, memory_order_acquire))
			return NULL;
		if (atomic_compare_exchange_strong_explicit(&s->current, &at, at + 1,
							    memory_order_acq_rel,
							    memory_order_acquire))
			at++;
	}
}

static bool room(const void *store, uint32_t id, const void *key)
{
	const struct stacks *s = store;
	const struct key *k = key;
	/* As in words_claim(), which has the last word. */
	unsigned int at = atomic_load_explicit(&s->current, memory_order_acquire);
	unsigned int used = atomic_load_explicit(&s->chunks[at].used, memory_order_relaxed);

	return entry(s, id) &&
	       (used + k->nr + 1 <= s->chunk_words ||
		at + 1 < atomic_load_explicit(&s->nr_word_chunks, memory_order_relaxed));
}

static bool write_stack(void *store, uint32_t id, const void *key)
{
	struct entry *e = entry(store, id);
	const struct key *k = key;
	uint32_t *words = e ? words_claim(store, k->nr + 1) : NULL;

	if (!words)
		return false;
	words[0] = k->nr;
	memcpy(words + 1, k->places, k->nr * sizeof(*words));
	/* Release: the stack is complete; pairs with the acquire in stacks_at(). */
	atomic_store_explicit(&e->words, words, memory_order_release);
	return true;
}

static const struct intern_ops ops = { same, room, write_stack };

static size_t entries_size(void)
{
	return ENTRY_CHUNK * sizeof(struct entry);
}

static size_t words_size(const struct stacks *s)
{
	return s->chunk_words * sizeof(uint32_t);
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
	s->chunks[nr].words = words;
	/* Release: the chunk's pointer; pairs with the acquire in words_claim(). */
	atomic_store_explicit(&s->nr_word_chunks, nr + 1, memory_order_release);
	return 0;
}

/* Allocate the directories and the first chunks of each kind. */
static int stacks_init(struct stacks *s, uint32_t max_stacks)
{
	s->chunk_words = MAX(MIN(s->max_memory / 256, 1u << 18), 2u * (STACKS_PLACES_MAX + 1));
	s->max_entry_chunks = (max_stacks + ENTRY_CHUNK - 1) / ENTRY_CHUNK;
	s->max_word_chunks = s->max_memory / words_size(s) + 1;
	s->entries = calloc(s->max_entry_chunks, sizeof(*s->entries));
	s->chunks = calloc(s->max_word_chunks, sizeof(*s->chunks));
	if (!s->entries || !s->chunks || entries_add(s) || words_add(s))
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
		free_sparse(s->chunks[i].words, words_size(s));
	intern_fini(&s->intern);
	free(s->entries);
	free(s->chunks);
	free(s);
}

uint32_t stacks_intern(struct stacks *s, const uint32_t *places, uint32_t nr)
{
	struct key key = { .places = places, .nr = MIN(nr, (uint32_t)STACKS_PLACES_MAX) };

	if (!key.nr)
		key.places = &key.nr; /* memcpy(3) takes no NULL, even for 0 bytes */
	return intern_get(&s->intern, &ops, s, stack_hash(&s->intern.secret, key.places, key.nr),
			  &key);
}

const uint32_t *stacks_at(const struct stacks *s, uint32_t id, uint32_t *nr)
{
	const struct entry *e = id < s->intern.max_ids ? entry(s, id) : NULL;
	/* Acquire: the places; pairs with the release in write_stack(). */
	const uint32_t *words = e ? atomic_load_explicit(&e->words, memory_order_acquire) : NULL;

	*nr = words ? words[0] : 0;
	return words ? words + 1 : NULL;
}

uint32_t stacks_nr(const struct stacks *s)
{
	return intern_nr(&s->intern);
}

uint32_t stacks_serial(const struct stacks *s)
{
	return s->serial;
}

size_t stacks_memory(const struct stacks *s)
{
	return sizeof(*s) + s->max_entry_chunks * sizeof(*s->entries) +
	       s->max_word_chunks * sizeof(*s->chunks) + intern_memory(&s->intern) +
	       s->nr_entry_chunks * entries_size() + nr_word_chunks(s) * words_size(s);
}

static bool fits(const struct stacks *s, size_t size)
{
	return stacks_memory(s) + size <= s->max_memory;
}

/* Return the used words, including unusable ends of chunks. */
static uint64_t words_used(const struct stacks *s)
{
	unsigned int at = atomic_load_explicit(&s->current, memory_order_relaxed);

	return (uint64_t)at * s->chunk_words +
	       atomic_load_explicit(&s->chunks[at].used, memory_order_relaxed);
}

size_t stacks_used(const struct stacks *s)
{
	return words_used(s) * sizeof(uint32_t) +
	       stacks_nr(s) * (sizeof(struct entry) + 2 * sizeof(uint64_t));
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
		    (uint64_t)nr_word_chunks(s) * s->chunk_words < words && fits(s, words_size(s)))
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
static void set_crowded(struct stacks *s, uint32_t nr, uint64_t words, uint64_t room_stacks,
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
		   words + MAX((uint64_t)AHEAD_WORDS, 2 * words_tick));
	room_stacks = MIN((uint64_t)s->nr_entry_chunks * ENTRY_CHUNK, s->intern.max_ids) - nr;
	room_words = (uint64_t)nr_word_chunks(s) * s->chunk_words - words;
	set_crowded(s, nr, words, room_stacks, room_words);
	return room_stacks > stacks_tick && room_words > words_tick + STACKS_PLACES_MAX &&
	       !is_full(s, room_stacks, room_words) && !intern_growth(&s->intern);
}
