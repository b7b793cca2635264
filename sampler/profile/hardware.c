// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Branches by address, accesses by function and kind, most frequent first. Runs on: the builder.
 */
#include "sampler/profile/hardware.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/count/pairs.h"
#include "symbols/base/base.h"
#include "symbols/object/image.h"

/* Rows of each kind in a profile: the most frequent ones. */
#define HARDWARE_ROWS_MAX 4096

static int by_count(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	if (x->place != y->place)
		return x->place > y->place ? 1 : -1;
	return COMPARE(x->other, y->other);
}

/* Return a copy of the pairs, most frequent first; NULL: none, or out of memory. */
static struct pair *sorted(const struct pairs *pairs, uint32_t *nr)
{
	const struct pair *all = pairs_all(pairs, nr);
	struct pair *copy = *nr ? malloc(*nr * sizeof(*copy)) : NULL;

	if (!copy)
		return NULL;
	memcpy(copy, all, *nr * sizeof(*copy));
	qsort(copy, *nr, sizeof(*copy), by_count);
	return copy;
}

/* Return the offset of a place in its function; UINT64_MAX: not known. */
static uint64_t offset_of(const struct assemble_input *in, uint32_t id)
{
	const struct place *place = places_at(in->places, id);
	const struct object *object = place ? objects_at(in->objects, place->object) : NULL;
	const struct symbol *symbol;
	const struct image *image;
	uint64_t vaddr;

	if (!object)
		return UINT64_MAX;
	/* Acquire: the symbol's fields; pairs with the release in places_name(). */
	symbol =
		symbols_at(in->symbols, atomic_load_explicit(&place->symbol, memory_order_acquire));
	if (!symbol || symbol->kind == '?' || !symbol->start)
		return UINT64_MAX;
	vaddr = place->offset;
	image = atomic_load_explicit(&object->image, memory_order_acquire);
	if (object->identity.kind != OBJECT_KERNEL &&
	    (!image ||
	     (object->identity.kind == OBJECT_FILE && !image_vaddr(image, place->offset, &vaddr))))
		return UINT64_MAX;
	return vaddr >= symbol->start ? vaddr - symbol->start : UINT64_MAX;
}

static int fill_branches(struct profile *p, const struct assemble_input *in,
			 hardware_function_fn function, void *ctx)
{
	uint32_t nr;
	struct pair *all = sorted(in->branches, &nr);
	int code = 0;

	if (!nr)
		return 0;
	p->branches = calloc(MIN(nr, HARDWARE_ROWS_MAX), sizeof(*p->branches));
	p->branches_all = (double)pairs_left_out(in->branches);
	for (uint32_t i = 0; i < nr && all; i++)
		p->branches_all += (double)all[i].count;
	for (uint32_t i = 0; i < MIN(nr, HARDWARE_ROWS_MAX) && all && p->branches && !code; i++) {
		struct profile_branch *b = &p->branches[p->nr_branches++];

		*b = (struct profile_branch){
			.from = function(ctx, all[i].place),
			.to = function(ctx, all[i].other),
			.from_offset = offset_of(in, all[i].place),
			.to_offset = offset_of(in, all[i].other),
			.count = all[i].count,
			.mispredicted = all[i].sums[0],
			.predicted = all[i].sums[1],
			.cycles = all[i].sums[2],
		};
		if (b->from == UINT32_MAX || b->to == UINT32_MAX)
			code = -ENOMEM;
	}
	if (!all || !p->branches)
		code = -ENOMEM;
	free(all);
	return code;
}

/* Find the row of a function and kind, or begin one. NULL: there are enough. */
static struct profile_access *access_row(struct profile *p, uint32_t function, uint32_t kind)
{
	struct profile_access *a = p->accesses;

	for (uint32_t i = 0; i < p->nr_accesses; i++, a++)
		if (a->function == function && a->kind == kind)
			return a;
	if (p->nr_accesses == HARDWARE_ROWS_MAX)
		return NULL;
	p->nr_accesses++;
	*a = (struct profile_access){ .function = function, .kind = kind };
	return a;
}

static int fill_accesses(struct profile *p, const struct assemble_input *in,
			 hardware_function_fn function, void *ctx)
{
	uint32_t nr;
	struct pair *all = sorted(in->accesses, &nr);
	int code = 0;

	if (!nr)
		return 0;
	p->accesses = calloc(HARDWARE_ROWS_MAX, sizeof(*p->accesses));
	p->accesses_all = (double)pairs_left_out(in->accesses);
	for (uint32_t i = 0; i < nr && all && p->accesses && !code; i++) {
		uint32_t f = i < HARDWARE_ROWS_MAX ? function(ctx, all[i].place) : 0;
		struct profile_access *a;

		p->accesses_all += (double)all[i].count;
		if (f == UINT32_MAX)
			code = -ENOMEM;
		a = !code && i < HARDWARE_ROWS_MAX ? access_row(p, f, all[i].other) : NULL;
		if (!a)
			continue;
		a->count += all[i].count;
		a->latency += all[i].sums[0];
	}
	if (!all || !p->accesses)
		code = -ENOMEM;
	free(all);
	return code;
}

int hardware_fill(struct profile *p, const struct assemble_input *in, hardware_function_fn function,
		  void *ctx)
{
	int code = fill_branches(p, in, function, ctx);

	return code ? code : fill_accesses(p, in, function, ctx);
}
