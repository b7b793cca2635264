// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Records one behind the other, oldest first. Runs on: the sampler thread.
 */
#include "sampler/pipeline/unread.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"

#define UNREAD_BYTES (512U << 10) /* not touched, and so not resident, without such samples */
/* A helper reads code within some milliseconds; on a busy machine it waits for a CPU. */
#define UNREAD_NS 150000000ULL

struct unread {
	uint32_t used;
	_Alignas(8) uint8_t bytes[UNREAD_BYTES];
};

/* In front of each record. */
struct unread_head {
	uint64_t since_ns;
};

struct unread *unread_new(void)
{
	struct unread *h =
		aligned_alloc(CACHELINE, sizeof(*h) + CACHELINE - sizeof(*h) % CACHELINE);

	if (h)
		h->used = 0;
	return h;
}

void unread_free(struct unread *h)
{
	free(h);
}

static uint32_t size_of(const struct perf_event_header *record)
{
	return (uint32_t)(sizeof(struct unread_head) + (record->size + 7U) / 8 * 8);
}

bool unread_put(struct unread *h, const struct perf_event_header *record, uint64_t now_ns)
{
	const struct unread_head head = { .since_ns = now_ns };
	uint8_t *to = h->bytes + h->used;

	if (size_of(record) > sizeof(h->bytes) - h->used)
		return false;
	memcpy(to, &head, sizeof(head));
	memcpy(to + sizeof(head), record, record->size);
	h->used += size_of(record);
	return true;
}

bool unread_any(const struct unread *h)
{
	return h->used;
}

void unread_again(struct unread *h, uint64_t now_ns, bool last, unread_fn handle, void *ctx)
{
	uint32_t kept = 0, size;

	for (uint32_t at = 0; at < h->used; at += size) {
		const struct unread_head *head = (const void *)(h->bytes + at);
		const struct perf_event_header *record = (const void *)(head + 1);
		bool late = last || now_ns - head->since_ns > UNREAD_NS;

		size = size_of(record);
		if (handle(ctx, record, late) || late)
			continue;
		memmove(h->bytes + kept, h->bytes + at, size);
		kept += size;
	}
	h->used = kept;
}
