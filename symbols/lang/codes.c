// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Functions by (process, address, stamp); their texts by content.
 *
 * Runs on: readers (find, add), the loader and others (by id).
 */
#include "symbols/lang/codes.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/lang/line_ends.h"

#define CHUNK_BITS  10
#define CHUNK_SIZE  (1U << CHUNK_BITS)
#define NR_CHUNKS   (CODES_MAX >> CHUNK_BITS)
#define FIRST_SLOTS 1024U

struct entry {
	struct code_key key;
	const struct code_text *text;
};

/* A text with its bytes behind it. */
struct kept {
	struct kept *next;
	struct code_text text;
	uint64_t hash;
	char bytes[];
};

struct codes {
	pthread_mutex_t lock;
	uint32_t *slots; /* id + 1, 0: empty; linear probing */
	uint32_t nr_slots;
	struct kept **texts; /* chains by hash; nr_slots of them */
	uint32_t nr_texts;
	uint32_t *by_process; /* how many, by the hash of the process */
	struct line_ends *line_ends;
	atomic_ulong memory;
	atomic_uint nr; /* release by codes_add(), acquire by codes_at() */
	_Atomic(struct entry *) chunks[NR_CHUNKS]; /* published by nr */
};

#define PROCESS_SLOTS 4096U

struct codes *codes_new(void)
{
	struct codes *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	mutex_init_urgent(&c->lock);
	c->nr_slots = FIRST_SLOTS;
	c->slots = calloc(c->nr_slots, sizeof(*c->slots));
	c->texts = calloc(c->nr_slots, sizeof(*c->texts));
	c->by_process = calloc(PROCESS_SLOTS, sizeof(*c->by_process));
	c->line_ends = line_ends_new();
	if (!c->slots || !c->texts || !c->by_process || !c->line_ends) {
		codes_free(c);
		return NULL;
	}
	return c;
}

