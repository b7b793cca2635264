/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One object that holds code: its identity, and its image once loaded.
 *
 * An object is known by device, inode and generation (or build-id), never by
 * path. Ids are dense and append-only; a struct dso lives as long as the
 * table. An image is built by a helper of the loader from a file descriptor,
 * published (release), and immutable after that. It may leave again when
 * memory is short: an urcu-qsbr reader keeps what it found until its next
 * quiescent state, and a stub with the load segments alone (image->away) takes
 * its place until the object is wanted again.
 */
#ifndef SYMBOLS_DSO_H
#define SYMBOLS_DSO_H

#include <stdatomic.h>
#include <sys/types.h>

#include "symbols/base.h"
#include "symbols/text.h"

enum dso_kind {
	DSO_UNKNOWN,			/* id 0: addresses outside all maps */
	DSO_KERNEL,			/* id 1: kernel and modules; offset = address */
	DSO_VDSO,			/* id 2: the vdso, one for all processes */
	DSO_FILE,
	DSO_ANON,			/* JIT, heap, stack of one process; offset = address */
};

enum { DSO_ID_UNKNOWN, DSO_ID_KERNEL, DSO_ID_VDSO, DSO_ID_FIRST };

enum dso_state {
	DSO_NEW,
	DSO_WANTED,			/* a sample asked for it */
	DSO_READY,			/* image stands */
	DSO_FAILED,			/* no image; reason in dso->reason */
	DSO_ASIDE,			/* as FAILED, but tried again: it hangs, or there is no room */
};

/* A reason: the file is not what a recording says it was. */
#define DSO_REPLACED "replaced since the recording"

struct dso_identity {
	enum dso_kind kind;
	uint32_t maj, min;
	uint64_t ino, ino_generation;
	uint64_t owner;			/* DSO_ANON: the process incarnation it belongs to */
	uint32_t layer;			/* DSO_ANON: code that took the place of other code (jitcode.h) */
	uint8_t build_id[20];
	uint8_t build_id_size;
};

struct image;

struct dso {
	uint32_t id;
	/* By the sampler threads, read by the loader; relaxed: the order of leaving, no more. */
	atomic_uint used;		/* the unit of time (dso_clock) of its last sample */
	atomic_uint nr_waiting;		/* samples that met it without an image */
	struct dso_identity identity;
	struct safe_text path;		/* as first seen */
	struct safe_text name;		/* what lists show: basename, [kernel], [vdso], [anon] */
	_Atomic(const struct image *) image;	/* NULL until READY, then for ever one, or a stub */
	atomic_int state;		/* enum dso_state */
	/* For people; static texts, may be NULL; the loader's, relaxed. */
	_Atomic(const char *) reason;	/* why there is no image or no names */
	_Atomic(const char *) cure;	/* what would give it names */
	_Atomic(const char *) source;	/* where its names come from */
	atomic_uint nr_symbols;		/* names it has to give */
	atomic_uint permille;		/* so much of it is loaded, while it is WANTED */
	atomic_uint nr_evicted;		/* times that its image left */
	atomic_ulong memory;		/* bytes of its image */
};

/* Coarse time, about a second, for dso->used; never 0. */
static inline uint32_t dso_clock(uint64_t time_ns)
{
	return (uint32_t)(time_ns >> 30) + 1;
}

/* Any thread: a sample was in it. A write a second at most. */
static inline void dso_touch(struct dso *dso, uint32_t clock)
{
	if (atomic_load_explicit(&dso->used, memory_order_relaxed) != clock)
		atomic_store_explicit(&dso->used, clock, memory_order_relaxed);
}

/* Loader: say why @dso has no names, and what would help. */
static inline void dso_explain(struct dso *dso, const char *reason, const char *cure)
{
	atomic_store_explicit(&dso->reason, reason, memory_order_relaxed);
	atomic_store_explicit(&dso->cure, cure, memory_order_relaxed);
}

/* Loader: say where the names of @dso come from, and how many there are. */
static inline void dso_credit(struct dso *dso, const char *source, uint32_t nr_symbols)
{
	atomic_store_explicit(&dso->source, source, memory_order_relaxed);
	atomic_store_explicit(&dso->nr_symbols, nr_symbols, memory_order_relaxed);
}

struct dsos;

int dsos_new(struct dsos **out);
void dsos_free(struct dsos *d);

/*
 * Find or add. Takes a mutex: side-band drain and loader only. @path is
 * foreign bytes; @pid, @start, @end say where it was last seen mapped (how the
 * loader will open it; a newer sighting replaces an older one). Never NULL:
 * with memory out it is the unknown object.
 */
struct dso *dsos_intern(struct dsos *d, const struct dso_identity *identity, const char *path,
			size_t path_size, pid_t pid, uint64_t start, uint64_t end);
/* Any thread, lock-free; NULL for an id never given out. */
struct dso *dsos_at(const struct dsos *d, uint32_t id);
uint32_t dsos_nr(const struct dsos *d);

/* Hot thread: ask for the image. True if this call was the first to ask (then wake the loader). */
static inline bool dso_want(struct dso *dso)
{
	int state = DSO_NEW;

	if (atomic_load_explicit(&dso->state, memory_order_relaxed) != DSO_NEW)
		return false;
	return atomic_compare_exchange_strong_explicit(&dso->state, &state, DSO_WANTED,
						       memory_order_relaxed, memory_order_relaxed);
}

/* Hot thread: a stack ends here for want of its image. Those with many come first. */
static inline void dso_wait(struct dso *dso)
{
	atomic_fetch_add_explicit(&dso->nr_waiting, 1, memory_order_relaxed);
}

/* Where the loader can find the file: a copy of the last sighting (path is malloc'ed, caller frees). */
struct dso_sighting {
	pid_t pid;
	uint64_t start, end;
	char *path;
};
void dsos_sighting(struct dsos *d, const struct dso *dso, struct dso_sighting *out);

#endif
