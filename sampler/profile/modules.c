// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From functions to the objects they are code of.
 *
 * Runs on: the builder; the loader goes on loading beside it, so that a state
 * may be a tick old.
 */
#include "sampler/profile/modules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/jit/runtime.h"
#include "symbols/object/image.h"

/* Return the object of @f, and set f->unnamed. */
static uint32_t object_of(const struct assemble_input *in, struct profile_function *f)
{
	const struct symbol *symbol;
	const struct place *place;

	f->unnamed = f->id & ASSEMBLE_PLACE;
	if (f->unnamed) {
		place = places_at(in->places, f->id & ~ASSEMBLE_PLACE);
		return place ? place->object : OBJECT_ID_UNKNOWN;
	}
	symbol = symbols_at(in->symbols, f->id);
	f->unnamed = symbol && symbol->made_up;
	return symbol ? symbol->object : OBJECT_ID_UNKNOWN;
}

static enum profile_module_state state_of(const struct object *object)
{
	/* Pairs with the releases of the loader: with FAILED the reason is set. */
	int state = atomic_load_explicit(&object->state, memory_order_acquire);

	/* Memory has no image, but may have a perf map. */
	if (object->identity.kind == OBJECT_ANON &&
	    atomic_load_explicit(&object->source, memory_order_relaxed))
		return PROFILE_MODULE_READY;
	switch (state) {
	case OBJECT_READY:
		return PROFILE_MODULE_READY;
	case OBJECT_FAILED:
		return PROFILE_MODULE_FAILED;
	case OBJECT_ASIDE:
		return PROFILE_MODULE_ASIDE;
	case OBJECT_NEW:
		if (atomic_load_explicit(&object->nr_evicted, memory_order_relaxed))
			return PROFILE_MODULE_AWAY;
		return PROFILE_MODULE_LOADING;
	default:
		return PROFILE_MODULE_LOADING;
	}
}

static const char *words(const char *text)
{
	return text ? text : "";
}

/* Return the build-id in hexadecimal, of the image or as recorded. */
static struct safe_text build_id_of(struct profile *p, const struct object *object)
{
	/* Acquire: pairs with the release of a finished image in objects.c. */
	const struct image *image = atomic_load_explicit(&object->image, memory_order_acquire);
	bool of_image = image && image->build_id_size;
	const uint8_t *id = of_image ? image->build_id : object->identity.build_id;
	size_t size = of_image ? image->build_id_size : object->identity.build_id_size;
	char text[2 * sizeof(image->build_id) + 1];

	for (size_t i = 0; i < size; i++)
		snprintf(text + 2 * i, 3, "%02x", id[i]);
	return size ? text_arena_add(p->names, text, 2 * size) : TEXT("");
}

/* Describe object @id. */
static void fill_module(struct profile *p, const struct assemble_input *in, uint32_t id,
			struct profile_module *m)
{
	const struct object *object = objects_at(in->objects, id);

	*m = (struct profile_module){
		.id = id,
		.name = TEXT("?"),
		.path = TEXT("?"),
		.state = PROFILE_MODULE_FAILED,
		.source = "",
		.reason = "",
		.fix = "",
	};
	if (!object)
		return;
	m->state = state_of(object);
	m->name = text_arena_add(p->names, object->name.str, object->name.size);
	m->path = text_arena_add(p->names, object->path.str, object->path.size);
	m->build_id = build_id_of(p, object);
	m->source = words(atomic_load_explicit(&object->source, memory_order_relaxed));
	m->reason = words(atomic_load_explicit(&object->reason, memory_order_relaxed));
	m->fix = words(atomic_load_explicit(&object->fix, memory_order_relaxed));
	m->language_reason = atomic_load_explicit(&object->language_reason, memory_order_relaxed);
	m->language_fix = atomic_load_explicit(&object->language_fix, memory_order_relaxed);
	if (!m->language_reason && object->identity.kind == OBJECT_FILE) {
		m->language_reason = runtime_fix_in(RUNTIME_SCRIPTS, m->path.str);
		m->language_fix = m->language_reason ? "none: functions of the interpreter are "
						       "shown"
						     : NULL;
	}
	m->language_version = atomic_load_explicit(&object->language_version, memory_order_relaxed);
	m->nr_symbols = atomic_load_explicit(&object->nr_symbols, memory_order_relaxed);
	m->permille = atomic_load_explicit(&object->permille, memory_order_relaxed);
	m->nr_evicted = atomic_load_explicit(&object->nr_evicted, memory_order_relaxed);
	m->memory = atomic_load_explicit(&object->memory, memory_order_relaxed);
	if (m->state == PROFILE_MODULE_LOADING)
		m->reason = "still loading";
	if (in->kept) {
		m->state = PROFILE_MODULE_KEPT;
		m->source = "--keep";
		m->reason = "";
	}
}

/* Set the module of @f, and the reason if it has no name. */
static void fill_function(const struct profile *p, struct profile_function *f, uint32_t module)
{
	const struct profile_module *m = &p->modules[module];

	f->module_index = module;
	if (!f->unnamed)
		return;
	f->reason = m->reason;
	f->fix = m->fix;
	if (f->id & ASSEMBLE_PLACE)
		f->reason = "still loading";
	else if (m->id == OBJECT_ID_UNKNOWN)
		f->reason = "an address outside of all mappings of its process";
	else if (m->state == PROFILE_MODULE_KEPT)
		f->reason = "it had no name when it was kept";
	else if (!*m->reason)
		f->reason = "no symbol covers this address";
}

int modules_fill(struct profile *p, const struct assemble_input *in)
{
	uint32_t nr_objects = objects_nr(in->objects), nr = 0;
	uint32_t *index = calloc(nr_objects + 1ULL, sizeof(*index));

	if (!p->names)
		p->names = text_arena_new();
	if (!index || !p->names)
		goto fail;
	for (uint32_t i = 0; i < p->nr_functions; i++)
		index[MIN(object_of(in, &p->functions[i]), nr_objects)] = 1;
	for (uint32_t id = 0; id <= nr_objects; id++)
		nr += index[id];
	p->modules = calloc(MAX(nr, 1u), sizeof(*p->modules));
	if (!p->modules)
		goto fail;
	for (uint32_t id = 0; id <= nr_objects; id++) {
		if (!index[id])
			continue;
		fill_module(p, in, id, &p->modules[p->nr_modules]);
		index[id] = p->nr_modules++;
	}
	for (uint32_t i = 0; i < p->nr_functions; i++)
		fill_function(p, &p->functions[i],
			      index[MIN(object_of(in, &p->functions[i]), nr_objects)]);
	free(index);
	return 0;
fail:
	free(index);
	return -ENOMEM;
}
