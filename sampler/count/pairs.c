// SPDX-License-Identifier: GPL-2.0-or-later
/* Counts by place and number, in a hash table. Runs on: the builder. */
#include "sampler/count/pairs.h"

#include <stdlib.h>

#include "symbols/base/array.h"
#include "symbols/base/base.h"
#include "symbols/base/hashset.h"
#include "symbols/base/keyhash.h"

struct pairs {
	struct hashset set;
	struct pair *pairs;
	uint32_t nr, room;
	uint64_t left_out;
};

struct pairs *pairs_new(void)
{
	return calloc(1, sizeof(struct pairs));
}

void pairs_free(struct pairs *p)
{
	if (!p)
		return;
	hashset_fini(&p->set);
	free(p->pairs);
	free(p);
}

static struct pair *find(struct pairs *p, uint32_t place, uint32_t other)
{
	uint64_t hash = keyhash_number((uint64_t)place << 32 | other);
	uint32_t at = 0, id;

	while ((id = hashset_next(&p->set, hash, &at)) != HASHSET_NONE)
		if (p->pairs[id].place == place && p->pairs[id].other == other)
			return &p->pairs[id];
	if (p->nr == PAIRS_MAX || hashset_reserve(&p->set, 1) ||
	    !array_reserve(&p->pairs, &p->room, p->nr + 1ull))
		return NULL;
	hashset_add(&p->set, hash, p->nr);
	p->pairs[p->nr] = (struct pair){ .place = place, .other = other };
	return &p->pairs[p->nr++];
}

void pairs_add(struct pairs *p, uint32_t place, uint32_t other, const uint64_t figures[static 3])
{
	struct pair *pair = find(p, place, other);

	if (!pair) {
		p->left_out++;
		return;
	}
	pair->count++;
	for (int i = 0; i < 3; i++)
		pair->sums[i] += figures[i];
}

const struct pair *pairs_all(const struct pairs *p, uint32_t *nr)
{
	*nr = p ? p->nr : 0;
	return p ? p->pairs : NULL;
}

uint64_t pairs_left_out(const struct pairs *p)
{
	return p ? p->left_out : 0;
}
