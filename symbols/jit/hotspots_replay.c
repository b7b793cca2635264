// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * JVMs of a recording: its records in place of readings. Runs on: the thread that
 * replays, before the loader starts. Records are foreign bytes: hotspots_kept() checks them.
 */
#include <stdlib.h>
#include <string.h>

#include "symbols/base/array.h"
#include "symbols/base/search.h"
#include "symbols/jit/hotspots.h"
#include "symbols/jit/hotspots_private.h"
#include "symbols/jit/hotspots_record.h"

/* Insert code, and drop the code that it replaces. */
static void take_blob(struct hotspots_entry *e, const struct hotspots_kept *k, const char *name,
		      size_t size)
{
	struct hotspot *vm = &e->reading->vm;
	struct hotspot_blob *b;
	uint32_t at, end;

	if (vm->nr_blobs >= HOTSPOT_BLOBS_MAX ||
	    !array_reserve(&vm->blobs, &e->max_blobs, vm->nr_blobs + 1ull))
		return;
	at = search_split(vm->nr_blobs, i, vm->blobs[i].end <= k->start);
	end = search_split(vm->nr_blobs, i, vm->blobs[i].start < k->end);
	for (uint32_t i = at; i < end; i++)
		free(vm->blobs[i].name);
	b = &vm->blobs[at];
	memmove(b + 1, vm->blobs + end, (vm->nr_blobs - end) * sizeof(*b));
	vm->nr_blobs = vm->nr_blobs - (end - at) + 1;
	*b = (struct hotspot_blob){
		.start = k->start,
		.end = k->end,
		.compile_id = k->compile_id,
		.frame_words = k->frame_words,
		.complete = k->complete,
		.kind = (enum hotspot_kind)k->code_kind,
		.fresh = true,
		.retired = k->flags & HOTSPOTS_KEPT_RETIRED,
		.inlines = k->flags & HOTSPOTS_KEPT_INLINES,
		.blind = k->flags & HOTSPOTS_KEPT_BLIND,
		.deopt = k->deopt,
		.name = strndup(name, size),
	};
}

static void take_method(struct hotspots_entry *e, const struct hotspots_kept *k, const char *name,
			size_t size)
{
	struct hotspot_job *r = e->reading;

	/* The list ends with each settling. */
	if (jitcode_nr(e->methods) + r->nr_methods >= HOTSPOTS_METHODS_MAX ||
	    !array_reserve(&r->methods, &e->max_methods, r->nr_methods + 1ull))
		return;
	r->methods[r->nr_methods++] = (struct hotspot_method_name){
		.method = k->start,
		.code = k->bytecodes,
		.code_size = k->bytecodes_size,
		.name = strndup(name, size),
	};
}

static void take_chain(struct hotspots_entry *e, const struct hotspots_kept *k,
		       const struct code_text *text)
{
	struct hotspot_job_frame *frames;

	if (!array_reserve(&e->recorded, &e->max_recorded, e->nr_recorded + 1ull))
		return;
	frames = hotspots_kept_frames(text, k);
	if (frames)
		e->recorded[e->nr_recorded++] =
			(struct hotspot_job_chain){ .addr = k->start,
						    .layer = k->layer,
						    .nr = k->nr,
						    .exact = k->flags & HOTSPOTS_KEPT_EXACT,
						    .frames = frames };
}

void hotspots_replay(struct hotspots *h, const struct object *memory, const struct code_text *text,
		     const struct hotspots_kept *k)
{
	struct hotspots_entry *e = hotspots_find_entry(h, memory);

	if (!e && !h->off && h->recorded)
		e = hotspots_add_entry(h, memory);
	if (!e || !e->reading)
		return;
	e->pending = true;
	e->reading->vm.call_return = k->call_return;
	switch (k->kind) {
	case HOTSPOTS_KEPT_CODE:
		e->reading->vm.untried = k->flags & HOTSPOTS_KEPT_UNTRIED;
		take_blob(e, k, text->name, text->name_size);
		break;
	case HOTSPOTS_KEPT_METHOD:
		take_method(e, k, text->name, text->name_size);
		break;
	default:
		take_chain(e, k, text);
	}
}

static int by_place(const void *a, const void *b)
{
	const struct hotspot_job_chain *x = a, *y = b;

	if (x->layer != y->layer)
		return x->layer < y->layer ? -1 : 1;
	return COMPARE(x->addr, y->addr);
}

bool hotspots_settle(struct hotspots *h, uint64_t time_ns)
{
	bool changed = false;

	for (uint32_t i = 0; i < h->nr_entries; i++) {
		struct hotspots_entry *e = h->entries[i];
		struct hotspot *vm;

		if (!e->pending || !e->reading)
			continue;
		vm = &e->reading->vm;
		e->pending = false;
		changed = true;
		vm->nr_new = vm->nr_retired = 0;
		for (uint32_t k = 0; k < vm->nr_blobs; k++) {
			vm->nr_new += vm->blobs[k].fresh;
			vm->nr_retired += vm->blobs[k].retired;
		}
		/* Of code that was read before them. */
		for (uint32_t k = e->nr_settled; k < e->nr_recorded; k++)
			if (e->recorded[k].exact)
				hotspots_take_call(e, e->recorded[k].addr);
		e->nr_settled = e->nr_recorded;
		hotspots_take_code(h, e, time_ns);
		hotspot_job_forget(e->reading);
		e->max_methods = 0;
		for (uint32_t k = 0; k < vm->nr_blobs; k++)
			vm->blobs[k].fresh = false;
		if (e->nr_recorded)
			qsort(e->recorded, e->nr_recorded, sizeof(*e->recorded), by_place);
	}
	return changed;
}

void hotspots_find_recorded(struct hotspots_entry *e, uint32_t layer, uint64_t addr, uint32_t place)
{
	const struct hotspot_job_chain key = { .addr = addr, .layer = layer };
	struct hotspot_job_chain *found;

	found = e->nr_recorded ? bsearch(&key, e->recorded, e->nr_recorded, sizeof(key), by_place)
			       : NULL;
	if (!found || !found->frames ||
	    !array_reserve(&e->found, &e->max_found, e->nr_found + 1ull))
		return;
	found->place = place;
	e->found[e->nr_found++] = *found;
	found->frames = NULL; /* a place requests its chain once */
}
