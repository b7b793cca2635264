// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A draft: the next version of an address space.
 *
 * Begins with the leaves of the published space and copies changed ones. Of two mappings that
 * overlap, the later birth wins, not the order of arrival: the rings of several CPUs are not
 * ordered among each other.
 *
 * Runs on: the writer, under the lock of the maps.
 */
#include "symbols/process/space.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/array.h"
#include "symbols/base/search.h"
#include "symbols/process/space_private.h"

#define OLD_MAX 512u

struct space_edit {
	struct space_stats *stats;
	struct leaf **leaves;
	uint32_t nr_leaves, room_leaves;
	uint32_t nr_mappings;
	struct ended *old;
	uint32_t nr_old, room_old;
};

/* A position among the mappings of a draft. */
struct spot {
	uint32_t leaf, index;
};

struct space_edit *space_edit_new(struct space *from, struct space_stats *stats)
{
	struct space_edit *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->stats = stats;
	if (!from)
		return d;
	if (!array_reserve(&d->leaves, &d->room_leaves, from->nr_leaves) ||
	    !array_reserve(&d->old, &d->room_old, from->nr_old)) {
		space_edit_free(d);
		return NULL;
	}
	for (; d->nr_leaves < from->nr_leaves; d->nr_leaves++) {
		d->leaves[d->nr_leaves] = from->leaves[d->nr_leaves];
		d->leaves[d->nr_leaves]->refs++;
	}
	if (from->nr_old)
		memcpy(d->old, from->old, from->nr_old * sizeof(*d->old));
	d->nr_old = from->nr_old;
	d->nr_mappings = from->nr_mappings;
	return d;
}

void space_edit_free(struct space_edit *d)
{
	if (!d)
		return;
	for (uint32_t i = 0; i < d->nr_leaves; i++)
		space_leaf_put(d->leaves[i]);
	free(d->leaves);
	free(d->old);
	free(d);
}

/* Find the first mapping that ends after @addr; leaf == nr_leaves: none. */
static struct spot spot_at(const struct space_edit *d, uint64_t addr)
{
	uint32_t low =
		search_split(d->nr_leaves, i, d->leaves[i]->m[d->leaves[i]->nr - 1].end <= addr);

	return (struct spot){ low,
			      low < d->nr_leaves ? space_leaf_search(d->leaves[low], addr) : 0 };
}

/* Find the first live mapping that overlaps [start, end); NULL: none. */
static const struct mapping *first_overlap(const struct space_edit *d, uint64_t start, uint64_t end,
					   struct spot *spot)
{
	const struct mapping *m;

	*spot = spot_at(d, start);
	if (spot->leaf == d->nr_leaves)
		return NULL;
	m = &d->leaves[spot->leaf]->m[spot->index];
	return m->start < end ? m : NULL;
}

/* Make leaf @i writable for up to @nr mappings; NULL when memory is out. */
static struct leaf *own_leaf(struct space_edit *d, uint32_t i, uint32_t nr)
{
	struct leaf *leaf = d->leaves[i], *mine;

	assert(leaf->frozen || leaf->refs == 1);
	if (!leaf->frozen && nr <= leaf->room)
		return leaf;
	mine = space_leaf_new(leaf, MAX(nr, leaf->nr));
	if (mine) {
		space_leaf_put(leaf);
		d->leaves[i] = mine;
	}
	return mine;
}

/* Insert @leaf as leaf @i. */
static bool insert_leaf(struct space_edit *d, uint32_t i, struct leaf *leaf)
{
	if (!array_reserve(&d->leaves, &d->room_leaves, d->nr_leaves + 1))
		return false;
	assert(i <= d->nr_leaves);
	memmove(&d->leaves[i + 1], &d->leaves[i], (d->nr_leaves - i) * sizeof(*d->leaves));
	d->leaves[i] = leaf;
	d->nr_leaves++;
	return true;
}

