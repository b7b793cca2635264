// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The table of objects, in chunks that never move; their images: requested, loaded by jobs, evicted
 * above the limit of memory, retried; file systems that do not respond are skipped for a while.
 *
 * Runs on: any thread for objects; for images the loader, which reads no file.
 */

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/base/table.h"
#include "symbols/base/text.h"
#include "symbols/base/thread.h"
#include "symbols/elf/elf.h"
#include "symbols/image/image.h"
#include "symbols/image/internal.h"

/*
 * The table of objects, in chunks that never move.
 *
 * Writers hold the mutex; readers look up by id without a lock. The path and the name shown are
 * fixed when an object is added; the sighting (the path by which the loader finds the file) changes
 * under the mutex.
 *
 * An object leaves under the mutex when it has no reference and was never sampled: then
 * no place, no image and no list but that of free ids has its id. References of mappings
 * are dropped after a grace period, so no reader has the object either.
 */

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
 * A file is found by its inode with the generation, and without it: then the latest generation. So
 * a file system that gives an inode number again and again makes no run of equal hashes.
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
		entry->texts = urgent_alloc(name.size + path.size + (size_t)2);
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
		urgent_free(entry->path);
}

/* Copy the path of @key to @entry, in place of the one before. False when out of memory. */
static bool entry_path(struct objects *d, struct entry *entry, const struct object_key *key)
{
	size_t size = key->path_size, before = entry->path ? strlen(entry->path) : 0;
	bool is_cut = key->identity->ino && d->paths_size - before + size > PATHS_SIZE_MAX;
	const char *from = key->path, *slash = is_cut ? memrchr(from, '/', size) : NULL;
	char *path = memory_path;

	if (slash) {
		size -= (size_t)(slash + 1 - from);
		from = slash + 1;
	}
	if (size != strlen(memory_path) || memcmp(from, memory_path, size)) {
		size = strnlen(from, is_cut ? MIN(size, NAME_SIZE_MAX) : size);
		path = urgent_alloc(size + 1);
		if (!path)
			return false;
		memcpy(path, from, size);
	}
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
	atomic_init(&entry->object.codemap_wanted, false);
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
	urgent_free(entry->texts);
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
		urgent_free(entry->texts);
		free(entry->object.sites);
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

/* Whether find() returns the object for good, or a reference to it. */
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

/*
 * Note the generation of the file that was read for @object; 0: unknown. A later file with the same
 * inode is another object then. Return false if @object is of another generation already.
 */
static bool objects_note_generation(struct objects *d, struct object *object, uint64_t generation)
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

/*
 * Loader: take a requested object out of the list; OBJECT_ID_UNKNOWN: none. So objects that no
 * sample requests cost nothing, however many there are.
 */
static uint32_t objects_take_wanted(struct objects *d)
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

/*
 * Loader: drop a requested object that was taken out of the list, and is not being read, if it has
 * no image, no process maps it any more and no sample was in it. Return whether it has left.
 */
static bool objects_drop_wanted(struct objects *d, struct object *object)
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

/*
 * Lists of objects and retries.
 *
 * Runs on: the loader.
 */

/* Append @id; false when out of memory. */
static bool image_cache_ids_add(struct image_cache_ids *ids, uint32_t id)
{
	if (!array_reserve(&ids->list, &ids->max, ids->nr + 1ull))
		return false;
	ids->list[ids->nr++] = id;
	return true;
}

/* Retry @id at @due_ns (0: only when seen in another process than @pid). */
static void image_cache_retry_at(struct image_cache *o, uint32_t id, pid_t pid, unsigned int tries,
				 uint64_t due_ns)
{
	if (!array_reserve(&o->retries, &o->max_retries, o->nr_retries + 1ull))
		return;
	o->retries[o->nr_retries++] = (struct image_cache_retry){ id, pid, tries, due_ns };
}

/*
 * Eviction: images take no more memory than image_cache.memory_max, and leave after ten minutes
 * without a sample, or sooner while there are many, so that the memory of ended programs is
 * returned. Images without a sample for
 * longest are freed first; stubs with the load segments replace them.
 *
 * One thread: the loader.
 *
 * Eviction of images.
 *
 * Runs on: the loader. Readers keep an image until their next quiescent state.
 */

/* An image with a sample this recently (units of object_clock) is in use. */
#define IN_USE 3U

/*
 * Shortest and longest pause after an eviction in use, doubled each time: else
 * images would be loaded and evicted without end.
 */
#define REST_MIN_NS 10000000000ULL

#define REST_MAX_NS 300000000000ULL

/* As long as the default --history, in units of object_clock. */
#define IDLE 559U

#define IDLE_CHECK_NS 60000000000ULL

/*
 * While images take more than image_cache.memory_idle, one leaves earlier: without a sample for
 * LOAD_SHARE times as long as its load took, within these limits (units of object_clock), so that
 * loads cost about one percent of a CPU.
 */
#define SPARE_IDLE_MIN 15U

#define SPARE_IDLE_MAX 60U

#define LOAD_SHARE 100U

#define SPARE_CHECK_NS 4000000000ULL

/* So many leave at a check at most: each looks at all. */
#define SPARE_MAX 32U

struct leaving {
	struct reclaim rcu;
	struct image *image;
};

static void free_leaving(struct reclaim *head)
{
	struct leaving *l = (struct leaving *)((char *)head - offsetof(struct leaving, rcu));

	reclaim_grace_over();
	image_free(l->image);
	free(l);
}

/* Free @image, which was published, when no reader can hold it. */
static void image_evict_reclaim(struct image *image)
{
	struct leaving *l = malloc(sizeof(*l));

	if (!l)
		return; /* leaked: better than freed under a reader */
	l->image = image;
	reclaim_later(&l->rcu, free_leaving);
}

/* Return how long @object must have been without a sample to leave before the memory is full. */
static uint32_t spare_idle(const struct object *object)
{
	return MIN(MAX(object_clock(LOAD_SHARE * object->load_ns), SPARE_IDLE_MIN), SPARE_IDLE_MAX);
}

/*
 * Return the index of the image without a sample for longest, or the end; @spare: of the images
 * that leave before the memory is full.
 */
static uint32_t choose(struct image_cache *o, bool spare)
{
	uint32_t best = o->ready.nr, oldest = 0;

	for (uint32_t i = 0; i < o->ready.nr; i++) {
		const struct object *object = objects_at(o->objects, o->ready.list[i]);
		uint32_t used = atomic_load_explicit(&object->used, memory_order_relaxed);

		o->newest = MAX(o->newest, used);
		if (spare && used + spare_idle(object) >= o->newest)
			continue;
		if (best == o->ready.nr || used < oldest) {
			best = i;
			oldest = used;
		}
	}
	return best;
}

/* Replace the image by a stub. False: out of memory. */
static bool evict(struct image_cache *o, struct object *object)
{
	struct image *image = (struct image *)(uintptr_t)atomic_load_explicit(&object->image,
									      memory_order_relaxed);
	size_t memory = image_memory(image);
	struct image *stub = image_stub(image);

	assert(!image->away);
	if (!stub)
		return false;
	/* Release: the stub; pairs with the acquire of readers of object->image. */
	atomic_store_explicit(&object->image, stub, memory_order_release);
	atomic_fetch_sub_explicit(&o->memory, memory, memory_order_relaxed);
	atomic_fetch_sub_explicit(&o->nr_images, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&o->nr_evicted, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&object->nr_evicted, 1, memory_order_relaxed);
	atomic_store_explicit(&object->memory, 0, memory_order_relaxed);
	image_evict_reclaim(image);
	return true;
}

/* An image in use was evicted: pause it; its stacks are guessed until then. */
static void rest(struct image_cache *o, struct object *object, uint64_t now_ns)
{
	uint32_t nr = atomic_load_explicit(&object->nr_evicted, memory_order_relaxed);
	uint64_t rest_ns = MIN(REST_MIN_NS << MIN(nr - 1, 5U), REST_MAX_NS);

	object_explain(object, "evicted: --symbol-memory is full",
		       "raise the limit, as in --symbol-memory=2G");
	atomic_fetch_add_explicit(&o->nr_failed, 1, memory_order_relaxed);
	/* Release: the reason; pairs with the acquire of readers. */
	atomic_store_explicit(&object->state, OBJECT_ASIDE, memory_order_release);
	image_cache_retry_at(o, object->id, 0, 0, now_ns + rest_ns);
}

/* The next sample requests an evicted object as a new one. */
static void reopen(struct object *object)
{
	/* Release: the stub. */
	atomic_store_explicit(&object->state, OBJECT_NEW, memory_order_release);
}

/* Unmap the first @size bytes of mapped pages, which are of a file, and no bytes behind them. */
static void give_back(const struct image_pages *pages, uint64_t size)
{
	/* Behind the whole pages are bytes of ours, which would be lost. */
	const uint64_t whole = size & ~((uint64_t)sysconf(_SC_PAGESIZE) - 1);

	assert(!pages->at || size <= pages->size);
	if (pages->at && whole)
		madvise(pages->at, whole, MADV_DONTNEED);
}

/*
 * Unmap pages of the file. Of names all: each is read once, by the loader, and the kernel maps
 * sixteen around it. Of .eh_frame only where no sample was recently (@idle), as sampler threads
 * wait for them.
 */
static void give_pages_back(const struct image *image, bool idle)
{
	const struct image_pages *frames = &image->frames;

	give_back(&image->name_pages, image->names_in_file);
	if (frames->at && idle)
		give_back(frames,
			  (uint64_t)(image->eh.bytes - (uint8_t *)frames->at) + image->eh.in_file);
}

static void give_all_back(struct image_cache *o)
{
	choose(o, false); /* for o->newest */
	for (uint32_t i = 0; i < o->ready.nr; i++) {
		const struct object *object = objects_at(o->objects, o->ready.list[i]);
		uint32_t used = atomic_load_explicit(&object->used, memory_order_relaxed);

		/* The loader alone replaces it. */
		give_pages_back(atomic_load_explicit(&object->image, memory_order_relaxed),
				used + SPARE_IDLE_MIN < o->newest);
	}
}

/*
 * Once a minute: evict the images without a sample in the ten minutes before the latest one. Not
 * for a recording.
 */
static void image_evict_idle(struct image_cache *o, uint64_t now_ns)
{
	if (o->no_proc || now_ns - o->idle_ns < IDLE_CHECK_NS)
		return;
	o->idle_ns = now_ns;
	choose(o, false); /* for o->newest */
	for (uint32_t i = 0; i < o->ready.nr;) {
		struct object *object = objects_at(o->objects, o->ready.list[i]);
		uint32_t used = atomic_load_explicit(&object->used, memory_order_relaxed);

		if (used + IDLE >= o->newest) {
			i++;
			continue;
		}
		if (!evict(o, object))
			return;
		o->ready.list[i] = o->ready.list[--o->ready.nr];
		reopen(object);
	}
}

/*
 * Evict images that are worth less than their memory, and return free memory to the system. Not for
 * a recording: its end is near.
 */
static void image_evict_spare(struct image_cache *o, uint64_t now_ns)
{
	uint32_t i;

	if (o->no_proc || now_ns - o->spare_ns < SPARE_CHECK_NS)
		return;
	o->spare_ns = now_ns;
	/*
	 * Tables come and go, of images, counts and processes: their pages stay resident, unless
	 * they are at the end of the heap.
	 */
	malloc_trim(0);
	give_all_back(o);
	for (uint32_t n = 0; n < SPARE_MAX; n++) {
		if (atomic_load_explicit(&o->memory, memory_order_relaxed) <= o->memory_idle)
			return;
		i = choose(o, true);
		if (i == o->ready.nr || !evict(o, objects_at(o->objects, o->ready.list[i])))
			return;
		reopen(objects_at(o->objects, o->ready.list[i]));
		o->ready.list[i] = o->ready.list[--o->ready.nr];
	}
}

/* Evict images until the rest fits. */
static void image_evict_make_room(struct image_cache *o, uint64_t now_ns)
{
	uint32_t i;

	while (atomic_load_explicit(&o->memory, memory_order_relaxed) > o->memory_max &&
	       (i = choose(o, false)) < o->ready.nr) {
		struct object *object = objects_at(o->objects, o->ready.list[i]);
		uint32_t used = atomic_load_explicit(&object->used, memory_order_relaxed);

		if (!evict(o, object))
			return;
		o->ready.list[i] = o->ready.list[--o->ready.nr];
		if (used + IN_USE > o->newest) {
			rest(o, object, now_ns);
			continue;
		}
		reopen(object);
	}
}

void image_evict_reload(struct image_cache *o, uint32_t id, uint64_t now_ns)
{
	struct object *object = objects_at(o->objects, id);

	assert(id != OBJECT_ID_UNKNOWN);
	for (uint32_t i = 0; i < o->ready.nr; i++) {
		if (o->ready.list[i] != id)
			continue;
		if (!evict(o, object))
			return;
		o->ready.list[i] = o->ready.list[--o->ready.nr];
		atomic_fetch_sub_explicit(&o->nr_evicted, 1, memory_order_relaxed);
		atomic_fetch_sub_explicit(&object->nr_evicted, 1, memory_order_relaxed);
		object_explain(object, "loading its debug symbols", NULL);
		atomic_fetch_add_explicit(&o->nr_failed, 1, memory_order_relaxed);
		/* As an object set aside: places with names by address are named again. */
		atomic_store_explicit(&object->state, OBJECT_ASIDE, memory_order_release);
		image_cache_retry_at(o, id, 0, 0, now_ns);
		o->retried_ns = 0;
		return;
	}
}

/*
 * Open the file of one object and build its image.
 *
 * Runs on: a helper; load_new() and the life of the job on the loader.
 */

void load_where(struct load_where *w, struct objects *objects, const struct object *object,
		bool no_proc, const char *root)
{
	/* Acquire: pairs with the release of a finished image; the loader alone replaces it. */
	const struct image *image = atomic_load_explicit(&object->image, memory_order_acquire);

	assert(object->id != OBJECT_ID_UNKNOWN);
	w->identity = object->identity;
	w->build_id_size = image ? image->build_id_size : 0;
	if (image)
		memcpy(w->build_id, image->build_id, sizeof(w->build_id));
	w->object = object->id;
	objects_sighting(objects, object, &w->seen);
	w->root = root ? strdup(root) : NULL;
	w->recorded = no_proc;
	if (no_proc)
		w->seen.pid = 0;
}

#define VDSO_MAX (64u << 10)

/* Copy the vdso from our memory: all processes have the same. */
static int load_vdso(struct image **out)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	uint64_t start, end;
	char line[512];
	int rc = -ENOENT;

	if (!maps)
		return -errno;
	while (rc == -ENOENT && fgets(line, sizeof(line), maps)) {
		if (strstr(line, "[vdso]") &&
		    sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) == 2)
			rc = image_read_memory(out, (const void *)(uintptr_t)start, end - start,
					       NULL);
	}
	fclose(maps);
	return rc;
}

