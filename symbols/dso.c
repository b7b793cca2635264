// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The table of objects: append-only, in chunks that never move.
 *
 * Writers hold the mutex; readers go lock-free by id. What lists show of an
 * object (path, name) is fixed when it is added; where the loader can find it
 * (the sighting) changes under the mutex.
 */
#include "symbols/dso.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/image.h"

#define CHUNK_BITS	9
#define CHUNK_SIZE	(1U << CHUNK_BITS)
#define NR_CHUNKS	2048U
#define FIRST_SLOTS	1024U
#define PATH_SIZE_MAX	4096U

struct entry {
	struct dso dso;			/* first: a struct dso of ours is a struct entry */
	uint64_t hash;
	uint64_t generation;		/* of the inode; learnt later when first seen without */
	uint64_t start, end;
	char *path;			/* raw bytes, NUL-terminated; never NULL */
	pid_t pid;
};

struct dsos {
	pthread_mutex_t lock;
	struct text_arena *texts;
	uint32_t *slots;		/* id + 1, 0: empty; linear probing */
	uint32_t nr_slots;
	_Alignas(CACHELINE) atomic_uint nr;	/* release by intern, acquire by dsos_at */
	_Atomic(struct entry *) chunks[NR_CHUNKS];	/* published by nr */
};

struct key {
	const struct dso_identity *identity;
	const char *path;
	size_t path_size;
	uint64_t hash;
};

static struct entry *entry_at(const struct dsos *d, uint32_t id)
{
	/* The chunk was stored before the release of nr that made the id known. */
	struct entry *chunk = atomic_load_explicit(&d->chunks[id >> CHUNK_BITS],
						   memory_order_relaxed);

	return &chunk[id & (CHUNK_SIZE - 1)];
}

/* Hash @size bytes, eight at a time. */
static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
	const uint8_t *p = bytes;

	for (; size; p += MIN(size, 8), size -= MIN(size, 8)) {
		uint64_t word = size;

		memcpy(&word, p, MIN(size, 8));
		hash = hash_u64(hash ^ word) + size;
	}
	return hash;
}

/* Only what every sighting of the same object agrees on: never the generation. */
static uint64_t key_hash(const struct key *key)
{
	const struct dso_identity *id = key->identity;
	uint64_t hash = hash_u64(0x9e3779b97f4a7c15ULL + id->kind);

	if (id->kind == DSO_ANON)
		return hash_u64(hash ^ id->owner) + id->layer;
	if (id->ino)
		return hash_u64(hash_u64(hash ^ id->ino) ^ ((uint64_t)id->maj << 32 | id->min));
	if (id->build_id_size)
		return hash_bytes(hash, id->build_id, id->build_id_size);
	return hash_bytes(hash, key->path, key->path_size);
}

/* Is @entry the object that @key tells of? A generation of 0 is unknown: it equals any. */
static bool entry_same(const struct entry *entry, const struct key *key)
{
	const struct dso_identity *a = &entry->dso.identity, *b = key->identity;

	if (entry->hash != key->hash || a->kind != b->kind)
		return false;
	if (a->kind == DSO_ANON)
		return a->owner == b->owner && a->layer == b->layer;
	if (a->ino || b->ino)
		return a->ino == b->ino && a->maj == b->maj && a->min == b->min &&
		       (!entry->generation || !b->ino_generation ||
			entry->generation == b->ino_generation);
	if (a->build_id_size || b->build_id_size)
		return a->build_id_size == b->build_id_size &&
		       !memcmp(a->build_id, b->build_id, a->build_id_size);
	return strlen(entry->path) == key->path_size &&
	       !memcmp(entry->path, key->path, key->path_size);
}

/* The newest match: of several generations of an inode, the one a sighting without one means. */
static struct entry *entry_find(const struct dsos *d, const struct key *key)
{
	struct entry *found = NULL;

	for (uint32_t i = (uint32_t)key->hash & (d->nr_slots - 1); d->slots[i];
	     i = (i + 1) & (d->nr_slots - 1)) {
		struct entry *entry = entry_at(d, d->slots[i] - 1);

		if (entry_same(entry, key) && (!found || entry->dso.id > found->dso.id))
			found = entry;
	}
	return found;
}

