// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The table of objects: append-only, in chunks that never move.
 *
 * Writers hold the mutex; readers go lock-free by id. What lists show of an
 * object (path, name) is fixed when it is added; where the loader can find it
 * (the sighting) changes under the mutex.
 */
#include "symbols/object/object.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/object/image.h"

#define CHUNK_BITS    9
#define CHUNK_SIZE    (1U << CHUNK_BITS)
#define NR_CHUNKS     2048U
#define FIRST_SLOTS   1024U
#define PATH_SIZE_MAX 4096U

struct entry {
	struct object object; /* first: a struct object of ours is a struct entry */
	uint64_t generation;  /* of the inode; learnt later when first seen without */
	uint64_t start, end;
	char *path; /* raw bytes, NUL-terminated; never NULL */
	pid_t pid;
};

/*
 * A file is found by its inode with the generation, and without it: then the
 * latest generation. So a file system that gives an inode number again and
 * again makes no run of equal hashes.
 */
struct slot {
	uint64_t hash;
	uint32_t id; /* + 1; 0: empty */
};

struct objects {
	pthread_mutex_t lock;
	struct text_arena *texts;
	struct slot *slots; /* linear probing; a power of two */
	uint32_t nr_slots, nr_used;
	_Alignas(CACHELINE) atomic_uint nr;	   /* release by intern, acquire by objects_at */
	_Atomic(struct entry *) chunks[NR_CHUNKS]; /* published by nr */
};

struct key {
	const struct object_identity *identity;
	const char *path;
	size_t path_size;
	uint64_t hash;	     /* without the generation */
	uint64_t exact_hash; /* with it; the same as hash when it is unknown */
};

static struct entry *entry_at(const struct objects *d, uint32_t id)
{
	/* The chunk was stored before the release of nr that made the id known. */
	struct entry *chunk =
		atomic_load_explicit(&d->chunks[id >> CHUNK_BITS], memory_order_relaxed);

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

/* Hash what every sighting of the same object agrees on: never the generation. */
static uint64_t key_hash(const struct key *key)
{
	const struct object_identity *id = key->identity;
	uint64_t hash = hash_u64(0x9e3779b97f4a7c15ULL + id->kind);

	if (id->kind == OBJECT_ANON)
		return hash_u64(hash ^ id->owner) + id->layer;
	if (id->ino)
		return hash_u64(hash_u64(hash ^ id->ino) ^ ((uint64_t)id->maj << 32 | id->min));
	if (id->build_id_size)
		return hash_bytes(hash, id->build_id, id->build_id_size);
	return hash_bytes(hash, key->path, key->path_size);
}

/* Do @entry and @key agree in all but the generation? */
static bool entry_same(const struct entry *entry, const struct key *key)
{
	const struct object_identity *a = &entry->object.identity, *b = key->identity;

	if (a->kind != b->kind)
		return false;
	if (a->kind == OBJECT_ANON)
		return a->owner == b->owner && a->layer == b->layer;
	if (a->ino || b->ino)
		return a->ino == b->ino && a->maj == b->maj && a->min == b->min;
	if (a->build_id_size || b->build_id_size)
		return a->build_id_size == b->build_id_size &&
		       !memcmp(a->build_id, b->build_id, a->build_id_size);
	return strlen(entry->path) == key->path_size &&
	       !memcmp(entry->path, key->path, key->path_size);
}

/* Find the slot of @key under @hash, or the empty slot where it belongs. */
static struct slot *slot_find(const struct objects *d, const struct key *key, uint64_t hash)
{
	uint32_t i = (uint32_t)hash & (d->nr_slots - 1);

