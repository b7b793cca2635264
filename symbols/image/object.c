// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The table of objects, in chunks that never move.
 *
 * Writers hold the mutex; readers look up by id without a lock. The path and the
 * name shown are fixed when an object is added; the sighting (the path by
 * which the loader finds the file) changes under the mutex.
 *
 * An object leaves under the mutex when it has no reference and was never sampled: then
 * no place, no image and no list but that of free ids has its id. References of mappings
 * are dropped after a grace period, so no reader has the object either.
 */
#include "symbols/image/internal.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "symbols/base/base.h"
#include "symbols/base/table.h"
#include "symbols/base/text.h"
#include "symbols/elf/elf.h"

#define CHUNK_BITS  9
#define OBJECTS_MAX (1U << 20)

/*
 * When all paths take this many bytes, new files keep the last part of theirs, cut to
 * NAME_SIZE_MAX: any user can map files with long paths. The loader then opens them by
 * map_files only.
 */
#define PATHS_SIZE_MAX (64UL << 20)

#define NAME_SIZE_MAX 64U
#define PATH_SIZE_MAX 4096U

struct entry {
	struct object object; /* first: struct object is the head of struct entry */
	uint64_t generation;  /* of the inode; set later when first seen without */
	uint64_t start, end;
	char *path;	    /* raw bytes, NUL-terminated; NULL: free */
	char *texts;	    /* object.name and object.path; NULL: literals */
	atomic_uint refs;   /* apart from what samplers read */
	uint32_t next_free; /* id; 0: the last one */
	pid_t pid;
	bool is_cut;  /* path is the last part only */
	bool is_kept; /* without a reference too */
};

/*
 * A file is found by its inode with the generation, and without it: then the
 * latest generation. So a file system that gives an inode number again and
 * again makes no run of equal hashes.
 */
struct objects {
	pthread_mutex_t lock;
	struct keyhash_key secret; /* against files that were chosen for one bucket */
	struct hashset set;
	struct chunked entries; /* struct entry, complete when published */
	size_t paths_size;	/* bytes of all entry.path */
	uint32_t free;		/* the first free id; 0: none */
	bool lists_new;
	uint32_t *new; /* ids of new objects, each with a reference */
	uint32_t first_new, nr_new, room_new;
	atomic_ulong nr_added;			/* relaxed: to notice that it has changed */
	_Alignas(CACHELINE) atomic_uint wanted; /* object.wanted */
};

struct object_key {
	const struct object_identity *identity;
	const char *path;
	size_t path_size;
	uint64_t hash;	     /* without the generation */
	uint64_t exact_hash; /* with it; the same as hash when it is unknown */
};

static struct entry *entry_at(const struct objects *d, uint32_t id)
{
	return chunked_at(&d->entries, id);
}

/* Hash with @generation, which only files by inode have; 0: unknown. */
static uint64_t exact_hash(const struct objects *d, const struct object_key *key,
			   uint64_t generation)
{
	struct keyhash h = keyhash_begin(&d->secret);

	if (key->identity->kind == OBJECT_ANON || !key->identity->ino || !generation)
		return key->hash;
	keyhash_word(&h, key->hash);
	keyhash_word(&h, generation);
	return keyhash_end(&h);
}

/* Hash the fields that are equal in every sighting of the same object: never the generation. */
static uint64_t key_hash(const struct objects *d, const struct object_key *key)
{
	const struct object_identity *id = key->identity;
	struct keyhash h = keyhash_begin(&d->secret);

	keyhash_word(&h, id->kind);
	if (id->kind == OBJECT_ANON) {
		keyhash_word(&h, id->owner);
		keyhash_word(&h, id->layer);
	} else if (id->ino) {
		keyhash_word(&h, id->ino);
		keyhash_word(&h, (uint64_t)id->maj << 32 | id->min);
	} else if (id->build_id_size) {
		keyhash_bytes(&h, id->build_id, id->build_id_size);
	} else {
		keyhash_bytes(&h, key->path, key->path_size);
	}
	return keyhash_end(&h);
}

/* Return whether @entry and @key agree in all but the generation. */
static bool entry_same(const struct entry *entry, const struct object_key *key)
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

/* Find the file of @key with its generation; NULL: none. */
static struct entry *find_exact(const struct objects *d, const struct object_key *key)
{
	uint32_t at = 0, id;

	while ((id = hashset_next(&d->set, key->exact_hash, &at)) != HASHSET_NONE) {
		struct entry *entry = entry_at(d, id);

		if (entry->generation == key->identity->ino_generation && entry_same(entry, key))
			return entry;
	}
	return NULL;
}