static void slots_put(uint32_t *slots, uint32_t nr_slots, uint64_t hash, uint32_t id)
{
	uint32_t i = (uint32_t)hash & (nr_slots - 1);

	while (slots[i])
		i = (i + 1) & (nr_slots - 1);
	slots[i] = id + 1;
}

/* Keep the slots at most half full. */
static int slots_reserve(struct dsos *d, uint32_t nr)
{
	uint32_t nr_slots = d->nr_slots * 2;
	uint32_t *slots;

	if (nr * 2 <= d->nr_slots)
		return 0;
	slots = calloc(nr_slots, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (uint32_t id = DSO_ID_FIRST; id < nr - 1; id++)
		slots_put(slots, nr_slots, entry_at(d, id)->hash, id);
	free(d->slots);
	d->slots = slots;
	d->nr_slots = nr_slots;
	return 0;
}

/* What lists show of an object of this kind and path. */
static struct safe_text entry_name(struct dsos *d, enum dso_kind kind, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash && slash[1] ? slash + 1 : path;

	switch (kind) {
	case DSO_UNKNOWN:
		return TEXT("[unknown]");
	case DSO_KERNEL:
		return TEXT("[kernel]");
	case DSO_VDSO:
		return TEXT("[vdso]");
	case DSO_ANON:
		return TEXT("[anon]");
	default:
		return *base ? text_arena_add(d->texts, base, strlen(base)) : TEXT("[unnamed]");
	}
}

/* Write entry @id, not yet visible to anyone. */
static int entry_init(struct dsos *d, uint32_t id, const struct key *key)
{
	struct entry *entry = entry_at(d, id);
	enum dso_kind kind = key->identity->kind;
	bool file = kind == DSO_FILE;
	bool imageless = kind == DSO_UNKNOWN || kind == DSO_ANON;

	entry->path = strndup(key->path, key->path_size);
	if (!entry->path)
		return -ENOMEM;
	entry->hash = key->hash;
	entry->generation = key->identity->ino_generation;
	entry->dso.id = id;
	entry->dso.identity = *key->identity;
	entry->dso.name = entry_name(d, kind, entry->path);
	entry->dso.path = file ? text_arena_add(d->texts, entry->path, strlen(entry->path)) :
				 entry->dso.name;
	atomic_init(&entry->dso.image, NULL);
	/* Nothing to wait for where there is no file: unwinders guess at once. */
	atomic_init(&entry->dso.state, imageless ? DSO_FAILED : DSO_NEW);
	atomic_init(&entry->dso.reason, imageless ? "no file behind this memory" : NULL);
	atomic_init(&entry->dso.cure, NULL);
	atomic_init(&entry->dso.source, NULL);
	atomic_init(&entry->dso.nr_symbols, 0);
	atomic_init(&entry->dso.permille, 0);
	atomic_init(&entry->dso.nr_evicted, 0);
	atomic_init(&entry->dso.memory, 0);
	atomic_init(&entry->dso.used, 0);
	atomic_init(&entry->dso.nr_waiting, 0);
	return 0;
}

/* Append an object and publish it; NULL when there is no room or no memory. */
static struct entry *entry_add(struct dsos *d, const struct key *key)
{
	uint32_t id = atomic_load_explicit(&d->nr, memory_order_relaxed);

	if (id >= NR_CHUNKS * CHUNK_SIZE || slots_reserve(d, id + 1))
		return NULL;
	if (!atomic_load_explicit(&d->chunks[id >> CHUNK_BITS], memory_order_relaxed)) {
		struct entry *chunk = calloc(CHUNK_SIZE, sizeof(*chunk));

		if (!chunk)
			return NULL;
		atomic_store_explicit(&d->chunks[id >> CHUNK_BITS], chunk, memory_order_relaxed);
	}
	if (entry_init(d, id, key))
		return NULL;
	if (id >= DSO_ID_FIRST)
		slots_put(d->slots, d->nr_slots, key->hash, id);
	/* Publishes the entry and its chunk; pairs with dsos_at(). */
	atomic_store_explicit(&d->nr, id + 1, memory_order_release);
	return entry_at(d, id);
}

int dsos_new(struct dsos **out)
{
	static const enum dso_kind fixed[] = { DSO_UNKNOWN, DSO_KERNEL, DSO_VDSO };
	struct dsos *d = aligned_alloc(CACHELINE, sizeof(*d));

	if (!d)
		return -ENOMEM;
	memset(d, 0, sizeof(*d));
	mutex_init_urgent(&d->lock);
	d->texts = text_arena_new();
	d->nr_slots = FIRST_SLOTS;
	d->slots = calloc(d->nr_slots, sizeof(*d->slots));
	if (!d->texts || !d->slots)
		goto fail;
	for (size_t i = 0; i < ARRAY_SIZE(fixed); i++) {
		struct dso_identity identity = { .kind = fixed[i] };
		struct key key = { .identity = &identity, .path = "" };

		if (!entry_add(d, &key))
			goto fail;
	}
	*out = d;
	return 0;
fail:
	dsos_free(d);
	return -ENOMEM;
}

void dsos_free(struct dsos *d)
{
	if (!d)
		return;
	for (uint32_t id = 0; id < dsos_nr(d); id++) {
		struct entry *entry = entry_at(d, id);

		/* All threads are gone; an image's life is that of its object. */
		image_free((struct image *)(uintptr_t)atomic_load_explicit(&entry->dso.image,
									   memory_order_relaxed));
		free(entry->path);
	}
	for (size_t i = 0; i < NR_CHUNKS; i++)
		free(atomic_load_explicit(&d->chunks[i], memory_order_relaxed));
	free(d->slots);
	text_arena_free(d->texts);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

/* Remember where @entry was seen last; a copy of its path only when that changed. */
static void entry_seen(struct entry *entry, const struct key *key, pid_t pid, uint64_t start,
		       uint64_t end)
{
	if (strlen(entry->path) != key->path_size ||
	    memcmp(entry->path, key->path, key->path_size)) {
		char *path = strndup(key->path, key->path_size);

		if (path) {
			free(entry->path);
			entry->path = path;
		}
	}
	entry->pid = pid;
	entry->start = start;
	entry->end = end;
	if (!entry->generation)
		entry->generation = key->identity->ino_generation;
}

struct dso *dsos_intern(struct dsos *d, const struct dso_identity *identity, const char *path,
			size_t path_size, pid_t pid, uint64_t start, uint64_t end)
{
	struct dso_identity clean = *identity;
	struct key key = { .identity = &clean, .path = path ? path : "" };
	struct entry *entry;

	if (identity->kind <= DSO_VDSO)
		return dsos_at(d, identity->kind);
	key.path_size = path ? strnlen(path, MIN(path_size, PATH_SIZE_MAX)) : 0;
	clean.build_id_size = MIN(identity->build_id_size, sizeof(identity->build_id));
	key.hash = key_hash(&key);
	pthread_mutex_lock(&d->lock);
	entry = entry_find(d, &key);
	if (!entry)
		entry = entry_add(d, &key);
	if (entry)
		entry_seen(entry, &key, pid, start, end);
	pthread_mutex_unlock(&d->lock);
	return entry ? &entry->dso : dsos_at(d, DSO_ID_UNKNOWN);
}

struct dso *dsos_at(const struct dsos *d, uint32_t id)
{
	/* Pairs with the release in entry_add(). */
	if (id >= atomic_load_explicit(&d->nr, memory_order_acquire))
		return NULL;
	return &entry_at(d, id)->dso;
}

uint32_t dsos_nr(const struct dsos *d)
{
	return atomic_load_explicit(&d->nr, memory_order_acquire);
}

void dsos_sighting(struct dsos *d, const struct dso *dso, struct dso_sighting *out)
{
	struct entry *entry = entry_at(d, dso->id);

	pthread_mutex_lock(&d->lock);
	out->pid = entry->pid;
	out->start = entry->start;
	out->end = entry->end;
	out->path = strdup(entry->path);
	pthread_mutex_unlock(&d->lock);
}
