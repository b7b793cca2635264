// SPDX-License-Identifier: GPL-2.0-or-later
/* The hottest function of a CPU: places summed by symbol. Runs on: the builder. */
#include "sampler/pipeline/hottest.h"

#include <assert.h>
#include <stdlib.h>

#include "sampler/profile/assemble_input.h"
#include "unwind/unwind.h"

/* A function, by the id that it has in profiles. */
struct candidate {
	uint32_t id, lead;
};

static int by_id(const void *pa, const void *pb)
{
	const struct candidate *a = pa, *b = pb;

	return COMPARE(a->id, b->id);
}

static uint32_t id_of(const struct places *places, uint32_t id)
{
	const struct place *place = places_at(places, id);
	/* Acquire: pairs with the release in places_name(). */
	uint32_t symbol = place ? atomic_load_explicit(&place->symbol, memory_order_acquire)
				: SYMBOL_NONE;

	return symbol == SYMBOL_NONE ? ASSEMBLE_PLACE | id : symbol;
}

void hottest_fill(struct profile_cpu *cpu, const struct pipeline_stats *stats,
		  const struct places *places)
{
	struct candidate all[PIPELINE_HOT];
	uint32_t nr = 0, sum = 0;

	cpu->kernel = stats->kernel;
	cpu->hot_samples = 0;
	if (stats->hot_of != places_serial(places))
		return; /* the last sample was before these */
	for (uint32_t i = 0; i < PIPELINE_HOT; i++)
		if (stats->hot[i].lead)
			all[nr++] = (struct candidate){ id_of(places, stats->hot[i].place),
							stats->hot[i].lead };
	assert(nr <= PIPELINE_HOT);
	qsort(all, nr, sizeof(*all), by_id);
	for (uint32_t i = 0; i < nr; i++) {
		sum = i && all[i].id == all[i - 1].id ? sum + all[i].lead : all[i].lead;
		if (sum <= cpu->hot_samples)
			continue;
		cpu->hot_samples = sum;
		cpu->hot = all[i].id;
	}
}
