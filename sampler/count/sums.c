// SPDX-License-Identifier: GPL-2.0-or-later
/* Long sums: counts by stack, task, event and slice, added and scaled for long times. */
#include "sampler/count/internal.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"

/*
 * Long sums by count: open addressing, never over half full.
 *
 * Runs on: the builder. Invariant: the sum over all cells is the sum of all
 * that was ever added (scaled), pruned or not.
 */

#define SLOTS_MIN 64u
#define SLOTS_MAX (1u << 30)

void sums_init(struct sums *s)
{
	*s = (struct sums){ 0 };
}

void sums_fini(struct sums *s)
{
	free(s->slots);
	sums_init(s);
}

static uint64_t slots_nr(const struct sums *s)
{
	return s->slots ? s->mask + 1ULL : 0;
}

static struct sum *slot_get(struct sums *s, uint64_t key)
{
	uint32_t at = (uint32_t)hash_u64(key) & s->mask;

	while (s->slots[at].key && s->slots[at].key != key)
		at = (at + 1) & s->mask;
	return &s->slots[at];
}

int sums_reserve(struct sums *s, uint32_t more)
{
	struct sums grown = { .nr = s->nr };
	uint64_t size = MAX(slots_nr(s), SLOTS_MIN);

	while (((uint64_t)s->nr + more) * 2 > size)
		size *= 2;
	if (size == slots_nr(s))
		return 0;
	if (size > SLOTS_MAX)
		return -ENOMEM;
	/* Reading what was never written, then writing it, takes two page faults. */
	grown.slots = alloc_to_fill(size * sizeof(*grown.slots));
	if (!grown.slots)
		return -ENOMEM;
	memset(grown.slots, 0, size * sizeof(*grown.slots));
	grown.mask = (uint32_t)(size - 1);
	for (uint64_t i = 0; i < slots_nr(s); i++)
		if (s->slots[i].key)
			*slot_get(&grown, s->slots[i].key) = s->slots[i];
	free(s->slots);
	*s = grown;
	return 0;
}

void sums_add(struct sums *s, uint64_t key, double count, double weight)
{
	struct sum *slot = slot_get(s, key);

	s->nr += !slot->key;
	slot->key = key;
	slot->count += count;
	slot->weight += weight;
}

void sums_scale(struct sums *s, double factor)
{
	for (uint64_t i = 0; i < slots_nr(s); i++) {
		s->slots[i].count *= factor;
		s->slots[i].weight *= factor;
	}
}

static void swap(struct sum *a, struct sum *b)
{
	struct sum was = *a;

	*a = *b;
	*b = was;
}

/* Order @list so that its @keep heaviest cells are first (Hoare's quickselect). */
static void select_heaviest(struct sum *list, uint32_t nr, uint32_t keep)
{
	int64_t low = 0, high = (int64_t)nr - 1, target = keep;

	while (low < high) {
		double pivot = list[low + (high - low) / 2].weight;
		int64_t i = low, j = high;

		while (i <= j) {
			while (list[i].weight > pivot)
				i++;
			while (list[j].weight < pivot)
				j--;
			if (i <= j)
				swap(&list[i++], &list[j--]);
		}
		if (target <= j)
			high = j;
		else if (target >= i)
			low = i;
		else
			return;
	}
}

/* Return the key that a pruned count is added to. */
static uint64_t folded_key(uint64_t key, bool by_task)
{
	return tables_count_key(STACK_NONE, by_task ? tables_count_key_task(key) : 0,
				tables_count_key_event(key));
}

/* Report whether a count is folded already, at the last level. */
static bool is_last(uint64_t key)
{
	return key == folded_key(key, false);
}

static uint32_t list_cells(const struct sums *s, struct sum *list)
{
	uint32_t nr = 0;

	for (uint64_t i = 0; i < slots_nr(s); i++)
		if (s->slots[i].key)
			list[nr++] = s->slots[i];
	return nr;
}

/* Prune once: into counts by task, or into one per event. */
static int fold_away(struct sums *s, uint32_t keep, double min_count, bool by_task)
{
	struct sum *list = malloc(MAX(s->nr, 1u) * sizeof(*list));
	struct sums pruned;
	uint32_t nr;

	sums_init(&pruned);
	/* Folding never makes more counts: the list is long enough. */
	if (!list || sums_reserve(&pruned, s->nr)) {
		free(list);
		return -ENOMEM;
	}
	nr = list_cells(s, list);
	select_heaviest(list, nr, keep);
	for (uint32_t i = 0; i < nr; i++) {
		/* CPU time has no samples. */
		bool enough = list[i].count > 0 ? list[i].count >= min_count : list[i].weight >= 1;
		bool stays = is_last(list[i].key) || (i < keep && enough);

		sums_add(&pruned, stays ? list[i].key : folded_key(list[i].key, by_task && enough),
			 list[i].count, list[i].weight);
	}
	free(list);
	free(s->slots);
	*s = pruned;
	return 0;
}

int sums_prune(struct sums *s, uint32_t keep, double min_count)
{
	int ret = fold_away(s, keep, min_count, true);

	if (!ret && s->nr > keep)
		ret = fold_away(s, keep, min_count, false);
	return ret;
}

void sums_folded(const struct sums *s, double *count, double *weight)
{
	*count = *weight = 0;
	for (uint64_t i = 0; i < slots_nr(s); i++) {
		if (!s->slots[i].key || tables_count_key_stack(s->slots[i].key) != STACK_NONE)
			continue;
		*count += s->slots[i].count;
		*weight += s->slots[i].weight;
	}
}

size_t sums_memory(const struct sums *s)
{
	return slots_nr(s) * sizeof(*s->slots);
}
