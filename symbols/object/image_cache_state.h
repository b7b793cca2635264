/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by image_cache.c (requests and loads) and image_evict.c (eviction): which
 * objects have an image, may get one, or are retried.
 *
 * One thread: the loader. The figures: any thread.
 */
#ifndef SYMBOLS_OBJECT_IMAGE_CACHE_STATE_H
#define SYMBOLS_OBJECT_IMAGE_CACHE_STATE_H

#include "symbols/object/backoff.h"
#include "symbols/object/load.h"

#define IMAGE_CACHE_LOADS_MAX 20U /* at the same time, including hanging ones */

/* An object without an image that may still get one. */
struct image_cache_retry {
	uint32_t id;
	pid_t pid; /* the process tried last: another one is another try */
	unsigned int tries;
	uint64_t due_ns; /* time of another try; 0: none */
};

struct image_cache_ids {
	uint32_t *list;
	uint32_t nr, max;
};

struct image_cache {
	struct objects *objects;
	struct helpers *helpers;
	bool no_proc;		       /* a recording: files here only, no process */
	bool no_vdso;		       /* a recording of another kernel */
	const char *root;	       /* files are below this directory (NULL: here); borrowed */
	struct image_cache_ids open;   /* requested, not started */
	uint32_t next_open, next_gone; /* indices in it of the next to load, and to drop */
	struct image_cache_ids ready;  /* with an image that may leave */
	struct image_cache_ids late;   /* loaded after places in them got names by address */
	struct image_cache_ids loops;  /* that turned out to be interpreters */
	struct image_cache_ids failed; /* not retried */
	uint64_t dropped_ns;	       /* time of the last look at it */
	uint32_t next_failed;	       /* index in it of the next to look at */
	struct load *loads[IMAGE_CACHE_LOADS_MAX];
	unsigned int nr_loads, nr_slow;
	struct image_cache_retry *retries;
	uint32_t nr_retries, max_retries, next_retry;
	uint64_t retried_ns;
	struct backoff devices;
	uint64_t debug_rest_ns, debug_until_ns; /* separate debug files hang: not read until then */
	uint32_t serial;
	size_t memory_max;
	uint32_t newest;  /* object->used of the latest use, in the time of samples */
	uint64_t idle_ns; /* time of the last image_evict_idle() */
	atomic_ulong nr_images, nr_failed, memory, nr_evicted; /* written by the loader, relaxed */
};

/* Retry @id at @due_ns (0: only when seen in another process than @pid). */
void image_cache_retry_at(struct image_cache *o, uint32_t id, pid_t pid, unsigned int tries,
			  uint64_t due_ns);

/* Append @id; false when out of memory. */
bool image_cache_ids_add(struct image_cache_ids *ids, uint32_t id);

#endif
