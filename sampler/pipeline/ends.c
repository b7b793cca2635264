// SPDX-License-Identifier: GPL-2.0-or-later
/* The object in which most broken stacks end. Runs on: sampler threads, the builder. */
#include "sampler/pipeline/ends.h"

static void vote(struct ends_slot *slot, uint32_t object, uint32_t votes)
{
	if (slot->object == object || !slot->lead)
		*slot = (struct ends_slot){ object, slot->lead + votes };
	else if (slot->lead >= votes)
		slot->lead -= votes;
	else
		*slot = (struct ends_slot){ object, votes - slot->lead };
}

void ends_note(struct ends *e, uint32_t object)
{
	vote(&e->slots[object & (ENDS_SLOTS - 1)], object, 1);
}

void ends_add(struct ends *sum, const struct ends *add)
{
	for (int i = 0; i < ENDS_SLOTS; i++)
		vote(&sum->slots[i], add->slots[i].object, add->slots[i].lead);
}

uint32_t ends_most(const struct ends *e, uint64_t all)
{
	for (int i = 0; i < ENDS_SLOTS; i++)
		if (e->slots[i].lead && 2ULL * e->slots[i].lead >= all)
			return e->slots[i].object;
	return UINT32_MAX;
}
