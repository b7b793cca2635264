// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Eviction of images.
 *
 * Runs on: the loader. Readers keep an image until their next quiescent state.
 */
#include "symbols/object/image_evict.h"

#include <assert.h>
#include <malloc.h>
#include <stdlib.h>

#include "symbols/base/reclaim.h"

/* An image with a sample this recently (units of object_clock) is in use. */
#define IN_USE 3U
/*
 * Shortest and longest pause after an eviction in use, doubled each time: else
 * images would be loaded and evicted without end.
 */
#define REST_MIN_NS 10000000000ULL
#define REST_MAX_NS 300000000000ULL

/* As long as the default --history, in units of object_clock. */
#define IDLE	      559U
#define IDLE_CHECK_NS 60000000000ULL

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

void image_evict_reclaim(struct image *image)
{
	struct leaving *l = malloc(sizeof(*l));

	if (!l)
		return; /* leaked: better than freed under a reader */
	l->image = image;
	reclaim_later(&l->rcu, free_leaving);
}

bool image_evict_fits(const struct image_cache *o, const struct image *image)
{
	return image_memory(image) <= o->memory_max;
}

/* Return the index of the image without a sample for longest, or the end. */
static uint32_t choose(struct image_cache *o)
{
	uint32_t best = o->ready.nr, oldest = 0;

	for (uint32_t i = 0; i < o->ready.nr; i++) {
		const struct object *object = objects_at(o->objects, o->ready.list[i]);
		uint32_t used = atomic_load_explicit(&object->used, memory_order_relaxed);

		o->newest = MAX(o->newest, used);
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

void image_evict_idle(struct image_cache *o, uint64_t now_ns)
{
	if (o->no_proc || now_ns - o->idle_ns < IDLE_CHECK_NS)
		return;
	o->idle_ns = now_ns;
	/*
	 * Tables come and go, of images, counts and processes: their pages stay resident, unless
	 * they are at the end of the heap.
	 */
	malloc_trim(0);
	choose(o); /* for o->newest */
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

void image_evict_make_room(struct image_cache *o, uint64_t now_ns)
{
	uint32_t i;

	while (atomic_load_explicit(&o->memory, memory_order_relaxed) > o->memory_max &&
	       (i = choose(o)) < o->ready.nr) {
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
