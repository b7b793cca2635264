// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Methods inlined at sampled addresses: requests for a job, and their results.
 *
 * Runs on: the loader.
 */
#include <stdlib.h>
#include <string.h>

#include "symbols/base/array.h"
#include "symbols/base/search.h"
#include "symbols/jit/hotspots.h"
#include "symbols/jit/hotspots_private.h"

#define CHAINS_MAX 4096U

bool hotspots_is_latest(const struct hotspots_entry *e, uint32_t layer, uint64_t addr)
{
	const struct jitcode_function *f = jitcode_latest(e->code, addr);

	return f && f->layer == layer;
}

void hotspots_take_call(struct hotspots_entry *e, uint64_t pc)
{
	const struct jitcode_function *f = jitcode_latest(e->code, pc);
	uint32_t at = search_split(e->nr_calls, i, e->calls[i].pc < pc);

	if (!f)
		return;
	if (at == e->nr_calls || e->calls[at].pc != pc) {
		if (e->nr_calls == HOTSPOTS_CALLS_MAX ||
		    !array_reserve(&e->calls, &e->max_calls, e->nr_calls + 1ull))
			return;
		memmove(e->calls + at + 1, e->calls + at, (e->nr_calls - at) * sizeof(*e->calls));
		e->nr_calls++;
	}
	e->calls[at] = (struct hotspots_call){ pc, f->serial };
	e->new_calls = true;
}

uint32_t hotspots_put_calls(const struct hotspots_entry *e, const struct hotspot *vm,
			    uint64_t *calls)
{
	uint32_t nr = 0, blob = 0;

	for (uint32_t i = 0; i < e->nr_calls; i++) {
		const struct hotspots_call *c = &e->calls[i];

		while (blob < vm->nr_blobs && vm->blobs[blob].end <= c->pc)
			blob++;
		if (blob < vm->nr_blobs && vm->blobs[blob].start <= c->pc &&
		    vm->blobs[blob].compile_id == c->compile_id)
			calls[nr++] = c->pc;
	}
	return nr;
}

void hotspots_keep_chains(struct hotspots_entry *e, struct hotspot_job *r)
{
	for (uint32_t i = 0; i < r->nr_chains; i++) {
		struct hotspot_job_chain *c = &r->chains[i];

		if (hotspots_is_latest(e, c->layer, c->addr)) {
			if (c->nr && c->exact)
				hotspots_take_call(e, c->addr);
			continue;
		}
		free(c->frames);
		c->frames = NULL;
		c->nr = 0;
	}
	if (e->nr_found) { /* the loader is late: a new request follows when its places are named
			      again */
		hotspot_job_free_chains(r->chains, r->nr_chains);
	} else {
		free(e->found);
		e->found = r->chains;
		e->nr_found = r->nr_chains;
		e->found_memory = r->chains_memory + r->nr_chains * sizeof(*r->chains);
	}
	r->chains = NULL;
	r->nr_chains = 0;
}

void hotspots_want_chain(struct hotspots *h, const struct object *object, uint64_t addr,
			 uint32_t place)
{
	struct hotspots_entry *e = h->maps && h->helpers ? hotspots_find_entry(h, object) : NULL;

	if (e && h->recorded)
		hotspots_find_recorded(e, object->identity.layer, addr, place);
	if (!e || h->recorded || !e->reading || object->identity.layer == HOTSPOTS_METHODS ||
	    e->nr_chains >= CHAINS_MAX || !hotspots_is_latest(e, object->identity.layer, addr))
		return;
	if (!array_reserve(&e->chains, &e->max_chains, e->nr_chains + 1ull))
		return;
	e->chains[e->nr_chains++] = (struct hotspot_job_chain){ .addr = addr,
								.place = place,
								.layer = object->identity.layer };
}

bool hotspots_take_chain(struct hotspots *h, struct hotspots_chain *out)
{
	for (uint32_t i = 0; i < h->nr_entries; i++) {
		struct hotspots_entry *e = h->entries[i];

		while (e->nr_found) {
			struct hotspot_job_chain *r = &e->found[--e->nr_found];

			if (!r->nr)
				continue;
			if (h->result)
				free(h->result->frames);
			else
				h->result = calloc(1, sizeof(*h->result));
			if (!h->result) {
				free(r->frames);
				continue;
			}
			*h->result = *r;
			*out = (struct hotspots_chain){ r->place, r->addr, e->object, r->frames,
							r->nr };
			return true;
		}
	}
	return false;
}
