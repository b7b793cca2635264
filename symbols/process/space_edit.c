// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A draft: the next version of an address space.
 *
 * Begins as the published space. Of two mappings that overlap, the later birth wins, not the order
 * of arrival: the rings of several CPUs are not ordered among each other.
 *
 * Runs on: the writer, under the lock of the maps.
 */
#include "symbols/process/space.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/array.h"
#include "symbols/process/space_private.h"
#include "symbols/process/space_tree.h"

#define OLD_MAX 512u

struct space_edit {
	struct space_stats *stats;
	struct space_tree tree;
	uint32_t nr_mappings;
	struct space *forked; /* the last one of space_edit_fork() if it is unchanged; else NULL */
	struct ended *old;
	uint32_t nr_old, max_old;
};

struct space_edit *space_edit_new(struct space *from, struct space_stats *stats)
{
	struct space_edit *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->stats = stats;
	d->tree.bytes = &stats->bytes;
	if (!from)
		return d;
	if (!array_reserve(&d->old, &d->max_old, from->nr_old)) {
		free(d);
		return NULL;
	}
	if (from->nr_old)
		memcpy(d->old, from->old, from->nr_old * sizeof(*d->old));
	d->nr_old = from->nr_old;
	d->tree.root = space_tree_get(from->root);
	d->nr_mappings = from->nr_mappings;
	return d;
}

void space_edit_free(struct space_edit *d)
{
	if (!d)
		return;
	space_tree_put(d->tree.root, d->tree.bytes);
	space_put(d->forked);
	free(d->old);
	free(d);
}

/* Find the first live mapping that overlaps [start, end); NULL: none. */
static const struct mapping *first_overlap(const struct space_edit *d, uint64_t start, uint64_t end)
{
	const struct mapping *m = space_tree_find(d->tree.root, start);

	return m && m->start < end ? m : NULL;
}

/* Note a change: the next child needs a new space. */
static void change(struct space_edit *d)
{
	space_put(d->forked);
	d->forked = NULL;
}

/* Insert @m, which overlaps nothing. */
static bool insert(struct space_edit *d, const struct mapping *m)
{
	if (d->nr_mappings >= SPACE_MAPPINGS_MAX || !space_tree_insert(&d->tree, m))
		return false;
	change(d);
	d->nr_mappings++;
	return true;
}

static bool remove_at(struct space_edit *d, uint64_t addr)
{
	if (!space_tree_remove(&d->tree, addr))
		return false;
	assert(d->nr_mappings);
	change(d);
	d->nr_mappings--;
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
	if (array_reserve(&d->old, &d->max_old, d->nr_old + 1))
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

/* Cut the mapping @m down to its part outside @by, which replaces the rest. */
static bool yield(struct space_edit *d, const struct mapping *m, const struct mapping *by)
{
	struct mapping loser = *m;
	struct mapping left = part(&loser, 0, by->start), right = part(&loser, by->end, UINT64_MAX);

	if (!remove_at(d, loser.start))
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
	bool changed = false;

	other = first_overlap(d, m->start, m->end);
	/* Repeated (mprotect, a part made executable again): no change. */
	if (other && other->start <= m->start && other->end >= m->end && congruent(other, m) &&
	    other->birth_ns <= m->birth_ns)
		return false;
	while (rest.start < rest.end) {
		other = first_overlap(d, rest.start, rest.end);
		if (!other)
			return insert(d, &rest) || changed;
		/* Code is layered above its memory, which may have grown since. */
		if ((other->birth_ns <= rest.birth_ns || is_layer_of(&rest, other)) &&
		    !is_layer_of(other, &rest)) {
			if (!yield(d, other, &rest))
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
	bool changed = false;

	while (rest.start < rest.end) {
		other = first_overlap(d, rest.start, rest.end);
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

/* Make a space of the draft, with the mappings that ended at @first_ns or later. */
static struct space *make_space(struct space_edit *d, uint64_t first_ns)
{
	uint32_t nr_old = 0;
	struct space *s;

	for (uint32_t i = 0; i < d->nr_old; i++)
		nr_old += d->old[i].death_ns >= first_ns;
	s = malloc(space_size(nr_old));
	if (!s)
		return NULL;
	space_tree_freeze(d->tree.root);
	*s = (struct space){
		.refs = 1,
		.root = space_tree_get(d->tree.root),
		.nr_mappings = d->nr_mappings,
		.stats = d->stats,
		.serial = ++d->stats->last_serial,
	};
	for (uint32_t i = 0; i < d->nr_old; i++) {
		if (d->old[i].death_ns < first_ns)
			continue;
		object_get(d->old[i].m.object);
		s->old[s->nr_old++] = d->old[i];
	}
	atomic_fetch_add_explicit(&s->stats->bytes, space_size(nr_old), memory_order_relaxed);
	atomic_fetch_add_explicit(&s->stats->nr_spaces, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&s->stats->nr_mappings, s->nr_mappings, memory_order_relaxed);
	return s;
}

struct space *space_edit_fork(struct space_edit *d, uint64_t time_ns)
{
	if (!d->forked)
		d->forked = make_space(d, time_ns + 1);
	return space_get(d->forked);
}

struct space *space_edit_freeze(struct space_edit *d, uint64_t keep_from_ns)
{
	struct space *s = make_space(d, keep_from_ns);

	space_edit_free(d);
	return s;
}