/* Make an empty image: kallsyms has the names of the kernel. */
static int load_kernel(struct image **out)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->source = "kallsyms";
	return 0;
}

/*
 * Test for another build-id than that of the mapping, or none. After the bytes of a build-id are
 * zeros; old recordings do not have its size.
 */
static bool is_other(const struct object_identity *id, const struct image *image)
{
	return id->build_id_size &&
	       memcmp(id->build_id, image->build_id, sizeof(id->build_id)) != 0;
}

/*
 * Test whether the file has changed since it was opened: parts of the image may not
 * match then.
 */
static bool has_changed(const struct untrusted_file *file)
{
	struct stat st;

	return fstat(file->fd, &st) || (uint64_t)st.st_size != file->size ||
	       (int64_t)st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec != file->mtime_ns;
}

/* The vdso of 32-bit processes is in their memory only: copy that into a file. */
static int open_vdso(const struct object_sighting *seen, struct untrusted_file *file)
{
	uint64_t size = seen->end - seen->start;
	struct iovec ours, theirs = { (void *)(uintptr_t)seen->start, size };
	void *bytes = size && size <= VDSO_MAX ? malloc(size) : NULL;
	int rc = 0;

	memset(file, 0, sizeof(*file));
	file->fd = -1;
	ours = (struct iovec){ bytes, size };
	if (!bytes)
		return -EFBIG;
	if (process_vm_readv(seen->pid, &ours, 1, &theirs, 1, 0) != (ssize_t)size)
		rc = -EIO;
	else
		file->fd = memfd_create("vdso", MFD_CLOEXEC);
	if (!rc && (file->fd < 0 || write(file->fd, bytes, size) != (ssize_t)size))
		rc = -EIO;
	free(bytes);
	file->size = size;
	if (rc && file->fd >= 0)
		close(file->fd);
	return rc;
}

