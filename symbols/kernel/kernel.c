// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sorted, disjoint ranges of kernel code made at run time.
 *
 * Runs on: the side-band drain; the loader.
 */
#include "symbols/kernel/ksyms.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/array.h"
#include "symbols/base/search.h"

struct entry {
	uint64_t start;
	uint32_t size;
	uint8_t type;
	bool gone;
	char *name;
};

struct ksyms {
	pthread_mutex_t lock;
	struct entry *entries; /* sorted by start; disjoint */
	uint32_t nr, max;
	uint64_t news_start, news_end; /* range that changed; empty: none */
};

int ksyms_new(struct ksyms **out)
{
	struct ksyms *k = calloc(1, sizeof(*k));

	if (!k)
		return -ENOMEM;
	mutex_init_urgent(&k->lock);
	*out = k;
	return 0;
}

void ksyms_free(struct ksyms *k)
{
	if (!k)
		return;
	for (uint32_t i = 0; i < k->nr; i++)
		free(k->entries[i].name);
	free(k->entries);
	pthread_mutex_destroy(&k->lock);
	free(k);
}

/* Return the index of the first entry that ends after @addr. */
static uint32_t index_of(const struct ksyms *k, uint64_t addr)
{
	return search_split(k->nr, i, k->entries[i].start + k->entries[i].size <= addr);
}

/* Remove all entries that overlap [start, end); return the index for a new one. */
static uint32_t make_free(struct ksyms *k, uint64_t start, uint64_t end)
{
	uint32_t first = index_of(k, start), last = first;

	while (last < k->nr && k->entries[last].start < end)
		free(k->entries[last++].name);
	memmove(&k->entries[first], &k->entries[last], (k->nr - last) * sizeof(*k->entries));
	k->nr -= last - first;
	return first;
}

static bool has_room(struct ksyms *k)
{
	return k->nr < KSYMS_MAX && array_reserve(&k->entries, &k->max, k->nr + 1ull);
}

static void add_news(struct ksyms *k, uint64_t start, uint64_t end)
{
	bool none = k->news_start >= k->news_end;

	k->news_start = none ? start : MIN(k->news_start, start);
	k->news_end = none ? end : MAX(k->news_end, end);
}

void ksyms_add(struct ksyms *k, uint64_t start, uint32_t size, enum ksyms_type type,
	       const char *name, size_t name_size)
{
	struct entry e = { .start = start, .size = size, .type = (uint8_t)type };
	uint32_t at;

	name_size = strnlen(name, MIN(name_size, (size_t)KSYMS_NAME_MAX - 1));
	if (!size || size > KSYMS_SIZE_MAX || start > UINT64_MAX - size || !name_size)
		return;
	e.name = strndup(name, name_size);
	if (!e.name)
		return;
	pthread_mutex_lock(&k->lock);
	if (has_room(k)) {
		at = make_free(k, start, start + size);
		memmove(&k->entries[at + 1], &k->entries[at], (k->nr - at) * sizeof(*k->entries));
		k->entries[at] = e;
		k->nr++;
		assert(!at || e.start - k->entries[at - 1].start >= k->entries[at - 1].size);
		assert(at + 1 == k->nr || k->entries[at + 1].start >= start + size);
		add_news(k, start, start + size);
		e.name = NULL;
	}
	pthread_mutex_unlock(&k->lock);
	free(e.name);
}

void ksyms_remove(struct ksyms *k, uint64_t start, uint32_t size)
{
	uint32_t at;

	pthread_mutex_lock(&k->lock);
	at = index_of(k, start);
	if (at < k->nr && k->entries[at].start == start && k->entries[at].size == size)
		k->entries[at].gone = true;
	pthread_mutex_unlock(&k->lock);
}

bool ksyms_find(struct ksyms *k, uint64_t addr, struct ksyms_symbol *out)
{
	const struct entry *e = NULL;
	uint32_t at;

	pthread_mutex_lock(&k->lock);
	at = index_of(k, addr);
	if (at < k->nr && k->entries[at].start <= addr)
		e = &k->entries[at];
	if (e) {
		*out = (struct ksyms_symbol){
			.start = e->start,
			.size = e->size,
			.type = (enum ksyms_type)e->type,
			.gone = e->gone,
			.name_size = strlen(e->name),
		};
		memcpy(out->name, e->name, out->name_size);
	}
	pthread_mutex_unlock(&k->lock);
	return e;
}

bool ksyms_take_news(struct ksyms *k, uint64_t *start, uint64_t *end)
{
	pthread_mutex_lock(&k->lock);
	*start = k->news_start;
	*end = k->news_end;
	k->news_start = k->news_end = 0;
	pthread_mutex_unlock(&k->lock);
	return *start < *end;
}

uint32_t ksyms_nr(struct ksyms *k)
{
	uint32_t nr;

	pthread_mutex_lock(&k->lock);
	nr = k->nr;
	pthread_mutex_unlock(&k->lock);
	return nr;
}
