// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Shares of functions by second. Runs on: the main thread.
 *
 * Invariant: at most three quarters of the table are used, so that every
 * search ends; seconds between two notes have the shares of the later one.
 */
#include "ui/fold/internal.h"

#include <stdlib.h>
#include <string.h>

#include "sampler/profile/profile.h"
#include "sampler/ring/ring.h"
#include "symbols/base/base.h"

#define FULL	      (TREND_FUNCTIONS / 4 * 3)
#define LIGHT	      0.0005
#define PURGE_SECONDS 10

void trend_fini(struct trend *t)
{
	free(t->entries);
	*t = (struct trend){ .first = 1 };
}

static uint64_t second_of(uint64_t time_ns)
{
	return time_ns / 1000000000u;
}

bool trend_wants(const struct trend *t, uint64_t key, uint64_t time_ns)
{
	return !t->entries || t->key != key || t->first > t->last || second_of(time_ns) != t->last;
}

static struct trend_entry *entry_at(const struct trend *t, uint32_t id)
{
	uint32_t at = (uint32_t)hash_u64(id) & (TREND_FUNCTIONS - 1);

	while (t->entries[at].used && t->entries[at].id != id)
		at = (at + 1) & (TREND_FUNCTIONS - 1);
	return &t->entries[at];
}

static bool is_empty(const struct trend_entry *e)
{
	for (int i = 0; i < TREND_SECONDS; i++)
		if (e->shares[i] > 0)
			return false;
	return true;
}

/* Remove functions without samples in the last minute. */
static void purge(struct trend *t)
{
	struct trend_entry *before = t->entries;

	t->entries = calloc(TREND_FUNCTIONS, sizeof(*t->entries));
	if (!t->entries) {
		t->entries = before;
		return;
	}
	t->nr = 0;
	for (uint32_t i = 0; i < TREND_FUNCTIONS; i++) {
		if (!before[i].used || is_empty(&before[i]))
			continue;
		*entry_at(t, before[i].id) = before[i];
		t->nr++;
	}
	free(before);
}

/* Blank the seconds after the last one up to @second. */
static void advance(struct trend *t, uint64_t second)
{
	uint64_t from = t->last + 1;

	if (second - t->last > TREND_SECONDS)
		from = second - TREND_SECONDS + 1;
	for (uint32_t i = 0; i < TREND_FUNCTIONS; i++)
		for (uint64_t s = from; t->entries[i].used && s <= second; s++)
			t->entries[i].shares[s % TREND_SECONDS] = 0;
}

static void begin(struct trend *t, uint64_t key, uint64_t second)
{
	memset(t->entries, 0, TREND_FUNCTIONS * sizeof(*t->entries));
	t->nr = 0;
	t->key = key;
	t->first = second;
	t->last = second;
	t->begun = second;
	t->purged = second;
}

static void put(struct trend *t, uint32_t id, float share, uint64_t from, uint64_t second)
{
	struct trend_entry *e = entry_at(t, id);

	if (!e->used) {
		if (t->nr >= FULL || (t->nr >= FULL / 2 && share < LIGHT))
			return;
		*e = (struct trend_entry){ .id = id, .used = true };
		t->nr++;
	}
	for (uint64_t s = from; s <= second; s++)
		e->shares[s % TREND_SECONDS] = share;
}

void trend_note(struct trend *t, uint64_t key, uint64_t time_ns, const struct profile *p,
		const struct fold_functions *fold)
{
	uint64_t second = second_of(time_ns), from = second;

	if (!t->entries)
		t->entries = calloc(TREND_FUNCTIONS, sizeof(*t->entries));
	if (!t->entries)
		return;
	/* After a minute without a note the history starts again. */
	if (t->key != key || t->first > t->last || second < t->last ||
	    second - t->last > TREND_SECONDS) {
		begin(t, key, second);
	} else if (second > t->last) {
		from = t->last + 1;
		advance(t, second);
		t->last = second;
		if (second - t->first >= TREND_SECONDS)
			t->first = second - TREND_SECONDS + 1;
	}
	if (t->nr >= FULL / 2 && second - t->purged >= PURGE_SECONDS) {
		t->purged = second;
		purge(t);
	}
	for (uint32_t i = 0; i < fold->nr_rows && fold->weight > 0; i++)
		put(t, p->functions[fold->rows[i].function].id,
		    (float)(fold->rows[i].self_weight / fold->weight), from, second);
}

double trend_share(const struct trend *t, uint32_t id, uint32_t ago)
{
	const struct trend_entry *e;

	if (!t->entries || t->first > t->last || ago >= TREND_SECONDS || t->last < ago ||
	    t->last - ago < t->first)
		return -1;
	e = entry_at(t, id);
	return e->used ? (double)e->shares[(t->last - ago) % TREND_SECONDS] : 0;
}