void codes_free(struct codes *c)
{
	if (!c)
		return;
	for (uint32_t i = 0; c->texts && i < c->nr_slots; i++) {
		while (c->texts[i]) {
			struct kept *next = c->texts[i]->next;

			free(c->texts[i]);
			c->texts[i] = next;
		}
	}
	for (uint32_t i = 0; i < NR_CHUNKS; i++)
		free(atomic_load_explicit(&c->chunks[i], memory_order_relaxed));
	free(c->slots);
	free(c->texts);
	free(c->by_process);
	line_ends_free(c->line_ends);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

static struct entry *entry_at(const struct codes *c, uint32_t id)
{
	/* Stored before the release of nr that made the id known. */
	return &atomic_load_explicit(&c->chunks[id >> CHUNK_BITS],
				     memory_order_relaxed)[id & (CHUNK_SIZE - 1)];
}

static uint64_t key_hash(const struct code_key *k)
{
	return hash_u64(hash_u64(k->address ^ (uint64_t)k->process << 40) ^ k->stamp);
}

static uint32_t find(const struct codes *c, const struct code_key *k)
{
	uint32_t i = (uint32_t)key_hash(k) & (c->nr_slots - 1);

	for (; c->slots[i]; i = (i + 1) & (c->nr_slots - 1)) {
		const struct code_key *have = &entry_at(c, c->slots[i] - 1)->key;

		if (have->address == k->address && have->stamp == k->stamp &&
		    have->process == k->process)
			return c->slots[i] - 1;
	}
	return CODE_NONE;
}

uint32_t codes_find(struct codes *c, const struct code_key *key)
{
	uint32_t id;

	pthread_mutex_lock(&c->lock);
	id = find(c, key);
	pthread_mutex_unlock(&c->lock);
	return id;
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
	const uint8_t *p = bytes;

	for (; size; p += MIN(size, 8), size -= MIN(size, 8)) {
		uint64_t word = 0;

		memcpy(&word, p, MIN(size, 8));
		hash = hash_u64(hash ^ word) + size;
	}
	return hash;
}

static uint64_t text_hash(const struct code_text *t)
{
	uint64_t hash = hash_u64((uint64_t)t->first_line << 16 | t->language << 8 | t->version);

	hash = hash_u64(hash ^ ((uint64_t)t->position << 1 | t->compiled));
	hash = hash_bytes(hash, t->name, t->name_size);
	hash = hash_bytes(hash, t->file, t->file_size);
	return hash_bytes(hash, t->table, t->table_size);
}

static bool same_text(const struct code_text *a, const struct code_text *b)
{
	return a->language == b->language && a->version == b->version &&
	       a->compiled == b->compiled && a->first_line == b->first_line &&
	       a->position == b->position && a->name_size == b->name_size &&
	       a->file_size == b->file_size && a->table_size == b->table_size &&
	       !memcmp(a->name, b->name, a->name_size) && !memcmp(a->file, b->file, a->file_size) &&
	       (!a->table_size || !memcmp(a->table, b->table, a->table_size));
}

/* Return the shared copy of @t; NULL: the table is full. */
static const struct code_text *keep_text(struct codes *c, const struct code_text *t)
{
	uint64_t hash = text_hash(t);
	struct kept **head = &c->texts[hash & (c->nr_slots - 1)], *k;
	size_t size = sizeof(*k) + t->name_size + t->file_size + t->table_size;

	for (k = *head; k; k = k->next)
		if (k->hash == hash && same_text(&k->text, t))
			return &k->text;
	if (atomic_load_explicit(&c->memory, memory_order_relaxed) + size > CODES_MEMORY_MAX)
		return NULL;
	k = malloc(size);
	if (!k)
		return NULL;
	atomic_fetch_add_explicit(&c->memory, size, memory_order_relaxed);
	k->text = *t;
	k->hash = hash;
	k->text.name = memcpy(k->bytes, t->name, t->name_size);
	k->text.file = memcpy(k->bytes + t->name_size, t->file, t->file_size);
	k->text.table = (uint8_t *)k->bytes + t->name_size + t->file_size;
	if (t->table_size)
		memcpy(k->bytes + t->name_size + t->file_size, t->table, t->table_size);
	k->next = *head;
	*head = k;
	return &k->text;
}

/* Double the slots when half of them are used. */
static bool grow(struct codes *c, uint32_t nr)
{
	uint32_t nr_slots = c->nr_slots * 2;
	uint32_t *slots;
	struct kept **texts;

	if (nr * 2 < c->nr_slots)
		return true;
	slots = calloc(nr_slots, sizeof(*slots));
	texts = calloc(nr_slots, sizeof(*texts));
	if (!slots || !texts) {
		free(slots);
		free(texts);
		return false;
	}
	for (uint32_t i = 0; i < c->nr_slots; i++) {
		while (c->texts[i]) {
			struct kept *k = c->texts[i], **head = &texts[k->hash & (nr_slots - 1)];

			c->texts[i] = k->next;
			k->next = *head;
			*head = k;
		}
	}
	for (uint32_t id = 0; id < nr; id++) {
		uint32_t at = (uint32_t)key_hash(&entry_at(c, id)->key) & (nr_slots - 1);

		while (slots[at])
			at = (at + 1) & (nr_slots - 1);
		slots[at] = id + 1;
	}
	free(c->slots);
	free(c->texts);
	c->slots = slots;
	c->texts = texts;
	c->nr_slots = nr_slots;
	return true;
}

/* Reserve entry @id; false: table full. */
static bool reserve(struct codes *c, uint32_t id)
{
	struct entry *chunk;

	if (id >= CODES_MAX || !grow(c, id))
		return false;
	if (atomic_load_explicit(&c->chunks[id >> CHUNK_BITS], memory_order_relaxed))
		return true;
	chunk = calloc(CHUNK_SIZE, sizeof(*chunk));
	if (!chunk)
		return false;
	atomic_fetch_add_explicit(&c->memory, CHUNK_SIZE * sizeof(*chunk), memory_order_relaxed);
	atomic_store_explicit(&c->chunks[id >> CHUNK_BITS], chunk, memory_order_relaxed);
	return true;
}

static uint32_t add(struct codes *c, const struct code_key *key, const struct code_text *text)
{
	uint32_t id = find(c, key), at;
	uint32_t *of_process = &c->by_process[hash_u64(key->process) & (PROCESS_SLOTS - 1)];
	struct entry *e;

	if (id != CODE_NONE)
		return id;
	id = atomic_load_explicit(&c->nr, memory_order_relaxed);
	if (*of_process >= CODES_PROCESS_MAX || !reserve(c, id))
		return CODE_NONE;
	e = entry_at(c, id);
	e->key = *key;
	e->text = keep_text(c, text);
	if (!e->text)
		return CODE_NONE;
	(*of_process)++;
	at = (uint32_t)key_hash(key) & (c->nr_slots - 1);
	while (c->slots[at])
		at = (at + 1) & (c->nr_slots - 1);
	c->slots[at] = id + 1;
	/* Publishes the entry, its text and its chunk; pairs with codes_at(). */
	atomic_store_explicit(&c->nr, id + 1, memory_order_release);
	return id;
}

uint32_t codes_add(struct codes *c, const struct code_key *key, const struct code_text *text)
{
	uint32_t id;

	pthread_mutex_lock(&c->lock);
	id = add(c, key, text);
	pthread_mutex_unlock(&c->lock);
	return id;
}

const struct code_text *codes_at(const struct codes *c, uint32_t id)
{
	/* Pairs with the release in add(). */
	if (id >= atomic_load_explicit(&c->nr, memory_order_acquire))
		return NULL;
	return entry_at(c, id)->text;
}

uint32_t codes_nr(const struct codes *c)
{
	return atomic_load_explicit(&c->nr, memory_order_acquire);
}

size_t codes_memory(const struct codes *c)
{
	return atomic_load_explicit(&c->memory, memory_order_relaxed);
}

struct line_ends *codes_line_ends(struct codes *c)
{
	return c->line_ends;
}