static int load_file(struct load *l)
{
	struct image_input in = {
		.path = l->where.seen.path,
		.pid = l->where.seen.pid,
		.root = l->where.root,
		.no_debug_files = l->no_debug_files,
		.recorded = l->where.recorded,
		.memory_max = l->memory_max,
		.watch = &l->job.watch,
	};
	bool vdso = !l->no_vdso && in.path && !strcmp(in.path, "[vdso]");
	struct derive_choice choice = { .visits_max = l->visits_max, .alone = l->more };
	struct untrusted_file file;
	int rc = vdso ? open_vdso(&l->where.seen, &file) : load_open(&l->where, in.watch, &file);

	if (rc)
		return rc;
	memcpy(choice.sites, l->sites, sizeof(choice.sites));
	if (!l->where.recorded)
		in.choice = &choice;
	in.fd = file.fd;
	in.size = file.size;
	l->generation = file.generation;
	rc = image_read(&l->image, &in, NULL);
	if (!vdso && has_changed(&file))
		rc = -EBUSY;
	else if (!rc && is_other(&l->where.identity, l->image))
		rc = -ESTALE;
	close(file.fd);
	if (rc) {
		image_free(l->image);
		l->image = NULL;
	}
	return rc;
}

static void run(struct job *job)
{
	struct load *l = (struct load *)job;

	switch (l->where.identity.kind) {
	case OBJECT_KERNEL:
		l->rc = load_kernel(&l->image);
		break;
	case OBJECT_VDSO:
		l->rc = l->no_vdso ? -EXDEV : load_vdso(&l->image);
		break;
	case OBJECT_FILE:
		l->rc = load_file(l);
		break;
	default:
		l->rc = -EINVAL;
	}
}

static void drop(struct job *job)
{
	struct load *l = (struct load *)job;

	image_free(l->image);
	load_where_fini(&l->where);
	free(l);
}

/* Make a job; NULL when out of memory. Freed by job.drop(). */
static struct load *load_new(struct objects *objects, const struct object *object, bool no_proc,
			     const char *root)
{
	struct load *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->job.run = run;
	l->job.drop = drop;
	load_where(&l->where, objects, object, no_proc, root);
	return l;
}

/*
 * File systems that do not answer. Runs on: the loader.
 */

