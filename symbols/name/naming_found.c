// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The symbol found for a place, before it has an id. Runs on: the loader.
 */
#include "symbols/base/keyhash.h"
#include "symbols/name/naming_found.h"

#include <string.h>

void naming_share(struct naming_found *f, uint32_t object, const char *name, size_t size)
{
	f->key.object = object;
	f->key.variant = keyhash_name(name, size);
	f->shared = true;
	naming_found_name(f, name, size);
}

uint32_t naming_shared_object(struct objects *objects, const char *source)
{
	/* No file has this device. */
	const struct object_identity identity = { .kind = OBJECT_SCRIPT,
						  .ino = keyhash_name(source, strlen(source)),
						  .maj = UINT32_MAX };

	return objects_intern(objects, &identity, source, strlen(source), 0, 0, 0)->id;
}

void naming_found_module(struct naming_found *f, const char *module, size_t size)
{
	f->text.module = module;
	f->text.module_size = size;
}

void naming_found_name(struct naming_found *f, const char *name, size_t size)
{
	f->text.name = name;
	f->text.name_size = size;
	f->by_name = true;
}

void naming_found_made_up(struct naming_found *f, struct safe_text head, const char *join,
			  uint64_t start)
{
	f->key.start = start;
	f->key.made_up = true;
	f->head = head;
	f->join = join;
}
