/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which objects are loaded, when, and for how long they stay.
 *
 * What samples asked for is lent to helpers, the object that most samples wait
 * for first, and published with its image (release) or with the reason why
 * there is none. A read that hangs is set aside with its device (devices.h);
 * its object comes late or is tried again. What failed because a process or
 * file was gone is tried again when it is seen elsewhere. When images take
 * more memory than they may, those leave that had no sample for longest
 * (room.c), and come again when they are asked for.
 *
 * One thread: the loader. The figures: any thread.
 */
#ifndef SYMBOLS_OBJECT_IMAGE_CACHE_H
#define SYMBOLS_OBJECT_IMAGE_CACHE_H

#include "symbols/object/backoff.h"
#include "symbols/object/load.h"

#define IMAGE_CACHE_LOADS_MAX	   20U /* at once, with those that hang */
#define IMAGE_CACHE_MEMORY_DEFAULT (512UL << 20)

/* An object without image that may still get one. */
struct image_cache_retry {
	uint32_t id;
	pid_t pid; /* where it was tried last: another sighting is another try */
	unsigned int tries;
	uint64_t due_ns; /* also tried again then; 0: no */
};

struct image_cache_ids {
	uint32_t *list;
	uint32_t nr, max;
};

struct image_cache {
	struct objects *objects;
	struct helpers *helpers;
	bool no_proc;		      /* a recording: no process is asked, only files here */
	bool no_vdso;		      /* of another kernel than ours */
	const char *root;	      /* or below this folder (NULL: here); borrowed */
	uint32_t seen;		      /* objects looked at */
	struct image_cache_ids open;  /* those without image that may yet be wanted */
	struct image_cache_ids ready; /* those with one that may leave */
	struct image_cache_ids late;  /* came after places in them had made-up names */
	struct load *loads[IMAGE_CACHE_LOADS_MAX];
	unsigned int nr_loads, nr_slow;
	struct image_cache_retry *retries;
	uint32_t nr_retries, max_retries;
	uint64_t retried_ns;
	struct backoff devices;
	uint64_t debug_rest_ns,
		debug_until_ns; /* separate debug files hang: do without until then */
	uint32_t serial;
	size_t memory_max;
	uint32_t newest; /* object->used of the latest use, in the time of the samples */
	atomic_ulong nr_images, nr_failed, memory, nr_evicted; /* written here, relaxed */
};

void image_cache_init(struct image_cache *o, struct objects *objects, struct helpers *helpers);
/* Loads that still run are left to themselves. */
void image_cache_fini(struct image_cache *o);

/* Take up what was loaded, see what hangs, lend out what is wanted. True: something came. */
bool image_cache_work(struct image_cache *o, uint64_t now_ns);
/* Loads are under way that are no slower than they should be. */
bool image_cache_busy(const struct image_cache *o);
/* The id of one that came late: its places can be named anew. OBJECT_ID_UNKNOWN: none. */
uint32_t image_cache_take_late(struct image_cache *o);

/* Try @id again at @due_ns (0: only if it is seen elsewhere than in @pid). */
void image_cache_retry_at(struct image_cache *o, uint32_t id, pid_t pid, unsigned int tries,
			  uint64_t due_ns);

/* Append @id; without memory it is left out. */
bool image_cache_ids_add(struct image_cache_ids *ids, uint32_t id);

#endif