#define BACKOFF_SLOW_EACH   2U /* on one device */
#define BACKOFF_REST_MAX_NS 300000000000ULL

/* Find the device, or add it; NULL for 0:0, or when the table is full. */
static struct device *find_device(struct backoff *d, uint32_t maj, uint32_t min, bool add)
{
	struct device *free_one = NULL;

	if (!maj && !min)
		return NULL;
	for (unsigned int i = 0; i < d->nr; i++) {
		struct device *dev = &d->list[i];

		if (dev->maj == maj && dev->min == min)
			return dev;
		if (!dev->nr_slow && !dev->until_ns)
			free_one = dev;
	}
	if (!add)
		return NULL;
	if (d->nr < BACKOFF_MAX)
		free_one = &d->list[d->nr++];
	if (free_one)
		*free_one = (struct device){ .maj = maj, .min = min };
	return free_one;
}

/*
 * Test for a device with an entry that others cannot take. Real disks have a major number; half of
 * the entries are for them and for devices that answered before: the hanging mounts of one
 * user take entries only from such mounts.
 */
static bool is_trusted(const struct device *dev, uint32_t maj)
{
	return maj || (dev && dev->answered);
}

/*
 * Return 0 if a file of the device may be read now, else the time of the next try. 0:0 is the
 * unknown device.
 */
static uint64_t backoff_rest(struct backoff *d, uint32_t maj, uint32_t min, uint64_t now_ns)
{
	const struct device *dev = find_device(d, maj, min, false);

	if (d->nr_slow >= BACKOFF_SLOW_MAX ||
	    (d->nr_slow >= BACKOFF_SLOW_MAX / 2 && !is_trusted(dev, maj)))
		return now_ns + BACKOFF_REST_MIN_NS;
	if (!dev)
		return 0;
	if (dev->until_ns > now_ns)
		return dev->until_ns;
	return dev->nr_slow >= BACKOFF_SLOW_EACH ? now_ns + MAX(dev->rest_ns, BACKOFF_REST_MIN_NS)
						 : 0;
}

/* Count a read that hangs; backoff_ended() or backoff_cancelled() with @slow report its end. */
static void backoff_hang(struct backoff *d, uint32_t maj, uint32_t min, uint64_t now_ns)
{
	struct device *dev = find_device(d, maj, min, true);

	d->nr_slow++;
	if (!dev)
		return;
	dev->nr_slow++;
	dev->rest_ns = MIN(MAX(dev->rest_ns * 2, BACKOFF_REST_MIN_NS), BACKOFF_REST_MAX_NS);
	dev->until_ns = now_ns + dev->rest_ns;
}

/*
 * Count a read that ended, with or without error; @slow: it was counted as hanging.
 * True: the pause is over.
 */
static bool backoff_ended(struct backoff *d, uint32_t maj, uint32_t min, bool slow)
{
	struct device *dev = find_device(d, maj, min, true);
	bool rested = dev && dev->until_ns;

	if (slow && d->nr_slow)
		d->nr_slow--;
	if (!dev)
		return false;
	if (slow && dev->nr_slow)
		dev->nr_slow--;
	dev->answered = true;
	dev->rest_ns = dev->until_ns = 0;
	return rested;
}

/* Count a hanging read that was cancelled: the pause is unchanged. */
static void backoff_cancelled(struct backoff *d, uint32_t maj, uint32_t min)
{
	struct device *dev = find_device(d, maj, min, false);

	if (d->nr_slow)
		d->nr_slow--;
	if (dev && dev->nr_slow)
		dev->nr_slow--;
}

/* Without --symbol-memory: 3 % of the memory of the machine, within these limits. */
#define IMAGE_CACHE_MEMORY_MIN (64UL << 20)

#define IMAGE_CACHE_MEMORY_MAX (512UL << 20)

#define IMAGE_CACHE_MEMORY_IDLE (48UL << 20)

/* Loads at the same time: more than CPUs, since on a busy machine each waits for a CPU. */
#define ACTIVE_MAX 8U

#define RETRY_TRIES_MAX	  8U
#define RETRY_INTERVAL_NS 1000000000ULL
#define RETRY_SOON_NS	  2000000000ULL

/* Objects without an image that are checked each second: of all, and of the ones to retry. */
#define CHECKS_MAX 8192U

/* Requested objects among which the next one is chosen. */
#define CHOICE_MAX 4096U

/* Requested objects that are taken up in one call: other work waits. */
#define TAKE_MAX 256U

#define BLOCKED_NS    500000000ULL   /* a longer read hangs */
#define WAITED_NS     5000000000ULL  /* longer reads in sum are too slow */
#define SLOW_SPEED    (4ULL << 20)   /* bytes per second that a disk delivers at least */
#define QUEUE_NS      200000000ULL   /* large files wait for another one */
#define GIVE_UP_NS    60000000000ULL /* a slow load is cancelled */
#define GONE	      "file is gone, or in another mount namespace"
#define MANAGED	      "start it with the environment DOTNET_ReadyToRun=0 DOTNET_PerfMapEnabled=1"
#define LOCAL_DISK    "copy it to a local disk"
#define QUEUED	      "large: waits until other large files are read"
#define BARRED	      "ended its reader: not read"
#define NOT_ANSWERING "its file system does not respond: will retry"

static void fini_ids(struct image_cache_ids *ids)
{
	free(ids->list);
	*ids = (struct image_cache_ids){ 0 };
}

static size_t default_memory_max(void)
{
	uint64_t all = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

	return MIN(MAX(all / 100 * 3, IMAGE_CACHE_MEMORY_MIN), IMAGE_CACHE_MEMORY_MAX);
}

void image_cache_init(struct image_cache *o, struct objects *objects, struct helpers *helpers)
{
	memset(o, 0, sizeof(*o));
	o->objects = objects;
	o->helpers = helpers;
	o->memory_max = default_memory_max();
	o->memory_idle = IMAGE_CACHE_MEMORY_IDLE;
}

void image_cache_fini(struct image_cache *o)
{
	for (unsigned int i = 0; i < o->nr_loads; i++)
		helper_job_leave(&o->loads[i]->job);
	o->nr_loads = 0;
	fini_ids(&o->open);
	fini_ids(&o->ready);
	fini_ids(&o->late);
	fini_ids(&o->loops);
	fini_ids(&o->failed);
	fini_ids(&o->large);
	free(o->retries);
	o->retries = NULL;
}