	while (d->slots[i].id &&
	       (d->slots[i].hash != hash || !entry_same(entry_at(d, d->slots[i].id - 1), key)))
		i = (i + 1) & (d->nr_slots - 1);
	return &d->slots[i];
}

static void slot_set(struct objects *d, struct slot *slot, uint64_t hash, uint32_t id)
{
	d->nr_used += !slot->id;
	*slot = (struct slot){ .hash = hash, .id = id + 1 };
}

/* Find the object of @key. One seen without its generation until now takes that of @key. */
static struct entry *entry_find(struct objects *d, const struct key *key)
{
	struct slot *slot = slot_find(d, key, key->exact_hash), *any;
	struct entry *entry;

	if (slot->id)
		return entry_at(d, slot->id - 1);
	if (key->exact_hash == key->hash)
		return NULL;
	any = slot_find(d, key, key->hash);
	if (!any->id)
		return NULL;
	entry = entry_at(d, any->id - 1);
	if (entry->generation)
		return NULL;
	entry->generation = key->identity->ino_generation;
	slot_set(d, slot, key->exact_hash, entry->object.id);
	return entry;
}

/* Keep the slots at most half full. -ENOMEM: no room for two more. */
static int slots_reserve(struct objects *d)
{
	struct slot *old = d->slots;
	uint32_t nr_old = d->nr_slots;

	if ((d->nr_used + 2) * 2 <= nr_old)
		return 0;
	d->slots = calloc((size_t)nr_old * 2, sizeof(*d->slots));
	if (!d->slots) {
		d->slots = old;
		return d->nr_used + 2 < nr_old ? 0 : -ENOMEM;
	}
	d->nr_slots = nr_old * 2;
	for (uint32_t i = 0; i < nr_old; i++) {
		uint32_t at = (uint32_t)old[i].hash & (d->nr_slots - 1);

		while (old[i].id && d->slots[at].id)
			at = (at + 1) & (d->nr_slots - 1);
		if (old[i].id)
			d->slots[at] = old[i];
	}
	free(old);
	return 0;
}

/* What lists show of an object of this kind and path. */
static struct safe_text entry_name(struct objects *d, enum object_kind kind, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash && slash[1] ? slash + 1 : path;

	switch (kind) {
	case OBJECT_UNKNOWN:
		return TEXT("[unknown]");
	case OBJECT_KERNEL:
		return TEXT("[kernel]");
	case OBJECT_VDSO:
		return TEXT("[vdso]");
	case OBJECT_ANON:
		return TEXT("[anon]");
	default:
		return *base ? text_arena_add(d->texts, base, strlen(base)) : TEXT("[unnamed]");
	}
}

/* Write entry @id, not yet visible to anyone. */
static int entry_init(struct objects *d, uint32_t id, const struct key *key)
{
	struct entry *entry = entry_at(d, id);
	enum object_kind kind = key->identity->kind;
	bool file = kind == OBJECT_FILE;
	bool imageless = kind == OBJECT_UNKNOWN || kind == OBJECT_ANON;

	entry->path = strndup(key->path, key->path_size);
	if (!entry->path)
		return -ENOMEM;
	entry->generation = key->identity->ino_generation;
	entry->object.id = id;
	entry->object.identity = *key->identity;
	entry->object.name = entry_name(d, kind, entry->path);
	entry->object.path = file ? text_arena_add(d->texts, entry->path, strlen(entry->path))
				  : entry->object.name;
	atomic_init(&entry->object.image, NULL);
	/* Nothing to wait for where there is no file: unwinders guess at once. */
	atomic_init(&entry->object.state, imageless ? OBJECT_FAILED : OBJECT_NEW);
	atomic_init(&entry->object.reason, imageless ? "no file behind this memory" : NULL);
	atomic_init(&entry->object.fix, NULL);
	atomic_init(&entry->object.source, NULL);
	atomic_init(&entry->object.nr_symbols, 0);
	atomic_init(&entry->object.permille, 0);
	atomic_init(&entry->object.nr_evicted, 0);
	atomic_init(&entry->object.memory, 0);
	atomic_init(&entry->object.used, 0);
	atomic_init(&entry->object.nr_waiting, 0);
	return 0;
}

/* Append an object and publish it; NULL when there is no room or no memory. */
static struct entry *entry_add(struct objects *d, const struct key *key)
{
	uint32_t id = atomic_load_explicit(&d->nr, memory_order_relaxed);