/* Find the latest object that agrees with @key but for the generation: it alone has this hash.
 * NULL: none. */
static struct entry *find_latest(const struct objects *d, const struct object_key *key)
{
	uint32_t at = 0, id;

	while ((id = hashset_next(&d->set, key->hash, &at)) != HASHSET_NONE)
		if (entry_same(entry_at(d, id), key))
			return entry_at(d, id);
	return NULL;
}

/* Set the generation of @entry, seen without until now. @hash: with it; there is room for it. */
static void entry_set_generation(struct objects *d, struct entry *entry, uint64_t generation,
				 uint64_t hash)
{
	entry->generation = generation;
	hashset_add(&d->set, hash, entry->object.id);
}

/* Find the object of @key. One seen without its generation until now takes that of @key. */
static struct entry *entry_find(struct objects *d, const struct object_key *key)
{
	struct entry *entry;

	if (key->exact_hash == key->hash)
		return find_latest(d, key);
	entry = find_exact(d, key);
	if (entry)
		return entry;
	entry = find_latest(d, key);
	if (!entry || entry->generation)
		return NULL;
	entry_set_generation(d, entry, key->identity->ino_generation, key->exact_hash);
	return entry;
}

/* Make the new object @id known under its hashes; without the generation instead of an older one.
 */
static void entry_known(struct objects *d, const struct object_key *key, uint32_t id)
{
	const struct entry *older = find_latest(d, key);

	if (older)
		hashset_replace(&d->set, key->hash, older->object.id, id);
	else
		hashset_add(&d->set, key->hash, id);
	if (key->exact_hash != key->hash)
		hashset_add(&d->set, key->exact_hash, id);
}

/* Return the name to show for an object of this kind and path; @buf holds one that is new. */
static struct safe_text entry_name(char buf[static TEXT_MAX + 1], enum object_kind kind,
				   const char *path)
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
		return *base ? text_sanitise(buf, TEXT_MAX + 1, base, strlen(base))
			     : TEXT("[unnamed]");
	}
}

/* Set the name and the path to show. False when out of memory. */
static bool entry_texts(struct entry *entry, enum object_kind kind)
{
	const bool has_path = kind == OBJECT_FILE || kind == OBJECT_SCRIPT || kind == OBJECT_WAIT;
	char name_buf[TEXT_MAX + 1], path_buf[TEXT_MAX + 1];
	struct safe_text name = entry_name(name_buf, kind, entry->path), path = name;

	entry->texts = NULL;
	if (has_path) {
		path = text_sanitise(path_buf, sizeof(path_buf), entry->path, strlen(entry->path));
		entry->texts = malloc(name.size + path.size + (size_t)2);
		if (!entry->texts)
			return false;
		memcpy(entry->texts, name.str, name.size + (size_t)1);
		name.str = entry->texts;
		memcpy(entry->texts + name.size + 1, path.str, path.size + (size_t)1);
		path.str = entry->texts + name.size + 1;
	}
	entry->object.name = name;
	entry->object.path = path;
	return true;
}

/* Memory without a file is what remains most: no small block of the heap for each. */
static char memory_path[] = "//anon";

static void free_path(struct entry *entry)
{
	if (entry->path != memory_path)
		free(entry->path);
}

/* Copy the path of @key to @entry, in place of the one before. False when out of memory. */
static bool entry_path(struct objects *d, struct entry *entry, const struct object_key *key)
{
	size_t size = key->path_size, before = entry->path ? strlen(entry->path) : 0;
	bool is_cut = key->identity->ino && d->paths_size - before + size > PATHS_SIZE_MAX;
	const char *from = key->path, *slash = is_cut ? memrchr(from, '/', size) : NULL;
	char *path;

	if (slash) {
		size -= (size_t)(slash + 1 - from);
		from = slash + 1;
	}
	path = size == strlen(memory_path) && !memcmp(from, memory_path, size)
		       ? memory_path
		       : strndup(from, is_cut ? MIN(size, NAME_SIZE_MAX) : size);
	if (!path)
		return false;
	free_path(entry);
	entry->path = path;
	entry->is_cut = is_cut;
	d->paths_size += strlen(path) - before;
	return true;
}