/* Explain a file of a recording that is not here; false: @code has another reason. */
static bool explain_recorded(const struct image_cache *o, struct object *object, int code)
{
	if (!o->no_proc)
		return false;
	if (code == -ESTALE)
		object_explain(object, OBJECT_REPLACED, "pass the recorded files with --symfs");
	else if (code != -ENOENT && code != -ENOTDIR)
		return false;
	else if (o->root)
		object_explain(object, "no such file below --symfs",
			       "copy it there from the recorded machine");
	else
		object_explain(object, "no such file on this machine",
			       "copy the recorded machine's files, and pass them with --symfs");
	return true;
}

/* Explain an errno of opening or reading @object. */
static void explain(const struct image_cache *o, struct object *object, int code)
{
	static const struct object_reason words[] = {
		{ -EPERM, "no permission", "run proftop as root or with cap_sys_ptrace" },
		{ -EACCES, "no permission", "run proftop as root or with cap_sys_ptrace" },
		{ -ENOENT, GONE, "run proftop as root while it is mapped" },
		{ -ENOTDIR, GONE, "run proftop as root while it is mapped" },
		{ -ESRCH, "process has ended", "start proftop before it, or run it longer" },
		{ -ESTALE, "replaced on disk", "restart the program, or run proftop as root" },
		{ -EBUSY, "changed while it was read", NULL },
		{ -EINVAL, "not a regular file", NULL },
		{ -EXDEV, "not of the running kernel", "replay on the recorded machine" },
		{ -ENOEXEC, "not an ELF file", NULL },
		{ -E2BIG, "too large", NULL },
		{ -EFBIG, "too large", NULL },
		{ -ENOSPC, "larger than --symbol-memory",
		  "raise the limit, as in --symbol-memory=2G" },
		{ -ENOMEM, "out of memory", NULL },
		{ -ECANCELED, "too slow to read: gave up", LOCAL_DISK },
		{ -EPIPE, BARRED, NULL },
		{ -ETIME, BARRED, NULL },
		{ -EBADMSG, BARRED, NULL },
		{ -ENOSYS, "its reader does not start", "see foreign files in proftop --check" },
		{ -EIO, "cannot be read", NULL },
		{ -ERANGE, "cannot be read", NULL },
	};

	atomic_store_explicit(&object->no_elf, code == -ENOEXEC, memory_order_relaxed);
	if (code == -ENOEXEC && strstr(object->name.str, ".dll"))
		object_explain(object, "not an ELF file", MANAGED);
	else if (!explain_recorded(o, object, code) &&
		 !object_explain_code(object, code, words, ARRAY_SIZE(words)))
		object_explain(object, "cannot be opened", NULL);
}

/* Explain the names of an image, or their absence. */
static void explain_image(struct object *object, const struct image *image)
{
	static const char *const package = "install its debug symbols (-dbgsym), or build with -g";

	object_credit(object, image->source, image->nr_symbols);
	atomic_store_explicit(&object->nr_tabled, image->nr_tabled, memory_order_relaxed);
	atomic_store_explicit(&object->nr_derived, image->nr_derived, memory_order_relaxed);
	atomic_store_explicit(&object->nr_bare, image->nr_bare, memory_order_relaxed);
	if (object->identity.kind == OBJECT_KERNEL)
		object_explain(object, NULL, NULL); /* naming.c explains it */
	else if (!image->complete && image->trouble)
		object_explain(object, image->trouble, package);
	else if (!image->nr_symbols || (image->source && !strcmp(image->source, "none")))
		object_explain(object, "stripped: no symbols", package); /* but main() */
	else if (!image->complete)
		object_explain(object, "stripped: only exported functions have names", package);
	else
		object_explain(object, NULL, NULL);
}

/* Test whether another process that maps the file would help. */
static bool may_come(int code)
{
	return code == -ESRCH || code == -ENOENT || code == -ENOTDIR || code == -EACCES ||
	       code == -EPERM || code == -ESTALE;
}

static void count(atomic_ulong *figure, long by)
{
	atomic_fetch_add_explicit(figure, (unsigned long)by, memory_order_relaxed);
}

static bool has_failed(unsigned int state)
{
	return state >= OBJECT_FAILED;
}

/* Leave @object without an image for now. The reason is stored before the state (release). */
static void fail(struct image_cache *o, struct object *object, enum object_state state)
{
	unsigned int before =
		(unsigned int)atomic_load_explicit(&object->state, memory_order_relaxed);

	if (!has_failed(before))
		count(&o->nr_failed, 1);
	atomic_store_explicit(&object->state, (int)state, memory_order_release);
}

/* Note that @object is an interpreter, as its image shows. */
static void note_loop(struct image_cache *o, struct object *object, uint8_t loop)
{
	if (!loop || atomic_load_explicit(&object->loop, memory_order_relaxed) == loop)
		return;
	atomic_store_explicit(&object->loop, loop, memory_order_relaxed);
	image_cache_ids_add(&o->loops, object->id);
}

/* Publish @image, which belongs to @object now. */
static void publish(struct image_cache *o, struct object *object, struct image *image)
{
	struct image *stub = (struct image *)(uintptr_t)atomic_load_explicit(&object->image,
									     memory_order_relaxed);

	image->serial = ++o->serial;
	/* Loading counts as a use, else the image would be the first to leave. */
	object_touch(object,
		     MAX(atomic_load_explicit(&object->used, memory_order_relaxed), o->newest));
	count(&o->nr_images, 1);
	count(&o->memory, (long)image_memory(image));
	atomic_store_explicit(&object->memory, image_memory(image), memory_order_relaxed);
	atomic_store_explicit(&object->nr_waiting, 0, memory_order_relaxed);
	explain_image(object, image);
	if (object->identity.kind == OBJECT_FILE)
		note_loop(o, object, image->loop);
	/* Release: the image; pairs with the acquire of readers of object->image. */
	atomic_store_explicit(&object->image, image, memory_order_release);
	/* Release: the image is there when the state is READY. */
	atomic_store_explicit(&object->state, OBJECT_READY, memory_order_release);
	if (stub)
		image_evict_reclaim(stub);
	if (object->identity.kind == OBJECT_FILE)
		image_cache_ids_add(&o->ready, object->id);
}

#define SITES_VISITS 3600000U /* instructions looked at for all sites of an object: a second */
#define SITES_EACH   4500U    /* for one, mostly */
#define SITES_REST   4U /* times as long as a load takes, once more for each: until the next */

