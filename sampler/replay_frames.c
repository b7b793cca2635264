// SPDX-License-Identifier: GPL-2.0-or-later
/* Place and raw address -> frame id. Runs on: the thread of the replay. */
#include "sampler/replay_frames.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/object/image.h"
#include "unwind/unwind.h"

#define FRAME_UNKNOWN 0

static const struct sampler_frame unknown = {
	.file_offset = UINT64_MAX,
	.name = TEXT("[unknown]"),
	.offset = UINT64_MAX,
	.module = TEXT("[unknown]"),
};

static uint64_t file_offset(const struct object *object, const struct place *place, uint64_t ip)
{
	uint64_t gap = frames_gap(place, ip);

	if (gap > 1 ||
	    (object->identity.kind != OBJECT_FILE && object->identity.kind != OBJECT_VDSO))
		return UINT64_MAX;
	return place->offset + gap;
}

/* Return the offset of the raw address in its function. */
static uint64_t offset_in(const struct object *object, const struct place *place,
			  const struct symbol *symbol, uint64_t ip)
{
	const struct image *image = atomic_load_explicit(&object->image, memory_order_acquire);
	uint64_t vaddr = place->offset, gap = frames_gap(place, ip);

	if (gap > 1)
		return UINT64_MAX;
	if (object->identity.kind == OBJECT_KERNEL) /* of unknown kernel code: none */
		return symbol->start ? place->offset + gap - symbol->start : UINT64_MAX;
	if (!image ||
	    (object->identity.kind == OBJECT_FILE && !image_vaddr(image, place->offset, &vaddr)))
		return UINT64_MAX;
	return vaddr + gap - symbol->start;
}

static uint32_t add(struct frames *f, const struct sampler_frame *frame)
{
	if (f->nr == f->room) {
		f->room = MAX(2 * f->room, 1024u);
		f->known = xrealloc_array(f->known, f->room, sizeof(*f->known));
	}
	assert(f->nr < f->room);
	f->known[f->nr] = *frame;
	return f->nr++;
}

void frames_init(struct frames *f)
{
	*f = (struct frames){ 0 };
	add(f, &unknown);
}

void frames_fini(struct frames *f)
{
	free(f->known);
	free(f->places);
	*f = (struct frames){ 0 };
}

static struct frames_of_place *place_slot(struct frames *f, uint32_t place)
{
	if (place >= f->room_places) {
		uint32_t room = MAX(2 * f->room_places, (place | 1023) + 1);

		f->places = xrealloc_array(f->places, room, sizeof(*f->places));
		memset(f->places + f->room_places, 0, (room - f->room_places) * sizeof(*f->places));
		f->room_places = room;
	}
	return &f->places[place];
}

/* Return the module of kernel code, as perf prints it. */
static struct safe_text kernel_module(const struct symbol *symbol)
{
	static const char *const inside[] = { "[kernel]", "[bpf]", "[__builtin__" };

	for (size_t i = 0; symbol && i < ARRAY_SIZE(inside); i++)
		if (!strncmp(symbol->module.str, inside[i], strlen(inside[i])))
			symbol = NULL;
	return symbol ? symbol->module : TEXT("[kernel.kallsyms]");
}

static uint32_t make(struct frames *f, const struct store *st, const struct place *place,
		     uint32_t symbol_id, uint64_t ip)
{
	const struct object *object = objects_at(st->objects, place->object);
	const struct symbol *symbol = symbols_at(st->symbols, symbol_id);
	struct sampler_frame frame = unknown;

	if (!object || object->identity.kind == OBJECT_UNKNOWN)
		return FRAME_UNKNOWN;
	frame.file_offset = file_offset(object, place, ip);
	frame.module = object->path.size ? object->path : object->name;
	if (object->identity.kind == OBJECT_KERNEL)
		frame.module = kernel_module(symbol);
	if (symbol && symbol->kind != '?') {
		frame.name = symbol->name;
		frame.offset = offset_in(object, place, symbol, ip);
	}
	return add(f, &frame);
}

uint32_t frames_meet(struct frames *f, const struct store *st, uint32_t id, uint64_t ip)
{
	const struct place *place = id == PLACE_NONE ? NULL : places_at(st->places, id);
	struct frames_of_place *slot;
	uint32_t symbol, way;

	if (!place)
		return FRAME_UNKNOWN;
	slot = place_slot(f, id);
	slot->place = place;
	way = frames_way(place, ip);
	/* Acquire: pairs with the release in places_name(). */
	symbol = atomic_load_explicit(&place->symbol, memory_order_acquire);
	if (!slot->way[way].frame || slot->way[way].symbol != symbol) {
		slot->way[way].symbol = symbol;
		slot->way[way].frame = make(f, st, place, symbol, ip);
	}
	return slot->way[way].frame;
}