/* Split the full leaf at @spot, and move @spot to its half. */
static bool split_leaf(struct space_edit *d, struct spot *spot)
{
	struct leaf *left = own_leaf(d, spot->leaf, LEAF_MAX), *right;
	/* Ascending inserts leave full leaves. */
	bool last = spot->leaf + 1 == d->nr_leaves && left && spot->index == left->nr;
	uint32_t half = LEAF_MAX / 2;

	right = left ? space_leaf_new(NULL, LEAF_MAX) : NULL;
	if (!right || !insert_leaf(d, spot->leaf + 1, right)) {
		free(right);
		return false;
	}
	if (!last) {
		right->nr = left->nr - half;
		memcpy(right->m, &left->m[half], right->nr * sizeof(right->m[0]));
		left->nr = half;
	}
	if (spot->index >= left->nr) {
		spot->index -= left->nr;
		spot->leaf++;
	}
	return true;
}

/* Insert @m, which overlaps nothing. */
static bool insert(struct space_edit *d, const struct mapping *m)
{
	struct spot spot = spot_at(d, m->start);
	struct leaf *leaf;

	if (d->nr_mappings >= SPACE_MAPPINGS_MAX)
		return false;
	if (!d->nr_leaves) {
		leaf = space_leaf_new(NULL, 1);
		if (!leaf || !insert_leaf(d, 0, leaf)) {
			free(leaf);
			return false;
		}
	} else if (spot.leaf == d->nr_leaves) {
		spot.leaf--;
		spot.index = d->leaves[spot.leaf]->nr;
	}
	if (d->leaves[spot.leaf]->nr == LEAF_MAX && !split_leaf(d, &spot))
		return false;
	leaf = own_leaf(d, spot.leaf, d->leaves[spot.leaf]->nr + 1);
	if (!leaf)
		return false;
	memmove(&leaf->m[spot.index + 1], &leaf->m[spot.index],
		(leaf->nr - spot.index) * sizeof(leaf->m[0]));
	leaf->m[spot.index] = *m;
	leaf->nr++;
	assert(m->start < m->end && (!spot.index || m->start >= leaf->m[spot.index - 1].end));
	assert(spot.index + 1 == leaf->nr || m->end <= leaf->m[spot.index + 1].start);
	d->nr_mappings++;
	return true;
}

static bool remove_at(struct space_edit *d, struct spot spot)
{
	struct leaf *leaf = own_leaf(d, spot.leaf, 0);

	if (!leaf)
		return false;
	assert(spot.index < leaf->nr && d->nr_mappings);
	leaf->nr--;
	memmove(&leaf->m[spot.index], &leaf->m[spot.index + 1],
		(leaf->nr - spot.index) * sizeof(leaf->m[0]));
	d->nr_mappings--;
	if (!leaf->nr) {
		space_leaf_put(leaf);
		d->nr_leaves--;
		memmove(&d->leaves[spot.leaf], &d->leaves[spot.leaf + 1],
			(d->nr_leaves - spot.leaf) * sizeof(*d->leaves));
	}
	return true;
}

/* Return the part of @m within [start, end). */
static struct mapping part(const struct mapping *m, uint64_t start, uint64_t end)
{
	struct mapping p = *m;

	p.start = MAX(m->start, start);
	p.end = MIN(m->end, end);
	p.offset += p.start - m->start;
	return p;
}

/* Keep @m with its end at @death_ns; of too many, drop the older half. */
static void remember(struct space_edit *d, struct mapping m, uint64_t death_ns)
{
	if (m.birth_ns >= death_ns)
		return;
	if (d->nr_old == OLD_MAX) {
		d->nr_old /= 2;
		memmove(d->old, d->old + OLD_MAX - d->nr_old, d->nr_old * sizeof(*d->old));
	}
	if (array_reserve(&d->old, &d->room_old, d->nr_old + 1))
		d->old[d->nr_old++] = (struct ended){ m, death_ns };
}

/* Test for the same bytes of the same object at the same addresses. */
static bool congruent(const struct mapping *a, const struct mapping *b)
{
	return a->object == b->object && a->start - a->offset == b->start - b->offset;
}

/* Test for replaced code in memory that is mapped again or changes its protection. */
static bool is_layer_of(const struct mapping *layer, const struct mapping *m)
{
	const struct object_identity *a = &layer->object->identity, *b = &m->object->identity;

	return a->kind == OBJECT_ANON && b->kind == OBJECT_ANON && a->owner == b->owner &&
	       a->layer > b->layer;
}