/* Note that @image, which @object gets, has only some rows of its code. */
static void note_sites(struct image_cache *o, struct object *object, const struct image *image)
{
	if (image->sites.cut && !object->sites &&
	    (object->sites = calloc(1, sizeof(*object->sites))))
		image_cache_ids_add(&o->large, object->id);
	if (!image->sites.cut || !object->sites)
		return;
	object->sites->visits = image->sites.visits;
	atomic_store_explicit(&object->sites->closed, false, memory_order_relaxed);
}

/* Add the rows of more sites to the image of @object, unless that has left. */
static void finish_sites(struct image_cache *o, struct load *l, struct object *object, int rc,
			 uint64_t now_ns)
{
	struct image *image = (struct image *)(uintptr_t)atomic_load_explicit(&object->image,
									      memory_order_relaxed);
	struct object_sites *sites = object->sites;
	struct image *more = l->image, *last = image, *next;

	sites->loads = false;
	if (rc)
		atomic_store_explicit(&sites->closed, true, memory_order_relaxed);
	if (rc || l->stale || image->away || image->serial != l->more)
		return;
	while ((next = atomic_load_explicit(&last->more, memory_order_relaxed)))
		last = next;
	more->serial = ++o->serial;
	more->thunks = image->thunks;
	sites->due_ns = now_ns + SITES_REST * ++sites->rounds * (now_ns - l->began_ns);
	sites->visits += more->sites.visits;
	count(&o->memory, (long)image_memory(more));
	atomic_fetch_add_explicit(&object->nr_derived, more->nr_derived, memory_order_relaxed);
	atomic_fetch_sub_explicit(&object->nr_bare, more->sites.named, memory_order_relaxed);
	/* Release: the rows; pairs with image_of_site(). */
	atomic_store_explicit(&last->more, more, memory_order_release);
	atomic_store_explicit(&object->memory, image_memory(image), memory_order_relaxed);
	l->image = NULL;
}

static void set_aside(struct image_cache *o, struct object *object, const char *reason,
		      const char *fix, unsigned int tries, uint64_t due_ns)
{
	object_explain(object, reason, fix);
	fail(o, object, OBJECT_ASIDE);
	image_cache_retry_at(o, object->id, 0, tries, due_ns);
}

/*
 * Test whether @object, which failed, leaves: any user can map files that are no programs, by the
 * hundred for each sample, and no sample is in most of them.
 */
static bool failed_leaves(struct image_cache *o, struct object *object)
{
	/* Else it is requested, or loaded. */
	if (!has_failed((unsigned int)atomic_load_explicit(&object->state, memory_order_relaxed)) ||
	    !objects_drop_wanted(o->objects, object))
		return false;
	count(&o->nr_failed, -1);
	return true;
}

/* Test the next CHECKS_MAX objects of @ids, from *@next on, and remove the ones that leave. */
static void sweep(struct image_cache *o, struct image_cache_ids *ids, uint32_t *next,
		  bool (*leaves)(struct image_cache *o, struct object *object))
{
	for (uint32_t n = MIN(ids->nr, CHECKS_MAX); n; n--) {
		uint32_t i = *next < ids->nr ? *next : 0;

		*next = i + 1;
		if (leaves(o, objects_at(o->objects, ids->list[i]))) {
			ids->list[i] = ids->list[--ids->nr];
			*next = i;
		}
	}
}

/* Explain why a load failed, and retry if that may help. */
static void give_up(struct image_cache *o, const struct load *l, struct object *object, int rc,
		    uint64_t now_ns)
{
	bool soon = rc == -EBUSY || rc == -ECANCELED;

	explain(o, object, rc);
	fail(o, object, OBJECT_FAILED);
	if (l->tries < RETRY_TRIES_MAX && (soon || may_come(rc)))
		image_cache_retry_at(o, object->id, l->where.seen.pid, l->tries + 1,
				     soon ? now_ns + (RETRY_SOON_NS << l->tries) : 0);
	else
		image_cache_ids_add(&o->failed, object->id);
}

/* End the pause of all objects on this device. */
static void end_rest(struct image_cache *o, uint32_t maj, uint32_t min)
{
	for (uint32_t i = 0; i < o->nr_retries; i++) {
		const struct object *object = objects_at(o->objects, o->retries[i].id);

		if (o->retries[i].due_ns && object->identity.maj == maj &&
		    object->identity.min == min)
			o->retries[i].due_ns = 1;
	}
	o->retried_ns = 0;
}

/* Publish the result of a load, or its failure. */
static void finish(struct image_cache *o, struct load *l, uint64_t now_ns)
{
	struct object *object = objects_at(o->objects, l->where.object);
	bool cancelled = atomic_load_explicit(&l->job.watch.cancel, memory_order_relaxed);
	/* The device of a debug file that hung is unknown; that of a large file is not slow. */
	bool other = l->stale || (l->slow && !l->slow_device);
	uint32_t maj = other ? 0 : l->where.identity.maj, min = other ? 0 : l->where.identity.min;
	int rc = cancelled ? -ECANCELED : l->rc;

	o->nr_slow -= l->slow;
	if (cancelled)
		backoff_cancelled(&o->devices, maj, min);
	else if (backoff_ended(&o->devices, maj, min, l->slow))
		end_rest(o, maj, min);
	if (!rc && image_memory(l->image) > o->memory_max)
		rc = -ENOSPC;
	/* Its inode number belongs to a newer file by now, which the next process has mapped. */
	if (!rc && !l->stale && !objects_note_generation(o->objects, object, l->generation))
		rc = -ESTALE;
	if (l->stale && !cancelled)
		o->debug_rest_ns = o->debug_until_ns = 0;
	if (l->more)
		finish_sites(o, l, object, rc, now_ns);
	else if (rc == -EAGAIN && !l->stale)
		set_aside(o, object, QUEUED, NULL, l->tries, now_ns + QUEUE_NS);
	else if (rc && !l->stale)
		give_up(o, l, object, rc, now_ns);
	if (!rc && !l->stale && !l->more) {
		if (has_failed((unsigned int)atomic_load_explicit(&object->state,
								  memory_order_relaxed))) {
			count(&o->nr_failed, -1);
			image_cache_ids_add(&o->late, object->id);
		}
		object->load_ns = now_ns - l->began_ns;
		note_sites(o, object, l->image);
		publish(o, object, l->image);
		l->image = NULL;
	}
	l->job.drop(&l->job);
}

