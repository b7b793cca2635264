// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The table of the code of one JVM. Runs on: a helper; a worker; a replay.
 */
#include "symbols/jit/hotspot_blobs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/search.h"

#define HEAP_HEAD 16U /* bytes that the allocator adds to a name */

void hotspot_blobs_free(struct hotspot_blob *blobs, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		free(blobs[i].name);
	free(blobs);
}

void hotspot_close(struct hotspot *h)
{
	hotspot_blobs_free(h->blobs, h->nr_blobs);
	memset(h, 0, sizeof(*h));
}

void hotspot_forget_code(struct hotspot *h)
{
	hotspot_blobs_free(h->blobs, h->nr_blobs);
	h->blobs = NULL;
	h->nr_blobs = h->nr_new = h->nr_retired = 0;
	h->memory = 0;
}

size_t hotspot_blob_memory(const struct hotspot_blob *b)
{
	return sizeof(*b) + (b->name ? b->name_size + 1 + HEAP_HEAD : 0);
}

struct hotspot_blob *hotspot_blobs_known(const struct hotspot *h, uint64_t start)
{
	uint32_t low = search_split(h->nr_blobs, i, h->blobs[i].start < start);

	return low < h->nr_blobs && h->blobs[low].start == start ? &h->blobs[low] : NULL;
}

const struct hotspot_blob *hotspot_blobs_at(const struct hotspot *h, uint64_t pc)
{
	uint32_t after = search_split(h->nr_blobs, i, h->blobs[i].start <= pc);

	return after && pc < h->blobs[after - 1].end ? &h->blobs[after - 1] : NULL;
}

bool hotspot_blobs_same(const struct hotspot_blob *a, const struct hotspot_blob *b)
{
	return a->end == b->end && a->blob == b->blob && a->method == b->method &&
	       a->compile_id == b->compile_id && a->kind == b->kind;
}

bool hotspot_blob_is_valid(const struct hotspot_blob *b)
{
	return b->start > b->blob && b->end > b->start && b->end - b->start <= HOTSPOT_CODE_MAX &&
	       b->frame_words < HOTSPOT_FRAME_WORDS && b->kind <= HOTSPOT_INTERPRETER;
}

void hotspot_blobs_count(struct hotspot *h, uint32_t nr_new)
{
	h->nr_new = nr_new;
	h->nr_retired = 0;
	h->memory = 0;
	for (uint32_t i = 0; i < h->nr_blobs; i++) {
		h->nr_retired += h->blobs[i].retired;
		h->memory += hotspot_blob_memory(&h->blobs[i]);
	}
}

int hotspot_blobs_merge(struct hotspot *h, const struct hotspot_blob *found, uint32_t nr_found)
{
	uint32_t nr = 0, next = 0;
	struct hotspot_blob *blobs = calloc((size_t)h->nr_blobs + nr_found + 1, sizeof(*blobs));

	if (!blobs)
		return -ENOMEM;
	for (uint32_t i = 0; i < h->nr_blobs; i++) {
		struct hotspot_blob *b = &h->blobs[i];

		while (next < nr_found && found[next].end <= b->start)
			blobs[nr++] = found[next++];
		b->fresh = false;
		if (next < nr_found && found[next].start < b->end)
			free(b->name);
		else
			blobs[nr++] = *b;
	}
	while (next < nr_found)
		blobs[nr++] = found[next++];
	free(h->blobs);
	h->blobs = blobs;
	h->nr_blobs = nr;
	return 0;
}

/* Take the name of the same code in @h; returns whether @b is new. */
static bool take_name(struct hotspot *h, struct hotspot_blob *b)
{
	struct hotspot_blob *known = hotspot_blobs_known(h, b->start);

	if (!known || !known->name || !hotspot_blobs_same(known, b))
		return true;
	free(b->name);
	b->name = known->name;
	b->name_size = known->name_size;
	known->name = NULL;
	return false;
}

int hotspot_take(struct hotspot *h, struct hotspot_blob *blobs, uint32_t nr, bool all)
{
	size_t memory = all ? 0 : h->memory;
	uint32_t nr_new = 0;
	int rc = 0;

	for (uint32_t i = 0; i < nr; i++) {
		blobs[i].fresh = take_name(h, &blobs[i]);
		nr_new += blobs[i].fresh;
		memory += all || blobs[i].fresh ? hotspot_blob_memory(&blobs[i]) : 0;
	}
	if (memory > HOTSPOT_MEMORY_MAX || nr + (all ? 0 : h->nr_blobs) > HOTSPOT_BLOBS_MAX)
		rc = -E2BIG;
	if (!rc && !all)
		rc = hotspot_blobs_merge(h, blobs, nr);
	if (rc) {
		hotspot_blobs_free(blobs, nr);
		return rc;
	}
	if (all) {
		hotspot_blobs_free(h->blobs, h->nr_blobs);
		h->blobs = blobs;
		h->nr_blobs = nr;
	} else {
		free(blobs);
	}
	hotspot_blobs_count(h, nr_new);
	return 0;
}
