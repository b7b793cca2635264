/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One object that holds code: its identity, and its image once loaded.
 *
 * An object is identified by device, inode and generation (or build-id), never by
 * path. Ids are dense. A sampled object lives as long as the table; one that never was
 * leaves with its last mapping, and its id is given to another (objects_hold()). A helper of the
 * loader builds the image from a file descriptor; it is published (release), and immutable. It may
 * leave when memory is short: an urcu-qsbr reader keeps the image until its next quiescent state,
 * and a stub with the load segments (image->away) replaces it until the object is requested again.
 */
#ifndef SYMBOLS_OBJECT_OBJECT_H
#define SYMBOLS_OBJECT_OBJECT_H

#include <stdatomic.h>
#include <sys/types.h>

#include "symbols/base/base.h"
#include "symbols/base/text.h"

enum object_kind {
	OBJECT_UNKNOWN, /* id 0: addresses outside all maps */
	OBJECT_KERNEL,	/* id 1: kernel and modules; offset = address */
	OBJECT_VDSO,	/* id 2: the vdso, one for all 64-bit processes */
	OBJECT_FILE,
	OBJECT_ANON,   /* code made at run time, heap, stack of one process; offset = address */
	OBJECT_SCRIPT, /* code of interpreters: all (lang_place()), or one file's */
	OBJECT_WAIT,   /* no code: the kinds of waits (wait_kind.h) */
};

enum { OBJECT_ID_UNKNOWN, OBJECT_ID_KERNEL, OBJECT_ID_VDSO, OBJECT_ID_FIRST };

enum object_state {
	OBJECT_NEW,
	OBJECT_WANTED, /* requested by a sample */
	OBJECT_READY,  /* has an image */
	OBJECT_FAILED, /* no image; reason in object->reason */
	OBJECT_ASIDE,  /* as FAILED, but tried again: the file hangs, or memory is short */
};

/* A reason: the file is not the one of the recording. */
#define OBJECT_REPLACED "replaced since the recording"

struct object_identity {
	enum object_kind kind;
	uint32_t maj, min;
	uint64_t ino, ino_generation;
	uint64_t owner; /* OBJECT_ANON: id of the process incarnation */
	uint32_t layer; /* OBJECT_ANON: number of the code at a reused address (jitcode.h) */
	uint8_t build_id[20];
	uint8_t build_id_size;
};

struct image;
struct codemap;

struct object {
	uint32_t id;
	/*
	 * Written by sampler threads, read by the loader; relaxed: for the order of
	 * eviction only.
	 */
	atomic_uint used;	/* object_clock() of the latest sample */
	atomic_uint nr_waiting; /* samples that waited for the image */
	atomic_uint *wanted;	/* list of requested objects, of the table: the id of the first */
	uint32_t next_wanted;	/* in the list; 0: the last */
	struct object_identity identity;
	struct safe_text path; /* as first seen */
	struct safe_text name; /* shown in lists: basename, [kernel], [vdso], [anon] */
	_Atomic(const struct image *) image; /* NULL until READY, then always an image or a stub */
	/*
	 * OBJECT_ANON: layout of the frames of its code (codemap.h); release by the
	 * loader.
	 */
	_Atomic(const struct codemap *) codemap;
	atomic_int state; /* enum object_state */
	/* Shown to the user; static texts, may be NULL; written by the loader, relaxed. */
	_Atomic(const char *) reason; /* why there is no image or no names */
	_Atomic(const char *) fix;    /* how to get names */
	_Atomic(const char *) source; /* source of the names */
	atomic_uint nr_symbols;	      /* functions with a name */
	atomic_uint permille;	      /* part loaded in thousandths, while WANTED */
	atomic_uint nr_evicted;	      /* number of evictions */
	atomic_ulong memory;	      /* bytes of the image */
	atomic_uint loop; /* image->loop, once it was loaded; written by the loader, relaxed */
	atomic_bool interpreter; /* written by the loader, relaxed: it runs code of a language */
	/* Static texts; written by the loader, relaxed: why functions of that have no names, or
	 * NULL. */
	_Atomic(const char *) language_reason, language_fix;
	atomic_uint language_version; /* as lang_packed_version() */
};

/* Return the time in units of about a second, for object->used; never 0. */
static inline uint32_t object_clock(uint64_t time_ns)
{
	return MAX((uint32_t)(time_ns >> 30), 1U);
}

/* Any thread: record a sample in the object; at most one write a second. */
static inline void object_touch(struct object *object, uint32_t clock)
{
	if (atomic_load_explicit(&object->used, memory_order_relaxed) != clock)
		atomic_store_explicit(&object->used, clock, memory_order_relaxed);
}

/* The reason why an object has no names, by the error of its reader; @fix NULL: none is known. */
struct object_reason {
	int code;
	const char *reason, *fix;
};

