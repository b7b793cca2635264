// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Frame layouts of JIT code. Runs on: the loader; look-ups on sampler threads.
 */
#include "symbols/jit/codemap.h"
#include "symbols/base/search.h"

#include <stdlib.h>

struct codemap *codemap_new(uint32_t nr_codes, uint32_t nr_methods, uint32_t nr_calls)
{
	size_t codes = nr_codes * sizeof(struct codemap_code);
	size_t methods = nr_methods * sizeof(struct codemap_method);
	struct codemap *m = calloc(1, sizeof(*m) + codes + methods + nr_calls * sizeof(uint64_t));

	if (!m)
		return NULL;
	m->nr_codes = nr_codes;
	m->nr_methods = nr_methods;
	m->nr_calls = nr_calls;
	m->methods = (const void *)((char *)m->codes + codes);
	m->calls = (const void *)((char *)m->codes + codes + methods);
	return m;
}

size_t codemap_memory(const struct codemap *map)
{
	return sizeof(*map) + map->nr_codes * sizeof(*map->codes) +
	       map->nr_methods * sizeof(*map->methods) + map->nr_calls * sizeof(*map->calls);
}

const struct codemap *codemap_publish(struct object *object, const struct codemap *map)
{
	/* Release: the table is complete. Pairs with the acquire in the unwinder's walk. */
	return atomic_exchange_explicit(&object->codemap, map, memory_order_acq_rel);
}

static void free_map(struct reclaim *head)
{
	reclaim_grace_over();
	free(caa_container_of(head, struct codemap, rcu));
}

void codemap_reclaim(const struct codemap *map)
{
	if (map)
		reclaim_later(&((struct codemap *)(uintptr_t)map)->rcu, free_map);
}

const struct codemap_code *codemap_find(const struct codemap *map, uint64_t pc)
{
	uint32_t low = search_split(map->nr_codes, i, map->codes[i].start <= pc);

	return low && pc - map->codes[low - 1].start < map->codes[low - 1].size
		       ? &map->codes[low - 1]
		       : NULL;
}

const struct codemap_method *codemap_method(const struct codemap *map, uint64_t method)
{
	uint32_t low = search_split(map->nr_methods, i, map->methods[i].method < method);

	return low < map->nr_methods && map->methods[low].method == method ? &map->methods[low]
									   : NULL;
}

bool codemap_describes(const struct codemap *map, uint64_t pc)
{
	uint32_t low = search_split(map->nr_calls, i, map->calls[i] < pc);

	return low < map->nr_calls && map->calls[low] == pc;
}
