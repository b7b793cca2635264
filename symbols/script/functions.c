// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Ids by (process, address, stamp), in two tables: a full one replaces the old one, and keys that
 * are looked up move from the old one to the new one. Texts by content, for good.
 *
 * Runs on: readers (find, add), the loader and others (by id).
 */
#include "symbols/lang/codes.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/lang/code_log.h"
#include "symbols/lang/line_ends.h"

#define CHUNK_BITS  10
#define CHUNK_SIZE  (1U << CHUNK_BITS)
#define NR_CHUNKS   (CODES_MAX >> CHUNK_BITS)
#define FIRST_SLOTS 1024U
#define KEYS_SLOTS  (2 * CODES_KEYS_MAX) /* of one table */

/* A text with its bytes behind it. */
struct kept {
	struct kept *next;
	struct code_text text;
	uint64_t hash;
	uint32_t id, process;
	char bytes[];
};

struct key_slot {
	struct code_key key;
	uint32_t id; /* + 1, 0: empty */
};

/* Linear probing, at most half full. */
struct keys {
	struct key_slot *slots;
	uint32_t nr_slots, nr;
};

/* New functions of a process or user, and their bytes. */
struct part {
	uint32_t nr;
	size_t memory;
};

struct codes {
	pthread_mutex_t lock;
	struct keyhash_key secret; /* against texts that were chosen for one bucket */
	struct keys keys, old_keys;
	struct kept **texts; /* chains by hash */
	uint32_t nr_chains;
	struct part *by_process; /* by the hash of the process */
	struct part *by_user;	 /* the same */
	struct line_ends *line_ends;
	struct code_log *log;
	atomic_ulong memory;
	atomic_uint nr; /* release by codes_add(), acquire by codes_at() */
	_Atomic(const struct code_text **) chunks[NR_CHUNKS]; /* published by nr */
};

#define PROCESS_SLOTS 4096U
#define USER_SLOTS    1024U

struct codes *codes_new(void)
{
	struct codes *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	mutex_init_urgent(&c->lock);
	c->secret = keyhash_new_key();
	c->nr_chains = FIRST_SLOTS;
	c->texts = calloc(c->nr_chains, sizeof(*c->texts));
	c->by_process = calloc(PROCESS_SLOTS, sizeof(*c->by_process));
	c->by_user = calloc(USER_SLOTS, sizeof(*c->by_user));
	c->line_ends = line_ends_new();
	c->log = code_log_new();
	if (!c->texts || !c->by_process || !c->by_user || !c->line_ends || !c->log) {
		codes_free(c);
		return NULL;
	}
	return c;
}