/* Finish the loads that ended. True: there was one. */
static bool finish_all(struct image_cache *o, uint64_t now_ns)
{
	bool any = false;

	for (unsigned int i = 0; i < o->nr_loads;) {
		struct load *l = o->loads[i];

		if (!helper_job_done(&l->job)) {
			/* The object of a stale load may have left. */
			if (!l->stale && !l->more)
				atomic_store_explicit(
					&objects_at(o->objects, l->where.object)->permille,
					watch_permille(&l->job.watch), memory_order_relaxed);
			i++;
			continue;
		}
		o->loads[i] = o->loads[--o->nr_loads];
		finish(o, l, now_ns);
		any = true;
	}
	return any;
}

/* A debug file hangs: load the object again without debug files. */
static void without_debug_file(struct image_cache *o, struct load *l, uint64_t now_ns)
{
	o->debug_rest_ns = MIN(MAX(o->debug_rest_ns * 2, BACKOFF_REST_MIN_NS), BACKOFF_REST_MAX_NS);
	o->debug_until_ns = now_ns + o->debug_rest_ns;
	l->stale = true;
	image_cache_retry_at(o, l->where.object, 0, l->tries, now_ns);
	o->retried_ns = 0;
}

/* Test whether the reads of a file take long in sum: their number is that of the file's author. */
static bool is_long(const struct watch *w)
{
	return atomic_load_explicit(&w->waited_ns, memory_order_relaxed) >= WAITED_NS;
}

/* Test whether the device is slow, not only the file large. */
static bool is_device_slow(const struct load *l, uint64_t now_ns)
{
	const struct watch *w = &l->job.watch;
	uint64_t done = atomic_load_explicit(&w->done, memory_order_relaxed);

	return watch_blocked_ns(w, now_ns) >= BLOCKED_NS ||
	       done / (WAITED_NS / 1000000000) < SLOW_SPEED;
}

/* Find loads that hang, so that other objects do not wait for them. */
static void check_slow(struct image_cache *o, uint64_t now_ns)
{
	for (unsigned int i = 0; i < o->nr_loads; i++) {
		struct load *l = o->loads[i];
		struct watch *w = &l->job.watch;
		const struct object_identity *id = &l->where.identity;

		if (l->slow && now_ns - l->began_ns > GIVE_UP_NS)
			atomic_store_explicit(&w->cancel, true, memory_order_relaxed);
		if (l->slow || (watch_blocked_ns(w, now_ns) < BLOCKED_NS && !is_long(w)))
			continue;
		l->slow = true;
		l->slow_device = is_device_slow(l, now_ns);
		o->nr_slow++;
		if (atomic_load_explicit(&w->aside, memory_order_relaxed)) {
			backoff_hang(&o->devices, 0, 0, now_ns);
			without_debug_file(o, l, now_ns);
			continue;
		}
		backoff_hang(&o->devices, l->slow_device ? id->maj : 0,
			     l->slow_device ? id->min : 0, now_ns);
		if (l->more) /* it has an image */
			continue;
		object_explain(objects_at(o->objects, l->where.object),
			       l->slow_device ? NOT_ANSWERING : "large: takes long to read",
			       LOCAL_DISK);
		fail(o, objects_at(o->objects, l->where.object), OBJECT_ASIDE);
	}
}

/* Add the requested objects to the open ones. */
static void collect(struct image_cache *o)
{
	uint32_t id;

	while ((id = objects_take_wanted(o->objects)) != OBJECT_ID_UNKNOWN)
		if (!objects_drop_wanted(o->objects, objects_at(o->objects, id)) &&
		    !image_cache_ids_add(&o->open, id))
			/* Out of memory: for the next request. Relaxed: nothing else changed. */
			atomic_store_explicit(&objects_at(o->objects, id)->state, OBJECT_NEW,
					      memory_order_relaxed);
}

/* Make a load of @object. NULL: no room for it, or out of memory. */
static struct load *make_load(struct image_cache *o, const struct object *object, uint64_t now_ns)
{
	struct load *l = o->nr_loads < IMAGE_CACHE_LOADS_MAX
				 ? load_new(o->objects, object, o->no_proc, o->root)
				 : NULL;

	if (!l)
		return NULL;
	l->no_vdso = o->no_vdso;
	l->no_debug_files = o->debug_until_ns > now_ns;
	l->memory_max = o->memory_max;
	l->began_ns = now_ns;
	return l;
}

/* Give the load to a helper. False: none is free, and it is dropped. */
static bool run_load(struct image_cache *o, struct load *l)
{
	if (helpers_start(o->helpers, &l->job)) {
		l->job.drop(&l->job);
		return false;
	}
	assert(o->nr_loads < IMAGE_CACHE_LOADS_MAX);
	o->loads[o->nr_loads++] = l;
	return true;
}

/*
 * Choose the sites that @l derives and @image, if there is one, has no rows of: the ones with the
 * most frames, in powers of two. Half of the work that is left is for later, when more is known,
 * and the program goes on to other code; the first time, seven eighths. Return how many.
 */
static unsigned int choose_sites(struct load *l, const struct object_sites *sites,
				 const struct image *image)
{
	uint32_t left = SITES_VISITS - (image ? MIN(sites->visits, SITES_VISITS) : 0);
	unsigned int share = image && atomic_load(&image->more) ? 2 : 8, nr = 0;
	unsigned int most = sites ? (left / SITES_EACH + 1) / share : 0;

	l->visits_max = left;
	for (unsigned int k = OBJECT_SITES * 32; nr < most && k--;) {
		unsigned int site = k % OBJECT_SITES;
		uint64_t bit = 1ULL << site % 64;

		if (atomic_load_explicit(&sites->nr[site], memory_order_relaxed) >>
			    k / OBJECT_SITES &&
		    !(l->sites[site / 64] & bit) && !(image && image_of_site(image, site))) {
			l->sites[site / 64] |= bit;
			nr++;
		}
	}
	return nr;
}

/* Start a load for more sites, when some have frames and a helper is free. */
static void start_sites(struct image_cache *o, uint32_t id, uint64_t now_ns)
{
	const struct object *object = objects_at(o->objects, id);
	const struct image *image;
	struct object_sites *sites;
	struct load *l;

	assert(object);
	sites = object->sites;
	image = atomic_load_explicit(&object->image, memory_order_relaxed);
	if (image->away || sites->loads || now_ns < sites->due_ns || !object_has_sites(object))
		return;
	l = make_load(o, object, now_ns);
	if (!l)
		return;
	l->more = image->serial;
	if (choose_sites(l, sites, image)) {
		sites->loads = run_load(o, l);
		return;
	}
	sites->due_ns = now_ns + SITES_REST * object->load_ns;
	if (sites->visits > SITES_VISITS - SITES_EACH)
		atomic_store_explicit(&sites->closed, true, memory_order_relaxed);
	l->job.drop(&l->job);
}

