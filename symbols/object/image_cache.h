/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Load the images of requested objects, and keep them in memory up to a limit.
 *
 * Objects that samples requested are given to helpers, the object that most
 * samples wait for first, and published with an image (release) or with the
 * reason why there is none. A read that hangs is set aside with its device
 * (backoff.h); its object is late or retried. A failure because the process or
 * the file is gone is retried when the object is seen elsewhere. When images take
 * too much memory, the ones longest without a sample are evicted (image_evict.h).
 *
 * One thread: the loader. The figures: any thread.
 */
#ifndef SYMBOLS_OBJECT_IMAGE_CACHE_H
#define SYMBOLS_OBJECT_IMAGE_CACHE_H

#include "symbols/object/image_cache_state.h"

#define IMAGE_CACHE_MEMORY_DEFAULT (512UL << 20)

void image_cache_init(struct image_cache *o, struct objects *objects, struct helpers *helpers);
/* Loads that still run are abandoned. */
void image_cache_fini(struct image_cache *o);

/* Finish loads, find hanging ones, start requested ones. True: one has finished. */
bool image_cache_work(struct image_cache *o, uint64_t now_ns);
/* Test for loads in progress that are not late. */
bool image_cache_busy(const struct image_cache *o);
/*
 * Return an object that was loaded late: its places can be named again. OBJECT_ID_UNKNOWN: none.
 */
uint32_t image_cache_take_late(struct image_cache *o);
/* Return an object that is an interpreter, as its image showed. OBJECT_ID_UNKNOWN: none. */
uint32_t image_cache_take_loop(struct image_cache *o);

#endif
