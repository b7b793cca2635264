// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Address spaces as sorted leaves: references, and the look-up.
 *
 * Reference counts belong to the writer; readers need none, since memory is freed
 * after a grace period.
 *
 * Runs on: the writer, under the lock of the maps; space_find() anywhere.
 */
#include "symbols/process/space.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/search.h"
#include "symbols/process/space_private.h"

#define LEAF_MIN	8u
#define WANT_LEAVES_MAX 8u

static void free_leaf(struct reclaim *head)
{
	struct leaf *leaf = (struct leaf *)((char *)head - offsetof(struct leaf, rcu));

	reclaim_grace_over();
	for (uint32_t i = 0; i < leaf->nr; i++)
		object_put(leaf->m[i].object);
	free(leaf);
}

static void free_space(struct reclaim *head)
{
	struct space *s = (struct space *)((char *)head - offsetof(struct space, rcu));

	reclaim_grace_over();
	for (uint32_t i = 0; i < s->nr_old; i++)
		object_put(s->old[i].m.object);
	free(s);
}

void space_leaf_put(struct leaf *leaf)
{
	assert(leaf->refs);
	if (--leaf->refs)
		return;
	if (leaf->frozen)
		reclaim_later(&leaf->rcu, free_leaf);
	else
		free(leaf);
}

struct leaf *space_leaf_new(const struct leaf *from, uint32_t nr)
{
	uint32_t room = LEAF_MIN;
	struct leaf *leaf;

	while (room < nr)
		room *= 2;
	leaf = malloc(sizeof(*leaf) + room * sizeof(leaf->m[0]));
	if (!leaf)
		return NULL;
	*leaf = (struct leaf){ .refs = 1, .room = room };
	if (from) {
		leaf->nr = from->nr;
		memcpy(leaf->m, from->m, from->nr * sizeof(leaf->m[0]));
	}
	return leaf;
}

struct space *space_get(struct space *s)
{
	if (s)
		s->refs++;
	return s;
}

void space_put(struct space *s)
{
	assert(!s || s->refs);
	if (!s || --s->refs)
		return;
	for (uint32_t i = 0; i < s->nr_leaves; i++)
		space_leaf_put(s->leaves[i]);
	atomic_fetch_sub_explicit(&s->stats->nr_spaces, 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&s->stats->nr_mappings, s->nr_mappings, memory_order_relaxed);
	reclaim_later(&s->rcu, free_space);
}

uint32_t space_leaf_search(const struct leaf *leaf, uint64_t addr)
{
	return search_split(leaf->nr, i, leaf->m[i].end <= addr);
}

static const struct mapping *find_live(const struct space *s, uint64_t addr)
{
	uint32_t low = search_split(s->nr_leaves, i, s->ends[i] <= addr);
	const struct mapping *m;

	if (low == s->nr_leaves)
		return NULL;
	assert(s->ends[low] == s->leaves[low]->m[s->leaves[low]->nr - 1].end);
	m = &s->leaves[low]->m[space_leaf_search(s->leaves[low], addr)];
	return addr >= m->start ? m : NULL;
}

/* Find the mapping replaced after @time_ns. */
static const struct mapping *find_ended(const struct space *s, uint64_t addr, uint64_t time_ns)
{
	for (uint32_t i = s->nr_old; i--;) {
		const struct ended *old = &s->old[i];

		if (addr >= old->m.start && addr < old->m.end && old->m.birth_ns <= time_ns &&
		    time_ns < old->death_ns)
			return &old->m;
	}
	return NULL;
}

const struct mapping *space_find(const struct space *s, uint64_t addr, uint64_t time_ns)
{
	const struct mapping *m = s ? find_live(s, addr) : NULL;

	if (m && m->birth_ns > time_ns)
		m = find_ended(s, addr, time_ns);
	reclaim_reader_done();
	return m;
}

uint64_t space_serial(const struct space *s)
{
	return s->serial;
}

void space_read(const struct space *s)
{
	reclaim_reader_done();
}

bool space_want(const struct space *s)
{
	bool asked = false;

	/*
	 * Called with a sample in hand: objects after the first leaves are requested
	 * by samples in them.
	 */
	for (uint32_t i = 0; s && i < MIN(s->nr_leaves, WANT_LEAVES_MAX); i++)
		for (uint32_t k = 0; k < s->leaves[i]->nr; k++)
			asked |= object_want(s->leaves[i]->m[k].object);
	reclaim_reader_done();
	return asked;
}

uint32_t space_nr_mappings(const struct space *s)
{
	return s ? s->nr_mappings : 0;
}

struct space *space_leaf_new_space(uint32_t nr_leaves, uint32_t nr_old)
{
	size_t size = sizeof(struct space) +
		      nr_leaves * (sizeof(struct leaf *) + sizeof(uint64_t)) +
		      nr_old * sizeof(struct ended);
	struct space *s = malloc(size);

	if (!s)
		return NULL;
	*s = (struct space){ .refs = 1, .nr_leaves = nr_leaves, .nr_old = nr_old };
	s->old = (struct ended *)(s + 1);
	s->ends = (uint64_t *)(s->old + nr_old);
	s->leaves = (struct leaf **)(s->ends + nr_leaves);
	return s;
}
