/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One object that holds code: its identity, and its image once loaded.
 *
 * An object is known by device, inode and generation (or build-id), never by
 * path. Ids are dense and append-only; a struct object lives as long as the
 * table. An image is built by a helper of the loader from a file descriptor,
 * published (release), and immutable after that. It may leave again when
 * memory is short: an urcu-qsbr reader keeps what it found until its next
 * quiescent state, and a stub with the load segments alone (image->away) takes
 * its place until the object is wanted again.
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
	OBJECT_VDSO,	/* id 2: the vdso, one for all processes */
	OBJECT_FILE,
	OBJECT_ANON, /* JIT, heap, stack of one process; offset = address */
};

enum { OBJECT_ID_UNKNOWN, OBJECT_ID_KERNEL, OBJECT_ID_VDSO, OBJECT_ID_FIRST };

enum object_state {
	OBJECT_NEW,
	OBJECT_WANTED, /* a sample asked for it */
	OBJECT_READY,  /* image stands */
	OBJECT_FAILED, /* no image; reason in object->reason */
	OBJECT_ASIDE,  /* as FAILED, but tried again: it hangs, or there is no room */
};

/* A reason: the file is not what a recording says it was. */
#define OBJECT_REPLACED "replaced since the recording"

struct object_identity {
	enum object_kind kind;
	uint32_t maj, min;
	uint64_t ino, ino_generation;
	uint64_t owner; /* OBJECT_ANON: the process incarnation it belongs to */
	uint32_t layer; /* OBJECT_ANON: code that took the place of other code (jitcode.h) */
	uint8_t build_id[20];
	uint8_t build_id_size;
};

struct image;
struct codemap;

struct object {
	uint32_t id;
	/* By the sampler threads, read by the loader; relaxed: the order of leaving, no more. */
	atomic_uint used;	/* the unit of time (object_clock) of its last sample */
	atomic_uint nr_waiting; /* samples that met it without an image */
	struct object_identity identity;
	struct safe_text path; /* as first seen */
	struct safe_text name; /* what lists show: basename, [kernel], [vdso], [anon] */
	_Atomic(const struct image *) image; /* NULL until READY, then for ever one, or a stub */
	/* OBJECT_ANON: layout of the frames of its code (codemap.h); release by the loader. */
	_Atomic(const struct codemap *) codemap;
	atomic_int state; /* enum object_state */
	/* For people; static texts, may be NULL; the loader's, relaxed. */
	_Atomic(const char *) reason; /* why there is no image or no names */
	_Atomic(const char *) fix;    /* what would give it names */
	_Atomic(const char *) source; /* where its names come from */
	atomic_uint nr_symbols;	      /* names it has to give */
	atomic_uint permille;	      /* so much of it is loaded, while it is WANTED */
	atomic_uint nr_evicted;	      /* times that its image left */
	atomic_ulong memory;	      /* bytes of its image */
};

/* Coarse time, about a second, for object->used; never 0. */
static inline uint32_t object_clock(uint64_t time_ns)
{
	return (uint32_t)(time_ns >> 30) + 1;
}

/* Any thread: a sample was in it. A write a second at most. */
static inline void object_touch(struct object *object, uint32_t clock)
{
	if (atomic_load_explicit(&object->used, memory_order_relaxed) != clock)
		atomic_store_explicit(&object->used, clock, memory_order_relaxed);
}

/* Loader: say why @object has no names, and what would help. */
static inline void object_explain(struct object *object, const char *reason, const char *fix)
{
	atomic_store_explicit(&object->reason, reason, memory_order_relaxed);
	atomic_store_explicit(&object->fix, fix, memory_order_relaxed);
}

/* Loader: say where the names of @object come from, and how many there are. */
static inline void object_credit(struct object *object, const char *source, uint32_t nr_symbols)
{
	atomic_store_explicit(&object->source, source, memory_order_relaxed);
	atomic_store_explicit(&object->nr_symbols, nr_symbols, memory_order_relaxed);
}

struct objects;

int objects_new(struct objects **out);
void objects_free(struct objects *d);

/*
 * Find or add. Takes a mutex: side-band drain and loader only. @path is
 * foreign bytes; @pid, @start, @end say where it was last seen mapped (how the
 * loader will open it; a newer sighting replaces an older one). Never NULL:
 * with memory out it is the unknown object.
 */
struct object *objects_intern(struct objects *d, const struct object_identity *identity,
			      const char *path, size_t path_size, pid_t pid, uint64_t start,
			      uint64_t end);
/* Any thread, lock-free; NULL for an id never given out. */
struct object *objects_at(const struct objects *d, uint32_t id);
uint32_t objects_nr(const struct objects *d);

/* Hot thread: ask for the image. True if this call was the first to ask (then wake the loader). */
static inline bool object_want(struct object *object)
{
	int state = OBJECT_NEW;

	if (atomic_load_explicit(&object->state, memory_order_relaxed) != OBJECT_NEW)
		return false;
	return atomic_compare_exchange_strong_explicit(&object->state, &state, OBJECT_WANTED,
						       memory_order_relaxed, memory_order_relaxed);
}

/* Hot thread: a stack ends here for want of its image. Those with many come first. */
static inline void object_wait(struct object *object)
{
	atomic_fetch_add_explicit(&object->nr_waiting, 1, memory_order_relaxed);
}

/* Where the loader can find the file: a copy of the last sighting (path is malloc'ed, caller
 * frees). */
struct object_sighting {
	pid_t pid;
	uint64_t start, end;
	char *path;
};
void objects_sighting(struct objects *d, const struct object *object, struct object_sighting *out);

#endif
