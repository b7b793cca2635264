/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Eviction: images take no more memory than image_cache.memory_max, and leave after ten minutes
 * without a sample, so that the memory of ended programs is returned. Images without a sample for
 * longest are freed first; stubs with the load segments replace them.
 *
 * One thread: the loader.
 */
#ifndef SYMBOLS_OBJECT_IMAGE_EVICT_H
#define SYMBOLS_OBJECT_IMAGE_EVICT_H

#include "symbols/object/image_cache_state.h"

/* Test whether @image fits into the memory, perhaps after others have left. */
bool image_evict_fits(const struct image_cache *o, const struct image *image);
/* Evict images until the rest fits. */
void image_evict_make_room(struct image_cache *o, uint64_t now_ns);
/*
 * Once a minute: evict the images without a sample in the ten minutes before the latest one, and
 * return free memory to the system. Not for a recording.
 */
void image_evict_idle(struct image_cache *o, uint64_t now_ns);
/* Load object @id again: its file has more to read than before. */
void image_evict_reload(struct image_cache *o, uint32_t id, uint64_t now_ns);
/* Free @image, which was published, when no reader can hold it. */
void image_evict_reclaim(struct image *image);

#endif