/* Give @object to a helper. False: none is free. */
static bool start(struct image_cache *o, struct object *object, unsigned int tries, uint64_t now_ns)
{
	struct load *l = make_load(o, object, now_ns);

	if (!l)
		return false;
	l->tries = tries;
	choose_sites(l, object->sites, NULL);
	if (!run_load(o, l))
		return false;
	atomic_store_explicit(&object->permille, 0, memory_order_relaxed);
	return true;
}

/*
 * Return the index in @o->open of the requested object that most samples wait for, or the end. Of
 * many, each load looks at the next CHOICE_MAX only.
 */
static uint32_t image_cache_choose(struct image_cache *o)
{
	uint32_t best = o->open.nr, most = 0;

	for (uint32_t n = MIN(o->open.nr, CHOICE_MAX); n; n--) {
		uint32_t i = o->next_open < o->open.nr ? o->next_open : 0;
		struct object *object = objects_at(o->objects, o->open.list[i]);
		uint32_t nr = atomic_load_explicit(&object->nr_waiting, memory_order_relaxed);

		o->next_open = i + 1;
		if (atomic_load_explicit(&object->state, memory_order_relaxed) != OBJECT_WANTED ||
		    (best < o->open.nr && nr <= most))
			continue;
		best = i;
		most = nr;
	}
	return best;
}

static bool has_room(const struct image_cache *o)
{
	return o->nr_loads - o->nr_slow < ACTIVE_MAX && o->nr_loads < IMAGE_CACHE_LOADS_MAX;
}

/*
 * Start the load of a requested object; set it aside if its device does not answer, or drop it if
 * it was mapped for a moment only. False: no helper is free.
 */
static bool take_up(struct image_cache *o, struct object *object, uint64_t now_ns)
{
	uint64_t due_ns;

	if (objects_drop_wanted(o->objects, object))
		return true;
	due_ns = backoff_rest(&o->devices, object->identity.maj, object->identity.min, now_ns);
	if (!due_ns)
		return start(o, object, 0, now_ns);
	set_aside(o, object, NOT_ANSWERING, LOCAL_DISK, 0, due_ns);
	return true;
}

/*
 * Test whether a requested object leaves, as no process maps it any more: any user can request such
 * by the hundred thousand, and each choice among them would look at thousands.
 */
static bool wanted_leaves(struct image_cache *o, struct object *object)
{
	return objects_drop_wanted(o->objects, object);
}

/* Take up requested objects while helpers are free. */
static bool start_wanted(struct image_cache *o, uint64_t now_ns)
{
	bool any = false;
	uint32_t i;

	sweep(o, &o->open, &o->next_gone, wanted_leaves);
	for (unsigned int n = 0; n < TAKE_MAX && has_room(o); n++) {
		i = image_cache_choose(o);
		if (i == o->open.nr)
			break;
		if (!take_up(o, objects_at(o->objects, o->open.list[i]), now_ns))
			break;
		o->open.list[i] = o->open.list[--o->open.nr];
		any = true;
	}
	return any;
}

/*
 * Test whether to retry @r now. *due_ns: the time to try instead, if its device does
 * not answer.
 */
static bool is_due(struct image_cache *o, const struct image_cache_retry *r, uint64_t now_ns,
		   uint64_t *due_ns)
{
	const struct object *object = objects_at(o->objects, r->id);
	struct object_sighting seen;

	*due_ns = 0;
	if (!r->due_ns || now_ns < r->due_ns) {
		if (!r->pid)
			return false;
		objects_sighting(o->objects, object, &seen);
		free(seen.path);
		if (seen.pid == r->pid)
			return false;
	}
	*due_ns = backoff_rest(&o->devices, object->identity.maj, object->identity.min, now_ns);
	return !*due_ns;
}

/* Start the retries that are due, of CHECKS_MAX, and drop the ones that no process maps. */
static void start_retries(struct image_cache *o, uint64_t now_ns)
{
	for (uint32_t n = MIN(o->nr_retries, CHECKS_MAX); n && has_room(o); n--) {
		uint32_t i = o->next_retry < o->nr_retries ? o->next_retry : 0;
		struct image_cache_retry *r = &o->retries[i];
		struct object *object = objects_at(o->objects, r->id);
		uint64_t due_ns;

		o->next_retry = i + 1;
		if (!failed_leaves(o, object)) {
			if (!is_due(o, r, now_ns, &due_ns)) {
				r->due_ns = due_ns ? due_ns : r->due_ns;
				continue;
			}
			if (!start(o, object, r->tries, now_ns))
				return;
		}
		*r = o->retries[--o->nr_retries];
		o->next_retry = i;
	}
	if (!has_room(o))
		o->retried_ns = 0; /* continue as soon as there is one */
}

bool image_cache_work(struct image_cache *o, uint64_t now_ns)
{
	bool any = finish_all(o, now_ns);

	check_slow(o, now_ns);
	image_evict_make_room(o, now_ns);
	image_evict_idle(o, now_ns);
	image_evict_spare(o, now_ns);
	collect(o);
	any |= start_wanted(o, now_ns);
	for (uint32_t i = 0; i < o->large.nr && has_room(o); i++)
		start_sites(o, o->large.list[i], now_ns);
	if (now_ns - o->dropped_ns >= RETRY_INTERVAL_NS) {
		o->dropped_ns = now_ns;
		sweep(o, &o->failed, &o->next_failed, failed_leaves);
	}
	if (now_ns - o->retried_ns >= RETRY_INTERVAL_NS) {
		o->retried_ns = now_ns;
		start_retries(o, now_ns);
	}
	return any;
}

bool image_cache_busy(const struct image_cache *o)
{
	assert(o->nr_slow <= o->nr_loads);
	return o->nr_loads > o->nr_slow;
}

static uint32_t take(struct image_cache_ids *ids)
{
	return ids->nr ? ids->list[--ids->nr] : OBJECT_ID_UNKNOWN;
}

uint32_t image_cache_take_late(struct image_cache *o)
{
	return take(&o->late);
}

uint32_t image_cache_take_loop(struct image_cache *o)
{
	return take(&o->loops);
}