/* Loader: set the reason why @object has no names, and the fix. */
static inline void object_explain(struct object *object, const char *reason, const char *fix)
{
	atomic_store_explicit(&object->reason, reason, memory_order_relaxed);
	atomic_store_explicit(&object->fix, fix, memory_order_relaxed);
}

/* Loader: set the reason of @code from a table. Return false if the table has none. */
static inline bool object_explain_code(struct object *object, int code,
				       const struct object_reason *reasons, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		if (reasons[i].code == code) {
			object_explain(object, reasons[i].reason, reasons[i].fix);
			return true;
		}
	}
	return false;
}

/* Loader: set the source of the names of @object, and their number. */
static inline void object_credit(struct object *object, const char *source, uint32_t nr_symbols)
{
	atomic_store_explicit(&object->source, source, memory_order_relaxed);
	atomic_store_explicit(&object->nr_symbols, nr_symbols, memory_order_relaxed);
}

struct objects;

int objects_new(struct objects **out);
void objects_free(struct objects *d);

/*
 * Find or add an object, which lives as long as the table from now on. Takes a mutex: side-band
 * drain and loader only. @path is foreign bytes; @pid, @start, @end are its last mapping (how the
 * loader opens it; a newer sighting replaces an older one). Never NULL: when out of memory, the
 * unknown object.
 */
struct object *objects_intern(struct objects *d, const struct object_identity *identity,
			      const char *path, size_t path_size, pid_t pid, uint64_t start,
			      uint64_t end);
/*
 * As objects_intern(), for a mapping: with a reference. Any user can map new files as fast as it
 * likes; an object that no sample was in, and that has no reference any more, leaves.
 */
struct object *objects_hold(struct objects *d, const struct object_identity *identity,
			    const char *path, size_t path_size, pid_t pid, uint64_t start,
			    uint64_t end);
/* Take another reference; the caller has one. Any thread. */
void object_get(struct object *object);
/* Return whether a mapping has @object, or had lately. Any thread. */
bool object_is_mapped(const struct object *object);
/*
 * Drop a reference; @object may be NULL. Any thread. The last one of a mapping that readers may
 * have seen: after a grace period.
 */
void object_put(struct object *object);
/*
 * List all objects, and those that are added from now on. objects_next_new() returns them in order,
 * each with a reference; NULL: no more for now.
 */
void objects_list_new(struct objects *d);
struct object *objects_next_new(struct objects *d);
/* Return how many objects were ever added. Any thread. */
uint64_t objects_nr_added(const struct objects *d);

/* Return object @id; NULL: not given out. Any thread, lock-free. */
struct object *objects_at(const struct objects *d, uint32_t id);
/* Return the number of ids given out; those of objects that left are among them. */
uint32_t objects_nr(const struct objects *d);

/* Any thread, lock-free: request the image. True for the first request: wake the loader. */
static inline bool object_want(struct object *object)
{
	int state = OBJECT_NEW;
	unsigned int first;

	if (atomic_load_explicit(&object->state, memory_order_relaxed) != OBJECT_NEW ||
	    !atomic_compare_exchange_strong_explicit(&object->state, &state, OBJECT_WANTED,
						     memory_order_relaxed, memory_order_relaxed))
		return false;
	first = atomic_load_explicit(object->wanted, memory_order_relaxed);
	do
		object->next_wanted = first;
	/* Release: the link; pairs with objects_take_wanted(). */
	while (!atomic_compare_exchange_weak_explicit(object->wanted, &first, object->id,
						      memory_order_release, memory_order_relaxed));
	return true;
}

/*
 * Loader: take a requested object out of the list; OBJECT_ID_UNKNOWN: none. So objects that no
 * sample requests cost nothing, however many there are.
 */
uint32_t objects_take_wanted(struct objects *d);
/*
 * Loader: drop a requested object that was taken out of the list, and is not being read, if it has
 * no image, no process maps it any more and no sample was in it. Return whether it has left.
 */
bool objects_drop_wanted(struct objects *d, struct object *object);

/*
 * Hot thread: count a stack that ends here because the image is not loaded. Objects
 * with many are loaded first.
 */
static inline void object_wait(struct object *object)
{
	atomic_fetch_add_explicit(&object->nr_waiting, 1, memory_order_relaxed);
}

/* Return a copy of the last sighting, for the loader to find the file (the caller frees path). */
struct object_sighting {
	pid_t pid;
	uint64_t start, end;
	uint64_t generation; /* of the inode; 0: unknown */
	char *path;
};
void objects_sighting(struct objects *d, const struct object *object, struct object_sighting *out);
/*
 * Note the generation of the file that was read for @object; 0: unknown. A later file with the same
 * inode is another object then. Return false if @object is of another generation already.
 */
bool objects_note_generation(struct objects *d, struct object *object, uint64_t generation);

#endif