void codes_free(struct codes *c)
{
	if (!c)
		return;
	for (uint32_t i = 0; c->texts && i < c->nr_chains; i++) {
		while (c->texts[i]) {
			struct kept *next = c->texts[i]->next;

			free(c->texts[i]);
			c->texts[i] = next;
		}
	}
	/* They are made in order. */
	for (uint32_t i = 0; i < NR_CHUNKS; i++) {
		void *chunk = atomic_load_explicit(&c->chunks[i], memory_order_relaxed);

		if (!chunk)
			break;
		free(chunk);
	}
	free(c->keys.slots);
	free(c->old_keys.slots);
	free(c->texts);
	free(c->by_process);
	free(c->by_user);
	line_ends_free(c->line_ends);
	code_log_free(c->log);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

static const struct code_text **text_at(const struct codes *c, uint32_t id)
{
	/* Stored before the release of nr that made the id known. */
	return &atomic_load_explicit(&c->chunks[id >> CHUNK_BITS],
				     memory_order_relaxed)[id & (CHUNK_SIZE - 1)];
}

/* Return the slot of @key, or the empty one where it would be. */
static struct key_slot *slot_of(const struct keys *t, const struct keyhash_key *secret,
				const struct code_key *key)
{
	uint32_t i = (uint32_t)code_key_hash(secret, key) & (t->nr_slots - 1);

	for (; t->slots[i].id; i = (i + 1) & (t->nr_slots - 1)) {
		const struct code_key *have = &t->slots[i].key;

		if (have->address == key->address && have->stamp == key->stamp &&
		    have->process == key->process)
			break;
	}
	return &t->slots[i];
}

/* Double the slots of @t. False: out of memory. */
static bool grow_keys(struct keys *t, const struct keyhash_key *secret)
{
	struct keys grown = { .nr_slots = MAX(t->nr_slots * 2, FIRST_SLOTS), .nr = t->nr };

	grown.slots = calloc(grown.nr_slots, sizeof(*grown.slots));
	if (!grown.slots)
		return false;
	for (uint32_t i = 0; i < t->nr_slots; i++)
		if (t->slots[i].id)
			*slot_of(&grown, secret, &t->slots[i].key) = t->slots[i];
	free(t->slots);
	*t = grown;
	return true;
}

/* Set the id of @key, which is not in the new table. Without memory it is read again. */
static void put_key(struct codes *c, const struct code_key *key, uint32_t id)
{
	struct keys *t = &c->keys;

	if (t->nr == CODES_KEYS_MAX) {
		free(c->old_keys.slots);
		c->old_keys = *t;
		*t = (struct keys){ .nr = 0 };
	}
	if (t->nr * 2 >= t->nr_slots && !grow_keys(t, &c->secret))
		return;
	assert(t->nr_slots <= KEYS_SLOTS);
	*slot_of(t, &c->secret, key) = (struct key_slot){ *key, id + 1 };
	t->nr++;
}

static uint32_t find(struct codes *c, const struct code_key *k)
{
	uint32_t id = c->keys.slots ? slot_of(&c->keys, &c->secret, k)->id : 0;

	if (!id && c->old_keys.slots) {
		id = slot_of(&c->old_keys, &c->secret, k)->id;
		if (id)
			put_key(c, k, id - 1);
	}
	return id ? id - 1 : CODE_NONE;
}

uint32_t codes_find(struct codes *c, const struct code_key *key)
{
	uint32_t id;

	pthread_mutex_lock(&c->lock);
	id = find(c, key);
	pthread_mutex_unlock(&c->lock);
	return id;
}

static uint64_t text_hash(const struct codes *c, const struct code_text *t)
{
	struct keyhash h = keyhash_begin(&c->secret);

	keyhash_word(&h, (uint64_t)t->first_line << 16 | t->language << 8 | t->version);
	keyhash_word(&h, (uint64_t)t->position << 1 | t->compiled);
	keyhash_bytes(&h, t->name, t->name_size);
	keyhash_bytes(&h, t->file, t->file_size);
	keyhash_bytes(&h, t->table, t->table_size);
	return keyhash_end(&h);
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

/* Return the id of the text @t with @hash, or CODE_NONE. */
static uint32_t find_text(const struct codes *c, const struct code_text *t, uint64_t hash)
{
	for (const struct kept *k = c->texts[hash & (c->nr_chains - 1)]; k; k = k->next)
		if (k->hash == hash && same_text(&k->text, t))
			return k->id;
	return CODE_NONE;
}

/* Double the chains of texts when there is one for two texts. */
static bool grow_chains(struct codes *c, uint32_t nr)
{
	uint32_t nr_chains = c->nr_chains * 2;
	struct kept **texts;

	if (nr * 2 < c->nr_chains)
		return true;
	texts = calloc(nr_chains, sizeof(*texts));
	if (!texts)
		return false;
	for (uint32_t i = 0; i < c->nr_chains; i++) {
		while (c->texts[i]) {
			struct kept *k = c->texts[i], **head = &texts[k->hash & (nr_chains - 1)];

			c->texts[i] = k->next;
			k->next = *head;
			*head = k;
		}
	}
	free(c->texts);
	c->texts = texts;
	c->nr_chains = nr_chains;
	return true;
}

/* Reserve @id; false: out of memory. */
static bool reserve(struct codes *c, uint32_t id)
{
	const struct code_text **chunk;

	if (!grow_chains(c, id))
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

/* Return whether a part has room for @size bytes; tables leave a quarter to names alone. */
static bool has_room(const struct part *part, size_t size, size_t max, const struct code_text *t)
{
	return part->memory + size <= (t->table_size ? max / 4 * 3 : max);
}

/*
 * Copy @t, which is new. Return its id, or CODE_NONE: the part of @process or of its user, or the
 * table, is full.
 */
static uint32_t keep_text(struct codes *c, uint32_t process, const struct code_text *t,
			  uint64_t hash)
{
	struct part *part = &c->by_process[hash_u64(process) & (PROCESS_SLOTS - 1)];
	struct part *user = &c->by_user[hash_u64(t->user) & (USER_SLOTS - 1)];
	uint32_t id = atomic_load_explicit(&c->nr, memory_order_relaxed);
	size_t size = sizeof(struct kept) + t->name_size + t->file_size + t->table_size;
	struct kept **head, *k;

	if (part->nr >= CODES_PROCESS_MAX || !has_room(part, size, CODES_PROCESS_MEMORY, t) ||
	    !has_room(user, size, CODES_USER_MEMORY, t) ||
	    atomic_load_explicit(&c->memory, memory_order_relaxed) + size > CODES_MEMORY_MAX ||
	    id >= CODES_MAX || !reserve(c, id))
		return CODE_NONE;
	k = malloc(size);
	if (!k)
		return CODE_NONE;
	part->nr++;
	part->memory += size;
	user->memory += size;
	atomic_fetch_add_explicit(&c->memory, size, memory_order_relaxed);
	k->text = *t;
	k->hash = hash;
	k->id = id;
	k->process = process;
	k->text.name = memcpy(k->bytes, t->name, t->name_size);
	k->text.file = memcpy(k->bytes + t->name_size, t->file, t->file_size);
	k->text.table = (uint8_t *)k->bytes + t->name_size + t->file_size;
	if (t->table_size)
		memcpy(k->bytes + t->name_size + t->file_size, t->table, t->table_size);
	head = &c->texts[hash & (c->nr_chains - 1)];
	k->next = *head;
	*head = k;
	*text_at(c, id) = &k->text;
	/* Publishes the text and its chunk; pairs with codes_at(). */
	atomic_store_explicit(&c->nr, id + 1, memory_order_release);
	return id;
}

/* Return the id of @text, old or new; without its table of lines if there is no room for that. */
static uint32_t add_text(struct codes *c, uint32_t process, const struct code_text *text,
			 uint64_t hash)
{
	struct code_text bare = *text;
	uint32_t id = find_text(c, text, hash);

	if (id == CODE_NONE)
		id = keep_text(c, process, text, hash);
	if (id != CODE_NONE || !text->table_size || text->compiled)
		return id;
	bare.table_size = 0;
	hash = text_hash(c, &bare);
	id = find_text(c, &bare, hash);
	return id == CODE_NONE ? keep_text(c, process, &bare, hash) : id;
}

static uint32_t add(struct codes *c, const struct code_key *key, const struct code_text *text,
		    uint64_t hash)
{
	uint32_t id = find(c, key);

	if (id != CODE_NONE)
		return id;
	id = add_text(c, key->process, text, hash);
	if (id != CODE_NONE)
		put_key(c, key, id);
	return id;
}

uint32_t codes_add(struct codes *c, const struct code_key *key, const struct code_text *text)
{
	/* Not under the lock: a text may have a table of 16 KiB. */
	uint64_t hash = text_hash(c, text);
	uint32_t id;

	pthread_mutex_lock(&c->lock);
	id = add(c, key, text, hash);
	pthread_mutex_unlock(&c->lock);
	return id;
}

uint32_t codes_add_text(struct codes *c, uint32_t process, const struct code_text *text)
{
	uint64_t hash = text_hash(c, text);
	uint32_t id;

	pthread_mutex_lock(&c->lock);
	id = add_text(c, process, text, hash);
	pthread_mutex_unlock(&c->lock);
	return id;
}

const struct code_text *codes_at(const struct codes *c, uint32_t id)
{
	/* Pairs with the release in add(). */
	if (id >= atomic_load_explicit(&c->nr, memory_order_acquire))
		return NULL;
	return *text_at(c, id);
}

uint32_t codes_process(const struct codes *c, uint32_t id)
{
	const struct code_text *t = codes_at(c, id);

	return t ? ((const struct kept *)(const void *)((const char *)t -
							offsetof(struct kept, text)))
			       ->process
		 : 0;
}

uint32_t codes_nr(const struct codes *c)
{
	return atomic_load_explicit(&c->nr, memory_order_acquire);
}

size_t codes_memory(const struct codes *c)
{
	return atomic_load_explicit(&c->memory, memory_order_relaxed) + code_log_memory(c->log);
}

struct code_log *codes_log(const struct codes *c)
{
	return c->log;
}

struct line_ends *codes_line_ends(struct codes *c)
{
	return c->line_ends;
}
