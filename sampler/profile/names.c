// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * All texts of a profile, copied into one pool. Runs on: the builder. The texts are clean already.
 */
#include "sampler/profile/names.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"
#include "symbols/base/text.h"

/* Beyond the dso's name: "+0x", 16 digits, NUL. */
#define PLACE_TEXT_MAX 24

static bool is_unnamed(const struct profile_function *f)
{
	return f->id & ASSEMBLE_PLACE && !f->name.str;
}

static size_t name_room(const struct profile_function *f)
{
	return is_unnamed(f) ? f->module.size + (size_t)PLACE_TEXT_MAX : f->name.size + (size_t)1;
}

static size_t pool_size(const struct profile *p)
{
	size_t size = 1;

	for (uint32_t i = 0; i < p->nr_functions; i++)
		size += p->functions[i].module.size + 1 + name_room(&p->functions[i]);
	for (uint32_t i = 0; i < p->nr_tasks; i++)
		size += p->tasks[i].comm.size + 1;
	for (uint32_t i = 0; i < p->nr_processes; i++)
		size += p->processes[i].comm.size + 1;
	for (uint32_t i = 0; i < p->nr_files; i++)
		size += p->files[i].size + (size_t)1;
	return size;
}

/* Move a borrowed text into the pool. */
static void pool_take(char **pool, struct safe_text *text)
{
	if (text->size)
		memcpy(*pool, text->str, text->size);
	(*pool)[text->size] = '\0';
	text->str = *pool;
	*pool += text->size + 1;
}

/* Name a place: object and offset, or the address alone. */
static void pool_name_place(const struct assemble_input *in, char **pool,
			    struct profile_function *f)
{
	const struct place *place = places_at(in->places, f->id & ~ASSEMBLE_PLACE);
	const struct object *object =
		objects_at(in->objects, place ? place->object : OBJECT_ID_UNKNOWN);
	size_t max = name_room(f);
	bool relative = object && (object->identity.kind == OBJECT_FILE ||
				   object->identity.kind == OBJECT_VDSO);

	f->name = text_format(*pool, max, "%s%s0x%" PRIx64, relative ? object->name.str : "",
			      relative ? "+" : "", place ? place->offset : 0);
	*pool += max;
}

int names_copy(struct profile *p, const struct assemble_input *in)
{
	char *pool = malloc(pool_size(p));

	if (!pool)
		return -ENOMEM;
	p->pool = pool;
	for (uint32_t i = 0; i < p->nr_functions; i++) {
		struct profile_function *f = &p->functions[i];

		if (is_unnamed(f))
			pool_name_place(in, &pool, f);
		else
			pool_take(&pool, &f->name);
		pool_take(&pool, &f->module);
	}
	for (uint32_t i = 0; i < p->nr_tasks; i++)
		pool_take(&pool, &p->tasks[i].comm);
	for (uint32_t i = 0; i < p->nr_processes; i++)
		pool_take(&pool, &p->processes[i].comm);
	for (uint32_t i = 0; i < p->nr_files; i++)
		pool_take(&pool, &p->files[i]);
	return 0;
}
