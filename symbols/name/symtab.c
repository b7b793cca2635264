// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Functions by id, in chunks that never move, and by (object, start).
 *
 * The hash slots are private to the loader; readers see only chunks, made visible
 * by the release of nr.
 */
#include "symbols/name/symtab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"

#define CHUNK_BITS  10
#define CHUNK_SIZE  (1U << CHUNK_BITS)
#define NR_CHUNKS   8192U
#define FIRST_SLOTS 4096U

struct symtab {
	struct text_arena *texts;
	uint32_t *slots; /* id + 1, 0: empty; linear probing; a power of two */
	uint32_t nr_slots;
	struct safe_text module; /* of the last symbol: most follow one of the same module */
	_Alignas(CACHELINE) atomic_uint nr; /* release by symtab_add, acquire by symtab_at */
	_Atomic(struct symbol *) chunks[NR_CHUNKS];
};

static struct symbol *at(const struct symtab *t, uint32_t id)
{
	/* Stored before the release of nr that made the id known. */
	return &atomic_load_explicit(&t->chunks[id >> CHUNK_BITS],
				     memory_order_relaxed)[id & (CHUNK_SIZE - 1)];
}

static uint64_t key_hash(const struct symtab_key *key)
{
	return hash_u64(hash_u64(((uint64_t)key->object << 1 | key->made_up) ^ key->variant) ^
			key->start);
}

static struct symtab_key key_of(const struct symbol *s)
{
	return (struct symtab_key){ s->object, s->start, s->variant, s->made_up };
}

int symtab_new(struct symtab **out)
{
	struct symtab *t = aligned_alloc(CACHELINE, sizeof(*t));

	if (!t)
		return -ENOMEM;
	memset(t, 0, sizeof(*t));
	t->texts = text_arena_new();
	t->nr_slots = FIRST_SLOTS;
	t->slots = calloc(t->nr_slots, sizeof(*t->slots));
	if (!t->texts || !t->slots) {
		symtab_free(t);
		return -ENOMEM;
	}
	*out = t;
	return 0;
}

void symtab_free(struct symtab *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < NR_CHUNKS; i++)
		free(atomic_load_explicit(&t->chunks[i], memory_order_relaxed));
	free(t->slots);
	text_arena_free(t->texts);
	free(t);
}

uint32_t symtab_find(const struct symtab *t, const struct symtab_key *key)
{
	uint32_t i = (uint32_t)key_hash(key) & (t->nr_slots - 1);

	for (; t->slots[i]; i = (i + 1) & (t->nr_slots - 1)) {
		const struct symbol *s = at(t, t->slots[i] - 1);

		if (s->object == key->object && s->start == key->start &&
		    s->variant == key->variant && s->made_up == key->made_up)
			return t->slots[i] - 1;
	}
	return SYMBOL_NONE;
}

static void slots_put(struct symtab *t, uint64_t hash, uint32_t id)
{
	uint32_t i = (uint32_t)hash & (t->nr_slots - 1);

	while (t->slots[i])
		i = (i + 1) & (t->nr_slots - 1);
	t->slots[i] = id + 1;
}

/* Keep the slots at most half full. */
static int slots_reserve(struct symtab *t, uint32_t nr)
{
	uint32_t *slots;

	if (nr * 2 <= t->nr_slots)
		return 0;
	slots = calloc((size_t)t->nr_slots * 2, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(t->slots);
	t->slots = slots;
	t->nr_slots *= 2;
	for (uint32_t id = 0; id < nr - 1; id++) {
		struct symtab_key key = key_of(at(t, id));

		slots_put(t, key_hash(&key), id);
	}
	return 0;
}

static struct safe_text module_text(struct symtab *t, const struct symtab_text *text)
{
	if (!t->module.str || t->module.size != text->module_size ||
	    memcmp(t->module.str, text->module, text->module_size))
		t->module = text_arena_add(t->texts, text->module, text->module_size);
	return t->module;
}

uint32_t symtab_add(struct symtab *t, const struct symtab_key *key, const struct symtab_text *text)
{
	uint32_t id = atomic_load_explicit(&t->nr, memory_order_relaxed);
	struct symbol *s;

	if (id >= NR_CHUNKS * CHUNK_SIZE || slots_reserve(t, id + 1))
		return SYMBOL_NONE;
	if (!atomic_load_explicit(&t->chunks[id >> CHUNK_BITS], memory_order_relaxed)) {
		s = calloc(CHUNK_SIZE, sizeof(*s));
		if (!s)
			return SYMBOL_NONE;
		atomic_store_explicit(&t->chunks[id >> CHUNK_BITS], s, memory_order_relaxed);
	}
	s = at(t, id);
	*s = (struct symbol){
		.name = text_arena_add(t->texts, text->name, text->name_size),
		.module = module_text(t, text),
		.object = key->object,
		.start = key->start,
		.variant = key->variant,
		.kind = text->kind,
		.made_up = key->made_up,
		.inlined = text->inlined,
	};
	slots_put(t, key_hash(key), id);
	/* Publishes the symbol and its chunk; pairs with symtab_at(). */
	atomic_store_explicit(&t->nr, id + 1, memory_order_release);
	return id;
}

const struct symbol *symtab_at(const struct symtab *t, uint32_t id)
{
	/* Pairs with the release in symtab_add(). */
	if (id >= atomic_load_explicit(&t->nr, memory_order_acquire))
		return NULL;
	return at(t, id);
}

uint32_t symtab_nr(const struct symtab *t)
{
	return atomic_load_explicit(&t->nr, memory_order_acquire);
}

size_t symtab_memory(const struct symtab *t)
{
	uint32_t chunks = (symtab_nr(t) + CHUNK_SIZE - 1) / CHUNK_SIZE;

	return sizeof(*t) + t->nr_slots * sizeof(*t->slots) +
	       (size_t)chunks * CHUNK_SIZE * sizeof(struct symbol) + text_arena_size(t->texts);
}