	if (id >= NR_CHUNKS * CHUNK_SIZE)
		return NULL;
	if (!atomic_load_explicit(&d->chunks[id >> CHUNK_BITS], memory_order_relaxed)) {
		struct entry *chunk = calloc(CHUNK_SIZE, sizeof(*chunk));

		if (!chunk)
			return NULL;
		atomic_store_explicit(&d->chunks[id >> CHUNK_BITS], chunk, memory_order_relaxed);
	}
	if (entry_init(d, id, key))
		return NULL;
	if (id >= OBJECT_ID_FIRST) {
		slot_set(d, slot_find(d, key, key->hash), key->hash, id);
		slot_set(d, slot_find(d, key, key->exact_hash), key->exact_hash, id);
	}
	/* Publishes the entry and its chunk; pairs with objects_at(). */
	atomic_store_explicit(&d->nr, id + 1, memory_order_release);
	return entry_at(d, id);
}

int objects_new(struct objects **out)
{
	static const enum object_kind fixed[] = { OBJECT_UNKNOWN, OBJECT_KERNEL, OBJECT_VDSO };
	struct objects *d = aligned_alloc(CACHELINE, sizeof(*d));

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
		struct object_identity identity = { .kind = fixed[i] };
		struct key key = { .identity = &identity, .path = "" };

		if (!entry_add(d, &key))
			goto fail;
	}
	*out = d;
	return 0;
fail:
	objects_free(d);
	return -ENOMEM;
}

void objects_free(struct objects *d)
{
	if (!d)
		return;
	for (uint32_t id = 0; id < objects_nr(d); id++) {
		struct entry *entry = entry_at(d, id);

		/* All threads are gone; an image's life is that of its object. */
		image_free((struct image *)(uintptr_t)atomic_load_explicit(&entry->object.image,
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
}

struct object *objects_intern(struct objects *d, const struct object_identity *identity,
			      const char *path, size_t path_size, pid_t pid, uint64_t start,
			      uint64_t end)
{
	struct object_identity clean = *identity;
	struct key key = { .identity = &clean, .path = path ? path : "" };
	struct entry *entry = NULL;

	if (identity->kind <= OBJECT_VDSO)
		return objects_at(d, identity->kind);
	key.path_size = path ? strnlen(path, MIN(path_size, PATH_SIZE_MAX)) : 0;
	clean.build_id_size = MIN(identity->build_id_size, sizeof(identity->build_id));
	key.hash = key.exact_hash = key_hash(&key);
	if (clean.kind != OBJECT_ANON && clean.ino && clean.ino_generation)
		key.exact_hash = hash_u64(key.hash ^ clean.ino_generation);
	pthread_mutex_lock(&d->lock);
	if (!slots_reserve(d)) {
		entry = entry_find(d, &key);
		if (!entry)
			entry = entry_add(d, &key);
	}
	if (entry)
		entry_seen(entry, &key, pid, start, end);
	pthread_mutex_unlock(&d->lock);
	return entry ? &entry->object : objects_at(d, OBJECT_ID_UNKNOWN);
}

struct object *objects_at(const struct objects *d, uint32_t id)
{
	/* Pairs with the release in entry_add(). */
	if (id >= atomic_load_explicit(&d->nr, memory_order_acquire))
		return NULL;
	return &entry_at(d, id)->object;
}

uint32_t objects_nr(const struct objects *d)
{
	return atomic_load_explicit(&d->nr, memory_order_acquire);
}

void objects_sighting(struct objects *d, const struct object *object, struct object_sighting *out)
{
	struct entry *entry = entry_at(d, object->id);

	pthread_mutex_lock(&d->lock);
	out->pid = entry->pid;
	out->start = entry->start;
	out->end = entry->end;
	out->path = strdup(entry->path);
	pthread_mutex_unlock(&d->lock);
}
