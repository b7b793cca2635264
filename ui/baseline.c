// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A profile's functions kept to compare later ones with. The main thread.
 */
#include "ui/baseline.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "symbols/base.h"

#define Z_99 2.576

void baseline_fini(struct baseline *b)
{
	free(b->entries);
	text_arena_free(b->names);
	*b = (struct baseline){ 0 };
}

static int by_id(const void *pa, const void *pb)
{
	uint32_t a = ((const struct baseline_entry *)pa)->id;
	uint32_t b = ((const struct baseline_entry *)pb)->id;

	return (a > b) - (a < b);
}

int baseline_set(struct baseline *b, const struct profile *p, const struct fold_functions *fold,
		 uint64_t key, uint64_t time_ns)
{
	baseline_fini(b);
	b->names = text_arena_new();
	b->entries = calloc(MAX(fold->nr_rows, 1u), sizeof(*b->entries));
	if (!b->names || !b->entries) {
		baseline_fini(b);
		return -ENOMEM;
	}
	b->count = fold->count;
	b->key = key;
	b->time_ns = time_ns;
	for (uint32_t i = 0; i < fold->nr_rows; i++) {
		const struct fold_row *row = &fold->rows[i];
		const struct profile_function *fn = &p->functions[row->function];

		b->entries[b->nr++] = (struct baseline_entry){
			.id = fn->id,
			.share = fold->weight > 0 ? row->self_weight / fold->weight : 0,
			.count = row->self,
			.name = text_arena_add(b->names, fn->name.str, fn->name.size),
		};
	}
	qsort(b->entries, b->nr, sizeof(*b->entries), by_id);
	return 0;
}

const struct baseline_entry *baseline_find(const struct baseline *b, uint32_t id)
{
	const struct baseline_entry key = { .id = id };

	return b->nr ? bsearch(&key, b->entries, b->nr, sizeof(key), by_id) : NULL;
}

bool baseline_differs(double k0, double n0, double k1, double n1)
{
	double p, z2;

	if (!(n0 > 0) || !(n1 > 0))
		return false;
	p = (k0 + k1) / (n0 + n1);
	if (!(p > 0) || !(p < 1))
		return false;
	z2 = (k1 / n1 - k0 / n0) * (k1 / n1 - k0 / n0) / (p * (1 - p) * (1 / n0 + 1 / n1));
	return z2 > Z_99 * Z_99;
}

enum baseline_change baseline_compare(const struct baseline *b, uint32_t id, double share,
				      double count, double all, double *delta)
{
	const struct baseline_entry *e = baseline_find(b, id);
	double before = e ? e->count : 0;

	*delta = share - (e ? e->share : 0);
	if (!(before > 0) && !(count > 0))
		return BASELINE_NONE;
	if (!baseline_differs(before, b->count, count, all))
		return BASELINE_UNSURE;
	return before > 0 ? BASELINE_SURE : BASELINE_NEW;
}