/* Fill in @entry, which no reader has. */
static int entry_init(struct objects *d, struct entry *entry, uint32_t id,
		      const struct object_key *key)
{
	enum object_kind kind = key->identity->kind;
	bool imageless = kind == OBJECT_UNKNOWN || kind == OBJECT_ANON;
	bool script = kind == OBJECT_SCRIPT || kind == OBJECT_WAIT;

	if (!entry_path(d, entry, key) || !entry_texts(entry, kind))
		return -ENOMEM;
	entry->generation = key->identity->ino_generation;
	entry->is_kept = false;
	atomic_init(&entry->refs, 0);
	entry->object.id = id;
	entry->object.wanted = &d->wanted;
	entry->object.next_wanted = 0;
	entry->object.identity = *key->identity;
	/* Zero already, and of a free id read by all who look through the table. */
	assert(!atomic_load_explicit(&entry->object.image, memory_order_relaxed));
	atomic_init(&entry->object.codemap, NULL);
	/* Without a file there is no image to wait for: unwinders guess. */
	atomic_init(&entry->object.state, imageless ? OBJECT_FAILED
					  : script  ? OBJECT_READY
						    : OBJECT_NEW);
	atomic_init(&entry->object.reason, imageless ? "memory without a file" : NULL);
	atomic_init(&entry->object.fix, NULL);
	atomic_init(&entry->object.source, NULL);
	atomic_init(&entry->object.nr_symbols, 0);
	atomic_init(&entry->object.nr_tabled, 0);
	atomic_init(&entry->object.nr_derived, 0);
	atomic_init(&entry->object.nr_bare, 0);
	atomic_init(&entry->object.permille, 0);
	atomic_init(&entry->object.nr_evicted, 0);
	atomic_init(&entry->object.memory, 0);
	atomic_init(&entry->object.interpreter, false);
	atomic_init(&entry->object.loop, 0);
	atomic_init(&entry->object.language_reason, NULL);
	atomic_init(&entry->object.language_version, 0);
	atomic_init(&entry->object.language_fix, NULL);
	atomic_init(&entry->object.used, 0);
	atomic_init(&entry->object.nr_waiting, 0);
	return 0;
}

/* Free the memory of @entry, but not its id. */
static void entry_fini(struct objects *d, struct entry *entry)
{
	d->paths_size -= entry->path ? strlen(entry->path) : 0;
	free_path(entry);
	free(entry->texts);
	entry->path = entry->texts = NULL;
	entry->object.name = entry->object.path = TEXT("[unknown]");
}

static void list(struct objects *d, struct entry *entry)
{
	if (!array_reserve(&d->new, &d->room_new, d->nr_new + 1ULL))
		return;
	atomic_fetch_add_explicit(&entry->refs, 1, memory_order_relaxed);
	d->new[d->nr_new++] = entry->object.id;
}

/* Add an object, with a free id or the next one; NULL when the table is full or out of memory. */
static struct entry *entry_add(struct objects *d, const struct object_key *key)
{
	uint32_t id = d->free ? d->free : chunked_nr(&d->entries);
	struct entry *entry = chunked_reserve(&d->entries, id);

	if (!entry)
		return NULL;
	if (entry_init(d, entry, id, key)) {
		entry_fini(d, entry);
		return NULL;
	}
	if (id >= OBJECT_ID_FIRST)
		entry_known(d, key, id);
	assert(entry_at(d, id) == entry && entry->object.id == id);
	if (d->free)
		d->free = entry->next_free;
	else
		chunked_publish(&d->entries, id + 1);
	atomic_fetch_add_explicit(&d->nr_added, 1, memory_order_relaxed);
	if (d->lists_new)
		list(d, entry);
	return entry;
}

/*
 * Test whether @entry may leave: it has no reference, and no sample was in it, so that no place has
 * its id; nor had it an image, which readers of the whole table may have. Under the lock.
 */
static bool is_unused(const struct entry *entry)
{
	/* Acquire: pairs with the release of the last reference. */
	return entry->path && !entry->is_kept &&
	       !atomic_load_explicit(&entry->refs, memory_order_acquire) &&
	       !atomic_load_explicit(&entry->object.used, memory_order_relaxed) &&
	       !atomic_load_explicit(&entry->object.image, memory_order_relaxed);
}

/* Test whether no image is requested, and no loader has the id. */
static bool is_unwanted(const struct object *object)
{
	return object->identity.kind == OBJECT_ANON ||
	       atomic_load_explicit(&object->state, memory_order_relaxed) == OBJECT_NEW;
}