/* Cut the mapping at @spot down to its part outside @by, which replaces the rest. */
static bool yield(struct space_edit *d, struct spot spot, const struct mapping *by)
{
	struct mapping loser = d->leaves[spot.leaf]->m[spot.index];
	struct mapping left = part(&loser, 0, by->start), right = part(&loser, by->end, UINT64_MAX);

	if (!remove_at(d, spot))
		return false;
	remember(d, part(&loser, by->start, by->end), by->birth_ns);
	if (left.start < left.end)
		insert(d, &left);
	if (right.start < right.end)
		insert(d, &right);
	return true;
}

bool space_edit_add(struct space_edit *d, const struct mapping *m)
{
	const struct mapping *other;
	struct mapping rest = *m;
	struct spot spot;
	bool changed = false;

	other = first_overlap(d, m->start, m->end, &spot);
	/* Repeated (mprotect, a part made executable again): no change. */
	if (other && other->start <= m->start && other->end >= m->end && congruent(other, m) &&
	    other->birth_ns <= m->birth_ns)
		return false;
	while (rest.start < rest.end) {
		other = first_overlap(d, rest.start, rest.end, &spot);
		if (!other)
			return insert(d, &rest) || changed;
		/* Code is layered above its memory, which may have grown since. */
		if ((other->birth_ns <= rest.birth_ns || is_layer_of(&rest, other)) &&
		    !is_layer_of(other, &rest)) {
			if (!yield(d, spot, &rest))
				return changed;
			changed = true;
			continue;
		}
		/*
		 * Records arrive out of order: the mapping here is younger (or code of this
		 * memory), and is kept.
		 */
		struct mapping winner = *other;
		struct mapping free_part = part(&rest, 0, winner.start);

		remember(d, part(&rest, winner.start, winner.end), winner.birth_ns);
		if (free_part.start < free_part.end)
			insert(d, &free_part);
		changed = true;
		if (winner.end >= rest.end)
			break;
		rest = part(&rest, winner.end, UINT64_MAX);
	}
	return changed;
}

bool space_edit_merge(struct space_edit *d, const struct mapping *m, uint64_t read_ns)
{
	struct mapping rest = *m, piece;
	const struct mapping *other;
	struct spot spot;
	bool changed = false;

	while (rest.start < rest.end) {
		other = first_overlap(d, rest.start, rest.end, &spot);
		piece = rest;
		if (other && other->start <= rest.start) {
			piece = part(&rest, 0, other->end);
			piece.birth_ns = congruent(other, &piece) ? UINT64_MAX : read_ns;
		} else {
			if (other)
				piece = part(&rest, 0, other->start);
			piece.birth_ns = 0;
		}
		rest = part(&rest, piece.end, UINT64_MAX);
		if (piece.birth_ns != UINT64_MAX)
			changed |= space_edit_add(d, &piece);
	}
	return changed;
}

static void freeze_leaf(struct leaf *leaf)
{
	for (uint32_t i = 0; i < leaf->nr && !leaf->frozen; i++)
		object_get(leaf->m[i].object);
	leaf->frozen = true;
}

struct space *space_edit_freeze(struct space_edit *d, uint64_t keep_from_ns)
{
	uint32_t nr_old = 0;
	struct space *s;

	for (uint32_t i = 0; i < d->nr_old; i++)
		if (d->old[i].death_ns >= keep_from_ns)
			d->old[nr_old++] = d->old[i];
	s = space_leaf_new_space(d->nr_leaves, nr_old);
	if (s) {
		for (uint32_t i = 0; i < d->nr_leaves; i++) {
			struct leaf *leaf = d->leaves[i];

			assert(leaf->nr);
			freeze_leaf(leaf);
			leaf->refs++;
			s->leaves[i] = leaf;
			s->ends[i] = leaf->m[leaf->nr - 1].end;
		}
		if (nr_old)
			memcpy(s->old, d->old, nr_old * sizeof(*s->old));
		for (uint32_t i = 0; i < nr_old; i++)
			object_get(s->old[i].m.object);
		s->nr_mappings = d->nr_mappings;
		s->stats = d->stats;
		s->serial = ++s->stats->last_serial;
		atomic_fetch_add_explicit(&s->stats->nr_spaces, 1, memory_order_relaxed);
		atomic_fetch_add_explicit(&s->stats->nr_mappings, s->nr_mappings,
					  memory_order_relaxed);
	}
	space_edit_free(d);
	return s;
}
