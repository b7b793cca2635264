// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Address spaces: references, and the look-up.
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

#include "symbols/process/space_private.h"
#include "symbols/process/space_tree.h"

#define WANT_MAX 512u

static void free_space(struct reclaim *head)
{
	struct space *s = (struct space *)((char *)head - offsetof(struct space, rcu));

	reclaim_grace_over();
	for (uint32_t i = 0; i < s->nr_old; i++)
		object_put(s->old[i].m.object);
	free(s);
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
	space_tree_put(s->root, &s->stats->bytes);
	atomic_fetch_sub_explicit(&s->stats->bytes, space_size(s->nr_old), memory_order_relaxed);
	atomic_fetch_sub_explicit(&s->stats->nr_spaces, 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&s->stats->nr_mappings, s->nr_mappings, memory_order_relaxed);
	reclaim_later(&s->rcu, free_space);
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
	const struct mapping *m = s ? space_tree_find(s->root, addr) : NULL;

	if (m && addr < m->start)
		m = NULL;
	if (m && m->birth_ns > time_ns)
		m = find_ended(s, addr, time_ns);
	reclaim_reader_done();
	return m;
}

bool space_has_ended(const struct space *s, const struct mapping *m)
{
	return (uintptr_t)m - (uintptr_t)s->old < s->nr_old * sizeof(s->old[0]);
}

uint64_t space_serial(const struct space *s)
{
	return s->serial;
}

void space_read(const struct space *s)
{
	reclaim_reader_done();
}

/* Request the images of at most *@left objects below @node. */
static bool want_below(const struct space_node *node, uint32_t *left)
{
	bool asked = false;

	for (uint32_t i = 0; i < node->nr && *left; i++) {
		if (node->level) {
			asked |= want_below(space_node_children(node)[i].node, left);
			continue;
		}
		asked |= object_want(space_node_mappings(node)[i].object);
		--*left;
	}
	return asked;
}

bool space_want(const struct space *s)
{
	/*
	 * Called with a sample in hand: objects after the first mappings are requested
	 * by samples in them.
	 */
	uint32_t left = WANT_MAX;
	bool asked = s && s->root && want_below(s->root, &left);

	reclaim_reader_done();
	return asked;
}

static const struct mapping *find_below(const struct space_node *node, const struct object *object)
{
	const struct mapping *found = NULL;

	for (uint32_t i = 0; i < node->nr && !found; i++) {
		const struct mapping *m = &space_node_mappings(node)[i];

		if (node->level)
			found = find_below(space_node_children(node)[i].node, object);
		else if (m->object == object && m->exec)
			found = m;
	}
	return found;
}

const struct mapping *space_find_object(const struct space *s, const struct object *object)
{
	return s && s->root ? find_below(s->root, object) : NULL;
}

uint32_t space_nr_mappings(const struct space *s)
{
	return s ? s->nr_mappings : 0;
}

bool space_has_old(const struct space *s)
{
	return s->nr_old;
}