/* Return the key of @entry, with @generation. */
static struct object_key entry_key(const struct objects *d, const struct entry *entry,
				   uint64_t generation)
{
	struct object_key key = { .identity = &entry->object.identity,
				  .path = entry->path,
				  .path_size = strlen(entry->path) };

	key.hash = key_hash(d, &key);
	key.exact_hash = exact_hash(d, &key, generation);
	return key;
}

/* Take out @entry, and let its id be given to another object. */
static void entry_leave(struct objects *d, struct entry *entry)
{
	const struct object_key key = entry_key(d, entry, entry->generation);

	hashset_remove(&d->set, key.hash, entry->object.id);
	hashset_remove(&d->set, key.exact_hash, entry->object.id);
	entry_fini(d, entry);
	entry->next_free = d->free;
	d->free = entry->object.id;
}

int objects_new(struct objects **out)
{
	static const enum object_kind fixed[] = { OBJECT_UNKNOWN, OBJECT_KERNEL, OBJECT_VDSO };
	struct objects *d = aligned_alloc(CACHELINE, sizeof(*d));

	if (!d)
		return -ENOMEM;
	memset(d, 0, sizeof(*d));
	d->secret = keyhash_new_key();
	mutex_init_urgent(&d->lock);
	if (chunked_init(&d->entries, sizeof(struct entry), CHUNK_BITS, OBJECTS_MAX))
		goto fail;
	for (size_t i = 0; i < ARRAY_SIZE(fixed); i++) {
		struct object_identity identity = { .kind = fixed[i] };
		struct object_key key = { .identity = &identity, .path = "" };

		struct entry *entry = entry_add(d, &key);

		if (!entry)
			goto fail;
		entry->is_kept = true;
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

		/* All threads have ended; an image lives as long as its object. */
		image_free((struct image *)(uintptr_t)atomic_load_explicit(&entry->object.image,
									   memory_order_relaxed));
		free_path(entry);
		free(entry->texts);
	}
	chunked_fini(&d->entries);
	hashset_fini(&d->set);
	free(d->new);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

/* Store the latest sighting of @entry; copy the path only when it changed. */
static void entry_seen(struct objects *d, struct entry *entry, const struct object_key *key,
		       pid_t pid, uint64_t start, uint64_t end)
{
	if (!entry->is_cut && (strlen(entry->path) != key->path_size ||
			       memcmp(entry->path, key->path, key->path_size)))
		entry_path(d, entry, key);
	entry->pid = pid;
	entry->start = start;
	entry->end = end;
}

/* Find or add the object of @key and note the sighting, under the lock. NULL when out of memory. */
static struct entry *see(struct objects *d, const struct object_key *key, pid_t pid, uint64_t start,
			 uint64_t end)
{
	struct entry *entry;

	if (hashset_reserve(&d->set, 2))
		return NULL;
	entry = entry_find(d, key);
	if (!entry)
		entry = entry_add(d, key);
	assert(!entry || entry->object.identity.kind == key->identity->kind);
	if (entry)
		entry_seen(d, entry, key, pid, start, end);
	return entry;
}

/* What a caller of find() gets: the object for good, or a reference. */
enum share { SHARE_KEEP, SHARE_REFERENCE };

static struct object *find(struct objects *d, const struct object_identity *identity,
			   const char *path, size_t path_size, pid_t pid, uint64_t start,
			   uint64_t end, enum share share)
{
	struct object_identity clean = *identity;
	struct object_key key = { .identity = &clean, .path = path ? path : "" };
	struct entry *entry;

	if (identity->kind <= OBJECT_VDSO)
		return objects_at(d, identity->kind);
	key.path_size = path ? strnlen(path, MIN(path_size, PATH_SIZE_MAX)) : 0;
	clean.build_id_size = MIN(identity->build_id_size, sizeof(identity->build_id));
	key.hash = key_hash(d, &key);
	key.exact_hash = exact_hash(d, &key, clean.ino_generation);
	pthread_mutex_lock(&d->lock);
	entry = see(d, &key, pid, start, end);
	if (entry && share == SHARE_REFERENCE)
		atomic_fetch_add_explicit(&entry->refs, 1, memory_order_relaxed);
	else if (entry)
		entry->is_kept = true;
	pthread_mutex_unlock(&d->lock);
	return entry ? &entry->object : objects_at(d, OBJECT_ID_UNKNOWN);
}

struct object *objects_intern(struct objects *d, const struct object_identity *identity,
			      const char *path, size_t path_size, pid_t pid, uint64_t start,
			      uint64_t end)
{
	return find(d, identity, path, path_size, pid, start, end, SHARE_KEEP);
}

struct object *objects_hold(struct objects *d, const struct object_identity *identity,
			    const char *path, size_t path_size, pid_t pid, uint64_t start,
			    uint64_t end)
{
	return find(d, identity, path, path_size, pid, start, end, SHARE_REFERENCE);
}

void object_get(struct object *object)
{
	struct entry *entry = (struct entry *)object;

	if (object->id >= OBJECT_ID_FIRST)
		atomic_fetch_add_explicit(&entry->refs, 1, memory_order_relaxed);
}

bool object_is_mapped(const struct object *object)
{
	const struct entry *entry = (const struct entry *)object;

	return atomic_load_explicit(&entry->refs, memory_order_relaxed);
}

void object_put(struct object *object)
{
	struct entry *entry = (struct entry *)object;
	struct objects *d;

	if (!object || object->id < OBJECT_ID_FIRST)
		return;
	assert(atomic_load_explicit(&entry->refs, memory_order_relaxed));
	d = (struct objects *)((char *)object->wanted - offsetof(struct objects, wanted));
	/* Release and acquire: all accesses of other holders are before the object leaves. */
	if (atomic_fetch_sub_explicit(&entry->refs, 1, memory_order_acq_rel) > 1)
		return;
	pthread_mutex_lock(&d->lock);
	/* It may have been found again since, or have left, and another has its id. */
	if (is_unused(entry) && is_unwanted(object))
		entry_leave(d, entry);
	pthread_mutex_unlock(&d->lock);
}

void objects_list_new(struct objects *d)
{
	pthread_mutex_lock(&d->lock);
	d->lists_new = true;
	for (uint32_t id = OBJECT_ID_FIRST; id < objects_nr(d); id++)
		if (entry_at(d, id)->path)
			list(d, entry_at(d, id));
	pthread_mutex_unlock(&d->lock);
}

struct object *objects_next_new(struct objects *d)
{
	struct object *object = NULL;

	pthread_mutex_lock(&d->lock);
	if (d->first_new < d->nr_new)
		object = objects_at(d, d->new[d->first_new++]);
	if (d->first_new == d->nr_new)
		d->first_new = d->nr_new = 0;
	pthread_mutex_unlock(&d->lock);
	return object;
}

uint64_t objects_nr_added(const struct objects *d)
{
	return atomic_load_explicit(&d->nr_added, memory_order_relaxed);
}

struct object *objects_at(const struct objects *d, uint32_t id)
{
	return id < chunked_nr(&d->entries) ? &entry_at(d, id)->object : NULL;
}

uint32_t objects_nr(const struct objects *d)
{
	return chunked_nr(&d->entries);
}

void objects_sighting(struct objects *d, const struct object *object, struct object_sighting *out)
{
	struct entry *entry = entry_at(d, object->id);

	pthread_mutex_lock(&d->lock);
	out->pid = entry->pid;
	out->start = entry->start;
	out->end = entry->end;
	out->generation = entry->generation;
	out->path = strdup(entry->path);
	pthread_mutex_unlock(&d->lock);
}

bool objects_note_generation(struct objects *d, struct object *object, uint64_t generation)
{
	struct entry *entry = (struct entry *)object;
	bool same;

	if (!generation)
		return true;
	pthread_mutex_lock(&d->lock);
	if (!entry->generation && !hashset_reserve(&d->set, 1))
		entry_set_generation(d, entry, generation,
				     entry_key(d, entry, generation).exact_hash);
	same = !entry->generation || entry->generation == generation;
	pthread_mutex_unlock(&d->lock);
	return same;
}

uint32_t objects_take_wanted(struct objects *d)
{
	/* Acquire: the links; pairs with object_want(). Only this thread takes objects out, and an
	 * object in the list is not requested again. */
	uint32_t id = atomic_load_explicit(&d->wanted, memory_order_acquire);

	while (id &&
	       !atomic_compare_exchange_weak_explicit(&d->wanted, &id,
						      entry_at(d, id)->object.next_wanted,
						      memory_order_acquire, memory_order_acquire))
		;
	return id;
}

bool objects_drop_wanted(struct objects *d, struct object *object)
{
	struct entry *entry = (struct entry *)object;
	bool leaves;

	pthread_mutex_lock(&d->lock);
	leaves = is_unused(entry);
	if (leaves)
		entry_leave(d, entry);
	pthread_mutex_unlock(&d->lock);
	return leaves;
}
